# SPDX-License-Identifier: GPL-2.0
"""Receivers of what blast.py sends, and TCP."""

from __future__ import annotations

import contextlib
import socket
import time

from guest import Host


def _take(listener: socket.socket) -> None:
    peer, _ = listener.accept()
    with peer:
        while peer.recv(1 << 20):
            pass


def _give(to: str, seconds: float) -> None:
    end = time.monotonic() + seconds
    with socket.create_connection((to, 5201)) as sock:
        sock.settimeout(0.1)
        while time.monotonic() < end:
            with contextlib.suppress(TimeoutError):
                sock.send(bytes(1 << 17))


def transfer(source: Host, sink: Host, seconds: float) -> None:
    """One TCP flow over the wire, as fast as it goes."""
    listener = sink.task(socket.create_server, ("10.1.0.2", 5201)).wait()
    with listener, sink.task(_take, listener), source.task(_give, "10.1.0.2", seconds):
        pass
