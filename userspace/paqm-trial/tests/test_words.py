#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What paqm-trial's command line says of itself and of wrong words."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import sys
import threading
import unittest
from unittest import mock

import folders
from test_trial import HERE, Case, cli

sys.path.insert(0, str(HERE.parents[2] / "clients" / "python"))
from paqm_trial import check  # noqa: E402
from paqmclient import records  # noqa: E402


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

    def say(self, *words: str, out: str | None = None) -> tuple[int, str]:
        """As its own process, without any other program; its status, all that it says."""
        command = [sys.executable, str(HERE.parent / "paqm-trial"), *words]
        with open(out, "w") if out else contextlib.nullcontext(subprocess.PIPE) as stdout:
            done = subprocess.run(
                command, stdout=stdout, stderr=subprocess.PIPE, env={"PATH": "/nonexistent"}
            )
        return done.returncode, ((done.stdout or b"") + done.stderr).decode(errors="replace")

    def test_options_of_a_call(self) -> None:
        """Those of paqm-streamer without the two strokes before them, and one that it asks for."""
        status, said = self.say("call", "h", "--secret", "x", "--sink", "none")
        self.assertEqual((status, "paqm-streamer goes after --" in said), (2, True), said)
        self.assertNotIn("--", self.say("check", "none0", "--bandwith")[1].split("bandwith")[1])
        (self.home / "paqm-streamer").write_text("#!/bin/sh\nexit 2\n")
        (self.home / "paqm-streamer").chmod(0o755)
        secret = self.home / "secret"
        secret.touch(0o600)
        words = ["call", "h", "--secret", str(secret), "--dir", str(self.home / "data")]
        done = subprocess.run(
            [HERE.parent / "paqm-trial", *words, "--consent", "on-paper"],
            capture_output=True,
            text=True,
            env={"PATH": f"{self.home}:{os.environ['PATH']}"},
        )
        self.assertEqual((done.returncode, "as in -- --sink none" in done.stderr), (2, True), done)

    def test_full_disk(self) -> None:
        """For what it prints."""
        for words in (["--help"], ["check", "--help"], ["check", "none0", "--json"]):
            status, said = self.say(*words, out="/dev/full")
            self.assertEqual((status, said[-24:]), (2, "No space left on device\n"), said)

    def test_closed_output(self) -> None:
        program = str(HERE.parent / "paqm-trial")
        for words, status in ((["--version"], 0), (["check", "none0"], 1)):
            command = ["sh", "-c", 'exec "$@" >&-', "sh", sys.executable, program, *words]
            done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
            self.assertEqual((done.returncode, done.stderr), (status, ""))

    def test_paqmd_answers(self) -> None:
        """A socket alone is not enough: a service manager has it also if paqmd cannot start."""
        asked = records.Registration(1, "", 9, "127.0.0.1", 9, 0, 0, 10**6)
        self.assertEqual((check.ASK, asked.fault()), (asked.encode(), 0))
        path = str(self.home / "paqmd.sock")

        def serve(listener: socket.socket, answer: bytes) -> None:
            connection = listener.accept()[0]
            with connection:
                if connection.recv(512) and answer:
                    connection.send(answer)

        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(path)
            listener.listen()
            with mock.patch.dict(os.environ, {"PAQM_SOCKET": path}):
                for answer, verdict in ((b"taken", "ok"), (b"", "fail")):
                    server = threading.Thread(target=serve, args=(listener, answer))
                    server.start()
                    self.assertEqual(check.daemon()[0], verdict)
                    server.join()
                with mock.patch.object(check, "ANSWER_S", 0.1):
                    row = check.daemon()
        self.assertEqual(row[0], "fail")
        self.assertIn("does not answer", row[2])
        for name, said in (("", check.SOCKET), ("/" + 120 * "x", "too long")):
            with mock.patch.dict(os.environ, {"PAQM_SOCKET": name}):
                self.assertIn(said, check.daemon()[2])

    def test_names_that_are_no_text(self) -> None:
        """Of folders, as from a machine with another encoding."""
        folder = self.home / os.fsdecode(b"J\xf6rg")
        folders.dump(folder / "trial.json", folders.about("call"))
        status, said = self.say("report", str(folder), "--out", str(folder / "page"))
        self.assertEqual(status, 0, said)
        self.assertIn("J?rg", (folder / "page" / "report.html").read_text())
        status, said = self.say("check", "--dir", str(folder))
        self.assertEqual(status, 1, said)
        self.assertIn("J\\udcf6rg", said)


if __name__ == "__main__":
    unittest.main()
