# SPDX-License-Identifier: GPL-2.0
"""Mixed senders: schema and resolution of the loads, cases, per-flow figures, resuming."""

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import synthetic
from test_packets import TCP_HOST

from paqm_lab import (
    analysis,
    cache,
    metrics,
    mixed_cases,
    perflow,
    rundata,
    scenario,
    senders,
    suite,
)
from paqm_lab.errors import LabError

BASE: dict[str, Any] = {
    "name": "case",
    "title": "Loads",
    "duration": 20,
    "seed": 1,
    "path": {"bottleneck": "8mbit", "rtt_ms": 40},
    "clip": suite.CLIP,
    "media": [
        {"name": "a", "start": 0, "stop": 20, "rate_max": "3mbit", "rate_min": "200kbit"},
        {
            "name": "b",
            "start": 0,
            "stop": 20,
            "rate_max": "3mbit",
            "rate_min": "200kbit",
            "sender": "libwebrtc",
        },
    ],
    "variant": [{"name": "paqm", "sender": "paqm-streamer", "qdisc": "paqm bandwidth 8mbit"}],
}
FLOOD = {"name": "flood", "start": 0, "stop": 20, "rate": "24mbit"}


def made(**more: Any) -> scenario.Scenario:
    return scenario.check(Path("case"), {**BASE, **more})


def resolved(**more: Any) -> dict[str, Any]:
    case = made(**more)
    return case.resolve(case.variants[0], 1, 720)


def test_a_stream_names_its_sender_or_has_the_variants() -> None:
    run = resolved()
    names = [senders.sender_of(flow, run["variant"]) for flow in run["media"]]
    assert names == ["paqm-streamer", "libwebrtc"]


@pytest.mark.parametrize("ecn", ["ect0", "ect1", None])
def test_a_variant_says_whether_its_streamers_are_ecn_capable(ecn: str | None) -> None:
    variant = {**BASE["variant"][0], **({"ecn": ecn} if ecn else {})}
    run = resolved(variant=[variant])
    config = {**run, "build": "b", "clip_file": "c", "record": True}
    plans = senders.plans(senders.of_dumbbell(run)[:1], config, Path("out"))
    send = next(one for one in plans[0]["programs"] if one["name"] == "send-a")["command"]
    assert send[send.index("--ecn") + 1] == ecn if ecn else "--ecn" not in send


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"flood": [{**FLOOD, "name": "a"}]}, r"different names, a is there twice"),
        ({"flood": [{**FLOOD, "stop": 21}]}, r"flood\[1\]: expected start < stop"),
        ({"flood": [{**FLOOD, "on_ms": 5}]}, r"off_ms"),
        ({"flood": [{**FLOOD, "ect": "ce"}]}, r"'ce': expected one of ect0, ect1"),
        (
            {"audio": [{"name": "v", "flows": 2, "rate": "8kbit", "start": 0, "stop": 20}]},
            r"audio\[1\]\.rate: expected 19\.2kbit or more",
        ),
        (
            {"web": [{"name": "w", "per_s": 5, "start": 0, "stop": 20, "bytes_min": 90000}]},
            r"bytes_min is above bytes_max",
        ),
    ],
)
def test_loads_that_make_no_sense_are_refused(more: dict[str, Any], expected: str) -> None:
    with pytest.raises(LabError, match=expected):
        made(**more)


def test_loads_have_hosts_and_ports_of_their_own() -> None:
    loads = resolved(
        flood=[{**FLOOD, "count": 3}, {**FLOOD, "name": "other", "count": 4, "as_one": True}],
        audio=[{"name": "v", "flows": 2, "rate": "40kbit", "start": 0, "stop": 20}],
    )["loads"]
    assert [load["address"] for load in loads] == ["10.5.1.2", "10.5.2.2", "10.5.3.2"]
    assert [load["port"] for load in loads] == [7000, 7003, 7007]
    assert [load["rate"] for load in loads] == [8e6, 24e6, 40e3]
    assert loads[2]["words"][:4] == ["--rate", "80000", "--size", "100"]


def test_loads_leave_the_streams_of_a_seed_as_they_were() -> None:
    assert resolved(flood=[FLOOD])["media"] == resolved()["media"]


def test_every_case_is_a_good_scenario() -> None:
    cases = mixed_cases.all_cases()
    assert len([name for name in cases if name.startswith("mix-")]) == 50
    for case in cases.values():
        for queue in case.queues:
            point = case.point(queue, 1)
            whole = scenario.check(Path(case.name), point.data)
            whole.resolve(whole.variants[0], 1, 720)
        assert not case.base or case.base in cases


def test_a_share_is_never_below_one_megabit() -> None:
    for case in mixed_cases.mixes(mixed_cases.WHOLE_GRID, mixed_cases.WHOLE_GRID):
        flows = len(case.load["media"]) + sum(g["flows"] for g in case.load.get("elastic", []))
        assert case.link / flows >= 1e6


def test_more_words_reach_only_paqm() -> None:
    case = mixed_cases.all_cases()["flood-1"]
    assert case.point("paqm", 1, "weights host").data["variant"][0]["qdisc"].endswith(
        "feedback icmp weights host"
    )
    assert "weights" not in case.point("cake", 1, "weights host").data["variant"][0]["qdisc"]


def test_a_result_is_used_again_only_for_the_same() -> None:
    case = mixed_cases.all_cases()["flood-1"]
    want = suite.stamp(case.point("paqm", 1), "programs", True)
    assert suite.good_for(want, want)
    assert not suite.good_for(None, want)
    assert not suite.good_for(suite.stamp(case.point("paqm", 1), "others", True), want)
    assert not suite.good_for(suite.stamp(case.point("paqm", 2), "programs", True), want)
    quick = suite.stamp(case.point("paqm", 1), "programs", False)
    assert suite.good_for(want, quick) and not suite.good_for(quick, want)


def test_shares_leave_out_settling_and_short_intervals() -> None:
    t = np.arange(0, 20, 0.01)
    size = np.full(len(t), 1250, np.int64)  # 1 Mbit/s
    parts = [
        metrics.Segment(0, 10, {"a": 1e6}),
        metrics.Segment(10, 12.5, {"a": 5e6}),
        metrics.Segment(12.5, 20, {"a": 2e6}),
    ]
    got = perflow.shares(t, size, parts, "a", 4)
    assert [(s["start"], s["stop"]) for s in got["segments"]] == [(4, 10), (14.5, 20)]
    assert got["share_percent_least"] == pytest.approx(50, abs=1)
    assert got["share_percent"] == pytest.approx(100 * 11.5 / (6 + 11), abs=1)


def test_figures_of_every_flow(tmp_path: Path) -> None:
    out = synthetic.write_run(tmp_path)
    path = out / "paqm" / "run.json"
    run = json.loads(path.read_text()) | {"judge_from": 4.0}
    path.write_text(json.dumps(run))
    each = analysis.analyse(out, progress=lambda text: None)["variants"][0]["each"]
    assert set(each) >= set(synthetic.STREAMS)
    for name in synthetic.STREAMS:
        assert each[name]["kind"] == "video" and each[name]["lost"] == 0
        assert each[name]["share_percent"] == pytest.approx(100, abs=2)
        assert each[name]["sojourn_ms"]["p95"] == pytest.approx(0.5, abs=0.01)
        # told 2 Mbit/s once, at the beginning
        assert each[name]["told"] == {"mean_mbit": 2.0, "apart_percent": 0.0}
    assert [entry["kind"] for entry in each.values()].count("tcp") == 1


def test_silence_before_is_no_part_of_what_a_load_uses(tmp_path: Path) -> None:
    """Connections from 7 s on, at what is fair for one flow, of a load that starts at 1 s."""
    out = synthetic.write_run(tmp_path)
    path = out / "paqm" / "run.json"
    web = {
        "kind": "web",
        "name": "w",
        "start": 1.0,
        "stop": synthetic.DURATION,
        "address": TCP_HOST,
        "port": 5202,
        "ports": 1,
        "rate": None,
        "as_one": True,
    }
    more = {"judge_from": 4.0, "loads": [web]}
    path.write_text(json.dumps(json.loads(path.read_text()) | more))
    (out / "paqm" / "log").mkdir(exist_ok=True)
    (out / "paqm" / "log" / "load-w.log").write_text("{}")
    each = analysis.analyse(out, progress=lambda text: None)["variants"][0]["each"]
    for name in ("w", *synthetic.STREAMS):
        assert each[name]["share_percent"] == pytest.approx(100, abs=2)
        assert each[name]["segments"][-1]["share_mbit"] == pytest.approx(8 / 3, abs=0.05)


def test_a_tcp_flow_that_starves_is_a_flow(tmp_path: Path) -> None:
    """Its last try is at 10 s: what it gets nothing of is its share until the end."""
    out = synthetic.write_run(tmp_path, synthetic.Faults(starved=True))
    path = out / "paqm" / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"judge_from": 4.0}))
    variant = analysis.analyse(out, progress=lambda text: None)["variants"][0]
    flow = variant["each"]["tcp-2"]
    assert (flow["kind"], flow["packets"], flow["lost"]) == ("tcp", 3, 3)
    assert flow["share_percent"] == 0 and flow["segments"][-1]["stop"] > 13.9
    # a quarter of the link for each of the four flows
    assert flow["segments"][-1]["share_mbit"] == pytest.approx(2)
    assert variant["figures"]["elastic_share_percent"]["mean"] < 70


def test_a_picture_that_stops_before_judging_is_a_freeze(tmp_path: Path) -> None:
    out = synthetic.write_run(tmp_path)
    path = out / "paqm" / "run.json"
    told = json.loads(path.read_text()) | {"judge_from": 4.0}
    path.write_text(json.dumps(told))
    run = rundata.load_run(out / "paqm")
    times = [*np.arange(0.1, 3.9, 0.04), 13.9]
    decoded = run.flow_dir("a", "recv") / "decoded.csv"
    decoded.parent.mkdir(exist_ok=True)
    rows = [f"{run.t0_ns + round(t * 1e9)}\n" for t in times]
    decoded.write_text("t_ns\n" + "".join(rows))
    figures = analysis.analyse(out, progress=lambda text: None)["variants"][0]["each"]["a"]
    assert figures["webrtc_freezes"] == 1
    assert figures["webrtc_frozen_s"] == pytest.approx(9.9)  # of the stream's 14 s


def test_a_run_without_loads_has_none(tmp_path: Path) -> None:
    out = synthetic.write_run(tmp_path)
    run = rundata.load_run(out / "paqm")
    assert run.loads == () and run.judge_from is None
    assert "each" not in analysis.analyse(out, progress=lambda text: None)["variants"][0]


def test_the_source_compiles_and_names_what_is_wrong() -> None:
    tool = cache.program(*sorted((cache.TESTBED / "guest").glob("load*.c")))
    done = subprocess.run([tool, "udp", "--size", "9"], capture_output=True, text=True)
    assert done.returncode == 2 and "--size 9: want a number from" in done.stderr
