# SPDX-License-Identifier: GPL-2.0
"""Receivers of what blast.py sends, flows that follow, and TCP."""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import struct
import time
from typing import Any

from guest import Host, Task


class Listener:
    """What comes to some UDP ports while it is used in `with`, per port: packets, those out of
    order, those marked, the longest time that one was under way, us, and when the first came. Of
    the first port also of each packet when it came, us, and how long it had been under way.
    """

    def __init__(self, host: Host, *ports: int) -> None:
        self.ports = ports
        self.first = dict.fromkeys(ports, 0)
        self.ways: list[tuple[int, int]] = []
        self.forget()
        self.stop, stopped = socket.socketpair()
        self.selector = selectors.DefaultSelector()
        self.selector.register(stopped, selectors.EVENT_READ)
        for port in ports:
            sock = host.task(socket.socket, socket.AF_INET, socket.SOCK_DGRAM).wait()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
            sock.setsockopt(socket.IPPROTO_IP, 13, 1)  # IP_RECVTOS
            sock.bind(("", port))
            self.selector.register(sock, selectors.EVENT_READ, port)
        self.task = host.task(self._receive)

    def forget(self) -> None:
        """Counts from here on."""
        self.came, self.late, self.marked, self.most, self.last = (
            dict.fromkeys(self.ports, 0) for _ in range(5)
        )

    def _receive(self) -> None:
        while True:
            for key, _ in self.selector.select():
                if key.data is None:
                    return
                self._count(key.fileobj, key.data)

    def _count(self, sock: Any, port: int) -> None:
        data, extra, _, _ = sock.recvmsg(2048, 64)
        seq = struct.unpack_from("!H", data, 2)[0]
        now = time.monotonic()
        way = round((now - struct.unpack_from("!d", data, 12)[0]) * 1e6)
        self.most[port] = max(self.most[port], way)
        self.first[port] = self.first[port] or round(now * 1e6)
        if port == self.ports[0]:
            self.ways.append((round(now * 1e6), way))
        self.came[port] += 1
        self.late[port] += self.came[port] > 1 and (seq - self.last[port]) % 65536 > 32768
        self.marked[port] += any(e[2][0] & 3 == 3 for e in extra)
        self.last[port] = seq

    def __enter__(self) -> Listener:
        return self

    def __exit__(self, *error: object) -> None:
        time.sleep(1)  # what is under way may come
        self.stop.send(b".")
        self.task.wait()
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
        self.stop.close()


def _take(listener: socket.socket) -> None:
    peer, _ = listener.accept()
    with peer:
        while peer.recv(1 << 20):
            pass


def _give(to: str, port: int, seconds: float) -> None:
    end = time.monotonic() + seconds
    with socket.create_connection((to, port)) as sock:
        sock.settimeout(0.1)
        while time.monotonic() < end:
            with contextlib.suppress(TimeoutError):
                sock.send(bytes(1 << 17))


def transfer(source: Host, sink: Host, seconds: float, flows: int = 1) -> None:
    """TCP flows over the wire, as fast as they go."""
    with contextlib.ExitStack() as stack:
        for port in range(5201, 5201 + flows):
            listener = sink.task(socket.create_server, ("10.1.0.2", port)).wait()
            stack.enter_context(listener)
            stack.enter_context(sink.task(_take, listener))
            stack.enter_context(source.task(_give, "10.1.0.2", port, seconds))


def followers(host: Host, to: str, **how: object) -> Task:
    """Flows that do what the messages of routers say, see kernel/lab-tests/spec_traffic.c."""
    program = f"{os.environ['PAQM_BUILD']}/lab/spec_traffic"
    words = {"to": to, **how}
    return host.task(host.run, program, "send", *(w for k, v in words.items()
                                                  for w in (f"--{k}", v)))  # fmt: skip
