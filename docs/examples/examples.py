#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Runs the examples of the manual pages and of the user guide as they stand there.

Only names of devices, of hosts and of the clip are put in the place of those shown (NAMES). What is
not run, and why, is in NOT_RUN. Examples of tc-paqm(8) are run by man_examples.py.

A comment before each example says how it is run:

  example: on HOST[,HOST...]  a host for each command, the last one for the rest; HOST&: the command
                              goes on while the next ones run
  ... for SECONDS             what still runs then is interrupted, as by Ctrl-C
  ... with paqmd | media      the sender has paqmd; and a stream through a router with P-AQM
  ... gives REGEX             what the commands must have said
  example: as config | C      a configuration of paqmd; part of a C program
  example: options on HOST    a table whose second column has options for tc ... paqm

An example of the guide that shows output of the walkthrough (walkthrough: ...) is compared with
what the walkthrough says now: the same words, numbers aside.

Usage, as root inside a lab guest: paqm-lab exec docs/examples/examples.py [PAGE...]
With names of pages, only these, and not the walkthrough.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TOP / "userspace" / "tc-paqm" / "tests"), str(TOP / "docs")]
import man_examples  # noqa: E402
import update_guide  # noqa: E402
import walkthrough  # noqa: E402

PLACE = Path("/run/examples")
PAGES = (
    "streamer/paqm-streamer.1",
    "testbed/paqm-trace.1",
    "feedback-daemon/man/paqmd.8",
    "feedback-daemon/man/paqmctl.1",
    "feedback-daemon/man/paqmd.conf.5",
    "libpaqmclient/libpaqmclient.3",
    "docs/user-guide.md",
)
HOSTS = {
    "sender": walkthrough.SENDER,
    "router": walkthrough.ROUTER,
    "receiver": walkthrough.SINK,
}
DEVICES = {"sender": "r", "router": "q", "receiver": "q"}
NAMES = {
    r"\bwwan0\b": "lo",
    r"\b192\.0\.2\.7\b": "10.4.0.2",
    r"\b198\.51\.100\.7\b": "10.4.0.2",
    r"\bFILE\.y4m\b": "/run/grain.y4m",
    r"\bclip\.y4m\b": "/run/grain.y4m",
}
INSTALLS = "installs into the system; `make test-packages` does that on stock systems"
CAMERA = "needs a camera, a microphone and a display; `make call-live` has them"
NAT = "needs hosts behind NAT and servers of STUN and TURN"
SHOWN = "output alone; the commands it comes from are run"
# The first line of a block, or a line of one.
NOT_RUN = {
    "make build": INSTALLS,
    "sudo make deb": INSTALLS,
    "systemctl enable --now paqmd": "there is no service manager; `make test-packages` has one",
    "paqm-streamer call --listen --secret key": CAMERA,
    "paqm-streamer call 192.0.2.7 --secret key --record monday": CAMERA,
    "paqm-streamer call --listen --secret key --stun stun.example.net": NAT,
    "paqm-streamer call --meet meet.example.": NAT,
    "  udp 10.0.1.2:55096 > 10.0.2.2:5004": "output alone; tc-paqm(8) shows it and is run",
    "    1   0.000000     10.1.0.1": SHOWN,
}
# In which a fragment of the manual page of the library becomes a program.
C_FRAME = """
#include <paqmclient.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t own_estimate(void) { return 300000; }
static void set_bitrate(uint64_t rate)
{
	printf("rate %llu\\n", (unsigned long long)rate);
	exit(rate < 100000);
}

int main(void)
{
BODY
	return 1;
}
"""
HOW = re.compile(
    r"(?:(?P<kind>on|as|options on) (?P<what>\S+))"
    r"(?: with (?P<with>paqmd|media))?(?: for (?P<for>\d+))?(?: gives (?P<gives>.+))?"
)
MAN_EXAMPLES = re.compile(r"^\.SH EXAMPLES?\n(.*?)(?=^\.SH )", re.M | re.S)
MAN_BLOCK = re.compile(r"^(?P<before>[^\n]*)\n\.nf\n(?P<body>.*?)^\.fi$", re.M | re.S)
GUIDE_BLOCK = re.compile(r"^(?P<before>[^\n]*)\n```\n(?P<body>.*?)^```$", re.M | re.S)
GUIDE_TABLE = re.compile(
    r"^(?P<before><!-- example: options .*)\n+(?P<body>(?:\|.*\n)+)", re.M
)
MARK = re.compile(r'^(?:\.\\" example: (.*)|<!-- example: (.*) -->)$')


class Wrong(Exception):
    """The example does not do what the page says."""


@dataclass
class Example:
    page: str
    how: re.Match[str] | None
    body: str

    @property
    def name(self) -> str:
        return f"{Path(self.page).name}: {self.body.strip().splitlines()[0].strip()[:60]}"


def read_page(path: str) -> list[Example]:
    """The examples of a page; each must say how it is run, or be in NOT_RUN."""
    text = (TOP / path).read_text()
    if path.endswith(".md"):
        found = [*GUIDE_BLOCK.finditer(text), *GUIDE_TABLE.finditer(text)]
    else:
        found = [
            block for part in MAN_EXAMPLES.findall(text) for block in MAN_BLOCK.finditer(part)
        ]
    examples = []
    for block in found:
        body = block["body"]
        if not path.endswith(".md"):
            body = "".join(man_examples.unroff(line) + "\n" for line in body.splitlines())
            body = body.replace("\\(aq", "'")
        if block["before"].startswith("<!-- walkthrough: "):
            continue
        mark = MARK.match(block["before"])
        how = HOW.fullmatch(mark[1] or mark[2]) if mark else None
        example = Example(path, how, body)
        if how is None and not any(body.startswith(line) for line in NOT_RUN):
            raise SystemExit(f"examples: nothing says how to run {example.name}")
        examples.append(example)
    return examples


def place(page: str) -> Path:
    """Where the examples of a page are run."""
    return PLACE / Path(page).name


# Programs


def named(text: str, host: str) -> str:
    """With the names that there are here."""
    for shown, here in {r"\beth0\b": DEVICES[host], **NAMES}.items():
        text = re.sub(shown, here, text)
    return text


# Wireshark runs no scripts for root. The clone may lie where only root can read.
AS_USER = "setpriv --reuid nobody --regid nogroup --clear-groups --inh-caps +dac_read_search "
AS_USER += "--ambient-caps +dac_read_search"


class Program:
    """A command line in a host, with a group of processes of its own."""

    def __init__(self, host: str, line: str) -> None:
        self.line = line
        self.log = Path(f"log-{time.monotonic_ns()}")
        script = named(line, host)
        if script.startswith("tshark "):
            script = f"{AS_USER} {script}"
        if re.match(r"\w+=", script):  # later lines use the variable
            keep = "declare -p | grep -E '^declare -- [a-z]+=' >.variables"
            script += f"\nstatus=$?; {keep}; exit $status"
        if Path(".variables").exists():
            script = f". ./.variables\n{script}"
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(
                ["ip", "netns", "exec", HOSTS[host], "bash", "-c", script],
                stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def finish(self, seconds: float, may_last: bool) -> str:
        """Waits, interrupts what lasts; what it said."""
        interrupted = False
        try:
            self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            interrupted = True
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGINT)
            try:
                self.process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
                raise Wrong(f"{self.line}: does not end when interrupted") from None
        said = self.log.read_text(errors="replace")
        if interrupted and not may_last:
            raise Wrong(f"{self.line}: has not ended after {seconds:g} s: {said}")
        # A shell tells of a program that ended by the signal by 130.
        allowed = (0, 130, -signal.SIGINT) if interrupted else (0,)
        if self.process.returncode not in allowed:
            raise Wrong(f"{self.line}: ended with {self.process.returncode}: {said}")
        return said


def commands(body: str) -> list[str]:
    """The command lines, without prompts; a line that ends with a backslash goes on."""
    joined = body.replace("\\\n", " ")
    lines = [re.sub(r"^[a-z-]*[#$] ", "", line) for line in joined.splitlines()]
    return [line for line in lines if line.strip()]


def run_commands(example: Example, how: re.Match[str]) -> None:
    lasting: list[Program] = []
    said = ""
    limit = float(how["for"] or 60)
    hosts = how["what"].split(",")
    try:
        for number, line in enumerate(commands(example.body)):
            host = hosts[min(number, len(hosts) - 1)]
            bare = line.split(" #")[0].rstrip()
            if bare in NOT_RUN:
                print(f"skip {Path(example.page).name}: {bare}: {NOT_RUN[bare]}")
            elif bare.endswith("&") or host.endswith("&"):
                lasting.append(Program(host.rstrip("&"), bare.removesuffix("&")))
                time.sleep(1)
            else:
                said += Program(host, line).finish(limit, bool(how["for"]))
    finally:
        trouble = []
        for program in reversed(lasting):
            try:
                said += program.finish(0.1, True)
            except Wrong as err:
                trouble.append(str(err))
    if trouble:
        raise Wrong("; ".join(trouble))
    if how["gives"] and not re.search(how["gives"], said):
        raise Wrong(f"does not say {how['gives']}: {said}")


def run_options(example: Example, host: str) -> None:
    rows = [row.split("|")[2] for row in example.body.splitlines()[2:]]
    words = [found for row in rows for found in re.findall(r"`([^`]+)`", row)]
    for option in words:
        line = f"tc qdisc replace dev eth0 root paqm bandwidth 20mbit feedback icmp {option}"
        Program(host, line).finish(10, False)
    if not words:
        raise Wrong("the table has no options")


def run_config(example: Example) -> None:
    Path("example.conf").write_text(named(example.body, "sender"))
    line = "paqmd -c example.conf --check-config"
    Program("sender", line).finish(10, False)
    words = dict.fromkeys(["interface", *re.findall(r"^(\w[\w-]*) ", example.body, re.M)])
    for word in words:  # a word that it does not know must not pass
        text = Path("example.conf").read_text().replace(word, f"{word}x")
        Path("wrong.conf").write_text(text)
        if Program("sender", line.replace("example", "wrong")).process.wait(timeout=10) != 2:
            raise Wrong(f"{word}x is taken for a setting")


def run_c(example: Example) -> None:
    Path("example.c").write_text(C_FRAME.replace("BODY", named(example.body, "sender")))
    library = walkthrough.BUILD / "libpaqmclient"
    compile_it = f"gcc -Wall -Werror -I{TOP}/libpaqmclient -o example example.c -L{library} "
    Program("sender", f"{compile_it} -Wl,-rpath,{library} -lpaqmclient").finish(60, False)
    if not Program("sender", "./example").finish(20, False).startswith("rate "):
        raise Wrong("it never sets a bit rate")


# The world


def prepare() -> None:
    """Hosts, programs and files that the examples take for granted."""
    PLACE.mkdir()
    for page in PAGES:
        place(page).mkdir()
        place(page).chmod(0o1777)  # tcpdump gives root up before it writes
        for name in ("testbed", "feedback-daemon"):
            (place(page) / name).symlink_to(TOP / name)
    # a Python environment, where programs look for it
    python = Path(os.environ["HOME"]) / ".cache" / "paqm" / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    # /etc is the image's: examples write to a copy
    subprocess.run(["cp", "-a", "/etc", "/run/etc"], check=True)
    subprocess.run(["mount", "--bind", "/run/etc", "/etc"], check=True)
    with open("/etc/passwd", "a") as users:
        users.write("paqm:x:4711:65534::/:/usr/sbin/nologin\n")
    for made in ("/etc/paqm", "/run/paqmd"):
        Path(made).mkdir()
        os.chmod(made, 0o755)
    shutil.chown("/run/paqmd", "paqm")
    where = [path.parent for path in walkthrough.PROGRAMS.values()] + [TOP / "testbed"]
    os.environ["PATH"] = ":".join([*map(str, where), os.environ["PATH"]])
    for name in ("PAQM_SOCKET", "PAQM_CONTROL"):
        os.environ.pop(name, None)


@contextlib.contextmanager
def situation(which: str | None) -> Iterator[None]:
    """What runs beside an example."""
    reset = "tc qdisc del dev q root 2>/dev/null; true"
    Program("router", reset).finish(5, False)
    for left in (Path(".variables"), *Path("/etc/paqm").iterdir()):
        left.unlink(missing_ok=True)
    lines = []
    if which:
        lines.append(("sender", "paqmd -i eth0"))
    if which == "media":
        Program(
            "router", "tc qdisc add dev q root paqm bandwidth 4mbit feedback icmp"
        ).finish(5, False)
        lines.append(("receiver", "paqm-streamer recv --listen 10.4.0.2:5004"))
        stream = "paqm-streamer send --to 10.4.0.2:5004 --bind 10.1.0.2:5004 --source FILE.y4m"
        lines.append(("sender", f"{stream} --loop"))
    programs = []
    try:
        for host, line in lines:
            programs.append(Program(host, line))
            time.sleep(1)
        if which == "media":
            time.sleep(3)
        yield
    except Wrong as err:
        logs = "".join(program.log.read_text(errors="replace") for program in programs)
        raise Wrong(f"{err}; beside it: {logs}") from None
    finally:
        for program in reversed(programs):
            program.finish(0.1, True)


# Counters that are shown only if there is something in them, and here there may be.
RARE = {"unfit"}
RARE_LINE = "beyond the fair rate:"  # the same, a whole line


def words(lines: list[str]) -> set[str]:
    """The words of an output; numbers, and how often each word is there, may differ."""
    lines = [line for line in lines if not line.strip().startswith(RARE_LINE)]
    number = r"\d\d:\d\d:\d\d\.\d+|[+x]?(?:[\d.]+|#)"
    return {re.sub(rf"^(?:{number})$", "#", word) for word in man_examples.shape(lines)} - RARE


def walk() -> list[bool]:
    """The walkthrough; is what the guide shows of it what it says?"""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        for step in walkthrough.STEPS:
            step()
    for host in HOSTS.values():
        pids = subprocess.run(["ip", "netns", "pids", host], capture_output=True, text=True)
        for pid in pids.stdout.split():
            with contextlib.suppress(ProcessLookupError):  # one may end with another
                os.kill(int(pid), signal.SIGKILL)
    print("".join(f"not ok walkthrough: {what}\n" for what in walkthrough.wrong), end="")
    good = [not walkthrough.wrong]
    found = update_guide.outputs(out.getvalue())
    for shown in update_guide.BLOCK.finditer(update_guide.GUIDE.read_text()):
        page = shown[0].splitlines()[2:-1]
        now = update_guide.block(shown[2], found).splitlines()[1:-1]
        differ = words(page) ^ words(now)
        good.append(not differ)
        print(f"{'not ok' if differ else 'ok'} user-guide.md: {shown[2]}")
        if differ:
            print(f"    only one of page and walkthrough has: {' '.join(sorted(differ))}")
    return good


def play(example: Example) -> bool:
    """One line on how it went; was it run?"""
    how = example.how
    if how is None:
        reason = next(why for line, why in NOT_RUN.items() if example.body.startswith(line))
        print(f"skip {example.name}: {reason}")
        return True
    try:
        with contextlib.chdir(place(example.page)), situation(how["with"]):
            if how["kind"] == "options on":
                run_options(example, how["what"])
            elif how["kind"] == "on":
                run_commands(example, how)
            elif how["what"] == "config":
                run_config(example)
            else:
                run_c(example)
    except Wrong as err:
        print(f"not ok {example.name}\n    {err}", flush=True)
        return False
    print(f"ok {example.name}", flush=True)
    return True


def main() -> int:
    chosen = sys.argv[1:]
    pages = [page for page in PAGES if not chosen or page in chosen]
    examples = [example for page in pages for example in read_page(page)]
    walkthrough.bring_up()
    good = [] if chosen else walk()
    prepare()
    good += [play(example) for example in examples]
    print(f"{len(good)} examples, {good.count(False)} wrong")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
