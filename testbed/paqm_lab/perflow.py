# SPDX-License-Identifier: GPL-2.0
"""Figures of every flow of a run in which senders of several kinds meet.

Streams, TCP flows and the other loads (floods, audio, short connections) alike: waiting time in the
router, loss, rate against the max-min share. Everything is counted from the scenario's judge_from
on. A load is limited by its own rate; the short connections of a web load are taken together, as a
flow that is limited to what it carried.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from paqm_lab import metrics, packets, rundata
from paqm_lab.picturefigures import Pictures
from paqm_lab.rundata import Load, Run
from paqm_lab.traffic import Traffic, names

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]
Figures = dict[str, Any]

LEAST = 1.0  # s of an interval, less what settling takes, that is judged
SLICE = 1.0  # s of a window of the rates


def shares(
    t: F64, size: I64, parts: list[metrics.Segment], name: str, start: float
) -> Figures:
    """Rate (of the packets that left) against the max-min share in the intervals that count."""
    judged = []
    for part in parts:
        begin = max(part.start + metrics.SETTLE, start)
        if name not in part.shares or part.stop - begin < LEAST:
            continue
        share = part.shares[name]
        mean = metrics.mean_rate(t, size, begin, part.stop)
        judged.append(
            {
                "start": begin,
                "stop": part.stop,
                "share_mbit": share / 1e6,
                "mean_mbit": mean / 1e6,
                "percent": 100 * mean / share,
            }
        )
    fair = sum(j["share_mbit"] * (j["stop"] - j["start"]) for j in judged)
    got = sum(j["mean_mbit"] * (j["stop"] - j["start"]) for j in judged)
    length = sum(j["stop"] - j["start"] for j in judged)
    return {
        "segments": judged,
        "mean_mbit": got / length if judged else None,
        "share_mbit": fair / length if judged else None,
        "share_percent": 100 * got / fair if fair else None,
        "share_percent_least": min((j["percent"] for j in judged), default=None),
    }


def told(run: Run, name: str, judged: list[Figures]) -> Figures | None:
    """The rates that routers named to a sender, held from one message to the next."""
    table = rundata.load_csv(run.flow_dir(name, "send") / "feedback.csv")
    if table is None:
        return None
    rate = table["rate_bps"]
    valid = rate > 0
    if not valid.any():
        return None
    when, rate = rundata.seconds(table, run.t0_ns)[valid], rate[valid]
    means, apart = [], []
    for part in judged:
        steps = np.arange(part["start"], part["stop"], metrics.GRID)
        place = np.searchsorted(when, steps, side="right") - 1
        named = rate[place[place >= 0]]
        # a rate named between two instants counts too
        named_all = np.append(named, rate[(when >= part["start"]) & (when < part["stop"])])
        if not len(named):
            continue
        mean = float(named.mean())
        means.append(mean)
        apart.append(100 * float(np.abs(named_all / mean - 1).max()))
    if not means:
        return None
    return {"mean_mbit": sum(means) / len(means) / 1e6, "apart_percent": max(apart)}


def _begins(start: float, stop: float) -> list[float]:
    """Of the whole windows between two instants."""
    return [start + i * SLICE for i in range(int((stop - start) / SLICE + 1e-9))]


def _windows(t: F64, size: I64, start: float, stop: float) -> list[float]:
    """Mbit/s in each whole window from start on."""
    return [
        round(metrics.mean_rate(t, size, begin, begin + SLICE) / 1e6, 4)
        for begin in _begins(start, stop)
    ]


def _waiting(seen: packets.Crossings, mine: Bool, start: float, stop: float) -> list[float]:
    """Mbit in the queue at the beginning of each whole window, of packets that left it later."""
    inside = [mine & (seen.t_in < t) & (seen.t_out >= t) for t in _begins(start, stop)]
    return [round(8 * float(seen.size[here].sum()) / 1e6, 4) for here in inside]


def _crossing(run: Run, traffic: Traffic, name: str, members: Bool, start: float) -> Figures:
    """What the packet log says of a flow."""
    seen = traffic.seen
    late = members & (seen.t_in >= start)
    wait = seen.t_out - seen.t_in
    left = ~np.isnan(seen.t_out)
    gone = metrics.lost(seen.t_in, seen.t_out, traffic.end)
    count, lost = int(late.sum()), int((late & gone).sum())
    mine = members & left
    figures = {
        "packets": count,
        "lost": lost,
        "lost_percent": 100 * lost / count if count else None,
        "sojourn_ms": metrics.summary(wait[late & left] * 1000),
        "windows_mbit": _windows(seen.t_out[mine], seen.size[mine], start, run.duration),
        "waiting_mbit": _waiting(seen, mine, start, run.duration),
    }
    return figures | shares(
        seen.t_out[mine], seen.size[mine], traffic.segments, name, start
    )


def _video(run: Run, traffic: Traffic, shown: Pictures | None, name: str, start: float) -> Figures:
    """What a stream's viewer has of it."""
    flow = next(flow for flow in run.media if flow.name == name)
    frames = traffic.frames.get(name)
    delay = frames.delay[frames.t >= start] if frames else np.zeros(0)
    figures: Figures = {
        "frame_delivery_ms": metrics.summary(delay * 1000),
        "frames_never": int(np.isinf(delay).sum()),
        "vmaf": None,
        "vmaf_p5": None,
        "vmaf_p10": None,
        "freezes": None,
        "frozen_s": None,
        "webrtc_freezes": None,
        "webrtc_frozen_s": None,
    }
    if shown is None:
        return figures | _unscored(run, name, flow.start, flow.stop, start)
    late = shown.t >= start
    if late.any():
        vmaf = shown.scores["vmaf"][late]
        figures |= {"vmaf": float(vmaf.mean())}
        figures |= {f"vmaf_p{p}": float(np.percentile(vmaf, p)) for p in (5, 10)}
    count, length = metrics.freezes(shown.t, shown.source, flow.start, flow.stop, start)
    webrtc = metrics.webrtc_freezes(shown.t, shown.source, flow.start, flow.stop, start)
    figures |= {"webrtc_freezes": webrtc[0], "webrtc_frozen_s": webrtc[1]}
    return figures | {"freezes": count, "frozen_s": length}


def _unscored(run: Run, name: str, start: float, stop: float, judged: float) -> Figures:
    """Freezes of a stream whose pictures were not compared: every decoded one is new."""
    decoded = rundata.load_csv(run.flow_dir(name, "recv") / "decoded.csv")
    if decoded is None:
        return {}
    t = rundata.seconds(decoded, run.t0_ns)
    webrtc = metrics.webrtc_freezes(t, np.arange(len(t)), start, stop, judged)
    return {"webrtc_freezes": webrtc[0], "webrtc_frozen_s": webrtc[1]}


def _sink(run: Run, load: Load) -> dict[str, Figures]:
    """What the receiver counted, per flow."""
    path = run.path / "log" / "sink-loads.log"
    told_ports: dict[str, Figures] = json.loads(path.read_text())
    ports = [told_ports[str(load.port + n)] for n in range(load.ports)]
    if not load.as_one:
        return dict(zip(names(load), ports, strict=True))
    keys = ("received", "late", "ce", "source_changes")
    return {load.name: {key: sum(port[key] for port in ports) for key in keys}}


def _web(run: Run, load: Load, start: float) -> Figures:
    """How long the short connections took that began from `start` on."""
    table = rundata.load_csv(run.path / "log" / f"{load.name}.csv")
    ends = json.loads((run.path / "log" / f"load-{load.name}.log").read_text())
    took = np.zeros(0)
    if table is not None and table.rows:
        took = table["ms"][rundata.seconds(table, run.t0_ns) >= start]
    return {"connections": ends, "completion_ms": metrics.summary(took)}


def figures(
    run: Run, traffic: Traffic, shown: Mapping[str, Pictures | None]
) -> dict[str, Figures]:
    """Every flow of the run: kind, sender and figures."""
    start = run.judge_from or 0.0
    each: dict[str, Figures] = {}
    for flow in run.media:
        base = _crossing(run, traffic, flow.name, traffic.media[flow.name], start)
        each[flow.name] = {
            "kind": "video",
            "sender": flow.sender,
            **base,
            **_video(run, traffic, shown.get(flow.name), flow.name, start),
            "told": told(run, flow.name, base["segments"]),
        }
    for load in run.loads:
        sink = {} if load.kind == "web" else _sink(run, load)
        for name in names(load):
            each[name] = {
                "kind": load.kind,
                "sender": load.kind,
                **_crossing(run, traffic, name, traffic.loads[name], start),
            }
            if name in sink:
                each[name]["sink"] = sink[name]
        if load.kind == "web":
            each[load.name] |= _web(run, load, start)
    ports = {
        int(traffic.log.dport[traffic.seen.index[members]][0]): name
        for name, members in traffic.bulk.items()
    }
    for port, name in sorted(ports.items()):
        shown_as, algorithm = run.tcp.get(port, (name, "tcp"))
        each[shown_as] = {
            "kind": "tcp",
            "sender": algorithm,
            **_crossing(run, traffic, name, traffic.bulk[name], start),
        }
    return each
