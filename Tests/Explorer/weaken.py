#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the EventCore authors
"""
Weakens each memory order of the core, one at a time, and tells which scenario finds it.

    Tests/Explorer/weaken.py [--seconds S] [--jobs N] [--json FILE] [--further] [--minimize] [PART]...

PART: of the file's path, such as shared/ or parker.c; without, all files. Nothing is compiled anew: an order
means something to the engine alone, which takes it for a weaker one (--weaken). --further weakens what survives
further, so that it shows how much of it is needed; --minimize keeps what survives and goes on, and so finds a set
that may be weakened all at once (as far as the scenarios tell).

Each weakening has S seconds, shared by the scenarios that come by the place.
"""
import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
# In a folder of its own, so that it stays as it is while another one is built.
FOLDER = ".build/explorer-weaken"
EXPLORER = os.path.join(ROOT, FOLDER, "explorer")

NAMES = ["relaxed", "consume", "acquire", "release", "acq_rel", "seq_cst"]
RELAXED, CONSUME, ACQUIRE, RELEASE, ACQ_REL, SEQ_CST = range(6)
LOAD, STORE, FENCE = 0, 1, 10
VARIABLE = 255


def weaker(operation, which, order):
    """The next weaker orders of an operation."""
    reads = operation == LOAD or which == 1
    if order == SEQ_CST:
        return [ACQUIRE] if reads else [RELEASE] if operation == STORE else [ACQ_REL]
    if order == ACQ_REL:
        return [ACQUIRE, RELEASE]
    return [RELAXED] if order in (ACQUIRE, RELEASE, CONSUME) else []


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
    """Where a scenario comes by, with which orders."""
    found = set()
    for place, operation, which, _, orders in sites(
            explorer("--scenario", scenario, "--seconds", "0.4", "--sites", "--quiet")):
        for order in orders_in(orders):
            found.add((place, operation, which, order))
    return scenario, found


# Whose scenarios are for a file; others come by as well, but look at something else.
RELATED = {
    "parker": ["parker"], "reclaimer": ["reclaimer"], "latest": ["latest", "shared_latest"], "mailbox_latest": ["latest"], "token": ["latest", "shared_latest"],
    "shared_latest": ["shared_latest"], "shared_mailbox_close": ["shared_close", "shared_latest_close"],
    "shared_mailbox_wake": ["shared_park", "shared_queue", "shared_take", "shared_retire", "shared_hold"],
    "worker_wait": ["shared_park", "shared_queue", "shared_take", "shared_retire", "shared_own"],
    "tree_wait": ["tree_remove_and_wait"], "tree_place": ["tree_move", "tree_raise", "tree_two"],
    "tree_walker": ["tree_two", "tree_reuse", "tree_remove"], "tree_private": ["tree_two", "tree_reuse"],
    "tree_reclaim": ["tree_two", "tree_reuse", "tree_remove_and_wait_two"],
    "shared_queue": ["shared_segments", "shared_queue", "shared_close"],
    "shared_stack": ["shared_stack", "shared_alarm", "shared_close"],
    "mailbox_depth": ["mailbox_depths"], "mailbox_pump": ["mailbox_pump"],
    "memory": ["mailbox", "latest", "balancer", "shared_segments", "routing_unsubscribe"],
    "platform": ["parker", "reclaimer"],
}


def related(place, scenarios):
    """Of those that come by, the ones that are for the file, or for its folder."""
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


def is_caught(scenarios, weakenings, seconds):
    """The scenario that fails, after how many executions, and how; a quick look at all of them first."""
    for part, how in ((0.15, []), (1.0, ["--random-only"])):
        for scenario in scenarios:
            each = max(seconds * part / len(scenarios), 0.1)
            output = explorer("--scenario", scenario, "--quiet", "--first", "--seconds", str(each),
                              *how, *changes(weakenings))
            failure = re.search(r"^(\w+): FAILED after (\d+) executions: (.*)$", output, re.M)
            if failure:
                return failure.group(1), int(failure.group(2)), failure.group(3)
            if ": holds" not in output:
                return scenario, 0, "the explorer itself ended: " + output[-200:]
    return None


def name_of(which, order, to, operation):
    end = "removed" if operation == FENCE and to == RELAXED else NAMES[to]
    return f"{'failure ' if which else ''}{NAMES[order]} -> {end}"


def examine(site, scenarios, seconds, kept, further):
    """The weakenings of one order, each with what caught it or None; `further`: and those of what survives."""
    place, operation, which, order = site
    results, todo, done = [], [(to, True) for to in weaker(operation, which, order)], set()
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


def minimize(ordered, covered, seconds):
    """Weakens for good what survives, one after the other: what is left is all needed."""
    kept = []
    for site in ordered:
        if site not in covered:
            continue
        survivors = [r for r in examine(site, related(site[0], sorted(covered[site])), seconds, kept, True)
                     if r["caught"] is None]
        if survivors:
            kept.append(tuple(survivors[-1]["weakening"]))
            print(f"{site[0]}: {survivors[-1]['change']}", flush=True)
    print(f"{len(kept)} of {len(ordered)} orders may be weaker, all at once")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=10)
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
        if options.minimize:
            return minimize(ordered, covered, options.seconds)
        futures = [(site, pool.submit(examine, site, related(site[0], sorted(covered[site])),
                                      options.seconds, [], options.further) if site in covered else None)
                   for site in ordered]
        return report(futures, options.json)


def report(futures, file):
    totals, everything, last = {}, [], None
    for (place, operation, which, order), future in futures:
        name = place.split(":")[0]
        caught, survived, unseen = totals.setdefault(name, [0, 0, 0])
        if name != last:
            print(f"\n{name}", flush=True)
            last = name
        if future is None:
            missed = len(weaker(operation, which, order))
            totals[name] = [caught, survived, unseen + missed]
            print(f"  {place.split(':')[1]}: {'failure ' if which else ''}{NAMES[order]}: no scenario comes by")
            everything.append({"place": place, "change": NAMES[order], "caught": None, "unseen": True})
            continue
        for result in future.result():
            everything.append(result)
            if result["caught"]:
                by, executions, text = result["caught"]
                what = f"caught by {by} after {executions}: {text[:60]}"
            else:
                what = "SURVIVED"
            # What a survivor was weakened to further is shown, and not counted.
            caught += bool(result["first"] and result["caught"])
            survived += bool(result["first"] and not result["caught"])
            print(f"  {place.split(':')[1]}: {result['change']}: {what}", flush=True)
        totals[name] = [caught, survived, unseen]
    print(f"\n{'file':50} caught survived  not seen")
    for name, (caught, survived, unseen) in totals.items():
        print(f"{name:50} {caught:6} {survived:8} {unseen:9}")
    caught, survived, unseen = (sum(column) for column in zip(*totals.values()))
    print(f"{'all':50} {caught:6} {survived:8} {unseen:9}   {100 * caught / (caught + survived + unseen):.0f} %")
    if file:
        with open(file, "w") as out:
            json.dump(everything, out, indent=1)


if __name__ == "__main__":
    sys.exit(main())
