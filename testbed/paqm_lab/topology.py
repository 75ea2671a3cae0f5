# SPDX-License-Identifier: GPL-2.0
"""The dumbbell, built from network namespaces inside the guest.

    m-a --+                                        every sender its own host, TCP senders together
    m-b --+-- r ==== q ---- v                      r: router with the queue under test
    t   --+   (bottleneck)                         v: all receivers
    other loads (floods, audio, web, idle flows): a host m-NAME each

Delay is netem's, a quarter of the round trip at each of: sender's way out, router's way back to
the sender, q's way to v, v's way back. Addresses of the link layer and neighbour entries are
fixed, offloads are off: a packet on the wire is a packet in the queue, and nothing else is sent.
"""

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROUTER, FAR, SINK, TCP = "r", "q", "v", "t"
BOTTLENECK = FAR  # the router's device towards q
SINK_ADDRESS = "10.4.0.2"
NETEM_LIMIT = 100000


class CommandFailed(Exception):
    """A command that lays the network out was refused."""


def run(*words: str) -> str:
    """One command; its output."""
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise CommandFailed(f"{' '.join(words)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def start(host: str, command: list[str], log: Path) -> subprocess.Popen[bytes]:
    """A program in a namespace; what it says goes to a log, which stands where it runs."""
    with log.open("wb") as out:
        return subprocess.Popen(
            ["ip", "netns", "exec", host, *command],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            cwd=log.parent,
        )


@dataclass(frozen=True)
class End:
    """One end of a link: the device is called like the host it leads to."""

    host: str
    device: str
    address: str


def namespace_of(flow: str) -> str:
    """Host of a media sender."""
    return f"m-{flow}"


def _sysctl(host: str, name: str, value: str) -> None:
    run("ip", "netns", "exec", host, "sysctl", "-qw", f"{name}={value}")


def add_host(host: str, forwards: bool) -> None:
    """A namespace of its own, without IPv6."""
    run("ip", "netns", "add", host)
    run("ip", "-n", host, "link", "set", "dev", "lo", "up")
    _sysctl(host, "net.ipv6.conf.all.disable_ipv6", "1")
    _sysctl(host, "net.ipv6.conf.default.disable_ipv6", "1")
    _sysctl(host, "net.ipv4.tcp_no_metrics_save", "1")
    if forwards:
        _sysctl(host, "net.ipv4.ip_forward", "1")


def link(number: int, left: End, right: End) -> None:
    """A cable between two hosts."""
    macs = [f"02:00:00:00:{number:02x}:{side:02x}" for side in (1, 2)]
    run(
        *("ip", "link", "add", "name", left.device, "address", macs[0], "netns", left.host),
        *("type", "veth", "peer", "name", right.device, "address", macs[1], "netns", right.host),
    )
    for end, other, mac in ((left, right, macs[1]), (right, left, macs[0])):
        run(
            *("ip", "netns", "exec", end.host, "ethtool", "-K", end.device),
            *("tx", "off", "sg", "off", "tso", "off", "gso", "off", "gro", "off"),
        )
        run("ip", "-n", end.host, "address", "add", f"{end.address}/24", "dev", end.device)
        run("ip", "-n", end.host, "link", "set", "dev", end.device, "up")
        run(
            *("ip", "-n", end.host, "neigh", "replace", other.address, "lladdr", mac),
            *("nud", "permanent", "dev", end.device),
        )


def _delay(host: str, device: str, milliseconds: float) -> None:
    run(
        *("tc", "-n", host, "qdisc", "replace", "dev", device, "root", "netem"),
        *("delay", f"{milliseconds * 1000:.0f}us", "limit", str(NETEM_LIMIT)),
    )


def _route(host: str, network: str, via: str) -> None:
    run("ip", "-n", host, "route", "add", network, "via", via)


def queue_commands(variant: dict[str, Any], bottleneck: int, varies: bool) -> list[list[str]]:
    """The tc commands that put the queue under test on the bottleneck."""
    head = ["tc", "-n", ROUTER]
    words = variant["qdisc"].split()
    if varies:
        at = ["dev", BOTTLENECK]
        return [
            [*head, "qdisc", "replace", *at, "root", "handle", "1:", "labtrace"],
            [*head, "qdisc", "replace", *at, "parent", "1:1", "handle", "10:", *words],
        ]
    if variant["shaper"] is None:
        return [[*head, "qdisc", "replace", "dev", BOTTLENECK, "root", "handle", "10:", *words]]
    # htb sends as long as it owes nothing: with the burst of a packet two go at once, and the
    # second has its turn on the link for nothing. With next to none it is one at a time.
    limits = ["rate", f"{bottleneck}bit", "ceil", f"{bottleneck}bit", "burst", "64"]
    limits += ["cburst", "64", "quantum", "1514"]
    at = ["dev", BOTTLENECK]
    return [
        [*head, "qdisc", "replace", *at, "root", "handle", "1:", "htb", "default", "1"],
        [*head, "class", "add", *at, "parent", "1:", "classid", "1:1", "htb", *limits],
        [*head, "qdisc", "add", *at, "parent", "1:1", "handle", "10:", *words],
    ]


def build(config: dict[str, Any]) -> None:
    """Lays out the network of a resolved scenario."""
    quarter = config["path"]["rtt_ms"] / 4
    for host, forwards in ((ROUTER, True), (FAR, True), (SINK, False)):
        add_host(host, forwards)
    link(1, End(ROUTER, FAR, "10.3.0.1"), End(FAR, ROUTER, "10.3.0.2"))
    link(2, End(FAR, SINK, "10.4.0.1"), End(SINK, FAR, SINK_ADDRESS))
    _route(ROUTER, "10.4.0.0/24", "10.3.0.2")
    _route(FAR, "default", "10.3.0.1")
    _route(SINK, "default", "10.4.0.1")
    _delay(FAR, SINK, quarter)
    _delay(SINK, FAR, quarter)
    hosts = [*config["media"], *config.get("loads", [])]
    senders = [(namespace_of(flow["name"]), flow["address"]) for flow in hosts]
    if config["elastic"]:
        senders.append((TCP, "10.2.0.2"))
    for number, (host, address) in enumerate(senders, start=3):
        gateway = f"{address.rsplit('.', 1)[0]}.1"
        add_host(host, False)
        link(number, End(host, ROUTER, address), End(ROUTER, host, gateway))
        _route(host, "default", gateway)
        _delay(host, ROUTER, quarter)
        _delay(ROUTER, host, quarter)
    for command in queue_commands(
        config["variant"], config["path"]["bottleneck"], bool(config["link"])
    ):
        run(*command)
