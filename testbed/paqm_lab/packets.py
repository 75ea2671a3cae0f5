# SPDX-License-Identifier: GPL-2.0
"""The router's packet log: reads it, and pairs each packet's arrival with its departure.

The log is taken in the router on all devices (`tcpdump -i any`, LINUX_SLL2, nanoseconds), so every
forwarded packet is in it twice: as it enters, and as it leaves the bottleneck's qdisc (the kernel
shows outgoing packets to a capture after the qdisc). A packet that entered and never left was
dropped there, or was still queued when the log ended.

Sizes are what a qdisc counts: the IP packet plus 14 bytes of Ethernet header.
"""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from paqm_lab.errors import LabError

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
U8 = npt.NDArray[np.uint8]
Bool = npt.NDArray[np.bool_]

ETHER_HEADER = 14
MAGIC_NSEC = 0xA1B23C4D
LINKTYPE_SLL2 = 276
SLL2_LEN = 20
ETH_P_IP, ETH_P_IPV6 = 0x0800, 0x86DD
PACKET_OUTGOING = 4
IPPROTO_ICMP, IPPROTO_TCP, IPPROTO_UDP = 1, 6, 17
# Bytes of each packet that are looked at: link header, longest IP header, RTP header.
LOOK = SLL2_LEN + 60 + 20


@dataclass(frozen=True)
class PacketLog:
    """The packets of a capture, one array element per packet and direction of passage.

    An IPv6 address is the number that ip_number() has for it.
    """

    t_ns: I64
    ifindex: I64
    outgoing: Bool
    proto: I64
    src: I64
    dst: I64
    sport: I64
    dport: I64
    size: I64  # IP packet + Ethernet header
    icmp_type: I64  # -1 where not ICMP
    rtp: Bool
    rtp_ts: I64
    rtp_seq: I64
    ssrc: I64
    marker: Bool
    key: U64  # equal for the same packet seen twice
    cut: bool  # the file ends inside a record


def ip_text(address: int) -> str:
    """Dotted form of an address."""
    return ".".join(str(address >> s & 255) for s in (24, 16, 8, 0))


def ip_number(text: str) -> int:
    """Number of a dotted address, with or without a prefix length; a hash of one of IPv6."""
    if ":" in text:
        whole = ipaddress.IPv6Address(text.split("/")[0]).packed
        words = [np.array([int.from_bytes(whole[i : i + 4], "big")]) for i in range(0, 16, 4)]
        return int(_hashed(words)[0])
    parts = text.split("/")[0].split(".")
    if len(parts) != 4:
        raise LabError(f"{text!r} is not an IPv4 address")
    return int.from_bytes(bytes(int(p) for p in parts), "big")


def _records(data: bytes, path: Path) -> tuple[str, I64, bool]:
    """Byte order, offset of each record's header, and whether the last record is cut."""
    if len(data) < 24:
        raise LabError(f"{path}: empty packet log; see log/tcpdump-router.log of this variant")
    order = ""
    for candidate in "<>":
        if struct.unpack_from(candidate + "I", data)[0] == MAGIC_NSEC:
            order = candidate
    if not order:
        raise LabError(f"{path}: not a nanosecond pcap file (tcpdump --time-stamp-precision=nano)")
    link = struct.unpack_from(order + "I", data, 20)[0] & 0xFFFF
    if link != LINKTYPE_SLL2:
        raise LabError(
            f"{path}: link type {link}, expected {LINKTYPE_SLL2} (tcpdump -i any -y SLL2)"
        )
    offsets = []
    unpack = struct.Struct(order + "I").unpack_from
    at, end = 24, len(data)
    while at + 16 <= end:
        step = 16 + unpack(data, at + 8)[0]
        if at + step > end:
            break
        offsets.append(at)
        at += step
    return order, np.array(offsets, np.int64), at != end


def _mix(columns: list[I64]) -> U64:
    """64-bit hash of rows (splitmix64 over the columns)."""
    state = np.zeros(len(columns[0]), np.uint64)
    with np.errstate(over="ignore"):
        for column in columns:
            z = state + column.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            state = z ^ (z >> np.uint64(31))
    return state


def _hashed(words: list[I64]) -> I64:
    """Numbers of IPv6 addresses, above those of IPv4."""
    return (_mix(words) >> np.uint64(2)).astype(np.int64) | np.int64(1 << 61)


def read(path: Path) -> PacketLog:
    """Read a capture. Only UDP, TCP and ICMP over IPv4 is kept, and UDP and TCP over IPv6 that
    follow the IP header at once.
    """
    try:
        data = path.read_bytes()
    except OSError as err:
        raise LabError(f"{path}: cannot read the packet log: {err.strerror}") from err
    order, offsets, cut = _records(data, path)
    raw = np.concatenate([np.frombuffer(data, np.uint8), np.zeros(16 + LOOK, np.uint8)])

    def word(at: I64) -> I64:
        part = raw[at[:, None] + np.arange(4)].astype(np.int64)
        weights = np.array([1, 256, 65536, 1 << 24], np.int64)
        return np.asarray(part @ (weights if order == "<" else weights[::-1]))

    t_ns = word(offsets) * 1_000_000_000 + word(offsets + 4)
    caught = word(offsets + 8)
    # One row of bytes per packet; what lies behind a short packet reads as zero.
    span = np.arange(LOOK)
    rows = raw[offsets[:, None] + 16 + span]
    rows[span[None, :] >= caught[:, None]] = 0

    def field(at: I64 | int, length: int) -> I64:
        value = np.zeros(len(rows), np.int64)
        start = np.full(len(rows), at, np.int64) if isinstance(at, int) else at
        index = np.arange(len(rows))
        for i in range(length):
            value = value << 8 | rows[index, start + i]
        return value

    six = field(0, 2) == ETH_P_IPV6
    proto = np.where(six, field(SLL2_LEN + 6, 1), field(SLL2_LEN + 9, 1))
    keep = np.where(six, 6, 4) == rows[:, SLL2_LEN] >> 4
    keep &= six | (field(0, 2) == ETH_P_IP)
    keep &= np.isin(proto, (IPPROTO_TCP, IPPROTO_UDP)) | (proto == IPPROTO_ICMP) & ~six
    rows, t_ns, proto, six = rows[keep], t_ns[keep], proto[keep], six[keep]

    header = np.where(six, 40, (rows[:, SLL2_LEN].astype(np.int64) & 15) * 4)
    l4 = SLL2_LEN + header
    ip_len = np.where(six, field(SLL2_LEN + 4, 2) + 40, field(SLL2_LEN + 2, 2))

    def address(of_v4: int, of_v6: int) -> I64:
        plain = field(SLL2_LEN + of_v4, 4)
        if not six.any():
            return plain
        words = [field(SLL2_LEN + of_v6 + i, 4) for i in range(0, 16, 4)]
        return np.where(six, _hashed(words), plain)

    src, dst = address(12, 8), address(16, 24)
    number = np.where(six, 0, field(SLL2_LEN + 4, 2))
    udp, tcp = proto == IPPROTO_UDP, proto == IPPROTO_TCP
    ports = udp | tcp
    payload = l4 + 8
    version, kind = field(payload, 1) >> 6, field(payload + 1, 1)
    # RFC 5761: these values of the second byte are RTCP on the same port.
    rtp = udp & (version == 2) & ~((kind >= 192) & (kind <= 223)) & (ip_len - header >= 20)
    # What nothing on the path may change. The TCP checksum is left out: on virtual devices it is
    # unfinished until a packet leaves the machine.
    first, second, third = field(l4, 4), field(l4 + 4, 4), field(l4 + 8, 4)
    fourth, fifth = field(l4 + 12, 4), field(l4 + 16, 4)
    second = np.where(udp, second >> 16, second)
    fifth = np.where(tcp, 0, fifth)
    key = _mix(
        [
            *(proto, src, dst, number),
            *(ip_len, first, second, third, fourth, fifth),
        ]
    )
    return PacketLog(
        t_ns=t_ns,
        ifindex=field(4, 4),
        outgoing=rows[:, 10] == PACKET_OUTGOING,
        proto=proto,
        src=src,
        dst=dst,
        sport=np.where(ports, first >> 16, 0),
        dport=np.where(ports, first & 0xFFFF, 0),
        size=ip_len + ETHER_HEADER,
        icmp_type=np.where(proto == IPPROTO_ICMP, first >> 24, -1),
        rtp=rtp,
        rtp_ts=np.where(rtp, fourth, 0),
        rtp_seq=np.where(rtp, third & 0xFFFF, 0),
        ssrc=np.where(rtp, fifth, 0),
        marker=rtp & (kind >= 128),
        key=key,
        cut=cut,
    )


@dataclass(frozen=True)
class Crossings:
    """Packets that entered the router for the bottleneck; times in seconds, NaN = never left."""

    index: I64  # into the packet log, of the arrival
    t_in: F64
    t_out: F64
    size: I64


def bottleneck(log: PacketLog) -> int:
    """Interface index of the bottleneck: the device that most bytes leave by."""
    devices = np.unique(log.ifindex[log.outgoing])
    if len(devices) == 0:
        raise LabError("the packet log shows no packet leaving the router: nothing was forwarded")
    load = [int(log.size[log.outgoing & (log.ifindex == d)].sum()) for d in devices]
    return int(devices[int(np.argmax(load))])


def _pair(keys: U64, times: I64, is_out: Bool) -> tuple[I64, I64]:
    """Indices (arrivals, departures) of pairs; each packet is used once.

    Equal keys are one packet, or, very rarely, several that cannot be told apart (the IP
    identification has come round). Those pair in order when none is missing, else each departure
    takes the last arrival before it: a repeat is sent only long after the first was lost.
    """
    order = np.lexsort((is_out, times, keys))
    k, out = keys[order], is_out[order]
    start = (
        np.flatnonzero(np.concatenate([[True], k[1:] != k[:-1]])) if len(k) else np.zeros(0, int)
    )
    length = np.diff(np.append(start, len(k)))
    plain = (length == 2) & ~out[start] & out[np.minimum(start + 1, max(len(k) - 1, 0))]
    ins = [order[start[plain]]]
    outs = [order[start[plain] + 1]]
    for s, n in zip(start[~plain & (length > 1)], length[~plain & (length > 1)], strict=True):
        group = order[s : s + n]
        arrivals, departures = group[~is_out[group]], group[is_out[group]]
        if len(arrivals) == len(departures) and bool(np.all(times[arrivals] <= times[departures])):
            ins.append(arrivals)
            outs.append(departures)
            continue
        used: set[int] = set()
        for d in departures:
            before = [int(a) for a in arrivals if times[a] <= times[d] and int(a) not in used]
            if before:
                used.add(before[-1])
                ins.append(np.array([before[-1]]))
                outs.append(np.array([d]))
    return np.concatenate(ins).astype(np.int64), np.concatenate(outs).astype(np.int64)


def cross(log: PacketLog, device: int, t0_ns: int) -> Crossings:
    """Pair arrivals and departures at `device`. Times count from t0_ns."""
    leaves = log.outgoing & (log.ifindex == device)
    # Forward packets enter by another device and go where packets leaving by this one go.
    targets = np.unique(log.dst[leaves])
    enters = ~log.outgoing & (log.ifindex != device) & np.isin(log.dst, targets)
    chosen = np.flatnonzero(leaves | enters)
    ins, outs = _pair(log.key[chosen], log.t_ns[chosen], log.outgoing[chosen])
    left = np.full(len(log.t_ns), -1, np.int64)
    left[chosen[ins]] = chosen[outs]
    index = np.flatnonzero(enters)
    index = index[np.argsort(log.t_ns[index], kind="stable")]
    t_in = (log.t_ns[index] - t0_ns) / 1e9
    gone = left[index] >= 0
    t_out = np.full(len(index), np.nan)
    t_out[gone] = (log.t_ns[left[index[gone]]] - t0_ns) / 1e9
    return Crossings(index, t_in, t_out, log.size[index])
