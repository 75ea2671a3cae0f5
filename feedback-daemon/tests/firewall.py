#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What a stateful firewall of Linux makes of feedback messages, and that the rules in
docs/protocol.md let them through: the very commands of the text, between three network namespaces.
Also what ICMPv6 of either class does to the socket that has sent the quoted packet. Needs root
and nft (exit code 77, "skipped", otherwise); iptables is looked at where it is there.

Usage: firewall.py
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import re
import select
import shutil
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from rig import CLONE_NEWNET, PATIENCE, ip_header, rtp

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "wireshark"))
from decode import checksum  # noqa: E402

TEXT = (Path(__file__).resolve().parent.parent.parent / "docs" / "protocol.md").read_text()
MEDIA, FAR = 5004, 6004
# Of the text: routers are on the left, senders on the right.
ROUTER = {4: "192.0.2.2", 6: "2001:db8:1::2"}
SENDER = {4: "198.51.100.2", 6: "2001:db8:2::2"}
FAMILY = {4: socket.AF_INET, 6: socket.AF_INET6}
PROTO = {4: socket.IPPROTO_ICMP, 6: socket.IPPROTO_ICMPV6}
IPV6_RECVERR = 25
STRICT = """
table inet filter {
	counter invalid {}
	counter related {}
	chain forward { type filter hook forward priority 0;
		ct state invalid counter name invalid drop;
		ct state related counter name related; }
}
"""


def run(*command: str, stdin: str | None = None) -> str:
    return subprocess.run(command, input=stdin, text=True, check=True, capture_output=True).stdout


class Host:
    """A network namespace, held by a process that waits."""

    def __init__(self, device: str, addresses: dict[int, str]) -> None:
        self.keeper = subprocess.Popen(["unshare", "-n", "cat"], stdin=subprocess.PIPE)
        here, until = os.readlink("/proc/self/ns/net"), time.monotonic() + PATIENCE
        while os.readlink(f"/proc/{self.keeper.pid}/ns/net") == here:
            assert time.monotonic() < until, "no network namespace"
            time.sleep(0.01)
        pid = str(self.keeper.pid)
        run("ip", "link", "add", f"box-{device}", "type", "veth", "peer", "name", device,
            "netns", pid)  # fmt: skip
        run("ip", "link", "set", f"box-{device}", "up")
        inside = ("nsenter", "-t", pid, "-n", "ip")
        run(*inside, "link", "set", device, "up")
        for family, address in addresses.items():
            cut = address[:-1]
            length = "24" if family == 4 else "64"
            quiet = ["nodad"] if family == 6 else []
            run("ip", "addr", "add", f"{cut}1/{length}", "dev", f"box-{device}", *quiet)
            run(*inside, "addr", "add", f"{address}/{length}", "dev", device, *quiet)
            run(*inside, f"-{family}", "route", "add", "default", "via", f"{cut}1")

    def socket(self, *kind: int) -> socket.socket:
        """A socket in there."""
        libc = ctypes.CDLL(None, use_errno=True)
        with open("/proc/self/ns/net") as here, open(f"/proc/{self.keeper.pid}/ns/net") as there:
            if libc.setns(there.fileno(), CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")
            try:
                return socket.socket(*kind)
            finally:
                libc.setns(here.fileno(), CLONE_NEWNET)

    def end(self) -> None:
        assert self.keeper.stdin
        self.keeper.stdin.close()
        self.keeper.wait()


class Trial:
    """Sender and router with a box between that forwards."""

    def __init__(self) -> None:
        self.sender, self.router = Host("sender", SENDER), Host("router", ROUTER)
        for name in ("ipv4/ip_forward", "ipv6/conf/all/forwarding"):
            Path("/proc/sys/net", name).write_text("1")
        self.mouth: dict[int, socket.socket] = {}
        self.ear: dict[int, socket.socket] = {}
        self.media: dict[int, socket.socket] = {}
        self.far: dict[int, socket.socket] = {}
        self.sent: dict[int, bytes] = {}
        for family in (4, 6):
            self.mouth[family] = self.router.socket(FAMILY[family], socket.SOCK_RAW, PROTO[family])
            self.ear[family] = self.sender.socket(FAMILY[family], socket.SOCK_RAW, PROTO[family])
            self.ear[family].settimeout(PATIENCE)
            far = self.router.socket(FAMILY[family], socket.SOCK_DGRAM)
            far.bind((ROUTER[family], FAR))
            far.settimeout(PATIENCE)
            media = self.sender.socket(FAMILY[family], socket.SOCK_DGRAM)
            media.bind((SENDER[family], MEDIA))
            if family == 6:
                media.setsockopt(socket.IPPROTO_IPV6, IPV6_RECVERR, 1)
            media.connect((ROUTER[family], FAR))
            self.media[family], self.far[family] = media, far
            self.send(family)

    def end(self) -> None:
        self.sender.end()
        self.router.end()

    def send(self, family: int) -> None:
        """A media packet, to its receiver."""
        self.sent[family] = rtp(1)
        self.media[family].send(self.sent[family])
        assert self.far[family].recv(2048) == self.sent[family]

    def message(self, family: int, kind: int) -> None:
        """A message of this type about the media packet, as far as a box looks into it."""
        payload = self.sent[family]
        udp = struct.pack("!HHHH", MEDIA, FAR, 8 + len(payload), 0) + payload[:28]
        if family == 4:
            ip = ip_header(SENDER[4], ROUTER[4], 17, 28 + len(payload))
            words = (len(ip + udp) + 3) // 4 << 16
        else:
            ip = struct.pack("!IHBB", 6 << 28, 8 + len(payload), 17, 63)
            ip += socket.inet_pton(FAMILY[6], SENDER[6]) + socket.inet_pton(FAMILY[6], ROUTER[6])
            words = (len(ip + udp) + 7) // 8 << 24
        icmp = struct.pack("!BBHI", kind, 0, 0, words) + ip + udp + bytes(4 + 48)
        if family == 4:  # of ICMPv6 the kernel makes it
            icmp = icmp[:2] + struct.pack("!H", checksum(icmp)) + icmp[4:]
        self.mouth[family].sendto(icmp, (SENDER[family], 0))

    def arrives(self, family: int, kind: int) -> None:
        """It reaches the sender's host."""
        self.message(family, kind)
        while True:
            got = self.ear[family].recv(2048)
            if got[20 if family == 4 else 0] == kind:
                return

    def dropped(self, family: int, kind: int, count: Callable[[], int]) -> None:
        """It does not."""
        before, until = count(), time.monotonic() + PATIENCE
        self.message(family, kind)
        while count() == before:
            assert time.monotonic() < until, f"type {kind} was not dropped as invalid"
            time.sleep(0.01)


def counted(name: str) -> int:
    for item in json.loads(run("nft", "-j", "list", "counter", "inet", "filter", name))["nftables"]:
        if "counter" in item:
            return int(item["counter"]["packets"])
    raise SystemExit("nft shows no counter")


def tables_dropped(command: str) -> int:
    rule = run(command, "-L", "FORWARD", "-vnx").splitlines()[-1]
    return int(rule.split()[0])


def commands(start: str) -> list[list[str]]:
    """The commands of the text that begin like this."""
    found = [line.split() for line in re.findall(rf"^ *({start} .*)$", TEXT, re.MULTILINE)]
    assert found, f"protocol.md has no command {start}"
    return found


def check_nft(t: Trial) -> None:
    """Without a rule a message is invalid, an error of version 1 was related; then the text's."""
    run("nft", "-f", "-", stdin=STRICT)
    for family in (4, 6):
        t.send(family)
    t.dropped(4, 253, lambda: counted("invalid"))
    t.dropped(6, 200, lambda: counted("invalid"))
    before = counted("related")
    t.arrives(6, 100)
    t.arrives(4, 4)
    assert counted("related") == before + 2
    for command in commands("nft insert rule"):
        run(*command)
    t.arrives(4, 253)
    t.arrives(6, 200)
    run("nft", "flush", "ruleset")


def check_iptables(t: Trial) -> None:
    """The same with iptables."""
    for family, name, kind in ((4, "iptables", 253), (6, "ip6tables", 200)):
        if not shutil.which(name):
            print(f"left out: {name} is not there")
            continue
        run(name, "-A", "FORWARD", "-m", "conntrack", "--ctstate", "INVALID", "-j", "DROP")
        t.dropped(family, kind, lambda name=name: tables_dropped(name))  # type: ignore[misc]
        for command in commands(f"{name} -I"):
            run(*command)
        t.arrives(family, kind)
    run("nft", "flush", "ruleset")


def check_sockets(t: Trial) -> None:
    """An ICMPv6 error is told to the socket that sent the quoted packet, information is not."""
    media = t.media[6]
    media.setblocking(False)
    while True:  # what the firewall's checks have left
        try:
            media.recvmsg(1, 512, socket.MSG_ERRQUEUE)
        except BlockingIOError:
            break
    media.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    t.arrives(6, 200)
    t.arrives(6, 100)
    poll = select.poll()
    poll.register(media, 0)
    assert poll.poll(1000 * PATIENCE), "no error within reach of the socket"
    assert media.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.EPROTO
    _, notes, _, _ = media.recvmsg(2048, 512, socket.MSG_ERRQUEUE)
    kinds = [data[5] for level, _, data in notes if level == socket.IPPROTO_IPV6]
    assert kinds == [100], f"errors told are of type {kinds}"
    try:
        media.recvmsg(2048, 512, socket.MSG_ERRQUEUE)
        raise AssertionError("the socket has been told of type 200, too")
    except BlockingIOError:
        pass


def main() -> int:
    if os.geteuid() or not shutil.which("nft"):
        print("skipped: needs root, and nft")
        return 77
    if ctypes.CDLL(None).unshare(CLONE_NEWNET):
        print("skipped: no network namespaces here")
        return 77
    t = Trial()
    try:
        for check in (check_nft, check_iptables, check_sockets):
            check(t)
            print(f"ok {check.__name__.removeprefix('check_')}")
    finally:
        t.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
