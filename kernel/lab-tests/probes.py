#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Sends probes (docs/protocol.md 4a.3) beside a media stream that somebody else sends.

Waits until RTP leaves through the device and takes its addresses and ports. Prints how many probes
it has sent. Usage: probes.py DEVICE SECONDS
"""

import random
import select
import socket
import struct
import sys
import time

ETH_P_ALL, PERIOD, RATE = 3, 0.05, 3e6


def checksum(data: bytes) -> int:
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def stream(device: str) -> bytes:
    """Addresses and ports of the media, as they stand in its packets."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL)) as wire:
        wire.bind((device, ETH_P_ALL))  # only so it sees what leaves
        while True:
            packet, (_, _, kind, *_) = wire.recvfrom(2048)
            media = len(packet) > 200 and packet[9] == 17 and packet[28] >> 6 == 2
            if kind == socket.PACKET_OUTGOING and packet[0] == 0x45 and media:
                return packet[12:24]


def main() -> None:
    five = stream(sys.argv[1])
    nonce, number = random.randbytes(4), 0
    to = (socket.inet_ntoa(five[4:8]), 0)
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    end = time.monotonic() + float(sys.argv[2])
    while time.monotonic() < end:
        number += 1
        payload = b"\x0fPAQ1" + struct.pack("!fHB", RATE, 0, 0) + nonce + struct.pack("!I", number)
        size = 8 + len(payload)
        head = five[8:12] + struct.pack("!H", size)
        check = checksum(five[:8] + struct.pack("!HH", 17, size) + head + bytes(2) + payload)
        ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + size, 0, 0, 64, 17, 0) + five[:8]
        raw.sendto(ip + head + struct.pack("!H", check or 0xFFFF) + payload, to)
        select.select([], [], [], PERIOD)
    print(number)


if __name__ == "__main__":
    main()
