#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""tc and the real module together; runs as root inside a lab guest.

Every option by add, change and replace; what is shown is fed back; ranges; statistics under load
against what tc itself counts and against the keys that the man page documents.
Usage: paqm-lab exec userspace/tc-paqm/tests/lab_tc.py   (TC_LIB_DIR, PAQM_KO_DIR from paqm-lab)
"""

import json
import re
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import test_man

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "kernel" / "lab-tests"))
import trial  # noqa: E402
from trial import Program  # noqa: E402
from trial import run as sh  # noqa: E402

from paqm_lab import topology  # noqa: E402
from paqm_lab.topology import HERE  # noqa: E402

DEV = "veth-r"
NO_QUEUE = "Warning: paqm: this device (Wi-Fi, veth,"  # without a rate; tdc has that
MAN = Path(__file__).resolve().parent.parent / "tc-paqm.8"

# Words, key in JSON, value shown for them; two settings of every option.
SETTINGS: list[tuple[str, str, Any]] = [
    ("bandwidth 8mbit", "bandwidth_bps", 8_000_000),
    ("bandwidth none", "bandwidth_bps", 0),
    ("bandwidth 100gbit", "bandwidth_bps", 100_000_000_000),
    ("bandwidth 800gbit", "bandwidth_bps", 800_000_000_000),
    ("bandwidth auto", "bandwidth_auto", True),
    ("bandwidth 9876536bit", "bandwidth_bps", 9_876_536),
    ("overhead -14", "overhead_bytes", -14),
    ("overhead 44", "overhead_bytes", 44),
    ("overhead 0", "overhead_bytes", 0),
    ("mpu 64", "mpu_bytes", 64),
    ("mpu 0", "mpu_bytes", 0),
    ("linklayer atm", "linklayer", "atm"),
    ("linklayer ptm", "linklayer", "ptm"),
    ("linklayer ethernet", "linklayer", "ethernet"),
    ("media-target 100us", "media_target_us", 100),
    ("media-target 1s", "media_target_us", 1_000_000),
    ("media-target 6000b", "media_target_bytes", 6_000),
    ("media-target 2ms", "media_target_us", 2_000),
    ("elastic-target 64kb", "elastic_target_bytes", 65_536),
    ("elastic-target 20ms", "elastic_target_us", 20_000),
    ("elastic-target 12345", "elastic_target_us", 12_345),
    ("limit 64k", "limit_bytes", 65_536),
    ("limit auto", "limit_bytes", 0),
    ("media-limit 20000", "media_limit_bytes", 20_000),
    ("media-limit auto", "media_limit_bytes", 0),
    ("elastic-limit 1mb", "elastic_limit_bytes", 1 << 20),
    ("elastic-limit auto", "elastic_limit_bytes", 0),
    ("interval 1ms", "interval_us", 1_000),
    ("interval auto", "interval_us", 0),
    ("gain 0.05", "gain", 0.05),
    ("gain 1", "gain", 1.0),
    ("gamma 0.25", "gamma", 0.25),
    ("gamma auto", "gamma", 0.0),
    ("alpha 0.01", "alpha", 0.01),
    ("alpha 2", "alpha", 2.0),
    ("beta 0.01", "beta", 0.01),
    ("beta 2", "beta", 2.0),
    ("profile fast", "alpha", 0.75),
    ("profile fast", "beta", 0.35),
    ("profile robust", "alpha", 0.484),
    ("profile robust", "beta", 0.131),
    ("period 50ms", "period_us", 50_000),
    ("period 5s", "period_us", 5_000_000),
    ("rtt 100us", "rtt_us", 100),
    ("rtt 2s", "rtt_us", 2_000_000),
    ("rtt auto", "rtt_us", 0),
    ("gop 480ms", "gop_us", 480_000),
    ("gop auto", "gop_us", 0),
    ("split 30%", "split", 0.3),
    ("split flows", "split", 0.0),
    ("media-weight 64", "media_weight", 64),
    ("media-weight 2", "media_weight", 2),
    ("elastic-weight 3", "elastic_weight", 3),
    ("borrow", "borrow", True),
    ("noborrow", "borrow", False),
    ("flow-age 60s", "flow_age_us", 60_000_000),
    ("flow-age 1s", "flow_age_us", 1_000_000),
    ("seed 18446744073709551615", "seed", (1 << 64) - 1),
    ("seed random", "seed", 0),
    ("dscp-media EF,AF41", "dscp_media", [34, 46]),
    ("dscp-elastic LE,CS1,51", "dscp_elastic", [1, 8, 51]),
    ("dscp-media none", "dscp_media", []),
    ("feedback-to 10.0.0.0/8,2001:db8:1::/48", "feedback_to", ["10.0.0.0/8", "2001:db8:1::/48"]),
    ("feedback-to 192.0.2.1/24", "feedback_to", ["192.0.2.0/24"]),
    ("feedback-to ::ffff:192.0.2.1/120", "feedback_to", ["192.0.2.0/24"]),
    ("feedback-to any", "feedback_to", []),
    ("feedback-to ::/0", "feedback_to", ["::/0"]),
    ("target-util 0.5", "target_util", 0.5),
    ("target-util 98%", "target_util", 0.98),
    ("law ecf", "law", "ecf"),
    ("law erf", "law", "erf"),
    ("law maxmin", "law", "maxmin"),
    ("transfer 0", "transfer_us", 0),
    ("transfer 2s", "transfer_us", 2_000_000),
    ("credit 0", "credit_us", 0),
    ("credit 1s", "credit_us", 1_000_000),
    ("md-floor 0.1", "md_floor", 0.1),
    ("md-floor 0.95", "md_floor", 0.95),
    ("noforced-md", "forced_md", False),
    ("forced-md", "forced_md", True),
    ("ai-hold", "ai_hold", True),
    ("noai-hold", "ai_hold", False),
    ("feedback icmp", "feedback", "icmp"),
    ("feedback none", "feedback", "none"),
    ("classify protocol", "classify", "protocol"),
    ("classify auto", "classify", "auto"),
    ("noecn", "ecn", False),
    ("ecn", "ecn", True),
    ("police", "police", True),
    ("nopolice", "police", False),
    ("noisolate", "isolate", False),
    ("isolate", "isolate", True),
    ("weights host", "weights", "host"),
    ("weights flow", "weights", "flow"),
    ("router-id 0xfeed", "router_id", "000000000000feed"),
    ("key none", "key", 0),
    ("flows 64", "flows", 64),
    ("flows 1048576", "flows", 1_048_576),
    ("flows 256", "flows", 256),
]

wrong: list[str] = []
right: list[str] = []


def expect(what: str, got: Any, want: Any) -> None:
    near = isinstance(want, float) and isinstance(got, int | float) and abs(got - want) < 1e-4
    if not near and got != want:
        wrong.append(f"{what}: wanted {want!r}, got {got!r}")
    else:
        right.append(what)


def tc(action: str, words: str) -> subprocess.CompletedProcess[str]:
    handle = words.split()[:2] if words.startswith("handle ") else []
    rest = words.split()[len(handle) :]
    command = ["tc", "qdisc", action, "dev", DEV, "root", *handle, "paqm", *rest]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def must(action: str, words: str) -> None:
    result = tc(action, words)
    said = result.stderr.splitlines()
    said = [line for line in said if not line.startswith(NO_QUEUE)]
    expect(f"{action} {words}", (result.returncode, said), (0, []))


def remove() -> None:
    sh("tc", "qdisc", "del", "dev", DEV, "root")


def show(*flags: str) -> dict[str, Any]:
    """The qdisc as JSON; a syntax error or a key that comes twice is fatal."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in pairs]
        expect("keys that come twice", {key for key in keys if keys.count(key) > 1}, set())
        return dict(pairs)

    text = sh("tc", *flags, "-j", "qdisc", "show", "dev", DEV)
    return dict(json.loads(text, object_pairs_hook=once)[0])


def options() -> dict[str, Any]:
    return dict(show()["options"])


def check_options() -> None:
    must("add", "")
    defaults = options()
    described = test_man.described(section("PARAMETERS"))
    documented = {line.removeprefix("[no]").split()[0] for line in described}
    known = {
        key.removesuffix("_us").removesuffix("_bps").removesuffix("_bytes") for key in defaults
    } - {"bandwidth_auto"}
    expect(
        "options against PARAMETERS of the man page",
        known | {"profile", "preset"},  # tc makes options of them
        {word.replace("-", "_") for word in documented},
    )
    for words, key, value in SETTINGS:
        must("change", words)
        expect(f"change {words}", options()[key], value)
    remove()
    for words, key, value in SETTINGS:
        must("add", words)
        got = options()
        expect(f"add {words}", got[key], value)
        changed = {k for k, v in got.items() if v != defaults[k]} - {"router_id"}
        if not words.startswith("profile"):
            expect(f"add {words}: options that differ from the defaults", changed - {key}, set())
        remove()
    must("add", "")
    for words, key, value in SETTINGS:
        must("replace", words)
        expect(f"replace {words}", options()[key], value)
    remove()


def check_round_trip() -> None:
    """Words shown by tc -d can be given to tc."""
    everything = " ".join(words for words, *_ in SETTINGS) + (
        " flows 128 limit 65000 media-limit 30000 elastic-limit 40000 bandwidth 3456789bit"
        " overhead 18 mpu 84 linklayer atm media-target 5000b gop 480ms gain 0.1234567"
        " split 33.333% dscp-media EF,33 feedback-to 10.1.0.0/16,fe80::/10 seed 7 borrow"
    )
    must("add", everything)
    before = options()
    line = sh("tc", "-d", "qdisc", "show", "dev", DEV).splitlines()[0]
    words = re.sub(r"^.*? refcnt \d+ ", "", line)
    remove()
    must("add", words)
    expect(f"round trip of {words}", options(), before)
    # what is not named stays, also the other of two ways to give a target
    must("change", "elastic-target 5ms")
    expect("change of one option", options(), before | {"elastic_target_us": 5_000})
    must("change", "media-target 4ms")
    after = {"media_target_us": 4_000, "media_target_bytes": 0, "elastic_target_us": 5_000}
    expect("change of a size to a time", options(), before | after)
    # a thousandth more than what has few digits
    for words, key, value in (
        ("bandwidth 8008bit", "bandwidth_bps", 8_008),
        ("rtt 1.001ms", "rtt_us", 1_001),
    ):
        must("change", words)
        line = sh("tc", "-d", "qdisc", "show", "dev", DEV).splitlines()[0]
        must("change", re.sub(r"^.*? refcnt \d+ ", "", line))
        expect(f"{words}, and what is shown of it", options()[key], value)
    remove()


def check_key() -> None:
    """A key can be given and changed; what is shown is its id."""
    secret = "00112233445566778899aabbccddeeff"
    must("add", f"key 7:{secret}")
    expect("id of the key", options()["key"], 7)
    must("change", f"gain 0.9 key 65535:{secret.upper()}")
    expect("id of the new key", options()["key"], 65535)
    must("change", "gain 0.8")
    expect("id after another change", options()["key"], 65535)
    line = sh("tc", "-s", "-d", "qdisc", "show", "dev", DEV)
    expect("the key in the text", " key 65535:hidden " in line, True)
    everything = line + sh("tc", "-s", "-j", "qdisc", "show", "dev", DEV)
    expect("the secret is not shown", secret in everything.lower(), False)
    must("replace", "key none")
    expect("no key", options()["key"], 0)
    remove()


def check_refusals() -> None:
    must("add", "flows 128")
    before = options()
    for words in ("period 49ms", "law fair", "media-target", "feedback-to 10.0.0.0/8,any"):
        result = tc("change", f"gain 0.9 {words}")
        expect(f"change {words}", result.returncode, 1)
    # both lists are fine by themselves: only the kernel knows the other one
    must("change", "dscp-media EF,AF41")
    before = options()
    result = tc("change", "gain 0.9 dscp-elastic LE,EF")
    expect("a DSCP in both maps", result.returncode, 2)
    expect("its text", "cannot be in dscp-media and in dscp-elastic" in result.stderr, True)
    expect("options after refused changes", options(), before)
    expect("add on top", tc("add", "").returncode, 2)
    remove()


def lay_out() -> None:
    """s -- here -- v, over IPv4 and IPv6."""
    net = topology.Network()
    for host in ("s", HERE, "v"):
        net.host(host, forwards=host == HERE, ipv6=True)
    for number, left, right, devices, ends in ((1, "s", HERE, ("veth-s", "veth-l"), (2, 1)),
                                               (2, HERE, "v", (DEV, "veth-v"), (1, 2))):
        four, six = (tuple(form.format(number, end) for end in ends)
                     for form in ("10.0.{}.{}", "fd00:{}::{}/64"))
        net.link(left, right, devices=devices, addresses=[four, six])
    for number, host in ((1, "s"), (2, "v")):
        net.route(host, "default", f"10.0.{number}.1")
        net.route(host, "::/0", f"fd00:{number}::1")
    topology.make(net)


def media(seconds: float, address: str, size: int) -> None:
    """Datagrams of `size` bytes every 4 ms that look like RTP."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sender = socket.socket(family, socket.SOCK_DGRAM)
    end = time.monotonic() + seconds
    sequence = 0
    while time.monotonic() < end:
        head = bytes([0x80, 96]) + sequence.to_bytes(2, "big") + bytes(8)
        sender.sendto(head + bytes(size - 12), (address, 5004))
        sequence = (sequence + 1) & 0xFFFF
        time.sleep(0.004)


def send_media(seconds: int, address: str = "10.0.2.2", size: int = 1000) -> Program:
    return Program("s", sys.executable, __file__, "media", seconds, address, size)


def section(name: str) -> str:
    found = re.search(rf'^\.SH "?{name}"?$(.*?)(?=^\.SH |\Z)', MAN.read_text(), re.M | re.S)
    if not found:
        raise SystemExit(f"{MAN}: no section {name}")
    return found.group(1)


def tags(text: str) -> list[str]:
    """Arguments of the lines that open a tagged paragraph of a man page."""
    return re.findall(r"^\.TP\n\.B[RI]? (.*)$", text, re.M)


def check_keys(stats: dict[str, Any]) -> None:
    """Every key is documented, and every documented key is there."""
    tc_own = {"kind", "handle", "root", "refcnt", "options", "bytes", "packets", "drops"}
    tc_own |= {"overlimits", "requeues", "backlog", "qlen"}
    found = (set(stats) - tc_own) | set(stats["media"])
    expect("keys of media and elastic", set(stats["media"]), set(stats["elastic"]))
    documented = section("STATISTICS").split(".SS Of a busy flow")[0]
    names = {key for line in tags(documented) for key in line.split(" , ")}
    expect(
        "keys against STATISTICS of the man page",
        found,
        names,
    )


def check_statistics() -> None:
    words = "bandwidth 8mbit feedback icmp router-id 2a"
    must("add", words)
    server = Program("v", "iperf3", "-s", "-1")
    time.sleep(0.5)
    sender = send_media(10)
    time.sleep(2)
    client = Program("s", "iperf3", "-c", "10.0.2.2", "-t", "6", "-P", "2", "-M", "1400")
    time.sleep(5)
    print(f"$ tc -s qdisc show dev {DEV}    # {words}, media 2 Mbit/s, two TCP flows")
    print(sh("tc", "-s", "qdisc", "show", "dev", DEV), end="")
    print(f"$ tc -s -d qdisc show dev {DEV}")
    print(sh("tc", "-s", "-d", "qdisc", "show", "dev", DEV), end="")
    busy = show("-s")
    sender.wait()
    client.wait()
    server.kill()
    server.wait()
    time.sleep(3)
    stats = show("-s")
    remove()

    check_keys(stats)
    sums = {
        "bytes": "sent_bytes",
        "packets": "sent_packets",
        "backlog": "backlog_bytes",
        "qlen": "backlog_packets",
    }
    for own, key in sums.items():
        expect(f"{own} of tc", stats["media"][key] + stats["elastic"][key], stats[own])
    drops = [stats[c][k] for c in ("media", "elastic") for k in stats[c] if k.startswith("drop_")]
    expect("drops of tc", sum(drops), stats["drops"])
    for name in ("media", "elastic"):
        queue = stats[name]
        expect(f"{name}: histogram", sum(queue["sojourn_hist_packets"]), queue["sent_packets"])
        order = [queue[f"sojourn_{k}_us"] for k in ("p50", "p99", "max")]
        expect(f"{name}: order of {order}", order, sorted(order))
        mean = queue["sojourn_sum_ns"] / 1000 / queue["sent_packets"]
        expect(f"{name}: mean", abs(queue["sojourn_mean_us"] - mean) < 0.001 * mean + 0.1, True)
    # 2500 datagrams, less by what sleeping costs; TCP fills the rest of 8 Mbit/s for 6 s.
    expect("media packets", 2000 < stats["media"]["sent_packets"] <= 2600, True)
    expect("elastic bytes", 2_000_000 < stats["elastic"]["sent_bytes"] < 6_500_000, True)
    flows = busy["elastic"]["flows"]
    expect("media flows", busy["media"]["flows"], 1)
    expect(f"elastic flows, {flows}", flows in (1, 2), True)
    expect("phi", busy["phi"], flows / (flows + 1))
    expect("capacity", busy["capacity_bps"], 8_000_000)
    expect("its source", busy["capacity_source"], "given")
    expect("never congested", stats["never_congested"], False)
    expect("load", 0.8 < busy["load"] < 1.3, True)
    expect("shares", busy["media"]["share_bps"] + busy["elastic"]["share_bps"], 8_000_000)
    expect("router", busy["router"], "000000000000002a")
    expect("notices", stats["notices_sent"] > 10, True)
    expect("utilisation", 0.3 < stats["utilisation"] < 1, True)
    expect("uptime", 12e9 < stats["uptime_ns"] < 20e9, True)
    expect("idle", 1e9 < stats["idle_ns"] < stats["uptime_ns"], True)


def check_flows() -> None:
    """The busiest flows as pseudo classes, over IPv4 and IPv6; round-trip times by echo."""
    must("add", "handle 1: bandwidth 8mbit feedback icmp rtt auto")
    senders = [send_media(6), send_media(6, "fd00:2::2", 500)]
    time.sleep(5)
    text = sh("tc", "-s", "class", "show", "dev", DEV)
    print(f"$ tc -s class show dev {DEV}")
    print(text, end="")
    found = re.findall(
        r"^class paqm 1:(\w+) .*\n\s+udp (\S+) > (\S+)\n"
        r"  rate ([\d.]+)Mbit share ([\d.]+)Mbit"
        r" told ([\d.]+)Mbit (\S+) ago last packet (\S+)ms ago$",
        text,
        re.M,
    )
    expect("flows in the text", [flow[0] for flow in found], ["101", "102"])
    for flow, source, destination, rate in zip(
        found,
        ("10.0.1.2:", "[fd00:1::2]:"),
        ("10.0.2.2:5004", "[fd00:2::2]:5004"),
        (2.05, 1.1),
        strict=False,
    ):
        expect("source", flow[1].startswith(source), True)
        expect("destination", flow[2], destination)
        expect(f"rate {flow[3]}", abs(float(flow[3]) - rate) < 0.1 * rate, True)
        expect(f"told {flow[5]} of {flow[4]}", float(flow[5]) <= float(flow[4]), True)
        expect(f"last packet {flow[7]}", float(flow[7]) < 500, True)
    stats = show("-s")
    expect("echo answered", stats["echo_answered"] > 0, True)
    expect("echo asked", stats["echo_sent"] >= stats["echo_answered"], True)
    expect("round-trip times", 0 < stats["rtt_mean_us"] <= stats["rtt_max_us"], True)
    expect("in text", "  rtt mean " in sh("tc", "-s", "qdisc", "show", "dev", DEV), True)
    expect("flows told apart", (stats["seen_flows"] >= 2, stats["rtp_flows"]), (True, 2))
    for action in ("add", "change", "del"):
        command = ["tc", "class", action, "dev", DEV, "classid", "1:101"]
        kind = ["paqm"] if action != "del" else []
        result = subprocess.run([*command, *kind], capture_output=True, text=True, check=False)
        expect(f"class {action} 1:101", result.returncode != 0, True)
    for sender in senders:
        sender.wait()
    time.sleep(10)
    text = sh("tc", "-s", "class", "show", "dev", DEV)
    expect("no busy flow in silence", "udp" in text, False)
    remove()


def check_hint() -> None:
    """A queue that is not the bottleneck says so, one that is does not."""
    hint = "never congested here"
    for words, rate, idle in (("", 1000, True), ("bandwidth 1mbit", 1000, False)):
        must("add", words)
        sender = send_media(11, size=rate)
        sender.wait()
        text = sh("tc", "-s", "qdisc", "show", "dev", DEV)
        expect(f"{words}: hint", hint in text, idle)
        expect(f"{words}: hint in JSON", show("-s")["never_congested"], idle)
        remove()
    must("add", "")
    sh("ip", "link", "set", DEV, "down")
    time.sleep(11)
    text = sh("tc", "-s", "qdisc", "show", "dev", DEV)
    expect("no packet", "no packet came here" in text, True)
    remove()


def main() -> int:
    if sys.argv[1:2] == ["media"]:
        media(float(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
        return 0
    trial.load_modules()
    lay_out()
    check_options()
    check_round_trip()
    check_key()
    check_refusals()
    check_statistics()
    check_flows()
    check_hint()
    sh("rmmod", "sch_paqm")
    print("".join(f"ok {line}\n" for line in right), end="")
    print("".join(f"not ok {line}\n" for line in wrong), end="")
    print(f"{len(right) + len(wrong)} checks, {len(wrong)} wrong")
    return 1 if wrong or not right else 0


if __name__ == "__main__":
    sys.exit(main())
