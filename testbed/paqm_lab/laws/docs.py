# SPDX-License-Identifier: GPL-2.0
"""docs/laws.md with its map from docs/results/laws.json; rows as text are the catalogue's."""

from __future__ import annotations

import json
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

from paqm_lab import cache, markdown, suite
from paqm_lab.catalogue.docs import as_text, number, only_run
from paqm_lab.errors import LabError
from paqm_lab.laws import cases, stabmap
from paqm_lab.laws.findings import FINDINGS
from paqm_lab.laws.stabmap import CALM, Point

__all__ = ["as_text"]

Json = dict[str, Any]

DOCS = cache.REPO / "docs"
DATA, PAGE = DOCS / "results" / "laws.json", DOCS / "laws.md"
MAP = DOCS / "img" / "laws-map.png"
FINE, WORSE = "#009E73", "#D55E00"  # can be told apart by people with colour-blindness
EDGES = {"stable": "-", "depends": "--", "unstable": ":"}

HEAD = f"""# Laws side by side

The laws of the outer loop, and the published queue, on the same loads; then the map of where the
published gains are stable, with what theory says of each point. Real kernel, real messages, virtual
time, one seed.

```
make laws               # all scenarios, a part of the map: out/laws/result.json
make laws FULL=1        # the whole map
testbed/paqm-lab laws --rows 'tcp.*,map.fast.100.*'
```

This file and its map are made from `docs/results/laws.json` by `paqm-lab laws --docs`; do not edit
it. Rows are run and judged as those of the [catalogue](catalogue.md) are.

* **default law**: `paqm bandwidth RATE feedback icmp`; **law erf**, **law ecf**: the same with that
  law; **preset thesis-erf**, **thesis-ecf**: the published queue, its period 0.5 s behind the round
  trip. Under law ecf senders believe relative values where the absolute rate allows, under preset
  thesis-ecf relative values alone.
* **Settled**: from then on, until the next change, every mean over 0.5 s of every media flow is
  within 10 % of its max-min share of what the law hands out (96 % of the link, presets 95 %); of
  video the mean over 1.6 s of all flows together. The slowest change is shown, and how many never
  settled.
* **Delay**: of all media packets, what they wait beyond their way's own delay.
* **Jain**: of rates against shares in the second half of the time between two changes, the least.
* **Share**: the least and the largest part of its share that a flow has in that time.
* **Use**: of the links, mean over all of them, start and all.

Round trip 40 ms where nothing else is said. Constant sources answer at once, video by groups of
pictures. Bounds are asked of the default law: settled after {cases.SETTLE_S:g} s (X4; where senders
answer late, or messages travel far, by as much more), Jain {cases.JAIN:g}.
"""

MAP_HEAD = f"""## Where the published gains are stable

Pre-encoded video under `preset thesis-erf` with the gains of `profile fast` (0.75, 0.35) and
`robust` (0.484, 0.131), {stabmap.SHARE // 1000} kbit/s of the link for each flow. The router
measures for 0.5 s, or for a group of pictures if that is longer and it is told so (`gop`); the rows
*not told* measure for 0.5 s whatever the senders do. Runs have {stabmap.PERIODS} periods, at
least {stabmap.LEAST_S:g} s. *Told*: the deviation of the rate that the first flow is told in the
last third, cut at what a flow can send, in percent of its mean; calm is up to {CALM:g} %. *Sent*:
the same of what all send in the time of a group. Delay, loss and use are those of the second half.

Theory (testbed/paqm_lab/stability.py): a recursion with senders whose new rate is in force a round
trip and up to a group of pictures after the message. *Spread*: flows answer evenly over that time;
*late*: all at its end, as one flow may. A disturbance grows by that factor in each period: *stable*
where both are below 1, *unstable* where none is, *depends* where only late ones diverge.

![Deviation of the rate that is told, by round trip and group of pictures](img/laws-map.png)

Green: calm. Full frame: theory says stable, dashed: it depends, dotted: unstable.
"""


def values_of(row: Json) -> dict[str, float | None]:
    return {figure["id"]: figure["value"] for figure in row["figures"]}


_cell = partial(markdown.cell, none="")


def _bold(row: Json, name: str, text: str) -> str:
    """Marks what does not hold its bound."""
    figure = next(f for f in row["figures"] if f["id"] == name)
    return f"**{text}**" if figure["pass"] is False else text


def settled(row: Json) -> str:
    of = values_of(row)
    if of["changes"] is None:
        return ""
    if of["unsettled"]:
        return _bold(row, "settled", f"never, {of['unsettled']:.0f} of {of['changes']:.0f}")
    return _bold(row, "settled", _cell(of["settled"], 2))


def table(scenario: cases.Scenario, rows: list[Json]) -> list[str]:
    """A scenario: its laws, one each line."""
    lines = ["", f"### `{scenario.id}`: {scenario.title}", ""]
    names = ("law", "settled, s", "p95, ms", "p99, ms", "max, ms", "lost, %", "Jain", "share, %",
             "use, %")
    lines += [markdown.row(*names), "|---|" + "--:|" * (len(names) - 1)]
    for row in rows:
        of = values_of(row)
        share = f"{100 * (of['least'] or 0):.0f} to {100 * (of['most'] or 0):.0f}"
        lines.append(markdown.row(
            cases.LAWS[row["id"].split(".")[1]], settled(row), _cell(of["p95"], 1),
            _cell(of["p99"], 1), _cell(of["max"], 1), _cell(of["lost"], 2),
            _bold(row, "jain", _cell(of["jain"], 4)), share, _cell(of["use"], 1),
        ))  # fmt: skip
    if scenario.model:
        said = ", ".join(f"{name} {number(value)} {'s' if name == 'settled' else 'ms'}"
                         for name, value in scenario.model.items())
        lines += ["", f"A fluid model of the default law has {said}."]
    return lines + (["", FINDINGS[scenario.id]] if scenario.id in FINDINGS else [])


def points_of(data: Json) -> list[tuple[Point, Json]]:
    """The points of the map that have been run."""
    known = {row["id"]: row for row in data["rows"] if row["runs"]}
    return [(point, known[point.id]) for point in stabmap.grid() if point.id in known]


def is_calm(row: Json) -> bool:
    value = values_of(row)["told"]
    return value is not None and value <= CALM


def agreement(points: list[tuple[Point, Json]]) -> list[str]:
    """How many points of each verdict are calm."""
    count = Counter((stabmap.said(stabmap.theory(point)), is_calm(row)) for point, row in points)
    lines = ["", markdown.row("theory", "points", "calm", "not calm"), "|---|--:|--:|--:|"]
    for word in ("stable", "depends", "unstable"):
        calm, not_calm = count[word, True], count[word, False]
        lines.append(markdown.row(word, str(calm + not_calm), str(calm), str(not_calm)))
    return lines


def map_table(points: list[tuple[Point, Json]]) -> list[str]:
    names = ("gains", "round trip, ms", "group, s", "flows", "theory", "spread", "late", "told, %",
             "sent, %", "p99, ms", "lost, %", "use, %")
    lines = ["", markdown.row(*names), "|---|" + "--:|" * 3 + "---|" + "--:|" * 7]
    for point, row in points:
        of, grows = values_of(row), stabmap.theory(point)
        told = _cell(of["told"], 1)
        group = f"{point.gop_s:.2f}{'' if point.told else ', not told'}"
        lines.append(markdown.row(
            point.gains, str(point.rtt_ms), group, str(point.flows),
            stabmap.said(grows), _cell(grows["spread"], 2), _cell(grows["last"], 2),
            told if is_calm(row) else f"**{told}**", _cell(of["swing"], 1), _cell(of["p99"], 0),
            _cell(of["lost"], 2), _cell(of["use"], 0),
        ))  # fmt: skip
    return lines


def page(data: Json) -> str:
    """docs/laws.md."""
    rows = {row["id"]: row for row in data["rows"] if row["runs"]}
    points = points_of(data)
    held = [row for row in rows.values() if "pass" in row]
    good = sum(row["pass"] for row in held)
    whole = len(cases.SCENARIOS) * len(cases.LAWS)
    lines = [HEAD, f"{len(rows) - len(points)} of {whole} rows and {len(points)} of "
             f"{len(stabmap.grid())} points of the map have been run. Of the {len(held)} of which "
             f"bounds are asked, {good} hold them.", "",
             "## What it says", "", FINDINGS["all"], "", "## Scenarios"]
    for scenario in cases.SCENARIOS:
        ids = [f"{scenario.id}.{law}" for law in cases.LAWS]
        found = [rows[id_] for id_ in ids if id_ in rows]
        if found:
            lines += table(scenario, found)
    lines += ["", MAP_HEAD, FINDINGS["map"], *agreement(points), *map_table(points)]
    text = "\n".join(lines).rstrip() + "\n"
    while "\n\n\n" in text:
        text = text.replace("\n\n\n", "\n\n")
    return text


def draw(points: list[tuple[Point, Json]], path: Path) -> None:
    """The map: a panel for each number of flows and gains."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    from paqm_lab import plots

    flows = sorted({point.flows for point, _ in points})
    trips = sorted({point.rtt_ms for point, _ in points})
    groups = sorted({(not point.told, point.gop) for point, _ in points})
    with plots.style():
        figure = Figure(figsize=(1.2 + (0.5 + 0.55 * len(trips)) * len(flows),
                                 1.2 + 0.8 * len(groups)), layout="constrained")  # fmt: skip
        panels = figure.subplots(len(stabmap.GAINS), len(flows), squeeze=False, sharex=True,
                                 sharey=True)
        at = {(gains, count): panels[i][k] for i, gains in enumerate(stabmap.GAINS)
              for k, count in enumerate(flows)}
        for (gains, count), panel in at.items():
            panel.set_title(f"{gains}, {count} flow{'s' * (count > 1)}")
            panel.set(xlim=(-0.5, len(trips) - 0.5), ylim=(-0.5, len(groups) - 0.5),
                      xticks=range(len(trips)), yticks=range(len(groups)),
                      xticklabels=[str(trip) for trip in trips],
                      yticklabels=[f"{gop / stabmap.FPS:.2f}{', not told' * unknown}"
                                   for unknown, gop in groups])  # fmt: skip
            panel.grid(False)
        for point, row in points:
            panel = at[point.gains, point.flows]
            x, y = trips.index(point.rtt_ms), groups.index((not point.told, point.gop))
            panel.add_patch(Rectangle(
                (x - 0.44, y - 0.44), 0.88, 0.88, facecolor=FINE if is_calm(row) else WORSE,
                alpha=0.45, edgecolor="none"))
            panel.add_patch(Rectangle(
                (x - 0.44, y - 0.44), 0.88, 0.88, fill=False, edgecolor="#222222", linewidth=1.3,
                linestyle=EDGES[stabmap.said(stabmap.theory(point))]))
            panel.text(x, y, _cell(values_of(row)["told"], 0), ha="center", va="center",
                       fontsize=7.5)
        figure.supxlabel("round trip, ms", fontsize=9)
        figure.supylabel("group of pictures, s", fontsize=9)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=100, metadata={"Software": None})


def write(text: str) -> list[Path]:
    """Data, page and map from the text of a result.json; what has not been run is left out."""
    data = only_run(json.loads(text))
    points = points_of(data)
    if not points:
        raise LabError("no point of the map has been run; run `make laws` first")
    DATA.parent.mkdir(parents=True, exist_ok=True)
    DATA.write_text(suite.as_json(data))
    PAGE.write_text(page(data))
    draw(points, MAP)
    return [DATA, PAGE, MAP]
