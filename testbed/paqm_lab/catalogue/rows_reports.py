# SPDX-License-Identifier: GPL-2.0
"""Rows B2 and B3: the first published feedback, reports of u every 40 ms."""

from __future__ import annotations

from collections.abc import Callable

from paqm_lab.catalogue.row import LOWER, Context, Figure, Json, Row, Values

SCRIPT = "kernel/lab-tests/catalogue.py"
STANDS = (
    "In user space: packets, queues and sources are simulated (core/tests/reports_of_u.c), the "
    "inner law is that of core/, K 0.2. No queue or sender speaks this law, which ECF replaced. "
    "The coefficients of the paper's rate filter and of its mean of u are not printed. The first "
    "second is left out; drops are those behind Host0"
)
NODES = ("Host0", "R1", "R2", "R3", "Host4")
# Use of Host0, R1, R2, R3, Host4, and what the path drops, percent.
PRINTED = {
    "1a": (47.93, 97.73, 98.17, 98.50, 45.58, 2.3), "1b": (49.86, 98.14, 98.96, 99.38, 47.96, 1.9),
    "1c": (50.79, 99.99, 98.38, 99.15, 49.33, 1.5), "2a": (90.47, 97.52, 97.27, 97.72, 87.39, 3.1),
    "2b": (98.43, 97.08, 97.20, 97.53, 94.69, 3.8), "2c": (92.39, 99.61, 99.27, 99.97, 91.08, 0.4),
    "2d": (98.43, 98.25, 99.67, 99.16, 97.25, 0.3),
}  # fmt: skip


def case(ctx: Context, name: str, seed: int) -> Json:
    words = [SCRIPT, "reports", "--seed", str(seed)]
    found: Json = ctx.guest(words, seed, {"runs": [{"case": name}]})["runs"][0]
    return found


def b2(ctx: Context, seed: int) -> Values:
    return {kind: case(ctx, f"B2-{kind}", seed)["periods"] for kind in ("cbr", "poisson")}


def b3(ctx: Context, seed: int) -> Values:
    got = case(ctx, "B3-1a", seed)
    return {"drop": got["drop_percent"], "rate": got["use_percent"][0] / 50}


def b3_case(letters: str) -> Callable[[Context, int], Values]:
    def values(ctx: Context, seed: int) -> Values:
        got = case(ctx, f"B3-{letters}", seed)
        used = dict(zip(NODES, got["use_percent"], strict=True))
        return {**used, "drop": got["drop_percent"], "late": got["late_percent"]}

    return values


def title(letters: str) -> str:
    kinds = {"1a": ("Poisson", "Poisson"), "1b": ("Poisson", "constant"),
             "1c": ("constant", "constant"), "2a": ("Poisson", "Poisson"),
             "2b": ("constant", "Poisson"), "2c": ("Poisson", "constant"),
             "2d": ("constant", "constant")}[letters]  # fmt: skip
    hosts = "" if letters[0] == "1" else ", Term0 of 120 Mbit/s, hosts of 32 Mbit/s"
    return f"B3, case {letters}: Term0 {kinds[0]}, clouds {kinds[1]}{hosts}"


ROWS = (
    Row("B2", "1.5 Gbit/s onto 1 Gbit/s, reports of u every 40 ms",
        "target rate within 1 to 3 periods, Poisson 2 to 3",
        (Figure("cbr", "constant: periods until within 5 % of the target", "", low=1, high=3),
         Figure("poisson", "Poisson: the same", "", low=1, high=3, better=LOWER,
                printed="2 to 3")),
        b2, SCRIPT, "Paper B", substitutes=STANDS),
    Row("B3", "three routers of 1 Gbit/s with clouds of 1.5 Gbit/s",
        "90 % of 500 Mbit/s in 1 to 2 s, all at about 4 s; about 2.3 % lost",
        (Figure("drop", "dropped on the path", "%", published=2.3, better=LOWER),
         Figure("rate", "Term0's rate, 1 to 4 s, of its share", "", low=0.9, high=1.05)),
        b3, SCRIPT, "Paper B", substitutes=STANDS),
    *(Row(f"B3-{letters}", title(letters),
          "use of " + ", ".join(f"{node} {value} %" for node, value in
                                zip(NODES, printed, strict=False)) + f"; {printed[5]} % lost",
          (*(Figure(node, f"use of {node}", "%", published=value)
             for node, value in zip(NODES, printed, strict=False)),
           Figure("drop", "dropped on the path", "%", published=printed[5], better=LOWER),
           Figure("late", "longer than 6 ms in a queue", "%", high=0.1, better=LOWER,
                  printed="almost none")),
          b3_case(letters), SCRIPT, "Paper B", substitutes=STANDS)
      for letters, printed in PRINTED.items()),
)  # fmt: skip
