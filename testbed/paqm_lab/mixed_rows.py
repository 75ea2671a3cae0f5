# SPDX-License-Identifier: GPL-2.0
"""Each run of paqm_lab.mixed as a row: the figures of its groups of flows.

A frame that never arrives counts with the length of the run, a stream that shows nothing with VMAF
0.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paqm_lab import metrics, stats, suite
from paqm_lab.mixed_cases import QUEUES, Case
from paqm_lab.rundata import ADVISED_SENDER
from paqm_lab.scenario import rate

Json = dict[str, Any]

FORMAT = 2  # of result.json


def sort_of(entry_of_flow: Json) -> str:
    """The group that a flow's figures go into."""
    if entry_of_flow["kind"] == "video":
        return "followers" if entry_of_flow["sender"] == ADVISED_SENDER else "libwebrtc"
    return str(entry_of_flow["kind"])


def _values(flows: list[Json], *keys: str) -> list[Any]:
    found = []
    for flow in flows:
        value: Any = flow
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        found.append(value)
    return found


def mean_of(values: list[Any]) -> float | None:
    """None if one is unknown."""
    return None if not values or None in values else stats.mean(values)


def most_of(values: list[Any]) -> float | None:
    return None if not values or None in values else float(max(values))


def least_of(values: list[Any]) -> float | None:
    return None if not values or None in values else float(min(values))


def group_figures(flows: list[Json], seconds: float, scored: bool) -> Json:
    """Flows of one kind in one run: means over the flows, and the worst of them."""
    shares = [flow["share_mbit"] for flow in flows]
    rates = [flow["mean_mbit"] for flow in flows]
    figures: Json = {
        "count": len(flows),
        "lost": sum(flow["lost"] for flow in flows),
        "lost_percent": mean_of(_values(flows, "lost_percent")),
        "delay_p50_ms": mean_of(_values(flows, "sojourn_ms", "p50")),
        "delay_p95_ms": mean_of(_values(flows, "sojourn_ms", "p95")),
        "delay_p95_worst_ms": most_of(_values(flows, "sojourn_ms", "p95")),
        "delay_p99_ms": mean_of(_values(flows, "sojourn_ms", "p99")),
        "delay_p99_worst_ms": most_of(_values(flows, "sojourn_ms", "p99")),
        "rate_mbit": mean_of(rates),
        "share_percent": 100 * sum(rates) / sum(shares)
        if None not in rates and None not in shares and sum(shares)
        else None,
        "share_percent_least": least_of(_values(flows, "share_percent")),
    }
    if flows[0]["kind"] == "video":
        frame = _values(flows, "frame_delivery_ms", "p95")
        frame = [1000 * seconds if value is None else value for value in frame]
        vmaf = [v or 0.0 for v in _values(flows, "vmaf")]
        low = [v or 0.0 for v in _values(flows, "vmaf_p5")]
        figures |= {
            "frame_p95_ms": mean_of(frame),
            "frames_never": sum(_values(flows, "frames_never")),
            "vmaf": mean_of(vmaf) if scored else None,
            "vmaf_p5": mean_of(low) if scored else None,
            "freezes": sum(v or 0 for v in _values(flows, "freezes")) if scored else None,
            "told_mbit": mean_of(_values(flows, "told", "mean_mbit")),
        }
    if flows[0]["kind"] == "web":
        figures |= {
            "connections": sum(_values(flows, "connections", "done")),
            "completion_p50_ms": mean_of(_values(flows, "completion_ms", "p50")),
            "completion_p95_ms": mean_of(_values(flows, "completion_ms", "p95")),
        }
    return figures


def offered(load: Json, start: float, stop: float, step: float = 0.001) -> float:
    """Mean Mbit/s that a flood of a case sends in an interval."""
    high: float = rate(load["rate"]) / 1e6
    if "on_ms" not in load:
        return high
    low: float = rate(load.get("off_rate", "0bit")) / 1e6
    period, on = (load["on_ms"] + load["off_ms"]) / 1000, load["on_ms"] / 1000
    count = round((stop - start) / step)
    since = start - float(load["start"])
    active: int = sum((since + (i + 0.5) * step) % period < on for i in range(count))
    return low + (high - low) * active / count


def misbehaver(case: Case, variant: Json) -> Json | None:
    """What the flood of a case got, against two notions of its fair share.

    Nominal: the max-min share if every follower wants as much as it may. Fair: the share if the
    followers want what they really sent, second by second, which is all that a queue can know,
    and the flood what it sends and what of it waits already.
    """
    floods = case.load.get("flood", [])
    mine = [flow for flow in variant["each"].values() if flow["kind"] == "flood"]
    others = [flow for flow in variant["each"].values() if sort_of(flow) == "followers"]
    if len(floods) != 1 or not mine or not others:
        return None
    load, begin = floods[0], case.judge_from
    length = min(len(flow["windows_mbit"]) for flow in [*mine, *others])
    link, got, fair = variant["bottleneck_bps"] / 1e6, [], []
    for i in range(length):
        sent = {
            name: flow["windows_mbit"][i] / (1 - (flow["lost_percent"] or 0.0) / 100)
            for name, flow in variant["each"].items()
            if sort_of(flow) == "followers"
        }
        want = offered(load, begin + i, begin + i + 1)
        want += sum(flow["waiting_mbit"][i] for flow in mine)
        got.append(sum(flow["windows_mbit"][i] for flow in mine))
        fair.append(metrics.fair_shares(link, sent | {"": want})[""])
    nominal = mean_of([flow["share_mbit"] for flow in mine])
    mean, share = stats.mean(got), stats.mean(fair)
    return {
        "mean_mbit": mean,
        "fair_mbit": share,
        "fair_percent": 100 * mean / share if share else None,
        "nominal_mbit": nominal,
        "nominal_percent": 100 * mean / nominal if nominal and len(mine) == 1 else None,
    }


def row(case: Case, queue: str, seed: int, variant: Json, scored: bool) -> Json:
    """One run, in the figures that are judged or shown."""
    groups: dict[str, list[Json]] = {}
    for flow in variant["each"].values():
        groups.setdefault(sort_of(flow), []).append(flow)
    steady = [
        flow["told"]["apart_percent"]
        for name, flow in variant["each"].items()
        if sort_of(flow) == "followers"
        and flow.get("told")
        and name not in case.facts.get("limited", ())
    ]
    return {
        "case": case.name,
        "queue": queue,
        "seed": seed,
        "qdisc": variant["qdisc"],
        "scored": scored,
        "use_percent": variant["figures"]["link_use_percent"]["whole"],
        "messages": variant["figures"]["feedback"]["messages"],
        "told_apart_percent": most_of(steady),
        "groups": {
            name: group_figures(flows, case.seconds, scored) for name, flows in groups.items()
        },
        "misbehaver": misbehaver(case, variant) if case.group == "bad" else None,
    }


# Runs on disk


def load(
    out: Path, cases: Mapping[str, Case], words: str = ""
) -> tuple[list[Json], list[Json]]:
    """All runs that are there as rows, with these words for the qdisc; versions."""
    rows, versions = [], []
    for case in cases.values():
        for there in suite.runs_of(out, case.name):
            if there.queue not in QUEUES:
                continue
            point = case.point(there.queue, there.seed, words)
            stamp, variant = suite.stored_of(point, out), suite.load(point, out)
            if stamp is None or variant is None or "each" not in variant:
                continue
            if variant["versions"] not in versions:
                versions.append(variant["versions"])
            one = row(case, point.queue, point.seed, variant, bool(stamp["scored"]))
            made = {key: stamp[key] for key in ("programs", "scenario")}
            made["version"] = variant["versions"]["paqm"]
            rows.append(one | made)
    return rows, versions
