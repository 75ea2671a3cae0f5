# SPDX-License-Identifier: GPL-2.0
"""Cost of a packet in qdiscs, side by side; runs inside a lab guest in real time.

What is measured is the processor time of the guest's kernel (bench_clock.py), so other processes
of the host disturb only by what they do to its caches. All qdiscs take their turn in every round,
and figures are ratios within a round; the median over rounds counts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from paqm_lab import bench_clock
from paqm_lab import bench_load as bl
from paqm_lab.errors import LabError

DEVICE = "dut"
PKTGEN = Path("/proc/net/pktgen")
FLOW_STEPS = [1, 100, 1000, 10_000, 100_000, 1_000_000]
NOTICE_FLOWS = 100_000


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def run(command: str) -> str:
    done = subprocess.run(command.split(), capture_output=True, text=True)
    if done.returncode:
        raise LabError(f"`{command}` failed: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def set_up() -> None:
    """A device to send to, and one that takes the notices back to the senders."""
    tree = Path(os.environ["PAQM_KDIR"])
    modules = Path(os.environ["PAQM_KO_DIR"])
    for module in ("paqm_feedback", "sch_paqm"):
        run(f"insmod {modules / module}.ko")
    run(f"insmod {tree / 'net/core/pktgen.ko'}")
    for name in (DEVICE, "back"):
        run(f"ip link add {name} type dummy")
        run(f"ip link set {name} up")
    # Nothing but the load: no neighbour discovery.
    Path(f"/proc/sys/net/ipv6/conf/{DEVICE}/disable_ipv6").write_text("1")
    run("ip addr add 192.0.2.1/24 dev back")
    for prefix in ("198.18.0.0/15", "10.0.0.0/8"):
        run(f"ip route add {prefix} via 192.0.2.2")


def send_pktgen(load: bl.Load, packets: int, clock: bench_clock.Client) -> tuple[bl.Sent, int]:
    """Lets pktgen send and waits for its end; also the processor time that took, ns."""
    thread = PKTGEN / "kpktgend_0"
    thread.write_text("rem_device_all\n")
    thread.write_text(f"add_device {DEVICE}\n")
    for line in bl.pktgen_lines(load, packets):
        (PKTGEN / DEVICE).write_text(line + "\n")
    begin = clock.read()
    (PKTGEN / "pgctrl").write_text("start\n")
    used = clock.read() - begin
    return bl.parse_pktgen((PKTGEN / DEVICE).read_text()), used


def send_rtp(load: bl.Load, packets: int, skip: int, clock: bench_clock.Client) -> int:
    """Sends packets of streams that have sent `skip` packets before; processor time, ns."""
    module = os.environ["PAQM_LOAD_KO"]
    options = f"dev={DEVICE} flows={load.flows} size={load.size} count={packets} skip={skip}"
    begin = clock.read()
    run(f"insmod {module} {options}")
    used = clock.read() - begin
    run("rmmod paqm_load")
    return used


def send(load: bl.Load, warm: int, packets: int, clock: bench_clock.Client) -> tuple[int, int]:
    """Packets to make the flows known, then the measured ones: how many in all, ns for these."""
    if load.rtp:
        send_rtp(load, warm, 0, clock)
        return warm + packets, send_rtp(load, packets, warm, clock)
    before, _ = send_pktgen(load, warm, clock)
    sent, used = send_pktgen(load, packets, clock)
    if before.errors or sent.errors:
        raise LabError(f"pktgen could not send {before.errors + sent.errors} packets")
    return before.packets + sent.packets, used


def measure(
    subject: bl.Subject, load: bl.Load, packets: int, clock: bench_clock.Client, told: bool = True
) -> dict[str, Any]:
    """One turn: a fresh qdisc, packets to make its flows known, then the measured ones.

    `told`: it is long enough for notices, since of many flows only those that last are told.
    """
    for command in bl.qdisc_commands(DEVICE, subject):
        run(command)
    before = back_packets()
    # A stream is known after some packets, and every flow shall be.
    offered, used = send(load, max(packets // 5, 5 * load.flows), packets, clock)
    notices = back_packets() - before
    if subject.args:
        passed, dropped = bl.child_counts(run(f"tc -s qdisc show dev {DEVICE}"))
        if passed != offered or dropped:
            raise LabError(
                f"{subject.name}: {offered} packets offered, {passed} passed the qdisc, "
                f"{dropped} dropped"
            )
    shown = json.loads(run(f"tc -s -j qdisc show dev {DEVICE}")) if subject.feedback else None
    if subject.args:
        run(f"tc qdisc del dev {DEVICE} root")
    turn: dict[str, Any] = {"packets": packets, "ns_per_packet": used / packets}
    if subject.feedback:
        for key in bl.NOTICE_KEYS:
            turn[key] = bl.find_key(shown, key)
        if told and not (notices and turn["notices_sent"]):
            raise LabError(f"{subject.name}: feedback is on, but no notice was sent")
    return turn


def back_packets() -> int:
    """Messages that left the router so far."""
    return int(Path("/sys/class/net/back/statistics/tx_packets").read_text())


def compare(
    subjects: dict[str, tuple[bl.Subject, bl.Load]],
    rounds: int,
    seconds: float,
    clock: bench_clock.Client,
    title: str,
) -> dict[str, list[dict[str, Any]]]:
    """All subjects in turn, `rounds` times; a turn lasts about `seconds`."""
    counts = {}
    for name, (subject, load) in subjects.items():
        trial = measure(subject, load, 100_000, clock, told=False)
        counts[name] = max(100_000, int(seconds * 1e9 / trial["ns_per_packet"]))
    turns: dict[str, list[dict[str, Any]]] = {name: [] for name in subjects}
    for number in range(rounds):
        for name, (subject, load) in subjects.items():
            turns[name].append(measure(subject, load, counts[name], clock))
        say(f"bench-qdisc: {title}: round {number + 1} of {rounds}")
    return turns


def flow_subjects() -> dict[str, tuple[bl.Subject, bl.Load]]:
    """RTP streams in ever larger numbers; one of the numbers also with notices."""
    chosen: dict[str, tuple[bl.Subject, bl.Load]] = {}
    for flows in FLOW_STEPS:
        chosen[f"{flows} flows"] = (bl.with_flows(bl.PLAIN, flows), bl.Load(flows, rtp=True))
    told = bl.with_flows(bl.TOLD, NOTICE_FLOWS)
    chosen[f"{NOTICE_FLOWS} flows feedback"] = (told, bl.Load(NOTICE_FLOWS, rtp=True))
    return chosen


def main() -> int:
    top = argparse.ArgumentParser(description=__doc__)
    top.add_argument("--out", required=True, type=Path, help="JSON file for the figures")
    top.add_argument("--rounds", type=int, default=7)
    top.add_argument("--seconds", type=float, default=1.0, help="length of a turn")
    args = top.parse_args()
    clock = bench_clock.Client(args.out.parent)
    try:
        set_up()
        everyone = {s.name: (s, bl.Load()) for s in [*bl.RIVALS, *bl.PAQM]}
        result = {
            "qdiscs": compare(everyone, args.rounds, args.seconds, clock, "qdiscs"),
            "flows": compare(flow_subjects(), args.rounds, args.seconds, clock, "number of flows"),
        }
    except LabError as err:
        say(f"bench-qdisc: {err}")
        return 2
    args.out.write_text(json.dumps(result) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
