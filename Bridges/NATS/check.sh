#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright the EventCore authors
#
# What CI runs of the bridge, in one debug build: warnings as errors, the tests, the documentation, the example; and in
# another one the suites under ThreadSanitizer that take seconds there. Four to six minutes on two cores.
#
# All of them under both sanitizers: SANITIZE_PACKAGE=Bridges/NATS SANITIZE_ARGUMENTS="--traits default"
# scripts/sanitize.sh thread address.
set -euo pipefail
CDPATH='' cd "$(dirname "$0")"
# With tracing, which the tests alone need. SWIFT_ARGUMENTS has more arguments for all builds.
flags=(--traits default,Tracing -Xswiftc -warnings-as-errors)
read -ra more <<<"${SWIFT_ARGUMENTS:-}"
flags+=("${more[@]}")

./setup.sh
swift build --build-tests "${flags[@]}"
swift test --no-parallel --skip-build "${flags[@]}"

docc=$(command -v docc || true)
[ -n "$docc" ] || docc="$(dirname "$(command -v swift)")/docc"
if [ -x "$docc" ]; then
  built=$(swift build "${flags[@]}" --show-bin-path)
  target=$(swiftc -print-target-info | sed -n 's/^ *"triple": "\(.*\)",$/\1/p' | head -1)
  rm -rf .build/documentation
  mkdir -p .build/documentation
  swift symbolgraph-extract -module-name EventCoreNATS -target "$target" -minimum-access-level public \
    -output-dir .build/documentation -I "$built/Modules" -I ../../include \
    -Xcc "-fmodule-map-file=$built/CSwiftRuntime.build/module.modulemap" \
    -Xcc "-fmodule-map-file=Sources/CNATS/module.modulemap"
  "$docc" convert Sources/EventCoreNATS/EventCoreNATS.docc --warnings-as-errors \
    --additional-symbol-graph-dir .build/documentation --fallback-bundle-identifier EventCoreNATS \
    --output-path .build/documentation/EventCoreNATS.doccarchive
else
  echo "check.sh: the toolchain has no docc, so the documentation of the bridge was not checked." >&2
fi

DEMO_BUILD="${flags[*]}" ./demo.sh 4

SANITIZE_PACKAGE=Bridges/NATS \
  SANITIZE_ARGUMENTS="--traits default --filter Coordinator|Request|Tree|Loss|Outbox|PublishSubscribe|Spent|Header|Malice|Version --skip many|hundred|UnderKills|OfStream ${more[*]}" \
  ../../scripts/sanitize.sh thread
