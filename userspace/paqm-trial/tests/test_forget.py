#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What the trial kit deletes when, and what not."""

from __future__ import annotations

import os
import sys
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE), str(HERE.parent)]

import folders  # noqa: E402
from paqm_trial import cli, store  # noqa: E402
from paqm_trial.store import Trouble  # noqa: E402
from test_trial import Case  # noqa: E402


class Forget(Case):
    def test_age(self) -> None:
        folder = self.home / "data"
        store.open_folder(folder, "call", 30)
        for name, days in (("young", 29.5), ("old", 30.5)):
            path = folder / "calls" / name
            path.mkdir(parents=True)
            (path / "about.json").write_text("{}")
            os.utime(path, (time.time() - days * 86400,) * 2)
        (folder / "calls/away").symlink_to(self.home)
        self.assertEqual(store.forget(folder), ["old"])
        self.assertEqual([path.name for path in store.calls_of(folder)], ["young"])
        with self.assertRaises(Trouble):
            store.forget(folder, call="../..")
        os.utime(folder / "calls/young", (time.time() + 3600,) * 2)  # the clock was set since
        self.assertEqual(cli.main(["forget", "--all", "--dir", str(folder)]), 0)
        self.assertEqual(store.calls_of(folder), [])
        self.assertTrue(self.home.exists())
        self.assertEqual(cli.main(["forget", "--all", "--dir", str(self.home)]), 2)

    def test_each_call_by_its_own_days(self) -> None:
        """Neither shorter nor longer than those in it were told, whatever the next one is told."""
        folder = self.home / "data"
        store.open_folder(folder, "call", 90)
        for name, keep, days in (("long", 400, 200), ("short", 10, 20), ("odd", "x", 91)):
            folders.dump(folder / "calls" / name / "about.json", {"keep_days": keep})
            os.utime(folder / "calls" / name, (time.time() - days * 86400,) * 2)
        self.assertEqual(store.forget(folder), ["odd", "short"])
        self.assertEqual(store.forget(folder, older_days=199), ["long"])


if __name__ == "__main__":
    unittest.main()
