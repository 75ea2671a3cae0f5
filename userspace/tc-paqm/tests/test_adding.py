#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Does what "An option" in docs/adding.md says, in a copy of the tree: the patch there
touches three files, and with them the plugin takes, refuses, lists and shows the option, the man
page is complete and tdc has cases for it.

Usage: test_adding.py C_COMPILER... JSON_MONITOR.so TC
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TOP = Path(__file__).resolve().parents[3]
PARTS = ("core", "kernel/uapi", "kernel/tc-tests", "kernel/paqm_option_table.h",
         "kernel/paqm_option_units.h", "kernel/dcbt_option_table.h", "kernel/rlqos_option_table.h",
         "userspace/tc-paqm")  # fmt: skip
OWN = "userspace/tc-paqm"


def copy(top: Path) -> None:
    for part in PARTS:
        source = TOP / part
        (top / part).parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, top / part)
        else:
            shutil.copy(source, top / part)


def apply(patch: str, top: Path) -> list[str]:
    """Each part adds lines before a line that is unique; the files that it changes."""
    changed = []
    for name, body in re.findall(r"^\+\+\+ b/(.*)\n@@.*\n((?:[+ ].*\n)+)", patch, re.M):
        added = "".join(line[1:] + "\n" for line in body.splitlines() if line.startswith("+"))
        anchor = body.splitlines()[-1][1:] + "\n"
        text = (top / name).read_text()
        if text.count(anchor) != 1:
            raise SystemExit(f"{name}: {anchor!r} is there {text.count(anchor)} times")
        (top / name).write_text(text.replace(anchor, added + anchor))
        changed.append(name)
    return changed


def main() -> int:
    *compiler, monitor, tc = sys.argv[1:]
    section = (TOP / "docs" / "adding.md").read_text().split("\n## An option\n")[1]
    patch = section.split("\n## ")[0].split("```diff\n")[1].split("```")[0]
    option = re.findall(r'"([\w-]+)"', patch)[0]
    failed = 0
    with tempfile.TemporaryDirectory() as directory:
        top = Path(directory)
        copy(top)
        changed = apply(patch, top)
        plugin, tests = top / "plugin", top / OWN / "tests"
        plugin.mkdir()
        sources = sorted(map(str, (top / OWN).glob("*.c")))
        page, header = top / OWN / "tc-paqm.8", top / "kernel/uapi/linux/pkt_sched_paqm.h"
        build = [*compiler, "-std=gnu17", "-shared", "-fPIC", "-fvisibility=hidden", "-Wall",
                 "-Wextra", "-Werror", "-I", top, "-o", plugin / "q_paqm.so", *sources,
                 "-lm"]  # fmt: skip
        shows = [plugin, header, monitor, tc]
        for command in (
            build,
            [tests / "test_man.py", plugin, page, tc, "--update"],
            [tests / "test_man.py", plugin, page, tc],
            [tests / "test_parse.py", plugin, tc],
            [tests / "test_show_options.py", *shows],
        ):
            done = subprocess.run(list(map(str, command)), capture_output=True, text=True,
                                  check=False)  # fmt: skip
            if done.returncode == 77:
                print(done.stdout)
                return 77
            if done.returncode:
                failed += 1
                print(f"{command[0]}: {done.stdout}{done.stderr}")
        cases = top / "kernel/tc-tests"
        for file in ("bounds", "options"):
            subprocess.run([cases / "expand.py", "--out", plugin, cases / f"{file}.toml"],
                           stdout=subprocess.DEVNULL, check=True)  # fmt: skip
            count = (plugin / f"{file}.json").read_text().count(f"paqm {option} ")
            print(f"{file}: {count} cases")
            failed += count < 2
        failed += len(changed) != 3
        print(f"{option}: {', '.join(changed)} and the code that goes by it; {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
