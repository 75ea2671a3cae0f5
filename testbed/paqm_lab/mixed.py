# SPDX-License-Identifier: GPL-2.0
"""Followers beside senders that do not listen: runs the cases, shows every flow's figures.

`paqm-lab mixed --cases mix-2-1-tcp --seeds 1 --queues paqm` runs one mix and prints a table.
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from paqm_lab import cache, mixed_cases, suite
from paqm_lab.errors import LabError
from paqm_lab.mixed_cases import Case

Json = dict[str, Any]

GRID = ",".join(map(str, mixed_cases.GRID))


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(word) for word in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: expected numbers such as 1,3,5") from None


def _get(entry: Json, *keys: str) -> Any:
    value: Any = entry
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


Column = tuple[str, Callable[[Json], Any], int]
COLUMNS: list[Column] = [
    ("packets", lambda e: e["packets"], 0),
    ("lost", lambda e: e["lost"], 0),
    ("p50", lambda e: _get(e, "sojourn_ms", "p50"), 2),
    ("p95", lambda e: _get(e, "sojourn_ms", "p95"), 2),
    ("p99", lambda e: _get(e, "sojourn_ms", "p99"), 2),
    ("max", lambda e: _get(e, "sojourn_ms", "max"), 1),
    ("Mbit/s", lambda e: e["mean_mbit"], 3),
    ("share", lambda e: e["share_mbit"], 3),
    ("%", lambda e: e["share_percent"], 1),
    ("least%", lambda e: e["share_percent_least"], 1),
    ("told", lambda e: _get(e, "told", "mean_mbit"), 3),
    ("±%", lambda e: _get(e, "told", "apart_percent"), 1),
    ("frame95", lambda e: _get(e, "frame_delivery_ms", "p95"), 1),
    ("vmaf", lambda e: e.get("vmaf"), 1),
    ("vmaf5", lambda e: e.get("vmaf_p5"), 1),
    ("frz", lambda e: e.get("freezes"), 0),
]
MANY = 12  # flows of one kind from which on only the extremes are shown


def _cell(value: Any, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _lines(each: dict[str, Json]) -> list[list[str]]:
    rows = []
    for name, entry in each.items():
        cells = [_cell(value(entry), digits) for _, value, digits in COLUMNS]
        rows.append([name, entry["sender"], *cells])
    return rows


def _fewer(each: dict[str, Json]) -> dict[str, Json]:
    """Of many flows of a kind the first, and those with the least and the most of a share."""
    kept: dict[str, Json] = {}
    for kind in dict.fromkeys(entry["kind"] for entry in each.values()):
        mine = {name: entry for name, entry in each.items() if entry["kind"] == kind}
        if len(mine) > MANY:
            order = sorted(mine, key=lambda name: mine[name]["share_percent"] or 0)
            mine = {name: mine[name] for name in (order[0], order[len(order) // 2], order[-1])}
        kept |= mine
    return kept


def table(variant: Json) -> str:
    """All flows of a run, for people."""
    rows = [["flow", "sender", *[name for name, _, _ in COLUMNS]]]
    rows += _lines(_fewer(variant["each"]))
    width = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    text = []
    for row in rows:
        cells = [row[0].ljust(width[0]), row[1].ljust(width[1])]
        cells += [cell.rjust(width[i]) for i, cell in enumerate(row) if i > 1]
        text.append("  ".join(cells).rstrip())
    for name, entry in variant["each"].items():
        if entry["kind"] == "web":
            done = entry["completion_ms"]
            text.append(
                f"{name}: {entry['connections']['done']} connections, completion p50 "
                f"{_cell(done['p50'], 0)} p95 {_cell(done['p95'], 0)} ms"
            )
    whole = variant["figures"]
    use = _cell(whole["link_use_percent"]["whole"], 1)
    text.append(f"link use {use} %, messages {whole['feedback']['messages']}")
    return "\n".join(text)


def choose(args: argparse.Namespace) -> list[Case]:
    """The cases asked for."""
    known = mixed_cases.all_cases()
    if args.cases:
        found = []
        for pattern in args.cases.split(","):
            some = fnmatch.filter(known, pattern)
            if not some:
                raise LabError(f'there is no case "{pattern}"; there are {", ".join(known)}')
            found += [known[name] for name in some]
        return found
    grid = mixed_cases.WHOLE_GRID if args.full else args.followers
    grid_deaf = mixed_cases.WHOLE_GRID if args.full else args.deaf
    return list(mixed_cases.all_cases(grid, grid_deaf).values())


def points(args: argparse.Namespace, cases: list[Case]) -> list[tuple[Case, suite.Point]]:
    """The runs, seeds outermost: a suite that is stopped has seen every case."""
    wanted = args.queues.split(",") if args.queues else None
    for queue in wanted or []:
        if queue not in mixed_cases.QUEUES:
            raise LabError(f'no queue "{queue}"; there are {", ".join(mixed_cases.QUEUES)}')
    return [
        (case, case.point(queue, seed, args.paqm_words))
        for seed in args.seeds
        for case in cases
        for queue in (wanted or case.queues)
    ]


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cases", metavar="NAME,...", help="only these (with * as in a shell)")
    parser.add_argument("--queues", metavar="NAME,...", help="only these of paqm, fq_codel, cake")
    parser.add_argument("--seeds", type=_numbers, default=(1, 2, 3, 4, 5), metavar="N,...")
    parser.add_argument("--followers", type=_numbers, default=mixed_cases.GRID, metavar="N,...",
                        help=f"numbers of followers in the mixes (default {GRID})")
    parser.add_argument("--deaf", type=_numbers, default=mixed_cases.GRID, metavar="N,...",
                        help=f"numbers of libwebrtc senders in the mixes (default {GRID})")
    parser.add_argument("--full", action="store_true", help="the whole grid of mixes")
    parser.add_argument("--out", default=str(cache.REPO / "out" / "mixed"), metavar="DIR")
    parser.add_argument("--paqm-words", default="", metavar="WORDS",
                        help="more options of the qdisc, such as 'weights host'")
    parser.add_argument("--quick", action="store_true", help="do not compare pictures (no VMAF)")
    parser.add_argument("--again", action="store_true", help="repeat runs whose result is there")
    parser.add_argument("--pcap", action="store_true", help="keep packet logs and all raw logs")
    parser.add_argument("--list", action="store_true", help="list the cases")


def main(args: argparse.Namespace) -> int:
    """Runs, then prints a table of every run."""
    cases = choose(args)
    if args.list:
        for case in cases:
            print(f"{case.name:<14} {case.link / 1e6:g} Mbit/s, {case.rtt_ms:g} ms: {case.title}")
        return 0
    out = Path(args.out).resolve()
    todo = points(args, cases)
    if args.again:
        for _, point in todo:
            suite.forget(point, out)
    failed = suite.run_all([p for _, p in todo], out, say, not args.quick, args.pcap)
    for case, point in todo:
        variant = suite.load(point, out)
        if variant is None:
            continue
        print(f"\n{point.label}: {case.link / 1e6:g} Mbit/s, {case.rtt_ms:g} ms: {case.title}")
        print(table(variant))
    return 1 if failed else 0
