#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""An encoder that is too slow: paqm-streamer leaves pictures out and shows none late. In real time:
what is judged is how far the last picture is behind, which would be most of the run's length.
"""

import csv
import subprocess
import sys
import tempfile
from pathlib import Path

SECONDS, FPS = 6, 120  # of these the slowest preset of x264 takes a few


def main() -> int:
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run(
            [sys.argv[1], "send", "--to", "127.0.0.1:9", "--paqmd", "none", "--source", "test",
             "--duration", str(SECONDS), "--fps", str(FPS), "--log", home, "--no-breaker",
             "--encoder", "x264enc speed-preset=placebo threads=1"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        with (Path(home) / "frames.csv").open() as file:
            times = [int(row["t_ns"]) / 1e9 for row in csv.DictReader(file)]
    left_out = SECONDS * FPS - len(times)
    behind = SECONDS - (times[-1] - times[0])
    print(f"{len(times)} pictures, {left_out} left out, the last {behind:.2f} s before the end")
    print(done.stdout, done.stderr)
    return done.returncode or behind > SECONDS / 2 or "too slow" not in done.stderr


if __name__ == "__main__":
    sys.exit(main())
