#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Makes cases of the kernel's tdc format from templates.

  expand.py --out DIR [FILE ...]      DIR/TOPIC.json for the kernel's own tdc.py

A file TOPIC.json, as the kernel has them, holds plain cases. A file TOPIC.toml holds templates:
each [[case]] has tdc's own keys, and either an `id` or `rows`, one case per row, whose values stand
under the names in `columns`. What most cases have in common is left out (DEFAULTS, and QUIET before
the set-up). To bounds and options belong those that every option has, made from the table of
options (option_cases.py).

In any text of a case `<name>` stands for the row's value of that name, or else for what the file or
parts.toml has under that name; names of nested tables are joined by dots. What a table lacks is
looked for in the table around it. `<below.<parent>.setup>` takes the row's parent first. A text
that is nothing but one name becomes the value itself, be it number or list; a list within a list
gives its elements. {times = N, steps = [...]} within a list gives N times these, `<i>` is 1 to N. A
key whose value becomes "" is left out.
"""

import argparse
import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import option_cases

HERE = Path(__file__).resolve().parent
PARTS = HERE / "parts.toml"
NAME = re.compile(r"<([a-z](?:[\w. -]*\w)?)>")
QUIET = "sysctl -qw net.ipv6.conf.all.disable_ipv6=1"  # no packets but those of the case
DEFAULTS = {
    "plugins": {"requires": "nsPlugin"},
    "setup": [],
    "cmdUnderTest": "true",
    "expExitCode": "0",
    "verifyCmd": "$TC -s -j qdisc show dev $DUMMY",
    "teardown": ["$TC qdisc del dev $DUMMY root"],
}
OWN = {"columns", "rows", "quiet"}  # keys of templates that are none of tdc's
Json = Any


def look_up(name: str, tables: list[Json]) -> Json:
    """The value of a name in the first table that has it."""
    *path, last = name.split(".")
    for table in tables:
        around = [table]
        for word in path:
            if not isinstance(around[-1], dict) or word not in around[-1]:
                break
            around.append(around[-1][word])
        else:
            for inner in reversed(around[1:] if path else around):
                if isinstance(inner, dict) and last in inner:
                    return inner[last]
    raise KeyError(name)


def fill(value: Json, tables: list[Json]) -> Json:
    """The value with every name in it replaced."""
    if isinstance(value, dict):
        return {key: fill(inner, tables) for key, inner in value.items()}
    if isinstance(value, list):
        filled: list[Json] = []
        for inner in value:
            if isinstance(inner, dict) and inner.keys() == {"times", "steps"}:
                for i in range(1, inner["times"] + 1):
                    filled.extend(fill(inner["steps"], [{"i": i}, *tables]))
                continue
            one = fill(inner, tables)
            splice = isinstance(inner, str) and isinstance(one, list)
            filled.extend(one if splice else [one])
        return filled
    while isinstance(value, str) and (match := NAME.search(value)):
        found = look_up(match[1], tables)
        if match[0] == value:
            return fill(found, tables)
        if isinstance(found, dict | list):
            raise KeyError(f"{match[1]} is no text, in: {value}")
        value = value[: match.start()] + str(found) + value[match.end() :]
    return value


def expand_template(template: Json, topic: str, tables: list[Json]) -> list[Json]:
    """The cases of one [[case]]."""
    columns = template.get("columns", [])
    cases = []
    for row in template.get("rows", [[]]):
        values = dict(zip(columns, row, strict=True))
        case = {"id": values.get("id"), "category": ["qdisc", "paqm", topic], **DEFAULTS}
        if "matchPattern" in template:
            case["matchCount"] = "1"
        case |= {key: value for key, value in template.items() if key not in OWN}
        if template.get("quiet", True):
            case["setup"] = [QUIET, *case["setup"]]
        case = fill(case, [values, *tables])
        cases.append({key: value for key, value in case.items() if value != ""})
    return cases


def load(file: Path) -> list[Json]:
    """The cases of a file, expanded. Errors: KeyError for a name that is nowhere, ValueError."""
    if file.suffix == ".json":
        plain: list[Json] = json.loads(file.read_text())
        return plain
    data = tomllib.loads(file.read_text())
    tables = [data, tomllib.loads(PARTS.read_text())]
    cases = [case for template in data["case"]
             for case in expand_template(template, file.stem, tables)]
    return cases + (option_cases.cases(file.stem) if file.parent == HERE else [])


def files() -> list[Path]:
    """All files of cases."""
    return sorted(f for f in HERE.glob("*.toml") if f != PARTS)


def main() -> int:
    ap = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--out", type=Path, metavar="DIR", required=True)
    ap.add_argument("files", nargs="*", type=Path, metavar="FILE", help="default: all")
    args = ap.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    for file in args.files or files():
        cases = load(file)
        (args.out / f"{file.stem}.json").write_text(json.dumps(cases, indent=4) + "\n")
        print(f"{file.name}: {len(cases)} cases")
    return 0


if __name__ == "__main__":
    sys.exit(main())
