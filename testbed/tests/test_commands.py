# SPDX-License-Identifier: GPL-2.0
"""Commands in a guest's namespaces: what is refused is told in the words of the command."""

import json
import shlex
import subprocess
from pathlib import Path

import pytest

from paqm_lab import cache, commands, kernel, uml

pytestmark = pytest.mark.lab

SCRIPT = """
import contextlib, json, os, socket, time
from paqm_lab import topology
from paqm_lab.topology import CommandFailed

said = {}

@contextlib.contextmanager
def refused(key):
    try:
        yield
    except CommandFailed as error:
        said[key] = str(error)

net = topology.in_a_row("a", "r", "b", mtu=1400)
net.delay(net.links[1], 10)
topology.make(net)
own = os.stat("/proc/self/ns/net").st_ino
with refused("batch"):
    topology.batch("a", "ip", [f"link set dev {name} up" for name in ("a0", "none", "lo")])
with refused("host"):
    topology.batch("nobody", "ip", ["link set dev lo up"])
with refused("within"), topology.within("r"):
    said["elsewhere"] = os.stat("/proc/self/ns/net").st_ino != own
    said["forwards"] = open("/proc/sys/net/ipv4/ip_forward").read().strip()
    topology.run("ip", "link", "show", "dev", "r9")
said["back"] = os.stat("/proc/self/ns/net").st_ino == own
teller = topology.Teller("r")
said["told"] = []
for count in (3, 2):
    with topology.within("a"), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        for _ in range(count):
            udp.sendto(b"", ("10.2.0.2", 9))
    time.sleep(0.1)
    said["told"].append(json.loads(teller.ask("qdisc", "show", "dev", "r1"))[0]["packets"])
for key in ("device", "ended"):
    with refused(key):
        teller.ask("qdisc", "show", "dev", "r9")
teller.end()
print(json.dumps(said))
"""


def test_commands_and_what_is_refused(tmp_path: Path) -> None:
    built = kernel.ensure("lab", print)
    job = uml.Job(
        directory=tmp_path, command=["sh", "-c", shlex.join(["python3", "-c", SCRIPT])],
        environment=uml.environment(built, None),
    )
    result = uml.run(built, job)
    assert result.good, result.explain() + result.output.read_text()
    said = json.loads(result.output.read_text())
    assert said["batch"].startswith('ip -n a link set dev none up: Cannot find device "none"')
    assert "nobody" in said["host"]
    assert said["within"].startswith("ip link show dev r9: ")
    assert said["elsewhere"] and said["back"] and said["forwards"] == "1"
    assert said["told"] == [3, 5]
    assert said["device"].startswith("tc -n r -s -j qdisc show dev r9: Cannot find device")
    assert said["ended"].startswith("tc -n r -s -j qdisc show dev r9: ")


@pytest.mark.parametrize(
    ("said", "last"),
    [
        ("", "it said nothing"),
        ("one\ntwo\n\n", "two"),
        ("prog: wrong; one of\n  a   what a is\n    b=1  its option\n", "prog: wrong; one of"),
    ],
)
def test_last_words_are_not_those_of_a_list(said: str, last: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_text(said)
    assert commands.last_words(tmp_path / "log") == last


def test_a_run_says_what_its_program_said(tmp_path: Path) -> None:
    short = (cache.REPO / "testbed" / "scenarios" / "trace-short.toml").read_text()
    wrong = short.replace('qdisc = "paqm', 'sender = ["--controller", "fixd"]\nqdisc = "paqm')
    (tmp_path / "wrong.toml").write_text(wrong)
    words = [cache.REPO / "testbed" / "paqm-lab", "run", tmp_path / "wrong.toml"]
    words += ["--variant", "paqm", "--out", tmp_path / "out"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 2
    said = done.stderr.splitlines()[-1]
    assert "send.log: paqm-streamer: --controller fixd: there is no controller" in said
    assert said.endswith(f"(in {tmp_path}/out/paqm)")
    assert (tmp_path / "out" / "paqm" / "send.log").exists()
