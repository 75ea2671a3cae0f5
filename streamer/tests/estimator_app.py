# SPDX-License-Identifier: GPL-2.0
"""An application with paqmestimator, for test_estimator.py: says `estimate RATE` for each change,
and `encoder RATE` for what the encoder was told.

    estimator_app.py pipeline DESCRIPTION   elements called estimator and enc; it may name `limit`
    estimator_app.py webrtc PROPERTIES      two webrtcbins that send to each other
"""

import sys
from typing import Any

import gi

gi.require_version("Gst", "1.0")
from gi.repository import GLib, GObject, Gst  # noqa: E402

Gst.init(None)
loop = GLib.MainLoop()
status = 0
CODING = "application/x-rtp,media=video,encoding-name=VP8,payload=96"


class Limit(Gst.Bin):
    """A safety net: it finds that the path bears 600 kbit/s once it is told 1.3 Mbit/s or more."""

    __gstmetadata__ = ("Limit", "Generic", "A safety net", "P-AQM")
    __gproperties__ = {  # noqa: RUF012
        f"{name}-bitrate": (GObject.TYPE_UINT, name, name, 1, 1 << 31, 1,
                            GObject.ParamFlags.READWRITE)
        for name in ("estimated", "min", "max")
    }

    def __init__(self) -> None:
        super().__init__()
        self.rates: dict[str, int] = {}
        inner = Gst.ElementFactory.make("identity", None)
        self.add(inner)
        for name in ("sink", "src"):
            self.add_pad(Gst.GhostPad.new(name, inner.get_static_pad(name)))

    def do_get_property(self, which: Any) -> int:
        return self.rates.get(which.name, 1)

    def do_set_property(self, which: Any, rate: int) -> None:
        self.rates[which.name] = rate
        if which.name == "estimated-bitrate" and rate >= 1_300_000:
            GLib.idle_add(self.set_property, which.name, 600_000)


Gst.Element.register(None, "limit", Gst.Rank.NONE, Limit)


def say(*words: object) -> None:
    print(*words, flush=True)


def on_error(_bus: Any, note: Any) -> None:
    global status
    error, detail = note.parse_error()
    say("error", error.message, detail)
    status = 1
    loop.quit()


def start(pipeline: Any) -> None:
    bus = pipeline.get_bus()
    bus.add_signal_watch()
    bus.connect("message::error", on_error)
    pipeline.set_state(Gst.State.PLAYING)


def watch(estimator: Any) -> None:
    estimator.connect("notify::estimated-bitrate",
                      lambda e, _: say("estimate", e.get_property("estimated-bitrate")))


def run_pipeline(description: str) -> None:
    pipeline = Gst.parse_launch(description)
    watch(pipeline.get_by_name("estimator"))
    encoder = pipeline.get_by_name("enc")
    encoder.connect("notify::target-bitrate",
                    lambda e, _: say("encoder", e.get_property("target-bitrate")))
    start(pipeline)
    loop.run()
    pipeline.set_state(Gst.State.NULL)


def describe(kind: str, promise: Any, one: Any, other: Any, answer: Any) -> None:
    """One end has made its description: both know it, and the other goes on."""
    from gi.repository import GstSdp, GstWebRTC

    reply = promise.get_reply()
    text = reply.get_value(kind).sdp.as_text()
    for end, signal, done in ((one, "local", None),
                              (other, "remote", Gst.Promise.new_with_change_func(answer))):
        sdp = GstSdp.SDPMessage.new_from_text(text)[1]
        which = getattr(GstWebRTC.WebRTCSDPType, kind.upper())
        made = GstWebRTC.WebRTCSessionDescription.new(which, sdp)
        end.emit(f"set-{signal}-description", made, done)


def run_webrtc(properties: str) -> None:
    for name in ("GstWebRTC", "GstSdp"):
        gi.require_version(name, "1.0")
    pipeline = Gst.parse_launch(
        "webrtcbin name=from bundle-policy=max-bundle webrtcbin name=to bundle-policy=max-bundle "
        "videotestsrc is-live=true ! video/x-raw,width=320,height=240,framerate=25/1 ! "
        f"vp8enc deadline=1 cpu-used=8 ! rtpvp8pay ! {CODING} ! from."
    )
    here, there = pipeline.get_by_name("from"), pipeline.get_by_name("to")

    def on_aux(_bin: Any, _transport: Any) -> Any:
        made = Gst.parse_bin_from_description(f"paqmestimator name=estimator {properties}", False)
        estimator = made.get_by_name("estimator")
        made.remove(estimator)
        watch(estimator)
        return estimator

    def on_buffer(*_: Any) -> Any:
        say("received", 1)
        return Gst.PadProbeReturn.REMOVE

    def on_pad(_bin: Any, pad: Any) -> None:
        sink = Gst.ElementFactory.make("fakesink", None)
        pipeline.add(sink)
        sink.sync_state_with_parent()
        pad.link(sink.get_static_pad("sink"))
        pad.add_probe(Gst.PadProbeType.BUFFER, on_buffer)

    def answered(_promise: Any) -> None:
        return None

    def answer(_promise: Any) -> None:
        there.emit("create-answer", None, Gst.Promise.new_with_change_func(
            lambda p: describe("answer", p, there, here, answered)))

    def negotiate(_bin: Any) -> None:
        here.emit("create-offer", None, Gst.Promise.new_with_change_func(
            lambda p: describe("offer", p, here, there, answer)))

    here.connect("request-aux-sender", on_aux)
    here.connect("on-ice-candidate", lambda _b, n, text: there.emit("add-ice-candidate", n, text))
    there.connect("on-ice-candidate", lambda _b, n, text: here.emit("add-ice-candidate", n, text))
    there.connect("pad-added", on_pad)
    here.connect("on-negotiation-needed", negotiate)
    start(pipeline)
    loop.run()
    pipeline.set_state(Gst.State.NULL)


if sys.argv[1] == "pipeline":
    run_pipeline(sys.argv[2])
elif not Gst.ElementFactory.find("webrtcbin") or not Gst.ElementFactory.find("nicesrc"):
    sys.exit(77)
else:
    try:
        run_webrtc(sys.argv[2])
    except ValueError:  # no bindings of it
        sys.exit(77)
sys.exit(status)
