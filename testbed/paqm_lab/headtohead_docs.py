# SPDX-License-Identifier: GPL-2.0
"""docs/head-to-head.md from docs/results/head-to-head.json, and that from result.json."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

from paqm_lab import cache, stats
from paqm_lab.headtohead_cases import JUDGE_FROM, PAQM, SECONDS, TCP_AT, TITLES
from paqm_lab.headtohead_judge import (
    BEHIND_LOSS,
    BEHIND_P95_MS,
    BEHIND_VMAF,
    JOB_LOSS,
    JOB_P95_MS,
    JOB_SHARE,
)

Json = dict[str, Any]

DATA = cache.REPO / "docs" / "results" / "head-to-head.json"
PAGE = cache.REPO / "docs" / "head-to-head.md"

HEAD = f"""# Head to head

P-AQM with its streamer beside the queues and senders that one would choose today: twelve rows,
not all pairs. Each row has fq_codel, CAKE and dualpi2 with the strongest sender for each, which is
`paqm-streamer` itself: without a router's advice its own controller finds the rate, and it hears
the marks (ECN) of these queues. So the encoder is the same, and pictures may be compared. The
other queues and senders are spread over the rows. Real kernel, real programs, virtual time.

```
make head-to-head              # all rows, one seed: out/head-to-head/result.json
make head-to-head FULL=1       # three seeds
testbed/paqm-lab head-to-head --rows one,steps
```

This file is made from `docs/results/head-to-head.json` by `paqm-lab head-to-head --docs`; do not
edit it. Rows are run in parts: each run counts until a newer one replaces it, and with it the seeds
that all systems of a row have run: a link that varies does so by the seed.

A run lasts {SECONDS} s, TCP comes at {TCP_AT} s, figures are from {JUDGE_FROM} s on. Clip 640x360,
24 frames/s, at most 3 Mbit/s; sixteen streams have 320x180 and at most 1 Mbit/s, and their
pictures are not compared. A stream's least rate is 200 kbit/s, or 0.8 of its share if that is less.

* *delay*: waiting in the router, mean over the streams of each one's percentile; *lost*: of the
  streams' packets; *use* of the link, beside TCP where there is TCP.
* *share*: what the streams have together of their max-min fair share, beside TCP where there is
  TCP; *least*: the worst stream; *TCP* likewise; *Jain*: index over all these flows. A link that
  varies counts with its mean.
* *settled*: seconds until the slowest stream has settled after a change, and how many of the
  changes were settled at all ([definition](results-format.md)).
* *frame*: capture until the last packet is there, p95 (one that never comes counts with the length
  of the run); *freezes* as W3C's webrtc-stats counts them ([definition](results-format.md)).
* VMAF of what was shown: mean, and the 10th percentile.

**What is asked.** P-AQM is behind the best rival of a row by no more than {BEHIND_P95_MS:g} ms of
delay at p95, {BEHIND_LOSS:g} % of loss, {BEHIND_VMAF:g} VMAF at the 10th percentile; beside TCP its
p99 is half of dualpi2's or less, and its streams have 15 % more of their fair share. A rival counts
as the best in a figure only if it does its job otherwise: its worst stream and TCP have at least
{JOB_SHARE:g} % of their fair share, its streams lose at most {JOB_LOSS:g} %, and wait at most
{JOB_P95_MS:g} ms at p95 (others are in brackets). A codec of another kind is not compared in VMAF.
What is not met is in bold. In italics: systems whose runs are of another state of the programs than
P-AQM's in the same row, and figures that set the two against each other. What made a run is below
each table.
"""

TAIL = """
## Where P-AQM is behind, and why

* **VMAF.** P-AQM hands out 96 % of the link and no flow more than its fair share. Over fq_codel and
  CAKE our own controller takes 92 to 104 % of it; over dualpi2 it may take half as much again, from
  TCP. The pictures show the difference in rate. Handing out 99 or 100 % costs delay as soon as
  several streams are there: with three beside four TCP flows at 8 Mbit/s, 40 ms, p99 is 2.1 ms at
  96 %, 4.7 at 99 and 11.7 at 100, for 0.2 VMAF.
* **Pictures on a link in steps.** `bandwidth auto` keeps headroom against the next fall
  ([variable links](variable-links.md)): streams have 88 to 90 % of the link, over fq_codel 90 to
  92, for a p95 that is a third of fq_codel's and a quarter of CAKE's. The 10th percentile is 0.1
  better than over fq_codel; it was 0.8 worse before a stream could rise at once to the least it
  had been told lately.
* **Pictures on a cellular link.** The 10th percentile is 0.1 above that over fq_codel with seed
  1, 2.5 below with seed 3 and 3.5 with seed 2; fq_codel's p95 is four to twelve times as long.
  With seed 2 an outage meets media alone, before TCP comes: what `bandwidth auto` can tell swings
  between 0.4 and 1.9 Mbit/s there, ten times in six seconds, which paqmd takes for a router that
  flaps. It damps that ([protocol](protocol.md)): the stream rises at once to the least of the
  last half second, and slowly above. With no damping at all it would be 2.5 better. An estimate
  that grew faster after such a fall was 0.1 better in the mean of the seeds, with a p95 of 11.9
  ms instead of 10.7, so it is not in. Over dualpi2 the same outage costs 20, and 0.4 % of the
  packets.
* **Where scenes cut** the pictures after a cut make the 10th percentile. Packets of 800 bytes,
  which followers send so that they wait less for each other, leave 2 % less for pictures than
  those of 1200, which is 0.4 VMAF here. Pictures after coarse ones have long packets now ([design
  notes](design-notes.md), "Short packets"): 0.3 behind, not 0.6.
* **p99 against dualpi2 on a link that varies.** Both wait for the link then: 11, 45 and 10 ms on
  the cellular one, over dualpi2 12, 86 and 11.
* **p99 against dualpi2 on a steady link.** A packet of TCP that is on its way cannot be called
  back. 99 % of its time are 2.4 ms at 5 Mbit/s, 1.5 at 8, 1.2 at 10: that is P-AQM's p99 beside
  one stream. Half of dualpi2's is less than that there, and within 0.1 ms of it in `fast-bbr`.
* **Share against dualpi2.** The demand takes for granted that streams starve there. A sender that
  answers L4S marks does not beside TCP without ECN: it gets up to 149 %. Where it has 89 to 92 %,
  15 more would be 104 to 107. How much nearer to the fair share P-AQM keeps it is given beside.
"""

Column = tuple[str, str, int]
COLUMNS: tuple[Column, ...] = (
    ("delay p50, ms", "delay_p50_ms", 1),
    ("p95", "delay_p95_ms", 1),
    ("p99", "delay_p99_ms", 1),
    ("lost, %", "lost_percent", 2),
    ("use, %", "use_percent", 1),
    ("share, %", "share_percent", 0),
    ("least", "share_percent_least", 0),
    ("TCP", "tcp_percent", 0),
    ("Jain", "jain", 3),
    ("settled, s", "settle_s", 1),
    ("frame, ms", "frame_p95_ms", 0),
    ("freezes", "freezes", 1),
    ("VMAF", "vmaf", 1),
    ("p10", "vmaf_p10", 1),
)


def _cell(runs: list[Json], key: str, digits: int) -> str:
    values = [run[key] for run in runs]
    if key == "settle_s" and runs[0]["settled"]:
        done = sum(run["settled"][0] for run in runs)
        of = sum(run["settled"][1] for run in runs)
        known = [value for value in values if value is not None]
        return f"{max(known):.{digits}f} ({done}/{of})" if known else f"- (0/{of})"
    if None in values:
        return ""
    mean: float = stats.mean(values)
    return f"{mean:.{digits}f}"


def _counted(data: Json, row: Json, system: str) -> list[Json]:
    """A system's runs in a row that count."""
    return [run for run in data["runs"] if (run["case"], run["queue"]) == (row["name"], system)
            and run["seed"] in row["seeds"]]


def _programs(runs: list[Json]) -> set[str]:
    return {run["programs"] for run in runs}


def _versions(data: Json, row: Json) -> str:
    """Which systems of a row each version ran."""
    found: dict[str, list[str]] = {}
    for system in row["systems"]:
        for version in sorted({run["version"] for run in _counted(data, row, system)}):
            found.setdefault(version, []).append(f"`{system}`")
    each = [f"{version}: {', '.join(systems)}" for version, systems in found.items()]
    return f"Versions: {'; '.join(each)}."


def table(data: Json, name: str) -> list[str]:
    """The figures of a row."""
    row = next(one for one in data["rows"] if one["name"] == name)
    lines = []
    ours = _programs(_counted(data, row, PAQM))
    for system in row["systems"]:
        runs = _counted(data, row, system)
        if not runs:
            continue
        label = system if row["job"][system] else f"({system})"
        if _programs(runs) != ours:
            label = f"*{label}*"
        cells = [_cell(runs, key, digits) for _, key, digits in COLUMNS]
        lines.append("| " + " | ".join([label, *cells]) + " |")
    if not lines:
        return []
    head = "| " + " | ".join([name, *(title for title, _, _ in COLUMNS)]) + " |"
    return [head, "|---|" + "--:|" * len(COLUMNS), *lines]


def _commands(data: Json, row: Json) -> list[str]:
    lines: list[str] = []
    for system in row["systems"]:
        run = next(
            (r for r in data["runs"] if (r["case"], r["queue"]) == (row["name"], system)), None
        )
        if run:
            lines += [f"# {system}", *run["tc"]]
    return ["```", *lines, "```"]


def _verdict(check: Json) -> str:
    sign = {"<=": "at most", ">=": "at least"}[check["relation"]]
    value = "none" if check["value"] is None else f"{check['value']:.2f}"
    against = f" ({check['rival']})" if "rival" in check else ""
    text = f"`{check['name']}` {value}, asked: {sign} {check['limit']:g} {check['unit']}".rstrip()
    text = f"{text}{against}" if check["pass"] else f"**{text}**{against}"
    return text if check["same_programs"] else f"*{text}*"


def _reported(one: Json) -> str:
    text = f"`{one['name']}`: {one['why']}"
    return text if one.get("same_programs", True) else f"*{text}*"


def page(data: Json) -> str:
    """The whole page."""
    part, checks = data["grid"], data["checks"]
    failed = [check for check in checks if not check["pass"]]
    mixed = sum(not check["same_programs"] for check in checks)
    states = f"; {mixed} of them set P-AQM against runs of another state of the programs"
    lines = [HEAD]
    lines += textwrap.wrap(
        f"{part['of_it']} of {part['whole_grid']} runs of all seeds are here. Of "
        f"{len(checks)} demands {len(checks) - len(failed)} are met"
        f"{states if mixed else ''}. Systems are "
        "named QUEUE-SENDER; `paqm` is P-AQM with `paqm-streamer`, told its rate. Senders:",
        100,
    )
    lines += ["", *(f"* `{name}`: {text}" for name, text in TITLES.items() if name != "advice")]
    for row in data["rows"]:
        shown = table(data, row["name"])
        link = f"{row['link']} link, {row['link_mbit']:.2g}" if row["link"] else row["link_mbit"]
        lines += ["", f"## {row['title']}", ""]
        other = [one for one in data["reported"] if one["variant"] == row["name"]]
        if not shown:
            why = other[0]["why"] if other else "not run yet"
            lines.append(f"`{row['name']}`: {why}.")
            continue
        seeds = ", ".join(map(str, row["seeds"]))
        lines += [f"{link} Mbit/s, {row['rtt_ms']} ms; seeds {seeds}.", ""]
        lines += [*shown, "", _versions(data, row), ""]
        mine = [check for check in data["checks"] if check["variant"] == row["name"]]
        lines += [f"* {_verdict(check)}" for check in mine]
        lines += [f"* {_reported(one)}" for one in other]
        lines += ["", *_commands(data, row)]
    return "\n".join(lines) + "\n" + TAIL


def write(text: str) -> list[Path]:
    """Data and page."""
    DATA.write_text(text)
    PAGE.write_text(page(json.loads(text)))
    return [DATA, PAGE]
