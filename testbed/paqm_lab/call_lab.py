# SPDX-License-Identifier: GPL-2.0
"""`make call-demo`: a call of two minutes between two hosts of the lab, recorded and reported.

Camera and microphone of both ends are the clip and its sound. Both directions cross a bottleneck
with P-AQM; in one of them a TCP flow joins for half of the time. Writes the two recordings with
their reports, and result.json with the `checks` of both.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from paqm_lab import cache, call_report, clip, lab, uml
from paqm_lab.checks import entry, print_table
from paqm_lab.errors import LabError

DURATION = 120
TCP = (30, 90)  # s between which a TCP flow shares the caller's way
ENDS = ("caller", "listener")
CAPTURE_MS = 5.0
VARIANT = {"shaper": None, "qdisc": "paqm bandwidth 3mbit feedback icmp"}


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def run(out: Path, seed: int) -> None:
    """The call, in one guest."""
    source = clip.prepare(cache.cache_dir(), say)
    sound = clip.prepare_sound(cache.cache_dir(), say)
    house = lab.ready(say)
    lab.make_way(out)
    config = {
        "out": str(out),
        "build": lab.BUILD,
        "modules": str(house.modules),
        "clip": str(source),
        "sound": str(sound),
        "duration": DURATION,
        "tcp": TCP,
        "rate_max": "2mbit",
        "path": {"bottleneck": 3_000_000, "rtt_ms": 40},
        "variant": VARIANT,
    }
    house.tell(config, out)
    say(f"call-demo: a call of {DURATION} s")
    job = house.job("call_guest", out, out / "job", seed=seed, timeout=3000)
    result = uml.run(house.kernel, job)
    if not result.good or result.status:
        log = out / "job" / "output.log"
        said = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
        raise LabError(f"the call failed: {said[-1] if said else result.explain()}")


def capture_error(shown_by: Path, sent_by: Path) -> float:
    """How far the capture times that one end knows of are from those of the other end, ms.

    The lab's ends share a clock; the largest difference, from SETTLE on.
    """
    here, there = call_report.load(shown_by), call_report.load(sent_by)
    known = here.tables["video"]["capture_ns"] > 0
    capture = here.tables["video"]["capture_ns"][known]
    capture = capture[capture > capture[0] + call_report.SETTLE * 1e9]
    true = np.sort(there.tables["frames"]["t_ns"])
    at = np.clip(np.searchsorted(true, capture), 1, len(true) - 1)
    nearest = np.minimum(np.abs(capture - true[at - 1]), np.abs(true[at] - capture))
    return float(nearest.max()) / 1e6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/call"),
                        help="for the results (%(default)s)")
    parser.add_argument("--seed", type=uml.seed, default=1, help="seed of the run (%(default)s)")
    args = parser.parse_args()
    out = args.out.resolve()
    try:
        with lab.alone_in(out):
            run(out, args.seed)
        checks = []
        for name in ENDS:
            say(f"call-demo: {call_report.write(out / name)}")
            checks += json.loads((out / name / "result.json").read_text())["checks"]
        for name, other in (ENDS, ENDS[::-1]):
            error = round(capture_error(out / name, out / other), 3)
            source = f"{name}/video.csv against {other}/frames.csv: lip sync and age rest on these"
            checks.append(
                entry(name, "capture_time_error", error, "<=", CAPTURE_MS, "ms", source + " times")
            )
        result = {"version": 1, "scenario": "call", "seed": args.seed, "checks": checks}
        (out / "result.json").write_text(json.dumps(result, indent=1) + "\n")
        return print_table(out)
    except LabError as err:
        say(f"paqm-lab: {err}")
        return 2
