# SPDX-License-Identifier: GPL-2.0
"""Runs of the experiments, and their figures: rates in kbit/s of one flow on the IP level."""

from __future__ import annotations

from collections.abc import Iterable

from paqm_lab.catalogue import networks
from paqm_lab.catalogue.networks import Queue
from paqm_lab.catalogue.row import Context, Json
from paqm_lab.multi.shares import HEADER

Values = dict[str, float | None]

MAIN_LINK, MM_LINK = 25.0, 6.0  # Mbit/s
MM_BOTTLENECK_MS = 20  # as in the file
# Periods of the main experiment, and which of them the number in a figure's name means.
MAIN = {1: "0-10", 2: "10-20", 3: "20-30", 0: "0-30"}
CLASSES = {"tcp": ("T", "V"), "tagged": ("M",), "untagged": ("U",)}
PACKET_BITS, WAY_MS = 8000, 30.96  # of the main experiment: a packet, the way without a queue

RED = "limit 60 min 5 max 15 max-p 10% weight 0.002"
QUEUES = {
    "red": f"dcbt mode red {RED}",
    "fred": f"dcbt mode fred {RED}",
    # FRED lets every flow have two packets: here a share is more
    "fred-long": "dcbt mode fred limit 240 min 60 max 120 max-p 10% weight 0.002",
    "cbt": f"dcbt mode cbt {RED} tagged-threshold 2.9 untagged-threshold 0.6",
    "dcbt": f"dcbt mode dcbt {RED}",
    "chips": f"dcbt mode dcbt chips {RED}",
}
BLAST = {
    "red": "dcbt mode red limit 60 min 15 max 30 max-p 10% weight 0.002",
    "cbt": "dcbt mode cbt limit 60 min 15 max 30 max-p 10% weight 0.002 "
           "tagged-threshold 10 untagged-threshold 2",
    # as many bytes as two packets of TCP are
    "cbt-bytes": "dcbt mode cbt limit 60 min 15 max 30 max-p 10% weight 0.002 "
                 "tagged-threshold 10 untagged-threshold 0.6",
}  # fmt: skip


def run(ctx: Context, data: Json, name: str, words: str, seed: int) -> Json:
    return networks.run(ctx, data, Queue(name, words, shaper=True), seed)


def main_run(
    ctx: Context, queue: str, seed: int, today: bool = False, immediate: bool = False
) -> Values:
    """The main experiment; `today`: with Linux's own TCP, but for the length of packets;
    `immediate`: MM_APP answers a loss at once, not at the end of a round trip.
    """
    data = networks.read("dcbt")
    if immediate:
        for flow in data["flow"]:
            if flow["sender"] == "levels":
                flow["immediate"] = True
    if today:
        for flow in data["flow"]:
            if flow["sender"] == "tcp":
                # 1000 bytes with time stamps, too
                flow |= {"mss": 948, "congestion_control": "cubic"}
                del flow["window"], flow["sack"], flow["delack"]
    return of_main(run(ctx, data, queue, QUEUES[queue], seed))


def mean(values: Iterable[float]) -> float:
    known = list(values)
    return sum(known) / len(known) if known else 0.0


def _of(period: Json, entries: Iterable[str]) -> list[float]:
    """Rates of all flows of some entries, kbit/s."""
    return [1000 * rate for name in entries for rate in period["rates_mbit"].get(name, [])]


def _ratio(above: float, below: float) -> float | None:
    return above / below if below else None


def _use(got: Json, name: str, link: float) -> float:
    """What the link has sent, IP packets counted whole, of `link` Mbit/s."""
    begin, end = (float(text) for text in name.split("-"))
    queue = got["periods"][name]["queue"]
    sent = sum(queue[of]["sent_bytes"] - HEADER * queue[of]["sent_packets"] for of in CLASSES)
    return float(100 * 8 * sent / (end - begin) / (1e6 * link))


def of_main(got: Json) -> Values:
    """All figures of a run; the number behind a name is that of the period."""
    found: Values = {}
    for number, name in MAIN.items():
        period = got["periods"][name]
        queue = period["queue"]
        rates = {of: mean(_of(period, entries)) for of, entries in CLASSES.items()}
        found |= {f"{of}{number}": rate for of, rate in rates.items()}
        found[f"jain{number}"] = period["jain"]
        found[f"tagged_tcp{number}"] = _ratio(rates["tagged"], rates["tcp"])
        found[f"average{number}"] = queue["average_packets"]
        for of in CLASSES:
            found[f"{of}_average{number}"] = queue[of]["average_packets"]
            found[f"{of}_flows{number}"] = queue[of]["flows"]
            found[f"{of}_drop{number}"] = queue[of]["drop_percent"]
        held = _ratio(queue["tagged"]["average_packets"], queue["tcp"]["average_packets"])
        sent = _ratio(queue["tagged"]["sent_packets"], queue["tcp"]["sent_packets"])
        found[f"held_tagged{number}"] = held / sent if held and sent else None
        held = _ratio(queue["untagged"]["average_packets"], queue["tagged"]["average_packets"])
        sent = _ratio(queue["untagged"]["sent_packets"], queue["tagged"]["sent_packets"])
        found[f"held_untagged{number}"] = held / sent if held and sent else None
    whole = got["periods"]["0-30"]["queue"]
    for of in ("tcp", "tagged"):
        found[f"{of}_packets"] = whole[of]["sent_packets"]
        found[f"{of}_all"] = whole[of]["sent_packets"] * PACKET_BITS / 30 / 1e6
    found["tagged_cut_in"] = 100 * whole["tagged"]["cut_in"] / whole["tagged"]["sent_packets"]
    for of in CLASSES:
        arrived = whole[of]["sent_packets"] + whole[of]["dropped"]
        found[f"{of}_struck"] = 100 * whole[of]["drop_flow"] / max(1, arrived)
    found["tagged_untagged3"] = _ratio(found["tagged3"] or 0, found["untagged3"] or 0)
    found["untagged_most"] = max(found["untagged2"] or 0, found["untagged3"] or 0)
    found["tcp_fall"] = _ratio(found["tcp3"] or 0, found["tcp2"] or 0)
    per_flow = [(found[f"{of}_average3"] or 0) / flows for of, flows in (("untagged", 2),
                                                                         ("tagged", 10))]
    found["average_order"] = _ratio(*per_flow)
    found |= {"use": _use(got, "5-30", MAIN_LINK), "use_late": _use(got, "10-30", MAIN_LINK)}
    delays = got["delays_ms"].values()
    for key in ("min", "max", "p99", "sd"):
        found[f"delay_{key}"] = mean(delay[key] for delay in delays)
    found["jitter"] = mean(delay["max"] - delay["min"] for delay in delays)
    found["waits_p99"] = mean(delay["p99"] for delay in delays) - WAY_MS
    return found


def pairs(ctx: Context, seed: int) -> Values:
    """Differences between queues, run by run."""
    of = {name: main_run(ctx, name, seed) for name in ("red", "cbt", "dcbt", "chips")}

    def at(queue: str, figure: str) -> float:
        return of[queue][figure] or 0.0

    found: Values = {
        "jitter_gain": at("dcbt", "jitter") / at("chips", "jitter"),
        "tcp_kept": 100 * at("chips", "tcp_all") / at("dcbt", "tcp_all"),
        "tcp_drop_more": abs(at("chips", "tcp_drop0") - at("dcbt", "tcp_drop0")),
        "tagged_drop_more": at("chips", "tagged_drop0") - at("dcbt", "tagged_drop0"),
        "jain_apart": max(abs(at("chips", f"jain{n}") - at("dcbt", f"jain{n}")) for n in (1, 2, 3)),
        "jain_red2": min(at(q, "jain2") for q in ("cbt", "dcbt", "chips")) - at("red", "jain2"),
        "jain_cbt3": at("cbt", "jain3") - at("red", "jain3"),
        "jain_dcbt3": min(at(q, "jain3") for q in ("dcbt", "chips")) - at("cbt", "jain3"),
        "use_more": at("dcbt", "use_late") - at("red", "use_late"),
    }
    return found


def of_mm(got: Json) -> Values:
    """SIM_MM1, SIM_MM2: 1 is the window from 5 s on, 2 that from 15 s on."""
    found: Values = {}
    for number, name in ((1, "5-15"), (2, "15-25")):
        period = got["periods"][name]
        tcp, media = mean(_of(period, ("T", "V"))), mean(_of(period, ("M", "P", "N", "Q")))
        found |= {
            f"tcp{number}": tcp, f"media{number}": media, f"ratio{number}": _ratio(media, tcp),
            f"mm{number}": mean(_of(period, ("M", "N"))),
            f"mpeg{number}": mean(_of(period, ("P", "Q"))),
            f"use{number}": _use(got, name, MM_LINK), f"jain{number}": period["jain"],
            f"average{number}": period["queue"]["average_packets"],
        }  # fmt: skip
    return found


def mm_run(ctx: Context, bottleneck_ms: float, seed: int) -> Values:
    """`bottleneck_ms`: as published; our link has all of a way, and the times of a packet on it."""
    data = networks.read("dcbt-mm")
    data["link"][0]["delay_ms"] += bottleneck_ms - MM_BOTTLENECK_MS
    return of_mm(run(ctx, data, "red", QUEUES["red"], seed))


def mm_pairs(ctx: Context, seed: int) -> Values:
    near, far = mm_run(ctx, 20, seed), mm_run(ctx, 60, seed)
    return {f"more{n}": (far[f"ratio{n}"] or 0) - (near[f"ratio{n}"] or 0) for n in (1, 2)}


def blast_run(ctx: Context, queue: str, flood_bytes: int, seed: int) -> Values:
    """CBT's validation; kbyte/s of all TCP. `flood_bytes`: of a packet of the flood's."""
    data = networks.read("dcbt-cbt")
    for flow in data["flow"]:
        if flow["name"] == "U":
            flow["size"] = flood_bytes
    got = run(ctx, data, queue, BLAST[queue], seed)
    calm, blast = (got["periods"][name] for name in ("6-14", "16-24"))
    return {
        "calm": sum(_of(calm, ("T",))) / 8, "blast": sum(_of(blast, ("T",))) / 8,
        "average": calm["queue"]["average_packets"],
        "average_blast": blast["queue"]["average_packets"],
        "tagged": mean(_of(blast, ("M",))), "flood": mean(_of(blast, ("U",))),
    }  # fmt: skip
