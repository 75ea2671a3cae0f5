#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0
"""ADIVIS on real queues that mark: the acceptance bands of its specification.

Runs in a guest of the lab: marked.py CTL_FLOW OUT.json NAME [CASE...], NAME one of SCHEMES. One
bottleneck, RED of 10 to 30 packets of 1000 bytes with weight 1/16 that marks what is ECN-capable
and drops above, 10 ms each way. Cross traffic is constant and not ECN-capable. Its report gives
scenarios and no step times: 60 s each are a choice. The bands are those of a packet simulation of
the same text.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TOP / "streamer" / "lab"), str(TOP / "kernel" / "lab-tests")]
from bands import Band, Flows, Row, bottleneck, jain, judge, link, run_cases  # noqa: E402

from paqm_lab import topology  # noqa: E402
from paqm_lab.topology import in_a_row, netem  # noqa: E402

STEP = 60.0  # s of each rate of the cross traffic
JUDGED = 35.0  # of them, the last
DRAIN = 10.0  # s between the end of a sender and that of its receiver
LINKS = (64, 128, 256, 384, 512, 768, 1000)  # kbit/s, with layers
MEANS = (64, 95, 191, 331, 446, 768, 768)
LONG_LINKS = (384, 512)  # with 400 ms
OTHER_LINKS = (256, 1000)  # with 5 % of random loss, or with TCP beside
SEEDS = (1, 2, 3)  # a step finds the rate at one point or another of its swing
MANY_SEEDS = range(1, 13)  # means and medians of three differ by a tenth and more
PAIR_SEEDS = (1, 2, 3, 4, 5, 6)  # two flows divide a link in one way or another: .83 to .99
PERIODS = (0.1, 0.3, 0.6)
PERIOD = "period {} s: time to 90 %, of that of 0.3 s, over the periods"


@dataclass(frozen=True)
class Marked:
    """A controller that goes by marks, and what its figures should be."""

    controller: str

    def bands(self) -> dict[str, Band]:
        both: dict[str, Band] = {}
        for free, band in ((800, (0.85, 1.1)), (600, (0.95, 1.15)), (400, (0.95, 1.2)),
                           (200, (1.0, 1.4))):
            both[f"rising: rate of {free} kbit/s free"] = band
            both[f"rising: deviation at {free} kbit/s"] = (None, 0.3)
        for free, mean in ((400, 0.93), (300, 1.03), (200, 1.07), (100, 1.20)):
            both[f"half: rate of {free} kbit/s free"] = (mean - 0.2, mean + 0.2)
        both |= {"rising: loss": (None, 0.5), "falling: loss": (None, 0.5),
                 "half: loss": (None, 1.0), "down: time to yield": (None, 4),
                 "up: time to 720 kbit/s": (15, 30), "tcp: video over TCP": (0.5, 2.5)}
        for kbit, mean in zip(LINKS, MEANS, strict=True):
            both[f"layers {kbit} kbit/s: mean rate"] = (0.85 * mean, 1.15 * mean)
            both[f"layers {kbit} kbit/s: loss"] = (None, 2)
            both[f"layers {kbit} kbit/s: switches in 120 s"] = (None, 15)
        for kbit in LONG_LINKS:
            both[f"far {kbit} kbit/s: rate of that when near"] = (0.5, 1)
        # In words: clearly below with loss; hardly affected by TCP, a little at low rates.
        for kbit in OTHER_LINKS:
            both[f"lossy {kbit} kbit/s: rate of that without"] = (None, 1)
            both[f"beside TCP {kbit} kbit/s: rate of that alone"] = (None, 1)
        for delay_ms in (10, 400):
            both[f"two, {delay_ms} ms: Jain of layers"] = (0.88, None)
        for period in PERIODS[::2]:
            both[PERIOD.format(period)] = (0.8, 1.2)
        return both


SCHEMES = {"adivis": Marked("adivis")}


def build(rate: float, delay_ms: int = 10, loss: int = 0) -> None:
    """s -- r == d: what leaves r towards d is the bottleneck; d's way back has the delay.

    @loss: at random before the bottleneck, %
    """
    net = in_a_row("s", "r", "d", mtu=1000)
    topology.remove(net)
    net.queue("d", "d0", "root", *netem(2 * delay_ms))
    if loss:
        net.queue("s", "s0", "root", *netem(0, "loss", f"{loss}%"))
    net.shape("r", "r1", round(rate * 1014 / 1000),
              "red limit 50000 min 10000 max 30000 avpkt 1000 burst 17 probability 0.1 "
              f"bandwidth {round(rate)}bit ecn harddrop")
    topology.make(net)


class MarkedFlows(Flows):
    """Flows that are ECN-capable, and cross traffic that is not."""

    def video(self, rate_max: float, seed: int = 1) -> None:
        port = 6000 + self.count
        self.start("d", self.tool, "recv", port, self.left(), self.home / f"r{self.count}.csv")
        time.sleep(0.05)
        # What waits in the queue at the end is not lost.
        self.start("s", self.tool, "send", f"10.2.0.2:{port}", self.controller,
                   self.left() - DRAIN, rate_max, seed + self.count,
                   self.home / f"s{self.count}.csv", "ect0")
        self.count += 1

    def cross(self, rates: tuple[float, ...], seconds: float = STEP) -> None:
        """Constant traffic, so long at each rate, bit/s."""
        self.start("d", self.tool, "recv", 8000, self.left(), self.home / "x.csv")
        steps = "; ".join(f"{self.tool} send 10.2.0.2:8000 fixed {seconds} {rate} 9 /dev/null"
                          for rate in rates)
        self.start("s", "sh", "-c", steps)

    def loss(self) -> float:
        """Of all that the first video has sent, %."""
        arrived, sent = self.log("r0")[-1]["packets"], self.log("s0")[-1]["sent"]
        return 100 * max(0.0, 1 - arrived / sent)


def rates(log: list[Row], start: float, stop: float) -> list[float]:
    return [row["rate_bps"] for row in log if start <= row["t"] < stop]


def averaged(scheme: Marked, name: str, runs: Sequence[float], unit: str = "") -> None:
    judge(scheme, name, statistics.mean(runs), unit, runs)


def stepped(tool: str, scheme: Marked, name: str, capacity: float,
            steps: tuple[float, ...]) -> None:
    """Cross traffic in steps: how close to the rest of the link, and the loss."""
    level: dict[float, list[float]] = {}
    swing: dict[float, list[float]] = {}
    loss = []
    for seed in SEEDS:
        with tempfile.TemporaryDirectory() as home:
            build(capacity)
            flows = MarkedFlows(tool, scheme.controller, Path(home), STEP * len(steps) + DRAIN)
            flows.video(capacity, seed)
            flows.cross(steps)
            flows.finish()
            log = flows.log("s0")
            for number, rate in enumerate(steps):
                end = flows.begin + STEP * (number + 1)
                got, free = rates(log, end - JUDGED, end), capacity - rate
                level.setdefault(free, []).append(statistics.mean(got) / free)
                swing.setdefault(free, []).append(statistics.pstdev(got) / free)
            loss.append(flows.loss())
    for free in level if name != "falling" else ():
        averaged(scheme, f"{name}: rate of {free / 1e3:.0f} kbit/s free", level[free])
        if name == "rising":
            averaged(scheme, f"rising: deviation at {free / 1e3:.0f} kbit/s", swing[free])
    averaged(scheme, f"{name}: loss", loss, "%")


def case_rising(tool: str, scheme: Marked) -> None:
    stepped(tool, scheme, "rising", 1e6, (200e3, 400e3, 600e3, 800e3))


def case_falling(tool: str, scheme: Marked) -> None:
    stepped(tool, scheme, "falling", 1e6, (800e3, 600e3, 400e3, 200e3, 400e3))


def case_half(tool: str, scheme: Marked) -> None:
    stepped(tool, scheme, "half", 500e3, (100e3, 200e3, 300e3, 400e3))


def reached(flows: Flows, since: float, rate: float, above: bool) -> float:
    for row in flows.log("s0"):
        if row["t"] > since and (row["rate_bps"] >= rate if above else row["rate_bps"] <= rate):
            return row["t"] - since
    return 1e9


def moved(tool: str, controller: str, steps: tuple[float, float], rate: float,
          above: bool) -> list[float]:
    """Seconds until the rate has crossed another after a step of the cross traffic."""
    took = []
    for seed in MANY_SEEDS:
        with tempfile.TemporaryDirectory() as home:
            build(1e6)
            flows = MarkedFlows(tool, controller, Path(home), 2 * STEP + DRAIN)
            flows.video(1e6, seed)
            flows.cross(steps)
            flows.finish()
            took.append(reached(flows, flows.begin + STEP, rate, above))
    return took


def case_step(tool: str, scheme: Marked) -> None:
    got = moved(tool, scheme.controller, (200e3, 600e3), 500e3, False)
    judge(scheme, "down: time to yield", statistics.median(got), "s", got)
    took = {period: moved(tool, f"{scheme.controller}:period={period}", (800e3, 200e3), 720e3, True)
            for period in PERIODS}
    judge(scheme, "up: time to 720 kbit/s", statistics.median(took[0.3]), "s", took[0.3])
    for period in PERIODS[::2]:
        judge(scheme, PERIOD.format(period), statistics.median(took[period])
              / statistics.median(took[0.3]) / (period / 0.3))


def case_tcp(tool: str, scheme: Marked) -> None:
    ratios = []
    for seed in PAIR_SEEDS:
        with tempfile.TemporaryDirectory() as home:
            build(1e6)
            flows = MarkedFlows(tool, scheme.controller, Path(home), 149 + DRAIN)
            flows.video(1e6, seed)
            flows.reno()
            flows.until(60)
            t0, _, b0 = link()
            flows.until(149)
            t1, _, b1 = link()
            flows.finish()
            mine = flows.delta("r0", "bytes", t0, t1)
            ratios.append(mine / (b1 - b0 - mine))
    averaged(scheme, "tcp: video over TCP", ratios)


def layered(tool: str, scheme: Marked, kbit: int, delay_ms: int, loss: int = 0,
            tcp: bool = False) -> list[tuple[float, ...]]:
    """Mean rates of the layers sent, kbit/s, losses in % and switches, in 120 s."""
    runs = [layers_once(tool, scheme, kbit, delay_ms, seed, loss, tcp) for seed in MANY_SEEDS]
    return list(zip(*runs, strict=True))


def layers_once(tool: str, scheme: Marked, kbit: int, delay_ms: int, seed: int, loss: int,
                tcp: bool) -> tuple[float, float, int]:
    with tempfile.TemporaryDirectory() as home:
        build(kbit * 1e3, delay_ms, loss)
        flows = MarkedFlows(tool, f"{scheme.controller}:layers=1", Path(home), 180 + DRAIN)
        flows.video(1e6, seed)
        if tcp:
            flows.reno()
        # Of the 120 s from here on: the way there is one layer too many, which a queue of seconds
        # tells late, and 48 packets of the first 500 at 64 kbit/s. By the queue's counters, as 30
        # packets, which may wait in it, are 2 % of all that 128 kbit/s carry in that time.
        flows.until(60)
        before = bottleneck()
        flows.until(180)
        after = bottleneck()
        flows.finish()
        start, stop = flows.begin + 60, flows.begin + 180
        got = rates(flows.log("s0"), start, stop)
        switches = sum(a != b for a, b in zip(got, got[1:], strict=False))
        sent, lost = (after[what] - before[what] for what in ("packets", "drops"))
        return statistics.mean(got) / 1e3, 100 * lost / (sent + lost), switches


def case_layers(tool: str, scheme: Marked) -> None:
    near = {}
    for kbit in LINKS:
        rate, loss, switches = layered(tool, scheme, kbit, 10)
        near[kbit] = statistics.mean(rate)
        averaged(scheme, f"layers {kbit} kbit/s: mean rate", rate, "kbit/s")
        averaged(scheme, f"layers {kbit} kbit/s: loss", loss, "%")
        averaged(scheme, f"layers {kbit} kbit/s: switches in 120 s", switches)
    for kbit in LONG_LINKS:
        averaged(scheme, f"far {kbit} kbit/s: rate of that when near",
                 [rate / near[kbit] for rate in layered(tool, scheme, kbit, 400)[0]])
    for kbit in OTHER_LINKS:
        averaged(scheme, f"lossy {kbit} kbit/s: rate of that without",
                 [rate / near[kbit] for rate in layered(tool, scheme, kbit, 10, loss=5)[0]])
        averaged(scheme, f"beside TCP {kbit} kbit/s: rate of that alone",
                 [rate / near[kbit] for rate in layered(tool, scheme, kbit, 10, tcp=True)[0]])


def case_two(tool: str, scheme: Marked) -> None:
    for delay_ms in (10, 400):
        indices = []
        for seed in PAIR_SEEDS:
            with tempfile.TemporaryDirectory() as home:
                build(1e6, delay_ms)
                flows = MarkedFlows(tool, f"{scheme.controller}:layers=1", Path(home), 180 + DRAIN)
                flows.video(1e6, seed)
                flows.until(10)
                flows.video(1e6, seed)
                flows.finish()
                start, stop = flows.begin + 60, flows.begin + 180
                indices.append(jain([statistics.mean(rates(flows.log(f"s{n}"), start, stop))
                                     for n in (0, 1)]))
        averaged(scheme, f"two, {delay_ms} ms: Jain of layers", indices)


CASES = {"rising": case_rising, "falling": case_falling, "half": case_half, "step": case_step,
         "tcp": case_tcp, "layers": case_layers, "two": case_two}


if __name__ == "__main__":
    sys.exit(run_cases(CASES, SCHEMES))
