#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""paqm-janus with the real Janus, paqmd, a publisher and a viewer: what a router says about the
packets to the viewer is what Janus tells the publisher. Needs root, and Janus (Debian: janus).

Usage: janus.py PAQMD PAQMCTL PROGRAMS LAYERS

PROGRAMS: directory of paqm-janus and paqm-sfu-load; LAYERS: directory with a picture to publish.
JANUS_ROOT: where the package is unpacked, if it is not installed.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "feedback-daemon" / "tests"))
sys.path.insert(0, str(TOP / "feedback-daemon" / "wireshark"))

import wire  # noqa: E402
from rig import PATIENCE, SENDER_IP, Trial, run_checks  # noqa: E402

ROOT = os.environ.get("JANUS_ROOT", "")
CEILING = 2_000_000

CONFIGURATION = Path(__file__).resolve().parent / "janus"


def libraries() -> Path:
    """Where Janus has its plugins."""
    found = sorted(Path(f"{ROOT}/usr/lib").glob("*/janus"))
    return found[0].parent if found else Path("/nonexistent")


def configure(here: Path) -> None:
    """Janus as the lab has it, wherever it is."""
    for path in CONFIGURATION.glob("*.jcfg"):
        text = path.read_text().replace('"/usr/lib/', f'"{ROOT}/usr/lib/')
        (here / path.name).write_text(text)


def remb(load: subprocess.Popen[bytes], want: float, patience: float = PATIENCE) -> None:
    """Until the publisher is told this rate."""
    assert load.stdout
    end, told = time.monotonic() + patience, []
    while time.monotonic() < end:
        if not select.select([load.stdout], [], [], 0.5)[0]:
            continue
        line = load.stdout.readline()
        assert line, "the publisher has ended"
        rate = json.loads(line).get("remb")
        told += [rate] if rate else []
        if rate and abs(rate / want - 1) < 0.03:
            return
    raise AssertionError(f"expected {want:.0f}, the publisher was told {told}")


def flow(t: Trial) -> int:
    """The viewer's port, when paqmd knows it."""
    found: list[str] = []

    def there() -> bool:
        found[:] = [one["flow"] for one in t.ask("flows")["flows"]]
        return len(found) == 1

    t.until(there, "the viewer's flow to be registered")
    return int(found[0].rpartition(":")[2])


def ask(t: Trial, url: str, **words: Any) -> dict[str, Any]:
    """What Janus answers."""
    text = json.dumps(words | {"transaction": "test", "admin_secret": "admin"})
    program = ("import sys, urllib.request as r\n"
               "print(r.urlopen(r.Request(sys.argv[1], sys.argv[2].encode())).read().decode())")
    done = subprocess.run(["ip", "netns", "exec", t.net.sender, sys.executable, "-c", program, url,
                           text], capture_output=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def publisher(t: Trial, admin: str) -> str:
    """His session and handle."""
    for session in ask(t, admin, janus="list_sessions")["sessions"]:
        for handle in ask(t, f"{admin}/{session}", janus="list_handles")["handles"]:
            of = f"/{session}/{handle}"
            info = ask(t, admin + of, janus="handle_info")["info"]
            if info["plugin_specific"].get("type") == "publisher":
                return of
    raise AssertionError("Janus has no publisher")


def check(t: Trial, programs: str, layers: str) -> None:
    """Ceiling, advice, less advice, none."""
    inside = ["ip", "netns", "exec"]
    t.media.close()
    t.start("-i", "veth0")
    with tempfile.TemporaryDirectory() as name:
        configure(Path(name))
        env = os.environ | {"LD_LIBRARY_PATH": str(libraries())} if ROOT else dict(os.environ)
        log = (Path(name) / "log").open("wb")
        started = [subprocess.Popen(
            [*inside, t.net.sender, f"{ROOT}/usr/bin/janus", "-F", name], env=env, stdout=log)]
        t.until(lambda: "Admin/monitor HTTP webserver started" in
                (Path(name) / "log").read_text(errors="replace"), "Janus to be ready")
        try:
            api = [f"http://{SENDER_IP}:8088/janus", f"http://{SENDER_IP}:7088/admin"]
            started.append(subprocess.Popen([
                *inside, t.net.sender, f"{programs}/paqm-janus", "--api", api[0], "--admin", api[1],
                "--admin-secret", "admin", "--room", "1234", "--ceiling", str(CEILING),
                "--paqmd", str(t.ipc)]))
            program = [*inside, t.net.router, f"{programs}/paqm-sfu-load"]
            to = ["--server", f"{SENDER_IP}:8088", "--janus", "1234", "--until", "120"]
            load = subprocess.Popen([*program, "publish", *to, "--layers", layers],
                                    stdout=subprocess.PIPE)
            started.append(load)
            remb(load, CEILING)  # the room is there
            started.append(subprocess.Popen([*program, "view", *to], stdout=subprocess.DEVNULL))
            port = flow(t)
            remb(load, CEILING)
            print("ok: without advice, the ceiling", flush=True)
            for seq, rate in ((1, 900_000), (2, 400_000)):
                t.answer(wire.build(wire.quoted(t.packet_to(port)), seq, rate, period=5000))
                remb(load, rate / 1.05)
            print("ok: the publisher is told what the router allows", flush=True)
            of = publisher(t, api[1])
            for own, expected in ((300_000, 300_000), (3_000_000, 400_000 / 1.05)):
                time.sleep(2.5)  # else it may be taken for what paqm-janus has set before
                ask(t, api[0] + of, janus="message", body={"request": "configure", "bitrate": own})
                remb(load, own)
                remb(load, expected)
            print("ok: what his page asks for holds, if it is less than that", flush=True)
            remb(load, CEILING)  # the router has fallen silent
            print("ok: the ceiling again", flush=True)
        finally:
            for one in reversed(started):
                one.kill()
                one.wait()
            log.close()
    t.stop()


if __name__ == "__main__":
    if not shutil.which(f"{ROOT}/usr/bin/janus"):
        print("skipped: no Janus here (Debian: janus)")
        sys.exit(77)
    sys.exit(run_checks("PAQMD PAQMCTL PROGRAMS LAYERS", [check]))
