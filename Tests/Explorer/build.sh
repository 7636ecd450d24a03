#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright the EventCore authors
#
# Builds the explorer: the core's files as they are, the engine in place of the system, the scenarios.
#
#   Tests/Explorer/build.sh [FOLDER]     .build/explorer by default; the program is FOLDER/explorer
set -euo pipefail
CDPATH='' cd "$(dirname "$0")/../.."
folder=${1:-.build/explorer}
mkdir -p "$folder"

cc=${CC:-cc}
common=(-std=gnu11 -O2 -g -fno-pie -fno-omit-frame-pointer -U_FORTIFY_SOURCE -Wall -Wextra -Werror
  -ITests/Explorer/include -ITests/Explorer -Iinclude -ISources/CEventCore)
# What is explored: each access is announced to the engine, and thread-local variables lie where it finds them. What is
# drained is sorted two envelopes at a time, so that short scenarios come between.
explored=(-fsanitize=thread -fno-builtin -DEVC_SORT_AT_ONCE=2u
  '-D_Thread_local=__attribute__((section("explorer_locals")))'
  -Dmemcpy=explorer_memcpy -Dmemmove=explorer_memmove -Dmemset=explorer_memset
  # Short executions: a scenario fills a segment, a block of timers, a window or a chunk of it, and waits for a place, in
  # a few steps.
  -DEVC_QUEUE_CELLS=4u -DEVC_BOUND_LOOKS=1u -DEVC_TIMER_FIRST_BLOCK=4u -DEVC_WINDOW_FIRST=4u -DEVC_CACHED_CHUNK=2u
  "-DEVC_SLAB_SIZE=((size_t)128 * 1024)" -DEVC_LATEST_HIGH_BITS=0)

# The calls of the system that the engine simulates (engine/pthread.c).
wrapped=$(sed -n 's/^WRAP([^,]*, \([a-z_]*\),.*/\1/p' Tests/Explorer/engine/pthread.c)

sources=(Tests/Explorer/engine/*.c Tests/Explorer/litmus/*.c Tests/Explorer/scenarios/*.c Sources/CEventCore/*/*.c)
make=$folder/objects.mk
{
  echo "all:"
  for source in "${sources[@]}"; do
    [ -e "$source" ] || continue
    [ "$source" = Sources/CEventCore/platform/domain.c ] && continue
    object=${source%.c}
    object=$folder/${object//\//-}.o
    flags=("${common[@]}")
    [[ $source == Tests/Explorer/engine/* ]] || flags+=("${explored[@]}")
    # Each block of a tree by itself, as AddressSanitizer wants it: then the engine sees a use of one that was freed.
    [[ $source == */tree_memory.c ]] && flags+=(-DEVC_ADDRESS_SANITIZER)
    printf 'all: %s\n%s: %s %s\n\t@%s %s -MMD -MP -c -o $@ %s\n-include %s\n' "$object" "$object" "$source" \
      "Tests/Explorer/build.sh" "$cc" "$(printf ' %q' "${flags[@]}")" "$source" "${object%.o}.d"
  done
} >"$make"
make -s -j2 -f "$make" all
objects=$(sed -n 's/^all: //p' "$make")
# A call of the system that nobody simulates would run for real, and no schedule would be the same twice.
harmless='__assert_fail|_GLOBAL_OFFSET_TABLE_|__(start|stop)_.*|sig(fill|del|empty|add)set|str.*|mem.*|sn?printf|abort'
harmless+='|mmap|munmap|madvise|posix_memalign|free|pthread_(cond)?attr_.*'
# What only decides where a thread of the system would run.
harmless+='|getpid|sched_getaffinity|sched_getscheduler|sched_getparam|__sched_cpu.*'
# Only evc_shutdown calls this, which no scenario does.
harmless+='|pthread_key_delete'
# Only what aborts right after it calls this (platform/require.h).
harmless+='|write'
missing=$(nm -u $(grep -v -- -engine- <<<"$objects") | sed -n 's/.* U //p' | sort -u |
  grep -vxFf <(nm $objects | sed -n 's/.* [TDBRVWCtdb] //p') | grep -vxF "$wrapped" | grep -vxE "$harmless" || true)
[ -z "$missing" ] || {
  echo "The engine does not simulate:" $missing >&2
  exit 1
}
$cc -no-pie -o "$folder/explorer" $objects $(sed 's/^/-Wl,--wrap=/' <<<"$wrapped") -lpthread
