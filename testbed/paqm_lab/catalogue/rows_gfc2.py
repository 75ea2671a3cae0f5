# SPDX-License-Identifier: GPL-2.0
"""Rows F5 to F8 and X11, X12, X14: several routers."""

from __future__ import annotations

from paqm_lab.catalogue import networks
from paqm_lab.catalogue.networks import Queue
from paqm_lab.catalogue.row import HIGHER, LOWER, Context, Figure, Json, Row, Values

GFC2 = "testbed/scenarios/gfc2.toml"
PEERS = "TFRC over RED is left out: this project's TFRC sends pictures, not constant packets"
CLIP = ("the lab's clip at 30 pictures a second, CIF, groups of 12 instead of the published mix; "
        "H.264 instead of MPEG-4")
TCP_AT = 15  # s


LOT = "testbed/scenarios/parking-lot.toml"
LOT_RTT_MS = 112
STARVED_MBIT = 0.625
STARVED = "starved: below a quarter of the max-min share"


def f5(ctx: Context, seed: int) -> Values:
    """The same network under VCP's law, the default law, and with TCP over plain queues."""
    seconds = ctx.p["seconds"]
    data = networks.read("parking-lot") | {"duration": seconds, "expect": []}
    last = {"measured_from": 2 * seconds / 3}
    # one queue for all with the buffer of a round trip, and VCP's slot
    law = f"law vcp noisolate media-target 10ms period 200ms rtt {LOT_RTT_MS}ms"
    found: dict[str, float] = {}
    for name, words, hands_out in (("vcp", law, 100), ("maxmin", "", 96)):
        got = networks.run(ctx, data | last, networks.paqm(name, words), seed, hands_out)
        found |= lot(name, got)
    early = networks.run(ctx, data | {"duration": seconds / 3, "measured_from": seconds / 6},
                         networks.paqm("vcp", law), seed)
    found["vcp_falls"] = found["vcp_long"] / early["flows"]["L"]["rate_mbit"]
    with_tcp = data | last
    with_tcp["flow"] = [
        {"name": flow["name"], "count": flow["count"], "from": flow["from"], "to": flow["to"],
         "sender": "tcp", "start": 0, "congestion_control": "reno"} for flow in data["flow"]
    ]
    # a buffer of the long flows' bandwidth-delay product
    plain = Queue("pfifo", f"bfifo limit {10_000_000 // 8 * LOT_RTT_MS // 1000}", shaper=True)
    return found | lot("tcp", networks.run(ctx, with_tcp, plain, seed))


def lot(name: str, got: Json) -> dict[str, float]:
    """Mean rates of long and of short flows, Mbit/s."""
    short = [got["flows"][of]["rate_mbit"] for of in ("S1", "S2", "S3")]
    return {f"{name}_long": got["flows"]["L"]["rate_mbit"], f"{name}_short": sum(short) / 3}


def constant(ctx: Context, seed: int, law: str, rho: float, published: bool = True) -> Json:
    """F6 under a law; as published the period is 0.6 s, else as this project has it."""
    queue = networks.thesis(law, f"media-target 50000b target-util {rho:g} rtt 100ms")
    if not published:
        queue = networks.paqm(law, f"law {law} target-util {rho:g}")
    data = networks.read("gfc2") | {"duration": ctx.p["seconds"], "measured_from": 12}
    return networks.run(ctx, data | {"expect": []}, queue, seed, 100 * rho)


def f6(ctx: Context, seed: int) -> Values:
    erf, whole = constant(ctx, seed, "erf", 0.95), constant(ctx, seed, "erf", 1)
    ecf, maxmin = constant(ctx, seed, "ecf", 0.95), constant(ctx, seed, "maxmin", 0.96, False)
    return {
        "settled": erf["settled_s"], "least": erf["media"]["share_least"],
        "most": erf["media"]["share_most"], "delay": erf["flows"]["B1"]["delay_ms"],
        "delay_whole": whole["flows"]["B1"]["delay_ms"],
        "ecf_least": ecf["media"]["share_least"], "ecf_most": ecf["media"]["share_most"],
        "maxmin_settled": maxmin["settled_s"], "maxmin_delay": maxmin["flows"]["B1"]["delay_ms"],
    }


def x11(ctx: Context, seed: int) -> Values:
    erf = constant(ctx, seed, "erf", 0.95, False)
    return {"settled": erf["settled_s"], "delay": erf["flows"]["B1"]["delay_ms"]}


def video(ctx: Context, seed: int, queue: Queue, rho: float) -> Json:
    return networks.run(ctx, networks.gfc2_video(ctx.p["seconds"], TCP_AT), queue, seed, 100 * rho)


def thesis(law: str, rho: float) -> Queue:
    return networks.thesis(law, f"media-target 50000b target-util {rho:g} rtt 100ms")


GROUPS = {"A": ("A1", "A2", "A3"), "F": ("F",), "B": ("B1", "B2", "B3"), "G": ("G",)}
TCP = {"T1": 6.0, "T2": 12.0, "T4": 26.0, "T5": 18.0}


def rates(got: Json, prefix: str) -> dict[str, float | None]:
    """Mean rates of the groups in kbit/s, of TCP in Mbit/s."""
    found: dict[str, float | None] = {}
    for name, entries in GROUPS.items():
        flows = [got["flows"][entry] for entry in entries]
        total = sum(flow["rate_mbit"] * flow["count"] for flow in flows)
        found[f"{prefix}{name}"] = 1000 * total / sum(flow["count"] for flow in flows)
    return found | {f"{prefix}{name}": got["flows"][name]["rate_mbit"] for name in TCP}


def rise(got: Json) -> float:
    """By how much the five seconds after TCP's start are slower for B1 than those before, ms."""
    steps = got["flows"]["B1"]["delay_steps_ms"]
    return float(steps[TCP_AT // 5] - steps[TCP_AT // 5 - 1])


def f7(ctx: Context, seed: int) -> Values:
    erf, ecf = thesis("erf", 0.95), thesis("ecf", 0.95)
    maxmin = networks.paqm("maxmin", "gop 400ms")
    return {
        **rates(video(ctx, seed, erf, 0.95), ""),
        **rates(video(ctx, seed, ecf, 0.95), "ecf_"),
        **rates(video(ctx, seed, maxmin, 0.96), "maxmin_"),
    }


def f8(ctx: Context, seed: int) -> Values:
    found: dict[str, float | None] = {}
    for law in ("erf", "ecf"):
        got = video(ctx, seed, thesis(law, 1), 1)
        found |= {f"{law}_delay": got["flows"]["B1"]["delay_ms"], f"{law}_rise": rise(got)}
    return found


def x12(ctx: Context, seed: int) -> Values:
    got = video(ctx, seed, thesis("erf", 0.95), 0.95)
    return {**rates(got, ""), "rise": rise(got)}


def groups(prefix: str, law: str, banded: bool) -> tuple[Figure, ...]:
    """The published rates, with the tolerances of X12."""
    media = {"A": 500.0, "F": 500.0, "B": 250.0, "G": 250.0}
    found = [(name, "kbit/s", rate, 0.1) for name, rate in media.items()]
    found += [(name, "Mbit/s", rate, 0.15) for name, rate in TCP.items()]
    return tuple(
        Figure(f"{prefix}{name}", f"{law}: {name}", unit, published=rate if banded else None,
               tolerance=part * rate, why="tolerance of X12" if banded else "")
        for name, unit, rate, part in found
    )


def x14(ctx: Context, seed: int) -> Values:
    got = ctx.command(["multirouter", "loss30-erf", "loss30-ecf", "loss30-maxmin"])
    value = {(check["variant"], check["name"]): check["value"] for check in got["checks"]}
    return {
        f"{law}_{name}": value[f"loss30-{law}", check]
        for law in ("erf", "ecf", "maxmin")
        for name, check in (("jain", "jain"), ("use", "link_use_least_second"))
    }


ROWS = (
    Row(
        "F5", "VCP on a parking lot: two long flows over three links of 10 Mbit/s, two short ones "
        "on each", "the long flows' throughput decreases continuously: starvation. Long TCP flows "
        "get less than short ones, and are not starved. None gets 2.5 Mbit/s",
        (
            Figure("vcp_long", "VCP: rate of a long flow, last third", "Mbit/s", high=STARVED_MBIT,
                   better=HIGHER, printed="starved", why=STARVED),
            Figure("vcp_falls", "VCP: the same against the second sixth", "", high=0.9,
                   better=HIGHER, printed="decreases continuously", why="a tenth less"),
            Figure("vcp_short", "VCP: rate of a short flow, last third", "Mbit/s"),
            Figure("tcp_long", "TCP: rate of a long flow", "Mbit/s", low=STARVED_MBIT, high=2.4,
                   printed="less than 2.5, not starved", why=STARVED),
            Figure("tcp_short", "TCP: rate of a short flow", "Mbit/s"),
            Figure("maxmin_long", "default law: rate of a long flow", "Mbit/s"),
            Figure("maxmin_short", "default law: rate of a short flow", "Mbit/s"),
        ),
        f5, LOT, "7", reduced={"seconds": 60}, full={"seconds": 300},
        substitutes="the law is the router's, which tells each flow what VCP's sender would do "
        "(core/paqm_vcp.h), once in a slot of 200 ms; TCP is Linux's reno with SACK over drop-tail "
        "queues of the long flows' bandwidth-delay product, a size that is not published",
    ),
    Row(
        "F6", "GFC-2: 22 CBR flows over six bottlenecks, started within 5 s",
        "ERF: all at max-min by about 12 s; ECF slow and not fully; end to end B about 75 ms at "
        "rho 0.95, about 120 at 1.0",
        (
            Figure("settled", "law erf: all within 5 % of max-min from then on", "s", high=12,
                   better=LOWER),
            Figure("delay", "law erf, rho 0.95: delay of B1", "ms", published=75, tolerance=5,
                   better=LOWER, why="X11 has at most 80"),
            Figure("delay_whole", "law erf, rho 1: delay of B1", "ms", published=120, tolerance=28,
                   better=LOWER, why="six queues of 50 kB would be 148 ms"),
            Figure("least", "law erf: least part of a max-min share, 12 s on"),
            Figure("most", "law erf: largest part"),
            Figure("ecf_least", "law ecf: least part of a max-min share"),
            Figure("ecf_most", "law ecf: largest part"),
            Figure("maxmin_settled", "default law: settled", "s"),
            Figure("maxmin_delay", "default law: delay of B1", "ms"),
        ),
        f6, GFC2, "Paper F", reduced={"seconds": 20}, full={"seconds": 30},
        substitutes=f"shares are of what a law hands out, rho times the links. {PEERS}",
    ),
    Row(
        "F7", "GFC-2 with 176 video flows of up to 1 Mbit/s, four TCP flows from 15 s",
        "ECF and ERF very close to max-min (A, F 500, B, G 250 kbit/s); TCP about 6, 12, 26, 18 "
        "Mbit/s",
        (*groups("", "law erf", True), *groups("ecf_", "law ecf", True),
         *groups("maxmin_", "default law", False)),
        f7, GFC2, "Paper F", reduced={"seconds": 30},
        substitutes=f"{CLIP}. {PEERS}",
    ),
    Row(
        "F8", "delay of one B1 flow of F7 at rho 1",
        "ECF and ERF about 120 ms on average, TCP's start nearly invisible",
        (
            *(Figure(f"{law}_delay", f"law {law}: delay of B1", "ms", published=120, tolerance=28,
                     better=LOWER, why="as F6") for law in ("erf", "ecf")),
            *(Figure(f"{law}_rise", f"law {law}: rise at TCP's start", "ms", high=10, better=LOWER,
                     why="bound of X12") for law in ("erf", "ecf")),
        ),
        f8, GFC2, "Paper F", reduced={"seconds": 30}, substitutes=f"{CLIP}. {PEERS}",
    ),
    Row(
        "X11", "F6 under ERF", "within 5 % of max-min by 12 s; B at most 80 ms at rho 0.95",
        (
            Figure("settled", "law erf: all within 5 % of max-min from then on", "s", high=12,
                   better=LOWER),
            Figure("delay", "law erf: delay of B1", "ms", high=80, better=LOWER),
        ),
        x11, GFC2, "11.6", reduced={"seconds": 20}, full={"seconds": 30},
        substitutes="shares are of what the law hands out, 0.95 times the links; law erf as this "
        "project has it, which counts flows (the specification's recommendation) and notices "
        "changes: row F6 has it as published",
    ),
    Row(
        "X12", "F7 under ERF", "A, F 500, B, G 250 kbit/s ± 10 %; TCP 6, 12, 26, 18 Mbit/s ± 15 %; "
        "TCP's start raises B's delay by less than 10 ms",
        (*groups("", "law erf", True),
         Figure("rise", "law erf: rise of B1's delay at TCP's start", "ms", high=10, better=LOWER)),
        x12, GFC2, "11.6", reduced={"seconds": 30}, substitutes=CLIP,
    ),
    Row(
        "X14", "30 % of the messages lost", "no divergence; Jain at least 0.95 (ERF), 0.9 (ECF)",
        (
            Figure("erf_jain", "law erf: Jain's index", "", low=0.95),
            Figure("ecf_jain", "law ecf: Jain's index", "", low=0.9),
            Figure("maxmin_jain", "default law: Jain's index", "", low=0.95),
            *(Figure(f"{law}_use", f"law {law}: least use in a second", "%", low=75,
                     why="no divergence") for law in ("erf", "ecf", "maxmin")),
        ),
        x14, "testbed/paqm_lab/multi/robust.py", "11.6", seeds=(1,),
        substitutes="eight flows on 8 Mbit/s; the published gains",
    ),
)
