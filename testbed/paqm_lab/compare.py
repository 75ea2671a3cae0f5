# SPDX-License-Identifier: GPL-2.0
"""`paqm-lab compare A B`: differences of figures between two groups of runs, with intervals.

A group is DIR[:NAME=VALUE,...]: the runs of a store that the filters let pass, or the variants of
a result.json. Runs that differ in nothing but what the filters name are compared in pairs.
"""

from __future__ import annotations

import argparse
import fnmatch
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paqm_lab import rundata, stats, store
from paqm_lab.errors import LabError

Figures = dict[tuple[str, str], float | None]  # flow, figure


@dataclass
class Sample:
    """A run: what it is, and its figures."""

    traits: dict[str, Any]
    figures: Figures = field(default_factory=dict)


def _of_store(directory: Path, filters: list[str]) -> list[Sample]:
    db = store.opened(directory)
    own = store.own_columns(db)
    found, chosen = {}, store.chosen(db, filters)
    store.need_one_state(chosen)
    for run in chosen:
        axes = {name: value for name, value in run.items() if name not in own}
        traits = {name: run[name] for name in ("scenario", "variant", "seed")} | axes
        found[run["key"]] = Sample(traits)
    for run, flow, figure, value in db.execute("SELECT run, flow, figure, value FROM figure"):
        if run in found:
            found[run].figures[flow, figure] = value
    return list(found.values())


def _of_result(path: Path, filters: list[str]) -> list[Sample]:
    result = rundata.load_json(path)
    try:
        samples = [
            Sample(
                {"scenario": result["scenario"], "variant": variant["name"],
                 "seed": result["seed"]},
                {(flow, name): value for flow, name, value in store.rows_of(result, variant)},
            )
            for variant in result["variants"]
        ]
    except (KeyError, TypeError) as err:
        raise LabError(f"{path}: not a result of `paqm-lab run`: it lacks {err}") from err
    known = list(samples[0].traits) if samples else []
    for text in filters:
        name, mark, value = text.partition("=")
        if not mark or name not in known:
            raise LabError(f"filter {text!r}: expected NAME=VALUE with one of {', '.join(known)}")
        samples = [one for one in samples if str(one.traits[name]) in value.split("|")]
    return samples


def group(text: str) -> tuple[list[Sample], set[str]]:
    """The runs of DIR[:NAME=VALUE,...], and what its filters name."""
    place, _, rest = text.partition(":")
    filters = [word for word in rest.split(",") if word]
    path = Path(place)
    file = path / "result.json" if path.is_dir() else path
    if path.is_dir() and (path / store.NAME).exists() or path.suffix == ".sqlite":
        found = _of_store(path, filters)
    elif file.exists():
        found = _of_result(file, filters)
    else:
        raise LabError(f"{place}: neither {store.NAME} nor result.json is there")
    if not found:
        raise LabError(f"{text}: no run is left by the filters")
    return found, {word.partition("=")[0] for word in filters}


def _pairs(
    a: list[Sample], b: list[Sample], named: set[str]
) -> tuple[list[tuple[Sample, Sample]], str]:
    """Runs that differ in nothing but what the filters name; if there are none, why."""

    def by_rest(samples: list[Sample]) -> dict[str, Sample]:
        return {str(sorted((name, value) for name, value in sample.traits.items()
                           if name not in named)): sample for sample in samples}

    left, right = by_rest(a), by_rest(b)
    but = f"but for {', '.join(sorted(named))}" if named else "in all"
    for name, runs, different in (("A", a, left), ("B", b, right)):
        if len(different) < len(runs):
            return [], f"some of {name} are the same {but}"
    pairs = [(left[key], right[key]) for key in left if key in right]
    return pairs, "" if pairs else f"none of A is the same as one of B {but}"


def compare(
    a: list[Sample], b: list[Sample], named: set[str], flow: str, figure: str
) -> tuple[list[list[Any]], int]:
    """Rows (flow, figure, mean of A and B, B - A, half of its interval, runs of either that lack
    the figure, runs), number of pairs. With pairs A and B are those in pairs.

    A figure has no number where it would be infinite (of a frame that never came) or was not taken:
    no mean of the others stands for the group then.
    """
    pairs, _ = _pairs(a, b, named)
    if pairs:
        a, b = [one for one, _ in pairs], [two for _, two in pairs]
    names = dict.fromkeys(name for sample in a for name in sample.figures)
    rows: list[list[Any]] = []
    for name in names:
        if not (fnmatch.fnmatch(name[0], flow) and fnmatch.fnmatch(name[1], figure)):
            continue
        of_both = [[sample.figures.get(name) for sample in some] for some in (a, b)]
        left, right = ([value for value in some if value is not None] for some in of_both)
        if not (left or right) or not any(name in sample.figures for sample in b):
            continue
        lacking = len(a) - len(left) + len(b) - len(right)
        row: list[Any] = [stats.mean(left) if len(left) == len(a) else None,
                          stats.mean(right) if len(right) == len(b) else None, None, None]
        if not lacking:
            row[2] = row[1] - row[0]
            interval = (stats.paired([y - x for x, y in zip(left, right, strict=True)]) if pairs
                        else stats.welch(right, left))
            row[3] = None if interval is None else interval.half
        rows.append([*name, *row, lacking, len(pairs) or min(len(a), len(b))])
    return rows, len(pairs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("a", metavar="A", help="DIR[:NAME=VALUE,...]")
    parser.add_argument("b", metavar="B")
    parser.add_argument("--figure", default="*", metavar="PATTERN", help="with * as in a shell")
    parser.add_argument("--flow", default="", metavar="PATTERN",
                        help="figures of these flows (default: those of the whole run)")
    parser.add_argument("--format", choices=("table", "json", "csv"), default="table",
                        help="(%(default)s)")
    args = parser.parse_args()
    (a, in_a), (b, in_b) = group(args.a), group(args.b)
    rows, pairs = compare(a, b, in_a | in_b, args.flow, args.figure)
    if not rows:
        raise LabError(f"no figure {args.figure!r} of flow {args.flow!r} is in both")
    head = ["flow", "figure", "A", "B", "B-A", "+-", "lacking", "runs"]
    store.written([head, *rows], args.format)
    if args.format == "table":
        _, why = _pairs(a, b, in_a | in_b)
        how = f"{pairs} pairs" if pairs else f"{len(a)} and {len(b)} runs, not in pairs: {why}"
        print(f"{how}; +- is half of the {100 * stats.CONFIDENCE:.0f} % interval")
    return 0
