# SPDX-License-Identifier: GPL-2.0
"""`paqm-lab rivals`: networks and queues, figures of runs, and page, on cases worked by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from paqm_lab.catalogue import verdict
from paqm_lab.multi import figures, netscenario
from paqm_lab.rivals import cases, docs, findings
from paqm_lab.rivals.main import RIVALS

Json = dict[str, Any]
ROWS = RIVALS.rows()


@pytest.mark.parametrize("scenario", cases.SCENARIOS, ids=lambda one: one.id)
def test_the_language_takes_every_scenario(scenario: cases.Scenario) -> None:
    for rival in scenario.rivals:
        variant = cases.queue(rival, scenario).variant()
        data = scenario.make() | {"variant": [variant]}
        made = netscenario.check(Path("rivals.toml"), data).case(variant, 1)
        made.add_flows(Path("/tool"), Path("/build"), Path("/ladder"), 1)
        assert figures.change_times(made)


def test_every_rival_has_its_queue() -> None:
    dumbbell = next(one for one in cases.SCENARIOS if one.id == "dumbbell")
    lot = next(one for one in cases.SCENARIOS if one.id == "lot")
    words = {rival: cases.queue(rival, dumbbell).qdisc for rival in cases.RIVALS}
    assert len(set(words.values())) == len(words)
    assert "law acp noisolate media-target 10ms gop 400ms rtt 40ms" in words["acp"]
    assert "period 168ms rtt 112ms" in cases.queue("rcp", lot).qdisc
    assert "law" not in words["maxmin"] and "gop 400ms" in words["maxmin"]
    assert set(findings.FINDINGS) - {"all"} <= {one.id for one in cases.SCENARIOS}


def test_networks_are_narrower_for_video() -> None:
    links = [link["bandwidth"] for link in cases.as_video("gfc2", 8, 24)["link"]
             if "bandwidth" in link]
    assert links == ["2500000bit", "5000000bit", "2500000bit", "7500000bit", "7500000bit",
                     "2500000bit"]


class Pretended:
    """Accepts any network; answers with figures of the right kind."""

    p: Json = {}

    def scenario(self, file: str, variant: str, seed: int, changes: Json | None = None) -> Json:
        assert changes is not None
        change = {"settled_s": 1.0, "jain": 0.98, "share_least": 0.9, "share_most": 1.1}
        flows = {entry["name"]: {"rate_mbit": 0.5, "count": entry.get("count", 1)}
                 for entry in changes["flow"]}
        of = {
            "changes": [change, change | {"settled_s": None}], "flows": flows,
            "queueing_ms": {"p95": 1.0, "p99": 2.0, "max": 3.0},
            "links": {"R1-R2": {"dropped_packets": 1, "sent_packets": 99, "use_percent": 90}},
        }  # fmt: skip
        return {"figures": {variant: of}, "checks": []}


def test_a_row_measures_what_it_is_judged_by() -> None:
    for row in ROWS.values():
        assert row.run is not None
        found = row.run(Pretended(), 1)
        assert set(found) == {figure.id for figure in row.figures}, row.id
        assert found["tcp"] == (2.0 if row.id.startswith("tcp.") else None)


def test_page() -> None:
    """What is asked for and missed is marked."""
    made = []
    for id_ in ("mass.acp", "mass.vcp", "tcp.dcbt"):
        row = ROWS[id_]
        assert row.run is not None
        values = dict(row.run(Pretended(), 1))
        made.append(verdict.of_row(row, [values]) | {"runs": {"reduced-1": {}}})
    text = docs.page({"rows": made})
    row = "never, 1 of 2 | 1.0 | 2.0 | 3.0 | 1.00 |"
    assert f"| ACP | {row} **0.980** | 90 to 110 | 90.0 |\n" in text
    assert f"| VCP | {row} 0.980 | 90 to 110 | 90.0 |\n" in text
    assert f"| D-CBT | {row} 0.980 | 90 to 110 | 90.0 | 2.00 |\n" in text
    assert "Of the 1 of which equal rates are asked, 0 have them." in text
