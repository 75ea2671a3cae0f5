# SPDX-License-Identifier: GPL-2.0
"""Intervals for means of few runs: Student's t, Welch's difference of two means, paired ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

CONFIDENCE = 0.95


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function, by Lentz's method."""
    tiny = 1e-300
    c, d = 1.0, 1 / ((1 - (a + b) * x / (a + 1)) or tiny)
    value = d
    for m in range(1, 500):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / ((1 + term * d) or tiny)
            c = (1 + term / c) or tiny
            value *= c * d
        if abs(c * d - 1) < 1e-14:
            break
    return value


def _beta(a: float, b: float, x: float) -> float:
    """Regularized incomplete beta function."""
    if x <= 0 or x >= 1:
        return min(max(x, 0.0), 1.0)
    front = math.exp(
        math.lgamma(a + b)
        - math.lgamma(a)
        - math.lgamma(b)
        + a * math.log(x)
        + b * math.log1p(-x)
    )
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, x) / a
    return 1 - front * _fraction(b, a, 1 - x) / b


@cache
def t_width(freedom: float) -> float:
    """Student's t: how many standard errors a two-sided interval of CONFIDENCE reaches."""
    low, high = 0.0, 1e6
    for _ in range(200):
        middle = (low + high) / 2
        outside = _beta(freedom / 2, 0.5, freedom / (freedom + middle**2))
        low, high = (middle, high) if outside > 1 - CONFIDENCE else (low, middle)
    return (low + high) / 2


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def variance(values: Sequence[float]) -> float:
    """Of a sample; needs two values or more."""
    middle = mean(values)
    return sum((value - middle) ** 2 for value in values) / (len(values) - 1)


@dataclass(frozen=True)
class Interval:
    """A mean and half the width of its interval."""

    mean: float
    half: float
    count: int

    @property
    def low(self) -> float:
        return self.mean - self.half

    @property
    def high(self) -> float:
        return self.mean + self.half


def welch(a: Sequence[float], b: Sequence[float]) -> Interval | None:
    """mean(a) - mean(b), whose variances may differ; None with less than two values in one."""
    if min(len(a), len(b)) < 2:
        return None
    va, vb = variance(a) / len(a), variance(b) / len(b)
    difference = mean(a) - mean(b)
    if va + vb == 0:
        return Interval(difference, 0.0, min(len(a), len(b)))
    freedom = (va + vb) ** 2 / (va**2 / (len(a) - 1) + vb**2 / (len(b) - 1))
    return Interval(difference, t_width(freedom) * math.sqrt(va + vb), min(len(a), len(b)))


def paired(differences: Sequence[float]) -> Interval | None:
    """The mean of differences of pairs; None with less than two."""
    count = len(differences)
    if count < 2:
        return None
    half = t_width(count - 1) * math.sqrt(variance(differences) / count)
    return Interval(mean(differences), half, count)
