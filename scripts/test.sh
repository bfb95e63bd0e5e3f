#!/usr/bin/env bash
# Runs every test. A test that cannot run here says so in a file; they are counted at the end, so that
# none is missed in silence.
set -euo pipefail
log=$(mktemp)
STREAMGATE_NOT_RUN=$(mktemp)
export STREAMGATE_NOT_RUN
trap 'rm -f "$log" "$STREAMGATE_NOT_RUN"' EXIT
# Most tests wait for something: two a core at a time leave neither idle, and no deadline near.
export RUST_TEST_THREADS=${RUST_TEST_THREADS:-$((2 * $(nproc)))}
status=0
cargo test --no-fail-fast </dev/null 2>&1 | tee "$log" || status=${PIPESTATUS[0]}
passed=$(grep -oE '^test result: .* [0-9]+ passed' "$log" | grep -oE '[0-9]+ passed' | awk '{sum += $1} END {print sum + 0}')
failed=$(grep -oE '^test result: .* [0-9]+ failed' "$log" | grep -oE '[0-9]+ failed' | awk '{sum += $1} END {print sum + 0}')
sed 's/^/not run: /' "$STREAMGATE_NOT_RUN"
echo "tests not run here: $(wc -l <"$STREAMGATE_NOT_RUN")"
echo "$passed passed, $failed failed"
exit "$status"
