#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Constant-rate UDP flows of a chosen kind, for tests of the qdisc inside a lab guest."""

import argparse
import inspect
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


def blast(
    to: str,
    kind: str = "rtp",
    *,
    source: str = "",
    flows: int = 1,
    port: int = 5004,
    rate: float = 1e6,
    size: int = 1000,
    seconds: float = 1.0,
    burst: int = 1,
    tos: int = 0,
    short: int = 0,
    quiet: float = 0.0,
    back: int = 0,
) -> None:
    """Sends to @port and those after it.

    @rate: bit/s of all flows, payload only
    @burst: packets at once
    @short: packets of a flow before the next takes its place
    @quiet: seconds at a quarter of the rate, first
    @back: packets at once at the end of these
    """
    socks = []
    for i in range(flows):
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 26)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
        sock.bind((source, 20000 + port + i))
        sock.connect((to, port + i))
        socks.append(sock)
    gap = size * 8 * burst / rate
    start = time.monotonic()
    n = sent = 0
    early = int(quiet / (4 * gap))  # of the periods
    while n * gap < seconds:
        wait = start + (n + 3 * min(n, early)) * gap - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        for _ in range(back if early and n == early else burst):
            number, flow = divmod(sent, flows)
            if short:
                flow, number = sent // short % flows, sent % short
            sent += 1
            try:
                socks[flow].send(payload(kind, size, number, flow))
            except OSError:
                pass  # the device is being taken down, or nobody listens: part of the tests
        n += 1
    for sock in socks:
        sock.close()


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__)
    for name, given in inspect.signature(blast).parameters.items():
        if given.default is given.empty:
            ap.add_argument(f"--{name}", required=True)
        else:
            ap.add_argument(f"--{name}", type=type(given.default), default=given.default)
    blast(**vars(ap.parse_args()))


if __name__ == "__main__":
    main()
