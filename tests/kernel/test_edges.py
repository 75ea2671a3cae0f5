# SPDX-License-Identifier: GPL-2.0
"""Flows that change what they are: strangers whose queue is free again, media after a long time as
something else. Packets of no flow beyond their budget, and tags that a bridge leaves in packets.
Overloads while they last. Floods that fill the queues, and what all others have then.
"""

from __future__ import annotations

import re
import socket
import struct
from pathlib import Path
from time import sleep

import pytest

from checks import check, within
from guest import TC_TESTS, Host, Wire, made
from paqm_lab.topology import Network, run
from traffic import Listener

EF, CS6 = 0xB8, 0xC0
QINQ, VLAN, INNER = 0x88A8, 0x8100, 101


def test_a_flow_turns_stranger_while_its_queue_is_free(wire: Wire) -> None:
    """Known by its DSCP it had an overflow queue, which it left long ago; without the DSCP it is
    not known, and strangers have no rate left."""
    wire.queue("paqm bandwidth 800kbit dscp-media EF flow-age 60s flows 16384")
    wire.send("rtp", port=7000, size=1200, rate=1.9e6, seconds=2, tos=EF).wait()
    sleep(4)
    within("its overflow queue is empty", wire.stats.over_backlog_packets, 0, 0)
    with wire.send("rtp", port=9000, flows=800, short=2, rate=8e6, size=500, seconds=6, tos=EF):
        for _ in range(10):
            sleep(0.5)
            wire.send("rtp", port=7000, size=300, rate=1e6, seconds=0.002).wait()
    wire.send("rtp", port=7000, size=300, rate=1e5, seconds=1).wait()
    sleep(3)
    within("all that waited is gone", wire.left(), 0, 0)


def test_isolation_begins_late(wire: Wire) -> None:
    """A stream has run for 45 s without: half the range of the clock of its bucket is over."""
    wire.queue("paqm bandwidth 4mbit noisolate")
    with wire.send("rtp", rate=0.4e6, seconds=56):
        sleep(45)
        wire.tc("qdisc change dev a0 root paqm isolate")
        sleep(10)
    within("a modest flow keeps out of overflow queues", wire.stats.over_packets, 0, 0)


@pytest.mark.parametrize(("kind", "tos"), [("plain", CS6), ("stun", 0)])
def test_requests_wait_for_their_own_kind_only(wire: Wire, kind: str, tos: int) -> None:
    """Control and requests beyond their budget: a flood of them is no other sender's delay."""
    wire.queue("paqm bandwidth 4mbit")
    with (Listener(wire.b, 9010) as heard,
          wire.send(kind, port=9000, rate=12e6, seconds=6, tos=tos),
          wire.send(kind, port=9010, rate=0.1e6, size=500, seconds=5, tos=tos)):
        pass
    within(f"{kind}: nothing of a thin flow is lost", heard.came[9010], 124, 126)
    within(f"{kind}: nor waits for the flood, us", heard.most[9010], 0, 20000)


def test_tiny_packets_leave_room(wire: Wire) -> None:
    """A flood of these fills the memory of the queues long before their bytes do."""
    wire.queue("paqm bandwidth 1mbit elastic-limit 1mb")
    with (Listener(wire.b, 9500) as heard,
          wire.send("rtp", rate=0.2e6, burst=5, size=500, seconds=3),
          wire.send("quic", port=9500, rate=0.04e6, size=250, seconds=3)):
        sleep(1.5)
        wire.send("quic", port=9000, flows=4, rate=16e6, burst=8000, size=20, seconds=0.1).wait()
        wire.send("quic", port=9000, flows=4, rate=0.8e6, burst=5, size=20, seconds=1).wait()
    now = wire.stats
    within("the flood lost packets", now.elastic.drop_tail_packets, 1000, 16000)
    within("media lost none", now.media.drop_tail_packets + now.over_full_packets, 0, 0)
    within("nor did a thin elastic flow, of 60", heard.came[9500], 59, 60)


def test_limit_is_for_both_classes(wire: Wire) -> None:
    """Elastic traffic that fills it leaves media its part, and both together keep to it."""
    wire.queue("paqm bandwidth 1mbit limit 20000")
    most = 0
    with (wire.send("rtp", rate=0.2e6, burst=5, size=500, seconds=4),
          wire.send("quic", port=9000, flows=2, rate=2e6, size=1200, seconds=4)):
        sleep(2)
        lost = wire.stats.media.drop_tail_packets
        sleep(1)
        lost = wire.stats.media.drop_tail_packets - lost
        with wire.send("rtp", port=7000, rate=2e6, seconds=1):
            for _ in range(40):
                sleep(0.02)
                most = max(most, wire.stats.backlog)
    within("packets of modest media lost in a second", lost, 0, 0)
    within("most that waited, bytes", most, 15000, 21500)
    check("conservation", wire.conserved())


def test_another_qdisc_leaves_media_its_part(wire: Wire) -> None:
    """Of `limit`: what the qdisc in the elastic class holds cannot make room."""
    wire.queue("paqm bandwidth 1mbit limit 40000")
    wire.tc("qdisc add dev a0 parent 1:2 handle 20: pfifo limit 1000")
    with (wire.send("rtp", rate=0.2e6, burst=5, size=500, seconds=4),
          wire.send("quic", port=9000, flows=2, rate=2e6, size=1200, seconds=4)):
        sleep(2)
        before = wire.stats
        sleep(1.5)
        now = wire.stats
    within("elastic packets lost", now.elastic.drop_tail_packets - before.elastic.drop_tail_packets,
           50, 400)
    within("media packets lost", now.media.drop_tail_packets - before.media.drop_tail_packets, 0, 0)
    within("bytes that wait", now.backlog, 15000, 41500)
    check("conservation", wire.conserved())


def test_an_overload_counts_while_it_lasts(wire: Wire) -> None:
    wire.queue("paqm bandwidth 1mbit noisolate")
    with wire.send("rtp", flows=2, rate=2e6, seconds=3):
        sleep(2)
        now = wire.stats
    within("overloads", now.overload_episodes, 1, 1)
    within("time of it, ms", now.overload_ns // 1000000, 1000, 2000)
    sleep(2)
    within("and in the end, ms", wire.stats.overload_ns // 1000000, 2000, 4500)


def frames(device: str, count: int, ect: int) -> None:
    """ECN-capable UDP in two tags."""
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    sock.bind((device, 0))
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, ect, 1028, 0, 0, 64, 17, 0,
                     bytes((10, 1, 0, 1)), bytes((10, 1, 0, 2)))
    for _ in range(count):
        sock.send(bytes.fromhex("ffffffffffff020000000001")
                  + struct.pack("!HHHHH", QINQ, 7, VLAN, INNER, 0x0800)
                  + ip + struct.pack("!HHHH", 4000, 4001, 1008, 0) + bytes(1000))
        sleep(0.002)


def inner_tags(sock: socket.socket, seconds: float) -> tuple[set[int], set[int]]:
    """VLAN IDs within the outer tag, which the kernel takes out, and ECN fields."""
    found: set[int] = set()
    marks: set[int] = set()
    sock.settimeout(seconds)
    try:
        while True:
            data = sock.recv(2048)
            if data[12:14] == struct.pack("!H", VLAN):
                found.add(struct.unpack_from("!H", data, 14)[0])
                marks.add(data[19] & 3)
    except TimeoutError:
        return found, marks


@pytest.mark.parametrize("ect, least", [(2, 1), (1, 300)])  # of 360; what CoDel marks are 220
def test_tags_in_bridged_packets(modules: None, ect: int, least: int) -> None:
    """A bridge that knows no VLANs leaves the network header at the inner tag: a mark belongs into
    the IP header behind it, where the field is, too, by which senders of ECT(1) are told apart."""
    net = Network()
    for name in ("qa", "qm", "qb"):
        net.host(name)
    net.link("qa", "qm", devices=("qa0", "qma"))
    net.link("qm", "qb", devices=("qmb", "qb0"))
    middle, end = Host("qm"), Host("qb")
    with made(net):
        middle.ip("link add br0 type bridge")
        for port in ("qma", "qmb"):
            middle.ip(f"link set {port} master br0")
        middle.ip("link set br0 up")
        middle.tc("qdisc add dev qmb root paqm bandwidth 1mbit")
        sock = end.task(socket.socket, socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)).wait()
        with sock, end.task(inner_tags, sock, 8) as heard:
            Host("qa").task(frames, "qa0", 1500, ect).wait()
        vlans, marks = heard.wait()
        now = middle.paqm("qmb")
    within("VLANs seen", len(vlans), 1, 1)
    within("the inner one is as it was sent", min(vlans, default=0), INNER, INNER)
    within("packets were marked", now.elastic.ecn_mark_packets, least, 1500)
    within("and arrive so", len(marks), 2, 2)


@pytest.mark.parametrize("leaf, first, then", (
    ("paqm feedback in-band classify protocol limit 20000", "tcp", "rtp"),
    ("paqm feedback in-band classify protocol limit 20000 noisolate", "tcp", "rtp"),
    ("dcbt limit 1", "", ""),
    ("rlqos limit 1", "", ""),
))
def test_no_class_above_sleeps_for_good(dummy: Wire, leaf: str, first: str, then: str) -> None:
    """Two levels above, a class would, if all packets that it knows of went for one that comes."""
    for words in (
        "qdisc add dev d0 root handle 2: hfsc default 1",
        "class add dev d0 parent 2: classid 2:1 hfsc ls rate 100kbit ul rate 100kbit",
        "qdisc add dev d0 parent 2:1 handle 1: prio bands 3 priomap" + 16 * " 0",
        f"qdisc add dev d0 parent 1:1 handle 10: {leaf}",
    ):
        dummy.tc(words)

    def send(kind: str, *more: object) -> None:
        dummy.run(TC_TESTS / "send.py", "d0", "--kind", kind, *more)

    if first:
        send(first, "--size", 1400)  # goes at once; the class rests for 112 ms
        send(first, "--size", 14054, "--gso", 1400)
        send(then, "--size", 14042, "--gso", 1400)
    else:
        for _ in range(30):
            send("tcp", "--size", 1400, "--count", 3)
            sleep(0.25)
    sleep(8)
    send("rtp", "--size", 200, "--count", 3)  # wakes nobody where the leaf is not empty
    sleep(4)
    within(f"{leaf}: left", sum(q.qlen for q in dummy.qdiscs("d0")), 0, 0)
    dummy.tc("qdisc del dev d0 root")


@pytest.mark.parametrize("child", ("fq_codel limit 2", "fq_codel limit 4", "cake memlimit 20k"))
def test_a_child_that_drops_puts_no_class_to_sleep(dummy: Wire, child: str) -> None:
    """It drops by itself while segments join one by one, also those that were there before."""
    for words in (
        "qdisc add dev d0 root handle 2: hfsc default 1",
        "class add dev d0 parent 2: classid 2:1 hfsc ls rate 100kbit ul rate 100kbit",
        "qdisc add dev d0 parent 2:1 handle 1: prio bands 3 priomap" + 16 * " 0",
        "qdisc add dev d0 parent 1:1 handle 10: paqm bandwidth 8mbit",
        f"qdisc add dev d0 parent 10:2 handle 20: {child}",
    ):
        dummy.tc(words)

    def send(source: int, *more: object) -> None:
        dummy.run(TC_TESTS / "send.py", "d0", "--kind", "tcp", "--source", f"10.10.10.{source}",
                  *more)

    for source, size, segments in ((s, *more) for s in (2, 3) for more in (
            (200, 4), (1000, 3), (1000, 5), (1000, 8), (1400, 5), (1400, 11))):
        send(1, "--size", 1400)  # goes at once; the class rests for 112 ms
        send(source, "--size", size)
        send(3, "--size", 54 + 600 * segments, "--gso", 600)
        sleep(4)
        within(f"{child}, {segments} segments behind {size} bytes of {source}: left",
               sum(q.qlen for q in dummy.qdiscs("d0")), 0, 0)
    dummy.tc("qdisc del dev d0 root")


def test_a_child_that_takes_one_packet_for_another(dummy: Wire) -> None:
    """All that the class above knew of has gone, but something waits; then nothing does."""
    for words in (
        "qdisc add dev d0 root handle 2: hfsc default 1",
        "class add dev d0 parent 2: classid 2:1 hfsc ls rate 100kbit ul rate 100kbit",
        "class add dev d0 parent 2: classid 2:2 hfsc ls rate 100kbit ul rate 100kbit",
        "filter add dev d0 parent 2: protocol ip u32 match ip src 10.10.10.9 flowid 2:2",
        "qdisc add dev d0 parent 2:1 handle 10: paqm bandwidth 8mbit",
        "qdisc add dev d0 parent 10:2 handle 20: fq_codel limit 1",
    ):
        dummy.tc(words)

    def send(source: int, size: int, count: int = 1) -> None:
        dummy.run(TC_TESTS / "send.py", "d0", "--kind", "tcp", "--source", f"10.10.10.{source}",
                  "--size", size, "--count", count)

    def left() -> int:
        return sum(q.qlen for q in dummy.qdiscs("d0"))

    send(1, 1400)  # goes at once; the class rests for 112 ms
    send(2, 1400)
    send(3, 200)  # of a shorter queue: it stays, and the other is dropped
    within("one waits", left(), 3, 3)
    sleep(4)
    within("it has left", left(), 0, 0)
    send(1, 1400)
    send(2, 200)
    send(2, 1400)  # of the same flow: both are dropped
    within("none waits", left(), 0, 0)
    send(9, 1400, 10)  # beside a class that is empty
    sleep(4)
    within("of another class: left", left(), 0, 0)
    within("the empty one is asked for packets, times",
           run("dmesg").count("non-work-conserving"), 0, 0)
    dummy.tc("qdisc del dev d0 root")


def test_a_seed_that_is_taken_back(wire: Wire) -> None:
    """Who knows a seed knows which flows share a slot; not any more once it is random again."""
    tracing = Path("/sys/kernel/tracing")
    if not (tracing / "events").exists():
        run("mount", "-t", "tracefs", "tracefs", str(tracing))

    def flow() -> str:
        """A flow, as the tracepoint has it: the hash of its addresses and ports."""
        (tracing / "trace").write_text("")
        wire.send("rtp", port=7000, seconds=2).wait()
        sleep(3)  # until its slot is free
        found = re.findall(r" flow=([0-9a-f]+) ", (tracing / "trace").read_text())
        check("one flow is told", len(set(found)) == 1, found)
        return str(found[0])

    wire.queue("paqm bandwidth 4mbit feedback icmp rtt 20ms seed 7")
    (tracing / "events/paqm/notice/enable").write_text("1")
    known = flow()
    wire.tc("qdisc change dev a0 root paqm seed random")
    check("another key", flow() != known)
    wire.tc("qdisc change dev a0 root paqm seed 7")
    check("and the first one again", flow() == known)
    (tracing / "events/paqm/notice/enable").write_text("0")


def test_what_flows_hear_is_what_is_said_now(wire: Wire) -> None:
    """A flow that was told by messages hears none once there are none."""
    wire.queue("paqm bandwidth 4mbit feedback icmp rtt 20ms")
    with wire.send("rtp", seconds=6):
        sleep(3)
        shown = wire.tc("-s class show dev a0")
        check("by message", "hears by message" in shown, shown)
        wire.tc("qdisc change dev a0 root paqm feedback none")
        sleep(1)
        shown = wire.tc("-s class show dev a0")
        check("not any more", "1:101" in shown and "message" not in shown, shown)
