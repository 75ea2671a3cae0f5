# SPDX-License-Identifier: GPL-2.0
"""Random networks of routers, and flows from many of their nodes to one.

Nodes come one after the other, each with two links to earlier ones, chosen by how many links these
have (Barabasi and Albert, Science 286, 1999): one of the models of BRITE, by which the network of
the paper on layered probing was made. Every link has the same rate and queue, in both directions.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections import deque
from pathlib import Path

from bands import Flows, jain, on_wire

from paqm_lab import topology
from paqm_lab.topology import Network, netem

NODES, LINKS = 50, 2  # of each node, when it comes
HOP_MS = 10.0  # there and back
PACKET = 1000
APART, PART = 0.7, 10.0  # s


def edges(nodes: int, seed: int) -> list[tuple[int, int]]:
    """Links of a connected graph in which each node has two at least."""
    dice = random.Random(f"graph {seed}")
    found = [(0, 1), (0, 2), (1, 2)]
    for node in range(3, nodes):
        ends = [end for edge in found for end in edge]  # as often as it has links
        chosen: set[int] = set()
        while len(chosen) < LINKS:
            chosen.add(dice.choice(ends))
        found += [(old, node) for old in sorted(chosen)]
    return found


def hops(graph: list[tuple[int, int]], start: int) -> dict[int, int]:
    """From a node to each, over as few links as may be."""
    near: dict[int, list[int]] = {}
    for a, b in graph:
        near.setdefault(a, []).append(b)
        near.setdefault(b, []).append(a)
    found, waiting = {start: 0}, deque([start])
    while waiting:
        node = waiting.popleft()
        for other in near[node]:
            if other not in found:
                found[other] = found[node] + 1
                waiting.append(other)
    return found


def network(peers: int, rate: float, queue: int, seed: int) -> tuple[Network, str]:
    """Hosts s0, s1 ... at nodes of their own send to d, at another; and d's address.

    Round trips are HOP_MS for each link of the way, all of it where the sources are.
    """
    graph, net = edges(NODES, seed), Network()
    target, *places = random.Random(f"peers {seed}").sample(range(NODES), peers + 1)
    for node in range(NODES):
        net.host(f"g{node}", forwards=True)
    for a, b in graph:
        net.link(f"g{a}", f"g{b}", mtu=PACKET)
    last = net.link(f"g{target}", net.host("d"), mtu=PACKET)
    for link in list(net.links):
        for end in (link.left, link.right):
            net.queue(end.host, end.device, "root", "netem", "limit", str(queue), "rate",
                      f"{on_wire(rate)}bit")
    far = hops(graph, target)
    for number, place in enumerate(places):
        source = net.host(f"s{number}")
        net.link(source, f"g{place}", mtu=PACKET)
        net.queue(source, f"g{place}", "root", *netem(HOP_MS * (far[place] + 1)))
    return net.routed(), last.address("d")


def fairness(tool: str, controller: str, peers: int, rate: float, queue: int,
             bounds: tuple[float, float], seconds: float, seed: int) -> tuple[float, float]:
    """Flows begun one after the other: Jain's index of their rates from a minute on, and its
    standard deviation over parts of PART; @bounds: least and highest rate of a flow, bit/s.
    """
    net, address = network(peers, rate, queue, seed)
    topology.remove(net)
    topology.make(net)
    with tempfile.TemporaryDirectory() as home:
        flows = Flows(tool, controller, Path(home), seconds)
        for number in range(peers):
            port, log = 6000 + number, flows.home / f"r{number}.csv"
            flows.start("d", tool, "recv", port, flows.left(), log)
            time.sleep(0.05)
            flows.start(f"s{number}", tool, "send", f"{address}:{port}", controller, flows.left(),
                        bounds[1], 100 * seed + number, flows.home / f"s{number}.csv",
                        f"rate-min={bounds[0]}")
            flows.until(APART * (number + 1))
        flows.until(60)
        begin = time.monotonic()
        flows.finish()
        parts = int((seconds - 61) / PART)
        indices = [jain([flows.delta(f"r{number}", "bytes", begin + PART * k,
                                     begin + PART * (k + 1)) for number in range(peers)])
                   for k in range(parts)]
        whole = [flows.delta(f"r{number}", "bytes", begin, begin + PART * parts)
                 for number in range(peers)]
    topology.remove(net)
    return jain(whole), statistics.pstdev(indices)
