# SPDX-License-Identifier: GPL-2.0
"""A call between two hosts inside the guest; TCP joins on the way of one of them for a while.

Called as `python -m paqm_lab.call_guest CONFIG.json`. P-AQM is on both directions of the
bottleneck.
"""

import json
import secrets
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from paqm_lab import topology

CALLER, PORT = "c", 5090
HOST = topology.namespace_of(CALLER)
MODULES = ("paqm_feedback.ko", "sch_paqm.ko")
READY = 10.0  # s that a program has for starting or ending


class Trouble(Exception):
    """The run is worth nothing; the text says why."""


def start_daemon(config: dict[str, Any], name: str, host: str, device: str) -> str:
    """paqmd of a host; its socket."""
    socket = f"/run/paqmd-{name}.sock"
    command = [f"{config['build']}/feedback-daemon/paqmd", "-i", device]
    command += ["--socket", socket, "--control", f"{socket}.ctl"]
    daemon = topology.start(host, command, Path(config["out"]) / f"paqmd-{name}.log")
    for _ in range(int(READY / 0.01)):
        if Path(socket).exists():
            return socket
        if daemon.poll() is not None:
            break
        time.sleep(0.01)
    raise Trouble(f"paqmd-{name} does not start, see its log")


def run(config: dict[str, Any]) -> None:
    out, build = Path(config["out"]), config["build"]
    for name in MODULES:
        topology.run("insmod", str(Path(config["modules"]) / name))
    topology.build(
        {**config, "media": [{"name": CALLER, "address": "10.1.1.2"}], "elastic": [1], "link": None}
    )
    back = ["tc", "-n", topology.FAR, "qdisc", "replace", "dev", topology.ROUTER, "root"]
    topology.run(*back, *config["variant"]["qdisc"].split())
    # a test key of this run; deterministic like all of its random numbers
    secret = out / "secret"
    secret.touch(0o600)
    secret.write_text(secrets.token_hex(24) + "\n")
    common = ["--secret", str(secret), "--source", config["clip"], "--audio", config["sound"]]
    common += ["--sink", "none", "--audio-sink", "none", "--rate-max", config["rate_max"]]
    common += ["--duration", str(config["duration"])]
    call = [f"{build}/streamer/paqm-streamer", "call"]
    ends = {}
    for name, host, device, more in (
        ("listener", topology.SINK, topology.FAR, ["--listen", f"0.0.0.0:{PORT}"]),
        ("caller", HOST, topology.ROUTER, [f"{topology.SINK_ADDRESS}:{PORT}"]),
    ):
        socket = start_daemon(config, name, host, device)
        rest = ["--name", name, "--record", str(out / name), "--paqmd", socket]
        ends[name] = topology.start(host, [*call, *more, *common, *rest], out / f"{name}.log")
        time.sleep(1)
    begin, end = config["tcp"]
    bulk = [sys.executable, "-m", "paqm_lab.bulk", "--port", "5201"]
    topology.start(topology.SINK, bulk, out / "tcp-sink.log")
    time.sleep(begin)
    send = [*bulk, "--to", topology.SINK_ADDRESS, "--congestion-control", "cubic"]
    topology.start(topology.TCP, [*send, "--seconds", str(end - begin)], out / "tcp.log")
    for _ in range(int(config["duration"] - begin)):
        time.sleep(1)
        for name, program in ends.items():
            if program.poll():
                raise Trouble(f"{name} failed, see {name}.log")
    for name, program in ends.items():
        if program.wait(timeout=READY):
            raise Trouble(f"{name} failed, see {name}.log")


def main(config_file: str) -> int:
    try:
        run(json.loads(Path(config_file).read_text()))
    except (Trouble, topology.CommandFailed, subprocess.TimeoutExpired) as err:
        print(err, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
