#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""A terminal that is closed ends paqm-streamer as Ctrl-C does, with whole logs; under nohup it does
not. Neither does it wait for who writes to a pipe. Prints nothing if all is well.
"""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LOGS = {"recv": ["--log"], "trace recv": ["--trace", "--log"]}  # written as a whole at the end


def begun(command: list[str], nohup: bool, last: int = signal.SIGTERM) -> subprocess.Popen[str]:
    """It has said what it does with signals, of which @last is the last: /proc tells."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN if nohup else signal.SIG_DFL)
    program = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, restore_signals=False
    )
    end = time.monotonic() + 30
    while program.poll() is None and time.monotonic() < end:
        status = dict(
            line.split(":\t")
            for line in Path(f"/proc/{program.pid}/status").read_text().splitlines()
        )
        if int(status["SigCgt"], 16) >> (last - 1) & 1:
            break
        time.sleep(0.02)
    return program


def pipes(streamer: str, home: Path) -> list[str]:
    """A sender whose source is a pipe ends, whether somebody has it open to write or not."""
    bad = []
    for name in ("pipe.y4m", "pipe.mkv"):
        pipe = home / name
        os.mkfifo(pipe)
        for writer, how in ((False, signal.SIGINT), (True, signal.SIGTERM)):
            held = os.open(pipe, os.O_RDWR) if writer else -1
            program = begun([streamer, "send", "--to", "127.0.0.1:9", "--paqmd", "none",
                             "--source", str(pipe)], nohup=False, last=signal.SIGUSR1)  # fmt: skip
            program.send_signal(how)
            try:
                said = program.communicate(timeout=30)[0]
            except subprocess.TimeoutExpired:
                program.kill()
                said = program.communicate()[0]
            if writer:
                os.close(held)
            if program.returncode or "is a pipe: waiting" not in said:
                bad.append(f"{name}, writer {writer}: status {program.returncode}: {said}")
    return bad


def main(streamer: str) -> int:
    with tempfile.TemporaryDirectory() as home:
        bad = pipes(streamer, Path(home))
    for words, log in LOGS.items():
        with (
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free,
            tempfile.TemporaryDirectory() as home,
        ):
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1] & ~1
            command = [streamer, *words.split(), "--listen", f"127.0.0.1:{port}", *log, home]
            free.close()
            program = begun(command, nohup=False)
            program.send_signal(signal.SIGHUP)
            said = program.communicate(timeout=30)[0]
            files = [file for file in Path(home).rglob("*.csv") if not file.stat().st_size]
            if program.returncode or "received" not in said or files:
                bad.append(f"{words}: status {program.returncode}, empty {files}: {said}")
            program = begun(command, nohup=True)
            program.send_signal(signal.SIGHUP)
            program.send_signal(signal.SIGUSR2)  # the next one, which is not ignored: it ends it
            program.communicate(timeout=30)
            if program.returncode != -signal.SIGUSR2:
                bad.append(f"{words} under nohup: status {program.returncode}")
    print("".join(f"FAIL: {what}\n" for what in bad), end="")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
