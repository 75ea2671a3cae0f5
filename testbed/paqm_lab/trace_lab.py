# SPDX-License-Identifier: GPL-2.0
"""`make trace`: many trace flows through one bottleneck, in one guest.

The set-up of the thesis (Paper E, section 6.3): 64 adaptive video flows join within 16 s and share
40 Mbit/s at 40 ms round trip (with --flows another number of them, and of the link in proportion).
Beside the default law the published queue, with daemon and sender as published (relative values and
nothing else, plans with the exact size of the next group, pictures in bursts), and a queue that
gives no advice. Judged are all flows by their packets, and the first by its pictures. Writes
result.json with `checks`.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np

from paqm_lab import cache, clip, lab, ladder, trace, trace_scenario, uml
from paqm_lab.checks import Check, entry, print_table
from paqm_lab.errors import LabError
from paqm_lab.trace_scenario import TraceScenario, jain, prepare_ladder, run_guest

FLOWS = 64
DURATION = 64
SPREAD = 16.0  # s within which all flows have joined
SETTLED = 24.0  # s from which rates are compared
BOTTLENECK_PER_FLOW = 625_000
RTT_MS = 40
RATE_MAX = 1_000_000
# The senders answer at their next group of pictures only, and a group's first picture is several
# times a usual one: the published target, 50 kB, which are 10 ms.
SLOW = "gop 500ms media-target 10ms"
LIMITS = ("none", "buffer:0.5", "buffer:0.15", "deadline:0.15")
VARIANTS: tuple[dict[str, Any], ...] = (
    {
        "name": "paqm",
        "title": "P-AQM, live",
        "qdisc": f"paqm bandwidth {{bottleneck}} feedback icmp {SLOW}",
        "sender": [],
    },
    {
        "name": "paqm-ecf",
        "title": "P-AQM, law and sender as published",
        "qdisc": "paqm bandwidth {bottleneck} preset thesis-ecf media-target 10ms",
        "use": "thesis-ecf",
        "sender": ["--a-priori", "--burst", "--controller", "erf:start=1"],
    },
    {
        "name": "fq_codel",
        "title": "fq_codel, receiver reports only",
        "shaper": "htb",
        "qdisc": "fq_codel",
        "sender": [],
    },
)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def figures_of_all(out: Path, flows: int) -> dict[str, Any]:
    """What the packets of all flows say."""
    bottleneck = flows * BOTTLENECK_PER_FLOW
    lost = packets = 0
    delays, rates, total = [], [], 0
    origin = min(
        int(trace.read_sent(out / "send" / f"flow{i:03d}" / "tx.csv").t[0]) for i in range(flows)
    )
    for i in range(flows):
        name = f"flow{i:03d}"
        sent = trace.read_sent(out / "send" / name / "tx.csv")
        delay = trace.read_arrivals(out / "recv" / name / "rx.csv", sent)
        packets += len(delay)
        lost += int((~np.isfinite(delay)).sum())
        delays.append(delay[np.isfinite(delay)])
        t, wire = trace.received_bytes(out / "recv" / name / "rx.csv")
        since = (t - origin) / 1e9
        settled = (since >= SETTLED) & (since < DURATION)
        rates.append(float(wire[settled].sum()) * 8 / (DURATION - SETTLED))
        total += int(wire[settled].sum())
    delay = np.concatenate(delays) * 1000
    return {
        "packets": packets,
        "loss_percent": round(100 * lost / packets, 4),
        "delay_ms": {
            "mean": round(float(delay.mean()), 2),
            "p95": round(float(np.percentile(delay, 95)), 2),
            "p99": round(float(np.percentile(delay, 99)), 2),
            "max": round(float(delay.max()), 2),
        },
        "use_percent": round(100 * total * 8 / (DURATION - SETTLED) / bottleneck, 2),
        "jain": round(jain(rates), 5),
        "rate_kbps": {
            "mean": round(float(np.mean(rates)) / 1000, 1),
            "least": round(min(rates) / 1000, 1),
            "most": round(max(rates) / 1000, 1),
        },
    }


def scenario_of(flows: int) -> TraceScenario:
    """The set-up with so many flows."""
    return trace_scenario.check(Path("trace"), {
        "name": "trace",
        "title": "Many trace flows through one bottleneck",
        "duration": DURATION,
        "seed": 1,
        "path": {"bottleneck": f"{flows * BOTTLENECK_PER_FLOW}bit", "rtt_ms": RTT_MS},
        "trace": {"flows": flows, "rate_max": f"{RATE_MAX}bit", "spread": SPREAD},
        "variant": list(VARIANTS),
    })


def run_variant(
    variant: dict[str, Any], made: ladder.Ladder, source: Path, out: Path, seed: int, flows: int
) -> dict[str, Any]:
    """One guest with all flows; its figures."""
    directory = out / variant["name"]
    say(f"trace: {variant['title']}: {flows} flows for {DURATION} s")
    chosen = scenario_of(flows)
    wall = run_guest(chosen, variant, seed, directory, lab.ready(say), made)
    say(f"trace: {variant['title']}: {wall:.0f} s; judging the first flow")
    report = trace.post(
        made.path,
        source,
        directory / "send" / "flow000",
        directory / "recv" / "flow000",
        [trace.parse_limit(text) for text in LIMITS],
        directory / "first",
        directory / "first.h264",
    )
    return {
        "name": variant["name"],
        "title": variant["title"],
        "qdisc": chosen.config(variant, seed)["variant"]["qdisc"],
        "wall_s": round(wall, 1),
        "all": figures_of_all(directory, flows),
        "first": report,
    }


def _check(variant: str, name: str, value: float, relation: str, limit: float, unit: str) -> Check:
    source = f"{variant}/send, {variant}/recv"
    return entry(variant, name, value, relation, limit, unit, source)


def checks(variants: list[dict[str, Any]]) -> list[Check]:
    """What must hold. Published: thesis, Paper E table 2, row s1 (no drops, Jain above 0.99)."""
    rows = []
    for v in variants:
        name = v["name"]
        rows.append(
            _check(name, "recording_equal", float(v["first"]["recording_equal"]), ">=", 1, "")
        )
        rows.append(_check(name, "wall_per_virtual", round(v["wall_s"] / DURATION, 3), "<=", 1, ""))
        if name.startswith("paqm"):
            rows.append(_check(name, "jain", v["all"]["jain"], ">=", 0.99, ""))
    first = variants[0]
    rows.append(_check("paqm", "loss", first["all"]["loss_percent"], "<=", 0.0, "%"))
    rows.append(
        _check(
            "paqm",
            "psnr_lost_at_150ms",
            round(
                first["first"]["sent"]["psnr_y"]
                - first["first"]["limits"]["deadline-150ms"]["psnr_y"],
                3,
            ),
            "<=",
            0.1,
            "dB",
        )
    )
    return rows


def run_all(made: ladder.Ladder, source: Path, out: Path, seed: int, flows: int) -> int:
    """All variants, result.json; status 1 if a check fails."""
    lab.forget_result(out)
    variants = [run_variant(v, made, source, out, seed, flows) for v in VARIANTS]
    result = {
        "version": 1,
        "scenario": "trace",
        "seed": seed,
        "flows": flows,
        "duration": DURATION,
        "variants": variants,
        "checks": checks(variants),
    }
    (out / "result.json").write_text(json.dumps(result, indent=1) + "\n")
    return print_table(out)


def _flows(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,3}", text) or not 1 <= int(text) <= trace_scenario.FLOWS_MOST:
        expected = f"expected 1 to {trace_scenario.FLOWS_MOST}"
        raise argparse.ArgumentTypeError(f"{text!r}: {expected}")
    return int(text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/trace"),
                        help="for the results (%(default)s)")
    parser.add_argument("--seed", type=uml.seed, default=1, help="seed of the run (%(default)s)")
    parser.add_argument("--flows", type=_flows, default=FLOWS, help="(%(default)s)")
    args = parser.parse_args()
    out = args.out.resolve()
    try:
        source = clip.prepare(cache.cache_dir(), say)
        made = prepare_ladder(source, say)
        with lab.alone_in(out):
            return run_all(made, source, out, args.seed, args.flows)
    except LabError as err:
        say(f"paqm-lab: {err}")
        return 2
