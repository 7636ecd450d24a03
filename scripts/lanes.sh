# SPDX-License-Identifier: MIT
# Copyright the EventCore authors
#
# Read by .ci/run, which runs its steps with it: one after the other, or in lanes, which are side by side.
#
#   step NAME COMMAND [ARGUMENT]...    says how long it took, and what it said, when it has ended; ends the lane if it
#                                      has failed
#   lanes LANE...                      runs `.ci/run LANE` for each. The first that fails stops the others, and what its
#                                      step said is the last that is printed. Nothing is left running
#
# While a step runs, .build-ci/LANE.log has what it says. Needs Linux: a lane is a session of its own, since the package
# manager starts what it runs in process groups of their own.
if [ -z "${LANE_LOGS:-}" ]; then
  export LANE_LOGS=$PWD/.build-ci
  rm -rf "$LANE_LOGS"
  mkdir "$LANE_LOGS"
fi

step() { # NAME COMMAND...
  local name=$1 log=$LANE_LOGS/$LANE.log TIMEFORMAT='%0R s, of processor time %0U s + %0S s' took status
  shift
  # Not `||`, in which a function of several commands would go on after one that fails.
  set +e
  took=$({ time { (set -e; "$@") >"$log" 2>&1 </dev/null; }; } 2>&1; exit $?)
  status=$?
  set -e
  {
    flock 9
    # A lane may end in the moment in which another has failed: the failure is the last that is said.
    [ ! -e "$LANE_LOGS/failed" ] || exit 1
    printf '\n=== %s: %s (%s; ended after %s s)\n' "$LANE" "$name" "$took" "$SECONDS"
    cat "$log"
    [ "$status" -eq 0 ] || { touch "$LANE_LOGS/failed"; printf '\n=== failed: %s\n' "$name"; exit "$status"; }
  } 9>"$LANE_LOGS/lock"
}

# Ends what the lanes run, in whatever group.
stop() {
  local sessions tries found
  sessions=$(IFS=,; echo "${lanes[*]}")
  for ((tries = 0; tries < 100; tries++)); do
    found=0
    pgrep --runstates DIRSTW --session "$sessions" >/dev/null || found=$?
    # 1 is for nothing found; others are errors, which say nothing.
    [ "$found" -ne 1 ] || return 0
    ((tries % 50)) || pkill "$([ "$tries" -eq 0 ] && echo -TERM || echo -KILL)" --session "$sessions" || true
    sleep 0.1
  done
}

lanes() { # LANE...
  local lane
  lanes=()
  trap stop EXIT
  trap 'exit 130' INT TERM HUP
  for lane in "$@"; do
    # A shell's background jobs ignore these signals, and so would all that they start. If this shell is killed, no lane
    # begins another step.
    env --default-signal=INT,QUIT LANE="$lane" SECONDS="$SECONDS" \
      setsid setpriv --pdeathsig TERM .ci/run "$lane" &
    lanes+=($!)
  done
  for lane in "$@"; do wait -n; done
  stop
  trap - EXIT INT TERM HUP
}
