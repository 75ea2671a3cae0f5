#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Builds the modules for several kernels, warnings being errors, and runs the functional suites
there: kunit, qdisc, isolate, dcbt, rlqos, classes, feedback, tc, reload and the tdc cases.

  kernels.py [--release 6.1 ...] [--suite NAME ...]      out/kernels/result.json

Debian's kernels of its releases and the newest that the lab uses. Each is fetched and built once;
the older ones lack the fast system calls of User-Mode Linux and take several times as long.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parent.parent.parent
OUT = TOP / "out" / "kernels"
RELEASES = ["6.1", "6.12", "newest"]
SUITES = ["kunit", "qdisc", "isolate", "dcbt", "rlqos", "classes", "feedback", "tc", "reload",
          "tdc"]


def build(env: dict[str, str]) -> str:
    """Builds kernel and modules; the guest's own word for its version."""
    words = [str(TOP / "testbed" / "paqm-lab"), "exec", "uname", "-r"]
    done = subprocess.run(words, cwd=TOP, env=env, stdout=subprocess.PIPE, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def run(env: dict[str, str], suites: list[str], out: Path) -> dict[str, Any]:
    out.unlink(missing_ok=True)
    words = [str(TOP / "setup" / "test.py"), "--json", str(out), *suites]
    subprocess.run(words, cwd=TOP, env=env, check=False)
    counts: dict[str, Any] = json.loads(out.read_text()) if out.exists() else {}
    return counts


def main() -> int:
    ap = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--release", action="append", metavar="X.Y", help="instead of all")
    ap.add_argument("--suite", action="append", choices=SUITES, help="instead of all")
    args = ap.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    suites = args.suite or SUITES
    result: dict[str, Any] = {"kernels": {}, "checks": []}
    for release in args.release or RELEASES:
        begin = time.monotonic()
        env = os.environ | {"PAQM_KERNEL": "" if release == "newest" else release}
        print(f"kernels: {release}: building", flush=True)
        version = build(env)
        counts = run(env, suites, OUT / f"{release}.json") if version else {}
        failed = [f"{name}: {what}" for name, count in counts.items() for what in count["failed"]]
        failed += [f"{name}: did not run" for name in suites if name not in counts]
        passed = sum(count["passed"] for count in counts.values())
        skipped = [f"{name}: {what}" for name, count in counts.items() for what in count["skipped"]]
        result["kernels"][release] = {
            "version": version, "passed": passed, "failed": failed, "skipped": skipped,
            "suites": counts,
            "wall_s": round(time.monotonic() - begin),
        }
        for name, good in (("builds", bool(version)), ("passes", not failed)):
            result["checks"].append({
                "name": f"{release}_{name}", "value": int(good), "limit": 1, "unit": "",
                "pass": good})
        (OUT / "result.json").write_text(json.dumps(result, indent=1) + "\n")
    for release, kernel in result["kernels"].items():
        good = kernel["version"] and not kernel["failed"]
        print(f"{'ok' if good else 'not ok'} {release} ({kernel['version'] or 'does not build'}): "
              f"{kernel['passed']} passed, {len(kernel['failed'])} failed, "
              f"{len(kernel['skipped'])} skipped")
    return 0 if all(check["pass"] for check in result["checks"]) else 1


if __name__ == "__main__":
    sys.exit(main())
