# SPDX-License-Identifier: GPL-2.0
"""What the logs say: sojourn, loss, shares, convergence, link use, frame delivery, quantizers.

Pure functions over arrays. Conventions, the same for every variant:
- Times are seconds since the start of the scenario.
- A byte is counted as the qdisc counts it: the IP packet plus 14 bytes of Ethernet header. The
  bottleneck's rate, link use, flow rates and fair shares all use it. A stream's own maximum is
  given on the IP level and is converted with that stream's mean packet size.
- Rates are those that leave the bottleneck.
- The fair share is per-flow max-min: every active flow, media or TCP, has the same claim on the
  bottleneck, and a media flow never more than its maximum. A flow is active from its first to its
  last packet in the router's log; what falls silent early has a claim all the same (traffic.py).
- Percentiles interpolate linearly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]

GRID = 0.1  # s between samples of sliding rates
WINDOW = 1.0  # s of a sliding rate
MERGE = 0.2  # changes nearer than this are one event
MIN_SEGMENT = 4.0  # shorter intervals between changes are not judged
INNER = 0.10  # a settled rate differs by no more from its share
SETTLE = 2.0  # s after a change that aggregate means leave out
TAIL = 1.0  # s before the end of the log in which a packet may just be queued
FREEZE = 0.2  # s without a new picture
# A freeze as webrtc-stats has it (freezeCount): an interval of so many times the mean, or so much
# longer; of the intervals before it so many are in the mean.
FREEZE_TIMES, FREEZE_MORE, FREEZE_MEAN = 3, 0.15, 30


def summary(values: F64) -> dict[str, float | int | None]:
    """Count, mean and the percentiles that every table shows; infinite values stay infinite."""
    if len(values) == 0:
        return {"count": 0, "mean": None, "p50": None, "p95": None, "p99": None, "max": None}
    ordered = np.sort(values)

    def at(p: float) -> float | None:
        place = p / 100 * (len(ordered) - 1)
        low, high = ordered[int(math.floor(place))], ordered[int(math.ceil(place))]
        if not math.isfinite(high):
            return None
        return float(low + (high - low) * (place - math.floor(place)))

    finite = values[np.isfinite(values)]
    return {
        "count": len(values),
        "mean": float(finite.mean()) if len(finite) == len(values) else None,
        "p50": at(50),
        "p95": at(95),
        "p99": at(99),
        "max": at(100),
    }


def fair_shares(capacity: float, caps: Mapping[str, float]) -> dict[str, float]:
    """Max-min fair shares: flows below the level get their cap, the rest share what is left."""
    shares: dict[str, float] = {}
    left, waiting = capacity, sorted(caps, key=lambda name: caps[name])
    for done, name in enumerate(waiting):
        level = left / (len(waiting) - done)
        shares[name] = min(caps[name], level)
        left -= shares[name]
    return shares


@dataclass(frozen=True)
class Segment:
    """An interval in which the set of active flows does not change."""

    start: float
    stop: float
    shares: dict[str, float]


def segments(
    activity: Mapping[str, tuple[float, float]], caps: Mapping[str, float], capacity: float
) -> list[Segment]:
    """Cut the run at every join and leave. Events closer than MERGE are one, at the last."""
    times = sorted({t for span in activity.values() for t in span})
    cuts: list[float] = []
    for t in times:
        if cuts and t - cuts[-1] < MERGE:
            cuts[-1] = t
        else:
            cuts.append(t)
    found = []
    for start, stop in zip(cuts, cuts[1:], strict=False):
        middle = (start + stop) / 2
        active = {n: caps[n] for n, (a, b) in activity.items() if a <= middle < b}
        if active:
            found.append(Segment(start, stop, fair_shares(capacity, active)))
    return found


def grid(stop: float) -> F64:
    """Sampling instants from 0 to stop."""
    return np.arange(int(math.floor(stop / GRID + 1e-9)) + 1, dtype=np.float64) * GRID


def sliding_rate(t: F64, size: I64, at: F64, window: float = WINDOW) -> F64:
    """Bit/s over the window that ends at each instant of `at`; t need not be sorted."""
    order = np.argsort(t, kind="stable")
    sums = np.concatenate([[0], np.cumsum(size[order])])
    high = np.searchsorted(t[order], at, side="right")
    low = np.searchsorted(t[order], at - window, side="right")
    return np.asarray((sums[high] - sums[low]) * 8.0 / window, np.float64)


def mean_rate(t: F64, size: I64, start: float, stop: float) -> float:
    """Mean bit/s in [start, stop)."""
    return float(size[(t >= start) & (t < stop)].sum() * 8.0 / (stop - start))


def settle_time(at: F64, rate: F64, share: float, start: float, stop: float) -> float | None:
    """Seconds from `start` until the sliding rate has settled at its share, None if it never does.

    Settled at an instant: that sample and all after it to `stop` are within INNER of the share.
    """
    inside = (at >= start) & (at <= stop)
    error = np.abs(rate[inside] / share - 1)
    if len(error) == 0:
        return None
    ok = np.maximum.accumulate(error[::-1])[::-1] <= INNER
    if not ok.any():
        return None
    return float(at[inside][int(np.argmax(ok))] - start)


def last_change_before(changes: Sequence[float], t: F64) -> F64:
    """For each t the latest change at or before it; the first change for anything earlier."""
    ordered = np.sort(np.asarray(changes, np.float64))
    place = np.searchsorted(ordered, t, side="right") - 1
    return ordered[np.maximum(place, 0)]


def lost(t_in: F64, t_out: F64, log_end: float) -> Bool:
    """Packets that entered and never left, those still queued at the end of the log excepted."""
    return np.isnan(t_out) & (t_in < log_end - TAIL)


@dataclass(frozen=True)
class Frames:
    """One row per captured (or encoded) frame of a flow; delay in s, infinite if never complete."""

    t: F64
    delay: F64


def unwrap(ts: I64) -> I64:
    """32-bit RTP timestamps as a plain rising count, relative to the first."""
    if len(ts) == 0:
        return ts
    step = (np.diff(ts) + (1 << 31)) % (1 << 32) - (1 << 31)
    return np.concatenate([[0], np.cumsum(step)])


def delivery_from_rx(
    capture: F64, rtp_ts: I64, packets: I64, rx_ts: I64, rx_t: F64, end: float
) -> Frames:
    """Capture to the arrival of a frame's last packet at the receiver.

    Frames captured in the last TAIL before `end` are left out: they may still be on their way.
    """
    order = np.lexsort((rx_t, rx_ts))
    keys, first, count = np.unique(rx_ts[order], return_index=True, return_counts=True)
    last = rx_t[order][first + count - 1] if len(keys) else np.zeros(0)
    place = np.searchsorted(keys, rtp_ts)
    known = place < len(keys)
    known[known] = keys[place[known]] == rtp_ts[known]
    delay = np.full(len(rtp_ts), np.inf)
    whole = known.copy()
    whole[known] = count[place[known]] >= packets[known]
    delay[whole] = last[place[whole]] - capture[whole]
    keep = capture < end - TAIL
    return Frames(capture[keep], delay[keep])


def delivery_from_log(
    slot: I64,
    capture: F64,
    shown: F64,
    fps: float,
    *,
    rtp_ts: I64,
    ssrc: I64,
    marker: Bool,
    t_in: F64,
    t_out: F64,
    before: float,
    behind: float,
    end: float,
) -> Frames:
    """The same from the router's log, for a sender that does not tell its RTP timestamps.

    An RTP timestamp is the capture time up to a constant. The constant is the one that is a whole
    number of frames, makes no frame reach the router before it could (`before` is the propagation
    from the sender), and is nearest to that bound. `behind` is the propagation to the receiver.
    Packets behind the one with the marker repair losses (forward error correction), and so do those
    of the other SSRC (retransmissions). A frame that lost n packets is complete with the n-th of
    its repairs, and at the latest when its picture was shown (`shown`, NaN if it never was).
    """
    if len(rtp_ts) == 0 or len(capture) == 0:
        return Frames(np.zeros(0), np.zeros(0))
    streams, counts = np.unique(ssrc, return_counts=True)
    main = ssrc == streams[int(np.argmax(counts))]
    order = np.argsort(t_in, kind="stable")
    order = order[main[order]]
    stamps, first, inverse = np.unique(
        unwrap(rtp_ts[order]), return_index=True, return_inverse=True
    )
    place = np.arange(len(order))
    last = np.full(len(stamps), len(order), np.int64)
    np.minimum.at(last, inverse[marker[order]], place[marker[order]])
    body = place <= last[inverse]
    raw_ts, arrive, out = rtp_ts[order][first], t_in[order][first], t_out[order]
    leave = np.full(len(stamps), -np.inf)
    missing = np.zeros(len(stamps), np.int64)
    here = ~np.isnan(out)
    np.maximum.at(leave, inverse[body & here], out[body & here])
    np.add.at(missing, inverse[body & ~here], 1)
    repairs: dict[int, list[float]] = {}
    spare = [(rtp_ts[~main], t_out[~main]), (rtp_ts[order][~body], out[~body])]
    for stamp, when in spare:
        for key, t in zip(stamp, when, strict=True):
            if not math.isnan(t):
                repairs.setdefault(int(key), []).append(float(t))
    for i in np.flatnonzero(missing):
        usable = sorted(t for t in repairs.get(int(raw_ts[i]), []) if t > arrive[i])
        enough = len(usable) >= missing[i]
        leave[i] = max(leave[i], usable[missing[i] - 1]) if enough else np.inf
    relative = np.round(stamps / 90000 * fps).astype(np.int64)
    latest = np.searchsorted(capture, arrive - before, side="right") - 1
    shift = int((slot[np.maximum(latest, 0)] - relative).min())
    found = np.searchsorted(slot, relative + shift)
    known = found < len(slot)
    known[known] = slot[found[known]] == (relative + shift)[known]
    start = capture[found[known]]
    delay = np.fmin(leave[known] + behind, shown[found[known]]) - start
    keep = start < end - TAIL
    return Frames(start[keep], delay[keep])


def _picture_gaps(
    t: F64, index: I64, start: float, stop: float, judged: float
) -> tuple[F64, F64]:
    """Intervals from one new picture of a stream to the next, and how much of each is judged.

    The first is the wait for the first picture, the last ends with the stream.
    """
    fresh = np.concatenate([[True], np.diff(index) != 0]) if len(index) else np.zeros(0, bool)
    shown = t[fresh & (t >= start) & (t <= stop)]
    edges = np.concatenate([[start], shown, [stop]])
    return np.diff(edges), edges[1:] - np.maximum(edges[:-1], judged)


def webrtc_freezes(
    t: F64, index: I64, start: float, stop: float, judged: float = 0.0
) -> tuple[int, float]:
    """Freezes as W3C's webrtc-stats counts them, and their length in sum.

    The interval between two pictures is one if it is max(3 m, m + 150 ms) or longer, m being the
    mean of the last 30 intervals before it. Here the stream's end closes the last interval, too,
    and before there is a mean, at a stream's start, SETTLE without a new picture is one. Those
    that end after `judged` count, with what of them is behind it.
    """
    gaps, inside = _picture_gaps(t, index, start, stop, judged)
    frozen = []
    for i in np.flatnonzero(inside > 0):
        before, limit = gaps[max(1, i - FREEZE_MEAN) : i], SETTLE
        if len(before):
            mean = float(before.mean())
            limit = max(FREEZE_TIMES * mean, mean + FREEZE_MORE)
        if gaps[i] >= limit:
            frozen.append(float(inside[i]))
    return len(frozen), sum(frozen)


def freezes(
    t: F64, index: I64, start: float, stop: float, judged: float = 0.0
) -> tuple[int, float]:
    """How often, and for how long in sum, no new picture came for more than FREEZE s.

    The same picture again is no new one. A stream's first may take SETTLE; if it takes longer, the
    whole wait is a freeze. Counted is what lies between `judged` and `stop`.
    """
    gaps, inside = _picture_gaps(t, index, start, stop, judged)
    limit = np.full(len(gaps), FREEZE)
    limit[0] = SETTLE
    frozen = inside[(gaps > limit) & (inside > 0)]
    return len(frozen), float(frozen.sum())


def gops_with_mixed_base(gop: I64, qp_base: F64) -> int:
    """GOPs in which more than one base quantizer was used."""
    pairs = np.unique(np.stack([gop.astype(np.float64), qp_base], axis=1), axis=0)
    return int((np.unique(pairs[:, 0], return_counts=True)[1] > 1).sum()) if len(gop) else 0
