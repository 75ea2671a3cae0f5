#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What the plugin makes of a kernel's statistics, shown by the real tc.

The structures have a value of their own in every field, and are also shorter and longer than this
header knows: an older and a newer module.
Usage: test_show_stats.py DIRECTORY_OF_PLUGIN pkt_sched_paqm.h JSON_MONITOR.so [TC]
"""

import ctypes
import json
import os
import re
import struct
import sys
import tempfile
from pathlib import Path
from typing import Any

from show_lib import (
    CLASS_DERIVED,
    Q24,
    RTM_NEWTCLASS,
    Show,
    differences,
    message,
    own,
    same,
    structures,
)

# Field of a structure -> key in JSON and how the number is scaled; others keep their name.
RENAMED = {
    "sojourn_ns": ("sojourn_sum_ns", 1),
    "backlog": ("backlog_bytes", 1),
    "qlen": ("backlog_packets", 1),
    "drop_tail": ("drop_tail_packets", 1),
    "drop_inner": ("drop_inner_packets", 1),
    "drop_strike": ("drop_strike_packets", 1),
    "ecn_mark": ("ecn_mark_packets", 1),
    "prob": ("prob", 1 << 32),
    "rate": ("rate_bps", 1),
    "share": ("share_bps", 1),
    "hist": ("sojourn_hist_packets", 1),
    "capacity": ("capacity_bps", 1),
    "fair_rate": ("fair_rate_bps", 1),
    "outer_rate": ("outer_rate_bps", 1),
    "erf_flows_q16": ("erf_flows", 1 << 16),
    "phi_q16": ("phi", 1 << 16),
    "share_q16": ("media_weight", 1 << 16),
    "trim_q24": ("trim", Q24),
    "ecf_md": ("ecf_md_periods", 1),
    "ecf_ai": ("ecf_ai_periods", 1),
    "ecf_hold": ("ecf_hold_periods", 1),
    "event_flow": ("event_flow_rounds", 1),
    "event_split": ("event_split_rounds", 1),
    "event_capacity": ("event_capacity_rounds", 1),
    "event_queue": ("event_queue_rounds", 1),
    "table_overflow": ("table_overflow_flows", 1),
    "overload": ("overload_episodes", 1),
    "strikes": ("strikes_flows", 1),
    "notices_unfit": ("notices_unfit_packets", 1),
    "inband_kept": ("inband_kept_packets", 1),
    "inband_lowered": ("inband_lowered_packets", 1),
    "inband_left": ("inband_left_packets", 1),
    "not_ip": ("not_ip_packets", 1),
    "filter_drop": ("filter_drop_packets", 1),
    "filter_taken": ("filter_taken_packets", 1),
    "flows_seen": ("seen_flows", 1),
    "flows_rtp": ("rtp_flows", 1),
    "flows_not_rtp": ("not_rtp_flows", 1),
    "packets_unsure": ("unsure_packets", 1),
    "packets_small": ("small_packets", 1),
    "packets_small_over": ("small_over_packets", 1),
    "packets_dscp": ("dscp_packets", 1),
    "packets_tagged": ("tagged_packets", 1),
    "packets_tunnel": ("tunnel_packets", 1),
    "packets_fragment": ("fragment_packets", 1),
    "headroom_q16": ("headroom", 1 << 16),
    "over_strangers": ("over_stranger_packets", 1),
    "over_drops": ("over_drop_packets", 1),
    "over_full": ("over_full_packets", 1),
    "over_marks": ("over_mark_packets", 1),
    "over_qlen": ("over_backlog_packets", 1),
    "over_backlog": ("over_backlog_bytes", 1),
    "over_sent": ("over_sent_packets", 1),
    "over_sojourn_ns": ("over_sojourn_sum_ns", 1),
    "over_hist": ("over_sojourn_hist_packets", 1),
    "flows_deaf": ("deaf_flows", 1),
    "flows_new": ("new_flows", 1),
    "newcomers_q16": ("newcomers_stay", 1 << 16),
    "packets_control": ("control_packets", 1),
    "router_id": ("router", 0),
    "ecf": ("ecf", 0),
}
DERIVED = {"utilisation", "load", "never_congested", "sojourn_edges_ns"}
SOURCES = ["given", "device", "guess", "measured"]


def fill(value: Any, seed: int) -> int:
    """A different number into every field."""
    for name, *_ in value._fields_:
        member = getattr(value, name)
        if isinstance(member, ctypes.Structure):
            seed = fill(member, seed)
        elif isinstance(member, ctypes.Array):
            for i in range(len(member)):
                member[i] = seed + i
            seed += len(member)
        else:
            setattr(value, name, seed * 1001)
            seed += 1
    return seed


def wanted(value: Any, size: int) -> dict[str, Any]:
    """JSON that stands for a structure of which only `size` bytes are there."""
    out: dict[str, Any] = {}
    for name, *_ in value._fields_:
        field = getattr(type(value), name)
        if name == "counts" and field.offset + field.size <= size:
            wide = wanted(value.counts, field.size)  # stand for those of 32 bits
            for queue in ("media", "elastic"):
                out[queue] |= wide.pop(queue)
            out |= wide
        if name in ("pad", "counts") or field.offset + field.size > size:
            continue
        member = getattr(value, name)
        key, scale = RENAMED.get(name, (name, 1))
        if isinstance(member, ctypes.Structure):
            out[key] = wanted(member, field.size)
        elif isinstance(member, ctypes.Array):
            out[key] = list(member)
        elif name == "router_id":
            out[key] = f"{member:016x}"
        elif name == "capacity_source":
            out[key] = SOURCES[member] if member < len(SOURCES) else str(member)
        elif name == "ecf":
            out[key] = struct.unpack("=f", struct.pack("=I", member))[0]
        else:
            out[key] = member if scale == 1 else member / scale
    return out


def check_stats(show: Show, kind: type[ctypes.Structure]) -> list[str]:
    value: Any = kind()
    fill(value, 1)
    value.media.sojourn_max_us = 4_000_000_000
    value.capacity_source = 3
    value.counts.notices_sent = value.counts.media.drop_tail = 5_000_000_000
    raw = bytes(value)
    wrong = []
    if " (measured) " not in show.text(message(b"", raw), "-s"):
        wrong.append("the source of the capacity is not shown")
    older = kind.counts.offset  # modules that count in 32 bits only
    for size in (
        *(len(raw), len(raw) + 40, len(raw) - 8),
        *(older, kind.seq.offset + 4, kind.seq.offset + 2),
    ):
        data = message(b"", (raw + bytes(40))[:size])
        got = own(show.json(data))
        for line in differences(got, wanted(value, size), DERIVED):
            wrong.append(f"{size} of {len(raw)} bytes: {line}")
        for flags in (("-s",), ("-s", "-d")):
            if "survival" not in show.text(data, *flags):
                wrong.append(f"{size} bytes: no table of the classes in text")
    for size in (0, kind.router_id.offset - 1):
        if "media" in show.json(message(b"", raw[:size])):
            wrong.append(f"statistics of {size} bytes were shown")
    return wrong


def check_class(show: Show, kind: type[ctypes.Structure]) -> list[str]:
    value: Any = kind()
    fill(value, 1)
    value.media.sojourn_max_us = 4_000_000_000
    data = message(b"", bytes(value.media), RTM_NEWTCLASS)
    want = wanted(value.media, ctypes.sizeof(value.media))
    try:
        got = own(show.json(data)["stats"])
        wrong = [f"class: {line}" for line in differences(got, want, CLASS_DERIVED)]
    except json.JSONDecodeError:
        wrong = []  # tc of iproute2 6.1 shows classes as text only
    text = show.text(data, "-s")
    for row, number in (
        ("sent b", value.media.sent_bytes),
        ("flows", value.media.flows),
    ):
        if not re.search(rf"^ *{row} +{number}$", text, re.MULTILINE):
            wrong.append(f"class: no row '{row} {number}' in text")
    if "rounds" in text:
        wrong.append("class: statistics of the qdisc in the text of a class")
    return wrong


def check_flow(show: Show, kind: type[ctypes.Structure]) -> list[str]:
    """A pseudo class of one of the busiest flows."""
    value: Any = kind()
    value.family, value.proto, value.sport, value.dport = 4, 17, 5004, 40000
    value.saddr[:4], value.daddr[:4] = bytes([10, 0, 1, 2]), bytes([192, 0, 2, 255])
    value.rate, value.share, value.told = 2_000_000, 2_666_000, 2_600_000
    value.told_ms, value.idle_ms = 120, 4
    want: dict[str, Any] = {
        "source": "10.0.1.2",
        "destination": "192.0.2.255",
        "protocol": 17,
        "source_port": 5004,
        "destination_port": 40000,
        "rate_bps": 2_000_000,
        "share_bps": 2_666_000,
        "told_bps": 2_600_000,
        "told_ms": 120,
        "idle_ms": 4,
        "strikes": 0,
        "prob": 0,
        "follows": True,
        "hears": ["message", "mark"],
        "lost_packets": 0,
        "mark_packets": 3,
        "backlog_bytes": 0,
    }
    value.hears, value.marked = 16 | 1 | 4, 3
    wrong = []

    def look(lines: list[str]) -> None:
        data = message(b"", bytes(value), RTM_NEWTCLASS, 0x80010101)
        text = show.text(data, "-s")
        wrong.extend(
            f"flow: no {line!r} in {text!r}" for line in lines if line not in text
        )
        try:
            got = own(show.json(data)["stats"])
        except json.JSONDecodeError:
            return  # tc of iproute2 6.1 shows classes as text only
        wrong.extend(f"flow: {line}" for line in differences(got, want, set()))

    look(
        [
            "class paqm 8001:101 ",
            "\n  udp 10.0.1.2:5004 > 192.0.2.255:40000\n",
            "  rate 2Mbit share 2.666Mbit told 2.6Mbit 120ms ago last packet 4ms ago\n",
            "  follows; hears by message mark; beyond its rate: lost 0 marked 3 waiting 0b\n",
        ]
    )
    value.family, value.proto, value.strikes, value.drop = 6, 99, 7, 1 << 30
    value.told = value.told_ms = 0
    value.saddr[:] = bytes([0x20, 1, 0xD, 0xB8]) + bytes(11) + b"\1"
    value.daddr[:] = bytes([0xFE, 0x80]) + bytes(13) + b"\2"
    want |= {
        "source": "2001:db8::1",
        "destination": "fe80::2",
        "protocol": 99,
        "told_bps": 0,
    }
    want |= {"told_ms": 0, "strikes": 7, "prob": 0.25}
    value.hears, value.lost, value.marked, value.waiting = 8, 5, 0, 1500
    want |= {"follows": False, "hears": ["loss"], "lost_packets": 5, "mark_packets": 0}
    want |= {"backlog_bytes": 1500}
    look(
        [
            "  protocol 99 [2001:db8::1]:5004 > [fe80::2]:40000\n",
            " share 2.666Mbit not told last packet 4ms ago\n",
            "  does not follow; hears by loss; beyond its rate: lost 5 marked 0 waiting 1500b"
            " strikes 7 dropped with 25%\n",
        ]
    )
    return wrong


def check_hints(show: Show, kind: type[ctypes.Structure]) -> list[str]:
    """Who wonders why nothing happens is told, and only then."""
    congested, unused = "never congested here", "no packet came here"
    wrong = []

    def look(what: str, value: Any, hint: str) -> None:
        data = message(b"", bytes(value))
        text = show.text(data, "-s")
        said = [line for line in (congested, unused) if line in text]
        if said != ([hint] if hint else []):
            wrong.append(f"{what}: wanted {hint!r}, got {said}")
        if show.json(data)["never_congested"] != (hint == congested):
            wrong.append(f"{what}: never_congested is wrong in JSON")

    def quiet() -> Any:
        value: Any = kind()
        value.uptime_ns, value.idle_ns = 20 * 10**9, 20 * 10**9 - 10**6
        value.media.arrived_bytes = value.elastic.arrived_bytes = 100_000
        value.elastic.sojourn_max_us = 310
        return value

    look("nothing queued", quiet(), congested)
    if "longest wait 310us" not in show.text(message(b"", bytes(quiet())), "-s"):
        wrong.append("the longest wait is not told")
    for what, member, number in (
        ("queued for 2 % of the time", "idle_ns", 196 * 10**8),
        ("young", "uptime_ns", 9 * 10**9),
    ):
        value = quiet()
        setattr(value, member, number)
        look(what, value, "")
    for name in ("media", "elastic"):
        for member in (
            "drop_tail",
            "drop_inner",
            "drop_strike",
            "ecn_mark",
            "sojourn_max_us",
        ):
            value = quiet()
            counts = member in type(getattr(value.counts, name)).__dict__
            queue = getattr(value.counts if counts else value, name)
            setattr(queue, member, 1_000)
            look(f"{member} of {name}", value, "")
    value = quiet()
    value.media.arrived_bytes = value.elastic.arrived_bytes = 0
    look("no traffic", value, unused)
    value.uptime_ns = 10**9
    look("no traffic yet", value, "")
    return wrong


def check_derived(show: Show, kind: type[ctypes.Structure]) -> list[str]:
    value: Any = kind()
    value.capacity = 8_000_000
    value.uptime_ns, value.room_bytes = 2_000_000_000, 2_000_000
    for queue, sent in ((value.media, 100), (value.elastic, 300)):
        queue.sent_packets = sent
        queue.sent_bytes = sent * 1250
        queue.rate = 1_000_000
        queue.sojourn_ns = sent * 700_000
        queue.sojourn_max_us = 1_000
        queue.prob = 1 << 30
    value.counts.media.hist[10], value.counts.elastic.hist[10] = 100, 300
    value.media.sent_packets += 40  # from overflow queues: their waits are counted there
    value.ecf = 0x7F800000  # infinity, which JSON does not have
    got = show.json(message(b"", bytes(value)))
    media = got["media"]
    edges = got["sojourn_edges_ns"]
    low, high = edges[10], edges[11]
    wanted_values = [
        ("utilisation", got["utilisation"], 0.25),
        ("load", got["load"], 0.25),
        ("mean", media["sojourn_mean_us"], 700.0),
        ("p50", media["sojourn_p50_us"], (low + (high - low) * 50 // 100) // 1000),
        (
            "p99, not above the maximum",
            media["sojourn_p99_us"],
            min(1000, (low + (high - low) * 99 // 100) // 1000),
        ),
        ("survival", media["survival"], 0.75),
        ("infinite ECF value", got["ecf"], None),
        ("edges", edges == sorted(set(edges)) and len(edges) == 32, True),
    ]
    return [
        f"{name}: wanted {want}, got {value}"
        for name, value, want in wanted_values
        if not same(value, want)
    ]


def main() -> int:
    os.environ["TC_LIB_DIR"] = str(Path(sys.argv[1]).resolve())
    types, _ = structures(Path(sys.argv[2]))
    kind = types["tc_paqm_xstats"]
    with tempfile.TemporaryDirectory() as directory:
        tc = sys.argv[4] if len(sys.argv) > 4 else "tc"
        show = Show(tc, sys.argv[3], Path(directory))
        wrong = check_stats(show, kind) + check_derived(show, kind)
        wrong += check_class(show, kind) + check_hints(show, kind)
        wrong += check_flow(show, types["tc_paqm_flow_stats"])
    for line in wrong:
        print(line)
    print(f"{ctypes.sizeof(kind)} bytes of statistics: {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
