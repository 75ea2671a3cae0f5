# SPDX-License-Identifier: GPL-2.0
"""Guest side of the runs with several routers: network, daemons, sources, what happens when.

Called as `python -m paqm_lab.multi.guest CONFIG.json`. Writes what it is told to save, the output
of every program into log/, and guest.json like the dumbbell's runs.
"""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

from paqm_lab import topology
from paqm_lab.guest import LEAD, MODULES, TAIL, Guest, main


class MultiGuest(Guest):
    """One run of a network of several routers."""

    def build(self) -> None:
        net = self.config["net"]
        for host, forwards in net["hosts"].items():
            topology.add_host(host, forwards)
        for number, left, right in net["cables"]:
            topology.link(
                number,
                topology.End(left, right, f"10.{number}.0.1"),
                topology.End(right, left, f"10.{number}.0.2"),
            )
        for host, routes in net["routes"].items():
            self._batch(host, [f"route add {route}" for route in routes])
        for host, *words in net["commands"]:
            self.inside(host, words)

    def _batch(self, host: str, lines: list[str]) -> None:
        done = subprocess.run(
            ["ip", "-n", host, "-batch", "-"],
            input="\n".join(lines) + "\n",
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise topology.CommandFailed(f"routes of {host}: {done.stderr.strip()}")

    @staticmethod
    def inside(host: str, words: list[str]) -> str:
        """A command in a host's namespace, which must succeed."""
        return topology.run("ip", "netns", "exec", host, *words)

    def act(self, action: dict[str, Any]) -> None:
        """Something that happens at its time; its output is kept if it has a name."""
        text = self.inside(action["host"], action["words"])
        if action["save"]:
            (self.out / action["save"]).write_text(text)

    def begin(self, program: dict[str, Any]) -> None:
        words = [word.replace("@T0@", str(self.t0_ns)) for word in program["words"]]
        self.start(program["name"], program["host"], words, lasts=program["lasts"])

    def plan(self) -> None:
        for daemon in self.config["daemons"]:
            started = self.start(daemon["name"], daemon["host"], daemon["words"], lasts=True)
            self.wait_for(Path(daemon["ready"]), started)
        for program in self.config["programs"]:
            self.at(program["start"] - LEAD, partial(self.begin, program))
        for action in self.config["actions"]:
            self.at(action["t"], partial(self.act, action))
        for second in range(int(self.config["duration"]) + 1):
            self.at(second, partial(print, f"@ {second}", flush=True))
        self.at(self.config["duration"] + TAIL, lambda: None)

    def run(self) -> None:
        for name in ("log", *self.config["directories"]):
            (self.out / name).mkdir()
        for name in MODULES:
            topology.run("insmod", str(Path(self.config["modules"]) / name))
        self.build()
        self.plan()
        self.follow_agenda()
        self.end_programs()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], MultiGuest))
