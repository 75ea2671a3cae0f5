# SPDX-License-Identifier: GPL-2.0
"""Makes a network (network.py) of namespaces: the one place where it becomes commands.

Addresses of the link layer and neighbour entries are fixed, offloads are off: a packet on the wire
is a packet in the queue, and nothing else is sent.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

from paqm_lab.network import Host, Link, Network, Queue, Route

OFFLOADS = ("tx", "sg", "tso", "gso", "gro")


class CommandFailed(Exception):
    """A command was refused; the text has its words and its answer."""


def run(*words: str, stdin: str = "") -> str:
    """Output of a command, which must succeed."""
    done = subprocess.run(words, capture_output=True, text=True, input=stdin or None)
    if done.returncode:
        raise CommandFailed(f"{' '.join(words)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def inside(host: str, *words: str, stdin: str = "") -> str:
    """The same in a host's namespace."""
    return run("ip", "netns", "exec", host, *words, stdin=stdin)


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


def build(network: Network) -> None:
    """Makes all of a network, in its order.

    A program's random numbers depend on how many came before it, and system calls that fail take
    virtual time: other commands, or in another order, make another packet log.
    """
    for (kind, _), steps in groupby(network.steps, lambda s: (type(s), getattr(s, "host", ""))):
        if kind is Route:
            add_routes(step for step in steps if isinstance(step, Route))
            continue
        for step in steps:
            if isinstance(step, Host):
                add_host(step)
            elif isinstance(step, Link):
                add_link(step)
            elif isinstance(step, Queue):
                add_queue(step)


def remove(network: Network) -> None:
    """Removes its hosts, as far as they are there, and with them all the rest."""
    for host in network.hosts:
        subprocess.run(["ip", "netns", "del", host.name], capture_output=True)


def add_host(host: Host) -> None:
    run("ip", "netns", "add", host.name)
    run("ip", "-n", host.name, "link", "set", "dev", "lo", "up")
    settings = [] if host.ipv6 else ["ipv6.conf.all.disable_ipv6", "ipv6.conf.default.disable_ipv6"]
    settings += ["ipv4.tcp_no_metrics_save"]
    if host.forwards:
        settings += ["ipv4.ip_forward", *(["ipv6.conf.all.forwarding"] if host.ipv6 else [])]
    for name in settings:
        inside(host.name, "sysctl", "-qw", f"net.{name}=1")


def add_link(link: Link) -> None:
    """The pair of devices, with their addresses, up."""
    left, right = link.left, link.right
    run(
        *("ip", "link", "add", "name", left.device, "address", left.mac, "netns", left.host),
        *("type", "veth"),
        *("peer", "name", right.device, "address", right.mac, "netns", right.host),
    )
    for end in (left, right):
        inside(end.host, "ethtool", "-K", end.device, *(w for o in OFFLOADS for w in (o, "off")))
        mtu = ["mtu", str(link.mtu)] if link.mtu else []
        device = link.device(end.host)
        if link.vlan is not None:
            run("ip", "-n", end.host, "link", "set", "dev", end.device, *mtu, "up")
            run(
                *("ip", "-n", end.host, "link", "add", "link", end.device, "name", device),
                *("type", "vlan", "id", str(link.vlan)),
            )
        set_addresses(link, end.host)
        run("ip", "-n", end.host, "link", "set", "dev", device, *mtu, "up")
        set_neighbours(link, end.host)


def set_addresses(link: Link, host: str) -> None:
    """Those of a host's end."""
    for address in link.end(host).addresses:
        words = ["nodad"] if ":" in address else []
        run("ip", "-n", host, "address", "replace", address, "dev", link.device(host), *words)


def set_neighbours(link: Link, host: str) -> None:
    """Who has the addresses at the other end: that is not asked for."""
    peer = link.other(host)
    for address in peer.addresses:
        run(
            *("ip", "-n", host, "neigh", "replace", address.partition("/")[0]),
            *("lladdr", peer.mac, "nud", "permanent", "dev", link.device(host)),
        )


def add_routes(routes: Iterable[Route]) -> None:
    """Routes of one host; many at once, since commands are what takes time."""
    known = list(routes)
    lines = [f"route replace {route.to} via {route.via}" for route in known]
    if len(lines) == 1:
        run("ip", "-n", known[0].host, *lines[0].split())
    else:
        run("ip", "-n", known[0].host, "-batch", "-", stdin="\n".join(lines) + "\n")


def add_queue(queue: Queue) -> None:
    run("tc", "-n", queue.host, *queue_words(queue))


def queue_words(queue: Queue) -> list[str]:
    """What tc is told to make a queue."""
    return [queue.what, "add", "dev", queue.device, *queue.words]
