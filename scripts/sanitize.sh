#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright the EventCore authors
#
# The tests in their short form: `core` is the C suite under ThreadSanitizer, under AddressSanitizer, and, in full and with
# the layout that the latter does not have, under UndefinedBehaviorSanitizer, and the owners of C++ under the first two;
# `thread` and `address` (with leaks) are all others.
# Each has a build folder of its own. Nothing is suppressed but four leaks and a race, which are not ours and are explained
# below.
#
#   scripts/sanitize.sh [core|thread|address]...
#
# SANITIZE_PACKAGE names the folder of another package than the repository's, such as Bridges/NATS, and
# SANITIZE_ARGUMENTS has more arguments of swift test.
set -euo pipefail
CDPATH='' cd "$(dirname "$0")/.."

export EVENTCORE_SHORT_TESTS=1 EVENTCORE_SANITIZED=1
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

# A continuation that is resumed before its task awaits it: the standard library's function that resumes is compiled into
# our code and reads from the task's frame, in which the task writes on, in whatever it calls next. The atomic operations
# that order the two are in the runtime, which this sanitizer does not see. A program of that library alone shows it. Only
# races whose innermost function is the one that resumes are named: it touches nothing but the continuation.
printf 'race_top:sScc6resume9returning\n' > "$races"

thread_options="halt_on_error=1 abort_on_error=1 die_after_fork=0 allocator_may_return_null=1"
address_options="detect_leaks=1 detect_stack_use_after_return=0 allocator_may_return_null=1"

run() { # NAME EXTRA...
  local name=$1
  shift
  echo "== $name"
  local package=${SANITIZE_PACKAGE:-.} more
  read -ra more <<<"${SANITIZE_ARGUMENTS:-}"
  scripts/test.sh --package-path "$package" --scratch-path "$package/.build-$name" -Xswiftc -use-ld=lld \
    --skip CEventCoreTests "$@" "${more[@]}"
}

# The C suite, which waits more than it works: three at a time.
core() {
  local runtime suite program status=0
  # The toolchain's ThreadSanitizer refers to libdispatch.
  runtime=$(dirname "$(readlink -f "$(command -v swift)")")/../lib/swift/linux
  mkdir -p .build-core
  local -A flags=([thread]="-O1 -fsanitize=thread -L$runtime -ldispatch -lBlocksRuntime -Wl,-rpath,$runtime"
    [address]="-O1 -fsanitize=address,undefined" [undefined]="-O1 -fsanitize=undefined") processes=()
  for suite in "${!flags[@]}"; do
    clang -std=gnu11 -g -fno-sanitize-recover=undefined -fuse-ld=lld \
      -Iinclude -ISources/CEventCore -ITests/CEventCoreSuite/include \
      Sources/CEventCore/*/*.c Tests/CEventCoreSuite/*.c Tests/CProgram/run_suite.c \
      -o ".build-core/$suite" ${flags[$suite]} -lurcu-bp -lpthread
    TSAN_OPTIONS="$thread_options" ASAN_OPTIONS="$address_options" UBSAN_OPTIONS="print_stacktrace=1" \
      ".build-core/$suite" >".build-core/$suite.log" 2>&1 &
    processes[$suite]=$!
  done
  # The owners of C++, where two threads use one.
  for suite in thread address; do
    for program in owners lifetimes; do
      clang++ -g -fno-sanitize-recover=undefined -fuse-ld=lld -Iinclude -ISources/CEventCore \
        -x c Sources/CEventCore/*/*.c -x c++ "Tests/CProgram/$program.cpp" \
        -o ".build-core/$program-$suite" ${flags[$suite]} -lurcu-bp -lpthread
      TSAN_OPTIONS="$thread_options" ASAN_OPTIONS="$address_options" ".build-core/$program-$suite" || status=1
    done
  done
  for suite in "${!flags[@]}"; do
    echo "== core, $suite"
    wait "${processes[$suite]}" || status=1
    grep -v '^ok ' ".build-core/$suite.log" || status=1
  done
  return "$status"
}

for kind in "${@:-core thread address}"; do
  for name in $kind; do
    case $name in
      core) core ;;
      thread)
        TSAN_OPTIONS="$thread_options suppressions=$races" run thread --sanitize=thread
        ;;
      address)
        ASAN_OPTIONS="$address_options" \
          LSAN_OPTIONS="suppressions=$suppressions print_suppressions=0" run address --sanitize=address
        ;;
      *)
        echo "sanitize.sh knows core, thread and address, not '$name'" >&2
        exit 2
        ;;
    esac
  done
done
