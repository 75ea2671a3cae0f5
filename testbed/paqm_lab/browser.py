# SPDX-License-Identifier: GPL-2.0
"""A browser with the extension beside the same without: how soon and how far it follows.

`paqm-lab browser [NAME]` runs the scenario of a row of CASES and judges the variant with the
extension.
result.json is that of the scenario, with `rows` (a row for each variant) and `checks`.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from paqm_lab import (
    analysis,
    cache,
    checks,
    lab,
    markdown,
    metrics,
    picturefigures,
    run,
    scenario,
)
from paqm_lab.errors import LabError
from paqm_lab.rundata import Run
from paqm_lab.traffic import read_traffic

Json = dict[str, Any]
F64 = npt.NDArray[np.float64]

RESULTS = cache.REPO / "docs" / "results"
# Of each browser: its scenario, and the name of its figures there and below out/.
CASES = {
    "chromium": ("chromium-paqm", "browser"),
    "chromium-page": ("chromium-page", "browser-page"),
    "firefox": ("firefox-paqm", "firefox"),
}
FORMAT = 1
STREAM, JUDGED = "a", "paqm"
WINDOW = 0.5  # s of the rate by which a change counts as followed
STEP = 0.05  # s between two looks at it
# The targets.
SHARE_PERCENT, DOWN_S, UP_S, DELAY_P95_MS, FREEZES = 95.0, 1.0, 2.5, 10.0, 0
KEPT = ("scenario", "title", "seed", "duration_s", "bottleneck_bps", "rtt_ms", "fps", "versions")
SHOWN = ("name", "title", "sender", "codec", "qdisc", "shaper", "packet_log_sha256")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def followed(
    t: F64, size: npt.NDArray[np.int64], share: float, start: float, stop: float, down: bool
) -> float | None:
    """Seconds from `start` until the rate over the last WINDOW is within INNER of a share that has
    fallen or risen; None if it is not before `stop`."""
    at = np.arange(start, stop, STEP)
    rate = metrics.sliding_rate(t, size, at, WINDOW)
    near = rate <= share * (1 + metrics.INNER) if down else rate >= share * (1 - metrics.INNER)
    return round(float(at[int(np.argmax(near))] - start), 3) if near.any() else None


def figures(one: Run, told: Json) -> Json:
    """The row of a variant."""
    traffic = read_traffic(one)
    seen = traffic.seen
    mine = traffic.media[STREAM] & ~np.isnan(seen.t_out)
    t, size = seen.t_out[mine], seen.size[mine]
    parts = [
        part for part in traffic.segments
        if STREAM in part.shares and part.stop - part.start >= metrics.MIN_SEGMENT
    ]  # fmt: skip
    judged: list[Json] = []
    for before, part in zip([None, *parts], parts, strict=False):
        share = part.shares[STREAM]
        mean = metrics.mean_rate(t, size, part.start + metrics.SETTLE, part.stop)
        down = before is not None and share < before.shares[STREAM]
        judged.append({
            "start_s": round(part.start, 3), "stop_s": round(part.stop, 3),
            "share_mbit": round(share / 1e6, 4), "mean_mbit": round(mean / 1e6, 4),
            "share_percent": round(100 * mean / share, 2),
            "followed_s": followed(t, size, share, part.start, part.stop, down) if before else None,
            "down": down,
        })  # fmt: skip
    shown = picturefigures.pictures(one, STREAM)
    frozen = None
    if shown is not None:
        frozen = metrics.webrtc_freezes(shown.t, shown.source, 0.0, one.duration)[0]
    of = told["figures"]
    wait = 1000 * (t - seen.t_in[mine])
    beside = [part for part in judged if part["share_mbit"] < judged[0]["share_mbit"]]
    with_tcp = np.zeros(len(t), bool)
    for span in beside:
        with_tcp |= (t >= span["start_s"]) & (t < span["stop_s"])
    return {key: told[key] for key in SHOWN} | {
        "version": one.versions["paqm"],
        "segments": judged,
        "delay_p95_with_tcp_ms": metrics.summary(wait[with_tcp])["p95"],
        "delay_p95_ms": of["media_sojourn_ms"]["p95"],
        "delay_p99_ms": of["media_sojourn_ms"]["p99"],
        "lost_percent": of["media_loss"]["percent"],
        "frame_delivery_p95_ms": of["frame_delivery_ms"]["p95"],
        "webrtc_freezes": frozen,
        "vmaf": of["picture"]["vmaf"] if of.get("picture") else None,
        "link_use_percent": of["link_use_percent"]["with_elastic"],
        "elastic_share_percent": of["elastic_share_percent"]["mean"],
    }


def judge(row: Json) -> list[checks.Check]:
    """The targets, for the variant with the extension."""
    found = []

    def add(name: str, value: Any, relation: str, limit: float, unit: str, how: str) -> None:
        found.append(checks.entry(row["name"], name, value, relation, limit, unit, how))

    log = f"{row['name']}/router.pcap"
    for part in row["segments"][1:]:  # the call's beginning is shown, not judged
        most = row["segments"][0]["share_mbit"]
        kind = "with_tcp" if part["share_mbit"] < 0.9 * most else "alone"
        begin = f"{part['start_s']:.0f}_s"
        add(f"share_{kind}_from_{begin}", part["share_percent"], ">=", SHARE_PERCENT, "%",
            f"{log}: mean rate from {metrics.SETTLE:g} s after the change to the next one, against "
            "the max-min share")
        way, limit = ("down", DOWN_S) if part["down"] else ("up", UP_S)
        add(f"{way}_from_{begin}", part["followed_s"], "<=", limit, "s",
            f"{log}: from the change until the rate over {WINDOW:g} s is within "
            f"{100 * metrics.INNER:.0f} % of the new share")
    add("delay_p95_with_tcp", row["delay_p95_with_tcp_ms"], "<=", DELAY_P95_MS, "ms",
        f"{log}: entry to the router until departure from the bottleneck, every RTP packet while "
        "there is TCP, from its first packet on")
    add("webrtc_freezes", row["webrtc_freezes"], "<=", FREEZES, "",
        f"{row['name']}/flows/{STREAM}/recv/decoded.csv: intervals between pictures of "
        "max(3 mean, mean + 150 ms) or longer (W3C webrtc-stats)")
    return found


def result(out: Path, name: str) -> Json:
    """What the runs of a scenario below `out` come to."""
    path = out / "result.json"
    told = json.loads(path.read_text())
    by_name = {variant["name"]: variant for variant in told["variants"]}
    rows = [figures(one, by_name[one.variant]) for one in analysis.load_runs(out)]
    order = [variant["name"] for variant in scenario.load(name).variants]
    rows.sort(key=lambda row: order.index(row["name"]))
    told["rows"] = rows
    told["checks"] = [check for row in rows if row["name"] == JUDGED for check in judge(row)]
    path.write_text(json.dumps(told, indent=1) + "\n")
    return dict(told)


def landed(told: Json, name: str) -> Json:
    """The part that docs/results keeps: of all variants, or it would lose what is there."""
    there = {row["name"] for row in told["rows"]}
    all_names = [variant["name"] for variant in scenario.load(name).variants]
    missing = [one for one in all_names if one not in there]
    if missing:
        raise LabError(f"no run of {', '.join(missing)}; run all variants into one directory first")
    kept = {key: told[key] for key in KEPT if key in told}
    return {"format": FORMAT} | kept | {"rows": told["rows"], "checks": told["checks"]}


def table(told: Json) -> list[str]:
    """The table of docs/browser.md."""
    rows = told["rows"]
    lines = ["| | " + " | ".join(row["title"] for row in rows) + " |"]
    lines.append("|---" * (len(rows) + 1) + "|")

    def line(title: str, values: list[str]) -> None:
        lines.append(f"| {title} | " + " | ".join(values) + " |")

    for number, part in enumerate(rows[0]["segments"]):
        parts = [row["segments"][number] for row in rows]
        span = f"{part['start_s']:.0f} to {part['stop_s']:.0f} s"
        line(f"share, {span}, %", [markdown.cell(one["share_percent"], 1) for one in parts])
        if number:
            way = "down" if part["down"] else "up"
            took = [markdown.cell(one["followed_s"], 2) for one in parts]
            line(f"{way} at {part['start_s']:.0f} s, s", took)
    for title, key, decimals in (
        ("media delay in the router beside TCP, p95, ms", "delay_p95_with_tcp_ms", 1),
        ("all the time, p95, ms", "delay_p95_ms", 1),
        ("p99, ms", "delay_p99_ms", 1),
        ("media packets lost, %", "lost_percent", 2),
        ("frame delivery, p95, ms", "frame_delivery_p95_ms", 0),
        ("freezes (W3C)", "webrtc_freezes", 0),
        ("VMAF of what was shown", "vmaf", 1),
        ("TCP, mean of its fair share, %", "elastic_share_percent", 0),
    ):
        line(title, [markdown.cell(row[key], decimals) for row in rows])
    return lines


def landed_at(which: str) -> Path:
    """Where the figures of a browser are kept."""
    return RESULTS / f"{CASES[which][1]}.json"


def main() -> int:
    """Runs and judges; 1 if a check fails."""
    parser = argparse.ArgumentParser(description="A browser with the extension, and without.")
    parser.add_argument("browser", nargs="?", choices=sorted(CASES), default="chromium")
    parser.add_argument("--out", metavar="DIR", help="for the results (default out/browser, ...)")
    parser.add_argument("--variant", action="append", default=[], metavar="NAME",
                        help="only this one")
    parser.add_argument("--judge", action="store_true", help="run nothing, judge what is there")
    parser.add_argument("--docs", action="store_true", help="likewise, and write docs/results")
    args = parser.parse_args()
    name, directory = CASES[args.browser]
    out = Path(args.out or cache.REPO / "out" / directory).resolve()
    if not (args.judge or args.docs):
        chosen = scenario.load(name)
        options = run.Options(out, chosen.data["seed"], args.variant, True, False)
        with lab.alone_in(out):
            run.run_scenario(chosen, options, say)
    told = result(out, name)
    if args.docs:
        landed_at(args.browser).write_text(json.dumps(landed(told, name), indent=1) + "\n")
        print("\n".join(table(told)))
        return 0
    print("\n".join(table(told)))
    return checks.print_table(out)
