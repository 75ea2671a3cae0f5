# SPDX-License-Identifier: GPL-2.0
"""What tests of carriers and controllers share inside a lab guest: network, queue, a stream.

    s 10.1.0.2 -- 10.1.0.1 n 10.2.0.1 -- 10.2.0.2 r 10.3.0.1 -- 10.3.0.2 v

s sends, n may translate addresses, r has the queue (device rv), v receives. Between n and r each
direction takes 10 ms. Devices are called by both hosts: sn in s, ns in n.
"""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trial import TOP, inside, run

from paqm_lab import topology
from paqm_lab.topology import Network

sys.path.insert(0, str(TOP / "streamer" / "tests"))
from test_loopback import write_clip  # noqa: E402

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
                 on: str = "sn") -> None:
        self.build, self.seconds = build, seconds
        self.home = Path(tempfile.mkdtemp(dir="/run/tmp"))
        self.programs: list[tuple[str, subprocess.Popen[bytes], Path]] = []
        self.control = self.home / "control.sock"
        streamer = str(build / "streamer/paqm-streamer")
        if daemon:
            self.start("s", "paqmd", str(build / "feedback-daemon/paqmd"), "-i", on, "--socket",
                       str(self.home / "client.sock"), "--control", str(self.control),
                       "--user", "root", "-v")
            self.wait_for(lambda: "ready" in (self.home / "paqmd.log").read_text())
        self.start("v", "recv", streamer, "recv", "--listen", f"{to}:{port}", "--seed", "2",
                   "--log", str(self.home / "recv"), *recv.split())
        self.wait_for(lambda: "listening" in (self.home / "recv.log").read_text())
        socket = str(self.home / "client.sock") if daemon else "none"
        self.start("s", "send", streamer, "send", "--to", f"{to}:{port}", "--source", str(CLIP),
                   "--loop", "--rate-max", "3mbit", "--rate-min", "100kbit", "--seed", "1",
                   "--paqmd", socket, "--duration", str(seconds), "--log", str(self.home / "send"),
                   *send.split())
        self.begin = time.time()

    def start(self, host: str, name: str, *cmd: str) -> None:
        log = self.home / f"{name}.log"
        with log.open("wb") as out:
            self.programs.append((name, subprocess.Popen(
                ["ip", "netns", "exec", host, *cmd], stdout=out, stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL), log))

    def wait_for(self, done: Callable[[], bool]) -> None:
        for _ in range(1000):
            if done():
                return
            time.sleep(0.01)
        raise SystemExit(f"{self.programs[-1][0]} is not ready: "
                         f"{self.programs[-1][2].read_text()}")

    def ask(self, what: str) -> dict[str, Any]:
        text = run(str(self.build / "feedback-daemon/paqmctl"), "--control", str(self.control),
                   "-j", what)
        answer = json.loads(text)
        return dict(answer.get(what, answer))

    def finish(self) -> None:
        """Wait for the sender, end the others; all must end well."""
        for name, program, log in reversed(self.programs):
            if name != "send":
                program.send_signal(signal.SIGTERM)
            if program.wait(60):
                raise SystemExit(f"{name} ended with status {program.returncode}: "
                                 f"{log.read_text()}")

    def rows(self, side: str, name: str) -> list[dict[str, str]]:
        with (self.home / side / name).open() as file:
            return list(csv.DictReader(file))

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


def srtp_key() -> str:
    """Options with a key that is known to all: streams here repeat, and have nothing to hide."""
    key = Path("/run/tmp/srtp.key")
    key.write_text("00112233445566778899aabbccddeeff" + "0102030405060708090a0b0c0d0e\n")
    return f"--srtp-key {key} --reuse-keystream"


def prepare() -> None:
    lay_out()
    write_clip(CLIP)


def finish() -> None:
    queue("")  # of groups that have none of theirs there
    inside("r", "tc", "qdisc", "del", "dev", "rv", "root")
