# SPDX-License-Identifier: GPL-2.0
"""The runs in which something goes wrong: feedback that is lost, late or twice; routers that
restart, fall silent or lie; routes that change."""

from __future__ import annotations

import random

import numpy as np

from paqm_lab import lab, topology
from paqm_lab.multi.case import BIN, MBIT, Case, Checks, Flow, Run, ip_share, paqm, queues
from paqm_lab.multi.liar import LIAR
from paqm_lab.multi.shares import jain
from paqm_lab.topology import Network, netem

PERIOD = {"maxmin": 0.25, "erf": 0.6, "ecf": 0.6}
EXPIRY = 3.0  # s: shortest life of an allowance
# What a law without lost feedback leaves on the table; the published ones at 0.95.
UTIL = {"maxmin": 0.96, "erf": 0.95, "ecf": 0.95}

QUEUE = ("R", "wRZ")


def dumbbell(sources: list[str], mbit: float, law: str) -> Network:
    """Sources -- F -- R ==== Z -- K; F forwards and may spoil what comes back."""
    net = Network()
    for name in ("F", "R", "Z"):
        net.host(name, True)
    target = "media-target 20kb" if law != "maxmin" else ""
    net.bottleneck("R", "Z", 5, paqm(f"{mbit:g}mbit", law, 1, f"target-util {UTIL[law]} {target}"))
    net.link("F", "R", 5)
    net.link("Z", net.host("K"))
    for name in sources:
        net.link(net.host(name), "F")
    return net


# ---------------------------------------------------------------- feedback that gets lost

FLOWS = 8
MBPS = 8.0
LONG = 30.0

SPOILED = {
    "loss30": ("30 % of the messages lost", ["loss", "30%"]),
    "loss50": ("half of the messages lost", ["loss", "50%"]),
    "twice": ("half of the messages arrive twice", ["duplicate", "50%"]),
    "reorder": ("messages 0 to 600 ms late, in any order", ["300ms"]),
    "late": ("messages 400 ms late", []),
}
EXTRA_MS = {"reorder": 300.0, "late": 400.0}


def spoiled(how: str, law: str) -> Case:
    """Eight flows that start unequal; the feedback to them suffers."""
    net = dumbbell(["S"], MBPS, law)
    if how == "congested":
        title = "reverse path congested"
        # 25 % more than the reverse link carries, so a fifth of all packets and messages is lost
        net.queue("F", "S", "root", *netem(5, "rate", "400kbit", limit=20))
    else:
        title, words = SPOILED[how]
        net.spoil("F", "S", EXTRA_MS.get(how, 0) + 5, *words)
    draw = random.Random(5)
    case = Case(
        name=f"{how}-{law}",
        title=f"{title[0].upper()}{title[1:]}, law {law}",
        words="Eight flows on 8 Mbit/s that start within three seconds at 0.2 to 2 Mbit/s.",
        net=net,
        duration=LONG,
        use="ecf" if law == "ecf" else "erf",
        judge=judge_spoiled,
    )
    for i in range(FLOWS):
        case.flows.append(
            Flow(f"f{i + 1}", "S", "K", round(draw.uniform(0, 3), 3), LONG,
                 rate=round(draw.uniform(0.2, 2), 2) * MBIT, ceiling=4 * MBIT)
        )
    if how == "congested":
        case.facts["flood"] = True
    share = ip_share(UTIL[law] * MBPS * MBIT / FLOWS, 1000)
    case.shares = [(0.0, {f.name: share for f in case.flows})]
    case.facts |= {"law": law, "how": how, "from": LONG - 15}
    case.add_queue_log(*QUEUE, LONG - 15)
    return case


def flood(case: Case, tool: str) -> None:
    """Load for the reverse path, from the receiver to the sender."""
    net = case.net
    words = [tool, "send", "--to", net.address("S"), "--port", "7000", "--sport", "7001"]
    words += ["--kind", "plain", "--rate", "500000", "--sizes", "100-900", "--poisson"]
    case.program("flood", "K", *words, "--epoch", "@T0@", "--stop", str(case.duration))
    case.program("drain", "S", tool, "sink", "--ports", "7000", "--epoch", "@T0@",
                 "--end", str(case.duration + 0.5))


def judge_spoiled(run: Run, checks: Checks) -> None:
    case, law = run.case, run.case.facts["law"]
    begin, end = case.duration - 15, case.duration
    rates = {f.name: run.rate(f, begin, end) for f in case.flows}
    source = f"sink-K.log: mean rates of {begin:g} to {end:g} s"
    limit = 0.9 if law == "ecf" else 0.95
    checks.add(case, "jain", jain(rates.values()), ">=", limit, "", source)
    # no divergence: the second half is as calm as the first, nothing is lost, nobody starves
    total = np.sum([run.series(f, 1.0)[1] for f in case.flows], axis=0)
    t = run.series(case.flows[0], 1.0)[0]
    late = (t > begin + 1) & (t <= end - 0.5)
    link = ip_share(MBPS * MBIT, 1000)
    checks.add(case, "link_use_least_second", 100 * float(total[late].min()) / link, ">=", 75, "%",
               f"sink-K.log: all flows, least of the 1-s means from {begin:g} s on")
    before, after = run.queue(*QUEUE, t=begin), run.queue(*QUEUE)
    lost = after["drops"] - before["drops"]
    sent = after["packets"] - before["packets"]
    checks.add(case, "media_lost_percent", 100 * lost / sent, "<=", 1, "%",
               f"tc-R-wRZ-*.json: dropped of all packets from {begin:g} s on")
    checks.figure(case, "jain_least_second", min(
        jain(run.series(f, 1.0)[1][i] for f in case.flows) for i in np.flatnonzero(late)[::10]))
    checks.figure(case, "link_use_percent", 100 * sum(rates.values()) / link)
    waits = [run.port(f)["wait_max_us"] / 1000 for f in case.flows]
    checks.figure(case, "delay_max_ms", max(waits))
    checks.figure(case, "delay_mean_ms", max(run.port(f)["wait_mean_us"] / 1000
                                             for f in case.flows))
    seen = run.saved("paqmd-S.json")["stats"]
    checks.figure(case, "messages_believed", seen["accepted"])
    checks.figure(case, "messages_refused", {k: v for k, v in seen["refused"].items() if v})
    queues(run, checks, [QUEUE])


# ---------------------------------------------------------------- routes

NARROW, WIDE = 4.0, 10.0
MOVE, BACK = 8.0, 16.0


def route(law: str) -> Case:
    """A flow moves from a narrow path to a wide one and back."""
    net = Network()
    for name in ("A", "X", "Y", "Z"):
        net.host(name, True)
    ways = {}
    target = "media-target 20kb" if law != "maxmin" else ""
    for number, (node, mbit) in enumerate((("X", NARROW), ("Y", WIDE)), start=1):
        ways[node] = net.link("A", node, 5).address(node)
        net.bottleneck(node, "Z", 5,
                       paqm(f"{mbit:g}mbit", law, number, f"target-util {UTIL[law]} {target}"))
    sink = net.link("Z", net.host("K"))
    for name, node in (("SM", "A"), ("SX", "X"), ("SY", "Y")):
        net.link(net.host(name), node)
    case = Case(
        name=f"route-{law}",
        title=f"A flow changes its route, law {law}",
        words=f"Flow m moves from the path of 4 Mbit/s to that of 10 Mbit/s at {MOVE:g} s and back "
        f"at {BACK:g} s; x and y stay. The old router's word holds until it expires, 3 s later.",
        net=net,
        duration=26.0,
        use="ecf" if law == "ecf" else "erf",
        judge=judge_route,
    )
    for name, source in (("m", "SM"), ("x", "SX"), ("y", "SY")):
        case.flows.append(Flow(name, source, "K", 0, 26, ceiling=10 * MBIT))
    for t, node in ((-1.0, "X"), (MOVE, "Y"), (BACK, "X")):
        case.at(t, "A", "ip", "route", "replace", sink.subnet, "via", ways[node])
        if t > 0:
            case.mark(t, f"m to {'wide' if node == 'Y' else 'narrow'}")
    narrow = {n: ip_share(UTIL[law] * r * MBIT, 1000)
              for n, r in (("m", NARROW / 2), ("x", NARROW / 2), ("y", WIDE))}
    wide = {n: ip_share(UTIL[law] * r * MBIT, 1000)
            for n, r in (("m", WIDE / 2), ("x", NARROW), ("y", WIDE / 2))}
    case.shares = [(0.0, narrow), (MOVE, wide), (BACK, narrow)]
    case.facts = {"law": law, "wide": wide, "narrow": narrow}
    for node in ("X", "Y"):
        case.add_queue_log(node, f"w{node}Z")
    return case


def judge_route(run: Run, checks: Checks) -> None:
    case, law = run.case, run.case.facts["law"]
    slack = 2 * PERIOD[law] # rounds after the news
    source = "sink-K.log: 0.5-s means of all flows within 10 % of max-min until the next change"
    for name, share, begin, end, limit in (
        ("to_wide", case.facts["wide"], MOVE, BACK, EXPIRY + slack),
        ("to_narrow", case.facts["narrow"], BACK, case.duration - 0.2, 1 + slack),
    ):
        settled, who = run.settled(share, begin, end, 0.1, 0.5)
        if law == "maxmin":
            checks.add(case, f"settled_{name}", settled, "<=", limit, "s", source)
        checks.figure(case, f"settled_{name}_s", settled)
        checks.figure(case, f"settled_{name}_last", who)
    queues(run, checks, [("X", "wXZ"), ("Y", "wYZ")])


# ---------------------------------------------------------------- routers that fail


def four(name: str, title: str, words: str, duration: float, law: str = "maxmin") -> Case:
    """Four flows of two hosts on 8 Mbit/s."""
    case = Case(
        name=name, title=title, words=words, net=dumbbell(["SV", "SW"], 8, law),
        duration=duration, use="ecf" if law == "ecf" else "erf",
    )
    for flow, source in (("v", "SV"), ("w1", "SW"), ("w2", "SW"), ("w3", "SW")):
        case.flows.append(
            Flow(flow, source, "K", 0, duration, ceiling=8 * MBIT, rate=0.5 * MBIT, size=500))
    share = ip_share(UTIL[law] * 2 * MBIT, 500)
    case.shares = [(0.0, {f.name: share for f in case.flows})]
    case.facts = {"law": law, "share": share}
    case.add_queue_log(*QUEUE)
    return case


def reboot(law: str) -> Case:
    """The router loses its state for a second, then three times in a row."""
    case = four(f"reboot-{law}", f"The router restarts, law {law}",
                "No queue from 6 to 7 s; fresh queues, each with a new boot nonce and sequence 1, "
                "at 7, 12, 12.3 and 12.6 s.", 18, law)
    words = topology.queue_words(case.net.queues[0])
    for t in (6.0, 12.0, 12.3, 12.6):
        case.at(t, "R", "tc", "qdisc", "del", "dev", "wRZ", "root")
        case.at(7.0 if t == 6 else t + 0.001, "R", "tc", *words)
        case.mark(t, "restart")
    case.judge = judge_reboot
    return case


def judge_reboot(run: Run, checks: Checks) -> None:
    case = run.case
    share = case.facts["share"]
    worst = 0.0
    for flow in case.flows:
        t, rate = run.series(flow, 0.5)
        chosen = (t > 7.5) & (t < case.duration - 0.2)
        worst = max(worst, float(np.abs(rate[chosen] / share - 1).max()))
    checks.add(case, "worst_deviation", 100 * worst, "<=", 10, "%",
               "sink-K.log: 0.5-s means of every flow against its share from the restart at 7 s on")
    heard = [r for r in run.records(run.flow("v")) if 7 <= r[0] < 8]
    checks.add(case, "believed_after_restart", len(heard), ">=", 2, "messages",
               "src-v.txt: records of paqmd from 7 to 8 s")
    for host in ("SV", "SW"):
        seen = run.saved(f"paqmd-{host}.json")["stats"]
        checks.figure(case, f"refused_{host}", {k: v for k, v in seen["refused"].items() if v})


SILENT, SPEAKS = 6.0, 14.0
SAFE = 0.5  # Mbit/s


def silent() -> Case:
    """The router stops to send messages and begins again."""
    case = four("silent", "The router falls silent",
                f"No messages from {SILENT:g} to {SPEAKS:g} s; then the sources go on at their own "
                f"safe rate of {SAFE:g} Mbit/s.", 20)
    for t, word in ((SILENT, "none"), (SPEAKS, "icmp")):
        case.at(t, "R", *f"tc qdisc change dev wRZ root handle 10: paqm feedback {word}".split())
        case.mark(t, "silent" if word == "none" else "speaks again")
    share = case.facts["share"]
    safe = {f.name: SAFE * MBIT for f in case.flows}
    case.shares += [(SILENT + EXPIRY, safe), (SPEAKS, {f.name: share for f in case.flows})]
    case.judge = judge_silent
    return case


def judge_silent(run: Run, checks: Checks) -> None:
    case = run.case
    late = []
    for flow in case.flows:
        gone = [r[0] for r in run.records(flow) if r[1] == 0 and SILENT < r[0] < SPEAKS]
        late.append(gone[0] - SILENT if gone else float("inf"))
    checks.add(case, "advice_expired", max(late), "<=", EXPIRY + BIN, "s",
               "src-*.txt: from the router's silence to the record that no advice is in force")
    settled, _ = run.settled(case.shares[-1][1], SPEAKS, case.duration - 0.2, 0.1, 0.5)
    checks.add(case, "back_after", settled, "<=", 2 * PERIOD["maxmin"], "s",
               "sink-K.log: 0.5-s means of all flows within 10 % of their share")


LIES, TRUTH = 6.0, 14.0
LIE_EVERY = 0.1  # s
HELD = 15.0  # s: how long paqmd holds a rate that flapped, allow.c


def liar(mode: str) -> Case:
    """F, on the path, sends messages of its own to one flow's sender."""
    titles = {
        "high": "A router on the path claims 10^12 bit/s",
        "low": "A router on the path claims 1 kbit/s",
        "flap": "A router on the path flaps between 8 and 0.2 Mbit/s",
        "restart": "A router restarts its sequence but not its boot nonce",
        "broken": "A router sends values that are no rates",
    }
    words = f"Flow v is lied to from {LIES:g} to {TRUTH:g} s."
    if mode == "restart":
        words = f"From {LIES:g} s on the messages to v come from one that begins at sequence 1."
    if mode == "flap":
        words += f" paqmd holds the lower rate until {HELD:g} s after the last swing at most."
    case = four(f"liar-{mode}", titles[mode], words, 34 if mode == "flap" else 22)
    command = [lab.PYTHON, "-m", "paqm_lab.multi.liar", mode, "--device", "SV"]
    command += ["--port", str(case.port(case.flows[0])), "--router-device", "R"]
    command += ["--epoch", "@T0@", "--start", str(LIES)]
    stop = case.duration - 1 if mode == "restart" else TRUTH
    command += ["--stop", str(stop), "--rate", "1000000"]
    command += ["--interval", "0.25" if mode == "restart" else str(LIE_EVERY)]
    case.program("liar", "F", *command, start=3)
    case.mark(LIES, "lies")
    share = case.facts["share"]
    if mode == "restart":
        case.at(LIES, "R", *"tc qdisc change dev wRZ root handle 10: paqm feedback none".split())
    else:
        case.mark(TRUTH, "truth again")
    if mode == "low":
        floor = case.flows[0].floor
        rest = ip_share(UTIL["maxmin"] * 8 * MBIT, 500) - 1.1 * floor
        low = {f.name: floor if f.name == "v" else rest / 3 for f in case.flows}
        case.shares += [(LIES, low), (TRUTH + EXPIRY, {f.name: share for f in case.flows})]
    case.facts["mode"] = mode
    case.judge = judge_liar
    return case


def judge_liar(run: Run, checks: Checks) -> None:
    case, mode = run.case, run.case.facts["mode"]
    share, v = case.facts["share"], run.flow("v")
    others = [f for f in case.flows if f is not v]
    sink = "sink-K.log: "

    def check_back(limit: float) -> None:
        back, _ = run.settled({f.name: share for f in case.flows}, TRUTH, case.duration - 0.2, 0.1,
                              0.5)
        checks.add(case, "back_after_the_last_lie", back, "<=", limit, "s",
                   f"{sink}0.5-s means of all flows within 10 % of their share")

    if mode in ("high", "broken"):
        worst = 0.0
        for flow in case.flows:
            t, rate = run.series(flow, 0.5)
            chosen = (t > LIES) & (t < case.duration - 0.2)
            worst = max(worst, float(np.abs(rate[chosen] / share - 1).max()))
        checks.add(case, "worst_deviation", 100 * worst, "<=", 5, "%",
                   f"{sink}0.5-s means of every flow against its share from {LIES:g} s on")
    elif mode == "low":
        checks.add(case, "victim_not_below_floor",
                   100 * run.rate(v, LIES + 1, TRUTH) / v.floor, ">=", 98, "%",
                   f"{sink}mean of v while it is lied to, of its floor")
        shares = case.shares[1][1]
        gain = min(run.rate(f, LIES + 2, TRUTH) / shares[f.name] for f in others)
        checks.add(case, "others_take_the_rest", 100 * gain, ">=", 95, "%",
                   f"{sink}the least of the others while v is lied to, of max-min")
        check_back(EXPIRY + 1)
    elif mode == "flap":
        told = [r[1] for r in run.records(v) if LIES + 2 <= r[0] < TRUTH]
        swings = sum(max(a, b) > 1.25 * min(a, b) for a, b in zip(told, told[1:], strict=False))
        checks.add(case, "swings", swings / (TRUTH - LIES - 2), "<=", 1, "per s",
                   f"src-v.txt: changes by more than 25 % of what v is told from {LIES + 2:g} s on")
        worst = 0.0
        for flow in others:
            t, rate = run.series(flow, 0.5)
            chosen = (t > LIES) & (t < TRUTH)
            worst = max(worst, float(1 - rate[chosen].min() / share))
        checks.add(case, "others_lose", 100 * worst, "<=", 10, "%",
                   f"{sink}least 0.5-s mean of the other flows against the share")
        check_back(HELD + 1)
    else:
        records = run.records(v)
        gone = [r[0] for r in records if r[1] == 0 and r[0] > LIES]
        again = [r[0] for r in records if r[1] > 0 and gone and r[0] > gone[0]]
        checks.add(case, "advice_expired", gone[0] - LIES if gone else None, "<=",
                   EXPIRY + 2 * BIN, "s", "src-v.txt: until no advice is in force")
        checks.add(case, "believed_again", again[0] - LIES if again else None, "<=",
                   EXPIRY + 4 + 0.5, "s",
                   "src-v.txt: until the restarted router is believed: expiry and 4 s")
    saved = run.saved("paqmd-SV.json")
    seen = saved["stats"]
    if mode != "restart":  # there nothing would be believed again
        truth = sum(r["accepted"] for r in saved["routers"] if int(r["router_id"], 16) != LIAR)
        heard = seen["accepted"] - truth + seen["refused"]["msg_value"]
        checks.add(case, "lies_heard", 100 * heard * LIE_EVERY / (TRUTH - LIES), ">=", 75, "%",
                   "paqmd-SV.json: messages of the liar that arrived, of one in 0.1 s")
    checks.figure(case, "refused", {k: n for k, n in seen["refused"].items() if n})
    checks.figure(case, "believed", seen["accepted"])
