# SPDX-License-Identifier: GPL-2.0
"""The runs: parking lot and GFC-2 under each law."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

from paqm_lab.multi import paths, robust
from paqm_lab.multi.case import MBIT, Case, Checks, Flow, Run, ip_share, paqm, queues
from paqm_lab.multi.shares import jain, max_min
from paqm_lab.topology import Network

LAWS = ("maxmin", "erf", "ecf")
BINS = 0.6  # s, of the published figures


# GFC-2 (ATM Forum 94-0557): seven nodes in line, six links; groups of flows, entries, exits.
GFC_LINKS = {1: (20, 20), 2: (40, 10), 3: (20, 5), 4: (60, 5), 5: (60, 5), 6: (20, 10)}
GFC_ACCESS = 5.0  # ms
SIZE = 1400  # bytes of an IP packet
GFC_FLOWS = [
    *(("A1", 1, 6, 1), ("A2", 2, 6, 1), ("A3", 3, 6, 1)),
    *(("B1", 1, 7, 1), ("B2", 2, 7, 1), ("B3", 4, 7, 1)),
    *(("C", 5, 6, 3), ("D", 1, 2, 1), ("E", 2, 3, 2)),
    *(("F", 3, 4, 1), ("G", 6, 7, 7), ("H", 4, 5, 2)),
]


def gfc2(law: str, util: float) -> Case:
    """All 22 flows; they start at random within five seconds."""
    net = Network()
    for node in range(1, 8):
        net.host(f"R{node}", True)
    target = "50kb" if law != "maxmin" else "3ms"
    for number, (mbit, delay) in GFC_LINKS.items():
        net.bottleneck(
            f"R{number}", f"R{number + 1}", delay,
            paqm(mbit, law, number, f"target-util {util} media-target {target}"),
        )
    for node in sorted({leave for _, _, leave, _ in GFC_FLOWS}):
        net.link(f"R{node}", net.host(f"K{node}"), GFC_ACCESS)
    seconds = 9.0 if law == "maxmin" else 15.0
    draw = random.Random(2)
    case = Case(
        name=f"gfc2-{law}",
        title=f"GFC-2, law {law}, target utilisation {util:g}",
        words="22 CBR flows over six bottlenecks, started within five seconds. Dashed: max-min "
        "share of what the routers hand out.",
        net=net,
        duration=seconds,
        use="ecf" if law == "ecf" else "erf",
        judge=judge_gfc2,
    )
    paths: dict[str, list[str]] = {}
    for group, enter, leave, count in GFC_FLOWS:
        source = net.host(f"S{group}")
        net.link(source, f"R{enter}", GFC_ACCESS)
        for i in range(count):
            name = group if count == 1 else f"{group}.{i + 1}"
            case.flows.append(
                Flow(name, source, f"K{leave}", round(draw.uniform(0, 5), 3), seconds, size=SIZE)
            )
            paths[name] = [str(link) for link in range(enter, leave)]
    capacity = {str(n): ip_share(mbit * MBIT, SIZE) for n, (mbit, _) in GFC_LINKS.items()}
    case.facts = {
        "law": law,
        "util": util,
        "last_start": max(f.start for f in case.flows),
        "from": seconds - 2,
        "nominal": max_min(capacity, paths),
    }
    case.shares = [(0.0, {n: util * r for n, r in case.facts["nominal"].items()})]
    for number in GFC_LINKS:
        case.add_queue_log(f"R{number}", f"wR{number}R{number + 1}")
    return case


def judge_gfc2(run: Run, checks: Checks) -> None:
    case, law = run.case, run.case.facts["law"]
    shares = case.shares[0][1]
    last, end = case.facts["last_start"], case.duration - 0.1
    settled, who = run.settled(shares, 0, end, 0.05, BINS)
    source = f"sink-*.log: every flow's {BINS:g}-s mean within 5 % of max-min until the end"
    if law == "maxmin":
        after = None if settled is None else max(0.0, settled - last)
        checks.add(case, "settled_after_last_start", after, "<=", 1.5, "s", source)
    elif law == "erf":
        checks.add(case, "settled_at", settled, "<=", 12, "s", source)
    checks.figure(case, "settled_at_s", settled)
    checks.figure(case, "settled_last", who)
    begin = case.duration - 2
    error, worst = run.error(shares, begin, end)
    checks.figure(case, "last_2_s_worst_error_percent", 100 * error)
    checks.figure(case, "last_2_s_worst_flow", worst)
    error, worst = run.error(case.facts["nominal"], begin, end)
    checks.figure(case, "last_2_s_worst_error_of_nominal_percent", 100 * error)
    waits = [run.port(f)["wait_mean_us"] / 1000 for f in case.flows if f.name[0] == "B"]
    if law == "erf":
        checks.add(case, "delay_of_B", max(waits), "<=", 80, "ms",
                   "sink-K7.log: sending to arrival, mean of the slowest B flow; 65 ms on links")
    else:
        checks.figure(case, "delay_of_B_ms", max(waits))
    queues(run, checks, [(f"R{n}", f"wR{n}R{n + 1}") for n in GFC_LINKS])


# Parking lot of the published comparison with VCP: three links of 10 Mbit/s, two long flows, two
# short ones per link; round trips 112 and 28 ms.
PARKING_LINKS = 3
PARKING_MBIT = 10


def parking(law: str) -> Case:
    """Long flows cross three bottlenecks whose routers know nothing of each other."""
    net = Network()
    for node in range(1, PARKING_LINKS + 2):
        net.host(f"R{node}", True)
    for n in range(1, PARKING_LINKS + 1):
        more = "target-util 1" + (" media-target 20kb" if law != "maxmin" else "")
        net.bottleneck(f"R{n}", f"R{n + 1}", 14, paqm(PARKING_MBIT, law, n, more))
    seconds = 10.0 if law == "maxmin" else 30.0
    case = Case(
        name=f"parking-{law}",
        title=f"Parking lot, law {law}",
        words="Two long flows over three bottlenecks of 10 Mbit/s, two short ones on each; "
        "max-min: 2.5 Mbit/s for all.",
        net=net,
        duration=seconds,
        use="ecf" if law == "ecf" else "erf",
        judge=judge_parking,
    )
    net.link(f"R{PARKING_LINKS + 1}", net.host("KL"), 7)
    draw = random.Random(3)
    for name, enter in (("L", 1), ("S1", 1), ("S2", 2), ("S3", 3)):
        host = net.host(f"H{name}")
        net.link(host, f"R{enter}", 7 if name == "L" else 0)
        sink = "KL"
        if name != "L":
            sink = net.host(f"K{name}")
            net.link(f"R{enter + 1}", sink)
        for i in (1, 2):
            case.flows.append(
                Flow(f"{name}.{i}", host, sink, round(draw.uniform(0, 3), 3), seconds,
                     ceiling=PARKING_MBIT * MBIT)
            )
    share = ip_share(PARKING_MBIT * MBIT / 4, 1000)
    case.shares = [(0.0, {f.name: share for f in case.flows})]
    case.facts = {"law": law, "from": seconds / 2, "share": share}
    for n in range(1, PARKING_LINKS + 1):
        case.add_queue_log(f"R{n}", f"wR{n}R{n + 1}")
    return case


def judge_parking(run: Run, checks: Checks) -> None:
    case = run.case
    begin, end = case.duration / 2, case.duration
    share = case.facts["share"]
    rates = {f.name: run.rate(f, begin, end) / share for f in case.flows}
    least = min(rates[n] for n in rates if n[0] == "L")
    checks.add(case, "long_flows_share", 100 * least, ">=", 95, "%",
               f"sink-KL.log: the slower long flow from {begin:g} s on, of 2.5 Mbit/s")
    checks.figure(case, "shares_percent", {n: round(100 * r, 2) for n, r in rates.items()})
    checks.figure(case, "jain", jain(rates.values()))
    use = [sum(rates[n] for n in rates if n[0] == "L" or n[1] == str(link)) / 4
           for link in range(1, PARKING_LINKS + 1)]
    checks.figure(case, "link_use_percent", [round(100 * u, 2) for u in use])
    queues(run, checks, [(f"R{n}", f"wR{n}R{n + 1}") for n in range(1, PARKING_LINKS + 1)])


def all_cases() -> dict[str, Callable[[], Case]]:
    """Every case by name."""
    found: dict[str, Callable[[], Case]] = {f"parking-{law}": partial(parking, law) for law in LAWS}
    found |= {
        "gfc2-maxmin": partial(gfc2, "maxmin", 0.96),
        "gfc2-erf": partial(gfc2, "erf", 0.95),
        "gfc2-ecf": partial(gfc2, "ecf", 0.95),
    }
    for how in ("loss30", "loss50"):
        found |= {f"{how}-{law}": partial(robust.spoiled, how, law) for law in LAWS}
    for how in ("reorder", "congested"):
        found |= {f"{how}-{law}": partial(robust.spoiled, how, law) for law in ("maxmin", "ecf")}
    found |= {"twice-ecf": partial(robust.spoiled, "twice", "ecf")}
    found |= {"late-maxmin": partial(robust.spoiled, "late", "maxmin")}
    found |= {f"route-{law}": partial(robust.route, law) for law in ("maxmin", "ecf")}
    found |= {f"reboot-{law}": partial(robust.reboot, law) for law in ("maxmin", "ecf")}
    found |= {"silent": robust.silent}
    for mode in ("high", "low", "flap", "restart", "broken"):
        found[f"liar-{mode}"] = partial(robust.liar, mode)
    found |= {"block": paths.block, "nat": paths.nat, "asymmetric": paths.asymmetric}
    return found
