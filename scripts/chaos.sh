#!/usr/bin/env bash
# Runs the rows of the fault matrix (tests/chaos.rows), each on its own, and keeps the score: faults that struck, and
# tokens on which the client and its engine agree. ROW=B4 runs one row (ROW="B4 C1" several) and shows what happened
# when; FULL=1 runs the long rows too, and repeats each deed as often as the matrix says.
set -euo pipefail
cd "$(dirname "$0")/.."
table=tests/chaos.rows
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export STREAMGATE_SCORE=$dir/score STREAMGATE_NOT_RUN=$dir/not_run
export RUST_TEST_THREADS=${RUST_TEST_THREADS:-$((2 * $(nproc)))}
[[ -z ${FULL:-} ]] || export STREAMGATE_FULL=1

# Lines of the table, without comments and without what is too long.
lines() { awk -v full="${FULL:-}" '!/^#/ && NF && (full || $4 != "full")' "$table"; }
rows=$(lines | awk -v wanted="${ROW:-}" '
    BEGIN { count = split(toupper(wanted), list, /[ ,]+/); for (i in list) asked[list[i]] }
    wanted == "" || toupper($1) in asked { if (!seen[$1]++) print $1 }')
[[ -n $rows ]] || { echo "no such row: ${ROW:-}; the rows are $(lines | awk '!seen[$1]++ {print $1}' | paste -sd' ')" >&2; exit 2; }

lines_of() { lines | awk -v row="$1" '$1 == row'; }
binaries=$(for row in $rows; do lines_of "$row"; done | awk '{split($2, place, "/"); print place[1]}' | sort -u)
echo "building the tests (minutes, the first time)" >&2
# shellcheck disable=SC2046  # one option a binary
cargo test --no-run $(printf -- '--test %s ' $binaries) 2>"$dir/build" || { cat "$dir/build" >&2; exit 2; }
binary() { sed -nE "s|.*Executable tests/$1(\.rs\|/main\.rs) \((.*)\)|\2|p" "$dir/build"; }
# The sum of a field of all lines of a file of scores.
sum() { { grep -oE "\"$2\":[0-9.]+" "$1" || true; } | awk -F: '{sum += $2} END {printf "%d", sum}'; }

# One test binary of a row, with those of its tests that the row names. None at all would pass as well.
run() {
    local names status=0
    mapfile -t names < <(lines_of "$1" | awk -v binary="$2" '{split($2, place, "/")} place[1] == binary {gsub(/\*/, "", $3); print $3}')
    "$(binary "$2")" "${names[@]}" </dev/null >"$dir/log" 2>&1 || status=$?
    passed=$((passed + $(grep -c '^test .* \.\.\. ok$' "$dir/log" || true)))
    cat "$dir/log" >>"$dir/row.log"
    return $status
}

show_timeline() {
    while IFS= read -r line; do
        grep -oE '"test":"[^"]*"' <<<"$line" | sed -E 's/.*:"(.*)"/   \1/'
        sed -E 's/.*"timeline":\[(.*)\].*/\1/; s/^\[//; s/\](,\[)?$//; s/\],\[/\n/g' <<<"$line" |
            sed -E 's/\\"/'"'"'/g' | awk -F, 'NF > 1 {text = $0; sub(/^[^,]*,/, "", text); gsub(/^"|"$/, "", text); printf "   %9.1f ms  %s\n", $1, text}'
    done <"$1"
}

status=0 total_faults=0 total_tokens=0 total_exchanges=0 good=0 all=0 spared=0 settled=0
began=$SECONDS
for row in $rows; do
    : >"$STREAMGATE_SCORE"; : >"$STREAMGATE_NOT_RUN"; : >"$dir/row.log"
    passed=0 verdict=ok start=$(date +%s%N)
    for name in $(lines_of "$row" | awk '{split($2, place, "/"); print place[1]}' | sort -u); do
        run "$row" "$name" || verdict=FAILED
    done
    seconds=$(awk -v ns=$(($(date +%s%N) - start)) 'BEGIN {printf "%.1f", ns / 1e9}')
    faults=$(sum "$STREAMGATE_SCORE" faults) tokens=$(sum "$STREAMGATE_SCORE" tokens)
    exchanges=$(sum "$STREAMGATE_SCORE" exchanges) missing=$(wc -l <"$STREAMGATE_NOT_RUN")
    if [[ $verdict == ok && $faults == 0 ]]; then
        # Where the machine cannot do it nothing is proven, and nothing has failed.
        [[ $missing -gt 0 ]] && verdict="not run" || verdict="NO SCORE"
    fi
    printf '%-4s %-8s %6s s  %3d tests  %6d faults  %7d exchanges  %8d tokens\n' \
        "$row" "$verdict" "$seconds" "$passed" "$faults" "$exchanges" "$tokens"
    sed 's/^/     not run: /' "$STREAMGATE_NOT_RUN"
    [[ -z ${ROW:-} ]] || show_timeline "$STREAMGATE_SCORE"
    all=$((all + 1)) total_faults=$((total_faults + faults))
    case $verdict in
    ok) good=$((good + 1)) survived=$((${survived:-0} + faults)) total_tokens=$((total_tokens + tokens)) \
        total_exchanges=$((total_exchanges + exchanges)) settled=$((settled + $(grep -c '"settled":true' "$STREAMGATE_SCORE" || true))) ;;
    "not run") spared=$((spared + 1)) ;;
    *) status=1; grep -E 'panicked at|^not within|FAILED' -A 3 "$dir/row.log" | sed 's/^/     /' | head -40 ;;
    esac
done
echo
echo "score: $good of $all rows ($spared not run here), ${survived:-0} of $total_faults faults survived," \
    "$total_tokens tokens proven at both ends in $total_exchanges exchanges; $settled times all invariants held; $((SECONDS - began)) s"
exit $status
