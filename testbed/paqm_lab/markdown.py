# SPDX-License-Identifier: GPL-2.0
"""Tables of the pages and of the terminal: a figure as text, a line of cells."""

from __future__ import annotations

from typing import Any


def cell(value: Any, digits: int, none: str = "none") -> str:
    """A figure with so many decimals; `none` where there is no figure."""
    return none if value is None else f"{value:.{digits}f}"


def row(*cells: str) -> str:
    """A line of a Markdown table."""
    return f"| {' | '.join(cells)} |"
