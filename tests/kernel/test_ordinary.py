# SPDX-License-Identifier: GPL-2.0
"""Ordinary traffic beside media that takes all it can: a game, a shell, one download; and voice
beside what no flow is counted for, such as DNS and RTCP.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from time import sleep

import pytest

from checks import within
from guest import Task, Wire, together
from traffic import Listener, followers, transfer

GAME = {"port": 9000, "rate": 48e3, "size": 100}  # 60 packets a second, no RTP


@pytest.fixture
def far(wire: Wire) -> Iterator[Wire]:
    """The wire with a round trip of 40 ms, so that TCP has a window to fill."""
    wire.b.tc("qdisc add dev b0 root netem delay 40ms limit 10000")
    yield wire
    wire.b.tc("qdisc del dev b0 root")


def download(wire: Wire, seconds: float, flows: int = 1) -> Task:
    """TCP from a to b, as fast as it goes."""
    return wire.task(transfer, wire, wire.b, seconds, flows)


@pytest.mark.parametrize("rate", (3e6, 2.5e6, 0.9e6))
def test_a_game(wire: Wire, rate: float) -> None:
    """Three streams in bursts of 12 packets, above the link, just below, and well below it."""
    wire.queue("paqm bandwidth 8mbit")
    media = [wire.send("rtp", port=port, rate=rate, seconds=8, burst=12)
             for port in (5004, 5005, 5006)]
    with Listener(wire.b, 9000) as heard, together(*media, wire.send("quic", **GAME, seconds=8)):
        sleep(3)
        heard.forget()
    within("a packet of the game waits at most so many us", heard.most[9000], 0, 3000)
    within("and all come", heard.came[9000], 295, 305)


@pytest.mark.parametrize("floods", (2, 4))
def test_one_download(far: Wire, floods: int) -> None:
    """It is one flow of several, and its queue runs dry now and then; theirs never do."""
    far.queue("paqm bandwidth 10mbit")
    media = [far.send("rtp", port=7000 + n, rate=6e6, seconds=15) for n in range(floods)]
    with together(*media, download(far, 15)):
        sleep(4)
        before = far.stats.elastic.sent_bytes
        sleep(10)
        bits = (far.stats.elastic.sent_bytes - before) * 8 // 10
    within("of its fair share it has, per cent", bits * (floods + 1) // 100_000, 80, 110)


def test_a_stream_beside_flows_that_want_little(far: Wire) -> None:
    """Two downloads and three calls in tunnels of 0.5 Mbit/s leave a stream 2.1 Mbit/s."""
    far.queue("paqm bandwidth 8mbit")
    calls = [far.send("quic", port=9000 + n, rate=0.5e6, seconds=12) for n in range(3)]
    with Listener(far.b, 5004) as heard, together(
        *calls, download(far, 12, 2), far.send("rtp", rate=1.9e6, seconds=12, burst=6)
    ):
        sleep(4)
        heard.forget()
    within("it loses nothing", heard.came[5004], 1890, 1910)
    within("and waits at most so many us", heard.most[5004], 0, 20000)


def crowd(to: str, flows: int, seconds: float) -> None:
    """So many flows that send a packet now and then, ten of them at once; 3.5 Mbit/s in all."""
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(flows)]
    for n in range(int(seconds / 0.0331)):
        for one in range(10):
            sockets[(10 * n + one) % flows].sendto(b"\x40" * 1400, (to, 9000))
        sleep(0.0331)


@pytest.mark.parametrize("seed", (1, 5, 12))
def test_voice_beside_a_crowd(wire: Wire, seed: int) -> None:
    """Of 200 flows each packet is a rare one; all of them do not go ahead together."""
    wire.queue(f"paqm bandwidth 5mbit seed {seed}")
    sleep(seed * 0.071)  # against the rounds
    with Listener(wire.b, 5004) as heard, together(
        wire.task(crowd, "10.1.0.2", 200, 16),
        wire.send("rtp", rate=20e3, size=80, seconds=16),
    ):
        sleep(6)
        heard.forget()
    within("voice waits at most so many us", heard.most[5004], 0, 9300)  # four packets of theirs
    within("and loses nothing", heard.came[5004], 310, 315)


@pytest.mark.parametrize("streams, flows", ((0, 20), (2, 20), (2, 4)))
def test_voice_beside_what_is_not_counted(far: Wire, streams: int, flows: int) -> None:
    """STUN that nearly uses up its budget, TCP, and streams that send twice their share."""
    far.queue("paqm bandwidth 8mbit")
    media = [far.send("rtp", port=7000 + n, rate=16e6 / (3 + flows), seconds=10)
             for n in range(streams)]
    with Listener(far.b, 5004) as heard, together(
        *media, download(far, 10, flows),
        far.send("stun", port=8000, rate=0.33e6, size=300, seconds=10),
        far.send("rtp", rate=64e3, size=160, seconds=10),
    ):
        sleep(4)
        heard.forget()
    within("voice waits at most so many us", heard.most[5004], 0, 5000)
    within("and loses nothing", heard.came[5004], 295, 305)


@pytest.mark.parametrize("floods", (0, 1))
def test_streams_in_fragments(far: Wire, floods: int) -> None:
    """Three streams whose packets the host itself cuts, beside four downloads and a flood that is
    cut as well: of a datagram only the first part says that it is RTP.
    """
    far.queue("paqm bandwidth 8mbit")
    far.ip("link set a0 mtu 576")
    far.b.sysctl(ipv4__ipfrag_time=1)  # what the flood has lost fills b's memory else
    try:
        media = [far.send("rtp", port=port, rate=0.8e6, seconds=10)
                 for port in (5004, 5005, 5006)]
        media += [far.send("rtp", port=6000, rate=8e6, seconds=10)] * floods
        with Listener(far.b, 5004, 5005, 5006, 6000) as heard, together(
            *media, download(far, 10, 4),
        ):
            sleep(4)
            heard.forget()
    finally:
        far.ip("link set a0 mtu 1500")
        far.b.sysctl(ipv4__ipfrag_time=30)
    for port in (5004, 5005, 5006):
        within("packets that come, per cent", round(heard.came[port] / 6), 98, 102)
        within("the longest wait, us", heard.most[port], 0, 30_000)
        within("out of order", heard.late[port], 0, 0)
    if floods:  # of each datagram that loses a part the other one was sent in vain
        within("of the flood's fair share comes, per cent", round(heard.came[6000] / 6), 40, 120)


@pytest.mark.parametrize("rate, burst, streams, most_ms", (
    (1.2e6, 1, 1.7e6, 3), (1.2e6, 6, 1.7e6, 10), (1.2e6, 6, 3e6, 10),
))
def test_a_call_in_a_tunnel(
    far: Wire, rate: float, burst: int, streams: float, most_ms: int
) -> None:
    """It is an elastic flow, below its share: media, in bursts of 12 packets, does not run ahead of
    it; nor does it beside streams above theirs.
    """
    far.queue("paqm bandwidth 8mbit")
    media = [far.send("rtp", port=port, rate=streams, seconds=10, burst=12)
             for port in (5004, 5005, 5006)]
    with Listener(far.b, 9000) as heard, together(
        *media, far.send("quic", port=9000, rate=rate, burst=burst, seconds=10),
    ):
        sleep(4)
        heard.forget()
    within("a packet of the call waits at most so many us", heard.most[9000], 0, most_ms * 1000)
    within("and all come, per cent", round(heard.came[9000] * 8000 / rate / 6 * 100), 99, 101)


@pytest.mark.parametrize("rate", (2.5e6, 3.5e6))
def test_a_game_beside_a_chat(wire: Wire, rate: float) -> None:
    """And beside 5 kB five times a second, and streams that fill the link."""
    wire.queue("paqm bandwidth 8mbit")
    media = [wire.send("rtp", port=port, rate=rate, seconds=10, burst=12)
             for port in (5004, 5005, 5006)]
    chat = wire.send("quic", port=8443, rate=200e3, burst=5, seconds=10)
    with Listener(wire.b, 9000) as heard, together(
        *media, chat, wire.send("quic", **GAME, seconds=10)
    ):
        sleep(4)
        heard.forget()
    within("a packet of the game waits at most so many us", heard.most[9000], 0, 5000)


def test_a_game_beside_pages(far: Wire) -> None:
    """And beside streams whose bursts fill what pages leave."""
    far.queue("paqm bandwidth 8mbit")
    media = [far.send("rtp", port=port, rate=1.7e6, seconds=10, burst=12)
             for port in (5004, 5005, 5006)]
    with Listener(far.b, 9000) as heard, together(
        *media, far.send("quic", **GAME, seconds=10), pages(far, 10),
    ):
        sleep(4)
        heard.forget()
        heard.ways.clear()
    waits = sorted(way for _, way in heard.ways)
    within("the game waits at p95, us", waits[len(waits) * 95 // 100], 0, 8000)
    within("and all come", heard.came[9000], 355, 365)


def page(to: str, size: int) -> None:
    """A connection that brings so many bytes."""
    with socket.create_connection((to, 5301)) as sock:
        sock.sendall(bytes(size))
        sock.shutdown(socket.SHUT_WR)
        sock.recv(1)


def pages(wire: Wire, seconds: float) -> Task:
    """Ten connections a second of 30 kB each."""
    def server() -> None:
        with socket.create_server(("10.1.0.2", 5301), backlog=100) as listener:
            for _ in range(round(10 * seconds)):
                Task("b", take, listener.accept()[0])

    def take(peer: socket.socket) -> None:
        with peer:
            while peer.recv(1 << 16):
                pass

    def browser() -> None:
        sleep(0.1)
        for _ in range(round(10 * seconds)):
            wire.task(page, "10.1.0.2", 30000)
            sleep(0.1)

    wire.b.task(server)
    return wire.task(browser)


def test_streams_beside_pages_and_a_download(far: Wire) -> None:
    """Three streams of 2 Mbit/s within their share of 12, as pages of 2.4 Mbit/s and one download
    leave it: a connection counts while it brings something.
    """
    far.queue("paqm bandwidth 12mbit")
    ports = (5004, 5005, 5006)
    with Listener(far.b, *ports) as heard, together(
        *(far.send("rtp", port=port, rate=1.9e6, seconds=12) for port in ports),
        download(far, 12), pages(far, 12),
    ):
        sleep(4)
        heard.forget()
    within("packets of the streams that come, per cent",
           round(100 * sum(heard.came.values()) / (3 * 1.9e6 / 8000 * 8)), 93, 101)


@pytest.mark.parametrize("bandwidth, streams, rate", ((100, 2, 25e6), (8, 1, 2.7e6)))
def test_a_stream_that_never_answers(
    far: Wire, bandwidth: int, streams: int, rate: float
) -> None:
    """It is 4 or 5 % above its share and heeds nothing: its queue stands no longer than CoDel has
    it, as no more ramps are shown to it, also where CoDel empties it now and then.
    """
    far.queue(f"paqm bandwidth {bandwidth}mbit")
    ports = (5004, 5005)[:streams]
    with Listener(far.b, 5004) as heard, together(
        *(far.send("rtp", port=port, rate=rate, seconds=28, burst=12) for port in ports),
        download(far, 28, 2),
    ):
        sleep(16)
        heard.ways.clear()
    waits = sorted(way for _, way in heard.ways)
    within("a packet waits so many us, median", waits[len(waits) // 2], 0, 50000)


@pytest.mark.parametrize("rate, least", ((1.6e6, 94), (1.7e6, 88)))
def test_streams_a_little_above_their_share(far: Wire, rate: float, least: int) -> None:
    """Three that heed nothing, beside two downloads: no one of them pays for the others."""
    far.queue("paqm bandwidth 8mbit")
    ports = (5004, 5005, 5006)
    with Listener(far.b, *ports) as heard, together(
        *(far.send("rtp", port=port, rate=rate, seconds=47, burst=12) for port in ports),
        download(far, 47, 2),
    ):
        sleep(35)
        heard.forget()
    come = [round(100 * heard.came[port] / (rate / 8000 * 12)) for port in ports]
    within("of the one that fares worst arrives, per cent", min(come), least, 100)
    within("and of the best, points more", max(come) - min(come), 0, 2)


@pytest.mark.parametrize("streams, rate, half_ms", ((8, 0.3e6, 320), (4, 0.7e6, 170)))
def test_streams_far_above_a_slow_share(
    wire: Wire, streams: int, rate: float, half_ms: int
) -> None:
    """They heed nothing; a picture of six packets may wait, but no queue stands as long."""
    wire.queue("paqm bandwidth 1mbit")
    ports = range(7000, 7000 + streams)
    with Listener(wire.b, *ports) as heard, together(
        *(wire.send("rtp", port=port, rate=rate, burst=6, seconds=26) for port in ports),
    ):
        sleep(12)
        heard.forget()
        heard.ways.clear()
        sleep(12)
    ways = sorted(way for _, way in heard.ways)
    within("half of the packets wait at most so many us", ways[len(ways) // 2], 0, half_ms * 1000)
    within("and all at most", ways[-1], 0, half_ms * 2000)
    bits = sum(heard.came.values()) * 8000 / 13
    within("the link is used, per cent", round(bits / 10_000), 90, 106)


@pytest.mark.parametrize("rate, least", ((1.8e6, 95), (3e6, 70)))
def test_a_stream_beside_modest_ones(wire: Wire, rate: float, least: int) -> None:
    """It heeds nothing, and has what six others leave, which is more than it is told: previews of
    its rate, in which the link is idle, are not shown to it again and again.
    """
    wire.queue("paqm bandwidth 8mbit")
    with Listener(wire.b, 5004) as heard, together(
        *(wire.send("rtp", port=7000 + n, rate=0.9e6, burst=5, seconds=20) for n in range(6)),
        wire.send("rtp", rate=rate, burst=10, seconds=20),
    ):
        sleep(8)
        heard.forget()
    within("packets that come, per cent", round(heard.came[5004] / (rate / 8000 * 12) * 100),
           least, 101)


def test_streams_after_a_crowd(wire: Wire) -> None:
    """Their share was one packet in most of a second: they hear all the same when it grows."""
    how = {"law": "erf", "sizes": 1200, "max": 3e5, "lag": 0.05}
    wire.queue("paqm bandwidth 256kbit feedback icmp")
    with followers(wire, "10.1.0.2", port=5004, sport=20000, flows=2, rate=1e5, stop=28, **how):
        sleep(6)
        with followers(wire, "10.1.0.2", port=7004, sport=30000, flows=20, rate=4e5, stop=10,
                       **how):  # fmt: skip
            sleep(8)
            within("as long as there are 22 streams each has, kbit/s",
                   wire.stats.fair_rate_bps / 1000, 8, 40)  # fmt: skip
        sleep(5)
        before = wire.stats.media.sent_bytes
        sleep(5)
        bits = (wire.stats.media.sent_bytes - before) * 8
    within("then two streams use the link, per cent", round(bits / 5 / 2560), 90, 103)


@pytest.mark.parametrize("pictures", (1, 2, 5))
def test_cameras_of_few_pictures(wire: Wire, pictures: int) -> None:
    """Ten take half of the link, by a picture now and then: the rest is for those who follow."""
    wire.queue("paqm bandwidth 8mbit feedback icmp")
    camera = {"sizes": 1200, "rate": 4e5, "frame": round(4e5 / pictures / 9600), "stop": 22}
    with together(followers(wire, "10.1.0.2", port=5004, sport=20000, flows=2, law="erf",
                            sizes=1200, rate=4e6, max=3e6, lag=0.05, stop=22),
                  *(followers(wire, "10.1.0.2", port=6004, sport=30000 + n,
                              start=n * 0.618 % 1 / pictures, **camera) for n in range(10))):
        sleep(6)
        before = wire.stats
        sleep(15)
        now = wire.stats
    bits = (now.media.sent_bytes - before.media.sent_bytes) * 8
    within("use of the link, per cent", round(bits / 15 / 8e4, 1), 85, 99)
    within("mean wait of the common queue, ms",
           round((now.media.sojourn_sum_ns - before.media.sojourn_sum_ns) / 1e6
                 / (now.media.sent_packets - before.media.sent_packets), 1), 0, 5)
    within("packets lost of the cameras' 6,250", now.drops - before.drops, 0, 190)


def test_cameras_in_step(wire: Wire) -> None:
    """Pictures of four come together: that is no overload, and the rest is for those who follow."""
    wire.queue("paqm bandwidth 8mbit feedback icmp")
    camera = {"sizes": 1250, "rate": 1e6, "frame": 4, "stop": 22}
    with together(followers(wire, "10.1.0.2", port=5004, sport=20000, flows=2, law="erf",
                            sizes=1200, rate=4e6, max=3e6, lag=0.05, stop=22),
                  *(followers(wire, "10.1.0.2", port=6004, sport=30000 + n, start=n * 0.005,
                              **camera) for n in range(4))):
        sleep(6)
        before = wire.stats
        sleep(15)
        now = wire.stats
    bits = (now.media.sent_bytes - before.media.sent_bytes) * 8
    within("use of the link, per cent", round(bits / 15 / 8e4, 1), 90, 99)
    within("times that it was overloaded", now.overload_episodes - before.overload_episodes, 0, 5)


@pytest.mark.parametrize("target", ("60ms", "200ms"))
def test_streams_that_are_steered_to_a_long_queue(far: Wire, target: str) -> None:
    """They make the queue that is wanted, and lose nothing for it."""
    how = {"law": "erf", "sizes": 1200, "max": 8e6, "lag": 0.05, "rate": 1e5, "stop": 20}
    far.queue(f"paqm bandwidth 4mbit feedback icmp media-target {target}")
    with together(followers(far, "10.1.0.2", port=5004, sport=20000, flows=3, **how),
                  download(far, 20, 2)):
        sleep(10)
        before = far.stats
        sleep(9)
        now = far.stats
    within("packets lost in overflow queues",
           now.over_drop_packets - before.over_drop_packets, 0, 0)  # fmt: skip
    within("and in the common one", now.media.drop_inner_packets - before.media.drop_inner_packets,
           0, 0)  # fmt: skip


@pytest.mark.parametrize("line", ("", "overhead 18 linklayer atm"))
def test_packets_of_two_sizes(wire: Wire, line: str) -> None:
    """Each flow has half of the link, although IP has less of that in small packets."""
    wire.queue(f"paqm bandwidth 1mbit {line} feedback icmp")
    how: dict[str, object] = {"law": "erf", "rate": 1e5, "max": 3e6, "lag": 0.05, "stop": 20}
    with together(followers(wire, "10.1.0.2", port=5004, sport=20000, sizes=1240, **how),
                  followers(wire, "10.1.0.2", port=5005, sport=20001, sizes=150, **how)):
        sleep(8)
        before = wire.stats
        sleep(10)
        now, flows = wire.stats, wire.tc("-s class show dev a0")
    rates = [float(rate) for port in (5004, 5005)
             for rate in re.findall(rf":{port}\n +rate ([0-9.]+)Kbit", flows)]  # fmt: skip
    within("the link is used, per cent", round(sum(rates) / 10), 92, 99)
    within("of which small packets have, per mille", round(1000 * rates[1] / sum(rates)), 485, 515)
    within("none is lost", now.drops - before.drops, 0, 0)
    within("none is beyond its rate", now.over_packets - before.over_packets, 0, 0)
