#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright the EventCore authors
#
# The weather network: builds it, starts a server of NATS on a free port of the loopback, and three processes beside it,
# and stops all of them in the end.
#
#   demo.sh [SECONDS]     20 without an argument
#
# DEMO_BUILD: other flags for the build than -c release.
set -euo pipefail
CDPATH='' cd "$(dirname "$0")"

# The three processes, beside the server: this script, called by itself.
if [ "${1:-}" = beside ]; then
  weather=$2 url=$3 seconds=$4
  "$weather" workers "$url" "$seconds" &
  workers=$!
  "$weather" sensors "$url" "$seconds" &
  sensors=$!
  trap 'kill "$workers" "$sensors" 2>/dev/null || true' EXIT
  "$weather" dashboard "$url" "$seconds"
  wait "$workers"
  wait "$sensors"
  exit
fi

./setup.sh
read -ra flags <<< "${DEMO_BUILD:--c release}"
swift build "${flags[@]}" --product eventcore-weather
weather=$(swift build "${flags[@]}" --show-bin-path)/eventcore-weather
./with-server.sh ./demo.sh beside "$weather" URL "${1:-20}"
