# SPDX-License-Identifier: GPL-2.0
"""Netlink messages made after the structures in pkt_sched_*.h, shown by the real tc, which can
print messages from a file.
"""

import ctypes
import json
import os
import re
import struct
import subprocess
from pathlib import Path
from typing import Any

RTM_NEWQDISC, RTM_NEWTCLASS = 36, 40
TCA_KIND, TCA_OPTIONS, TCA_STATS2, NLA_F_NESTED = 1, 2, 7, 0x8000
STATS_BASIC, STATS_QUEUE, STATS_APP = 1, 3, 4
Q24 = 1 << 24
ROOT = 0xFFFFFFFF

CLASS_DERIVED = {"survival", "sojourn_mean_us", "sojourn_p50_us", "sojourn_p99_us"}
OWN_KEYS = {
    "kind",
    "handle",
    "dev",
    "root",
    "options",
    "bytes",
    "packets",
    "drops",
    "overlimits",
}
OWN_KEYS |= {
    "requeues",
    "backlog",
    "qlen",
    "refcnt",
    "class",
    "leaf",
    "parent",
    "stats",
}


def structures(header: Path) -> tuple[dict[str, Any], dict[str, int]]:
    """The structures as ctypes, and the numbers of the attributes."""
    text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.DOTALL)
    types: dict[str, Any] = {
        "__u64": ctypes.c_uint64,
        "__s64": ctypes.c_int64,
        "__u32": ctypes.c_uint32,
        "__u16": ctypes.c_uint16,
        "__be16": ctypes.c_uint16.__ctype_be__,
        "__u8": ctypes.c_uint8,
    }
    defined = dict(re.findall(r"#define (\w+) (\d+)$", text, re.MULTILINE))
    for name, body in re.findall(r"struct (\w+) \{(.*?)\};", text, re.DOTALL):
        fields = []
        for kind, member, size in re.findall(
            r"(?:struct )?(\w+) (\w+)(?:\[(\w+)\])?;", body
        ):
            count = int(defined.get(size, size or 0))
            fields.append((member, types[kind] * count if count else types[kind]))
        types[name] = type(name, (ctypes.Structure,), {"_fields_": fields})
    names = re.findall(
        r"\bTCA_(?:PAQM|DCBT|RLQOS)_(\w+)", re.findall(r"enum \{(.*?)\}", text, re.DOTALL)[0]
    )
    return types, {name: i for i, name in enumerate(names)}


def attribute(kind: int, data: bytes) -> bytes:
    return struct.pack("=HH", len(data) + 4, kind) + data + bytes(-len(data) % 4)


def message(
    options: bytes,
    app: bytes,
    kind: int = RTM_NEWQDISC,
    handle: int = 0x80010000,
    qdisc: str = "paqm",
) -> bytes:
    stats = attribute(STATS_BASIC, struct.pack("=QII", 1000, 2, 0))
    stats += attribute(STATS_QUEUE, struct.pack("=IIIII", 0, 0, 0, 0, 0))
    stats += attribute(STATS_APP, app)
    body = struct.pack("=BxxxiIII", 0, 1, handle, ROOT, 2)
    body += attribute(TCA_KIND, qdisc.encode() + b"\0")
    if kind == RTM_NEWQDISC:  # classes have no options
        body += attribute(TCA_OPTIONS | NLA_F_NESTED, options)
    body += attribute(TCA_STATS2, stats)
    return struct.pack("=IHHII", len(body) + 16, kind, 0, 0, 0) + body


class Show:
    def __init__(self, tc: str, json_monitor: str, directory: Path) -> None:
        self.tc = tc
        preloaded = directory / "json_monitor.so"  # LD_PRELOAD takes no path with a space
        preloaded.symlink_to(Path(json_monitor).resolve())
        self.json_monitor = str(preloaded)
        self.file = directory / "message"

    def text(self, data: bytes, *flags: str, preload: str = "") -> str:
        self.file.write_bytes(data)
        command = [self.tc, *flags, "monitor", "file", str(self.file)]
        environment = {**os.environ, "LD_PRELOAD": preload}
        result = subprocess.run(
            command, capture_output=True, text=True, check=True, env=environment
        )
        if result.stderr:
            raise AssertionError(f"tc said: {result.stderr}")
        return result.stdout

    def json(self, data: bytes) -> dict[str, Any]:
        parsed = json.loads(self.text(data, "-s", preload=self.json_monitor))
        return dict(parsed[0])


def same(got: Any, want: Any) -> bool:
    if isinstance(want, float):
        return isinstance(got, int | float) and abs(got - want) <= 1e-5 * abs(want)
    return type(got) is type(want) and got == want


def own(shown: dict[str, Any]) -> dict[str, Any]:
    """What the plugin printed of it."""
    return {key: value for key, value in shown.items() if key not in OWN_KEYS}


def differences(
    got: dict[str, Any], want: dict[str, Any], derived: set[str]
) -> list[str]:
    out = [f"key {key} is missing" for key in (want.keys() | derived) - got.keys()]
    out += [
        f"key {key} is not documented here"
        for key in got.keys() - want.keys() - derived
    ]
    for key in want.keys() & got.keys():
        if isinstance(want[key], dict):
            out += [
                f"{key}: {line}"
                for line in differences(got[key], want[key], CLASS_DERIVED)
            ]
        elif not same(got[key], want[key]):
            out.append(f"{key}: wanted {want[key]}, got {got[key]}")
    return out
