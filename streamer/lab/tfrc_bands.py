#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0
"""TFRC on real queues: the acceptance bands of the comparison of end-to-end controllers.

Runs in a guest of the lab: tfrc_bands.py CTL_FLOW OUT.json [CASE...]. One bottleneck of 10 Mbit/s,
round trip 40 ms, packets of 1000 bytes, a queue of 50 packets (drop tail) or RED 10 to 30; A is one
flow, B four, C two beside two TCP Reno. The bands are those of a reference simulation of the same
set-up; Linux's RED is not gentle, so bands for it leave room below.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "kernel" / "lab-tests"))
import trial  # noqa: E402
from trial import Program, rows, run  # noqa: E402

from paqm_lab import topology  # noqa: E402
from paqm_lab.topology import htb_class, in_a_row, netem  # noqa: E402

BOTTLENECK = 10e6
RTT_MS = 40
QUEUES = {
    "tail": "pfifo limit 50",
    # Weight of the average 0.002: burst 90 makes tc choose 2^-9.
    "red": "red limit 50000 min 10000 max 30000 avpkt 1000 burst 90 probability 0.1 "
           "bandwidth 10mbit",
}
BULK = [sys.executable, "-m", "paqm_lab.bulk"]
Row = dict[str, float]


def build(queue: str | None, loss: float = 0) -> None:
    """s -- r == d: what leaves r towards d is the bottleneck; d's way back has the delay."""
    net = in_a_row("s", "r", "d", mtu=1000)
    topology.remove(net)
    net.queue("d", "d0", "root", *netem(RTT_MS))
    if queue is None:
        net.queue("r", "r1", "root", "handle", "1:", *netem(0, "loss", f"{100 * loss}%"))
    else:
        net.shape("r", "r1", on_wire(BOTTLENECK), queue)
    topology.make(net)


def on_wire(rate: float) -> int:
    """As IP counts: 14 bytes of Ethernet in 1014 are left out of account."""
    return round(rate * 1014 / 1000)


def capacity(rate: float) -> None:
    run("tc", "-n", "r", "class", "change", "dev", "r1", *htb_class(on_wire(rate)))


def lost_back(percent: int) -> None:
    """What d's way back loses."""
    run("tc", "-n", "d", "qdisc", "change", "dev", "d0", "root",
        *netem(RTT_MS, "loss", f"{percent}%"))


def link() -> tuple[float, int, int]:
    """Now, packets and bytes that the bottleneck has sent."""
    got = json.loads(run(*"tc -n r -s -j qdisc show dev r1 root".split()))[0]
    return time.monotonic(), got["packets"], got["bytes"] - 14 * got["packets"]


class Flows:
    """The flows of one case."""

    def __init__(self, tool: str, home: Path, seconds: float) -> None:
        self.tool, self.home, self.seconds = tool, home, seconds
        self.begin = time.monotonic()
        self.programs: list[Program] = []
        self.count = self.tcp = 0

    def start(self, host: str, *command: object) -> Program:
        self.programs.append(Program(host, *command))
        return self.programs[-1]

    def left(self) -> float:
        return self.seconds - (time.monotonic() - self.begin)

    def media(self, seed: int) -> None:
        port = 6000 + self.count
        self.start("d", self.tool, "recv", port, self.left(), self.home / f"r{self.count}.csv")
        time.sleep(0.05)
        self.start("s", self.tool, "send", f"10.2.0.2:{port}", "tfrc", self.left(), "20e6",
                   seed + self.count, self.home / f"s{self.count}.csv")
        self.count += 1

    def reno(self) -> Program:
        port = 7000 + self.tcp
        sink = self.start("d", *BULK, "--port", port)
        time.sleep(1)
        self.start("s", *BULK, "--port", port, "--to", "10.2.0.2", "--congestion-control", "reno",
                   "--seconds", self.left())
        self.tcp += 1
        return sink

    def until(self, second: float) -> None:
        time.sleep(max(0.0, self.begin + second - time.monotonic()))

    def finish(self) -> None:
        self.until(self.seconds)
        for program in self.programs:
            program.end()

    def log(self, name: str) -> list[Row]:
        return [{k: float(v) for k, v in row.items()} for row in rows(self.home / f"{name}.csv")]

    def delta(self, name: str, key: str, start: float, stop: float) -> float:
        """How much a counter grew between two moments of the monotonic clock."""
        rows = [row for row in self.log(name) if start <= row["t"] <= stop]
        return rows[-1][key] - rows[0][key] if rows else 0.0


CHECKS: list[dict[str, Any]] = []


def check(name: str, value: float, low: float | None, high: float | None, unit: str) -> None:
    good = (low is None or value >= low) and (high is None or value <= high)
    CHECKS.append({"name": name, "value": round(value, 5), "low": low, "high": high, "unit": unit,
                   "pass": good})
    wanted = f"wanted {'' if low is None else low} to {'' if high is None else high}"
    trial.check(f"{name} ({value:.4g} {unit})", good, wanted)


def jain(values: list[float]) -> float:
    squares = sum(v * v for v in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 0.0


def steady(tool: str, queue: str, media: int, reno: int, seconds: float, begin: float
           ) -> dict[str, Any]:
    """Figures from `begin` on: use of the link, loss and shares of the flows."""
    with tempfile.TemporaryDirectory() as name:
        build(QUEUES[queue])
        flows = Flows(tool, Path(name), seconds)
        for number in range(media):
            flows.media(1)
            flows.until(1.0 * (number + 1))
        for _ in range(reno):
            flows.reno()
        flows.until(begin)
        t0, _, b0 = link()
        flows.until(seconds - 1)
        t1, _, b1 = link()
        flows.finish()
        got = [flows.delta(f"r{n}", "bytes", t0, t1) for n in range(media)]
        sent = sum(flows.delta(f"s{n}", "sent", t0, t1) for n in range(media))
        arrived = sum(flows.delta(f"r{n}", "packets", t0, t1) for n in range(media))
    return {"use": 8 * (b1 - b0) / (t1 - t0) / BOTTLENECK, "loss": max(0.0, 1 - arrived / sent),
            "jain": jain(got), "share": sum(got) / (b1 - b0),
            "apart": max(abs(g * media / sum(got) - 1) for g in got)}


def case_a(tool: str) -> None:
    for queue, low in (("tail", 0.95), ("red", 0.90)):
        got = steady(tool, queue, 1, 0, 60, 20)
        check(f"A {queue}: use of the link", got["use"], low, None, "")


def case_b(tool: str) -> None:
    for queue in QUEUES:
        got = steady(tool, queue, 4, 0, 100, 40)
        check(f"B {queue}: Jain", got["jain"], 0.98, None, "")
        check(f"B {queue}: farthest flow from the mean", 100 * got["apart"], None, 15, "%")
        check(f"B {queue}: loss", 100 * got["loss"], 0.2, 2.5, "%")


def case_c(tool: str) -> None:
    for queue, low, high in (("tail", 0.18, 0.55), ("red", 0.40, 0.60)):
        got = steady(tool, queue, 2, 2, 180, 60)
        check(f"C {queue}: share beside as many TCP", got["share"], low, high, "")


def goodput(flows: Flows, name: str) -> list[tuple[float, float]]:
    """Bit/s over the second before each moment."""
    rows = flows.log(name)
    return [(late["t"], 8 * (late["bytes"] - early["bytes"]) / (late["t"] - early["t"]))
            for early, late in zip(rows, rows[5:], strict=False)]


def case_change(tool: str) -> None:
    """10 to 4 to 10 Mbit/s, and 5 s without any report."""
    for queue in QUEUES:
        with tempfile.TemporaryDirectory() as name:
            build(QUEUES[queue])
            flows = Flows(tool, Path(name), 110)
            flows.media(1)
            flows.until(40)
            cut = time.monotonic()
            capacity(4e6)
            flows.until(60)
            back = time.monotonic()
            capacity(BOTTLENECK)
            flows.until(80)
            dark = time.monotonic()
            lost_back(100)
            flows.until(85)
            light = time.monotonic()
            lost_back(0)
            flows.finish()
            rows = flows.log("s0")
            # Two entries are the 0.2 s of the definition.
            sent = [(late["t"], 8000 * (late["sent"] - early["sent"]) / (late["t"] - early["t"]))
                    for early, late in zip(rows, rows[2:], strict=False)]
            answer = next((t for t, rate in sent if t > cut + 0.2 and rate <= 1.1 * 4e6), 1e9)
            good = goodput(flows, "r0")
            old = [rate for t, rate in good if cut - 10 < t < cut]
            usual = sum(old) / len(old)
            again = next((t for t, rate in good if t > back + 1 and rate >= 0.8 * usual), 1e9)
            check(f"cut {queue}: answer", answer - cut, None, 1, "s")
            check(f"cut {queue}: recovery", again - back, None, 8, "s")
            before = [r["rate_bps"] for r in rows if dark - 2 < r["t"] < dark]
            worst = [r["rate_bps"] for r in rows if light - 0.5 < r["t"] < light]
            check(f"black-out {queue}: rate at its end", max(worst) * len(before) / sum(before),
                  None, 0.25, "of before")
            after = [rate for t, rate in good if t > light + 10]
            check(f"black-out {queue}: comes back", max(after) / usual, 0.8, None, "of before")


def case_loss(tool: str) -> None:
    """Random loss and no queue: TFRC against TCP on the same path."""
    for loss in (0.002, 0.01, 0.05):
        with tempfile.TemporaryDirectory() as name:
            seconds = 100.0
            build(None, loss)
            flows = Flows(tool, Path(name), seconds)
            flows.media(1)
            flows.until(20)
            begin = time.monotonic()
            flows.finish()
            mine = 8 * flows.delta("r0", "bytes", begin, begin + seconds) / (seconds - 20)
            build(None, loss)
            tcp = Flows(tool, Path(name), seconds)
            sink = tcp.reno()
            tcp.until(20)
            t0, _, b0 = link()
            tcp.until(seconds - 2)
            t1, _, b1 = link()
            tcp.finish()
            if not json.loads(sink.said()).get("bytes"):
                raise SystemExit("TCP moved nothing")
            theirs = 8 * (b1 - b0) / (t1 - t0)
        check(f"loss {100 * loss:g} %: rate against TCP's", mine / theirs, 0.8, 1.2, "")


CASES = {"a": case_a, "b": case_b, "c": case_c, "change": case_change, "loss": case_loss}


def main() -> int:
    tool, out = sys.argv[1], Path(sys.argv[2])
    for name in sys.argv[3:] or CASES:
        CASES[name](tool)
        out.write_text(json.dumps(CHECKS, indent=1) + "\n")
    return 0 if all(c["pass"] for c in CHECKS) else 1


if __name__ == "__main__":
    sys.exit(main())
