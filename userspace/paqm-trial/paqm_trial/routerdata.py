# SPDX-License-Identifier: GPL-2.0
"""What a router has kept, read: turns, and the figures of days and of calls.

Two weeks are a million samples: they are read twice, one after the other, and none is kept.
"""

from __future__ import annotations

import bisect
import re
from collections import Counter
from collections.abc import Callable, Iterator
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


class Spans:
    """Stretches of time, merged: is a moment in one of them?"""

    def __init__(self, spans: list[tuple[int, int]]) -> None:
        self.begins: list[int] = []
        self.ends: list[int] = []
        for begin, end in sorted(spans):
            if self.ends and begin <= self.ends[-1]:
                self.ends[-1] = max(self.ends[-1], end)
            else:
                self.begins.append(begin)
                self.ends.append(end)

    def has(self, at: int) -> bool:
        place = bisect.bisect_right(self.begins, at) - 1
        return place >= 0 and at <= self.ends[place]


@dataclass
class RouterData:
    folder: Path
    device: str
    machine: str
    plan: dict[str, Any]
    samples: int = 0
    breaks: list[int] = field(default_factory=list)  # when a queue was attached
    edges: list[int] = field(default_factory=list)
    bandwidth: float | None = None
    baseline: str = ""
    problems: list[str] = field(default_factory=list)
    media: Counter[int] = field(default_factory=Counter)  # bytes by second, around calls
    of_days: dict[tuple[str, str], Stretch] = field(default_factory=dict)
    offset_ns: int = 0  # of its clock against that of the calls' first ends


def _event(data: RouterData, row: dict[str, Any], at: int) -> None:
    what = row.get("event")
    if what == "attached":
        data.breaks.append(at)
        edges = row.get("edges_ns")
        if (
            isinstance(edges, list)
            and len(edges) <= BINS
            and all(count(one) is not None for one in edges)
        ):
            data.edges = [int(one) for one in edges] or data.edges
        data.bandwidth = number(row.get("bandwidth_bps")) or data.bandwidth
        data.baseline = str(row.get("baseline") or data.baseline)[:20]
    elif what == "replaced":
        data.problems.append(f"{store.day_of(at)}: the queue was replaced by another program")
    elif what == "trouble":
        data.problems.append(f"{store.day_of(at)}: {str(row.get('detail'))[:200]}")


def _pairs(
    folder: Path, reader: store.Reader, other: Callable[[int, dict[str, Any]], None]
) -> Iterator[tuple[Sample, Sample]]:
    """Samples that follow each other under one queue; every row goes to `other`, too."""
    last: Sample | None = None
    for path in sorted(folder.glob("samples-*.jsonl")):
        for row in reader.lines(path):
            at = count(row.get("wall_ns"))
            if at is None:
                continue
            other(at, row)
            if row.get("event") == "attached":
                last = None
            elif "event" not in row and isinstance(row.get("arm"), str):
                now = Sample(at, row["arm"][:20], row)
                if last and last.arm == now.arm and 0 < now.at - last.at <= NEAR_NS:
                    yield last, now
                last = now


def read_router(folder: Path, machine: str, calls: list[tuple[int, int]]) -> RouterData:
    """`calls`: begin and end of each."""
    reader = store.Reader(folder)
    plan = store.read_json(folder / "plan.json") or {}
    device = plan.get("device")
    name = device if isinstance(device, str) else folder.name
    data = RouterData(folder, name[:40], machine, plan, problems=reader.problems)
    wide = (LAG_S + 120) * 10**9
    near = Spans([(begin - wide, end + wide) for begin, end in calls])
    clock: list[dict[str, Any]] = []
    steps: list[int] = []

    def other(at: int, row: dict[str, Any]) -> None:
        data.samples += "event" not in row
        if row.get("event") == "begin":
            clock.clear()  # a restart may begin the steady clock anew: that is no step
        clock.append(row)
        if len(clock) > 1:
            steps.extend(moment for moment, _ in clocks.steps(clock))
            del clock[0]
        if "event" in row:
            _event(data, row, at)

    for first, last in _pairs(folder, reader, other):
        day = store.trial_day(first.at)
        data.of_days.setdefault((day, first.arm), Stretch()).add(first, last)
        if near.has(last.at):
            data.media[last.at // 10**9] += (
                grown(
                    part(first.row, "media").get("sent_bytes"),
                    part(last.row, "media").get("sent_bytes"),
                )
                or 0
            )
    if steps:
        data.problems.append(f"its clock was set {len(steps)} times")
    data.breaks.sort()
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
            if (
                before
                and after
                and len(before) == len(after)
                and all(b >= a for a, b in zip(before, after, strict=True))
            ):
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
            "seconds": rounded(self.ns / 1e9, 1),
            "rate_kbps": rounded(self.bytes * 8e6 / self.ns, 1),
            "loss_percent": _percent(self.drops, self.packets),
            "media_loss_percent": None,
            "media_delay_ms": None,
            "elastic_delay_ms": None,
            "backlog_ms": None,
            "utilisation_percent": None,
        }
        for name, counts in self.hist.items():
            if sum(counts):
                found[f"{name}_delay_ms"] = {
                    label: rounded(hist_quantile(counts, data.edges, share))
                    for label, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
                }
        if self.media["packets"]:
            found["media_loss_percent"] = _percent(self.media["drops"], self.media["packets"])
        if data.bandwidth:
            found["utilisation_percent"] = rounded(
                self.bytes * 8e9 / self.ns / data.bandwidth * 100, 2
            )
            found["backlog_ms"] = (
                {
                    label: rounded((quantile(self.backlog, share) or 0) * 8e3 / data.bandwidth)
                    for label, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
                }
                if self.backlog
                else None
            )
        return found


def _percent(drops: int, sent: int) -> float | None:
    return rounded(drops / (drops + sent) * 100) if drops + sent else None


class Window:
    """The time of a call, by the router's clock."""

    def __init__(self, begin: int, end: int) -> None:
        self.begin, self.end = begin, end
        self.arms: set[str] = set()
        self.stretch = Stretch()
        self.first: int | None = None
        self.last = 0

    def add(self, first: Sample, last: Sample) -> None:
        if first.at < self.end and last.at > self.begin:
            self.arms.add(first.arm)
            self.stretch.add(first, last)
            self.first = first.at if self.first is None else min(self.first, first.at)
            self.last = max(self.last, last.at)

    def result(self, data: RouterData) -> tuple[str | None, dict[str, Any] | None]:
        """The queue (None: not known, "mixed": more than one), and its figures."""
        if (
            self.first is None
            or self.first > self.begin + NEAR_NS
            or self.last < self.end - NEAR_NS
        ):
            return None, None
        inside = bisect.bisect_right(data.breaks, self.begin)
        if len(self.arms) > 1 or inside < len(data.breaks) and data.breaks[inside] < self.end:
            return "mixed", None
        return next(iter(self.arms)), self.stretch.figures(data)


def of_calls(
    data: RouterData, calls: list[tuple[int, int]]
) -> list[tuple[str | None, dict[str, Any] | None]]:
    """Queue and figures of each call."""
    windows = [Window(begin + data.offset_ns, end + data.offset_ns) for begin, end in calls]
    near = Spans([(one.begin - NEAR_NS, one.end + NEAR_NS) for one in windows])
    for first, last in _pairs(data.folder, store.Reader(data.folder), lambda at, row: None):
        if near.has(first.at):
            for window in windows:
                window.add(first, last)
    return [window.result(data) for window in windows]


def days(data: RouterData) -> list[dict[str, Any]]:
    """The figures of each day and queue, whoever sent."""
    return [
        {"device": data.device, "day": day, "arm": arm, **figures}
        for (day, arm), stretch in sorted(data.of_days.items())
        if re.fullmatch(r"\d{4}-\d\d-\d\d", day) and (figures := stretch.figures(data))
    ]
