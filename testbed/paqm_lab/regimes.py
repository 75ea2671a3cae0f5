# SPDX-License-Identifier: GPL-2.0
"""Followers alone over many links: capacity, round trip, number of streams, with and without TCP.

`paqm-lab regimes` runs the points of a grid and judges each by its delay, how soon the streams
settle after every change, and what they lose. Limits grow with the time a packet takes on the link
and with the round trip: nobody can know of a change sooner, or wait for less than one packet.
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
from pathlib import Path

from paqm_lab import cache, regimes_docs, regimes_judge, suite, uml
from paqm_lab.errors import LabError
from paqm_lab.regimes_cases import (
    SOME_CAPACITIES,
    SOME_ROUND_TRIPS,
    SOME_STREAMS,
    VARIANTS,
    Place,
    grid,
)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def choose(args: argparse.Namespace) -> list[Place]:
    """The points asked for."""
    places = grid()
    if args.points:
        found = []
        for pattern in args.points.split(","):
            some = [place for place in places if fnmatch.fnmatch(place.name, pattern)]
            if not some:
                raise LabError(f'there is no point "{pattern}"; --list lists them')
            found += [place for place in some if place not in found]
        places = found
    elif not args.full:
        places = grid(SOME_CAPACITIES, SOME_ROUND_TRIPS, SOME_STREAMS)
    if args.variants:
        wanted = args.variants.split(",")
        for name in wanted:
            if name not in VARIANTS:
                raise LabError(f'no variant "{name}"; there are {", ".join(VARIANTS)}')
        places = [place for place in places if place.variant in wanted]
    return places


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--points", metavar="NAME,...", help="only these (with * as in a shell)")
    parser.add_argument("--variants", metavar="NAME,...", help="only these of paqm, rtt-auto")
    parser.add_argument("--seed", type=uml.seed, default=1, metavar="N",
                        help="seed of the run (%(default)s)")
    parser.add_argument("--full", action="store_true", help="the whole grid")
    parser.add_argument("--out", default=str(cache.REPO / "out" / "regimes"), metavar="DIR",
                        help="for the results (%(default)s)")
    parser.add_argument(
        "--jobs", type=suite.count, default=suite.JOBS, metavar="N",
        help="guests at a time (%(default)s)",
    )
    parser.add_argument("--judge", action="store_true", help="run nothing, judge what is there")
    parser.add_argument("--docs", action="store_true",
                        help="run nothing, write docs/regimes.md and its data")
    parser.add_argument("--again", action="store_true", help="repeat runs whose result is there")
    parser.add_argument("--pcap", action="store_true", help="keep packet logs and all raw logs")
    parser.add_argument("--list", action="store_true", help="list the points")


def main(args: argparse.Namespace) -> int:
    """Runs, judges, prints; status 1 if a run or a check fails."""
    places, out = choose(args), Path(args.out).resolve()
    if args.list:
        for place in places:
            print(f"{place.name:<16} {place.variant:<9} {place.title}")
        return 0
    failed: list[str] = []
    if not (args.judge or args.docs):
        points = [place.point(args.seed) for place in places]
        if args.again:
            for point in points:
                suite.forget(point, out)
        failed = suite.run_all(points, out, say, False, args.pcap, args.jobs)
    if not (out / "runs").is_dir():
        raise LabError(f"{out}: no runs here; run some first")
    known = [(place, place.point(args.seed)) for place in grid()]
    earlier = suite.earlier(regimes_docs.DATA) if args.docs else None
    data = regimes_judge.result(known, out, args.seed, earlier)
    text = suite.as_json(data)
    (out / "result.json").write_text(text)
    if args.docs:
        for path in regimes_docs.write(text):
            say(f"regimes: {path}")
        return 0
    shown = {(place.name, place.variant) for place in places} if args.points else None
    print(regimes_judge.table(data, shown))
    for line in failed:
        say(line)
    return 1 if failed or not all(check["pass"] for check in data["checks"]) else 0
