# SPDX-License-Identifier: GPL-2.0
"""docs/regimes.md with its map, made from docs/results/regimes.json, and that from result.json."""

from __future__ import annotations

import collections
import json
import textwrap
from functools import partial
from pathlib import Path
from typing import Any

from paqm_lab import cache, markdown
from paqm_lab.errors import LabError

Json = dict[str, Any]

DOCS = cache.REPO / "docs"
DATA, PAGE = DOCS / "results" / "regimes.json", DOCS / "regimes.md"
MAP = DOCS / "img" / "regimes.png"
FINE, WORSE = "#009E73", "#D55E00"  # can be told apart by people with colour-blindness
PALE = 0.35  # opacity where the limits are far

HEAD = """# Followers over many links

Streams of `paqm-streamer` that are told their rate by `paqm bandwidth RATE feedback icmp`, all
other options being the defaults, over links of 0.3 to 100 Mbit/s and round trips of 5 to 600 ms;
alone, and with two TCP cubic flows from 8 s on. Where there are two streams or more, one joins at
14 s. Round trips above 100 ms are run again with `rtt auto`. Real kernel, real programs, virtual
time, 24 s, one seed.

```
make regimes            # a part of the grid, out/regimes/result.json
make regimes FULL=1     # all of it
testbed/paqm-lab regimes --points '4m-150-*'
```

This file and its map are made from `docs/results/regimes.json` by `paqm-lab regimes --docs`; do
not edit it.

A point holds if all of the following hold; a packet time is that of 1250 bytes on the link:

* delay of the media packets of the whole run: p95 at most 3 ms + 3 packet times, p99 at most 8 ms
  + 6;
* every stream has settled 2 s + 4 round trips after every change, and nothing is lost later than
  that.

Settled: the rate of the last second stays within 10 % of what is fair until the next change. Fair
is what lies between the max-min share of the link and that of 96 % of it, which is what the queue
hands out. A stream whose pictures need less than it may send counts with what it may send. What
others leave of their shares in that second is anybody's: TCP, which over long round trips takes
many to grow, behind any queue (its column says how much it took), and streams that may have their
share and send less.

A stream's ceiling is 1.5 times its share when all are there, at most 3 Mbit/s (640x360) or 1
Mbit/s (320x180: more than six streams, or shares below 500 kbit/s); where the share is more,
streams are limited by themselves. Points with shares below 100 kbit/s are left out.

![Which points hold, and how near they are to their limits](img/regimes.png)

In the map a figure above 1 is the worst excess: `p95 1.4` is 1.4 times the limit; `settling` and
`loss` likewise name what does not hold. The grid is run in parts: what was run before the newest
version is in italics.
"""


def ratio(row: Json) -> tuple[float, str]:
    """How near a point is to its limits, and which of them is the nearest; infinite: never."""
    want = row["limits"]
    found = []
    for name, key, limit in (
        ("p95", "p95_ms", "p95_ms"),
        ("p99", "p99_ms", "p99_ms"),
        ("settling", "settle_s", "settle_s"),
    ):
        value = row[key]
        found.append((float("inf") if value is None else value / want[limit], name))
    if row["lost_late"]:
        found.append((float("inf"), "loss"))
    return max(found)


def of_newest(data: Json, row: Json) -> bool:
    """Was this point run by the newest version of all points?"""
    return bool(data["versions"]) and row.get("version") == data["versions"][-1]["paqm"]


def _label(row: Json) -> str:
    value, name = ratio(row)
    return f"{name}\n{value:.1f}" if value < float("inf") else name


def draw(data: Json, path: Path) -> None:
    """The map: a panel for each number of streams, load and variant."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    from paqm_lab import plots

    rows = data["points"]
    counts = sorted({row["streams"] for row in rows})
    kinds = sorted({(row["tcp"], row["variant"]) for row in rows})
    capacities = sorted({row["capacity_mbit"] for row in rows})
    trips = sorted({row["rtt_ms"] for row in rows})
    with plots.style():
        figure = Figure(figsize=(3.3 * len(kinds), 2.6 * len(counts)), layout="constrained")
        axes = figure.subplots(len(counts), len(kinds), squeeze=False, sharex=True, sharey=True)
        for panels, count in zip(axes, counts, strict=True):
            for panel, (tcp, variant) in zip(panels, kinds, strict=True):
                for row in rows:
                    if (row["streams"], row["tcp"], row["variant"]) != (count, tcp, variant):
                        continue
                    x, y = trips.index(row["rtt_ms"]), capacities.index(row["capacity_mbit"])
                    near = min(ratio(row)[0], 1)
                    colour = WORSE if row["outside"] else FINE
                    alpha = 0.9 if row["outside"] else PALE * near + 0.15
                    panel.add_patch(
                        Rectangle((x - 0.48, y - 0.48), 0.96, 0.96, facecolor=colour, alpha=alpha)
                    )
                    panel.text(
                        x, y, _label(row), ha="center", va="center", fontsize=6.5,
                        fontstyle="normal" if of_newest(data, row) else "italic",
                    )  # fmt: skip
                some = "1 stream" if count == 1 else f"{count} streams"
                load = ", 2 TCP" if tcp else ""
                panel.set_title(f"{some}{load}{', rtt auto' if variant != 'paqm' else ''}")
                panel.set(
                    xlim=(-0.5, len(trips) - 0.5),
                    ylim=(-0.5, len(capacities) - 0.5),
                    xticks=range(len(trips)),
                    yticks=range(len(capacities)),
                    xticklabels=[str(trip) for trip in trips],
                    yticklabels=[f"{capacity:g}" for capacity in capacities],
                )
                panel.grid(False)
        figure.supxlabel("base round trip, ms", fontsize=9)
        figure.supylabel("capacity, Mbit/s", fontsize=9)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=90, metadata={"Software": None})


_cell = partial(markdown.cell, none="never")


def _limited(value: float | None, limit: float) -> str:
    text = f"{_cell(value, 1)} (≤ {limit:.1f})"
    return text if value is not None and value <= limit else f"**{text}**"


# What was found where such points were looked at; capacity, streams, least round trip.
REASONS = (
    (
        (0.3, 2, 600),
        "Two streams on 0.3 Mbit/s over 600 ms: a packet takes 32 ms, so a few are a queue that "
        "the law wants to drain; both are told 82 to 88 % of their shares from then on.",
    ),
    (
        (1, 2, 0),
        "Two streams beside TCP on 1 Mbit/s: where their pictures come at the same moment five "
        "packets of 10 ms wait for each other, and for the one of TCP that is under way. Whether "
        "they do is chance: one run of such a point had 20 ms at p95, another 42.",
    ),
    (
        (1, 6, 0),
        "Six streams on 1 Mbit/s: one packet of 10 ms of each is twice the limit; how often four "
        "of them meet decides.",
    ),
    (
        (1, 6, 600),
        "Six streams on 1 Mbit/s over 600 ms: what is told too much shows a round trip later, and "
        "is taken back another one later. A mean excess of 4 % for that time is a queue of 50 ms.",
    ),
    (
        (4, 6, 600),
        "Six streams on 4 Mbit/s over 600 ms: they begin at 4.5 Mbit/s together, and nobody hears "
        "anything for 0.6 s. What is beyond a stream's rate waits in its own queue, up to 185 ms, "
        "1.2 s after the start; that second is more than 1 % of all packets.",
    ),
    (
        (4, 30, 0),
        "Thirty streams on 4 Mbit/s: messages may take half a per cent of the link, so when all "
        "begin within half a second the last ones are told 1.6 s later, and until then go by "
        "their own control, which climbs. The rate of the last second has settled some time "
        "after that. Over 300 ms and more all send too much for a second, 20 to 40 ms wait in "
        "it, and it is more than 1 % of all packets.",
    ),
)


def reasons(rows: list[Json]) -> list[str]:
    """Why points do not hold, as far as that is known."""
    lines = []
    for (capacity, streams, rtt), text in REASONS:
        if any(
            row["capacity_mbit"] == capacity and row["streams"] == streams and row["rtt_ms"] >= rtt
            for row in rows
        ):
            lines += ["", *textwrap.wrap(text, 99)]
    return lines


def outside(data: Json) -> list[str]:
    """Every point that does not hold, with its figures."""
    rows = [row for row in data["points"] if row["outside"]]
    lines = ["", "## Points that do not hold", ""]
    if not rows:
        return [*lines, "None."]
    names = ("point", "", "p95, ms", "p99, ms", "settling, s", "lost", "late", "share, mean %",
             "least")  # fmt: skip
    lines += [markdown.row(*names), "|---|---|" + "--:|" * (len(names) - 2)]
    for row in rows:
        want = row["limits"]
        lines.append(
            markdown.row(
                row["title"],
                "rtt auto" if row["variant"] != "paqm" else "",
                _limited(row["p95_ms"], want["p95_ms"]),
                _limited(row["p99_ms"], want["p99_ms"]),
                _limited(row["settle_s"], want["settle_s"]),
                str(row["lost"]),
                f"**{row['lost_late']}**" if row["lost_late"] else "0",
                _cell(row["share_percent_mean"], 1),
                _cell(row["share_percent_least"], 1),
            )
        )
    return lines + reasons(rows)


def page(data: Json) -> str:
    """docs/regimes.md."""
    part = data["grid"]
    lines = [HEAD, f"{part['run']} of the {part['points']} points of the grid have been run.", ""]
    lines += [markdown.row("variant", "points that hold", "wanted"), "|---|--:|--:|"]
    for check in data["checks"]:
        title = "default" if check["variant"] == "paqm" else "`rtt auto`"
        value = f"{check['value']:g} %" if check["pass"] else f"**{check['value']:g} %**"
        lines.append(markdown.row(title, value, f"≥ {check['limit']:g} %"))
    lines += outside(data)
    if data["versions"]:
        counts = collections.Counter(row["version"] for row in data["points"])
        names = dict.fromkeys(one["paqm"] for one in reversed(data["versions"]))
        parts = [f"{name} ({counts[name]} points)" for name in names]
        kernel = data["versions"][-1]["kernel"]
        lines += ["", f"Versions, newest first: {', '.join(parts)}; the newest on Linux {kernel}."]
    return "\n".join(lines) + "\n"


def write(text: str) -> list[Path]:
    """Data, page and map from the text of a result.json."""
    data = json.loads(text)
    if not data["points"]:
        raise LabError("no point has been run; run `make regimes` first")
    DATA.parent.mkdir(parents=True, exist_ok=True)
    DATA.write_text(text)
    PAGE.write_text(page(data))
    draw(data, MAP)
    return [DATA, PAGE, MAP]
