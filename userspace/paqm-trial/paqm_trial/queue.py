# SPDX-License-Identifier: GPL-2.0
"""The queue of a device: what stands there, how it is put back, what the trial puts there."""

from __future__ import annotations

import itertools
import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

from paqm_trial.store import Trouble, count, say

TRY = "lo"
HANDLE = "7a1:"  # of what the trial attaches: the root of nothing else
STAYING = {"ingress", "clsact"}
# Words of tc for what another device, or a network other than the host's, has not.
ON_DEVICE = {"mq", "mqprio", "taprio", "etf", "offload", "skip_sw", "indev", "ipset", "index"}
# Queues that make their classes by themselves, from their options or from what passes.
SELF_MADE = {
    *("cake", "cbs", "choke", "ets", "fq_codel", "fq_pie", "mq", "mqprio", "multiq", "netem"),
    *("paqm", "prio", "red", "sfb", "sfq", "skbprio", "taprio", "tbf"),
}
ETHER = {"1", "772"}  # ARPHRD_ETHER and ARPHRD_LOOPBACK
BASELINES = ("as-found", "fq_codel", "cake", "fifo")
RATE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([kmg]?)bit", re.I)
SCALE = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9}
# What tc shows and does not read back in that form.
SHOWN = {
    "fq_codel": [
        (r"\blimit (\d+)p\b", r"limit \1"),
        (r"\bmemory_limit (\d+)Mb\b", r"memory_limit \1mb"),
    ],
    "pfifo": [(r"\blimit (\d+)p\b", r"limit \1")],
    "bfifo": [(r"\blimit (\d+)b\b", r"limit \1")],
    "fq": [(r"\b(flow_)?limit (\d+)p\b", r"\1limit \2")],
    "codel": [(r"\blimit (\d+)p\b", r"limit \1")],
    "sfq": [(r"\blimit (\d+)p\b", r"limit \1"), (r"\bquantum (\d+)b\b", r"quantum \1")],
}


def parse_rate(text: str) -> float:
    match = RATE.fullmatch(text)
    rate = float(match[1]) * SCALE[match[2].lower()] if match else 0.0
    if not 8000 <= rate <= 1e12:
        raise Trouble(
            f"--bandwidth {text}: a rate such as 20mbit: a little less than the link "
            "carries, from 8kbit to 1000gbit"
        )
    return rate


def run(*words: str, text: str | None = None, name: str = "") -> str:
    """What a command says; `name`: what its trouble is told by."""
    try:
        done = subprocess.run(
            words, input=text, capture_output=True, text=True, timeout=30, errors="replace"
        )
    except FileNotFoundError:
        raise Trouble(f"{words[0]} is missing: install it") from None
    except subprocess.TimeoutExpired:
        raise Trouble(f"{name or shlex.join(words)}: no answer for 30 s") from None
    if done.returncode:
        why = " ".join((done.stderr or done.stdout).split()) or f"status {done.returncode}"
        raise Trouble(f"{name or shlex.join(words)}: {why}")
    return done.stdout


def show(device: str, statistics: bool = True) -> list[dict[str, Any]]:
    words = ["tc", *(["-s"] if statistics else []), "-j", "qdisc", "show", "dev", device]
    try:
        found = json.loads(run(*words) or "[]")
    except ValueError:
        raise Trouble(
            f"{shlex.join(words)} does not print JSON: iproute2 6.1 or newer is needed"
        ) from None
    # ingress and clsact stay where they are: they are no queue
    return [one for one in found if isinstance(one, dict) and one.get("kind") not in STAYING]


def root_of(shown: list[dict[str, Any]]) -> dict[str, Any] | None:
    return next((one for one in shown if one.get("root")), None)


def ours(shown: list[dict[str, Any]]) -> bool:
    root = root_of(shown)
    return root is not None and root.get("handle") == HANDLE


def need_name(device: str) -> None:
    if not re.fullmatch(r"[^/\s]{1,15}", device) or device in (".", ".."):
        raise Trouble(f'"{device}" is not a device name')


def real_name(name: str) -> str:
    """Of a device that is named by another of its names (ip link property add ... altname)."""
    if re.fullmatch(r"[^-/\s][^/\s]*", name) and not Path("/sys/class/net", name).exists():
        try:
            (found,) = json.loads(run("ip", "-j", "link", "show", "dev", name))
            return str(found["ifname"])
        except (Trouble, ValueError, KeyError, TypeError):
            pass  # need_device() tells which there are
    return name


def need_device(device: str) -> None:
    need_name(device)
    if not Path("/sys/class/net", device).exists():
        known = sorted(path.name for path in Path("/sys/class/net").iterdir())
        raise Trouble(f"there is no device {device}; there are {', '.join(known)}")


def _text_of_root(device: str) -> str:
    """The line of tc about the root, as options."""
    for line in run("tc", "qdisc", "show", "dev", device).splitlines():
        match = re.match(r"qdisc (\S+) (\S+) root(?: refcnt \d+)?(.*)", line)
        if match:
            kind, options = match[1], match[3].strip()
            for shown, read in SHOWN.get(kind, []):
                options = re.sub(shown, read, options)
            return f"{kind} {options}".strip()
    return ""


def _options(device: str) -> Any:
    root = root_of(show(device, statistics=False)) or {}
    return [root.get("kind"), root.get("options")]


def _in_private(script: str) -> str:
    """In a network of its own, which ends with the command: its loopback is there to try."""
    make = f"ip link set {TRY} up\n"
    return run("unshare", "-n", "sh", "-ec", make + script, name="tc")


def _can_be_put_back(device: str, line: str) -> bool:
    """Does tc, with that line, make of a device what stands there now?"""
    try:
        said = _in_private(f"tc qdisc add dev {TRY} root {line}\ntc -j qdisc show dev {TRY}")
        root = root_of(json.loads(said)) or {}
    except (Trouble, ValueError):
        return False
    return bool([root.get("kind"), root.get("options")] == _options(device))


def _has_more(device: str) -> bool:
    """Classes that somebody made, or filters: deleted with the root, and not in its line."""
    classes = run("tc", "class", "show", "dev", device)
    made = set(re.findall(r"^class (\S+)", classes, re.M)) - SELF_MADE
    return bool(made or run("tc", "filter", "show", "dev", device).strip())


def find(device: str) -> list[str]:
    """The tc words that put back what stands there now; empty: what the kernel puts by itself."""
    shown = show(device)
    root = root_of(shown)
    if ours(shown):
        raise Trouble(
            f"{device} has the queue of a trial that did not end: run paqm-trial end {device}"
        )
    more = _has_more(device)
    bare = root is None or root.get("handle") == "0:" or root.get("kind") == "noqueue"
    if bare and not more:
        return []
    line = _text_of_root(device)
    alone = len([one for one in shown if one.get("handle") != "0:"]) == 1 and not more
    if root is not None and alone and _can_be_put_back(device, line):
        handle = str(root.get("handle"))
        mine = int(handle.rstrip(":"), 16) < 0x8000  # above, the kernel chose
        return ["root", *(["handle", handle] if mine else []), *line.split()]
    raise Trouble(
        f"{device} has a queue that cannot be put back for certain ({line or 'a tree'}"
        f"{' with classes or filters' if more else ''}): "
        "write its tc commands into a file, one per line without the word tc, and give it "
        "by --restore FILE"
    )


def check_restore(text: str, device: str) -> list[str]:
    """Lines for tc -batch that make the queue of a device, from the administrator's file."""
    lines = [line.strip() for line in text.splitlines()]
    lines = [line for line in lines if line and not line.startswith("#")]
    for line in lines:
        words = line.split()
        if words[0] not in ("qdisc", "class", "filter") or device not in words:
            raise Trouble(
                f'--restore: "{line}": each line is of the form qdisc add dev {device} '
                "..., class ... or filter ..."
            )
        if words[0] == "qdisc" and STAYING.intersection(words):
            raise Trouble(f'--restore: "{line}": omit it, the trial leaves that in place')
    return lines


def try_restore(device: str, batch: list[str]) -> None:
    """Does tc take the lines? Touches no device of this host; what hangs on one is not tried."""
    for line in batch:
        words = line.split()
        if words.count("dev") > 1 or ON_DEVICE.intersection(words):
            say(f'--restore is not tried beforehand: it depends on devices of this host ("{line}")')
            return
    there = re.compile(rf"\bdev\s+{re.escape(device)}(?!\S)")
    text = "".join(there.sub(f"dev {TRY}", line) + "\n" for line in batch)
    _in_private(f"printf %s {shlex.quote(text)} | tc -batch -")


def put_back(device: str, found: list[str], batch: list[str]) -> None:
    """What stood there before the trial."""
    shown = show(device)
    root = root_of(shown)
    if root is not None and root.get("handle") != "0:" and root.get("kind") != "noqueue":
        run("tc", "qdisc", "del", "dev", device, "root")
    if batch:
        run("tc", "-batch", "-", text="\n".join(batch) + "\n")
    elif found:
        run("tc", "qdisc", "add", "dev", device, *found)


def framing(words: list[str]) -> tuple[int, int, str]:
    """What options of paqm say of the link: overhead, mpu, linklayer. They hold for both queues."""
    said = {"overhead": "0", "mpu": "0", "linklayer": "ethernet"}
    for name, value in itertools.pairwise(words):
        if name in said:
            said[name] = value
    try:
        return int(said["overhead"]), int(said["mpu"]), said["linklayer"]
    except ValueError:
        raise Trouble(f'--paqm "{shlex.join(words)}": overhead and mpu must be numbers') from None


def header_of(device: str) -> int:
    """Bytes of a packet before its IP header."""
    try:
        return 14 if Path("/sys/class/net", device, "type").read_text().strip() in ETHER else 0
    except OSError:
        return 14


def cake_framing(device: str, words: list[str]) -> str:
    """Told anything, CAKE counts from the IP header on; paqm and htb count what Linux does."""
    overhead, mpu, layer = framing(words)
    if not overhead and not mpu and layer == "ethernet":
        return ""
    cells = {"ethernet": "noatm"}.get(layer, layer)
    return f" overhead {overhead + header_of(device)} mpu {mpu} {cells}"


def htb_rate(bandwidth: str, words: list[str]) -> str:
    """Its rate, with what the link adds to packets; of ptm's blocks it does not know."""
    overhead, mpu, layer = framing(words)
    if overhead < 0:
        raise Trouble(f"overhead {overhead}: only cake can subtract bytes: give --baseline cake")
    if layer == "ptm":
        bandwidth, layer = f"{int(parse_rate(bandwidth) * 64 / 65)}bit", "ethernet"
    more = f" overhead {overhead}" if overhead else ""
    more += f" mpu {mpu}" if mpu else ""
    return bandwidth + more + (f" linklayer {layer}" if layer != "ethernet" else "")


def commands(device: str, arm: str, bandwidth: str, words: list[str]) -> list[str]:
    """Lines for tc -batch that attach a queue of the trial; `words`: options of paqm."""
    root = f"qdisc replace dev {device} root handle {HANDLE}"
    if arm == "paqm":
        return [f"{root} paqm bandwidth {bandwidth} {' '.join(words)}".strip()]
    if arm == "cake":
        return [f"{root} cake bandwidth {bandwidth}{cake_framing(device, words)}"]
    leaf = {"fq_codel": "fq_codel", "fifo": "pfifo limit 1000"}[arm]
    return [
        f"{root} htb default 1",
        f"class replace dev {device} parent {HANDLE} classid {HANDLE}1 htb rate "
        f"{htb_rate(bandwidth, words)} quantum 1514",
        f"qdisc replace dev {device} parent {HANDLE}1 {leaf}",
    ]


def attach(device: str, arm: str, bandwidth: str, words: list[str]) -> None:
    """A queue of the trial."""
    if ours(show(device)):  # of the other kind: `replace` would only change options
        run("tc", "qdisc", "del", "dev", device, "root")
    for line in commands(device, arm, bandwidth, words):
        run("tc", *line.split())


def try_arm(arm: str, bandwidth: str, words: list[str]) -> None:
    """Are the programs, the module and the options there? Touches no device of this host."""
    lines = [shlex.join(["tc", *line.split()]) for line in commands(TRY, arm, bandwidth, words)]
    _in_private("\n".join(lines))


def sample(shown: list[dict[str, Any]]) -> dict[str, Any]:
    """What is worth keeping of the statistics of a device: no addresses are in it."""
    root = root_of(shown) or {}
    leaves = [root]
    if root.get("kind") in ("htb", "mq", "hfsc", "prio", "tbf") and len(shown) > 1:
        parents = {str(one.get("parent", "")).split(":")[0] for one in shown}
        leaves = [
            one
            for one in shown
            if one is not root and str(one.get("handle", "")).rstrip(":") not in parents
        ]
    row: dict[str, Any] = {
        "kind": root.get("kind"),
        "bytes": count(root.get("bytes")),
        "packets": count(root.get("packets")),
        "drops": sum(count(one.get("drops")) or 0 for one in leaves),
        "backlog": count(root.get("backlog")),
        "qlen": count(root.get("qlen")),
    }
    if root.get("kind") == "paqm":
        row["paqm"] = {
            key: root.get(key)
            for key in (
                "uptime_ns",
                "capacity_bps",
                "fair_rate_bps",
                "notices_sent",
                "notices_owed",
                "never_congested",
                "load",
            )
        }
        for name in ("media", "elastic"):
            part = root.get(name)
            if isinstance(part, dict):
                row["paqm"][name] = {
                    key: part.get(key)
                    for key in (
                        "sent_bytes",
                        "sent_packets",
                        "drop_tail_packets",
                        "drop_inner_packets",
                        "drop_strike_packets",
                        "backlog_bytes",
                        "flows",
                        "sojourn_hist_packets",
                    )
                }
    return row
