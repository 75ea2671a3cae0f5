# SPDX-License-Identifier: GPL-2.0
"""`paqm-lab rmcat`: cases are networks, shares and figures of made-up packets, the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paqm_lab import linktrace, rmcat, rmcat_cases, rmcat_docs, rmcat_judge, suite
from paqm_lab.multi import netscenario
from paqm_lab.multi.case import Case
from paqm_lab.rmcat_judge import Part, Sent

Json = dict[str, Any]
KNOWN = rmcat_cases.known()
MADE = {"version": "1"}


def network(name: str, system: str = "paqm") -> tuple[Case, Json]:
    data = KNOWN[name].point(system, 1).data
    return netscenario.check(Path(name), data).case(data["variant"][0], 1), data


def test_every_case_is_a_good_network() -> None:
    for case in rmcat_cases.CASES:
        for system in case.systems:
            made, _ = network(case.id, system)
            assert made.live() and all(made.facts["paths"].values())
        assert case.expects.endswith(".") and case.bounds


def test_changes_are_told_to_the_queue_of_each_system() -> None:
    words = {
        system: [" ".join(a["words"]) for a in network("5.1", system)[0].actions if a["t"] == 60]
        for system in ("paqm", "nada")
    }
    assert words["paqm"] == [
        "tc qdisc change dev wR1R2 root handle 10: paqm bandwidth 600kbit feedback icmp router-id 1"
    ]
    shaped, queue = words["nada"]
    assert "class change dev wR1R2 parent 1: classid 1:1 htb rate 600000bit" in shaped
    # 300 ms at 600 kbit/s
    assert queue == "tc qdisc change dev wR1R2 parent 1:1 handle 10: bfifo limit 22500"


def test_a_traced_link_is_measured_by_paqm_only() -> None:
    made, data = network("W4.1a")
    queues = [" ".join(queue.words) for queue in made.net.queues]
    assert any("paqm bandwidth 1000kbit" in text for text in queues)
    assert any("paqm bandwidth auto" in text for text in queues)
    assert rmcat_judge.capacities(data) == [(0.0, {"R1-R2": 1e6})]


def test_shares_follow_capacity_ceilings_and_pauses() -> None:
    made, data = network("5.1")
    cut = rmcat_judge.parts(made, rmcat_judge.capacities(data), "")
    assert [(part.begin, part.shares["v1"]) for part in cut] == [
        (0, 1e6), (40, 1.5e6), (60, 0.6e6), (80, 1e6)]  # fmt: skip
    made, data = network("5.8")
    cut = rmcat_judge.parts(made, rmcat_judge.capacities(data), "")
    third = pytest.approx(3.5e6 / 3)
    assert [part.shares for part in cut] == [
        {"v1": third, "v2": third, "v3": third},
        {"v1": 1.5e6, "v3": 1.5e6},
        {"v1": third, "v2": third, "v3": third},
    ]
    made, data = network("5.3")
    cut = rmcat_judge.parts(made, rmcat_judge.capacities(data), "")
    at_45 = next(part for part in cut if part.begin <= 45 < part.end)
    assert at_45.shares == {"v1": 0.5e6, "w1": 0.8e6}


def test_what_a_trace_carries_is_the_share() -> None:
    made, data = network("C3.1")
    cut = rmcat_judge.parts(made, rmcat_judge.capacities(data), "R1-R2")
    peak = next(part for part in cut if part.begin == 20)
    mean = linktrace.mean(made.facts["trace"][25000:40000])
    assert len(peak.shares) == 7 and sum(peak.shares.values()) == pytest.approx(mean)


def steady(begin: float, end: float, bits: float, wait: float = 0.0) -> Sent:
    """Packets of 1000 bytes at a rate, 50 ms on their way and `wait` in a queue."""
    t = np.arange(begin, end, 8000 / bits)
    return Sent(t, t + 0.05 + wait, np.full(len(t), 1000))


def both(first: Sent, second: Sent) -> Sent:
    return Sent(
        np.concatenate([first.t, second.t]),
        np.concatenate([first.arrived, second.arrived]),
        np.concatenate([first.size, second.size]),
    )


def test_rise_and_fall() -> None:
    made, data = network("5.1")
    steps = rmcat_judge.capacities(data)
    cut = rmcat_judge.parts(made, steps, "")
    # 1 Mbit/s to 43 s, then 1.5; from 60 on a queue of 200 ms for 3 s
    flow = both(both(steady(0, 43, 1e6), steady(43, 60, 1.5e6)),
                both(steady(60, 63, 0.6e6, wait=0.2), steady(63, 99, 1e6)))  # fmt: skip
    rise = rmcat_judge._rises(made, {"v1": flow}, steps, cut)
    fall = rmcat_judge._falls(made, {"v1": flow}, steps, cut)
    # 80 % of 1.5 Mbit/s in the mean of a second: 0.4 s after it rises
    assert rise == pytest.approx(3.45, abs=0.1)
    assert fall == pytest.approx(3.0, abs=0.05)
    never = rmcat_judge._rises(made, {"v1": steady(0, 99, 0.4e6)}, steps, cut)
    assert never == 20  # of the interval from 40 s
    silent = rmcat_judge._falls(made, {"v1": steady(0, 60, 1e6)}, steps, cut)
    assert silent == 20  # of that from 60 s


def test_shares_leave_settling_out() -> None:
    cut = [Part(0, 10, {"a": 1e6, "b": 1e6}), Part(10, 16, {"a": 1e6})]
    flow = both(steady(0, 5, 3e6), steady(5, 16, 0.9e6))
    assert rmcat_judge._percents(flow, "a", cut) == [pytest.approx(91, abs=2)]
    other = steady(0, 10, 0.3e6)
    assert rmcat_judge._jain({"a": flow, "b": other}, cut) == pytest.approx(0.8, abs=0.02)


def found(**figures: float | None) -> Json:
    names = [bound.figure for case in rmcat_cases.CASES for bound in case.bounds]
    return {name: 1e-9 for name in names} | figures


def test_rows_judge_all_systems_by_the_same_bounds() -> None:
    case = KNOWN["5.6"]
    good = found(share_least_percent=51, tcp_share_percent=50)
    rows = rmcat.rows_of(case, "paqm", good, MADE)
    assert [row["pass"] for row in rows] == [True] * 4 and rows[0]["required"]
    worse = good | {"share_least_percent": None, "loss_percent": 1.5}
    bad = rmcat.rows_of(case, "nada", worse, MADE)
    assert [row["verdict"] for row in bad] == [
        "does not hold", "holds", "holds", "does not hold"]  # fmt: skip
    assert [row["limit"] for row in rows] == [row["limit"] for row in bad]


def test_result_keeps_what_was_landed_and_the_page_shows_it(tmp_path: Path) -> None:
    case = KNOWN["5.1"]
    rows = rmcat.rows_of(case, "nada", found(delay_p95_ms=250.0), MADE)
    earlier = {"rows": rows, "runs": {"5.1 nada": {}}, "versions": [{"paqm": "1"}]}
    home = case.point("paqm", 1).home(tmp_path)
    home.mkdir(parents=True)
    told = {"figures": found(share_least_percent=95.0), "versions": {"paqm": "2"}}
    (home / "result.json").write_text(json.dumps(told))
    assert rmcat.result(tmp_path, 1, earlier)["checks"] == []  # a run that has not ended
    stamp = suite.stamp(case.point("paqm", 1), "programs", False)
    (home / "stamp.json").write_text(json.dumps(stamp | {"scenario": "of before"}))
    assert rmcat.result(tmp_path, 1, earlier)["checks"] == []  # the case was another one
    (home / "stamp.json").write_text(json.dumps(stamp))
    data = rmcat.result(tmp_path, 1, earlier)
    assert [version["paqm"] for version in data["versions"]] == ["1", "2"]
    assert {row["variant"] for row in data["rows"]} == {"paqm", "nada"}
    assert rmcat.result(tmp_path / "none", 1, data)["rows"] == data["rows"]
    assert "5.1 auto" in data["missing"] and "5.1 nada" not in data["missing"]
    assert len(data["checks"]) == 5 and all(check["variant"] == "5.1" for check in data["checks"])
    text = rmcat_docs.page(data)
    assert "| `delay_p95_ms` | at most 100 ms: " in text and "| **250** |" in text
    assert "5 of 5 figures" in text
    assert "250 !" in rmcat.table(data)


def test_the_page_is_made_of_the_data() -> None:
    data = json.loads(rmcat_docs.DATA.read_text())
    assert rmcat_docs.PAGE.read_text() == rmcat_docs.page(data)
