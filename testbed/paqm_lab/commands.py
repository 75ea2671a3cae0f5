# SPDX-License-Identifier: GPL-2.0
"""Commands in the namespaces of a network's hosts: how programs are started, asked and grouped."""

import contextlib
import ctypes
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO

HERE = ""  # the host that is the namespace of who makes the network
CLONE_NEWNET = 0x40000000
# Before the words of a program: it does not outlive the thread that starts it, however that ends.
MORTAL = ("setpriv", "--pdeathsig", "KILL")


class CommandFailed(Exception):
    """A command was refused; the text has its words and its answer."""


def run(*words: str, stdin: str = "") -> str:
    """Output of a command, which must succeed."""
    done = subprocess.run(words, capture_output=True, text=True, input=stdin or None)
    if done.returncode:
        raise CommandFailed(f"{' '.join(words)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def into(host: str) -> list[str]:
    """Words before a command that is to run in a host's namespace."""
    return ["ip", "netns", "exec", host] if host else []


def of(host: str) -> list[str]:
    """Words by which ip and tc are told a host's namespace."""
    return ["-n", host] if host else []


def inside(host: str, *words: str, stdin: str = "") -> str:
    """The same in a host's namespace."""
    return run(*into(host), *words, stdin=stdin)


def start(
    host: str, command: list[str], log: Path, out: Path | None = None
) -> subprocess.Popen[bytes]:
    """A program in a namespace; what it says goes to a log, which stands where it runs.

    `out`: where what it gives out goes instead.
    """
    with log.open("wb") as said, (out or Path(os.devnull)).open("wb") as given:
        return subprocess.Popen(
            [*into(host), *command],
            stdin=subprocess.DEVNULL,
            stdout=given if out else said,
            stderr=said,
            cwd=log.parent,
        )


def last_words(log: Path) -> str:
    """What a program said last; without a list below it, such as that of the known names."""
    lines = log.read_text(errors="replace").strip().splitlines()
    return next((x for x in reversed(lines) if not x[:1].isspace() and x), "it said nothing")


def batch(host: str, program: str, lines: list[str]) -> None:
    """Commands for one ip or tc of a host's namespace."""
    if not lines:
        return
    words = [program, *of(host), "-batch", "-"]
    done = subprocess.run(words, capture_output=True, text=True, input="\n".join(lines) + "\n")
    if done.returncode:
        said = (done.stderr or done.stdout).strip()
        at = re.search(r"Command failed -:(\d+)", said)
        failed = lines[int(at[1]) - 1] if at else "-batch -"
        raise CommandFailed(f"{' '.join(words[:-2])} {failed}: {said.partition(chr(10))[0]}")


def _enter(space: IO[str]) -> None:
    if ctypes.CDLL(None, use_errno=True).setns(space.fileno(), CLONE_NEWNET):
        raise CommandFailed(f"setns {space.name}: {os.strerror(ctypes.get_errno())}")


@contextlib.contextmanager
def within(host: str) -> Iterator[None]:
    """What is done and started in it is in a host's namespace."""
    if host == HERE:
        yield
        return
    with open("/proc/self/ns/net") as own, open(f"/run/netns/{host}") as other:
        _enter(other)
        try:
            yield
        finally:
            _enter(own)


class Teller:
    """A tc that tells of a host's queues, in JSON, whenever it is asked."""

    def __init__(self, host: str) -> None:
        self.words = ["tc", *of(host), "-s", "-j", "-batch", "-"]
        pipe = subprocess.PIPE
        self.tc = subprocess.Popen(self.words, stdin=pipe, stdout=pipe, stderr=pipe, text=True)

    def ask(self, *words: str) -> str:
        """What it says to a command; it ends with the first that is refused."""
        assert self.tc.stdin and self.tc.stdout and self.tc.stderr
        if not self.tc.stdin.closed:
            with contextlib.suppress(BrokenPipeError):
                self.tc.stdin.write(" ".join(words) + "\n")
                self.tc.stdin.flush()
        answer = self.tc.stdout.readline()
        if not answer.endswith("\n"):
            with contextlib.suppress(BrokenPipeError):  # or it would be written when Python ends
                self.tc.stdin.close()
            said = (answer + self.tc.stderr.read()).strip()
            raise CommandFailed(f"{' '.join([*self.words[:-2], *words])}: {said}")
        return answer

    def end(self) -> None:
        if self.tc.stdin and self.tc.stdin.closed:  # it was refused
            self.tc.wait()
        else:
            self.tc.communicate()
