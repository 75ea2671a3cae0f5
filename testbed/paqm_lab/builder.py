# SPDX-License-Identifier: GPL-2.0
"""Makes a network (network.py) of namespaces: the one place where it becomes commands.

Addresses of the link layer and neighbour entries are fixed, offloads are off: a packet on the wire
is a packet in the queue, and nothing else is sent.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from paqm_lab.network import Host, Link, Network, Queue

OFFLOADS = ("tx", "sg", "tso", "gso", "gro")


class CommandFailed(Exception):
    """A command was refused; the text has its words and its answer."""


def run(*words: str, stdin: str = "") -> str:
    """Output of a command, which must succeed."""
    done = subprocess.run(words, capture_output=True, text=True, input=stdin)
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
    """Makes all of a network."""
    for host in network.hosts:
        add_host(host)
    for link in network.links:
        add_link(link)
        set_addresses(link)
    set_routes(network)
    for queue in network.queues:
        add_queue(queue)


def remove(network: Network) -> None:
    """Removes its hosts, as far as they are there, and with them all the rest."""
    for host in network.hosts:
        subprocess.run(["ip", "netns", "del", host.name], capture_output=True)


def add_host(host: Host) -> None:
    run("ip", "netns", "add", host.name)
    run("ip", "-n", host.name, "link", "set", "dev", "lo", "up")
    settings = {"ipv4.tcp_no_metrics_save": 1}
    if not host.ipv6:
        settings |= {"ipv6.conf.all.disable_ipv6": 1, "ipv6.conf.default.disable_ipv6": 1}
    if host.forwards:
        settings["ipv4.ip_forward"] = 1
        if host.ipv6:
            settings["ipv6.conf.all.forwarding"] = 1
    inside(host.name, "sysctl", "-qw", *(f"net.{name}={on}" for name, on in settings.items()))


def add_link(link: Link) -> None:
    """The pair of devices, up."""
    left, right = link.left, link.right
    run(
        *("ip", "link", "add", "name", left.device, "address", left.mac, "netns", left.host),
        *("type", "veth"),
        *("peer", "name", right.device, "address", right.mac, "netns", right.host),
    )
    for end in (left, right):
        inside(end.host, "ethtool", "-K", end.device, *(w for o in OFFLOADS for w in (o, "off")))
        if link.vlan is not None:
            run(
                *("ip", "-n", end.host, "link", "add", "link", end.device),
                *("name", link.device(end.host), "type", "vlan", "id", str(link.vlan)),
            )
        for device in dict.fromkeys((end.device, link.device(end.host))):
            mtu = ["mtu", str(link.mtu)] if link.mtu else []
            run("ip", "-n", end.host, "link", "set", "dev", device, *mtu, "up")


def set_addresses(link: Link) -> None:
    """Its addresses, and who has them; again after something has taken them away."""
    for end in (link.left, link.right):
        device, peer = link.device(end.host), link.other(end.host)
        for address in end.addresses:
            words = ["nodad"] if ":" in address else []
            run("ip", "-n", end.host, "address", "replace", address, "dev", device, *words)
        for address in peer.addresses:
            run(
                *("ip", "-n", end.host, "neigh", "replace", address.partition("/")[0]),
                *("lladdr", peer.mac, "nud", "permanent", "dev", device),
            )


def set_routes(network: Network) -> None:
    for host in network.hosts:
        lines = [
            f"route replace {route.to} via {route.via}\n"
            for route in network.routes
            if route.host == host.name
        ]
        if lines:
            run("ip", "-n", host.name, "-batch", "-", stdin="".join(lines))


def add_queue(queue: Queue) -> None:
    run("tc", "-n", queue.host, *queue_words(queue))


def queue_words(queue: Queue) -> list[str]:
    """What tc is told to make a queue."""
    return [queue.what, "add", "dev", queue.device, *queue.words]
