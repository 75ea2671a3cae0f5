#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Branch coverage of what parses and judges in paqmd.

Builds the daemon with gcov's counters, runs its unit tests, corpora and end-to-end tests, and adds
up both outcomes of every condition, over all programs that contain the file. Writes
OUT/result.json; status 1 if a file is below the limit.

Usage: coverage.py [--build DIR] [--out DIR] [--limit PERCENT] [--missing]
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
FILES = ["capture/filter.c", "capture/offline.c", "conf.c", "judge/allow.c", "judge/engine.c",
         "judge/flows.c", "judge/keys.c", "judge/media.c", "judge/message.c", "judge/ring.c",
         "judge/routers.c", "sockets/record.c", "sockets/request.c"]
SOURCES = [f"feedback-daemon/{name}" for name in FILES] + ["core/paqm_msg.h"]

Branches = dict[tuple[int, int], int]  # line and number of the branch: how often


def build(where: Path) -> None:
    if not (where / "build.ninja").exists():
        words = ["meson", "setup", str(where), str(TOP), "-Db_coverage=true", "--buildtype=debug"]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", str(where), "--quiet"], check=True)
    for old in where.rglob("*.gcda"):
        old.unlink()


def test(where: Path) -> None:
    listed = subprocess.run(["meson", "test", "-C", str(where), "--list"], check=True,
                            capture_output=True, text=True).stdout.split()
    names = [name for name in listed if name.startswith("paqmd-") and name != "paqmd-exposure"]
    words = ["meson", "test", "-C", str(where), "--no-rebuild", "--print-errorlogs", *names]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def count(where: Path) -> dict[str, Branches]:
    """Branches of every file, from all objects of the daemon."""
    found: dict[str, Branches] = defaultdict(dict)
    for data in sorted(where.glob("feedback-daemon/**/*.gcda")):
        words = ["gcov", "--json-format", "--branch-probabilities", "--stdout", str(data)]
        text = subprocess.run(words, check=True, capture_output=True, cwd=where).stdout
        if text[:2] == b"\x1f\x8b":
            text = gzip.decompress(text)
        for line in text.splitlines():
            for file in json.loads(line)["files"]:
                path = (where / file["file"]).resolve()
                name = str(path.relative_to(TOP)) if path.is_relative_to(TOP) else ""
                if name not in SOURCES:
                    continue
                for row in file["lines"]:
                    # the same inline function may be in many objects
                    for number, branch in enumerate(row["branches"]):
                        key = (row["line_number"], number)
                        found[name][key] = found[name].get(key, 0) + branch["count"]
    return found


def main() -> int:
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--build", type=Path, default=TOP / "build-coverage")
    ap.add_argument("--out", type=Path, default=TOP / "out" / "coverage")
    ap.add_argument("--limit", type=float, default=90.0, help="per cent of each file")
    ap.add_argument("--missing", action="store_true", help="name the lines")
    args = ap.parse_args()
    build(args.build.resolve())
    test(args.build.resolve())
    found = count(args.build.resolve())
    checks, taken_all, all_all = [], 0, 0
    for name in SOURCES:
        branches = found.get(name, {})
        taken = sum(1 for n in branches.values() if n)
        percent = round(100 * taken / len(branches), 1) if branches else 0.0
        taken_all, all_all = taken_all + taken, all_all + len(branches)
        checks.append({"variant": "coverage", "name": name, "value": percent, "relation": ">=",
                       "limit": args.limit, "unit": "% of branches", "source": "gcov",
                       "pass": percent >= args.limit})
        print(f"{'ok' if percent >= args.limit else 'not ok'} {name}: {taken} of {len(branches)} "
              f"branches, {percent} %")
        if args.missing:
            lines = sorted({line for (line, _), n in branches.items() if not n})
            print(f"   not both ways: {' '.join(map(str, lines))}")
    print(f"all: {taken_all} of {all_all} branches, {100 * taken_all / max(all_all, 1):.1f} %")
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "result.json").write_text(json.dumps({"checks": checks}, indent=1) + "\n")
    return 0 if all(c["pass"] for c in checks) else 1


if __name__ == "__main__":
    sys.exit(main())
