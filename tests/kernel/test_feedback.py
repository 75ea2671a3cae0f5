# SPDX-License-Identifier: GPL-2.0
"""Messages and echo requests as hosts see them: who is told and who is not, IPv4 and IPv6,
prefixes, the budget and its division, RTTs that are measured and RTTs that are made up, namespaces
and modules that go while requests are under way. The guest fails on any report of the kernel.
"""

from __future__ import annotations

import contextlib
import socket
from collections import Counter
from collections.abc import Iterator
from time import monotonic, sleep
from typing import Any

import pytest

import peers
from checks import check, within, works
from guest import TC_TESTS, Host, Task, load, made, together, unload
from paqm_lab import topology
from paqm_lab.topology import Network, netem

R, V = Host("r"), Host("v")
S = [Host(f"s{n}") for n in (1, 2, 3)]
TO, TO6 = "10.0.9.2", "2001:db8:9::2"
DELAYS = (10, 50, 20)  # ms, there and back each: half the RTT of a sender
ALL = ("notices_sent", "notices_refused", "notices_failed",
       "echo_sent", "echo_refused", "echo_failed")
MESSAGE = 132  # bytes, on Ethernet


def ways(n: int) -> list[tuple[str, str]]:
    """Addresses of link n, the router's first."""
    return [(f"10.0.{n}.1", f"10.0.{n}.2"), (f"2001:db8:{n}::1/64", f"2001:db8:{n}::2/64")]


def laid_out() -> Network:
    """Hosts s1, s2, s3 -- router r -- receiver v, the queue at rv. RTT from r: 20, 100, 40 ms."""
    net = Network()
    for host in (R, V, *S):
        net.host(host.name, host is R, True)
    net.link("r", "v", devices=("rv", "vr"), addresses=ways(9))
    for n, (host, delay) in enumerate(zip(S, DELAYS, strict=True), 1):
        net.link("r", host.name, delay, devices=(f"rs{n}", "sr"), addresses=ways(n))
    for n, host in ((9, V), *enumerate(S, 1)):
        net.route(host.name, "default", f"10.0.{n}.1")
        net.route(host.name, "::/0", f"2001:db8:{n}::1")
    return net


NET = laid_out()
MAC = NET.links[0].right.mac  # of v


@pytest.fixture(scope="module", autouse=True)
def network(modules: None) -> Iterator[None]:
    with made(NET):
        yield


@pytest.fixture(autouse=True)
def queue(network: None) -> Iterator[None]:
    """A new queue, which has no patience with any host to lose yet."""
    fresh()
    yield
    R.tc("qdisc del dev rv root")


def fresh(words: str = "bandwidth 20mbit feedback icmp rtt auto") -> None:
    if any(q.kind == "paqm" for q in R.qdiscs("rv")):
        R.tc("qdisc del dev rv root")
    R.tc(f"qdisc add dev rv root handle 1: paqm {words}")


def change(words: str) -> None:
    R.tc(f"qdisc change dev rv root handle 1: paqm {words}")


def stats() -> Any:
    return R.paqm("rv")


class Since:
    """How much the queue's counters have grown."""

    def __init__(self) -> None:
        self.before = stats()

    def __getattr__(self, name: str) -> int:
        return int(getattr(stats(), name) - getattr(self.before, name))


def media(n: int, seconds: float, to: str = TO, **how: Any) -> Task:
    """What host n sends, see peers.send."""
    return S[n - 1].task(peers.send, to, seconds, **how)


def slow(n: int, seconds: float) -> Task:
    return media(n, seconds, rate=8e4)


def watch(n: int, seconds: float, **how: Any) -> Task:
    """What host n is told, see peers.watch."""
    return S[n - 1].task(peers.watch, seconds, [f"10.0.{n}.2", f"2001:db8:{n}::2"], **how)


def answers(n: int, on: bool) -> None:
    """Whether the kernel of host n answers echo requests over IPv4."""
    S[n - 1].sysctl(ipv4__icmp_echo_ignore_all=int(not on))


@pytest.fixture
def quiet() -> Iterator[None]:
    """The kernel of host 3 does not answer."""
    answers(3, False)
    yield
    answers(3, True)


def test_notices_over_both_versions() -> None:
    """RTTs of 20 and 100 ms."""
    told = {n: watch(n, 15) for n in (1, 2)}
    with together(*(media(n, 15, to) for n in told for to in (TO, TO6))):
        sleep(2)
        grown = Since()
        sleep(10)
        seen = stats()
    within("the farthest source, us", seen.rtt_max_us, 100000, 104000)
    within("the mean of two at 20 and two at 100 ms, us", seen.rtt_mean_us, 60000, 63000)
    within("sources that answered", seen.rtt_samples, 4, 4)
    within("the outer loop waits for the farthest, us", seen.skip_us, 100000, 104000)
    within("unknown replies", seen.echo_unknown, 0, 0)
    for n, task in told.items():
        got = task.wait()
        within(f"host {n}: messages over IPv4", got.v4, 20, 300)
        within(f"host {n}: messages over IPv6", got.v6, 20, 300)
        within(f"host {n}: messages that prove nothing", got.wrong, 0, 0)
        within(f"host {n}: echo requests", got.echo4 + got.echo6, 10, 40)
        check(f"host {n}: they came from the router",
              got.sources == {f"10.0.{n}.1", f"2001:db8:{n}::1"}, got.sources)
        check(f"host {n}: no message is tagged", got.order == ["none"], got.order)
    within("requests that are not answered are under way",
           stats().echo_sent - stats().echo_answered, 0, 1)
    # a new queue saves up for its first messages: those of the beginning may be overtaken
    within("all that was owed was told", grown.notices_owed - grown.notices_sent, 0, 3)


def test_tags() -> None:
    """Over both versions, and keys that change while messages are under way."""
    old = "7:000102030405060708090a0b0c0d0e0f"
    new = "65535:f0e1d2c3b4a5968778695a4b3c2d1e0f"
    change(f"key {old}")
    sleep(1)  # what was sent before is under way for 100 ms
    told = watch(1, 12, keys=(old, new))
    with media(1, 12), media(1, 12, TO6):
        sleep(4)
        change(f"key {new}")
        sleep(4)
        shown = stats().options.key
        change("key none")
    got = told.wait()
    check("the old key, then the new one, then none, with no gap",
          got.order == ["7", "65535", "none"], got.order)
    within("messages with the old key", got.tags["7"], 20, 100)
    within("messages with the new key", got.tags["65535"], 20, 100)
    within("over IPv6", got.v6, 30, 200)
    within("messages that prove nothing", got.wrong, 0, 0)
    within("the id is shown", shown, 65535, 65535)
    change(f"key {new}")
    all_shown = "".join(R.tc(f"{words} dev rv") for words in (
        "-s -d qdisc show", "-s -d -j qdisc show", "-s class show"))
    all_shown += R.run(TC_TESTS / "rtnl.py", "show", "rv")
    check("the key is shown nowhere", new.partition(":")[2] not in all_shown.lower(), all_shown)


def test_a_flow_joins() -> None:
    """And after a silence anew: a round of its own, which tells it to hold."""
    fresh("bandwidth 20mbit feedback icmp law ecf")
    media(1, 1, port=9002).wait()  # a new source's part of the budget starts empty
    sleep(1)
    for time in ("first", "second"):
        grown = Since()
        told = watch(1, 3)
        media(1, 2).wait()
        got = told.wait()  # a second of silence more
        within(f"{time}: rounds because it joins", grown.event_flow_rounds, 1, 1)
        within(f"{time}: relative value of its first message", got.values[0], 1, 1)
        # alpha of what is free and 31 kbit/s for the empty queue, on the IP layer: 528 bytes of 542
        within(f"{time}: of the next ones, an increase", min(got.values[1:]), 8.7e6, 9.0e6)
        within(f"{time}: messages", got.v4, 5, 12)


def test_who_is_quiet(quiet: None) -> None:
    """It is asked ever more rarely, and does not count."""
    told = {n: watch(n, 45) for n in (3, 1)}
    with slow(3, 45), slow(1, 45):
        sleep(43)
        seen = stats()
    within("only the source that answers counts", seen.rtt_samples, 1, 1)
    within("its RTT, us", seen.rtt_max_us, 20000, 22000)
    within("requests to the quiet host in 45 s", told[3].wait().echo4, 2, 6)
    within("requests to the other", told[1].wait().echo4, 18, 40)


@pytest.mark.parametrize("how", [{"how": "nonce"}, {"how": "seq"}, {"source": "10.0.3.7"}],
                         ids=["nonce", "seq", "source"])
def test_replies_that_nobody_asked_for_like_this(quiet: None, how: dict[str, str]) -> None:
    S[2].ip("addr replace 10.0.3.7/24 dev sr")
    forged = S[2].task(peers.answer, 62, **how)
    slow(3, 60).wait()
    got, seen = forged.wait(), stats()
    within("host 3 was asked", got.replied, 3, 20)
    within("false replies were counted", seen.echo_unknown, got.replied, got.replied)
    within("and believed by nobody", seen.rtt_samples, 0, 0)


def test_late_replies(quiet: None) -> None:
    late = S[2].task(peers.answer, 45, delay=3)
    slow(3, 40).wait()
    got, seen = late.wait(), stats()
    within("an answer after 3 s is late: no measurement", seen.rtt_samples, 0, 0)
    within("the host was asked", got.asked, 3, 20)
    within("its answers are not unknown", seen.echo_unknown, 0, 0)
    within("but late", seen.echo_late, 3, 20)


def test_two_answers_to_one_request() -> None:
    second = S[2].task(peers.answer, 29)
    with slow(3, 30):
        asked = second.wait().asked
        within("true answers, us", stats().rtt_max_us, 40000, 42000)
    within("every second answer to one request counted as unknown", stats().echo_unknown,
           asked - 1, asked)
    within("of how many", asked, 8, 40)


def test_many_hosts_that_do_not_answer(quiet: None) -> None:
    """200 of them keep nobody from being asked."""
    for n in range(20, 220):
        S[2].ip(f"addr add 10.0.3.{n}/24 dev sr")
    one = slow(1, 18)
    sleep(4)
    grown = Since()
    with media(3, 14, flows=200, source="10.0.3.20", rate=1.6e6, size=200):
        sleep(2)
        told, later = watch(1, 11), Since()
        sleep(10)
        within("the budget was short", grown.echo_limited, 50, 1000)
        within("requests in 10 s", later.echo_sent, 80, 125)
    one.wait()
    within("host 1 was asked as ever, in 11 s", told.wait().echo4, 4, 9)
    within("and is known", stats().rtt_samples, 1, 1)


def inject(source: str, to: str = TO6) -> Since:
    """Media with this source into the queue; what that has grown the counters by."""
    grown = Since()
    R.task(peers.inject, "rv", MAC, source, to).wait()
    sleep(0.5)
    return grown


@pytest.mark.parametrize("source", ["ff02::1", "ff0e::5", "::", "::1", "::ffff:10.0.1.2",
                                    "::10.0.1.2", "fe80::1234", "2001:db8:1::"])
def test_sources_that_must_not_be_answered(source: str) -> None:
    grown = inject(source)
    within(f"refused to tell {source}", grown.notices_refused, 1, 20)
    within("told nobody", grown.notices_sent, 0, 0)


def test_the_routers_own_address() -> None:
    """On the link of the queue: it may be told."""
    shown = R.ip("-6 -o addr show dev rv scope link")
    grown = inject(shown.split("inet6 ")[1].partition("/")[0])
    within("the router itself is told", grown.notices_sent, 1, 20)


@pytest.mark.parametrize("to", ["239.1.1.1", "10.0.9.255", "ff0e::77"])
def test_media_for_many_hosts(to: str) -> None:
    """Every router on its ways would speak."""
    R.ip("route replace 239.0.0.0/8 dev rv")
    if ":" in to:
        grown = inject("2001:db8:1::2", to)
    else:
        grown = Since()
        R.task(peers.send, to, 2).wait()
    within(f"refused to speak of media for {to}", grown.notices_refused, 1, 100)
    within("told nobody", grown.notices_sent, 0, 0)
    R.ip("route del 239.0.0.0/8 dev rv")


@pytest.mark.parametrize("words", [6, 24, 25])
def test_what_a_browser_sends(words: int) -> None:
    """The header extension is quoted whole, and 16 bytes behind it."""
    fresh("bandwidth 20mbit feedback icmp")
    told = watch(1, 4)
    with media(1, 3, extension=words), media(1, 3, TO6, port=7000, extension=words):
        pass
    got = told.wait()
    if words < 25:
        within("messages over IPv4", got.v4, 5, 30)
        within("and over IPv6", got.v6, 5, 30)
    else:  # the quote would have 132 bytes of payload
        within("told nobody", got.v4 + got.v6, 0, 0)
        within("and counted", stats().notices_unfit_packets, 10, 1000)
    within("wrong ones", got.wrong, 0, 0)


def test_small_packets_of_many_flows() -> None:
    """They draw no more than they bring."""
    fresh("bandwidth 1gbit feedback icmp rtt 100ms")
    sleep(1)
    grown = Since()
    media(3, 10, flows=100, port=9000, size=28, rate=9e4).wait()  # 4 a second
    within("messages to their sender", grown.notices_sent, 100, 3000)
    within("bytes of messages, part of the bytes that drew them",
           MESSAGE * grown.notices_sent / grown.bytes, 0.1, 0.5)


def test_what_cannot_be_quoted() -> None:
    """It is looked at now and then."""
    S[0].task(peers.odd, TO, "options", 2000, 0.001).wait()
    within("packets of 2 s that were looked at for a quote", stats().notices_unfit_packets, 20, 125)
    fresh()
    S[0].task(peers.odd, TO, "small", 400, 0.04).wait()
    within("messages in 4 s of pictures that begin with a small packet", stats().notices_sent,
           10, 20)


def test_prefixes() -> None:
    change("feedback-to 10.0.1.0/24,2001:db8:2::/47")
    told = [watch(n, 5) for n in (1, 2, 3)]
    with together(*(media(n, 5, to) for n in (1, 2, 3) for to in (TO, TO6))):
        pass
    one, two, three = (task.wait() for task in told)
    within("host 1 is told over IPv4", one.v4, 5, 100)
    within("and not over IPv6", one.v6, 0, 0)
    within("host 2 is not told over IPv4", two.v4, 0, 0)
    within("but over IPv6", two.v6, 5, 100)
    within("host 3 is not told over IPv4", three.v4, 0, 0)
    within("but over IPv6", three.v6, 5, 100)
    within("nor asked over IPv4", three.echo4, 0, 0)
    within("refusals", stats().notices_refused, 15, 300)


def test_a_flow_joins_a_crowd_that_is_not_told() -> None:
    """Where telling all flows takes long, one that joins hears nothing before it is known; but
    those outside of the prefixes are not told, and take no time.
    """
    fresh("bandwidth 8mbit feedback icmp rtt 100ms feedback-to 10.0.1.0/24")
    with media(3, 9, flows=100, port=9000, size=200, rate=2e6):
        sleep(6)
        told = watch(1, 2)
        media(1, 2).wait()
        within("its first message, ms", told.wait().first_ms, 20, 350)


def test_a_host_with_many_flows() -> None:
    """200 of them leave the other its part."""
    fresh("bandwidth 4mbit feedback icmp rtt auto")
    with media(1, 14, flows=200, port=9000, rate=2e6, size=200), media(2, 14):
        sleep(2)
        grown = Since()
        told = watch(2, 10).wait()
        within("the budget was short", grown.notices_limited, 100, 100000)
        # 0.5 % of 4 Mbit/s are 18.9 messages in a second
        within("messages in 10 s", grown.notices_sent, 150, 200)
        # nothing changes, so its flow is reminded every 1.5 s; by lot it would have had one in 10 s
        within("the other host's in 10 s", told.v4, 6, 10)


def wobble(seconds: float) -> None:
    """A flow that is there for every other second, so that rates keep changing."""
    for _ in range(round(seconds / 2)):
        peers.send(TO, 1, port=7000, rate=3e6)
        sleep(1)


def pauses(seconds: float) -> dict[int, float]:
    """The longest time that each flow of a host is not told, by the port of its end."""
    last: dict[int, float] = {}
    longest: dict[int, float] = {}
    begin = monotonic()
    with peers.raw_icmp() as sock:
        while (left := begin + seconds - monotonic()) > 0:
            sock.settimeout(left)
            with contextlib.suppress(TimeoutError):
                data = sock.recv(2048)
                if b"PAQM" not in data:
                    continue
                port, now = int.from_bytes(data[50:52], "big"), monotonic()
                longest[port] = max(longest.get(port, 0.0), now - last.get(port, begin))
                last[port] = now
    return {port: max(longest[port], begin + seconds - last[port]) for port in last}


@pytest.mark.parametrize(("viewers", "words", "a_second"), [
    (80, "bandwidth 8mbit", 8e6 / 8 / 200 / MESSAGE),  # short of bytes
    (450, "bandwidth 1gbit period 100ms", 1500),  # of messages
])
def test_flows_of_a_host_take_turns(viewers: int, words: str, a_second: float) -> None:
    """A server sends each picture to all its viewers in the same order, and the budget is short:
    the last of them are told as often as the first.
    """
    fresh(f"{words} feedback icmp rtt 100ms")
    once = viewers / a_second  # seconds that a message for each takes
    how: dict[str, Any] = {"flows": viewers, "burst": viewers, "port": 9000, "size": 200}
    watched = max(5 * once, 4)
    with (media(1, 5 + 2 * watched, rate=viewers * 30e3, **how),
          S[2].task(wobble, 4 + 2 * watched)):
        sleep(4 + watched / 2)
        found = S[0].task(pauses, watched).wait()
    within("viewers that were told", len(found), viewers, viewers)
    within("the longest pause, s", max(found.values()), once / 2, 2 * once + 0.2)


def addresses_told(seconds: float) -> set[str]:
    """Those of a host that messages come to."""
    found: set[str] = set()
    end = monotonic() + seconds
    with peers.raw_icmp() as sock:
        while (left := end - monotonic()) > 0:
            sock.settimeout(left)
            with contextlib.suppress(TimeoutError):
                data = sock.recv(2048)
                if b"PAQM" in data:
                    found.add(socket.inet_ntoa(data[16:20]))
    return found


@pytest.mark.parametrize(("hosts", "mbit"), [(300, 8), (400, 20), (560, 40)])
def test_a_crowd(hosts: int, mbit: int) -> None:
    """All its hosts are told, though the budget is short all the time: those that send more than
    the fair rate, too, and those that find no place in the table of sources.
    """
    net = f"10.{hosts // 10}.0.0/16"
    S[2].ip(f"route add local {net} dev lo")
    R.ip(f"route add {net} via 10.0.3.2")
    fresh(f"bandwidth {mbit}mbit feedback icmp rtt 100ms")
    once = hosts * MESSAGE / (mbit * 1e6 / 8 / 200)  # seconds that a message for each takes
    most = 2 + 3 * once  # flows are known after two; who shares a part may wait for another's turn
    with media(3, most, flows=hosts, port=9000, source=net.replace("0/16", "1"), rate=hosts * 43e3,
               size=300):
        told = S[2].task(addresses_told, most).wait()
    within("the budget was short", stats().notices_limited, hosts, 100000)
    within("hosts that were told", len(told), hosts, hosts)
    R.ip(f"route del {net}")
    S[2].ip(f"route del local {net} dev lo")


def test_invented_sources() -> None:
    """8,000 do not push out a host that speaks once in a while."""
    R.ip("route add 10.66.0.0/16 via 10.0.3.2")
    media(1, 4).wait()
    within("its RTT, us", stats().rtt_max_us, 20000, 22000)
    with S[2].task(peers.invent, TO, "10.66.0.1", 22):
        sleep(8)
        # one of the invented ones would have been told in its place after 2 s
        within("8 s of them later it is known, us", stats().rtt_max_us, 20000, 22000)
        grown = Since()
        told = watch(1, 12)
        # less than its fair rate, some 38 kbit/s: who sends more is told more rarely
        media(1, 12, rate=24000, size=200).wait()
        got = told.wait()
        within("messages in 12 s", grown.notices_sent, 600, 1280)
        # it is reminded every 1.5 s: nothing that it was told gets as old as the 3 s it holds for
        within("the host's first, after ms", got.first_ms, 0, 1000)
        within("its longest pause, ms", got.pause_ms, 100, 2000)
        within("RTT, us", stats().rtt_max_us, 20000, 22000)
    R.ip("route del 10.66.0.0/16")


def test_what_the_way_back_drops() -> None:
    """On this host it has failed: nobody refused it."""
    R.tc("qdisc replace dev rs1 root bfifo limit 10")  # every packet is too long
    media(1, 4).wait()
    R.tc(f"qdisc replace dev rs1 root {' '.join(netem(DELAYS[0]))}")
    lost = {name: getattr(stats(), name) for name in ALL}
    within("messages that were not sent", lost.pop("notices_failed"), 3, 100)
    within("echo requests that were not", lost.pop("echo_failed"), 1, 10)
    within("none of them is taken for sent, or refused", sum(lost.values()), 0, 0)


def icmp_types(seconds: float) -> Counter[int]:
    """Types of ICMP in which messages come."""
    found: Counter[int] = Counter()
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as sock:
        until = monotonic() + seconds
        while (left := until - monotonic()) > 0:
            sock.settimeout(left)
            with contextlib.suppress(TimeoutError):
                data = sock.recv(2048)
                found[data[20]] += b"PAQM" in data
    return found


def test_the_carrier_goes_while_messages_wait() -> None:
    """What waits is not sent as something else."""
    fresh("bandwidth 20mbit feedback icmp law erf in-step period 100ms")
    with S[0].task(icmp_types, 9) as heard, media(1, 8, flows=200, rate=8e6):
        sleep(1)
        for _ in range(40):
            sleep(0.13)
            change("feedback none")
            change("feedback icmp")
    types = heard.wait()
    within("messages", types[253], 100, 100000)
    within("messages as echo replies", types[0], 0, 0)


def sockets() -> int:
    """Raw sockets of the router; they are released a moment later."""
    sleep(0.1)
    lists = R.run("cat", "/proc/net/raw", "/proc/net/raw6").splitlines()
    return sum(line.split()[0] != "sl" for line in lists)


def test_sockets() -> None:
    """None without feedback or with a given RTT."""
    within("raw sockets while RTTs are measured", sockets(), 2, 2)
    for words, low in (("feedback none", 0), ("feedback icmp", 2), ("rtt 50ms", 0)):
        change(words)
        within(f"raw sockets with {words}", sockets(), low, low)
    within("the RTT that is in force, us", stats().skip_us, 50000, 50000)


ENDS = {
    "its device": "link del d0",
    "it": "qdisc del dev d0 root",
    "its measuring": "qdisc change dev d0 root handle 1: paqm rtt 20ms",
    "it, replaced": "qdisc replace dev d0 root handle 2: pfifo",
    "its device, elsewhere": "link set d0 netns right",
    "its namespace": "",
}


@pytest.mark.parametrize("end", ENDS)
def test_what_goes(end: str) -> None:
    """While requests are under way: the answers take long."""
    left, right = Host("left"), Host("right")
    net = Network([topology.Host(host.name, ipv6=True) for host in (left, right)])
    net.link("left", "right", devices=("d0", "e0"),
             addresses=[("10.8.0.1", "10.8.0.2"), ("2001:db8:8::1/64", "2001:db8:8::2/64")])
    net.queue("right", "e0", "root", *netem(700))
    with made(net):
        left.tc("qdisc add dev d0 root handle 1: paqm bandwidth 5mbit feedback icmp rtt auto")
        with (left.task(peers.send, "10.8.0.2", 2), left.task(peers.send, "2001:db8:8::2", 2),
              right.task(peers.send, "10.8.0.1", 1)):
            sleep(1.2)
            within("requests under way", left.paqm("d0").echo_sent, 1, 10)
            tool, _, words = ENDS[end].partition(" ")
            if tool:
                (left.tc if tool == "qdisc" else left.ip)(f"{tool} {words}")
    sleep(0.5)


def test_modules_go() -> None:
    """Right after the last request."""
    with media(2, 3):
        sleep(2.05)
        within("requests", stats().echo_sent, 1, 10)
        R.tc("qdisc del dev rv root")
        works("unload", unload)
    load()
    fresh()
