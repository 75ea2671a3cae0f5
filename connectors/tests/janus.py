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

TOP = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "feedback-daemon" / "tests"))
sys.path.insert(0, str(TOP / "feedback-daemon" / "wireshark"))

import wire  # noqa: E402
from rig import PATIENCE, SENDER_IP, Trial, run_checks  # noqa: E402

ROOT = os.environ.get("JANUS_ROOT", "")
CEILING = 2_000_000

CORE = """general: {{
 configs_folder = "{here}"
 plugins_folder = "{lib}/janus/plugins"
 transports_folder = "{lib}/janus/transports"
 events_folder = "{here}/none"
 loggers_folder = "{here}/none"
 admin_secret = "admin"
}}
nat: {{ ice_enforce_list = "10.77." }}
plugins: {{ disable = "{others}" }}
transports: {{ disable = "{wires}" }}
"""
HTTP = """general: {{ base_path = "/janus" http = true port = 8088 ip = "{ip}" }}
admin: {{ admin_base_path = "/admin" admin_http = true admin_port = 7088 admin_ip = "{ip}" }}
"""
ROOM = """room-1234: {{ secret = "room" bitrate = {ceiling} videocodec = "h264" }}
"""


def libraries() -> Path:
    """Where Janus has its plugins."""
    found = sorted(Path(f"{ROOT}/usr/lib").glob("*/janus"))
    return found[0].parent if found else Path("/nonexistent")


def configure(here: Path) -> None:
    """Janus with one room."""
    lib = libraries()

    def but(folder: str, keep: str) -> str:
        return ",".join(path.name for path in (lib / "janus" / folder).glob("*.so")
                        if path.name != keep)

    (here / "janus.jcfg").write_text(CORE.format(
        here=here, lib=lib, others=but("plugins", "libjanus_videoroom.so"),
        wires=but("transports", "libjanus_http.so")))
    (here / "janus.transport.http.jcfg").write_text(HTTP.format(ip=SENDER_IP))
    (here / "janus.plugin.videoroom.jcfg").write_text(ROOM.format(ceiling=CEILING))


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
            load = subprocess.Popen(
                [*inside, t.net.router, f"{programs}/paqm-sfu-load", "janus", "--server", api[0],
                 "--layers", layers, "--until", "120"], stdout=subprocess.PIPE)
            started.append(load)
            port = flow(t)
            remb(load, CEILING)
            print("ok: without advice, the ceiling", flush=True)
            for seq, rate in ((1, 900_000), (2, 400_000)):
                t.answer(wire.build(wire.quoted(t.packet_to(port)), seq, rate, period=5000))
                remb(load, rate / 1.05)
            print("ok: the publisher is told what the router allows", flush=True)
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
