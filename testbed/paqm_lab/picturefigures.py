# SPDX-License-Identifier: GPL-2.0
"""Figures of a stream's pictures: delivery, what the encoder did, what the receiver showed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from paqm_lab import metrics, quality, rundata
from paqm_lab.rundata import Run, Table
from paqm_lab.series import ms, write_csv
from paqm_lab.traffic import Traffic

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
Figures = dict[str, Any]


def captures(run: Run, name: str) -> tuple[Table, F64] | None:
    """When each picture of a stream was captured: frames.csv, or captured.csv of libwebrtc."""
    for file in ("frames.csv", "captured.csv"):
        table = rundata.load_csv(run.flow_dir(name, "send") / file)
        if table is not None:
            return table, rundata.seconds(table, run.t0_ns)
    return None


def delivery_figures(run: Run, traffic: Traffic, flows: dict[str, Figures]) -> Figures:
    """Capture of a picture to the arrival of its last packet at the receiver."""
    rows: list[tuple[str, float, float]] = []
    delays = []
    for flow in run.media:
        taken = captures(run, flow.name)
        flows[flow.name]["frame_delivery_ms"] = ms(np.zeros(0))
        if taken is None or flow.name not in traffic.activity:
            continue
        table, when = taken
        received = rundata.load_csv(run.flow_dir(flow.name, "recv") / "rx.csv")
        if received is not None and "rtp_ts" in table.columns:
            frames = metrics.delivery_from_rx(
                when,
                table.integers("rtp_ts"),
                table.integers("packets"),
                received.integers("rtp_ts"),
                rundata.seconds(received, run.t0_ns),
                run.duration,
            )
        else:
            members = traffic.media[flow.name]
            at = traffic.seen.index[members]
            frames = metrics.delivery_from_log(
                table.integers("frame"),
                when,
                _shown(run, flow.name, table, when),
                run.fps,
                rtp_ts=traffic.log.rtp_ts[at],
                ssrc=traffic.log.ssrc[at],
                marker=traffic.log.marker[at],
                t_in=traffic.seen.t_in[members],
                t_out=traffic.seen.t_out[members],
                before=run.rtt / 4,
                behind=run.rtt / 4,
                end=run.duration,
            )
        traffic.frames[flow.name] = frames
        flows[flow.name]["frame_delivery_ms"] = _frames(frames.delay)
        delays.append(frames.delay)
        rows += [
            (flow.name, float(t), float(d) * 1000)
            for t, d in zip(frames.t, frames.delay, strict=True)
        ]
    write_csv(run.path / "series" / "frames.csv", ["flow", "t", "delay_ms"], rows)
    return {"frame_delivery_ms": _frames(np.concatenate([np.zeros(0), *delays]))}


def _frames(delay: F64) -> Figures:
    never = int(np.isinf(delay).sum())
    return ms(delay) | {"never": never}


def encoder_figures(run: Run, flows: dict[str, Figures]) -> Figures:
    """Frame bounds and quantizers, for senders that log them."""
    rows: list[tuple[str, float, int, float, float]] = []
    over = mixed = frames = 0
    logged = False
    for flow in run.media:
        table = rundata.load_csv(run.flow_dir(flow.name, "send") / "frames.csv")
        if table is None or "qp_base" not in table.columns:
            continue
        logged = True
        frames += table.rows
        bound = table["bound_bytes"]  # 0: the encoder has none
        beyond = int(((bound > 0) & (table["wire_bytes"] > bound)).sum())
        over += beyond
        gop = table.integers("gop")
        several = metrics.gops_with_mixed_base(gop, table["qp_base"])
        mixed += several
        trim = table["qp"] - table["qp_base"]
        flows[flow.name]["encoder"] = {
            "frames": table.rows,
            "over_bound": beyond,
            "gops": len(np.unique(gop)),
            "gops_mixed_base": several,
            "qp_mean": float(table["qp"].mean()) if table.rows else None,
            "trim_mean": float(trim.mean()) if table.rows else None,
            "trim_max": float(np.abs(trim).max()) if table.rows else None,
        }
        when = rundata.seconds(table, run.t0_ns)
        rows += [
            (flow.name, float(t), int(g), float(b), float(q))
            for t, g, b, q in zip(when, gop, table["qp_base"], table["qp"], strict=True)
        ]
    if not logged:
        return {"encoder": None}
    write_csv(run.path / "series" / "quantizer.csv", ["flow", "t", "gop", "qp_base", "qp"], rows)
    return {"encoder": {"frames": frames, "over_bound": over, "gops_mixed_base": mixed}}


@dataclass(frozen=True)
class Pictures:
    """The new pictures that a receiver showed; a repeated one is not new."""

    t: F64
    source: I64
    index: I64  # of the picture in the recording
    scores: dict[str, F64]
    unreadable: int


def pictures(run: Run, name: str) -> Pictures | None:
    """Decoding times and scores of a stream; None if its pictures were never scored."""
    side = run.flow_dir(name, "recv")
    decoded = rundata.load_csv(side / "decoded.csv")
    if decoded is None or not (side / "quality.csv").exists():
        return None
    result = quality.load(side / "quality.csv")
    count = min(decoded.rows, len(result.index))
    source = result.src_frame[:count]
    known = np.flatnonzero(source >= 0)
    fresh = known[np.diff(source[known], prepend=-1) != 0]
    return Pictures(
        t=rundata.seconds(decoded, run.t0_ns)[fresh],
        source=source[fresh],
        index=result.index[:count][fresh],
        scores={
            "psnr_y_db": result.psnr_y[fresh],
            "ssim_y": result.ssim_y[fresh],
            "vmaf": result.vmaf[fresh],
        },
        unreadable=count - len(known),
    )


def _shown(run: Run, name: str, table: Table, when: F64) -> F64:
    """When the picture of each capture was first there; NaN if it never was.

    The clip is looped: a picture belongs to the latest capture of its source frame before it.
    """
    moment = np.full(len(when), np.nan)
    seen = pictures(run, name)
    if seen is None:
        return moment
    origin = table.integers("src_frame")
    places = {int(s): np.flatnonzero(origin == s) for s in np.unique(origin)}
    for t, source in zip(seen.t, seen.source, strict=True):
        taken = places.get(int(source), np.zeros(0, np.int64))
        before = taken[when[taken] <= t]
        if len(before) and math.isnan(moment[before[-1]]):
            moment[before[-1]] = t
    return moment


def picture_figures(run: Run, traffic: Traffic, flows: dict[str, Figures]) -> Figures:
    """Scores, frame rate, freezes, and the time from capture to the decoded picture."""
    rows: list[tuple[str, float, float, float]] = []
    parts: list[Pictures] = []
    delays: list[F64] = []
    frozen: list[tuple[int, float]] = []
    rates: list[float] = []
    for flow in run.media:
        seen = pictures(run, flow.name)
        flows[flow.name]["picture"] = None
        if seen is None:
            continue
        taken = captures(run, flow.name)
        delay = np.zeros(0)
        if taken is not None:
            delay = _shown(run, flow.name, *taken) - taken[1]
            delay = delay[~np.isnan(delay)]
        still = metrics.freezes(seen.t, seen.source, flow.start, flow.stop + run.rtt / 2)
        rate = len(seen.t) / (flow.stop - flow.start)
        flows[flow.name]["picture"] = _scores([seen]) | {
            "unreadable": seen.unreadable,
            "frame_rate": rate,
            "freezes": still[0],
            "frozen_s": still[1],
            "capture_to_picture_ms": ms(delay),
        }
        parts.append(seen)
        delays.append(delay)
        frozen.append(still)
        rates.append(rate)
        rows += [
            (flow.name, float(a), float(p), float(v))
            for a, p, v in zip(seen.t, seen.scores["psnr_y_db"], seen.scores["vmaf"], strict=True)
        ]
    if not parts:
        return {"picture": None}
    write_csv(run.path / "series" / "quality.csv", ["flow", "t", "psnr_y_db", "vmaf"], rows)
    return {
        "picture": _scores(parts)
        | {
            "unreadable": sum(part.unreadable for part in parts),
            "frame_rate": float(np.mean(rates)),
            "freezes": sum(count for count, _ in frozen),
            "frozen_s": sum(length for _, length in frozen),
            "capture_to_picture_ms": ms(np.concatenate(delays)),
        }
    }


def _scores(parts: list[Pictures]) -> Figures:
    """Mean scores over all pictures of the parts."""
    joined = {
        name: np.concatenate([part.scores[name] for part in parts]) for name in parts[0].scores
    }
    none = len(joined["vmaf"]) == 0
    figures: Figures = {
        name: None if none else float(np.mean(values)) for name, values in joined.items()
    }
    figures["vmaf_p5"] = None if none else float(np.percentile(joined["vmaf"], 5))
    figures["pictures"] = len(joined["vmaf"])
    return figures
