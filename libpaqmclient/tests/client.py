#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""libpaqmclient with the real paqmd: advice, refusals, a daemon that is restarted, comes late or
stays away, many flows at once, the examples. Needs root (exit code 77, "skipped", otherwise).

Usage: client.py PAQMD PAQMCTL LIBRARY
"""

from __future__ import annotations

import contextlib
import ctypes as ct
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from host import stopped
from rig import (
    DPORT,
    IPC_MAGIC,
    PATIENCE,
    ROUTER_IP,
    ROUTER_IP6,
    SENDER_IP,
    SENDER_IP6,
    SPORT,
    SSRC,
    Trial,
    later_releases,
    message,
    quote,
    register,
    run_checks,
    timer_clocks,
)
from rig import Client as Raw

NONE, ERF, ECF, EXPIRED, LOST, REFUSED = range(6)
OTHER = 255
FINAL = 4  # PAQM_CLIENT_SAID_FINAL, which the messages of the tests say
GRACE = 3.0
EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


class Advice(ct.Structure):
    """struct paqm_client_advice."""

    _fields_ = [
        ("flow", ct.c_int), ("cause", ct.c_int), ("rate_bps", ct.c_uint64), ("error", ct.c_int),
        ("seq", ct.c_uint32), ("router_id", ct.c_uint64), ("router", ct.c_char * 46),
        ("value", ct.c_float), ("qdelay_ms", ct.c_float), ("period_ms", ct.c_uint32),
        ("routers", ct.c_uint32), ("captured_ns", ct.c_uint64),
    ]


class Client:
    """The library as an application uses it."""

    def __init__(self, library: str, path: Path) -> None:
        self.lib = ct.CDLL(library, use_errno=True)
        self.lib.paqm_client_open.restype = ct.c_void_p
        self.lib.paqm_client_trouble.restype = ct.c_char_p
        self.lib.paqm_client_path.restype = ct.c_char_p
        for name in ("fd", "close", "trouble", "path"):
            getattr(self.lib, f"paqm_client_{name}").argtypes = [ct.c_void_p]
        self.lib.paqm_client_next.argtypes = [ct.c_void_p, ct.POINTER(Advice)]
        self.lib.paqm_client_add.argtypes = [
            ct.c_void_p, ct.c_char_p, ct.c_uint16, ct.c_char_p, ct.c_uint16, ct.c_uint32,
            ct.c_uint64, ct.c_uint64,
        ]
        self.lib.paqm_client_limits.argtypes = [ct.c_void_p, ct.c_int, ct.c_uint64, ct.c_uint64]
        self.lib.paqm_client_timing.argtypes = [ct.c_void_p, ct.c_int, ct.c_uint32, ct.c_uint32]
        self.lib.paqm_client_said.argtypes = [ct.c_void_p, ct.c_int]
        self.lib.paqm_client_remove.argtypes = [ct.c_void_p, ct.c_int]
        self.lib.paqm_client_status.argtypes = [
            ct.c_void_p, ct.c_int, ct.c_uint64, ct.c_uint32, ct.c_uint32,
        ]
        self.c = self.lib.paqm_client_open(str(path).encode())
        assert self.c, os.strerror(ct.get_errno())

    def add(self, sport: int = SPORT, dst: str = ROUTER_IP, floor: int = 100_000,
            ceil: int = 3_000_000, src: str | None = None, ssrc: int = SSRC) -> int:
        """Add a flow."""
        return int(self.lib.paqm_client_add(
            self.c, src.encode() if src else None, sport, dst.encode(), DPORT, ssrc, floor, ceil,
        ))

    def next(self, patience: float = PATIENCE) -> Advice | None:
        """The next piece of news, None if none comes."""
        advice = Advice()
        end = time.monotonic() + patience
        while not self.lib.paqm_client_next(self.c, advice):
            left = end - time.monotonic()
            if left <= 0:
                return None
            select.select([self.lib.paqm_client_fd(self.c)], [], [], left)
        return advice

    def expect(self, cause: int, rate: int = 0) -> Advice:
        """News of this kind."""
        advice = self.next()
        # a busy machine may take longer than the life of an allowance
        while advice and advice.cause == EXPIRED != cause:
            advice = self.next()
        assert advice, "no news"
        assert (advice.cause, advice.rate_bps) == (cause, rate), (advice.cause, advice.rate_bps)
        return advice

    def close(self) -> None:
        """End."""
        self.lib.paqm_client_close(self.c)


def check_advice(t: Trial, library: str) -> None:
    """From a daemon that comes late to one that says why not."""
    client = Client(library, t.ipc)
    fd = client.lib.paqm_client_fd(client.c)
    assert client.add(0) == -22 and client.add(dst="here") == -22 and client.add(src="x") == -22
    assert client.add(ceil=0) == -22 and client.add(floor=2, ceil=1) == -22
    # what paqmd never takes is not sent
    assert client.add(ceil=10**12 + 1) == -22 and client.add(dst="0.0.0.0") == -22
    assert client.add(src=SENDER_IP6) == client.add(dst=ROUTER_IP6, src=SENDER_IP) == -97
    flow = client.add(src=SENDER_IP)
    assert flow >= 0 and client.next(0.7) is None
    assert b"No such file" in client.lib.paqm_client_trouble(client.c)
    assert client.lib.paqm_client_path(client.c).decode() == str(t.ipc)
    assert client.lib.paqm_client_status(client.c, flow, 1, 2, 3) == -107  # ENOTCONN

    t.start("-i", "veth0")
    client.expect(NONE)
    assert client.lib.paqm_client_trouble(client.c) is None
    t.answer(message(quote(t.send_media()), 1, 850_000.0))
    advice = client.expect(ERF, 850_000)
    assert (advice.flow, advice.seq, advice.routers, advice.period_ms) == (flow, 1, 1, 500)
    assert advice.router.decode() == ROUTER_IP and advice.router_id == 0xA1
    assert client.lib.paqm_client_said(client.c, flow) == FINAL
    assert client.lib.paqm_client_said(client.c, flow + 1) == 0
    assert abs(advice.qdelay_ms - 3.5) < 0.01 and abs(advice.value - 0.9) < 0.01
    assert abs(time.monotonic_ns() - advice.captured_ns) < 60e9
    assert client.lib.paqm_client_fd(client.c) == fd, "the descriptor has changed"

    assert client.lib.paqm_client_status(client.c, flow, 777_000, 5, 30) == 0
    assert client.lib.paqm_client_timing(client.c, flow, 500_000, 40_000) == 0
    assert client.lib.paqm_client_limits(client.c, flow, 5, 600_000) == 0
    client.expect(ERF, 600_000)
    shown = t.ask("flows")["flows"][0]
    assert shown["status"]["qp"] == 30 and shown["gop_ms"] == 500 and shown["floor_bps"] == 5
    assert client.lib.paqm_client_limits(client.c, flow, 6, 5) == -22
    assert client.lib.paqm_client_limits(client.c, flow, 6, 10**12 + 1) == -22
    assert client.lib.paqm_client_limits(client.c, flow + 1, 1, 5) == -2

    second = Client(library, t.ipc)
    second.add()
    assert second.expect(REFUSED).error == 17  # EEXIST
    second.close()
    assert client.lib.paqm_client_remove(client.c, flow) == 0
    assert client.lib.paqm_client_remove(client.c, flow) == -2
    gone = lambda: client.next(0.02) is None and not t.ask("flows")["flows"]  # noqa: E731
    t.until(gone, "the flow to be gone")
    more: list[int] = []
    while flow not in more:
        more.append(client.add(SPORT + 1 + len(more)))
    assert client.lib.paqm_client_said(client.c, flow) == 0, "it is told of the former one"
    for number in more:
        assert client.lib.paqm_client_remove(client.c, number) == 0
    assert client.add() >= 0
    client.expect(NONE)
    print("ok: advice, limits, refusal", flush=True)

    # the only router falls silent
    t.answer(message(quote(t.send_media()), 2, 850_000.0))
    client.expect(ERF, 850_000)
    client.expect(EXPIRED)
    client.close()
    t.until(lambda: not t.ask("flows")["flows"], "the flow to be gone")
    print("ok: expiry", flush=True)
    t.stop()


def check_restart(t: Trial, library: str) -> None:
    """A daemon that is restarted costs nothing; one that stays away costs the advice."""
    t.start("-i", "veth0")
    client = Client(library, t.ipc)
    client.add()
    client.expect(NONE)
    t.answer(message(quote(t.send_media()), 1, 850_000.0))
    client.expect(ERF, 850_000)
    for seq in range(2, 5):
        # neither a polite end nor a sudden one is news
        assert t.daemon
        if seq % 2:
            t.daemon.kill()
            t.daemon.wait()
        else:
            t.stop()
        gone = time.monotonic()
        told = client.next(0.2)
        t.start("-i", "veth0")
        while not t.ask("flows")["flows"]:
            told = client.next(0.05) or told
        # nothing is demanded of a machine on which a restart takes longer than the grace
        assert not told or time.monotonic() - gone > GRACE, told.cause
        t.answer(message(quote(t.send_media()), seq, 850_000.0 + seq))
        client.expect(ERF, 850_000 + seq)
    print("ok: restarts go unnoticed", flush=True)

    t.stop()
    gone = time.monotonic()
    client.expect(LOST)
    assert time.monotonic() - gone > GRACE - 0.5
    t.start("-i", "veth0")
    client.expect(NONE)
    t.answer(message(quote(t.send_media()), 9, 700_000.0))
    client.expect(ERF, 700_000)
    # a daemon that comes back in time, and routers that do not speak again
    t.stop()
    gone = time.monotonic()
    t.start("-i", "veth0")
    client.expect(NONE)
    assert time.monotonic() - gone > GRACE - 0.5
    print("ok: the grace ends", flush=True)

    # one that is reached again and again, and closes at once: it does not prolong the advice
    t.answer(message(quote(t.send_media()), 10, 700_000.0, period=10_000))
    client.expect(ERF, 700_000)
    t.stop()
    gone, reached = time.monotonic(), 0
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as full:
        full.bind(str(t.ipc))
        full.listen()
        full.setblocking(False)
        news = None
        while not news and time.monotonic() - gone < GRACE + PATIENCE / 3:
            news = client.next(0.05)
            with contextlib.suppress(BlockingIOError):
                full.accept()[0].close()
                reached += 1
    t.ipc.unlink()
    assert news and news.rate_bps == 0 and news.cause in (NONE, LOST), "the advice never ended"
    assert reached > 2, reached
    print("ok: the grace ends when nobody is let in", flush=True)
    assert timer_clocks("self") == {time.CLOCK_BOOTTIME}, "advice outlives a sleep"
    client.close()


def check_unanswered(t: Trial, library: str) -> None:
    """A socket that takes connections, as systemd's does, and no daemon behind it."""
    t.ipc.parent.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as alone:
        alone.bind(str(t.ipc))
        alone.listen()
        client = Client(library, t.ipc)
        trouble = client.lib.paqm_client_trouble
        client.add()
        assert client.next(GRACE / 2) is None and trouble(client.c) is None
        fd = client.lib.paqm_client_fd(client.c)
        assert select.select([fd], [], [], PATIENCE)[0], "the application is not woken"
        assert client.next(0) is None and trouble(client.c) == b"it does not answer"
        with alone.accept()[0] as daemon:
            cookie = struct.unpack_from("=Q", daemon.recv(4096), 72)[0]
            daemon.send(struct.pack("=IBBHQiI", IPC_MAGIC, 1, 2, 24, cookie, 0, 0))
            assert client.next(0.1) is None and trouble(client.c) is None
            router = bytes(10) + b"\xff\xff" + bytes([192, 0, 2, 1])
            daemon.send(struct.pack("=IBBHQQQ16sQIIHHBBH", IPC_MAGIC, 1, 3, 72, cookie, 850_000, 7,
                                    router, 1, 0, 1, 240, 3, ERF, 0, 1))  # fmt: skip
            client.expect(ERF, 850_000)
        # it has ended, and does not begin again
        client.expect(LOST)
        t.until(lambda: not client.next(0.05) and trouble(client.c), "the trouble to be told")
        client.close()
    t.ipc.unlink()
    print("ok: who accepts and does not answer", flush=True)


def check_forked(t: Trial, library: str) -> None:
    """A forked child keeps a connection that has ended: the parent is not woken for it."""
    t.start("-i", "veth0")
    client = Client(library, t.ipc)
    client.add()
    client.expect(NONE)
    child = os.fork()
    if not child:
        signal.pause()
    try:
        t.stop()
        t.start("-i", "veth0")
        t.until(lambda: not client.next(0.05) and t.ask("flows")["flows"], "the flow to be there")
        fd = client.lib.paqm_client_fd(client.c)
        assert any(
            not client.next(0) and not select.select([fd], [], [], 0)[0] for _ in range(1000)
        ), "it is readable all the time"
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    client.close()
    t.stop()
    print("ok: a forked child", flush=True)


def check_hangs(t: Trial, library: str) -> None:
    """A daemon that hangs, its connection open: what it said last ends all the same."""
    t.start("-i", "veth0")
    assert t.daemon
    client = Client(library, t.ipc)
    client.add()
    client.expect(NONE)
    for seq in 1, 2:  # the same rate again: it holds for longer
        begin = time.monotonic()
        t.answer(message(quote(t.send_media()), seq, 850_000.0, period=2000))
        client.expect(ERF, 850_000)
        if seq == 1:
            news = client.next(3)
            assert not news or news.cause == EXPIRED, news.cause
    with stopped(t.daemon.pid):
        client.expect(LOST)
        for _ in range(3000):  # it is told of few of them, and the rest leave nothing behind
            last = client.add(sport=SPORT + 2)
            assert client.next(0) is None
            client.lib.paqm_client_remove(client.c, last)
        assert last < 1000, f"{last} flows are kept"
    assert time.monotonic() - begin > 6, "it ended before paqmd could have said so"
    t.answer(message(quote(t.send_media()), 3, 700_000.0))
    client.expect(ERF, 700_000)
    client.close()
    t.stop()
    print("ok: a daemon that hangs", flush=True)


def check_later(t: Trial, library: str) -> None:
    """Either end may be of a later release."""
    t.start("-i", "veth0")
    with later_releases(t.ipc) as between:
        c = Client(library, between)
        c.add()
        c.expect(NONE)
        t.answer(message(quote(t.send_media()), 1, 700_000))
        c.expect(ERF, 700_000)
        assert t.stats()["bad_records"] == 0
        c.close()
    for seq, cause in enumerate((4, 5, 200), 2):  # the rate counts
        with later_releases(t.ipc, cause) as between:
            c = Client(library, between)
            c.add()
            c.expect(NONE)
            t.answer(message(quote(t.send_media()), seq, 700_000))
            c.expect(OTHER, 700_000)
            c.close()
    print("ok: ends of different releases", flush=True)
    t.stop()


def check_many(t: Trial, library: str) -> None:
    """More registrations than the connection takes at once."""
    t.start("-i", "veth0")
    client = Client(library, t.ipc)
    count = 600  # and more than one page of answers
    flows = {client.add(10_000 + i) for i in range(count)}
    assert len(flows) == count
    news = [client.next() for _ in range(count)]
    assert {n.flow for n in news if n and n.cause == NONE} == flows
    assert len(t.ask("flows")["flows"]) == count
    for flow in flows:
        assert client.lib.paqm_client_remove(client.c, flow) == 0
    gone = lambda: client.next(0.02) is None and not t.ask("flows")["flows"]  # noqa: E731
    t.until(gone, "all to be gone")
    print("ok: many flows", flush=True)
    client.close()
    t.stop()


def check_refused(t: Trial, library: str) -> None:
    """Of many flows that others hold one is good: it has advice. When they go, all are."""
    t.start("-i", "veth0")
    count = 600  # more than paqmd owes at once
    holder, client = Client(library, t.ipc), Client(library, t.ipc)
    held = {holder.add(10_000 + i) for i in range(count)}
    assert {n.flow for n in (holder.next() for _ in range(count)) if n} == held
    taken = {client.add(10_000 + i) for i in range(count)}
    good = client.add()
    told: list[int] = []
    while len(told) <= count:
        news = client.next()
        assert news, f"{len(told)} answers"
        assert (news.cause, news.error) == ((NONE, 0) if news.flow == good else (REFUSED, 17))
        told.append(news.flow)
    assert sorted(told) == sorted([*taken, good]), "not each was told once"
    t.answer(message(quote(t.send_media()), 1, 850_000.0))
    assert client.expect(ERF, 850_000).flow == good
    begin = time.monotonic()
    while time.monotonic() - begin < 2.5:  # asked for again meanwhile, in vain
        news = client.next(0.5)
        assert not news or (news.flow, news.cause) == (good, EXPIRED), (news.flow, news.cause)
    assert client.lib.paqm_client_trouble(client.c) is None
    assert "dropped" not in t.log.read_text(), "a client was dropped"
    print("ok: refused flows cost the others nothing", flush=True)

    holder.close()
    gone = time.monotonic()
    have: set[int] = set()
    while have != taken:
        news = client.next()
        assert news and news.cause in (NONE, EXPIRED), news
        have |= {news.flow} & taken
    took = time.monotonic() - gone
    assert took < 9 + PATIENCE / 3, f"{took:.1f} s"
    print("ok: flows that another one has left are taken", flush=True)
    client.close()
    t.until(lambda: not t.ask("flows")["flows"], "the flows to be gone")

    # the packets of another client's flow, then its own
    first, second = Client(library, t.ipc), Client(library, t.ipc)
    flow = first.add()
    first.expect(NONE)
    second.add()
    assert second.expect(REFUSED).error == 17
    assert first.lib.paqm_client_remove(first.c, flow) == 0
    assert first.next(0.2) is None
    second.expect(NONE)
    t.answer(message(quote(t.send_media()), 2, 700_000.0))
    second.expect(ERF, 700_000)
    first.close()
    second.close()
    print("ok: the next one has advice", flush=True)
    t.stop()


def check_unread(t: Trial, library: str) -> None:
    """Answers that nobody reads are owed, none twice, and when there are many nothing is asked."""
    t.start("-i", "veth0")
    assert library
    holder = Raw(t.ipc)
    assert holder.register(1) == 0
    rude = Raw(t.ipc)
    for _ in range(2000):
        rude.sock.send(register(7))  # one answer, as it is the same question
    sent = 0
    while sent < 100_000 and select.select([], [rude.sock], [], 1)[1]:
        rude.sock.send(register(1000 + sent))
        sent += 1
    assert 256 < sent < 100_000, f"{sent} questions"
    # all others are served
    other = Raw(t.ipc)
    assert other.register(2, to="10.77.0.9") == 0
    other.rate()
    rude.sock.settimeout(PATIENCE)
    again = 0
    while (got := rude.sock.recv(512))[8:16] == (7).to_bytes(8, sys.byteorder):
        again += 1
    assert 0 < again < 200, f"{again} answers to one question"
    answers = [got, *(rude.sock.recv(512) for _ in range(sent - 1))]
    cookies = [int.from_bytes(a[8:16], sys.byteorder) for a in answers]
    assert cookies == list(range(1000, 1000 + sent)), "answers were lost"
    assert {a[16] for a in answers} == {17}
    print(f"ok: {sent} answers wait, none is lost", flush=True)

    # a refusal, then the flow is free: the last word is the newest
    refused = lambda: t.stats()["flows_refused"]["taken"]  # noqa: E731
    before = refused()
    for _ in range(100):
        rude.sock.send(register(8))
    t.until(lambda: refused() == before + 100, "all to be judged")
    holder.sock.close()
    t.until(lambda: len(t.ask("flows")["flows"]) == 1, "the flow to be free")
    rude.sock.send(register(8))
    rude.sock.settimeout(1)
    last = b""
    with contextlib.suppress(TimeoutError):
        while (got := rude.sock.recv(512))[5] == 2 or not last:
            last = got
    assert last[16] == 0 and got[5] == 3, "a refusal came behind the registration"

    # changes of a flow that there is: the last answer is about the last one
    def answers_of(flow: Raw) -> list[int]:
        got = [flow.sock.recv(512)]
        flow.sock.settimeout(1)
        with contextlib.suppress(TimeoutError):
            while True:
                got.append(flow.sock.recv(512))
        flow.sock.settimeout(PATIENCE)
        return [a[16] for a in got if a[5] == 2]

    change = Raw(t.ipc)
    assert change.register(3, to="10.77.0.3") == 0
    change.rate()
    assert change.register(3, to="10.77.0.9") == 17 and change.silent()
    for last in (17, 0):
        before = refused()
        for to in ("10.77.0.3", "10.77.0.9") * 100:
            change.sock.send(register(3, to=to))
        if not last:
            change.sock.send(register(3, to="10.77.0.3"))
        t.until(lambda: refused() == before + 100, "all to be judged")  # noqa: B023
        t.stats()
        told = answers_of(change)
        assert told[-1] == last and len(told) < 150, told
    shown = [f["flow"] for f in t.ask("flows")["flows"]]
    assert any("10.77.0.3" in name for name in shown), shown
    change.sock.close()
    t.until(lambda: t.stats()["clients"] == 2, "it to be gone")
    print("ok: changes that are not taken", flush=True)

    # one that leaves without having read
    while select.select([], [rude.sock], [], 1)[1]:
        rude.sock.send(register(2000 + sent, to="10.77.0.9"))
        sent += 1
    rude.sock.close()
    t.until(lambda: t.stats()["clients"] == 1, "it to be missed")
    assert other.silent()
    print("ok: one that never reads", flush=True)
    other.sock.close()
    t.stop()


@contextlib.contextmanager
def killed(run: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """A program without an end of its own."""
    try:
        yield run
    finally:
        run.kill()
        run.wait()


def check_examples(t: Trial, library: str) -> None:
    """The examples of C and Python get the rate."""
    t.start("-i", "veth0")
    home = str(Path(library).parent)
    env = dict(os.environ, PAQM_SOCKET=str(t.ipc), LD_LIBRARY_PATH=home)
    inside = ["ip", "netns", "exec", t.net.sender]
    python = [sys.executable, str(EXAMPLES / "follow.py"), str(SPORT), ROUTER_IP, str(DPORT)]
    with killed(subprocess.Popen(python, env=env, stdout=subprocess.PIPE, text=True)) as run:
        assert run.stdout and run.stdout.readline() == "0 \n"
        t.answer(message(quote(t.send_media()), 1, 850_000.0))
        assert run.stdout.readline() == f"850000 {ROUTER_IP}\n"
    t.until(lambda: not t.ask("flows")["flows"], "the flow to be gone")
    t.media.close()  # its port is wanted
    follow = [*inside, str(Path(home) / "follow"), ROUTER_IP, str(DPORT)]
    with killed(subprocess.Popen(follow, env=env, stdout=subprocess.PIPE, text=True)) as run:
        assert run.stdout and run.stdout.readline() == "300000\n"
        # what it sent before it was registered proves nothing
        t.until(lambda: t.ask("flows")["flows"][0]["packets"] > 0, "packets to be seen")
        t.sink.settimeout(0)
        with contextlib.suppress(BlockingIOError):
            while True:
                sent = t.sink.recv(2048)
        t.answer(message(quote(sent), 2, 1_200_000.0))
        assert run.stdout.readline() == "1200000\n"
    print("ok: examples", flush=True)
    t.stop()


def check_misuse(t: Trial, library: str) -> None:
    """What is wrong with their words the examples say, and Ctrl-C ends them without any."""
    home = Path(library).parent
    env = dict(os.environ, PAQM_SOCKET=str(t.ipc), LD_LIBRARY_PATH=str(home))
    python = [sys.executable, str(EXAMPLES / "follow.py")]
    longest = {"PAQM_SOCKET": "x" * 200}
    cases: list[tuple[list[str], dict[str, str], str]] = [
        (python, {}, "Usage: "), ([*python, "one", ROUTER_IP, "2"], {}, "follow.py: invalid"),
        ([*python, "70540", ROUTER_IP, "2"], {}, "1 to 65535"),
        ([*python, "1", "here", "2"], {}, "here port 2: this cannot be a flow"),
        ([*python, "1", ROUTER_IP, "2"], longest, "File name too long"),
        ([*python, "1", ROUTER_IP, "2"], {"LD_LIBRARY_PATH": ""}, "follow.py: libpaqmclient"),
        ([str(home / "follow")], {}, "Usage: "), ([str(home / "follow"), "here", "1"], {}, "Usage"),
        ([str(home / "follow"), "127.0.0.1", "70540"], {}, "65535"),
        ([str(home / "follow"), "127.0.0.1", "9"], longest, "File name too long"),
    ]  # fmt: skip
    for words, more, says in cases:
        done = subprocess.run(words, env=env | more, stderr=subprocess.PIPE, timeout=PATIENCE,
                              text=True, check=False)  # fmt: skip
        assert done.returncode == 1 and says in done.stderr, (words, done)
        assert "Traceback" not in done.stderr, done.stderr
    t.start("-i", "veth0")
    with subprocess.Popen([*python, str(SPORT), ROUTER_IP, str(DPORT)], env=env, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:  # fmt: skip
        assert run.stdout and run.stderr and run.stdout.readline() == "0 \n"
        run.send_signal(signal.SIGINT)
        assert (run.wait(PATIENCE), run.stderr.read()) == (-signal.SIGINT, "")
    t.stop()
    print("ok: examples that are used wrongly", flush=True)


CHECKS: list[Callable[[Trial, str], None]] = [
    check_advice, check_restart, check_unanswered, check_forked, check_hangs, check_later,
    check_many, check_refused, check_unread, check_examples, check_misuse,
]


if __name__ == "__main__":
    sys.exit(run_checks("PAQMD PAQMCTL LIBRARY", CHECKS))
