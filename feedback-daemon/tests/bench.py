#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Capacity of paqmd, in real time: 10,000 flows and 64 routers or one, memory, and how long a rate
takes from the capture of its message to the sender. Two network namespaces of this machine; needs
root. Nothing else should run: what is measured includes the wait for a processor. On a machine that
is busy, chrt -r 10 lets daemon and load pass.

Usage: bench.py [--out DIR] [--only NAME] BUILD
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from host import family, status
from rig import ROUTER_IP, SENDER_IP, Trial, new_trial

FLOWS, SECONDS = 10_000, 15
# Messages a second, media packets for each, packets of each flow beforehand, routers. quiet: as
# many messages as a host with a few hundred flows gets, after each flow has sent so much that the
# memory for digests is used up; media: what these flows send; every: each flow is told four times a
# second; one: all of them by the same router. Beyond 1200 messages a second paqmd reads them in
# lots (capturer.c: MUCH_MESSAGES).
RUNS = {"quiet": (1_000, 1, 130, 64), "media": (1_000, 20, 0, 64), "full": (4_000, 1, 0, 64),
        "fast": (10_000, 1, 0, 64), "lots": (20_000, 1, 0, 64), "every": (40_000, 1, 0, 64),
        "one": (40_000, 1, 0, 1)}  # fmt: skip
P99_MS_MAX = 1.0
CPU_PERCENT_MAX = 25.0
MIB_MAX = 64.0


def cpu_s(pid: int) -> float:
    """Processor time that a process has used."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def measure(trial: Trial, load: str, name: str) -> dict[str, Any]:
    """One daemon, one load."""
    rate, media, burst, routers = RUNS[name]
    trial.start("-i", "veth0")
    assert trial.daemon
    pids = family(trial.daemon.pid)
    inside = ["ip", "netns", "exec", trial.net.sender]
    before = sum(cpu_s(pid) for pid in pids)
    done = subprocess.run(
        [*inside, load, str(trial.ipc), f"/run/netns/{trial.net.router}", SENDER_IP, ROUTER_IP,
         str(FLOWS), str(routers), str(rate), str(SECONDS), str(burst), str(media)],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    figures: dict[str, Any] = json.loads(done.stdout)
    stats = trial.stats()
    figures |= {
        "messages_per_s": rate,
        "media_per_s": rate * media,
        "believed": stats["accepted"],
        "routers": len(trial.ask("routers")["routers"]),
        # not that of the burst
        "cpu_percent": None if burst else round(
            100 * (sum(cpu_s(pid) for pid in pids) - before) / SECONDS, 1),
        "rss_mib": round(sum(int(status(p)["VmHWM"].split()[0]) for p in pids) / 1024, 1),
        "dropped": sum(c["dropped"] for c in stats["captures"]),
        "refused": {k: v for k, v in stats["refused"].items() if v},
    }
    trial.stop()
    return figures


def checks_of(name: str, f: dict[str, Any]) -> list[dict[str, Any]]:
    """What is demanded of a run."""
    rows = [
        (f"{name}_flows", f["registered"], FLOWS, "flows", f["registered"] >= FLOWS),
        (f"{name}_routers", f["routers"], RUNS[name][3], "routers",
         f["routers"] == RUNS[name][3]),
        (f"{name}_refused", sum(f["refused"].values()), 0, "messages", not f["refused"]),
        (f"{name}_believed", f["believed"] / f["sent"], 0.999, "of the messages",
         f["believed"] >= 0.999 * f["sent"]),
        (f"{name}_memory", f["rss_mib"], MIB_MAX, "MiB", f["rss_mib"] <= MIB_MAX),
        (f"{name}_latency_p99", f["p99_ms"], P99_MS_MAX, "ms", 0 < f["p99_ms"] <= P99_MS_MAX),
    ]  # fmt: skip
    if RUNS[name][0] >= 4 * FLOWS:  # else many are told less often than advice lives
        rows.append((f"{name}_expired", f["expired"], 0, "flows", not f["expired"]))
    if f["cpu_percent"] is not None:
        rows.append((f"{name}_cpu", f["cpu_percent"], CPU_PERCENT_MAX, "% of a core",
                     f["cpu_percent"] <= CPU_PERCENT_MAX))  # fmt: skip
    return [
        {"name": row[0], "value": row[1], "limit": row[2], "unit": row[3], "pass": row[4]}
        for row in rows
    ]


def main() -> int:
    """Measure, write, judge."""
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--out", type=Path, default=Path("out/bench-daemon"))
    ap.add_argument("--only", choices=RUNS)
    ap.add_argument("build", type=Path)
    args = ap.parse_args()
    part = args.build.resolve() / "feedback-daemon"
    if os.geteuid():
        print("bench: needs root for network namespaces", file=sys.stderr)
        return 2
    result: dict[str, Any] = {"load": os.getloadavg()[0], "cpus": os.cpu_count(), "runs": {}}
    with new_trial(str(part / "paqmd"), str(part / "paqmctl")) as trial:
        # only what is sent here may use the ports
        trial.media.close()
        trial.command.remove("-v")
        for name in [args.only] if args.only else RUNS:
            load = str(part.parent / "libpaqmclient" / "bench_load")
            figures = measure(trial, load, name)
            result["runs"][name] = figures
            print(f"{name}: {figures}", flush=True)
    result["checks"] = [c for name, f in result["runs"].items() for c in checks_of(name, f)]
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "result.json").write_text(json.dumps(result, indent=1) + "\n")
    for c in result["checks"]:
        print(f"{'ok' if c['pass'] else 'not ok'} {c['name']}: {c['value']:.4g} {c['unit']} "
              f"(limit {c['limit']})")
    return 0 if all(c["pass"] for c in result["checks"]) else 1


if __name__ == "__main__":
    sys.exit(main())
