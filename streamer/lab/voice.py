# SPDX-License-Identifier: GPL-2.0
"""A voice for tests of sound, and how much of it has come through a lossy path.

The voice is made: harmonics of a pitch that glides, three formants and a loudness that change with
each syllable, and pauses. So what is lost is not what was before it, which is all that concealment
has.
"""

from __future__ import annotations

import array
import math
import random
import struct
import wave
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

RATE = 16000
LOOK = 8000  # samples a second of what is compared
PIECE = LOOK // 50  # 20 ms
STEP = LOOK // 100
SMOOTH = 4  # of these samples are averaged
LAG = 4  # samples by which a decoder may shift a piece
QUIET = 0.1  # of the mean power: nothing to be lost there


def write_voice(path: Path, seconds: float, seed: int = 1) -> None:
    """Two seeds are two people."""
    dice = random.Random(seed)
    phases = [0.0] * 30
    samples: list[float] = []
    pitch = 130.0
    while len(samples) < seconds * RATE:
        count = int(RATE * dice.uniform(0.06, 0.16))
        start, pitch = pitch, dice.uniform(90, 220)
        formants = [dice.uniform(300, 800), dice.uniform(900, 2200), dice.uniform(2300, 3200)]
        loud = dice.uniform(0.3, 1) if dice.random() > 0.12 else 0
        middle = (start + pitch) / 2
        harmonics = [(k, 0.02 + sum(1 / (1 + ((k * middle - f) / 120) ** 2) for f in formants))
                     for k in range(1, len(phases)) if k * middle < 3600]
        for i in range(count):
            now = 2 * math.pi * (start + (pitch - start) * i / count) / RATE
            value = 0.0
            for k, strength in harmonics:
                phases[k] += k * now
                value += strength * math.sin(phases[k])
            samples.append(value * loud * math.sin(math.pi * (i + 0.5) / count) ** 0.5)
    most = max(map(abs, samples))
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(b"".join(struct.pack("<h", int(16000 * v / most)) for v in samples))


def read_sound(path: Path) -> list[float]:
    """Samples, LOOK a second, of the first channel; what is above about 1 kHz is taken out."""
    with wave.open(str(path)) as file:
        assert file.getsampwidth() == 2
        channels, rate = file.getnchannels(), file.getframerate()
        data = array.array("h", file.readframes(1 << 28))[::channels]
    sums = list(accumulate(data, initial=0))
    wide, by = rate * SMOOTH // LOOK, rate // LOOK
    return [(sums[i + wide] - sums[i]) / wide for i in range(0, len(data) - wide + 1, by)]


def loudness(sound: Sequence[float]) -> list[float]:
    """Of each 10 ms, about zero."""
    powers = [math.sqrt(sum(v * v for v in sound[i : i + STEP]))
              for i in range(0, len(sound) - STEP + 1, STEP)]
    mean = sum(powers) / len(powers)
    return [p - mean for p in powers]


def alike(a: Sequence[float], b: Sequence[float]) -> float:
    """Correlation; 1: the same but for loudness."""
    power = math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))
    return sum(x * y for x, y in zip(a, b, strict=True)) / power if power else 0.0


class Heard:
    """What has been heard of a voice that is said again and again."""

    def __init__(self, said: Path, heard: Path) -> None:
        self.said, self.heard = read_sound(said), read_sound(heard)
        self.said = self.said[: len(self.said) // PIECE * PIECE]  # it is said in whole pieces
        slow, fast = loudness(self.said), loudness(self.heard)
        begin = max(range(len(slow)), key=lambda k: sum(
            v * slow[(k + i) % len(slow)] for i, v in enumerate(fast[:400]))) * STEP
        self.shift = max(range(begin - 3 * STEP, begin + 3 * STEP), key=lambda k: alike(
            self.heard[PIECE : 50 * PIECE], self.at(PIECE + k, 49 * PIECE)))
        self.power = sum(v * v for v in self.said) / len(self.said)

    def at(self, begin: int, count: int) -> list[float]:
        return [self.said[(begin + i) % len(self.said)] for i in range(count)]

    def pieces(self) -> int:
        return len(self.heard) // PIECE

    def likeness(self, piece: int) -> float | None:
        """Of one piece of 20 ms and what was said; None: that was a pause."""
        mine = self.heard[piece * PIECE : (piece + 1) * PIECE]
        begin = self.shift + piece * PIECE
        theirs = self.at(begin, PIECE)
        if sum(v * v for v in theirs) < QUIET * self.power * PIECE:
            return None
        return max(alike(mine, self.at(begin + lag, PIECE)) for lag in range(-LAG, LAG + 1))
