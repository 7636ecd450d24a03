#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright the EventCore authors
#
# All tests under ThreadSanitizer and AddressSanitizer with leaks, in their short form, and the C suite under
# UndefinedBehaviorSanitizer. Each has a build folder of its own. Nothing is suppressed but three leaks and a race that
# are not ours and are named below.
#
#   scripts/sanitize.sh [thread|address|undefined]...
#
# SANITIZE_PACKAGE names the folder of another package than the repository's, such as Bridges/NATS, and
# SANITIZE_ARGUMENTS has more arguments of swift test.
set -euo pipefail
cd "$(dirname "$0")/.."

export EVENTCORE_SHORT_TESTS=1
# What a sanitizer finds ends the process with a report of its own. The Swift runtime would add a backtrace first, and
# waits for ever for threads that the sanitizer has stopped.
export SWIFT_BACKTRACE=enable=no
# XCTest, which hosts the tests, leaks its own test list; the Swift runtime keeps metadata in caches that
# the leak checker cannot follow. libdispatch keeps the continuations that a thread has used in a list of that
# thread, in its thread-local storage, for the next time: 64 bytes each, emptied. Now and then (once in some
# whole runs, never in a program of plain queues and tasks) the checker finds one such list unreachable at the
# exit, with nothing of ours in it. Only that function is named, and in full: a queue that we lost with work in
# it still fails the run by itself, though what waits there does not show. And an object's table of weak references is
# named by the object in a form that the checker does not follow: of an object that lives to the exit, whose last weak
# reference is gone, the table seems lost. An object that we lost is still reported. None of the names occurs in EventCore.
suppressions=$(mktemp)
races=$(mktemp)
trap 'rm -f "$suppressions" "$races"' EXIT
printf 'leak:XCTest\nleak:libXCTest\nleak:swift_getGenericMetadata\nleak:^_dispatch_continuation_alloc_from_heap$\nleak:formWeakReference\n' > "$suppressions"

# A continuation that is resumed before its task awaits it: the standard library's function, which is compiled into our
# code, writes on into its frame, after the resuming thread has read from there. The atomic operations that order the two
# are in the runtime, which this sanitizer does not see. Only races whose innermost function is that one are named.
printf 'race_top:ss22withUnsafeContinuation9isolation\n' > "$races"

run() { # NAME EXTRA...
  local name=$1
  shift
  echo "== $name"
  local package=${SANITIZE_PACKAGE:-.} more
  read -ra more <<<"${SANITIZE_ARGUMENTS:-}"
  scripts/test.sh --package-path "$package" --scratch-path "$package/.build-$name" -Xswiftc -use-ld=lld "$@" "${more[@]}"
}

for kind in "${@:-thread address undefined}"; do
  for name in $kind; do
    case $name in
      thread)
        TSAN_OPTIONS="halt_on_error=1 abort_on_error=1 die_after_fork=0 allocator_may_return_null=1 suppressions=$races" run thread --sanitize=thread
        ;;
      address)
        ASAN_OPTIONS="detect_leaks=1 detect_stack_use_after_return=0 allocator_may_return_null=1" \
          LSAN_OPTIONS="suppressions=$suppressions print_suppressions=0" run address --sanitize=address
        ;;
      undefined)
        # The Swift compiler has no such mode, and Swift no such behaviour: the C core and its suite.
        echo "== undefined"
        mkdir -p .build-undefined
        clang -std=gnu11 -O1 -g -fsanitize=undefined -fno-sanitize-recover=undefined \
          -Iinclude -ISources/CEventCore -ITests/CEventCoreSuite/include -fuse-ld=lld \
          Sources/CEventCore/*/*.c Tests/CEventCoreSuite/*.c Tests/CProgram/run_suite.c \
          -o .build-undefined/suite -lurcu-bp -lpthread
        UBSAN_OPTIONS="halt_on_error=1 print_stacktrace=1" .build-undefined/suite
        ;;
      *)
        echo "sanitize.sh knows thread, address and undefined, not '$name'" >&2
        exit 2
        ;;
    esac
  done
done
