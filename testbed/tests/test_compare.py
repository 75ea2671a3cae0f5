# SPDX-License-Identifier: GPL-2.0
"""Groups of runs beside each other: what may be put together, and what a mean stands for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paqm_lab import compare, plot, stats, store

DELAY, FRAMES = "media_sojourn_ms.p95", "frame_delivery_ms.p95"
RUNS = {"paqm": (2.0, 3.0, 4.0), "cake": (3.0, 4.0, 10.0)}  # by seed


def fill(out: Path, programs: str = "p", lost: float = 8, began: float = 0.0) -> Path:
    """A sweep of both variants; frames of runs with more delay than `lost` never came."""
    (out / "results").mkdir(exist_ok=True)
    for variant, values in RUNS.items():
        for seed, value in enumerate(values, start=1):
            key = f"{programs}-{variant}-{seed}"
            told: dict[str, Any] = dict.fromkeys(store.COLUMNS, "x") | {
                "key": key, "scenario": "demo", "variant": variant, "seed": seed,
                "programs": programs, "begun": began, "ended": began + 1,
                "axes": {"path.rtt_ms": 40},
                "versions": {"paqm": programs, "kernel": "k", "image": "i"},
                "figures": [["", DELAY, value], ["", FRAMES, None if value > lost else value]],
            }  # fmt: skip
            (out / "results" / f"{key}.json").write_text(json.dumps(told))
    store.fill(out)
    return out


def compared(a: str, b: str, figure: str) -> tuple[list[list[Any]], int]:
    (left, in_a), (right, in_b) = compare.group(a), compare.group(b)
    return compare.compare(left, right, in_a | in_b, "", figure)


def test_pairs_in_both_columns(tmp_path: Path) -> None:
    """A seed that one group lacks is in neither mean."""
    out = fill(tmp_path)
    (out / "results" / "p-cake-3.json").unlink()
    (out / store.NAME).unlink()
    store.fill(out)
    (row,), pairs = compared(f"{out}:variant=paqm", f"{out}:variant=cake", DELAY)
    assert pairs == 2
    assert row[2:] == [2.5, 3.5, 1.0, 0.0, 0, 2]


def test_a_run_without_a_number_is_told(tmp_path: Path) -> None:
    """Frames of CAKE's third run never came: its delay is no mean of the other two."""
    out = fill(tmp_path)
    (row,), pairs = compared(f"{out}:variant=paqm", f"{out}:variant=cake", FRAMES)
    assert pairs == 3
    assert row[2:] == [3.0, None, None, None, 1, 3]
    (row,), _ = compared(f"{out}:variant=paqm", f"{out}:variant=cake", DELAY)
    half = stats.paired([1.0, 1.0, 6.0])
    assert half and row[2:] == pytest.approx([3.0, 17 / 3, 8 / 3, half.half, 0, 3])


def test_a_group_without_any_number_is_told(tmp_path: Path) -> None:
    out = fill(tmp_path, lost=3.5)
    (row,), _ = compared(f"{out}:variant=paqm,seed=1|2", f"{out}:variant=cake,seed=2|3", FRAMES)
    assert row[2:] == [2.5, None, None, None, 2, 2]
    rows, _ = compared(f"{out}:variant=paqm,seed=3", f"{out}:variant=cake,seed=3", FRAMES)
    assert not rows


def test_diagrams_tell_it_too(tmp_path: Path) -> None:
    db = store.opened(fill(tmp_path))
    runs, values = store.chosen(db, []), store.figures_of(db, FRAMES)
    legend = ["cake (no number in 1 of 3 runs)", "paqm"]
    (axes,) = plot.against(runs, values, "path.rtt_ms", FRAMES).axes
    assert axes.get_legend_handles_labels()[1] == legend
    points = [line for line in axes.lines if line.get_marker() == "o"]
    assert [len(np.asarray(line.get_xdata())) for line in points] == [0, 1]
    (axes,) = plot.of_runs(runs, values, FRAMES).axes
    assert axes.get_legend_handles_labels()[1] == legend
    most = [max(np.asarray(line.get_ydata())) for line in axes.lines]
    assert most == pytest.approx([200 / 3, 100])
