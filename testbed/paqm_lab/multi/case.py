# SPDX-License-Identifier: GPL-2.0
"""A run of several routers: its description, and what the logs of it say."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from paqm_lab import lab, packets, senders
from paqm_lab.guest import LEAD, TAIL
from paqm_lab.multi import traceflows
from paqm_lab.multi.shares import HEADER
from paqm_lab.senders import SENDERS
from paqm_lab.topology import Network

F64 = npt.NDArray[np.float64]
Json = dict[str, Any]

BIN = 0.05  # s, of the sink's series
TCP_HEADERS = 40  # bytes, without options
STREAM_PORT, STREAM_SSRC = 7000, 1000  # of the first live stream
TRACE_PORT, MANY = 40000, 256  # of the first trace flow; most flows of an entry
TRACED = ("trace", "levels")  # senders that log their packets
CLASS = 0x10000  # tc's 1:0, of classes of a host's flows
MBIT = 1e6
# The published runs: gains 0.75 and 0.35, measuring time 0.5 s behind an RTT of 0.1 s.
PUBLISHED = "profile fast period 600ms rtt 100ms"


@dataclass(frozen=True)
class Flow:
    """A CBR flow that sends what its host's paqmd allows, one that hears nothing, TCP, video that
    was encoded before (trace), or live video by a sender of senders.py.
    """

    name: str
    source: str
    sink: str
    start: float
    stop: float
    rate: float = 1 * MBIT  # at first, and while no advice is in force
    floor: float = 0.1 * MBIT
    ceiling: float = 30 * MBIT
    size: int = 1000  # bytes of an IP packet
    sender: str = "advised"  # or "deaf", "tcp", "trace", a key of SENDERS
    congestion_control: str = "cubic"
    ipv6: bool = False  # TCP and live video
    poisson: bool = False  # gaps of advised and deaf flows at random, not all alike
    lag: float = 0  # s that an advised flow answers late
    options: tuple[str, ...] = ()  # of trace flows: more words for paqm-streamer
    spread: float = 0  # s, of trace flows: the program itself draws when each but the first starts
    # TCP that transfers one file after the other: smallest and largest size, mean pause between two
    files: tuple[int, ...] = ()
    idle_s: float = 0
    begins_idle: bool = False
    pause: tuple[float, ...] = ()  # from, to: paqm-streamer's live streams
    application: str = "mm"  # of the sender "levels"
    immediate: bool = False  # its receiver answers a loss at once
    dscp: int = 0  # of deaf flows and those with levels
    frame: int = 1  # packets that a deaf flow sends at once
    mss: int = 0  # of TCP; 0: the kernel's
    window: int = 0  # of TCP, in segments; 0: the kernel's
    sack: bool = True  # of TCP, and time stamps
    delack: bool = True  # else TCP acknowledges each segment, as ns-2's sink does

    @property
    def entry(self) -> str:
        """The entry of the scenario: flows of one kind, from one host to another."""
        return self.name.split(".")[0]


@dataclass
class Case:
    """One run in one guest."""

    name: str
    title: str
    words: str  # what the figure shows
    net: Network
    duration: float
    flows: list[Flow] = field(default_factory=list)
    use: str = "erf"  # which value paqmd believes
    uses: dict[str, str] = field(default_factory=dict)  # the same of hosts that differ
    controller: str | None = None  # of paqm-streamer's live streams
    clip: Json = field(default_factory=dict)  # width, height and fps of live streams
    daemons: list[Json] = field(default_factory=list)
    programs: list[Json] = field(default_factory=list)
    actions: list[Json] = field(default_factory=list)
    directories: list[str] = field(default_factory=list)  # that programs expect
    # share(t) of each flow at times, IP level, bit/s; empty: not drawn
    shares: list[tuple[float, dict[str, float]]] = field(default_factory=list)
    marks: list[tuple[float, str]] = field(default_factory=list)
    judge: Callable[[Run, Checks], None] | None = None
    facts: Json = field(default_factory=dict)

    def port(self, flow: Flow) -> int:
        return 6000 + self.flows.index(flow)

    def sink_address(self, flow: Flow) -> str:
        return self.net.address(flow.sink, flow.ipv6)

    def at(self, t: float, host: str, *words: str, save: str = "") -> None:
        """A command at its time."""
        self.actions.append({"t": t, "host": host, "words": list(words), "save": save})

    def program(
        self, name: str, host: str, *words: str, start: float = 0, lasts: bool = False
    ) -> None:
        self.programs.append(
            {"name": name, "host": host, "words": list(words), "start": start, "lasts": lasts}
        )

    def mark(self, t: float, text: str) -> None:
        """Something that happens, for the diagram."""
        self.marks.append((t, text))

    def hosts(self) -> list[str]:
        """Hosts of senders that hear routers."""
        return list(dict.fromkeys(f.source for f in self.flows if f.sender in ("advised", "trace")))

    def entries(self, sender: str) -> dict[str, list[Flow]]:
        """The flows of a sender, by their entries."""
        found: dict[str, list[Flow]] = {}
        for flow in self.flows:
            if flow.sender == sender:
                found.setdefault(flow.entry, []).append(flow)
        return found

    def add_flows(self, tool: Path, build: Path, ladder: Path | None, seed: int) -> None:
        """Daemons, sources and sinks for the flows; `ladder`: what trace flows send."""
        for host in self.hosts():
            self.add_daemon(host, build)
        udp = [flow for flow in self.flows if flow.sender in ("advised", "deaf")]
        for sink in dict.fromkeys(flow.sink for flow in udp):
            ports = ",".join(str(self.port(f)) for f in udp if f.sink == sink)
            words = ["sink", "--ports", ports, "--epoch", "@T0@", "--bin", str(BIN)]
            words += ["--from", str(self.facts.get("from", 0)), "--until", str(self.duration)]
            words += ["--end", str(self.duration + 0.5)]
            self.program(f"sink-{sink}", sink, str(tool), *words)
        for entry, flows in self.entries("tcp").items():
            self._add_tcp(entry, flows)
        traced = {**self.entries("trace"), **self.entries("levels")}
        for number, (entry, flows) in enumerate(traced.items()):
            first, streamer = flows[0], build / "streamer" / "paqm-streamer"
            to = f"{self.net.address(first.sink)}:{TRACE_PORT + 2 * MANY * number}"
            count, seconds = len(flows), first.stop - first.start
            own = (seed + number) % (1 << 32)
            if first.sender == "levels":
                send, receive = traceflows.level_words(
                    streamer, first.application, first.immediate, first.size, first.dscp, to, count,
                    seconds, own,
                )
            else:
                assert ladder is not None
                send, receive = traceflows.words(streamer, ladder, to, count, seconds, own)
                send += ["--rate-max", f"{first.ceiling:.0f}bit"]
                send += ["--rate-min", f"{first.floor:.0f}bit"]
                send += ["--paqmd", f"/run/paqmd-{first.source}.sock"]
            send += ["--spread", f"{first.spread:g}", "--log", f"send-{entry}", *first.options]
            receive += ["--log", f"recv-{entry}"]
            self.program(f"sink-{entry}", first.sink, *receive, start=first.start)
            self.program(f"src-{entry}", first.source, *send, start=first.start + LEAD)
            self.directories += [f"log/{side}-{entry}" for side in ("send", "recv")]
        for flow in udp:
            port = self.port(flow)
            words = ["send", "--to", self.net.address(flow.sink), "--port", str(port)]
            words += ["--sport", str(port + 14000), "--epoch", "@T0@", "--rate", f"{flow.rate:.0f}"]
            words += ["--min", f"{flow.floor:.0f}", "--max", f"{flow.ceiling:.0f}"]
            words += ["--sizes", str(flow.size), "--seed", str(port)]
            words += ["--start", f"{flow.start:.6f}", "--stop", f"{flow.stop:.6f}"]
            if flow.sender == "advised":
                words += ["--paqmd", f"/run/paqmd-{flow.source}.sock"]
                words += ["--log", f"src-{flow.name}.txt", "--lag", f"{flow.lag:g}"]
            words += ["--poisson"] if flow.poisson else []
            words += ["--frame", str(flow.frame)] if flow.frame > 1 else []
            self.program(f"src-{flow.name}", flow.source, str(tool), *words)

    def tc_class(self, flow: Flow) -> int:
        """What a TCP flow is in an htb of its host: the number of its class."""
        mine = [one for one in self.flows if one.sender == "tcp" and one.source == flow.source]
        return CLASS + 1 + mine.index(flow)

    def live(self) -> list[Flow]:
        """The streams of real encoders."""
        return [flow for flow in self.flows if flow.sender in SENDERS]

    def watched(self) -> list[str]:
        """Hosts whose packets are captured: beside live streams, the ends of all TCP, too."""
        flows = [flow for flow in self.flows if flow.sender in SENDERS or flow.sender == "tcp"]
        ends = [host for flow in flows for host in (flow.sink, flow.source)]
        return list(dict.fromkeys(ends)) if self.live() else []

    def streams(self, clip_file: Path, seed: int, home: Path) -> list[Json]:
        """What the guest starts for them."""
        config = {
            "build": lab.BUILD, "clip": self.clip, "clip_file": str(clip_file), "record": False,
            "seed": seed,
            "variant": {"controller": self.controller, "ecn": None, "use": self.use},
        }  # fmt: skip
        flows = [
            {
                "name": flow.name, "sender": flow.sender, "start": flow.start, "stop": flow.stop,
                "host": flow.source, "address": self.net.address(flow.source, flow.ipv6),
                "device": "any", "sink": flow.sink, "to": self.sink_address(flow),
                "port": STREAM_PORT + 2 * number, "ssrc": STREAM_SSRC + number,
                "start_frame": 100 * number, "rate_max": round(flow.ceiling),
                "rate_min": round(flow.floor),
            }
            for number, flow in enumerate(self.live())
        ]  # fmt: skip
        return senders.plans(flows, config, home)

    def _add_tcp(self, entry: str, flows: list[Flow]) -> None:
        """Sources and sinks; programs start by LEAD before their time, which the sink needs only.

        Many flows of an entry are one program.
        """
        if flows[0].files:
            for flow in flows:
                self._add_files(flow)
            return
        first, many = flows[0], len(flows) > 1 or bool(self.facts.get("periods"))
        begin = min(flow.start for flow in flows)
        seconds = first.stop - begin
        bulk = ["python3", "-m", "paqm_lab.bulk", "--port", str(self.port(first))]
        sink = ["--ipv6"] if first.ipv6 else []
        if many:
            sink += ["--flows", str(len(flows)), "--seconds", f"{seconds + LEAD + TAIL:.6f}"]
            starts = ",".join(f"{flow.start - begin:.3f}" for flow in flows)
            bulk += ["--starts", starts]
            bulk += ["--mss", str(first.mss)] if first.mss else []
            bulk += ["--priority", str(self.tc_class(first))] if self.facts.get("access") else []
        if first.window:
            sink += ["--window", str(first.window * first.mss)]
        if self.facts.get("periods"):
            sink += ["--epoch", "@T0@", "--bin", str(BIN)]
        if not first.sack:
            for name in ("sack", "timestamps", "frto"):
                self.at(-1, first.source, "sysctl", "-qw", f"net.ipv4.tcp_{name}=0")
        if not first.delack:
            self._acknowledge_all(first)
        self.program(f"sink-{entry}", first.sink, *bulk[:5], *sink, start=begin)
        bulk += ["--to", self.sink_address(first), "--seconds", f"{seconds:.6f}"]
        bulk += ["--congestion-control", first.congestion_control]
        self.program(f"src-{entry}", first.source, *bulk, start=begin + LEAD)

    def _acknowledge_all(self, flow: Flow) -> None:
        """The sink's host acknowledges each segment as it comes, read or not."""
        back = next(link for link in self.net.links
                    if flow.source in (link.left.host, link.right.host)).subnet
        route = next(route for route in self.net.shortest_routes()
                     if (route.host, route.to) == (flow.sink, back))
        self.at(-1, flow.sink, "ip", "route", "change", back, "via", route.via, "quickack", "1")

    def _add_files(self, flow: Flow) -> None:
        """Source and sink of short transfers; the sink is there until no source can begin one."""
        seconds = flow.stop - flow.start
        bulk = ["python3", "-m", "paqm_lab.bulk", "--port", str(self.port(flow))]
        bulk += ["--files", "-".join(map(str, flow.files))]
        self.program(f"sink-{flow.name}", flow.sink, *bulk, "--seconds", f"{seconds + TAIL:.6f}",
                     start=flow.start)
        bulk += ["--to", self.sink_address(flow), "--seconds", f"{seconds:.6f}"]
        bulk += ["--congestion-control", flow.congestion_control]
        bulk += ["--idle", str(flow.idle_s), "--seed", str(self.port(flow))]
        bulk += ["--begin-idle"] if flow.begins_idle else []
        self.program(f"src-{flow.name}", flow.source, *bulk, start=flow.start + LEAD)

    def add_daemon(self, host: str, build: Path) -> None:
        """paqmd on a host, and what it knows at the end."""
        sockets = [f"/run/paqmd-{host}.sock", f"/run/paqmd-{host}.ctl"]
        use = self.uses.get(host, self.use)
        words = [str(build / "feedback-daemon" / "paqmd"), "--use", use]
        words += ["--socket", sockets[0], "--control", sockets[1]]
        self.daemons.append(
            {"name": f"paqmd-{host}", "host": host, "words": words, "ready": sockets[0]}
        )
        control = str(build / "feedback-daemon" / "paqmctl")
        self.at(
            self.duration - 0.01,
            host,
            *(control, "--control", sockets[1], "show", "--json"),
            save=f"paqmd-{host}.json",
        )

    def add_queue_log(self, host: str, device: str, *times: float) -> None:
        """Statistics of the queue at some times and at the end."""
        for t in (*times, self.duration - 0.005):
            self.at(
                t,
                host,
                *("tc", "-s", "-j", "qdisc", "show", "dev", device, "root"),
                save=f"tc-{host}-{device}-{t:g}.json",
            )

    def config(self, out: Path, modules: Path, seed: int) -> Json:
        """For the guest."""
        return {
            "case": self.name,
            "seed": seed,
            "out": str(out),
            "modules": str(modules),
            "link": None,
            "duration": self.duration,
            "net": self.net.routed().as_list(),
            "directories": self.directories,
            "daemons": self.daemons,
            "programs": self.programs,
            "actions": sorted(self.actions, key=lambda a: a["t"]),
            "captures": self.watched(),
            "pauses": [[f"send-{flow.name}", t] for flow in self.live() for t in flow.pause],
            "streams": [],
        }


class Run:
    """What a run left behind."""

    def __init__(self, case: Case, directory: Path) -> None:
        self.case = case
        self.directory = directory
        self._sinks: dict[str, Json] = {}

    def output(self, program: str) -> Json:
        """The JSON object that a program printed at its end."""
        found: Json = json.loads((self.directory / "log" / f"{program}.log").read_text())
        return found

    def saved(self, name: str) -> Any:
        return json.loads((self.directory / name).read_text())

    def queue(self, host: str, device: str, t: float | None = None) -> Json:
        """Statistics of a queue, at the end or at a time they were taken."""
        when = self.case.duration - 0.005 if t is None else t
        found: Json = self.saved(f"tc-{host}-{device}-{when:g}.json")[0]
        return found

    def port(self, flow: Flow) -> Json:
        """What the sink says of a flow."""
        if flow.sender in SENDERS:
            return self._captured(flow)
        if flow.sender in TRACED:
            return self._traced(flow)
        if flow.sender == "tcp":
            return self._tcp(flow)
        if flow.sink not in self._sinks:
            self._sinks[flow.sink] = self.output(f"sink-{flow.sink}")
        found: Json = self._sinks[flow.sink]["ports"][str(self.case.port(flow))]
        return found

    def _captured(self, flow: Flow) -> Json:
        """The same of a live stream, from the capture at its sink: RTP from its host.

        RTCP is left out: it may be about a stream the other way.
        """
        if flow.name not in self._sinks:
            log = packets.read(self.directory / f"{flow.sink}.pcap")
            source = packets.ip_number(self.case.net.address(flow.source, flow.ipv6))
            mine = log.rtp & ~log.outgoing & (log.src == source)
            t = (log.t_ns[mine] - self.saved("guest.json")["t0_ns"]) / 1e9
            bins = np.floor(t / BIN).astype(np.int64)
            within = (bins >= 0) & (bins < round(self.case.duration / BIN))
            bins, size = bins[within], log.size[mine][within] - packets.ETHER_HEADER
            count = round(self.case.duration / BIN)
            rows = zip(np.bincount(bins, minlength=count).tolist(),
                       np.bincount(bins, size, minlength=count).tolist(), strict=True)
            self._sinks[flow.name] = {"bins": [list(row) for row in rows]}
        return self._sinks[flow.name]

    def _traced(self, flow: Flow) -> Json:
        """The same of a trace flow, from its logs of packets."""
        if flow.name not in self._sinks:
            number = self.case.entries(flow.sender)[flow.entry].index(flow)
            sent, received = (
                self.directory / "log" / f"{side}-{flow.entry}" / f"flow{number:03d}"
                for side in ("send", "recv")
            )
            self._sinks[flow.name] = traceflows.arrivals(
                sent, received, self.saved("guest.json")["t0_ns"] / 1e9, BIN, self.case.duration,
                self.case.facts.get("from", 0),
            )
        return self._sinks[flow.name]

    def _tcp(self, flow: Flow) -> Json:
        """Bins of a TCP flow, where sinks have them: what was delivered, as IP packets."""
        number = self.case.entries("tcp")[flow.entry].index(flow)
        found = self.output(f"sink-{flow.entry}")["bins"][number]
        whole = (flow.mss + TCP_HEADERS) / flow.mss if flow.mss else 1.0
        rows = [[0, count * whole] for count in found]
        rows += [[0, 0]] * (round(self.case.duration / BIN) - len(rows))
        return {"bins": rows}

    def flow(self, name: str) -> Flow:
        return next(f for f in self.case.flows if f.name == name)

    def rate(self, flow: Flow, begin: float, end: float) -> float:
        """Mean rate of arrival, bit/s, IP level."""
        first, last = round(begin / BIN), round(end / BIN)
        taken = sum(b[1] for b in self.port(flow)["bins"][first:last])
        return float(taken * 8 / ((last - first) * BIN))

    def mean_rate(self, flow: Flow, begin: float, end: float) -> float:
        """The same of any flow; of TCP what was delivered in all of its time, bit/s."""
        if flow.sender != "tcp":
            return self.rate(flow, begin, end)
        # Many flows of an entry are one program, files a program each.
        program, number = flow.entry, self.case.entries("tcp")[flow.entry].index(flow)
        if flow.files:
            program, number = flow.name, 0
        taken: int = self.output(f"sink-{program}")["each"][number]
        return taken * 8 / (flow.stop - flow.start)

    def series(self, flow: Flow, window: float) -> tuple[F64, F64]:
        """Ends of a sliding window and the mean rates in it, bit/s."""
        taken = np.array([b[1] for b in self.port(flow)["bins"]], np.float64)
        n = round(window / BIN)
        sums = np.concatenate([[0.0], np.cumsum(taken)])
        rates = (sums[n:] - sums[:-n]) * 8 / window
        return (np.arange(len(rates), dtype=np.float64) + n) * BIN, rates.astype(np.float64)

    def records(self, flow: Flow) -> list[tuple[float, float, int, int, str]]:
        """What paqmd told a source: time, rate, cause, routers, id of the least."""
        found = []
        for line in (self.directory / "log" / f"src-{flow.name}.txt").read_text().splitlines():
            t, _, _, rate, cause, routers, router = line.split()
            found.append((float(t), float(rate), int(cause), int(routers), router))
        return found

    def settled(
        self, shares: dict[str, float], begin: float, end: float, within: float, window: float
    ) -> tuple[float | None, str]:
        """Seconds from @begin until all flows stay within a part of their share to @end.

        From then on the mean of every window, wherever it begins, is within. The name is that of
        the flow which is last; None: at the end some flow was still outside, or there is none.
        """
        worst, name = 0.0, ""
        judged = [flow for flow in self.case.flows if flow.name in shares]
        if not judged:
            return None, ""
        for flow in judged:
            took = settled_s(*self.series(flow, window), shares[flow.name], begin, end, within)
            if took is None:
                return None, flow.name
            if took > worst:
                worst, name = took, flow.name
        return worst, name

    def settled_sum(
        self, shares: dict[str, float], begin: float, end: float, within: float, window: float
    ) -> float | None:
        """The same of the sum of flows against that of their shares."""
        found = [self.series(flow, window) for flow in self.case.flows if flow.name in shares]
        bins = min(len(t) for t, _ in found)  # not all sinks end at the same time
        total = np.sum([rate[:bins] for _, rate in found], axis=0)
        return settled_s(found[0][0][:bins], total, sum(shares.values()), begin, end, within)

    def error(self, shares: dict[str, float], begin: float, end: float) -> tuple[float, str]:
        """Largest deviation of a flow's mean rate from its share, and whose it is."""
        found = {
            flow.name: abs(self.rate(flow, begin, end) / shares[flow.name] - 1)
            for flow in self.case.flows
            if flow.name in shares
        }
        name = max(found, key=lambda n: found[n])
        return found[name], name


def settled_s(
    t: F64, rate: F64, share: float, begin: float, end: float, within: float
) -> float | None:
    """Seconds from @begin until means stay within a part of a share to @end; None: never, or there
    are none until then.

    @t: ends of windows, @rate: means in them; a window ends where the first one does
    """
    if len(t) == 0 or t[-1] < end - 3 * BIN / 2:
        return None
    window = float(t[0])
    t = t - window  # a window's begin
    chosen = (t > begin - BIN / 2) & (t <= end - window + BIN / 2)
    if not chosen.any():
        return None
    bad = chosen & (np.abs(rate / share - 1) > within)
    if not bad.any():
        return 0.0
    good = float(t[bad].max()) + BIN
    return None if good > end - window + BIN / 2 else max(0.0, good - begin)


class Checks:
    """Checks of all cases, in the format of docs/results-format.md."""

    def __init__(self) -> None:
        self.rows: list[Json] = []
        self.figures: dict[str, Json] = {}

    def add(
        self, case: Case, name: str, value: float | None, relation: str, limit: float, unit: str,
        source: str, **more: Any,
    ) -> None:
        good = value is not None and (value <= limit if relation == "<=" else value >= limit)
        shown = None if value is None else round(float(value), 6)
        self.rows.append(
            {
                "variant": case.name,
                "name": name,
                "value": shown,
                "relation": relation,
                "limit": limit,
                "unit": unit,
                "pass": good,
                "source": source,
                **more,
            }
        )

    def figure(self, case: Case, name: str, value: Any) -> None:
        """Something worth knowing that decides nothing."""
        self.figures.setdefault(case.name, {})[name] = (
            round(value, 6) if isinstance(value, float) else value
        )


def ip_share(wire_bps: float, size: int) -> float:
    """A rate as the qdisc counts bytes, on the IP level."""
    return wire_bps * size / (size + HEADER)


def mean(values: Iterable[float]) -> float:
    known = list(values)
    return sum(known) / len(known) if known else 0.0


def paqm(bandwidth: str, law: str, number: int | str, more: str = "") -> str:
    """The qdisc of a router; it may stand for those of all links, as in a scenario's variant."""
    tuning = PUBLISHED if law != "maxmin" else ""
    return (
        f"paqm bandwidth {bandwidth} law {law} feedback icmp router-id {number} "
        f"seed {number} {tuning} {more}"
    )


def queues(run: Run, checks: Checks, which: list[tuple[str, str]]) -> None:
    """Drops, messages and those held back of all queues of a run."""
    found = [run.queue(host, device) for host, device in which]
    dropped = [q["drops"] for q in found]
    checks.figure(run.case, "dropped_packets", sum(dropped))
    checks.figure(run.case, "notices_limited", sum(q["notices_limited"] for q in found))
    checks.figure(run.case, "notices_sent", sum(q["notices_sent"] for q in found))
