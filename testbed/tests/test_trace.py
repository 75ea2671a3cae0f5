# SPDX-License-Identifier: GPL-2.0
"""Quality ladders and the trace tool: real encoder, real sender and receiver over loopback."""

from __future__ import annotations

import csv
import json
import random
import re
import shutil
import socket
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paqm_lab import cache, ladder, trace, y4m
from paqm_lab.errors import LabError

WIDTH, HEIGHT, FRAMES, GOP = 176, 144, 50, 12
STREAMER = cache.REPO / "build" / "streamer" / "paqm-streamer"


def test_the_package_has_all_that_it_imports(tmp_path: Path) -> None:
    listed = (cache.REPO / "packaging" / "debian" / "paqm-trace.install").read_text()
    (tmp_path / "paqm_lab").mkdir()
    modules = [words[0] for words in map(str.split, listed.splitlines()) if len(words) == 2
               and words[1].endswith("/paqm_lab")]  # fmt: skip
    for module in modules:
        shutil.copy(cache.REPO / module, tmp_path / "paqm_lab")
    run = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import paqm_lab.trace"
    done = subprocess.run([sys.executable, "-I", "-c", run], capture_output=True, text=True)
    assert modules and done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A drifting pattern with detail, and a cut in the middle."""
    path = tmp_path_factory.mktemp("clip") / "clip.y4m"
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    with path.open("wb") as out:
        out.write(y4m.header(WIDTH, HEIGHT, Fraction(25)))
        for i in range(FRAMES):
            scale = 5 if i < FRAMES // 2 else 11
            luma = 128 + 90 * np.sin((x + 3 * i) / scale) * np.cos((y - 2 * i) / 9)
            chroma = np.full(WIDTH * HEIGHT // 2, 128, np.uint8)
            y4m.write_frame(out, luma.astype(np.uint8).tobytes() + chroma.tobytes())
    return path


@pytest.fixture(scope="module")
def made(clip: Path) -> ladder.Ladder:
    return ladder.build(
        clip, clip.parent / "ladder", q_min=28, q_max=33, gop=GOP, progress=lambda _: None
    )


def test_every_rung_has_the_same_pictures_and_keys(made: ladder.Ladder) -> None:
    assert made.frames == 48  # whole groups only
    for q in range(made.q_min, made.q_max + 1):
        units = list(ladder.access_units(made.rung(q).read_bytes()))
        assert [key for _, key in units] == [i % GOP == 0 for i in range(made.frames)]
        assert made.splice([(q, i) for i in range(made.frames)]) == made.rung(q).read_bytes()
    totals = made.size.sum(axis=1)
    assert np.all(np.diff(totals) < 0)


def test_a_ladder_is_not_overwritten(clip: Path, made: ladder.Ladder) -> None:
    with pytest.raises(LabError, match="is there already"):
        ladder.build(clip, made.path)


@pytest.mark.parametrize(
    ("options", "says"),
    [({"gop": 0}, "groups of 0 pictures: expected 1 to 600"), ({"gop": -1}, "groups of -1"),
     ({"gop": 601}, "groups of 601"), ({"q_max": 52}, "expected 0 <= first <= last <= 51"),
     ({"preset": "nope"}, "quantizer 19: .*invalid preset 'nope'")],
)  # fmt: skip
def test_wrong_options_make_no_ladder(
    clip: Path, tmp_path: Path, options: dict[str, Any], says: str
) -> None:
    with pytest.raises(LabError, match=says):
        ladder.build(clip, tmp_path / "wrong", **options, progress=lambda _: None)
    assert not list(tmp_path.iterdir())


def test_foreign_ladders_are_refused(made: ladder.Ladder, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(made.path, copy)
    rows = (copy / "frames.csv").read_text().splitlines()
    (copy / "frames.csv").write_text("\n".join(rows[:-1]) + "\n")
    with pytest.raises(LabError, match="lacks pictures"):
        ladder.load(copy)
    (copy / "ladder.json").write_text("{}")
    with pytest.raises(LabError, match="not a ladder"):
        ladder.load(copy)
    with pytest.raises(LabError, match="cannot read"):
        ladder.load(tmp_path / "nowhere")


def _ports() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1] // 2 * 2 - 20)


@pytest.fixture(scope="module")
def sent_over_loopback(made: ladder.Ladder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two flows for the length of the clip; the directory of the logs."""
    if not STREAMER.exists():
        pytest.skip("paqm-streamer is not built")
    home = tmp_path_factory.mktemp("loopback")
    to = f"127.0.0.1:{_ports()}"
    receiver = subprocess.Popen(
        [STREAMER, "recv", "--trace", "--listen", to, "--flows", "2", "--log", home / "recv",
         "--record", home / "first.h264"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert receiver.stdout is not None
    assert "listening" in receiver.stdout.readline()
    subprocess.run(
        [STREAMER, "send", "--trace", made.path, "--to", to, "--flows", "2", "--rate-max",
         "400kbit", "--duration", "4", "--paqmd", "none", "--seed", "1", "--log", home / "send"],
        check=True, stdout=subprocess.PIPE,
    )  # fmt: skip
    receiver.terminate()
    assert receiver.wait(timeout=10) == 0
    return home


def test_what_arrives_is_what_the_quantizers_say(
    made: ladder.Ladder, clip: Path, sent_over_loopback: Path, tmp_path: Path
) -> None:
    home = sent_over_loopback
    report = trace.post(
        made.path, clip, home / "send" / "flow000", home / "recv" / "flow000",
        [trace.parse_limit("none")], tmp_path, home / "first.h264",
    )  # fmt: skip
    assert report["recording_equal"] is True
    assert report["network"]["pictures"] == made.frames  # the whole clip, once
    assert report["network"]["packets_lost"] == 0
    row = report["limits"]["none"]
    assert row["slipped"] == 0 and row["freezes"] == 0
    assert row["psnr_y"] == report["sent"]["psnr_y"] > 25
    # byte for byte, from the other log: which quantizer each group was sent at
    with (home / "send" / "flow000" / "tx.csv").open(newline="") as f:
        chosen = {int(r["frame"]): (int(r["q"]), int(r["src_frame"])) for r in csv.DictReader(f)}
    assert all(chosen[i][0] == chosen[i // GOP * GOP][0] for i in chosen)
    assert (tmp_path / "none.h264").read_bytes() == made.splice(list(chosen.values()))


def test_an_ffmpeg_without_libvmaf_gives_the_other_scores(
    made: ladder.Ladder,
    clip: Path,
    sent_over_loopback: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    logs = (sent_over_loopback / "send" / "flow000", sent_over_loopback / "recv" / "flow000")
    reports = []
    for has in (True, False):
        monkeypatch.setattr(trace, "has_vmaf", lambda has=has: has)
        reports.append(trace.post(made.path, clip, *logs, [trace.parse_limit("none")], tmp_path))
    with_vmaf, without = (report["limits"]["none"] for report in reports)
    assert with_vmaf.pop("vmaf") > 50 and without.pop("vmaf") is None
    assert without == with_vmaf


def test_the_second_flow_begins_elsewhere_and_goes_on(
    made: ladder.Ladder, sent_over_loopback: Path
) -> None:
    sent = trace.read_sent(sent_over_loopback / "send" / "flow001" / "tx.csv")
    assert len(sent.q) > made.frames
    assert set(sent.src) <= set(range(made.frames))


@pytest.mark.parametrize(
    ("lost", "slipped", "gap"),
    [
        pytest.param(range(27, 35), 8, 9, id="within a group"),
        pytest.param(range(24, 26), 12, 13, id="a key picture: the whole group"),
    ],
)
def test_losses_slip_and_freeze(
    made: ladder.Ladder,
    clip: Path,
    sent_over_loopback: Path,
    tmp_path: Path,
    lost: range,
    slipped: int,
    gap: int,
) -> None:
    source = sent_over_loopback / "send" / "flow000"
    sent = trace.read_sent(source / "tx.csv")
    gone = {int(i) + sent.seq0 & 0xFFFF for i in np.flatnonzero(np.isin(sent.frame, lost))}
    rows = (sent_over_loopback / "recv" / "flow000" / "rx.csv").read_text().splitlines()
    kept = [rows[0], *(r for r in rows[1:] if int(r.split(",")[1]) not in gone)]
    (tmp_path / "rx.csv").write_text("\n".join(kept) + "\n")
    report = trace.post(made.path, clip, source, tmp_path, [trace.parse_limit("none")], tmp_path)
    row = report["limits"]["none"]
    keys = sum(i % GOP == 0 for i in lost)
    assert report["network"]["pictures_lost"] == {"I": keys, "P": len(lost) - keys}
    assert row["slipped"] == slipped and row["freezes"] == 1
    assert row["freeze_s"] == pytest.approx(gap / 25, abs=1e-3)
    assert row["psnr_y"] < report["sent"]["psnr_y"] - 1
    assert json.loads((tmp_path / "report.json").read_text()) == report


def test_a_flow_that_ends_frozen_freezes() -> None:
    shown = np.zeros(250, np.bool_)
    shown[:50] = True
    count, seconds = trace._freezes(shown, 0.04)
    assert count == 1 and seconds == pytest.approx(8.04)
    assert trace._freezes(np.ones(250, np.bool_), 0.04) == (0, 0.0)


def _sent(count: int, interval: float = 0.04) -> trace.Sent:
    begun = (np.arange(count) * interval * 1e9).astype(np.int64)
    index = np.arange(count)
    return trace.Sent(index, begun, np.full(count, 100), 65533, np.full(count, 30), index,
                      index % GOP == 0, begun)  # fmt: skip


def test_sequence_numbers_wrap_and_copies_are_passed_over(tmp_path: Path) -> None:
    sent = _sent(6)
    lines = ["t_ns,seq,rtp_ts,marker,wire_bytes"]
    for index, late in ((0, 1), (2, 2), (1, 3), (2, 9), (4, 4)):
        t = int(sent.t[index]) + late * 1_000_000
        lines.append(f"{t},{65533 + index & 0xFFFF},0,1,100")
    lines.append("0,30000,0,1,100")  # of no packet sent
    (tmp_path / "rx.csv").write_text("\n".join(lines) + "\n")
    delay = trace.read_arrivals(tmp_path / "rx.csv", sent)
    assert np.round(delay[[0, 1, 2, 4]] * 1000).tolist() == [1, 3, 2, 4]
    assert np.isinf(delay[[3, 5]]).all()


@pytest.mark.parametrize("begun", ["80000", "80000000,65535,0", "80000000,65535,0,1,10"])
def test_a_line_that_is_being_written_is_left_out(tmp_path: Path, begun: str) -> None:
    lines = ["t_ns,seq,rtp_ts,marker,wire_bytes", "1000000,65533,0,1,100", begun]
    (tmp_path / "rx.csv").write_text("\n".join(lines))
    assert np.isfinite(trace.read_arrivals(tmp_path / "rx.csv", _sent(4))).tolist() == [
        True, False, False, False]  # fmt: skip


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("80000", "line 3: 1 columns instead of 5"),
        ("80000000,65535,0,1,100,1", "line 3: 6 columns instead of 5"),
        ("", "line 3: 0 columns instead of 5"),
        ("80000000,6553x,0,1,100", 'line 3: seq is "6553x", not a number'),
        (",65535,0,1,100", 'line 3: t_ns is "", not a number'),
        ('"8\n9",65535,0,1,100', 'line 3: t_ns is "8\n9", not a number'),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, row: str, says: str) -> None:
    path = tmp_path / "rx.csv"
    lines = ["t_ns,seq,rtp_ts,marker,wire_bytes", "1000000,65533,0,1,100", row, "9,2,0,1,100"]
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(LabError) as err:
        trace.read_arrivals(path, _sent(4))
    assert str(err.value).startswith(f"{path}, {says}")
    path.write_text("t_ns,wire_bytes\n1,2\n")
    with pytest.raises(LabError, match="there is no column seq"):
        trace.read_arrivals(path, _sent(4))


def test_limits() -> None:
    sent = _sent(5)
    arrival = np.array([0.010, np.inf, 0.300, 0.130, 0.420])  # due after 0, 40, 80, ... ms
    shown = {
        text: trace.accept(sent, arrival, trace.parse_limit(text), 0.04).tolist()
        for text in ("none", "buffer:0.15", "deadline:0.15")
    }
    assert shown["none"] == [True, False, True, True, True]
    # due at 160 ms and then every 40 ms
    assert shown["buffer:0.15"] == [True, False, False, True, False]
    assert shown["deadline:0.15"] == [True, False, False, True, False]
    for text in ("", "buffer", "buffer:0", "deadline:-1", "delay:1", "buffer:x"):
        with pytest.raises(LabError, match="is no limit"):
            trace.parse_limit(text)


def test_mos_has_the_published_steps() -> None:
    assert trace.mos(np.array([19.9, 20.1, 25.1, 31.1, 37.1])).tolist() == [1, 2, 3, 4, 5]


def test_trace_tool_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert trace.main(["pre", str(tmp_path / "no.y4m"), "--out", str(tmp_path / "l")]) == 2
    assert "no.y4m: cannot read" in capsys.readouterr().err
    assert trace.main(["pre", "x", "--out", "y", "--ladder", "a..b"]) == 2
    assert "give 19..43" in capsys.readouterr().err


def test_a_recording_is_compared_whatever_the_limits(
    made: ladder.Ladder, clip: Path, sent_over_loopback: Path, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    home, other, out = sent_over_loopback, tmp_path / "other.h264", tmp_path / "out"
    words = ["post", made.path, clip, "--sent", home / "send" / "flow000", "--received",
             home / "recv" / "flow000", "--out", out, "--recorded", other]  # fmt: skip
    words += ["--limit", "deadline:0.15", "--limit", "deadline:0.1504"]
    other.write_bytes(b"x")
    assert trace.main([str(word) for word in words]) == 1
    assert "other.h264: differs from what the logs say" in capsys.readouterr().err
    limits = json.loads((out / "report.json").read_text())["limits"]
    assert list(limits) == ["deadline-150ms", "deadline-150.4ms"]
    other.unlink()
    assert trace.main([str(word) for word in words]) == 2
    assert "other.h264: No such file" in capsys.readouterr().err


def test_trace_tool_names_what_it_cannot_write(clip: Path, tmp_path: Path) -> None:
    """And says nothing to a reader who has left."""
    tool = [str(cache.TESTBED / "paqm-trace"), "pre", str(clip), "--ladder", "40..40", "--out"]
    done = subprocess.run([*tool, "/dev/null/ladder"], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr == "paqm-trace: /dev/null: File exists\n"
    command = ["sh", "-c", '"$@" | exec true', "sh", *tool, str(tmp_path / "ladder")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stderr == ""


def test_cells_are_read_at_once_as_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plain logs are read by NumPy, others and broken ones by csv: to the same numbers."""
    rng = random.Random(3)
    numbers = [0, -1, 2**63 - 1, -(2**63), *(rng.randrange(10 ** rng.randint(1, 18))
                                             for _ in range(500))]  # fmt: skip
    letters = [rng.choice("IPF") for _ in numbers]
    path = tmp_path / "tx.csv"
    lines = [f"{letter},{number},{-1 - number}" for letter, number in
             zip(letters, numbers, strict=True)]  # fmt: skip
    path.write_text("\n".join(["type,a,b", *lines, "I,1"]))
    slow = trace._columns_with_care(path, "\n".join(["type,a,b", *lines, ""]).encode(),
                                    ("type", "a", "b"))  # fmt: skip
    with monkeypatch.context() as patch:
        patch.delattr(trace, "_columns_with_care")
        quick = trace._columns(path, "type", "a", "b")
    for table in (quick, slow):
        assert table["type"].tolist() == letters
        assert table["a"].tolist() == numbers
        assert table["b"].tolist() == [-1 - number for number in numbers]


@pytest.mark.parametrize("cell", ["9223372036854775808", "", " 1", "+1", "1.0", "1e3", "1-2", "I",
                                  "0x1", "1_0", "\u0661"])  # fmt: skip
def test_what_is_no_number_is_named(cell: str, tmp_path: Path) -> None:
    path = tmp_path / "rx.csv"
    path.write_text(f"a,b\n1,1\n1,{cell}\n")
    with pytest.raises(LabError, match=re.escape(f'line 3: b is "{cell}", not a number')):
        trace._columns(path, "b")


def test_cells_are_never_cut_short_or_left_out(tmp_path: Path) -> None:
    path = tmp_path / "tx.csv"
    path.write_text("type,a\nIPI,1\nP,2\n")
    assert trace._columns(path, "type")["type"].tolist() == ["IPI", "P"]
    path.write_text("type,a\nI,1\n\nP,2\n")
    with pytest.raises(LabError, match="line 3: 0 columns instead of 2"):
        trace._columns(path, "a")
    path.write_bytes(b"type,a\nI,1\n\xff,2\n")
    with pytest.raises(LabError, match="not a log"):
        trace._columns(path, "a")
    path.write_text("type,a\n")
    with pytest.raises(LabError, match="no packet in it"):
        trace._columns(path, "a")


def test_each_number_is_the_nearest_to_the_newest() -> None:
    rng = random.Random(5)
    far = (1, 1, 1, 2, -3, 30000, -30000, 32767, 32768, -32768, 40000)
    for _ in range(300):
        at, newest, numbers, expected = 0, -1, [], []
        for _ in range(rng.randint(1, 40)):
            at += rng.choice(far)
            numbers.append(at % 0x10000 - rng.choice((0, 5, 40000)))
            same = range(numbers[-1] - 0x1000000, numbers[-1] + 0x1000000, 0x10000)
            index = next(i for i in same if newest - 0x8000 <= i < newest + 0x8000)
            expected.append(index)
            newest = max(newest, index)
        assert trace._unwrap(np.array(numbers, np.int64)).tolist() == expected
