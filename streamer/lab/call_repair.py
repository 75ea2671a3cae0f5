#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Calls over bad paths inside a lab guest: one loses packets, the delay of another jumps.

Prints `ok NAME` or `not ok NAME: why`. The network is that of tests/lab_repair.py: what s sends
loses 3 %, what v sends loses nothing. Only s is asked to add what corrects. Then, without losses,
what s sends takes 300 ms instead of 20, and 20 again: v plays picture and sound later, together.
Then s stands still for 0.8 s: when what v plays was captured is known all the time. Last, a voice
loses 5 %: what v hears of the pieces that were lost is compared with what s has said.
"""

from __future__ import annotations

import argparse
import json
import re
import secrets
import signal
import statistics
import sys
import time
from bisect import bisect
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "streamer" / "tests"))
import lab_repair  # noqa: E402
import trial  # noqa: E402
import voice  # noqa: E402
from trial import Program, check, rows, run, within  # noqa: E402

from paqm_lab.topology import netem  # noqa: E402

SECONDS = 15
RATE = "1mbit"  # kept in spite of losses: pictures of few packets have little that corrects
SETTLE = 2.0  # s of a call that are not judged
LIP_MS = 45.0
KEYS = 0.499  # s between key frames, however often they are asked for
FREEZE = 0.2  # s
JUMPS = ((6.0, 300), (13.0, 20))  # s after the begin, ms on the way from s
BACK = 9.0  # s after the begin when the delay has been high for a while
STOP, STOPPED = 6.0, 0.8  # s after the begin, s
UNTOLD = 0.1  # s without a time of capture: a piece or two may have come before the first report
VOICE_S = 60  # of a call
LEARNT = 150  # pieces until s knows that some are lost
BACK_ALIKE = 0.8  # what came whole is 0.95 like what was said, what is concealed 0.6
SOUND_PT = 97
OPUS_BPS = 32000
AROUND = 12 + 10  # bytes of RTP and SRTP


class Call:
    """Listener v, caller s; what both have recorded."""

    def __init__(self, build: Path, name: str, clip: Path, *fec: str, loss: str = "3%",
                 jumps: Iterable[tuple[float, int]] = (), said: Path | None = None,
                 stop: bool = False) -> None:
        lab_repair.network(loss)
        self.home = Path("/run/tmp") / name
        self.home.mkdir()
        secret = self.home / "secret"
        secret.touch(0o600)
        secret.write_text(secrets.token_hex(24) + "\n")
        common = ["--secret", str(secret), "--source", str(clip), "--audio", str(said or "test")]
        common += ["--sink", "none", "--paqmd", "none", "--rate-max", RATE, "--rate-min", RATE]
        common += ["--duration", str(VOICE_S if said else SECONDS)]
        programs = []
        if said:
            wire = Program("v", "tcpdump", "-Z", "root", "-i", "vs", "-n", "-U", "-w",
                           self.home / "vs.pcap", "dst host 10.1.0.2 and udp", ready="listening on")
        for host, where in (("v", ["--listen", "0.0.0.0"]), ("s", ["10.1.0.2", *fec])):
            command = [str(build / "streamer" / "paqm-streamer"), "call", *where, *common,
                       "--audio-sink", str(self.home / f"{host}.wav") if said else "none"]
            programs.append(Program(host, *command, "--record", self.home / host,
                                    ready="waiting" if host == "v" else ""))
        begin = time.monotonic()
        for at, delay in jumps:
            time.sleep(begin + at - time.monotonic())
            run("tc", "-n", "s", "qdisc", "change", "dev", "sv", "root", *netem(delay))
        if stop:
            time.sleep(STOP)
            programs[1].send_signal(signal.SIGSTOP)
            time.sleep(STOPPED)
            programs[1].send_signal(signal.SIGCONT)
        self.told = {}
        for host, program in zip("vs", programs, strict=True):
            self.told[host] = program.end()
            print(f"# {name}: {self.told[host].splitlines()[-1]}", flush=True)
        if said:
            wire.end(signal.SIGINT)

    def about(self, host: str) -> int:
        return int(json.loads((self.home / host / "call.json").read_text())["fec"])

    def corrected(self, host: str) -> int:
        return int(rows(self.home / host / "inbound.csv")[-1]["corrected"])

    def lacks(self) -> list[int]:
        """Of each of s' pictures, how many packets did not come to v."""
        frames = rows(self.home / "s" / "frames.csv")
        came = Counter(row["rtp_ts"] for row in rows(self.home / "v" / "rx.csv"))
        return [int(row["packets"]) - came[row["rtp_ts"]] for row in frames]

    def keys(self) -> list[float]:
        """When s coded pictures that need none before, s."""
        return [int(row["t_ns"]) / 1e9 for row in rows(self.home / "s" / "frames.csv")
                if row["type"] == "I"]

    def missing(self) -> int:
        return sum(self.lacks())

    def played(self, name: str) -> list[tuple[float, float]]:
        """When v played the pieces of a kind, s since its first picture; how old each was."""
        begin = int(rows(self.home / "v" / "video.csv")[0]["play_ns"])
        times = [(int(row["play_ns"]), int(row["capture_ns"]))
                 for row in rows(self.home / "v" / f"{name}.csv")]
        return [((at - begin) / 1e9, (at - capture) / 1e9) for at, capture in times if capture]

    def untold(self, host: str, name: str) -> float:
        """Longest time for which nothing said when it was captured, from SETTLE on, s."""
        played = rows(self.home / host / f"{name}.csv")
        plays = [int(row["play_ns"]) / 1e9 for row in played]
        told = [at for at, row in zip(plays, played, strict=True) if int(row["capture_ns"])]
        longest, since = 0.0, plays[0] + SETTLE
        for at in plays:
            if at > since:
                k = bisect(told, at)
                last = max(told[k - 1] if k else 0.0, since)
                longest = max(longest, at - last)
        return longest

    def sound(self) -> float:
        """Share of the pieces of 20 ms, between the first and the last, that v played."""
        times = [int(row["play_ns"]) for row in rows(self.home / "v" / "audio.csv")]
        return (len(times) - 1) / ((times[-1] - times[0]) / 20e6)

    def lips(self) -> list[float]:
        """How much later than their sound v played the pictures, ms, from SETTLE on."""
        sound, late = self.played("audio"), []
        times = [at for at, _ in sound]
        for at, age in self.played("video"):
            k = bisect(times, at)
            if at >= SETTLE and 0 < k < len(sound):
                (t0, a0), (t1, a1) = sound[k - 1 : k + 1]
                late.append(1000 * (age - a0 - (a1 - a0) * (at - t0) / (t1 - t0)))
        return late

    def packets(self) -> dict[int, int]:
        """Of s' sound, that came to v: number in the order in which it was sent, bytes of Opus."""
        ssrc = json.loads((self.home / "s" / "call.json").read_text())["audio"]["ssrc"]
        came: dict[int, int] = {}
        number = -1
        for data in lab_repair.datagrams(self.home / "vs.pcap"):
            if len(data) < 12 or data[1] & 0x7F != SOUND_PT or data[8:12] != ssrc.to_bytes(4):
                continue
            seq = int.from_bytes(data[2:4])
            number = seq if number < 0 else number + (seq - number + 32768) % 65536 - 32768
            came[number] = len(data) - AROUND
        return came

    def shown(self) -> float:
        """Share of the pictures that s has sent."""
        sent = len(rows(self.home / "s" / "frames.csv"))
        return len(rows(self.home / "v" / "video.csv")) / sent


def jump(call: Call) -> None:
    lips, pictures = call.lips(), call.played("video")
    gaps = [b - a for (a, _), (b, _) in pairwise(pictures) if a >= SETTLE]
    ages = [age for at, age in pictures if BACK <= at < JUMPS[1][0]]
    print(f"# jump: picture against sound {min(lips):.1f} to {max(lips):.1f} ms, gaps above 0.2 s "
          f"{[round(gap, 3) for gap in gaps if gap > FREEZE]}", flush=True)
    within("jump: picture against sound, ms, the worst", max(map(abs, lips)), 0, LIP_MS)
    # what is on its way for 0.28 s longer cannot be shown in time: that once
    within("jump: freezes", sum(gap > FREEZE for gap in gaps), 1, 1)
    # a path of 0.3 s, a wait of 0.06 s and what decoders have; not the jump once more
    within("jump: age of a picture while the path is long, s, the most", max(ages), 0.36, 0.45)


def stand_still(call: Call) -> None:
    for host in "vs":
        for name in ("video", "audio"):
            within(f"still: longest time that {host} does not know when {name} was captured, s",
                   call.untold(host, name), 0, UNTOLD)
    gaps = [b - a for (a, _), (b, _) in pairwise(call.played("video")) if a >= SETTLE]
    within("still: longest time without a picture, s", max(gaps), STOPPED - 0.2, STOPPED + 0.4)


def sound(build: Path, clip: Path) -> None:
    """Of what is lost Opus has a copy in the next packet, once s knows; within its rate."""
    said = Path("/run/tmp/voice.wav")
    voice.write_voice(said, 15)
    for loss in (0, 5):
        call = Call(build, f"sound-{loss}", clip, loss=f"{loss}%", said=said)
        heard, came = voice.Heard(said, call.home / "v.wav"), call.packets()
        first, last = min(came), max(came)
        size = statistics.mean(came.values())
        told = [int(row["value"]) for row in rows(call.home / "s" / "control.csv")
                if (row["controller"], row["key"]) == ("sound", "loss")]
        alike = {n: like for n in range(first + LEARNT, min(last, first + heard.pieces()))
                 if (like := heard.likeness(n - first)) is not None}
        whole = [like for n, like in alike.items() if n in came]
        lost = [like for n, like in alike.items() if n not in came]
        back = [like >= BACK_ALIKE for like in lost]
        count = last - first + 1
        print(f"# sound, {loss} %: {count - len(came)} of {count} pieces lost, "
              f"the encoder was told {told or 'nothing'}, {size:.1f} bytes each", flush=True)
        check(f"sound, {loss} %: a piece that came is like what was said",
              sum(like >= BACK_ALIKE for like in whole) > 0.98 * len(whole),
              statistics.median(whole))
        within(f"sound, {loss} %: rate of Opus, share of what it takes", size * 8 * 50 / OPUS_BPS,
               0.5, 1.03)
        if not loss:
            check("sound, 0 %: nothing is lost, and the encoder not told", not (lost or told), told)
            continue
        print(f"# sound: like what was said, median: {statistics.median(whole):.2f} of what came, "
              f"{statistics.median(lost):.2f} of {len(lost)} pieces lost", flush=True)
        within("sound: share of the lost pieces that come back", sum(back) / len(back), 0.8, 1)
        counted = re.search(r"; (\d+) of them were lost, (\d+) repaired", call.told["v"])
        # what came too late for v is none of the capture's losses
        within("sound: pieces lost that v counts, against those that did not come",
               int(counted[1]) / (count - len(came)) if counted else 0, 0.97, 1.05)
        # pauses have no copy, nor what is lost before s knows of losses
        within("sound: share that v counts as repaired",
               int(counted[2]) / int(counted[1]) if counted else 0, 0.7, 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--build", type=Path, default=TOP / "build")
    build = parser.parse_args().build.resolve()
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
        within(f"{call.home.name}: share of the sound played, what is lost concealed",
               call.sound(), 0.99, 1.01)
    check("nobody asked for correction: none", plain.about("s") == plain.corrected("v") == 0)
    check("s adds what corrects, v does not",
          fec.about("s") == 30 and fec.about("v") == 0 and fec.corrected("s") == 0)
    apart = [b - a for a, b in pairwise(plain.keys())]
    within(f"plain: least time between {len(apart) + 1} pictures that begin afresh, s",
           min(apart), KEYS, SECONDS)
    # the last packets of the call are missing, too
    within("fec: packets corrected, share of those missing",
           fec.corrected("v") / fec.missing(), 0.5, 1)
    within("fec: share of pictures shown", fec.shown(), 0.9, 1)
    jump(Call(build, "jump", clip, loss="0%", jumps=JUMPS))
    stand_still(Call(build, "still", clip, "--fec", "30", loss="0%", stop=True))
    sound(build, clip)
    return trial.summary()


if __name__ == "__main__":
    sys.exit(main())
