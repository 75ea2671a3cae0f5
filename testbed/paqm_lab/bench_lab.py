# SPDX-License-Identifier: GPL-2.0
"""What the lab's runs cost: `make bench-lab`.

The demonstration's P-AQM half, in processor time of all its processes and without the scores of
pictures, beside as many pictures through x264enc and avdec_h264 and nothing else, on the host. And
a minute of twenty trace flows and TCP, beside real time. Other work on the machine makes both sides
of the first figure dearer, so they take turns; the second is of processor time, too, for a guest
never does two things at once.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

from paqm_lab import cache, checks, clip, lab, run, scenario, trace_scenario
from paqm_lab.errors import LabError
from paqm_lab.sweep_run import processor_time

# As in the streams of the demonstration: its preset, one thread, about its rate.
CODECS = (
    "y4mdec ! x264enc speed-preset=faster tune=zerolatency threads=1 bitrate=2000 ! "
    "avdec_h264 max-threads=1 ! fakesink"
)
RATIO_LIMIT = 1.3
SPEED_LIMIT = 10.0


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def codecs() -> float:
    """Seconds for a picture that is encoded and decoded, natively."""
    file = cache.cache_dir() / "clip.y4m"
    frames = int(json.loads(file.with_suffix(".json").read_text())["frames"])
    command = ["gst-launch-1.0", "-q", "filesrc", f"location={file}", "!", *CODECS.split()]
    begin = processor_time()
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise LabError(f"gst-launch-1.0: {(done.stderr or done.stdout).strip()}")
    return (processor_time() - begin) / frames


def live(out: Path) -> tuple[float, int]:
    """Seconds of the demonstration's P-AQM half, report and all; its pictures."""
    options = run.Options(
        out=out, seed=1, variants=["paqm"], keep_packets=False, repeat_check=False, score=False
    )
    begin = processor_time()
    run.run_scenario(scenario.load("demo"), options, say)
    used = processor_time() - begin
    result = json.loads((out / "result.json").read_text())
    return used, result["variants"][0]["figures"]["encoder"]["frames"]


def traces(out: Path, house: lab.Lab) -> float:
    """Virtual seconds of the trace flows for a second of processor time."""
    path, data = scenario.read("trace-twenty")
    flows = trace_scenario.check(path, data)
    begin = processor_time()
    trace_scenario.run(flows, data["variant"], 1, out, house, say)
    return float(data["duration"] / (processor_time() - begin))


def main() -> int:
    top = argparse.ArgumentParser(description=__doc__)
    top.add_argument(
        "--out", type=Path, default=Path("out/bench-lab"), help="for the results (%(default)s)"
    )
    top.add_argument("--rounds", type=int, default=1, help="the median counts (%(default)s)")
    args = top.parse_args()
    try:
        out = args.out.resolve()
        house = lab.ready(say)  # and what else is made once
        trace_scenario.prepare_ladder(clip.prepare(cache.cache_dir(), say), say)
        turns: list[dict[str, Any]] = []
        for _ in range(args.rounds):
            say("bench-lab: codecs alone")
            before = codecs()
            used, pictures = live(out / "demo")
            alone = pictures * (before + codecs()) / 2
            turns.append(
                {
                    "pictures": pictures,
                    "alone_s": alone,
                    "live_s": used,
                    "ratio": used / alone,
                    "speed": traces(out / "trace", house),
                }
            )
            say("bench-lab: " + ", ".join(f"{key} {turns[-1][key]:.4g}" for key in turns[-1]))
        ratio, speed = (median(turn[key] for turn in turns) for key in ("ratio", "speed"))
        result = {
            "format": 1,
            "scenario": "bench-lab",
            "seed": 1,
            "turns": turns,
            "checks": [
                checks.entry(
                    "paqm",
                    "a live run",
                    round(ratio, 2),
                    "<=",
                    RATIO_LIMIT,
                    "times its codecs alone",
                    "processor time",
                ),
                checks.entry(
                    "paqm",
                    "20 trace flows and TCP",
                    round(speed, 1),
                    ">=",
                    SPEED_LIMIT,
                    "times real time",
                    "processor time",
                ),
            ],
        }
        (out / "result.json").write_text(json.dumps(result, indent=1) + "\n")
        return checks.print_table(out)
    except LabError as err:
        say(f"bench-lab: {err}")
        return 2
