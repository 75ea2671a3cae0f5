#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""A long call whose devices come and go, beside strangers who flood it (make long-call).

In each minute the windows are closed and opened again, the sound server is killed and started, the
camera breaks off, both ends are muted, and 6000 datagrams of 1500 sources come to the ports. The
call has to end when somebody hangs up and not before, and neither threads, descriptors nor memory
may grow from minute to minute. Runs in virtual time (paqm-lab exec).

Usage: long_call.py PAQM-STREAMER [MINUTES]
"""

import os
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import test_call_devices as devices
import test_call_loopback as calls
import trial
from test_call_devices import End, Sound, X
from trial import check, until

WARM = 3  # minutes after which everything has been there once
STRANGERS = 1500
MORE_MB = 3.0  # that the mean of the last minutes may be above that of the first ones after WARM


def use(end: End) -> dict[str, float]:
    """Threads, descriptors and memory of an end."""
    proc = Path(f"/proc/{end.process.pid}")
    return {
        "threads": len(list((proc / "task").iterdir())),
        "descriptors": len(list((proc / "fd").iterdir())),
        "MB": calls.resident(end.process.pid),
    }


def flood(listener: End) -> None:
    about = calls.json.loads((listener.record / "call.json").read_text())
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for n in range(4 * STRANGERS):
            for what, kind in (("video", 96), ("audio", 97)):
                head = struct.pack("!BBHII", 0x80, kind, n // STRANGERS, n, n % STRANGERS)
                s.sendto(head + bytes(20), ("127.0.0.1", about[what]["port"]))
            if n % 50 == 0:
                time.sleep(0.005)


def minute(n: int, listener: End, caller: End, screens: dict[str, X], server: Sound,
           camera: tuple[Path, bytes]) -> None:
    """Everything once; @n: from 1."""
    for screen in screens.values():
        screen.close(screen.windows()[0])
    listener.tells("own window: .*; key w", n)
    caller.tells("paqm-streamer: window: .*; key w", n)
    for end in (listener, caller):
        end.key("w")
    listener.tells("own window: is back", n)
    caller.tells(" window: is back", n)
    server.stop()
    listener.tells("loudspeaker: .*; the call goes on", n)
    listener.plays_on("video")
    server.start()
    listener.tells("loudspeaker: is back", n)
    for end in (listener, caller):
        end.key("m")
    flood(listener)
    for end in (listener, caller):
        end.key("m")
    clip, whole = camera
    clip.write_bytes(bytes(2000))
    caller.tells("camera.mkv: .*; the call goes on", n)
    listener.plays_on("audio")
    clip.write_bytes(whole)
    caller.tells("camera.mkv: is back", n)
    for end in (listener, caller):
        for media in ("video", "audio"):
            end.plays_on(media)


def grows(used: list[dict[str, float]], what: str) -> tuple[float, float]:
    """Means of the first and of the last minutes after WARM."""
    values = [u[what] for u in used[WARM:]]
    half = len(values) // 2
    return statistics.mean(values[:half]), statistics.mean(values[-half:])


def main() -> int:
    streamer, minutes = sys.argv[1], int((*sys.argv, "10")[2])
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    Path("/tmp/.X11-unix").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        tmp = Path(name)
        server, clip = Sound(tmp), tmp / "camera.mkv"
        screens = {end: X(number) for end, number in devices.SCREENS.items()}
        server.start()
        devices.make_clip(clip)
        listener, caller = devices.pair(
            streamer, tmp, "long",
            ({"DISPLAY": screens["listener"].name, **server.env},
             ["--source", "test", "--audio", "test", "--sink", "none", "--self-view"]),
            ({"DISPLAY": screens["caller"].name},
             ["--source", str(clip), "--audio", "test", "--audio-sink", "none"]))
        until("both windows are there", lambda: all(s.windows() for s in screens.values()))
        listener.plays_on("audio")
        used: dict[str, list[dict[str, float]]] = {"listener": [], "caller": []}
        begin, whole = time.monotonic(), clip.read_bytes()
        for n in range(1, minutes + 1):
            minute(n, listener, caller, screens, server, (clip, whole))
            time.sleep(max(0, begin + 60 * n - time.monotonic()))
            for end in (listener, caller):
                used[end.record.name.split("-")[1]].append(use(end))
            print(f"# minute {n}: " + ", ".join(
                f"{end} " + " ".join(f"{v:.0f} {k}" for k, v in u[-1].items())
                for end, u in used.items()), flush=True)
        caller.key("q")
        caller.end()
        listener.end()
        assert "you hung up" in caller.said() and "the peer hung up" in listener.said()
        check("the call ends when somebody hangs up, and not before", True)
        for end, u in used.items():
            for what, more in (("threads", 0), ("descriptors", 0), ("MB", MORE_MB)):
                first, last = grows(u, what)
                check(f"{end}: {what} {first:.1f}, at last {last:.1f}", last <= first + more)
        for screen in screens.values():
            screen.server.terminate()
        server.stop()
    return trial.summary()


if __name__ == "__main__":
    os.environ.pop("DISPLAY", None)
    sys.exit(main())
