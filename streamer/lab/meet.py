#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The rendezvous for calls, paqm-meet, against strangers, and ends against a rendezvous that lies.

On one host of a lab guest, where the hours of its limits pass at once; other addresses of loopback
are other hosts. Prints `ok NAME` or `not ok NAME: why`.
"""

from __future__ import annotations

import contextlib
import json
import random
import re
import secrets
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "kernel" / "lab-tests"))
import trial  # noqa: E402
from trial import Program, check, run, within  # noqa: E402

from paqm_lab.topology import HERE  # noqa: E402

PORT = 5091
SERVER = "127.0.0.1"
# What the program promises; its manual page has the same.
ANSWER, BEGIN, STUCK, HALF, IDLE, TURN, MUCH = 5, 30, 15, 10, 12 * 3600, 600, 1 << 20


class End:
    """Who speaks with the rendezvous as an end does."""

    def __init__(self, host: int = 9, family: int = socket.AF_INET) -> None:
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        self.socket.settimeout(60)
        if family == socket.AF_INET:
            self.socket.bind((f"127.0.0.{host}", 0))
            self.socket.connect((SERVER, PORT))
        else:
            self.socket.connect(("::1", PORT))
        self.word = b""

    def line(self) -> bytes:
        """The next one; what there was, if the connection has ended."""
        got = b""
        while not got.endswith(b"\n"):
            try:
                byte = self.socket.recv(1)
            except ConnectionError:
                byte = b""
            if not byte:
                break
            got += byte
        return got

    def greeted(self) -> End:
        line = self.line().split()
        assert line[:2] == [b"paqm-meet", b"1"], line
        self.word = line[2]
        return self

    def say(self, name: bytes) -> End:
        """A name, padded: no test needs the secret that a real one is made of."""
        self.socket.sendall(b"meet " + self.word + b" " + name.hex().encode().ljust(64, b"0")
                            + b"\n")
        return self

    def waits(self) -> bool:
        self.socket.settimeout(1)
        try:
            return not self.socket.recv(1, socket.MSG_PEEK)
        except TimeoutError:
            return True
        finally:
            self.socket.settimeout(60)

    def ends(self) -> float:
        """After how many seconds it is hung up on."""
        begin = time.monotonic()
        self.socket.settimeout(2 * IDLE)
        with contextlib.suppress(ConnectionError):
            while self.socket.recv(4096):
                pass
        return time.monotonic() - begin

    def close(self) -> None:
        self.socket.close()


class Meet:
    def __init__(self, build: Path, *words: object) -> None:
        self.program = Program(HERE, build / "streamer/paqm-meet", *words, ready="ready")

    def count(self) -> dict[str, int]:
        """What it says when it ends."""
        said = self.program.end(signal.SIGTERM)
        counters: dict[str, int] = json.loads(said[said.index("{"):])
        return counters

    def resident(self) -> int:
        """Memory, kB."""
        return int(Path(f"/proc/{self.program.pid}/statm").read_text().split()[1]) * 4


@contextlib.contextmanager
def meeting(build: Path, name: str, *words: object, **expected: int) -> Iterator[Meet]:
    """A rendezvous, whose counters say in the end what is expected and nothing else."""
    meet = Meet(build, *words)
    yield meet
    counters = meet.count()
    got = {key: n for key, n in counters.items() if n}
    check(f"{name}: what it has counted", got == expected, (got, expected, meet.program.said()))


def pair(name: bytes, hosts: tuple[int, int] = (2, 3)) -> tuple[End, End]:
    first = End(hosts[0]).greeted().say(name)
    assert first.waits()
    second = End(hosts[1]).greeted().say(name)
    got = first.line(), second.line()
    assert got == (b"first\n", b"second\n"), got
    return first, second


def join(build: Path) -> None:
    with meeting(build, "join", joined=3, third=1) as meet:
        a, b = pair(b"one")
        c, d = pair(b"two")
        third = End(4).greeted().say(b"one")
        check("a third end of a meeting is told so", third.line() == b"no third\n" and
              third.ends() < 1)
        dice = random.Random(1)
        bytes_there, bytes_back = dice.randbytes(400_000), dice.randbytes(300_000)
        sent = [threading.Thread(target=end.socket.sendall, args=(what,))
                for end, what in ((a, bytes_there), (b, bytes_back))]
        for thread in sent:
            thread.start()
        got = [receive(end, len(what)) for end, what in ((b, bytes_there), (a, bytes_back))]
        for thread in sent:
            thread.join()
        check("both get what the other has sent", got == [bytes_there, bytes_back],
              [len(x) for x in got])
        c.socket.sendall(b"x")
        check("each pair for itself", d.socket.recv(10) == b"x")
        a.close()
        check("one hangs up: the other is hung up on", b.socket.recv(1) == b"")
        b.close()
        again = pair(b"one")
        check("and the meeting can be held again", again)
        status = Path(f"/proc/{meet.program.pid}/status").read_text()
        check("it has no capability, no root, and few system calls",
              re.search(r"CapEff:\s*0+\n", status) and re.search(r"Seccomp:\s*2\n", status) and
              not re.search(r"Uid:\s*0\s", status), status)
        for end in (c, d, *again):
            end.close()
        time.sleep(2)
    with meeting(build, "IPv6", joined=1) as meet:
        one = End(family=socket.AF_INET6).greeted().say(b"six")
        other = End().greeted().say(b"six")
        check("by IPv6 and IPv4", (one.line(), other.line()) == (b"first\n", b"second\n"))
        one.close()
        other.close()
        time.sleep(2)


def receive(end: End, size: int) -> bytes:
    got = bytearray()
    while len(got) < size:
        block = end.socket.recv(1 << 16)
        if not block:
            break
        got += block
    return bytes(got)


def strangers(build: Path) -> None:
    words = {"another protocol": b"GET / HTTP/1.0\r\n\r\n", "no line at all": bytes(5000),
             "a line without end": b"meet " + b"0" * 500, "TLS": b"\x16\x03\x01\x02\0\n",
             "a word of nobody": b"meet " + b"0" * 32 + b" " + b"1" * 64 + b"\n",
             "what the server says": b"first\n"}
    with meeting(build, "strangers", wrong=len(words) + 3, silent=3, joined=1) as meet:
        before = meet.resident()
        waiting = End(2).greeted().say(b"a call")
        check("who waits", waiting.waits())
        for name, text in words.items():
            stranger = End().greeted()
            with contextlib.suppress(ConnectionError):
                stranger.socket.sendall(text)
            check(f"{name}: refused", stranger.line() in (b"no wrong\n", b""), text)
        twice = End().greeted().say(b"twice").say(b"twice")
        check("two names: refused", twice.line() == b"no wrong\n")
        # nothing may follow a name: it would be taken for what the other end says
        hasty = End().greeted()
        hasty.socket.sendall(b"meet " + hasty.word + b" " + b"5" * 64 + b"\nx")
        check("a name and more: it waits", hasty.waits())
        hasty.socket.sendall(b"\n")
        check("and is refused", hasty.line() == b"no wrong\n")
        hasty = End().greeted()
        hasty.socket.sendall(b"meet " + hasty.word + b" " + b"5" * 64 + b"\n\n")
        check("a name and a line: refused", hasty.line() == b"no wrong\n")
        silent = End().greeted()
        within("silence ends after so many seconds", silent.ends(), ANSWER - 1, ANSWER + 2)
        slow, begin = End().greeted(), time.monotonic()
        with contextlib.suppress(ConnectionError):
            for byte in b"meet " + slow.word + b" " + b"5" * 64:
                slow.socket.sendall(bytes([byte]))
                time.sleep(0.5)
        within("a letter now and then is silence, too", time.monotonic() - begin, ANSWER,
               ANSWER + 3)
        cut = End()
        cut.socket.shutdown(socket.SHUT_WR)
        check("who closes is closed", cut.greeted().ends() < 1)
        late = End().greeted()
        check("and the last one", late.ends() < ANSWER + 2)
        other = End(3).greeted().say(b"a call")
        check("those who wait meet all the same", (waiting.line(), other.line()) ==
              (b"first\n", b"second\n"))
        waiting.close()
        other.close()
        within("memory that strangers have cost, kB", meet.resident() - before, 0, 500)
        time.sleep(2)


def crowds(build: Path) -> None:
    with meeting(build, "crowds", "--most", "8", "--per-address", "4", address=1, full=1,
                 silent=4, joined=1):
        waiting = [End(2).greeted().say(bytes([n])) for n in range(4)]
        check("as many of an address as may be", all(end.waits() for end in waiting))
        one = End(2)
        check("and no more", one.line() == b"no address\n" and one.ends() < 1)
        silent = [End(3).greeted() for _ in range(4)]
        more = End(3).greeted().say(b"x")
        check("who is silent makes room for its own address", more.waits() and
              silent[0].ends() < 1)
        others = [End(4 + n).greeted().say(bytes([20 + n])) for n in range(3)]
        check("and for any when there is no other room", all(end.waits() for end in others) and
              all(end.ends() < 1 for end in silent[1:]))
        one = End(8)
        check("full: it is said", one.line() == b"no full\n" and one.ends() < 1)
        others[0].close()
        time.sleep(0.1)
        other = End(8).greeted().say(bytes([0]))
        check("those within meet", (waiting[0].line(), other.line()) == (b"first\n", b"second\n"))
        for end in (*waiting, *others, more, other):
            end.close()
        time.sleep(2)
    # 3000 in a row: what it says of that is a line
    with meeting(build, "flood", "--per-address", "16", silent=2900,
                 wrong=100) as meet:
        flood: list[End] = []
        for _ in range(2900):
            flood = [*flood[-20:], End().greeted()]  # those before have been hung up on
        for _ in range(100):
            end = End(3).greeted()
            end.socket.sendall(b"\n")
            end.line()
            end.close()
        time.sleep(130)
        lines = [line for line in meet.program.said().splitlines() if "sent away" in line]
        check("a flood: a line a minute at most", 1 <= len(lines) <= 2 and
              "silent" in lines[0] and "127.0" not in meet.program.said(), meet.program.said())
        for end in flood:
            end.close()


def limits(build: Path) -> None:
    with meeting(build, "limits", joined=5, mute=1, stuck=1, half=1, much=1, idle=1):
        a, b = pair(b"mute")
        a.socket.sendall(b"only one of them")
        within("mute: closed after so many seconds", b.ends(), BEGIN - 2, BEGIN + 2)
        a, b = pair(b"half")
        for end in (a, b):
            end.socket.sendall(b"x")
        a.socket.shutdown(socket.SHUT_WR)
        check("half closed: the other hears it", receive(b, 2) == b"x")
        b.socket.sendall(b"the rest")
        check("and may say the rest", receive(a, 9) == b"xthe rest")
        within("half closed: closed after so many seconds", a.ends(), HALF - 2, HALF + 2)
        a, b = pair(b"much")
        b.socket.sendall(b"x")
        got = threading.Thread(target=b.ends)
        got.start()
        with contextlib.suppress(ConnectionError):
            for _ in range(3 * MUCH >> 16):
                a.socket.sendall(bytes(1 << 16))
        got.join()
        check("much: closed", a.ends() < 1)
        # what nobody takes is held back, not kept
        a, b = pair(b"stuck")
        b.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        b.socket.sendall(b"x")
        a.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        a.socket.settimeout(1)
        sent = 0
        with contextlib.suppress(TimeoutError):
            while sent < MUCH:
                sent += a.socket.send(bytes(1000))
        check("stuck: it is held back", sent < MUCH, sent)
        within("stuck: closed after so many seconds", a.ends(), STUCK - 3, STUCK + 2)
        a, b = pair(b"idle")
        for end in (a, b):
            end.socket.sendall(b"x")
        time.sleep(IDLE - 60)
        a.socket.sendall(b"y")
        time.sleep(1000)
        check("hours of silence are nothing", receive(b, 2) == b"xy")
        within("idle: closed after so many seconds", b.ends(), IDLE - 1005, IDLE - 900)


def words(build: Path) -> None:
    with meeting(build, "words", joined=2, silent=2, wrong=1):
        waiting, lazy = End(2).greeted().say(b"long"), End(4).greeted().say(b"lazy")
        before = waiting.word
        check("two wait", waiting.waits() and lazy.waits())
        waiting.socket.settimeout(2 * TURN)
        begin = time.monotonic()
        waiting.greeted()
        within("another word after so many seconds", time.monotonic() - begin, TURN - 30,
               TURN + 2)
        check("it is another one", waiting.word != before)
        # somebody has recorded what was said
        replay = End(5).greeted()
        replay.word = before
        replay.say(b"long")
        check("what was said before does not count", replay.waits())
        liar = End(6).greeted()
        liar.word = b"0" * 32
        check("a word that never was is refused", liar.say(b"long").line() == b"no wrong\n")
        waiting.say(b"long")
        other = End(3).greeted().say(b"long")
        check("who has answered meets", (waiting.line(), other.line()) ==
              (b"first\n", b"second\n"))
        waiting.close()
        other.close()
        within("who does not answer goes", lazy.greeted().ends(), 0, ANSWER + 2)
        # a host that has gone without a word
        gone = End(7).greeted().say(b"gone")
        check("one more waits", gone.waits())
        run("nft", "add table ip cut; add chain ip cut in { type filter hook input priority 0; }; "
            "add rule ip cut in ip saddr 127.0.0.7 drop; "
            "add rule ip cut in ip daddr 127.0.0.7 drop")
        time.sleep(140)
        one, two = End(2).greeted().say(b"gone"), End(3).greeted().say(b"gone")
        check("a host that has vanished waits no more", (one.line(), two.line()) ==
              (b"first\n", b"second\n"))
        run("nft", "delete", "table", "ip", "cut")
        for end in (one, two, gone, replay):
            end.close()
        time.sleep(2)


class Liar(threading.Thread):
    """A rendezvous that joins whoever comes, or says what it likes."""

    def __init__(self, says: list[bytes]) -> None:
        super().__init__(daemon=True)
        self.says, self.heard = says, list[bytes]()
        self.socket = socket.create_server((SERVER, 5099), reuse_port=True)
        self.start()

    def run(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                ends = [self.socket.accept()[0] for _ in self.says]
                for end, text in zip(ends, self.says, strict=True):
                    greeting = b"paqm-meet 1 " + b"0" * 32 + b"\n"
                    end.sendall(greeting if text in (b"first\n", b"second\n") else text)
                if self.says[0] == b"":
                    time.sleep(60)
                if len(ends) < 2:
                    ends[0].close()
                    continue
                for end, text in zip(ends, self.says, strict=True):
                    self.heard.append(end.recv(200))
                    end.sendall(text)
                for one, two in (ends, ends[::-1]):
                    threading.Thread(target=self.copy, args=(one, two), daemon=True).start()

    @staticmethod
    def copy(one: socket.socket, two: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while block := one.recv(4096):
                two.sendall(block)
            two.shutdown(socket.SHUT_WR)


def call(build: Path, *words: object, ready: str = "") -> Program:
    return Program(HERE, build / "streamer/paqm-streamer", "call", "--source", "none", "--audio",
                   "test", "--sink", "none", "--audio-sink", "none", "--paqmd", "none", *words,
                   ready=ready)


def ends(build: Path) -> None:
    """What an end says to whom."""
    home = Path(tempfile.mkdtemp())
    secret, wrong = home / "secret", home / "wrong"
    for path in (secret, wrong):
        path.touch(0o600)
        path.write_text(secrets.token_hex(24) + "\n")
    for words_, says in ((["--meet", SERVER, "--listen"], "omit --listen"),
                         (["--meet", SERVER, "127.0.0.2"], "omit 127.0.0.2"),
                         (["--meet", SERVER, "--ice", "off"], "omit --ice off"),
                         (["--meet", "host.example:0"], "is not an address")):
        tried = call(build, "--secret", secret, *words_)
        check(f"options: {' '.join(words_)}", tried.end(status=2) and says in tried.said(),
              tried.said())
    begin = time.monotonic()
    alone = call(build, "--secret", secret, "--meet", SERVER)
    alone.tells("cannot be reached yet")
    within("nobody there: it is said after so many seconds", time.monotonic() - begin, 0, 4)
    said = alone.end(status=1)
    check("nobody there: what to do", "is paqm-meet running there" in said and
          "without --stun or --turn" in said, said)
    within("nobody there: it gives up after so many seconds", time.monotonic() - begin, 28, 36)

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as nameserver:
        nameserver.bind((SERVER, 53))  # that never answers
        begin = time.monotonic()
        lost = call(build, "--secret", secret, "nobody.example")
        lost.tells("cannot resolve 'nobody.example' yet")
        within("no server of names: it is said after so many seconds", time.monotonic() - begin,
               1, 2)
        check("no server of names: what to do", "check the name" in lost.end(status=1),
              lost.said())
        within("no server of names: it gives up after so many seconds",
               time.monotonic() - begin, 28, 32)

    for text, says in ((b"220 mail.example ESMTP\r\n", "not a rendezvous"),
                       (b"x" * 5000, "not a rendezvous"), (b"first\n", "not a rendezvous"),
                       (b"", "not a rendezvous"), (b"no full\n", "the rendezvous is full"),
                       (b"no\n", "not a rendezvous")):
        liar = Liar([text + b" "] if text in (b"first\n",) else [text])
        tried = call(build, "--secret", secret, "--meet", f"{SERVER}:5099", "--stun", SERVER)
        said = tried.end(status=1)
        check(f"it says {text[:10]!r}: the end says so", says in said, said)
        liar.socket.shutdown(socket.SHUT_RDWR)
        liar.socket.close()

    # it joins ends of different secrets, as who replays a name would
    liar = Liar([b"first\n", b"second\n"])
    one = call(build, "--secret", secret, "--meet", f"{SERVER}:5099", "--stun", SERVER)
    two = call(build, "--secret", wrong, "--meet", f"{SERVER}:5099", "--stun", SERVER)
    for name, end in (("one", one), ("the other", two)):
        end.tells("do both ends have the same secret")
        check(f"wrong secret: {name} is told", True)
    check("wrong secret: nobody is let in", "talking to" not in one.said() + two.said())
    names = [line.split()[2] for line in liar.heard[:2]]
    check("their names differ, and have nothing of the secrets", names[0] != names[1] and
          not any(path.read_text().strip()[:8].encode() in b"".join(liar.heard)
                  for path in (secret, wrong)), liar.heard)
    for end in (one, two):
        end.kill()
        end.wait()
    liar.socket.shutdown(socket.SHUT_RDWR)
    liar.socket.close()

    # it goes away and comes back while an end waits
    meet = Meet(build)
    one = call(build, "--secret", secret, "--meet", SERVER, "--stun", SERVER, ready="waiting")
    meet.program.kill()
    meet.program.wait()
    one.tells("the rendezvous is lost")
    time.sleep(100)
    check("the rendezvous is gone for minutes: who waits goes on", one.poll() is None, one.said())
    meet = Meet(build)
    stranger = call(build, "--secret", wrong, "--meet", SERVER, "--stun", SERVER, ready="waiting")
    two = call(build, "--secret", secret, "--meet", SERVER, "--stun", SERVER, "--duration", 5)
    for name, end in (("one", one), ("the other", two)):
        end.wait(trial.PATIENCE)
        found = re.search(r"played (\d+)", end.said())
        check(f"and meets: {name} hears", found and int(found[1]) > 100, end.said())
    check("who has another secret waits", stranger.poll() is None, stranger.said())
    stranger.kill()
    stranger.wait()
    counters = meet.count()
    check("it has joined two and refused none", counters["joined"] == 1 and
          not counters["wrong"] + counters["silent"] + counters["much"], counters)


def options(build: Path) -> None:
    program = build / "streamer/paqm-meet"
    cases: list[tuple[list[Any], int, str]] = [
        (["--most", "1"], 2, "must be 2 to 4096"), (["--most", "x"], 2, "must be"),
        (["--per-address", "0"], 2, "must be"), (["--sandbox=perhaps"], 2, "must be yes or no"),
        (["--listen", "127.0.0.1:0"], 2, "must be 1 to 65535"), (["here"], 2, "unexpected"),
        (["--listen", "nowhere.invalid"], 1, "cannot listen on nowhere.invalid"),
        (["--listen", "192.0.2.1"], 1, "cannot listen on 192.0.2.1, port 5091"),
        (["--nonsense"], 2, "nonsense")]
    for words_, status, says in cases:
        tried = Program(HERE, program, *words_)
        said = tried.end(status=status)
        check(f"options: {' '.join(words_)}", says in said, said)
    for where, family, to in (("[::1]:6000", socket.AF_INET6, ("::1", 6000)),
                              ("::1", socket.AF_INET6, ("::1", PORT)),
                              ("localhost:6001", socket.AF_INET, ("127.0.0.1", 6001)),
                              ("127.0.0.1", socket.AF_INET, ("127.0.0.1", PORT))):
        meet = Meet(build, "--listen", where)
        with socket.socket(family, socket.SOCK_STREAM) as one:
            one.connect(to)
            check(f"it listens at {where}", one.recv(9) == b"paqm-meet")
        if where == "127.0.0.1":
            second = Program(HERE, program, "--listen", where)
            check("two at one port", "Address already in use" in second.end(status=1))
        meet.count()


def prepare() -> None:
    run("ip", "link", "set", "lo", "up")
    # an address of a network, without which there is no ICE
    run("ip", "link", "add", "lan", "type", "veth", "peer", "name", "other")
    run("ip", "addr", "add", "10.9.0.1/24", "dev", "lan")
    for device in ("lan", "other"):
        run("ip", "link", "set", device, "up")


GROUPS: dict[str, Callable[[Path], None]] = {
    "options": options, "join": join, "strangers": strangers, "crowds": crowds, "words": words,
    "limits": limits, "ends": ends}

if __name__ == "__main__":
    sys.exit(trial.run_groups(__doc__, GROUPS, prepare, lambda: None))
