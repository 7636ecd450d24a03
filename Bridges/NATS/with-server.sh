#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright the EventCore authors
#
# Runs a command beside a server of NATS on a free port of the loopback, and stops the server in the end.
#
#   with-server.sh COMMAND [ARGUMENT]...     an argument that is URL becomes that of the server
set -euo pipefail
export PATH="$PATH:/usr/sbin:/usr/local/sbin"

work=$(mktemp -d)
server=
stop() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  wait 2>/dev/null || true
  rm -rf "$work"
}
trap stop EXIT

nats-server --addr 127.0.0.1 --port -1 --ports_file_dir "$work" --jetstream --store_dir "$work/streams" \
  >"$work/server.log" 2>&1 &
server=$!
port=
for ((attempt = 0; attempt < 500 && ${#port} == 0; attempt++)); do
  sleep 0.02
  port=$(cat "$work"/*.ports 2>/dev/null | grep -oE '127\.0\.0\.1:[0-9]+' | head -1 | cut -d : -f 2 || true)
done
[ -n "$port" ] || { echo "The server of NATS did not start:" >&2; cat "$work/server.log" >&2; exit 1; }

command=()
for word in "$@"; do
  [ "$word" != URL ] || word=nats://127.0.0.1:$port
  command+=("$word")
done
"${command[@]}"
