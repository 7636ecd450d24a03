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

# search <model> <spin options...>: leaves pan's report in $work/report. $optimize is -O1 where building the search takes
# longer than searching.
search() {
  local model=$PWD/$1.pml
  shift
  (
    cd "$work"
    rm -f pan*
    spin -a "$@" "$model" >spin.out 2>&1 || { cat spin.out; exit 1; }
    cc "$optimize" -w -DSAFETY -DCOLLAPSE -DMEMLIM=2048 -o pan pan.c
    ./pan -m200000 -n >report 2>&1 || true
  )
}

holds() {
  local optimize=-O2
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
  local optimize=-O1
  search "$@"
  # The report also has a line that says that it looked for invalid end states.
  if ! grep -Eq '^pan:[0-9]+: (assertion violated|invalid end state)' "$work/report"; then
    echo "$*: the mutation was NOT found"
    cat "$work/report"
    exit 1
  fi
  echo "$*: found, $(grep -Eo '^pan:[0-9]+: (assertion violated|invalid end state)' "$work/report" | cut -d' ' -f2- | head -1)"
}

holds stream -DPOSTS=2 -DOTHERS=2
holds stream -DPOSTS=4 -DOTHERS=1 -DALONE
for n in '' 2 3 4 5 6 7; do fails stream "-DMUTATE$n" -DPOSTS=3 -DOTHERS=1; done
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
holds shared_latest
for n in '' 2 3 4 5 6; do fails shared_latest "-DMUTATE$n"; done
holds scheduler
holds scheduler -DCLOSE
for n in '' 2 3 4; do fails scheduler "-DMUTATE$n"; done
fails scheduler -DCLOSE -DMUTATE5
holds shared_stack
for n in '' 2 3; do fails shared_stack "-DMUTATE$n"; done
holds shared_queue
holds shared_queue -DPUTS=4 -DCHAIN
for n in '' 2 3; do fails shared_queue "-DMUTATE$n"; done
fails shared_queue -DPUTS=4 -DCHAIN -DMUTATE4
holds shared_wake
holds shared_wake -DRETIRE
holds shared_wake -DSTUCK
for n in '' 2 3 4; do fails shared_wake "-DMUTATE$n"; done
fails shared_wake -DSTUCK -DMUTATE5
fails shared_wake -DSTUCK -DMUTATE7
fails shared_wake -DRETIRE -DMUTATE6
holds tree
for n in '' 2 3 4 5 6 7 8; do fails tree "-DMUTATE$n"; done
