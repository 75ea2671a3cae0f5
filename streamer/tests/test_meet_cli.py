#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What paqm-meet refuses on its command line, and how; that whoever reads its log may leave. Prints
nothing if all is well.
"""

import os
import socket
import subprocess
import sys
import time

WRONG = {
    ("--listen", "[::1]5091"): "the port ]5091",
    ("--listen", "[::1]:0"): "the port 0",
    ("--listen", "localhost:"): "the port ",
    ("--listen", ""): "--listen '': must be one address",
    ("--listen", "127.0.0.1", "--listen", "[::1]"): "--listen '[::1]': must be one address",
    ("--most", "1"): "must be 2 to 4096",
    ("--sandbox=perhaps",): "must be yes or no",
    ("here",): "unexpected argument",
}


def answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as end:
            return end.recv(100).startswith(b"paqm-meet ")
    except ConnectionError:
        return False


def unread(meet: str) -> list[str]:
    """Its first line finds no reader, and calls are joined all the same."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    reader, log = os.pipe()
    os.close(reader)
    program = subprocess.Popen(
        [meet, "--listen", f"127.0.0.1:{port}"], stdout=subprocess.DEVNULL, stderr=log
    )
    os.close(log)
    end = time.monotonic() + 10
    while not (good := answers(port)) and program.poll() is None and time.monotonic() < end:
        time.sleep(0.05)
    program.terminate()
    status = program.wait()
    return [] if good and not status else [f"a log that nobody reads: {status}"]


def main(meet: str) -> int:
    bad = unread(meet)
    for words, said in WRONG.items():
        try:
            done = subprocess.run([meet, *words], capture_output=True, text=True, timeout=10)
        except subprocess.TimeoutExpired:
            bad.append(f"{words}: accepted")
            continue
        if done.returncode != 2 or said not in done.stderr:
            bad.append(f"{words}: {done.returncode}, {done.stderr}")
    print("\n".join(bad), end="")
    return len(bad)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
