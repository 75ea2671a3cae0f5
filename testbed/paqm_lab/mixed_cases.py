# SPDX-License-Identifier: GPL-2.0
"""The cases of paqm_lab.mixed: scenarios in which some senders follow and others do not listen.

Followers (f1, f2, ...) are paqm-streamer: over paqm they are told their rate, over the other queues
their own controller finds it. Deaf senders (d1, ...) are libwebrtc, which hears no router.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from paqm_lab import suite

Json = dict[str, Any]

QUEUES: dict[str, Json] = {
    "paqm": {"qdisc": "paqm bandwidth {bottleneck} feedback icmp"},
    "fq_codel": {"qdisc": "fq_codel", "shaper": "htb"},
    "cake": {"qdisc": "cake bandwidth {bottleneck} besteffort"},
}
MBIT = 1_000_000
LINK = 8 * MBIT
RATE_MIN = "200kbit"
RTT_MS = 40
SECONDS = 24
TCP_AT = 10
JUDGE_FROM = 4
GRID = (1, 3, 5)  # followers and deaf senders where a user asks for some
WHOLE_GRID = (1, 2, 3, 4, 5)
WHOLE_SEEDS = (1, 2, 3, 4, 5)
# What `make mixed` runs: a part that shows everything once and compares queues with three seeds.
SOME = ("mix-1-1*", "mix-1-3-tcp", "mix-3-1-tcp", "mix-3-3", "deaf-1", "deaf-2", "deaf-3")
SOME_SEEDS = (1, 2, 3)
REST = ("flood-*", "audio-*", "bad-*", "reg-*")
REST_SEEDS = (1,)
TORRENT_LINK = 5 * MBIT  # half of it is less than a follower's maximum
TORRENT_FLOWS = 200
# Links of scenarios without a single follower: Mbit/s, round trip in ms, streams, TCP flows.
DEAF: tuple[tuple[int, int, int, dict[str, int]], ...] = (
    (1, 100, 1, {"cubic": 1}),
    (4, 10, 3, {"bbr": 2}),
    (8, 40, 3, {"cubic": 4}),
    (20, 150, 6, {"bbr": 8}),
    (20, 50, 6, {"cubic": 4}),
    (50, 30, 8, {"bbr": 8, "cubic": 4}),
    (8, 40, 3, {}),
    (8, 40, 6, {}),
)
# Deaf floods among so many flows.
REGIMES = ((1, 1), (1, 4), (2, 6), (4, 4), (4, 8), (8, 8))


@dataclass(frozen=True)
class Case:
    """One scenario; what is demanded of it is decided by its group (paqm_lab.mixed_judge)."""

    name: str
    group: str  # mix, deaf, flood, audio, bad, regime
    title: str
    load: Json  # media, elastic, flood, audio, web, idle
    link: int = LINK
    rtt_ms: float = RTT_MS
    seconds: float = SECONDS
    judge_from: float = JUDGE_FROM
    queues: tuple[str, ...] = ("paqm", "fq_codel", "cake")
    words: str = ""  # more options of paqm
    base: str = ""  # the same case without the misbehaver
    facts: Json = field(default_factory=dict)

    def point(self, queue: str, seed: int, words: str = "") -> suite.Point:
        """The scenario over one queue."""
        variant = {"name": queue, "sender": "paqm-streamer", **QUEUES[queue]}
        more = f"{self.words} {words}".strip()
        if queue == "paqm" and more:
            variant["qdisc"] += f" {more}"
        if not self.load.get("media"):
            variant["sender"] = "none"
        data = {
            "name": "mixed",
            "title": self.title,
            "duration": self.seconds,
            "seed": seed,
            "judge_from": self.judge_from,
            "path": {"bottleneck": f"{self.link}bit", "rtt_ms": self.rtt_ms},
            "clip": suite.CLIP,
            **self.load,
            "variant": [variant],
        }
        return suite.Point(self.name, queue, seed, data)


def stream(name: str, deaf: bool = False, start: float = 0, **more: Any) -> Json:
    """One video stream."""
    found = {
        "name": name,
        "start": start,
        "stop": SECONDS,
        "rate_max": "3mbit",
        "rate_min": RATE_MIN,
        **more,
    }
    return found | ({"sender": "libwebrtc"} if deaf else {})


def followers(count: int, **more: Any) -> list[Json]:
    return [stream(f"f{n}", **more) for n in range(1, count + 1)]


def deaf(count: int, **more: Any) -> list[Json]:
    return [stream(f"d{n}", deaf=True, **more) for n in range(1, count + 1)]


def tcp(flows: int, algorithm: str = "cubic", start: float = TCP_AT) -> Json:
    """Bulk connections."""
    name = "tcp" if algorithm == "cubic" else algorithm
    return {
        "name": name,
        "flows": flows,
        "start": start,
        "stop": SECONDS,
        "congestion_control": algorithm,
    }


def flood(rate: float, **more: Any) -> Json:
    """A load that looks like RTP and heeds nothing."""
    return {"name": "flood", "start": 1, "stop": SECONDS, "rate": f"{rate:.0f}bit", **more}


def mixes(grid: tuple[int, ...], grid_deaf: tuple[int, ...]) -> list[Case]:
    """Followers beside libwebrtc, with and without TCP; a share is never below 1 Mbit/s."""
    cases = []
    for f in grid:
        for d in grid_deaf:
            for flows in (0, 4):
                load: Json = {"media": followers(f) + deaf(d)}
                if flows:
                    load["elastic"] = [tcp(flows)]
                cases.append(
                    Case(
                        name=f"mix-{f}-{d}{'-tcp' if flows else ''}",
                        group="mix",
                        title=f"{f} followers, {d} libwebrtc{', 4 TCP' if flows else ''}",
                        load=load,
                        link=max(LINK, (f + d + flows) * MBIT),
                    )
                )
    return cases


def nobody_listens() -> list[Case]:
    cases = []
    for number, (link, rtt, streams, bulk) in enumerate(DEAF, start=1):
        words = " + ".join(f"{flows} {name}" for name, flows in bulk.items())
        cases.append(
            Case(
                name=f"deaf-{number}",
                group="deaf",
                title=f"{streams} libwebrtc" + (f", {words}" if words else ""),
                load={
                    "media": deaf(streams),
                    "elastic": [tcp(flows, name) for name, flows in bulk.items()],
                },
                link=link * MBIT,
                rtt_ms=rtt,
            )
        )
    return cases


def floods() -> list[Case]:
    return [
        Case(
            name="flood-1",
            group="flood",
            title="a flood of three times the link beside three followers",
            load={"media": followers(3), "flood": [flood(3 * LINK)]},
        ),
        Case(
            name="flood-50",
            group="flood",
            title="fifty floods, in sum three times the link, beside three followers",
            load={"media": followers(3), "flood": [flood(150 * MBIT, count=50)]},
            link=50 * MBIT,
        ),
    ]


def voices() -> list[Case]:
    voice = {"name": "audio", "rate": "40kbit", "start": 0, "stop": SECONDS}
    return [
        Case(
            name="audio-tcp",
            group="audio",
            title="twenty voices of 40 kbit/s and one TCP",
            load={"audio": [{**voice, "flows": 20}], "elastic": [tcp(1, start=2)]},
            link=10 * MBIT,
            judge_from=6,
        ),
        Case(
            name="audio-video",
            group="audio",
            title="ten voices, one follower, four TCP",
            load={
                "media": followers(1),
                "audio": [{**voice, "rate": "64kbit", "flows": 10}],
                "elastic": [tcp(4)],
            },
            link=10 * MBIT,
        ),
    ]


def bad_input() -> list[Case]:
    """Three followers beside one host that misbehaves."""
    fair = LINK / 4
    kinds: dict[str, tuple[str, Json]] = {
        "onoff": (
            "2 s of three times the link, 2 s of 500 kbit/s, and so on",
            flood(3 * LINK, on_ms=2000, off_ms=2000, off_rate="500kbit"),
        ),
        "ports": ("ten source ports a second", flood(3 * LINK, ports_per_s=10)),
        **{
            f"rotate-{name}": (f"ports that live for {life}", flood(3 * LINK, ports_per_s=per_s))
            for name, life, per_s in (
                ("400", "0.4 s", 2.5),
                ("1000", "1 s", 1),
                ("2500", "2.5 s", 0.4),
                ("4500", "4.5 s", 0.222),
            )
        },
        **{
            f"{name}-join": (f"{ports}; a fourth joins", flood(3 * LINK, ports_per_s=per_s))
            for name, ports, per_s in (
                ("rotate", "ports that live for 1 s", 1),
                ("churn", "a hundred source ports a second", 100),
            )
        },
        "ssrc": ("ten SSRCs a second", flood(3 * LINK, ssrc_per_s=10)),
        "hundred": ("a hundred flows of one host", flood(3 * LINK, count=100)),
        "hundred-w": (
            "a hundred flows of one host, hosts being equal",
            flood(3 * LINK, count=100, as_one=True),
        ),
        "hundred-above": (
            "a hundred flows of one host, a fifth above its share, hosts being equal",
            flood(1.2 * fair, count=100, as_one=True),
        ),
        "burst": (
            "bursts of 60 ms at 1.05 of the fair rate",
            flood(1.05 * fair * 1200 / 1214, burst_ms=60),
        ),
        "ect0": ("ECT(0), ignores CE", flood(3 * LINK, ect="ect0")),
        "ect1": ("ECT(1), ignores CE", flood(3 * LINK, ect="ect1")),
    }
    # A hundredth of the link must not be less than followers are able to send.
    least = {"hundred": "50kbit"}
    common: Json = {"group": "bad", "judge_from": 8, "queues": ("paqm",)}
    cases = [
        Case(
            name="bad-none",
            title="three followers alone",
            load={"media": followers(3)},
            **common,
        )
    ]
    for kind, (title, entry) in kinds.items():
        media = followers(3, rate_min=least.get(kind, RATE_MIN))
        if kind.endswith("-join"):
            media.append(stream("f4", start=12))
        cases.append(
            Case(
                name=f"bad-{kind}",
                title=f"three followers beside: {title}",
                load={"media": media, "flood": [entry]},
                base="bad-none",
                words="weights host" if kind.startswith("hundred-") else "",
                facts={"only_delay": True} if kind == "hundred" else {},
                **common,
            )
        )
    cases.append(
        Case(
            name="bad-torrent",
            title=f"one follower beside {TORRENT_FLOWS} TCP of one host, hosts being equal",
            load={"media": followers(1), "elastic": [tcp(TORRENT_FLOWS, start=2)]},
            link=TORRENT_LINK,
            words="weights host",
            facts={"torrent": True},
            **common,
        )
    )
    return cases


def regimes() -> list[Case]:
    """What the closed loop meets: floods in number, short connections, bundles, idle flows."""
    cases = []
    for m, n in REGIMES:
        link = 2 * (m + n) * MBIT
        cases.append(
            Case(
                name=f"reg-{m}-{n}",
                group="regime",
                title=f"{m} floods and {n} followers",
                load={"media": followers(n), "flood": [flood(3 * link, count=m)]},
                link=link,
                queues=("paqm",),
            )
        )
    facts: dict[str, Json] = {
        "web": {"changes": True},
        "chat": {"changes": True},
        "player": {"changes": True},
        "limited": {"limited": [f"f{n}" for n in range(1, 11)]},
    }
    more: list[tuple[str, str, int, Json]] = [
        (
            "web",
            "three followers, fifty short connections a second",
            40,
            {
                "media": followers(3),
                "web": [{"name": "web", "per_s": 50, "start": 1, "stop": SECONDS}],
            },
        ),
        *[
            (
                name,
                f"three followers, {kb} kB {often} over one TCP connection",
                8,
                {
                    "media": followers(3),
                    "web": [
                        {
                            "name": "web",
                            "per_s": per_s,
                            "bytes_min": kb * 1000,
                            "bytes_max": kb * 1000,
                            "lasting": True,
                            "start": 1,
                            "stop": SECONDS,
                        }
                    ],
                },
            )
            for name, kb, per_s, often in (
                ("chat", 20, 3.33, "every 0.3 s"),
                ("player", 500, 0.25, "every 4 s"),
            )
        ],
        (
            "bundle",
            "three followers, a bundle of 25 SSRCs in one flow",
            8,
            {"media": followers(3), "flood": [flood(3 * LINK, ssrcs=25)]},
        ),
        (
            "churn",
            "three followers, a flood of a hundred source ports a second",
            8,
            {"media": followers(3), "flood": [flood(3 * LINK, ports_per_s=100)]},
        ),
        (
            "idle",
            "three followers, 800 flows of three or four packets",
            8,
            {
                "media": followers(3),
                "idle": [{"name": "idle", "flows": 800, "start": 1, "stop": SECONDS - 2}],
            },
        ),
        (
            "limited",
            "ten followers limited to 0.5 Mbit/s, ten more from 10 s on that are not",
            20,
            {
                "media": [
                    *[stream(f"f{n}", rate_max="500kbit") for n in range(1, 11)],
                    *[stream(f"f{n}", start=10) for n in range(11, 21)],
                ]
            },
        ),
        (
            "step",
            "eight followers whose pictures come in the same moment",
            16,
            {"media": followers(8, in_step=True)},
        ),
    ]
    for name, title, link, load in more:
        cases.append(
            Case(
                name=f"reg-{name}",
                group="regime",
                title=title,
                load=load,
                link=link * MBIT,
                queues=("paqm",),
                facts=facts.get(name, {}),
            )
        )
    return cases


def all_cases(
    grid: tuple[int, ...] = WHOLE_GRID, grid_deaf: tuple[int, ...] = WHOLE_GRID
) -> dict[str, Case]:
    """Every case by name."""
    cases = [
        *mixes(grid, grid_deaf),
        *nobody_listens(),
        *floods(),
        *voices(),
        *bad_input(),
        *regimes(),
    ]
    return {case.name: case for case in cases}
