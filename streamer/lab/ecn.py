#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0
"""A stream that hears the router by ECN marks alone, in a lab guest: does it keep its fair rate?

ecn.py [--build BUILD] [--out OUT.json] [CASE...]
CASE: ect0, ect1, ect1-5ms, off, paqm-ect0, paqm-ect1

A bottleneck of 8 Mbit/s, fq_codel behind htb or paqm without messages, 40 ms round trip. Beside
the stream up to two UDP flows of 6 Mbit/s come and go, so that its fair rate is 8 Mbit/s by the
number of flows, or --rate-max. No paqmd, no messages. For ECT(0) fq_codel marks as it does (5 ms,
100 ms); for ECT(1) all that waits longer than 1 ms, or 5 ms (ect1-5ms). Without ECN (off), for
comparison, it drops. Judged is what arrives, in half seconds, from 2 s after each change on: 90 %
of the fair rate as a mean, 70 % in each, and no packet of the stream lost.
Prints `ok NAME` or `not ok NAME: why`.
"""

from __future__ import annotations

import argparse
import json
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(TOP / "kernel" / "lab-tests"), str(TOP / "streamer" / "tests")]
import streams  # noqa: E402
import trial  # noqa: E402
from trial import Program, check, rows, within  # noqa: E402

from paqm_lab import topology  # noqa: E402
from paqm_lab.topology import in_a_row, netem  # noqa: E402

BOTTLENECK = 8_000_000
RATE_MAX = 6_000_000
OTHERS = 6_000_000
# From when on how many of the others send, s.
LOAD = ((0, 1), (10, 2), (20, 1), (30, 0), (40, 2), (50, 1))
END = 60
AFTER = 2.0  # s after a change that are not judged
WINDOW = 0.5  # s
PACKET = 1200
ETHERNET = 14
# Short: what waits of a flow that has ended is still served. It is the longest queue that drops.
# Of the usual 1024 queues two flows share one now and then, and then none of them is fair.
QUEUE = "fq_codel limit 200 flows 65535"
PAQM = f"paqm bandwidth {BOTTLENECK}bit feedback none"
CASES = {
    "ect0": ("ect0", QUEUE),
    "ect1": ("ect1", f"{QUEUE} ce_threshold 1ms ce_threshold_selector 0x1/0x3"),
    "ect1-5ms": ("ect1", f"{QUEUE} ce_threshold 5ms ce_threshold_selector 0x1/0x3"),
    "off": ("off", QUEUE),
    "paqm-ect0": ("ect0", PAQM),
    "paqm-ect1": ("ect1", PAQM),
}
JUDGED = ("ect0", "ect1", "paqm-ect0", "paqm-ect1")


def network(queue: str) -> None:
    """s -- r == d: what leaves r towards d is the bottleneck; 20 ms each way outside of it."""
    net = in_a_row("s", "r", "d")
    topology.remove(net)
    for host in "sd":
        net.queue(host, f"{host}0", "root", *netem(20))
    if queue == PAQM:
        net.queue("r", "r1", "root", "handle", "10:", *queue.split())
    else:
        net.shape("r", "r1", BOTTLENECK, queue)
    topology.make(net)


def send_others(port: int, seconds: float) -> None:
    """A flow of the others, in this process."""
    gap, end = 8 * PACKET / OTHERS, time.monotonic() + seconds
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        due = time.monotonic()
        while due < end:
            time.sleep(max(0.0, due - time.monotonic()))
            out.sendto(bytes(PACKET - 28), ("10.2.0.2", port))
            due += gap


def fair(others: int) -> float:
    """Bit/s at the IP layer."""
    return min(BOTTLENECK * PACKET / (PACKET + ETHERNET) / (others + 1), RATE_MAX)


def stream(build: Path, clip: Path, ecn: str, home: Path) -> tuple[int, str, str]:
    """Runs the load; time of its begin, and what both programs said."""
    program, to = build / "streamer" / "paqm-streamer", "10.2.0.2:5004"
    sink = Program("d", sys.executable, "-B", __file__, "--sink")
    receiver = streams.receive(program, to, home / "r", "--seed", 2, host="d")
    begin, wall = time.monotonic(), time.time_ns()
    sender = streams.send(program, to, home / "s", clip, "--loop", "--rate-max", RATE_MAX, "--seed",
                          1, "--duration", END, "--ecn", ecn, host="s")
    for number in range(2):  # each of the others, as long as it goes on
        since = None
        for at, count in (*LOAD, (END, 0)):
            if count > number and since is None:
                since = at
            elif count <= number and since is not None:
                Program("s", "sh", "-c", f"sleep {since}; exec {sys.executable} -B {__file__} "
                        f"--other {6000 + number} --seconds {at - since}")
                since = None
    time.sleep(max(0.0, begin + END + 1 - time.monotonic()))
    said, heard = streams.finish(receiver, sender, after=0)
    sink.terminate()
    return wall, said.splitlines()[-1], heard.splitlines()[-1]


def judge(name: str, home: Path, wall: int) -> dict[str, Any]:
    packets = [((int(row["t_ns"]) - wall) / 1e9, 8 * int(row["wire_bytes"]))
               for row in rows(home / "r" / "rx.csv")]
    windows = [0.0] * int(END / WINDOW)
    for at, bits in packets:
        if 0 <= at < END:
            windows[int(at / WINDOW)] += bits / WINDOW
    queue = [((int(row["t_ns"]) - wall) / 1e9, float(row["value"]))
             for row in rows(home / "s" / "control.csv") if row["key"] == "queue"]
    parts = []
    ends = [at for at, _ in LOAD[1:]] + [END]
    for (at, others), end in zip(LOAD, ends, strict=True):
        judged = windows[int((at + AFTER) / WINDOW) : int((end - WINDOW) / WINDOW)]
        share = [rate / fair(others) for rate in windows[int(at / WINDOW) : int(end / WINDOW)]]
        low = [n for n, value in enumerate(share[:-1]) if value < 0.9]
        first = next((n for n, value in enumerate(share) if value >= 0.9), len(share))
        waits = sorted(value for t, value in queue if at + AFTER <= t < end)
        parts.append({
            "from": at, "fair_mbit": round(fair(others) / 1e6, 2),
            "mean": round(sum(judged) / len(judged) / fair(others), 3),
            "least": round(min(judged) / fair(others), 3),
            "reaches_90_after_s": WINDOW * first,
            "half_seconds_below_90": sum(1 for n in low if n >= AFTER / WINDOW),
            "queue_p95_ms": round(1000 * waits[int(0.95 * len(waits))], 1) if waits else None,
            "queue_max_ms": round(1000 * max((v for t, v in queue if at <= t < end), default=0)),
        })
    sent = sum(int(row["packets"]) for row in rows(home / "s" / "frames.csv"))
    control = {f"{row['controller']}.{row['key']}": float(row["value"])
               for row in rows(home / "s" / "control.csv")}
    found = {"parts": parts, "sent": sent, "lost": sent - len(packets),
             "marked": int(control.get("ecn.ce", 0)), "share": [
                 round(rate / fair([o for t, o in LOAD if t <= n * WINDOW][-1]), 3)
                 for n, rate in enumerate(windows)]}
    for part in parts:
        print(f"# {name}: {part}", flush=True)
    print(f"# {name}: {sent} packets sent, {found['lost']} lost, {found['marked']} marked",
          flush=True)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--build", type=Path, default=TOP / "build")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--other", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--sink", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("case", nargs="*", help=", ".join(CASES))
    args = parser.parse_args()
    if args.other:
        send_others(args.other, args.seconds)
        return 0
    if args.sink:  # or each packet of the others is answered by ICMP
        ends = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
        for number, end in enumerate(ends):
            end.bind(("10.2.0.2", 6000 + number))
        signal.pause()
    clip = Path("/run/tmp/clip.y4m")
    trial.write_noise(clip, 320, 192, bytes(range(256)))
    results = {}
    trial.load_modules()
    for name in args.case or CASES:
        ecn, queue = CASES[name]
        network(queue)
        home = Path(tempfile.mkdtemp())
        wall, said, heard = stream(args.build.resolve(), clip, ecn, home)
        print(f"# {name}: {said}; {heard}", flush=True)
        result = results[name] = judge(name, home, wall)
        if name not in JUDGED:
            continue
        for part in result["parts"]:
            what = f"{name}, from {part['from']} s"
            within(f"{what}: mean of the fair rate", part["mean"], 0.9, 1.03)
            within(f"{what}: least half second", part["least"], 0.7, 1.1)
        check(f"{name}: nothing is lost", not result["lost"], result["lost"])
        check(f"{name}: there were marks", result["marked"] > 10, result["marked"])
    if args.out:
        args.out.write_text(json.dumps(results, indent=1) + "\n")
    return trial.summary()


if __name__ == "__main__":
    sys.exit(main())
