# SPDX-License-Identifier: GPL-2.0
"""Stability by theory, against printed values and against the closed form without lag."""

from __future__ import annotations

import pytest

from paqm_lab import stability

ALPHA = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5)
# Largest stable beta, found to 0.005 and printed to two places; None: there is none.
PRINTED = {
    1.0: (0.19, 0.27, 0.34, 0.40, 0.46, 0.50, 0.52, 0.53, 0.55, 0.55, 0.53, 0.48, 0.41, 0.31, 0.15),
    0.9: (0.18, 0.26, 0.33, 0.39, 0.44, 0.47, 0.48, 0.49, 0.49, 0.47, 0.42, 0.34, 0.22, 0.03, None),
    0.7: (0.18, 0.25, 0.31, 0.35, 0.38, 0.38, 0.37, 0.36, 0.30, 0.19, *[None] * 5),
    0.5: (0.17, 0.23, 0.26, 0.27, 0.24, 0.15, 0.08, *[None] * 8),
}


@pytest.mark.parametrize("part", PRINTED)
def test_largest_beta(part: float) -> None:
    for alpha, printed in zip(ALPHA, PRINTED[part], strict=True):
        found = stability.largest_beta(alpha, part)
        if printed is None:
            assert found is None, alpha
        else:
            assert found == pytest.approx(printed, abs=0.01), alpha


def limits(beta: float, skip: float, measured: float, lag: float) -> tuple[float, float] | None:
    """Lowest and highest stable alpha, in steps of 0.01."""
    stable = [
        a / 100
        for a in range(1, 300)
        if stability.sampled_growth(a / 100, beta, skip, measured, lag) < 1
    ]
    return (stable[0], stable[-1]) if stable else None


@pytest.mark.parametrize(("beta", "skip", "measured"), [(0.4, 0.1, 0.5), (0.35, 0.2, 0.3)])
def test_recursion_without_lag(beta: float, skip: float, measured: float) -> None:
    """beta skip / d < alpha < 2 + beta (skip - measured) / (2 d)."""
    d = skip + measured
    low, high = beta * skip / d, 2 + beta * (skip - measured) / (2 * d)
    assert limits(beta, skip, measured, 0) == pytest.approx((low, high), abs=0.011)


@pytest.mark.parametrize(
    ("lag", "printed"), [(0.0, (0.07, 1.87)), (0.2, (0.26, 2.1)), (0.3, (0.40, 1.16)), (0.4, None)]
)
def test_recursion_with_lag(lag: float, printed: tuple[float, float] | None) -> None:
    found = limits(0.4, 0.1, 0.5, lag)
    if printed is None:
        assert found is None
    else:
        assert found == pytest.approx(printed, abs=0.051)


def test_gains_with_lag() -> None:
    """The fast ones diverge with a lag of 0.4 s; slow ones are stable up to 0.5 s."""
    assert stability.sampled_growth(0.75, 0.35, 0.1, 0.5, 0.4) > 1
    for alpha, beta in ((0.5, 0.15), (0.39, 0.084)):
        assert stability.sampled_growth(alpha, beta, 0.1, 0.5, 0.5) < 1
