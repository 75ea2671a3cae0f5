# SPDX-License-Identifier: GPL-2.0
"""`paqm-lab sfu`: the scenario is a network, figures of made-up viewers, checks, the page."""

import json
import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from paqm_lab import cache, sfu, sfu_case, sfu_docs, sfu_layers
from paqm_lab.errors import LabError
from paqm_lab.multi import netscenario


def test_scenarios_are_networks() -> None:
    for system in sfu_case.SYSTEMS:
        data = sfu_case.scenario(system)
        made = netscenario.check(Path("sfu"), data).case(data["variant"][0], 1)
        assert len(made.flows) == sfu_case.TCP
        # the publisher's way to the server is not the uplink
        assert made.facts["paths"]["tcp.1"] == ["R1-R2"]


def test_steps_are_within_what_an_estimator_reaches() -> None:
    rates = [kbits for kbits, _, _ in sfu_layers.LAYERS]
    assert all(high / low < 1.5 for low, high in zip(rates, rates[1:], strict=False))


def test_steps_of_an_encoder_that_is_told_its_rate() -> None:
    rates = [kbits for kbits, _, _ in sfu_layers.steps()]
    assert all(high / low < 1.08 for low, high in zip(rates, rates[1:], strict=False))
    assert sfu_layers.LAYERS[0][0] == rates[0] and rates[-1] <= sfu_layers.LAYERS[-1][0]
    sizes = {kbits: size for kbits, *size in sfu_layers.steps()}
    assert sizes[295] == [320, 180] and sizes[316] == [480, 270] and sizes[665] == [640, 360]


def test_runs_beside_each_other_make_the_layers_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first `make sfu` begins with two runs that need them."""
    there = cache.cache_dir()
    (tmp_path / "paqm").mkdir()
    for file in ("clip.y4m", "clip.json"):
        (tmp_path / "paqm" / file).symlink_to(there / file)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sfu_layers, "LAYERS", [(60, 80, 46)])
    said: list[str] = []
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: sfu_layers.prepare(said.append), range(2))
    assert first == second and [file.name for file in first.iterdir()] == ["l1.ivf"]
    assert said == ["layers: 60 kbit/s, 80x46"]


def test_ivf() -> None:
    data = sfu_layers.ivf([b"first", b"2nd"], 320, 180, 24)
    assert data[:4] == b"DKIF" and data[8:12] == b"H264" and len(data) == 32 + 12 + 5 + 12 + 3
    assert struct.unpack_from("<IQ", data, 32 + 12 + 5) == (3, 1)


def viewer(**more: Any) -> dict[str, Any]:
    return {"first_picture_s": 0.5, "pictures": 800, "lost_packets": 0, "freezes": [],
            "kbit_by_second": [200.0] * 40} | more  # fmt: skip


def test_viewers() -> None:
    early = {"at_s": sfu_case.JUDGED - 3, "s": 1.0}
    late = [{"at_s": 20.0, "s": 0.5}, {"at_s": 30.0, "s": 0.25}]
    found = sfu.viewers([viewer(), viewer(freezes=[early, *late], lost_packets=2,
                                          kbit_by_second=[100.0] * 40, first_picture_s=-1)])
    assert (found["stalls"], found["stalled_s"], found["stalled_viewers"]) == (2, 0.75, 1)
    assert (found["kbit_mean"], found["kbit_least"], found["lost_for_good"]) == (150, 100, 2)
    assert found["first_picture_worst_s"] == sfu_case.DURATION, "a viewer saw nothing"


def test_who_sees_nothing_is_no_viewer_without_stalls() -> None:
    black = [viewer(first_picture_s=-1, pictures=0)] * sfu_case.VIEWERS
    ours = FIGURES | sfu.viewers(black)
    assert ours["stalls"] == ours["stalled_viewers"] == sfu_case.VIEWERS
    assert ours["stalled_s"] == sfu_case.VIEWERS * (sfu_case.DURATION - sfu_case.JUDGED)
    theirs = FIGURES | {"stalls": 22, "stalled_s": 5.5}
    assert not all(row["pass"] for row in sfu.judge({"paqm": ours, "fq_codel-own": theirs}, 1))


FIGURES = {key: 1.0 for key, _, _ in sfu_docs.ROWS} | {"viewers": 50, "lost_in_queue": 0}


@pytest.mark.parametrize(("ours", "theirs", "good"), [
    ({"stalls": 4, "stalled_s": 1.0}, {"stalls": 8, "stalled_s": 2.0}, True),
    ({"stalls": 5, "stalled_s": 1.0}, {"stalls": 8, "stalled_s": 2.0}, False),
    ({"stalls": 4, "stalled_s": 1.0, "lost_in_queue": 1}, {"stalls": 8, "stalled_s": 2.0}, False),
    ({"stalls": 0, "stalled_s": 0.0, "viewers": 49}, {"stalls": 8, "stalled_s": 2.0}, False),
])  # fmt: skip
def test_checks(ours: dict[str, Any], theirs: dict[str, Any], good: bool) -> None:
    rows = sfu.judge({"paqm": FIGURES | ours, "fq_codel-own": FIGURES | theirs}, 1)
    assert len(rows) == 4 and all(row["pass"] for row in rows) == good
    assert sfu.judge({"paqm": FIGURES | ours}, 1) == [], "nothing to compare with"


def test_programs_of_other_sources_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A result says which sources it is of, and is kept by that."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    home = sfu_case.home()
    home.mkdir()
    for name in ("paqm-sfu-pion", "paqm-sfu-load"):
        (home / name).touch()
    with pytest.raises(LabError, match="not of these sources"):
        sfu_case.programs(["paqm"])
    (home / sfu_case.STAMP).write_text(f"{sfu_case.sources()}\n")
    sfu_case.programs(["paqm", "fq_codel-own"])  # without those of other servers
    with pytest.raises(LabError, match="paqm-livekit is not built"):
        sfu_case.programs(["paqm", "livekit"])
    monkeypatch.setattr(sfu_case, "SOURCES", sfu_case.SOURCES[:-1])
    with pytest.raises(LabError, match="not of these sources"):
        sfu_case.programs(["paqm"])


def test_page_is_of_the_landed_figures() -> None:
    text = sfu_docs.DATA.read_text()
    assert sfu_docs.PAGE.read_text() == sfu_docs.page(json.loads(text))
