# SPDX-License-Identifier: GPL-2.0
"""What the qdisc benchmarks have in common: qdiscs under test, the load, what pktgen and tc say.

Every qdisc sits below a `prio` that puts everything into one band. As root, some are bypassed
while their queue is empty, and the figure would be that of no qdisc at all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from paqm_lab.errors import LabError

CHILD = "10:"  # handle of the qdisc under test
# Senders are in the benchmarking network (RFC 2544), or in 10/8 when that is too small.
SOURCES, MANY_SOURCES = "198.18.0.1", "10.0.0.1"
SINK = "203.0.113.1"
# The link is never the limit: what is measured is the cost of a packet, not a drop.
MOST_SLOTS = 1 << 20  # what the option `flows` takes
ENOUGH = "bandwidth 100gbit"


@dataclass(frozen=True)
class Subject:
    """A qdisc under test; `args` as for tc, none for a device without qdisc."""

    name: str
    args: str | None
    feedback: bool = False


@dataclass(frozen=True)
class Load:
    """UDP packets from `flows` sources.

    With `rtp` they are those of testbed/bench/paqm_load.c: streams that take turns. Without, they
    are pktgen's, from a random source each.
    """

    flows: int = 1000
    size: int = 1000
    rtp: bool = False


@dataclass(frozen=True)
class Sent:
    """pktgen's own account of a run."""

    packets: int
    errors: int


RED = "red limit 400000 min 30000 max 90000 avpkt 1000 burst 55 ecn adaptive bandwidth 10Gbit"
RIVALS = [
    Subject("pfifo", "pfifo limit 1000"),
    Subject("pie", "pie"),
    Subject("fq_codel", "fq_codel"),
    Subject("fq_pie", "fq_pie"),
    Subject("dualpi2", "dualpi2"),
    Subject("cake", "cake"),
    Subject("red", RED),
    Subject("fq", "fq"),
]
PLAIN = Subject("paqm", f"paqm {ENOUGH}")
TOLD = Subject("paqm feedback", f"paqm {ENOUGH} feedback icmp", True)
# pktgen's payload is no RTP: elastic to the recogniser, media where all UDP is media.
PAQM = [
    PLAIN,
    Subject("paqm media", f"paqm {ENOUGH} classify protocol"),
    Subject("paqm media feedback", f"paqm {ENOUGH} classify protocol feedback icmp", True),
]
NOTICE_KEYS = ["rounds", "notices_owed", "notices_sent", "notices_limited", "notices_ring"]


def with_flows(subject: Subject, flows: int) -> Subject:
    """The same qdisc with a flow table twice as large as needed, as far as it can be."""
    slots = min(max(4096, 2 * flows), MOST_SLOTS)
    return replace(subject, args=f"{subject.args} flows {slots}")


def qdisc_commands(device: str, subject: Subject) -> list[str]:
    """tc command lines that put the qdisc under test on a device."""
    if subject.args is None:
        return []
    one_band = "bands 2 priomap " + " ".join(["0"] * 16)
    return [
        f"tc qdisc add dev {device} root handle 1: prio {one_band}",
        f"tc qdisc add dev {device} parent 1:1 handle {CHILD} {subject.args}",
    ]


def _address(first: str, offset: int) -> str:
    number = 0
    for part in first.split("."):
        number = number << 8 | int(part)
    number += offset
    return ".".join(str(number >> shift & 255) for shift in (24, 16, 8, 0))


def pktgen_lines(load: Load, packets: int) -> list[str]:
    """Lines for /proc/net/pktgen/DEVICE."""
    first = SOURCES if load.flows <= 65536 else MANY_SOURCES
    lines = [
        f"count {packets}",
        f"pkt_size {load.size}",
        "delay 0",
        "clone_skb 0",
        "xmit_mode queue_xmit",
        f"src_min {first}",
        f"src_max {_address(first, load.flows - 1)}",
        f"dst {SINK}",
        "dst_mac 02:00:00:00:00:02",
        "udp_src_min 5004",
        "udp_src_max 5004",
        "udp_dst_min 5004",
        "udp_dst_max 5004",
    ]
    return [*lines, "flag IPSRC_RND"] if load.flows > 1 else lines


def parse_pktgen(text: str) -> Sent:
    """Reads the result out of /proc/net/pktgen/DEVICE."""
    head = re.search(r"Result: OK: \d+\(c\d+\+d\d+\) usec, (\d+) \(\d+byte", text)
    errors = re.search(r"errors: (\d+)\s*$", text.strip())
    if not head or not errors:
        raise LabError(f"pktgen did not send: {text.strip().splitlines()[-1:]}")
    return Sent(int(head[1]), int(errors[1]))


def child_counts(shown: str) -> tuple[int, int]:
    """Packets sent and dropped by the qdisc under test, out of `tc -s qdisc show`.

    Not from JSON: tc 6.1's output for pfifo and others is none.
    """
    found = re.search(
        rf"^qdisc \w+ {CHILD} .*?Sent \d+ bytes (\d+) pkt \(dropped (\d+),", shown, re.M | re.S
    )
    if not found:
        raise LabError(f"tc shows no qdisc {CHILD}")
    return int(found[1]), int(found[2])


def find_key(value: Any, key: str) -> Any:
    """The first value of that key anywhere in a JSON document, None if there is none."""
    if isinstance(value, dict):
        if key in value:
            return value[key]
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            found = find_key(item, key)
            if found is not None:
                return found
    return None
