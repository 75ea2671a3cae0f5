#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Feedback messages for tests, built and taken apart as docs/protocol.md has them.

Nothing of the C codec is used here; what proves and what is tagged is as decode.py has it. Numbers
are those of section 2: a message is an ICMP header with the length of the quote, the quote, and an
extension structure with one object.
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "wireshark"))
from decode import checksum, host_key, proof_len, tag  # noqa: E402

ICMP_TYPE, ICMP6_TYPE, ICMP6_OLD = 253, 200, 100
AUTH, FINAL = 0x08, 0x04
RELATIVE, TAG = 1, 0x8001
EXT, FIXED = 4, 44  # bytes: header of the extension structure, object without options


def quoted(ip: bytes) -> bytes:
    """What a router quotes of an IP packet."""
    head = (40 if ip[0] >> 4 == 6 else 4 * (ip[0] & 15)) + 8
    return ip[: head + (proof_len(ip[head:]) or 28)]


def option(kind: int, value: bytes) -> bytes:
    return struct.pack("!HH", kind, len(value)) + value + bytes(-len(value) % 4)


def resum(icmp: bytes) -> bytes:
    """The message with right checksums, that of IPv6 left to who sends it."""
    v6 = icmp[:1] in (bytes([ICMP6_TYPE]), bytes([ICMP6_OLD]))
    if len(icmp) >= 8 and (ext := ext_at(icmp, v6)) > 8 and ext + EXT <= len(icmp):
        rest = icmp[ext : ext + 2] + b"\0\0" + icmp[ext + 4 :]
        icmp = icmp[: ext + 2] + struct.pack("!H", checksum(rest)) + icmp[ext + 4 :]
    plain = icmp[:2] + b"\0\0" + icmp[4:]
    return plain[:2] + struct.pack("!H", checksum(plain)) + plain[4:]


def ext_at(icmp: bytes, v6: bool = False) -> int:
    """Where the extension structure begins."""
    return 8 + (8 * icmp[4] if v6 else 4 * icmp[5])


def object_at(icmp: bytes, v6: bool = False) -> int:
    return ext_at(icmp, v6) + EXT


def build(
    quote: bytes, seq: int, rate: int, ecf: float | None = None, router: int = 0xA1,
    boot: int = 7, period: int = 500, flags: int = FINAL, options: bytes = b"",
) -> bytes:
    """A whole message about the quoted packet."""
    v6 = quote[0] >> 4 == 6
    word = 8 if v6 else 4
    quote += bytes(-len(quote) % word)
    if ecf is not None:
        options = option(RELATIVE, struct.pack("!f", ecf)) + options
    obj = struct.pack("!HBB4sBBHQIIQ", FIXED + len(options), 0xF7, 1, b"PAQM", 2, flags, 0,
                      router, boot, seq, rate)
    obj += struct.pack("!HHHH", period, 35, 3, 60000) + options
    words = len(quote) // word
    head = struct.pack("!BBHBBH", ICMP6_TYPE if v6 else ICMP_TYPE, 0, 0,
                       words if v6 else 0, 0 if v6 else words, 0)
    return resum(head + quote + struct.pack("!BBH", 0x20, 0, 0) + obj)


def version1(quote: bytes, seq: int, rate: float, ecf: float = 0.9, router: int = 0xA1,
             boot: int = 7, period: int = 500) -> bytes:
    """The same as routers said it before."""
    v6 = quote[0] >> 4 == 6
    quote = quote[: (40 if v6 else 4 * (quote[0] & 15)) + 8 + 28]
    obj = struct.pack("!4sBBHQIIffHHHHQ", b"PAQM", 1, FINAL, 0, router, boot, seq, ecf, rate,
                      period, 35, 3, 60000, 0)
    head = struct.pack("!BBHf", ICMP6_OLD if v6 else ICMP_TYPE, 0, 0, ecf) + quote + obj
    return head[:2] + struct.pack("!H", checksum(head)) + head[4:]


def changed(icmp: bytes, at: int, new: bytes) -> bytes:
    """The message with other bytes at this offset of its object, from the object's header on."""
    at += object_at(icmp, icmp[0] == ICMP6_TYPE)
    return resum(icmp[:at] + new + icmp[at + len(new) :])


def saying(icmp: bytes, seq: int, rate: int, router: int | None = None) -> bytes:
    """The message with another sequence and rate."""
    icmp = changed(icmp, 24, struct.pack("!IQ", seq & 0xFFFFFFFF, rate))
    return icmp if router is None else changed(icmp, 12, struct.pack("!Q", router))


def said(icmp: bytes) -> tuple[int, int]:
    """Its sequence and rate."""
    at = object_at(icmp, icmp[0] == ICMP6_TYPE) + 24
    seq, rate = struct.unpack("!IQ", icmp[at : at + 12])
    return seq, rate


def relative(icmp: bytes) -> float | None:
    """Its relative value, if it has one."""
    at = object_at(icmp, icmp[0] == ICMP6_TYPE) + FIXED
    kind = struct.unpack("!H", icmp[at : at + 2])[0] if len(icmp) >= at + 8 else 0
    return float(struct.unpack("!f", icmp[at + 4 : at + 8])[0]) if kind == RELATIVE else None


def about(icmp: bytes, packet: bytes) -> bytes:
    """The message, quoting another packet of its IP version."""
    quote, v6 = quoted(packet), packet[0] >> 4 == 6
    word = 8 if v6 else 4
    quote += bytes(-len(quote) % word)
    words = bytes([len(quote) // word, 0] if v6 else [0, len(quote) // word])
    return resum(icmp[:4] + words + icmp[6:8] + quote + icmp[ext_at(icmp, v6) :])


def untagged(icmp: bytes) -> bytes:
    """The message without its tag and its flag."""
    v6 = icmp[0] == ICMP6_TYPE
    at = object_at(icmp, v6)
    if not icmp[at + 9] & AUTH:
        return icmp
    size = struct.unpack("!H", icmp[at : at + 2])[0] - 12
    head = struct.pack("!H", size) + icmp[at + 2 : at + 9] + bytes([icmp[at + 9] & ~AUTH, 0, 0])
    return resum(icmp[:at] + head + icmp[at + 12 : -12])


def tagged(icmp: bytes, number: int, key: bytes, host: str) -> bytes:
    """The message with the tag that the router's `key` of this number makes for a host."""
    icmp = untagged(icmp)
    v6 = icmp[0] == ICMP6_TYPE
    at = object_at(icmp, v6)
    size = struct.unpack("!H", icmp[at : at + 2])[0] + 12
    head = struct.pack("!H", size) + icmp[at + 2 : at + 9]
    head += struct.pack("!BH", icmp[at + 9] | AUTH, number)
    plain = icmp[:at] + head + icmp[at + 12 :] + option(TAG, bytes(8))
    return resum(plain[:-8] + struct.pack("!Q", tag(resum(plain), host_key(key, host), v6)))
