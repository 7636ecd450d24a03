#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright the EventCore authors
#
# Measures what EventCore adds to a program, and writes it between the marks in Documentation/Footprint.md. Linux on
# x86-64 or arm64; minutes, since it builds the Swift module for release.
#
#   scripts/measure-footprint.sh [--check]    the C programs alone, seconds: writes nothing, and fails if a figure is
#                                             missing, if a thread was started, or if the page has another table's head
set -euo pipefail
CDPATH='' cd "$(dirname "$0")/.."

page=Documentation/Footprint.md
runs=21
[ "${1:-}" != --check ] || runs=3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# kB of a file without symbols.
size_of() { strip -s -o "$folder/stripped" "$1"; echo $(( ($(stat -c %s "$folder/stripped") + 512) / 1024 )); }
# The medians of what a program prints.
medians() {
  local i
  for i in $(seq "$runs"); do "$@"; done > "$folder/runs"
  for i in $(seq 6); do
    awk -v column="$i" '{ print $column }' "$folder/runs" | sort -n | sed -n "$((runs / 2 + 1))p"
  done | xargs
}

make -s -j2 install PREFIX="$folder/prefix" CC=gcc CFLAGS=-O2
flags=(-std=c11 -O2 -I"$folder/prefix/include" Tests/Footprint/idle.c)
gcc "${flags[@]}" -o "$folder/c-shared" -L"$folder/prefix/lib" -leventcore -Wl,-rpath,"$folder/prefix/lib"
gcc "${flags[@]}" -o "$folder/c-static" "$folder/prefix/lib/libeventcore.a" -lurcu-bp -lpthread
echo 'int main(void) { return 0; }' | gcc -x c -O2 -o "$folder/empty" -
{
  echo "| Program | stripped, kB | to the first event, µs | memory while idle, kB | after the first event, kB | threads |"
  echo "|---|---:|---:|---:|---:|---:|"
} > "$folder/table"
row() { # NAME KB PROGRAM
  local time idle own used used_own threads
  read -r time idle own used used_own threads < <(medians "$3")
  echo "| $1 | $2 | $time | $idle ($own) | $used ($used_own) | $threads |" | tee -a "$folder/table"
}
row "C, shared library" "$(size_of "$folder/prefix/lib/libeventcore.so") (the library)" "$folder/c-shared"
row "C, static library" "$(($(size_of "$folder/c-static") - $(size_of "$folder/empty"))) (more than an empty program)" "$folder/c-static"
if [ "${1:-}" = --check ]; then
  grep -qxF "$(head -n 1 "$folder/table")" "$page" || { echo "$page has the head of another table: run this without --check." >&2; exit 1; }
  [ "$(grep -cE '^\|[^|]+\|[^|]*[0-9][^|]*\| [0-9]+ \|( [0-9]+ \([0-9]+\) \|){2} 1 \|$' "$folder/table")" -eq 2 ] || {
    echo "A figure is missing, or a C program has a thread that it did not ask for." >&2
    exit 1
  }
  exit
fi

scratch=$PWD/.build-footprint
swift build --package-path Tests/Footprint --scratch-path "$scratch" -c release -j 2 >&2
cp "$scratch/release/footprint" "$folder/swift"
swift build --package-path Tests/Footprint --scratch-path "$scratch-static" -c release -j 2 --static-swift-stdlib >&2
cp "$scratch-static/release/footprint" "$folder/swift-static"
if readelf -d "$folder/swift" | grep -q Foundation; then echo "the Swift program needs Foundation" >&2; exit 1; fi

row "Swift, its library shared" "$(size_of "$folder/swift") (the program)" "$folder/swift"
row "Swift, its library static" "$(size_of "$folder/swift-static") (the program)" "$folder/swift-static"
{
  echo
  echo "$(uname -s) on $(uname -m), $(gcc --version | sed -n '1s/.* //p' | sed 's/^/gcc /'), $(swift --version 2>/dev/null | sed -n 's/.*Swift version \([0-9.]*\).*/Swift \1/p' | head -1); medians of $runs runs."
} >> "$folder/table"

python3 - "$page" "$folder/table" <<'PYTHON'
import sys
page, table = sys.argv[1:]
text = open(page, encoding="utf-8").read()
begin, end = "<!-- measured: begin -->\n", "<!-- measured: end -->"
head, rest = text.split(begin)
open(page, "w", encoding="utf-8").write(head + begin + open(table, encoding="utf-8").read() + end + rest.split(end)[1])
PYTHON
