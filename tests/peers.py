# SPDX-License-Identifier: GPL-2.0
"""Hosts as messages and echo requests meet them: media that is well-behaved, forged or odd, and
receivers that prove every message. Functions for tasks in a host (guest.Host.task).

Nothing of the project's C codec is used here: the layout is read as docs/protocol.md has it.
"""

from __future__ import annotations

import ipaddress
import itertools
import select
import socket
import struct
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from time import monotonic, sleep
from types import SimpleNamespace

DAEMON = Path(__file__).resolve().parents[1] / "feedback-daemon"
sys.path[:0] = [str(DAEMON / "tests"), str(DAEMON / "wireshark")]
import wire  # noqa: E402
from decode import checksum, host_key, proof_len, tag  # noqa: E402


def rtp(seq: int, flow: int, size: int, words: int = 0) -> bytes:
    """An RTP packet, its header extension `words` words long."""
    first = 0x90 if words else 0x80
    head = struct.pack("!BBHII", first, 96, seq & 0xFFFF, seq * 90, 0x1000 + flow)
    if words:
        element = bytes([0x30 | 15]) + bytes((7 * seq + i) & 0xFF for i in range(16))
        head += struct.pack("!HH", 0xBEDE, words) + (element * words)[: 4 * words]
    return head + bytes((seq + i) & 0xFF for i in range(size - len(head)))


def udp(payload: bytes, ports: tuple[int, int] = (7000, 7000)) -> bytes:
    return struct.pack("!HHHH", *ports, 8 + len(payload), 0) + payload


def ipv4(source: bytes, to: str, body: bytes, number: int = 0, flags: int = 0, proto: int = 17,
         options: bytes = b"") -> bytes:
    """A packet that lacks a checksum, which a raw socket makes."""
    head = struct.pack("!BBHHHBBH", 0x45 + len(options) // 4, 0, 20 + len(options) + len(body),
                       number, flags, 64, proto, 0)
    return head + source + socket.inet_aton(to) + options + body


def until(when: float) -> None:
    sleep(max(0.0, when - monotonic()))


def send(to: str, seconds: float = 1.0, *, flows: int = 1, port: int = 5004, rate: float = 4e5,
         size: int = 500, extension: int = 0, source: str = "", burst: int = 1) -> None:
    """Media, IPv4 or IPv6.

    @rate: bit/s of all flows, payload only
    @burst: packets that are sent at once, one of each flow in turn
    @extension: words of its header extension
    @source: address of the first flow, each has the next
    """
    socks = []
    for i in range(flows):
        sock = socket.socket(socket.AF_INET6 if ":" in to else socket.AF_INET, socket.SOCK_DGRAM)
        if sock.family == socket.AF_INET6:  # the same port may serve IPv4
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        sock.bind((str(ipaddress.ip_address(source) + i if source else ""), port + i))
        # with the scope that a link-local address has behind a %
        sock.connect(socket.getaddrinfo(to, port + i, sock.family)[0][4])
        socks.append(sock)
    gap = size * 8 / rate
    start = monotonic()
    for n in itertools.takewhile(lambda n: n * gap < seconds, itertools.count()):
        until(start + n // burst * burst * gap)
        seq, flow = divmod(n, flows)
        try:
            socks[flow].send(rtp(seq, flow, size, extension))
        except OSError:  # nobody listens at the other end, or the device is going
            pass
    for sock in socks:
        sock.close()


def inject(device: str, mac: str, source: str, to: str, tag: bytes = b"",
           own: str = "00:00:00:00:00:00") -> None:
    """150 packets with any source address, straight into a device's queue; IPv6, maybe with a tag
    of a VLAN in the frame.
    """
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as sock:
        for seq in range(150):
            body = udp(rtp(seq, 0, 200), (7000, 5004))
            head = struct.pack("!IHBB", 6 << 28, len(body), 17, 64)
            for address in (source, to):
                head += socket.inet_pton(socket.AF_INET6, address)
            ends = bytes.fromhex((mac + own).replace(":", ""))
            frame = ends + tag + b"\x86\xdd" + head + body
            sock.sendto(frame, (device, int.from_bytes(frame[12:14], "big")))
            sleep(0.01)


def odd(to: str, how: str, count: int = 100, gap: float = 0.02) -> None:
    """IPv4 media that no message may quote: `fragments`, only `later` ones, with IP `options`, in
    a tunnel (`gre`); or `small`, pictures that begin with a small packet. All but the first packets
    are, the next comes after @gap seconds.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((to, 9))
        own = socket.inet_aton(probe.getsockname()[0])
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as raw:
        for seq in range(count):
            body = udp(rtp(seq, 9, 20 if how == "small" and not seq % 4 else 200))
            options, flags, proto = b"", 0, 17
            if how == "options":
                options = b"\x94\x04\0\0"  # router alert
            elif how == "fragments":
                flags, body = 0x2000, body[:200]
            elif how == "later":
                flags, body = 25, body[:100]
            elif how == "gre":
                proto, body = 47, b"\0\0\x08\0" + ipv4(own, to, body)
            raw.sendto(ipv4(own, to, body, seq + 1, flags, proto, options), (to, 0))
            if how != "small" or seq % 4 == 3:
                sleep(gap)


def invent(to: str, source: str, seconds: float, rate: int = 500) -> None:
    """IPv4 media of ever new sources, `rate` a second, which send eight packets in a second."""
    first = ipaddress.IPv4Address(source)
    start = monotonic()
    each = rate // 8  # in a step of an eighth of a second
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as raw:
        for step in range(int(seconds * 8)):
            until(start + step / 8)
            for n in range(max(0, step - 7) * each, (step + 1) * each):
                seq = step - n // each
                body = udp(rtp(seq, n, 200))
                raw.sendto(ipv4((first + n).packed, to, body, seq + 1), (to, 0))


def address(quote: bytes, v6: bool, which: int) -> str:
    """The source (0) or destination (1) of a quoted packet."""
    size = 16 if v6 else 4
    at = (8 if v6 else 12) + which * size
    return str(ipaddress.ip_address(quote[at : at + size]))


def fault(icmp: bytes, own: Sequence[str], quoted: str, v6: bool) -> str:
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
    if address(quote, v6, 0) not in own:
        return "quoted source is not ours"
    if quoted not in ("", address(quote, v6, 1)):
        return f"quoted destination is {address(quote, v6, 1)}"
    if not v6 and checksum(quote[:20]):
        return "quoted header has a wrong checksum"
    body = quote[hlen + 8:]
    size = proof_len(body)
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
    right = tag(icmp, host_key(keys[number], address(icmp[8:], v6, 0)), v6)
    return str(number) if right == struct.unpack("!Q", obj[-8:])[0] else "bad"


def raw_icmp() -> socket.socket:
    return socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)


def receive(socks: list[socket.socket], end: float) -> tuple[bool, bytes, str] | None:
    """The next ICMP message, whether it is of IPv6, and where it came from."""
    left = end - monotonic()
    ready = select.select(socks, [], [], left)[0] if left > 0 else []
    if not ready:
        return None
    data, source = ready[0].recvfrom(2048)
    v6 = ready[0].family == socket.AF_INET6
    return v6, data if v6 else data[(data[0] & 15) * 4:], source[0]


def watch(seconds: float, own: Sequence[str], quoted: str = "", keys: Sequence[str] = ()
          ) -> SimpleNamespace:
    """What a host is told: how many messages of each version (v4, v6), how many of them prove
    nothing (wrong), echo requests (echo4, echo6), and what else the messages say.

    @own: addresses of this host
    @quoted: the address that the quoted packet must have been sent to
    @keys: ID:HEX, which tags may be made with
    """
    known = {int(k.split(":")[0]): bytes.fromhex(k.split(":")[1]) for k in keys}
    got = SimpleNamespace(v4=0, v6=0, echo4=0, echo6=0, wrong=0, sources=set(), tags=Counter(),
                          order=[], values=[])
    end = monotonic() + seconds
    times = [monotonic()]  # of the beginning, of each message, and of the end
    v6_sock = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
    with raw_icmp() as v4_sock, v6_sock:
        while heard := receive([v4_sock, v6_sock], end):
            v6, icmp, source = heard
            got.echo4 += not v6 and icmp[0] == 8
            got.echo6 += v6 and icmp[0] == 128
            if icmp[0] != (wire.ICMP6_TYPE if v6 else wire.ICMP_TYPE):
                continue
            got.v4 += not v6
            got.v6 += v6
            times.append(monotonic())
            got.sources.add(source)
            by = tagged_by(icmp, known)
            got.tags[by] += 1
            if got.order[-1:] != [by]:
                got.order.append(by)
            if (relative := wire.relative(icmp)) is not None:
                got.values.append(relative)
            if why := fault(icmp, own, quoted, v6):
                got.wrong += 1
                print(f"# message from {source}: {why}", flush=True)
    after = [round(1000 * (b - a)) for a, b in itertools.pairwise([*times, end])]
    got.first_ms, got.pause_ms = after[0], max(after[1:], default=None)
    return got


def answer(seconds: float, how: str = "", delay: float = 0, source: str = "") -> SimpleNamespace:
    """Answers IPv4 echo requests late, with another `nonce` or `seq`, or from another address; how
    many were asked and replied.
    """
    held: list[tuple[float, bytes, str]] = []
    out = SimpleNamespace(asked=0, replied=0)
    end = monotonic() + seconds
    with raw_icmp() as sock, raw_icmp() as reply_sock:
        reply_sock.bind((source, 0))
        while True:
            now = monotonic()
            while held and held[0][0] <= now:
                _, reply, asker = held.pop(0)
                reply_sock.sendto(reply, (asker, 0))
                out.replied += 1
            if now >= end:
                return out
            got = receive([sock], min([end, *(h[0] for h in held[:1])]))
            if not got or got[1][0] != 8 or len(got[1]) < 24:
                continue
            out.asked += 1
            body = bytearray(got[1])
            body[0] = 0
            if how == "nonce":
                body[8 + out.asked % 8] ^= 1
            elif how == "seq":
                body[6] ^= 0x80
            body[2:4] = b"\0\0"
            body[2:4] = struct.pack("!H", checksum(bytes(body)))
            held.append((monotonic() + delay, bytes(body), got[2]))
