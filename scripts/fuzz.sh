#!/usr/bin/env bash
# Fuzzes every parser of foreign bytes, each for as many seconds as the first argument says (60), or only the targets
# that are named behind it. Inputs that were found are kept in fuzz/corpus; what broke a target is in fuzz/artifacts.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
shift || true
if ! rustup toolchain list 2>/dev/null | grep -q nightly || ! command -v cargo-fuzz >/dev/null; then
    echo "streamgate: without a nightly compiler and cargo-fuzz (cargo install cargo-fuzz --locked) inputs are made by chance" >&2
    STREAMGATE_FUZZ_SECONDS=$seconds exec cargo test --test fuzz -- --nocapture --test-threads 1
fi
targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(cargo +nightly fuzz list)
for target in "${targets[@]}"; do
    mkdir -p "fuzz/corpus/$target"
    # No sanitizer: the crate has no unsafe code, and without one each run sees several times as many inputs.
    cargo +nightly fuzz run --sanitizer none "$target" "fuzz/corpus/$target" "fuzz/seeds/$target" -- \
        -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -max_len=4096 -print_final_stats=1
done
