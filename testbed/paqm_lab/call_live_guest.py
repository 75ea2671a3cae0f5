# SPDX-License-Identifier: GPL-2.0
"""The call of `make call-live` inside its guest: devices, screenshots, and a camera that vanishes.

Called as `python -m paqm_lab.call_live_guest CONFIG.json`; writes found.json.
"""

import fcntl
import json
import os
import shutil
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from paqm_lab import call_guest, topology
from paqm_lab.call_guest import ENDS, Trouble

VIDIOC_S_CTRL = 0xC008561C
TEST_PATTERN, DISCONNECT = 0x00F0F000, 0x00F0F041  # controls of vivid
BARS, STRIPES = 1, 3  # patterns: vertical and horizontal bars of eight colours
SHORT = 12  # s of the call whose camera is unplugged
WIDTH, HEIGHT = 800, 600
# number of an end: its camera, its display, its substreams of the sound card
NUMBER = {"listener": 0, "caller": 1}
PATTERN = {"listener": BARS, "caller": STRIPES}
ALSA = """
pcm.!default {{
	type asym
	playback.pcm {{ type plug slave.pcm "hw:0,0,{speaker}" }}
	capture.pcm {{ type plug slave.pcm "hw:0,1,{microphone}" }}
}}
"""


def camera_control(end: str, control: int, value: int) -> None:
    camera = os.open(f"/dev/video{NUMBER[end]}", os.O_RDWR)
    try:
        fcntl.ioctl(camera, VIDIOC_S_CTRL, struct.pack("Ii", control, value))
    finally:
        os.close(camera)


def make_desk(out: Path, end: str) -> list[str]:
    """Camera, microphone with a sound before it, loudspeaker, display; what commands begin with."""
    number = NUMBER[end]
    camera_control(end, TEST_PATTERN, PATTERN[end])
    home = Path(f"/run/home-{end}")
    home.mkdir()
    microphone, speaker = 2 * number, 2 * number + 1
    (home / ".asoundrc").write_text(ALSA.format(microphone=microphone, speaker=speaker))
    host = ENDS[end][0]
    sound = ["gst-launch-1.0", "-q", "audiotestsrc", "is-live=true", "wave=ticks", "!"]
    sound += ["audioconvert", "!", "alsasink", f"device=plughw:0,0,{microphone}"]
    topology.start(host, sound, out / f"sound-{end}.log")
    display = f":{90 + number}"
    screen = ["Xvfb", display, "-screen", "0", f"{WIDTH}x{HEIGHT}x24", "-noreset", "-nolock"]
    server = topology.start(host, screen, out / f"xvfb-{end}.log")
    for _ in range(100):
        if Path(f"/tmp/.X11-unix/X{90 + number}").exists():
            return ["nice", "-n", "-10", "env", f"HOME={home}", f"DISPLAY={display}"]
        if server.poll() is not None:
            break
        time.sleep(0.1)
    raise Trouble(f"Xvfb does not start, see xvfb-{end}.log")


def screenshot(out: Path, end: str, around: list[str]) -> bytes:
    """The display of an end, RGB; kept as PNG, too."""
    raw, kept = Path(f"/run/{end}.rgb"), out / f"{end}.png"
    shot = ["gst-launch-1.0", "-q", "ximagesrc", "num-buffers=1", "use-damage=false", "!"]
    shot += ["videoconvert", "!", "video/x-raw,format=RGB", "!", "tee", "name=t", "!", "queue", "!"]
    shot += ["filesink", f"location={raw}", "t.", "!", "queue", "!", "pngenc", "!"]
    topology.run(*around[3:], "nice", "timeout", "60", *shot, "filesink", f"location={kept}")
    return raw.read_bytes()


def hues(rgb: bytes, points: list[tuple[int, int]]) -> int:
    """How many clearly different colours there are at these points of a display."""
    found: list[tuple[int, ...]] = []
    for x, y in points:
        at = 3 * (y * WIDTH + x)
        colour = tuple(rgb[at : at + 3])
        if all(max(abs(a - b) for a, b in zip(colour, old, strict=True)) > 80 for old in found):
            found.append(colour)
    return len(found)


def shows(rgb: bytes, pattern: int) -> bool:
    """Bars differ along a line and not down a column, stripes the other way round."""
    # the window is 640 x 360, in the corner, where no window manager has put it elsewhere
    across = hues(rgb, [(x, 300) for x in range(40, 640, 80)])
    down = hues(rgb, [(600, y) for y in range(22, 360, 45)])
    most, least = (across, down) if pattern == BARS else (down, across)
    return most >= 6 and least <= 2


def options(seconds: int) -> dict[str, list[str]]:
    """Of each end; its camera, and for the rest the defaults."""
    return {
        end: ["--source", f"/dev/video{number}", "--duration", str(seconds)]
        for end, number in NUMBER.items()
    }


def run(config: dict[str, Any]) -> None:
    out = Path(config["out"])
    os.makedirs("/tmp/.X11-unix", exist_ok=True)
    topology.run("mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", "/tmp/.X11-unix")
    # made once, by nobody who is in a hurry
    os.environ["GST_REGISTRY"] = "/run/registry.bin"
    topology.run("gst-inspect-1.0", "coreelements")
    call_guest.lay_out(config)
    around = {end: make_desk(out, end) for end in ENDS}
    # in memory: what is written to the host's disk stops the whole guest for a moment
    kept = Path("/run/kept")
    kept.mkdir()
    ends = call_guest.start_ends(config, kept, around, options(config["duration"]))
    call_guest.share_with_tcp(config)
    half = config["duration"] // 4
    call_guest.watch_ends(ends, half)
    windows = {}
    for end, other in (("listener", "caller"), ("caller", "listener")):
        windows[end] = shows(screenshot(out, end, around[end]), PATTERN[other])
    call_guest.await_ends(ends, config["duration"] - config["tcp"][0] - half)
    short = kept / "unplugged"
    short.mkdir()
    ends = call_guest.start_ends(config, short, around, options(SHORT))
    time.sleep(SHORT / 2)
    camera_control("caller", DISCONNECT, 1)
    call_guest.await_ends(ends, SHORT / 2)
    said = (short / "caller.log").read_text()
    shutil.copytree(kept, out, dirs_exist_ok=True)
    found = {"windows": windows, "unplugged": "the call goes on" in said}
    (out / "found.json").write_text(json.dumps(found) + "\n")


def main(config_file: str) -> int:
    try:
        run(json.loads(Path(config_file).read_text()))
    except (Trouble, topology.CommandFailed, subprocess.TimeoutExpired, OSError) as err:
        print(err, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
