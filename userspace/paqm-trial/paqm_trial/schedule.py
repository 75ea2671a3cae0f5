# SPDX-License-Identifier: GPL-2.0
"""Which queue has its turn when: a function of the clock and the seed, so that it repeats.

Turns come in pairs, one of each queue, whose order is drawn: neither queue gets the better days,
and nobody can choose. A day begins at 04:00 of local time.
"""

from __future__ import annotations

import random
import re
import time
from dataclasses import dataclass
from datetime import datetime, timedelta

from paqm_trial.store import DAY_BEGINS, Trouble

SHORTEST = 60  # s
UNITS = {"s": 1, "min": 60, "h": 3600}


@dataclass(frozen=True)
class Turn:
    number: int
    paqm: bool
    end: float  # wall clock, s


def parse_alternate(text: str) -> float:
    """Seconds of a turn; 0: a day; -1: none."""
    if text in ("day", "none"):
        return 0.0 if text == "day" else -1.0
    match = re.fullmatch(r"([0-9]{1,6})(s|min|h)", text)
    seconds = int(match[1]) * UNITS[match[2]] if match else 0
    if seconds < SHORTEST:
        raise Trouble(f"--alternate {text}: day, none, or a time of 60s or more such as 90min, 4h")
    return float(seconds)


def turn_at(seconds: float, seed: int, now: float | None = None) -> Turn:
    """The turn of that time; `seconds` is parse_alternate()'s."""
    now = time.time() if now is None else now
    if seconds < 0:
        return Turn(0, True, float("inf"))
    if seconds:
        number = int(now // seconds)
        end = (number + 1) * seconds
    else:
        shifted = datetime.fromtimestamp(now) - timedelta(hours=DAY_BEGINS)
        number = shifted.date().toordinal()
        midnight = datetime.combine(shifted.date(), datetime.min.time())
        end = (midnight + timedelta(days=1, hours=DAY_BEGINS)).timestamp()
    first_is_paqm = random.Random(f"{seed}:{number // 2}").random() < 0.5
    return Turn(number, first_is_paqm == (number % 2 == 0), end)
