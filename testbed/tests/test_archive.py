# SPDX-License-Identifier: GPL-2.0
"""A source archive, which has no repository: checks look at the same files there."""

import subprocess
from pathlib import Path

import pytest
from sources import copy, listed

from paqm_lab import cache


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """The tree as it is, and what a build leaves in it."""
    top = copy(listed(), tmp_path / "paqm")
    for name in ("build/core/test_law.c", "out/demo/result.json", "core/tests/x.o"):
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).touch()
    return top


@pytest.mark.parametrize("within", [False, True], ids=["alone", "in another repository"])
def test_lists_what_the_repository_has(archive: Path, within: bool) -> None:
    if within:
        subprocess.run(["git", "init", "-q", archive.parent], check=True)
    there = [name for name in listed() if (cache.REPO / name).exists()]
    assert listed(top=archive) == there
    assert listed("core/*.h", top=archive) == [
        n for n in there if n.startswith("core/") and n[-2:] == ".h"
    ]


def test_static_checks_of_an_archive_find_what_is_wrong(archive: Path) -> None:
    checks = [archive / "setup" / "structure.py"]
    assert subprocess.run(checks, capture_output=True).returncode == 0
    (archive / "core" / "paqm_new.h").write_text("int paqm_new;\n")  # does not tell its purpose
    done = subprocess.run(checks, capture_output=True, text=True)
    assert done.returncode == 1
    assert "paqm_new.h" in done.stdout + done.stderr
