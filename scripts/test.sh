#!/usr/bin/env bash
# Runs every test. A test that cannot run here says so in a file; they are counted at the end, so that
# none is missed in silence. So are those that waver: see tests/README.md.
set -euo pipefail
# More than so many that fail beside others are no accident, whatever they do alone.
wavering_max=3
log=$(mktemp)
STREAMGATE_NOT_RUN=$(mktemp)
export STREAMGATE_NOT_RUN
trap 'rm -f "$log" "$STREAMGATE_NOT_RUN"' EXIT
# Most tests wait for something: two a core at a time leave neither idle, and no deadline near.
export RUST_TEST_THREADS=${RUST_TEST_THREADS:-$((2 * $(nproc)))}

count() {
    grep -oE "^test result: .* [0-9]+ $1" "$log" | grep -oE "[0-9]+ $1" | awk '{sum += $1} END {print sum + 0}'
}

# Each failed test, behind the binary that has it.
failed_tests() {
    local line binary=
    while IFS= read -r line; do
        case $line in
        *" Running "*"("*")") binary=${line##*\(} binary=${binary%\)} ;;
        "test "*" ... FAILED") line=${line#test } && echo "$binary ${line% ... FAILED}" ;;
        esac
    done <"$log"
}

# Runs each failed test once more, alone, and succeeds where all of them pass.
run_again() {
    local binary name
    while read -r binary name; do
        echo "once more, alone: $name"
        "$binary" --exact "$name" --test-threads 1 </dev/null || return 1
        echo "wavered: $name"
    done < <(failed_tests)
}

status=0
cargo test --no-fail-fast </dev/null 2>&1 | tee "$log" || status=${PIPESTATUS[0]}
passed=$(count passed)
failed=$(count failed)
wavered=0
if [ "$status" -ne 0 ] && [ "$failed" -gt 0 ] && [ "$failed" -le "$wavering_max" ] &&
    [ "$(failed_tests | wc -l)" -eq "$failed" ] && run_again; then
    status=0 wavered=$failed failed=0
fi
sed 's/^/not run: /' "$STREAMGATE_NOT_RUN"
echo "tests not run here: $(wc -l <"$STREAMGATE_NOT_RUN")"
echo "$passed passed, $wavered wavered, $failed failed"
exit "$status"
