#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The session that docs/user-guide.md shows, run for real in a guest of the lab.

    testbed/paqm-lab exec docs/examples/walkthrough.py [CAPTURE.pcap]

One media sender (m-a, with paqmd), four TCP flows from host t, router r with a 4 Mbit/s link to q,
receivers at v. Prints every command as a user would type it, and its output. Exit status 1 if a
step does not show what the guide says about it. CAPTURE.pcap: the feedback messages, for Wireshark.
"""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "kernel" / "lab-tests"))
import trial  # noqa: E402

from paqm_lab import topology  # noqa: E402

BUILD = Path(os.environ["PAQM_BUILD"])
PROGRAMS = {
    "paqmd": BUILD / "feedback-daemon" / "paqmd",
    "paqmctl": BUILD / "feedback-daemon" / "paqmctl",
    "paqm-streamer": BUILD / "streamer" / "paqm-streamer",
}
SENDER, ROUTER, TCP, SINK = "m-a", "r", "t", "v"
CONFIG = {
    "path": {"rtt_ms": 40, "bottleneck": 4_000_000},
    "media": [{"name": "a", "address": "10.1.0.2"}],
    "elastic": [{"flows": 4}],
    "link": None,
    "variant": {"qdisc": "paqm bandwidth 4mbit feedback icmp", "shaper": None},
}
os.environ["PAQM_SOCKET"] = "/run/client.sock"
os.environ["PAQM_CONTROL"] = "/run/control.sock"

wrong: list[str] = []


def command(host: str, line: str) -> list[str]:
    words = line.split()
    return [*topology.into(host), str(PROGRAMS.get(words[0], words[0])), *words[1:]]


def show(host: str, line: str) -> str:
    """Run a command and print both as a terminal would."""
    done = subprocess.run(command(host, line), capture_output=True, text=True)
    print(f"{host}# {line}\n{done.stdout}{done.stderr}")
    return done.stdout


def background(host: str, line: str) -> subprocess.Popen[bytes]:
    print(f"{host}# {line} &\n", flush=True)
    return subprocess.Popen(command(host, line), stdout=subprocess.DEVNULL)


def step(title: str) -> None:
    print(f"== {title}", flush=True)


def expect(what: str, holds: bool) -> None:
    if not holds:
        wrong.append(what)
        print(f"WRONG: {what}")


def queue() -> dict[str, object]:
    text = topology.run(*command(ROUTER, "tc -s -j qdisc show dev q"))
    found: dict[str, object] = json.loads(text)[0]
    return found


def flow() -> dict[str, object]:
    text = topology.run(*command(SENDER, "paqmctl flows --json"))
    found: dict[str, object] = json.loads(text)["flows"][0]
    return found


def watch(seconds: float) -> str:
    """`paqmctl watch`, interrupted after a time."""
    line = f"timeout -s INT {seconds} {PROGRAMS['paqmctl']} watch"
    done = subprocess.run(["ip", "netns", "exec", SENDER, *line.split()], capture_output=True)
    text = done.stdout.decode()
    print(f"{SENDER}# paqmctl watch\n{text}")
    return text


def make_clip(path: str) -> None:
    """Two seconds of a coarse pattern under fresh noise: a picture that can use 3 Mbit/s."""
    width, height, frames = 640, 360, 48
    rand = random.Random(1)
    cells = [b"".join(bytes([rand.randrange(40, 216)]) * 8 for _ in range(80)) for _ in range(45)]
    grain = int.from_bytes(bytes([7]) * width, "big")
    with open(path, "wb") as out:
        out.write(f"YUV4MPEG2 W{width} H{height} F24:1 Ip A1:1 C420jpeg\n".encode())
        for _ in range(frames):
            out.write(b"FRAME\n")
            for y in range(height):
                noise = rand.getrandbits(8 * width) & grain
                line = int.from_bytes(cells[y // 8], "big") ^ noise
                out.write(line.to_bytes(width, "big"))
            out.write(bytes([128]) * (width * height // 2))


def bring_up() -> None:
    trial.load_modules()
    topology.build(CONFIG)
    make_clip("/run/grain.y4m")
    os.chdir("/run")


def media_alone() -> None:
    step("media alone")
    background(SENDER, "paqmd -i r")
    time.sleep(0.5)
    background(SINK, "paqm-streamer recv --listen 10.4.0.2:5004 --duration 60")
    time.sleep(0.5)
    source = "--source grain.y4m --loop --duration 40"
    background(SENDER, f"paqm-streamer send --to 10.4.0.2:5004 --bind 10.1.0.2:5004 {source}")
    time.sleep(6)
    text = show(SENDER, "paqmctl show")
    expect("the router has spoken", " erf " in text)
    show(ROUTER, "tc -s qdisc show dev q")
    expect("nothing was lost", queue()["drops"] == 0)


def with_tcp() -> None:
    step("TCP arrives")
    before = int(str(flow()["rate_bps"]))
    background(SINK, "iperf3 -s -1")
    time.sleep(0.2)
    background(TCP, "iperf3 -c 10.4.0.2 -P 4 -t 12")
    text = watch(0.9)
    expect("accepted messages are shown", "may send" in text)
    time.sleep(4)
    text = show(ROUTER, "tc -s qdisc show dev q")
    after = int(str(flow()["rate_bps"]))
    expect(f"the share falls from {before} to a fifth of 4 Mbit/s, {after}", after < 1_000_000)
    show(ROUTER, "tc -s -d qdisc show dev q")
    time.sleep(9)


def blocked() -> None:
    step("feedback is dropped on its way")
    tc = "tc -n r"
    for line in (
        f"{tc} qdisc add dev m-a clsact",
        f"{tc} filter add dev m-a egress protocol ip u32 match ip protocol 1 0xff action drop",
    ):
        topology.run(*line.split())
    time.sleep(5)
    text = show(SENDER, "paqmctl flows")
    expect("the allowance has expired", "expired" in text)
    expect("the router cannot send", int(str(queue()["notices_failed"])) > 0)
    show(ROUTER, "tc -s qdisc show dev q")
    step("the filter is gone")
    topology.run(*f"{tc} qdisc del dev m-a clsact".split())
    time.sleep(1)
    show(SENDER, "paqmctl flows")


def no_bottleneck() -> None:
    step("a queue that is not the bottleneck")
    show(ROUTER, "tc qdisc del dev q root")
    show(ROUTER, "tc qdisc add dev q root paqm feedback icmp")
    time.sleep(11)
    text = show(ROUTER, "tc -s qdisc show dev q")
    expect("it says so", "never congested here" in text)
    expect("nothing waits", int(str(queue()["qlen"])) == 0)
    show(SENDER, "paqmctl routers")
    show(SENDER, "paqmctl stats")


STEPS = (media_alone, with_tcp, blocked, no_bottleneck)


def main() -> int:
    bring_up()
    capture = None
    if len(sys.argv) > 1:
        line = f"tcpdump -i m-a -U --immediate-mode -w {sys.argv[1]} icmp[icmptype]=253"
        capture = subprocess.Popen(command(ROUTER, line), stderr=subprocess.DEVNULL)
        time.sleep(0.2)
    for part in STEPS:
        part()
    if capture:
        capture.terminate()
        capture.wait()
    print(f"{len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
