#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Runs the recipes of docs/persistence.md as their callers would; as root inside a lab guest.

The files are taken from the page: a path in a line of its own, then a code block. They are written
below a scratch directory, started with the words, the environment and the order of systemd,
ifupdown, NetworkManager and pppd, and what tc shows afterwards is compared.
Usage: paqm-lab exec userspace/tc-paqm/tests/lab_recipes.py
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "kernel" / "lab-tests"))
import trial  # noqa: E402
from trial import check  # noqa: E402

from paqm_lab import topology  # noqa: E402

PAGE = TOP / "docs" / "persistence.md"
PACKAGES = TOP / "docs" / "packages.md"
EXAMPLE = TOP / "packaging" / "examples" / "paqm@.service"
FILE = re.compile(r"^`(/etc/\S+)`[^\n]*:\n\n```\n(.*?)^```$", re.M | re.S)
DEV = "eth0"


def sh(*words: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, capture_output=True, text=True, check=False, env={**os.environ, **(env or {})}
    )


def qdiscs(device: str = DEV) -> list[dict[str, Any]]:
    text = sh("tc", "-j", "qdisc", "show", "dev", device).stdout
    return [q for q in json.loads(text or "[]") if q["kind"] == "paqm"]


def expect(name: str, status: subprocess.CompletedProcess[str], rate: int | None) -> None:
    """paqm with this bandwidth is there, or none at all."""
    found = [q["options"]["bandwidth_bps"] for q in qdiscs()]
    good = status.returncode == 0 and found == ([] if rate is None else [rate])
    check(name, good, f"status {status.returncode}, {status.stderr.strip()}, bandwidth {found}")


def clear() -> None:
    sh("tc", "qdisc", "del", "dev", DEV, "root")


def words_of_option(text: str) -> dict[str, str]:
    """EnvironmentFile= as systemd reads it."""
    return dict(
        (name, " ".join(shlex.split(value)))
        for name, _, value in (line.partition("=") for line in text.splitlines() if "=" in line)
    )


class Unit:
    """As much of systemd as the units here use."""

    def __init__(self, text: str, root: Path, device: str = DEV) -> None:
        self.device = device
        self.lines = [tuple(line.split("=", 1)) for line in text.splitlines() if "=" in line]
        source = next(value for key, value in self.lines if key == "EnvironmentFile")
        self.config = Path(f"{root}{source.replace('%I', device)}")

    def start(self) -> subprocess.CompletedProcess[str]:
        result = self.run("ExecStart")
        if result.returncode:  # of one that did not start ExecStop= is not run
            self.run("ExecStopPost")
        return result

    def stop(self) -> subprocess.CompletedProcess[str]:
        results = [self.run("ExecStop"), self.run("ExecStopPost")]
        return next((result for result in results if result.returncode), results[0])

    def reload_or_restart(self) -> subprocess.CompletedProcess[str]:
        if any(key == "ExecReload" for key, _ in self.lines):
            return self.run("ExecReload")
        self.stop()
        return self.start()

    def run(self, key: str) -> subprocess.CompletedProcess[str]:
        given = [value for name, value in self.lines if name == "Environment"]
        environment = words_of_option("\n".join(given).replace("%I", self.device))
        environment |= words_of_option(self.config.read_text())
        for name, value in self.lines:
            if name != key:
                continue
            words: list[str] = []
            for word in shlex.split(value.replace("%I", self.device)):
                # a variable that is a word by itself is split, unless it is in braces
                braces = word.startswith("${")
                split = environment[word[1:]].split() if word[0] == "$" and not braces else [word]
                words += [environment[word[2:-1]]] if braces else split
            ignored = words[0].startswith("-")
            result = sh(words[0].lstrip("-"), *words[1:])
            if result.returncode and not ignored:
                return result
        return sh("true")


def scripts(files: dict[str, str], root: Path) -> None:
    config = files["/etc/paqm/eth0.conf"]
    given = words_of_option(config)["OPTIONS"]
    check("the page's options are those of 20 Mbit/s", "bandwidth 20mbit" in given, given)

    def script(path: str, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        return sh("/bin/sh", str(root) + path, *words, env=env)

    ifup = "/etc/network/if-up.d/paqm"
    clear()
    expect("ifupdown: stanza without paqm", script(ifup, IFACE=DEV), None)
    stanza = files["/etc/network/interfaces"]
    found = re.search(r"^ +paqm (.*)$", stanza, re.M)
    options = found[1] if found else ""
    expect("ifupdown: stanza with paqm", script(ifup, IFACE=DEV, IF_PAQM=options), 20_000_000)
    expect("ifupdown: again", script(ifup, IFACE=DEV, IF_PAQM="bandwidth 3mbit"), 3_000_000)
    result = script(ifup, IFACE=DEV, IF_PAQM="bandwidth fast")
    check("ifupdown: a mistake is told", result.returncode != 0 and "fast" in result.stderr)

    dispatcher = "/etc/NetworkManager/dispatcher.d/50-paqm"
    clear()
    expect("NetworkManager: device goes down", script(dispatcher, DEV, "down"), None)
    expect("NetworkManager: device without a file", script(dispatcher, "lo", "up"), None)
    expect("NetworkManager: device comes up", script(dispatcher, DEV, "up"), 20_000_000)

    ppp = "/etc/ppp/ip-up.d/paqm"
    clear()
    expect("pppd: device without a file", script(ppp, PPP_IFACE="ppp7"), None)
    expect("pppd: device with one", script(ppp, PPP_IFACE=DEV), 20_000_000)

    if not shutil.which("shellcheck"):
        print("skip shellcheck: it is not installed")
        return
    for path in (ifup, dispatcher, ppp):
        result = sh("shellcheck", "--exclude=SC1090", str(root) + path)
        check(f"shellcheck {path}", result.returncode == 0, result.stdout)


def unit_of_device(name: str, unit: Unit, options: str) -> None:
    clear()
    unit.config.parent.mkdir(parents=True, exist_ok=True)
    unit.config.write_text(options)
    expect(f"{name}: start", unit.start(), 20_000_000)
    check(f"{name}: messages are sent", qdiscs()[0]["options"]["feedback"] == "icmp", qdiscs())
    unit.config.write_text('OPTIONS="bandwidth 7mbit"')
    expect(f"{name}: after a change", unit.reload_or_restart(), 7_000_000)
    feedback = qdiscs()[0]["options"]["feedback"]
    check(f"{name}: what a word has set goes with the word", feedback == "none", feedback)
    expect(f"{name}: stop", unit.stop(), None)
    expect(f"{name}: stop again", unit.stop(), None)


def units(files: dict[str, str], root: Path) -> None:
    options = files["/etc/paqm/eth0.conf"]
    for name, text in (
        ("unit", files["/etc/systemd/system/paqm@.service"]),
        ("unit of the package", EXAMPLE.read_text()),
    ):
        unit_of_device(name, Unit(text, root), options)

    ingress = Unit(files["/etc/systemd/system/paqm-ingress@.service"], root)
    options = ingress.config.read_text()
    ingress.config.write_text('OPTIONS="bandwidth fast"')
    result = ingress.start()
    check("ingress: a mistake is told", result.returncode and "fast" in result.stderr, result)
    ingress.config.write_text(options)
    result = ingress.start()
    found = [q["options"]["bandwidth_bps"] for q in qdiscs(f"ifb-{DEV}")]
    good = (result.returncode, found) == (0, [90_000_000])
    check("ingress: start, after one that failed", good, result.stderr)
    send = "for i in 1 2 3; do echo >/dev/udp/10.1.0.1/9; sleep 0.1; done"
    sh("ip", "netns", "exec", "peer", "bash", "-c", send)
    text = sh("tc", "-s", "-j", "qdisc", "show", "dev", f"ifb-{DEV}").stdout
    sent = [q["packets"] for q in json.loads(text) if q["kind"] == "paqm"]
    check("ingress: what arrives passes it", len(sent) == 1 and sent[0] >= 3, str(sent))
    result = ingress.stop()
    left = sh("ip", "link", "show", f"ifb-{DEV}").returncode
    check("ingress: stop", result.returncode == 0 and left != 0, result.stderr)
    long_name(files["/etc/systemd/system/paqm-ingress@.service"], root, options)

    if not shutil.which("systemd-analyze"):
        print("skip systemd-analyze: it is not installed")
        return
    for name in ("paqm", "paqm-ingress"):
        path = root / f"etc/systemd/system/{name}@.service"
        result = sh("systemd-analyze", "verify", str(path).replace("@.", "@eth0."))
        told = [line for line in result.stderr.splitlines() if f"{name}@" in line]
        told = [line for line in told if "Command 'man " not in line]  # not installed
        check(f"systemd-analyze verify {name}@.service", not told, "\n".join(told))


def long_name(text: str, root: Path, options: str) -> None:
    """A device whose name leaves no room for more."""
    long = "enx001122334455"
    sh("ip", "link", "add", long, "type", "dummy")
    unit = Unit(text, root, long)
    unit.config.write_text(options + "IFB=ifb-usb\n")
    result = unit.start()
    found = [q["options"]["bandwidth_bps"] for q in qdiscs("ifb-usb")]
    check("ingress: a name of 15 letters", (result.returncode, found) == (0, [90_000_000]),
          result.stderr)
    result = unit.stop()
    left = sh("ip", "link", "show", "ifb-usb").returncode
    check("ingress: stop of that", result.returncode == 0 and left != 0, result.stderr)
    sh("ip", "link", "del", long)


def default(files: dict[str, str]) -> None:
    name, _, value = files["/etc/sysctl.d/50-paqm.conf"].strip().partition(" = ")
    path = Path("/proc/sys") / name.replace(".", "/")
    before = path.read_text()
    path.write_text(value)
    # ifb: virtual, but with a queue of its own
    sh("ip", "link", "add", "one", "type", "ifb")
    sh("ip", "link", "add", "two", "numtxqueues", "2", "type", "ifb")
    found = []
    for device in ("one", "two"):
        sh("ip", "link", "set", device, "up")
        found.append([q["options"]["bandwidth_bps"] for q in qdiscs(device)])
    check("default qdisc: no shaper, one for each queue", found == [[0], [0, 0]], str(found))

    # and how it goes again: as long as it is the default, or a device has it, the module is in use
    removal = PACKAGES.read_text().partition("\n## Remove\n")[2]
    lines = re.findall(r"^(?:sysctl|tc qdisc) [^#\n]*", removal, re.M)
    for device in ("one", "two"):
        for line in lines:
            sh("sh", "-c", line.replace("eth0", device))
    left = [q for device in ("one", "two") for q in qdiscs(device)]
    check("default qdisc: removed", not left and value not in path.read_text(), str(left))
    path.write_text(before)
    for device in ("one", "two"):
        sh("ip", "link", "del", device)


def main() -> int:
    trial.load_modules()
    topology.make(topology.pair(topology.HERE, "peer", (DEV, "far")))
    files = dict(FILE.findall(PAGE.read_text()))
    with tempfile.TemporaryDirectory() as scratch:
        for path, text in files.items():
            place = Path(scratch + path)
            place.parent.mkdir(parents=True, exist_ok=True)
            # scripts read the scratch directory; a unit is what systemd would read
            place.write_text(
                text if "systemd" in path else text.replace('"/etc/paqm/', f'"{scratch}/etc/paqm/')
            )
        scripts(files, Path(scratch))
        units(files, Path(scratch))
    default(files)
    clear()
    return trial.summary() if files else 1


if __name__ == "__main__":
    sys.exit(main())
