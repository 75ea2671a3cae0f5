#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Who can make paqmd believe what: the real daemon, the real router, an attacker; in a lab guest.

    s (media sender, paqmd) -- r (router, sch_paqm) -- v (receiver)
                               |
                               a (attacker off the path; no filter anywhere for false sources)

While something is forged the router tells nobody anything, so that not one message may be believed.
Prints `FIGURES {...}` at the end: what was sent and what became of it.

Usage: lab.py PAQMD PAQMCTL ATTACKER [SCALE]; one SCALE-th of the forged messages
"""

from __future__ import annotations

import json
import os
import random
import select
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "kernel" / "lab-tests"), str(HERE.parent / "tests")]
import trial  # noqa: E402
from rig import (  # noqa: E402
    DPORT,
    SPORT,
    Client,
    Namespaces,
    Rate,
    ip_header,
)
from trial import inside, run  # noqa: E402
from wire import about, resum, said, saying, tagged, untagged  # noqa: E402

from paqm_lab.topology import Network, make  # noqa: E402

SENDER, ROUTER, RECEIVER, ATTACKER = "10.0.1.2", "10.0.1.1", "10.0.9.2", "10.0.7.2"
FLOOR, CEIL = 100_000, 3_000_000
BANDWIDTH = "2mbit"
KEY_ID, KEY = 7, bytes(range(16))
# of each kind of media; a million in all
FORGED = {"payload": 170_000, "packet": 100_000, "router": 70_000}
FOREIGN = 35_000
# What the victim sends: RTP as it is in textbooks; as browsers send it, with header extensions;
# several sources on one pair of ports (BUNDLE); the same bytes to two receivers. What is behind
# the headers is random always, as it is with SRTP.
KINDS = ("plain", "extension", "bundle", "fanout")
SSRC, SOURCES = 0x11223344, 6
PER_SECOND = 50_000
SHAKEN = 20_000
ETH_P_IP = 0x0800

Json = dict[str, Any]


def hardware(name: str, device: str) -> str:
    """The address of a device on the link."""
    address: str = json.loads(run("ip", "-n", name, "-j", "link", "show", device))[0]["address"]
    return address


def network() -> None:
    """s, v and a around r; what comes from where it cannot come from is not dropped."""
    net = Network()
    net.host("r", True)
    for host, mine, theirs in (("s", ROUTER, SENDER), ("v", "10.0.9.1", RECEIVER),
                               ("a", "10.0.7.1", ATTACKER)):
        net.link("r", net.host(host), devices=(f"r{host}", f"{host}r"), addresses=[(mine, theirs)])
        net.route(host, "default", mine)
    make(net)
    for name, devices in (("s", ["sr"]), ("r", ["rs", "rv", "ra"])):
        for which in ("all", "default", *devices):
            inside(name, "sysctl", "-qw", f"net.ipv4.conf.{which}.rp_filter=0")


def tc(*words: str) -> None:
    inside("r", "tc", "qdisc", *words)


def rtp(kind: str, n: int) -> bytes:
    """The header of packet number `n`: all of it can be guessed."""
    source, seq = (random.randrange(SOURCES), n) if kind == "bundle" else (0, n)
    first = 0x90 if kind in ("extension", "bundle") else 0x80
    head = struct.pack("!BBHII", first, 96, seq & 0xFFFF, seq * 90 & 0xFFFFFFFF, SSRC + source)
    if first == 0x90:  # abs-send-time, transport-wide sequence number, mid
        elements = bytes([0x22]) + (n * 1048).to_bytes(8, "big")[-3:]
        elements += bytes([0x31]) + (n & 0xFFFF).to_bytes(2, "big") + bytes([0x40]) + b"0"
        elements += bytes(-len(elements) % 4)
        head += struct.pack("!HH", 0xBEDE, len(elements) // 4) + elements
    return head


def media(kind: str) -> None:
    """500 bytes each 4 ms whose contents nobody can guess."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((SENDER, SPORT))
    n = 0
    while True:
        packet = rtp(kind, n) + os.urandom(488)
        for port in (DPORT, DPORT + 2) if kind == "fanout" else (DPORT,):
            sock.sendto(packet, (RECEIVER, port))
        n += 1
        time.sleep(0.004)


class Lab:
    def __init__(
        self, paqmd: str, paqmctl: str, attacker: str, home: Path, scale: int
    ) -> None:
        self.paqmd, self.paqmctl, self.attacker, self.home = paqmd, paqmctl, attacker, home
        self.scale = scale
        self.ipc, self.control = home / "client.sock", home / "control.sock"
        self.daemon: subprocess.Popen[bytes] | None = None
        self.log = (home / "log").open("wb")
        self.net = Namespaces()
        self.raw = self.net.socket("a", socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        self.raw.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
        self.onpath = self.net.socket("r", socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        self.icmp = self.net.socket("s", socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
        self.icmp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        self.wire = self.net.socket("r", socket.AF_PACKET, socket.SOCK_DGRAM,
                                    socket.htons(ETH_P_IP))
        self.wire.bind(("rs", ETH_P_IP))
        self.sinks = []
        for port in (DPORT, DPORT + 2):
            self.sinks.append(self.net.socket("v", socket.AF_INET, socket.SOCK_DGRAM))
            self.sinks[-1].bind((RECEIVER, port))
        self.kind = KINDS[0]
        self.sender: subprocess.Popen[bytes] | None = None
        self.client: Client | None = None
        self.rate: Rate | None = None
        self.figures: Json = {}

    # ---------------------------------------------------------------- the victim

    def send_kind(self, kind: str) -> None:
        """The victim sends this kind of media from now on."""
        self.silence()
        self.kind = kind
        words = [sys.executable, __file__, "media", kind]
        self.sender = subprocess.Popen(["ip", "netns", "exec", "s", *words])

    def silence(self) -> None:
        if self.sender:
            self.sender.kill()
            self.sender.wait()

    # ---------------------------------------------------------------- the daemon

    def start(self, *options: str) -> None:
        words = [self.paqmd, "--socket", str(self.ipc), "--control", str(self.control), *options]
        self.daemon = subprocess.Popen(["ip", "netns", "exec", "s", *words], stderr=self.log)
        end = time.monotonic() + 30
        while not self.control.exists() or not self.ipc.exists():
            assert time.monotonic() < end and self.daemon.poll() is None, "paqmd does not start"
            time.sleep(0.05)
        time.sleep(0.5)
        self.client = Client(self.ipc)
        ssrc = 0 if self.kind == "bundle" else SSRC
        for n in range(2 if self.kind == "fanout" else 1):
            assert self.client.register(1 + n, source=SENDER, to=RECEIVER, ceil=CEIL, ssrc=ssrc,
                                        dport=DPORT + 2 * n) == 0
            self.client.rate()
        self.rate = None

    def stop(self) -> None:
        assert self.daemon and self.client
        self.client.sock.close()
        self.daemon.terminate()
        self.daemon.wait(30)
        for path in (self.ipc, self.control):
            path.unlink(missing_ok=True)

    def stats(self) -> Json:
        words = [self.paqmctl, "--control", str(self.control), "--json", "stats"]
        stats: Json = json.loads(run(*words))["stats"]
        return stats

    def newest(self) -> Rate | None:
        """The newest record that the media sender has."""
        assert self.client
        while select.select([self.client.sock], [], [], 0)[0]:
            self.rate = self.client.rate()
        return self.rate

    def until(self, done: Callable[[], bool], seconds: float) -> float | None:
        """Seconds until something is so; None: not in this time."""
        begin = time.monotonic()
        while not done():
            if time.monotonic() > begin + seconds:
                return None
            time.sleep(0.02)
        return round(time.monotonic() - begin, 2)

    # ---------------------------------------------------------------- what is sent

    def true_messages(self, seconds: float) -> list[bytes]:
        """What the router says meanwhile, whole IP packets."""
        while select.select([self.icmp], [], [], 0)[0]:
            self.icmp.recv(2048)
        found = []
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([self.icmp], [], [], left)[0]:
                packet = self.icmp.recv(2048)
                if packet[20] == 253:
                    found.append(packet)
        return found

    def seen_packet(self) -> bytes:
        """Media as somebody on the path sees it, from the IP header on."""
        while select.select([self.wire], [], [], 0)[0]:
            self.wire.recv(2048)
        while True:
            packet = self.wire.recv(2048)
            if packet[9] == 17 and packet[20:22] == struct.pack("!H", SPORT):
                return packet

    def send(self, sock: socket.socket, packets: list[bytes]) -> None:
        """To the sender host, a thousand in 20 ms."""
        for number, packet in enumerate(packets):
            sock.sendto(packet, (SENDER, 0))
            if number % 500 == 499:
                time.sleep(0.01)
        time.sleep(0.2)

    def attempt(self, name: str, act: Callable[[], int]) -> Json:
        """Do something that must not be believed; note what became of it."""
        before = self.stats()
        sent = act()
        time.sleep(0.3)
        after = self.stats()
        refused = {k: n - before["refused"][k] for k, n in after["refused"].items()
                   if n != before["refused"][k]}
        out = {"sent": sent, "believed": after["accepted"] - before["accepted"],
               "arrived": sum(refused.values()), "refused": refused}
        name = name if self.kind == KINDS[0] else f"{self.kind}_{name}"
        self.figures[name] = out
        print(f"{name}: {out}", flush=True)
        return out

    def listen(self, name: str) -> list[bytes]:
        """True messages for three seconds, and what became of them."""
        before = self.stats()
        messages = self.true_messages(3)
        after = self.stats()
        name = name if self.kind == KINDS[0] else f"{self.kind}_{name}"
        self.figures[name] = {"sent": len(messages),
                              "believed": after["accepted"] - before["accepted"],
                              "refused": after["refused_total"] - before["refused_total"]}
        assert messages, "the router says nothing"
        return messages

    def forge(self, template: bytes, guess: str, count: int) -> int:
        path = self.home / "template"
        path.write_bytes(template)
        words = [self.attacker, "ar", hardware("r", "ra"), str(path), str(count // self.scale),
                 str(PER_SECOND)]
        sent: int = json.loads(inside("a", *words, guess))["sent"]
        return sent


def from_anybody(icmp: bytes) -> bytes:
    """A message in an IP packet with a false source."""
    source = f"{random.randrange(1, 127)}.{random.randrange(256)}.0.9"
    return ip_header(source, SENDER, 1, 20 + len(icmp)) + icmp


def truncations(icmp: bytes) -> list[bytes]:
    """Every shorter message, its checksum right and wrong."""
    cut = [icmp[:n] for n in range(len(icmp))]
    return [from_anybody(m) for m in cut] + [from_anybody(resum(m)) for m in cut if len(m) >= 4]


def flipped(icmp: bytes) -> list[bytes]:
    """Every bit of the message flipped."""
    found = []
    for bit in range(8 * len(icmp)):
        changed = bytearray(icmp)
        changed[bit // 8] ^= 1 << bit % 8
        found.append(bytes(changed))
    return found


def shaken(icmp: bytes) -> list[bytes]:
    """Two to eight bits of the message flipped, at random."""
    found = []
    for _ in range(SHAKEN):
        changed = bytearray(icmp)
        for _ in range(random.randrange(2, 9)):
            bit = random.randrange(8 * len(icmp))
            changed[bit // 8] ^= 1 << bit % 8
        found.append(bytes(changed))
    return found


def off_path(lab: Lab) -> None:
    """Somebody who knows addresses and ports, and no contents."""
    tc("add", "dev", "rv", "root", "handle", "1:", "paqm", "bandwidth", BANDWIDTH, "feedback",
       "icmp")
    lab.start()
    messages = lab.listen("true")
    tc("change", "dev", "rv", "root", "handle", "1:", "paqm", "feedback", "none")
    time.sleep(0.5)
    last = messages[-1]

    def replay() -> int:
        packets = [from_anybody(m[20:]) for m in messages for _ in range(500)]
        lab.send(lab.raw, packets)
        return len(packets)

    def truncated() -> int:
        packets = truncations(last[20:])
        lab.send(lab.raw, packets)
        return len(packets)

    def mutated() -> int:
        packets = [from_anybody(m) for m in flipped(last[20:])]
        lab.send(lab.raw, packets)
        return len(packets)

    lab.attempt("replayed", replay)
    lab.attempt("truncated", truncated)
    lab.attempt("mutated", mutated)
    for guess, count in FORGED.items():
        # from a packet that has just been sent: all but its payload is right
        template = about(saying(last[20:], 1, 77_777), lab.seen_packet())
        lab.attempt(f"forged_{guess}", lambda g=guess, c=count, t=template: lab.forge(
            from_anybody(t), g, c))
    template = about(saying(last[20:], 1, 77_777), lab.seen_packet())
    lab.attempt("foreign", lambda: lab.forge(from_anybody(template), "foreign", FOREIGN))
    lab.stop()


def on_path(lab: Lab) -> None:
    """Somebody who sees the packets; the hosts have no keys."""
    tc("change", "dev", "rv", "root", "handle", "1:", "paqm", "feedback", "icmp")
    lab.start()
    messages = lab.true_messages(3)
    icmp, out = messages[-1][20:], {}
    honest = lab.newest()
    assert honest and honest.routers == 1, honest
    out["honest_bps"] = honest.bps

    def say(seq: int, bps: int, router: int | None = None) -> None:
        forged = about(saying(icmp, seq, bps, router), lab.seen_packet())
        lab.onpath.sendto(ip_header("192.0.2.9", SENDER, 1, 20 + len(forged)) + forged,
                          (SENDER, 0))

    def rate() -> int:
        newest = lab.newest()
        return newest.bps if newest else 0

    say(1, 1, 0xBAD)
    out["lowered_to_floor_s"] = lab.until(lambda: rate() == FLOOR, 2)
    out["recovery_from_floor_s"] = lab.until(lambda: rate() > FLOOR, 30)
    lab.until(lambda: rate() > 0.7 * honest.bps, 30)
    before = lab.stats()
    say(said(icmp)[0] + 1_000_000, 10**12)
    out["lifted_to_ceiling_s"] = lab.until(lambda: rate() == CEIL, 2)
    out["recovery_from_ceiling_s"] = lab.until(lambda: 0 < rate() < CEIL, 30)
    after = lab.stats()
    out["true_messages_blocked"] = after["refused"]["seq_stale"] - before["refused"]["seq_stale"]
    # who has a true message may change it so that its checksum stays right
    tc("change", "dev", "rv", "root", "handle", "1:", "paqm", "feedback", "none")
    time.sleep(0.5)
    changed = about(saying(icmp, said(icmp)[0] + 3_000_000, 500_000), lab.seen_packet())
    lab.send(lab.onpath, [from_anybody(changed)])
    before = lab.stats()
    lab.send(lab.onpath, [from_anybody(m) for m in shaken(changed)])
    out[f"of_{SHAKEN}_shaken_believed"] = lab.stats()["accepted"] - before["accepted"]
    lab.figures["on_path_without_keys"] = out
    print(f"on path, no keys: {out}", flush=True)
    lab.stop()


def with_keys(lab: Lab) -> None:
    """The same with keys; what is left is to suppress."""
    keys = lab.home / "keys"
    keys.write_text(f"* {KEY_ID} {KEY.hex()}\n")
    keys.chmod(0o600)
    tc("change", "dev", "rv", "root", "handle", "1:", "paqm", "feedback", "icmp", "key",
       f"{KEY_ID}:{KEY.hex()}")
    lab.start("--keys", str(keys), "--require-auth")
    messages, honest = lab.listen("true_tagged"), lab.newest()
    assert honest and honest.bps, honest
    tc("change", "dev", "rv", "root", "handle", "1:", "paqm", "feedback", "none")
    time.sleep(0.5)
    icmp = messages[-1][20:]

    def forge() -> int:
        seen, packets = lab.seen_packet(), []
        for n in range(1000):
            plain = about(saying(icmp, said(icmp)[0] + n + 1, 1 + n), seen)
            packets.append(from_anybody(plain))  # the old tag
            packets.append(from_anybody(tagged(plain, KEY_ID, os.urandom(16), SENDER)))
            packets.append(from_anybody(tagged(plain, KEY_ID + 1, KEY, SENDER)))
            packets.append(from_anybody(tagged(plain, KEY_ID, KEY, ATTACKER)))  # another host
            packets.append(from_anybody(untagged(plain)))
        lab.send(lab.onpath, packets)
        return len(packets)

    def flips() -> int:
        # of a true message, made newer; checksums right
        newer = saying(icmp, said(icmp)[0] + 1, said(icmp)[1])
        packets = [from_anybody(resum(m)) for m in flipped(newer) + shaken(newer)]
        lab.send(lab.onpath, packets)
        return len(packets)

    def replay() -> int:
        packets = [from_anybody(m[20:]) for m in messages for _ in range(100)]
        lab.send(lab.onpath, packets)
        return len(packets)

    lab.attempt("keys_forged", forge)
    lab.attempt("keys_mutated", flips)
    lab.attempt("keys_replayed", replay)

    out: Json = {}
    tc("change", "dev", "rv", "root", "handle", "1:", "paqm", "feedback", "icmp")
    time.sleep(2)
    assert (now := lab.newest()) and now.cause == "erf", "the router is not believed any more"
    tc("add", "dev", "rs", "root", "netem", "loss", "100%")
    out["suppressed_expires_s"] = lab.until(lambda: bool((r := lab.newest()) and
                                                         r.cause == "expired"), 10)
    # held back for less, and for more, than a digest lives
    for delay in ("2s", "5s"):
        tc("replace", "dev", "rs", "root", "netem", "delay", delay, "limit", "10000")
        time.sleep(7)
        before = lab.stats()
        time.sleep(4)
        after = lab.stats()
        out[f"delayed_{delay}_believed"] = after["accepted"] - before["accepted"]
        out[f"delayed_{delay}_refused"] = after["refused_total"] - before["refused_total"]
    lab.figures["on_path_with_keys"] = out
    print(f"on path, keys: {out}", flush=True)
    lab.stop()


def moved(lab: Lab) -> None:
    """The same bytes go to two receivers: what is said of the one flow is moved to the other."""
    lab.start("--keys", str(lab.home / "keys"), "--require-auth")
    # what is said of the second flow is suppressed: offset 50 is its destination port
    tc("replace", "dev", "rs", "root", "handle", "5:", "prio", "priomap", *("0" for _ in range(16)))
    tc("add", "dev", "rs", "parent", "5:3", "netem", "loss", "100%")
    inside("r", "tc", "filter", "add", "dev", "rs", "parent", "5:", "protocol", "ip", "u32",
           "match", "u16", str(DPORT + 2), "0xffff", "at", "50", "flowid", "5:3")
    messages = lab.listen("true_tagged")
    tc("del", "dev", "rs", "root")
    tc("change", "dev", "rv", "root", "handle", "1:", "paqm", "feedback", "none")
    time.sleep(0.2)

    def move() -> int:
        packets = []
        for message in messages:
            icmp = message[20:]
            port = struct.unpack("!H", icmp[30:32])[0]
            other = struct.pack("!H", 2 * DPORT + 2 - port)
            packets.append(from_anybody(resum(icmp[:30] + other + icmp[32:])))
        lab.send(lab.onpath, packets)
        return len(packets)

    lab.attempt("keys_moved", move)
    lab.stop()


def main() -> int:
    if sys.argv[1:2] == ["media"]:
        media(sys.argv[2])
        return 0
    if len(sys.argv) not in (4, 5):
        print("usage: lab.py PAQMD PAQMCTL ATTACKER [SCALE]", file=sys.stderr)
        return 2
    scale = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    random.seed(1)
    trial.load_modules()
    network()
    with tempfile.TemporaryDirectory(prefix="attack-") as home:
        os.chmod(home, 0o755)
        lab = Lab(*sys.argv[1:4], Path(home), scale)
        try:
            for kind in KINDS[:-1]:
                lab.send_kind(kind)
                off_path(lab)
                tc("del", "dev", "rv", "root")
            tc("add", "dev", "rv", "root", "handle", "1:", "paqm", "bandwidth", BANDWIDTH)
            lab.send_kind("plain")
            on_path(lab)
            with_keys(lab)
            lab.send_kind("fanout")
            moved(lab)
        except BaseException:
            lab.log.flush()
            sys.stderr.write((Path(home) / "log").read_text()[-4000:])
            raise
        finally:
            lab.silence()
            if lab.daemon:
                lab.daemon.kill()
    print("FIGURES " + json.dumps(lab.figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
