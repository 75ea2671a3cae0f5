# SPDX-License-Identifier: GPL-2.0
"""`paqm-trial report`: the folders of all machines, merged into one page and result.json.

The two ends of a call are found by the RTP time stamps of their pictures, which are drawn at
random: neither names nor clocks are needed for that.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paqm_trial import compare, figures, page, routerdata, store
from paqm_trial.figures import End
from paqm_trial.routerdata import RouterData
from paqm_trial.store import Trouble, say

DEPTH = 6
MOST_FOLDERS = 5000
MATCHES = 10
VOTERS = 20  # calls that tell of a router's clock, none of them longer than
LONG_NS = 2 * 3600 * 10**9
Held = tuple[str, str | None, dict[str, Any] | None]  # device, queue, figures
OTHER = {"to_callee": "caller", "to_caller": "callee"}
# Figure, the value in it, what it is called, its unit.
COMPARED = (
    ("frame_delivery_ms", "p95", "frame delivery, 95 % below", "ms"),
    ("frame_delay_above_least_ms", "p95", "frame delay above its least, 95 % below", "ms"),
    ("round_trip_ms", "p95", "round trip, 95 % below", "ms"),
    ("loss_percent", None, "media packets lost", "%"),
    ("freezes_per_min", None, "freezes a minute", "1/min"),
    ("frozen_percent", None, "time frozen", "%"),
    ("rate_kbps", None, "rate of the picture", "kbit/s"),
)


@dataclass
class Call:
    """Two ends, or one whose other is missing."""

    caller: End | None
    callee: End | None

    def ends(self) -> list[End]:
        return [end for end in (self.caller, self.callee) if end]


def folders(places: list[Path]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """All data folders at and below these, without following links; each once."""
    seen: set[tuple[int, int]] = set()
    looked = 0
    for place in places:
        if not place.is_dir():
            raise Trouble(f"{place}: no such folder")
        for home, names, _ in os.walk(place):
            looked += 1
            if looked > MOST_FOLDERS:
                raise Trouble(f"{place}: too many folders below it; name only the data folders")
            names.sort()
            if len(Path(home).relative_to(place).parts) >= DEPTH:
                names.clear()
            about = store.read_json(Path(home, store.ABOUT))
            if about is None:
                continue
            names.clear()
            state = os.stat(home)
            if (state.st_dev, state.st_ino) not in seen:
                seen.add((state.st_dev, state.st_ino))
                yield Path(home), about


def load(places: list[Path]) -> tuple[list[dict[str, Any]], list[RouterData], list[End]]:
    """What the folders have: themselves, routers, ends of calls."""
    found: list[dict[str, Any]] = []
    ends: list[End] = []
    of_routers: list[tuple[Path, str, dict[str, Any]]] = []
    for path, about in folders(places):
        role = about.get("role")
        entry: dict[str, Any] = {"folder": path.name, "role": str(role)[:20], "problems": []}
        found.append(entry)
        machine = str(about.get("machine"))[:40]
        if about.get("kind") != "paqm-trial" or about.get("version") != store.FORMAT:
            entry["problems"].append("not the data of a trial, or of another version: left out")
        elif role == "router":
            of_routers.append((path, machine, entry))
        elif role == "call":
            for call in store.calls_of(path):
                end = figures.read_end(call, machine)
                if end is None:
                    entry["problems"].append(f"{call.name}: no packets and no pictures: left out")
                else:
                    ends.append(end)
        else:
            entry["problems"].append("neither a router's nor a caller's: left out")
    routers = []
    spans = [(end.begin, end.end) for end in ends]
    for path, machine, entry in of_routers:
        data = routerdata.read_router(path, machine, spans)
        entry["problems"] = data.problems
        if not data.samples:
            data.problems.append("no samples")
        if data.device in {one.device for one in routers}:
            data.device = f"{data.device} of {path.name[:40]}"
        routers.append(data)
    return found, routers, ends


def pair(ends: list[End]) -> list[Call]:
    """Which ends are of one call."""
    sent_by: dict[int, int] = {}
    for number, end in enumerate(ends):
        sent_by.update(dict.fromkeys(end.sent, number))
    other: dict[int, int] = {}
    for number, end in enumerate(ends):
        hits = Counter(sent_by[stamp] for stamp in end.came if stamp in sent_by)
        hits.pop(number, None)
        if hits:
            best, times = hits.most_common(1)[0]
            if times >= MATCHES and best not in other and number not in other:
                other[number], other[best] = best, number
    calls, done = [], set()
    for number, end in enumerate(ends):
        if number in done:
            continue
        done.add(number)
        mate = ends[other[number]] if number in other else None
        done |= {other[number]} if number in other else set()
        roles = [end.about.get("role"), mate.about.get("role") if mate else None]
        swap = roles[0] == "callee" or roles[0] != "caller" and roles[1] == "caller"
        calls.append(Call(mate, end) if swap else Call(end, mate))
    return sorted(calls, key=lambda call: call.ends()[0].begin)


def _correlation(a: list[float], b: list[float]) -> float:
    n = len(a)
    ma, mb = sum(a) / n, sum(b) / n
    va = sum((x - ma) ** 2 for x in a)
    vb = sum((x - mb) ** 2 for x in b)
    if not va or not vb:
        return 0.0
    return sum((x - ma) * (y - mb) for x, y in zip(a, b, strict=True)) / math.sqrt(va * vb)


def lags_of(data: RouterData, end: End) -> set[int]:
    """By how many seconds the router's clock may be ahead of this end's: the lags at which its
    media look like the traffic of this call."""
    span = range(min(end.seconds) - 10, max(end.seconds) + 11)
    wide = range(span.start - routerdata.LAG_S, span.stop + routerdata.LAG_S)
    if not any(data.media.get(second) for second in wide):
        return set()
    mine = [float(end.seconds.get(second, 0)) for second in span]
    alike = {
        lag: _correlation(mine, [float(data.media.get(second + lag, 0)) for second in span])
        for lag in range(-routerdata.LAG_S, routerdata.LAG_S + 1)
    }
    return {
        lag
        for lag, value in alike.items()
        if value >= routerdata.SAME
        and value >= max(alike.get(lag - 1, 0.0), alike.get(lag + 1, 0.0))
    }


def align_router(data: RouterData, calls: list[Call]) -> None:
    """A router whose clock is wrong by minutes is found out by the calls that crossed it: at the
    right lag each that P-AQM held has its traffic, at another one some call by chance."""
    votes: Counter[int] = Counter()
    voters = 0
    for call in calls:
        end = call.ends()[0]
        if voters < VOTERS and end.end - end.begin < LONG_NS and not end.steps:
            lags = lags_of(data, end)
            votes.update(lags)
            voters += bool(lags)
    if not votes:
        return
    lag = max(votes, key=lambda one: (votes[one], -abs(one)))
    others = [votes[one] for one in votes if abs(one - lag) > 2]
    if abs(lag) > 2 and votes[lag] >= 2 * max(others, default=0):
        data.offset_ns = lag * 10**9
        data.problems.append(f"its clock differs by {lag} s from that of the calls: corrected")


def call_row(call: Call, held: list[Held]) -> dict[str, Any]:
    """What result.json says of a call; `held`: by which routers, under which queue."""
    ends = call.ends()
    base = ends[0]
    problems = [f"{end.label}: {text}" for end in ends for text in end.problems]
    for end in ends:
        problems += [
            f"{end.label}: its clock was set by {by / 1e9:+.1f} s during the call"
            for at, by in end.steps
            if end.begin <= at <= end.end
        ]
    row: dict[str, Any] = {
        "id": "+".join(str(end.about.get("id") or end.folder.name)[:40] for end in ends),
        "day": store.trial_day(base.begin),
        "begin_ns": base.begin,
        "duration_s": round(max(end.end - end.begin for end in ends) / 1e9, 1),
        "ends": [end.label for end in ends],
        "arm": None,
        "router": {},
        "problems": problems,
    }
    for end in ends:
        end.load()
    for name, sender, receiver in (
        ("to_callee", call.caller, call.callee),
        ("to_caller", call.callee, call.caller),
    ):
        row[name] = figures.direction(sender, receiver, problems)
    for end in ends:
        end.drop()
    arms = set()
    for device, arm, found in held:
        if arm is not None:
            arms.add(arm)
            row["router"][device] = {"arm": arm, **(found or {})}
    if arms:
        row["arm"] = arms.pop() if len(arms) == 1 else "mixed"
    if row["arm"] == "mixed":
        problems.append("the queue changed during the call: not compared")
    elif row["arm"] is None:
        problems.append("no router's data of this time: not compared")
    elif row["arm"] == "paqm" and len(ends) > 1 and all(end.deaf for end in ends):
        problems.append("no advice of a router came to either end: paqmctl why there tells why")
    row["problems"] = list(dict.fromkeys(problems))
    return row


def value_of(row: dict[str, Any], way: str, figure: str, key: str | None) -> float | None:
    found = (row.get(way) or {}).get(figure)
    if key is not None:
        found = (found or {}).get(key)
    return store.number(found)


def comparison(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """P-AQM's calls against those of each other queue; by calls, and by days."""
    rows = []
    baselines = sorted({row["arm"] for row in calls} - {"paqm", "mixed", None})
    for baseline in baselines:
        for way in OTHER:
            for figure, key, label, unit in COMPARED:
                values: dict[str, list[float]] = {"paqm": [], baseline: []}
                by_day: dict[str, dict[str, list[float]]] = {"paqm": {}, baseline: {}}
                for row in calls:
                    value = value_of(row, way, figure, key)
                    if row["arm"] in values and value is not None:
                        values[row["arm"]].append(value)
                        by_day[row["arm"]].setdefault(row["day"], []).append(value)
                if not values["paqm"] and not values[baseline]:
                    continue
                means = {
                    arm: [sum(found) / len(found) for found in days.values()]
                    for arm, days in by_day.items()
                }
                of_days = compare.difference(means["paqm"], means[baseline])
                rows.append(
                    {
                        "figure": figure + (f".{key}" if key else ""),
                        "label": label,
                        "unit": unit,
                        "direction": way,
                        "baseline_arm": baseline,
                        **compare.difference(values["paqm"], values[baseline]),
                        "values": values,
                        "by_day": {
                            "paqm_days": len(means["paqm"]),
                            "baseline_days": len(means[baseline]),
                            "interval": of_days["interval"],
                            "verdict": of_days["verdict"].replace("calls", "days"),
                        },
                    }
                )
    return rows


def merge(places: list[Path]) -> dict[str, Any]:
    """All that result.json has."""
    found, routers, ends = load(places)
    if not found:
        raise Trouble(
            "these folders hold no trial data: name those that paqm-trial router and "
            "paqm-trial call have written"
        )
    calls = pair(ends)
    for data in routers:
        align_router(data, calls)
    spans = [(call.ends()[0].begin, call.ends()[0].end) for call in calls]
    held: list[list[Held]] = [[] for _ in calls]
    for data in routers:
        for one, (arm, figures_) in zip(held, routerdata.of_calls(data, spans), strict=True):
            one.append((data.device, arm, figures_))
    rows = [call_row(call, one) for call, one in zip(calls, held, strict=True)]
    return {
        "version": 1,
        "kind": "paqm-trial-report",
        "folders": found,
        "plans": [
            {
                "device": data.device,
                **{
                    key: data.plan.get(key)
                    for key in ("bandwidth", "baseline", "alternate", "seed", "paqm")
                },
            }
            for data in routers
        ],
        "calls": rows,
        "router_days": [day for data in routers for day in routerdata.days(data)],
        "comparison": comparison(rows),
    }


def start(args: Any) -> int:
    """`paqm-trial report`."""
    result = merge(args.folders)
    try:
        args.out.mkdir(parents=True, exist_ok=True)
        text = json.dumps(result, indent=1, allow_nan=False) + "\n"
        (args.out / "result.json").write_text(text)
        (args.out / "report.html").write_text(page.render(result), "utf-8", "replace")
    except OSError as err:
        raise Trouble(
            f"{err.filename}: cannot write: {err.strerror}; choose another --out"
        ) from err
    if args.json:
        print(text, end="")
    problems = sum(len(one["problems"]) for one in result["folders"] + result["calls"])
    counted = Counter(row["arm"] or "no router" for row in result["calls"])
    queues = ", ".join(f"{times} {arm}" for arm, times in counted.items()) or "none"
    say(
        f"{len(result['calls'])} calls ({queues}), {problems} notes on the data; "
        f"{args.out / 'report.html'}"
    )
    return 0
