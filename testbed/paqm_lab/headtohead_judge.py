# SPDX-License-Identifier: GPL-2.0
"""What the runs of paqm_lab.headtohead come to: figures, the best rivals, checks.

A rival may be the best of its row in a figure only if it does its job otherwise (does_its_job): a
queue that drops half of all pictures has no delay, and that is no merit. Pictures are compared
with the same encoder only. Runs are made in parts: what sets P-AQM against runs of another state of
the programs (their streamer may be an older one) says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paqm_lab import stats, suite, topology
from paqm_lab.checks import Check, entry
from paqm_lab.headtohead_cases import PAQM, TCP_AT, Row
from paqm_lab.rundata import ADVISED_SENDER

Json = dict[str, Any]

FORMAT = 1  # of the rows
# A rival does its job: what its worst stream, and TCP together, have at least of their fair share,
# what its streams lose at most, and how long their packets wait at most at p95.
JOB_SHARE, JOB_LOSS, JOB_P95_MS = 50.0, 2.0, 100.0
# P-AQM is behind the best rival by no more, and ahead of dualpi2 by as much.
BEHIND_P95_MS, BEHIND_LOSS, BEHIND_VMAF = 1.0, 0.05, 0.5
AHEAD_P99, AHEAD_SHARE = 2.0, 15.0
DUALPI2 = "dualpi2"
PERCENTILES = ("p50", "p95", "p99")


@dataclass(frozen=True)
class Quantity:
    """A figure in which P-AQM is compared with the best rival."""

    name: str
    key: str
    unit: str
    sign: int  # 1: more is worse
    limit: float
    meaning: str
    same_encoder: bool = False


QUANTITIES = (
    Quantity("delay_p95", "delay_p95_ms", "ms", 1, BEHIND_P95_MS, "waiting in the router, p95"),
    Quantity("loss", "lost_percent", "%", 1, BEHIND_LOSS, "media packets lost in the router"),
    Quantity("vmaf_p10", "vmaf_p10", "", -1, BEHIND_VMAF, "VMAF, 10th percentile", True),
)


# One run


def jain(parts: list[float]) -> float | None:
    """Jain's index of what flows have of their shares."""
    squares = len(parts) * sum(part * part for part in parts)
    return sum(parts) ** 2 / squares if squares else None


def tc_lines(variant: Json) -> list[str]:
    """The commands that made the bottleneck of a run."""
    net = topology.Network()
    topology.add_bottleneck(net, variant, int(variant["bottleneck_bps"]), bool(variant["link"]))
    return [
        " ".join(["tc", *topology.queue_words(step)])
        for step in net.steps
        if isinstance(step, topology.Queue)
    ]


def _parts(flow: Json, since: float) -> list[Json]:
    return [part for part in flow["segments"] if part["start"] >= since]


def _share(flows: list[Json], since: float) -> float | None:
    """What flows have together of their fair shares from then on, %."""
    parts = [part for flow in flows for part in _parts(flow, since)]
    fair = sum(part["share_mbit"] * (part["stop"] - part["start"]) for part in parts)
    got = sum(part["mean_mbit"] * (part["stop"] - part["start"]) for part in parts)
    return 100 * got / fair if fair else None


def _mean(values: Iterable[Any]) -> float | None:
    known = list(values)
    return None if not known or None in known else stats.mean(known)


def figures(row: Row, system: str, seed: int, variant: Json) -> Json:
    """A run in the figures that are shown and judged.

    Of the streams under test: means over the streams of each one's percentiles, the worst stream's
    share. Where there is TCP shares are those beside it. A frame that never arrives counts with
    the length of the run, a stream that shows nothing with VMAF 0.
    """
    each, told = variant["each"], variant["figures"]
    names = [name for name in variant["flows"] if name in _tested(row)]
    streams = [each[name] for name in names]
    bulk = [flow for flow in each.values() if flow["kind"] == "tcp"]
    since = TCP_AT if row.tcp else 0.0
    parts = [_share([flow], since) for flow in [*streams, *bulk]]
    of_streams = [part or 0.0 for part in parts[: len(streams)]]
    packets = sum(flow["packets"] for flow in streams)
    frames = [flow["frame_delivery_ms"]["p95"] for flow in streams]
    took = [part["settle_s"] for name in names for part in variant["flows"][name]["segments"]]
    known = [seconds for seconds in took if seconds is not None]
    return {
        "case": row.name,
        "queue": system,
        "seed": seed,
        "sender": variant["sender"],
        "tc": tc_lines(variant),
        **{f"delay_{p}_ms": _mean(f["sojourn_ms"][p] for f in streams) for p in PERCENTILES},
        "lost_percent": 100 * sum(f["lost"] for f in streams) / packets if packets else None,
        "use_percent": told["link_use_percent"]["with_elastic" if row.tcp else "whole"],
        "jain": jain([part or 0.0 for part in parts]),
        "share_percent": _share(streams, since),
        "share_percent_least": min(of_streams) if of_streams else None,
        "tcp_percent": _share(bulk, since) if bulk else None,
        # a link that varies gives no rate to settle at
        "settle_s": max(known) if known and not row.link else None,
        "settled": None if row.link else [len(known), len(took)],
        "frame_p95_ms": _mean(1000 * variant["duration_s"] if f is None else f for f in frames),
        "freezes": sum(f["webrtc_freezes"] for f in streams),
        "frozen_s": sum(f["webrtc_frozen_s"] for f in streams),
        **{key: _mean(f[key] or 0.0 for f in streams) if row.scored else None
           for key in ("vmaf", "vmaf_p10")},
    }  # fmt: skip


def _tested(row: Row) -> set[str]:
    """Names of the streams under test; others in the row listen to nobody over any queue."""
    return {f"f{n}" for n in range(1, row.streams + 1)}


def load(out: Path, rows: Mapping[str, Row]) -> tuple[list[Json], list[Json]]:
    """The runs that are there; versions."""
    found, versions = [], []
    for row in rows.values():
        for there in suite.runs_of(out, row.name):
            if there.queue not in row.systems:
                continue
            point = row.point(there.queue, there.seed)
            stamp, variant = suite.stored_of(point, out), suite.load(point, out)
            if stamp is None or variant is None:
                continue
            if row.scored and not stamp["scored"]:
                continue
            if variant["versions"] not in versions:
                versions.append(variant["versions"])
            one = figures(row, point.queue, point.seed, variant)
            made = {key: stamp[key] for key in ("programs", "scenario")}
            made["version"] = variant["versions"]["paqm"]
            found.append(one | made)
    return found, versions


# All seeds of a system


def counted(row: Row, runs: list[Json]) -> list[Json]:
    """The runs of a row that count: of the seeds that all its systems have run, as far as they
    have run at all. Links that vary do so by the seed, and means over other seeds do not compare.
    """
    mine = [run for run in runs if run["case"] == row.name]
    seeds: dict[str, set[int]] = {}
    for run in mine:
        seeds.setdefault(run["queue"], set()).add(run["seed"])
    common = set.intersection(*seeds.values()) if seeds else set()
    return [run for run in mine if run["seed"] in common]


def systems(row: Row, runs: list[Json]) -> dict[str, Json]:
    """Each system's means over the seeds that count; None where a run could not tell."""
    keys = [q.key for q in QUANTITIES]
    keys += ["delay_p99_ms", "share_percent", "share_percent_least", "tcp_percent"]
    found = {}
    runs = counted(row, runs)
    for system in row.systems:
        mine = [run for run in runs if run["queue"] == system]
        if mine:
            means: Json = {key: _mean(run[key] for run in mine) for key in keys}
            programs = sorted({run["programs"] for run in mine})
            found[system] = means | {"sender": mine[0]["sender"], "programs": programs}
    return found


def _same_programs(known: dict[str, Json], rivals: Iterable[str]) -> bool:
    """Whether P-AQM's runs and those of rivals were made by one state of the programs."""
    return len({one for name in (PAQM, *rivals) for one in known[name]["programs"]}) == 1


def does_its_job(row: Row, mean: Json) -> bool:
    """Whether a system may count as the best in a figure of a row."""
    shares = [mean["share_percent_least"]]
    if row.tcp:
        shares.append(mean["tcp_percent"])
    return (
        all(share is not None and share >= JOB_SHARE for share in shares)
        and mean["lost_percent"] is not None
        and mean["lost_percent"] <= JOB_LOSS
        and mean["delay_p95_ms"] is not None
        and mean["delay_p95_ms"] <= JOB_P95_MS
    )


def best(row: Row, known: dict[str, Json], quantity: Quantity) -> str | None:
    """The best rival of a row in a figure."""
    rivals = {
        name: mean[quantity.key]
        for name, mean in known.items()
        if name != PAQM
        and does_its_job(row, mean)
        and mean[quantity.key] is not None
        and not (quantity.same_encoder and mean["sender"] != ADVISED_SENDER)
    }
    return min(rivals, key=lambda name: quantity.sign * rivals[name]) if rivals else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _behind(row: Row, known: dict[str, Json], quantity: Quantity) -> Check | None:
    """How far P-AQM is behind the best rival; None where no rival does its job."""
    rival = best(row, known, quantity)
    if rival is None:
        return None
    ours, theirs = known[PAQM][quantity.key], known[rival][quantity.key]
    value = None if ours is None else quantity.sign * (ours - theirs)
    check = entry(
        row.name,
        f"{quantity.name}_behind",
        _rounded(value),
        "<=",
        quantity.limit,
        quantity.unit,
        f"runs/{row.name}: {quantity.meaning}, P-AQM against the best rival that does its job",
    )
    same = _same_programs(known, [rival])
    more = {"rival": rival, "ours": _rounded(ours), "theirs": _rounded(theirs)}
    return check | more | {"same_programs": same}


def _ahead(row: Row, known: dict[str, Json]) -> list[Check]:
    """P-AQM against dualpi2 beside TCP: each time against the better sender over it."""
    those = {name: mean for name, mean in known.items() if name.partition("-")[0] == DUALPI2}
    if not row.tcp or not those:
        return []
    ours, found = known[PAQM], []
    delay = min((m["delay_p99_ms"] for m in those.values() if m["delay_p99_ms"]), default=None)
    share = max((m["share_percent"] for m in those.values() if m["share_percent"]), default=None)
    ratio = delay / ours["delay_p99_ms"] if delay and ours["delay_p99_ms"] else None
    lead = None if share is None or ours["share_percent"] is None else ours["share_percent"] - share
    for name, value, limit, unit, key, theirs, what in (
        ("dualpi2_delay_p99_times", ratio, AHEAD_P99, "", "delay_p99_ms", delay,
         "waiting in the router, p99: dualpi2's against P-AQM's"),
        ("dualpi2_share_ahead", lead, AHEAD_SHARE, "%", "share_percent", share,
         "what streams have of their fair share beside TCP, P-AQM less dualpi2"),
    ):  # fmt: skip
        check = entry(
            row.name, name, _rounded(value), ">=", limit, unit, f"runs/{row.name}: {what}"
        )
        more = {"ours": _rounded(ours[key]), "theirs": _rounded(theirs)}
        found.append(check | more | {"same_programs": _same_programs(known, those)})
    return found


def _nearer(row: Row, known: dict[str, Json]) -> list[Json]:
    """How much nearer to their fair share streams are than over dualpi2: it may give too much."""
    those = {name: mean for name, mean in known.items() if name.partition("-")[0] == DUALPI2}
    apart = [
        abs(m["share_percent"] - 100) for m in those.values() if m["share_percent"] is not None
    ]
    ours = known[PAQM]["share_percent"]
    if not row.tcp or not apart or ours is None:
        return []
    value = min(apart) - abs(ours - 100)
    why = f"{value:.1f} % of the fair share nearer to it than over dualpi2; not judged"
    return [
        {"variant": row.name, "name": "dualpi2_share_nearer", "value": _rounded(value), "unit": "%",
         "why": why, "same_programs": _same_programs(known, those)}
    ]  # fmt: skip


def judge(runs: list[Json], rows: Mapping[str, Row]) -> tuple[list[Check], list[Json]]:
    """Checks of all rows of which P-AQM and a rival have run; what could not be judged."""
    found: list[Check] = []
    silent = []
    for row in rows.values():
        known = systems(row, runs)
        there = {run["queue"] for run in runs if run["case"] == row.name}
        if not known and PAQM in there and len(there) > 1:
            why = "its systems have no seed in common"
            silent.append({"variant": row.name, "name": "all demands", "why": why})
        if PAQM not in known or len(known) < 2:
            continue
        for quantity in QUANTITIES:
            if quantity.same_encoder and not row.scored:
                continue
            check = _behind(row, known, quantity)
            if check:
                found.append(check)
            else:
                why = "no rival does its job"
                silent.append({"variant": row.name, "name": f"{quantity.name}_behind", "why": why})
        found += _ahead(row, known)
        silent += _nearer(row, known)
    return found, silent


def result(
    out: Path, rows: Mapping[str, Row], seeds: Iterable[int], known: Json | None = None
) -> Json:
    """result.json from whatever runs are there, and `known`, an earlier one."""

    def point_of(run: Json) -> suite.Point | None:
        row = rows.get(run["case"])
        return row.point(run["queue"], run["seed"]) if row and run["queue"] in row.systems else None

    runs, versions = suite.with_earlier(*load(out, rows), known or {}, FORMAT, point_of)
    found, silent = judge(runs, rows)
    numbers = list(seeds)
    want = {(row.name, s, n) for row in rows.values() for s in row.systems for n in numbers}
    return {
        "format": FORMAT,
        "scenario": "head-to-head",
        "title": "P-AQM beside the queues and senders of today",
        "seeds": sorted({run["seed"] for run in runs}),
        "versions": versions,
        "programs": len({run["programs"] for run in runs}),
        "grid": suite.coverage(runs, want),
        "rows": [
            {"name": row.name, "title": row.title, "link_mbit": row.mbit, "link": row.link or None,
             "rtt_ms": row.rtt_ms, "streams": row.streams, "tcp": row.tcp or None,
             "scored": row.scored, "systems": list(row.systems),
             "seeds": sorted({run["seed"] for run in counted(row, runs)}),
             "job": {name: does_its_job(row, mean) for name, mean in systems(row, runs).items()}}
            for row in rows.values()
        ],
        "runs": runs,
        "checks": found,
        "reported": silent,
    }  # fmt: skip
