# SPDX-License-Identifier: GPL-2.0
"""Packet log: field decoding, pairing with loss, repeats and equal keys, faulty files.

The captures are written here byte by byte, so that every expected number is known beforehand.
"""

from __future__ import annotations

import ipaddress
import struct
from pathlib import Path

import numpy as np
import pytest

from paqm_lab import packets
from paqm_lab.errors import LabError

SENDER, TCP_HOST, SINK = "10.1.1.2", "10.2.0.2", "10.4.0.2"
LEFT, RIGHT = 3, 7  # interface indices: towards the sender, bottleneck
T0 = 1_700_000_000_000_000_000


def ipv4(src: str, dst: str, proto: int, ident: int, payload: bytes, ttl: int = 64) -> bytes:
    """An IPv4 packet; the checksum is not looked at."""
    head = struct.pack(
        ">BBHHHBBH4s4s",
        *(0x45, 0, 20 + len(payload), ident, 0, ttl, proto, 0),
        packets.ip_number(src).to_bytes(4, "big"),
        packets.ip_number(dst).to_bytes(4, "big"),
    )
    return head + payload


def rtp(seq: int, ts: int, size: int = 1000, ssrc: int = 77, marker: bool = False) -> bytes:
    """A UDP datagram with an RTP packet in it."""
    body = struct.pack(">BBHII", 0x80, 96 | marker << 7, seq, ts, ssrc) + bytes(size - 12)
    return struct.pack(">HHHH", 40000, 5004, 8 + len(body), 0) + body


def tcp(seq: int, size: int, sport: int = 50000, dport: int = 5201) -> bytes:
    """A TCP segment."""
    return struct.pack(">HHIIBBHHH", sport, dport, seq, 1, 0x50, 0x10, 64, 0, 0) + bytes(size)


class Capture:
    """Writes a LINUX_SLL2 file as tcpdump does."""

    def __init__(self, order: str = "<") -> None:
        self.order = order
        self.records: list[tuple[int, bytes]] = []

    def add(self, t: float, device: int, kind: int, packet: bytes) -> None:
        ether_type = 0x86DD if packet[0] >> 4 == 6 else 0x0800
        sll2 = struct.pack(">HHIHBB8s", ether_type, 0, device, 1, kind, 6, bytes(8))
        self.records.append((T0 + round(t * 1e9), sll2 + packet))

    def arrive(self, t: float, packet: bytes, device: int = LEFT) -> None:
        self.add(t, device, 0, packet)

    def leave(self, t: float, packet: bytes, device: int = RIGHT) -> None:
        self.add(t, device, 4, packet)

    def write(self, path: Path, snap: int = 128) -> Path:
        data = [struct.pack(self.order + "IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, snap, 276)]
        for t, frame in sorted(self.records, key=lambda r: r[0]):
            part = frame[:snap]
            stamp = divmod(t, 10**9)
            data += [struct.pack(self.order + "IIII", *stamp, len(part), len(frame)), part]
        path.write_bytes(b"".join(data))
        return path


@pytest.mark.parametrize("order", ["<", ">"])
def test_fields(tmp_path: Path, order: str) -> None:
    capture = Capture(order)
    capture.arrive(0.25, ipv4(SENDER, SINK, 17, 9, rtp(65535, 90000, 500, marker=True)))
    capture.arrive(0.5, ipv4(TCP_HOST, SINK, 6, 10, tcp(1000, 1448)))
    capture.leave(0.75, ipv4("10.1.1.1", SENDER, 1, 11, bytes([253, 0, 0, 0]) + bytes(80)), LEFT)
    log = packets.read(capture.write(tmp_path / "r.pcap"))
    assert log.t_ns.tolist() == [T0 + 250_000_000, T0 + 500_000_000, T0 + 750_000_000]
    assert log.size.tolist() == [20 + 8 + 500 + 14, 20 + 20 + 1448 + 14, 20 + 84 + 14]
    assert log.rtp.tolist() == [True, False, False]
    assert (log.rtp_seq[0], log.rtp_ts[0], log.ssrc[0]) == (65535, 90000, 77)
    assert log.marker.tolist() == [True, False, False]
    assert log.icmp_type.tolist() == [-1, -1, 253]
    assert log.ifindex.tolist() == [LEFT, LEFT, LEFT]
    assert log.outgoing.tolist() == [False, False, True]
    assert (log.sport[1], log.dport[1]) == (50000, 5201)
    assert not log.cut


def test_ipv6(tmp_path: Path) -> None:
    """Between packets of IPv4; ICMPv6 is left out."""
    ends = [ipaddress.IPv6Address(text).packed for text in ("fd00:1::1", "fd00:2::2")]
    body = rtp(7, 90000, 500)
    capture = Capture()
    capture.arrive(0.25, ipv4(SENDER, SINK, 17, 9, body))
    for proto in (17, 58):
        head = struct.pack(">IHBB", 6 << 28, len(body), proto, 64)
        capture.arrive(0.5, head + ends[0] + ends[1] + body)
    log = packets.read(capture.write(tmp_path / "r.pcap"))
    assert log.t_ns.tolist() == [T0 + 250_000_000, T0 + 500_000_000]
    for numbers, text in ((log.src, "fd00:1::1/64"), (log.dst, "fd00:2::2")):
        assert numbers[1] == packets.ip_number(text) > 1 << 32 > numbers[0]
    assert log.size[1] == log.size[0] + 20 and log.rtp_seq.tolist() == [7, 7]
    assert log.dport[0] == log.dport[1] and log.key[0] != log.key[1]


def test_rtcp_is_not_rtp(tmp_path: Path) -> None:
    body = struct.pack(">BBHII", 0x80, 200, 6, 77, 1) + bytes(40)
    capture = Capture()
    capture.arrive(
        0, ipv4(SENDER, SINK, 17, 1, struct.pack(">HHHH", 1, 2, 8 + len(body), 0) + body)
    )
    assert not packets.read(capture.write(tmp_path / "r.pcap")).rtp.any()


def test_pairing_with_loss(tmp_path: Path) -> None:
    """Every third packet is lost; the time to live falls by one on the way, as in a router."""
    capture = Capture()
    for i in range(30):
        body = rtp(i, 1000 * i)
        capture.arrive(i * 0.01, ipv4(SENDER, SINK, 17, i, body, 64))
        if i % 3 != 2:
            capture.leave(i * 0.01 + 0.001 * i, ipv4(SENDER, SINK, 17, i, body, 63))
    log = packets.read(capture.write(tmp_path / "r.pcap"))
    seen = packets.cross(log, packets.bottleneck(log), T0)
    assert len(seen.t_in) == 30
    lost = np.isnan(seen.t_out)
    assert lost.tolist() == [i % 3 == 2 for i in range(30)]
    assert np.allclose(
        (seen.t_out - seen.t_in)[~lost], [0.001 * i for i in range(30) if i % 3 != 2]
    )


def test_retransmission_is_a_packet_of_its_own(tmp_path: Path) -> None:
    """First copy lost, second (another IP identification) delivered after 2 ms, not after 302."""
    capture = Capture()
    capture.arrive(0.0, ipv4(TCP_HOST, SINK, 6, 1, tcp(500, 1000)))
    again = ipv4(TCP_HOST, SINK, 6, 2, tcp(500, 1000))
    capture.arrive(0.3, again)
    capture.leave(0.302, again)
    log = packets.read(capture.write(tmp_path / "r.pcap"))
    seen = packets.cross(log, RIGHT, T0)
    assert np.isnan(seen.t_out[0])
    assert seen.t_out[1] == pytest.approx(0.302)


def test_equal_keys(tmp_path: Path) -> None:
    """Packets that cannot be told apart: in order if none is missing, else the last one before."""
    same = ipv4(TCP_HOST, SINK, 6, 0, tcp(500, 1000))
    whole, lossy = Capture(), Capture()
    for capture in (whole, lossy):
        capture.arrive(0.0, same)
        capture.arrive(1.0, same)
        capture.leave(1.01, same)
    whole.leave(0.02, same)
    log = packets.read(whole.write(tmp_path / "w.pcap"))
    assert packets.cross(log, RIGHT, T0).t_out.tolist() == pytest.approx([0.02, 1.01])
    log = packets.read(lossy.write(tmp_path / "l.pcap"))
    seen = packets.cross(log, RIGHT, T0)
    assert np.isnan(seen.t_out[0])
    assert seen.t_out[1] == pytest.approx(1.01)


def test_other_traffic_is_no_crossing(tmp_path: Path) -> None:
    """Acknowledgements and feedback, which go the other way, are left out."""
    data = ipv4(TCP_HOST, SINK, 6, 1, tcp(1, 1400))
    ack = ipv4(SINK, TCP_HOST, 6, 2, tcp(1, 0))
    capture = Capture()
    capture.arrive(0.0, data)
    capture.leave(0.01, data)
    capture.arrive(0.02, ack, RIGHT)
    capture.leave(0.03, ack, LEFT)
    log = packets.read(capture.write(tmp_path / "r.pcap"))
    assert packets.bottleneck(log) == RIGHT
    assert packets.cross(log, RIGHT, T0).t_in.tolist() == [0.0]


def test_cut_file(tmp_path: Path) -> None:
    capture = Capture()
    for i in range(3):
        capture.arrive(i, ipv4(SENDER, SINK, 17, i, rtp(i, i)))
    path = capture.write(tmp_path / "r.pcap")
    path.write_bytes(path.read_bytes()[:-5])
    log = packets.read(path)
    assert log.cut
    assert len(log.t_ns) == 2


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty packet log"),
        (bytes(100), "not a nanosecond pcap"),
        (struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 128, 1), "link type 1"),
    ],
)
def test_faulty_files(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "r.pcap"
    path.write_bytes(content)
    with pytest.raises(LabError, match=words):
        packets.read(path)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="cannot read the packet log"):
        packets.read(tmp_path / "none.pcap")
