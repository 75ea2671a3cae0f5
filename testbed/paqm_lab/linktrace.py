# SPDX-License-Identifier: GPL-2.0
"""Links whose capacity varies: delivery traces by seeded models, and what they can carry.

A trace says in which millisecond the link may deliver a full packet, as mahimahi's mm-link has it
(Netravali et al., USENIX ATC 2015): a text file, one line per opportunity. No recorded traces are
used: these are models, with their parameters from the literature, cut to the rates of the lab.

lte        Cellular downlink by the model that Sprout infers links with (Winstein, Sivaraman,
           Balakrishnan, NSDI 2013): deliveries are a Poisson process whose rate wanders as Brownian
           motion of 200 packets/s per sqrt(s), at most 1000 packets/s; a rate that reaches 0 stays
           there and escapes once a second on average.
wifi       802.11n station at the edge of its cell: the access point sends aggregates of 4 ms of
           air time at one of MCS 1-4 (one stream, 20 MHz); rate control moves by one step every
           0.1-1 s (Minstrel looks every 100 ms); n = 2..5 contenders take turns, each after DIFS
           and an exponential back-off of 9 us slots, n changes every 2 s on average; an aggregate
           is lost with 5 %.
leo        Low-orbit access: the path is chosen anew every 15 s (Starlink; Mohan et al., WWW 2024),
           each time with a capacity of 0.4 to 1.6 of the mean, and with a gap of 30 to 130 ms at
           the change; in between 4 % jitter per 100 ms.
steps      4 Mbit/s, half of it in the second third of the time, 4 again: no model, but the hardest
           change that a link has.
steady     Evenly spaced deliveries, the reference.
"""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import numpy.typing as npt

from paqm_lab import follow

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]

KINDS = ("lte", "wifi", "leo")
# Of the process in a guest, which has no numpy and so cannot take them from here.
OPPORTUNITY, FLOOR = follow.OPPORTUNITY, follow.FLOOR
SATELLITE_MEAN = 8e6  # bit/s
STEPS = (4e6, 2e6, 4e6)  # bit/s, for equal times
AIR_MS = 4.0  # of an aggregate
LOW_PERCENTILE = 10
LOW_WINDOW = 1.0  # s


def _poisson(dice: random.Random, mean: float) -> int:
    count, left = 0, dice.expovariate(1.0)
    while left < mean:
        count += 1
        left += dice.expovariate(1.0)
    return count


def _lte(dice: random.Random, length: int) -> I64:
    rate, top, sigma, step = 700.0, 1000.0, 200.0, 20
    counts = np.zeros(length, np.int64)
    for at in range(length):
        if at % step == 0:
            if rate > 0:
                rate += dice.gauss(0.0, sigma * (step / 1000) ** 0.5)
                rate = max(0.0, top - abs(top - rate))
            elif dice.random() < step / 1000:
                rate = abs(dice.gauss(0.0, sigma))
        counts[at] = _poisson(dice, rate / 1000)
    return counts


def _wifi(dice: random.Random, length: int) -> I64:
    phy = [13.0, 19.5, 26.0, 39.0]  # Mbit/s
    mcs, contenders = 2, 3
    next_mcs = next_contenders = now = 0.0  # ms
    counts = np.zeros(length, np.int64)
    while now < length:
        if now >= next_mcs:
            mcs = min(max(mcs + dice.choice((-1, 1)), 0), len(phy) - 1)
            next_mcs = now + dice.uniform(100, 1000)
        if now >= next_contenders:
            contenders = min(max(contenders + dice.choice((-1, 1)), 2), 5)
            next_contenders = now + dice.expovariate(1 / 2000)
        for _ in range(contenders):  # the last turn is ours
            now += 0.034 + dice.expovariate(1 / 0.07)  # DIFS, back-off of 7.5 slots
            now += AIR_MS + 0.1  # preamble, block acknowledgement
        if now < length and dice.random() >= 0.05:
            counts[int(now)] += int(AIR_MS * phy[mcs] * 1000 / 8 / OPPORTUNITY)
    return counts


def _satellite(dice: random.Random, length: int) -> I64:
    counts = np.zeros(length, np.int64)
    level, jitter, credit, gap = 1.0, 1.0, 0.0, 0
    for at in range(length):
        if at % 15000 == 0:
            level = dice.uniform(0.4, 1.6) if at else 1.0
            gap = at + (int(dice.uniform(30, 130)) if at else 0)
        if at % 100 == 0:
            jitter = 1 + dice.gauss(0.0, 0.04)
        if at < gap:
            continue
        credit += SATELLITE_MEAN * level * jitter / 8000 / OPPORTUNITY
        counts[at] = int(credit)
        credit -= int(credit)
    return counts


def _steady(mean: float, length: int) -> I64:
    due = np.floor(np.arange(length + 1) * (mean / 8000 / OPPORTUNITY)).astype(np.int64)
    return np.asarray(np.diff(due), np.int64)


def _steps(_: random.Random, length: int) -> I64:
    ends = [length * i // len(STEPS) for i in range(len(STEPS) + 1)]
    parts = zip(STEPS, ends, ends[1:], strict=False)
    return np.concatenate([_steady(rate, end - start) for rate, start, end in parts])


def make(kind: str, seconds: float, seed: int) -> I64:
    """Opportunities in each millisecond."""
    dice = random.Random(f"link {kind} {seed}")
    build = {"lte": _lte, "wifi": _wifi, "leo": _satellite, "steps": _steps}[kind]
    return build(dice, round(seconds * 1000))


def steady_like(trace: I64) -> I64:
    """A link of the same mean that does not vary."""
    return _steady(mean(trace), len(trace))


def mean(trace: I64) -> float:
    """Bit/s over the whole trace."""
    return float(trace.sum()) * OPPORTUNITY * 8000 / len(trace)


def rates(trace: I64, window: float) -> F64:
    """Bit/s in consecutive windows of that many seconds; a rest at the end is left out."""
    size = round(window * 1000)
    parts = trace[: len(trace) // size * size].reshape(-1, size)
    return np.asarray(parts.sum(axis=1) * (OPPORTUNITY * 8 / window), np.float64)


def low(trace: I64) -> float:
    """A careful administrator's rate: low percentile of the rates of a second."""
    value = float(np.percentile(rates(trace, LOW_WINDOW), LOW_PERCENTILE))
    return max(value, FLOOR * mean(trace))


def write(trace: I64, path: Path) -> None:
    """As mahimahi writes it; the last line also says how long the trace is."""
    at = np.repeat(np.arange(len(trace)), trace)
    path.write_text("".join(f"{t}\n" for t in at[at > 0]) + f"{len(trace)}\n")


def read(path: Path) -> I64:
    """Opportunities in each millisecond of a file in mahimahi's format."""
    at = np.array([int(line) for line in path.read_text().split()], np.int64)
    trace = np.zeros(int(at[-1]), np.int64)
    np.add.at(trace, at % len(trace), 1)
    return trace
