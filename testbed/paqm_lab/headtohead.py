# SPDX-License-Identifier: GPL-2.0
"""P-AQM with its streamer beside the queues and senders of today, in twelve rows.

`paqm-lab head-to-head --rows one` runs a row and prints its figures. Every call leaves result.json
of all runs that are there, with `checks`; what was run before with the same programs stays.
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
from pathlib import Path

from paqm_lab import cache, checks, headtohead_cases, headtohead_docs, headtohead_judge, suite
from paqm_lab.errors import LabError
from paqm_lab.headtohead_cases import Row

SEEDS = (1, 2, 3)  # of the whole suite; the first of them alone unless told otherwise


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _chosen(text: str | None, known: list[str], what: str) -> list[str]:
    """Those of these names or patterns, or all."""
    if not text:
        return known
    found: list[str] = []
    for pattern in text.split(","):
        some = fnmatch.filter(known, pattern)
        if not some:
            raise LabError(f'there is no {what} "{pattern}"; there are {", ".join(known)}')
        found += [name for name in some if name not in found]
    return found


def _installed(system: str) -> bool:
    """Whether its sender is there: Google's congestion control has to be built first."""
    needs_gcc = headtohead_cases.controller(system) == "gcc"
    return not needs_gcc or any(cache.plugins().glob("*.so"))


def points(rows: list[Row], systems: str | None, seeds: list[int]) -> list[suite.Point]:
    """The runs asked for: all P-AQM's and rivals of a row before the next, seeds outermost."""
    known = sorted({system for row in rows for system in row.systems})
    wanted = set(_chosen(systems, known, "system"))
    todo = [
        (row, system) for row in rows for system in row.systems if system in wanted
    ]
    lacking = sorted({system for _, system in todo if not _installed(system)})
    for system in lacking:
        say(f"head-to-head: {system} is left out, run make gcc-element first")
    return [
        row.point(system, seed) for seed in seeds for row, system in todo if system not in lacking
    ]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="P-AQM beside the queues and senders of today.")
    parser.add_argument("--rows", metavar="NAME,...", help="only these (with * as in a shell)")
    parser.add_argument("--systems", metavar="NAME,...", help="only these, likewise")
    parser.add_argument("--seeds", type=suite.seeds, default=SEEDS[:1], metavar="N,...",
                        help=f"({SEEDS[0]})")
    parser.add_argument("--full", action="store_true", help="all seeds of the suite")
    parser.add_argument("--out", default=str(cache.REPO / "out" / "head-to-head"), metavar="DIR",
                        help="for the results (%(default)s)")
    parser.add_argument("--jobs", type=suite.count, default=suite.JOBS, metavar="N",
                        help="guests at a time (%(default)s)")
    parser.add_argument("--again", action="store_true", help="repeat runs whose result is there")
    parser.add_argument("--pcap", action="store_true", help="keep packet logs and all raw logs")
    parser.add_argument("--judge", action="store_true", help="run nothing, judge what is there")
    parser.add_argument("--docs", action="store_true",
                        help="run nothing, write docs/head-to-head.md and its data")
    parser.add_argument("--list", action="store_true", help="list rows and systems")
    return parser.parse_args()


def main() -> int:
    """Runs, judges, prints; 1 if a run or a check fails."""
    args = _arguments()
    known = headtohead_cases.rows()
    rows = [known[name] for name in _chosen(args.rows, list(known), "row")]
    out = Path(args.out).resolve()
    if args.list:
        for row in rows:
            print(f"{row.name:<9} {row.mbit:g} Mbit/s, {row.rtt_ms} ms: {row.title}\n"
                  f"{'':<9} {' '.join(row.systems)}")  # fmt: skip
        return 0
    failed: list[str] = []
    if not (args.judge or args.docs):
        todo = points(rows, args.systems, list(SEEDS) if args.full else args.seeds)
        if args.again:
            for point in todo:
                suite.forget(point, out)
        for scored in (True, False):
            some = [point for point in todo if known[point.case].scored == scored]
            failed += suite.run_all(some, out, say, scored, args.pcap, args.jobs)
    if not (out / "runs").is_dir():
        raise LabError(f"{out}: no runs here; run some first")
    earlier = suite.earlier(headtohead_docs.DATA) if args.docs else None
    data = headtohead_judge.result(out, known, SEEDS, earlier)
    text = suite.as_json(data)
    (out / "result.json").write_text(text)
    if args.docs:
        for path in headtohead_docs.write(text):
            say(f"head-to-head: {path}")
        return 0
    for row in rows:
        print("\n".join(headtohead_docs.table(data, row.name)))
    status = checks.print_table(out) if data["checks"] else 0
    for line in failed:
        say(line)
    return 1 if failed else status
