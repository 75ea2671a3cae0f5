# SPDX-License-Identifier: GPL-2.0
"""What receivers saw: a freeze stands in the video when it was, and the worst second is found."""

from __future__ import annotations

import base64
import json
import re
import subprocess
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from synthetic import write_run
from test_clip import picture, write
from test_packets import T0

from paqm_lab import analysis, clip, quality, report, rundata, sidebyside

U8 = npt.NDArray[np.uint8]
FPS = 24
# Pictures of stream a: one each 1/24 s from 0 s on, but none between 4 and 5.5 s.
WHEN = [i / FPS for i in range(14 * FPS) if not 4 < i / FPS < 5.5]


def record(home: Path, when: list[float], vmaf: float) -> None:
    """A receiver's recording: the picture that comes at t is as light as t is late."""
    side = home / "flows" / "a" / "recv"
    numbers = [round(t * FPS) for t in when]
    write(side / "decoded.y4m", [picture(n, level(n / FPS)) for n in numbers])
    rows = "".join(f"{T0 + round(t * 1e9) + 1000},{i}\n" for i, t in enumerate(when))
    (side / "decoded.csv").write_text("t_ns,index\n" + rows)
    count = len(when)
    scores = np.full(count, vmaf)
    scored = quality.Quality(np.arange(count), np.array(numbers), scores, scores, scores)
    quality.save(scored, side / "quality.csv")


def level(t: float) -> int:
    return 40 + round(10 * t)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Two variants, the second without advice and with a freeze."""
    for name in ("paqm", "rival"):
        write_run(tmp_path, variant=name)
    run = tmp_path / "rival" / "run.json"
    data = rundata.load_json(run)
    data["variant"] |= {"sender": "libwebrtc", "qdisc": "fq_codel"}
    run.write_text(json.dumps(data))
    record(tmp_path / "paqm", [i / FPS for i in range(14 * FPS)], 93.0)
    record(tmp_path / "rival", WHEN, 80.0)
    analysis.analyse(tmp_path, "a", progress=lambda _: None)
    return tmp_path


def frames(video: Path) -> U8:
    """Luma of the video's frames."""
    probe = subprocess.run([clip.ffmpeg_exe(), "-i", str(video)], capture_output=True, text=True)
    size = re.search(r"h264.*yuv420p.* (\d+)x(\d+)[ ,]", probe.stderr)
    assert size
    width, height = int(size[1]), int(size[2])
    cmd = [clip.ffmpeg_exe(), "-v", "error", "-i", str(video), "-vf", "extractplanes=y"]
    raw = subprocess.run([*cmd, "-f", "rawvideo", "-"], capture_output=True, check=True).stdout
    return np.frombuffer(raw, np.uint8).reshape(-1, height, width)


def test_freeze_is_where_it_was(out: Path) -> None:
    facts = sidebyside.make(analysis.load_runs(out), "a", out)
    assert (facts["stream"], facts["start"], facts["stop"]) == ("a", 0.0, 14.0)
    seen = frames(out / sidebyside.VIDEO)
    assert len(seen) == 14 * FPS
    left, right = seen[:, 20:150, 40:280].mean(axis=(1, 2)), seen[:, 20:150, 370:600].mean((1, 2))
    # A frame shows what was there by then: a picture that came a microsecond later is in the next.
    expected = np.array([level(max(0, i - 1) / FPS) for i in range(len(seen))], float)
    held = np.array([96 < i <= 132 for i in range(len(seen))])
    assert left[2:] == pytest.approx(expected[2:], abs=1.5)
    assert right[2:][~held[2:]] == pytest.approx(expected[2:][~held[2:]], abs=1.5)
    assert right[held] == pytest.approx(level(4), abs=1.5)


def test_worst_second(out: Path) -> None:
    facts = sidebyside.make(analysis.load_runs(out), "a", out)
    rival, own = facts["worst"]
    # All of the second from 4 s on is frozen; half of the next one.
    assert (rival["kind"], rival["of"], rival["second"]) == ("rivals", "rival", 4.0)
    assert rival["frozen_s"] == pytest.approx(1.0, abs=1e-3)
    assert rival["moment"] == pytest.approx(5 - 1 / FPS, abs=1e-3)
    # Nothing froze, all is equal: the earliest.
    assert (own["kind"], own["of"]) == ("advised", "paqm")
    assert (own["second"], own["frozen_s"]) == (0.0, 0.0)
    assert (out / rival["still"]).stat().st_size < 200_000


def test_report_carries_it(out: Path) -> None:
    """The page has video and stills in itself; without them it is as ever."""
    bare = report.write(out).read_text()
    assert "What the receivers saw" not in bare
    sidebyside.make(analysis.load_runs(out), "a", out)
    page = report.write(out).read_text()
    assert page.count('src="data:image/jpeg;base64,') == 2
    coded = re.search(r'<video [^>]*src="data:video/mp4;base64,([^"]*)"', page)
    assert coded is not None
    assert base64.b64decode(coded[1]) == (out / sidebyside.VIDEO).read_bytes()
    assert f'href="{sidebyside.VIDEO}"' in page


def test_recordings_of_others_are_deleted(out: Path) -> None:
    recording = out / "paqm" / "flows" / "a" / "recv" / "decoded.y4m"
    runs = analysis.load_runs(out)
    analysis.score_pictures(runs, "a", lambda _: None)
    assert recording.exists()
    analysis.score_pictures(runs, "b", lambda _: None)
    assert not recording.exists()


def test_rule() -> None:
    even = np.arange(0, 10, 0.04)
    scores = np.where((even >= 6) & (even < 7), 50.0, 90.0)
    # Frozen time comes before the score, the score before the time.
    assert sidebyside.worst_second({"x": (even, scores)}, 0, 10)[:2] == ("x", 6)
    gap = even[(even < 2.1) | (even > 2.5)]
    both = {"x": (even, scores), "y": (gap, np.full(len(gap), 99.0))}
    name, second, frozen, vmaf = sidebyside.worst_second(both, 0, 10)
    assert (name, second, vmaf) == ("y", 2, 99.0)
    assert frozen == pytest.approx(0.44, abs=0.05)
    # A gap of 200 ms or less is none.
    assert sidebyside.frozen_in(np.array([0.0, 0.2, 0.5]), 0, 0.5, 0.5) == pytest.approx(0.3)


def test_stream() -> None:
    assert sidebyside.stream_of([("c", 10, 35), ("b", 0, 50), ("a", 0, 50)]) == "a"
    assert sidebyside.stream_of([]) is None
