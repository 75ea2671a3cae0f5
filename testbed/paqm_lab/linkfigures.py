# SPDX-License-Identifier: GPL-2.0
"""Figures of a run over a link whose rate follows a trace: use of what the link could carry."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from paqm_lab import linktrace
from paqm_lab.packets import ETHER_HEADER
from paqm_lab.rundata import Run

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]

WINDOW = 0.25  # s in which a stream's maximum and the link's rate are compared
SETTLE = 2.0  # s left out after TCP has joined
TRACK = 0.25  # s of the link's rate that an estimate is compared with


def _percent(part: float, whole: float) -> float | None:
    return 100 * part / whole if whole else None


def _estimates(path: Path) -> tuple[F64, F64]:
    """Times and capacities that a paqm qdisc told of; empty for other qdiscs."""
    rows = []
    for line in path.read_text().splitlines() if path.exists() else []:
        record = json.loads(line)
        for qdisc in record["qdisc"]:
            if qdisc["kind"] == "paqm" and "capacity_bps" in qdisc:
                rows.append((float(record["t"]), float(qdisc["capacity_bps"])))
    table = np.array(rows, np.float64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def tracking(times: F64, told: F64, trace: I64) -> dict[str, Any] | None:
    """Distance of the capacity in force from the mean rate of the last TRACK s, in % of it."""
    size = round(TRACK * 1000)
    sums = np.concatenate([[0], np.cumsum(trace)])
    end = np.round(times * 1000).astype(np.int64)
    usable = (end >= size + round(SETTLE * 1000)) & (end <= len(trace))
    if not usable.any():
        return None
    bits = linktrace.OPPORTUNITY * 8 / TRACK
    real = (sums[end[usable]] - sums[end[usable] - size]) * bits
    known = real > 0
    error = 100 * (told[usable][known] / real[known] - 1)
    if len(error) == 0:
        return None
    return {
        "mean_percent": float(error.mean()),
        "p50_abs_percent": float(np.percentile(np.abs(error), 50)),
        "p90_abs_percent": float(np.percentile(np.abs(error), 90)),
    }


def access(trace: I64) -> dict[str, float]:
    """What a packet waits that finds the link idle: time to the next opportunity, ms."""
    at = np.flatnonzero(trace)
    moments = np.arange(at[-1])
    wait = at[np.searchsorted(at, moments, side="right")] - moments
    return {f"p{p}": float(np.percentile(wait, p)) for p in (50, 95, 99)}


def figures(
    run: Run, t_out: F64, size: I64, media: Bool, bulk: Bool, ceilings: dict[str, float]
) -> dict[str, Any]:
    """Use of the link without and with TCP, and how well its rate was known.

    `ceilings` are the streams' maxima as the link counts bytes. Without TCP the streams can use no
    more than those, so the link's capacity is cut to them window by window.
    """
    trace = linktrace.read(run.path / "trace.txt")
    rates = linktrace.rates(trace, WINDOW)
    left = ~np.isnan(t_out)
    first = float(t_out[bulk & left].min()) if (bulk & left).any() else run.duration
    alone = round((first - 0.5) / WINDOW)
    start = round(SETTLE / WINDOW)
    most = np.zeros(len(rates))
    for flow in run.media:
        at = np.arange(len(rates)) * WINDOW
        most[(at >= flow.start) & (at + WINDOW <= flow.stop)] += ceilings.get(flow.name, 0.0)
    could = float(np.minimum(rates, most)[start:alone].sum()) * WINDOW / 8
    during = left & media & (t_out >= start * WINDOW) & (t_out < alone * WINDOW)
    begin, end = first + SETTLE, min(flow.stop for flow in run.media) if run.media else 0.0
    both = left & (t_out >= begin) & (t_out < end)
    carried = float(size[both].sum())
    slots = trace[round(begin * 1000) : round(end * 1000)]
    times, told = _estimates(run.path / "tc.jsonl")
    return {
        "link": {
            "mean_bps": linktrace.mean(trace),
            "access_ms": access(trace),
            "use_without_elastic_percent": _percent(float(size[during].sum()), could),
            "use_with_elastic_percent": _percent(
                carried, float(slots.sum()) * linktrace.OPPORTUNITY
            ),
            "media_part_percent": _percent(float(size[both & media].sum()), carried),
            "capacity_error": tracking(times, told, trace),
        }
    }


def ceilings(run: Run, size: I64, media: dict[str, Bool]) -> dict[str, float]:
    """The streams' maxima, bit/s on the link."""
    found = {}
    for flow in run.media:
        members = media[flow.name]
        if members.any():
            mean = float(size[members].mean())
            found[flow.name] = flow.rate_max * mean / (mean - ETHER_HEADER)
    return found
