# SPDX-License-Identifier: GPL-2.0
"""Open vSwitch's kernel module without its programs: a switch and its flows, by generic netlink."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Mapping, Sequence
from errno import ENOENT

DEVICE = "dp0"  # of the switch itself, its port 0
NESTED = 0x8000
IN_PORT, ETHERNET, ETHERTYPE = 3, 4, 6  # parts of a key
KEYS = {0x0800: (7, 12), 0x0806: (13, 24)}  # of IPv4 and ARP: the next part, its length


def _attr(number: int, data: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(data), number) + data + bytes(-len(data) % 4)


def _name(number: int, text: str) -> bytes:
    return _attr(number, text.encode() + b"\0")


def _number(number: int, value: int) -> bytes:
    return _attr(number, struct.pack("=I", value))


class _Netlink:
    def __init__(self) -> None:
        self.sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 16)
        self.sock.bind((0, 0))

    def ask(self, family: int, command: int, body: bytes, version: int = 1) -> bytes:
        """The last answer before the acknowledgement."""
        message = struct.pack("=BBH", command, version, 0) + body
        self.sock.send(struct.pack("=IHHII", 16 + len(message), family, 5, 0, 0) + message)
        said = b""
        while struct.unpack_from("=H", answer := self.sock.recv(65536), 4)[0] != 2:
            said = answer
        if error := -struct.unpack_from("=i", answer, 16)[0]:
            raise OSError(error, os.strerror(error))
        return said

    def family(self, name: str) -> int:
        answer, at = self.ask(16, 3, _name(2, name)), 20
        while struct.unpack_from("=H", answer, at + 2)[0] != 1:
            at += struct.unpack_from("=H", answer, at)[0] + 3 & ~3
        return int(struct.unpack_from("=H", answer, at + 4)[0])


def missing() -> bool:
    """Has this kernel none?"""
    try:
        _Netlink().family("ovs_datapath")
    except OSError as err:
        if err.errno == ENOENT:
            return True
        raise
    return False


def switch(ports: Sequence[str], flows: Mapping[int, Sequence[int]]) -> None:
    """A switch with these devices as ports 1, 2, ...; what comes in by a port goes to others."""
    netlink = _Netlink()
    datapath, vport = netlink.family("ovs_datapath"), netlink.family("ovs_vport")
    flow = netlink.family("ovs_flow")
    netlink.ask(datapath, 1, struct.pack("=i", 0) + _name(1, DEVICE) + _number(2, 0), 2)
    head = struct.pack("=i", socket.if_nametoindex(DEVICE))
    for number, device in enumerate(ports, 1):
        body = _number(1, number) + _number(2, 1) + _name(3, device) + _number(5, 0)
        netlink.ask(vport, 1, head + body)
    for source, to in flows.items():
        actions = _attr(2 | NESTED, b"".join(_number(1, port) for port in to))
        for ethertype, (part, size) in KEYS.items():
            rest = _attr(ETHERNET, bytes(12)), _attr(part, bytes(size))
            key = _number(IN_PORT, source) + rest[0] + _attr(
                ETHERTYPE, struct.pack("!H", ethertype)) + rest[1]
            mask = _number(IN_PORT, 2**32 - 1) + rest[0] + _attr(ETHERTYPE, b"\xff\xff") + rest[1]
            netlink.ask(flow, 1, head + _attr(1 | NESTED, key) + _attr(7 | NESTED, mask) + actions)
