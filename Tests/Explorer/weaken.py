#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the EventCore authors
"""
Weakens each memory order of the core, one at a time, and shows which scenario fails.

    Tests/Explorer/weaken.py [--list] [--seconds S] [--jobs N] [--json FILE] [--further] [--minimize] [PART]...

PART: a part of the file's path, such as shared/ or parker.c; without it, all files. Nothing is compiled again: only
the engine interprets an order, and treats it as a weaker one (--weaken). --list only counts them. --further weakens
what survives further, which shows how much of it is needed; --minimize keeps what survives and goes on, and so finds
a set that may be weakened together (as far as the scenarios can tell).

Each weakening gets about S seconds of processor time: first a short run of the scenarios for that file, beginning with
those that caught others there, then a longer one, then all other scenarios that execute the place; and twice as much
if nothing has failed by then. The first failure ends it.

argued.txt beside this file lists those that no scenario can catch, each with its argument: they are not counted as
caught. A line there that matches no order, or one that was caught after all, is an error.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
# A folder of its own, so that the program does not change while another one is built; the variable is for two runs at once.
FOLDER = os.environ.get("WEAKEN_FOLDER", ".build/explorer-weaken")
EXPLORER = os.path.join(ROOT, FOLDER, "explorer")

NAMES = ["relaxed", "consume", "acquire", "release", "acq_rel", "seq_cst"]
RELAXED, CONSUME, ACQUIRE, RELEASE, ACQ_REL, SEQ_CST = range(6)
LOAD, STORE, COMPARE, FENCE = 0, 1, (8, 9), 10
VARIABLE = 255


def weaker(operation, which, order):
    """The next weaker orders of an operation."""
    reads = operation == LOAD or which == 1
    if order == SEQ_CST:
        return [ACQUIRE] if reads else [RELEASE] if operation == STORE else [ACQ_REL]
    if order == ACQ_REL:
        return [ACQUIRE, RELEASE]
    return [RELAXED] if order in (ACQUIRE, RELEASE, CONSUME) else []


def legal(site, failures):
    """
    The next weaker orders that C allows: a compare-and-swap's must not be weaker than that of its failure, which is
    weakened by itself.
    """
    place, operation, which, order = site
    failure = failures.get(place, RELAXED) if operation in COMPARE and not which else RELAXED
    needed = {ACQUIRE: (ACQUIRE, ACQ_REL), SEQ_CST: ()}
    return [to for to in weaker(operation, which, order) if to in needed.get(failure, (to,))]


def explorer(*arguments):
    return subprocess.run([EXPLORER, *arguments], capture_output=True, text=True, cwd=ROOT).stdout


def sites(output):
    for line in re.findall(r"^site (.*)$", output, re.M):
        place, operation, which, literal, orders = line.split()
        if place.startswith("Sources/CEventCore/"):
            yield place, int(operation), int(which), int(literal), int(orders)


def orders_in(mask):
    return [order for order in range(6) if mask & (1 << order)]


def coverage(scenario):
    """The places that a scenario executes, with their orders."""
    found = set()
    for place, operation, which, _, orders in sites(
            explorer("--scenario", scenario, "--seconds", "0.4", "--sites", "--quiet")):
        for order in orders_in(orders):
            found.add((place, operation, which, order))
    return scenario, found


# The scenarios for a file; others execute its code too, but check something else.
RELATED = {
    "parker": ["parker"], "reclaimer": ["reclaimer"], "latest": ["latest", "shared_latest"],
    "latest_list": ["latest_superseded", "latest_first", "latest_figures", "conflation_read"],
    "shared_mailbox_close": ["shared_close", "shared_drop", "shared_latest_close"],
    "shared_mailbox_wake": ["shared_park", "shared_queue", "shared_take", "shared_retire", "shared_hold",
                            "shared_end", "shared_own"],
    "worker": ["shared_close", "shared_hold", "shared_retire", "shared_figures", "shared_latest_figures"],
    "tree_wait": ["tree_remove_and_wait", "tree_wait", "tree_careful", "tree_walk_in_walk"],
    "tree_place": ["tree_careful", "tree_wait", "tree_is_active"],
    "tree_depth": ["tree_depth"],
    "tree_walk": ["tree_chunks", "tree_walk", "tree_end_root", "tree_end_last"], "tree_private": ["tree"],
    "tree_walker": ["tree_chunks", "tree_absent", "tree_walk_in_walk", "tree_is_active", "tree_depth", "tree_drop"],
    "tree_reclaim": ["tree_chunks", "tree_end", "tree_release", "tree_walk_in_walk"],
    "tree_handlers": ["tree"], "tree_collect": ["tree_chunks", "tree_add", "tree_raise"],
    "shared_queue": ["shared_segments", "shared_queue", "shared_take", "shared_close"],
    "shared_stack": ["shared_stack", "shared_alarm", "shared_close"],
    "mailbox": ["mailbox", "latest_statistics"], "mailbox_private": ["mailbox", "bound"],
    "mailbox_pump": ["mailbox_pump_"],
    "mailbox_close": ["mailbox_close", "mailbox_end", "mailbox_statistics", "latest_statistics", "balancer_close",
                      "bound_drop_oldest_end", "bound_block_close"],
    "mailbox_bounded": ["bound"], "bound": ["bound", "shared_block"], "bound_accept": ["bound", "shared_displace"],
    "shared_bounded": ["shared_block", "shared_displace"], "shared_lanes": ["shared", "bound_drop_oldest"],
    "memory": ["memory", "mailbox_end", "mailbox_together", "latest_two_producers"],
    "references": ["mailbox_end", "balancer_close", "latest_close", "shared_end", "routing_unsubscribe",
                   "scheduler"],
    "slab_trim": ["memory"], "platform": ["parker", "reclaimer"],
}


def related(place, scenarios):
    """Of the scenarios that execute a place, those for its file or folder."""
    folder, file = place.split(":")[0].split("/")[-2:]
    for key in (file.split(".")[0], folder):
        names = RELATED.get(key, [key])
        found = [s for s in scenarios if any(s.startswith(name) for name in names)]
        if found:
            return found
    return scenarios


def changes(weakenings):
    return [word for place, which, order, to in weakenings
            for word in ("--weaken", f"{place}:{which}:{order}:{to}")]


# How often a scenario caught something in a file: those are run first there.
finds = collections.Counter()


def run_one(scenario, each, how, weakenings):
    """What fails under the weakenings: the scenario, after how many executions, and how; or None."""
    output = explorer("--scenario", scenario, "--quiet", "--first", "--processor-time", "--seconds", str(each),
                      *how, *changes(weakenings))
    failure = re.search(r"^(\w+): FAILED after (\d+) executions: (.*)$", output, re.M)
    if failure:
        return failure.group(1), int(failure.group(2)), failure.group(3)
    if ": holds" not in output:
        return scenario, 0, "the explorer itself ended: " + output[-200:]
    return None


def is_caught(scenarios, weakenings, seconds):
    file = weakenings[-1][0].split(":")[0]
    near = related(weakenings[-1][0], scenarios)
    far = [s for s in scenarios if s not in near]
    for group, part, how in ((near, 0.1, []), (near, 0.3, ["--random-only"]), (far, 0.15, []),
                             (near, 0.45, ["--random-only", "--seed", "7"]),
                             (near, 2, ["--random-only", "--seed", "11"])):
        for scenario in sorted(group, key=lambda s: (-finds[file, s], s)):
            found = run_one(scenario, max(seconds * part / len(group), 0.05), how, weakenings)
            if found:
                finds[file, found[0]] += 1
                return found
    return None


def name_of(which, order, to, operation):
    end = "removed" if operation == FENCE and to == RELAXED else NAMES[to]
    return f"{'failure ' if which else ''}{NAMES[order]} -> {end}"


def examine(site, changed, scenarios, seconds, kept, further):
    """The weakenings of one order, each with what caught it or None; `further`: and those of what survives."""
    place, operation, which, order = site
    results, todo, done = [], [(to, True) for to in changed], set()
    while todo:
        to, is_first = todo.pop(0)
        if to in done:
            continue
        done.add(to)
        caught = is_caught(scenarios, [*kept, (place, which, order, to)], seconds)
        results.append({"place": place, "change": name_of(which, order, to, operation), "caught": caught,
                        "first": is_first, "weakening": (place, which, order, to)})
        if caught is None and further:
            todo += [(next_one, False) for next_one in weaker(operation, which, to)]
    return results


def minimize(ordered, covered, failures, seconds):
    """Weakens for good what survives, one after the other: what is left is all needed."""
    kept = []
    for site in ordered:
        if site not in covered:
            continue
        survivors = [r for r in examine(site, legal(site, failures), sorted(covered[site]), seconds, kept, True)
                     if r["caught"] is None]
        if survivors:
            kept.append(tuple(survivors[-1]["weakening"]))
            print(f"{site[0]}: {survivors[-1]['change']}", flush=True)
    print(f"{len(kept)} of {len(ordered)} orders may be weaker, all at once")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--list", action="store_true", help="count them, and which no scenario comes by")
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json")
    parser.add_argument("--further", action="store_true", help="weaken what survives further")
    parser.add_argument("--minimize", action="store_true",
                        help="keep what survives, and go on: a set that may be weakened all at once")
    parser.add_argument("parts", nargs="*")
    options = parser.parse_args()
    subprocess.run([os.path.join(HERE, "build.sh"), FOLDER], check=True)

    scenarios = [line for line in explorer("--list").split("\n") if line and " litmus" not in line]
    covered, compiled = {}, set()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for scenario, found in pool.map(coverage, scenarios):
            for site in found:
                covered.setdefault(site, []).append(scenario)
        for place, operation, which, literal, _ in sites(explorer("--scenario", scenarios[0], "--seconds",
                                                                  "0.1", "--sites", "--quiet")):
            compiled.add((place, operation, which, literal))
        wanted = {site for site in set(covered) | {s for s in compiled if s[3] != VARIABLE}
                  if site[3] != RELAXED and (not options.parts or any(p in site[0] for p in options.parts))}
        ordered = sorted(wanted, key=lambda s: (s[0].split(":")[0], int(s[0].split(":")[1]), s[2]))
        failures = {place: order for place, _, which, order in compiled if which}
        if options.minimize:
            return minimize(ordered, covered, failures, options.seconds)
        if options.list:
            return count(ordered, covered, failures)
        futures = [(site, legal(site, failures), pool.submit(
            examine, site, legal(site, failures), sorted(covered[site]), options.seconds, [], options.further)
                    if site in covered else None)
                   for site in ordered]
        return report(futures, Argued(options.parts), options.json)


def count(ordered, covered, failures):
    everything, unseen = collections.Counter(), collections.Counter()
    for site in ordered:
        file = site[0].split(":")[0]
        changes_here = len(legal(site, failures))
        everything[file] += changes_here
        if site not in covered:
            unseen[file] += changes_here
            print(f"{site[0]}: no scenario comes by")
    for file, n in everything.items():
        print(f"{file:50} {n:6} {unseen[file]:6}")
    print(f"{'all':50} {sum(everything.values()):6} {sum(unseen.values()):6}")


class Argued:
    """
    The list of what no scenario can find. An entry: file:function: change: words of the statement, and its
    argument in the lines below, indented.
    """

    def __init__(self, parts):
        self.entries = {}
        with open(os.path.join(HERE, "argued.txt")) as file:
            for line in file:
                if line[:1].isspace() or line.startswith("#"):
                    continue
                entry = tuple(word.strip() for word in line.split(":", 3))
                if not parts or any(part in "Sources/CEventCore/" + entry[0] for part in parts):
                    self.entries[entry] = 0

    def find(self, place, change, is_caught):
        """True if argued.txt lists this change of that place."""
        file, function, statement = where(place)
        for entry in self.entries:
            if entry[:3] == (file, function, change) and entry[3] in statement and not is_caught:
                self.entries[entry] += 1
                return True
        return False

    def stale(self):
        return [": ".join(entry) for entry, uses in self.entries.items() if uses != 1]


def where(place):
    """The file below Sources/CEventCore, the function, and the statement, of a place."""
    path, line = place.split(":")
    with open(os.path.join(ROOT, path)) as file:
        lines = file.read().split("\n")
    first = last = int(line) - 1
    while not re.search(r"[;{}/]$", lines[first - 1]) and lines[first - 1]:
        first -= 1
    while not re.search(r"[;{]$", lines[last]):
        last += 1
    heads = [found.group(1) for text in lines[:first + 1]
             if (found := re.match(r"[A-Za-z_][^;=]*?(\w+)\([^;]*$", re.sub(r"__attribute__\(\(.*?\)\) ", "", text)))]
    return (path.removeprefix("Sources/CEventCore/"), heads[-1] if heads else "",
            re.sub(r"\s+", " ", " ".join(lines[first:last + 1])))


COLUMNS = ["caught", "argued", "survived", "not seen"]


def report(futures, argued, file):
    totals, everything, last = collections.defaultdict(collections.Counter), [], None
    for (place, operation, which, order), changed, future in futures:
        name = place.split(":")[0]
        if name != last:
            print(f"\n{name}", flush=True)
            last = name
        results = future.result() if future else [
            {"place": place, "change": name_of(which, order, to, operation), "caught": None, "first": True,
             "unseen": True} for to in changed]
        for result in results:
            everything.append(result)
            if result["caught"]:
                by, executions, text = result["caught"]
                column, what = "caught", f"caught by {by} after {executions}: {text[:60]}"
            elif argued.find(place, result["change"], result["caught"]):
                column, what = "argued", "argued"
            elif "unseen" in result:
                column, what = "not seen", "no scenario comes by"
            else:
                column, what = "survived", "SURVIVED"
            # What a survivor was weakened to further is shown, and not counted.
            if result["first"]:
                totals[name][column] += 1
            print(f"  {place.split(':')[1]}: {result['change']}: {what}", flush=True)
    folders, total = collections.defaultdict(collections.Counter), collections.Counter()
    for name, counts in totals.items():
        folders[os.path.basename(os.path.dirname(name))].update(counts)
        total.update(counts)
    for table in (totals, folders, {"all": total}):
        print(f"\n{'':50}" + "".join(f"{column:>10}" for column in COLUMNS))
        for name, counts in table.items():
            print(f"{name:50}" + "".join(f"{counts[column]:10}" for column in COLUMNS))
    print(f"{100 * total['caught'] / max(sum(total.values()), 1):.1f} % caught")
    if file:
        with open(file, "w") as out:
            json.dump(everything, out, indent=1)
    for entry in argued.stale():
        print(f"argued.txt: fits no order that survives, or more than one: {entry}")
    return bool(argued.stale() or total["survived"] or total["not seen"])


if __name__ == "__main__":
    sys.exit(main())
