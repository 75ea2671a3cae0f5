# SPDX-License-Identifier: GPL-2.0
"""Scenario by law: who comes and goes, what limits flows, and all that a model could not say.

The scenarios are those of the model's study (section 1 and 7 of the control notes), of the thesis
of A. Lie (Paper F: GFC-2) and of the literature (parking lot). Constant sources that answer at once
show the law by itself; pre-encoded video, which answers at its next group of pictures, the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from paqm_lab.catalogue import networks
from paqm_lab.catalogue.networks import Queue
from paqm_lab.catalogue.row import HIGHER, LOWER, Context, Figure, Json, Row, Values
from paqm_lab.multi.case import MBIT, ip_share
from paqm_lab.scenario import rate

SETTLE_S = 2.0  # within 10 % of the share after a change: check X4 of the specification
JAIN = 0.99
NOTES = "control notes"
LAWS = {
    "maxmin": "default law", "erf": "law erf", "ecf": "law ecf",
    "thesis-erf": "preset thesis-erf", "thesis-ecf": "preset thesis-ecf",
}  # fmt: skip


def queue(law: str, more: str = "") -> Queue:
    """What stands at every bottleneck; law erf and ecf with all else as by default."""
    if law.startswith("thesis"):
        return networks.thesis(law.removeprefix("thesis-"), more)
    if law == "ecf":
        return Queue("ecf", f"{networks.ROUTER} law ecf {more}", "ecf")
    return networks.paqm(law, more if law == "maxmin" else f"law {law} {more}")


def hands_out(law: str) -> float:
    """Percent of the link."""
    return 95 if law.startswith("thesis") else 96


def flow(name: str, start: float = 0, **more: Any) -> Json:
    """A constant source from S to K that answers at once."""
    made = {"name": name, "from": "S", "to": "K", "sender": "advised", "start": start}
    return made | {"rate_max": "10mbit"} | more


def video(name: str, count: int, start: float = 0, **more: Any) -> Json:
    """Pre-encoded video from S to K."""
    found = {"count": count, "sender": "trace", "spread": 1.0, "rate_max": "1200kbit"}
    return flow(name, start) | found | {"rate_min": "60kbit"} | more


def tcp(count: int, start: float) -> Json:
    return {"name": "T", "count": count, "from": "T", "to": "L", "sender": "tcp", "start": start}


def dumbbell(mbit: float, seconds: float, flows: list[Json], rtt_ms: float = 40) -> Json:
    data = networks.delays(networks.read("laws"), rtt_ms)
    data["link"][0]["bandwidth"] = f"{mbit:g}mbit"
    return data | {"duration": seconds, "flow": flows}


def joins() -> Json:
    return networks.read("laws")


def leaves() -> Json:
    stops = (8, 14, 20, 26, 32)
    flows = [flow(name, 0.1 * n, stop=stop)
             for n, (name, stop) in enumerate(zip("abcde", stops, strict=True))]
    return dumbbell(16, 32, flows)


def crowd(seconds: float, step: float) -> Json:
    """Sixteen flows, one each `step`."""
    return dumbbell(16, seconds, [flow(f"f{n}", step * n, rate_max="3mbit") for n in range(16)])


def arriving() -> Json:
    """Case S of the model."""
    flows = [flow("a", rate_max="3mbit"), flow("b", 0.2, rate_max="3mbit"),
             flow("c", 10, stop=35, rate_max="3mbit"), tcp(4, 20)]
    return dumbbell(8, 45, flows)


def limited() -> Json:
    return dumbbell(12, 20, [flow("small", count=4, spread=2, rate="200kbit", rate_max="200kbit"),
                             flow("large", count=8, spread=2, rate_max="3mbit")])


def many() -> Json:
    return dumbbell(40, 20, [flow("f", count=64, spread=10, rate_max="3mbit")])


def network(file: str, seconds: float) -> Json:
    """A network of several routers, as its file has it."""
    return networks.read(file) | {"duration": seconds, "expect": []}


def periods() -> Json:
    """The parking lot, whose routers have other periods each."""
    data = network("parking-lot", 14)
    for link, period in zip(data["link"], ("300ms", "700ms", "1500ms"), strict=False):
        link["options"] = f"period {period}"
    return data


def lost() -> Json:
    data = dumbbell(8, 24, [flow(f"f{n}", 0.3 * n, rate_max="4mbit", rate=f"{200 + 250 * n}kbit")
                            for n in range(8)])
    for link in data["link"]:
        if link["between"] == ["S", "R1"]:
            link["messages_lost_percent"] = 30
    return data


def missing() -> Json:
    """Encoders plan with the last group's bits, so they miss what they were told."""
    return dumbbell(4.8, 30, [video("v", 8), video("w", 8, 12)])


def content() -> Json:
    """A share of 3 Mbit/s, of which the clip at its best takes less than two."""
    data = dumbbell(18, 25, [video("v", 3, rate_max="6mbit"),
                             flow("c", count=3, spread=1, rate_max="6mbit")])
    return data | {"measured_from": 5}


def noise() -> Json:
    """Every picture is a group, so senders answer at once, and a window has six pictures."""
    data = dumbbell(19.2, 24, [video(name, 12, start, rate_max="3mbit", published=True,
                                     controller="auto") for name, start in (("v", 0), ("w", 12))])
    return data | {"ladder": {"gop": 1, "fps": 24}}


def groups() -> Json:
    return dumbbell(4.8, 36, [video("v", 8), video("w", 8, 15)]) | {"ladder": {"gop": 30}}


def mixture() -> Json:
    """Half of the hosts believe relative values only."""
    relative = [flow(f"e{n}", 0.5 * n, use="thesis-ecf") | {"from": "U"} for n in range(4)]
    return dumbbell(8, 30, [*relative, *(flow(f"r{n}", 0.25 + 0.5 * n) for n in range(4))])


def far() -> Json:
    return dumbbell(8, 50, [flow("a"), flow("b", 0.5), flow("c", 1), flow("d", 25)], 800)


@dataclass(frozen=True)
class Scenario:
    """`told`: what the routers are told besides, under a law of today."""

    id: str
    title: str
    make: Callable[[], Json]
    told: str = ""
    settle_s: float = SETTLE_S
    model: Mapping[str, float] = field(default_factory=dict)  # what the model has for default law
    held: bool = True  # whether bounds are asked of the default law
    rest: str = ""  # the entry that is judged, by what all others leave to it


GROUP, SECOND = 0.4, 1.0  # s
SIZE = 1000  # bytes of a constant source's packet
SCENARIOS = (
    Scenario("joins", "five flows join 16 Mbit/s, one each 6 s", joins),
    Scenario("leaves", "five flows leave 16 Mbit/s, one each 6 s", leaves),
    Scenario("crowd", "sixteen flows join 16 Mbit/s, one each 0.5 s", partial(crowd, 16, 0.5),
             model={"p99": 2.5}),
    Scenario("burst", "sixteen flows join 16 Mbit/s within 0.15 s", partial(crowd, 12, 0.01)),
    Scenario("tcp", "8 Mbit/s: two flows, a third from 10 to 35 s, four TCP flows from 20 s on",
             arriving, model={"p95": 9.6, "p99": 15, "max": 21}),
    Scenario("limited", "four flows of at most 0.2 Mbit/s and eight that want 3 on 12 Mbit/s",
             limited, model={"p99": 3}),
    Scenario("many", "64 flows join 40 Mbit/s within 10 s", many,
             model={"settled": 0.6, "p99": 0.1}),
    Scenario("gfc2", "GFC-2: 22 flows over six bottlenecks, started within 5 s",
             partial(network, "gfc2", 18), model={"settled": 1.1}),
    Scenario("parking", "parking lot: two long flows over three links, two short ones on each",
             partial(network, "parking-lot", 14)),
    Scenario("miss", "encoders that miss their target: eight video flows, eight more at 12 s, "
             "4.8 Mbit/s", missing, "gop 400ms media-target 10ms", SETTLE_S + GROUP),
    Scenario("content", "content that cannot use its rate: three video flows beside three "
             "constant ones on 18 Mbit/s", content, "gop 400ms media-target 10ms", rest="c"),
    Scenario("lost", "30 % of the messages lost: eight flows join 8 Mbit/s", lost),
    Scenario("noise", "short windows: twelve flows of intra pictures, 24 a second, in bursts, "
             "twelve more at 12 s, 19.2 Mbit/s", noise),
    Scenario("routers", "the parking lot with periods of 0.3, 0.7 and 1.5 s", periods,
             settle_s=SETTLE_S + 1.5),
    Scenario("groups", "senders that answer by groups of 1 s only: eight, eight more at 15 s, "
             "4.8 Mbit/s", groups, "gop 1s media-target 10ms", SETTLE_S + SECOND),
    Scenario("mixture", "four flows that know relative values only, four that know rates, join 8 "
             "Mbit/s", mixture, held=False),
    Scenario("far", "round trip of 800 ms: three flows, a fourth at 25 s, 8 Mbit/s", far,
             "rtt 800ms", SETTLE_S + 4 * 0.8),
)  # fmt: skip


def run(made: Scenario, law: str, ctx: Context, seed: int) -> Values:
    """One replication."""
    more = "" if law.startswith("thesis") else made.told
    data = made.make()
    got = networks.run(ctx, data, queue(law, more), seed, hands_out(law))
    found = values(got)
    if made.rest:
        link = ip_share(rate(data["link"][0]["bandwidth"]), SIZE)
        found |= of_rest(got, made.rest, link * hands_out(law) / 100)
    return found


def of_rest(got: Json, entry: str, handed: float) -> dict[str, float | None]:
    """Shares of an entry's flows in what the others leave of what is handed out, IP bytes, bit/s.

    Whoever cannot use its share has none that it could settle at.
    """
    mine = got["flows"][entry]
    others = sum(of["rate_mbit"] * of["count"] for name, of in got["flows"].items()
                 if name != entry)
    part = mine["rate_mbit"] * mine["count"] / (handed / MBIT - others)
    return {"settled": None, "unsettled": None, "changes": None, "jain": mine["jain"],
            "least": part * mine["equal_least"], "most": part * mine["equal_most"]}


def values(got: Json) -> dict[str, float | None]:
    """The figures of a row from those of a run (multi/figures.py)."""
    changes, queueing, links = got["changes"], got["queueing_ms"], got["links"].values()
    took = [change["settled_s"] for change in changes]
    known = [s for s in took if s is not None]
    dropped = sum(link["dropped_packets"] for link in links)
    passed = max(1.0, sum(link["sent_packets"] for link in links))
    return {
        "settled": max(known) if len(known) == len(took) else None,
        "unsettled": float(len(took) - len(known)), "changes": float(len(took)),
        **{name: queueing[name] for name in ("p95", "p99", "max")},
        "lost": 100 * dropped / (passed + dropped),
        "jain": min(change["jain"] for change in changes),
        "least": min(change["share_least"] for change in changes),
        "most": max(change["share_most"] for change in changes),
        "use": sum(link["use_percent"] for link in links) / len(links),
    }  # fmt: skip


def figures(made: Scenario, law: str) -> tuple[Figure, ...]:
    """Bounds are asked of the default law only."""
    held = made.held and law == "maxmin"
    settles = held and not made.rest

    def model(name: str) -> str:
        return f"model: {made.model[name]:g}" if held and name in made.model else ""

    return (
        Figure("settled", "slowest settling after a change", "s",
               high=made.settle_s if settles else None, better=LOWER, printed=model("settled"),
               why="X4: 2 s, and what senders or messages take" if settles else ""),
        Figure("unsettled", "changes after which it never settles"),
        Figure("changes", "changes"),
        Figure("p95", "queueing delay p95", "ms", printed=model("p95")),
        Figure("p99", "queueing delay p99", "ms", printed=model("p99")),
        Figure("max", "longest queueing delay", "ms", printed=model("max")),
        Figure("lost", "media packets lost", "%"),
        Figure("jain", "least Jain's index between changes", "", low=JAIN if held else None,
               better=HIGHER, why="of rates against shares" if held else ""),
        Figure("least", "least part of a share"),
        Figure("most", "largest part of a share"),
        Figure("use", "use of the links", "%"),
    )  # fmt: skip


def rows() -> list[Row]:
    """A row for each scenario and law."""
    return [
        Row(
            f"{made.id}.{law}", f"{made.title}: {title}", made.title, figures(made, law),
            partial(run, made, law), f"testbed/scenarios/{made.make()['name']}.toml", NOTES,
            seeds=(1,), held=made.held and law == "maxmin",
        )
        for made in SCENARIOS
        for law, title in LAWS.items()
    ]  # fmt: skip
