#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What paqmd is besides its checks: two processes with few privileges, a configuration that is
read again, a service of the service manager, a helper in search of reasons. The real programs,
real packets, two network namespaces. Needs root (exit code 77, "skipped", otherwise). What the
kernel cannot do is left out, unless --all demands it.

Usage: process.py [--all] PAQMD PAQMCTL
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import wire
from e2e import (
    DPORT,
    OTHER_IP6,
    PATIENCE,
    RATE_FORMAT,
    REGISTERED,
    ROUTER_IP,
    ROUTER_IP6,
    SENDER_IP,
    SENDER_IP6,
    SPORT,
    Client,
    Rate,
    Trial,
    ip_header,
    message,
    message6,
    quote,
    register,
    rtp,
    run_checks,
    start_keyed,
    tagged,
    timer_clocks,
)

NOBODY = 65534


def status(pid: int) -> dict[str, str]:
    """What /proc says about a process; nothing if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return {}
    return {k: v.strip() for k, v in (line.split(":", 1) for line in lines)}


def children(pid: int) -> list[int]:
    """Child processes."""
    every = [int(path.name) for path in Path("/proc").glob("[0-9]*")]
    return [other for other in every if status(other).get("PPid") == str(pid)]


def alive(pid: int) -> bool:
    """Whether it runs: one that has ended may wait for its parent to notice."""
    return status(pid).get("State", "Z")[0] != "Z"


def family(pid: int) -> list[int]:
    """The processes of paqmd: worker, opener, capturer."""
    (opener,) = children(pid)
    return [pid, opener, *children(opener)]


def works(t: Trial) -> list[int]:
    """All processes are without privileges, and a sender is told."""
    t.start("-i", "veth0")
    assert t.daemon
    pids = family(t.daemon.pid)
    assert [status(pid)["Name"] for pid in pids] == ["paqmd", "paqmd-opener", "paqmd-capturer"]
    for pid in pids:
        s = status(pid)
        assert set(s["Uid"].split()) == {str(NOBODY)}, s["Uid"]
        for kind in ("CapEff", "CapPrm", "CapAmb"):
            assert int(s[kind], 16) == 0, (pid, kind, s[kind])
        assert s["NoNewPrivs"] == "1" and s["Seccomp"] == "2", s
    client = Client(t.ipc)
    assert client.register(1) == 0
    assert client.rate().cause == "none"
    t.answer(message(quote(t.send_media()), 1, 850_000.0))
    assert client.rate().bps == 850_000
    return pids


def check_shape(t: Trial) -> None:
    """Who does what with which privileges; the daemon does not outlive its opener."""
    pids = works(t)
    for pid in pids:
        s = status(pid)
        assert set(s["Gid"].split()) == {str(NOBODY)}, s["Gid"]
        assert not s["Groups"], s["Groups"]
        for kind in ("CapInh", "CapBnd"):
            assert int(s[kind], 16) == 0, (pid, kind, s[kind])
    assert t.daemon
    print("ok all processes without privileges, at work", flush=True)

    for which, name in ((1, "opener"), (2, "capturer")):
        os.kill(pids[which], signal.SIGKILL)
        assert t.daemon.wait(PATIENCE) == 1, f"the daemon goes on without its {name}"
        assert f"{name} has ended" in t.log.read_text()
        t.daemon = None
        t.until(lambda: not any(map(alive, pids)), "all to end")  # noqa: B023
        print(f"ok ends with its {name}", flush=True)
        pids = works(t)
    t.stop()
    t.start("-i", "veth0", "--sandbox=no")
    assert t.daemon and status(t.daemon.pid)["Seccomp"] == "0"
    pids = family(t.daemon.pid)
    t.daemon.kill()
    t.daemon.wait()
    t.daemon = None
    t.until(lambda: not any(map(alive, pids)), "all to end with the daemon")
    print("ok the others end with the daemon", flush=True)


@contextlib.contextmanager
def as_service(t: Trial) -> Iterator[None]:
    """Start paqmd as the unit does it: as an own user, with CAP_NET_RAW and nothing else."""
    t.ipc.parent.mkdir(parents=True, exist_ok=True)
    for path in (t.ipc.parent, t.control.parent):
        os.chown(path, NOBODY, NOBODY)
    # of a daemon that was killed, and not this user's
    for path in (t.ipc, t.control):
        path.unlink(missing_ok=True)
    command = list(t.command)
    t.command[:0] = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups",
                     "--inh-caps", "-all,+net_raw", "--ambient-caps", "-all,+net_raw",
                     "--bounding-set", "-all,+net_raw"]
    yield
    t.command = command


def check_service_user(t: Trial) -> None:
    """The unit's way to start it."""
    with as_service(t):
        works(t)
        t.stop()
    print("ok started as the unit does it", flush=True)


def let_read(path: Path, rights: int) -> None:
    """Rights of nobody by an access list, as the service manager gives them; none of a group."""
    entries = ((1, rights, -1), (2, rights, NOBODY), (4, 0, -1), (16, rights, -1), (32, 0, -1))
    packed = b"".join(struct.pack("<HHi", *entry) for entry in entries)
    os.setxattr(path, "system.posix_acl_access", struct.pack("<I", 2) + packed)


def check_credential(t: Trial) -> None:
    """Keys that the service manager hands over, LoadCredential=, at the start and on reload."""
    home = t.log.with_name("credentials")
    home.mkdir()
    keys, secret = home / "keys", os.urandom(16)
    keys.write_text(f"a1 7 {secret.hex()}\n")
    try:
        let_read(home, 5)
        let_read(keys, 4)
    except OSError as err:
        assert "--all" not in sys.argv, err
        print("left out: access lists, which this file system does not have", flush=True)
        return
    assert keys.stat().st_mode & 0o777 == 0o440
    with as_service(t):
        plain = [*t.command, "--keys", str(keys)]
        done = subprocess.run(plain, capture_output=True, text=True, check=False)
        assert done.returncode == 2 and "chmod 600" in done.stderr, done
        t.command[:0] = ["env", f"CREDENTIALS_DIRECTORY={home}"]
        t.start("-i", "veth0", "--keys", str(keys))
        assert reload(t) == ""
        client = Client(t.ipc)
        assert client.register(1) == 0
        client.rate()
        icmp = message(quote(t.send_media()), 1, 600_000.0)
        t.expect_refusal("auth_missing", icmp)
        t.answer(tagged(icmp, 7, secret))
        assert client.rate().bps == 600_000
        client.sock.close()
        t.stop()
    print("ok keys of the service manager", flush=True)


def config_errors(t: Trial, text: str) -> list[str]:
    """What --check-config says about a file."""
    path = t.log.with_name("wrong.conf")
    path.write_text(text)
    run = [t.command[0], "--config", str(path), "--check-config"]
    out = subprocess.run(run, capture_output=True, text=True, check=False)
    assert (out.returncode == 0) == (not out.stderr), out
    assert out.returncode in (0, 2), out
    return [line.removeprefix(f"paqmd: {path}:") for line in out.stderr.splitlines()]


def check_config(t: Trial) -> None:
    """Mistakes in the file are told with line, reason and remedy."""
    assert config_errors(t, "# none\n\n interface eth0 # one\ninterface\teth1\nuse ecf") == []
    wrong = "use dance\nfoo bar\ngroup\nuse erf\nuse ecf\nsocket here\nsandbox no no\n\x01\n"
    assert config_errors(t, wrong + "interface " + "x" * 16) == [
        "1: use dance: must be erf or ecf",
        "2: unknown setting 'foo'; see paqmd.conf(5)",
        "3: group: has no value; see paqmd.conf(5)",
        "5: use ecf: must be given once only",
        "6: socket here: must be an absolute path of at most 107 bytes",
        "7: sandbox: has more than one value; give one line to each",
        "8: byte 1 is a control character: remove it",
        "9: interface xxxxxxxxxxxxxxxx: must be a name of 1 to 15 bytes; see 'ip link', or any",
    ]
    run = [t.command[0], "--config", "/nowhere", "--check-config"]
    out = subprocess.run(run, capture_output=True, text=True, check=False)
    assert out.returncode == 2 and "/nowhere: cannot read it" in out.stderr, out
    print("ok --check-config", flush=True)


def reload(t: Trial) -> str:
    """What paqmctl reload complains about."""
    run = [t.paqmctl, "--control", str(t.control), "reload"]
    out = subprocess.run(run, capture_output=True, text=True, check=False)
    assert (out.returncode == 0) == (not out.stderr), out
    return out.stderr


def captured(t: Trial) -> dict[str, bool]:
    """Which interfaces are captured."""
    return {i["name"]: i["up"] for i in t.stats()["interfaces"]}


def check_reload(t: Trial) -> None:
    """New settings hold without losing a client; wrong ones change nothing."""
    conf = t.log.with_name("paqmd.conf")
    conf.write_text("interface lo\nuse erf\n")
    conf.chmod(0o644)
    t.start("--config", str(conf))
    client = Client(t.ipc)
    assert client.register(1, ceil=1_000_000) == 0
    assert client.rate().cause == "none"

    conf.write_text("interface lo\ninterface veth0\nuse ecf\n")
    assert reload(t) == ""
    stats = t.stats()
    assert stats["use"] == "ecf"
    t.until(lambda: captured(t) == {"lo": True, "veth0": True}, "both interfaces")
    t.answer(message(quote(t.send_media()), 1, 500_000.0, ecf=0.5))
    assert client.rate() == Rate(1, 500_000, "ecf", ROUTER_IP, 1, 1)

    conf.write_text("interface veth0\nuse erf\nuse dance\n")
    assert f"{conf}:3: use dance: must be erf or ecf" in reload(t)
    conf.write_text("interface veth0\nuser root\n")
    # the command line names the user, and it wins
    assert reload(t) == ""
    assert captured(t) == {"veth0": True}
    conf.write_text("interface veth0\ngroup root\n")
    assert "with a restart only" in reload(t)
    conf.write_text("interface veth0\ninterface pq-late0\n")
    assert t.daemon
    t.daemon.send_signal(signal.SIGHUP)
    t.until(lambda: captured(t) == {"veth0": True, "pq-late0": False}, "SIGHUP to be heard")
    ip = ["ip", "-n", t.net.sender, "link"]
    subprocess.run([*ip, "add", "pq-late0", "type", "veth"], check=True)
    t.until(lambda: captured(t)["pq-late0"], "an interface that comes later")
    subprocess.run([*ip, "set", "pq-late0", "name", "pq-else0"], check=True)
    t.until(lambda: not captured(t)["pq-late0"], "a change of its name")
    subprocess.run([*ip, "del", "pq-else0"], check=True)

    # the client and what it was told are still there
    flow = t.ask("flows")["flows"][0]
    assert flow["accepted"] == 1
    t.answer(message(quote(t.send_media()), 2, 700_000.0))
    assert client.told().bps == 700_000
    print("ok reload", flush=True)
    t.stop()


def check_netlink(t: Trial) -> None:
    """News of interfaces are believed of the kernel alone."""
    t.start("-i", "veth0")
    inside = ["ip", "netns", "exec", t.net.sender, "cat"]
    ports = [int(line.split()[2]) for line in subprocess.run(
        [*inside, "/proc/net/netlink"], check=True, capture_output=True, text=True,
    ).stdout.splitlines()[1:] if line.split()[1:4:2] == ["0", "00000001"]]
    index = int(subprocess.run([*inside, "/sys/class/net/veth0/ifindex"], check=True,
                               capture_output=True, text=True).stdout)
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
        inside = ["ip", "netns", "exec", name]
        ip = ["ip", "-n", name]
        subprocess.run([*ip, "link", "set", "veth0", "up"], check=True)
        subprocess.run(
            [*inside, "ethtool", "-K", "veth0", "txvlan", offload, "rxvlan", offload],
            check=True, capture_output=True,
        )
        for under, device, tag in zip(devices, devices[1:], tags, strict=False):
            subprocess.run([*ip, "link", "add", "link", under, "name", device, "type", "vlan",
                            "id", tag], check=True)
            subprocess.run([*ip, "link", "set", device, "up"], check=True)
        subprocess.run([*ip, "-4", "addr", "flush", "dev", "veth0"], check=True)
        subprocess.run([*ip, "addr", "add", f"{addr}/24", "dev", devices[-1]], check=True)
    return devices


def unvlan(t: Trial) -> None:
    """Move them back."""
    for name, addr in ((t.net.sender, SENDER_IP), (t.net.router, ROUTER_IP)):
        ip = ["ip", "-n", name]
        subprocess.run([*ip, "link", "del", "veth0.5"], check=True)
        subprocess.run([*ip, "addr", "add", f"{addr}/24", "dev", "veth0"], check=True)


def has_vlan(t: Trial) -> bool:
    """Whether this kernel can."""
    ip = ["ip", "-n", t.net.sender, "link"]
    add = [*ip, "add", "link", "veth0", "name", "veth0.9", "type", "vlan", "id", "9"]
    if subprocess.run(add, capture_output=True, check=False).returncode:
        return False
    subprocess.run([*ip, "del", "veth0.9"], check=True)
    return True


def check_vlan(t: Trial) -> None:
    """Media in a VLAN: on all interfaces each packet counts once; on each of them it is seen."""
    if not has_vlan(t):
        assert "--all" not in sys.argv, "this kernel has no VLAN"
        print("left out: VLAN, which this kernel does not have", flush=True)
        return
    for offload, *tags in (("on", "5"), ("off", "5"), ("on", "5", "6"), ("off", "5", "6")):
        devices = vlan(t, offload, *tags)
        # a device sees through one tag
        for iface in ("any", *devices[-2:]):
            t.start("-i", iface)
            client = Client(t.ipc)
            assert client.register(1) == 0
            client.rate()
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
    "bridge": (["type", "bridge"], True),
    "bond": (["type", "bond", "mode", "active-backup"], True),
    "macvlan": (["link", "veth0", "type", "macvlan", "mode", "bridge"], True),
    "vrf": (["type", "vrf", "table", "77"], False),
}


@contextlib.contextmanager
def stacked(t: Trial, kind: str) -> Iterator[bool]:
    """The sender's address is on a device of this kind above veth0. False: the kernel has none."""
    ip = ["ip", "-n", t.net.sender]
    words, moves = STACKS[kind]
    if subprocess.run([*ip, "link", "add", "top0", *words], capture_output=True,
                      check=False).returncode:
        yield False
        return
    if kind == "bond":
        subprocess.run([*ip, "link", "set", "veth0", "down"], check=True)
    if kind != "macvlan":
        subprocess.run([*ip, "link", "set", "veth0", "master", "top0"], check=True)
    for device in ("veth0", "top0"):
        subprocess.run([*ip, "link", "set", device, "up"], check=True)
    if moves:
        subprocess.run([*ip, "-4", "addr", "flush", "dev", "veth0"], check=True)
        subprocess.run([*ip, "addr", "add", f"{SENDER_IP}/24", "dev", "top0"], check=True)
    subprocess.run(["ip", "-n", t.net.router, "neigh", "flush", "all"], check=True)
    if kind == "vrf":
        t.media.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"top0")
    try:
        yield True
    finally:
        t.media.close()
        for device in ("top0", "veth0"):
            subprocess.run([*ip, "link", "del", device], check=True)
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
                client = Client(t.ipc)
                assert client.register(1) == 0
                client.rate()
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


def hardware(name: str) -> bytes:
    """The address of veth0 there."""
    text = subprocess.run(["ip", "netns", "exec", name, "cat", "/sys/class/net/veth0/address"],
                          check=True, capture_output=True, text=True).stdout
    return bytes.fromhex(text.strip().replace(":", ""))


def check_guest(t: Trial) -> None:
    """A guest on the host's bridge can prove nothing by packets that are not the host's."""
    guest = f"pq-g-{os.getpid()}"
    with stacked(t, "bridge") as there:
        if not there:
            assert "--all" not in sys.argv, "this kernel has no bridge"
            print("left out: bridge, which this kernel does not have", flush=True)
            return
        subprocess.run(["ip", "netns", "add", guest], check=True)
        try:
            link = ["link", "add", "guest0", "type", "veth", "peer", "veth0", "netns", guest]
            ip = ["ip", "-n", t.net.sender]
            subprocess.run([*ip, *link], check=True)
            subprocess.run([*ip, "link", "set", "guest0", "master", "top0", "up"], check=True)
            subprocess.run(["ip", "-n", guest, "link", "set", "veth0", "up"], check=True)
            for iface in ("any", "top0"):
                t.start("-i", iface)
                client = Client(t.ipc)
                assert client.register(1) == 0
                client.rate()
                forge(t, guest, client)
                # the host's own go on to be believed
                t.answer(message(quote(t.send_media()), 9, 700_000.0))
                assert client.rate().bps == 700_000
                client.sock.close()
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
    host = subprocess.run(["ip", "netns", "exec", t.net.sender, "cat",
                           "/sys/class/net/top0/address"], check=True, capture_output=True,
                          text=True).stdout.strip().replace(":", "")
    with t.net.socket(guest, socket.AF_PACKET, socket.SOCK_RAW, 0) as raw:
        raw.bind(("veth0", 0x0800))
        own = hardware(guest)
        # the bridge forwards when its port has begun to
        while True:
            raw.send(hardware(t.net.router) + own + b"\x08\x00" + media)
            if select.select([t.sink], [], [], 0.2)[0]:
                assert t.sink.recv(2048) == payload
                break
        raw.send(bytes.fromhex(host) + own + b"\x08\x00" + lie)
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
    client = Client(t.ipc)
    assert client.register(1) == 0
    client.rate()
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


# What runs in a container: a sender that knows the socket's path, the router and its own address as
# that leaves the host.
IN_CONTAINER = """
import socket, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from e2e import DPORT, ROUTER_IP, SPORT, Client, rtp
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
    host, router = ["ip", "-n", t.net.sender], ["ip", "-n", t.net.router]
    inside = ["ip", "netns", "exec", t.net.sender]
    for command in (
        ["ip", "netns", "add", pod],
        [*host, "link", "add", "pod0", "type", "veth", "peer", "eth0", "netns", pod],
        [*host, "addr", "add", f"{GATEWAY_IP}/24", "dev", "pod0"],
        [*host, "link", "set", "pod0", "up"],
        ["ip", "-n", pod, "addr", "add", f"{POD_IP}/24", "dev", "eth0"],
        ["ip", "-n", pod, "link", "set", "eth0", "up"],
        ["ip", "-n", pod, "route", "add", "default", "via", GATEWAY_IP],
        [*inside, "sysctl", "-qw", "net.ipv4.ip_forward=1"],
        [*router, "route", "replace", "10.88.0.0/24", "via", SENDER_IP],
    ):
        subprocess.run(command, check=True)
    t.media.close()
    try:
        in_container(t, pod, POD_IP)
        print("ok a container, routed", flush=True)
        masquerade = ("table ip pods { chain post { type nat hook postrouting priority srcnat; "
                      f"ip saddr {POD_IP} masquerade; }}; }}")
        if subprocess.run([*inside, "nft", masquerade], capture_output=True,
                          check=False).returncode:
            assert "--all" not in sys.argv, "this kernel has no masquerading"
            print("left out: masquerading, which this kernel does not have", flush=True)
            return
        in_container(t, pod, SENDER_IP)
        subprocess.run([*inside, "nft", "delete table ip pods"], check=True)
        print("ok a container, masqueraded", flush=True)
    finally:
        subprocess.run(["ip", "netns", "del", pod], check=False)
        t.open_media()


def in_container(t: Trial, pod: str, leaves_as: str) -> None:
    """Run the sender there and tell it a rate."""
    t.start("-i", "veth0", "--group", "nogroup")
    mounts = f"mkdir -p /run/paqmd && mount --bind {t.ipc.parent} /run/paqmd && exec \"$@\""
    run = ["ip", "netns", "exec", pod, "unshare", "--mount", "sh", "-c", mounts, "sh",
           "setpriv", "--reuid", "1001", "--regid", "1001", "--groups", str(NOBODY),
           sys.executable, "-c", IN_CONTAINER, str(Path(__file__).resolve().parent), leaves_as]
    with subprocess.Popen(run, stdout=subprocess.PIPE, text=True) as sender:
        assert sender.stdout
        payload, came_from = t.sink.recvfrom(2048)
        assert came_from == (leaves_as, SPORT)
        head = ip_header(leaves_as, ROUTER_IP, 17, 28 + len(payload))
        icmp = message(head + quote(payload)[20:], 1, 650_000.0)
        ip = ip_header(ROUTER_IP, leaves_as, 1, 20 + len(icmp))
        t.raw.sendto(ip + icmp, (leaves_as, 0))
        assert sender.stdout.read().strip() == "650000"
        assert sender.wait(PATIENCE) == 0
    t.stop()


def why(t: Trial) -> dict[str, object]:
    """The reason for the rate of the only flow."""
    (reason,) = t.ask("why")["why"]
    assert isinstance(reason, dict)
    return reason


def check_why(t: Trial) -> None:
    """Each state has its reason; capture, metrics."""
    t.start("-i", "veth0")
    assert t.ask("why")["why"] == []
    client = Client(t.ipc)
    assert client.register(1) == 0
    client.rate()
    assert why(t)["code"] == "no_media"
    sent = t.send_media()
    t.until(lambda: why(t)["code"] == "no_message", "the packet to be seen")
    assert "1 packets have left and no message ever came" in str(why(t)["text"])
    t.expect_refusal("msg_value", message(quote(sent), 1, 0))
    assert why(t)["code"] == "no_message", "a message that could not be read names no flow"
    t.expect_refusal("quote_unknown", message(quote(sent[:12] + os.urandom(200)), 1, 9e5))
    reason = why(t)
    assert (reason["code"], reason["refused_reason"]) == ("unproven", "quote_unknown")

    pcap = t.log.with_name("messages.pcap")
    run = [t.paqmctl, "--control", str(t.control), "--count", "2", "capture", str(pcap)]
    good = message(quote(sent), 1, 850_000.0)
    with subprocess.Popen(run) as capture:
        # the first one may still be too early to be captured
        t.answer(good)
        assert client.rate().bps == 850_000

        def again() -> bool:
            t.answer(good)
            return capture.poll() is not None

        t.until(again, "two messages to be captured")
        assert capture.wait(PATIENCE) == 0
    packets = read_pcap(pcap)
    assert len(packets) == 2 and all(p[20:] == good for p in packets), packets

    reason = why(t)
    assert reason["code"] == "advice" and reason["router_rate_bps"] == 850_000
    assert reason["router"] == ROUTER_IP and reason["routers"] == 1
    t.answer(message(quote(sent), 2, 1.0))
    assert client.told().bps == 100_000
    assert why(t)["code"] == "floor"
    t.answer(message(quote(sent), 3, 1e9))
    assert client.told().bps == 3_000_000
    assert why(t)["code"] == "ceiling"
    check_metrics(t)
    assert client.rate().cause == "expired"
    assert why(t)["code"] == "expired"
    print("ok why, capture, metrics", flush=True)
    t.stop()


def read_pcap(path: Path) -> list[bytes]:
    """Packets of a capture file."""
    data = path.read_bytes()
    assert struct.unpack_from("=IHHIIII", data) == (0xA1B23C4D, 2, 4, 0, 0, 65535, 101)
    packets, at = [], 24
    while at < len(data):
        _, _, kept, length = struct.unpack_from("=IIII", data, at)
        assert kept == length
        packets.append(data[at + 16 : at + 16 + kept])
        at += 16 + kept
    return packets


def check_metrics(t: Trial) -> None:
    """Every sample belongs to a family; values are those of the JSON."""
    run = [t.paqmctl, "--control", str(t.control), "metrics"]
    text = subprocess.run(run, check=True, capture_output=True, text=True).stdout
    assert text.endswith("# EOF\n")
    types: dict[str, str] = {}
    values: dict[str, float] = {}
    sample = re.compile(r'([a-z_]+)(\{(?:[a-z_]+="(?:[^"\\\n]|\\.)*",?)+\})? (\S+)')
    for line in text.splitlines()[:-1]:
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in types, f"family {name} twice"
            types[name] = kind
        elif not line.startswith("# HELP "):
            match = sample.fullmatch(line)
            assert match, line
            name = match[1].removesuffix("_total")
            assert types[name] == ("counter" if match[1].endswith("_total") else "gauge"), line
            assert match[1] + (match[2] or "") not in values, line
            values[match[1] + (match[2] or "")] = float(match[3])
    stats = t.stats()
    for reason, count in stats["refused"].items():
        assert values[f'paqmd_messages_refused_total{{reason="{reason}"}}'] == count
    assert values["paqmd_messages_accepted_total"] == stats["accepted"] > 0
    assert values['paqmd_interface_up{interface="veth0"}'] == 1
    flow = f'{{flow="{SENDER_IP}:{SPORT} > {ROUTER_IP}:{DPORT}"}}'
    assert values["paqmd_flow_rate_bps" + flow] == 3_000_000


def connect(path: Path) -> socket.socket:
    """A client of the control socket."""
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    s.settimeout(PATIENCE)
    s.connect(str(path))
    return s


@contextlib.contextmanager
def stopped(pid: int) -> Iterator[None]:
    """While this process hangs."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def check_rude(t: Trial) -> None:
    """Clients that ask too much at once, that come too many, and a log that nobody reads."""
    t.start("-i", "veth0")
    assert t.daemon
    request, count = b'{"cmd": "show"}\n', 250
    with connect(t.control) as flood:
        t.daemon.send_signal(signal.SIGSTOP)
        flood.sendall(count * request)
        flood.shutdown(socket.SHUT_WR)
        client = Client(t.ipc)
        t.daemon.send_signal(signal.SIGCONT)
        assert client.register(1) == 0
        client.rate()
        answers = [json.loads(line) for line in flood.makefile("rb")]
    assert len(answers) == count, f"{len(answers)} of {count} answers"
    others = [answer["stats"]["clients"] for answer in answers]
    assert others[4], f"a client waited for {others.index(1)} answers to another"
    print("ok one that asks much at once gets it all, and others theirs meanwhile", flush=True)

    t.stop()

    command = list(t.command)
    t.command[:0] = ["prlimit", "--nofile=20"]
    t.start("-i", "veth0")
    clients = [Client(t.ipc) for _ in range(15)]  # as many as may wait
    assert clients[-1].sock.recv(1) == b"", "neither served nor refused"
    assert clients[0].register(1) == 0
    assert clients[0].rate().cause == "none"
    for client in clients:
        client.sock.close()
    t.stop()
    t.command = command
    print("ok out of files", flush=True)

    read, write = os.pipe()
    t.daemon = subprocess.Popen(["ip", "netns", "exec", t.net.sender, *t.command, "-i", "veth0"],
                                stderr=write)
    os.close(write)
    while b"ready" not in os.read(read, 4096):
        pass
    os.close(read)
    with connect(t.control):
        client = Client(t.ipc)
        assert client.register(1) == 0
        client.rate()
    client.sock.close()
    t.until(lambda: t.stats()["clients"] == 0, "the client to be missed")
    t.stop()
    print("ok a log that nobody reads", flush=True)


def check_paqmctl(t: Trial) -> None:
    """Every command works; what is asked wrongly, or of nobody, is told with a way out."""
    def run(*arguments: str) -> tuple[int, str, str]:
        out = subprocess.run([t.paqmctl, "--control", str(t.control), *arguments],
                             capture_output=True, text=True, check=False)
        return out.returncode, out.stdout, out.stderr.removeprefix("paqmctl: ")

    asks = ["show", "flows", "routers", "stats", "why", "metrics", "reload"]
    pcap = t.log.with_name("old.pcap")
    pcap.write_text("of yesterday")
    for command in [*([ask] for ask in asks), ["watch"], ["capture", str(pcap)]]:
        status, said, wrong = run(*command)
        assert (status, said) == (1, ""), (command, said)
        assert wrong.startswith(f"cannot connect to {t.control}: No such file"), wrong
        assert "is paqmd running" in wrong, wrong
    assert pcap.read_text() == "of yesterday", "a capture was overwritten for nothing"
    for wrongly, text in (
        (["dance"], "unknown command 'dance'; try 'paqmctl --help'"),
        (["show", "me"], "'me' is one argument too many"),
        (["capture"], "capture: name the file to write, or - for stdout"),
        (["--count", "0", "watch"], "--count 0: must be a number of 1 or more"),
        (["--count", "2", "show"], "--count is for watch and capture, not for show"),
    ):
        assert run(*wrongly) == (2, "", text + "\n"), run(*wrongly)
    status, _, wrong = run("--control", "/" + "x" * 108)
    assert status == 1 and wrong.endswith("is longer than 107 bytes\n"), wrong

    t.start("-i", "veth0")
    client = Client(t.ipc)
    assert client.register(1) == 0
    for command in asks:
        assert run(command)[::2] == (0, ""), run(command)
        assert bool(run(command)[1]) == (command != "reload")
    status, _, wrong = run("capture", str(pcap.parent / "no" / "where"))
    assert status == 1 and wrong.startswith("cannot write "), wrong
    with open("/dev/full", "w") as full:
        out = subprocess.run([t.paqmctl, "--control", str(t.control)], stdout=full,
                             stderr=subprocess.PIPE, text=True, check=False)
    assert out.returncode == 1 and "cannot write the output: No space" in out.stderr, out
    client.sock.close()
    t.stop()
    print("ok paqmctl", flush=True)


@contextlib.contextmanager
def acting_as(uid: int) -> Iterator[None]:
    """What connects meanwhile is of this user, and of the group of nobody."""
    os.setegid(NOBODY)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


def stay(socks: list[socket.socket], count: int) -> list[socket.socket]:
    """Those that are still connected when so many are."""
    end = time.monotonic() + PATIENCE
    while len(socks) > count:
        assert time.monotonic() < end, f"{len(socks)} are connected, not {count}"
        for sock in list(socks):
            if select.select([sock], [], [], 0)[0]:
                assert sock.recv(1) == b""
                sock.close()
                socks.remove(sock)
        time.sleep(0.01)
    return socks


def crowd(t: Trial, count: int) -> list[socket.socket]:
    """So many connections of one user, those that are closed at once with them."""
    socks: list[socket.socket] = []
    while len(socks) < count:
        with contextlib.suppress(BlockingIOError):  # the queue is full
            socks.append(Client(t.ipc).sock)
    return socks


def register_many(client: Client, first: int, count: int) -> dict[int, int]:
    """Register flows of their own. Return how often each error came."""
    errors: dict[int, int] = {}
    for begin in range(first, first + count, 50):
        cookies = range(begin, min(begin + 50, first + count))
        for n in cookies:
            client.sock.send(register(n, source="", to=f"10.{1 + n // 65536}.{n // 256 % 256}."
                                      f"{n % 256}"))
        left = len(cookies)
        while left:
            record = client.sock.recv(512)
            if record[5] == REGISTERED:
                error = int.from_bytes(record[16:20], sys.byteorder)
                errors[error] = errors.get(error, 0) + 1
                left -= 1
    return errors


def check_shares(t: Trial) -> None:
    """Nobody takes more than he leaves to others: connections, flows, control connections."""
    t.start("-i", "veth0", "--group", "nogroup")
    ones: dict[int, list[socket.socket]] = {}
    for uid, count in ((1001, 32), (1002, 16), (1003, 8)):
        with acting_as(uid):
            ones[uid] = crowd(t, count + 3)
        stay(ones[uid], count)
    stats = t.stats()
    assert stats["clients"] == 56 and stats["clients_refused"] == {"user_full": 9, "all_full": 0}
    assert [(u["uid"], u["clients"]) for u in stats["users"]] == [
        (1001, 32), (1002, 16), (1003, 8)]
    assert "uid 1001 has 32 clients already, and leaves 32 to others" in t.log.read_text()
    # root has the rest
    rest = stay(crowd(t, 9), 8)
    assert t.stats()["clients_refused"] == {"user_full": 9, "all_full": 1}
    for sock in rest + sum(ones.values(), []):
        sock.close()
    t.until(lambda: t.stats()["clients"] == 0, "all to be gone")
    print("ok shares of the connections", flush=True)

    with acting_as(1001):
        greedy = [Client(t.ipc), Client(t.ipc)]
    with acting_as(1002):
        other = Client(t.ipc)
    assert register_many(greedy[0], 0, 4200) == {0: 4096, errno.ENOSPC: 104}
    assert register_many(greedy[1], 5000, 1100) == {0: 1024, errno.EDQUOT: 76}
    assert register_many(other, 10_000, 100) == {0: 100}
    stats = t.stats()
    refused = {k: n for k, n in stats["flows_refused"].items() if n}
    assert refused == {"client_full": 104, "user_full": 76}, refused
    digests = stats["users"][0].pop("digests")
    assert digests == 64 * 5120 and stats["digests"] == digests + 64 * 100
    assert stats["users"][0] == {"uid": 1001, "clients": 2, "flows": 5120}
    run = [t.paqmctl, "--control", str(t.control), "stats"]
    text = subprocess.run(run, check=True, capture_output=True, text=True).stdout
    assert "uid 1001: 2 clients, 5120 flows, 327680 digests\n" in text, text
    assert re.search(r"^  flows refused: user_full +76$", text, re.M), text
    for client in [*greedy, other]:
        client.sock.close()
    t.until(lambda: t.stats()["clients"] == 0, "all to be gone")
    assert t.stats()["digests"] == 0
    print("ok shares of the flows", flush=True)

    with acting_as(1001):
        controls = [connect(t.control) for _ in range(10)]
    stay(controls, 8)
    with acting_as(1002):
        controls.append(connect(t.control))
    assert t.stats()["controls_refused"] == {"user_full": 2, "all_full": 0}
    for sock in controls:
        sock.close()
    t.stop()
    print("ok shares of the control connections", flush=True)


def check_silence(t: Trial) -> None:
    """No process of paqmd can send a packet, whoever has taken it over."""
    inject = Path(t.paqmctl).parent / "tests" / "inject"
    inside = ["ip", "netns", "exec", t.net.sender]
    index = subprocess.run([*inside, "cat", "/sys/class/net/veth0/ifindex"], check=True,
                           capture_output=True, text=True).stdout.strip()
    foreign = "198.51.100.99"
    for which, options in ((n, o) for n in range(3) for o in (["-i", "veth0"], [])):
        t.start(*options)
        assert t.daemon
        pids = family(t.daemon.pid)
        name = status(pids[which])["Name"]
        with t.net.socket(t.net.router, socket.AF_PACKET, socket.SOCK_DGRAM,
                          socket.htons(0x0800)) as seen:
            packet = ip_header(foreign, ROUTER_IP, 17, 28) + bytes(8)
            done = subprocess.run([inject, str(pids[which]), index, packet.hex()],
                                  capture_output=True, text=True, check=False)
            if done.returncode == 77:
                print("left out: a process that is taken over, on this machine")
                t.stop()
                return
            assert done.returncode == 0 and "tried" in done.stdout, (name, done)
            # this one comes after what has been sent
            t.media.sendto(rtp(1), (ROUTER_IP, DPORT))
            while (got := seen.recv(2048))[12:16] != socket.inet_aton(SENDER_IP):
                assert got[12:16] != socket.inet_aton(foreign), f"{name} has sent a packet"
            t.sink.recv(2048)
        # nobody knows what the others make of what it wrote to them
        t.daemon.kill()
        t.daemon.wait()
        t.daemon = None
        t.until(lambda: not any(map(alive, pids)), "all to end")  # noqa: B023
    print("ok no process can send", flush=True)


def check_rights(t: Trial) -> None:
    """Members of the group may look, and register flows; they may not change or capture."""
    t.start("-i", "veth0", "--group", "nogroup")
    for uid, mighty in ((0, True), (1001, False)):
        with acting_as(uid):
            looks = connect(t.control)
            client = Client(t.ipc)
        assert client.register(1) == 0
        lines = looks.makefile("rb")
        for command in ("show", "stats", "why", "reload", "watch", "capture"):
            looks.sendall(json.dumps({"cmd": command}).encode() + b"\n")
            while "ok" not in (got := json.loads(lines.readline())):
                pass  # an event of the watch
            may = mighty or command not in ("reload", "capture")
            assert got["ok"] == may, (uid, command, got)
            assert may or "only root and the user who runs paqmd" in got["error"], got
        looks.close()
        client.sock.close()
        t.until(lambda: t.stats()["clients"] == 0, "the client to be missed")
    t.stop()
    print("ok rights of the group", flush=True)


def check_host_key(t: Trial) -> None:
    """The key that paqmctl derives for a host proves what is tagged for it, and nothing else."""
    secret = os.urandom(16)
    words = [t.paqmctl, "host-key"]
    for address in (SENDER_IP, SENDER_IP6):
        done = subprocess.run([*words, address], input=f"a1 7 {secret.hex()} # router\n",
                              capture_output=True, text=True, check=True)
        own = wire.host_key(secret, address).hex()
        assert done.stdout == f"a1 7 {own} host\n", done
    for text, args, status, said in (
        (f"a1 7 {secret.hex()} host\n", (SENDER_IP,), 1, "already"),
        ("", (SENDER_IP,), 1, "no key"),
        ("a1 7 12\n", (SENDER_IP,), 1, "32 hexadecimal"), ("", ("here",), 2, "address"),
        ("", (), 2, "one address"),
    ):  # fmt: skip
        done = subprocess.run([*words, *args], input=text, capture_output=True, text=True,
                              check=False)
        assert (done.returncode, done.stdout) == (status, "") and said in done.stderr, done
    keys = t.log.with_name("host-keys")
    keys.write_text(f"a1 7 {wire.host_key(secret, SENDER_IP).hex()} host\n")
    client = start_keyed(t, keys)
    plain = message(quote(t.send_media()), 1, 600_000)
    t.expect_refusal("auth_bad", wire.tagged(plain, 7, secret, ROUTER_IP))
    t.answer(tagged(plain, 7, secret))
    assert client.rate().bps == 600_000
    t.stop()
    keys.unlink()
    print("ok a key of this host alone", flush=True)


def check_open_source(t: Trial) -> None:
    """Who leaves its source address open has what its own sockets send, not what others do."""
    t.start("-i", "veth0", "--group", "nogroup")
    with acting_as(1001):
        client = Client(t.ipc)
    assert client.register(6, source="", to=ROUTER_IP6) == 0
    client.rate()
    raw = t.net.socket(t.net.router, socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
    believed = {}
    for seq, (uid, source) in enumerate(((1001, SENDER_IP6), (1002, OTHER_IP6)), start=1):
        sock = t.net.socket(t.net.sender, socket.AF_INET6, socket.SOCK_DGRAM)
        os.fchown(sock.fileno(), uid, -1)  # it is his from now on
        sock.bind((source, SPORT))
        for _ in range(20):  # not each is looked at
            payload = rtp(seq)
            sock.sendto(payload, (ROUTER_IP6, DPORT))
            time.sleep(0.02)
        raw.sendto(message6(source, payload, seq, 500_000 + seq), (source, 0))
        t.until(lambda n=seq: (s := t.stats())["refused_total"] + s["accepted"] == n,
                "the message")
        believed[uid] = t.stats()["accepted"]
        sock.close()
    assert believed == {1001: 1, 1002: 1}, believed
    stats = t.stats()
    assert stats["media_others"] >= 20 and stats["refused"]["quote_unknown"] == 1, stats
    t.stop()
    print("ok an open source address", flush=True)


def check_batches(t: Trial) -> None:
    """Of a batch of UDP segmentation offload every segment proves."""
    t.start("-i", "veth0")
    client = Client(t.ipc)
    assert client.register(1) == 0
    client.rate()
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
    # a jumbo packet is one; nothing of it proves twice
    subprocess.run(["ip", "-n", t.net.sender, "link", "set", "veth0", "mtu", "9000"], check=True)
    subprocess.run(["ip", "-n", t.net.router, "link", "set", "veth0", "mtu", "9000"], check=True)
    jumbo = rtp(200) + os.urandom(4000)
    t.media.sendto(jumbo, (ROUTER_IP, DPORT))
    assert t.sink.recv(9000) == jumbo
    t.answer(message(quote(jumbo), 20, 600_000))
    assert client.told().bps == 600_000
    t.until(lambda: t.stats()["media_packets"] == before + len(segments) + 1, "the jumbo packet")
    for name in (t.net.sender, t.net.router):
        subprocess.run(["ip", "-n", name, "link", "set", "veth0", "mtu", "1500"], check=True)
    t.stop()
    print("ok batches of segmentation offload", flush=True)


def check_sleep(t: Trial) -> None:
    """No advice outlives a sleep of the machine; what comes afterwards is believed as ever."""
    slept = t.log.with_name("slept")
    slept.write_bytes(bytes(8))
    slept.chmod(0o644)
    command = list(t.command)
    shim = Path(t.command[0]).parent / "tests" / "sleeper.so"
    t.command[:0] = ["env", f"LD_PRELOAD={shim}", f"PAQM_SLEPT={slept}"]
    t.start("-i", "veth0")
    assert t.daemon
    clocks = timer_clocks(str(t.daemon.pid))
    client = Client(t.ipc)
    assert client.register(1) == 0
    client.rate()
    t.answer(message(quote(t.send_media()), 1, 850_000.0, period=10_000))
    assert client.rate().bps == 850_000
    with slept.open("r+b") as f:
        f.write(struct.pack("=q", 3600))
    t.stats()  # wakes it
    client.sock.settimeout(10)  # the advice would hold for 30 s
    assert client.rate().cause == "expired"
    assert t.stats()["uptime_ms"] > 3_600_000
    assert clocks == {time.CLOCK_BOOTTIME}, clocks
    t.answer(message(quote(t.send_media()), 2, 700_000.0))
    record = struct.unpack(RATE_FORMAT, client.sock.recv(512))
    assert record[5] == 700_000
    age = time.monotonic() - record[8] / 1e9
    assert 0 <= age < PATIENCE, f"{age} s old by the clock of clients"
    client.sock.close()
    t.stop()
    t.command = command
    print("ok a machine that sleeps", flush=True)


def check_hangs(t: Trial) -> None:
    """A daemon that does not answer: paqmctl says so."""
    t.start("-i", "veth0")
    assert t.daemon
    with stopped(t.daemon.pid):
        runs = [
            subprocess.Popen([t.paqmctl, "--control", str(t.control), name],
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            for name in ("show", "watch")
        ]
        for run in runs:
            said = run.communicate(timeout=PATIENCE)[1]
            assert run.returncode == 1 and "control.sock: no answer for 10 s" in said, said
    t.stop()
    print("ok a daemon that hangs", flush=True)


def limit_files(pid: int, count: int) -> None:
    """Let a process of nobody have so many files; what it has open stays open."""
    subprocess.run(["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups",
                    "prlimit", "--pid", str(pid), f"--nofile={count}:"], check=True)


def check_starved(t: Trial) -> None:
    """Not even one file for a moment: no client is accepted, others are served, then all are."""
    t.start("-i", "veth0")
    assert t.daemon
    client = Client(t.ipc)
    assert client.register(1) == 0
    client.rate()
    with connect(t.control) as control:
        answers = control.makefile("rb")

        def failed() -> int:
            control.sendall(b'{"cmd": "stats"}\n')
            return int(json.loads(answers.readline())["stats"]["accept_failed"])

        assert failed() == 0
        begin = time.monotonic()
        limit_files(t.daemon.pid, 1)
        waiting = Client(t.ipc)
        t.until(lambda: failed() > 0, "a client that cannot be accepted")
        for _ in range(300):
            assert client.register(1) == 0
            assert client.rate().cause == "none"
        count, seconds = failed(), time.monotonic() - begin
        assert count <= seconds + 2, f"{count} attempts in {seconds:.1f} s"
    t.answer(message(quote(t.send_media()), 1, 850_000.0))
    assert client.rate().bps == 850_000
    t.until(lambda: "cannot accept clients" in t.log.read_text(), "the log")
    limit_files(t.daemon.pid, 256)
    assert waiting.register(2, source="", to=ROUTER_IP6) == 0
    assert waiting.rate().cause == "none"
    log = t.log.read_text()
    assert log.count("cannot accept clients") == log.count("accepted again") == 1, log
    client.sock.close()
    waiting.sock.close()
    t.stop()
    print("ok no file left for anybody", flush=True)


def check_opener(t: Trial) -> None:
    """While the opener hangs all else goes on; then it does what it was asked for meanwhile."""
    conf = t.log.with_name("paqmd.conf")
    conf.write_text("interface veth0\n")
    t.start("--config", str(conf))
    assert t.daemon
    (opener,) = children(t.daemon.pid)
    client, late = Client(t.ipc), Client(t.ipc)
    assert client.register(1) == 0
    client.rate()

    def set_up(*names: str) -> None:
        conf.write_text("".join(f"interface {name}\n" for name in names))
        assert reload(t) == ""

    with stopped(opener):
        set_up("veth0", "lo")
        late.sock.send(register(6, source="", to=ROUTER_IP6))
        late.sock.send(register(6))  # has been taken: it stays what it is
        t.until(lambda: len(t.ask("flows")["flows"]) == 2, "the second flow")
        t.answer(message(quote(t.send_media()), 1, 850_000.0))
        assert client.told().bps == 850_000
        # not a new flow, so nothing has to be waited for
        assert client.register(1, ceil=700_000) == 0
        assert client.told().bps == 700_000
        t.until(lambda: "opener has not answered" in t.log.read_text(), "the log")
        assert late.silent(), "registered before its packets can be seen"
        assert captured(t) == {"veth0": True, "lo": False}
    assert late.registered(6) == 0
    assert late.registered(6) == errno.EEXIST
    assert late.rate().cause == "none"
    t.until(lambda: captured(t)["lo"], "the new interface")
    with t.net.socket(t.net.sender, socket.AF_INET6, socket.SOCK_DGRAM) as sender:
        sender.bind((SENDER_IP6, SPORT))
        sender.sendto(rtp(1), (ROUTER_IP6, DPORT))
        t.until(lambda: t.ask("flows")["flows"][1]["packets"] == 1, "its packet to be seen")
    log = t.log.read_text()
    assert log.count("has not answered") == log.count("answers again") == 1, log

    # an interface that is not wanted any more when it comes, then one in its place
    for cookie, last in enumerate(("veth0", "any"), start=7):
        with stopped(opener):
            set_up("veth0", "lo")
            set_up(*{"veth0", last})
        # its answer comes after that about lo
        assert late.register(cookie, to=f"10.77.0.{cookie}") == 0
        late.rate()
        t.until(lambda: captured(t) == {"veth0": True, last: True}, last)  # noqa: B023
    t.stop()
    print("ok an opener that answers late", flush=True)


def check_manager(t: Trial) -> None:
    """A service manager hears of readiness, life and end; sockets it passes are used and kept."""
    run = t.log.parent
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(run / "notify"))
        manager.settimeout(PATIENCE)
        kinds = (socket.SOCK_STREAM, socket.SOCK_SEQPACKET)
        paths = [run / "activated.control", run / "activated.client"]
        held = [socket.socket(socket.AF_UNIX, kind) for kind in kinds]
        for sock, path in zip(held, paths, strict=True):
            sock.bind(str(path))
            sock.listen()
        control, t.control = t.control, paths[0]
        env = dict(os.environ, NOTIFY_SOCKET=str(run / "notify"), WATCHDOG_USEC="200000")
        env |= {"LISTEN_FDS": "2", "LISTEN_FDNAMES": "control:client"}
        first = [3, 4]

        def pass_sockets() -> None:
            for sock, fd in zip(held, first, strict=True):
                os.dup2(sock.fileno(), fd + 100)
            for fd in first:
                os.dup2(fd + 100, fd)
            os.close(103)
            os.close(104)

        inside = ["ip", "netns", "exec", t.net.sender]
        for attempt in range(2):
            with t.log.open("wb") as log:
                # as if the log went to the journal
                st = os.fstat(log.fileno())
                env["JOURNAL_STREAM"] = f"{st.st_dev}:{st.st_ino}"
                t.daemon = subprocess.Popen(
                    [*inside, *t.command, "-i", "veth0"], env=env, stderr=log,
                    preexec_fn=pass_sockets, close_fds=False,
                )
            # waits in the socket until the daemon takes it, at the second start as well
            client = Client(paths[1])
            assert client.register(1) == 0
            assert client.rate().cause == "none"
            assert manager.recv(100) == b"READY=1"
            for _ in range(3):
                assert manager.recv(100) == b"WATCHDOG=1"
            t.answer(message(quote(t.send_media()), attempt + 1, 850_000.0))
            assert client.rate().bps == 850_000
            t.daemon.send_signal(signal.SIGTERM)
            assert t.daemon.wait(PATIENCE) == 0
            last = manager.recv(100)
            while last == b"WATCHDOG=1":
                last = manager.recv(100)
            assert last == b"STOPPING=1", last
            assert all(path.exists() for path in paths), "sockets of the manager were removed"
            lines = t.log.read_text().splitlines()
            # make coverage: the counters of a process that may not write them
            lines = [line for line in lines if not line.startswith("profiling:")]
            assert lines and all(re.match(r"<[3-6]>(?!paqmd:)", line) for line in lines), lines
            client.sock.close()
        t.daemon, t.control = None, control
        for sock in held:
            sock.close()
    print("ok readiness, watchdog, socket activation", flush=True)


CHECKS: list[Callable[[Trial], None]] = [
    check_config, check_paqmctl, check_shape, check_silence, check_service_user, check_credential,
    check_reload, check_netlink, check_vlan, check_stacks, check_guest, check_early,
    check_container, check_why, check_manager, check_rude, check_shares, check_rights,
    check_host_key, check_open_source, check_batches,
    check_sleep, check_starved, check_opener, check_hangs,
]


# What others on the same host may try: a guest on its bridge, other users, a process of its own
# that was taken over.
LOCAL: list[Callable[[Trial], None]] = [
    check_silence, check_guest, check_netlink, check_rude, check_shares, check_rights,
    check_open_source, check_starved,
]

if __name__ == "__main__":
    sys.exit(run_checks("PAQMD PAQMCTL", LOCAL if "--local" in sys.argv else CHECKS))
