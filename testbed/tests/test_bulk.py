# SPDX-License-Identifier: GPL-2.0
"""Many TCP flows from one program to another."""

import json
import subprocess
import sys
import time

from paqm_lab import cache

PORT = 35201


def test_many_flows_share_a_program() -> None:
    command = [sys.executable, "-m", "paqm_lab.bulk", "--port", str(PORT)]
    options = {"cwd": cache.TESTBED, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([*command, "--flows", "3"], **options) as sink:  # type: ignore[call-overload]
        time.sleep(1)
        send = [*command, "--to", "127.0.0.1", "--starts", "0.1,0,0.2", "--seconds", "0.5"]
        sent = json.loads(subprocess.run(send, **options, timeout=20).stdout)  # type: ignore[call-overload]
        got = json.loads(sink.communicate(timeout=20)[0])
    assert sent["bytes"] > 0 and len(got["each"]) == 3
    assert min(got["each"]) > 0 and sum(got["each"]) == got["bytes"]
