# SPDX-License-Identifier: GPL-2.0
"""Figures of a run of paqm_lab.rmcat from the captures at its hosts, and the verdict on them.

Sizes are what a qdisc counts: the IP packet plus 14 bytes of Ethernet header. A figure that is
about shares leaves out the time after a change in which flows may settle. A change is a step of
capacity, and a stream or a long TCP flow that begins, ends, pauses or resumes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from paqm_lab import linktrace, metrics, packets, stats
from paqm_lab.multi.case import Case as Network
from paqm_lab.multi.case import Flow, Run
from paqm_lab.multi.shares import jain, max_min
from paqm_lab.scenario import rate
from paqm_lab.senders import SENDERS

Json = dict[str, Any]
F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

SETTLE = 5.0  # s after a change that shares leave out: a quarter of the shortest interval
LEAST = 2.0  # s of what is left of an interval that counts
HIGH_MS = 100.0  # a queue is long while its delay is beyond
REACHED = 0.8  # of a share: a flow has risen to it


@dataclass(frozen=True)
class Sent:
    """The packets of a flow: when they left the sender and came to the receiver, s; NaN: never."""

    t: F64
    arrived: F64
    size: I64

    @property
    def came(self) -> npt.NDArray[np.bool_]:
        return ~np.isnan(self.arrived)

    def delay_ms(self) -> F64:
        """Of those that came, beyond the propagation: the fastest waited nowhere."""
        took = (self.arrived - self.t)[self.came] * 1000
        return np.asarray(took - took.min(initial=np.inf), np.float64)

    def mean(self, begin: float, end: float) -> float:
        """Bit/s that arrived."""
        return metrics.mean_rate(self.arrived[self.came], self.size[self.came], begin, end)


@dataclass(frozen=True)
class Part:
    """An interval without change: the share of each flow, bit/s."""

    begin: float
    end: float
    shares: dict[str, float]

    @property
    def judged(self) -> tuple[float, float] | None:
        begin = self.begin + SETTLE
        return (begin, self.end) if self.end - begin >= LEAST else None


def read(run: Run, flow: Flow) -> Sent:
    """A flow from the captures at its two ends."""
    net, t0 = run.case.net, run.saved("guest.json")["t0_ns"]
    source = packets.ip_number(net.address(flow.source))
    target = packets.ip_number(net.address(flow.sink))
    logs = [packets.read(run.directory / f"{host}.pcap") for host in (flow.source, flow.sink)]
    proto = packets.IPPROTO_TCP if flow.sender == "tcp" else packets.IPPROTO_UDP
    kept = []
    for log, outgoing in zip(logs, (True, False), strict=True):
        mine = (log.src == source) & (log.dst == target) & (log.proto == proto)
        mine &= log.outgoing == outgoing
        mine &= log.dport == run.case.port(flow) if flow.sender == "tcp" else log.rtp
        kept.append((log.key[mine], (log.t_ns[mine] - t0) / 1e9, log.size[mine]))
    (keys, t, size), (there, arrived, _) = kept
    order = np.argsort(there, kind="stable")
    place = np.searchsorted(there[order], keys)
    found = place < len(there)
    found[found] = there[order][place[found]] == keys[found]
    came = np.full(len(t), np.nan)
    came[found] = arrived[order][place[found]]
    return Sent(t, came, size)


def capacities(data: Json) -> list[tuple[float, dict[str, float]]]:
    """What each bottleneck carries from which time on, bit/s."""
    now = {}
    for link in data["link"]:
        left, right = link["between"]
        if "bandwidth" in link:
            now[f"{left}-{right}"] = float(rate(link["bandwidth"]))
        if "back" in link:
            now[f"{right}-{left}"] = float(rate(link["back"]))
    steps = [(0.0, dict(now))]
    for change in data.get("change", []):
        if "between" in change:
            left, right = change["between"]
            for key, name in (("bandwidth", f"{left}-{right}"), ("back", f"{right}-{left}")):
                if key in change:
                    now[name] = float(rate(change[key]))
            steps.append((float(change["at"]), dict(now)))
    return steps


def is_long(flow: Flow) -> bool:
    """Whether it always has something to send: its joining is a change."""
    return flow.sender in SENDERS or (flow.sender == "tcp" and not flow.files)


def spans(flow: Flow) -> list[tuple[float, float]]:
    """When it sends."""
    if not flow.pause:
        return [(flow.start, flow.stop)]
    return [(flow.start, flow.pause[0]), (flow.pause[1], flow.stop)]


def carried(trace: I64, begin: float, end: float) -> float:
    """What a link of this trace could have carried in the part of an interval that counts."""
    first = begin + SETTLE if end - begin > SETTLE else begin
    return linktrace.mean(trace[round(first * 1000) : round(end * 1000)])


def parts(net: Network, steps: list[tuple[float, dict[str, float]]], traced: str) -> list[Part]:
    """The run cut at every change; @traced: the bottleneck that has a trace, if one has."""
    flows = [flow for flow in net.flows if is_long(flow)]
    cuts = {t for flow in flows for span in spans(flow) for t in span} | {t for t, _ in steps}
    times = sorted(t for t in cuts if t < net.duration) + [net.duration]
    found = []
    for begin, end in zip(times, times[1:], strict=False):
        capacity = next(some for t, some in reversed(steps) if t <= begin)
        if traced:
            capacity = capacity | {traced: carried(net.facts["trace"], begin, end)}
        active = [f for f in flows if any(a <= begin < b for a, b in spans(f))]
        most = {f.name: f.ceiling for f in active if f.sender != "tcp"}
        ways = {f.name: net.facts["paths"][f.name] for f in active}
        if active:
            found.append(Part(begin, end, max_min(capacity, ways, most)))
    return found


def figures(run: Run, data: Json) -> Json:
    """All figures of a run; None where a case has nothing to say of one."""
    net = run.case
    live = net.live()
    sent = {flow.name: read(run, flow) for flow in net.flows if is_long(flow)}
    steps = capacities(data)
    cut = parts(net, steps, next(
        ("-".join(link["between"]) for link in data["link"] if "trace" in link), ""))
    video = {flow.name: sent[flow.name] for flow in live}
    waits = [flow.delay_ms() for flow in video.values() if flow.came.any()]
    wait = np.concatenate(waits) if waits else np.zeros(0)
    ended = net.duration - metrics.TAIL
    packets_sent = sum(int((flow.t < ended).sum()) for flow in video.values())
    lost = sum(int(((flow.t < ended) & ~flow.came).sum()) for flow in video.values())
    percents = {name: _percents(flow, name, cut) for name, flow in sent.items()}
    of_video = [p for name in video for p in percents[name]]
    groups: dict[str, list[str]] = {}  # TCP flows of a kind are one: none is promised a share
    for name in sent:
        if name not in video:
            groups.setdefault(name.split(".")[0], []).append(name)
    of_tcp = [stats.mean(column) for names in groups.values()
              for column in zip(*(percents[name] for name in names), strict=True)]
    delays = metrics.summary(np.asarray(wait, np.float64))
    return {
        "packets": packets_sent,
        "lost": lost,
        "loss_percent": 100 * lost / packets_sent if packets_sent else None,
        "delay_p50_ms": delays["p50"],
        "delay_p95_ms": delays["p95"],
        "delay_p99_ms": delays["p99"],
        "share_mean_percent": stats.mean(of_video) if of_video else None,
        "share_least_percent": min(of_video, default=None),
        "tcp_share_percent": min(of_tcp, default=None),
        "jain": _jain(video, cut),
        "fall_s": _falls(net, video, steps, cut),
        "rise_s": _rises(net, video, steps, cut),
        "resume_s": _resumes(net, video, cut),
        "file_p95_s": _files(run),
        "rates_mbit": {name: [round(flow.mean(part.begin, part.end) / 1e6, 3) for part in cut]
                       for name, flow in sent.items()},
        "shares_mbit": {name: [round(part.shares.get(name, 0.0) / 1e6, 3) for part in cut]
                        for name in sent},
        "changes_s": [part.begin for part in cut],
    }


def _percents(flow: Sent, name: str, cut: list[Part]) -> list[float]:
    """Of its share, in each interval that counts."""
    return [
        100 * flow.mean(*part.judged) / part.shares[name]
        for part in cut
        if part.judged and name in part.shares
    ]


def _jain(video: dict[str, Sent], cut: list[Part]) -> float | None:
    """The least of the intervals with several streams, each rate taken in parts of its share."""
    found = [
        jain(video[name].mean(*part.judged) / part.shares[name] for name in both)
        for part in cut
        if part.judged and len(both := [name for name in video if name in part.shares]) > 1
    ]
    return min(found, default=None)


def _turns(steps: list[tuple[float, dict[str, float]]], up: bool) -> list[tuple[float, list[str]]]:
    """When which bottlenecks got more, or less."""
    found = []
    for (_, old), (t, new) in zip(steps, steps[1:], strict=False):
        names = [name for name in new if (new[name] > old[name] if up else new[name] < old[name])]
        if names:
            found.append((t, names))
    return found


def _over(net: Network, video: dict[str, Sent], names: list[str]) -> list[str]:
    return [name for name in video if set(net.facts["paths"][name]) & set(names)]


def _falls(
    net: Network, video: dict[str, Sent], steps: list[tuple[float, dict[str, float]]],
    cut: list[Part],
) -> float | None:
    """From a fall of capacity until no packet that leaves later waits beyond HIGH_MS; the worst."""
    worst: float | None = None
    for t, names in _turns(steps, up=False):
        part = next(part for part in cut if part.begin == t)
        for name in _over(net, video, names):
            if name not in part.shares:
                continue
            flow = video[name]
            left = flow.t[flow.came]
            inside = (left >= t) & (left < part.end)
            late = left[inside & (flow.delay_ms() > HIGH_MS)]
            last = late.max(initial=t) if inside.any() else part.end  # silence got over nothing
            worst = max(worst or 0.0, float(last) - t)
    return worst


def _first_reach(flow: Sent, share: float, begin: float, end: float) -> float:
    """Seconds until the rate of a second is at the share; the whole interval if it never is."""
    at = np.arange(begin + metrics.GRID, end, metrics.GRID)
    got = metrics.sliding_rate(flow.arrived[flow.came], flow.size[flow.came], at)
    good = got >= REACHED * share
    return float(at[int(np.argmax(good))] - begin) if good.any() else end - begin


def _rises(
    net: Network, video: dict[str, Sent], steps: list[tuple[float, dict[str, float]]],
    cut: list[Part],
) -> float | None:
    """From a rise of capacity until a stream has what it then may; the slowest."""
    took = []
    for t, names in _turns(steps, up=True):
        part = next(part for part in cut if part.begin == t)
        took += [_first_reach(video[name], part.shares[name], t, part.end)
                 for name in _over(net, video, names) if name in part.shares]
    return max(took, default=None)


def _resumes(net: Network, video: dict[str, Sent], cut: list[Part]) -> float | None:
    """From the end of a pause until the stream has its share again."""
    took = []
    for flow in net.live():
        if flow.pause:
            part = next(part for part in cut if part.begin == flow.pause[1])
            took.append(_first_reach(video[flow.name], part.shares[flow.name], part.begin,
                                     part.end))
    return max(took, default=None)


def _files(run: Run) -> float | None:
    """95th percentile of how long the files of short TCP flows took; one that never came: None."""
    took = []
    for flow in run.case.flows:
        if not flow.files:
            continue
        for begun, _, seconds in run.output(f"src-{flow.name}")["files"]:
            since = begun - run.saved("guest.json")["t0_ns"] / 1e9
            if since < flow.stop - 2 * SETTLE:
                took.append(np.inf if seconds is None else seconds)
    return metrics.summary(np.array(took, np.float64))["p95"] if took else None

