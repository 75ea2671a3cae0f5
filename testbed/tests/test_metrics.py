# SPDX-License-Identifier: GPL-2.0
"""Metrics against values worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from paqm_lab import metrics

INF = math.inf


@pytest.mark.parametrize(
    ("capacity", "caps", "shares"),
    [
        (8, {"a": 3, "b": 3}, {"a": 3, "b": 3}),
        (8, {"a": 3, "b": 3, "c": 3}, {"a": 8 / 3, "b": 8 / 3, "c": 8 / 3}),
        (8, {"a": 3, "b": 1, "c": INF}, {"a": 3, "b": 1, "c": 4}),
        (6, {"a": 3, "b": 1, "c": INF}, {"a": 2.5, "b": 1, "c": 2.5}),
        (8, {n: 3 if n in "abc" else INF for n in "abcwxyz"}, dict.fromkeys("abcwxyz", 8 / 7)),
    ],
)
def test_fair_shares(capacity: float, caps: dict[str, float], shares: dict[str, float]) -> None:
    assert metrics.fair_shares(capacity, caps) == pytest.approx(shares)


def test_segments() -> None:
    """Four TCP flows within 0.1 s are one change; the shares are those of who is there."""
    activity = {"a": (0.0, 50.0), "b": (0.05, 50.0), "c": (10.0, 35.0)}
    activity |= {f"t{i}": (20 + 0.03 * i, 50.05) for i in range(4)}
    caps = {n: INF if n[0] == "t" else 3.0 for n in activity}
    parts = metrics.segments(activity, caps, 8.0)
    assert [(p.start, p.stop) for p in parts] == [(0.05, 10), (10, 20.09), (20.09, 35), (35, 50.05)]
    assert [p.shares["a"] for p in parts] == pytest.approx([3, 8 / 3, 8 / 7, 8 / 6])
    assert "c" not in parts[3].shares


def test_sliding_rate() -> None:
    t = np.array([0.5, 1.0, 1.5, 2.0])
    size = np.array([100, 200, 300, 400])
    at = np.array([0.4, 1.0, 1.5, 2.5, 4.0])
    # The window is open at its beginning and closed at its end.
    assert metrics.sliding_rate(t, size, at).tolist() == [0, 2400, 4000, 3200, 0]
    shuffled = np.array([3, 0, 2, 1])
    again = metrics.sliding_rate(t[shuffled], size[shuffled], at)
    assert again.tolist() == [0, 2400, 4000, 3200, 0]


def test_settle_time() -> None:
    at = metrics.grid(10)
    ramp = np.minimum(at / 2, 1.0)
    assert metrics.settle_time(at, ramp, 1.0, 0, 10) == pytest.approx(1.8)
    assert metrics.settle_time(at, ramp, 1.0, 1, 10) == pytest.approx(0.8)
    assert metrics.settle_time(at, np.full(len(at), 1.11), 1.0, 0, 10) is None
    # One sample within the limit changes nothing, one beyond it starts the clock again.
    for height, took in ((1.09, 1.8), (1.11, 5.1)):
        bump = ramp.copy()
        bump[50] = height
        assert metrics.settle_time(at, bump, 1.0, 0, 10) == pytest.approx(took)
    assert metrics.settle_time(at, ramp, 1.0, 11, 12) is None


def test_summary() -> None:
    values = np.arange(101, dtype=np.float64)
    figures = metrics.summary(values)
    assert figures == {"count": 101, "mean": 50, "p50": 50, "p95": 95, "p99": 99, "max": 100}
    values[97:] = INF
    figures = metrics.summary(values)
    assert (figures["p95"], figures["p99"], figures["max"], figures["mean"]) == (
        95,
        None,
        None,
        None,
    )
    assert metrics.summary(np.zeros(0))["p50"] is None


def test_last_change_before() -> None:
    at = metrics.last_change_before([10, 0.5, 20], np.array([0.1, 0.5, 9.9, 10.0, 30.0]))
    assert at.tolist() == [0.5, 0.5, 0.5, 10, 20]


def test_lost_leaves_out_the_end() -> None:
    t_in = np.array([1.0, 2.0, 9.5])
    t_out = np.array([np.nan, 2.1, np.nan])
    assert metrics.lost(t_in, t_out, 10.0).tolist() == [True, False, False]


def test_delivery_from_rx() -> None:
    """Frame 0 in order, frame 1 out of order, frame 2 lacks a packet, frame 3 lacks all."""
    capture = np.array([0.0, 0.04, 0.08, 0.12])
    rtp_ts = np.array([4294965000, 1300, 4900, 8500])
    rx_ts = np.array([4294965000, 4294965000, 1300, 1300, 4900])
    rx_t = np.array([0.03, 0.05, 0.09, 0.07, 0.1])
    frames = metrics.delivery_from_rx(capture, rtp_ts, np.array([2, 2, 2, 1]), rx_ts, rx_t, 10.0)
    assert frames.delay.tolist() == pytest.approx([0.05, 0.05, INF, INF])
    late = metrics.delivery_from_rx(capture, rtp_ts, np.array([2, 2, 2, 1]), rx_ts, rx_t, 1.1)
    assert len(late.delay) == 3


class FromLog:
    """Ten frames of three packets at 25 frames/s, timestamps that wrap, 10 ms to the router."""

    def __init__(self) -> None:
        self.slot = np.arange(12)
        self.capture = 5 + self.slot / 25
        self.shown = np.full(12, np.nan)
        frame = np.repeat(np.arange(10), 3)
        part = np.tile(np.arange(3), 10)
        # The first two captures were never sent.
        self.rtp_ts = (2**32 - 10000 + 3600 * frame) % 2**32
        self.ssrc = np.full(30, 7)
        self.marker = part == 2
        self.t_in = 5 + (frame + 2) / 25 + 0.010 + 0.002 * part
        self.t_out = self.t_in + 0.001

    def add(self, stamp: int, ssrc: int, t: float) -> None:
        """One more packet."""
        self.rtp_ts = np.append(self.rtp_ts, stamp)
        self.ssrc = np.append(self.ssrc, ssrc)
        self.marker = np.append(self.marker, False)
        self.t_in = np.append(self.t_in, t)
        self.t_out = np.append(self.t_out, t + 0.001)

    def frames(self) -> metrics.Frames:
        return metrics.delivery_from_log(
            self.slot,
            self.capture,
            self.shown,
            25.0,
            rtp_ts=self.rtp_ts,
            ssrc=self.ssrc,
            marker=self.marker,
            t_in=self.t_in,
            t_out=self.t_out,
            before=0.010,
            behind=0.010,
            end=100.0,
        )


def test_delivery_from_log() -> None:
    frames = FromLog().frames()
    assert frames.t.tolist() == pytest.approx((5 + np.arange(2, 12) / 25).tolist())
    assert frames.delay.tolist() == pytest.approx([0.025] * 10)


def test_delivery_from_log_with_late_frames() -> None:
    """All but one frame are 50 ms late: the alignment holds to the one that is not."""
    log = FromLog()
    log.t_in[3:] += 0.05
    log.t_out[3:] += 0.05
    assert log.frames().delay.tolist() == pytest.approx([0.025] + [0.075] * 9)


def test_delivery_from_log_with_repairs() -> None:
    log = FromLog()
    stamp = int(log.rtp_ts[6])
    log.t_out[7] = np.nan  # frame 2: repaired by a retransmission
    log.add(stamp, 8, 5.3)
    log.t_out[9] = np.nan  # frame 3: repaired by a packet behind the marker
    log.add(int(log.rtp_ts[9]), 7, 5.25)
    log.t_out[12] = np.nan  # frame 4: never repaired
    log.t_out[15] = np.nan  # frame 5: how, the log does not tell, but its picture was shown
    log.shown[7] = 5.4
    delay = log.frames().delay
    capture = 5 + np.arange(2, 12) / 25
    assert delay[2] == pytest.approx(5.311 - capture[2])
    assert delay[3] == pytest.approx(5.261 - capture[3])
    assert delay[4] == INF
    assert delay[5] == pytest.approx(5.4 - capture[5])
    assert delay[[0, 1, 6, 7, 8, 9]].tolist() == pytest.approx([0.025] * 6)


def test_freezes() -> None:
    t = np.array([0.0, 0.04, 0.3, 0.34, 0.38, 0.7])
    index = np.array([0, 1, 2, 2, 3, 4])
    count, length = metrics.freezes(t, index, 0, 0.8)
    assert count == 2
    assert length == pytest.approx(0.26 + 0.32)
    assert metrics.freezes(np.zeros(0), np.zeros(0, np.int64), 0, 1) == (0, 0.0)


@pytest.mark.parametrize(
    ("gap", "frozen"),
    [
        (0.189, 0),  # the mean is 40 ms: max(120, 190) ms
        (0.191, 1),
    ],
)
def test_webrtc_freezes(gap: float, frozen: int) -> None:
    t = np.cumsum([1.0, *[0.04] * 40, gap, 0.04])
    index = np.arange(len(t))
    count, length = metrics.webrtc_freezes(t, index, 0, t[-1] + 0.04)
    assert (count, length) == (frozen, pytest.approx(gap * frozen))


def test_webrtc_freezes_go_by_the_last_thirty() -> None:
    """At 2 pictures a second only three times the mean is a freeze; the end closes an interval."""
    t = np.cumsum([0.0, *[0.04] * 40, *[0.5] * 30])
    index = np.arange(len(t))
    # 500 ms after 30 of 40 ms is one; after one of 500 the mean is 55.3 ms and the limit 205 ms;
    # it stays one while 3 m < 500, m = (40 (30 - n) + 500 n) / 30: up to n = 8.
    assert metrics.webrtc_freezes(t, index, 0, t[-1])[0] == 9
    assert metrics.webrtc_freezes(t, index, 0, t[-1] + 1.49)[0] == 9
    assert metrics.webrtc_freezes(t, index, 0, t[-1] + 1.51)[0] == 10
    repeated = np.concatenate([index[:-5], np.full(5, index[-6])])
    assert metrics.webrtc_freezes(t, repeated, 0, t[-1])[0] == 10
    assert metrics.webrtc_freezes(np.zeros(0), np.zeros(0, np.int64), 0, 1) == (0, 0.0)


@pytest.mark.parametrize(
    ("shown", "plain", "webrtc"),
    [
        # stops just before judging begins, for good and for a while
        (np.arange(0.02, 3, 0.04), 17.0, 17.0),
        (np.append(np.arange(0.02, 3, 0.04), np.arange(18, 20, 0.04)), 15.0, 15.0),
        # the end of a short one is judged with the intervals before judging
        (np.append(np.arange(0.02, 2.9, 0.04), np.arange(3.1, 20, 0.04)), 0.1, 0.1),
        # 4 pictures a second all along: each interval is long, and none is a freeze of W3C's
        (np.arange(0.0, 20, 0.25), 17.0, 0.0),
        # one picture, late or early; none
        (np.array([19.9]), 16.9, 16.9),
        (np.array([1.0]), 17.0, 17.0),
        (np.zeros(0), 17.0, 17.0),
        # a start of some time is none
        (np.arange(1.5, 20, 0.04), 0.0, 0.0),
    ],
)
def test_freezes_where_judging_begins(
    shown: np.ndarray[tuple[int], np.dtype[np.float64]], plain: float, webrtc: float
) -> None:
    """A stream of 20 s, judged from 3 s on: what is frozen then counts, whenever it began."""
    index = np.arange(len(shown))
    assert metrics.freezes(shown, index, 0, 20, 3)[1] == pytest.approx(plain)
    assert metrics.webrtc_freezes(shown, index, 0, 20, 3)[1] == pytest.approx(webrtc)


def test_the_wait_for_a_first_picture() -> None:
    """Of a stream that begins after judging did."""
    for first, frozen in ((1.9, 0), (2.1, 1)):
        t = 10 + first + np.arange(0, 5, 0.04)
        for count in (metrics.freezes, metrics.webrtc_freezes):
            found = count(t, np.arange(len(t)), 10, t[-1], 3)
            assert found == (frozen, pytest.approx(frozen * first))


def test_gops_with_mixed_base() -> None:
    gop = np.array([0, 0, 1, 1, 2, 2])
    assert metrics.gops_with_mixed_base(gop, np.array([30.0, 30, 31, 31, 30, 30])) == 0
    assert metrics.gops_with_mixed_base(gop, np.array([30.0, 31, 31, 31, 30, 29])) == 2
