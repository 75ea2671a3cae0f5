# SPDX-License-Identifier: GPL-2.0
"""Devices that vanish during a call and come back: windows, sound server, camera.

The windows are on X servers without a screen (Xvfb), loudspeaker and microphone are those of a
sound server (PulseAudio) whose sink goes nowhere and can be listened to. The camera is a file:
what is not there, or breaks off, is to a call as a camera that is unplugged. Runs in virtual time
(lab_loopback.py).
"""

import array
import ctypes
import os
import pty
import re
import signal
import subprocess
import tempfile
import time
import wave
from collections.abc import Callable
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import ClassVar

import streams
import test_call_loopback as calls
import trial
from trial import PATIENCE, Program, until

from paqm_lab.topology import HERE

SCREENS = {"listener": 71, "caller": 72}
SLOW = 0.8  # s that a window needs
READY, STOPPED = 1.5, 0.8  # s after the ends know each other, s
OLD = 0.25  # s that nothing played may be: the path of loopback, and the shortest wait


class ClientMessage(ctypes.Structure):
    """XClientMessageEvent, with the room of an XEvent."""

    _fields_: ClassVar = [
        ("type", ctypes.c_int), ("serial", ctypes.c_ulong), ("send_event", ctypes.c_int),
        ("display", ctypes.c_void_p), ("window", ctypes.c_ulong), ("message", ctypes.c_ulong),
        ("format", ctypes.c_int), ("data", ctypes.c_long * 5), ("rest", ctypes.c_long * 24)]


class X:
    """An X server, and a client of its own to look at its windows and to close them."""

    def __init__(self, number: int) -> None:
        self.name = f":{number}"
        self.server = subprocess.Popen(
            ["Xvfb", self.name, "-screen", "0", "800x600x24", "-noreset", "-nolock"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.lib = ctypes.CDLL("libX11.so.6")
        self.lib.XOpenDisplay.restype = ctypes.c_void_p
        self.lib.XDefaultRootWindow.restype = self.lib.XInternAtom.restype = ctypes.c_ulong
        self.display = ctypes.c_void_p(None)
        until("Xvfb starts", self.open)

    def open(self) -> bool:
        self.display = ctypes.c_void_p(self.lib.XOpenDisplay(self.name.encode()))
        return bool(self.display)

    def windows(self) -> list[int]:
        root, parent, count = ctypes.c_ulong(), ctypes.c_ulong(), ctypes.c_uint()
        children = ctypes.POINTER(ctypes.c_ulong)()
        self.lib.XQueryTree(
            self.display, ctypes.c_ulong(self.lib.XDefaultRootWindow(self.display)),
            ctypes.byref(root), ctypes.byref(parent), ctypes.byref(children), ctypes.byref(count))
        return [children[k] for k in range(count.value)]

    def press(self, window: int, key: bytes) -> None:
        """A key, as the server tells the program whose window has the focus."""
        self.lib.XStringToKeysym.restype = ctypes.c_ulong
        keysym = ctypes.c_ulong(self.lib.XStringToKeysym(key))

        class Event(ctypes.Structure):
            _fields_ = [("type", ctypes.c_int), ("serial", ctypes.c_ulong),
                        ("send_event", ctypes.c_int), ("display", ctypes.c_void_p),
                        ("window", ctypes.c_ulong), ("root", ctypes.c_ulong),
                        ("subwindow", ctypes.c_ulong), ("time", ctypes.c_ulong),
                        ("where", ctypes.c_int * 4), ("state", ctypes.c_uint),
                        ("keycode", ctypes.c_uint), ("same_screen", ctypes.c_int),
                        ("rest", ctypes.c_long * 24)]

        event = Event(type=2, window=window, same_screen=1,
                      root=self.lib.XDefaultRootWindow(self.display),
                      keycode=self.lib.XKeysymToKeycode(self.display, keysym) & 0xff)
        self.lib.XSendEvent(self.display, ctypes.c_ulong(window), 0, ctypes.c_long(1),
                            ctypes.byref(event))
        self.lib.XSync(self.display, 0)

    def listen(self) -> None:
        """Hears from now on what a window manager is asked."""
        self.lib.XSelectInput(self.display, ctypes.c_ulong(self.lib.XDefaultRootWindow(
            self.display)), ctypes.c_long(1 << 19))  # SubstructureNotifyMask
        self.lib.XSync(self.display, 0)

    def asked(self) -> list[tuple[int, bytes, int, bytes]]:
        """The next, if there is one: of which window, what, how, and of which state."""
        event = ClientMessage()
        if not self.lib.XCheckTypedEvent(self.display, 33, ctypes.byref(event)):
            return []
        self.lib.XGetAtomName.restype = ctypes.c_char_p
        what, state = (self.lib.XGetAtomName(self.display, ctypes.c_ulong(atom))
                       for atom in (event.message, event.data[1]))
        return [(event.window, what, event.data[0], state)]

    def close(self, window: int) -> None:
        """What a window manager does when somebody presses the cross."""
        protocols, delete = (self.lib.XInternAtom(self.display, name, 0)
                             for name in (b"WM_PROTOCOLS", b"WM_DELETE_WINDOW"))
        event = ClientMessage(type=33, window=window, message=protocols, format=32)
        event.data[0] = delete
        self.lib.XSendEvent(self.display, ctypes.c_ulong(window), 0, ctypes.c_long(0),
                            ctypes.byref(event))
        self.lib.XSync(self.display, 0)


class Sound:
    """A sound server without a card: one sink, whose monitor is the only microphone; or more."""

    def __init__(self, tmp: Path) -> None:
        self.home, self.socket = tmp / "pulse", tmp / "pulse" / "socket"
        self.home.mkdir(mode=0o700)
        self.env = {"PULSE_SERVER": f"unix:{self.socket}", "HOME": str(self.home),
                    "XDG_RUNTIME_DIR": str(self.home)}
        self.server: subprocess.Popen[bytes] | None = None

    def start(self, *modules: str) -> None:
        load = ["module-null-sink sink_name=speaker", *modules,
                f"module-native-protocol-unix auth-anonymous=1 socket={self.socket}"]
        self.server = subprocess.Popen(
            ["pulseaudio", "-n", "--daemonize=no", "--use-pid-file=no", "--exit-idle-time=-1",
             "--disable-shm=yes", *(word for module in load for word in ("-L", module))],
            env={**os.environ, **self.env}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until("PulseAudio starts", self.socket.exists)

    def control(self, *words: str) -> None:
        subprocess.run(["pactl", *words], env={**os.environ, **self.env}, check=True,
                       stdout=subprocess.DEVNULL)

    def stop(self) -> None:
        assert self.server
        self.server.kill()
        self.server.wait()
        self.socket.unlink(missing_ok=True)

    def loudest(self, sink: str = "speaker") -> int:
        """Of four seconds of what a loudspeaker plays: a tick in each, one may be cut."""
        file = self.home / "heard.wav"
        subprocess.run(
            ["gst-launch-1.0", "-q", "pulsesrc", f"device={sink}.monitor", "num-buffers=400", "!",
             "audio/x-raw,format=S16LE,rate=48000,channels=1", "!", "wavenc", "!", "filesink",
             f"location={file}"], env={**os.environ, **self.env}, check=True, timeout=PATIENCE,
            stdout=subprocess.DEVNULL)
        with wave.open(str(file)) as f:
            return max(map(abs, array.array("h", f.readframes(f.getnframes()))), default=0)


class End:
    """One end of a call, with a terminal for its keys."""

    processes: ClassVar[list[Program]] = []

    def __init__(self, streamer: str, tmp: Path, name: str, env: dict[str, str],
                 *options: str) -> None:
        self.record = tmp / name
        self.keys, slave = pty.openpty()
        self.process = Program(HERE, streamer, "call", *options, "--rate-max", "500kbit", "--paqmd",
                               "none", "--record", self.record, stdin=slave, env=env)
        self.processes.append(self.process)
        self.said = self.process.said
        os.close(slave)

    def key(self, key: str) -> None:
        os.write(self.keys, f"{key}\n".encode())

    def rows(self, media: str) -> int:
        return calls.rows(self.record / f"{media}.csv")

    def ages(self, media: str) -> list[float]:
        """Of all that was played, s, once the sender's reports told."""
        return [(int(row["play_ns"]) - int(row["capture_ns"])) / 1e9
                for row in trial.rows(self.record / f"{media}.csv") if int(row["capture_ns"])]

    def untold(self, media: str) -> int:
        """Pieces of which nobody knows when they were captured, once that was known of one."""
        known = [row["capture_ns"] != "0" for row in trial.rows(self.record / f"{media}.csv")]
        return known[known.index(True) :].count(False)

    def plays_on(self, media: str) -> None:
        before = self.rows(media)
        until(f"{self.record.name} plays more {media}", lambda: self.rows(media) > before + 40)
        assert self.process.poll() is None, self.said()

    def rests(self, media: str) -> None:
        """Nothing of it is played any more, what was under way apart."""
        time.sleep(1)
        before = self.rows(media)
        time.sleep(3)
        assert self.rows(media) <= before, (media, before, self.rows(media))
        assert self.process.poll() is None, self.said()

    def tells(self, what: str, times: int = 1) -> None:
        until(f"{self.record.name} says {what}",
              lambda: len(re.findall(what, self.said())) >= times)
        assert len(re.findall(what, self.said())) == times, self.said()

    def end(self) -> str:
        said = self.process.end()
        os.close(self.keys)
        return said.splitlines()[-1]


def pair(streamer: str, tmp: Path, name: str, listener: tuple[dict[str, str], list[str]],
         caller: tuple[dict[str, str], list[str]]) -> tuple[End, End]:
    where = f"127.0.0.1:{calls.free_port()}"
    common = ["--secret", calls.secret(tmp / f"{name}-secret", "a secret of many bytes")]
    return (End(streamer, tmp, f"{name}-listener", listener[0], "--listen", where, *common,
                *listener[1]),
            End(streamer, tmp, f"{name}-caller", caller[0], where, *common, *caller[1]))


def hang_up(listener: End, caller: End) -> None:
    caller.key("q")
    assert "you hung up" in caller.end(), caller.said()
    assert "the peer hung up" in listener.end(), listener.said()
    for end in (listener, caller):
        for bad in ("CRITICAL", "WARNING", "an element failed"):
            assert bad not in end.said(), end.said()


TEST = ["--source", "test", "--audio", "test", "--audio-sink", "none"]


def windows(streamer: str, tmp: Path, screens: dict[str, X], _: Sound) -> None:
    """The listener sees itself, the caller the listener; both windows are closed."""
    own, peer = screens["listener"], screens["caller"]
    listener, caller = pair(
        streamer, tmp, "windows",
        ({"DISPLAY": own.name}, [*TEST, "--sink", "none", "--self-view"]),
        ({"DISPLAY": peer.name}, TEST))
    caller.plays_on("video")
    until("both windows are there", lambda: own.windows() and peer.windows())
    own.close(own.windows()[0])
    listener.tells("own window: .* the call goes on without it; key w")
    caller.plays_on("video")
    peer.close(peer.windows()[0])
    caller.tells("paqm-streamer: window: .* the call goes on without it; key w")
    caller.rests("video")
    caller.plays_on("audio")
    assert not own.windows() and not peer.windows(), "a window is left, or came back by itself"
    for end, screen, what in ((listener, own, "own window"), (caller, peer, " window")):
        end.key("w")
        end.tells(f"{what}: is back")
        until("the window is open again", screen.windows)
    caller.plays_on("video")
    listener.plays_on("video")
    hang_up(listener, caller)
    assert calls.events(caller.record, "lost") == calls.events(caller.record, "back") == ["window"]


def keys(streamer: str, tmp: Path, screens: dict[str, X], _: Sound) -> None:
    """In a window as on the terminal: mute, statistics, what means nothing, hang up."""
    screen = screens["caller"]
    listener, caller = pair(streamer, tmp, "keys", ({}, [*TEST, "--sink", "none"]),
                            ({"DISPLAY": screen.name}, TEST))
    caller.plays_on("video")
    until("the window is there", screen.windows)
    window = screen.windows()[0]
    screen.listen()
    for key in (b"m", b"s", b"F5", b"Left", b"x", b"f", b"m", b"s"):
        screen.press(window, key)
    asked: list[tuple[int, bytes, int, bytes]] = []
    until("the window manager is asked", lambda: asked.extend(screen.asked()) or asked)
    assert asked == [(window, b"_NET_WM_STATE", 2, b"_NET_WM_STATE_FULLSCREEN")], asked
    caller.plays_on("video")
    listener.plays_on("audio")
    screen.press(window, b"q")
    assert "you hung up" in caller.end(), caller.said()
    assert "the peer hung up" in listener.end(), listener.said()
    assert calls.events(caller.record, "muted") == ["yes", "no"]


def camera_off(streamer: str, tmp: Path, *_: object) -> None:
    """Black pictures come in place of the camera's, and the end is told; then its own again."""
    shown = tmp / "shown.y4m"
    listener, caller = pair(
        streamer, tmp, "dark",
        ({}, ["--source", "none", "--audio", "none", "--audio-sink", "none", "--sink", str(shown)]),
        ({}, [*TEST, "--sink", "none"]))
    listener.plays_on("video")
    for _turn in range(2):
        caller.key("c")
        listener.plays_on("video")
    hang_up(listener, caller)
    assert calls.events(caller.record, "camera") == ["off", "on"]
    assert calls.events(listener.record, "peer-camera") == ["off", "on"]
    with shown.open("rb") as f:
        size = {word[:1]: int(word[1:]) for word in f.readline().split() if word[:1] in b"WH"}
        luma = size[b"W"] * size[b"H"]
        bright = []  # a white ball is in each picture of the camera
        while f.readline():
            bright.append(max(f.read(luma * 3 // 2)[:luma]) > 200)
    runs = [(sees, len(list(run))) for sees, run in groupby(bright)]
    assert [sees for sees, _ in runs] == [True, False, True], runs
    assert min(length for _, length in runs) > 24, runs


def sizes(streamer: str, tmp: Path, screens: dict[str, X], _: Sound) -> None:
    """Pictures have the size that was asked for, and the shape of what is seen in them."""
    files = {end: tmp / f"{end}.y4m" for end in ("listener", "caller")}
    sound = ["--audio", "none", "--audio-sink", "none"]
    listener, caller = pair(
        streamer, tmp, "sizes",
        ({"DISPLAY": screens["listener"].name},
         ["--source", "screen", "--size", "800x450", *sound, "--sink", str(files["listener"])]),
        ({}, ["--source", "test", "--size", "1280x720", *sound, "--sink", str(files["caller"])]))
    for end in (listener, caller):
        end.plays_on("video")
    hang_up(listener, caller)
    for end, size in (("listener", b"W1280 H720"), ("caller", b"W800 H450")):
        with files[end].open("rb") as f:
            assert size in f.readline(), (end, size)
    for wrong in ("1280", "1280x721", "8x8", "1280x720x3"):
        said = Program(HERE, streamer, "call", "--listen", "--secret", "x", "--size", wrong).end(
            status=2)
        assert f"--size {wrong}: must be WIDTHxHEIGHT" in said, said
    secret = calls.secret(tmp / "large", "a secret of many bytes")
    said = Program(HERE, streamer, "call", "--listen", "--secret", secret, *TEST, "--sink", "none",
                   "--size", "4098x16").end(status=2)
    assert "--size 4098x16: paqmh264enc takes no side above 4096" in said, said


def chosen(streamer: str, tmp: Path, _: dict[str, X], server: Sound) -> None:
    """Of two loudspeakers and three microphones those that were named; they vanish, and return."""
    two = [f"module-null-sink sink_name={name} sink_properties=device.description={title}"
           for name, title in (("left", "Left-Desk"), ("right", "Right-Desk"))]
    server.start(*two)
    listed = Program(HERE, streamer, "devices", env=server.env).end()
    for name in ("Left-Desk", "Right-Desk", "Monitor of Left-Desk"):
        assert re.search(rf"^  \d+: {name}$", listed, re.M), listed
    secret = calls.secret(tmp / "refused", "a secret of many bytes")
    for option, wrong in (("--audio", "mic:Middle"), ("--audio-sink", "auto:Desk"),
                          ("--audio-sink", "auto:9"), ("--audio", "mic:"),
                          ("--source", "camera:0")):
        said = Program(HERE, streamer, "call", "--listen", f"127.0.0.1:{calls.free_port()}",
                       "--secret", secret, *TEST, "--sink", "none", option, wrong,
                       env=server.env).end(status=2)
        assert f"{option} {wrong}: no single " in said, said
        assert option == "--source" or "there are:\n  1: " in said, said
    test, heard = ["--source", "test", "--sink", "none"], tmp / "heard.wav"
    mic, speaker = "mic:monitor of right", "auto:right"
    listener, caller = pair(
        streamer, tmp, "chosen",
        (server.env, [*test, "--audio", mic, "--audio-sink", speaker, "--echo-cancel", "off"]),
        ({}, [*test, "--audio", "test", "--audio-sink", str(heard)]))
    for turn in (1, 2):
        listener.plays_on("audio")
        caller.plays_on("audio")
        loud, still = server.loudest("right"), server.loudest("left")
        assert loud > 1000 and not still, f"at most {loud} where it should be, {still} beside"
        if turn == 1:
            server.stop()
            for name in (mic, speaker):
                listener.tells(f"{name}: .*; the call goes on without it until it is back")
            listener.plays_on("video")
            server.start(*two)
            for name in (mic, speaker):
                listener.tells(f"{name}: is back")
    hang_up(listener, caller)
    with wave.open(str(heard)) as f:
        loud = max(map(abs, array.array("h", f.readframes(f.getnframes()))), default=0)
    assert loud > 1000, f"the microphone gave at most {loud}"


def slow_window(streamer: str, tmp: Path, screens: dict[str, X], _: Sound) -> None:
    """One end waits for its window: what comes meanwhile does not make a path of that length."""
    for slow in SCREENS:
        screen = screens[slow]
        env: dict[str, dict[str, str]] = {end: {} for end in SCREENS}
        sink = {end: ["--sink", "none"] for end in SCREENS}
        env[slow], sink[slow] = {"DISPLAY": screen.name}, []
        screen.server.send_signal(signal.SIGSTOP)
        try:
            ends = pair(streamer, tmp, f"slow-{slow}",
                        *((env[end], [*TEST, *sink[end]]) for end in SCREENS))
            end = ends[list(SCREENS).index(slow)]
            until("the ends know each other", lambda: "talking to" in end.said())  # noqa: B023
            time.sleep(SLOW)
        finally:
            screen.server.send_signal(signal.SIGCONT)
        for one in ends:
            one.plays_on("video")
        hang_up(*ends)
        for one in ends:
            for media in ("video", "audio"):
                age = one.ages(media)
                assert age, f"{one.record.name}, {media}: no reports"
                assert max(age) < OLD, f"{one.record.name}, {media}: up to {max(age):.2f} s old"


def stand_still(streamer: str, tmp: Path, screens: dict[str, X], _: Sound) -> None:
    """One end is stopped soon after it was ready: what came meanwhile has times of capture, too."""
    for still in SCREENS:
        listener, caller = ends = pair(
            streamer, tmp, f"still-{still}",
            *(({"DISPLAY": screens[end].name}, TEST) for end in SCREENS))
        end = ends[list(SCREENS).index(still)]
        until("the ends know each other", lambda: "talking to" in end.said())  # noqa: B023
        time.sleep(READY)
        end.process.send_signal(signal.SIGSTOP)
        time.sleep(STOPPED)
        end.process.send_signal(signal.SIGCONT)
        time.sleep(4)
        hang_up(listener, caller)
        for one in ends:
            for media in ("video", "audio"):
                assert one.ages(media), f"{one.record.name}, {media}: no reports"
                untold = one.untold(media)
                assert not untold, f"{one.record.name}, {media}: {untold} pieces without a time"


def sound(streamer: str, tmp: Path, _: dict[str, X], server: Sound) -> None:
    """No sound server, then one, then none, then one: as loudspeaker and as microphone."""
    listener, caller = pair(
        streamer, tmp, "sound",
        (server.env, ["--source", "test", "--audio", "test", "--sink", "none"]),
        ({}, ["--source", "test", "--audio", "test", "--sink", "none", "--audio-sink", "none"]))
    lost = "loudspeaker: .*; the call goes on without it until it is back"
    listener.tells(lost)
    listener.plays_on("video")
    assert listener.rows("audio") <= 0, "sound is said to be played, and there is no loudspeaker"
    for turn in (1, 2):
        server.start()
        listener.tells("loudspeaker: is back", turn)
        listener.plays_on("audio")
        loudest = server.loudest()
        assert loudest > 1000, f"nothing is heard, at most {loudest}"
        server.stop()
        until("the loss is told", lambda: len(re.findall(lost, listener.said())) > turn)  # noqa: B023
        listener.rests("audio")
        listener.plays_on("video")
    listener.tells(lost, 3)
    hang_up(listener, caller)


def microphone(streamer: str, tmp: Path, _: dict[str, X], server: Sound) -> None:
    """The caller's microphone is that of a server which comes late and goes."""
    listener, caller = pair(
        streamer, tmp, "microphone",
        ({}, ["--source", "test", "--audio", "test", "--sink", "none", "--audio-sink", "none"]),
        (server.env, ["--source", "test", "--sink", "none", "--audio-sink", "none"]))
    lost = "microphone: .*; the call goes on without it until it is back"
    caller.tells(lost)
    for turn in (1, 2):
        server.start()
        caller.tells("microphone: is back", turn)
        listener.plays_on("audio")
        server.stop()
        until("the loss is told", lambda: len(re.findall(lost, caller.said())) > turn)  # noqa: B023
        listener.rests("audio")
        listener.plays_on("video")
    hang_up(listener, caller)


def quiet(streamer: str, tmp: Path, _: dict[str, X], server: Sound) -> None:
    """A microphone that is muted, or gives nothing, is told of; and that it is heard."""
    server.start()
    test = ["--source", "test", "--sink", "none", "--audio-sink", "none"]
    _, caller = ends = pair(streamer, tmp, "quiet", ({}, [*test, "--audio", "none"]),
                            (server.env, test))
    caller.tells("microphone: it has given nothing but silence for 10 s; is it muted")
    ticks = subprocess.Popen(
        ["gst-launch-1.0", "-q", "audiotestsrc", "is-live=true", "wave=ticks", "!", "pulsesink"],
        env={**os.environ, **server.env})
    caller.tells("microphone: it gives sound now")
    ticks.kill()
    ticks.wait()
    time.sleep(12)  # who says nothing is not muted
    server.control("suspend-sink", "speaker", "1")
    caller.tells("microphone: it has given nothing for 10 s")
    server.control("suspend-sink", "speaker", "0")
    caller.tells("microphone: it gives sound now", 2)
    hang_up(*ends)
    assert calls.events(caller.record, "quiet") == ["microphone"] * 2


def last_speaker(streamer: str, tmp: Path, _: dict[str, X], server: Sound) -> None:
    """The sound server's only loudspeaker goes before there was any sound, and comes back."""
    server.start()
    sound = tmp / "later.wav"
    listener, caller = pair(
        streamer, tmp, "last",
        (server.env, [*TEST[:2], "--audio", "none", "--sink", "none"]),
        ({}, [*TEST, "--audio", str(sound), "--sink", "none"]))
    listener.plays_on("video")
    server.control("unload-module", "module-null-sink")
    subprocess.run(["gst-launch-1.0", "-q", "audiotestsrc", "wave=ticks", "num-buffers=600", "!",
                    "wavenc", "!", "filesink", f"location={tmp / 'new.wav'}"], check=True)
    (tmp / "new.wav").rename(sound)
    listener.tells("loudspeaker: .*; the call goes on without it until it is back")
    listener.plays_on("video")
    server.control("load-module", "module-null-sink", "sink_name=speaker")
    listener.tells("loudspeaker: is back")
    listener.plays_on("audio")
    assert server.loudest() > 1000, "nothing is heard"
    hang_up(listener, caller)


def make_clip(path: Path) -> None:
    """Three seconds that a camera may give."""
    subprocess.run(
        ["gst-launch-1.0", "-q", "videotestsrc", "num-buffers=75", "!",
         "video/x-raw,width=64,height=48,framerate=25/1", "!", "x264enc", "!", "matroskamux", "!",
         "filesink", f"location={path}"], check=True)


def camera(streamer: str, tmp: Path, *_: object) -> None:
    """A source that is not there, comes, ends and begins again, and breaks off in the middle."""
    clip, whole = tmp / "camera.mkv", tmp / "whole.mkv"
    make_clip(whole)
    test = ["--audio", "test", "--sink", "none", "--audio-sink", "none"]
    listener, caller = pair(streamer, tmp, "camera", ({}, ["--source", "test", *test]),
                            ({}, ["--source", str(clip), *test]))
    lost = re.escape(str(clip)) + ": .*; the call goes on without it until it is back"
    caller.tells(lost)
    listener.plays_on("audio")
    listener.rests("video")
    whole.rename(clip)
    caller.tells("camera.mkv: is back")
    for _ in range(3):  # 3 s long: so it has begun again
        listener.plays_on("video")
    broken = bytes(2000)
    for write in (broken, clip.read_bytes()):  # in place: the file is open
        clip.write_bytes(write)
        if write is broken:
            caller.tells(lost, 2)
            listener.rests("video")
            listener.plays_on("audio")
    caller.tells("camera.mkv: is back", 2)
    listener.plays_on("video")
    hang_up(listener, caller)
    assert len(calls.events(caller.record, "lost")) == 2, calls.events(caller.record, "lost")


def anew(streamer: str, tmp: Path, *_: object) -> None:
    """A y4m file is cut short in a call, twice, and made anew: of another size the second time."""
    clip = tmp / "camera.y4m"
    test = ["--audio", "test", "--sink", "none", "--audio-sink", "none"]
    streams.write_clip(clip)
    whole = clip.read_bytes()
    listener, caller = pair(streamer, tmp, "anew", ({}, ["--source", "test", *test]),
                            ({}, ["--source", str(clip), *test]))
    listener.plays_on("video")
    for turn in (1, 2):
        clip.write_bytes(b"")  # in place: the file is open
        caller.tells(re.escape(str(clip)) + ": .*; the call goes on without it until it is back",
                     turn)
        listener.rests("video")
        clip.write_bytes(whole if turn == 1 else smaller())
        caller.tells("camera.y4m: is back", turn)
        listener.plays_on("video")
    hang_up(listener, caller)


def smaller() -> bytes:
    """A second of grey."""
    return b"YUV4MPEG2 W64 H48 F25:1 Ip A1:1 C420jpeg\n" + 25 * (
        b"FRAME\n" + 64 * 48 * 3 // 2 * b"\x80")


def run(test: Callable[..., None], streamer: str) -> None:
    """With screens and a sound server; nothing of it stays."""
    Path("/tmp/.X11-unix").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        server = Sound(Path(name))
        screens = {end: X(number) for end, number in SCREENS.items()}
        try:
            test(streamer, Path(name), screens, server)
        finally:
            for program in (*End.processes, *(screen.server for screen in screens.values())):
                program.kill()
                program.wait()
            End.processes.clear()
            if server.socket.exists():
                server.stop()


TESTS: dict[str, Callable[[str], None]] = {
    name: partial(run, test) for name, test in (
        ("slow window", slow_window), ("an end stands still", stand_still), ("windows", windows),
        ("keys in a window", keys), ("camera off", camera_off), ("sizes", sizes),
        ("devices by name", chosen), ("loudspeaker", sound), ("microphone", microphone),
        ("quiet microphone", quiet), ("last loudspeaker", last_speaker),
        ("camera", camera), ("camera file anew", anew))
}
