#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""A sender whose network has no IPv4: its host translates its own (CLAT, RFC 6877), and far away a
NAT64 back again. Between them the queue sees IPv6. Inside a lab guest; both translators are tayga.

Prints `ok NAME` or `not ok NAME: why`. The network, s -- n -- r -- v, is that of stream_lab.py, of
IPv6 alone. s has 192.0.0.1 on the device of its translator, r the queue; v is NAT64 and receiver.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import stream_lab
import trial
from stream_lab import Stream, believed, four_hosts, lost_packets, queue, stats
from trial import Program, check, inside, run, within

from paqm_lab import topology

PREFIX = "2001:db8:64::/96"  # a network's own; 64:ff9b::/96 would be for public addresses only
CLAT, POOL = "fd00:c::1", "192.168.255.0/24"
RECEIVER = "198.51.100.7"
HOST = f"""
tun-device clat
ipv4-addr 192.0.0.2
ipv6-addr fd00:c::2
prefix {PREFIX}
map 192.0.0.1 {CLAT}
"""
NETWORK = f"""
tun-device nat64
ipv4-addr 192.168.255.1
ipv6-addr fd00:3::64
prefix {PREFIX}
dynamic-pool {POOL}
"""
STRANGER = """
import os, socket, time
os.setuid(65534)
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
s.bind(("::", 7000))
print("bound", flush=True)
time.sleep(60)
"""


def translator(host: str, device: str, config: str) -> Program:
    """Its device is up, and the kernel hands on what is for others."""
    file = Path(f"/run/tmp/{device}.conf")
    file.write_text(config)
    run("sh", "-c", f"cd /run/tmp && ip netns exec {host} tayga -c {file} --mktun")
    inside(host, "ip", "link", "set", device, "up")
    for name in ("ipv4/ip_forward", "ipv6/conf/all/forwarding"):
        inside(host, "sh", "-c", f"echo 1 >/proc/sys/net/{name}")
    return Program(host, "tayga", "-c", file, "-d")


def prepare() -> None:
    topology.make(four_hosts(ipv6=True))
    stream_lab.streams.write_clip(stream_lab.CLIP)
    translators.append(translator("s", "clat", HOST))
    inside("s", "ip", "addr", "add", "192.0.0.1/32", "dev", "clat")
    inside("s", "ip", "route", "add", "default", "dev", "clat", "src", "192.0.0.1")
    inside("s", "ip", "route", "add", "fd00:c::/64", "dev", "clat")
    inside("n", "ip", "route", "add", "fd00:c::/64", "via", "fd00:1::2")
    inside("r", "ip", "route", "add", "fd00:c::/64", "via", "fd00:2::1")
    inside("n", "ip", "route", "add", PREFIX, "via", "fd00:2::2")
    inside("r", "ip", "route", "add", PREFIX, "via", "fd00:3::2")
    translators.append(translator("v", "nat64", NETWORK))
    inside("v", "ip", "route", "add", PREFIX, "dev", "nat64")
    inside("v", "ip", "route", "add", POOL, "dev", "nat64")
    inside("v", "ip", "addr", "add", f"{RECEIVER}/32", "dev", "lo")


def hears(name: str, build: Path, on: str, send: str = "") -> None:
    queue("bandwidth 1mbit feedback icmp")
    stream = Stream(build, 6, to=RECEIVER, on=on, send=send)
    time.sleep(4)
    said = stream.ask("stats")
    stream.finish()
    within(f"{name}: the router told", stats()["notices_sent"], 10, 60)
    believed(name, stream, said)
    check(f"{name}: nothing lost", not lost_packets(stream), lost_packets(stream))


def heard(build: Path) -> None:
    hears("uplink", build, "sn")
    hears("any", build, "any")
    hears("its address is named", build, "sn", "--bind 192.0.0.1")


def stranger(build: Path) -> None:
    """Another user's socket of IPv6 has the same port: its packets might look like the flow's."""
    other = Program("s", "python3", "-c", STRANGER, ready="bound")
    queue("bandwidth 1mbit feedback icmp")
    stream = Stream(build, 6, to=RECEIVER, send="--bind 0.0.0.0:7000")
    time.sleep(4)
    said = stream.ask("stats")
    stream.finish()
    other.kill()
    other.wait()
    check("a stranger's port: believes nothing", not said["accepted"] and said["media_others"],
          said)
    check("a stranger's port: says why", said["refused"]["flow_unknown"], said["refused"])


def finish() -> None:
    inside("r", "tc", "qdisc", "del", "dev", "rv", "root")
    for program in translators:
        program.kill()
        program.wait()


translators: list[Program] = []
GROUPS = {"heard": heard, "stranger": stranger}

if __name__ == "__main__":
    sys.exit(trial.run_groups(__doc__, GROUPS, prepare, finish))
