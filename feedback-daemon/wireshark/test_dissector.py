#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Holds what tshark shows with paqm.lua against the test vectors.

    test_dissector.py VECTORS_DIR

Exit status 77 (skipped) without tshark; 1 if a packet is shown wrongly.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from decode import AUTH, MESSAGES, field_at, load, proof
from make_pcap import MEDIA_PORT, RTCP_PORT, ip_packet, packets, write

SKIP = 77
# Calls within each other that Lua allows are fewer.
MANY_CUT = 250
LUA = Path(__file__).resolve().parent / "paqm.lua"
FIELDS = [
    *("ip.proto", "icmp.type", "icmpv6.type", "paqm.quote.src6", "paqm.quote.dst6"),
    *("paqm.refusal", "paqm.value", "paqm.quote.src", "paqm.quote.dst"),
    *("paqm.quote.srcport", "paqm.quote.dstport", "paqm.quote.payload", "paqm.magic"),
    *("paqm.version", "paqm.flags", "paqm.key_id", "paqm.router_id", "paqm.boot", "paqm.seq"),
    *("paqm.ecf", "paqm.ecf.meaning", "paqm.rate", "paqm.period", "paqm.qdelay", "paqm.flows"),
    *("paqm_rate.kind", "paqm_rate.rate", "paqm_rate.router", "paqm_rate.period"),
    *("paqm_rate.nonce", "paqm_rate.seq", "paqm_rate.grade", "paqm_rate.congested"),
    "paqm_rate.searches",
    *("paqm.util", "paqm.tag", "paqm.quote.rtp.ssrc", "paqm.quote.proof"),
    "_ws.expert.message",
]

# What is true, as newer versions of tshark say it (4.4 does), and as 4.0 did.
TRUTH = {"True": "1", "False": "0"}

Row = dict[str, str]


def tshark(capture: Path, home: str, *more: str) -> list[str]:
    """Lines that tshark shows with the dissector."""
    words = ["tshark", "-X", f"lua_script:{Path(home) / LUA.name}", "-r", str(capture), *more]
    words += ["-d", f"udp.port=={MEDIA_PORT},rtp", "-d", f"udp.port=={RTCP_PORT},rtcp"]
    # Not the user's own configuration: he may have the script among his plugins.
    # And not as root: from 4.4 on it runs no scripts then.
    user: dict[str, Any] = {}
    if os.geteuid() == 0:
        Path(home).chmod(0o755)
        user = {"user": "nobody", "group": "nogroup", "extra_groups": []}
    done = subprocess.run(
        words, capture_output=True, text=True, env={**os.environ, "HOME": home}, cwd=home, **user
    )
    if done.returncode:
        raise SystemExit(f"tshark failed with status {done.returncode}: {done.stderr.strip()}")
    if "error" in done.stderr.lower():
        raise SystemExit(f"tshark complains: {done.stderr.strip()}")
    return done.stdout.splitlines()


def shown(capture: Path, home: str) -> list[Row]:
    """One row per packet: what tshark makes of the fields, and the column Protocol, which is not
    among them: from 4.4 on a field has what stands there before dissectors such as ours come.
    """
    shutil.copy(LUA, home)
    words = ["-T", "fields", "-E", "separator=|", "-E", "occurrence=a", "-E", "aggregator=,"]
    for field in FIELDS:
        words += ["-e", field]
    lines = [line.split("|") for line in tshark(capture, home, *words)]
    protocols = tshark(capture, home, "-o", 'gui.column.format:"Protocol","%p"')
    return [
        dict(zip(FIELDS, (TRUTH.get(cell, cell) for cell in line), strict=True))
        | {"protocol": protocol.strip()}
        for line, protocol in zip(lines, protocols, strict=True)
    ]


def meaning(value: float) -> str:
    if value == 1:
        return "hold"
    return "multiply by" if value < 1 else "add"


def near(text: str, want: float) -> bool:
    return abs(float(text) - want) <= 1e-5 * abs(want)


def compare_fields(row: Row, vector: dict[str, Any]) -> list[str]:
    want = vector["expect"]
    quote = want["quote"]
    payload = bytes.fromhex(quote["payload"])
    six = "6" if "icmp6" in vector else ""
    rtp = len(payload) >= 12 and payload[0] >> 6 == 2
    tag = "0x" + want["tag"] if want["version"] == 1 or want["flags"] & AUTH else ""
    exact = {
        "icmpv6.type" if six else "icmp.type": str(bytes.fromhex(vector["icmp" + six])[0]),
        "paqm.refusal": "",
        "paqm.magic": "PAQM",
        "paqm.version": str(want["version"]),
        "paqm.flags": f"0x{want['flags']:02x}",
        "paqm.key_id": f"0x{want['key_id']:04x}",
        "paqm.router_id": "0x" + want["router_id"],
        "paqm.boot": "0x" + want["boot"],
        "paqm.seq": str(want["seq"]),
        "paqm.rate": str(want["rate_bps"]),
        "paqm.period": str(want["period_ms"]),
        "paqm.qdelay": str(want["qdelay_100us"]),
        "paqm.flows": str(want["flows"]),
        "paqm.util": str(want["util"]),
        "paqm.tag": tag,
        "paqm.quote.src" + six: quote["saddr"],
        "paqm.quote.dst" + six: quote["daddr"],
        "paqm.quote.srcport": str(quote["sport"]),
        "paqm.quote.dstport": str(quote["dport"]),
        "paqm.quote.payload": quote["payload"],
        "paqm.quote.rtp.ssrc": "0x" + quote["payload"][16:24] if rtp else "",
        "protocol": "P-AQM",
    }
    bad = [
        f"{key} is {row[key]!r}, not {text!r}" for key, text in exact.items() if row[key] != text
    ]
    values = {"paqm.ecf": want["ecf_value"], "paqm.value": None}
    if want["version"] == 1:
        values["paqm.value"] = want["ecf_value"]
    for key, value in values.items():
        if value is None and row[key] or value is not None and not near(row[key], value):
            bad.append(f"{key} is {row[key]}, not {value}")
    says = meaning(want["ecf_value"]) if want["ecf"] else ""
    if not row["paqm.ecf.meaning"].startswith(says) or bool(says) != bool(row["paqm.ecf.meaning"]):
        bad.append(f"meaning is {row['paqm.ecf.meaning']!r}")
    if (row["paqm.quote.proof"] != "0") != bool(proof(payload)):
        bad.append(f"{row['paqm.quote.proof']} bytes are said to prove the packet")
    notes = row["_ws.expert.message"]
    if ("not verified" in notes) != bool(want["flags"] & AUTH):
        bad.append("expert information about the tag")
    if ("proves nothing" in notes) == bool(proof(payload)):
        bad.append("expert information about the quote")
    return bad


def compare_refusal(row: Row, vector: dict[str, Any]) -> list[str]:
    icmp = bytes.fromhex(vector.get("icmp") or vector.get("icmp6", ""))
    if not icmp or icmp[0] not in (253, 200, 100):  # none of its business
        return ["shown as P-AQM"] if row["protocol"] == "P-AQM" else []
    bad = []
    if row["paqm.refusal"] != vector["refusal"]:
        bad.append(f"refusal is {row['paqm.refusal']!r}, not {vector['refusal']!r}")
    if not row["_ws.expert.message"]:
        bad.append("no expert information")
    return bad


def shown_rate(row: Row, want: dict[str, Any]) -> list[str]:
    """What is wrong with the rate that is shown."""
    exact = {key: text for key, text in want.items() if key != "rate"}
    bad = [f"paqm_rate.{key} is {row['paqm_rate.' + key]!r}, not {text!r}"
           for key, text in exact.items() if row["paqm_rate." + key] != text]
    (value,) = struct.unpack("!f", bytes.fromhex(want["rate"]))
    if not row["paqm_rate.rate"] or not near(row["paqm_rate.rate"], value):
        bad.append(f"rate is {row['paqm_rate.rate']!r}, not {value}")
    return bad


def compare_payload(row: Row, vector: dict[str, Any]) -> list[str]:
    payload = bytes.fromhex(vector["payload"])
    at = field_at(payload)
    if at is None:
        return [f"shown as rate {row['paqm_rate.rate']}"] if row["paqm_rate.rate"] else []
    field = payload[at : at + 15]
    want = {
        "kind": "probe" if at == 1 else "RTP header extension",
        "rate": field[4:8].hex(),
        "router": "0x" + field[8:10].hex(),
        "period": str(field[10]),
        "nonce": "0x" + field[11:].hex(),
        "seq": str(int.from_bytes(payload[16:20], "big")) if at == 1 else "",
    }
    return shown_rate(row, want)


def compare_return(row: Row, vector: dict[str, Any]) -> list[str]:
    kind = "return of a probe" if vector["kind"] else "return of an element"
    said = vector.get("said")
    return shown_rate(row, {
        "grade": "" if said is None else str(said & 3),
        "congested": "" if said is None else str(said >> 2 & 1),
        "searches": "" if said is None else str(said >> 3 & 1),
        "kind": kind,
        "rate": vector["rate"],
        "router": f"0x{vector['router']:04x}",
        "period": str(vector["period"]),
        "nonce": "0x" + vector["nonce"],
        "seq": str(int(vector["seq"], 16)),
    })


def compare(rows: list[Row], directory: Path) -> int:
    messages = [vector for name in MESSAGES for vector in load(directory, name)]
    payloads, returns = load(directory, "inband.json"), load(directory, "returns.json")
    first = len(messages)
    wrong = 0
    if len(rows) != first + len(payloads) + len(returns) + 2:
        print(f"{len(rows)} packets shown")
        wrong += 1
    expected: list[tuple[str, list[str]]] = []
    for row, vector in zip(rows, messages, strict=False):
        look = compare_refusal if "refusal" in vector else compare_fields
        expected.append((vector["name"], look(row, vector)))
    for row, vector in zip(rows[first:], payloads, strict=False):
        expected.append((vector["name"], compare_payload(row, vector)))
    for row, vector in zip(rows[first + len(payloads) :], returns, strict=False):
        expected.append((vector["name"], compare_return(row, vector)))
    cut, echo = rows[-2:]
    cut_ok = "only in part" in cut["_ws.expert.message"] and not cut["paqm.refusal"]
    expected.append(("captured in part", [] if cut_ok else [str(cut)]))
    echo_ok = echo["icmp.type"] == "8" and echo["protocol"] == "ICMP"
    expected.append(("echo request", [] if echo_ok else [str(echo)]))
    for name, bad in expected:
        for what in bad:
            wrong += 1
            print(f"{name}: {what}")
    print(f"{len(expected)} packets, {wrong} wrong")
    return 1 if wrong else 0


def cut_errors(whole: bytes) -> list[tuple[bytes, int]]:
    """Unreachable messages, cut within what they quote: they must not hide what comes after."""
    return [(ip_packet(bytes([3, 1]) + bytes(6) + whole), 50)] * MANY_CUT


def main() -> int:
    if len(sys.argv) != 2:
        print("Usage: test_dissector.py VECTORS_DIR", file=sys.stderr)
        return 2
    if not shutil.which("tshark"):
        print("tshark is not installed (package tshark): skipped")
        return SKIP
    directory = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as home:
        capture = Path(home) / "vectors.pcap"
        found = packets(directory)
        write(capture, cut_errors(found[0][0]) + found)
        return compare(shown(capture, home)[MANY_CUT:], directory)


if __name__ == "__main__":
    sys.exit(main())
