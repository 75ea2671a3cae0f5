# SPDX-License-Identifier: GPL-2.0
"""What a packet costs in sch_paqm and in other qdiscs: `make bench-qdisc`.

Two engines: a lab guest in real time (processor time, caches and all) and QEMU with a clock that
counts instructions (repeats to the last few, so it is the regression test).
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from statistics import median
from typing import Any

from paqm_lab import bench_clock, bench_icount, checks, kernel, qemu, uml
from paqm_lab.errors import LabError

Turns = dict[str, list[dict[str, Any]]]

REPEATS = 2  # boots under QEMU with all qdiscs
RATE_LIMIT = 1.05  # times fq_codel's packets per second
FOLLOWER_LIMIT = 1850.0  # instructions
FLOW_LIMIT = 1.3
NOTICE_LIMIT = 2.0  # percent
REPEAT_LIMIT = 0.1  # percent
BUSY = 100_000  # flows of the checks


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def real_time(out: Path, rounds: int, seconds: float) -> dict[str, Turns]:
    """The benchmark in a lab guest in real time."""
    built = kernel.ensure("lab", say)
    modules = kernel.build_modules(built, say)
    directory = (out / "uml").resolve()
    load = bench_icount.copy_load(directory)
    qemu.build_directory(built.tree, "um", load, say)
    for old in directory.glob("clock-*"):
        old.unlink()
    figures = directory / "figures.json"
    figures.unlink(missing_ok=True)
    job = uml.Job(
        directory=directory,
        command=[
            *("python3", "-m", "paqm_lab.bench_uml", "--out", str(figures)),
            *("--rounds", str(rounds), "--seconds", str(seconds)),
        ],
        environment=uml.environment(built, modules) | {"PAQM_LOAD_KO": str(load / "paqm_load.ko")},
        real_time=True,
        memory="2G",
        timeout=7200,
    )
    clock = bench_clock.Server(directory)
    clock.start()
    try:
        result = uml.run(built, job, lambda text: print(text, end="", file=sys.stderr, flush=True))
    finally:
        clock.stop()
        for old in directory.glob("clock-*"):
            old.unlink()
    if not result.good:
        raise LabError(result.explain())
    return dict(json.loads(figures.read_text()))


def ratios(turns: Turns, name: str, base: str) -> list[float]:
    """Cost of one relative to the cost of another, round by round."""
    pairs = zip(turns[name], turns[base], strict=True)
    return [mine["ns_per_packet"] / other["ns_per_packet"] for mine, other in pairs]


def cost(turns: Turns, name: str) -> float:
    """Median nanoseconds of processor time per packet."""
    return float(median(turn["ns_per_packet"] for turn in turns[name]))


def instructions(counted: Turns, name: str) -> float:
    """Instructions per packet, mean of the repeats."""
    figures = [turn["instructions"] for turn in counted[name]]
    return float(sum(figures) / len(figures))


def spread_percent(counted: Turns) -> float:
    """The largest difference between repeats of a case."""
    worst = 0.0
    for turns in counted.values():
        figures = [turn["instructions"] for turn in turns]
        worst = max(worst, 100 * (max(figures) - min(figures)) / min(figures))
    return worst


def evaluate(timed: dict[str, Turns], counted: Turns) -> list[checks.Check]:
    """What has to hold, each figure from one run."""
    found: list[checks.Check] = []

    def add(name: str, value: float, relation: str, limit: float, unit: str, source: str) -> None:
        entry = (name, round(value, 4), relation, round(limit, 4), unit, source)
        found.append(checks.entry("paqm", *entry))

    for name in ("paqm", "paqm media feedback"):
        value = median(1 / ratio for ratio in ratios(timed["qdiscs"], name, "fq_codel"))
        source = "real time: fq_codel's processor time per packet over ours, median over rounds"
        add(f"rate against fq_codel: {name}", value, ">=", RATE_LIMIT, "times", source)
    busy, told = f"{BUSY} flows", f"{BUSY} flows feedback"
    value = median(ratios(timed["flows"], busy, "1 flows"))
    source = "real time: processor time per packet, median over rounds"
    add("cost of 100000 flows", value, "<=", FLOW_LIMIT, "times 1 flow", source)
    value = 100 * (median(ratios(timed["flows"], told, busy)) - 1)
    add("cost of notices to 100000 flows", value, "<=", NOTICE_LIMIT, "%", source)
    source = "QEMU, instructions per packet"
    for kind in bench_icount.KINDS:
        for name in ("paqm", "paqm bandwidth"):
            value = instructions(counted, f"{name} {kind}")
            limit = instructions(counted, f"dualpi2 {kind}")
            if kind == "rtp":  # a bucket more
                limit = FOLLOWER_LIMIT
            add(f"{name} {kind}", value, "<=", limit, "instructions", source)
    value = instructions(counted, "100 flows on")
    add("paqm rtp with notices", value, "<=", FOLLOWER_LIMIT, "instructions", source)
    value = instructions(counted, "paqm beyond")
    limit = instructions(counted, "fq_codel beyond")
    add("a packet beyond its fair rate", value, "<=", limit, "instructions", source)
    value = instructions(counted, busy) / instructions(counted, "1 flows")
    add("instructions of 100000 flows", value, "<=", FLOW_LIMIT, "times 1 flow", source)
    for flows in bench_icount.NOTICE_FLOWS:
        on = instructions(counted, f"{flows} flows on")
        value = 100 * (on / instructions(counted, f"{flows} flows off") - 1)
        name = f"instructions of notices to {flows} flows"
        add(name, value, "<=", NOTICE_LIMIT, "%", source)
    source = "QEMU, largest difference between boots of the same case"
    add("repeatability", spread_percent(counted), "<=", REPEAT_LIMIT, "%", source)
    return found


def print_tables(timed: dict[str, Turns], counted: Turns) -> None:
    """The figures for people."""
    qdiscs, flows = timed["qdiscs"], timed["flows"]
    print("Processor time per packet in real time, median (pktgen, 1000 sources, below prio)")
    for name in sorted(qdiscs, key=lambda name: cost(qdiscs, name)):
        rate = median(1 / ratio for ratio in ratios(qdiscs, name, "fq_codel"))
        print(f"  {name:<24} {cost(qdiscs, name):7.0f} ns  {rate:5.2f} x fq_codel's rate")
    print("Number of flows (RTP, default options)")
    for name in flows:
        step = median(ratios(flows, name, "1 flows"))
        print(f"  {name:<24} {cost(flows, name):7.0f} ns  {step:5.2f} x 1 flow")
    print("Instructions per packet under QEMU (below prio, queue empty)")
    print(f"  {'':<24} " + " ".join(f"{kind:>8}" for kind in bench_icount.KINDS))
    for subject in bench_icount.SUBJECTS:
        figures = [instructions(counted, f"{subject.name} {kind}") for kind in bench_icount.KINDS]
        print(f"  {subject.name:<24} " + " ".join(f"{figure:8.1f}" for figure in figures))
    for case in bench_icount.long_cases():
        turn = counted[case.name][0]
        notices = ""
        if case.subject.feedback:
            notices = "  ".join(f"{key} {turn[key]}" for key in turn if key != "instructions")
        print(f"  {case.name:<24} {turn['instructions']:8.1f}  {notices}")


def main() -> int:
    top = argparse.ArgumentParser(description=__doc__)
    top.add_argument("--out", type=Path, default=Path("out/bench-qdisc"),
                     help="for the results (%(default)s)")
    top.add_argument("--rounds", type=int, default=7, help="turns of each qdisc in real time")
    top.add_argument("--seconds", type=float, default=1.0, help="length of a turn")
    args = top.parse_args()
    try:
        counted = bench_icount.run((args.out / "qemu").resolve(), REPEATS, say)
        timed = real_time(args.out, args.rounds, args.seconds)
        result = {
            "format": 1,
            "scenario": "bench-qdisc",
            "seed": 0,
            "real_time": timed,
            "instructions": counted,
            "checks": evaluate(timed, counted),
        }
        (args.out / "result.json").write_text(json.dumps(result, indent=1) + "\n")
        print_tables(timed, counted)
        return checks.print_table(args.out)
    except LabError as err:
        say(f"bench-qdisc: {err}")
        return 2
