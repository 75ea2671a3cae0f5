#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Streams and calls over loopback, inside a lab guest: in real time, on a machine that is busy,
media come late or not at all, and would be missed here.

Prints `ok NAME` or `not ok NAME: why`. With names only those of the tests.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import test_call_devices
import test_call_loopback
import test_loopback
import trial
from trial import TOP, check

from paqm_lab.topology import HERE, Network, make


def main() -> int:
    tests: dict[str, Callable[[str], None]] = {
        "send and recv over loopback": test_loopback.main,
        "call over loopback": test_call_loopback.main,
        **{f"call devices: {name}": test for name, test in test_call_devices.TESTS.items()},
    }
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--build", type=Path, default=TOP / "build")
    parser.add_argument("test", nargs="*", help=", ".join(tests))
    args = parser.parse_args()
    os.environ |= {"LC_ALL": "C.UTF-8"}
    network = Network()
    network.host(HERE, ipv6=True)
    make(network)
    for name in args.test or tests:
        try:
            tests[name](str(args.build.resolve() / "streamer" / "paqm-streamer"))
            check(name, True)
        except (Exception, SystemExit) as err:  # what a program of its own would end with
            traceback.print_exc()
            check(name, False, err)
    return trial.summary()


if __name__ == "__main__":
    sys.exit(main())
