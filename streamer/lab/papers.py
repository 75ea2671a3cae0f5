# SPDX-License-Identifier: GPL-2.0
"""Experiments of papers: published figures, limits where there are some, and what was measured."""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "kernel" / "lab-tests"))
import trial  # noqa: E402

Json = dict[str, Any]


@dataclass(frozen=True)
class Figure:
    """Limits and what the paper has; None: none."""

    low: float | None = None
    high: float | None = None
    published: float | None = None
    unit: str = ""


@dataclass(frozen=True)
class Paper:
    """A table of docs/comparison.md: @title and @text stand above it."""

    controller: str
    title: str
    text: str
    figures: Mapping[str, Figure]
    rows: list[Json] = field(default_factory=list)

    def bands(self) -> Mapping[str, Figure]:
        return self.figures

    def judge(self, name: str, *values: float) -> None:
        """Notes a figure: the mean of its runs, and how far they are apart."""
        figure, value = self.figures[name], statistics.mean(values)
        good = (figure.low is None or value >= figure.low) and (
            figure.high is None or value <= figure.high)
        row = {"name": name, "value": round(value, 5), "low": figure.low, "high": figure.high,
               "unit": figure.unit, "published": figure.published, "pass": good}
        if len(values) > 1:
            row["runs"] = [round(one, 5) for one in values]
        self.rows.append(row)
        trial.check(f"{name} ({value:.4g} {figure.unit})", good, f"published {figure.published}")

    def run(self, cases: Mapping[str, Callable[[str], None]]) -> int:
        """Cases that the command line names, or all: TOOL OUT.json NAME [CASE...]."""
        tool, out = sys.argv[1], Path(sys.argv[2])
        for case in sys.argv[4:] or cases:
            cases[case](tool)
            out.write_text(json.dumps(self.rows, indent=1) + "\n")
        return 0 if all(row["pass"] for row in self.rows) else 1
