# SPDX-License-Identifier: GPL-2.0
"""The catalogue: every row is there, and verdicts follow from figures, on cases worked by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from paqm_lab import cache
from paqm_lab.catalogue import context, docs, rows_acceptance, table, verdict
from paqm_lab.catalogue.row import HIGHER, LOWER, Figure, Row
from paqm_lab.errors import LabError


def figure(**more: object) -> Figure:
    return Figure("f", "a figure", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("figure", "values", "expected"),
    [
        # 10 of which 5 % are 0.5; one run has no interval
        (figure(published=10.0), [10.5], "reproduced"),
        (figure(published=10.0), [10.6], "worse"),  # no way is better
        (figure(published=10.0, better=HIGHER), [10.6], "better"),
        (figure(published=10.0, better=LOWER), [10.6], "worse"),
        (figure(published=10.0, better=LOWER), [9.4], "better"),
        (figure(published=10.0, tolerance=1.0), [11.0], "reproduced"),
        (figure(published=0.0, better=LOWER), [0.0], "reproduced"),
        (figure(published=0.0, better=LOWER), [0.1], "worse"),
        # 11, 12: mean 11.5, deviation 0.7071, standard error 0.5, t(1) 12.706: ± 6.353, which would
        # meet any band around 10
        (figure(published=10.0), [11.0, 12.0], "undecided"),
        (figure(published=11.5), [11.0, 12.0], "reproduced"),  # the mean is there
        (figure(published=10.0, tolerance=1.49), [11.49, 11.51], "reproduced"),  # ± 0.127
        (figure(high=11.0), [11.0, 12.0], "undecided"),
        (figure(high=11.5), [11.0, 12.0], "reproduced"),
        # 11.9, 12, 12.1: mean 12, deviation 0.1, error 0.05774, t(2) 4.3027: ± 0.248
        (figure(published=10.0), [11.9, 12.0, 12.1], "worse"),
        (figure(published=12.8, tolerance=0.55), [11.9, 12.0, 12.1], "worse"),  # from 12.25
        (figure(published=12.8, tolerance=0.56), [11.9, 12.0, 12.1], "reproduced"),  # from 12.24
        (figure(low=0.9, high=1.1), [1.1], "reproduced"),
        (figure(low=0.9), [0.8], "worse"),
        (figure(high=5.0), [5.0], "reproduced"),
        (figure(published=10.0), [10.0, None], "worse"),  # one that was not reached
        (figure(), [10.0], ""),  # decides nothing
        (figure(published=10.0), [], ""),
    ],
)  # fmt: skip
def test_figure(figure: Figure, values: list[float | None], expected: str) -> None:
    assert verdict.of_figure(figure, values)["verdict"] == expected


def test_interval() -> None:
    """t(2) is 4.3027; deviation of 1, 2, 3 is 1: half is 4.3027 / sqrt 3."""
    assert verdict.interval([1, 2, 3]) == (2, pytest.approx(2.4842, abs=1e-4))
    assert verdict.interval([1]) == (1, None)


def row(*figures: Figure, id_: str = "E1", **more: str) -> Row:
    return Row(id_, "a row", "as printed", figures, **more)  # type: ignore[arg-type]


SOME = (
    Figure("a", "the one", published=1.0, better=HIGHER),
    Figure("b", "the other", published=1.0, better=HIGHER),
)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"a": 1.0, "b": 1.0}, "reproduced"),
        ({"a": 2.0, "b": 1.0}, "better"),
        ({"a": 2.0, "b": 0.5}, "worse"),
        ({"a": 2.0}, "pending"),
    ],
)
def test_row(values: dict[str, float], expected: str) -> None:
    assert verdict.of_row(row(*SOME), [values])["verdict"] == expected


def test_a_row_with_a_figure_that_runs_do_not_tell_says_which() -> None:
    made = verdict.of_row(row(*SOME), [{"a": 2.0, "b": 1.1}, {"a": 2.0, "b": 1.2}])
    assert (made["verdict"], made["reason"]) == ("undecided", "the other")
    made |= {"scale": "reduced", "counted": 2, "runs": {"reduced-1": {}}}
    assert "| undecided, 2 runs |" in docs.page({"rows": [made], "counts": {}})


def test_row_without_runs() -> None:
    assert verdict.of_row(row(*SOME), [])["reason"] == "not run yet"
    assert verdict.of_row(row(*SOME, pending="needs X"), [])["reason"] == "needs X"
    assert verdict.of_row(row(*SOME, incomparable="why"), [])["verdict"] == "not comparable"
    assert verdict.of_row(row(figure()), [{"f": 1.0}])["verdict"] == "not comparable"


def test_pass_is_asked_of_x_rows() -> None:
    """The interval may reach into the band: to pass, the mean has to lie in it."""
    near = figure(published=10.0, tolerance=1.0)
    runs = [{"f": 11.0}, {"f": 12.0}]
    assert "pass" not in verdict.of_row(row(near), runs)
    made = verdict.of_row(row(near, id_="X4"), runs)
    assert made["verdict"] == "undecided" and made["pass"] is False
    assert verdict.of_row(row(near, id_="X4"), [{"f": 11.0}])["pass"] is True
    assert verdict.of_row(row(near, id_="X4"), [])["pass"] is False


def test_every_row_is_there_once() -> None:
    """All that the documents print, and no row by the name of another."""
    assert list(table.rows()) == list(table.IDS)
    written = [row.id for file in table.FILES for row in file.ROWS]
    assert sorted(written) == sorted(table.IDS)


def test_rows_are_sound() -> None:
    for id_, one in table.rows().items():
        assert one.run or one.pending or one.incomparable, id_
        names = [f.id for f in one.figures]
        assert len(names) == len(set(names)), id_
        assert not one.scenario or (cache.REPO / one.scenario).exists(), id_


class Told:
    """A context whose guest tells of these checks."""

    def __init__(self, **values: float) -> None:
        self.values = values

    def guest(self, *_: object) -> dict[str, object]:
        return {"checks": [{"name": name, "value": of} for name, of in self.values.items()]}


def test_counters_of_which_nothing_is_told_do_not_agree() -> None:
    rate = {"1 h at line rate: rate of the link": 100.0}
    told = [Told(**rate, **more) for more in ({}, {"a: difference": 0.0, "b: difference": -2.0})]
    found = [rows_acceptance.soak(ctx, 1)["lost"] for ctx in told]  # type: ignore[arg-type]
    assert found == [None, 2.0]
    runs = [{"lost": value, "rate": 100.0} for value in found]
    assert verdict.of_row(table.rows()["X15"], runs[:1])["pass"] is False


def test_page() -> None:
    """A row that fails shows on the page."""
    made = verdict.of_row(row(*SOME, id_="X4"), [{"a": 1.0, "b": 0.5}])
    made |= {"scale": "reduced", "counted": 1, "runs": {"reduced-1": {}}}
    text = docs.page({"rows": [made], "counts": {"worse": 1}})
    assert "**does not pass**: the other" in text and "| the one | 1 | 1 | reproduced |" in text


def test_a_run_of_another_command_is_left_to_it(tmp_path: Path) -> None:
    def make(home: Path) -> None:
        with pytest.raises(LabError, match="another paqm-lab is at work there"):
            context.Store(tmp_path, print).get({"row": 1}, make)
        (home / "result.json").write_text('{"value": 2}')

    assert context.Store(tmp_path, print).get({"row": 1}, make) == {"value": 2}
