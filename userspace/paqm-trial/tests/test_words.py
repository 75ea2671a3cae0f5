#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What paqm-trial's command line says of itself and of wrong words."""

from __future__ import annotations

import os
import re
import subprocess
import unittest

from test_trial import HERE, Case, cli


class Words(Case):
    def test_version(self) -> None:
        """That of the project, also in the manual page."""
        top = HERE.parents[2]
        version = re.search(r"version: '([^']+)'", (top / "meson.build").read_text())
        assert version
        self.assertEqual(cli.VERSION, version[1])

    def test_wrong_commands(self) -> None:
        for words in (
            [],
            ["x"],
            ["call", "--secret", "/none", "h"],
            ["router", "a/b", "--bandwidth", "1mbit"],
            ["router", "none0", "--bandwidth", "1mbit"],
            ["end", "..", "--dir", str(self.home)],
            ["forget", "--dir", str(self.home)],
        ):
            with self.subTest(words=words):
                self.assertEqual(cli.main(words), 2)

    def test_reader_leaves(self) -> None:
        """Of what it prints, as `head` does: no word about it, and no traceback."""
        reader, writer = os.pipe()
        os.close(reader)
        with open(writer, "w") as pipe:
            done = subprocess.run(
                [HERE.parent / "paqm-trial", "check", "none0"], stdout=pipe, stderr=subprocess.PIPE
            )
        self.assertEqual(done.returncode, 1)
        self.assertNotIn(b"ipe", done.stderr)


if __name__ == "__main__":
    unittest.main()
