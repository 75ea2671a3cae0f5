#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Constant-rate UDP flows of a chosen kind, for tests of the qdisc inside a lab guest."""

import argparse
import socket
import struct
import time

SO_SNDBUFFORCE = 32  # a full queue must not make the sender wait


def payload(kind: str, size: int, seq: int, flow: int) -> bytes:
    """RTP, QUIC-like or plain payload of `size` bytes, with the time of sending from byte 12 on
    and, in the first two kinds, a sequence number in bytes 2 and 3."""
    if kind == "rtp":
        head = struct.pack("!BBHII", 0x80, 96, seq & 0xFFFF, seq * 90, 0x1000 + flow)
    elif kind == "quic":
        head = struct.pack("!BBHI", 0x43, 0, seq & 0xFFFF, seq)
    elif kind == "stun":
        head = struct.pack("!HHI", 1, 0, 0x2112A442)
    else:
        head = b"\xff" * 8
    head = head.ljust(12, b"\x55") + struct.pack("!d", time.monotonic())
    return (head + b"\x55" * size)[:size]


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--to", required=True)
    ap.add_argument("--source", default="", help="address to send from")
    ap.add_argument("--kind", choices=["rtp", "quic", "stun", "plain"], default="rtp")
    ap.add_argument("--flows", type=int, default=1)
    ap.add_argument("--port", type=int, default=5004, help="first destination port")
    ap.add_argument("--rate", type=float, default=1e6, help="bit/s of all flows, payload only")
    ap.add_argument("--size", type=int, default=1000, help="payload bytes")
    ap.add_argument("--seconds", type=float, default=1.0)
    ap.add_argument("--burst", type=int, default=1, help="packets at once")
    ap.add_argument("--tos", type=int, default=0, help="traffic class, such as 2 for ECT(0)")
    ap.add_argument("--short", type=int, help="packets of a flow before the next takes its place")
    ap.add_argument(
        "--quiet", type=float, default=0.0, help="seconds at a quarter of the rate, first"
    )
    ap.add_argument("--back", type=int, default=0, help="packets at once at the end of these")
    args = ap.parse_args()
    socks = []
    for i in range(args.flows):
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 26)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, args.tos)
        sock.bind((args.source, 20000 + args.port + i))
        sock.connect((args.to, args.port + i))
        socks.append(sock)
    gap = args.size * 8 * args.burst / args.rate
    start = time.monotonic()
    n = sent = 0
    early = int(args.quiet / (4 * gap))  # of the periods
    while n * gap < args.seconds:
        wait = start + (n + 3 * min(n, early)) * gap - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        for _ in range(args.back if early and n == early else args.burst):
            seq = sent
            sent += 1
            number, flow = divmod(seq, args.flows)
            if args.short:
                flow, number = seq // args.short % args.flows, seq % args.short
            try:
                socks[flow].send(payload(args.kind, args.size, number, flow))
            except (BlockingIOError, ConnectionRefusedError, OSError):
                pass  # the device is being taken down, or nobody listens: part of the tests
        n += 1


if __name__ == "__main__":
    main()
