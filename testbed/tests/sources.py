# SPDX-License-Identifier: GPL-2.0
"""The project's files, as the static checks list them, and copies of the tree."""

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from paqm_lab import cache


def listed(*words: str, top: Path = cache.REPO) -> list[str]:
    """Names from the top, by options and patterns of `git ls-files`."""
    command = [top / "setup" / "ls-files.sh", "-z", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [name for name in done.stdout.split("\0") if name]


def copy(names: Iterable[str], top: Path) -> Path:
    """Those of these files that are there, below `top`."""
    for name in names:
        if (cache.REPO / name).is_file():
            (top / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(cache.REPO / name, top / name, follow_symlinks=False)
    return top
