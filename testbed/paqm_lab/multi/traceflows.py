# SPDX-License-Identifier: GPL-2.0
"""Trace flows of a network: the programs' words, and what the logs of packets say of a flow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from paqm_lab import trace
from paqm_lab.guest import LEAD, TAIL


def words(
    streamer: Path, ladder: Path, to: str, flows: int, seconds: float, seed: int
) -> tuple[list[str], list[str]]:
    """Of sender and receiver of many flows. The receiver starts by LEAD earlier."""
    many = ["--flows", str(flows)]
    send = [str(streamer), "send", "--trace", str(ladder), "--to", to, *many, "--loop"]
    send += ["--duration", f"{seconds:.6f}", "--seed", str(seed)]
    receive = [str(streamer), "recv", "--trace", "--listen", to, *many]
    receive += ["--duration", f"{LEAD + seconds + TAIL:.6f}"]
    return send, receive


def arrivals(
    sent_to: Path, received: Path, t0: float, width: float, duration: float, begin: float
) -> dict[str, Any]:
    """What the sink of CBR flows tells, of a trace flow.

    Packets count as lost by when they were sent; waits and losses are of those sent from `begin` to
    the end.
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
    waits = 1e6 * delay[chosen & came]
    return {
        "packets": int(came.sum()),
        "bins": [list(row) for row in zip(packets, size, strict=True)],
        "window_sent": int(chosen.sum()),
        "window_packets": len(waits),
        "wait_mean_us": float(waits.mean()) if len(waits) else 0.0,
        "wait_sd_us": float(waits.std()) if len(waits) else 0.0,
        "wait_max_us": float(waits.max()) if len(waits) else 0.0,
    }
