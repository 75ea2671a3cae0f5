#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Makes a stock GStreamer sender follow P-AQM routers: a pipeline as gst-launch-1.0 has it, with
paqmestimator before its udpsink. That finds the flow, asks paqmd and tells the encoder its rate:

    retune.py 'videotestsrc is-live=true ! x264enc name=enc tune=zerolatency ! rtph264pay mtu=1200 !
               paqmestimator encoder=enc estimated-bitrate=400000 max-bitrate=2000000 !
               udpsink host=192.0.2.7 port=5006'

Options of the element: gst-inspect-1.0 paqmestimator.
"""

import sys

import gi

gi.require_version("Gst", "1.0")
from gi.repository import GLib, Gst  # noqa: E402

Gst.init(None)
pipeline = Gst.parse_launch(sys.argv[1])
pipeline.set_state(Gst.State.PLAYING)
GLib.MainLoop().run()
