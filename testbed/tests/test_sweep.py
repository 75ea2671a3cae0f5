# SPDX-License-Identifier: GPL-2.0
"""Sweeps: what a file stands for, who works at what, and the store; real runs of trace flows."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pages
import pytest

from paqm_lab import (
    cache,
    claims,
    compare,
    scenario,
    store,
    sweep,
    sweep_file,
    sweep_jobs,
    sweep_run,
)
from paqm_lab.errors import LabError

PAGE = cache.REPO / "docs" / "sweeps.md"
LAB = str(cache.TESTBED / "paqm-lab")
SWEEP = """
name = "kill"
base = "trace-short"
seeds = [1, 2]
[axes]
duration = [4]
"elastic.tcp.stop" = [4]
"trace.flows, path.bottleneck" = [[1, "1mbit"], [2, "1500kbit"]]
"""


def read(where: Path, text: str) -> sweep_file.Sweep:
    (where / "sweep.toml").write_text(text)
    return sweep_file.read(str(where / "sweep.toml"))


def test_all_runs_of_a_file(tmp_path: Path) -> None:
    sweep = read(tmp_path, SWEEP)
    tasks = sweep_file.tasks(sweep, "programs")
    assert len({task.key for task in tasks}) == len(tasks) == 8
    assert [task.seed for task in tasks] == [1] * 4 + [2] * 4
    flows = [task.data["trace"]["flows"] for task in tasks[:4]]
    links = [task.data["path"]["bottleneck"] for task in tasks[:4]]
    assert (flows, links[1:3]) == ([1, 1, 2, 2], ["1mbit", "1500kbit"])
    assert [task.variant["name"] for task in tasks[:2]] == ["paqm", "fq_codel"]
    assert all(task.data["variant"] == [task.variant] for task in tasks)
    assert all(task.data["elastic"][0]["stop"] == 4 for task in tasks)
    again = sweep_file.tasks(sweep, "programs")
    assert [task.key for task in again] == [task.key for task in tasks]
    assert not {t.key for t in sweep_file.tasks(sweep, "others")} & {t.key for t in tasks}


@pytest.mark.parametrize("base", ["demo", "parking-lot", "trace-short"])
def test_any_scenario_may_be_the_base(tmp_path: Path, base: str) -> None:
    tasks = sweep_file.tasks(read(tmp_path, f'name = "x"\nbase = "{base}"\n'), "")
    kinds = {"demo": "dumbbell", "parking-lot": "network", "trace-short": "trace"}
    assert {task.kind for task in tasks} == {kinds[base]}


def test_entries_of_lists_go_by_name_number_or_all() -> None:
    _, data = scenario.read("demo")
    sweep_file.set_key(data, "media.a.rate_max", "1mbit", "here")
    sweep_file.set_key(data, "media.2.rate_max", "2mbit", "here")
    sweep_file.set_key(data, "media.*.rate_min", "100kbit", "here")
    assert [flow["rate_max"] for flow in data["media"]] == ["1mbit", "2mbit", "3mbit"]
    assert {flow["rate_min"] for flow in data["media"]} == {"100kbit"}


@pytest.mark.parametrize(
    ("axis", "says"),
    [
        ('"path.delay" = [1]', r"path: unknown key delay; expected are bottleneck, rtt_ms"),
        ('"paths.rtt_ms" = [1]', r'there is no "paths" in the scenario; it has name, title, '),
        ('"elastic.udp.flows" = [1]', r'there is no "udp" in elastic; it has tcp, 1, \*'),
        ('"duration.x" = [1]', r'"duration.x" is no value in duration, which has no keys'),
        ('"path.rtt_ms" = [-1]', r"at path.rtt_ms = -1: .*path.rtt_ms: -1 is less than"),
        ('"path.rtt_ms, duration" = [[1]]', r"\[1\]: expected a list of 2 values"),
        ('"path.rtt_ms" = []', r"axes.path.rtt_ms: "),
        ('elastic.tcp.flows = [1]',
         r'axes.elastic: expected a list; a key with dots stands in quotes, "elastic.tcp.flows"$'),
        ('seed = [1]', r"give seeds as `seeds"),
    ],
)
def test_a_wrong_axis_is_named(tmp_path: Path, axis: str, says: str) -> None:
    with pytest.raises(LabError, match=says) as err:
        sweep = read(tmp_path, f'name = "x"\nbase = "trace-short"\n[axes]\n{axis}\n')
        sweep_file.tasks(sweep, "")
    assert str(err.value).startswith(str(tmp_path / "sweep.toml"))


TAKER = """
import sys
from pathlib import Path
from paqm_lab import claims
held = claims.Claims(Path(sys.argv[1]))
for key in range(200):
    if held.take(f"k{key}"):
        print(key)
print("all tried", flush=True)
sys.stdin.read()
"""


def test_of_many_workers_one_has_a_key(tmp_path: Path) -> None:
    workers = [
        subprocess.Popen([sys.executable, "-c", TAKER, str(tmp_path)], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, text=True, cwd=cache.TESTBED)
        for _ in range(4)
    ]  # fmt: skip
    taken: list[str] = []
    for worker in workers:  # while none has ended, and what it held is free
        assert worker.stdout
        taken += iter(worker.stdout.readline, "all tried\n")
    held = claims.Claims(tmp_path)
    assert held.take("k0") is None  # its holder is there
    for worker in workers:
        worker.communicate("")
    assert sorted(map(int, taken)) == list(range(200))
    assert not list(tmp_path.glob("*.2"))
    # they have ended, so what they had is free again, for one
    claim = held.take("k0")
    assert claim is not None and claim.generation == 2
    assert held.take("k0") is None
    claim.close()


def test_a_claim_of_another_machine_ends_with_its_lease(tmp_path: Path) -> None:
    held = claims.Claims(tmp_path)
    held.path("k", 1).write_text(json.dumps({"machine": "other", "pid": 1, "started": "1"}))
    assert held.take("k") is None
    past = time.time() - claims.LEASE - 1
    os.utime(held.path("k", 1), (past, past))
    assert held.take("k") is not None


def test_what_is_published_is_whole_and_stays(tmp_path: Path) -> None:
    assert claims.publish(tmp_path / "x.json", {"a": 1})
    assert not claims.publish(tmp_path / "x.json", {"a": 2})
    assert json.loads((tmp_path / "x.json").read_text()) == {"a": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]


def test_jobs_of_clusters(tmp_path: Path) -> None:
    sweep = read(tmp_path, SWEEP)
    out, words = tmp_path / "out", ["paqm-lab", "sweep", "a b.toml", "--task", "{task}"]
    assert f"sbatch {tmp_path}/kill.sbatch" in sweep_jobs.slurm(tmp_path, sweep, out, words, 7)[0]
    said = subprocess.run(
        ["sh", "-c", f"paqm_lab() {{ printf '%s|' \"$@\"; }}; {_last(tmp_path / 'kill.sbatch')}"],
        env={"SLURM_ARRAY_TASK_ID": "3"}, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert said == "sweep|a b.toml|--task|3/7|"
    sweep_jobs.kubernetes(tmp_path, sweep, out, words, 7)
    text = (tmp_path / "kill.yaml").read_text()
    job = json.loads("".join(line for line in text.splitlines(True) if line[0] != "#"))
    assert (job["kind"], job["spec"]["completionMode"], job["spec"]["completions"]) == (
        "Job", "Indexed", 7)  # fmt: skip
    container = job["spec"]["template"]["spec"]["containers"][0]
    said = subprocess.run(
        ["sh", "-c", container["command"][-1].replace("exec paqm-lab", "printf '%s|'")],
        env={"JOB_COMPLETION_INDEX": "0"}, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert said == "sweep|a b.toml|--task|1/7|"


def test_jobs_of_clusters_know_odd_places(tmp_path: Path) -> None:
    """A base outside the sweep's directory, spaces and % in names; a job's name is one of DNS."""
    inner = tmp_path / "100 %" / "inner"
    inner.mkdir(parents=True)
    (inner.parent / "base.toml").write_text((scenario.SCENARIOS / "trace-short.toml").read_text())
    made = read(inner, 'name = "odd_"\nbase = "../base.toml"\n')
    lines = sweep_jobs.slurm(inner, made, inner / "out", ["x"], 2)
    assert shlex.split(lines[1])[-1] == str(inner / "out")
    lines = (inner / "odd_.sbatch").read_text().splitlines()
    output = next(line for line in lines if "--output" in line)
    place = str(inner / "out").replace("%", "%%")
    assert shlex.split(output, comments=False)[1:] == [f"--output={place}/slurm/%a.log"]
    lines = sweep_jobs.kubernetes(inner, made, inner / "out", ["x"], 2)
    assert shlex.split(lines[0])[-1] == str(inner / "odd_.yaml")
    text = (inner / "odd_.yaml").read_text()
    job = json.loads("".join(line for line in text.splitlines(True) if line[0] != "#"))
    assert re.fullmatch("[a-z0-9]([a-z0-9-]*[a-z0-9])?", job["metadata"]["name"])
    shared = job["spec"]["template"]["spec"]["volumes"]
    assert {str(inner), str(inner.parent)} <= {one["hostPath"]["path"] for one in shared}


def _last(script: Path) -> str:
    """The command of a job, for a function of the shell that stands for the lab."""
    return script.read_text().splitlines()[-1].replace("exec paqm-lab", "paqm_lab")


@pytest.fixture
def no_guests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is built, and programs are of the state "p"."""
    monkeypatch.setattr(sweep_run.lab, "ready", lambda _: None)
    monkeypatch.setattr(sweep_run, "programs_of", lambda _: "p")


@pytest.mark.usefixtures("no_guests")
def test_a_fault_in_a_run_is_that_runs_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker tells it, and goes on with the others."""
    one, made = read(tmp_path, SWEEP.replace("seeds = [1, 2]", "seeds = [1]")), []

    def run_task(task: sweep_file.Task, *_: object) -> dict[str, Any]:
        made.append(task.key)
        if len(made) == 1:
            raise KeyError("marker")
        return {"begun": 0.0, "ended": 1.0}

    monkeypatch.setattr(sweep_run, "run_task", run_task)
    assert sweep_run.work(one, tmp_path / "out", 1, 1, lambda _: None) == 1
    place = sweep_run.Place(tmp_path / "out")
    assert len(made) == 4 and place.keys("results") == set(made[1:])
    (failure,) = (tmp_path / "out" / "failed").glob("*.json")
    error = json.loads(failure.read_text())["error"]
    assert failure.stem == made[0] and error.endswith("KeyError: 'marker'")


@pytest.mark.usefixtures("no_guests")
def test_a_sweep_whose_workers_die_is_none_that_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They end with 1, as after runs that failed; what somebody else works at may be missing."""
    one, out = read(tmp_path, SWEEP), tmp_path / "out"
    dies = [sys.executable, "-c", "{}['mark' + 'er']"]  # 3.13 shows the line, too
    monkeypatch.setattr(sweep, "worker_command", lambda *_: dies)
    assert sweep.sweep_here(one, out, 2) == 1
    assert "8 runs are missing, nobody works at them" in capsys.readouterr().err
    said = (out / "workers.log").read_text()  # of both, maybe a word of each in turn
    assert said.count("KeyError") == said.count("'marker'") == 2
    held = [claims.Claims(out / "claims").take(t.key) for t in sweep_file.tasks(one, "p")]
    assert sweep.sweep_here(one, out, 2) == 0
    assert "8 runs are with other workers" in capsys.readouterr().err
    for claim in held:
        assert claim
        claim.close()


def test_dask_is_asked_for_only_when_wanted(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="pip install distributed"):
        sweep_jobs.dask("tcp://nowhere:1", [], print)


def lab(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([LAB, *map(str, words)], capture_output=True, text=True)


def count(out: Path) -> int:
    return len(list((out / "results").glob("*.json")))


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep of eight runs, killed when some were done, and brought to its end."""
    where = tmp_path_factory.mktemp("sweep")
    read(where, SWEEP)
    out = where / "out"
    words = [LAB, "sweep", str(where / "sweep.toml"), "--out", str(out), "--jobs", "2"]
    first = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    while count(out) < 2:
        assert first.poll() is None
        time.sleep(0.02)
    first.send_signal(signal.SIGKILL)
    first.wait()
    before = {path.name: path.stat().st_mtime_ns for path in (out / "results").glob("*.json")}
    assert 2 <= len(before) < 8
    again = lab("sweep", where / "sweep.toml", "--out", out, "--jobs", "2")
    assert again.returncode == 0, again.stderr
    made = re.search(r"8 of 8 runs are there, (\d+) made now", again.stderr)
    assert made
    # a worker that was about to end may have left one more
    assert len(before) <= 8 - int(made[1]) <= len(before) + 2
    assert count(out) == 8
    for name, when in before.items():
        assert (out / "results" / name).stat().st_mtime_ns == when
    return out


@pytest.mark.lab
def test_a_killed_sweep_goes_on_and_does_nothing_twice(swept: Path) -> None:
    results = [json.loads(path.read_text()) for path in (swept / "results").glob("*.json")]
    # only what was under way when it was killed has a second claim
    assert len(list((swept / "claims").glob("*.2"))) <= 2
    assert {Path(one["directory"]).name for one in results} == {
        path.name for path in (swept / "runs").iterdir()}  # fmt: skip
    file = swept.parent / "sweep.toml"
    third = lab("sweep", file, "--out", swept)
    assert "8 of 8 runs are there, 0 made now" in third.stderr


@pytest.mark.lab
def test_a_run_of_its_own_has_the_same_packets(swept: Path, tmp_path: Path) -> None:
    one = json.loads(next((swept / "results").glob("*.json")).read_text())
    result = json.loads((swept / one["directory"] / "result.json").read_text())
    flows = result["scenario_data"]["trace"]["flows"]
    text = (scenario.SCENARIOS / "trace-short.toml").read_text()
    text = text.replace("flows = 3", f"flows = {flows}").replace("duration = 10", "duration = 4")
    link = result["scenario_data"]["path"]["bottleneck"]
    text = text.replace("stop = 10", "stop = 4").replace('"2mbit"', f'"{link}"')
    (tmp_path / "one.toml").write_text(text)
    words = ("--seed", str(one["seed"]), "--variant", one["variant"], "--out", tmp_path / "out")
    done = lab("run", tmp_path / "one.toml", *words)
    assert done.returncode == 0, done.stderr
    own = json.loads((tmp_path / "out" / "result.json").read_text())
    assert own["packet_log_sha256"] == {one["variant"]: one["packet_log_sha256"]}


@pytest.mark.lab
def test_the_store_answers(swept: Path) -> None:
    db = store.opened(swept)
    runs = store.chosen(db, ["variant=paqm", "seed=1|2", "trace.flows=2"])
    assert [run["seed"] for run in runs] == [1, 2]
    values = store.figures_of(db, "delay_ms.p95")
    for run in runs:
        result = json.loads((swept / run["directory"] / "result.json").read_text())
        assert values[run["key"]] == result["variants"][0]["figures"]["delay_ms"]["p95"]
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        db.execute("DELETE FROM run")
    with pytest.raises(LabError, match="there is no figure 'delay'; there are .*delay_ms.p95"):
        store.figures_of(db, "delay")
    with pytest.raises(LabError, match="there is no flow 'x'; there are flow000, flow001, tcp"):
        store.figures_of(db, "delay_ms.p95", "x")
    with pytest.raises(LabError, match="expected NAME=VALUE with one of key, .*trace.flows"):
        store.chosen(db, ["queue=paqm"])
    rows = (dict[str, Any](run) for run in json.loads(lab(
        "store", "query", swept, "--sql", "select count(*) as n, flow from figure where flow != '' "
        "and figure = 'mean_mbit' group by flow order by flow", "--format", "json").stdout))
    assert {row["flow"]: row["n"] for row in rows} == {"flow000": 8, "flow001": 4, "tcp": 8}
    (swept / store.NAME).unlink()
    assert (store.fill(swept), store.fill(swept)) == (8, 0)


@pytest.mark.lab
def test_groups_are_compared_in_pairs(swept: Path) -> None:
    (a, in_a), (b, in_b) = (compare.group(f"{swept}:variant={name}") for name in
                            ("fq_codel", "paqm"))
    rows, pairs = compare.compare(a, b, in_a | in_b, "", "delay_ms.p95")
    assert pairs == 4
    (_, _, left, right, difference, half, lacking, runs), = rows
    assert difference == pytest.approx(right - left) and half > 0
    assert (lacking, runs) == (0, 4)
    same, _ = compare.compare(a, a, in_a, "", "*")
    assert all(row[4] == 0 and row[5] == 0 for row in same)
    single = next(swept.glob("runs/*"))
    alone, _ = compare.group(str(single))
    assert compare.compare(alone, alone, set(), "", "jain")[0][0][5] is None


@pytest.mark.lab
def test_a_run_that_fails_is_told_and_tried_again(tmp_path: Path) -> None:
    bad = '"variant.*.qdisc" = ["nonesuch"]\n'
    read(tmp_path, SWEEP.replace('seeds = [1, 2]', 'seeds = [1]\nvariants = ["paqm"]') + bad)
    words = ("sweep", tmp_path / "sweep.toml", "--out", tmp_path / "out")
    for _ in range(2):
        done = lab(*words)
        assert done.returncode == 1
        assert re.search(r"failed: paqm .*variant.\*.qdisc=nonesuch", done.stderr)
        assert "0 of 2 runs are there" in done.stderr
    error = json.loads(next((tmp_path / "out" / "failed").iterdir()).read_text())["error"]
    assert "nonesuch" in error


@pytest.mark.lab
def test_other_kinds_of_scenarios(tmp_path: Path) -> None:
    """A network and a dumbbell without pictures, as short as they may be."""
    (tmp_path / "load.toml").write_text("""
name = "load"
title = "A flood"
duration = 3
seed = 1
[path]
bottleneck = "1mbit"
rtt_ms = 20
[[elastic]]
name = "tcp"
flows = 1
start = 0
stop = 3
congestion_control = "cubic"
[[variant]]
name = "fifo"
sender = "none"
shaper = "htb"
qdisc = "bfifo limit 30000"
""")
    out = tmp_path / "out"
    for base, axis, figure in (("load.toml", '"path.rtt_ms" = [10]', "link_use_percent.whole"),
                               ("parking-lot", 'duration = [6]', "check.L_jain.value")):
        read(tmp_path, f'name = "x"\nbase = "{base}"\n[axes]\n{axis}\n')
        done = lab("sweep", tmp_path / "sweep.toml", "--out", out)
        assert done.returncode == 0, done.stderr
        assert all(value for value in store.figures_of(store.opened(out), figure).values())


def test_every_block_of_the_page_is_run() -> None:
    assert pages.fences(PAGE) == len(pages.blocks(PAGE)) > 8


@pytest.mark.lab
def test_the_page(tmp_path: Path) -> None:
    (tmp_path / "testbed").symlink_to(cache.REPO / "testbed")
    pages.run_on_host(pages.blocks(PAGE), tmp_path)
    for name in ("rtt.svg", "delays.svg", "rates.svg"):
        assert "<svg" in (tmp_path / name).read_text()
    site = tmp_path / "out" / "delay" / "site"
    assert len(list((site / "runs").glob("*.js"))) == 12
    text = "".join(path.read_text() for path in (site / "index.html", site / "app.js"))
    assert not re.search(r"https?://", text)
