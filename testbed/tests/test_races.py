# SPDX-License-Identifier: GPL-2.0
"""What `paqm-lab races` reads from a guest's console; the guest itself is `make races`."""

import shutil
from pathlib import Path

import pytest

from paqm_lab import cache, races
from paqm_lab.errors import LabError

CLEAN = "@notices 12\r\n@round 1\r\nWarning: paqm: each transmit queue\r\n@round 2\r\n" + (
    "enabled: 1\r\nsetup_watchpoints: 290070\r\ndata_races: 0\r\n@end\r\n"
)
RACE = "BUG: KCSAN: data-race in paqm_dequeue [sch_paqm] / paqm_dump_stats [sch_paqm]"


def failing(console: str, rounds: int = 2) -> set[str]:
    found = races.read(console)
    return {check["name"] for check in races.judge(found, rounds) if not check["pass"]}


def test_a_clean_console() -> None:
    assert failing(CLEAN) == set()


@pytest.mark.parametrize(
    ("line", "failed"),
    [
        (RACE, "races"),
        ("[   12.3] BUG: KCSAN: race at unknown origin, with read to paqm_enqueue", "races"),
        ("BUG: unable to handle page fault for address: 00000000deadbeef", "complaints"),
        ("[    9.1] WARNING: CPU: 1 PID: 77 at net/sched/sch_api.c:800", "complaints"),
        ("@fault tc qdisc change dev v0", "complaints"),
        ("not ok torture: seed 1 epoch 0 operation 7: stays after 900 s", "complaints"),
    ],
)
def test_what_fails(line: str, failed: str) -> None:
    assert failing(line + "\r\n" + CLEAN) == {failed}


def test_a_guest_that_stops_has_done_nothing() -> None:
    assert failing(CLEAN.replace("@end", "")) == {"rounds"}
    assert failing(CLEAN, rounds=3) == {"rounds"}
    assert failing(CLEAN.replace("290070", "12")) == {"accesses_watched"}
    assert failing(CLEAN.replace("@notices 12", "@notices 0")) == {"notices"}


def test_other_kernels_watch_no_accesses() -> None:
    console = CLEAN.replace("290070", "0")
    for kernel in ("kasan", "rt"):
        assert all(check["pass"] for check in races.judge(races.read(console), 2, kernel))
    report = "BUG: KASAN: slab-use-after-free in planted_in_dequeue+0x1/0x2 [sch_paqm]\r\n"
    found = races.judge(races.read(report + console), 2, "kasan")
    assert {check["name"] for check in found if not check["pass"]} == {"complaints"}


def test_a_pair_counts_once() -> None:
    assert races.read(f"{RACE}\r\n{RACE}\r\n").races == [RACE.removeprefix("BUG: KCSAN: ")]


@pytest.mark.parametrize("kernel", races.KERNELS.values(), ids=races.KERNELS)
def test_a_fault_is_planted_in_a_copy(kernel: races.Kernel, tmp_path: Path) -> None:
    (tmp_path / "kernel").mkdir()
    copy = tmp_path / "kernel" / "sch_paqm.c"
    shutil.copy(cache.REPO / "kernel" / "sch_paqm.c", copy)
    races.plant(tmp_path, kernel.planted)
    assert "\t.dequeue = planted_dequeue," in copy.read_text()
    with pytest.raises(LabError, match="to plant a race at"):
        races.plant(tmp_path, kernel.planted)
