# SPDX-License-Identifier: GPL-2.0
"""Classes of sch_paqm: what tc shows of them, other qdiscs in the elastic class, grafting under
traffic, filters with every verdict, parents above and children below at once.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
from contextlib import AbstractContextManager
from pathlib import Path
from time import sleep

import pytest

from checks import check, refused, skip, within, works
from guest import TC_TESTS, Wire, qfq_holds, together
from paqm_lab.topology import CommandFailed, run
from traffic import transfer

CHILDREN = (
    "fq_codel", "pfifo limit 50", "bfifo limit 30000", "pie", "codel", "sfq", "fq_pie",
    "netem delay 20ms limit 1000", "netem delay 5ms 2ms duplicate 10% loss 5% limit 1000",
    "tbf rate 2mbit burst 3000 limit 30000", "red limit 100k min 10k max 30k avpkt 1000",
    "prio", "htb", "fq", "cake bandwidth 3mbit", "paqm bandwidth 3mbit",
)
PARENTS = ("drr", "hfsc", "qfq", "tbf-qfq", "htb", "ets", "tbf", "red")
MEDIA, ELASTIC = 1, 2


def counted(wire: Wire, minor: int) -> tuple[int, int]:
    """Packets that a class has sent, and that it has dropped."""
    shown = re.split("^class ", wire.tc("-s class show dev a0"), flags=re.M)
    own = "".join(text for text in shown if text.startswith(f"paqm 1:{minor} "))
    found = re.search(r"Sent \d+ bytes (\d+) pkt.*dropped (\d+),", own)
    assert found, own
    return int(found[1]), int(found[2])


def sent(wire: Wire, minor: int) -> int:
    return counted(wire, minor)[0]


def lengths_agree(wire: Wire) -> bool:
    """Those of classes and qdisc, while traffic runs: the root lock is not held between the reads
    of one dump, so a few packets may move.
    """
    now = wire.stats
    packets = now.qlen - now.media.backlog_packets - now.elastic.backlog_packets
    size = now.backlog - now.media.backlog_bytes - now.elastic.backlog_bytes
    return bool(abs(packets) <= 4 and abs(size) <= 6000)


def both(wire: Wire, seconds: float) -> AbstractContextManager[None]:
    """Load of both classes."""
    return together(
        wire.send("rtp", flows=2, seconds=seconds),
        wire.send("quic", flows=3, port=8000, rate=12e6, size=1400, seconds=seconds))


def datagrams(wire: Wire, count: int, payload: bytes, port: int, *option: int,
              pause: float = 0) -> None:
    def send() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            if option:
                sock.setsockopt(*option)
            for _ in range(count):
                sock.sendto(payload, ("10.1.0.2", port))
                sleep(pause)

    wire.task(send).wait()


def test_nothing_but_the_tests_packets(wire: Wire) -> None:
    wire.queue("paqm bandwidth 8mbit")
    datagrams(wire, 3, bytes(100), 5004, pause=50)  # longer than a neighbour is believed
    within("packets of three in three minutes", wire.stats.packets, 3, 3)


def test_what_tc_shows(wire: Wire) -> None:
    wire.queue("paqm bandwidth 8mbit")
    shown = wire.tc("class show dev a0")
    check("two classes", len(re.findall("^class paqm 1:[12] ", shown, re.M)) == 2, shown)
    with both(wire, 2):
        pass
    sleep(1)
    now = wire.stats
    (media_sent, media_drops), (elastic_sent, elastic_drops) = counted(wire, 1), counted(wire, 2)
    within("packets of both classes are those of the qdisc",
           media_sent + elastic_sent - now.packets, 0, 0)
    within("drops of both classes are those of the qdisc",
           media_drops + elastic_drops - now.drops, 0, 0)
    within("elastic was dropped from", elastic_drops, 1, 1000000)
    for name, why, words in (
        ("no third class", "always there", "class add dev a0 parent 1: classid 1:3 paqm"),
        ("classes cannot be deleted", "not supported", "class del dev a0 classid 1:2"),
        ("media keeps its queue", "media keeps its own queue",
         "qdisc add dev a0 parent 1:1 fq_codel"),
        ("no class 1:3 to graft to", "", "qdisc add dev a0 parent 1:3 fq_codel"),
        ("no class 1:ffff", "", "qdisc add dev a0 parent 1:ffff fq_codel"),
        ("filters go to the qdisc", "parent X:",
         "filter add dev a0 parent 1:1 protocol ip prio 1 matchall classid 1:1"),
    ):
        refused(name, why, wire.tc, words)


def test_a_qdisc_below_takes_nothing_off_the_idle_time(wire: Wire) -> None:
    """The kernel says of one that is changed while it is empty that it is empty."""
    wire.queue("paqm bandwidth 8mbit")
    for words in ("qdisc add dev a0 parent 1:2 handle 20: fq_codel",
                  "qdisc change dev a0 parent 1:2 handle 20: fq_codel limit 500",
                  "qdisc del dev a0 parent 1:2 handle 20:"):
        sleep(3)
        before = wire.stats.idle_ns
        works(words, wire.tc, words)
        within("idle time that it added, ns", wire.stats.idle_ns - before, 0, 1e9)
    within("part of the time that was idle", wire.stats.idle_ns / wire.stats.uptime_ns, 0.99, 1)


@pytest.mark.parametrize("child", CHILDREN)
def test_child(wire: Wire, child: str) -> None:
    name = child.split()[0]
    wire.queue("paqm bandwidth 8mbit")
    works(child, wire.tc, f"qdisc add dev a0 parent 1:2 handle 20: {child}")
    shown = wire.tc("class show dev a0")
    check(f"{name}: shown as the leaf", re.search("^class paqm 1:2 .*leaf 20:", shown, re.M), shown)
    before = wire.b.packets("b0", "rx")
    with both(wire, 3):
        sleep(1.5)
        check(f"{name}: lengths agree under load", lengths_agree(wire))
    sleep(8)
    now, media, elastic = wire.stats, sent(wire, MEDIA), sent(wire, ELASTIC)
    within(f"{name}: nothing left", wire.left(), 0, 0)
    within(f"{name}: what paqm sent has arrived",
           wire.b.packets("b0", "rx") - before - now.packets, 0, 0)
    within(f"{name}: packets of the classes are those of the qdisc",
           media + elastic - now.packets, 0, 0)
    within(f"{name}: elastic went through it", elastic, 300, 100000)
    within(f"{name}: media waits at most, us", now.media.sojourn_max_us, 0, 20000)
    within(f"{name}: no media packet lost",
           now.media.drop_tail_packets + now.media.drop_inner_packets, 0, 0)
    within(f"{name}: the law for T is off", now.elastic.drop_inner_packets, 0, 0)


def test_byte_split_is_kept_with_a_child(wire: Wire) -> None:
    wire.queue("paqm bandwidth 20mbit nopolice")
    wire.tc("qdisc add dev a0 parent 1:2 handle 20: fq_codel")
    with together(wire.send("rtp", flows=10, rate=30e6, size=300, seconds=8),
                  wire.send("quic", flows=10, port=8000, rate=30e6, size=1400, seconds=8)):
        sleep(3)
        before = wire.stats
        sleep(4)
        after = wire.stats
        media = after.media.sent_bytes - before.media.sent_bytes
        elastic = after.elastic.sent_bytes - before.elastic.sent_bytes
        within("media share of the bytes, per cent", 100 * media / (media + elastic), 48, 52)
        within("shaper exact with a child, per mille", (media + elastic) * 8 / 4 / 20e3, 990, 1010)


def test_a_child_that_holds_packets_back(wire: Wire) -> None:
    """It leaves no credit for a burst above the bandwidth."""
    wire.queue("paqm bandwidth 1mbit")
    wire.tc("qdisc add dev a0 parent 1:2 handle 20: netem delay 500ms limit 1000")
    before = wire.stats.elastic.sent_bytes
    with wire.send("quic", port=8000, rate=100e6, burst=60, seconds=0.2):
        sleep(0.9)
        within("sent 400 ms after the first could leave, bytes",
               wire.stats.elastic.sent_bytes - before, 40000, 56000)


def test_how_long_the_elastic_class_is_counted(wire: Wire) -> None:
    """For a quarter of a second after its last packet."""
    wire.queue("paqm bandwidth 10mbit")
    with wire.send("rtp", port=9000, rate=2e6, seconds=5):
        sleep(1)
        wire.send("quic", port=8000, rate=6e6, seconds=2).wait()
        sleep(0.2)
        within("flows of an elastic class silent for 0.2 s", wire.stats.elastic.flows, 1, 1)
        sleep(0.1)
        now = wire.stats
        within("the same after 0.3 s", now.elastic.flows, 0, 0)
        wire.send("quic", port=8000, rate=6e6, seconds=0.1).wait()
        again = wire.stats
        within("flows of one that is back for 0.1 s", again.elastic.flows, 1, 1)
        rounds = again.event_split_rounds - now.event_split_rounds
        within("event rounds by its return", rounds, 1, 2)


def test_the_child_changes_and_goes_while_it_is_full(wire: Wire) -> None:
    wire.queue("paqm bandwidth 2mbit")
    agreed = 0
    with both(wire, 12):
        sleep(1)
        for turn in range(1, 11):
            wire.tc("qdisc add dev a0 parent 1:2 handle 20: fq_codel")
            sleep(0.2)
            wire.tc("qdisc change dev a0 parent 1:2 handle 20: fq_codel limit 5")
            agreed += lengths_agree(wire)
            sleep(0.1)
            wire.tc("qdisc replace dev a0 parent 1:2 handle 21: pfifo limit 100")
            sleep(0.2)
            agreed += lengths_agree(wire)
            wire.tc("qdisc replace dev a0 parent 1:2 handle 22: netem delay 50ms")
            sleep(0.2)
            wire.tc(f"qdisc change dev a0 root handle 1: paqm bandwidth {1 + turn % 3}mbit")
            wire.tc("-s class show dev a0")
            wire.tc("qdisc del dev a0 parent 1:2")
            agreed += lengths_agree(wire)
            sleep(0.2)
        within("turns of add, change, replace, delete under traffic", agreed / 3, 10, 10)
    sleep(8)
    within("nothing left after grafting", wire.left(), 0, 0)
    within("discarded packets are counted as drops", counted(wire, ELASTIC)[1], 1, 1000000)
    wire.tc("qdisc add dev a0 parent 1:2 handle 20: fq_codel")
    with both(wire, 0.5):
        sleep(0.3)
        wire.down()
        within("device down: nothing waits", wire.left(), 0, 0)
        wire.up()
    works("root deleted with a full child", wire.tc, "qdisc del dev a0 root")


def steered(wire: Wire, name: str, kind: str, port: int, where: str) -> None:
    """50 packets reach media, elastic or neither. Now and then one send fails because the peer has
    no such port.
    """
    before = sent(wire, MEDIA), sent(wire, ELASTIC)
    wire.send(kind, port=port, rate=800e3, seconds=0.5).wait()
    sleep(0.1)
    media, elastic = sent(wire, MEDIA) - before[0], sent(wire, ELASTIC) - before[1]
    good = {
        "media": media >= 45 and elastic <= 2,
        "elastic": elastic >= 45 and media <= 2,
        "none": media + elastic <= 2,
    }
    check(name, good[where], f"media {media}, elastic {elastic}")


def test_filters(wire: Wire) -> None:
    wire.queue("paqm bandwidth 8mbit")
    for prio, (port, verdict) in enumerate((
        (9000, "classid 1:1"), (5004, "classid 1:2"), (9001, "action drop"), (9002, "action trap"),
        (9003, "action mirred egress redirect dev lo"),
        (9004, "action skbedit priority 1:1 pipe action continue"), (9005, "classid 1:7"),
        (9006, "classid 1:2 action pass"),
    ), 1):
        wire.tc(f"filter add dev a0 parent 1: protocol ip prio {prio} "
                f"flower ip_proto udp dst_port {port} {verdict}")
    steered(wire, "QUIC to media by filter", "quic", 9000, "media")
    steered(wire, "RTP to elastic by filter", "rtp", 5004, "elastic")
    steered(wire, "other RTP is recognised", "rtp", 5006, "media")
    steered(wire, "dropped by a filter", "rtp", 9001, "none")
    now = wire.stats
    within("and counted", now.filter_drop_packets, 45, 50)
    within("as drops of the qdisc", now.drops - now.filter_drop_packets, 0, 0)
    steered(wire, "trapped", "rtp", 9002, "none")
    steered(wire, "redirected", "rtp", 9003, "none")
    now = wire.stats
    within("both counted as taken", now.filter_taken_packets, 90, 100)
    within("and not as drops", now.drops - now.filter_drop_packets, 0, 0)
    steered(wire, "a class that is not there: the recogniser decides", "quic", 9005, "elastic")
    steered(wire, "action pass keeps the class", "rtp", 9006, "elastic")
    sleep(3)
    wire.send("rtp", rate=4e6, seconds=1.5).wait()
    within("a steered RTP flow is no media flow", wire.stats.media.flows, 0, 0)
    within("but an elastic one", wire.stats.elastic.flows, 1, 1)
    wire.send("quic", port=9000, seconds=1.5).wait()
    within("a steered QUIC flow is a media flow", wire.stats.media.flows, 1, 1)
    works("filters can go", wire.tc, "filter del dev a0 parent 1:")
    steered(wire, "RTP is media again", "rtp", 5004, "media")
    with wire.send("rtp", rate=4e6, seconds=4):
        sleep(1)
        within("a living flow is a media flow", wire.stats.media.flows, 1, 1)
        wire.tc("filter add dev a0 parent 1: protocol ip prio 1 flower ip_proto udp dst_port 5004 "
                "classid 1:2")
        sleep(2.5)
        within("a filter moves it out of media", wire.stats.media.flows, 0, 0)
        within("into elastic", wire.stats.elastic.flows, 1, 1)
    wire.tc("filter del dev a0 parent 1:")
    before = sent(wire, ELASTIC)
    datagrams(wire, 20, b"\x80\x60" + bytes(100), 5004,
              socket.SOL_SOCKET, socket.SO_PRIORITY, 0x10002)  # which is 1:2
    sleep(0.2)
    within("a priority of 1:2 is elastic", sent(wire, ELASTIC) - before, 20, 20)
    wire.tc("filter add dev a0 parent 1: protocol all prio 1 matchall action drop")
    wire.offloads("on")
    with pytest.raises(TimeoutError):
        wire.task(socket.create_connection, ("10.1.0.2", 5201), 5).wait()
    check("nothing passes a filter that drops all", wire.left() == 0)
    wire.tc("filter del dev a0 parent 1:")
    transfer(wire, wire.b, 2)
    wire.offloads("off")
    works("root deleted with filters", wire.tc, "qdisc del dev a0 root")


@pytest.mark.parametrize("child", ["fq_codel", "codel",
                                   "netem delay 3ms duplicate 20% loss 10% limit 100"])
@pytest.mark.parametrize("parent", PARENTS)
def test_below_and_above(wire: Wire, parent: str, child: str) -> None:
    """A parent above, a qdisc below, a packet peeked at by tbf-like parents."""
    if parent == "qfq" and not qfq_holds():
        skip("qfq / paqm", "this kernel's qfq reports a fault when a leaf holds packets back")
        return
    wire.parent(parent, "4mbit")
    shaper, later = "bandwidth 4mbit", "bandwidth 3mbit"
    if parent == "tbf-qfq":  # nothing below qfq holds packets back
        shaper, later, child = "", "", child.replace("delay 3ms ", "")
    where = f"{parent} / paqm / {child.split()[0]}"
    works(where, wire.tc, f"qdisc add dev a0 parent 1:1 handle 10: paqm {shaper}")
    add = "qdisc add dev a0 parent 10:2 handle 20: "
    if child.startswith("netem"):
        try:
            wire.tc(add + child)
        except CommandFailed:  # some kernels refuse to duplicate below a classful qdisc
            works(f"{where} without duplicates", wire.tc, add + child.replace("duplicate 20% ", ""))
    else:
        works(f"{where}: child", wire.tc, add + child)
    before = wire.b.packets("b0", "rx")
    with both(wire, 2):
        sleep(1)
        wire.ip("link set a0 mtu 500")  # codel empties itself while its parent peeks
        sleep(0.3)
        wire.ip("link set a0 mtu 1500")
        wire.tc(f"qdisc change dev a0 parent 1:1 handle 10: paqm {later} limit 20000")
    sleep(6)
    within(f"{where}: nothing left", wire.left(), 0, 0)
    within(f"{where}: something arrived", wire.b.packets("b0", "rx") - before, 300, 100000)


def test_budget_of_requests_and_control(wire: Wire) -> None:
    """On a slow link, requests of DNS, 542 bytes each."""
    wire.queue("paqm bandwidth 400kbit")

    def requests(count: int) -> None:
        datagrams(wire, count, bytes(500), 53)
        sleep(3)

    requests(1)
    before = sent(wire, ELASTIC)
    requests(5)
    within("a few together ride with media", wire.stats.small_packets, 6, 6)
    within("none of them is elastic", sent(wire, ELASTIC) - before, 0, 0)
    requests(40)
    within("many together go over it", wire.stats.small_over_packets, 34, 34)
    within("and are elastic", sum(counted(wire, ELASTIC)) - before, 34, 34)


def test_classifier_in_bpf(wire: Wire) -> None:
    """The example, loaded by tc."""
    program = Path(os.environ["PAQM_BUILD"]) / "userspace" / "tc-paqm" / "bpf" / "media.bpf.o"
    if not program.exists():
        skip("BPF classifier", f"{program} was not built (needs clang and libbpf-dev)")
        return
    wire.queue("paqm bandwidth 8mbit")
    works("tc loads it", wire.tc,
          f"filter add dev a0 parent 1: protocol all prio 1 bpf obj {program}")
    steered(wire, "no rule: QUIC stays elastic", "quic", 9000, "elastic")
    steered(wire, "no rule: RTP stays media", "rtp", 5004, "media")
    for name, minor, dscp, head in (
        ("QUIC marked EF is media", MEDIA, 46, "43000000"),
        ("RTP marked LE is elastic", ELASTIC, 1, "80600000"),
    ):
        before = sent(wire, minor)
        datagrams(wire, 20, bytes.fromhex(head) + bytes(100), 6000,
                  socket.SOL_IP, socket.IP_TOS, dscp << 2)
        sleep(0.2)
        within(name, sent(wire, minor) - before, 20, 20)
    if shutil.which("bpftool"):
        for rule, key, value, name, kind, port, where in (
            ("a port becomes media", "0x23 0x28", 1,
             "rule by destination port: QUIC is media", "quic", 9000, "media"),
            ("a port becomes elastic", "0x13 0x8c", 2,
             "rule by destination port: RTP is elastic", "rtp", 5004, "elastic"),
            ("a rule with a class that is not there", "0x13 0x8c", 9,
             "leaves it to the recogniser", "rtp", 5004, "media"),
        ):
            words = f"bpftool map update name paqm_ports key {key} value {value} 0 0 0"
            works(rule, run, *words.split())
            steered(wire, name, kind, port, where)
    else:
        skip("BPF rules by port", "bpftool is not installed")
    wire.tc("filter del dev a0 parent 1:")
    steered(wire, "without it all is as before", "quic", 9000, "elastic")


def test_packets_of_several_segments(dummy: Wire) -> None:
    """All taken by a child's filter; and such as cannot be cut."""
    send = (TC_TESTS / "send.py", "d0", *"--kind tcp --size 14054 --gso 1400".split())
    # A verdict that the child sees, for a packet that it took, is no drop for the parent.
    for words in (
        "qdisc add dev d0 root handle 1: htb default 1",
        "class add dev d0 parent 1: classid 1:1 htb rate 100mbit",
        "qdisc add dev d0 parent 1:1 handle 10: paqm bandwidth 8mbit",
        "qdisc add dev d0 parent 10:2 handle 20: prio",
        "filter add dev d0 parent 20: protocol all prio 1 matchall action mirred egress redirect "
        "dev d1",
    ):
        dummy.tc(words)
    dummy.run(*send)
    within("segments that a child took", dummy.packets("d1", "tx"), 10, 10)
    within("drops that the parent counted",
           sum(q.drops for q in dummy.qdiscs("d0") if q.handle == "1:"), 0, 0)
    dummy.tc("qdisc del dev d0 root")
    dummy.tc("qdisc add dev d0 root handle 1: paqm bandwidth 8mbit")
    dummy.run(*send, "--options", -1)
    now = dummy.paqm("d0")
    within("drops of the elastic class", now.elastic.drop_tail_packets, 1, 1)
    within("drops of the qdisc", now.drops, 1, 1)
