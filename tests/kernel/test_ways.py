# SPDX-License-Identifier: GPL-2.0
"""Ways back: messages and echo requests find the sender of a packet that was bridged, with VLANs or
without, or routed in a VRF or by rules; and which address they come from.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import sleep
from types import SimpleNamespace
from typing import Any

import pytest

import ovs
import peers
from checks import check, within
from guest import Host, made
from paqm_lab import topology
from paqm_lab.topology import End, Link, Network, inside

MACS = {name: f"02:00:00:00:00:0{name}" for name in "abc"}
A, B, C, M = (Host(name) for name in "abcm")


@pytest.fixture(autouse=True)
def network(modules: None, request: pytest.FixtureRequest) -> Iterator[None]:
    """Hosts a, b, c, each on a wire to m, a0 -- ma and so on, and no address. Whom nobody knows is
    asked for here: how they are found is what is tested.
    """
    hosts = [topology.Host(name, name == "m", True) for name in "mabc"]
    wires = [Link(End("m", f"m{name}", MACS[name].replace(":00:0", ":01:0"), ()),
                  End(name, f"{name}0", MACS[name], ())) for name in MACS]
    with made(Network([*hosts, *wires])):
        yield


def bridge(*ports: str, how: str = "") -> None:
    """br0 of m."""
    M.ip(f"link add br0 type bridge {how}")
    M.ip("link set br0 up")
    for port in ports:
        M.ip(f"link set dev {port} up master br0")
    sleep(1)


def address(host: Host, device: str, *addresses: str) -> None:
    host.ip(f"link set dev {device} up")
    for one in addresses:
        host.ip(f"addr add {one} dev {device}" + " nodad" * (":" in one))


def vlan(host: Host, device: str, number: int, *addresses: str) -> None:
    host.ip(f"link add link {device} name {device}.{number} type vlan id {number}")
    address(host, f"{device}.{number}", *addresses)


def queue(device: str = "mb") -> None:
    M.tc(f"qdisc add dev {device} root handle 1: paqm bandwidth 20mbit feedback icmp rtt auto")


def stats(device: str = "mb") -> Any:
    return M.paqm(device)


def talk(sender: Host, to: str, own: str) -> tuple[SimpleNamespace, SimpleNamespace]:
    """Media for 4 s; what its sender is told, and what c is, who could be taken for him."""
    told, stranger = (host.task(peers.watch, 5, [own]) for host in (sender, C))
    sleep(0.2)
    sender.task(peers.send, to, 4).wait()
    return told.wait(), stranger.wait()


def heard(what: str, told: SimpleNamespace, source: str) -> None:
    """Messages came, rightly, from that address."""
    within(f"{what}: messages", told.v6 if ":" in source else told.v4, 5, 100)
    within(f"{what}: messages that prove nothing", told.wrong, 0, 0)
    check(f"{what}: they come from {source}", told.sources == {source}, told.sources)


def unheard(what: str, stranger: SimpleNamespace) -> None:
    within(f"{what}: others heard", sum((stranger.v4, stranger.v6, stranger.echo4, stranger.echo6)),
           0, 0)


@pytest.fixture
def bridged() -> None:
    """The three wires in one."""
    bridge("ma", "mb", "mc")
    for n, host in enumerate((A, B, C), 1):
        address(host, f"{host.name}0", f"10.1.0.{n}/24", f"2001:db8:1::{n}/64")
    queue()


def test_a_bridge_without_an_address(bridged: None) -> None:
    told, stranger = talk(A, "10.1.0.2", "10.1.0.1")
    heard("bridged", told, "10.1.0.2")
    unheard("bridged", stranger)
    within("bridged: nobody was asked for an RTT that could not answer", told.echo4, 0, 0)
    within("bridged: failed", stats().notices_failed, 0, 0)
    told, _ = talk(A, "2001:db8:1::2", "2001:db8:1::1")
    heard("bridged, IPv6", told, "2001:db8:1::2")
    told, _ = talk(A, "fe80::ff:fe00:b%a0", "fe80::ff:fe00:a")
    heard("bridged, link-local", told, "fe80::ff:fe00:b")
    for n, host in enumerate((A, B, M), 1):  # and m has a way to everywhere, beyond a gateway
        address(host, "br0" if host is M else f"{host.name}0",
                "10.3.0.5/24" if host is M else f"169.254.7.{n}/16")
    M.ip("route add default via 10.3.0.1")
    told, _ = talk(A, "169.254.7.2", "169.254.7.1")
    heard("bridged, link-local over IPv4", told, "169.254.7.2")


@pytest.mark.parametrize("source", ["ff02::5", "ff0e::5", "::1", "::"])
def test_a_bridge_asks_nobody_who_is_no_host(bridged: None, source: str) -> None:
    """It looks at no address of IP; hosts would drop such packets, but the queue sees them."""
    A.task(peers.inject, "a0", MACS["b"], source, "2001:db8:1::2", own=MACS["a"]).wait()
    within(f"from {source}: messages", stats().notices_sent, 0, 0)
    within(f"from {source}: refused", stats().notices_refused, 3, 100)


def test_media_that_is_flooded(bridged: None) -> None:
    """It teaches the bridge nothing about its receiver."""
    nobody = "02:00:00:00:00:99"
    A.ip(f"neigh replace 10.1.0.9 lladdr {nobody} dev a0")
    told, _ = talk(A, "10.1.0.9", "10.1.0.1")
    heard("flooded", told, "10.1.0.9")
    within("places of a receiver that never spoke",
           M.run("bridge", "fdb", "show", "br", "br0").count(nobody), 0, 0)


def test_a_bridge_with_an_address(bridged: None) -> None:
    """One beside the sender's: it uses that, and asks for the RTT."""
    address(M, "br0", "10.1.0.5/24", "2001:db8:1::5/64")
    told, _ = talk(A, "10.1.0.2", "10.1.0.1")
    heard("managed bridge", told, "10.1.0.5")
    within("managed bridge: the sender was asked", told.echo4, 2, 20)
    within("managed bridge: and answered", stats().rtt_samples, 1, 2)
    # a VLAN through it, and it has a way to everywhere
    M.ip("route add default via 10.1.0.3")
    vlan(A, "a0", 10, "10.10.0.1/24")
    vlan(B, "b0", 10, "10.10.0.2/24")
    address(C, "c0", "10.10.0.1/24")  # who could be taken for the sender
    unsent = stats().notices_failed
    told, stranger = talk(A, "10.10.0.2", "10.10.0.1")
    heard("VLAN", told, "10.10.0.2")
    unheard("VLAN", stranger)
    within("VLAN: failed", stats().notices_failed - unsent, 0, 0)


def test_a_bridge_that_knows_vlans() -> None:
    """a and c have the same address, each in his own."""
    bridge("ma", "mb", "mc", how="vlan_filtering 1 vlan_default_pvid 0")
    for words in ("ma vid 20 pvid untagged", "mc vid 30 pvid untagged", "mb vid 20", "mb vid 30"):
        M.run("bridge", "vlan", "add", "dev", *words.split())
    address(A, "a0", "10.20.0.1/24")
    address(C, "c0", "10.20.0.1/24")
    vlan(B, "b0", 20, "10.20.0.2/24")
    vlan(B, "b0", 30, "10.20.0.3/24")
    for what, device, sender, other in (("to a trunk", "mb", A, 2), ("from a trunk", "ma", B, 1)):
        queue(device)
        told, stranger = talk(sender, f"10.20.0.{other}", f"10.20.0.{3 - other}")
        heard(what, told, f"10.20.0.{other}")
        unheard(what, stranger)


@pytest.mark.parametrize("tags", [(20, 30), (20, 0)])
def test_the_same_addresses_in_two_vlans(tags: tuple[int, int]) -> None:
    """Two senders and their receivers, with the same ports, too: two flows. 0: without a tag."""
    bridge("ma", "mb", "mc", how="vlan_filtering 1 vlan_default_pvid 0")
    for port, tag in zip(("ma", "mc"), tags, strict=True):
        M.run("bridge", "vlan", "add", "dev", port, "vid", str(tag or 99), "pvid", "untagged")
        M.run("bridge", "vlan", "add", "dev", "mb", "vid", str(tag or 99),
              *(() if tag else ("pvid", "untagged")))
        if tag:
            vlan(B, "b0", tag)
        address(B, f"b0.{tag}" if tag else "b0", "10.20.0.2/24")
    for host in (A, C):
        address(host, f"{host.name}0", "10.20.0.1/24")
        # the answer of which of b's devices?
        host.ip(f"neigh replace 10.20.0.2 lladdr {MACS['b']} dev {host.name}0")
    queue()
    told = [host.task(peers.watch, 6, ["10.20.0.1"]) for host in (A, C)]
    sleep(0.2)
    media = [host.task(peers.send, "10.20.0.2", 5) for host in (A, C)]
    sleep(3)
    within("flows", stats().media.flows, 2, 2)
    for task in media:
        task.wait()
    for name, task in zip("ac", told, strict=True):
        heard(f"the sender {name}", task.wait(), "10.20.0.2")


@pytest.mark.parametrize("way", ["ingress", "egress"])
@pytest.mark.parametrize("tag", [0, 20])
def test_a_bridge_whose_frames_ifb_sees(way: str, tag: int) -> None:
    """m's own network has a host with the sender's address. Where frames are seen as they come in,
    it is not known yet where they go: nobody is told by the link.
    """
    bridge("ma", "mb")
    address(M, "mc", "10.10.0.5/24")
    address(C, "c0", "10.10.0.1/24")
    for n, host in enumerate((A, B), 1):
        if tag:
            vlan(host, f"{host.name}0", tag, f"10.10.0.{n}/24")
        else:
            address(host, f"{host.name}0", f"10.10.0.{n}/24")
    port = "ma" if way == "ingress" else "mb"
    M.ip("link add i0 up type ifb")
    M.tc(f"qdisc add dev {port} clsact")
    M.tc(f"filter add dev {port} {way} matchall action mirred egress redirect dev i0")
    queue("i0")
    told, stranger = talk(A, "10.10.0.2", "10.10.0.1")
    if way == "egress":
        heard(f"ifb, {way}", told, "10.10.0.2")
    else:
        unheard(f"ifb, {way}, the sender", told)
        within(f"ifb, {way}: refused", stats("i0").notices_refused, 5, 100)
    unheard(f"ifb, {way}", stranger)
    if not tag:  # m in the same network is told, and tells, by its routes
        M.ip("addr del 10.10.0.5/24 dev mc")
        address(M, "br0", "10.10.0.5/24")
        told, stranger = talk(A, "10.10.0.2", "10.10.0.1")
        heard(f"ifb, {way}, managed bridge", told, "10.10.0.5")


def test_a_vlan_above_the_device_is_a_bridges_port() -> None:
    vlan(M, "mb", 40)
    bridge("mb.40", "ma")
    address(A, "a0", "10.40.0.1/24")
    vlan(B, "b0", 40, "10.40.0.2/24")
    queue()
    told, _ = talk(A, "10.40.0.2", "10.40.0.1")
    heard("port above", told, "10.40.0.2")


@pytest.fixture
def router() -> None:
    """m is to route between a, in 10.1.0.0/24, and b, in 10.2.0.0/24 with VLAN 50."""
    address(A, "a0", "10.1.0.1/24", "2001:db8:1::1/64")
    vlan(B, "b0", 50, "10.2.0.2/24", "2001:db8:2::2/64")
    M.ip("link add link mb name mb.50 up type vlan id 50")
    for n, host in enumerate((A, B), 1):
        host.ip(f"route add default via 10.{n}.0.5")
        host.ip(f"route add default via 2001:db8:{n}::5")


def red(*devices: str) -> None:
    """A VRF of m; outside of it nothing leads to a."""
    M.ip("link add red up type vrf table 10")
    for device in devices:
        M.ip(f"link set dev {device} master red")
    M.ip("route add blackhole 10.1.0.0/24")
    M.ip("-6 route add blackhole 2001:db8:1::/64")


def routed(outer: str = "mb.50") -> None:
    address(M, "ma", "10.1.0.5/24", "2001:db8:1::5/64")
    address(M, outer, "10.2.0.5/24", "2001:db8:2::5/64")
    queue()


def test_vrf(router: None) -> None:
    """A VLAN is in it, the device of the queue is not; replies only come to who is in it."""
    red("ma", "mb.50")
    M.sysctl(ipv4__raw_l3mdev_accept=0)
    routed()
    told, _ = talk(A, "10.2.0.2", "10.1.0.1")
    heard("VRF", told, "10.1.0.5")
    told, _ = talk(A, "2001:db8:2::2", "2001:db8:1::1")
    heard("VRF, IPv6", told, "2001:db8:1::5")
    within("VRF: sources that answered", stats().rtt_samples, 2, 2)


def test_an_address_of_another_link(router: None) -> None:
    """169.254/16 holds on a link: where it is not on one of the router's, none leads there."""
    routed()
    M.ip("route add default via 10.2.0.2")
    address(A, "a0", "169.254.7.7/32")
    A.task(peers.send, "10.2.0.2", 4, source="169.254.7.7").wait()
    within("beyond a gateway: failed", stats().notices_failed, 5, 100)
    within("beyond a gateway: messages", stats().notices_sent, 0, 0)
    address(M, "ma", "169.254.7.5/16")
    told = A.task(peers.watch, 5, ["169.254.7.7"])
    sleep(0.2)
    A.task(peers.send, "10.2.0.2", 4, source="169.254.7.7").wait()
    heard("link-local over IPv4", told.wait(), "169.254.7.5")


def test_media_for_all_in_a_vrf(router: None) -> None:
    """That the destination is everybody only the VRF's table knows; but the frame shows it, too."""
    red("ma", "mb.50")
    M.sysctl(ipv4__conf__all__bc_forwarding=1, ipv4__conf__ma__bc_forwarding=1)
    routed()
    talk(A, "10.2.0.255", "10.1.0.1")
    within("broadcast: refused", stats().notices_refused, 5, 100)
    within("broadcast: messages", stats().notices_sent, 0, 0)


def test_a_bridge_in_a_vrf(router: None) -> None:
    """The device of the queue is a port of it."""
    bridge("mb.50")
    red("ma", "br0")
    routed("br0")
    told, _ = talk(A, "10.2.0.2", "10.1.0.1")
    heard("bridge in a VRF", told, "10.1.0.5")


@pytest.mark.parametrize("rule", ["fwmark 7", "dsfield 0xc0", "uidrange 0-0"])
def test_rules(router: None, rule: str) -> None:
    """By mark, by traffic class, by user: table 77 alone knows the way."""
    routed()
    M.sysctl(ipv4__fwmark_reflect=1, ipv6__fwmark_reflect=1)
    M.tc("qdisc add dev ma clsact")
    M.tc("filter add dev ma ingress matchall action skbedit mark 7")
    for six, sender, own, to in (("", "10.1.0.1", "10.1.0.5", "10.2.0.2"),
                                 ("-6 ", "2001:db8:1::1", "2001:db8:1::5", "2001:db8:2::2")):
        if not six and rule.startswith("dsfield"):
            continue  # IPv4 has rules by the old TOS bits only
        M.ip(f"{six}route add blackhole {sender}")
        M.ip(f"{six}rule add prio 5 {rule} iif lo lookup 77")
        M.ip(f"{six}route add {sender} dev ma table 77")
        answered = stats().echo_answered
        told, _ = talk(A, to, sender)
        what = f"{rule}, IPv6" if six else rule
        heard(what, told, own)
        within(f"{what}: answers", stats().echo_answered - answered, 5, 20)
        within(f"{what}: sources that answered", stats().rtt_samples, 1, 1 + bool(six))


def test_a_router_without_any_address(router: None) -> None:
    """It tells senders from where its ICMP errors come from, too."""
    # they know each other without asking
    for host, device, own in ((A, "a0", "ma"), (B, "b0.50", "mb.50")):
        n = 1 + (host is B)
        M.ip(f"route add 10.{n}.0.0/24 dev {own}")
        M.ip(f"neigh replace 10.{n}.0.{n} lladdr {MACS[host.name]} dev {own}")
        mac = MACS[host.name].replace(":00:0", ":01:0")
        host.ip(f"neigh replace 10.{n}.0.5 lladdr {mac} dev {device}")
    queue()
    told, _ = talk(A, "10.2.0.2", "10.1.0.1")
    heard("no address", told, "192.0.0.8")
    within("no address: failed", stats().notices_failed, 0, 0)
    within("no address: was asked, and could not answer", told.echo4, 0, 0)


def test_a_router_of_stacked_vlans(router: None) -> None:
    """Tags that its own devices put into packets are no other address space."""
    for host, device in ((M, "mb"), (B, "b0")):
        host.ip(f"link add link {device} name s7 up type vlan protocol 802.1ad id 7")
        vlan(host, "s7", 101, f"10.10.0.{5 if host is M else 2}/24")
    address(M, "ma", "10.1.0.5/24")
    B.ip("route replace default via 10.10.0.5")
    queue()
    told, stranger = talk(A, "10.10.0.2", "10.1.0.1")
    heard("stacked VLANs", told, "10.1.0.5")
    unheard("stacked VLANs", stranger)


def test_tags_that_came_within(router: None) -> None:
    """Who is behind them may have an address that another host has here; no bridge, no way back."""
    address(M, "mc", "10.10.0.5/24")
    address(C, "c0", "10.10.0.1/24")
    for device, other in (("ma", "mb"), ("mb", "ma")):
        M.tc(f"qdisc add dev {device} clsact")
        M.tc(f"filter add dev {device} ingress matchall action mirred egress redirect dev {other}")
    for n, host in enumerate((A, B), 1):
        host.ip(f"link add link {host.name}0 name s7 up type vlan protocol 802.1ad id 7")
        vlan(host, "s7", 101, f"10.10.0.{n}/24")
    queue()
    told, stranger = talk(A, "10.10.0.2", "10.10.0.1")
    now = stats()
    within("inner tag: packets that were seen", now.tagged_packets, 100, 10000)
    within("inner tag: what may not be quoted", now.notices_unfit_packets, 5, 1000)
    within("inner tag: messages", now.notices_owed, 0, 0)
    unheard("inner tag", stranger)


def test_tags_of_packet_sockets(router: None) -> None:
    """The same of frames that a program has made, as for a guest in a VLAN of its own."""
    address(M, "mc", "2001:db8:9::5/64")
    address(C, "c0", "2001:db8:9::1/64")
    queue()
    for n, tag in enumerate((b"", b"\x81\0\0\x65")):
        stranger = C.task(peers.watch, 4, ["2001:db8:9::1"])
        sleep(0.2)
        M.task(peers.inject, "mb", MACS["b"], "2001:db8:9::1", f"2001:db8:2::{n}", tag).wait()
        found = stranger.wait()
        low, high = (0, 0) if tag else (5, 100)
        within(f"packet socket, tag {tag.hex()}: messages", found.v6, low, high)


def guest(device: str, name: str, kind: str) -> None:
    """A device above one of m's, moved into a, as those of containers are."""
    M.ip(f"link add link {device} name {name} address 02:00:00:00:00:0d type {kind}")
    M.ip(f"link set {name} netns a")
    A.ip(f"link set {name} up")


def test_a_guest_on_macvlan() -> None:
    """Nothing that m sends reaches it, though m has an address beside it; what comes in does."""
    address(M, "mb", "10.1.0.5/24", "2001:db8:1::5/64")
    address(B, "b0", "10.1.0.2/24", "2001:db8:1::2/64")
    guest("mb", "g0", "macvlan mode bridge")
    address(A, "g0", "10.1.0.1/24", "2001:db8:1::1/64")
    queue()
    told, _ = talk(A, "10.1.0.2", "10.1.0.1")
    heard("macvlan", told, "10.1.0.2")
    told, _ = talk(A, "2001:db8:1::2", "2001:db8:1::1")
    heard("macvlan, IPv6", told, "2001:db8:1::2")
    told, _ = talk(A, "fe80::ff:fe00:b%g0", "fe80::ff:fe00:d")
    heard("macvlan, link-local", told, "fe80::ff:fe00:b")
    within("macvlan: failed", stats().notices_failed, 0, 0)
    # m's own media goes on to be told by m
    told, stranger = talk(M, "10.1.0.2", "10.1.0.5")
    heard("macvlan, m itself", told, "10.1.0.5")
    unheard("macvlan, m itself", stranger)


@pytest.mark.parametrize("kind", ["vlan", "macvlan"])
def test_a_guest_in_a_vlan(kind: str) -> None:
    """The VLAN is its own, or m's with a macvlan above; c has its address, but beside m."""
    address(M, "mc", "10.10.0.5/24")
    address(C, "c0", "10.10.0.1/24")
    vlan(B, "b0", 10, "10.10.0.2/24")
    if kind == "vlan":
        guest("mb", "g0", "vlan id 10")
    else:
        M.ip("link add link mb name mb.10 up type vlan id 10")
        guest("mb.10", "g0", "macvlan mode private")
    address(A, "g0", "10.10.0.1/24")
    queue()
    told, stranger = talk(A, "10.10.0.2", "10.10.0.1")
    heard(kind, told, "10.10.0.2")
    unheard(kind, stranger)


def test_a_router_with_link_local_addresses_only() -> None:
    """They reach who is on the link; no router passes on what comes from them."""
    for n, host in enumerate((A, B, C), 1):
        address(host, f"{host.name}0", f"2001:db8:{n}::{n}/64")
        M.ip(f"-6 route add 2001:db8:{n}::/64 dev m{host.name}")
        host.ip(f"-6 route add default via fe80::1:ff:fe01:{host.name} dev {host.name}0")
    C.ip("link add d0 type dummy")
    address(C, "d0", "2001:db8:9::9/64")  # as of a host behind c
    M.ip("-6 route add 2001:db8:9::/64 via 2001:db8:3::3 dev mc")
    sleep(2)  # until the addresses of m are no longer tentative
    queue()
    told, _ = talk(A, "2001:db8:2::2", "2001:db8:1::1")
    heard("link-local router", told, "fe80::1:ff:fe01:a")
    before = stats()
    C.task(peers.send, "2001:db8:2::2", 4, source="2001:db8:9::9").wait()
    within("link-local router: sent beyond the link",
           stats().notices_sent - before.notices_sent, 0, 0)
    within("link-local router: failed", stats().notices_failed - before.notices_failed, 5, 100)


@pytest.mark.parametrize("kind", ["bridge", "vlan", "itself"])
def test_own_link_local_addresses(kind: str) -> None:
    """m sends by a device above that of the queue, where it has an address of that link only."""
    top = {"bridge": "br0", "vlan": "mb.50", "itself": "mb"}[kind]
    if kind == "bridge":
        bridge("mb", "mc")
    if kind == "vlan":
        M.ip("link add link mb name mb.50 type vlan id 50")
        vlan(B, "b0", 50)
    address(M, top, "fe80::77/64")
    sleep(2)  # until b's address is no longer tentative
    queue()
    told, stranger = talk(M, f"fe80::ff:fe00:b%{top}", "fe80::77")
    heard(f"own link, {kind}", told, "fe80::77")
    unheard(f"own link, {kind}", stranger)


@pytest.mark.parametrize("managed", [False, True])
def test_a_redirect_between_devices(managed: bool) -> None:
    """tc passes frames on, no bridge does; m's own network has a host with the sender's address. If
    m has an address on the sender's link, it uses that.
    """
    for device, other in (("ma", "mb"), ("mb", "ma")):
        M.tc(f"qdisc add dev {device} clsact")
        M.tc(f"filter add dev {device} ingress matchall action mirred egress redirect dev {other}")
    address(A, "a0", "10.10.0.1/24")
    address(B, "b0", "10.10.0.2/24")
    address(M, "ma" if managed else "mc", "10.10.0.5/24")
    if managed:  # nobody answers m, as what comes in is passed on
        M.ip(f"neigh replace 10.10.0.1 lladdr {MACS['a']} dev ma")
    else:
        address(C, "c0", "10.10.0.1/24")
    queue()
    told, stranger = talk(A, "10.10.0.2", "10.10.0.1")
    heard("redirect", told, "10.10.0.5" if managed else "10.10.0.2")
    unheard("redirect", stranger)


# m translates: who sends from it, and one port of it leads to a.
NAT = """
table {family} nat {{
	chain out {{ type nat hook postrouting priority 100;
		oifname "mb" meta l4proto udp masquerade to :20000-29999; }}
	chain in {{ type nat hook prerouting priority -100;
		iifname "mb" udp dport 7000 dnat to {to}; }}
}}
"""


@pytest.mark.parametrize(("family", "net", "to"), [
    ("ip", "10.{}.0.{}", "10.1.0.1:7001"), ("ip6", "2001:db8:{}::{}", "[2001:db8:1::1]:7001")])
def test_a_redirect_of_what_was_translated(family: str, net: str, to: str) -> None:
    """The queue's packets bring no connection along, as those that a flowtable forwards; m knows
    it, and tells who really sent them, of what he sent.
    """
    length = 24 if family == "ip" else 64
    for n, (host, device) in enumerate(((A, "ma"), (B, "mb")), 1):
        address(host, f"{host.name}0", f"{net.format(n, n)}/{length}")
        address(M, device, f"{net.format(n, 5)}/{length}")
    A.ip(f"route add default via {net.format(1, 5)}")
    inside("m", "nft", "-f", "-", stdin=NAT.format(family=family, to=to))
    for sender, device, other, port, own in (
            (A, "mb", net.format(2, 2), 5004, net.format(1, 1)),
            (B, "ma", net.format(2, 5), 7000, net.format(2, 2))):
        ifb = f"i{device}"
        M.ip(f"link add {ifb} up type ifb")
        M.tc(f"qdisc add dev {device} clsact")
        M.tc(f"filter add dev {device} egress matchall action mirred egress redirect dev {ifb}")
        queue(ifb)
        told = sender.task(peers.watch, 5, [own], quoted=other)
        sender.task(peers.send, other, 4, port=port).wait()
        heard(f"translated, then redirected: {sender.name}", told.wait(), f"{own[:-1]}5")


@pytest.mark.parametrize("managed", [False, True])
def test_open_vswitch(managed: bool) -> None:
    """A bridge, whose own device is none of its ports' upper ones."""
    if ovs.missing():
        pytest.skip("this kernel has no Open vSwitch")
    M.task(ovs.switch, ["ma", "mb"], {0: [1, 2], 1: [2, 0], 2: [1, 0]}).wait()
    address(A, "a0", "10.10.0.1/24")
    address(B, "b0", "10.10.0.2/24")
    address(M, ovs.DEVICE if managed else "mc", "10.10.0.5/24")
    if not managed:
        address(C, "c0", "10.10.0.1/24")  # who could be taken for the sender
    queue()
    told, stranger = talk(A, "10.10.0.2", "10.10.0.1")
    heard("Open vSwitch", told, "10.10.0.5" if managed else "10.10.0.2")
    unheard("Open vSwitch", stranger)
    within("Open vSwitch: sources that answered", stats().rtt_samples, managed, managed)
