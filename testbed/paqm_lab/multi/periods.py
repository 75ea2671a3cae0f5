# SPDX-License-Identifier: GPL-2.0
"""Figures of a run period by period: rates of all flows, counters and averages of sch_dcbt.

The queue's statistics are taken every SAMPLE.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from paqm_lab.multi.case import Case, Flow, Run
from paqm_lab.multi.shares import jain
from paqm_lab.multi.traceflows import WAIT_STEP

Json = dict[str, Any]

SAMPLE = 0.5  # s
CLASSES = ("tcp", "tagged", "untagged")
COUNTED = ("arrived_packets", "sent_packets", "sent_bytes", "drop_early", "drop_forced",
           "drop_limit", "drop_threshold", "drop_flow", "cut_in")
HELD = ("average_packets", "flows")


def _name(t: float) -> str:
    return f"period-{t:g}.json"


def _times(case: Case) -> list[float]:
    return [float(t) for t in np.arange(0, case.duration + SAMPLE / 2, SAMPLE)]


def log(case: Case, bounds: Sequence[Sequence[float]]) -> None:
    """Has the first bottleneck's statistics saved; bounds are multiples of SAMPLE."""
    case.facts["periods"] = [(float(begin), float(end)) for begin, end in bounds]
    host, device = case.facts["bottlenecks"][0]
    for t in _times(case):
        when = min(t, case.duration - 0.002)
        case.at(when, host, "tc", "-s", "-j", "qdisc", "show", "dev", device, save=_name(t))


def _queue(run: Run, t: float) -> Json | None:
    """sch_dcbt, where it is the queue."""
    for of in run.saved(_name(t)):
        if of["kind"] == "dcbt":
            found: Json = of
            return found
    return None


def _of_class(name: str, before: Json, after: Json, samples: list[Json]) -> Json:
    """What became of a class's packets, and the means of its averages."""
    grown: Json = {key: after[name][key] - before[name][key] for key in COUNTED}
    dropped = sum(grown[key] for key in COUNTED if key.startswith("drop"))
    of_all = grown["sent_packets"] + dropped
    found = {**grown, "dropped": dropped, "drop_percent": 100 * dropped / max(1, of_all)}
    for key in HELD:
        found[key] = float(np.mean([sample[name][key] for sample in samples]))
    return found


def _queue_of(run: Run, begin: float, end: float) -> Json | None:
    before, after = _queue(run, begin), _queue(run, end)
    if before is None or after is None:
        return None
    samples = [of for t in _times(run.case) if begin < t <= end
               if (of := _queue(run, t)) is not None]
    return {"average_packets": float(np.mean([of["average_packets"] for of in samples])),
            **{name: _of_class(name, before, after, samples) for name in CLASSES}}


def _period(run: Run, begin: float, end: float) -> Json:
    """Rates of the flows that are there, IP level, Mbit/s, and Jain's index over all of them."""
    entries: dict[str, list[float]] = {}
    for flow in run.case.flows:
        if flow.start < end and flow.stop > begin:
            entries.setdefault(flow.entry, []).append(run.rate(flow, begin, end) / 1e6)
    return {
        "rates_mbit": entries,
        "jain": jain([rate for rates in entries.values() for rate in rates]),
        "queue": _queue_of(run, begin, end),
    }


def _delays(run: Run, flow: Flow) -> Json | None:
    """One-way delay of a flow's packets, ms."""
    found = run.port(flow)
    waits = np.array(found.get("waits", []))
    if not len(waits):
        return None
    steps, until = waits[:, 0], np.cumsum(waits[:, 1])
    p99 = steps[np.searchsorted(until, 0.99 * until[-1])]
    return {"min": 1e3 * WAIT_STEP * float(steps[0]), "p99": 1e3 * WAIT_STEP * float(p99 + 1),
            "max": found["wait_max_us"] / 1e3, "sd": found["wait_sd_us"] / 1e3}


def all_of(run: Run) -> Json:
    """Nothing, without periods."""
    bounds = run.case.facts.get("periods")
    if not bounds:
        return {}
    traced = [flow for flow in run.case.flows if flow.sender == "levels"]
    return {
        "periods": {f"{begin:g}-{end:g}": _period(run, begin, end) for begin, end in bounds},
        "delays_ms": {flow.name: _delays(run, flow) for flow in traced},
    }
