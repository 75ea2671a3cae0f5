# SPDX-License-Identifier: GPL-2.0
"""X rows that the acceptance checks of the qdisc measure (kernel/lab-tests/spec_checks.py).

The bounds are those of the specification, whatever the acceptance checks hold by themselves.
"""

from __future__ import annotations

from paqm_lab.catalogue.row import Context, Figure, Row, Values

CHECKS = "kernel/lab-tests/spec_checks.py"


def group(ctx: Context, name: str, seed: int) -> dict[str, float]:
    """Figures of a group of the acceptance checks by their names."""
    found = ctx.guest([CHECKS, name, "--seed", str(seed)], seed)
    return {check["name"]: check["value"] for check in found["checks"]}


def scheduler(ctx: Context, seed: int) -> Values:
    got = group(ctx, "scheduler", seed)
    return {
        "split": got["10 media flows of 300 B, 10 elastic of 1500 B: media share of bytes"],
        "media": got["elastic idle: media gets all of the link"],
        "elastic": got["media idle: elastic gets all of the link"],
    }


ROWS = (
    Row(
        "X1",
        "scheduler: 10 elastic flows (1500 B) and 10 media flows (300 B), both backlogged",
        "bytes 50:50 within 2 %; one class idle, the other has all",
        (
            Figure(
                "split",
                "media's share of the bytes",
                "%",
                published=50,
                tolerance=1,
                why="2 % of 50 %",
            ),
            Figure("media", "elastic idle: media's rate against the link's", "%", low=99.5),
            Figure("elastic", "media idle: elastic's rate against the link's", "%", low=99.5),
        ),
        scheduler,
        CHECKS,
        "11.6",
        substitutes="UDP stands for TCP, so that the class is backlogged at every moment",
    ),
)
