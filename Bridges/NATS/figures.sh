#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright the EventCore authors
#
# The figures of the bridge beside those of the client in C alone, over a server that it starts on a free port of the
# loopback: eventcore-nats-figures.
#
#   figures.sh [EVENTS]     200000 without an argument
set -euo pipefail
CDPATH='' cd "$(dirname "$0")"

./setup.sh
swift build -c release --product eventcore-nats-figures
figures=$(swift build -c release --show-bin-path)/eventcore-nats-figures
./with-server.sh "$figures" URL "${1:-200000}"
