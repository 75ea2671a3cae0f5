# SPDX-License-Identifier: GPL-2.0
"""Runs with several routers: `paqm-lab multirouter [--out DIR] [CASE...]`; those of a scenario.

Each case is a guest of its own. Writes DIR/CASE/ (raw logs), DIR/result.json (`checks`, see
docs/results-format.md) and DIR/report.html. With names of cases only those are run,
and the logs of the others are judged if they are there. Status 1 if a check fails.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from paqm_lab import cache, clip, kernel, lab, linktrace, scenario, senders, trace_scenario, uml
from paqm_lab.errors import LabError
from paqm_lab.multi import netscenario
from paqm_lab.multi.case import Case, Checks, Run
from paqm_lab.multi.cases import all_cases
from paqm_lab.multi.netscenario import NetScenario
from paqm_lab.multi.paths import add_streams
from paqm_lab.multi.robust import flood

SEED = 1
MARK = "<!-- figures: written by paqm-lab multirouter --docs, do not edit below -->\n"
PATIENCE = 60  # wall seconds per virtual second after which a guest is given up


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def run_case(case: Case, home: Path, house: lab.Lab, seed: int = SEED) -> float:
    """Boots and runs; returns the wall time."""
    lab.make_way(home)
    assert house.modules is not None
    config = case.config(home, house.modules, seed)
    if (trace := case.facts.get("trace")) is not None:
        linktrace.write(trace, home / "trace.txt")
        config["link"] = str(kernel.build_link(house.kernel, say))
    live = case.live()
    if live:
        size = case.clip
        pictures = clip.scaled(cache.cache_dir(), size["width"], size["height"], say)
        config["streams"] = case.streams(pictures, seed, home)
    house.tell(config, home)
    timeout = 120 + PATIENCE * case.duration
    job = house.job(
        "multi.guest", home, home / "guest", seed=seed, timeout=timeout,
        memory=senders.memory([flow.sender for flow in live], len(config["captures"])),
    )
    result = uml.run(house.kernel, job).kept(home / "kernel.log", home / "guest.log")
    shutil.rmtree(home / "guest")
    error = lab.guest_error(home)
    if error and not result.reports:
        raise LabError(f"{case.name}: {error} (in {home})")
    if not result.good:
        raise LabError(f"{case.name}: {result.explain()}")
    return result.wall


def ran(case: Case, out: Path) -> bool:
    """Whether there are whole logs of a case."""
    told = out / case.name / "guest.json"
    return told.exists() and json.loads(told.read_text())["error"] is None


def evaluate(cases: list[Case], out: Path, **about: Any) -> dict[str, Any]:
    """Checks and figures from the raw logs, into result.json; what it says."""
    checks = Checks()
    for case in cases:
        if ran(case, out):
            assert case.judge is not None
            case.judge(Run(case, out / case.name), checks)
        else:
            checks.add(case, "ran_to_its_end", None, ">=", 1, "", "guest.json, log/")
    result = {"format": 1, **about, "checks": checks.rows, "figures": checks.figures}
    (out / "result.json").write_text(json.dumps(result, indent=1) + "\n")
    return result


def print_checks(checks: list[dict[str, Any]]) -> int:
    """Prints them; status 1 if one fails."""
    failed = 0
    for check in checks:
        failed += not check["pass"]
        beside = f", published: {check['published']}" if "published" in check else ""
        print(f"{'ok' if check['pass'] else 'not ok'} {check['variant']} {check['name']} "
              f"({check['value']} {check['relation']} {check['limit']} {check['unit']}{beside})")
    print(f"{len(checks) - failed} passed, {failed} failed")
    return 1 if failed else 0


def trace_clip(fps: int) -> Path:
    """What trace flows send, in the size of the published runs: CIF."""
    return clip.scaled(cache.cache_dir(), 352, 288, say, fps)


def prepare(case: Case, seed: int = SEED) -> None:
    """Gives a case its programs."""
    build, tool = Path(lab.BUILD), Path(lab.BUILD) / "lab" / "spec_traffic"
    if case.facts.get("streams"):
        add_streams(case, build, clip.prepare(cache.cache_dir(), say))
        return
    ladder = None
    if case.entries("trace"):
        kind = case.facts["ladder"]
        source = trace_clip(kind["fps"])
        ladder = trace_scenario.prepare_ladder(source, say, kind["gop"]).path
    case.add_flows(tool, build, ladder, seed)
    if case.facts.get("flood"):
        flood(case, str(tool))


def run_all(
    chosen: NetScenario, out: Path, seed: int, variants: list[str], say: Callable[[str], None]
) -> int:
    """Runs the variants of a scenario; writes result and report; status 1 if a check fails."""
    house = senders.house_for(
        {netscenario.sender_of(flow, variant)
         for flow in chosen.data["flow"] for variant in chosen.data["variant"]},
        lab.ready(say), say,
    )
    lab.make_out(out)
    lab.forget_result(out)
    cases, walls = [], {}
    for variant in scenario.chosen_variants(chosen.path, chosen.data["variant"], variants):
        case = chosen.case(variant, seed)
        prepare(case, seed)
        wall = run_case(case, out / case.name, house, seed)
        say(f"{case.name}: {case.duration:g} s simulated in {wall:.0f} s")
        cases.append(case)
        walls[case.name] = round(wall, 1)
    result = evaluate(
        cases, out, scenario=chosen.name, scenario_data=chosen.data, title=chosen.data["title"],
        seed=seed, versions=house.versions(), wall_seconds=walls,
    )
    from paqm_lab.multi import report  # and with it matplotlib

    say(f"report: {report.write(result, cases, out)}")
    return print_checks(result["checks"])


def main() -> int:
    known = all_cases()
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--out", default=str(cache.REPO / "out" / "multirouter"),
                    help="for the results (%(default)s)")
    ap.add_argument("--judge", action="store_true", help="run nothing, judge the logs again")
    ap.add_argument(
        "--docs", metavar="FILE", help="figures below the mark in FILE, diagram into img/ beside it"
    )
    ap.add_argument("case", nargs="*", metavar="CASE", help=", ".join(known))
    args = ap.parse_args()
    unknown = set(args.case) - set(known)
    if unknown:
        ap.error(f"no case {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    out = Path(args.out).resolve()
    out.mkdir(parents=True, exist_ok=True)
    house = lab.ready(say)
    cases = {name: make() for name, make in known.items()}
    if not args.judge:
        for name in args.case or known:
            case = cases[name]
            prepare(case)
            begin = time.monotonic()
            try:
                with lab.alone_in(out / name):
                    run_case(case, out / name, house)
            except LabError as err: # the others may still tell something
                say(f"multirouter: {err}")
                continue
            say(f"{name}: {case.duration:g} s simulated in {time.monotonic() - begin:.0f} s")
    begun = [case for case in cases.values() if (out / case.name).exists()]
    done = [case for case in begun if ran(case, out)]
    result = evaluate(
        begun, out, scenario="multirouter", title="Several routers, and feedback that gets lost",
        seed=SEED, versions=house.versions(),
    )
    from paqm_lab.multi import report

    if args.docs:
        text = Path(args.docs).read_text()
        head, mark, _ = text.partition(MARK)
        if not mark:
            raise LabError(f"{args.docs} has no line {MARK.strip()}")
        Path(args.docs).write_text(f"{head}{MARK}\n{report.table(result, done)}")
        report.image(done, out, Path(args.docs).parent / "img" / "multirouter.png")
    say(f"report: {report.write(result, done, out)}")
    return print_checks(result["checks"])
