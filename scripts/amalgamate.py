#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the EventCore authors
#
# The core as two files to drop into a project: eventcore.c, eventcore.h.
#
#   scripts/amalgamate.py FOLDER
#
# Each header is written once, before the first source that includes it. What is private to a source (static
# functions and variables, macros, tags) and has a namesake in another one gets the source's name in front of it.
# System headers stand where they were, outside of the pragma that hides what is not EVC_API.
import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORE = ROOT / "Sources/CEventCore"
TOKEN = re.compile(r"""(?s)/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|//[^\n]*|[A-Za-z_]\w*|.""")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>)[^\n]*\n', re.M)
WORD = re.compile(r"[A-Za-z_]\w*\Z")


def find(name, includer):
    for folder in (includer.parent, ROOT / "include", CORE):
        if (folder / name).is_file():
            return (folder / name).resolve()
    sys.exit(f"amalgamate.py: {includer} includes {name}, which is in none of the core's folders")


def without_comments(text):
    """Comments and strings as blanks of the same length, so that positions stay."""
    return "".join(
        re.sub(r"[^\n]", " ", t) if t[:2] in ("/*", "//") or t[0] in "\"'" else t for t in TOKEN.findall(text))


def private_names(text):
    """What one source defines for itself, as (kind, name); kinds are the compiler's name spaces."""
    plain = without_comments(text)
    names = set()
    for match in re.finditer(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", plain, re.M):
        names.add(("macro", match.group(1)))
    code = re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", "", plain, flags=re.M)
    depth, statement = 0, ""
    for character in code:
        if character == "{":
            if depth == 0:
                names |= names_of(statement)
                is_enum = re.match(r"\s*(static\s+)?enum\b[^=(]*\Z", statement)
                body = ""
            depth += 1
        elif character == "}":
            depth -= 1
            if depth == 0:
                if is_enum:
                    names |= {("name", n) for n in re.findall(r"(?:\A|,)\s*(\w+)", body)}
                statement = ""
        elif depth == 0:
            if character == ";":
                names |= names_of(statement)
                statement = ""
            else:
                statement += character
        elif depth == 1:
            body += character
    return names


def names_of(statement):
    """What one statement, or the head of a body, defines.

    >>> names_of("static int run(void (*each)(int), int n)")
    {('name', 'run')}
    >>> names_of("static void (*_Atomic hook)(int (*each)(int)) = 0")
    {('name', 'hook')}
    """
    names = set()
    match = re.match(r"\s*(?:struct|union|enum)\s+(\w+)\s*\Z", statement)
    if match:
        names.add(("tag", match.group(1)))
    if not re.match(r"\s*static\b", statement) or re.match(r"\s*static_assert\b", statement):
        return names
    statement = statement.split("=")[0]
    statement = re.sub(r"__attribute__\s*\(\(.*?\)\)|_Alignas\s*\([^()]*\)|\[[^\]]*\]", " ", statement)
    statement = re.sub(r"\b_Atomic\s*\([^()]*\)", "int ", statement)
    # A pointer to a function: (*name)(...), (*_Atomic name)(...); a parameter list belongs to a function. Whichever comes
    # first is defined: the others are its parameters.
    pointer = re.search(r"\(\s*\*\s*(?:_Atomic\s+|const\s+)?(\w+)\s*\)\s*\(", statement)
    function = re.search(r"\b(\w+)\s*\((?!\s*\*)", statement)
    if pointer and not (function and function.start() < pointer.start()):
        names.add(("name", pointer.group(1)))
    elif function:
        names.add(("name", function.group(1)))
    else:
        for part in statement.split(","):
            words = re.findall(r"\w+", part)
            if words:
                names.add(("name", words[-1]))
    return names


def renamed(text, prefix, names):
    """The source with these private names prefixed; members keep theirs."""
    tags = {n for kind, n in names if kind == "tag"}
    macros = {n for kind, n in names if kind == "macro"}
    words = {n for kind, n in names if kind == "name"}
    output, before, in_members, depth, statement = [], "", None, 0, ""
    for token in TOKEN.findall(text):
        if WORD.match(token):
            is_tag = before in ("struct", "union", "enum")
            is_member = before in (".", "->") or in_members is not None
            if (is_tag and token in tags) or token in macros or (token in words and not is_tag and not is_member):
                output.append(prefix + token)
            else:
                output.append(token)
        else:
            output.append(token)
            if token == "{":
                if in_members is None and re.search(r"(?:^|[;}{]|\bstatic\b)\s*(?:struct|union)(?:\s+\w+)?\s*\Z", statement):
                    in_members = depth
                depth += 1
                statement = "{"
            elif token == "}":
                depth -= 1
                if in_members == depth:
                    in_members = None
                statement = "}"
        if not token.isspace() and token[:2] != "/*":
            before = "->" if token == ">" and before == "-" else token
        if token not in "{}" and token[:2] != "/*":
            statement += token
    return "".join(output)


def outside_of_hidden(match):
    return ("#pragma GCC visibility pop\n" + match.group(0) + "#pragma GCC visibility push(hidden)\n")


class Writer:
    def __init__(self, system_include):
        self.parts, self.seen, self.system_include = [], set(), system_include

    def header(self, path):
        if path in self.seen:
            return
        self.seen.add(path)
        self.parts.append(self.resolved(path.read_text(), path))

    def resolved(self, text, path):
        """The text without includes of our own headers, which are written before it."""
        for match in INCLUDE.finditer(text):
            if match.group(1):
                self.header(find(match.group(1), path))
        return INCLUDE.sub(lambda m: "" if m.group(1) else self.system_include(m), text)


def main():
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} FOLDER")
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    licence = "/*\n" + "".join(f" * {line}".rstrip() + "\n" for line in (ROOT / "LICENSE").read_text().splitlines()) + " */\n"
    note = "/* EventCore in two files. Made by scripts/amalgamate.py: change the sources instead. */\n"

    public = Writer(lambda m: m.group(0))
    public.header((ROOT / "include/eventcore/eventcore.h").resolve())
    (folder / "eventcore.h").write_text(licence + note + "\n".join(public.parts))

    sources = sorted(CORE.glob("*/*.c"))
    texts = {path: path.read_text() for path in sources}
    owners = defaultdict(set)
    for path, text in texts.items():
        for kind, name in private_names(text):
            owners[name].add(path)
    private = Writer(outside_of_hidden)
    private.seen = set(public.seen)
    for path in sources:
        mine = {(k, n) for k, n in private_names(texts[path]) if len(owners[n]) > 1 and n not in ("_GNU_SOURCE", "_LGPL_SOURCE")}
        text = re.sub(r"^#define _GNU_SOURCE 1\n", "", texts[path], flags=re.M)
        body = private.resolved(renamed(text, path.stem + "_", mine), path)
        private.parts.append(f"/* ==== {path.relative_to(CORE)} ==== */\n" + body)
    (folder / "eventcore.c").write_text(
        licence + note +
        "/* Compile it with -pthread as C11 or newer, with GNU extensions, and link -lurcu-bp.\n"
        " * Before glibc 2.34 link -ldl too. It is a translation unit of its own: included behind a header of the\n"
        " * system it would define _GNU_SOURCE too late. */\n"
        "#ifndef _GNU_SOURCE\n#define _GNU_SOURCE 1\n#endif\n"
        '#include "eventcore.h"\n#pragma GCC visibility push(hidden)\n' +
        "\n".join(private.parts) + "#pragma GCC visibility pop\n")
    (folder / "eventcore.hpp").write_text((ROOT / "include/eventcore/eventcore.hpp").read_text())
    print(f"{folder}/eventcore.c, {folder}/eventcore.h, and for C++ {folder}/eventcore.hpp")


if __name__ == "__main__":
    main()
