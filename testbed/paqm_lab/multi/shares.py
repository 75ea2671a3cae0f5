# SPDX-License-Identifier: GPL-2.0
"""Shares that flows have a right to, and how equal they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

HEADER = 14  # Ethernet: what the qdisc counts beyond the IP packet


def max_min(
    capacity: Mapping[str, float],
    paths: Mapping[str, Sequence[str]],
    ceiling: Mapping[str, float] | None = None,
) -> dict[str, float]:
    """Max-min fair rates: fill all flows alike, fix those of the first link that is full.

    @capacity: of each link
    @paths: of each flow, its links
    @ceiling: of each flow that has one
    """
    share: dict[str, float] = {}
    left = dict(capacity)
    most = {flow: (ceiling or {}).get(flow, 1e12) for flow in paths}
    while len(share) < len(paths):
        load = {
            link: sum(1 for flow, path in paths.items() if flow not in share and link in path)
            for link in left
        }
        level = {link: left[link] / n for link, n in load.items() if n}
        limits = [most[flow] for flow in paths if flow not in share]
        rate = min([*limits, *level.values()])
        fixed = [
            flow
            for flow, path in paths.items()
            if flow not in share
            and (rate == most[flow] or any(level.get(link) == rate for link in path))
        ]
        for flow in fixed:
            share[flow] = rate
            for link in paths[flow]:
                left[link] = max(0.0, left[link] - rate)
    return share


def jain(rates: Iterable[float]) -> float:
    """Jain's index: 1 if all are equal, 1/n if one has all."""
    known = list(rates)
    squares = sum(r * r for r in known)
    return sum(known) ** 2 / (len(known) * squares) if squares else 0.0
