#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Controller auto between routers that speak and routers that do not, inside a lab guest.

Advice appears, disappears and comes back; advice is right about its own router and wrong about the
path; the reports or the messages do not come through. Real qdiscs, real paqmd, real sender. Prints
`ok NAME` or `not ok NAME: why`. The network, s - n - r - v, is that of stream_lab.py in
kernel/lab-tests.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "kernel" / "lab-tests"))
import stream_lab  # noqa: E402
import trial  # noqa: E402
from stream_lab import Stream  # noqa: E402
from streams import HEIGHT, WIDTH  # noqa: E402
from trial import check, inside, within  # noqa: E402

Series = list[tuple[float, float]]


def plain(rate: str) -> None:
    """A bottleneck that gives no advice: a FIFO of 300 ms."""
    inside("r", "tc", "qdisc", "replace", "dev", "rv", "root", "tbf", "rate", rate,
           "burst", "3000", "latency", "300ms")


def advised(rate: str) -> None:
    stream_lab.queue(f"bandwidth {rate} feedback icmp")


def path_rate(rate: str) -> None:
    """What n passes on; a FIFO of 25 packets beyond those that its 10 ms keep on the way.

    Under another handle it takes the place of the one before at once: a packet that passed between
    `del` and `add` would have no delay, and that would be the base of all delays after it.
    """
    inside("n", "tc", "qdisc", "replace", "dev", "nr", "root",
           "handle", "2:" if rate else "3:", "netem", "delay", "10ms",
           *(["rate", rate, "limit", "30"] if rate else ["limit", "100000"]))


def blocked(rule: str) -> None:
    """What n does not pass on; nothing without a rule."""
    inside("n", "nft", "flush", "ruleset")
    if rule:
        inside("n", "nft", "-f", "-", stdin="table ip filter {\nchain through {\n"
               f"type filter hook forward priority 0\n{rule} drop\n}}\n}}\n")


class Run(Stream):
    """A stream with the moments at which something was changed."""

    def __init__(self, build: Path, seconds: float) -> None:
        super().__init__(build, seconds, "--controller auto")
        self.clock = time.monotonic()
        self.offset = time.time_ns()

    def at(self, second: float) -> None:
        time.sleep(max(0.0, self.clock + second - time.monotonic()))

    def series(self, key: str) -> Series:
        return [((int(row["t_ns"]) - self.offset) / 1e9, float(row["value"]))
                for row in self.rows("send", "control.csv")
                if f"{row['controller']}.{row['key']}" == key]

    def values(self, key: str, first: float, last: float) -> list[float]:
        found = [value for t, value in self.series(key) if first <= t < last]
        if not found:
            raise SystemExit(f"control.csv has no {key} between {first} and {last} s")
        return found

    def mean(self, key: str, first: float, last: float) -> float:
        found = self.values(key, first, last)
        return sum(found) / len(found)

    def arrived(self, first: float, last: float) -> float:
        """bit/s that arrived in these seconds, IP layer."""
        total = sum(int(row["wire_bytes"]) for row in self.rows("recv", "rx.csv")
                    if first <= (int(row["t_ns"]) - self.offset) / 1e9 < last)
        return 8 * total / (last - first)

    def lost(self, first: float, last: float) -> float:
        """Share of packets that did not arrive, %."""
        numbers = [int(row["seq"]) for row in self.rows("recv", "rx.csv")
                   if first <= (int(row["t_ns"]) - self.offset) / 1e9 < last]
        gaps = [(b - a) % 65536 for a, b in zip(numbers, numbers[1:], strict=False)]
        meant = sum(gap for gap in gaps if gap < 32768)
        return 100 * sum(gap - 1 for gap in gaps if 1 < gap < 32768) / max(1, meant)


def comes_and_goes(build: Path) -> None:
    """A router that learns P-AQM, forgets it and learns it again."""
    plain("2mbit")
    stream = Run(build, 52)
    stream.at(14)
    advised("1mbit")
    stream.at(24)
    plain("1mbit")
    stream.at(40)
    advised("2mbit")
    stream.at(51)
    stream.finish()
    check("no router speaks: no advice", not any(stream.values("auto.advice", 0, 14)),
          stream.values("auto.advice", 0, 14))
    within("alone: arrives, bit/s", stream.arrived(8, 14), 1.4e6, 2e6)
    within("alone: lost, %", stream.lost(6, 14), 0, 0.5)
    for name, begin, end, fair in (("appears", 14, 24, 0.95e6), ("is back", 40, 50.5, 1.9e6)):
        rates = stream.values("auto.rate", begin + 1, end)
        within(f"advice {name}: lowest rate from 1 s on, bit/s", min(rates), 0.9 * fair, 1.1 * fair)
        within(f"advice {name}: highest", max(rates), 0.9 * fair, 1.1 * fair)
        within(f"advice {name}: arrives, bit/s", stream.arrived(begin + 1, end), 0.9 * fair,
               1.05 * fair)
        within(f"advice {name}: lost, %", stream.lost(begin + 1, end), 0, 0)
        within(f"advice {name}: doubt", max(stream.values("auto.doubt", begin, end)), 0, 0)
    last = stream.mean("auto.rate", 23, 24)
    ended = next(t for t, value in stream.series("auto.advice") if t > 24 and not value)
    within("advice ends: after the last message, s", ended - 24, 2.5, 3.6)
    after = stream.values("auto.rate", ended, ended + 0.3)
    within("advice ends: first rate against the last advice", after[0] / last, 0.85, 1.02)
    within("advice ended: arrives, bit/s", stream.arrived(ended, 40), 0.7e6, 1e6)
    within("advice ended: lost, %", stream.lost(ended, 40), 0, 1)
    within("advice ended: longest queue that stands, s",
           max(stream.values("nada.queue", ended, 40)), 0, 0.1)


def is_wrong(build: Path) -> None:
    """The router that speaks is not the bottleneck: for a while another one carries less."""
    advised("2500kbit")
    stream = Run(build, 50)
    stream.at(8)
    path_rate("1mbit")
    stream.at(28)
    path_rate("")
    stream.at(49)
    stream.finish()
    told = stream.mean("auto.advice", 4, 8)
    within("advice is right: rate against it", stream.mean("auto.rate", 2, 8) / told, 0.999, 1.001)
    doubt = [t for t, value in stream.series("auto.doubt") if 8 <= t < 28 and value]
    within("advice turns wrong: doubt after, s", doubt[0] - 8 if doubt else 99, 0, 2)
    within("in doubt: rate against the advice", stream.mean("auto.rate", 10, 28)
           / stream.mean("auto.advice", 10, 28), 0, 0.9)
    within("in doubt: arrives, bit/s", stream.arrived(12, 28), 0.7e6, 1e6)
    within("in doubt: lost, %", stream.lost(12, 28), 0, 2)
    trust = [t for t, value in stream.series("auto.doubt") if t >= 28 and not value]
    within("advice is right again: trusted after, s", trust[0] - 28 if trust else 99, 0, 15)
    within("trusted: rate against the advice", stream.mean("auto.rate", 44, 49)
           / stream.mean("auto.advice", 44, 49), 0.999, 1.001)
    within("trusted: lost, %", stream.lost(44, 48), 0, 0)


def is_cut(build: Path) -> None:
    """For a while no report of the receiver comes back, then no message of the router."""
    advised("1mbit")
    stream = Run(build, 27)
    stream.at(6)
    blocked("udp sport 5005")
    stream.at(12)
    blocked("icmp type 253")
    stream.at(20)
    blocked("")
    stream.at(26)
    stream.finish()
    told = stream.mean("auto.advice", 3, 6)
    within("no reports: lowest rate against the advice",
           min(stream.values("auto.rate", 6, 12)) / told, 0.95, 1.05)
    within("no reports: arrives, of the advice", stream.arrived(7, 12) / told, 0.9, 1.05)
    ended = next(t for t, value in stream.series("auto.advice") if t > 12 and not value)
    within("no messages: advice ends after, s", ended - 12, 2.5, 3.6)
    within("no messages: arrives, of the advice", stream.arrived(ended, 20) / told, 0.8, 1.06)
    within("no messages: lost, %", stream.lost(ended, 20), 0, 1)
    rates = stream.values("auto.rate", 21, 26)
    within("messages again: lowest rate, of the advice", min(rates) / told, 0.9, 1.1)
    within("messages again: highest", max(rates) / told, 0.9, 1.1)


GROUPS: dict[str, Callable[[Path], None]] = {
    "comes": comes_and_goes, "wrong": is_wrong, "cut": is_cut,
}


def prepare() -> None:
    stream_lab.lay_out()
    shades = bytes(96 + (value & 63) for value in range(256))
    trial.write_noise(stream_lab.CLIP, WIDTH, HEIGHT, shades)


def main() -> int:
    return trial.run_groups(__doc__, GROUPS, prepare, stream_lab.finish)


if __name__ == "__main__":
    sys.exit(main())
