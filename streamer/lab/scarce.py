#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""A call on a link that becomes too narrow for pictures, in a lab guest: sound goes on alone.

Prints `ok NAME` or `not ok NAME: why`. The network is that of stream_lab.py: s calls v, and the
link between r and v has P-AQM. Its rate falls to 150 kbit/s and rises again.
"""

from __future__ import annotations

import argparse
import secrets
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "kernel" / "lab-tests"))
import stream_lab  # noqa: E402
import trial  # noqa: E402
from trial import Program, check, inside, within  # noqa: E402

WIDE, NARROW = "2mbit", "150kbit"
FALLS, RISES, END = 12.0, 42.0, 64.0  # s
PAUSED_BY, BACK_BY = 8.0, 12.0  # s after these
SOUND = 50  # pieces a second
PORT = 40000  # of the pictures, at v


def link(rate: str, how: str = "change") -> None:
    inside("r", "tc", "qdisc", how, "dev", "rv", "root", "handle", "1:", "paqm", "bandwidth", rate,
           "feedback", "icmp")


class Call:
    """v listens, s calls, and each of @happens at its second; what both have recorded."""

    def __init__(self, build: Path, happens: Sequence[tuple[float, Callable[[], object]]],
                 ) -> None:
        self.home = Path(tempfile.mkdtemp())
        self.begin = time.time_ns()
        self.began = time.monotonic()  # a test may set the other clock
        link(WIDE, "add")
        secret = self.home / "secret"
        secret.touch(0o600)
        secret.write_text(secrets.token_hex(24) + "\n")
        socket = self.home / "client.sock"
        daemon = Program("s", build / "feedback-daemon/paqmd", "-i", "sn", "--socket", socket,
                         "--control", self.home / "control.sock", "--user", "root", ready="ready")
        common = ["--secret", secret, "--sink", "none", "--audio-sink", "none", "--audio", "test"]
        ends = [Program(host, build / "streamer/paqm-streamer", "call", *where, *common, "--record",
                        self.home / host, ready=ready) for host, where, ready in (
                ("v", ["--listen", "--port", PORT, "--source", "none", "--paqmd", "none"],
                 "waiting"),
                ("s", ["10.3.0.2", "--source", "test", "--rate-max", "1mbit", "--paqmd", socket],
                 "talking"))]
        for second, what in happens:
            self.wait(second)
            what()
        self.said = ends[1].end(signal.SIGINT)
        self.said_there = ends[0].end()
        daemon.end(signal.SIGTERM)

    def wait(self, second: float) -> None:
        time.sleep(max(0.0, self.began + second - time.monotonic()))

    def times(self, host: str, name: str, column: str) -> list[float]:
        """When it was, s since the begin."""
        return [(int(row[column]) - self.begin) / 1e9
                for row in trial.rows(self.home / host / f"{name}.csv")]

    def turns(self, *wanted: str) -> list[float]:
        """When the picture changed so, s since the begin; empty: it did otherwise."""
        turns = [((int(row["t_ns"]) - self.begin) / 1e9, row["detail"])
                 for row in trial.rows(self.home / "s" / "events.csv") if row["event"] == "picture"]
        print(f"# {turns}", flush=True)
        good = tuple(what for _, what in turns) == wanted
        check(f"what becomes of the picture: {', '.join(wanted)}", good, (turns, self.said))
        return [at for at, _ in turns] if good else []

    def check_shown(self, name: str, begin: float, end: float) -> None:
        """All of its pictures are shown between these seconds."""
        shown = [t for t in self.times("v", "video", "play_ns") if begin <= t < end]
        within(f"pictures a second, {name}", len(shown) / (end - begin), 28, 31)


def call_of(text: str | None, happens: Sequence[tuple[float, Callable[[], object]]]) -> Call:
    """As the command line wants it; @text: what the program is for."""
    parser = argparse.ArgumentParser(description=(text or "").split("\n")[0])
    parser.add_argument("--build", type=Path, default=TOP / "build")
    build = parser.parse_args().build.resolve()
    trial.load_modules()
    stream_lab.lay_out()
    return Call(build, happens)


def main() -> int:
    call = call_of(__doc__, [(FALLS, lambda: link(NARROW)), (RISES, lambda: link(WIDE)),
                             (END, lambda: None)])
    turns = call.turns("paused", "back")
    if not turns:
        return trial.summary()
    paused, back = turns
    within("it pauses, s after the link has become narrow", paused - FALLS, 0, PAUSED_BY)
    within("it is back, s after the link is wide again", back - RISES, 0, BACK_BY)
    still = [t for t in call.times("s", "frames", "t_ns") if paused + 1 < t < back]
    within("pictures a second, meanwhile", len(still) / (back - paused - 1), 2, 4)
    call.check_shown("before", 4, FALLS)
    call.check_shown("afterwards", back + 2, END - 1)
    heard = call.times("v", "audio", "play_ns")
    for name, begin, end in (("before", 4, FALLS), ("meanwhile", paused + 2, RISES),
                             ("afterwards", back + 2, END - 1)):
        share = len([t for t in heard if begin <= t < end]) / (end - begin) / SOUND
        # more than comes in that time: the path's delay, and so the wait, has become shorter
        check(f"share of the sound that is played, {name} ({share:.4f})", share >= 0.99)
    check("it is said why, and what for", "sound goes on" in call.said and
          "the picture is back" in call.said, call.said)
    return trial.summary()


if __name__ == "__main__":
    sys.exit(main())
