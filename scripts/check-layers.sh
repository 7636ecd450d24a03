#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright the EventCore authors
#
# Checks by text search which names certain files may not contain, that every C source includes platform/config.h first,
# and that a file of more than 300 lines says at its head why.
set -euo pipefail
CDPATH='' cd "$(dirname "$0")/.."
status=0

# PATTERN REASON FILES...
forbid() {
  local pattern=$1 reason=$2 hits
  shift 2
  # One that finds nothing says 1, and one that cannot read a file more.
  hits=$(grep -nE "$pattern" "$@" /dev/null) || [ $? -eq 1 ] || status=1
  [ -z "$hits" ] || { printf '%s\n%s\n' "$reason" "$hits"; status=1; }
}

mapfile -t swift_files < <(git ls-files 'Sources/EventCore/*.swift')
mapfile -t c_files < <(git ls-files 'Sources/CEventCore/*.[ch]' | grep -v '/platform/domain\.c$')
mapfile -t shared_files < <(git ls-files 'Sources/EventCore/*.swift' | grep -v '/Cores/LockFree/')

forbid '<urcu' 'Only domain.c includes liburcu:' "${c_files[@]}"
forbid '^ *(public |@_exported )?import (CEventCore|Foundation)' \
  'CEventCore is imported internally, Foundation not at all:' "${swift_files[@]}"
forbid 'evc_|EVC_' 'C is named in Cores/LockFree/ alone:' \
  $(printf '%s\n' "${shared_files[@]}" | grep -v -e Lane.swift -e Dispatch.swift -e EnvelopeLayout.swift)
forbid '#include "(mailbox|shared)/' 'A router knows sinks, not mailboxes:' Sources/CEventCore/routing/*.[ch]
forbid '#include "routing/(router|dispatch|snapshot)' 'A mailbox knows no router:' \
  Sources/CEventCore/{mailbox,latest}/*.[ch]
forbid '#include "(mailbox|shared)/' 'A latest-only subscription stands in front of either kind of mailbox:' \
  Sources/CEventCore/latest/*.[ch]
forbid '#include "(memory/envelope|routing|mailbox|eventcore/(router|mailbox|envelope|sink))' \
  'A scheduler knows time, and no events:' include/eventcore/scheduler.h Sources/CEventCore/scheduler/*.[ch]
forbid 'Consumer|Receiver|EventThread|Mailbox' 'A scheduler dispatches through the front door:' \
  Sources/EventCore/Scheduling/*.swift Sources/EventCore/Cores/*/*Scheduler.swift
forbid '#include "(mailbox/|shared/|platform/parker|routing/(router|dispatch)|eventcore/(mailbox|parker|router|shared_mailbox))' \
  'A balancer knows sinks, not what is before or behind them:' \
  Sources/CEventCore/balancer/*.[ch] include/eventcore/balancer.h
forbid '#include "(routing|mailbox|shared|balancer|scheduler|memory/(slot|envelope|box|batch|thread_record)|eventcore/(mailbox|router|sink|envelope|pool|scheduler|balancer|shared))' \
  'A tree knows neither events nor where they go:' \
  include/eventcore/tree.h Sources/CEventCore/tree/*.[ch]
forbid '^[^/]*\bprecondition(Failure)?\(' 'A release build drops what a precondition says; use require:' \
  "${swift_files[@]}"
forbid 'unsafeFlags' 'A package with unsafe flags cannot be depended on:' Package.swift

for file in $(git ls-files 'Sources/CEventCore/*.c'); do
  [ "$(grep -m 1 '^#' "$file")" = '#include "platform/config.h"' ] || {
    echo "$file does not include platform/config.h first, which decides whether the core is compiled."
    status=1
  }
done

for file in $(git ls-files 'Sources/*.swift' 'Sources/*.[ch]'); do
  [ "$(wc -l < "$file")" -le 300 ] || awk 'NR > 100 { exit } /One file, though long/ { found = 1; exit } END { exit !found }' "$file" || {
    echo "$file has more than 300 lines and does not say at its head why (\"One file, though long: …\")."
    status=1
  }
done

[ "$status" -eq 0 ] && echo "layers: ok"
exit "$status"
