# SPDX-License-Identifier: GPL-2.0
"""What the acceptance checks share inside a lab guest: network, qdisc, traffic, results.

Three namespaces in a row, a -- r -- b. The qdisc under test is root of r1, the device from r to b.
Senders run in a, or in r itself where nothing has to lie before the router. All programs of a run
share one epoch, so their times are the same to the nanosecond.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import trial
from trial import run

from paqm_lab import topology
from paqm_lab.topology import in_a_row, netem

Json = dict[str, Any]

SINK = "10.2.0.2"
HEADER = 14  # Ethernet: what the qdisc counts beyond the IP packet


class Results:
    """Checks of a group: printed as they are made, kept for the report."""

    def __init__(self) -> None:
        self.rows: list[Json] = []

    def within(
        self, section: str, name: str, value: float, low: float | None, high: float | None,
        unit: str, note: str = "", specified: str = "", printed: str = "",
    ) -> None:
        """A figure that has to lie within bounds; None: no bound on that side.

        @specified names the specification's bound where the one that is held is another, @printed
        what the thesis or its papers report instead.
        """
        good = (low is None or value >= low) and (high is None or value <= high)
        if low is None:
            wanted = f"at most {high:g}"
        elif high is None:
            wanted = f"at least {low:g}"
        else:
            wanted = f"{low:g} to {high:g}"
        figure = f"{value:.5g} {unit}".strip()
        trial.check(f"{section} {name} ({figure})", good, f"wanted {wanted}")
        self.rows.append({
            "section": section, "name": name, "value": value, "unit": unit, "low": low,
            "high": high, "wanted": wanted, "pass": good, "specified": specified,
            "printed": printed, "note": note,
        })

    def figure(
        self, section: str, name: str, value: float, unit: str, note: str = "", printed: str = "",
    ) -> None:
        """A figure for the reader: decides nothing."""
        print(f"# {section} {name}: {value:.5g} {unit}", flush=True)
        self.rows.append({
            "section": section, "name": name, "value": value, "unit": unit, "low": None,
            "high": None, "wanted": "", "pass": None, "specified": "", "printed": printed,
            "note": note,
        })


class Lab:
    """The network of a guest; random numbers of traffic and qdisc hang on the replication."""

    def __init__(self, tool: str, replication: int = 1) -> None:
        self.tool = tool
        self.added = 1000 * (replication - 1)  # to every seed
        trial.load_modules()
        topology.make(in_a_row("a", "r", "b"))

    @staticmethod
    def delay(rtt_ms: float) -> None:
        """Round trip between senders and router."""
        for ns, dev in (("a", "a0"), ("r", "r0")):
            run("tc", "-n", ns, "qdisc", "replace", "dev", dev, "root",
                *netem(rtt_ms / 2, limit=200000))

    def qdisc(self, *options: str) -> None:
        """A fresh qdisc under test; as published, with one queue for each class, if not told."""
        self.clear()
        run("tc", "-n", "r", "qdisc", "add", "dev", "r1", "root", "handle", "1:", "paqm",
            "seed", str(1 + self.added), *([] if "isolate" in options else ["noisolate"]), *options)

    @staticmethod
    def clear() -> None:
        """Remove the qdisc under test, if there is one."""
        subprocess.run(["tc", "-n", "r", "qdisc", "del", "dev", "r1", "root"], capture_output=True)

    @staticmethod
    def change(*options: str) -> None:
        run("tc", "-n", "r", "qdisc", "change", "dev", "r1", "root", "handle", "1:", "paqm",
            *options)

    @staticmethod
    def stats() -> Json:
        """Statistics of the qdisc under test."""
        found: list[Json] = json.loads(
            run("tc", "-n", "r", "-s", "-j", "qdisc", "show", "dev", "r1", "root"))
        return found[0]

    @staticmethod
    def device() -> Json:
        """Packets and bytes that the device sent."""
        found: list[Json] = json.loads(run("ip", "-n", "r", "-s", "-j", "link", "show", "r1"))
        sent: Json = found[0]["stats64"]["tx"]
        return sent


class Traffic:
    """Senders and a sink with one epoch."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        # far enough away that all programs have started: that takes no virtual time, or little
        self.epoch = time.clock_gettime_ns(time.CLOCK_REALTIME) + 100_000_000
        self.started: list[tuple[str, subprocess.Popen[str]]] = []

    def start(self, ns: str, *cmd: str) -> int:
        """A program that ends by itself; its number."""
        program = subprocess.Popen(["ip", "netns", "exec", ns, *cmd], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.started.append((" ".join(cmd), program))
        return len(self.started) - 1

    def send(self, ns: str = "a", **options: Any) -> int:
        """spec_traffic send; options with their names, True for a switch."""
        options["seed"] = options.get("seed", 0) + self.lab.added
        return self.start(ns, self.lab.tool, "send", "--epoch", str(self.epoch),
                          *words(options))

    def sink(self, **options: Any) -> int:
        return self.start("b", self.lab.tool, "sink", "--epoch", str(self.epoch),
                          *words(options))

    def sleep_until(self, seconds: float) -> None:
        """Virtual time since the epoch."""
        left = self.epoch / 1e9 + seconds - time.clock_gettime_ns(time.CLOCK_REALTIME) / 1e9
        if left > 0:
            time.sleep(left)

    def finish(self) -> list[Json]:
        """Wait for all; what they reported, in the order of their start."""
        reports: list[Json] = []
        for what, program in self.started:
            out, err = program.communicate()
            if program.returncode:
                raise RuntimeError(f"{what}: status {program.returncode}: {err.strip()}")
            reports.append(json.loads(out) if out.startswith("{") else {})
        return reports


def words(options: dict[str, Any]) -> list[str]:
    """Command line of options."""
    found: list[str] = []
    for key, value in options.items():
        if value is None or value is False:
            continue
        found.append("--" + key.replace("_", "-"))
        if value is not True:
            found.append(f"{value:.12g}" if isinstance(value, float) else str(value))
    return found


def bytes_between(sink: Json, ports: Sequence[int], begin: float, end: float) -> int:
    """IP bytes that came to these ports within a time."""
    first, last = round(begin / sink["bin_s"]), round(end / sink["bin_s"])
    return sum(b[1] for port in ports for b in sink["ports"][str(port)]["bins"][first:last])


def write(path: Path, results: Results, seconds: float) -> None:
    """Results of a group for the driver on the host."""
    path.write_text(json.dumps({"checks": results.rows, "virtual_s": round(seconds, 3)}, indent=1))
