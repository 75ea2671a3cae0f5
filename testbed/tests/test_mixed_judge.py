# SPDX-License-Identifier: GPL-2.0
"""What `paqm-lab mixed` demands, on made-up runs: good ones pass, each fault fails its check."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from paqm_lab import mixed, mixed_cases, mixed_docs, mixed_judge, mixed_rows, suite
from paqm_lab.checks import print_table
from paqm_lab.errors import LabError

Json = dict[str, Any]
CASES = mixed_cases.all_cases()


def flow(kind: str = "video", sender: str = "paqm-streamer", **more: Any) -> Json:
    """A flow of a run, as perflow tells of it: 2 Mbit/s, which is its share."""
    figures: Json = {
        "kind": kind,
        "sender": sender,
        "packets": 1000,
        "lost": 0,
        "lost_percent": 0.0,
        "sojourn_ms": {"p50": 0.5, "p95": 2.0, "p99": 3.0},
        "windows_mbit": [2.0] * 16,
        "waiting_mbit": [0.0] * 16,
        "mean_mbit": 2.0,
        "share_mbit": 2.0,
        "share_percent": 100.0,
    }
    if kind == "video":
        figures |= {
            "frame_delivery_ms": {"p95": 60.0},
            "frames_never": 0,
            "vmaf": 90.0,
            "vmaf_p5": 80.0,
            "freezes": 0,
            "told": {"mean_mbit": 2.0, "apart_percent": 1.0},
        }
    return figures | more


def run(case: str, queue: str, seed: int, each: dict[str, Json]) -> Json:
    """A row of a made-up run."""
    variant = {
        "each": each,
        "qdisc": queue,
        "bottleneck_bps": CASES[case].link,
        "figures": {"link_use_percent": {"whole": 95.0}, "feedback": {"messages": 10}},
    }
    return mixed_rows.row(CASES[case], queue, seed, variant, True)


def deaf(**more: Any) -> Json:
    return flow(sender="libwebrtc", told=None, **more)


def verdicts(rows: list[Json]) -> dict[str, bool]:
    return {check["name"]: check["pass"] for check in mixed_judge.judge(rows, CASES).checks}


def mix(seeds: int = 3, rival_p95: float = 5.0, paqm_p95: float = 5.0, **more: Any) -> list[Json]:
    """mix-1-1 over three queues; delays of libwebrtc differ by 0.1 ms from seed to seed."""
    rows = []
    for seed in range(1, seeds + 1):
        for queue, p95 in (("paqm", paqm_p95), ("fq_codel", rival_p95), ("cake", rival_p95 + 9)):
            wait = {"p50": 1.0, "p95": p95 + seed / 10, "p99": 9.0}
            mine = more if queue == "paqm" else {}
            each = {"f1": flow(**mine), "d1": deaf(sojourn_ms=wait)}
            rows.append(run("mix-1-1", queue, seed, each))
    return rows


def test_a_good_mix_passes() -> None:
    found = mixed_judge.judge(mix(), CASES)
    assert found.checks and all(check["pass"] for check in found.checks)
    names = {check["name"] for check in found.checks if check["variant"] == "mix-1-1"}
    assert names == {
        "followers_delay_p95",
        "followers_delay_p99",
        "followers_lost",
        "followers_rate",
        "libwebrtc_delay_p95_worse",
        "libwebrtc_loss_worse",
        "libwebrtc_rate_worse",
        "libwebrtc_vmaf_p5_worse",
    }
    rival = next(c for c in found.checks if c["name"] == "libwebrtc_delay_p95_worse")
    assert rival["rival"] == "fq_codel" and rival["value"] == pytest.approx(0)


@pytest.mark.parametrize(
    ("more", "name"),
    [
        ({"sojourn_ms": {"p50": 1, "p95": 4.1, "p99": 5}}, "followers_delay_p95"),
        ({"sojourn_ms": {"p50": 1, "p95": 3, "p99": 8.1}}, "followers_delay_p99"),
        ({"sojourn_ms": {"p50": None, "p95": None, "p99": None}}, "followers_delay_p95"),
        ({"lost": 1, "lost_percent": 0.1}, "followers_lost"),
        ({"share_percent": 94.9}, "followers_rate"),
        ({"share_percent": None}, "followers_rate"),
    ],
)
def test_each_fault_of_a_follower_fails(more: Json, name: str) -> None:
    assert not verdicts(mix(**more))[name]


def test_libwebrtc_may_differ_by_the_spread_only() -> None:
    # seeds are 0.1 ms apart: the interval of the difference reaches 0.23 ms
    assert verdicts(mix(paqm_p95=5.2))["libwebrtc_delay_p95_worse"]
    worse = verdicts(mix(paqm_p95=5.3))
    assert not worse["libwebrtc_delay_p95_worse"]
    assert not worse["libwebrtc_delay_p95_worse_than_fq_codel_at_least"]
    better = verdicts(mix(paqm_p95=1.0))
    assert better["libwebrtc_delay_p95_worse"]
    assert better["libwebrtc_delay_p95_worse_than_fq_codel_at_least"]


def test_less_rate_and_quality_are_worse() -> None:
    rows = mix()
    for row in rows:
        if row["queue"] == "paqm":
            row["groups"]["libwebrtc"] |= {"rate_mbit": 1.0, "vmaf_p5": 10.0}
    found = verdicts(rows)
    assert not found["libwebrtc_rate_worse"] and not found["libwebrtc_vmaf_p5_worse"]
    assert found["libwebrtc_loss_worse"]


@pytest.mark.parametrize(
    ("more", "name"),
    [
        ({"sojourn_ms": {"p50": None, "p95": None, "p99": None}}, "libwebrtc_delay_p95_worse"),
        ({"packets": 0, "lost_percent": None}, "libwebrtc_loss_worse"),
        ({"mean_mbit": None}, "libwebrtc_rate_worse"),
    ],
)
def test_a_stream_of_which_nothing_came_is_no_merit(more: Json, name: str) -> None:
    """Left out, its run would make the mean of the others better."""
    rows = mix()
    rows[0] = run("mix-1-1", "paqm", 1, {"f1": flow(), "d1": deaf(**more)})
    assert verdicts(mix())[name] and not verdicts(rows)[name]


def test_one_seed_is_reported_not_judged() -> None:
    found = mixed_judge.judge(mix(seeds=1, paqm_p95=50), CASES)
    assert all(not check["name"].startswith("libwebrtc") for check in found.checks)
    assert {one["name"] for one in found.reported} >= {"libwebrtc_delay_p95_worse"}


@pytest.mark.parametrize(("seeds", "p95"), [((1,), 4.9), ((1, 2), 5.0)])
def test_a_rival_of_few_seeds_hides_no_failure(seeds: tuple[int, ...], p95: float) -> None:
    rows = mix(seeds=5, paqm_p95=20.0)  # cake: 14 ms and more
    rows = [row for row in rows if row["queue"] != "fq_codel" or row["seed"] in seeds]
    for row in rows:
        if row["queue"] == "fq_codel":  # better, and two are far apart
            row["groups"]["libwebrtc"]["delay_p95_ms"] = p95 + 20 * (row["seed"] - 1)
        if row["queue"] == "cake":
            row["groups"]["libwebrtc"]["delay_p95_ms"] += 4
    check = next(c for c in mixed_judge.judge(rows, CASES).checks if "p95_worse" in c["name"])
    assert check["name"] == "libwebrtc_delay_p95_worse"
    assert check["rival"] == "cake" and not check["pass"]


def test_what_is_not_compared_is_counted_with_its_reason() -> None:
    rows = mix(seeds=1)
    for row in rows:
        row["groups"]["libwebrtc"]["vmaf_p5"] = None
    rows.append(run("mix-1-2", "paqm", 1, {"f1": flow(), "d1": deaf()}))
    found = mixed_judge.unjudged({"reported": mixed_judge.judge(rows, CASES).reported})
    assert found == (
        "8 comparisons of queues are not judged "
        "(VMAF not measured 1, no run of a rival 4, one seed 3)"
    )
    assert not mixed_judge.unjudged({"reported": mixed_judge.judge(mix(), CASES).reported})


def test_frames_that_never_come_count_with_the_run() -> None:
    rows = []
    for seed in (1, 2, 3):
        for queue in ("paqm", "cake"):
            late = None if queue == "paqm" else 100.0 + seed
            each = {"d1": deaf(frame_delivery_ms={"p95": late})}
            rows.append(run("deaf-1", queue, seed, each))
    assert rows[0]["groups"]["libwebrtc"]["frame_p95_ms"] == 24000
    assert not verdicts(rows)["libwebrtc_frame_delivery_p95_worse"]


def test_pictures_not_scored_are_not_judged() -> None:
    rows = mix()
    for row in rows:
        row["groups"]["libwebrtc"]["vmaf_p5"] = None
    assert "libwebrtc_vmaf_p5_worse" not in verdicts(rows)


def bad(case: str = "bad-ports", flood: float = 2.0, follower: float = 2.0) -> list[Json]:
    """A misbehaver beside three followers that send so much."""
    each = {
        f"f{n}": flow(windows_mbit=[follower] * 16, mean_mbit=follower, share_percent=50 * follower)
        for n in (1, 2, 3)
    }
    alone = run("bad-none", "paqm", 1, dict(each))
    each["flood"] = flow("flood", "flood", windows_mbit=[flood] * 16, mean_mbit=flood)
    return [alone, run(case, "paqm", 1, each)]


def test_a_misbehaver_may_have_what_followers_leave() -> None:
    rows = bad(flood=2.2, follower=1.92)
    got = rows[1]["misbehaver"]
    assert got["fair_mbit"] == pytest.approx(2.24) and got["nominal_percent"] == pytest.approx(110)
    found = verdicts(rows)
    assert found["misbehaver_rate"] and found["followers_rate"] and found["followers_delay_more"]


def test_a_misbehaver_with_too_much_fails() -> None:
    assert not verdicts(bad(flood=2.2, follower=2.0))["misbehaver_rate"]


def test_followers_pushed_aside_fail() -> None:
    assert not verdicts(bad(flood=4.4, follower=1.2))["followers_rate"]


def test_what_waits_of_a_flood_is_wanted_too() -> None:
    row = bad(case="bad-onoff", flood=1.2)[1]
    without = row["misbehaver"]["fair_mbit"]
    each = {f"f{n}": flow(windows_mbit=[2.0] * 16) for n in (1, 2, 3)}
    # in every second half a Mbit waits that was sent in the one before
    each["flood"] = flow(
        "flood", "flood", windows_mbit=[1.2] * 16, waiting_mbit=[0.5] * 16, mean_mbit=1.2
    )
    with_them = run("bad-onoff", "paqm", 1, each)["misbehaver"]["fair_mbit"]
    assert without == pytest.approx(1.25) and with_them == pytest.approx(1.5)


def test_a_flood_with_pauses_has_less_to_claim() -> None:
    load = CASES["bad-onoff"].load["flood"][0]
    assert mixed_rows.offered(load, 1, 3) == pytest.approx(24)
    assert mixed_rows.offered(load, 3, 5) == pytest.approx(0.5)
    assert mixed_rows.offered(load, 2, 4) == pytest.approx(12.25, abs=0.02)
    rows = bad("bad-onoff", flood=2.0)
    # 2 Mbit/s while it sends, 0.5 while it does not
    assert rows[1]["misbehaver"]["fair_mbit"] == pytest.approx(1.25)


def test_delay_is_against_the_run_without_misbehaver() -> None:
    rows = bad()
    rows[1]["groups"]["followers"]["delay_p99_worst_ms"] = 8.1
    assert not verdicts(rows)["followers_delay_more"]
    assert "followers_delay_more" not in verdicts(rows[1:])


def test_of_a_hundred_flows_only_delay_is_judged() -> None:
    rows = bad("bad-hundred", follower=0.1)
    names = {c["name"] for c in mixed_judge.judge(rows, CASES).checks if "hundred" in c["variant"]}
    assert names == {"followers_delay_more"}


@pytest.mark.parametrize(("got", "good"), [(2.05, True), (2.2, False)])
def test_where_hosts_are_equal_a_hundred_flows_are_one(got: float, good: bool) -> None:
    found = verdicts(bad("bad-hundred-w", flood=got))
    assert found["misbehaver_rate"] is good
    assert {"followers_rate", "followers_delay_more"} <= set(found)


@pytest.mark.parametrize(("rate", "good"), [(2.26, True), (2.2, False)])
def test_a_host_against_two_hundred_flows(rate: float, good: bool) -> None:
    each = {"f1": flow(mean_mbit=rate), "tcp-1": flow("tcp", "cubic", mean_mbit=0.01)}
    found = verdicts([run("bad-torrent", "paqm", 1, each)])
    assert found.pop("follower_of_link") is good
    assert set(found) == {"followers_delay_p95", "followers_delay_p99"}


def test_told_rates_must_be_steady_where_shares_are() -> None:
    shaky = {"mean_mbit": 2.0, "apart_percent": 5.1}
    each = {"f1": flow(told=shaky)}
    assert not verdicts([run("reg-1-1", "paqm", 1, each)])["told_apart"]
    assert "told_apart" not in verdicts([run("reg-web", "paqm", 1, each)])
    each["f11"] = flow()
    # there f1 is limited by itself, f11 is not
    assert verdicts([run("reg-limited", "paqm", 1, each)])["told_apart"]


def test_voices() -> None:
    each = {"audio-1": flow("audio", "audio"), "tcp-1": flow("tcp", "cubic")}
    assert all(verdicts([run("audio-tcp", "paqm", 1, each)]).values())
    each["audio-1"] |= {"lost": 1}
    each["tcp-1"] |= {"share_percent": 94.0}
    found = verdicts([run("audio-tcp", "paqm", 1, each)])
    assert found == {"tcp_rate": False, "audio_lost": False, "audio_delay_p99": True}


def store(
    out: Path, case: str, queue: str, seed: int, each: dict[str, Json], words: str = ""
) -> None:
    """A made-up run on disk."""
    point = CASES[case].point(queue, seed, words)
    home = point.home(out)
    home.mkdir(parents=True)
    variant = {
        "each": each,
        "qdisc": queue,
        "figures": {"link_use_percent": {"whole": 95.0}, "feedback": {"messages": 10}},
    }
    whole: Json = {
        "variants": [variant],
        "seed": seed,
        "duration_s": 24,
        "rtt_ms": 40,
        "link": None,
    }
    whole |= {"bottleneck_bps": CASES[case].link, "packet_log_sha256": {}}
    whole |= {"versions": {"paqm": "test", "kernel": "7"}}
    (home / "result.json").write_text(json.dumps(whole))
    (home / "stamp.json").write_text(json.dumps(suite.stamp(point, "programs", True)))


def test_whatever_is_there_is_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store(tmp_path, "mix-1-1", "paqm", 1, {"f1": flow(), "d1": deaf()})
    store(tmp_path, "flood-1", "paqm", 1, {"f1": flow(share_percent=10.0)})
    unfinished = tmp_path / "runs" / "flood-1" / "paqm-2"
    unfinished.mkdir()
    data = mixed_judge.result(tmp_path, CASES, (1, 2))
    assert data["grid"]["runs"] == data["grid"]["of_it"] == 2
    assert data["grid"]["missing"]["flood-1"][-1] == "paqm-2"
    (tmp_path / "result.json").write_text(suite.as_json(data))
    assert print_table(tmp_path) == 1
    assert "not ok flood-1" in capsys.readouterr().out


def test_runs_with_other_words_are_not_the_plain_case(tmp_path: Path) -> None:
    """They lie where those of the plain case do."""
    store(tmp_path, "mix-1-1", "paqm", 1, {"f1": flow(), "d1": deaf()}, "target 50ms")
    store(tmp_path, "mix-1-1", "cake", 1, {"f1": flow(), "d1": deaf()}, "target 50ms")
    plain = mixed_judge.result(tmp_path, CASES, (1,))
    assert [one["queue"] for one in plain["runs"]] == ["cake"]  # has no such words
    with_words = mixed_judge.result(tmp_path, CASES, (1,), words="target 50ms")
    assert [one["queue"] for one in with_words["runs"]] == ["cake", "paqm"]


def test_docs_are_of_the_plain_cases(tmp_path: Path) -> None:
    parser = argparse.ArgumentParser()
    mixed.add_options(parser)
    args = ["--docs", "--paqm-words", "target 50ms", "--out", str(tmp_path)]
    with pytest.raises(LabError, match="paqm-words"):
        mixed.main(parser.parse_args(args))


def test_earlier_rows_of_another_case_are_left_out(tmp_path: Path) -> None:
    store(tmp_path / "then", "mix-1-1", "paqm", 1, {"f1": flow(), "d1": deaf()})
    then = mixed_judge.result(tmp_path / "then", CASES, (1,))
    assert len(mixed_judge.result(tmp_path / "now", CASES, (1,), then)["runs"]) == 1
    then["runs"][0]["scenario"] = "as it was before"
    assert not mixed_judge.result(tmp_path / "now", CASES, (1,), then)["runs"]


def test_earlier_figures_stay_until_a_run_replaces_them(tmp_path: Path) -> None:
    store(tmp_path / "then", "mix-1-1", "paqm", 1, {"f1": flow(share_percent=12.5), "d1": deaf()})
    store(tmp_path / "then", "mix-1-1", "cake", 1, {"f1": flow(), "d1": deaf()})
    then = mixed_judge.result(tmp_path / "then", CASES, (1,))
    store(tmp_path / "now", "mix-1-1", "paqm", 1, {"f1": flow(share_percent=99.0), "d1": deaf()})
    now = mixed_judge.result(tmp_path / "now", CASES, (1,), then)
    assert [(one["queue"], one["version"]) for one in now["runs"]] == [
        ("cake", "test"), ("paqm", "test")]  # fmt: skip
    share = now["runs"][1]["groups"]["followers"]["share_percent_least"]
    assert share == 99.0 and len(now["versions"]) == 1
    fewer = {name: case for name, case in CASES.items() if name != "mix-1-1"}
    assert not mixed_judge.result(tmp_path / "now", fewer, (1,), then)["runs"]
    assert len(mixed_judge.result(tmp_path / "now", CASES, (1,), then | {"format": 1})["runs"]) == 1


def test_the_page_shows_every_group_and_marks_what_fails(tmp_path: Path) -> None:
    store(tmp_path, "mix-1-1", "paqm", 1, {"f1": flow(share_percent=12.5), "d1": deaf()})
    store(tmp_path, "mix-1-1", "cake", 1, {"f1": flow(), "d1": deaf()})
    store(tmp_path, "bad-none", "paqm", 1, {"f1": flow()})
    store(tmp_path, "reg-web", "paqm", 1, {"f1": flow()})
    text = mixed_docs.page(mixed_judge.result(tmp_path, CASES, (1,)))
    assert "| **12.5** |" in text and "(1.00)" in text
    for title in ("Followers in the mixes", "Hosts that misbehave", "closed loop meets"):
        assert title in text


def test_the_page_tells_of_runs_of_other_programs(tmp_path: Path) -> None:
    store(tmp_path, "mix-1-1", "paqm", 1, {"f1": flow(), "d1": deaf()})
    store(tmp_path, "mix-1-1", "cake", 1, {"f1": flow(), "d1": deaf()})
    data = mixed_judge.result(tmp_path, CASES, (1,))
    assert "states of the programs" not in mixed_docs.page(data)
    data["runs"][0]["programs"], data["programs"] = "others", 2
    assert "Runs are of 2 states of the programs: in 1 of 1 cases" in mixed_docs.page(data)


def test_the_page_is_made_from_its_data() -> None:
    if mixed_docs.DATA.exists():
        data = json.loads(mixed_docs.DATA.read_text())
        assert mixed_docs.PAGE.read_text() == mixed_docs.page(data)
