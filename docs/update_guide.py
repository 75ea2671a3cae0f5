#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Puts the output of the walkthrough into docs/user-guide.md.

    testbed/paqm-lab exec docs/examples/walkthrough.py >out.txt
    docs/update_guide.py [--check] out.txt

A comment in the guide names the command whose output the next code block shows:

    <!-- walkthrough: STEP; COMMAND -->
    <!-- walkthrough: STEP; COMMAND; first 6 -->     only so many lines
    <!-- walkthrough: STEP; COMMAND; grep WORD -->   only the lines with WORD

Of a command that was run several times in a step, the last output counts. --check changes nothing
and fails if the guide is not up to date.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

GUIDE = Path(__file__).resolve().parent / "user-guide.md"
BLOCK = re.compile(r"(<!-- walkthrough: (.*?) -->\n)```\n.*?\n```\n", re.S)
PROMPT = re.compile(r"^([a-z][-a-z]*)# (.*)")


def outputs(text: str) -> dict[tuple[str, str], list[str]]:
    """Lines of each command, the prompt first, by step and command."""
    found: dict[tuple[str, str], list[str]] = {}
    lines: list[str] = []
    step = ""
    for line in text.splitlines():
        line = line.rstrip()
        prompt = PROMPT.match(line)
        if line.startswith("== "):
            step, lines = line[3:], []
        elif prompt:
            lines = found[step, prompt[2]] = [line]
        elif not line:
            lines = []  # what daemons say in between belongs to no command
        else:
            lines.append(line)
    return found


def block(spec: str, found: dict[tuple[str, str], list[str]]) -> str:
    step, command, *rest = (part.strip() for part in spec.split(";"))
    if (step, command) not in found:
        raise SystemExit(f"update_guide: the walkthrough has no '{command}' in step '{step}'")
    prompt, *lines = found[step, command]
    for option in rest:
        word, _, argument = option.partition(" ")
        if word == "first":
            lines = lines[: int(argument)]
        elif word == "grep":
            lines = [line for line in lines if argument in line]
            prompt += f" | grep {argument}"
        else:
            raise SystemExit(f"update_guide: '{option}' is neither first nor grep")
    return "\n".join(["```", prompt, *lines, "```", ""])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("output", type=Path, help="what docs/examples/walkthrough.py printed")
    parser.add_argument("--check", action="store_true", help="change nothing, only compare")
    args = parser.parse_args()
    found = outputs(args.output.read_text())
    old = GUIDE.read_text()
    new = BLOCK.sub(lambda m: m[1] + block(m[2], found), old)
    if args.check:
        if new != old:
            print(f"{GUIDE}: shows other output than the walkthrough gives", file=sys.stderr)
        return 1 if new != old else 0
    GUIDE.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
