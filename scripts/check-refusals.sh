#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright the EventCore authors
#
# Compiles the programs of Tests/Refusals in Swift 6 mode against the built module: each has to be refused for
# just the reasons that its comments `expected-error` give, and those without any have to compile.
set -euo pipefail
CDPATH='' cd "$(dirname "$0")/.."

# As the other checks, so that nothing is compiled anew.
. scripts/traits.sh
swift build "${all_traits[@]}" --target EventDrivenSwift >/dev/null
modules=$(swift build "${all_traits[@]}" --show-bin-path)
flags=(-swift-version 6 -parse-as-library -I "$modules/Modules" -I include
  -Xcc "-fmodule-map-file=$modules/CSwiftRuntime.build/module.modulemap")

failed=0
for program in Tests/Refusals/*.swift; do
  read -ra own < <(sed -n 's|^// flags: ||p' "$program"; echo)
  if ! swiftc -frontend -emit-sil -verify -verify-ignore-unrelated "${flags[@]}" "${own[@]}" \
    -module-name Refused "$program" -o /dev/null; then
    failed=1
  fi
done
if [ "$failed" -ne 0 ]; then
  echo "Tests/Refusals: what the compiler says is not what the programs expect; see above." >&2
  exit 1
fi
printf 'Tests/Refusals: %s programs, each as it says.\n' "$(find Tests/Refusals -name '*.swift' | wc -l)"
