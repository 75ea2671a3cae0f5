# SPDX-License-Identifier: GPL-2.0
"""Senders that keep their SSRC: begun anew, moved by a NAT, or two of them at once."""

import contextlib
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from streams import check, ended, finish, free_port, receive, send
from trial import rows, until

PARTS = ["--interlace", "rows"]
REPAIRED = (["--rtx", "--fec"], ["--rtx", "--fec", "20"])


def picture(row: dict[str, str]) -> int:
    """Its time stamp, whatever part of it the row is of."""
    return int(row["rtp_ts"]) >> 2


def shown(came: Path, sent: Path) -> tuple[int, list[int]]:
    """How many pictures were sent, and numbers of those that came, in their order."""
    taken = [picture(f) for f in rows(sent / "frames.csv")]
    taken = sorted(set(taken), key=taken.index)
    number = {ts: n for n, ts in enumerate(taken)}
    log = [picture(d) for d in rows(came / "decoded.csv")]
    return len(taken), [number[ts] for ts in log if ts in number]


def anew(program: str, tmp: Path) -> None:
    """A sender that was killed and begins anew: numbers and times far back, another port."""
    clip, came, old, new = (tmp / name for name in ("clip.y4m", "ar", "a1", "a2"))
    for hear, options in (([], []), REPAIRED, (PARTS, PARTS)):
        # both begin with numbers and times far behind, or far ahead of, the other's
        for seeds in ((8, 1), (1, 8)):
            for stays in (True, False):
                name = f"anew {options} {seeds} {'same' if stays else 'another'} port"
                to, bind = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
                more = ["--loop", "--ssrc", 11, *(["--bind", bind] if stays else []), *options]
                receiver = receive(program, to, came, *hear)
                first = send(program, to, old, clip, "--seed", seeds[0], *more)
                time.sleep(3)
                first.end(signal.SIGKILL, -signal.SIGKILL)
                second = send(program, to, new, clip, "--seed", seeds[1], "--duration", 5, *more)
                said = finish(receiver, second)[1]
                sent, seen = shown(came, new)
                # another port is believed when the first has said nothing for half a second
                most = 4 if stays else 24
                check(sent > 100 and sent - len(seen) <= most, f"{name}: {len(seen)} of {sent}")
                check(seen == list(range(seen[0], seen[0] + len(seen))), f"{name}: order {seen}")
                check(("SSRC 11 now comes from" in said) != stays, f"{name}: {said}")
                check("packets of SSRC" not in said and "left out" not in said, f"{name}: {said}")


@contextlib.contextmanager
def nat(to: int) -> Iterator[tuple[int, Callable[[], None], list[int]]]:
    """Between a sender and @to: its port, what gives the sender other ports outside, and how many
    reports came back by those of each time.
    """
    port, sender, over = free_port(), [("127.0.0.1", 0)] * 2, threading.Event()
    reports: list[int] = []
    with contextlib.ExitStack() as stack:

        def pair(port: int) -> list[socket.socket]:
            ends = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
            for i, end in enumerate(ends):
                stack.enter_context(end)
                end.bind(("127.0.0.1", port + i))
            return ends

        inside, outside = pair(port), pair(free_port())
        reports.append(0)

        def move() -> None:
            outside[:] = pair(free_port())
            reports.append(0)

        def forward() -> None:
            while not over.wait(0.001):
                ends = list(outside)
                for i, end in enumerate((*inside, *ends)):
                    with contextlib.suppress(BlockingIOError):
                        while True:
                            data, source = end.recvfrom(2048, socket.MSG_DONTWAIT)
                            if i < 2:
                                sender[i] = source
                                ends[i].sendto(data, ("127.0.0.1", to + i))
                            elif sender[i - 2][1]:
                                inside[i - 2].sendto(data, sender[i - 2])
                                reports[-1] += 1

        thread = threading.Thread(target=forward)
        thread.start()
        try:
            yield port, move, reports
        finally:
            over.set()
            thread.join()


def rebound(program: str, tmp: Path) -> None:
    """A NAT forgets a sender and gives it another port: the stream goes on."""
    came, sent = tmp / "nr", tmp / "ns"
    (tmp / "key").write_text("00112233445566778899aabbccddeeff0102030405060708090a0b0c0d0e\n")
    secret = ["--srtp-key", str(tmp / "key")]
    for hear, options, most in (
        ([], [], 30), (*REPAIRED, 30), (PARTS, PARTS, 30), (secret, secret, 2),
    ):  # fmt: skip
        port = free_port()
        receiver = receive(program, f"127.0.0.1:{port}", came, *hear)
        with nat(port) as (to, move, reports):
            sender = send(program, f"127.0.0.1:{to}", sent, tmp / "clip.y4m", "--loop",
                          "--duration", 8, *options)
            time.sleep(4)
            move()
            said = finish(receiver, sender)[1]
        count, seen = shown(came, sent)
        tail = list(range(count - 60, count - 1))
        check(count - len(seen) <= most, f"rebound {options}: {len(seen)} of {count}: {said}")
        check([n for n in seen if n in tail] == tail, f"rebound {options}: the end: {seen}")
        check(len(reports) == 2 and min(reports) > 5, f"rebound {options}: reports {reports}")
        check("packets of SSRC" not in said, f"rebound {options}: {said}")


def collision(program: str, tmp: Path) -> None:
    """Two senders with one SSRC: the first plays on, the hint names both, then the other plays."""
    clip, came, old, new = (tmp / name for name in ("clip.y4m", "cr", "c1", "c2"))
    to, host = f"127.0.0.1:{free_port()}", "127.0.0.1"
    here, there = f"{host}:{free_port()}", f"{host}:{free_port()}"
    receiver = receive(program, to, came)
    first = send(program, to, old, clip, "--loop", "--ssrc", 11, "--seed", 8, "--bind", here)
    with ended(receiver, first):
        log = came / "rx.csv"
        until("the first comes", lambda: log.exists() and log.stat().st_size > 4000, first)
        second = send(program, to, new, clip, "--loop", "--ssrc", 11, "--seed", 1, "--bind", there)
        with ended(second):
            receiver.tells(f"SSRC 11 comes from {here}, and from {there}, too")
            time.sleep(3)
            first.end(signal.SIGTERM)
            receiver.tells(f"SSRC 11 now comes from {there}")
            time.sleep(3)
            said = finish(receiver, second, signal.SIGTERM)[1]
    count, seen = shown(came, old)
    check(seen == list(range(count)), f"collision: {len(seen)} of {count} of the first")
    check(len(shown(came, new)[1]) > 48, f"collision: of the second {shown(came, new)[1]}")
    check(said.count("SSRC 11") == 2 and "packets of" not in said, f"collision: {said}")
