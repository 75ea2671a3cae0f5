#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0
"""Flows that join and leave, round trips that differ, a parking lot: a controller among its like.

Runs in a guest of the lab: paths.py CTL_FLOW OUT.json NAME [CASE...], NAME one of PATHS. The
scenarios are those in which the literature compares controllers. It has no figures of them for
these, so nothing is judged but that a long flow lives. Beside them TCP Reno, as Linux has it.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from bands import BULK, NAIVE, SCHEMES, WIDE, Flows, bottleneck, jain, on_wire  # noqa: E402
from papers import Figure, Paper  # noqa: E402
from trial import Program  # noqa: E402

from paqm_lab import topology  # noqa: E402
from paqm_lab.topology import Network, netem  # noqa: E402

RENO = "reno"
PREFIX = "paths-"  # of the names of these in the results
BIN = 0.02  # s, between reads of TCP's sinks: longer ones would fill its window
MTU, PAYLOAD = 1000, 1000 - 52
STAYS, APART, JOINS_LINK = 60.0, 10.0, 30e6  # s, s, bit/s: five flows
LINK, SECONDS, BEGIN = 10e6, 180.0, 60.0
TRIPS_MS = {"a": 40, "b": 120, "c": 240}
HOPS, SHORT_MS, LONG_MS = 3, 28, 112
QUEUE_S = 0.04  # of the bottleneck's rate

TRACKING, LOSS, JOINED = "joins: off the fair share", "joins: loss", "joins: slowest to 0.8 of it"
NEAR, FAR = "round trips: 40 ms, of the fair share", "round trips: 240 ms, of the fair share"
RTT_JAIN = "round trips: Jain"
LONG, SHORT = "parking lot: long flows, of the fair share", "parking lot: short ones"
LOT_JAIN = "parking lot: Jain"
FIGURES = {TRACKING: Figure(unit="%"), LOSS: Figure(unit="%"), JOINED: Figure(unit="s"),
           NEAR: Figure(unit="%"), FAR: Figure(unit="%"), RTT_JAIN: Figure(),
           LONG: Figure(low=1, unit="%"), SHORT: Figure(unit="%"), LOT_JAIN: Figure()}
# Nobody tells the worst of several links by its counters there.
WITHOUT_LOT = {name: figure for name, figure in FIGURES.items() if "parking" not in name}
PATHS = {PREFIX + name: Paper(name, "", "", WITHOUT_LOT if name == "cadpc" else FIGURES)
         for name in (*SCHEMES, RENO)}


@dataclass
class Flow:
    """What arrives of one; times are from the begin of the run."""

    flows: Paths
    start: float
    sink: Program
    log: str  # of ctl_flow; none: TCP

    @cached_property
    def arrived(self) -> list[tuple[float, float]]:
        """Moments, and bytes with all headers of IP that had come by then."""
        if self.log:
            return [(row["t"] - self.flows.begin, row["bytes"]) for row in self.flows.log(self.log)]
        sums = accumulate(json.loads(self.sink.said())["bins"][0], initial=0)
        return [(BIN * number, got * MTU / PAYLOAD) for number, got in enumerate(sums)]

    def bytes(self, moment: float) -> float:
        """Those that had come then, on a straight line between two entries."""
        after = bisect_left(self.arrived, (moment,))
        if not 0 < after < len(self.arrived):
            return self.arrived[min(after, len(self.arrived) - 1)][1]
        (t0, b0), (t1, b1) = self.arrived[after - 1:after + 1]
        return b0 + (b1 - b0) * (moment - t0) / (t1 - t0)

    def rate(self, start: float, stop: float) -> float:
        """Bit/s."""
        return 8 * (self.bytes(stop) - self.bytes(start)) / (stop - start)


class Paths(Flows):
    """Flows between any two hosts."""

    def flow(self, source: str, sink: str, address: str, link: float, seconds: float) -> Flow:
        """Begins now; @link: bit/s of the bottleneck."""
        number, self.count = self.count, self.count + 1
        if self.controller == RENO:
            port, epoch = 7000 + number, time.time() - (time.monotonic() - self.begin)
            end = self.start(sink, *BULK, "--port", port, "--flows", 1, "--seconds",
                             seconds + 2, "--epoch", round(epoch * 1e9), "--bin", BIN)
            time.sleep(1)
            begun = time.monotonic() - self.begin
            self.start(source, *BULK, "--port", port, "--to", address, "--congestion-control",
                       RENO, "--seconds", seconds - 1)
            return Flow(self, begun, end, "")
        scheme, port, log = SCHEMES[self.controller], 6000 + number, f"r{number}"
        words = WIDE if scheme.controller == NAIVE else scheme.controller
        end = self.start(sink, self.tool, "recv", port, self.left(), self.home / f"{log}.csv")
        time.sleep(0.05)
        begun = time.monotonic() - self.begin
        self.start(source, self.tool, "send", f"{address}:{port}",
                   words.replace("capacity=10e6", f"capacity={link:.0f}"), seconds, 1.5 * link,
                   1 + number, self.home / f"s{number}.csv",
                   *((f"counters={9000 + number}",) if scheme.counters else ()))
        if scheme.counters:
            self.start("r", sys.executable, "-B", Path(__file__).with_name("bands.py"), "counters",
                       9000 + number, seconds)
        return Flow(self, begun, end, log)


def shape(net: Network, host: str, device: str, rate: float) -> None:
    net.shape(host, device, on_wire(rate), f"pfifo limit {round(rate * QUEUE_S / 8 / MTU)}")


def build(net: Network) -> None:
    topology.remove(net)
    topology.make(net)


def case_joins(tool: str, name: str, paper: Paper) -> None:
    """Five flows come and, in the same order, go, 10 s apart; 30 Mbit/s, 40 ms."""
    net = topology.in_a_row("s", "r", "d", mtu=MTU)
    net.queue("d", "d0", "root", *netem(1000 * QUEUE_S))
    shape(net, "r", "r1", JOINS_LINK)
    build(net)
    with tempfile.TemporaryDirectory() as home:
        count = 5
        flows = Paths(tool, name, Path(home), STAYS + APART * count + 5)
        there = []
        for number in range(count):
            flows.until(APART * number)
            there.append(flows.flow("s", "d", "10.2.0.2", JOINS_LINK, STAYS))
        flows.finish()
        queue = bottleneck()
        off, joined = [], [0.0]
        for flow in there:
            late = float("inf")
            for second in range(int(flow.start) + 1, int(flow.start + STAYS) - 1):
                others = sum(f.start < second + 0.5 < f.start + STAYS for f in there)
                part = flow.rate(second, second + 1) * others / JOINS_LINK
                off.append(abs(part - 1))
                if part >= 0.8:
                    late = min(late, second + 1 - flow.start)
            if flow is not there[0]:
                joined.append(min(late, STAYS))
    paper.judge(TRACKING, 100 * sum(off) / len(off))
    paper.judge(LOSS, 100 * queue["drops"] / (queue["packets"] + queue["drops"]))
    paper.judge(JOINED, max(joined))


def case_trips(tool: str, name: str, paper: Paper) -> None:
    """Three flows through 10 Mbit/s: 40, 120 and 240 ms."""
    net = Network()
    for host in ("s", "r", "e", *TRIPS_MS):
        net.host(host, host in "re")
    net.link("s", "r", devices=("s0", "r0"), mtu=MTU)
    net.link("r", "e", devices=("r1", "e0"), mtu=MTU)
    addresses = {host: net.link("e", host, ms / 2, mtu=MTU).address(host)
                 for host, ms in TRIPS_MS.items()}
    shape(net, "r", "r1", LINK)
    build(net.routed())
    with tempfile.TemporaryDirectory() as home:
        flows = Paths(tool, name, Path(home), SECONDS)
        there = [flows.flow("s", host, address, LINK, flows.left() - 2)
                 for host, address in addresses.items()]
        flows.finish()
        got = [flow.rate(BEGIN, SECONDS - 5) for flow in there]
    paper.judge(NEAR, 100 * len(got) * got[0] / LINK)
    paper.judge(FAR, 100 * len(got) * got[-1] / LINK)
    paper.judge(RTT_JAIN, jain(got))


def case_lot(tool: str, name: str, paper: Paper) -> None:
    """Two long flows over three links of 10 Mbit/s, two short ones over each: 2.5 Mbit/s each."""
    net = Network()
    ends = [("y", "z", 1, HOPS + 1, LONG_MS)]
    ends += [(f"s{hop}", f"d{hop}", hop, hop + 1, SHORT_MS) for hop in range(1, HOPS + 1)]
    for hop in range(1, HOPS + 2):
        net.host(f"r{hop}", True)
    for hop in range(1, HOPS + 1):
        net.link(f"r{hop}", f"r{hop + 1}", mtu=MTU)
        shape(net, f"r{hop}", f"r{hop + 1}", LINK)
    to = {}
    for source, sink, first, last, ms in ends:
        net.host(source)
        net.host(sink)
        net.link(source, f"r{first}", ms / 4, mtu=MTU)
        to[sink] = net.link(f"r{last}", sink, ms / 4, mtu=MTU).address(sink)
    build(net.routed())
    with tempfile.TemporaryDirectory() as home:
        flows = Paths(tool, name, Path(home), SECONDS)
        there = [flows.flow(source, sink, to[sink], LINK, flows.left() - 2)
                 for _ in range(2) for source, sink, *_ in ends]
        flows.finish()
        got = [flow.rate(BEGIN, SECONDS - 5) for flow in there]
    both = [got[0], got[len(ends)]]
    others = [rate for number, rate in enumerate(got) if number % len(ends)]
    paper.judge(LONG, 100 * sum(both) / len(both) / (LINK / 4))
    paper.judge(SHORT, 100 * sum(others) / len(others) / (LINK / 4))
    paper.judge(LOT_JAIN, jain(got))


def case(what: Callable[[str, str, Paper], None]) -> Callable[[str], None]:
    key = sys.argv[3]
    return lambda tool: what(tool, key.removeprefix(PREFIX), PATHS[key])


def main() -> int:
    paper = PATHS[sys.argv[3]]
    cases = {"joins": case(case_joins), "trips": case(case_trips)}
    if LOT_JAIN in paper.figures:
        cases["lot"] = case(case_lot)
    return paper.run(cases)


if __name__ == "__main__":
    sys.exit(main())
