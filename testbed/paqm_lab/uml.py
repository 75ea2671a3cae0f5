# SPDX-License-Identifier: GPL-2.0
"""Boots a User-Mode Linux guest, runs one command in it, and tells how it ended.

The guest's root is an image (paqm_lab/image.py), or the host's file tree. Its kernel command line
is always the same; everything that belongs to a run is found through the kernel's working directory
(see testbed/guest/init).
With the same seed, command and files two boots are the same to the last random bit.
"""

import argparse
import codecs
import contextlib
import fcntl
import functools
import math
import os
import re
import select
import shlex
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from paqm_lab import cache
from paqm_lab.commands import MORTAL
from paqm_lab.errors import LabError
from paqm_lab.kernel import Kernel

# 2026-01-01T00:00:00Z: every run begins at the same moment.
START_NS = 1_767_225_600_000_000_000

# Two webcams; a loop-back card, in which what is played to device 0 is recorded from device 1.
LIVE_DEVICES = [
    *("vivid.n_devs=2", "vivid.node_types=0x1,0x1", "vivid.num_inputs=1,1"),
    *("vivid.input_types=0,0", "snd_aloop.pcm_substreams=4"),
]

# Where a guest sees the directories of its job, wherever they are on the host.
PLACES = "/run/lab"

# To the kernel's process on the host: the directory of its job, by a name that is always the same.
CWD = "/proc/self/cwd"

ALMOST_NOTHING = 1_000_000  # bytes that are free on a disk that was too small for a run

LOOK = 0.2  # s between two looks at what a guest says

# Set by who was interrupted: guests of other threads end at once, and no others begin.
INTERRUPTED = threading.Event()

# After this the rest of a run is worth nothing, and what was killed is often waited for in vain.
OUT_OF_MEMORY = "Out of memory:"

# What a kernel says when it found a fault in itself. "Call Trace" alone is no sign of one: fault
# injection prints one for every failure it was asked for. Memory on a disk (tempdir) is no fault.
REPORTS = re.compile(
    r"BUG: |BUG at |WARNING: (?!tempdir)|Kernel panic|Oops|kernel mode fault|UBSAN: |ODEBUG: "
    r"|refcount_t: "
    r"|possible (recursive locking|circular locking|irq lock inversion)|inconsistent lock state"
    r"|suspicious RCU usage|DEBUG_LOCKS_WARN|[1-9]\d* new suspected memory leaks"
    rf"|INFO: task .* blocked|soft lockup|rcu_.* detected .*stall|{OUT_OF_MEMORY}|invalid opcode",
    re.IGNORECASE,
)


def seed(text: str) -> int:
    """A seed as an option has it, in the limits of a scenario's own."""
    if not re.fullmatch(r"[0-9]{1,10}", text) or int(text) >= 1 << 32:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number from 0 to {(1 << 32) - 1}")
    return int(text)


def memory(text: str) -> str:
    """Memory of a guest as an option has it: less than this and its kernel does not begin."""
    found = re.fullmatch(r"([1-9][0-9]{0,6})([KMG])", text.upper())
    if not found or _bytes(found) < 64 << 20:
        raise argparse.ArgumentTypeError(f"{text!r}: expected 64M or more, such as 512M or 1G")
    return text


def seconds(text: str) -> float:
    """A time as an option has it."""
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 < found < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r}: expected seconds, more than 0")
    return found


def _bytes(memory: re.Match[str]) -> int:
    return int(memory[1]) << {"K": 10, "M": 20, "G": 30}[memory[2]]


@dataclass(frozen=True)
class Job:
    """One command for one guest. `directory` receives its console log, output and exit status.

    `root` is the image that the guest runs on, the host's own file tree without one; it is
    read-only unless the job is there to `change` it.
    `places` names directories of the host that a guest on an image knows as /run/lab/NAME, and
    they are all that it sees of the host: a program such as node, whose garbage collector sees
    how long its strings are, must not see their paths. It may change those that are `writable`.
    """

    directory: Path
    command: list[str]
    root: Path | None = None
    change: bool = False
    places: dict[str, Path] = field(default_factory=dict)
    writable: tuple[str, ...] = ("out",)
    environment: dict[str, str] = field(default_factory=dict)
    cwd: Path = field(default_factory=Path.cwd)
    seed: int = 1
    memory: str = "1G"
    real_time: bool = False
    timeout: float = 600.0


@dataclass(frozen=True)
class Result:
    """How a guest ended: the command's exit status, or None if the guest did not get that far."""

    status: int | None
    reports: list[str]
    timed_out: bool
    wall: float
    console: Path
    output: Path

    @property
    def good(self) -> bool:
        return self.status == 0 and not self.reports and not self.timed_out

    def kept(self, console: Path, output: Path) -> "Result":
        """The same with its two logs moved there, where what it explains then points to."""
        self.console.rename(console)
        self.output.rename(output)
        return replace(self, console=console, output=output)

    def explain(self) -> str:
        """One line on what went wrong."""
        if self.reports:
            return f"the kernel reported a fault, see {self.console}: {self.reports[0]}"
        if self.timed_out:
            return (
                f"the guest was stopped after {self.wall:.0f} s; a program that waits in a busy "
                f"loop stops virtual time (output: {self.output}, kernel: {self.console})"
            )
        full = shutil.disk_usage(self.output.parent).free < ALMOST_NOTHING
        why = f"; the disk of {self.output.parent} is full" if full else ""
        if self.status is None:
            last = self.console.read_text(errors="replace").strip().rpartition("\n")[2]
            return f"the guest died before its command ended, see {self.console}: {last}{why}"
        return f"the command in the guest ended with status {self.status}, see {self.output}{why}"


class Told:
    """What a guest's command says, bit by bit: its terminal ends each line with two characters,
    of which the first would have the host's terminal overwrite the line."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._half = ""

    def text(self, data: bytes) -> str:
        text = (self._half + self._decode(data)).replace("\r\n", "\n")
        self._half = "\r" if text.endswith("\r") else ""
        return text.removesuffix("\r")


def kernel_reports(console: str) -> list[str]:
    """Lines of a console log in which the kernel complains of itself."""
    return [line.strip() for line in console.splitlines() if REPORTS.search(line)]


def command_line(kernel: Kernel, job: Job) -> list[str]:
    """The kernel command line: nothing in it depends on the run."""
    line = [f"mem={job.memory}", "root=/dev/root", "rootfstype=hostfs"]
    if job.root:
        line += [f"rootflags={CWD}/root", "rw" if job.change else "ro", "init=/init"]
    else:
        line += ["rootflags=/", "rw", f"init={CWD}/init"]
    line += ["norandmaps", "con=null", "con0=null,fd:1", "con1=null,fd:3"]
    if kernel.fast:
        line.append("seccomp=on")
    if kernel.variant == "live":
        line += LIVE_DEVICES
    if not job.real_time:
        line += ["time-travel=inf-cpu", f"time-travel-start={START_NS}"]
    return line


def environment(built: Kernel, modules: Path | None) -> dict[str, str]:
    """What programs in a guest find in their environment."""
    values = {
        "PAQM_REPO": str(cache.REPO),
        "PAQM_BUILD": str(cache.REPO / "build"),
        "PAQM_KDIR": str(built.tree),
        "TC_LIB_DIR": str(cache.REPO / "build" / "userspace" / "tc-paqm"),
        "GST_PLUGIN_PATH": str(cache.REPO / "build" / "streamer"),
        "NODE_PATH": str(cache.cache_dir() / "node" / "node_modules"),
        "PYTHONPATH": str(cache.TESTBED),
        "PYTHONDONTWRITEBYTECODE": "1",
        # What a processor has must not show: its own random numbers (BoringSSL and OpenSSL use
        # them), and multiply-add, with which exp() and pow() differ in the last bit.
        "OPENSSL_ia32cap": "~0x4000000000000000",
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-FMA,-FMA4",
        "LC_ALL": "C.UTF-8",
        "TMPDIR": "/run/tmp",
        "HOME": "/run/tmp",
    }
    if modules:
        values["PAQM_KO_DIR"] = str(modules)
    return values


def inside(places: dict[str, Path], text: str) -> str:
    """The text with the paths that the guest knows instead of the host's.

    Those of the guest itself stay: a clone may be /lab or /build, as in a container.
    """
    names = {str(path): f"{PLACES}/{name}" for name, path in reversed(places.items())}
    longest_first = map(re.escape, sorted(names, key=len, reverse=True))
    known = rf"({PLACES}/\w+|{'|'.join(longest_first)})(?![\w.-])"
    below = r"((?:/[\w.+@%~-]*)*)"  # in which a name such as lab is no path
    return re.sub(known + below, lambda found: names.get(found[1], found[1]) + found[2], text)


def _link(name: Path, target: Path) -> None:
    name.unlink(missing_ok=True)
    name.symlink_to(target)


def _write_job(job: Job) -> None:
    job.directory.mkdir(parents=True, exist_ok=True)
    if job.root:
        _link(job.directory / "root", job.root)
    lines = ["#!/bin/sh"]
    for name, path in job.places.items():
        (job.directory / "places").mkdir(exist_ok=True)
        _link(job.directory / "places" / name, path)
        readable = "" if name in job.writable else "-r "
        mount = f"mount {readable}-t hostfs -o {CWD}/places/{name} {name} {PLACES}/{name}"
        lines.append(f"mkdir -p {PLACES}/{name} && {mount} || exit 126")
    lines += [f"export {name}={shlex.quote(value)}" for name, value in job.environment.items()]
    lines += [f"cd {shlex.quote(str(job.cwd))} || exit 126", f"exec {shlex.join(job.command)}"]
    main = job.directory / "main"
    main.write_text("\n".join(lines) + "\n")
    main.chmod(0o755)
    shutil.copy(cache.TESTBED / "guest" / "init", job.directory / "init")
    for name in ("status", "output.log", "console.log"):
        (job.directory / name).unlink(missing_ok=True)


@contextlib.contextmanager
def _own_cpu() -> Iterator[list[int]]:
    """A CPU that no other guest of this user has, or all of them when each has one.

    A guest never does two things at once, but every system call of its programs is a switch
    between two processes of the host: on one CPU that is twice as fast as across two.
    """
    allowed = sorted(os.sched_getaffinity(0))
    for cpu in allowed:
        with (cache.cache_dir() / f"cpu-{cpu}.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield [cpu]
            return
    yield allowed


def _fits(memory: str, place: str) -> bool:
    """May the memory of a guest, a file that it executes, be there? Not on hardened hosts, where it
    is mounted noexec, and not in most containers, which give it 64 MB."""
    found = re.fullmatch(r"(\d+)([KMG])", memory.upper())
    need = _bytes(found) if found else 0
    return cache.may_execute(place) and shutil.disk_usage(place).free >= need


@functools.cache
def _fixed_addresses() -> list[str]:
    """Puts what the guest's kernel uses at the same addresses each time, where that is permitted:
    Docker's default profile forbids it. Packet logs are the same without.
    """
    words = ["setarch", "-R"]
    return [] if subprocess.run([*words, "true"], stderr=subprocess.DEVNULL).returncode else words


@contextlib.contextmanager
def pool(workers: int) -> Iterator[ThreadPoolExecutor]:
    """Threads that run guests: after a failure no more begin, after Ctrl-C those there end, too."""
    with ThreadPoolExecutor(max_workers=workers) as threads:
        try:
            yield threads
        except BaseException as err:
            if not isinstance(err, Exception):
                INTERRUPTED.set()
            threads.shutdown(wait=False, cancel_futures=True)
            raise


def run(kernel: Kernel, job: Job, on_output: Callable[[str], None] | None = None) -> Result:
    """Boots the guest and waits for its end; `on_output` gets what the command writes, live."""
    with _own_cpu() as cpus:
        return _run(kernel, job, cpus, on_output)


def _run(
    kernel: Kernel, job: Job, cpus: list[int], on_output: Callable[[str], None] | None
) -> Result:
    cache.need_programs(["setarch", "setpriv", "taskset", "ip"], "the lab")
    if not os.access(kernel.binary, os.X_OK):
        raise LabError(f"{kernel.binary} is not there; delete {kernel.tree.parent} to rebuild it")
    _write_job(job)
    cache.need_execution(job.directory)
    console = job.directory / "console.log"
    output = job.directory / "output.log"
    # User-Mode Linux makes a directory for its management socket below HOME.
    environment = {"PATH": os.environ.get("PATH", ""), "HOME": str(job.directory)}
    if not _fits(job.memory, "/dev/shm"):
        environment["TMPDIR"] = str(cache.cache_dir())  # the kernel itself is executed there
    if not job.real_time:
        environment["LD_PRELOAD"] = str(cache.detrand_library())
        environment["PAQM_SEED"] = str(job.seed)
    # The shell opens the command's output as descriptor 3, which the guest knows as /dev/tty1.
    command = ["sh", "-c", 'ulimit -c 0; exec "$@" 3>output.log', "sh"]
    command += [*_fixed_addresses(), *MORTAL]
    command += ["taskset", "-c", ",".join(map(str, cpus))]
    command += [str(kernel.binary), *command_line(kernel, job)]
    started = time.monotonic()
    timed_out = False
    output.touch()
    heard = b""
    told = Told()
    with console.open("wb") as log, console.open("rb") as said, output.open("rb") as follow:
        process = subprocess.Popen(
            command,
            cwd=job.directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        ended = os.pidfd_open(process.pid)  # process.wait(timeout) asks fifty times a second
        try:
            while True:
                select.select([ended], [], [], LOOK)
                if process.poll() is None:
                    timed_out = time.monotonic() - started > job.timeout
                text = told.text(follow.read())
                if text and on_output:
                    on_output(text)
                *lines, heard = (heard + said.read()).split(b"\n")
                hopeless = any(OUT_OF_MEMORY.encode() in line for line in lines)
                hopeless = hopeless or INTERRUPTED.is_set()
                if hopeless or timed_out or process.returncode is not None:
                    break
        finally:
            # The guest's processes are children of the kernel's: the whole group ends together.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            os.close(ended)
    status_file = job.directory / "status"
    # Empty on a full disk, or when the time was over while it was written.
    written = status_file.read_text().strip() if status_file.exists() else ""
    status = int(written) if written else None
    shutil.rmtree(job.directory / ".uml", ignore_errors=True)
    return Result(
        status=status,
        reports=kernel_reports(console.read_text(errors="replace")),
        timed_out=timed_out,
        wall=time.monotonic() - started,
        console=console,
        output=output,
    )
