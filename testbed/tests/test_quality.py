# SPDX-License-Identifier: GPL-2.0
"""Quality scores on really encoded pictures; matching by number, not by position."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from test_clip import picture, write

from paqm_lab import clip, quality, y4m
from paqm_lab.errors import LabError

U8 = npt.NDArray[np.uint8]
FRAMES = 24


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Moving pictures with detail: a drifting pattern, numbered."""
    y, x = np.mgrid[: clip.HEIGHT, : clip.WIDTH]
    pictures = []
    for i in range(FRAMES):
        planes = picture(i, 128)
        wave = 60 * np.sin((x + 3 * i) / 5) * np.cos((y - 2 * i) / 9) + 40 * np.sin(x * y / 4000)
        planes[: x.size] = np.clip(128 + wave, 16, 235).astype(np.uint8).ravel()
        clip.burn_barcode(planes, i)
        pictures.append(planes)
    return write(tmp_path_factory.mktemp("clip") / "clip.y4m", pictures)


def encode(source: Path, target: Path, qp: int) -> Path:
    """Through x264 and back."""
    ffmpeg = [clip.ffmpeg_exe(), "-nostdin", "-v", "error", "-y"]
    coded = target.with_suffix(".mkv")
    options = ["-c:v", "libx264", "-threads", "1", "-qp", str(qp)]
    subprocess.run([*ffmpeg, "-i", str(source), *options, str(coded)], check=True)
    subprocess.run([*ffmpeg, "-i", str(coded), "-pix_fmt", "yuv420p", str(target)], check=True)
    return target


def test_scores_fall_with_the_quantizer(source: Path, tmp_path: Path) -> None:
    results = [
        quality.compare(source, encode(source, tmp_path / f"q{qp}.y4m", qp)) for qp in (20, 32, 44)
    ]
    for result in results:
        assert result.src_frame.tolist() == list(range(FRAMES))
    for name in ("psnr_y", "ssim_y", "vmaf"):
        means = [float(getattr(result, name).mean()) for result in results]
        assert means[0] > means[1] > means[2]


def test_psnr_is_right(source: Path, tmp_path: Path) -> None:
    """Against the definition, without the row that carries the number."""
    decoded = encode(source, tmp_path / "d.y4m", 36)
    result = quality.compare(source, decoded)
    a = y4m.open_y4m(source).luma()[:, clip.CELL :].astype(float)
    b = y4m.open_y4m(decoded).luma()[:, clip.CELL :].astype(float)
    mean_square = ((a - b) ** 2).mean(axis=(1, 2))
    assert result.psnr_y == pytest.approx(10 * np.log10(255**2 / mean_square), abs=0.01)


def test_matches_by_number(source: Path, tmp_path: Path) -> None:
    """Frames lost, repeated and unreadable: what is left is compared with its own source."""
    frames = y4m.open_y4m(source).frames
    spoilt = np.array(frames[5])
    spoilt[: clip.WIDTH * clip.CELL] = 126
    chosen = [np.array(frames[i]) for i in (3, 9, 9, 20)] + [spoilt]
    result = quality.compare(source, write(tmp_path / "d.y4m", chosen))
    assert result.src_frame.tolist() == [3, 9, 9, 20, -1]
    assert result.psnr_y[:4].tolist() == [100.0] * 4
    assert result.ssim_y[:4] == pytest.approx([1.0] * 4)
    assert np.isnan([result.psnr_y[4], result.ssim_y[4], result.vmaf[4]]).all()


def test_numbers_beyond_the_clip(source: Path, tmp_path: Path) -> None:
    result = quality.compare(source, write(tmp_path / "d.y4m", [picture(FRAMES)]))
    assert result.src_frame.tolist() == [-1]


def test_nothing_decoded(source: Path, tmp_path: Path) -> None:
    assert len(quality.compare(source, write(tmp_path / "d.y4m", [])).index) == 0


def test_other_size(source: Path, tmp_path: Path) -> None:
    path = tmp_path / "d.y4m"
    path.write_bytes(b"YUV4MPEG2 W4 H2 F24:1\nFRAME\n" + bytes(12))
    with pytest.raises(LabError, match="4x2"):
        quality.compare(source, path)


def test_save_and_load(source: Path, tmp_path: Path) -> None:
    frames = y4m.open_y4m(source).frames
    blank = np.full(frames.shape[1], 126, np.uint8)
    recording = write(tmp_path / "decoded.y4m", [np.array(frames[2]), blank])
    quality.score_all(source, [recording])
    result = quality.load(tmp_path / "quality.csv")
    assert result.src_frame.tolist() == [2, -1]
    assert result.psnr_y[0] == 100.0
    assert np.isnan(result.vmaf[1])
    (tmp_path / "quality.csv").write_text("a,b\n1,2\n")
    with pytest.raises(LabError, match="not a table of picture scores"):
        quality.load(tmp_path / "quality.csv")
