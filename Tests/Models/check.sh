#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright the EventCore authors
#
# Searches every model completely, and each of its mutations until the error shows: a model that cannot
# fail proves nothing. Prints one line each; fails on the first surprise. Needs spin and a C compiler.
set -euo pipefail
cd "$(dirname "$0")"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# search <model> <spin options...>: leaves pan's report in $work/report.
search() {
  local model=$PWD/$1.pml
  shift
  (
    cd "$work"
    rm -f pan*
    spin -a "$@" "$model" >spin.out 2>&1 || { cat spin.out; exit 1; }
    cc -O2 -w -DSAFETY -DCOLLAPSE -DMEMLIM=2048 -o pan pan.c
    ./pan -m200000 -n >report 2>&1 || true
  )
}

holds() {
  search "$@"
  if ! grep -q 'errors: 0' "$work/report" ||
    grep -Eq 'max search depth too small|out of memory|truncated|not completed' "$work/report"; then
    echo "$*: FAILED"
    cat "$work/report"
    exit 1
  fi
  echo "$*: holds, $(awk '/states, stored/ {print $1}' "$work/report") states"
}

fails() {
  search "$@"
  if ! grep -Eq 'assertion violated|invalid end state' "$work/report"; then
    echo "$*: the mutation was NOT found"
    cat "$work/report"
    exit 1
  fi
  echo "$*: found, $(grep -Eo 'assertion violated|invalid end state' "$work/report" | head -1)"
}

holds inbox
holds inbox -DCHAIN
fails inbox -DMUTATE
fails inbox -DMUTATE2
holds parker
fails parker -DMUTATE
fails parker -DMUTATE2
holds mailbox -DPOSTS=3
holds mailbox -DPOSTS=4 -DTWO_LANES
for n in '' 2 3 4 5; do fails mailbox "-DMUTATE$n"; done
holds pool
for n in '' 2 3; do fails pool "-DMUTATE$n"; done
holds pump
holds pump -DPOSTERS=3 -DROUNDS=1
holds pump -DCLOSE
for n in '' 2 3 4; do fails pump "-DMUTATE$n"; done
holds latest -DPRODUCERS=2
for n in '' 2 3 4 5 6 7; do fails latest "-DMUTATE$n"; done
holds scheduler
holds scheduler -DCLOSE
for n in '' 2 3 4; do fails scheduler "-DMUTATE$n"; done
fails scheduler -DCLOSE -DMUTATE5
