# SPDX-License-Identifier: GPL-2.0
"""A router that lies: sends well-formed messages about the packets it forwards, with wrong rates.

Runs on a host on the path, so it can quote. It writes the message as docs/protocol.md has it and
shares no code with the project's codec.

  high     10^12 bit/s
  low      1 kbit/s
  flap     8 Mbit/s and 0.2 Mbit/s by turns
  restart  takes the place of the true router: its id and boot nonce, sequence from 1, --rate
  broken   values that are no rates: none, too many, and relative ones that are NaN, infinite,
           negative or denormal
"""

from __future__ import annotations

import argparse
import math
import select
import socket
import struct
import time
from collections.abc import Iterator

LIAR = 0xBAD  # the router's identifier in messages
ETH_P_IP = 0x0800
ICMP_EXPERIMENT = 253
PAYLOAD = 28  # bytes of UDP payload in a quote: RTP without header extension
FIXED = 44  # bytes of the object without options


def checksum(data: bytes) -> int:
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data[: len(data) & ~1]))
    if len(data) & 1:
        total += data[-1] << 8
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def message(packet: bytes, router: int, boot: int, seq: int, rate: int,
            ecf: float | None) -> bytes:
    """An ICMP message about an IPv4/UDP packet."""
    header = (packet[0] & 15) * 4
    quote = packet[: header + 8 + PAYLOAD]
    options = struct.pack("!HHf", 1, 4, ecf) if ecf is not None else b""
    body = struct.pack("!HBB4sBBHQIIQ", FIXED + len(options), 0xF7, 1, b"PAQM", 2, 0, 0, router,
                       boot, seq, rate)
    body += struct.pack("!HHHH", 250, 0, 2, 0) + options
    extension = b"\x20\0" + struct.pack("!H", checksum(b"\x20\0\0\0" + body)) + body
    icmp = bytes([ICMP_EXPERIMENT, 0, 0, 0, 0, len(quote) // 4, 0, 0]) + quote + extension
    return icmp[:2] + struct.pack("!H", checksum(icmp)) + icmp[4:]


def newest(device: str, wanted: int, port: int | None) -> bytes:
    """The next IPv4 packet that arrives on a device: of a protocol, to a UDP port."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_IP)) as ear:
        ear.bind((device, ETH_P_IP))
        while True:
            packet, where = ear.recvfrom(2048)
            header = (packet[0] & 15) * 4
            if where[2] == socket.PACKET_OUTGOING or packet[9] != wanted:
                continue
            if port is None and packet[header] == ICMP_EXPERIMENT:
                return packet
            if port is not None and struct.unpack_from("!H", packet, header + 2)[0] == port:
                return packet


def claims(mode: str, rate: int) -> Iterator[tuple[int, float | None]]:
    """What is claimed, message by message: a rate, a relative value."""
    right = 500_000
    turns: dict[str, list[tuple[int, float | None]]] = {
        "high": [(10**12, None)],
        "low": [(1000, None)],
        "flap": [(8_000_000, None), (200_000, None)],
        "restart": [(rate, None)],
        "broken": [(0, None), (10**12 + 1, None), (2**64 - 1, None), (right, math.nan),
                   (right, math.inf), (right, -1e6), (right, 0.0), (right, 1e-40)],
    }
    while True:
        yield from turns[mode]


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("mode", choices=["high", "low", "flap", "restart", "broken"])
    ap.add_argument("--device", required=True, help="where the packets of the victim arrive")
    ap.add_argument("--port", type=int, required=True, help="their UDP destination port")
    ap.add_argument("--router-device", help="where the true router's messages arrive")
    ap.add_argument("--epoch", type=int, required=True, help="CLOCK_REALTIME, ns")
    ap.add_argument("--start", type=float, required=True, help="s since the epoch")
    ap.add_argument("--stop", type=float, required=True)
    ap.add_argument("--interval", type=float, default=0.1, help="s between messages")
    ap.add_argument("--rate", type=float, default=1e6)
    args = ap.parse_args()
    router, boot, seq = LIAR, 0x1234, 0
    if args.mode == "restart":
        heard = newest(args.router_device, socket.IPPROTO_ICMP, None)
        at = (heard[0] & 15) * 4
        at += 8 + 4 * heard[at + 5] + 4  # behind ICMP header, quote and extension header
        router, boot = struct.unpack_from("!QI", heard, at + 12)
    said = claims(args.mode, int(args.rate))
    mouth = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)

    def now() -> float:
        return float(time.time_ns() - args.epoch) / 1e9

    time.sleep(max(0.0, args.start - now()))
    while now() < args.stop:
        packet = newest(args.device, socket.IPPROTO_UDP, args.port)
        seq += 1
        victim = socket.inet_ntoa(packet[12:16])
        mouth.sendto(message(packet, router, boot, seq, *next(said)), (victim, 0))
        select.select([], [], [], args.interval)
    print(f"{seq} messages")


if __name__ == "__main__":
    main()
