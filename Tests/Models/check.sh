#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright the EventCore authors
#
# Searches every model completely, and each of its mutations until an error is found: a model that cannot
# fail proves nothing. Runs as many searches at a time as there are processors, prints a line for each, in the
# order below, and fails if a result is not the expected one. Needs spin and a C compiler.
#
#   Tests/Models/check.sh [MODEL]...     those models alone
set -uo pipefail
CDPATH='' cd "$(dirname "$0")"

# Clang builds the mutations in a third of gcc's time, which is most of what they cost.
compiler=$(command -v clang || echo cc)
work=$(mktemp -d)
# If this script ends early, its searches end too.
end_tree() {
  local child
  for child in $(pgrep -P "$1"); do end_tree "$child"; done
  kill "$1" 2>/dev/null
}
stop() {
  local running
  for running in $(jobs -pr); do end_tree "$running"; done
  rm -rf "$work"
}
trap stop EXIT
trap 'exit 130' INT TERM

at_once=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
only=" $* "
count=0
printed=0
status=0

# search <folder> <optimization> <model> <spin options...>: leaves pan's report in <folder>/report.
search() {
  local folder=$1 optimize=$2 model=$PWD/$3.pml
  shift 3
  mkdir "$folder"
  (
    cd "$folder"
    spin -a "$@" "$model" >report 2>&1 && "$compiler" "$optimize" -w -DSAFETY -DMEMLIM=2048 -o pan pan.c >>report 2>&1 || exit
    ./pan -m200000 -n >report 2>&1
  )
}

check_holds() { # FOLDER MODEL OPTIONS...
  local report=$1/report
  search "$1" -O2 "${@:2}"
  if ! grep -q 'errors: 0' "$report" ||
    grep -Eq 'max search depth too small|out of memory|truncated|not completed' "$report"; then
    echo "${*:2}: FAILED"
    cat "$report"
    return 1
  fi
  echo "${*:2}: holds, $(awk '/states, stored/ {print $1}' "$report") states"
}

check_fails() { # FOLDER MODEL OPTIONS...
  local report=$1/report
  # -O0, since building the search takes longer than searching.
  search "$1" -O0 "${@:2}"
  # The report also contains a line that says that it searched for invalid end states.
  if ! grep -Eq '^pan:[0-9]+: (assertion violated|invalid end state)' "$report"; then
    echo "${*:2}: the mutation was NOT found"
    cat "$report"
    return 1
  fi
  echo "${*:2}: found, $(grep -Eo '^pan:[0-9]+: (assertion violated|invalid end state)' "$report" | cut -d' ' -f2- | head -1)"
}

# Prints the finished lines, up to the first search that has not finished.
print_done() {
  while [ -e "$work/$printed.status" ]; do
    cat "$work/$printed.line"
    [ "$(cat "$work/$printed.status")" = 0 ] || status=1
    printed=$((printed + 1))
  done
}

# Begins a search as soon as a processor is free. Its line goes to a file of its own, so that the order is kept.
begin() { # holds|fails MODEL OPTIONS...
  local number=$((count++))
  while [ "$(jobs -pr | wc -l)" -ge "$at_once" ]; do
    wait -n
    print_done
  done
  (
    "check_$1" "$work/$number" "${@:2}" >"$work/$number.line"
    echo $? >"$work/$number.done"
    rm -rf "${work:?}/$number"
    # Last, and atomically: it exists only when the line is complete.
    mv "$work/$number.done" "$work/$number.status"
  ) &
}

holds() { [[ $only == "  " || $only == *" $1 "* ]] && begin holds "$@"; }
fails() { [[ $only == "  " || $only == *" $1 "* ]] && begin fails "$@"; }

holds parker
for n in '' 2 3 4 5 6; do fails parker "-DMUTATE$n"; done
holds reclaimer
for n in '' 2 3 4; do fails reclaimer "-DMUTATE$n"; done
holds slab
holds slab -DPER_SLAB=1
for n in '' 2 3 4 6 7 8 9; do fails slab "-DMUTATE$n"; done
fails slab -DSEGMENTS=3 -DPER_SLAB=1 -DTAKES=9 -DTRIMS=0 -DMUTATE5
fails slab -DPER_SLAB=1 -DMUTATE10
holds trim
for n in '' 2 3 4 5 6 7; do fails trim "-DMUTATE$n"; done
holds route_cache -DROUNDS=1
holds route_cache -DREADERS=1 -DCHANGES=3
holds route_cache -DREADERS=1 -DNESTED
for n in '' 2 3 4 6; do fails route_cache "-DMUTATE$n"; done
fails route_cache -DREADERS=1 -DNESTED -DMUTATE5
holds mailbox
holds mailbox -DSTACKS=2
holds mailbox -DPOSTS=4 -DLANES=1
holds mailbox -DBATCH -DLANES=2
holds mailbox -DCLOSE -DLANES=2 -DPOSTS=2
holds mailbox -DDRAIN -DLANES=2 -DPOSTS=2
holds mailbox -DRELEASE -DLANES=2
for n in '' 2 3 4 5 6 7 9 10 12 13 14 25; do fails mailbox "-DMUTATE$n"; done
fails mailbox -DPOSTS=4 -DLANES=1 -DMUTATE11
fails mailbox -DPOSTS=4 -DLANES=2 -DSTACKS=2 -DMUTATE24
for n in 8 10; do fails mailbox -DSTACKS=2 "-DMUTATE$n"; done
fails mailbox -DBATCH -DSTACKS=2 -DMUTATE15
for n in 16 17; do fails mailbox -DBATCH "-DMUTATE$n"; done
for n in 18 19 20 22; do fails mailbox -DCLOSE "-DMUTATE$n"; done
fails mailbox -DDRAIN -DMUTATE21
fails mailbox -DRELEASE -DMUTATE23
holds pump
holds pump -DPOSTERS=3 -DROUNDS=1
holds pump -DCLOSE
for n in '' 2 3 4; do fails pump "-DMUTATE$n"; done
holds latest
holds latest -DPRODUCERS=3 -DROUNDS=1
holds latest -DOTHERS=1 -DCLOSE
for n in '' 2 3 4 5 6 7 8 9; do fails latest "-DMUTATE$n"; done
fails latest -DOTHERS=1 -DCLOSE -DMUTATE10
holds shared_latest -DOTHERS=1
holds shared_latest -DPRODUCERS=3 -DROUNDS=1 -DTAKERS=1
for n in '' 2 3 4 5 6 7 8 9; do fails shared_latest -DOTHERS=1 "-DMUTATE$n"; done
holds scheduler
holds scheduler -DCLOSE
for n in '' 2 3; do fails scheduler "-DMUTATE$n"; done
fails scheduler -DCLOSE -DMUTATE4
holds timer_cancel
for n in '' 2 3 4 5; do fails timer_cancel "-DMUTATE$n"; done
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
for n in '' 2 3 4 5 6 7 8 9 10 11 12 13; do fails tree "-DMUTATE$n"; done
holds tree_wait
holds tree_wait -DFENCE
for n in '' 2 3 4 5 6 7 8 9 10 11; do fails tree_wait "-DMUTATE$n"; done

wait
print_done
if [ "$count" -eq 0 ]; then
  echo "There is no model of that name: $*" >&2
  exit 2
elif [ "$printed" -lt "$count" ]; then
  echo "Search $((printed + 1)) of $count was ended from outside." >&2
  exit 1
fi
exit "$status"
