#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The BPF classifier of bpf/media.bpf.c, loaded by stock tc; as root inside a lab guest.

Crafted frames go through a qdisc without and with the filter. Where a rule speaks, the class is
the rule's; where none does, it is what the recogniser said without the filter.
Usage: paqm-lab exec userspace/tc-paqm/tests/lab_bpf.py
"""

import json
import os
import shutil
import socket
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "kernel" / "lab-tests"))
import trial  # noqa: E402
from trial import check  # noqa: E402

DEV = "d0"
TC, UDP, HOPOPTS = "tc", 17, 0
PROGRAM = Path(os.environ.get("TC_LIB_DIR", "")) / "bpf" / "media.bpf.o"
MEDIA, ELASTIC, NONE = "media", "elastic", "none"
ports = iter(range(20000, 60000, 7))


def sh(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, check=False)


def rtp(sequence: int) -> bytes:
    return struct.pack("!BBHII", 0x80, 96, sequence, 0, 77) + bytes(88)


def quic(_: int) -> bytes:
    return b"\x43" + bytes(99)


def udp(source: int, target: int, payload: bytes) -> bytes:
    return struct.pack("!HHHH", source, target, 8 + len(payload), 0) + payload


def ether(kind: int, payload: bytes) -> bytes:
    return b"\x02\0\0\0\0\2\x02\0\0\0\0\1" + struct.pack("!H", kind) + payload


def ipv4(
    payload: bytes, dscp: int = 0, proto: int = UDP, fragment: int = 0, option: bytes = b""
) -> bytes:
    head = struct.pack(
        "!BBHHHBBH",
        0x45 + len(option) // 4,
        dscp << 2,
        20 + len(option) + len(payload),
        1,
        fragment,
        64,
        proto,
        0,
    )
    return ether(0x0800, head + bytes([10, 9, 0, 1, 10, 9, 0, 2]) + option + payload)


def ipv6(payload: bytes, dscp: int = 0, proto: int = UDP) -> bytes:
    head = struct.pack("!IHBB", 6 << 28 | dscp << 22, len(payload), proto, 64)
    return ether(0x86DD, head + bytes(15) + b"\1" + bytes(15) + b"\2" + payload)


@dataclass
class Case:
    name: str
    frame: Callable[[int], bytes]  # of the number in the flow
    wanted: str


def cases() -> list[Case]:
    """Every rule by a packet that the recogniser would take for the other class."""
    new = ports.__next__
    tcp = struct.pack("!HHIIHHHH", 5000, 80, 1, 1, 0x5010, 100, 0, 0) + bytes(80)
    a, b, c, d, e, f, g, h, i, k, m, n = (new() for _ in range(12))
    return [
        Case("TCP marked EF", lambda _: ipv4(tcp, 46, 6), MEDIA),
        Case("TCP marked AF41", lambda _: ipv4(tcp, 34, 6), MEDIA),
        Case("TCP marked AF42", lambda _: ipv4(tcp, 36, 6), MEDIA),
        Case("TCP marked EF over IPv6", lambda _: ipv6(tcp, 46, 6), MEDIA),
        Case("RTP marked LE", lambda s: ipv4(udp(a, 5004, rtp(s)), 1), ELASTIC),
        Case("RTP marked LE over IPv6", lambda s: ipv6(udp(b, 5004, rtp(s)), 1), ELASTIC),
        Case("TCP marked AF11: no rule", lambda _: ipv4(tcp, 10, 6), NONE),
        Case("RTP unmarked: no rule", lambda s: ipv4(udp(c, 5004, rtp(s))), NONE),
        Case("QUIC to a media port", lambda s: ipv4(udp(d, 4000, quic(s))), MEDIA),
        Case("QUIC from a media port", lambda s: ipv4(udp(4000, e, quic(s))), MEDIA),
        Case("QUIC to a media port over IPv6", lambda s: ipv6(udp(f, 4000, quic(s))), MEDIA),
        Case("RTP to an elastic port", lambda s: ipv4(udp(g, 7000, rtp(s))), ELASTIC),
        Case("destination before source: media", lambda s: ipv4(udp(7000, 4000, quic(s))), MEDIA),
        Case(
            "destination before source: elastic", lambda s: ipv4(udp(4000, 7000, rtp(s))), ELASTIC
        ),
        Case("DSCP before port", lambda s: ipv4(udp(h, 4000, rtp(s)), 1), ELASTIC),
        Case(
            "IP options before UDP",
            lambda s: ipv4(udp(i, 4000, quic(s)), option=b"\1\1\1\0"),
            MEDIA,
        ),
        Case(
            "TCP to that port number: no rule",
            lambda _: ipv4(struct.pack("!HH", k, 4000) + tcp[4:], 0, 6),
            NONE,
        ),
        Case(
            "a later fragment has no port",
            lambda s: ipv4(udp(m, 4000, quic(s)), fragment=0x0010),
            NONE,
        ),
        Case(
            "UDP behind a hop-by-hop header: no rule",
            lambda s: ipv6(bytes([UDP, 0, 1, 4, 0, 0, 0, 0]) + udp(n, 4000, quic(s)), 0, HOPOPTS),
            NONE,
        ),
        Case("a port whose class does not exist", lambda s: ipv4(udp(5, 9000, rtp(s))), NONE),
        Case("cut within the UDP header", lambda _: ipv4(b"\x0f\xa0\x0f"), NONE),
        Case("cut within the IP header", lambda _: ether(0x0800, b"\x45\xb8\0\x14\0\0"), NONE),
        Case("header length of nothing", lambda _: ether(0x0800, bytes([0x40]) + bytes(40)), NONE),
        Case(
            "header length beyond the packet",
            lambda _: ether(0x0800, bytes([0x4F]) + bytes(19)),
            NONE,
        ),
        Case("ARP", lambda _: ether(0x0806, bytes(46)), NONE),
    ]


def sent() -> dict[str, int]:
    """Packets of both classes."""
    qdisc = json.loads(sh(TC, "-s", "-j", "qdisc", "show", "dev", DEV).stdout)[0]
    return {name: qdisc[name]["sent_packets"] for name in (MEDIA, ELASTIC)}


def class_of(case: Case, out: socket.socket) -> str:
    """Where 8 packets of a flow go; the recogniser may change its mind about the first ones."""
    before = sent()
    for number in range(8):
        frame = case.frame(number)
        out.sendto(frame, (DEV, int.from_bytes(frame[12:14], "big")))
    after = sent()
    moved = {name: after[name] - before[name] for name in after}
    if sum(moved.values()) != 8:
        return f"lost: {moved}"
    full = [name for name, count in moved.items() if count == 8]
    return full[0] if full else f"mixed: {moved}"


def rule(table: str, key: bytes, value: int) -> bool:
    words = ["bpftool", "map", "update", "name", table, "key", *(f"{b:#x}" for b in key)]
    return sh(*words, "value", str(value), "0", "0", "0").returncode == 0


def fresh(name: str) -> None:
    sh(TC, "qdisc", "del", "dev", DEV, "root")
    result = sh(TC, "qdisc", "add", "dev", DEV, "root", "handle", "1:", "paqm", "seed", "1")
    check(name, result.returncode == 0, result.stderr)


def load() -> None:
    words = ["filter", "add", "dev", DEV, "parent", "1:", "protocol", "all", "prio", "1"]
    result = sh(TC, *words, "bpf", "obj", str(PROGRAM))
    check("tc loads the program", result.returncode == 0, result.stderr)


def compare(tried: list[Case], out: socket.socket, alone: dict[str, str]) -> None:
    for case in tried:
        got = class_of(case, out)
        wanted = alone[case.name] if case.wanted == NONE else case.wanted
        check(case.name, got == wanted, f"{got}, not {wanted}")


def main() -> int:
    if not PROGRAM.exists():
        print(f"skip BPF classifier: {PROGRAM.name} was not built (needs clang and libbpf-dev)")
        tools = shutil.which("clang") and Path("/usr/include/bpf/bpf_helpers.h").exists()
        check("it is missing for want of them", not tools, "both are installed")
        return trial.summary()
    trial.load_modules()
    Path("/proc/sys/net/ipv6/conf/default/disable_ipv6").write_text("1")
    sh("ip", "link", "add", DEV, "type", "dummy")
    sh("ip", "link", "set", DEV, "up")
    out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    tried = cases()
    fresh("a qdisc without the filter")
    alone = {case.name: class_of(case, out) for case in tried}
    fresh("a qdisc with the filter")
    load()
    have = shutil.which("bpftool") is not None
    if not have:
        print("skip rules in maps: bpftool is not installed")
        tried = [case for case in tried if "port" not in case.name and "before" not in case.name]
    else:
        added = [
            rule("paqm_ports", (4000).to_bytes(2, "big"), 1),
            rule("paqm_ports", (7000).to_bytes(2, "big"), 2),
            rule("paqm_ports", (9000).to_bytes(2, "big"), 9),
        ]
        check("bpftool adds rules while it runs", all(added))
    told = {name for name, got in alone.items() if got not in (MEDIA, ELASTIC)}
    check(
        "the recogniser alone is of one mind",
        told <= {case.name for case in tried if case.wanted != NONE},
        str({name: alone[name] for name in told}),
    )
    differ = [c.name for c in tried if c.wanted != NONE and alone[c.name] == c.wanted]
    check("every rule is tried on what the recogniser sees otherwise", not differ, str(differ))
    compare(tried, out, alone)
    if have:
        check("a rule for a DSCP", rule("paqm_dscp", (46).to_bytes(4, sys.byteorder), 2))
        again = Case("EF is elastic now", lambda s: ipv4(udp(6, 4000, rtp(s)), 46), ELASTIC)
        compare([again], out, alone)
        refused = not rule("paqm_dscp", (64).to_bytes(4, sys.byteorder), 1)
        check("a DSCP of 64 is refused", refused)
        full = sum(rule("paqm_ports", port.to_bytes(2, "big"), 1) for port in (1, 2, 3))
        check("more rules", full == 3)
    sh(TC, "filter", "del", "dev", DEV, "parent", "1:")
    compare(
        [Case(c.name, c.frame, NONE) for c in tried if c.wanted != NONE and "TCP" in c.name],
        out,
        alone,
    )
    sh(TC, "qdisc", "del", "dev", DEV, "root")
    check("nothing holds the module", sh("rmmod", "sch_paqm").returncode == 0)
    return trial.summary()


if __name__ == "__main__":
    sys.exit(main())
