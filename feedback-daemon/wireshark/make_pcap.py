#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Writes the test vectors as a packet capture, to look at with Wireshark.

    make_pcap.py VECTORS_DIR FILE.pcap

Messages first, also over IPv6 and of version 1, then refusals, payloads with and without rates, and
returns, in the order of the files; raw IP, one packet a second. Two packets are added: a message of
which the end was not captured, and an echo request.
"""

from __future__ import annotations

import struct
import sys
from ipaddress import IPv6Address
from pathlib import Path

from decode import MESSAGES, checksum, load

LINKTYPE_RAW = 101
SNAPLEN = 65535
MEDIA_PORT, RTCP_PORT = 5004, 5005
ROUTER, SENDER = bytes([192, 0, 2, 1]), bytes([192, 0, 2, 2])


def ip_packet(icmp: bytes) -> bytes:
    """`icmp` from router to sender, sent as sch_paqm sends it."""
    head = struct.pack("!BBHHHBBH", 0x45, 0xC0, 20 + len(icmp), 0, 0, 64, 1, 0) + ROUTER + SENDER
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + icmp


def ip6_packet(icmp: bytes, src: str, dst: str) -> bytes:
    """The same over IPv6."""
    head = struct.pack("!IHBB", 0x6C000000, len(icmp), 58, 64)
    return head + IPv6Address(src).packed + IPv6Address(dst).packed + icmp


def echo_request() -> bytes:
    body = struct.pack("!BBHHH", 8, 0, 0, 1, 1) + bytes(16)
    return body[:2] + struct.pack("!H", checksum(body)) + body[4:]


def udp_packet(port: int, payload: bytes) -> bytes:
    """A datagram from sender to receiver; without checksum."""
    size = 28 + len(payload)
    head = struct.pack("!BBHHHBBH", 0x45, 0, size, 0, 0, 64, 17, 0) + SENDER + ROUTER
    head = head[:10] + struct.pack("!H", checksum(head)) + head[12:]
    return head + struct.pack("!HHHH", port, port, size - 20, 0) + payload


def media_packets(directory: Path) -> list[bytes]:
    """Those of inband.json, then those of returns.json."""
    found = [udp_packet(MEDIA_PORT, bytes.fromhex(vector["payload"]))
             for vector in load(directory, "inband.json")]
    for vector in load(directory, "returns.json"):
        report = bytes.fromhex("80c90001cafebabe")  # RR without blocks
        found.append(udp_packet(RTCP_PORT, report + bytes.fromhex(vector["app"])))
    return found


def packets(directory: Path) -> list[tuple[bytes, int]]:
    """Packets and how much of each is captured."""
    found = []
    for name in MESSAGES:
        for vector in load(directory, name):
            if "icmp6" in vector:
                icmp = bytes.fromhex(vector["icmp6"])
                packet = ip6_packet(icmp, vector["src"], vector["dst"])
            else:
                packet = ip_packet(bytes.fromhex(vector["icmp"]))
            found.append((packet, len(packet)))
    found += [(packet, len(packet)) for packet in media_packets(directory)]
    whole = found[0][0]
    found.append((whole, len(whole) - 10))
    echo = ip_packet(echo_request())
    found.append((echo, len(echo)))
    return found


def write(path: Path, records: list[tuple[bytes, int]]) -> None:
    with path.open("wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, SNAPLEN, LINKTYPE_RAW))
        for second, (packet, captured) in enumerate(records):
            out.write(struct.pack("<IIII", second, 0, captured, len(packet)))
            out.write(packet[:captured])


def main() -> int:
    if len(sys.argv) != 3:
        print("Usage: make_pcap.py VECTORS_DIR FILE.pcap", file=sys.stderr)
        return 2
    write(Path(sys.argv[2]), packets(Path(sys.argv[1])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
