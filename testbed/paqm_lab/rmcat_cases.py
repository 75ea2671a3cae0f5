# SPDX-License-Identifier: GPL-2.0
"""The test cases of RFC 8867 and RFC 8869 as networks of the lab, and the systems that run them.

Numbers are the RFCs'. Those of section 5 of RFC 8867 and of section 4.1 of RFC 8869 were compared
with the suite for ns-3 by authors of both (cisco/ns3-rmcat), which follows drafts of them; a case
says where it departs. The RFCs leave the limits of a stream open: they are that suite's, 150 kbit/s
and 1.5 Mbit/s.

Every case has the topology of RFC 8867, figure 1: senders S1.. and receivers K1.. at two routers.
Half of the propagation lies on the access link of a sender, half behind the bottleneck's queue: a
router's message does not reach its sender at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from paqm_lab import clip, suite

Json = dict[str, Any]

RATE_MIN, RATE_MAX = 150_000, 1_500_000  # bit/s, IP level
ONE_WAY_MS = 50
DEEP_MS = 300  # the bottleneck's tail-drop queue
FILES = [30_000, 50_000]  # bytes of a short TCP flow (RFC 8868), uniform
IDLE_S = 10  # between two of them, exponential (RFC 8868)
# Between the sizes of the other suites: less to encode than the clip's own, and 1.5 Mbit/s do not
# go beyond what its pictures can use.
PICTURE = {"width": 480, "height": 272, "fps": clip.FPS}
OWN_PICTURE = {"width": clip.WIDTH, "height": clip.HEIGHT, "fps": clip.FPS}

FIFO = f"bfifo limit {{bytes_{DEEP_MS}ms}}"
PAQM = "paqm bandwidth {bandwidth_or_auto} feedback icmp router-id {number}"


@dataclass(frozen=True)
class System:
    """A sender, its controller, and the queue."""

    title: str
    variant: Json
    required: bool = False  # to hold the bounds

    @property
    def picture(self) -> Json:
        return PICTURE if self.variant["sender"] == "paqm-streamer" else OWN_PICTURE


def _rival(title: str, sender: str, controller: str | None = None) -> System:
    more = {"controller": controller} if controller else {}
    return System(title, {"sender": sender, "shaper": "htb", "qdisc": FIFO, **more})


SYSTEMS = {
    "paqm": System(
        "paqm-streamer (auto) over P-AQM",
        {"sender": "paqm-streamer", "controller": "auto", "qdisc": PAQM}, required=True,
    ),
    "auto": _rival("paqm-streamer (auto), tail drop", "paqm-streamer", "auto"),
    "nada": _rival("paqm-streamer (nada), tail drop", "paqm-streamer", "nada"),
    "gcc": _rival("paqm-streamer (gcc), tail drop", "paqm-streamer", "gcc"),
    "libwebrtc": _rival("libwebrtc, tail drop", "libwebrtc"),
}  # fmt: skip


@dataclass(frozen=True)
class Bound:
    """What a figure must be; `why` in a line."""

    figure: str
    relation: str
    limit: float
    unit: str
    why: str


DELAY = Bound("delay_p95_ms", "<=", 100, "ms",
              "with 50 ms of propagation it makes the 150 ms that ITU-T G.114 grants a talk")
LOSS = Bound("loss_percent", "<=", 1, "%", "more is seen even where it is concealed")
SHARE = Bound("share_least_percent", ">=", 80, "%",
              "flows at 80 and 120 % have a Jain index of 0.96")
JAIN = Bound("jain", ">=", 0.95, "", "flows at 80 and 120 % have 0.96")
FALL = Bound("fall_s", "<=", 2, "s", "20 round trips of the path")
RISE = Bound("rise_s", "<=", 10, "s", "half of the shortest time that a capacity lasts")
BESIDE = Bound("share_least_percent", ">=", 50, "%", "not starved: within a factor of two")
TCP = Bound("tcp_share_percent", ">=", 50, "%", "not starved: within a factor of two")
FILE = Bound("file_p95_s", "<=", 10, "s", "longer than that users leave a page")
RESUME = Bound("resume_s", "<=", 10, "s", "half of the pause")


@dataclass(frozen=True)
class Case:
    """A test case."""

    id: str
    rfc: int
    section: str
    title: str
    expects: str  # the RFC's words are others
    network: Json  # without title, clip, seed and variant
    bounds: tuple[Bound, ...]
    systems: tuple[str, ...] = tuple(SYSTEMS)
    notes: str = ""  # where it departs from the RFC, and what of it is not known
    qdisc: dict[str, str] | None = None  # of a system, in place of its own

    def point(self, system: str, seed: int) -> suite.Point:
        """The scenario of a system."""
        of = SYSTEMS[system]
        variant = {"name": system, "title": of.title, **of.variant}
        if self.qdisc and system in self.qdisc:
            variant["qdisc"] = self.qdisc[system]
        data = {
            "name": "rmcat", "title": self.title, "seed": seed, "clip": of.picture,
            **self.network, "variant": [variant],
        }  # fmt: skip
        return suite.Point(self.id, system, seed, data)


def mbit(value: float) -> str:
    return f"{round(value * 1000)}kbit"


def media(
    number: int, start: float, stop: float, forth: bool = True, pause: Sequence[float] = ()
) -> Json:
    """Stream N, from S to K or back."""
    ends = (f"S{number}", f"K{number}") if forth else (f"K{number}", f"S{number}")
    found = {
        "name": f"v{number}" if forth else f"w{number}", "from": ends[0], "to": ends[1],
        "start": start, "stop": stop, "rate_min": f"{RATE_MIN}bit", "rate_max": f"{RATE_MAX}bit",
    }  # fmt: skip
    return found | ({"pause": list(pause)} if pause else {})


def bulk(start: float, stop: float, count: int = 1) -> Json:
    """Long TCP flows; the time of their start is in the name, so that there may be several."""
    return {"name": f"tcp{start:g}", "from": "T", "to": "U", "sender": "tcp", "count": count,
            "start": start, "stop": stop}


def dumbbell(
    duration: float,
    flows: list[Json],
    *,
    steps: Sequence[tuple[float, float]] = (),
    steps_back: Sequence[tuple[float, float]] = (),
    trace: str = "",
    loss_percent: float = 0,
    one_way_ms: Callable[[int], float] = lambda number: ONE_WAY_MS,
    behind_ms: float = ONE_WAY_MS / 2,
) -> Json:
    """Two routers, a pair of hosts for each stream and one for TCP.

    @steps: time and Mbit/s, the first at 0
    @behind_ms: of the propagation, behind the queue
    """
    joint: Json = {"between": ["R1", "R2"], "delay_ms": behind_ms}
    joint |= {"trace": trace} if trace else {"bandwidth": mbit(steps[0][1])}
    if loss_percent:
        joint["loss_percent"] = loss_percent
    if steps_back:
        joint["back"] = mbit(steps_back[0][1])
    numbers = sorted({int(flow["name"][1:]) for flow in flows if flow.get("sender") != "tcp"})
    links, hosts = [joint], []
    for number in numbers:
        hosts += [f"S{number}", f"K{number}"]
        near = {"between": [f"S{number}", "R1"], "delay_ms": one_way_ms(number) - behind_ms}
        links += [near, {"between": ["R2", f"K{number}"]}]
    if any(flow.get("sender") == "tcp" for flow in flows):
        hosts += ["T", "U"]
        links += [{"between": ["T", "R1"], "delay_ms": ONE_WAY_MS - behind_ms},
                  {"between": ["R2", "U"]}]
    changes = [{"at": at, "between": ["R1", "R2"], key: mbit(rate)}
               for key, some in (("bandwidth", steps), ("back", steps_back))
               for at, rate in some[1:]]
    return {"duration": duration, "routers": ["R1", "R2"], "hosts": hosts, "link": links,
            "flow": flows, "change": sorted(changes, key=lambda c: c["at"])}


SAME = "The same as case {}."


def shared(duration: float, stop: float, capacity: float, starts: Sequence[float]) -> Json:
    """Several streams over a link that does not change."""
    flows = [media(number, start, stop) for number, start in enumerate(starts, start=1)]
    return dumbbell(duration, flows, steps=((0, capacity),))


def files(stop: float) -> Json:
    """The ten short TCP flows of RFC 8867, section 5.7."""
    return {"name": "file", "from": "T", "to": "U", "sender": "tcp", "count": 10, "stop": stop,
            "files": FILES, "idle_s": IDLE_S, "at_once": 2}


def lot() -> Json:
    """Three bottlenecks in a row, a stream over all of them and one over each."""
    routers = ["R1", "R2", "R3", "R4"]
    links: list[Json] = [
        {"between": [left, right], "bandwidth": "2mbit", "delay_ms": 10}
        for left, right in zip(routers, routers[1:], strict=False)
    ]
    hosts, flows = [], []
    for number, (near, far, start) in enumerate(
        (("R1", "R4", 0), ("R1", "R2", 10), ("R2", "R3", 20), ("R3", "R4", 30)), start=1
    ):
        hosts += [f"S{number}", f"K{number}"]
        links += [{"between": [f"S{number}", near], "delay_ms": 20},
                  {"between": [far, f"K{number}"]}]
        flows.append(media(number, start, 79))
    return {"duration": 80, "routers": routers, "hosts": hosts, "link": links, "flow": flows}


def wired_then_wifi(flows: list[Json]) -> Json:
    """A wired link of 1 Mbit/s, and a wireless hop behind it that has more."""
    data = dumbbell(80, flows, steps=((0, 1),))
    links = [link | {"between": ["R3" if node == "R2" else node for node in link["between"]]}
             for link in data["link"][1:]]
    hop = {"between": ["R2", "R3"], "trace": "wifi"}
    return data | {"routers": ["R1", "R2", "R3"], "link": [data["link"][0], hop, *links]}


ONE_WAYS = (10, 25, 50, 100, 150)  # ms, of the streams of 5.5
RADIO = (BESIDE, TCP, DELAY, LOSS)
LIVE = ("paqm", "auto", "nada", "gcc")  # those that can pause
MODEL = (
    "The RFC describes a simulated {}; here the link delivers as a seeded model of one does "
    "(testbed/paqm_lab/linktrace.py), and P-AQM measures its rate (`bandwidth auto`)."
)

CASES = (
    Case(
        "5.1", 8867, "5.1", "Variable capacity, one flow",
        "The flow finds the capacity, follows it up and down without lasting oscillation, and "
        "neither builds a queue nor loses packets for long when capacity falls.",
        dumbbell(100, [media(1, 0, 99)], steps=((0, 1), (40, 2.5), (60, 0.6), (80, 1))),
        (SHARE, DELAY, LOSS, FALL, RISE),
    ),
    Case(
        "5.2", 8867, "5.2", "Variable capacity, two flows",
        "As with one flow; in addition both keep equal shares through all changes.",
        dumbbell(125, [media(1, 0, 124), media(2, 0, 124)],
                 steps=((0, 4), (25, 2), (50, 3.5), (75, 1), (100, 2))),
        (SHARE, JAIN, DELAY, LOSS, FALL, RISE),
    ),
    Case(
        "5.3", 8867, "5.3", "Congested feedback link, flows in both directions",
        "Each direction finds its own capacity; reports that are late or lost on the other, full "
        "one must neither hold a flow down nor let it overshoot.",
        dumbbell(100, [media(1, 0, 99), media(1, 0, 99, forth=False)],
                 steps=((0, 2), (20, 1), (40, 0.5), (60, 2)),
                 steps_back=((0, 2), (35, 0.8), (70, 2))),
        (SHARE, DELAY, LOSS, FALL, RISE),
    ),
    Case(
        "5.4", 8867, "5.4", "Competing flows of the same algorithm",
        "Each flow that joins gets its share from those that are there; all converge to a fair "
        "share, none starves, and the queue stays short.",
        dumbbell(120, [media(1, 0, 119), media(2, 20, 119), media(3, 40, 119)], steps=((0, 3.5),)),
        (SHARE, JAIN, DELAY, LOSS),
    ),
    Case(
        "5.5", 8867, "5.5", "Round trip time fairness",
        "Flows of unequal round trips end up at about equal rates.",
        dumbbell(120, [media(n, 10 * (n - 1), 119) for n in range(1, 6)], steps=((0, 4),),
                 one_way_ms=lambda number: ONE_WAYS[number - 1], behind_ms=5),
        (SHARE, JAIN, DELAY, LOSS),
        notes="One way 10, 25, 50, 100 and 150 ms. 120 s in place of 300.",
    ),
    Case(
        "5.6", 8867, "5.6", "Beside a long TCP flow",
        "The flow gets a share of the capacity comparable to TCP's and starves neither itself nor "
        "TCP.",
        dumbbell(120, [bulk(0, 119), media(1, 5, 119)], steps=((0, 2),)),
        (BESIDE, TCP, DELAY, LOSS),
    ),
    Case(
        "5.6-deep", 8867, "5.6", "Beside a long TCP flow, queue of 1000 ms",
        SAME.format("5.6"),
        dumbbell(120, [bulk(0, 119), media(1, 5, 119)], steps=((0, 2),)),
        (BESIDE, TCP, DELAY, LOSS),
        systems=("auto", "nada", "gcc", "libwebrtc"),
        notes="P-AQM has no such queue: its run would be that of case 5.6.",
        qdisc=dict.fromkeys(("auto", "nada", "gcc", "libwebrtc"), "bfifo limit {bytes_1000ms}"),
    ),
    Case(
        "5.7", 8867, "5.7", "Beside short TCP flows",
        "The streams adapt to bursts of short flows and are not starved; the short flows end in "
        "reasonable time.",
        dumbbell(120, [media(1, 5, 119), media(2, 5, 119), files(119)], steps=((0, 2),)),
        (BESIDE, FILE, DELAY, LOSS),
        notes="120 s in place of 300. Shares are those without the short flows.",
    ),
    Case(
        "5.8", 8867, "5.8", "Media pause and resume",
        "What a paused flow leaves is used by the others; when it resumes it gets its share again, "
        "without a queue or losses.",
        dumbbell(120, [media(1, 0, 119), media(2, 0, 119, pause=(40, 60)), media(3, 0, 119)],
                 steps=((0, 3.5),)),
        (SHARE, JAIN, RESUME, DELAY, LOSS),
        systems=LIVE,
        notes="libwebrtc's sender of the lab cannot pause.",
    ),
    Case(
        "6.3", 8867, "6.3", "Multiple bottlenecks",
        "A flow over several bottlenecks gets the share of the tightest and is not starved by "
        "flows over one of them.",
        lot(), (SHARE, JAIN, DELAY, LOSS),
        notes="The RFC proposes the case as a further one; the capacities, three links of "
        "2 Mbit/s, are ours.",
    ),
    Case(
        "C3.1", 8869, "3.1", "Cellular, network load that varies",
        "The flow follows what the cell leaves it as load comes and goes, at low delay and loss.",
        dumbbell(60, [media(1, 0, 59), bulk(10, 50, 2), bulk(20, 40, 4)], trace="lte"), RADIO,
        notes=MODEL.format("cell whose users come and go")
        + " Load: two TCP flows from 10 to 50 s, four more from 20 to 40 s. 60 s.",
    ),
    Case(
        "C3.2", 8869, "3.2", "Cellular, bad radio coverage",
        "Where the radio link is poor the flow keeps going at the little there is.",
        dumbbell(60, [media(1, 0, 59), bulk(5, 59, 6)], trace="lte", loss_percent=0.5), RADIO,
        notes=MODEL.format("user at the edge of a cell")
        + " Half a per cent of the packets is lost on the radio link, and six TCP flows leave a "
        "seventh of it. 60 s.",
    ),
    Case(
        "W4.1a", 8869, "4.1", "Wi-Fi, bottleneck in the wired part",
        "As in a wired network: the wireless hop behind the bottleneck changes nothing.",
        wired_then_wifi([media(1, 0, 79)]), (SHARE, DELAY, LOSS),
        notes="The link of 1 Mbit/s comes first, then a hop that delivers as a model of Wi-Fi "
        "(testbed/paqm_lab/linktrace.py). 80 s in place of 120.",
    ),
    Case(
        "W4.1f", 8869, "4.1", "Wi-Fi, bottleneck in the wired part, with TCP",
        "The flow gives way to TCP and takes its share back.",
        wired_then_wifi([media(1, 0, 79), bulk(30, 55)]), RADIO,
        notes="As W4.1a. TCP from 30 to 55 s in place of 40 to 80.",
    ),
    Case(
        "W4.2", 8869, "4.2", "Wi-Fi, bottleneck in the wireless part",
        "Flows share what the access point gives, fairly and at low delay, with TCP beside them.",
        dumbbell(60, [media(n, 0, 59) for n in range(1, 4)] + [bulk(20, 40)], trace="wifi"),
        (*RADIO, JAIN),
        notes=MODEL.format("access point with 16 to 32 flows")
        + " Three streams, one TCP flow from 20 to 40 s, 60 s.",
    ),
)  # fmt: skip


def known() -> dict[str, Case]:
    return {case.id: case for case in CASES}
