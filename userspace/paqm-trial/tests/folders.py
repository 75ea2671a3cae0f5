# SPDX-License-Identifier: GPL-2.0
"""Makes data folders of a trial whose figures are known, for tests of the report."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

S, MS = 10**9, 10**6
BEGIN = 1_790_000_000 * S
EDGES = [0, *(2**n * 50_000 for n in range(12))]  # 0, 50 us, 100 us, ...


def about(role: str, **more: Any) -> dict[str, Any]:
    return {
        "version": 1,
        "kind": "paqm-trial",
        "machine": role,
        "role": role,
        "keep_days": 90,
        **more,
    }


def dump(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value) + "\n")


def table(path: Path, head: str, rows: list[list[Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([head, *(",".join(map(str, row)) for row in rows)]) + "\n")


class Clock:
    """Of one machine: ahead by so much, drifting, set at a moment."""

    def __init__(self, ahead: int = 0, drift: float = 0.0, step: tuple[int, int] = (0, 0)) -> None:
        self.ahead, self.drift, self.step = ahead, drift, step

    def at(self, true: int) -> int:
        late = self.step[1] if self.step[0] and true >= self.step[0] else 0
        return int(true + self.ahead + self.drift * (true - BEGIN) + late)


def call(
    places: dict[str, Path],
    clocks: dict[str, Clock],
    name: str,
    begin: int,
    seconds: int = 60,
    way_ms: float = 20.0,
    wait_ms: float = 0.0,
    lose: int = 0,
    stall: int = 0,
    seed: int = 1,
) -> None:
    """A call of 20 pictures a second of 4 packets each, both ways; on the way to the callee every
    second picture waits `wait_ms` more, every `lose`-th packet is lost, and pictures stop for a
    second `stall` times."""
    dice = random.Random(f"{name}{seed}")
    for sender, receiver in (("caller", "callee"), ("callee", "caller")):
        bad = receiver == "callee"
        stamp, seq = dice.randrange(2**32), dice.randrange(2**16)
        sent, came, shown = [], [], []
        packet = 0
        for n in range(seconds * 20):
            t = begin + n * 50 * MS
            stalled = bad and any(
                S * (10 + 5 * k) <= t - begin < S * (11 + 5 * k) for k in range(stall)
            )
            stamp = (stamp + 4500) % 2**32
            if stalled:
                continue
            sent.append([clocks[sender].at(t), stamp, 4, 4000])
            wait = wait_ms if bad and n % 2 else 0.0
            for k in range(4):
                arrival = int(t + (way_ms + wait + 0.1 * k) * MS)
                packet += 1
                seq = (seq + 1) % 2**16
                if not (bad and lose and packet % lose == 0):
                    came.append([clocks[receiver].at(arrival), seq, stamp, 1000])
            shown.append([n, clocks[receiver].at(t) + 150 * MS])
        where = places[sender] / "calls" / f"{name}-{sender}"
        table(where / "record/frames.csv", "t_ns,rtp_ts,packets,wire_bytes", sent)
        table(
            where / "record/rtcp.csv",
            "t_ns,media,fraction_lost,packets_lost,jitter_ms,rtt_ms",
            [
                [clocks[sender].at(begin + n * S), "video", 0, 0, 0.5, 2 * way_ms + wait_ms / 2]
                for n in range(seconds)
            ],
        )
        dump(
            where / "about.json",
            {
                "version": 1,
                "id": f"{name}-{sender}",
                "role": sender,
                "label": sender,
                "begin_ns": clocks[sender].at(begin),
                "end_ns": clocks[sender].at(begin + seconds * S),
                "status": 0,
            },
        )
        lines = [
            {"wall_ns": clocks[sender].at(begin + n * S), "mono_ns": n * S + begin - BEGIN + S}
            for n in range(seconds)
        ]
        (where / "clock.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
        there = places[receiver] / "calls" / f"{name}-{receiver}"
        table(there / "record/rx.csv", "t_ns,seq,rtp_ts,wire_bytes", came)
        table(there / "record/video.csv", "index,play_ns", shown)


class Router:
    """Its samples, as time goes by."""

    def __init__(self, folder: Path, clock: Clock, baseline: str = "fq_codel") -> None:
        self.folder, self.clock, self.baseline = folder, clock, baseline
        self.rows: list[dict[str, Any]] = []
        self.sent = 0
        dump(folder / "trial.json", about("router"))
        dump(
            folder / "plan.json",
            {
                "version": 1,
                "device": folder.name,
                "bandwidth": "10mbit",
                "baseline": baseline,
                "alternate": "day",
                "seed": 3,
                "paqm": ["feedback", "icmp"],
            },
        )

    def turn(
        self,
        arm: str,
        begin: int,
        seconds: int,
        wait_us: int = 1000,
        loss: int = 0,
        busy: tuple[int, int] = (0, 0),
    ) -> None:
        """Media packets each of which waited so long; some 80 of 1000 bytes a second, and four
        times as many while it is busy."""
        at = self.clock.at(begin)
        self.rows.append(
            {
                "wall_ns": at,
                "mono_ns": begin - BEGIN + S,
                "event": "attached",
                "arm": arm,
                "edges_ns": EDGES if arm == "paqm" else None,
                "bandwidth_bps": 10e6,
                "baseline": self.baseline,
            }
        )
        hist = [0] * len(EDGES)
        bin_of = max(n for n, edge in enumerate(EDGES) if edge <= wait_us * 1000)
        sent = 0
        for n in range(seconds):
            at = self.clock.at(begin + n * S + 1)
            row: dict[str, Any] = {
                "wall_ns": at,
                "mono_ns": begin + n * S - BEGIN + S,
                "arm": arm,
                "kind": "paqm" if arm == "paqm" else "htb",
                "bytes": sent * 1000,
                "packets": sent,
                "drops": n * loss,
                "backlog": 1250,
                "qlen": 1,
            }
            if arm == "paqm":
                row["paqm"] = {
                    "media": {
                        "sent_bytes": sent * 1000,
                        "sent_packets": sent,
                        "drop_tail_packets": n * loss,
                        "drop_inner_packets": 0,
                        "drop_strike_packets": 0,
                        "backlog_bytes": 0,
                        "flows": 1,
                        "sojourn_hist_packets": list(hist),
                    }
                }
            self.rows.append(row)
            more = 320 if busy[0] <= n < busy[1] else 80 + n % 7
            sent += more
            hist[bin_of] += more

    def write(self) -> None:
        text = "".join(json.dumps(row) + "\n" for row in self.rows)
        (self.folder / "samples-2026-09-21.jsonl").write_text(text)
