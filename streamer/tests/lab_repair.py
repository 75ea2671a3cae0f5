#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Repair of losses inside a lab guest: a path that loses packets, with and without repair.

Prints `ok NAME` or `not ok NAME: why`. Two hosts: s sends, v receives; netem on both devices delays
by 20 ms and loses 3 % of what s sends.
"""

from __future__ import annotations

import argparse
import re
import struct
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "kernel" / "lab-tests"))
import streams  # noqa: E402
import trial  # noqa: E402
from trial import check, rows, run, within  # noqa: E402

from paqm_lab import topology  # noqa: E402
from paqm_lab.topology import netem, pair  # noqa: E402

TO = "10.1.0.2:5004"
RATE = 1_000_000
SECONDS = 60
WARM_UP = 2  # s
ETHERNET = 14
GROUP = 12  # pictures
WIDTH, HEIGHT = 320, 192


def network(loss: str) -> None:
    net = pair("s", "v", ("sv", "vs"), ipv6=True)
    net.queue("s", "sv", "root", *netem(20, "loss", loss))
    net.queue("v", "vs", "root", *netem(20))
    topology.remove(net)
    topology.make(net)


def sent() -> tuple[int, int]:
    """Bytes on the IP layer and packets that s has handed to its device, lost ones too."""
    text = run("tc", "-n", "s", "-s", "qdisc", "show", "dev", "sv")
    found = re.search(r"Sent (\d+) bytes (\d+) pkt \(dropped (\d+),", text)
    assert found, text
    return int(found[1]) - ETHERNET * int(found[2]), int(found[3])


def datagrams(path: Path) -> Iterator[bytes]:
    """UDP payloads in a capture of an Ethernet device (IPv4 without options)."""
    data = path.read_bytes()
    assert data[:4] == b"\xd4\xc3\xb2\xa1", path  # little-endian
    at = 24
    while at + 16 <= len(data):
        (length,) = struct.unpack_from("<I", data, at + 8)
        yield data[at + 16 + ETHERNET + 28 : at + 16 + length]
        at += 16 + length


class Result:
    """One stream from s to v."""

    def __init__(self, build: Path, clip: Path, send: str, recv: str, loss: str = "3%") -> None:
        network(loss)
        home = Path(tempfile.mkdtemp())
        program = build / "streamer" / "paqm-streamer"
        receiver = streams.receive(program, TO, home / "r", "--seed", 2, *recv.split(), host="v")
        sender = streams.send(program, TO, home / "s", clip, "--loop", "--rate-max", RATE,
                              "--controller", "fixed", "--seed", 1, "--duration", SECONDS,
                              *send.split(), host="s")
        self.rates = []
        before, _ = sent()
        for _ in range(SECONDS):
            time.sleep(1)
            now, self.dropped = sent()
            self.rates.append((now - before) * 8)
            before = now
        self.said, self.heard = streams.finish(receiver, sender)
        self.frames = rows(home / "s" / "frames.csv")
        self.decoded = rows(home / "r" / "decoded.csv")
        self.packets = rows(home / "r" / "rx.csv")
        self.inbound = rows(home / "r" / "inbound.csv")
        self.repair = {row["key"]: float(row["value"]) for row in rows(home / "s" / "control.csv")
                       if row["controller"] == "repair"}

    def arrived(self) -> float:
        """Share of the pictures all of whose packets came the first time."""
        came: dict[str, int] = {}
        for packet in self.packets:
            came[packet["rtp_ts"]] = came.get(packet["rtp_ts"], 0) + 1
        whole = sum(came.get(f["rtp_ts"], 0) >= int(f["packets"]) for f in self.frames)
        return whole / len(self.frames)

    def first_shown(self) -> int:
        """Number of the first picture shown: nobody misses a packet before the first that came."""
        return [f["rtp_ts"] for f in self.frames].index(self.decoded[0]["rtp_ts"])

    def shown(self) -> float:
        """Share of the pictures shown, from the first one on."""
        return len(self.decoded) / (len(self.frames) - self.first_shown())

    def lost(self) -> int:
        """Packets of the stream that were given up."""
        last = self.inbound[-1]
        return int(last["lost"]) - int(last["corrected"])

    def missing(self) -> int:
        """Packets of the stream that did not come the first time."""
        return sum(int(f["packets"]) for f in self.frames) - len(self.packets)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--build", type=Path, default=TOP / "build")
    args = parser.parse_args()
    clip = Path("/run/tmp/clip.y4m")
    trial.write_noise(clip, WIDTH, HEIGHT, bytes(112 + b % 32 for b in range(256)))
    results = {}
    for name, send, recv, loss in (
        ("no repair", "", "", "3%"),
        ("rtx", "--rtx", "--rtx", "3%"),
        ("fec", "--fec 30", "--fec", "3%"),
        ("rtx and fec", "--rtx --fec 20", "--rtx --fec", "3%"),
        ("rtx, a path that loses much", "--rtx", "--rtx", "30%"),
    ):  # fmt: skip
        result = results[name] = Result(args.build.resolve(), clip, send, recv, loss)
        for line in (*result.said.splitlines()[1:], *result.heard.splitlines()[1:]):
            print(f"# {name}: {line}", flush=True)
        print(f"# {name}: {len(result.frames)} pictures, {100 * result.arrived():.1f} % whole the "
              f"first time, {result.missing()} packets missing, wait "
              f"{result.inbound[-1]['wait_ms']} ms, kbit/s in each second "
              f"{[round(r / 1e3) for r in result.rates]}", flush=True)
        within(f"{name}: highest rate of a second, share of what is allowed",
               max(result.rates[WARM_UP:]) / RATE, 0.5, 1.03)
    # what could not be corrected costs the rest of its group: chance
    for name, least in (("rtx", 0.985), ("fec", 0.9), ("rtx and fec", 0.985)):
        result = results[name]
        check(f"{name}: there were losses", result.arrived() < 0.95, result.arrived())
        within(f"{name}: first picture shown", result.first_shown(), 0, GROUP)
        within(f"{name}: share of pictures shown", result.shown(), least, 1)
    result = results["no repair"]
    within("no repair: share of pictures shown", len(result.decoded) / len(result.frames), 0, 0.9)
    result = results["rtx"]
    # 0.014 to 0.052 with several seeds
    within("rtx: packets given up, share of those missing", result.lost() / result.missing(), 0,
           0.1)
    result = results["fec"]
    within("fec: packets corrected, share of those missing",
           int(result.inbound[-1]["corrected"]) / result.missing(), 0.6, 1)
    result = results["rtx, a path that loses much"]
    refused = re.search(r"(\d+) of them refused", result.said)
    check("much loss: requests beyond the budget are refused", refused and int(refused[1]) > 10,
          result.said)
    return trial.summary()


if __name__ == "__main__":
    sys.exit(main())
