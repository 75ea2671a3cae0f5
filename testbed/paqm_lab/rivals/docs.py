# SPDX-License-Identifier: GPL-2.0
"""docs/rivals.md from docs/results/rivals.json; rows as text are the catalogue's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from paqm_lab import cache, suite
from paqm_lab.catalogue.docs import as_text

__all__ = ["as_text"]

Json = dict[str, Any]

DOCS = cache.REPO / "docs"
DATA, PAGE = DOCS / "results" / "rivals.json", DOCS / "rivals.md"


def write(text: str) -> list[Path]:
    data = json.loads(text)
    DATA.write_text(suite.as_json(data))
    return [DATA]
