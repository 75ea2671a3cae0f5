#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The synopsis of tc-QDISC(8) is what "tc qdisc ... QDISC help" says, and every option is described
once, in its own form, in the section of its group. What a preset stands for is what the plugin has.
With --update the synopsis and this are written anew.

Usage: test_man.py DIRECTORY_OF_PLUGIN tc-QDISC.8 TC [--update]
"""

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

WIDTH = 71  # of a page of 78 columns
SYNOPSIS = re.compile(
    r'(\.\\" synopsis: (\w+), by test_man\.py --update\n)(.*?)(\.\\" end\n)', re.S
)
PRESET = re.compile(r'(\.\\" preset: by test_man\.py --update\n)(.*?)(\.\\" end\n)', re.S)
LIST = Path(__file__).resolve().parents[1] / "option_list.c"
ITEM = re.compile(r"\[ ((?:[^][]|\[no\]|\[,[A-Z.]+\])+) \]")


def items(tc: str, qdisc: str, group: str) -> list[str]:
    """What the plugin says that there is. With `help` tc asks nothing of the kernel."""
    command = [tc, "qdisc", "add", "dev", "lo", "root", qdisc, "help", group]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    return ITEM.findall(re.sub(r"\s+", " ", said))


def roff(text: str) -> str:
    """Words as they are typed are bold, values are italic."""
    text = re.sub(r"(?<![a-z\d])([a-z]+(?:-[a-z]+)*)", lambda m: rf"\fB{m[1]}\fP", text)
    text = re.sub(r"\b([A-Z]{2,})\b", r"\\fI\1\\fP", text)
    return text.replace("-", r"\-")


def form(item: str) -> str:
    """An item of the usage as the page has it."""
    name, _, value = item.partition(" ")
    words = value.split("|")
    if len(words) > 1:
        value = "{ " + " | ".join(words) + " }"
    return roff(f"{name} {value}".strip())


def synopsis(tc: str, qdisc: str, group: str) -> str:
    lines, line = [], ""
    for item in items(tc, qdisc, group):
        more = f"[ {form(item)} ]"
        if line and len(re.sub(r"\\f.|\\", "", line + more)) >= WIDTH:
            lines.append(line)
            line = ""
        line += f"{' ' if line else ''}{more}"
    return "\n.br\n".join([*lines, line]) + "\n"


def preset() -> str:
    """What every preset stands for, but the law."""
    body = re.search(r"#define THESIS(.*?)\n\n", LIST.read_text(), re.S)
    assert body
    words = "".join(re.findall('"(.*?)"', body[1])).strip()
    return "\n".join(map(roff, textwrap.wrap(words, WIDTH, break_on_hyphens=False))) + "\n"


def described(text: str) -> list[str]:
    """Options in a part of the page: the lines after .TP without their fonts."""
    return [
        re.sub(r"\s+", " ", re.sub(r"\\f.|\\&", "", line)).replace(r"\-", "-")
        for line in re.findall(r"^\.TP\n(.*)$", text, re.M)
    ]


def main() -> int:
    os.environ["TC_LIB_DIR"] = str(Path(sys.argv[1]).resolve())
    page, tc = Path(sys.argv[2]), sys.argv[3]
    qdisc = page.stem.removeprefix("tc-")
    if not items(tc, qdisc, "everyday"):
        print(f"{tc} finds no plugin of {qdisc} in {os.environ['TC_LIB_DIR']}")
        return 1
    text = page.read_text()
    fresh = SYNOPSIS.sub(lambda m: m[1] + synopsis(tc, qdisc, m[2]) + m[4], text)
    fresh = PRESET.sub(lambda m: m[1] + preset() + m[3], fresh)
    if "--update" in sys.argv:
        page.write_text(fresh)
        return 0
    wrong = [] if fresh == text else ["synopsis or preset differ: run test_man.py --update"]
    for group, begin, stop in (
        ("everyday", ".SS What to set\n", ".SS Research\n"),
        ("research", ".SS Research\n", ".SH "),
    ):
        start = text.index(begin)
        there = described(text[start : text.index(stop, start)])
        wanted = [
            re.sub(r"\\f.", "", form(item)).replace(r"\-", "-")
            for item in items(tc, qdisc, group)
        ]
        wrong += [f"{group}: {o!r} is not described once" for o in wanted if there.count(o) != 1]
        wrong += [f"{group}: {o!r} is no option" for o in there if o not in wanted]
    for line in wrong:
        print(line)
    print(f"{len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
