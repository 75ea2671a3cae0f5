#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""paqmd --read: capture files of every supported kind are judged as live packets are, bad ones
are refused with a reason.

Usage: read.py PAQMD
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from rig import (
    DPORT,
    ROUTER_IP,
    ROUTER_IP6,
    SENDER_IP,
    SENDER_IP6,
    SPORT,
    SSRC,
    address,
    checksum,
    ip_header,
    message,
    message6,
    quote,
    rtp,
    tagged,
)
from wire import resum

FLOW = f"{SENDER_IP}:{SPORT} {ROUTER_IP}:{DPORT} ssrc {SSRC:x} floor 100000 ceil 3000000"
ETHERNET, RAW, COOKED, COOKED2 = 1, 101, 113, 276
OUT, IN = 4, 0

Packet = tuple[float, int, bytes]  # seconds, direction, from the IP header on


def media(payload: bytes) -> bytes:
    udp = struct.pack("!HHHH", SPORT, DPORT, 8 + len(payload), 0) + payload
    return ip_header(SENDER_IP, ROUTER_IP, 17, 20 + len(udp)) + udp


def media6(payload: bytes) -> bytes:
    udp = struct.pack("!HHHH", SPORT, DPORT, 8 + len(payload), 0) + payload
    head = struct.pack("!IHBB", 6 << 28, len(udp), 17, 64)
    return head + address(SENDER_IP6) + address(ROUTER_IP6) + udp


def said(icmp: bytes) -> bytes:
    return ip_header(ROUTER_IP, SENDER_IP, 1, 20 + len(icmp)) + icmp


def said6(icmp: bytes) -> bytes:
    ends = address(ROUTER_IP6) + address(SENDER_IP6)
    total = checksum(ends + struct.pack("!II", len(icmp), 58) + icmp)
    icmp = icmp[:2] + struct.pack("!H", total) + icmp[4:]
    return struct.pack("!IHBB", 6 << 28, len(icmp), 58, 64) + ends + icmp


def link(kind: int, direction: int, ip: bytes, tags: int = 0) -> bytes:
    """An IP packet with its link header."""
    proto = 0x86DD if ip[:1] >= b"\x60" else 0x0800
    if kind == ETHERNET:
        return bytes(12) + b"\x81\x00\x00\x05" * tags + struct.pack("!H", proto) + ip
    if kind == COOKED:
        return struct.pack("!HHHQH", direction, 1, 6, 0, proto) + ip
    if kind == COOKED2:
        return struct.pack("!HHIHBBQ", proto, 0, 2, 1, direction, 6, 0) + ip
    return ip


def capture(packets: list[Packet], kind: int = RAW, order: str = "<", nano: bool = False,
            tags: int = 0) -> bytes:
    magic, unit = (0xA1B23C4D, 10**9) if nano else (0xA1B2C3D4, 10**6)
    data = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 65535, kind)
    for t, direction, ip in packets:
        frame = link(kind, direction, ip, tags)
        data += struct.pack(order + "IIII", int(t), round(t % 1 * unit), len(frame), len(frame))
        data += frame
    return data


def block(kind: int, body: bytes) -> bytes:
    """A block of a pcapng file."""
    body += bytes(-len(body) % 4)
    size = struct.pack("<I", 12 + len(body))
    return struct.pack("<I", kind) + size + body + size


def pcapng(packets: list[Packet], kind: int, digits: int) -> bytes:
    """The same in the newer format; times count in powers of ten."""
    data = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    data += block(1, struct.pack("<HHIHHB3xI", kind, 0, 65535, 9, 1, digits, 0))
    for t, direction, ip in packets:
        frame = link(kind, direction, ip)
        ticks = round(t * 10**digits)
        head = struct.pack("<IIIII", 0, ticks >> 32, ticks & 0xFFFFFFFF, len(frame), len(frame))
        data += block(6, head + frame)
    return data


def frames(kind: int, *data: bytes) -> bytes:
    """A capture of frames as they are."""
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, kind)
    return head + b"".join(struct.pack("<IIII", 1, 0, len(d), len(d)) + d for d in data)


class Trial:
    def __init__(self, paqmd: str, home: Path) -> None:
        self.paqmd, self.home = paqmd, home
        self.wrong: list[str] = []
        self.done = 0

    def expect(self, what: str, got: object, want: object) -> None:
        self.done += 1
        if got != want:
            self.wrong.append(f"{what}: got {got!r}, want {want!r}")

    def read(self, data: bytes, *words: str) -> tuple[int, list[dict[str, Any]], str]:
        path = self.home / "file.pcap"
        path.write_bytes(data)
        done = subprocess.run([self.paqmd, "--read", str(path), *words],
                              capture_output=True, text=True, check=False)
        return done.returncode, [json.loads(x) for x in done.stdout.splitlines()], done.stderr

    def short(self, data: bytes, *words: str) -> list[str]:
        """What became of the messages, in words."""
        status, lines, text = self.read(data, *words)
        self.expect(f"status, {text}", status, 0)
        self.expect("last line", lines[-1]["event"], "end")
        return [str(o.get("reason", o["event"])) for o in lines[:-1]]


def story() -> list[Packet]:
    """A flow, its messages, and what must not be believed."""
    first, second = rtp(1), rtp(2)
    forged = first[:20] + os.urandom(200)
    good = message(quote(first), 1, 900_000.0)
    return [
        (10.0, OUT, media(first)),
        (10.02, IN, said(good)),
        (10.03, IN, said(good)),
        (10.04, IN, said(message(quote(forged), 2, 900_000.0))),
        (10.05, IN, said(resum(good[:-1] + b"\x01"))),
        (10.06, IN, said(message(quote(first, SPORT + 2), 2, 900_000.0))),
        (12.0, OUT, media(second)),
        (14.03, IN, said(message(quote(first), 2, 900_000.0))),
        (14.04, IN, said(message(quote(second), 3, 400_000.0))),
        (18.5, OUT, media(rtp(3))),
    ]


# a quote that nobody has seen leave yet is waited for
TOLD = ["accepted", "seq_replay", "seq_replay", "flow_unknown", "quote_unknown", "expired",
        "quote_old", "accepted", "expired"]


def check_kinds(t: Trial) -> None:
    packets = story()
    for kind in (ETHERNET, RAW, COOKED, COOKED2):
        for order in "<>":
            for nano in (False, True):
                got = t.short(capture(packets, kind, order, nano), "--flow", FLOW)
                t.expect(f"link type {kind}, {order}, nano {nano}", got, TOLD)
        for digits in (3, 6, 9):
            got = t.short(pcapng(packets, kind, digits), "--flow", FLOW)
            t.expect(f"pcapng, link type {kind}, {digits} digits", got, TOLD)
    t.expect("VLAN tags", t.short(capture(packets, ETHERNET, tags=2), "--flow", FLOW), TOLD)
    for wild in (FLOW.replace(SENDER_IP, "*"), FLOW.replace("ssrc", "floor 0 ssrc")):
        t.expect(wild, t.short(capture(packets), "--flow", wild), TOLD)
    # where the file knows directions, media that came in proves nothing
    other = [(at, IN, ip) for at, _, ip in packets]
    t.expect("nothing was sent", set(t.short(capture(other, COOKED), "--flow", FLOW)),
             {"quote_unknown", "flow_unknown"})
    # its own queue delays the first packet: the message is there before
    late = [(at + 0.1 * (at == 10.0), *rest) for at, *rest in packets[:2]]
    late.sort(key=lambda packet: packet[0])
    t.expect("message before packet", t.short(capture(late), "--flow", FLOW), ["accepted"])
    other = [(at, OUT, ip) for at, _, ip in packets]
    t.expect("nothing was received", t.short(capture(other, COOKED2), "--flow", FLOW), [])

    _, lines, _ = t.read(capture(packets), "--flow", FLOW)
    t.expect("rate", lines[0]["rate_bps"], 900_000)
    t.expect("time", lines[0]["t_ns"], 10_020_000_000)
    t.expect("flow", lines[0]["flow"], f"{SENDER_IP}:{SPORT} > {ROUTER_IP}:{DPORT}")
    t.expect("end", {k: lines[-1][k] for k in ("packets", "messages", "media", "accepted")},
             {"packets": 10, "messages": 7, "media": 3, "accepted": 2})
    t.expect("no flow", set(t.short(capture(packets))), {"flow_unknown"})


def check_ipv6_and_keys(t: Trial) -> None:
    payload, key = rtp(1), os.urandom(16)
    packets = [(1.0, OUT, media6(payload)),
               (1.1, IN, said6(message6(SENDER_IP6, payload, 1, 5e5)))]
    flow = f"[{SENDER_IP6}]:{SPORT} [{ROUTER_IP6}]:{DPORT}"
    t.expect("IPv6", t.short(capture(packets, ETHERNET), "--flow", flow), ["accepted"])

    # carrier quench, as live: ICMP type 4, which ICMPv6 does not have
    quench = said(resum(b"\x04" + message(quote(payload), 1, 6e5)[1:]))
    bare = said(resum(b"\x04" + message(quote(payload), 1, 6e5)[1:36]))
    other = said6(b"\x04" + message6(SENDER_IP6, payload, 1, 5e5)[1:])
    packets = [(1.0, OUT, media(payload)), (1.1, IN, quench), (1.2, IN, bare), (1.3, IN, other)]
    got = t.short(capture(packets, ETHERNET), "--flow", FLOW)
    t.expect("Source Quench", got, ["accepted", "msg_length"])

    keys = t.home / "keys"
    keys.write_text(f"* 9 {key.hex()}\n")
    keys.chmod(0o600)
    plain = message(quote(payload), 1, 5e5)
    packets = [(1.0, OUT, media(payload)), (1.1, IN, said(plain)),
               (1.2, IN, said(tagged(plain, 9, key)))]
    got = t.short(capture(packets), "--flow", FLOW, "--keys", str(keys))
    t.expect("keys", got, ["auth_missing", "accepted"])


def check_batches(t: Trial) -> None:
    """A batch of segmentation offload in a file: each of its segments proves."""
    segments = [rtp(n) for n in range(1, 31)]
    batch = media(b"".join(segments))
    for kind in (ETHERNET, RAW, COOKED2):
        packets = [(10.0, OUT, batch)]
        packets += [(10.1, IN, said(message(quote(p), n, 5e5))) for n, p in enumerate(segments, 1)]
        _, lines, _ = t.read(capture(packets, kind), "--flow", FLOW)
        t.expect("segments", (lines[-1]["media"], lines[-1]["accepted"]), (30, 30))


def check_flows(t: Trial) -> None:
    data = capture(story())
    flows = t.home / "flows"
    flows.write_text(f"# flows\n\n *:9 10.0.0.1:9 # {'x' * 400}\n{FLOW}\n[::1]:1 [::2]:2\n")
    t.expect("flows of a file", t.short(data, "--flows", str(flows)), TOLD)
    flows.write_text(f"{FLOW}\n# {'x' * 400}")
    t.expect("a comment ends the file", t.short(data, "--flows", str(flows)), TOLD)
    for line, text in (
        ("*:9 10.0.0.1:9\n*:9 10.0.0.1:9", "line 2: an earlier flow"),
        ("10.0.0.1:9", "line 1: destination"),
        ("[::1:9 10.0.0.1:9", "line 1: source"),
        ("[::g]:9 10.0.0.1:9", "line 1: source"),
        ("*:99999999999999999999999 10.0.0.1:9", "line 1: source"),
        ("*: 10.0.0.1:9", "line 1: source"),
        ("10.0.0.1 10.0.0.2:9", "line 1: source"),
        ("*:9 *:9", "line 1: destination"),
        ("*:0 10.0.0.1:9", "line 1: source"),
        ("*:65536 10.0.0.1:9", "line 1: source"),
        ("::1:9 10.0.0.1:9", "line 1: source"),
        ("[10.0.0.1]:9 10.0.0.1:9", "line 1: source"),
        ("[::1]:9 10.0.0.1:9", "line 1: impossible flow"),
        ("*:9 10.0.0.1:9 ssrc", "line 1: ssrc"),
        ("*:9 10.0.0.1:9 ssrc 100000000", "line 1: ssrc"),
        ("*:9 10.0.0.1:9 floor -1", "line 1: floor"),
        ("*:9 10.0.0.1:9 ceil 1000000000001", "line 1: ceil"),
        ("*:9 10.0.0.1:9 floor 2 ceil 1", "line 1: impossible flow"),
        ("*:9 10.0.0.1:9 rate 1", "line 1: after the addresses"),
        ("\n" + "x" * 300, "line 2: longer than 256"),
    ):
        flows.write_text(line)
        status, lines, text_got = t.read(data, "--flows", str(flows))
        t.expect(f"flows {line[:40]!r}: {text_got}", (status, text in text_got, lines),
                 (2, True, []))
    for words, want, text in (
        (["--flow", "x"], 2, "--flow 'x': source"),
        (["--flow", "*:9 10.0.0.1:9 floor " + "0" * 250], 2, "longer than 255"),
        (["--flows", "/nonexistent/flows"], 1, "No such file"),
        (["--flows", "/"], 1, "Is a directory"),
    ):
        status, _, text_got = t.read(data, *words)
        t.expect(f"{words}: {text_got}", (status, text in text_got), (want, True))


def check_bad_files(t: Trial) -> None:
    data = capture(story())
    second = 24 + 16 + len(media(rtp(1)))
    newer = pcapng(story(), ETHERNET, 9)
    for bad, text in (
        (b"", "truncated dump file"),
        (data[:23], "truncated dump file"),
        (b"\x00" + data[1:], "unknown file format"),
        (data[:20] + b"\x69\x00\x00\x00" + data[24:], "link type"),
        (data[:-1], "packet 10: truncated dump file"),
        (data[: second + 3], "packet 2: truncated dump file"),
        (data[:second + 8] + b"\xff\xff\xff\x7f" + data[second + 12:], "packet 2: invalid packet"),
        (newer[:-1], "packet 10: truncated pcapng dump file"),
        (newer[:40], "truncated pcapng dump file"),
    ):
        status, lines, got = t.read(bad, "--flow", FLOW)
        t.expect(f"{text}: {got}", (status, text in got), (1, True))
        t.expect(f"{text}: last line", lines[-1]["event"], "end")
    status, _, got = t.read(data, "--flow", FLOW, "-i", "lo")
    done = subprocess.run([t.paqmd, "--flow", FLOW], capture_output=True, text=True, check=False)
    t.expect("--flow without --read", (done.returncode, "--read" in done.stderr), (2, True))
    done = subprocess.run([t.paqmd, "--read", "/nonexistent/pcap"],
                          capture_output=True, text=True, check=False)
    t.expect("no file", (done.returncode, "No such file" in done.stderr), (1, True))
    with open("/dev/full", "w") as full:
        (t.home / "file.pcap").write_bytes(data)
        done = subprocess.run([t.paqmd, "--read", str(t.home / "file.pcap")], stdout=full,
                              stderr=subprocess.PIPE, text=True, check=False)
        t.expect("full disk", (done.returncode, "No space left" in done.stderr), (1, True))
    # a clock that steps back, lengths and addresses of all kinds: judged, not fatal
    first = rtp(1)
    odd = [(10.0, OUT, media(first)), (1.0, IN, said(message(quote(first), 1, 5e5))),
           (4e9, OUT, b"\x45"), (4e9, IN, b""), (4e9, IN, b"\x60" + bytes(60))]
    for kind in (ETHERNET, RAW, COOKED, COOKED2):
        short = [bytes(n) for n in (0, 1, 11, 13, 14, 16, 17, 19, 20, 21, 33)]
        got = t.read(frames(kind, *short))
        t.expect(f"short frames, link type {kind}", (got[0], got[1][-1]["foreign"]),
                 (0, len(short)))
    echo = said(b"\x08" + bytes(99))
    ping6 = said6(b"\x80" + bytes(99))
    mixed = [echo, ping6, media(bytes(5000)), echo[:20], ping6[:40], media(first)[:19]]
    got = t.read(frames(RAW, *mixed))
    t.expect("others", (got[1][-1]["foreign"], got[1][-1]["media_ignored"]), (5, 1))
    doubly = bytes(12) + b"\x88\xa8\x00\x01\x81\x00\x00\x02\x08\x00" + echo
    t.expect("two kinds of tags", t.read(frames(ETHERNET, doubly))[1][-1]["foreign"], 1)
    status, _, text = t.read(frames(RAW, media(bytes(5000)))[:-3])
    t.expect(f"cut behind what is looked at: {text}", (status, "truncated" in text), (1, True))
    t.expect("odd packets", t.short(capture(odd), "--flow", FLOW), ["accepted", "expired"])


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: read.py PAQMD", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="paqmd-read-") as home:
        t = Trial(os.path.abspath(sys.argv[1]), Path(home))
        check_kinds(t)
        check_ipv6_and_keys(t)
        check_batches(t)
        check_flows(t)
        check_bad_files(t)
    for line in t.wrong:
        print(line)
    print(f"{t.done} checks, {len(t.wrong)} wrong")
    return 1 if t.wrong or not t.done else 0


if __name__ == "__main__":
    sys.exit(main())
