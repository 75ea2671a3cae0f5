#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""2D-interlaced coding measured: what it costs without loss, what it saves with.

`make interlace` runs it; the streams run in one lab guest, over netem that loses packets at random.
Writes result.json: mean luma PSNR of what is shown against what was sent, by rate and loss. A
picture that is not shown counts with the one shown before it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

TOP = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TOP / "kernel" / "lab-tests"), str(TOP / "streamer" / "tests")]
import lab_repair  # noqa: E402
import streams  # noqa: E402
from trial import rows  # noqa: E402

MODES = ("plain", "rtx", "rows", "checkerboard", "quarters")
RATES = (300_000, 600_000, 1_200_000)
LOSSES = (1, 3, 10, 20)
LOSSY_RATE = 1_000_000
SECONDS = 10
SETTLE = 2.0  # s that are not judged: the parts begin one after another
PEAK_MAX = 60.0  # dB of a picture without any error

Json = dict[str, Any]


class Luma:
    """Luma planes of a y4m file."""

    def __init__(self, path: Path) -> None:
        self.data = np.memmap(path, dtype=np.uint8, mode="r")
        header = bytes(self.data[:200]).split(b"\n", 1)[0]
        self.first = len(header) + 1
        words = {w[:1]: w[1:] for w in header.split()[1:]}
        self.width, self.height = int(words[b"W"]), int(words[b"H"])
        self.step = self.width * self.height * 3 // 2 + len(b"FRAME\n")

    def __getitem__(self, n: int) -> NDArray[np.float64]:
        begin = self.first + n * self.step + len(b"FRAME\n")
        plane = self.data[begin : begin + self.width * self.height]
        return plane.astype(np.float64)


def psnr(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    error = float(np.mean((a - b) ** 2))
    return min(PEAK_MAX, 10 * np.log10(255**2 / error)) if error else PEAK_MAX


def judge(clip: Path, home: Path) -> Json:
    """Quality of one run."""
    frames = [f for f in rows(home / "s" / "frames.csv") if int(f["rtp_ts"]) >= 0]
    # the first part's time stamp is that of the picture, but for its two lowest bits
    shown = {int(d["rtp_ts"]) >> 2: int(d["index"]) for d in rows(home / "r" / "decoded.csv")}
    source, output = Luma(clip), Luma(home / "out.y4m")
    begin = int(frames[0]["t_ns"])
    values, last, missed = [], None, 0
    done: set[int] = set()
    for f in frames:
        key = int(f["rtp_ts"]) >> 2
        if key in done:
            continue
        done.add(key)
        if key in shown:
            last = output[shown[key]]
        if int(f["t_ns"]) - begin < SETTLE * 1e9:
            continue
        missed += key not in shown
        values.append(psnr(source[int(f["src_frame"])], last) if last is not None else 0.0)
    end = int(frames[-1]["t_ns"])
    wire = sum(int(f["wire_bytes"]) for f in frames)
    return {
        "psnr_db": round(float(np.mean(values)), 2),
        "psnr_p5_db": round(float(np.percentile(values, 5)), 2),
        "pictures": len(values),
        "not_shown": missed,
        "rate_bps": round(wire * 8e9 / (end - begin)),
    }


def one(build: Path, clip: Path, home: Path, mode: str, rate: int, loss: int) -> Json:
    lab_repair.network(f"{loss}%")
    program = build / "streamer" / "paqm-streamer"
    options = {"plain": [], "rtx": ["--rtx"]}.get(mode, ["--interlace", mode])
    receiver = streams.receive(program, lab_repair.TO, home / "r", "--seed", 2, "--output",
                               home / "out.y4m", *options, host="v")
    sender = streams.send(program, lab_repair.TO, home / "s", clip, "--loop", "--rate-max", rate,
                          "--controller", "fixed", "--seed", 1, "--duration", SECONDS, *options,
                          host="s")
    heard = streams.finish(receiver, sender)[1].splitlines()[-1]
    row = {"mode": mode, "rate": rate, "loss_percent": loss, **judge(clip, home)}
    print(row, heard, flush=True)
    (home / "out.y4m").unlink()
    return row


def cost(table: list[Json]) -> list[Json]:
    """Rate that a mode needs for the PSNR of plain coding at the middle rate, as a factor."""

    def curve(mode: str) -> tuple[list[float], list[float]]:
        points = [r for r in table if r["mode"] == mode and not r["loss_percent"]]
        return [r["psnr_db"] for r in points], [float(np.log(r["rate_bps"])) for r in points]

    want = next(r for r in table if r["mode"] == "plain" and r["rate"] == RATES[1]
                and not r["loss_percent"])
    out = []
    for mode in MODES[2:]:
        quality, rate = curve(mode)
        inside = min(quality) <= want["psnr_db"] <= max(quality)
        factor = float(np.exp(np.interp(want["psnr_db"], quality, rate))) / want["rate_bps"]
        at = next(r for r in table if r["mode"] == mode and r["rate"] == RATES[1]
                  and not r["loss_percent"])
        out.append({"mode": mode, "rate_factor": round(factor, 2) if inside else None,
                    "db_at_equal_rate": round(at["psnr_db"] - want["psnr_db"], 2)})
    return out


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--build", type=Path, default=TOP / "build",
                        help="Meson's build directory (%(default)s)")
    parser.add_argument("--clip", type=Path, help="y4m (the lab's)")
    parser.add_argument("--out", type=Path, default=TOP / "out" / "interlace",
                        help="for the results (%(default)s)")
    parser.add_argument("--guest", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    out, build = args.out.resolve(), args.build.resolve()
    out.mkdir(parents=True, exist_ok=True)
    if not args.guest:
        from paqm_lab import cache, clip

        source = args.clip or clip.prepare(cache.cache_dir(), print)
        return subprocess.run(
            [str(TOP / "testbed" / "paqm-lab"), "exec", "--timeout", "3600",
             "--dir", str(out), "--dir", str(source.resolve().parent), "/usr/bin/python3",
             str(Path(__file__).resolve()), "--guest", "--build", str(build), "--out", str(out),
             "--clip", str(source.resolve())]).returncode
    table = []
    for mode in MODES:
        for rate, loss in ([(r, 0) for r in RATES] + [(LOSSY_RATE, n) for n in LOSSES]):
            if mode != "rtx" or loss:
                home = out / f"{mode}-{rate}-{loss}"
                home.mkdir(exist_ok=True)
                table.append(one(build, args.clip, home, mode, rate, loss))
    result = {"format": 1, "seconds": SECONDS, "table": table, "cost": cost(table)}
    (out / "result.json").write_text(json.dumps(result, indent=1) + "\n")
    for row in result["cost"]:
        print(row)
    return 0


if __name__ == "__main__":
    sys.exit(main())
