# SPDX-License-Identifier: GPL-2.0
"""How figures are written down: series as CSV files, times as summaries in milliseconds."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from paqm_lab import metrics


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A series file; numbers short, what is not there empty."""

    def cell(value: Any) -> str:
        if isinstance(value, float | np.floating):
            return f"{value:.6g}" if math.isfinite(value) else ""
        return str(value)

    path.parent.mkdir(exist_ok=True)
    with path.open("w", newline="") as f:
        out = csv.writer(f, lineterminator="\n")
        out.writerow(header)
        out.writerows([cell(v) for v in row] for row in rows)


def ms(values: npt.NDArray[np.float64]) -> dict[str, Any]:
    """Summary of times given in seconds, in milliseconds."""
    return metrics.summary(values * 1000)
