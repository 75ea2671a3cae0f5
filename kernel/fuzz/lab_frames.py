#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Raw frames into the qdisc, inside a lab guest (kernel with all checkers): `ok`/`not ok` lines.

1. Each packet of kernel/fuzz/packets.h alone through a packet socket: the kernel's counters must
   say what the user-space build of the same recogniser says.
2. Mutations of these packets, through a packet socket and, over a bridge, from a tap device; with
   and without a virtio header that asks for checksums and segmentation, right or wrong.
   Afterwards no packet may be left behind, and the counters must agree.

The kernel's log must stay free of reports.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import random
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parent.parent.parent
DEV, PEER, TAP, BRIDGE = "a0", "b0", "tap0", "bridge0"
SOL_PACKET, PACKET_VNET_HDR, SO_SNDBUFFORCE = 263, 15, 32
TUNSETIFF, IFF_TAP, IFF_NO_PI, IFF_VNET_HDR = 0x400454CA, 2, 0x1000, 0x4000
ELASTIC, _, UNKNOWN, RTP, MEDIA, SMALL, CONTROL, OTHER = range(8)  # enum paqm_kind
NOTES = ["not_ip", "tagged", "tunnel", "fragment"]  # PAQM_NOTE_*, lowest bit first
REPORTS = ("BUG:", "WARNING:", "KASAN", "UBSAN", "possible ", "INFO: ", "Oops", "protection fault")

failed = 0


def verdict(name: str, wrong: str = "") -> None:
    global failed
    failed += bool(wrong)
    print(f"not ok {name}: {wrong}" if wrong else f"ok {name}", flush=True)


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"lab_frames: {' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def reports() -> list[str]:
    return [line for line in run("dmesg").splitlines() if any(word in line for word in REPORTS)]


@dataclass
class Case:
    """A packet, and what the recogniser in user space says about it."""

    frame: bytes
    kind: int
    note: int
    counted: int
    words: str


def load_cases(program: Path) -> list[Case]:
    cases = []
    for line in run(str(program), "--frames").splitlines():
        data, kind, note, counted, words = line.split(" ", 4)
        cases.append(Case(bytes.fromhex(data), int(kind), int(note), int(counted), words))
    return cases


def statistics() -> dict[str, Any]:
    shown = json.loads(run("tc", "-s", "-j", "qdisc", "show", "dev", DEV))
    found: dict[str, Any] = next(qdisc for qdisc in shown if qdisc["kind"] == "paqm")
    return found


def fresh(*options: str) -> None:
    """A qdisc that has seen nothing."""
    subprocess.run(["tc", "qdisc", "del", "dev", DEV, "root"], capture_output=True)
    run("tc", "qdisc", "add", "dev", DEV, "root", "paqm", *options)


def packet_socket(vnet: bool) -> socket.socket:
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    sock.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 28)
    if vnet:
        sock.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    sock.setblocking(False)
    return sock


def open_tap(vnet: bool) -> int:
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    flags = IFF_TAP | IFF_NO_PI | (IFF_VNET_HDR if vnet else 0)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", TAP.encode(), flags))
    run("ip", "link", "set", TAP, "master", BRIDGE, "up")
    return fd


def compare(cases: list[Case]) -> None:
    """Kernel and user space agree about every packet of the table."""
    sock = packet_socket(False)
    wrong = []
    for case in cases:
        fresh("bandwidth", "100mbit")
        sock.sendto(case.frame, (DEV, struct.unpack("!H", case.frame[12:14])[0]))
        st = statistics()
        want = {
            "media": case.kind in (RTP, MEDIA, SMALL, CONTROL),
            "elastic": case.kind in (ELASTIC, UNKNOWN, OTHER),
            "unsure": case.kind == RTP,
            "small": case.kind == SMALL,
            "control": case.kind == CONTROL,
            "seen": bool(case.counted),
        } | {name: bool(case.note >> bit & 1) for bit, name in enumerate(NOTES)}
        got = {
            "media": st["media"]["arrived_bytes"] > 0,
            "elastic": st["elastic"]["arrived_bytes"] > 0,
            "unsure": st["unsure_packets"] > 0,
            "small": st["small_packets"] > 0,
            "control": st["control_packets"] > 0,
            "seen": st["seen_flows"] > 0,
        } | {name: st[f"{name}_packets"] > 0 for name in NOTES}
        differ = [name for name in want if want[name] != got[name]]
        if differ:
            wrong.append(f'"{case.words}" differs in {", ".join(differ)}')
    sock.close()
    verdict(f"kernel and user space agree about {len(cases)} packets", "; ".join(wrong[:5]))


def mutate(rng: random.Random, cases: list[Case]) -> bytes:
    """A packet of the table, damaged."""
    data = bytearray(rng.choice(cases).frame)
    for _ in range(rng.choice((0, 1, 1, 2, 4, 16))):
        how = rng.randrange(5)
        at = rng.randrange(12, len(data))
        if how == 0:
            data[at] = rng.randrange(256)
        elif how == 1:
            data[at] ^= 1 << rng.randrange(8)
        elif how == 2:  # a part of another packet
            other = rng.choice(cases).frame
            data[at:] = other[rng.randrange(len(other)) :]
        elif how == 3:
            del data[max(at, 15) :]
        else:
            data[at:at] = rng.randbytes(rng.choice((1, 2, 4, 8, 100)))
        if len(data) < 15:
            data += bytes(15)
    if not rng.randrange(20):  # long ones
        data += rng.randbytes(rng.choice((900, 1300)))
    return bytes(data[:1500])


def vnet_header(rng: random.Random, length: int) -> bytes:
    """struct virtio_net_hdr: none, sensible, or any."""
    how = rng.randrange(4)
    if how == 0:
        return bytes(10)
    start = rng.choice((34, 54, 38, 14, rng.randrange(max(length, 1))))
    offset = rng.choice((6, 16, 0, rng.randrange(64)))
    gso = rng.choice((0, 1, 3, 4, 5, 0x81, rng.randrange(256)))
    size = rng.choice((1, 8, 100, 536, 1448, rng.randrange(65536)))
    header = rng.choice((start + 8, start + 20, rng.randrange(65536)))
    if how == 1:
        gso, size = 0, 0
    return struct.pack("=BBHHHH", rng.choice((1, 1, 1, 2, 0)), gso, header, size, start, offset)


def drained() -> str:
    """Why the qdisc did not come to rest in order, or nothing."""
    time.sleep(5)
    st = statistics()
    gone = sum(
        st[c]["drop_tail_packets"] + st[c]["drop_inner_packets"] + st[c]["drop_strike_packets"]
        for c in ("media", "elastic")
    )
    sent = sum(st[c]["sent_bytes"] for c in ("media", "elastic"))
    arrived = sum(st[c]["arrived_bytes"] for c in ("media", "elastic"))
    if st["qlen"] or st["backlog"]:
        return f"{st['qlen']} packets, {st['backlog']} bytes are left"
    if sent != st["bytes"] or sent > arrived or (sent < arrived and not gone):
        return f"{arrived} bytes arrived, {sent} were sent, {st['bytes']} counted, {gone} dropped"
    return ""


def storm(name: str, count: int, rng: random.Random, cases: list[Case], vnet: bool,
          send: Callable[[bytes], int]) -> None:
    """Many mutations; `send` says how many bytes were taken."""
    fresh("bandwidth", rng.choice(("2mbit", "20mbit", "1gbit")),
          "feedback", "icmp", "flows", rng.choice(("64", "4096")))
    taken = refused = 0
    for i in range(count):
        data = mutate(rng, cases)
        if vnet:
            data = vnet_header(rng, len(data)) + data
        try:
            send(data)
            taken += 1
        except OSError:  # the kernel is free to refuse a frame
            refused += 1
        if not i % 20:
            time.sleep(0.01)
    seen = sum(statistics()[c]["arrived_bytes"] for c in ("media", "elastic"))
    print(f"# {name}: {taken} frames taken, {refused} refused, {seen} bytes reached the qdisc")
    wrong = drained()
    if not taken or not seen:
        wrong = "nothing reached the qdisc"
    verdict(f"{name}: nothing left behind", wrong)
    log = reports()
    verdict(f"{name}: no report of the kernel", " | ".join(log[:3]))


def main() -> int:
    ap = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    ap.add_argument("--cases", type=Path, default=TOP / "build/kernel/fuzz/classify-cases")
    ap.add_argument("--count", type=int, default=5000, help="mutations per way into the kernel")
    ap.add_argument("--seed", type=int, default=1)
    args = ap.parse_args()
    if not args.cases.exists():
        print(f"lab_frames: {args.cases} is missing: make build", file=sys.stderr)
        return 2
    modules = Path(os.environ["PAQM_KO_DIR"])
    for module in ("paqm_feedback", "sch_paqm"):
        run("insmod", str(modules / f"{module}.ko"))
    run("ip", "netns", "add", "peer")
    run("ip", "link", "add", DEV, "address", "02:00:00:00:00:01", "type", "veth",
        "peer", "name", PEER, "netns", "peer", "address", "02:00:00:00:00:02")
    run("ip", "link", "set", DEV, "up")
    run("ip", "-n", "peer", "link", "set", PEER, "up")
    cases = load_cases(args.cases)
    rng = random.Random(args.seed)

    compare(cases)
    for vnet in (False, True):
        head = " with virtio header" if vnet else ""
        sock = packet_socket(vnet)
        start = 22 if vnet else 12

        def to_device(data: bytes, sock: socket.socket = sock, start: int = start) -> int:
            proto = struct.unpack("!H", data[start : start + 2])[0]
            return sock.sendto(data, (DEV, proto))

        storm(f"packet socket{head}", args.count, rng, cases, vnet, to_device)
        sock.close()
    run("ip", "link", "add", BRIDGE, "type", "bridge")
    run("ip", "link", "set", DEV, "master", BRIDGE)
    run("ip", "link", "set", BRIDGE, "up")
    for vnet in (False, True):
        head = " with virtio header" if vnet else ""
        tap = open_tap(vnet)
        time.sleep(31)  # until the bridge forwards

        def to_tap(data: bytes, tap: int = tap) -> int:
            return os.write(tap, data)

        storm(f"tap and bridge{head}", args.count, rng, cases, vnet, to_tap)
        os.close(tap)
    run("tc", "qdisc", "del", "dev", DEV, "root")
    run("rmmod", "sch_paqm", "paqm_feedback")
    verdict("modules unload")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
