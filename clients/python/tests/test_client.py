#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The client beside a socket that is not paqmd's: descriptors that run out or have high numbers,
the end of a client, paths."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import resource
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import paqmclient.client  # noqa: E402
from paqmclient import Advice, Cause, Client, records  # noqa: E402

PATIENCE = 30.0
SELECT_MAX = 1024  # descriptors that select() takes


class Daemon:
    """One that answers nothing by itself."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.bind(str(path))
        self.socket.listen()
        self.socket.setblocking(False)

    def client(self, wants: Client) -> socket.socket:
        """The connection of this client, once it makes one."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            assert wants.next(0.05) is None
            try:
                return self.socket.accept()[0]
            except BlockingIOError:
                pass
        raise AssertionError(f"not connected: {wants.trouble}")

    def end(self) -> None:
        """The path is free again."""
        self.socket.close()
        self.path.unlink()


def refusal(flow: int) -> bytes:
    """An answer that is news."""
    return records._record(records._REGISTERED, records._REGISTERED_BODY.pack(flow, errno.EEXIST))


def check_descriptors(path: Path) -> None:
    """A process without descriptors left is trouble, no exception."""
    daemon = Daemon(path)
    client = Client(path)
    first = daemon.client(client)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, limits[1]))
    with ExitStack() as held:
        held.callback(resource.setrlimit, resource.RLIMIT_NOFILE, limits)
        first.close()
        assert client.poll() is None and client.trouble
        while True:
            try:
                held.callback(os.close, os.dup(0))
            except OSError:
                break
        end = time.monotonic() + PATIENCE
        while client.trouble != os.strerror(errno.EMFILE):
            assert client.next(0.05) is None and time.monotonic() < end, client.trouble
    daemon.client(client).close()
    client.close()
    daemon.end()
    print("ok: no descriptors left", flush=True)


def check_high(path: Path) -> None:
    """A socket with a number that select() does not take."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 2 * SELECT_MAX), hard))
    daemon = Daemon(path)
    with ExitStack() as held:
        highest = 0
        while highest < SELECT_MAX:
            highest = os.dup(0)
            held.callback(os.close, highest)
        with Client(path) as client:
            assert client.fileno() > SELECT_MAX
            assert client.next(0.01) is None
            flow = client.add("", 5004, "192.0.2.7", 6000)
            with daemon.client(client) as server:
                server.send(refusal(flow))
                advice = client.next(float("inf"))
                assert advice and advice.error == errno.EEXIST, advice
    daemon.end()
    print("ok: a descriptor above 1024", flush=True)


async def waiting(client: Client, also: bool) -> None:
    """close() ends a task that waits, and one that is just told."""
    told = []

    async def follow() -> None:
        async for advice in client.updates():
            told.append(advice)
            client.close()

    task = asyncio.create_task(follow())
    await asyncio.sleep(0.1)
    if not also:
        client.close()
    await asyncio.wait_for(task, PATIENCE)
    assert len(told) == also


def check_close(path: Path) -> None:
    """A client that is closed connects no more, and nobody waits for it."""
    daemon = Daemon(path)
    client = Client(path)
    daemon.client(client)
    asyncio.run(waiting(client, False))
    client = Client(path)
    flow = client.add("", 5004, "192.0.2.7", 6000)
    server = daemon.client(client)
    server.send(refusal(flow))
    asyncio.run(waiting(client, True))
    assert server.recv(512) and not server.recv(512), "it is not gone"
    assert client.next() is None and client.fileno() == -1
    try:
        client.add("", 5004, "192.0.2.7", 6000)
        raise AssertionError("a flow was taken after close()")
    except OSError as err:
        assert err.errno == errno.EBADF
    daemon.end()
    apart = Client(path)
    apart.close()
    daemon = Daemon(path)
    apart._retry = 0.0 if apart._retry else None  # its pause is over
    assert apart.poll() is None and apart.fileno() == -1, "it has connected after close()"
    daemon.end()
    print("ok: close()", flush=True)


def check_unanswered(path: Path) -> None:
    """A socket that takes connections, as systemd's does, and no paqmd behind it."""
    daemon = Daemon(path)
    with Client(path) as client:
        flow = client.add("", 5004, "192.0.2.7", 5006)
        assert client.next(0.1) is None and client.trouble is None
        begin = time.monotonic()
        while not client.trouble and time.monotonic() - begin < PATIENCE:
            assert client.next(0.1) is None
        assert client.trouble == "it does not answer"
        with daemon.client(client) as peer:
            peer.send(refusal(flow))
            news = client.next(PATIENCE)
            assert news and news.error == errno.EEXIST and client.trouble is None
    daemon.end()
    print("ok: who accepts and does not answer", flush=True)


async def first(client: Client) -> Advice:
    """The next update in a loop."""
    async for advice in client.updates():
        return advice
    raise AssertionError("it is closed")


@contextlib.contextmanager
def sleeping(after: float) -> Iterator[None]:
    """The machine sleeps for an hour so many seconds from now, of which no timer hears."""
    at, now = time.monotonic() + after, paqmclient.client._now
    paqmclient.client._now = lambda: now() + 3600 * (time.monotonic() > at)
    try:
        yield
    finally:
        paqmclient.client._now = now


def check_sleep(path: Path) -> None:
    """Advice of a daemon that hangs ends soon after the machine has slept longer than it holds."""
    daemon = Daemon(path)
    with Client(path) as client:
        flow = client.add("", 5004, "192.0.2.7", 5006)
        with daemon.client(client) as peer:
            for loop in False, True:
                body = (flow, 10**6, 1, bytes(16), 0, 0.0, 1, 10_000, 0, Cause.ERF, 0, 1)
                peer.send(records._record(records._RATE, records._RATE_BODY.pack(*body)))
                news = client.next(PATIENCE)
                assert news and news.rate_bps == 10**6
                begin = time.monotonic()
                with sleeping(0.5):
                    news = asyncio.run(first(client)) if loop else client.next(PATIENCE)
                assert news and news.cause == Cause.LOST and time.monotonic() < begin + 20
    daemon.end()
    print("ok: the machine sleeps", flush=True)


def check_hangs(path: Path) -> None:
    """Flows that come and go while paqmd hangs leave nothing behind."""
    daemon = Daemon(path)
    with Client(path) as client:
        for _ in range(5000):
            client.remove(client.add("", 5004, "192.0.2.7", 5006))
        assert len(client._gone) + len(client._untold) < 1000, len(client._gone)
        peer = daemon.client(client)
        kept = client.add("", 5004, "192.0.2.7", 5006)
        peer.setblocking(False)
        left = set()
        while kept not in left:
            assert not client.poll()
            with contextlib.suppress(BlockingIOError):
                while record := peer.recv(512):
                    number = int.from_bytes(record[72:80] or record[8:16], sys.byteorder)
                    (left.add if record[5] == 1 else left.remove)(number)
        assert left == {kept}, "paqmd holds a flow that was removed"
        peer.close()
    daemon.end()
    print("ok: flows that come and go while paqmd hangs", flush=True)


def check_path(path: Path) -> None:
    """What is no address is said at once."""
    for name, fault in (
        ("x" * 107, 0),
        ("x" * 108, errno.ENAMETOOLONG),
        ("ä" * 54, errno.ENAMETOOLONG),
    ):
        got = 0
        try:
            Client(name).close()
        except OSError as err:
            got = err.errno or 0
        assert got == fault, (name, got)
    with Client(path) as client:
        assert client.trouble == os.strerror(errno.ENOENT)
    print("ok: paths", flush=True)


def main() -> int:
    with tempfile.TemporaryDirectory() as home:
        for check in (check_descriptors, check_high, check_close, check_unanswered, check_sleep,
                      check_hangs, check_path):
            check(Path(home) / "socket")
    return 0


if __name__ == "__main__":
    sys.exit(main())
