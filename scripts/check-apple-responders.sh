#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright the EventCore authors
#
# Compiles the module with stand-ins of AppKit, of UIKit and of os (signposts) in its path, and runs a small program of
# each, so that what is behind `canImport` is compiled where none of them exists. Without the C core, which it does not
# touch.
set -euo pipefail
CDPATH='' cd "$(dirname "$0")/.."

if [ "$(uname)" = Darwin ]; then
  echo "the real ones are compiled here"
  exit 0
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mapfile -t sources < <(find Sources/EventCore -name '*.swift')

for kit in AppKit UIKit os; do
  mkdir "$folder/$kit"
  swiftc -swift-version 5 -parse-as-library -emit-module -emit-library -static -module-name "$kit" \
    -emit-module-path "$folder/$kit/$kit.swiftmodule" -o "$folder/$kit/lib$kit.a" \
    "Tests/AppleStandIns/$kit.swift"
  swiftc -swift-version 6 -parse-as-library -wmo -warnings-as-errors -emit-module -emit-library -static \
    -module-name EventCore -package-name eventcore -I "$folder/$kit" \
    -emit-module-path "$folder/$kit/EventCore.swiftmodule" -o "$folder/$kit/libEventCore.a" \
    "${sources[@]}"
  for mode in 5 6; do
    swiftc -swift-version "$mode" -parse-as-library -warnings-as-errors -I "$folder/$kit" -L "$folder/$kit" \
      -lEventCore "-l$kit" -o "$folder/$kit/program" "Tests/AppleStandIns/${kit}Use.swift"
    "$folder/$kit/program"
    echo "$kit, Swift $mode mode: compiles and runs"
  done
done
