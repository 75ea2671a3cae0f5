# SPDX-License-Identifier: GPL-2.0
"""Pages whose commands are run as they stand there.

A comment before a block of a page tells what to do with it: `file: NAME` is written, `lab` is run
on the host, `fails` likewise and must not end well, `guest` in a guest as root, one after the other
in one shell. `gives "REGEX"`: what the block must have said.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

BLOCK = re.compile(
    r'^<!-- (file|lab|fails|guest)(?:: (?:gives "([^\n]*)"|([^\n]*)))? -->\n```\w*\n(.*?)^```$',
    re.M | re.S,
)


@dataclass(frozen=True)
class Block:
    kind: str
    gives: str
    name: str
    body: str


def blocks(page: Path) -> list[Block]:
    found = BLOCK.findall(page.read_text())
    return [Block(*(group or "" for group in parts)) for parts in found]


def fences(page: Path) -> int:
    """How many blocks of code a page has, with or without such a comment."""
    return len(re.findall(r"^```", page.read_text(), re.M)) // 2


def shell(text: str, where: Path, good: bool = True) -> str:
    """What commands say, and whether they end as they should."""
    done = subprocess.run(
        ["bash", "-ec", text], cwd=where, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL, text=True,
    )
    assert (done.returncode == 0) == good, f"{text}\n{done.stdout}"
    return done.stdout


def run_on_host(page: list[Block], where: Path) -> None:
    """Writes the page's files, then runs its commands on the host, in their order."""
    for block in page:
        if block.kind == "file":
            (where / block.name).write_text(block.body)
        elif block.kind in ("lab", "fails"):
            said = shell(block.body, where, block.kind == "lab")
            assert re.search(block.gives, said), f"{block.body}\n{said}"
