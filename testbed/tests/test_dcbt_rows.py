# SPDX-License-Identifier: GPL-2.0
"""`paqm-lab dcbt`: scenarios, programs, figures of runs and page, on cases worked by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from paqm_lab import scenario
from paqm_lab.catalogue import verdict
from paqm_lab.dcbt import cases, docs, model
from paqm_lab.dcbt import figures as of
from paqm_lab.dcbt.main import BOOK
from paqm_lab.errors import LabError
from paqm_lab.multi import netscenario, periods
from paqm_lab.multi.case import BIN, CLASS, Case, Run

Json = dict[str, Any]
ROWS = BOOK.rows()


def case(name: str) -> Case:
    path, data = scenario.read(name)
    made = netscenario.check(path, data).case(data["variant"][0], 1)
    made.add_flows(Path("/tool"), Path("/build"), None, 1)
    return made


@pytest.mark.parametrize("name", ["dcbt", "dcbt-mm", "dcbt-cbt"])
def test_programs(name: str) -> None:
    """What TCP, applications and floods are told."""
    made = case(name)
    words = {program["name"]: " ".join(program["words"]) for program in made.programs}
    segments = {"dcbt": 960, "dcbt-mm": 1460, "dcbt-cbt": 260}[name]
    window = 10 if name == "dcbt-cbt" else 20
    assert f"--mss {segments} --priority {CLASS + 1}" in words["src-T"]
    assert f"--window {segments * window} --epoch @T0@ --bin {BIN}" in words["sink-T"]
    off = [action["words"] for action in made.actions if "sysctl" in action["words"]]
    assert ["sysctl", "-qw", "net.ipv4.tcp_sack=0"] in off
    classes = [queue for queue in made.net.queues
               if queue.host == "T" and queue.what == "class"]
    tcp = sum(flow.sender == "tcp" for flow in made.flows)
    assert len(classes) == tcp + 1
    if name != "dcbt-cbt":
        assert "--levels mm --packet" in words["src-M"] and "--dscp 3" in words["src-M"]
        assert "--controller levels --dscp 3" in words["sink-M"]
        return
    assert "--frame 6" in words["src-M.1"]
    rules = [action["words"][-1] for action in made.actions if "nft" in action["words"]]
    assert sum("ip dscp set 3" in rule for rule in rules) == 6


def test_an_application_that_answers_at_once() -> None:
    path, data = scenario.read("dcbt")
    next(flow for flow in data["flow"] if flow["sender"] == "levels")["immediate"] = True
    made = netscenario.check(path, data).case(data["variant"][0], 1)
    made.add_flows(Path("/tool"), Path("/build"), None, 1)
    words = {program["name"]: " ".join(program["words"]) for program in made.programs}
    assert "--controller levels:immediate=1 --dscp 3" in words["sink-M"]
    assert "immediate" not in words["src-M"]


def test_two_entries_of_a_host_have_classes_of_their_own() -> None:
    made = case("dcbt")
    numbers = [made.tc_class(flow) for flow in made.flows if flow.sender == "tcp"]
    assert numbers == list(range(CLASS + 1, CLASS + 56))


def stats(sent: int, dropped: int, average: float) -> Json:
    found = dict.fromkeys(periods.COUNTED, 0)
    return {**found, "sent_packets": sent, "sent_bytes": 1014 * sent, "drop_early": dropped,
            "average_packets": average, "flows": 2}


def test_figures_of_a_period(tmp_path: Path) -> None:
    """Rates from the sinks' bins; counters are grown, averages means."""
    made = case("dcbt-mm")
    made.duration, made.facts["periods"] = 2.0, [(0.0, 1.0), (1.0, 2.0)]
    made.flows = [flow for flow in made.flows if flow.entry == "V"]
    made.flows[0] = flow = type(made.flows[0])(**{**vars(made.flows[0]), "start": 0, "stop": 2})
    (tmp_path / "log").mkdir()
    bins = [[1460] * 20 + [2920] * 20]
    (tmp_path / "log" / "sink-V.log").write_text(json.dumps({"bins": bins}))
    for n, t in enumerate((0, 0.5, 1, 1.5, 2)):
        of_class = stats(100 * n, 10 * n, 2.0 * n)
        queue = {"kind": "dcbt", "average_packets": 3.0 * n,
                 **dict.fromkeys(periods.CLASSES, of_class)}
        (tmp_path / f"period-{t:g}.json").write_text(json.dumps([{"kind": "htb"}, queue]))
    found = periods.all_of(Run(made, tmp_path))["periods"]
    # 1460 bytes in each 50 ms, with 40 of headers a segment
    assert found["0-1"]["rates_mbit"] == {flow.entry: [pytest.approx(0.24)]}
    assert found["1-2"]["rates_mbit"] == {flow.entry: [pytest.approx(0.48)]}
    queue = found["1-2"]["queue"]
    assert queue["average_packets"] == 10.5
    assert queue["tcp"]["average_packets"] == 7
    assert queue["tcp"]["sent_packets"] == 200 and queue["tcp"]["dropped"] == 20
    assert queue["tcp"]["drop_percent"] == pytest.approx(100 / 11)


class Pretended:
    """Answers any scenario with figures of the right kind."""

    p: Json = {}

    def scenario(self, file: str, variant: str, seed: int, changes: Json | None = None) -> Json:
        assert changes is not None
        queue = {"average_packets": 10.0}
        for name, sent in (("tcp", 900), ("tagged", 300), ("untagged", 100)):
            of_class = stats(sent, 0, sent / 100)
            queue[name] = {**of_class, "dropped": 100, "drop_percent": 10.0}  # type: ignore[assignment]
        rates = {entry["name"]: [0.5] * entry.get("count", 1) for entry in changes["flow"]}
        period = {"rates_mbit": rates, "jain": 0.9, "queue": queue}
        delay = {"min": 31.0, "p99": 35.0, "max": 36.0, "sd": 1.0}
        found = {
            "periods": {f"{begin:g}-{end:g}": period for begin, end in changes["periods"]},
            "delays_ms": {"M.1": delay, "M.2": delay | {"max": 38.0}},
        }
        return {"figures": {variant: found}, "checks": []}


def test_a_row_measures_what_it_is_judged_by(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "OPEN", ("tail", "cap"))  # all sets take minutes
    for row in ROWS.values():
        assert row.run is not None
        assert set(row.run(Pretended(), 1)) == {figure.id for figure in row.figures}, row.id


def test_figures_of_the_main_experiment() -> None:
    found = of.main_run(Pretended(), "dcbt", 1)  # type: ignore[arg-type]
    assert found["tcp2"] == found["tagged2"] == 500
    assert found["held_tagged1"] == pytest.approx(1) and found["held_untagged3"] == pytest.approx(1)
    assert found["jitter"] == 6 and found["waits_p99"] == pytest.approx(35 - of.WAY_MS)
    assert found["use"] == pytest.approx(100 * 1300 * 8000 / 25 / 25e6)
    assert found["tcp_all"] == pytest.approx(900 * 8000 / 30 / 1e6)


def model_of(words: str) -> of.Values:
    return model.run(Pretended(), words, 1)  # type: ignore[arg-type]


def test_model() -> None:
    """Who recovers without a time-out loses more and sends more; the law is the module's."""
    reno, newreno = (model_of(tcp) for tcp in model.TCPS)
    assert (reno["tcp_drop0"] or 0) < (newreno["tcp_drop0"] or 0)
    assert (reno["tcp_packets"] or 0) < (newreno["tcp_packets"] or 0)
    assert model_of("reno") == reno


def test_page() -> None:
    row = ROWS["main.chips"]
    assert row.run is not None
    made = verdict.of_row(row, [row.run(Pretended(), 1)])
    made |= {"scale": "reduced", "counted": 1, "runs": {"reduced-1": {}}}
    text = docs.page({"rows": [made], "counts": {}})
    assert "| longest less shortest | 5 ms | 6 ms | reproduced |" in text
    assert "| main.chips |" in text and "does not pass" in text


def test_sets_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two choices and two TCPs; every one within bands that hold all, none within an empty one."""
    monkeypatch.setattr(model, "OPEN", ("tail", "cap"))
    names = ("untagged2", "untagged3", "tcp_drop0", "tagged_drop0")
    wide = dict.fromkeys(names, (0.0, 1e9))
    bands = wide | {"tcp1": (0.0, 0.0)}
    found = model.sets(Pretended(), bands, "", 2, 1)  # type: ignore[arg-type]
    assert found["sets"] == found["sets_untagged"] == found["sets_losses"] == 8
    assert found["sets_all"] == 0
    assert (found["untagged2_least"] or 0) < (found["untagged2_most"] or 0)


def test_model_holds_floods_to_their_threshold_in_a_steady_queue() -> None:
    """6 packets by 2 of 37 flows, of the queue; 25 Mbit/s, two floods."""
    calm, swings = model_of("held"), model_of("held swing=10")
    length, floods = calm["len2"] or 0, calm["untagged2"] or 0
    assert floods == pytest.approx(6 * 2 / 37 / length * 25000 / 2, rel=0.15)
    assert (calm["held_untagged2"] or 0) == pytest.approx(1, abs=0.1)
    assert (swings["untagged2"] or 0) > 2 * floods
    assert (swings["held_untagged2"] or 0) < 0.6


@pytest.mark.parametrize("words", [words for words, _ in cases.MODELS.values()])
def test_model_knows_its_choices(words: str) -> None:
    assert model_of(words) != model_of("held cbt swing=1")


def test_model_refuses_what_it_does_not_know() -> None:
    with pytest.raises(LabError, match="usage"):
        model_of("reno nothing")


def test_bands_of_the_model_are_those_of_the_rows() -> None:
    bands = cases.bands()
    assert bands["untagged2"] == pytest.approx((0.7 * 675.7, 1.15 * 675.7))
    assert bands["tcp_packets"] == pytest.approx((16.9e6 * 30 / 8000, 18.7e6 * 30 / 8000))
