# SPDX-License-Identifier: GPL-2.0
"""Tests of a plugin without classes of tc, through the real tc: every option of its table is taken
at both ends of its range and refused beyond it, listed by help, and shown in text and in JSON.

Usage of a test that calls main(): DIRECTORY_OF_PLUGIN HEADER JSON_MONITOR.so TC
"""

import os
import re
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "kernel" / "tc-tests"))
import option_table  # noqa: E402
from option_cases import shown  # noqa: E402
from option_table import Option  # noqa: E402
from show_lib import Show, attribute, differences, message, structures  # noqa: E402

Json = Any


class Plugin:
    """`expected`: the end of a refusal, of some options; `own`: attributes that are in no row."""

    def __init__(self, qdisc: str, tc: str, expected: dict[str, str], own: set[str]) -> None:
        self.qdisc, self.tc, self.expected, self.own = qdisc, tc, expected, own
        self.options: list[Option] = option_table.options(qdisc)

    def run(self, words: list[str]) -> subprocess.CompletedProcess[str]:
        command = ["unshare", *([] if os.geteuid() == 0 else ["-r"]), "-n", self.tc]
        command += ["qdisc", "add", "dev", "lo", "root", self.qdisc, *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def parses(self) -> list[str]:
        wrong = []

        def good(words: list[str]) -> None:
            done = self.run(words)
            # Without the module the kernel says so; with it the command succeeds.
            if done.returncode and "qdisc kind is unknown" not in done.stderr:
                wrong.append(f"{words}: refused: {done.stderr!r}")

        def bad(words: list[str], said: str) -> None:
            done = self.run(words)
            if not done.returncode or not done.stderr.startswith(said):
                wrong.append(f"{words}: wanted {said!r}, got {done.stderr!r}")

        good([])
        every: list[str] = []
        for o in self.options:
            value = {"FLAG": [], "DSCPS": [str(3 + len(every))]}.get(o.kind)
            if value is None:
                value = [o.words[-1] if o.words else o.words_for(o.most.value)]
            every += [o.name, *value]
        good(every)
        for o in self.options:
            if o.kind == "FLAG":
                good([o.name, f"no{o.name}"])
                unknown = f'{self.qdisc}: unknown option "1"; "... {self.qdisc} help" lists them\n'
                bad([o.name, "1"], unknown)
                continue
            ends = o.words or (o.words_for(o.least.value), o.words_for(o.most.value))
            if o.kind == "DSCPS":
                ends = ("none", "0", "63", "ef,CS1")
            elif o.zero:
                ends = (*ends, o.zero)
            for word in ends:
                good([o.name, word])
            beyond = "64" if o.kind == "DSCPS" else o.words_for(o.most.value + 1)
            for word in ("", "bogus", "-1", "nan", beyond):
                said = f'{self.qdisc}: {o.name} "{word}": expected {self.expected.get(o.name, "")}'
                bad([o.name, word], said)
        for group in ("EVERYDAY", "RESEARCH"):
            text = self.run(["help", group.lower()]).stderr
            listed = re.findall(r"\[ (?:\[no\])?([a-z0-9-]+)", text)
            if listed != [o.name for o in self.options if o.group == group]:
                wrong.append(f"help of {group}: {listed}")
            if max(map(len, text.splitlines())) > 80:
                wrong.append(f"help of {group} is too wide")
        return wrong

    def shows_options(self, show: Show, numbers: dict[str, int], quiet: str) -> list[str]:
        wrong = [f"attribute {name} is in no row of the table" for name in
                 numbers.keys() - {o.attribute for o in self.options} - {"UNSPEC", "PAD", "MAX"}
                 - self.own]  # fmt: skip
        for end in ("least", "most", "initial"):
            data, want, text = b"", {}, []
            for o in self.options:
                value = getattr(o, end).value
                if end == "initial" and o.one > 1:  # the nearest, while ranges are rounded down
                    value = round(getattr(o, end).number * o.one)
                form = "Q" if o.kind in option_table.WIDE else "I"
                data += attribute(numbers[o.attribute], struct.pack("=" + form, value))
                number = float(getattr(o, end).number)
                want[o.key] = shown(o, value, number)
                match o.kind:
                    case "WORD":
                        want[o.key] = o.words[value]
                        text.append(f"{o.name} {o.words[value]}")
                    case "FLAG":
                        want[o.key] = bool(value)
                        text.append(o.name if value else f"no{o.name}")
                    case "DSCPS":
                        want[o.key] = [n for n in range(64) if value >> n & 1]
                        if end != "most":
                            text.append(f"{o.name} {option_table.dscps(value) or 'none'}")
                    case _ if o.one > 1:
                        text.append(f"{o.name} {getattr(o, end).text}")
                    case "COUNT":
                        text.append(f"{o.name} {value or o.zero or 0}")
            full = message(data, b"", qdisc=self.qdisc)
            wrong += differences(show.json(full)["options"], want, set())
            line = show.text(full, "-d") + " "
            wrong += [f"{end}: -d shows no {t!r} in {line!r}" for t in text if f" {t} " not in line]
        line = show.text(full)
        if quiet not in line or any(f" {o.name} " in line for o in self.options
                                    if o.shown != "ALWAYS"):  # fmt: skip
            wrong.append(f"initial values: {line!r}")
        return wrong


def main(qdisc: str, stats: Callable[[Show, dict[str, Json]], list[str]], quiet: str, *,
         expected: dict[str, str], own: tuple[str, ...] = ()) -> int:  # fmt: skip
    """Status of the test. `stats` looks at the statistics, `quiet` is what a new queue shows."""
    directory, header, monitor, tc = sys.argv[1:]
    os.environ["TC_LIB_DIR"] = str(Path(directory).resolve())
    plugin = Plugin(qdisc, tc, expected, set(own))
    if "unshare" in plugin.run([]).stderr:
        print("skipped, no network namespace here")
        return 77
    types, numbers = structures(Path(header))
    wrong = plugin.parses()
    with tempfile.TemporaryDirectory() as place:
        show = Show(tc, monitor, Path(place))
        wrong += plugin.shows_options(show, numbers, quiet) + stats(show, types)
    for line in wrong:
        print(line)
    print(f"{len(plugin.options)} options: {len(wrong)} wrong")
    return 1 if wrong else 0
