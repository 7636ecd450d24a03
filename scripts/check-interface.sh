#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright the EventCore authors
#
# The public interface of the Swift modules, from their symbol graphs: how large it is, and what was added and removed
# since the last tag, which is built beside this tree for it. A change fails nothing; a count above its limit does.
# Needs Python 3.
#
#   scripts/check-interface.sh [COMMIT]     compares with that commit instead of the last tag
set -euo pipefail
CDPATH='' cd "$(dirname "$0")/.."
command -v python3 >/dev/null || { echo "scripts/check-interface.sh needs Python 3." >&2; exit 1; }

. scripts/traits.sh
modules=(EventCore EventCoreRecording EventCoreTesting EventDrivenSwift EventsTree Coordinate "${server_modules[@]}")
work=.build/interface
rm -rf "$work"
mkdir -p "$work"

# Builds the modules of a tree and writes their symbol graphs to a folder.
extract() { # TREE FOLDER
  local tree=$1 folder=$2 traits=() built target module
  # So has it fewer traits.
  [ ! -d "$tree/Sources/EventCoreMetrics" ] || traits=("${base_traits[@]}")
  [ "$tree" != . ] || traits=("${all_traits[@]}")
  swift build --package-path "$tree" "${traits[@]}" >/dev/null
  built=$(swift build --package-path "$tree" "${traits[@]}" --show-bin-path)
  target=$(swiftc -print-target-info | sed -n 's/^ *"triple": "\(.*\)",$/\1/p' | head -1)
  for module in "${modules[@]}"; do
    [ -d "$tree/Sources/$module" ] || continue   # An older tree has fewer modules.
    mkdir -p "$folder/$module"
    swift symbolgraph-extract -module-name "$module" -target "$target" -minimum-access-level public \
      -skip-synthesized-members -output-dir "$folder/$module" -I "$built/Modules" -I "$tree/include" \
      -Xcc "-fmodule-map-file=$built/CSwiftRuntime.build/module.modulemap"
  done
}

# Prints the declarations of all symbol graphs in a folder, sorted; with `count` how many there are of what is limited.
list() { # FOLDER [count]
  python3 - "$@" <<'PYTHON'
import glob
import json
import sys

TYPES = ("class", "struct", "enum", "protocol", "actor", "typealias")
# What every type has unless it says otherwise.
SILENT = {"Copyable", "Escapable", "SendableMetatype", "BitwiseCopyable"}
# What is counted, in which modules, and its limit.
LIMITS = (
    ("types, nested ones and type aliases included", "EventCore", 97),
    ("forms of addListener", "EventCore", 17),
    ("forms of addEventCallback", "EventCore", 10),
    ("forms of scheduleQueue and scheduleStack", "EventCore", 8),
    ("forms of addObserver and addKeyedObserver", "EventCore and EventDrivenSwift", 8),
)

folder = sys.argv[1]
lines = set()
symbols = {}
counts = [0] * len(LIMITS)
for path in sorted(glob.glob(f"{folder}/*/*.symbols.json")):
    module = path.split("/")[-2]
    graph = json.load(open(path))
    names = {symbol["identifier"]["precise"]: ".".join(symbol["pathComponents"]) for symbol in graph["symbols"]}
    for symbol in graph["symbols"]:
        kind = symbol["kind"]["identifier"].removeprefix("swift.")
        if "::SYNTHESIZED::" in symbol["identifier"]["precise"] or kind == "extension":
            continue
        owner = ".".join(symbol["pathComponents"][:-1])
        declaration = "".join(fragment["spelling"] for fragment in symbol.get("declarationFragments", ()))
        where = f"{module}.{owner}" if owner else module
        lines.add(f"{where}: {' '.join(declaration.split())}")
        symbols[module] = symbols.get(module, 0) + 1
        name = symbol["names"]["title"].split("(")[0]
        counts[0] += module == "EventCore" and kind in TYPES
        counts[1] += module == "EventCore" and name == "addListener"
        counts[2] += module == "EventCore" and name == "addEventCallback"
        counts[3] += module == "EventCore" and name in ("scheduleQueue", "scheduleStack")
        counts[4] += module in ("EventCore", "EventDrivenSwift") and name in ("addObserver", "addKeyedObserver")
    for relation in graph["relationships"]:
        if relation["kind"] not in ("conformsTo", "inheritsFrom") or relation["source"] not in names:
            continue
        other = names.get(relation["target"]) or relation.get("targetFallback", relation["target"])
        if other.split(".")[-1] not in SILENT:
            lines.add(f"{module}.{names[relation['source']]}: is {other}")

if sys.argv[2:] != ["count"]:
    print("\n".join(sorted(lines)))
    sys.exit()
print("public symbols: " + ", ".join(f"{count} in {module}" for module, count in symbols.items()))
failed = False
for (what, where, limit), count in zip(LIMITS, counts):
    print(f"{count} {what} in {where}; at most {limit}" + ("" if count <= limit else ": TOO MANY"))
    failed = failed or count > limit
sys.exit(failed)
PYTHON
}

extract . "$work/now"
list "$work/now" > "$work/now.txt"

base=${1:-$(git describe --tags --abbrev=0 2>/dev/null || true)}
if [ -z "$base" ]; then
  echo "There is no tag yet to compare the interface with."
else
  tree=$(mktemp -d)
  trap 'git worktree remove --force "$tree" >/dev/null 2>&1 || true; rm -rf "$tree"' EXIT
  git worktree add --quiet --detach "$tree" "$base"
  extract "$tree" "$work/base"
  list "$work/base" > "$work/base.txt"
  if changes=$(diff "$work/base.txt" "$work/now.txt"); then
    echo "The public interface is that of $base."
  else
    echo "The public interface has changed since $base (< removed, > added):"
    grep '^[<>]' <<<"$changes"
  fi
fi

list "$work/now" count || {
  echo "scripts/check-interface.sh: the interface is larger than its limits; take forms away, or join them." >&2
  exit 1
}
echo "interface: ok"
