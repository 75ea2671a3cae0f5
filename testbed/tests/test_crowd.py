# SPDX-License-Identifier: GPL-2.0
"""A hundred streams at once: nobody waits for all others."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from paqm_lab import cache

SCENARIO = """
name = "crowd"
title = "A hundred trace flows begin at once"
duration = 14
seed = 1

[path]
bottleneck = "30mbit"
rtt_ms = 40

[trace]
flows = 100
rate_max = "1mbit"
spread = 0.5

[[variant]]
name = "paqm"
qdisc = "paqm bandwidth {bottleneck} feedback icmp gop 500ms media-target 10ms"
"""
# ms: `credit` of eight such flows' worth, which the common queue may be ahead, and what one flow's
# queue holds. It was 1606: all others' packets went first whenever one more began to wait.
LONGEST = 1000


@pytest.mark.lab
def test_nobody_waits_for_all_others(tmp_path: Path) -> None:
    file = tmp_path / "crowd.toml"
    file.write_text(SCENARIO)
    words = [cache.TESTBED / "paqm-lab", "run", file, "--out", tmp_path / "out"]
    subprocess.run(words, check=True, capture_output=True)
    figures = json.loads((tmp_path / "out" / "result.json").read_text())["variants"][0]["figures"]
    assert figures["delay_ms"]["max"] < LONGEST
    assert figures["jain"] > 0.995
    assert figures["media_loss"]["percent"] < 2.5
