#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""paqm-native-host with the real paqmd, in the browser's part: advice, expiry, what is refused and
why, a message that is too long, a later paqmd. Needs root (exit code 77, "skipped", otherwise).

Usage: host.py PAQMD PAQMCTL PAQM_NATIVE_HOST
"""

from __future__ import annotations

import json
import select
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from rig import (
    DPORT,
    PATIENCE,
    ROUTER_IP,
    SENDER_IP,
    SPORT,
    Trial,
    later_releases,
    message,
    quote,
    run_checks,
)


class Browser:
    """The browser's end of native messaging."""

    def __init__(self, t: Trial, program: str, path: Path | None = None) -> None:
        where = f"PAQM_SOCKET={path or t.ipc}"
        words = ["ip", "netns", "exec", t.net.sender, "env", where, program]
        self.host = subprocess.Popen(
            [*words, "chrome-extension://x/"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            bufsize=0)  # else select() does not know what has been read already

    def write(self, data: bytes) -> None:
        assert self.host.stdin
        self.host.stdin.write(data)
        self.host.stdin.flush()

    def say(self, **message: Any) -> None:
        text = json.dumps(message).encode()
        self.write(struct.pack("=I", len(text)) + text)

    def hear(self, event: str, patience: float = PATIENCE) -> dict[str, Any]:
        """The next message of that kind; what paqmd's connection does may come between."""
        assert self.host.stdout
        while True:
            assert select.select([self.host.stdout], [], [], patience)[0], f"no {event}"
            (length,) = struct.unpack("=I", self.host.stdout.read(4))
            told: dict[str, Any] = json.loads(self.host.stdout.read(length))
            if told["event"] == event:
                return told
            assert told["event"] in ("hello", "paqmd", "advice"), told

    def add(self, flow: int, **other: Any) -> None:
        tuple_ = {"source_port": SPORT, "destination": ROUTER_IP, "destination_port": DPORT}
        self.say(op="add", flow=flow, **(tuple_ | other))

    def refused(self, flow: int, reason: str) -> dict[str, Any]:
        told = self.hear("refused")
        assert (told["flow"], told["reason"]) == (flow, reason) and told["text"], told
        return told

    def end(self) -> int:
        assert self.host.stdin and self.host.stdout
        self.host.stdin.close()
        status = self.host.wait(PATIENCE)
        self.host.stdout.close()
        return status


def check_advice(t: Trial, program: str) -> None:
    """From a daemon that comes late to one that is gone."""
    browser = Browser(t, program)
    hello = browser.hear("hello")
    assert hello["protocol"] == 1 and hello["flows"] == 64 and hello["version"]
    assert not browser.hear("paqmd")["connected"]
    browser.add(1, source=SENDER_IP)
    t.start("-i", "veth0")
    assert browser.hear("paqmd")["connected"]
    assert browser.hear("advice")["cause"] == "none"
    t.answer(message(quote(t.send_media()), 1, 850_000.0))
    told = browser.hear("advice")
    assert (told["flow"], told["rate_bps"], told["cause"]) == (1, 850_000, "erf"), told
    assert told["router"] == ROUTER_IP and told["period_ms"] == 500 and told["routers"] == 1
    assert told["policed"] is False and told["overload"] is False
    browser.say(op="sent", flow=1, bps=777_000)
    t.until(lambda: (t.ask("flows")["flows"][0]["status"] or {}).get("wire_bps") == 777_000,
            "what was sent to be shown")
    told = browser.hear("advice")
    assert (told["rate_bps"], told["cause"]) == (0, "expired"), told
    print("ok: advice and its end", flush=True)
    browser.say(op="remove", flow=1)
    t.until(lambda: not t.ask("flows")["flows"], "the flow to be gone")
    assert browser.end() == 0
    t.stop()


def check_refusals(t: Trial, program: str) -> None:
    """What a hostile page can try."""
    t.start("-i", "veth0")
    browser = Browser(t, program)
    browser.hear("hello")
    browser.add(1, source="10.77.0.99")
    browser.refused(1, "source")  # of another host
    browser.add(1, source_port=SPORT + 1)
    browser.refused(1, "source_port")  # nobody's socket
    browser.add(1, destination="not an address")
    browser.refused(1, "destination")
    browser.add(1, destination="2001:db8::1", source=SENDER_IP)
    browser.refused(1, "source")
    browser.write(struct.pack("=I", 3) + b"{]x")
    browser.refused(0, "json")
    browser.write(struct.pack("=I", 0))
    browser.refused(0, "json")
    browser.say(op="sent", flow=9, bps=1)
    browser.refused(9, "flow")
    browser.add(1)
    browser.hear("advice")
    browser.add(1)
    browser.refused(1, "flow")
    browser.add(2)
    assert browser.refused(2, "taken")["kept"]  # the same packets: asked for again later
    for flow in range(3, 65):
        browser.add(flow, destination_port=DPORT + flow)
    browser.add(65)
    assert "64" in browser.refused(65, "full")["text"]
    t.until(lambda: len(t.ask("flows")["flows"]) == 63, "all flows that may be")
    print("ok: refusals with their reasons", flush=True)
    # in pieces, and two at once
    text = json.dumps({"op": "sent", "flow": 70, "bps": 1}).encode()
    frame = struct.pack("=I", len(text)) + text
    for piece in (frame[:2], frame[2:9], frame[9:] + frame):
        browser.write(piece)
        time.sleep(0.02)
    browser.refused(70, "flow")
    browser.refused(70, "flow")
    browser.write(struct.pack("=I", (1 << 20) + 1))
    browser.refused(0, "length")
    assert browser.end() == 1
    t.until(lambda: not t.ask("flows")["flows"], "its flows to be gone")
    print("ok: a message that is too long ends it", flush=True)
    t.stop()


def check_later(t: Trial, program: str) -> None:
    """A paqmd of a later release gives reasons that are not known here: the rate counts."""
    t.start("-i", "veth0")
    with later_releases(t.ipc, 200) as between:
        browser = Browser(t, program, between)
        browser.add(1)
        assert browser.hear("advice")["cause"] == "none"
        t.answer(message(quote(t.send_media()), 1, 850_000.0))
        told = browser.hear("advice")
        assert (told["rate_bps"], told["cause"]) == (850_000, "other"), told
        assert browser.end() == 0
    print("ok: a cause of a later release", flush=True)
    t.stop()


if __name__ == "__main__":
    sys.exit(run_checks("PAQMD PAQMCTL PAQM_NATIVE_HOST",
                        [check_advice, check_refusals, check_later]))
