#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What the report says of a call that has lost a device for a while.

With a real call: lab_trial.py, in a guest.
"""

from __future__ import annotations

import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE), str(HERE.parent)]

import folders  # noqa: E402
from folders import BEGIN, Clock, S  # noqa: E402
from test_trial import NONE, Case  # noqa: E402


class Lost(Case):
    def test_devices_that_were_lost(self) -> None:
        """No queue makes a picture stand still whose camera is gone, or whose window is closed."""
        places = self.places()
        ends = {"caller": NONE, "callee": Clock(3600 * S, 50e-6)}
        folders.call(places, ends, "c1", BEGIN, stall=2)
        record = {end: places[end] / f"calls/c1-{end}/record" for end in ends}
        shown = (record["callee"] / "video.csv").read_text().splitlines()
        closed = [ends["callee"].at(BEGIN + at * S) for at in (30, 34)]
        seen = [row.split(",") for row in shown[1:]]
        seen = [row for row in seen if not closed[0] < int(row[1]) < closed[1]]
        folders.table(record["callee"] / "video.csv", shown[0], seen)
        row = self.merged()["calls"][0]
        self.assertEqual((row["to_callee"]["freezes"], row["problems"][1:]), (3, []))
        for end, device, lost, back, freezes, frozen in (
            ("caller", "camera", 10, 10.9, 2, 5.05 / 58.95),
            ("caller", "/dev/video2", 9.9, 11, 2, 5.05 / 58.95),
            ("caller", "microphone", 20, 30, 3, 6.1 / 60),
            ("callee", "window", 30, 34, 2, 2.1 / 56),
            ("callee", "loudspeaker", 30, 34, 3, 6.1 / 60),
            ("callee", "window", 30, None, 2, 2.1 / 30),  # it stays closed
        ):
            events = [[ends[end].at(int(BEGIN + lost * S)), "lost", f'"{device}"']]
            if back:
                events.append([ends[end].at(int(BEGIN + back * S)), "back", f'"{device}"'])
            for one in ends:
                (record[one] / "events.csv").unlink(missing_ok=True)
            folders.table(record[end] / "events.csv", "t_ns,event,detail", events)
            with self.subTest(device=device, back=back):
                row = self.merged()["calls"][0]
                bad, good = row["to_callee"], row["to_caller"]
                self.assertEqual((bad["freezes"], good["freezes"]), (freezes, 0))
                self.assertAlmostEqual(bad["frozen_percent"], frozen * 100, delta=0.2)
                told = [text for text in row["problems"] if "device was lost" in text]
                self.assertEqual(len(told), int(freezes < 3), row["problems"])


if __name__ == "__main__":
    unittest.main()
