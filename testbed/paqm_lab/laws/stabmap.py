# SPDX-License-Identifier: GPL-2.0
"""The map of stability: gains, round trip, group of pictures and number of flows, theory beside.

Pre-encoded video under the published queue (preset thesis-erf) with the gains of profile fast and
robust, on a link of 600 kbit/s a flow. Theory is the recursion of stability.py, with senders that
begin to answer a round trip after a message and have answered a group of pictures later: all of
them spread over that time, as many flows are, or all as late as one flow can be.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from paqm_lab import stability
from paqm_lab.catalogue import networks
from paqm_lab.catalogue.row import LOWER, Context, Figure, Json, Row, Values

GAINS = {"fast": (0.75, 0.35), "robust": (0.484, 0.131)}
MEASURED_S = 0.5  # tau2 of the published runs; the least a router measures for
FPS = 30
# Pictures of a group: 0.27, 0.5, 1 and 2 s.
GOPS = (8, 15, 30, 60)
ROUND_TRIPS = (10, 50, 100, 200, 400, 800)  # ms
FLOWS = (1, 4, 16, 64, 128)
SOME_GOPS, SOME_ROUND_TRIPS, SOME_FLOWS = (8, 15, 30), (10, 100, 400), (1, 16)
SHARE = 600_000  # bit/s of the link for each flow
CEILING = 3 * SHARE
PERIODS, LEAST_S = 30, 20.0  # length of a run
# A published start takes R down to its floor; from there the slow gains take some ten periods.
JUDGED = 2 / 3  # of a run; what is told and sent is judged from then on
PARTS = 64  # of the time within which spread flows answer
CALM = 10.0  # %: largest deviation of what is told that counts as calm


@dataclass(frozen=True)
class Point:
    """`told`: the router knows the group and measures for as long; else it measures for 0.5 s."""

    gains: str
    rtt_ms: int
    gop: int  # pictures
    flows: int
    told: bool

    @property
    def gop_s(self) -> float:
        return self.gop / FPS

    @property
    def measured_s(self) -> float:
        return max(MEASURED_S, self.gop_s) if self.told else MEASURED_S

    @property
    def period_s(self) -> float:
        return self.rtt_ms / 1000 + self.measured_s

    @property
    def seconds(self) -> float:
        return float(np.ceil(max(LEAST_S, PERIODS * max(self.period_s, self.gop_s))))

    @property
    def id(self) -> str:
        how = "" if self.told else "-untold"
        gop = round(1000 * self.gop_s)
        return f"map.{self.gains}{how}.{self.rtt_ms}.{gop}.{self.flows}"

    @property
    def in_part(self) -> bool:
        """Whether it is of the grid that is run without --full."""
        return (self.rtt_ms in SOME_ROUND_TRIPS and self.gop in SOME_GOPS
                and self.flows in SOME_FLOWS)


def grid() -> list[Point]:
    """A group that is no longer than what routers measure for anyway needs not be told."""
    some = itertools.product(GAINS, (True, False), GOPS, ROUND_TRIPS, FLOWS)
    return [Point(gains, rtt, gop, flows, told) for gains, told, gop, rtt, flows in some
            if told or gop / FPS > MEASURED_S]


def theory(point: Point) -> dict[str, float]:
    """Growth of a disturbance in each period: flows that answer spread over a group, or all last.
    """
    alpha, beta = GAINS[point.gains]
    spread = [point.gop_s * (part + 0.5) / PARTS for part in range(PARTS)]
    grows = partial(stability.sampled_growth, alpha, beta, point.rtt_ms / 1000, point.measured_s)
    return {"spread": grows(*spread), "last": grows(point.gop_s)}


def said(growth: dict[str, float]) -> str:
    """The theory's verdict in a word."""
    if max(growth.values()) < 1:
        return "stable"
    return "unstable" if min(growth.values()) >= 1 else "depends"


def data(point: Point) -> Json:
    """The network: all of the delay is between routers and senders, as theory has it."""
    made = networks.read("laws") | {"duration": point.seconds, "hosts": ["S", "K"],
                                    "measured_from": point.seconds / 2,
                                    "ladder": {"gop": point.gop, "fps": FPS}}
    made["link"] = [
        {"between": ["R1", "R2"], "bandwidth": f"{point.flows * SHARE}bit"},
        {"between": ["S", "R1"], "delay_ms": point.rtt_ms / 2},
        {"between": ["R2", "K"]},
    ]
    made["flow"] = [{
        "name": "v", "count": point.flows, "from": "S", "to": "K", "sender": "trace",
        "spread": min(2.0, point.seconds / 8), "rate_max": f"{CEILING}bit", "rate_min": "60kbit",
        "published": True,
    }]  # fmt: skip
    return made


def queue(point: Point) -> networks.Queue:
    """Targets as times, since capacities differ; 20 ms are 40 kB on the published 16 Mbit/s."""
    group = f"gop {round(1000 * point.measured_s)}ms"
    return networks.thesis("erf", f"profile {point.gains} {group} media-target 20ms")


def deviation(series: list[list[float]], begin: float, end: float) -> float:
    """Deviation of a value that holds until the next one, percent of its mean in that time."""
    at = [max(begin, t) for t, _ in series if t < end]
    rates = np.array([value for t, value in series if t < end])
    held = np.diff([*at, end])
    if not held.sum():
        return 0.0
    mean = float((rates * held).sum() / held.sum())
    return 100 * float(np.sqrt((held * (rates - mean) ** 2).sum() / held.sum())) / mean


def swing(sums: list[float], bin_s: float, window_s: float, begin: float) -> float:
    """Deviation of the means over a window of what was sent, percent of their mean."""
    n = max(1, round(window_s / bin_s))
    taken = np.array(sums[round(begin / bin_s):], np.float64)
    total = np.convolve(taken, np.ones(n), "valid")
    return 100 * float(total.std() / total.mean()) if total.mean() else 0.0


def run(point: Point, ctx: Context, seed: int) -> Values:
    """One replication."""
    got = networks.run(ctx, data(point), queue(point), seed, 95)
    begin, offered = JUDGED * point.seconds, got["offered"]
    link: dict[str, Any] = got["links"]["R1-R2"]
    told = [[t, min(rate, CEILING)] for t, rate in offered["advice"]]
    growth = theory(point)
    return {
        "told": deviation(told, begin, point.seconds),
        "swing": swing(offered["bytes"], offered["bin_s"], max(point.gop_s, MEASURED_S), begin),
        "p99": got["queueing_ms"]["p99"], "lost": got["media"]["lost_percent"],
        "use": link["use_percent"], "jain": got["media"]["jain"], "period": link["period_ms"],
        **{f"growth_{name}": value for name, value in growth.items()},
    }  # fmt: skip


def rows() -> list[Row]:
    """A row for each point; calm is asked for where theory says that it is stable in any case."""
    found = []
    for point in grid():
        word = said(theory(point))
        stable = word == "stable"
        figures = (
            Figure("told", "deviation of the rate that is told", "%",
                   high=CALM if stable else None, better=LOWER,
                   why="calm, where theory says stable" if stable else ""),
            Figure("swing", "deviation of what is sent, from group to group", "%"),
            Figure("p99", "queueing delay p99", "ms"),
            Figure("lost", "packets lost", "%"),
            Figure("use", "use of the link", "%"),
            Figure("jain", "Jain's index"),
            Figure("period", "period in force", "ms"),
            Figure("growth_spread", "theory: growth in a period, flows spread"),
            Figure("growth_last", "theory: growth in a period, all flows late"),
        )
        known = "" if point.told else ", unknown to the router"
        title = (f"gains {point.gains}, round trip {point.rtt_ms} ms, group of "
                 f"{point.gop_s:.2f} s{known}, {point.flows} flows")  # fmt: skip
        found.append(Row(
            point.id, title, f"theory: {word}", figures, partial(run, point),
            "testbed/scenarios/laws.toml", "4.5", seeds=(1,), held=stable,
            full_only=not point.in_part,
        ))  # fmt: skip
    return found
