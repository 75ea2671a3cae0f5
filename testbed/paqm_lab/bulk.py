# SPDX-License-Identifier: GPL-2.0
"""The elastic load: a TCP source that always has data, and its sink.

Not iperf3, because its client polls in a busy loop for a round trip before it begins: in virtual
time, where waiting is free and system calls are not, that costs more than all of the transfer.
Both ends print one JSON line at the end.
"""

import argparse
import json
import socket
import struct
import time

CHUNK = 65536
# Unsent data kept in the socket: enough never to run dry, little enough to wake up seldom.
UNSENT = 131072


def source(address: str, port: int, congestion_control: str, seconds: float) -> int:
    """Sends as fast as TCP allows for that long, then breaks off as a user does. Bytes written."""
    stop = time.monotonic() + seconds
    sent = 0
    with socket.socket() as link:
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion_control.encode())
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT)
        # Closing discards what is still unsent: the load ends when it is due.
        link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        link.settimeout(seconds)
        link.connect((address, port))
        block = bytes(CHUNK)
        while (left := stop - time.monotonic()) > 0:
            link.settimeout(left)
            try:
                sent += link.send(block)
            except TimeoutError:
                break
    return sent


def sink(port: int) -> int:
    """Reads one connection to its end. Bytes read."""
    received = 0
    with socket.create_server(("", port)) as server:
        link, _ = server.accept()
        with link:
            buffer = bytearray(4 * CHUNK)
            try:
                while count := link.recv_into(buffer):
                    received += count
            except ConnectionResetError:
                pass
    return received


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m paqm_lab.bulk")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--to", metavar="ADDRESS", help="be the source; else be the sink")
    parser.add_argument("--congestion-control", default="cubic")
    parser.add_argument("--seconds", type=float, default=10.0)
    args = parser.parse_args()
    if args.to:
        count = source(args.to, args.port, args.congestion_control, args.seconds)
    else:
        count = sink(args.port)
    print(json.dumps({"port": args.port, "bytes": count}), flush=True)


if __name__ == "__main__":
    main()
