#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""paqmestimator with the real paqmd: a pipeline to a udpsink, one of two webrtcbins, advice and its
bounds, what there is without advice, an encoder that is told. Needs root, GStreamer's Python
bindings and, for webrtcbin, gstreamer1.0-nice and gir1.2-gst-plugins-bad-1.0 (exit code 77,
"skipped", otherwise).

Usage: test_estimator.py PAQMD PAQMCTL PLUGIN
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rig import DPORT, PATIENCE, ROUTER_IP, Trial, message, quote, run_checks

PYTHON = "/usr/bin/python3"  # that has the bindings
APP = Path(__file__).with_name("estimator_app.py")
PORT = 5010  # that the pipeline sends from
START, LEAST, MOST = 400_000, 150_000, 2_000_000
RATES = f"estimated-bitrate={START} min-bitrate={LEAST} max-bitrate={MOST}"
PIPELINE = (
    "videotestsrc is-live=true pattern=ball ! video/x-raw,width=320,height=240,framerate=25/1 ! "
    "vp8enc name=enc deadline=1 cpu-used=8 end-usage=cbr ! rtpvp8pay mtu=1000 ! "
    f"paqmestimator name=estimator encoder=enc {RATES} ! "
    f"udpsink host={ROUTER_IP} port={DPORT} bind-port={PORT}"
)
# Its encoder is told nothing, and makes more than it should; the other coding marks no pictures. It
# must stay well below BALANCE_USES of MOST: beyond that what it makes is only slowly believed.
SURPLUS = PIPELINE.replace("pattern=ball", "pattern=snow").replace("encoder=enc ", "")
UNMARKED = re.sub("vp8enc.*rtpvp8pay", "x264enc name=enc tune=zerolatency speed-preset=ultrafast "
                  "bitrate=1200 ! mpegtsmux ! rtpmp2tpay", SURPLUS)  # fmt: skip


class App:
    """The application; what it says, as words."""

    def __init__(self, t: Trial, plugin: str, *words: str) -> None:
        environment = {**os.environ, "GST_PLUGIN_PATH": str(Path(plugin).parent),
                       "GST_REGISTRY": str(t.ipc.parents[2] / "registry"),
                       "PAQM_SOCKET": str(t.ipc)}  # fmt: skip
        run = [PYTHON, "-u", str(APP), *words]
        # ICE wants the interfaces of a whole host; paqmd's socket is the same everywhere
        if words[0] != "webrtc":
            run[:0] = ["ip", "netns", "exec", t.net.sender]
        self.process = subprocess.Popen(run, stdout=subprocess.PIPE, env=environment)
        assert self.process.stdout
        os.set_blocking(self.process.stdout.fileno(), False)
        self.said: list[list[str]] = []
        self.rest = ""

    def hear(self) -> None:
        """Read what it has said."""
        assert self.process.stdout
        self.rest += (self.process.stdout.read() or b"").decode()
        *lines, self.rest = self.rest.split("\n")
        self.said += [line.split() for line in lines]

    def values(self, key: str) -> list[int]:
        """All numbers said with this word."""
        self.hear()
        return [int(words[1]) for words in self.said if words[0] == key]

    def until(self, done: Callable[[], bool], what: str, busy: Callable[[], object]) -> None:
        """Wait for an event, doing something meanwhile."""
        end = time.monotonic() + PATIENCE
        while not done():
            assert time.monotonic() < end, f"waited in vain for {what}: {self.said[-5:]}"
            assert self.process.poll() in (None, 77), f"the application ended: {self.said[-5:]}"
            busy()
            time.sleep(0.02)


@contextlib.contextmanager
def app(t: Trial, plugin: str, *words: str) -> Iterator[App]:
    one = App(t, plugin, *words)
    try:
        yield one
    finally:
        one.process.kill()
        one.process.wait()


def newest(t: Trial) -> bytes:
    """A packet of the pipeline that has just arrived."""
    t.sink.setblocking(False)
    got = b""
    with contextlib.suppress(BlockingIOError):
        while True:
            got = t.sink.recv(2048)
    t.sink.settimeout(PATIENCE)
    return got or t.sink.recv(2048)


class Router:
    """That allows a rate, with a new number each time."""

    def __init__(self, t: Trial) -> None:
        self.t = t
        self.sequence = 0

    def tell(self, rate: float) -> None:
        self.sequence += 1
        self.t.answer(message(quote(newest(self.t), PORT), self.sequence, rate))


def ports_of(flow: dict[str, Any]) -> list[int]:
    """Of both ends of a flow, as paqmctl shows it."""
    return [int(port) for port in re.findall(r":(\d+)(?= > |$)", str(flow["flow"]))]


def check_pipeline(t: Trial, plugin: str) -> None:
    """Advice becomes the estimate, in its bounds; the encoder follows; then there is none."""
    t.start("-i", "veth0")
    with app(t, plugin, "pipeline", PIPELINE) as one:
        one.until(lambda: bool(t.ask("flows")["flows"]), "the flow", lambda: None)
        flow = t.ask("flows")["flows"][0]
        assert ports_of(flow) == [PORT, DPORT], flow
        assert flow["floor_bps"] > LEAST and MOST < flow["ceil_bps"] < 1.1 * MOST, flow
        router = Router(t)

        def follows(rate: float, least: float, most: float) -> None:
            one.until(lambda: least <= (one.values("estimate") or [0])[-1] <= most,
                      f"an estimate for {rate}", lambda: router.tell(rate))

        follows(900_000, 0.85 * 900_000, 0.99 * 900_000)  # less IP and UDP headers
        one.until(lambda: 0.6 * 900 < one.values("encoder")[-1] / 1000 < 900,
                  "the encoder to be told", lambda: router.tell(900_000))
        follows(500_000, 0.85 * 500_000, 0.99 * 500_000)
        follows(100, LEAST, LEAST)
        follows(90_000_000, MOST * 0.99, MOST)
        assert all(LEAST <= rate <= MOST for rate in one.values("estimate"))
        told = router.sequence
        # the router falls silent: what the application wrote counts again
        one.until(lambda: one.values("estimate")[-1] == START, "the fall-back", lambda: newest(t))
        assert router.sequence == told
    t.until(lambda: not t.ask("flows")["flows"], "the flow to be given up")
    t.stop()


def check_surplus(t: Trial, plugin: str) -> None:
    """An encoder that makes more than is advised is told less than that, as long as it does."""
    router = Router(t)
    for pipeline in (SURPLUS, UNMARKED):
        t.start("-i", "veth0")
        with app(t, plugin, "pipeline", pipeline) as one:
            one.until(lambda: bool(t.ask("flows")["flows"]), "the flow", lambda: None)
            one.until(lambda: (one.values("estimate") or [MOST])[-1] < 0.6 * 900_000,
                      "an estimate below the advice", lambda: router.tell(900_000))
            one.until(lambda: one.values("estimate")[-1] > 0.99 * MOST, "an estimate of all",
                      lambda: router.tell(90_000_000))  # now it makes less
        t.until(lambda: not t.ask("flows")["flows"], "the flow to be given up")
        t.stop()


def check_net(t: Trial, plugin: str) -> None:
    """A safety net goes up with the advice, until it has found a limit itself; packets pass it."""
    t.start("-i", "veth0")
    with app(t, plugin, "pipeline", PIPELINE.replace("encoder=enc", "safety-net=limit")) as one:
        one.until(lambda: bool(t.ask("flows")["flows"]), "the flow", lambda: None)
        router = Router(t)
        one.until(lambda: (one.values("estimate") or [0])[-1] > 0.85 * 900_000,
                  "an estimate as advised", lambda: router.tell(900_000))
        one.until(lambda: 500_000 < one.values("estimate")[-1] < 700_000,
                  "that of the safety net", lambda: router.tell(1_500_000))
        before = router.sequence
        one.until(lambda: router.sequence > before + 20, "advice of more",
                  lambda: router.tell(1_900_000))
        assert one.values("estimate")[-1] < 700_000, one.said[-5:]  # not all of it is made
    t.until(lambda: not t.ask("flows")["flows"], "the flow to be given up")
    t.stop()


def check_without(t: Trial, plugin: str) -> None:
    """No paqmd: the estimate is what was written, and packets pass."""
    with app(t, plugin, "pipeline", PIPELINE) as one:
        for _ in range(20):
            assert newest(t)[0] >> 6 == 2
        assert not one.values("estimate") or set(one.values("estimate")) == {START}


def check_wrong(t: Trial, plugin: str) -> None:
    """An encoder that is not there, and a safety net that is none, are told in words."""
    with app(t, plugin, "pipeline", PIPELINE.replace("encoder=enc", "encoder=nobody")) as one:
        assert one.process.wait(PATIENCE) == 1
        one.hear()
        assert "encoder=nobody:" in one.said[0], one.said


def check_webrtc(t: Trial, plugin: str) -> None:
    """In request-aux-sender of webrtcbin: the flow is that of the candidates that ICE selected."""
    t.start("-i", "veth0")
    with app(t, plugin, "webrtc", RATES) as one:
        one.until(lambda: one.process.poll() == 77 or bool(t.ask("flows")["flows"]),
                  "the flow of webrtcbin", lambda: None)
        if one.process.poll() == 77:
            print("skipped: no webrtcbin with ICE here")
        else:
            flow = t.ask("flows")["flows"][0]
            ends = ports_of(flow)
            assert len(set(ends)) == 2, flow
            ports = subprocess.run(
                ["ss", "-Hunap"], capture_output=True, text=True, check=True).stdout  # fmt: skip
            for port in ends:
                own = [line for line in ports.splitlines() if f":{port} " in line]
                assert any(f"pid={one.process.pid}," in line for line in own), (flow, own)
            one.until(lambda: bool(one.values("received")), "media", lambda: None)
    t.stop()


if __name__ == "__main__":
    have = [PYTHON, "-c", "import gi; gi.require_version('Gst', '1.0')"]
    if subprocess.run(have, capture_output=True, check=False).returncode:
        print("skipped: no Python bindings of GStreamer")
        sys.exit(77)
    sys.exit(run_checks("PAQMD PAQMCTL PLUGIN",
                        [check_pipeline, check_surplus, check_net, check_without, check_wrong,
                         check_webrtc]))
