#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Runs all tests but the slow ones and ends with a line `N passed, N failed`.

Every suite prints as it goes; what is counted is the suites' own cases: linters, Meson tests,
pytest cases, `ok`/`not ok` lines of the lab tests inside the guest, checks of a demo run.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
LAB = TOP / "testbed" / "paqm-lab"
OUT = TOP / "out" / "test"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "paqm"

SLOW = {"acceptance", "multirouter", "tdc", "tdc-debug", "tdc-kernel"}  # only when named

Result = tuple[int, list[str]]  # passed, names of what failed
skipped: list[str] = []  # by the suite that runs, with their reasons


def stream(cmd: list[str], log: Path) -> tuple[int, str]:
    """Run a command, show and keep its output."""
    lines: list[str] = []
    with (
        log.open("w") as out,
        subprocess.Popen(
            cmd, cwd=TOP, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace", stdin=subprocess.DEVNULL,
        ) as proc,
    ):
        assert proc.stdout is not None
        for line in proc.stdout:
            out.write(line)
            lines.append(line)
            print("  " + line, end="", flush=True)
    return proc.returncode, "".join(lines)


def marked(name: str, cmd: list[str]) -> Result:
    """A suite that prints `ok NAME` and `not ok NAME` lines."""
    status, text = stream(cmd, OUT / f"{name}.log")
    passed = len(re.findall(r"^ok ", text, re.M))
    failed = re.findall(r"^not ok (.*)", text, re.M)
    skipped.extend(re.findall(r"^skip (.*)", text, re.M))
    if status != 0 and not failed:
        failed = [f"{name}: exit status {status}"]
    elif passed == 0 and not failed and not skipped:
        failed = [f"{name}: no test ran"]
    return passed, failed


def lint() -> Result:
    return marked("lint", ["setup/lint.sh"])


def user_space(build: str) -> Result:
    # Limits are there for what hangs; a busy machine is no failure.
    cmd = ["meson", "test", "-C", build, "--print-errorlogs", "--no-rebuild",
           "--timeout-multiplier", "10"]
    status, _ = stream(cmd, OUT / "meson.log")
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


def python_tests() -> Result:
    report = OUT / "pytest.xml"
    cmd = [str(CACHE / "venv" / "bin" / "python"), "-m", "pytest", "-q", "-p", "no:cacheprovider",
           f"--junitxml={report}", "testbed/tests", "-c", "testbed/pyproject.toml"]
    status, _ = stream(cmd, OUT / "pytest.log")
    passed, failed = 0, []
    for case in ET.parse(report).iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failed.append(f"{case.get('classname')}.{case.get('name')}")
        elif case.find("skipped") is None:
            passed += 1
    if status != 0 and not failed:
        failed = [f"pytest: exit status {status}"]
    return passed, failed


def tc_in_guest(guest: list[str]) -> Result:
    status, text = stream([*guest, "userspace/tc-paqm/tests/lab_tc.py"], OUT / "tc.log")
    summary = re.search(r"^(\d+) checks, (\d+) wrong", text, re.M)
    if not summary:
        return 0, [f"tc in the guest: exit status {status}, no summary"]
    checks, wrong = int(summary[1]), int(summary[2])
    return checks - wrong, ["tc in the guest"] * wrong or ([] if status == 0 else ["tc: status"])


def demo_run() -> Result:
    out = TOP / "out" / "test" / "demo"
    status, _ = stream([str(LAB), "run", "demo", "--variant", "paqm", "--out", str(out)],
                       OUT / "demo.log")
    if status != 0:
        return 0, [f"demo run: exit status {status}"]
    checks = json.loads((out / "result.json").read_text())["checks"]
    for check in checks:
        print(f"  {'ok' if check['pass'] else 'not ok'} {check['name']}: {check['value']} "
              f"(limit {check['limit']} {check['unit']})")
    return sum(c["pass"] for c in checks), [c["name"] for c in checks if not c["pass"]]


def main() -> int:
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--build", default="build", help="Meson build directory")
    ap.add_argument("--only", action="append", metavar="SUITE", help="run only this suite")
    ap.add_argument("--kernel", metavar="X.Y", help="guests run Debian's kernel of that release")
    ap.add_argument("--json", type=Path, metavar="FILE", help="write the counts there too")
    args = ap.parse_args()
    guest = [str(LAB), "exec"]
    checked = [*guest, "--debug-kernel", "--memory", "512M"]
    if args.kernel:  # older ones are not built with the checkers
        guest += ["--kernel", args.kernel]
        checked = guest
    suites: dict[str, Callable[[], Result]] = {
        "lint": lint,
        "user-space": lambda: user_space(args.build),
        "lab-python": python_tests,
        "fuzz": lambda: marked("fuzz", ["setup/fuzz.sh", "2"]),
        "kunit": lambda: marked("kunit", [*guest, "bash", "kernel/lab-tests/kunit.sh"]),
        "frames": lambda: marked("frames", [*guest, "kernel/fuzz/lab_frames.py", "--count", "500"]),
        "qdisc": lambda: marked("qdisc", [*guest, "bash", "kernel/lab-tests/qdisc.sh"]),
        "isolate": lambda: marked("isolate", [*guest, "bash", "kernel/lab-tests/isolate.sh"]),
        "classes": lambda: marked("classes", [*guest, "bash", "kernel/lab-tests/classes.sh"]),
        "auto": lambda: marked("auto", [*guest, "bash", "kernel/lab-tests/auto.sh"]),
        "feedback": lambda: marked("feedback", [*guest, "bash", "kernel/lab-tests/feedback.sh"]),
        "ways": lambda: marked("ways", [*guest, "bash", "kernel/lab-tests/ways.sh"]),
        "attack": lambda: marked(
            "attack", ["feedback-daemon/attack/run.py", "--build", args.build, "--only", "lab",
                       "--scale", "50", "--out", str(OUT / "attack")]),
        "carriers": lambda: marked(
            "carriers", [*guest, "kernel/lab-tests/carriers.py", "--build", args.build]),
        "handover": lambda: marked(
            "handover", [*guest, "streamer/lab/handover.py", "--build", args.build]),
        "ecn": lambda: marked(
            "ecn", [*guest, "--timeout", "900", "streamer/lab/ecn.py", "--build", args.build,
                    "ect0", "ect1", "paqm-ect0", "paqm-ect1"]),
        "encoders": lambda: marked(
            "encoders", [*guest, "streamer/lab/lab_encoders.py", "--build", args.build]),
        "repair": lambda: marked(
            "repair", [*guest, "streamer/tests/lab_repair.py", "--build", args.build]),
        "loopback": lambda: marked("loopback", [*guest, "--memory", "1G", "bash",
                                                "streamer/tests/lab_loopback.sh", args.build]),
        "call": lambda: marked(
            "call", [*guest, "streamer/lab/call_repair.py", "--build", args.build]),
        "reach": lambda: marked(
            "reach", [*guest, "streamer/lab/reach.py", "--build", args.build]),
        "acceptance": lambda: marked(
            "acceptance", ["kernel/lab-tests/spec.py", "run", "--build", args.build]),
        "multirouter": lambda: marked(
            "multirouter", [str(LAB), "multirouter"]),
        "tdc": lambda: marked("tdc", [*guest, "--timeout", "7200", "kernel/tc-tests/run.py"]),
        "daemon": lambda: marked(
            "daemon", [*guest, "feedback-daemon/tests/process.py", "--all",
                       *(f"{args.build}/feedback-daemon/{name}" for name in ("paqmd", "paqmctl"))]),
        "retune": lambda: marked("retune", [*guest, "--memory", "512M",
                                            "libpaqmclient/tests/lab_retune.py", args.build]),
        "tc": lambda: tc_in_guest(guest),
        "man": lambda: marked("man", [*guest, "userspace/tc-paqm/tests/man_examples.py"]),
        "examples": lambda: marked("examples", [*guest, "docs/examples/examples.py"]),
        "bpf": lambda: marked("bpf", [*guest, "userspace/tc-paqm/tests/lab_bpf.py"]),
        "recipes": lambda: marked("recipes", [*guest, "userspace/tc-paqm/tests/lab_recipes.py"]),
        "reload": lambda: marked("reload", [*checked, "bash", "kernel/lab-tests/reload.sh"]),
        "tdc-debug": lambda: marked(
            "tdc-debug", [*checked, "--timeout", "7200", "kernel/tc-tests/run.py"]),
        "tdc-kernel": lambda: marked("tdc-kernel", ["kernel/tc-tests/upstream.py"]),
        "demo": demo_run,
    }
    unknown = set(args.only or []) - set(suites)
    if unknown:
        ap.error(f"no suite {', '.join(sorted(unknown))}; there are {', '.join(suites)}")
    OUT.mkdir(parents=True, exist_ok=True)
    passed, failed = 0, []
    counts = {}
    for name, suite in suites.items():
        if name not in args.only if args.only else name in SLOW:
            continue
        print(f"== {name}", flush=True)
        begin = time.monotonic()
        skipped.clear()
        good, bad = suite()
        passed += good
        failed += [f"{name}: {what}" for what in bad]
        counts[name] = {"passed": good, "failed": bad, "skipped": list(skipped),
                        "wall_s": round(time.monotonic() - begin)}
        print(f"== {name}: {good} passed, {len(bad)} failed, {len(skipped)} skipped, "
              f"{time.monotonic() - begin:.0f} s", flush=True)
    if args.json:
        args.json.write_text(json.dumps(counts, indent=1) + "\n")
    for what in failed:
        print(f"FAILED {what}")
    print(f"{passed} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
