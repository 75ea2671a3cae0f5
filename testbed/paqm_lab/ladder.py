# SPDX-License-Identifier: GPL-2.0
"""Quality ladders: a clip encoded once per quantizer, in groups that begin at the same pictures.

Evalvid-RA's pre-processing (A. Lie, thesis 2008:74, Papers C and D) with H.264: a group of one rung
may follow a group of any other, and the result is what a live encoder with these quantizers would
have made. streamer/trace/ladder.c reads the same files.

    ladder.json   what it is: format, codec, width, height, fps, gop, frames, q_min, q_max, clip
    frames.csv    frame,type,pts_us,q,offset,size  one line per picture and rung
    qNN.h264      a rung: Annex B, every NAL unit behind 00 00 00 01
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import numpy.typing as npt

from paqm_lab import y4m
from paqm_lab.clip import ffmpeg_exe
from paqm_lab.errors import LabError

FORMAT = 1
GOP = 12  # pictures of a group, unless told otherwise
GOP_MOST = 600  # that paqm-streamer takes
COLUMNS = ("frame", "type", "pts_us", "q", "offset", "size")
START = b"\0\0\0\1"
NAL_SLICE, NAL_IDR, NAL_SEI, NAL_SPS, NAL_PPS, NAL_DELIMITER = 1, 5, 6, 7, 8, 9
# The settings of a quantizer per group: same quantizer for all pictures, groups closed, no look
# ahead, one slice per picture, parameter sets before each group.
X264 = (
    "bframes=0:scenecut=0:ipratio=1.0:aq-mode=0:mbtree=0:rc-lookahead=0:sync-lookahead=0:"
    "repeat-headers=1:slices=1:sliced-threads=0:open-gop=0"
)

Progress = Callable[[str], None]
I64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Ladder:
    """An open ladder. offset and size are [rung, picture]."""

    path: Path
    width: int
    height: int
    fps: Fraction
    gop: int
    frames: int
    q_min: int
    q_max: int
    offset: I64
    size: I64

    def rung(self, q: int) -> Path:
        return self.path / f"q{q:02d}.h264"

    def splice(self, chosen: list[tuple[int, int]]) -> bytes:
        """The access units of (quantizer, picture) pairs, one after the other."""
        files = {q: self.rung(q).read_bytes() for q in {q for q, _ in chosen}}
        parts = []
        for q, frame in chosen:
            at = self.offset[q - self.q_min, frame]
            parts.append(files[q][at : at + self.size[q - self.q_min, frame]])
        return b"".join(parts)


def nal_units(stream: bytes) -> Iterator[bytes]:
    """The NAL units of an Annex B stream."""
    at = stream.find(b"\0\0\1")
    while at >= 0:
        end = stream.find(b"\0\0\1", at + 3)
        unit = stream[at + 3 : end if end >= 0 else None]
        yield unit.rstrip(b"\0") if end >= 0 else unit
        at = end


def access_units(stream: bytes) -> Iterator[tuple[bytes, bool]]:
    """(access unit, is it a key picture) of a stream with one slice per picture.

    What only decorates the stream (SEI, delimiters) is left out.
    """
    head = b""
    for unit in nal_units(stream):
        kind = unit[0] & 0x1F
        if kind in (NAL_SEI, NAL_DELIMITER):
            continue
        head += START + unit
        if kind in (NAL_SLICE, NAL_IDR):
            yield head, kind == NAL_IDR
            head = b""


def _encode(clip: y4m.Y4m, q: int, gop: int, preset: str) -> bytes:
    cmd = [ffmpeg_exe(), "-nostdin", "-v", "error", "-i", str(clip.path), "-an", "-threads", "1"]
    cmd += ["-c:v", "libx264", "-preset", preset, "-qp", str(q), "-g", str(gop)]
    cmd += ["-x264-params", f"{X264}:keyint={gop}:min-keyint={gop}", "-f", "h264", "-"]
    done = subprocess.run(cmd, capture_output=True, check=False)
    if done.returncode != 0:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no output"]
        raise LabError(f"{clip.path}: ffmpeg cannot encode it at quantizer {q}: {lines[0]}")
    return done.stdout


def _rung(clip: y4m.Y4m, q: int, gop: int, preset: str, target: Path) -> list[tuple[int, int]]:
    """Write one rung; (offset, size) per picture."""
    places, at = [], 0
    whole = clip.count // gop * gop
    with target.open("wb") as out:
        for number, (unit, key) in enumerate(access_units(_encode(clip, q, gop, preset))):
            if number == whole:
                break
            if key != (number % gop == 0):
                raise LabError(f"quantizer {q}: picture {number} should{' not' * key} be a key")
            out.write(unit)
            places.append((at, len(unit)))
            at += len(unit)
    if len(places) != whole:
        raise LabError(f"quantizer {q}: {len(places)} pictures, expected {whole}")
    return places


def build(
    source: Path,
    target: Path,
    *,
    q_min: int = 19,
    q_max: int = 43,
    gop: int = GOP,
    preset: str = "medium",
    progress: Progress = print,
) -> Ladder:
    """Make the ladder of a y4m file."""
    clip = y4m.open_y4m(source)
    if not 1 <= gop <= GOP_MOST:
        raise LabError(f"groups of {gop} pictures: expected 1 to {GOP_MOST}")
    if clip.count < gop:
        raise LabError(f"{source}: {clip.count} pictures, a group has {gop}")
    if not 0 <= q_min <= q_max <= 51:
        raise LabError(f"quantizers {q_min} to {q_max}: expected 0 <= first <= last <= 51")
    if target.exists():
        raise LabError(f"{target}: is there already; name another directory or remove it")
    target.parent.mkdir(parents=True, exist_ok=True)
    quantizers = range(q_min, q_max + 1)
    frames = clip.count // gop * gop
    with tempfile.TemporaryDirectory(prefix=".ladder-", dir=target.parent) as name:
        made = Path(name) / "ladder"
        made.mkdir()

        def one(q: int) -> list[tuple[int, int]]:
            places = _rung(clip, q, gop, preset, made / f"q{q:02d}.h264")
            total = sum(size for _, size in places)
            rate = total * 8 * clip.fps / frames / 1000
            progress(f"ladder: quantizer {q}: {float(rate):.0f} kbit/s")
            return places

        with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
            rungs = list(pool.map(one, quantizers))
        with (made / "frames.csv").open("w", newline="") as f:
            out = csv.writer(f, lineterminator="\n")
            out.writerow(COLUMNS)
            for q, places in zip(quantizers, rungs, strict=True):
                for number, (offset, size) in enumerate(places):
                    kind = "P" if number % gop else "I"
                    pts = round(number * 1_000_000 / clip.fps)
                    out.writerow((number, kind, pts, q, offset, size))
        totals = [sum(size for _, size in places) for places in rungs]
        for q, (finer, coarser) in zip(
            quantizers, zip(totals, totals[1:], strict=False), strict=False
        ):
            if coarser > finer:
                progress(f"ladder: quantizer {q + 1} takes more bytes than {q}")
        record = {
            "format": FORMAT,
            "codec": "h264",
            "width": clip.width,
            "height": clip.height,
            "fps": [clip.fps.numerator, clip.fps.denominator],
            "gop": gop,
            "frames": frames,
            "q_min": q_min,
            "q_max": q_max,
            "preset": preset,
            "clip": source.name,
            "clip_sha256": hashlib.sha256(source.read_bytes()).hexdigest(),
        }
        (made / "ladder.json").write_text(json.dumps(record, indent=2) + "\n")
        made.rename(target)
    return load(target)


def load(path: Path) -> Ladder:
    """Open a ladder."""
    try:
        record = json.loads((path / "ladder.json").read_text())
        if record["format"] != FORMAT:
            raise LabError(f"{path}: ladder of format {record['format']}, expected {FORMAT}")
        rungs = record["q_max"] - record["q_min"] + 1
        offset = np.zeros((rungs, record["frames"]), np.int64)
        size = np.zeros_like(offset)
        with (path / "frames.csv").open(newline="") as f:
            for row in csv.DictReader(f):
                at = int(row["q"]) - record["q_min"], int(row["frame"])
                offset[at], size[at] = int(row["offset"]), int(row["size"])
        ladder = Ladder(
            path,
            record["width"],
            record["height"],
            Fraction(*record["fps"]),
            record["gop"],
            record["frames"],
            record["q_min"],
            record["q_max"],
            offset,
            size,
        )
    except OSError as err:
        raise LabError(f"{err.filename}: cannot read the ladder: {err.strerror}") from err
    except (KeyError, ValueError, TypeError, IndexError) as err:
        raise LabError(f"{path}: not a ladder ({err}); make it with paqm-trace pre") from err
    if not bool(np.all(size > 0)):
        raise LabError(f"{path}: frames.csv lacks pictures; make the ladder again")
    return ladder
