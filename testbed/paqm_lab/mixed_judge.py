# SPDX-License-Identifier: GPL-2.0
"""Judges whatever runs of paqm_lab.mixed are there: their rows become checks.

Where queues are compared a figure of a run is the mean over the run's libwebrtc senders, and P-AQM
may be worse than fq_codel and than cake by as much as the runs of one and the same queue differ:
half the width of the 95 % interval of the difference (Welch). The rival against which least of that
is left counts. With one seed there is no such interval: then the difference is only reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paqm_lab import stats, suite
from paqm_lab.checks import Check, entry
from paqm_lab.mixed_cases import Case
from paqm_lab.mixed_rows import FORMAT, least_of, load, mean_of, most_of

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
ONE_SEED = "one seed"


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


def _by_queue(rows: list[Json], case: Case, key: str) -> dict[str, dict[int, float]]:
    """What each queue's runs of a case have of a figure of libwebrtc, by seed."""
    found: dict[str, dict[int, float]] = {}
    for one in rows:
        if one["case"] != case.name or "libwebrtc" not in one["groups"]:
            continue
        mine = found.setdefault(one["queue"], {})
        value = one["groups"]["libwebrtc"][key]
        if value is not None:
            mine[one["seed"]] = value
    return found


def _unknown(rows: list[Json], case: Case, quantity: Quantity) -> list[Json]:
    """The runs of P-AQM that have no such figure, as of a stream of which nothing came. Without
    VMAF are runs whose pictures were not scored; to others a stream that shows nothing has 0."""
    return [
        one
        for one in rows
        if (one["case"], one["queue"]) == (case.name, PAQM)
        and quantity is not VMAF
        and one["groups"].get("libwebrtc", {}).get(quantity.key) is None
    ]


def compare(rows: list[Json], case: Case) -> list[Comparison]:
    """All quantities of a case over P-AQM and over each rival, as far as there are figures."""
    found = []
    for quantity in QUANTITIES.get(case.group, ()):
        values = _by_queue(rows, case, quantity.key)
        found += [
            Comparison(case.name, quantity, rival, values[PAQM], values[rival])
            for rival in RIVALS
            if values.get(PAQM) and values.get(rival)
        ]
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

    def report(
        self, case: str, name: str, value: float | None, unit: str, why: str, **more: Any
    ) -> None:
        """What is not judged; `more` is for people."""
        rounded = None if value is None else round(value, 4)
        one: Json = {"variant": case, "name": name, "value": rounded, "unit": unit, "why": why}
        self.reported.append(one | more)


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
    value = most_of(values) if relation == "<=" else least_of(values)
    mean = mean_of(_over(rows, group, keys[1]))
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
            value = mean_of(_over(rows, "followers", key))
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
    least = least_of(rates)
    book.add(
        case.name,
        "follower_of_link",
        None if least is None else 100 * least * 1e6 / case.link,
        ">=",
        TORRENT_LINK,
        "%",
        _source(rows, "rate of the follower against that of the link"),
        mean_mbit=mean_of(rates),
    )
    _followers_delay(book, case, rows, "p95", FOLLOWER_P95_MS)
    _followers_delay(book, case, rows, "p99", FOLLOWER_P99_MS)


def _bad(book: Book, case: Case, rows: list[Json], by_case: Mapping[str, list[Json]]) -> None:
    if case.facts.get("torrent"):
        _torrent(book, case, rows)
        return
    if not case.base:
        _followers_share(book, case, rows)
        return
    if case.facts.get("only_delay"):
        got = [one["misbehaver"] for one in rows]
        mean = mean_of([entry_["mean_mbit"] for entry_ in got if entry_])
        book.report(case.name, "misbehaver_rate", mean, "Mbit/s", "flows are equal: not judged")
        least = least_of(_over(rows, "followers", "rate_mbit"))
        book.report(case.name, "followers_rate", least, "Mbit/s", "the least; not judged")
    else:
        found = [one["misbehaver"] for one in rows if one["misbehaver"]]
        nominal = [one["nominal_percent"] for one in found]
        book.add(
            case.name,
            "misbehaver_rate",
            most_of([one["fair_percent"] for one in found]),
            "<=",
            MISBEHAVER_SHARE,
            "%",
            _source(rows, "its rate against its max-min share beside what followers really sent"),
            nominal_percent=most_of(nominal),
            fair_mbit=mean_of([one["fair_mbit"] for one in found]),
            nominal_mbit=mean_of([one["nominal_mbit"] for one in found]),
        )
        _followers_share(book, case, rows)
    _more_delay(book, case, rows, by_case.get(case.base, []))


def _regime(book: Book, case: Case, rows: list[Json], _: Mapping[str, list[Json]]) -> None:
    _followers_share(book, case, rows)
    _followers_delay(book, case, rows, "p99", FOLLOWER_P99_MS)
    apart = most_of([one["told_apart_percent"] for one in rows])
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


def _compared(book: Book, rows: list[Json], case: Case, found: list[Comparison]) -> None:
    """Each quantity of a case that P-AQM has runs of, against the rival that leaves it least room.

    Not against the one with the better mean: a rival of one seed, or of two that are far apart,
    would hide that P-AQM is worse than the other one.
    """
    for quantity in QUANTITIES.get(case.group, ()):
        name = f"libwebrtc_{quantity.name}_worse"
        queues = _by_queue(rows, case, quantity.key)
        if PAQM not in queues:
            continue
        if unknown := _unknown(rows, case, quantity):
            what = _source(unknown, f"{quantity.meaning}: not known")
            book.add(case.name, name, None, "<=", 0, quantity.unit, what)
            continue
        mine = [one for one in found if one.quantity is quantity]
        if not mine:
            lacks = f"{quantity.meaning.split(',')[0]} not measured"
            why = lacks if set(RIVALS) & set(queues) else "no run of a rival"
            book.report(case.name, name, None, quantity.unit, why)
            continue
        judged = [(one.worse - one.spread, one) for one in mine if one.spread is not None]
        if not judged:
            one = max(mine, key=lambda one: one.worse)
            book.report(case.name, name, one.worse, quantity.unit, ONE_SEED, rival=one.rival)
            continue
        _, one = max(judged, key=lambda pair: pair[0])
        assert one.spread is not None
        book.add(
            case.name,
            name,
            one.worse,
            "<=",
            one.spread,
            quantity.unit,
            f"runs/{case.name}: {quantity.meaning}, P-AQM against {one.rival}; limit: run-to-run "
            "spread",
            rival=one.rival,
            ours=round(stats.mean(list(one.ours.values())), 4),
            theirs=round(stats.mean(list(one.theirs.values())), 4),
        )


def unjudged(data: Json) -> str:
    """How many comparisons of queues are only reported, and why; data of a result.json."""
    whys = [one["why"] for one in data["reported"] if one["name"].startswith("libwebrtc_")]
    each = sorted(f"{why} {whys.count(why)}" for why in set(whys))
    return f"{len(whys)} comparisons of queues are not judged ({', '.join(each)})" if whys else ""


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
    compared: list[tuple[str, Comparison]] = []  # with the group of the case
    by_case: dict[str, list[Json]] = {}
    for one in rows:
        if one["queue"] == PAQM:
            by_case.setdefault(one["case"], []).append(one)
    for case in cases.values():
        if case.name in by_case and case.group in JUDGES:
            JUDGES[case.group](book, case, by_case[case.name], by_case)
        found = compare(rows, case)
        _compared(book, rows, case, found)
        compared += [(case.group, one) for one in found]
    for group in QUANTITIES:
        for rival in RIVALS:
            mine = [one for of, one in compared if of == group and one.rival == rival]
            _pooled(book, group, rival, mine)
    return book


def result(
    out: Path,
    cases: Mapping[str, Case],
    seeds: Iterable[int],
    known: Json | None = None,
    words: str = "",
) -> Json:
    """result.json from whatever runs are there with these words for the qdisc, and `known`, an
    earlier one without.
    """

    def point_of(one: Json) -> suite.Point | None:
        case = cases.get(one["case"])
        return case.point(one["queue"], one["seed"]) if case else None

    rows, versions = suite.with_earlier(*load(out, cases, words), known or {}, FORMAT, point_of)
    book = judge(rows, cases)
    want = {(c.name, q, s) for c in cases.values() for q in c.queues for s in set(seeds)}
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
        "grid": suite.coverage(rows, want),
        "cases": shown,
        "runs": rows,
        "checks": book.checks,
        "reported": book.reported,
    }
