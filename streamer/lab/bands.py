#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0
"""Rate controllers on real queues: the acceptance bands of a comparison of end-to-end controllers.

Runs in a guest of the lab: bands.py CTL_FLOW OUT.json NAME [CASE...], NAME one of SCHEMES. One
bottleneck of 10 Mbit/s, round trip 40 ms, packets of 1000 bytes, a queue of 50 packets (drop
tail) or gentle RED 10 to 30. Case a is one flow, b four, c two beside two TCP Reno, change a link
of 10, 4 and 10 Mbit/s and a while without reports, loss 0.2, 1 and 5 % at random without a queue.
The bands are those of a reference simulation of the same set-up, whose RED was gentle, too.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import socket
import statistics
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "kernel" / "lab-tests"))
import trial  # noqa: E402
from trial import Program, rows, run  # noqa: E402

from paqm_lab import topology  # noqa: E402
from paqm_lab.topology import htb_class, in_a_row, netem  # noqa: E402

BOTTLENECK = 10e6
RATE_MAX = "20e6"  # bit/s, of every controller
RTT_MS = 40
READ_EVERY = 0.02  # s between readings of the byte counter; of the speed ten times as much
QUEUES = {
    "tail": "pfifo limit 50",
    "red": "dcbt mode red gentle limit 50 min 10 max 30 max-p 0.1 weight 0.002",
}
BULK = [sys.executable, "-m", "paqm_lab.bulk"]
RATE = re.compile(r"([0-9.]+)([KMG]?)bit")
UNITS = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9}
Row = dict[str, float]
Band = tuple[float | None, float | None]


@dataclass(frozen=True)
class Scheme:
    """A controller with its options, the rate it may reach, and what its figures should be.

    @use, @class_tail, @class_red: of tail and RED in case a; of the class beside TCP in case c
    @answer, @recovery: seconds after the cut of case change, at most
    @against_tcp: rate at random loss, of TCP's
    """

    controller: str
    use: tuple[float, float]
    class_tail: Band
    class_red: Band
    answer: float
    recovery: float
    against_tcp: Band | None = None
    jain: float = 0.98
    apart: float = 15  # %
    loss: Band = (None, None)  # of case b, %
    silence: float = 5  # s without reports; LDA+ halves once in three intervals
    counters: bool = False  # hears the bottleneck's byte counter

    def bands(self) -> dict[str, Band]:
        both: dict[str, Band] = {}
        for number, queue in enumerate(QUEUES):
            both |= {
                f"a {queue}: use of the link": (self.use[number], None),
                f"b {queue}: Jain": (self.jain, None),
                f"b {queue}: farthest flow from the mean": (None, self.apart),
                f"b {queue}: loss": self.loss,
                f"b {queue}: delay": (None, None),
                f"c {queue}: share beside as many TCP": (self.class_tail, self.class_red)[number],
                f"change {queue}: answer": (None, self.answer),
                f"change {queue}: recovery": (None, self.recovery),
                f"change {queue}: rate after silence": (None, 0.25),
                f"change {queue}: comes back": (0.8, None),
            }
        for loss in LOSSES:
            both[f"loss {100 * loss:g} %: rate against TCP's"] = self.against_tcp or (None, None)
            both[f"loss {100 * loss:g} %: variation"] = (None, None)
            both[f"loss {100 * loss:g} %: rate of TCP"] = (None, None)
        return both


LOSSES = (0.002, 0.01, 0.05)
NAIVE = "naive:lower=0.5e6,upper=3e6,step=0.1e6"
WIDE = "naive:lower=0.5e6,upper=15e6,step=0.1e6"  # that a link of 10 Mbit/s stops
SCHEMES = {
    "tfrc": Scheme("tfrc", (0.95, 0.90), (0.18, 0.55), (0.40, 0.60), 1, 8, (0.8, 1.2),
                   loss=(0.2, 2.5)),
    "rap": Scheme("rap", (0.82, 0.55), (0.38, 0.62), (0.38, 0.62), 0.8, 4, (1.0, 1.45)),
    "rap-f": Scheme("rap:fine=1", (0.87, 0.60), (0.38, 0.62), (0.38, 0.62), 0.8, 4),
    "gaimd": Scheme("gaimd", (0.95, 0.75), (0.45, 0.65), (0.45, 0.65), 2, 8, (1.2, 1.75)),
    "gaimd-det": Scheme("gaimd:alpha=0.2", (0.95, 0.75), (None, None), (None, None), 2, 8,
                        (0.9, 1.4)),
    "tear": Scheme("tear", (0.90, 0.65), (0.25, 0.55), (0.38, 0.60), 2, 30, (0.8, 1.2)),
    "lda+": Scheme("lda+:capacity=10e6", (0.95, 0.95), (None, None), (0.35, 0.55), 8, 70,
                   jain=0.65, apart=100, silence=32),
    "lda+1s": Scheme("lda+:interval=1,capacity=10e6", (0.95, 0.95), (None, None), (0.40, 0.58),
                     2, 20, (0.85, 1.4), jain=0.93, apart=40, silence=8),
    "naive": Scheme(NAIVE, (0.297, 0.297), (0.5, None), (0.5, None), 0.6, 5),
    # Beside TCP in one queue nothing remains for it.
    "cadpc": Scheme("cadpc", (0.485, 0.485), (0, 0.03), (0, 0.25), 0.5, 3, jain=0.99, apart=3,
                    loss=(0, 0.001), counters=True),
    # The specification quotes figures of it and has no bands: those of TCP itself.
    "tcp-like": Scheme("tcp-like", (0.95, 0.75), (0.38, 0.62), (0.38, 0.62), 0.8, 4),
}


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


def dark() -> None:
    """From now on s hears neither reports nor counters."""
    run(*"tc -n r qdisc add dev r0 root netem loss 100%".split())


def light() -> None:
    run(*"tc -n r qdisc del dev r0 root".split())


def bottleneck() -> dict[str, int]:
    """Counters of the queue there."""
    got: dict[str, int] = json.loads(run(*"tc -n r -s -j qdisc show dev r1 root".split()))[0]
    return got


def link() -> tuple[float, int, int]:
    """Now, packets and bytes that the bottleneck has sent."""
    got = bottleneck()
    return time.monotonic(), got["packets"], got["bytes"] - 14 * got["packets"]


class Flows:
    """The flows of one case; @counters: they hear the bottleneck's byte counter."""

    def __init__(self, tool: str, controller: str, home: Path, seconds: float,
                 counters: bool = False) -> None:
        self.counters = counters
        self.tool, self.controller, self.home, self.seconds = tool, controller, home, seconds
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
        self.start("s", self.tool, "send", f"10.2.0.2:{port}", self.controller,
                   self.left(), RATE_MAX, seed + self.count, self.home / f"s{self.count}.csv",
                   *((f"counters={9000 + self.count}",) if self.counters else ()))
        if self.counters:
            self.start("r", sys.executable, "-B", __file__, "counters", 9000 + self.count,
                       self.left())
        self.count += 1

    def reno(self) -> Program:
        port = 7000 + self.tcp
        # the source ends by a reset, which may be lost: no sink waits for one for ever
        sink = self.start("d", *BULK, "--port", port, "--flows", 1, "--seconds", self.left() + 1)
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


ROWS: list[dict[str, Any]] = []


def judge(scheme: Scheme, name: str, value: float, unit: str = "",
          runs: Sequence[float] = ()) -> None:
    """Notes a figure, and whether it is within its band, if it has one; @runs: it is of these."""
    low, high = scheme.bands()[name]
    good = (low is None or value >= low) and (high is None or value <= high)
    ROWS.append({"name": name, "value": round(value, 5), "low": low, "high": high, "unit": unit,
                 "pass": good, **({"runs": [round(one, 5) for one in runs]} if runs else {})})
    wanted = f"wanted {'' if low is None else low} to {'' if high is None else high}"
    trial.check(f"{name} ({value:.4g} {unit})", good, wanted)


def jain(values: list[float]) -> float:
    squares = sum(v * v for v in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 0.0


def variation(rows: list[Row], start: float, stop: float) -> float:
    """Standard deviation over mean of what is sent in 0.2 s."""
    counts = [late["sent"] - early["sent"]
              for early, late in zip(rows[::2], rows[2::2], strict=False)
              if start <= early["t"] and late["t"] <= stop]
    return statistics.pstdev(counts) / statistics.mean(counts)


def steady(tool: str, scheme: Scheme, queue: str, media: int, reno: int, seconds: float,
           begin: float) -> dict[str, Any]:
    """Figures from `begin` on: use of the link, loss and shares of the flows."""
    with tempfile.TemporaryDirectory() as name:
        build(QUEUES[queue])
        flows = Flows(tool, scheme.controller, Path(name), seconds, scheme.counters)
        for number in range(media):
            flows.media(1)
            flows.until(1.0 * (number + 1))
        for _ in range(reno):
            flows.reno()
        flows.until(begin)
        t0, p0, b0 = link()
        d0 = bottleneck()["drops"]
        flows.until(seconds - 1)
        t1, p1, b1 = link()
        dropped = bottleneck()["drops"] - d0
        flows.finish()
        got = [flows.delta(f"r{n}", "bytes", t0, t1) for n in range(media)]
        arrived = sum(flows.delta(f"r{n}", "packets", t0, t1) for n in range(media))
        way = sum(flows.delta(f"r{n}", "way", t0, t1) for n in range(media))
    return {"use": 8 * (b1 - b0) / (t1 - t0) / BOTTLENECK, "loss": dropped / (p1 - p0 + dropped),
            "delay": 1000 * way / arrived, "jain": jain(got), "share": sum(got) / (b1 - b0),
            "apart": max(abs(g * media / sum(got) - 1) for g in got)}


def case_a(tool: str, scheme: Scheme) -> None:
    for queue in QUEUES:
        got = steady(tool, scheme, queue, 1, 0, 180, 60)
        judge(scheme, f"a {queue}: use of the link", got["use"])


def case_b(tool: str, scheme: Scheme) -> None:
    for queue in QUEUES:
        got = steady(tool, scheme, queue, 4, 0, 180, 60)
        judge(scheme, f"b {queue}: Jain", got["jain"])
        judge(scheme, f"b {queue}: farthest flow from the mean", 100 * got["apart"], "%")
        judge(scheme, f"b {queue}: loss", 100 * got["loss"], "%")
        judge(scheme, f"b {queue}: delay", got["delay"], "ms")


def case_c(tool: str, scheme: Scheme) -> None:
    for queue in QUEUES:
        got = steady(tool, scheme, queue, 2, 2, 180, 60)
        judge(scheme, f"c {queue}: share beside as many TCP", got["share"])


def goodput(flows: Flows, name: str) -> list[tuple[float, float]]:
    """Bit/s over the second before each moment."""
    rows = flows.log(name)
    return [(late["t"], 8 * (late["bytes"] - early["bytes"]) / (late["t"] - early["t"]))
            for early, late in zip(rows, rows[5:], strict=False)]


def case_change(tool: str, scheme: Scheme) -> None:
    """10 to 4 to 10 Mbit/s, and a while without any report."""
    controller = WIDE if scheme.controller == NAIVE else scheme.controller
    for queue in QUEUES:
        with tempfile.TemporaryDirectory() as name:
            build(QUEUES[queue])
            settled = max(40.0, 2 * scheme.recovery)
            flows = Flows(tool, controller, Path(name), 3 * settled + scheme.silence + 45,
                          scheme.counters)
            flows.media(1)
            flows.until(settled)
            cut = time.monotonic()
            capacity(4e6)
            flows.until(settled + 20)
            back = time.monotonic()
            capacity(BOTTLENECK)
            flows.until(2 * settled + 20)
            silent = time.monotonic()
            dark()
            flows.until(2 * settled + 20 + scheme.silence)
            heard = time.monotonic()
            light()
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
            judge(scheme, f"change {queue}: answer", answer - cut, "s")
            judge(scheme, f"change {queue}: recovery", again - back, "s")
            before = [r["rate_bps"] for r in rows if silent - 2 < r["t"] < silent]
            worst = [r["rate_bps"] for r in rows if heard - 0.5 < r["t"] < heard]
            judge(scheme, f"change {queue}: rate after silence",
                  max(worst) * len(before) / sum(before), "of before")
            after = [rate for t, rate in good if t > heard + 10]
            judge(scheme, f"change {queue}: comes back", max(after) / usual, "of before")


def case_loss(tool: str, scheme: Scheme) -> None:
    """Random loss and no queue: the controller against TCP on the same path."""
    for loss in LOSSES:
        with tempfile.TemporaryDirectory() as name:
            seconds = 100.0
            build(None, loss)
            flows = Flows(tool, scheme.controller, Path(name), seconds)
            flows.media(1)
            flows.until(20)
            begin = time.monotonic()
            flows.finish()
            mine = 8 * flows.delta("r0", "bytes", begin, begin + seconds) / (seconds - 20)
            swing = variation(flows.log("s0"), begin, begin + seconds)
            build(None, loss)
            tcp = Flows(tool, scheme.controller, Path(name), seconds)
            sink = tcp.reno()
            tcp.until(20)
            t0, _, b0 = link()
            tcp.until(seconds - 2)
            t1, _, b1 = link()
            tcp.finish()
            if not json.loads(sink.said()).get("bytes"):
                raise SystemExit("TCP moved nothing")
            theirs = 8 * (b1 - b0) / (t1 - t0)
        judge(scheme, f"loss {100 * loss:g} %: rate against TCP's", mine / theirs)
        judge(scheme, f"loss {100 * loss:g} %: variation", swing)
        judge(scheme, f"loss {100 * loss:g} %: rate of TCP", theirs / 1e6, "Mbit/s")


CASES = {"a": case_a, "b": case_b, "c": case_c, "change": case_change, "loss": case_loss}


def tell_counters(port: int, seconds: float) -> None:
    """As a router whose counters are asked for: what r1 has sent, and the speed that it has now."""
    end = time.monotonic() + seconds
    home = Path("/sys/class/net/r1/statistics")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        for number in itertools.count():
            if time.monotonic() >= end:
                break
            if number % 10 == 0:
                # tc has no JSON for classes
                words = run("tc", "class", "show", "dev", "r1").split()
                number_of, unit = RATE.fullmatch(words[words.index("rate") + 1]).groups()
                speed = float(number_of) * UNITS[unit]
            sent = [int((home / name).read_text()) for name in ("tx_bytes", "tx_packets")]
            reading = (time.monotonic(), float(sent[0] - 14 * sent[1]), speed * 1000 / 1014)
            out.sendto(struct.pack("=3d", *reading), ("10.1.0.1", port))
            time.sleep(READ_EVERY)


def run_cases(cases: Mapping[str, Callable[[str, Any], None]], schemes: Mapping[str, Any]) -> int:
    """Runs those that the command line names, or all, and writes what is judged after each."""
    tool, out, name = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    for case in sys.argv[4:] or cases:
        cases[case](tool, schemes[name])
        out.write_text(json.dumps(ROWS, indent=1) + "\n")
    return 0 if all(row["pass"] for row in ROWS) else 1


def main() -> int:
    if sys.argv[1] == "counters":
        tell_counters(int(sys.argv[2]), float(sys.argv[3]))
        return 0
    run("insmod", f"{os.environ['PAQM_KO_DIR']}/sch_dcbt.ko")
    return run_cases(CASES, SCHEMES)


if __name__ == "__main__":
    sys.exit(main())
