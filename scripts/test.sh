#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright the EventCore authors
#
# `swift test`, one test after the other, since they make threads of their own; with the traits of all products, unless
# the arguments say which. What failed is said once more at the end, where a long log is read first.
#
#   scripts/test.sh [arguments of swift test]...
set -uo pipefail
CDPATH='' cd "$(dirname "$0")/.."

. scripts/traits.sh
case " $* " in *traits*) all_traits=() ;; esac

log=$(mktemp)
trap 'rm -f "$log"' EXIT
swift test --no-parallel "${all_traits[@]}" "$@" 2>&1 | tee "$log"
status=${PIPESTATUS[0]}
if [ "$status" -ne 0 ]; then
  printf '\nWhat failed:\n'
  grep -aE '✘ .*(recorded an issue|signal)|^↳|error:|(Thread|Address|Leak)Sanitizer|Fatal' "$log" |
    grep -avE '^↳ (Testing Library|Target Platform)' | cut -c 1-400 | head -n 40
  tail -n 1 "$log"
fi
exit "$status"
