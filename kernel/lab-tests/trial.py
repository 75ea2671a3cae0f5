# SPDX-License-Identifier: GPL-2.0
"""What the Python tests in lab guests share: checks, commands, programs, modules, groups.

Prints `ok NAME` or `not ok NAME: why`, and `N passed, N failed` at the end.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "testbed"))
from paqm_lab.topology import inside, into, run  # noqa: E402

__all__ = ["TOP", "Program", "check", "inside", "load_modules", "rows", "run", "run_groups",
           "summary", "unload_modules", "until", "within", "write_noise"]
MODULES = ("paqm_feedback", "sch_paqm")
PATIENCE = 120.0  # s that anything may take

passed = failed = 0


def check(name: str, good: object, why: object = "") -> None:
    global passed, failed
    if good:
        passed += 1
        print(f"ok {name}", flush=True)
    else:
        failed += 1
        print(f"not ok {name}: {why}", flush=True)


def within(name: str, value: float, low: float, high: float) -> None:
    check(
        f"{name} ({value:.6g})",
        low <= value <= high,
        f"got {value:.6g}, want {low:g}..{high:g}",
    )


def until(what: str, happens: Callable[[], object], *needed: subprocess.Popen[bytes]) -> None:
    """Waits; in vain if it takes too long, or a program has ended that is needed for it."""
    end = time.monotonic() + PATIENCE
    while True:
        over = time.monotonic() > end or any(one.poll() is not None for one in needed)
        if happens():
            return
        assert not over, f"in vain: {what}"
        time.sleep(0.05)


class Program(subprocess.Popen[bytes]):
    """A program in a host; all that it says is kept."""

    def __init__(self, host: str, *words: object, ready: str = "",
                 stdin: int = subprocess.DEVNULL, env: dict[str, str] | None = None) -> None:
        with tempfile.NamedTemporaryFile(delete=False, suffix=".log") as log:
            self.log = Path(log.name)
            super().__init__([*into(host), *map(str, words)], stdin=stdin, stdout=log,
                             stderr=subprocess.STDOUT, env={**os.environ, **(env or {})})
        self.name = " ".join(map(str, words[:2]))
        if ready:
            self.tells(ready)

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def tells(self, what: str) -> None:
        """Waits until it has said this."""
        try:
            until(f"{self.name} says '{what}'", lambda: what in self.said(), self)
        except AssertionError as err:
            raise AssertionError(f"{err}: {self.said()}") from None

    def end(self, how: int = 0, status: int = 0) -> str:
        """What it has said when it has ended, by a signal or by itself, with this status."""
        if how:
            self.send_signal(how)
        got = self.wait(PATIENCE)
        assert got == status, f"{self.name} ended with status {got}: {self.said()}"
        return self.said()


def rows(path: Path) -> list[dict[str, str]]:
    """Of a table."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def load_modules() -> None:
    for module in MODULES:
        run("insmod", f"{os.environ['PAQM_KO_DIR']}/{module}.ko")


def unload_modules() -> None:
    run("rmmod", *reversed(MODULES))


def summary() -> int:
    """Says how it went; the exit status."""
    print(f"{passed} passed, {failed} failed")
    return failed != 0


def write_noise(path: Path, width: int, height: int, shades: bytes) -> None:
    """48 pictures of 256 @shades, no two alike: they fill whatever rate they are given."""
    dice = random.Random(1)
    chroma = bytes([128]) * (width * height // 2)
    with path.open("wb") as file:
        file.write(f"YUV4MPEG2 W{width} H{height} F24:1 Ip C420jpeg\n".encode())
        for _ in range(48):
            file.write(b"FRAME\n" + dice.randbytes(width * height).translate(shades) + chroma)


def run_groups(
    description: str | None,
    groups: dict[str, Callable[[Path], None]],
    prepare: Callable[[], None],
    finish: Callable[[], None],
) -> int:
    """Command line of a test in groups: those named, or all. Each is given the build directory."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument("--build", type=Path, default=TOP / "build", help="Meson build directory")
    parser.add_argument("group", nargs="*", help=f"only these: {', '.join(groups)}")
    args = parser.parse_args()
    unknown = set(args.group) - set(groups)
    if unknown:
        parser.error(f"no group {', '.join(sorted(unknown))}; there are {', '.join(groups)}")
    load_modules()
    prepare()
    for name, group in groups.items():
        if not args.group or name in args.group:
            print(f"# {name}", flush=True)
            group((TOP / args.build).resolve())
    finish()
    unload_modules()
    return summary()
