# SPDX-License-Identifier: GPL-2.0
"""What is demanded of the points of paqm_lab.regimes, and whether the runs that are there hold it.

Limits of a point: delay of the media packets of the whole run, one packet time being that of 1250
bytes on the link; settling after every change; loss only while the streams may settle.

Settled: from the first sample of the sliding rate (docs/results-format.md) after which all samples
until the next change are within 10 % of what is fair. That lies between the max-min share of the
link and that of what the queue hands out, which is its target utilisation of the link: the band
reaches from 10 % below the latter to 10 % above the former. A stream whose pictures need less than
it may send counts with what it may send: its encoder's rate, in the mean of the same second. What
others leave of their shares in that second is anybody's: TCP, which over long round trips takes
many to grow (in equal parts), and streams that may have their share and send less.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from paqm_lab import markdown, metrics, rundata, suite
from paqm_lab.checks import Check, entry
from paqm_lab.packets import ETHER_HEADER
from paqm_lab.regimes_cases import Place

Json = dict[str, Any]
F64 = npt.NDArray[np.float64]

PACKET_BITS = 8 * 1250
P95_MS, P95_PACKETS = 3, 3
P99_MS, P99_PACKETS = 8, 6
SETTLE_S, SETTLE_TRIPS = 2, 4
HOLD_PERCENT = 95.0
USE = 0.96  # target utilisation, as qdisc paqm has it by default
QUANTITIES = ("p95", "p99", "settling", "loss")


def limits(place: Place) -> Json:
    """Delay in ms, settling (and loss) in s after a change."""
    packet = 1000 * PACKET_BITS / (place.capacity * 1e6)
    return {
        "p95_ms": P95_MS + P95_PACKETS * packet,
        "p99_ms": P99_MS + P99_PACKETS * packet,
        "settle_s": SETTLE_S + SETTLE_TRIPS * place.rtt_ms / 1000,
    }


def late_losses(series: Path, allowed: float) -> int:
    """Media packets lost later than `allowed` s after the last change."""
    lines = (series / "loss.csv").read_text().splitlines()
    names = lines[0].split(",")
    kind, since = names.index("class"), names.index("since_change_s")
    rows = [line.split(",") for line in lines[1:]]
    return sum(row[kind] == "media" and float(row[since]) > allowed for row in rows)


def settle_time(
    at: F64, sent: F64, allowed: F64, left: F64, share: float, start: float, stop: float
) -> float | None:
    """Seconds from `start` until the rate has settled for good, None if it never does.

    At each instant: the rate, what the encoder was allowed, what a stream may have beyond its
    share; all in Mbit/s.
    """
    inside = (at >= start - 1e-9) & (at <= stop + 1e-9)
    least, most = (1 - metrics.INNER) * USE * share, (1 + metrics.INNER) * (share + left)
    good = (np.maximum(sent, allowed) >= least) & (sent <= most)
    until = np.logical_and.accumulate(good[inside][::-1])[::-1]
    if not until.any():
        return None
    return max(0.0, float(at[inside][int(np.argmax(until))] - start))


def allowance(frames: rundata.Table, t0_ns: int, at: F64) -> F64:
    """What an encoder was allowed in the second before each instant, Mbit/s as the link counts."""
    t = rundata.seconds(frames, t0_ns)
    wire, packets = float(frames["wire_bytes"].sum()), float(frames["packets"].sum())
    if not wire:
        return np.zeros(len(at))
    sums = np.concatenate([[0.0], np.cumsum(frames["allowance_bps"])])
    high = np.searchsorted(t, at, side="right")
    low = np.searchsorted(t, at - metrics.WINDOW, side="right")
    mean = (sums[high] - sums[low]) / np.maximum(high - low, 1)
    return np.asarray(mean * (1 + ETHER_HEADER * packets / wire) / 1e6, np.float64)


def left_by_others(rates: rundata.Table, allowed: dict[str, F64], name: str) -> F64:
    """What a stream may have of the others' shares, at each instant, Mbit/s."""

    def share(of: str) -> F64:
        return np.asarray(np.nan_to_num(np.asarray(rates[f"share_{of}"], np.float64)), np.float64)

    def unused(of: str, may: F64) -> F64:
        used = np.asarray(rates[of], np.float64)
        return np.asarray(np.maximum(0.0, np.minimum(share(of), may) - used), np.float64)

    streams = sum((share(other) > 0).astype(np.float64) for other in allowed)
    left = unused("TCP", share("TCP")) / np.maximum(1, streams)
    for other, may in allowed.items():
        if other != name:
            left = left + unused(other, may)
    return np.asarray(left, np.float64)


def settling(variant: Json, rates: rundata.Table, allowed: dict[str, F64]) -> list[float | None]:
    """Of every stream and every change that leaves time enough."""
    left = {name: left_by_others(rates, allowed, name) for name in variant["flows"]}
    return [
        settle_time(
            rates["t"],
            rates[name],
            allowed[name],
            left[name],
            part["share_mbit"],
            part["start"],
            part["stop"],
        )
        for name, flow in variant["flows"].items()
        for part in flow["segments"]
    ]


def figures(place: Place, variant: Json, lost_late: int, took: list[float | None]) -> Json:
    """One point: figures, limits, and which of them it does not hold."""
    told, want = variant["figures"], limits(place)
    delay, loss = told["media_sojourn_ms"], told["media_loss"]
    known = [seconds for seconds in took if seconds is not None]
    settle = max(known) if known and len(known) == len(took) else None
    shares = [
        part["mean_mbit"] / part["share_mbit"]
        for flow in variant["flows"].values()
        for part in flow["segments"]
    ]
    good = {
        "p95": delay["p95"] is not None and delay["p95"] <= want["p95_ms"],
        "p99": delay["p99"] is not None and delay["p99"] <= want["p99_ms"],
        "settling": settle is not None and settle <= want["settle_s"],
        "loss": loss["packets"] > 0 and lost_late == 0,
    }
    return {
        "name": place.name,
        "variant": place.variant,
        "title": place.title,
        "capacity_mbit": place.capacity,
        "rtt_ms": place.rtt_ms,
        "streams": place.streams,
        "tcp": place.tcp,
        "share_mbit": place.share / 1e6,
        "picture": f"{place.picture.width}x{place.picture.height}",
        "p50_ms": delay["p50"],
        "p95_ms": delay["p95"],
        "p99_ms": delay["p99"],
        "max_ms": delay["max"],
        "settle_s": None if settle is None else round(settle, 3),
        "unsettled": took.count(None),
        "judged": len(took),
        "packets": loss["packets"],
        "lost": loss["lost"],
        "lost_late": lost_late,
        "lost_latest_s": loss["latest_s"],
        "share_percent_least": 100 * min(shares) if shares else None,
        "share_percent_mean": 100 * sum(shares) / len(shares) if shares else None,
        "tcp_percent": told["elastic_share_percent"]["mean"],
        "use_percent": told["link_use_percent"]["whole"],
        "limits": want,
        "outside": [name for name in QUANTITIES if not good[name]],
    }


def load(place: Place, point: suite.Point, out: Path) -> Json | None:
    """The figures of a point, if it has been run."""
    variant, home = suite.load(point, out), point.home(out) / point.queue
    rates = rundata.load_csv(home / "series" / "rates.csv")
    if variant is None or rates is None or suite.stored_of(point, out) is None:
        return None
    t0_ns = int(rundata.load_json(home / "run.json")["t0_ns"])
    allowed = {}
    for name in variant["flows"]:
        frames = rundata.load_csv(home / "flows" / name / "send" / "frames.csv")
        if frames is None:
            return None
        allowed[name] = allowance(frames, t0_ns, rates["t"])
    late = late_losses(home / "series", limits(place)["settle_s"])
    row = figures(place, variant, late, settling(variant, rates, allowed))
    return row | {"scenario": suite.scenario_digest(point), "versions": variant["versions"]}


def checks(rows: list[Json]) -> list[Check]:
    """One per variant: how many of its points hold."""
    found = []
    for variant in dict.fromkeys(row["variant"] for row in rows):
        mine = [row for row in rows if row["variant"] == variant]
        inside = sum(not row["outside"] for row in mine)
        found.append(
            entry(
                variant,
                "points_that_hold",
                round(100 * inside / len(mine), 2),
                ">=",
                HOLD_PERCENT,
                "%",
                f"runs/: {inside} of {len(mine)} points hold their limits of delay, settling and "
                "loss",
            )
        )
    return found


def result(
    known: list[tuple[Place, suite.Point]], out: Path, seed: int, earlier: Json | None = None
) -> Json:
    """result.json from whatever runs are there, and of `earlier`, one from before, what is not.

    The whole grid takes longer than a machine may be there for: it is run in parts.
    """
    kept = {(row["name"], row["variant"]): row for row in (earlier or {}).get("points", [])}
    versions: list[Json] = []
    rows, missing = [], []
    for place, point in known:
        row, before = load(place, point, out), kept.get((place.name, place.variant))
        if row is not None:
            if row["versions"] not in versions:
                versions.append(row["versions"])
            row["version"] = row.pop("versions")["paqm"]
            rows.append(row)
        elif before is not None and suite.is_of(before, point):
            rows.append(before)
        else:
            missing.append(f"{place.name} {place.variant}")
    if earlier:
        versions = [one for one in earlier["versions"] if one not in versions] + versions
    used = {row["version"] for row in rows}
    versions = [one for one in versions if one["paqm"] in used]
    return {
        "format": 1,
        "scenario": "regimes",
        "title": "Followers over links of many kinds",
        "seed": seed,
        "versions": versions,
        "grid": {"points": len(known), "run": len(rows), "missing": missing},
        "points": rows,
        "checks": checks(rows),
    }


HEAD = ("point", "variant", "p50", "p95", "limit", "p99", "limit", "settling", "limit", "lost",
        "late", "share %", "least", "TCP %", "use %", "outside")


def cells(row: Json) -> list[str]:
    """A point's line in a table for people."""
    want = row["limits"]
    settle = markdown.cell(row["settle_s"], 1)
    if row["unsettled"]:
        settle = f"{row['unsettled']} of {row['judged']} not"
    return [
        row["name"],
        row["variant"],
        markdown.cell(row["p50_ms"], 1),
        markdown.cell(row["p95_ms"], 1),
        markdown.cell(want["p95_ms"], 1),
        markdown.cell(row["p99_ms"], 1),
        markdown.cell(want["p99_ms"], 1),
        settle,
        markdown.cell(want["settle_s"], 1),
        str(row["lost"]),
        str(row["lost_late"]),
        markdown.cell(row["share_percent_mean"], 1),
        markdown.cell(row["share_percent_least"], 1),
        markdown.cell(row["tcp_percent"], 1) if row["tcp"] else "",
        markdown.cell(row["use_percent"], 1),
        " ".join(row["outside"]),
    ]


def table(data: Json, shown: set[tuple[str, str]] | None = None) -> str:
    """The points (all, or those named), and how much of the grid they are."""
    rows = [list(HEAD)]
    rows += [
        cells(row)
        for row in data["points"]
        if shown is None or (row["name"], row["variant"]) in shown
    ]
    width = [max(len(row[i]) for row in rows) for i in range(len(HEAD))]
    lines = []
    for row in rows:
        left = [row[i].ljust(width[i]) for i in range(2)]
        lines.append("  ".join(left + [row[i].rjust(width[i]) for i in range(2, len(HEAD))]))
    part = data["grid"]
    lines.append(f"{part['run']} of {part['points']} points have been run")
    if len(data["versions"]) > 1:
        lines.append(f"they are of {len(data['versions'])} versions of the programs")
    for check in data["checks"]:
        lines.append(
            f"{'pass' if check['pass'] else 'FAIL'}  {check['variant']} {check['name']}: "
            f"{check['value']:g} {check['unit']}, {check['relation']} {check['limit']:g}"
        )
    return "\n".join(lines)
