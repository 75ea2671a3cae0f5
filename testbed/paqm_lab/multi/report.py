# SPDX-License-Identifier: GPL-2.0
"""report.html of the runs with several routers, and the table for docs/multirouter.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from paqm_lab import plots, report
from paqm_lab.multi import paths
from paqm_lab.multi.case import MBIT, Case, Run

# Colours for eight groups of GFC-2, distinguishable with colour-blindness.
COLOURS = [*plots.FLOW_COLOURS, "#D55E00", "#444444"]
WINDOW = {"gfc2": 0.6, "parking": 0.6}

# Sections of report and table: first word of a case's name, title, what it is about.
SECTIONS = [
    ("gfc2", "GFC-2",
     "Seven routers in line, six bottlenecks, 22 CBR flows whose max-min shares are 2, 4, 14 and "
     "21 Mbit/s (ATM Forum 94-0557). Each router knows its own flows only; each sender takes the "
     "least of what its routers say."),
    ("parking", "Parking lot",
     "Long flows over three bottlenecks beside short ones over one. Laws that see one bit of "
     "congestion per link starve the long ones."),
    ("loss30", "Lost feedback", "Messages, and only they, are dropped at random on their way."),
    ("loss50", "", ""),
    ("twice", "Feedback that is doubled, late, out of order", "By netem, messages only."),
    ("reorder", "", ""),
    ("late", "", ""),
    ("congested", "Congested way back",
     "The link back to the sender carries 400 kbit/s and is offered 500 by others: its queue is "
     "full all the time, a fifth of what comes is lost, messages among it."),
    ("route", "Route changes", ""),
    ("reboot", "Routers that restart, fall silent, lie", ""),
    ("silent", "", ""),
    ("liar", "", ""),
    ("block", "Firewall, NAT, asymmetric routes", ""),
    ("nat", "", ""),
    ("asymmetric", "", ""),
]


def kind(name: str) -> str:
    """What a case is a variant of."""
    return name.split("-")[0]


def _draw(axes: Axes, case: Case, run: Run) -> None:
    """Rates over time of one case, with the shares dashed and what happened."""
    groups: dict[str, str] = {}
    streams = case.facts.get("streams")
    udp = [flow.name for flow in case.flows if flow.sender != "tcp"]
    names = [s[0] for s in streams] if streams else udp
    top = 0.0
    for name in names:
        group = name.split(".")[0]
        if kind(case.name) in WINDOW:
            group = group.rstrip("123")
        first = group not in groups
        colour = groups.setdefault(group, COLOURS[len(groups) % len(COLOURS)])
        window = WINDOW.get(kind(case.name), 0.5)
        if streams:
            t, rate = paths.stream_series(run, name, 1.0)
        else:
            t, rate = run.series(run.flow(name), window)
        shown = t <= case.duration
        t, rate = t[shown], np.where(rate[shown] > 0, rate[shown] / MBIT, np.nan)
        top = max(top, float(np.nanmax(rate)))
        axes.plot(t, rate, color=colour, linewidth=1.0, label=group if first else None)
        steps = [(begin, s[name] / MBIT) for begin, s in case.shares if name in s]
        if first and steps:
            times = [b for b, _ in steps] + [case.duration]
            level = [v for _, v in steps] + [steps[-1][1]]
            axes.plot(times, level, color=colour, linewidth=0.9, linestyle=(0, (4, 2)),
                      drawstyle="steps-post")
            top = max(top, max(level))
    for when, text in case.marks:
        axes.axvline(when, color="#AAAAAA", linewidth=0.8, linestyle=(0, (1, 2)), zorder=1)
        axes.annotate(plots.plain(text), (when, 1), xycoords=("data", "axes fraction"),
                      xytext=(2, -2), textcoords="offset points", fontsize=7.5, color="#666666",
                      va="top").set_in_layout(False)
    axes.set(xlim=(0, case.duration), ylim=(0, top * 1.12), xlabel="time, s",
             title=plots.plain(case.title))
    axes.legend(loc="upper right", ncols=4, fontsize=7, handlelength=1.2, columnspacing=0.8,
                framealpha=0.8, frameon=True, edgecolor="none")


def diagram(cases: list[Case], out: Path) -> Figure:
    """Panels of a section, two in a row."""
    rows = (len(cases) + 1) // 2
    figure = Figure(figsize=(plots.WIDTH, 3.2 * rows), layout="constrained")
    axes = figure.subplots(rows, 2, squeeze=False)
    for place, case in zip(axes.flat, cases, strict=False):
        _draw(place, case, Run(case, out / case.name))
    for place in list(axes.flat)[len(cases):]:
        place.set_axis_off()
    for row in axes:
        row[0].set_ylabel("rate, Mbit/s")
    return figure


def image(cases: list[Case], out: Path, target: Path) -> None:
    """GFC-2 and the parking lot, for a page that takes pictures only."""
    chosen = [case for case in cases if case.name in ("gfc2-maxmin", "gfc2-erf", "parking-maxmin",
                                                      "parking-ecf")]
    with plots.style():
        diagram(chosen, out).savefig(target, dpi=80, metadata={"Software": None})


def sections(cases: list[Case]) -> list[tuple[str, str, list[Case]]]:
    """Title, text and cases of every section that has some; one for those of a scenario."""
    if not any(kind(case.name) == first for case in cases for first, _, _ in SECTIONS):
        return [("Rates", "", cases)] if cases else []
    found: list[tuple[str, str, list[Case]]] = []
    for first, title, words in SECTIONS:
        chosen = [case for case in cases if kind(case.name) == first]
        if title:
            found.append((title, words, chosen))
        else:
            found[-1][2].extend(chosen)
    return [section for section in found if section[2]]


def write(result: dict[str, Any], cases: list[Case], out: Path) -> Path:
    """report.html."""
    parts = []
    several = result["scenario"] == "multirouter"
    command = "make multirouter" if several else f"testbed/paqm-lab run {result['scenario']}"
    with plots.style():
        for title, words, chosen in sections(cases):
            drawing = plots.svg(diagram(chosen, out), title)
            notes = "".join(
                f"<li><b>{report.text(c.title)}.</b> {report.text(c.words)}</li>" for c in chosen)
            mine = [c.name for c in chosen]
            shown = {"checks": [c | {"name": f"{c['variant']}: {c['name']}"}
                                for c in result["checks"] if c["variant"] in mine]}
            parts.append(
                f"<section><h2>{report.text(title)}</h2><p>{report.text(words)}</p>{drawing}"
                f"<ul>{notes}</ul>{report.checks_table(shown)}</section>")
    passed = sum(check["pass"] for check in result["checks"])
    versions = "".join(f"<tr><td>{report.text(k)}</td><td>{report.text(v)}</td></tr>"
                       for k, v in result["versions"].items())
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{report.text(result['title'])}</title><style>{report.CSS}</style></head>"
        f"<body><main><h1>{report.text(result['title'])}</h1><p class='lead'>Real qdiscs in router "
        "namespaces, a real paqmd on every sender's host, CBR sources that send what it allows; "
        "virtual time. Rates are those of arrival at the receiver, IP level, mean of half a second "
        "(0.6 s where the published figures are). Dashed: what each flow should have. "
        f"{passed} of {len(result['checks'])} checks pass.</p>{''.join(parts)}"
        f"<section><h2>How to repeat it</h2><pre>{report.text(command)}</pre>"
        f"<table>{versions}</table></section></main></body></html>\n"
    )
    path = out / "report.html"
    path.write_text(page, encoding="utf-8")
    return path


def _figure(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return ", ".join(f"{k} {_figure(v)}" for k, v in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(_figure(v) for v in value)
    return "never" if value is None else str(value)


def table(result: dict[str, Any], cases: list[Case]) -> str:
    """Figures of all cases as Markdown."""
    passed = sum(check["pass"] for check in result["checks"])
    lines = [f"{passed} of {len(result['checks'])} checks pass."]
    for title, words, chosen in sections(cases):
        lines += ["", f"## {title}", ""]
        if words:
            lines += [words, ""]
        lines += ["| run | check | value | wanted | |", "|---|---|---|---|---|"]
        for case in chosen:
            for c in result["checks"]:
                if c["variant"] != case.name:
                    continue
                relation = {"<=": "at most", ">=": "at least"}[c["relation"]]
                value = "never" if c["value"] is None else f"{c['value']:.4g} {c['unit']}"
                lines.append(f"| {case.title} | {c['name'].replace('_', ' ')} | {value.strip()} | "
                             f"{relation} {c['limit']:g} | {'ok' if c['pass'] else '**not ok**'} |")
        lines.append("")
        for case in chosen:
            figures = result["figures"].get(case.name, {})
            shown = "; ".join(f"{k.replace('_', ' ')}: {_figure(v)}" for k, v in figures.items())
            lines.append(f"* **{case.title}** (`{case.name}`). {case.words} {shown}.")
    return "\n".join(lines) + "\n"
