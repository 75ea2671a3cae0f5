# SPDX-License-Identifier: GPL-2.0
"""`paqm-lab dcbt`: the published experiments of D-CBT and ChIPS."""

from __future__ import annotations

from paqm_lab.catalogue import main as engine
from paqm_lab.catalogue.row import Book, Row
from paqm_lab.dcbt import cases, docs


def rows() -> dict[str, Row]:
    """In the order of the page."""
    return {row.id: row for row in cases.rows()}


BOOK = Book("dcbt", "D-CBT and ChIPS as published", rows, docs.DATA, docs.PAGE, docs.write,
            docs.as_text)  # fmt: skip


def main() -> int:
    return engine.main(BOOK)
