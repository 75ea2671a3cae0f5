# SPDX-License-Identifier: GPL-2.0
"""The user's cache, where several runs of one process ask for the same thing at once."""

import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from test_anywhere import may_mount

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


def test_who_waits_for_another_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As when two clones build the kernel's modules: for minutes nothing else would be said."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for silent, said in ((30.0, ""), (0.05, "waiting for another one that makes modules")):
        monkeypatch.setattr(cache, "SILENT", silent)
        begun = Barrier(2)

        def hold(begun: Barrier = begun) -> None:
            with cache.locked("modules"):
                begun.wait()
                time.sleep(0.3)

        with ThreadPoolExecutor(1) as pool:
            other = pool.submit(hold)
            begun.wait()
            with cache.locked("modules"):
                assert other.result() is None
        assert said in (told := capsys.readouterr().err) and bool(told) == bool(said)


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


def test_a_clone_where_no_module_can_be_built(tmp_path: Path) -> None:
    """Kbuild takes what stands before the first space for the directory of the modules."""
    spaced, clone = tmp_path / "my clone" / "kernel", tmp_path / "clone" / "kernel"
    for where in (spaced, clone):
        where.mkdir(parents=True)
        shutil.copy(cache.REPO / "kernel" / "Makefile", where)
    kernel = tmp_path / "headers"
    kernel.mkdir()
    (kernel / "Makefile").write_text("modules:\n\t@echo built\n")
    for where, headers, told in (
        (spaced, kernel, f"{spaced} has a space, and no kernel builds modules there: move"),
        (clone, tmp_path / "none", "none has no kernel's headers: install linux-"),
        (clone, kernel, "built\n"),
    ):
        command = ["make", "-C", str(where), f"KDIR={headers}"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert told in done.stdout + done.stderr, done.stderr


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The set-up on a machine without dpkg, whose Python is too old for the step after packages."""
    (tmp_path / "bin").mkdir()
    for name in ("bash", "dirname", "flock", "mkdir", "readlink", "sed", "tr"):
        found = shutil.which(name)
        assert found is not None
        (tmp_path / "bin" / name).symlink_to(found)
    old = tmp_path / "bin" / "python3"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "paqm").mkdir()
    (tmp_path / "paqm" / "venv.stamp").touch()  # it does not ask for 11 GB
    return [cache.REPO / "setup" / "setup.sh"]


def test_a_question_sets_nothing_up(elsewhere: list[Path], tmp_path: Path) -> None:
    for word, status, told in (("--help", 0, "Prepares this machine"), ("--check", 2, "--check")):
        done = subprocess.run(["bash", *elsewhere, word], capture_output=True, text=True)
        assert done.returncode == status and told in done.stdout + done.stderr
        assert not (tmp_path / "paqm" / "setup.lock").exists()


def test_a_system_without_dpkg_is_told_what_it_needs(
    elsewhere: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PAQM_NO_APT", raising=False)
    done = subprocess.run(["bash", *elsewhere], capture_output=True, text=True)
    assert done.returncode == 2 and "not a Debian system" in done.stderr
    assert "xz-utils and set PAQM_NO_APT=1" in done.stderr


def test_the_set_up_passes_over_packages_where_asked(
    elsewhere: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAQM_NO_APT", "1")
    done = subprocess.run(["bash", *elsewhere], capture_output=True, text=True)
    assert "passed over (PAQM_NO_APT=1); needed are the equivalents of: bc bison" in done.stdout
    assert done.returncode == 2 and "Python 3.11 or newer is needed" in done.stderr


@pytest.mark.skipif(not may_mount(), reason="mounts: needs root")
@pytest.mark.parametrize("noexec", [0, 1, 2])
def test_programs_are_made_where_they_may_run(tmp_path: Path, noexec: int) -> None:
    """As hardened hosts have /tmp; /var/tmp, too; then it is a place that is the lab's own."""
    (tmp_path / "usual").mkdir()
    places = [str(tmp_path / "usual"), "/var/tmp", str(tmp_path / "cache" / "paqm" / "tmp")]
    program = (
        "import subprocess, sys; from paqm_lab import cache\n"
        "for place in sys.argv[1:]:\n"
        "    subprocess.run(['mount', '-t', 'tmpfs', '-o', 'noexec', 'tmpfs', place], check=True)\n"
        "print(cache.scratch_dir())"
    )
    command = ["unshare", "--mount", sys.executable, "-c", program, *places[:noexec]]
    own = {"TMPDIR": places[0], "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run(
        command, env={**os.environ, **own}, cwd=cache.TESTBED, capture_output=True, text=True
    )
    assert done.stdout == f"{places[noexec]}\n", done.stderr


@pytest.mark.skipif(not may_mount(), reason="mounts: needs root")
def test_results_where_nothing_is_executed_are_refused(tmp_path: Path) -> None:
    """The guest's kernel panicked: Attempted to kill init."""
    program = (
        "import subprocess, sys; from pathlib import Path; from paqm_lab import lab\n"
        "place = Path(sys.argv[1])\n"
        "subprocess.run(['mount', '-t', 'tmpfs', '-o', 'noexec', 'tmpfs', place], check=True)\n"
        "with lab.alone_in(place / 'out'):\n    print('it is taken')\n"
    )
    command = ["unshare", "--mount", sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(command, cwd=cache.TESTBED, capture_output=True, text=True)
    told = f"LabError: {tmp_path}/out is mounted noexec, and a guest executes its first program"
    assert told in done.stderr and not done.stdout


@pytest.mark.skipif(not may_mount(), reason="mounts: needs root")
def test_a_result_is_verified_where_something_is_executed(tmp_path: Path) -> None:
    """Not below a /tmp that is mounted noexec."""
    program = (
        "import subprocess, sys; from pathlib import Path\n"
        "from paqm_lab import run, scenario, verify\n"
        "place = sys.argv[1]\n"
        "subprocess.run(['mount', '-t', 'tmpfs', '-o', 'noexec', 'tmpfs', place], check=True)\n"
        "told = {'scenario_data': {}, 'seed': 1, 'packet_log_sha256': {}}\n"
        "verify.load = lambda path: (told, '')\n"
        "scenario.check = lambda path, data: None\n"
        "run.run_scenario = lambda chosen, options, progress: sys.exit(str(options.out.parent))\n"
        "verify.verify(Path('x'), print)"
    )
    command = ["unshare", "--mount", sys.executable, "-c", program, str(tmp_path)]
    own = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(command, env=own, cwd=cache.TESTBED, capture_output=True, text=True)
    assert done.stderr.startswith("/var/tmp/paqm-verify-"), done.stderr


@pytest.mark.skipif(not may_mount(), reason="mounts: needs root")
@pytest.mark.parametrize("words", ["setup/setup.sh", "testbed/paqm-lab run demo"])
def test_a_cache_where_nothing_is_executed_is_refused(tmp_path: Path, words: str) -> None:
    """As hardened hosts have /home: the set-up was done, then numpy failed to map a segment."""
    (tmp_path / "paqm").symlink_to(tmp_path / "mounted")
    (tmp_path / "mounted").mkdir()
    script = 'mount -t tmpfs -o noexec tmpfs "$1" && mkdir -p "$1/venv/bin" && '
    script += 'ln -s "$2" "$1/venv/bin/python" && shift 2 && exec "$@"'
    command = ["unshare", "--mount", "sh", "-c", script, "sh", str(tmp_path / "mounted")]
    own = os.environ | {"XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([*command, sys.executable, *words.split()], cwd=cache.REPO, env=own,
                          capture_output=True, text=True)
    assert done.returncode == 2 and "mounted noexec" in done.stderr, done.stderr
    assert "set XDG_CACHE_HOME to a directory elsewhere" in done.stderr
