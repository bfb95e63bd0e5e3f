#!/usr/bin/env bash
# Installs the system packages that the build and the tests need, where they are missing.
# Called by `make run`, `make test` and `make dist`; safe to call again: it does nothing when all is there.
set -euo pipefail

packages=()
need() { packages+=("$1"); }
# What only some tests use: they say that they were not run where it is not to be had.
wanted=()
want() { wanted+=("$1"); }

command -v cc >/dev/null || need build-essential
command -v make >/dev/null || need make
command -v cmake >/dev/null || need cmake # zlib-ng, inside Pingora
command -v pkg-config >/dev/null || need pkg-config
pkg-config --exists openssl 2>/dev/null || need libssl-dev
if [ "${1:-build}" = package ]; then
    # OpenSSL is compiled, and the licences of libraries are gathered.
    perl -MIPC::Cmd -e 1 2>/dev/null || need perl
    command -v strip >/dev/null || need binutils
    command -v python3 >/dev/null || need python3
fi
if [ "${1:-build}" = test ]; then
    # The tests drive the gateway with client packages for Python, in a virtual environment, and for Node.
    command -v python3 >/dev/null || need python3
    python3 -c 'import ensurepip, venv' 2>/dev/null || need python3-venv
    command -v node >/dev/null || want nodejs
    command -v npm >/dev/null || want npm
    # An origin with a parser of its own, and what docs/from-nginx.md compares with.
    PATH="$PATH:/usr/sbin" command -v nginx >/dev/null || want nginx-light
    # Another such parser, for Debian's own Python.
    /usr/bin/python3 -c 'import h11' 2>/dev/null || want python3-h11
    # The clock is set while streams run.
    ls /usr/lib/*/faketime/libfaketime.so.1 >/dev/null 2>&1 || want libfaketime
    # Limits that gateways share.
    command -v redis-server >/dev/null || want redis-server
    command -v haproxy >/dev/null || want haproxy
    # Packets are lost, in a network namespace.
    PATH="$PATH:/usr/sbin" command -v ip >/dev/null || want iproute2
    PATH="$PATH:/usr/sbin" command -v nft >/dev/null || want nftables
    # A chat page is opened in a browser.
    [ -e /usr/lib/chromium/chromium-headless-shell ] || want chromium-headless-shell
fi

if ! command -v cargo >/dev/null; then
    echo "streamgate: cargo is missing. Install Rust with rustup: https://rustup.rs" >&2
    exit 1
fi
[ ${#packages[@]} -eq 0 ] && [ ${#wanted[@]} -eq 0 ] && exit 0

by_hand() {
    echo "streamgate: $1" >&2
    if [ ${#packages[@]} -eq 0 ]; then
        echo "Some tests will not run without these packages (Debian's names): ${wanted[*]}" >&2
        exit 0
    fi
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

echo "streamgate: installing ${packages[*]} ${wanted[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq </dev/null || by_hand "apt-get update failed."
apt_install() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" </dev/null
}
[ ${#packages[@]} -eq 0 ] || apt_install "${packages[@]}" || by_hand "apt-get install failed."
packages=()
[ ${#wanted[@]} -eq 0 ] || apt_install "${wanted[@]}" || by_hand "apt-get install failed."
