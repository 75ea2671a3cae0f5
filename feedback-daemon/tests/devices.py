# SPDX-License-Identifier: GPL-2.0
"""Where packets come by: VLANs, devices that stand on others, guests, containers, offload."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from host import captured
from rig import (
    DPORT,
    PATIENCE,
    ROUTER_IP,
    SENDER_IP,
    SPORT,
    Client,
    Rate,
    Trial,
    can_ip,
    inside,
    ip,
    ip_header,
    lacks,
    message,
    quote,
    rtp,
)


def check_netlink(t: Trial) -> None:
    """News of interfaces are believed of the kernel alone."""
    t.start("-i", "veth0")
    table = inside(t.net.sender, "cat", "/proc/net/netlink").splitlines()
    ports = [int(words[2]) for words in map(str.split, table) if words[1:4:2] == ["0", "00000001"]]
    index = int(inside(t.net.sender, "cat", "/sys/class/net/veth0/ifindex"))
    assert len(ports) == 1, ports
    with t.net.socket(t.net.sender, socket.AF_NETLINK, socket.SOCK_RAW, 0) as liar:
        gone = struct.pack("=IHHIIBxHiII", 32, 17, 0, 0, 0, 0, 0, index, 0, 0)  # RTM_DELLINK
        liar.sendto(gone, (ports[0], 0))
        liar.sendto(gone[:7], (ports[0], 0))
    t.until(lambda: t.stats()["link_foreign"] == 2, "what is not the kernel's")
    assert captured(t) == {"veth0": True}
    assert "interface has gone" not in t.log.read_text(), "anybody is believed"
    t.stop()
    print("ok netlink", flush=True)


def vlan(t: Trial, offload: str, *tags: str) -> list[str]:
    """Move the addresses of both ends into a VLAN, or one within another. Return the devices."""
    devices = ["veth0"]
    for tag in tags:
        devices.append(f"{devices[-1]}.{tag}")
    for name, addr in ((t.net.sender, SENDER_IP), (t.net.router, ROUTER_IP)):
        ip(name, "link set veth0 up")
        inside(name, "ethtool", "-K", "veth0", "txvlan", offload, "rxvlan", offload)
        for under, device, tag in zip(devices, devices[1:], tags, strict=False):
            ip(name, f"link add link {under} name {device} type vlan id {tag}")
            ip(name, f"link set {device} up")
        ip(name, "-4 addr flush dev veth0")
        ip(name, f"addr add {addr}/24 dev {devices[-1]}")
    return devices


def unvlan(t: Trial) -> None:
    """Move them back."""
    for name, addr in ((t.net.sender, SENDER_IP), (t.net.router, ROUTER_IP)):
        ip(name, "link del veth0.5")
        ip(name, f"addr add {addr}/24 dev veth0")


def has_vlan(t: Trial) -> bool:
    """Whether this kernel can."""
    if not can_ip(t.net.sender, "link add link veth0 name veth0.9 type vlan id 9"):
        return False
    ip(t.net.sender, "link del veth0.9")
    return True


def check_vlan(t: Trial) -> None:
    """Media in a VLAN: on all interfaces each packet counts once; on each of them it is seen."""
    if not has_vlan(t):
        lacks("VLAN")
        return
    for offload, *tags in (("on", "5"), ("off", "5"), ("on", "5", "6"), ("off", "5", "6")):
        devices = vlan(t, offload, *tags)
        # a device sees through one tag
        for iface in ("any", *devices[-2:]):
            t.start("-i", iface)
            client = t.sender()
            t.answer(message(quote(t.send_media()), 1, 850_000.0))
            assert client.rate() == Rate(1, 850_000, "erf", ROUTER_IP, 1, 1)
            stats = t.stats()
            assert stats["refused_total"] == 0, stats["refused"]
            assert stats["media_packets"] == 1, stats
            t.stop()
            client.sock.close()
        unvlan(t)
        print(f"ok VLAN {'.'.join(tags)}, offload {offload}: any, device, VLAN device", flush=True)


# Devices that stand on others: what makes them, and whether the address moves up to them.
STACKS = {
    "bridge": ("type bridge", True),
    "bond": ("type bond mode active-backup", True),
    "macvlan": ("link veth0 type macvlan mode bridge", True),
    "vrf": ("type vrf table 77", False),
}


@contextlib.contextmanager
def stacked(t: Trial, kind: str) -> Iterator[bool]:
    """The sender's address is on a device of this kind above veth0. False: the kernel has none."""
    host = t.net.sender
    words, moves = STACKS[kind]
    if not can_ip(host, f"link add top0 {words}"):
        yield False
        return
    if kind == "bond":
        ip(host, "link set veth0 down")
    if kind != "macvlan":
        ip(host, "link set veth0 master top0")
    for device in ("veth0", "top0"):
        ip(host, f"link set {device} up")
    if moves:
        ip(host, "-4 addr flush dev veth0")
        ip(host, f"addr add {SENDER_IP}/24 dev top0")
    ip(t.net.router, "neigh flush all")
    if kind == "vrf":
        t.media.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"top0")
    try:
        yield True
    finally:
        t.media.close()
        for device in ("top0", "veth0"):
            ip(host, f"link del {device}")
        t.net.join()
        t.open_media()


def check_stacks(t: Trial) -> None:
    """On all interfaces each packet counts once, whatever devices stand on each other."""
    for kind in STACKS:
        with stacked(t, kind) as there:
            if not there:
                assert "--all" not in sys.argv or kind == "bond", f"this kernel has no {kind}"
                print(f"left out: {kind}, which this kernel does not have", flush=True)
                continue
            # a VRF's device shows nothing that comes in
            for iface in ("any", "veth0") if kind == "vrf" else ("any", "top0", "veth0"):
                t.start("-i", iface)
                client = t.sender()
                for seq in range(1, 11):
                    t.answer(message(quote(t.send_media()), seq, 500_000.0 + seq))
                    if (kind, iface) == ("macvlan", "veth0"):
                        continue  # a message to another device's address
                    while client.told().seq != seq:
                        pass
                t.until(lambda: t.stats()["media_packets"] >= 10, f"ten packets on {iface}")
                stats = t.stats()
                assert stats["refused_total"] == 0, (kind, iface, stats["refused"])
                assert stats["media_packets"] == 10, (kind, iface, stats["media_packets"])
                t.stop()
                client.sock.close()
        print(f"ok {kind}: any, the device, the one below it", flush=True)


def hardware(name: str, device: str = "veth0") -> bytes:
    """The address of a device there."""
    text = inside(name, "cat", f"/sys/class/net/{device}/address")
    return bytes.fromhex(text.strip().replace(":", ""))


def check_guest(t: Trial) -> None:
    """A guest on the host's bridge can prove nothing by packets that are not the host's."""
    guest = f"pq-g-{os.getpid()}"
    with stacked(t, "bridge") as there:
        if not there:
            lacks("bridge")
            return
        subprocess.run(["ip", "netns", "add", guest], check=True)
        try:
            ip(t.net.sender, f"link add guest0 type veth peer veth0 netns {guest}")
            ip(t.net.sender, "link set guest0 master top0 up")
            ip(guest, "link set veth0 up")
            for iface in ("any", "top0"):
                t.start("-i", iface)
                client = t.sender()
                forge(t, guest, client)
                # the host's own go on to be believed
                t.answer(message(quote(t.send_media()), 9, 700_000.0))
                assert client.rate().bps == 700_000
                client.sock.close()
                t.stop()
            # who names the port is told what to name
            t.start("-i", "veth0")
            t.until(lambda: "veth0: is part of another" in t.log.read_text(), "the hint")
            assert "name that instead" in t.log.read_text(), t.log.read_text()
            t.stop()
        finally:
            subprocess.run(["ip", "netns", "del", guest], check=False)
    print("ok a guest on the bridge", flush=True)


def forge(t: Trial, guest: str, client: Client) -> None:
    """A guest sends media in the host's name, and a message about it."""
    payload = rtp(40_000)
    udp = struct.pack("!HHHH", SPORT, DPORT, 8 + len(payload), 0) + payload
    media = ip_header(SENDER_IP, ROUTER_IP, 17, 20 + len(udp)) + udp
    icmp = message(quote(payload), 1, 900_000.0)
    lie = ip_header("10.77.0.66", SENDER_IP, 1, 20 + len(icmp)) + icmp
    with t.net.socket(guest, socket.AF_PACKET, socket.SOCK_RAW, 0) as raw:
        raw.bind(("veth0", 0x0800))
        own = hardware(guest)
        # the bridge forwards when its port has begun to
        while True:
            raw.send(hardware(t.net.router) + own + b"\x08\x00" + media)
            if select.select([t.sink], [], [], 0.2)[0]:
                assert t.sink.recv(2048) == payload
                break
        raw.send(hardware(t.net.sender, "top0") + own + b"\x08\x00" + lie)
    t.until(lambda: t.stats()["refused_total"] + t.stats()["accepted"] > 0, "the message")
    stats = t.stats()
    assert stats["accepted"] == 0 and stats["refused"]["quote_unknown"] == 1, stats["refused"]
    assert client.silent(), "a guest's packet has proven a message"


def check_early(t: Trial) -> None:
    """The queue that tells is this host's own: its message comes while the packet waits there."""
    if "--all" not in sys.argv:
        print("left out: a queue that delays, which needs the lab's time", flush=True)
        return
    egress = ["tc", "-n", t.net.sender, "qdisc", "replace", "dev", "veth0", "root", "netem"]
    subprocess.run([*egress, "delay", "100ms", "limit", "1000"], check=True)
    t.start("-i", "any")
    client = t.sender()
    for seq in range(1, 6):
        sent = rtp(50_000 + seq)
        t.media.sendto(sent, (ROUTER_IP, DPORT))
        t.answer(message(quote(sent), seq, 500_000.0 + seq))
        assert not select.select([t.sink], [], [], 0.05)[0], "the packet has not waited"
        assert client.rate().bps == 500_000 + seq
        assert t.sink.recv(2048) == sent
    # what never leaves proves nothing
    t.answer(message(quote(rtp(60_000)), 6, 900_000.0))
    t.until(lambda: t.stats()["refused_total"] > 0, "refusal")
    stats = t.stats()
    assert stats["accepted"] == 5 and stats["refused"]["quote_unknown"] == 1, stats
    client.sock.close()
    t.stop()
    subprocess.run(["tc", "-n", t.net.sender, "qdisc", "del", "dev", "veth0", "root"], check=True)
    print("ok messages that come before their packets", flush=True)


def check_own_queue(t: Trial) -> None:
    """The queue that tells is this host's own: the kernel brings its message by the loopback
    device, whatever interface is named."""
    raw = t.net.socket(t.net.sender, socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    for seq, iface in enumerate(("any", "veth0"), start=1):
        t.start("-i", iface)
        client = t.sender()
        icmp = message(quote(t.send_media()), seq, 850_000.0)
        raw.sendto(ip_header(SENDER_IP, SENDER_IP, 1, 20 + len(icmp)) + icmp, (SENDER_IP, 0))
        assert client.rate() == Rate(1, 850_000, "erf", SENDER_IP, seq, 1)
        assert captured(t) == {iface: True}
        stats = t.stats()
        assert stats["media_packets"] == 1 and stats["refused_total"] == 0, stats
        client.sock.close()
        t.stop()
    raw.close()
    print("ok a queue of this host itself", flush=True)


# What runs in a container: a sender that knows the socket's path, the router and its own address as
# that leaves the host. It gives up its rights once it has read these files: others may not be able
# to (a clone below /root).
IN_CONTAINER = """
import os, socket, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from host import NOBODY
from rig import DPORT, ROUTER_IP, SPORT, Client, rtp
os.setgroups([NOBODY])
os.setresgid(1001, 1001, 1001)
os.setresuid(1001, 1001, 1001)
client = Client(Path("/run/paqmd/client.sock"))
assert client.register(1, source=sys.argv[2]) == 0
assert client.rate().cause == "none"
media = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
media.bind(("", SPORT))
media.sendto(rtp(1), (ROUTER_IP, DPORT))
print(client.rate().bps, flush=True)
"""
POD_IP, GATEWAY_IP = "10.88.0.2", "10.88.0.1"


def check_container(t: Trial) -> None:
    """A sender in a container, with the socket's directory and the group of paqmd on its host."""
    pod = f"pq-c-{os.getpid()}"
    host = t.net.sender
    subprocess.run(["ip", "netns", "add", pod], check=True)
    ip(host, f"link add pod0 type veth peer eth0 netns {pod}")
    ip(host, f"addr add {GATEWAY_IP}/24 dev pod0")
    ip(host, "link set pod0 up")
    ip(pod, f"addr add {POD_IP}/24 dev eth0")
    ip(pod, "link set eth0 up")
    ip(pod, f"route add default via {GATEWAY_IP}")
    inside(host, "sysctl", "-qw", "net.ipv4.ip_forward=1")
    ip(t.net.router, f"route replace 10.88.0.0/24 via {SENDER_IP}")
    t.media.close()
    try:
        in_container(t, pod, POD_IP)
        print("ok a container, routed", flush=True)
        in_container(t, pod, POD_IP, "-i", "pod0")
        print("ok a container, told by a queue of its host", flush=True)
        masquerade = ("table ip pods { chain post { type nat hook postrouting priority srcnat; "
                      f"ip saddr {POD_IP} masquerade; }}; }}")
        if subprocess.run(["ip", "netns", "exec", host, "nft", masquerade], capture_output=True,
                          check=False).returncode:
            lacks("masquerading")
            return
        in_container(t, pod, SENDER_IP)
        inside(host, "nft", "delete table ip pods")
        print("ok a container, masqueraded", flush=True)
    finally:
        subprocess.run(["ip", "netns", "del", pod], check=False)
        t.open_media()


def in_container(t: Trial, pod: str, leaves_as: str, *more: str) -> None:
    """Run the sender there and tell it a rate: a router does, or with @more its host."""
    t.start("-i", "veth0", *more, "--group", "nogroup")
    raw = t.raw
    if more:
        raw = t.net.socket(t.net.sender, socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    mounts = f"mkdir -p /run/paqmd && mount --bind {t.ipc.parent} /run/paqmd && exec \"$@\""
    run = ["ip", "netns", "exec", pod, "unshare", "--mount", "sh", "-c", mounts, "sh",
           sys.executable, "-c", IN_CONTAINER, str(Path(__file__).resolve().parent), leaves_as]
    with subprocess.Popen(run, stdout=subprocess.PIPE, text=True) as sender:
        assert sender.stdout
        payload, came_from = t.sink.recvfrom(2048)
        assert came_from == (leaves_as, SPORT)
        head = ip_header(leaves_as, ROUTER_IP, 17, 28 + len(payload))
        icmp = message(head + quote(payload)[20:], 1, 650_000.0)
        ip = ip_header(ROUTER_IP, leaves_as, 1, 20 + len(icmp))
        raw.sendto(ip + icmp, (leaves_as, 0))
        assert sender.stdout.read().strip() == "650000"
        assert sender.wait(PATIENCE) == 0
    t.stop()


def check_batches(t: Trial) -> None:
    """Of a batch of UDP segmentation offload every segment proves, if it is not short."""
    t.start("-i", "veth0")
    client = t.sender()
    segments = [rtp(100 + n) for n in range(12)]
    segments[-1] = segments[-1][:60]
    offload = [(socket.IPPROTO_UDP, 103, struct.pack("=H", len(segments[0])))]  # UDP_SEGMENT
    before = t.stats()["media_packets"]
    t.media.sendmsg([b"".join(segments)], offload, 0, (ROUTER_IP, DPORT))
    for want in segments:
        assert t.sink.recv(2048) == want
    for seq, sent in enumerate(segments, start=1):
        t.answer(message(quote(sent), seq, 500_000 + seq))
        assert client.told().bps == 500_000 + seq
    t.until(lambda: t.stats()["media_packets"] == before + len(segments), "all segments")
    # of a short one the first does
    short = [rtp(150 + n) for n in range(3)]
    offload = [(socket.IPPROTO_UDP, 103, struct.pack("=H", len(short[0])))]
    t.media.sendmsg([b"".join(short)], offload, 0, (ROUTER_IP, DPORT))
    for want in short:
        assert t.sink.recv(2048) == want
    t.answer(message(quote(short[0]), 18, 550_000))
    assert client.told().bps == 550_000
    t.answer(message(quote(short[1]), 19, 560_000))
    t.until(lambda: t.stats()["refused"]["quote_unknown"] == 1, "the message to be refused")
    # a jumbo packet is one; nothing of it proves twice
    for name in (t.net.sender, t.net.router):
        ip(name, "link set veth0 mtu 9000")
    jumbo = rtp(200) + os.urandom(4000)
    t.media.sendto(jumbo, (ROUTER_IP, DPORT))
    assert t.sink.recv(9000) == jumbo
    t.answer(message(quote(jumbo), 20, 600_000))
    assert client.told().bps == 600_000
    t.until(lambda: t.stats()["media_packets"] == before + len(segments) + 2, "the jumbo packet")
    for name in (t.net.sender, t.net.router):
        ip(name, "link set veth0 mtu 1500")
    t.stop()
    print("ok batches of segmentation offload", flush=True)
