# SPDX-License-Identifier: GPL-2.0
"""Sweep files: a base scenario and axes, and the runs that they stand for.

The base is a scenario of any kind: the dumbbell, a network of its own (`[[link]]`), or trace flows
(`[trace]`). A run is named by a hash of all that decides it, so a run of the same name is the same.
"""

from __future__ import annotations

import copy
import itertools
import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paqm_lab import cache, scenario, trace_scenario
from paqm_lab.errors import LabError
from paqm_lab.multi import netscenario

Json = dict[str, Any]

SCHEMA = scenario.SCENARIOS / "sweep.schema.json"
FORMAT = 1  # of what workers write


@dataclass(frozen=True)
class Task:
    """One run: a scenario with one variant and a seed."""

    key: str
    kind: str  # dumbbell, network, trace
    path: Path  # names the scenario in what is refused
    data: Json
    variant: Json
    seed: int
    axes: Json
    score: bool

    @property
    def label(self) -> str:
        words = [f"{name}={value}" for name, value in self.axes.items()]
        return " ".join([self.variant["name"], *words, f"seed {self.seed}"])


@dataclass(frozen=True)
class Sweep:
    """A checked sweep file."""

    path: Path
    data: Json
    base: Path

    @property
    def name(self) -> str:
        return str(self.data["name"])


def kind_of(data: Json) -> str:
    """Which kind of scenario this is."""
    if trace_scenario.describes(data):
        return "trace"
    return "network" if netscenario.describes(data) else "dumbbell"


def check_scenario(path: Path, data: Json) -> Any:
    """The checked scenario of its kind."""
    checks: dict[str, Any] = {
        "trace": trace_scenario.check, "network": netscenario.check, "dumbbell": scenario.check,
    }
    return checks[kind_of(data)](path, data)


def read(name: str) -> Sweep:
    """The sweep of a file; its base is found beside it, or among the lab's scenarios."""
    path = Path(name)
    try:
        data = tomllib.loads(path.read_text("utf-8-sig"))
    except OSError as err:
        raise LabError(f"{name}: cannot read the sweep: {err.strerror}") from err
    except (ValueError, RecursionError) as err:  # also what is nested too deeply
        raise LabError(f"{path}: not valid TOML: {err}") from err
    scenario.validate(path, data, SCHEMA)
    beside = path.parent / data["base"]
    found, _ = scenario.read(str(beside) if beside.is_file() else data["base"])
    return Sweep(path, data, found)


def _keys(value: Any) -> list[str]:
    """What may stand at the next place of a dotted key."""
    if isinstance(value, dict):
        return list(value)
    if isinstance(value, list):
        names = [entry["name"] for entry in value if isinstance(entry, dict) and "name" in entry]
        return [*names, *map(str, range(1, len(value) + 1)), "*"]
    return []


def _step(value: Any, word: str) -> list[Any]:
    """The places that a word of a dotted key leads to."""
    if isinstance(value, dict):
        return [value[word]] if word in value else []
    if isinstance(value, list):
        if word == "*":
            return list(value)
        named = [entry for entry in value if isinstance(entry, dict) and entry.get("name") == word]
        if not named and word.isdecimal() and 0 < int(word) <= len(value):
            return [value[int(word) - 1]]
        return named
    return []


def set_key(data: Json, key: str, value: Any, where: str) -> None:
    """Sets a dotted key; entries of a list go by name, by number from 1, or * for all."""
    *way, last = key.split(".")
    places: list[Any] = [data]
    gone: list[str] = []
    for word in way:
        following = [step for place in places for step in _step(place, word)]
        if not following:
            at = ".".join(gone) or "the scenario"
            have = ", ".join(_keys(places[0])) or "nothing below"
            raise LabError(f'{where}: there is no "{word}" in {at}; it has {have}')
        places, gone = following, [*gone, word]
    for place in places:
        if not isinstance(place, dict):
            at = ".".join(gone)
            have = ", ".join(_keys(place)) or "no keys"
            raise LabError(f'{where}: "{key}" is no value in {at}, which has {have}')
        place[last] = value


def _axes(sweep: Sweep) -> list[list[Json]]:
    """The places on each axis, as values of its keys; `"a, b" = [[1, 2], ...]` sets two at once."""
    found = []
    for name, values in sweep.data.get("axes", {}).items():
        keys = [word.strip() for word in name.split(",")]
        places = []
        for value in values:
            if len(keys) == 1:
                places.append({keys[0]: value})
                continue
            if not isinstance(value, list) or len(value) != len(keys):
                raise LabError(
                    f'{sweep.path}: axes."{name}": {value!r}: expected a list of {len(keys)} values'
                )
            places.append(dict(zip(keys, value, strict=True)))
        found.append(places)
    return found


def _of_place(sweep: Sweep, base: Json, axes: Json) -> Json:
    """The scenario at a place of all axes."""
    data = copy.deepcopy(base)
    for key, value in axes.items():
        where = f'{sweep.path}: axes."{key}"'
        if key.split(".")[0] in ("seed", "name"):
            raise LabError(f"{where}: give seeds as `seeds = [...]`; a name is no axis")
        set_key(data, key, value, where)
    at = ", ".join(f"{key} = {value}" for key, value in axes.items())
    try:
        check_scenario(sweep.base, data)
    except LabError as err:
        raise LabError(f"{sweep.path}: at {at or 'the base'}: {err}") from err
    return data


def tasks(sweep: Sweep, programs: str) -> list[Task]:
    """All runs, seeds outermost: a sweep that is stopped has seen all places.

    `programs` names the state of everything that shapes a result besides the scenario.
    """
    _, base = scenario.read(str(sweep.base))
    seeds = sweep.data.get("seeds", [base.get("seed", 1)])
    score = bool(sweep.data.get("score", False))
    places = []
    for combination in itertools.product(*_axes(sweep)):
        axes: Json = {key: value for place in combination for key, value in place.items()}
        data = _of_place(sweep, base, axes)
        names = sweep.data.get("variants", [])
        for variant in scenario.chosen_variants(sweep.base, data["variant"], names):
            places.append((axes, {**data, "variant": [variant]}, variant))
    found = {}
    for seed, (axes, data, variant) in itertools.product(seeds, places):
        text = json.dumps([FORMAT, data, seed, score, programs], sort_keys=True)
        key = cache.digest(text.encode())
        found[key] = Task(key, kind_of(data), sweep.base, data, variant, seed, axes, score)
    return list(found.values())
