# SPDX-License-Identifier: GPL-2.0
"""Rows about the encodings themselves: what ladders take on disk, and how long sources remember."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from paqm_lab import trace_scenario
from paqm_lab.catalogue import networks
from paqm_lab.catalogue.row import LOWER, Context, Figure, Row, Values
from paqm_lab.ladder import Ladder
from paqm_lab.multi.main import trace_clip

FPS, GOP = 30, 12  # of trace flows
RATE = 1e6  # bit/s of a source
LAGS = (1, 5)  # groups of pictures; the clip has 39


def the_ladder() -> Ladder:
    return trace_scenario.prepare_ladder(trace_clip(FPS), lambda text: None, GOP)


def groups(ladder: Ladder) -> NDArray[np.float64]:
    """Bytes of each group of pictures, by quantizer."""
    whole = ladder.frames // ladder.gop
    sizes = ladder.size[:, : whole * ladder.gop]
    found: NDArray[np.float64] = sizes.reshape(len(sizes), whole, -1).sum(axis=2, dtype=np.float64)
    return found


def ladders(ctx: Context, seed: int) -> Values:
    """All quantizers against the finest, and against a source's usual rate."""
    total = groups(the_ladder()).sum(axis=1)
    usual = RATE / 8 * the_ladder().frames / FPS
    return {"finest": total.sum() / total.max(), "usual": total.sum() / usual,
            "quantizers": float(len(total)), "octave": total.max() / total[6]}


def remembered(sizes: NDArray[np.float64]) -> list[float]:
    """Autocorrelation of a clip that begins again at its end."""
    off = sizes - sizes.mean()
    return [float((off * np.roll(off, lag)).sum() / (off**2).sum()) for lag in LAGS]


def autocorrelation(ctx: Context, seed: int) -> Values:
    """One quantizer all the time, that whose mean comes next to the rate, against one source that
    chooses a quantizer for each group; nothing else is on its path.
    """
    of = groups(the_ladder())
    means = of.mean(axis=1) * 8 * FPS / GOP
    sizes = of[int(np.argmin(np.abs(means - RATE)))]
    data = networks.video64(ctx.p["seconds"], True)
    for flow in data["flow"]:
        flow |= {"count": 1, "spread": 0}
    got = networks.run(ctx, data, networks.paqm("maxmin", ""), seed)["aggregate"]
    open_loop = remembered(sizes)
    return {"open_1": open_loop[0], "open_5": open_loop[1],
            "open_cv": 100 * sizes.std() / sizes.mean(),
            "held_1": got["acf"][0], "held_5": got["acf"][1], "held_cv": got["cv_percent"]}


ROWS = (
    Row("ladders", "storage of ladders of all quantizers", "6 times that of one stream",
        (
            Figure("finest", "all quantizers against the finest", "", published=6.0, better=LOWER),
            Figure("octave", "rate of the finest against that of the sixth next", ""),
            Figure("usual", "all quantizers against a stream of 1 Mbit/s", ""),
            Figure("quantizers", "quantizers", ""),
        ),
        ladders, source="Paper E", seeds=(1,),
        substitutes="The one stream is taken for the finest: rates of MPEG-4 fall as 1/Q, which "
        "makes 6 for Q from 2 to 31. H.264's fall by half in six quantizers"),
    Row("autocorrelation", "autocorrelation of open loop and constrained sources",
        "open loop: remembers its scenes; constrained: no long-range dependence",
        (
            Figure("open_1", "one quantizer, next group of pictures", "", low=0.3,
                   why="a scene lasts for several groups"),
            Figure("held_1", "RA-SVBR at 1 Mbit/s, next group", "", high=0.2, better=LOWER,
                   why="near zero"),
            Figure("held_5", "RA-SVBR, 5 groups later", "", low=-0.2, high=0.2, why="near zero"),
            Figure("open_5", "one quantizer, 5 groups later"),
            Figure("open_cv", "one quantizer: deviation from group to group", "%"),
            Figure("held_cv", "RA-SVBR: deviation from group to group", "%"),
        ),
        autocorrelation, "testbed/scenarios/published-e.toml", "chapter 2",
        reduced={"seconds": 90},
        substitutes="the lab's clip, which begins again after 15.6 s, instead of films: nothing "
        "can be said of more than a few groups; H.264 instead of MPEG-4"),
)  # fmt: skip
