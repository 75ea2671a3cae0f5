# SPDX-License-Identifier: GPL-2.0
"""Networks as plain data: hosts, links, addresses, routes and queues. builder.py makes them.

Nothing here runs a command. A device is called like the host that it leads to, unless told
otherwise, and link N has the addresses 10.N.0.1 (left) and 10.N.0.2 (right).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

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

    def address(self, host: str) -> str:
        """First address of a host's device on this link."""
        return self.end(host).addresses[0].partition("/")[0]

    def device(self, host: str) -> str:
        """The device that has a host's addresses."""
        name = self.end(host).device
        return name if self.vlan is None else f"{name}.{self.vlan}"

    @property
    def subnet(self) -> str:
        """The IPv4 network of its first addresses, all of which are /24."""
        return f"{self.address(self.left.host).rpartition('.')[0]}.0/24"


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
    """What to make, in this order: the guest draws its random numbers in it, too."""

    steps: list[Step] = field(default_factory=list)

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

    def routed(self) -> Network:
        """The same with the shortest routes: all hosts first, then links, routes and queues."""
        names = [host.name for host in self.hosts]
        routes = sorted(self.shortest_routes(), key=lambda route: names.index(route.host))
        return Network([*self.hosts, *self.links, *self.routes, *routes, *self.queues])

    def host(self, name: str, forwards: bool = False, ipv6: bool = False) -> str:
        self.steps.append(Host(name, forwards, ipv6))
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
    ) -> Link:
        """A link with a queue from left to right; its left half.

        The queue shapes by itself, or is below htb of @shaped bit/s.

        A device has one root qdisc only, so this is two links, left -- w -- right: the delay is
        that of the wire host w. Messages travel back over the same wire.
        """
        wire = self.host(f"w{left}{right}", True)
        half = self.link(left, wire)
        if shaped is None:
            self.queue(left, wire, "root", "handle", "10:", *queue.split())
        else:
            self.shape(left, wire, shaped, queue)
        self.link(wire, right, delay_ms, *more)
        return half

    def route(self, host: str, to: str, via: str) -> None:
        self.steps.append(Route(host, to, via))

    def queue(self, host: str, device: str, *words: str, what: str = "qdisc") -> Queue:
        queue = Queue(host, device, words, what)
        self.steps.append(queue)
        return queue

    def shape(self, host: str, device: str, bits: int, queue: str, burst: int = BURST) -> None:
        """htb of so many bit/s, and a queue below it as 10:."""
        self.queue(host, device, "root", "handle", "1:", "htb", "default", "1")
        self.queue(host, device, *htb_class(bits, burst), what="class")
        self.queue(host, device, "parent", "1:1", "handle", "10:", *queue.split())

    def spoil(self, host: str, device: str, delay_ms: float, *how: str) -> None:
        """Lets netem mistreat ICMP, and only that, on its way out of a device."""
        bands = ("prio", "bands", "2", "priomap", *("0" * 16))
        self.queue(host, device, "root", "handle", "1:", *bands)
        self.queue(host, device, "parent", "1:1", *netem(delay_ms))
        self.queue(host, device, "parent", "1:2", *netem(delay_ms, *how))
        match = ("u32", "match", "ip", "protocol", "1", "0xff", "flowid", "1:2")
        self.queue(host, device, "parent", "1:", "protocol", "ip", *match, what="filter")

    def address(self, host: str) -> str:
        """The address of a host that has one link, or of the first of its links."""
        for link in self.links:
            if host in (link.left.host, link.right.host):
                return link.address(host)
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
                        found.append(Route(far, target.subnet, link.address(near)))
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
