# SPDX-License-Identifier: GPL-2.0
"""From raw logs to figures: every variant's series (CSV) and the run's result.json.

docs/results-format.md describes both.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from paqm_lab import cache, checks, linkfigures, metrics, packets, perflow, quality, rundata
from paqm_lab import clip as clip_module
from paqm_lab.errors import LabError
from paqm_lab.rundata import Run, Table

Progress = Callable[[str], None]
F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]
Figures = dict[str, Any]

FORMAT = 1
# A TCP connection counts as an elastic flow from this many bytes on (else it is control traffic).
BULK_BYTES = 100_000
BIN = 0.1  # s of a point in the sojourn series
# Capital letters: no media flow of a scenario can have such a name.
ELASTIC, LINK = "TCP", "LINK"


@dataclass
class Traffic:
    """The forward packets of one run, each with its flow."""

    log: packets.PacketLog
    seen: packets.Crossings
    media: dict[str, Bool]  # RTP packets of each stream
    bulk: dict[str, Bool]  # packets of each elastic connection
    end: float  # of the log
    loads: dict[str, Bool] = field(default_factory=dict)  # packets of each flow of other loads
    frames: dict[str, metrics.Frames] = field(default_factory=dict)  # of each stream
    changes: list[float] = field(default_factory=list)
    segments: list[metrics.Segment] = field(default_factory=list)
    activity: dict[str, tuple[float, float]] = field(default_factory=dict)

    def any_of(self, groups: dict[str, Bool]) -> Bool:
        """Packets that belong to one of the flows."""
        result = np.zeros(len(self.seen.t_in), bool)
        for members in groups.values():
            result |= members
        return result


def read_traffic(run: Run) -> Traffic:
    """Pair the packets at the bottleneck and tell the flows apart."""
    path = run.path / "router.pcap"
    if not path.exists():
        raise LabError(
            f"{path} is missing: packet logs are dropped after the analysis unless the scenario "
            "is run with --pcap"
        )
    log = packets.read(path)
    seen = packets.cross(log, packets.bottleneck(log), run.t0_ns)
    at = seen.index
    media = {
        flow.name: log.rtp[at] & (log.src[at] == packets.ip_number(flow.address))
        for flow in run.media
    }
    web = [packets.ip_number(load.address) for load in run.loads if load.kind == "web"]
    tcp = (log.proto[at] == packets.IPPROTO_TCP) & ~np.isin(log.src[at], web)
    ends = np.stack([log.src[at], log.sport[at], log.dst[at], log.dport[at]], axis=1)
    bulk: dict[str, Bool] = {}
    for connection in np.unique(ends[tcp], axis=0):
        members = tcp & np.all(ends == connection, axis=1)
        if int(seen.size[members].sum()) >= BULK_BYTES:
            bulk[f"{ELASTIC}-{len(bulk) + 1}"] = members
    end = float((log.t_ns.max() - run.t0_ns) / 1e9)
    traffic = Traffic(log, seen, media, bulk, end, perflow.loads(run, log, seen))
    caps: dict[str, float] = {}
    for flow in run.media:
        members = media[flow.name]
        if members.any():
            mean = float(seen.size[members].mean())
            caps[flow.name] = flow.rate_max * mean / (mean - packets.ETHER_HEADER)
    caps.update(dict.fromkeys(bulk, math.inf))
    caps.update(perflow.caps(run, traffic.loads, seen))
    claims = {name: members for name, members in traffic.loads.items() if name in caps}
    for name, members in (*media.items(), *bulk.items(), *claims.items()):
        if members.any():
            times = seen.t_in[members]
            traffic.activity[name] = (float(times[0]), float(times[-1]))
    traffic.segments = metrics.segments(traffic.activity, caps, run.bottleneck)
    traffic.changes = sorted(t for span in traffic.activity.values() for t in span)
    return traffic


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A series file; numbers short, what is not there empty."""

    def cell(value: Any) -> str:
        if isinstance(value, float | np.floating):
            return f"{value:.6g}" if math.isfinite(value) else ""
        return str(value)

    path.parent.mkdir(exist_ok=True)
    with path.open("w", newline="") as f:
        out = csv.writer(f, lineterminator="\n")
        out.writerow(header)
        out.writerows([cell(v) for v in row] for row in rows)


def _ms(values: F64) -> Figures:
    """Summary of times given in seconds, in milliseconds."""
    return metrics.summary(values * 1000)


def sojourn_figures(run: Run, traffic: Traffic, flows: dict[str, Figures]) -> Figures:
    """Time between entering the router and leaving the bottleneck's queue."""
    seen = traffic.seen
    wait = seen.t_out - seen.t_in
    left = ~np.isnan(wait)
    classes = {"media": traffic.any_of(traffic.media), "elastic": traffic.any_of(traffic.bulk)}
    for name, members in traffic.media.items():
        flows[name]["sojourn_ms"] = _ms(wait[members & left])
    columns: dict[str, F64] = {}
    bins = np.arange(int(run.duration / BIN) + 1)
    for kind, members in classes.items():
        t, w = seen.t_out[members & left], wait[members & left] * 1000
        place = np.floor(t / BIN).astype(np.int64)
        median, worst = np.full(len(bins), np.nan), np.full(len(bins), np.nan)
        for i in np.unique(place[(place >= 0) & (place < len(bins))]):
            median[i], worst[i] = np.median(w[place == i]), w[place == i].max()
        columns[f"{kind}_p50_ms"], columns[f"{kind}_max_ms"] = median, worst
    write_csv(
        run.path / "series" / "sojourn.csv",
        ["t", *columns],
        zip(bins * BIN, *columns.values(), strict=True),
    )
    # Dense at the end, where the tail is.
    level = np.unique(np.concatenate([np.linspace(0, 1, 501), 1 - np.logspace(-1, -4, 200)]))
    curves = {}
    for kind, members in classes.items():
        w = wait[members & left] * 1000
        curves[f"{kind}_ms"] = np.quantile(w, level) if len(w) else np.full(len(level), np.nan)
    write_csv(
        run.path / "series" / "sojourn_cdf.csv",
        ["quantile", *curves],
        zip(level, *curves.values(), strict=True),
    )
    return {
        "media_sojourn_ms": _ms(wait[classes["media"] & left]),
        "elastic_sojourn_ms": _ms(wait[classes["elastic"] & left]),
    }


def loss_figures(run: Run, traffic: Traffic, flows: dict[str, Figures]) -> Figures:
    """Packets that entered and never left."""
    seen = traffic.seen
    gone = metrics.lost(seen.t_in, seen.t_out, traffic.end)
    rows: list[tuple[float, str, str, float]] = []
    late = 0
    latest = 0.0
    for kind, group in (("media", traffic.media), ("elastic", traffic.bulk)):
        for name, members in group.items():
            times = seen.t_in[members & gone]
            after = times - metrics.last_change_before(traffic.changes, times)
            rows += [(float(t), name, kind, float(a)) for t, a in zip(times, after, strict=True)]
            if kind == "media":
                late += int((after > checks.LOSS_AFTER_CHANGE).sum())
                latest = max(latest, float(after.max(initial=0.0)))
                flows[name]["loss"] = _loss(int(members.sum()), len(times))
    write_csv(
        run.path / "series" / "loss.csv", ["t", "flow", "class", "since_change_s"], sorted(rows)
    )
    media, bulk = traffic.any_of(traffic.media), traffic.any_of(traffic.bulk)
    return {
        "media_loss": _loss(int(media.sum()), int((media & gone).sum()))
        | {"late": late, "latest_s": latest},
        "elastic_loss": _loss(int(bulk.sum()), int((bulk & gone).sum())),
    }


def _loss(count: int, lost: int) -> Figures:
    return {"packets": count, "lost": lost, "percent": 100 * lost / count if count else None}


def share_figures(run: Run, traffic: Traffic, flows: dict[str, Figures]) -> Figures:
    """Rates against max-min shares, how soon they are reached, and how full the link is."""
    seen = traffic.seen
    left = ~np.isnan(seen.t_out)
    at = metrics.grid(run.duration)
    columns: dict[str, F64] = {"t": at}
    shares: dict[str, F64] = {}
    settled: list[float | None] = []
    inside: list[float] = []
    for name, members in traffic.media.items():
        rate = metrics.sliding_rate(seen.t_out[members & left], seen.size[members & left], at)
        columns[name] = rate / 1e6
        shares[f"share_{name}"] = np.full(len(at), np.nan)
        judged = []
        for part in traffic.segments:
            if name not in part.shares:
                continue
            share = part.shares[name]
            shares[f"share_{name}"][(at >= part.start) & (at < part.stop)] = share / 1e6
            if part.stop - part.start < metrics.MIN_SEGMENT:
                continue
            took = metrics.settle_time(at, rate, share, part.start, part.stop)
            mean = metrics.mean_rate(
                seen.t_out[members & left],
                seen.size[members & left],
                part.start + metrics.SETTLE,
                part.stop,
            )
            late = (at >= part.start + metrics.SETTLE) & (at <= part.stop)
            held = np.abs(rate[late] / share - 1) <= metrics.INNER
            judged.append(
                {
                    "start": part.start,
                    "stop": part.stop,
                    "share_mbit": share / 1e6,
                    "mean_mbit": mean / 1e6,
                    "settle_s": took,
                    "within_percent": 100 * float(held.mean()) if len(held) else None,
                }
            )
            settled.append(took)
            inside.append(mean / share)
        flows[name]["segments"] = judged
        whole = traffic.activity.get(name)
        flows[name]["active"] = list(whole) if whole else None
        flows[name]["mean_mbit"] = (
            metrics.mean_rate(
                seen.t_out[members & left], seen.size[members & left], whole[0], whole[1] + 1e-9
            )
            / 1e6
            if whole and whole[1] > whole[0]
            else None
        )
    bulk = traffic.any_of(traffic.bulk) & left
    columns[ELASTIC] = metrics.sliding_rate(seen.t_out[bulk], seen.size[bulk], at) / 1e6
    shares[f"share_{ELASTIC}"] = np.full(len(at), np.nan)
    ratios = []
    for part in traffic.segments:
        share = sum(part.shares[name] for name in traffic.bulk if name in part.shares)
        if share == 0:
            continue
        shares[f"share_{ELASTIC}"][(at >= part.start) & (at < part.stop)] = share / 1e6
        if part.stop - part.start >= metrics.MIN_SEGMENT:
            start = part.start + metrics.SETTLE
            got = metrics.mean_rate(seen.t_out[bulk], seen.size[bulk], start, part.stop)
            ratios.append(
                {
                    "start": part.start,
                    "stop": part.stop,
                    "share_mbit": share / 1e6,
                    "mean_mbit": got / 1e6,
                    "percent": 100 * got / share,
                }
            )
    columns[LINK] = metrics.sliding_rate(seen.t_out[left], seen.size[left], at) / 1e6
    header = [*columns, *shares]
    write_csv(
        run.path / "series" / "rates.csv",
        header,
        zip(*columns.values(), *shares.values(), strict=True),
    )

    def use(start: float, stop: float) -> float:
        return (
            100 * metrics.mean_rate(seen.t_out[left], seen.size[left], start, stop) / run.bottleneck
        )

    spans = [traffic.activity[name] for name in traffic.bulk]
    on = (min(a for a, _ in spans), min(run.duration, max(b for _, b in spans))) if spans else None
    worst = [s for s in settled if s is not None]
    return {
        "settle_s": {
            "judged": len(settled),
            "unsettled": settled.count(None),
            "max": max(worst) if worst and None not in settled else None,
            "mean": sum(worst) / len(worst) if worst else None,
        },
        "media_share_percent": {
            "mean": 100 * sum(inside) / len(inside) if inside else None,
            "min": 100 * min(inside) if inside else None,
            "max": 100 * max(inside) if inside else None,
        },
        "elastic_share_percent": {
            "segments": ratios,
            "mean": sum(r["percent"] for r in ratios) / len(ratios) if ratios else None,
            "worst": max((r["percent"] for r in ratios), key=lambda p: abs(p - 100), default=None),
        },
        "link_use_percent": {
            "with_elastic": use(*on) if on and on[1] > on[0] else None,
            "whole": use(0, run.duration),
        },
    }


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
        flows[flow.name]["frame_delivery_ms"] = _ms(np.zeros(0))
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
    return _ms(delay) | {"never": never}


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


def feedback_figures(run: Run, traffic: Traffic, flows: dict[str, Figures]) -> Figures:
    """Messages that the router sent (packet log) and that senders heard of (feedback.csv)."""
    log = traffic.log
    # 253: RFC 4727 experiment; 4: source quench.
    sent = log.outgoing & np.isin(log.icmp_type, (253, 4))
    believed = 0
    for flow in run.media:
        table = rundata.load_csv(run.flow_dir(flow.name, "send") / "feedback.csv")
        mine = sent & (log.dst == packets.ip_number(flow.address))
        # the first record, and that of a router fallen silent, are of no message
        heard = int((table["rate_bps"] > 0).sum()) if table is not None else 0
        believed += heard
        span = traffic.activity.get(flow.name)
        flows[flow.name]["feedback"] = {
            "messages": int(mine.sum()),
            "believed": heard,
            "per_second": int(mine.sum()) / (span[1] - span[0])
            if span and span[1] > span[0]
            else None,
        }
    media = traffic.any_of(traffic.media)
    carried = int(traffic.seen.size[media].sum())
    volume = int(log.size[sent].sum())
    return {
        "feedback": {
            "messages": int(sent.sum()),
            "bytes": volume,
            "believed": believed,
            "overhead_percent": 100 * volume / carried if carried else None,
        }
    }


@dataclass(frozen=True)
class Pictures:
    """The new pictures that a receiver showed; a repeated one is not new."""

    t: F64
    source: I64
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
            "capture_to_picture_ms": _ms(delay),
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
            "capture_to_picture_ms": _ms(np.concatenate(delays)),
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


def analyse_variant(run: Run) -> dict[str, Any]:
    """All figures of one variant; its pictures must have been scored before."""
    traffic = read_traffic(run)
    flows: dict[str, Figures] = {flow.name: {} for flow in run.media}
    figures: Figures = {}
    figures |= sojourn_figures(run, traffic, flows)
    figures |= loss_figures(run, traffic, flows)
    figures |= share_figures(run, traffic, flows)
    figures |= delivery_figures(run, traffic, flows)
    figures |= encoder_figures(run, flows)
    figures |= feedback_figures(run, traffic, flows)
    figures |= picture_figures(run, traffic, flows)
    if run.link:
        media, bulk = traffic.any_of(traffic.media), traffic.any_of(traffic.bulk)
        seen = traffic.seen
        most = linkfigures.ceilings(run, seen.size, traffic.media)
        figures |= linkfigures.figures(run, seen.t_out, seen.size, media, bulk, most)
    events = [
        {"t": t, "flow": name, "event": event}
        for name, span in traffic.activity.items()
        for t, event in zip(span, ("join", "leave"), strict=True)
    ]
    result = {
        "name": run.variant,
        "title": run.label,
        "sender": run.sender,
        "advised": run.advised,
        "codec": rundata.CODECS.get(run.sender),
        "qdisc": run.qdisc,
        "shaper": run.shaper,
        "elastic_expected": bool(run.elastic),
        "wall_seconds": run.wall_seconds,
        "wall_ended": run.wall_ended,
        "packet_log_sha256": run.packet_log_sha256,
        "packet_log_cut": traffic.log.cut,
        "figures": figures,
        "flows": flows,
        "events": sorted(events, key=lambda e: (e["t"], e["flow"])),
    }
    if run.judge_from is not None:
        shown = {flow.name: pictures(run, flow.name) for flow in run.media}
        result["each"] = perflow.figures(run, traffic, shown)
    return result


def load_runs(out_dir: Path) -> list[Run]:
    """The finished variants of a result directory, those with advised senders first."""
    runs = [rundata.load_run(path.parent) for path in sorted(out_dir.glob("*/run.json"))]
    if not runs:
        raise LabError(f"{out_dir}: no variant has run here (no */run.json)")
    first = runs[0]
    for run in runs:
        if (run.scenario, run.seed) != (first.scenario, first.seed):
            raise LabError(
                f"{run.path}: scenario {run.scenario}, seed {run.seed}, but {first.path} has "
                f"{first.scenario}, {first.seed}: give each run a directory of its own (--out)"
            )
    return sorted(runs, key=lambda run: (not run.advised, run.variant))


def _earlier(out_dir: Path) -> dict[tuple[str, str], Any]:
    """Variants analysed before, by name and hash of the packet log, which may be gone by now."""
    path = out_dir / "result.json"
    if not path.exists():
        return {}
    result = rundata.load_json(path)
    if not isinstance(result, dict) or result.get("format") != FORMAT:
        return {}
    return {(v["name"], v["packet_log_sha256"]): v for v in result["variants"]}


def score_pictures(
    runs: list[Run], keep_video: bool, progress: Progress, score: bool = True
) -> None:
    """Score all recordings that are there, then delete them unless they are to stay."""
    recordings = [
        path
        for run in runs
        for flow in run.media
        if (path := run.flow_dir(flow.name, "recv") / "decoded.y4m").exists()
    ]
    if not recordings:
        return
    if score:
        progress(f"analysis: scoring the pictures of {len(recordings)} recordings")
        clip = clip_module.prepare(cache.cache_dir(), progress)
        quality.score_all(clip, recordings)
    if not keep_video:
        for path in recordings:
            path.unlink()


def finite(value: Any) -> Any:
    """JSON has no infinity and no NaN: null instead."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else None
    return value


def analyse(
    out_dir: Path, keep_video: bool = False, score: bool = True, progress: Progress = print
) -> dict[str, Any]:
    """Write every variant's series/*.csv and the result.json of the whole run."""
    runs = load_runs(out_dir)
    score_pictures(runs, keep_video, progress, score)
    earlier = _earlier(out_dir)
    variants = []
    for run in runs:
        known = earlier.get((run.variant, run.packet_log_sha256))
        if known and not (run.path / "router.pcap").exists():
            progress(f"analysis: {run.variant} is as it was, its packet log is gone")
            variants.append(known)
            continue
        progress(f"analysis: {run.variant}")
        variants.append(analyse_variant(run))
    first = runs[0]
    result: dict[str, Any] = {
        "format": FORMAT,
        "scenario": first.scenario,
        "scenario_data": rundata.load_json(first.path / "run.json").get("scenario_data"),
        "title": first.title,
        "seed": first.seed,
        "duration_s": first.duration,
        "bottleneck_bps": first.bottleneck,
        "link": first.link,
        "rtt_ms": first.rtt * 1000,
        "fps": first.fps,
        "versions": first.versions,
        "clip": clip_module.LICENCE if first.media else None,
        "packet_log_sha256": {run.variant: run.packet_log_sha256 for run in runs},
        "variants": variants,
    }
    result = finite(result)
    result["checks"] = checks.evaluate(result)
    path = out_dir / "result.json"
    try:
        path.write_text(json.dumps(result, indent=1, allow_nan=False) + "\n")
    except OSError as err:
        raise LabError(f"{path}: cannot write: {err.strerror}") from err
    return result
