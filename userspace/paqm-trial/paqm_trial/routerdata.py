# SPDX-License-Identifier: GPL-2.0
"""What a router has kept, read: samples, turns, and the figures between two moments."""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paqm_trial import clocks, store
from paqm_trial.figures import quantile, rounded
from paqm_trial.store import count, number

BINS = 256
NEAR_NS = 90 * 10**9  # between two samples while nothing is sent: 60 s
CLASSES = ("media", "elastic")
DROPS = ("drop_tail_packets", "drop_inner_packets", "drop_strike_packets")
LAG_S = 900
SAME = 0.9  # correlation above which two series are the same traffic


@dataclass
class Sample:
    at: int
    arm: str
    row: dict[str, Any]


@dataclass
class RouterData:
    folder: Path
    device: str
    machine: str
    plan: dict[str, Any]
    samples: list[Sample] = field(default_factory=list)
    breaks: list[int] = field(default_factory=list)  # when a queue was attached
    edges: list[int] = field(default_factory=list)
    bandwidth: float | None = None
    baseline: str = ""
    problems: list[str] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    offset_ns: int = 0  # of its clock against that of the calls' first ends


def _event(data: RouterData, row: dict[str, Any], at: int) -> None:
    what = row.get("event")
    if what == "attached":
        data.breaks.append(at)
        edges = row.get("edges_ns")
        if isinstance(edges, list) and len(edges) <= BINS and all(
                count(one) is not None for one in edges):
            data.edges = [int(one) for one in edges] or data.edges
        data.bandwidth = number(row.get("bandwidth_bps")) or data.bandwidth
        data.baseline = str(row.get("baseline") or data.baseline)[:20]
    elif what == "replaced":
        data.problems.append(f"{store.day_of(at)}: the queue was replaced by another program")
    elif what == "trouble":
        data.problems.append(f"{store.day_of(at)}: {str(row.get('detail'))[:200]}")


def read_router(folder: Path, machine: str) -> RouterData:
    reader = store.Reader(folder)
    plan = store.read_json(folder / "plan.json") or {}
    data = RouterData(folder, folder.name[:40], machine, plan, problems=reader.problems)
    notes: list[dict[str, Any]] = []
    for path in sorted(folder.glob("samples-*.jsonl")):
        for row in reader.lines(path):
            at = count(row.get("wall_ns"))
            if at is None:
                continue
            notes.append({"wall_ns": at, "mono_ns": row.get("mono_ns")})
            if "event" in row:
                _event(data, row, at)
            elif isinstance(row.get("arm"), str):
                data.samples.append(Sample(at, row["arm"][:20], row))
    # A restart begins the steady clock anew: that is no step.
    steps = [at for at, by in clocks.steps(notes) if at not in data.breaks]
    if steps and len(steps) > len(data.breaks):
        data.problems.append(f"its clock was set {len(steps)} times")
    data.samples.sort(key=lambda one: one.at)
    data.breaks.sort()
    data.times = [one.at for one in data.samples]
    return data


def part(row: dict[str, Any], name: str) -> dict[str, Any]:
    paqm = row.get("paqm")
    found = paqm.get(name) if isinstance(paqm, dict) else None
    return found if isinstance(found, dict) else {}


def histogram(row: dict[str, Any], name: str) -> list[int] | None:
    bins = part(row, name).get("sojourn_hist_packets")
    if not isinstance(bins, list) or not 0 < len(bins) <= BINS:
        return None
    counts = [count(one) for one in bins]
    return None if None in counts else [one for one in counts if one is not None]


def hist_quantile(counts: list[int], edges: list[int], share: float) -> float | None:
    """Of times in bins, linear inside a bin, as tc shows it; ms."""
    total = sum(counts)
    if not total or len(edges) < len(counts):
        return None
    want, below = share * total, 0
    for at, packets in enumerate(counts):
        if packets and below + packets >= want:
            low = edges[at]
            high = edges[at + 1] if at + 1 < len(edges) else 2 * low
            return (low + (high - low) * (want - below) / packets) / 1e6
        below += packets
    return None


def grown(first: Any, last: Any) -> int | None:
    """Of a counter; None: it is missing, or began anew."""
    a, b = count(first), count(last)
    return b - a if a is not None and b is not None and b >= a else None


def _sum_drops(one: dict[str, Any]) -> int | None:
    found = [count(one.get(key)) for key in DROPS]
    return None if None in found else sum(value or 0 for value in found)


class Stretch:
    """Between two moments under one queue: grows from pieces, since counters may begin anew."""

    def __init__(self) -> None:
        self.bytes = self.packets = self.drops = 0
        self.ns = 0
        self.backlog: list[float] = []
        self.hist: dict[str, list[int]] = {}
        self.media = {"packets": 0, "drops": 0}
        self.notices = 0

    def add(self, first: Sample, last: Sample) -> None:
        """Two samples that follow each other."""
        sent = grown(first.row.get("bytes"), last.row.get("bytes"))
        if sent is None or last.at <= first.at or first.row.get("kind") != last.row.get("kind"):
            return
        self.bytes += sent
        self.packets += grown(first.row.get("packets"), last.row.get("packets")) or 0
        self.drops += grown(first.row.get("drops"), last.row.get("drops")) or 0
        self.ns += last.at - first.at
        if sent:
            self.backlog.append(count(last.row.get("backlog")) or 0)
        for name in CLASSES:
            before, after = histogram(first.row, name), histogram(last.row, name)
            if before and after and len(before) == len(after) and all(
                    b >= a for a, b in zip(before, after, strict=True)):
                kept = self.hist.setdefault(name, [0] * len(after))
                if len(kept) == len(after):
                    for at, (a, b) in enumerate(zip(before, after, strict=True)):
                        kept[at] += b - a
        one, other = part(first.row, "media"), part(last.row, "media")
        self.media["packets"] += grown(one.get("sent_packets"), other.get("sent_packets")) or 0
        self.media["drops"] += grown(_sum_drops(one), _sum_drops(other)) or 0

    def figures(self, data: RouterData) -> dict[str, Any] | None:
        if not self.ns:
            return None
        found: dict[str, Any] = {
            "seconds": rounded(self.ns / 1e9, 1), "rate_kbps": rounded(self.bytes * 8e6 / self.ns, 1),
            "loss_percent": _percent(self.drops, self.packets),
            "media_loss_percent": None, "media_delay_ms": None, "elastic_delay_ms": None,
            "backlog_ms": None, "utilisation_percent": None}
        for name, counts in self.hist.items():
            if sum(counts):
                found[f"{name}_delay_ms"] = {
                    label: rounded(hist_quantile(counts, data.edges, share))
                    for label, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))}
        if self.media["packets"]:
            found["media_loss_percent"] = _percent(self.media["drops"], self.media["packets"])
        if data.bandwidth:
            found["utilisation_percent"] = rounded(
                self.bytes * 8e9 / self.ns / data.bandwidth * 100, 2)
            found["backlog_ms"] = {
                label: rounded((quantile(self.backlog, share) or 0) * 8e3 / data.bandwidth)
                for label, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
            } if self.backlog else None
        return found


def _percent(drops: int, sent: int) -> float | None:
    return rounded(drops / (drops + sent) * 100) if drops + sent else None


def between(data: RouterData, begin: int, end: int) -> tuple[str | None, dict[str, Any] | None]:
    """The queue of that time (None: not known, "mixed": more than one), and its figures."""
    begin, end = begin + data.offset_ns, end + data.offset_ns
    low = max(0, bisect.bisect_right(data.times, begin) - 1)
    high = min(len(data.times), bisect.bisect_left(data.times, end) + 1)
    inside = data.samples[low:high]
    if not inside or inside[0].at > begin + NEAR_NS or inside[-1].at < end - NEAR_NS:
        return None, None
    arms = {one.arm for one in inside if begin <= one.at <= end} or {inside[0].arm}
    if len(arms) > 1 or any(begin < at < end for at in data.breaks):
        return "mixed", None
    stretch = Stretch()
    for first, last in zip(inside, inside[1:], strict=False):
        if first.arm == last.arm:
            stretch.add(first, last)
    return arms.pop(), stretch.figures(data)


def days(data: RouterData) -> list[dict[str, Any]]:
    """The figures of each day and queue, whoever sent."""
    found: dict[tuple[str, str], Stretch] = {}
    for first, last in zip(data.samples, data.samples[1:], strict=False):
        at = bisect.bisect_right(data.breaks, first.at)
        attached = at < len(data.breaks) and data.breaks[at] <= last.at
        if first.arm == last.arm and not attached and last.at - first.at <= NEAR_NS:
            found.setdefault((store.day_of(first.at), first.arm), Stretch()).add(first, last)
    return [{"device": data.device, "day": day, "arm": arm, **figures}
            for (day, arm), stretch in sorted(found.items())
            if re.fullmatch(r"\d{4}-\d\d-\d\d", day) and (figures := stretch.figures(data))]
