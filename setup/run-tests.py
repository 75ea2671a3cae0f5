#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Runs all tests but the slow ones and ends with a line `N passed, N failed`.

Two suites run at a time (--jobs), but for those that need the machine for themselves. What a suite
prints is shown when it ends; what is counted is the suites' own cases: linters, Meson tests, pytest
cases, `ok`/`not ok` lines of the lab tests inside the guest, checks of a demo run.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parent.parent
LAB = TOP / "testbed" / "paqm-lab"
OUT = TOP / "out" / "test"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "paqm"

Result = tuple[int, list[str]]  # passed, names of what failed


class Children:
    """Every command that runs, so that all end with this program."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[str]] = set()
        self._lock = threading.Lock()
        self._stopped = False

    @contextlib.contextmanager
    def start(self, cmd: list[str]) -> Iterator[subprocess.Popen[str]]:
        """Starts a command in a process group of its own."""
        with self._lock:
            if self._stopped:
                raise InterruptedError
            proc = subprocess.Popen(
                cmd, cwd=TOP, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                errors="replace", stdin=subprocess.DEVNULL, start_new_session=True,
            )
            self._running.add(proc)
        try:
            yield proc
            proc.wait()
        finally:
            with self._lock:
                self._running.discard(proc)

    def stop(self) -> None:
        """Ends all; guests and tests end with what started them."""
        with self._lock:
            self._stopped = True
            left = list(self._running)
        for kind, grace in ((signal.SIGTERM, 5.0), (signal.SIGKILL, 0.0)):
            for proc in left:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(proc.pid, kind)
            end = time.monotonic() + grace
            while time.monotonic() < end and any(proc.poll() is None for proc in left):
                time.sleep(0.1)


children = Children()


@dataclass
class Output:
    """What a suite says."""

    name: str
    lines: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)  # with their reasons

    def log(self) -> Path:
        return OUT / f"{self.name}.log"

    def run(self, cmd: list[str]) -> tuple[int, str]:
        """Runs a command; its status and output, which is kept, too."""
        lines: list[str] = []
        with self.log().open("w") as log, children.start(cmd) as proc:
            assert proc.stdout is not None
            for line in proc.stdout:
                log.write(line)
                log.flush()
                lines.append(line)
                self.lines.append(line.rstrip("\n"))
        return proc.returncode, "".join(lines)


@dataclass(frozen=True)
class Suite:
    run: Callable[[Output], Result]
    slow: bool = False  # only when named
    alone: bool = False  # its tests run in real time, and on all CPUs


def marked(*cmd: str) -> Callable[[Output], Result]:
    """A suite that prints `ok NAME` and `not ok NAME` lines."""

    def run(out: Output) -> Result:
        status, text = out.run(list(cmd))
        passed = len(re.findall(r"^ok ", text, re.M))
        failed = re.findall(r"^not ok (.*)", text, re.M)
        out.skipped += re.findall(r"^skip (.*)", text, re.M)
        if status != 0 and not failed:
            failed = [f"exit status {status}"]
        elif passed == 0 and not failed and not out.skipped:
            failed = ["no test ran"]
        return passed, failed

    return run


def user_space(build: str) -> Callable[[Output], Result]:
    # Limits are there for what hangs; a busy machine is no failure.
    cmd = ["meson", "test", "-C", build, "--print-errorlogs", "--no-rebuild",
           "--timeout-multiplier", "10"]

    def run(out: Output) -> Result:
        status, _ = out.run(cmd)
        passed, failed = 0, []
        report = TOP / build / "meson-logs" / "testlog.json"
        for line in report.read_text().splitlines():
            case = json.loads(line)
            if case["result"] == "OK":
                passed += 1
            elif case["result"] != "SKIP":
                failed.append(case["name"])
        if status != 0 and not failed:
            failed = [f"meson test: exit status {status}"]
        return passed, failed

    return run


def python_tests(out: Output) -> Result:
    report = OUT / "pytest.xml"
    cmd = [str(CACHE / "venv" / "bin" / "python"), "-m", "pytest", "-q", "-p", "no:cacheprovider",
           f"--junitxml={report}", "testbed/tests", "-c", "testbed/pyproject.toml"]
    status, _ = out.run(cmd)
    passed, failed = 0, []
    for case in ET.parse(report).iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failed.append(f"{case.get('classname')}.{case.get('name')}")
        elif case.find("skipped") is None:
            passed += 1
    if status != 0 and not failed:
        failed = [f"pytest: exit status {status}"]
    return passed, failed


def tc_in_guest(guest: list[str]) -> Callable[[Output], Result]:
    def run(out: Output) -> Result:
        status, text = out.run([*guest, "userspace/tc-paqm/tests/lab_tc.py"])
        summary = re.search(r"^(\d+) checks, (\d+) wrong", text, re.M)
        if not summary:
            return 0, [f"exit status {status}, no summary"]
        checks, wrong = int(summary[1]), int(summary[2])
        failed = ["tc in the guest"] * wrong
        return checks - wrong, failed or ([] if status == 0 else [f"exit status {status}"])

    return run


def demo_run(out: Output) -> Result:
    where = OUT / "demo"
    status, _ = out.run([str(LAB), "run", "demo", "--variant", "paqm", "--out", str(where)])
    if status != 0:
        return 0, [f"exit status {status}"]
    checks = json.loads((where / "result.json").read_text())["checks"]
    for check in checks:
        out.lines.append(f"{'ok' if check['pass'] else 'not ok'} {check['name']}: {check['value']} "
                         f"(limit {check['limit']} {check['unit']})")
    return sum(c["pass"] for c in checks), [c["name"] for c in checks if not c["pass"]]


def suites(build: str, kernel: str | None) -> dict[str, Suite]:
    """All suites, in the order in which they start: the longest ones first."""
    guest = [str(LAB), "exec"]
    checked = [*guest, "--debug-kernel", "--memory", "512M"]
    if kernel:  # older ones are not built with the checkers
        guest += ["--kernel", kernel]
        checked = guest
    tests = "kernel/lab-tests"
    ecn = ["--timeout", "900", "streamer/lab/ecn.py", "--build", build]
    daemon = [f"{build}/feedback-daemon/{name}" for name in ("paqmd", "paqmctl")]
    return {
        "user-space": Suite(user_space(build), alone=True),
        "tdc": Suite(marked(*guest, "--timeout", "7200", "kernel/tc-tests/run.py")),
        "lab-python": Suite(python_tests),
        "reach": Suite(marked(*guest, "streamer/lab/reach.py", "--build", build)),
        "ecn": Suite(marked(*guest, *ecn, "ect0", "ect1", "paqm-ect0", "paqm-ect1")),
        "encoders": Suite(marked(*guest, "streamer/lab/lab_encoders.py", "--build", build)),
        "carriers": Suite(marked(*guest, f"{tests}/carriers.py", "--build", build)),
        "handover": Suite(marked(*guest, "streamer/lab/handover.py", "--build", build)),
        "repair": Suite(marked(*guest, "streamer/tests/lab_repair.py", "--build", build)),
        "call": Suite(marked(*guest, "streamer/lab/call_repair.py", "--build", build)),
        "loopback": Suite(marked(
            *guest, "--memory", "1G", "bash", "streamer/tests/lab_loopback.sh", build)),
        "demo": Suite(demo_run),
        "lint": Suite(marked("setup/lint.sh")),
        "fuzz": Suite(marked("setup/fuzz.sh", "2")),
        "kunit": Suite(marked(*guest, "bash", f"{tests}/kunit.sh")),
        "frames": Suite(marked(*guest, "kernel/fuzz/lab_frames.py", "--count", "500")),
        "qdisc": Suite(marked(*guest, "bash", f"{tests}/qdisc.sh")),
        "isolate": Suite(marked(*guest, "bash", f"{tests}/isolate.sh")),
        "classes": Suite(marked(*guest, "bash", f"{tests}/classes.sh")),
        "auto": Suite(marked(*guest, "bash", f"{tests}/auto.sh")),
        "feedback": Suite(marked(*guest, "bash", f"{tests}/feedback.sh")),
        "ways": Suite(marked(*guest, "bash", f"{tests}/ways.sh")),
        "reload": Suite(marked(*checked, "bash", f"{tests}/reload.sh")),
        "attack": Suite(marked(
            "feedback-daemon/attack/run.py", "--build", build, "--only", "lab", "--scale", "50",
            "--out", str(OUT / "attack"))),
        "daemon": Suite(marked(*guest, "feedback-daemon/tests/process.py", "--all", *daemon)),
        "retune": Suite(marked(
            *guest, "--memory", "512M", "libpaqmclient/tests/lab_retune.py", build)),
        "tc": Suite(tc_in_guest(guest)),
        "man": Suite(marked(*guest, "userspace/tc-paqm/tests/man_examples.py")),
        "examples": Suite(marked(*guest, "docs/examples/examples.py")),
        "bpf": Suite(marked(*guest, "userspace/tc-paqm/tests/lab_bpf.py")),
        "recipes": Suite(marked(*guest, "userspace/tc-paqm/tests/lab_recipes.py")),
        "tdc-self": Suite(marked(*guest, "kernel/tc-tests/selftest.py")),
        "acceptance": Suite(marked(f"{tests}/spec.py", "run", "--build", build), slow=True),
        "multirouter": Suite(marked(str(LAB), "multirouter"), slow=True),
        "tdc-debug": Suite(
            marked(*checked, "--timeout", "7200", "kernel/tc-tests/run.py"), slow=True),
        "tdc-kernel": Suite(marked("kernel/tc-tests/upstream.py"), slow=True),
    }


class Progress:
    """The suites that run now: one line on a terminal, in a log one a minute."""

    def __init__(self, total: int) -> None:
        self.total, self.done = total, 0
        self.since: dict[str, float] = {}
        self.begin = self.told = time.monotonic()

    def show(self) -> None:
        now = time.monotonic()
        running = ", ".join(f"{name} {now - begin:.0f} s" for name, begin in self.since.items())
        line = f"{self.done} of {self.total} suites, {now - self.begin:.0f} s; running: {running}"
        if sys.stdout.isatty():
            print(f"\r\033[K{line[:os.get_terminal_size().columns - 1]}", end="", flush=True)
        elif now - self.told >= 60:
            self.told = now
            print(line, flush=True)

    def clear(self) -> None:
        if sys.stdout.isatty():
            print("\r\033[K", end="")


Count = dict[str, Any]  # passed, failed, skipped, wall_s


def run_all(wanted: dict[str, Suite], jobs: int) -> dict[str, Count]:
    """Runs the suites, shows each when it ends, gives their counts."""
    ended: queue.Queue[tuple[Output, Result]] = queue.Queue()
    waiting = list(wanted.items())
    running: dict[str, Suite] = {}
    counts: dict[str, Count] = {}
    progress = Progress(len(waiting))

    def work(suite: Suite, out: Output) -> None:
        try:
            ended.put((out, suite.run(out)))
        except Exception as err:  # a suite that cannot even be run has failed
            ended.put((out, (0, [f"{type(err).__name__}: {err}"])))

    while waiting or running:
        while waiting and len(running) < jobs:
            name, suite = waiting[0]
            if running and (suite.alone or any(other.alone for other in running.values())):
                break
            waiting.pop(0)
            running[name] = suite
            progress.since[name] = time.monotonic()
            threading.Thread(target=work, args=(suite, Output(name)), daemon=True).start()
        progress.show()
        try:
            out, (passed, failed) = ended.get(timeout=1)
        except queue.Empty:
            continue
        del running[out.name]
        wall = round(time.monotonic() - progress.since.pop(out.name))
        progress.done += 1
        counts[out.name] = {
            "passed": passed, "failed": failed, "skipped": out.skipped, "wall_s": wall}
        progress.clear()
        print(f"== {out.name}")
        for line in out.lines:
            print(f"  {line}")
        print(f"== {out.name}: {passed} passed, {len(failed)} failed, {len(out.skipped)} skipped, "
              f"{wall} s", flush=True)
    return counts


def main() -> int:
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--build", default="build", help="Meson build directory")
    ap.add_argument("--only", action="append", metavar="SUITE", help="run only this suite")
    ap.add_argument("--jobs", type=int, default=min(2, len(os.sched_getaffinity(0))), metavar="N",
                    help="suites at a time")
    ap.add_argument("--kernel", metavar="X.Y", help="guests run Debian's kernel of that release")
    ap.add_argument("--json", type=Path, metavar="FILE", help="write the counts there too")
    args = ap.parse_args()
    known = suites(args.build, args.kernel)
    unknown = set(args.only or []) - set(known)
    if unknown:
        ap.error(f"no suite {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    wanted = {name: suite for name, suite in known.items()
              if (name in args.only if args.only else not suite.slow)}
    OUT.mkdir(parents=True, exist_ok=True)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        counts = run_all(wanted, args.jobs)
    except KeyboardInterrupt:
        print("\nrun-tests: interrupted", file=sys.stderr)
        return 130
    finally:
        children.stop()
    passed = sum(count["passed"] for count in counts.values())
    failed = [f"{name}: {what}" for name, count in counts.items() for what in count["failed"]]
    if args.json:
        args.json.write_text(json.dumps(counts, indent=1) + "\n")
    for what in failed:
        print(f"FAILED {what}")
    print(f"{passed} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
