# SPDX-License-Identifier: GPL-2.0
"""Followers beside senders that do not listen: runs the cases, shows every flow's figures, judges.

`paqm-lab mixed --cases mix-2-1-tcp --seeds 1 --queues paqm` runs one mix and prints a table. Every
call leaves result.json of all runs that are there, with `checks`.
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from paqm_lab import cache, checks, markdown, mixed_cases, mixed_docs, mixed_judge, suite
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


_cell = partial(markdown.cell, none="-")


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


Run = tuple[Case, suite.Point]


def _named(patterns: Iterable[str], known: dict[str, Case]) -> list[Case]:
    """The cases of these names, each once."""
    found: dict[str, Case] = {}
    for pattern in patterns:
        some = fnmatch.filter(known, pattern)
        if not some:
            raise LabError(f'there is no case "{pattern}"; there are {", ".join(known)}')
        found |= {name: known[name] for name in some}
    return list(found.values())


def choose(args: argparse.Namespace) -> list[tuple[Case, int]]:
    """The cases asked for with their seeds, seeds outermost: a suite that is stopped has seen all.

    Without any wish the default grid, which has several seeds only where queues are compared.
    """
    known = mixed_cases.all_cases()
    if not (args.cases or args.followers or args.deaf or args.full):
        parts = [
            (_named(mixed_cases.SOME, known), args.seeds or mixed_cases.SOME_SEEDS),
            (_named(mixed_cases.REST, known), args.seeds or mixed_cases.REST_SEEDS),
        ]
        seeds = sorted({seed for _, some in parts for seed in some})
        return [(c, seed) for seed in seeds for cases, some in parts if seed in some for c in cases]
    if args.cases:
        cases = _named(args.cases.split(","), known)
    else:
        whole = mixed_cases.WHOLE_GRID if args.full else mixed_cases.GRID
        cases = list(mixed_cases.all_cases(args.followers or whole, args.deaf or whole).values())
    return [(case, seed) for seed in args.seeds or mixed_cases.WHOLE_SEEDS for case in cases]


def points(args: argparse.Namespace, chosen: list[tuple[Case, int]]) -> list[Run]:
    """The runs over all queues of each case, or over those asked for."""
    wanted = args.queues.split(",") if args.queues else None
    for queue in wanted or []:
        if queue not in mixed_cases.QUEUES:
            raise LabError(f'no queue "{queue}"; there are {", ".join(mixed_cases.QUEUES)}')
    return [
        (case, case.point(queue, seed, args.paqm_words))
        for case, seed in chosen
        for queue in (wanted or case.queues)
    ]


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cases", metavar="NAME,...", help="only these (with * as in a shell)")
    parser.add_argument("--queues", metavar="NAME,...", help="only these of paqm, fq_codel, cake")
    parser.add_argument("--seeds", type=suite.seeds, metavar="N,...",
                        help="instead of the cases' own")
    parser.add_argument("--followers", type=_numbers, metavar="N,...",
                        help=f"numbers of followers in the mixes ({GRID})")
    parser.add_argument("--deaf", type=_numbers, metavar="N,...",
                        help=f"numbers of libwebrtc senders in the mixes ({GRID})")
    parser.add_argument("--full", action="store_true", help="the whole grid, five seeds")
    parser.add_argument("--out", default=str(cache.REPO / "out" / "mixed"), metavar="DIR",
                        help="for the results (%(default)s)")
    parser.add_argument("--jobs", type=suite.count, default=suite.JOBS, metavar="N",
                        help="guests at a time (%(default)s)")
    parser.add_argument("--paqm-words", default="", metavar="WORDS",
                        help="more options of the qdisc, such as 'weights host'")
    parser.add_argument("--quick", action="store_true", help="do not compare pictures (no VMAF)")
    parser.add_argument("--again", action="store_true", help="repeat runs whose result is there")
    parser.add_argument("--pcap", action="store_true", help="keep packet logs and all raw logs")
    parser.add_argument("--judge", action="store_true", help="run nothing, judge what is there")
    parser.add_argument("--docs", action="store_true",
                        help="run nothing, write docs/mixed.md and docs/results/mixed.json")
    parser.add_argument("--list", action="store_true", help="list the cases")


def judge(out: Path, known: Json | None = None, words: str = "") -> Json:
    """Writes result.json of whatever runs with these words there are, and of `known`, of before."""
    if not (out / "runs").is_dir():
        raise LabError(f"{out}: no runs here; run some first")
    data = mixed_judge.result(out, mixed_cases.all_cases(), mixed_cases.WHOLE_SEEDS, known, words)
    (out / "result.json").write_text(suite.as_json(data))
    return data


def main(args: argparse.Namespace) -> int:
    """Runs, judges; prints tables of the cases asked for, else the checks. 1 if one fails."""
    out = Path(args.out).resolve()
    if args.docs:
        if args.paqm_words:
            raise LabError("--docs is of runs without --paqm-words")
        data = judge(out, suite.earlier(mixed_docs.DATA))
        for path in mixed_docs.write(suite.as_json(data)):
            say(f"mixed: {path}")
        return 0
    chosen = choose(args)
    if args.list:
        for one in {case.name: case for case, _ in chosen}.values():
            print(f"{one.name:<14} {one.link / 1e6:g} Mbit/s, {one.rtt_ms:g} ms: {one.title}")
        return 0
    failed: list[str] = []
    todo = points(args, chosen)
    if not args.judge:
        if args.again:
            for _, point in todo:
                suite.forget(point, out)
        some = [point for _, point in todo]
        failed = suite.run_all(some, out, say, not args.quick, args.pcap, args.jobs)
    for case, point in todo if args.cases else []:
        variant = suite.load(point, out)
        if variant is not None and suite.stored_of(point, out):
            print(f"\n{point.label}: {case.link / 1e6:g} Mbit/s, {case.rtt_ms:g} ms: {case.title}")
            print(table(variant))
    data = judge(out, words=args.paqm_words)
    part = data["grid"]
    status = checks.print_table(out) if data["checks"] and not args.cases else 0
    print(f"{part['runs']} runs; of the whole grid's {part['whole_grid']} there are "
          f"{part['of_it']}")  # fmt: skip
    silent = mixed_judge.unjudged(data)
    if silent:
        print(silent)
    if data["programs"] > 1:
        print(f"they were made by {data['programs']} different states of the programs")
    for line in failed:
        say(line)
    return 1 if failed else status
