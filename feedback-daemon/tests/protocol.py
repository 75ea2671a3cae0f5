#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Hold docs/protocol.md against the code: every place it names is there, the reasons of refusals
are those of paqmd in their order, and its numbers are those that the code is built with. The
numbers of the Internet-Draft are held against the code as well, and its example is worked out
anew, with nothing of the C codec.

Usage: protocol.py
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "wireshark"))
from decode import checksum, siphash  # noqa: E402

TOP = Path(__file__).resolve().parent.parent.parent
TEXT = (TOP / "docs" / "protocol.md").read_text()
DRAFT = " ".join((TOP / "docs" / "draft-paqm-feedback-00.md").read_text().split())
EXAMPLE = (TOP / "docs" / "draft-paqm-feedback-00.md").read_text().split("\n# An Example")[1]
PARTS = ("core", "kernel", "feedback-daemon", "libpaqmclient", "streamer")
PLACE = re.compile(
    r"([\w/-]+\.(?:c|h|py))(?:: |, )((?:enum )?[A-Za-z_]\w+\*?(?:, [a-z]\w+)*)"
)

# What the text says, where it comes from.
NUMBERS = (
    (
        "about plain RTP messages have 132 bytes, 252 at most",
        "core/paqm_msg_format.h",
        r"PAQM_OBJ_FIXED \(PAQM_OBJ_HDR \+ 40\)",
    ),
    ("84 to 340 bytes", "core/paqm_msg_format.h", r"PAQM_OBJ_MAX 128\b"),
    ("and 16 bytes behind it |", "core/paqm_quote.h", r"PAQM_PROOF_BEHIND 16\b"),
    ("| anything else | 28 bytes", "core/paqm_quote.h", r"PAQM_PROOF_OTHER 28\b"),
    ("proof is longer than 128 bytes", "core/paqm_quote.h", r"PAQM_PROOF_MAX 128\b"),
    ("ICMPv6, type 200", "core/paqm_msg_format.h", r"PAQM_ICMP6_TYPE_EXP 200\b"),
    ("or type 100 with version 1", "core/paqm_msg_format.h", r"PAQM_ICMP6_TYPE_OLD 100\b"),
    ("`icmp` | IPv4 ICMP type 253", "core/paqm_msg_format.h", r"PAQM_ICMP_TYPE_EXP 253\b"),
    ("`quench` | IPv4 ICMP type 4", "core/paqm_msg_format.h", r"PAQM_ICMP_TYPE_QUENCH 4\b"),
    ("|   Version 2   |", "core/paqm_msg_format.h", r"PAQM_MSG_VERSION 2\b"),
    ("its version is 2; its checksum", "core/paqm_msg_format.h", r"PAQM_EXT_VERSION 2\b"),
    ("Ours has class 0xF7", "core/paqm_msg_format.h", r"PAQM_OBJ_CLASS 0xF7\b"),
    ("and type 1.", "core/paqm_msg_format.h", r"PAQM_OBJ_TYPE 1\b"),
    ("Magic 0x5041514D", "core/paqm_msg_format.h", r"PAQM_OBJ_MAGIC 0x5041514DU"),
    ("| 1 | 4 | relative value", "core/paqm_msg_format.h", r"PAQM_OPT_RELATIVE 1\b"),
    ("| 0x8001 | 8 | tag", "core/paqm_msg_format.h", r"PAQM_OPT_TAG 0x8001\b"),
    ("over 17 bytes", "core/paqm_msg.h", r"PAQM_HOST_BYTES 17\b"),
    ("last 48 bytes of the message", "core/paqm_msg1.h", r"PAQM1_OBJ_LEN 48\b"),
    ("up to 28 bytes of UDP payload", "core/paqm_msg1.h", r"PAQM1_QUOTE_UDP 28\b"),
    ("to 512 bytes at most", "feedback-daemon/paqm_ipc.h", r"PAQM_IPC_RECORD_MAX 512\b"),
    ("version of records stays 1", "feedback-daemon/paqm_ipc.h", r"PAQM_IPC_VERSION 1\b"),
    ("or has at most 1600 bytes", "feedback-daemon/capture/batch.h", r"BATCH_LEAST 1600\b"),
    ("values above 10^12", "core/paqm_bytes.h", r"PAQM_VALUE_MAX 1000000000000ULL"),
    (
        "bit/s, on the IP layer. A 64-bit number, 1 to 10^12",
        "core/paqm_msg.h",
        r"m->rate && m->rate <= PAQM_VALUE_MAX",
    ),
    (
        "values below 2^-20",
        "core/paqm_bytes.h",
        r"paqm_f32_decode\(bits, 20, &v\) && v &&",
    ),
    ("traffic class CS6", "kernel/paqm_xmit.c", r"PAQM_FB_TOS 0xC0\b"),
    ("At least 1 kbit/s", "kernel/paqm_derive.h", r"PAQM_RATE_MIN 1000ULL"),
    (
        "`md-floor`, default 0.1",
        "kernel/paqm_option_table.h",
        r"MD_FLOOR, .*\n.*\), \(0\.1, 1, 10\), DETAIL",
    ),
    (
        "paqmd applies at least 0.1",
        "feedback-daemon/judge/allow.c",
        r"ECF_MIN_Q24 PAQM_Q24\(1, 10\)",
    ),
    ("| period d | 250 ms", "kernel/paqm_option_table.h", r"PERIOD, .*\n.*\(250, ms\)"),
    (
        "(50 ms to 5 s)",
        "kernel/paqm_option_table.h",
        r"PERIOD, .*\n.*\(50, ms\), \(5, s\)",
    ),
    ("min(`rtt`, d/2), 100 ms", "kernel/paqm_option_table.h", r"RTT, .*\n.*\(100, ms\)"),
    (
        "gap between event rounds | 50 ms",
        "kernel/paqm_outer.c",
        r"EVENT_GAP_NS \(50 \* NSEC_PER_M",
    ),
    (
        "20 times as long, up to 2 s",
        "kernel/paqm_outer.c",
        r"WALK_SHARE 20\b(.|\n)*WALK_GAP_MAX_NS \(2 \* NSEC_PER_SEC\)",
    ),
    ("passes 16384 bytes", "kernel/paqm_flows.h", r"PAQM_MOUSE_BYTES 16384\b"),
    (
        "moved by more than 0.05",
        "kernel/paqm_split.h",
        r"SPLIT_EVENT_Q16 \(PAQM_Q16_ONE / 20\)",
    ),
    ("counted as active | 0.5 s", "kernel/paqm_flows.h", r"PAQM_FLOW_ACTIVE_TICKS 500\b"),
    ("elastic flow counted | 0.4 s", "kernel/paqm_flows.h", r"PAQM_ELASTIC_ACTIVE_MS 400\b"),
    ("elastic class counted | 0.25 s", "kernel/paqm_split.h", r"PAQM_SILENT_MS 250\b"),
    (
        "counts as measured | 120 ms",
        "kernel/paqm_census.h",
        r"WINDOW_MIN_NS \(120 \* NSEC_PER_M",
    ),
    ("slot may be re-used | 2 s", "kernel/paqm_option_table.h", r"FLOW_AGE, .*\n.*\(2, s\), D"),
    ("router sleeps | 2 s", "kernel/paqm_inner.c", r"PAQM_IDLE_NS \(2 \* NSEC_PER_SEC\)"),
    ("more than 8 messages in a row", "kernel/paqm_heed.c", r"PAQM_DEAF_NOTICE 8\b"),
    (
        "(10 s / d)-th",
        "kernel/paqm_option_table.h",
        r"NOTICE_PAUSE, .*\n.*\(10, s\), SET",
    ),
    (
        "0.5 % of c, at least 1000 byte/s",
        "kernel/paqm_option_table.h",
        r"NOTICE_PART, .*\n.*\(200, count\), SET",
    ),
    (
        "at least 1000 byte/s",
        "kernel/paqm_state.h",
        r"8ULL \* part\), 1000ULL",
    ),
    (
        "two seconds of it, at least 1008 bytes",
        "kernel/paqm_budget.c",
        r"BURST_MS 2000\b(.|\n)*4 \* PAQM_MSG_SENT_MAX",
    ),
    (
        "when it has sent 504 bytes",
        "kernel/paqm_notice.c",
        r"NOTICE_WORTH \(2 \* PAQM_MSG_SENT_MAX\)",
    ),
    ("messages waiting | 256", "kernel/paqm_transmitter.h", r"PAQM_FB_RING 256\b"),
    (
        "more than half a second | none to flows",
        "kernel/paqm_derive.c",
        r"PAQM_CROWD_NS \(NSEC_PER_SEC / 2\)",
    ),
    (
        "within that time, 1.5 s at most",
        "kernel/paqm_derive.c",
        r"REMIND_NS \(1500 \* NSEC_PER_MSEC",
    ),
    ("differs by less than an eighth", "kernel/paqm_notice.c", r"PAQM_NEWS_Q23 \(1 << 20\)"),
    ("17 to 33 ms between two", "kernel/paqm_notice.c", r"PAQM_SPACING_TICKS 16\b"),
    (
        "100 ms ahead at most",
        "kernel/paqm_enqueue.c",
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
    ("sends one each 50 ms", "streamer/outgoing/rate.h", r"RATE_TICK_MS 50\b"),
    ("one in 20 ms for 1 s at most", "streamer/outgoing/outgoing.h", r"FIRST_PROBES_MS 20\b"),
    (
        "not within 20 ms; else every 100 ms",
        "streamer/rtp/returns.c",
        r"GAP_NS \(20 \* MS\)\n#define PAUSE_NS \(100 \* MS\)",
    ),
    (
        "at least 3 s and at most 30 s later",
        "streamer/rtp/returns.c",
        r"EXPIRY_MIN_NS \(3000 \* MS\).*\n#define EXPIRY_MAX_NS \(30000 \* MS\)",
    ),
    (
        "at least 3 s and at most 30 s (allow.c",
        "feedback-daemon/judge/allow.h",
        r"EXPIRY_MIN_NS 3000000000ULL\n#define ALLOW_EXPIRY_MAX_NS 30000000000ULL",
    ),
    (
        "grows from 64 to 4096",
        "feedback-daemon/judge/ring.h",
        r"RING_MIN 64\n#define RING_CAP 4096\b",
    ),
    (
        "of the 2 million that all rings",
        "feedback-daemon/judge/state.h",
        r"ENGINE_DIGESTS 2000000U",
    ),
    ("up to 8 router entries", "feedback-daemon/judge/allow.h", r"ALLOW_ROUTERS 8\b"),
    ("up to 64 router entries", "feedback-daemon/judge/state.h", r"ENGINE_ROUTERS 64\b"),
    (
        "A digest lives 4 s",
        "feedback-daemon/judge/engine.c",
        r"digest_life_ns = 4 \* NS_PER_S",
    ),
    ("period is taken for 520 ms", "feedback-daemon/judge/message.c", r"BARE_PERIOD_MS 520\b"),
    (
        "30 s of silence | routers.c",
        "feedback-daemon/judge/routers.c",
        r"IDLE_NS \(30 \* NS_PER_S\)",
    ),
    (
        "1000 messages/s (burst 500)",
        "feedback-daemon/judge/engine.c",
        r"per_s = 1000, \.burst = 500}",
    ),
    (
        "each flow that it tells 20 messages/s (burst 2) more",
        "feedback-daemon/judge/engine.c",
        r"per_s = 20, \.burst = 2}",
    ),
    ("45,000 in all (burst 18,000)", "feedback-daemon/judge/routers.c",
     r"per_s - p->global\.per_s / 10;"),
    (
        "50,000 messages/s (burst 20,000)",
        "feedback-daemon/judge/engine.c",
        r"per_s = 50000, \.burst = 20000}",
    ),
    (
        "never below 0.95 x the ERF rate",
        "feedback-daemon/judge/allow.c",
        r"RIGHT_Q24 PAQM_Q24\(95,",
    ),
    ("within 5 s of a raise", "feedback-daemon/judge/allow.c", r"FLAP_SOON_NS 5000000000ULL"),
    (
        "Each adds 2.5 s to a debt",
        "feedback-daemon/judge/allow.c",
        r"FLAP_DEBT_NS 2500000000ULL",
    ),
    ("a flap adds 10 s", "feedback-daemon/judge/allow.c", r"FLAP_AGAIN_NS 10000000000ULL"),
    ("From 22 s on", "feedback-daemon/judge/allow.c", r"FLAP_HOLD_NS 22000000000ULL"),
    (
        "the debt is below 15 s",
        "feedback-daemon/judge/allow.c",
        r"FLAP_FREE_NS 15000000000ULL",
    ),
    ("never exceeds 30 s", "feedback-daemon/judge/allow.c", r"FLAP_MOST_NS 30000000000ULL"),
    (
        "rise by half of itself a second",
        "feedback-daemon/judge/allow.c",
        r"FLAP_RISE_NS 2000000000ULL",
    ),
    (
        "asked for in the last half second",
        "feedback-daemon/judge/allow.c",
        r"FLAP_LOW_NS 125000000ULL .* half second",
    ),
    (
        "beyond 1200 messages a second",
        "feedback-daemon/capture/capturer.c",
        r"WINDOW_NS \(10 \* MS\)\n#define MUCH_MEDIA 2\n#define MUCH_MESSAGES 12\b",
    ),
    ("in batches, 0.6 ms apart", "feedback-daemon/capture/capturer.c", r"NAP_NS 600000L"),
)

FORMAT, MSG, MSG1, QUOTE, BYTES = (
    f"core/paqm_{name}.h" for name in ("msg_format", "msg", "msg1", "quote", "bytes")
)

# The same of the draft; line breaks do not count.
DRAFT_NUMBERS = (
    ("ICMP type 253 {{RFC4727}}, code 0", FORMAT, r"PAQM_ICMP_TYPE_EXP 253\b"),
    ("Source Quench (type 4)", FORMAT, r"PAQM_ICMP_TYPE_QUENCH 4\b"),
    ("ICMPv6 type 200 {{RFC4443}}, code 0", FORMAT, r"PAQM_ICMP6_TYPE_EXP 200\b"),
    ("ICMPv6 type 100, of the error class", FORMAT, r"PAQM_ICMP6_TYPE_OLD 100\b"),
    ("header extension (Sections 5.1 and 5.3.1 of {{RFC3550}}), and 16 bytes", QUOTE,
     r"PAQM_PROOF_BEHIND 16\b"),
    ("Else its first 28 bytes", QUOTE, r"PAQM_PROOF_OTHER 28\b"),
    ("the proof would have more than 128 bytes", QUOTE, r"PAQM_PROOF_MAX 128\b"),
    ("begin with 0x50415131", "core/paqm_inband.h", r"PAQM_FIELD_MAGIC 0x50415131U"),
    ("with 15 bytes of data", "core/paqm_inband.h", r"PAQM_FIELD_LEN 15\b"),
    ("bytes 4 to 10 of the field", "core/paqm_inband.h",
     r"PAQM_FIELD_RATE 4\b(.|\n)*PAQM_FIELD_NONCE 11\b"),
    ("{{RFC4884}}: version 2, 12 reserved bits", FORMAT, r"PAQM_EXT_VERSION 2\b"),
    ("class 0xF7 (private use), C-Type 1", FORMAT, r"CLASS 0xF7\b(.|\n)*PAQM_OBJ_TYPE 1\b"),
    ("Magic 0x5041514D", FORMAT, r"PAQM_OBJ_MAGIC 0x5041514DU"),
    ("| Version 2 |", FORMAT, r"PAQM_MSG_VERSION 2\b"),
    ("with its options, 44 to 128", FORMAT, r"PAQM_OBJ_MAX 128\b"),
    ("1 to 10^12", BYTES, r"PAQM_VALUE_MAX 1000000000000ULL"),
    ("at least 2^-20", BYTES, r"paqm_f32_decode\(bits, 20, &v\) && v &&"),
    ("| 0x01 | OVERLOAD", FORMAT, r"PAQM_F_OVERLOAD 0x01\b"),
    ("| 0x02 | POLICED", FORMAT, r"PAQM_F_POLICED 0x02\b"),
    ("| 0x04 | FINAL", FORMAT, r"PAQM_F_FINAL 0x04\b"),
    ("| 0x08 | AUTH", FORMAT, r"PAQM_F_AUTH 0x08\b"),
    ("| 1 | 4 | Relative Value", FORMAT, r"PAQM_OPT_RELATIVE 1\b"),
    ("| 0x8001 | 8 | Tag", FORMAT, r"PAQM_OPT_TAG 0x8001\b"),
    ("router's key over 17 bytes", MSG, r"PAQM_HOST_BYTES 17\b"),
    ("always the last 48 bytes", MSG1, r"PAQM1_OBJ_LEN 48\b"),
    ("at most 28 bytes of UDP payload", MSG1, r"PAQM1_QUOTE_UDP 28\b"),
    ("250 ms by default", "kernel/paqm_option_table.h", r"PERIOD, .*\n.*\(250, ms\)"),
    ("at least 50 ms apart", "kernel/paqm_outer.c", r"EVENT_GAP_NS \(50 \* NSEC_PER_M"),
    (
        "Half a percent of the link",
        "kernel/paqm_option_table.h",
        r"NOTICE_PART, .*\n.*\(200, count\)",
    ),
    (
        "down to once in 10 s",
        "kernel/paqm_option_table.h",
        r"NOTICE_PAUSE, .*\n.*\(10, s\)",
    ),
    ("Twice the longest message", "kernel/paqm_notice.c", r"WORTH \(2 \* PAQM_MSG_SENT_MAX\)"),
    ("forgotten after a minute", "kernel/paqm_budget.c", r"PEER_LIFE_NS \(60ULL \* NSEC_PER_SEC\)"),
    ("A digest is kept for 4 s", "feedback-daemon/judge/engine.c",
     r"digest_life_ns = 4 \* NS_PER_S"),
    ("8 routers for each flow", "feedback-daemon/judge/allow.h", r"ALLOW_ROUTERS 8\b"),
    ("and 64 for each host", "feedback-daemon/judge/state.h", r"ENGINE_ROUTERS 64\b"),
    ("for 250 ms at most", "feedback-daemon/judge/engine.c", r"early_ns = NS_PER_S / 4,"),
    ("at least 3 s and at most 30 s", "feedback-daemon/judge/allow.h",
     r"EXPIRY_MIN_NS 3000000000ULL\n#define ALLOW_EXPIRY_MAX_NS 30000000000ULL"),
    ("v below 1 as at least 0.1", "feedback-daemon/judge/allow.c",
     r"ECF_MIN_Q24 PAQM_Q24\(1, 10\)"),
    ("less than 0.95 of the rate", "feedback-daemon/judge/allow.c", r"RIGHT_Q24 PAQM_Q24\(95,"),
    ("within 5 s of a raise", "feedback-daemon/judge/allow.c", r"FLAP_SOON_NS 5000000000ULL"),
    ("Each adds 2.5 s to a debt", "feedback-daemon/judge/allow.c", r"FLAP_DEBT_NS 2500000000ULL"),
    ("never exceeds 30 s", "feedback-daemon/judge/allow.c", r"FLAP_MOST_NS 30000000000ULL"),
    ("From 22 s on", "feedback-daemon/judge/allow.c", r"FLAP_HOLD_NS 22000000000ULL"),
    ("the debt is below 15 s", "feedback-daemon/judge/allow.c", r"FLAP_FREE_NS 15000000000ULL"),
    ("a flap adds 10 s", "feedback-daemon/judge/allow.c", r"FLAP_AGAIN_NS 10000000000ULL"),
    ("by half of itself a second", "feedback-daemon/judge/allow.c", r"FLAP_RISE_NS 2000000000ULL"),
    ("in the last half second", "feedback-daemon/judge/allow.h", r"ALLOW_LOWS 5\b"),
)  # fmt: skip


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
    header = (TOP / "feedback-daemon" / "judge" / "state.h").read_text()
    header = header.split("#define REFUSE_REASONS")[1].split("\n\n")[0]
    code = re.findall(r'^\tX\([A-Z_]+, "(\w+)"\)', header, re.MULTILINE)[1:]
    return [] if text == code else [f"reasons of refusals: {text}, in the code {code}"]


def numbers() -> list[str]:
    """Numbers of the text against the code."""
    wrong = []
    for name, text, table in (
        ("protocol.md", TEXT, NUMBERS),
        ("the draft", DRAFT, DRAFT_NUMBERS),
    ):
        for said, file, pattern in table:
            if said not in text:
                wrong.append(f"{name} does not say '{said}' any more")
            if not re.search(pattern, (TOP / file).read_text()):
                wrong.append(f"{name} says '{said}', {file} has no '{pattern}'")
    return wrong


def defined(name: str) -> int:
    """A number of the codec."""
    for file in (FORMAT, QUOTE):
        if found := re.search(rf"^#define {name} (\d+)", (TOP / file).read_text(), re.MULTILINE):
            return int(found[1])
    raise SystemExit(f"the codec has no {name}")


def lengths() -> list[str]:
    """Lengths that follow from the numbers."""
    icmp, ext, most = defined("PAQM_ICMP_HDR"), defined("PAQM_EXT_HDR"), defined("PAQM_PROOF_MAX")
    head4, head6, plain = 20, defined("PAQM_IP6_HDR"), defined("PAQM_PROOF_OTHER")
    fixed, tag = defined("PAQM_OBJ_HDR") + 40, defined("PAQM_OPT_HDR") + 8
    sent = icmp + ext + fixed + tag + defined("PAQM_OPT_HDR") + 4 + 8 + most
    longest = icmp + ext + defined("PAQM_OBJ_MAX") + defined("PAQM_IP4_MAX_HDR") + 8 + most
    longest += 4  # a word of padding
    least = icmp + ext + fixed + 8
    about4 = head4 + least + head4 + plain  # with the message's IP header; whole words
    about6 = head6 + least + (head6 + plain + 7) // 8 * 8
    wrong = []
    for text, said in (
        (TEXT, f"A message has {least + head4} to {longest} bytes, over IPv6 "
               f"{least + head6} to {longest}; this router sends {sent + head4} at most, "
               f"over IPv6 {sent + head6}."),
        (TEXT, f"| `msg_length` | not {least + head4} to {longest} bytes; over IPv6 not "
               f"{least + head6} to {longest} |"),
        (TEXT, f"about plain RTP messages have {about4} bytes, {sent + 2 * head4} at most"),
        (TEXT, f"such a packet has {about6} bytes, {sent + 2 * head6} at most"),
        (TEXT, f"with a key {about4 + tag}. This router sends {sent + 2 * head4} bytes at most, "
               f"over IPv6 {sent + 2 * head6}. The largest legal one has {longest + head4}, "
               f"over IPv6 {longest + head6}."),
        (TEXT, f"when it has sent {2 * (sent + head6)} bytes"),
        (TEXT, f"two seconds of it, at least {4 * (sent + head6)} bytes"),
        (DRAFT, f"A message has {least + head4} to {longest} bytes; over IPv6 "
                f"{least + head6} to {longest}."),
        (DRAFT, f"it has at most {longest} bytes of ICMP"),
        (DRAFT, f"a message has {about4} bytes with its IP header, {about4 + tag} with a tag; "
                f"over IPv6 {about6} and {about6 + tag}."),
        (DRAFT, f"options, {fixed} to {defined('PAQM_OBJ_MAX')}"),
    ):  # fmt: skip
        if said not in text:
            wrong.append(f"{'protocol.md' if text is TEXT else 'the draft'} does not say '{said}'")
    return wrong


def hexadecimal(title: str) -> bytes:
    """A block of the draft's example, by the anchor under it."""
    block = EXAMPLE.split(f"{{: #{title} ")[0].rsplit("~~~", 2)[1]
    lines = (re.match(r"(?:[0-9a-f]{4,} ?)*", line) for line in block.strip().splitlines())
    return bytes.fromhex("".join(line[0] for line in lines if line))


def example() -> list[str]:
    """The draft's example: checksums, keys, what the tag covers, the tag; it is a test vector."""
    wrong = []
    key, covered, icmp = (hexadecimal(f"ex-{name}") for name in ("key", "tag", "message"))
    given = re.search(r"router with key id (\d+) and key ([0-9a-f]{32}) tells", EXAMPLE)
    assert given, "the draft's example names no key"
    quote = icmp[8 : 8 + 4 * icmp[5]]
    ext = icmp[8 + len(quote) :]
    to = bytes(10) + b"\xff\xff" + quote[12:16]
    own = b"".join(
        siphash(bytes.fromhex(given[2]), to + bytes([half])).to_bytes(8, "little")
        for half in (0, 1)
    )
    proof = quote[28:]
    want = bytes(10) + b"\xff\xff" + quote[16:20] + quote[22:24] + ext[4:-8] + bytes(8) + proof
    for what, good in (
        ("checksum", checksum(icmp) == 0),
        ("checksum of the extension", checksum(ext) == 0),
        ("key id", ext[14:16] == int(given[1]).to_bytes(2, "big")),
        ("length of the object", int.from_bytes(ext[4:6], "big") == len(ext) - 4),
        ("key of the host", key == own),
        ("bytes under the tag", covered == want),
        ("tag", ext[-8:] == siphash(own, want).to_bytes(8, "big")),
        ("length in words", f"ICMP message, {len(icmp)} bytes; with the IP header "
                            f"{len(icmp) + 20}" in EXAMPLE),
        ("test vector", icmp.hex() in (TOP / "docs/vectors/messages.json").read_text()),
        ("number of bytes under the tag", f"covers {len(want)} bytes" in EXAMPLE),
    ):  # fmt: skip
        if not good:
            wrong.append(f"the draft's example is wrong: {what}")
    return wrong


def main() -> int:
    wrong = places() + refusals() + numbers() + lengths() + example()
    for line in wrong:
        print(line)
    found = len(NUMBERS) + len(DRAFT_NUMBERS)
    print(f"{found} numbers, {len(PLACE.findall(TEXT))} places, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
