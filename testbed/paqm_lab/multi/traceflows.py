# SPDX-License-Identifier: GPL-2.0
"""Trace flows of a network: the programs' words, and what the logs of packets say of a flow."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from paqm_lab import trace
from paqm_lab.guest import LEAD, TAIL

F64 = npt.NDArray[np.float64]
STEP = 5.0  # s
WAIT_STEP = 1e-4  # s, of the numbers of waits, as in kernel/lab-tests/spec_traffic_sink.c
DEADLINE = trace.Limit("deadline-150ms", deadline=0.15)


def words(
    streamer: Path, ladder: Path, to: str, flows: int, seconds: float, seed: int
) -> tuple[list[str], list[str]]:
    """Of sender and receiver of many flows. The receiver starts by LEAD earlier."""
    send = [str(streamer), "send", "--trace", str(ladder), "--to", to, "--flows", str(flows)]
    send += ["--loop"]
    send += ["--duration", f"{seconds:.6f}", "--seed", str(seed)]
    return send, _receiver(streamer, to, flows, seconds)


def _receiver(streamer: Path, to: str, flows: int, seconds: float) -> list[str]:
    receive = [str(streamer), "recv", "--trace", "--listen", to, "--flows", str(flows)]
    return [*receive, "--duration", f"{LEAD + seconds + TAIL:.6f}"]


def level_words(
    streamer: Path, application: str, immediate: bool, size: int, dscp: int, to: str, flows: int,
    seconds: float, seed: int,
) -> tuple[list[str], list[str]]:
    """The same of applications with five levels."""
    tag = ["--dscp", str(dscp)]
    send = [str(streamer), "send", "--levels", application, "--packet", str(size), *tag]
    send += ["--to", to, "--flows", str(flows), "--duration", f"{seconds:.6f}"]
    send += ["--seed", str(seed), "--paqmd", "none"]
    receive = _receiver(streamer, to, flows, seconds)
    return send, [*receive, "--controller", "levels:immediate=1" if immediate else "levels", *tag]


def _steps(left: F64, waits: F64, duration: float) -> list[list[float]]:
    """Packets that came and the sum of their waits, by when they were sent, STEP by STEP."""
    count = int(np.ceil(duration / STEP))
    at = np.clip((left / STEP).astype(np.int64), 0, count - 1)
    sums = np.bincount(at, waits, minlength=count)
    return [list(pair) for pair in zip(np.bincount(at, minlength=count).tolist(), sums.tolist(),
                                       strict=True)]


def _waits(waits: F64) -> list[list[int]]:
    """How many packets waited for so many WAIT_STEP, rounded down."""
    steps, counts = np.unique(np.floor(waits / WAIT_STEP).astype(np.int64), return_counts=True)
    return [list(pair) for pair in zip(steps.tolist(), counts.tolist(), strict=True)]


def _advice(path: Path, t0: float) -> list[list[float]]:
    """When the sender was told which rate, s and bit/s."""
    if not path.exists():
        return []
    with path.open(newline="") as f:
        return [[int(row["t_ns"]) / 1e9 - t0, float(row["rate_bps"])] for row in csv.DictReader(f)]


def arrivals(
    sent_to: Path, received: Path, t0: float, width: float, duration: float, begin: float
) -> dict[str, Any]:
    """What the sink of CBR flows tells, of a trace flow, and what became of the `whole` run.

    Waits are of packets sent from `begin` to the end; late is a picture that is not complete within
    150 ms of its first packet's sending.
    """
    sent = trace.read_sent(sent_to / "tx.csv")
    delay = trace.read_arrivals(received / "rx.csv", sent)
    left = sent.t / 1e9 - t0
    came = np.isfinite(delay)
    count = round(duration / width)
    bins = np.floor((left[came] + delay[came]) / width).astype(np.int64)
    within = (bins >= 0) & (bins < count)
    packets = np.bincount(bins[within], minlength=count).tolist()
    size = np.bincount(bins[within], sent.wire[came][within], minlength=count).tolist()
    chosen = (left >= begin) & (left < duration)
    waits, every = 1e6 * delay[chosen & came], 1e6 * delay[came]
    shown = trace.accept(sent, trace.frame_arrivals(sent, delay), DEADLINE, 0)
    return {
        "packets": int(came.sum()),
        "bins": [list(row) for row in zip(packets, size, strict=True)],
        "window_sent": int(chosen.sum()),
        "window_packets": len(waits),
        "wait_mean_us": float(waits.mean()) if len(waits) else 0.0,
        "wait_sd_us": float(waits.std()) if len(waits) else 0.0,
        "wait_max_us": float(waits.max()) if len(waits) else 0.0,
        "waits": _waits(delay[chosen & came]),
        "offered": np.bincount(
            np.clip((left / width).astype(np.int64), 0, count), sent.wire, minlength=count
        ).astype(np.int64).tolist()[:count],
        "advice": _advice(sent_to / "feedback.csv", t0),
        "steps": _steps(left[came], every, duration),
        "whole": {
            "sent": len(delay), "came": len(every), "wait_us": float(every.sum()),
            "wait_max_us": float(every.max()) if len(every) else 0.0,
            "pictures": len(shown), "late": int((~shown).sum()),
        },
    }  # fmt: skip
