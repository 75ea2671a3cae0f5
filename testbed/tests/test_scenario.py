# SPDX-License-Identifier: GPL-2.0
"""Scenario files: what is accepted, what a refusal says, what the seed decides."""

from pathlib import Path

import pytest

from paqm_lab import scenario, sweep_file
from paqm_lab.errors import LabError
from paqm_lab.multi import netscenario

GOOD = (scenario.SCENARIOS / "demo.toml").read_text()


def write(tmp_path: Path, text: str) -> str:
    path = tmp_path / "case.toml"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('bottleneck = "8mbit"', 'bottleneck = "8 Mb"', r"path\.bottleneck: '8 Mb' is not a rate"),
        ('bottleneck = "8mbit"', 'bottleneck = "0mbit"', r"bottleneck: '0mbit': expected 1bit"),
        ('rate_max = "3mbit"', 'rate_max = "0.0mbit"', r"media\[1\]\.rate_max: '0\.0mbit': ex"),
        ('bottleneck = "8mbit"', 'bottleneck = "0.4bit"', r"'0\.4bit': expected 1bit or more"),
        ('rate_max = "3mbit"', 'rate_max = "0.0001kbit"', r"'0\.0001kbit': expected 1bit"),
        ('bottleneck = "8mbit"', 'bottleneck = "1.2.3mbit"', r"bottleneck: '1\.2\.3mbit' is not a"),
        ('bottleneck = "8mbit"', "", r"path: bottleneck is missing"),
        ("duration = 50", "duration = inf", r"duration: inf: expected a finite number"),
        ("start = 10", "start = nan", r"media\[3\]\.start: nan: expected a finite number"),
        ("seed = 1", "seed = 1\njudge_from = 49.5", r"judge_from: expected .*, it is 49.5"),
        ('name = "b"', 'name = "tcp-4"', r"two flows would be called tcp-4"),
        ('bottleneck = "8mbit"', "bottleneck = 8", r"path\.bottleneck: 8: expected string"),
        ("rtt_ms = 40", "rtt_ms = 0", r"path\.rtt_ms: "),
        ('name = "demo"', 'name = "Demo!"', r"name: 'Demo!': expected up to 13"),
        ("seed = 1", "seed = 1\nsed = 2", r"the file: unknown key sed; expected are name, title"),
        ('"cubic"', '"vegas"', r"elastic\[1\]\.congestion_control: 'vegas': expected one of cubic"),
        ('sender = "libwebrtc"', 'sender = "skype"', r"variant\[2\]\.sender: 'skype'"),
        ("stop = 35", "stop = 5", r"media\[3\]: expected start < stop <= duration"),
        ("stop = 35", "stop = 51", r"media\[3\]: expected start < stop <= duration"),
        ('name = "b"', 'name = "a"', r"media: expected different names, a is there twice"),
        ('rate_min = "200kbit"', 'rate_min = "4mbit"', r"media\[1\]: rate_min is above rate_max"),
        ("[path]", "[path", r"not valid TOML"),
        ("seed = 1", f"seed = {'[' * 3000}{']' * 3000}", r"not valid TOML: .*recursion"),
        ("seed = 1", f"seed = {'9' * 6000}", r"not valid TOML: .*6000 digits"),
        ("width = 640", "width = 641", r"clip\.width: 641 is not a multiple of 2"),
        ("width = 640", "width = 640000", r"clip\.width: 640000 is greater than the maximum"),
        ("[clip]\nwidth = 640\nheight = 360\nfps = 24", "", r"clip is missing"),
        ('sender = "libwebrtc"', 'sender = "none"', r"variant\[2\]\.sender"),
        ('"libwebrtc"', '"libwebrtc"\necn = "ect0"', r"variant\[2\]\.ecn needs the sender paqm-"),
        ("width = 640", "width = 320\ncut_every = 2", r"clip\.cut_every: only the clip of 640x360"),
        ('"paqm bandwidth {bottleneck} feedback icmp"', '" "',
         r"variant\[1\]\.qdisc: ' ': expected a qdisc, in the words of tc"),
        ("seed = 1", "seed = 4294967296", r"seed: 4294967296 is greater than the maximum"),
        ("flows = 4", "flows = 4.0", r"elastic\[1\]\.flows: 4\.0: expected integer"),
        ('"paqm bandwidth {bottleneck} feedback icmp"', '"fq_codel"',
         r'variant\[1\]: fq_codel limits no rate: expected shaper = "htb"'),
        ('"paqm bandwidth {bottleneck} feedback icmp"', '"paqm feedback icmp"',
         r"variant\[1\]: paqm limits no rate without a bandwidth: expected shaper"),
        ('"paqm bandwidth {bottleneck} feedback icmp"', '"paqm bandwidth auto feedback icmp"',
         r"variant\[1\]: paqm limits no rate without a bandwidth: expected shaper"),
        ("[path]", "[[path]]", r"path: it is a list, \[\[path\]\]; expected one table, \[path\]$"),
        ("[[elastic]]", "[elastic]",
         r"elastic: it is one table, \[elastic\]; expected \[\[elastic\]\] above each entry"),
        ("rtt_ms = 40", 'rtt_ms = 40\nlink = "lte"', r"variant\[2\]\.shaper: path\.link limits"),
    ],
)
def test_refusal_names_file_key_and_expectation(
    tmp_path: Path, old: str, new: str, expected: str
) -> None:
    assert old in GOOD
    with pytest.raises(LabError, match=expected) as caught:
        scenario.load(write(tmp_path, GOOD.replace(old, new)))
    assert str(caught.value).startswith(str(tmp_path / "case.toml"))


def test_a_link_that_varies_lasts_a_second(tmp_path: Path) -> None:
    """{low} is a percentile of its rates of a second."""
    text = GOOD.replace("duration = 50", "duration = 0.5")
    text = text.replace("rtt_ms = 40", "rtt_ms = 40\nlink = 'lte'")
    with pytest.raises(LabError, match=r"duration: expected 1 s or more with path\.link, it is"):
        scenario.load(write(tmp_path, text))


def test_a_text_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "case.toml"
    path.write_bytes(GOOD.replace("title = ", "title = # blå\n", 1).encode("latin-1"))
    with pytest.raises(LabError, match=r"case\.toml: not valid TOML: 'utf-8' codec can't decode"):
        scenario.load(str(path))


def test_what_an_editor_puts_before_a_text_is_no_part_of_it(tmp_path: Path) -> None:
    path = tmp_path / "case.toml"
    path.write_text(GOOD, "utf-8-sig")
    assert scenario.load(str(path)).data == scenario.load(write(tmp_path, GOOD)).data


def test_flows_of_loads_have_names_of_their_own(tmp_path: Path) -> None:
    """A flood of one claim is named as its entry, others are numbered; silence is a rate of 0."""
    flood = '[[flood]]\nname = "x"\nstart = 1\nstop = 9\nrate = "1mbit"\ncount = 2\n'
    flood += 'on_ms = 5\noff_ms = 5\noff_rate = "0bit"\n'
    named = GOOD.replace('name = "b"', 'name = "x-2"')
    with pytest.raises(LabError, match="two flows would be called x-2"):
        scenario.load(write(tmp_path, named + flood))
    scenario.load(write(tmp_path, named + flood + "as_one = true\n"))


def test_all_shipped_scenarios_are_good() -> None:
    for path in scenario.SCENARIOS.glob("*.toml"):
        where, data = scenario.read(str(path))
        if netscenario.describes(data):
            found = netscenario.check(where, data)
            cases = [found.case(variant, 1) for variant in data["variant"]]
            assert found.name == path.stem and all(case.flows for case in cases)
        else:
            assert sweep_file.check_scenario(where, data).name == path.stem


def test_unknown_scenario_lists_the_known() -> None:
    with pytest.raises(LabError, match=r"nonesuch.*there are .*demo"):
        scenario.load("nonesuch")


def test_a_directory_does_not_hide_a_scenario(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `run demo --out demo` leaves one."""
    (tmp_path / "demo").mkdir()
    monkeypatch.chdir(tmp_path)
    assert scenario.load("demo").name == "demo"


def test_unknown_variant_lists_the_known() -> None:
    with pytest.raises(LabError, match=r'no variant "red".*paqm, fq_codel, fifo'):
        scenario.load("demo").choose(["red"])


def test_rates() -> None:
    assert scenario.rate("8mbit") == 8_000_000
    assert scenario.rate("1.5kbit") == 1_500
    assert scenario.rate("300bit") == 300


def test_seed_decides_all_that_differs_between_replications() -> None:
    demo = scenario.load("demo")
    paqm, fq_codel, _ = demo.variants
    one, again = (demo.resolve(paqm, 1, 720) for _ in range(2))
    other = demo.resolve(paqm, 2, 720)
    assert one == again
    assert one["media"] != other["media"] and one["elastic"] != other["elastic"]
    # The variants of one seed see the same load.
    rival = demo.resolve(fq_codel, 1, 720)
    assert rival["media"] == one["media"] and rival["elastic"] == one["elastic"]
    for member in one["elastic"][0]["members"]:
        assert 20 <= member["start"] <= 20.1
    assert len({flow["ssrc"] for flow in one["media"]}) == 3
    assert all(0 <= flow["start_frame"] < 720 for flow in one["media"])
    assert one["variant"]["qdisc"] == "paqm bandwidth 8000000bit feedback icmp"


def test_streams_in_step_begin_as_asked(tmp_path: Path) -> None:
    """A seed moves the others: pictures of one server may leave it in the same moment."""
    text = GOOD.replace('name = "b"', 'name = "b"\nin_step = true')
    usual, kept = (scenario.load(name) for name in ("demo", write(tmp_path, text)))
    (paqm, *_), seed = usual.variants, 3
    was, now = (one.resolve(paqm, seed, 720)["media"] for one in (usual, kept))
    asked = usual.data["media"]
    assert [a["start"] < b["start"] for a, b in zip(asked, was, strict=True)] == [True] * 3
    assert now[1]["start"] == asked[1]["start"]
    assert [now[n]["start"] for n in (0, 2)] == [was[n]["start"] for n in (0, 2)]
