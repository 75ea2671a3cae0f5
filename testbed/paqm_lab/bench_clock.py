# SPDX-License-Identifier: GPL-2.0
"""Processor time of a guest's kernel, as the host accounts it, for a program inside the guest.

A guest in real time sees how long something took, with all that other processes of the host did
meanwhile. Its kernel is one process of the host, so the host knows what it alone has used. The
guest asks by a file in its job directory and reads the answer from another one.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from paqm_lab.errors import LabError

PAUSE = 0.005  # s between two looks for the other side's file
PATIENCE = 20.0  # s


def _name(directory: Path, kind: str, number: int) -> Path:
    return directory / f"clock-{kind}-{number}"


class Client:
    """The guest's side."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.number = 0

    def read(self) -> int:
        """Processor time of this guest's kernel so far, ns."""
        self.number += 1
        answer = _name(self.directory, "answer", self.number)
        _name(self.directory, "ask", self.number).touch()
        end = time.monotonic() + PATIENCE
        while not answer.exists():
            if time.monotonic() > end:
                raise LabError("the host does not answer what processor time this guest has used")
            time.sleep(PAUSE)
        return int(answer.read_text())


def guest_process(directory: Path) -> int | None:
    """The kernel that runs in this directory: the child of ours that works there."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == os.getpid() and (entry / "cwd").readlink() == directory:
                return int(entry.name)
        except (OSError, ValueError, IndexError):
            continue
    return None


class Server(threading.Thread):
    """The host's side; runs until `stop`."""

    def __init__(self, directory: Path) -> None:
        super().__init__(daemon=True)
        if not Path("/proc/self/schedstat").exists():
            raise LabError(
                "this kernel does not account processor time exactly (no /proc/self/schedstat): "
                "the benchmark needs one with CONFIG_SCHED_INFO or CONFIG_SCHEDSTATS"
            )
        self.directory = directory.resolve()
        self.ended = threading.Event()

    def run(self) -> None:
        number = 1
        while not self.ended.wait(PAUSE):
            if not _name(self.directory, "ask", number).exists():
                continue
            process = guest_process(self.directory)
            if process is None:
                continue
            try:
                used = Path(f"/proc/{process}/schedstat").read_text().split()[0]
            except OSError:  # it has just ended
                continue
            answer = _name(self.directory, "answer", number)
            scratch = answer.with_suffix(".new")
            scratch.write_text(used)
            scratch.rename(answer)
            number += 1

    def stop(self) -> None:
        self.ended.set()
        self.join()
