#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright the EventCore authors
#
# Compiles the C core for arm64 and runs its suite and the C program under emulation, with pages of 4 KiB, and the
# program with 16 and 64 KiB. On Debian and its kin; installs the compiler, the emulator and liburcu (needs root), and
# does no more with --install.
#
# What this shows: that it compiles there, calls the system rightly, and assumes nothing of x86 that the compiler or
# an assertion would find. What it does not show is weak memory: what is emulated runs in this machine's order. That
# is for the explorer.
set -euo pipefail
CDPATH='' cd "$(dirname "$0")/.."

fail() { printf 'check-arm64: %s\n' "$*" >&2; exit 1; }
. scripts/root.sh

has_all() {
  command -v aarch64-linux-gnu-gcc >/dev/null && command -v qemu-aarch64 >/dev/null &&
    [ -e /usr/lib/aarch64-linux-gnu/liburcu-bp.a ]
}

if [ "$(uname -m)" = aarch64 ]; then
  echo "check-arm64: this machine is one; its own tests are run here"
  exit 0
fi
if ! has_all; then
  command -v apt-get >/dev/null || fail "this needs Debian's cross compiler and packages for arm64"
  as_root "dpkg --add-architecture arm64"
  apt_install --no-install-recommends gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user liburcu-dev liburcu-dev:arm64
  has_all || fail "apt-get has not installed what it was asked for"
fi
[ "${1:-}" != --install ] || exit 0

build=.build-arm64
mkdir -p "$build/core" "$build/suite"
# Static, so that the emulator needs no other system's folders.
compiler=(aarch64-linux-gnu-gcc -std=gnu11 -Iinclude -ISources/CEventCore)
objects() { # FOLDER FLAGS... -- SOURCES...
  local folder=$1 flags=()
  shift
  while [ "$1" != -- ]; do flags+=("$1"); shift; done
  shift
  printf '%s\n' "$@" | xargs -P "$(getconf _NPROCESSORS_ONLN)" -I '{}' sh -c \
    'output=$1/$(echo "$2" | tr / _).o; shift; source=$1; shift; exec "$@" -c -o "$output" "$source"' \
    sh "$folder" '{}' "${compiler[@]}" "${flags[@]}"
}
rm -f "$build"/*/*.o
objects "$build/core" -O2 -Wall -Wextra -Werror -- Sources/CEventCore/*/*.c
# Without optimization its long tests do a tenth, which is what emulation has time for.
objects "$build/suite" -O0 -Wno-unused-result -ITests/CEventCoreSuite/include -- Tests/CEventCoreSuite/*.c Tests/CProgram/run_suite.c
"${compiler[@]}" -O2 -static -o "$build/program" Tests/CProgram/main.c "$build"/core/*.o -lurcu-bp -lpthread
"${compiler[@]}" -static -o "$build/run-suite" "$build"/core/*.o "$build"/suite/*.o -lurcu-bp -lpthread

for page in 4096 16384 65536; do
  echo "== the C program, pages of $page bytes"
  timeout 60 qemu-aarch64 -p "$page" "$build/program"
done
echo "== the C suite"
# But for children of fork: the emulator's own assertions fail in those that start threads (seen with 7.2).
timeout 300 qemu-aarch64 "$build/run-suite" -fork | tee "$build/suite.log" | grep -v '^ok' || true
tail -n 1 "$build/suite.log" | grep -q ' 0 failed$' || fail "the suite failed, or did not end: $build/suite.log"
