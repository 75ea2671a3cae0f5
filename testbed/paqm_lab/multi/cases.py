# SPDX-License-Identifier: GPL-2.0
"""The runs: parking lot and GFC-2 (scenarios/*.toml) under each law, those of paths and robust."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from paqm_lab import scenario
from paqm_lab.multi import netscenario, paths, robust
from paqm_lab.multi.case import Case, Checks, Run, paqm, queues
from paqm_lab.multi.shares import jain

LAWS = ("maxmin", "erf", "ecf")
BINS = 0.6  # s, of the published figures


def of_scenario(
    file: str, law: str, seconds: float, more: str, words: str, judge: Callable[[Run, Checks], None]
) -> Case:
    """Network and flows of a scenario under a law; the flows start as with the file's seed."""
    path, data = scenario.read(file)
    variant = {
        "name": law,
        "qdisc": paqm("{bandwidth}", law, "{number}", more),
        "use": "ecf" if law == "ecf" else "erf",
    }
    case = netscenario.check(path, {**data, "duration": seconds}).case(variant, data["seed"])
    case.words, case.judge = words, judge
    case.facts["law"] = law
    return case


def gfc2(law: str, util: float) -> Case:
    """All 22 flows; they start at random within five seconds."""
    target = "50kb" if law != "maxmin" else "3ms"
    case = of_scenario(
        "gfc2", law, 9.0 if law == "maxmin" else 15.0, f"target-util {util} media-target {target}",
        "22 CBR flows over six bottlenecks, started within five seconds. Dashed: max-min "
        "share of what the routers hand out.", judge_gfc2,
    )
    case.name, case.title = f"gfc2-{law}", f"GFC-2, law {law}, target utilisation {util:g}"
    nominal = case.shares[0][1]
    case.facts |= {
        "last_start": max(flow.start for flow in case.flows),
        "from": case.duration - 2,
        "nominal": nominal,
    }
    case.shares = [(0.0, {name: util * rate for name, rate in nominal.items()})]
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
    queues(run, checks, case.facts["bottlenecks"])


def parking(law: str) -> Case:
    """Long flows cross three bottlenecks whose routers know nothing of each other.

    That of the published comparison with VCP: round trips 112 and 28 ms.
    """
    case = of_scenario(
        "parking-lot", law, 10.0 if law == "maxmin" else 30.0,
        "target-util 1" + (" media-target 20kb" if law != "maxmin" else ""),
        "Two long flows over three bottlenecks of 10 Mbit/s, two short ones on each; "
        "max-min: 2.5 Mbit/s for all.", judge_parking,
    )
    case.name, case.title = f"parking-{law}", f"Parking lot, law {law}"
    case.facts["from"] = case.duration / 2
    return case


def judge_parking(run: Run, checks: Checks) -> None:
    case = run.case
    begin, end = case.duration / 2, case.duration
    share = case.shares[0][1]
    rates = {f.name: run.rate(f, begin, end) / share[f.name] for f in case.flows}
    least = min(rates[n] for n in rates if n[0] == "L")
    checks.add(case, "long_flows_share", 100 * least, ">=", 95, "%",
               f"sink-KL.log: the slower long flow from {begin:g} s on, of 2.5 Mbit/s")
    checks.figure(case, "shares_percent", {n: round(100 * r, 2) for n, r in rates.items()})
    checks.figure(case, "jain", jain(rates.values()))
    use = [sum(rates[n] for n in rates if n[0] == "L" or n[1] == str(link)) / 4
           for link, _ in enumerate(case.facts["bottlenecks"], start=1)]
    checks.figure(case, "link_use_percent", [round(100 * u, 2) for u in use])
    queues(run, checks, case.facts["bottlenecks"])


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
