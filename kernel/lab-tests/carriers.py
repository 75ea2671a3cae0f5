#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Carriers of the feedback, end to end inside a lab guest: real router, real NAT, paqmd, streamer.

Prints `ok NAME` or `not ok NAME: why`. Network, from left to right:

    s 10.1.0.2 -- 10.1.0.1 n 10.2.0.1 -- 10.2.0.2 r 10.3.0.1 -- 10.3.0.2 v

s sends, n may translate addresses, r has the queue (device rv), v receives.
"""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import trial
from trial import TOP, check, inside, run, within

sys.path.insert(0, str(TOP / "streamer" / "tests"))
from test_loopback import HEIGHT, WIDTH, write_clip  # noqa: E402

HERE = Path(__file__).resolve().parent
RIVAL = TOP / "testbed" / "rivals" / "webrtc"
CLIP = Path("/run/tmp/clip.y4m")
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


def link(a: str, b: str, number: int, delay: str = "") -> None:
    """Devices ab in a and ba in b, a's address 10.number.0.1 on the right one's side."""
    for n, (host, device) in enumerate(((a, a + b), (b, b + a))):
        mac = f"02:00:00:00:{number:02x}:{n + 1:02x}"
        if not n:
            run("ip", "link", "add", device, "netns", host, "address", mac, "type", "veth",
                "peer", "name", b + a, "netns", b, "address", f"02:00:00:00:{number:02x}:02")
        left = host == ("n" if number == 1 else a)  # the end with address .1
        run("ip", "-n", host, "addr", "add", f"10.{number}.0.{1 if left else 2}/24", "dev", device)
        run("ip", "-n", host, "link", "set", device, "up")
        inside(host, "ethtool", "-K", device, "tso", "off", "gso", "off", "gro", "off")
        if delay:
            inside(host, "tc", "qdisc", "add", "dev", device, "root", "netem", "delay", delay,
                   "limit", "100000")


def network() -> None:
    for host in "snrv":
        run("ip", "netns", "add", host)
        run("ip", "-n", host, "link", "set", "lo", "up")
    for host in "nr":
        inside(host, "sysctl", "-qw", "net.ipv4.ip_forward=1")
    link("s", "n", 1)
    link("n", "r", 2, delay="10ms")
    link("r", "v", 3)
    run("ip", "-n", "s", "route", "add", "default", "via", "10.1.0.1")
    run("ip", "-n", "n", "route", "add", "10.3.0.0/24", "via", "10.2.0.2")
    run("ip", "-n", "r", "route", "add", "10.1.0.0/24", "via", "10.2.0.1")
    run("ip", "-n", "v", "route", "add", "default", "via", "10.3.0.1")


def network6() -> None:
    """The same network with IPv6: fd00:number::1 or ::2. Devices that change their VRF lose it."""
    ends = (("s", "sn", 1, 2), ("n", "ns", 1, 1), ("n", "nr", 2, 1), ("r", "rn", 2, 2),
            ("r", "rv", 3, 1), ("v", "vr", 3, 2))  # fmt: skip
    for host, device, number, end in ends:
        run("ip", "-n", host, "addr", "replace", f"fd00:{number}::{end}/64", "dev", device, "nodad")
    # who has which address is not asked for: a question lost costs a second of packets held back
    for i, (host, device, number, _) in enumerate(ends):
        other, theirs, _, end = ends[i ^ 1]
        link = json.loads(run("ip", "-n", other, "-j", "link", "show", "dev", theirs))[0]
        run("ip", "-n", host, "neigh", "replace", f"fd00:{number}::{end}", "lladdr",
            link["address"], "dev", device)
    for host in "nr":
        inside(host, "sysctl", "-qw", "net.ipv6.conf.all.forwarding=1")
    for host, to, via in (("s", "default", "fd00:1::1"), ("n", "fd00:3::/64", "fd00:2::2"),
                          ("r", "fd00:1::/64", "fd00:2::1"), ("v", "default", "fd00:3::1")):
        run("ip", "-n", host, "-6", "route", "replace", to, "via", via)


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


def queue(options: str, host: str = "r", device: str = "rv") -> None:
    subprocess.run(["ip", "netns", "exec", host, "tc", "qdisc", "del", "dev", device, "root"],
                   stderr=subprocess.DEVNULL)
    inside(host, "tc", "qdisc", "add", "dev", device, "root", "handle", "1:", "paqm",
           *options.split())


def stats(host: str = "r", device: str = "rv") -> dict[str, Any]:
    shown = json.loads(inside(host, "tc", "-s", "-j", "qdisc", "show", "dev", device))
    return next(dict(entry) for entry in shown if entry["kind"] == "paqm")


class Stream:
    """paqm-streamer in s and v, paqmd beside the sender if it is wanted."""

    def __init__(self, build: Path, seconds: float, send: str = "", recv: str = "",
                 daemon: bool = True, port: int = 5004, to: str = "10.3.0.2",
                 on: str = "sn") -> None:
        self.build, self.seconds = build, seconds
        self.home = Path(tempfile.mkdtemp(dir="/run/tmp"))
        self.programs: list[tuple[str, subprocess.Popen[bytes], Path]] = []
        self.control = self.home / "control.sock"
        streamer = str(build / "streamer/paqm-streamer")
        if daemon:
            self.start("s", "paqmd", str(build / "feedback-daemon/paqmd"), "-i", on, "--socket",
                       str(self.home / "client.sock"), "--control", str(self.control),
                       "--user", "root", "-v")
            self.wait_for(lambda: "ready" in (self.home / "paqmd.log").read_text())
        self.start("v", "recv", streamer, "recv", "--listen", f"{to}:{port}", "--seed", "2",
                   "--log", str(self.home / "recv"), *recv.split())
        self.wait_for(lambda: "listening" in (self.home / "recv.log").read_text())
        socket = str(self.home / "client.sock") if daemon else "none"
        self.start("s", "send", streamer, "send", "--to", f"{to}:{port}", "--source", str(CLIP),
                   "--loop", "--rate-max", "3mbit", "--rate-min", "100kbit", "--seed", "1",
                   "--paqmd", socket, "--duration", str(seconds), "--log", str(self.home / "send"),
                   *send.split())
        self.begin = time.time()

    def start(self, host: str, name: str, *cmd: str) -> None:
        log = self.home / f"{name}.log"
        with log.open("wb") as out:
            self.programs.append((name, subprocess.Popen(
                ["ip", "netns", "exec", host, *cmd], stdout=out, stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL), log))

    def wait_for(self, done: Callable[[], bool]) -> None:
        for _ in range(1000):
            if done():
                return
            time.sleep(0.01)
        raise SystemExit(f"{self.programs[-1][0]} is not ready: "
                         f"{self.programs[-1][2].read_text()}")

    def ask(self, what: str) -> dict[str, Any]:
        text = run(str(self.build / "feedback-daemon/paqmctl"), "--control", str(self.control),
                   "-j", what)
        answer = json.loads(text)
        return dict(answer.get(what, answer))

    def finish(self) -> None:
        """Wait for the sender, end the others; all must end well."""
        for name, program, log in reversed(self.programs):
            if name != "send":
                program.send_signal(signal.SIGTERM)
            if program.wait(60):
                raise SystemExit(f"{name} ended with status {program.returncode}: "
                                 f"{log.read_text()}")

    def rows(self, side: str, name: str) -> list[dict[str, str]]:
        with (self.home / side / name).open() as file:
            return list(csv.DictReader(file))

    def rates(self) -> list[float]:
        """What the sender was told, in order, bit/s."""
        return [float(row["rate_bps"]) for row in self.rows("send", "feedback.csv")]

    def received(self, first: float, last: float) -> float:
        """bit/s on the IP layer between these seconds."""
        begin = int(self.rows("recv", "rx.csv")[0]["t_ns"])
        total = sum(int(row["wire_bytes"]) for row in self.rows("recv", "rx.csv")
                    if first <= (int(row["t_ns"]) - begin) / 1e9 < last)
        return total * 8 / (last - first)


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
        words = ["ip", "netns", "exec", "s", sys.executable, "-c", ERRORS, "3"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as sender:
            if meanwhile:
                inside("r", sys.executable, "-c", *meanwhile)
            return sender.communicate()[0].strip()

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
    peer = ["python3", str(HERE / "feedback.py")]
    with subprocess.Popen(["ip", "netns", "exec", "v", *peer, "watch", "--seconds", "5", "--own",
                           "10.3.0.2", "--quoted", "10.2.0.1"], stdout=subprocess.PIPE,
                          text=True) as watch:
        inside("v", *peer, "send", "--to", "10.2.0.1", "--port", "7000", "--seconds", "4")
        seen = json.loads(watch.communicate(timeout=30)[0])
    within("NAT box, forwarded port: messages to the sender", seen["v4"], 5, 60)
    within("NAT box, forwarded port: not about what he sent", seen["wrong"], 0, 0)
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
        inside("s", "python3", str(HERE / "feedback.py"), "odd", "--to", "10.3.0.2", "--how", how,
               "--count", "120")
        after = stats()
        within(f"{how}: counted", after[key] - before[key], 20, 500)
        within(f"{how}: told nobody", after["notices_sent"] - before["notices_sent"], 0, 0)


def srtp_key() -> str:
    """Options with a key that is known to all: streams here repeat, and have nothing to hide."""
    key = Path("/run/tmp/srtp.key")
    key.write_text("00112233445566778899aabbccddeeff" + "0102030405060708090a0b0c0d0e\n")
    return f"--srtp-key {key} --reuse-keystream"


def told_between(stream: Stream, first: float, last: float) -> list[tuple[float, float]]:
    """Times since @first and rates that the sender was told until @last, wall-clock times."""
    told = [(int(row["t_ns"]) / 1e9, float(row["rate_bps"]))
            for row in stream.rows("send", "feedback.csv")]
    return [(when - first, rate) for when, rate in told if first <= when < last]


def inband(build: Path) -> None:
    """Plain RTP with an element and SRTP with probes, side by side; and a stock receiver."""
    key = srtp_key()
    queue("bandwidth 2mbit feedback in-band router-id 1beef rtt 50ms")
    plain = Stream(build, 16, "--carrier in-band", daemon=False, port=5004)
    secret = Stream(build, 16, f"--carrier probe {key}", key,
                    daemon=False, port=6004)
    time.sleep(7)
    changed = time.time()
    inside("r", "tc", "qdisc", "change", "dev", "rv", "root", "handle", "1:", "paqm", "bandwidth",
           "1mbit")
    time.sleep(6)
    flows = inside("r", "tc", "-s", "class", "show", "dev", "rv")
    counted = stats()
    time.sleep(6)
    plain.finish()
    secret.finish()
    check("the router lowered rates", counted["inband_lowered_packets"] > 100, counted)
    within("and left none", counted["inband_left_packets"], 0, 0)
    within("it sent no message", counted["notices_sent"], 0, 0)
    check("its flows are shown as told", len(re.findall(r"told \S+ \d", flows)) == 2, flows)
    times = {}
    for name, stream, cause in (("RTP", plain, "in-band"), ("SRTP", secret, "probe")):
        rows = stream.rows("send", "feedback.csv")
        check(f"{name}: told by {cause}", rows[-1]["cause"] == cause, rows[-1])
        check(f"{name}: and by which router", rows[-1]["router"] == "beef", rows[-1])
        before = [rate for _, rate in told_between(stream, changed - 4, changed)]
        after = told_between(stream, changed, changed + 6)
        within(f"{name}: median of the rates told at 2 Mbit/s", median(before), 0.8e6, 2e6)
        # half of it, or what the other leaves
        other = (secret if stream is plain else plain).received(9, 14)
        within(f"{name}: and at 1 Mbit/s", median(rate for _, rate in after), 0.4e6,
               max(0.52e6, 1e6 - other))
        # at once at the router, 10 ms back from there, probes each 50 ms
        times[name] = next((when for when, rate in after if rate < 0.6e6), 99.0)
        within(f"{name}: told of the change after so many seconds", times[name], 0.01, 0.3)
        within(f"{name}: sends at 2 Mbit/s", stream.received(3, 7), 0.2e6, 1e6)
        within(f"{name}: sends at 1 Mbit/s", stream.received(9, 14), 0.15e6, 0.5e6)
        lost = lost_packets(stream)
        within(f"{name}: lost packets", lost, 0, 0)
    within("difference between the two, s", abs(times["RTP"] - times["SRTP"]), 0, 0.15)


def lost_packets(stream: Stream) -> int:
    """Between those that came."""
    numbers = [int(row["seq"]) for row in stream.rows("recv", "rx.csv")]
    return sum((b - a - 1) % 65536 for a, b in zip(numbers, numbers[1:], strict=False)
               if (b - a) % 65536 < 32768)


def stock(build: Path) -> None:
    """A stock receiver, SRTP by GStreamer's own elements, takes no harm from probes."""
    key = "00112233445566778899aabbccddeeff0102030405060708090a0b0c0d0e"
    file = Path("/run/tmp/srtp.key")
    file.write_text(key + "\n")
    caps = (f"application/x-srtp,media=video,clock-rate=90000,encoding-name=H264,payload=96,"
            f"ssrc=(uint)77,srtp-key=(buffer){key},srtp-cipher=aes-128-icm,"
            f"srtp-auth=hmac-sha1-80,srtcp-cipher=aes-128-icm,srtcp-auth=hmac-sha1-80")
    queue("bandwidth 1mbit feedback in-band")
    pictures = {}
    for carrier in ("icmp", "probe"):
        out = Path(f"/run/tmp/{carrier}.yuv")
        sink = subprocess.Popen(
            ["ip", "netns", "exec", "v", "timeout", "-s", "INT", "11", "gst-launch-1.0", "-e", "-q",
             "udpsrc", "port=5004", f"caps={caps}", "!", "srtpdec", "!", "rtpjitterbuffer", "!",
             "rtph264depay", "!", "avdec_h264", "max-threads=1", "!", "filesink",
             f"location={out}"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        time.sleep(1)
        done = inside("s", str(build / "streamer/paqm-streamer"), "send", "--to", "10.3.0.2:5004",
                      "--source", str(CLIP), "--loop", "--rate-max", "400kbit",
                      "--encoder", "paqmh264enc floor-qp=52",  # pictures are counted by bytes
                      "--rate-min", "100kbit", "--seed", "1", "--ssrc", "77", "--paqmd", "none",
                      "--duration", "6", "--carrier", carrier, "--srtp-key", str(file),
                      "--reuse-keystream")
        sent = re.search(r"sent (\d+) pictures", done)
        assert sent, done
        sink.wait(60)
        pictures[carrier] = (int(sent[1]), out.stat().st_size // (WIDTH * HEIGHT * 3 // 2))
        out.unlink()
    for carrier, (sent_pictures, shown) in pictures.items():
        within(f"stock SRTP receiver, {carrier}: pictures not shown", sent_pictures - shown, 0, 1)
    within("probes reached the router", stats()["inband_kept_packets"]
           + stats()["inband_lowered_packets"], 50, 500)


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
                         (stream.home / "send.log").read_text())
        assert said, (stream.home / "send.log").read_text()
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


def call(probes: bool) -> dict[str, Any]:
    """Ten seconds of stock libwebrtc from s to v; what both sides and the router counted."""
    home = Path(tempfile.mkdtemp(dir="/run/tmp"))
    node = ["node", str(RIVAL / "recv.js"), "--bind", "10.3.0.2", "--duration", "14"]
    node += ["--output", str(home / "decoded.y4m"), "--width", str(WIDTH), "--height", str(HEIGHT)]
    common = ["--signal", str(home / "signal"), "--log"]
    beside = None
    with subprocess.Popen(["ip", "netns", "exec", "v", *node, *common, str(home / "recv")],
                          stdout=subprocess.DEVNULL):
        if probes:
            beside = subprocess.Popen(["ip", "netns", "exec", "s", str(HERE / "probes.py"), "sn",
                                       "8"], stdout=subprocess.PIPE, text=True)
        inside("s", "node", str(RIVAL / "send.js"), "--bind", "10.1.0.2", "--clip", str(CLIP),
               "--loop", "--rate-max", "600kbit", "--duration", "11", *common, str(home / "send"))
    seen = json.loads((home / "recv" / "stats.jsonl").read_text().splitlines()[-1])
    sent = json.loads((home / "send" / "stats.jsonl").read_text().splitlines()[-1])
    with (home / "recv" / "decoded.csv").open() as file:
        at = [int(row["t_ns"]) / 1e9 for row in csv.DictReader(file)]
    inbound, encoded = seen["inbound_rtp"], sent["outbound_rtp"]
    return {
        "pictures_shown": len(at),
        "longest_gap_ms": round(1000 * max(b - a for a, b in zip(at, at[1:], strict=False))),
        "freezes": seen["track"]["freezeCount"],
        "packets_lost": inbound["packetsLost"],
        "nacks": inbound["nackCount"],
        "key_pictures_asked_for": inbound["pliCount"],
        "pictures_dropped": inbound["framesDropped"],
        "buffer_ms": round(1000 * inbound["jitterBufferDelay"] /
                           inbound["jitterBufferEmittedCount"], 1),
        "quantizer": round(encoded["qpSum"] / encoded["framesEncoded"], 1),
        "estimate_bps": round(sent["candidate_pair"]["availableOutgoingBitrate"]),
        "probes": int(beside.communicate(timeout=30)[0]) if beside else 0,
        "probes_in_router": sum(stats()[f"inband_{what}_packets"] for what in ("kept", "lowered")),
    }


def webrtc(_: Path) -> None:
    """Stock libwebrtc as receiver: the same call with probes on its 5-tuple and without."""
    modules = Path(os.environ.get("NODE_PATH", "")) / "@roamhq" / "wrtc"
    if not modules.is_dir():
        print("skip stock libwebrtc: @roamhq/wrtc is not installed (setup/setup.sh)")
        return
    calls = []
    for probes in (False, True):
        queue("bandwidth 2mbit feedback in-band")
        calls.append(call(probes))
        print(f"# libwebrtc, {'with' if probes else 'without'} probes: {calls[-1]}", flush=True)
    plain, probed = calls
    within("libwebrtc: pictures shown without probes", plain["pictures_shown"], 200, 280)
    within("libwebrtc: probes sent beside the call", probed["probes"], 120, 200)
    # the first ones may pass before it has advice
    within("libwebrtc: probes not touched by the router", probed["probes"]
           - probed["probes_in_router"], 0, 10)
    for name in ("freezes", "packets_lost", "nacks", "pictures_dropped", "key_pictures_asked_for"):
        within(f"libwebrtc: {name} with probes (without: {plain[name]})", probed[name], 0,
               plain[name])
    within("libwebrtc: pictures shown, with probes by without",
           probed["pictures_shown"] / plain["pictures_shown"], 0.98, 1.02)
    within("libwebrtc: longest gap, ms more", probed["longest_gap_ms"] - plain["longest_gap_ms"],
           -200, 30)
    # it is 85 to 100 ms, from one call to the next
    within("libwebrtc: jitter buffer, ms more", probed["buffer_ms"] - plain["buffer_ms"], -30, 30)
    within("libwebrtc: quantizer (of VP8, 0 to 127), steps more",
           probed["quantizer"] - plain["quantizer"], -5, 3)
    within("libwebrtc: its own estimate, with probes by without",
           probed["estimate_bps"] / plain["estimate_bps"], 0.95, 1.2)


def chain(build: Path) -> None:
    """In-band over IPv6, through two routers: the lower rate gets through, whichever has it."""
    network6()
    key = srtp_key()

    def first(bandwidth: str) -> None:
        inside("n", "tc", "qdisc", "replace", "dev", "nr", "root", "handle", "1:", "paqm",
               "feedback", "in-band", "router-id", "1f1f1", "bandwidth", bandwidth)

    subprocess.run(["ip", "netns", "exec", "n", "tc", "qdisc", "del", "dev", "nr", "root"],
                   check=True)
    for name, send, recv in (("RTP", "--carrier in-band", ""),
                             ("SRTP", f"--carrier probe {key}", key)):
        first("2mbit")
        queue("bandwidth 1mbit feedback in-band router-id 1beef")
        time.sleep(0.5)  # a queue tells nobody before its first period is over
        stream = Stream(build, 16, send, recv, daemon=False, to="[fd00:3::2]")
        time.sleep(8)
        changed = time.time()
        first("400kbit")
        time.sleep(9)
        stream.finish()
        said = [row for row in stream.rows("send", "feedback.csv") if float(row["rate_bps"])]
        # 96 % of the link less what the flow takes, if that is less than it may: this clip rests
        # at times. So the wider one is above the other's whole link all the same.
        for what, router, low, high, since in (("the second router", "beef", 0.46e6, 0.96e6, -4),
                                               ("the first router", "f1f1", 0.18e6, 0.39e6, 3)):
            rows = [row for row in said
                    if since <= int(row["t_ns"]) / 1e9 - changed < since + 4]
            by = sum(row["router"] == router for row in rows)
            within(f"IPv6, {name}: {what} is the narrower one: its part of the rates told",
                   by / max(len(rows), 1), 0.95, 1)
            within(f"IPv6, {name}: {what}: median of the rates told",
                   median(float(row["rate_bps"]) for row in rows), low, high)
        within(f"IPv6, {name}: lost packets", lost_packets(stream), 0, 0)
        within(f"IPv6, {name}: messages beside the stream", stats()["notices_sent"], 0, 0)
    inside("n", "tc", "qdisc", "del", "dev", "nr", "root")


GROUPS: dict[str, Callable[[Path], None]] = {
    "start": start, "crossing": crossing, "errors6": errors6,
    "firewall6": firewall6, "box": box, "own": own, "vrf": vrf, "alone": alone,
    "inband": inband, "stock": stock, "webrtc": webrtc, "chain": chain,
}


def prepare() -> None:
    network()
    write_clip(CLIP)


def finish() -> None:
    queue("")  # of groups that have none of theirs there
    inside("r", "tc", "qdisc", "del", "dev", "rv", "root")


def main() -> int:
    return trial.run_groups(__doc__, GROUPS, prepare, finish)


if __name__ == "__main__":
    sys.exit(main())
