# SPDX-License-Identifier: GPL-2.0
"""`paqm-lab sweep FILE.toml`: a scenario over axes, seeds and variants; runs only what is missing.

It may be stopped at any moment, by kill -9 too, and goes on where it was. Workers are processes of
this command (`--task I/N`), here as on other machines.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from paqm_lab import cache, claims, lab, rundata, store, sweep_file, sweep_jobs, sweep_run
from paqm_lab.commands import MORTAL
from paqm_lab.errors import LabError
from paqm_lab.sweep_file import Sweep, Task
from paqm_lab.sweep_run import Place

CPUS = len(os.sched_getaffinity(0))
LOOK = 0.5  # s between two looks at what the workers have done
TELL = 10.0  # s between two lines of progress


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _share(text: str) -> tuple[int, int]:
    number, _, count = text.partition("/")
    if number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count):
        return int(number), int(count)
    raise argparse.ArgumentTypeError(f"{text!r}: expected a worker's number such as 1/8")


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def worker_command(sweep: Sweep, out: Path, task: str) -> list[str]:
    """What a worker is, on any machine that sees clone, cache and `out`."""
    lab_command = [str(cache.TESTBED / "paqm-lab"), "sweep", str(sweep.path.resolve())]
    return [*lab_command, "--out", str(out), "--task", task]


def _progress(begun: float, now: int, before: int, whole: int, failed: int) -> str:
    spent = time.monotonic() - begun
    left = (whole - now - failed) * spent / (now - before) if now > before else None
    estimate = "" if left is None else f", {_span(left)} left"
    bad = f", {failed} failed" if failed else ""
    return f"sweep: {now} of {whole} done{bad}, {_span(spent)} spent{estimate}"


def _run_here(sweep: Sweep, todo: list[Task], place: Place, jobs: int) -> None:
    """Workers on this machine until they have ended; tells how far they are."""
    keys = {task.key for task in todo}
    begun, told = time.monotonic(), 0.0
    before = len(keys & place.keys("results"))
    # No worker outlives this process, however that ends; nor does a guest its worker (uml.py).
    workers = []
    with (place.out / "workers.log").open("ab") as log:
        for number in range(1, jobs + 1):
            command = worker_command(sweep, place.out, f"{number}/{jobs}")
            workers.append(subprocess.Popen([*MORTAL, *command], stdout=log, stderr=log))
    try:
        while any(worker.poll() is None for worker in workers):
            time.sleep(LOOK)
            if time.monotonic() - told > TELL:
                told = time.monotonic()
                done, failed = (len(keys & place.keys(name)) for name in ("results", "failed"))
                say(_progress(begun, done, before, len(keys), failed))
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    broken = [worker.returncode for worker in workers if worker.returncode not in (0, 1)]
    if broken:
        last = (place.out / "workers.log").read_text(errors="replace").strip().splitlines()[-1:]
        raise LabError(f"a worker ended with status {broken[0]}: {' '.join(last)} "
                       f"({place.out}/workers.log); what is done stays, run the same command again")


def _spent(place: Place, made: list[Task], seconds: float, jobs: int) -> str:
    """What these runs cost: by the clock, of CPU, and for how long the workers had work."""
    records = [rundata.load_json(place.result(task)) for task in made]
    busy = sum(record["ended"] - record["begun"] for record in records)
    cpu = sum(record["cpu_s"] for record in records)
    return (f"sweep: a run took {busy / len(made):.2f} s, {cpu / len(made):.2f} s of CPU; "
            f"{jobs} workers were busy for {100 * busy / (jobs * seconds):.1f} % of the time")


def sweep_here(sweep: Sweep, out: Path, jobs: int) -> int:
    """Runs what is missing, fills the store; status 1 if runs failed, or nobody works at them."""
    house = lab.ready(say)
    todo = sweep_file.tasks(sweep, sweep_run.programs_of(house))
    place = Place(out)
    for task in todo: # this call tries those again
        place.failure(task).unlink(missing_ok=True)
    missing = [task for task in todo if not place.result(task).exists()]
    say(f"sweep: {len(todo)} runs, {len(missing)} missing, {jobs} at a time")
    begun = time.monotonic()
    if missing:
        jobs = min(jobs, len(missing))
        _run_here(sweep, todo, place, jobs)
        made = [task for task in missing if place.result(task).exists()]
        if made:
            say(_spent(place, made, time.monotonic() - begun, jobs))
    added = store.fill(out)
    failed = [task for task in todo if place.failure(task).exists()]
    gone = [t for t in todo if not place.result(t).exists() and t not in failed]
    for task in failed:
        say(f"sweep: failed: {task.label} ({place.failure(task)})")
    say(f"sweep: {len(todo) - len(failed) - len(gone)} of {len(todo)} runs are there, "
        f"{len(missing) - len(failed) - len(gone)} made now in {_span(time.monotonic() - begun)}; "
        f"{added} new in {out / 'store.sqlite'}")
    held = claims.Claims(out / "claims")
    left = [task for task in gone if not held.is_held(task.key)]
    if len(gone) > len(left):
        say(f"sweep: {len(gone) - len(left)} runs are with other workers; `paqm-lab store fill "
            f"{out}` takes them in when they are done")
    if left:
        say(f"sweep: {len(left)} runs are missing, nobody works at them ({out}/workers.log); "
            "run the same command again")
    return 1 if failed or left else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", metavar="FILE.toml")
    parser.add_argument("--out", type=Path, metavar="DIR", help="(default out/NAME)")
    parser.add_argument("--jobs", type=int, default=CPUS, metavar="N",
                        help="workers on this machine (default: its CPUs, %(default)s)")
    parser.add_argument("--list", action="store_true", help="list the runs and what is missing")
    parser.add_argument("--task", type=_share, metavar="I/N",
                        help="act as worker I of N: what clusters start")
    parser.add_argument("--tasks", type=int, default=16, metavar="N",
                        help="workers of a cluster (%(default)s)")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--slurm", type=Path, metavar="DIR", help="write a Slurm array job instead")
    where.add_argument("--kubernetes", type=Path, metavar="DIR",
                       help="write a Kubernetes indexed Job instead")
    where.add_argument("--dask", metavar="ADDRESS", help="run on this Dask cluster")
    args = parser.parse_args()
    sweep = sweep_file.read(args.file)
    out = (args.out or Path("out") / sweep.name).resolve()
    if min(args.jobs, args.tasks) < 1:
        raise LabError("--jobs and --tasks: expected 1 or more")
    if args.task:
        number, count = args.task
        return sweep_run.work(sweep, out, number, count, say)
    if args.list:
        todo = sweep_file.tasks(sweep, sweep_run.programs_of(lab.ready(say)))
        place = Place(out)
        for task in todo:
            print(f"{task.key} {'done' if place.result(task).exists() else 'missing'} {task.label}")
        return 0
    if args.slurm or args.kubernetes:
        sweep_file.tasks(sweep, "")  # what is wrong is better told here
        command = worker_command(sweep, out, "{task}")
        write = sweep_jobs.slurm if args.slurm else sweep_jobs.kubernetes
        for line in write(args.slurm or args.kubernetes, sweep, out, command, args.tasks):
            say(line)
        return 0
    if args.dask:
        sweep_jobs.dask(args.dask, [worker_command(sweep, out, f"{number}/{args.tasks}")
                                    for number in range(1, args.tasks + 1)], say)
    return sweep_here(sweep, out, args.jobs)
