#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0
"""What the rate controllers of the streamer must show, measured in the lab.

streamer_checks.py --out out/streamer [--seeds 1 2 3] [--judge]

1. Where no router speaks (scenario `controllers`): auto is no worse than gcc in delay and rate,
   libwebrtc beside them for reference. Means over the seeds: beside TCP in a long queue one run
   differs from the next by 40 ms, with either.
2. Where one speaks (scenario `follow`): auto is told its fair rate, and sends at it, within a
   second of its start and of every change.

Writes result.json with `checks` and prints them; status 1 if one fails.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

Json = dict[str, Any]

TOP = Path(__file__).resolve().parent.parent.parent
LAB = TOP / "testbed" / "paqm-lab"
QUEUES = {"codel": "fq_codel", "fifo": "FIFO"}
SENDERS = ("auto", "gcc", "rtc")
# Means over three seeds of one controller differ by about as much.
DELAY_SLACK_MS = 2.0
RATE_SLACK = 0.98
FOLLOW_S = 1.0
NEAR = 0.1  # of the fair rate
SHARE = 0.92  # of an equal division of all the link: what routers name leaves headroom
MEAN_OVER = 6  # pictures, a quarter of a second


def check(variant: str, name: str, value: float | None, relation: str, limit: float, unit: str,
          source: str) -> Json:
    good = value is not None and (value <= limit if relation == "<=" else value >= limit)
    return {"variant": variant, "name": name, "value": None if value is None else round(value, 3),
            "relation": relation, "limit": round(limit, 3), "unit": unit, "pass": good,
            "source": source}


def run(*words: str) -> int:
    return subprocess.run([str(LAB), *words], cwd=TOP).returncode


def scenario(name: str, out: Path, seed: int) -> Json:
    if run("run", name, "--seed", str(seed), "--out", str(out / name)) != 0:
        raise SystemExit(f"streamer_checks: scenario {name}, seed {seed}, failed")
    return judged(name, out)


def judged(name: str, out: Path) -> Json:
    loaded: Json = json.loads((out / name / "result.json").read_text())
    return loaded


def no_router(result: Json) -> Json:
    """What the streams found where no router speaks."""
    variants = {v["name"]: v for v in result["variants"]}
    table: Json = {}
    for name, variant in variants.items():
        stream, shown = variant["flows"]["a"], variant["figures"]["picture"] or {}
        table[name] = {
            "delay_p50_ms": stream["sojourn_ms"]["p50"],
            "delay_p95_ms": stream["sojourn_ms"]["p95"],
            "rate_mbit": stream["mean_mbit"],
            "loss_percent": stream["loss"]["percent"],
            "vmaf": shown.get("vmaf"),
            "freezes": shown.get("freezes"),
            "frozen_s": shown.get("frozen_s"),
        }
        print(f"{name:<11} " + "  ".join(f"{k} {v}" for k, v in table[name].items()))
    return table


def against_gcc(tables: list[Json]) -> list[Json]:
    """auto against gcc, per queue, on the mean over the seeds."""
    checks = []

    def mean(variant: str, key: str) -> float:
        return sum(table[variant][key] for table in tables) / len(tables)

    for queue, title in QUEUES.items():
        mine, other = f"auto-{queue}", f"gcc-{queue}"
        checks.append(check(f"auto, {title}", "delay_p95_against_gcc", mean(mine, "delay_p95_ms"),
                            "<=", mean(other, "delay_p95_ms") + DELAY_SLACK_MS, "ms",
                            "time in the router of the stream's packets; limit: gcc's and 2 ms"))
        checks.append(check(f"auto, {title}", "rate_against_gcc", mean(mine, "rate_mbit"), ">=",
                            RATE_SLACK * mean(other, "rate_mbit"), "Mbit/s",
                            "mean of the stream; limit: 98 % of gcc's"))
    return checks


def pictures(path: Path, t0_ns: int) -> list[tuple[float, float, float]]:
    """Time, bit/s by bytes on the wire over the last pictures, and allowance."""
    with path.open() as file:
        rows = list(csv.DictReader(file))
    t = [(int(row["t_ns"]) - t0_ns) / 1e9 for row in rows]
    wire = [8 * int(row["wire_bytes"]) for row in rows]
    found = []
    for i in range(MEAN_OVER, len(rows)):
        span = t[i] - t[i - MEAN_OVER]
        found.append((t[i], sum(wire[i - MEAN_OVER : i]) / span, float(rows[i]["allowance_bps"])))
    return found


def follow(result: Json, out: Path) -> list[Json]:
    """From each change until the stream sends, and goes on to send, near its fair rate."""
    home = out / "follow" / "paqm"
    t0_ns = json.loads((home / "run.json").read_text())["t0_ns"]
    variant = result["variants"][0]
    checks = []
    for name, flow in variant["flows"].items():
        sent = pictures(home / "flows" / name / "send" / "frames.csv", t0_ns)
        for segment in flow["segments"]:
            start, stop = segment["start"], segment["stop"]
            if stop - start < 4:
                continue
            inside = [row for row in sent if start < row[0] < stop - 0.5]
            late = [row[2] for row in inside if row[0] > start + (stop - start) / 2]
            if not late:
                raise SystemExit(f"streamer_checks: {name} sent nothing from {start} s on")
            # What the router names in the end is the fair rate of this interval.
            fair = sum(late) / len(late)
            away = [row[0] for row in inside if abs(row[1] - fair) > NEAR * fair]
            held = [row[0] for row in inside if abs(row[2] - fair) > NEAR * fair]
            checks.append(check(
                "auto, P-AQM", f"{name}_fair_from_{start:.0f}_s",
                100 * fair / (1e6 * segment["share_mbit"]), ">=", 100 * SHARE, "%",
                "what the router names in the end, of an equal division of the link"))
            checks.append(check(
                "auto, P-AQM", f"{name}_told_from_{start:.0f}_s",
                max(0.0, max(held, default=start) - start), "<=", FOLLOW_S, "s",
                "frames.csv: allowance within 10 % of what is named in the end"))
            # The mean looks back over a quarter of a second.
            share = sum(1 for t in away if t > start + FOLLOW_S) / max(1, len(inside))
            checks.append(check(
                "auto, P-AQM", f"{name}_sends_from_{start:.0f}_s", 100 * (1 - share), ">=", 95, "%",
                "frames.csv: quarter seconds, from 1 s on, within 10 % of the fair rate"))
    return checks


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, default=TOP / "out" / "streamer")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--judge", action="store_true", help="judge the runs that are there")
    args = parser.parse_args()
    out = args.out.resolve()
    checks: list[Json] = []
    table: Json = {}
    for seed in args.seeds:
        home = out / str(seed)
        home.mkdir(parents=True, exist_ok=True)
        results = {name: judged(name, home) if args.judge else scenario(name, home, seed)
                   for name in ("controllers", "follow")}
        print(f"seed {seed}")
        table[str(seed)] = no_router(results["controllers"])
        checks += [{**row, "seed": seed} for row in follow(results["follow"], home)]
    checks = against_gcc(list(table.values())) + checks
    for row in checks:
        seed_of = f"seed {row['seed']}, " if "seed" in row else ""
        print(f"{'ok' if row['pass'] else 'not ok'} {seed_of}{row['variant']}: {row['name']} "
              f"{row['value']} ({row['relation']} {row['limit']} {row['unit']})")
    (out / "result.json").write_text(json.dumps(
        {"format": 1, "scenario": "streamer", "seeds": args.seeds,
         "versions": results["follow"]["versions"], "controllers": table, "checks": checks},
        indent=1) + "\n")
    return 0 if all(row["pass"] for row in checks) else 1


if __name__ == "__main__":
    sys.exit(main())
