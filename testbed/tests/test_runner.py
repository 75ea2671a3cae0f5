# SPDX-License-Identifier: GPL-2.0
"""setup/test.py and setup/tap.py: whatever way a suite ends, it is counted."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SETUP = Path(__file__).resolve().parents[2] / "setup"

# Each by its words, and what test.py tells of it: passed, failed, skipped.
TAPS = {
    "good": ("echo ok one; echo noise; echo ok 2 streams", (2, [], [])),
    "wrong": ("echo ok one; echo 'not ok two: 3 > 2'; echo why; exit 1", (1, ["two: 3 > 2"], [])),
    "lax": ("echo 'not ok one'", (0, ["one"], [])),
    "crash": ("echo ok one; exit 3", (1, ["exit status 3"], [])),
    "killed": ("echo ok one; kill -9 $$", (1, ["exit status -9"], [])),
    "empty": ("echo nothing", (0, ["no case was run"], [])),
    "numbered": ("echo 1..2; echo ok 1 - one; echo 'ok 2 - two # SKIP too old'",
                 (1, [], ["two # SKIP too old"])),
    "unplanned": ("echo ok 1 - one; echo 1..2", (1, ["2 cases were planned"], [])),
    "skips": ("echo skip one: too old", (0, [], ["one # SKIP too old"])),
}
RAW = {  # without tap.py between them and Meson
    "no plan": ("tap", "echo ok 1 - one", (1, ["did not come to its end (OK, exit status 0)"], [])),
    "silent": ("tap", "true", (0, ["did not come to its end (SKIP, exit status 0)"], [])),
    "fewer": ("tap", "echo 1..2; echo ok 1 - one",
              (1, ["did not come to its end (ERROR, exit status 0)"], [])),
    "dies": ("tap", "echo ok 1 - one; kill -9 $$",
             (1, ["did not come to its end (ERROR, exit status -9)"], [])),
    "status": ("tap", "echo 1..1; echo ok 1 - one; exit 1", (1, ["ERROR, exit status 1"], [])),
    "late": ("tap", "echo ok 1 - one; sleep 60",
             (1, ["did not come to its end (TIMEOUT, exit status -15)"], [])),
    "all skipped": ("tap", "echo 1..0 # SKIP", (0, [], ["SKIP, exit status 0"])),
    "program": ("exitcode", "echo ok 1 - no case", (1, [], [])),
    "bad program": ("exitcode", "exit 2", (0, ["FAIL, exit status 2"], [])),
    "cannot": ("exitcode", "exit 77", (0, [], ["SKIP, exit status 77"])),
}


def project(where: Path, tests: list[str]) -> list[str]:
    """Sets up a Meson project with these tests; the words that run them."""
    lines = ["project('p')", "sh = find_program('sh')", f"tap = find_program('{SETUP / 'tap.py'}')"]
    lines += [*tests, "add_test_setup('full')"]
    (where / "meson.build").write_text("\n".join(lines) + "\n")
    subprocess.run(["meson", "setup", "build"], cwd=where, check=True, capture_output=True)
    return [sys.executable, str(SETUP / "test.py"), "--build", str(where / "build")]


def definition(name: str, words: str, protocol: str = "tap", program: str = "sh") -> str:
    args = ["sh", "-c", words] if program == "tap" else ["-c", words]
    told = ", ".join("'" + word.replace("'", "\\'") + "'" for word in args)
    limit = 3 if name == "late" else 0
    return f"test('{name}', {program}, args: [{told}], protocol: '{protocol}', timeout: {limit})"


def test_every_end_is_counted(tmp_path: Path) -> None:
    tests = [definition(name, words, program="tap") for name, (words, _) in TAPS.items()]
    tests += [definition(name, words, protocol) for name, (protocol, words, _) in RAW.items()]
    counts = tmp_path / "counts.json"
    run = [*project(tmp_path, tests), "--json", str(counts)]
    done = subprocess.run(run, capture_output=True, text=True)
    found = {name: (suite["passed"], suite["failed"], suite["skipped"])
             for name, suite in json.loads(counts.read_text()).items()}
    wanted = {name: case[-1] for name, case in (TAPS | RAW).items()}
    assert found == wanted
    failed = [f"FAILED {name}: {what}" for name, (_, names, _) in wanted.items() for what in names]
    lines = done.stdout.splitlines()
    assert sorted(line for line in lines if line.startswith("FAILED ")) == sorted(failed)
    passed, skipped = (sum(map(count, wanted.values())) for count in (
        lambda case: case[0], lambda case: len(case[2])))
    assert lines[-1] == f"{passed} passed, {len(failed)} failed, {skipped} skipped"
    assert done.returncode == 1
    assert "\nwhy\n" in done.stdout and "\nnoise\n" not in done.stdout


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A project of one test that is good, and two that last."""
    where = tmp_path_factory.mktemp("small")
    lasts = f"echo $$ >{where}/pid; exec sleep 600"
    tests = [definition("good", TAPS["good"][0], program="tap")]
    tests += [definition(name, lasts, program="tap") for name in ("first", "second")]
    return where, project(where, tests)


@pytest.mark.parametrize(
    ("words", "status", "last"),
    [
        (["good"], 0, "2 passed, 0 failed"),
        (["--full", "good"], 0, "2 passed, 0 failed"),
        (["--suite", "none"], 1, "0 passed, 1 failed"),
        (["--no-such-option"], 1, "0 passed, 1 failed"),
        (["--build", "/nonexistent"], 1, "0 passed, 1 failed"),
    ],
)
def test_last_line(
    small: tuple[Path, list[str]], words: list[str], status: int, last: str
) -> None:
    done = subprocess.run([*small[1], *words], capture_output=True, text=True)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (status, last)


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stopped(small: tuple[Path, list[str]], number: signal.Signals) -> None:
    where, run = small
    (where / "pid").write_text("")
    words = ["--num-processes", "1", "first", "second"]
    with subprocess.Popen([*run, *words], stdout=subprocess.PIPE, text=True) as proc:
        while not (where / "pid").read_text():
            assert proc.poll() is None
            time.sleep(0.05)
        proc.send_signal(number)
        assert proc.stdout
        lines = proc.stdout.read().splitlines()
    assert proc.returncode == 1
    assert lines[-3:] == ["FAILED first: did not come to its end (INTERRUPT, exit status -15)",
                          f"FAILED stopped by {number.name}", "0 passed, 2 failed"]
    assert not runs(int((where / "pid").read_text()))


def test_goes_on_under_nohup(small: tuple[Path, list[str]]) -> None:
    """A terminal that is closed does not end what was begun to outlive it."""
    where, run = small
    (where / "pid").write_text("")
    with subprocess.Popen(["nohup", *run, "first"], stdout=subprocess.PIPE, text=True) as proc:
        while not (where / "pid").read_text():
            assert proc.poll() is None
            time.sleep(0.05)
        proc.send_signal(signal.SIGHUP)
        proc.send_signal(signal.SIGTERM)
        told = proc.communicate()[0]
    assert "FAILED stopped by SIGTERM" in told
    assert "SIGHUP" not in told
