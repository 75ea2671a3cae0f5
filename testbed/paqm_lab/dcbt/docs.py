# SPDX-License-Identifier: GPL-2.0
"""docs/dcbt-results.md from docs/results/dcbt.json; rows are shown as the catalogue's."""

from __future__ import annotations

import json
from pathlib import Path

from paqm_lab import cache
from paqm_lab.catalogue.docs import as_text
from paqm_lab.catalogue.docs import page as table
from paqm_lab.catalogue.row import Json
from paqm_lab.dcbt.findings import FINDINGS

__all__ = ["as_text"]

DOCS = cache.REPO / "docs"
DATA, PAGE = DOCS / "results" / "dcbt.json", DOCS / "dcbt-results.md"

HEAD = f"""# D-CBT and ChIPS: the published experiments

The experiments of J. Chung's thesis (WPI 2000) with [sch_dcbt](dcbt.md): real kernel, real TCP, the
thesis' applications with five levels (`paqm-streamer send --levels`), virtual time.

```
make dcbt                                     # out/dcbt/result.json
testbed/paqm-lab dcbt --rows main.chips --seeds 1
```

This file is made from `docs/results/dcbt.json` by `paqm-lab dcbt --docs`; do not edit it. Rows are
run and judged as those of the [catalogue](catalogue.md) are: the band of a figure is that of the
specification's acceptance checks, but where a line below a table says what it is from, and for
`mm.2` 5 %; what has no band is shown and decides nothing. *Published* is
the thesis' number or, where it only plots, its words. Rates are those of one flow, IP packets
counted whole. Rows `mm.1`, `mm.more`, `blast`, `main` but FRED's, and `pairs` have to pass.

{FINDINGS}
"""


def page(data: Json) -> str:
    """docs/dcbt-results.md."""
    return table(data, HEAD)


def write(text: str) -> list[Path]:
    """Data and page from the text of a result.json."""
    DATA.parent.mkdir(parents=True, exist_ok=True)
    DATA.write_text(text)
    PAGE.write_text(page(json.loads(text)))
    return [DATA, PAGE]
