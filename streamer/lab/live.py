# SPDX-License-Identifier: GPL-2.0
"""Controllers with a real encoder, by scenarios of the lab: figures of each variant from its logs.

testbed/scenarios/literature.toml has all controllers and P-AQM, avcs.toml two of them with H.264,
M-JPEG and uncompressed pictures. In both TCP Reno comes and goes.
"""

from __future__ import annotations

import csv
import json
import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

Json = dict[str, Any]
Series = list[dict[str, float | None]]

BIN = 0.2  # s
SETTLED = 5.0  # s of the stream that do not count
ANSWER, RECOVERY = 1.1, 0.8  # of the fair share, of the rate before
COLUMNS = ("rate, Mbit/s", "loss, %", "delay p50, ms", "delay p95, ms", "variation", "answer, s",
           "recovery, s", "TCP's share, %", "VMAF", "frozen, s")


@dataclass(frozen=True)
class Scenario:
    """A file of testbed/scenarios, and what the page says of it."""

    name: str
    title: str
    text: str
    seconds: tuple[float, float]  # TCP comes, and leaves


SCENARIOS = {
    "literature": Scenario(
        "literature", "Live pictures, all controllers and P-AQM",
        "One stream by the real encoder (640x360, at most 3 Mbit/s) at 2 Mbit/s and 40 ms for "
        "30 s, one TCP Reno flow beside it from 10 to 20 s, a queue of 100 ms, drop tail; adivis: "
        "RED that marks; paqm: P-AQM, whose messages the stream obeys "
        "(`testbed/scenarios/literature.toml`, one seed). cadpc has nobody to tell it counters "
        "there, and is TFRC.", (10, 20)),
    "avcs": Scenario(
        "avcs", "H.264, M-JPEG and uncompressed pictures",
        "The modes of AVCS (Welzl and Muehlhaeuser, slides of 2001), live, with two controllers "
        "that it had: 2 Mbit/s and 40 ms for 30 s, TCP Reno from 10 to 20 s "
        "(`testbed/scenarios/avcs.toml`, one seed). M-JPEG codes each picture three times, by "
        "their rule; uncompressed are BMP files of one of nine sizes, shown at the clip's. Their "
        "slides have no figures of it: judged is the order of the three.", (10, 20)),
}


def _series(path: Path, *columns: str) -> Series:
    with path.open(newline="") as file:
        return [{key: float(row[key]) if row[key] else None for key in columns}
                for row in csv.DictReader(file)]


def variation(home: Path, start: float, stop: float) -> float | None:
    """Standard deviation over mean of what the encoder sends in BIN."""
    t0 = json.loads((home / "run.json").read_text())["t0_ns"]
    bins = [0.0] * round((stop - start) / BIN)
    for row in _series(home / "flows" / "a" / "send" / "frames.csv", "t_ns",
                       "wire_bytes"):
        at = ((row["t_ns"] or 0) - t0) / 1e9 - start
        if 0 <= at < stop - start:
            bins[min(int(at / BIN + 1e-6), len(bins) - 1)] += row["wire_bytes"] or 0
    mean = statistics.mean(bins)
    return statistics.pstdev(bins) / mean if mean else None


def first(rows: Series, since: float, until: float,
          good: Callable[[float, float], bool]) -> float | None:
    """Seconds until the sliding rate and its share are good; None: never.

    The rate is the mean of the second before: in the first one it says nothing.
    """
    for row in rows:
        t, rate, share = row["t"] or 0.0, row["a"], row["share_a"]
        if since + 1 < t < until and rate is not None and share is not None and good(rate, share):
            return t - since
    return None


def figures_of(scenario: Scenario, home: Path, variant: Json) -> Json:
    """One variant; None: could not be measured, or never."""
    comes, leaves = scenario.seconds
    rows = _series(home / "series" / "rates.csv", "t", "a", "share_a")
    flow, shown = variant["flows"]["a"], variant["flows"]["a"].get("picture") or {}
    before = [row["a"] for row in rows
              if SETTLED < (row["t"] or 0) < comes and row["a"] is not None]
    usual = statistics.mean(before) if before else math.inf
    elastic = variant["figures"]["elastic_share_percent"]
    return dict(zip(COLUMNS, (
        flow["mean_mbit"], flow["loss"]["percent"], flow["sojourn_ms"]["p50"],
        flow["sojourn_ms"]["p95"], variation(home, SETTLED, comes),
        first(rows, comes, leaves, lambda rate, share: rate <= ANSWER * share),
        first(rows, leaves, math.inf, lambda rate, _: rate >= RECOVERY * usual),
        elastic["mean"] if elastic else None, shown.get("vmaf"), shown.get("frozen_s")),
        strict=True))


def collect(scenario: Scenario, home: Path) -> Json:
    """Figures of all variants, in the order of the scenario."""
    result = json.loads((home / "result.json").read_text())
    names = [variant["name"] for variant in result["scenario_data"]["variant"]]
    found = {one["name"]: one for one in result["variants"]}
    return {name: figures_of(scenario, home / name, found[name]) for name in names if name in found}


def table(scenario: Scenario, rows: Json) -> list[str]:
    lines = [f"| | {' | '.join(COLUMNS)} |", "|---|" + "--:|" * len(COLUMNS)]
    for name, figures in rows.items():
        cells = ["" if figures[key] is None else f"{figures[key]:.3g}" for key in COLUMNS]
        lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
    return lines


def order(rows: Json) -> list[tuple[str, str, float | None]]:
    """What is judged of avcs: by how much VMAF each mode exceeds the next."""
    checks = []
    for controller in ("rap", "tfrc"):
        for better, worse in pairwise(("h264", "mjpeg", "raw")):
            both = [rows.get(f"{controller}-{mode}", {}).get("VMAF") for mode in (better, worse)]
            checks.append((controller, f"VMAF of {better} over that of {worse}",
                           None if None in both else both[0] - both[1]))
    return checks
