# SPDX-License-Identifier: GPL-2.0
"""`paqm-lab sfu`: a server of fifty viewers behind one uplink, by advice and by its own estimator.

Runs the systems of sfu_case.py, counts what viewers saw and what the queue lost, judges, prints.
Every call leaves result.json of all runs that are there.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from paqm_lab import (
    cache,
    checks,
    lab,
    metrics,
    packets,
    sfu_case,
    sfu_docs,
    sfu_layers,
    suite,
    uml,
)
from paqm_lab.errors import LabError
from paqm_lab.multi import main as networks
from paqm_lab.multi.case import Case, Run
from paqm_lab.sfu_case import DURATION, JUDGED, PAIRS, SYSTEMS, TCP_FROM, TCP_UNTIL

Json = dict[str, Any]

MORE = ("sfu", "sfu_case", "sfu_layers", "multi/case", "multi/guest", "multi/main",
        "multi/netscenario")  # fmt: skip
END = 0.5  # s before the end from which packets sent need not have come


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def viewers(told: list[Json]) -> Json:
    """What viewers saw from JUDGED on; to who saw nothing all of it is a stall."""
    nothing = [{"at_s": JUDGED, "s": DURATION - JUDGED}]
    frozen = [[one for one in viewer["freezes"] if one["at_s"] + one["s"] > JUDGED]
              if viewer["pictures"] else nothing for viewer in told]
    rates = [float(np.mean(viewer["kbit_by_second"][int(JUDGED) : int(DURATION)]))
             for viewer in told]
    beside = [float(np.mean(viewer["kbit_by_second"][int(TCP_FROM) + 3 : int(TCP_UNTIL)]))
              for viewer in told]
    return {
        "viewers": len(told),
        "stalls": sum(map(len, frozen)),
        "stalled_s": sum(one["s"] for some in frozen for one in some),
        "stalled_viewers": sum(map(bool, frozen)),
        "pictures": sum(viewer["pictures"] for viewer in told),
        "pictures_least": min(viewer["pictures"] for viewer in told),
        "first_picture_worst_s": max(
            viewer["first_picture_s"] if viewer["first_picture_s"] >= 0 else DURATION
            for viewer in told),
        "lost_for_good": sum(viewer["lost_packets"] for viewer in told),
        "kbit_mean": float(np.mean(rates)),
        "kbit_least": min(rates),
        "kbit_mean_beside_tcp": float(np.mean(beside)),
    }  # fmt: skip


def wire(run: Run) -> Json:
    """What became of the media's packets between the server and the viewers."""
    net, t0 = run.case.net, run.saved("guest.json")["t0_ns"]
    ends = [packets.ip_number(net.address(host)) for host in ("S", "V")]
    found = []
    for host, outgoing in (("S", True), ("V", False)):
        log = packets.read(run.directory / f"{host}.pcap")
        mine = (log.src == ends[0]) & (log.dst == ends[1]) & log.rtp
        mine &= log.outgoing == outgoing
        found.append((log.key[mine], (log.t_ns[mine] - t0) / 1e9))
    (keys, t), (there, arrived) = found
    order = np.argsort(there, kind="stable")
    place = np.searchsorted(there[order], keys)
    came = place < len(there)
    came[came] = there[order][place[came]] == keys[came]
    counts = t < DURATION - END
    took = 1000 * (arrived[order][place[came]] - t[came])
    delay = metrics.summary(np.asarray(took - took.min(initial=np.inf), np.float64))
    return {
        "packets": int(counts.sum()),
        "lost_in_queue": int((counts & ~came).sum()),
        "delay_p50_ms": delay["p50"],
        "delay_p95_ms": delay["p95"],
        "delay_p99_ms": delay["p99"],
    }


def figures(run: Run) -> Json:
    """All figures of a run."""
    tcp = json.loads((run.directory / "log" / "sink-tcp.log").read_text())
    flows = [flow for flow in run.case.flows if flow.sender == "tcp"]
    rates = [run.mean_rate(flow, TCP_FROM + 3, TCP_UNTIL) for flow in flows] if tcp else []
    # of a server that follows, and pion's; of a publisher that is told its rate
    logs = [run.directory / "log" / name for name in ("sfu.jsonl", "publish.log")]
    # what pion complains of stands in the same files
    changes = [json.loads(line) for log in logs if log.exists()
               for line in log.read_text().splitlines() if line.startswith("{")]  # fmt: skip
    told = json.loads((run.directory / "log" / "view.log").read_text().splitlines()[-1])
    return {
        **viewers(told["viewers"]),
        **wire(run),
        "layer_changes": sum("layer" in one for one in changes) or None,
        "tcp_mbit": sum(rates) / 1e6,
    }


def run_point(
    point: suite.Point, out: Path, score: bool, keep: bool, tell: Callable[[str], None]
) -> None:
    """One run from boot to figures."""
    home = point.home(out)
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    house, single = lab.ready(lambda text: None), SYSTEMS[point.queue].server == "janus"
    if single:
        house = lab.with_extra(house, "janus", tell)
    made: Case = sfu_case.case(point.data, point.seed, sfu_layers.prepare(tell, single))
    networks.run_case(made, home / point.queue, house, point.seed)
    found = figures(Run(made, home / point.queue))
    (home / "result.json").write_text(
        suite.as_json({"figures": found, "versions": house.versions()})
    )
    if not keep:
        for path in (home / point.queue).glob("*.pcap"):
            path.unlink()


def point(system: str, seed: int) -> suite.Point:
    """The run of a system, and which programs it is of."""
    data = sfu_case.scenario(system)
    data["title"] += f" (programs {sfu_case.sources()})"
    return suite.Point("sfu", system, seed, data)


def judge(found: dict[str, Json], seed: int) -> list[Json]:
    """The checks; a server's own estimator over fq_codel is what advice is measured by."""
    made = []
    for name, rival in PAIRS.items():
        if name not in found or rival not in found:
            continue
        ours, theirs = found[name], found[rival]
        source = f"runs/sfu/{name}-{seed}, {rival}-{seed}"
        rows = [
            ("lost_in_queue", ours["lost_in_queue"], "<=", 0, "packets"),
            ("stalls", ours["stalls"], "<=", theirs["stalls"] / 2, "of all viewers"),
            ("stalled_s", ours["stalled_s"], "<=", theirs["stalled_s"] / 2, "s of all viewers"),
            ("viewers", ours["viewers"], ">=", sfu_case.VIEWERS, "viewers"),
        ]
        made += [checks.entry(name, key, value, relation, limit, unit, source)
                 for key, value, relation, limit, unit in rows]  # fmt: skip
    return made


def result(out: Path, seed: int) -> Json:
    """result.json from whatever runs are there."""
    found: dict[str, Json] = {}
    versions: list[Json] = []
    for system in SYSTEMS:
        path = suite.Point("sfu", system, seed, {}).home(out) / "result.json"
        if path.exists():
            told = json.loads(path.read_text())
            found[system] = told["figures"]
            if told["versions"] not in versions:
                versions.append(told["versions"])
    return {
        "format": 1, "scenario": "sfu", "title": sfu_case.scenario("paqm")["title"], "seed": seed,
        "versions": versions, "missing": [name for name in SYSTEMS if name not in found],
        "systems": found, "checks": judge(found, seed),
    }  # fmt: skip


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--systems", metavar="NAME,...", help=f"only these of {', '.join(SYSTEMS)}")
    parser.add_argument("--seed", type=uml.seed, default=1, metavar="N",
                        help="seed of the run (%(default)s)")
    parser.add_argument("--out", default=str(cache.REPO / "out" / "sfu"), metavar="DIR",
                        help="for the results (%(default)s)")
    parser.add_argument("--jobs", type=suite.count, default=suite.JOBS, metavar="N",
                        help="guests at a time (%(default)s)")  # fmt: skip
    parser.add_argument("--judge", action="store_true", help="run nothing, judge what is there")
    parser.add_argument("--docs", action="store_true",
                        help="run nothing, write docs/sfu.md and docs/results/sfu.json")
    parser.add_argument("--again", action="store_true", help="repeat runs whose result is there")
    parser.add_argument("--pcap", action="store_true", help="keep captures")


def main(args: argparse.Namespace) -> int:
    """Runs, judges, prints; status 1 if a run or a check fails."""
    out = Path(args.out).resolve()
    systems = args.systems.split(",") if args.systems else list(SYSTEMS)
    for name in systems:
        if name not in SYSTEMS:
            raise LabError(f'there is no system "{name}"; there are {", ".join(SYSTEMS)}')
    failed: list[str] = []
    if not (args.judge or args.docs):
        sfu_case.programs(systems)
        points = [point(name, args.seed) for name in systems]
        if args.again:
            for one in points:
                suite.forget(one, out)
        failed = suite.run_all(points, out, say, False, args.pcap, args.jobs, run_point, MORE)
    if not (out / "runs").is_dir():
        raise LabError(f"{out}: no runs here; run some first")
    data = result(out, args.seed)
    (out / "result.json").write_text(suite.as_json(data))
    if args.docs:
        for path in sfu_docs.write(suite.as_json(data)):
            say(f"sfu: {path}")
        return 0
    print(sfu_docs.table(data))
    status = checks.print_table(out) if data["checks"] else 0
    for line in failed:
        say(line)
    return 1 if failed else status
