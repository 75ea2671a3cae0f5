# SPDX-License-Identifier: GPL-2.0
"""Tells a shaper the rate of a delivery trace as time goes by: the perfect, clairvoyant rate.

Runs in the router, one process that speaks rtnetlink: at every step the qdisc's `bandwidth` becomes
the mean rate of the trace until the next step. Ends when it is told to. Guests have no numpy.
"""

import argparse
import signal
import socket
import struct
import sys
import time
from pathlib import Path

OPPORTUNITY = 1514  # bytes, Ethernet header included
FLOOR = 0.05  # of the mean: no shaper is ever told less

RTM_NEWQDISC = 36
NLM_REQUEST_ACK = 1 | 4
TCA_KIND, TCA_OPTIONS, NESTED = 1, 2, 0x8000
# The 64 bit attribute with bytes/s.
BANDWIDTH = {"cake": 2, "paqm": 2}  # TCA_CAKE_BASE_RATE64, TCA_PAQM_BANDWIDTH


def _attribute(number: int, payload: bytes) -> bytes:
    data = struct.pack("=HH", 4 + len(payload), number) + payload
    return data + b"\0" * (-len(data) % 4)


class Shaper:
    """The `bandwidth` of one qdisc."""

    def __init__(self, device: str, kind: str, handle: int, parent: int) -> None:
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self.head = struct.pack("=BxxxiIII", 0, socket.if_nametoindex(device), handle, parent, 0)
        self.head += _attribute(TCA_KIND, kind.encode() + b"\0")
        self.number = BANDWIDTH[kind]

    def set(self, bits_per_second: float) -> None:
        option = _attribute(self.number, struct.pack("=Q", int(bits_per_second / 8)))
        body = self.head + _attribute(TCA_OPTIONS | NESTED, option)
        length = 16 + len(body)
        self.socket.send(struct.pack("=IHHII", length, RTM_NEWQDISC, NLM_REQUEST_ACK, 1, 0) + body)
        error = struct.unpack_from("=i", self.socket.recv(65536), 16)[0]
        if error:
            raise OSError(-error, "the qdisc refused its bandwidth")


def rates(trace: str, step: float) -> list[float]:
    """Bit/s in each step of a file in mahimahi's format, FLOOR of its mean at least."""
    at = [int(line) for line in trace.split()]
    length, size = at[-1], round(step * 1000)
    found = [0] * (length // size)
    for t in at:
        slot = t % length // size
        if slot < len(found):
            found[slot] += 1
    least = FLOOR * len(at) * OPPORTUNITY * 8000 / length
    return [max(least, count * OPPORTUNITY * 8 / step) for count in found]


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--trace", type=Path, required=True)
    options.add_argument("--device", required=True)
    options.add_argument("--kind", choices=sorted(BANDWIDTH), required=True)
    options.add_argument("--start-ns", type=int, required=True, help="when the trace begins")
    options.add_argument("--step", type=float, default=0.05, help="s between changes")
    args = options.parse_args()
    signal.signal(signal.SIGINT, lambda *_: sys.exit(0))
    told = rates(args.trace.read_text(), args.step)
    shaper = Shaper(args.device, args.kind, 0x100000, 0x10001)
    step = round(args.step * 1e9)
    while True:
        now = time.time_ns() - args.start_ns
        place = max(0, now // step)
        shaper.set(told[place % len(told)])
        time.sleep(((place + 1) * step - now) / 1e9)


if __name__ == "__main__":
    sys.exit(main())
