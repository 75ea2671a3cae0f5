#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What the plugin shows of a kernel's options, every one with a value of its own. Options that are
not listed here are tried by what the table of options says of them.

Usage: test_show_options.py DIRECTORY_OF_PLUGIN pkt_sched_paqm.h JSON_MONITOR.so [TC]
"""

import os
import struct
import sys
import tempfile
from pathlib import Path
from typing import Any

from show_lib import Q24, Show, attribute, differences, message, structures

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "kernel" / "tc-tests"))
import option_table  # noqa: E402
from option_cases import shown  # noqa: E402

EF, LE, AF41 = 1 << 46, 1 << 1, 1 << 34
PREFIXES = bytes([4, 8, 0, 0, 10]) + bytes(15)
PREFIXES += bytes([6, 32, 0, 0, 0x20, 1, 0xD, 0xB8]) + bytes(12)

# Attribute, value on the wire (by struct's letter, or bytes), key and value in JSON, words in text
# with -d.
OPTIONS: list[tuple[str, str, Any, str, Any, str]] = [
    ("BANDWIDTH", "Q", 2_500_000, "bandwidth_bps", 20_000_000, "bandwidth 20Mbit"),
    ("MEDIA_TARGET", "I", 5_500, "media_target_us", 5_500, "media-target 5.5ms"),
    ("ELASTIC_TARGET", "I", 150, "elastic_target_us", 150, "elastic-target 150us"),
    ("LIMIT", "I", 123_456, "limit_bytes", 123_456, "limit 123456b"),
    ("INTERVAL", "I", 0, "interval_us", 0, "interval auto"),
    ("GAIN", "I", Q24 // 4, "gain", 0.25, "gain 0.25"),
    ("GAMMA", "I", Q24 // 2, "gamma", 0.5, "gamma 0.5"),
    ("ALPHA", "I", Q24 * 3 // 4, "alpha", 0.75, "alpha 0.75"),
    ("BETA", "I", Q24 // 8, "beta", 0.125, "beta 0.125"),
    ("PERIOD", "I", 1_234_567, "period_us", 1_234_567, "period 1.234567s"),
    ("RTT", "I", 99_999, "rtt_us", 99_999, "rtt 99.999ms"),
    ("TARGET_UTIL", "I", Q24 * 7 // 8, "target_util", 0.875, "target-util 0.875"),
    ("LAW", "I", 2, "law", "erf", "law erf"),
    ("TRANSFER", "I", 0, "transfer_us", 0, "transfer 0us"),
    ("CREDIT", "I", 50_000, "credit_us", 50_000, "credit 50ms"),
    ("MD_FLOOR", "I", Q24 // 2, "md_floor", 0.5, "md-floor 0.5"),
    ("FORCED_MD", "I", 0, "forced_md", False, "noforced-md"),
    ("AI_HOLD", "I", 1, "ai_hold", True, "ai-hold"),
    ("FEEDBACK", "I", 1, "feedback", "icmp", "feedback icmp"),
    ("CLASSIFY", "I", 7, "classify", "7", "classify 7"),
    ("FLOWS", "I", 4_096, "flows", 4_096, "flows 4096"),
    ("ECN", "I", 1, "ecn", True, "ecn"),
    ("POLICE", "I", 1, "police", True, "police"),
    ("ISOLATE", "I", 0, "isolate", False, "noisolate"),
    ("WEIGHTS", "I", 1, "weights", "host", "weights host"),
    ("OVERHEAD", "i", -14, "overhead_bytes", -14, "overhead -14"),
    ("MPU", "I", 64, "mpu_bytes", 64, "mpu 64"),
    ("LINKLAYER", "I", 1, "linklayer", "atm", "linklayer atm"),
    ("MEDIA_LIMIT", "I", 30_000, "media_limit_bytes", 30_000, "media-limit 30000b"),
    ("ELASTIC_LIMIT", "I", 0, "elastic_limit_bytes", 0, "elastic-limit auto"),
    ("GOP", "I", 480_000, "gop_us", 480_000, "gop 480ms"),
    (
        "DSCP_MEDIA",
        "Q",
        EF | AF41 | 1 << 51,
        "dscp_media",
        [34, 46, 51],
        "dscp-media AF41,EF,51",
    ),
    ("DSCP_ELASTIC", "Q", LE | 1, "dscp_elastic", [0, 1], "dscp-elastic CS0,LE"),
    ("FLOW_AGE", "I", 2_500_000, "flow_age_us", 2_500_000, "flow-age 2.5s"),
    ("MEDIA_WEIGHT", "I", 3, "media_weight", 3, "media-weight 3"),
    ("ELASTIC_WEIGHT", "I", 1, "elastic_weight", 1, "elastic-weight 1"),
    ("SPLIT", "I", 1 << 14, "split", 0.25, "split 0.25"),
    ("BORROW", "I", 0, "borrow", False, "noborrow"),
    ("SEED", "Q", 1 << 63, "seed", 1 << 63, "seed 9223372036854775808"),
    ("MEDIA_TARGET_BYTES", "I", 0, "media_target_bytes", 0, "media-target 5.5ms"),
    ("ELASTIC_TARGET_BYTES", "I", 0, "elastic_target_bytes", 0, "elastic-target 150us"),
    (
        "FEEDBACK_TO",
        "40s",
        PREFIXES,
        "feedback_to",
        ["10.0.0.0/8", "2001:db8::/32"],
        "feedback-to 10.0.0.0/8,2001:db8::/32",
    ),
    (
        "ROUTER_ID",
        "Q",
        0xAB,
        "router_id",
        "00000000000000ab",
        "router-id 00000000000000ab",
    ),
    ("KEY_ID", "I", 65535, "key", 65535, "key 65535:hidden"),
]

# Shown without -d only where they say something; and what says nothing.
NEUTRAL: list[tuple[str, str, int]] = [
    ("limit", "I", 0),
    ("media-limit", "I", 0),
    ("elastic-limit", "I", 0),
    ("overhead", "i", 0),
    ("mpu", "I", 0),
    ("linklayer", "I", 0),
    ("dscp-media", "Q", 0),
    ("dscp-elastic", "Q", 0),
    ("split", "I", 0),
    ("media-weight", "I", 1),
    ("elastic-weight", "I", 1),
    ("borrow", "I", 1),
    ("weights", "I", 0),
    ("isolate", "I", 1),
    ("police", "I", 0),
    ("interval", "I", 0),
    ("gamma", "I", 0),
    ("gop", "I", 0),
    ("seed", "Q", 0),
]
# Another value of an attribute, and what becomes of it.
OTHERWISE: list[tuple[dict[str, tuple[str, int]], dict[str, Any], str]] = [
    (
        {"BANDWIDTH": ("Q", (1 << 64) - 1)},
        {"bandwidth_bps": 0, "bandwidth_auto": True},
        "bandwidth auto",
    ),
    (
        {"BANDWIDTH": ("Q", 0)},
        {"bandwidth_bps": 0, "bandwidth_auto": False},
        "bandwidth none",
    ),
    (
        {"BANDWIDTH": ("Q", 1_234_567)},
        {"bandwidth_bps": 9_876_536, "bandwidth_auto": False},
        "bandwidth 9.876536Mbit",
    ),
    # tc would read 8.008Kbit as 1000 bytes
    (
        {"BANDWIDTH": ("Q", 1_001)},
        {"bandwidth_bps": 8_008, "bandwidth_auto": False},
        "bandwidth 8008bit",
    ),
    (
        {"MEDIA_TARGET": ("I", 3_000), "MEDIA_TARGET_BYTES": ("I", 6_000)},
        {"media_target_us": 3_000, "media_target_bytes": 6_000},
        "media-target 6000b",
    ),
    (
        {"ELASTIC_TARGET": ("I", 3_000), "ELASTIC_TARGET_BYTES": ("I", 70_000)},
        {"elastic_target_us": 3_000, "elastic_target_bytes": 70_000},
        "elastic-target 70000b",
    ),
    # a module that does not know the second attribute
    (
        {"ELASTIC_TARGET": ("I", 3_000)},
        {"elastic_target_us": 3_000},
        "elastic-target 3ms",
    ),
    # no prefix: the module leaves the attribute out
    (
        {"DSCP_MEDIA": ("Q", 0)},
        {"dscp_media": [], "feedback_to": []},
        "feedback-to any dscp-media none",
    ),
    (
        {"DSCP_MEDIA": ("Q", (1 << 64) - 1)},
        {"dscp_media": list(range(64)), "feedback_to": []},
        "dscp-media CS0,LE,2,3,4,5,6,7,CS1,9,AF11,11,AF12,13,AF13,15,CS2,17,AF21,19,AF22,21,AF23,"
        "23,CS3,25,AF31,27,AF32,29,AF33,31,CS4,33,AF41,35,AF42,37,AF43,39,CS5,41,42,43,VA,NQB,EF,"
        "47,CS6,49,50,51,52,53,54,55,CS7,57,58,59,60,61,62,63",
    ),
    # what tc printed must be read as the same number
    ({"GAIN": ("I", 12_345_679)}, {"gain": 12_345_679 / Q24}, "gain 0.7358598"),
]


def by_table(o: option_table.Option) -> tuple[str, str, Any, str, Any, str]:
    """A row of OPTIONS: the option at the upper end of its range."""
    value, words = o.most.value, f"{o.name} "
    json_value = shown(o, value, float(o.most.number))
    if o.kind == "FLAG":
        json_value, words = True, o.name
    elif o.kind == "WORD":
        json_value = o.words[-1]
        words += o.words[-1]
    elif o.one > 1:
        words += o.most.text
    elif o.kind == "TIME":
        words += o.most.text.replace("000ms", "s")
    else:
        words += o.words_for(value)
    form = "Q" if o.kind in option_table.WIDE else "i" if o.kind == "SIGNED" else "I"
    return o.attribute, form, value, o.key, json_value, words


def check_options(show: Show, numbers: dict[str, int]) -> list[str]:
    left = numbers.keys() - {name for name, *_ in OPTIONS} - {"UNSPEC", "PAD", "MAX"}
    left -= {"KEY"}  # only its id is ever shown
    rows = OPTIONS + [by_table(o) for o in option_table.options() if o.attribute in left]
    wrong = [f"TCA_PAQM_{name} is not tested" for name in left - {name for name, *_ in rows}]
    data = b"".join(
        attribute(numbers[name], struct.pack("=" + form, value)) for name, form, value, *_ in rows
    )
    data += attribute(200, b"from a newer module.")
    full = message(data, b"")
    got = show.json(full)["options"]
    want = {key: value for _, _, _, key, value, _ in rows} | {
        "bandwidth_auto": False
    }
    wrong += differences(got, want, set())
    line = show.text(full, "-d") + " "
    wrong += [
        f"-d shows no {words!r}" for *_, words in rows if f" {words} " not in line
    ]
    if " gain " in show.text(full):
        wrong.append("tuning options are shown without -d")
    for name, form, value in NEUTRAL:
        number = numbers[name.upper().replace("-", "_")]
        quiet = message(attribute(number, struct.pack("=" + form, value)), b"")
        if f" {name}" in show.text(quiet) or f"{name}" not in show.text(quiet, "-d"):
            wrong.append(f"{name} {value} is shown without -d, or not with it")
    for given, want, words in OTHERWISE:
        part = message(
            b"".join(
                attribute(numbers[name], struct.pack("=" + form, value))
                for name, (form, value) in given.items()
            ),
            b"",
        )
        wrong += differences(show.json(part)["options"], want, set())
        if f" {words}" not in (line := show.text(part, "-d")):
            wrong.append(f"{given}: no {words!r} in {line!r}")
    short = show.json(message(attribute(numbers["LIMIT"], b"\1\0"), b""))["options"]
    if short:
        wrong.append(f"an attribute that is too short was shown: {short}")
    return wrong


def main() -> int:
    os.environ["TC_LIB_DIR"] = str(Path(sys.argv[1]).resolve())
    _, numbers = structures(Path(sys.argv[2]))
    with tempfile.TemporaryDirectory() as directory:
        tc = sys.argv[4] if len(sys.argv) > 4 else "tc"
        wrong = check_options(Show(tc, sys.argv[3], Path(directory)), numbers)
    for line in wrong:
        print(line)
    print(f"{len(numbers)} attributes: {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
