#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The attack suite: forged, replayed and changed messages in a lab guest, other users of the
sender's host there, a flood in real time.

Writes DIR/result.json with the figures and `checks`; status 1 if one fails. The flood needs root
and two processors; what else runs on the machine is outranked.

Usage: run.py [--build DIR] [--out DIR] [--only lab|flood] [--scale N] | run.py table FILE
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
TOP = HERE.parents[1]
FORGED = 1_000_000
CPU_PERCENT, DELAY_MS = 30.0, 5.0

Json = dict[str, Any]


def check(variant: str, name: str, value: float | None, relation: str, limit: float, unit: str,
          source: str) -> Json:
    met = value is not None and (value <= limit if relation == "<=" else value >= limit)
    return {"variant": variant, "name": name, "value": value, "relation": relation,
            "limit": limit, "unit": unit, "source": source, "pass": met}


def run_lab(build: Path, scale: int) -> Json:
    daemon = build / "feedback-daemon"
    words = [str(TOP / "testbed" / "paqm-lab"), "exec", "--memory", "512M",
             str(HERE / "lab.py"), str(daemon / "paqmd"), str(daemon / "paqmctl"),
             str(daemon / "attack" / "attacker"), str(scale)]
    figures: Json = {}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as proc:
        assert proc.stdout
        for line in proc.stdout:
            if line.startswith("FIGURES "):
                figures = json.loads(line[8:])
            else:
                print("  " + line, end="", flush=True)
    if proc.returncode or not figures:
        raise SystemExit(f"run.py: the lab part failed with status {proc.returncode}")
    return figures


def run_local(build: Path) -> list[str]:
    """What other users of the host, and guests on its bridge, have tried in vain."""
    daemon = build / "feedback-daemon"
    words = [str(TOP / "testbed" / "paqm-lab"), "exec", str(HERE.parent / "tests" / "process.py"),
             "--local", str(daemon / "paqmd"), str(daemon / "paqmctl")]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False)
    print("".join(f"  {line}\n" for line in done.stdout.splitlines()), end="", flush=True)
    if done.returncode or "all passed" not in done.stdout:
        raise SystemExit(f"run.py: the local part failed with status {done.returncode}")
    return [line[3:] for line in done.stdout.splitlines() if line.startswith("ok ")]


def run_flood(build: Path) -> Json:
    daemon = build / "feedback-daemon"
    words = [sys.executable, str(HERE / "flood.py"), str(daemon / "paqmd"),
             str(daemon / "paqmctl"), str(daemon / "attack" / "attacker"),
             str(daemon / "attack" / "prober")]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"run.py: the flood failed with status {done.returncode}")
    figures: Json = json.loads(done.stdout)
    print(f"  {done.stdout}", end="", flush=True)
    return figures


def lab_checks(lab: Json, scale: int) -> list[Json]:
    tries = {k: v for k, v in lab.items() if "arrived" in v}
    off = [k for k in tries if "forged_" in k]
    count = sum(tries[k]["sent"] for k in off)
    arrived = sum(tries[k]["arrived"] for k in off)
    path, keys = lab["on_path_without_keys"], lab["on_path_with_keys"]
    rows = [
        check("lab", "forged_sent", count, ">=", FORGED // scale, "messages", "attacker"),
        check("lab", "forged_judged", arrived / count, ">=", 0.999, "of sent", "paqmctl stats"),
        *(check("lab", f"{k}_believed", v["believed"], "<=", 0, "messages", "paqmctl stats")
          for k, v in tries.items()),
        *(check("lab", f"{k}_judged", v["arrived"], ">=", 1, "messages", "paqmctl stats")
          for k, v in tries.items()),
    ]
    for name in [k for k in lab if k.removesuffix("_tagged").endswith("true")]:
        true = lab[name]
        # the last one may be under way when the counters are read
        rows.append(check("lab", f"{name}_believed", true["believed"] / max(true["sent"], 1), ">=",
                          0.9, "of sent", "paqmctl stats"))
        rows.append(check("lab", f"{name}_refused", true["refused"], "<=", 0, "messages",
                          "paqmctl stats"))
    source = "records of the media sender"
    rows += [
        # without keys it can be done: that these are measured is the check
        check("on path, no keys", "lowered_to_floor", path["lowered_to_floor_s"], "<=", 2, "s",
              source),
        check("on path, no keys", "lifted_to_ceiling", path["lifted_to_ceiling_s"], "<=", 2, "s",
              source),
        check("on path, no keys", "recovery_from_floor", path["recovery_from_floor_s"], "<=", 10,
              "s", source),
        check("on path, no keys", "recovery_from_ceiling", path["recovery_from_ceiling_s"], "<=",
              10, "s", source),
        check("on path, keys", "suppressed_expires", keys["suppressed_expires_s"], "<=", 4, "s",
              source),
        check("on path, keys", "held_back_2s_believed", keys["delayed_2s_believed"], ">=", 1,
              "messages", "paqmctl stats"),
        check("on path, keys", "held_back_5s_believed", keys["delayed_5s_believed"], "<=", 0,
              "messages", "paqmctl stats"),
    ]
    return rows


def flood_checks(got: Json, variant: str) -> list[Json]:
    quiet, flood = got["quiet"], got[variant]
    added = (flood["p99_us"] - quiet["p99_us"]) / 1000
    true = flood["told"] / flood["sent"]
    return [
        check(variant, "arrived", flood["arrived_per_s"], ">=", 0.95 * got["rate_per_s"],
              "messages/s", "paqmctl stats"),
        check(variant, "forged_sent", flood["forged"], ">=", FORGED, "messages", "attacker"),
        check(variant, "forged_judged", sum(flood["refused"].values()) / flood["forged"], ">=",
              0.999, "of sent", "paqmctl stats"),
        check(variant, "cpu", flood["cpu_percent"], "<=", CPU_PERCENT, "% of a core",
              "/proc/PID/stat"),
        check(variant, "delay_added_p99", round(added, 3), "<=", DELAY_MS, "ms", "prober"),
        check(variant, "true_told", true, ">=", 1, "of sent", "prober"),
        check(variant, "forged_believed", flood["believed"] - flood["told"], "<=", 0, "messages",
              "paqmctl stats"),
        check(variant, "lost_by_capture", flood["lost_by_capture"], "<=", 0, "packets",
              "paqmctl stats"),
    ]


def table(result: Json) -> None:
    """The tables of docs/attack.md."""
    lab, flood = result["lab"], result["flood"]
    print("| attempt | sent | judged | believed | refused because |\n|---|---|---|---|---|")
    for name, row in lab.items():
        if "arrived" in row:
            why = ", ".join(f"`{k}` {n}" for k, n in row["refused"].items())
            print(f"| `{name}` | {row['sent']} | {row['arrived']} | {row['believed']} | {why} |")
    print("\n| on the path | without keys | with keys |\n|---|---|---|")
    bare, keys = lab["on_path_without_keys"], lab["on_path_with_keys"]
    for name in dict.fromkeys([*bare, *keys]):
        print(f"| `{name}` | {bare.get(name, '')} | {keys.get(name, '')} |")
    print("\n| | quiet | flood | watched |\n|---|---|---|---|")
    for name in ("forged", "arrived_per_s", "cpu_percent", "p50_us", "p99_us", "max_us", "sent",
                 "told", "believed", "lost_by_capture"):
        print(f"| `{name}` | {flood['quiet'].get(name, 0)} | {flood['flood'][name]} | "
              f"{flood['watched'][name]} |")


def main() -> int:
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("table", nargs="*", help="table DIR/result.json: tables of docs/attack.md")
    ap.add_argument("--build", type=Path, default=TOP / "build")
    ap.add_argument("--out", type=Path, default=TOP / "out" / "attack")
    ap.add_argument("--scale", type=int, default=1, help="forge one N-th of the messages")
    ap.add_argument("--only", choices=["lab", "flood"])
    args = ap.parse_args()
    if args.table:
        table(json.loads(Path(args.table[-1]).read_text()))
        return 0
    args.out.mkdir(parents=True, exist_ok=True)
    path = args.out / "result.json"
    result: Json = json.loads(path.read_text()) if args.only and path.exists() else {}
    if args.only != "flood":
        result["lab"] = run_lab(args.build.resolve(), args.scale)
        result["local"] = run_local(args.build.resolve())
    if args.only != "lab":
        result["flood"] = run_flood(args.build.resolve())
    result["checks"] = []
    if "lab" in result:
        result["checks"] += lab_checks(result["lab"], args.scale)
        result["checks"] += [check("local", name, 1, ">=", 1, "in vain", "process.py")
                             for name in result["local"]]
    if "flood" in result:
        for variant in ("flood", "watched"):
            result["checks"] += flood_checks(result["flood"], variant)
    path.write_text(json.dumps(result, indent=1) + "\n")
    for c in result["checks"]:
        print(f"{'ok' if c['pass'] else 'not ok'} {c['variant']}: {c['name']}: {c['value']} "
              f"({c['relation']} {c['limit']} {c['unit']})")
    failed = sum(not c["pass"] for c in result["checks"])
    print(f"{len(result['checks']) - failed} passed, {failed} failed; {path}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
