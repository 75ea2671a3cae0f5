# SPDX-License-Identifier: GPL-2.0
"""Raw video files (YUV4MPEG2, 8 bit 4:2:0): header, memory-mapped frames, writer.

A file is mapped, never read as a whole: a 50 s recording is half a gigabyte.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from paqm_lab.errors import LabError

U8 = npt.NDArray[np.uint8]
FRAME_TAG = b"FRAME\n"
MAX_HEADER = 1024


@dataclass(frozen=True)
class Y4m:
    """An open file: every frame is one row of `frames`, planes Y, U, V one after the other."""

    path: Path
    width: int
    height: int
    fps: Fraction
    frames: U8

    @property
    def count(self) -> int:
        return int(self.frames.shape[0])

    def luma(self) -> U8:
        """All luma planes, (count, height, width), still mapped."""
        size = self.width * self.height
        return self.frames[:, :size].reshape(self.count, self.height, self.width)


def frame_bytes(width: int, height: int) -> int:
    """Bytes of one 4:2:0 picture."""
    return width * height + 2 * ((width + 1) // 2) * ((height + 1) // 2)


def header(width: int, height: int, fps: Fraction) -> bytes:
    """The stream header line."""
    rate = f"F{fps.numerator}:{fps.denominator}"
    return f"YUV4MPEG2 W{width} H{height} {rate} Ip A1:1 C420jpeg\n".encode()


def write_frame(out: BinaryIO, planes: bytes | memoryview) -> None:
    """Append one picture."""
    out.write(FRAME_TAG)
    out.write(planes)


def open_y4m(path: Path) -> Y4m:
    """Map a file. A cut last frame is left out; anything else that is odd is an error."""
    try:
        with path.open("rb") as f:
            line = f.readline(MAX_HEADER)
    except OSError as err:
        raise LabError(f"{path}: cannot read the video file: {err.strerror}") from err
    words = line.decode("ascii", "replace").split()
    if not words or words[0] != "YUV4MPEG2" or not line.endswith(b"\n"):
        raise LabError(f"{path}: not a y4m file (no YUV4MPEG2 header)")
    tags = {w[0]: w[1:] for w in words[1:]}
    try:
        width, height = int(tags["W"]), int(tags["H"])
        num, den = tags.get("F", "24:1").split(":")
        fps = Fraction(int(num), int(den))
    except (KeyError, ValueError, ZeroDivisionError) as err:
        raise LabError(f"{path}: y4m header has no usable size or rate: {line!r}") from err
    if width <= 0 or height <= 0:
        raise LabError(f"{path}: y4m header has no usable size: {line!r}")
    if not tags.get("C", "420jpeg").startswith("420") or "p1" in tags.get("C", ""):
        raise LabError(f"{path}: y4m colour space C{tags['C']}, expected 8-bit 4:2:0 (C420...)")
    step = len(FRAME_TAG) + frame_bytes(width, height)
    count = (path.stat().st_size - len(line)) // step
    if count == 0:
        return Y4m(path, width, height, fps, np.zeros((0, step - len(FRAME_TAG)), np.uint8))
    raw = np.memmap(path, np.uint8, "r", offset=len(line), shape=(count, step))
    tag = np.frombuffer(FRAME_TAG, np.uint8)
    if not bool(np.all(raw[:, : len(tag)] == tag)):
        bad = int(np.argmax(np.any(raw[:, : len(tag)] != tag, axis=1)))
        raise LabError(f"{path}: frame {bad} does not start with a plain FRAME line")
    return Y4m(path, width, height, fps, raw[:, len(tag) :])
