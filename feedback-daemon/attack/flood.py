#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What a flood of forged messages costs paqmd, and how much it delays true ones.

In real time, between network namespaces of this host: the sender host with the real paqmd, its
router, and an attacker on a link of his own. Needs root. CPU time is that of all processes of
paqmd, from /proc/PID/stat; latency is from the router's send() until the media sender has the
record. Prints a line of JSON.

Usage: flood.py PAQMD PAQMCTL ATTACKER PROBER [--rate N] [--seconds N]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from rig import (  # noqa: E402
    DPORT,
    ROUTER_IP,
    SENDER_IP,
    Trial,
    ip_header,
    message,
    new_trial,
    quote,
    rtp,
)

GAP_US = 10_000
TICK = os.sysconf("SC_CLK_TCK")
PORT = 5004  # of the prober's flow, both ends


def processes(pid: int) -> list[int]:
    """A process and its descendants."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += processes(int(child))
    return found


def cpu_seconds(pids: list[int]) -> float:
    total = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICK


def template(home: Path) -> Path:
    """A message about the prober's flow: right but for what the attacker cannot know."""
    payload = rtp(1, 0)
    head = quote(payload)[:20] + PORT.to_bytes(2, "big") * 2 + quote(payload)[24:]
    icmp = message(head, 1, 77_777.0)
    path = home / "template"
    path.write_bytes(ip_header("192.0.2.1", SENDER_IP, 1, 20 + len(icmp)) + icmp)
    return path


class Flood:
    def __init__(self, args: argparse.Namespace, trial: Trial, processor: int) -> None:
        self.processor = processor
        self.args, self.net, self.trial, self.home = args, trial.net, trial, trial.log.parent
        self.attacker = f"pq-a-{os.getpid()}"

    def up(self) -> None:
        """The attacker's own link to the sender host."""
        subprocess.run(["ip", "netns", "add", self.attacker], check=True)
        link = ["link", "add", "veth1", "type", "veth", "peer", "veth0", "netns", self.attacker]
        subprocess.run(["ip", "-n", self.net.sender, *link], check=True)
        for name, dev in ((self.net.sender, "veth1"), (self.attacker, "veth0")):
            subprocess.run(["ip", "-n", name, "link", "set", dev, "up"], check=True)

    def down(self) -> None:
        subprocess.run(["ip", "netns", "del", self.attacker], check=False)

    def mac(self) -> str:
        show = ["ip", "-n", self.net.sender, "-j", "link", "show", "veth1"]
        links = json.loads(subprocess.run(show, check=True, capture_output=True, text=True).stdout)
        return str(links[0]["address"])

    def start_attack(self) -> subprocess.Popen[str]:
        # half a second longer than the probes on both sides
        count = int(self.args.rate * (self.args.seconds + 1))
        words = [self.args.attacker, "veth0", self.mac(), str(template(self.home))]
        words += [str(count), str(self.args.rate), "payload"]
        there = ["taskset", "-c", str(self.processor), "ip", "netns", "exec", self.attacker]
        return subprocess.Popen([*there, *words], stdout=subprocess.PIPE, text=True)

    def probe(self) -> dict[str, Any]:
        words = [self.args.prober, str(self.trial.ipc), f"/run/netns/{self.net.router}", SENDER_IP,
                 ROUTER_IP, str(int(self.args.seconds * 1e6 / GAP_US)), str(GAP_US)]
        done = subprocess.run(["ip", "netns", "exec", self.net.sender, *words],
                              capture_output=True, text=True, check=True)
        result: dict[str, Any] = json.loads(done.stdout)
        return result

    def watched(self) -> dict[str, Any]:
        """A flood while somebody watches and somebody captures."""
        words = [self.trial.paqmctl, "--control", str(self.trial.control)]
        capture = ["capture", str(self.home / "messages.pcap")]
        with (
            subprocess.Popen([*words, "--json", "watch"], stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL) as watch,
            subprocess.Popen([*words, *capture], stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL) as writer,
        ):
            try:
                return self.measure(attack=True)
            finally:
                watch.kill()
                writer.kill()

    def measure(self, attack: bool) -> dict[str, Any]:
        assert self.trial.daemon
        pids = processes(self.trial.daemon.pid)
        before = self.trial.stats()
        attacker = self.start_attack() if attack else None
        time.sleep(0.5)
        cpu, begin, loaded = cpu_seconds(pids), time.monotonic(), self.trial.stats()
        probes = self.probe()
        wall = time.monotonic() - begin
        used, after = cpu_seconds(pids) - cpu, self.trial.stats()
        arrived = after["refused_total"] - loaded["refused_total"]
        out: dict[str, Any] = {"cpu_percent": round(100 * used / wall, 2), **probes,
                               "seconds": round(wall, 2), "arrived_per_s": round(arrived / wall)}
        if attacker:
            out["forged"] = json.loads(attacker.communicate()[0])["sent"]
            time.sleep(1)  # what is lost is told every half second
            after = self.trial.stats()
        out["refused"] = {k: n - before["refused"][k] for k, n in after["refused"].items()
                          if n != before["refused"][k]}
        out["believed"] = after["accepted"] - before["accepted"]
        out["lost_by_capture"] = (sum(c["dropped"] for c in after["captures"]) -
                                  sum(c["dropped"] for c in before["captures"]))
        return out


def main() -> int:
    ap = argparse.ArgumentParser(description=__doc__)
    for name in ("paqmd", "paqmctl", "attacker", "prober"):
        ap.add_argument(name, type=os.path.abspath)
    ap.add_argument("--rate", type=int, default=200_000, help="messages a second")
    ap.add_argument("--seconds", type=float, default=5.0)
    args = ap.parse_args()
    assert DPORT != PORT
    if os.geteuid():
        print("flood.py: needs root, for network namespaces", file=sys.stderr)
        return 77
    with new_trial(args.paqmd, args.paqmctl) as trial:
        trial.media.close()  # the prober's flow has its port
        trial.command.remove("-v")
        # What else runs on this machine shall not count: all that is measured goes first.
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
        # One processor for the attacker, one for the attacked: together on one they would
        # use up what the kernel leaves to real-time processes.
        processors = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, processors[:1])
        flood = Flood(args, trial, processors[-1])
        try:
            flood.up()
            trial.start()
            quiet = flood.measure(attack=False)
            loud = flood.measure(attack=True)
            watched = flood.watched()
        finally:
            flood.down()
    print(json.dumps({"rate_per_s": args.rate, "quiet": quiet, "flood": loud, "watched": watched}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
