#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""One TCP transfer for the package tests: `transfer.py receive` listens on port 5201 and says which
bytes came, `transfer.py send ADDRESS MEGABYTES` says which it sent, both as length and SHA-256."""

import hashlib
import random
import socket
import sys


def receive() -> str:
    """Accepts one connection and reads it to its end."""
    seen, length = hashlib.sha256(), 0
    with socket.create_server(("", 5201)) as server:
        connection, _ = server.accept()
        with connection:
            while data := connection.recv(1 << 16):
                seen.update(data)
                length += len(data)
    return f"{length} {seen.hexdigest()}"


def send(address: str, megabytes: int) -> str:
    """Sends repeatable random bytes."""
    seen, rand = hashlib.sha256(), random.Random(megabytes)
    with socket.create_connection((address, 5201)) as connection:
        for _ in range(megabytes):
            data = rand.randbytes(1 << 20)
            seen.update(data)
            connection.sendall(data)
    return f"{megabytes << 20} {seen.hexdigest()}"


if __name__ == "__main__":
    print(receive() if sys.argv[1] == "receive" else send(sys.argv[2], int(sys.argv[3])))
