#!/usr/bin/env bash
# Runs the benchmark: streamgate and nginx side by side, in front of a simulated engine (benches/gateway).
# Called by `make bench` and, with --contenders, by `make bench-side`. Options go to the benchmark: --quick, --large,
# --scenario NAME, --contenders, --with NAMES, --json FILE, --from FILE, --pictures DIR, --help.
# Needs two cores, nginx (installed here if this is Debian or Ubuntu and you are root) and taskset.
set -euo pipefail
cd "$(dirname "$0")/.."

# No run takes longer than this; a hang is an error. Contenders take more (below).
time_limit=15m
# 9,500 streams through one process take two file descriptors each.
large_files=20000

fail() {
    echo "bench: $1" >&2
    exit 1
}

case " $* " in
*" --from"* | *" --help "*) exec cargo bench --quiet --bench gateway -- "$@" ;;
*" --contenders "* | *" --with"*)
    # Those that cannot be installed are told, and the benchmark goes on without them.
    scripts/contenders.sh
    time_limit=90m
    ;;
esac

[ "$(nproc --all)" -ge 2 ] || fail "two cores are needed: one for the proxies, one for the engine and the clients."
command -v taskset >/dev/null || fail "taskset is missing (Debian's package: util-linux)."

if ! command -v nginx >/dev/null; then
    if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
        fail "nginx is missing. Please install it and try again (Debian's package: nginx-light)."
    fi
    echo "bench: installing nginx" >&2
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq </dev/null || fail "apt-get update failed."
    apt-get install -y -qq --no-install-recommends nginx-light </dev/null || fail "apt-get install failed."
fi

ulimit -n "$(ulimit -Hn)"
files=$(ulimit -n)
case " $* " in
*" --large "* | *" large "*)
    if [ "$files" != unlimited ] && [ "$files" -lt "$large_files" ]; then
        fail "9,500 streams need $large_files file descriptors, here are $files (ulimit -Hn)."
    fi
    ;;
esac

# On all cores, and before the clock runs.
cargo bench --no-run --bench gateway
exec timeout --foreground "$time_limit" taskset -c 1 cargo bench --quiet --bench gateway -- "$@"
