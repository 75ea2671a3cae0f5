#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Runs `meson test`, lists what failed and ends with a line `N passed, N failed, N skipped`.

What is counted is the cases of all suites that ran, as Meson's log has them: a program that only
ends with a status is one case, one that prints TAP has those that it prints.

Usage: test.py [--build DIR] [--json FILE] [ARGUMENT of `meson test`...]
"""

import argparse
import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parent.parent
CASE = re.compile(r"^(ok|not ok) \d+ (?:- )?(.*?)( # SKIP.*)?$", re.M)
PLAN = re.compile(r"^1\.\.(\d+)", re.M)

Json = dict[str, Any]


def count(suite: Json, tap: bool) -> Json:
    """What one line of the log tells: passed, names of what failed and of what was skipped."""
    cases = CASE.findall(suite["stdout"]) if tap else []
    passed = sum(result == "ok" and not skip for result, _, skip in cases)
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
    return {"passed": passed, "failed": failed, "skipped": skipped,
            "wall_s": round(suite["duration"])}


def counts(build: Path) -> dict[str, Json]:
    """All suites of the log."""
    log, known = build / "meson-logs" / "testlog.json", build / "meson-info" / "intro-tests.json"
    if not log.exists():
        return {}
    taps = {test["name"] for test in json.loads(known.read_text()) if test["protocol"] == "tap"}
    found = {}
    for line in log.read_text().splitlines():
        suite = json.loads(line)
        name = suite["name"].rpartition(" / ")[2]
        found[name] = count(suite, name in taps)
    return found


def main() -> int:
    ap = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    ap.add_argument("--build", type=Path, default=TOP / "build", help="Meson build directory")
    ap.add_argument("--json", type=Path, metavar="FILE", help="write the counts there too")
    args, words = ap.parse_known_args()
    (args.build / "meson-logs" / "testlog.json").unlink(missing_ok=True)
    command = ["meson", "test", "-C", str(args.build), "--print-errorlogs", "--num-processes", "2"]
    stopped = []
    with subprocess.Popen([*command, *words]) as meson:

        def stop(number: int, _: object) -> None:
            stopped.append(f"stopped by {signal.Signals(number).name}")
            meson.terminate()

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, stop)
        meson.wait()
    try:
        suites = counts(args.build)
    except (OSError, ValueError) as err:
        suites, stopped = {}, [f"Meson's log: {err}"]
    failed = [f"{name}: {what}" for name, suite in suites.items() for what in suite["failed"]]
    passed = sum(suite["passed"] for suite in suites.values())
    skipped = sum(len(suite["skipped"]) for suite in suites.values())
    if meson.returncode and not failed:
        stopped.append(f"meson test: exit status {meson.returncode}")
    failed += stopped or ([] if passed or failed or skipped else ["no test ran"])
    if args.json:
        args.json.write_text(json.dumps(suites, indent=1) + "\n")
    for what in failed:
        print(f"FAILED {what}")
    print(f"{passed} passed, {len(failed)} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
