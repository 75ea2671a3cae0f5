#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The worked example in the lab: a stock x264enc pipeline that examples/retune.py makes follow a
real router, alone and beside TCP, and after paqmd has been restarted. Prints ok and not ok lines.

Usage, in a guest: lab_retune.py BUILD
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "kernel" / "lab-tests"))
import trial  # noqa: E402
from trial import Program, check, run, until, within  # noqa: E402

from paqm_lab import topology  # noqa: E402
from paqm_lab.topology import Network, netem  # noqa: E402

CLONE_NEWNET = 0x40000000
LINK, CEILING, STREAMS = 4_000_000, 2_500_000, 3
MOST = round(CEILING * 0.97)  # of RTP packets; the ceiling counts IP and UDP headers
PIPELINE = (
    "videotestsrc is-live=true pattern=snow ! video/x-raw,width=320,height=240,framerate=25/1 ! "
    "x264enc name=enc tune=zerolatency speed-preset=ultrafast threads=1 vbv-buf-capacity=100 "
    "key-int-max=250 intra-refresh=true ! rtph264pay mtu=1200 ! "
    f"paqmestimator encoder=enc estimated-bitrate=400000 min-bitrate=100000 max-bitrate={MOST} ! "
    "udpsink host=10.2.0.2 port=5006"
)


def lay_out() -> None:
    """s (sender) and tcp -- r (router) -- v (receivers)."""
    net = Network()
    net.host("r", True)
    for host in ("s", "v", "tcp"):  # v is 10.2.0.2
        net.link("r", net.host(host))
        net.queue(host, "r", "root", *netem(10))
    net.queue("r", "v", "root", *f"paqm bandwidth {LINK} feedback icmp".split())
    topology.make(net.routed())


class Sink(threading.Thread):
    """Counts the media that arrives, at the IP level."""

    def __init__(self, ready: threading.Event) -> None:
        super().__init__(daemon=True)
        self.ready, self.size = ready, 0

    def run(self) -> None:
        fd = os.open("/run/netns/v", os.O_RDONLY)
        # os.setns() is there from Python 3.12 on
        assert ctypes.CDLL(None).setns(fd, CLONE_NEWNET) == 0
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.bind(("10.2.0.2", 5006))
        self.ready.set()
        while True:
            self.size += len(sock.recv(2048)) + 28

    def rate(self, seconds: float) -> float:
        """Mean rate of so long a time."""
        before, begin = self.size, time.monotonic()
        time.sleep(seconds)
        return (self.size - before) * 8 / (time.monotonic() - begin)


def retune(pipeline: str) -> Program:
    return Program("s", "/usr/bin/python3", TOP / "libpaqmclient" / "examples" / "retune.py",
                   pipeline)


def ends() -> None:
    """A pipeline that cannot work says why, one that comes to its end ends, and so does ^C."""
    wrong = PIPELINE.replace("encoder=enc", "encoder=other")
    said = retune(wrong).end(status=1)
    check("an encoder of another name", "no element of the pipeline has this name" in said, said)
    said = retune(PIPELINE.replace("videotestsrc", "nosuchsrc")).end(status=1)
    check("an unknown element", 'retune.py: no element "nosuchsrc"' in said, said)
    retune(PIPELINE.replace("videotestsrc", "videotestsrc num-buffers=25")).end()
    stopped = retune(PIPELINE)
    tasks = Path(f"/proc/{stopped.pid}/task")
    until("it plays", lambda: len(list(tasks.iterdir())) > 3, stopped)
    stopped.end(signal.SIGINT)


def paqmd(build: Path) -> Program:
    """Start the daemon of the sender's host."""
    return Program("s", build / "feedback-daemon" / "paqmd", "-i", "r", "--user", "nobody")


def flow(build: Path) -> dict[str, Any]:
    """What paqmd knows of the stream."""
    out = run(str(build / "feedback-daemon" / "paqmctl"), "--json", "flows")
    found: dict[str, Any] = json.loads(out)["flows"][0]
    return found


def advice(build: Path, seconds: float) -> list[float]:
    """What the router advises, four times a second."""
    told = []
    for _ in range(int(seconds * 4)):
        told.append(flow(build)["rate_bps"])
        time.sleep(0.25)
    return told


def main() -> int:
    """Run it."""
    build = Path(sys.argv[1]).resolve()
    trial.load_modules()
    lay_out()
    ends()
    ready = threading.Event()
    sink = Sink(ready)
    sink.start()
    ready.wait()
    daemon = first = paqmd(build)
    sender = retune(PIPELINE)
    time.sleep(8)
    within("alone: rate against the ceiling", sink.rate(6) / CEILING, 0.75, 1.0)
    server = Program("v", "iperf3", "-s")
    time.sleep(0.5)
    load = Program("tcp", "iperf3", "-c", "10.2.0.2", "-t", 60, "-P", STREAMS)
    time.sleep(5)
    share = LINK / (STREAMS + 1)
    within(f"beside {STREAMS} TCP: rate against the share", sink.rate(8) / share, 0.75, 1.05)
    told = advice(build, 10)
    within("its advice against the share, least", min(told) / share, 0.85, 1.15)
    within("its advice against the share, greatest", max(told) / share, 0.85, 1.15)

    # the daemon is restarted: the stream goes on at its rate, and is told again
    daemon.terminate()
    daemon.wait()
    daemon = paqmd(build)
    within("paqmd restarted: rate against the share", sink.rate(8) / share, 0.75, 1.05)
    within("messages believed by the new paqmd", flow(build)["accepted"], 8, 1000)
    stats = json.loads(run("tc", "-n", "r", "-s", "-j", "qdisc", "show", "dev", "v"))[0]
    within("media packets dropped", media_drops(stats), 0, 5)
    for program in (sender, load, server, daemon):
        program.kill()
    for program in (sender, load, server, daemon):
        program.wait()
    print(first.said() + daemon.said(), file=sys.stderr)
    return trial.summary()


def media_drops(stats: dict[str, Any]) -> float:
    """Packets of the media class that the router dropped."""
    media = stats["media"]
    assert media["sent_packets"] > 1000, media
    return float(sum(media[f"drop_{why}_packets"] for why in ("tail", "inner", "strike")))


if __name__ == "__main__":
    sys.exit(main())
