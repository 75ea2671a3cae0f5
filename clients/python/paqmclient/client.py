# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The client: a connection to paqmd that is made again, flows, and the newest advice for each.

The rules are those of libpaqmclient (docs/api-libpaqmclient.md): the same causes, grace and pauses.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import math
import os
import select
import socket
import time
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

from paqmclient import records
from paqmclient.records import Cause, Rate, Registered, Registration

PATH = "/run/paqmd/client.sock"  # overridden by $PAQM_SOCKET
PATH_MAX = 107  # bytes of a socket's path
GRACE = 3.0  # s that an allowance outlives the connection that gave it
# Advice holds for three periods of its router, within these limits, s. Then paqmd says that it has
# expired; if it does not for LIFE_MORE, it hangs.
LIFE_MIN, LIFE_MAX, LIFE_MORE = 3.0, 30.0, 1.0
RETRY = 0.5  # s between attempts to connect
AGAIN_MIN, AGAIN_MAX = 0.5, 8.0  # s until a refused flow is registered again
NAP = 1.0  # s of one wait for a timer: waits do not count the time that the machine sleeps
WAIT_MAX = 1000.0  # s of one wait; poll() takes no number that is too large
# Errors that lie in the registration itself, and remain.
_HOPELESS = (22, 97)  # EINVAL, EAFNOSUPPORT


@dataclass(frozen=True)
class Advice:
    """The newest advice for a flow."""

    flow: int  #: of Client.add()
    cause: Cause = Cause.NONE
    rate_bps: int = 0  #: upper bound, bit/s at the IP level; 0: no advice
    error: int = 0  #: errno, with Cause.REFUSED
    router: str = ""  #: address of the router that sets the rate
    rate: Rate | None = None  #: all that paqmd said, flags of the message among it


@dataclass
class _Flow:
    registration: Registration
    advice: Advice
    news: bool = False
    pause: float = 0.0  # before the last attempt; 0: not refused yet
    again: float | None = None  # when to register again
    ends: float = math.inf  # when the advice ends unless it is renewed; inf: there is none
    lost: bool = False  # the connection that gave it has ended
    known: bool = False  # the connection was told of it


def _now() -> float:
    """Time that goes on while the machine sleeps: no advice outlives that."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Client:
    """A client of paqmd, which need not be there yet.

    Calls must not overlap, but close() may come while updates() waits. `path`: paqmd's socket;
    without it $PAQM_SOCKET, else PATH. Raises OSError: ENAMETOOLONG.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = os.fspath(path or os.environ.get("PAQM_SOCKET") or PATH)
        if len(os.fsencode(self.path)) > PATH_MAX:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), self.path)
        #: why paqmd is not connected, or that it does not answer, as text; None if it does
        self.trouble: str | None = None
        self._closed = False
        self._sock: socket.socket | None = None
        self._retry: float | None = None
        self._heard = False  # the connection has told something: systemd alone accepts, too
        self._doubt = math.inf  # when to take it that nobody answers
        self._flows: dict[int, _Flow] = {}
        self._untold: dict[int, None] = {}  # flows to be registered, in this order
        self._gone: deque[bytes] = deque()  # records of flows to be given up
        self._timer = math.inf  # when the first flow has something due
        self._news: deque[int] = deque()
        self._last = 0
        self._woken: asyncio.Event | None = None
        self._watched: tuple[asyncio.AbstractEventLoop | None, socket.socket | None] = (None, None)
        self._connect()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Disconnect, for good; paqmd forgets the flows, next() has no news, updates() ends."""
        self._unwatch()
        if self._sock:
            self._sock.close()
        self._closed, self._sock, self._retry = True, None, None
        self._doubt = math.inf
        self.trouble = "the client is closed"
        self._flows.clear()

    def add(
        self, source: str, source_port: int, destination: str, destination_port: int,
        ssrc: int = 0, floor_bps: int = 0, ceiling_bps: int = records.RATE_MAX,
    ) -> int:  # fmt: skip
        """Add a flow; return its number.

        Addresses are IPv4 or IPv6, source "": any; ssrc 0: any; limits in bit/s at the IP level.
        Raises OSError: EINVAL (no address, a port or limit out of range), EAFNOSUPPORT (from IPv4
        to IPv6 or the other way), EBADF (after close()). The answer comes as advice. A refusal
        because of others (another client has these packets, no room) is told once and tried again,
        after half a second and then at increasing intervals of up to 8 s.
        """
        if self._closed:
            raise OSError(errno.EBADF, self.trouble)
        self._last += 1
        flow = Registration(
            self._last, source, source_port, destination, destination_port, ssrc, floor_bps,
            ceiling_bps,
        )  # fmt: skip
        self._judge(flow)
        self._flows[self._last] = _Flow(flow, Advice(self._last))
        self._change(self._last)
        return self._last

    def limits(self, flow: int, floor_bps: int, ceiling_bps: int) -> None:
        """Change the limits of a flow. Raises OSError (EINVAL), KeyError."""
        self._renew(flow, floor_bps=floor_bps, ceiling_bps=ceiling_bps)

    def timing(self, flow: int, gop_us: int, answer_us: int) -> None:
        """Report how the sender works, for paqmctl, in microseconds. Raises as limits()."""
        self._renew(flow, gop_us=gop_us, answer_us=answer_us)

    def remove(self, flow: int) -> None:
        """The flow is no longer sent. Raises KeyError."""
        known = self._flows.pop(flow).known
        if flow in self._untold:
            del self._untold[flow]
        # Of what it was never told paqmd need not hear: records would pile up while it hangs.
        if self._sock and known:
            self._gone.append(records.unregister(flow))
        self._change()

    def status(self, flow: int, wire_bps: int, gop: int, qp: int) -> bool:
        """Report how the sender followed, for paqmctl: bit/s sent, number of the group of
        pictures, mean quantizer. Return: whether it was taken. Raises KeyError, ValueError."""
        record = records.status(self._flows[flow].registration.cookie, wire_bps, gop, qp)
        return bool(self._sock and self._put(record))

    def next(self, timeout: float | None = None) -> Advice | None:
        """The next update; None after close(), or if none comes within `timeout` seconds (None:
        wait)."""
        end = math.inf if timeout is None else time.monotonic() + timeout
        while not (advice := self.poll()):
            left = end - time.monotonic()
            if self._closed or left <= 0:
                return None
            wait = select.poll()  # unlike select() it takes descriptors above 1023
            if self._sock:
                room = select.POLLOUT if self._untold or self._gone else 0
                wait.register(self._sock, select.POLLIN | room)
            due = self._due()
            wait.poll(math.ceil(1000 * min(left, WAIT_MAX if due is None else due, WAIT_MAX)))
        return advice

    async def updates(self) -> AsyncIterator[Advice]:
        """Updates in an asyncio loop, until the client is closed."""
        while not self._closed:
            if advice := self.poll():
                yield advice
            else:
                await self._ready()

    async def _ready(self) -> None:
        """Until the socket, a timer or another call asks for poll()."""
        loop = asyncio.get_running_loop()
        self._woken = asyncio.Event()
        self._watched = (loop, self._sock)
        if self._sock:
            loop.add_reader(self._sock, self._woken.set)
            if self._untold or self._gone:
                loop.add_writer(self._sock, self._woken.set)
        try:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._woken.wait(), self._due())
        finally:
            self._unwatch()

    def _unwatch(self) -> None:
        """Before a socket is closed, and when the wait for it has ended."""
        loop, sock = self._watched
        self._watched = (None, None)
        if loop and sock:
            loop.remove_reader(sock)
            loop.remove_writer(sock)
        if self._woken:
            self._woken.set()

    def poll(self) -> Advice | None:
        """The next update if there is one. Of several rates for a flow only the newest is told."""
        now = _now()
        if self._sock is None and self._retry is not None and now >= self._retry:
            self._connect()
        self._receive()
        if now >= self._doubt:
            self._doubt, self.trouble = math.inf, "it does not answer"
        if now >= self._timer:
            self._look_at_all(now)
        self._tell()
        while self._news:
            found = self._flows.get(self._news.popleft())
            if found and found.news:
                found.news = False
                return found.advice
        return None

    def fileno(self) -> int:
        """The socket, for a poll() of one's own beside timeouts of 0.5 s; -1: not connected."""
        return self._sock.fileno() if self._sock else -1

    # The connection

    def _connect(self) -> None:
        sock = None
        try:
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            sock.setblocking(False)
            sock.connect(self.path)
        except OSError as err:
            if sock:
                sock.close()
            self._lose(os.strerror(err.errno or 0))
            return
        self._sock, self._retry, self.trouble = sock, None, None
        self._untold = dict.fromkeys(self._flows)
        self._tell()

    def _lose(self, why: str) -> None:
        now = _now()
        self._unwatch()
        if self._sock:
            self._sock.close()
        self._sock, self._retry, self.trouble = None, now + RETRY, why
        self._heard, self._doubt = False, math.inf
        self._gone.clear()
        self._untold.clear()
        for flow in self._flows.values():
            flow.pause, flow.again, flow.known = 0.0, None, False
            # A connection that has told nothing prolongs nothing.
            if flow.advice.rate_bps and not flow.lost:
                flow.lost, flow.ends = True, now + GRACE
                self._timer = min(self._timer, flow.ends)

    def _put(self, record: bytes) -> bool:
        assert self._sock
        try:
            return self._sock.send(record) == len(record)
        except BlockingIOError:
            return False
        except OSError as err:
            self._lose(os.strerror(err.errno or 0))
            return False

    def _change(self, flow: int | None = None) -> None:
        """An application's call: paqmd is told at once, or when the connection has room."""
        if flow is not None and self._sock:
            self._untold[flow] = None
        self._tell()
        if self._woken and (self._untold or self._gone):
            self._woken.set()

    def _tell(self) -> None:
        """What paqmd does not know yet; flows that are gone first: others may have their ports."""
        while self._gone and self._sock:
            if not self._put(self._gone[0]):
                return
            self._gone.popleft()
        while self._untold and self._sock:
            number = next(iter(self._untold))
            flow = self._flows[number]
            if not self._put(flow.registration.encode()):
                return
            flow.known = True
            del self._untold[number]
            if not self._heard and not self.trouble:  # paqmd answers each registration at once
                self._doubt = min(self._doubt, _now() + GRACE)

    def _receive(self) -> None:
        for _ in range(64):
            if not self._sock:
                return
            try:
                record = self._sock.recv(records.RECORD_MAX)
            except BlockingIOError:
                return
            except OSError as err:
                self._lose(os.strerror(err.errno or 0))
                return
            if not record:
                self._lose("it closed the connection")
                return
            with contextlib.suppress(records.RecordError):  # of a later release, perhaps
                answer = records.decode(record)
                self._heard, self._doubt, self.trouble = True, math.inf, None
                self._take(answer)

    # Flows

    def _judge(self, registration: Registration) -> None:
        if fault := registration.fault():
            raise OSError(fault, f"{os.strerror(fault)}: {registration}")

    def _renew(self, number: int, **changes: int) -> None:
        flow = self._flows[number]
        changed = replace(flow.registration, **changes)  # type: ignore[arg-type]
        self._judge(changed)
        flow.registration, flow.again = changed, None
        self._change(number)

    def _take(self, record: Registered | Rate) -> None:
        flow = self._flows.get(record.cookie)
        if not flow:
            return
        if isinstance(record, Registered):
            self._on_registered(flow, record.error)
            return
        # A paqmd that has just started knows nothing yet: what held before is still the best.
        if record.cause == Cause.NONE and flow.advice.rate_bps and flow.lost:
            return
        flow.lost, flow.ends = False, math.inf
        if record.rate_bps:
            life = min(max(3 * record.period_ms / 1000, LIFE_MIN), LIFE_MAX)
            flow.ends = _now() + life + LIFE_MORE
            self._timer = min(self._timer, flow.ends)
        self._tell_of(flow, Advice(
            flow.advice.flow, record.cause, record.rate_bps,
            router=record.router if record.routers else "", rate=record,
        ))  # fmt: skip

    def _on_registered(self, flow: _Flow, error: int) -> None:
        flow.again = None
        if not error:
            flow.pause = 0.0
            return
        if error not in _HOPELESS:
            # Others may make room, or give up these packets.
            flow.pause = min(2 * flow.pause, AGAIN_MAX) or AGAIN_MIN
            flow.again = _now() + flow.pause
            self._timer = min(self._timer, flow.again)
        if (flow.advice.cause, flow.advice.error) == (Cause.REFUSED, error):
            return
        flow.lost, flow.ends = False, math.inf
        self._tell_of(flow, Advice(flow.advice.flow, Cause.REFUSED, error=error))

    def _look_at_all(self, now: float) -> None:
        """Refused flows are asked for again; advice that was not renewed ends."""
        self._timer = math.inf
        for number, flow in self._flows.items():
            if flow.again is not None and now >= flow.again:
                flow.again = None
                self._untold[number] = None
            if now >= flow.ends:
                # Another paqmd that knows of no advice is no loss.
                cause = Cause.NONE if flow.lost and self._heard else Cause.LOST
                flow.lost, flow.ends = False, math.inf
                self._tell_of(flow, Advice(number, cause))
            if flow.again is not None:
                self._timer = min(self._timer, flow.again)
            self._timer = min(self._timer, flow.ends)

    def _tell_of(self, flow: _Flow, advice: Advice) -> None:
        flow.advice = advice
        if not flow.news:
            flow.news = True
            self._news.append(advice.flow)

    def _due(self) -> float | None:
        """Seconds until the timers are to be looked at; None: there is none."""
        first = min(self._timer, self._doubt, math.inf if self._retry is None else self._retry)
        return None if first == math.inf else max(0.0, min(first - _now(), NAP))
