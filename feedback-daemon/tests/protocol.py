#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Hold docs/protocol.md against the code: every place it names is there, the reasons of refusals
are those of paqmd in their order, and its numbers are those that the code is built with.

Usage: protocol.py
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
TEXT = (TOP / "docs" / "protocol.md").read_text()
PARTS = ("core", "kernel", "feedback-daemon", "libpaqmclient", "streamer")
PLACE = re.compile(
    r"([\w/-]+\.(?:c|h|py))(?:: |, )((?:enum )?[A-Za-z_]\w+\*?(?:, [a-z]\w+)*)"
)

# What the text says, where it comes from.
NUMBERS = (
    ("messages have 132 bytes", "core/paqm_msg.h", r"PAQM_OBJ_LEN 48\b"),
    (
        "the first 28 bytes of the UDP payload",
        "core/paqm_msg.h",
        r"PAQM_QUOTE_UDP 28\b",
    ),
    ("ICMPv6, type 100", "core/paqm_msg.h", r"PAQM_ICMP6_TYPE_EXP 100\b"),
    ("`icmp` | IPv4 ICMP type 253", "core/paqm_msg.h", r"PAQM_ICMP_TYPE_EXP 253\b"),
    ("`quench` | IPv4 ICMP type 4", "core/paqm_msg.h", r"PAQM_ICMP_TYPE_QUENCH 4\b"),
    ("Magic 0x5041514D", "core/paqm_msg.h", r"PAQM_OBJ_MAGIC 0x5041514DU"),
    ("values above 10^12", "core/paqm_msg.h", r"PAQM_VALUE_MAX 1000000000000ULL"),
    (
        "values below 2^-20",
        "core/paqm_msg.h",
        r"paqm_f32_decode\(bits, 20, &v\) && v &&",
    ),
    ("traffic class CS6", "kernel/paqm_xmit.c", r"PAQM_FB_TOS 0xC0\b"),
    ("At least 1 kbit/s", "kernel/paqm_outer.h", r"PAQM_RATE_MIN 1000ULL"),
    (
        "`md-floor`, default 0.1",
        "kernel/paqm_options.h",
        r"\.md_floor = PAQM_Q24\(10, 100\)",
    ),
    (
        "paqmd applies at least 0.1",
        "feedback-daemon/allow.c",
        r"ECF_MIN_Q24 PAQM_Q24\(1, 10\)",
    ),
    ("| period d | 250 ms", "kernel/paqm_options.h", r"\.period = 250000,"),
    (
        "(50 ms to 5 s)",
        "kernel/uapi/linux/pkt_sched_paqm.h",
        r"PERIOD_MIN_US 50000U\n#define PAQM_PERIOD_MAX_US 5000000U",
    ),
    ("min(`rtt`, d/2), 100 ms", "kernel/paqm_options.h", r"\.rtt = 100000,"),
    (
        "gap between event rounds | 50 ms",
        "kernel/paqm_outer.h",
        r"EVENT_GAP_NS \(50 \* NSEC_PER_M",
    ),
    (
        "20 times as long, up to 2 s",
        "kernel/paqm_outer.h",
        r"WALK_SHARE 20\b(.|\n)*WALK_GAP_MAX_NS \(2 \* NSEC_PER_SEC\)",
    ),
    ("passes 16384 bytes", "kernel/paqm_flows.h", r"PAQM_MOUSE_BYTES 16384\b"),
    (
        "moved by more than 0.05",
        "kernel/paqm_outer.h",
        r"SPLIT_EVENT_Q16 \(PAQM_Q16_ONE / 20\)",
    ),
    ("counted as active | 0.5 s", "kernel/paqm_flows.h", r"PAQM_FLOW_ACTIVE_MS 500\b"),
    ("elastic class counted | 0.25 s", "kernel/paqm_outer.h", r"PAQM_SILENT_MS 250\b"),
    (
        "counts as measured | 120 ms",
        "kernel/paqm_flows.h",
        r"WINDOW_MIN_NS \(120 \* NSEC_PER_M",
    ),
    ("slot may be re-used | 2 s", "kernel/paqm_options.h", r"\.flow_age = 2000000,"),
    ("router sleeps | 2 s", "kernel/sch_paqm.c", r"PAQM_IDLE_NS \(2 \* NSEC_PER_SEC\)"),
    ("more than 8 measured rounds", "kernel/paqm_flows.h", r"PAQM_DEAF_NOTICE 8\b"),
    (
        "(10 s / d)-th",
        "kernel/paqm_outer.h",
        r"PAQM_NOTICE_PAUSE_US \(10 \* USEC_PER_SEC\)",
    ),
    (
        "0.5 % of c, at least 1000 byte/s",
        "kernel/paqm_state.h",
        r"SHARE_DIV 200\b(.|\n)*SHARE_DIV\), 1000ULL",
    ),
    (
        "two seconds of it, at least 608 bytes",
        "kernel/paqm_fb.c",
        r"BURST_MS 2000\b(.|\n)*4 \* PAQM_MSG_MAX",
    ),
    ("messages waiting | 256", "kernel/paqm_fb.h", r"PAQM_FB_RING 256\b"),
    (
        "more than half a second | none to flows",
        "kernel/paqm_outer.h",
        r"PAQM_CROWD_NS \(NSEC_PER_SEC / 2\)",
    ),
    (
        "within that time, 1.5 s at most",
        "kernel/paqm_outer.h",
        r"REMIND_NS \(1500 \* NSEC_PER_MSEC",
    ),
    ("differs by less than an eighth", "kernel/sch_paqm.c", r"PAQM_NEWS_Q23 \(1 << 20\)"),
    ("17 to 33 ms between two", "kernel/sch_paqm.c", r"PAQM_SPACING_MS 16\b"),
    (
        "100 ms ahead at most",
        "kernel/sch_paqm.c",
        r"NOTICE_BURST_NS \(100 \* NSEC_PER_MSEC\)",
    ),
    (
        "1500 a second, or one for 512 packets",
        "kernel/paqm_outer.h",
        r"NOTICES_FREE 1500\b(.|\n)*NOTICE_PACKETS 512\b",
    ),
    ("15 bytes (core/paqm_inband.h)", "core/paqm_inband.h", r"PAQM_FIELD_LEN 15\b"),
    ("Magic 0x50415131", "core/paqm_inband.h", r"PAQM_FIELD_MAGIC 0x50415131U"),
    ("d in 20 ms, rounded up", "core/paqm_inband.h", r"PAQM_FIELD_PERIOD_MS 20\b"),
    ("byte 0x0F, the field", "core/paqm_inband.h", r"PAQM_PROBE_FIRST 0x0F\b"),
    ("within the first 192 bytes", "core/paqm_inband.h", r"PAQM_FIELD_WINDOW 192\b"),
    ("sends one each 50 ms", "streamer/rate.h", r"RATE_TICK_MS 50\b"),
    ("one in 20 ms for 1 s at most", "streamer/send/send.h", r"FIRST_PROBES_MS 20\b"),
    (
        "not within 20 ms; else every 100 ms",
        "streamer/returns.c",
        r"GAP_NS \(20 \* MS\)\n#define PAUSE_NS \(100 \* MS\)",
    ),
    (
        "at least 3 s and at most 30 s later",
        "streamer/returns.c",
        r"EXPIRY_MIN_NS \(3000 \* MS\).*\n#define EXPIRY_MAX_NS \(30000 \* MS\)",
    ),
    (
        "at least 3 s and at most 30 s (allow.c",
        "feedback-daemon/allow.h",
        r"EXPIRY_MIN_NS 3000000000ULL\n#define ALLOW_EXPIRY_MAX_NS 30000000000ULL",
    ),
    (
        "grows from 64 to 4096",
        "feedback-daemon/ring.h",
        r"RING_MIN 64\n#define RING_CAP 4096\b",
    ),
    (
        "of the 2 million that all rings",
        "feedback-daemon/engine.h",
        r"ENGINE_DIGESTS 2000000U",
    ),
    ("up to 8 router entries", "feedback-daemon/allow.h", r"ALLOW_ROUTERS 8\b"),
    ("up to 64 router entries", "feedback-daemon/engine.h", r"ENGINE_ROUTERS 64\b"),
    (
        "A digest lives 4 s",
        "feedback-daemon/engine.c",
        r"digest_life_ns = 4 \* NS_PER_S",
    ),
    (
        "with less than 20 bytes of UDP payload",
        "feedback-daemon/engine.c",
        r"PROOF_MIN 20\b",
    ),
    ("period is taken for 520 ms", "feedback-daemon/engine.c", r"BARE_PERIOD_MS 520\b"),
    (
        "30 s of silence | engine.c",
        "feedback-daemon/engine.c",
        r"IDLE_NS \(30 \* NS_PER_S\)",
    ),
    (
        "1000 messages/s (burst 500)",
        "feedback-daemon/engine.c",
        r"per_s = 1000, \.burst = 500}",
    ),
    (
        "each flow that it tells 20 messages/s (burst 2) more",
        "feedback-daemon/engine.c",
        r"per_s = 20, \.burst = 2}",
    ),
    ("45,000 in all (burst 18,000)", "feedback-daemon/engine.c", r"per_s - p->global\.per_s / 10;"),
    (
        "50,000 messages/s (burst 20,000)",
        "feedback-daemon/engine.c",
        r"per_s = 50000, \.burst = 20000}",
    ),
    (
        "never below 0.95 x the ERF rate",
        "feedback-daemon/allow.c",
        r"RIGHT_Q24 PAQM_Q24\(95,",
    ),
    ("within 5 s of a raise", "feedback-daemon/allow.c", r"FLAP_SOON_NS 5000000000ULL"),
    (
        "Each adds 2.5 s to a debt",
        "feedback-daemon/allow.c",
        r"FLAP_DEBT_NS 2500000000ULL",
    ),
    ("a flap adds 10 s", "feedback-daemon/allow.c", r"FLAP_AGAIN_NS 10000000000ULL"),
    ("From 22 s on", "feedback-daemon/allow.c", r"FLAP_HOLD_NS 22000000000ULL"),
    (
        "the debt is below 15 s",
        "feedback-daemon/allow.c",
        r"FLAP_FREE_NS 15000000000ULL",
    ),
    ("never exceeds 30 s", "feedback-daemon/allow.c", r"FLAP_MOST_NS 30000000000ULL"),
    (
        "rise by half of itself a second",
        "feedback-daemon/allow.c",
        r"FLAP_RISE_NS 2000000000ULL",
    ),
    (
        "beyond 1200 messages a second",
        "feedback-daemon/capturer.c",
        r"WINDOW_NS \(10 \* MS\)\n#define MUCH_MEDIA 5\n#define MUCH_MESSAGES 12\b",
    ),
    ("in lots, 0.6 ms apart", "feedback-daemon/capturer.c", r"NAP_NS 600000L"),
)


def sources(name: str) -> list[str]:
    """Contents of the files with this name or end of a path."""
    every = [path for part in PARTS for path in (TOP / part).rglob(Path(name).name)]
    return [path.read_text() for path in every if f"/{path}".endswith(f"/{name}")]


def places() -> list[str]:
    """What the text names and is not there."""
    wrong = []
    named = [(file, names.removeprefix("enum ")) for file, names in PLACE.findall(TEXT)]
    for file, names in named:
        texts = sources(file)
        for name in names.split(", "):
            word = re.escape(name.removesuffix("*")) + (
                "" if name.endswith("*") else r"\b"
            )
            if not any(re.search(r"\b" + word, text) for text in texts):
                wrong.append(f"{file}: {name} is not there")
    everything = "".join(
        path.read_text() for part in PARTS for path in (TOP / part).rglob("*.[ch]")
    )
    for name in set(re.findall(r"\bpaqm_[a-z0-9_]+\b(?!\.[chl])", TEXT)):
        if not re.search(rf"\b{name}\b", everything):
            wrong.append(f"{name} is nowhere")
    if len(named) < 30:
        wrong.append(
            f"only {len(named)} places found: the text is written otherwise now"
        )
    return wrong


def refusals() -> list[str]:
    """Reasons of section 5.2 against paqmd's."""
    text = re.findall(r"^\| [a-g]? ?\| `(\w+)` \|", TEXT, re.MULTILINE)
    header = (TOP / "feedback-daemon" / "engine.h").read_text()
    header = header.split("#define REFUSE_REASONS")[1].split("\n\n")[0]
    code = re.findall(r'^\tX\([A-Z_]+, "(\w+)"\)', header, re.MULTILINE)[1:]
    return [] if text == code else [f"reasons of refusals: {text}, in the code {code}"]


def numbers() -> list[str]:
    """Numbers of the text against the code."""
    wrong = []
    for said, file, pattern in NUMBERS:
        if said not in TEXT:
            wrong.append(f"protocol.md does not say '{said}' any more")
        if not re.search(pattern, (TOP / file).read_text()):
            wrong.append(f"protocol.md says '{said}', {file} has no '{pattern}'")
    return wrong


def main() -> int:
    wrong = places() + refusals() + numbers()
    for line in wrong:
        print(line)
    print(
        f"{len(NUMBERS)} numbers, {len(PLACE.findall(TEXT))} places, {len(wrong)} wrong"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
