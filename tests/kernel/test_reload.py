# SPDX-License-Identifier: GPL-2.0
"""Load, attach, change, detach, unload and load again while traffic flows; devices that go down or
vanish, namespaces that die with the qdisc attached. Meant for the debug kernel (KASAN, lockdep,
kmemleak): the guest fails on any report.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import sleep

from blast import blast
from checks import check, refused, within
from guest import Host, Wire, load, made, together, unload
from paqm_lab import topology
from paqm_lab.topology import Network, run

MRT6_INIT = 200
MANY = "bandwidth 1mbit feedback icmp"


@contextmanager
def alone() -> Iterator[Host]:
    """A host with d0, which takes whatever is sent. In the end it dies with what is attached."""
    with made(Network([topology.Host("n", ipv6=True)])):
        host = Host("n")
        host.ip("link add d0 type dummy")
        host.ip("addr add 10.9.0.1/24 dev d0")
        host.ip("link set d0 up")
        yield host


def test_turns_under_traffic(wire: Wire) -> None:
    # no TCP here: between two qdiscs nothing would limit it, and virtual time would stand still
    with together(wire.send("rtp", flows=20, rate=6e6, seconds=30),
                  wire.send("quic", flows=20, port=8000, rate=15e6, size=1400, seconds=30)):
        for turn in range(1, 16):
            if turn > 1:
                load()
            wire.queue(f"paqm bandwidth {2 + turn}mbit feedback icmp flows 64")
            sleep(0.7)
            refused(f"turn {turn}: it is in use", "in use", run, "rmmod", "sch_paqm")
            for words in (f"bandwidth {20 - turn}mbit feedback none law ecf",
                          "feedback icmp law erf media-target 2ms limit 3000"):
                wire.tc(f"qdisc change dev a0 root handle 1: paqm {words}")
                sleep(0.3)
            within(f"turn {turn}: packets", wire.stats.packets, 500, 10000)
            wire.down()
            wire.up()
            sleep(0.3)
            if turn % 3 == 0:
                wire.tc("qdisc replace dev a0 root handle 2: prio")
                wire.tc("qdisc add dev a0 parent 2:2 handle 3: paqm feedback icmp")
                wire.tc(f"qdisc replace dev a0 parent 2:2 handle 4: paqm {MANY}")
                sleep(0.2)
            wire.clear()
            unload()
    load()


def test_a_namespace_dies_with_the_queue(modules: None) -> None:
    """And traffic in it."""
    for turn in range(1, 6):
        with alone() as host:
            host.tc(f"qdisc add dev d0 root paqm {MANY}")
            host.ip("neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev d0")
            host.task(blast, "10.9.0.2", rate=3e6, seconds=0.5).wait()
            within(f"turn {turn}: bytes that wait", host.paqm("d0").backlog, 1000, 1000000)


def test_rtts_where_multicast_is_forwarded(modules: None) -> None:
    """A raw socket of ICMPv6 takes RTNL there when it ends."""
    with alone() as host:
        router = host.task(socket.socket, socket.AF_INET6, socket.SOCK_RAW,
                           socket.IPPROTO_ICMPV6).wait()
        router.setsockopt(socket.IPPROTO_IPV6, MRT6_INIT, 1)
        forwards = Path("/proc/sys/net/ipv6/conf/all/mc_forwarding")
        within("multicast is forwarded", int(host.task(forwards.read_text).wait()), 1, 1)
        for words in (f"add dev d0 root paqm {MANY} rtt auto", "change dev d0 root paqm rtt 100ms",
                      "change dev d0 root paqm rtt auto", "del dev d0 root"):
            turn = host.task(host.tc, f"qdisc {words}")
            turn.join(2)
            check(f"tc qdisc {words} returns", not turn.is_alive())
            if turn.is_alive():  # it never does, and nor does anything else that needs RTNL
                os._exit(1)
            turn.wait()
        host.tc(f"qdisc add dev d0 root paqm {MANY} rtt auto")
    router.close()  # with the last that knew it, the namespace dies, and the queue's sockets
    sleep(1)
