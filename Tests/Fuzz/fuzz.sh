#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright the EventCore authors
#
# Fuzzes the C interface: calls.c says how, and what must hold. Needs clang with libFuzzer.
#
#   Tests/Fuzz/fuzz.sh [SECONDS] [FILE...]     a minute; with files, those that a run has left are run again
#   Tests/Fuzz/fuzz.sh 150000x                 so many inputs, however busy the machine is: about a minute's
set -euo pipefail
CDPATH='' cd "$(dirname "$0")/../.."
case ${1:-60} in
  *x) limit=-runs=${1%x} ;;
  *) limit=-max_total_time=${1:-60} ;;
esac
shift || true

work=.build/fuzz
mkdir -p "$work/corpus"
# Under this sanitizer the core frees slots and does not use them again, so that it sees a use after the end.
flags=(-fuse-ld=lld -std=gnu11 -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined
  -Iinclude -ISources/CEventCore)
clang "${flags[@]}" -r -nostdlib Tests/Fuzz/*.c -o "$work/fuzzers.o"
# Every public function is called, at least once in the text.
declared=$(clang -E -P -Iinclude include/eventcore/eventcore.h | tr '\n;' ' \n' |
  grep -F 'visibility("default")' | grep -oE '\bevc_[a-z0-9_]+ ?\(' | tr -d ' (' | sort)
called=$(nm -u "$work/fuzzers.o" | grep -oE '\bevc_[a-z0-9_]+' | sort)
[ -n "$declared" ] && ! comm -23 <(echo "$declared") <(echo "$called") | grep . || {
  echo "Tests/Fuzz calls none of these." >&2
  exit 1
}
clang "${flags[@]}" "$work/fuzzers.o" Sources/CEventCore/*/*.c -o "$work/calls" -lurcu-bp -lpthread
if [ $# -gt 0 ]; then
  exec "$work/calls" "$@"
fi
if ! "$work/calls" "$limit" -max_len=2048 -len_control=0 -timeout=20 -artifact_prefix="$work/" \
  -print_final_stats=1 "$work/corpus" >"$work/log" 2>&1; then
  grep -E "ERROR|does not hold|#[0-9]+ |Test unit" "$work/log" | head -40
  exit 1
fi
grep -E "number_of_executed_units|average_exec" "$work/log"
