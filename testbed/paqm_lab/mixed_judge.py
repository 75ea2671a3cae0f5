# SPDX-License-Identifier: GPL-2.0
"""Judges whatever runs of paqm_lab.mixed are there: each run becomes a row, rows become checks.

Where queues are compared a figure of a run is the mean over the run's libwebrtc senders, the rival
is the queue (of fq_codel and cake) whose mean over the seeds is better, and P-AQM may be worse by
as much as the runs of one and the same queue differ: half the width of the 95 % interval of the
difference (Welch). With one seed there is no such interval: then the difference is only reported.
A frame that never arrives counts with the length of the run, a stream that shows nothing with VMAF
0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paqm_lab import metrics, stats, suite
from paqm_lab.checks import Check, entry
from paqm_lab.mixed_cases import Case
from paqm_lab.rundata import ADVISED_SENDER
from paqm_lab.scenario import rate

Json = dict[str, Any]

PAQM, RIVALS = "paqm", ("fq_codel", "cake")
FOLLOWER_P95_MS, FOLLOWER_P99_MS = 4.0, 8.0
FOLLOWER_SHARE = 95.0
AUDIO_P99_MS = 3.0
TCP_SHARE = 95.0
MISBEHAVER_SHARE = 105.0
MORE_MS = 5.0  # of a follower's p99 beside a misbehaver, against none
TOLD_APART = 5.0  # % that a rate told in steady state may be apart from its mean
TORRENT_LINK = 45.0  # % of the link

FORMAT = 2  # of result.json


def sort_of(entry_of_flow: Json) -> str:
    """The group that a flow's figures go into."""
    if entry_of_flow["kind"] == "video":
        return "followers" if entry_of_flow["sender"] == ADVISED_SENDER else "libwebrtc"
    return str(entry_of_flow["kind"])


def _values(flows: list[Json], *keys: str) -> list[Any]:
    found = []
    for flow in flows:
        value: Any = flow
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        found.append(value)
    return found


def _mean(values: list[Any]) -> float | None:
    """None if one is unknown."""
    return None if not values or None in values else stats.mean(values)


def _most(values: list[Any]) -> float | None:
    return None if not values or None in values else float(max(values))


def _least(values: list[Any]) -> float | None:
    return None if not values or None in values else float(min(values))


def group_figures(flows: list[Json], seconds: float, scored: bool) -> Json:
    """Flows of one kind in one run: means over the flows, and the worst of them."""
    shares = [flow["share_mbit"] for flow in flows]
    rates = [flow["mean_mbit"] for flow in flows]
    figures: Json = {
        "count": len(flows),
        "lost": sum(flow["lost"] for flow in flows),
        "lost_percent": _mean([flow["lost_percent"] or 0.0 for flow in flows]),
        "delay_p50_ms": _mean(_values(flows, "sojourn_ms", "p50")),
        "delay_p95_ms": _mean(_values(flows, "sojourn_ms", "p95")),
        "delay_p95_worst_ms": _most(_values(flows, "sojourn_ms", "p95")),
        "delay_p99_ms": _mean(_values(flows, "sojourn_ms", "p99")),
        "delay_p99_worst_ms": _most(_values(flows, "sojourn_ms", "p99")),
        "rate_mbit": _mean(rates),
        "share_percent": 100 * sum(rates) / sum(shares)
        if None not in rates and None not in shares and sum(shares)
        else None,
        "share_percent_least": _least(_values(flows, "share_percent")),
    }
    if flows[0]["kind"] == "video":
        frame = _values(flows, "frame_delivery_ms", "p95")
        frame = [1000 * seconds if value is None else value for value in frame]
        vmaf = [v or 0.0 for v in _values(flows, "vmaf")]
        low = [v or 0.0 for v in _values(flows, "vmaf_p5")]
        figures |= {
            "frame_p95_ms": _mean(frame),
            "frames_never": sum(_values(flows, "frames_never")),
            "vmaf": _mean(vmaf) if scored else None,
            "vmaf_p5": _mean(low) if scored else None,
            "freezes": sum(v or 0 for v in _values(flows, "freezes")) if scored else None,
            "told_mbit": _mean(_values(flows, "told", "mean_mbit")),
        }
    if flows[0]["kind"] == "web":
        figures |= {
            "connections": sum(_values(flows, "connections", "done")),
            "completion_p50_ms": _mean(_values(flows, "completion_ms", "p50")),
            "completion_p95_ms": _mean(_values(flows, "completion_ms", "p95")),
        }
    return figures


def offered(load: Json, start: float, stop: float, step: float = 0.001) -> float:
    """Mean Mbit/s that a flood of a case sends in an interval."""
    high: float = rate(load["rate"]) / 1e6
    if "on_ms" not in load:
        return high
    low: float = rate(load.get("off_rate", "0bit")) / 1e6
    period, on = (load["on_ms"] + load["off_ms"]) / 1000, load["on_ms"] / 1000
    count = round((stop - start) / step)
    since = start - float(load["start"])
    active: int = sum((since + (i + 0.5) * step) % period < on for i in range(count))
    return low + (high - low) * active / count


def misbehaver(case: Case, variant: Json) -> Json | None:
    """What the flood of a case got, against two notions of its fair share.

    Nominal: the max-min share if every follower wants as much as it may. Fair: the share if the
    followers want what they really sent, second by second, which is all that a queue can know,
    and the flood what it sends and what of it waits already.
    """
    floods = case.load.get("flood", [])
    mine = [flow for flow in variant["each"].values() if flow["kind"] == "flood"]
    others = [flow for flow in variant["each"].values() if sort_of(flow) == "followers"]
    if len(floods) != 1 or not mine or not others:
        return None
    load, begin = floods[0], case.judge_from
    length = min(len(flow["windows_mbit"]) for flow in [*mine, *others])
    link, got, fair = variant["bottleneck_bps"] / 1e6, [], []
    for i in range(length):
        sent = {
            name: flow["windows_mbit"][i] / (1 - (flow["lost_percent"] or 0.0) / 100)
            for name, flow in variant["each"].items()
            if sort_of(flow) == "followers"
        }
        want = offered(load, begin + i, begin + i + 1)
        want += sum(flow["waiting_mbit"][i] for flow in mine)
        got.append(sum(flow["windows_mbit"][i] for flow in mine))
        fair.append(metrics.fair_shares(link, sent | {"": want})[""])
    nominal = _mean([flow["share_mbit"] for flow in mine])
    mean, share = stats.mean(got), stats.mean(fair)
    return {
        "mean_mbit": mean,
        "fair_mbit": share,
        "fair_percent": 100 * mean / share if share else None,
        "nominal_mbit": nominal,
        "nominal_percent": 100 * mean / nominal if nominal and len(mine) == 1 else None,
    }


def row(case: Case, queue: str, seed: int, variant: Json, scored: bool) -> Json:
    """One run, in the figures that are judged or shown."""
    groups: dict[str, list[Json]] = {}
    for flow in variant["each"].values():
        groups.setdefault(sort_of(flow), []).append(flow)
    steady = [
        flow["told"]["apart_percent"]
        for name, flow in variant["each"].items()
        if sort_of(flow) == "followers"
        and flow.get("told")
        and name not in case.facts.get("limited", ())
    ]
    return {
        "case": case.name,
        "queue": queue,
        "seed": seed,
        "qdisc": variant["qdisc"],
        "scored": scored,
        "use_percent": variant["figures"]["link_use_percent"]["whole"],
        "messages": variant["figures"]["feedback"]["messages"],
        "told_apart_percent": _most(steady),
        "groups": {
            name: group_figures(flows, case.seconds, scored) for name, flows in groups.items()
        },
        "misbehaver": misbehaver(case, variant) if case.group == "bad" else None,
    }


# Comparison of queues


@dataclass(frozen=True)
class Quantity:
    """A figure in which queues are compared."""

    name: str
    key: str
    unit: str
    sign: int  # 1: more is worse; -1: less is worse
    meaning: str


DELAY = Quantity("delay_p95", "delay_p95_ms", "ms", 1, "waiting in the router, 95th percentile")
LOSS = Quantity("loss", "lost_percent", "%", 1, "packets lost in the router")
RATE = Quantity("rate", "rate_mbit", "Mbit/s", -1, "rate")
VMAF = Quantity("vmaf_p5", "vmaf_p5", "", -1, "VMAF, 5th percentile")
FRAME = Quantity("frame_delivery_p95", "frame_p95_ms", "ms", 1, "frame delivery, 95th percentile")
QUANTITIES = {"mix": (DELAY, LOSS, RATE, VMAF), "deaf": (FRAME, LOSS, VMAF)}


@dataclass(frozen=True)
class Comparison:
    """One quantity of a case over P-AQM and over a rival; by seed."""

    case: str
    quantity: Quantity
    rival: str
    ours: dict[int, float]
    theirs: dict[int, float]

    @property
    def worse(self) -> float:
        """How much worse P-AQM is, in the mean over the seeds."""
        ours, theirs = list(self.ours.values()), list(self.theirs.values())
        return self.quantity.sign * (stats.mean(ours) - stats.mean(theirs))

    @property
    def spread(self) -> float | None:
        """Half the interval of that difference; None with too few seeds."""
        found = stats.welch(list(self.ours.values()), list(self.theirs.values()))
        return found.half if found else None

    @property
    def pairs(self) -> list[float]:
        """The difference of each seed that both queues have run, positive where P-AQM is worse."""
        both = [seed for seed in self.ours if seed in self.theirs]
        return [self.quantity.sign * (self.ours[s] - self.theirs[s]) for s in both]


def compare(rows: list[Json], case: Case, among: Sequence[str] = RIVALS) -> list[Comparison]:
    """All quantities of a case for which there are runs, over P-AQM and the better of rivals."""
    found = []
    for quantity in QUANTITIES.get(case.group, ()):
        by_queue: dict[str, dict[int, float]] = {}
        for one in rows:
            if one["case"] != case.name or "libwebrtc" not in one["groups"]:
                continue
            value = one["groups"]["libwebrtc"][quantity.key]
            if value is not None:
                by_queue.setdefault(one["queue"], {})[one["seed"]] = value
        rivals = {name: by_queue[name] for name in among if name in by_queue}
        if PAQM not in by_queue or not rivals:
            continue
        best = min(
            rivals, key=lambda name: quantity.sign * stats.mean(list(rivals[name].values()))
        )
        found.append(Comparison(case.name, quantity, best, by_queue[PAQM], rivals[best]))
    return found


# Checks


class Book:
    """Collects checks, and what is only reported."""

    def __init__(self) -> None:
        self.checks: list[Check] = []
        self.reported: list[Json] = []

    def add(
        self,
        case: str,
        name: str,
        value: float | None,
        relation: str,
        limit: float,
        unit: str,
        source: str,
        **more: Any,
    ) -> None:
        """One check; `more` is for people."""
        rounded = None if value is None else round(value, 4)
        check = entry(case, name, rounded, relation, round(limit, 4), unit, source)
        self.checks.append(check | more)

    def report(self, case: str, name: str, value: float | None, unit: str, why: str) -> None:
        rounded = None if value is None else round(value, 4)
        self.reported.append(
            {"variant": case, "name": name, "value": rounded, "unit": unit, "why": why}
        )


def _source(rows: list[Json], what: str) -> str:
    seeds = ", ".join(str(one["seed"]) for one in rows)
    return f"runs/{rows[0]['case']}/{rows[0]['queue']}-*: {what}; seeds {seeds}"


def _over(rows: list[Json], group: str, key: str) -> list[Any]:
    return [one["groups"][group][key] if group in one["groups"] else None for one in rows]


def _worst(
    book: Book,
    case: Case,
    rows: list[Json],
    name: str,
    group: str,
    keys: tuple[str, str],
    relation: str,
    limit: float,
    unit: str,
    what: str,
) -> None:
    """A check of the worst flow of all runs, with the mean beside it."""
    values = _over(rows, group, keys[0])
    value = _most(values) if relation == "<=" else _least(values)
    mean = _mean(_over(rows, group, keys[1]))
    book.add(
        case.name,
        name,
        value,
        relation,
        limit,
        unit,
        _source(rows, what),
        mean=None if mean is None else round(mean, 4),
    )


def _followers_share(book: Book, case: Case, rows: list[Json]) -> None:
    _worst(
        book, case, rows, "followers_rate", "followers",
        ("share_percent_least", "share_percent"), ">=", FOLLOWER_SHARE, "%",
        "rate of a follower against its max-min share",
    )  # fmt: skip


def _followers_delay(book: Book, case: Case, rows: list[Json], level: str, limit: float) -> None:
    _worst(
        book, case, rows, f"followers_delay_{level}", "followers",
        (f"delay_{level}_worst_ms", f"delay_{level}_ms"), "<=", limit, "ms",
        "waiting of a follower's packets in the router",
    )  # fmt: skip


def _followers_lost(book: Book, case: Case, rows: list[Json]) -> None:
    _worst(
        book, case, rows, "followers_lost", "followers",
        ("lost", "lost"), "<=", 0, "packets", "followers' packets lost in the router",
    )  # fmt: skip


def _mix(book: Book, case: Case, rows: list[Json], _: Mapping[str, list[Json]]) -> None:
    _followers_delay(book, case, rows, "p95", FOLLOWER_P95_MS)
    _followers_delay(book, case, rows, "p99", FOLLOWER_P99_MS)
    _followers_lost(book, case, rows)
    _followers_share(book, case, rows)


def _flood(book: Book, case: Case, rows: list[Json], _: Mapping[str, list[Json]]) -> None:
    _followers_share(book, case, rows)
    _followers_delay(book, case, rows, "p99", FOLLOWER_P99_MS)


def _audio(book: Book, case: Case, rows: list[Json], _: Mapping[str, list[Json]]) -> None:
    if "media" in case.load:
        for name, key, unit in (
            ("followers_delay_p99", "delay_p99_worst_ms", "ms"),
            ("followers_rate", "share_percent_least", "%"),
        ):
            value = _mean(_over(rows, "followers", key))
            book.report(case.name, name, value, unit, "for comparison")
        return
    _worst(
        book, case, rows, "tcp_rate", "tcp", ("share_percent_least", "share_percent"), ">=",
        TCP_SHARE, "%", "rate of TCP against what audio leaves",
    )  # fmt: skip
    _worst(
        book, case, rows, "audio_lost", "audio", ("lost", "lost"), "<=", 0, "packets",
        "packets of voices lost in the router",
    )  # fmt: skip
    _worst(
        book, case, rows, "audio_delay_p99", "audio", ("delay_p99_worst_ms", "delay_p99_ms"),
        "<=", AUDIO_P99_MS, "ms", "waiting of a voice's packets in the router",
    )  # fmt: skip


def _more_delay(book: Book, case: Case, rows: list[Json], base: list[Json]) -> None:
    """The followers' p99 against that of the same case without the misbehaver."""
    key = "delay_p99_worst_ms"
    alone = {one["seed"]: one["groups"]["followers"][key] for one in base}
    pairs = [
        (one["groups"]["followers"][key], alone[one["seed"]])
        for one in rows
        if one["seed"] in alone
    ]
    if not pairs:
        book.report(
            case.name, "followers_delay_more", None, "ms", f"no run of {case.base} with these seeds"
        )
        return
    whole = all(a is not None and b is not None for a, b in pairs)
    worst = max(a - b for a, b in pairs) if whole else None
    book.add(
        case.name,
        "followers_delay_more",
        worst,
        "<=",
        MORE_MS,
        "ms",
        _source(rows, f"followers' delay, 99th percentile, less that in {case.base}; worst seed"),
    )


def _torrent(book: Book, case: Case, rows: list[Json]) -> None:
    rates = _over(rows, "followers", "rate_mbit")
    least = _least(rates)
    book.add(
        case.name,
        "follower_of_link",
        None if least is None else 100 * least * 1e6 / case.link,
        ">=",
        TORRENT_LINK,
        "%",
        _source(rows, "rate of the follower against that of the link"),
        mean_mbit=_mean(rates),
    )


def _bad(book: Book, case: Case, rows: list[Json], by_case: Mapping[str, list[Json]]) -> None:
    if case.facts.get("torrent"):
        _torrent(book, case, rows)
        return
    if not case.base:
        _followers_share(book, case, rows)
        return
    if case.facts.get("only_delay"):
        got = [one["misbehaver"] for one in rows]
        mean = _mean([entry_["mean_mbit"] for entry_ in got if entry_])
        book.report(case.name, "misbehaver_rate", mean, "Mbit/s", "flows are equal: not judged")
        least = _least(_over(rows, "followers", "rate_mbit"))
        book.report(case.name, "followers_rate", least, "Mbit/s", "the least; not judged")
    else:
        found = [one["misbehaver"] for one in rows if one["misbehaver"]]
        nominal = [one["nominal_percent"] for one in found]
        book.add(
            case.name,
            "misbehaver_rate",
            _most([one["fair_percent"] for one in found]),
            "<=",
            MISBEHAVER_SHARE,
            "%",
            _source(rows, "its rate against its max-min share beside what followers really sent"),
            nominal_percent=_most(nominal),
            fair_mbit=_mean([one["fair_mbit"] for one in found]),
            nominal_mbit=_mean([one["nominal_mbit"] for one in found]),
        )
        _followers_share(book, case, rows)
    _more_delay(book, case, rows, by_case.get(case.base, []))


def _regime(book: Book, case: Case, rows: list[Json], _: Mapping[str, list[Json]]) -> None:
    _followers_share(book, case, rows)
    _followers_delay(book, case, rows, "p99", FOLLOWER_P99_MS)
    apart = _most([one["told_apart_percent"] for one in rows])
    if case.facts.get("changes"):
        book.report(case.name, "told_apart", apart, "%", "shares really change all the time")
        return
    book.add(
        case.name,
        "told_apart",
        apart,
        "<=",
        TOLD_APART,
        "%",
        _source(
            rows,
            "greatest distance of a rate told from its mean between two changes, of followers that "
            "are not limited by themselves",
        ),
    )


Judge = Callable[[Book, Case, list[Json], Mapping[str, list[Json]]], None]
JUDGES: dict[str, Judge] = {
    "mix": _mix,
    "flood": _flood,
    "audio": _audio,
    "bad": _bad,
    "regime": _regime,
}


def _compared(book: Book, found: Iterable[Comparison]) -> None:
    """Each comparison by itself."""
    for one in found:
        quantity, spread = one.quantity, one.spread
        name = f"libwebrtc_{quantity.name}_worse"
        if spread is None:
            book.report(one.case, name, one.worse, quantity.unit, f"than {one.rival}; one seed")
            continue
        book.add(
            one.case,
            name,
            one.worse,
            "<=",
            spread,
            quantity.unit,
            f"runs/{one.case}: {quantity.meaning}, P-AQM against {one.rival}; limit: run-to-run "
            "spread",
            rival=one.rival,
            ours=round(stats.mean(list(one.ours.values())), 4),
            theirs=round(stats.mean(list(one.theirs.values())), 4),
        )


def _pooled(book: Book, group: str, rival: str, found: list[Comparison]) -> None:
    """Each quantity over all cases of a group: differences of pairs with one rival.

    Not with the better one of each pair: chance alone makes the better of two runs better than
    another run of either queue.
    """
    for quantity in QUANTITIES[group]:
        pairs = [d for one in found if one.quantity is quantity for d in one.pairs]
        interval = stats.paired(pairs)
        if interval is None:
            continue
        book.add(
            f"{group}, all",
            f"libwebrtc_{quantity.name}_worse_than_{rival}_at_least",
            interval.low,
            "<=",
            0,
            quantity.unit,
            f"runs/{group}-*: {quantity.meaning}, P-AQM less {rival}, by case and seed; "
            "lower end of the 95 % interval of the mean",
            rival=rival,
            mean=round(interval.mean, 4),
            half=round(interval.half, 4),
            pairs=interval.count,
        )


def judge(rows: list[Json], cases: Mapping[str, Case]) -> Book:
    """All checks for which there are runs."""
    book = Book()
    by_case: dict[str, list[Json]] = {}
    for one in rows:
        if one["queue"] == PAQM:
            by_case.setdefault(one["case"], []).append(one)
    for case in cases.values():
        if case.name in by_case and case.group in JUDGES:
            JUDGES[case.group](book, case, by_case[case.name], by_case)
        _compared(book, compare(rows, case))
    for group in QUANTITIES:
        mine = [case for case in cases.values() if case.group == group]
        for rival in RIVALS:
            found = [one for case in mine for one in compare(rows, case, (rival,))]
            _pooled(book, group, rival, found)
    return book


# Runs on disk


def _seeds(home: Path) -> list[tuple[str, int]]:
    """Queue and seed of the runs of a case."""
    found = []
    for path in home.glob("*/result.json"):
        queue, _, seed = path.parent.name.rpartition("-")
        if queue and seed.isdigit():
            found.append((queue, int(seed)))
    return sorted(found)


def load(out: Path, cases: Mapping[str, Case]) -> tuple[list[Json], list[Json]]:
    """All runs that are there as rows; versions."""
    rows, versions = [], []
    for case in cases.values():
        for queue, seed in _seeds(out / "runs" / case.name):
            point = suite.Point(case.name, queue, seed, {})
            stamp, variant = suite.stored(point.home(out)), suite.load(point, out)
            if stamp is None or variant is None or "each" not in variant:
                continue
            if variant["versions"] not in versions:
                versions.append(variant["versions"])
            one = row(case, queue, seed, variant, bool(stamp["scored"]))
            made = {"programs": stamp["programs"], "version": variant["versions"]["paqm"]}
            rows.append(one | made)
    return rows, versions


def newest(rows: list[Json], versions: list[Json], known: Json) -> tuple[list[Json], list[Json]]:
    """Rows and versions with those of an earlier result.json that have not been run since.

    The whole grid takes longer than a machine may be there for: it is run in parts.
    """
    if known.get("format") != FORMAT:
        return rows, versions
    there = {(one["case"], one["queue"], one["seed"]) for one in rows}
    kept = [
        one for one in known["runs"] if (one["case"], one["queue"], one["seed"]) not in there
    ]
    used = {one["version"] for one in kept}
    more = [one for one in known["versions"] if one["paqm"] in used and one not in versions]
    both = sorted(rows + kept, key=lambda one: (one["case"], one["queue"], one["seed"]))
    return both, more + versions


def coverage(rows: list[Json], cases: Mapping[str, Case], seeds: Iterable[int]) -> Json:
    """Which part of the whole grid there is."""
    there = {(one["case"], one["queue"], one["seed"]) for one in rows}
    want = {(c.name, q, s) for c in cases.values() for q in c.queues for s in seeds}
    lacking: dict[str, list[str]] = {}
    for case, queue, seed in sorted(want - there):
        lacking.setdefault(case, []).append(f"{queue}-{seed}")
    return {
        "runs": len(there),
        "whole_grid": len(want),
        "of_it": len(want & there),
        "cases": sorted({case for case, _, _ in there}),
        "seeds": sorted({seed for _, _, seed in there}),
        "missing": lacking,
    }


def result(
    out: Path, cases: Mapping[str, Case], seeds: Iterable[int], known: Json | None = None
) -> Json:
    """result.json from whatever runs are there, and `known`, an earlier one."""
    rows, versions = newest(*load(out, cases), known or {})
    rows = [one for one in rows if one["case"] in cases]
    book = judge(rows, cases)
    shown = [
        {"name": c.name, "group": c.group, "title": c.title, "link_mbit": c.link / 1e6,
         "rtt_ms": c.rtt_ms}
        for c in cases.values()
        if any(one["case"] == c.name for one in rows)
    ]  # fmt: skip
    return {
        "format": FORMAT,
        "scenario": "mixed",
        "title": "Followers beside senders that do not listen",
        "seeds": sorted({one["seed"] for one in rows}),
        "versions": versions,
        "programs": len({one["programs"] for one in rows}),
        "grid": coverage(rows, cases, seeds),
        "cases": shown,
        "runs": rows,
        "checks": book.checks,
        "reported": book.reported,
    }
