# SPDX-License-Identifier: GPL-2.0
"""Trace flows inside the guest: one sender host, the router with the queue under test, one sink.

Called as `python -m paqm_lab.trace_guest CONFIG.json`; prints nothing but trouble. Writes the
queue's statistics at the end to tc.json.
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from paqm_lab import topology

SENDER = "trace"
HOST = topology.namespace_of(SENDER)
PORT = 6000
LEAD = 0.5  # s that the receiver starts before the sender
TAIL = 2.0  # s for what is under way at the end
GRACE = 3.0  # s after which a sink gives up a connection whose end got lost
READY = 10.0  # s that the daemon has for starting
MODULES = ("paqm_feedback.ko", "sch_paqm.ko")


def start_elastic(config: dict[str, Any]) -> dict[str, subprocess.Popen[bytes]]:
    """The sinks and sources of all groups of TCP flows; each group begins at its time."""
    programs = {}
    bulk = [sys.executable, "-m", "paqm_lab.bulk", "--port"]
    for group in config["elastic"]:
        name, flows, out = group["name"], group["flows"], Path(config["out"])
        sink = [*bulk, str(group["port"]), "--flows", str(flows), "--seconds"]
        sink += [str(LEAD + group["stop"] + GRACE)]
        log = out / f"sink-{name}.log"
        programs[f"sink-{name}"] = topology.start(topology.SINK, sink, log)
        send = [*bulk, str(group["port"]), "--to", topology.SINK_ADDRESS, "--starts"]
        send += [",".join([str(LEAD + group["start"])] * flows)]
        send += ["--seconds", str(LEAD + group["stop"])]
        send += ["--congestion-control", group["congestion_control"]]
        log = out / f"load-{name}.log"
        programs[f"load-{name}"] = topology.start(topology.TCP, send, log)
    return programs


def run(config: dict[str, Any]) -> str | None:
    """The whole run; what went wrong, or nothing."""
    out, build = Path(config["out"]), Path(config["build"])
    for name in MODULES:
        topology.run("insmod", str(Path(config["modules"]) / name))
    topology.build({**config, "media": [{"name": SENDER, "address": "10.1.1.2"}]})
    streamer = str(build / "streamer" / "paqm-streamer")
    socket = "/run/paqmd-trace.sock"
    command = [str(build / "feedback-daemon" / "paqmd"), "-i", topology.ROUTER]
    command += ["--socket", socket, "--control", f"{socket}.ctl"]
    command += ["--use", config["variant"].get("use", "erf")]
    daemon = topology.start(HOST, command, out / "paqmd.log")
    for _ in range(int(READY / 0.01)):
        if Path(socket).exists() or daemon.poll() is not None:
            break
        time.sleep(0.01)
    to = f"{topology.SINK_ADDRESS}:{PORT}"
    flows = ["--flows", str(config["flows"])]
    length = config["duration"]
    command = [streamer, "recv", "--trace", "--listen", to, *flows, "--log", str(out / "recv")]
    command += ["--record", str(out / "first.h264"), "--duration", str(LEAD + length + TAIL)]
    receiver = topology.start(topology.SINK, command, out / "recv.log")
    elastic = start_elastic(config)
    time.sleep(LEAD)
    command = [streamer, "send", "--trace", config["ladder"], "--to", to, *flows, "--loop"]
    command += ["--log", str(out / "send"), "--paqmd", socket, "--duration", str(length)]
    command += ["--seed", str(config["seed"]), *config["variant"]["sender"]]
    sender = topology.start(HOST, command, out / "send.log")
    device = topology.BOTTLENECK
    for _ in range(int(length + TAIL)):
        time.sleep(1)
    text = topology.run("tc", "-n", topology.ROUTER, "-s", "-j", "qdisc", "show", "dev", device)
    (out / "tc.json").write_text(text)
    for name, program in {"send": sender, "recv": receiver, **elastic}.items():
        if program.wait(timeout=READY):
            log = out / f"{name}.log"
            return f"{name} failed, see {log.name}: {topology.last_words(log)}"
    if daemon.poll() is not None:
        return f"paqmd ended, see paqmd.log: {topology.last_words(out / 'paqmd.log')}"
    daemon.terminate()
    daemon.wait(timeout=READY)
    return None


def main(config_file: str) -> int:
    try:
        error = run(json.loads(Path(config_file).read_text()))
    except (topology.CommandFailed, subprocess.TimeoutExpired) as err:
        error = str(err)
    if error:
        print(error, file=sys.stderr)
    return 1 if error else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
