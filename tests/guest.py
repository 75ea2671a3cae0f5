# SPDX-License-Identifier: GPL-2.0
"""What tests do in a guest: modules, hosts (namespaces), tasks in them, a wire with a queue."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import subprocess
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import sleep
from types import SimpleNamespace
from typing import Any

from blast import blast
from paqm_lab.topology import CommandFailed, Network, inside, make, remove, run, set_neighbours

TOP = Path(__file__).resolve().parents[1]
TC_TESTS = TOP / "kernel" / "tc-tests"
LEAKS = Path("/sys/kernel/debug/kmemleak")
MODULES = ("paqm_feedback", "sch_paqm", "sch_dcbt", "sch_rlqos")
NEWNET = 0x40000000  # CLONE_NEWNET
FRAME = (42, 1514)  # least and most bytes of one: UDP without payload, Ethernet without offloads
libc = ctypes.CDLL(None, use_errno=True)


def load() -> None:
    for module in MODULES:
        run("insmod", f"{os.environ['PAQM_KO_DIR']}/{module}.ko")


def unload() -> None:
    run("rmmod", *reversed(MODULES))


def leaks() -> int | None:
    """Reports of kmemleak, where the kernel has it; after the last use."""
    if not LEAKS.exists():
        return None
    for pause in (6, 1):
        sleep(pause)
        LEAKS.write_text("scan")
    text = LEAKS.read_text()
    print("".join(f"# {line}\n" for line in text.splitlines()[:40]), end="")
    return text.count("unreferenced")


class Task(threading.Thread):
    """A function that runs beside the test in a host's namespace. It is waited for at the end of
    `with`, or by wait(), which returns what it returned and raises what it raised.
    """

    def __init__(self, host: str, function: Callable[..., Any], *args: Any, **named: Any) -> None:
        super().__init__(daemon=True)
        self.host, self.work = host, partial(function, *args, **named)
        self.result: Any = None
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            with open(f"/run/netns/{self.host}") as space:
                if libc.setns(space.fileno(), NEWNET):
                    raise OSError(ctypes.get_errno(), f"namespace {self.host}")
            self.result = self.work()
        except BaseException as error:  # raised again by who waits
            self.error = error

    def wait(self) -> Any:
        self.join()
        if self.error:
            raise self.error
        return self.result

    def __enter__(self) -> Task:
        return self

    def __exit__(self, *error: object) -> None:
        self.wait()


@contextlib.contextmanager
def together(*tasks: Task) -> Iterator[None]:
    """Waits in the end for all."""
    with contextlib.ExitStack() as stack:
        for task in tasks:
            stack.enter_context(task)
        yield


@contextlib.contextmanager
def made(net: Network) -> Iterator[None]:
    """A network, while it is used."""
    try:
        make(net)
        yield
    finally:
        remove(net)


class Host:
    """A namespace, with the tools that look into it and change it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def ip(self, words: str) -> str:
        return run("ip", "-n", self.name, *words.split())

    def tc(self, words: str) -> str:
        return run("tc", "-n", self.name, *words.split())

    def run(self, *words: object) -> str:
        return inside(self.name, *map(str, words))

    def task(self, function: Callable[..., Any], *args: Any, **named: Any) -> Task:
        return Task(self.name, function, *args, **named)

    def sysctl(self, **settings: int) -> None:
        """Sets values of net, the dots of which are double underscores here."""
        for name, value in settings.items():
            path = Path("/proc/sys/net") / name.replace("__", "/")
            self.task(path.write_text, f"{value}\n").wait()

    def qdiscs(self, device: str) -> list[Any]:
        """All qdiscs of a device, with their statistics as attributes."""
        text = self.tc(f"-s -j qdisc show dev {device}")
        # iproute2 6.1 prints the options of hfsc as plain text
        text = re.sub(r"\{default [0-9a-fx]* \}", "{}", text)
        return list(json.loads(text, object_hook=lambda pairs: SimpleNamespace(**pairs)))

    def paqm(self, device: str, handle: str = "", kind: str = "paqm") -> Any:
        """The first paqm of a device, or that with a handle; or of another kind."""
        return next(q for q in self.qdiscs(device) if q.kind == kind and handle in ("", q.handle))

    def packets(self, device: str, way: str) -> int:
        """What a device has counted, `rx` or `tx`."""
        shown = json.loads(self.ip(f"-s -j link show dev {device}"))
        return int(shown[0]["stats64"][way]["packets"])


class Wire(Host):
    """Hosts a and b, a0 10.1.0.1 -- b0 10.1.0.2, with a queue at a0; this is a.

    No offloads, no IPv6, neighbours that nobody asks for: nothing crosses the wire but what a
    test sends.
    """

    def __init__(self) -> None:
        super().__init__("a")
        self.b = Host("b")
        self.net = Network()
        for name in "ab":
            self.net.host(name)
        self.link = self.net.link("a", "b", devices=("a0", "b0"))
        make(self.net)

    def remove(self) -> None:
        self.clear()
        remove(self.net)

    def clear(self) -> None:
        with contextlib.suppress(CommandFailed):  # there is none
            self.tc("qdisc del dev a0 root")

    def queue(self, words: str) -> None:
        """A new queue as a0's root, 1:."""
        self.clear()
        self.tc(f"qdisc add dev a0 root handle 1: {words}")

    def down(self) -> None:
        self.ip("link set a0 down")

    def up(self) -> None:
        """The device again, and the neighbour, which it forgets when it goes down."""
        self.ip("link set a0 up")
        set_neighbours(self.link, "a")

    @property
    def stats(self) -> Any:
        return self.paqm("a0")

    def left(self) -> int:
        """Packets and bytes that wait anywhere."""
        return sum(q.qlen + q.backlog for q in self.qdiscs("a0"))

    def conserved(self) -> bool:
        """Everything that arrived was sent, dropped or is queued. Drops are counted in packets, so
        the bytes that are neither sent nor queued are those of as many frames, of any length.
        """
        now = self.stats
        whole = dict.fromkeys(("packets", "bytes", "backlog", "qlen"), 0)
        whole["drops"] = now.filter_drop_packets
        odd = []
        for name, part in (("media", now.media), ("elastic", now.elastic)):
            drops = part.drop_tail_packets + part.drop_inner_packets + part.drop_strike_packets
            if name == "media":  # in the queues of flows that send beyond their rate
                drops += now.over_drop_packets + now.over_full_packets
            lost = part.arrived_bytes - part.sent_bytes - part.backlog_bytes
            if not FRAME[0] * drops <= lost <= FRAME[1] * drops:
                odd.append(f"{name}: {lost} bytes are missing, {drops} packets were dropped")
            for key, value in (("packets", part.sent_packets), ("bytes", part.sent_bytes),
                               ("backlog", part.backlog_bytes), ("drops", drops),
                               ("qlen", part.backlog_packets)):  # fmt: skip
                whole[key] += value
        odd += [f"{key}: {getattr(now, key)}, of both classes {value}"
                for key, value in whole.items() if getattr(now, key) != value]  # fmt: skip
        if now.over_backlog_bytes > now.media.backlog_bytes:
            odd.append(f"{now.over_backlog_bytes} bytes of media's {now.media.backlog_bytes} wait")
        print("".join(f"# {line}\n" for line in odd), end="")
        return not odd

    def send(self, kind: str, **how: Any) -> Task:
        """Traffic from a to b, see blast.py."""
        return self.task(blast, "10.1.0.2", kind, **how)

    def offloads(self, how: str) -> None:
        self.run("ethtool", "-K", "a0", *(w for o in ("tx", "sg", "tso", "gso") for w in (o, how)))

    def parent(self, name: str, rate: str = "5mbit", more: str = "") -> None:
        """A parent for a queue at 1:1; @more of htb's and hfsc's class. `tbf-NAME`: below tbf."""
        above, _, name = name.rpartition("-")
        if above:
            self.tc(f"qdisc add dev a0 root handle 2: tbf rate {rate} burst 1600 limit 100000")
        rates = {"htb": f"rate {rate} {more}", "hfsc": f"sc rate {rate} ul rate {rate}"}
        options = {
            "prio": "bands 3 priomap" + 16 * " 0", "ets": "bands 3 priomap" + 16 * " 0",
            "htb": "default 1", "hfsc": "default 1",
            "red": "limit 1mb min 100kb max 300kb avpkt 1000 burst 200 bandwidth 10mbit",
            "tbf": f"rate {rate} burst 3000 limit 100000", "netem": "delay 3ms",
        }
        place = "parent 2:1" if above else "root"
        self.tc(f"qdisc add dev a0 {place} handle 1: {name} {options.get(name, '')}")
        if name in ("drr", "qfq", "htb", "hfsc"):
            self.tc(f"class add dev a0 parent 1: classid 1:1 {name} {rates.get(name, '')}")
        if name in ("drr", "qfq"):
            self.tc("filter add dev a0 parent 1: protocol all prio 1 matchall classid 1:1")


def qfq_holds() -> bool:
    """Whether this kernel's qfq takes a leaf that holds packets back."""
    return subprocess.run([TC_TESTS / "qfq-holds.sh"]).returncode == 0
