# SPDX-License-Identifier: GPL-2.0
"""The tutorial's commands are run as they stand there, and say what it says they do.

A comment before a block of the page tells what to do with it: `file: NAME` is written, `lab` is run
on the host, `guest` in a guest as root, one after the other in one shell. `gives "REGEX"`: what the
block must have said.
"""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from paqm_lab import cache

PAGE = cache.REPO / "docs" / "tutorial.md"
BLOCK = re.compile(
    r'^<!-- (file|lab|guest)(?:: (?:gives "([^\n]*)"|([^\n]*)))? -->\n```\w*\n(.*?)^```$',
    re.M | re.S,
)
MODULES = "insmod $PAQM_KO_DIR/paqm_feedback.ko\ninsmod $PAQM_KO_DIR/sch_paqm.ko\n"


@dataclass(frozen=True)
class Block:
    kind: str
    gives: str
    name: str
    body: str


BLOCKS = [Block(*(group or "" for group in found)) for found in BLOCK.findall(PAGE.read_text())]


def blocks(kind: str) -> list[Block]:
    return [block for block in BLOCKS if block.kind == kind]


def shell(text: str, where: Path) -> str:
    """What commands say, and whether they end well."""
    done = subprocess.run(
        ["bash", "-ec", text], cwd=where, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL, text=True,
    )
    assert done.returncode == 0, f"{text}\n{done.stdout}"
    return done.stdout


def test_every_block_is_run_or_says_why_not() -> None:
    text = PAGE.read_text()
    fences = len(re.findall(r"^```", text, re.M)) // 2
    not_run = text.count("<!-- not in the guest") + text.count("\nmake build\n")
    assert fences == len(BLOCKS) + not_run


@pytest.mark.lab
def test_first_scenario(tmp_path: Path) -> None:
    (tmp_path / "testbed").symlink_to(cache.REPO / "testbed")
    for block in blocks("file"):
        (tmp_path / block.name).write_text(block.body)
    for block in blocks("lab"):
        said = shell(block.body, tmp_path)
        assert re.search(block.gives, said), said
    result = json.loads((tmp_path / "out" / "first" / "result.json").read_text())
    delay = {v["name"]: v["figures"]["media_sojourn_ms"]["p95"] for v in result["variants"]}
    assert delay["paqm"] < 3 and 200 < delay["fifo"] < 300


@pytest.mark.lab
def test_first_router(tmp_path: Path) -> None:
    if not (cache.REPO / "build" / "build.ninja").exists():
        pytest.skip("there is no build/; `make build` makes it")
    script = tmp_path / "router.sh"
    parts = [f"{block.body}echo == {n}\n" for n, block in enumerate(blocks("guest"))]
    script.write_text(f"set -e\nexec 2>&1\n{MODULES}{''.join(parts)}")
    said = shell(f"testbed/paqm-lab exec --dir {script.parent} bash {script}", cache.REPO)
    for n, block in enumerate(blocks("guest")):
        head, mark, said = said.partition(f"== {n}\n")
        assert mark and re.search(block.gives, head), f"{block.body}\n{head}"
