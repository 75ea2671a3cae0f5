# SPDX-License-Identifier: GPL-2.0
"""Traffic that comes and goes: a still shared screen, a chat, polling. What all others are told is
their fair rate beside what it uses, not beside a full flow each time that it comes.
"""

from __future__ import annotations

from time import sleep

import pytest

from checks import within
from guest import Wire

HALF = 0.96 * 8 / 2  # of a link of 8 Mbit/s, without headroom


def told(wire: Wire, seconds: float) -> list[float]:
    """The fair rate in Mbit/s, ten times a second."""
    rates = []
    for _ in range(round(10 * seconds)):
        rates.append(wire.stats.fair_rate_bps / 1e6)
        sleep(0.1)
    return sorted(rates)


def percent(rate: float, whole: float) -> float:
    return 100 * rate / whole


@pytest.mark.parametrize("every", [0.6, 1.0, 2.0])
def test_a_packet_now_and_then_is_no_flow(wire: Wire, every: float) -> None:
    """RTP that is silent for longer than 0.5 s each time: it ends, and were a newcomer again."""
    wire.queue("paqm bandwidth 8mbit feedback icmp")
    with (wire.send("rtp", flows=2, rate=7.2e6, seconds=26),
          wire.send("rtp", port=7000, rate=8000 / every, seconds=26)):
        sleep(12)  # some packets make it RTP, and once it is a flow that may stay
        rates = told(wire, 12)
    within("least fair rate, of half of what there is, per cent", percent(rates[0], HALF), 95, 135)


@pytest.mark.parametrize(("packets", "every", "lost"), [(3, 0.28, 0), (14, 0.3, 0), (30, 0.6, 10)])
def test_bursts_count_with_their_mean(wire: Wire, packets: int, every: float, lost: int) -> None:
    """Elastic traffic that pauses for longer than 0.25 s each time, or waits for itself only."""
    wire.queue("paqm bandwidth 8mbit feedback icmp")
    used = packets * 8000 / every
    left = HALF - used / 2e6 * 1042 / 1000
    with (wire.send("rtp", flows=2, rate=2e6 * 0.93 * left * 1000 / 1042, seconds=24),
          wire.send("quic", port=9000, rate=used, burst=packets, seconds=24)):
        sleep(8)
        rates = told(wire, 14)
        now = wire.stats.elastic
        within("elastic packets that are lost",
               now.drop_inner_packets + now.drop_tail_packets, 0, lost)
    within("mean fair rate, of half of what bursts leave, per cent",
           percent(sum(rates) / len(rates), left), 95, 135)
    within("least", percent(rates[0], left), 93, 135)


def test_a_download_after_bursts_gets_its_part(wire: Wire) -> None:
    """What follows calm traffic at once is no burst: it has its part within two seconds."""
    wire.queue("paqm bandwidth 8mbit feedback icmp")
    with (wire.send("rtp", flows=2, rate=5e6, seconds=18),
          wire.send("quic", port=9000, rate=3.7e5, burst=14, seconds=8)):
        sleep(8)
        with wire.send("quic", port=9001, rate=6e6, size=1200, seconds=8):
            sleep(2)
            before = wire.stats.elastic.sent_bytes
            sleep(4)
            got = (wire.stats.elastic.sent_bytes - before) * 8 / 4 / 1e6
    within("the download has, Mbit/s", got, 0.95 * 8 / 3, 3.2)


def test_elastic_traffic_that_comes_again_and_again(wire: Wire) -> None:
    """Media's share falls slowly, for those who hear nothing; not anew each time that a player
    fetches, or they would have what is his.
    """
    wire.queue("paqm bandwidth 8mbit feedback icmp")
    got = []
    with wire.send("rtp", flows=2, rate=16e6, seconds=30):
        for _ in range(6):
            sleep(2)
            before = wire.stats.elastic.sent_bytes
            wire.send("quic", port=9000, rate=6e6, size=1200, seconds=2).wait()
            got.append((wire.stats.elastic.sent_bytes - before) * 8 / 2e6)
    within("the first time it has, Mbit/s", got[0], 0.4, 2.7)
    within("from the third time on, of its third of the link, per cent",
           percent(min(got[2:]), 8 / 3), 60, 105)


@pytest.mark.parametrize(("gop", "flows", "packets"), [("", 50, 150), ("gop 500ms", 5, 200)])
def test_a_picture_for_all_viewers(wire: Wire, gop: str, flows: int, packets: int) -> None:
    """In one moment, though each flow keeps to its rate: three packets to each of fifty, 60 ms of
    the link; or, where buckets hold a group of pictures, a key picture to each of five, 80 ms.
    """
    wire.queue(f"paqm bandwidth 20mbit feedback icmp {gop}")
    with (wire.send("rtp", flows=flows, rate=6e6, burst=packets, seconds=16),
          wire.send("quic", port=9000, rate=16e6, size=1200, seconds=16)):
        sleep(6)
        before = wire.stats
        sleep(8)
        now = wire.stats
    within("media packets that are lost", sum(
        getattr(now.media, name) - getattr(before.media, name)
        for name in ("drop_inner_packets", "drop_tail_packets")), 0, 0)
    within("of overflow queues", now.over_drop_packets - before.over_drop_packets, 0, 0)


@pytest.mark.parametrize("packets", [5, 8])
def test_a_picture_at_a_low_rate(wire: Wire, packets: int) -> None:
    """Within its rate, but some packets at once: they wait for longer than CoDel's 100 ms, since
    each takes 40 ms, and are no standing queue.
    """
    wire.queue("paqm bandwidth 1mbit feedback icmp")
    with (wire.send("rtp", flows=4, rate=0.6e6, burst=4 * packets, seconds=22),
          wire.send("quic", port=9000, rate=0.9e6, size=1200, seconds=22)):
        sleep(2)
        fresh = wire.stats.new_flows
        sleep(4)
        before = wire.stats
        sleep(14)
        now = wire.stats
    within("flows that are not known after two seconds", fresh, 0, 0)
    waited = now.over_packets - before.over_packets
    within("packets that waited", waited, 14, 1e6)
    within("of these lost", now.over_drop_packets - before.over_drop_packets, 0, 0)


def test_who_becomes_known_counts_once(wire: Wire) -> None:
    """A sender that does not listen becomes known in the round that a download calls: it is one
    flow then, and does not count with what it sent before as well.
    """
    wire.queue("paqm bandwidth 8mbit feedback icmp")
    with wire.send("rtp", flows=2, rate=8e6, seconds=9):
        sleep(5)
        with wire.send("rtp", port=7000, rate=4e6, seconds=4):
            sleep(0.4)
            with wire.send("quic", port=9000, rate=4e6, seconds=3):
                sleep(0.1)
                within("flows that are not known by then", wire.stats.new_flows, 0, 0)
                rates = told(wire, 1.5)
    within("least fair rate, of a quarter of the link, per cent", percent(rates[0], 8 / 4), 95, 101)


@pytest.mark.parametrize("over", [1.06, 1.15])
def test_above_a_low_rate(wire: Wire, over: float) -> None:
    """As above, but each flow sends more than it is told, one packet at a time: what waits is no
    picture within its rate, and CoDel has it after 100 ms.
    """
    wire.queue("paqm bandwidth 8mbit feedback icmp")
    with wire.send("rtp", flows=40, rate=over * 8e6, seconds=50):
        sleep(30)
        before = wire.stats
        sleep(18)
        now = wire.stats
    packets = now.over_sent_packets - before.over_sent_packets
    waited = (now.over_sojourn_sum_ns - before.over_sojourn_sum_ns) / packets / 1e6
    lost = now.drops - before.drops
    sent = now.packets - before.packets + lost
    within("packets that waited", packets, 1000, 1e9)
    within("mean wait of these, ms", waited, 0, 90)  # one packet each takes 48
    within("lost, per cent", 100 * lost / sent, 0, 100 * (over - 1) / over + 5)
