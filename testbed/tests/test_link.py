# SPDX-License-Identifier: GPL-2.0
"""Links whose rate varies: the traces, the figures over them, the checks against a steady link."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from synthetic import Faults, write_run

from paqm_lab import (
    analysis,
    checks,
    follow,
    linkbound,
    linkfigures,
    linktrace,
    scenario,
    topology,
)
from paqm_lab.errors import LabError
from paqm_lab.topology import Network

LINK = (scenario.SCENARIOS / "link-lte.toml").read_text()
BESTEFFORT = "cake bandwidth {bottleneck} besteffort\"\nfollow"


@pytest.mark.parametrize("kind", linktrace.KINDS)
def test_trace_is_seeded_and_survives_its_file(kind: str, tmp_path: Path) -> None:
    trace = linktrace.make(kind, 20, 1)
    assert len(trace) == 20000
    assert np.array_equal(trace, linktrace.make(kind, 20, 1))
    assert not np.array_equal(trace, linktrace.make(kind, 20, 2))
    path = tmp_path / "trace.txt"
    linktrace.write(trace, path)
    again = linktrace.read(path)
    assert len(again) == len(trace)
    # mahimahi's format has no time 0: what lies there is the opportunity that ends the trace
    assert np.array_equal(again[1:], trace[1:])
    assert again[0] == 1


def test_the_perfect_rate_is_that_of_the_trace(tmp_path: Path) -> None:
    """The process that tells it runs in a guest, which has no numpy."""
    without = "import sys; sys.modules['numpy'] = None; import paqm_lab.follow"
    subprocess.run([sys.executable, "-c", without], check=True)
    trace = linktrace.make("lte", 20, 2)
    linktrace.write(trace, tmp_path / "trace.txt")
    trace = linktrace.read(tmp_path / "trace.txt")
    least = linktrace.FLOOR * linktrace.mean(trace)
    told = follow.rates((tmp_path / "trace.txt").read_text(), 0.05)
    assert told == pytest.approx(np.maximum(least, linktrace.rates(trace, 0.05)))
    nothing = follow.rates("1\n1000\n", 0.1)[5]  # two opportunities in a second
    assert nothing == pytest.approx(linktrace.FLOOR * 2 * linktrace.OPPORTUNITY * 8)


def test_steady_link_has_the_same_mean_and_no_gaps() -> None:
    trace = linktrace.make("lte", 20, 1)
    steady = linktrace.steady_like(trace)
    assert abs(linktrace.mean(steady) / linktrace.mean(trace) - 1) < 1e-3
    rates = linktrace.rates(steady, 0.1)
    assert rates.std() < 0.02 * rates.mean()
    assert linktrace.rates(trace, 0.1).std() > 0.1 * rates.mean()


def test_a_link_in_steps() -> None:
    trace = linktrace.make("steps", 9, 1)
    assert len(trace) == 9000
    assert linktrace.rates(trace, 3).tolist() == pytest.approx([4e6, 2e6, 4e6], rel=1e-2)
    assert linktrace.rates(trace, 0.5).std() > 0


def test_low_rate_is_never_nothing() -> None:
    trace = np.zeros(10000, np.int64)
    trace[9000:] = 10
    assert linktrace.low(trace) == pytest.approx(linktrace.FLOOR * linktrace.mean(trace))


def test_scenario_takes_its_rates_from_the_trace() -> None:
    chosen = scenario.load("link-lte")
    trace = linktrace.make("lte", chosen.duration, 3)
    variants = {v["name"]: chosen.resolve(v, 3, 100) for v in chosen.variants}
    mean = round(linktrace.mean(trace))
    assert {v["path"]["bottleneck"] for v in variants.values()} == {mean}
    assert f"{mean}bit" in variants["cake-mean"]["variant"]["qdisc"]
    assert f"{round(linktrace.low(trace))}bit" in variants["cake-low"]["variant"]["qdisc"]
    assert variants["perfect"]["variant"]["follow"] and not variants["auto"]["variant"]["follow"]
    net = Network()
    topology.add_bottleneck(net, variants["auto"]["variant"], mean, True)
    assert net.queues[0].words[-1] == "labtrace"
    assert net.queues[1].words[-5:] == ("paqm", "bandwidth", "auto", "feedback", "icmp")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('link = "lte"', 'link = "dsl"', r"path\.link: 'dsl': expected one of lte, wifi"),
        ('link = "lte"\n', "", r"steady and follow need path\.link"),
        (BESTEFFORT, "fq\"\nfollow", r"a qdisc paqm or cake"),
    ],
)
def test_refusals(tmp_path: Path, old: str, new: str, expected: str) -> None:
    assert old in LINK
    path = tmp_path / "case.toml"
    path.write_text(LINK.replace(old, new))
    with pytest.raises(LabError, match=expected):
        scenario.load(str(path))


def test_tracking_error() -> None:
    trace = np.full(10000, 1, np.int64)
    trace[5000:] = 2
    rate = linktrace.OPPORTUNITY * 8000.0
    times = np.array([3.0, 4.0, 5.0, 6.0, 7.0])
    found = linkfigures.tracking(times, np.array([1, 1, 1, 2.2, 2.2]) * rate, trace)
    assert found is not None
    assert found["mean_percent"] == pytest.approx(4.0)
    assert found["p90_abs_percent"] == pytest.approx(10.0)
    assert linkfigures.tracking(np.array([0.1]), np.array([rate]), trace) is None


def test_access_time() -> None:
    trace = np.zeros(1000, np.int64)
    trace[10::10] = 1
    found = linkfigures.access(trace)
    assert 5 <= found["p50"] <= 6
    assert found["p99"] == 10


def test_bound_serves_like_the_lab_link() -> None:
    trace = np.zeros(100, np.int64)
    trace[10::10] = 2
    # alone: to the next opportunity; three at once: two of 1514 bytes in one, then wait
    packets = [(3.0, 100), (12.5, 1514), (12.5, 1514), (12.5, 1514)]
    assert linkbound.serve(trace, packets, 1.0) == [7.0, 7.5, 7.5, 17.5]
    # a TCP packet is under way already, another fills what is left; media goes before the rest
    assert linkbound.serve(trace, packets, 0.0) == [7.0, 7.5, 17.5, 17.5]
    # what finds no packet is lost, and what is left of an opportunity goes with an empty queue
    assert linkbound.serve(trace, [(11.0, 200), (21.0, 1514), (21.0, 1514)], 1.0) == [9.0, 9.0, 9.0]


def test_bound_by_what_is_known() -> None:
    trace = linktrace.make("wifi", linkbound.DURATION, 1)
    rows = {(k, p): linkbound.bound(trace, k, p) for k, p in (("nothing", 0), ("foreseen", 80))}
    past, careful = linkbound.bound(trace, "past", 90), linkbound.bound(trace, "past", 60)
    thin, foreseen = rows["nothing", 0], rows["foreseen", 80]
    assert thin.p95_ms == pytest.approx(linkfigures.access(trace)["p95"], abs=1.5)
    assert foreseen.p95_ms < past.p95_ms
    assert careful.p95_ms < past.p95_ms
    assert 85 < foreseen.use_percent < 95
    # on a steady link an oracle has next to nothing to wait for
    steady = linktrace.steady_like(trace)
    assert linkbound.bound(steady, "past", 96).p95_ms < 5


def _write(tmp_path: Path, variant: str, wait: float) -> None:
    write_run(tmp_path, Faults(wait=wait), variant)
    home = tmp_path / variant
    record = json.loads((home / "run.json").read_text())
    record["link"] = "lte"
    (home / "run.json").write_text(json.dumps(record))
    trace = linktrace.steady_like(np.full(round(record["duration"] * 1000), 1, np.int64))
    linktrace.write(trace, home / "trace.txt")


def test_checks_compare_with_the_steady_link(tmp_path: Path) -> None:
    _write(tmp_path, "steady", 0.002)
    _write(tmp_path, "auto", 0.003)
    result = analysis.analyse(tmp_path, progress=lambda _: None)
    assert result["link"] == "lte"
    by_name = {check["name"]: check for check in result["checks"]}
    assert by_name["media_sojourn_p95_against_steady"]["value"] == pytest.approx(1.5, abs=0.01)
    assert by_name["media_sojourn_p95_against_steady"]["pass"]
    # nothing was decoded in these runs: what was not measured fails
    assert not by_name["capture_to_picture_p95_against_steady"]["pass"]
    link = result["variants"][0]["figures"]["link"]
    assert 0 < link["media_part_percent"] < 100
    assert link["capacity_error"] is None

    shutil.rmtree(tmp_path / "auto")
    _write(tmp_path, "auto", 0.0041)
    (tmp_path / "result.json").unlink()
    result = analysis.analyse(tmp_path, progress=lambda _: None)
    failed = {check["name"] for check in result["checks"] if not check["pass"]}
    assert "media_sojourn_p95_against_steady" in failed


def test_without_a_steady_run_nothing_is_checked(tmp_path: Path) -> None:
    _write(tmp_path, "auto", 0.002)
    assert analysis.analyse(tmp_path, progress=lambda _: None)["checks"] == []
    with pytest.raises(LabError, match="nothing was checked"):
        checks.print_table(tmp_path)
