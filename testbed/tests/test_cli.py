# SPDX-License-Identifier: GPL-2.0
"""The command line: every experiment is a subcommand of paqm-lab, under its own name."""

import os
import pwd
import re
import subprocess
from pathlib import Path

import pytest

from paqm_lab import cache, cli

LAB = cache.TESTBED / "paqm-lab"


@pytest.mark.parametrize("name", [*cli.EXPERIMENTS, *cli.SUITES])
def test_an_experiment_knows_its_name(name: str) -> None:
    """And what its options take, and which page it writes."""
    done = subprocess.run([LAB, name, "--help"], capture_output=True, text=True,
                          env=os.environ | {"COLUMNS": "200"})
    assert done.returncode == 0 and done.stdout.startswith(f"usage: paqm-lab {name} ")
    assert not re.findall(r"^  --[a-z-]+ \S+$(?!\n {8})", done.stdout, re.MULTILINE)
    for page in re.findall(r"write (docs/[\w-]+\.md)", done.stdout):
        assert f"paqm-lab {name} --docs" in (cache.REPO / page).read_text()


def test_experiments_are_listed() -> None:
    told = cli.parser().format_help()
    assert all(what[:12] in told for _, what in cli.EXPERIMENTS.values())


def test_a_word_that_is_no_command_is_refused() -> None:
    done = subprocess.run([LAB, "multiroute"], capture_output=True, text=True)
    assert done.returncode == 2 and "multirouter" in done.stderr


def test_the_makefile_calls_the_lab_by_its_name() -> None:
    assert "PYTHONPATH" not in (cache.REPO / "Makefile").read_text()


def test_make_knows_the_home_of_who_has_none() -> None:
    """In a service, or a container."""
    without = {name: value for name, value in os.environ.items()
               if name != "HOME" and "MAKE" not in name}
    done = subprocess.run(["make", "--eval", "where:;@echo $$HOME", "where"], cwd=cache.REPO,
                          env=without, capture_output=True, text=True)
    assert done.stdout == pwd.getpwuid(os.getuid()).pw_dir + "\n", done.stderr


@pytest.mark.parametrize("name", ["testbed/paqm-lab", "testbed/paqm-trace", "setup/setup.sh"])
@pytest.mark.parametrize("home", [{}, {"HOME": ""}])
def test_who_has_no_home_has_a_cache(name: str, home: dict[str, str], tmp_path: Path) -> None:
    """They looked for it in /.cache, or ended with HOME: unbound variable."""
    (tmp_path / "mkdir").write_text("#!/bin/sh\nexit 1\n")  # the set-up ends here
    (tmp_path / "mkdir").chmod(0o755)
    left = {key: value for key, value in os.environ.items()
            if key not in {"HOME", "XDG_CACHE_HOME"}}
    done = subprocess.run([cache.REPO / name, *(["--help"] if "testbed" in name else [])],
                          env=left | home | {"PATH": f"{tmp_path}:{left['PATH']}"},
                          capture_output=True, text=True)
    place = f"{pwd.getpwuid(os.getuid()).pw_dir}/.cache/paqm"
    assert done.returncode == 0 or place in done.stderr, done.stderr


@pytest.mark.parametrize("name", ["setup.sh", "lint.sh", "fuzz.sh"])
def test_help_starts_no_work(name: str) -> None:
    done = subprocess.run([cache.REPO / "setup" / name, "--help"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout and "\nok " not in f"\n{done.stdout}"


@pytest.mark.parametrize("words", [["run", "demo"], ["exec", "true"]])
@pytest.mark.parametrize("seed", ["-1", "4294967296"])
def test_a_seed_that_no_guest_takes_is_refused(
    words: list[str], seed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        cli.parser().parse_args([words[0], f"--seed={seed}", *words[1:]])
    told = f"--seed: '{seed}': expected a number from 0 to 4294967295"
    assert told in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("trace --seed -1", "--seed: '-1': expected a number from 0 to 4294967295"),
        ("sfu --seed -1", "--seed: '-1': expected a number from 0 to 4294967295"),
        ("regimes --seed 1.5", "--seed: '1.5': expected a number from 0 to 4294967295"),
        ("mixed --seeds=1,-2", "--seeds: '-2': expected a number from 0 to 4294967295"),
        ("catalogue --seeds=1,", "--seeds: '': expected a number from 0 to 4294967295"),
        ("head-to-head --seeds x", "--seeds: 'x': expected a number from 0 to 4294967295"),
        ("trace --flows 0", "--flows: '0': expected 1 to 256"),
        ("trace --flows 257", "--flows: '257': expected 1 to 256"),
        ("exec --memory 1 true", "--memory: '1': expected 64M or more, such as 512M or 1G"),
        ("exec --memory 1TB true", "--memory: '1TB': expected 64M or more"),
        ("exec --timeout nan true", "--timeout: 'nan': expected seconds, more than 0"),
        ("exec --timeout -1 true", "--timeout: '-1': expected seconds, more than 0"),
    ],
)
def test_a_value_that_no_guest_takes_is_refused(
    words: str, told: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once, and by the option's name."""
    monkeypatch.setattr("sys.argv", ["paqm-lab", *words.split()])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 2
    assert told in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("name", [*cli.SUITES, "catalogue"])
def test_no_guest_at_a_time_is_refused(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["paqm-lab", name, "--jobs", "0"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 2
    assert "--jobs: '0': expected 1 or more" in " ".join(capsys.readouterr().err.split())


def test_a_reader_may_leave() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as pipe:
        done = subprocess.run([LAB, "mixed", "--list"], stdout=pipe, stderr=subprocess.PIPE)
    assert done.returncode == cli.READER_LEFT and done.stderr == b""


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["mixed", "--list"], "No space left on device"),
        (["run", "demo", "--out", "/etc/passwd/out"], "/etc/passwd/out"),
        (["exec", "--dir", "/nowhere", "true"], "--dir /nowhere: there is no such directory"),
    ],
)
def test_a_place_that_cannot_be_used_is_named(words: list[str], told: str) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([LAB, *words], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert told in done.stderr and "Traceback" not in done.stderr
