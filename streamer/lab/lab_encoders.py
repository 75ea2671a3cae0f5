#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Encoders of others behind `send --encoder`, inside a lab guest: the rate follows the router's.

Prints `ok NAME` or `not ok NAME: why`. One stream alone on a bottleneck of 700 kbit/s that becomes
one of 350 kbit/s and returns; its router tells it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import mean

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "kernel" / "lab-tests"))
import carriers  # noqa: E402
from test_loopback import write_clip  # noqa: E402

ENCODERS = ("paqmh264enc", "x264enc", "openh264enc", "vp8enc", "vp9enc")
HIGH, LOW = 700, 350  # kbit/s
STEPS = (7.0, 14.0)  # s of the stream
SECONDS = 21.0
SETTLED = 4.0  # s after a step; VBV and key frames of other encoders take seconds


def follow(build: Path, encoder: str) -> None:
    carriers.queue(f"bandwidth {HIGH}kbit feedback icmp")
    stream = carriers.Stream(build, SECONDS, f"--encoder {encoder}")
    begin = stream.begin
    for step, rate in zip(STEPS, (LOW, HIGH), strict=True):
        time.sleep(max(0.0, begin + step - time.time()))
        carriers.inside("r", "tc", "qdisc", "change", "dev", "rv", "root", "handle", "1:", "paqm",
                        "bandwidth", f"{rate}kbit")
    time.sleep(begin + SECONDS + 2 - time.time())
    stream.finish()
    pictures = stream.rows("send", "frames.csv")
    carriers.check(f"{encoder}: all pictures were decoded",
                   [row["rtp_ts"] for row in stream.rows("recv", "decoded.csv")]
                   == [row["rtp_ts"] for row in pictures])
    told = stream.rows("send", "feedback.csv")
    for first, last, limit in ((0.0, STEPS[0], HIGH), (*STEPS, LOW), (STEPS[1], SECONDS, HIGH)):
        rates = [float(row["rate_bps"]) for row in told
                 if begin + first + 1 < int(row["t_ns"]) / 1e9 < begin + last]
        # The clip does not need more than some 500 kbit/s at the finest quantizer of some.
        carriers.within(f"{encoder}: told at {limit} kbit/s", mean(rates) / 1000, 0.85 * limit,
                        limit)
        share = stream.received(first + SETTLED, last) / mean(rates)
        carriers.within(f"{encoder}: sent of what it was told at {limit} kbit/s", share,
                        0.5 if limit == HIGH else 0.75, 1.05)


def main() -> int:
    ap = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    ap.add_argument("--build", type=Path, default=TOP / "build", help="Meson build directory")
    ap.add_argument("encoder", nargs="*", help=f"only these of {', '.join(ENCODERS)}")
    args = ap.parse_args()
    build = (TOP / args.build).resolve()
    modules = Path(os.environ["PAQM_KO_DIR"])
    for module in ("paqm_feedback.ko", "sch_paqm.ko"):
        carriers.run("insmod", str(modules / module))
    carriers.network()
    write_clip(carriers.CLIP)
    for encoder in args.encoder or ENCODERS:
        known = subprocess.run(["gst-inspect-1.0", "--exists", encoder], check=False).returncode
        if known and encoder != ENCODERS[0]:
            print(f"not installed: {encoder}")
            continue
        follow(build, encoder)
    carriers.inside("r", "tc", "qdisc", "del", "dev", "rv", "root")
    carriers.run("rmmod", "sch_paqm", "paqm_feedback")
    print(f"{carriers.passed} passed, {carriers.failed} failed")
    return carriers.failed != 0


if __name__ == "__main__":
    sys.exit(main())
