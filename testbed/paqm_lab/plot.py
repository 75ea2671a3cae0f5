# SPDX-License-Identifier: GPL-2.0
"""`paqm-lab plot`: diagrams from a store: a figure against an axis, CDFs, series over time."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from paqm_lab import plots, rundata, stats, store
from paqm_lab.errors import LabError

Json = dict[str, Any]
MANY = 6  # runs whose series are shown beside each other


def _colours(runs: list[Json]) -> dict[str, str]:
    names = dict.fromkeys(run["variant"] for run in runs)
    colours = plots.VARIANT_COLOURS
    return {name: colours[i % len(colours)] for i, name in enumerate(names)}


def _label(variant: str, some: list[float | None]) -> str:
    """What the legend says; runs without a number have an infinite one, or it was not taken."""
    lacking = some.count(None)
    return f"{variant} (no number in {lacking} of {len(some)} runs)" if lacking else variant


def against(runs: list[Json], values: dict[str, float | None], axis: str, label: str) -> Figure:
    """Means and intervals of a figure at the places of an axis, a line for each variant.

    Where a run has no number there is no mean.
    """
    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.subplots()
    places: list[Any] = list(dict.fromkeys(run.get(axis) for run in runs))
    if None in places:
        raise LabError(f"{axis!r} is no axis of all these runs")
    numbers = all(isinstance(place, int | float) for place in places)
    at: dict[Any, float] = {place: place if numbers else i for i, place in enumerate(places)}
    for variant, colour in _colours(runs).items():
        rows = []
        for place in places:
            some = [values.get(run["key"]) for run in runs
                    if (run["variant"], run.get(axis)) == (variant, place)]
            known = [value for value in some if value is not None]
            if known and len(known) == len(some):
                half = stats.paired(known)
                rows.append((at[place], stats.mean(known), half.half if half else 0.0))
        x, y, bar = zip(*sorted(rows), strict=True) if rows else ((), (), ())
        mine = [values.get(run["key"]) for run in runs if run["variant"] == variant]
        axes.errorbar(x, y, bar, label=_label(variant, mine), color=colour, marker="o", capsize=3)
    if not numbers:
        axes.set_xticks(list(at.values()), [str(place) for place in places])
    axes.set(xlabel=axis, ylabel=label, title=f"{label}: mean and 95 % interval")
    axes.legend()
    return figure


def of_runs(runs: list[Json], values: dict[str, float | None], label: str) -> Figure:
    """How a figure is distributed over the runs of each variant; who has no number has most."""
    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.subplots()
    for variant, colour in _colours(runs).items():
        some = [values.get(run["key"]) for run in runs if run["variant"] == variant]
        known = sorted(value for value in some if value is not None)
        part = 100 * np.arange(1, len(known) + 1) / len(some)
        axes.step(known, part, where="post", label=_label(variant, some), color=colour)
    axes.set(xlabel=label, ylabel="runs that have less, %", title="Distribution over the runs")
    axes.legend()
    return figure


def _series(out: Path, run: Json, name: str) -> rundata.Table:
    path = out / run["directory"] / run["variant"] / "series" / f"{name}.csv"
    table = rundata.load_csv(path)
    if table is None:
        have = sorted(file.stem for file in path.parent.glob("*.csv"))
        raise LabError(f"{path}: there is no such series; there are {', '.join(have) or 'none'}")
    return table


def delays(out: Path, runs: list[Json]) -> Figure:
    """Distribution of the delay of media packets in each run."""
    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.subplots()
    colours, named = _colours(runs), set()
    for run in runs:
        table, variant = _series(out, run, "sojourn_cdf"), run["variant"]
        label = variant if variant not in named else None
        named.add(variant)
        axes.plot(table["media_ms"], 100 * table["quantile"], color=colours[variant],
                  alpha=0.6 if len(runs) > MANY else 1, label=label)
    axes.set_xscale("log")
    axes.set(xlabel="delay, ms", ylabel="packets that took less, %", title="Media packets")
    axes.legend()
    return figure


def over_time(out: Path, runs: list[Json], name: str) -> Figure:
    """All columns of a series, a panel for each run."""
    if len(runs) > MANY:
        raise LabError(f"{len(runs)} runs are left by the filters; expected up to {MANY}, such as "
                       f"key={runs[0]['key']}")
    figure = Figure(figsize=(9, 2.6 * len(runs)), layout="constrained")
    panels = figure.subplots(len(runs), sharex=True, squeeze=False)[:, 0]
    for axes, run in zip(panels, runs, strict=True):
        table = _series(out, run, name)
        for column in table.columns:
            if column != "t" and not column.startswith("share_"):
                axes.plot(table["t"], table[column], label=column)
        axes.set_title(f"{run['variant']}, seed {run['seed']} ({run['key']})")
        axes.legend(*plots.entries(axes), ncols=8, fontsize=7)
    panels[-1].set_xlabel("t, s")
    return figure


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path, metavar="DIR", help="of a sweep")
    parser.add_argument("filter", nargs="*", metavar="NAME=VALUE", help="as of `store query`")
    parser.add_argument("--figure", metavar="[FLOW:]FIGURE", help="its distribution over the runs")
    parser.add_argument("--against", metavar="AXIS", help="--figure at each place of this axis")
    parser.add_argument("--delays", action="store_true", help="CDF of media packets' delay")
    parser.add_argument("--series", metavar="NAME", help="such as rates, of a few runs")
    parser.add_argument("--out", type=Path, default=Path("plot.svg"), metavar="FILE",
                        help=".svg, .png or .pdf (%(default)s)")
    args = parser.parse_intermixed_args()
    if sum(map(bool, (args.figure, args.delays, args.series))) != 1:
        raise LabError("expected one of --figure, --delays, --series")
    if args.against and not args.figure:
        raise LabError("--against needs --figure")
    db = store.opened(args.directory)
    runs = store.chosen(db, args.filter)
    if not runs:
        raise LabError("no run is left by the filters")
    with plots.style():
        if args.figure:
            store.need_one_state(runs)
            flow, _, name = args.figure.rpartition(":")
            values = store.figures_of(db, name, flow)
            drawn = (against(runs, values, args.against, args.figure) if args.against
                     else of_runs(runs, values, args.figure))
        elif args.delays:
            drawn = delays(args.directory, runs)
        else:
            drawn = over_time(args.directory, runs, args.series)
        try:
            drawn.savefig(args.out)
        except (OSError, ValueError) as err:
            raise LabError(f"{args.out}: cannot write: {err}") from err
    print(args.out)
    return 0
