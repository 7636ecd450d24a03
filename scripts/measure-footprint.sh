#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright the EventCore authors
#
# Measures what EventCore adds to a program, and writes it between the marks in Documentation/Footprint.md. Linux on
# x86-64 or arm64; minutes, since it builds the Swift module for release.
set -euo pipefail
cd "$(dirname "$0")/.."

page=Documentation/Footprint.md
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# kB of a file without symbols.
size_of() { strip -s -o "$folder/stripped" "$1"; echo $(( ($(stat -c %s "$folder/stripped") + 512) / 1024 )); }
# The medians of 21 runs: microseconds to the first event, kB of resident memory, threads.
medians() {
  local i
  for i in $(seq 21); do "$@"; done > "$folder/runs"
  for i in 1 2 3; do awk -v column="$i" '{ print $column }' "$folder/runs" | sort -n | sed -n 11p; done | xargs
}

make -s -j2 install PREFIX="$folder/prefix" CC=gcc CFLAGS=-O2
flags=(-std=c11 -O2 -I"$folder/prefix/include" Tests/Footprint/idle.c)
gcc "${flags[@]}" -o "$folder/c-shared" -L"$folder/prefix/lib" -leventcore -Wl,-rpath,"$folder/prefix/lib"
gcc "${flags[@]}" -o "$folder/c-static" "$folder/prefix/lib/libeventcore.a" -lurcu-bp -lpthread
echo 'int main(void) { return 0; }' | gcc -x c -O2 -o "$folder/empty" -
scratch=$PWD/.build-footprint
swift build --package-path Tests/Footprint --scratch-path "$scratch" -c release -j 2 >&2
cp "$scratch/release/footprint" "$folder/swift"
swift build --package-path Tests/Footprint --scratch-path "$scratch-static" -c release -j 2 --static-swift-stdlib >&2
cp "$scratch-static/release/footprint" "$folder/swift-static"
if readelf -d "$folder/swift" | grep -q Foundation; then echo "the Swift program needs Foundation" >&2; exit 1; fi

{
  echo "| Program | stripped, kB | to the first event, µs | resident memory, kB | threads |"
  echo "|---|---:|---:|---:|---:|"
  row() { # NAME KB PROGRAM
    local name=$1 size=$2
    read -r time memory threads < <(medians "$3")
    echo "| $name | $size | $time | $memory | $threads |"
  }
  row "C, shared library" "$(size_of "$folder/prefix/lib/libeventcore.so") (the library)" "$folder/c-shared"
  row "C, static library" "$(($(size_of "$folder/c-static") - $(size_of "$folder/empty"))) (more than an empty program)" "$folder/c-static"
  row "Swift, its library shared" "$(size_of "$folder/swift") (the program)" "$folder/swift"
  row "Swift, its library static" "$(size_of "$folder/swift-static") (the program)" "$folder/swift-static"
  echo
  echo "$(uname -s) on $(uname -m), $(gcc --version | sed -n '1s/.* //p' | sed 's/^/gcc /'), $(swift --version 2>/dev/null | sed -n 's/.*Swift version \([0-9.]*\).*/Swift \1/p' | head -1); medians of 21 runs."
} > "$folder/table"

python3 - "$page" "$folder/table" <<'PYTHON'
import sys
page, table = sys.argv[1:]
text = open(page, encoding="utf-8").read()
begin, end = "<!-- measured: begin -->\n", "<!-- measured: end -->"
head, rest = text.split(begin)
open(page, "w", encoding="utf-8").write(head + begin + open(table, encoding="utf-8").read() + end + rest.split(end)[1])
PYTHON
cat "$folder/table"
