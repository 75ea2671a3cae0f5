# SPDX-License-Identifier: GPL-2.0
"""The test cases of RFC 8867 (wired) and RFC 8869 (wireless): runs them, judges, prints.

`paqm-lab rmcat --cases 5.1 --systems paqm,nada` runs one case with two systems. Every call leaves
result.json of all runs that are there, with `checks`. The systems and cases are those of
rmcat_cases.py, the figures those of rmcat_judge.py.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from paqm_lab import cache, checks, lab, rmcat_cases, rmcat_docs, rmcat_judge, senders, suite, uml
from paqm_lab.errors import LabError
from paqm_lab.multi import main as networks
from paqm_lab.multi import netscenario
from paqm_lab.multi.case import Run
from paqm_lab.rmcat_cases import SYSTEMS, Case

Json = dict[str, Any]

# What shapes a result beside what suite.LAB names.
MORE = ("rmcat_judge", "senders", "linktrace", *(f"multi/{m}" for m in (
    "case", "guest", "main", "netscenario", "shares")))  # fmt: skip


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def run_point(
    point: suite.Point, out: Path, score: bool, keep: bool, tell: Callable[[str], None]
) -> None:
    """One run from boot to figures; captures and logs of receivers are dropped."""
    made = netscenario.check(Path(point.case), point.data)
    home = point.home(out)
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    house = lab.ready(lambda text: None)
    network = made.case(point.data["variant"][0], point.seed)
    networks.prepare(network, point.seed)
    networks.run_case(network, home / point.queue, house, point.seed)
    found = rmcat_judge.figures(Run(network, home / point.queue), point.data)
    (home / "result.json").write_text(
        suite.as_json({"figures": found, "versions": house.versions()})
    )
    if not keep:
        for pattern in ("*.pcap", "flows/*/recv/*", "flows/*/send/*.jsonl"):
            for path in (home / point.queue).glob(pattern):
                path.unlink()


def installed(name: str) -> str:
    """What a system lacks, empty if nothing."""
    variant = SYSTEMS[name].variant
    try:
        senders.installed(variant["sender"])
    except LabError as err:
        return str(err)
    if variant.get("controller") == "gcc" and not any(cache.plugins().glob("*.so")):
        return "the controller gcc is not installed; run make gcc-element"
    return ""


def choose(args: argparse.Namespace) -> list[tuple[Case, str]]:
    """The cases asked for with their systems, the required system first."""
    known = rmcat_cases.known()
    cases = args.cases.split(",") if args.cases else list(known)
    systems = args.systems.split(",") if args.systems else list(SYSTEMS)
    for names, among, what in ((cases, known, "case"), (systems, SYSTEMS, "system")):
        for name in names:
            if name not in among:
                raise LabError(f'there is no {what} "{name}"; there are {", ".join(among)}')
    usable = []
    for system in systems:
        lacks = installed(system)
        if lacks and args.systems:
            raise LabError(lacks)
        if lacks:
            say(f"rmcat: left out: {system}: {lacks}")
        else:
            usable.append(system)
    return [(known[name], system) for system in usable for name in cases
            if system in known[name].systems]


def rows_of(case: Case, system: str, found: Json, made: Json) -> list[Json]:
    """A row for each bound of a case; `made`: what the run was made of."""
    rows = []
    for bound in case.bounds:
        value = found[bound.figure]
        check = checks.entry(system, bound.figure, value, bound.relation, bound.limit, bound.unit,
                             "captures at the hosts")
        rows.append({
            "id": f"{case.id} {bound.figure}", "case": case.id, "rfc": case.rfc,
            "section": case.section, "title": case.title, "expects": case.expects,
            "notes": case.notes, "variant": system, "required": SYSTEMS[system].required,
            "figure": bound.figure, "value": value, "relation": bound.relation,
            "limit": bound.limit, "unit": bound.unit, "why": bound.why,
            "verdict": "holds" if check["pass"] else "does not hold", "pass": check["pass"],
            **made,
        })  # fmt: skip
    return rows


def result(out: Path, seed: int, earlier: Json) -> Json:
    """result.json from whatever runs are there, and of an earlier one what is not."""
    rows: list[Json] = []
    runs: dict[str, Json] = {}
    versions: list[Json] = []
    kept = {(row["case"], row["variant"]): row for row in earlier.get("rows", [])}
    missing = []
    for case in rmcat_cases.CASES:
        for system in case.systems:
            point = case.point(system, seed)
            path, before = point.home(out) / "result.json", kept.get((case.id, system))
            if path.exists() and suite.stored_of(point, out):
                told = json.loads(path.read_text())
                if told["versions"] not in versions:
                    versions.append(told["versions"])
                made = {"version": told["versions"]["paqm"],
                        "scenario": suite.scenario_digest(point)}
                rows += rows_of(case, system, told["figures"], made)
                runs[f"{case.id} {system}"] = told["figures"]
            elif before is not None and suite.is_of(before, point):
                rows += [row for row in earlier["rows"]
                         if (row["case"], row["variant"]) == (case.id, system)]
                runs[f"{case.id} {system}"] = earlier["runs"][f"{case.id} {system}"]
            else:
                missing.append(f"{case.id} {system}")
    if earlier:
        versions = [one for one in earlier["versions"] if one not in versions] + versions
    return {
        "format": 1,
        "scenario": "rmcat",
        "title": "Test cases of RFC 8867 and RFC 8869",
        "seed": seed,
        "versions": versions,
        "missing": missing,
        "rows": rows,
        "runs": runs,
        "checks": [
            checks.entry(row["case"], row["figure"], row["value"], row["relation"], row["limit"],
                         row["unit"], f"runs/{row['case']}/{row['variant']}-{seed}: {row['why']}")
            for row in rows if row["required"]
        ],
    }  # fmt: skip


def table(data: Json) -> str:
    """A line for each figure of a case, a column for each system."""
    systems = [name for name in SYSTEMS if any(row["variant"] == name for row in data["rows"])]
    lines = [["case", "figure", "bound", *systems]]
    for key in dict.fromkeys((row["case"], row["figure"]) for row in data["rows"]):
        mine = {r["variant"]: r for r in data["rows"] if (r["case"], r["figure"]) == key}
        any_row = next(iter(mine.values()))
        cells = [rmcat_docs.cell(mine.get(name), plain=True) for name in systems]
        lines.append([*key, f"{any_row['relation']} {any_row['limit']:g} {any_row['unit']}".strip(),
                      *cells])
    width = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join(
        "  ".join(text.ljust(width[i]) for i, text in enumerate(line)).rstrip() for line in lines
    )


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cases", metavar="ID,...", help="only these")
    parser.add_argument("--systems", metavar="NAME,...", help=f"only these of {', '.join(SYSTEMS)}")
    parser.add_argument("--seed", type=uml.seed, default=1, metavar="N",
                        help="seed of the run (%(default)s)")
    parser.add_argument("--out", default=str(cache.REPO / "out" / "rmcat"), metavar="DIR",
                        help="for the results (%(default)s)")
    parser.add_argument(
        "--jobs", type=suite.count, default=suite.JOBS, metavar="N",
        help="guests at a time (%(default)s)",
    )
    parser.add_argument("--judge", action="store_true", help="run nothing, judge what is there")
    parser.add_argument("--docs", action="store_true",
                        help="run nothing, write docs/rmcat.md and docs/results/rmcat.json")
    parser.add_argument("--again", action="store_true", help="repeat runs whose result is there")
    parser.add_argument("--pcap", action="store_true", help="keep captures and all raw logs")
    parser.add_argument("--list", action="store_true", help="list the cases")


def main(args: argparse.Namespace) -> int:
    """Runs, judges, prints; status 1 if a run or a check fails."""
    out = Path(args.out).resolve()
    if args.list:
        for case in rmcat_cases.CASES:
            print(f"{case.id:<9} RFC {case.rfc} {case.section:<6} "
                  f"{case.network['duration']:>4g} s  {case.title}")
        return 0
    failed: list[str] = []
    if not (args.judge or args.docs):
        points = [case.point(system, args.seed) for case, system in choose(args)]
        if args.again:
            for point in points:
                suite.forget(point, out)
        failed = suite.run_all(points, out, say, False, args.pcap, args.jobs, run_point, MORE)
    if not (out / "runs").is_dir() and not args.docs:
        raise LabError(f"{out}: no runs here; run some first")
    data = result(out, args.seed, suite.earlier(rmcat_docs.DATA) if args.docs else {})
    out.mkdir(parents=True, exist_ok=True)
    (out / "result.json").write_text(suite.as_json(data))
    if args.docs:
        for path in rmcat_docs.write(suite.as_json(data)):
            say(f"rmcat: {path}")
        return 0
    print(table(data))
    status = checks.print_table(out) if data["checks"] else 0
    for line in failed:
        say(line)
    return 1 if failed else status
