# SPDX-License-Identifier: GPL-2.0
"""`paqm-lab head-to-head`: rows and their scenarios, figures by hand, best rivals, checks, page."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from paqm_lab import headtohead_cases, headtohead_docs, headtohead_judge, scenario, suite
from paqm_lab.headtohead_cases import PAQM, QUEUES, SENDERS

Json = dict[str, Any]
ROWS = headtohead_cases.rows()


def test_twelve_rows_with_every_queue_and_sender_in_two() -> None:
    assert len(ROWS) == 12
    in_rows = [set(row.systems) for row in ROWS.values()]
    assert all({PAQM, "fq_codel-ecn", "cake-ecn", "dualpi2-l4s"} <= some for some in in_rows)
    for queue in QUEUES:
        count = sum(any(name.partition("-")[0] == queue for name in some) for some in in_rows)
        assert count >= 2, queue
    for sender in set(SENDERS) - {"advice"}:
        count = sum(any(name.endswith(f"-{sender}") for name in some) for some in in_rows)
        assert count >= 2, sender
    assert {row.streams for row in ROWS.values()} >= {1, 4, 16}
    assert {row.rtt_ms for row in ROWS.values()} == {20, 80, 200}
    assert sum(row.tcp == "bbr" for row in ROWS.values()) == 2
    assert {row.link for row in ROWS.values()} == {"", "steps", "lte", "wifi", "leo"}


def test_every_system_is_a_good_scenario() -> None:
    for row in ROWS.values():
        for system in row.systems:
            made = scenario.check(Path(row.name), row.point(system, 1).data)
            resolved = made.resolve(made.variants[0], 1, 474)
            assert "{" not in resolved["variant"]["qdisc"]
            for stream in resolved["media"]:
                assert stream["rate_min"] <= 0.8 * row.share


@pytest.mark.parametrize(
    ("row", "queue", "words"),
    [
        ("one", "pfifo", "pfifo limit 60"),  # 300 ms of 2 Mbit/s are 75 kB
        # 15 ms are 3750 bytes, less than five packets
        ("one", "red", "red limit 75000 min 6250 max 18750 avpkt 1000 burst 11 bandwidth "
         "2000000bit probability 0.1"),
        ("one", "paqm", "paqm bandwidth 2000000bit feedback icmp"),
        ("leo", "paqm", "paqm bandwidth auto feedback icmp"),
        ("leo", "cake", "cake besteffort"),
    ],
)  # fmt: skip
def test_sizes_of_queues(row: str, queue: str, words: str) -> None:
    assert ROWS[row].qdisc(queue) == words


def test_what_limits_the_rate() -> None:
    """htb where the queue does not; on a link that varies the link itself."""
    assert ROWS["one"].variant("fq_codel-ecn")["shaper"] == "htb"
    assert "shaper" not in ROWS["one"].variant("cake-ecn")
    assert "shaper" not in ROWS["lte"].variant("fq_codel-ecn")


def test_commands_as_run() -> None:
    variant = {"qdisc": "fq_codel", "shaper": "htb", "bottleneck_bps": 2_000_000, "link": None}
    lines = headtohead_judge.tc_lines(variant)
    assert lines[0] == "tc qdisc add dev q root handle 1: htb default 1"
    assert "rate 2000000bit" in lines[1] and lines[1].startswith("tc class add dev q")
    assert lines[2] == "tc qdisc add dev q parent 1:1 handle 10: fq_codel"
    under = headtohead_judge.tc_lines({**variant, "link": "lte", "shaper": None})
    assert under[0].endswith("labtrace") and len(under) == 2


def test_jain() -> None:
    assert headtohead_judge.jain([0.5, 0.5, 0.5]) == pytest.approx(1)
    assert headtohead_judge.jain([1, 0, 0, 0]) == pytest.approx(0.25)
    assert headtohead_judge.jain([0, 0]) is None


def flow(kind: str, share: float, rate: float, **more: Any) -> Json:
    part = {"share_mbit": share, "mean_mbit": rate}
    early = {"start": 3.0, "stop": 8.0, "share_mbit": 9.0, "mean_mbit": 0.0}  # before TCP
    return {
        "kind": kind,
        "segments": [early, {"start": 10.0, "stop": 20.0, **part}],
        "packets": 1000,
        "lost": 0,
        "sojourn_ms": {"p50": 1.0, "p95": 2.0, "p99": 3.0},
        "frame_delivery_ms": {"p95": 60.0},
        "webrtc_freezes": 0,
        "webrtc_frozen_s": 0.0,
        "vmaf": 90.0,
        "vmaf_p10": 80.0,
        **more,
    }


def variant_of(stream: Json, bulk: Json, sender: str = "paqm-streamer") -> Json:
    return {
        "sender": sender,
        "qdisc": "fq_codel",
        "shaper": "htb",
        "link": None,
        "bottleneck_bps": 5_000_000,
        "duration_s": 20.0,
        "each": {"f1": stream} | {f"tcp-{n}": bulk for n in range(1, 5)},
        "flows": {"f1": {"segments": [{"settle_s": 0.5}, {"settle_s": None}]}},
        "figures": {"link_use_percent": {"with_elastic": 99.0, "whole": 90.0}},
    }


def test_figures_of_a_run() -> None:
    stream = flow("video", 1.0, 0.9, lost=5, frame_delivery_ms={"p95": None}, vmaf_p10=None)
    one = headtohead_judge.figures(
        ROWS["one-tcp"], "fq_codel-ecn", 1, variant_of(stream, flow("tcp", 1.0, 1.1))
    )
    assert one["share_percent"] == pytest.approx(90) and one["tcp_percent"] == pytest.approx(110)
    assert one["share_percent_least"] == pytest.approx(90)
    assert one["lost_percent"] == pytest.approx(0.5) and one["use_percent"] == 99.0
    assert one["frame_p95_ms"] == 20000.0 and one["vmaf_p10"] == 0.0
    assert one["settle_s"] == 0.5 and one["settled"] == [1, 2]
    assert one["jain"] == pytest.approx((0.9 + 4.4) ** 2 / (5 * (0.81 + 4 * 1.21)))


def run_of(system: str, seed: int = 1, **more: Any) -> Json:
    sender = "libwebrtc" if system.endswith("-rtc") else "paqm-streamer"
    made = headtohead_judge.figures(
        ROWS["one-tcp"], system, seed,
        variant_of(flow("video", 1.0, 1.0), flow("tcp", 1.0, 1.0), sender),
    )  # fmt: skip
    return made | {"programs": "x", "version": "v"} | more


def judged(*runs: Json) -> dict[str, Json]:
    found, _ = headtohead_judge.judge(list(runs), ROWS)
    return {check["name"]: check for check in found}


def test_the_best_rival_is_one_that_does_its_job() -> None:
    """A rival with a hundredth of its share has no delay, another loses a tenth of its packets."""
    starved = run_of("pie-auto", delay_p95_ms=0.1, share_percent_least=1.0)
    lossy = run_of("fq_codel-ecn", delay_p95_ms=0.2, lost_percent=10.0)
    good = run_of("cake-ecn", delay_p95_ms=5.0)
    checks = judged(run_of(PAQM), starved, lossy, good)
    assert checks["delay_p95_behind"]["rival"] == "cake-ecn"
    assert checks["delay_p95_behind"]["value"] == pytest.approx(-3)
    found, silent = headtohead_judge.judge([run_of(PAQM), starved], ROWS)
    assert not found and {one["name"] for one in silent} >= {"delay_p95_behind", "loss_behind"}
    for got in (20.0, None):  # None: no packet of TCP came so far
        hungry = run_of("cake-ecn", delay_p95_ms=0.1, tcp_percent=got)
        assert judged(run_of(PAQM), hungry) == {}


def test_pictures_are_compared_with_the_same_encoder() -> None:
    other = run_of("pfifo-rtc", vmaf_p10=99.0)
    same = run_of("fq_codel-ecn", vmaf_p10=80.6)
    check = judged(run_of(PAQM), other, same)["vmaf_p10_behind"]
    assert check["rival"] == "fq_codel-ecn" and check["value"] == pytest.approx(0.6)
    assert not check["pass"]
    assert judged(run_of(PAQM), run_of("fq_codel-ecn", vmaf_p10=80.4))["vmaf_p10_behind"]["pass"]


def test_limits_of_delay_and_loss_and_means_of_seeds() -> None:
    rival = run_of("cake-ecn", delay_p95_ms=1.0)
    assert judged(run_of(PAQM, delay_p95_ms=2.0), rival)["delay_p95_behind"]["pass"]
    assert not judged(run_of(PAQM, delay_p95_ms=2.1), rival)["delay_p95_behind"]["pass"]
    two = (run_of(PAQM, delay_p95_ms=1.0), run_of(PAQM, 2, delay_p95_ms=2.8))
    both = (rival, run_of("cake-ecn", 2, delay_p95_ms=1.0))
    assert judged(*two, *both)["delay_p95_behind"]["value"] == pytest.approx(0.9)
    assert judged(*two, rival)["delay_p95_behind"]["value"] == pytest.approx(0)  # of seed 1
    assert not judged(run_of(PAQM, lost_percent=0.06), rival)["loss_behind"]["pass"]


def test_a_row_without_a_seed_in_common_says_so(tmp_path: Path) -> None:
    """It was run, and failed unseen."""
    known = headtohead_judge.result(tmp_path, ROWS, (1,))
    known["runs"] = [run_of(PAQM, delay_p95_ms=99.0), run_of("cake-ecn", 2)]
    known["versions"] = [{"paqm": "v"}]
    data = headtohead_judge.result(tmp_path, ROWS, (1,), known)
    assert not data["checks"]
    assert [one["why"] for one in data["reported"]] == ["its systems have no seed in common"]
    text = headtohead_docs.page(json.loads(suite.as_json(data)))
    assert "`one-tcp`: its systems have no seed in common." in text


def test_dualpi2_beside_tcp() -> None:
    rival = run_of("dualpi2-l4s", delay_p99_ms=5.9, share_percent=86.0)
    checks = judged(run_of(PAQM), rival)  # 3 ms and 100 %
    assert checks["dualpi2_delay_p99_times"]["value"] == pytest.approx(1.9667, abs=1e-4)
    assert checks["dualpi2_share_ahead"]["value"] == pytest.approx(14)
    assert not checks["dualpi2_delay_p99_times"]["pass"]
    assert not checks["dualpi2_share_ahead"]["pass"]
    better = run_of("dualpi2-l4s", delay_p99_ms=6.1, share_percent=84.0)
    assert all(check["pass"] for check in judged(run_of(PAQM), better).values())


def test_too_much_from_dualpi2_is_no_lead_of_its_own() -> None:
    """156 % there and 96 % here: 60 points behind, but 52 points nearer to what is fair."""
    runs = [run_of(PAQM, share_percent=96.0), run_of("dualpi2-l4s", share_percent=156.0)]
    found, silent = headtohead_judge.judge(runs, ROWS)
    lead = next(check for check in found if check["name"] == "dualpi2_share_ahead")
    assert lead["value"] == pytest.approx(-60) and not lead["pass"]
    near = next(one for one in silent if one["name"] == "dualpi2_share_nearer")
    assert near["value"] == pytest.approx(52)


def test_runs_of_other_programs_are_marked(tmp_path: Path) -> None:
    """The rival's run was made by an older streamer."""
    then = run_of("cake-ecn", delay_p95_ms=1.5) | {"programs": "y", "version": "then"}
    now = run_of("fq_codel-ecn", lost_percent=0.0, delay_p95_ms=9.0)
    known = headtohead_judge.result(tmp_path, ROWS, (1,))
    known["runs"] = [run_of(PAQM, lost_percent=0.02), then | {"lost_percent": 0.01}, now]
    known["versions"] = [{"paqm": "v"}, {"paqm": "then"}]
    data = headtohead_judge.result(tmp_path, ROWS, (1,), known)
    same = {check["name"]: check["same_programs"] for check in data["checks"]}
    assert same == {"delay_p95_behind": False, "loss_behind": True, "vmaf_p10_behind": True}
    text = headtohead_docs.page(json.loads(suite.as_json(data)))
    assert "| *cake-ecn* |" in text and "| fq_codel-ecn |" in text and "| paqm |" in text
    assert "* *`delay_p95_behind` 0.50" in text and "* `loss_behind` 0.02" in text
    assert "1 of them set P-AQM against runs" in " ".join(text.split())
    assert "Versions: v: `paqm`, `fq_codel-ecn`; then: `cake-ecn`." in text
    for check in data["checks"]:
        check["same_programs"] = True
    assert "are met. Systems are" in " ".join(headtohead_docs.page(data).split())


def test_only_runs_of_the_row_as_it_is_now_count(tmp_path: Path) -> None:
    point = ROWS["one-tcp"].point("cake-ecn", 1)
    home = point.home(tmp_path)
    home.mkdir(parents=True)
    variant = variant_of(flow("video", 1.0, 1.0), flow("tcp", 1.0, 1.0))
    whole: Json = {"variants": [variant], "seed": 1, "duration_s": 20.0, "rtt_ms": 40, "link": None}
    whole |= {"bottleneck_bps": 5_000_000, "packet_log_sha256": {}, "versions": {"paqm": "v"}}
    (home / "result.json").write_text(json.dumps(whole))
    stamp = suite.stamp(point, "programs", True)
    (home / "stamp.json").write_text(json.dumps(stamp))
    data = headtohead_judge.result(tmp_path, ROWS, (1,))
    assert [run["queue"] for run in data["runs"]] == ["cake-ecn"]
    data["runs"][0]["scenario"] = stamp["scenario"] = "as it was before"
    (home / "stamp.json").write_text(json.dumps(stamp))
    assert not headtohead_judge.result(tmp_path, ROWS, (1,), data)["runs"]


def test_earlier_rows_stay_until_they_are_run_anew(tmp_path: Path) -> None:
    known = headtohead_judge.result(tmp_path, ROWS, (1,))
    assert known["runs"] == [] and known["checks"] == []
    known["runs"] = [run_of(PAQM), run_of("cake-ecn")]
    known["versions"] = [{"paqm": "v"}, {"paqm": "w"}]
    again = headtohead_judge.result(tmp_path, ROWS, (1,), copy.deepcopy(known))
    assert again["runs"] == sorted(known["runs"], key=lambda run: str(run["queue"]))
    assert again["versions"] == [{"paqm": "v"}]
    assert "cake-ecn-1" not in again["grid"]["missing"]["one-tcp"]
    text = headtohead_docs.page(json.loads(suite.as_json(again)))
    assert "## One stream, four TCP cubic flows" in text and "`one`: not run yet." in text
    assert "tc qdisc add dev q parent 1:1 handle 10: fq_codel" in text
