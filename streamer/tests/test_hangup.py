#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""A terminal that is closed ends paqm-streamer as Ctrl-C does, with whole logs; under nohup it does
not. Prints nothing if all is well.
"""

import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LOGS = {"recv": ["--log"], "trace recv": ["--trace", "--log"]}  # written as a whole at the end


def begun(command: list[str], nohup: bool) -> subprocess.Popen[str]:
    """It has said what it does with signals, of which SIGTERM is the last: /proc tells."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN if nohup else signal.SIG_DFL)
    program = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, restore_signals=False
    )
    while program.poll() is None:
        status = dict(
            line.split(":\t")
            for line in Path(f"/proc/{program.pid}/status").read_text().splitlines()
        )
        if int(status["SigCgt"], 16) >> (signal.SIGTERM - 1) & 1:
            break
        time.sleep(0.02)
    return program


def main(streamer: str) -> int:
    bad = []
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
