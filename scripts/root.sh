# SPDX-License-Identifier: MIT
# Copyright the EventCore authors
#
# For scripts that install packages, which source it. Each has a function `fail`, which says a sentence and exits.

# Runs a line of shell as root: directly, or through sudo without asking for a password.
as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    sh -c "$1"
  elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
    sudo sh -c "$1"
  else
    fail "this needs root and cannot ask for a password; run it yourself as root, then try again: $1"
  fi
}

# Installs packages of Debian and its kin. The whole of it is one line, so that whoever may not run it can read it whole.
apt_install() {
  as_root "apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $* >/dev/null"
}
