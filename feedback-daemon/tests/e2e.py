#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""End-to-end test of paqmd: the real daemon, real packets, two network namespaces.

A sender registers a flow and sends RTP-like UDP over a veth pair; the other end
plays the router and answers with feedback messages, valid ones and all kinds of
invalid ones. Needs root (exit code 77, "skipped", otherwise).

Usage: e2e.py PAQMD PAQMCTL
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import wire
from wire import ICMP6_TYPE, checksum, resum

SENDER_IP, ROUTER_IP = "10.77.0.1", "10.77.0.2"
SENDER_IP6, OTHER_IP6, ROUTER_IP6 = "2001:db8:77::1", "2001:db8:77::11", "2001:db8:77::2"
SPORT, DPORT, SSRC = 5004, 5006, 0x11223344
CLONE_NEWNET = 0x40000000
IPC_MAGIC, IPC_VERSION = 0x50514950, 1
REGISTER, REGISTERED, RATE, UNREGISTER, STATUS = 1, 2, 3, 4, 5
RATE_FORMAT = "=IBBHQQQ16sQIIHHBBH"
CAUSES = {0: "none", 1: "erf", 2: "ecf", 3: "expired"}
PATIENCE = 30.0  # seconds until an awaited event counts as missing


class Rate(NamedTuple):
    """What a rate record says."""

    cookie: int
    bps: int
    cause: str
    router: str
    seq: int
    routers: int


def ip_header(src: str, dst: str, proto: int, length: int, ident: int = 0) -> bytes:
    """IPv4 header without options."""
    head = struct.pack("!BBHHHBBH", 0x45, 0, length, ident, 0x4000, 64, proto, 0)
    head += socket.inet_aton(src) + socket.inet_aton(dst)
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:]


def rtp(seq: int, ssrc: int = SSRC) -> bytes:
    """An RTP packet with contents that nobody can guess."""
    return struct.pack("!BBHII", 0x80, 96, seq, 90000 + seq, ssrc) + os.urandom(200)


def quote(payload: bytes, sport: int = SPORT) -> bytes:
    """What a router quotes of a media packet; TTL and checksums may differ."""
    head = ip_header(SENDER_IP, ROUTER_IP, 17, 28 + len(payload))
    udp = struct.pack("!HHHH", sport, DPORT, 8 + len(payload), 0x1234)
    return wire.quoted(head + udp + payload)


def message(
    quoted: bytes, seq: int, rate: float, ecf: float | None = 0.9, router: int = 0xA1,
    boot: int = 7, period: int = 500,
) -> bytes:
    """A whole ICMP message as the protocol describes it, written independently of the C codec."""
    return wire.build(quoted, seq, int(rate), ecf, router, boot, period)


def address(text: str) -> bytes:
    """An address of a record: IPv6, IPv4 mapped, or left open."""
    if ":" in text:
        return socket.inet_pton(socket.AF_INET6, text)
    return b"\0" * 10 + b"\xff\xff" + socket.inet_aton(text) if text else bytes(16)


def register(
    cookie: int, ceil: int = 3_000_000, source: str = SENDER_IP, to: str = ROUTER_IP,
    dport: int = DPORT, ssrc: int = SSRC,
) -> bytes:
    """Registration record of paqm_ipc.h."""
    return struct.pack(
        "=IBBH16s16sHHIQQIIQ",
        *(IPC_MAGIC, IPC_VERSION, REGISTER, 80, address(source), address(to)),
        *(SPORT, dport, ssrc, 100_000, ceil, 500_000, 41_667, cookie),
    )


def timer_clocks(pid: str) -> set[int]:
    """The clocks that a process has timers of."""
    found: set[int] = set()
    for path in Path(f"/proc/{pid}/fdinfo").iterdir():
        with contextlib.suppress(FileNotFoundError):  # of the directory itself
            found |= {int(n) for n in re.findall(r"^clockid: (\d+)$", path.read_text(), re.M)}
    return found


class NoNetwork(Exception):
    """This machine gives us no network namespaces."""


class Namespaces:
    """Two network namespaces joined by a veth pair."""

    def __init__(self) -> None:
        self.sender = f"pq-s-{os.getpid()}"
        self.router = f"pq-r-{os.getpid()}"
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.home = os.open("/proc/self/ns/net", os.O_RDONLY)

    def up(self) -> None:
        """Create them."""
        try:
            for name in (self.sender, self.router):
                subprocess.run(["ip", "netns", "add", name], check=True)
            self.join()
        except (OSError, subprocess.CalledProcessError) as err:
            raise NoNetwork(str(err)) from err

    def join(self) -> None:
        """Create the veth pair."""
        pair = ["link", "add", "veth0", "type", "veth", "peer", "veth0", "netns", self.router]
        subprocess.run(["ip", "-n", self.sender, *pair], check=True)
        for name, addr in ((self.sender, SENDER_IP), (self.router, ROUTER_IP)):
            ip = ["ip", "-n", name]
            subprocess.run([*ip, "addr", "add", f"{addr}/24", "dev", "veth0"], check=True)
            subprocess.run([*ip, "link", "set", "lo", "up"], check=True)
            subprocess.run([*ip, "link", "set", "veth0", "up"], check=True)
        for name, addr in (
            (self.sender, SENDER_IP6),
            (self.sender, OTHER_IP6),
            (self.router, ROUTER_IP6),
        ):
            add = ["addr", "add", f"{addr}/64", "dev", "veth0", "nodad"]
            subprocess.run(["ip", "-n", name, *add], check=True)

    def down(self) -> None:
        """Remove them, and the veth pair with them."""
        for name in (self.sender, self.router):
            subprocess.run(["ip", "netns", "del", name], check=False)

    def socket(self, name: str, *args: int) -> socket.socket:
        """A socket that lives in namespace `name`."""
        fd = os.open(f"/run/netns/{name}", os.O_RDONLY)
        try:
            self._enter(fd)
            return socket.socket(*args)
        finally:
            self._enter(self.home)
            os.close(fd)

    def _enter(self, fd: int) -> None:
        if self.libc.setns(fd, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")


class Client:
    """A media sender as paqmd sees it."""

    def __init__(self, path: Path) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.settimeout(PATIENCE)
        self.sock.connect(str(path))

    def register(self, cookie: int, **other: Any) -> int:
        """Register a flow. Return the error of the answer."""
        self.sock.send(register(cookie, **other))
        return self.registered(cookie)

    def registered(self, cookie: int) -> int:
        """The answer to a registration: its error."""
        magic, version, kind, length, got, error = struct.unpack("=IBBHQi4x", self.sock.recv(512))
        assert (magic, version, kind, length, got) == (IPC_MAGIC, 1, REGISTERED, 24, cookie)
        return int(error)

    def rate(self) -> Rate:
        """The next rate record."""
        rec = struct.unpack(RATE_FORMAT, self.sock.recv(512))
        assert rec[:4] == (IPC_MAGIC, 1, RATE, 72), rec
        router = socket.inet_ntop(socket.AF_INET6, rec[7])
        if rec[7][:12] in (bytes(12), address("0.0.0.0")[:12]):
            router = socket.inet_ntoa(rec[7][12:])
        return Rate(rec[4], rec[5], CAUSES[rec[13]], router, rec[10], rec[15])

    def told(self) -> Rate:
        """The next rate record that is no expiry: a busy machine may take longer than a life."""
        got = self.rate()
        while got.cause == "expired":
            got = self.rate()
        return got

    def silent(self) -> bool:
        """Nothing is waiting to be read."""
        return not select.select([self.sock], [], [], 0)[0]


class Trial:
    """One running daemon and the two ends of the network."""

    def __init__(self, paqmd: str, paqmctl: str, net: Namespaces, run: Path) -> None:
        self.net = net
        self.paqmctl = paqmctl
        # paqmd makes the directories and may remove the sockets in them
        self.ipc, self.control = run / "deep" / "er" / "client.sock", run / "deep" / "control.sock"
        self.log = run / "log"
        self.command = [paqmd, "--socket", str(self.ipc), "--control", str(self.control), "-v"]
        self.command += ["--user", "nobody"]
        self.daemon: subprocess.Popen[bytes] | None = None
        self.open_media()
        self.sink = net.socket(net.router, socket.AF_INET, socket.SOCK_DGRAM)
        self.sink.bind((ROUTER_IP, DPORT))
        self.sink.settimeout(PATIENCE)
        self.raw = net.socket(net.router, socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        self.rtp_seq = 0

    def open_media(self) -> None:
        """The socket that media is sent from."""
        self.media = self.net.socket(self.net.sender, socket.AF_INET, socket.SOCK_DGRAM)
        self.media.bind((SENDER_IP, SPORT))

    def start(self, *options: str) -> None:
        """Start the daemon; wait until it is ready."""
        with self.log.open("wb") as log:
            self.daemon = subprocess.Popen(
                ["ip", "netns", "exec", self.net.sender, *self.command, *options], stderr=log
            )
        self.until(lambda: "ready" in self.log.read_text(), "the daemon to be ready")

    def stop(self) -> None:
        """End the daemon politely; it must leave nothing behind."""
        assert self.daemon
        self.daemon.send_signal(signal.SIGTERM)
        assert self.daemon.wait(PATIENCE) == 0, "exit status"
        assert not self.ipc.exists() and not self.control.exists(), "sockets left behind"
        self.daemon = None

    def until(self, done: Callable[[], bool], what: str) -> None:
        """Wait for an event."""
        end = time.monotonic() + PATIENCE
        while not done():
            assert time.monotonic() < end, f"waited in vain for {what}"
            assert self.daemon is None or self.daemon.poll() is None, self.log.read_text()
            time.sleep(0.02)

    def ask(self, command: str) -> dict[str, Any]:
        """One answer of paqmctl."""
        run = [self.paqmctl, "--control", str(self.control), "--json", command]
        out = subprocess.run(run, check=True, capture_output=True, text=True)
        answer: dict[str, Any] = json.loads(out.stdout)
        return answer

    def stats(self) -> dict[str, Any]:
        """Counters of the daemon."""
        stats: dict[str, Any] = self.ask("stats")["stats"]
        return stats

    def send_media(self, ssrc: int = SSRC) -> bytes:
        """Send one packet over the veth pair; return it as it arrived."""
        self.rtp_seq += 1
        sent = rtp(self.rtp_seq, ssrc)
        self.media.sendto(sent, (ROUTER_IP, DPORT))
        got = self.sink.recv(2048)
        assert got == sent
        return got

    def answer(self, icmp: bytes, src: str = ROUTER_IP) -> None:
        """Send an ICMP message to the sender host."""
        ip = ip_header(src, SENDER_IP, 1, 20 + len(icmp))
        self.raw.sendto(ip + icmp, (SENDER_IP, 0))

    def expect_refusal(self, reason: str, icmp: bytes, src: str = ROUTER_IP) -> None:
        """Send a message that must be refused for `reason`, and nothing else may change."""
        before = self.stats()
        self.answer(icmp, src)
        self.until(
            lambda: self.stats()["refused_total"] > before["refused_total"], f"refusal: {reason}"
        )
        after = self.stats()
        changed = {k: n for k, n in after["refused"].items() if n != before["refused"][k]}
        assert changed == {reason: before["refused"][reason] + 1}, (reason, changed)
        assert after["accepted"] == before["accepted"], reason
        print(f"ok: {reason}", flush=True)


def tagged(icmp: bytes, number: int, key: bytes) -> bytes:
    """The message with key id, AUTH and the tag for this host."""
    return wire.tagged(icmp, number, key, SENDER_IP)


def check_refusals(t: Trial, client: Client) -> None:
    """Whatever cannot be proven is refused, counted, and never pushed."""
    sent = t.send_media()
    good = message(quote(sent), 2, 900_000.0)
    old = message(quote(sent), 1, 900_000.0)
    t.expect_refusal("seq_replay", old)
    t.expect_refusal("seq_stale", message(quote(sent), 0, 900_000.0))
    t.expect_refusal("msg_checksum", good[:60] + bytes([good[60] ^ 1]) + good[61:])
    t.expect_refusal("msg_length", resum(good[:60]))
    t.expect_refusal("msg_magic", wire.changed(good, 4, b"Q"))
    t.expect_refusal("msg_version", wire.changed(good, 8, b"\x03"))
    t.expect_refusal("msg_option", wire.changed(good, wire.FIXED, b"\xff"))
    t.expect_refusal("msg_value", message(quote(sent), 2, 0))
    t.expect_refusal("msg_value", message(quote(sent), 2, 1e12 + 1))
    t.expect_refusal("msg_value", message(quote(sent), 2, 9e5, ecf=float("nan")))
    first = wire.version1(quote(sent), 2, 9e5)
    t.expect_refusal("msg_mismatch", resum(first[:4] + struct.pack("!f", 0.1) + first[8:]))
    t.expect_refusal("quote_short", message(quote(sent)[:48], 2, 9e5))
    t.expect_refusal("flow_unknown", message(quote(sent, SPORT + 2), 2, 900_000.0))
    t.expect_refusal("flow_ssrc", message(quote(sent[:8] + b"\0" * 4 + sent[12:]), 2, 900_000.0))
    # an attacker off the path knows the 5-tuple and the SSRC, not the payload
    forged = sent[:12] + os.urandom(200)
    t.expect_refusal("quote_unknown", message(quote(forged), 2, 900_000.0), src="192.0.2.1")
    # media that enters from outside proves nothing, even with the flow's addresses
    spoof = rtp(40_000)
    udp = struct.pack("!HHHH", SPORT, DPORT, 8 + len(spoof), 0) + spoof
    t.raw.sendto(ip_header(SENDER_IP, ROUTER_IP, 17, 20 + len(udp)) + udp, (SENDER_IP, 0))
    t.expect_refusal("quote_unknown", message(quote(spoof), 2, 900_000.0))
    assert client.silent(), "a refused message was pushed"


def check_ip_refusals(t: Trial) -> None:
    """Defects of the IP packet itself."""
    icmp = message(quote(t.send_media()), 50, 900_000.0)
    before = t.stats()["refused"]
    options = struct.pack("!BBHHHBBH", 0x46, 0, 24 + len(icmp), 0, 0, 64, 1, 0)
    options += socket.inet_aton(ROUTER_IP) + socket.inet_aton(SENDER_IP) + b"\x01\x01\x01\x00"
    t.raw.sendto(options + icmp, (SENDER_IP, 0))
    fragment = struct.pack("!BBHHHBBH", 0x45, 0, 20 + 64, 9, 0x2000, 64, 1, 0)
    fragment += socket.inet_aton(ROUTER_IP) + socket.inet_aton(SENDER_IP)
    t.raw.sendto(fragment + icmp[:64], (SENDER_IP, 0))
    t.until(lambda: t.stats()["refused"]["ip_options"] > before["ip_options"], "ip_options")
    t.until(lambda: t.stats()["refused"]["ip_fragment"] > before["ip_fragment"], "ip_fragment")
    print("ok: ip_options, ip_fragment", flush=True)


def check_service(t: Trial) -> None:
    """The daemon's main purpose, its refusals and its end."""
    t.start()
    client = Client(t.ipc)
    assert client.register(42) == 0
    assert client.rate() == Rate(42, 0, "none", "0.0.0.0", 0, 0)
    assert client.register(43) != 0, "the same flow twice"

    sent = t.send_media()
    t.answer(message(quote(sent), 1, 850_000.0))
    assert client.rate() == Rate(42, 850_000, "erf", ROUTER_IP, 1, 1)
    t.answer(message(quote(sent), 1, 600_000.0, router=0xB2), src="10.77.0.77")
    assert client.rate() == Rate(42, 600_000, "erf", "10.77.0.77", 1, 2)
    print("ok: accepted and pushed, minimum of two routers", flush=True)
    shown = t.ask("show")
    assert [r["router_id"][-2:] for r in shown["routers"]] == ["a1", "b2"]
    assert shown["flows"][0]["rate_bps"] == 600_000
    assert shown["stats"]["media_packets"] == 1

    check_refusals(t, client)
    check_ip_refusals(t)

    # limits of the flow
    sent = t.send_media()
    t.answer(message(quote(sent), 60, 1.0, router=0xB2))
    assert client.told().bps == 100_000
    t.answer(message(quote(sent), 61, 1e9, router=0xB2))
    got = client.told()
    assert got.bps in (850_000, 3_000_000), got  # with or without the first router's advice

    # silence of the last router
    while got.cause != "expired":
        got = client.rate()
    assert got.bps == 0 and got.routers == 0
    print("ok: expiry", flush=True)

    client.sock.send(struct.pack("=IBBHQQII", IPC_MAGIC, 1, STATUS, 32, 42, 777_000, 5, 30))
    t.until(lambda: bool(t.ask("flows")["flows"][0]["status"]), "the status record")
    assert t.ask("flows")["flows"][0]["status"]["qp"] == 30
    client.sock.close()
    t.until(lambda: not t.ask("flows")["flows"], "the flow to vanish with its client")
    t.expect_refusal("flow_unknown", message(quote(sent), 62, 900_000.0))
    t.stop()


def check_slow_reader(t: Trial) -> None:
    """A client that does not read loses old records, never the newest."""
    t.start("-i", "veth0")
    client = Client(t.ipc)
    assert client.register(1) == 0
    client.rate()
    sent = t.send_media()
    count = 300
    for seq in range(1, count + 1):
        t.answer(message(quote(sent), seq, 500_000.0 + seq))
    t.until(lambda: bool(t.stats()["accepted"] == count), "all messages")
    rates = [client.rate()]
    while rates[-1].seq != count:
        rates.append(client.rate())
    assert rates[-1].bps == 500_000 + count
    assert [r.seq for r in rates] == sorted({r.seq for r in rates})
    assert len(rates) < count // 2, f"{len(rates)} old records were kept"
    print(f"ok: latest wins ({len(rates)} of {count} records read)", flush=True)

    # nonsense on the socket ends the connection, not the daemon
    bad = Client(t.ipc)
    bad.sock.send(b"nonsense")
    assert bad.sock.recv(64) == b""
    assert t.stats()["bad_records"] == 1
    for garbage in (b"garbage\n", b"{}\n", b'{"cmd":"dance"}\n'):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
            s.connect(str(t.control))
            s.send(garbage)
            assert json.loads(s.makefile().readline())["ok"] is False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        s.settimeout(PATIENCE)
        s.connect(str(t.control))
        s.sendall(b"x" * 4096)
        assert s.recv(64) == b""
    print("ok: bad clients", flush=True)
    t.stop()


def start_keyed(t: Trial, keys: Path) -> Client:
    """The daemon believes only what is tagged by keys of this file; a sender of one flow."""
    keys.chmod(0o600)
    t.start("-i", "veth0", "--keys", str(keys), "--require-auth")
    client = Client(t.ipc)
    assert client.register(1) == 0
    client.rate()
    return client


def check_keys(t: Trial) -> None:
    """Messages of a router with a key are believed only with its tag."""
    keys = t.log.with_name("keys")
    one, two = os.urandom(16), os.urandom(16)
    keys.write_text(f"# routers\na1 7 {one.hex()}\na1 8 {two.hex()}\n")
    keys.chmod(0o640)
    command = [*t.command, "--keys", str(keys)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "chmod 600" in done.stderr, done
    client = start_keyed(t, keys)
    plain = message(quote(t.send_media()), 1, 600_000.0)
    t.expect_refusal("auth_missing", plain)
    t.expect_refusal("key_unknown", tagged(plain, 9, one))
    t.expect_refusal("auth_bad", tagged(plain, 8, one))
    t.expect_refusal("auth_missing", message(quote(t.send_media()), 1, 6e5, router=0xB2))
    assert client.silent()
    t.answer(tagged(plain, 7, one))
    assert client.rate().bps == 600_000
    t.answer(tagged(message(quote(t.send_media()), 2, 700_000.0), 8, two))
    assert client.rate().bps == 700_000
    assert t.ask("routers")["routers"][0]["flags"] == ["final", "auth"]
    assert t.stats()["keys"] == 2 and t.stats()["require_auth"]
    print("ok: keys", flush=True)
    t.stop()


def message6(source: str, payload: bytes, seq: int, erf: float) -> bytes:
    """A message about an IPv6 packet; the kernel computes its checksum."""
    head = struct.pack("!IHBB", 6 << 28, 8 + len(payload), 17, 63)
    head += address(source) + address(ROUTER_IP6)
    udp = struct.pack("!HHHH", SPORT, DPORT, 8 + len(payload), 0x1234)
    icmp = message(wire.quoted(head + udp + payload), seq, erf)
    return bytes([ICMP6_TYPE, 0, 0, 0]) + icmp[4:]


def check_ipv6(t: Trial) -> None:
    """Flows over IPv6, from whichever address; extension headers; mapped addresses."""
    t.start("-i", "veth0")
    client = Client(t.ipc)
    sender = t.net.socket(t.net.sender, socket.AF_INET6, socket.SOCK_DGRAM)
    sender.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    sender.bind(("::", SPORT))
    raw = t.net.socket(t.net.router, socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
    assert client.register(1) == 0
    client.rate()
    assert client.register(2, source=SENDER_IP6) != 0, "IPv6 to IPv4"
    assert client.register(6, source="", to=ROUTER_IP6) == 0
    assert client.rate() == Rate(6, 0, "none", "0.0.0.0", 0, 0)

    def send(source: str, seq: int) -> bytes:
        payload = rtp(seq)
        # the source address is chosen per packet, as on a host with several
        chosen = struct.pack("16sI", address(source), 0)
        place = [(socket.IPPROTO_IPV6, socket.IPV6_PKTINFO, chosen)]
        sender.sendmsg([payload], place, 0, (ROUTER_IP6, DPORT))
        return payload

    for seq, source in enumerate((SENDER_IP6, OTHER_IP6), start=1):
        icmp = message6(source, send(source, seq), seq, 500_000.0 + seq)
        raw.sendto(icmp, (source, 0))
        assert client.rate() == Rate(6, 500_000 + seq, "erf", ROUTER_IP6, seq, 1)
    flows = {f["cookie"][-1]: f for f in t.ask("flows")["flows"]}
    assert flows["6"]["flow"] == f"*:{SPORT} > [{ROUTER_IP6}]:{DPORT}", flows["6"]
    assert flows["6"]["routers"][0]["address"] == ROUTER_IP6

    # whatever stands between the IPv6 header and ICMPv6, the message is not looked at
    before = t.stats()
    payload = send(SENDER_IP6, 3)
    options = struct.pack("BBBBI", 0, 0, 1, 4, 0)  # padding
    dstopts = [(socket.IPPROTO_IPV6, socket.IPV6_DSTOPTS, options)]
    raw.sendmsg([message6(SENDER_IP6, payload, 3, 1e6)], dstopts, 0, (SENDER_IP6, 0))
    forged = message6(SENDER_IP6, payload[:20] + os.urandom(8), 4, 1e6)
    raw.sendto(forged, (SENDER_IP6, 0))
    t.until(
        lambda: t.stats()["refused"]["quote_unknown"] > before["refused"]["quote_unknown"],
        "the refusal of an IPv6 message",
    )
    after = t.stats()
    assert after["accepted"] == before["accepted"], "a message behind options was believed"
    assert after["refused_total"] == before["refused_total"] + 1
    # an IPv6 socket that sends IPv4
    t.media.close()
    both = t.net.socket(t.net.sender, socket.AF_INET6, socket.SOCK_DGRAM)
    both.bind((f"::ffff:{SENDER_IP}", SPORT))
    both.sendto(rtp(9), (f"::ffff:{ROUTER_IP}", DPORT))
    t.answer(message(quote(t.sink.recv(2048)), 1, 650_000.0))
    assert client.rate() == Rate(1, 650_000, "erf", ROUTER_IP, 1, 1)
    both.close()
    t.open_media()
    print("ok: IPv6, several addresses, extension headers, mapped addresses", flush=True)
    t.stop()


def check_watch(t: Trial) -> None:
    """paqmctl watch, in ECF mode; then the interface goes down, up, away and comes back."""
    t.start("--use", "ecf", "-i", "veth0")
    run = [t.paqmctl, "--control", str(t.control), "--json", "watch"]
    events_file = t.log.with_name("events")
    with events_file.open("wb") as out, subprocess.Popen(run, stdout=out) as watch:
        try:
            t.until(lambda: events_file.stat().st_size > 0, "the watch to begin")
            client = Client(t.ipc)
            client.register(1, ceil=1_000_000)
            icmp = message(quote(t.send_media()), 1, 5e5, ecf=0.5)
            t.answer(icmp)
            t.answer(icmp)
            t.until(lambda: events_file.read_text().count("\n") == 4, "three events")
            check_events([json.loads(line) for line in events_file.read_text().splitlines()])
            check_link(t)
            t.stop()
            assert watch.wait(PATIENCE) == 1
        finally:
            watch.kill()


def check_events(events: list[dict[str, Any]]) -> None:
    """The lines of a watch."""
    assert events[0] == {"ok": True}
    assert [e["event"] for e in events[1:]] == ["register", "accepted", "refused"]
    accepted, refused = events[2:]
    assert accepted["rate_bps"] == 500_000 and accepted["cause"] == "ecf"
    assert accepted["qdelay_ms"] == 3.5 and accepted["address"] == ROUTER_IP
    assert refused["reason"] == "seq_replay" and refused["total"] == 1
    print("ok: watch", flush=True)


def check_link(t: Trial) -> None:
    """The interface goes down and up, then disappears and comes back."""
    ip = ["ip", "-n", t.net.sender, "link"]
    subprocess.run([*ip, "set", "veth0", "down"], check=True)
    subprocess.run([*ip, "set", "veth0", "up"], check=True)
    t.answer(message(quote(t.send_media()), 2, 1e9, ecf=0.5))
    t.until(lambda: bool(t.stats()["accepted"] == 2), "a message after the link was down")
    subprocess.run([*ip, "del", "veth0"], check=True)
    t.until(lambda: not t.stats()["interfaces"][0]["up"], "the interface to be missed")
    t.net.join()
    t.until(lambda: bool(t.stats()["interfaces"][0]["up"]), "the interface to come back")
    t.answer(message(quote(t.send_media()), 3, 1e9, ecf=0.5))
    t.until(lambda: bool(t.stats()["accepted"] == 3), "a message on the new interface")
    print("ok: interface down, up, gone and back", flush=True)


@contextlib.contextmanager
def new_trial(paqmd: str, paqmctl: str) -> Iterator[Trial]:
    """A network of its own; what the daemon has said is shown if something fails."""
    net = Namespaces()
    try:
        net.up()
        with tempfile.TemporaryDirectory(prefix="paqmd-test-") as run:
            os.chmod(run, 0o755)
            trial = Trial(paqmd, paqmctl, net, Path(run))
            try:
                yield trial
            except BaseException:
                if trial.log.exists():
                    print(trial.log.read_text(), file=sys.stderr)
                raise
            finally:
                if trial.daemon:
                    trial.daemon.kill()
                    trial.daemon.wait()
    finally:
        net.down()


def run_checks(arguments: str, checks: Sequence[Callable[..., None]]) -> int:
    """A test program: it is given these arguments, each check gets those behind PAQMD PAQMCTL."""
    given = [os.path.abspath(arg) for arg in sys.argv[1:] if not arg.startswith("--")]
    if len(given) != len(arguments.split()):
        print(f"usage: {Path(sys.argv[0]).name} {arguments}", file=sys.stderr)
        return 2
    if os.geteuid():
        print("skipped: needs root for network namespaces")
        return 77
    try:
        with new_trial(*given[:2]) as trial:
            for check in checks:
                check(trial, *given[2:])
    except NoNetwork as err:
        print(f"skipped: no network namespaces here ({err})")
        return 77
    print("all passed")
    return 0


CHECKS: list[Callable[[Trial], None]] = [
    check_service, check_slow_reader, check_keys, check_ipv6, check_watch,
]  # fmt: skip


if __name__ == "__main__":
    sys.exit(run_checks("PAQMD PAQMCTL", CHECKS))
