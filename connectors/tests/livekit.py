#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""paqm-livekit, which is LiveKit's server, with the real paqmd, a publisher of three layers and
viewers: each is sent the layer that fits what a router says about his packets, the others stay;
viewers leave, paqmd and the server are restarted. Needs root. It judges by rates, so check.sh runs
it in the lab's guest, in virtual time.

Usage: livekit.py PAQMD PAQMCTL PROGRAMS LAYERS

PROGRAMS: directory of paqm-livekit and paqm-sfu-load; LAYERS: directory with the layers.
"""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "feedback-daemon" / "tests"))
sys.path.insert(0, str(TOP / "feedback-daemon" / "wireshark"))

import wire  # noqa: E402
from rig import PATIENCE, SENDER_IP, Trial, run_checks  # noqa: E402

LAYERS = {"l1": 150, "l3": 310, "l5": 650}  # kbit/s of paqm_lab/sfu_layers.py
PERIOD = 0.5  # s, the router's
LIKE = 0.25  # part by which a second of a layer may differ from its rate
HTTP, MEDIA = 7880, 7882
KEY = "key:0123456789abcdef0123456789abcdef"

CONFIG = Path(__file__).with_name("livekit.yaml").read_text()


class Viewers:
    """A process of viewers; what each gets, second by second."""

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE)
        self.kbit: dict[int, float] = {}
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            told = json.loads(line)
            if "second" in told:
                self.kbit[told["viewer"]] = told["kbit"]

    def end(self) -> None:
        """They leave without a word, as when a laptop is shut."""
        self.process.kill()
        self.process.wait()


class Room:
    """The server, a publisher and viewers."""

    def __init__(self, t: Trial, programs: str, layers: str, home: Path) -> None:
        self.t, self.programs, self.layers, self.home = t, programs, layers, home
        self.started: list[subprocess.Popen[bytes]] = []
        self.seq, self.told = 0, 0.0
        self.advice: dict[int, int] = {}  # what the router goes on saying, by port
        self.log = home / "events"

    def configure(self, control: str = "true") -> Path:
        """LiveKit's configuration."""
        key, secret = KEY.split(":")
        path = self.home / f"livekit-{control}.yaml"
        path.write_text(CONFIG.format(http=HTTP, media=MEDIA, ip=SENDER_IP, key=key,
                                      secret=secret, control=control, own="false"))
        return path

    def serve(self) -> subprocess.Popen[bytes]:
        """Start the server, until it answers."""
        server = subprocess.Popen([
            "ip", "netns", "exec", self.t.net.sender, f"{self.programs}/paqm-livekit",
            "--config", str(self.configure()), "--paqmd", str(self.t.ipc),
            "--paqm-log", str(self.log)])
        self.started.append(server)

        def answers() -> bool:
            assert server.poll() is None, "LiveKit has ended"
            with self.t.net.socket(self.t.net.router, socket.AF_INET, socket.SOCK_STREAM) as one:
                return one.connect_ex((SENDER_IP, HTTP)) == 0

        self.t.until(answers, "LiveKit to answer")
        return server

    def load(self, *words: str) -> list[str]:
        """A command of the load."""
        return ["ip", "netns", "exec", self.t.net.router, f"{self.programs}/paqm-sfu-load",
                words[0], "--livekit", KEY, "--server", f"{SENDER_IP}:{HTTP}", "--until", "600",
                *words[1:]]

    def publish(self) -> subprocess.Popen[bytes]:
        """Start the publisher."""
        one = subprocess.Popen(self.load("publish", "--layers", self.layers, "--pick",
                                         ",".join(LAYERS)))
        self.started.append(one)
        return one

    def view(self, name: str, count: int = 1) -> Viewers:
        """Start viewers."""
        some = Viewers(self.load("view", "--tell", "--count", str(count), "--name", name))
        self.started.append(some.process)
        return some

    def events(self) -> list[dict[str, Any]]:
        """What LiveKit was told."""
        whole = self.log.read_text().rpartition("\n")[0]
        return [json.loads(line) for line in whole.splitlines()]

    def flows(self, count: int) -> list[int]:
        """The viewers' ports, once paqmd knows so many."""
        end = time.monotonic() + 2 * PATIENCE  # LiveKit waits 20 s for one who has vanished
        while True:
            found = [int(one["flow"].rpartition(":")[2]) for one in self.t.ask("flows")["flows"]]
            if len(found) == count:
                return found
            assert time.monotonic() < end, f"waited in vain for {count} flows: {found}"
            time.sleep(0.5)  # each is a program: that is what a guest takes long for

    def advise(self, port: int, bps: int) -> None:
        """From now on the router says so of packets to this port; 0: nothing any more."""
        self.advice = {port: bps} if bps else {}
        self.told = 0
        self.remind()

    def remind(self) -> None:
        """What a router does again and again."""
        if time.monotonic() < self.told + PERIOD:
            return
        for port, bps in self.advice.items():
            self.seq += 1
            quoted = wire.quoted(self.t.packet_to(port))
            self.t.answer(wire.build(quoted, self.seq, bps, period=int(1000 * PERIOD)))
        self.told = time.monotonic()

    def gets(self, some: Viewers, layer: str, seconds: int = 2) -> None:
        """Until a viewer is sent this layer for so many seconds together."""
        want, told = LAYERS[layer], []
        end, alike = time.monotonic() + PATIENCE, 0
        while time.monotonic() < end:
            assert some.process.poll() is None, "the viewers have ended"
            self.remind()
            got = some.kbit.pop(0, None)
            if got is None:
                time.sleep(0.05)
                continue
            told.append(got)
            alike = alike + 1 if abs(got / want - 1) < LIKE else 0
            if alike == seconds:
                return
        raise AssertionError(f"expected {want} kbit/s, the viewer got {told}")

    def stop(self) -> None:
        """End all."""
        for one in reversed(self.started):
            one.kill()
            one.wait()


@contextmanager
def room(t: Trial, programs: str, layers: str) -> Iterator[Room]:
    """A room that ends with the check."""
    with tempfile.TemporaryDirectory() as name:
        made = Room(t, programs, layers, Path(name))
        try:
            yield made
        finally:
            made.stop()


def check_one_and_another(t: Trial, programs: str, layers: str) -> None:
    """Each viewer by himself: no advice, less, more, none."""
    t.start("-i", "veth0")
    with room(t, programs, layers) as r:
        r.serve()
        r.publish()
        one = r.view("one")
        port = r.flows(1)[0]
        r.gets(one, "l5")
        print("ok: without advice, what LiveKit likes best", flush=True)
        other = r.view("other")
        r.flows(2)
        r.gets(other, "l5")
        r.advise(port, 420_000)
        r.gets(one, "l3")
        r.gets(other, "l5")
        print("ok: less for one, the other stays", flush=True)
        r.advise(port, 250_000)
        r.gets(one, "l1")
        begin = len(r.events())
        r.advise(port, 2_000_000)
        r.gets(one, "l5")
        rise = [event for event in r.events()[begin:] if event["viewer"] == "one0"]
        steps = [event["capacity"] for event in rise]
        assert all(event["advice"] for event in rise), f"not by advice: {rise}"
        assert any(capacity < 640_000 for capacity in steps), f"it rose in one step: {steps}"
        print(f"ok: more, by steps: {steps}", flush=True)
        r.advise(port, 250_000)
        r.gets(one, "l1")
        r.advise(port, 0)
        t.until(lambda: r.events()[-1]["why"] == "none", "the advice to end")
        assert r.events()[-1]["capacity"] == 0
        r.gets(one, "l5")
        print("ok: the router falls silent, and LiveKit goes by its own estimate", flush=True)
        other.end()
        assert r.flows(1) == [port]
        print("ok: a viewer leaves", flush=True)
    t.stop()


def check_restarts(t: Trial, programs: str, layers: str) -> None:
    """paqmd and the server end and come again."""
    t.start("-i", "veth0")
    with room(t, programs, layers) as r:
        server = r.serve()
        publisher = r.publish()
        one = r.view("one")
        port = r.flows(1)[0]
        r.advise(port, 420_000)
        r.gets(one, "l3")
        t.stop()
        t.start("-i", "veth0")
        assert r.flows(1) == [port], "it is registered again"
        r.advise(port, 250_000)
        r.gets(one, "l1")
        print("ok: paqmd was restarted", flush=True)
        r.advise(port, 0)
        server.kill()
        server.wait()
        for process in (publisher, one.process):
            assert process.wait(PATIENCE) != 0, "it has not noticed"
        r.flows(0)
        r.serve()
        r.publish()
        one = r.view("one")
        r.advise(r.flows(1)[0], 420_000)
        r.gets(one, "l3")
        print("ok: the server was restarted", flush=True)
        r.advise(port, 0)
        assert t.daemon
        t.daemon.send_signal(signal.SIGKILL)
        t.daemon.wait()
        t.daemon = None
        r.gets(one, "l5")
        print("ok: without paqmd, LiveKit goes by its own estimate", flush=True)


def check_refusals(t: Trial, programs: str, layers: str) -> None:
    """What cannot work is said at once."""
    with room(t, programs, layers) as r:
        for words, said in (
            (["--config", str(r.configure("false"))], "congestion_control"),
            (["--config", str(r.home / "none.yaml")], "none.yaml"),
            (["--config", str(r.configure()), "--paqm-start", "200000000"], "start"),
            (["--config", str(r.configure()), "--paqmd", "/" + "x" * 200], "paqmd's socket"),
            (["--config", str(r.configure()), "surplus"], "surplus"),
        ):
            done = subprocess.run(
                ["ip", "netns", "exec", t.net.sender, f"{programs}/paqm-livekit", *words],
                capture_output=True, text=True, timeout=4 * PATIENCE, check=False)
            assert done.returncode == 1 and said in done.stderr, done
    print("ok: refusals", flush=True)


if __name__ == "__main__":
    if not Path(sys.argv[3] if len(sys.argv) > 3 else "/none", "paqm-livekit").exists():
        print("skipped: no paqm-livekit here; make connectors builds it")
        sys.exit(77)
    sys.exit(run_checks("PAQMD PAQMCTL PROGRAMS LAYERS",
                        [check_refusals, check_one_and_another, check_restarts]))
