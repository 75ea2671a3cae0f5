# SPDX-License-Identifier: GPL-2.0
"""The user's cache, where several runs of one process ask for the same thing at once."""

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from paqm_lab import cache
from paqm_lab.errors import LabError

MANY = 8


def test_runs_beside_each_other_get_one_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    source = tmp_path / "seven.c"
    source.write_text("int seven(void) { return 7; }\n")
    together = Barrier(MANY)

    def ask(_: int) -> Path:
        together.wait()
        return cache.library(source)

    with ThreadPoolExecutor(MANY) as pool:
        found = set(pool.map(ask, range(MANY)))
    assert len(found) == 1
    assert found.pop().read_bytes().startswith(b"\x7fELF")
    assert not list(cache.cache_dir().glob("*.new"))


@pytest.mark.parametrize("place", ["cache", "/tmp/my cache", "/tmp/c:d"])
def test_a_cache_where_no_kernel_can_be_built(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Said before anything is made there, by the set-up and by the lab."""
    monkeypatch.setenv("XDG_CACHE_HOME", place)
    with pytest.raises(LabError, match="absolute path without spaces and colons.*XDG_CACHE_HOME"):
        cache.cache_dir()
    setup = [cache.REPO / "setup" / "setup.sh"]
    done = subprocess.run(setup, capture_output=True, text=True, env=dict(os.environ))
    assert done.returncode == 2 and f"the cache, {place}/paqm, has to be" in done.stderr
    assert not Path(place).exists()


def test_a_clone_that_python_would_not_find(tmp_path: Path) -> None:
    """A colon in its path separates the entries of PYTHONPATH."""
    setup = tmp_path / "c:d" / "setup" / "setup.sh"
    setup.parent.mkdir(parents=True)
    shutil.copy(cache.REPO / "setup" / "setup.sh", setup)
    done = subprocess.run([setup], capture_output=True, text=True)
    assert done.returncode == 2
    assert f"this clone, {tmp_path}/c:d, must not have a colon" in done.stderr
