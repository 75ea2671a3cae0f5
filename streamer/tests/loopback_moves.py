# SPDX-License-Identifier: GPL-2.0
"""Senders that keep their SSRC: begun anew, moved by a NAT, two at once, or one that claims it."""

import contextlib
import re
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from streams import check, ended, finish, free_port, receive, send, write_clip
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


def pair(stack: contextlib.ExitStack, host: str, port: int) -> list[socket.socket]:
    """Sockets of RTP and RTCP."""
    ends = [stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(2)]
    for i, end in enumerate(ends):
        end.bind((host, port + i))
    return ends


@contextlib.contextmanager
def nat(
    to: int, sees: Callable[[bytes], None] = lambda data: None
) -> Iterator[tuple[int, Callable[..., None], list[int]]]:
    """Between a sender and @to: its port, what gives the sender other ports outside, of a host or
    ("") of none, and how many reports came back by those of each time. @sees is given RTP before it
    goes on.
    """
    port, sender, over = free_port(), [("127.0.0.1", 0)] * 2, threading.Event()
    reports: list[int] = []
    with contextlib.ExitStack() as stack:
        inside, outside = (pair(stack, "127.0.0.1", p) for p in (port, free_port()))
        reports.append(0)

        def move(host: str = "127.0.0.1") -> None:
            outside[:] = pair(stack, host, free_port()) if host else []
            reports.append(0)

        def forward() -> None:
            while not over.wait(0.001):
                ends = list(outside)
                for i, end in enumerate((*inside, *ends)):
                    with contextlib.suppress(BlockingIOError):
                        while True:
                            data, source = end.recvfrom(2048, socket.MSG_DONTWAIT)
                            if i == 0:
                                sees(data)
                            if i < 2:
                                sender[i] = source
                                if ends:
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


def readdressed(program: str, tmp: Path) -> None:
    """A line fails for so long that the sender stops, and comes back with another address: reports
    of the sender alone tell where it is.
    """
    came, sent, port = tmp / "dr", tmp / "ds", free_port()
    receiver = receive(program, f"127.0.0.1:{port}", came)
    with nat(port) as (to, move, reports):
        sender = send(program, f"127.0.0.1:{to}", sent, tmp / "clip.y4m", "--loop", "--rate-max",
                      "500kbit")  # fmt: skip
        with ended(receiver, sender):
            until("packets come", lambda: (came / "rx.csv").stat().st_size, receiver, sender)
            time.sleep(2)
            move("")
            sender.tells("no report on the stream for 15 s")
            move("127.0.0.2")
            sender.tells("reports arrive again: sending pictures")
            time.sleep(4)
            said = finish(receiver, sender, signal.SIGTERM)[1]
    count, seen = shown(came, sent)
    tail = list(range(count - 48, count - 1))
    check([n for n in seen if n in tail] == tail, f"readdressed: the end: {seen} of {count}")
    check(reports[-1] > 3, f"readdressed: reports {reports}")
    check("now comes from 127.0.0.2" in said, f"readdressed: {said}")


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
            receiver.tells(f"SSRC 11 comes from {here} and also from {there}")
            time.sleep(3)
            first.end(signal.SIGTERM)
            receiver.tells(f"SSRC 11 now comes from {there}")
            time.sleep(3)
            said = finish(receiver, second, signal.SIGTERM)[1]
    count, seen = shown(came, old)
    check(seen == list(range(count)), f"collision: {len(seen)} of {count} of the first")
    check(len(shown(came, new)[1]) > 48, f"collision: of the second {shown(came, new)[1]}")
    check(said.count("SSRC 11") == 2 and "packets of" not in said, f"collision: {said}")


class Claimant:
    """Another host, which sends reports with the SSRC of a stream, for each of its packets, and,
    where there is a key, packets and signatures of its own invention.
    """

    def __init__(self, stack: contextlib.ExitStack, port: int, signs: bool) -> None:
        self.rtp, self.rtcp = pair(stack, "127.0.0.2", free_port())
        self.port, self.signs, self.turn = port, signs, 0

    def sees(self, data: bytes) -> None:
        self.turn += 1
        report = struct.pack("!BBH4s", 0x80, 200, 6, data[8:12]) + bytes(20)
        self.rtcp.sendto(report, ("127.0.0.1", self.port + 1))
        if not self.signs:
            return
        signed = report + struct.pack("!I", 0x80000001 + self.turn) + bytes(10)
        self.rtcp.sendto(signed, ("127.0.0.1", self.port + 1))
        number = int.from_bytes(data[2:4], "big") + 7 & 0xFFFF
        packet = data[:2] + number.to_bytes(2, "big") + data[4:12] + bytes(60)
        self.rtp.sendto(packet, ("127.0.0.1", self.port))

    def was_told(self) -> bool:
        for end in (self.rtp, self.rtcp):
            end.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                return bool(end.recv(2048))
        return False


def claimed(program: str, tmp: Path) -> None:
    """Reports of another host with the stream's SSRC, the first before its sender's: whoever sends
    them gets none of ours. Nor by packets that are not signed, where there is a key.
    """
    came, sent = tmp / "hr", tmp / "hs"
    secret = ["--srtp-key", str(tmp / "key")]
    for options in ([], secret):
        port = free_port()
        receiver = receive(program, f"127.0.0.1:{port}", came, *options)
        with contextlib.ExitStack() as stack:
            claimant = Claimant(stack, port, bool(options))
            to, _, reports = stack.enter_context(nat(port, claimant.sees))
            sender = send(program, f"127.0.0.1:{to}", sent, tmp / "clip.y4m", "--loop",
                          "--duration", 6, *options)  # fmt: skip
            said = finish(receiver, sender)[1]
            check(not claimant.was_told(), f"claimed {options}: a report for the stranger")
        count, seen = shown(came, sent)
        check(count - len(seen) <= 2, f"claimed {options}: {len(seen)} of {count}: {said}")
        check(reports[0] > 5, f"claimed {options}: reports {reports}")
        # one that is signed wrongly is nobody's: srtpdec leaves it out
        told = re.search(r"refused reports: (\d+) of a stream from another sender", said)
        check(claimant.turn > 100 and (int(told[1]) > 100 if told else bool(options)),
              f"claimed {options}: {claimant.turn}: {said}")  # fmt: skip


def paused(program: str, tmp: Path) -> None:
    """A sender that stood still for a second has its stream back, whoever sent a packet now and
    then with its SSRC.
    """
    port, came, sent, over = free_port(), tmp / "pr", tmp / "ps", threading.Event()
    receiver = receive(program, f"127.0.0.1:{port}", came)
    sender = send(program, f"127.0.0.1:{port}", sent, tmp / "clip.y4m", "--loop", "--ssrc", 11,
                  "--duration", 9)  # fmt: skip

    def disturb() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.bind(("127.0.0.2", 0))
            while not over.wait(0.3):
                head = struct.pack("!BBHII", 0x80, 96, 0, 0, 11)
                stranger.sendto(head + b"\x41" + bytes(20), ("127.0.0.1", port))

    log = came / "rx.csv"
    until("packets come", lambda: log.exists() and log.stat().st_size, receiver, sender)
    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        time.sleep(2)
        sender.send_signal(signal.SIGSTOP)
        time.sleep(1)
        sender.send_signal(signal.SIGCONT)
        said = finish(receiver, sender)[1]
    finally:
        over.set()
        thread.join()
    count, seen = shown(came, sent)
    tail = list(range(count - 72, count - 1))
    check([n for n in seen if n in tail] == tail, f"paused: the end: {seen} of {count}: {said}")
    check("SSRC 11 now comes from 127.0.0.2" in said, f"paused: {said}")


def standstill(program: str, tmp: Path) -> None:
    """A sender that was stopped for long does not send all that it has missed, ever so late."""
    port, came, sent = free_port(), tmp / "tr", tmp / "ts"
    receiver = receive(program, f"127.0.0.1:{port}", came)
    sender = send(program, f"127.0.0.1:{port}", sent, Path("test"), "--duration", 26)
    log = came / "rx.csv"
    until("packets come", lambda: log.exists() and log.stat().st_size, receiver, sender)
    time.sleep(2)
    sender.send_signal(signal.SIGSTOP)
    time.sleep(10)
    sender.send_signal(signal.SIGCONT)
    goes_on = time.time()
    finish(receiver, sender)
    taken = {f["rtp_ts"]: int(f["t_ns"]) / 1e9 for f in rows(sent / "frames.csv")}
    ages = [(int(d["t_ns"]) / 1e9 - goes_on, int(d["t_ns"]) / 1e9 - taken[d["rtp_ts"]])
            for d in rows(came / "decoded.csv")]  # fmt: skip
    late = [(round(at, 1), round(age, 1)) for at, age in ages if at > 4 and age > 1]
    check(any(at > 8 for at, _ in ages), f"standstill: nothing came after it: {ages[-3:]}")
    check(not late, f"standstill: s after it, and age: {late[::12]}")


def resumed(program: str, tmp: Path) -> None:
    """A picture that was paused for long comes back no slower than that of a new sender."""
    to, sent, came = f"127.0.0.1:{free_port()}", tmp / "us", tmp / "ur"
    receiver = receive(program, to, came)
    sender = send(program, to, sent, tmp / "clip.y4m", "--loop", "--rate-max", "2mbit",
                  "--rate-min", "100kbit")  # fmt: skip
    with ended(receiver, sender):
        until("packets come", lambda: (came / "rx.csv").stat().st_size, receiver, sender)
        time.sleep(4)
        sender.send_signal(signal.SIGUSR1)
        time.sleep(9)
        sender.send_signal(signal.SIGUSR1)
        time.sleep(3)
        finish(receiver, sender, signal.SIGTERM)
    frames = [(int(f["t_ns"]) / 1e9, int(f["allowance_bps"])) for f in rows(sent / "frames.csv")]
    back = max(range(1, len(frames)), key=lambda n: frames[n][0] - frames[n - 1][0])
    check(frames[back][0] - frames[back - 1][0] > 5, f"resumed: no pause, {len(frames)} pictures")
    rates = [rate for _, rate in frames[back:]]
    check(min(rates) >= 500_000, f"resumed: {rates[::6]} after {frames[back - 1][1]} bit/s")


def shortened(program: str, tmp: Path) -> None:
    """A file that somebody makes anew while it plays: the sender says so, with whole logs."""
    clip, sent = tmp / "short.y4m", tmp / "hs"
    write_clip(clip)
    sender = send(program, f"127.0.0.1:{free_port()}", sent, clip, "--loop")
    sender.tells("sending")
    time.sleep(2)
    clip.write_bytes(b"")
    said = sender.end(status=1)
    check("short.y4m: the file has become shorter" in said, f"shortened: {said}")
    check(len(rows(sent / "frames.csv")) > 24, "shortened: logs")
