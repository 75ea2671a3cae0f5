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
    if icmp[0] not in (253, 4) or icmp[1] != 0:
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


FIELD, FIELD_MAGIC, PROBE = 15, b"PAQ1", 0x0F


def field_at(payload: bytes) -> int | None:
    """Where a UDP payload carries a rate for routers, if it does."""

    def good(at: int) -> bool:
        return payload[at : at + 4] == FIELD_MAGIC and usable(payload[at + 4 : at + 8])

    if payload[:1] == bytes([PROBE]):
        return 1 if len(payload) >= 20 and good(1) else None
    if len(payload) < 16 or payload[0] & 0xD0 != 0x90:
        return None
    at = 12 + 4 * (payload[0] & 15)
    if at + 4 > len(payload):
        return None
    profile, words = struct.unpack("!HH", payload[at : at + 4])
    if profile != 0xBEDE and profile >> 4 != 0x100:
        return None
    at, end = at + 4, min(at + 4 + 4 * words, len(payload))
    while at < end:
        if payload[at] == 0:
            at += 1
            continue
        if profile == 0xBEDE:
            if payload[at] >> 4 in (0, 15):
                return None
            size, at = (payload[at] & 15) + 1, at + 1
        else:
            if end - at < 2:
                return None
            size, at = payload[at + 1], at + 2
        if size > end - at:
            return None
        if size == FIELD and good(at):
            return at
        at += size
    return None


def lowered(udp: bytes, at: int) -> bytes:
    """A UDP datagram, pseudo header left out, lowered to 1 Mbit/s by router beef, 260 ms."""
    at += 8
    mine = struct.pack("!fHB", 1e6, 0xBEEF, 13)
    new = udp[:6] + bytes(2) + udp[8 : at + 4] + mine + udp[at + 11 :]
    total = checksum(new) or 0xFFFF
    return new[:6] + struct.pack("!H", total) + new[8:]


def decode_return(app: bytes) -> dict[str, Any]:
    """Fields of an RTCP APP packet, in the names of the vectors."""
    head, _, name, rate, router, period, kind, nonce, seq = struct.unpack("!II4s4sHBB4s4s", app)
    if head != 0x81CC0006 or name != b"PAQM":
        raise Refused("no return")
    return {
        "rate": rate.hex(),
        "router": router,
        "period": period,
        "kind": kind,
        "nonce": nonce.hex(),
        "seq": seq.hex(),
    }


def limits(tmmbr: bytes, remb: bytes) -> tuple[float, float]:
    """Rates of TMMBR (RFC 5104 section 4.2.1.1) and REMB, bit/s."""
    word = struct.unpack("!I", tmmbr[16:20])[0]
    first = (word >> 9 & 0x1FFFF) * 2.0 ** (word >> 26)
    word = struct.unpack("!I", remb[16:20])[0]
    return first, (word & 0x3FFFF) * 2.0 ** (word >> 18 & 63)


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
    for vector in load(directory, "inband.json"):
        total += 1
        at = field_at(bytes.fromhex(vector["payload"]))
        good = at == vector.get("offset")
        if good and at is not None:
            good = lowered(bytes.fromhex(vector["udp"]), at).hex() == vector["lowered"]
        if not good:
            wrong += 1
            print(f"{vector['name']}: offset {at}, or the datagram is lowered otherwise")
    for vector in load(directory, "returns.json"):
        total += 1
        fields = decode_return(bytes.fromhex(vector["app"]))
        rates = limits(bytes.fromhex(vector["tmmbr"]), bytes.fromhex(vector["remb"]))
        # both are rounded down, by less than one part in 2^16
        close = all(0 <= vector["bps"] - rate <= vector["bps"] / 2**16 for rate in rates)
        if not close or any(fields[key] != vector[key] for key in fields):
            wrong += 1
            print(f"{vector['name']}: got {fields}, limits {rates}")
    print(f"{total} vectors, {wrong} wrong")
    return 1 if wrong or not total else 0


if __name__ == "__main__":
    sys.exit(main())
