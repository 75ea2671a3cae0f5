# SPDX-License-Identifier: GPL-2.0
"""Guest side of the runs with several routers: network, daemons, sources, what happens when.

Called as `python -m paqm_lab.multi.guest CONFIG.json`. Writes what it is told to save, the output
of every program into log/, and guest.json like the dumbbell's runs.
"""

from __future__ import annotations

import json
import signal
import sys
from functools import partial
from pathlib import Path
from typing import Any

from paqm_lab import topology
from paqm_lab.guest import LEAD, MODULES, TAIL, Guest, main, rival_modules

TOLD = ["tc", "-s", "-j"]  # what a topology.Teller answers,
ONCE = "root"  # without this: tc 6.1 takes it for a second one in the next line of a batch


class MultiGuest(Guest):
    """One run of a network of several routers."""

    def act(self, action: dict[str, Any]) -> None:
        """Something that happens at its time; its output is kept if it has a name."""
        host, words = action["host"], action["words"]
        if words[:3] == TOLD and ONCE not in words:
            text = self.told_of(host, *words[3:])
        else:
            text = topology.inside(host, *words)
        if action["save"]:
            (self.out / action["save"]).write_text(text)

    def begin(self, program: dict[str, Any]) -> None:
        words = [word.replace("@T0@", str(self.t0_ns)) for word in program["words"]]
        self.start(program["name"], program["host"], words, lasts=program["lasts"])

    def pause(self, name: str) -> None:
        """Stops a stream's pictures, or lets them go on."""
        program = next(program for program in self.programs if program.name == name)
        program.process.send_signal(signal.SIGUSR1)

    def plan(self) -> None:
        for daemon in self.config["daemons"]:
            started = self.start(daemon["name"], daemon["host"], daemon["words"], lasts=True)
            self.wait_for(started, Path(daemon["ready"]).exists, f"make {daemon['ready']}")
        for host in self.config["captures"]:
            self.start_capture(host, host, "ip or ip6")
        for stream in self.config["streams"]:
            self.plan_stream(stream)
        for name, t in self.config["pauses"]:
            self.at(t, partial(self.pause, name))
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
        for name in [*MODULES, *rival_modules(json.dumps(self.config["net"]))]:
            topology.run("insmod", str(Path(self.config["modules"]) / name))
        if self.config["link"]:
            topology.run("insmod", self.config["link"], f"trace={self.out}/trace.txt")
        topology.make(topology.from_list(self.config["net"]))
        self.plan()
        self.follow_agenda()
        self.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], MultiGuest))
