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
from typing import Any

from paqm_lab import bench_clock, kernel, uml
from paqm_lab.errors import LabError


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def real_time(out: Path, rounds: int, seconds: float) -> dict[str, Any]:
    """The benchmark in a lab guest in real time."""
    built = kernel.ensure("lab", say)
    modules = kernel.build_modules(built, say)
    directory = (out / "uml").resolve()
    directory.mkdir(parents=True, exist_ok=True)
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
        environment=uml.environment(built, modules),
        real_time=True,
        memory="2G",
        timeout=3600,
    )
    clock = bench_clock.Server(directory)
    clock.start()
    try:
        result = uml.run(built, job, lambda text: print(text, end="", file=sys.stderr, flush=True))
    finally:
        clock.stop()
    if not result.good:
        raise LabError(result.explain())
    for old in directory.glob("clock-*"):
        old.unlink()
    return dict(json.loads(figures.read_text()))


def main() -> int:
    top = argparse.ArgumentParser(description=__doc__)
    top.add_argument("--out", type=Path, default=Path("out/bench-qdisc"))
    top.add_argument("--rounds", type=int, default=7)
    top.add_argument("--seconds", type=float, default=1.0, help="length of a turn in real time")
    args = top.parse_args()
    try:
        real_time(args.out, args.rounds, args.seconds)
    except LabError as err:
        say(f"bench-qdisc: {err}")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
