# SPDX-License-Identifier: GPL-2.0
"""Groups of runs beside each other: what may be put together, and what a mean stands for."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paqm_lab import compare, plot, site, stats, store
from paqm_lab.errors import LabError

DELAY, FRAMES = "media_sojourn_ms.p95", "frame_delivery_ms.p95"
RUNS = {"paqm": (2.0, 3.0, 4.0), "cake": (3.0, 4.0, 10.0)}  # by seed


def fill(
    out: Path, programs: str = "p", lost: float = 8, began: float = 0.0, rtt_ms: float = 40
) -> Path:
    """A sweep of both variants; frames of runs with more delay than `lost` never came."""
    (out / "results").mkdir(exist_ok=True)
    for variant, values in RUNS.items():
        for seed, value in enumerate(values, start=1):
            key = f"{programs}-{variant}-{seed}"
            told: dict[str, Any] = dict.fromkeys(store.COLUMNS, "x") | {
                "key": key, "scenario": "demo", "variant": variant, "seed": seed,
                "programs": programs, "begun": began, "ended": began + 1,
                "axes": {"path.rtt_ms": rtt_ms},
                "versions": {"paqm": programs, "kernel": "k", "image": "i"},
                "directory": f"runs/{key}-1",
                "figures": [["", DELAY, value], ["", FRAMES, None if value > lost else value]],
            }  # fmt: skip
            (out / "results" / f"{key}.json").write_text(json.dumps(told))
    store.fill(out)
    return out


def main(command: Callable[[], int], *words: str) -> None:
    """One of the lab's commands."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["paqm-lab", *words])
        assert command() == 0


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


def test_a_state_of_the_programs_is_no_replication(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same runs, made again when something in the lab has changed, make nothing surer."""
    out = fill(tmp_path)
    once = compared(f"{out}:variant=paqm", f"{out}:variant=cake", "*")
    assert not capsys.readouterr().err
    for n in range(1, 3):
        fill(tmp_path, f"q{n}", began=n)
    assert compared(f"{out}:variant=paqm", f"{out}:variant=cake", "*") == once
    said = "store: 6 runs of other states of the programs are left out; programs=p|q1 names them"
    assert capsys.readouterr().err == f"{said}\n" * 2
    db = store.opened(out)
    assert {run["programs"] for run in store.chosen(db, [])} == {"q2"}
    assert [run["key"] for run in store.chosen(db, ["key=p-cake-1"])] == ["p-cake-1"]
    assert len(store.chosen(db, ["programs=p|q2"])) == 12


def test_two_states_are_compared_when_they_are_named(tmp_path: Path) -> None:
    out = fill(fill(tmp_path), "q", lost=99, began=1)
    (row,), pairs = compared(f"{out}:programs=p", f"{out}:programs=q", DELAY)
    assert pairs == 6 and row[4] == 0
    with pytest.raises(LabError, match="of 2 states .*; name one .*: programs=p or programs=q"):
        compare.group(f"{out}:programs=p|q,variant=paqm")
    with pytest.raises(LabError, match="of 2 states"):
        main(plot.main, str(out), "programs=p|q", "--figure", DELAY)


def test_a_number_is_named_as_tables_show_it(tmp_path: Path) -> None:
    """An axis of 20.5 and 80.0 is shown as 20.5 and 80."""
    fill(tmp_path, "p", rtt_ms=80.0)
    db = store.opened(fill(tmp_path, "q", rtt_ms=20.5))
    for name, found in (("80", 6), ("80.0", 6), ("20.5|80", 12), ("8", 0), ("x", 0)):
        filters = ["programs=p|q", f"path.rtt_ms={name}"]
        assert len(store.chosen(db, filters)) == found


@pytest.mark.parametrize("words", [["seed=1"], ["--figure", DELAY]])
def test_a_filter_beside_sql_is_refused(tmp_path: Path, words: list[str]) -> None:
    """Not passed over: the answer would be of all runs."""
    asked = ["query", str(fill(tmp_path)), *words, "--sql", "SELECT variant FROM run"]
    with pytest.raises(LabError, match=f"^{' '.join(words)} does not go with --sql"):
        main(store.main, *asked)
    main(store.main, *[word for word in asked if word not in words])


@pytest.mark.parametrize("content", ["", "no database " * 100, "older"])
def test_a_store_that_is_none_is_told(tmp_path: Path, content: str) -> None:
    out = fill(tmp_path)
    if content == "older":  # of a version that kept less
        with contextlib.closing(sqlite3.connect(out / store.NAME)) as db:
            db.execute("ALTER TABLE run DROP COLUMN cpu_s")
    else:
        (out / store.NAME).write_text(content)
    with pytest.raises(LabError, match=r"store\.sqlite: .*; delete it and run `paqm-lab store"):
        store.opened(out)
    if content:  # an empty file is an empty store to be filled
        with pytest.raises(LabError, match=r"store\.sqlite: .*; delete it and run"):
            store.fill(out)


def test_many_flows_leave_room_for_the_diagram(tmp_path: Path) -> None:
    out = fill(tmp_path)
    runs = store.chosen(store.opened(out), ["seed=1"])
    for run in runs:
        home = out / run["directory"] / run["variant"] / "series"
        home.mkdir(parents=True)
        head = ",".join(f"flow-{n}" for n in range(200))
        (home / "rates.csv").write_text(f"t,{head}\n" + f"0{',1' * 200}\n1{',2' * 200}\n")
    figure = plot.over_time(out, runs, "rates")
    figure.draw_without_rendering()
    for axes in figure.axes:
        assert axes.get_position().height > 0.25
        legend = axes.get_legend()
        assert legend and [text.get_text() for text in legend.get_texts()][-1] == "and 177 more"


def test_a_site_takes_nothing_away(tmp_path: Path) -> None:
    """But its own old pages: in the directory of the sweep itself there are the runs."""
    out = fill(tmp_path)
    log = out / "runs" / "p-paqm-1-1" / "log"
    log.parent.mkdir(parents=True)
    log.write_text("of a run")
    (out / "runs" / "old.js").touch()
    assert site.write(out, out) == 6
    assert log.read_text() == "of a run"
    assert sorted(path.stem for path in (out / "runs").glob("*.js")) == sorted(
        f"p-{variant}-{seed}" for variant in RUNS for seed in (1, 2, 3)
    )


def test_why_there_are_no_pairs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "far").mkdir()
    near, far = fill(tmp_path), fill(tmp_path / "far", rtt_ms=80)
    for a, b, why in (
        (f"{near}:seed=1", f"{near}:seed=2", "2 pairs"),
        (
            f"{near}:variant=paqm,seed=1|2",
            f"{near}:variant=cake",
            "some of A are the same but for ",
        ),
        (str(near), f"{far}:seed=1", "some of A are the same but for seed"),
        (
            f"{near}:variant=paqm",
            f"{far}:variant=cake",
            "none of A is the same as one of B but for",
        ),
    ):
        main(compare.main, a, b)
        assert why in capsys.readouterr().out


def test_filters_that_leave_nothing_of_a_result(tmp_path: Path) -> None:
    variants = [{"name": "paqm", "figures": {"delay": 1.0}}]
    result = {"scenario": "demo", "seed": 1, "checks": [], "variants": variants}
    (tmp_path / "result.json").write_text(json.dumps(result))
    with pytest.raises(LabError, match="no run is left by the filters"):
        compare.group(f"{tmp_path}:variant=cake,seed=1")
    with pytest.raises(LabError, match="expected NAME=VALUE with one of scenario, variant, seed"):
        compare.group(f"{tmp_path}:variant=cake,sead=1")
