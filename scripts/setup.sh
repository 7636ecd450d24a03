#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright the EventCore authors
#
# Installs what a build of EventCore needs and this machine lacks: liburcu with its headers, a C compiler.
# Swift itself it only looks for. Asks nothing; says what it does; does nothing if all is there.
set -euo pipefail

say() { printf 'setup: %s\n' "$*"; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }

. "$(dirname "${BASH_SOURCE[0]}")/root.sh"

has_liburcu() {
  local prefix
  for prefix in /usr /usr/local /opt/homebrew /home/linuxbrew/.linuxbrew; do
    [ -e "$prefix/include/urcu/urcu-bp.h" ] && return 0
  done
  ls /usr/include/*/urcu/urcu-bp.h >/dev/null 2>&1
}

install_packages() { # DEBIAN FEDORA ALPINE HOMEBREW
  if command -v apt-get >/dev/null 2>&1; then
    say "installing $1 with apt-get"
    apt_install "$1"
  elif command -v dnf >/dev/null 2>&1; then
    say "installing $2 with dnf"
    as_root "dnf install -y -q $2"
  elif command -v apk >/dev/null 2>&1; then
    say "installing $3 with apk"
    as_root "apk add -q $3"
  elif command -v brew >/dev/null 2>&1; then
    say "installing $4 with brew"
    NONINTERACTIVE=1 brew install -q $4
  else
    fail "found none of apt-get, dnf, apk, brew: install liburcu with its headers, then make again"
  fi
}

command -v swift >/dev/null 2>&1 ||
  fail "found no swift: install Swift 6.3 or later from https://www.swift.org/install, then make again"

has_liburcu ||
  install_packages liburcu-dev userspace-rcu-devel userspace-rcu-dev userspace-rcu
command -v "${CC:-cc}" >/dev/null 2>&1 ||
  install_packages gcc gcc gcc gcc
