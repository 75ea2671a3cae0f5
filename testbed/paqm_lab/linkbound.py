# SPDX-License-Identifier: GPL-2.0
"""What no router could better: media's wait for a link that follows a trace, under an oracle.

  testbed/paqm-lab linkbound [--seed N] [--json] [LINK ...]

The load of the scenarios link-*.toml (three streams of 24 frames/s, from 20 s on TCP that fills
what they leave), the link of testbed/kernel/labtrace, and media always served first. Frames are of
exactly the size that their rate gives, their bytes spread over the frame interval: no encoder, no
rounds, no messages. What remains is what the link itself and the age of the news cost:

nothing    streams of 10 kbit/s: the wait for the link's next opportunity
foreseen   each frame has the part of what the link WILL carry while the frame arrives
past       each frame has the part of what the link did carry, exactly known to the router, in the
           last 100 ms when the sender hears of it: one way later

For each: that part in per cent, 50th, 95th and 99th percentile of the time in the router in ms, and
how much of what the streams could have used before TCP came they did use.
"""

from __future__ import annotations

import argparse
import json
from collections import deque
from dataclasses import asdict, dataclass

import numpy as np

from paqm_lab import linktrace
from paqm_lab.linktrace import I64

DURATION = 40.0  # s
FRAME = 1 / 24  # s
CEILING, FLOOR, THIN = 3e6, 2e5, 1e4  # bit/s of a stream
STREAMS = ((0.0, 40.0), (0.0, 40.0), (4.0, 36.0))
TCP_START, TCP_FLOWS = 20.0, 4
ONE_WAY = 0.010  # s between sender and router
PAYLOAD = 1240  # bytes of a packet at most
PAST = 0.1  # s of the link that the router looks back at
SETTLE = 2.0  # s that use leaves out
PARTS = {"nothing": (0,), "foreseen": (60, 70, 80, 90, 96), "past": (60, 70, 80, 90, 96)}


@dataclass(frozen=True)
class Bound:
    """One row: see the head of this file."""

    known: str
    part_percent: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    use_percent: float


def _carried(sums: I64, begin: float, end: float) -> float:
    """Bit/s of the trace between two times, at least one millisecond of it."""
    last = len(sums) - 1
    first = min(max(int(begin * 1000), 0), last - 1)
    until = min(max(int(end * 1000), first + 1), last)
    return float(sums[until] - sums[first]) * linktrace.OPPORTUNITY * 8000 / (until - first)


def arrivals(trace: I64, known: str, part: float) -> list[tuple[float, int]]:
    """Media packets at the router: time in ms, bytes."""
    sums = np.concatenate([[0], np.cumsum(trace)])
    found = []
    for number, (start, stop) in enumerate(STREAMS):
        begin = start + number * FRAME / len(STREAMS)
        while begin + FRAME < stop:
            there = begin + ONE_WAY
            if known == "past":
                rate = _carried(sums, begin - ONE_WAY - PAST, begin - ONE_WAY)
            else:
                rate = _carried(sums, there, there + FRAME)
            flows = sum(a <= begin < b for a, b in STREAMS)
            flows += TCP_FLOWS if begin >= TCP_START else 0
            rate = THIN if known == "nothing" else min(max(part * rate / flows, FLOOR), CEILING)
            size = rate * FRAME / 8
            count = int(np.ceil(size / PAYLOAD))
            for packet in range(count):
                found.append(((there + FRAME * packet / count) * 1000, round(size / count)))
            begin += FRAME
    return sorted(found)


def _next(media: deque[tuple[float, int]], tcp: bool) -> tuple[float, int] | None:
    if media:
        return media.popleft()
    return (-1.0, linktrace.OPPORTUNITY) if tcp else None


def serve(trace: I64, packets: list[tuple[float, int]], tcp_start: float) -> list[float]:
    """Time in the router of each packet, ms, through the link of sch_labtrace.c."""
    media: deque[tuple[float, int]] = deque()
    held: tuple[float, int] | None = None  # the packet that is being sent
    waits: list[float] = []
    credit = place = 0
    for slot in range(len(trace)):
        while place < len(packets) and packets[place][0] < slot:
            media.append(packets[place])
            place += 1
        tcp = slot >= tcp_start * 1000
        held = held or _next(media, tcp)
        credit = credit + int(trace[slot]) * linktrace.OPPORTUNITY if held else 0
        while held and held[1] <= credit:
            credit -= held[1]
            if held[0] >= 0:
                waits.append(slot - held[0])
            held = _next(media, tcp)
    return waits


def use(trace: I64, packets: list[tuple[float, int]]) -> float:
    """What arrived before TCP, in per cent of what the streams could have used, each 250 ms."""
    window = 0.25
    rates = linktrace.rates(trace, window)
    could = sent = 0.0
    for at in np.arange(SETTLE, TCP_START, window):
        streams = sum(a <= at and at + window <= b for a, b in STREAMS)
        could += min(float(rates[round(at / window)]), streams * CEILING) * window / 8
    for moment, size in packets:
        if SETTLE * 1000 <= moment < TCP_START * 1000:
            sent += size
    return 100 * sent / could


def bound(trace: I64, known: str, part_percent: int) -> Bound:
    """One row of the table."""
    packets = arrivals(trace, known, part_percent / 100)
    waits = serve(trace, packets, TCP_START)
    p50, p95, p99 = (float(np.percentile(waits, p)) for p in (50, 95, 99))
    return Bound(known, part_percent, p50, p95, p99, use(trace, packets))


def main() -> int:
    options = argparse.ArgumentParser(description="Media's wait for a link, under an oracle.")
    options.add_argument("link", nargs="*", default=list(linktrace.KINDS), metavar="LINK")
    options.add_argument("--seed", type=int, default=1, help="seed of the run (%(default)s)")
    options.add_argument("--json", action="store_true")
    args = options.parse_args()
    unknown = set(args.link) - set(linktrace.KINDS)
    if unknown:
        options.error(f"{unknown.pop()}: expected one of {', '.join(linktrace.KINDS)}")
    found = {}
    for kind in args.link:
        trace = linktrace.make(kind, DURATION, args.seed)
        found[kind] = [bound(trace, k, part) for k, parts in PARTS.items() for part in parts]
    if args.json:
        print(json.dumps({kind: [asdict(b) for b in rows] for kind, rows in found.items()}))
        return 0
    print(f"{'link':5} {'known':9} {'part %':>6} {'p50':>6} {'p95':>6} {'p99':>6} {'use %':>6}")
    for kind, rows in found.items():
        for b in rows:
            print(
                f"{kind:5} {b.known:9} {b.part_percent:6} {b.p50_ms:6.1f} {b.p95_ms:6.1f} "
                f"{b.p99_ms:6.1f} {b.use_percent:6.0f}"
            )
    return 0
