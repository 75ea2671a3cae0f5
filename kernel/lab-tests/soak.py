#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Runs the soak test in guests of the lab kernel and of the debug kernel; see soak.c.

  soak.py --hours 24 [--seed N] [--only lab|debug]      out/soak/result.json

Memory is judged on the lab kernel (the checkers of the other one keep freed memory for a while),
leaks on the debug kernel.
"""

import argparse
import json
import re
import subprocess
import sys
import time
from typing import Any

import torture

OUT = torture.TOP / "out" / "soak"


def main() -> int:
    ap = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--hours", type=int, default=1, help="of virtual time, on each kernel")
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--only", choices=["lab", "debug"])
    args = ap.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    program = OUT / "soak"
    command = [torture.LAB, "exec", "--no-modules"]  # for the guest's libraries
    command += ["gcc", "-std=gnu17", "-O2", "-Wall", "-Wextra", "-Werror"]
    shared = sorted(torture.HERE.glob("torture_*.c"))
    subprocess.run([*command, "-o", program, torture.HERE / "soak.c", *shared], check=True)
    result: dict[str, Any] = {"hours": args.hours, "seed": args.seed, "checks": []}
    for kind in ["lab", "debug"]:
        if args.only not in (None, kind):
            continue
        print(f"soak: {args.hours} virtual hours on the {kind} kernel", flush=True)
        begin = time.monotonic()
        lab = ["--debug-kernel"] if kind == "debug" else []
        words = [str(program), "--hours", str(args.hours), "--seed", str(args.seed)]
        if kind == "debug":
            words.append("--any-growth")
        status, output = torture.guest(lab, words, True)
        wrong = re.search(r"^not ok .*", output, re.M)
        failed = wrong[0] if wrong else f"status {status}" if status else ""
        result[kind] = torture.figures(output) | {
            "failed": failed, "wall_s": round(time.monotonic() - begin)}
        result["checks"].append({
            "name": f"soak_{kind}", "value": int(bool(failed)), "limit": 0, "unit": "",
            "pass": not failed})
        (OUT / "result.json").write_text(json.dumps(result, indent=1) + "\n")
    good = all(check["pass"] for check in result["checks"])
    print(f"{'ok' if good else 'not ok'} soak: {OUT / 'result.json'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
