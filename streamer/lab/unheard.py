#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""A call whose picture is lost on its way while the sound arrives, in a lab guest.

Prints `ok NAME` or `not ok NAME: why`. The network is that of stream_lab.py: s calls v, and a
firewall in r drops what goes to the port of v's pictures, for a while.
"""

from __future__ import annotations

import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "kernel" / "lab-tests"))
import trial  # noqa: E402
from scarce import PORT, SOUND, call_of  # noqa: E402
from trial import check, inside, within  # noqa: E402

CLOSES, OPENS, END = 12.0, 72.0, 92.0  # s
# s after the first: 15 after the newest report, which an interval of at most 6.2 s (RFC 3550
# section 6.3.1) may part from the last packet, and a second between two looks
STOPS = 15, 22.5
BACK_BY = 12.0  # s after the second: a picture is tried every 5 s, and reported on
TRIED = 13  # pictures, at most, meanwhile


def firewall(command: str) -> None:
    inside("r", "nft", "-f", "-", stdin=command)


def main() -> int:
    call = call_of(__doc__, [
        (CLOSES, lambda: firewall("table ip f {\nchain c {\ntype filter hook forward priority 0;\n"
                                  f"ip daddr 10.3.0.2 udp dport {PORT} drop\n}}\n}}\n")),
        (OPENS, lambda: firewall("flush ruleset")),
        (END, lambda: None)])
    turns = call.turns("unheard", "heard")
    if not turns:
        return trial.summary()
    stopped, back = turns
    within("it stops, s after the firewall drops it", stopped - CLOSES, *STOPS)
    within("it is back, s after the firewall lets it pass", back - OPENS, 0, BACK_BY)
    still = [t for t in call.times("s", "frames", "t_ns") if stopped + 1 < t < back]
    within("pictures, meanwhile", len(still), 3, TRIED)
    call.check_shown("before", 4, CLOSES)
    call.check_shown("afterwards", back + 2, END - 1)
    heard = call.times("v", "audio", "play_ns")
    share = len([t for t in heard if 4 <= t < END - 1]) / (END - 5) / SOUND
    check(f"share of the sound that is played ({share:.4f})", share >= 0.99)
    check("it is said why, and what for", "does a firewall block the picture's port?" in call.said
          and "the picture arrives again" in call.said, call.said)
    check("at the other end, too", "no picture of the peer has arrived for" in call.said_there,
          call.said_there)
    return trial.summary()


if __name__ == "__main__":
    sys.exit(main())
