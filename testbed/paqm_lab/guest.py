# SPDX-License-Identifier: GPL-2.0
"""What runs inside the guest: lays out the network, starts every program at its time, stops all.

Called as `python -m paqm_lab.guest CONFIG.json`. Prints "@ SECONDS" as scenario time goes by.
Writes guest.json into the variant's directory: the time of scenario second 0, and the exit status
of every program. Time is virtual: a sleep costs nothing, so the tempo is that of the programs.
"""

import heapq
import itertools
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from paqm_lab import topology

SAMPLE = 0.1  # s between two looks at the queue's statistics
LEAD = 0.5  # s that receivers start before their senders
TAIL = 1.0  # s for what is under way when the senders have stopped
LATE = 0.02  # s more than the propagation: a packet of a load counts as late
CROWD = 16  # TCP flows of a group; more of them share a program
GRACE = 10.0  # s that a program has for ending
# The queue uses the sender of notices, so that comes first.
MODULES = ("paqm_feedback.ko", "sch_paqm.ko")
RIVALS = ("dcbt", "rlqos")  # qdiscs whose module is loaded where one is used
DROP_CACHES = Path("/proc/sys/vm/drop_caches")
LINK_START = Path("/sys/module/sch_labtrace/parameters/start_ns")


def rival_modules(text: str) -> list[str]:
    """Modules of the rivals whose words are in a text."""
    return [f"sch_{name}.ko" for name in RIVALS if re.search(rf"\b{name}\b", text)]


def processes() -> int:
    """How many processes and threads the guest has started so far: most of what a run costs beside
    what its programs do.
    """
    found = re.search(r"^processes (\d+)$", Path("/proc/stat").read_text(), re.M)
    return int(found[1]) if found else 0


class Trouble(Exception):
    """The run is worth nothing; the text says why."""


class Program:
    """A started program with its log."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], log: Path, lasts: bool) -> None:
        self.name = name
        self.process = process
        self.log = log
        self.lasts = lasts  # until it is told to stop

    def last_words(self) -> str:
        return topology.last_words(self.log)


class Guest:
    """One run."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        self.out = Path(config["out"])
        self.programs: list[Program] = []
        self.tellers: dict[str, topology.Teller] = {}
        self.samples: TextIO | None = None
        self.agenda: list[tuple[float, int, Callable[[], object]]] = []
        self.order = itertools.count()
        self.t0_ns = 0

    def now(self) -> float:
        """Scenario time."""
        return (time.time_ns() - self.t0_ns) / 1e9

    def at(self, when: float, what: Callable[[], object]) -> None:
        heapq.heappush(self.agenda, (when, next(self.order), what))

    def start(
        self, name: str, host: str, command: list[str], lasts: bool = False, out: Path | None = None
    ) -> Program:
        log = self.out / "log" / f"{name}.log"
        program = Program(name, topology.start(host, command, log, out), log, lasts)
        self.programs.append(program)
        return program

    def check(self) -> None:
        """A program that died spoils the run: better to say so at once."""
        # One question for all of them; there are a dozen or more, and this is asked all the time.
        if os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            return
        for program in self.programs:
            status = program.process.poll()
            if status is not None and (status or program.lasts):
                raise Trouble(
                    f"{program.name} ended with status {status} at {self.now():.3f} s, "
                    f"see log/{program.log.name}: {program.last_words()}"
                )

    def wait_for(self, program: Program, ready: Callable[[], bool], what: str) -> None:
        """Until a program is ready; `what` is said if it never is."""
        for _ in range(int(GRACE / 0.01)):
            if ready():
                return
            self.check()
            time.sleep(0.01)
        raise Trouble(f"{program.name} did not {what}: {program.last_words()}")

    # Programs

    def start_capture(self, host: str, name: str, what: str = "ip") -> None:
        # tcpdump gives a file that it opens itself away, which only a host's root may let it.
        # To write every 4 KB would be a tenth of what a capture costs.
        command = ["stdbuf", "-o", "1M", "tcpdump", "-Z", "root"]
        command += ["-i", "any", "-y", "LINUX_SLL2", "-n", "-s", "128"]
        command += ["--time-stamp-precision=nano", "-B", "65536", "-w", "-"]
        log = self.out / f"{name}.pcap"
        capture = self.start(f"tcpdump-{name}", host, [*command, what], lasts=True, out=log)
        self.wait_for(capture, lambda: "listening on" in capture.log.read_text(), "begin")

    def sample(self) -> None:
        device = topology.BOTTLENECK
        text = self.told_of(topology.ROUTER, "qdisc", "show", "dev", device)
        # Of a qdisc that this tc does not know it says so instead of JSON.
        text = re.sub(r"\[Unknown qdisc, optlen=\d+\] ", "", text).strip()
        if self.samples is None:
            self.samples = (self.out / "tc.jsonl").open("w", buffering=1)  # by lines
        self.samples.write(f'{{"t": {round(self.now(), 6)}, "qdisc": {text}}}\n')

    def told_of(self, host: str, *words: str) -> str:
        """What tc tells of a host's queues, in JSON."""
        if host not in self.tellers:
            self.tellers[host] = topology.Teller(host)
        return self.tellers[host].ask(*words)

    def start_follower(self) -> None:
        """What tells the shaper the rate of the trace."""
        command = [sys.executable, "-m", "paqm_lab.follow", "--trace", self.config["trace_file"]]
        command += ["--device", topology.BOTTLENECK, "--start-ns", str(self.t0_ns)]
        command += ["--kind", self.config["variant"]["qdisc"].split()[0]]
        self.start("follow", topology.ROUTER, command, lasts=True)

    def plan_stream(self, plan: dict[str, Any]) -> None:
        """The programs of a stream, as its sender wants them (senders.py)."""
        for directory in plan["directories"]:
            Path(directory).mkdir(parents=True)
        for one in plan["programs"]:
            name, host, command = one["name"], one["host"], one["command"]
            if one["at"] is None:
                program = self.start(name, host, command, lasts=True)
                self.wait_for(program, Path(one["ready"]).exists, f"make {one['ready']}")
            elif one["output"]:
                self.at(one["at"], partial(self.keep, Path(one["output"]), host, command))
            else:
                self.at(one["at"], partial(self.start, name, host, command))

    def keep(self, file: Path, host: str, command: list[str]) -> None:
        """What a command says, in a file."""
        file.write_text(topology.inside(host, *command))

    def plan_crowd(self, group: dict[str, Any]) -> None:
        """Many TCP flows: one program for all sources, one for all sinks."""
        name, members = group["name"], group["members"]
        begin = min(member["start"] for member in members)
        starts = [f"{member['start'] - begin:.6f}" for member in members]
        bulk = [sys.executable, "-m", "paqm_lab.bulk", "--port", str(members[0]["port"])]
        limits = ["--flows", str(len(members)), "--seconds", str(group["stop"] + GRACE / 2)]
        self.start(f"sink-{name}", topology.SINK, [*bulk, *limits])
        send = [*bulk, "--to", topology.SINK_ADDRESS, "--starts", ",".join(starts)]
        send += ["--congestion-control", group["congestion_control"]]
        send += ["--seconds", f"{group['stop'] - begin:.6f}"]
        self.at(begin, partial(self.start, f"load-{name}", topology.TCP, send))

    def plan_elastic(self, group: dict[str, Any]) -> None:
        if len(group["members"]) > CROWD:
            self.plan_crowd(group)
            return
        for number, member in enumerate(group["members"], start=1):
            name = f"{group['name']}-{number}"
            bulk = [sys.executable, "-m", "paqm_lab.bulk", "--port", str(member["port"])]
            self.start(f"sink-{name}", topology.SINK, bulk)
            send = [*bulk, "--to", topology.SINK_ADDRESS]
            send += ["--congestion-control", group["congestion_control"]]
            send += ["--seconds", f"{group['stop'] - member['start']:.6f}"]
            self.at(member["start"], partial(self.start, f"load-{name}", topology.TCP, send))

    def plan_loads(self, loads: list[dict[str, Any]]) -> None:
        """One sink for all loads of UDP, one for each of TCP; sources start at their time."""
        end = self.config["duration"] + TAIL
        first = min(load["port"] for load in loads)
        count = max(load["port"] + load["ports"] for load in loads) - first
        late = 1000 * LATE + self.config["path"]["rtt_ms"] / 2
        begin = min(load["start"] for load in loads) - LEAD
        sink = ["sink", "--port", str(first), "--ports", str(count), "--late-ms", str(late)]
        self.at(begin, partial(self.start_load, "sink-loads", topology.SINK, sink, 0, end))
        for load in loads:
            name, port = load["name"], str(load["port"])
            if load["kind"] == "web":
                words = ["websink", "--port", port]
                self.at(
                    load["start"] - LEAD,
                    partial(self.start_load, f"sink-{name}", topology.SINK, words, 0, end),
                )
            words = [load["mode"], "--to", topology.SINK_ADDRESS, "--port", port, *load["words"]]
            words += ["--log", f"{name}.csv"]
            self.at(
                load["start"] - LEAD / 2,
                partial(
                    self.start_load,
                    *(f"load-{name}", topology.namespace_of(name), words),
                    *(load["start"], load["stop"]),
                ),
            )

    def start_load(
        self, name: str, host: str, words: list[str], begin: float, end: float
    ) -> Program:
        """The source or sink of a load, which is told when to begin and to end."""
        times = [f"{self.t0_ns + round(t * 1e9)}" for t in (begin, end)]
        command = [self.config["load_tool"], *words, "--from-ns", times[0], "--until-ns", times[1]]
        return self.start(name, host, command)

    # The run

    def plan(self) -> None:
        """Starts what runs all the time, and puts the rest on the agenda."""
        self.start_capture(topology.ROUTER, "router")
        for stream in self.config["streams"]:
            self.plan_stream(stream)
        for group in self.config["elastic"]:
            self.plan_elastic(group)
        if self.config["loads"]:
            self.plan_loads(self.config["loads"])
        if self.config["variant"]["follow"]:
            self.at(0.0, self.start_follower)
        end = self.config["duration"]
        for tick in range(math.floor(end / SAMPLE) + 1):
            self.at(tick * SAMPLE, self.sample)
        for second in range(math.floor(end) + 1):
            self.at(second, partial(self.tick, second))
        self.at(end + TAIL, lambda: None)

    def tick(self, second: int) -> None:
        """Says how far it is, and lets go of files that are written.

        Pictures of a minute are more than the guest's memory. When that was full depended on how
        large the kernel had become with the host's compiler, and what makes room takes time.
        """
        print(f"@ {second}", flush=True)
        DROP_CACHES.write_text("1\n")

    def follow_agenda(self) -> None:
        first = self.agenda[0][0]
        # On a whole second: the run's time is then easy to find in the logs.
        self.t0_ns = (time.time_ns() // 10**9 + 1 + math.ceil(max(0.0, -first))) * 10**9
        if self.config["link"]:
            LINK_START.write_text(f"{self.t0_ns}\n")
        while self.agenda:
            when, _, what = heapq.heappop(self.agenda)
            time.sleep(max(0.0, when - self.now()))
            self.check()
            what()

    def end_programs(self) -> None:
        """Lets the senders and receivers end by themselves, then stops the rest."""
        for program in self.programs:
            if not program.lasts:
                try:
                    program.process.wait(timeout=GRACE)
                except subprocess.TimeoutExpired:
                    raise Trouble(
                        f"{program.name} did not end, see log/{program.log.name}"
                    ) from None
        self.check()
        # tcpdump is handed packets in blocks, the last one up to a second late.
        time.sleep(2 * TAIL)
        for program in reversed(self.programs):
            if program.lasts:
                program.process.send_signal(signal.SIGINT)
                if program.process.wait(timeout=GRACE):
                    raise Trouble(f"{program.name} failed at its end: {program.last_words()}")
        for teller in self.tellers.values():
            teller.end()

    def finish(self) -> None:
        """Ends all programs; a capture that lost packets is no measurement."""
        self.end_programs()
        for log in (self.out / "log").glob("tcpdump-*.log"):
            lost = re.search(r"^([1-9]\d*) packets dropped", log.read_text(), re.M)
            if lost:
                raise Trouble(f"the capture lost {lost[1]} packets")

    def run(self) -> None:
        (self.out / "log").mkdir()
        qdisc = topology.kind(self.config["variant"])
        for name in [*MODULES, *rival_modules(qdisc)] if self.config["modules"] else ():
            topology.run("insmod", str(Path(self.config["modules"]) / name))
        if self.config["link"]:
            trace = self.config["trace_file"]
            topology.run("insmod", self.config["link_module"], f"trace={trace}")
        topology.build(self.config)
        self.plan()
        self.follow_agenda()
        self.finish()

    def write_record(self, error: str | None) -> None:
        """guest.json: how it went."""
        record = {
            "t0_ns": self.t0_ns,
            "error": error,
            "programs": {program.name: program.process.poll() for program in self.programs},
            "processes": processes(),
        }
        (self.out / "guest.json").write_text(json.dumps(record, indent=1) + "\n")


def main(config_file: str, kind: type[Guest]) -> int:
    """Runs a guest of this kind; what went wrong is in guest.json, for the host to tell."""
    guest = kind(json.loads(Path(config_file).read_text()))
    error = None
    try:
        guest.run()
    except (Trouble, topology.CommandFailed, subprocess.TimeoutExpired) as err:
        error = str(err)
    guest.write_record(error)
    return 0 if error is None else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Guest))
