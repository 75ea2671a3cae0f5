# SPDX-License-Identifier: GPL-2.0
"""The published networks: the language takes each, and shares are those printed."""

from pathlib import Path
from typing import Any

import pytest

from paqm_lab import cache, scenario
from paqm_lab.catalogue import networks, rows_dumbbell, rows_gfc2, rows_video
from paqm_lab.catalogue.row import Row
from paqm_lab.multi import figures, netscenario
from paqm_lab.multi.case import MBIT, Case

Json = dict[str, Any]
QUEUES = [networks.paqm("maxmin", "gop 400ms"), networks.thesis("erf", "target-util 0.95"),
          networks.red(1000000)]


def case(data: Json, queue: networks.Queue = QUEUES[0]) -> Case:
    data = data | {"variant": [queue.variant()]}
    return netscenario.check(Path("published.toml"), data).case(queue.variant(), 1)


@pytest.mark.parametrize("queue", QUEUES)
@pytest.mark.parametrize("data", [
    networks.joins(True, 60), networks.many(100, 240, True, 40), networks.video64(64, True),
    networks.office(64, 40), networks.constant(400, 40), networks.mixed(800, 50, 20, 16, 30),
    networks.gfc2_video(30, 15),
])
def test_the_language_takes_every_network(data: Json, queue: networks.Queue) -> None:
    made = case(data, queue)
    made.add_flows(Path("/tool"), Path("/build"), Path("/ladder"), 1)
    assert made.net.routed().links and made.programs


def test_round_trips_are_those_asked_for() -> None:
    for data in (networks.many(30, 240, False, 20), networks.constant(240, 20),
                 networks.mixed(240, 10, 20, 16, 20)):
        by = {tuple(link["between"]): link.get("delay_ms", 0) for link in data["link"]}
        ends = [delay for nodes, delay in by.items() if nodes != ("R1", "R2")]
        assert 2 * (2 * ends[0] + by["R1", "R2"]) == pytest.approx(240)


def test_shares_are_those_of_who_is_there() -> None:
    made = case(networks.joins(True, 100))
    wire = 1514 / 1500 / MBIT
    there = [{name: share * wire for name, share in figures.share_at(made, t).items()}
             for t in (5, 15, 45, 95)]
    assert there[0] == {"a": pytest.approx(20 * wire * MBIT)}  # what one source has at most
    assert there[1] == {"a": pytest.approx(15), "b": pytest.approx(15)}
    assert list(there[2].values()) == [pytest.approx(6)] * 5 and list(there[3]) == ["e"]


def test_video_over_gfc2_has_the_published_shares() -> None:
    made = case(networks.gfc2_video(30, 15))
    wire = 1014 / 1000
    video = {flow.entry: made.shares[0][1][flow.name] for flow in made.flows}
    published = {"A1": 0.5, "F": 0.5, "B2": 0.25, "G": 0.25, "T1": 6, "T2": 12, "T4": 26, "T5": 18}
    for entry, mbit in published.items():
        assert video[entry] * wire / MBIT == pytest.approx(mbit, rel=0.05)
    assert {video[entry] for entry in ("C", "D", "E", "H")} == {1e6}
    assert len(made.flows) == 180


class Pretended:
    """Accepts what a row asks for if it is a network; answers with figures of the right kind."""

    def __init__(self, parameters: Json) -> None:
        self.p = parameters
        self.asked: list[str] = []

    def scenario(self, file: str, variant: str, seed: int, changes: Json | None = None) -> Json:
        self.asked.append(file)
        data = scenario.read(str(cache.REPO / file))[1] | (changes or {})
        netscenario.check(Path(file), data)
        numbers = dict.fromkeys(
            ("count", "rate_mbit", "jain", "share_least", "share_most", "equal_least", "equal_most",
             "delay_ms", "delay_max_ms", "jitter_ms", "lost_percent", "whole_lost_percent",
             "whole_delay_ms", "whole_delay_max_ms", "late_percent"), 1.0,
        )  # fmt: skip
        flows = {entry["name"]: numbers | {"delay_steps_ms": [1.0] * 9} for entry in data["flow"]}
        link = {"use_percent": 1.0, "drop_percent": 1.0}
        links = {"-".join(one["between"]): link for one in data["link"] if "bandwidth" in one}
        of = {"flows": flows, "media": numbers, "all": numbers, "links": links, "settled_s": 1.0,
              "aggregate": {"cv_percent": 1.0, "acf": [1.0] * 3, "drift_percent": 1.0}}
        checks = [{"name": f"{entry['flow']}_{entry['figure']}", "value": 1.0}
                  for entry in data.get("expect", [])]
        return {"figures": {variant: of}, "checks": checks, "wall_seconds": {variant: 1.0}}

    def command(self, words: list[str]) -> Json:
        self.asked.append(words[0])
        if words[0] == "fixed-rate":
            coded = {"psnr_y": 1.0, "psnr_y_i": 1.0, "rate_bps": 1.0}
            return {"clips": {name: {"rasvbr": coded, "own": coded}
                              for name in rows_video.E1_CLIPS}}
        return {"checks": [{"variant": name, "name": figure, "value": 1.0} for name in words[1:]
                           for figure in ("jain", "link_use_least_second")]}


ROWS = [row for file in (rows_dumbbell, rows_video, rows_gfc2) for row in file.ROWS
        if row.run]


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_a_row_measures_what_it_is_judged_by(row: Row, full: bool) -> None:
    pretended = Pretended(row.parameters(full))
    assert row.run is not None
    values = row.run(pretended, 1)
    judged = {figure.id for figure in row.figures if figure.band()}
    assert judged <= set(values) <= {figure.id for figure in row.figures}
    assert pretended.asked
