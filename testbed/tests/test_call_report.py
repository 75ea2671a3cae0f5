# SPDX-License-Identifier: GPL-2.0
"""The report of a recorded call: freezes between pictures, before the first and behind the last."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from paqm_lab import call_report

LONG = 120.0  # s of the call; its sound has no gap


def freezes(where: Path, pictures: np.ndarray, cut_off: bool) -> tuple[int, bool]:
    """What the report of a call says that showed pictures at these seconds."""
    (where / "call.json").write_text(json.dumps({"version": 1, "t0_ns": 0}))
    for name, times in (("video", pictures), ("audio", np.arange(0.2, LONG - 0.1, 0.02))):
        rows = [f"{round(t * 1e9)},{round((t - 0.1) * 1e9)}" for t in times]
        (where / f"{name}.csv").write_text("\n".join(["play_ns,capture_ns", *rows]) + "\n")
    if not cut_off:
        events = f't_ns,event,detail\n0,begin,"peer"\n{round(LONG * 1e9)},end,"hung up"\n'
        (where / "events.csv").write_text(events)
    rec = call_report.load(where)
    found = call_report.figures(rec)
    check = next(c for c in call_report.checks(rec, found) if c["name"] == "freezes")
    return found["freezes"], check["pass"]


@pytest.mark.parametrize("cut_off", [False, True])
@pytest.mark.parametrize(
    ("first", "last", "frozen"),
    [
        (0.5, LONG - 0.1, 0),
        (4.9, LONG - 0.7, 0),  # a call needs time for its begin and its end
        (0.5, 10.0, 1),  # for good, while the sound goes on
        (0.5, LONG - 1.5, 1),
    ],
)
def test_a_picture_that_stops_for_good_is_a_freeze(
    tmp_path: Path, first: float, last: float, frozen: int, cut_off: bool
) -> None:
    pictures = np.arange(first, last, 1 / 24)
    assert freezes(tmp_path, pictures, cut_off) == (frozen, frozen == 0)


def test_a_picture_that_comes_late_is_a_freeze(tmp_path: Path) -> None:
    assert freezes(tmp_path, np.arange(60, LONG - 0.1, 1 / 24), False) == (1, False)


def test_a_gap_between_pictures_is_a_freeze(tmp_path: Path) -> None:
    pictures = np.append(np.arange(0.5, 20, 1 / 24), np.arange(20.3, LONG - 0.1, 1 / 24))
    assert freezes(tmp_path, pictures, False) == (1, False)


def test_a_call_that_was_killed_has_a_report(tmp_path: Path) -> None:
    """Of a file it had little for there is nothing yet, of another half a line."""
    freezes(tmp_path, np.arange(0.5, LONG - 0.1, 1 / 24), False)
    about = {"name": "a", "peer": "::1", "peer_name": "b", "rate_max": 10**6, "program": "1"}
    (tmp_path / "call.json").write_text(json.dumps({"version": 1, "t0_ns": 0, **about}))
    (tmp_path / "rtcp.csv").touch()
    with (tmp_path / "events.csv").open("a") as file:
        file.write("120000")
    text = call_report.write(tmp_path).read_text()
    assert "<td>begin</td>" in text and "120000" not in text
    for name in ("video", "events"):
        (tmp_path / f"{name}.csv").write_text("")
    found = json.loads((call_report.write(tmp_path).parent / "result.json").read_text())
    assert found["figures"]["pictures_shown"] == 0 and not found["checks"][0]["pass"]
