# SPDX-License-Identifier: GPL-2.0
"""The tutorial's commands are run as they stand there, and say what it says they do (pages.py)."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pages
import pytest

from paqm_lab import cache

PAGE = cache.REPO / "docs" / "tutorial.md"
BLOCKS = pages.blocks(PAGE)
MODULES = "insmod $PAQM_KO_DIR/paqm_feedback.ko\ninsmod $PAQM_KO_DIR/sch_paqm.ko\n"


def test_every_block_is_run_or_says_why_not() -> None:
    text = PAGE.read_text()
    not_run = text.count("<!-- not in the guest") + text.count("\nmake build\n")
    assert pages.fences(PAGE) == len(BLOCKS) + not_run


@pytest.mark.lab
def test_first_scenario(tmp_path: Path) -> None:
    (tmp_path / "testbed").symlink_to(cache.REPO / "testbed")
    pages.run_on_host(BLOCKS, tmp_path)
    result = json.loads((tmp_path / "out" / "first" / "result.json").read_text())
    delay = {v["name"]: v["figures"]["media_sojourn_ms"]["p95"] for v in result["variants"]}
    assert delay["paqm"] < 3 and 200 < delay["fifo"] < 300


@pytest.mark.lab
def test_first_router(tmp_path: Path) -> None:
    if not (cache.REPO / "build" / "build.ninja").exists():
        pytest.skip("there is no build/; `make build` makes it")
    script = tmp_path / "router.sh"
    guest = [block for block in BLOCKS if block.kind == "guest"]
    parts = [f"{block.body}echo == {n}\n" for n, block in enumerate(guest)]
    script.write_text(f"set -e\nexec 2>&1\n{MODULES}{''.join(parts)}")
    said = pages.shell(f"testbed/paqm-lab exec --dir {script.parent} bash {script}", cache.REPO)
    for n, block in enumerate(guest):
        head, mark, said = said.partition(f"== {n}\n")
        assert mark and re.search(block.gives, head), f"{block.body}\n{head}"
