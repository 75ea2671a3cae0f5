# SPDX-License-Identifier: GPL-2.0
"""The elastic load: a TCP source that always has data, and its sink.

Not iperf3, because its client polls in a busy loop for a round trip before it begins: in virtual
time, where waiting is free and system calls are not, that costs more than all of the transfer.
Both ends print one JSON line at the end.
"""

import argparse
import json
import random
import selectors
import socket
import struct
import time

CHUNK = 65536
# Unsent data kept in the socket: enough never to run dry, little enough to wake up seldom.
UNSENT = 131072


def open_source(
    address: str, congestion_control: str, mss: int = 0, priority: int = 0
) -> socket.socket:
    """A socket of a source, not connected yet; `priority`: for qdiscs of this host."""
    link = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    if mss:
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, mss)
    if priority:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, priority)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion_control.encode())
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT)
    # Closing discards what is still unsent: the load ends when it is due.
    link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return link


def source(address: str, port: int, congestion_control: str, seconds: float) -> int:
    """Sends as fast as TCP allows for that long, then breaks off as a user does. Bytes written."""
    stop = time.monotonic() + seconds
    sent = 0
    with open_source(address, congestion_control) as link:
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


def sources(
    address: str, port: int, starts: list[float], congestion_control: str, seconds: float,
    mss: int = 0, priority: int = 0,
) -> int:
    """Many such flows in one program, to the ports from `port` on, each begun at its time; the
    priorities are those from `priority` on. One whose SYNs are all lost begins anew.
    """
    begun = time.monotonic()
    sent, block = 0, bytes(CHUNK)
    waiting = sorted(zip(starts, range(port, port + len(starts)), strict=True))
    with selectors.DefaultSelector() as ready:
        while (now := time.monotonic() - begun) < seconds:
            while waiting and waiting[0][0] <= now:
                number = waiting.pop(0)[1]
                own = priority and priority + number - port
                link = open_source(address, congestion_control, mss, own)
                link.setblocking(False)
                link.connect_ex((address, number))
                ready.register(link, selectors.EVENT_WRITE, number)
            until = min([seconds, *(start for start, _ in waiting[:1])])
            for key, _ in ready.select(max(0.0, until - now)):
                try:
                    sent += key.fileobj.send(block)  # type: ignore[union-attr]
                except BlockingIOError:
                    continue
                except TimeoutError:
                    ready.unregister(key.fileobj)
                    key.fileobj.close()  # type: ignore[union-attr]
                    waiting.insert(0, (now, key.data))
        for key in ready.get_map().values():
            key.fileobj.close()  # type: ignore[union-attr]
    return sent


def files(
    address: str, port: int, sizes: tuple[int, int], idle: float, begin_idle: bool,
    congestion_control: str, seconds: float, seed: int,
) -> tuple[int, list[list[float | None]]]:
    """One file after the other, a pause of random length before each but perhaps the first.

    Bytes written, and of each file its begin (Unix time), size and how long it took, None if it was
    still under way at the end.
    """
    dice = random.Random(seed)
    stop = time.monotonic() + seconds
    sent = 0
    done: list[list[float | None]] = []
    if begin_idle:
        time.sleep(min(dice.expovariate(1 / idle), seconds))
    while (left := stop - time.monotonic()) > 0:
        size, begun, took = dice.randint(*sizes), time.time(), None
        with open_source(address, congestion_control) as link:
            link.settimeout(left)
            try:
                link.connect((address, port))
                link.sendall(bytes(size))
                link.shutdown(socket.SHUT_WR)
                link.recv(1)  # the sink closes when it has all
                took = time.time() - begun
                sent += size
            except TimeoutError:
                pass
        done.append([begun, size, took])
        time.sleep(max(0.0, min(dice.expovariate(1 / idle), stop - time.monotonic())))
    return sent, done


def sink_of_files(port: int, seconds: float) -> int:
    """Reads one connection after the other. Bytes read."""
    stop, received = time.monotonic() + seconds, 0
    buffer = bytearray(4 * CHUNK)
    with socket.create_server(("", port)) as server:
        while (left := stop - time.monotonic()) > 0:
            server.settimeout(left)
            try:
                link, _ = server.accept()
            except TimeoutError:
                break
            with link:
                try:
                    while count := link.recv_into(buffer):
                        received += count
                except ConnectionResetError:
                    pass
    return received


class Bins:
    """Bytes of each flow by the time they were read, in bins from `epoch` (Unix time) on.

    Who has them reads once in each: a program that wakes up for every packet costs more than the
    packet. Where segments are to be acknowledged before, the route's `quickack` does it.
    """

    def __init__(self, flows: int, epoch: float, width: float) -> None:
        self.epoch, self.width = epoch, width
        self.bytes: list[list[int]] = [[] for _ in range(flows)]

    def add(self, which: int, count: int) -> None:
        at = max(0, int((time.time() - self.epoch) / self.width))
        row = self.bytes[which]
        row += [0] * (at + 1 - len(row))
        row[at] += count


def sinks(
    port: int, flows: int, seconds: float, window: int = 0, bins: Bins | None = None,
    at_once: int = 1,
) -> list[int]:
    """Reads one connection at each of many ports, all to their ends. Bytes read of each.

    Some may never come, or their ends be lost: nothing is waited for longer than `seconds`.
    `window`: bytes that may be on their way. With `at_once` it is not woken for less: small
    segments each wake it.
    """
    stop = time.monotonic() + seconds
    received, open_ends = [0] * flows, flows
    buffer = bytearray(4 * CHUNK)
    with selectors.DefaultSelector() as ready:
        for number in range(port, port + flows):
            server = socket.create_server(("", number))
            if window:  # the buffer is large, so that the window alone counts
                server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 18)
                server.setsockopt(socket.IPPROTO_TCP, socket.TCP_WINDOW_CLAMP, window)
            ready.register(server, selectors.EVENT_READ, (number - port, True))
        while open_ends and (left := stop - time.monotonic()) > 0:
            if bins:
                time.sleep(min(bins.width, left))
            for key, _ in ready.select(left):
                end = key.fileobj
                assert isinstance(end, socket.socket)
                which, listens = key.data
                if listens:
                    link, _ = end.accept()
                    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, at_once)
                    ready.register(link, selectors.EVENT_READ, (which, False))
                    count = 0
                else:
                    try:
                        count = end.recv_into(buffer)
                    except ConnectionResetError:
                        count = 0
                    received[which] += count
                    if bins and count:
                        bins.add(which, count)
                    open_ends -= not count
                if not count:
                    ready.unregister(end)
                    end.close()
    return received


def sink(port: int, family: int) -> int:
    """Reads one connection to its end. Bytes read."""
    received = 0
    with socket.create_server(("", port), family=family) as server:
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
    parser.add_argument("--starts", metavar="S,...", help="of many flows, to ports from --port on")
    parser.add_argument("--flows", type=int, metavar="N", help="so many sinks, for --seconds")
    parser.add_argument("--at-once", type=int, default=1, metavar="BYTES",
                        help="sinks sleep until so much has come")  # fmt: skip
    parser.add_argument("--ipv6", action="store_true", help="the sink's family")
    parser.add_argument("--files", metavar="BYTES-BYTES", help="transfer files of such sizes")
    parser.add_argument("--idle", type=float, metavar="S", help="mean pause between two files")
    parser.add_argument("--begin-idle", action="store_true", help="a pause before the first, too")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mss", type=int, default=0, help="of many sources")
    parser.add_argument("--priority", type=int, default=0, help="SO_PRIORITY of the first of them")
    parser.add_argument("--window", type=int, default=0, metavar="BYTES", help="of many sinks")
    parser.add_argument("--epoch", type=int, metavar="NS", help="of many sinks: print their bins")
    parser.add_argument("--bin", type=float, default=0.05, metavar="S")
    args = parser.parse_args()
    more: dict[str, list[list[float | None]] | list[list[int]]] = {}
    if args.files and args.to:
        low, high = (int(text) for text in args.files.split("-"))
        count, more["files"] = files(
            args.to, args.port, (low, high), args.idle, args.begin_idle,
            args.congestion_control, args.seconds, args.seed,
        )
    elif args.files:
        count = sink_of_files(args.port, args.seconds)
    elif args.to and args.starts:
        starts = [float(text) for text in args.starts.split(",")]
        count = sources(
            args.to, args.port, starts, args.congestion_control, args.seconds, args.mss,
            args.priority,
        )
    elif args.to:
        count = source(args.to, args.port, args.congestion_control, args.seconds)
    elif args.flows:
        bins = Bins(args.flows, args.epoch / 1e9, args.bin) if args.epoch else None
        each = sinks(args.port, args.flows, args.seconds, args.window, bins, args.at_once)
        more = {"bins": bins.bytes} if bins else {}
        print(json.dumps({"port": args.port, "bytes": sum(each), "each": each, **more}), flush=True)
        return
    else:
        count = sink(args.port, socket.AF_INET6 if args.ipv6 else socket.AF_INET)
    print(json.dumps({"port": args.port, "bytes": count, "each": [count], **more}), flush=True)


if __name__ == "__main__":
    main()
