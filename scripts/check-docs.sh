#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright the EventCore authors
#
# Builds the documentation of the Swift modules with DocC, warnings as errors: dead links, ambiguous names,
# parameters that are not described. Needs the toolchain's docc; says so where there is none.
set -euo pipefail
CDPATH='' cd "$(dirname "$0")/.."

docc=$(command -v docc || true)
[ -n "$docc" ] || docc="$(dirname "$(command -v swift)")/docc"
[ -x "$docc" ] || {
  echo "scripts/check-docs.sh: the toolchain has no docc, so the documentation was not checked." >&2
  exit 0
}

. scripts/traits.sh
modules=(EventCore EventCoreRecording EventCoreTesting EventDrivenSwift EventsTree Coordinate "${server_modules[@]}")
swift build "${all_traits[@]}" >/dev/null
built=$(swift build "${all_traits[@]}" --show-bin-path)
target=$(swiftc -print-target-info | sed -n 's/^ *"triple": "\(.*\)",$/\1/p' | head -1)
work=.build/documentation
rm -rf "$work"

failed=0
for module in "${modules[@]}"; do
  mkdir -p "$work/$module"
  # As a documentation host does: the module's own symbols, and what it adds to those of others.
  swift symbolgraph-extract -module-name "$module" -target "$target" -minimum-access-level public \
    -emit-extension-block-symbols -output-dir "$work/$module" -I "$built/Modules" -I include \
    -Xcc "-fmodule-map-file=$built/CSwiftRuntime.build/module.modulemap"
  if ! "$docc" convert "Sources/$module/$module.docc" --warnings-as-errors \
    --additional-symbol-graph-dir "$work/$module" --fallback-bundle-identifier "$module" \
    --output-path "$work/$module.doccarchive"; then
    failed=1
  fi
done
[ "$failed" -eq 0 ] || { echo "scripts/check-docs.sh: what DocC says above is to be mended." >&2; exit 1; }
echo "documentation: ${#modules[@]} modules without a warning"
