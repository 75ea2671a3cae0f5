#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Decoder of P-AQM feedback messages written from docs/protocol.md alone.

It shares nothing with core/paqm_msg.h, so that the text, the C code and the test vectors are held
against each other. As a program: decode.py VECTORS_DIR checks all vectors, status 1 if one fails.
"""

from __future__ import annotations

import json
import struct
import sys
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Any

ICMP_HEADER, QUOTE_MIN, QUOTE_MAX, OBJECT = 8, 28, 96, 48
QUOTED_PAYLOAD = 28


class Refused(Exception):
    """A message that must not be believed; the text is paqmd's name of the reason."""


def checksum(data: bytes) -> int:
    """Internet checksum, RFC 1071."""
    if len(data) % 2:
        data += b"\0"
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def usable(bits: bytes) -> bool:
    (value,) = struct.unpack("!f", bits)
    return bool(2**-20 <= value <= 1e12)


def decode_quote(quote: bytes) -> dict[str, Any]:
    header = (quote[0] & 15) * 4
    if quote[0] >> 4 != 4 or quote[9] != 17 or header < 20 or header + 8 > len(quote):
        raise Refused("msg_quote")
    payload = quote[header + 8 :]
    if struct.unpack("!H", quote[6:8])[0] & 0x1FFF or len(payload) > QUOTED_PAYLOAD:
        raise Refused("msg_quote")
    sport, dport = struct.unpack("!HH", quote[header : header + 4])
    return {
        "saddr": str(IPv4Address(quote[12:16])),
        "daddr": str(IPv4Address(quote[16:20])),
        "sport": sport,
        "dport": dport,
        "payload": payload.hex(),
    }


def decode6(icmp: bytes, src: str, dst: str) -> dict[str, Any]:
    """The same of an ICMPv6 message between these addresses."""
    if not ICMP_HEADER + 48 + OBJECT <= len(icmp) <= ICMP_HEADER + QUOTE_MAX + OBJECT:
        raise Refused("msg_length")
    if icmp[0] != 100 or icmp[1] != 0:
        raise Refused("msg_type")
    ends = IPv6Address(src).packed + IPv6Address(dst).packed
    if checksum(ends + struct.pack("!II", len(icmp), 58) + icmp) != 0:
        raise Refused("msg_checksum")
    quote = icmp[ICMP_HEADER:-OBJECT]
    if quote[0] >> 4 != 6 or quote[6] != 17 or len(quote) > 48 + QUOTED_PAYLOAD:
        raise Refused("msg_quote")
    # what follows the IP header, and the object, are as over IPv4
    head = b"\x45" + bytes(8) + b"\x11" + bytes(10)
    plain = b"\xfd\0\0\0" + icmp[4:8] + head + quote[40:] + icmp[-OBJECT:]
    fields = decode(plain[:2] + struct.pack("!H", checksum(plain)) + plain[4:])
    fields["quote"]["saddr"] = str(IPv6Address(quote[8:24]))
    fields["quote"]["daddr"] = str(IPv6Address(quote[24:40]))
    return fields


def decode(icmp: bytes) -> dict[str, Any]:
    """Fields of a message, in the names of the vectors."""
    if not ICMP_HEADER + QUOTE_MIN + OBJECT <= len(icmp) <= ICMP_HEADER + QUOTE_MAX + OBJECT:
        raise Refused("msg_length")
    if icmp[0] != 253 or icmp[1] != 0:
        raise Refused("msg_type")
    if checksum(icmp) != 0:
        raise Refused("msg_checksum")
    obj = icmp[-OBJECT:]
    if obj[:4] != b"PAQM":
        raise Refused("msg_magic")
    if obj[4] != 1:
        raise Refused("msg_version")
    quote = decode_quote(icmp[ICMP_HEADER:-OBJECT])
    if not usable(obj[24:28]) or not usable(obj[28:32]):
        raise Refused("msg_value")
    if icmp[4:8] != obj[24:28]:
        raise Refused("msg_mismatch")
    flags, key_id, router, boot, seq = struct.unpack("!BHQII", obj[5:24])
    ecf, erf = struct.unpack("!ff", obj[24:32])
    period, qdelay, flows, util, tag = struct.unpack("!HHHHQ", obj[32:])
    return {
        "flags": flags,
        "key_id": key_id,
        "router_id": f"{router:016x}",
        "boot": f"{boot:08x}",
        "seq": seq,
        "ecf": obj[24:28].hex(),
        "ecf_value": ecf,
        "erf": obj[28:32].hex(),
        "erf_bps": erf,
        "period_ms": period,
        "qdelay_100us": qdelay,
        "flows": flows,
        "util": util,
        "tag": f"{tag:016x}",
        "quote": quote,
    }


def invariant(payload: bytes) -> bytes:
    """The bytes of a UDP payload that a receiver digests."""
    head = payload[:QUOTED_PAYLOAD]
    if len(head) < 12 or head[0] >> 6 != 2:
        return head
    rest = 12 + 4 * (head[0] & 15)
    if head[0] & 0x10:
        if rest + 4 > len(head):
            rest = len(head)
        else:
            rest += 4 + 4 * struct.unpack("!H", head[rest + 2 : rest + 4])[0]
    return head[:12] + head[rest:]


def siphash(key: bytes, data: bytes) -> int:
    """SipHash-2-4 as in the paper of Aumasson and Bernstein."""
    mask = (1 << 64) - 1
    k0, k1 = struct.unpack("<QQ", key)
    a, b = k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D
    c, d = k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573

    def turn(v: int, bits: int) -> int:
        return (v << bits | v >> (64 - bits)) & mask

    def mix(rounds: int) -> None:
        nonlocal a, b, c, d
        for _ in range(rounds):
            a, c = (a + b) & mask, (c + d) & mask
            b, d = turn(b, 13) ^ a, turn(d, 16) ^ c
            a = turn(a, 32)
            c, a = (c + b) & mask, (a + d) & mask
            b, d = turn(b, 17) ^ c, turn(d, 21) ^ a
            c = turn(c, 32)

    padded = data + bytes(7 - len(data) % 8) + bytes([len(data) & 0xFF])
    for (word,) in struct.iter_unpack("<Q", padded):
        d ^= word
        mix(2)
        a ^= word
    c ^= 0xFF
    mix(4)
    return a ^ b ^ c ^ d


def tag(icmp: bytes, key: bytes) -> int:
    """The tag that a message with this key must carry."""
    quote = icmp[ICMP_HEADER:-OBJECT]
    payload = quote[(40 if quote[0] >> 4 == 6 else 4 * (quote[0] & 15)) + 8 :]
    return siphash(key, icmp[-OBJECT:-8] + bytes(8) + invariant(payload))


def load(directory: Path, name: str) -> list[dict[str, Any]]:
    vectors: list[dict[str, Any]] = json.loads((directory / name).read_text())["vectors"]
    return vectors


def main() -> int:
    if len(sys.argv) != 2:
        print("Usage: decode.py VECTORS_DIR", file=sys.stderr)
        return 2
    directory = Path(sys.argv[1])
    wrong = total = 0
    files = ("messages.json", "messages6.json", "refusals.json")
    for vector in [v for name in files for v in load(directory, name)]:
        total += 1
        got: dict[str, Any]
        icmp = bytes.fromhex(vector.get("icmp") or vector.get("icmp6", ""))
        try:
            six = "icmp6" in vector
            got = {"expect": decode6(icmp, vector["src"], vector["dst"]) if six else decode(icmp)}
        except Refused as reason:
            got = {"refusal": str(reason)}
        want = {key: vector[key] for key in ("expect", "refusal") if key in vector}
        if got != want:
            wrong += 1
            print(f"{vector['name']}: got {got}, want {want}")
        if "key" in vector:
            right = f"{tag(icmp, bytes.fromhex(vector['key'])):016x}"
            if right != vector["expect"]["tag"] or not vector["expect"]["flags"] & 8:
                wrong += 1
                print(f"{vector['name']}: tag {right}, or no flag AUTH")
    for vector in load(directory, "invariant.json"):
        total += 1
        digest = invariant(bytes.fromhex(vector["payload"])).hex()
        if digest != vector["invariant"]:
            wrong += 1
            print(f"{vector['name']}: got {digest}, want {vector['invariant']}")
    print(f"{total} vectors, {wrong} wrong")
    return 1 if wrong or not total else 0


if __name__ == "__main__":
    sys.exit(main())
