# SPDX-License-Identifier: GPL-2.0
"""The layers of a simulcast publisher: the lab's clip, encoded once at several rates.

Each is an IVF file with H.264 access units, as paqm-sfu-load reads it. A layer has a key picture
every half second, where a server may change to it; not all have it at once. Rates are kept as a
conference's encoder keeps them (x264, VBV of an eighth of a second).

A publisher of one stream has an encoder that is told its rate. Its layers are many, in steps of
7 %, with key pictures at the same places.
"""

from __future__ import annotations

import hashlib
import math
import struct
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from paqm_lab import cache, clip, ladder
from paqm_lab.errors import LabError

# kbit/s and size. Steps of less than 1.5, as an estimator that sends no padding (pion's) grows to
# 1.5 of what arrives and no further.
LAYERS = [
    (150, 320, 180), (215, 320, 180), (310, 480, 270), (450, 480, 270), (650, 640, 360),
    (940, 640, 360), (1360, 640, 360),
]  # fmt: skip
STEP = 1.07  # of an encoder that is told its rate
GOP = 12
X264 = f"keyint={2 * GOP}:min-keyint=1:scenecut=0:slices=1:sliced-threads=0:repeat-headers=1"


def _encode(source: Path, phase: int, kbits: int, width: int, height: int) -> bytes:
    command = [clip.ffmpeg_exe(), "-nostdin", "-v", "error", "-i", str(source), "-an"]
    command += ["-threads", "1", "-vf", f"scale={width}:{height}", "-c:v", "libx264"]
    command += ["-preset", "veryfast", "-tune", "zerolatency", "-profile:v", "baseline"]
    command += ["-b:v", f"{kbits}k", "-maxrate", f"{kbits}k", "-bufsize", f"{kbits // 8}k"]
    command += ["-force_key_frames", f"expr:eq(mod(n,{GOP}),{phase})"]
    command += ["-x264-params", X264, "-f", "h264", "-"]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        raise LabError(f"{source}: ffmpeg cannot encode it: {done.stderr.decode()[-200:]}")
    return done.stdout


def ivf(units: list[bytes], width: int, height: int, fps: int) -> bytes:
    """An IVF file of these pictures."""
    head = struct.pack("<4sHH4sHHIIII", b"DKIF", 0, 32, b"H264", width, height, fps, 1,
                       len(units), 0)
    return head + b"".join(struct.pack("<IQ", len(unit), n) + unit
                           for n, unit in enumerate(units))


def steps() -> list[tuple[int, int, int]]:
    """Rates and sizes of such an encoder, from the least of LAYERS to the largest."""
    count = int(math.log(LAYERS[-1][0] / LAYERS[0][0], STEP)) + 1
    rates = [round(LAYERS[0][0] * STEP**n) for n in range(count)]
    down = LAYERS[::-1]
    return [next((rate, width, height) for kbits, width, height in down if kbits <= rate)
            for rate in rates]  # fmt: skip


def _make(source: Path, layers: Sequence[tuple[int, int, int]], shift: int, target: Path,
          progress: Callable[[str], None]) -> None:  # fmt: skip
    """Encodes them. @shift: pictures by which a layer's key pictures come after the last one's"""
    digits = len(str(len(layers)))
    with tempfile.TemporaryDirectory(prefix=".sfu-", dir=target.parent) as name:
        made = Path(name) / "layers"
        made.mkdir()
        for number, (kbits, width, height) in enumerate(layers, start=1):
            progress(f"layers: {kbits} kbit/s, {width}x{height}")
            units = [unit for unit, _ in ladder.access_units(_encode(
                source, shift * number % GOP, kbits, width, height))]
            whole = units[: len(units) // GOP * GOP]
            (made / f"l{number:0{digits}}.ivf").write_bytes(ivf(whole, width, height, clip.FPS))
        made.rename(target)


def prepare(progress: Callable[[str], None], single: bool = False) -> Path:
    """The directory with the layers, made once.

    @single: of a publisher with one stream
    """
    source = clip.prepare(cache.cache_dir(), progress)
    layers, shift = (steps(), 0) if single else (LAYERS, 2)
    made_of = (layers, X264, "phases" if shift else "one phase", source.name)
    key = hashlib.sha256(repr(made_of).encode()).hexdigest()[:12]
    target = cache.cache_dir() / f"sfu-layers-{key}"
    with cache.locked(target.name):  # runs beside each other begin with this
        if not target.exists():
            _make(source, layers, shift, target, progress)
    return target
