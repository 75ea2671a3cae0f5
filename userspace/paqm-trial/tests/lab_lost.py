#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""A call of a trial that loses its camera for a while, and one whose disk is full for a while: the
calls go on, whoever holds them is told, and the report puts nothing of it down to the queue.

Prints `ok NAME` or `not ok NAME: why`. The network is that of lab_trial.py.

Usage: testbed/paqm-lab exec userspace/paqm-trial/tests/lab_lost.py [--build DIR]
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]
import lab_trial  # noqa: E402
from lab_trial import PLACE, SILENT, Terminal, samples  # noqa: E402
from trial import check, run, summary, within  # noqa: E402

SECONDS = 40
GONE = 6  # s, camera or disk


def make_clip(path: Path) -> None:
    """Three seconds that a camera may give, over and over."""
    words = "videotestsrc num-buffers=75 ! video/x-raw,width=64,height=48,framerate=25/1 ! x264enc"
    words += f" ! matroskamux ! filesink location={path}"
    subprocess.run(["gst-launch-1.0", "-q", *words.split()], check=True)


class Call:
    """Both ends of one, in folders of their own."""

    def __init__(self, name: str, source: str = "test") -> None:
        self.name = name
        self.ends = {}
        for host, where in (("callee", "--listen"), ("caller", "10.3.0.2")):
            words = (
                SILENT.replace("--source test", f"--source {source}")
                if host == "caller"
                else SILENT
            )
            self.ends[host] = Terminal(
                host,
                f"paqm-trial call {where} --secret secret --consent on-paper --dir {name} "
                f"-- {words} --duration {SECONDS}",
            )
            self.ends[host].until("waiting" if host == "callee" else "talking")

    def over(self) -> dict[str, int | None]:
        return {host: one.wait() for host, one in self.ends.items()}

    def said(self) -> dict[str, str]:
        return {host: one.said[-600:] for host, one in self.ends.items()}

    def row(self) -> dict[str, Any]:
        """What the report says of it."""
        out = PLACE / f"{self.name}-report"
        folders = " ".join(str(PLACE / host / self.name) for host in self.ends)
        done = Terminal("router", f"paqm-trial report {folders} /run/trial/lost --out {out}")
        check(f"{self.name}: the report is made", done.wait() == 0, done.said)
        (row,) = json.loads((out / "result.json").read_text())["calls"]
        check(f"{self.name}: both ends are in it", row["ends"] == ["caller", "callee"], row["ends"])
        return dict(row)


def camera() -> None:
    clip = PLACE / "camera.mkv"
    make_clip(clip)
    whole = clip.read_bytes()
    call = Call("camera", str(clip))
    time.sleep(10)
    clip.write_bytes(bytes(2000))
    caller = call.ends["caller"]
    check(
        "who has no camera any more is told", caller.until("the call goes on without"), caller.said
    )
    time.sleep(GONE)
    clip.write_bytes(whole)
    check("and when it is back", caller.until(": is back"), caller.said)
    ends = call.over()
    check("camera: the call comes to its end", set(ends.values()) == {0}, call.said())
    row = call.row()
    found = row["to_callee"]
    within("a camera that is gone is no freeze", found["freezes"], 0, 0)
    within("nothing of it is lost", found["loss_percent"], 0, 0.1)
    told = re.search(r"a device was lost: (\d+) s", str(row["problems"]))
    within("the report says for how long", int(told[1]) if told else 0, GONE, GONE + 6)
    within("the other direction is whole", row["to_caller"]["freezes"], 0, 0)


def disk() -> None:
    home = PLACE / "callee" / "disk"
    home.mkdir()
    run("mount", "-t", "tmpfs", "-o", "size=1g", "tmpfs", str(home))
    call = Call("disk")
    time.sleep(10)
    used = int(run("du", "-s", "-B1", str(home)).split()[0])
    run("mount", "-o", f"remount,size={used}", str(home))
    callee = call.ends["callee"]
    check("whose disk is full is told", callee.until("cannot write|nearly full"), callee.said)
    time.sleep(GONE)
    run("mount", "-o", "remount,size=1g", str(home))
    ends = call.over()
    check("disk: the call goes on to its end", ends["caller"] == 0, call.said())
    check("and says that its record is not whole", "is incomplete" in callee.said, call.said())
    row = call.row()
    found = row["to_callee"]
    check("what was not written is not said to be lost", not found["loss_percent"], found)
    check("nor frozen", not found["freezes"], found)
    check("the report says why", "disk was full" in str(row["problems"]), row["problems"])
    within("the other direction has lost nothing", row["to_caller"]["loss_percent"], 0, 0.1)


def main() -> int:
    lab_trial.prepare()
    words = "--bandwidth 3mbit --alternate none --foreground"
    router = Terminal("router", f"paqm-trial router rv --dir /run/trial/lost {words}")
    check("a trial begins", router.until("rv: paqm"), router.said)
    for host in ("caller", "callee"):
        (PLACE / host / "secret").touch(0o600)
        (PLACE / host / "secret").write_text("one and the same secret of both\n")
    camera()
    disk()
    check("the router has kept its seconds", len(samples(Path("/run/trial/lost/rv"))) > SECONDS)
    return summary()


if __name__ == "__main__":
    sys.exit(main())
