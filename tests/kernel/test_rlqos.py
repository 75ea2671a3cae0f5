# SPDX-License-Identifier: GPL-2.0
"""sch_rlqos as a whole: all kinds of parents, accounts, changes under traffic, segmentation, what
thinning does to an overload, frames, the classes' turns, what a neighbour says.
"""

from __future__ import annotations

import os
from itertools import cycle
from time import sleep
from typing import Any

import pytest

from checks import check, refused, skip, within, works
from guest import TC_TESTS, Wire, qfq_holds
from paqm_lab.topology import run
from traffic import transfer

CLASSES = ("tc1", "tc2", "tc3")
EF, AF41 = 46 << 2, 34 << 2  # TOS bytes
# What does not hold packets back itself is put below tbf.
PARENTS = ("tbf", "htb", "hfsc", "tbf-drr", "tbf-prio", "tbf-qfq", "tbf-ets", "tbf-red")


def stats(wire: Wire) -> Any:
    return wire.paqm("a0", kind="rlqos")


def conserved(wire: Wire) -> str:
    """What contradicts that whatever arrived was sent, dropped or waits; "": nothing."""
    now = stats(wire)
    parts = [getattr(now, name) for name in CLASSES]
    for name, part in zip(CLASSES, parts, strict=True):
        left = part.arrived_packets - part.sent_packets - part.backlog_packets
        if left != part.drop_thin + part.drop_limit:
            return f"{name}: {left} packets are gone, not {part.drop_thin} + {part.drop_limit}"
    if now.drops != sum(part.drop_thin + part.drop_limit for part in parts):
        return f"{now.drops} drops, of classes {parts}"
    if not 0 <= now.qlen - sum(part.backlog_packets for part in parts) <= 1:  # one looked at
        return f"{now.qlen} packets wait, of classes {[p.backlog_packets for p in parts]}"
    return ""


def shaped(wire: Wire, words: str, rate: str = "5mbit") -> None:
    """A new queue in a class of that rate."""
    wire.clear()
    wire.parent("htb", rate)
    wire.tc(f"qdisc add dev a0 parent 1:1 handle 10: rlqos {words}")


def test_options(wire: Wire) -> None:
    wire.queue("rlqos limit 100 k1 80 transit 7 tc2 AF41,3 noframes down-share 50%")
    options = vars(stats(wire).options)
    for key, value in (("limit_packets", 100), ("k1_packets", 80), ("transit_mark", 7),
                       ("tc2", [3, 34]), ("frames", False), ("down_share", 0.5)):
        check(f"{key} is shown", options[key] == value, options[key])
    before = wire.run(TC_TESTS / "rtnl.py", "show", "a0", "--kind", "rlqos")
    works("what is shown can be given", wire.run, TC_TESTS / "rtnl.py", "replay", "a0", "--handle",
          "1:", "--kind", "rlqos")
    check("and is the same", before == wire.run(TC_TESTS / "rtnl.py", "show", "a0", "--kind",
                                                "rlqos"))  # fmt: skip
    refused("limit of 0, past tc", "limit must be 1..8192", wire.run, TC_TESTS / "rtnl.py",
            "change", "a0", "--handle", "1:", "--kind", "rlqos", "limit=0")
    refused("a DSCP of both", "no DSCP in common", wire.tc,
            "qdisc change dev a0 root handle 1: rlqos tc1 AF41")
    check("a refusal changes nothing", vars(stats(wire).options) == options)


@pytest.mark.parametrize("parent", PARENTS)
def test_parent(wire: Wire, parent: str) -> None:
    """Nothing is left behind, all counters agree, also for a short queue."""
    if "qfq" in parent and not qfq_holds():
        skip("leaf of qfq", "this kernel's qfq reports a fault when a leaf holds packets back")
        return
    for words, limit in zip(("", "noframes", "k1 1", "k3 1"), cycle((200, 1, 8)), strict=False):
        wire.clear()
        wire.parent(parent)
        wire.tc(f"qdisc add dev a0 parent 1:1 handle 10: rlqos limit {limit} other-limit {limit} "
                f"{words}")  # fmt: skip
        name = f"limit {limit} {words} under {parent}"
        with (wire.send("rtp", flows=3, rate=4e6, seconds=2),
              wire.send("plain", port=7000, rate=4e6, seconds=2),
              wire.send("plain", port=9000, rate=1e6, seconds=2, tos=EF),
              wire.send("rtp", port=8000, rate=1e6, size=300, burst=20, seconds=2)):
            sleep(1)
            check(f"{name}: under load", not conserved(wire), conserved(wire))
        sleep(1)
        within(f"{name}: nothing left", wire.left(), 0, 0)
        check(f"{name}: conserved", not conserved(wire), conserved(wire))
        within(f"{name}: dropped some", stats(wire).drops, 50, 10**6)
        works(f"{name}: can be taken away", wire.tc, "qdisc del dev a0 parent 1:1 handle 10:")


@pytest.mark.parametrize("parent", ["tbf", "htb", "tbf-drr"])
def test_changes_under_traffic(wire: Wire, parent: str) -> None:
    """Limits, samples and marks change while packets wait, one perhaps looked at."""
    wire.parent(parent)
    wire.tc("qdisc add dev a0 parent 1:1 handle 10: rlqos limit 8192 other-limit 8192 k3 1")
    with (wire.send("rtp", flows=20, rate=6e6, seconds=12),
          wire.send("plain", flows=20, port=7000, rate=6e6, seconds=12)):
        sleep(2)
        within("many wait", stats(wire).qlen, 500, 16384)
        for i in range(30):
            limit = (8192, 100, 7, 1000)[i % 4]
            wire.tc(f"qdisc change dev a0 parent 1:1 handle 10: rlqos limit {limit} "
                    f"other-limit {limit} {('frames', 'noframes')[i & 1]} "
                    f"interval {('1ms', '100us', '1s')[i % 3]} samples {(5, 1, 1000)[i % 3]} "
                    f"transit {('none', 3)[i & 1]} k3 {(1, 0.02)[i & 1]}")  # fmt: skip
            within(f"{i}: the limit holds at once", stats(wire).qlen, 0, 2 * limit + 1)
            check(f"{i}: conserved", not conserved(wire), conserved(wire))
            sleep(0.3)
    sleep(2)
    wire.tc("qdisc change dev a0 parent 1:1 handle 10: rlqos limit 1 other-limit 1")
    sleep(1)
    within("nothing left", wire.left(), 0, 0)
    check("all is accounted for", not conserved(wire), conserved(wire))


def test_down_and_up(wire: Wire) -> None:
    """What waits goes with the device; counters of what waits are 0, and it works again."""
    shaped(wire, "limit 1000 k3 1", "1mbit")
    wire.send("rtp", flows=5, rate=4e6, seconds=1).wait()
    within("packets wait", stats(wire).qlen, 5, 1000)
    wire.down()
    now = stats(wire)
    within("none waits", now.qlen + now.backlog + now.tc2.backlog_packets + now.tc2.backlog_bytes,
           0, 0)  # fmt: skip
    wire.up()
    sent = now.tc2.sent_packets
    wire.send("rtp", flows=5, rate=0.5e6, seconds=1).wait()
    within("works", stats(wire).tc2.sent_packets - sent, 50, 100)
    sleep(1)
    within("nothing left", wire.left(), 0, 0)


def test_gso(wire: Wire) -> None:
    """Large packets are cut, each segment is a packet, and parents' counts stay right."""
    wire.offloads("on")
    for parent in ("htb", "tbf-drr", "tbf-qfq" if qfq_holds() else "tbf-prio"):
        for limit in (60, 3):
            wire.clear()
            wire.parent(parent, "20mbit")
            wire.tc(f"qdisc add dev a0 parent 1:1 handle 10: rlqos other-limit {limit}")
            # a single one may be held to fewer packets by its own kernel (TCP small queues)
            transfer(wire, wire.b, 3, flows=3)
            sleep(1)
            part = stats(wire).tc3
            within(f"{parent}, limit {limit}: mean bytes", part.sent_bytes / part.sent_packets,
                   60, 1514)  # fmt: skip
            within(f"{parent}, limit {limit}: drops", part.drop_limit, 1, 10**6)
            within(f"{parent}, limit {limit}: left", wire.left(), 0, 0)
            check(f"{parent}, limit {limit}: conserved", not conserved(wire), conserved(wire))
    wire.offloads("off")


def test_overload(wire: Wire) -> None:
    """Half as much again as the link takes: a third is thinned, none is dropped at the end of the
    queue, the link is full. The load is the mean and its growth by k1, the probability follows.
    """
    shaped(wire, "limit 200 tc2 AF41", "12mbit")
    with wire.send("plain", flows=10, rate=18e6, size=1458, seconds=12, tos=AF41):
        sleep(2)
        before = stats(wire)
        sleep(9)
        now = stats(wire)
    got, gone = (getattr(now.tc2, key) - getattr(before.tc2, key)
                 for key in ("sent_bytes", "drop_thin"))  # fmt: skip
    came = now.tc2.entered_packets - before.tc2.entered_packets
    within("of the link is used, %", 100 * 8 * got / 9 / 12e6, 98, 100.5)
    within("is thinned, %", 100 * gone / came, 30, 36)
    within("dropped at the end", now.tc2.drop_limit, 0, 0)
    # 1 - exp(-m / 350) = 1/3 where m = 142
    within("packets wait", now.mean_packets, 110, 170)
    within("load", now.load, 0.3, 0.5)
    within("probability", now.probability, 0.27, 0.4)
    sleep(1)
    now = stats(wire)
    check("an idle queue has no load, though nothing comes", now.load == now.probability == 0, now)


def test_transit_is_not_thinned(wire: Wire) -> None:
    """With a mark of transit only other packets are."""
    wire.tc("qdisc add dev a0 clsact")
    try:
        shaped(wire, "limit 20 tc2 AF41 transit 1")
        wire.tc("filter add dev a0 egress protocol ip u32 match ip dport 7000 0xffff "
                "action skbedit mark 1")  # fmt: skip
        with (wire.send("plain", port=7000, rate=3e6, seconds=10, tos=AF41),
              wire.send("plain", port=8000, rate=4e6, seconds=10, tos=AF41)):
            pass
        part = stats(wire).tc2
    finally:
        wire.tc("qdisc del dev a0 clsact")
    within("entered here", part.entered_packets, 4900, 5100)
    within("came", part.arrived_packets, 8650, 8850)
    within("thinned", part.drop_thin, 1500, 3500)


def test_a_frame_loses_one(wire: Wire) -> None:
    """Two sub-streams of a picture each, a third too much: no picture loses both while that can
    be; without frames many do.
    """
    losses = {}
    for words in ("frames", "noframes"):
        shaped(wire, f"limit 30 {words}")
        # timestamps are those of the packet's number in its flow: two flows are two sub-streams
        with wire.send("rtp", flows=2, rate=6.5e6, size=1000, seconds=20):
            pass
        part = stats(wire).tc2
        within(f"{words}: dropped", part.drop_thin + part.drop_limit, 2000, 9000)
        losses[words] = part.drop_again
        check(f"{words}: conserved", not conserved(wire), conserved(wire))
    within("frames that lost two", losses["frames"], 0, 0)


def test_turns(wire: Wire) -> None:
    """Media before best effort; signals before both, within a tenth of the link."""
    shaped(wire, "k3 1 other-limit 100", "10mbit")
    with (wire.send("rtp", flows=4, rate=4e6, seconds=10),
          wire.send("plain", port=7000, rate=10e6, seconds=10),
          wire.send("plain", port=9000, rate=10e6, seconds=10, tos=EF)):
        sleep(1)
        before = stats(wire)
        sleep(8)
        now = stats(wire)
    rate = {name: 8 * (getattr(now, name).sent_bytes - getattr(before, name).sent_bytes) / 8e6
            for name in CLASSES}  # fmt: skip
    within("signals, Mbit/s", rate["tc1"], 0.9, 1.1)
    within("media", rate["tc2"], 4, 4.3)
    within("the rest is best effort's", rate["tc3"], 4.5, 5)
    within("media waits, us", now.tc2.sojourn_p99_us, 0, 10000)


def test_a_neighbour(wire: Wire) -> None:
    """What it says is thinned for, for five periods."""
    shaped(wire, "tc2 AF41 down-share 1", "100mbit")
    with wire.send("plain", rate=4e6, size=500, seconds=6, tos=AF41):
        for _ in range(60):
            wire.run(TC_TESTS / "rtnl.py", "change", "a0", "--parent", "1:1", "--handle", "10:",
                     "--kind", "rlqos", f"downstream={1 << 24}")
            sleep(0.01)
        thinned = stats(wire).tc2
        sleep(2)
        now = stats(wire)
        sleep(1)
        later = stats(wire)
    within("of a load of 1, %", 100 * thinned.drop_thin / thinned.entered_packets, 40, 68)
    check("then nothing", later.tc2.drop_thin == now.tc2.drop_thin and not now.downstream, later)


def test_unload(wire: Wire) -> None:
    wire.queue("rlqos")
    refused("in use", "in use", run, "rmmod", "sch_rlqos")
    wire.clear()
    works("unload", run, "rmmod", "sch_rlqos")
    refused("not there", "unknown", wire.tc, "qdisc add dev a0 root rlqos")
    works("load", run, "insmod", f"{os.environ['PAQM_KO_DIR']}/sch_rlqos.ko")
    for _ in range(50):
        wire.queue("rlqos limit 8192")
        with wire.send("rtp", rate=1e6, seconds=0.05):
            pass
    wire.clear()
