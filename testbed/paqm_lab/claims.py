# SPDX-License-Identifier: GPL-2.0
"""Claims: of many workers on many machines with one shared directory, each run is done by one.

A claim is a file KEY.GENERATION, made in a way that only one can (O_EXCL). Its holder touches it
while it works. Who finds the newest generation given up makes the next one, and only one can do
that either; nothing is ever deleted or renamed, so no order of events lets two hold a key. A claim
is given up when its process is gone (seen on the same machine at once), or when it was not touched
for LEASE seconds by the clock of the file server.
"""

from __future__ import annotations

import itertools
import json
import os
import socket
import threading
from pathlib import Path
from typing import Any

LEASE = 120.0  # s
BEAT = 15.0  # s between two touches


def _started(pid: int) -> str | None:
    """When a process of this machine began, in ticks; None: it is gone."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return None
    return None if words[0] in "ZX" else words[19]


def _machine() -> str:
    """This machine since its start, and the view of processes that this one has."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{socket.gethostname()} {boot} {os.readlink('/proc/self/ns/pid')}"


def publish(path: Path, data: dict[str, Any]) -> bool:
    """Makes a file that is whole as soon as it is there; whether it was not there yet."""
    scratch = path.with_name(f".{path.name}.{socket.gethostname()}.{os.getpid()}")
    with scratch.open("w") as f:
        json.dump(data, f, indent=1, allow_nan=False)
        f.write("\n")
        f.flush()
        os.fsync(f.fileno())
    try:
        os.link(scratch, path)
    except FileExistsError:
        return False
    finally:
        scratch.unlink()
    return True


class Claim:
    """A key that this process works on; touched until it is closed."""

    def __init__(self, path: Path, generation: int) -> None:
        self.path = path
        self.generation = generation
        self._ended = threading.Event()
        threading.Thread(target=self._beat, daemon=True).start()

    def _beat(self) -> None:
        while not self._ended.wait(BEAT):
            os.utime(self.path)

    def close(self) -> None:
        self._ended.set()


class Claims:
    """The claims in a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._clock = directory / f".clock.{socket.gethostname()}.{os.getpid()}"

    def newest(self, key: str) -> int:
        """The newest generation of a key, 0 if there is none."""
        return next(n for n in itertools.count() if not self.path(key, n + 1).exists())

    def path(self, key: str, generation: int) -> Path:
        return self.directory / f"{key}.{generation}"

    def _given_up(self, path: Path) -> bool:
        holder: dict[str, Any] = json.loads(path.read_text())
        if holder["machine"] == _machine():
            return bool(_started(holder["pid"]) != holder["started"])
        self._clock.touch()
        now = self._clock.stat().st_mtime
        self._clock.unlink()
        return now - path.stat().st_mtime > LEASE

    def is_held(self, key: str) -> bool:
        """Whether somebody works on a key."""
        newest = self.newest(key)
        return newest > 0 and not self._given_up(self.path(key, newest))

    def take(self, key: str) -> Claim | None:
        """The claim of a key; None: somebody else works on it."""
        newest = self.newest(key)
        if newest and not self._given_up(self.path(key, newest)):
            return None
        path = self.path(key, newest + 1)
        pid = os.getpid()
        holder = {"machine": _machine(), "pid": pid, "started": _started(pid)}
        return Claim(path, newest + 1) if publish(path, holder) else None
