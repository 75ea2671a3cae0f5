# SPDX-License-Identifier: GPL-2.0
"""Workers of a sweep: take runs that nobody has taken, run them, leave one file for each.

OUT/results/KEY.json appears when a run is done, whole and once; OUT/failed/KEY.json when it could
not be; OUT/runs/KEY-N has the run's own result, series and logs; OUT/claims is what keeps workers
apart. A shared directory is all that several machines need.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import socket
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from paqm_lab import (
    cache,
    claims,
    lab,
    run,
    scenario,
    senders,
    store,
    suite,
    sweep_file,
    trace_scenario,
)
from paqm_lab.errors import LabError
from paqm_lab.multi import main as network
from paqm_lab.multi import netscenario
from paqm_lab.sweep_file import Json, Sweep, Task

Say = Callable[[str], None]

LOOK = 60.0  # s between two looks at what runs are made on
ENOUGH = 5  # failures in a row after which a worker gives up: the fault is not in the run


def programs_of(house: lab.Lab) -> str:
    """Names the state of all programs, the kernel and the image."""
    return cache.digest(
        suite.sources_digest().encode(), house.kernel.key.encode(), house.image.key.encode()
    )


def _dumbbell(task: Task, home: Path, house: lab.Lab) -> Json:
    options = run.Options(
        out=home, seed=task.seed, variants=[], keep_packets=False, repeat_check=False,
        score=task.score, page=False,
    )
    run.run_scenario(scenario.check(task.path, task.data), options, lambda _: None)
    suite.tidy(home, task.variant["name"])
    result: Json = json.loads((home / "result.json").read_text())
    return result


def _trace(task: Task, home: Path, house: lab.Lab) -> Json:
    chosen = trace_scenario.check(task.path, task.data)
    result = trace_scenario.run(chosen, [task.variant], task.seed, home, house, lambda _: None)
    at = home / task.variant["name"]
    for name in ("send", "recv", "job"):
        shutil.rmtree(at / name)
    (at / "first.h264").unlink()
    return result


def _network(task: Task, home: Path, house: lab.Lab) -> Json:
    chosen = netscenario.check(task.path, task.data)
    house = senders.house_for({flow["sender"] for flow in task.data["flow"]}, house, lambda _: None)
    case = chosen.case(task.variant, task.seed)
    network.prepare(case, task.seed)
    home.mkdir(parents=True)
    network.run_case(case, home / case.name, house, task.seed)
    result = network.evaluate(
        [case], home, scenario=chosen.name, scenario_data=task.data, title=task.data["title"],
        seed=task.seed, versions=house.versions(),
    )
    logs = [*(home / case.name).glob("log/sink-*.log"), *(home / case.name).glob("*.pcap")]
    digest = cache.digest(*[log.read_bytes() for log in sorted(logs)])
    whole = result["figures"][case.name]
    return {
        **result,
        "duration_s": case.duration,
        "packet_log_sha256": {case.name: digest},
        "variants": [{
            "name": case.name,
            "figures": {name: value for name, value in whole.items() if name != "flows"},
            "flows": whole["flows"],
        }],
    }


RUNNERS: dict[str, Callable[[Task, Path, lab.Lab], Json]] = {
    "dumbbell": _dumbbell, "network": _network, "trace": _trace,
}


def processor_time() -> float:
    """Seconds that this process and all that it has waited for have used, user and system."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def run_task(task: Task, sweep: str, out: Path, home: Path, house: lab.Lab, programs: str) -> Json:
    """One run from boot to figures: what goes into its file."""
    begun, cpu = time.time(), processor_time()
    home.parent.mkdir(parents=True, exist_ok=True)
    result = RUNNERS[task.kind](task, home, house)
    ended = time.time()
    return {
        "format": sweep_file.FORMAT,
        "key": task.key,
        "sweep": sweep,
        "kind": task.kind,
        "scenario": task.data["name"],
        "variant": task.variant["name"],
        "seed": task.seed,
        "axes": task.axes,
        "scored": task.score,
        "duration_s": result["duration_s"],
        "programs": programs,
        "versions": result["versions"],
        "packet_log_sha256": result["packet_log_sha256"][task.variant["name"]],
        "directory": str(home.relative_to(out)),
        "worker": f"{socket.gethostname()}:{os.getpid()}",
        "begun": round(begun, 3),
        "ended": round(ended, 3),
        "cpu_s": round(processor_time() - cpu, 3),
        "figures": store.rows_of(result, result["variants"][0]),
    }


class Place:
    """The directory of a sweep's results."""

    def __init__(self, out: Path) -> None:
        self.out = out
        for name in ("results", "failed", "runs", "claims"):
            (out / name).mkdir(parents=True, exist_ok=True)

    def result(self, task: Task) -> Path:
        return self.out / "results" / f"{task.key}.json"

    def failure(self, task: Task) -> Path:
        return self.out / "failed" / f"{task.key}.json"

    def is_settled(self, task: Task) -> bool:
        return self.result(task).exists() or self.failure(task).exists()

    def keys(self, name: str) -> set[str]:
        """What is done (`results`) or could not be (`failed`)."""
        return {path.stem for path in (self.out / name).glob("*.json")}


def _try(
    task: Task, claim: claims.Claim, sweep: str, place: Place, house: lab.Lab, programs: str
) -> Json:
    """A run that this worker has claimed: its record."""
    home = place.out / "runs" / f"{task.key}-{claim.generation}"
    for old in home.parent.glob(f"{task.key}-*"):
        shutil.rmtree(old, ignore_errors=True)
    return run_task(task, sweep, place.out, home, house, programs)


def work(sweep: Sweep, out: Path, number: int, count: int, say: Say) -> int:
    """Worker `number` of `count`: begins at its part of the runs, then helps the others."""
    house, looked = lab.ready(say), time.monotonic()
    programs = programs_of(house)
    todo = sweep_file.tasks(sweep, programs)
    place, held = Place(out), claims.Claims(out / "claims")
    first = (number - 1) * len(todo) // count
    failed = in_a_row = 0
    for task in [*todo[first:], *todo[:first]]:
        if place.is_settled(task):
            continue
        claim = held.take(task.key)
        if claim is None:
            continue
        try:
            if place.is_settled(task):  # by who had it, since we looked
                continue
            if time.monotonic() - looked > LOOK:  # what is not used is cleared out of the cache
                house, looked = lab.ready(say), time.monotonic()
            record = _try(task, claim, sweep.name, place, house, programs)
            if held.newest(task.key) == claim.generation:
                claims.publish(place.result(task), record)
                say(f"{task.label}: {record['ended'] - record['begun']:.1f} s")
            in_a_row = 0
        except Exception as err:  # a fault of ours in one run leaves the others to be made
            failed, in_a_row = failed + 1, in_a_row + 1
            told = str(err) if isinstance(err, LabError) else traceback.format_exc().strip()
            claims.publish(place.failure(task), {"task": task.label, "error": told})
            say(f"{task.label}: {told}")
            if in_a_row == ENOUGH:
                last = told.splitlines()[-1]
                raise LabError(f"{ENOUGH} runs in a row failed, the last one: {last}") from err
        finally:
            claim.close()
    return 1 if failed else 0
