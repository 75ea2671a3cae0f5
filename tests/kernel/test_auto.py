# SPDX-License-Identifier: GPL-2.0
"""`bandwidth auto`: the capacity of a link that only the parent knows, measured; it falls, rises
and stalls; the option changes on a live qdisc.
"""

from __future__ import annotations

from time import sleep

import pytest

from checks import check, within
from guest import Task, Wire
from paqm_lab.topology import htb_class
from traffic import followers


def rate(wire: Wire, bits: int) -> None:
    """The parent's, from now on."""
    wire.tc("class replace dev a0 " + " ".join(htb_class(bits)))


def bandwidth(wire: Wire, words: str) -> None:
    wire.tc(f"qdisc change dev a0 parent 1:1 handle 10: paqm bandwidth {words}")


def queue(wire: Wire) -> None:
    wire.tc("qdisc add dev a0 parent 1:1 handle 10: paqm bandwidth auto")


def elastic(wire: Wire, seconds: float, bits: float = 60e6) -> Task:
    """Traffic that always waits."""
    return wire.send("quic", port=8000, flows=4, rate=bits, size=1200, seconds=seconds)


def per_mille(wire: Wire, bits: float) -> int:
    """The capacity, of so many bit/s."""
    return int(1000 * wire.stats.capacity_bps / bits + 0.5)


def headroom(wire: Wire) -> int:
    return int(1000 * wire.stats.headroom + 0.5)


@pytest.fixture
def link(wire: Wire) -> Wire:
    """A parent of 20 Mbit/s at a0; the queue that measures it goes to 1:1."""
    wire.tc("qdisc add dev a0 root handle 1: htb default 1")
    rate(wire, 20_000_000)
    return wire


def test_elastic_traffic_that_always_waits(link: Wire) -> None:
    rate(link, 8_000_000)
    queue(link)
    check("a guess at first", link.stats.capacity_source == "guess")
    shown = link.tc("qdisc show dev a0")
    check("shown as auto", "bandwidth auto" in shown.partition("paqm ")[2], shown)
    with elastic(link, 22):
        sleep(4)
        within("8 Mbit/s measured, per mille", per_mille(link, 8e6), 980, 1020)
        check("source of the capacity", link.stats.capacity_source == "measured")
        rate(link, 2_000_000)
        sleep(0.25)
        within("250 ms after a fall to 2 Mbit/s, per mille", per_mille(link, 2e6), 500, 1300)
        sleep(2.75)
        within("3 s after it", per_mille(link, 2e6), 980, 1020)
        rate(link, 20_000_000)
        sleep(4)
        within("4 s after a rise to 20 Mbit/s", per_mille(link, 20e6), 950, 1020)
        bandwidth(link, "5mbit")
        sleep(1)
        within("told 5 Mbit/s", per_mille(link, 5e6), 1000, 1000)
        bandwidth(link, "auto")
        sleep(3)
        within("measured again", per_mille(link, 20e6), 950, 1020)
        bandwidth(link, "none")
        sleep(0.5)
        check("capacity of the device", link.stats.capacity_source != "measured")
        bandwidth(link, "auto")
    # nothing waits: what was measured stands, and the loops sleep
    sleep(1)
    before = link.stats.capacity_bps
    sleep(5)
    within("after 5 s of silence, per mille", per_mille(link, before), 999, 1001)
    link.send("rtp", flows=2, rate=1e6, seconds=3).wait()
    within("1 Mbit/s of media on it", per_mille(link, before), 900, 1100)


def test_headroom(link: Wire) -> None:
    """Media that queues asks for it, and it goes when nothing queues."""
    queue(link)
    elastic(link, 4).wait()
    link.send("rtp", flows=2, rate=1e6, seconds=3).wait()
    within("none before, per mille", headroom(link), 0, 5)
    # what waits apart, as it is beyond the fair rate, asks for none
    link.tc("qdisc change dev a0 parent 1:1 handle 10: paqm noisolate")
    rate(link, 4_000_000)
    link.send("rtp", flows=3, rate=8e6, seconds=3).wait()
    high = headroom(link)
    within("media above the rate for 3 s", high, 200, 500)
    rate(link, 20_000_000)
    link.send("rtp", flows=3, rate=1e6, seconds=5).wait()
    within("5 s of little media later, less by", high - headroom(link), 150, 250)


def test_media_only(link: Wire) -> None:
    """More than the start value: growth finds the rate."""
    queue(link)
    link.send("rtp", flows=3, rate=6e6, seconds=4).wait()
    within("at least what was sent, per mille", per_mille(link, 6e6), 1000, 4000)


def test_media_goes_first_in_a_dip(link: Wire) -> None:
    """Beside elastic traffic media has its part of what the link takes in the mean, not of what it
    takes in its dips: half a second of 3 Mbit/s after each of 8, and a fifth of 5.5 for each flow.
    """
    rate(link, 8_000_000)
    queue(link)
    told = []
    with elastic(link, 22):
        sleep(1)
        with link.send("rtp", rate=0.95e6, seconds=20):
            sleep(5)
            for n in range(24):
                rate(link, 3_000_000 if n % 2 else 8_000_000)
                for _ in range(5):
                    sleep(0.1)
                    told.append(link.stats.fair_rate_bps)
            media = link.stats.media
    within("told in the mean, kbit/s", sum(told) // len(told) // 1000, 900, 1150)
    within("media waits, p99, us", media.sojourn_p99_us, 0, 12000)
    within("lost of it", media.drop_inner_packets + media.drop_tail_packets, 0, 0)


def test_many_changes_against_traffic(link: Wire) -> None:
    queue(link)
    with elastic(link, 6, 30e6):
        for words in ("7mbit", "auto") * 20:
            bandwidth(link, words)
            sleep(0.05)
        link.tc("qdisc del dev a0 root")
        check("removed while it measures", all(q.kind != "paqm" for q in link.qdiscs("a0")))


def still(wire: Wire, seconds: float, rate: str = "8kbit") -> None:
    """The link of 20 Mbit/s delivers next to nothing for a while: a handover, or a fade."""
    for words in (rate, "20mbit"):
        wire.tc(f"qdisc change dev a0 root handle 1: tbf rate {words} burst 3000 limit 1000000")
        sleep(seconds)


def test_fade(wire: Wire) -> None:
    """A link that still moves a packet now and then is no slow one at once: media waits for it."""
    wire.tc("qdisc add dev a0 root handle 1: tbf rate 20mbit burst 3000 limit 1000000")
    queue(wire)
    elastic(wire, 3).wait()
    with wire.send("rtp", rate=3e6, seconds=6):
        sleep(2)
        for _ in range(3):
            still(wire, 0.18, "250kbit")
            sleep(0.8)
        media = wire.stats.media
    within("lost in fades", media.drop_inner_packets + media.drop_tail_packets, 0, 0)
    within("longest wait, ms", media.sojourn_max_us / 1000, 100, 200)


def test_link_that_stands_still(wire: Wire) -> None:
    wire.tc("qdisc add dev a0 root handle 1: tbf rate 20mbit burst 3000 limit 1000000")
    queue(wire)
    with wire.send("rtp", rate=3e6, seconds=8):
        sleep(3)
        for _ in range(4):
            still(wire, 0.08)
        within("lost while it stood still for 80 ms, four times", wire.stats.drops, 0, 0)
        most = wire.stats.media.sojourn_max_us / 1000
        within("longest wait, ms", most, 60, 100)
        # for long: what waits is bounded, whatever is believed of the link
        still(wire, 1)
        check("a link that works no more holds little", wire.stats.drops > 100, wire.stats.drops)
        sleep(1)
        within("waits a second later, packets", wire.stats.qlen, 0, 3)


def test_a_fall_to_a_hundredth(wire: Wire) -> None:
    """What has come before senders can know would keep media back for three seconds."""
    wire.tc("qdisc add dev a0 root handle 1: tbf rate 20mbit burst 3000 limit 1000000")
    queue(wire)
    bandwidth(wire, "auto feedback icmp")
    with followers(wire, "10.1.0.2", law="erf", flows=2, rate=6e6, max=3e6, lag=0.1, stop=11):
        sleep(5)
        wire.tc("qdisc change dev a0 root handle 1: tbf rate 200kbit burst 3000 limit 1000000")
        sleep(1.5)
        within("waits 1.5 s after it, ms of the link", wire.stats.backlog * 8 // 200, 0, 500)
        sleep(4)
        within("longest wait, ms", wire.stats.media.sojourn_max_us / 1000, 100, 1000)
        within("told of what is left, kbit/s", wire.stats.fair_rate_bps / 1000, 20, 200)
    sleep(2)
    check("conservation", wire.conserved())
    within("left", wire.left(), 0, 0)
