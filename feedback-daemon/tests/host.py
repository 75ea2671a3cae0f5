# SPDX-License-Identifier: GPL-2.0
"""What tests do on the host beside the network: processes, users, control connections."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

from rig import PATIENCE, Trial

NOBODY = 65534


def status(pid: int) -> dict[str, str]:
    """What /proc says about a process; nothing if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return {}
    return {k: v.strip() for k, v in (line.split(":", 1) for line in lines)}


def children(pid: int) -> list[int]:
    """Child processes."""
    every = [int(path.name) for path in Path("/proc").glob("[0-9]*")]
    return [other for other in every if status(other).get("PPid") == str(pid)]


def alive(pid: int) -> bool:
    """Whether it runs: one that has ended may wait for its parent to notice."""
    return status(pid).get("State", "Z")[0] != "Z"


def kill(t: Trial, pids: list[int]) -> None:
    """End the daemon by force; all its processes must end with it."""
    assert t.daemon
    t.daemon.kill()
    t.daemon.wait()
    t.daemon = None
    t.until(lambda: not any(map(alive, pids)), "all to end with the daemon")


def family(pid: int) -> list[int]:
    """The processes of paqmd: worker, opener, capturer."""
    (opener,) = children(pid)
    return [pid, opener, *children(opener)]


@contextlib.contextmanager
def as_service(t: Trial) -> Iterator[None]:
    """Start paqmd as the unit does it: as an own user, with CAP_NET_RAW and nothing else."""
    t.ipc.parent.mkdir(parents=True, exist_ok=True)
    for path in (t.ipc.parent, t.control.parent):
        os.chown(path, NOBODY, NOBODY)
    # of a daemon that was killed, and not this user's
    for path in (t.ipc, t.control):
        path.unlink(missing_ok=True)
    command = list(t.command)
    t.command[:0] = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups",
                     "--inh-caps", "-all,+net_raw", "--ambient-caps", "-all,+net_raw",
                     "--bounding-set", "-all,+net_raw"]
    yield
    t.command = command


def connect(path: Path) -> socket.socket:
    """A client of the control socket."""
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    s.settimeout(PATIENCE)
    s.connect(str(path))
    return s


@contextlib.contextmanager
def stopped(pid: int) -> Iterator[None]:
    """While this process hangs."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def acting_as(uid: int) -> Iterator[None]:
    """What connects meanwhile is of this user, and of the group of nobody."""
    os.setegid(NOBODY)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


def reload(t: Trial) -> str:
    """What paqmctl reload complains about."""
    out = t.ctl("reload")
    assert (out.returncode == 0) == (not out.stderr), out
    return out.stderr


def captured(t: Trial) -> dict[str, bool]:
    """Which interfaces are captured."""
    return {i["name"]: i["up"] for i in t.stats()["interfaces"]}
