# SPDX-License-Identifier: GPL-2.0
"""`paqm-lab laws`: scenario by law, and the map of stability."""

from __future__ import annotations

from paqm_lab.catalogue import main as engine
from paqm_lab.catalogue.row import Book, Row
from paqm_lab.laws import cases, docs, stabmap


def rows() -> dict[str, Row]:
    """Both parts, in the order of the page."""
    return {row.id: row for row in (*cases.rows(), *stabmap.rows())}


LAWS = Book("laws", "Laws side by side, and where they are stable", rows, docs.DATA,
            docs.PAGE, docs.write, docs.as_text)  # fmt: skip


def main() -> int:
    return engine.main(LAWS)
