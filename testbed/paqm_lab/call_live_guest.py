# SPDX-License-Identifier: GPL-2.0
"""The call of `make call-live` inside its guest: devices, screenshots, and a camera that vanishes.

The clocks of the two sound cards differ, as those of real ones do.

Called as `python -m paqm_lab.call_live_guest CONFIG.json`; writes found.json.
"""

import ctypes
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

import numpy as np
import numpy.typing as npt
from matplotlib import image

from paqm_lab import call_guest, topology
from paqm_lab.call_guest import ENDS, Trouble

Screen = npt.NDArray[np.uint8]
VIDIOC_S_CTRL = 0xC008561C
TEST_PATTERN, DISCONNECT = 0x00F0F000, 0x00F0F041  # controls of vivid
BARS, STRIPES = 1, 3  # patterns: vertical and horizontal bars of eight colours
SHORT = 12  # s of the call whose camera is unplugged
WIDTH, HEIGHT = 800, 600
SCREENS = Path("/run/screens")
# number of an end: its camera, its display, its substreams of the sound card
NUMBER = {"listener": 0, "caller": 1}
PATTERN = {"listener": BARS, "caller": STRIPES}
FAST_PPM = {"listener": -100, "caller": 100}  # of sound cards; quartz is seldom further off
RATE_SHIFT = b"PCM Rate Shift 100000"  # control of snd-aloop, of a substream of its capture side
CAPTURE, IFACE_PCM = 1, 3  # device, and SND_CTL_ELEM_IFACE_PCM of alsa/control.h
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


def set_clock(substream: int, ppm: int) -> None:
    """Let what crosses this substream run so much faster than the machine's clock."""
    alsa = ctypes.CDLL("libasound.so.2")
    card, value = ctypes.c_void_p(), ctypes.c_void_p()
    if alsa.snd_ctl_open(ctypes.byref(card), b"hw:0", 0) < 0:
        raise Trouble("the sound card has no controls")
    alsa.snd_ctl_elem_value_malloc(ctypes.byref(value))
    alsa.snd_ctl_elem_value_set_interface(value, IFACE_PCM)
    alsa.snd_ctl_elem_value_set_name(value, RATE_SHIFT)
    alsa.snd_ctl_elem_value_set_device(value, CAPTURE)
    alsa.snd_ctl_elem_value_set_subdevice(value, substream)
    alsa.snd_ctl_elem_value_set_integer(value, 0, ctypes.c_long(100_000 + ppm // 10))
    if alsa.snd_ctl_elem_write(card, value) < 0:
        raise Trouble(f"the clock of substream {substream} cannot be set")
    alsa.snd_ctl_elem_value_free(value)
    alsa.snd_ctl_close(card)


def make_desk(out: Path, end: str) -> list[str]:
    """Camera, microphone with a sound before it, loudspeaker, display; what commands begin with."""
    number = NUMBER[end]
    camera_control(end, TEST_PATTERN, PATTERN[end])
    home = Path(f"/run/home-{end}")
    home.mkdir()
    microphone, speaker = 2 * number, 2 * number + 1
    for substream in (microphone, speaker):
        set_clock(substream, FAST_PPM[end])
    (home / ".asoundrc").write_text(ALSA.format(microphone=microphone, speaker=speaker))
    host = ENDS[end][0]
    sound = ["gst-launch-1.0", "-q", "audiotestsrc", "is-live=true", "wave=ticks", "!"]
    sound += ["audioconvert", "!", "alsasink", f"device=plughw:0,0,{microphone}"]
    topology.start(host, sound, out / f"sound-{end}.log")
    display = f":{90 + number}"
    screen = ["Xvfb", display, "-screen", "0", f"{WIDTH}x{HEIGHT}x24", "-noreset", "-nolock"]
    memory = SCREENS / end
    memory.mkdir(parents=True)
    screen += ["-fbdir", str(memory)]
    server = topology.start(host, screen, out / f"xvfb-{end}.log")
    for _ in range(100):
        if Path(f"/tmp/.X11-unix/X{90 + number}").exists():
            return ["nice", "-n", "-10", "env", f"HOME={home}", f"DISPLAY={display}"]
        if server.poll() is not None:
            break
        time.sleep(0.1)
    raise Trouble(f"Xvfb does not start, see xvfb-{end}.log")


def screenshot(end: str) -> Screen:
    """The display of an end, (HEIGHT, WIDTH, 3), RGB. To ask the X server would make the call wait:
    all of the guest shares one processor. A file of its memory (X11's XWDFile.h) costs a read.
    """
    data = (SCREENS / end / "Xvfb_screen0").read_bytes()
    header = struct.unpack_from(">20I", data)
    length, bits, line, colours = header[0], header[11], header[12], header[19]
    if bits != 32:
        raise Trouble(f"Xvfb has {bits} bits for a dot")
    start = length + 12 * colours
    rows = np.frombuffer(data, np.uint8, HEIGHT * line, start).reshape(HEIGHT, line)
    return np.ascontiguousarray(rows[:, : 4 * WIDTH].reshape(HEIGHT, WIDTH, 4)[..., 2::-1])


def hues(screen: Screen, points: list[tuple[int, int]]) -> int:
    """How many clearly different colours there are at these points of a display."""
    found: list[tuple[int, ...]] = []
    for x, y in points:
        colour = tuple(int(part) for part in screen[y, x])
        if all(max(abs(a - b) for a, b in zip(colour, old, strict=True)) > 80 for old in found):
            found.append(colour)
    return len(found)


def shows(screen: Screen, pattern: int) -> bool:
    """Bars differ along a line and not down a column, stripes the other way round."""
    # the window is 640 x 360, in the corner, where no window manager has put it elsewhere
    across = hues(screen, [(x, 300) for x in range(40, 640, 80)])
    down = hues(screen, [(600, y) for y in range(22, 360, 45)])
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
    windows, screens = {}, {}
    for end, other in (("listener", "caller"), ("caller", "listener")):
        screens[end] = screenshot(end)
        windows[end] = shows(screens[end], PATTERN[other])
    call_guest.await_ends(ends, config["duration"] - config["tcp"][0] - half)
    short = kept / "unplugged"
    short.mkdir()
    ends = call_guest.start_ends(config, short, around, options(SHORT))
    time.sleep(SHORT / 2)
    camera_control("caller", DISCONNECT, 1)
    call_guest.await_ends(ends, SHORT / 2)
    said = (short / "caller.log").read_text()
    shutil.copytree(kept, out, dirs_exist_ok=True)
    for end, screen in screens.items():
        image.imsave(out / f"{end}.png", screen)
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
