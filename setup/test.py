#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Runs `meson test`, lists what failed and ends with a line `N passed, N failed, N skipped`.

Counted are the cases of all suites that ran, as Meson's log has them: a program that only ends with
a status is one case, one that prints TAP has those that it prints.

Usage: test.py [--build DIR] [--full] [--json FILE] [ARGUMENT of `meson test`...]
"""

import argparse
import contextlib
import itertools
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "testbed"))
from paqm_lab import cache  # noqa: E402

CASE = re.compile(r"^(ok|not ok) \d+ (?:- )?(.*?)( # SKIP.*)?$", re.M)
PLAN = re.compile(r"^1\.\.(\d+)", re.M)


def count(suite: dict[str, Any], tap: bool) -> dict[str, Any]:
    """What a line of the log tells: how many passed, the names of what failed or was skipped."""
    cases = CASE.findall(suite["stdout"]) if tap else []
    passed = sum(result == "ok" and not why for result, _, why in cases)
    failed = [name for result, name, _ in cases if result == "not ok"]
    skipped = [name + why for _, name, why in cases if why]
    end = f"{suite['result']}, exit status {suite['returncode']}"
    plan = PLAN.search(suite["stdout"])
    if tap and (not plan or int(plan[1]) != len(cases)):
        failed.append(f"did not come to its end ({end})")
    elif suite["result"] == "SKIP":
        skipped = skipped or [end]
    elif suite["result"] == "OK":
        passed += not tap
    elif not failed:
        failed = [end]
    return {"passed": passed, "failed": failed, "skipped": skipped}


def main() -> int:
    ap = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    ap.add_argument("--build", type=Path, default="build", help="Meson build directory")
    ap.add_argument("--json", type=Path, metavar="FILE", help="write the counts there too")
    ap.add_argument("--full", action="store_true", help="with the suite senders")
    args, words = ap.parse_known_args()
    if args.full:
        words = ["--setup", "full", *words]
    # a set-up of Meson's that is named has logs of its own
    log = args.build / "meson-logs" / ("testlog-full.json" if args.full else "testlog.json")
    log.unlink(missing_ok=True)
    # As many as there are processors: a guest without one of its own costs a third more, and so do
    # those that it disturbs. A guest has 1 GB.
    many = str(min(len(os.sched_getaffinity(0)), 8))
    command = ["meson", "test", "-C", str(args.build), "--print-errorlogs", "--num-processes", many]
    ends = []  # of Meson itself
    # Tests make programs, and guests begin with one.
    environment = {**os.environ, "TMPDIR": str(cache.scratch_dir())}
    with subprocess.Popen([*command, *words], env=environment) as meson:

        def stop(number: int, _: object) -> None:
            ends.append(f"stopped by {signal.Signals(number).name}")
            meson.terminate()

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup
                signal.signal(number, stop)
        for minute in itertools.count(1):
            with contextlib.suppress(subprocess.TimeoutExpired):
                meson.wait(60)
                break
            if not sys.stdout.isatty():  # else Meson itself shows what runs
                print(f"({minute} min)", flush=True)
    suites = {}
    with contextlib.suppress(OSError, ValueError):  # none, or half a line, if Meson was killed
        known = json.loads((args.build / "meson-info" / "intro-tests.json").read_text())
        taps = {test["name"] for test in known if test["protocol"] == "tap"}
        for suite in map(json.loads, log.read_text().splitlines()):
            name = suite["name"].rpartition(" / ")[2]
            suites[name] = count(suite, name in taps)
    passed = sum(suite["passed"] for suite in suites.values())
    skipped = sum(len(suite["skipped"]) for suite in suites.values())
    failed = [f"{name}: {what}" for name, suite in suites.items() for what in suite["failed"]]
    if meson.returncode and not failed:
        ends.append(f"meson test: exit status {meson.returncode}")
    failed += ends or ([] if suites else ["no test ran"])
    if args.json:
        args.json.write_text(json.dumps(suites, indent=1) + "\n")
    print("".join(f"FAILED {what}\n" for what in failed), end="")
    print(f"{passed} passed, {len(failed)} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
