# SPDX-License-Identifier: GPL-2.0
"""Scenarios with a network of their own: what a refusal says, what becomes of links and flows."""

import json
import subprocess
from pathlib import Path

import pytest

from paqm_lab import cache, linktrace, scenario
from paqm_lab.errors import LabError
from paqm_lab.multi import figures, netscenario
from paqm_lab.multi.case import Case, Run

LOT = (scenario.SCENARIOS / "parking-lot.toml").read_text()
FIRST = 'between = ["R1", "R2"]\nbandwidth = "10mbit"\ndelay_ms = 14'


def load(tmp_path: Path, text: str) -> netscenario.NetScenario:
    path = tmp_path / "case.toml"
    path.write_text(text)
    return netscenario.check(*scenario.read(str(path)))


def case(tmp_path: Path, text: str, seed: int = 1) -> Case:
    found = load(tmp_path, text)
    return found.case(found.data["variant"][0], seed)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('between = ["HS1", "R1"]', 'between = ["HS1", "R9"]',
         r'link\[6\]\.between: "R9" is unknown; expected one of R1, R2'),
        ('between = ["HS1", "R1"]', 'between = ["HS1"]', r"link\[6\]\.between"),
        ('"R4"]\nhosts', '"R4", "R 5"]\nhosts', r"routers\[5\]: 'R 5': expected a letter and up"),
        ('"R4"]\nhosts', '"R4", "R5"]\nhosts', r'expected one that joins "R5" to the others'),
        (FIRST, 'between = ["R3", "R2"]', r'link: expected a way from "R1" to "R2"'),
        ('sender = "advised"', 'sender = "quic"',
         r'flow\[1\]\.sender: "quic" is unknown; expected one of advised, deaf, tcp, trace, '),
        ('sender = "advised"', 'sender = "paqm-streamer"',
         r"flow\[1\]: expected one live stream from a host to another, there are more"),
        ('from = "HL"', 'from = "R1"', r'flow\[1\]\.from: "R1" is unknown; expected one of HL'),
        ('rate_max = "10mbit"', 'congestion_control = "reno"',
         r'flow\[1\]\.congestion_control needs the sender tcp'),
        ('rate_max = "10mbit"', "stop = 2", r"flow\[1\]: expected start \+ spread < stop"),
        ("at_least = 95", "at_least = 95\nat_most = 100",
         r"expect\[1\]: expected exactly one of at_least, at_most"),
        ('flow = "L"', 'flow = "X"', r'expect\[1\]\.flow: "X" is unknown; expected one of L, S1'),
        ('between = ["HS1", "R1"]', 'between = ["HS1", "R1"]\njitter_ms = 1',
         r"link\[6\]\.jitter_ms: expected at most delay_ms"),
        (FIRST, FIRST + "\nvlan = 7", r"link\[1\]: expected bandwidth or vlan, not both"),
        ('between = ["HS1", "R1"]', 'between = ["HS1", "R1"]\naccess = "1mbit"\nvlan = 7',
         r"link\[6\]\.access: expected nothing else of that link"),
        ('sender = "advised"', 'sender = "advised"\nsack = false',
         r"flow\[1\]\.sack needs the sender tcp"),
        ('sender = "advised"', 'sender = "tcp"\nwindow = 20', r"flow\[1\]"),
        ('rate_max = "10mbit"', 'application = "mm"',
         r"flow\[1\]\.application needs the sender levels"),
        (FIRST, FIRST + '\ntrace = "lte"', r"link\[1\]: expected bandwidth or trace, not both"),
        (FIRST, FIRST.replace('bandwidth = "10mbit"', 'trace = "dsl"'),
         r"link\[1\]\.trace: 'dsl': expected one of lte, wifi, leo"),
        ('sender = "advised"', 'sender = "tcp"\npoisson = true',
         r"flow\[1\]\.poisson needs the sender advised or deaf"),
        ("duration = 10", 'duration = 10\nweb = [{name = "L", from = "HL", to = "KL", per_s = 1}]',
         r'flow, web: expected different names, "L" is there twice'),
        ("duration = 10", 'duration = 10\nweb = [{name = "w", from = "R1", to = "KL", per_s = 1}]',
         r'web\[1\]\.from: "R1" is unknown; expected one of HL'),
        ("duration = 10", "duration = 10\nnat = [{router = \"R1\", towards = \"R3\"}]",
         r'nat\[1\]\.towards: "R3" is unknown; expected one of HL, HS1, R2'),
        (FIRST, FIRST.replace("bandwidth", "back"), r"link\[1\]: .*bandwidth"),
        ("duration = 10", 'duration = 10\nchange = [{at = 1, between = ["R2", "R1"], '
         'bandwidth = "1mbit"}]', r"change\[1\]\.between: expected the nodes of a link, in its"),
        ("duration = 10", 'duration = 10\nchange = [{at = 1, between = ["R1", "R2"], '
         'back = "1mbit"}]', r"change\[1\]\.back: the link has none that could change"),
        ("duration = 10", 'duration = 10\nchange = [{at = 1, between = ["R1", "R2"]}]',
         r"change\[1\]: expected bandwidth, back or delay_ms"),
        ('rate_max = "10mbit"', "pause = [2, 3]", r"flow\[1\]\.pause needs the sender paqm-str"),
        ('rate_max = "10mbit"', "files = [10, 20]\nidle_s = 1",
         r"flow\[1\]\.files needs the sender tcp"),
        ('sender = "advised"', "", r"flow\[1\]\.sender is missing, and the variant"),
        ('qdisc = "paqm bandwidth {bandwidth}', 'qdisc = "pie',
         r'variant\[1\]: pie limits no rate: expected shaper = "htb"'),
        ("from = 5", "from = 12", r"expect\[1\]: expected from < until <= duration, it has fr"),
        ("from = 5", "from = 5\nuntil = 20", r"expect\[1\]: .* until 20, duration 10"),
        ('figure = "share_percent"', 'figure = "delay_ms"',
         r"expect\[1\]: delay_ms takes no from and until"),
        ("duration = 10", 'duration = 10\nchange = [{at = 10, between = ["R1", "R2"], '
         'bandwidth = "1mbit"}]', r"change\[1\]\.at: expected less than the duration, it is 10 of"),
        ("duration = 10", "duration = 10\nmeasured_from = 30",
         r"measured_from: expected less than the duration, it is 30 of 10"),
        ("duration = 10", "duration = 10\nperiods = [[2, 12]]",
         r"periods\[1\]: expected begin < end <= duration"),
    ],
)
def test_a_refusal_names_the_key_and_what_is_expected(
    tmp_path: Path, old: str, new: str, expected: str
) -> None:
    assert old in LOT
    with pytest.raises(LabError, match=expected) as caught:
        load(tmp_path, LOT.replace(old, new, 1))
    assert str(caught.value).startswith(str(tmp_path / "case.toml"))


def test_shares_are_those_of_the_network(tmp_path: Path) -> None:
    lot = case(tmp_path, LOT)
    shares = {round(rate * 1014 / 1000) for rate in lot.shares[0][1].values()}
    assert shares == {2_500_000} and len(lot.flows) == 8
    published = {"A": 4, "B": 2, "C": 14, "D": 14, "E": 14, "F": 4, "G": 2, "H": 21}
    gfc = case(tmp_path, (scenario.SCENARIOS / "gfc2.toml").read_text())
    for name, rate in gfc.shares[0][1].items():
        assert rate * 1414 / 1400 == pytest.approx(published[name[0]] * 1e6)


def test_shares_of_flows_whose_packets_differ(tmp_path: Path) -> None:
    """Links count Ethernet headers: a flow of small packets has less on the IP level."""
    lot = case(tmp_path, LOT.replace('flow]]\nname = "L"', 'flow]]\nname = "L"\nsize = 60', 1))
    assert lot.flows[0].size == 60
    shares = lot.shares[0][1]
    assert shares["L.1"] == pytest.approx(2.5e6 * 60 / 74)
    assert shares["S1.1"] == pytest.approx(2.5e6 * 1000 / 1014)
    assert figures.share_at(lot, 9.0)["S3.2"] == pytest.approx(shares["S3.2"])


def test_starts_are_of_the_seed(tmp_path: Path) -> None:
    starts = [[flow.start for flow in case(tmp_path, LOT, seed).flows] for seed in (1, 1, 2)]
    assert starts[0] == starts[1] != starts[2]


def test_vlan_nat_and_tcp(tmp_path: Path) -> None:
    text = LOT.replace('between = ["HS1", "R1"]', 'between = ["HS1", "R1"]\nvlan = 7')
    text = text.replace("duration = 10", 'duration = 10\nnat = [{router = "R1", towards = "R2"}]')
    text = text.replace('to = "KS1"\nsender = "advised"', 'to = "KS1"\nsender = "tcp"')
    text = text.replace('flow = "S1"\nfigure = "share_percent"\nfrom = 5',
                        'flow = "S1"\nfigure = "rate_mbit"')
    lot = case(tmp_path, text)
    tagged = next(link for link in lot.net.links if link.vlan)
    assert tagged.device("HS1") == "R1.7"
    assert lot.actions[2]["words"][1].endswith('oifname "wR1R2" masquerade')
    lot.add_flows(Path("/tool"), Path("/build"), None, 1)
    names = [program["name"] for program in lot.programs]
    assert {"src-S1", "sink-S1", "src-L.1", "sink-KL"} <= set(names) and "sink-KS1" not in names
    assert "HS1" not in lot.hosts()


def test_flows_of_an_entry_are_one_program_or_many(tmp_path: Path) -> None:
    text = (Path(__file__).with_name("flows.toml")).read_text()
    flows = case(tmp_path, text, 7)
    flows.add_flows(Path("/tool"), Path("/build"), Path("/ladder"), 7)
    words = {program["name"]: " ".join(program["words"]) for program in flows.programs}
    assert "--poisson" in words["src-p.1"] and "--lag 0.1" in words["src-p.2"]
    assert "--flows 3" in words["src-v"]
    assert "--a-priori --burst --no-reports --controller erf:start=1" in words["src-v"]
    assert "--starts 0.000,0.000" in words["src-t"] and "--flows 2" in words["sink-t"]
    assert "--pareto 1.35" in words["src-w"] and "websink" in words["sink-w"]
    shares = flows.shares[0][1]
    assert shares["v.1"] == 600_000 and shares["p.1"] > 900_000  # what video cannot use, others may


def test_a_link_with_a_trace(tmp_path: Path) -> None:
    text = LOT.replace('bandwidth = "10mbit"', 'trace = "wifi"', 1)
    lot = case(tmp_path, text)
    trace = linktrace.make("wifi", 10, 1)
    assert (lot.facts["trace"] == trace).all()
    wire = lot.facts["capacity"]["R1-R2"] * 1014 / 1000
    assert wire == pytest.approx(linktrace.mean(trace), abs=1)
    first, second, third = lot.net.queues[:3]
    assert (first.host, first.words[-1], second.words[:2]) == ("R1", "labtrace", ("parent", "1:1"))
    assert second.words[6] == f"{linktrace.mean(trace):.0f}bit" and "labtrace" not in third.words
    with pytest.raises(LabError, match="expected one with a trace, there are more"):
        load(tmp_path, text.replace('bandwidth = "10mbit"', 'trace = "lte"', 1))


def test_queues_in_both_directions_that_change(tmp_path: Path) -> None:
    text = LOT.replace(FIRST, FIRST + '\nback = "4mbit"')
    change = '{at = 2, between = ["R1", "R2"], bandwidth = "8mbit", back = "2mbit", delay_ms = 20}'
    text = text.replace("duration = 10", f"duration = 10\nchange = [{change}]")
    lot = case(tmp_path, text)
    there, back = lot.facts["capacity"]["R1-R2"], lot.facts["capacity"]["R2-R1"]
    assert there == pytest.approx(2.5 * back)
    words = {(a["host"], a["words"][4]): " ".join(a["words"]) for a in lot.actions if a["t"] == 2}
    assert words["R1", "wR1R2"].startswith("tc qdisc change dev wR1R2 root handle 10: paqm band")
    assert "8mbit" in words["R1", "wR1R2"] and "2mbit" in words["R2", "xR1R2"]
    assert "delay 20000us" in words["wR1R2", "xR1R2"] and "netem" in words["xR1R2", "wR1R2"]
    reverse = case(tmp_path, text.replace('from = "HS1"\nto = "KS1"', 'from = "KS1"\nto = "HS1"'))
    assert reverse.facts["paths"]["S1.1"] == ["R2-R1"]


@pytest.mark.lab
@pytest.mark.parametrize(("name", "good"), [("live", 3), ("both-ways", 5)])
def test_live_streams(tmp_path: Path, name: str, good: int) -> None:
    """A follower and libwebrtc; and streams in both directions, one of which pauses, on a link
    that changes, beside short TCP flows."""
    words = ["run", Path(__file__).with_name(f"{name}.toml"), "--out", tmp_path / "out"]
    done = subprocess.run([cache.TESTBED / "paqm-lab", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + done.stdout
    assert f"{good} passed, 0 failed" in done.stdout


@pytest.mark.lab
def test_flows_of_all_kinds(tmp_path: Path) -> None:
    """Random gaps, an answer that comes late, trace flows, several TCP flows, short connections."""
    words = ["run", Path(__file__).with_name("flows.toml"), "--out", tmp_path / "out"]
    done = subprocess.run([cache.TESTBED / "paqm-lab", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + done.stdout
    assert "4 passed, 0 failed" in done.stdout
    lines = (tmp_path / "out" / "paqm" / "log" / "web-w.csv").read_text().splitlines()[1:]
    sizes = [int(line.split(",")[1]) for line in lines]
    assert len(sizes) > 5 and min(sizes) >= 2000 and max(sizes) <= 100000
    assert sorted(sizes)[len(sizes) // 2] < 6000  # Pareto's median is 3343, uniform's 51000


def test_a_flow_that_never_came_holds_no_limit_of_delay(tmp_path: Path) -> None:
    expected = '[[expect]]\nflow = "S1"\nfigure = "delay_ms"\nat_most = 100\n'
    lot = case(tmp_path, LOT + expected)
    port: dict[str, object] = {"bins": [[0, 0, 0]] * 211, "packets": 0, "bytes": 0}
    port |= {"window_packets": 0, "wait_mean_us": 0.0}
    (tmp_path / "log").mkdir()
    for sink in {flow.sink for flow in lot.flows}:
        ports = {str(lot.port(flow)): port for flow in lot.flows if flow.sink == sink}
        (tmp_path / "log" / f"sink-{sink}.log").write_text(json.dumps({"ports": ports}))
    flows = [flow for flow in lot.flows if flow.entry == "S1"]
    run = Run(lot, tmp_path)
    assert netscenario.FIGURES["delay_ms"](run, flows, 0, 10) == [None] * len(flows)


def test_each_figure_has_a_unit() -> None:
    """A check that has none fails when the run is over."""
    assert set(netscenario.FIGURES) == set(netscenario.UNITS)
