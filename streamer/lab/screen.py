#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The screen of a Wayland session in a call, on this machine and in real time.

screen.py --build DIRECTORY

D-Bus, PipeWire and xdg-desktop-portal are real, in a session of their own. In place of a desktop,
which shows a dialogue and hands out its screen, this program is the portal's backend: it answers
for the user, and the screen is a test picture of 1280x720. Prints `ok NAME` or
`not ok NAME: why`. /usr/bin/python3 runs it, whose distribution has Gio for it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gi.repository import Gio, GLib

CAST = "org.freedesktop.impl.portal.ScreenCast"
NAME = "org.freedesktop.impl.portal.desktop.paqmtest"
DESKTOP = "/org/freedesktop/portal/desktop"
PORTAL = "/usr/libexec/xdg-desktop-portal"
REQUEST = '<arg type="o" direction="in"/>' * 2 + '<arg type="s" direction="in"/>'
OPTIONS = '<arg type="a{sv}" direction="in"/>'
ANSWER = '<arg type="u" direction="out"/><arg type="a{sv}" direction="out"/>'
INTERFACE = f"""<node><interface name="{CAST}">
<method name="CreateSession">{REQUEST}{OPTIONS}{ANSWER}</method>
<method name="SelectSources">{REQUEST}{OPTIONS}{ANSWER}</method>
<method name="Start">{REQUEST}<arg type="s" direction="in"/>{OPTIONS}{ANSWER}</method>
<property name="AvailableSourceTypes" type="u" access="read"/>
<property name="AvailableCursorModes" type="u" access="read"/>
<property name="version" type="u" access="read"/></interface></node>"""
PROPERTIES = {"AvailableSourceTypes": 3, "AvailableCursorModes": 3, "version": 4}
GIVEN, CANCELLED, FAILED = range(3)
SECONDS, FPS = 6, 30
PORT = 39090
checks = [0, 0]  # passed, failed


def check(name: str, good: object, why: object = "") -> None:
    checks[not good] += 1
    print(f"ok {name}" if good else f"not ok {name}: {why}", flush=True)


def answer(node: int, code: int) -> None:
    """The backend: the user's answer to each dialogue is `code`, the screen a node of PipeWire."""

    def call(*words: Any) -> None:
        method, invocation = words[4], words[6]
        results: dict[str, Any] = {}
        if method == "Start" and code == GIVEN:
            screen = (node, {"source_type": GLib.Variant("u", 1)})
            results["streams"] = GLib.Variant("a(ua{sv})", [screen])
        given = code if method == "Start" else GIVEN
        invocation.return_value(GLib.Variant("(ua{sv})", (given, results)))

    def offer(bus: Any, _: str) -> None:
        bus.register_object(DESKTOP, Gio.DBusNodeInfo.new_for_xml(INTERFACE).interfaces[0], call,
                            lambda *words: GLib.Variant("u", PROPERTIES[words[4]]), None)

    Gio.bus_own_name(Gio.BusType.SESSION, NAME, 0, offer, None, None)
    GLib.MainLoop().run()


@contextlib.contextmanager
def running(*words: object, log: Path) -> Iterator[None]:
    with log.open("ab") as file:
        program = subprocess.Popen([*map(str, words)], stdout=file, stderr=file)
    try:
        yield
    finally:
        program.terminate()
        program.wait()


def wait_for(what: str, found: Any) -> Any:
    """What a function returns as soon as that is something."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        with contextlib.suppress(subprocess.CalledProcessError, ValueError, LookupError):
            if value := found():
                return value
        time.sleep(0.2)
    raise TimeoutError(what)


def find_node() -> int:
    shown = subprocess.run(["pw-dump"], capture_output=True, check=True, text=True).stdout
    return next((one["id"] for one in json.loads(shown)
                 if one.get("info", {}).get("props", {}).get("node.name") == "paqm-screen"), 0)


def has_name(name: str) -> bool:
    words = ["gdbus", "call", "--session", "--dest", "org.freedesktop.DBus", "--object-path", "/",
             "--method", "org.freedesktop.DBus.NameHasOwner", name]
    done = subprocess.run(words, capture_output=True, check=True, text=True)
    return "true" in done.stdout


@contextlib.contextmanager
def desktop(home: Path, code: int) -> Iterator[None]:
    """The portal, with a user who answers so."""
    node, log = wait_for("a screen in PipeWire", find_node), home / "portal.log"
    with contextlib.ExitStack() as stack:
        backend = ("/usr/bin/python3", Path(__file__).resolve(), "--answer", node, code)
        stack.enter_context(running(*backend, log=log))
        wait_for("the backend", lambda: has_name(NAME))
        stack.enter_context(running(PORTAL, "-r", log=log))
        wait_for("the portal", lambda: has_name("org.freedesktop.portal.Desktop"))
        yield


def call(home: Path, streamer: str) -> tuple[int, str, bytes]:
    """Status and words of a caller that shows its screen, and what the other end has seen."""
    seen, secret, where = home / "seen.y4m", home / "secret", f"127.0.0.1:{PORT}"
    seen.unlink(missing_ok=True)
    secret.touch(0o600)
    secret.write_text(secrets.token_hex(24))
    rest = ["--secret", str(secret), "--audio", "none", "--audio-sink", "none", "--paqmd", "none"]
    with running(streamer, "call", "--listen", where, *rest, "--source", "none", "--sink", seen,
                 log=home / "listener.log"):
        time.sleep(1)
        done = subprocess.run(
            [streamer, "call", where, *rest, "--source", "screen", "--sink", "none",
             "--duration", str(SECONDS)],
            capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)  # fmt: skip
    return done.returncode, done.stderr, seen.read_bytes() if seen.exists() else b""


def judge(home: Path, streamer: str) -> None:
    with desktop(home, GIVEN):
        status, said, seen = call(home, streamer)
    check("a call shows the screen", status == 0, said)
    check("the user is asked to choose", "choose a screen" in said, said)
    head, _, rest = seen.partition(b"\n")
    pictures = rest.split(b"FRAME\n")[1:]
    check("the other end sees it, in the size of the call", b" W640 H360 " in head, head)
    check("and moving", len(set(pictures)) > SECONDS * FPS // 4, len(set(pictures)))
    check("with the test picture's white ball", sum(max(p[: 640 * 360]) > 200 for p in pictures) >
          len(pictures) // 2)
    with desktop(home, CANCELLED):
        status, said, _ = call(home, streamer)
    check("a user who cancels is told so", status == 1 and "you have chosen none" in said, said)
    with desktop(home, FAILED):
        status, said, _ = call(home, streamer)
    check("a portal that fails is named", status == 1 and "portal fails" in said, said)


def session(build: Path) -> int:
    """Within a session of its own."""
    home = Path(os.environ["XDG_RUNTIME_DIR"])
    streamer = str(build.resolve() / "streamer" / "paqm-streamer")
    with contextlib.ExitStack() as stack:
        for program in ("pipewire", "wireplumber"):
            stack.enter_context(running(program, log=home / f"{program}.log"))
            wait_for("PipeWire", (home / "pipewire-0").exists)
        stack.enter_context(running(
            "gst-launch-1.0", "videotestsrc", "is-live=true", "pattern=ball", "!",
            "video/x-raw,format=BGRx,width=1280,height=720,framerate=30/1", "!", "pipewiresink",
            "mode=provide", "stream-properties=p,media.class=Video/Source,node.name=paqm-screen",
            log=home / "screen.log"))  # fmt: skip
        judge(home, streamer)
    print(f"{checks[0]} passed, {checks[1]} failed")
    return checks[1] != 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--build", type=Path, default=Path("build"))
    parser.add_argument("--answer", nargs=2, type=int, help=argparse.SUPPRESS)
    parser.add_argument("--session", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.answer:
        answer(*args.answer)
    if args.session:
        return session(args.build)
    with tempfile.TemporaryDirectory() as home:
        portals = Path(home) / "portals"
        portals.mkdir()
        (portals / "paqmtest.portal").write_text(
            f"[portal]\nDBusName={NAME}\nInterfaces={CAST};\nUseIn=paqmtest\n")
        where = {"XDG_RUNTIME_DIR": home, "HOME": home, "XDG_CURRENT_DESKTOP": "paqmtest",
                 "XDG_DESKTOP_PORTAL_DIR": str(portals), "WAYLAND_DISPLAY": "wayland-0",
                 "DISPLAY": ""}
        done = subprocess.run(
            ["dbus-run-session", "--", "/usr/bin/python3", __file__, "--session", "--build",
             str(args.build)], env={**os.environ, **where}, check=False)  # fmt: skip
        # the portal's own file system, which nobody serves any more
        subprocess.run(["fusermount3", "-u", "-z", "-q", f"{home}/doc"], check=False)
        return done.returncode


if __name__ == "__main__":
    sys.exit(main())
