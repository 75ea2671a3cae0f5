# SPDX-License-Identifier: GPL-2.0
"""The points of paqm_lab.regimes: capacity, round trip, number of streams, with and without TCP."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from paqm_lab import clip, suite

Json = dict[str, Any]

MBIT = 1_000_000
CAPACITIES = (0.3, 1, 4, 20, 100)  # Mbit/s
ROUND_TRIPS = (5, 40, 150, 300, 600)  # ms
STREAMS = (1, 2, 6, 30)
# What `make regimes` runs: the corners are for FULL=1.
SOME_CAPACITIES = (0.3, 1, 4, 20)
SOME_ROUND_TRIPS = (5, 40, 150, 300)
SOME_STREAMS = (1, 2, 6)
TCP_FLOWS = 2
LEAST_SHARE = 0.1 * MBIT  # of a stream; below that a point is left out
RATE_MIN = 50_000
ABOVE = 1.5  # a stream's maximum against its share
FAR_MS = 100  # round trips above are also run with `rtt auto`
SECONDS = 24
TCP_AT = 8
JOIN_AT = 14
SPREAD = 0.5  # s within which streams start that start together: pictures are not in step
QDISC = "paqm bandwidth {bottleneck} feedback icmp"
VARIANTS = {"paqm": QDISC, "rtt-auto": f"{QDISC} rtt auto"}


@dataclass(frozen=True)
class Picture:
    """The clip in a size, and what a stream of it can use."""

    width: int
    height: int
    most: int  # bit/s
    from_share: int  # bit/s: smaller shares are not for this size

    @property
    def clip(self) -> Json:
        return {"width": self.width, "height": self.height, "fps": clip.FPS}


LARGE = Picture(clip.WIDTH, clip.HEIGHT, 3 * MBIT, MBIT // 2)
SMALL = Picture(320, 180, MBIT, 0)
MANY = 6  # streams; more of the large picture take too long to encode


@dataclass(frozen=True)
class Place:
    """A point of the grid."""

    capacity: float  # Mbit/s
    rtt_ms: int
    streams: int
    tcp: bool
    variant: str = "paqm"

    @property
    def name(self) -> str:
        return f"{self.capacity:g}m-{self.rtt_ms}-{self.streams}{'-tcp' if self.tcp else ''}"

    @property
    def title(self) -> str:
        some = "one stream" if self.streams == 1 else f"{self.streams} streams"
        bulk = f", {TCP_FLOWS} TCP" if self.tcp else ""
        return f"{self.capacity:g} Mbit/s, {self.rtt_ms} ms, {some}{bulk}"

    @property
    def share(self) -> float:
        """Of a flow when all are there, bit/s."""
        return self.capacity * MBIT / (self.streams + TCP_FLOWS * self.tcp)

    @property
    def picture(self) -> Picture:
        large = self.streams <= MANY and self.share >= LARGE.from_share
        return LARGE if large else SMALL

    def point(self, seed: int) -> suite.Point:
        """The scenario."""
        picture = self.picture
        most = round(min(ABOVE * self.share, picture.most))
        dice = random.Random(f"{self.name} {seed}")
        media = []
        for number in range(1, self.streams + 1):
            late = number == self.streams > 1
            start = JOIN_AT if late else round(dice.uniform(0, SPREAD), 3)
            media.append(
                {
                    "name": f"f{number}",
                    "start": start,
                    "stop": SECONDS,
                    "rate_max": f"{most}bit",
                    "rate_min": f"{RATE_MIN}bit",
                }
            )
        data: Json = {
            "name": "regimes",
            "title": self.title,
            "duration": SECONDS,
            "seed": seed,
            "path": {"bottleneck": f"{self.capacity:g}mbit", "rtt_ms": self.rtt_ms},
            "clip": picture.clip,
            "media": media,
            "variant": [
                {
                    "name": self.variant,
                    "sender": "paqm-streamer",
                    "qdisc": VARIANTS[self.variant],
                }
            ],
        }
        if self.tcp:
            data["elastic"] = [
                {
                    "name": "tcp",
                    "flows": TCP_FLOWS,
                    "start": TCP_AT,
                    "stop": SECONDS,
                    "congestion_control": "cubic",
                }
            ]
        return suite.Point(self.name, self.variant, seed, data)


def grid(
    capacities: Iterable[float] = CAPACITIES,
    round_trips: Iterable[int] = ROUND_TRIPS,
    streams: Iterable[int] = STREAMS,
) -> list[Place]:
    """All points, those left out whose shares are too small for a stream."""
    found = []
    for variant in VARIANTS:
        for capacity in capacities:
            for rtt in round_trips:
                if variant != "paqm" and rtt <= FAR_MS:
                    continue
                for count in streams:
                    for tcp in (False, True):
                        place = Place(capacity, rtt, count, tcp, variant)
                        if place.share >= LEAST_SHARE:
                            found.append(place)
    return found
