#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What gst-inspect-1.0 says of the plugin's elements: every property has a description of its own,
and the example pipelines run."""

import os
import re
import shlex
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

ELEMENTS = {"paqmh264enc": 2, "paqmpacer": 1, "paqmestimator": 1}  # and how many examples each has


def check(condition: bool, text: str) -> None:
    if not condition:
        raise SystemExit(f"FAIL: {text}")


def run_example(name: str, command: str, environment: dict[str, str], home: str) -> None:
    """With few pictures, and what is sent comes to a socket here."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        port = sock.getsockname()[1]
        short = command.replace("videotestsrc is-live=true", "videotestsrc num-buffers=24")
        short = short.replace("num-buffers=240", "num-buffers=24")
        short = short.replace("port=5004", f"port={port}")
        done = subprocess.run(shlex.split(short), capture_output=True, text=True, check=False,
                              env=environment, cwd=home)  # fmt: skip
        check(done.returncode == 0, f"{name}: {command}: {done.stderr}")
        if "udpsink" not in command:
            check(max(f.stat().st_size for f in Path(home).glob("*.mp4")) > 1000, f"{name}: file")
            return
        sock.setblocking(False)
        stamps = set()
        while True:
            try:
                packet = sock.recv(2048)
            except BlockingIOError:
                break
            check(packet[0] >> 6 == 2 and len(packet) <= 1400, f"{name}: no RTP")
            stamps.add(packet[4:8])
        check(len(stamps) == 24, f"{name}: {len(stamps)} pictures came")


def main() -> None:
    plugin = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "GST_PLUGIN_PATH": str(plugin.parent),
                       "GST_REGISTRY": f"{home}/registry", "LC_ALL": "C.UTF-8"}  # fmt: skip
        for name, examples in ELEMENTS.items():
            text = subprocess.run(["gst-inspect-1.0", "--no-colors", name], capture_output=True,
                                  text=True, check=True, env=environment).stdout  # fmt: skip
            properties = re.findall(r"^  ([a-z-]+) *: (.*)$", text.split("Properties:")[1], re.M)
            check(len(properties) > 3, f"{name}: {properties}")
            for key, blurb in properties:
                check(len(blurb) > 10 and blurb.lower() != key, f"{name}: {key}: {blurb!r}")
            found = re.findall(r"^ *Example-\w+ +(gst-launch-1.0 .*)$", text, re.M)
            check(len(found) == examples, f"{name}: examples {found}")
            for command in found:
                run_example(name, command, environment, home)
    print("inspect: all checks hold")


if __name__ == "__main__":
    main()
