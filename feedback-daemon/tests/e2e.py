#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""End-to-end test of paqmd: the real daemon, real packets, two network namespaces.

A sender registers a flow and sends RTP-like UDP over a veth pair; the other end
plays the router and answers with feedback messages, valid ones and all kinds of
invalid ones. Needs root (exit code 77, "skipped", otherwise).

Usage: e2e.py PAQMD PAQMCTL
"""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import wire
from rig import (
    DPORT,
    IPC_MAGIC,
    OTHER_IP6,
    PATIENCE,
    ROUTER_IP,
    ROUTER_IP6,
    SENDER_IP,
    SENDER_IP6,
    SPORT,
    STATUS,
    Client,
    Rate,
    Trial,
    address,
    ip,
    ip_header,
    message,
    message6,
    quote,
    rtp,
    run_checks,
    start_keyed,
    tagged,
)
from wire import resum


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
    while not client.silent():  # on a busy machine the advice of either router ends meanwhile
        assert client.rate().bps in (0, 600_000, 850_000), "a refused message was pushed"


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
    client = t.sender()
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
    ip(t.net.sender, "link set veth0 down")
    ip(t.net.sender, "link set veth0 up")
    t.answer(message(quote(t.send_media()), 2, 1e9, ecf=0.5))
    t.until(lambda: bool(t.stats()["accepted"] == 2), "a message after the link was down")
    ip(t.net.sender, "link del veth0")
    t.until(lambda: not t.stats()["interfaces"][0]["up"], "the interface to be missed")
    t.net.join()
    t.until(lambda: bool(t.stats()["interfaces"][0]["up"]), "the interface to come back")
    t.answer(message(quote(t.send_media()), 3, 1e9, ecf=0.5))
    t.until(lambda: bool(t.stats()["accepted"] == 3), "a message on the new interface")
    print("ok: interface down, up, gone and back", flush=True)


CHECKS: list[Callable[[Trial], None]] = [
    check_service, check_slow_reader, check_keys, check_ipv6, check_watch,
]  # fmt: skip


if __name__ == "__main__":
    sys.exit(run_checks("PAQMD PAQMCTL", CHECKS))
