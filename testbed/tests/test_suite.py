# SPDX-License-Identifier: GPL-2.0
"""Suites of runs: whatever shapes a result makes it a new one when it changes."""

import subprocess
import sys
from pathlib import Path

import pytest
from sources import copy, listed

from paqm_lab import cache, lab, suite
from paqm_lab.errors import LabError

NO_PART = {"tests", "fuzz", "kunit"}
# What is loaded for a run and shapes nothing of it: errors, downloads, pages.
SHAPES_NOTHING = {"apt", "errors", "plots", "report", "sidebyside"}
RUNNERS = ("run", "guest", "trace_guest", "trace_scenario", "multi.guest")


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """This clone's sources, to be changed, and an empty cache."""
    names = listed("--cached", "--others", "--exclude-standard")
    copy((n for n in names if not n.startswith(("docs/", "packaging/"))), tmp_path / "clone")
    monkeypatch.setattr(cache, "REPO", tmp_path / "clone")
    monkeypatch.setattr(cache, "TESTBED", tmp_path / "clone" / "testbed")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "clone"


def kept(*paths: Path) -> list[Path]:
    """Those whose change leaves a result the same one."""
    found, before = [], suite.sources_digest()
    for path in paths:
        old = path.read_bytes()
        path.write_bytes(old + b"\n")
        if suite.sources_digest() == before:
            found.append(path)
        path.write_bytes(old)
    return found


def test_what_programs_are_made_of_shapes_results(clone: Path) -> None:
    """One file of each directory: daemon, plugins of tc, headers of the kernel, build files."""
    one = {path.parent: path for path in lab.sources()}.values()
    no_part = [path for path in one if NO_PART & {*path.relative_to(clone).parts}]
    assert len(no_part) > 5 and len(one) - len(no_part) > 30
    assert kept(*one) == no_part


def test_what_else_shapes_results(clone: Path) -> None:
    names = [
        *("kernel/paqm_class.c", "kernel/Kbuild", "kernel/uapi/linux/pkt_sched_paqm.h"),
        *("testbed/guest/init", "testbed/kernel/labtrace/sch_labtrace.c", "meson.build"),
        *("testbed/rivals/webrtc/lib/cli.js", "testbed/rivals/chromium/browser.js"),
        "testbed/paqm_lab/checks.py",
    ]
    others = ["kernel/kunit/flows.c", "testbed/paqm_lab/mixed_docs.py", "testbed/README.md"]
    assert not kept(*[clone / name for name in names])
    assert len(kept(*[clone / name for name in others])) == len(others)


def test_a_run_of_another_command_is_left_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its logs would be deleted below it, and so would those of the second run."""
    monkeypatch.setattr(suite, "sources_digest", lambda more: "of today")
    point, made = suite.Point("case", "paqm", 1, {}), []

    def run_one(point: suite.Point, out: Path, *_: object) -> None:
        made.append(point)
        point.home(out).mkdir(parents=True, exist_ok=True)
        (point.home(out) / "result.json").write_text("{}")

    with suite.alone_with(point, tmp_path):
        (failed,) = suite.run_all([point], tmp_path, print, run_one=run_one)
        with pytest.raises(LabError, match="another paqm-lab is at work"):
            suite.forget(point, tmp_path)
    assert failed.startswith("case paqm seed 1: ") and "another paqm-lab is at work" in failed
    for _ in range(2):
        assert not made and not suite.run_all([point], tmp_path, print, run_one=run_one)
        assert made.pop() == point
        suite.forget(point, tmp_path)


def test_plugins_of_other_hands_shape_results(clone: Path) -> None:
    before = suite.sources_digest()
    cache.plugins().mkdir(parents=True)
    (cache.plugins() / "libgstother.so").write_bytes(b"")
    assert suite.sources_digest() != before


def test_all_that_a_run_loads_is_counted() -> None:
    load = "".join(f"import paqm_lab.{name}\n" for name in RUNNERS)
    show = "import sys\nprint(*[n[9:] for n in sys.modules if n.startswith('paqm_lab.')])"
    said = subprocess.run(
        [sys.executable, "-c", load + show],
        cwd=cache.TESTBED, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    loaded = {name.replace(".", "/") for name in said if name != "multi"}
    assert loaded - SHAPES_NOTHING <= set(suite.LAB)
