#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The tables of options (../*_option_table.h), for tests of the modules and of the tc plugins.

Numbers are those of the wire: us, bytes, bytes/s, Q24, Q16.
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
LAWS = TOP / "core" / "paqm_laws.h"  # has the words of an option, too
NAMES = TOP / "userspace" / "tc-paqm" / "option_text.c"  # of DSCPs
ROW = re.compile(
    r'^PAQM_OPTION\((\w+), (\w+), (\w+), "([\w-]+)",\s+"(\w+)", "(\w*)",\s+'
    r"\((.*?)\), \((.*?)\), \((.*?)\),\s+(\w+), (\w+)\)$",
    re.M,
)
WORDS = re.compile(
    r"^#define PAQM_(?:WORDS_)?(\w+)\(first, more, last\)((?:.*\\\n)*.*)", re.M
)
PER = {"us": 1, "ms": 1000, "s": 10**6, "bytes": 1, "MiB": 1 << 20, "count": 1,
       "kbit": 125, "gbit": 125_000_000}  # fmt: skip
SUFFIX = {"bytes": " bytes", "MiB": " MiB", "count": ""}
ONE = {"RATIO": 1 << 24, "PERCENT": 1 << 24, "SHARE": 1 << 16, "PACKETS": 1 << 16}
WIDE = ("RATE", "ID", "SEED", "DSCPS")


@dataclass(frozen=True)
class End:
    """An end of a range."""

    value: int
    text: str  # as refusals have it
    number: Fraction  # what the value stands for


@dataclass(frozen=True)
class Option:
    kind: str
    attribute: str
    field: str
    name: str
    key: str
    zero: str
    least: End
    most: End
    initial: End
    shown: str
    group: str
    words: tuple[str, ...]  # of kind WORD
    qdisc: str

    @property
    def wire_name(self) -> str:
        """As rtnl.py has it."""
        return self.attribute.lower().replace("_", "-")

    @property
    def one(self) -> int:
        """What 1 is on the wire."""
        return ONE.get(self.kind, 1)

    @property
    def refusal(self) -> str:
        """What the module says to a value that it does not take."""
        zero = f"0 ({self.zero}) or " if self.zero else ""
        between = f"be {zero}{self.least.text}..{self.most.text}"
        match self.kind:
            case "WORD":
                between = f"be {', '.join(self.words[:-1])} or {self.words[-1]}"
            case "FLAG":
                between = "be 0 or 1"
            case "SIZE":
                between = f"be {zero}at least {self.least.text}"
            case "RATE":
                between = f"be none, auto or {self.least.text}..{self.most.text}"
            case "ID":
                between = "not be 0"
        return f"{self.name} must {between}"

    def words_for(self, value: int) -> str:
        """A value of a number as an argument of tc."""
        match self.kind:
            case "TIME" | "TARGET":
                return f"{value}us"
            case "SIZE" | "TARGET_BYTES":
                return f"{value}b"
            case "RATE":
                return f"{value * 8}bit"
            case "ID":
                return f"{value:x}"
            case "RATIO" | "PERCENT" | "SHARE" | "PACKETS":
                return f"{value / self.one:.9f}"
        return str(value)


def dscps(mask: int) -> str:
    """DSCPs as tc shows them; of two names of one the first."""
    names: dict[int, str] = {}
    for name, number in re.findall(r'{"(\w+)", (\d+)}', NAMES.read_text()):
        names.setdefault(int(number), name)
    return ",".join(names.get(n, str(n)) for n in range(64) if mask >> n & 1)


def end(kind: str, text: str, words: tuple[str, ...]) -> End:
    first, *rest = [part.strip() for part in text.split(",")]
    if kind == "WORD":  # the constants of the UAPI header, counted
        names = ["_" + word.upper().replace("-", "_") for word in words]
        named = [n for n, name in enumerate(names) if first.endswith(name)]
        number = len(words) - 1 if first.startswith("__") else [*named, 0][0]
        return End(number, str(number), Fraction(number))
    if kind in ONE:
        exact = Fraction(int(rest[0]), int(rest[1]))
        return End(int(exact * ONE[kind]), first, exact)
    number = int(first, 0) if not first.startswith(("PAQM_", "DCBT_")) else 0
    return End(number * PER[rest[0]], first + SUFFIX.get(rest[0], rest[0]), Fraction(number))


def options(qdisc: str = "paqm") -> list[Option]:
    """All rows of a table, in their order."""
    table = TOP / "kernel" / f"{qdisc}_option_table.h"
    text = table.read_text()
    words = {name: tuple(re.findall('"(.*?)"', body))
             for name, body in WORDS.findall(text + LAWS.read_text())}
    words["LAW"] = words["LAWS"]
    rows = ROW.findall(text)
    if len(rows) != len(re.findall(r"^PAQM_OPTION\(", text, re.M)):
        raise SystemExit(f"{table}: a row is not understood")
    found = []
    for kind, attribute, field, name, key, zero, *ends, shown, group in rows:
        own = words.get(attribute, ()) if kind == "WORD" else ()
        least, most, initial = (end(kind, text, own) for text in ends)
        found.append(Option(kind, attribute, field, name, key, zero, least, most, initial, shown,
                            group, own, qdisc))  # fmt: skip
    return found
