# SPDX-License-Identifier: GPL-2.0
"""`paqm-lab laws`: networks, figures of runs, theory and page, on cases worked by hand."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from paqm_lab.catalogue import main, verdict
from paqm_lab.laws import cases, docs, findings, stabmap
from paqm_lab.laws.main import LAWS
from paqm_lab.laws.stabmap import Point
from paqm_lab.multi import case, figures, netscenario, traceflows

Json = dict[str, Any]
ROWS = LAWS.rows()


@pytest.mark.parametrize("scenario", cases.SCENARIOS, ids=lambda one: one.id)
def test_the_language_takes_every_scenario(scenario: cases.Scenario) -> None:
    for law in cases.LAWS:
        variant = cases.queue(law, scenario.told).variant()
        data = scenario.make() | {"variant": [variant]}
        made = netscenario.check(Path("laws.toml"), data).case(variant, 1)
        made.add_flows(Path("/tool"), Path("/build"), Path("/ladder"), 1)
        assert figures.change_times(made)


def test_what_a_scenario_says_reaches_the_network() -> None:
    def made(scenario: str) -> case.Case:
        of = next(one for one in cases.SCENARIOS if one.id == scenario)
        variant = cases.queue("maxmin").variant()
        return netscenario.check(Path("laws.toml"), of.make() | {"variant": [variant]}).case(
            variant, 1)

    mixed = made("mixture")
    mixed.add_flows(Path("/tool"), Path("/build"), None, 1)
    uses = {daemon["host"]: daemon["words"][2] for daemon in mixed.daemons}
    assert uses == {"S": "erf", "U": "thesis-ecf"}
    ways = [queue.words for queue in made("routers").net.queues if "paqm" in queue.words]
    assert [words[-1] for words in ways] == ["300ms", "700ms", "1500ms"]
    lossy = [queue for queue in made("lost").net.queues if "loss" in queue.words]
    assert [(queue.host, queue.device) for queue in lossy] == [("R1", "S")]
    assert made("groups").facts["ladder"] == {"gop": 30, "fps": 30}
    assert made("gfc2").facts["propagation"]["B1"] == pytest.approx(0.065)  # as printed
    assert made("far").facts["propagation"]["a"] == pytest.approx(0.4)


def test_changes_that_leave_time_are_judged() -> None:
    of = next(one for one in cases.SCENARIOS if one.id == "tcp")
    variant = cases.queue("maxmin").variant()
    made = netscenario.check(Path("l"), of.make() | {"variant": [variant]}).case(variant, 1)
    assert figures.change_times(made) == [0.2, 10, 20, 35]  # 0 and 0.2 are one
    shares = figures.share_at(made, 25)
    assert shares["a"] == pytest.approx(8e6 * 1000 / 1014 / 7)


def test_settled() -> None:
    """Windows of 1 s that end at 1, 1.5, ... 4; near is 0.9 to 1.1."""
    t = np.arange(1, 4.01, 0.5)
    for rates, expected in (
        ([1, 1, 1, 1, 1, 1, 1], 0.0),
        ([2, 2, 1, 1, 1, 1, 1], 0.55),  # the last bad window begins at 0.5, plus a bin
        ([1, 1, 1, 2, 1, 1, 1], 1.55),
        ([1, 1, 1, 1, 1, 1, 2], None),
    ):
        found = case.settled_s(t, np.array(rates, float), 1.0, 0.0, 4.0, 0.1)
        assert found == (None if expected is None else pytest.approx(expected))


def test_queueing_is_beyond_the_way() -> None:
    """Steps are 0.1 ms wide, taken at their middles; ways of 10 and 20 ms."""
    ports = {"a": {"waits": [[100, 98], [200, 1]]}, "b": {"waits": [[250, 1]]}, "c": {}}
    run = SimpleNamespace(
        case=SimpleNamespace(facts={"propagation": {"a": 0.01, "b": 0.02, "c": 0}}),
        port=lambda flow: ports[flow.name],
    )
    found = figures.queueing(run, [SimpleNamespace(name=n) for n in ports])  # type: ignore[arg-type]
    assert found == {"p50": pytest.approx(0.05), "p95": pytest.approx(0.05),
                     "p99": pytest.approx(5.05), "max": pytest.approx(10.05)}
    assert figures.queueing(run, [SimpleNamespace(name="c")]) is None  # type: ignore[arg-type]


def test_waits_of_trace_flows_are_as_the_sink_counts_them() -> None:
    assert traceflows._waits(np.array([0.00005, 0.00015, 0.00019])) == [[0, 1], [1, 2]]


def test_deviation_of_what_is_told() -> None:
    """10 for 1 s, then 20 for 3 s: mean 17.5, variance 18.75; what was told before holds."""
    assert stabmap.deviation([[0, 10], [5, 20]], 4, 8) == pytest.approx(100 * 18.75**0.5 / 17.5)
    assert stabmap.deviation([[0, 10], [2, 5]], 4, 8) == 0
    assert stabmap.deviation([[0, 10], [9, 5]], 4, 8) == 0
    assert stabmap.deviation([], 4, 8) == 0


def test_swing_is_of_windows() -> None:
    """Windows of two bins: 3, 3, 3 in the second half."""
    assert stabmap.swing([9, 9, 1, 2, 1, 2], 0.5, 1.0, 1.0) == 0
    assert stabmap.swing([1, 3, 1, 3], 1.0, 1.0, 0.0) == pytest.approx(50)


def test_theory() -> None:
    """Printed: with 0.4 s of lag the fast gains diverge, slow ones do not; spread helps."""
    fast = stabmap.theory(Point("fast", 100, 15, 16, True))
    assert fast["spread"] < 1 < fast["last"] and stabmap.said(fast) == "depends"
    assert stabmap.said(stabmap.theory(Point("robust", 100, 15, 16, True))) == "stable"
    assert stabmap.said(stabmap.theory(Point("fast", 100, 8, 16, True))) == "stable"
    assert stabmap.said(stabmap.theory(Point("fast", 100, 60, 16, False))) == "unstable"


def test_grid() -> None:
    grid = stabmap.grid()
    assert len({point.id for point in grid}) == len(grid) == 2 * 6 * 5 * (4 + 2)
    assert sum(point.in_part for point in grid) == 2 * 3 * 2 * (3 + 1)
    assert all(point.told or point.gop_s > 0.5 for point in grid)
    some = Point("fast", 100, 30, 16, False)
    assert (some.id, some.period_s, some.seconds) == ("map.fast-untold.100.1000.16", 0.6, 30)
    variant = stabmap.queue(some).variant()
    data = stabmap.data(some) | {"variant": [variant]}
    made = netscenario.check(Path("l"), data).case(variant, 1)
    assert made.facts["propagation"]["v.1"] == pytest.approx(0.05)
    assert "profile fast gop 500ms" in variant["qdisc"]


def test_rows_are_run_as_they_are_asked_for() -> None:
    assert set(findings.FINDINGS) - {"all", "map"} <= {one.id for one in cases.SCENARIOS}
    part, whole = main.choose(ROWS, None, False), main.choose(ROWS, None, True)
    assert len(whole) - len(part) == 360 - 48 and len(whole) == len(ROWS)
    assert [row.id for row in main.choose(ROWS, "tcp.*", False)] == [f"tcp.{n}" for n in cases.LAWS]


class Pretended:
    """Accepts any network; answers with figures of the right kind."""

    p: Json = {}

    def scenario(self, file: str, variant: str, seed: int, changes: Json | None = None) -> Json:
        assert changes is not None
        change = {"settled_s": 1.0, "jain": 1.0, "share_least": 0.9, "share_most": 1.1}
        flows = {entry["name"]: {"rate_mbit": 1.0, "count": entry.get("count", 1), "jain": 1.0,
                                 "equal_least": 0.5, "equal_most": 1.5}
                 for entry in changes["flow"]}
        of = {
            "changes": [change, change | {"settled_s": None}], "flows": flows,
            "queueing_ms": {"p95": 1.0, "p99": 2.0, "max": 3.0},
            "links": {"R1-R2": {"dropped_packets": 1, "sent_packets": 99, "use_percent": 90,
                                "period_ms": 600}},
            "media": {"lost_percent": 1.0, "jain": 1.0},
            "offered": {"bin_s": 0.05, "bytes": [100] * 4000, "advice": [[0, 1e6]]},
        }  # fmt: skip
        return {"figures": {variant: of}, "checks": []}


def test_a_row_measures_what_it_is_judged_by() -> None:
    for row in main.choose(ROWS, None, False):
        assert row.run is not None
        assert set(row.run(Pretended(), 1)) == {figure.id for figure in row.figures}, row.id


def test_values_of_a_run() -> None:
    found = ROWS["tcp.maxmin"].run(Pretended(), 1)  # type: ignore[misc]
    assert found["settled"] is None and found["unsettled"] == 1 and found["lost"] == 1
    rest = cases.of_rest({"flows": {
        "v": {"rate_mbit": 1.0, "count": 2},
        "c": {"rate_mbit": 2.0, "count": 3, "jain": 0.9, "equal_least": 0.5, "equal_most": 2.0},
    }}, "c", 14e6)  # six of the twelve that are left
    assert (rest["least"], rest["most"], rest["settled"]) == (0.25, 1.0, None)


def test_page(tmp_path: Path) -> None:
    """What does not hold is marked; a point's verdict stands beside theory's."""
    made = []
    for id_ in ("tcp.maxmin", "tcp.erf", "map.fast.100.267.1", "map.robust.100.500.16"):
        row = ROWS[id_]
        assert row.run is not None
        values = dict(row.run(Pretended(), 1)) | ({"told": 30.0} if "fast" in id_ else {})
        made.append(verdict.of_row(row, [values]) | {"runs": {"reduced-1": {}}})
    data = {"rows": made, "counts": {}}
    text = docs.page(data)
    assert "| default law | **never, 1 of 2** | 1.0 | 2.0 | 3.0 | 1.00 | 1.0000 | 90 to 1" in text
    assert "| law erf | never, 1 of 2 |" in text
    assert "| stable | 2 | 1 | 1 |" in text and "| **30.0** |" in text
    docs.draw(docs.points_of(data), tmp_path / "map.png")
    assert (tmp_path / "map.png").stat().st_size > 5000
