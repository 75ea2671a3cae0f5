#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Senders in containers on a host whose own uplink has the queue, inside a lab guest: who hears.

Prints `ok NAME` or `not ok NAME: why`. The network, s -- n -- r -- v, is that of stream_lab.py: s
is the container, n its host, whose uplink nr has the queue; what it says to s leaves by ns.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import stream_lab
import trial
from stream_lab import Stream, believed, queue, stats
from trial import check, inside, within

BRIDGE = "pods"
MASQUERADE = """
table ip nat {
	chain out { type nat hook postrouting priority 100;
		oifname "nr" meta l4proto udp masquerade; }
}
"""


def hears(name: str, build: Path, at: str, on: str, carrier: str = "icmp",
          heard: bool = True) -> None:
    """One stream out of the container, with a paqmd there or on its host."""
    queue(f"bandwidth 1mbit feedback {carrier}", "n", "nr")
    stream = Stream(build, 6, at=at, on=on, send="--bind 10.1.0.2")
    time.sleep(4)
    said = stream.ask("stats")
    stream.finish()
    within(f"{name}: the host's queue told", stats("n", "nr")["notices_sent"], 10, 60)
    if heard:
        believed(name, stream, said)
    else:
        check(f"{name}: hears nothing", not said["accepted"] and not any(stream.rates()), said)


def routed(build: Path) -> None:
    """The host routes the container's own address."""
    hears("its host, any", build, "n", "any")
    hears("its host, uplink and container", build, "n", "nr ns")
    hears("its host, uplink alone", build, "n", "nr", heard=False)
    hears("itself", build, "s", "sn")


def bridged(build: Path) -> None:
    """The same, and the container's end is a port of a bridge, which has the gateway's address."""
    inside("n", "ip", "link", "add", BRIDGE, "type", "bridge")
    inside("n", "ip", "addr", "del", "10.1.0.1/24", "dev", "ns")
    inside("n", "ip", "link", "set", "ns", "master", BRIDGE)
    inside("n", "ip", "addr", "add", "10.1.0.1/24", "dev", BRIDGE)
    inside("n", "ip", "link", "set", BRIDGE, "up")
    inside("s", "ip", "neigh", "flush", "dev", "sn", "nud", "permanent")
    hears("its host, any, a bridge", build, "n", "any")
    hears("its host, uplink and bridge", build, "n", f"nr {BRIDGE}")
    inside("n", "ip", "link", "del", BRIDGE)
    inside("n", "ip", "addr", "add", "10.1.0.1/24", "dev", "ns")


def forwarded(build: Path) -> None:
    """The queue is a router's beyond: the host passes its messages on, and believes each once."""
    inside("n", "tc", "qdisc", "del", "dev", "nr", "root")
    queue("bandwidth 1mbit feedback icmp")
    for on in ("nr", "any", "nr ns"):
        stream = Stream(build, 6, at="n", on=on, send="--bind 10.1.0.2")
        time.sleep(4)
        said = stream.ask("stats")
        stream.finish()
        within(f"a router beyond, {on}: messages believed after 4 s", said["accepted"], 8, 20)
        check(f"a router beyond, {on}: refused nothing", not said["refused_total"],
              said["refused"])


def masqueraded(build: Path) -> None:
    """The host masquerades it: its queue tells the container, by the address that it has there, and
    its paqmd sees packets with another."""
    inside("n", "nft", "-f", "-", stdin=MASQUERADE)
    hears("itself, masqueraded", build, "s", "sn")
    hears("itself, masqueraded, quench", build, "s", "sn", "quench")
    hears("its host, masqueraded", build, "n", "any", heard=False)
    inside("n", "nft", "flush", "ruleset")


def finish() -> None:
    queue("", "n", "nr")  # of groups that have none of theirs there
    inside("n", "tc", "qdisc", "del", "dev", "nr", "root")
    stream_lab.finish()


GROUPS = {"routed": routed, "bridged": bridged, "forwarded": forwarded,
          "masqueraded": masqueraded}  # fmt: skip

if __name__ == "__main__":
    sys.exit(trial.run_groups(__doc__, GROUPS, stream_lab.prepare, finish))
