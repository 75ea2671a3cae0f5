#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""A client of another language with the real paqmd: advice, what routers say, refusals, restarts, a
daemon that stays away, one of a later release, many flows. Needs root (status 77 otherwise).

Usage: daemon.py PAQMD PAQMCTL PROGRAM

PROGRAM takes commands on standard input and prints advice as JSON lines, as
clients/python/examples/follow.py says.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "feedback-daemon" / "tests"))
sys.path.insert(0, str(TOP / "feedback-daemon" / "wireshark"))

import wire  # noqa: E402
from host import stopped  # noqa: E402
from rig import (  # noqa: E402
    DPORT,
    PATIENCE,
    ROUTER_IP,
    SPORT,
    SSRC,
    Trial,
    later_releases,
    message,
    quote,
    run_checks,
)

GRACE = 3.0
OVERLOAD, POLICED, FINAL = 1, 2, 4


class Follower:
    """The program."""

    def __init__(self, program: str, path: Path) -> None:
        self.process = subprocess.Popen(
            [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env=os.environ | {"PAQM_SOCKET": str(path)},
        )  # fmt: skip
        self.rest = b""

    def say(self, *words: object) -> None:
        """A command."""
        assert self.process.stdin
        self.process.stdin.write((" ".join(map(str, words)) + "\n").encode())
        self.process.stdin.flush()

    def line(self, patience: float = PATIENCE) -> dict[str, Any] | None:
        """What it prints next; None if nothing comes."""
        assert self.process.stdout
        end = time.monotonic() + patience
        while b"\n" not in self.rest:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                return None
            more = os.read(self.process.stdout.fileno(), 65536)
            assert more, f"it ended: {self.process.wait()}"
            self.rest += more
        text, _, self.rest = self.rest.partition(b"\n")
        found: dict[str, Any] = json.loads(text)
        return found

    def add(self, sport: int = SPORT, floor: int = 100_000, ceiling: int = 3_000_000,
            to: str = ROUTER_IP) -> int:
        """Add a flow, without advice in between."""
        self.say("add", sport, to, DPORT, SSRC, floor, ceiling)
        answer = self.line()
        assert answer and "added" in answer, answer
        return int(answer["added"])

    def expect(self, cause: str, rate: int = 0) -> dict[str, Any]:
        """News of this kind."""
        news = self.line()
        # a busy machine may take longer than the life of an allowance
        while news and news.get("cause") == "expired" != cause:
            news = self.line()
        assert news, "no news"
        assert (news.get("cause"), news.get("rate_bps")) == (cause, rate), news
        return news

    def end(self) -> None:
        """Its input ends, so does it."""
        assert self.process.stdin
        self.process.stdin.close()
        assert self.process.wait(PATIENCE) == 0


def check_advice(t: Trial, program: str) -> None:
    """From a daemon that comes late to one that says why not."""
    f = Follower(program, t.ipc)
    for wrong in (("0", ROUTER_IP, DPORT, 0, 0, 1), (SPORT, "here", DPORT, 0, 0, 1),
                  (SPORT, ROUTER_IP, DPORT, 0, 2, 1), (SPORT, ROUTER_IP, DPORT, 0, 0, 0),
                  (SPORT, ROUTER_IP, DPORT, 0, 0, 10**12 + 1), (SPORT, "0.0.0.0", DPORT, 0, 0, 1)):
        f.say("add", *wrong)
        answer = f.line()
        assert answer and "failed" in answer, (wrong, answer)
    for wrong in (("add", SPORT, ROUTER_IP), ("limits", 1, 2), ("remove",), ("ad", 1)):
        f.say(*wrong)
        assert "expected add, limits" in (f.line() or {})["failed"], wrong
    for wrong in (("limits", 9, 1, 2), ("timing", 9, 1, 2), ("status", 9, 1, 2, 3), ("remove", 9)):
        f.say(*wrong)
        assert (f.line() or {}).get("failed") == "there is no flow 9", wrong
    f.say()  # an empty line says nothing
    flow = f.add()
    assert f.line(0.7) is None
    t.start("-i", "veth0")
    assert f.expect("none")["flow"] == flow
    t.answer(wire.build(quote(t.send_media()), 1, 850_000, flags=FINAL))
    news = f.expect("erf", 850_000)
    assert (news["flow"], news["router"], news["seq"]) == (flow, ROUTER_IP, 1), news
    assert not news["policed"] and not news["overload"], news
    t.answer(wire.build(quote(t.send_media()), 2, 700_000, flags=POLICED | OVERLOAD))
    news = f.expect("erf", 700_000)
    assert news["policed"] and news["overload"], news
    f.say("status", flow, 777_000, 5, 30)
    # whoever registers again is told the present state; of two rates at once only the newer
    f.say("timing", flow, 500_000, 40_000)
    f.expect("erf", 700_000)
    f.say("limits", flow, 5, 600_000)
    f.expect("erf", 600_000)
    shown = t.ask("flows")["flows"][0]
    assert shown["status"]["qp"] == 30 and shown["gop_ms"] == 500 and shown["floor_bps"] == 5
    f.say("limits", flow, 6, 5)
    answer = f.line()
    while answer and answer.get("cause") == "expired":
        answer = f.line()
    assert answer and "failed" in answer, answer
    print("ok: advice, what routers say, limits", flush=True)

    second = Follower(program, t.ipc)
    second.add()
    assert second.expect("refused")["error"] == 17  # EEXIST
    f.say("remove", flow)
    second.expect("none")
    t.answer(message(quote(t.send_media()), 3, 700_000.0))
    second.expect("erf", 700_000)
    second.expect("expired")
    print("ok: a refused flow is asked for again; expiry", flush=True)
    second.end()
    f.end()
    t.until(lambda: not t.ask("flows")["flows"], "the flows to be gone")
    t.stop()


def check_restart(t: Trial, program: str) -> None:
    """A daemon that is restarted costs nothing; one that stays away costs the advice."""
    t.start("-i", "veth0")
    f = Follower(program, t.ipc)
    f.add()
    f.expect("none")
    t.answer(message(quote(t.send_media()), 1, 850_000.0, period=2000))
    f.expect("erf", 850_000)
    gone = time.monotonic()
    t.stop()
    told = f.line(0.2)
    t.start("-i", "veth0")
    while not t.ask("flows")["flows"]:
        told = f.line(0.05) or told
    # on a machine where a restart takes longer than the grace the advice is lost, and then none
    late = time.monotonic() - gone > GRACE
    assert not told or late, told
    if late and (not told or told["cause"] == "lost"):
        while (told := f.line()) and told["cause"] != "none":
            assert told["cause"] == "lost", told
    # a flow is listed before captures show its packets: the first ones may not be known
    told = None
    while not told:
        t.answer(message(quote(t.send_media()), 2, 600_000.0, period=2000))
        told = f.line(0.5)
    assert (told["cause"], told["rate_bps"]) == ("erf", 600_000), told
    t.stop()
    gone = time.monotonic()
    f.expect("lost")
    assert time.monotonic() - gone > GRACE - 0.5
    t.start("-i", "veth0")
    f.expect("none")
    t.answer(message(quote(t.send_media()), 3, 600_000.0, period=10_000))
    f.expect("erf", 600_000)
    t.stop()
    # as systemd's, which takes connections while no paqmd can start
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as alone:
        alone.bind(str(t.ipc))
        alone.listen()
        f.expect("lost")
    t.ipc.unlink()
    f.end()
    print("ok: restarts", flush=True)


def check_hangs(t: Trial, program: str) -> None:
    """A daemon that hangs, its connection open: what it said last ends all the same."""
    t.start("-i", "veth0")
    assert t.daemon
    f = Follower(program, t.ipc)
    f.add()
    f.expect("none")
    for seq in 1, 2:  # the same rate again: it holds for longer
        begin = time.monotonic()
        t.answer(message(quote(t.send_media()), seq, 850_000.0, period=2000))
        f.expect("erf", 850_000)
        if seq == 1:
            news = f.line(3)
            assert not news or news["cause"] == "expired", news
    with stopped(t.daemon.pid):
        f.expect("lost")
    assert time.monotonic() - begin > 6, "it ended before paqmd could have said so"
    t.answer(message(quote(t.send_media()), 3, 700_000.0))
    f.expect("erf", 700_000)
    f.end()
    t.stop()
    print("ok: a daemon that hangs", flush=True)


def check_later(t: Trial, program: str) -> None:
    """Either end may be of a later release."""
    t.start("-i", "veth0")
    with later_releases(t.ipc) as between:
        f = Follower(program, between)
        f.add()
        f.expect("none")
        t.answer(message(quote(t.send_media()), 1, 700_000.0))
        f.expect("erf", 700_000)
        assert t.stats()["bad_records"] == 0
        f.end()
    # 4 and 5 are numbers that a library might take for its own
    for cause in (4, 5, 200):
        with later_releases(t.ipc, cause) as between:
            f = Follower(program, between)
            f.add()
            f.expect("none")
            t.answer(message(quote(t.send_media()), cause, 700_000.0))
            news = f.line()
            assert news and news["rate_bps"] == 700_000, news
            assert str(news["cause"]).startswith("other"), news
            f.end()
    t.stop()
    print("ok: ends of different releases", flush=True)


def check_input(t: Trial, program: str) -> None:
    """Commands come from a file, or there are none."""
    with tempfile.TemporaryFile() as commands:
        commands.write(f"add {SPORT} {ROUTER_IP} {DPORT} {SSRC} 0 3000000\n".encode())
        commands.seek(0)
        done = subprocess.run([program], stdin=commands, capture_output=True, timeout=PATIENCE)
    assert done.returncode == 0 and json.loads(done.stdout.splitlines()[0])["added"], done
    done = subprocess.run([program], stdin=subprocess.DEVNULL, timeout=PATIENCE)
    assert done.returncode == 0
    print("ok: commands from a file", flush=True)


def check_leaves(t: Trial, program: str) -> None:
    """Ctrl-C and a reader that leaves end it, without a word."""
    for by in "Ctrl-C", "reader":
        with subprocess.Popen(
            [program], env=os.environ | {"PAQM_SOCKET": str(t.ipc)},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        ) as run:  # fmt: skip
            assert run.stdin and run.stdout and run.stderr
            run.stdin.write(b"remove 9\n")
            run.stdin.flush()
            assert run.stdout.readline()  # it has begun
            if by == "reader":
                run.stdout.close()
                run.stdin.write(b"remove 9\n")
                run.stdin.flush()
            else:
                run.send_signal(signal.SIGINT)
            run.wait(PATIENCE)
            said = run.stderr.read()
            assert run.returncode and not said, (by, run.returncode, said)
    print("ok: Ctrl-C, a reader that leaves", flush=True)


def check_many(t: Trial, program: str) -> None:
    """More registrations than the connection takes at once."""
    t.start("-i", "veth0")
    f, count = Follower(program, t.ipc), 600
    for i in range(count):
        f.say("add", 10_000 + i, ROUTER_IP, DPORT, SSRC, 0, 3_000_000)
    lines = [f.line() for _ in range(2 * count)]
    added = {one["added"] for one in lines if one and "added" in one}
    assert len(added) == count
    assert {one["flow"] for one in lines if one and one.get("cause") == "none"} == added
    assert len(t.ask("flows")["flows"]) == count
    for flow in added:
        f.say("remove", flow)
    t.until(lambda: not t.ask("flows")["flows"], "all to be gone")
    f.end()
    t.stop()
    print("ok: many flows", flush=True)


if __name__ == "__main__":
    sys.exit(run_checks("PAQMD PAQMCTL PROGRAM",
                        [check_advice, check_restart, check_hangs, check_later, check_many,
                         check_input, check_leaves]))
