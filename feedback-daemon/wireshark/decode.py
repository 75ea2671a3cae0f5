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
from collections.abc import Callable
from ipaddress import IPv4Address, ip_address
from pathlib import Path
from typing import Any

ICMP_HEADER, EXT_HEADER, MESSAGE_MAX = 8, 4, 340
OBJECT, OBJECT_MAX = 44, 128  # of version 2, without options; with as many as there may be
OBJECT1, PAYLOAD1 = 48, 28  # of version 1, and the most that it quotes behind UDP
PROOF, PROOF_BEHIND, PROOF_MAX = 28, 16, 128
TYPES, TYPE6, TYPE6_OLD = (253, 4), 200, 100
AUTH = 0x08
RELATIVE, TAG, MUST = 1, 0x8001, 0x8000
RATE_MAX = 10**12


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


def quoted(quote: bytes, six: bool, most: int) -> dict[str, Any]:
    """Addresses, ports and payload of the quoted packet."""
    header = 40 if six else (quote[0] & 15) * 4
    if quote[0] >> 4 != (6 if six else 4) or quote[6 if six else 9] != 17:
        raise Refused("msg_quote")
    if header < 20 or header + 8 > len(quote):
        raise Refused("msg_quote")
    payload = quote[header + 8 :]
    if not six and struct.unpack("!H", quote[6:8])[0] & 0x1FFF or len(payload) > most:
        raise Refused("msg_quote")
    source, destination = (quote[8:24], quote[24:40]) if six else (quote[12:16], quote[16:20])
    sport, dport = struct.unpack("!HH", quote[header : header + 4])
    return {
        "saddr": str(ip_address(source)),
        "daddr": str(ip_address(destination)),
        "sport": sport,
        "dport": dport,
        "payload": payload.hex(),
    }


def parts(icmp: bytes, six: bool) -> tuple[bytes, bytes] | None:
    """Quote and object of a message of version 2; None: it has no object of ours."""
    size = 8 * icmp[4] if six else 4 * icmp[5]
    quote, ext = icmp[ICMP_HEADER : ICMP_HEADER + size], icmp[ICMP_HEADER + size :]
    if not size or len(ext) < EXT_HEADER or ext[0] >> 4 != 2:
        return None
    if ext[2:4] != b"\0\0" and checksum(ext) != 0:
        return None
    other, at = False, EXT_HEADER
    while len(ext) - at >= 4:
        length, kind = struct.unpack("!HH", ext[at : at + 4])
        if length < 4 or length > len(ext) - at:
            break
        obj, at = ext[at : at + length], at + length
        if kind != 0xF701 or obj[4:8] != b"PAQM" or length < 9:
            continue
        if obj[8] == 2 and OBJECT <= length <= OBJECT_MAX:
            return quote, obj
        other = True
    if other:
        raise Refused("msg_version")
    return None


def options(obj: bytes) -> tuple[bytes, bytes]:
    """Relative value and tag, empty if there is none."""
    rest, value, tag_ = obj[OBJECT:], b"", b""
    while rest:
        if len(rest) < 4 or tag_:
            raise Refused("msg_option")
        kind, size = struct.unpack("!HH", rest[:4])
        filled = (size + 3) // 4 * 4
        if filled > len(rest) - 4:
            raise Refused("msg_option")
        body, rest = rest[4 : 4 + size], rest[4 + filled :]
        if kind == RELATIVE:
            if size != 4 or value:
                raise Refused("msg_option")
            value = body
            if not usable(value):
                raise Refused("msg_value")
        elif kind == TAG:
            if size != 8:
                raise Refused("msg_option")
            tag_ = body
        elif kind & MUST:
            raise Refused("msg_option")
    if bool(tag_) != bool(obj[9] & AUTH):
        raise Refused("msg_option")
    return value, tag_


def version1(icmp: bytes, six: bool) -> dict[str, Any]:
    """Fields of a message that is not of version 2; appendix A of the text."""
    obj = icmp[-OBJECT1:]
    if obj[:4] != b"PAQM":
        raise Refused("msg_magic")
    if obj[4] != 1:
        raise Refused("msg_version")
    quote = quoted(icmp[ICMP_HEADER:-OBJECT1], six, PAYLOAD1)
    if not usable(obj[24:28]) or not usable(obj[28:32]):
        raise Refused("msg_value")
    if icmp[4:8] != obj[24:28]:
        raise Refused("msg_mismatch")
    flags, key_id, router, boot, seq, ecf, rate = struct.unpack("!BHQIIff", obj[5:32])
    period, qdelay, flows, util, tag_ = struct.unpack("!HHHHQ", obj[32:])
    return {
        "version": 1,
        "flags": flags,
        "key_id": key_id,
        "router_id": f"{router:016x}",
        "boot": f"{boot:08x}",
        "seq": seq,
        "ecf": obj[24:28].hex(),
        "ecf_value": ecf,
        "rate_bps": max(int(rate), 1),
        "period_ms": period,
        "qdelay_100us": qdelay,
        "flows": flows,
        "util": util,
        "tag": f"{tag_:016x}",
        "quote": quote,
    }


def version2(quote: bytes, obj: bytes, six: bool) -> dict[str, Any]:
    """Fields of a message of version 2."""
    packet = quoted(quote, six, PROOF_MAX + (7 if six else 3))
    value, tag_ = options(obj)
    flags, key_id, router, boot, seq, rate = struct.unpack("!BHQIIQ", obj[9:36])
    if not 0 < rate <= RATE_MAX:
        raise Refused("msg_value")
    period, qdelay, flows, util = struct.unpack("!HHHH", obj[36:44])
    return {
        "version": 2,
        "flags": flags,
        "key_id": key_id,
        "router_id": f"{router:016x}",
        "boot": f"{boot:08x}",
        "seq": seq,
        "ecf": value.hex() if value else None,
        "ecf_value": struct.unpack("!f", value)[0] if value else None,
        "rate_bps": rate,
        "period_ms": period,
        "qdelay_100us": qdelay,
        "flows": flows,
        "util": util,
        "tag": (tag_ or bytes(8)).hex(),
        "quote": packet,
    }


def decode(icmp: bytes, src: str = "", dst: str = "") -> dict[str, Any]:
    """Fields of a message, in the names of the vectors; with addresses: of ICMPv6 between them."""
    six = bool(src)
    if not ICMP_HEADER + (48 if six else 28) + EXT_HEADER + OBJECT <= len(icmp) <= MESSAGE_MAX:
        raise Refused("msg_length")
    if icmp[0] not in ((TYPE6, TYPE6_OLD) if six else TYPES) or icmp[1] != 0:
        raise Refused("msg_type")
    ends = b""
    if six:
        ends = ip_address(src).packed + ip_address(dst).packed
        ends += struct.pack("!II", len(icmp), 58)
    if checksum(ends + icmp) != 0:
        raise Refused("msg_checksum")
    found = parts(icmp, six)
    fields = version2(*found, six) if found else version1(icmp, six)
    if six and icmp[0] != (TYPE6 if found else TYPE6_OLD):
        raise Refused("msg_type")
    return fields


def proof_len(payload: bytes) -> int:
    """Bytes of a UDP payload that a router quotes; 0: it proves nothing."""
    need = PROOF
    if len(payload) < need:
        return 0
    if payload[0] >> 6 == 2:
        need = 12 + 4 * (payload[0] & 15)
        if payload[0] & 0x10:
            if len(payload) < need + 4:
                return 0
            need += 4 + 4 * int(struct.unpack("!H", payload[need + 2 : need + 4])[0])
        need += PROOF_BEHIND
    return need if need <= min(len(payload), PROOF_MAX) else 0


def proof(payload: bytes) -> bytes:
    """The bytes of a UDP payload that prove the packet; none: it proves nothing."""
    head = payload[: proof_len(payload)]
    at, more = field_at(head), field_at(head, more=True)
    written = set(range(at + 4, at + 11)) if at is not None else set()
    written |= {more + 14} if more is not None else set()
    return bytes(byte for place, byte in enumerate(head) if place not in written)


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
    return int(a ^ b ^ c ^ d)


def host_key(router: bytes, address: str) -> bytes:
    """The key of the host that a router tells at this address."""
    host = ip_address(address)
    if isinstance(host, IPv4Address):
        own = bytes(10) + b"\xff\xff" + host.packed
    else:
        own = host.packed[:8] + bytes(8)
    return b"".join(struct.pack("<Q", siphash(router, own + bytes([half]))) for half in (0, 1))


def tag(icmp: bytes, key: bytes, six: bool = False) -> int:
    """The tag that a message must carry: of version 2 with the host's key, of 1 the router's."""
    found = parts(icmp, six)
    quote, obj = found or (icmp[ICMP_HEADER:-OBJECT1], icmp[-OBJECT1:])
    header = 40 if six else 4 * (quote[0] & 15)
    to = quote[24:40] if six else bytes(10) + b"\xff\xff" + quote[16:20]
    covered = obj[:-8] + bytes(8) + proof(quote[header + 8 :])
    return siphash(key, (to + quote[header + 2 : header + 4] if found else b"") + covered)


FIELD, FIELD_MAGIC, PROBE = 15, b"PAQ1", 0x0F
MORE_MAGIC, SAYS = b"PAQ2", 0x0E  # a supplement, and what a router says in those of the vectors


def field_at(payload: bytes, more: bool = False) -> int | None:
    """Where a UDP payload carries a rate for routers, if it does; or the supplement of that."""

    def good(at: int) -> bool:
        if not more:
            return payload[at : at + 4] == FIELD_MAGIC and usable(payload[at + 4 : at + 8])
        rates = (payload[at + 6 : at + 10], payload[at + 10 : at + 14])
        return payload[at : at + 4] == MORE_MAGIC and all(map(usable, rates))

    if more and field_at(payload) is None:
        return None
    if payload[:1] == bytes([PROBE]):
        at, size = (20, 35) if more else (1, 20)
        return at if len(payload) >= size and good(at) else None
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


def lowered(udp: bytes, at: int, more: int | None) -> bytes:
    """A UDP datagram, pseudo header left out, lowered to 1 Mbit/s by router beef, 260 ms.

    In a supplement it says what the vectors have it say: the higher grade, and all flags.
    """
    at += 8
    mine = struct.pack("!fHB", 1e6, 0xBEEF, 13)
    new = udp[:6] + bytes(2) + udp[8 : at + 4] + mine + udp[at + 11 :]
    if more is not None:
        said = new[more + 22]
        both = (said | SAYS) & ~3 | max(said & 3, SAYS & 3)
        new = new[: more + 22] + bytes([both]) + new[more + 23 :]
    total = checksum(new) or 0xFFFF
    return new[:6] + struct.pack("!H", total) + new[8:]


def decode_return(app: bytes) -> dict[str, Any]:
    """Fields of an RTCP APP packet, in the names of the vectors."""
    form = "!II4s4sHBB4s4s"
    head, _, name, rate, router, period, kind, nonce, seq = struct.unpack(form, app[:28])
    if head not in (0x81CC0006, 0x81CC0007) or name != b"PAQM":
        raise Refused("no return")
    said = {"said": app[28] & 15} if head & 1 else {}
    return said | {
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


MESSAGES = ("messages.json", "messages6.json", "version1.json", "refusals.json")


def wrong_message(vector: dict[str, Any]) -> str:
    """What this decoder finds otherwise than a vector says; empty: nothing."""
    six = "icmp6" in vector
    icmp = bytes.fromhex(vector["icmp6" if six else "icmp"])
    got: dict[str, Any]
    try:
        got = {"expect": decode(icmp, vector.get("src", ""), vector.get("dst", ""))}
    except Refused as reason:
        got = {"refusal": str(reason)}
    want = {key: vector[key] for key in ("expect", "refusal") if key in vector}
    if got != want:
        return f"got {got}, want {want}"
    if "expect" in want and bool(vector.get("key")) != bool(want["expect"]["flags"] & AUTH):
        # flags that are not assigned do not count
        return "flag AUTH without a key, or the other way round"
    if "key" not in vector:
        return ""
    key = bytes.fromhex(vector["key"])
    if "router_key" in vector:
        told = want["expect"]["quote"]["saddr"]
        if host_key(bytes.fromhex(vector["router_key"]), told) != key:
            return "the key is not that of the host"
    right = f"{tag(icmp, key, six):016x}"
    return "" if right == want["expect"]["tag"] else f"tag {right}"


def wrong_proof(vector: dict[str, Any]) -> str:
    got = proof(bytes.fromhex(vector["payload"])).hex() or None
    return "" if got == vector["proof"] else f"got {got}, want {vector['proof']}"


def wrong_hostkey(vector: dict[str, Any]) -> str:
    got = host_key(bytes.fromhex(vector["router_key"]), vector["address"]).hex()
    return "" if got == vector["host_key"] else f"got {got}, want {vector['host_key']}"


def wrong_inband(vector: dict[str, Any]) -> str:
    at = field_at(bytes.fromhex(vector["payload"]))
    good = at == vector.get("offset")
    if good and at is not None:
        more = field_at(bytes.fromhex(vector["payload"]), more=True)
        good = more == vector.get("supplement")
        good = good and lowered(bytes.fromhex(vector["udp"]), at, more).hex() == vector["lowered"]
    return "" if good else f"offset {at}, or the datagram is lowered otherwise"


def wrong_return(vector: dict[str, Any]) -> str:
    fields = decode_return(bytes.fromhex(vector["app"]))
    rates = limits(bytes.fromhex(vector["tmmbr"]), bytes.fromhex(vector["remb"]))
    # both are rounded down, by less than one part in 2^16
    close = all(0 <= vector["bps"] - rate <= vector["bps"] / 2**16 for rate in rates)
    good = close and all(fields[key] == vector[key] for key in fields)
    return "" if good else f"got {fields}, limits {rates}"


CHECKS: list[tuple[str, Callable[[dict[str, Any]], str]]] = [
    *((name, wrong_message) for name in MESSAGES),
    ("proof.json", wrong_proof),
    ("hostkeys.json", wrong_hostkey),
    ("inband.json", wrong_inband),
    ("returns.json", wrong_return),
]


def main() -> int:
    if len(sys.argv) != 2:
        print("Usage: decode.py VECTORS_DIR", file=sys.stderr)
        return 2
    wrong = total = 0
    for name, check in CHECKS:
        vectors = load(Path(sys.argv[1]), name)
        total += len(vectors)
        wrong += not vectors
        for vector in vectors:
            if fault := check(vector):
                wrong += 1
                print(f"{name}: {vector['name']}: {fault}")
    print(f"{total} vectors, {wrong} wrong")
    return 1 if wrong or not total else 0


if __name__ == "__main__":
    sys.exit(main())
