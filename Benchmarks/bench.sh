#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright the EventCore authors
#
# Builds in release and measures; the figures go to results/latest.json.
#
#   Benchmarks/bench.sh [--quick] [--shape NAME] [--subject NAME] [--payload BYTES] [--output FILE]
#
# A part of the table (--shape, --subject, --payload) is written only where --output says.
set -eu

folder=$(CDPATH='' cd "$(dirname "$0")" && pwd)
output=$folder/results/latest.json
for argument in "$@"; do
  case $argument in
    --shape* | --subject* | --payload* | --output*) output= ;;
  esac
done

EVENTCORE_COMPILER=$(swift --version 2>/dev/null | head -n 1)
EVENTCORE_COMMIT=$(git -C "$folder" describe --always --dirty 2>/dev/null || echo unknown)
export EVENTCORE_COMPILER EVENTCORE_COMMIT

swift build --package-path "$folder" -c release -j "${JOBS:-1}" --product eventcore-benchmarks
program=$(swift build --package-path "$folder" -c release --show-bin-path)/eventcore-benchmarks

mkdir -p "$folder/results"
if [ -n "$output" ]; then
  set -- "$@" --output "$output"
fi
exec "$program" "$@"
