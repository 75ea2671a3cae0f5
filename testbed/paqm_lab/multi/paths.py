# SPDX-License-Identifier: GPL-2.0
"""The runs about the way back of a message: a firewall, NAT, another route than the way out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from paqm_lab.multi.case import F64, MBIT, Case, Checks, Flow, Run, ip_share, paqm
from paqm_lab.topology import Network

EXPIRY = 3.0
PERIOD = 0.25
UTIL = 0.96

BLOCK, OPEN = 10.0, 30.0
STREAM_MBIT = 4.0


def nft(case: Case, t: float, host: str, *words: str, save: str = "") -> None:
    case.at(t, host, "nft", *words, save=save)


def block() -> Case:
    """Two video streams; a firewall on one's way drops all messages for 20 s."""
    net = Network()
    for name in ("F", "R", "Z"):
        net.host(name, True)
    net.bottleneck("R", "Z", 5, paqm(f"{STREAM_MBIT:g}mbit", "maxmin", 1))
    net.link("F", "R", 5)
    net.link("Z", net.host("K"))
    net.link(net.host("SA"), "F", 5)
    net.link(net.host("SB"), "R", 10)
    case = Case(
        name="block",
        title="A firewall drops all messages",
        words=f"Two video streams by paqm-streamer. From {BLOCK:g} to {OPEN:g} s a firewall on a's "
        "way back drops ICMP type 253. Sent rates; b hears its router all the time.",
        net=net,
        duration=38.0,
        judge=judge_block,
    )
    hook = "{ type filter hook forward priority 0 ; }"
    nft(case, -1, "F", "add", "table", "ip", "f")
    nft(case, -1, "F", "add", "chain", "ip", "f", "through", hook)
    nft(case, BLOCK, "F", *"add rule ip f through icmp type 253 counter drop".split())
    nft(case, OPEN - 0.001, "F", "-j", "list", "table", "ip", "f", save="nft.json")
    nft(case, OPEN, "F", "flush", "chain", "ip", "f", "through")
    case.mark(BLOCK, "blocked")
    case.mark(OPEN, "open")
    share = ip_share(UTIL * STREAM_MBIT * MBIT / 2, 1100)
    case.shares = [(0.0, {"a": share, "b": share})]
    case.facts = {"streams": [("a", "SA"), ("b", "SB")]}
    case.add_queue_log("R", "wRZ", BLOCK, OPEN)
    return case


def add_streams(case: Case, build: Path, clip: Path) -> None:
    """paqm-streamer at both ends of every stream."""
    streamer = str(build / "streamer" / "paqm-streamer")
    for i, (name, host) in enumerate(case.facts["streams"]):
        case.add_daemon(host, build)
        to = f"{case.net.address('K')}:{7000 + 2 * i}"
        case.program(f"recv-{name}", "K", streamer, "recv", "--listen", to, "--log",
                     f"recv-{name}", "--duration", str(case.duration + 1))
        words = [streamer, "send", "--to", to, "--bind", case.net.address(host), "--loop"]
        words += ["--source", str(clip), "--start-frame", str(100 * i), "--ssrc", str(1000 + i)]
        words += ["--rate-max", "3mbit", "--duration", str(case.duration), "--seed", "1"]
        words += ["--log", f"send-{name}", "--paqmd", f"/run/paqmd-{host}.sock"]
        case.program(f"send-{name}", host, *words, start=0.5)
        case.directories += [f"log/send-{name}", f"log/recv-{name}"]


def frames(run: Run, name: str) -> tuple[F64, F64, F64]:
    """Of a stream: time of each picture, its bytes on the wire, the rate allowed for it."""
    path = run.directory / "log" / f"send-{name}" / "frames.csv"
    table = np.genfromtxt(path, delimiter=",", names=True, dtype=None, encoding="ascii")
    t0: int = run.saved("guest.json")["t0_ns"]
    t = (table["t_ns"] - t0) / 1e9
    return t, table["wire_bytes"].astype(np.float64), table["allowance_bps"].astype(np.float64)


def advice(run: Run, name: str) -> list[tuple[float, str, float]]:
    """What paqmd told a stream: time, cause, rate."""
    lines = (run.directory / "log" / f"send-{name}" / "feedback.csv").read_text().splitlines()
    t0: int = run.saved("guest.json")["t0_ns"]
    found = []
    for line in lines[1:]:
        t_ns, _, cause, _, rate = line.split(",")
        found.append(((int(t_ns) - t0) / 1e9, cause, float(rate)))
    return found


def stream_series(run: Run, name: str, window: float) -> tuple[F64, F64]:
    """Sliding mean of what a stream sends, at every picture, bit/s."""
    t, size, _ = frames(run, name)
    total = np.concatenate([[0.0], np.cumsum(size)])
    begin = np.searchsorted(t, t - window, side="right")
    rates = (total[1:] - total[begin]) * 8 / window
    return t, rates.astype(np.float64)


def judge_block(run: Run, checks: Checks) -> None:
    case = run.case
    told = advice(run, "a")
    log = "log/send-a/feedback.csv, frames.csv"
    gone = [t for t, cause, _ in told if cause == "expired" and t > BLOCK]
    checks.add(case, "advice_expired", gone[0] - BLOCK if gone else None, "<=", EXPIRY, "s",
               f"{log}: from the block to the record that no advice is in force")
    last = [rate for t, cause, rate in told if cause == "erf" and t <= BLOCK][-1]
    t, rate = stream_series(run, "a", 1.0)
    alone = (t > BLOCK + EXPIRY + 1) & (t <= OPEN)
    checks.figure(case, "last_advice_mbit", last / MBIT)
    checks.figure(case, "alone_mean_of_last_advice", float(rate[alone].mean()) / last)
    checks.figure(case, "alone_most_of_last_advice", float(rate[alone].max()) / last)
    before, after = run.queue("R", "wRZ", BLOCK), run.queue("R", "wRZ", OPEN)
    sent = after["packets"] - before["packets"]
    lost = after["drops"] - before["drops"]
    checks.add(case, "lost_while_blocked", 100 * lost / sent, "<=", 1, "%",
               "tc-R-wRZ-*.json: dropped of all packets while blocked")
    ruled: list[Any] = run.saved("nft.json")["nftables"]
    dropped = [e["counter"]["packets"] for r in ruled if "rule" in r
               for e in r["rule"]["expr"] if "counter" in e]
    checks.figure(case, "messages_blocked", sum(dropped))
    again = [t for t, cause, _ in told if cause == "erf" and t >= OPEN]
    checks.add(case, "advice_again", again[0] - OPEN if again else None, "<=", 2 * PERIOD, "s",
               f"{log}: from the end of the block to the first advice, two periods")
    share = case.shares[0][1]["a"]
    t, _, allowed = frames(run, "a")
    late = t >= OPEN
    good = np.abs(allowed[late] / share - 1) <= 0.1
    checks.add(case, "rate_of_pictures_again",
               float(t[late][good][0]) - OPEN if good.any() else None, "<=", 2 * PERIOD + 0.05, "s",
               f"{log}: first picture made for a rate within 10 % of the fair share: two periods "
               "and a picture")
    for name in ("a", "b"):
        t, rate = stream_series(run, name, 1.0)
        for phase, begin, end in (("before", 4.0, BLOCK), ("alone", BLOCK + EXPIRY + 1, OPEN),
                                  ("after", OPEN + 3, case.duration - 0.5)):
            chosen = (t > begin) & (t <= end)
            checks.figure(case, f"share_of_{name}_{phase}", float(rate[chosen].mean()) / share)


# ---------------------------------------------------------------- NAT


def nat() -> Case:
    """A sender behind NAT hears the box that translates, but no router beyond it."""
    net = Network()
    for name in ("N", "R", "Z"):
        net.host(name, True)
    outer = net.bottleneck("N", "R", 5, paqm("6mbit", "maxmin", 1))
    net.bottleneck("R", "Z", 5, paqm("4mbit", "maxmin", 2))
    net.link("Z", net.host("K"))
    net.link(net.host("SN"), "N", 5)
    net.link(net.host("SO"), "R", 5)
    case = Case(
        name="nat",
        title="A sender behind NAT, carrier icmp",
        words="Flow n leaves through a box that translates its address, flow o does not; both "
        "cross the same bottleneck of 4 Mbit/s. The bottleneck's messages to n end at the box; n "
        "is told the box's own 6 Mbit/s and sends as much as it has, 4 Mbit/s.",
        net=net,
        duration=10.0,
        judge=judge_nat,
    )
    for flow, source in (("n", "SN"), ("o", "SO")):
        case.flows.append(Flow(flow, source, "K", 0, 10, ceiling=4 * MBIT))
    rules = [
        "add table ip t",
        "add chain ip t post { type nat hook postrouting priority 100 ; }",
        f'add rule ip t post oifname "{outer.left.device}" masquerade',
        "add chain ip t pre { type filter hook prerouting priority 0 ; }",
        "add rule ip t pre icmp type 253 ct state invalid counter",
    ]
    for rule in rules:
        nft(case, -1, "N", rule)
    nft(case, 9.9, "N", "-j", "list", "table", "ip", "t", save="nft.json")
    case.facts = {"box": outer.address("N")}
    return case


def judge_nat(run: Run, checks: Checks) -> None:
    case = run.case
    told = {f.name: [r[4] for r in run.records(f) if r[1] > 0] for f in case.flows}
    ruled: list[Any] = run.saved("nft.json")["nftables"]
    invalid = [e["counter"]["packets"] for r in ruled if "rule" in r
               for e in r["rule"]["expr"] if "counter" in e]
    checks.add(case, "messages_invalid_at_the_box", sum(invalid), ">=", 1, "packets",
               "nft.json: ICMP type 253 that connection tracking of the box calls invalid")
    checks.add(case, "told_behind_nat_by_the_box", told["n"].count("1"), ">=", 1, "records",
               "src-n.txt: rates of the box that the sender behind it was told")
    checks.add(case, "told_behind_nat_from_beyond", told["n"].count("2"), "<=", 0, "records",
               "src-n.txt: rates of the bottleneck that the sender behind the box was told")
    share = ip_share(UTIL * 4 * MBIT / 2, 1000)
    rest = run.rate(run.flow("o"), 5, 9.9)
    checks.add(case, "other_flow_has_its_share", 100 * rest / share, ">=", 95, "%",
               "sink-K.log: mean of the flow outside from 5 s on, of half of the bottleneck")
    checks.figure(case, "rate_behind_nat_mbit", run.rate(run.flow("n"), 5, 9.9) / MBIT)
    checks.figure(case, "told_outside", len(told["o"]))


# ---------------------------------------------------------------- another way back

STRICT = 8.0


def asymmetric() -> Case:
    """Media goes by one router, messages come back by another; then strict reverse-path filters."""
    net = Network()
    for name in ("A", "X", "Y", "Z"):
        net.host(name, True)
    there = net.link("A", "X", 5)
    first = net.bottleneck("X", "Z", 5, paqm("4mbit", "maxmin", 1))
    wire = net.links[-1]
    net.link("Y", "A", 15)
    back = net.link("Z", "Y", 15)
    sink = net.link("Z", net.host("K"))
    home = net.link(net.host("S"), "A")
    case = Case(
        name="asymmetric",
        title="Another way back",
        words="Media goes A-X-Z, messages of X come back by Z and Y, 70 ms. From "
        f"{STRICT:g} s on A filters by strict reverse path: it drops them, and the sources fall "
        "back to 0.5 Mbit/s.",
        net=net,
        duration=16.0,
        judge=judge_asymmetric,
    )
    for i in (1, 2):
        case.flows.append(Flow(f"s{i}", "S", "K", 0, 16, rate=0.5 * MBIT, ceiling=4 * MBIT))
    network = home.subnet
    for host, gateway in (("X", first.address("wXZ")), ("wXZ", wire.address("Z")),
                          ("Z", back.address("Y"))):
        case.at(-1, host, "ip", "route", "replace", network, "via", gateway)
    case.at(-1, "A", "ip", "route", "replace", sink.subnet, "via",
            there.address("X"))
    case.at(STRICT, "A", "sysctl", "-qw", "net.ipv4.conf.all.rp_filter=1")
    case.at(15.9, "A", "nstat", "-asj", save="nstat.json")
    case.mark(STRICT, "strict rp_filter")
    share = ip_share(UTIL * 4 * MBIT / 2, 1000)
    safe = {f.name: f.rate for f in case.flows}
    case.shares = [(0.0, {f.name: share for f in case.flows}), (STRICT + EXPIRY, safe)]
    case.add_queue_log("X", "wXZ")
    return case


def judge_asymmetric(run: Run, checks: Checks) -> None:
    case = run.case
    settled, _ = run.settled(case.shares[0][1], 0, STRICT, 0.05, 0.5)
    checks.add(case, "settled", settled, "<=", 2, "s",
               "sink-K.log: 0.5-s means of both flows within 5 % of their share")
    gone = [max([t for t, rate, *_ in run.records(f) if rate == 0 and t > STRICT] or [99.0])
            for f in case.flows]
    checks.add(case, "advice_expired", max(gone) - STRICT, "<=", EXPIRY + PERIOD, "s",
               "src-*.txt: from strict filtering to the record that no advice is in force")
    dropped = json.loads((run.directory / "nstat.json").read_text())["kernel"]
    checks.figure(case, "dropped_by_rp_filter", dropped.get("TcpExtIPReversePathFilter", 0))
