#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Hosts for the test of messages and echo requests, inside a lab guest.

send    media as a well-behaved host would send it, IPv4 or IPv6
inject  the same from any source address, straight into a device's queue (IPv6)
odd     media that no message may quote: fragments, IP options, in a tunnel
watch   what a host is told: proves every message, prints one JSON line at the end
answer  a host that answers echo requests in a way of its own, prints the same

Nothing of the project's codec is used here: the layout is read as docs/protocol.md has it.
"""

import argparse
import ipaddress
import itertools
import json
import select
import socket
import struct
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "feedback-daemon" / "tests"))
import wire  # noqa: E402
from wire import checksum  # noqa: E402

ETH_P_IPV6 = 0x86DD


def rtp(seq: int, flow: int, size: int, words: int = 0) -> bytes:
    """An RTP packet, its header extension `words` words long."""
    first = 0x90 if words else 0x80
    head = struct.pack("!BBHII", first, 96, seq & 0xFFFF, seq * 90, 0x1000 + flow)
    if words:
        element = bytes([0x30 | 15]) + bytes((7 * seq + i) & 0xFF for i in range(16))
        head += struct.pack("!HH", 0xBEDE, words) + (element * words)[: 4 * words]
    return head + bytes((seq + i) & 0xFF for i in range(size - len(head)))


def family_of(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def send(args: argparse.Namespace) -> None:
    socks = []
    for i in range(args.flows):
        sock = socket.socket(family_of(args.to), socket.SOCK_DGRAM)
        if sock.family == socket.AF_INET6:  # the same port may serve IPv4
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        host = ipaddress.ip_address(args.source) + i if args.source else ""
        sock.bind((str(host), args.port + i))
        # with the scope that a link-local address has behind a %
        sock.connect(socket.getaddrinfo(args.to, args.port + i, sock.family)[0][4])
        socks.append(sock)
    gap = args.size * 8 / args.rate
    start = time.monotonic()
    n = 0
    while n * gap < args.seconds:
        time.sleep(max(0.0, start + n * gap - time.monotonic()))
        try:
            socks[n % args.flows].send(rtp(n // args.flows, n % args.flows, args.size,
                                           args.extension))
        except OSError:  # nobody listens at the other end, or the device is going
            pass
        n += 1


def inject(args: argparse.Namespace) -> None:
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    for seq in range(args.count):
        body = struct.pack("!HHHH", args.port, 5004, 8 + args.size, 0) + rtp(seq, 0, args.size)
        head = struct.pack("!IHBB", 6 << 28, len(body), 17, 64)
        head += socket.inet_pton(socket.AF_INET6, args.source)
        head += socket.inet_pton(socket.AF_INET6, args.to)
        frame = bytes.fromhex(args.mac.replace(":", "")) + bytes(6) + b"\x86\xdd" + head + body
        sock.sendto(frame, (args.dev, ETH_P_IPV6))
        time.sleep(0.01)


def odd(args: argparse.Namespace) -> None:
    """IPv4 media, all but the first packets of which are odd in some way."""
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    probe.connect((args.to, 9))
    own = socket.inet_aton(probe.getsockname()[0])
    for seq in range(args.count):
        size = 20 if args.how == "small" and not seq % 4 else 200
        body = struct.pack("!HHHH", 7000, 7000, 8 + size, 0) + rtp(seq, 9, size)
        options, flags, proto = b"", 0, 17
        if args.how == "options":
            options = b"\x94\x04\0\0"  # router alert
        elif args.how == "fragments":
            flags, body = 0x2000, body[:200]
        elif args.how == "later":
            flags, body = 25, body[:100]
        elif args.how == "gre":
            inner = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(body), 0, 0, 64, 17, 0)
            inner += own + socket.inet_aton(args.to)
            proto, body = 47, b"\0\0\x08\0" + inner + body
        head = struct.pack("!BBHHHBBH", 0x45 + len(options) // 4, 0,
                           20 + len(options) + len(body), seq + 1, flags, 64, proto, 0)
        raw.sendto(head + own + socket.inet_aton(args.to) + options + body, (args.to, 0))
        if args.how != "small" or seq % 4 == 3:  # pictures that begin with a small packet
            time.sleep(args.gap)


def invent(args: argparse.Namespace) -> None:
    """IPv4 media of ever new sources, `rate` a second, which send eight packets in a second."""
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    first = ipaddress.IPv4Address(args.source)
    start = time.monotonic()
    steps = int(args.seconds * 8)  # of an eighth of a second
    each = int(args.rate / 8)
    for step in range(steps):
        time.sleep(max(0.0, start + step / 8 - time.monotonic()))
        for n in range(max(0, step - 7) * each, (step + 1) * each):
            seq = step - n // each
            body = struct.pack("!HHHH", 7000, 7000, 8 + args.size, 0) + rtp(seq, n, args.size)
            head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(body), seq + 1, 0, 64, 17, 0)
            head += (first + n).packed + socket.inet_aton(args.to)
            raw.sendto(head + body, (args.to, 0))


def message_fault(icmp: bytes, own: set[str], quoted: str, v6: bool) -> str:
    """What is wrong with a message, nothing if it is right."""
    hlen = 40 if v6 else 20
    end, at = wire.ext_at(icmp, v6), wire.object_at(icmp, v6)
    if len(icmp) < 8 + hlen + 8 + wire.EXT + wire.FIXED or len(icmp) < at + wire.FIXED:
        return "short"
    quote, obj = icmp[8:end], icmp[at:]
    if icmp[end] >> 4 != 2 or checksum(icmp[end:]):
        return "no extension structure"
    if icmp[1] != 0 or obj[2:9] != b"\xf7\x01PAQM\x02":
        return "no object"
    if len(obj) != struct.unpack("!H", obj[:2])[0]:
        return "more than one object"
    if quote[0] >> 4 != (6 if v6 else 4) or quote[6 if v6 else 9] != 17:
        return "quote is not UDP of this IP version"
    source = quote[8:24] if v6 else quote[12:16]
    if socket.inet_ntop(socket.AF_INET6 if v6 else socket.AF_INET, source) not in own:
        return "quoted source is not ours"
    dest = socket.inet_ntop(*((socket.AF_INET6, quote[24:40]) if v6 else
                              (socket.AF_INET, quote[16:20])))
    if quoted not in ("", dest):
        return f"quoted destination is {dest}"
    if not v6 and checksum(quote[:20]):
        return "quoted header has a wrong checksum"
    body = quote[hlen + 8:]
    size = wire.proof_len(body)
    if not size or len(body) - size > (7 if v6 else 3) or any(body[size:]):
        return f"quote of {len(body)} bytes of payload, {size} of them prove"
    seq, head = struct.unpack("!H", body[2:4])[0], size - 16
    if body[head:size] != bytes((seq + i) & 0xFF for i in range(16)):
        return "quoted payload was never sent"
    rate = wire.said(icmp)[1]
    if not 1000 <= rate <= 1e11:
        return f"rate {rate}"
    # ICMPv6 is proved by the kernel before a raw socket sees it; ICMP is not.
    return "checksum" if not v6 and checksum(icmp) else ""


def tagged_by(icmp: bytes, keys: dict[int, bytes]) -> str:
    """Id of the key that a message is tagged with, or what is wrong with its tag."""
    v6 = icmp[0] == wire.ICMP6_TYPE
    obj = icmp[wire.object_at(icmp, v6) :]
    number = struct.unpack("!H", obj[10:12])[0]
    if not obj[9] & wire.AUTH:
        return "none" if not number and len(obj) == wire.FIXED else "no flag"
    if number not in keys:
        return "unknown"
    quote = icmp[8:]
    host = socket.inet_ntop(*((socket.AF_INET6, quote[8:24]) if v6 else
                              (socket.AF_INET, quote[12:16])))
    right = wire.tag(icmp, wire.host_key(keys[number], host), v6)
    return str(number) if right == struct.unpack("!Q", obj[-8:])[0] else "bad"


def raw_sockets() -> list[socket.socket]:
    return [
        socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP),
        socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6),
    ]


def receive(socks: list[socket.socket], end: float) -> tuple[socket.socket, bytes, str] | None:
    """The next ICMP message of whatever version and where it came from."""
    left = end - time.monotonic()
    ready = select.select(socks, [], [], max(left, 0))[0] if left > 0 else []
    if not ready:
        return None
    data, source = ready[0].recvfrom(2048)
    if ready[0].family == socket.AF_INET:
        data = data[(data[0] & 15) * 4:]
    return ready[0], data, source[0]


def watch(args: argparse.Namespace) -> None:
    socks = raw_sockets()
    out = {"v4": 0, "v6": 0, "wrong": 0, "echo4": 0, "echo6": 0}
    keys = {int(k.split(":")[0]): bytes.fromhex(k.split(":")[1]) for k in args.key}
    sources = set()
    tags: dict[str, int] = {}
    order: list[str] = []
    values: list[float] = []
    times: list[float] = []
    end = time.monotonic() + args.seconds
    while got := receive(socks, end):
        sock, icmp, source = got
        v6 = sock.family == socket.AF_INET6
        if icmp[0] == (128 if v6 else 8):
            out["echo6" if v6 else "echo4"] += 1
        if icmp[0] != (wire.ICMP6_TYPE if v6 else wire.ICMP_TYPE):
            continue
        out["v6" if v6 else "v4"] += 1
        times.append(time.monotonic())
        sources.add(source)
        by = tagged_by(icmp, keys)
        tags[by] = tags.get(by, 0) + 1
        if order[-1:] != [by]:
            order.append(by)
        if (relative := wire.relative(icmp)) is not None:
            values.append(relative)
        fault = message_fault(icmp, set(args.own), args.quoted, v6)
        if fault:
            out["wrong"] += 1
            print(f"feedback.py: message from {source}: {fault}", file=sys.stderr)
    # from the beginning to the first, from each to the next, from the last to the end
    marks = [end - args.seconds, *times, end]
    after = [round(1000 * (b - a)) for a, b in itertools.pairwise(marks)]
    print(json.dumps({**out, "sources": sorted(sources), "tags": tags, "order": order,
                      "values": values, "first_ms": after[0],
                      "pause_ms": max(after[1:], default=None)}))


def answer(args: argparse.Namespace) -> None:
    """Answer IPv4 echo requests late, with false proof, or from another address."""
    socks = raw_sockets()[:1]
    reply_sock = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    if args.source:
        reply_sock.bind((args.source, 0))
    held: list[tuple[float, bytes, str]] = []
    out = {"asked": 0, "replied": 0}
    end = time.monotonic() + args.seconds
    while True:
        now = time.monotonic()
        while held and held[0][0] <= now:
            _, reply, source = held.pop(0)
            reply_sock.sendto(reply, (source, 0))
            out["replied"] += 1
        if now >= end:
            break
        got = receive(socks, min([end, *(h[0] for h in held[:1])]))
        if not got:
            continue
        _, icmp, source = got
        if icmp[0] != 8 or len(icmp) < 24:
            continue
        out["asked"] += 1
        body = bytearray(icmp)
        body[0] = 0
        if args.how == "nonce":
            body[8 + out["asked"] % 8] ^= 1
        elif args.how == "seq":
            body[6] ^= 0x80
        body[2:4] = b"\0\0"
        body[2:4] = struct.pack("!H", checksum(bytes(body)))
        held.append((time.monotonic() + args.delay, bytes(body), source))
    print(json.dumps(out))


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__)
    sub = ap.add_subparsers(required=True)
    p = sub.add_parser("send")
    p.set_defaults(run=send)
    p.add_argument("--to", required=True)
    p.add_argument("--flows", type=int, default=1)
    p.add_argument("--port", type=int, default=5004)
    p.add_argument("--rate", type=float, default=4e5, help="bit/s of all flows")
    p.add_argument("--size", type=int, default=500)
    p.add_argument("--extension", type=int, default=0, help="words of its header extension")
    p.add_argument("--source", default="", help="address of the first flow, each has the next")
    p.add_argument("--seconds", type=float, default=1.0)
    p = sub.add_parser("inject")
    p.set_defaults(run=inject)
    p.add_argument("--dev", required=True)
    p.add_argument("--mac", required=True)
    p.add_argument("--source", required=True)
    p.add_argument("--to", required=True)
    p.add_argument("--port", type=int, default=7000)
    p.add_argument("--size", type=int, default=200)
    p.add_argument("--count", type=int, default=100)
    p = sub.add_parser("invent")
    p.set_defaults(run=invent)
    p.add_argument("--to", required=True)
    p.add_argument("--source", required=True, help="first of the addresses")
    p.add_argument("--rate", type=float, default=500, help="sources a second")
    p.add_argument("--size", type=int, default=200)
    p.add_argument("--seconds", type=float, default=1.0)
    p = sub.add_parser("odd")
    p.set_defaults(run=odd)
    p.add_argument("--to", required=True)
    p.add_argument("--how", choices=["fragments", "later", "options", "gre", "small"],
                   required=True)
    p.add_argument("--count", type=int, default=100)
    p.add_argument("--gap", type=float, default=0.02, help="seconds between packets")
    p = sub.add_parser("watch")
    p.set_defaults(run=watch)
    p.add_argument("--seconds", type=float, default=1.0)
    p.add_argument("--own", action="append", default=[], help="address of this host")
    p.add_argument("--quoted", default="", help="address that the quoted packet must be sent to")
    p.add_argument("--key", action="append", default=[], help="ID:HEX that tags may be made with")
    p = sub.add_parser("answer")
    p.set_defaults(run=answer)
    p.add_argument("--seconds", type=float, default=1.0)
    p.add_argument("--how", choices=["true", "nonce", "seq"], default="true")
    p.add_argument("--delay", type=float, default=0.0)
    p.add_argument("--source", default="", help="address that the replies come from")
    args = ap.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
