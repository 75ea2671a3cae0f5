# SPDX-License-Identifier: GPL-2.0
"""Many TCP flows from one program to another."""

import json
import subprocess
import sys
import time

from paqm_lab import cache

PORT = 35201
ANYBODY = ["--to", "127.0.0.1", "--congestion-control", "reno"]  # of others hosts allow root only


def test_many_flows_share_a_program() -> None:
    command = [sys.executable, "-m", "paqm_lab.bulk", "--port", str(PORT)]
    options = {"cwd": cache.TESTBED, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([*command, "--flows", "3"], **options) as sink:  # type: ignore[call-overload]
        time.sleep(1)
        send = [*command, *ANYBODY, "--starts", "0.1,0,0.2", "--seconds", "0.5"]
        sent = json.loads(subprocess.run(send, **options, timeout=20).stdout)  # type: ignore[call-overload]
        got = json.loads(sink.communicate(timeout=20)[0])
    assert sent["bytes"] > 0 and len(got["each"]) == 3
    assert min(got["each"]) > 0 and sum(got["each"]) == got["bytes"]


def test_files_one_after_the_other() -> None:
    command = [sys.executable, "-m", "paqm_lab.bulk", "--port", str(PORT + 10)]
    command += ["--files", "1000-2000", "--seconds", "1.5"]
    options = {"cwd": cache.TESTBED, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **options) as sink:  # type: ignore[call-overload]
        time.sleep(0.5)
        send = [*command, *ANYBODY, "--idle", "0.1", "--seconds", "0.7"]
        sent = json.loads(subprocess.run(send, **options, timeout=20).stdout)  # type: ignore[call-overload]
        got = json.loads(sink.communicate(timeout=20)[0])
    assert len(sent["files"]) > 1 and sent["bytes"] == got["bytes"]
    assert all(1000 <= size <= 2000 and took is not None for _, size, took in sent["files"])


def test_bins_have_all_that_came() -> None:
    command = [sys.executable, "-m", "paqm_lab.bulk", "--port", str(PORT + 20)]
    options = {"cwd": cache.TESTBED, "stdout": subprocess.PIPE, "text": True}
    end = ["--flows", "2", "--window", "9600", "--epoch", str(time.time_ns()), "--bin", "0.05"]
    with subprocess.Popen([*command, *end], **options) as sink:  # type: ignore[call-overload]
        time.sleep(1)
        send = [*command, *ANYBODY, "--starts", "0,0.1", "--seconds", "0.6"]
        subprocess.run([*send, "--mss", "960"], **options, timeout=20)  # type: ignore[call-overload]
        got = json.loads(sink.communicate(timeout=20)[0])
    assert [sum(bins) for bins in got["bins"]] == got["each"] and min(got["each"]) > 0
