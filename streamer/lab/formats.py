#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0
"""Controllers on real RTP and RTCP over a bottleneck whose free rate changes, in a lab guest.

formats.py --ladder LADDER [--build BUILD] [--out DIR] [CASE...]
CASE: raf (a live stream with the real encoder), raf-trace (send --trace), adivis-trace,
      layered-trace, binary-trace, tfrc-trace (with a send buffer)

A bottleneck of 1 Mbit/s, 40 ms round trip. Constant cross traffic of 700 kbit/s from 20 to 40 s of
60. raf goes by packet pairs over a FIFO: the requested rate never exceeds what the layer carries,
and the size of pictures returns within two decisions (seconds) after the load has gone. adivis has
RED that marks: it yields within 4 s, and grows slowly afterwards. Layered probing begins near what
is free, drops layers under the load and gains them again. With tfrc:buffer=100 what waits in the
send buffer lowers the allowance of pictures, so that it stays short. The time series are
written to DIR/CASE.csv: second, kbit/s that arrive, then what the controller says.
Prints `ok NAME` or `not ok NAME: why`.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import sys
import tempfile
import time
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TOP / "kernel" / "lab-tests"), str(TOP / "streamer" / "tests")]
import streams  # noqa: E402
import trial  # noqa: E402
from trial import Program, check, rows  # noqa: E402

from paqm_lab import topology  # noqa: E402
from paqm_lab.topology import in_a_row, netem  # noqa: E402

BOTTLENECK = 1_000_000
CROSS = 700_000
LOAD, FREE, END = 20, 40, 60
RED = ("red limit 50000 min 10000 max 30000 avpkt 1000 burst 17 probability 0.1 "
       f"bandwidth {BOTTLENECK}bit ecn harddrop")
# controller, queue, options of the sender, of the receiver, what is shown
CASES = {
    "raf": ("raf", "pfifo limit 50", (), ("--controller", "raf"), ("avail", "layer", "width")),
    "raf-trace": ("raf", "pfifo limit 50", (), ("--controller", "raf"),
                  ("avail", "layer", "width")),
    "adivis-trace": ("adivis", RED, ("--ecn", "ect0"), (), ("target", "loss", "marked")),
    "layered-trace": ("layered-probing", "pfifo limit 50", (),
                      ("--controller", "layered-probing"),
                      ("layer", "estimate", "probes", "gained", "dropped")),
    "binary-trace": ("binary", "pfifo limit 50", (), ("--controller", "binary"),
                     ("layer", "estimate", "probes", "gained", "dropped")),
    "tfrc-trace": ("tfrc:buffer=100", "pfifo limit 50", (), ("--feedback", "rfc8888"),
                   ("rate", "p", "packets")),
}
Series = dict[str, list[tuple[float, float]]]


def network(queue: str) -> None:
    """s -- r == d: what leaves r towards d is the bottleneck; 20 ms each way outside of it."""
    net = in_a_row("s", "r", "d")
    topology.remove(net)
    for host in "sd":
        net.queue(host, f"{host}0", "root", *netem(20))
    net.shape("r", "r1", BOTTLENECK, queue)
    topology.make(net)


def run(case: str, build: Path, ladder: Path, clip: Path, home: Path) -> tuple[float, Series]:
    """Runs a stream and its cross traffic; when it began, what the sender's controller logs."""
    controller, queue, options, hears, _ = CASES[case]
    program, tool = build / "streamer" / "paqm-streamer", build / "streamer/tests/ctl_flow"
    to = "10.2.0.2:5004"
    network(queue)
    common = ("--controller", controller, "--rate-min", "20kbit", "--rate-max", BOTTLENECK,
              "--seed", 1, "--duration", END, *options)
    Program("d", tool, "recv", 8000, END + 2, home / "x.csv")
    if case.endswith("trace"):
        receiver = Program("d", program, "recv", "--trace", "--listen", to, "--log", home / "r",
                           *hears, ready="listening")
        sender = Program("s", program, "send", "--trace", ladder, "--to", to, "--log", home / "s",
                         "--paqmd", "none", "--loop", *common)
        log, came = home / "s/flow000/control.csv", home / "r/flow000/rx.csv"
    else:
        receiver = streams.receive(program, to, home / "r", *hears, "--seed", 2, host="d")
        sender = streams.send(program, to, home / "s", clip, "--loop", *common, host="s")
        log, came = home / "s/control.csv", home / "r/rx.csv"
    begin = time.time()
    Program("s", "sh", "-c", f"sleep {LOAD}; exec {tool} send 10.2.0.2:8000 fixed {FREE - LOAD} "
            f"{CROSS} 9 /dev/null")
    time.sleep(END + 1)
    print(f"# {case}: {streams.finish(receiver, sender)[0].splitlines()[-1]}", flush=True)
    series: Series = {"came": [(int(row["t_ns"]) / 1e9 - begin, 8.0 * int(row["wire_bytes"]))
                               for row in rows(came)]}
    for row in rows(log):
        if row["controller"] in (controller.split(":")[0], "buffer"):
            series.setdefault(row["key"], []).append(
                (int(row["t_ns"]) / 1e9 - begin, float(row["value"])))
    return begin, series


def between(values: list[tuple[float, float]], start: float, stop: float) -> list[float]:
    return [value for at, value in values if start <= at < stop]


def write(path: Path, case: str, series: Series) -> None:
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["s", "kbps", *CASES[case][4]])
        for second in range(END):
            said = [between(series[key], second, second + 1) for key in CASES[case][4]]
            out.writerow([second, round(sum(between(series["came"], second, second + 1)) / 1e3),
                          *(round(values[-1], 4) if values else "" for values in said)])


def judge_raf(case: str, series: Series) -> None:
    caps = dict(series["cap"])
    over = [(at, rate) for at, rate in series["rate"] if rate > caps.get(at, rate) + 1]
    pairs = zip(series["rate"], series["cap"], strict=True)
    check(f"{case}: no more than the layer carries",
          not over and all(rate <= cap for (_, rate), (_, cap) in pairs), over[:3])
    before = statistics.mode(between(series["width"], LOAD - 10, LOAD))
    loaded = statistics.mode(between(series["width"], LOAD + 5, FREE))
    check(f"{case}: smaller pictures under load ({before:.0f}, {loaded:.0f})", loaded < before)
    back = [at for at, width in series["width"] if at >= FREE and width >= before]
    check(f"{case}: the size returns within two decisions",
          bool(back) and back[0] <= FREE + 3, back[:1])
    mean = sum(between(series["came"], LOAD + 5, FREE)) / (FREE - LOAD - 5)
    layer = max(between(series["cap"], LOAD + 5, FREE))
    check(f"{case}: what arrives under load ({mean / 1e3:.0f} kbit/s) is within the layer",
          mean <= layer, layer)


def judge_adivis(case: str, series: Series) -> None:
    free = BOTTLENECK - CROSS
    low = [at for at, rate in series["target"] if at >= LOAD and rate <= 1.25 * free]
    check(f"{case}: yields within 4 s", bool(low) and low[0] <= LOAD + 4, low[:1])
    level = statistics.mean(between(series["target"], LOAD + 10, FREE)) / free
    check(f"{case}: near the free rate under load ({level:.2f})", 0.85 <= level <= 1.4)
    marks = max(between(series["marked"], LOAD, FREE))
    check(f"{case}: hears marks ({marks:.3f})", marks > 0)
    up = between(series["target"], END - 2, END)[-1] / between(series["target"], FREE - 1, FREE)[-1]
    check(f"{case}: grows slowly afterwards ({up:.2f} times in 20 s)", 1.5 <= up <= 4)


def judge_tfrc(case: str, series: Series) -> None:
    # A packet of 1200 bytes; the rate grants so many per second.
    wait = [8 * 1200 * packets / max(rate, 1) for (_, packets), (_, rate) in
            zip(series["packets"], series["rate"], strict=False)]
    check(f"{case}: something waits ({max(wait):.2f} s)", max(wait) > 0)
    usual = statistics.median(wait)
    check(f"{case}: usually less than a group of pictures ({usual:.3f} s)", usual < 0.5)
    came = sum(between(series["came"], LOAD + 5, FREE)) / (FREE - LOAD - 5)
    granted = statistics.mean(between(series["rate"], LOAD + 5, FREE))
    check(f"{case}: no more arrives under load ({came / 1e3:.0f} kbit/s) than is granted "
          f"({granted / 1e3:.0f})", came <= 1.05 * granted)


def judge_layered(case: str, series: Series) -> None:
    first = between(series["layer"], 2, 6)
    check(f"{case}: the start finds most of the link (layer {first[-1]:.0f} of 20)",
          first[-1] >= 16)
    check(f"{case}: trains go on ({series['probes'][-1][1]:.0f})",
          series["probes"][-1][1] > series["gained"][-1][1] > 0)
    usual = statistics.mean(between(series["layer"], LOAD - 5, LOAD))
    loaded = statistics.mean(between(series["layer"], FREE - 5, FREE))
    check(f"{case}: fewer layers under load ({usual:.1f}, {loaded:.1f})", loaded < 0.8 * usual)
    after = series["layer"][-1][1]
    check(f"{case}: layers come back ({after:.0f})", after > loaded + 1)


JUDGES = {"layered-probing": judge_layered, "binary": judge_layered,
          "raf": judge_raf, "adivis": judge_adivis, "tfrc": judge_tfrc}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--build", type=Path, default=TOP / "build")
    parser.add_argument("--ladder", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("case", nargs="*", help=", ".join(CASES))
    args = parser.parse_args()
    clip = Path("/run/tmp/clip.y4m")
    trial.write_noise(clip, 320, 192, bytes(range(256)))
    for case in args.case or CASES:
        _, series = run(case, args.build.resolve(), args.ladder, clip, Path(tempfile.mkdtemp()))
        if args.out:
            write(args.out / f"{case}.csv", case, series)
        JUDGES[CASES[case][0].split(":")[0]](case, series)
    return trial.summary()


if __name__ == "__main__":
    sys.exit(main())
