#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright the EventCore authors
#
# Folders stand on floors: a file names no type of a floor above its own (Swift), and includes no header of one (C).
# The tables below are from the ground up. Files that name one another in a circle are in one folder, and at most
# twelve. `EventCentral.Core`, the value that says which core, is named on every floor; its factory is on the top one.
set -euo pipefail
CDPATH='' cd "$(dirname "$0")/.."

swift_floors='System Event Requesters Handlers Instruments Routing Scheduling Balancing Consumers Execution Listeners Observation Threads Concurrency Pools Tree Coordination Cores'
c_floors='platform memory lanes routing balancer latest mailbox shared scheduler tree process'
largest=12

# Words of Swift without comments and strings; `EventCentral.Core` is no word.
words() {
  awk '
    { line = $0 }
    /"""/ { n = gsub(/"""/, "&", line); inside = (inside + n) % 2; line = "" }
    inside { line = "" }
    { gsub(/"[^"]*"/, "", line); sub(/\/\/.*/, "", line); gsub(/EventCentral\.Core/, "", line); print FILENAME "\t" line }
  ' "$@"
}

mapfile -t files < <(git ls-files 'Sources/EventCore/*.swift')
lines=$(mktemp)
trap 'rm -f "$lines"' EXIT
for file in "${files[@]}"; do words "$file"; done > "$lines"

awk -F '\t' -v floors="$swift_floors" -v largest="$largest" '
  function folder(path) { split(path, part, "/"); return part[3] }
  BEGIN { count = split(floors, name, " "); for (i = 1; i <= count; i++) floor[name[i]] = i }
  # First the types that each file declares for others, at the outermost level.
  NR == FNR {
    if (!(folder($1) in floor)) { print $1 ": its folder stands on no floor; add it to the table."; bad = 1; exit 1 }
    text = $2
    while (match(text, /^@[A-Za-z_]+(\([^)]*\))? +/)) text = substr(text, RSTART + RLENGTH)
    if (text ~ /^((public|open|package|internal|final|indirect) +)*(class|struct|enum|protocol|typealias|actor) +[A-Z]/) {
      sub(/^((public|open|package|internal|final|indirect) +)*(class|struct|enum|protocol|typealias|actor) +/, "", text)
      match(text, /^[A-Za-z0-9_]+/)
      home[substr(text, 1, RLENGTH)] = $1
    }
    next
  }
  # Then who names them.
  {
    text = $2
    gsub(/[^A-Za-z0-9_]+/, " ", text)
    count = split(text, tokens, " ")
    for (token = 1; token <= count; token++) {
      word = tokens[token]
      if (!(word in home) || home[word] == $1) continue
      target = home[word]
      if (floor[folder(target)] > floor[folder($1)] && !told[$1, word]++) {
        printf "%s (floor %s) names %s of floor %s above it.\n", $1, folder($1), word, folder(target)
        bad = 1
      }
      if (folder(target) == folder($1)) { reaches[$1, target] = 1; file[$1]; file[target] }
    }
  }
  END {
    if (bad) exit 1
    for (k in file) for (i in file) if ((i, k) in reaches) for (j in file) if ((k, j) in reaches) reaches[i, j] = 1
    for (i in file) {
      size = 0; members = ""
      for (j in file) if (i == j || ((i, j) in reaches && (j, i) in reaches)) { size++; members = members "\n  " j }
      if (size > most) { most = size; circle = members }
    }
    if (most > largest) { printf "%d files name one another in a circle; at most %d may:%s\n", most, largest, circle; exit 1 }
    printf "floors: ok; the largest circle of files has %d\n", most
  }
' "$lines" "$lines"

status=0
read -ra c_folders <<< "$c_floors"
diff <(printf '%s\n' "${c_folders[@]}" | sort) <(git ls-files 'Sources/CEventCore/*.[ch]' | cut -d / -f 3 | sort -u) || {
  echo "Folders of C that stand on no floor (>), or floors without a folder (<): mend the table."
  status=1
}
for ((low = 0; low < ${#c_folders[@]}; low++)); do
  for ((high = low + 1; high < ${#c_folders[@]}; high++)); do
    if grep -nE "#include \"${c_folders[high]}/" "Sources/CEventCore/${c_folders[low]}"/*.[ch]; then
      echo "${c_folders[low]}/ includes ${c_folders[high]}/, a floor above it."
      status=1
    fi
  done
done
exit "$status"
