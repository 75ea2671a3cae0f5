# SPDX-License-Identifier: GPL-2.0
"""Scenario by rival: the same dumbbell, parking lot and GFC-2 for every law and every queue.

Video has the same sender everywhere: it follows advice where a router gives any, and finds its rate
by delay and loss where none does. Constant sources, which only follow, show laws by themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from paqm_lab.catalogue import networks
from paqm_lab.catalogue.networks import Queue
from paqm_lab.catalogue.row import HIGHER, LOWER, Context, Figure, Json, Row, Values
from paqm_lab.laws import cases as laws
from paqm_lab.scenario import rate

JAIN = 0.99
SPEC = "docs/adding.md: what laws are; papers: core/paqm_acp.h, _qlbic.h, _rcp.h, _xcp.h, _vcp.h"
SEARCHING = ("acp", "qlbic", "rcp", "xcp", "vcp")
OWN = ("maxmin", "ecf", "erf")
RATES = (*OWN, *SEARCHING)  # laws, which tell senders
RIVALS = {
    "maxmin": "P-AQM, default law", "ecf": "P-AQM, law ecf", "erf": "P-AQM, law erf",
    "acp": "ACP", "qlbic": "QLBIC", "rcp": "RCP", "xcp": "XCP", "vcp": "VCP",
    "dcbt": "D-CBT", "chips": "D-CBT with ChIPS", "rlqos": "RL-QoS",
    "fq_codel": "fq_codel", "cake": "CAKE", "dualpi2": "dualpi2",
}  # fmt: skip
QUEUES = {
    "dcbt": Queue("dcbt", "dcbt mode dcbt tag 0", shaper=True),
    "chips": Queue("chips", "dcbt mode dcbt chips tag 0", shaper=True),
    "rlqos": Queue("rlqos", "rlqos limit 20", shaper=True),
    "fq_codel": Queue("fq_codel", "fq_codel", shaper=True),
    "cake": Queue("cake", "cake bandwidth {bandwidth} besteffort"),
    "dualpi2": Queue("dualpi2", "dualpi2", shaper=True),
}  # fmt: skip
# Rivals are published with one queue for all, with the buffer of a round trip, and a period of
# about one; ten times the target is where early drops begin.
PLAIN = "noisolate media-target 10ms"
# Of video every router is told how long senders take to follow.
GROUPS = "gop 400ms"


def queue(rival: str, made: Scenario) -> Queue:
    """What stands at every bottleneck."""
    if rival in QUEUES:
        return QUEUES[rival]
    if rival not in SEARCHING:
        return laws.queue(rival, f"{made.told} media-target 10ms" if made.told else "")
    period = f"period {max(100, 1.5 * made.rtt_ms):g}ms"
    words = f"law {rival} {PLAIN} {made.told or period} rtt {made.rtt_ms:g}ms"
    return networks.paqm(rival, words)


def video(name: str, count: int, start: float = 0, **more: Any) -> Json:
    """Video that answers by groups of pictures, from S to K."""
    return laws.video(name, count, start, controller="auto", **more)


def mass() -> Json:
    """Twelve flows join four that have had the link for themselves."""
    starts = [0.01 * n for n in range(4)] + [8 + 0.01 * n for n in range(12)]
    return laws.dumbbell(16, 20, [laws.flow(f"f{n}", start) for n, start in enumerate(starts)])


def dumbbell() -> Json:
    return laws.dumbbell(4, 36, [video("v", 4), video("w", 4, 12, stop=24)])


def tcp() -> Json:
    return laws.dumbbell(8, 36, [video("v", 6), laws.tcp(4, 12)])


def as_video(file: str, divisor: float, seconds: float) -> Json:
    """A network of several routers with video, its links narrower by a factor."""
    data = laws.network(file, seconds)
    for link in data["link"]:
        if "bandwidth" in link:
            link["bandwidth"] = f"{rate(link['bandwidth']) / divisor:.0f}bit"
    for entry in data["flow"]:
        entry.pop("size", None)
        entry |= {"sender": "trace", "controller": "auto", "spread": 1.0,
                  "rate_max": "1200kbit", "rate_min": "60kbit"}
    return data | {"measured_from": 8}


@dataclass(frozen=True)
class Scenario:
    """`rivals`: which take part; `told`: what routers are told; `rtt_ms`: the longest way."""

    id: str
    title: str
    make: Callable[[], Json]
    rivals: tuple[str, ...] = tuple(RIVALS)
    told: str = GROUPS
    rtt_ms: float = 40
    held: tuple[str, ...] = ()  # those of which equal shares are asked


SCENARIOS = (
    Scenario("joins", "constant sources: five join 16 Mbit/s, one each 6 s", laws.joins, RATES, "",
             held=("maxmin", "acp", "qlbic", "rcp")),
    Scenario("mass", "constant sources: twelve join four at once, 16 Mbit/s", mass, RATES, "",
             held=("maxmin", "acp", "qlbic", "rcp")),
    Scenario("lot", "constant sources: parking lot, two long flows over three links, two short "
             "ones on each", partial(laws.network, "parking-lot", 24), RATES, "", 112,
             held=("maxmin", "acp", "rcp")),
    Scenario("dumbbell", "video: four flows on 4 Mbit/s, four more from 12 to 24 s", dumbbell),
    Scenario("tcp", "video and TCP: six flows on 8 Mbit/s, four TCP flows from 12 s on", tcp),
    Scenario("parking", "video: the parking lot with 4 Mbit/s", partial(
        as_video, "parking-lot", 2.5, 24), rtt_ms=112),
    Scenario("gfc2", "video: GFC-2, 22 flows over six bottlenecks of 2.5 to 7.5 Mbit/s", partial(
        as_video, "gfc2", 8, 24), rtt_ms=130),
)  # fmt: skip


def run(made: Scenario, rival: str, ctx: Context, seed: int) -> Values:
    """One replication."""
    hands_out = 96 if rival in OWN else 99 if rival == "acp" else 100
    got = networks.run(ctx, made.make(), queue(rival, made), seed, hands_out)
    found = laws.values(got)
    tcp_flows = got["flows"].get("T")
    return found | {"tcp": tcp_flows and tcp_flows["rate_mbit"] * tcp_flows["count"]}


def figures(made: Scenario, rival: str) -> tuple[Figure, ...]:
    """Equal shares are asked of laws that were published to give them, of constant sources."""
    held = rival in made.held
    return (
        Figure("jain", "least Jain's index between changes", "", low=JAIN if held else None,
               better=HIGHER, why="of rates against shares" if held else ""),
        Figure("settled", "slowest settling after a change", "s", better=LOWER),
        Figure("unsettled", "changes after which it never settles"),
        Figure("changes", "changes"),
        Figure("p95", "queueing delay p95", "ms"),
        Figure("p99", "queueing delay p99", "ms"),
        Figure("max", "longest queueing delay", "ms"),
        Figure("lost", "media packets lost", "%"),
        Figure("least", "least part of a share"),
        Figure("most", "largest part of a share"),
        Figure("use", "use of the links", "%"),
        Figure("tcp", "TCP, all flows", "Mbit/s"),
    )  # fmt: skip


def rows() -> list[Row]:
    """A row for each scenario and rival."""
    return [
        Row(
            f"{made.id}.{rival}", f"{made.title}: {RIVALS[rival]}", made.title,
            figures(made, rival), partial(run, made, rival),
            f"testbed/scenarios/{made.make()['name']}.toml", SPEC, seeds=(1,),
            held=rival in made.held,
        )
        for made in SCENARIOS
        for rival in made.rivals
    ]  # fmt: skip
