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
cd "$(dirname "$0")"
export PATH="$PATH:/usr/sbin:/usr/local/sbin"
seconds=${1:-20}

./setup.sh
read -ra flags <<< "${DEMO_BUILD:--c release}"
swift build "${flags[@]}" --product eventcore-weather
weather=$(swift build "${flags[@]}" --show-bin-path)/eventcore-weather

work=$(mktemp -d)
processes=()
stop() {
  for process in "${processes[@]}"; do kill "$process" 2>/dev/null || true; done
  wait 2>/dev/null || true
  rm -rf "$work"
}
trap stop EXIT

nats-server --addr 127.0.0.1 --port -1 --ports_file_dir "$work" >"$work/server.log" 2>&1 &
processes+=($!)
port=
for ((attempt = 0; attempt < 500 && ${#port} == 0; attempt++)); do
  sleep 0.02
  port=$(cat "$work"/*.ports 2>/dev/null | grep -oE '127\.0\.0\.1:[0-9]+' | head -1 | cut -d : -f 2 || true)
done
[ -n "$port" ] || { echo "demo: the server did not start:" >&2; cat "$work/server.log" >&2; exit 1; }
url=nats://127.0.0.1:$port

"$weather" workers "$url" "$seconds" &
processes+=($!)
"$weather" sensors "$url" "$seconds" &
processes+=($!)
"$weather" dashboard "$url" "$seconds"
wait "${processes[1]}" "${processes[2]}"
