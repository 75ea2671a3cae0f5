#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Exit status of paqm-streamer for wrong options and files: 2, as paqm-streamer(1) says. Prints
nothing if all is well.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

SEND = "send --to 127.0.0.1:6000 --paqmd none"
LEVELS = "trace send --to 127.0.0.1:6000 --paqmd none --levels mm"
CALL = "call --listen --source test --audio test --sink none --audio-sink none"
WRONG = (
    (f"{SEND} --source test --duration 2000000", "--duration at most 1000000"),
    (f"{SEND} --source FILE/clip.y4m", "FILE/clip.y4m"),
    (f"{SEND} --source FILE/clip.mp4", "FILE/clip.mp4"),
    (f"{SEND} --source test --log FILE", "cannot write FILE/frames.csv"),
    (f"{SEND} --source test --srtp-key FILE/key", "FILE/key"),
    ("recv --listen 127.0.0.1:6000 --log FILE", "cannot write FILE/rx.csv"),
    ("recv --listen 127.0.0.1:6000 --output FILE/out.y4m", "cannot write FILE/out.y4m"),
    ("trace recv --listen 127.0.0.1:6000 --log FILE", "cannot write FILE/flow000/rx.csv"),
    ("trace recv --listen 127.0.0.1:6000 --duration 2000000", "--duration 0 to 1000000"),
    (f"{LEVELS} --log FILE", "cannot write FILE/flow000/tx.csv"),
    (f"{LEVELS} --duration 2000000", "--duration 0 to 1000000"),
    (f"{LEVELS} --rate-max 100kbit --rate-min 200kbit", "--rate-min must not exceed"),
    # what is wrong is the log: a lowest rate that nobody gave goes down with the highest
    (f"{LEVELS} --rate-max 100kbit --log FILE", "cannot write FILE/flow000/tx.csv"),
    ("trace send --to 127.0.0.1:6000 --paqmd none --trace FILE", "FILE/ladder.json"),
    (f"{CALL} --secret FILE/secret", "FILE/secret"),
)


def main() -> int:
    wrong = []
    with tempfile.TemporaryDirectory() as home:
        file = Path(home) / "plain"
        file.touch()
        for words, says in WRONG:
            done = subprocess.run(
                [sys.argv[1], *words.replace("FILE", str(file)).split()],
                stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
            )  # fmt: skip
            if done.returncode != 2 or says.replace("FILE", str(file)) not in done.stderr:
                wrong.append(f"{words}: status {done.returncode}, {done.stderr}")
    print("".join(wrong), end="")
    return len(wrong) > 0


if __name__ == "__main__":
    sys.exit(main())
