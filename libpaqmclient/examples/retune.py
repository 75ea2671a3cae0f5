#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Makes a stock GStreamer sender follow P-AQM routers: a pipeline as gst-launch-1.0 has it, with
paqmestimator before its udpsink. That finds the flow, asks paqmd and tells the encoder its rate:

    retune.py 'videotestsrc is-live=true ! x264enc name=enc tune=zerolatency ! rtph264pay mtu=1200 !
               paqmestimator encoder=enc estimated-bitrate=400000 max-bitrate=2000000 !
               udpsink host=192.0.2.7 port=5006'

Options of the element: gst-inspect-1.0 paqmestimator.
"""

import signal
import sys

import gi

gi.require_version("Gst", "1.0")
from gi.repository import GLib, Gst  # noqa: E402


def on_message(bus: Gst.Bus, message: Gst.Message, loop: GLib.MainLoop) -> None:
    """What an element cannot do is said by nobody else, and the end of a file ends the program."""
    if message.type == Gst.MessageType.ERROR:
        error, why = message.parse_error()
        print(f"retune.py: {message.src.get_name()}: {error.message}\n{why}", file=sys.stderr)
        failed.append(error)
    if message.type in (Gst.MessageType.ERROR, Gst.MessageType.EOS):
        loop.quit()


Gst.init(None)
if len(sys.argv) != 2:
    sys.exit(__doc__)
try:
    pipeline = Gst.parse_launch(sys.argv[1])
except GLib.Error as error:
    sys.exit(f"retune.py: {error.message}")
failed: list[GLib.Error] = []
loop = GLib.MainLoop()
pipeline.get_bus().add_signal_watch()
pipeline.get_bus().connect("message", on_message, loop)
GLib.unix_signal_add(GLib.PRIORITY_DEFAULT, signal.SIGINT, loop.quit)
pipeline.set_state(Gst.State.PLAYING)
loop.run()
pipeline.set_state(Gst.State.NULL)
sys.exit(bool(failed))
