#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Writes the tables of the documentation from results of the lab.

make_results.py seeds DIR > docs/results.md        DIR/SEED/result.json of `make demo-seeds`
make_results.py departures out/departures/result.json
                                                   what decisions of docs/design-notes.md section 3
                                                   are worth, taken back one at a time
make_results.py controllers out/streamer/result.json
                                                   the tables of docs/controllers.md
make_results.py demo out/demo/result.json          writes docs/results/demo.json;
                                                   the first table of README.md
make_results.py chromium out/chromium/result.json  writes docs/results/chromium.json;
                                                   the second table of README.md
make_results.py gst out/gst-checks/result.json     writes docs/results/gst-checks.json; the table of
                                                   docs/pipelines.md
"""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

Json = dict[str, Any]

HEAD = """# Results

The demonstration: up to three live streams of Big Buck Bunny (640x360, 24 frames/s, ceiling
3 Mbit/s each) and four TCP cubic flows through 8 Mbit/s, base round trip 40 ms, 50 s, P-AQM with
`paqm-streamer` (`testbed/scenarios/demo.toml`, variant `paqm`). Streams `a` and `b` run from 0 to
50 s, `c` from 10 to 35 s, TCP from 20 s on. Real kernel, real programs, virtual time. A seed
changes all random numbers of the guest, the first picture of every stream and the exact starts of
the TCP flows.

This file is made by `docs/make_results.py`; do not edit it. To repeat:

```
make demo-seeds                                      # out/demo-seeds/1 ... 5
docs/make_results.py seeds out/demo-seeds >docs/results.md
```

Every figure is defined in [results-format.md](results-format.md); the keys below are those of
`result.json` there. The two common queues with libwebrtc as sender are in
[results/demo.json](results/demo.json) (`docs/make_results.py demo out/demo/result.json` lands it),
all figures over time in the report of `make demo` (`out/demo/report.html`).
"""

TAIL = """
## What this does not show

* One topology, one clip, one capacity, one round-trip time. Five seeds vary the randomness inside
  it, not the situation.
* CPU cost and real network cards: code takes no time in virtual time.
* Loss of feedback, several routers, many flows, senders that do not listen. The queue's own tests
  (`kernel/lab-tests/`, `kernel/tc-tests/`) cover parts of the last two.
* A steeper fall can cost media packets: in the walkthrough of the user guide one stream falls from
  3 Mbit/s to a fifth of 4 Mbit/s, and a few are lost (`docs/examples/walkthrough.py`).
"""

# Title, path in `figures`, decimals.
FIGURES: list[tuple[str, str, int]] = [
    ("media sojourn p50, ms", "media_sojourn_ms.p50", 2),
    ("media sojourn p95, ms", "media_sojourn_ms.p95", 2),
    ("media sojourn p99, ms", "media_sojourn_ms.p99", 2),
    ("media sojourn max, ms", "media_sojourn_ms.max", 2),
    ("media packets", "media_loss.packets", 0),
    ("media packets lost", "media_loss.lost", 0),
    ("settling, worst, s", "settle_s.max", 2),
    ("settling, mean, s", "settle_s.mean", 2),
    ("media against its share, mean, %", "media_share_percent.mean", 1),
    ("media against its share, least, %", "media_share_percent.min", 1),
    ("media against its share, most, %", "media_share_percent.max", 1),
    ("TCP against its share, worst, %", "elastic_share_percent.worst", 1),
    ("TCP sojourn p50, ms", "elastic_sojourn_ms.p50", 1),
    ("TCP packets lost, %", "elastic_loss.percent", 2),
    ("link use while TCP runs, %", "link_use_percent.with_elastic", 1),
    ("link use, whole run, %", "link_use_percent.whole", 1),
    ("frame delivery p95, ms", "frame_delivery_ms.p95", 1),
    ("frame delivery max, ms", "frame_delivery_ms.max", 1),
    ("frames never complete", "frame_delivery_ms.never", 0),
    ("feedback messages", "feedback.messages", 0),
    ("feedback against media bytes, %", "feedback.overhead_percent", 2),
    ("VMAF, mean", "picture.vmaf", 1),
    ("VMAF, 5th percentile", "picture.vmaf_p5", 1),
    ("PSNR of luma, dB", "picture.psnr_y_db", 1),
    ("freezes", "picture.freezes", 0),
]

DEPARTURES: list[tuple[str, str, int]] = [
    ("p50", "media_sojourn_ms.p50", 1),
    ("p95", "media_sojourn_ms.p95", 1),
    ("p99", "media_sojourn_ms.p99", 1),
    ("max", "media_sojourn_ms.max", 0),
    ("lost", "media_loss.lost", 0),
    ("never settled", "settle_s.unsettled", 0),
    ("settling max s", "settle_s.max", 1),
    ("media share %", "media_share_percent.mean", 1),
    ("least", "media_share_percent.min", 1),
    ("TCP share %", "elastic_share_percent.mean", 1),
    ("use %", "link_use_percent.whole", 1),
    ("VMAF", "picture.vmaf", 1),
]


def pick(figures: Json, path: str) -> Any:
    value: Any = figures
    for key in path.split("."):
        value = None if value is None else value[key]
    return value


def cell(value: Any, decimals: int) -> str:
    return "none" if value is None else f"{value:.{decimals}f}"


def plain(value: Any) -> str:
    if value is None:
        return "none"
    return f"{value:.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def load(path: Path) -> Json:
    result: Json = json.loads(path.read_text())
    if result["format"] != 1:
        raise SystemExit(f"make_results: {path}: format {result['format']} is not known")
    return result


def worst(values: list[Any], relation: str) -> Any:
    if any(value is None for value in values):
        return None
    return max(values) if relation == "<=" else min(values)


def checks_table(results: list[Json]) -> list[str]:
    names = [check["name"] for check in results[0]["checks"]]
    lines = [
        row("check", "limit", *(f"seed {r['seed']}" for r in results), "worst", "holds"),
        "|" + "---|" * (len(results) + 4),
    ]
    for name in names:
        found = [next(c for c in r["checks"] if c["name"] == name) for r in results]
        values = [check["value"] for check in found]
        relation = found[0]["relation"]
        lines.append(
            row(
                f"`{name}`",
                f"{relation} {plain(found[0]['limit'])} {found[0]['unit']}",
                *(plain(value) for value in values),
                plain(worst(values, relation)),
                f"{sum(check['pass'] for check in found)} of {len(found)}",
            )
        )
    return lines


def figures_table(results: list[Json]) -> list[str]:
    lines = [
        row("figure", "key", *(f"seed {r['seed']}" for r in results)),
        "|" + "---|" * (len(results) + 2),
    ]
    for title, path, decimals in FIGURES:
        values = [cell(pick(r["variants"][0]["figures"], path), decimals) for r in results]
        lines.append(row(title, f"`{path}`", *values))
    return lines


def seeds(directory: Path) -> list[str]:
    results = sorted(
        (load(path) for path in directory.glob("*/result.json")), key=lambda r: int(r["seed"])
    )
    if not results:
        raise SystemExit(f"make_results: no */result.json below {directory}")
    versions = results[0]["versions"]
    if any(r["versions"] != versions for r in results):
        raise SystemExit(f"make_results: the results below {directory} are of different versions")
    if any(len(r["variants"]) != 1 for r in results):
        raise SystemExit("make_results: one variant per result is expected, as of demo-seeds")
    lines = [HEAD, "## Checks", "", *checks_table(results), "", "## Figures", ""]
    lines += [*figures_table(results), "", "## Identity of the runs", ""]
    lines += [
        "With these versions the same packet logs come out, whatever the host has installed:",
        "",
    ]
    lines += [row("seed", "SHA-256 of the packet log"), "|---|---|"]
    for r in results:
        lines.append(row(str(r["seed"]), f"`{r['variants'][0]['packet_log_sha256']}`"))
    used = ("paqm", "kernel", "image", "iproute2", "gstreamer", "x264")
    lines += ["", ", ".join(f"{name} {versions[name]}" for name in used) + "."]
    return [*lines, TAIL.rstrip("\n")]


def departures(path: Path) -> list[str]:
    result = load(path)
    entries = sorted(result["variants"], key=lambda v: v["name"] != "as-is")
    lines = [row("", *(title for title, _, _ in DEPARTURES)), "|" + "---|" * (len(DEPARTURES) + 1)]
    for entry in entries:
        values = [cell(pick(entry["figures"], key), n) for _, key, n in DEPARTURES]
        lines.append(row(f"`{entry['name']}`: {entry['title']}", *values))
    return [*lines, "", f"Version {result['versions']['paqm']}, seed {result['seed']}."]


CONTROLLERS: list[tuple[str, str, int]] = [
    ("delay p50, ms", "delay_p50_ms", 1),
    ("p95, ms", "delay_p95_ms", 1),
    ("rate, Mbit/s", "rate_mbit", 3),
    ("lost, %", "loss_percent", 2),
    ("VMAF", "vmaf", 1),
]


def controllers(path: Path) -> list[str]:
    """Per queue a table of senders and seeds; what follows P-AQM; TFRC's bands."""
    result = load(path)
    used = result["seeds"]
    lines = []
    for queue, title in (("codel", "fq_codel"), ("fifo", "FIFO of 300 ms")):
        lines += [row(title, "seed", *(name for name, _, _ in CONTROLLERS)),
                  "|---|--:|" + "--:|" * len(CONTROLLERS)]
        for sender in ("auto", "gcc", "rtc"):
            for seed in used:
                got = result["controllers"][str(seed)][f"{sender}-{queue}"]
                lines.append(row("libwebrtc" if sender == "rtc" else f"`{sender}`", str(seed),
                                 *(cell(got[key], n) for _, key, n in CONTROLLERS)))
        lines.append("")
    lines += [row("stream, from", "fair, %", "told, s", "sends, %"), "|---|---|---|---|"]
    # NAME_fair_from_N_s and so on; changes come at the same second with every seed
    followed = [c for c in result["checks"] if c["variant"] == "auto, P-AQM"]
    for stream, second in dict.fromkeys(
        (c["name"].split("_")[0], c["name"].split("_")[3]) for c in followed
    ):
        cells = []
        for what in ("fair", "told", "sends"):
            values = [c["value"] for c in followed
                      if c["name"] == f"{stream}_{what}_from_{second}_s"]
            cells.append(" / ".join(plain(round(v, 2)) for v in values))
        lines.append(row(f"{stream}, {second} s", *cells))
    failed = sum(not c["pass"] for c in result["checks"])
    return [*lines, "", f"{len(result['checks'])} checks, {failed} failed; "
                        f"version {result['versions']['paqm']}."]


RESULTS = Path(__file__).parent / "results"
KEPT = ("format", "scenario", "title", "seed", "duration_s", "bottleneck_bps", "rtt_ms", "fps")
KEPT += ("versions", "packet_log_sha256", "checks")
SYSTEM = ("name", "title", "sender", "codec", "qdisc", "shaper", "figures")
Rows = list[tuple[str, tuple[str, ...], int]]
# Title, paths in `figures` of the values in a cell, decimals: the rows of the demonstration.
BESIDE: Rows = [
    ("media delay in the router, p95 / p99, ms",
     ("media_sojourn_ms.p95", "media_sojourn_ms.p99"), 1),
    ("media packets lost, %", ("media_loss.percent",), 2),
    ("frame delivery, p95, ms", ("frame_delivery_ms.p95",), 0),
    ("freezes above 200 ms", ("picture.freezes",), 0),
    ("streams, mean of the fair share, %", ("media_share_percent.mean",), 0),
    ("TCP, mean of its fair share, %", ("elastic_share_percent.mean",), 0),
    ("link use while TCP runs, %", ("link_use_percent.with_elastic",), 1),
    ("VMAF of what was shown, mean / p5", ("picture.vmaf", "picture.vmaf_p5"), 1),
]


def kept(result: Json) -> Json:
    """What of a result goes into docs/results/."""
    path = Path(__file__).parents[1] / "testbed" / "scenarios" / f"{result['scenario']}.toml"
    order = [one["name"] for one in tomllib.loads(path.read_text())["variant"]]
    systems = [{key: one[key] for key in SYSTEM} for one in result["variants"]]
    systems.sort(key=lambda one: order.index(one["name"]))
    return {key: result[key] for key in KEPT} | {"variants": systems}


# Of GStreamer pipelines, besides: what encoders of others make of a rate.
PIPELINES: Rows = [
    ("media delay in the router, median / maximum, ms",
     ("media_sojourn_ms.p50", "media_sojourn_ms.max"), 1),
    ("media packets lost", ("media_loss.lost",), 0),
    ("frame delivery, median, ms", ("frame_delivery_ms.p50",), 0),
    ("rate within 10 % of the share for good, s after a change", ("settle_s.max",), 1),
    ("of so many changes it never was", ("settle_s.unsettled",), 0),
]


# What is landed by its own command: its file, and what its table has besides BESIDE.
LANDED: dict[str, tuple[str, Rows]] = {
    "demo": ("demo.json", []), "chromium": ("chromium.json", []),
    "gst": ("gst-checks.json", PIPELINES),
}


def beside(which: str) -> list[str]:
    """The table of a landed result, with a column for each system."""
    file, more = LANDED[which]
    systems = load(RESULTS / file)["variants"]
    lines = [row("", *(one["title"] for one in systems)), "|" + "---|" * (len(systems) + 1)]
    for title, paths, decimals in [*BESIDE, *more]:
        cells = (
            " / ".join(cell(pick(one["figures"], path), decimals) for path in paths)
            for one in systems
        )
        lines.append(row(title, *cells))
    return lines


def main() -> int:
    args = sys.argv[1:]
    if len(args) == 2 and args[0] == "seeds":
        lines = seeds(Path(args[1]))
    elif len(args) == 2 and args[0] == "departures":
        lines = departures(Path(args[1]))
    elif len(args) == 2 and args[0] == "controllers":
        lines = controllers(Path(args[1]))
    elif len(args) == 2 and args[0] in LANDED:
        result = kept(load(Path(args[1])))
        (RESULTS / LANDED[args[0]][0]).write_text(json.dumps(result, indent=1) + "\n")
        lines = beside(args[0])
    else:
        print(__doc__, file=sys.stderr)
        return 2
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
