#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Makes a stock GStreamer sender follow P-AQM routers: it runs a pipeline as gst-launch-1.0 has it
and sets the bitrate of its encoder to what the routers allow.

The encoder is called enc, the RTP payloader pay, the udpsink out, with host, port and bind-port:

    retune.py --property bitrate --unit 1000 --fallback 400000 --ceiling 2000000 \\
        'videotestsrc is-live=true ! x264enc name=enc tune=zerolatency vbv-buf-capacity=100 ! \\
         rtph264pay name=pay mtu=1200 ! udpsink name=out host=192.0.2.7 port=5006 bind-port=5004'
"""

import argparse
import ctypes as ct

import gi

gi.require_version("Gst", "1.0")
from gi.repository import GLib, Gst  # noqa: E402

HEADERS = 40  # bytes of IP, UDP and RTP in each packet; a rate counts them
MARGIN = 0.92  # encoders overshoot


class Advice(ct.Structure):
    """struct paqm_client_advice of paqmclient.h."""

    _fields_ = [("flow", ct.c_int), ("cause", ct.c_int), ("rate_bps", ct.c_uint64),
                ("error", ct.c_int), ("seq", ct.c_uint32), ("router_id", ct.c_uint64),
                ("router", ct.c_char * 46), ("value", ct.c_float), ("qdelay_ms", ct.c_float),
                ("period_ms", ct.c_uint32), ("routers", ct.c_uint32), ("captured_ns", ct.c_uint64)]


parser = argparse.ArgumentParser()
parser.add_argument("--library", default="libpaqmclient.so.0")
parser.add_argument("--property", default="bitrate", help="of the encoder")
parser.add_argument("--unit", type=int, default=1000, help="bit/s that the property counts in")
parser.add_argument("--fallback", type=int, default=400_000, help="bit/s without advice")
parser.add_argument("--ceiling", type=int, default=2_000_000, help="bit/s that are wanted at most")
parser.add_argument("pipeline")
args = parser.parse_args()

lib = ct.CDLL(args.library)
lib.paqm_client_open.restype = ct.c_void_p
lib.paqm_client_fd.argtypes = [ct.c_void_p]
lib.paqm_client_next.argtypes = [ct.c_void_p, ct.POINTER(Advice)]
lib.paqm_client_add.argtypes = [ct.c_void_p, ct.c_char_p, ct.c_uint16, ct.c_char_p, ct.c_uint16,
                                ct.c_uint32, ct.c_uint64, ct.c_uint64]

Gst.init(None)
pipeline = Gst.parse_launch(args.pipeline)
encoder, payloader, out = (pipeline.get_by_name(name) for name in ("enc", "pay", "out"))
client, advice, loop = lib.paqm_client_open(None), Advice(), GLib.MainLoop()


def retune(rate: int) -> None:
    """Let the encoder make what fits into `rate` with its headers."""
    media = rate * MARGIN * (1 - HEADERS / payloader.get_property("mtu"))
    encoder.set_property(args.property, max(1, int(media / args.unit)))
    print(rate, advice.router.decode(), flush=True)


def news(_fd: int, _condition: GLib.IOCondition) -> bool:
    """Take the newest advice."""
    while lib.paqm_client_next(client, advice):
        retune(advice.rate_bps or args.fallback)
    return True


retune(args.fallback)
lib.paqm_client_add(client, None, out.get_property("bind-port"),
                    out.get_property("host").encode(), out.get_property("port"), 0, 100_000,
                    args.ceiling)
GLib.unix_fd_add_full(GLib.PRIORITY_DEFAULT, lib.paqm_client_fd(client), GLib.IO_IN, news)
pipeline.set_state(Gst.State.PLAYING)
loop.run()
