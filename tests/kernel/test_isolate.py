# SPDX-License-Identifier: GPL-2.0
"""Isolation of flows: who keeps to his rate does not pay for who does not, and a short request
does not wait for a long transfer; nothing is reordered; flow queues are accounted for below
every parent, while options change, and when they are thrown away.
"""

from __future__ import annotations

import random
import re
import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager
from itertools import groupby
from time import monotonic, sleep
from typing import Any

import pytest

import peers
from blast import SO_SNDBUFFORCE
from checks import check, skip, within, works
from guest import Wire, qfq_holds, together
from paqm_lab.topology import run
from traffic import Listener

PARENTS = ("prio", "drr", "htb", "hfsc", "qfq", "ets", "red", "tbf", "netem")


def mixture(wire: Wire, seconds: float, **flood: Any) -> AbstractContextManager[None]:
    """Two flows of 0.4 Mbit/s and one of 12, or other than that."""
    how = {"port": 7000, "rate": 12e6, "seconds": seconds} | flood
    return together(wire.send("rtp", flows=2, rate=0.8e6, seconds=seconds), wire.send("rtp", **how))


def in_order(heard: Listener) -> None:
    for port, late in heard.late.items():
        within(f"nothing out of order on port {port}", late, 0, 0)


def test_modest_flows_beside_a_flood(wire: Wire) -> None:
    wire.queue("paqm bandwidth 4mbit")
    with Listener(wire.b, 5004, 5005, 7000) as heard, mixture(wire, 8):
        sleep(6)
        check("conservation during the flood", wire.conserved())
        now = wire.stats
        within("one flow does not follow", now.deaf_flows, 1, 1)
        within("it waits in a queue of its own", now.over_queues, 1, 1)
        within("nothing is dropped from the common queue",
               now.media.drop_inner_packets + now.media.drop_tail_packets, 0, 0)
        flows = wire.tc("-s class show dev a0")
        within("class show: who does not follow", flows.count("does not follow"), 1, 1)
        within("class show: who does", flows.count("  follows;"), 2, 2)
        public = wire.run("setpriv", "--bounding-set", "-net_admin", "--inh-caps", "-net_admin",
                          *"tc -s class show dev a0".split())
        within("class show, not for the administrator: flows",
               len(re.findall("^class paqm 1:10[1-9]", public, re.M)), 3, 20)
        within("class show, not for the administrator: addresses", public.count(" udp "), 0, 0)
        within("class show: it hears by loss",
               flows.count("does not follow; hears by loss"), 1, 1)
    within("a modest flow loses nothing", heard.came[5004], 399, 401)
    within("nor does the other", heard.came[5005], 399, 401)
    in_order(heard)
    within("modest packets wait at most so many us", wire.stats.media.sojourn_p99_us, 0, 12000)


def test_a_part_each(wire: Wire) -> None:
    """Two flows above their rate, one by little: not two parts for one of them.

    Its bursts just exceed the rate: each time its queue was empty again, and it was served first.
    """
    wire.queue("paqm bandwidth 4mbit")
    with together(wire.send("rtp", port=7000, rate=12e6, seconds=12),
                wire.send("rtp", port=8000, rate=2.2e6, seconds=12, burst=4)):
        with Listener(wire.b, 7000, 8000) as heard:
            sleep(3)  # one may begin before the other, and has all until then
            heard.forget()
            sleep(8)  # what still waits at the end is not of interest
    within("of what both have the one above by little has, per mille",
           heard.came[8000] * 1000 // (heard.came[7000] + heard.came[8000]), 470, 530)
    in_order(heard)


def test_three_flows_come_back_to_their_rate_at_once(wire: Wire) -> None:
    """They were below it and come back with full buckets, and then send as much as the link takes:
    the queue that their bursts leave would stand.
    """
    wire.queue("paqm bandwidth 8mbit")
    with together(wire.send("rtp", rate=1.91e6, seconds=6),  # first in each round
                  *(wire.send("rtp", port=port, rate=1.91e6, seconds=3, quiet=4, back=5)
                    for port in (7000, 7001, 7002))):
        with Listener(wire.b, 5004, 7000, 7001, 7002) as heard:
            sleep(4.3)
            heard.forget()
            sleep(0.5)
            stand = []
            for _ in range(12):  # some packets may just have come
                now = wire.stats
                stand.append(now.media.backlog_bytes - now.over_backlog_bytes)
                sleep(0.003)
            within("bytes that stand in the common queue half a second later", min(stand), 0, 1100)
    within("one that sends evenly waits at most so many us", heard.most[5004], 0, 7500)
    in_order(heard)


def test_previews_of_where_a_fair_rate_ends(wire: Wire) -> None:
    """Two tenths of all packets are sent in a preview, the others find his queue short."""
    wire.queue("paqm bandwidth 16mbit feedback icmp")
    even = [wire.send("rtp", port=port, rate=3.7e6, seconds=8) for port in (5004, 5005, 5006)]
    with Listener(wire.b, 7000, 5004) as heard, together(
        *even, wire.send("rtp", port=7000, rate=4.2e6, seconds=8)  # which they leave
    ):
        sleep(3)
        heard.forget()
    within("packets beyond the rate", wire.stats.over_packets, 2000, 100000)
    first = heard.first[7000]
    waits = [(at - first, way) for at, way in heard.ways if 3e6 < at - first < 7.5e6]
    longest = [max(way for _, way in half) for _, half in groupby(waits, lambda w: w[0] // 500000)]
    within("in each half second he waits at least so many us", min(longest), 6000, 20000)
    within("but never more than", max(longest), 6000, 25000)
    within("mostly so many", sorted(way for _, way in waits)[len(waits) // 2], 0, 4000)
    within("who keeps his rate waits at most", heard.most[5004], 0, 4000)
    in_order(heard)


def test_a_longer_preview(wire: Wire) -> None:
    """It follows one that did not help: a queue that has stood since the last preview is that of
    one who did not understand it. After six there is one in 8 s.
    """
    wire.queue("paqm bandwidth 16mbit feedback icmp")
    even = [wire.send("rtp", port=port, rate=3.6e6, seconds=10) for port in (5004, 5005, 5006)]
    with together(*even, wire.send("rtp", port=7000, rate=6e6, seconds=10)):
        sent = []
        for pause in (1, 2, 2, 4):
            sleep(pause)
            sent.append(wire.stats.media.sent_bytes)
        within("of the link he has what he is entitled to most of the time, per mille",
               (sent[1] - sent[0]) * 8 // 2 // 16000, 970, 986)
        within("then all that others leave", (sent[3] - sent[2]) * 8 // 4 // 16000, 990, 1001)


def test_a_queue_that_stands_is_shown_as_a_slope(wire: Wire) -> None:
    """Who sees his delay once in a picture needs it to grow for most of a second: a queue that has
    stood for 0.4 s is served slower for one, loses nothing meanwhile, and the next time is 4 s on.
    """
    wire.queue("paqm bandwidth 8mbit feedback icmp")
    with Listener(wire.b, 7000) as heard, together(
        wire.send("quic", port=8000, flows=4, rate=12e6, size=1200, seconds=16),
        wire.send("rtp", port=7000, rate=1.66e6, seconds=16)
    ):
        sleep(16)
    first = heard.first[7000]
    bins: dict[int, list[int]] = {}
    for at, way in heard.ways:
        bins.setdefault((at - first) // 100000, []).append(way)
    waits = [sorted(bins.get(at, [0]))[len(bins.get(at, [0])) // 2] for at in range(150)]
    begins: list[int] = []
    for at in range(20, 142):
        steady = all(waits[at + k + 1] > waits[at + k] for k in range(8))
        if steady and waits[at + 8] - waits[at] > 40000 and at - (begins or [-40])[-1] >= 20:
            begins.append(at)
    within("times that the delay grows by 40 ms in 0.8 s, steadily", len(begins), 2, 4)
    for before, after in zip(begins, begins[1:], strict=False):
        within("tenths of a second between two", after - before, 35, 45)
    in_order(heard)


@pytest.mark.parametrize("queues", [2, 6])
def test_several_queues_that_stand(wire: Wire, queues: int) -> None:
    """They come at the same moment, a twentieth above what is theirs, and stand: what they are
    served slower in between is the elastic class's, and who keeps to his rate feels none of it.
    """
    fair = 16e6 / (queues + 5)
    entitled = (16e6 - 0.9 * fair) / (queues + 4)
    wire.queue("paqm bandwidth 16mbit feedback icmp")
    ports = range(7000, 7000 + queues)
    with Listener(wire.b, 5004, *ports) as heard, together(
        wire.send("quic", port=8000, flows=4, rate=16e6, size=1200, seconds=24),
        wire.send("rtp", rate=0.9 * fair, seconds=24),
    ):
        sleep(4)
        begin = len(heard.ways)
        with together(*(wire.send("rtp", port=port, rate=1.05 * fair, seconds=18)
                        for port in ports)):
            sleep(6)
            heard.forget()
            before = wire.stats
            sleep(12)
            now = wire.stats
            came = [heard.came[port] for port in ports]
    ways = sorted(way for _, way in heard.ways[begin:])
    within("who keeps to his rate: under way at most, us, 99 of 100", ways[len(ways) * 99 // 100],
           0, 8000)
    size = ((now.media.sent_bytes - before.media.sent_bytes)
            / (now.media.sent_packets - before.media.sent_packets))
    within("who does not: least of what is his, per mille",
           round(1000 * 8 * size * min(came) / 12 / entitled), 980, 1015)
    within("and most", round(1000 * 8 * size * max(came) / 12 / entitled), 980, 1015)
    elastic = 8 * (now.elastic.sent_bytes - before.elastic.sent_bytes) / 12
    within("four elastic flows, per mille of four shares", round(1000 * elastic / (4 * entitled)),
           980, 1015)
    in_order(heard)


def test_room_for_those_who_seek_their_rate_by_the_queue(wire: Wire) -> None:
    """Who follows gets a little less while others find their rate by the queue."""
    wire.queue("paqm bandwidth 16mbit feedback icmp")
    with wire.send("rtp", rate=0.5e6, seconds=58):
        sleep(3.5)
        before = wire.stats.fair_rate_bps
        wire.send("rtp", flows=2, port=7000, rate=30e6, seconds=4).wait()
        sleep(4)
        within("what is told when they have gone, per mille of before",
               wire.stats.fair_rate_bps * 1000 // before, 986, 993)
        sleep(43)
        within("and when they have not come back for long",
               wire.stats.fair_rate_bps * 1000 // before, 999, 1001)


@pytest.mark.parametrize("parent", ["htb", "hfsc", "tbf-drr", "tbf-qfq"])
def test_parents_that_know_the_rate(wire: Wire, parent: str) -> None:
    """A packet is there whenever they ask."""
    wire.parent(parent, "16mbit",
                "ceil 16mbit burst 1600 cburst 1600 quantum 1514" if parent == "htb" else "")
    wire.tc("qdisc add dev a0 parent 1:1 handle 10: paqm bandwidth auto")
    wire.send("quic", port=8000, flows=4, rate=60e6, size=1200, seconds=4).wait()  # it is measured
    sleep(1)
    with wire.send("rtp", flows=3, rate=11.1e6, seconds=5):
        wire.send("rtp", port=7000, rate=4.2e6, seconds=5).wait()
    within(f"{parent}: packets beyond the rate", wire.stats.over_packets, 100, 100000)
    within(f"{parent} finds it non-work-conserving, times",
           run("dmesg").count("non-work-conserving"), 0, 0)


def test_medias_share_falls(wire: Wire) -> None:
    """Who hears nothing is shown what is to come: his queue grows for a tenth of a second, as fast
    as if the share had fallen already, and is short again soon.
    """
    wire.queue("paqm bandwidth 8mbit feedback icmp")
    with Listener(wire.b, 7000, 8000) as heard, wire.send("rtp", port=7000, rate=5e6, seconds=6):
        sleep(3)
        wire.send("quic", port=8000, rate=12e6, seconds=3).wait()
    long = next(at for at, way in heard.ways if way > 12000)
    after = [way for at, way in heard.ways if long < at < long + 200000]
    within("he waits for 12 ms so many us after the first elastic packet",
           long - heard.first[8000], 150000, 1000000)
    within("and soon only a part of that again, per mille",
           round(1000 * min(after) / max(after)), 0, 400)
    in_order(heard)


@pytest.mark.parametrize("tos", [2, 1])
def test_marks(wire: Wire, tos: int) -> None:
    """What is ECN-capable is marked."""
    wire.queue("paqm bandwidth 4mbit")
    with Listener(wire.b, 5004, 5005, 7000) as heard:
        with mixture(wire, 6, tos=tos, rate=8e6, flows=2):
            pass
    name = f"ECT({tos % 2})"
    within(f"{name}: marks", wire.stats.over_mark_packets, 3, 5000)
    within(f"{name}: as they arrive", heard.marked[7000], 1, 5000)
    within(f"{name}: modest flows are not marked", heard.marked[5004], 0, 0)


def test_strangers(wire: Wire) -> None:
    """Many short flows are one."""
    wire.queue("paqm bandwidth 4mbit")
    with Listener(wire.b, 5004, 5005) as heard, wire.send("rtp", flows=2, rate=0.8e6, seconds=6):
        sleep(2)
        wire.send("rtp", flows=800, short=4, port=9000, rate=8e6, seconds=3).wait()
        now = wire.stats
        within("packets of flows that are not known wait apart",
               now.over_stranger_packets, 100, 1000000)
        within("nothing is dropped from the common queue beside them, but a packet or two",
               now.media.drop_inner_packets + now.media.drop_tail_packets, 0, 3)
        within("they do not come to stay", now.newcomers_stay, 0, 0.2)
        within("the fair rate is not cut for them", now.fair_rate_bps, 1000000, 4000000)
    within("a modest flow loses nothing beside them", heard.came[5004], 299, 301)


@pytest.mark.parametrize("seed", (1, 11, 22))
def test_ports_in_turn(wire: Wire, seed: int) -> None:
    """Who uses eight ports in turn, each for a second, is one flow, also when they come again."""
    wire.queue(f"paqm bandwidth 8mbit feedback icmp seed {seed}")
    sleep(seed * 0.071)  # against the rounds
    with (Listener(wire.b, 5004, 5005, 5006) as heard,
          wire.send("rtp", flows=3, rate=5.4e6, seconds=30),
          wire.send("rtp", flows=8, short=3000, port=9000, rate=24e6, seconds=28)):
        sleep(12)
        heard.forget()
        sleep(14)
        within("the fair rate", wire.stats.fair_rate_bps, 2400000, 2700000)
        within("modest flows wait at most so many us", max(heard.most.values()), 0, 10000)


@pytest.mark.parametrize("tries", (2, 8))
def test_who_joins_after_short_floods(wire: Wire, tries: int) -> None:
    """Twenty who join together, some seconds after calls that ended soon, lose nothing."""
    wire.queue("paqm bandwidth 8mbit feedback icmp")
    ports, seconds = range(6000, 6020), 10 + 2 * tries
    with (Listener(wire.b, *ports) as heard,
          wire.send("rtp", flows=6, rate=1.2e6, seconds=seconds),
          wire.send("quic", flows=4, port=8000, rate=12e6, seconds=seconds)):
        sleep(2)
        for n in range(tries):
            wire.send("rtp", port=9000 + n, rate=12e6, seconds=2).wait()
        sleep(3)
        wire.send("rtp", port=6000, flows=20, rate=3e6, seconds=4).wait()
    within("all of them have what was sent", sum(heard.came.values()), 1499, 1500)


@pytest.fixture
def hosts(wire: Wire) -> Iterator[Wire]:
    """The wire with two more addresses at its sender."""
    for action in ("add", "del"):
        for last in (11, 12):
            wire.ip(f"addr {action} 10.1.0.{last}/24 dev a0")
        if action == "add":
            yield wire


def test_who_joins_beside_ever_new_ports(hosts: Wire) -> None:
    """He does not wait behind them, and loses nothing to them, if he has another address."""
    hosts.queue("paqm bandwidth 4mbit feedback icmp")
    with (Listener(hosts.b, 5004, 5005, 6000) as heard,
          hosts.send("rtp", flows=2, rate=0.8e6, seconds=8),
          hosts.send("rtp", source="10.1.0.11", flows=800, short=4, port=9000, rate=12e6,
                     seconds=7)):
        sleep(4)
        within("they do not come to stay", hosts.stats.newcomers_stay, 0, 0.2)
        hosts.send("rtp", source="10.1.0.12", port=6000, rate=0.7e6, seconds=2).wait()
        check("conservation", hosts.conserved())
    within("who joins loses nothing", heard.came[6000], 174, 176)
    within("and waits at most so many us", heard.most[6000], 0, 20000)
    in_order(heard)


def made_up(to: str, seconds: float, rate: float) -> None:
    """Small RTP packets, so many a second, with another source address and port every four."""
    draw, start, sent = random.Random(1), monotonic(), 0
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as raw:
        raw.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 26)  # they come from many hosts
        while monotonic() - start < seconds:
            peers.until(start + sent / rate)
            for _ in range(5):
                source = socket.inet_aton(f"10.66.{draw.randrange(256)}.{draw.randrange(256)}")
                port = draw.randrange(1024, 65000)
                for seq in range(4):
                    rtp = peers.udp(peers.rtp(seq, port, 40), (port, 9000))
                    raw.sendto(peers.ipv4(source, to, rtp, seq + 1), (to, 0))
            sent += 20


def test_made_up_addresses_have_one_turn(wire: Wire) -> None:
    """Their sixteen queues together have as much of what is left as one who does not follow."""
    wire.queue("paqm bandwidth 4mbit feedback icmp")
    with (Listener(wire.b, 5004, 5005, 6000) as heard,
          wire.send("rtp", flows=2, rate=0.6e6, seconds=11),
          wire.send("rtp", port=6000, rate=3e6, seconds=11)):
        sleep(5)
        with wire.task(made_up, "10.1.0.2", 5, 6000):
            sleep(2)
            heard.forget()
            sleep(2)
            had = heard.came[6000]
            check("conservation", wire.conserved())
            within("they do not come to stay", wire.stats.newcomers_stay, 0, 0.2)
    within("who does not follow has so many packets in two seconds", had, 330, 600)


def test_made_up_addresses_leave_memory(wire: Wire) -> None:
    """Small packets take ten times their length: sixteen queues of them must not have the memory
    that a flow needs for its pictures.
    """
    wire.queue("paqm bandwidth 4mbit feedback icmp flows 65536")
    with (Listener(wire.b, 6000) as heard,
          wire.send("rtp", flows=2, rate=0.6e6, seconds=9),
          wire.send("rtp", port=6000, rate=0.9e6, burst=30, seconds=9.1)):
        sleep(3)
        with wire.task(made_up, "10.1.0.2", 5, 20000):
            sleep(5.5)
            check("conservation", wire.conserved())
        sleep(1.5)
    within("packets lost of its 35 pictures", 35 * 30 - heard.came[6000], 0, 60)


def test_who_joins_beside_made_up_addresses(hosts: Wire) -> None:
    """He waits as in one queue with them until he is known: sixteen by turns were for others."""
    hosts.queue("paqm bandwidth 4mbit feedback icmp flows 65536")
    with (Listener(hosts.b, 5004, 5005, 6000) as heard,
          hosts.send("rtp", flows=2, rate=0.6e6, seconds=9)):
        sleep(2)
        with hosts.task(made_up, "10.1.0.2", 6, 6000):
            sleep(3)
            within("they do not come to stay", hosts.stats.newcomers_stay, 0, 0.2)
            hosts.send("rtp", source="10.1.0.12", port=6000, rate=0.7e6, seconds=2).wait()
            check("conservation", hosts.conserved())
    within("packets of 175 of who joins", heard.came[6000], 150, 175)
    within("and waits at most so many us", heard.most[6000], 0, 300000)
    within("a modest flow waits at most so many us", heard.most[5004], 0, 20000)
    in_order(heard)


def crowd(wire: Wire, seconds: float) -> AbstractContextManager[None]:
    """Twenty flows of one host, each of a tenth of the link, beside one flow of another that would
    take all of it.
    """
    how = {"rate": 8e6, "seconds": seconds}
    return together(wire.send("rtp", source="10.1.0.11", flows=20, port=7000, **how),
                    wire.send("rtp", source="10.1.0.12", **how))


def in_bits(word: str) -> float:
    number = re.match(r"[\d.]*", word)
    units = {"M": 1e6, "K": 1e3}
    return float(number[0] or 0) * units.get(word[number.end():][:1], 1) if number else 0


def test_hosts_are_equal(hosts: Wire) -> None:
    """Twenty flows of one beside one of another."""
    hosts.queue("paqm bandwidth 4mbit weights host feedback icmp")
    with crowd(hosts, 14):
        sleep(4)  # until all are known
        with Listener(hosts.b, *range(7000, 7020), 5004) as heard:
            sleep(8)  # what still waits at the end is not of interest
            check("conservation while a host's flows share a turn", hosts.conserved())
            now = hosts.stats
            within("each has a queue, and the other flow another", now.over_queues, 15, 21)
            within("the fair rate is that of a host", now.fair_rate_bps, 1800000, 2200000)
            flows = hosts.tc("-s class show dev a0").split("\nclass ")
            for last, low, high, names in (
                (11, 40, 51, ("class show: one of twenty may send, and is told, per mille of it, "
                              "at least", "and at most")),
                (12, 900, 1100, ("one that is alone at least", "and at most")),
            ):
                text = "".join(flow for flow in flows if f"10.1.0.{last}:" in flow)
                parts = [in_bits(word) * 1000 / now.fair_rate_bps
                         for word in re.findall(r"(?:share|told) (\S+)", text)]
                for name, part in zip(names, (min(parts), max(parts)), strict=True):
                    within(name, part, low, high)
    within("the twenty have half, per mille",
           round(1000 - 1000 * heard.came[5004] / sum(heard.came.values())), 470, 530)
    within("nothing out of order", sum(heard.late.values()), 0, 0)
    lost = [int(n) for flow in flows
            if "10.1.0.11:" in flow for n in re.findall(r"lost (\d+)", flow)]
    within("class show: losses of flows that share a turn", sum(lost), 100, 100000)
    sleep(1)
    within("nothing is left", hosts.left(), 0, 0)


@pytest.mark.parametrize("loud, rate, burst", ((1, 0.2e6, 1), (2, 1.1e6, 8), (10, 0.3e6, 4)))
def test_a_modest_flow_beside_its_siblings(
        hosts: Wire, loud: int, rate: float, burst: int) -> None:
    """They are of its host, and send far more than the link has."""
    hosts.queue("paqm bandwidth 8mbit weights host")
    how = {"rate": 6e6, "seconds": 12, "burst": burst}
    many = how | {"flows": loud, "rate": 6e6 * loud}
    with (Listener(hosts.b, 5004, 8000, *range(7000, 7000 + loud)) as heard,
          hosts.send("rtp", source="10.1.0.11", **how | {"rate": rate}),
          hosts.send("rtp", source="10.1.0.11", port=7000, **many),
          hosts.send("rtp", source="10.1.0.12", port=8000, **how)):
        sleep(5)
        heard.forget()
        sleep(6)
        check("conservation", hosts.conserved())
    whole = rate * 7 / 8000
    within("it loses nothing, per mille", round(1000 * heard.came[5004] / whole), 985, 1010)
    within("and waits at most so many us", heard.most[5004], 0, 40000)
    within("its host has half, per mille",
           round(1000 - 1000 * heard.came[8000] / sum(heard.came.values())), 470, 530)
    within("nothing out of order", sum(heard.late.values()), 0, 0)


def test_flows_and_hosts_by_turns_under_traffic(hosts: Wire) -> None:
    hosts.queue("paqm bandwidth 4mbit weights host feedback icmp")
    with Listener(hosts.b, *range(7000, 7020), 5004) as heard, crowd(hosts, 9):
        sleep(2)
        for word in ("flow", "host", "flow", "host", "flow"):
            hosts.tc(f"qdisc change dev a0 root paqm weights {word}")
            sleep(1.2)
            check(f"{word}: conservation", hosts.conserved())
    within("nothing out of order", sum(heard.late.values()), 0, 0)
    within("nothing is left", hosts.left(), 0, 0)
    hosts.tc("qdisc change dev a0 root paqm weights host")
    with crowd(hosts, 3):
        sleep(2.5)
        check("conservation", hosts.conserved())
        hosts.down()
        within("a device that goes down throws all away", hosts.left(), 0, 0)
        hosts.up()
    with crowd(hosts, 2):
        sleep(1.8)
        works("deleted while hosts' packets wait", hosts.tc, "qdisc del dev a0 root")


@pytest.mark.parametrize("parent", PARENTS)
def test_parent(wire: Wire, parent: str) -> None:
    if parent == "qfq" and not qfq_holds():
        skip("leaf of qfq", "this kernel's qfq reports a fault when a leaf holds packets back")
        return
    wire.parent(parent)
    works(f"leaf of {parent}", wire.tc,
          "qdisc add dev a0 parent 1:1 handle 10: paqm bandwidth 4mbit")
    with mixture(wire, 2), wire.send("quic", port=8000, rate=4e6, size=1400, seconds=2):
        sleep(1.5)
        check(f"conservation under {parent} with overflow queues", wire.conserved())
        within(f"packets beyond the fair rate under {parent}", wire.stats.over_packets, 100, 100000)
        for word in ("noisolate", "isolate"):
            wire.tc(f"qdisc change dev a0 parent 1:1 handle 10: paqm {word}")
            sleep(0.2)
    sleep(1)
    within(f"nothing left under {parent}", wire.left(), 0, 0)
    check(f"conservation under {parent}", wire.conserved())
    with mixture(wire, 1.5):
        sleep(1)
        works(f"deleted from {parent} while packets wait", wire.tc, "qdisc del dev a0 root")


def test_thrown_away_and_short_of_room(wire: Wire) -> None:
    wire.queue("paqm bandwidth 4mbit limit 20000")
    with mixture(wire, 3):
        sleep(2)
        within("they take half of the limit at most", wire.stats.over_backlog_bytes, 1, 10000)
        check("conservation at the limit", wire.conserved())
        wire.down()
        within("a device that goes down throws them away", wire.stats.over_backlog_packets, 0, 0)
        within("and leaves no length", wire.left(), 0, 0)
        wire.up()
    with mixture(wire, 2):
        pass
    sleep(1)
    within("goes on afterwards", wire.left(), 0, 0)


def transfer(wire: Wire, seconds: float, tos: int = 0) -> AbstractContextManager[None]:
    """An elastic flow of three times the link, and a thin one of 0.4 Mbit/s."""
    return together(wire.send("quic", port=8000, rate=12e6, seconds=seconds, tos=tos),
                    wire.send("quic", port=8010, rate=0.4e6, size=500, seconds=seconds))


def test_elastic_flows(wire: Wire) -> None:
    """A thin one beside one that takes all it can."""
    wire.queue("paqm bandwidth 4mbit")
    with Listener(wire.b, 8000, 8010) as heard, transfer(wire, 6):
        sleep(5)
        check("elastic queues: conservation", wire.conserved())
    within("the thin one loses nothing", heard.came[8010], 599, 601)
    within("and waits at most so many us", heard.most[8010], 0, 15000)
    within("the other has the rest, packets", heard.came[8000], 2400, 2850)
    in_order(heard)
    within("its own queue is shortened", wire.stats.elastic.drop_inner_packets, 10, 10000)


def test_elastic_class_is_short_of_room(wire: Wire) -> None:
    """Who comes finds some."""
    wire.queue("paqm bandwidth 4mbit elastic-limit 20000")
    with Listener(wire.b, 8000, 8010) as heard, transfer(wire, 4):
        pass
    within("the thin one loses nothing", heard.came[8010], 399, 401)
    within("the other loses by the limit", wire.stats.elastic.drop_tail_packets, 1000, 100000)


@pytest.mark.parametrize("tos", [2, 1])
def test_elastic_marks(wire: Wire, tos: int) -> None:
    """Elastic packets that are ECN-capable are marked."""
    wire.queue("paqm bandwidth 4mbit")
    with Listener(wire.b, 8000, 8010) as heard, transfer(wire, 4, tos):
        pass
    elastic = wire.stats.elastic
    within(f"TOS {tos}: marked", heard.marked[8000], 5, 10000)
    within(f"TOS {tos}: as the statistics say",
           elastic.ecn_mark_packets - heard.marked[8000], 0, 1)
    within(f"TOS {tos}: nobody else is", heard.marked[8010], 0, 0)
    within(f"TOS {tos}: the limit drops, not the AQM", elastic.drop_inner_packets, 0, 0)


def test_elastic_class_with_and_without_flow_queues(wire: Wire) -> None:
    """They change while packets wait."""
    wire.queue("paqm bandwidth 4mbit")
    with Listener(wire.b, 8000, 8010) as heard, transfer(wire, 8):
        for word in ("noisolate", "isolate", "noisolate", "isolate", "noisolate"):
            sleep(1.2)
            wire.tc(f"qdisc change dev a0 root paqm {word}")
            check(f"{word}: conservation", wire.conserved())
    in_order(heard)
    within("nothing is left", wire.left(), 0, 0)
    with transfer(wire, 2):
        sleep(1)
        wire.down()
        within("a device that goes down throws all away", wire.left(), 0, 0)
        wire.up()


def test_a_capacity_that_is_wrong(wire: Wire) -> None:
    """The device is slower than believed: queues stay as long as they should be there."""
    wire.tc("qdisc add dev a0 root handle 1: tbf rate 4mbit burst 3000 limit 100000")
    wire.tc("qdisc add dev a0 parent 1:1 handle 10: paqm")  # believes in 1 Gbit/s or more
    with wire.send("quic", port=8000, rate=8e6, size=1400, seconds=8):
        sleep(6)
        within("believed too high: elastic backlog", wire.stats.elastic.backlog_bytes, 1, 60000)
