#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The plugin of rlqos through the real tc: its options (plain_plugin.py) and its statistics.

Usage: test_plugin.py DIRECTORY_OF_PLUGIN pkt_sched_rlqos.h JSON_MONITOR.so TC
"""

import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tc-paqm" / "tests"))
from plain_plugin import main  # noqa: E402
from show_lib import Show, differences, message, own  # noqa: E402

ONE = 1 << 24
CLASSES = ("tc1", "tc2", "tc3")
EXPECTED = {  # the end of a refusal, of some options
    "limit": "a whole number from 1 to 8192",
    "transit": "a whole number from 1 to 4294967295, or none",
    "k1": "a whole number from 1 to 65536, or auto",
    "k3": "a number or percentage from 0 to 1",
    "interval": "a time from 100us to 1s",
}


def shows_stats(show: Show, types: dict[str, Any]) -> list[str]:
    st = types["tc_rlqos_xstats"]()
    fields = [name for name, _ in types["tc_rlqos_class_stats"]._fields_ if name != "hist"]
    for c, name in enumerate(CLASSES):
        one = getattr(st, name)
        for i, field in enumerate(fields):
            setattr(one, field, 1000 * (c + 1) + i)
        one.sojourn_ns, one.sent = 20_000 * (c + 5), c + 5
        one.hist[3] = one.sent
    st.mean, st.growth, st.load, st.downstream = ONE * 15 // 2, -ONE // 4, ONE // 8, 3 * ONE
    st.probability, st.not_cut = 1 << 30, 9
    full = message(b"", bytes(st), qdisc="rlqos")
    got = own(show.json(full))
    wrong = []
    for name in CLASSES:
        one, said = getattr(st, name), got.pop(name)
        want = {
            "backlog_bytes": one.backlog, "backlog_packets": one.qlen, "sojourn_mean_us": 20,
            "arrived_bytes": one.arrived_bytes, "arrived_packets": one.arrived,
            "entered_packets": one.entered, "sent_bytes": one.sent_bytes, "sent_packets": one.sent,
            "drop_thin": one.drop_thin, "drop_limit": one.drop_limit, "drop_again": one.drop_again,
            "sojourn_hist": list(one.hist),
        }  # fmt: skip
        p50, p99 = said.pop("sojourn_p50_us"), said.pop("sojourn_p99_us")
        wrong += differences(said, want, set())
        if not 32 <= p50 <= p99 <= 100:
            wrong.append(f"{name}: quantiles {p50}, {p99}")
    wrong += differences(got, {"mean_packets": 7.5, "growth_packets": -0.25, "load": 0.125,
                               "downstream": 3, "probability": 0.25, "not_cut": 9}, set())
    text = show.text(full, "-s")
    for words in ("mean 7.5p growth -0.25p load 0.125 downstream 3 probability 0.25 "
                  "not segmented 9",
                  r"delay mean +20us +20us +20us", r"sent p +5 +6 +7"):  # fmt: skip
        if not re.search(words, text):
            wrong.append(f"no {words!r} in {text!r}")
    if "growth" in show.text(message(b"", bytes(st)[:100], qdisc="rlqos"), "-s"):
        wrong.append("statistics that are too short are shown")
    return wrong


if __name__ == "__main__":
    sys.exit(main("rlqos", shows_stats, "limit 200", expected=EXPECTED, own=("DOWNSTREAM",)))
