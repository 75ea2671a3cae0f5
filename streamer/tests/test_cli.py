#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Exit status of paqm-streamer for wrong options and files: 2, as paqm-streamer(1) says, and 1 for
files without pictures. Prints nothing if all is well.
"""

import os
import random
import subprocess
import sys
import tempfile
import wave
from pathlib import Path

SEND = "send --to 127.0.0.1:6000 --paqmd none"
LEVELS = "trace send --to 127.0.0.1:6000 --paqmd none --levels mm"
CALL = "call --listen --source test --audio test --sink none --audio-sink none"
HERE = "call --listen --secret FILE"  # with other ends
WRONG = (
    (f"{SEND} --source test --duration 2000000", "must be 0 to 1000000 seconds"),
    (f"{SEND} --source test --fps 0", "--fps 0: must be 1 to 240"),
    (f"{SEND} --source test --ssrc 4294967296", "--ssrc 4294967296: must be 0 to 4294967295"),
    (f"{SEND} --source test --seed -5", "--seed -5: must be 0 to 4294967295"),
    (f"{SEND} --source FILE/clip.y4m", "FILE/clip.y4m"),
    (f"{SEND} --source FILE/clip.mp4", "FILE/clip.mp4"),
    (f"{SEND} --source test --log FILE", "cannot write FILE/frames.csv"),
    (f"{SEND} --source test --srtp-key FILE/key", "FILE/key"),
    (f"{SEND} --source test --srtp-key HOME", "--srtp-key: cannot read HOME: Is a directory"),
    (f"{SEND} --source test --srtp-key /dev/full", "/dev/full is longer than 64 KiB"),
    ("recv --listen 127.0.0.1:6000 --srtp-key /dev/zero", "/dev/zero is longer than 64 KiB"),
    ("recv --listen 127.0.0.1:6000 --log FILE", "cannot write FILE/rx.csv"),
    ("recv --listen 127.0.0.1:6000 --output FILE/out.y4m", "cannot write FILE/out.y4m"),
    ("trace recv --listen 127.0.0.1:6000 --log FILE", "cannot write FILE/flow000/rx.csv"),
    ("trace recv --listen 127.0.0.1:6000 --duration 2000000", "--duration 2000000: must be"),
    ("trace recv --listen 127.0.0.1:6000 --flows 257", "--flows 257: must be 1 to 256"),
    ("trace recv --listen 127.0.0.1:65400 --flows 99", "--flows 99: two ports for each"),
    ("recv --listen 127.0.0.1:6000 --seed 4294967296", "--seed 4294967296: must be 0 to"),
    (f"{LEVELS} --seed -5", "--seed -5: must be"),
    (f"{LEVELS} --loop", "--loop goes with --trace only"),
    (f"{LEVELS} --beta 2", "--beta goes with --trace only"),
    ("trace send --to 127.0.0.1:6000 --trace FILE --packet 500", "goes with --levels only"),
    (f"{LEVELS} --log FILE", "cannot write FILE/flow000/tx.csv"),
    (f"{LEVELS} --duration 2000000", "--duration 2000000: must be"),
    (f"{LEVELS} --rate-max 100kbit --rate-min 200kbit", "--rate-min must not exceed"),
    # what is wrong is the log: a lowest rate that nobody gave goes down with the highest
    (f"{LEVELS} --rate-max 100kbit --log FILE", "cannot write FILE/flow000/tx.csv"),
    ("trace send --to 127.0.0.1:6000 --paqmd none --trace FILE", "FILE/ladder.json"),
    (f"{CALL} --secret FILE/secret", "FILE/secret"),
    (f"{CALL} --secret /dev/zero", "/dev/zero is longer than 64 KiB"),
    (f"{HERE} --source tset", "--source tset: must be camera, screen, test, none, or a file, of"),
    (f"{HERE} --source test --audio mci", "--audio mci: must be mic, test, none, or a file, of"),
    (f"{HERE} --source test --sink windows", "--sink windows: must be window, none, or a file"),
    (f"{HERE} --source test --sink none --audio-sink a.mp3", "whose name ends with .wav"),
)
# What may be taken for sound, text, or for nothing. GStreamer gives up at any moment of its start.
NO_PICTURES = ("sound.wav", "text.mp4", "noise.mp4")


def write_files(home: Path) -> None:
    (home / "plain").touch()
    with wave.open(str(home / "sound.wav"), "wb") as file:
        file.setparams((1, 2, 8000, 0, "NONE", ""))
        file.writeframes(bytes(16000))
    (home / "text.mp4").write_text("[00:01.00]la\n" * 100)
    (home / "noise.mp4").write_bytes(random.Random(2).randbytes(100000))


def unheard(home: Path) -> list[str]:
    """Who closes its output finds it in no log. And the shortest stream ends."""
    words = ["recv", "--listen", "127.0.0.1:6000", "--duration", "0.2", "--log", str(home / "log")]
    subprocess.run(
        ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", sys.argv[1], *words], timeout=60, check=False
    )
    logs = {file.name: file.read_text() for file in (home / "log").glob("*.csv")}
    wrong = [f"closed output: {logs}\n"] if len(logs) != 3 or "listening" in str(logs) else []
    short = subprocess.Popen([sys.argv[1], *f"{SEND} --source test --duration 0.0005".split()],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    try:
        short.wait(30)
    except subprocess.TimeoutExpired:
        short.kill()
        wrong.append("--duration 0.0005 does not end\n")
    return wrong


def bare(home: Path) -> list[str]:
    """Where GStreamer has no plug-ins, who receives is told what to install."""
    done = subprocess.run(
        [sys.argv[1], "recv", "--listen", "127.0.0.1:6000", "--duration", "1"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "GST_PLUGIN_SYSTEM_PATH_1_0": str(home / "none"),
             "GST_REGISTRY_1_0": str(home / "registry")},
    )  # fmt: skip
    said = done.stderr
    fine = "install gstreamer1.0-plugins-base" in said and "over the top" not in said
    return [] if fine and done.returncode else [f"no plug-ins: status {done.returncode}, {said}"]


def main() -> int:
    wrong = []
    with tempfile.TemporaryDirectory() as home:
        write_files(Path(home))
        cases = [(*case, 2) for case in WRONG]
        cases += [(f"{SEND} --source HOME/{name}", f"{name}: ", 1) for name in NO_PICTURES * 4]
        for words, says, status in cases:
            words, says = (
                text.replace("FILE", "HOME/plain").replace("HOME", home) for text in (words, says)
            )
            done = subprocess.run(
                [sys.argv[1], *words.split()],
                stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
            )  # fmt: skip
            if (done.returncode != status or says not in done.stderr or "CRITICAL" in done.stderr):
                wrong.append(f"{words}: status {done.returncode}, {done.stderr}")
        wrong += unheard(Path(home)) + bare(Path(home))
    print("".join(wrong), end="")
    return len(wrong) > 0


if __name__ == "__main__":
    sys.exit(main())
