# SPDX-License-Identifier: GPL-2.0
"""The qdisc benchmark: what it reads it reads right, and each of its checks can fail."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paqm_lab import bench_clock, bench_icount, bench_load, bench_profile, bench_qdisc, sweep_run
from paqm_lab.errors import LabError

PKTGEN = """Params: count 1000  min_pkt_size: 1000  max_pkt_size: 1000
Current:
     pkts-sofar: 1000  errors: 0
Result: OK: 512(c500+d12) usec, 1000 (1000byte,0frags)
  1953125pps 15625Mb/sec (15625000000bps) errors: 3"""

SHOWN = """qdisc prio 1: root refcnt 2 bands 2 priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
 Sent 999 bytes 9 pkt (dropped 9, overlimits 0 requeues 0)
 backlog 0b 0p requeues 0
qdisc pfifo 10: parent 1:1 limit 1000p
 Sent 4400000 bytes 22000 pkt (dropped 1, overlimits 0 requeues 0)
 backlog 0b 0p requeues 0
"""


def test_pktgen_result_is_read() -> None:
    assert bench_load.parse_pktgen(PKTGEN) == bench_load.Sent(packets=1000, errors=3)


def test_pktgen_that_did_not_send_is_refused() -> None:
    with pytest.raises(LabError, match="did not send"):
        bench_load.parse_pktgen("Current:\n pkts-sofar: 0\nResult: Idle")


def test_counts_are_those_of_the_qdisc_under_test() -> None:
    assert bench_load.child_counts(SHOWN) == (22000, 1)
    with pytest.raises(LabError, match="no qdisc 10:"):
        bench_load.child_counts(SHOWN.replace(" 10:", " 11:"))


@pytest.mark.parametrize(
    ("flows", "first", "last"),
    [
        (1, "198.18.0.1", "198.18.0.1"),
        (1000, "198.18.0.1", "198.18.3.232"),
        (1_000_000, "10.0.0.1", "10.15.66.64"),
    ],
)
def test_sources_of_pktgen(flows: int, first: str, last: str) -> None:
    lines = bench_load.pktgen_lines(bench_load.Load(flows), 7)
    assert {"count 7", f"src_min {first}", f"src_max {last}"} < set(lines)
    assert ("flag IPSRC_RND" in lines) == (flows > 1)


def test_flow_table_stays_within_what_the_option_takes() -> None:
    many = bench_load.with_flows(bench_load.PLAIN, 1_000_000)
    assert many.args is not None and many.args.endswith(" flows 1048576")
    few = bench_load.with_flows(bench_load.PLAIN, 100_000)
    assert few.args is not None and few.args.endswith(" flows 200000")


BURN = "while True: pass"


@pytest.fixture
def busy(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that works in a directory, as a guest's kernel does."""
    with subprocess.Popen([sys.executable, "-c", BURN], cwd=tmp_path) as process:
        yield process
        process.kill()


def test_clock_tells_the_processor_time_of_the_guest(
    tmp_path: Path, busy: subprocess.Popen[bytes]
) -> None:
    server = bench_clock.Server(tmp_path)
    server.start()
    client = bench_clock.Client(tmp_path)
    try:
        begin = own = client.read()
        end = time.monotonic() + 20
        while own == begin and time.monotonic() < end:
            own = client.read()
    finally:
        server.stop()
    later = int(Path(f"/proc/{busy.pid}/schedstat").read_text().split()[0])
    assert begin < own <= later
    assert bench_clock.guest_process(tmp_path) == busy.pid != os.getpid()


def test_clock_without_an_answer_gives_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_clock, "PATIENCE", 0.02)
    with pytest.raises(LabError, match="does not answer"):
        bench_clock.Client(tmp_path).read()


CASE = bench_icount.Case("pfifo rtp", bench_load.RIVALS[0], "rtp", 100, 2000, 20_000)
CONSOLE = f"""@case pfifo rtp
@cycles 51670955
{SHOWN.replace("dropped 1,", "dropped 0,")}
@end
reboot: Restarting system
"""


def test_instructions_are_read_from_the_console() -> None:
    found = bench_icount.parse(CONSOLE, [CASE])
    assert found["pfifo rtp"]["instructions"] == pytest.approx(2583.54775)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("dropped 0,", "dropped 5,", "5 dropped"),
        ("22000 pkt", "21999 pkt", "21999 passed"),
        ("@cycles", "@fault load @cycles", "not measured"),
        ("@end", "", "not measured"),
    ],
)
def test_packets_that_went_elsewhere_are_no_measurement(old: str, new: str, why: str) -> None:
    with pytest.raises(LabError, match=why):
        bench_icount.parse(CONSOLE.replace(old, new), [CASE])


def test_functions_of_a_profile(tmp_path: Path) -> None:
    (tmp_path / "blocks").write_text("3 1000 1004\n2 1004\n1 2000\n")
    counts = bench_profile.read_counts(tmp_path / "blocks")
    assert counts == {0x1000: 3, 0x1004: 5, 0x2000: 1}
    symbols = bench_profile.read_symbols(
        ["0000000000002000 t late\t[sch_paqm]", "0000000000001000 T early", "1004 d data"]
    )
    assert bench_profile.by_function(dict(counts), symbols) == {"early": 8, "late": 1}


def turns(*values: float) -> list[dict[str, Any]]:
    return [{"ns_per_packet": value} for value in values]


def good_times() -> dict[str, bench_qdisc.Turns]:
    return {
        "qdiscs": {
            "fq_codel": turns(500, 600, 550),
            "paqm": turns(470, 560, 520),
            "paqm media": turns(460, 550, 510),
            "paqm media feedback": turns(470, 560, 520),
        },
        "flows": {
            "1 flows": turns(300, 300, 300),
            "100000 flows": turns(360, 380, 370),
            "100000 flows feedback": turns(363, 383, 373),
        },
    }


def good_counts() -> bench_qdisc.Turns:
    counted: bench_qdisc.Turns = {}
    for case in bench_icount.short_cases():
        few = 1800.0 if case.kind == "rtp" and case.name.startswith("paqm") else 2900.0
        counted[case.name] = [{"instructions": few}, {"instructions": few + 0.5}]
    for case in bench_icount.long_cases():
        counted[case.name] = [{"instructions": 1800.0 if case.flows == 100 else 3000.0}]
    return counted


def failing(timed: dict[str, bench_qdisc.Turns], counted: bench_qdisc.Turns) -> set[str]:
    return {check["name"] for check in bench_qdisc.evaluate(timed, counted) if not check["pass"]}


def test_a_good_benchmark_passes() -> None:
    assert failing(good_times(), good_counts()) == set()


@pytest.mark.parametrize(
    ("part", "name", "values", "check"),
    [
        ("qdiscs", "paqm", (520, 610, 560), "rate against fq_codel: paqm"),
        (
            "qdiscs",
            "paqm media feedback",
            (520, 610, 560),
            "rate against fq_codel: paqm media feedback",
        ),
        ("flows", "100000 flows feedback", (372, 393, 382), "cost of notices to 100000 flows"),
    ],
)
def test_each_slow_path_is_found(
    part: str, name: str, values: tuple[float, ...], check: str
) -> None:
    timed = good_times()
    timed[part][name] = turns(*values)
    assert failing(timed, good_counts()) == {check}


def test_a_cost_that_grows_with_the_flows_is_found() -> None:
    timed = good_times()
    timed["flows"]["1 flows"] = turns(250, 250, 250)
    assert failing(timed, good_counts()) == {"cost of 100000 flows"}


@pytest.mark.parametrize(
    ("name", "values", "check"),
    [
        ("paqm rtp", (1851, 1851), "paqm rtp"),
        ("paqm bandwidth tcp", (2901, 2901), "paqm bandwidth tcp"),
        ("fq udp", (2900, 2903), "repeatability"),
        ("100000 flows", (3901,), "instructions of 100000 flows"),
        ("1000 flows on", (3061,), "instructions of notices to 1000 flows"),
        ("paqm beyond", (2901, 2901), "a packet beyond its fair rate"),
    ],
)
def test_each_instruction_too_many_is_found(
    name: str, values: tuple[float, ...], check: str
) -> None:
    counted = good_counts()
    counted[name] = [{"instructions": value} for value in values]
    assert failing(good_times(), counted) == {check}


def test_processor_time_is_that_of_children_too() -> None:
    begin = sweep_run.processor_time()
    subprocess.run([sys.executable, "-c", "while sum(__import__('os').times()[:2]) < 0.3: pass"])
    assert 0.3 <= sweep_run.processor_time() - begin
