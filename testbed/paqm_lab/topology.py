# SPDX-License-Identifier: GPL-2.0
"""Networks: as plain data, what makes them of namespaces, and the dumbbell of the scenarios.

A device is called like the host that it leads to, unless told otherwise, and link N has the
addresses 10.N.0.1 (left) and 10.N.0.2 (right). Addresses of the link layer and neighbour entries
are fixed, offloads are off: a packet on the wire is a packet in the queue, and nothing else is
sent. Commands are run by commands.py and nowhere else.
"""

import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from paqm_lab.commands import HERE as HERE
from paqm_lab.commands import CommandFailed as CommandFailed
from paqm_lab.commands import Teller as Teller
from paqm_lab.commands import batch, within
from paqm_lab.commands import inside as inside
from paqm_lab.commands import into as into
from paqm_lab.commands import last_words as last_words
from paqm_lab.commands import of as of
from paqm_lab.commands import run as run
from paqm_lab.commands import start as start

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

OFFLOADS_OFF = [word for what in ("tx", "sg", "tso", "gso", "gro") for word in (what, "off")]


def make(network: Network) -> None:
    """Makes all of a network: hosts, links, what the hosts set of theirs, queues.

    With as few programs as may be, since in a guest to start one costs more than what it does. A
    program's random numbers depend on how many came before it, and system calls that fail take
    virtual time: other commands, or in another order, make another packet log.
    """
    batch(HERE, "ip", [f"netns add {host.name}" for host in network.hosts if host.name != HERE])
    for host in network.hosts:
        with within(host.name):
            for name in settings(host):
                Path("/proc/sys/net", *name.split(".")).write_text("1")
    batch(HERE, "ip", [link_line(link) for link in network.links])
    ends = [(link, end.host) for link in network.links for end in (link.left, link.right)]
    names = [host.name for host in network.hosts] + [host for _, host in ends]
    names += [route.host for route in network.routes] + [queue.host for queue in network.queues]
    for name in dict.fromkeys(names):
        own = [link for link, host in ends if host == name]
        lines = ["link set dev lo up"] if any(host.name == name for host in network.hosts) else []
        for link in own:
            lines += end_lines(link, name)
        lines += [route_line(route) for route in network.routes if route.host == name]
        with within(name):
            for link in own:
                run("ethtool", "-K", link.end(name).device, *OFFLOADS_OFF)
            batch(HERE, "ip", lines)
    for name in dict.fromkeys(names):
        queues = [" ".join(queue_words(step)) for step in network.queues if step.host == name]
        batch(name, "tc", queues)


def remove(network: Network) -> None:
    """Removes its hosts, as far as they are there, and with them all the rest."""
    for host in network.hosts:
        subprocess.run(["ip", "netns", "del", host.name], capture_output=True)


def settings(host: Host) -> list[str]:
    """Those below net. that are set to 1."""
    found = [] if host.ipv6 else ["ipv6.conf.all.disable_ipv6", "ipv6.conf.default.disable_ipv6"]
    found += ["ipv4.tcp_no_metrics_save"]
    if host.forwards:
        found += ["ipv4.ip_forward", *(["ipv6.conf.all.forwarding"] if host.ipv6 else [])]
    return found


def link_line(link: Link) -> str:
    """Makes the pair of devices."""
    one, other = (
        f"name {end.device} address {end.mac}" + (f" netns {end.host}" if end.host else "")
        for end in (link.left, link.right)
    )
    return f"link add {one} type veth peer {other}"


def end_lines(link: Link, host: str) -> list[str]:
    """A host's end of a link, with its addresses, up."""
    end, device = link.end(host), link.device(host)
    mtu = f" mtu {link.mtu}" if link.mtu else ""
    lines = []
    if link.vlan is not None:
        lines += [f"link set dev {end.device}{mtu} up"]
        lines += [f"link add link {end.device} name {device} type vlan id {link.vlan}"]
    lines += [*address_lines(link, host), f"link set dev {device}{mtu} up"]
    return lines + neighbour_lines(link, host)


def address_lines(link: Link, host: str) -> list[str]:
    """The addresses of a host's end."""
    device = link.device(host)
    return [
        f"address replace {address} dev {device}" + (" nodad" if ":" in address else "")
        for address in link.end(host).addresses
    ]


def neighbour_lines(link: Link, host: str) -> list[str]:
    """Who has the addresses at the other end: that is not asked for."""
    peer, device = link.other(host), link.device(host)
    return [
        f"neigh replace {address.partition('/')[0]} lladdr {peer.mac} nud permanent dev {device}"
        for address in peer.addresses
    ]


def route_line(route: Route) -> str:
    return f"route replace {route.to} via {route.via}"


def set_addresses(link: Link, host: str) -> None:
    batch(host, "ip", address_lines(link, host))


def set_neighbours(link: Link, host: str) -> None:
    batch(host, "ip", neighbour_lines(link, host))


def add_routes(routes: Iterable[Route]) -> None:
    """Routes of one host."""
    known = list(routes)
    batch(known[0].host, "ip", [route_line(route) for route in known])


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
