# SPDX-License-Identifier: GPL-2.0
"""What tests of carriers and controllers share inside a lab guest: network, queue, a stream.

    s 10.1.0.2 -- 10.1.0.1 n 10.2.0.1 -- 10.2.0.2 r 10.3.0.1 -- 10.3.0.2 v

s sends, n may translate addresses, r has the queue (device rv), v receives. Between n and r each
direction takes 10 ms. Devices are called by both hosts: sn in s, ns in n.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import trial
from trial import TOP, Program, check, inside, run, within

from paqm_lab import topology
from paqm_lab.topology import Network

sys.path.insert(0, str(TOP / "streamer" / "tests"))
import streams  # noqa: E402

CLIP = Path("/run/tmp/clip.y4m")


def four_hosts(ipv6: bool = False) -> Network:
    """The network; with IPv6 the same, fd00:number::1 and ::2."""
    net = Network()
    for host in "snrv":
        net.host(host, forwards=host in "nr", ipv6=True)
    number = "fd00:{}::{}" if ipv6 else "10.{}.0.{}"
    for left, right, ends, delay in (("s", "n", (2, 1), 0), ("n", "r", (1, 2), 10),
                                     ("r", "v", (1, 2), 0)):
        first, second = (number.format(len(net.links) + 1, end) for end in ends)
        prefix = "/64" if ipv6 else "/24"
        net.link(left, right, delay, devices=(left + right, right + left),
                 addresses=[(first + prefix, second + prefix)])
    whole = "::/0" if ipv6 else "default"
    net.route("s", whole, number.format(1, 1))
    net.route("n", "fd00:3::/64" if ipv6 else "10.3.0.0/24", number.format(2, 2))
    net.route("r", "fd00:1::/64" if ipv6 else "10.1.0.0/24", number.format(2, 1))
    net.route("v", whole, number.format(3, 1))
    return net


def lay_out() -> None:
    topology.make(four_hosts())


def network6() -> None:
    """IPv6 besides, again after devices have changed their VRF: they lose it then."""
    net = four_hosts(ipv6=True)
    for link in net.links:
        for end in (link.left, link.right):
            topology.set_addresses(link, end.host)
            topology.set_neighbours(link, end.host)
    for route in net.routes:
        topology.add_routes([route])


def queue(options: str, host: str = "r", device: str = "rv") -> None:
    subprocess.run(["ip", "netns", "exec", host, "tc", "qdisc", "del", "dev", device, "root"],
                   stderr=subprocess.DEVNULL)
    inside(host, "tc", "qdisc", "add", "dev", device, "root", "handle", "1:", "paqm",
           *options.split())


def stats(host: str = "r", device: str = "rv") -> dict[str, Any]:
    shown = json.loads(inside(host, "tc", "-s", "-j", "qdisc", "show", "dev", device))
    return next(dict(entry) for entry in shown if entry["kind"] == "paqm")


class Stream:
    """paqm-streamer in s and v, paqmd beside the sender if it is wanted."""

    def __init__(self, build: Path, seconds: float, send: str = "", recv: str = "",
                 daemon: bool = True, port: int = 5004, to: str = "10.3.0.2",
                 on: str = "sn", at: str = "s") -> None:
        self.build, self.seconds = build, seconds
        self.home = Path(tempfile.mkdtemp())
        self.control, socket = self.home / "control.sock", self.home / "client.sock"
        self.others: list[Program] = []
        program, where = build / "streamer/paqm-streamer", f"{to}:{port}"
        if daemon:
            devices = [word for name in on.split() for word in ("-i", name)]
            self.others.append(Program(
                at, build / "feedback-daemon/paqmd", *devices, "--socket", socket, "--control",
                self.control, "--user", "root", "-v", ready="ready"))
        self.others.append(streams.receive(program, where, self.home / "recv", "--seed", 2,
                                           *recv.split(), host="v"))
        self.sender = streams.send(
            program, where, self.home / "send", CLIP, "--loop", "--rate-max", "3mbit", "--rate-min",
            "100kbit", "--seed", 1, "--duration", seconds, *send.split(), host="s",
            paqmd=socket if daemon else "none")
        self.begin = time.time()

    def ask(self, what: str) -> dict[str, Any]:
        text = run(str(self.build / "feedback-daemon/paqmctl"), "--control", str(self.control),
                   "-j", what)
        answer = json.loads(text)
        return dict(answer.get(what, answer))

    def finish(self) -> None:
        """Wait for the sender, end the others; all must end well."""
        self.sender.end()
        for program in reversed(self.others):
            program.end(signal.SIGTERM)

    def rows(self, side: str, name: str) -> list[dict[str, str]]:
        return trial.rows(self.home / side / name)

    def rates(self) -> list[float]:
        """What the sender was told, in order, bit/s."""
        return [float(row["rate_bps"]) for row in self.rows("send", "feedback.csv")]

    def received(self, first: float, last: float) -> float:
        """bit/s on the IP layer between these seconds."""
        begin = int(self.rows("recv", "rx.csv")[0]["t_ns"])
        total = sum(int(row["wire_bytes"]) for row in self.rows("recv", "rx.csv")
                    if first <= (int(row["t_ns"]) - begin) / 1e9 < last)
        return total * 8 / (last - first)


def lost_packets(stream: Stream) -> int:
    """Between those that came."""
    numbers = [int(row["seq"]) for row in stream.rows("recv", "rx.csv")]
    return sum((b - a - 1) % 65536 for a, b in zip(numbers, numbers[1:], strict=False)
               if (b - a) % 65536 < 32768)


def believed(name: str, stream: Stream, said: dict[str, Any]) -> None:
    """A stream over 1 Mbit/s that has ended, and what its paqmd said after 4 s: it has heard."""
    rates = [rate for rate in stream.rates() if rate]
    check(f"{name}: refused nothing", not said["refused_total"], said["refused"])
    within(f"{name}: messages believed after 4 s", said["accepted"], 8, 40)
    within(f"{name}: median of the rates told, bit/s", median(rates or [0]), 0.6e6, 1e6)


def srtp_key() -> str:
    """Options with a key that is known to all: streams here repeat, and have nothing to hide."""
    key = Path("/run/tmp/srtp.key")
    key.write_text("00112233445566778899aabbccddeeff" + "0102030405060708090a0b0c0d0e\n")
    return f"--srtp-key {key} --reuse-keystream"


def prepare() -> None:
    lay_out()
    streams.write_clip(CLIP)


def finish() -> None:
    queue("")  # of groups that have none of theirs there
    inside("r", "tc", "qdisc", "del", "dev", "rv", "root")
