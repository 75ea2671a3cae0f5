# SPDX-License-Identifier: GPL-2.0
"""What a row says: what was published, and how it is run again; and what a table of rows is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

Json = dict[str, Any]
Values = Mapping[str, float | None]

# Which way a figure is better; NEARER: only the published one is right.
LOWER, HIGHER, NEARER = "lower", "higher", "nearer"
# Of a printed number, where the specification gives no tolerance for it: one run was printed, to so
# many digits, without an interval.
TOLERANCE = 0.05


class Context(Protocol):
    """What a row's function is given (context.py)."""

    p: Json

    def scenario(self, file: str, variant: str, seed: int, changes: Json | None = None) -> Json: ...

    def guest(self, words: list[str], seed: int, config: Json | None = None) -> Json: ...

    def command(self, words: list[str]) -> Json: ...


@dataclass(frozen=True)
class Figure:
    """One published figure.

    `published` is the printed number, with `tolerance` in the figure's own unit; where the text
    only bounds it, `low` and `high` do. With neither the figure is shown and decides nothing.
    """

    id: str
    title: str
    unit: str = ""
    published: float | None = None
    tolerance: float | None = None
    low: float | None = None
    high: float | None = None
    better: str = NEARER
    printed: str = ""  # where it is more than the number
    why: str = ""  # what a tolerance or a bound comes from, if not from the row's source

    def band(self) -> tuple[float | None, float | None] | None:
        """What counts as the published figure; None: nothing does."""
        if self.published is not None:
            wide = TOLERANCE * abs(self.published) if self.tolerance is None else self.tolerance
            return self.published - wide, self.published + wide
        return None if self.low is None and self.high is None else (self.low, self.high)


@dataclass(frozen=True)
class Row:
    """One row. A row that is `pending` has no function; `incomparable` says why none can tell."""

    id: str
    title: str
    published: str  # in words
    figures: tuple[Figure, ...]
    run: Callable[[Any, int], Values] | None = None
    scenario: str = ""  # the file, below the repository
    source: str = ""  # where in the documents
    reduced: Json = field(default_factory=dict)
    full: Json = field(default_factory=dict)  # as published; empty: `reduced` is
    seeds: tuple[int, ...] = (1, 2, 3)
    substitutes: str = ""  # what stands for what, and what `reduced` leaves out
    incomparable: str = ""
    pending: str = ""
    held: bool = False  # whether it has to pass, whatever its id
    full_only: bool = False  # whether it is run with --full only, or by name

    def parameters(self, full: bool) -> Json:
        return self.reduced | self.full if full else self.reduced

    @property
    def asked(self) -> bool:
        """Whether it has to pass: the acceptance checks have to."""
        return self.held or self.id.startswith("X")


@dataclass(frozen=True)
class Book:
    """A table of rows that a command of paqm-lab runs, judges and writes a page of."""

    name: str  # of the command, and of the scenario in result.json
    title: str
    rows: Callable[[], dict[str, Row]]  # by id, in the order of the page
    data: Path  # what lands in docs/results
    page: Path  # what it is for
    write: Callable[[str], list[Path]]  # data and page from the text of a result.json
    as_text: Callable[[Json], str]  # a row for the terminal
    ids: tuple[str, ...] = ()  # rows that there should be, where documents say so
