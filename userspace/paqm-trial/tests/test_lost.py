#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What the report says of a call that has lost a device, or room on the disk, for a while.

With a real call: lab_trial.py, in a guest.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import sys
import unittest
from pathlib import Path
from unittest import mock

HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE), str(HERE.parent)]

import folders  # noqa: E402
from folders import BEGIN, Clock, S  # noqa: E402
from paqm_trial import cli, store  # noqa: E402
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

    def test_pictures_lost_beside_it(self) -> None:
        """Those before and after the camera was gone may not have come."""
        places = self.places()
        folders.call(places, {"caller": NONE, "callee": NONE}, "c1", BEGIN, stall=1)
        record = {end: places[end] / f"calls/c1-{end}/record" for end in places}
        events = [[BEGIN + 10 * S, "lost", '"camera"'], [BEGIN + 11 * S, "back", '"camera"']]
        folders.table(record["caller"] / "events.csv", "t_ns,event,detail", events)
        head, *rows = (record["callee"] / "rx.csv").read_text().splitlines()
        _, *sent = (record["caller"] / "frames.csv").read_text().splitlines()
        frames = [row.split(",") for row in sent]
        gone = {stamp for t, stamp, *_ in frames if 9.9 * S < int(t) - BEGIN < 11.1 * S}
        self.assertEqual(len(gone), 3)
        cells = [row.split(",") for row in rows]
        kept = [list(row) for row in cells if row[2] not in gone]
        folders.table(record["callee"] / "rx.csv", head, kept)
        row = self.merged()["calls"][0]
        self.assertEqual(row["to_callee"]["freezes"], 0)
        self.assertIn("a device was lost: 1 s", str(row["problems"]))

    def test_disk_that_was_full(self) -> None:
        """Packets and pictures of which no line could be written are neither lost nor frozen."""
        places = self.places()
        folders.call(places, {"caller": NONE, "callee": NONE}, "c1", BEGIN)
        callee = places["callee"] / "calls/c1-callee"
        for name, column in (("rx.csv", 0), ("video.csv", 1)):
            head, *rows = (callee / "record" / name).read_text().splitlines()
            cells = [row.split(",") for row in rows]
            full = range(BEGIN + 30 * S, BEGIN + 40 * S)
            kept = [row for row in cells if int(row[column]) not in full]
            folders.table(callee / "record" / name, head, [list(row) for row in kept])
        about = json.loads((callee / "about.json").read_text())
        for more, known in (
            ({}, True),
            ({"disk_full": True, "status": 0}, True),  # nearly: the record is whole
            ({"disk_full": False, "status": 1}, True),
            ({"disk_full": True, "status": 1}, False),
        ):
            folders.dump(callee / "about.json", about | more)
            with self.subTest(more=more):
                row = self.merged()["calls"][0]
                bad, good = row["to_callee"], row["to_caller"]
                self.assertEqual((good["freezes"], good["loss_percent"]), (0, 0))
                self.assertAlmostEqual(bad["frame_delivery_ms"]["p95"], 20.3, delta=1)
                self.assertEqual("callee: the disk was full" in str(row["problems"]), not known)
                if known:
                    self.assertEqual(bad["freezes"], 1)
                    self.assertAlmostEqual(bad["loss_percent"], 100 / 6, delta=0.5)
                    continue
                gone = ("rate_kbps", "loss_percent", "frames_complete", "freezes")
                gone += ("freezes_per_min", "frozen_percent")
                self.assertEqual([bad[key] for key in gone], [None] * 6)

    def test_it_is_noted(self) -> None:
        """By the call, whose disk has room again when it ends."""
        program = self.home / "paqm-streamer"
        program.write_text(
            "#!/bin/sh\n"
            'while [ "$1" != --record ]; do shift; done\n'
            'mkdir "$2"; echo {} >"$2/call.json"; exit 1\n'
        )
        program.chmod(0o755)
        secret, data = self.home / "secret", self.home / "data"
        secret.touch(0o600)
        words = ["192.0.2.7", "--consent", "on-paper", "--secret", secret, "--dir", data]
        for room, noted in ((lambda path: 2**40, False), (lambda path: store.LAST_FREE - 1, True)):
            with (
                mock.patch.dict(os.environ, PATH=f"{self.home}:{os.environ['PATH']}"),
                mock.patch.object(store, "free_bytes", room),
                mock.patch.object(store, "LEAST_FREE", 0),
                contextlib.redirect_stderr(io.StringIO()) as said,
            ):
                self.assertEqual(cli.main(["call", *map(str, words)]), 1)
            (about,) = data.glob("calls/*/about.json")
            self.assertEqual(json.loads(about.read_text())["disk_full"], noted)
            self.assertEqual("the disk is nearly full" in said.getvalue(), noted)
            shutil.rmtree(about.parent)


if __name__ == "__main__":
    unittest.main()
