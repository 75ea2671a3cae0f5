# SPDX-License-Identifier: GPL-2.0
"""The dumbbell of the scenarios.

    m-a --+                                        every sender its own host, TCP senders together
    m-b --+-- r ==== q ---- v                      r: router with the queue under test
    t   --+   (bottleneck)                         v: all receivers
    other loads (floods, audio, web, idle flows): a host m-NAME each

Delay is netem's, a quarter of the round trip at each of: sender's way out, router's way back to
the sender, q's way to v, v's way back.
"""

from typing import Any

from paqm_lab import builder
from paqm_lab.network import Network

ROUTER, FAR, SINK, TCP = "r", "q", "v", "t"
BOTTLENECK = FAR  # the router's device towards q
SINK_ADDRESS = "10.4.0.2"
TCP_ADDRESS = "10.2.0.2"
# htb sends as long as it owes nothing: with the burst of a packet two go at once, and the second
# has its turn on the link for nothing. With next to none it is one at a time.
BURST = 64


def namespace_of(flow: str) -> str:
    """Host of a media sender."""
    return f"m-{flow}"


def add_bottleneck(net: Network, variant: dict[str, Any], bottleneck: int, varies: bool) -> None:
    """The queue under test, below what makes a bottleneck of the link if it does not itself."""
    words = variant["qdisc"].split()
    if varies:
        net.queue(ROUTER, BOTTLENECK, "root", "handle", "1:", "labtrace")
        net.queue(ROUTER, BOTTLENECK, "parent", "1:1", "handle", "10:", *words)
    elif variant["shaper"] is None:
        net.queue(ROUTER, BOTTLENECK, "root", "handle", "10:", *words)
    else:
        net.shape(ROUTER, BOTTLENECK, bottleneck, variant["qdisc"], BURST)


def dumbbell(config: dict[str, Any]) -> Network:
    """The network of a resolved scenario."""
    net = Network()
    quarter = config["path"]["rtt_ms"] / 4
    for host, forwards in ((ROUTER, True), (FAR, True), (SINK, False)):
        net.host(host, forwards)
    net.link(ROUTER, FAR, addresses=[("10.3.0.1", "10.3.0.2")])
    behind = net.link(FAR, SINK, addresses=[("10.4.0.1", SINK_ADDRESS)])
    net.route(ROUTER, "10.4.0.0/24", "10.3.0.2")
    net.route(FAR, "default", "10.3.0.1")
    net.route(SINK, "default", "10.4.0.1")
    net.delay(behind, quarter)
    hosts = [*config["media"], *config.get("loads", [])]
    senders = [(namespace_of(flow["name"]), flow["address"]) for flow in hosts]
    if config["elastic"]:
        senders.append((TCP, TCP_ADDRESS))
    for host, address in senders:
        gateway = f"{address.rpartition('.')[0]}.1"
        net.host(host)
        way = net.link(host, ROUTER, addresses=[(address, gateway)])
        net.route(host, "default", gateway)
        net.delay(way, quarter)
    add_bottleneck(net, config["variant"], config["path"]["bottleneck"], bool(config["link"]))
    return net


def build(config: dict[str, Any]) -> None:
    """Lays out the network of a resolved scenario."""
    builder.build(dumbbell(config))
