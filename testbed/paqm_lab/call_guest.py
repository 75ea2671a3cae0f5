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
# host of each end, and its device towards the other
ENDS = {
    "listener": (topology.SINK, topology.FAR),
    "caller": (HOST, topology.ROUTER),
}
READY = 10.0  # s that a program has for starting or ending


class Trouble(Exception):
    """The run is worth nothing; the text says why."""


def socket_of(name: str) -> str:
    """Where the paqmd of an end listens."""
    return f"/run/paqmd-{name}.sock"


def start_daemon(config: dict[str, Any], name: str, host: str, device: str) -> None:
    """paqmd of a host."""
    socket = socket_of(name)
    command = [f"{config['build']}/feedback-daemon/paqmd", "-i", device]
    command += ["--socket", socket, "--control", f"{socket}.ctl"]
    daemon = topology.start(host, command, Path(config["out"]) / f"paqmd-{name}.log")
    for _ in range(int(READY / 0.01)):
        if Path(socket).exists():
            return
        if daemon.poll() is not None:
            break
        time.sleep(0.01)
    raise Trouble(f"paqmd-{name} does not start, see its log")


def lay_out(config: dict[str, Any]) -> None:
    """The network, P-AQM on both directions of its bottleneck, and paqmd at both ends."""
    for name in MODULES:
        topology.run("insmod", str(Path(config["modules"]) / name))
    topology.build(
        {**config, "media": [{"name": CALLER, "address": "10.1.1.2"}], "elastic": [1], "link": None}
    )
    back = ["tc", "-n", topology.FAR, "qdisc", "replace", "dev", topology.ROUTER, "root"]
    topology.run(*back, *config["variant"]["qdisc"].split())
    for name, (host, device) in ENDS.items():
        start_daemon(config, name, host, device)


def start_ends(
    config: dict[str, Any],
    out: Path,
    around: dict[str, list[str]],
    options: dict[str, list[str]],
) -> dict[str, subprocess.Popen[bytes]]:
    """Both ends of a call; `around`: what their command lines begin with."""
    # a test key of this run; deterministic like all of its random numbers
    secret = out / "secret"
    secret.touch(0o600)
    secret.write_text(secrets.token_hex(24) + "\n")
    common = ["--secret", str(secret), "--rate-max", config["rate_max"]]
    call = [f"{config['build']}/streamer/paqm-streamer", "call"]
    ends = {}
    for name, where in (
        ("listener", ["--listen", f"0.0.0.0:{PORT}"]),
        ("caller", [f"{topology.SINK_ADDRESS}:{PORT}"]),
    ):
        rest = ["--name", name, "--record", str(out / name), "--paqmd", socket_of(name)]
        command = [*around[name], *call, *where, *common, *options[name], *rest]
        ends[name] = topology.start(ENDS[name][0], command, out / f"{name}.log")
        time.sleep(1)
    return ends


def watch_ends(ends: dict[str, subprocess.Popen[bytes]], seconds: float) -> None:
    """For so long, as long as none fails."""
    for _ in range(int(seconds)):
        time.sleep(1)
        for name, program in ends.items():
            if program.poll():
                raise Trouble(f"{name} failed, see {name}.log")


def await_ends(ends: dict[str, subprocess.Popen[bytes]], seconds: float) -> None:
    """Until both have ended, `seconds` from now."""
    watch_ends(ends, seconds)
    for name, program in ends.items():
        if program.wait(timeout=READY):
            raise Trouble(f"{name} failed, see {name}.log")


def share_with_tcp(config: dict[str, Any]) -> None:
    """Waits for the time of the TCP flow on the caller's way, and starts it."""
    out = Path(config["out"])
    begin, end = config["tcp"]
    bulk = ["nice", sys.executable, "-m", "paqm_lab.bulk", "--port", "5201"]
    topology.start(topology.SINK, bulk, out / "tcp-sink.log")
    time.sleep(begin)
    send = [*bulk, "--to", topology.SINK_ADDRESS, "--congestion-control", "cubic"]
    topology.start(topology.TCP, [*send, "--seconds", str(end - begin)], out / "tcp.log")


def run(config: dict[str, Any]) -> None:
    lay_out(config)
    options = ["--source", config["clip"], "--audio", config["sound"], "--sink", "none"]
    options += ["--audio-sink", "none", "--duration", str(config["duration"])]
    nothing: list[str] = []
    around, options_of = dict.fromkeys(ENDS, nothing), dict.fromkeys(ENDS, options)
    ends = start_ends(config, Path(config["out"]), around, options_of)
    share_with_tcp(config)
    await_ends(ends, config["duration"] - config["tcp"][0])


def main(config_file: str) -> int:
    try:
        run(json.loads(Path(config_file).read_text()))
    except (Trouble, topology.CommandFailed, subprocess.TimeoutExpired) as err:
        print(err, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
