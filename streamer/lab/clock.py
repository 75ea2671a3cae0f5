#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""A call on hosts whose clocks are set while it lasts, in a lab guest: nobody notices.

Prints `ok NAME` or `not ok NAME: why`. The network is that of stream_lab.py: s calls v. All hosts
of a guest have one clock. It is set by as much as NTP corrects it after a sleep, or when a host
without a battery has started, in 1970; and again and again, so that it happens between a report and
its answer, too.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "kernel" / "lab-tests"))
import trial  # noqa: E402
from scarce import SOUND, call_of  # noqa: E402
from trial import check, within  # noqa: E402

BEGIN, END = 6.0, 74.0  # s
YEARS = 1_767_225_000.0  # s: from 1970 to where a guest begins
# s: by so many s
ONCE = {12.0: 2.0, 18.0: -2.0, 24.0: 3600.0, 30.0: -3600.0, 36.0: -YEARS, 41.0: YEARS}
OFTEN = {46.0 + 0.093 * n: (-3.0 if n & 1 else 3.0) for n in range(200)}
TRIP_MS = 20  # of the network


def step(seconds: float) -> None:
    now = time.clock_gettime(time.CLOCK_REALTIME)
    time.clock_settime(time.CLOCK_REALTIME, now + seconds)


def main() -> int:
    steps = ONCE | OFTEN
    call = call_of(__doc__, [*((at, lambda by=by: step(by)) for at, by in steps.items()),
                             (END, lambda: None)])
    bounds = {"before": BEGIN} | {f"after {by:+g} s": at for at, by in ONCE.items()}
    bounds |= {"again and again": min(OFTEN), "afterwards": max(OFTEN), "": END - 1}
    names, times = list(bounds), list(bounds.values())
    for name, begin, end in zip(names, times, times[1:], strict=False):
        for what, table, rate in (("pictures", "video", 30), ("pieces of sound", "audio", SOUND)):
            shown = [t for t in call.times("v", table, "play_ns") if begin <= t < end]
            within(f"{what} a second, {name}", len(shown) / (end - begin), 0.99 * rate, 1.01 * rate)
    causes = [row["cause"] for row in trial.rows(call.home / "s" / "feedback.csv")]
    check("what routers say is heard all the time", set(causes[1:]) == {"erf"}, causes)
    for table in ("control", "feedback", "events", "rtcp", "frames"):
        times = call.times("s", table, "t_ns")
        check(f"{table}.csv is in order", times == sorted(times) and times[-1] < END + 5, times)
    trips = [float(row["rtt_ms"]) for row in trial.rows(call.home / "s" / "rtcp.csv")
             if row["rtt_ms"]]
    within("reports with a round trip", len(trips), 90, 150)
    within("the longest, ms", max(trips), TRIP_MS, 2 * TRIP_MS)
    return trial.summary()


if __name__ == "__main__":
    sys.exit(main())
