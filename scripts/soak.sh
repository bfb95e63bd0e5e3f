#!/usr/bin/env bash
# Random faults under mixed load, for T (as 90s, 10m, 24h; 10m without). A run prints its seed; SEED repeats its faults.
set -euo pipefail
cd "$(dirname "$0")/.."
T=${T:-10m}
case $T in
*h) seconds=$((${T%h} * 3600)) ;;
*m) seconds=$((${T%m} * 60)) ;;
*s) seconds=${T%s} ;;
*) seconds=$T ;;
esac
export STREAMGATE_SOAK=$seconds
[[ -z ${SEED:-} ]] || export STREAMGATE_SEED=$SEED
exec cargo test --test faults_fleet -- --ignored --exact --nocapture soak::g18_soak
