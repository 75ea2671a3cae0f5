# SPDX-License-Identifier: GPL-2.0
"""Many short runs, each a scenario made by a program, over several queues and seeds.

A run whose result is there and was made by the same programs, scenario and seed is not repeated: a
suite may be stopped at any time and goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paqm_lab import cache, kernel, lab, uml
from paqm_lab.errors import LabError

Json = dict[str, Any]
Say = Callable[[str], None]

# What shapes a result, besides what programs and modules are made of and the lab's kernel; suites
# and reports are not among it.
SOURCES = [
    *("testbed/guest/*", "testbed/preload/*", "testbed/kernel/**/*", "testbed/image/*"),
    *("testbed/rivals/*/*.*", "testbed/rivals/webrtc/lib/*"),
]
NO_PART = {"tests", "fuzz", "kunit"}  # directories of programs that no run starts
LAB = [
    *("analysis", "beside", "bulk", "cache", "checks", "clip", "commands", "follow", "guest"),
    *("image", "kernel", "lab", "ladder", "linkfigures", "linktrace", "metrics", "native"),
    *("packetfigures", "packets", "perflow", "picturefigures", "quality", "run", "rundata"),
    *("scenario", "senders", "series", "topology", "trace", "trace_guest", "trace_lab"),
    *("trace_scenario", "traffic", "uml", "y4m"),
    *("multi/case", "multi/figures", "multi/guest", "multi/main", "multi/netscenario"),
    *("multi/paths", "multi/periods", "multi/robust", "multi/shares", "multi/traceflows"),
]

CLIP = {"width": 640, "height": 360, "fps": 24}
JOBS = min(2, len(os.sched_getaffinity(0)))  # guests at a time, unless told otherwise


def count(text: str) -> int:
    """How many guests at a time, as an option has it."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected 1 or more")
    return int(text)


def seeds(text: str) -> tuple[int, ...]:
    """Seeds as an option has them."""
    return tuple(uml.seed(word) for word in text.split(","))


@dataclass(frozen=True)
class Point:
    """One run: a scenario over one queue with one seed."""

    case: str
    queue: str  # name of the variant
    seed: int
    data: Json  # the scenario

    @property
    def label(self) -> str:
        return f"{self.case} {self.queue} seed {self.seed}"

    def home(self, out: Path) -> Path:
        return out / "runs" / self.case / f"{self.queue}-{self.seed}"


def sources_digest(more: Iterable[str] = ()) -> str:
    """Fingerprint of all programs that shape a result, those of `more` modules among them."""
    made_of = {*lab.sources(), *(cache.REPO / path for path in kernel.module_sources())}
    paths = {path for path in made_of if not NO_PART & set(path.relative_to(cache.REPO).parts)}
    paths |= {path for pattern in SOURCES for path in cache.REPO.glob(pattern) if path.is_file()}
    paths |= {cache.TESTBED / "paqm_lab" / f"{name}.py" for name in (*LAB, *more)}
    named = [(str(path.relative_to(cache.REPO)), path) for path in sorted(paths)]
    named += [(path.name, path) for path in sorted(cache.plugins().glob("*.so"))]
    return cache.digest(*[name.encode() + path.read_bytes() for name, path in named])


def scenario_digest(point: Point) -> str:
    """Fingerprint of a run's scenario."""
    return cache.digest(json.dumps(point.data, sort_keys=True).encode())


def stamp(point: Point, programs: str, score: bool) -> Json:
    """What a result was made of; equal stamps mean equal results."""
    return {"programs": programs, "scenario": scenario_digest(point), "scored": score}


def good_for(have: Json | None, want: Json) -> bool:
    """Whether a stored result may stand for a wanted one; a scored one does for one that is not."""
    return have is not None and (have == want or have == want | {"scored": True})


def stored(home: Path) -> Json | None:
    """The stamp of a finished run."""
    try:
        found: Json = json.loads((home / "stamp.json").read_text())
    except (OSError, ValueError):
        return None
    return found if (home / "result.json").exists() else None


def stored_of(point: Point, out: Path) -> Json | None:
    """The stamp of a finished run of just this scenario.

    Under the same name there may be one with other words for the qdisc, or of the case as it was
    before: that is another experiment.
    """
    found = stored(point.home(out))
    return found if found and found.get("scenario") == scenario_digest(point) else None


def is_of(row: Json, point: Point) -> bool:
    """Whether a row of an earlier result.json is of this scenario; old rows do not tell."""
    want = scenario_digest(point)
    return bool(row.get("scenario", want) == want)


def load(point: Point, out: Path) -> Json | None:
    """The only variant of a stored result, with what the result says of the whole run."""
    path = point.home(out) / "result.json"
    if not path.exists():
        return None
    result = json.loads(path.read_text())
    variant: Json = result["variants"][0]
    keys = ["seed", "duration_s", "bottleneck_bps", "link", "rtt_ms", "versions"]
    keys.append("packet_log_sha256")
    return variant | {key: result[key] for key in keys}


def tidy(home: Path, queue: str) -> None:
    """Keeps result, series, advice and the programs' output; drops what takes space."""
    for pattern in ("flows/*/recv/*", "flows/*/send/stats.jsonl", "tc.jsonl"):
        for path in (home / queue).glob(pattern):
            path.unlink()


def run_point(point: Point, out: Path, score: bool, keep: bool, say: Say) -> None:
    """One run from boot to figures."""
    from paqm_lab import run, scenario  # these take a second to load

    home = point.home(out)
    (home / "stamp.json").unlink(missing_ok=True)
    made = scenario.check(Path(point.case), point.data)
    options = run.Options(
        out=home,
        seed=point.seed,
        variants=[point.queue],
        keep_packets=keep,
        repeat_check=False,
        score=score,
        page=False,
    )
    run.run_scenario(made, options, lambda text: None)
    if not keep:
        tidy(home, point.queue)


def alone_with(point: Point, out: Path) -> AbstractContextManager[None]:
    """Refuses a run that another command makes just now: each would delete the other's logs."""
    return lab.alone_in(out / "locks" / point.case / f"{point.queue}-{point.seed}")


Runner = Callable[[Point, Path, bool, bool, Say], None]


def run_all(
    points: Iterable[Point],
    out: Path,
    say: Say,
    score: bool = True,
    keep: bool = False,
    jobs: int = 1,
    run_one: Runner = run_point,
    more: Iterable[str] = (),
) -> list[str]:
    """Runs what is not there yet, `jobs` guests at a time; returns what failed, one line each.

    @run_one: leaves a point's result
    @more: modules beside those of LAB that shape it
    """
    todo, programs = list(points), sources_digest(more)
    failed: list[str] = []
    begun = time.monotonic()
    lock = threading.Lock()

    def one(number: int, point: Point) -> None:
        want = stamp(point, programs, score)
        home = point.home(out)
        have = stored(home)
        if good_for(have, want) and not (keep and not list(home.glob("*/*.pcap"))):
            return
        start = time.monotonic()
        try:
            with alone_with(point, out):
                run_one(point, out, score, keep, say)
                (home / "stamp.json").write_text(json.dumps(want) + "\n")
        except LabError as err:
            with lock:
                failed.append(f"{point.label}: {err}")
                say(f"[{number}/{len(todo)}] {failed[-1]}")
            return
        now = time.monotonic()
        with lock:
            say(
                f"[{number}/{len(todo)}] {point.label}: {now - start:.0f} s "
                f"({(now - begun) / 60:.0f} min in all)"
            )

    with uml.pool(jobs) as pool:
        for future in [pool.submit(one, n, point) for n, point in enumerate(todo, start=1)]:
            future.result()
    return failed


def forget(point: Point, out: Path) -> None:
    """Removes a stored run."""
    with alone_with(point, out):
        shutil.rmtree(point.home(out), ignore_errors=True)


def runs_of(out: Path, case: str) -> list[Point]:
    """The runs of a case that are there, whatever they were made by; without their scenarios."""
    found = []
    for path in (out / "runs" / case).glob("*/result.json"):
        queue, _, seed = path.parent.name.rpartition("-")
        if queue and seed.isdigit():
            found.append(Point(case, queue, int(seed), {}))
    return sorted(found, key=lambda point: (point.queue, point.seed))


def with_earlier(
    rows: list[Json],
    versions: list[Json],
    known: Json,
    form: int,
    point_of: Callable[[Json], Point | None],
) -> tuple[list[Json], list[Json]]:
    """Rows and versions with those of an earlier result.json that have not been run since.

    A whole suite takes longer than a machine may be there for: it is run in parts. `form` is the
    format of the rows; those of another one are left out, and so are those of a scenario that is
    not what `point_of` makes of the row now (None: there is no such case any more).
    """
    if known.get("format") != form:
        return rows, versions
    there = {(one["case"], one["queue"], one["seed"]) for one in rows}
    kept = [
        one
        for one in known["runs"]
        if (one["case"], one["queue"], one["seed"]) not in there
        and (point := point_of(one)) is not None
        and is_of(one, point)
    ]
    used = {one["version"] for one in kept}
    more = [one for one in known["versions"] if one["paqm"] in used and one not in versions]
    both = sorted(rows + kept, key=lambda one: (one["case"], one["queue"], one["seed"]))
    return both, more + versions


def coverage(rows: list[Json], want: set[tuple[str, str, int]]) -> Json:
    """Which part of the whole grid, (case, queue, seed), there is."""
    there = {(one["case"], one["queue"], one["seed"]) for one in rows}
    lacking: dict[str, list[str]] = {}
    for case, queue, seed in sorted(want - there):
        lacking.setdefault(case, []).append(f"{queue}-{seed}")
    return {
        "runs": len(there),
        "whole_grid": len(want),
        "of_it": len(want & there),
        "cases": sorted({case for case, _, _ in there}),
        "seeds": sorted({seed for _, _, seed in there}),
        "missing": lacking,
    }


def earlier(data: Path) -> Json:
    """What a file of docs/results holds of runs from before."""
    found: Json = json.loads(data.read_text()) if data.exists() else {}
    return found


def as_json(data: Json) -> str:
    """Numbers short: six digits behind the point are more than any figure has."""

    def short(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: short(item) for key, item in value.items()}
        if isinstance(value, list):
            return [short(item) for item in value]
        return round(value, 6) if isinstance(value, float) else value

    return json.dumps(short(data), indent=1, allow_nan=False) + "\n"
