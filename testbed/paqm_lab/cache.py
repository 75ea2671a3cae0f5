# SPDX-License-Identifier: GPL-2.0
"""The user's cache: where it is, locks, stamps, free space, small files built from our sources."""

import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from paqm_lab.errors import LabError

TESTBED = Path(__file__).resolve().parent.parent
REPO = TESTBED.parent
SILENT = 3.0  # s that a wait for another may take without a word


def cache_dir() -> Path:
    """Directory of everything that is costly to make and may be deleted at any time."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    path = Path(base) / "paqm"
    if not path.is_absolute() or re.search(r"[\s:]", base):
        raise LabError(
            f"the cache, {path}, has to be an absolute path without spaces and colons, or no "
            "kernel can be built in it; set XDG_CACHE_HOME"
        )
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as err:
        raise LabError(
            f"cannot create the cache directory {path}: {err.strerror}; "
            "set XDG_CACHE_HOME to a directory you may write to"
        ) from err
    return path


def may_execute(place: str) -> bool:
    """Is this a directory, on a file system that is not mounted noexec?"""
    return os.path.isdir(place) and not os.statvfs(place).f_flag & os.ST_NOEXEC


def need_executable() -> None:
    """Refuses a cache on a file system that is mounted noexec, as hardened hosts have /home."""
    place = cache_dir()
    if not may_execute(str(place)):
        raise LabError(
            f"the cache, {place}, is mounted noexec, and the lab's programs are executed there; "
            "set XDG_CACHE_HOME to a directory elsewhere"
        )


def need_execution(place: Path) -> None:
    """Refuses a directory for guests that is mounted noexec: to their kernel, too, nothing in it is
    a program, and it would panic for want of its first one."""
    if not may_execute(str(place)):
        raise LabError(
            f"{place} is mounted noexec, and a guest executes its first program there: choose "
            "another directory with --out, or by TMPDIR"
        )


def scratch_dir() -> Path:
    """Directory for what is executed and soon deleted: the usual one, but not where that is mounted
    noexec, as hardened hosts have /tmp. One in the cache is the last, for others than its owner may
    not get there.
    """
    for place in (tempfile.gettempdir(), "/var/tmp"):
        if may_execute(place):
            return Path(place)
    last = cache_dir() / "tmp"
    last.mkdir(exist_ok=True)
    return last


def plugins() -> Path:
    """GStreamer elements that no Debian package has (make gcc-element)."""
    return cache_dir() / "gstreamer-plugins"


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Lets only one process at a time make the thing called `name`."""
    path = cache_dir() / f"{name}.lock"
    with path.open("w") as lock:
        _take(lock, name)
        yield


def _take(lock: IO[str], name: str) -> None:
    """Waits for the lock, and says so if that takes long: nothing else would be said."""
    end = time.monotonic() + SILENT
    while time.monotonic() < end:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            time.sleep(0.05)
    print(f"paqm-lab: waiting for another one that makes {name} ({lock.name})",
          file=sys.stderr, flush=True)  # fmt: skip
    fcntl.flock(lock, fcntl.LOCK_EX)


def need_space(path: Path, megabytes: int, what: str) -> None:
    """Refuses early when the disk under `path` is too full for `what`."""
    free = shutil.disk_usage(path).free // 1_000_000
    if free < megabytes:
        raise LabError(
            f"{what} needs {megabytes} MB in {path}, only {free} MB are free; "
            "make room, or point XDG_CACHE_HOME (cache) or --out (results) to another disk"
        )


def need_programs(names: list[str], what: str) -> None:
    """Refuses early when a program that `what` runs is not installed."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    missing = [name for name in names if shutil.which(name, path=path) is None]
    if missing:
        raise LabError(f"{what} needs {', '.join(missing)}; run setup/setup.sh")


def need_machine() -> None:
    """Refuses, before anything is fetched or built, on a machine whose processor runs no guest."""
    machine = platform.machine()
    if machine not in {"x86_64", "amd64"}:
        raise LabError(
            "the lab's guests need an x86-64 processor (User-Mode Linux runs on no other); this "
            f"is {machine}; the packages for routers and hosts do run here: docs/packages.md"
        )


def digest(*parts: bytes) -> str:
    """Short name for a content, for cache keys."""
    state = hashlib.sha256()
    for part in parts:
        state.update(len(part).to_bytes(8, "little"))
        state.update(part)
    return state.hexdigest()[:12]


def file_sha256(path: Path) -> str:
    """Fingerprint of a file."""
    with path.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()


def _compile(source: Path, target: Path, words: list[str]) -> None:
    """Makes `target` unless it is there; several runs at a time may ask for it."""
    if target.exists():
        return
    need_programs(["gcc"], "the lab")
    scratch = target.with_suffix(".new")
    command = ["gcc", "-std=c17", "-O2", "-Wall", "-Wextra", "-o", str(scratch), str(source)]
    with locked(target.stem):
        if target.exists():
            return
        done = subprocess.run([*command, *words], capture_output=True, text=True)
        if done.returncode:
            raise LabError(f"cannot compile {source}: {done.stderr.strip()}")
        scratch.rename(target)


def library(source: Path) -> Path:
    """A library for LD_PRELOAD from one C file, compiled when that is new."""
    target = cache_dir() / f"{source.stem}-{digest(source.read_bytes())}.so"
    _compile(source, target, ["-shared", "-fPIC", "-ldl"])
    return target


def program(first: Path, *others: Path) -> Path:
    """A program from C files, headers beside the first and of core/, compiled when one is new."""
    headers = [*first.parent.glob("*.h"), *(REPO / "core").glob("*.h")]
    parts = [first, *others, *sorted(headers)]
    target = cache_dir() / f"{first.stem}-{digest(b''.join(p.read_bytes() for p in parts))}"
    _compile(first, target, [*map(str, others), f"-I{REPO}", "-lm"])
    return target


def detrand_library() -> Path:
    """Makes the guest's random numbers repeatable."""
    return library(TESTBED / "preload" / "detrand.c")
