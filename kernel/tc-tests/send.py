#!/usr/bin/env -S python3 -IS
# SPDX-License-Identifier: GPL-2.0
"""Sends crafted frames straight into the qdisc of a device, for the tc cases.

A packet socket goes through the qdisc as other traffic does, needs no address, route or neighbour
on the device, and tells what the qdisc answered: a refused packet comes back as ENOBUFS. Prints
`sent N refused N`; the exit status is 1 if the socket itself failed.
"""

import argparse
import errno
import socket
import struct
import sys
import time

ETH_P_IP, ETH_P_IPV6, ETH_P_8021Q, ETH_P_8021AD = 0x0800, 0x86DD, 0x8100, 0x88A8
SO_PRIORITY, SO_SNDBUFFORCE = 12, 32
PACKET_VNET_HDR = 15
NEEDS_CSUM = 1
GSO_TYPES = {"tcp": 1, "udp": 5}  # VIRTIO_NET_HDR_GSO_TCPV4, _UDP_L4

# kind: IP protocol, destination port, first bytes of the payload
KINDS: dict[str, tuple[int, int, bytes]] = {
    "rtp": (17, 5004, bytes([0x80, 96])),
    "rtcp": (17, 5005, bytes([0x80, 200])),
    "stun": (17, 3478, bytes([0, 1, 0, 0, 0x21, 0x12, 0xA4, 0x42])),
    "indication": (17, 3478, bytes([0, 0x16, 0, 80, 0x21, 0x12, 0xA4, 0x42])),  # TURN, no channel
    "noise": (17, 5010, bytes([0x80, 96])),  # RTP by its first byte, but without a sequence
    "turn": (17, 3478, bytes([0x40, 0])),  # RTP in a TURN channel
    "zrtp": (17, 5004, bytes([0x10, 0])),
    "wireguard": (17, 40000, bytes([4, 0, 0, 0, 1, 2, 3, 4])),
    "vxlan": (17, 4789, bytes([8, 0, 0, 0])),
    "gre": (47, 0, bytes([0, 0, 8, 0])),
    "esp": (50, 0, bytes([1, 2, 3, 4])),
    "dtls": (17, 5006, bytes([22, 254])),
    "quic": (17, 4433, bytes([0x43, 0])),
    "https": (17, 443, bytes([0x80, 96])),  # RTP by its first byte, QUIC by its port
    "dns": (17, 53, bytes([0xFF, 0xFF])),
    "tcp": (6, 80, b""),
    "icmp": (1, 0, b""),
    "ospf": (89, 0, b""),
    "arp": (0, 0, b""),
    "other": (0, 0, b""),  # no IP: an ethertype for experiments
}


def checksum(data: bytes) -> int:
    """Internet checksum."""
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data[: len(data) // 2 * 2]))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def rtp(flow: int, number: int) -> bytes:
    """RTP header of packet `number` of a flow; RFC 3550 section 5.1."""
    return struct.pack("!BBHII", 0x80, 96, number & 0xFFFF, number * 3000 & 0xFFFFFFFF, flow + 1)


def transport(
    kind: str, flow: int, number: int, room: int, offset: int, segment: int
) -> bytes:
    """Transport header and payload in `room` bytes; each segment of an offload packet is alike."""
    proto, port, head = KINDS[kind]
    if kind in ("rtp", "https"):
        head = rtp(flow, number)
    elif kind == "turn":
        head = struct.pack("!HH", 0x4000 + flow, max(room - 12, 0) & 0xFFFF) + rtp(flow, number)
    sport = 20000 + flow
    if proto == 17:
        out = struct.pack("!HHHH", sport, port, max(room, 8) & 0xFFFF, 0) + head
    elif proto == 6:
        out = struct.pack("!HHIIBBHHH", sport, port, 1, 1, offset << 4, 0x10, 65535, 0, 0)
    elif proto == 1:
        out = struct.pack("!BBHHH", 8, 0, 0, flow, 1)
    else:
        out = b""
    piece = max(segment or room, len(head))
    return (out[: len(out) - len(head)] + head.ljust(piece, b"\x55") * (room // piece + 1))[:room]


def frame(args: argparse.Namespace, flow: int, number: int) -> bytes:
    """Packet `number` of a flow: a frame of `args.size` bytes with its Ethernet header."""
    mac = bytes.fromhex("020000000002020000000001")
    size: int = args.size
    tags = b""
    for i in range(args.vlan):
        tags += struct.pack("!HH", ETH_P_8021AD if i < args.vlan - 1 else ETH_P_8021Q, 10 + i)
    room = size - 14 - len(tags)
    if args.encap == "mpls":  # two labels
        room -= 8
    elif args.encap == "pppoe":
        room -= 8
    if args.kind in ("arp", "other"):
        ethertype = 0x0806 if args.kind == "arp" else 0x88B5
        return mac + tags + struct.pack("!H", ethertype) + b"\0" * room
    proto = KINDS[args.kind][0]
    if args.ipv6:
        ext = b""
        if args.extension:  # destination options, padded to 8 bytes
            ext = bytes([proto, 0, 1, 4, 0, 0, 0, 0])
        head = struct.pack(
            "!IHBB", (6 << 28) | ((args.tos | args.ecn) << 20), (room - 40) & 0xFFFF,
            60 if ext else proto, 64,
        )
        head += bytes.fromhex("fd" + "00" * 14 + "01" + "fd" + "00" * 14 + "02") + ext
        ethertype = ETH_P_IPV6
    else:
        words = 5 + args.options
        frag = args.fragment // 8 | (0x2000 if args.fragment >= 0 and args.more else 0)
        if args.fragment < 0:
            frag = 0x4000
        head = struct.pack(
            "!BBHHHBBH4s4s",
            0x40 | words, args.tos | args.ecn, room & 0xFFFF, 1, frag, 64, proto, 0,
            socket.inet_aton(args.source), socket.inet_aton("10.10.10.1"),
        ) + b"\x01" * (4 * args.options)
        head = head[:10] + struct.pack("!H", checksum(head)) + head[12:]
        ethertype = ETH_P_IP
    body = transport(args.kind, flow, number, max(room - len(head), 0), args.doff, args.gso)
    if args.encap == "mpls":
        head = struct.pack("!HII", 0x8847, 16 << 12 | 64, 17 << 12 | 1 << 8 | 64) + head
    elif args.encap == "pppoe":
        ppp = 0x57 if args.ipv6 else 0x21
        head = struct.pack("!HBBHHH", 0x8864, 0x11, 0, 1, room + 2, ppp) + head
    else:
        head = struct.pack("!H", ethertype) + head
    return (mac + tags + head + body)[:size]


def offload_header(args: argparse.Namespace, data: bytes) -> bytes:
    """struct virtio_net_hdr in front of a frame that is to be segmented."""
    start = 14 + 20
    udp = KINDS[args.kind][0] == 17
    length = start + (8 if udp else 20)
    return struct.pack(
        "=BBHHHH", NEEDS_CSUM, GSO_TYPES["udp" if udp else "tcp"], length, args.gso, start,
        6 if udp else 16,
    )


def main(words: list[str] | None = None) -> int:
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("dev")
    ap.add_argument("--kind", choices=sorted(KINDS), default="rtp")
    ap.add_argument("--size", type=int, default=200, help="frame length with Ethernet header")
    ap.add_argument("--count", type=int, default=1, help="packets, over all flows")
    ap.add_argument("--flows", type=int, default=1)
    ap.add_argument("--gap", type=float, default=0.0, help="seconds between packets")
    ap.add_argument("--priority", type=lambda s: int(s, 16), help="skb priority, MAJMIN in hex")
    ap.add_argument("--ecn", type=int, choices=range(4), default=0)
    ap.add_argument("--source", default="10.10.10.10")
    ap.add_argument("--ipv6", action="store_true")
    ap.add_argument("--extension", action="store_true", help="IPv6 destination options")
    ap.add_argument("--options", type=int, default=0, help="words of IPv4 options")
    ap.add_argument("--fragment", type=int, default=-1, help="fragment offset, bytes")
    ap.add_argument("--more", action="store_true", help="more fragments")
    ap.add_argument("--encap", choices=("mpls", "pppoe"), help="what stands before the IP header")
    ap.add_argument("--tos", type=lambda s: int(s, 0), default=0, help="upper six bits: DSCP")
    ap.add_argument("--vlan", type=int, default=0, help="VLAN tags")
    ap.add_argument("--cut", type=int, help="keep only this many bytes of the frame")
    ap.add_argument("--doff", type=int, default=5, help="TCP header length in words")
    ap.add_argument("--gso", type=int, help="send as one offload packet of this segment size")
    args = ap.parse_args(words)

    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    sock.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 30)
    if args.priority is not None:
        sock.setsockopt(socket.SOL_SOCKET, SO_PRIORITY, struct.pack("=I", args.priority))
    if args.gso:
        sock.setsockopt(263, PACKET_VNET_HDR, 1)
    sock.setblocking(False)
    sent = refused = 0
    first = time.time_ns() // 1_000_000  # flows go on in sequence where a call before left off
    for i in range(args.count):
        if i and args.gap:
            time.sleep(args.gap)
        data = frame(args, i % args.flows, first + i // args.flows)
        if args.cut is not None:
            data = data[: args.cut]
        proto = struct.unpack("!H", data[12:14])[0]
        if args.gso:
            data = offload_header(args, data) + data
        try:
            sock.sendto(data, (args.dev, proto))
            sent += 1
        except OSError as err:
            if err.errno not in (errno.ENOBUFS, errno.EAGAIN, errno.ENETDOWN):
                print(f"send.py: {args.dev}: {err.strerror}", file=sys.stderr)
                return 1
            refused += 1
    print(f"sent {sent} refused {refused}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
