# SPDX-License-Identifier: GPL-2.0
"""Networks of several routers as plain data, and the max-min shares that they must lead to.

A bottleneck from L to R becomes two cables, L -- w -- R: the paqm qdisc is the root of L's device
and delay is netem's in the wire host w, since a device has one root qdisc only. Messages travel
back over the same wire. Routes are shortest paths by number of cables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

NETEM_LIMIT = 100000
HEADER = 14  # Ethernet: what the qdisc counts beyond the IP packet


@dataclass(frozen=True)
class Cable:
    """A pair of devices; each is called like the host that it leads to."""

    number: int
    left: str
    right: str

    def address(self, host: str) -> str:
        """Of the host's device on this cable."""
        return f"10.{self.number}.0.{1 if host == self.left else 2}"

    def other(self, host: str) -> str:
        return self.right if host == self.left else self.left


@dataclass
class Network:
    """Hosts, cables, and the commands that make queues and delays of them."""

    forwards: dict[str, bool] = field(default_factory=dict)
    cables: list[Cable] = field(default_factory=list)
    commands: list[tuple[str, list[str]]] = field(default_factory=list)

    def host(self, name: str, forwards: bool = False) -> str:
        self.forwards[name] = forwards
        return name

    def cable(self, left: str, right: str, delay_ms: float = 0) -> Cable:
        """Connects two hosts, with a delay in each direction."""
        cable = Cable(len(self.cables) + 1, left, right)
        self.cables.append(cable)
        for host, other in ((left, right), (right, left)) if delay_ms else ():
            self.tc(host, "qdisc", "add", "dev", other, "root", *netem(delay_ms))
        return cable

    def bottleneck(self, left: str, right: str, delay_ms: float, paqm: str) -> Cable:
        """A link with a paqm qdisc from left to right; returns the cable at its left end."""
        wire = self.host(f"w{left}{right}", True)
        first = self.cable(left, wire)
        second = self.cable(wire, right)
        self.tc(left, "qdisc", "add", "dev", wire, "root", "handle", "10:", *paqm.split())
        if delay_ms:
            self.tc(wire, "qdisc", "add", "dev", right, "root", *netem(delay_ms))
            self.tc(right, "qdisc", "add", "dev", wire, "root", *netem(delay_ms))
        assert second.left == wire
        return first

    def spoil(self, host: str, device: str, delay_ms: float, *how: str) -> None:
        """Lets netem mistreat ICMP, and only that, on its way out of a device."""
        at = ["qdisc", "add", "dev", device]
        self.tc(host, *at, *("root", "handle", "1:", "prio", "bands", "2", "priomap", *("0" * 16)))
        self.tc(host, *at, "parent", "1:1", *netem(delay_ms))
        self.tc(host, *at, "parent", "1:2", *netem(delay_ms, *how))
        self.tc(
            host,
            *("filter", "add", "dev", device, "parent", "1:", "protocol", "ip", "u32"),
            *("match", "ip", "protocol", "1", "0xff", "flowid", "1:2"),
        )

    def tc(self, host: str, *words: str) -> None:
        self.commands.append((host, ["tc", *words]))

    def address(self, host: str) -> str:
        """The address of a host that has one cable, or of the first of its cables."""
        for cable in self.cables:
            if host in (cable.left, cable.right):
                return cable.address(host)
        raise KeyError(host)

    def routes(self) -> dict[str, list[str]]:
        """For each host, `NETWORK via ADDRESS` of every cable that it has no end of."""
        found: dict[str, list[str]] = {name: [] for name in self.forwards}
        for target in self.cables:
            # towards the nearer end of the target cable
            via: dict[str, str] = {}
            edge = [target.left, target.right]
            seen = set(edge)
            while edge:
                near = edge.pop(0)
                for cable in self.cables:
                    if near in (cable.left, cable.right) and cable.other(near) not in seen:
                        far = cable.other(near)
                        seen.add(far)
                        via[far] = cable.address(near)
                        edge.append(far)
            for host, gateway in via.items():
                found[host].append(f"10.{target.number}.0.0/24 via {gateway}")
        return found

    def as_dict(self) -> dict[str, Any]:
        """What the guest needs to know."""
        return {
            "hosts": self.forwards,
            "cables": [[c.number, c.left, c.right] for c in self.cables],
            "routes": self.routes(),
            "commands": [[host, *words] for host, words in self.commands],
        }


def netem(delay_ms: float, *more: str) -> list[str]:
    """Words of a netem qdisc; @more begins with the variation of the delay, if it has one."""
    return ["netem", "limit", str(NETEM_LIMIT), "delay", f"{delay_ms * 1000:.0f}us", *more]


def max_min(
    capacity: Mapping[str, float], paths: Mapping[str, Sequence[str]], ceiling: float = 1e12
) -> dict[str, float]:
    """Max-min fair rates: fill all flows alike, fix those of the first link that is full.

    @capacity: of each link
    @paths: of each flow, its links
    @ceiling: of every flow
    """
    share: dict[str, float] = {}
    left = dict(capacity)
    while len(share) < len(paths):
        load = {
            link: sum(1 for flow, path in paths.items() if flow not in share and link in path)
            for link in left
        }
        level = {link: left[link] / n for link, n in load.items() if n}
        tight = min(level, key=lambda link: level[link], default=None)
        rate = min(ceiling, level[tight]) if tight is not None else ceiling
        fixed = [
            flow
            for flow, path in paths.items()
            if flow not in share and (tight is None or rate == ceiling or tight in path)
        ]
        for flow in fixed:
            share[flow] = rate
            for link in paths[flow]:
                left[link] = max(0.0, left[link] - rate)
    return share


def jain(rates: Iterable[float]) -> float:
    """Jain's index: 1 if all are equal, 1/n if one has all."""
    known = list(rates)
    squares = sum(r * r for r in known)
    return sum(known) ** 2 / (len(known) * squares) if squares else 0.0
