#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""paqm-jitsi with the real paqmd, and a bridge that knows of the channel what jitsi-videobridge
documents (doc/web-sockets.md, doc/allocation.md): what a router says is what it is told to assume.
The bridge itself does not run here. Needs root.

Usage: jitsi.py PAQMD PAQMCTL PAQM-JITSI
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "feedback-daemon" / "tests"))
sys.path.insert(0, str(TOP / "feedback-daemon" / "wireshark"))

import wire  # noqa: E402
from rig import (  # noqa: E402
    DPORT,
    PATIENCE,
    SENDER_IP,
    SPORT,
    Trial,
    quote,
    run_checks,
)

PROXY, BRIDGE = 9091, 9090
PASSWORD = "4hvp3jj7v4rrt6681oncqvmn2p"  # as in doc/rest-colibri2.md
PATH = f"/colibri-ws/default-id/4f9cb343985d4779/79f0273d?pwd={PASSWORD}"
GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455
MEMBERS = {"lastN", "selectedSources", "onStageSources", "defaultConstraints", "constraints",
           "assumedBandwidthBps"}  # of ReceiverVideoConstraints; the bridge takes no others


class Channel:
    """One end of a WebSocket (RFC 6455)."""

    def __init__(self, sock: socket.socket, masks: bool) -> None:
        self.sock, self.masks, self.path = sock, masks, ""
        self.file = sock.makefile("rb")

    def head(self) -> list[str]:
        """Lines up to the empty one."""
        lines = []
        while line := self.file.readline().decode().strip():
            lines.append(line)
        return lines

    def accept(self) -> None:
        """The server's part of the handshake."""
        lines = self.head()
        self.path = lines[0].split()[1]
        name = "sec-websocket-key:"
        key = next(line for line in lines if line.lower().startswith(name)).split()[1]
        answer = base64.b64encode(hashlib.sha1((key + GUID).encode()).digest()).decode()
        self.sock.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                          b"Connection: Upgrade\r\nSec-WebSocket-Accept: " + answer.encode()
                          + b"\r\n\r\n")

    def ask(self, path: str) -> None:
        """The client's part."""
        key = base64.b64encode(os.urandom(16)).decode()
        self.sock.sendall(f"GET {path} HTTP/1.1\r\nHost: {SENDER_IP}\r\nUpgrade: websocket\r\n"
                          f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
                          "Origin: https://example.org\r\n"
                          "Sec-WebSocket-Version: 13\r\n\r\n".encode())

    def status(self) -> str:
        """The answer to it."""
        return self.head()[0].split()[1]

    def send(self, text: str) -> None:
        """A message."""
        data, mask = text.encode(), os.urandom(4) if self.masks else b""
        size = bytes([len(data)]) if len(data) < 126 else b"\x7e" + struct.pack("!H", len(data))
        head = b"\x81" + bytes([size[0] | (0x80 if mask else 0)]) + size[1:] + mask
        if mask:
            data = bytes(byte ^ mask[i % 4] for i, byte in enumerate(data))
        self.sock.sendall(head + data)

    def hear(self) -> str | None:
        """The next message; None: the other side has gone."""
        while head := self.file.read(2):
            size = head[1] & 0x7F
            if size == 126:
                size = struct.unpack("!H", self.file.read(2))[0]
            mask = self.file.read(4) if head[1] & 0x80 else bytes(4)
            data = bytes(byte ^ mask[i % 4] for i, byte in enumerate(self.file.read(size)))
            if head[0] & 15 == 1:
                return data.decode()
            if head[0] & 15 == 8:
                return None
        return None

    def told(self) -> dict[str, Any]:
        """What the viewer wants to receive, as the bridge reads it: it is strict."""
        text = self.hear()
        assert text is not None, "the channel has ended"
        found: dict[str, Any] = json.loads(text)
        assert found.pop("colibriClass") == "ReceiverVideoConstraints", text
        assert set(found) <= MEMBERS, text
        return found


def binding(password: str) -> bytes:
    """A viewer's connectivity check (RFC 8489)."""
    name = b"local:remote"
    body = struct.pack("!HH", 6, len(name)) + name
    head = struct.pack("!HHI", 1, len(body) + 24, 0x2112A442) + os.urandom(12)
    signed = head + body
    signature = hmac.new(password.encode(), signed, hashlib.sha1).digest()
    whole = signed[:2] + struct.pack("!H", len(body) + 32) + signed[4:]
    whole += struct.pack("!HH", 8, 20) + signature
    return whole + struct.pack("!HHI", 0x8028, 4, zlib.crc32(whole) ^ 0x5354554E)


def connect(t: Trial) -> Channel:
    """A viewer's connection to the proxy."""
    sock = t.net.socket(t.net.router, socket.AF_INET, socket.SOCK_STREAM)
    sock.settimeout(PATIENCE)
    t.until(lambda: sock.connect_ex((SENDER_IP, PROXY)) == 0, "paqm-jitsi to answer")
    return Channel(sock, masks=True)


def join(t: Trial, server: socket.socket) -> tuple[Channel, Channel]:
    """A viewer and its channel at the bridge."""
    viewer = connect(t)
    viewer.ask(PATH)
    bridge = Channel(server.accept()[0], masks=False)
    bridge.sock.settimeout(PATIENCE)
    bridge.accept()
    assert bridge.path == PATH, bridge.path
    assert viewer.status() == "101"
    assert bridge.told() == {"assumedBandwidthBps": -1}
    return viewer, bridge


def flows(t: Trial) -> int:
    """How many paqmd knows."""
    return len(t.ask("flows")["flows"])


def advise(t: Trial, seq: int, bps: int) -> None:
    """A router's word about a packet of the bridge."""
    t.answer(wire.build(quote(t.send_media()), seq, bps, period=5000))


def check(t: Trial, program: str) -> None:
    """A viewer comes, is known by his checks, follows, leaves."""
    t.start("-i", "veth0")
    server = t.net.socket(t.net.sender, socket.AF_INET, socket.SOCK_STREAM)
    server.bind((SENDER_IP, BRIDGE))
    server.listen()
    server.settimeout(PATIENCE)
    process = subprocess.Popen([
        "ip", "netns", "exec", t.net.sender, program, "--listen", f"{SENDER_IP}:{PROXY}",
        "--bridge", f"ws://{SENDER_IP}:{BRIDGE}", "--port", str(SPORT), "--paqmd", str(t.ipc)])
    try:
        viewer, bridge = join(t, server)
        with t.net.socket(t.net.router, socket.AF_INET, socket.SOCK_DGRAM) as forger:
            forger.sendto(binding("another"), (SENDER_IP, SPORT))
        t.sink.sendto(binding(PASSWORD), (SENDER_IP, SPORT))
        t.until(lambda: flows(t) > 0, "the viewer to be known by his check")
        assert [one["flow"].rpartition(":")[2] for one in t.ask("flows")["flows"]] == [str(DPORT)]
        print("ok: known by the signature of his check", flush=True)
        advise(t, 1, 525_000)
        assert bridge.told() == {"assumedBandwidthBps": 500_000}
        advise(t, 2, 262_500)
        assert bridge.told() == {"assumedBandwidthBps": 250_000}
        print("ok: the bridge assumes what the router allows", flush=True)
        advise(t, 3, 525_000)
        rates = [250_000]
        while rates[-1] < 290_000:
            rates.append(bridge.told()["assumedBandwidthBps"])
            assert 1 < rates[-1] / rates[-2] < 1.081, rates
        print(f"ok: more, by steps: {rates}", flush=True)
        viewer.send('{"colibriClass":"ReceiverVideoConstraints","lastN":3,'
                    '"assumedBandwidthBps":100000,"constraints":{"a-v0":{"maxHeight":720}}}')
        found = [bridge.told()]
        while "lastN" not in found[-1]:
            found.append(bridge.told())
        assert found[-1] == {"lastN": 3, "constraints": {"a-v0": {"maxHeight": 720}}}
        assert bridge.told() == {"assumedBandwidthBps": 100_000}
        print("ok: the viewer's own messages pass, his wish counts", flush=True)
        stats = '{"colibriClass":"ConnectionStats","estimatedDownlinkBandwidth":50000}'
        bridge.send(stats)
        assert viewer.hear() == stats
        assert bridge.told() == {"assumedBandwidthBps": -1}
        print("ok: the bridge's own estimate is lower, and decides", flush=True)
        viewer.sock.shutdown(socket.SHUT_RDWR)
        assert bridge.told() == {"assumedBandwidthBps": 100_000}
        assert bridge.hear() is None
        t.until(lambda: flows(t) == 0, "the flow to be given up")
        print("ok: he leaves, and his wish stays", flush=True)
        viewer, bridge = join(t, server)
        server.close()
        for path, status in ((PATH, "502"), ("/elsewhere", "404")):
            other = connect(t)
            other.ask(path)
            assert other.status() == status
        print("ok: a bridge that is away, another address", flush=True)
        process.send_signal(signal.SIGHUP)
        assert bridge.told() == {"assumedBandwidthBps": -1}
        assert process.wait(PATIENCE) == 0
        print("ok: a terminal that is closed, the bridge's own estimate", flush=True)
    finally:
        process.kill()
        process.wait()
    t.stop()


if __name__ == "__main__":
    sys.exit(run_checks("PAQMD PAQMCTL PAQM-JITSI", [check]))
