#!/usr/bin/env bash
# Seeds known bugs (tests/mutants/*.patch) one at a time into a copy of the tree, and runs the rows of the fault matrix
# that each patch names in its first line: one of them must fail. NAME runs one of them. The tests are those of this
# tree; only the gateway is the copy's (STREAMGATE_BINARY), so that a bug costs one build of the gateway.
set -euo pipefail
cd "$(dirname "$0")/.."
tree=$PWD/target/mutants/tree
log=$(mktemp)
trap 'rm -f "$log"' EXIT

[[ -d $tree ]] || git worktree add --quiet --detach "$tree" HEAD
git -C "$tree" checkout --quiet --force --detach "$(git rev-parse HEAD)"
if [[ ! -d $tree/target ]]; then
    # What was compiled of others is taken over; links are enough, since cargo writes nothing of it anew.
    mkdir -p "$tree/target/debug"
    cp -al target/debug/deps target/debug/build target/debug/.fingerprint "$tree/target/debug/"
fi

caught=0 all=0 missed=()
for patch in tests/mutants/${1:-*}.patch; do
    name=$(basename "$patch" .patch)
    rows=$(sed -nE '1s/^rows: ([A-Z0-9 ]+)\..*/\1/p' "$patch")
    all=$((all + 1))
    git -C "$tree" checkout --quiet --force .
    git -C "$tree" apply "$PWD/$patch"
    # Built as for tests, and by the smallest of them: so that what was compiled of others fits.
    if ! (cd "$tree" && CARGO_TARGET_DIR=$tree/target cargo test --no-run --test layers) >"$log" 2>&1; then
        tail -20 "$log"
        echo "$name: does not build"
        missed+=("$name")
        continue
    fi
    by=""
    for row in $rows; do
        status=0
        STREAMGATE_BINARY=$tree/target/debug/streamgate ROW=$row scripts/chaos.sh >"$log" 2>&1 || status=$?
        # 2 is a row that there is not, or tests that do not build; anything else is a row that has failed.
        [[ $status -ne 2 ]] || { cat "$log"; exit 2; }
        [[ $status -eq 0 ]] || { by=$row; break; }
    done
    if [[ -n $by ]]; then
        caught=$((caught + 1))
        echo "$name: caught by $by: $(grep -A 1 -m 1 'panicked at' "$log" | tail -1 | sed 's/^ *//' | cut -c 1-120)"
    else
        missed+=("$name")
        echo "$name: NOT CAUGHT by $rows"
    fi
done
echo "$caught of $all seeded bugs caught${missed:+; not: ${missed[*]}}"
[[ ${#missed[@]} -eq 0 ]]
