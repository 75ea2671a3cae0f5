#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Writes the API pages of the documentation from the comments of the headers.

make_api.py            writes docs/api-libpaqmclient.md and docs/api-uapi.md
make_api.py --check    only says which page differs; status 1 if one does
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
PAGES = {
    "docs/api-libpaqmclient.md": ("libpaqmclient", "libpaqmclient/paqmclient.h"),
    "docs/api-uapi.md": ("Netlink interface of sch_paqm", "kernel/uapi/linux/pkt_sched_paqm.h"),
}
COMMENT = re.compile(r"/\*(.*?)\*/", re.S)
# What a header consists of, behind the comment that explains it.
ITEM = re.compile(
    r"(?P<comment>/\*.*?\*/\n)?"
    r"(?:(?P<define>(?:#define [^\n]*\n)+)"
    r"|(?P<enum>enum \w* ?\{.*?\};)"
    r"|(?P<struct>struct \w+ \{.*?\n\};)"
    r"|(?P<opaque>struct \w+;)"
    r"|(?P<function>\w[^;{}#/]*?\b\w+\([^;]*\);))",
    re.S,
)
# No part of the interface: guards, includes, what C++ needs, sentinels of enumerations.
NOISE = re.compile(
    r"^(#(ifndef|ifdef|endif|include)\b.*|#define \w+_H|extern \"C\" \{|\})$", re.M
)
FIELD = re.compile(r"^(?P<type>.*?[\s*])(?P<name>\w+(?:\[\w+\])?)$", re.S)


@dataclass
class Row:
    """A member of an enumeration or structure, or a constant."""

    name: str
    type: str
    text: str


def words(comment: str) -> str:
    """A comment's text in one line."""
    return " ".join(re.sub(r"^[ \t]*\*", "", comment, flags=re.M).split())


def paragraphs(comment: str) -> list[str]:
    """A comment's paragraphs, each in one line; it may have lost its end."""
    text = re.sub(r"^\s*/\*+|\*/\s*$", "", comment)
    lines = [re.sub(r"^[ \t]*\*?", "", line).strip() for line in text.splitlines()]
    return [" ".join(part.split()) for part in "\n".join(lines).split("\n\n") if part.strip()]


def members(body: str, between: str) -> list[Row]:
    """What stands between braces; a comment belongs to the member before it."""
    rows: list[Row] = []
    value = 0
    for code, comment in re.findall(r"(.*?)(?:/\*(.*?)\*/|\Z)", body, re.S):
        for member in code.split(between):
            name, _, given = (part.strip() for part in member.partition("="))
            if not name or between == "," and name.startswith("__"):
                continue
            if between == ",":
                value = int(given) if given else value
                rows.append(Row(name, str(value), ""))
                value += 1
            elif field := FIELD.match(name):
                rows.append(Row(field["name"], " ".join(field["type"].split()), ""))
        if comment:
            rows[-1].text = words(comment)
    return rows


def table(head: str, rows: list[Row]) -> list[str]:
    if not any(row.text for row in rows):
        lines = [f"| {head} |", "|---|---|"]
        return [*lines, *(f"| `{row.name}` | `{row.type}` |" for row in rows)]
    lines = [f"| {head} | meaning |", "|---|---|---|"]
    return [*lines, *(f"| `{row.name}` | `{row.type}` | {row.text.replace('|', '/')} |"
                      for row in rows)]


def constants(text: str) -> list[Row]:
    rows = []
    for line in text.splitlines():
        comment = COMMENT.search(line)
        code = COMMENT.sub("", line).split(None, 2)
        rows.append(Row(code[1], code[2].strip(), words(comment[1]) if comment else ""))
    return rows


def function(comment: str, code: str) -> list[str]:
    """One function: its prototype, what its comment says, its parameters."""
    prototype = "\n".join(re.sub(r"^\t+ *", "    ", line) for line in code.splitlines())
    name = re.search(r"(\w+)\(", code)
    assert name is not None
    lines = [f"### {name[1]}()", "", "```c", prototype, "```", ""]
    comment = re.sub(rf"^[ *]*{name[1]}\(\) - (.)", lambda m: m[1].upper(), comment, flags=re.M)
    for text in paragraphs(comment):
        first, *parameters = re.split(r"\s*@(\w+): ", text)
        lines += [f"{first.rstrip('.')}.", ""]
        if parameters:
            pairs = zip(parameters[::2], parameters[1::2], strict=True)
            lines += [*(f"* `{key}`: {value}" for key, value in pairs), ""]
    return lines


def parts(code: str) -> tuple[str, str]:
    """Name of an enumeration or structure, and what stands between its braces."""
    head, _, body = code.partition("{")
    return head.partition(" ")[2].strip(), body.removesuffix("};")


def item(found: re.Match[str]) -> list[str]:
    """The Markdown of one item of a header."""
    comment = found["comment"] or ""
    if found["function"]:
        return function(comment, found["function"])
    lines = []
    about = paragraphs(comment)
    if found["enum"]:
        name, body = parts(found["enum"])
        rows = members(body, ",")
        prefix = rows[0].name.rsplit("_", 1)[0] + "_*"
        lines = [f"### {f'enum {name}' if name else prefix}", ""]
        shown = table("name | value", rows)
    elif found["struct"]:
        name, body = parts(found["struct"])
        lines = [f"### struct {name}", ""]
        shown = table("field | type", members(body, ";"))
    elif found["define"]:
        shown = table("constant | value", constants(found["define"]))
    else:
        return []
    for text in about:
        lines += [text, ""]
    return [*lines, *shown, ""]


def page(title: str, header: str) -> str:
    text = (TOP / header).read_text()
    licence, _, text = text.partition("\n")
    text = NOISE.sub("", text)
    intro, _, text = text.partition("*/\n")
    lines = [
        f"# {title}",
        "",
        f"Made by `docs/make_api.py` from the comments of `{header}`; do not edit it.",
        "",
    ]
    for part in paragraphs(intro):
        lines += [part, ""]
    licence = licence.strip("/* ").removeprefix("SPDX-License-Identifier: ")
    lines += [f"Licence of the header: {licence}.", ""]
    for found in ITEM.finditer(text):
        lines += item(found)
    return "\n".join(lines).rstrip() + "\n"


def main() -> int:
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        print(__doc__, file=sys.stderr)
        return 2
    status = 0
    for path, (title, header) in PAGES.items():
        made = page(title, header)
        if not check:
            (TOP / path).write_text(made)
        elif (TOP / path).read_text() != made:
            print(f"{path} is not what docs/make_api.py makes of {header}")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
