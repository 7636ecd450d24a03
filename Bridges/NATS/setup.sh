#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright the EventCore authors
#
# Installs what the bridge needs beside what EventCore needs: the C client of NATS with its headers, the server, for
# tests and the example, and openssl, with which tests make certificates. Asks nothing; says what it does; does nothing if all is there.
set -euo pipefail
CDPATH='' cd "$(dirname "$0")"

say() { printf 'setup: %s\n' "$*"; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }
. ../../scripts/root.sh

# Debian has servers where only root looks for them.
export PATH="$PATH:/usr/sbin:/usr/local/sbin"
has_client() {
  [ -e /usr/include/nats/nats.h ] || [ -e /usr/local/include/nats/nats.h ] || [ -e /opt/homebrew/include/nats/nats.h ]
}

../../scripts/setup.sh
if ! has_client || ! command -v nats-server >/dev/null 2>&1 || ! command -v openssl >/dev/null 2>&1; then
  if command -v apt-get >/dev/null 2>&1; then
    say "installing libnats-dev, nats-server and openssl with apt-get"
    apt_install libnats-dev nats-server openssl
  elif command -v brew >/dev/null 2>&1; then
    say "installing cnats, nats-server and openssl with brew"
    NONINTERACTIVE=1 brew install -q cnats nats-server openssl
  else
    fail "found neither apt-get nor brew: install the C client of NATS (libnats, 3.4 or later) and nats-server"
  fi
fi
