#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What paqm-meet refuses on its command line, and how. Prints nothing if all is well."""

import subprocess
import sys

WRONG = {
    ("--listen", "[::1]5091"): "the port ]5091",
    ("--listen", "[::1]:0"): "the port 0",
    ("--listen", "localhost:"): "the port ",
    ("--most", "1"): "must be 2 to 4096",
    ("--sandbox=perhaps",): "must be yes or no",
    ("here",): "unexpected argument",
}


def main(meet: str) -> int:
    bad = []
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
