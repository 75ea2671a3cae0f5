# SPDX-License-Identifier: GPL-2.0
"""The published networks, made from the scenarios published-*.toml and gfc2.toml, and their queues.

A scenario's file is one point of a published series; the functions here make the others of it.
"""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass
from typing import Any

from paqm_lab import scenario
from paqm_lab.catalogue.row import Context

Json = dict[str, Any]


@dataclass(frozen=True)
class Queue:
    """A queue under test: the words of tc, and which value of a message senders believe."""

    name: str
    qdisc: str
    use: str = "erf"
    shaper: bool = False

    def variant(self) -> Json:
        made = {"name": self.name, "qdisc": self.qdisc, "use": self.use}
        return made | ({"shaper": "htb"} if self.shaper else {})


ROUTER = "paqm bandwidth {bandwidth} feedback icmp router-id {number} seed {number}"


def paqm(name: str, more: str) -> Queue:
    """Default law with more options."""
    return Queue(name, f"{ROUTER} {more}")


def thesis(law: str, more: str) -> Queue:
    """As published, but for the values of a scenario; N* is ten times its outer target (App. C)."""
    target = re.search(r"media-target (\d+)b", more)
    if target and "media-inner-target" not in more:
        more += f" media-inner-target {10 * int(target[1])}b"
    return Queue(f"thesis-{law}", f"{ROUTER} preset thesis-{law} {more}", f"thesis-{law}")


def red(limit: int) -> Queue:
    """Stock RED, adaptive and not gentle, whose mean queue is half of its buffer of bytes."""
    words = f"red limit {limit} min {limit // 4} max {3 * limit // 4} avpkt 1000 "
    words += f"burst {limit // 2000} adaptive bandwidth {{bandwidth}}"
    return Queue("red", words, shaper=True)


def read(file: str) -> Json:
    """A scenario's content, to be changed."""
    return copy.deepcopy(scenario.read(str(scenario.SCENARIOS / f"{file}.toml"))[1])


def run(ctx: Context, data: Json, queue: Queue, seed: int, hands_out: float = 100) -> Json:
    """Figures of a run (multi/figures.py), and the values of what the scenario expects.

    `hands_out`: percent of each link that the law hands out; shares are of that.
    """
    variant = queue.variant() | {"hands_out": hands_out}
    file = f"testbed/scenarios/{data['name']}.toml"
    got = ctx.scenario(file, queue.name, seed, {**data, "variant": [variant]})
    expected = {check["name"]: check["value"] for check in got["checks"]}
    wall_s = got.get("wall_seconds", {}).get(queue.name)
    return {**got["figures"][queue.name], "expected": expected, "wall_s": wall_s}


def delays(data: Json, rtt_ms: float) -> Json:
    """All round trips alike: a quarter at each of a flow's ends, there and back."""
    for link in data["link"]:
        if "bandwidth" in link:
            link.pop("delay_ms", None)
        else:
            link["delay_ms"] = rtt_ms / 4
    return data


def joins(poisson: bool, seconds: float) -> Json:
    """D1: five sources come and, after a minute, go."""
    data = read("published-d") | {"duration": seconds}
    for flow in data["flow"]:
        flow["poisson"] = poisson
        flow["stop"] = min(flow["stop"], seconds)
    return data


def many(sources: int, rtt_ms: float, poisson: bool, seconds: float) -> Json:
    """D2: many sources of one kind, a fifth of them on each host."""
    data = joins(poisson, seconds)
    hop = rtt_ms / 6
    for link in data["link"]:
        link["delay_ms"] = hop
    for flow in data["flow"]:
        flow.pop("start", None)
        flow.pop("stop", None)
        flow |= {"count": sources // 5, "spread": 5}
    return data | {"expect": []}


def video64(seconds: float, published: bool, controller: str = "") -> Json:
    """E2, E3; `published`: with the published sender, else this project's."""
    data = read("published-e") | {"duration": seconds}
    for flow in data["flow"]:
        flow |= {"published": published} | ({"controller": controller} if controller else {})
    return data


def office(video: int, seconds: float) -> Json:
    """E4: 32 long TCP flows, video and web traffic; as much as six flows' share is the web's."""
    data = mixed(40, video, 32, 40, seconds)
    data["web"][0] |= {"per_s": 14, "bytes_min": 10000}
    return data


def constant(rtt_ms: float, seconds: float) -> Json:
    """F1."""
    data = delays(read("published-f1"), rtt_ms)
    return data | {"duration": seconds, "measured_from": seconds / 2}


def mixed(rtt_ms: float, video: int, tcp: int, mbit: int, seconds: float) -> Json:
    """F2, F3, F4; with other web traffic E4."""
    data = delays(read("published-f2"), rtt_ms) | {"duration": seconds}
    data["link"][0]["bandwidth"] = f"{mbit}mbit"
    counts = {"V": video, "T": tcp}
    for flow in data["flow"]:
        flow["count"] = counts[flow["name"]]
    return data


def gfc2_video(seconds: float, tcp_at: float) -> Json:
    """F7, F8: every flow of GFC-2 eight times, as video of up to 1 Mbit/s, and four TCP flows."""
    data = read("gfc2") | {"duration": seconds, "measured_from": 10}
    for flow in data["flow"]:
        flow.pop("size")
        flow |= {"sender": "trace", "count": 8 * flow.get("count", 1), "spread": 5,
                 "rate_max": "1mbit", "rate_min": "100kbit", "published": True}
    for number, (left, right) in {1: ("R1", "K2"), 2: ("R2", "K3"), 4: ("R4", "K5"),
                                  5: ("R5", "K6")}.items():
        data["hosts"].append(f"T{number}")
        data["link"].append({"between": [f"T{number}", left], "delay_ms": 5})
        data["flow"].append({"name": f"T{number}", "from": f"T{number}", "to": right,
                             "sender": "tcp", "start": tcp_at, "congestion_control": "reno"})
    data["expect"] = []
    return data

