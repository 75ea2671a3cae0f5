# SPDX-License-Identifier: GPL-2.0
"""Does one set of calls differ from another? Without an assumption about how figures spread.

The difference is the Hodges-Lehmann estimate: the median of all differences between a call of the
one and a call of the other queue. Its interval, of 95 %, turns the Mann-Whitney test around (exact
up to EXACT pairs). With four calls of each there is one; with three of each no result whatever
would be beyond chance, and so the report says that there are too few.
"""

from __future__ import annotations

import math
import statistics
from typing import Any

LEVEL = 0.95
EXACT = 2500  # pairs; beyond, the normal approximation is as good


def _counts(n: int, m: int) -> list[int]:
    """In how many orders of n and m values U is 0, 1, ...: a Gaussian binomial's coefficients."""
    size = n * m + 1
    row = [1] + [0] * (size - 1)
    for i in range(1, n + 1):  # times (1 - q^(m+i)) / (1 - q^i)
        for at in range(size - 1, m + i - 1, -1):
            row[at] -= row[at - m - i]
        for at in range(i, size):
            row[at] += row[at - i]
    return row


def _cut(n: int, m: int) -> int:
    """How many of the sorted differences the interval leaves out at each end, plus one; 0: none."""
    tail = (1 - LEVEL) / 2
    if n * m <= EXACT:
        total, below = math.comb(n + m, n), 0
        for u, ways in enumerate(_counts(n, m)):
            below += ways
            if below > tail * total:
                return u
        return 0
    wide = statistics.NormalDist().inv_cdf(1 - tail) * math.sqrt(n * m * (n + m + 1) / 12)
    return max(0, math.floor(n * m / 2 - wide))


def difference(ours: list[float], theirs: list[float]) -> dict[str, Any]:
    """Ours less theirs: estimate, interval (None: too few), the verdict."""
    found: dict[str, Any] = {
        "paqm": {"calls": len(ours), "median": statistics.median(ours) if ours else None},
        "baseline": {"calls": len(theirs), "median": statistics.median(theirs) if theirs else None},
        "difference": None,
        "interval": None,
        "verdict": "too few calls",
    }
    if not ours or not theirs:
        return found
    pairs = sorted(a - b for a in ours for b in theirs)
    found["difference"] = statistics.median(pairs)
    cut = _cut(len(ours), len(theirs))
    if cut:
        low, high = pairs[cut - 1], pairs[-cut]
        found["interval"] = [low, high]
        found["verdict"] = "lower" if high < 0 else "higher" if low > 0 else "no difference shown"
    return found
