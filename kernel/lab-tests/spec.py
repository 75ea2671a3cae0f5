#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0
"""Acceptance checks of the qdisc: the specification's own, on the real module in virtual time.

spec.py run [--out DIR] [GROUP...]   runs the groups, writes DIR/result.json; status 1 if a check
                                     fails
spec.py table DIR/result.json        docs/acceptance.md from it, to standard output

What a group does is in spec_checks.py; `vectors` are the law tests in user space and in the kernel.
A row prints `ok SECTION NAME (FIGURE)` or `not ok SECTION NAME (FIGURE, wanted BOUND)`.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

Json = dict[str, Any]

TOP = Path(__file__).resolve().parent.parent.parent
HERE = Path(__file__).resolve().parent
LAB = TOP / "testbed" / "paqm-lab"

# Wall seconds after which a group is given up: a loaded machine is many times slower.
LIMIT_S = 3600

# Group and what it does, in the order of the table.
GROUPS = {
    "vectors": "11.1 to 11.5: laws, codec and reference plant against the specification's numbers",
    "scheduler": "X1 and the byte split for other mixes of packet sizes",
    "steps": "X2: steps of phi",
    "inner": "X3: inner loop alone",
    "outer": "X8: outer loop with sources that lag, and with sources that do not",
    "far": "X8: the same with a round trip of 400 ms",
    "unresponsive": "X13: a flow that does not listen",
    "soak": "X15: one hour at line rate, conservation",
    "shaper": "shaper and link framing",
}


def stream(cmd: list[str]) -> tuple[int, str]:
    """Run a command, show and return its output."""
    lines: list[str] = []
    with subprocess.Popen(cmd, cwd=TOP, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", stdin=subprocess.DEVNULL) as proc:
        assert proc.stdout is not None
        for line in proc.stdout:
            lines.append(line)
            print(line, end="", flush=True)
    return proc.returncode, "".join(lines)


def row(section: str, name: str, good: bool, value: float, unit: str, wanted: str) -> Json:
    return {"section": section, "name": name, "value": value, "unit": unit, "low": None,
            "high": None, "wanted": wanted, "pass": good, "specified": "",
            "printed": "", "note": ""}


def counted(name: str, passed: int, failed: int) -> Json:
    """A row that says how many tests of another suite passed; none is a failure, too."""
    good = passed > 0 and failed == 0
    figure = f"{passed} passed, {failed} failed"
    print(f"{'ok' if good else 'not ok'} 11.1-11.5 {name} ({figure}"
          f"{'' if good else ', wanted none failed'})", flush=True)
    return row("11.1-11.5", name, good, passed, "passed", f"none failed ({failed} did)")


def vectors(build: Path) -> list[Json]:
    """The law tests, where they live."""
    suites = ["core-law", "core-msg", "core-vectors-current"]
    # a log of its own: this may be one of Meson's tests itself
    done = subprocess.run(["meson", "test", "-C", str(build), "--no-rebuild", "--logbase", "spec",
                           *suites, "kunit"], capture_output=True, text=True, cwd=TOP)
    report = build / "meson-logs" / "spec.json"
    cases = [json.loads(line) for line in report.read_text().splitlines()] \
        if done.returncode in (0, 1) and report.exists() else []
    kernel = "".join(case["stdout"] for case in cases if case["name"].endswith("kunit"))
    good = [case["result"] == "OK" for case in cases if not case["name"].endswith("kunit")]
    return [
        counted("vectors in user space (core/tests), programs", sum(good),
                max(len(good), len(suites)) - sum(good)),
        counted("vectors in the kernel (KUnit), cases",
                len(re.findall(r"^ok \d+ - paqm_kunit", kernel, re.M)),
                len(re.findall(r"^not ok ", kernel, re.M)))]


def in_guest(group: str, out: Path) -> tuple[list[Json], Json]:
    """One group in a guest of its own."""
    file = out / f"{group}.json"
    file.unlink(missing_ok=True)
    begin = time.monotonic()
    status, _ = stream([str(LAB), "exec", "--timeout", str(LIMIT_S), "--dir", str(out),
                        str(HERE / "spec_checks.py"), group, "--out", str(file)])
    facts: Json = {"wall_s": round(time.monotonic() - begin, 1)}
    if not file.exists():
        print(f"not ok {group} ran to its end (exit status {status})", flush=True)
        return [row(group, "ran to its end", False, status, "exit status", "0")], facts
    got = json.loads(file.read_text())
    rows: list[Json] = got["checks"]
    if status not in (0, 1): # the kernel reported a fault, or the time limit struck
        print(f"not ok {group} left the guest in order (exit status {status})", flush=True)
        rows.append(row(group, "left the guest in order", False, status, "exit status", "0 or 1"))
    return rows, facts | {"virtual_s": got["virtual_s"]}


def run(args: argparse.Namespace) -> int:
    out = Path(args.out).resolve()
    out.mkdir(parents=True, exist_ok=True)
    wanted = args.group or list(GROUPS)
    result_file = out / "result.json"
    old = json.loads(result_file.read_text()) if args.group and result_file.exists() else {}
    groups: dict[str, Json] = old.get("groups", {})
    for group in wanted:
        print(f"# {group}: {GROUPS[group]}", flush=True)
        if group == "vectors":
            groups[group] = {"checks": vectors(Path(args.build).resolve())}
        else:
            rows, facts = in_guest(group, out)
            groups[group] = {"checks": rows, **facts}
    groups = {name: groups[name] for name in GROUPS if name in groups}
    checks = [c for g in groups.values() for c in g["checks"]]
    failed = [c for c in checks if c["pass"] is False]
    passed = sum(c["pass"] is True for c in checks)
    unmet = [c for c in checks if c["specified"]]
    result_file.write_text(json.dumps(
        {"version": 1, "passed": passed, "failed": len(failed), "groups": groups}, indent=1))
    for c in unmet:
        print(f"# the specification's bound is not reached: {c['section']} {c['name']}: "
              f"{c['value']:.5g} {c['unit']}, specified {c['specified']}")
    print(f"{passed} passed, {len(failed)} failed; {result_file}")
    return 1 if failed else 0


HEAD = """# Acceptance checks

What the algorithm's specification demands of the queue alone, checked on the real kernel module in
the lab's virtual time: real sockets, real TCP, an independent sink that takes waiting times and
rates from the packets themselves. `make acceptance` runs them all and writes
`out/acceptance/result.json`; `kernel/lab-tests/spec.py run GROUP` runs one group.

This file is made by `kernel/lab-tests/spec.py table out/acceptance/result.json`; do not edit it.

Rows without a wanted figure decide nothing. Where the specification's bound is not reached, the
check holds the bound that is, and the specification's stands beside it. "Published" is only what is
printed in the thesis or its papers (A. Lie, NTNU 2008:74), which were made with ns-2; a row that
contradicts it says so.
"""


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def table(args: argparse.Namespace) -> int:
    result = json.loads(Path(args.result).read_text())
    print(HEAD)
    print(f"{result['passed']} checks passed, {result['failed']} failed.")
    if result.get("note"):  # what a reader must know of this run
        print(f"\n{result['note']}")
    for name, group in result["groups"].items():
        print(f"\n## {GROUPS[name]}\n")
        if "virtual_s" in group:
            print(f"Group `{name}`, {group['virtual_s']:.0f} s of virtual time.\n")
        print("| section | check | figure | wanted | |\n|---|---|---|---|---|")
        for c in group["checks"]:
            wanted = c["wanted"]
            for key, what in (("specified", "specification"), ("printed", "published")):
                if c[key]:
                    wanted += f"{'; ' if wanted else ''}{what}: {c[key]}"
            verdict = {True: "ok", False: "**not ok**", None: ""}[c["pass"]]
            figure = f"{c['value']:.5g} {c['unit']}".strip()
            print(f"| {c['section']} | {cell(c['name'])} | {figure} | {wanted} | {verdict} |")
        notes = list(dict.fromkeys((c["name"], c["note"]) for c in group["checks"] if c["note"]))
        shared = {note for _, note in notes}
        if len(shared) == 1 and len(notes) > 1: # the same for all rows
            print(f"\n* {shared.pop()}.")
        elif notes:
            print()
            for what, note in notes:
                print(f"* {what}: {note}.")
    return 0


def main() -> int:
    ap = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = ap.add_subparsers(required=True)
    go = commands.add_parser("run")
    go.add_argument("--out", default=str(TOP / "out" / "acceptance"))
    go.add_argument("--build", default=str(TOP / "build"), help="Meson build directory")
    go.add_argument("group", nargs="*", metavar="GROUP", help=", ".join(GROUPS))
    go.set_defaults(function=run)
    show = commands.add_parser("table")
    show.add_argument("result", metavar="DIR/result.json")
    show.set_defaults(function=table)
    args = ap.parse_args()
    unknown = set(getattr(args, "group", [])) - set(GROUPS)
    if unknown:
        ap.error(f"no group {', '.join(sorted(unknown))}; there are {', '.join(GROUPS)}")
    return int(args.function(args))


if __name__ == "__main__":
    sys.exit(main())
