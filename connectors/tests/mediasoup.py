#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The module for mediasoup with the real paqmd and the documented interface: a fall is set at
once, a rise slowly, none without advice below the ceiling, and a closed transport is given up.

Usage: mediasoup.py PAQMD PAQMCTL PAQM-FOLLOW
"""

from __future__ import annotations

import json
import select
import subprocess
import sys
import time
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "feedback-daemon" / "tests"))
sys.path.insert(0, str(TOP / "feedback-daemon" / "wireshark"))

import wire  # noqa: E402
from rig import DPORT, PATIENCE, ROUTER_IP, SPORT, Trial, quote, run_checks  # noqa: E402

CEILING, HEADERS, RISE = 2_000_000, 1.05, 1.08


def said(process: subprocess.Popen[bytes], patience: float = PATIENCE) -> int | None:
    """The rate that is set next."""
    assert process.stdout
    if not select.select([process.stdout], [], [], patience)[0]:
        return None
    line = json.loads(process.stdout.readline())
    assert "set" in line, line
    return int(line["set"])


def check(t: Trial, follow: str) -> None:
    """From no advice to none."""
    t.start("-i", "veth0")
    process = subprocess.Popen(
        ["node", str(TOP / "connectors" / "tests" / "mediasoup.js"), follow, str(t.ipc), str(SPORT),
         ROUTER_IP, str(DPORT)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    t.until(lambda: len(t.ask("flows")["flows"]) == 1, "the flow to be registered")
    assert said(process) == CEILING
    t.answer(wire.build(quote(t.send_media()), 1, 525_000, period=5000))
    assert said(process) == 500_000
    print("ok: a fall", flush=True)
    begin = time.monotonic()
    t.answer(wire.build(quote(t.send_media()), 2, 1_050_000, period=5000))
    rates = [500_000]
    while rates[-1] < 600_000:
        rate = said(process)
        assert rate and 1 < rate / rates[-1] < RISE + 0.001, (rates, rate)
        rates.append(rate)
    assert time.monotonic() - begin > 1, "a rise at once"
    print(f"ok: a rise by steps: {rates}", flush=True)
    assert process.stdin
    process.stdin.write(b"x")
    t.until(lambda: not t.ask("flows")["flows"], "the flow to be given up")
    process.stdin.close()
    assert process.wait(PATIENCE) == 0
    t.stop()
    print("ok: a closed transport", flush=True)


if __name__ == "__main__":
    sys.exit(run_checks("PAQMD PAQMCTL PAQM-FOLLOW", [check]))
