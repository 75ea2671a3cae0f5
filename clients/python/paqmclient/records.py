# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Records of paqmd's socket (feedback-daemon/paqm_ipc.h): made and read, no input or output.

Records are in host byte order and only grow at their end: what is behind the known part is passed
over, as are kinds that are not known.
"""

from __future__ import annotations

import errno
import socket
import struct
from dataclasses import dataclass
from enum import IntEnum

MAGIC = 0x50514950
VERSION = 1
RECORD_MAX = 512  # bytes that a record may ever have
RATE_MAX = 10**12  # bit/s: what a message can say

_REGISTER, _REGISTERED, _RATE, _UNREGISTER, _STATUS = range(1, 6)
_HEAD = struct.Struct("=IBBH")
_REGISTER_BODY = struct.Struct("=16s16sHHIQQIIQ")
_REGISTERED_BODY = struct.Struct("=Qi4x")
_RATE_BODY = struct.Struct("=QQQ16sQfIHHBBH")
_UNREGISTER_BODY = struct.Struct("=Q")
_STATUS_BODY = struct.Struct("=QQII")

# Flags of a message (docs/protocol.md, 2.4).
_OVERLOAD, _POLICED, _FINAL, _AUTH = 1, 2, 4, 8
_MAPPED = bytes(10) + b"\xff\xff"


class RecordError(ValueError):
    """Something that is no record of this version; the text says why."""


class Cause(IntEnum):
    """Where the advice for a flow comes from, or why there is none."""

    NONE = 0  #: no advice yet
    ERF = 1  #: rate: from the absolute rate of a message
    ECF = 2  #: rate: from the relative value of a message
    EXPIRED = 3  #: the last router has fallen silent
    LOST = 4  #: paqmd has been unreachable, or silent, for too long
    REFUSED = 5  #: paqmd refused the flow: see `error`
    OTHER = 255  #: something of a later release; the rate counts

    @classmethod
    def _missing_(cls, value: object) -> Cause:
        return cls.OTHER


@dataclass(frozen=True)
class Registration:
    """A flow as paqmd is told of it."""

    cookie: int
    source: str  #: address that it is sent from, IPv4 or IPv6; "": any
    source_port: int
    destination: str
    destination_port: int
    ssrc: int  #: of its RTP packets; 0: any
    floor_bps: int  #: advice is never below; 0: no floor
    ceiling_bps: int  #: advice is never above; not 0
    gop_us: int = 0  #: how long the sender keeps a quantizer
    answer_us: int = 0  #: how long it takes to follow advice

    def fault(self) -> int:
        """What is impossible about it: 0, EINVAL or EAFNOSUPPORT."""
        try:
            source, destination = _address(self.source), _address(self.destination)
        except OSError:
            return errno.EINVAL
        if not _is_any(source) and _is_v4(source) != _is_v4(destination):
            return errno.EAFNOSUPPORT
        ports = (self.source_port, self.destination_port)
        small = (self.ssrc, self.gop_us, self.answer_us)
        limits = 0 <= self.floor_bps <= self.ceiling_bps <= RATE_MAX and self.ceiling_bps > 0
        if (
            _is_any(destination)
            or not limits
            or not all(0 < port < 1 << 16 for port in ports)
            or not all(0 <= value < 1 << 32 for value in small)
        ):
            return errno.EINVAL
        return 0

    def encode(self) -> bytes:
        """The record."""
        return _record(
            _REGISTER,
            _REGISTER_BODY.pack(
                _address(self.source), _address(self.destination),
                self.source_port, self.destination_port, self.ssrc,
                self.floor_bps, self.ceiling_bps, self.gop_us, self.answer_us, self.cookie,
            ),
        )  # fmt: skip


@dataclass(frozen=True)
class Registered:
    """paqmd's answer to a registration."""

    cookie: int
    error: int  #: 0 or an errno


@dataclass(frozen=True)
class Rate:
    """The newest allowance of a flow: the minimum over its routers."""

    cookie: int
    cause: Cause
    rate_bps: int  #: IP level, headers included; 0: no advice in force
    router_id: int  #: of the router that sets the rate
    router: str  #: its address
    value: float  #: relative value of the message (ECF)
    seq: int  #: of the message
    period_ms: int  #: between its messages
    qdelay_ms: float  #: delay of that router's media queue
    overload: bool  #: that queue is beyond its limit
    policed: bool  #: this flow sends more than its rate, and its packets are held back
    final: bool  #: the fair rate itself, not a step towards it
    auth: bool  #: the message had a valid tag
    routers: int  #: routers whose advice is in force
    captured_ns: int  #: CLOCK_MONOTONIC less the age of the message


def unregister(cookie: int) -> bytes:
    """The record that gives a flow up."""
    return _record(_UNREGISTER, _UNREGISTER_BODY.pack(cookie))


def status(cookie: int, wire_bps: int, gop: int, qp: int) -> bytes:
    """The record that says how a sender followed: bit/s sent, number of the group, quantizer.
    Raises ValueError for numbers that have no room in it."""
    for name, value, bits in (("wire_bps", wire_bps, 64), ("gop", gop, 32), ("qp", qp, 32)):
        if value < 0 or value >> bits:
            raise ValueError(f"{name}: {value} is not a number of {bits} bits without sign")
    return _record(_STATUS, _STATUS_BODY.pack(cookie, wire_bps, gop, qp))


def decode(record: bytes) -> Registered | Rate:
    """A record of paqmd. Raises RecordError for anything else."""
    if len(record) < _HEAD.size:
        raise RecordError(f"{len(record)} bytes, a header has {_HEAD.size}")
    magic, version, kind, length = _HEAD.unpack_from(record)
    if magic != MAGIC:
        raise RecordError(f"magic {magic:#x}, expected {MAGIC:#x}")
    if version != VERSION:
        raise RecordError(f"version {version}, expected {VERSION}")
    if length != len(record) or length > RECORD_MAX:
        raise RecordError(f"{len(record)} bytes, the header says {length}")
    if kind == _REGISTERED:
        return Registered(*_take(_REGISTERED_BODY, record))
    if kind != _RATE:
        raise RecordError(f"kind {kind} is not known")
    (cookie, rate, router_id, router, captured, value, seq, period, qdelay, cause, flags,
     routers) = _take(_RATE_BODY, record)  # fmt: skip
    return Rate(
        cookie=cookie, cause=Cause(cause) if cause <= Cause.EXPIRED else Cause.OTHER,
        rate_bps=rate, router_id=router_id, router=_text(router),
        value=value, seq=seq, period_ms=period, qdelay_ms=qdelay / 10,
        overload=bool(flags & _OVERLOAD), policed=bool(flags & _POLICED),
        final=bool(flags & _FINAL), auth=bool(flags & _AUTH), routers=routers,
        captured_ns=captured,
    )  # fmt: skip


def _take(body: struct.Struct, record: bytes) -> tuple:  # type: ignore[type-arg]
    if len(record) < _HEAD.size + body.size:
        raise RecordError(f"{len(record)} bytes, its kind has {_HEAD.size + body.size}")
    return body.unpack_from(record, _HEAD.size)


def _record(kind: int, body: bytes) -> bytes:
    return _HEAD.pack(MAGIC, VERSION, kind, _HEAD.size + len(body)) + body


def _address(text: str) -> bytes:
    if not text:
        return bytes(16)
    if ":" in text:
        return socket.inet_pton(socket.AF_INET6, text)
    return _MAPPED + socket.inet_pton(socket.AF_INET, text)


def _text(address: bytes) -> str:
    if not any(address):
        return ""
    if address[:12] == _MAPPED:
        return socket.inet_ntop(socket.AF_INET, address[12:])
    return socket.inet_ntop(socket.AF_INET6, address)


def _is_v4(address: bytes) -> bool:
    return address[:12] == _MAPPED


def _is_any(address: bytes) -> bool:
    return not any(address) or (_is_v4(address) and not any(address[12:]))
