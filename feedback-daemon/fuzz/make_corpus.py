#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Write the committed corpus of the fuzz targets: a few inputs that reach deep.

Usage: make_corpus.py [DIR]  (default: the directory "corpus" beside this file)
"""

from __future__ import annotations

import socket
import struct
import sys
from pathlib import Path

SADDR, DADDR, ROUTER = "10.0.1.2", "10.0.2.2", "10.0.1.1"
REGISTER, UNREGISTER, STATUS = 1, 4, 5
TAG_HEAD = struct.pack("!HH", 0x8001, 8)
TAG = TAG_HEAD + bytes(8)
FOREIGN, LATER = bytes.fromhex("00080201deadbeef"), bytes.fromhex("000cf7015041514d03ffffff")


def packet(proto: int, src: str, body: bytes) -> bytes:
    """An IPv4 packet; the target computes checksums."""
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(body), 0, 0, 64, proto, 0)
    return head + socket.inet_aton(src) + socket.inet_aton(SADDR) + body


def option(kind: int, value: bytes) -> bytes:
    """An option of our object."""
    return struct.pack("!HH", kind, len(value)) + value + bytes(-len(value) % 4)


def told(seq: int, rate: int, ecf: float | None = None, boot: int = 7, options: bytes = b"",
         quote: int = 56, icmp: int = 253, before: bytes = b"", behind: bytes = b"") -> bytes:
    """A message of version 2 about a quote of so many bytes, which the target fills in."""
    if ecf is not None:
        options = option(1, struct.pack("!f", ecf)) + options
    flags, key = (13, 7) if options[-12:-8] == TAG_HEAD else (5, 0)
    obj = struct.pack("!HBB4sBBHQIIQ", 44 + len(options), 0xF7, 1, b"PAQM", 2, flags, key, 0xA1,
                      boot, seq, rate) + struct.pack("!HHHH", 500, 35, 3, 60000) + options
    words = struct.pack("!BB", quote // 8, 0) if icmp == 200 else struct.pack("!BB", 0, quote // 4)
    head = struct.pack("!BBH2sH", icmp, 0, 0, words, 0)
    # the target computes a checksum that is not zero
    return head + bytes(quote) + struct.pack("!BBH", 0x20, 0, 0xFFFF) + before + obj + behind


def message(seq: int, rate: int, ecf: float | None = None, boot: int = 7, options: bytes = b"",
            quote: int = 56, before: bytes = b"", behind: bytes = b"") -> bytes:
    """The same in an IPv4 packet."""
    return packet(1, ROUTER, told(seq, rate, ecf, boot, options, quote, 253, before, behind))


def packet6(icmp: bytes) -> bytes:
    """An IPv6 packet to the sender; the target computes the checksum."""
    ends = socket.inet_pton(socket.AF_INET6, "2001:db8::a00:101")
    ends += socket.inet_pton(socket.AF_INET6, "2001:db8::a00:102")
    return struct.pack("!IHBB", 6 << 28, len(icmp), 58, 64) + ends + icmp


def message6(seq: int, rate: int, ecf: float | None = None, options: bytes = b"",
             quote: int = 80) -> bytes:
    """A message about an IPv6 packet."""
    return packet6(told(seq, rate, ecf, 7, options, quote, 200))


def old(seq: int, ecf: float, rate: float, boot: int = 7, icmp: int = 253) -> bytes:
    """What version 1 had in ICMP; the target fills in the quote."""
    obj = struct.pack("!4sBBHQII", b"PAQM", 1, 5, 0, 0xA1, boot, seq)
    obj += struct.pack("!ffHHHHQ", ecf, rate, 500, 35, 3, 60000, 0)
    return struct.pack("!BBHf", icmp, 0, 0, ecf) + bytes(76 if icmp == 100 else 56) + obj


def message1(seq: int, ecf: float, rate: float, boot: int = 7) -> bytes:
    """A message of version 1."""
    return packet(1, ROUTER, old(seq, ecf, rate, boot))


def quench(value: float, rest: bytes) -> bytes:
    """Source Quench of the published system."""
    return packet(1, ROUTER, struct.pack("!BBHf", 4, 0, 0, value) + rest)


def framed(packets: list[bytes], helps: int) -> bytes:
    """Input of the message target."""
    return bytes([helps]) + b"".join(struct.pack("!H", len(p)) + p for p in packets)


def checksum(data: bytes) -> int:
    """Internet checksum."""
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def sealed(ip: bytes) -> bytes:
    """The IPv4 packet with its checksums; ICMP with an extension structure only."""
    head, body = ip[:20], ip[20:]
    if head[9] == 1:
        at = 8 + 4 * body[5]
        ext = body[at : at + 2] + b"\0\0" + body[at + 4 :]
        body = body[: at + 2] + struct.pack("!H", checksum(ext)) + body[at + 4 :]
        body = body[:2] + struct.pack("!H", checksum(body)) + body[4:]
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + body


def conversation() -> list[bytes]:
    """Media of the flow 10.0.1.2:5004 > 10.0.2.2:5006, a message about it, and it again."""
    rtp = struct.pack("!BBHII", 0x80, 96, 1, 90001, 0x11223344) + bytes(range(28))
    media = packet(17, SADDR, struct.pack("!HHHH", 5004, 5006, 8 + len(rtp), 0) + rtp)
    media = media[:16] + socket.inet_aton(DADDR) + media[20:]
    about = message(1, 500000, 0.5)
    about = sealed(about[:28] + media[:56] + about[84:])
    return [media, about, about]


def capture(frames: list[bytes], kind: int, order: str = "<", magic: int = 0xA1B2C3D4) -> bytes:
    """A capture file, a second between the packets."""
    data = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 262144, kind)
    for second, frame in enumerate(frames):
        data += struct.pack(order + "IIII", second, 5, len(frame), len(frame)) + frame
    return data


def block(kind: int, body: bytes) -> bytes:
    """A block of a pcapng file."""
    body += bytes(-len(body) % 4)
    size = struct.pack("<I", 12 + len(body))
    return struct.pack("<I", kind) + size + body + size


def pcapng(frames: list[bytes], kind: int, resolution: int = 9) -> bytes:
    """The newer format; times count in powers of ten."""
    data = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    data += block(1, struct.pack("<HHIHHB3xI", kind, 0, 262144, 9, 1, resolution, 0))
    for second, frame in enumerate(frames):
        t = second * 10**resolution
        head = struct.pack("<IIIII", 0, t >> 32, t & 0xFFFFFFFF, len(frame), len(frame))
        data += block(6, head + frame)
    return data


def captures() -> dict[str, bytes]:
    """Inputs of the offline target: text of flows, a zero, a file."""
    ip = conversation()
    raw = capture(ip, 101)
    vlan = [bytes(12) + b"\x81\x00\x00\x01\x08\x00" + p for p in ip]
    cooked = [struct.pack("!HHHQH", 4 if p[9] == 17 else 0, 1, 6, 0, 0x800) + p for p in ip]
    cooked2 = [struct.pack("!HHIHBBQ", 0x800, 0, 1, 1, 4 * (p[9] == 17), 6, 0) + p for p in ip]
    return {
        "offline/raw": b"\0" + raw,
        "offline/nano": b"\0" + capture(ip, 228, ">", 0xA1B23C4D),
        "offline/vlan": b"\0" + capture(vlan, 1),
        "offline/cooked": b"\0" + capture(cooked, 113),
        "offline/cooked2": b"\0" + capture(cooked2, 276, ">"),
        "offline/cut": b"\0" + raw[:-1],
        "offline/long": b"\0" + raw[:32] + b"\xff" * 4 + raw[36:],
        "offline/link": b"\0" + capture(ip, 105),
        "offline/pcapng": b"\0" + pcapng(ip, 101),
        "offline/pcapng-cut": b"\0" + pcapng(vlan, 1, 6)[:-5],
        "offline/ipv6": b"\0" + capture([b"\x60" + bytes(5) + b"\x3a" + bytes(100)], 229),
        "offline/flows": b"# x\n*:9 [::1]:9 ssrc 1f floor 1 ceil 2\n1.2.3.4:5 6.7.8.9:1\n\0" + raw,
        "offline/no-flow": b"[::1]:9 1.2.3.4:9\n\0" + raw,
    }


def record(kind: int, body: bytes) -> bytes:
    """A client record."""
    return struct.pack("=IBBH", 0x50514950, 1, kind, 8 + len(body)) + body


def registration(cookie: int, sport: int) -> bytes:
    """A registration."""
    mapped = bytes(10) + b"\xff\xff"
    body = mapped + socket.inet_aton(SADDR) + mapped + socket.inet_aton(DADDR)
    return record(REGISTER, body + struct.pack("=HHIQQIIQ", sport, 6, 1, 10, 1000, 1, 1, cookie))


def batch(sizes: list[int], six: bool = False) -> bytes:
    """UDP with RTP packets of these sizes one behind the other, as segmentation offload has it."""
    body = b"".join(struct.pack("!BBHII", 0x80, 96, 65530 + n & 0xFFFF, n, 7) + bytes(size - 12)
                    for n, size in enumerate(sizes))
    udp = struct.pack("!HHHH", 5004, 5006, 8 + len(body), 0) + body
    if six:
        return struct.pack("!IHBB", 6 << 28, len(udp), 17, 64) + bytes(32) + udp
    return struct.pack("!BBHHHBBHII", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, 1, 2) + udp


def neighbour(node: int, seq: int, load: int) -> bytes:
    """A message of rlqosd."""
    return struct.pack("!4sB3xQII", b"RLQS", 1, node, seq, load)


def heard(messages: list[tuple[int, int, bytes]]) -> bytes:
    """Input of the neighbour target: steps of time, time to live, message."""
    return b"".join(bytes([step, ttl, len(data)]) + data for step, ttl, data in messages)


def main() -> None:
    """Write all inputs."""
    default = Path(__file__).parent / "corpus"
    top = Path(sys.argv[1]) if len(sys.argv) > 1 else default
    nan = float("nan")
    options = bytearray(message(1, 500000))
    options[0] = 0x4F
    padded = [message(1, 500000) + bytes(20), message(2, 500000)[:100]]
    rounds = [(1, 0.5, 7), (2, 9e5, 7), (1, 0.5, 7), (0xFFFFFFFF, 1.0, 7), (1, 0.9, 8), (3, 1, 7)]
    two = [message(s, 500000, v, b) for s, v, b in rounds]
    tagged = [message(s, 500000, v, b, TAG) for s, v, b in rounds]
    one = [message1(s, v, 5e5, b) for s, v, b in rounds]
    ext, ext6 = 76, 96  # bytes quoted of a packet with the header extension of the target
    must, may = option(0x8002, b"x"), option(0x7FFF, b"xyz")
    inputs = {
        "message/rounds": framed(two, 3),
        "message/rounds-ecf": framed(two, 7),
        "message/rates": framed([message(s, r) for s, r in enumerate((1, 10**12, 64000), 1)], 3),
        "message/tagged": framed(tagged, 27),
        "message/untagged": framed(two, 11),
        "message/flag-only": framed([message(1, 500000, options=TAG[:-1])], 27),
        "message/ipv6": framed([message6(s, 500000, v) for s, v, _ in rounds], 35),
        "message/ipv6-tagged": framed([message6(s, 500000, v, TAG) for s, v, _ in rounds], 63),
        "message/extension": framed([message(1, 500000, quote=ext), *two[1:]], 131),
        "message/extension-tagged": framed(
            [message(s, 500000, v, b, TAG, ext) for s, v, b in rounds], 155),
        "message/extension-ipv6": framed([message6(1, 500000, 0.5, TAG, ext6)], 191),
        "message/objects": framed(
            [message(1, 500000, 0.5, before=FOREIGN + LATER),
             message(2, 500000, behind=FOREIGN), message(3, 500000, before=LATER, behind=LATER)],
            3),
        "message/unknown-option": framed(
            [message(1, 500000, 0.5, options=may), message(2, 500000, options=must),
             message(3, 500000, options=may + TAG)], 3),
        "message/option-cut": framed([message(1, 500000, options=may[:n]) for n in (1, 5, 7)], 3),
        "message/later": framed([message(1, 500000)[:88] + LATER * 4], 3),
        "message/version1": framed(one, 3),
        "message/version1-ecf": framed(one, 7),
        "message/version1-tagged": framed(one, 27),
        "message/version1-extension": framed(one[:1], 131),
        "message/version1-ipv6": framed(
            [packet6(old(s, v, 5e5, icmp=100)) for s, v, _ in rounds], 63),
        "message/versions": framed([one[0], two[1], message1(3, 0.5, 5e5)], 3),
        "message/values": framed(
            [message(1, 500000, nan), message(2, 0), message(3, 2**64 - 1), message(4, 1, 1)], 3),
        "message/values1": framed(
            [message1(1, nan, 5e5), message1(2, 0.5, -1), message1(3, 1, 1)], 3),
        "message/unsealed": framed([message(1, 500000)], 0),
        "message/no-proof": framed([message(1, 500000)], 1),
        "message/options": framed([bytes(options), *padded], 3),
        "message/cut": framed([message(1, 500000)[:n] for n in (0, 19, 20, 27, 83, 131)], 1),
        "message/quench": framed([packet(1, ROUTER, told(1, 500000, 0.5, icmp=4)),
                                  packet(1, ROUTER, old(2, 0.5, 5e5, icmp=4))], 3),
        "message/bare": framed([quench(v, bytes(28)) for v in (0.5, 1, 5e4, nan)], 67),
        "record/register": registration(1, 5),
        "record/sequence": b"".join(
            bytes([len(r)]) + r
            for r in (
                registration(1, 5),
                registration(2, 5),
                registration(2, 7),
                record(STATUS, struct.pack("=QQII", 1, 2, 3, 4)),
                record(UNREGISTER, struct.pack("=Q", 1)),
                registration(3, 5)[:-1],
            )
        ),
        "record/short": registration(1, 5)[:7],
        "request/show": b'{"cmd": "show"}',
        "request/watch": b'{"cmd": "watch", "x": [1, 2.5, null]}',
        "request/wrong": b'{"cmd": "\\ud834\\udd1e"}',
        "request/broken": b'{"cmd": "show"',
        # the reader's complaint about it ends within a character
        "request/character": b'{"cmd": "dud834\\udd\xd0\x9a\xdd\x82',
        "keys/good": b"# of the site\n1f 7 " + b"0f" * 16 + b" # new\n* 7 " + b"A0" * 16 + b"\n",
        "keys/host": b"1f 7 " + b"0f" * 16 + b" host\n1f 8 " + b"0e" * 16 + b"\n* 7 "
        + b"0d" * 16 + b"\thost # mine",
        "keys/host-word": b"1f 7 " + b"0f" * 16 + b" hosts\n",
        "keys/host-more": b"1f 7 " + b"0f" * 16 + b" host host\n",
        "keys/end": b"\t1f\t65535 " + b"0f" * 16,
        "keys/words": b"1f 7\n",
        "keys/router": b"* 7 " + b"0f" * 16 + b"\r\n0 7 " + b"0f" * 16,
        "keys/id": b"* 65536 " + b"0f" * 16,
        "keys/short": b"* 1 " + b"0f" * 15,
        "keys/digit": b"* 1 " + b"0g" * 16,
        "keys/zero": b"* 1 " + b"00" * 16,
        "keys/twice": b"1 1 " + b"0f" * 16 + b"\n01 1 " + b"0e" * 16,
        "keys/many": b"".join(b"%x 1 %s\n" % (i, b"0f" * 16) for i in range(1, 258)),
        "request/why": b'{"cmd": "why"}',
        "request/acts": b'{"cmd": "reload", "cmd2": "capture"}',
        "batch/three": batch([40, 40, 40]),
        "batch/last-shorter": batch([40] * 8 + [20]),
        "batch/last-longer": batch([40] * 8 + [60]),
        "batch/ipv6": batch([33] * 9, True),
        "batch/one": batch([300]),
        "batch/many": batch([28] * 129),
        "batch/cut": batch([40, 40])[:27],
        "conf/all": b"# all of them\ninterface eth0\ninterface wlan0 # two\nsocket /run/a\n"
        b"control /run/b\nuser paqm\ngroup video\nuse ecf\nsandbox no\nverbose yes\n",
        "conf/wrong": b"use dance\nfoo bar\ngroup\nuse erf\nuse ecf\nsocket here\nsandbox no no\n"
        b"\x01\n\n \t\n#\ninterface a/b\ninterface 1234567890123456",
        "conf/many": b"".join(b"interface eth%d\n" % i for i in range(10)) + b"interface eth1\n",
        "conf/long": b"user " + b"x" * 600 + b"\nuser " + b"y" * 33 + b"\nsocket /" + b"z" * 107,
        "conf/end": b"use erf\r\nuse ecf\0\nuser a#b\nuser a #b\n\xff\xfe verbose yes",
    }
    said = [neighbour(1, 1, 1 << 20), neighbour(2, 1, 1 << 24), neighbour(1, 2, 0)]
    inputs |= {
        "neighbour/three": heard([(5, 255, m) for m in said]),
        "neighbour/again": heard([(0, 255, said[0]), (30, 255, said[0]), (0, 255, said[0])]),
        "neighbour/own": heard([(0, 255, neighbour(7, 1, 5)), (0, 254, said[0])]),
        "neighbour/wrong": heard([(0, 255, neighbour(0, 1, 5)), (0, 255, neighbour(1, 1, 1 << 30)),
                                  (0, 255, said[0][:23]), (0, 255, said[0] + b"x"),
                                  (0, 255, b"RLQS\x02" + said[0][5:])]),
        "neighbour/many": heard([(0, 255, neighbour(n, 1, n)) for n in range(10, 30)]),
    }
    for name, data in {**inputs, **captures()}.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


if __name__ == "__main__":
    main()
