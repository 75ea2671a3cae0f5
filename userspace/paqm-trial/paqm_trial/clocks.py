# SPDX-License-Identifier: GPL-2.0
"""Clocks of different machines, aligned by the media that went both ways.

A picture that is taken at t by its sender's clock comes at t + way + offset by the receiver's. The
least of that over a window, one way less the other, is twice the offset, if both ways are equally
long when nothing waits. If not, half of the difference goes from one direction to the other: of two
encoders one of which takes 20 ms more, 10 ms. The sum of both directions is right in any case, and
so is what changes. Windows give the drift. A clock that was set during the call cannot be mended:
its call has no figures that need both clocks.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import Any

from paqm_trial.store import count

WINDOW_NS = 20 * 10**9
STEP_NS = 50 * 10**6  # between two notes: more than any clock is slewed


def steps(notes: Iterable[dict[str, Any]]) -> list[tuple[int, int]]:
    """When the clock was set, ns by that clock, and by how much."""
    found = []
    last: int | None = None
    for note in notes:
        wall, mono = count(note.get("wall_ns")), count(note.get("mono_ns"))
        if wall is None or mono is None:
            continue
        if last is not None and abs(wall - mono - last) > STEP_NS:
            found.append((wall, wall - mono - last))
        last = wall - mono
    return found


def _least(there: list[tuple[int, int]]) -> dict[int, int]:
    """The least of arrival less departure, by window of departure."""
    least: dict[int, int] = {}
    for left, came in there:
        window = left // WINDOW_NS
        way = came - left
        if window not in least or way < least[window]:
            least[window] = way
    return least


class Offset:
    """Of the receiver's clock against the sender's: a line in the sender's time."""

    def __init__(self, base: float, slope: float, begin: int) -> None:
        self.base, self.slope, self.begin = base, slope, begin

    def at(self, ns: int) -> float:
        return self.base + self.slope * (ns - self.begin)


def align(there: list[tuple[int, int]], back: list[tuple[int, int]]) -> Offset | None:
    """`there`: when pictures left A, and came to B; `back`: left B, came to A, by their clocks."""
    if not there or not back:
        return None
    coarse = (
        min(came - left for left, came in there) - min(came - left for left, came in back)
    ) // 2
    ways = _least(there)
    # departures from B in A's time, or the windows would not be the same
    returns = _least([(left - coarse, came - coarse) for left, came in back])
    points = [
        (window * WINDOW_NS, (ways[window] - returns[window]) / 2)
        for window in sorted(ways.keys() & returns.keys())
    ]
    if len(points) < 3:
        return Offset(coarse, 0.0, 0)
    slopes = (
        [(b[1] - a[1]) / (b[0] - a[0]) for n, a in enumerate(points) for b in points[n + 1 :]]
        if len(points) <= 300
        else [
            (b[1] - a[1]) / (b[0] - a[0])
            for a, b in zip(points, points[len(points) // 2 :], strict=False)
        ]
    )
    slope = statistics.median(slopes)
    begin = points[0][0]
    base = statistics.median(offset - slope * (at - begin) for at, offset in points)
    return Offset(base, slope, begin)
