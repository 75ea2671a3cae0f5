#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Registers flows by commands on standard input and prints advice, a JSON object in each line.

    add SOURCE-PORT DESTINATION PORT SSRC FLOOR CEILING      answered by {"added": FLOW}
    limits FLOW FLOOR CEILING
    timing FLOW GOP-US ANSWER-US
    status FLOW BPS GOP QP
    remove FLOW
"""

import asyncio
import json
import signal
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from paqmclient import Client  # noqa: E402

# how many words follow a command's name
NUMBERS = {"add": 6, "limits": 3, "timing": 3, "status": 4, "remove": 1}


def obey(client: Client, words: list[str]) -> None:
    """One command."""
    name, *rest = words
    if NUMBERS.get(name) != len(rest):
        raise ValueError(f"{name}: expected add, limits, timing, status or remove")
    if name == "add":
        sport, address, port, ssrc, floor, ceiling = rest
        flow = client.add("", int(sport), address, int(port), int(ssrc), int(floor), int(ceiling))
        print(json.dumps({"added": flow}), flush=True)
    else:
        flow, *numbers = map(int, rest)
        try:
            getattr(client, name)(flow, *numbers)
        except KeyError as err:
            raise ValueError(f"there is no flow {flow}") from err


async def commands(client: Client) -> None:
    """Standard input to its end."""
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[bytes] = asyncio.Queue()

    def read() -> None:
        # without a buffer: its lock would be held when the program ends during a read
        with open(0, "rb", buffering=0, closefd=False) as stdin:
            try:
                while line := stdin.readline():
                    loop.call_soon_threadsafe(lines.put_nowait, line)
            finally:
                loop.call_soon_threadsafe(lines.put_nowait, b"")

    if sys.stdin is None:  # closed: another file has its number
        return
    # a thread, since asyncio reads pipes only, but no files
    threading.Thread(target=read, daemon=True).start()
    while line := await lines.get():
        try:
            words = line.decode().split()
            if words:
                obey(client, words)
        except (OSError, ValueError) as err:
            print(json.dumps({"failed": str(err)}), flush=True)


async def advice(client: Client) -> None:
    """Print what comes."""
    async for one in client.updates():
        said = one.rate
        line = {"flow": one.flow, "cause": one.cause.name.lower(), "rate_bps": one.rate_bps,
                "error": one.error, "router": one.router, "seq": said.seq if said else 0,
                "policed": bool(said and said.policed), "overload": bool(said and said.overload)}
        print(json.dumps(line), flush=True)


async def main() -> None:
    """Until standard input ends."""
    with Client() as client:
        printing = asyncio.create_task(advice(client))
        await commands(client)
        printing.cancel()


if __name__ == "__main__":
    # Ctrl-C and a reader that leaves end it without a word.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    asyncio.run(main())
