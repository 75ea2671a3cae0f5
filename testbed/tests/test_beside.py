# SPDX-License-Identifier: GPL-2.0
"""Two parts of a preparation side by side: whichever fails is told, and the other is ended."""

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from paqm_lab import apt, kernel
from paqm_lab.beside import Progress, beside
from paqm_lab.errors import LabError

WAIT = 20  # s, for what takes a moment


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def comes(file: Path) -> int:
    """The number in a file that a program writes."""
    end = time.monotonic() + WAIT
    while not (file.exists() and file.read_text().endswith("\n")):
        assert time.monotonic() < end
        time.sleep(0.02)
    return int(file.read_text())


def goes(pid: int) -> bool:
    end = time.monotonic() + WAIT
    while running(pid):
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def test_both_are_done_and_heard() -> None:
    said: list[str] = []
    begun = threading.Event()

    def work(tell: Progress) -> None:
        tell("work")
        begun.set()

    with beside(work, said.append) as tell:
        assert begun.wait(WAIT)
        tell("block")
    assert said == ["work", "block"]


def test_work_that_takes_longer_is_waited_for() -> None:
    said: list[str] = []
    go = threading.Event()

    def work(tell: Progress) -> None:
        assert go.wait(WAIT)
        tell("work")

    with beside(work, said.append) as tell:
        tell("block")
        go.set()
    assert said == ["block", "work"]


def test_work_that_fails_behind_a_silent_block_is_told() -> None:
    def work(_tell: Progress) -> None:
        raise LabError("no network")

    with pytest.raises(LabError, match="no network"), beside(work, print):
        pass


def test_work_that_fails_ends_a_make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its compiler too, though it would go on for ten minutes."""
    pid = tmp_path / "pid"
    (tmp_path / "Makefile").write_text(
        f"all:\n\t@echo '  CC one.o'; echo $$$$ >{pid}; "
        "for i in $$(seq 600); do sleep 1; echo '  CC more.o'; done\n"
    )
    moments = iter(range(0, 6000, 10))  # every line is worth telling
    monkeypatch.setattr(kernel.time, "monotonic", lambda: next(moments))

    def work(_tell: Progress) -> None:
        while not pid.exists():
            time.sleep(0.02)
        raise LabError("no network")

    make = ["make", "-C", str(tmp_path)]
    with pytest.raises(LabError, match="no network"), beside(work, print) as tell:
        kernel._make(make, tmp_path / "log", "kernel", tell)
    monkeypatch.undo()
    assert goes(comes(pid))


PROGRAM = """
import sys
from paqm_lab import apt
from paqm_lab.beside import beside
def work(tell):
    apt.run(["sh", "-c", f"echo $$ >{sys.argv[1]}; exec sleep 600"], "downloading")
with beside(work, print):
    while not __import__("os").path.exists(sys.argv[1]):
        pass
    {end}
"""


@pytest.mark.parametrize("end", ["sys.exit('kernel')", "raise KeyboardInterrupt"])
def test_a_block_that_fails_ends_the_work(tmp_path: Path, end: str) -> None:
    pid = tmp_path / "pid"
    program = PROGRAM.replace("{end}", end)
    done = subprocess.run(
        [sys.executable, "-c", program, str(pid)], capture_output=True, timeout=WAIT, text=True
    )
    assert ("kernel" if "kernel" in end else "KeyboardInterrupt") in done.stderr
    assert goes(comes(pid))


def test_what_a_command_says_when_it_fails_stays(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"unpacking failed \(sh -c\): bad"):
        apt.run(["sh", "-c", "echo bad >&2; exit 3"], "unpacking")
