# SPDX-License-Identifier: GPL-2.0
"""`paqm-lab regimes`: the grid, limits, settling, and made-up points that do not hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paqm_lab import regimes_cases, regimes_docs, regimes_judge, rundata, scenario
from paqm_lab.regimes_cases import Place

Json = dict[str, Any]
PLACE = Place(4, 150, 2, True)


def test_every_point_is_a_good_scenario() -> None:
    places = regimes_cases.grid()
    assert len({(place.name, place.variant) for place in places}) == len(places) == 264
    for place in places:
        assert place.share >= regimes_cases.LEAST_SHARE
        made = scenario.check(Path(place.name), place.point(1).data)
        resolved = made.resolve(made.variants[0], 1, 720)
        assert all(flow["rate_min"] <= flow["rate_max"] for flow in resolved["media"])
        assert len(resolved["elastic"]) == place.tcp


def test_rtt_auto_is_for_far_points() -> None:
    far = [place for place in regimes_cases.grid() if place.variant == "rtt-auto"]
    assert {place.rtt_ms for place in far} == {150, 300, 600}
    assert PLACE.point(1).data["variant"][0]["qdisc"].endswith("feedback icmp")
    auto = Place(4, 150, 2, True, "rtt-auto").point(1).data["variant"][0]
    assert auto["qdisc"].endswith("feedback icmp rtt auto")


def test_one_stream_joins_late() -> None:
    starts = [flow["start"] for flow in Place(4, 40, 6, False).point(1).data["media"]]
    assert starts[-1] == 14 and max(starts[:-1]) <= 0.5 and len(set(starts)) == 6
    assert [flow["start"] for flow in Place(4, 40, 1, False).point(1).data["media"]][0] < 0.5


def test_limits_grow_with_packet_time_and_round_trip() -> None:
    assert regimes_judge.limits(Place(1, 300, 2, True)) == {
        "p95_ms": pytest.approx(33),
        "p99_ms": pytest.approx(68),
        "settle_s": pytest.approx(3.2),
    }


AT = np.arange(241) / 10


@pytest.mark.parametrize(
    ("low", "late", "allowed", "took"),
    [
        (0.9, 1.2, 0.0, 3.0),  # within 10 % of what is handed out, 96 % of the share
        (0.8, 1.0, 0.0, None),  # too little to the end
        (0.8, 1.0, 0.96, 3.0),  # its pictures need no more
        (1.0, 1.3, 2.0, None),  # more than is fair is never good
    ],
)
def test_settling(low: float, late: float, allowed: float, took: float | None) -> None:
    sent = np.where(AT < 13, 2.0, low)
    sent[AT > 20] = late if late > 1.2 else low
    none = np.zeros(241)
    found = regimes_judge.settle_time(AT, sent, np.full(241, allowed), none, 1.0, 10.0, 24.0)
    assert found == (None if took is None else pytest.approx(took))


def test_what_others_leave_is_anybodys() -> None:
    columns = {
        "share_f1": np.array([1.0, 1.0, 1.0, 1.0]),
        "share_f2": np.array([np.nan, 1.0, 1.0, 1.0]),
        "share_TCP": np.array([np.nan, 2.0, 2.0, 2.0]),
        "f1": np.array([1.0, 1.0, 1.0, 1.2]),
        "f2": np.array([0.0, 1.1, 0.1, 0.8]),
        "TCP": np.array([0.0, 1.5, 2.5, 2.0]),
    }
    table = rundata.Table(Path("rates.csv"), columns, 4)
    allowed = {"f1": np.full(4, 1.5), "f2": np.array([0.0, 1.0, 0.2, 1.5])}
    left = regimes_judge.left_by_others(table, allowed, "f1")
    # nobody else; half of what TCP leaves; what f2 may have and does not use; the same
    assert left == pytest.approx([0, 0.25, 0.1, 0.2])
    assert regimes_judge.left_by_others(table, allowed, "f2") == pytest.approx([0, 0.25, 0, 0])
    sent, may = np.full(241, 1.3), np.zeros(241)
    for beyond, took in ((0.2, 0.0), (0.1, None)):
        left = np.full(241, beyond)
        assert regimes_judge.settle_time(AT, sent, may, left, 1.0, 10.0, 24.0) == took


def test_what_an_encoder_may_send_is_counted_as_the_link_does() -> None:
    columns = {
        "t_ns": np.arange(240) * 1e8,
        "wire_bytes": np.full(240, 2000.0),
        "packets": np.full(240, 2.0),
        "allowance_bps": np.where(np.arange(240) < 100, 1e6, 2e6),
    }
    table = rundata.Table(Path("frames.csv"), columns, 240)
    got = regimes_judge.allowance(table, 0, np.array([5.0, 10.45, 20.0]))
    assert got == pytest.approx([1.014, 1.507, 2.028], abs=0.06)


def row(place: Place = PLACE, late: int = 0, took: float | None = 1.0, **delay: float) -> Json:
    """A made-up point."""
    variant = {
        "figures": {
            "media_sojourn_ms": {"p50": 1.0, "p95": 5.0, "p99": 9.0, "max": 20.0} | delay,
            "media_loss": {"packets": 1000, "lost": late, "latest_s": 0.0},
            "elastic_share_percent": {"mean": 100.0},
            "link_use_percent": {"whole": 95.0},
        },
        "flows": {"f1": {"segments": [{"mean_mbit": 0.96, "share_mbit": 1.0}]}},
    }
    return regimes_judge.figures(place, variant, late, [took, 0.5])


def test_each_fault_puts_a_point_outside() -> None:
    assert row()["outside"] == []
    assert row(p95=10.6)["outside"] == ["p95"]
    assert row(p99=23.1)["outside"] == ["p99"]
    assert row(took=2.7)["outside"] == ["settling"]
    assert row(took=None)["outside"] == ["settling"]
    assert row(late=1)["outside"] == ["loss"]


def test_95_percent_of_the_points_must_hold() -> None:
    rows = [row() for _ in range(19)] + [row(late=1)]
    assert regimes_judge.checks(rows)[0]["pass"]
    assert not regimes_judge.checks([*rows, row(p95=99)])[0]["pass"]


def test_losses_are_late_only_after_settling(tmp_path: Path) -> None:
    head = "t,flow,class,since_change_s\n"
    lines = "9,f1,media,1.2\n12,f1,media,3.9\n13,TCP-1,elastic,5\n"
    (tmp_path / "loss.csv").write_text(head + lines)
    assert regimes_judge.late_losses(tmp_path, 2.6) == 1


def test_page_and_map(tmp_path: Path) -> None:
    far = Place(4, 300, 2, True, "rtt-auto")
    rows = [row(), row(far, late=3), row(far, took=None)]
    for one, version in zip(rows, ("first", "second", "second"), strict=True):
        one["version"] = version
    data: Json = {
        "points": rows,
        "checks": regimes_judge.checks(rows),
        "versions": [{"paqm": "first", "kernel": "6"}, {"paqm": "second", "kernel": "7"}],
        "grid": {"points": 264, "run": 3, "missing": []},
    }
    text = regimes_docs.page(data)
    assert "3 of the 264 points" in text and "**0 %**" in text and "**never (≤ 3.2)**" in text
    assert "second (2 points), first (1 points); the newest on Linux 7." in text
    regimes_docs.draw(data, tmp_path / "img" / "map.png")
    first = (tmp_path / "img" / "map.png").read_bytes()
    regimes_docs.draw(data, tmp_path / "img" / "map.png")
    assert (tmp_path / "img" / "map.png").read_bytes() == first


def test_what_was_run_before_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = [
        (place, place.point(1)) for place in (PLACE, Place(4, 300, 2, True), Place(4, 5, 2, True))
    ]
    other = row(here[2][0]) | {"scenario": "as it was before"}
    kept = row(here[1][0]) | {"version": "old"}
    before = [{"paqm": "gone"}, {"paqm": "old"}]
    old = {"points": [row(late=1), kept, other], "versions": before}
    anew = row() | {"versions": {"paqm": "new"}}
    monkeypatch.setattr(
        regimes_judge, "load", lambda place, *_: dict(anew) if place is PLACE else None
    )
    data = regimes_judge.result(here, tmp_path, 1, old)
    assert [point["lost_late"] for point in data["points"]] == [0, 0]
    assert [one["paqm"] for one in data["versions"]] == ["old", "new"]
    assert data["grid"] == {"points": 3, "run": 2, "missing": ["4m-5-2-tcp paqm"]}


def test_the_page_is_made_from_its_data() -> None:
    if regimes_docs.DATA.exists():
        data = json.loads(regimes_docs.DATA.read_text())
        assert regimes_docs.PAGE.read_text() == regimes_docs.page(data)
