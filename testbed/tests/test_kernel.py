# SPDX-License-Identifier: GPL-2.0
"""Choice of the kernel source, recognition of kernel faults, the constant command line."""

import argparse
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from paqm_lab import apt, kernel, uml
from paqm_lab.errors import LabError

LISTED = ["linux-source", "linux-source-6.12", "linux-source-7.2", "linux-source-6.18-x"]


def test_newest_source_is_by_number_not_by_letter() -> None:
    assert kernel.newest_source(["linux-source-6.9", "linux-source-6.16"], (6, 1)) == (
        "linux-source-6.16"
    )
    assert kernel.newest_source(LISTED, (6, 16)) == "linux-source-7.2"


def test_too_old_a_source_is_not_taken() -> None:
    assert kernel.newest_source(["linux-source-6.12", "linux-source-6.1"], (6, 16)) is None
    assert kernel.newest_source([], (6, 1)) is None


def test_suites_newest_backports_first_own_release_last() -> None:
    tries = kernel.suites_to_try("bookworm")
    assert tries[0] == ("trixie-backports", kernel.FAST_VERSION)
    assert tries[-1] == ("bookworm", kernel.OLDEST_VERSION)
    assert all(floor == kernel.FAST_VERSION for _, floor in tries[:-1])


def test_own_release_comes_with_its_security_fixes() -> None:
    targets = (
        "http://x/java|bookworm|Another\nhttp://s/security|bookworm-security|Debian\n"
        "http://a/debian|bookworm|Debian\nhttp://a/debian|bookworm|Debian\n"
        "http://a/debian|bookworm-backports|Debian Backports\nhttp://x/cloud|nodistro|Cloud\n"
    )
    assert apt.own_sources(targets, "bookworm") == [
        ("http://a/debian", "bookworm"),
        ("http://s/security", "bookworm-security"),
    ]
    assert apt.own_sources(targets, "trixie") == []


def test_unknown_release_says_what_to_do() -> None:
    with pytest.raises(LabError, match="KERNEL_SRC"):
        kernel.suites_to_try("noble")


def test_named_source_must_be_a_kernel_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("KERNEL_SRC", str(tmp_path))
    with pytest.raises(LabError, match="not a Linux source tree"):
        kernel.ensure("lab", lambda text: None)


def test_each_kernel_has_the_patches_that_it_needs() -> None:
    assert kernel.patches("lab", "6.12.117") == kernel.patches("lab", "6.1") == kernel.OLD_PATCHES
    repeat = kernel.REPEAT_PATCHES["lab"]
    newest = repeat + kernel.QUICK_PATCHES["lab"]
    assert kernel.patches("lab", None) == kernel.patches("lab", "7.3.4") == newest
    assert kernel.patches("lab", "6.18") == kernel.patches("live", None) == []
    assert kernel.patches("debug", "6.1") == ["uml-debug.patch", *kernel.OLD_PATCHES]
    assert kernel.patches("debug", None) == ["uml-debug.patch", *repeat]
    # Only the newest is built for speed: of the others, too little is known.
    assert kernel.flags("lab", None) == kernel.flags("lab", "7.3.4") != []
    assert kernel.flags("lab", "6.18") == kernel.flags("live", None) == []
    speed = "CONFIG_CC_OPTIMIZE_FOR_PERFORMANCE=y"
    assert speed in kernel.fragment("lab", None) and speed not in kernel.fragment("debug", None)
    assert speed not in kernel.fragment("lab", "6.1")


def test_a_kernel_that_is_newer_than_the_patch_is_built_without_it(tmp_path: Path) -> None:
    source, told = tmp_path / "linux", list[str]()
    (source / "arch").mkdir(parents=True)
    newer = kernel.Kernel(tmp_path / "tree", "9.9.1", "lab", "key")
    copy = kernel._patched(source, tmp_path, newer, told.append)
    assert (copy / "arch").is_dir() and not list(copy.glob("*.patch"))
    assert any("uml-repeat.patch does not fit 9.9.1: runs repeat on this" in text for text in told)
    assert any("uml-clock.patch does not fit 9.9.1: runs are slower" in text for text in told)


def test_a_kernel_of_another_place_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cache was moved, or copied from another machine: its makefiles lead to where it was."""
    config = kernel._config_key("lab", None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "old"))
    home = kernel.cache.cache_dir() / "kernel" / f"9.9.1-debian-lab-{config}"
    (home / "tree").mkdir(parents=True)
    (home / "tree" / "linux").touch()
    lock = "=".join(kernel.pinned()[:2])
    (home / "built.json").write_text(json.dumps({"version": "9.9.1", "package": lock}))
    (home / kernel.PLACE).write_text(f"{home}\n")
    found = kernel._built("lab", None)
    assert found is not None and found.version == "9.9.1"
    (tmp_path / "link").symlink_to(tmp_path / "old")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "link"))
    assert kernel._built("lab", None) is not None
    (tmp_path / "old").rename(tmp_path / "new")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "new"))
    assert kernel._built("lab", None) is None


def test_a_kernel_of_another_source_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for one that was built because the lock's source was no longer to be had."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    home = tmp_path / "paqm" / "kernel" / f"9.9.1-debian-lab-{kernel._config_key('lab', None)}"
    (home / "tree").mkdir(parents=True)
    (home / "tree" / "linux").touch()
    (home / kernel.PLACE).write_text(f"{home}\n")
    name, version, _ = kernel.pinned()
    for told, mark in (
        ({"version": version.partition("-")[0]}, "none"),
        ({"version": "9.9.1", "package": f"{name}={version}"}, "none"),
        ({"version": "9.9.1", "package": "other=1", "lock": f"{name}={version}"}, "other=1"),
        ({"version": "9.9.1", "package": "other=1", "lock": f"{name}=0"}, None),
        ({"version": "9.9.1"}, None),
    ):
        (home / "built.json").write_text(json.dumps(told))
        found = kernel._built("lab", None)
        assert (found.not_of_lock if found else None) == mark, told


class Shelf:
    """An archive whose trixie-backports have these versions of a package."""

    had: tuple[str, ...] = ()

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch

    def read(self, sources: list[tuple[str, str]], _perhaps: object = None) -> None:
        self.scratch.mkdir(exist_ok=True)
        self.suite = sources[0][1]

    def names(self, _prefix: str) -> list[str]:
        return ["linux-source-7.3"] if self.suite == "trixie-backports" else []

    def missing(self, packages: dict[str, str]) -> list[str]:
        return [name for name, version in packages.items() if version not in self.had]

    def download(self, names: list[str], directory: Path) -> None:
        name, _, version = names[0].partition("=")
        (directory / f"{name}_{version or self.had[-1]}_all.deb").write_text("a package")


def test_the_source_is_that_of_the_lock_or_the_newest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = list[str]()
    monkeypatch.setattr(apt, "Archive", Shelf)
    monkeypatch.setattr(apt, "debian_sources", lambda _hint: [("http://m", "bookworm")])
    sha256 = hashlib.sha256(b"a package").hexdigest()

    def fetched(version: str, digest: str) -> str:
        pin = ("linux-source-7.3", version, digest)
        return kernel._fetch(tmp_path / "x", None, told.append, pin)[1].name

    monkeypatch.setattr(Shelf, "had", ("7.3.4-1", "7.3.9-1"))
    assert fetched("7.3.4-1", sha256) == "linux-source-7.3_7.3.4-1_all.deb"
    assert not any("no longer" in text for text in told)
    with pytest.raises(LabError, match="SHA-256"):
        fetched("7.3.4-1", "0" * 64)
    (tmp_path / "x" / "linux-source-7.3_7.3.4-1_all.deb").unlink()
    assert fetched("7.3.3-1", sha256) == "linux-source-7.3_7.3.9-1_all.deb"
    assert any("no longer to be had: linux-source-7.3=7.3.3-1" in text for text in told)


def test_every_vital_option_is_asked_for_or_a_default() -> None:
    asked = set(kernel.fragment("lab", None).splitlines())
    # CONFIG_PACKET and the like are in User-Mode Linux's defaults too; asking does no harm.
    assert set(kernel.VITAL_OPTIONS) <= asked


FAULTS = [
    "BUG: KASAN: slab-out-of-bounds in paqm_enqueue+0x12/0x40",
    "WARNING: possible circular locking dependency detected",
    "WARNING: CPU: 0 PID: 1 at net/sched/sch_htb.c:591",
    "Kernel panic - not syncing: sysrq triggered crash",
    "UBSAN: array-index-out-of-bounds in sch_paqm.c:10",
    "kmemleak: 3 new suspected memory leaks (see /sys/kernel/debug/kmemleak)",
    "WARNING: suspicious RCU usage",
    "BUG: sleeping function called from invalid context at mm/slab.h:10",
    "refcount_t: underflow; use-after-free.",
    "ODEBUG: free active (active state 0) object type: hrtimer",
]
HARMLESS = [
    "Failed to initialize ubd device 0 :Couldn't determine size of device's file",
    "FAULT_INJECTION: forcing a failure.",
    "Call Trace:",
    "kmemleak: 0 new suspected memory leaks",
    "sysrq: Power Off",
    "random: crng init done",
]


@pytest.mark.parametrize("line", FAULTS)
def test_fault_is_recognised(line: str) -> None:
    assert uml.kernel_reports(f"boot\n{line}\nmore\n") == [line]


@pytest.mark.parametrize("line", HARMLESS)
def test_harmless_line_is_not_a_fault(line: str) -> None:
    assert uml.kernel_reports(line) == []


def test_command_line_is_free_of_the_run(tmp_path: Path) -> None:
    def line(version: str, **more: Any) -> str:
        built = kernel.Kernel(Path("/a/tree"), version, "lab", "key")
        job = uml.Job(directory=tmp_path, command=["true"], cwd=Path("/"), **more)
        return " ".join(uml.command_line(built, job))

    plain = line("7.2.12")
    assert "/a/tree" not in plain and "time-travel=inf-cpu" in plain and "seccomp=on" in plain
    assert "time-travel" not in line("7.2.12", real_time=True)
    assert "seccomp=on" not in line("6.1.170")
    there = line("7.2.12", root=Path("/an/image"))
    assert "/an/image" not in there and str(tmp_path) not in there and " ro " in there
    assert " rw " in line("7.2.12", root=Path("/an/image"), change=True)


def boot(directory: Path, script: str) -> uml.Result:
    """The end of a guest whose kernel is this shell script."""
    tree = directory / "tree"
    tree.mkdir()
    (tree / "linux").write_text(f"#!/bin/sh\n{script}\n")
    (tree / "linux").chmod(0o755)
    job = uml.Job(directory / "job", ["true"], cwd=Path("/"), real_time=True, timeout=60)
    return uml.run(kernel.Kernel(tree, "7.2.12", "lab", "key"), job)


def test_a_guest_without_memory_is_ended_at_once(tmp_path: Path) -> None:
    """Who is killed then may be waited for without end; and the kernel's word is told, whole."""
    said = "Out of memory: Killed process 7 (x264)"
    result = boot(tmp_path, f"printf 'Out of mem'; sleep 0.5; echo '{said[10:]}'; sleep 600")
    assert result.reports == [said] and said in result.explain()
    assert not result.timed_out and result.wall < 30


def test_an_empty_status_is_none(tmp_path: Path) -> None:
    """As a full disk leaves it."""
    result = boot(tmp_path, ": >status")
    assert result.status is None and "died before its command ended" in result.explain()


def test_a_release_is_two_numbers_and_not_too_old() -> None:
    assert [kernel.release(text) for text in ("6.1", "6.12", "7.3")] == ["6.1", "6.12", "7.3"]
    for text in ("5.10", "6.0", "6", "6.1.3", "newest", "6.x", ""):
        with pytest.raises(argparse.ArgumentTypeError, match="6.1 at least"):
            kernel.release(text)
