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
from collections.abc import Callable
from pathlib import Path
from typing import Any

from paqm_lab import cache, claims, lab, run, suite, sweep_file, trace_scenario
from paqm_lab.errors import LabError
from paqm_lab.multi import main as network
from paqm_lab.multi import netscenario
from paqm_lab.multi.case import Run
from paqm_lab.sweep_file import Json, Sweep, Task

Say = Callable[[str], None]
Row = tuple[str, str, float | None]  # flow, figure, value


def programs_of(house: lab.Lab) -> str:
    """Names the state of all programs, the kernel and the image."""
    return cache.digest(
        suite.sources_digest().encode(), house.kernel.key.encode(), house.image.key.encode()
    )


def flat(value: Any, flow: str = "", name: str = "") -> list[Row]:
    """The numbers in nested figures: `media_sojourn_ms.p95`."""
    if isinstance(value, dict):
        below = ((f"{name}.{key}" if name else key, item) for key, item in value.items())
        return [row for key, item in below for row in flat(item, flow, key)]
    if value is None or isinstance(value, int | float):
        return [(flow, name, None if value is None else float(value))]
    return []


def rows_of(result: Json) -> list[Row]:
    """All figures of a result of one variant: of the whole (no flow), then of each flow."""
    variant = result["variants"][0]
    rows = flat(variant["figures"])
    for flow, entry in variant.get("flows", {}).items():
        rows += flat(entry, flow)
    for flow, entry in variant.get("each", {}).items():
        rows += flat(entry, flow, "each")
    for check in result["checks"]:
        rows += flat({"value": check["value"], "pass": check["pass"]}, "", f"check.{check['name']}")
    return rows


def _dumbbell(task: Task, home: Path, house: lab.Lab) -> Json:
    from paqm_lab import scenario

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
    case = chosen.case(task.variant, task.seed)
    network.prepare(case)
    home.mkdir(parents=True)
    network.run_case(case, home / case.name, house, task.seed)
    result = network.evaluate(
        [case], home, scenario=chosen.name, scenario_data=task.data, title=task.data["title"],
        seed=task.seed, versions=house.versions(),
    )
    logs = [*(home / case.name).glob("log/sink-*.log"), *(home / case.name).glob("*.pcap")]
    digest = cache.digest(*[log.read_bytes() for log in sorted(logs)])
    done = Run(case, home / case.name)
    return {
        **result,
        "duration_s": case.duration,
        "packet_log_sha256": {case.name: digest},
        "variants": [{
            "name": case.name,
            "figures": result["figures"].get(case.name, {}),
            "flows": netscenario.figures_of_flows(done),
        }],
    }


RUNNERS: dict[str, Callable[[Task, Path, lab.Lab], Json]] = {
    "dumbbell": _dumbbell, "network": _network, "trace": _trace,
}


def _cpu() -> float:
    """s of CPU of this process and all that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def run_task(task: Task, sweep: str, out: Path, home: Path, house: lab.Lab, programs: str) -> Json:
    """One run from boot to figures: what goes into its file."""
    begun, cpu = time.time(), _cpu()
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
        "cpu_s": round(_cpu() - cpu, 3),
        "figures": rows_of(result),
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

    def keys(self, name: str) -> set[str]:
        """What is done (`results`) or could not be (`failed`)."""
        return {path.stem for path in (self.out / name).glob("*.json")}


def work(sweep: Sweep, out: Path, number: int, count: int, say: Say) -> int:
    """Worker `number` of `count`: begins at its part of the runs, then helps the others."""
    house = lab.ready(say)
    programs = programs_of(house)
    todo = sweep_file.tasks(sweep, programs)
    place, held = Place(out), claims.Claims(out / "claims")
    first = (number - 1) * len(todo) // count
    failed = 0
    for task in [*todo[first:], *todo[:first]]:
        if place.result(task).exists() or place.failure(task).exists():
            continue
        claim = held.take(task.key)
        if claim is None:
            continue
        try:
            # Who had it may have ended since we looked.
            if place.result(task).exists() or place.failure(task).exists():
                continue
            home = out / "runs" / f"{task.key}-{claim.generation}"
            for old in (out / "runs").glob(f"{task.key}-*"):
                shutil.rmtree(old, ignore_errors=True)
            record = run_task(task, sweep.name, out, home, house, programs)
            if held.newest(task.key) == claim.generation:
                claims.publish(place.result(task), record)
                say(f"{task.label}: {record['ended'] - record['begun']:.1f} s")
        except LabError as err:
            failed += 1
            claims.publish(place.failure(task), {"task": task.label, "error": str(err)})
            say(f"{task.label}: {err}")
        finally:
            claim.close()
    return 1 if failed else 0
