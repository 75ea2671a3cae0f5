# SPDX-License-Identifier: GPL-2.0
"""Figures that the packet log gives: waiting time, loss, rates and shares, messages."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from paqm_lab import checks, metrics, packets, rundata
from paqm_lab.rundata import Run
from paqm_lab.series import ms, write_csv
from paqm_lab.traffic import ELASTIC, Traffic

F64 = npt.NDArray[np.float64]
Figures = dict[str, Any]

BIN = 0.1  # s of a point in the sojourn series
LINK = "LINK"  # as ELASTIC no name of a media flow


def sojourn_figures(run: Run, traffic: Traffic, flows: dict[str, Figures]) -> Figures:
    """Time between entering the router and leaving the bottleneck's queue."""
    seen = traffic.seen
    wait = seen.t_out - seen.t_in
    left = ~np.isnan(wait)
    classes = {"media": traffic.any_of(traffic.media), "elastic": traffic.any_of(traffic.bulk)}
    for name, members in traffic.media.items():
        flows[name]["sojourn_ms"] = ms(wait[members & left])
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
        "media_sojourn_ms": ms(wait[classes["media"] & left]),
        "elastic_sojourn_ms": ms(wait[classes["elastic"] & left]),
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
