# SPDX-License-Identifier: GPL-2.0
"""The runs of `paqm-lab sfu`: one server, fifty viewers behind an uplink, TCP that comes and goes.

    P --+                             P: the publisher (layers encoded before), S: the server,
    S --+-- R1 ===== R2 -- V          T: TCP senders, V: all viewers and TCP receivers
    T --+      uplink
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from paqm_lab import cache, lab
from paqm_lab.errors import LabError
from paqm_lab.multi import netscenario
from paqm_lab.multi.case import Case

Json = dict[str, Any]

VIEWERS = 50
JOIN = (2.0, 4.0)  # s: the first viewer, and within how many more all have joined
TCP = 20  # flows
TCP_FROM, TCP_SPREAD, TCP_UNTIL = 14.0, 2.0, 28.0
DURATION = 40.0
JUDGED = 8.0  # s: viewers have joined, layers have risen
UPLINK = "20mbit"
HTTP, MEDIA = 8080, 7000
# Programs of a server's systems, besides those of viewers.
PROGRAMS = {"pion": "paqm-sfu-pion", "livekit": "paqm-livekit", "janus": "paqm-janus"}
LOAD = "paqm-sfu-load"
# What programs are built from, and what they read.
SOURCES = ("connectors/pion/*.go", "connectors/share/*.go", "connectors/media/*.go",
           "connectors/cmd/paqm-sfu-*/*.go", "connectors/go.*", "clients/go/*.go",
           "connectors/cmd/paqm-janus/*.go", "connectors/tests/janus/*",
           "connectors/livekit/*.go", "connectors/livekit/go.*",
           "connectors/livekit/cmd/*/*.go", "connectors/tests/livekit.yaml")
STAMP = "sources"  # beside programs: what they were built from
KEY, SECRET = "key", "0123456789abcdef0123456789abcdef"  # LiveKit wants a long one
LIVEKIT_LAYERS = "l1,l3,l5"  # it takes three
LIVEKIT = cache.REPO / "connectors" / "tests" / "livekit.yaml"
JANUS = cache.REPO / "connectors" / "tests" / "janus"  # its configuration
JANUS_HTTP, JANUS_ADMIN, JANUS_ROOM = 8088, 7088, 1234
CEILING, START = 2_000_000, 300_000  # bit/s, of the room, and before routers have spoken
# Set by hand: what the uplink has for each viewer while there is no TCP, less headers and a tenth.
BY_HAND = 350_000

PAQM: Json = {"qdisc": "paqm bandwidth {bandwidth} feedback icmp router-id {number}"}
# A picture for all viewers turns at key pictures, and the router is told so.
PAQM_GOP: Json = {"qdisc": PAQM["qdisc"] + " gop 500ms"}
FQ_CODEL: Json = {"qdisc": "fq_codel", "shaper": "htb"}


@dataclass(frozen=True)
class System:
    """A queue, a server, and whether it follows advice or goes by its own estimator."""

    title: str
    server: str
    follows: bool
    variant: Json


SYSTEMS = {
    "paqm": System("P-AQM, pion follows advice", "pion", True, PAQM),
    "paqm-own": System("P-AQM, pion's own estimator", "pion", False, PAQM),
    "fq_codel-own": System("fq_codel, pion's own estimator", "pion", False, FQ_CODEL),
    "livekit": System("P-AQM, LiveKit follows advice", "livekit", True, PAQM),
    "livekit-own": System("fq_codel, LiveKit's own estimator", "livekit", False, FQ_CODEL),
    "janus": System("P-AQM, Janus follows advice", "janus", True, PAQM_GOP),
    "janus-own": System("fq_codel, Janus, rate set by hand", "janus", False, FQ_CODEL),
}
# What follows advice, and what it is measured by: the same server's own estimator over fq_codel.
PAIRS = {"paqm": "fq_codel-own", "livekit": "livekit-own", "janus": "janus-own"}


class SfuCase(Case):
    """A run whose packets are looked at where they leave the server and where they come."""

    def watched(self) -> list[str]:
        return ["S", "V"]


def scenario(system: str) -> Json:
    """The network and the TCP flows."""
    access = [{"between": pair, "delay_ms": 5}
              for pair in (["P", "R1"], ["S", "R1"], ["T", "R1"], ["R2", "V"])]
    return {
        "name": "sfu",
        "title": f"{VIEWERS} viewers of a server behind {UPLINK}",
        "duration": DURATION,
        "seed": 1,
        "routers": ["R1", "R2"],
        "hosts": ["P", "S", "T", "V"],
        "link": [{"between": ["R1", "R2"], "bandwidth": UPLINK, "delay_ms": 10}, *access],
        "flow": [{"name": "tcp", "from": "T", "to": "V", "sender": "tcp", "count": TCP,
                  "start": TCP_FROM, "spread": TCP_SPREAD, "stop": TCP_UNTIL}],
        "variant": [{"name": system, **SYSTEMS[system].variant}],
    }  # fmt: skip


def sources() -> str:
    """A name for what programs are built from; connectors/build.sh leaves it beside them."""
    found = sorted(path for pattern in SOURCES for path in cache.REPO.glob(pattern))
    return cache.digest(*[path.read_bytes() for path in found])


def home() -> Path:
    """Where make connectors leaves them."""
    return cache.cache_dir() / "connectors"


def programs(systems: list[str]) -> None:
    """Refuses before the first guest boots when programs are missing, or are of other sources: all
    clones of a user have one cache, and a result is kept by what it says to be of."""
    needed = {PROGRAMS[SYSTEMS[name].server] for name in systems} | {LOAD}
    for name in sorted(needed):
        if not (home() / name).exists():
            raise LabError(f"{name} is not built; run make connectors, or pick with --systems "
                           "those that do without it")  # fmt: skip
    stamp = home() / STAMP
    if not stamp.exists() or stamp.read_text().strip() != sources():
        raise LabError(f"the programs in {home()} are not of these sources; run make connectors")


def server(system: System, where: Path, ip: str) -> list[str]:
    """The command of a system's server."""
    if system.server == "pion":
        return [str(where / "paqm-sfu-pion"), "--listen", f"{ip}:{HTTP}", "--port", str(MEDIA),
                "--estimator", "paqm" if system.follows else "gcc",
                "--paqmd", "/run/paqmd-S.sock", "--log", "sfu.jsonl"]  # fmt: skip
    if system.server == "janus":
        return ["janus", "-F", str(JANUS)]
    # By default LiveKit goes by what viewers estimate (REMB), which those of today do not; what it
    # estimates by their transport-wide feedback is its own.
    text = LIVEKIT.read_text().format(http=HTTP, media=MEDIA, ip=ip, key=KEY, secret=SECRET,
                                      control="true", own=str(not system.follows).lower())
    return [str(where / "paqm-livekit"), "--config-body", text, "--paqm-log", "sfu.jsonl",
            "--paqmd", "/run/paqmd-S.sock" if system.follows else "none"]  # fmt: skip


def follow_janus(where: Path) -> list[str]:
    """The command of what stands beside Janus."""
    here = "http://127.0.0.1"
    return [str(where / "paqm-janus"), "--api", f"{here}:{JANUS_HTTP}/janus",
            "--admin", f"{here}:{JANUS_ADMIN}/admin", "--admin-secret", "admin",
            "--room", str(JANUS_ROOM), "--ceiling", str(CEILING),
            "--start", str(START), "--paqmd", "/run/paqmd-S.sock"]  # fmt: skip


def case(data: Json, seed: int, layers: Path) -> Case:
    """The run."""
    name = data["variant"][0]["name"]
    system = SYSTEMS[name]
    plain = netscenario.check(Path("sfu"), data).case(data["variant"][0], seed)
    made = SfuCase(**{one.name: getattr(plain, one.name) for one in fields(Case)})
    made.add_flows(Path(lab.BUILD) / "lab" / "spec_traffic", Path(lab.BUILD), None, seed)
    made.add_daemon("S", Path(lab.BUILD))
    where, ip = home(), made.net.address("S")
    # One processor for Go: how its threads take turns is then up to the guest's kernel alone.
    go = ["env", "GOMAXPROCS=1"]
    made.program("sfu", "S", *go, *server(system, where, ip), start=0, lasts=True)
    load, pick = [*go, str(where / "paqm-sfu-load")], []
    to = ["--server", f"{ip}:{JANUS_HTTP if system.server == 'janus' else HTTP}"]
    to += ["--epoch", "@T0@"]
    if system.server == "livekit":
        to += ["--livekit", f"{KEY}:{SECRET}"]
        pick = ["--pick", LIVEKIT_LAYERS]
    if system.server == "janus":
        to += ["--janus", str(JANUS_ROOM)]
        pick = ["--bitrate", str(CEILING if system.follows else BY_HAND)]
        if system.follows:
            made.program("follow", "S", *go, *follow_janus(where), start=0, lasts=True)
    made.program("publish", "P", *load, "publish", *to, *pick, "--layers", str(layers),
                 "--from", "0.5", "--until", f"{DURATION + 0.2:g}", start=0.5)
    made.program("view", "V", *load, "view", *to, "--count", str(VIEWERS), "--from", f"{JOIN[0]:g}",
                 "--spread", f"{JOIN[1]:g}", "--until", f"{DURATION:g}", start=0.5)
    return made
