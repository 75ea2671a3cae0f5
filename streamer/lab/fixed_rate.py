# SPDX-License-Identifier: GPL-2.0
"""RA-SVBR at a fixed rate beside libx264's own rate control: row E1 of the catalogue.

testbed/paqm-lab fixed-rate --out out/fixed-rate

The clips of bench-encoder at 600 kbit/s, closed groups of 12 pictures in both, a bucket of 1.5
groups in both: RA-SVBR's (beta) and x264's VBV. Writes result.json: for each clip mean luma PSNR of
all pictures and of I pictures apart, and the rate on the wire.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "streamer" / "lab"))
import bench_encoder  # noqa: E402

from paqm_lab.errors import LabError  # noqa: E402

RATE = 600_000
GROUP = 12
BUCKET = 1.5  # groups
RASVBR = f"paqmh264enc mode=gop refresh=idr gop={GROUP} beta={BUCKET} floor-qp=52 rate-max={RATE}"
OWN = (f"x264enc speed-preset=faster tune=zerolatency threads=1 key-int-max={GROUP} "
       "option-string=scenecut=0 vbv-buf-capacity={bucket_ms:.0f}")
SKIPPED = 10  # groups in which rate controls find the clip's level


def coded(build: Path, film: bench_encoder.Clip, element: str, home: Path) -> dict[str, Any]:
    """What an encoder makes of a clip."""
    tool = build / "streamer" / "tests" / "bench_element"
    done = subprocess.run([str(tool), str(film.path), str(RATE), str(home / "stream"), element],
                          capture_output=True, text=True)
    if done.returncode:
        raise LabError(f"{element}: {done.stderr.strip()}")
    with (home / "stream.csv").open() as file:
        rows = list(csv.DictReader(file))
    if not all(int(row["coded"]) for row in rows):
        raise LabError(f"{element}: pictures were left out, so groups cannot be told by number")
    values = bench_encoder.pictures_psnr(film, home / "stream.h264", [True] * len(rows))
    first = SKIPPED * GROUP
    judged, keys = values[first:], values[first::GROUP]
    wire = sum(float(row["wire"]) for row in rows[first:])
    return {"psnr_y": sum(judged) / len(judged), "psnr_y_i": sum(keys) / len(keys),
            "rate_bps": wire * 8 * float(film.rate) / len(judged)}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--build", type=Path, default=TOP / "build",
                        help="Meson's build directory (%(default)s)")
    parser.add_argument("--out", type=Path, default=TOP / "out" / "fixed-rate",
                        help="for the results (%(default)s)")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    clips: dict[str, Any] = {}
    for name, path in bench_encoder.prepare().items():
        film = bench_encoder.Clip(path)
        own = OWN.format(bucket_ms=1000 * BUCKET * GROUP / film.rate)
        with tempfile.TemporaryDirectory() as home:
            clips[name] = {which: coded(args.build.resolve(), film, element, Path(home))
                           for which, element in (("rasvbr", RASVBR), ("own", own))}
        for which, figures in clips[name].items():
            print(f"{name:<6} {which:<7} PSNR {figures['psnr_y']:.2f} dB, I pictures "
                  f"{figures['psnr_y_i']:.2f} dB, {figures['rate_bps'] / 1000:.0f} kbit/s",
                  flush=True)
    text = json.dumps({"format": 1, "clips": clips}, indent=1)
    (args.out / "result.json").write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
