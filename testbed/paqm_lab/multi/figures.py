# SPDX-License-Identifier: GPL-2.0
"""Figures of a run of a network: of every entry of flows, of all media, of bottlenecks.

They are of the time from the scenario's `measured_from` to its end, TCP's of all of its time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from paqm_lab.multi import periods
from paqm_lab.multi.case import BIN, MBIT, Case, Flow, Run
from paqm_lab.multi.shares import HEADER, jain, max_min
from paqm_lab.multi.traceflows import WAIT_STEP

Json = dict[str, Any]

WITHIN = 0.05  # of the share: what "settled" means
GROUP = 0.4  # s, of trace flows
REACHED, SECOND = 0.1, 1.0  # of the share, s: what "reached" means
# After a change: near the share, in every window of constant sources and of video; less time
# between two changes is none to settle in.
NEAR, WINDOW, VIDEO_WINDOW, LEAST_TIME = 0.1, 0.5, 1.6, 2.0
POINTS = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
DROPS = ("drop_tail_packets", "drop_inner_packets", "drop_strike_packets")
# What becomes of packets of trace flows in the whole run, as traceflows.arrivals has it.
WHOLE = ("sent", "came", "wait_us", "pictures", "late")


def share_at(case: Case, t: float) -> dict[str, float]:
    """Max-min shares of the flows that are there at a time, bit/s."""
    paths = {flow.name: case.facts["paths"][flow.name]
             for flow in case.flows if flow.start <= t < flow.stop}
    return ip_shares(case, paths)


def ip_shares(case: Case, paths: dict[str, list[str]]) -> dict[str, float]:
    """Max-min shares on these ways, IP level: links count packets with their Ethernet headers."""
    part = {f.name: f.size / (f.size + HEADER) for f in case.flows if f.name in paths}
    most = {name: ceiling / part[name]
            for name, ceiling in case.facts["ceilings"].items() if name in paths}
    shares = max_min(case.facts["hands_out"], paths, most)
    return {name: share * part[name] for name, share in shares.items()}


def reached_s(run: Run, flow: Flow) -> float | None:
    """From a flow's start to the end of its first second near its share of that time."""
    share = share_at(run.case, flow.start)[flow.name]
    t, rate = run.series(flow, SECOND)
    since = t - flow.start
    good = (since > BIN) & (t < flow.stop) & (np.abs(rate / share - 1) <= REACHED)
    return float(since[good].min()) if good.any() else None


def of_flows(run: Run, flows: Sequence[Flow]) -> Json:
    """Delays are one-way, of all packets together; jitter is their standard deviation, its mean
    over flows. `share_`: the worst flow's part of its max-min share, `equal_`: of the mean rate.
    """
    begin, end = run.case.facts["from"], run.case.duration
    rates = [run.mean_rate(flow, begin, end) for flow in flows]
    shares = [run.case.shares[0][1][flow.name] for flow in flows]
    parts = [rate / share for rate, share in zip(rates, shares, strict=True)]
    mean = max(sum(rates) / len(rates), 1.0)
    found: Json = {
        "count": len(flows), "rate_mbit": mean / MBIT, "jain": jain(rates),
        "share_least": min(parts), "share_most": max(parts),
        "equal_least": min(rates) / mean, "equal_most": max(rates) / mean,
    }  # fmt: skip
    ports = [run.port(flow) for flow in flows if flow.sender != "tcp"]
    packets = sum(port.get("window_packets", 0) for port in ports)
    if packets and len(ports) == len(flows):
        found |= {
            "delay_ms": sum(p["wait_mean_us"] * p["window_packets"] for p in ports) / packets / 1e3,
            "delay_max_ms": max(p["wait_max_us"] for p in ports) / 1e3,
            "jitter_ms": sum(p["wait_sd_us"] for p in ports) / len(ports) / 1e3,
        }
        if all("whole" in port for port in ports):
            lost = 1 - packets / sum(port["window_sent"] for port in ports)
            whole = {key: sum(port["whole"][key] for port in ports) for key in WHOLE}
            steps = np.sum([port["steps"] for port in ports], axis=0)
            found |= {
                "delay_steps_ms": [wait / max(1, n) / 1e3 for n, wait in steps.tolist()],
                "lost_percent": 100 * lost,
                "whole_lost_percent": 100 * (1 - whole["came"] / whole["sent"]),
                "whole_delay_ms": whole["wait_us"] / whole["came"] / 1e3,
                "whole_delay_max_ms": max(port["whole"]["wait_max_us"] for port in ports) / 1e3,
                "late_percent": 100 * whole["late"] / whole["pictures"],
            }
    return found


def queueing(run: Run, flows: Sequence[Flow]) -> Json | None:
    """One-way delay of all their packets together beyond what their ways take by themselves, ms."""
    waits: list[float] = []
    counts: list[int] = []
    for flow in flows:
        bare = run.case.facts["propagation"][flow.name]
        for step, count in run.port(flow).get("waits", []):
            waits.append((step + 0.5) * WAIT_STEP - bare)
            counts.append(count)
    if not counts:
        return None
    order = np.argsort(waits)
    until = np.cumsum(np.array(counts)[order])
    at = [int(np.searchsorted(until, point * until[-1])) for point in POINTS.values()]
    return {name: 1000 * max(0.0, waits[order[i]]) for name, i in zip(POINTS, at, strict=True)}


def change_times(case: Case) -> list[float]:
    """When flows came or left, the last of those that leave no time to settle between them."""
    flows = case.flows
    begins = {flow.start + (flow.spread if flow.sender == "trace" else 0) for flow in flows}
    times = sorted(begins | {flow.stop for flow in flows})
    return [t for t, then in zip(times, [*times[1:], case.duration], strict=True)
            if then - t >= LEAST_TIME]


def changes(run: Run) -> list[Json]:
    """What follows each change of who is there: s until all media flows stay near their max-min
    share to the next one (None: never), and in the second half of that time how they share.

    Of video it is the sum of all flows that has to stay near: a flow follows its pictures, too.
    """
    case, found = run.case, []
    times = change_times(case)
    for t, then in zip(times, [*times[1:], case.duration - 0.1], strict=True):
        there = share_at(case, t)
        media = [flow for flow in case.flows if flow.name in there and flow.sender != "tcp"]
        if not media:
            continue
        video = any(flow.sender == "trace" for flow in media)
        shares = {flow.name: there[flow.name] for flow in media}
        if video:
            took, last = run.settled_sum(shares, t, then, NEAR, VIDEO_WINDOW), ""
        else:
            took, last = run.settled(shares, t, then, NEAR, WINDOW)
        parts = [run.rate(flow, (t + then) / 2, then) / shares[flow.name] for flow in media]
        found.append({
            "at_s": t, "settled_s": took, "last": last, "jain": jain(parts),
            "share_least": min(parts), "share_most": max(parts),
            "share_mean": sum(parts) / len(parts), "flows": len(media),
        })  # fmt: skip
    return found


def offered(run: Run, flows: Sequence[Flow]) -> Json | None:
    """What trace flows sent, bytes in each BIN, and what their first one was told and when."""
    traced = [run.port(flow) for flow in flows if flow.sender == "trace"]
    if not traced:
        return None
    sums = np.sum([port["offered"] for port in traced], axis=0)
    return {"bin_s": BIN, "bytes": sums.tolist(), "advice": traced[0]["advice"]}


def aggregate(run: Run, flows: Sequence[Flow]) -> Json:
    """The sum of flows, group of pictures by group: how even it is, how long it remembers, and how
    its second half compares with its first.
    """
    first = round(run.case.facts["from"] / BIN)
    taken = [[b[1] for b in run.port(flow)["bins"]] for flow in flows]
    # A sink has bins until it ends, and not all end at the same time.
    bins = min(len(of) for of in taken)
    sums = np.sum([of[:bins] for of in taken], axis=0)[first:]
    per = round(GROUP / BIN)
    groups = sums[: len(sums) // per * per].reshape(-1, per).sum(axis=1).astype(np.float64)
    mean, off = groups.mean(), groups - groups.mean()
    half = len(groups) // 2
    return {
        "cv_percent": 100 * float(groups.std() / mean),
        "acf": [float((off[:-lag] * off[lag:]).sum() / (off**2).sum()) for lag in (1, 5, 20)],
        "drift_percent": 100 * float(groups[half:].mean() / groups[:half].mean() - 1),
    }


def of_link(run: Run, key: str, host: str, device: str) -> Json:
    """Use of a bottleneck, and the part of media that it drops; of all packets where a queue has no
    classes.
    """
    begin = run.case.facts["from"]
    after, before = run.queue(host, device), run.queue(host, device, begin) if begin else {}

    def grown(*path: str) -> float:
        values = []
        for of in (after, before):
            value: Any = of
            for word in path:
                value = value.get(word, {}) if isinstance(value, dict) else 0
            values.append(float(value or 0))
        return values[0] - values[1]

    bits = run.case.facts["bits"][key]
    found = {"use_percent": 100 * grown("bytes") * 8 / (run.case.duration - begin) / bits}
    sent, drops = grown("packets"), grown("drops")
    if "media" in after:
        sent = grown("media", "sent_packets")
        drops -= sum(grown("elastic", name) for name in DROPS)
    found |= {"sent_packets": sent, "drop_percent": 100 * drops / max(1.0, sent + drops),
              "dropped_packets": drops}
    if "notices_sent" in after:
        found["notices_per_s"] = grown("notices_sent") / (run.case.duration - begin)
        found |= {key: after[f"{key[:-3]}_us"] / 1000 for key in ("period_ms", "skip_ms")}
    return found


def all_of(run: Run) -> Json:
    """Everything, for result.json."""
    case = run.case
    entries: dict[str, list[Flow]] = {}
    for flow in case.flows:
        entries.setdefault(flow.entry, []).append(flow)
    media = [flow for flow in case.flows if flow.sender != "tcp"]
    traced = any(flow.sender == "trace" for flow in media)
    # the bins of the published diagrams, of constant sources and of video
    settled, last = run.settled(
        {flow.name: case.shares[0][1][flow.name] for flow in media}, 0, case.duration - 0.1, WITHIN,
        1.6 if traced else 0.6,
    )
    links = {
        key: of_link(run, key, *place)
        for key, place in zip(case.facts["bits"], case.facts["bottlenecks"], strict=True)
    }
    return {
        "flows": {name: of_flows(run, flows) for name, flows in entries.items()},
        "media": of_flows(run, media) if media else {},
        "all": of_flows(run, case.flows),
        "links": links,
        "queueing_ms": queueing(run, media),
        "changes": changes(run),
        "offered": offered(run, media),
        "aggregate": aggregate(run, media) if traced else None,
        "settled_s": settled,
        "settled_last": last,
        **periods.all_of(run),
    }
