#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Calls between hosts behind NAT, by ICE with a real STUN and TURN server, in a lab guest.

    s 10.1.0.2 -- n 10.2.0.1 -- r -- 10.3.0.1 m -- 10.4.0.2 v        c 10.5.0.2 at r

n and m translate addresses, and let in only what answers. s calls the name of m's outer address,
where the port of the link is forwarded, or both meet at c and nothing is forwarded; r has P-AQM
towards m and c, and routes to no inner address; c has coturn and paqm-meet. Each hop between n, r
and m, but that to m, takes 10 ms. Prints `ok NAME` or `not ok NAME: why`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "kernel" / "lab-tests"))
import trial  # noqa: E402
from reach import AF42, EF, Capture  # noqa: E402
from trial import Program, check, inside, run, within  # noqa: E402

from paqm_lab import topology  # noqa: E402
from paqm_lab.topology import Network  # noqa: E402

HOME = Path("/run/tmp")
NAMES = "127.0.0.1 localhost\n10.3.0.1 office\n10.1.0.1 gate\n10.5.0.2 server\n10.5.0.9 nobody\n"
START = "mount --bind /run/tmp/hosts /etc/hosts && exec \"$@\""
USER, PASSWORD = "caller", "not a good one"
LINK = 1_000_000  # bit/s, of r towards m and c
SECONDS = 14.0
SETTLED = 8.0  # s after which rates are those of the long run
FIRST = 2.0  # s until the first picture is shown
# Outer address of a gate, and its translation of ports: kept, or another for each destination.
NAT = """
table ip gate {{
  chain out {{ type nat hook postrouting priority srcnat; oifname "r" masquerade {how}; }}
  chain into {{ type nat hook prerouting priority dstnat; {forward} }}
  chain strangers {{ type filter hook input priority filter; iifname "r" udp dport != 0 drop; }}
}}
"""
# What ICE has not sent, and what has not come from whom it says: to a port, for some seconds.
STRANGER = """
import os, random, socket, struct, sys, time
dice, s = random.Random(1), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
where, end = (sys.argv[1], int(sys.argv[2])), time.monotonic() + 6
cookie = 0x2112A442
print("ready", flush=True)
while time.monotonic() < end:
    kind = dice.choice([0x0001, 0x0101, 0x0111, 0x0011, 0x0003, 0x0103, 0x0017])
    body = b"".join(struct.pack(">HH", t, len(v)) + v + bytes(-len(v) % 4) for t, v in (
        (0x0006, b"abcd:efgh"), (0x0024, dice.randbytes(4)), (0x0020, dice.randbytes(8)),
        (0x002A, dice.randbytes(8)), (0x0025, b""), (0x0008, dice.randbytes(20)),
        (0x8028, dice.randbytes(4))) if dice.random() < 0.7)
    length = dice.choice([len(body), len(body), 0, 65535])
    whole = struct.pack(">HHI", kind, length, cookie) + dice.randbytes(12) + body
    s.sendto(dice.choice([whole, whole, whole[:dice.randrange(len(whole))],
                          b"\\x40\\x00\\xff\\xff" + whole, dice.randbytes(40), b""]), where)
    time.sleep(0.01)
"""

# At a rendezvous: says nothing, or what it likes, or a name that nobody waits for.
KNOCKS = """
import contextlib, os, socket, sys, time
end, kept = time.monotonic() + 8, []
print("ready", flush=True)
while time.monotonic() < end:
    for text in (b"", b"GET / HTTP/1.0\\r\\n\\r\\n", os.urandom(200), b"name"):
        s = socket.create_connection((sys.argv[1], 5091))
        with contextlib.suppress(ConnectionError):
            said = s.recv(100).split()
            if text == b"name" and len(said) == 3:
                text = b"meet " + said[2] + b" " + os.urandom(32).hex().encode() + b"\\n"
            s.sendall(text)
        kept.append(s)
    time.sleep(0.05)
"""


def network() -> Network:
    net = Network()
    for host in "snrmvc":
        net.host(host, forwards=host in "nrm")
    for left, right, ends, delay in (("s", "n", (2, 1), 0), ("n", "r", (1, 2), 10),
                                     ("m", "r", (1, 2), 0), ("v", "m", (2, 1), 0),
                                     ("c", "r", (2, 1), 0)):
        number = len(net.links) + 1
        first, second = (f"10.{number}.0.{k}" for k in ends)
        net.link(left, right, delay, addresses=[(first, second)])
    net.queue("m", "r", "root", *topology.netem(10))
    for host, via in (("s", "10.1.0.1"), ("n", "10.2.0.2"), ("m", "10.3.0.2"), ("v", "10.4.0.1"),
                      ("c", "10.5.0.1")):
        net.route(host, "default", via)
    return net


def gate(host: str, inner: str, how: str = "") -> None:
    """Without an inner address nothing is forwarded."""
    forward = f'iifname "r" tcp dport 5090 dnat to {inner};' if inner else ""
    subprocess.run([*topology.into(host), "nft", "flush", "ruleset"], check=True)
    inside(host, "nft", "-f", "-", stdin=NAT.format(how=how, forward=forward))


def private(path: Path, text: str) -> Path:
    path.touch(0o600)
    path.write_text(text + "\n")
    return path


class Server:
    """coturn: STUN for all, TURN for one user."""

    def __init__(self) -> None:
        self.program = Program(
            "c", "turnserver", "-n", "--listening-ip", "10.5.0.2", "--relay-ip", "10.5.0.2",
            "--realm", "lab", "--lt-cred-mech", "--user", f"{USER}:{PASSWORD}", "--no-tls",
            "--no-dtls", "--no-tcp", "--no-tcp-relay", "--no-cli", "--log-file", "stdout",
            "--pidfile", HOME / "turn.pid", "--userdb", HOME / "turn.db",
            ready="DB connection success")

    def end(self) -> None:
        self.program.send_signal(signal.SIGTERM)
        self.program.wait(trial.PATIENCE)


class Ends:
    def __init__(self, build: Path, plain: bool) -> None:
        self.build, self.plain = build, plain
        self.secret = private(HOME / "secret", secrets.token_hex(24))
        self.password = private(HOME / "password", PASSWORD)
        self.clip = HOME / "clip.y4m"  # fills any rate
        trial.write_noise(self.clip, 320, 192, bytes(112 + b % 32 for b in range(256)))
        self.wrong = private(HOME / "wrong", "another")

    def start(self, host: str, *words: object, ready: str = "") -> Program:
        return Program(host, "unshare", "--mount", "sh", "-c", START, "sh", *words, ready=ready)

    def turn(self, password: Path | None = None) -> list[object]:
        return ["--turn", f"{USER}@server", "--turn-secret", password or self.password]


class Call:
    """v listens, s calls, or both meet; what they have said and recorded."""

    def __init__(self, ends: Ends, s: Sequence[object], v: Sequence[object], to: str = "office",
                 listener: str = "v", meanwhile: Callable[[Program], None] | None = None,
                 seconds: float = SECONDS) -> None:
        self.home = Path(tempfile.mkdtemp())
        common = ["--secret", ends.secret, "--source", ends.clip, "--audio", "test", "--sink",
                  "none", "--audio-sink", "none"]
        program = ends.build / "streamer/paqm-streamer"
        self.control, socket = self.home / "control.sock", self.home / "client.sock"
        daemon = Program("s", ends.build / "feedback-daemon/paqmd", "-i", "n", "--socket", socket,
                         "--control", self.control, "--user", "root", ready="ready")
        here = ["--listen"] if to else []
        self.listener = ends.start(listener, program, "call", *here, *common, "--record",
                                   self.home / "v", "--paqmd", "none", *v, ready="waiting")
        self.begin = time.time_ns()
        there = [to] if to else []
        self.caller = ends.start("s", program, "call", *there, *common, "--record",
                                 self.home / "s", "--paqmd", socket, "--duration", str(seconds),
                                 *s)
        if meanwhile:
            meanwhile(self.caller)
        self.flows = self.registered(ends.build)
        self.said = {}
        for host, one in (("s", self.caller), ("v", self.listener)):
            try:
                one.wait(trial.PATIENCE if host == "s" else 20)
            except subprocess.TimeoutExpired:
                one.kill()
                one.wait()
            self.said[host] = one.said()
        daemon.end(signal.SIGTERM)

    def registered(self, build: Path) -> list[dict[str, Any]]:
        """What paqmd of s knows of its streams, some seconds after the first picture."""
        end = time.monotonic() + 10
        while "talking to" not in self.caller.said():
            if self.caller.poll() is not None or time.monotonic() > end:
                return []
            time.sleep(0.2)
        time.sleep(5)
        answer = json.loads(run(str(build / "feedback-daemon/paqmctl"), "--control",
                                str(self.control), "-j", "flows"))
        return list(answer["flows"])

    def rows(self, host: str, name: str) -> list[dict[str, str]]:
        path = self.home / host / f"{name}.csv"
        return trial.rows(path) if path.exists() else []

    def times(self, host: str, name: str, column: str) -> list[float]:
        """When it was, s since the caller was started."""
        return [(int(row[column]) - self.begin) / 1e9 for row in self.rows(host, name)]

    def paths(self, host: str, media: str = "video") -> list[str]:
        """In the order in which they were taken: what it goes by, from and to."""
        found = []
        for row in self.rows(host, "events"):
            match = re.fullmatch(rf"{media} from .* \((\w+) to (\w+)\)", row["detail"])
            if row["event"] == "path" and match:
                found.append(f"{match[1]} {match[2]}")
        return found

    def talks(self, name: str, first: float | None = FIRST) -> None:
        """Both see and hear each other."""
        for host in "sv":
            found = re.search(r"showed (\d+), played (\d+)", self.said[host])
            check(f"{name}: {host} sees and hears",
                  found and int(found[1]) > 150 and int(found[2]) > 300, self.said)
            shown = self.times(host, "video", "play_ns")
            if first and shown:
                within(f"{name}: {host} sees the first picture after so many seconds", shown[0], 0,
                       first)

    def arrives(self) -> float:
        """Pictures of s at v in the long run, bit/s on the wire."""
        times = self.times("v", "rx", "t_ns")
        end = max(times) - 1
        arrived = sum(int(row["wire_bytes"]) for at, row in
                      zip(times, self.rows("v", "rx"), strict=True) if SETTLED <= at < end)
        return arrived * 8 / (end - SETTLED)

    def follows(self, name: str, ends: Ends, share: float = 1) -> None:
        """The stream of s is told its share of the link, and keeps to it."""
        ways = [row["detail"].split()[2:5:2] for row in self.rows("s", "events")
                if row["event"] == "path" and row["detail"].startswith("video ")]
        check(f"{name}: paqmd knows the addresses on the wire, and sees the packets", ways and
              len(self.flows) == 1 and all(end in self.flows[0]["flow"] for end in ways[-1]) and
              self.flows[0]["packets"] > 10, (ways, self.flows))
        if ends.plain:
            return
        told = [(at, float(row["rate_bps"])) for at, row in
                zip(self.times("s", "feedback", "t_ns"), self.rows("s", "feedback"), strict=True)]
        late = [(at, rate) for at, rate in told if at > SETTLED]
        check(f"{name}: routers tell rates", len(late) > 1, (told, self.said))
        if len(late) < 2:
            return
        rate = self.arrives()
        fair = LINK * share
        # v hears no router and rises and falls by itself: at a moment s is told what v leaves
        told_bits = sum(bps * (then - at) for (at, bps), (then, _) in itertools.pairwise(late))
        granted = told_bits / (late[-1][0] - late[0][0])
        within(f"{name}: part of its share that the router grants", granted / fair, 0.8, 1.05)
        within(f"{name}: part of its share that pictures take", rate / fair, 0.8, 1.05)


def stun(ends: Ends) -> None:
    """Both gates keep ports: what a server tells of them is enough."""
    gate("n", "10.1.0.9")
    gate("m", "10.4.0.2")
    capture = Capture("s", "n")
    call = Call(ends, ["--stun", "server", "--dscp"], ["--stun", "server", "--dscp"])
    marks = {mark for _, _, mark in capture.end()}
    call.talks("STUN")
    call.follows("STUN", ends)
    check("STUN: nothing goes by the relay", "relay" not in " ".join(
        call.paths("s") + call.paths("v")) and call.paths("s"), call.said)
    check("STUN: all is marked", marks == {AF42, EF}, marks)
    text = (call.home / "s" / "call.json").read_text()
    check("STUN: the recording has the path, and no key of ICE", '"path": "from 10.1.0.2:' in text
          and "pwd" not in text, text)


def turn(ends: Ends) -> None:
    """The gate of s gives each destination another port: only a relay helps."""
    gate("n", "10.1.0.9", "random,fully-random")
    gate("m", "10.4.0.2")
    call = Call(ends, ["--stun", "server", *ends.turn()], ["--stun", "server"])
    call.talks("TURN")
    call.follows("TURN", ends, 0.5)  # what v sends to the relay is the other half
    check("TURN: pictures of s go by its relay", call.paths("s")[-1:] and
          call.paths("s")[-1].startswith("relay "), call.said)
    call = Call(ends, ["--stun", "server"], ["--stun", "server", *ends.turn()])
    call.talks("TURN of the peer")
    call.follows("TURN of the peer", ends, 0.5)


def refused(ends: Ends) -> None:
    """A wrong password, and a server that never answers, where a relay would be needed."""
    gate("n", "10.1.0.9", "random,fully-random")
    gate("m", "10.4.0.2")
    call = Call(ends, ["--stun", "server", *ends.turn(ends.wrong)], ["--stun", "server"])
    check("wrong password: it is said so", "the TURN server 10.5.0.2 port 3478 gives no relay: are "
          "user and secret right" in call.said["s"], call.said)
    # one end is a moment later, and hears that the other has given up
    check("wrong password: and that there is no path", call.caller.returncode == 1 and
          any("ICE has found no path for media to the peer in 8 s" in said
              for said in call.said.values()) and all(
          "ICE has found no path for media to the peer" in said
          for said in call.said.values()), call.said)
    check("wrong password: the password is not told", "another" not in call.said["s"] and
          PASSWORD not in call.said["s"], call.said)
    gate("n", "10.1.0.9")
    call = Call(ends, ["--stun", "nobody", "--turn", f"{USER}@nobody", "--turn-secret",
                       ends.password], ["--ice", "on"], to="gate", listener="n")
    call.talks("no answer")
    for kind in ("STUN", "TURN"):
        check(f"no answer: the {kind} server is named",
              f"the {kind} server 10.5.0.9 port 3478 has not answered in half a second"
              in call.said["s"], call.said)


def slow(ends: Ends) -> None:
    """A server by satellite: what it tells comes when the call has begun, and it is needed."""
    inside("c", "tc", "qdisc", "add", "dev", "r", "root", *topology.netem(900))
    gate("m", "10.4.0.2")
    gate("n", "10.1.0.9")
    call = Call(ends, ["--stun", "server"], ["--stun", "server"])
    call.talks("slow STUN server", 4.0)
    check("slow STUN server: v is found by what it told", "10.3.0.1" in " ".join(
        row["detail"] for row in call.rows("s", "events") if row["event"] == "path"), call.said)
    gate("n", "10.1.0.9", "random,fully-random")
    call = Call(ends, ["--stun", "server", *ends.turn()], ["--stun", "server"])
    call.talks("slow TURN server", 8.0)
    check("slow TURN server: pictures of s go by its relay", call.paths("s")[-1:] and
          call.paths("s")[-1].startswith("relay "), call.said)
    check("slow servers: they are named", all(
        f"the {kind} server 10.5.0.2 port 3478 has not answered in half a second"
        in call.said["s"] for kind in ("STUN", "TURN")), call.said)
    inside("c", "tc", "qdisc", "del", "dev", "r", "root")


def strangers(ends: Ends) -> None:
    """STUN from who does not know the words that the ends have told each other."""
    gate("n", "10.1.0.9")
    gate("m", "10.4.0.2")

    def attack(_: Program) -> None:
        for port in (41000, 41002):
            Program("n", "python3", "-c", STRANGER, "10.1.0.2", port, ready="ready")

    call = Call(ends, ["--stun", "server", "--port", "41000"], ["--stun", "server"],
                meanwhile=attack)
    call.talks("strangers", 2.5)
    check("strangers: no path leads to them", call.paths("s") and "10.1.0.1" not in " ".join(
        row["detail"] for row in call.rows("s", "events") if row["event"] == "path"), call.said)


def moved(ends: Ends) -> None:
    """The way without the relay opens late: what has begun by the relay goes on without it."""
    gate("n", "10.1.0.9")
    gate("m", "10.4.0.2")
    for host, other in (("n", "10.3.0.1"), ("m", "10.2.0.1")):
        inside(host, "nft", "add table ip late; add chain ip late out { type filter hook "
               f"postrouting priority 300; }}; add rule ip late out ip daddr {other} udp dport "
               "!= 0 drop")

    def open_way(caller: Program) -> None:
        caller.tells("picture goes")
        for host in "nm":
            inside(host, "nft", "delete", "table", "ip", "late")

    call = Call(ends, ["--stun", "server", *ends.turn()], ["--stun", "server", *ends.turn()],
                meanwhile=open_way)
    call.talks("another path", 4.0)
    paths = call.paths("s")
    check("another path: from the relay to none", len(paths) > 1 and "relay" in paths[0] and
          "relay" not in paths[-1], (paths, call.said))
    call.follows("another path", ends)


def without(ends: Ends) -> None:
    """One end only knows it, or wants it; options that make no sense."""
    gate("n", "10.1.0.9")
    for mine, theirs in ((["--ice", "on"], ["--ice", "off"]), ([], ["--ice", "on"])):
        call = Call(ends, mine, theirs, to="gate", listener="n", seconds=9)
        name = f"ICE of one end, {'the caller' if mine else 'who listens'}"
        call.talks(name, None)
        one, other = "sv" if mine else "vs"
        check(f"{name}: both are told", "the peer does not use ICE" in call.said[one] and
              "give --ice on here, too" in call.said[other], call.said)
    for words, says in ((["--ice", "maybe"], "must be on, off or auto"),
                        (["--ice", "off", "--stun", "server"], "need ICE"),
                        (["--turn", "server"], "give USER@HOST"),
                        (["--turn", f"{USER}@server"], "needs --turn-secret"),
                        (["--turn-secret", ends.password], "without --turn"),
                        (["--stun", "nowhere.invalid"], "cannot resolve")):
        tried = ends.start("s", ends.build / "streamer/paqm-streamer", "call", "gate", "--secret",
                           ends.secret, "--sink", "none", *words)
        tried.wait(trial.PATIENCE)
        check(f"options: {' '.join(map(str, words))}", tried.returncode == 2 and
              says in tried.said(), tried.said())


class Rendezvous:
    """paqm-meet, beside coturn."""

    def __init__(self, ends: Ends) -> None:
        self.program = Program("c", ends.build / "streamer/paqm-meet", ready="ready")

    def end(self) -> dict[str, int]:
        said = self.program.end(signal.SIGTERM)
        counters: dict[str, int] = json.loads(said[said.index("{"):])
        return counters


def meet(ends: Ends) -> None:
    """Nothing is forwarded: both meet at c. A relay is needed, or none; strangers; it is killed."""
    both = ["--meet", "server", "--stun", "server"]
    server = Rendezvous(ends)
    gate("n", "")
    gate("m", "")
    call = Call(ends, both, both, to="")
    call.talks("rendezvous")
    call.follows("rendezvous", ends)
    check("rendezvous: nothing goes by the relay", "relay" not in " ".join(
        call.paths("s") + call.paths("v")) and call.paths("s"), call.said)
    check("rendezvous: the end that hangs up says so to the other", "the peer hung up" in
          call.said["v"], call.said)
    about = json.loads((call.home / "s" / "call.json").read_text())
    check("rendezvous: the recording has the peer, not the rendezvous",
          about["peer"] == "10.3.0.1" and not about["listened"], about)
    counters = server.end()
    del counters["pairs"]  # their last words may be on the way to it
    check("rendezvous: it has joined two, and refused none", counters["joined"] == 1 and
          sum(counters.values()) == 1, counters)

    server = Rendezvous(ends)
    gate("n", "", "random,fully-random")

    def knock(_: Program) -> None:
        # at the server itself: on the link they would be entitled to a share of it
        Program("c", "python3", "-c", KNOCKS, "10.5.0.2", ready="ready")

    call = Call(ends, [*both, *ends.turn()], both, to="", meanwhile=knock)
    call.talks("rendezvous and relay, among strangers")
    check("rendezvous and relay: pictures of s go by it", call.paths("s")[-1:] and
          call.paths("s")[-1].startswith("relay "), call.said)
    counters = server.end()
    check("strangers at the rendezvous: refused, and counted", counters["joined"] == 1 and
          counters["wrong"] > 20 and counters["silent"] + counters["address"] > 20, counters)

    server = Rendezvous(ends)
    gate("n", "")

    def kill(caller: Program) -> None:
        caller.tells("talking to")
        time.sleep(3)
        third = ends.start("s", ends.build / "streamer/paqm-streamer", "call", "--secret",
                           ends.secret, "--source", "none", "--audio", "none", "--sink", "none",
                           "--audio-sink", "none", *both)
        third.tells("two ends with this secret are in a call already")
        third.kill()
        third.wait()
        server.program.kill()
        server.program.wait()

    call = Call(ends, both, both, to="", meanwhile=kill)
    call.talks("rendezvous killed")
    for host in "sv":
        check(f"rendezvous killed: {host} is told, and the call goes on",
              "the rendezvous is lost" in call.said[host] and
              [row["detail"] for row in call.rows(host, "events") if row["event"] == "link"] ==
              ["lost"], call.said)
    shown = call.times("v", "video", "play_ns")
    within("rendezvous killed: v sees pictures until the end, s", max(shown, default=0),
           SECONDS - 1, SECONDS + 3)
    check("rendezvous killed: who hangs up is missed", "no packet of the peer for 10 s" in
          call.said["v"], call.said)


# IPv6 is not translated, but lets in only what answers, too.
SIX = (("s", "n", "fd00:1::2"), ("n", "s", "fd00:1::1"), ("n", "r", "fd00:2::1"),
       ("r", "n", "fd00:2::2"), ("r", "m", "fd00:3::2"), ("m", "r", "fd00:3::1"),
       ("m", "v", "fd00:4::1"), ("v", "m", "fd00:4::2"))
SIX_ROUTES = (("s", "default", "fd00:1::1"), ("n", "default", "fd00:2::2"),
              ("r", "fd00:1::/64", "fd00:2::1"), ("r", "fd00:4::/64", "fd00:3::1"),
              ("m", "default", "fd00:3::2"), ("v", "default", "fd00:4::1"))
SIX_GATE = """
table ip6 gate {
  chain through { type filter hook forward priority filter;
    iifname "r" ct state != { established, related } meta l4proto != icmpv6 drop; }
}
"""


def six(ends: Ends) -> None:
    """No path by IPv4, since both gates give each destination another port; one by IPv6."""
    server = Rendezvous(ends)
    for host in "nm":
        gate(host, "", "random,fully-random")
        inside(host, "nft", "-f", "-", stdin=SIX_GATE)
    for host in "snrmv":
        inside(host, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=0",
               f"net.ipv6.conf.all.forwarding={int(host in 'nrm')}")
    for host, device, address in SIX:
        inside(host, "ip", "-6", "addr", "add", f"{address}/64", "dev", device, "nodad")
    for host, to, via in SIX_ROUTES:
        inside(host, "ip", "-6", "route", "add", to, "via", via)
    both = ["--meet", "server", "--stun", "server"]
    call = Call(ends, both, both, to="")
    call.talks("IPv6")
    ways = [row["detail"] for row in call.rows("s", "events") if row["event"] == "path"]
    check("IPv6: picture and sound go by it", len(ways) == 2 and
          all("[fd00:1::2]" in way and "[fd00:4::2]" in way for way in ways), (ways, call.said))
    check("IPv6: paqmd knows the addresses", len(call.flows) == 1 and
          "fd00:1::2" in call.flows[0]["flow"] and call.flows[0]["packets"] > 10, call.flows)
    for host in "snrmv":
        inside(host, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1")
    server.end()


# Probes of others, to the port of media.
PROBES = """
import random, socket, sys, time
dice, s = random.Random(2), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
first, length = int(sys.argv[3]), int(sys.argv[4])
print("ready", flush=True)
end = time.monotonic() + 12
while time.monotonic() < end:
    s.sendto(bytes([first]) + dice.randbytes(dice.choice([3, length - 1, length - 1, 40])),
             (sys.argv[1], int(sys.argv[2])))
    time.sleep(0.005)
"""
PROBE_FIRST, PROBE_LENGTH = 15, 20  # core/paqm_inband.h


def carried(ends: Ends) -> None:
    """Rates in probes beside the stream, which cross every gate: no daemon, and others' probes."""
    gate("n", "10.1.0.9")
    gate("m", "10.4.0.2")
    for device in "mc":
        inside("r", "tc", "qdisc", "change", "dev", device, "root", "paqm", "feedback", "in-band")

    def attack(_: Program) -> None:
        Program("m", "python3", "-c", PROBES, "10.4.0.2", 42000, PROBE_FIRST, PROBE_LENGTH,
                ready="ready")

    call = Call(ends, ["--stun", "server", "--carrier", "probe", "--paqmd", "none"],
                ["--stun", "server", "--port", "42000"], meanwhile=attack)
    call.talks("probes")
    told = list(zip(call.times("s", "feedback", "t_ns"), call.rows("s", "feedback"), strict=True))
    check("probes: they are the way by which rates come", told and
          {row["cause"] for _, row in told} == {"probe"}, told[:5])
    late = [float(row["rate_bps"]) for at, row in told if at > SETTLED]
    within("probes: part of the link that the router grants", late[-1] / LINK, 0.8, 1.05)
    within("probes: part of it that pictures take", call.arrives() / LINK, 0.8, 1.05)
    for device in "mc":
        inside("r", "tc", "qdisc", "change", "dev", device, "root", "paqm", "feedback", "quench")


def main() -> int:
    groups: dict[str, Callable[[Ends], None]] = {
        "stun": stun, "turn": turn, "refused": refused, "slow": slow, "strangers": strangers,
        "moved": moved, "without": without, "meet": meet, "six": six, "carried": carried}
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--build", type=Path, default=TOP / "build")
    parser.add_argument("--plain", action="store_true", help="without P-AQM: outside a guest")
    parser.add_argument("group", nargs="*", choices=[[], *groups])
    args = parser.parse_args()
    (HOME / "hosts").write_text(NAMES)
    net = network()
    if args.plain:
        net.steps = [x for x in net.steps if not isinstance(x, topology.Queue)]
    topology.make(net)
    if not args.plain:
        trial.load_modules()
        for device in "mc":
            inside("r", "tc", "qdisc", "add", "dev", device, "root", "paqm", "bandwidth",
                   f"{LINK}bit", "feedback", "quench")
    server = Server()
    ends = Ends(args.build.resolve(), args.plain)
    for name, group in groups.items():
        if not args.group or name in args.group:
            print(f"# {name}", flush=True)
            group(ends)
    server.end()
    return trial.summary()


if __name__ == "__main__":
    sys.exit(main())
