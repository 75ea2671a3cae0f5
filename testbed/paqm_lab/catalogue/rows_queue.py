# SPDX-License-Identifier: GPL-2.0
"""Rows of one queue with traffic of one kind: waiting times, the inner loop, what messages cost."""

from __future__ import annotations

from typing import Any

from paqm_lab.catalogue.row import HIGHER, LOWER, Context, Figure, Json, Row, Values

SCRIPT = "kernel/lab-tests/catalogue.py"
RLQOS = "kernel/lab-tests/rlqos.py"
# So many packets that the inner loop has nothing to say: the queue is M/D/1.
ENDLESS = 20000


def runs(ctx: Context, kind: str, seed: int, *configs: Json) -> list[Json]:
    """Results of so many runs in one guest."""
    found: list[Json] = ctx.guest([SCRIPT, kind, "--seed", str(seed)], seed,
                                  {"runs": list(configs)})["runs"]  # fmt: skip
    return found


def steady(rate: float, size: int, load: float, seconds: float, **more: Any) -> Json:
    return {
        "rate": rate, "size": size, "seconds": seconds, "packets": ENDLESS,
        "offered": [[0, seconds, load]], **more,
    }  # fmt: skip


def a1(ctx: Context, seed: int) -> Values:
    slow, middle, fast = runs(
        ctx, "single", seed,
        steady(10e6, 1500, 0.648, ctx.p["slow_s"], over=10000 - 1200),
        steady(30e6, 1500, 0.870, ctx.p["slow_s"], over=10000 - 400),
        steady(1e9, 1500, 0.9898, ctx.p["fast_s"], over=10000 - 12),
    )  # fmt: skip
    return {
        "mean10": slow["system_us"] / 1000, "over10": slow["over_percent"],
        "mean30": middle["system_us"] / 1000, "over30": middle["over_percent"],
        "mean1000": fast["system_us"] / 1000, "over1000": fast["over_percent"],
    }  # fmt: skip


def a2(ctx: Context, seed: int) -> Values:
    config = {"runs": [{"begin": 0.2, "seconds": ctx.p["seconds"]}]}
    got = ctx.guest([RLQOS, "published", "--seed", str(seed)], seed, config)["runs"][0]
    return {
        "mean": got["mean_ms"], "max": got["max_ms"], "late": got["over_percent"],
        **{f"R{n}": got["use"][n] for n in (1, 2, 3)}, "host": got["use"][0],
        "core": got["lost"], "full": got["host_full"],
        "thinnedhost": got["thinned"][0], "thinned": sum(got["thinned"][1:4]) / 3,
    }  # fmt: skip


WITHIN = ((1, 0.012, 1), (1, 0.18, 10), (10, 0.18, 1), (10, 0.83, 10), (100, 0.83, 1))


def t51(ctx: Context, seed: int) -> Values:
    found = runs(ctx, "single", seed, *(
        steady(mbit * 1e6, 1000, load, ctx.p["packets"] / (mbit * 125 * load), over=ms * 1000.0)
        for mbit, load, ms in WITHIN))  # fmt: skip
    return {
        f"{mbit}m{ms}": 100 - got["over_percent"]
        for (mbit, _, ms), got in zip(WITHIN, found, strict=True)
    }


def t13(ctx: Context, seed: int) -> Values:
    (got,) = runs(ctx, "tcp", seed, {"rate": 12e6, "rtt_ms": 65, "begin": 10.0, "seconds": 60.0})
    return {"use": got["use_percent"]}


def inner(seconds: float, load: float, **more: Any) -> Json:
    """1 Gbit/s, 1500 B, N* 100 packets."""
    return steady(1e9, 1500, load, seconds, packets=100, gain=0.3) | more


def c1(ctx: Context, seed: int) -> Values:
    s = ctx.p["seconds"]
    loads = (0.95, 1.05, 1.25)
    found = runs(ctx, "single", seed, *(inner(s, load) for load in loads))
    return {f"at{load}": got["wait_us"] for load, got in zip(loads, found, strict=True)}


def c2(ctx: Context, seed: int) -> Values:
    found = runs(ctx, "single", seed, *(
        inner(ctx.p["seconds"], 1.0, gain=gain) for gain in (0.05, 0.1, 0.2, 0.3, 0.5, 1.0)
    ))  # fmt: skip
    best = min(found, key=lambda got: float(got["drop_percent"]))
    return {"drop": best["drop_percent"], "use": best["use_percent"]}


def c3(ctx: Context, seed: int) -> Values:
    s = ctx.p["seconds"]
    slight, heavy, even = runs(
        ctx, "single", seed, inner(s, 1.03), inner(s, 1.5), inner(s, 0.98, poisson=False)
    )
    return {
        "max103": slight["max_us"] / 1000, "max150": heavy["max_us"] / 1000,
        "drop": heavy["drop_percent"], "even": even["drop_percent"],
    }  # fmt: skip


def b1(ctx: Context, seed: int) -> Values:
    pulses = [[n * 0.4, n * 0.4 + 0.2, 1.5] for n in range(ctx.p["pulses"])]
    saw = [[n * 0.02, n * 0.02 + 0.02, 2 * (n % 50 + 0.5) / 50] for n in range(50)]
    # what is judged of the square wave is the overload: no packet comes between two of them
    common: Json = {"rate": 1e9, "size": 1500, "packets": 100, "gain": 0.3}
    poisson, even, teeth = runs(
        ctx, "single", seed,
        common | {"seconds": pulses[-1][1], "offered": pulses, "begin": 0.05},
        common | {"seconds": pulses[-1][1], "offered": pulses, "begin": 0.05, "poisson": False},
        common | {"seconds": 1.0, "offered": saw, "begin": 0.5, "poisson": False},
    )  # fmt: skip
    return {
        "poisson": poisson["queue"], "even": even["queue"], "saw": teeth["queue"],
        "sawmax": teeth["max_us"] / 12,
    }  # fmt: skip


def overhead(ctx: Context, seed: int) -> Values:
    few, many, one = runs(
        ctx, "messages", seed,
        {"rate": 30e6, "sources": 5, "period_ms": 160, "rtt_ms": 60, "seconds": ctx.p["seconds"]},
        {"rate": 30e6, "sources": 100, "period_ms": 520, "rtt_ms": 240,
         "seconds": ctx.p["seconds"]},
        {"rate": 1e6, "sources": 1, "period_ms": 500, "rtt_ms": 60, "seconds": ctx.p["seconds"]},
    )  # fmt: skip
    return {
        "few": few["kbit"], "fewpart": few["percent"], "many": many["kbit"],
        "manypart": many["percent"], "path": 5 * one["kbit"] * 1000,
        "bytes": few["message_bytes"], "period5": 5000 / few["per_s"],
        "period100": 100000 / many["per_s"],
    }  # fmt: skip


def x0(ctx: Context, seed: int) -> Values:
    s = ctx.p["seconds"]
    three = {"ceilings": [[1, 200e3], [1, 300e3], [1, 500e3]], "seconds": 40.0}
    n = ctx.p["flows"]
    # the example divides the link by numbers of flows, as published: under maxmin demands count,
    # and what capped flows leave is everybody's (633 kbit/s for media and TCP)
    example = {"rate": n * 1e6, "tcp": n, "seconds": s, "options": ["split", "50%"]}
    narrow, wide, equal, capped = runs(
        ctx, "shares", seed, three | {"rate": 600e3}, three | {"rate": 800e3},
        example | {"ceilings": [[n, 2e6]]},
        example | {"ceilings": [[n // 2, 1e5], [n // 2, 2e6]]},
    )  # fmt: skip
    return {
        **{f"narrow{i}": rate for i, rate in enumerate(narrow["rates_kbit"])},
        **{f"wide{i}": rate for i, rate in enumerate(wide["rates_kbit"])},
        "equal": equal["rates_kbit"][0], "equaltcp": equal["tcp_kbit"] / n,
        "small": capped["rates_kbit"][0], "rest": capped["rates_kbit"][1],
        "resttcp": capped["tcp_kbit"] / n,
    }  # fmt: skip


INNER_SUBSTITUTE = (
    "The law is the final one (Paper D, K 0.3 of the queue's error in an inner period of 1 ms): "
    "the published runs used an earlier one that App. C replaced"
)

ROWS = (
    Row("A1", "one M/D/1 queue, 1500 B: mean time in system and share above 10 ms",
        "10 Mbit/s .648: 2.31 ms, .236 %; 30 Mbit/s .870: 1.76 ms, .186 %; 1 Gbit/s .9898: .52 ms, "
        "0; 1 Gbit/s .9998: 5.52 ms, .223 %; 30 Gbit/s .99986: .462 ms, 0",
        (
            Figure("mean10", "10 Mbit/s, load .648: mean", "ms", published=2.31),
            Figure("over10", "10 Mbit/s, load .648: above 10 ms", "%", published=0.236),
            Figure("mean30", "30 Mbit/s, load .870: mean", "ms", published=1.76),
            Figure("over30", "30 Mbit/s, load .870: above 10 ms", "%", published=0.186),
            Figure("mean1000", "1 Gbit/s, load .9898: mean", "ms", published=0.52),
            Figure("over1000", "1 Gbit/s, load .9898: above 10 ms", "%", published=0.0),
            Figure("mean9998", "1 Gbit/s, load .9998: mean", "ms", printed="5.52 ms",
                   why="not run: such a queue forgets its past in 300 s, or 25 million packets"),
            Figure("mean30g", "30 Gbit/s, load .99986: mean", "ms", printed="0.462 ms",
                   why="not run, for the same reason"),
        ),
        a1, SCRIPT, "8", reduced={"slow_s": 300.0, "fast_s": 4.0},
        full={"slow_s": 1500.0, "fast_s": 20.0}),
    Row("A2", "the predecessor RL-QoS, three routers and two hosts",
        "hosts of 30 Mbit/s with 8 packets, routers of 1 Gbit/s with 200, overloaded: all within "
        "10 ms, 3.75 % above 8 ms, mean about 7.5, longest 9.5; routers 99.9 to 100 %, "
        "host 92 %; core drop 0.2 to 0.3 %, host drop 12.5 % (2470 of 19804)",
        (
            Figure("mean", "mean delay", "ms", published=7.5),
            Figure("max", "longest delay", "ms", high=10.0, better=LOWER, printed="below 10 ms"),
            Figure("late", "above 8 ms", "%", published=3.75, better=LOWER),
            *(Figure(f"R{n}", f"use of router {n}", "%", published=100.0, tolerance=0.5,
                     better=HIGHER, why="printed are 99.9 to 100 %") for n in (1, 2, 3)),
            Figure("host", "use of the host's link", "%", published=92.0, better=HIGHER),
            Figure("core", "lost behind the host", "%", high=0.3, better=LOWER,
                   printed="0.2 to 0.3 %"),
            Figure("full", "lost at the host's full queue, of what was not thinned", "%",
                   published=12.5, better=LOWER),
            Figure("thinnedhost", "thinned at the host", "%"),
            Figure("thinned", "thinned at the routers", "%"),
        ),
        a2, RLQOS, "8; ra-sender.md, 5", reduced={"seconds": 1.2}, full={"seconds": 10.0},
        substitutes="The paper prints no coefficient; those of docs/rlqos.md reproduce its means. "
        "Its messages were variables that all nodes saw; here daemons send them. Packets are "
        "1500 bytes of IP; htb makes the rates, and the time on each link is added"),
    Row("T5.1", "M/D/1, 1000 B: load at which 99 % wait no longer than 1 ms (10 ms)",
        "1 Mbit/s .012 (.18); 10 Mbit/s .18 (.83); 100 Mbit/s .83 (above .99)",
        tuple(Figure(f"{mbit}m{ms}", f"{mbit} Mbit/s, load {load:g}: packets within {ms} ms", "%",
                     published=99.0, tolerance=0.5, why="loads are printed with two digits: the "
                     "share of packets that meet another one is as uncertain as they are")
              for mbit, load, ms in WITHIN),
        t51, SCRIPT, "8", reduced={"packets": 20000}, full={"packets": 200000}),
    Row("T1.3", "one NewReno connection, 12 Mbit/s, RTT 65 ms, a queue of their product",
        "about 100 % of the link",
        (Figure("use", "use of the link", "%", published=100.0, tolerance=2.0, better=HIGHER,
                printed="about 100 %"),),
        t13, SCRIPT, "8", seeds=(1,),
        substitutes="Linux's reno, which has SACK, stands for NewReno"),
    Row("B1", "one node of 1 Gbit/s, N* 100 packets, at most 200",
        "square wave of 0 and 1.5 Gbit/s: the queue's mean is 100 packets; saw-tooth to 2 Gbit/s: "
        "controlled, off N*",
        (
            Figure("poisson", "square wave, Poisson: mean queue", "packets", published=100.0),
            Figure("even", "square wave, even: mean queue", "packets", published=100.0),
            Figure("saw", "saw-tooth, upper half: mean queue", "packets"),
            Figure("sawmax", "saw-tooth: longest queue", "packets", high=200.0),
        ),
        b1, SCRIPT, "8", reduced={"pulses": 4}, full={"pulses": 10},
        substitutes="The period of the waves is not published: 0.4 s, and a tooth of 1 s in 50 "
        "steps. " + INNER_SUBSTITUTE),
    Row("C1", "1 Gbit/s, 1500 B Poisson, load .95 to 1.25, N* 100 packets",
        "below 1: the mean wait of M/D/1 (114 us at .95); from 1 on it tends to 1.2 ms",
        (
            Figure("at0.95", "load .95: mean wait", "us", published=114.0, tolerance=11.4,
                   why="10 %, as in X3"),
            Figure("at1.05", "load 1.05: mean wait", "us", published=1200.0, tolerance=60.0,
                   why="5 % of N*, as in X3"),
            Figure("at1.25", "load 1.25: mean wait", "us", published=1200.0, tolerance=60.0,
                   why="5 % of N*, as in X3"),
        ),
        c1, SCRIPT, "8", reduced={"seconds": 2.0}, full={"seconds": 8.0},
        substitutes=INNER_SUBSTITUTE),
    Row("C2", "1 Gbit/s, load 1.0, sweep of the gain: the least that is dropped",
        "0.57 % with use 99.4 % (0.69 % with 99.3 % at the gain that is best otherwise)",
        (
            Figure("drop", "least dropped of K 0.05 to 1", "%", published=0.57, better=LOWER),
            Figure("use", "use of the link there", "%", published=99.4, tolerance=0.1,
                   better=HIGHER, why="printed to 0.1 %"),
        ),
        c2, SCRIPT, "8", reduced={"seconds": 2.0}, full={"seconds": 8.0},
        substitutes=INNER_SUBSTITUTE),
    Row("C3", "1 Gbit/s, load 1.03 and 1.5: longest wait and drops",
        "1.4 ms at 1.03; 1.6 ms at 1.5, a third dropped; even traffic below capacity: none dropped",
        (
            Figure("max103", "load 1.03: longest wait", "ms", published=1.4, better=LOWER),
            Figure("max150", "load 1.5: longest wait", "ms", published=1.6, better=LOWER),
            Figure("drop", "load 1.5: dropped", "%", published=33.3, tolerance=1.0,
                   why="1 %, as in X3"),
            Figure("even", "even, load .98: dropped", "%", published=0.0, better=LOWER),
        ),
        c3, SCRIPT, "8", reduced={"seconds": 2.0}, full={"seconds": 8.0},
        substitutes=INNER_SUBSTITUTE),
    Row("X0", "max-min sanity: ceilings of 200, 300, 500 kbit/s; media beside TCP",
        "on 600 kbit/s 200 each, on 800 kbit/s 200, 300, 300; equal flows 500 kbit/s each; half of "
        "media capped at 100 kbit/s: the other half has 900",
        (
            *(Figure(f"narrow{i}", f"600 kbit/s, ceiling {cap} kbit/s: rate", "kbit/s",
                     published=200.0) for i, cap in enumerate((200, 300, 500))),
            *(Figure(f"wide{i}", f"800 kbit/s, ceiling {cap} kbit/s: rate", "kbit/s",
                     published=rate) for i, (cap, rate) in enumerate(
                         ((200, 200.0), (300, 300.0), (500, 300.0)))),
            Figure("equal", "media, as many TCP flows: rate of one", "kbit/s", published=500.0),
            Figure("equaltcp", "media, as many TCP flows: rate of a TCP flow", "kbit/s",
                   published=500.0),
            Figure("small", "half of media capped: rate of a capped one", "kbit/s",
                   published=100.0),
            Figure("rest", "half of media capped: rate of another", "kbit/s", published=900.0),
            Figure("resttcp", "half of media capped: rate of a TCP flow", "kbit/s",
                   published=500.0),
        ),
        x0, SCRIPT, "11.6 and 2.5", reduced={"flows": 10, "seconds": 20.0},
        full={"flows": 100, "seconds": 20.0},
        substitutes="Law maxmin; the example with `split 50%`, since by default what capped flows "
        "leave is everybody's: all others have 633 kbit/s. Reduced: 10 Mbit/s with 10 and 10 "
        "flows, not 100 Mbit/s with 100 and 100"),
    Row("overhead", "what messages cost",
        "5 sources, 160 ms: 14 kbit/s, .05 % of 30 Mbit/s; 100 sources, 520 ms: 86 kbit/s, .3 %; a "
        "flow over five routers, 0.5 s: 5120 bit/s",
        (
            Figure("few", "5 sources, period 160 ms", "kbit/s", published=14.0, better=LOWER),
            Figure("fewpart", "5 sources: part of the link", "%", published=0.05, better=LOWER),
            Figure("many", "100 sources, period 520 ms", "kbit/s", published=86.0, better=LOWER),
            Figure("manypart", "100 sources: part of the link", "%", published=0.3, better=LOWER),
            Figure("path", "a flow over five routers, period 0.5 s", "bit/s", published=5120.0,
                   better=LOWER),
            Figure("bytes", "size of a message", "bytes", printed="56 (64 in chapter 6)"),
            Figure("period5", "5 sources: period in force", "ms", published=160.0),
            Figure("period100", "100 sources: period in force", "ms", published=520.0),
        ),
        overhead, SCRIPT, "6.5", reduced={"seconds": 25.0}, seeds=(1, 2),
        substitutes="Preset thesis-ecf; messages are those of this project, which quote more of "
        "the packet. Five routers: five times what one sends"),
    Row("interlace", "interlaced coding of Appendix B, four cases",
        "pictures of uncompressed video: rows with one stream protected and 25 % lost, and with "
        "20 % lost; quarters with one stream protected and half lost, and with 20 % lost", (),
        incomparable="the source shows stills and no figure, of video that is not coded; "
        "docs/losses.md has what coding in parts costs and saves with a real encoder"),
)  # fmt: skip
