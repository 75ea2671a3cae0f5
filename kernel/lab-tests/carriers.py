#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Carriers of the feedback, end to end inside a lab guest: real router, real NAT, paqmd, streamer.

Prints `ok NAME` or `not ok NAME: why`. The network, s -- n -- r -- v, is that of stream_lab.py.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import carriers_inband
import stream_lab
import trial
from stream_lab import Stream, lost_packets, network6, queue, srtp_key, stats
from trial import TOP, Program, check, inside, run, within

sys.path.insert(0, str(TOP / "tests"))
import peers  # noqa: E402
from guest import Host  # noqa: E402

MASQUERADE = """
table ip nat {
	chain out { type nat hook postrouting priority 100;
		oifname "nr" meta l4proto udp masquerade to :20000-29999; }
}
table ip filter {
	counter invalid {}
	chain in { type filter hook input priority 0; ct state invalid counter name invalid drop; }
	chain through { type filter hook forward priority 0;
		ct state invalid counter name invalid drop; }
}
"""


# Of the box whose outer device has the queue: both versions out, and one port of it leads in.
MASQUERADE_BOX = """
table ip nat {
	chain out { type nat hook postrouting priority 100;
		oifname "nr" meta l4proto udp masquerade to :20000-29999; }
	chain in { type nat hook prerouting priority -100;
		iifname "nr" udp dport 7000 dnat to 10.1.0.2:7001; }
}
table ip6 nat {
	chain out { type nat hook postrouting priority 100;
		oifname "nr" meta l4proto udp masquerade to :20000-29999; }
}
"""


# A stateful IPv6 firewall, and the line that lets messages through.
FIREWALL6 = """
table ip6 filter {
	counter invalid {}
	chain through { type filter hook forward priority 0;
		%s
		ct state invalid counter name invalid drop; }
}
"""
LET_IN6 = "icmpv6 type 200 accept;"


def nat(on: bool) -> None:
    inside("n", "nft", "flush", "ruleset")
    if on:
        inside("n", "nft", "-f", "-", stdin=MASQUERADE)


def invalid() -> int:
    """Packets that the connection tracking of n calls invalid."""
    text = inside("n", "nft", "-j", "list", "counter", "ip", "filter", "invalid")
    for item in json.loads(text)["nftables"]:
        if "counter" in item:
            return int(item["counter"]["packets"])
    raise SystemExit("nft shows no counter")


def crossing(build: Path) -> None:
    """Which carrier crosses a NAT with a stateful firewall; one flow alone on 1 Mbit/s."""
    for carrier, translated, heard in (("icmp", False, True), ("quench", False, True),
                                       ("icmp", True, False), ("quench", True, True)):
        name = f"{carrier}, {'NAT' if translated else 'no NAT'}"
        nat(translated)
        queue(f"bandwidth 1mbit feedback {carrier}")
        stream = Stream(build, 6)
        time.sleep(4)
        said = stream.ask("stats")
        flow = inside("r", "tc", "-s", "class", "show", "dev", "rv")
        time.sleep(3)
        stream.finish()
        source = re.search(r"udp (\S+):(\d+) > 10\.3\.0\.2:5004", flow)
        assert source, flow
        check(f"{name}: the router sees {'the NAT' if translated else 'the sender'}",
              source[1] == ("10.2.0.1" if translated else "10.1.0.2"), source[0])
        if translated:
            within(f"{name}: and another port", int(source[2]), 20000, 29999)
        within(f"{name}: the router told", stats()["notices_sent"], 10, 60)
        check(f"{name}: refused nothing", not any(said["refused"].values()), said["refused"])
        rates = [rate for rate in stream.rates() if rate]
        if heard:
            within(f"{name}: messages believed after 4 s", said["accepted"], 8, 40)
            within(f"{name}: median of the rates told, bit/s", median(rates), 0.6e6, 1e6)
            within(f"{name}: rate sent, bit/s", stream.received(2, 6), 0.15e6, 1e6)
        else:
            within(f"{name}: messages believed after 4 s", said["accepted"], 0, 0)
            check(f"{name}: no rate", not rates, rates)
        if translated:
            count = invalid()
            within(f"{name}: invalid for connection tracking", count,
                   *((0, 0) if heard else (10, 60)))
    nat(False)


# A sender that wants to hear of errors, over the queue; what it hears, and how often.
ERRORS = """
import errno, socket, sys, time
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IPV6, 25, 1)  # IPV6_RECVERR
s.bind(("::", 5900))
s.connect(("fd00:3::2", 5900))
heard = {}
end, seq = time.monotonic() + float(sys.argv[1]), 0
while time.monotonic() < end:
    seq += 1
    head = b"\\x80\\x60" + seq.to_bytes(2, "big") + (seq * 90).to_bytes(4, "big") + b"SSRC"
    try:
        s.send(head + bytes((seq + i) & 255 for i in range(400)))
    except OSError as err:
        heard[errno.errorcode[err.errno]] = heard.get(errno.errorcode[err.errno], 0) + 1
    time.sleep(0.01)
print(heard)
"""

# What a router of version 1 sent about these packets: ICMPv6 type 100.
VERSION1 = """
import socket, sys, time
sys.path.insert(0, sys.argv[1])
import wire
ear = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x86DD))
ear.bind(("rn", 0x86DD))
ear.settimeout(5)
mouth = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
for seq in range(1, 11):
    while (packet := ear.recv(2048))[6] != 17 or packet[42:44] != (5900).to_bytes(2, "big"):
        pass
    message = wire.version1(packet, seq, 5e5)
    mouth.sendto(message[:2] + bytes(2) + message[4:], ("fd00:1::2", 0))
    time.sleep(0.1)
"""


def errors6(_: Path) -> None:
    """Messages about IPv6 are no errors for those who have not asked for them."""
    network6()

    def heard(meanwhile: list[str]) -> str:
        sender = Program("s", sys.executable, "-c", ERRORS, 3)
        if meanwhile:
            inside("r", sys.executable, "-c", *meanwhile)
        return sender.end().strip()

    queue("bandwidth 1mbit feedback none")
    old = heard([VERSION1, str(TOP / "feedback-daemon" / "tests")])
    check("IPv6: type 100 of version 1 broke what others sent", "EPROTO" in old, old)
    queue("bandwidth 1mbit feedback icmp")
    new = heard([])
    within("IPv6: messages sent", stats()["notices_sent"], 5, 40)
    check("IPv6: type 200 breaks nothing", "EPROTO" not in new, new)


def firewall6(build: Path) -> None:
    """A stateful firewall between router and sender knows no experiment: it must be told."""
    network6()
    for name, rule, low, high in (("without a rule", "", 0, 0), ("with a rule", LET_IN6, 8, 40)):
        inside("n", "nft", "-f", "-", stdin=FIREWALL6 % rule)
        queue("bandwidth 1mbit feedback icmp rtt 20ms")
        stream = Stream(build, 6, to="[fd00:3::2]")
        time.sleep(4)
        said = stream.ask("stats")
        text = inside("n", "nft", "-j", "list", "counter", "ip6", "filter", "invalid")
        dropped = next(int(item["counter"]["packets"]) for item in json.loads(text)["nftables"]
                       if "counter" in item)
        inside("n", "nft", "flush", "ruleset")
        stream.finish()
        within(f"IPv6 firewall {name}: messages believed", said["accepted"], low, high)
        within(f"IPv6 firewall {name}: called invalid", dropped, *((0, 0) if rule else (8, 60)))


def box(build: Path) -> None:
    """The queue on the outer device of the box that translates; it is 20 ms from the sender."""
    network6()
    inside("n", "nft", "-f", "-", stdin=MASQUERADE_BOX)
    for host, device in (("s", "sn"), ("n", "ns")):
        inside(host, "tc", "qdisc", "add", "dev", device, "root", "netem", "delay", "10ms",
               "limit", "100000")
    for carrier, to, outer in (("icmp", "10.3.0.2", "10.2.0.1"), ("quench", "10.3.0.2", "10.2.0.1"),
                               ("icmp", "[fd00:3::2]", "fd00:2::1")):
        name = f"NAT box, {carrier}, IPv{4 if outer[0] == '1' else 6}"
        queue(f"bandwidth 1mbit feedback {carrier} rtt auto", "n", "nr")
        stream = Stream(build, 6, to=to)
        time.sleep(4)
        said = stream.ask("stats")
        flow = inside("n", "tc", "-s", "class", "show", "dev", "nr")
        time.sleep(3)
        told = stats("n", "nr")
        stream.finish()
        source = re.search(r"udp (\S+):(\d+) > \S+:5004", flow)
        assert source, flow
        check(f"{name}: the queue sees translated packets",
              source[1].strip("[]") == outer and 20000 <= int(source[2]) <= 29999, source[0])
        within(f"{name}: messages sent", told["notices_sent"], 10, 60)
        within(f"{name}: messages believed after 4 s", said["accepted"], 8, 40)
        check(f"{name}: refused nothing", not any(said["refused"].values()), said["refused"])
        within(f"{name}: median of the rates told, bit/s",
               median([rate for rate in stream.rates() if rate] or [0]), 0.6e6, 1e6)
        within(f"{name}: sources that answered", told["rtt_samples"], 1, 1)
        within(f"{name}: round trip to the sender, us", told["rtt_mean_us"], 20000, 21000)
    key = srtp_key()
    for name, send, recv in (("RTP", "--carrier in-band", ""),
                             ("SRTP", f"--carrier probe {key}", key)):
        queue("bandwidth 1mbit feedback in-band router-id 1beef", "n", "nr")
        stream = Stream(build, 6, send, recv, daemon=False)
        time.sleep(7)
        stream.finish()
        rates = [rate for rate in stream.rates() if rate]
        within(f"NAT box, in-band, {name}: rates told", len(rates), 10, 1000)
        within(f"NAT box, in-band, {name}: median, bit/s", median(rates or [0]), 0.6e6, 1e6)
    # what comes in through a forwarded port is told to its sender as he sent it
    queue("bandwidth 1mbit feedback icmp", "n", "ns")
    sender = Host("v")
    with sender.task(peers.watch, 5, ["10.3.0.2"], quoted="10.2.0.1") as watch:
        sender.task(peers.send, "10.2.0.1", 4, port=7000).wait()
    seen = watch.wait()
    within("NAT box, forwarded port: messages to the sender", seen.v4, 5, 60)
    within("NAT box, forwarded port: not about what he sent", seen.wrong, 0, 0)
    for host, device in (("s", "sn"), ("n", "ns"), ("n", "nr")):
        inside(host, "tc", "qdisc", "del", "dev", device, "root")
    inside("n", "tc", "qdisc", "add", "dev", "nr", "root", "netem", "delay", "10ms", "limit",
           "100000")
    nat(False)


def own(build: Path) -> None:
    """The queue on the sender's own device: messages are there before what they quote leaves."""
    queue("")  # the router's says nothing meanwhile
    queue("bandwidth 1mbit feedback icmp", "s", "sn")
    stream = Stream(build, 6, on="any")
    time.sleep(5)
    said, told = stream.ask("stats"), stats("s", "sn")
    stream.finish()
    within("own queue: messages sent", told["notices_sent"], 10, 60)
    within("own queue: messages believed", said["accepted"], told["notices_sent"] - 2,
           told["notices_sent"])
    check("own queue: refused nothing", not any(said["refused"].values()), said["refused"])
    within("own queue: median of the rates told, bit/s",
           median([rate for rate in stream.rates() if rate] or [0]), 0.6e6, 1e6)
    inside("s", "tc", "qdisc", "del", "dev", "sn", "root")


def vrf(build: Path) -> None:
    """Both ICMP carriers from a router whose devices are in a VRF."""
    run("ip", "-n", "r", "link", "add", "red", "type", "vrf", "table", "10")
    run("ip", "-n", "r", "link", "set", "red", "up")
    for device in ("rn", "rv"):
        run("ip", "-n", "r", "link", "set", device, "master", "red")
    run("ip", "-n", "r", "route", "add", "10.1.0.0/24", "via", "10.2.0.1", "vrf", "red")
    # the default table would lead elsewhere
    run("ip", "-n", "r", "route", "add", "blackhole", "10.1.0.0/24")
    for carrier in ("icmp", "quench"):
        queue(f"bandwidth 1mbit feedback {carrier}")
        stream = Stream(build, 4)
        time.sleep(3)
        said = stream.ask("stats")
        within(f"VRF, {carrier}: messages believed", said["accepted"], 5, 40)
        check(f"VRF, {carrier}: refused nothing", not any(said["refused"].values()),
              said["refused"])
        time.sleep(2)
        stream.finish()
    run("ip", "-n", "r", "route", "del", "blackhole", "10.1.0.0/24")
    for device in ("rn", "rv"):
        run("ip", "-n", "r", "link", "set", device, "nomaster")
    run("ip", "-n", "r", "link", "del", "red")
    run("ip", "-n", "r", "route", "add", "10.1.0.0/24", "via", "10.2.0.1")


def alone(build: Path) -> None:
    """What is left alone and counted: fragments, IP options, tunnels, several destinations."""
    queue("bandwidth 1mbit feedback icmp")
    for how, key in (("fragments", "notices_unfit_packets"), ("options", "notices_unfit_packets"),
                     ("gre", "tunnel_packets"), ("later", "fragment_packets")):
        before = stats()
        Host("s").task(peers.odd, "10.3.0.2", how, count=120).wait()
        after = stats()
        within(f"{how}: counted", after[key] - before[key], 20, 500)
        within(f"{how}: told nobody", after["notices_sent"] - before["notices_sent"], 0, 0)


def start(build: Path) -> None:
    """The rate of the first picture: what a router says of what comes before it, or a quarter."""
    key = srtp_key()
    probes = f"--carrier probe {key}", key
    for options, (send, recv), soonest, latest in (
            ("feedback icmp", ("", ""), 20, 150), ("", ("", ""), 250, 270),
            # the first answer is of a queue that has not seen a packet before
            ("feedback in-band", ("--carrier in-band", ""), 20, 100),
            ("feedback in-band", probes, 20, 100),
            ("", ("--carrier in-band", ""), 100, 200), ("", probes, 100, 200)):
        name = f"start, {send.partition(' --srtp')[0] or 'paqmd'}, {options or 'no feedback'}"
        queue(f"bandwidth 500kbit {options}")
        time.sleep(2)  # a new queue has to save up for its first message
        stream = Stream(build, 3, send, recv, daemon=not send)
        time.sleep(5)
        stream.finish()
        said = re.search(r"begins (\d+) ms after its first packet, (told by a router|no advice)",
                         stream.sender.said())
        assert said, stream.sender.said()
        check(f"{name}: {said[2]}", (said[2] != "no advice") == bool(options))
        within(f"{name}: first picture after, ms", int(said[1]), soonest, latest)
        first = stream.rows("send", "frames.csv")[0]
        # a fair share of 500 kbit/s, or a quarter of --rate-max less what probes take
        within(f"{name}: rate of the first picture, bit/s", float(first["allowance_bps"]),
               *((350e3, 500e3) if options else (700e3, 750e3)))
        if options:
            within(f"{name}: lost packets", lost_packets(stream), 0, 0)
        check(f"{name}: the train is not taken for pictures",
              len(stream.rows("recv", "decoded.csv")) <= len(stream.rows("send", "frames.csv")))
        print(f"# {name}: {said[0]}", flush=True)


GROUPS: dict[str, Callable[[Path], None]] = {
    "start": start, "crossing": crossing, "errors6": errors6,
    "firewall6": firewall6, "box": box, "own": own, "vrf": vrf, "alone": alone,
    "inband": carriers_inband.inband, "searching": carriers_inband.searching,
    "stock": carriers_inband.stock,
    "webrtc": carriers_inband.webrtc, "chain": carriers_inband.chain,
}


def main() -> int:
    return trial.run_groups(__doc__, GROUPS, stream_lab.prepare, stream_lab.finish)


if __name__ == "__main__":
    sys.exit(main())
