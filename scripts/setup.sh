#!/usr/bin/env bash
# Installs the system packages that the build and the tests need, where they are missing.
# Called by `make run` and `make test`; safe to call again: it does nothing when all is there.
set -euo pipefail

packages=()
need() { packages+=("$1"); }

command -v cc >/dev/null || need build-essential
command -v make >/dev/null || need make
command -v cmake >/dev/null || need cmake # zlib-ng, inside Pingora
command -v pkg-config >/dev/null || need pkg-config
pkg-config --exists openssl 2>/dev/null || need libssl-dev
if [ "${1:-build}" = test ]; then
    # The tests drive the gateway with the official openai package, in a virtual environment.
    command -v python3 >/dev/null || need python3
    python3 -c 'import ensurepip, venv' 2>/dev/null || need python3-venv
fi

if ! command -v cargo >/dev/null; then
    echo "streamgate: cargo is missing. Install Rust with rustup: https://rustup.rs" >&2
    exit 1
fi
[ ${#packages[@]} -eq 0 ] && exit 0

by_hand() {
    echo "streamgate: $1" >&2
    echo "Please install these packages (Debian's names) and try again: ${packages[*]}" >&2
    exit 1
}

command -v apt-get >/dev/null || by_hand "this script installs packages with apt-get, which is not here."
if [ "$(id -u)" -eq 0 ]; then
    as_root=()
elif command -v sudo >/dev/null; then
    as_root=(sudo)
else
    by_hand "installing packages needs root or sudo."
fi

echo "streamgate: installing ${packages[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq </dev/null || by_hand "apt-get update failed."
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}" </dev/null ||
    by_hand "apt-get install failed."
