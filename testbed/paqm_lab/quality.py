# SPDX-License-Identifier: GPL-2.0
"""Picture quality of what a receiver decoded, against the clip: PSNR, SSIM, VMAF.

Each decoded picture is matched to its source frame by the number in it, or where that cannot be
read by the logs of both ends, so a score never compares two different moments. The scores say how
good the pictures are that were shown; how many and when is for frame rate and freezes to say. The
row with the number is cut off before scoring.

Reference and decoded picture go to ffmpeg as one picture, one above the other, through one pipe.
"""

from __future__ import annotations

import csv
import json
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from paqm_lab import clip as clip_module
from paqm_lab import y4m
from paqm_lab.errors import LabError

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

TOP = clip_module.CELL
COLUMNS = ("index", "src_frame", "psnr_y", "ssim_y", "vmaf")


@dataclass(frozen=True)
class Quality:
    """Per decoded picture; src_frame -1 and scores NaN where the number could not be read."""

    index: I64
    src_frame: I64
    psnr_y: F64
    ssim_y: F64
    vmaf: F64


def _stats_file(path: Path, name: str) -> F64:
    """One value per frame from a psnr or ssim statistics file ("n:1 ... name:value ...")."""
    values = []
    for line in path.read_text().splitlines():
        fields = dict(word.split(":", 1) for word in line.split() if ":" in word)
        values.append(float(fields[name]))
    return np.array(values, np.float64)


def score(
    reference: y4m.Y4m,
    video: y4m.Y4m,
    pairs: list[tuple[int, int]],
    top: int = 0,
    with_vmaf: bool = True,
) -> Quality:
    """Scores of (decoded index, source frame) pairs, without the uppermost `top` rows.

    Without VMAF that score stays NaN.
    """
    width, height = reference.width, reference.height
    shown = height - top
    with tempfile.TemporaryDirectory(prefix="quality-") as name:
        tmp = Path(name)
        crop = f"crop={width}:{shown}:0"
        filters = ["psnr=stats_file=psnr.log", "ssim=stats_file=ssim.log"]
        if with_vmaf:
            filters.append("libvmaf=log_fmt=json:log_path=vmaf.json")
        count = len(filters)
        graph = f"split=2[a][b];[a]{crop}:{top},split={count}"
        graph += "".join(f"[r{i}]" for i in range(count))
        graph += f";[b]{crop}:{height + top},split={count}"
        graph += "".join(f"[d{i}]" for i in range(count))
        graph += "".join(f";[d{i}][r{i}]{text}[o{i}]" for i, text in enumerate(filters))
        cmd = [clip_module.ffmpeg_exe(), "-v", "error", "-f", "rawvideo", "-pix_fmt", "yuv420p"]
        cmd += ["-s", f"{width}x{2 * height}", "-r", "24", "-i", "-", "-filter_complex", graph]
        for i in range(count):
            cmd += ["-map", f"[o{i}]", "-f", "null", "-"]
        luma, chroma = width * height, (width // 2) * (height // 2)
        with (
            tempfile.TemporaryFile() as errors,
            subprocess.Popen(cmd, stdin=subprocess.PIPE, stderr=errors, cwd=tmp) as proc,
        ):
            assert proc.stdin is not None
            try:
                for decoded, source in pairs:
                    ref, dis = reference.frames[source], video.frames[decoded]
                    for start, size in ((0, luma), (luma, chroma), (luma + chroma, chroma)):
                        proc.stdin.write(ref[start : start + size].tobytes())
                        proc.stdin.write(dis[start : start + size].tobytes())
                proc.stdin.close()
            except BrokenPipeError:
                pass  # ffmpeg has gone: its message follows
            status = proc.wait()
            errors.seek(0)
            said = errors.read().decode("utf-8", "replace").strip().splitlines()
        if status != 0:
            reason = said[-1] if said else f"exit {status}"
            raise LabError(f"{video.path}: ffmpeg cannot score the pictures: {reason}")
        psnr = _stats_file(tmp / "psnr.log", "psnr_y")
        ssim = _stats_file(tmp / "ssim.log", "Y")
        scored = json.loads((tmp / "vmaf.json").read_text())["frames"] if with_vmaf else []
    if len(psnr) != len(pairs) or len(ssim) != len(pairs):
        raise LabError(f"{video.path}: ffmpeg scored {len(psnr)} of {len(pairs)} pictures")
    vmaf = np.full(len(pairs), np.nan)
    for frame in scored:
        vmaf[frame["frameNum"]] = frame["metrics"]["vmaf"]
    # Equal pictures have no noise at all; the usual cap keeps means finite.
    psnr = np.minimum(psnr, 100.0)
    matched = np.array(pairs, np.int64)
    return Quality(matched[:, 0], matched[:, 1], psnr, ssim, vmaf)


def by_logs(decoded: Path, count: int) -> I64:
    """Source frame of each picture as the logs of both ends have it; -1 where they do not say.

    For numbers that cannot be read: of pictures that were coded at a tenth of their size.
    """
    source = np.full(count, -1, np.int64)
    sent, shown = decoded.parents[1] / "send" / "frames.csv", decoded.with_name("decoded.csv")
    if sent.exists() and shown.exists():
        with sent.open(newline="") as f:
            of = {row["rtp_ts"]: int(row["src_frame"]) for row in csv.DictReader(f)}
        with shown.open(newline="") as f:
            for row, picture in enumerate(csv.DictReader(f)):
                if row < count:
                    source[row] = of.get(picture["rtp_ts"], -1)
    return source


def compare(clip: Path, decoded: Path) -> Quality:
    """Match and score every picture of a decoded file."""
    reference, video = y4m.open_y4m(clip), y4m.open_y4m(decoded)
    if (video.width, video.height) != (reference.width, reference.height):
        raise LabError(
            f"{decoded}: {video.width}x{video.height}, but the clip is "
            f"{reference.width}x{reference.height}: the receiver must scale what it decodes"
        )
    source = clip_module.read_barcodes(video.luma())
    source = np.where(source < 0, by_logs(decoded, video.count), source)
    source[source >= reference.count] = -1
    pairs = [(i, int(s)) for i, s in enumerate(source) if s >= 0]
    nothing = np.full(video.count, np.nan)
    result = Quality(np.arange(video.count), source, nothing, nothing.copy(), nothing.copy())
    if pairs:
        scored = score(reference, video, pairs, TOP)
        result.psnr_y[scored.index] = scored.psnr_y
        result.ssim_y[scored.index] = scored.ssim_y
        result.vmaf[scored.index] = scored.vmaf
    return result


def save(result: Quality, path: Path) -> None:
    """Write the scores beside the recording, so that they outlive it."""
    with path.open("w", newline="") as f:
        out = csv.writer(f, lineterminator="\n")
        out.writerow(COLUMNS)
        rows = (result.index, result.src_frame, result.psnr_y, result.ssim_y, result.vmaf)
        for index, source, *scores in zip(*rows, strict=True):
            cells = ["" if np.isnan(s) else f"{s:.4f}" for s in scores]
            out.writerow([int(index), int(source), *cells])


def load(path: Path) -> Quality:
    """Read what save() wrote."""
    with path.open(newline="") as f:
        rows = list(csv.reader(f))
    if not rows or tuple(rows[0]) != COLUMNS:
        raise LabError(f"{path}: not a table of picture scores (columns {','.join(COLUMNS)})")
    table = [[float(c) if c else float("nan") for c in row] for row in rows[1:]]
    array = np.array(table, np.float64).reshape(len(table), len(COLUMNS))
    index, source = array[:, 0].astype(np.int64), array[:, 1].astype(np.int64)
    return Quality(index, source, array[:, 2], array[:, 3], array[:, 4])


def score_all(clip: Path, recordings: list[Path], workers: int = 2) -> None:
    """Score several recordings at once and put quality.csv beside each."""

    def one(recording: Path) -> None:
        save(compare(clip, recording), recording.with_name("quality.csv"))

    with ThreadPoolExecutor(max_workers=workers) as pool:
        list(pool.map(one, recordings))
