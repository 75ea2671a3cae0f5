#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What a conference server asks of paqmd: streams of one transport (BUNDLE), many viewers of
one socket (fan-out), and hundreds of flows that one router tells at once. Needs root.

Usage: server.py PAQMD PAQMCTL
"""

from __future__ import annotations

import socket
import sys
import time
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "feedback-daemon" / "tests"))
sys.path.insert(0, str(TOP / "feedback-daemon" / "wireshark"))

from rig import (  # noqa: E402
    DPORT,
    PATIENCE,
    ROUTER_IP,
    Client,
    Trial,
    message,
    quote,
    register,
    rtp,
    run_checks,
)

VIDEO, AUDIO = 0x11111111, 0x22222222
VIEWERS = 400
FIRST = 20_000  # their first port


def told(t: Trial, payload: bytes, seq: int, rate: int, dport: int = DPORT, **more: int) -> None:
    """A router's message about a packet to this port."""
    t.answer(message(quote(payload, dport=dport), seq, rate, ecf=None, **more))


def check_bundle(t: Trial) -> None:
    """One registration for all streams of a transport: packets of any of them prove a message."""
    t.start("-i", "veth0")
    client = t.sender(1, ssrc=0)
    for seq, ssrc in enumerate((VIDEO, AUDIO, VIDEO, AUDIO), start=1):
        told(t, t.send_media(ssrc), seq, 700_000 + seq)
        got = client.told()
        assert (got.bps, got.seq) == (700_000 + seq, seq), got
    # A second one would be told of the same rate, and both together send twice as much.
    other = Client(t.ipc)
    assert other.register(2, ssrc=AUDIO) == 17  # EEXIST
    # Of a registration with an SSRC only that stream counts: what others prove is not believed.
    client.sock.send(register(1, ssrc=VIDEO))
    assert client.registered(1) == 0
    t.expect_refusal("flow_ssrc", message(quote(t.send_media(AUDIO)), 9, 500_000))
    told(t, t.send_media(VIDEO), 10, 600_000)
    while (got := client.told()).seq != 10:
        pass
    assert got.bps == 600_000
    t.stop()
    print("ok: streams of one transport", flush=True)


def check_viewers(t: Trial) -> None:
    """Hundreds of flows of one socket, all told by one router within the same moment, again and
    again: none is refused, each has its own rate."""
    t.start("-i", "veth0")
    client = Client(t.ipc)
    for n in range(VIEWERS):
        client.sock.send(register(n, dport=FIRST + n, ssrc=0))
    answers = [client.sock.recv(512) for _ in range(2 * VIEWERS)]
    assert sum(a[5] == 2 and not any(a[16:20]) for a in answers) == VIEWERS, "some were refused"
    sinks = []
    for n in range(VIEWERS):
        sink = t.net.socket(t.net.router, socket.AF_INET, socket.SOCK_DGRAM)
        sink.bind((ROUTER_IP, FIRST + n))
        sinks.append(sink)
    for seq in (1, 2, 3):
        before = t.stats()["refused_total"]
        begin = time.monotonic()
        for n in range(VIEWERS):
            payload = rtp(100 * n + seq, VIDEO + n)
            t.media.sendto(payload, (ROUTER_IP, FIRST + n))
            told(t, payload, VIEWERS * seq + n, 500_000 + 1000 * seq + n, FIRST + n, period=5000)
        have: dict[int, int] = {}
        while len(have) < VIEWERS or any(bps // 1000 != 500 + seq for bps in have.values()):
            got = client.rate()
            assert got.cause == "erf", got
            have[got.cookie] = got.bps - got.cookie
            assert time.monotonic() - begin < PATIENCE, f"{len(have)} were told"
        assert set(have.values()) == {500_000 + 1000 * seq}
        assert t.stats()["refused_total"] == before, t.stats()["refused"]
    for sink in sinks:
        sink.close()
    client.sock.close()
    t.until(lambda: not t.ask("flows")["flows"], "the flows to be gone")
    t.stop()
    print(f"ok: {VIEWERS} flows of one router", flush=True)


if __name__ == "__main__":
    sys.exit(run_checks("PAQMD PAQMCTL", [check_bundle, check_viewers]))
