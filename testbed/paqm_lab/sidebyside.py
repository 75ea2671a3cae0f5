# SPDX-License-Identifier: GPL-2.0
"""What receivers saw: one stream of every variant side by side, as a video and as stills.

At each moment a panel shows the newest picture that its receiver had by then, and the same one for
as long as nothing new came. A picture whose number cannot be read is not new (picturefigures.py).

The stream is the one that is there longest, the first of those by name; the video is the last 40 s
of the run. Two seconds are shown as stills, all variants at the same moment: the worst second of
any rival, and the worst of the variants that are told their rate. The worst second is the one with
most time frozen, of equal ones that with the lowest mean VMAF of its new pictures, of equal ones
the earliest; the still is of the moment in it at which that picture was oldest.
"""

from __future__ import annotations

import functools
import json
import math
import subprocess
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont  # matplotlib needs it, so it is there

from paqm_lab import clip as clip_module
from paqm_lab import metrics, picturefigures, rundata, y4m
from paqm_lab.errors import LabError
from paqm_lab.rundata import Run

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]

VIDEO, FACTS = "side-by-side.mp4", "side-by-side.json"
LENGTH = 40.0  # s of video
GAP = 8  # pixels between panels
BAR = 5  # a panel is so many times as wide as its caption is high
STEP = 0.5  # s after which a caption may change
WINDOW = 1.0  # s before, that a caption's delay is of
GREY, AMBER = (24, 128, 128), (120, 70, 190)  # Y, Cb, Cr of a caption: playing, frozen


@dataclass(frozen=True)
class Worst:
    """A second that is shown as stills: `of` a variant, `moment` of the stills."""

    kind: str  # rivals, advised
    of: str
    second: float
    moment: float
    frozen_s: float
    vmaf: float | None
    still: str


class Panel:
    """One variant's receiver: what it shows at any moment, with its caption."""

    def __init__(self, run: Run, stream: str) -> None:
        shown = picturefigures.pictures(run, stream)
        if shown is None:
            raise LabError(f"{run.path}: the pictures of stream {stream} were never scored")
        self.run = run
        self.shown = shown
        self.video = y4m.open_y4m(run.flow_dir(stream, "recv") / "decoded.y4m")
        if self.video.width % 4 or (self.video.height - clip_module.CELL) % 4:
            raise LabError(f"{self.video.path}: width and height must be multiples of 4")
        sojourn = rundata.load_csv(run.path / "series" / "sojourn.csv")
        self.delay_t = sojourn["t"] if sojourn else np.zeros(0)
        self.delay = sojourn["media_max_ms"] if sojourn else np.zeros(0)
        self.losses = _losses(run.path / "series" / "loss.csv", stream)

    @property
    def width(self) -> int:
        return self.video.width // 2

    @property
    def height(self) -> int:
        return (self.video.height - clip_module.CELL) // 2

    def at(self, t: float) -> int:
        """Place in `shown` of the picture that is there at t; -1 before the first."""
        return int(np.searchsorted(self.shown.t, t, "right")) - 1

    def age(self, t: float) -> float:
        """How long the picture has been there at t."""
        place = self.at(t)
        return t - float(self.shown.t[place]) if place >= 0 else 0.0

    def planes(self, t: float, small: bool) -> list[U8]:
        """Y, Cb, Cr of what is shown at t, without the row of numbers; grey before the first."""
        width, height = self.video.width, self.video.height
        top, place = clip_module.CELL, self.at(t)
        if place < 0:
            frame = np.full(y4m.frame_bytes(width, height), 128, np.uint8)
            frame[: width * height] = clip_module.BLACK
        else:
            frame = self.video.frames[int(self.shown.index[place])]
        luma = width * height
        chroma = frame[luma:].reshape(2, height // 2, width // 2)[:, top // 2 :]
        parts = [frame[:luma].reshape(height, width)[top:], chroma[0], chroma[1]]
        return [_halved(part) for part in parts] if small else parts

    def caption(self, t: float, start: float) -> tuple[str, str, bool]:
        """Two lines of text for t, and whether the picture stands still."""
        recent = self.delay[(self.delay_t > t - WINDOW) & (self.delay_t <= t)]
        recent = recent[~np.isnan(recent)]
        wait = f"{recent.max():.{int(recent.max() < 10)}f} ms" if len(recent) else "–"
        lost = int(((self.losses >= start) & (self.losses <= t)).sum())
        age = self.age(t)
        still = age > metrics.FREEZE
        state = f"   FROZEN {age:.1f} s" if still else ""
        return self.run.label, f"delay {wait}   lost {lost}{state}", still


def _losses(path: Path, stream: str) -> F64:
    """When packets of the stream were lost."""
    try:
        rows = [line.split(",") for line in path.read_text().splitlines()[1:]]
    except OSError as err:
        raise LabError(f"{path}: cannot read: {err.strerror}") from err
    return np.array([float(row[0]) for row in rows if row[1] == stream], np.float64)


def _halved(plane: U8) -> U8:
    """Each 2x2 pixels as one, their mean."""
    wide = plane[::2].astype(np.uint16) + plane[1::2]
    mean = (wide[:, ::2] + wide[:, 1::2] + 2) >> 2
    return np.asarray(mean, np.uint8)


@functools.cache
def _font(size: int, bold: bool) -> ImageFont.FreeTypeFont:
    import matplotlib

    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return ImageFont.truetype(f"{matplotlib.get_data_path()}/fonts/ttf/{name}", size)


@functools.lru_cache(maxsize=64)
def _bar(width: int, lines: tuple[str, str], still: bool) -> tuple[U8, U8, U8]:
    """A caption as planes."""
    y, cb, cr = AMBER if still else GREY
    height = width // BAR // 2 * 2
    image = Image.new("L", (width, height), y)
    draw = ImageDraw.Draw(image)
    size, left = round(width * 0.047), width // 40
    draw.text((left, height // 8), lines[0], fill=235, font=_font(size, True))
    draw.text((left, height * 9 // 16), lines[1], fill=235, font=_font(size, False))
    half = (height // 2, width // 2)
    return np.asarray(image), np.full(half, cb, np.uint8), np.full(half, cr, np.uint8)


def compose(panels: list[Panel], t: float, start: float, small: bool = True) -> list[U8]:
    """Y, Cb, Cr of all panels at t, side by side, captions below."""
    told = start + math.floor((t - start) / STEP + 1e-9) * STEP
    parts: list[list[U8]] = [[], [], []]
    for panel in panels:
        planes = panel.planes(t, small)
        # The numbers change slowly enough to be read; that the picture stands still shows at once.
        head, text, still = panel.caption(t, start)
        if not still:
            text = panel.caption(told, start)[1].split("   FROZEN")[0]
        bar = _bar(planes[0].shape[1], (head, text), still)
        for part, plane, line, level in zip(
            parts, planes, bar, (clip_module.BLACK, 128, 128), strict=True
        ):
            column = np.vstack([plane, line])
            if part:
                gap = GAP if plane is planes[0] else GAP // 2
                part.append(np.full((column.shape[0], gap), level, np.uint8))
            part.append(column)
    return [np.hstack(part) for part in parts]


def moments(start: float, stop: float, fps: float) -> F64:
    """When the video's frames are."""
    return np.asarray(start + np.arange(round((stop - start) * fps)) / fps, np.float64)


def video(panels: list[Panel], start: float, stop: float, target: Path) -> None:
    """The video: H.264 as browsers play it."""
    fps = panels[0].run.fps
    first = compose(panels, start, start)
    height, width = first[0].shape
    cmd = [clip_module.ffmpeg_exe(), "-v", "error", "-y", "-f", "rawvideo"]
    cmd += ["-pix_fmt", "yuv420p", "-s", f"{width}x{height}", "-r", f"{fps:g}", "-i", "-"]
    cmd += ["-c:v", "libx264", "-preset", "veryfast", "-crf", "24", "-threads", "2"]
    cmd += ["-pix_fmt", "yuv420p", "-movflags", "+faststart", "-fflags", "+bitexact"]
    cmd += ["-flags:v", "+bitexact", "-f", "mp4", str(target)]
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(cmd, stdin=subprocess.PIPE, stderr=errors) as proc,
    ):
        assert proc.stdin is not None
        try:
            for t in moments(start, stop, fps):
                for plane in compose(panels, float(t), start):
                    proc.stdin.write(plane.tobytes())
            proc.stdin.close()
        except BrokenPipeError:
            pass  # ffmpeg has gone: its message follows
        status = proc.wait()
        errors.seek(0)
        said = errors.read().decode("utf-8", "replace").strip().splitlines()
    if status != 0:
        raise LabError(f"{target}: ffmpeg cannot write: {said[-1] if said else f'exit {status}'}")


def picture(planes: list[U8]) -> Image.Image:
    """Planes of limited range as an image."""
    y = (planes[0].astype(np.float64) - 16) * 255 / 219
    parts = [np.clip(np.round(y), 0, 255).astype(np.uint8)]
    for plane in planes[1:]:
        chroma = (plane.astype(np.float64) - 128) * 255 / 224 + 128
        full = np.clip(np.round(chroma), 0, 255).astype(np.uint8)
        parts.append(np.repeat(np.repeat(full, 2, axis=0), 2, axis=1))
    bands = [Image.fromarray(part) for part in parts]
    return Image.merge("YCbCr", bands).convert("RGB")


def frozen_in(t: F64, start: float, stop: float, end: float) -> float:
    """Time between start and stop within gaps of new pictures longer than FREEZE.

    The last gap is until `end`, when the stream stops.
    """
    ends = np.append(t[1:], end) if len(t) else t
    long = ends - t > metrics.FREEZE
    inside = np.minimum(ends[long], stop) - np.maximum(t[long], start)
    return float(np.maximum(inside, 0).sum())


def worst_second(
    shown: dict[str, tuple[F64, F64]], start: float, stop: float
) -> tuple[str, float, float, float | None]:
    """Name, second, time frozen, mean VMAF of the worst second (see above) of any of these.

    `shown`: when the new pictures of each came, and their VMAF.
    """
    found: list[tuple[float, float, float, str]] = []
    for name, (t, vmaf) in shown.items():
        for number in range(math.floor(stop - start)):
            second = start + number
            scores = vmaf[(t >= second) & (t < second + 1)]
            mean = float(scores.mean()) if len(scores) else -1.0
            found.append((-round(frozen_in(t, second, second + 1, stop), 6), mean, second, name))
    if not found:
        raise LabError("no second to judge: the run is shorter than that")
    frozen, mean, second, name = min(found)
    return name, second, -frozen, mean if mean >= 0 else None


def still_moment(panel: Panel, second: float) -> float:
    """When in a second the panel's picture was oldest."""
    at = moments(second, second + 1, panel.run.fps)
    ages = [round(panel.age(float(t)), 6) for t in at]
    return float(at[int(np.argmax(ages))])


def stream_of(media: list[tuple[str, float, float]]) -> str | None:
    """The stream that is shown, of (name, start, stop)."""
    if not media:
        return None
    return min(media, key=lambda flow: (flow[1] - flow[2], flow[0]))[0]


def make(runs: list[Run], stream: str, out_dir: Path) -> dict[str, Any]:
    """Video, stills and side-by-side.json from the recordings of `stream`, which still exist."""
    panels = [Panel(run, stream) for run in runs]
    flow = next(flow for flow in runs[0].media if flow.name == stream)
    stop = flow.stop
    start = max(flow.start, stop - LENGTH)
    video(panels, start, stop, out_dir / VIDEO)
    worst = []
    for kind, advised in (("rivals", False), ("advised", True)):
        group = {p.run.variant: p for p in panels if p.run.advised == advised}
        if not group:
            continue
        shown = {name: (p.shown.t, p.shown.scores["vmaf"]) for name, p in group.items()}
        name, second, frozen, vmaf = worst_second(shown, start, stop)
        moment = still_moment(group[name], second)
        still = f"worst-{kind}.jpg"
        drawn = picture(compose(panels, moment, start, small=False))
        drawn.save(out_dir / still, quality=75)
        worst.append(Worst(kind, name, second, round(moment, 6), frozen, vmaf, still))
    facts = {
        "stream": stream,
        "start": start,
        "stop": stop,
        "variants": [run.variant for run in runs],
        "worst": [asdict(entry) for entry in worst],
    }
    (out_dir / FACTS).write_text(json.dumps(facts, indent=1) + "\n")
    return facts
