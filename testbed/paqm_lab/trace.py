# SPDX-License-Identifier: GPL-2.0
"""paqm-trace: quality ladders before a run of trace flows, and the received video after it.

`pre` makes a ladder (ladder.py). `post` rebuilds what a receiver would have shown, from the
sender's and the receiver's packet logs: without a limit, with a play-out buffer, with a deadline;
decodes it, fills the gaps with the last picture, and scores every slot against the clip. Method:
A. Lie, thesis 2008:74, Evalvid-RA.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from paqm_lab import ladder as ladder_module
from paqm_lab import quality, y4m
from paqm_lab.clip import ffmpeg_exe, has_vmaf
from paqm_lab.errors import LabError

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
FREEZE = 0.2  # s without a new picture
WINDOW = 10.0  # s of the sliding comparison
PLAIN = b"0123456789-,IPF\n"  # what the cells of a log are made of
READER_LEFT = 128 + 13  # as a program that SIGPIPE ends
# Mean opinion score of a PSNR in dB, as EvalVid has it.
MOS = ((37.0, 5), (31.0, 4), (25.0, 3), (20.0, 2))


@dataclass(frozen=True)
class Sent:
    """The sender's log, per picture and per packet."""

    frame: I64  # of each packet
    t: I64  # ns, of each packet
    wire: I64
    seq0: int
    q: I64  # of each picture
    src: I64
    key: npt.NDArray[np.bool_]
    begun: I64  # ns, first packet of each picture
    place: I64 | None = None  # of each packet among all that were sent; None: there are no others


@dataclass(frozen=True)
class Limit:
    """How long the receiver waits for a picture."""

    name: str
    buffer: float | None = None
    deadline: float | None = None


def parse_limit(text: str) -> Limit:
    """none, buffer:SECONDS or deadline:SECONDS."""
    if text == "none":
        return Limit("none")
    kind, _, value = text.partition(":")
    try:
        seconds = float(value)
    except ValueError:
        seconds = -1.0
    if kind not in ("buffer", "deadline") or not 0 < seconds <= 3600:
        raise LabError(f'"{text}" is no limit: give none, buffer:SECONDS or deadline:SECONDS')
    name = f"{kind}-{round(seconds * 1000, 6):.15g}ms"
    return Limit(name, **{kind: seconds})


def _columns(path: Path, *names: str) -> dict[str, Any]:
    """Columns of a log: numbers, but for `type`, which is text.

    Who writes the log may not be done, so a line without its end is left out.
    """
    try:
        data = path.read_bytes()
    except OSError as err:
        raise LabError(f"{path}: cannot read the log: {err.strerror}") from err
    data = data[: data.rfind(b"\n") + 1]
    head, _, body = data.partition(b"\n")
    there = head.decode(errors="replace").split(",")
    plain = body and not body.translate(None, PLAIN) and b"\n\n" not in data
    if plain and set(names) <= set(there):
        dtype = [(name, "U2" if name == "type" else "i8") for name in there]
        try:
            table = np.loadtxt(
                io.StringIO(body.decode()), dtype, delimiter=",", comments=None, ndmin=1
            )
            if "type" not in names or (np.char.str_len(table["type"]) < 2).all():
                return {name: table[name] for name in names}
        except ValueError:
            pass  # some line is not as it should be: which one?
    return _columns_with_care(path, data, names)


def _columns_with_care(path: Path, data: bytes, names: tuple[str, ...]) -> dict[str, Any]:
    """The same cell by cell, twenty times slower: a log that is none is refused by its line."""
    try:
        rows = list(csv.reader(io.StringIO(data.decode(), newline="")))
    except (UnicodeDecodeError, csv.Error) as err:
        raise LabError(f"{path}: not a log of send --trace or recv --trace: {err}") from err
    if len(rows) < 2:
        raise LabError(f"{path}: no packet in it")
    for line, row in enumerate(rows, 1):
        if len(row) != len(rows[0]):
            raise LabError(
                f"{path}, line {line}: {len(row)} columns instead of {len(rows[0])}; "
                "was it written by two programs, or was the disk full?"
            )
    columns: dict[str, Any] = {}
    for name in names:
        if name not in rows[0]:
            raise LabError(f"{path}: there is no column {name}; is it the right log?")
        place = rows[0].index(name)
        texts = [row[place] for row in rows[1:]]
        for line, text in enumerate(texts if name != "type" else (), 2):
            if not re.fullmatch(r"-?[0-9]+", text) or not -(2**63) <= int(text) < 2**63:
                raise LabError(f'{path}, line {line}: {name} is "{text}", not a number')
        columns[name] = np.array(texts, None if name == "type" else np.int64)
    return columns


def read_sent(path: Path) -> Sent:
    """tx.csv of a flow."""
    names = ("frame", "t_ns", "frag", "nfrag", "wire_bytes", "q", "src_frame")
    table = _columns(path, "type", "seq", *names)
    try:
        # What only fills trains of packets is of no picture.
        kind = table["type"]
        place = np.flatnonzero(kind != "F")
        seq0 = int(table["seq"][0])
        frame, t, frag, nfrag, wire, q, src = (table[name][place] for name in names)
        first = np.flatnonzero(frag == 0)
        # A flow that was stopped within a picture has sent no whole one there.
        complete = frame <= frame[-1]
        if frag[-1] + 1 != nfrag[-1]:
            complete = frame < frame[-1]
            first = first[: len(first) - 1]
        if not np.array_equal(frame[first], np.arange(len(first))):
            raise LabError(f"{path}: pictures are missing in the sender's log")
        return Sent(
            frame=frame[complete],
            t=t[complete],
            wire=wire[complete],
            seq0=seq0,
            q=q[first],
            src=src[first],
            key=kind[place][first] == "I",
            begun=t[first],
            place=place[complete],
        )
    except (IndexError, ValueError) as err:
        raise LabError(f"{path}: not a log of send --trace: {err}") from err


def read_arrivals(path: Path, sent: Sent) -> F64:
    """Arrival of each packet sent, s after its sending; infinite: lost."""
    table = _columns(path, "seq", "t_ns")
    place = np.arange(len(sent.t)) if sent.place is None else sent.place
    delay = np.full(len(sent.t), np.inf)
    index = _unwrap(table["seq"] - sent.seq0)
    row = np.minimum(np.searchsorted(place, index), len(place) - 1)
    known = place[row] == index
    row = row[known]
    np.minimum.at(delay, row, (table["t_ns"][known] - sent.t[row]) / 1e9)
    return delay


def _unwrap(number: I64) -> I64:
    """What 16-bit numbers, of which the first should be 0, count: each is the one that is nearest
    to the newest before it."""
    # Nearest to the one before it, which is the same unless packets were late by half of all
    # numbers.
    steps = (np.diff(number, prepend=-1) + 0x8000) % 0x10000 - 0x8000
    index = np.cumsum(steps) - 1
    newest = np.maximum.accumulate(np.append(-1, index[:-1]))
    if (abs(index - newest + 0.5) <= 0x8000).all():
        return index
    last = -1
    for i, seq in enumerate(number.tolist()):
        index[i] = last + (seq - last + 0x8000) % 0x10000 - 0x8000
        last = max(last, int(index[i]))
    return index


def received_bytes(path: Path) -> tuple[I64, I64]:
    """Times and sizes of what a receiver got."""
    table = _columns(path, "t_ns", "wire_bytes")
    return table["t_ns"], table["wire_bytes"]


def frame_arrivals(sent: Sent, delay: F64) -> F64:
    """When the last packet of each picture came, s after the first picture began."""
    at = (sent.t - sent.begun[0]) / 1e9 + delay
    last = np.zeros(len(sent.q))
    np.maximum.at(last, sent.frame, at)
    return last


def accept(sent: Sent, arrival: F64, limit: Limit, interval: float) -> npt.NDArray[np.bool_]:
    """Which pictures are shown."""
    complete: npt.NDArray[np.bool_] = np.isfinite(arrival)
    if limit.deadline is not None:
        begun = (sent.begun - sent.begun[0]) / 1e9
        complete &= arrival - begun <= limit.deadline
    elif limit.buffer is not None and bool(complete.any()):
        first = int(np.argmax(complete))
        due = arrival[first] + limit.buffer + (np.arange(len(arrival)) - first) * interval
        complete &= arrival <= due
    return complete


def _decode(ladder: ladder_module.Ladder, stream: bytes, out: Path) -> y4m.Y4m:
    source = out.with_suffix(".h264")
    source.write_bytes(stream)
    cmd = [ffmpeg_exe(), "-nostdin", "-v", "fatal", "-threads", "1", "-f", "h264"]
    cmd += ["-r", str(ladder.fps), "-i", str(source), "-fps_mode", "passthrough"]
    cmd += ["-pix_fmt", "yuv420p", "-f", "yuv4mpegpipe", "-y", str(out)]
    done = subprocess.run(cmd, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["no output"]
        raise LabError(f"{source}: ffmpeg cannot decode it: {lines[-1]}")
    return y4m.open_y4m(out)


def mos(psnr: F64) -> F64:
    """EvalVid's mean opinion score of each picture."""
    score = np.ones(len(psnr))
    for bound, value in reversed(MOS):
        score[psnr > bound] = value
    return score


def decodable(sent: Sent, accepted: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Without the groups whose key picture is missing: a decoder waits for the next one.

    What follows another lost picture is decoded from the wrong reference, and shows it.
    """
    group = np.cumsum(sent.key) - 1
    keyed: npt.NDArray[np.bool_] = accepted[np.flatnonzero(sent.key)][group]
    return accepted & keyed


def _score(
    ladder: ladder_module.Ladder,
    clip: y4m.Y4m,
    sent: Sent,
    shown: npt.NDArray[np.bool_],
    tmp: Path,
    with_vmaf: bool,
) -> tuple[quality.Quality, int]:
    """Score of every slot from the first picture shown; and which that is."""
    slots = np.flatnonzero(shown)
    if not len(slots):
        raise LabError("no key picture arrived in time: there is nothing to show")
    first = int(slots[0])
    stream = ladder.splice([(int(sent.q[i]), int(sent.src[i])) for i in slots])
    video = _decode(ladder, stream, tmp / "shown.y4m")
    if video.count != len(slots):
        raise LabError(f"the decoder made {video.count} pictures of {len(slots)} access units")
    held = np.cumsum(shown) - 1  # the picture on the screen in each slot
    pairs = [(int(held[i]), int(sent.src[i])) for i in range(first, len(shown))]
    return quality.score(clip, video, pairs, with_vmaf=with_vmaf), first


def _freezes(shown: npt.NDArray[np.bool_], interval: float) -> tuple[int, float]:
    """Gaps of more than FREEZE between pictures, and their seconds; the last ends with the flow."""
    at = np.append(np.flatnonzero(shown), len(shown)) * interval
    gaps = np.diff(at)
    long = gaps[gaps > FREEZE]
    return len(long), float(long.sum())


def _degraded(before: F64, after: F64, slots: int) -> float | None:
    """Share of sliding windows whose mean opinion score is lower than before transmission."""
    if len(after) < slots or slots < 1:
        return None
    kernel = np.ones(slots) / slots
    then = np.convolve(mos(before), kernel, "valid")
    now = np.convolve(mos(after), kernel, "valid")
    return float(np.mean(now < then - 1e-9))


def _delays(values: F64) -> dict[str, float | None]:
    finite = values[np.isfinite(values)] * 1000
    if not len(finite):
        return dict.fromkeys(("mean", "p50", "p95", "p99", "max"))
    points = np.percentile(finite, [50, 95, 99])
    return {
        "mean": round(float(finite.mean()), 3),
        "p50": round(float(points[0]), 3),
        "p95": round(float(points[1]), 3),
        "p99": round(float(points[2]), 3),
        "max": round(float(finite.max()), 3),
    }


def _figures(result: quality.Quality, with_vmaf: bool) -> dict[str, float | None]:
    return {
        "psnr_y": round(float(result.psnr_y.mean()), 3),
        "ssim_y": round(float(result.ssim_y.mean()), 5),
        "vmaf": round(float(result.vmaf.mean()), 3) if with_vmaf else None,
        "mos": round(float(mos(result.psnr_y).mean()), 3),
    }


def network_figures(sent: Sent, delay: F64, arrival: F64) -> dict[str, Any]:
    """What the network did to a flow: no decoding needed."""
    lost = ~np.isfinite(delay)
    whole = np.isfinite(arrival)
    took = arrival - (sent.begun - sent.begun[0]) / 1e9
    span = max((int(sent.t[-1]) - int(sent.t[0])) / 1e9, 1e-9)
    return {
        "packets": len(delay),
        "packets_lost": int(lost.sum()),
        "pictures": len(sent.q),
        "pictures_lost": {
            "I": int((~whole & sent.key).sum()),
            "P": int((~whole & ~sent.key).sum()),
        },
        "rate_kbps": round(float(sent.wire.sum()) * 8 / span / 1000, 1),
        "quantizer_mean": round(float(sent.q.mean()), 2),
        "packet_delay_ms": _delays(delay),
        "picture_delay_ms": _delays(took),
    }


def post(
    ladder_dir: Path,
    clip_file: Path,
    sent_dir: Path,
    received_dir: Path,
    limits: list[Limit],
    out: Path,
    recorded: Path | None = None,
) -> dict[str, Any]:
    """Judge one flow; writes the streams as they would be shown and report.json."""
    ladder = ladder_module.load(ladder_dir)
    clip = y4m.open_y4m(clip_file)
    if (clip.width, clip.height) != (ladder.width, ladder.height) or clip.count < ladder.frames:
        raise LabError(f"{clip_file}: is not the clip of the ladder {ladder_dir}")
    sent = read_sent(sent_dir / "tx.csv")
    delay = read_arrivals(received_dir / "rx.csv", sent)
    arrival = frame_arrivals(sent, delay)
    interval = float(1 / ladder.fps)
    out.mkdir(parents=True, exist_ok=True)
    report: dict[str, Any] = {"network": network_figures(sent, delay, arrival), "limits": {}}
    if recorded is not None:
        whole = [(int(sent.q[i]), int(sent.src[i])) for i in np.flatnonzero(np.isfinite(arrival))]
        report["recording_equal"] = recorded.read_bytes() == ladder.splice(whole)
    with_vmaf = has_vmaf()
    with tempfile.TemporaryDirectory(prefix=".post-", dir=out) as name:
        tmp = Path(name)
        before, _ = _score(ladder, clip, sent, np.ones(len(sent.q), np.bool_), tmp, with_vmaf)
        report["sent"] = _figures(before, with_vmaf)
        for limit in limits:
            accepted = accept(sent, arrival, limit, interval)
            slots = [(int(sent.q[i]), int(sent.src[i])) for i in np.flatnonzero(accepted)]
            stream = ladder.splice(slots)
            (out / f"{limit.name}.h264").write_bytes(stream)
            shown = decodable(sent, accepted)
            after, first = _score(ladder, clip, sent, shown, tmp, with_vmaf)
            count, seconds = _freezes(shown[first:], interval)
            report["limits"][limit.name] = {
                **_figures(after, with_vmaf),
                "pictures_shown": int(shown.sum()),
                "slipped": int((~shown).sum()),
                "freezes": count,
                "freeze_s": round(seconds, 3),
                "degraded_windows": _degraded(
                    before.psnr_y[first:], after.psnr_y, round(WINDOW / interval)
                ),
            }
    (out / "report.json").write_text(json.dumps(report, indent=2) + "\n")
    return report


def _cmd_pre(args: argparse.Namespace) -> int:
    first, _, last = args.ladder.partition("..")
    try:
        q_min, q_max = int(first), int(last)
    except ValueError:
        raise LabError(f'"{args.ladder}" is not a range of quantizers: give 19..43') from None
    made = ladder_module.build(
        args.clip, args.out, q_min=q_min, q_max=q_max, gop=args.gop, preset=args.preset
    )
    print(
        f"{made.path}: {q_max - q_min + 1} quantizers, {made.frames} pictures, groups of {made.gop}"
    )
    return 0


def _cmd_post(args: argparse.Namespace) -> int:
    limits = [parse_limit(text) for text in args.limit or ["none"]]
    report = post(args.ladder, args.clip, args.sent, args.received, limits, args.out, args.recorded)
    network = report["network"]
    print(
        f"{network['pictures']} pictures, {network['rate_kbps']} kbit/s, "
        f"{network['packets_lost']} of {network['packets']} packets lost, picture delay p95 "
        f"{network['picture_delay_ms']['p95']} ms"
    )
    for name, row in report["limits"].items():
        vmaf = "unknown (this ffmpeg has no libvmaf)" if row["vmaf"] is None else row["vmaf"]
        print(
            f"{name:>16}: PSNR {row['psnr_y']:.2f} dB (sent {report['sent']['psnr_y']:.2f}), "
            f"SSIM {row['ssim_y']:.4f}, VMAF {vmaf}, MOS {row['mos']:.2f}, "
            f"{row['slipped']} slipped, {row['freezes']} freezes"
        )
    if report.get("recording_equal") is False:
        print(f"{args.recorded}: differs from what the logs say was received", file=sys.stderr)
        return 1
    return 0


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="paqm-trace", description=(__doc__ or "").split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    pre = commands.add_parser("pre", help="make the quality ladder of a clip")
    pre.add_argument("clip", type=Path, help="y4m file")
    pre.add_argument("--out", type=Path, required=True, help="directory of the ladder")
    pre.add_argument("--ladder", default="19..43", help="quantizers (19..43)")
    pre.add_argument("--gop", type=int, default=12, help="pictures per group (12)")
    pre.add_argument("--preset", default="medium", help="x264 preset (medium)")
    pre.set_defaults(run=_cmd_pre)
    after = commands.add_parser("post", help="rebuild and judge what a receiver got")
    after.add_argument("ladder", type=Path)
    after.add_argument("clip", type=Path, help="y4m file that the ladder was made of")
    after.add_argument("--sent", type=Path, required=True, help="directory with tx.csv")
    after.add_argument("--received", type=Path, required=True, help="directory with rx.csv")
    after.add_argument("--recorded", type=Path, help="what recv --record kept, to compare")
    after.add_argument("--out", type=Path, required=True, help="where to write")
    after.add_argument(
        "--limit",
        action="append",
        help="none, buffer:SECONDS (play-out buffer) or deadline:SECONDS; may be repeated",
    )
    after.set_defaults(run=_cmd_post)
    args = parser.parse_args(argv)
    try:
        status = int(args.run(args))
        if sys.stdout:  # it may be closed
            sys.stdout.flush()
        return status
    except LabError as err:
        print(f"paqm-trace: {err}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("paqm-trace: interrupted", file=sys.stderr)
        return 130
    except OSError as err:
        if not err.filename and sys.stdout:  # it may be its own: Python would try again at its end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(err, BrokenPipeError):  # whoever read it has left
            return READER_LEFT
        print(f"paqm-trace: {err.filename or 'writing'}: {err.strerror}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
