# SPDX-License-Identifier: GPL-2.0
"""sch_paqm as a whole: classes, byte split, shaper, conservation, parents, GSO, policing, ECN,
capacity from the device.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
from pathlib import Path
from time import sleep

import pytest

from blast import blast
from checks import check, skip, within, works
from guest import TC_TESTS, Wire, qfq_holds
from traffic import transfer

TUNSETIFF, TAP = 0x400454CA, 0x1002  # without a header
PARENTS = ("prio", "drr", "htb", "hfsc", "qfq", "ets", "red", "tbf")


def test_classification(wire: Wire) -> None:
    wire.queue("paqm bandwidth 100mbit")
    wire.send("rtp", flows=3).wait()
    within("three RTP flows are media", wire.stats.media.flows, 3, 3)
    wire.queue("paqm bandwidth 100mbit")
    wire.send("quic", flows=2, port=443, rate=40e6, seconds=2).wait()
    within("QUIC is elastic: no media packet", wire.stats.media.flows, 0, 0)
    within("QUIC is elastic: flows counted", wire.stats.elastic.flows, 1, 2)


def test_default_of_new_devices(wire: Wire) -> None:
    """net.core.default_qdisc: no options, and no handle that priorities could name."""
    setting = Path("/proc/sys/net/core/default_qdisc")
    before = setting.read_text()
    setting.write_text("paqm")
    device = wire.task(os.open, "/dev/net/tun", os.O_RDWR).wait()
    try:
        wire.task(fcntl.ioctl, device, TUNSETIFF, struct.pack("16sH14x", b"t0", TAP)).wait()
        wire.ip("link add i0 numtxqueues 2 type ifb")
        for name in ("t0", "i0"):
            wire.ip(f"link set {name} up")
        check("a queue for each that the device has",
              [q.kind for q in wire.qdiscs("i0")] == ["mq", "paqm", "paqm"])
        wire.ip("addr add 10.9.0.1/24 dev t0")
        wire.ip("neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev t0")
        # TOS 8 is priority 2 to Linux, which is no class where the queue is not 0:
        wire.task(blast, "10.9.0.2", "rtp", tos=8, seconds=2).wait()
        within("its media flows", wire.paqm("t0").media.flows, 1, 1)
        wire.ip("link set t0 down")
        within("nothing waits in a device that is down", wire.paqm("t0").qlen, 0, 0)
    finally:
        setting.write_text(before)
        os.close(device)
        wire.ip("link del i0")


@pytest.mark.parametrize("rate", [64, 1000, 20000])
def test_shaper(wire: Wire, rate: int) -> None:
    wire.queue(f"paqm bandwidth {rate}kbit")
    with wire.send("plain", rate=rate * 2000, size=958, seconds=20):
        sleep(3)
        before = wire.stats
        sleep(10)
        after = wire.stats
    bits = 8e9 * (after.elastic.sent_bytes - before.elastic.sent_bytes)
    off = 20 if rate == 64 else 5
    within(f"shaper exact at {rate} kbit/s, per mille",
           bits / (after.uptime_ns - before.uptime_ns) / rate, 1000 - off, 1000 + off)
    check(f"conservation at {rate} kbit/s", wire.conserved())


@pytest.mark.parametrize("rates", [(1000, 1000), (900, 1100), (64, 64)])
def test_shaper_while_it_is_changed(wire: Wire, rates: tuple[int, int]) -> None:
    """Ten times a second, as by a program that adapts the rate; no packet is let through for it."""
    wire.queue(f"paqm bandwidth {rates[0]}kbit")
    with wire.send("plain", rate=sum(rates) * 1000, size=958, seconds=16):
        sleep(3)
        before = wire.stats
        for turn in range(100):
            wire.tc(f"qdisc change dev a0 root paqm bandwidth {rates[turn % 2]}kbit")
            sleep(0.1)
        after = wire.stats
    bits = 8e9 * (after.elastic.sent_bytes - before.elastic.sent_bytes)
    within(f"shaper of {rates[0]} and {rates[1]} kbit/s in turn, per cent of the mean",
           bits / (after.uptime_ns - before.uptime_ns) / sum(rates) / 5, 97, 102)


@pytest.mark.parametrize("what", ["none", "auto"])
def test_a_shaper_that_is_taken_away(wire: Wire, what: str) -> None:
    """What waits for the time of the packet before it, 1.4 s, has nothing to wait for."""
    wire.queue("paqm bandwidth 8kbit")
    wire.send("plain", size=1400, burst=3, seconds=0.01).wait()
    within("bytes that wait for the link", wire.stats.backlog, 1400, 2900)
    wire.tc(f"qdisc change dev a0 root paqm bandwidth {what}")
    sleep(0.05)
    within(f"the same without it, {what}", wire.stats.backlog, 0, 0)


def test_utilisation_knows_of_a_change(wire: Wire) -> None:
    """Half of the time 1 Mbit/s, half of it 4, and all of that used."""
    wire.queue("paqm bandwidth 1mbit")
    with wire.send("plain", rate=6e6, size=958, seconds=12):
        sleep(6)
        wire.tc("qdisc change dev a0 root paqm bandwidth 4mbit")
        sleep(5)
        now = wire.stats
    within("what the link could have carried, per cent", 8 * now.room_bytes / 26e4, 97, 103)
    within("utilisation, per cent", 100 * now.utilisation, 94, 100.5)


def test_many_transfers(wire: Wire) -> None:
    """Each holds a packet or two: the AQM keeps them short, not the limit of 200 ms."""
    wire.b.tc("qdisc add dev b0 root netem delay 10ms limit 100000")
    wire.queue("paqm bandwidth 10mbit")
    waits = []
    with wire.task(transfer, wire, wire.b, 10, 64):
        sleep(4)
        for _ in range(50):
            sleep(0.1)
            waits.append(wire.stats.elastic.backlog_bytes * 8 / 1e4)
    wire.b.tc("qdisc del dev b0 root")
    within("time of 64 transfers in the queue, p95, ms", sorted(waits)[47], 20, 130)


def media_part(wire: Wire, seconds: float) -> float:
    """Media's share of what is sent in so many seconds, per cent of the bytes."""
    before = wire.stats
    sleep(seconds)
    after = wire.stats
    media: int = after.media.sent_bytes - before.media.sent_bytes
    elastic: int = after.elastic.sent_bytes - before.elastic.sent_bytes
    return 100 * media / (media + elastic)


def test_byte_split(wire: Wire) -> None:
    """10 media flows of 300 B against 10 elastic ones of 1400 B, both backlogged."""
    wire.queue("paqm bandwidth 20mbit nopolice")
    with (wire.send("rtp", flows=10, rate=30e6, size=300, seconds=8),
          wire.send("quic", flows=10, port=8000, rate=30e6, size=1400, seconds=8)):
        sleep(3)
        within("media share of the bytes, per cent", media_part(wire, 4), 48, 52)
        within("elastic flows counted", wire.stats.elastic.flows, 10, 10)
    check("conservation after overload", wire.conserved())


def test_half_of_media_leaves(wire: Wire) -> None:
    """The split follows within two periods, though packets of those who left still wait."""
    wire.queue("paqm bandwidth 10mbit nopolice period 250ms rtt 100ms media-target 10ms")
    with (wire.send("rtp", flows=10, rate=10e6, seconds=5),
          wire.send("quic", flows=10, port=8000, rate=10e6, seconds=5)):
        wire.send("rtp", flows=10, port=7000, rate=10e6, seconds=3).wait()
        sleep(.5)
        within("media share of the bytes, per cent", media_part(wire, .4), 48, 52)


def test_unresponsive_flow_is_policed(wire: Wire) -> None:
    """Two modest ones do not pay for it."""
    wire.queue("paqm bandwidth 8mbit police")
    with (wire.send("rtp", flows=2, rate=2e6, seconds=12),
          wire.send("rtp", port=7000, rate=12e6, seconds=12)):
        sleep(8)
        before = wire.stats.media.drop_inner_packets
        sleep(4)
        after = wire.stats
        within("one flow is policed", after.strikes_flows, 1, 1)
        within("strikes, not random drops, carry the overload",
               after.media.drop_inner_packets - before, 0, 60)


@pytest.mark.parametrize("parent", PARENTS)
def test_parent(wire: Wire, parent: str) -> None:
    """Nothing is left behind, counters agree."""
    if parent == "qfq" and not qfq_holds():
        skip("leaf of qfq", "this kernel's qfq reports a fault when a leaf holds packets back")
        return
    wire.parent(parent)
    works(f"leaf of {parent}", wire.tc,
          "qdisc add dev a0 parent 1:1 handle 10: paqm bandwidth 4mbit")
    with (wire.send("rtp", flows=2, rate=4e6),
          wire.send("quic", port=8000, rate=8e6, size=1400)):
        pass
    sleep(1)
    within(f"nothing left under {parent}", wire.left(), 0, 0)
    check(f"conservation under {parent}", wire.conserved())


def test_gso(wire: Wire) -> None:
    """A large packet is cut where it would break the target."""
    wire.parent("qfq" if qfq_holds() else "drr")  # that takes a shaper below it
    wire.tc("qdisc add dev a0 parent 1:1 handle 10: paqm bandwidth 8mbit")
    wire.offloads("on")
    transfer(wire, wire.b, 3)
    sleep(1)
    elastic = wire.stats.elastic
    within("no packet above the MTU was sent: mean bytes",
           elastic.sent_bytes / elastic.sent_packets, 60, 1514)
    within("nothing left after GSO", wire.left(), 0, 0)
    wire.offloads("off")


def test_ecn_marks_instead_of_drops(wire: Wire) -> None:
    wire.queue("paqm bandwidth 8mbit")
    for host in (wire, wire.b):
        host.sysctl(ipv4__tcp_ecn=1)
    transfer(wire, wire.b, 5)
    within("TCP was marked", wire.stats.elastic.ecn_mark_packets, 1, 100000)
    within("and not dropped by the law", wire.stats.elastic.drop_inner_packets, 0, 0)


def test_without_bandwidth(wire: Wire) -> None:
    """The capacity is the device's, there is no shaper."""
    works("plain paqm", wire.tc, "qdisc replace dev a0 root paqm")
    within("capacity known", wire.stats.capacity_bps, 1e6, 1e11)
    wire.send("rtp", rate=5e6).wait()
    check("conservation", wire.conserved())
    wire.ip("tuntap add t0 mode tap")
    wire.ip("link set t0 up")
    wire.tc("qdisc replace dev t0 root paqm")
    wire.run("ethtool", "-s", "t0", "speed", 100, "duplex", "full")
    wire.ip("link set t0 down")
    wire.ip("link set t0 up")
    within("capacity follows the link's speed", wire.paqm("t0").capacity_bps, 10**8, 10**8)
    wire.ip("link del t0")


def test_seed(dummy: Wire) -> None:
    """It gives the flows their places, also when it is changed."""

    def overflow() -> int:
        dummy.run(TC_TESTS / "send.py", "d0", "--kind", "rtp", "--flows", 64, "--count", 640)
        return int(dummy.paqm("d0").table_overflow_flows)

    seen = []
    for seed in (4, 7):
        with contextlib.suppress(Exception):
            dummy.tc("qdisc del dev d0 root")
        dummy.tc(f"qdisc add dev d0 root handle 1: paqm bandwidth 1gbit flows 64 seed {seed}")
        seen.append(overflow())
    for words in ("seed 4", "weights host", "seed 7", "seed 4"):
        dummy.tc(f"qdisc change dev d0 root handle 1: paqm {words}")
    first, other = seen
    check(f"another seed leaves others without a place ({first}, {other})", first != other)
    within("and the first one the same again", overflow() - other, first, first)


def test_what_is_shown_can_be_given_again(dummy: Wire) -> None:
    """And has no effect then."""
    replay = (dummy.run, TC_TESTS / "rtnl.py", "replay", "d0", "--handle", "1:")

    def shown() -> str:
        return dummy.run(TC_TESTS / "rtnl.py", "show", "d0")

    dummy.tc("qdisc add dev d0 root handle 1: paqm bandwidth 9mbit feedback icmp rtt 30ms "
             "feedback-to 10.0.0.0/8,2001:db8::/32 key 7:000102030405060708090a0b0c0d0e0f seed 3")
    before = shown()
    works("all options are taken back", *replay)
    check("they are what they were", shown() == before, shown())
    to = dummy.paqm("d0").options.feedback_to
    check("and the list is there", to == ["10.0.0.0/8", "2001:db8::/32"], to)
    dummy.tc("qdisc change dev d0 root handle 1: paqm feedback-to any")
    works("without a list, too", *replay)
    to = dummy.paqm("d0").options.feedback_to
    check("tc shows none", to == [], to)
