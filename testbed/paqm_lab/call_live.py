# SPDX-License-Identifier: GPL-2.0
"""`make call-live`: the call of call-demo in real time, over loopback and with devices.

Over loopback camera and microphone of both ends are the clip and its sound, as in the lab.

For devices a guest has a kernel with simulated cameras (vivid) and a sound card (snd-aloop), and
runs as fast as the clock on the wall does. Each end has a camera, a microphone, a window on an X
server and a loudspeaker, as it has on a desk; the clocks of their sound cards are 200 ppm apart.
Screenshots prove that the window shows the peer's camera; then a camera is unplugged in a second,
short call. Writes what call-demo writes, and the screenshots. A machine that stands still for a
moment, as a virtual one may, shows as a freeze of both ends; such moments are told.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from paqm_lab import cache, call_guest, call_lab, call_report, clip, kernel, lab, uml
from paqm_lab.errors import LabError

PROGRAMS = ["Xvfb", "gst-launch-1.0"]
STALL = 0.1  # s
PRIORITY = 1  # of real time: before other work on the machine, if that is allowed


def watch_machine(over: threading.Event, stalls: list[float]) -> None:
    """Notes how long the machine itself stood still, beyond STALL."""
    last = time.monotonic()
    while not over.wait(0.01):
        now = time.monotonic()
        if now - last > STALL:
            stalls.append(now - last)
        last = now


def run_loopback(out: Path, build: str, duration: int) -> None:
    """A call between two processes of this machine."""
    source = clip.prepare(cache.cache_dir(), call_lab.say)
    sound = clip.prepare_sound(cache.cache_dir(), call_lab.say)
    out.mkdir(parents=True)
    secret = out / "secret"
    secret.touch(0o600)
    secret.write_text(secrets.token_hex(24) + "\n")
    common = ["--secret", str(secret), "--rate-max", "2mbit", "--duration", str(duration)]
    common += ["--source", str(source), "--audio", str(sound), "--sink", "none"]
    common += ["--audio-sink", "none"]
    peer = f"127.0.0.1:{call_guest.PORT}"
    ends = {}
    for name, where in (("listener", ["--listen", peer]), ("caller", [peer])):
        rest = [*where, *common, "--name", name, "--record", str(out / name)]
        with (out / f"{name}.log").open("wb") as log:
            command = [f"{build}/streamer/paqm-streamer", "call", *rest]
            ends[name] = subprocess.Popen(command, stdout=log, stderr=log)
        time.sleep(1)
    for name, program in ends.items():
        if program.wait(timeout=duration + 60):
            raise LabError(f"the call over loopback failed, see {out / name}.log")


def run(out: Path, duration: int) -> dict[str, Any]:
    """All calls; what was found."""
    cache.need_programs(PROGRAMS, "call-live")
    built = kernel.ensure("live", call_lab.say)
    modules = kernel.build_modules(built, call_lab.say)
    environment = uml.environment(built, modules)
    lab.make_way(out)
    config = {
        "out": str(out),
        "build": environment["PAQM_BUILD"],
        "modules": str(modules),
        "duration": duration,
        "tcp": (duration // 4, 3 * duration // 4),
        "rate_max": "2mbit",
        "path": {"bottleneck": 3_000_000, "rtt_ms": 40},
        "variant": call_lab.VARIANT,
    }
    (out / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    call_lab.say(f"call-live: a call of {duration} s in real time, over loopback and with devices")
    job = uml.Job(
        directory=out / "job",
        command=[sys.executable, "-m", "paqm_lab.call_live_guest", str(out / "config.json")],
        environment=environment,
        real_time=True,
        timeout=duration + 120,
    )
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(PRIORITY))
    except PermissionError:
        call_lab.say("call-live: not root: other work on this machine may show as freezes")
    stalls: list[float] = []
    over = threading.Event()
    watcher = threading.Thread(target=watch_machine, args=(over, stalls))
    watcher.start()
    try:
        run_loopback(out / "loopback", environment["PAQM_BUILD"], duration)
        result = uml.run(built, job, lambda text: None)
    finally:
        over.set()
        watcher.join()
    if not result.good:
        said = result.output.read_text(errors="replace").strip().splitlines()
        raise LabError(f"the call failed: {said[-1] if said else result.explain()}")
    found: dict[str, Any] = json.loads((out / "found.json").read_text())
    found["stalls_ms"] = [round(stall * 1000) for stall in stalls]
    return found


def check(name: str, end: str, good: bool, source: str) -> dict[str, Any]:
    """A check of yes or no."""
    row = {"variant": end, "name": name, "value": int(good), "relation": ">=", "limit": 1}
    return {**row, "unit": "", "pass": good, "source": source}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/call-live"),
                        help="for the results (%(default)s)")
    parser.add_argument("--duration", type=int, default=call_lab.DURATION, metavar="S",
                        help="seconds (%(default)s)")
    args = parser.parse_args()
    out = args.out.resolve()
    try:
        with lab.alone_in(out):
            found = run(out, args.duration)
        checks = []
        for name in call_lab.ENDS:
            call_lab.say(f"call-live: {call_report.write(out / 'loopback' / name)}")
            rows = json.loads((out / "loopback" / name / "result.json").read_text())["checks"]
            checks += [{**row, "variant": f"{name}, loopback"} for row in rows]
        for name in call_lab.ENDS:
            call_lab.say(f"call-live: {call_report.write(out / name)}")
            checks += json.loads((out / name / "result.json").read_text())["checks"]
            checks.append(
                check("window", name, found["windows"][name], f"{name}.png: the peer's camera")
            )
        checks.append(
            check("unplugged", "caller", found["unplugged"], "unplugged: the call goes on")
        )
        result = {"version": 1, "scenario": "call-live", "seed": 0, "checks": checks}
        result["stalls_ms"] = found["stalls_ms"]
        if found["stalls_ms"]:
            call_lab.say(f"call-live: the machine stood still, ms: {found['stalls_ms']}")
        (out / "result.json").write_text(json.dumps(result, indent=1) + "\n")
        from paqm_lab.checks import print_table

        return print_table(out)
    except LabError as err:
        call_lab.say(f"paqm-lab: {err}")
        return 2
