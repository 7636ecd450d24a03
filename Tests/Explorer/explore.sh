#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright the EventCore authors
#
# Explores all scenarios, as many at a time as there are processors; prints a line for each, and the schedule of what
# fails. Each has so much processor time: what is found does not depend on what else the machine does.
#
#   Tests/Explorer/explore.sh            about nine minutes on two processors that do nothing else
#   EXPLORE_SHORT=1 ...                  about two
#   EXPLORE_SEED=N ...                   other schedules; 1 by default
set -euo pipefail
CDPATH='' cd "$(dirname "$0")/../.."

Tests/Explorer/build.sh
explorer=.build/explorer/explorer
seed=${EXPLORE_SEED:-1}
if [ -n "${EXPLORE_SHORT:-}" ]; then litmus=0.3 scenario=1; else litmus=1 scenario=4; fi
jobs=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)

# The scenarios first: they take longer.
{
  "$explorer" --list | sed -n "s/^\([a-z_0-9]*\)$/--seconds $scenario --scenario \1/p"
  "$explorer" --list | sed -n "s/^\([a-z_0-9]*\) litmus$/--seconds $litmus --scenario \1/p"
} | xargs -P "$jobs" -L 1 "$explorer" --processor-time --seed "$seed" ||
  { echo "Not all hold: look for FAILED above." >&2; exit 1; }
