#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Encoders of others behind `send --encoder`, inside a lab guest: the rate follows the router's.

Prints `ok NAME` or `not ok NAME: why`. One stream alone on a bottleneck of 700 kbit/s that becomes
one of 350 kbit/s and returns; its router tells it.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import time
from pathlib import Path
from statistics import mean, median

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "kernel" / "lab-tests"))
import stream_lab  # noqa: E402
import trial  # noqa: E402

ENCODERS = ("paqmh264enc", "x264enc", "openh264enc", "vp8enc", "vp9enc")
HIGH, LOW = 700, 350  # kbit/s
STEPS = (8.0, 16.0)  # s of the stream
SECONDS = 24.0
SETTLED = 4.0  # s after a step; VBV and key frames of other encoders take seconds
WIDTH, HEIGHT, FRAMES = 320, 192, 96


def write_noise(path: Path) -> None:
    """Weak noise that moves, and a part of it new in each picture: takes any rate it is given."""
    dice = random.Random(3)
    weak = bytes(120 + (n & 15) for n in range(256))
    rows = [dice.randbytes(WIDTH + 4 * FRAMES).translate(weak) for _ in range(HEIGHT + FRAMES)]
    chroma = bytes([128]) * (WIDTH * HEIGHT // 2)
    with path.open("wb") as file:
        file.write(f"YUV4MPEG2 W{WIDTH} H{HEIGHT} F24:1 Ip C420jpeg\n".encode())
        for n in range(FRAMES):
            file.write(b"FRAME\n")
            for y in range(HEIGHT):
                fresh = (y // 16 + n) % 12 == 0
                file.write(dice.randbytes(WIDTH).translate(weak) if fresh
                           else rows[y + n // 2][2 * n : 2 * n + WIDTH])
            file.write(chroma)


def follow(build: Path, encoder: str) -> None:
    stream_lab.queue(f"bandwidth {HIGH}kbit feedback icmp")
    stream = stream_lab.Stream(build, SECONDS, f"--encoder {encoder}")
    begin = stream.begin
    for step, rate in zip(STEPS, (LOW, HIGH), strict=True):
        time.sleep(max(0.0, begin + step - time.time()))
        trial.inside("r", "tc", "qdisc", "change", "dev", "rv", "root", "handle", "1:", "paqm",
                        "bandwidth", f"{rate}kbit")
    time.sleep(begin + SECONDS + 2 - time.time())
    stream.finish()
    captured = {row["rtp_ts"]: int(row["t_ns"]) for row in stream.rows("send", "frames.csv")}
    decoded = stream.rows("recv", "decoded.csv")
    late = median((int(row["t_ns"]) - captured[row["rtp_ts"]]) / 1e6 for row in decoded)
    trial.within(f"{encoder}: median age of a picture when it is decoded, ms", late, 10,
                    60 if encoder == ENCODERS[0] else 200)
    # Only our own encoder keeps every picture within what the bottleneck can take; after a loss
    # there must be a new key frame at once.
    trial.within(f"{encoder}: pictures decoded of those sent",
                    len(decoded) / len(captured),
                    1 if encoder == ENCODERS[0] else 0.95, 1)
    told = stream.rows("send", "feedback.csv")
    for first, last, limit in ((0.0, STEPS[0], HIGH), (*STEPS, LOW), (STEPS[1], SECONDS, HIGH)):
        rates = [float(row["rate_bps"]) for row in told
                 if begin + first + SETTLED < int(row["t_ns"]) / 1e9 < begin + last]
        trial.within(f"{encoder}: told at {limit} kbit/s", mean(rates) / 1000, 0.6 * limit,
                        limit)
        share = stream.received(first + SETTLED, last) / mean(rates)
        # A sender above its rate loses packets, doubts the advice and then goes by the safety net,
        # from 0.85 of it on (streamer/control/auto.c): encoders of others, now and then.
        trial.within(f"{encoder}: sent of what it was told at {limit} kbit/s", share,
                        0.8 if encoder == ENCODERS[0] else 0.65, 1.05)


def main() -> int:
    ap = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    ap.add_argument("--build", type=Path, default=TOP / "build", help="Meson build directory")
    ap.add_argument("encoder", nargs="*", help=f"only these of {', '.join(ENCODERS)}")
    args = ap.parse_args()
    build = (TOP / args.build).resolve()
    trial.load_modules()
    stream_lab.lay_out()
    write_noise(stream_lab.CLIP)
    for encoder in args.encoder or ENCODERS:
        known = subprocess.run(["gst-inspect-1.0", "--exists", encoder], check=False).returncode
        if known and encoder != ENCODERS[0]:
            print(f"not installed: {encoder}")
            continue
        follow(build, encoder)
    stream_lab.finish()
    trial.unload_modules()
    return trial.summary()


if __name__ == "__main__":
    sys.exit(main())
