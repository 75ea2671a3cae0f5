# SPDX-License-Identifier: GPL-2.0
"""The twelve rows of paqm_lab.headtohead, and who meets in each: a queue with a sender.

A row is not crossed with all systems: each has P-AQM with its streamer, and fq_codel, CAKE and
dualpi2 with the strongest sender for each (the same encoder, which hears their marks); the others
are dealt out, so that each queue and each sender is in two rows or more.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from paqm_lab import suite

Json = dict[str, Any]

MBIT = 1_000_000
SECONDS = 20
JUDGE_FROM = 3  # s; until then senders without advice may search
TCP_AT, TCP_FLOWS = 8, 4
SPREAD = 0.5  # s within which the streams start
PART_OF_SHARE = 0.8  # of a stream's share that its least rate may take at most
MOST_RATE_MIN = 200_000
MOST = 3 * MBIT  # what the clip of 640x360 can use
SMALL = {"width": 320, "height": 180, "fps": 24}  # many streams: not compared with the clip
SMALL_MOST = MBIT
FIFO_S = 0.3
PACKET = 1250  # bytes: queues that are limited in packets
RED_MIN_S, RED_PACKETS = 0.015, 5  # least threshold
PAQM = "paqm"

# The words after `tc qdisc add`, for the rate of the row; {red} and so on stand for sizes of it.
QUEUES = {
    PAQM: "paqm bandwidth {rate} feedback icmp",
    "pfifo": "pfifo limit {fifo}",
    "red": "red limit {red_limit} min {red_min} max {red_max} avpkt 1000 burst {red_burst} "
    "bandwidth {rate} probability 0.1",
    "pie": "pie",
    "fq_codel": "fq_codel",
    "fq_pie": "fq_pie",
    "cake": "cake bandwidth {rate} besteffort",
    "dualpi2": "dualpi2",
    "choke": "choke limit {fifo} min {choke_min} max {choke_max} bandwidth {rate}",
    "sfb": "sfb limit {fifo}",
}
SHAPES = (PAQM, "cake")  # limit the rate by themselves
# Where the link's rate varies nobody is told it: the link itself holds the queue back.
UNTOLD = {PAQM: "paqm bandwidth auto feedback icmp", "cake": "cake besteffort"}
SENDERS: dict[str, Json] = {
    "advice": {"sender": "paqm-streamer"},
    "auto": {"sender": "paqm-streamer"},
    "ecn": {"sender": "paqm-streamer", "ecn": "ect0"},
    "l4s": {"sender": "paqm-streamer", "ecn": "ect1"},
    "fix": {"sender": "paqm-streamer", "controller": "fixed"},
    "tfrc": {"sender": "paqm-streamer", "controller": "tfrc"},
    "gcc": {"sender": "paqm-streamer", "controller": "gcc"},
    "rtc": {"sender": "libwebrtc"},
}
TITLES = {
    "advice": "paqm-streamer, told its rate",
    "auto": "paqm-streamer, its own controller `auto`",
    "ecn": "the same, ECN (ECT(0))",
    "l4s": "the same, ECN for L4S (ECT(1))",
    "fix": "paqm-streamer at its highest rate whatever happens",
    "tfrc": "paqm-streamer, TFRC",
    "gcc": "paqm-streamer, Google congestion control (needs `make gcc-element`)",
    "rtc": "libwebrtc itself (VP8)",
}
ALWAYS = ("fq_codel-ecn", "cake-ecn", "dualpi2-l4s")


@dataclass(frozen=True)
class Row:
    """One comparison."""

    name: str
    title: str
    mbit: float  # of the link; of a link that varies in the mean, nobody uses it
    rtt_ms: int
    streams: int
    more: tuple[str, ...]  # systems besides those that are always there
    tcp: str = ""  # congestion control of the four TCP flows, if there are any
    link: str = ""  # kind of trace that the link follows
    clip: Json = field(default_factory=lambda: dict(suite.CLIP))
    others: Json = field(default_factory=dict)  # senders that listen to nobody

    @property
    def scored(self) -> bool:
        return bool(self.clip["width"] == suite.CLIP["width"])

    @property
    def systems(self) -> tuple[str, ...]:
        return (PAQM, *ALWAYS, *self.more)

    @property
    def share(self) -> float:
        """Of one flow when all are there, bit/s."""
        others = sum(len(entries) for entries in self.others.values())
        flows = self.streams + TCP_FLOWS * bool(self.tcp) + others
        return self.mbit * MBIT / flows

    def qdisc(self, queue: str) -> str:
        """The words of the queue, with all that depends on the rate."""
        rate = self.mbit * MBIT
        least = max(round(RED_MIN_S * rate / 8), RED_PACKETS * PACKET)
        fifo = max(round(FIFO_S * rate / 8 / PACKET), 2 * RED_PACKETS)
        words = UNTOLD.get(queue, QUEUES[queue]) if self.link else QUEUES[queue]
        return words.format(
            rate=f"{round(rate)}bit",
            fifo=fifo,
            red_min=least,
            red_max=3 * least,
            red_limit=max(12 * least, fifo * PACKET),
            red_burst=-(-5 * least // 3000),
            choke_min=max(2, least // PACKET),
            choke_max=3 * max(2, least // PACKET),
        )

    def variant(self, system: str) -> Json:
        """A system as a variant of the scenario."""
        queue, _, sender = system.partition("-")
        made = {"name": system, **SENDERS[sender or "advice"], "qdisc": self.qdisc(queue)}
        if queue not in SHAPES and not self.link:
            made["shaper"] = "htb"
        return made

    def point(self, system: str, seed: int) -> suite.Point:
        """The scenario."""
        dice = random.Random(f"{self.name} {seed}")
        most = MOST if self.scored else SMALL_MOST
        least = min(MOST_RATE_MIN, round(PART_OF_SHARE * self.share))
        media = [
            {"name": f"f{n}", "start": round(dice.uniform(0, SPREAD), 3), "stop": SECONDS,
             "rate_max": f"{most}bit", "rate_min": f"{least}bit"}
            for n in range(1, self.streams + 1)
        ]  # fmt: skip
        unaware = [
            {"start": 0, "stop": SECONDS, "rate_max": f"{most}bit", "rate_min": f"{least}bit"} | one
            for one in self.others.get("media", [])
        ]
        path: Json = {"bottleneck": f"{round(self.mbit * MBIT)}bit", "rtt_ms": self.rtt_ms}
        if self.link:
            path["link"] = self.link
        data: Json = {
            "name": "headtohead",
            "title": self.title,
            "duration": SECONDS,
            "seed": seed,
            "judge_from": JUDGE_FROM,
            "path": path,
            "clip": self.clip,
            "media": media + unaware,
            **{kind: entries for kind, entries in self.others.items() if kind != "media"},
            "variant": [self.variant(system)],
        }
        if self.tcp:
            data["elastic"] = [
                {"name": "tcp", "flows": TCP_FLOWS, "start": TCP_AT, "stop": SECONDS,
                 "congestion_control": self.tcp}
            ]  # fmt: skip
        return suite.Point(self.name, system, seed, data)


def rows() -> dict[str, Row]:
    """All, the cheapest first."""
    flood = {"name": "flood", "start": 5, "stop": SECONDS, "rate": "2mbit"}
    deaf = {"name": "rtc1", "sender": "libwebrtc"}
    found = [
        Row("one", "One stream alone", 2, 20, 1, ("pfifo-fix", "fq_codel-rtc", "fq_codel-gcc")),
        Row("one-tcp", "One stream, four TCP cubic flows", 5, 80, 1,
            ("pie-auto", "pfifo-rtc", "fq_codel-gcc"), tcp="cubic"),
        Row("one-bbr", "One stream, four TCP bbr flows", 10, 20, 1,
            ("fq_pie-auto", "choke-tfrc", "red-fix"), tcp="bbr"),
        Row("steps", "A link that halves for a third of the time, and two streams",
            10 / 3, 80, 2, ("pie-auto", "cake-rtc"), link="steps"),
        Row("leo", "A satellite link and one stream", 8, 80, 1,
            ("red-auto", "fq_pie-auto"), link="leo"),
        Row("wifi", "A Wi-Fi link, one stream, four TCP cubic flows", 7, 20, 1,
            ("pfifo-auto", "sfb-auto"), tcp="cubic", link="wifi"),
        Row("lte", "A cellular link, one stream, four TCP cubic flows", 7, 80, 1,
            ("choke-auto", "fq_codel-tfrc"), tcp="cubic", link="lte"),
        Row("unaware", "Two streams beside libwebrtc, a flood of 2 Mbit/s and four TCP cubic flows",
            8, 80, 2, ("sfb-auto",), tcp="cubic", others={"media": [deaf], "flood": [flood]}),
        Row("cuts", "Four streams alone, a scene cut every 1.5 s", 6, 80, 4, ("cake-gcc",),
            clip={**suite.CLIP, "cut_every": 1.5}),
        Row("far-tcp", "Four streams, four TCP cubic flows, far away", 8, 200, 4,
            ("fq_codel-rtc",), tcp="cubic"),
        Row("fast-bbr", "Four streams, four TCP bbr flows, a fast link", 50, 20, 4, (), tcp="bbr"),
        Row("many-tcp", "Sixteen streams, four TCP cubic flows", 12, 20, 16, ("pie-auto",),
            tcp="cubic", clip=SMALL),
    ]  # fmt: skip
    return {row.name: row for row in found}


def controller(system: str) -> str | None:
    """What sets the rate of a system's streamer, if it is not the streamer's own."""
    name: str | None = SENDERS[system.partition("-")[2] or "advice"].get("controller")
    return name
