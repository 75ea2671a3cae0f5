#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Paths that reorder packets, in a lab guest: senders without a router's advice keep their rate.

Prints `ok NAME` or `not ok NAME: why`. The network is that of tests/lab_repair.py, without losses:
what s sends is delayed by 20 ms, give or take 10, so packets that leave close together change
places.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "streamer" / "tests"))
import lab_repair  # noqa: E402
import streams  # noqa: E402
import trial  # noqa: E402
from trial import rows, within  # noqa: E402

from paqm_lab import topology  # noqa: E402
from paqm_lab.topology import netem, pair  # noqa: E402

RATE = 2_000_000
SECONDS = 30


def network() -> None:
    net = pair("s", "v", ("sv", "vs"), ipv6=True)
    net.queue("s", "sv", "root", *netem(20, "10ms"))
    net.queue("v", "vs", "root", *netem(20))
    topology.remove(net)
    topology.make(net)


def judge(build: Path, clip: Path, name: str, send: str, recv: str) -> None:
    """A stream from s to v: what may it send, and what was lost, as its controller sees it?"""
    network()
    home = Path(tempfile.mkdtemp())
    program = build / "streamer" / "paqm-streamer"
    receiver = streams.receive(program, lab_repair.TO, home / "r", "--seed", 2, *recv.split(),
                               host="v")  # fmt: skip
    sender = streams.send(program, lab_repair.TO, home / "s", clip, "--loop", "--rate-max", RATE,
                          "--seed", 1, "--duration", SECONDS, *send.split(), host="s")
    time.sleep(SECONDS)
    said, heard = streams.finish(receiver, sender)
    for line in (*said.splitlines()[1:], *heard.splitlines()[1:]):
        print(f"# {name}: {line}", flush=True)
    frames = rows(home / "s" / "frames.csv")
    rates = [int(f["allowance_bps"]) / RATE for f in frames]
    print(f"# {name}: share of its highest rate in each second "
          f"{[round(rate, 2) for rate in rates[::24]]}", flush=True)
    lost = [float(row["value"]) for row in rows(home / "s" / "control.csv")
            if row["key"] == "p_loss"]  # fmt: skip
    half = sorted(rates[len(rates) // 2 :])
    within(f"{name}: lost, as the controller sees it, per cent", 100 * max(lost[len(lost) // 4 :]),
           0, 0.1)  # fmt: skip
    # with losses 0.3; jitter itself is taken for queues of some milliseconds
    within(f"{name}: rate in the last 15 s, share of its highest, median", half[len(half) // 2],
           0.5, 1.01)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--build", type=Path, default=TOP / "build")
    args = parser.parse_args()
    clip = Path("/run/tmp/clip.y4m")
    trial.write_noise(clip, lab_repair.WIDTH, lab_repair.HEIGHT,
                      bytes(112 + b % 32 for b in range(256)))  # fmt: skip
    for name, send, recv in (
        ("auto", "--controller auto", ""),
        ("nada", "--controller nada", ""),
        ("auto, RFC 8888", "--controller auto", "--feedback rfc8888"),
    ):
        judge(args.build.resolve(), clip, name, send, recv)
    return trial.summary()


if __name__ == "__main__":
    sys.exit(main())
