#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the EventCore authors
"""Draws the figures of the README, of Documentation/Architecture.md and of the DocC articles.

    scripts/draw-figures.py [FOLDER]     writes the SVGs there; without an argument where they are committed
    scripts/draw-figures.py --dark FOLDER    with the dark colours only, to look at with tools that know no media query

Each figure has its own background, so that it can be read on any page, and takes the dark colours where the reader
prefers them. Text that would not fit its box is an error. scripts/check-documents.sh compares the committed files
with what this script writes.
"""
import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "Sources/EventCore/EventCore.docc/Resources"

# name: (light, dark)
COLOURS = {
    "page": ("#ffffff", "#14181f"),
    "text": ("#1b2430", "#e8edf4"),
    "muted": ("#55606e", "#a9b4c2"),
    "box": ("#f3f6fa", "#212834"),
    "line": ("#8494a7", "#6c7b8f"),
    "arrow": ("#2f6fce", "#7db1ff"),
    "return": ("#2c8a57", "#6fd19a"),
    "producer": ("#e6effc", "#1a2638"),
    "consumer": ("#e7f5ec", "#18291f"),
    "accent": ("#2f6fce", "#7db1ff"),
    "badge": ("#ffffff", "#14181f"),
    "marked": ("#dbe8fb", "#26405f"),
}
# The width of a character in parts of the font's size: that of the widest common fonts.
REGULAR = 0.58
BOLD = 0.64


def width(text, size, bold=False):
    return len(text) * size * (BOLD if bold else REGULAR)


class Figure:
    def __init__(self, name, title, description, size, dark_only):
        self.name, self.size = name, size
        self.parts = []
        style = []

        def rules(index):
            c = {key: value[index] for key, value in COLOURS.items()}
            return [
                f".page{{fill:{c['page']}}}",
                f".box{{fill:{c['box']};stroke:{c['line']};stroke-width:1.5}}",
                f".marked{{fill:{c['marked']};stroke:{c['accent']};stroke-width:2}}",
                f".lane{{fill:{c['page']};stroke:{c['line']};stroke-width:1}}",
                f".filled{{fill:{c['accent']}}}",
                f".producer{{fill:{c['producer']}}}",
                f".consumer{{fill:{c['consumer']}}}",
                f".link{{stroke:{c['line']};stroke-width:1.5;fill:none}}",
                f".arrow{{stroke:{c['arrow']};stroke-width:2;fill:none}}",
                f".head{{fill:{c['arrow']}}}",
                f".back{{stroke:{c['return']};stroke-width:2;fill:none;stroke-dasharray:6 4}}",
                f".backhead{{fill:{c['return']}}}",
                f".badge{{fill:{c['accent']}}}",
                f".number{{fill:{c['badge']};font-weight:600}}",
                f".text{{fill:{c['text']}}}",
                f".bold{{fill:{c['text']};font-weight:600}}",
                f".muted{{fill:{c['muted']}}}",
            ]

        style += rules(1 if dark_only else 0)
        if not dark_only:
            style.append("@media (prefers-color-scheme: dark){" + "".join(rules(1)) + "}")
        w, h = size
        self.parts += [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img" '
            f'aria-labelledby="title description" '
            f"font-family=\"system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', Helvetica, Arial, sans-serif\">",
            f'<title id="title">{title}</title>',
            f'<desc id="description">{description}</desc>',
            "<style>" + "\n".join(style) + "</style>",
            f'<rect class="page" width="{w}" height="{h}" rx="8"/>',
        ]

    def add(self, element):
        self.parts.append(element)

    def text(self, x, y, text, kind="text", size=14, anchor="middle", room=None):
        """Writes a line of text, and refuses it if it needs more than `room`, or leaves the figure."""
        needed = width(text, size, kind in ("bold", "number"))
        left = x - {"start": 0, "middle": needed / 2, "end": needed}[anchor]
        if room is not None and needed > room:
            sys.exit(f"{self.name}: “{text}” needs {needed:.0f} and has {room:.0f}")
        if left < 0 or left + needed > self.size[0] or not size <= y <= self.size[1]:
            sys.exit(f"{self.name}: “{text}” leaves the figure")
        escaped = text.replace("&", "&amp;").replace("<", "&lt;")
        self.add(f'<text class="{kind}" x="{x}" y="{y}" font-size="{size}" text-anchor="{anchor}">{escaped}</text>')

    def box(self, x, y, w, h, title, lines=(), kind="box"):
        self.add(f'<rect class="{kind}" x="{x}" y="{y}" width="{w}" height="{h}" rx="6"/>')
        first = y + 22
        if not lines:
            first = y + h / 2 + 5
        if title:
            self.text(x + w / 2, first, title, "bold", 15, room=w - 12)
        for index, line in enumerate(lines):
            self.text(x + w / 2, first + 19 + 17 * index, line, "muted", 12.5, room=w - 12)
            if first + 19 + 17 * index > y + h - 5:
                sys.exit(f"{self.name}: “{line}” is below its box")

    def band(self, x, y, w, h, kind, label):
        self.add(f'<rect class="{kind}" x="{x}" y="{y}" width="{w}" height="{h}" rx="8"/>')
        self.text(x + w / 2, y + 20, label, "muted", 13, room=w - 12)

    def arrow(self, points, kind="arrow"):
        """A line through points, with a head at the last."""
        head = "head" if kind == "arrow" else "backhead"
        (x0, y0), (x1, y1) = points[-2:]
        length = ((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5
        ux, uy = (x1 - x0) / length, (y1 - y0) / length
        bx, by = x1 - 9 * ux, y1 - 9 * uy
        line = " ".join(f"{x:g},{y:g}" for x, y in points[:-1]) + f" {bx:g},{by:g}"
        self.add(f'<polyline class="{kind}" points="{line}"/>')
        tip = " ".join(
            f"{x:.1f},{y:.1f}" for x, y in [(x1, y1), (bx - 5 * uy, by + 5 * ux), (bx + 5 * uy, by - 5 * ux)])
        self.add(f'<polygon class="{head}" points="{tip}"/>')

    def print(self):
        return "\n".join(self.parts + ["</svg>"]) + "\n"


def event_flow(dark_only):
    """The way of one event, and of the memory it travels in."""
    f = Figure(
        "event-flow", "The way of one event",
        "An event is dispatched to a router, which knows who receives its type. The dispatching thread takes an envelope "
        "from its slab pool and puts it into the receiver's mailbox, which has ten lanes. The consumer takes the most "
        "urgent envelope and calls the handlers; the envelope goes back to the slab pool it came from.",
        (980, 432), dark_only)
    f.band(14, 14, 500, 404, "producer", "on the thread that dispatches")
    f.band(522, 14, 444, 404, "consumer", "on the consumer’s thread, queue or actor")

    f.box(26, 92, 144, 84, "event.queue()", ["or stack(), in", "any thread"])
    f.box(214, 92, 150, 84, "router", ["event type →", "receivers"])
    f.box(412, 52, 204, 208, "", (), "box")
    f.text(514, 74, "mailbox", "bold", 15, room=190)
    for lane in range(10):
        x, y = 428 + 92 * (lane // 5), 104 + 28 * (lane % 5)
        f.add(f'<rect class="lane" x="{x}" y="{y}" width="80" height="20" rx="3"/>')
        for slot in range((0, 1, 2, 1, 0, 0, 2, 5, 3, 1)[lane]):
            f.add(f'<rect class="filled" x="{x + 4 + 15 * slot}" y="{y + 4}" width="11" height="12" rx="2"/>')
    f.text(468, 95, "stacks", "muted", 12, room=80)
    f.text(560, 95, "queues", "muted", 12, room=80)
    f.text(514, 254, "most urgent on top", "muted", 12, room=190)
    f.box(660, 92, 130, 84, "consumer", ["takes the most", "urgent event"])
    f.box(838, 92, 114, 84, "handlers", ["your code, one", "at a time"])
    f.arrow([(170, 134), (214, 134)])
    f.arrow([(364, 134), (412, 134)])
    f.arrow([(616, 134), (660, 134)])
    f.arrow([(790, 134), (838, 134)])
    f.text(388, 122, "post", "muted", 12, room=46)

    f.box(26, 318, 144, 84, "scheduler", ["dispatches when", "it is time"])
    f.arrow([(98, 318), (98, 176)])
    f.box(214, 318, 204, 84, "slab pool", ["64-byte slots of the", "dispatching thread"])
    f.arrow([(290, 318), (290, 176)])
    f.text(300, 232, "takes an", "muted", 12.5, "start", room=100)
    f.text(300, 249, "envelope", "muted", 12.5, "start", room=100)
    f.box(660, 318, 292, 84, "return cache", ["gathers what was handled and tells", "each slot’s owner many at a time"])
    f.arrow([(895, 176), (895, 318)], "back")
    f.text(884, 232, "the event", "muted", 12.5, "end", room=100)
    f.text(884, 249, "is over", "muted", 12.5, "end", room=100)
    f.arrow([(660, 360), (418, 360)], "back")
    f.text(539, 348, "the slot is free again", "muted", 12.5, room=230)
    return f


def tree(dark_only):
    """The three phases of an event that is raised in a tree."""
    f = Figure(
        "tree-phases", "An event is raised in a tree",
        "A tree of four nodes: app, below it cart and badge, below cart item. The event is raised at cart. In the capture "
        "phase app and cart are called, in the raise phase cart and app, in the propagate phase app, cart, item and badge.",
        (980, 372), dark_only)
    f.text(490, 34, "cart.raise(event: ItemAdded(count: 1))", "bold", 16, room=900)
    phases = [
        ("1. capture", "from the root to the source", ["app", "cart"]),
        ("2. raise", "from the source to the root", ["cart", "app"]),
        ("3. propagate", "from the root to every node", ["app", "cart", "item", "badge"]),
    ]
    for column, (title, what, order) in enumerate(phases):
        left = 20 + 316 * column
        f.add(f'<rect class="producer" x="{left}" y="54" width="308" height="304" rx="8"/>')
        f.text(left + 154, 80, title, "bold", 15, room=296)
        f.text(left + 154, 100, what, "muted", 13, room=296)
        places = {"app": (left + 170, 146), "cart": (left + 98, 226), "badge": (left + 242, 226),
                  "item": (left + 98, 306)}
        for parent, child in (("app", "cart"), ("app", "badge"), ("cart", "item")):
            (px, py), (cx, cy) = places[parent], places[child]
            f.add(f'<line class="link" x1="{px}" y1="{py + 18}" x2="{cx}" y2="{cy - 18}"/>')
        # The arrows run beside the links, on their left.
        if column == 0:
            f.arrow([(left + 128, 168), (left + 72, 204)])
        elif column == 1:
            f.arrow([(left + 72, 204), (left + 128, 168)])
        else:
            f.arrow([(left + 128, 168), (left + 72, 204)])
            f.arrow([(left + 80, 248), (left + 80, 286)])
            f.arrow([(left + 212, 168), (left + 268, 204)])
        for name, (x, y) in places.items():
            kind = "marked" if name == "cart" else "box"
            f.add(f'<rect class="{kind}" x="{x - 44}" y="{y - 18}" width="88" height="36" rx="6"/>')
            f.text(x, y + 5, name, "bold", 15, room=80)
            if name in order:
                f.add(f'<circle class="badge" cx="{x + 44}" cy="{y - 18}" r="11"/>')
                f.text(x + 44, y - 13.5, str(order.index(name) + 1), "number", 13)
    return f


# Of a trace that `eventcore-demo --seconds 2 --load 40 --trace FILE` has written, in microseconds: one round of samples.
# Type, moment of its dispatch, and where and how long it was handled: begin and duration on each thread.
ROUND = [
    ("CPUTime", 11.9, {"spikes": (19.7, 0.30), "rates": (39.5, 0.18)}),
    ("Interrupt", 12.4, {"spikes": (18.0, 0.50), "rates": (34.4, 2.67)}),
    ("ContextSwitch", 12.7, {"spikes": (18.9, 0.20), "rates": (37.7, 0.36)}),
    ("Memory", 13.0, {"spikes": (21.2, 0.27), "rates": (41.0, 0.85)}),
    ("Network", 13.2, {"spikes": (20.2, 0.29), "rates": (39.8, 0.32)}),
    ("Disk", 13.5, {"spikes": (20.6, 0.16), "rates": (40.2, 0.22)}),
]


def trace(dark_only):
    """A part of a trace: slices of three threads, and arrows from dispatches to handlings."""
    f = Figure(
        "trace", "A part of a trace",
        "Time lines of three threads. The thread eventcore-demo dispatches six events within two microseconds. The thread "
        "spikes handles them five microseconds later, the thread rates after 21 microseconds; both begin with the interrupt "
        "event, which is the most urgent, and end with the memory event. An arrow leads from each dispatch to its handlings.",
        (980, 330), dark_only)

    def at(time):
        return round(150 + (time - 10) * 25, 1)

    rows = {"rates": 60, "eventcore-demo": 150, "spikes": 240}
    for name, y in rows.items():
        f.add(f'<rect class="lane" x="140" y="{y}" width="826" height="34" rx="4"/>')
        f.text(132, y + 22, name, "bold", 13.5, "end", room=122)
    for time in range(10, 43, 4):
        f.add(f'<line class="link" x1="{at(time):g}" y1="48" x2="{at(time):g}" y2="286" opacity="0.25"/>')
        f.text(at(time), 42, f"{time - 10} µs", "muted", 12)
    for _, dispatched, handled in ROUND:
        for name, (begin, _) in handled.items():
            down = rows[name] > rows["eventcore-demo"]
            x0, y0 = at(dispatched), rows["eventcore-demo"] + (34 if down else 0)
            x1, y1, bend = at(begin), rows[name] + (0 if down else 34), 46 if down else -46
            f.add(f'<path class="arrow" d="M{x0:g} {y0}C{x0:g} {y0 + bend} {x1:g} {y1 - bend} {x1:g} {y1}" opacity="0.55"/>')
    for _, dispatched, handled in ROUND:
        f.add(f'<rect class="filled" x="{at(dispatched) - 1.5:g}" y="{rows["eventcore-demo"]}" width="3" height="34"/>')
        for name, (begin, length) in handled.items():
            width_ = max(2.5, round(length * 25, 1))
            f.add(f'<rect class="marked" x="{at(begin):g}" y="{rows[name]}" width="{width_:g}" height="34"/>')
    f.text(at(14.2), rows["eventcore-demo"] + 22, "six dispatches", "muted", 12.5, "start")
    f.text(at(22.2), rows["spikes"] + 22, "each handler took 0.2 to 0.5 µs, after waiting 5.6 to 8.2 µs", "muted", 12.5, "start")
    f.text(at(34.0), rows["rates"] + 22, "the most urgent event comes first, though it was dispatched second", "muted", 12.5,
           "end")
    f.text(490, 312, "a slice for each dispatch and each handling; an arrow from the one to the other", "muted", 13, room=900)
    return f


def main(arguments):
    dark_only = "--dark" in arguments
    folders = [a for a in arguments if not a.startswith("--")]
    folder = pathlib.Path(folders[0]) if folders else FOLDER
    if dark_only and not folders:
        sys.exit("--dark needs a folder: the committed figures have both kinds of colours.")
    folder.mkdir(parents=True, exist_ok=True)
    for draw in (event_flow, tree, trace):
        figure = draw(dark_only)
        (folder / f"{figure.name}.svg").write_text(figure.print(), encoding="utf-8")


main(sys.argv[1:])
