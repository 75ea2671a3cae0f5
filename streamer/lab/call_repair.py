#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""A call over a path that loses packets one way, inside a lab guest: with and without correction.

Prints `ok NAME` or `not ok NAME: why`. The network is that of tests/lab_repair.py: what s sends
loses 3 %, what v sends loses nothing. Only s is asked to add what corrects.
"""

from __future__ import annotations

import argparse
import json
import secrets
import subprocess
import sys
from collections import Counter
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "streamer" / "tests"))
import lab_repair  # noqa: E402
import trial  # noqa: E402
from trial import check, within  # noqa: E402

SECONDS = 15
RATE = "1mbit"  # kept in spite of losses: pictures of few packets have little that corrects


class Call:
    """Listener v, caller s; what both have recorded."""

    def __init__(self, build: Path, name: str, clip: Path, *fec: str) -> None:
        lab_repair.network("3%")
        self.home = Path("/run/tmp") / name
        self.home.mkdir()
        secret = self.home / "secret"
        secret.touch(0o600)
        secret.write_text(secrets.token_hex(24) + "\n")
        common = ["--secret", str(secret), "--source", str(clip), "--audio", "test"]
        common += ["--sink", "none", "--audio-sink", "none", "--paqmd", "none"]
        common += ["--rate-max", RATE, "--rate-min", RATE, "--duration", str(SECONDS)]
        programs = []
        for host, where in (("v", ["--listen", "0.0.0.0"]), ("s", ["10.1.0.2", *fec])):
            command = [str(build / "streamer" / "paqm-streamer"), "call", *where, *common]
            programs.append(
                subprocess.Popen(
                    ["ip", "netns", "exec", host, *command, "--record", str(self.home / host)],
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                    text=True))
            if host == "v":
                out = programs[0].stdout
                assert out and out.readline().startswith("waiting")
        for program in programs:
            said = program.communicate(timeout=60)[0]
            assert program.returncode == 0, said
            print(f"# {name}: {said.splitlines()[-1]}", flush=True)

    def about(self, host: str) -> int:
        return int(json.loads((self.home / host / "call.json").read_text())["fec"])

    def corrected(self, host: str) -> int:
        return int(lab_repair.rows(self.home / host / "inbound.csv")[-1]["corrected"])

    def lacks(self) -> list[int]:
        """Of each of s' pictures, how many packets did not come to v."""
        frames = lab_repair.rows(self.home / "s" / "frames.csv")
        came = Counter(row["rtp_ts"] for row in lab_repair.rows(self.home / "v" / "rx.csv"))
        return [int(row["packets"]) - came[row["rtp_ts"]] for row in frames]

    def missing(self) -> int:
        return sum(self.lacks())

    def shown(self) -> float:
        """Share of the pictures that s has sent."""
        sent = len(lab_repair.rows(self.home / "s" / "frames.csv"))
        return len(lab_repair.rows(self.home / "v" / "video.csv")) / sent


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--build", type=Path, default=TOP / "build")
    build = parser.parse_args().build.resolve()
    Path("/run/tmp").mkdir(exist_ok=True)
    clip = Path("/run/tmp/clip.y4m")
    size = lab_repair.WIDTH, lab_repair.HEIGHT
    trial.write_noise(clip, *size, bytes(112 + b % 32 for b in range(256)))
    plain = Call(build, "plain", clip)
    fec = Call(build, "fec", clip, "--fec", "30")
    for call in (plain, fec):
        print(f"# {call.home.name}: {call.missing()} packets missing, {call.corrected('v')} "
              f"corrected, {100 * call.shown():.1f} % of the pictures shown", flush=True)
        check(f"{call.home.name}: there were losses", call.missing() > 10, call.missing())
        check(f"{call.home.name}: no picture has more packets than its sender counts",
              min(call.lacks()) == 0, min(call.lacks()))
    check("nobody asked for correction: none", plain.about("s") == plain.corrected("v") == 0)
    check("s adds what corrects, v does not",
          fec.about("s") == 30 and fec.about("v") == 0 and fec.corrected("s") == 0)
    # the last packets of the call are missing, too
    within("fec: packets corrected, share of those missing",
           fec.corrected("v") / fec.missing(), 0.5, 1)
    within("fec: share of pictures shown", fec.shown(), 0.9, 1)
    return trial.summary()


if __name__ == "__main__":
    sys.exit(main())
