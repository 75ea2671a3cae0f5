# SPDX-License-Identifier: GPL-2.0
"""Which packets of a run's log belong to which flow, and what each flow may claim."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from paqm_lab import metrics, packets
from paqm_lab.errors import LabError
from paqm_lab.rundata import Load, Run

Bool = npt.NDArray[np.bool_]

# A TCP connection beside the scenario's elastic flows counts as one from this many bytes on (else
# it is control traffic).
BULK_BYTES = 100_000
LEAST = 1.0  # s; in less time a flow carries nothing that were its rate, or is not silent
# Capital letters: no media flow of a scenario can have such a name.
ELASTIC = "TCP"


def names(load: Load) -> list[str]:
    """Its flows: one each, unless all have one claim."""
    if load.as_one:
        return [load.name]
    return [f"{load.name}-{n}" for n in range(1, load.ports + 1)]


def loads(run: Run, log: packets.PacketLog, seen: packets.Crossings) -> dict[str, Bool]:
    """The packets of each flow: by host, and by the sink's port where a host has several flows."""
    at = seen.index
    found: dict[str, Bool] = {}
    for load in run.loads:
        proto = packets.IPPROTO_TCP if load.kind == "web" else packets.IPPROTO_UDP
        host = (log.src[at] == packets.ip_number(load.address)) & (log.proto[at] == proto)
        if load.as_one:
            found[load.name] = host
            continue
        for n, name in enumerate(names(load)):
            found[name] = host & (log.dport[at] == load.port + n)
    return found


def load_caps(run: Run, members: Mapping[str, Bool], seen: packets.Crossings) -> dict[str, float]:
    """What limits each flow, bit/s as the qdisc counts; of flows that mostly are silent that is
    what was carried of them."""
    limits: dict[str, float] = {}
    for load in run.loads:
        for name in names(load):
            mine = members[name]
            if not mine.any():
                continue
            if load.rate is None:
                left = mine & ~np.isnan(seen.t_out)
                # while it is there, of what is judged: with silence before that its part would be
                # too small, and what is left for the others too large
                since, until = float(seen.t_in[mine][0]), float(seen.t_in[mine][-1])
                since = max(since, run.judge_from or 0.0)
                if until - since < LEAST:
                    since, until = load.start, load.stop
                carried = metrics.mean_rate(seen.t_out[left], seen.size[left], since, until)
                limits[name] = max(carried, 1.0)
                continue
            mean = float(seen.size[mine].mean())
            limits[name] = load.rate * mean / (mean - packets.ETHER_HEADER)
    return limits


@dataclass
class Traffic:
    """The forward packets of one run, each with its flow."""

    log: packets.PacketLog
    seen: packets.Crossings
    media: dict[str, Bool]  # RTP packets of each stream
    bulk: dict[str, Bool]  # packets of each elastic flow
    end: float  # of the log
    loads: dict[str, Bool] = field(default_factory=dict)  # packets of each flow of other loads
    frames: dict[str, metrics.Frames] = field(default_factory=dict)  # of each stream
    changes: list[float] = field(default_factory=list)
    segments: list[metrics.Segment] = field(default_factory=list)
    activity: dict[str, tuple[float, float]] = field(default_factory=dict)

    def any_of(self, groups: dict[str, Bool]) -> Bool:
        """Packets that belong to one of the flows."""
        result = np.zeros(len(self.seen.t_in), bool)
        for members in groups.values():
            result |= members
        return result


def elastic(run: Run, log: packets.PacketLog, seen: packets.Crossings) -> dict[str, Bool]:
    """The packets of each elastic flow: those of the scenario, by port, however little they carried
    (one that starves has a claim, and may begin anew), and other connections that carried much.
    """
    at = seen.index
    web = [packets.ip_number(load.address) for load in run.loads if load.kind == "web"]
    tcp = (log.proto[at] == packets.IPPROTO_TCP) & ~np.isin(log.src[at], web)
    found = [tcp & (log.dport[at] == port) for port in run.tcp]
    tcp &= ~np.isin(log.dport[at], list(run.tcp))
    ends = np.stack([log.src[at], log.sport[at], log.dst[at], log.dport[at]], axis=1)
    for connection in np.unique(ends[tcp], axis=0):
        members = tcp & np.all(ends == connection, axis=1)
        if int(seen.size[members].sum()) >= BULK_BYTES:
            found.append(members)
    some = [members for members in found if members.any()]
    return {f"{ELASTIC}-{n}": members for n, members in enumerate(some, start=1)}


def read_traffic(run: Run) -> Traffic:
    """Pair the packets at the bottleneck and tell the flows apart."""
    path = run.path / "router.pcap"
    if not path.exists():
        raise LabError(
            f"{path} is missing: packet logs are dropped after the analysis unless the scenario "
            "is run with --pcap"
        )
    log = packets.read(path)
    seen = packets.cross(log, packets.bottleneck(log), run.t0_ns)
    at = seen.index
    media = {
        flow.name: log.rtp[at] & (log.src[at] == packets.ip_number(flow.address))
        for flow in run.media
    }
    bulk = elastic(run, log, seen)
    end = float((log.t_ns.max() - run.t0_ns) / 1e9)
    traffic = Traffic(log, seen, media, bulk, end, loads(run, log, seen))
    caps: dict[str, float] = {}
    for flow in run.media:
        members = media[flow.name]
        caps[flow.name] = flow.rate_max
        if members.any():
            mean = float(seen.size[members].mean())
            caps[flow.name] = flow.rate_max * mean / (mean - packets.ETHER_HEADER)
    caps.update(dict.fromkeys(bulk, math.inf))
    caps.update(load_caps(run, traffic.loads, seen))
    claims = {name: members for name, members in traffic.loads.items() if name in caps}
    for name, members in (*media.items(), *bulk.items(), *claims.items()):
        if members.any():
            times = seen.t_in[members]
            traffic.activity[name] = (float(times[0]), float(times[-1]))
    for flow in run.media:
        # one that falls silent, or never says a word, has pictures until its end
        begin, last = traffic.activity.get(flow.name, (flow.start, flow.start))
        traffic.activity[flow.name] = (begin, flow.stop if flow.stop - last > LEAST else last)
    for name, members in bulk.items():
        # between two of its tries a flow that starves has data, too
        begin, last = traffic.activity[name]
        port = int(log.dport[at[members]][0])
        traffic.activity[name] = (begin, max(last, run.tcp_stop.get(port, last)))
    traffic.segments = metrics.segments(traffic.activity, caps, run.bottleneck)
    traffic.changes = sorted(t for span in traffic.activity.values() for t in span)
    return traffic
