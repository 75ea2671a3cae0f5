# SPDX-License-Identifier: GPL-2.0
"""Data folders of a trial: written so that a full disk hurts nobody, read as if by a stranger.

A folder has `trial.json` (FORMAT, role, how long it is kept), then

    router  samples-DAY.jsonl   a line for each second in which something was sent, and events
    call    calls/ID/           about.json, clock.jsonl, record/ (paqm-streamer call --record)

What is read may be cut off, broken or made up: only regular files of a bounded size are opened,
lines that make no sense are left out and counted.
"""

from __future__ import annotations

import csv
import errno
import fcntl
import json
import math
import os
import secrets
import shutil
import signal
import stat
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

FORMAT = 1
ABOUT = "trial.json"
LOCK = "lock"
DAY_S = 86400
KEEP_DAYS = 90
DAY_BEGINS = 4  # h, local time: when hardly anybody calls
LONGEST_LINE = 1 << 16
LARGEST_FILE = 1 << 30
LARGEST_JSON = 1 << 20
LEAST_FREE = 200 << 20  # bytes: less, and a trial does not begin
LAST_FREE = 50 << 20  # less, and no more is written
MOST = 2**63


class Trouble(Exception):
    """What went wrong, where, and what to do: the text says it."""


def say(text: str) -> None:
    print(f"paqm-trial: {text}", file=sys.stderr, flush=True)


def stop_signals() -> list[signal.Signals]:
    """What asks the program to end; a terminal that is closed does, unless nohup(1) began it."""
    closed = [] if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN else [signal.SIGHUP]
    return [signal.SIGINT, signal.SIGTERM, *closed]


def lock(folder: Path) -> IO[str] | None:
    """Holds a folder, as long as the file is open here or in a process that has inherited it. None:
    another process has it, and its number stays in the file.
    """
    file = (folder / LOCK).open("a+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    file.truncate(0)
    file.write(f"{os.getpid()}\n")
    file.flush()
    return file


def lock_of_other(folder: Path) -> int | None:
    """The process that has the lock; 0: its number cannot be read."""
    try:
        with (folder / LOCK).open("r+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                text = file.read().strip()
                return int(text) if text.isdecimal() else 0
    except OSError:
        pass
    return None


def day_of(wall_ns: int) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(wall_ns / 1e9))


def trial_day(wall_ns: int) -> str:
    """The day to which a moment counts in a trial."""
    return day_of(max(0, wall_ns - DAY_BEGINS * 3600 * 10**9))


# Writing


def write_json(path: Path, value: Any) -> None:
    """All of it or nothing, also if the machine stops meanwhile."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with part.open("w") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(json.dumps(value, indent=1) + "\n")
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as err:
        part.unlink(missing_ok=True)
        raise Trouble(f"{path}: cannot write: {err.strerror}") from err


def free_bytes(path: Path) -> int:
    return shutil.disk_usage(path).free


def open_folder(path: Path, role: str, keep_days: int | None) -> dict[str, Any]:
    """Makes the folder or goes on with it; its trial.json. `keep_days`: None is as before."""
    where = "--foreground --dir" if role == "router" else "--dir"  # a service has its own place
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        free = free_bytes(path)
    except OSError as err:
        raise Trouble(f"{path}: {err.strerror}; choose another place with {where}") from err
    if free < LEAST_FREE:
        raise Trouble(
            f"{path}: {free >> 20} MB are free, {LEAST_FREE >> 20} MB are needed: make "
            f"room, or choose another place with {where}"
        )
    about = read_json(path / ABOUT)
    if about is None and (path / ABOUT).exists():
        raise Trouble(f"{path / ABOUT} cannot be read: move {path} away, or choose another {where}")
    if about is None:
        about = {
            "version": FORMAT,
            "kind": "paqm-trial",
            "machine": secrets.token_hex(4),
            "created_ns": time.time_ns(),
        }
    elif about.get("role") != role:
        raise Trouble(f"{path} has the data of a {about.get('role')}: choose another {where}")
    keep_days = keep_days or count(about.get("keep_days")) or KEEP_DAYS
    about |= {"role": role, "keep_days": keep_days}
    write_json(path / ABOUT, about)
    return about


class Lines:
    """JSON lines, appended. When the disk is nearly full it says so once, and writes no more."""

    def __init__(self, folder: Path, prefix: str, daily: bool) -> None:
        self.folder, self.prefix, self.daily = folder, prefix, daily
        self.name = ""
        self.file: IO[str] | None = None
        self.full = False
        self.was_full = False
        self.checked = 0.0

    def _open(self, wall_ns: int) -> IO[str]:
        name = f"{self.prefix}-{day_of(wall_ns)}.jsonl" if self.daily else f"{self.prefix}.jsonl"
        if self.file is None or name != self.name:
            self.close()
            path = self.folder / name
            descriptor = os.open(
                path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600
            )
            self.file, self.name = os.fdopen(descriptor, "w"), name
            if path.stat().st_size:
                self.file.write("\n")  # a line that was cut off ends here
        return self.file

    def _has_room(self) -> bool:
        now = time.monotonic()
        if self.full or now - self.checked >= 10:
            self.checked = now
            if self.file and not (self.folder / self.name).exists():
                self.close()  # forgotten meanwhile
            full = free_bytes(self.folder) < LAST_FREE
            if full != self.full:
                say(
                    f"{self.folder}: the disk is nearly full: no figures are written until there "
                    "is room again"
                    if full
                    else f"{self.folder}: there is room again"
                )
            self.full = full
            self.was_full |= full
        return not self.full

    def write(self, row: dict[str, Any]) -> None:
        try:
            if self._has_room():
                file = self._open(row["wall_ns"])
                file.write(json.dumps(row, separators=(",", ":")) + "\n")
                file.flush()
        except OSError as err:
            if err.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS):
                raise Trouble(f"{self.folder}: cannot write: {err.strerror}") from err
            if not self.full:
                say(
                    f"{self.folder}: cannot write: {err.strerror}; all else continues, the figures "
                    "of this time are lost"
                )
            self.full = self.was_full = True
            self.file = None

    def close(self) -> None:
        if self.file:
            try:
                self.file.close()
            except OSError:
                pass  # the disk is full: said before
            self.file = None


# Reading


def open_plain(path: Path, largest: int = LARGEST_FILE) -> IO[str] | None:
    """A regular file of that size at most; no link, no pipe that would never answer."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    state = os.fstat(descriptor)
    if not stat.S_ISREG(state.st_mode) or state.st_size > largest:
        os.close(descriptor)
        return None
    return os.fdopen(descriptor, encoding="utf-8", errors="replace", newline="")


def _refuse(word: str) -> None:
    raise ValueError(word)


def parse(text: str) -> dict[str, Any] | None:
    """A JSON object without NaN and its like, or None."""
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def read_json(path: Path) -> dict[str, Any] | None:
    file = open_plain(path, LARGEST_JSON)
    if file is None:
        return None
    with file:
        return parse(file.read(LARGEST_JSON))


def number(value: Any) -> float | None:
    """A finite number of a sane size: int or float, never a bool."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if -MOST < value < MOST and math.isfinite(value) else None


def count(value: Any) -> int | None:
    """A number of packets, bytes, ns: a whole number that is not negative."""
    found = number(value)
    return int(found) if found is not None and found >= 0 else None


class Reader:
    """Reads files of a folder; what was wrong with them is in `problems`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.problems: list[str] = []

    def _open(self, path: Path) -> IO[str] | None:
        file = open_plain(path)
        if file is None and os.path.lexists(path):
            self.problems.append(f"{path.name}: not a readable file, or above 1 GB")
        return file

    def lines(self, path: Path) -> Iterator[dict[str, Any]]:
        file = self._open(path)
        if file is None:
            return
        broken = 0
        with file:
            while line := file.readline(LONGEST_LINE):
                if line.strip():
                    row = parse(line)
                    if row is None:
                        broken += 1
                    else:
                        yield row
        if broken:
            self.problems.append(f"{path.name}: {broken} lines cut off or broken, left out")

    def table(self, path: Path, columns: dict[str, Callable[[str], Any]]) -> list[list[Any]]:
        """Rows of these columns of a CSV; without those in which one makes no sense."""
        file = self._open(path)
        if file is None:
            return []
        rows, broken = [], 0
        with file:
            bounded = iter(lambda: file.readline(LONGEST_LINE), "")
            table = csv.reader(line for line in bounded if "\0" not in line)
            try:
                head = next(table, [])
                places = [head.index(name) for name in columns]
            except (ValueError, csv.Error):
                self.problems.append(f"{path.name}: lacks the columns {', '.join(columns)}")
                return []
            kinds = list(columns.values())
            while True:
                try:
                    line = next(table)
                    row = [kind(line[at]) for kind, at in zip(kinds, places, strict=True)]
                    if any(number(value) is None for value in row):
                        raise ValueError
                    rows.append(row)
                except StopIteration:
                    break
                except (ValueError, IndexError, csv.Error, OverflowError):
                    broken += 1
        if broken:
            self.problems.append(f"{path.name}: {broken} lines cut off or broken, left out")
        return rows


# Forgetting


def calls_of(folder: Path) -> list[Path]:
    home = folder / "calls"
    if home.is_symlink() or not home.is_dir():
        return []
    return sorted(path for path in home.iterdir() if path.is_dir() and not path.is_symlink())


def age_days(path: Path) -> float:
    return (time.time() - path.stat().st_mtime) / DAY_S


def kept_days(path: Path, of_folder: float) -> float:
    """How long data are kept: a call, as those in it were told; another may have been told else."""
    about = (read_json(path / "about.json") if path.is_dir() else None) or {}
    return number(about.get("keep_days")) or of_folder


def forget(folder: Path, older_days: float | None = None, call: str | None = None) -> list[str]:
    """Deletes what has been kept long enough (or is older than `older_days`), or one call."""
    about = read_json(folder / ABOUT)
    if about is None or about.get("kind") != "paqm-trial":
        raise Trouble(f"{folder}: no trial data are here; name their folder with --dir")
    keep = number(about.get("keep_days")) or KEEP_DAYS
    gone = []
    candidates = calls_of(folder) + sorted(folder.glob("samples-*.jsonl"))
    for path in candidates:
        limit = kept_days(path, keep) if older_days is None else older_days
        if path.name == call if call is not None else age_days(path) >= limit:
            try:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            except OSError as err:
                raise Trouble(f"{path}: cannot be deleted: {err.strerror}") from err
            gone.append(path.name)
    if call is not None and not gone:
        raise Trouble(f"{folder}: there is no call {call}; the report and calls/ name them")
    return gone
