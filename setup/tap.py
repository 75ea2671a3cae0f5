#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Runs a suite and tells Meson of its cases (TAP).

Its lines `ok NAME`, `not ok NAME: why` and `skip NAME: why` go to standard output, numbered, and
at the end how many there were; it may print TAP itself. What else it prints goes to standard error,
failures again among it: Meson shows that when a case failed. An exit status without a failure
counts as one, and so do other cases than were planned, or none.

Usage: tap.py COMMAND [ARGUMENT...]
"""

import re
import subprocess
import sys

CASE = re.compile(r"(ok|not ok|skip) (?:\d+ - )?(.*)")
PLAN = re.compile(r"1\.\.(\d+)")


def main() -> int:
    count = failed = 0
    planned = ""

    def tell(result: str, name: str) -> None:
        nonlocal count, failed
        count += 1
        failed += result == "not ok"
        if result == "skip":
            name, _, why = name.partition(": ")
            result, name = "ok", f"{name} # SKIP {why}"
        print(f"{result} {count} - {name}", flush=True)

    with subprocess.Popen(
        sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as proc:
        assert proc.stdout
        for line in proc.stdout:
            case, plan = CASE.match(line), PLAN.match(line)
            if case:
                tell(case[1], case[2])
            elif plan:
                planned = plan[1]
            if not case or case[1] == "not ok":
                print(line, end="", file=sys.stderr, flush=True)
    if proc.returncode and not failed:
        tell("not ok", f"exit status {proc.returncode}")
    elif planned and int(planned) != count:
        tell("not ok", f"{planned} cases were planned")
    elif not count:
        tell("not ok", "no case was run")
    print(f"1..{count}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
