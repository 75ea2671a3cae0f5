#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The plugin of dcbt through the real tc: its options (plain_plugin.py) and its statistics.

Usage: test_plugin.py DIRECTORY_OF_PLUGIN pkt_sched_dcbt.h JSON_MONITOR.so TC
"""

import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tc-paqm" / "tests"))
from plain_plugin import main  # noqa: E402
from show_lib import Show, differences, message, own  # noqa: E402

PACKET = 1 << 24
CLASSES = ("tcp", "tagged", "untagged")
EXPECTED = {  # the end of a refusal, of some options
    "mode": "one of red, fred, cbt, cbt-tcp, dcbt",
    "limit": "a whole number from 1 to 16384",
    "max": "a number of packets from 0.5 to 16384",
    "max-p": "a number or percentage from 0.001 to 1",
    "sweep": "a time from 10ms to 10s",
    "tag": "a list of numbers from 0 to 63 or names, such as EF,AF41,CS1,LE, or none",
}


def shows_stats(show: Show, types: dict[str, Any]) -> list[str]:
    st = types["tc_dcbt_xstats"]()
    fields = [name for name, _ in types["tc_dcbt_class_stats"]._fields_]
    for c in range(len(CLASSES)):
        for i, name in enumerate(fields):
            if name not in ("hist", "pad"):
                setattr(getattr(st, CLASSES[c]), name, 1000 * (c + 1) + i)
        one = getattr(st, CLASSES[c])
        one.sojourn_ns, one.sent = 20_000 * (c + 5), c + 5
        one.average, one.threshold = PACKET * (c + 1) // 4, (1 << 64) - 1 if not c else PACKET // 2
        one.hist[3] = one.sent
    st.average, st.max_p, st.packet_ns = PACKET * 15 // 2, PACKET // 8, 320_000
    st.flow_missed, st.not_cut = 7, 9
    full = message(b"", bytes(st), qdisc="dcbt")
    got = own(show.json(full))
    wrong = []
    for c, name in enumerate(CLASSES):
        one, said = getattr(st, name), got.pop(name)
        for key in ("flows", "arrived_bytes", "sent_bytes", "cut_in", "ecn_mark",
                    "drop_early", "drop_forced", "drop_limit", "drop_threshold", "drop_flow"):
            if said[key] != getattr(one, key):
                wrong.append(f"{name}: {key} is {said[key]}, not {getattr(one, key)}")
        for key, want in (("sent_packets", c + 5), ("arrived_packets", one.arrived),
                          ("backlog_bytes", one.backlog),
                          ("backlog_packets", one.qlen), ("sojourn_mean_us", 20),
                          ("average_packets", (c + 1) / 4),
                          ("threshold_packets", 0.5 if c else None),
                          ("sojourn_hist", list(one.hist))):
            if said[key] != want:
                wrong.append(f"{name}: {key} is {said[key]}, not {want}")
        if not 32 <= said["sojourn_p50_us"] <= said["sojourn_p99_us"] <= 100:
            wrong.append(f"{name}: quantiles {said['sojourn_p50_us']}, {said['sojourn_p99_us']}")
    wrong += differences(got, {"average_packets": 7.5, "max_p_now": 0.125, "packet_us": 320,
                               "flow_missed": 7, "not_cut": 9}, set())  # fmt: skip
    text = show.text(full, "-s")
    for words in ("average 7.5p max-p 0.125 packet 320us flows without a slot 7 not segmented 9",
                  r"threshold p +none +0.5 +0.5", r"delay mean +20us +20us +20us",
                  r"sent p +5 +6 +7"):  # fmt: skip
        if not re.search(words, text):
            wrong.append(f"no {words!r} in {text!r}")
    if "average" in show.text(message(b"", bytes(st)[:100], qdisc="dcbt"), "-s"):
        wrong.append("statistics that are too short are shown")
    return wrong


if __name__ == "__main__":
    sys.exit(main("dcbt", shows_stats, "limit 60 min 5 max 15 max-p 0.1", expected=EXPECTED))
