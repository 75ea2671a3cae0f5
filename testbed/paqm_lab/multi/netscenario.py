# SPDX-License-Identifier: GPL-2.0
"""Scenarios with a network of their own: a TOML file (scenarios/network.schema.json) as a Case.

Each variant is a run: its qdisc is the queue of every link with a bandwidth or a trace, from the
first to the second of the nodes that the link is between.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from paqm_lab import clip, lab, ladder, linktrace, scenario
from paqm_lab.errors import LabError
from paqm_lab.guest import LEAD
from paqm_lab.multi import figures, periods
from paqm_lab.multi.case import MBIT, TRACED, Case, Checks, Flow, Run, ip_share
from paqm_lab.multi.shares import jain
from paqm_lab.rundata import ADVISED_SENDER
from paqm_lab.scenario import rate
from paqm_lab.senders import SENDERS
from paqm_lab.topology import Network, htb_class, netem

SCHEMA = scenario.SCENARIOS / "network.schema.json"
UNITS = {"rate_mbit": "Mbit/s", "share_percent": "%", "jain": "", "delay_ms": "ms",
         "settled_s": "s", "reached_s": "s"}
WEB_PORT = 5200
SYNTHETIC = ("advised", "deaf", "tcp", "trace", "levels")  # senders besides real encoders
TIMED = ("delay_ms", "settled_s", "reached_s")  # figures that TCP flows do not have
OF_ITS_TIME = ("delay_ms", "reached_s")  # figures that have a time of their own
# Keys of a flow that only some senders have.
ONLY = {"congestion_control": ["tcp"], "poisson": ["advised", "deaf"], "lag_ms": ["advised"],
        "published": ["trace"], "controller": ["trace"], "size": ["advised", "deaf", "levels"],
        "files": ["tcp"], "pause": [ADVISED_SENDER], "application": ["levels"],
        "immediate": ["levels"],
        "dscp": ["deaf", "levels"], "frame": ["deaf"], "mss": ["tcp"], "window": ["tcp"],
        "sack": ["tcp"], "delack": ["tcp"]}
WITHIN, WINDOW = 0.05, 0.5  # of the share, s: what "settled" means
TRACE_FPS = 30  # of trace flows, as in the published runs
CLIP = {"width": clip.WIDTH, "height": clip.HEIGHT, "fps": clip.FPS}


def describes(data: dict[str, Any]) -> bool:
    """Whether a scenario has a network of its own, not the dumbbell."""
    return "link" in data


@dataclass(frozen=True)
class NetScenario:
    """A checked scenario, as in its file."""

    path: Path
    data: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.data["name"])

    def case(self, variant: dict[str, Any], seed: int) -> Case:
        """The run of a variant."""
        data = self.data
        kind = next((link["trace"] for link in data["link"] if "trace" in link), None)
        trace = linktrace.make(kind, data["duration"], seed) if kind else None
        net, capacity, devices = _network(data, variant, trace)
        case = Case(
            name=variant["name"],
            title=variant.get("title", variant["name"]),
            words=data["title"] + ".",
            net=net,
            duration=float(data["duration"]),
            use=variant.get("use", "erf"),
            controller=variant.get("controller"),
            clip=data.get("clip", CLIP),
            judge=partial(judge, data),
        )
        dice = random.Random(seed)
        for entry in data["flow"]:
            case.flows += _flows(entry, variant, case.duration, dice)
        ways = _ways(net, case.flows)
        size, handed = case.flows[0].size, variant.get("hands_out", 100) / 100
        case.facts = {
            "capacity": {key: handed * ip_share(bits, size) for key, bits in capacity.items()},
            "bits": capacity,
            "hands_out": {key: handed * bits for key, bits in capacity.items()},
            "paths": {name: _bottlenecks(net, way, capacity) for name, way in ways.items()},
            "propagation": {name: _propagation(way, data) for name, way in ways.items()},
            "ladder": {"gop": ladder.GOP, "fps": TRACE_FPS} | data.get("ladder", {}),
            "bottlenecks": [(left, devices[left, right])
                            for left, right in (key.split("-") for key in capacity)],
            "trace": trace,
        }
        ceilings = {flow.name: flow.rate if flow.sender == "deaf" else flow.ceiling
                    for flow in case.flows if flow.sender != "tcp"}
        case.facts["ceilings"] = ceilings
        case.shares = [(0.0, figures.ip_shares(case, case.facts["paths"]))]
        begin = data.get("measured_from", 0)
        case.facts["from"] = begin
        case.facts["access"] = any("access" in link for link in data["link"])
        _mark(case)
        if "periods" in data:
            periods.log(case, data["periods"])
        for entry in data.get("web", []):
            _web(case, entry, seed)
        for entry in data.get("nat", []):
            device = devices[entry["router"], entry["towards"]]
            for rule in ("add table ip t",
                         "add chain ip t post { type nat hook postrouting priority 100 ; }",
                         f'add rule ip t post oifname "{device}" masquerade'):
                case.at(-1, entry["router"], "nft", rule)
        for entry in data.get("program", []):
            case.program(entry["name"], entry["on"], *entry["command"].split(),
                         start=entry.get("start", 0) + LEAD, lasts=entry.get("lasts", False))
        for entry in data.get("change", []):
            for host, words in _commands(entry, data, variant, devices):
                case.at(entry["at"], host, *words)
            if "mark" in entry:
                case.mark(entry["at"], entry["mark"])
        case.uses = {entry["from"]: entry["use"] for entry in data["flow"] if "use" in entry}
        for host, device in case.facts["bottlenecks"]:
            case.add_queue_log(host, device, *([begin] if begin else []))
        return case


def _network(
    data: dict[str, Any], variant: dict[str, Any], trace: linktrace.I64 | None
) -> tuple[Network, dict[str, float], dict[tuple[str, str], str]]:
    """The network, what each bottleneck LEFT-RIGHT carries, and the device towards a neighbour."""
    net = Network(ipv6=data.get("ipv6", False))
    capacity: dict[str, float] = {}
    devices: dict[tuple[str, str], str] = {}
    made = {net.host(name, True) for name in data["routers"]}
    for link in data["link"]:
        left, right = link["between"]
        for name in (left, right):
            if name not in made:
                made.add(net.host(name))
        delay, more = link.get("delay_ms", 0), []
        if "jitter_ms" in link:
            more += [f"{link['jitter_ms']}ms"]
        if "loss_percent" in link:
            more += ["loss", f"{link['loss_percent']}%"]
        if not {"bandwidth", "trace"} & link.keys():
            lost = link.get("messages_lost_percent")
            joint = net.link(left, right, 0 if lost else delay, *more, vlan=link.get("vlan"))
            if "access" in link:
                _access(net, left, joint.device(left), rate(link["access"]), data)
            if lost:
                net.queue(left, joint.device(left), "root", *netem(delay))
                net.spoil(right, joint.device(right), delay, "loss", f"{lost}%")
            devices |= {(left, right): joint.device(left), (right, left): joint.device(right)}
            continue
        traced = "trace" in link
        if traced:
            assert trace is not None
            link = {**link, "bandwidth": f"{linktrace.mean(trace):.0f}bit"}
        shaped = "shaper" in variant
        number = len(capacity) + 1
        bits = capacity[f"{left}-{right}"] = rate(link["bandwidth"])
        back, far = None, f"w{left}{right}"
        if "back" in link:
            bits_back = capacity[f"{right}-{left}"] = rate(link["back"])
            words = queue_of(variant, link["back"], number + 1)
            back, far = (words, bits_back if shaped else None), f"x{left}{right}"
        words = queue_of(variant, link["bandwidth"], number, traced)
        words += f" {link['options']}" if "options" in link else ""
        joint = net.bottleneck(
            left, right, delay, words, *more, shaped=bits if shaped else None, traced=traced,
            back=back,
        )
        devices |= {(left, right): joint.left.device, (right, left): far}
    return net, capacity, devices


def _access(net: Network, host: str, device: str, bits: int, data: dict[str, Any]) -> None:
    """Every TCP flow of a host, and all its other traffic together, has a link of that rate."""
    flows = sum(entry.get("count", 1) for entry in data["flow"]
                if entry.get("sender") == "tcp" and entry["from"] == host)
    words = htb_class(bits)
    net.queue(host, device, "root", "handle", "1:", "htb", "default", f"{flows + 1:x}")
    for number in range(1, flows + 2):
        of_flow = ("parent", "1:", "classid", f"1:{number:x}", *words[4:])
        net.queue(host, device, *of_flow, what="class")


def _mark(case: Case) -> None:
    """Packets of deaf flows get their DSCP as they leave their host."""
    marked = [flow for flow in case.flows if flow.sender == "deaf" and flow.dscp]
    for host in dict.fromkeys(flow.source for flow in marked):
        case.at(-1, host, "nft", "add table ip m")
        case.at(-1, host, "nft", "add chain ip m out { type route hook output priority mangle ; }")
    for flow in marked:
        rule = f"add rule ip m out udp dport {case.port(flow)} ip dscp set {flow.dscp}"
        case.at(-1, flow.source, "nft", rule)


def _web(case: Case, entry: dict[str, Any], seed: int) -> None:
    """Source and sink of short connections; their times and sizes are those of the seed."""
    name, port = entry["name"], str(WEB_PORT + len(case.programs))
    begin, end = entry.get("start", 0), entry.get("stop", case.duration)
    load = f"{lab.BUILD}/lab/load"
    words = ["--port", port, "--epoch", "@T0@", "--from-ns", f"{begin * 1e9:.0f}"]
    send = [load, "web", *words, "--until-ns", f"{end * 1e9:.0f}"]
    send += ["--to", case.net.address(entry["to"])]
    send += ["--seed", str(seed + len(case.programs)), "--per-s", str(entry["per_s"])]
    send += ["--log", f"web-{name}.csv"]
    for option, key in (("low", "bytes_min"), ("high", "bytes_max"), ("pareto", "pareto"),
                        ("algorithm", "congestion_control")):
        send += [f"--{option}", str(entry[key])] if key in entry else []
    receive = [load, "websink", *words, "--until-ns", f"{(end + 1) * 1e9:.0f}"]
    case.program(f"sink-{name}", entry["to"], *receive, start=begin)
    case.program(f"src-{name}", entry["from"], *send, start=begin + LEAD)


def queue_of(
    variant: dict[str, Any], bandwidth: str, number: int, traced: bool = False
) -> str:
    """Words of the qdisc at a link of that bandwidth."""

    def room(match: re.Match[str]) -> str:
        return str(round(rate(bandwidth) * int(match[1]) / 8000))

    words: str = variant["qdisc"].replace("{bandwidth}", bandwidth)
    words = words.replace("{bandwidth_or_auto}", "auto" if traced else bandwidth)
    return re.sub(r"\{bytes_(\d+)ms\}", room, words.replace("{number}", f"{number:x}"))


Commands = list[tuple[str, list[str]]]


def _commands(
    change: dict[str, Any], data: dict[str, Any], variant: dict[str, Any],
    devices: dict[tuple[str, str], str],
) -> Commands:
    """What a change is for tc: host and words."""
    if "command" in change:
        return [(change["on"], change["command"].split())]
    left, right = change["between"]
    found: Commands = []
    numbers = bottleneck_numbers(data)
    for key, host, far in (("bandwidth", left, right), ("back", right, left)):
        if key not in change:
            continue
        device = devices[host, far]
        words = queue_of(variant, change[key], numbers[f"{host}-{far}"]).split()
        place = ["root"]
        if "shaper" in variant:
            shape = htb_class(rate(change[key]))
            found.append((host, ["tc", "class", "change", "dev", device, *shape]))
            place = ["parent", "1:1"]
        found.append((host, ["tc", "qdisc", "change", "dev", device, *place, "handle", "10:",
                             *words]))
    if "delay_ms" in change:
        wire = devices[left, right] if f"{left}-{right}" in numbers else left
        end = devices[right, left] if f"{right}-{left}" in numbers else right
        words = netem(change["delay_ms"])
        for host, device in ((wire, end), (end, wire)):
            name = devices.get((host, device), device)
            found.append((host, ["tc", "qdisc", "change", "dev", name, "root", *words]))
    return found


def bottleneck_numbers(data: dict[str, Any]) -> dict[str, int]:
    """Which bottleneck of the network each is, by the nodes at its ends."""
    found: dict[str, int] = {}
    for link in data["link"]:
        left, right = link["between"]
        if {"bandwidth", "trace"} & link.keys():
            found[f"{left}-{right}"] = len(found) + 1
            if "back" in link:
                found[f"{right}-{left}"] = len(found) + 1
    return found


def _flows(
    entry: dict[str, Any], variant: dict[str, Any], duration: float, dice: random.Random
) -> list[Flow]:
    """The flows of an entry; those of a seed start at the same times in all variants."""
    count, start, spread = entry.get("count", 1), entry.get("start", 0), entry.get("spread", 0)
    traced = sender_of(entry, variant) in TRACED
    options = ["--a-priori", "--burst"] if entry.get("published") else []
    if options and "controller" not in entry:
        options += ["--no-reports"]  # else each is two flows; nothing but advice is needed
    controller = entry.get("controller", "erf:start=1" if options else None)
    options += ["--controller", controller] if controller else []
    return [
        Flow(
            name=entry["name"] if count == 1 else f"{entry['name']}.{number}",
            source=entry["from"],
            sink=entry["to"],
            start=start if traced else round(start + dice.uniform(0, spread), 3),
            stop=float(entry.get("stop", duration)),
            rate=rate(entry.get("rate", "1mbit")),
            floor=rate(entry.get("rate_min", "100kbit")),
            ceiling=rate(entry.get("rate_max", "30mbit")),
            size=entry.get("size", 1000),
            sender=sender_of(entry, variant),
            congestion_control=entry.get("congestion_control", "cubic"),
            ipv6=entry.get("ipv6", False),
            poisson=entry.get("poisson", False),
            lag=entry.get("lag_ms", 0) / 1000,
            options=tuple(options),
            spread=spread,
            files=tuple(entry["files"]) if "files" in entry else (),
            idle_s=entry.get("idle_s", 0),
            begins_idle=number > entry.get("at_once", count),
            pause=tuple(entry.get("pause", ())),
            application=entry.get("application", "mm"),
            immediate=entry.get("immediate", False),
            dscp=entry.get("dscp", 0),
            frame=entry.get("frame", 1),
            mss=entry.get("mss", 0),
            window=entry.get("window", 0),
            sack=entry.get("sack", True),
            delack=entry.get("delack", True),
        )
        for number in range(1, count + 1)
    ]


def _ways(net: Network, flows: list[Flow]) -> dict[str, list[str]]:
    """The nodes that each flow passes, as the routes have it, source and sink too."""
    routes = {(route.host, route.to): route.via for route in net.shortest_routes()}
    owner = {link.address(end.host): end.host
             for link in net.links for end in (link.left, link.right)}
    ways = {}
    for flow in flows:
        target = next(link for link in net.links if flow.sink in (link.left.host, link.right.host))
        way = [flow.source]
        while way[-1] not in (target.left.host, target.right.host):
            way.append(owner[routes[way[-1], target.subnet]])
        ways[flow.name] = [*way, flow.sink]
    return ways


def _bottlenecks(net: Network, way: list[str], capacity: dict[str, float]) -> list[str]:
    """The bottlenecks on a way."""
    begins = {}
    names = [host.name for host in net.hosts]
    for key in capacity:
        left, right = key.split("-")
        wire = f"w{left}{right}" if f"w{left}{right}" in names else f"x{right}{left}"
        begins[left, wire] = key
    return [begins[pair] for pair in pairwise(way) if pair in begins]


def _propagation(way: list[str], data: dict[str, Any]) -> float:
    """What a way takes by itself at first, s."""
    delays = {frozenset(link["between"]): link.get("delay_ms", 0) for link in data["link"]}
    named = [node for node in way if node in (*data["routers"], *data["hosts"])]
    return float(sum(delays[frozenset(pair)] for pair in pairwise(named))) / 1000


def judge(data: dict[str, Any], run: Run, checks: Checks) -> None:
    """What the scenario expects of the worst flow of each entry; and all figures."""
    case = run.case
    checks.figures[case.name] = figures.all_of(run)
    for entry in data.get("expect", []):
        if entry.get("variant", case.name) != case.name:
            continue
        name, figure = entry["flow"], entry["figure"]
        flows = [flow for flow in case.flows if flow.name.split(".")[0] == name]
        begin, end = entry.get("from", 0.0), entry.get("until", case.duration)
        least = "at_least" in entry
        values = FIGURES[figure](run, flows, begin, end)
        known = [value for value in values if value is not None]
        worst = (min if least else max)(known) if len(known) == len(values) else None
        more = {"published": entry["published"]} if "published" in entry else {}
        checks.add(
            case, f"{name}_{figure}", worst, ">=" if least else "<=",
            entry["at_least" if least else "at_most"], UNITS[figure],
            f"log/sink-*.log, *.pcap: worst flow, {_when(case, figure, flows, begin, end)}", **more,
        )


def _when(case: Case, figure: str, flows: list[Flow], begin: float, end: float) -> str:
    """What a figure is of."""
    if figure == "reached_s":
        return "from its start"
    if flows[0].sender == "tcp":
        return "all of its time"
    return f"{case.facts['from'] if figure == 'delay_ms' else begin:g} to {end:g} s"


Values = list[float | None]


def _rates(run: Run, flows: list[Flow], begin: float, end: float) -> list[float]:
    return [run.mean_rate(flow, begin, end) for flow in flows]


def _rate(run: Run, flows: list[Flow], begin: float, end: float) -> Values:
    return [bits / MBIT for bits in _rates(run, flows, begin, end)]


def _share(run: Run, flows: list[Flow], begin: float, end: float) -> Values:
    shares = run.case.shares[0][1]
    rates = _rates(run, flows, begin, end)
    return [100 * bits / shares[flow.name] for flow, bits in zip(flows, rates, strict=True)]


def _jain(run: Run, flows: list[Flow], begin: float, end: float) -> Values:
    return [jain(_rates(run, flows, begin, end))]


def _delay(run: Run, flows: list[Flow], begin: float, end: float) -> Values:
    ports = [run.port(flow) for flow in flows]
    return [port["wait_mean_us"] / 1000 if port["window_packets"] else None for port in ports]


def _settled(run: Run, flows: list[Flow], begin: float, end: float) -> Values:
    shares = {flow.name: run.case.shares[0][1][flow.name] for flow in flows}
    return [run.settled(shares, begin, end, figures.WITHIN, WINDOW)[0]]


def _reached(run: Run, flows: list[Flow], begin: float, end: float) -> Values:
    return [figures.reached_s(run, flow) for flow in flows]


FIGURES: dict[str, Callable[[Run, list[Flow], float, float], Values]] = {
    "rate_mbit": _rate, "share_percent": _share, "jain": _jain, "delay_ms": _delay,
    "settled_s": _settled, "reached_s": _reached,
}


def check(path: Path, data: dict[str, Any]) -> NetScenario:
    """The scenario of this content, if it is one; `path` names it in what is refused."""
    scenario.validate(path, data, SCHEMA)
    nodes = [*data["routers"], *data["hosts"]]
    _check_times(path, data)
    _different(path, "routers, hosts", nodes)
    _different(path, "flow, web", [entry["name"] for key in ("flow", "web")
                                   for entry in data.get(key, [])])
    _different(path, "program", [entry["name"] for entry in data.get("program", [])])
    _different(path, "variant", [variant["name"] for variant in data["variant"]])

    if any("bandwidth" in link for link in data["link"]):
        for number, variant in enumerate(data["variant"], start=1):
            scenario.check_limit(f"{path}: variant[{number}]", variant)

    def known(where: str, name: str, among: list[str]) -> None:
        if name not in among:
            raise LabError(f'{path}: {where}: "{name}" is unknown; expected one of '
                           f"{', '.join(among)}")

    for number, link in enumerate(data["link"], start=1):
        for node in link["between"]:
            known(f"link[{number}].between", node, nodes)
        if len(kinds := [key for key in ("bandwidth", "trace", "vlan") if key in link]) > 1:
            raise LabError(f"{path}: link[{number}]: expected {' or '.join(kinds)}, not both")
        if "access" in link and {"bandwidth", "trace", "delay_ms", "vlan"} & link.keys():
            raise LabError(f"{path}: link[{number}].access: expected nothing else of that link")
        if "jitter_ms" in link and link["jitter_ms"] > link.get("delay_ms", 0):
            raise LabError(f"{path}: link[{number}].jitter_ms: expected at most delay_ms")
        if not link.get("delay_ms") and "loss_percent" in link:
            raise LabError(f"{path}: link[{number}].loss_percent needs delay_ms")
    if sum("trace" in link for link in data["link"]) > 1:
        raise LabError(f"{path}: link: expected one with a trace, there are more")
    joined = {node for link in data["link"] for node in link["between"]}
    for node in nodes:
        if node not in joined:
            raise LabError(f'{path}: link: expected one that joins "{node}" to the others')
    reached, following = set(), {nodes[0]}
    while following:
        reached |= following
        following = {node for link in data["link"] if reached & set(link["between"])
                     for node in link["between"]} - reached
    for node in nodes:
        if node not in reached:
            raise LabError(f'{path}: link: expected a way from "{nodes[0]}" to "{node}"')
    neighbours = {pair for link in data["link"]
                  for pair in (tuple(link["between"]), tuple(reversed(link["between"])))}
    for number, entry in enumerate(data.get("nat", []), start=1):
        known(f"nat[{number}].router", entry["router"], data["routers"])
        known(f"nat[{number}].towards", entry["towards"],
              sorted(b for a, b in neighbours if a == entry["router"]))
    _check_changes(path, data, nodes)
    for number, entry in enumerate(data.get("program", []), start=1):
        known(f"program[{number}].on", entry["on"], nodes)
    for number, flow in enumerate(data["flow"], start=1):
        for key in ("from", "to"):
            known(f"flow[{number}].{key}", flow[key], data["hosts"])
        last = flow.get("start", 0) + flow.get("spread", 0)
        if not last < flow.get("stop", data["duration"]) <= data["duration"]:
            raise LabError(f"{path}: flow[{number}]: expected start + spread < stop <= duration")
        for variant in data["variant"]:
            if "sender" not in flow | variant:
                raise LabError(f"{path}: flow[{number}].sender is missing, and the variant "
                               f'"{variant["name"]}" has none either')
            sender = sender_of(flow, variant)
            known(f"flow[{number}].sender", sender, [*SYNTHETIC, *SENDERS])
            for key, able in ONLY.items():
                if key in flow and sender not in able:
                    raise LabError(f"{path}: flow[{number}].{key} needs the sender "
                                   f"{' or '.join(able)}")
        if _live(flow, data):
            others = [one for one in data["flow"] if _live(one, data)
                      and (one["from"], one["to"]) == (flow["from"], flow["to"])]
            if len(others) > 1 or flow.get("count", 1) > 1:
                raise LabError(f"{path}: flow[{number}]: expected one live stream from a host to "
                               "another, there are more")
        sender = flow.get("sender", data["variant"][0].get("sender"))
        if flow.get("ipv6") and (not data.get("ipv6") or sender in SYNTHETIC and sender != "tcp"):
            raise LabError(f"{path}: flow[{number}].ipv6 needs ipv6 of the whole network, and TCP "
                           "or live video")
        if "pause" in flow:
            begin, end = flow["pause"]
            if not flow.get("start", 0) < begin < end < flow.get("stop", data["duration"]):
                raise LabError(f"{path}: flow[{number}].pause: expected start < from < to < stop")
        if "files" in flow and flow["files"][0] > flow["files"][1]:
            raise LabError(f"{path}: flow[{number}].files: expected the smallest size, the largest")
    for number, entry in enumerate(data.get("web", []), start=1):
        for key in ("from", "to"):
            known(f"web[{number}].{key}", entry[key], data["hosts"])
        if not entry.get("start", 0) < entry.get("stop", data["duration"]) <= data["duration"]:
            raise LabError(f"{path}: web[{number}]: expected start < stop <= duration")
        if entry.get("bytes_max", 60000) < entry.get("bytes_min", 30000):
            raise LabError(f"{path}: web[{number}].bytes_max: expected at least bytes_min")
    senders = {flow["name"]: flow.get("sender", data["variant"][0].get("sender"))
               for flow in data["flow"]}
    for number, entry in enumerate(data.get("expect", []), start=1):
        known(f"expect[{number}].flow", entry["flow"], list(senders))
        if "variant" in entry:
            known(f"expect[{number}].variant", entry["variant"],
                  [variant["name"] for variant in data["variant"]])
        begin, end = entry.get("from", 0), entry.get("until", data["duration"])
        if not begin < end <= data["duration"]:
            raise LabError(f"{path}: expect[{number}]: expected from < until <= duration, it has "
                           f"from {begin:g}, until {end:g}, duration {data['duration']:g}")
        if {"from", "until"} & entry.keys() and entry["figure"] in OF_ITS_TIME:
            raise LabError(f"{path}: expect[{number}]: {entry['figure']} takes no from and until: "
                           "delay_ms is from measured_from on, reached_s from the flow's start")
        if senders[entry["flow"]] in SENDERS and entry["figure"] == "delay_ms":
            raise LabError(f"{path}: expect[{number}].figure: of live streams there are the others")
        timed = {"from", "until"} & entry.keys() or entry["figure"] in TIMED
        if senders[entry["flow"]] == "tcp" and timed:
            raise LabError(f"{path}: expect[{number}]: of TCP there are rate_mbit, share_percent "
                           "and jain, over all of its time")
    return NetScenario(path, data)


def sender_of(flow: dict[str, Any], variant: dict[str, Any]) -> str:
    """What sends a flow: its own sender, or that of the variant."""
    return str(flow.get("sender", variant.get("sender")))


def _live(flow: dict[str, Any], data: dict[str, Any]) -> bool:
    """Whether it is live video in any variant."""
    return any(sender_of(flow, variant) in SENDERS for variant in data["variant"])


def _check_times(path: Path, data: dict[str, Any]) -> None:
    """What would be after the end is refused: it would never be."""
    times = [("measured_from", data.get("measured_from", 0))]
    times += [(f"{key}[{number}].{name}", entry[name])
              for key, name in (("change", "at"), ("program", "start"))
              for number, entry in enumerate(data.get(key, []), start=1) if name in entry]
    for where, t in times:
        if t >= data["duration"]:
            raise LabError(f"{path}: {where}: expected less than the duration, it is {t:g} of "
                           f"{data['duration']:g}")
    for number, (begin, end) in enumerate(data.get("periods", []), start=1):
        if not begin < end <= data["duration"]:
            raise LabError(f"{path}: periods[{number}]: expected begin < end <= duration")


def _check_changes(path: Path, data: dict[str, Any], nodes: list[str]) -> None:
    """Commands run on nodes; what a link has not cannot change."""
    links = {tuple(link["between"]): link for link in data["link"]}
    for number, change in enumerate(data.get("change", []), start=1):
        where = f"{path}: change[{number}]"
        if "command" in change:
            if change.get("on") not in nodes:
                raise LabError(f'{where}.on: "{change.get("on")}" is unknown; expected one of '
                               f"{', '.join(nodes)}")
            continue
        link = links.get(tuple(change["between"]))
        if link is None:
            raise LabError(f"{where}.between: expected the nodes of a link, in its order")
        if not {"bandwidth", "back", "delay_ms"} & change.keys():
            raise LabError(f"{where}: expected bandwidth, back or delay_ms")
        for key in ("bandwidth", "back", "delay_ms"):
            if key in change and not link.get(key):
                raise LabError(f"{where}.{key}: the link has none that could change")


def _different(path: Path, where: str, names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise LabError(f'{path}: {where}: expected different names, "{name}" is there twice')
