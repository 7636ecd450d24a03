#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright the EventCore authors
#
# The documents beside the code: every file and folder that they name exists, every link leads somewhere, the figures
# are what scripts/draw-figures.py draws, and the README and the game of Examples, which is read as one, stay short. Needs
# Python 3.
#
# A word is taken for a path if it stands in backticks and has a slash or the ending of a file; in a block of code, if
# it begins with a folder of the repository. It may leave out the folders in front: `tree/tree_wait.h`. Words in capital
# letters are taken for what the reader puts in.
set -euo pipefail
CDPATH='' cd "$(dirname "$0")/.."
command -v python3 >/dev/null || { echo "scripts/check-documents.sh needs Python 3." >&2; exit 1; }
status=0

shorter_than() { # LINES NAME FILE...
  local limit=$1 name=$2 lines
  shift 2
  lines=$(cat "$@" | wc -l)
  [ "$lines" -lt "$limit" ] || {
    echo "$name has $lines lines; fewer than $limit is the rule."
    status=1
  }
}
shorter_than 200 README.md README.md
shorter_than 800 "The game" Examples/Sources/EventCoreGame/*.swift

drawn=$(mktemp -d)
trap 'rm -rf "$drawn"' EXIT
figures=Sources/EventCore/EventCore.docc/Resources
scripts/draw-figures.py "$drawn"
for figure in "$drawn"/*.svg; do
  cmp -s "$figure" "$figures/$(basename "$figure")" || {
    echo "$figures/$(basename "$figure") is not what scripts/draw-figures.py draws: run it."
    status=1
  }
done

python3 - README.md CONTRIBUTING.md CHANGELOG.md SECURITY.md Documentation/*.md Benchmarks/README.md \
  Tests/Explorer/README.md Examples/README.md Examples/C/README.md Examples/Chat/README.md Bridges/NATS/README.md <<'PYTHON' || status=1
import glob
import os
import re
import subprocess
import sys

listed = subprocess.run(
    ["git", "ls-files", "--cached", "--others", "--exclude-standard"], capture_output=True, text=True, check=True)
files = [name for name in listed.stdout.splitlines() if os.path.exists(name)]
# Every file and folder, and what is left of their names when folders in front are left out.
known = set()
for name in files:
    parts = name.split("/")
    for end in range(1, len(parts) + 1):
        for begin in range(end):
            known.add("/".join(parts[begin:end]))
tops = {name.split("/")[0] for name in files if "/" in name}
ENDINGS = (".md", ".swift", ".c", ".h", ".sh", ".py", ".pml", ".svg", ".json", ".txt", ".yml", ".modulemap", ".docc")
WORD = re.compile(r"[A-Za-z0-9_.*+-]+(/[A-Za-z0-9_.*+-]+)*/?")
# A file of the reader's own.
THEIRS = {"main.swift"}
faults = 0


def exists(path):
    path = path.rstrip("/")
    if "*" in path:
        return bool(glob.glob(path))
    return path in known or os.path.islink(path)


def anchors(text):
    """What a host of Markdown makes of headings."""
    found = set()
    for heading in re.findall(r"^#+ +(.*)$", text, re.M):
        plain = re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower())
        found.add(plain.strip().replace(" ", "-"))
    return found


def fault(document, number, what):
    global faults
    faults += 1
    print(f"{document}:{number}: {what}")


for document in sys.argv[1:]:
    text = open(document, encoding="utf-8").read()
    folder = os.path.dirname(document)
    is_code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
            continue
        if is_code or line.startswith("    "):
            for word in re.split(r"[\s\"'(),;<>]+", line):
                if WORD.fullmatch(word) and "/" in word and word.split("/")[0] in tops and not exists(word):
                    fault(document, number, f"there is no {word}")
            continue
        for target in re.findall(r"\]\(([^)\s]+)\)", line):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            full = os.path.normpath(os.path.join(folder, path)) if path else document
            if not os.path.exists(full):
                fault(document, number, f"the link to {target} leads nowhere")
            elif anchor and anchor not in anchors(open(full, encoding="utf-8").read()):
                fault(document, number, f"{full} has no heading #{anchor}")
        for code in re.findall(r"`([^`]+)`", line):
            for word in re.split(r"[\s<>\"'(),;:]+", code):
                if not WORD.fullmatch(word) or word.startswith(("-", "/", "..")) or word in THEIRS:
                    continue
                if not re.search("[a-z]", word):
                    continue
                if ("/" in word or word.endswith(ENDINGS)) and not exists(word):
                    fault(document, number, f"there is no {word}")

# The floors are listed twice, for readers and for the check.
page = "Documentation/Architecture.md"
listed = " ".join(open(page, encoding="utf-8").read().split())
for language, folders in re.findall(r"^(\w+)_floors='(.*)'$", open("scripts/check-floors.sh").read(), re.M):
    if ", ".join(f"`{folder}`" for folder in folders.split()) not in listed:
        fault(page, 1, f"the floors of {language} are not those of scripts/check-floors.sh")
sys.exit(faults != 0)
PYTHON

[ "$status" -eq 0 ] && echo "documents: ok"
exit "$status"
