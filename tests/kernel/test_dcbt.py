# SPDX-License-Identifier: GPL-2.0
"""sch_dcbt as a whole: classes and flows, all modes under all kinds of parents, accounts, changes
under traffic, segmentation, ECN, ChIPS, what each law does to a flood.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from itertools import cycle
from time import sleep
from typing import Any

import pytest

from checks import check, refused, skip, within, works
from guest import TC_TESTS, Wire, qfq_holds
from paqm_lab.topology import run
from traffic import transfer

MODES = ("red", "fred", "cbt", "cbt-tcp", "dcbt")
CLASSES = ("tcp", "tagged", "untagged")
DROPS = ("drop_early", "drop_forced", "drop_limit", "drop_threshold", "drop_flow")
TAG = 3 << 2  # TOS byte
# What does not hold packets back itself is put below tbf.
PARENTS = ("tbf", "htb", "hfsc", "tbf-drr", "tbf-prio", "tbf-qfq", "tbf-ets", "tbf-red")


def stats(wire: Wire) -> Any:
    return wire.paqm("a0", kind="dcbt")


def drops(part: Any) -> int:
    return sum(getattr(part, key) for key in DROPS)


def conserved(wire: Wire) -> str:
    """What contradicts that whatever arrived was sent, dropped or waits; "": nothing."""
    now = stats(wire)
    for name in CLASSES:
        part = getattr(now, name)
        left = part.arrived_packets - part.sent_packets - drops(part) - part.backlog_packets
        if left:
            return f"{name}: {left} packets are missing"
    parts = [getattr(now, name) for name in CLASSES]
    if now.drops != sum(map(drops, parts)):
        return f"{now.drops} drops, of classes {sum(map(drops, parts))}"
    if not 0 <= now.qlen - sum(part.backlog_packets for part in parts) <= 1:  # one looked at
        return f"{now.qlen} packets wait, of classes {[p.backlog_packets for p in parts]}"
    return ""


def shaped(wire: Wire, words: str, rate: str = "5mbit") -> None:
    """A new queue in a class of that rate."""
    wire.clear()
    wire.parent("htb", rate)
    wire.tc(f"qdisc add dev a0 parent 1:1 handle 10: dcbt {words}")


def test_options(wire: Wire) -> None:
    wire.queue("dcbt mode cbt limit 100 min 15 max 30.5 tagged-threshold 10 chips tag EF,3")
    options = vars(stats(wire).options)
    for key, value in (("mode", "cbt"), ("limit_packets", 100), ("max_packets", 30.5),
                       ("tagged_packets", 10), ("chips", True), ("tag", [3, 46])):
        check(f"{key} is shown", options[key] == value, options[key])
    before = wire.run(TC_TESTS / "rtnl.py", "show", "a0", "--kind", "dcbt")
    works("what is shown can be given", wire.run, TC_TESTS / "rtnl.py", "replay", "a0", "--handle",
          "1:", "--kind", "dcbt")
    check("and is the same", before == wire.run(TC_TESTS / "rtnl.py", "show", "a0", "--kind",
                                                "dcbt"))  # fmt: skip
    change = (wire.tc, "qdisc change dev a0 root handle 1: dcbt")
    for words, said in (("min 31", "min must be below max"), ("max 15", "min must be below max")):
        refused(words, said, change[0], f"{change[1]} {words}")
    refused("limit of 0, past tc", "limit must be 1..16384", wire.run, TC_TESTS / "rtnl.py",
            "change", "a0", "--handle", "1:", "--kind", "dcbt", "limit=0")
    check("a refusal changes nothing", vars(stats(wire).options) == options)


def test_classes_and_flows(wire: Wire) -> None:
    """Of flows that fall silent none counts after two sweeps; who loses everything does."""
    shaped(wire, "mode dcbt", "20mbit")
    with (wire.send("plain", flows=10, rate=1e6, seconds=3, tos=TAG),
          wire.send("plain", flows=2, port=7000, rate=0.2e6, seconds=3, tos=TAG | 2),
          wire.send("plain", flows=5, port=8000, rate=0.5e6, seconds=3, tos=46 << 2)):
        sleep(2)
        now = stats(wire)
        within("tagged flows, whatever their ECN bits", now.tagged.flows, 12, 12)
        within("other UDP", now.untagged.flows, 5, 5)
        within("TCP", now.tcp.flows, 0, 0)
    wire.send("plain", rate=0.1e6, seconds=1, port=8000).wait()
    now = stats(wire)
    within("the silent are gone", now.tagged.flows + now.untagged.flows, 1, 1)
    check("all is accounted for", not conserved(wire), conserved(wire))
    transfer(wire, wire.b, 1)
    within("TCP packets", stats(wire).tcp.sent_packets, 100, 10**6)
    within("none of other classes", stats(wire).tcp.flows, 1, 1)


@pytest.mark.parametrize("parent", PARENTS)
@pytest.mark.parametrize("chips", ["", " chips"])
def test_parent(wire: Wire, parent: str, chips: str) -> None:
    """In every mode: nothing is left behind, all counters agree, also for a short queue."""
    if "qfq" in parent and not qfq_holds():
        skip("leaf of qfq", "this kernel's qfq reports a fault when a leaf holds packets back")
        return
    for mode, limit in zip(MODES, cycle((60, 1, 8)), strict=False):
        wire.clear()
        wire.parent(parent)
        wire.tc(f"qdisc add dev a0 parent 1:1 handle 10: dcbt mode {mode} limit {limit}{chips}")
        name = f"{mode}{chips} limit {limit} under {parent}"
        with (wire.send("plain", flows=3, rate=4e6, seconds=2, tos=TAG),
              wire.send("plain", port=7000, rate=4e6, seconds=2),
              wire.send("plain", port=8000, rate=1e6, size=300, burst=20, seconds=2)):
            sleep(1)
            check(f"{name}: under load", not conserved(wire), conserved(wire))
        sleep(1)
        within(f"{name}: nothing left", wire.left(), 0, 0)
        check(f"{name}: conserved", not conserved(wire), conserved(wire))
        within(f"{name}: dropped some", stats(wire).drops, 50, 10**6)
        works(f"{name}: can be taken away", wire.tc, "qdisc del dev a0 parent 1:1 handle 10:")


@pytest.mark.parametrize("parent", ["tbf", "htb", "tbf-drr"])
def test_changes_under_traffic(wire: Wire, parent: str) -> None:
    """Modes, limits, ChIPS and tables change while packets wait, one perhaps looked at."""
    wire.parent(parent)
    wire.tc("qdisc add dev a0 parent 1:1 handle 10: dcbt limit 16384 min 9000 max 16000")
    with (wire.send("plain", flows=20, rate=6e6, seconds=12, tos=TAG),
          wire.send("plain", flows=20, port=7000, rate=6e6, seconds=12)):
        sleep(2)
        within("many wait", stats(wire).qlen, 500, 16384)
        for i in range(30):
            mode, limit = MODES[i % 5], (16384, 100, 7, 1000)[i % 4]
            wire.tc(f"qdisc change dev a0 parent 1:1 handle 10: dcbt mode {mode} limit {limit} "
                    f"flows {(16, 65536, 33)[i % 3]} {'chips' if i & 2 else 'nochips'} "
                    f"flow-key {('tuple', 'hosts')[i & 1]} tag {('none', '3', '0,3')[i % 3]} "
                    f"{('min 5 max 15', 'min 0 max 16000')[i & 1]}")  # fmt: skip
            within(f"{i}: the limit holds at once", stats(wire).qlen, 0, limit + 1)
            check(f"{i}: conserved", not conserved(wire), conserved(wire))
            sleep(0.3)
    sleep(2)
    wire.tc("qdisc change dev a0 parent 1:1 handle 10: dcbt limit 1")
    sleep(1)
    within("nothing left", wire.left(), 0, 0)
    check("all is accounted for", not conserved(wire), conserved(wire))


def test_down_and_up(wire: Wire) -> None:
    """What waits goes with the device; counters of what waits are 0, and it works again."""
    for mode in MODES:
        shaped(wire, f"mode {mode} limit 1000 min 400 max 900 untagged-threshold 900 chips",
               "1mbit")  # fmt: skip
        wire.send("plain", flows=5, rate=4e6, seconds=1).wait()
        within(f"{mode}: packets wait", stats(wire).qlen, 5, 1000)
        wire.down()
        now = stats(wire)
        within(f"{mode}: none waits", now.qlen + now.backlog + now.untagged.backlog_packets
               + now.untagged.backlog_bytes, 0, 0)  # fmt: skip
        wire.up()
        sent = now.untagged.sent_packets
        wire.send("plain", flows=5, rate=0.5e6, seconds=1).wait()
        within(f"{mode}: works", stats(wire).untagged.sent_packets - sent, 50, 100)
        sleep(1)
        within(f"{mode}: nothing left", wire.left(), 0, 0)


def test_gso(wire: Wire) -> None:
    """Large packets are cut, each segment is a packet, and parents' counts stay right."""
    wire.offloads("on")
    for parent in ("htb", "tbf-drr", "tbf-qfq" if qfq_holds() else "tbf-prio"):
        for limit in (60, 3):
            wire.clear()
            wire.parent(parent, "20mbit")
            wire.tc(f"qdisc add dev a0 parent 1:1 handle 10: dcbt mode red limit {limit}")
            transfer(wire, wire.b, 3)
            sleep(1)
            part = stats(wire).tcp
            within(f"{parent}, limit {limit}: mean bytes", part.sent_bytes / part.sent_packets,
                   60, 1514)  # fmt: skip
            within(f"{parent}, limit {limit}: drops", drops(part), 1, 10**6)
            within(f"{parent}, limit {limit}: left", wire.left(), 0, 0)
            check(f"{parent}, limit {limit}: conserved", not conserved(wire), conserved(wire))
    wire.offloads("off")


def test_ecn(wire: Wire) -> None:
    for host in (wire, wire.b):
        host.sysctl(ipv4__tcp_ecn=1)
    for words in ("ecn", "noecn"):
        shaped(wire, f"mode red gentle {words}")
        transfer(wire, wire.b, 90, 3)
        part = stats(wire).tcp
        check(f"{words}: marks", (part.ecn_mark > 5) == (words == "ecn"), part.ecn_mark)
        check(f"{words}: early drops", (part.drop_early > 5) == (words == "noecn"),
              part.drop_early)  # fmt: skip
    for host in (wire, wire.b):
        host.sysctl(ipv4__tcp_ecn=2)


def mean(wire: Wire, key: str, seconds: int) -> float:
    found: list[float] = []
    for _ in range(seconds * 10):
        sleep(0.1)
        found.append(getattr(stats(wire), key))
    return sum(found) / len(found)


def test_adaptive_red_finds_the_probability(wire: Wire) -> None:
    """Of one that is far too low, for ten flows; the average then is within its range."""
    for words, low, high in (("noadaptive max-p 0.001", 12.5, 60), ("adaptive max-p 0.001", 7, 13)):
        shaped(wire, f"mode red gentle limit 300 {words}")
        with ExitStack() as flows:
            for port in range(6):
                flows.enter_context(wire.send("plain", port=7000 + port, rate=0.8e6 + 3e4 * port,
                                              seconds=60))  # fmt: skip
            transfer(wire, wire.b, 1)
            sleep(40)
            within(f"{words}: average of the queue", mean(wire, "average_packets", 10), low, high)


def test_a_flood(wire: Wire) -> None:
    """Nine TCP flows beside a flood as fast as the link, of 5 Mbit/s: RED gives it most, FRED and
    the thresholds hold it. A fair share is 0.5 Mbit/s. With D-CBT its part of the average is its
    part of the link, as all averages are updated together.
    """
    wire.b.tc("qdisc add dev b0 root netem delay 20ms limit 10000")
    got, parts = {}, {}
    for mode in MODES:
        shaped(wire, f"mode {mode}")
        with (wire.task(transfer, wire, wire.b, 35, 9),
              wire.send("plain", port=9000, rate=5e6, size=1458, seconds=35)):
            sleep(5)
            before, averages = stats(wire), {"tcp": 0.0, "untagged": 0.0}
            for _ in range(290):
                sleep(0.1)
                now = stats(wire)
                for name in averages:
                    averages[name] += getattr(now, name).average_packets
        bits, packets = (
            {name: getattr(getattr(now, name), key) - getattr(getattr(before, name), key)
             for name in averages} for key in ("sent_bytes", "sent_packets")
        )  # fmt: skip
        got[mode] = 8 * bits["untagged"] / 29e6
        if averages["tcp"]:
            parts[mode] = (averages["untagged"] / sum(averages.values()) /
                           (packets["untagged"] / sum(packets.values())))  # fmt: skip
        check(f"{mode}: conserved", not conserved(wire), conserved(wire))
        within(f"{mode}: the link is in use, Mbit/s", 8 * sum(bits.values()) / 29e6, 4.5, 5.1)
    wire.b.tc("qdisc del dev b0 root")
    # of dcbt: 0.6 packets of an average between 5 and 20
    for mode, low, high in (("red", 2.5, 5), ("fred", 0.2, 1.2), ("cbt", 0.1, 0.75),
                            ("cbt-tcp", 0.1, 0.75), ("dcbt", 0.15, 0.6)):  # fmt: skip
        within(f"{mode}: Mbit/s of the flood", got[mode], low, high)
    within("dcbt: part of the average by part of the link", parts["dcbt"], 0.9, 1.1)
    within("dcbt: dropped by its threshold", now.untagged.drop_threshold, 2000, 10**5)
    within("dcbt: of TCP none", now.tcp.drop_threshold, 0, 0)


def test_chips(wire: Wire) -> None:
    """A tagged stream in the bursts of others waits less, and in order; nobody loses by it."""
    waits = {}
    for words in ("nochips", "chips"):
        shaped(wire, f"mode dcbt {words}", "10mbit")
        with (wire.send("plain", rate=0.6e6, seconds=20, tos=TAG),
              wire.send("plain", flows=3, port=7000, rate=2.4e6, burst=10, seconds=20)):
            transfer(wire, wire.b, 19)
        now = stats(wire)
        waits[words] = now.tagged.sojourn_p99_us
        within(f"{words}: cut in", now.tagged.cut_in,
               *((50, 10**5) if words == "chips" else (0, 0)))  # fmt: skip
        check(f"{words}: conserved", not conserved(wire), conserved(wire))
    within("p99 of the tagged, per cent of that without", 100 * waits["chips"] / waits["nochips"],
           0, 80)  # fmt: skip


def test_unload(wire: Wire) -> None:
    wire.queue("dcbt mode fred")
    refused("in use", "in use", run, "rmmod", "sch_dcbt")
    wire.clear()
    works("unload", run, "rmmod", "sch_dcbt")
    refused("not there", "unknown", wire.tc, "qdisc add dev a0 root dcbt")
    works("load", run, "insmod", f"{os.environ['PAQM_KO_DIR']}/sch_dcbt.ko")
    for _ in range(50):
        wire.queue("dcbt limit 16384 flows 65536 chips")
        with wire.send("plain", rate=1e6, seconds=0.05):
            pass
    wire.clear()

