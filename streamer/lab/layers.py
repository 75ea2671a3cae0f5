#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0
"""Layered probing on the networks of its paper (Wang and Hsiao 2010), reduced; binary beside.

Runs in a guest of the lab: layers.py CTL_FLOW OUT.json NAME [CASE...], NAME one of SCHEMES.
Flows are those of ctl_flow: packets of 1000 bytes, the paper's ladder of 20 layers of 100 kbit/s,
trains of 30 packets, a bottleneck with 30 packets of queue and a round trip of 100 ms, both not in
the paper. Case estimate is its table of bandwidth estimation at a tenth of the capacity (4 Mbit/s)
and one link of its six; tcp and own its table of two flows on 3 Mbit/s, against Reno of Linux
(NewReno; Tahoe is not to be had); rtt its table of round trips; many its table of peers, on random
graphs of our own (graph.py); varying its figure of a load that changes, top what a stream costs
that has all layers. start, step and silence are the specification's.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import graph  # noqa: E402
from bands import Flows, jain, link, on_wire  # noqa: E402
from papers import Figure, Paper  # noqa: E402

from paqm_lab import topology  # noqa: E402
from paqm_lab.topology import in_a_row, netem, run  # noqa: E402

LADDER, BASE = 2e6, 100e3  # bit/s
LAYER = 100e3
TRAIN, EXTENSION = 30, 20  # packets, bytes in each
QUEUE = 30
SHORT = 12  # packets: less than one flow of TCP has on its way
RTT_MS = 100
LAYERED, BINARY, TFRC, TCP = "layered-probing", "binary", "tfrc", "tcp"
TAKEN, LOAD_STEP = (0, 1.2e6, 0.4e6, 1.6e6, 0.8e6, 0), 30.0  # bit/s of the cross traffic, s
LOADS = (20, 40, 60)  # %
ESTIMATES = 60  # a mean of 20 has a standard error of a sixth
SEEDS = 3
RATIOS = (1, 2, 3, 4, 5)
RTT_SEEDS = 3
PART = 10.0  # s
# Flows, rate of each link, and the indices of the paper.
MANY = {"many 4": (4, 10e6, 0.9410, 0.4375), "many 8": (8, 10e6, 0.9199, 0.6107),
        "many 16": (16, 10e6, 0.9165, 0.9997), "many 16, fast": (16, 20e6, 0.9946, 0.5201)}
MANY_SEEDS = 3
SECONDS, BEGIN = 300.0, 150.0


def _figures() -> dict[str, Figure]:
    both: dict[str, Figure] = {}
    published = {LAYERED: ((2.25, 1.19), (2.7, 1.82), (3.05, 2.27)),
                 BINARY: ((4, 1.98), (4, 2.231), (4, 3.62))}
    most = (3, 3.5, 4)
    for kind, rows in published.items():
        for load, (trains, off), limit in zip(LOADS, rows, most, strict=True):
            share = round(100 * off / 40, 2)
            mine = kind == LAYERED
            both[f"estimate {load} %, {kind}: trains"] = Figure(
                high=limit if mine else None, published=trains)
            both[f"estimate {load} %, {kind}: mean error"] = Figure(
                high=round(1.5 * share, 2) if mine else None, published=share, unit="% of C")
    for load in LOADS:
        both |= {f"estimate {load} %: {what} against binary": Figure(high=1)
                 for what in ("error", "trains")}
    both |= {
        "start: layer": Figure(800, 1000, unit="kbit/s"),
        "start: time": Figure(high=1, unit="of 4 (round trip + train)"),
        "start: worst loss in a train": Figure(high=1, unit="packets"),
        "tcp: Jain": Figure(low=0.97, published=0.9994),
        "tcp: use of the link": Figure(low=0.95, published=0.99999),
        "tcp: share of TCP": Figure(low=0.40, published=0.5124),
        # The paper does not say how long the queue is, and it decides: where TCP's half window
        # still fills the link, delay never ceases to rise, and no probe succeeds.
        f"tcp, queue of {SHORT}: share of TCP": Figure(published=0.5124),
        f"tcp: Jain, {TFRC} beside": Figure(published=0.9966),
        "own: Jain": Figure(low=0.99, published=1.0),
        "own: apart from 60 s on": Figure(high=10, unit="%"),
        f"own, queue of {SHORT}: Jain": Figure(low=0.99, published=1.0),
        f"own, queue of {SHORT}: apart from 60 s on": Figure(high=10, unit="%"),
        "step: out of overload": Figure(high=2, unit="s"),
        "step: 90 % again": Figure(unit="s", high=40),
        "step: loss outside": Figure(high=0.015, unit="of packets"),
        "varying: use of what is free": Figure(),
        f"varying: use of what is free, {TFRC}": Figure(),
        "varying: use of what is free, TCP": Figure(),
        # Curves only; in words: TCP worst, probing best.
        f"varying: over {TFRC}": Figure(low=1),
        f"varying: {TFRC} over TCP": Figure(low=1),
        "top: trains at the highest layer": Figure(high=0),
        "top: extensions": Figure(high=5, unit="% of bytes"),
        "silence: after a period": Figure(high=0.5, unit="of before"),
        "silence: after five": Figure(high=BASE / 1e3, unit="kbit/s"),
    }
    for ratio, mine, theirs in zip(
            RATIOS, (0.9833, 0.9489, 0.9459, 0.9312, 0.9286),
            (0.7815, 0.6869, 0.6269, 0.5950, 0.5691), strict=True):
        both[f"rtt {ratio}: Jain"] = Figure(low=0.90, published=mine)
        both[f"rtt {ratio}: Jain, {TFRC}"] = Figure(published=theirs)
        both[f"rtt {ratio}: Jain over that of {TFRC}"] = Figure(low=1, published=mine / theirs)
    for what, (_, _, mine, theirs) in MANY.items():
        both |= {f"{what}: Jain": Figure(published=mine),
                 f"{what}: Jain, {TFRC}": Figure(published=theirs),
                 f"{what}: its deviation": Figure(), f"{what}: its deviation, {TFRC}": Figure()}
    return both


PAPER = Paper(
    LAYERED, f"`{LAYERED}` on the networks of its paper",
    "Its ladder of 20 layers of 100 kbit/s, trains of 30 packets, 30 packets of queue, 100 ms "
    "round trip; bandwidth estimation at a tenth of its capacities, one link of six "
    "(`streamer/lab/layers.py`). The paper's links and queues are not all known, its simulator "
    "is ns-2. Its rows with TCP Tahoe are not comparable: Linux has none. Of its curves (figures "
    "5, 9, 10, 18) only what the text says of them can be judged.", _figures())
SCHEMES = {LAYERED: PAPER}
judge = PAPER.judge


def build(rate: float, queue: int = QUEUE, rtt_ms: float = RTT_MS, other_ms: float = 0,
          mtu: int = 1000) -> None:
    """s -- r == d; what d sends from port 6001 takes @other_ms instead."""
    net = in_a_row("s", "r", "d", mtu=mtu)
    topology.remove(net)
    if other_ms:
        net.queue("d", "d0", "root", "handle", "1:", "prio", "bands", "2", "priomap", *("0" * 16))
        net.queue("d", "d0", "parent", "1:1", *netem(rtt_ms))
        net.queue("d", "d0", "parent", "1:2", *netem(other_ms))
        net.queue("d", "d0", "parent", "1:", "protocol", "ip", "u32", "match", "ip", "sport",
                  "6001", "0xffff", "flowid", "1:2", what="filter")
    else:
        net.queue("d", "d0", "root", *netem(rtt_ms))
    # Not htb: a train of 30 packets is hardly more than the burst that its bucket allows.
    net.queue("r", "r1", "root", "netem", "limit", str(queue), "rate", f"{on_wire(rate)}bit")
    topology.make(net)


class Layered(Flows):
    """Flows with the ladder."""

    rate_max, rate_min = LADDER, BASE

    def media(self, seed: int, controller: str = "", seconds: float = 0) -> int:
        number, self.count = self.count, self.count + 1
        left = seconds or self.left()
        port = 6000 + number
        self.start("d", self.tool, "recv", port, left, self.home / f"r{number}.csv")
        time.sleep(0.05)
        self.start("s", self.tool, "send", f"10.2.0.2:{port}", controller or self.controller,
                   left, self.rate_max, seed, self.home / f"s{number}.csv",
                   f"rate-min={self.rate_min}")
        return number

    def cross(self, kind: str, rate: float, seed: int, seconds: float) -> None:
        self.start("s", self.tool, "cross", "10.2.0.2:9", kind, seconds, rate, seed)

    def rate(self, number: int, start: float, stop: float) -> float:
        return 8 * self.delta(f"r{number}", "bytes", start, stop) / (stop - start)


def case_estimate(tool: str) -> None:
    """A flow after the other, each for one start phase."""
    errors: dict[tuple[str, int], float] = {}
    capacity, each = 4e6, 4.0
    for load in LOADS:
        trains: dict[str, float] = {}
        for kind in (LAYERED, BINARY):
            with tempfile.TemporaryDirectory() as name:
                build(capacity, 20, 40, mtu=1500)
                flows = Layered(tool, f"{kind}:fs=0.7", Path(name), 5 + ESTIMATES * each)
                flows.rate_max, flows.rate_min = capacity, capacity / 20
                flows.cross("pareto", load / 100 * capacity, load, flows.seconds)
                flows.until(4)
                free = []  # of C while each flow was there
                for number in range(ESTIMATES):
                    t0, _, b0 = link()
                    flows.media(number, seconds=each - 0.3)
                    flows.until(4 + (number + 1) * each)
                    t1, _, b1 = link()
                    own = flows.delta(f"r{number}", "bytes", t0, t1)
                    free.append(1 - 8 * (b1 - b0 - own) / (t1 - t0) / capacity)
                flows.finish()
                last = [next(row for row in flows.log(f"s{n}") if row["estimate"] > 0)
                        for n in range(ESTIMATES)]
            off = [abs(row["estimate"] / capacity - part)
                   for row, part in zip(last, free, strict=True)]
            errors[kind, load] = 100 * sum(off) / len(off)
            trains[kind] = sum(row["trains"] for row in last) / len(last)
            judge(f"estimate {load} %, {kind}: trains", trains[kind])
            judge(f"estimate {load} %, {kind}: mean error", errors[kind, load])
        judge(f"estimate {load} %: error against binary",
              errors[LAYERED, load] / errors[BINARY, load])
        judge(f"estimate {load} %: trains against binary", trains[LAYERED] / trains[BINARY])


def case_start(tool: str) -> None:
    """2 Mbit/s, half of it in use."""
    layers, times, lost = [], [], []
    for seed in range(5):
        with tempfile.TemporaryDirectory() as name:
            build(2e6)
            flows = Layered(tool, LAYERED, Path(name), 8)
            flows.cross("cbr", 1e6, seed, 8)
            flows.until(2 + 0.013 * seed)
            begin = time.monotonic()
            flows.media(seed)
            flows.finish()
            end = next(row for row in flows.log("s0") if row["estimate"] > 0)
            layers.append(end["rate_bps"] / 1e3)
            times.append(end["t"] - flows.log("s0")[0]["t"])
            sent = flows.delta("s0", "sent", begin, end["t"])
            late = min(end["t"] + 0.4, begin + 5)
            came = flows.delta("r0", "packets", begin - 1, late)
            lost.append(max(0.0, sent - came) / end["trains"])
    mean = sum(layers) / len(layers)
    judge("start: layer", mean)
    judge("start: time", sum(times) / len(times) / (4 * (RTT_MS / 1e3 + 0.24)))
    judge("start: worst loss in a train", max(lost))


def pair(tool: str, first: str, second: str, seed: int, queue: int = QUEUE) -> dict[str, float]:
    """The first begins, the other 2 s later; "" is TCP."""
    with tempfile.TemporaryDirectory() as name:
        build(3e6, queue)
        flows = Layered(tool, second, Path(name), SECONDS)
        if first:
            flows.media(seed, first)
        else:
            flows.reno()
        flows.until(2 + 0.037 * seed)
        flows.media(seed + 10)
        flows.until(60)
        early = time.monotonic()
        flows.until(BEGIN)
        t0, _, b0 = link()
        flows.until(SECONDS - 1)
        t1, _, b1 = link()
        flows.finish()
        all_of = 8 * (b1 - b0) / (t1 - t0)
        mine = flows.rate(flows.count - 1, t0, t1)
        got = [flows.rate(0, t0, t1) if first else all_of - mine, mine]
        apart = 0.0
        if first:
            both = [flows.rate(n, early, t1) for n in range(2)]
            apart = 100 * (max(both) / min(both) - 1)
    return {"jain": jain(got), "use": all_of / 3e6, "first": got[0] / sum(got), "apart": apart}


def pairs(tool: str, first: str, second: str, queue: int = QUEUE) -> dict[str, list[float]]:
    """The same of some seeds."""
    runs = [pair(tool, first, second, seed, queue) for seed in range(SEEDS)]
    return {key: [run[key] for run in runs] for key in runs[0]}


def case_tcp(tool: str) -> None:
    got = pairs(tool, "", LAYERED)
    judge("tcp: Jain", *got["jain"])
    judge("tcp: use of the link", *got["use"])
    judge("tcp: share of TCP", *got["first"])
    judge(f"tcp, queue of {SHORT}: share of TCP", pair(tool, "", LAYERED, 0, SHORT)["first"])
    judge(f"tcp: Jain, {TFRC} beside", pair(tool, "", TFRC, 0)["jain"])


def case_own(tool: str) -> None:
    for queue, what in ((QUEUE, "own"), (SHORT, f"own, queue of {SHORT}")):
        got = pairs(tool, LAYERED, LAYERED, queue)
        judge(f"{what}: Jain", *got["jain"])
        judge(f"{what}: apart from 60 s on", *got["apart"])


def jains(flows: Layered, count: int, start: float, stop: float) -> list[float]:
    """Of each ten seconds."""
    parts = int((stop - start) / PART)
    return [jain([flows.rate(n, start + PART * k, start + PART * (k + 1)) for n in range(count)])
            for k in range(parts)]


def group(tool: str, kind: str, capacity: float, count: int, apart: float, seed: int,
          other_ms: float = 0) -> tuple[float, float]:
    """So many flows, begun one after the other: Jain's index, and its deviation over time."""
    with tempfile.TemporaryDirectory() as name:
        build(capacity, other_ms=other_ms)
        flows = Layered(tool, kind, Path(name), SECONDS)
        for number in range(count):
            flows.media(100 * seed + number)
            flows.until(apart * (number + 1 + 0.1 * seed))
        flows.until(60)
        t0 = time.monotonic()
        flows.finish()
        t1 = t0 + SECONDS - 61
        return (jain([flows.rate(n, t0, t1) for n in range(count)]),
                statistics.pstdev(jains(flows, count, t0, t1)))


def case_rtt(tool: str) -> None:
    for ratio in RATIOS:
        got = {kind: [group(tool, kind, 3e6, 2, 1, seed, ratio * RTT_MS)[0]
                      for seed in range(RTT_SEEDS)] for kind in (LAYERED, TFRC)}
        judge(f"rtt {ratio}: Jain", *got[LAYERED])
        judge(f"rtt {ratio}: Jain, {TFRC}", *got[TFRC])
        judge(f"rtt {ratio}: Jain over that of {TFRC}", sum(got[LAYERED]) / sum(got[TFRC]))


def case_many(tool: str) -> None:
    for what, (peers, capacity, *_) in MANY.items():
        for kind in (LAYERED, TFRC):
            got = [graph.fairness(tool, kind, peers, capacity, QUEUE, (BASE, LADDER), SECONDS, seed)
                   for seed in range(MANY_SEEDS)]
            which = "" if kind == LAYERED else f", {kind}"
            judge(f"{what}: Jain{which}", *(index for index, _ in got))
            judge(f"{what}: its deviation{which}", *(swing for _, swing in got))


def case_step(tool: str) -> None:
    """2 Mbit/s, half of which is taken for a minute."""
    with tempfile.TemporaryDirectory() as name:
        build(2e6)
        flows = Layered(tool, LAYERED, Path(name), 180)
        flows.media(1)
        flows.until(60)
        cut = time.monotonic()
        flows.cross("cbr", 1e6, 1, 60)
        flows.until(120)
        back = time.monotonic()
        flows.finish()
        sent, came = flows.log("s0"), flows.log("r0")
        usual = [row["rate_bps"] for row in sent if cut - 10 < row["t"] < cut]
        # Loss exceeds the threshold when the queue has been filled; the rate says when it is over.
        full = cut + QUEUE * 8000 / LAYER / 10
        out = next((row["t"] for row in sent if row["t"] > cut and row["rate_bps"] <= 1e6), 1e9)
        again = next((row["t"] for row in sent
                      if row["t"] > back and row["rate_bps"] >= 0.9 * sum(usual) / len(usual)), 1e9)
        start, stop = cut + 5, back
        lost = 1 - (flows.delta("r0", "packets", start, stop)
                    / flows.delta("s0", "sent", start, stop))
        judge("step: out of overload", out - full)
        judge("step: 90 % again", again - back)
        judge("step: loss outside", max(0.0, lost))
        assert came


def case_silence(tool: str) -> None:
    """A link of 1 Mbit/s; nothing comes back for five seconds."""
    with tempfile.TemporaryDirectory() as name:
        build(1.05e6)
        flows = Layered(tool, LAYERED, Path(name), 60)
        flows.media(1)
        flows.until(40)
        dark = time.monotonic()
        run("tc", "-n", "d", "qdisc", "change", "dev", "d0", "root", *netem(RTT_MS, "loss", "100%"))
        flows.until(46)
        light = time.monotonic()
        run("tc", "-n", "d", "qdisc", "change", "dev", "d0", "root", *netem(RTT_MS, "loss", "0%"))
        flows.finish()
        rows = flows.log("s0")
        before = next(row["rate_bps"] for row in rows if row["t"] >= dark)
        period = next(row["rate_bps"] for row in rows if row["t"] >= dark + 1.3)
        last = [row["rate_bps"] for row in rows if row["t"] <= light][-1]
        judge("silence: after a period", period / before)
        judge("silence: after five", last / 1e3)


def case_varying(tool: str) -> None:
    """2 Mbit/s, of which constant traffic takes more and less; each kind alone beside it."""
    use: dict[str, list[float]] = {}
    for kind in (LAYERED, TFRC, TCP):
        use[kind] = []
        for seed in range(SEEDS):
            with tempfile.TemporaryDirectory() as name:
                build(2e6)
                flows = Layered(tool, kind, Path(name), LOAD_STEP * len(TAKEN) + 2)
                steps = "; ".join(f"{tool} cross 10.2.0.2:9 cbr {LOAD_STEP} {rate} {seed + 1}"
                                  if rate else f"sleep {LOAD_STEP}" for rate in TAKEN)
                flows.start("s", "sh", "-c", steps)
                flows.until(0.1 * (seed + 1))
                sink = flows.reno() if kind == TCP else flows.media(seed)
                flows.finish()
                came = (json.loads(sink.said())["bytes"] * 1000 / (1000 - 52)
                        if kind == TCP else flows.log("r0")[-1]["bytes"])
                free = sum(2e6 - rate for rate in TAKEN) * LOAD_STEP
                use[kind].append(8 * came / free)
    judge("varying: use of what is free", *use[LAYERED])
    judge(f"varying: use of what is free, {TFRC}", *use[TFRC])
    judge("varying: use of what is free, TCP", *use[TCP])
    judge(f"varying: over {TFRC}", sum(use[LAYERED]) / sum(use[TFRC]))
    judge(f"varying: {TFRC} over TCP", sum(use[TFRC]) / sum(use[TCP]))


def case_top(tool: str) -> None:
    """A link that carries the highest layer. Of the overhead, extensions only: here nothing is
    filled up (streamer/lab/formats.py: layered-trace)."""
    with tempfile.TemporaryDirectory() as name:
        build(1.5 * LADDER)
        flows = Layered(tool, LAYERED, Path(name), 120)
        flows.media(1)
        flows.finish()
        rows = flows.log("s0")
        top = next(number for number, row in enumerate(rows) if row["rate_bps"] >= LADDER)
        late = rows[top + 10:]  # a second: what was under way
        assert all(row["rate_bps"] >= LADDER for row in late), "it leaves the highest layer"
        judge("top: trains at the highest layer", late[-1]["probes"] - late[0]["probes"])
        trains = rows[-1]["trains"] + rows[-1]["probes"]
        judge("top: extensions", 100 * trains * TRAIN * EXTENSION / (1000 * rows[-1]["sent"]))


CASES = {"estimate": case_estimate, "start": case_start, "tcp": case_tcp, "own": case_own,
         "rtt": case_rtt, "many": case_many, "step": case_step, "varying": case_varying,
         "top": case_top, "silence": case_silence}


if __name__ == "__main__":
    sys.exit(PAPER.run(CASES))
