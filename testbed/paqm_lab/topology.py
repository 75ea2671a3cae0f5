# SPDX-License-Identifier: GPL-2.0
"""Networks: as plain data, what makes them of namespaces, and the dumbbell of the scenarios.

A device is called like the host that it leads to, unless told otherwise, and link N has the
addresses 10.N.0.1 (left) and 10.N.0.2 (right). Addresses of the link layer and neighbour entries
are fixed, offloads are off: a packet on the wire is a packet in the queue, and nothing else is
sent. Commands are run here and nowhere else.

This is one module since the guest's clock goes on by some microseconds with each that it loads,
and with it the moment at which queues begin.
"""

import os
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

HERE = ""  # the host that is the namespace of who makes the network
NETEM_LIMIT = 100000  # packets: no netem drops for want of room
BURST = 1600  # bytes that htb lets through at once


@dataclass(frozen=True)
class Host:
    """A network namespace."""

    name: str
    forwards: bool = False
    ipv6: bool = False  # off, no host sends a packet that nobody asked for


@dataclass(frozen=True)
class End:
    """One end of a link; addresses have the length of their prefix."""

    host: str
    device: str
    mac: str
    addresses: tuple[str, ...]


@dataclass(frozen=True)
class Link:
    """Two devices and what joins them. In a VLAN the tagged devices have the addresses."""

    left: End
    right: End
    mtu: int | None = None
    vlan: int | None = None

    def end(self, host: str) -> End:
        """The end at a host."""
        return self.left if host == self.left.host else self.right

    def other(self, host: str) -> End:
        """The end that a host's device leads to."""
        return self.right if host == self.left.host else self.left

    def address(self, host: str, which: int = 0) -> str:
        """First address of a host's device on this link, or another."""
        return self.end(host).addresses[which].partition("/")[0]

    def device(self, host: str) -> str:
        """The device that has a host's addresses."""
        name = self.end(host).device
        return name if self.vlan is None else f"{name}.{self.vlan}"

    @property
    def subnet(self) -> str:
        """The IPv4 network of its first addresses, all of which are /24."""
        return f"{self.address(self.left.host).rpartition('.')[0]}.0/24"

    @property
    def subnets(self) -> list[str]:
        """That, and the IPv6 network of its second addresses, if it has one: a /64 each."""
        more = [a.rpartition("::")[0] for a in self.left.addresses[1:2] if ":" in a]
        return [self.subnet, *(f"{prefix}::/64" for prefix in more)]


@dataclass(frozen=True)
class Route:
    """How a host reaches a network."""

    host: str
    to: str
    via: str


@dataclass(frozen=True)
class Queue:
    """A qdisc, class or filter (`what`) of a device: the words of tc behind `dev DEVICE`."""

    host: str
    device: str
    words: tuple[str, ...]
    what: str = "qdisc"


Step = Host | Link | Route | Queue


@dataclass
class Network:
    """What to make, in this order: the guest draws its random numbers in it, too.

    @ipv6: hosts know it, and link N has fd00:N::1 and fd00:N::2 besides
    """

    steps: list[Step] = field(default_factory=list)
    ipv6: bool = False

    @property
    def hosts(self) -> list[Host]:
        return [step for step in self.steps if isinstance(step, Host)]

    @property
    def links(self) -> list[Link]:
        return [step for step in self.steps if isinstance(step, Link)]

    @property
    def routes(self) -> list[Route]:
        return [step for step in self.steps if isinstance(step, Route)]

    @property
    def queues(self) -> list[Queue]:
        return [step for step in self.steps if isinstance(step, Queue)]

    def routed(self) -> "Network":
        """The same with the shortest routes: all hosts first, then links, routes and queues."""
        names = [host.name for host in self.hosts]
        routes = sorted(self.shortest_routes(), key=lambda route: names.index(route.host))
        return Network([*self.hosts, *self.links, *self.routes, *routes, *self.queues])

    def host(self, name: str, forwards: bool = False, ipv6: bool = False) -> str:
        self.steps.append(Host(name, forwards, ipv6 or self.ipv6))
        return name

    def link(
        self,
        left: str,
        right: str,
        delay_ms: float = 0,
        *more: str,
        devices: tuple[str, str] | None = None,
        addresses: Sequence[tuple[str, str]] = (),
        mtu: int | None = None,
        vlan: int | None = None,
    ) -> Link:
        """Connects two hosts, with a delay in each direction.

        @more: see `delay`
        @addresses: pairs for left and right; without a prefix length they are of a /24
        """
        number = len(self.links) + 1
        pairs = addresses or [(f"10.{number}.0.1", f"10.{number}.0.2")]
        if self.ipv6 and not addresses:
            pairs = [*pairs, (f"fd00:{number:x}::1/64", f"fd00:{number:x}::2/64")]
        names = devices or (right, left)

        def end(side: int) -> End:
            mac = f"02:00:00:00:{number:02x}:{side + 1:02x}"
            with_prefix = [a if "/" in a else f"{a}/24" for a in (pair[side] for pair in pairs)]
            return End((left, right)[side], names[side], mac, tuple(with_prefix))

        link = Link(end(0), end(1), mtu, vlan)
        self.steps.append(link)
        if delay_ms:
            self.delay(link, delay_ms, *more)
        return link

    def delay(self, link: Link, milliseconds: float, *more: str) -> None:
        """Delays both directions of a link; @more: what else netem does, see there."""
        for end in (link.left, link.right):
            self.queue(end.host, end.device, "root", *netem(milliseconds, *more))

    def bottleneck(
        self,
        left: str,
        right: str,
        delay_ms: float,
        queue: str,
        *more: str,
        shaped: int | None = None,
        traced: bool = False,
        back: tuple[str, int | None] | None = None,
    ) -> Link:
        """A link with a queue from left to right; its left half.

        The queue shapes by itself, or is below htb of @shaped bit/s, or below a delivery trace.
        @back: a queue from right to left too, and its `shaped`.

        A device has one root qdisc only, so this is two links, left -- w -- right: the delay is
        that of the wire host w. Messages travel back over the same wire. With a queue at each end
        it is three, left -- w -- x -- right.
        """
        wire = self.host(f"w{left}{right}", True)
        half = self.link(left, wire)
        if traced:
            self.trace(left, wire, queue)
        else:
            self._queue_at(left, wire, queue, shaped)
        end = right
        if back is not None:
            end = self.host(f"x{left}{right}", True)
            self.link(end, right)
            self._queue_at(right, end, *back)
        self.link(wire, end, delay_ms, *more)
        return half

    def _queue_at(self, host: str, device: str, queue: str, shaped: int | None) -> None:
        """A queue that shapes by itself, or is below htb."""
        if shaped is None:
            self.queue(host, device, "root", "handle", "10:", *queue.split())
        else:
            self.shape(host, device, shaped, queue)

    def route(self, host: str, to: str, via: str) -> None:
        self.steps.append(Route(host, to, via))

    def queue(self, host: str, device: str, *words: str, what: str = "qdisc") -> Queue:
        queue = Queue(host, device, words, what)
        self.steps.append(queue)
        return queue

    def shape(self, host: str, device: str, bits: int, queue: str, burst: int = BURST) -> None:
        """htb at a rate in bit/s, and a queue below it as 10:."""
        self.queue(host, device, "root", "handle", "1:", "htb", "default", "1")
        self.queue(host, device, *htb_class(bits, burst), what="class")
        self.queue(host, device, "parent", "1:1", "handle", "10:", *queue.split())

    def trace(self, host: str, device: str, queue: str) -> None:
        """The lab's link that delivers as a trace says, and a queue below it as 10:."""
        self.queue(host, device, "root", "handle", "1:", "labtrace")
        self.queue(host, device, "parent", "1:1", "handle", "10:", *queue.split())

    def spoil(self, host: str, device: str, delay_ms: float, *how: str) -> None:
        """Lets netem mistreat ICMP, and only that, on its way out of a device."""
        bands = ("prio", "bands", "2", "priomap", *("0" * 16))
        self.queue(host, device, "root", "handle", "1:", *bands)
        self.queue(host, device, "parent", "1:1", *netem(delay_ms))
        self.queue(host, device, "parent", "1:2", *netem(delay_ms, *how))
        match = ("u32", "match", "ip", "protocol", "1", "0xff", "flowid", "1:2")
        self.queue(host, device, "parent", "1:", "protocol", "ip", *match, what="filter")

    def address(self, host: str, which: int = 0) -> str:
        """The first address, or another, of a host, on the first of its links."""
        for link in self.links:
            if host in (link.left.host, link.right.host):
                return link.address(host, which)
        raise KeyError(host)

    def shortest_routes(self) -> list[Route]:
        """From every host to every link it has no end of, over as few links as may be."""
        found = []
        for target in self.links:
            edge = [target.left.host, target.right.host]  # those whose neighbours are looked at
            seen = set(edge)
            while edge:
                near = edge.pop(0)
                for link in self.links:
                    if near not in (link.left.host, link.right.host):
                        continue
                    far = link.other(near).host
                    if far not in seen:
                        seen.add(far)
                        edge.append(far)
                        found += [
                            Route(far, subnet, link.address(near, which))
                            for which, subnet in enumerate(target.subnets)
                        ]
        return found

    def as_list(self) -> list[dict[str, Any]]:
        """For a JSON file."""
        return [{"step": type(step).__name__, **asdict(step)} for step in self.steps]


def from_list(data: list[dict[str, Any]]) -> Network:
    """The network that `as_list` has written."""

    def end(of: dict[str, Any]) -> End:
        return End(**{**of, "addresses": tuple(of["addresses"])})

    def step(of: dict[str, Any]) -> Step:
        of = dict(of)
        kind = of.pop("step")
        if kind == "Link":
            return Link(end(of["left"]), end(of["right"]), of["mtu"], of["vlan"])
        if kind == "Queue":
            return Queue(**{**of, "words": tuple(of["words"])})
        return Host(**of) if kind == "Host" else Route(**of)

    return Network([step(of) for of in data])


def pair(
    left: str, right: str, devices: tuple[str, str] | None = None, ipv6: bool = False
) -> Network:
    """Two hosts, names of one letter unless devices have theirs: l0 10.1.0.1 -- 10.1.0.2 r0."""
    net = Network()
    for host in (left, right):
        net.host(host, ipv6=ipv6)
    net.link(left, right, devices=devices or (f"{left}0", f"{right}0"))
    return net


def in_a_row(left: str, middle: str, right: str, mtu: int | None = None) -> Network:
    """Two hosts at a router, names of one letter: l0 -- m0 m m1 -- r0, the right one 10.2.0.2."""
    net = Network()
    for host in (left, middle, right):
        net.host(host, host == middle)
    net.link(left, middle, devices=(f"{left}0", f"{middle}0"), mtu=mtu)
    net.link(middle, right, devices=(f"{middle}1", f"{right}0"), mtu=mtu)
    net.route(left, "default", "10.1.0.2")
    net.route(right, "default", "10.2.0.1")
    return net


def htb_class(bits: int, burst: int = BURST) -> tuple[str, ...]:
    """Words of the class that `Network.shape` makes, for changes of its rate, too."""
    limits = ("rate", f"{bits}bit", "burst", str(burst), "cburst", str(burst), "quantum", "1514")
    return ("parent", "1:", "classid", "1:1", "htb", *limits)


def netem(delay_ms: float, *more: str, limit: int = NETEM_LIMIT) -> list[str]:
    """Words of a netem qdisc; @more begins with the variation of the delay, if it has one."""
    return ["netem", "limit", str(limit), "delay", f"{delay_ms * 1000:.0f}us", *more]


# What makes them

OFFLOADS = ("tx", "sg", "tso", "gso", "gro")


class CommandFailed(Exception):
    """A command was refused; the text has its words and its answer."""


def run(*words: str, stdin: str = "") -> str:
    """Output of a command, which must succeed."""
    done = subprocess.run(words, capture_output=True, text=True, input=stdin or None)
    if done.returncode:
        raise CommandFailed(f"{' '.join(words)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def into(host: str) -> list[str]:
    """Words before a command that is to run in a host's namespace."""
    return ["ip", "netns", "exec", host] if host else []


def of(host: str) -> list[str]:
    """Words by which ip and tc are told a host's namespace."""
    return ["-n", host] if host else []


def inside(host: str, *words: str, stdin: str = "") -> str:
    """The same in a host's namespace."""
    return run(*into(host), *words, stdin=stdin)


def start(
    host: str, command: list[str], log: Path, out: Path | None = None
) -> subprocess.Popen[bytes]:
    """A program in a namespace; what it says goes to a log, which stands where it runs.

    `out`: where what it gives out goes instead.
    """
    with log.open("wb") as said, (out or Path(os.devnull)).open("wb") as given:
        return subprocess.Popen(
            [*into(host), *command],
            stdin=subprocess.DEVNULL,
            stdout=given if out else said,
            stderr=said,
            cwd=log.parent,
        )


def make(network: Network) -> None:
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
    if host.name != HERE:
        run("ip", "netns", "add", host.name)
    run("ip", *of(host.name), "link", "set", "dev", "lo", "up")
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
        *("ip", "link", "add", "name", left.device, "address", left.mac),
        *(("netns", left.host) if left.host else ()),
        *("type", "veth", "peer", "name", right.device, "address", right.mac),
        *(("netns", right.host) if right.host else ()),
    )
    for end in (left, right):
        inside(end.host, "ethtool", "-K", end.device, *(w for o in OFFLOADS for w in (o, "off")))
        mtu = ["mtu", str(link.mtu)] if link.mtu else []
        device = link.device(end.host)
        if link.vlan is not None:
            run("ip", *of(end.host), "link", "set", "dev", end.device, *mtu, "up")
            run(
                *("ip", *of(end.host), "link", "add", "link", end.device, "name", device),
                *("type", "vlan", "id", str(link.vlan)),
            )
        set_addresses(link, end.host)
        run("ip", *of(end.host), "link", "set", "dev", device, *mtu, "up")
        set_neighbours(link, end.host)


def set_addresses(link: Link, host: str) -> None:
    """Those of a host's end."""
    for address in link.end(host).addresses:
        words = ["nodad"] if ":" in address else []
        run("ip", *of(host), "address", "replace", address, "dev", link.device(host), *words)


def set_neighbours(link: Link, host: str) -> None:
    """Who has the addresses at the other end: that is not asked for."""
    peer = link.other(host)
    for address in peer.addresses:
        run(
            *("ip", *of(host), "neigh", "replace", address.partition("/")[0]),
            *("lladdr", peer.mac, "nud", "permanent", "dev", link.device(host)),
        )


def add_routes(routes: Iterable[Route]) -> None:
    """Routes of one host; many at once, since commands are what takes time."""
    known = list(routes)
    lines = [f"route replace {route.to} via {route.via}" for route in known]
    if len(lines) == 1:
        run("ip", *of(known[0].host), *lines[0].split())
    else:
        run("ip", *of(known[0].host), "-batch", "-", stdin="\n".join(lines) + "\n")


def add_queue(queue: Queue) -> None:
    run("tc", *of(queue.host), *queue_words(queue))


def queue_words(queue: Queue) -> list[str]:
    """What tc is told to make a queue."""
    return [queue.what, "add", "dev", queue.device, *queue.words]


# The dumbbell:
#
#     m-a --+                                        every sender its own host, TCP senders together
#     m-b --+-- r ==== q ---- v                      r: router with the queue under test
#     t   --+   (bottleneck)                         v: all receivers
#     other loads (floods, audio, web, idle flows): a host m-NAME each
#
# Delay is netem's, a quarter of the round trip at each of: sender's way out, router's way back to
# the sender, q's way to v, v's way back.

ROUTER, FAR, SINK, TCP = "r", "q", "v", "t"
BOTTLENECK = FAR  # the router's device towards q
SINK_ADDRESS = "10.4.0.2"
TCP_ADDRESS = "10.2.0.2"
# htb sends as long as it owes nothing: with the burst of a packet two go at once, and the second
# has its turn on the link for nothing. With next to none it is one at a time.
DUMBBELL_BURST = 64


OWN_KINDS = ("paqm", "dcbt", "rlqos")  # qdiscs of this project's modules


def kind(variant: dict[str, Any]) -> str:
    """The qdisc of a variant, without its options."""
    return str(variant["qdisc"].split()[0])


def namespace_of(flow: str) -> str:
    """Host of a media sender."""
    return f"m-{flow}"


def add_bottleneck(net: Network, variant: dict[str, Any], bottleneck: int, varies: bool) -> None:
    """The queue under test, below what makes a bottleneck of the link if it does not itself."""
    if varies:
        net.trace(ROUTER, BOTTLENECK, variant["qdisc"])
    elif variant["shaper"] is None:
        net.queue(ROUTER, BOTTLENECK, "root", "handle", "10:", *variant["qdisc"].split())
    else:
        net.shape(ROUTER, BOTTLENECK, bottleneck, variant["qdisc"], DUMBBELL_BURST)


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
    make(dumbbell(config))
