#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0
"""RL-QoS on a chain of nodes, with its queues and its daemons, inside a lab guest.

rlqos.py published|hops --config FILE --out FILE --seed N    one run of the catalogue's each
rlqos.py [--build DIR]                                       checks, as the tests have it

A host h, routers r1, r2, ..., a destination d. Each has a queue towards the next, of its own rate
and limit; at each router a source c1, ... enters, whose packets leave at the next node. What comes
from a node before is marked as in transit.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

from spec_lab import HEADER, Json, Traffic, words
from trial import TOP, Program, check, inside, run, summary, within

from paqm_lab import topology

PORT, CROSS = 5004, 6000
SIZE = 1500  # of IP packets
TRANSIT = "1"  # fwmark
LATE = 4e-6  # s
NOBODY = 65534
CAP_NET_BIND_SERVICE, CAP_NET_ADMIN = 10, 12
# Start the daemon as the unit does it: as an own user, with what it needs to begin.
GRANTED = "-all,+net_admin,+net_bind_service"
AS_UNIT = (*f"setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups".split(),
           "--inh-caps", GRANTED, "--ambient-caps", GRANTED, "--bounding-set", GRANTED)  # fmt: skip


@dataclass(frozen=True)
class Hop:
    """A queue: `rate` of IP bits, `limit` and k1 in packets; `cross`: bit/s that enter there."""

    rate: float
    limit: int
    k1: int
    cross: float = 0

    @property
    def service_us(self) -> float:
        return SIZE * 8e6 / self.rate


class Chain:
    """The network of some hops, with daemons until close(); `start`: words before theirs."""

    def __init__(self, hops: list[Hop], build: Path, options: str = "", seed: int = 1,
                 start: tuple[str, ...] = ()) -> None:
        self.hops, self.tool, self.added = hops, str(build / "lab/spec_traffic"), 1000 * (seed - 1)
        self.nodes = ["h", *(f"r{n}" for n in range(1, len(hops))), "d"]
        net = topology.Network()
        for name in self.nodes:
            net.host(name, name.startswith("r"))
        for near, far in zip(self.nodes, self.nodes[1:], strict=False):
            self.last = net.link(near, far)
        self.sinks: dict[int, str] = {}
        for i, hop in enumerate(hops):
            if hop.cross:
                net.link(net.host(f"c{i}"), self.nodes[i])
                self.sinks[i] = net.link(self.nodes[i + 1], net.host(f"e{i}")).address(f"e{i}")
        for i, hop in enumerate(hops):
            near, far = self.nodes[i : i + 2]
            queue = f"rlqos limit {hop.limit} k1 {hop.k1} transit {TRANSIT} {options}"
            # lengths are those of Ethernet; a fast link makes up for timers that are late
            net.shape(near, far, round(hop.rate * (SIZE + HEADER) / SIZE), queue,
                      max(topology.DUMBBELL_BURST, round(hop.rate / 8 * LATE)))  # fmt: skip
            if i:
                before = self.nodes[i - 1]
                net.queue(near, before, "ingress")
                net.queue(near, before, "ingress", "matchall", "action", "skbedit", "mark", TRANSIT,
                          what="filter")  # fmt: skip
        self.net = net.routed()
        topology.make(self.net)
        daemon = (*start, build / "feedback-daemon/rlqosd", "--user", "nobody")
        self.daemons = [Program(name, *daemon, *self.beside(i))
                        for i, name in enumerate(self.nodes[:-1])]  # fmt: skip
        time.sleep(1.5)

    def beside(self, i: int) -> list[str]:
        """Devices of a node in the chain."""
        return [self.nodes[n] for n in (i - 1, i + 1) if 0 <= n < len(self.nodes)]

    def close(self) -> list[Json]:
        """What the daemons have counted, from the host on."""
        said = [json.loads(one.end(signal.SIGTERM)) for one in self.daemons]
        topology.remove(self.net)
        return said

    def stats(self) -> list[SimpleNamespace]:
        """Of each queue, from the host on."""
        found = []
        for near, far in zip(self.nodes, self.nodes[1:], strict=False):
            shown = json.loads(run("tc", "-n", near, "-s", "-j", "qdisc", "show", "dev", far))
            own = next(q for q in shown if q["kind"] == "rlqos")
            found.append(SimpleNamespace(**own, **{f"m_{k}": v for k, v in own["tc2"].items()}))
        return found

    def load(self, rate: float, begin: float, seconds: float, over_us: float = 1e9) -> Json:
        """Poisson traffic of all sources; figures of what was between `begin` and the end."""
        t = Traffic(self)  # type: ignore[arg-type]  # of a Lab it needs tool and seeds only
        to = self.last.address("d")
        services = sum(hop.service_us for hop in self.hops)  # htb releases a packet as it begins
        common = words({"sizes": SIZE, "poisson": True, "stop": seconds})

        def sink(host: str, port: int) -> None:
            t.start(host, self.tool, "sink", "--epoch", str(t.epoch), *words(
                {"ports": port, "end": seconds + 0.2, "from": begin, "until": seconds,
                 "over": over_us - services, "overhead": 0}))  # fmt: skip

        sink("d", PORT)
        t.start("h", self.tool, "send", "--epoch", str(t.epoch), *common, *words(
            {"to": to, "port": PORT, "rate": rate, "seed": 7 + self.added}))
        for i, address in self.sinks.items():
            t.start(f"c{i}", self.tool, "send", "--epoch", str(t.epoch), *common, *words(
                {"to": address, "port": CROSS, "rate": self.hops[i].cross,
                 "seed": 11 + i + self.added}))  # fmt: skip
            sink(f"e{i}", CROSS)
        t.sleep_until(begin)
        before = self.stats()
        t.sleep_until(seconds)
        after = self.stats()
        port = t.finish()[0]["ports"][str(PORT)]

        def grown(i: int, key: str) -> int:
            return int(getattr(after[i], f"m_{key}") - getattr(before[i], f"m_{key}"))

        count = len(self.hops)
        sent = grown(0, "sent_packets")
        entered = [max(grown(i, "entered_packets"), 1) for i in range(count)]
        return {
            "use": [100 * grown(i, "sent_packets") * hop.service_us / 1e6 / (seconds - begin)
                    for i, hop in enumerate(self.hops)],
            "thinned": [100 * grown(i, "drop_thin") / entered[i] for i in range(count)],
            "full": [grown(i, "drop_limit") for i in range(count)],
            "host_full": 100 * grown(0, "drop_limit") / max(entered[0] - grown(0, "drop_thin"), 1),
            # what is on the way at either end of the time is some packets more or less
            "lost": max(0, 100 * (1 - port["window_packets"] / sent)),
            "mean_ms": (port["wait_mean_us"] + services) / 1000,
            "max_ms": (port["wait_max_us"] + services) / 1000,
            "over_percent": 100 * port["window_over"] / max(port["window_packets"], 1),
            "packets": port["window_packets"],
            "downstream": [q.downstream for q in after],
        }  # fmt: skip


def published(build: Path, p: Json, seed: int) -> Json:
    """Host and destination of 30 Mbit/s, three routers of 1 Gbit/s, all overloaded."""
    router = Hop(1e9, 200, 350, 1.5e9)
    chain = Chain([Hop(30e6, 8, 8), router, router, router, Hop(30e6, 8, 8)], build, "noframes",
                  seed)  # fmt: skip
    got = chain.load(60e6, p["begin"], p["seconds"], 8000)
    chain.close()
    return got


def hops(build: Path, p: Json, seed: int) -> Json:
    """A source of 20 Mbit/s; the last link, of 10 Mbit/s, is `hops` away, others have 100."""
    far = [Hop(100e6, 8, 8)] * (p["hops"] - 1)
    chain = Chain([*far, Hop(10e6, 8, 8)], build, "noframes", seed)
    got = chain.load(20e6, p["begin"], p["seconds"])
    return got | {"daemons": chain.close()}


RUNS: dict[str, Callable[[Path, Json, int], Json]] = {"published": published, "hops": hops}


NEXT_TO_IT = (14, 28)  # percent that a source thins for a bottleneck behind the next node


def replaced(build: Path) -> None:
    """The daemon finds a queue that takes another one's place; it is started as by its unit."""
    chain = Chain([Hop(100e6, 8, 8), Hop(10e6, 8, 8)], build, "noframes", start=AS_UNIT)
    bounding = 1 << CAP_NET_ADMIN | 1 << CAP_NET_BIND_SERVICE
    unprivileged("started as the unit does it", chain, bounding)
    run("tc", "-n", "r1", "qdisc", "replace", "dev", "d", "parent", "1:1", "handle", "20:", "rlqos",
        "limit", "8", "k1", "8", "transit", TRANSIT, "noframes")  # fmt: skip
    time.sleep(1.5)
    got = chain.load(20e6, 1, 4)
    chain.close()
    within("a queue is replaced: thinned at the source, %", got["thinned"][0], *NEXT_TO_IT)


def unprivileged(name: str, chain: Chain, bounding: int) -> None:
    """What the daemons have kept: the right to tell queues, and no other."""
    for daemon in chain.daemons:
        lines = Path(f"/proc/{daemon.pid}/status").read_text().splitlines()
        has = dict(line.split(":\t", 1) for line in lines)
        caps = [int(has[f"Cap{kind}"], 16) for kind in ("Eff", "Prm", "Inh", "Amb", "Bnd")]
        kept = 1 << CAP_NET_ADMIN
        check(f"{name}: the user", {*has["Uid"].split(), *has["Gid"].split()} == {str(NOBODY)}
              and not has["Groups"].strip(), has)  # fmt: skip
        check(f"{name}: capabilities", caps == [kept, kept, 0, 0, bounding], has)
        check(f"{name}: no new ones, few calls",
              (has["NoNewPrivs"], has["Seccomp"]) == ("1", "2"), has)  # fmt: skip


def strangers(build: Path) -> None:
    """What is no message, or comes from elsewhere, is counted and not believed."""
    chain = Chain([Hop(100e6, 8, 8), Hop(10e6, 8, 8)], build)
    unprivileged("started by root", chain, 0)
    good = struct.pack("!4sB3xQII", b"RLQS", 1, 5, 1, 1 << 24)
    for ttl, data in ((255, good[:-1]), (255, good + b"x"), (255, bytes(24)), (254, good)):
        code = ("import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
                f"s.setsockopt(0, socket.IP_MULTICAST_TTL, {ttl}); "
                "s.setsockopt(0, socket.IP_MULTICAST_IF, socket.inet_aton('10.1.0.2')); "
                f"s.sendto({data!r}, ('224.0.0.254', 1021))")  # fmt: skip
        inside("r1", sys.executable, "-c", code)
    time.sleep(0.02)
    load = chain.stats()[0].downstream
    counted = chain.close()[0]["devices"][0]
    check("strangers are refused", (counted["format"], counted["not_of_link"], counted["accepted"])
          == (3, 1, 0), counted)  # fmt: skip
    check("and not believed", load == 0, load)


def wrong_words(build: Path) -> None:
    for given, status, said in (("", 2, "rlqosd: name 1 to 16 devices"),
                                ("nosuch", 1, "rlqosd: nosuch: No such device"),
                                ("--sandbox perhaps lo", 2, "rlqosd: --sandbox perhaps: must be"),
                                ("--period 0 lo", 2, "rlqosd: --period 0: must be 1 to 1000")):
        done = subprocess.run([str(build / "feedback-daemon/rlqosd"), *given.split()],
                              capture_output=True, text=True)
        check(f"rlqosd {given}", done.returncode == status and done.stderr.startswith(said), done)


def comes_back(build: Path) -> None:
    """A device goes, and another comes by its name: whoever watches the daemon has to start it
    anew. Meanwhile it goes on with the others."""
    odd = 'o"d\\d'
    latin = os.fsdecode(b"bl\xe5")
    run("ip", "link", "add", "gone0", "type", "veth", "peer", "name", odd)
    run("ip", "link", "add", latin, "type", "veth")
    command = [str(build / "feedback-daemon/rlqosd"), "--user", "nobody", "gone0", odd, "lo", latin]
    with tempfile.NamedTemporaryFile("r") as log, subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, text=True) as daemon:  # fmt: skip

        def told(words: str) -> bool:
            for _ in range(50):  # 10 s of the guest
                if words in Path(log.name).read_text():
                    return True
                time.sleep(0.2)
            return False

        try:
            time.sleep(2)  # of the guest: it has looked
            run("ip", "link", "del", "gone0")
            check("a device goes: it is told", told("gone0: the device has gone"))
            time.sleep(2)
            check("and the daemon goes on", daemon.poll() is None, daemon.returncode)
            run("ip", "link", "add", "gone0", "type", "veth")
            check("it comes back: that is told", told("gone0: is another device now"))
            check("and the daemon ends", told("to be restarted") and daemon.wait(10) == 1)
        finally:
            daemon.kill()
        counted = (daemon.stdout.read() if daemon.stdout else "") or '{"devices": []}'
    names = [d["device"] for d in json.loads(counted)["devices"]]
    check("JSON whatever the names", names == ["gone0", odd, "lo", "bl?"], names)
    for name in ("gone0", latin):
        run("ip", "link", "del", name)


def checks(build: Path) -> int:
    """Neighbours hear of each other; who is further away does not."""
    wrong_words(build)
    comes_back(build)
    strangers(build)
    replaced(build)
    for count in (1, 2, 3):
        got = hops(build, {"hops": count, "begin": 1, "seconds": 5}, 1)
        name = f"{count} hops"
        print(f"# {name}: {got}", flush=True)
        within(f"{name}: the bottleneck's use, %", got["use"][-1], 97, 101)
        low, high = ((40, 52), NEXT_TO_IT, (0, 5))[count - 1]
        within(f"{name}: thinned at the source, %", got["thinned"][0], low, high)
        low, high = ((0, 1), (30, 42), (45, 52))[count - 1]
        within(f"{name}: lost on the way, %", got["lost"], low, high)
        said = [d for node in got["daemons"] for d in node["devices"]]
        check(f"{name}: no message is refused", not sum(
            d[key] for d in said for key in ("format", "not_of_link", "own", "old", "too_many",
                                             "send_failed", "tell_failed")), said)  # fmt: skip
        heard = got["daemons"][0]["devices"][0]["accepted"]
        check(f"{name}: the host hears of the next node, if that thins", (heard > 500) ==
              (count == 2), heard)  # fmt: skip
        for i, load in enumerate(got["downstream"][:-1]):
            check(f"{name}: node {i} knows of the bottleneck if it is next to it",
                  (load > 0.5) == (i == count - 2), got["downstream"])
    return summary()


def main() -> int:
    ap = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    ap.add_argument("run", nargs="?", choices=RUNS)
    ap.add_argument("--build", type=Path, default=Path(os.environ.get("PAQM_BUILD", "build")))
    ap.add_argument("--config", type=Path)
    ap.add_argument("--out", type=Path)
    ap.add_argument("--seed", type=int, default=1)
    args = ap.parse_args()
    build = (TOP / args.build).resolve()
    run("insmod", f"{os.environ['PAQM_KO_DIR']}/sch_rlqos.ko")
    if not args.run:
        return checks(build)
    config = json.loads(args.config.read_text())
    found = [RUNS[args.run](build, one, args.seed) for one in config["runs"]]
    args.out.write_text(json.dumps({"runs": found}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
