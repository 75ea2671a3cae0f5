# SPDX-License-Identifier: GPL-2.0
"""All rows of the catalogue, in the order of the documents."""

from __future__ import annotations

from paqm_lab.catalogue import (
    rows_acceptance,
    rows_dumbbell,
    rows_encoding,
    rows_gfc2,
    rows_queue,
    rows_reports,
    rows_video,
)
from paqm_lab.catalogue.row import Row

FILES = (
    rows_acceptance, rows_queue, rows_reports, rows_dumbbell, rows_video, rows_gfc2, rows_encoding,
)  # fmt: skip

# What the documents print, row by row; test_catalogue.py wants each of them.
IDS = (
    *("A1", "A2", "T5.1", "T1.3", "B1", "B2", "B3", "B3-1a", "B3-1b", "B3-1c"),
    *("B3-2a", "B3-2b", "B3-2c", "B3-2d", "C1", "C2", "C3", "D1", "D2"),
    *("E1", "E2", "E3", "E4", "F1", "F2", "F3", "F4", "F5", "F6", "F7", "F8"),
    *(f"X{number}" for number in range(16)),
    *("overhead", "speed", "ladders", "interlace", "autocorrelation"),
)


def rows() -> dict[str, Row]:
    """By id, in the order of IDS."""
    found = {row.id: row for file in FILES for row in file.ROWS}
    return {id_: found[id_] for id_ in IDS if id_ in found}
