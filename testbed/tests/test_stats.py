# SPDX-License-Identifier: GPL-2.0
"""Intervals of means: against tables of Student's t and examples worked by hand."""

import pytest

from paqm_lab import stats


@pytest.mark.parametrize(
    ("freedom", "width"),
    [(1, 12.7062), (2, 4.3027), (4, 2.7764), (10, 2.2281), (30, 2.0423), (1e6, 1.96)],
)
def test_students_t(freedom: float, width: float) -> None:
    assert stats.t_width(freedom) == pytest.approx(width, abs=1e-3)


def test_welch() -> None:
    found = stats.welch([1, 2, 3], [4, 6, 8])
    assert found is not None
    # variances 1 and 4, 2.94 degrees of freedom
    assert found.mean == -4 and found.half == pytest.approx(4.155, abs=0.01)
    assert stats.welch([1], [4, 6]) is None
    same = stats.welch([2, 2], [1, 1])
    assert same == stats.Interval(1, 0, 2)


def test_pairs() -> None:
    found = stats.paired([1, 2, 4])
    assert found is not None
    assert (found.low, found.high) == pytest.approx((-1.461, 6.128), abs=1e-3)
    assert stats.paired([1]) is None
