#!/usr/bin/env bash
# Runs every test. A test that cannot run here prints a line "not run: NAME: why"; they are counted
# at the end, so that none is missed in silence.
set -euo pipefail
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
cargo test --no-fail-fast -- --show-output </dev/null 2>&1 | tee "$log" || status=${PIPESTATUS[0]}
passed=$(grep -oE '^test result: .* [0-9]+ passed' "$log" | grep -oE '[0-9]+ passed' | awk '{sum += $1} END {print sum + 0}')
failed=$(grep -oE '[0-9]+ failed;' "$log" | awk '{sum += $1} END {print sum + 0}')
not_run=$(grep -c '^not run: ' "$log" || true)
echo "$passed passed, $failed failed"
echo "tests not run here: $not_run"
exit "$status"
