#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Checks how the tree hangs together: no circle of includes or imports, nothing that core/ needs
outside of it, no file too long to be read in one go, and a purpose in each file's first lines.

Prints what is wrong, one line each; nothing and status 0 if all is well.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
LONGEST = 600  # lines
CODE = {".c", ".h", ".py", ".sh", ".js", ".lua"}
# Rows of numbers and of cases: their length is that of what they list.
TABLES = {"core/tests/law_vectors.h", "core/tests/msg_cases.h", "core/tests/msg_vectors.h"}
# Written for other programs, which take no comment.
NO_HEAD = {"setup/gcc-element/empty.rs"}

Graph = dict[str, set[str]]


def tracked() -> list[str]:
    """All files of the tree that are code."""
    names = subprocess.run(
        [TOP / "setup" / "ls-files.sh"], check=True, capture_output=True, text=True
    ).stdout.split()
    return [name for name in names if Path(name).suffix in CODE and (TOP / name).is_file()]


def includes(name: str, text: str, files: set[str]) -> set[str]:
    """Files of the tree that a C file includes: by a path from the top, or beside it."""
    found = set()
    for path in re.findall(r'^\s*#\s*include\s+[<"]([^">]+)[">]', text, re.M):
        beside = (Path(name).parent / path).as_posix()
        for candidate in (path, beside, f"kernel/uapi/{path}"):
            if candidate in files:
                found.add(candidate)
                break
    return found


def imports(name: str, text: str, files: set[str]) -> set[str]:
    """Modules of the tree that a Python file imports, at its top or later."""
    found = set()
    homes = ("testbed", "tests", Path(name).parent.as_posix())

    def note(module: str) -> bool:
        path = module.replace(".", "/")
        for home in homes:
            for candidate in (f"{home}/{path}.py", f"{home}/{path}/__init__.py"):
                if candidate in files:
                    found.add(candidate)
                    return True
        return False

    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                note(alias.name)
        elif isinstance(node, ast.ImportFrom) and node.module:
            parts = [note(f"{node.module}.{alias.name}") for alias in node.names]
            if not all(parts):
                note(node.module)
    found.discard(name)
    return found


def circles(graph: Graph) -> list[list[str]]:
    """Groups of files each of which reaches all others (Tarjan's strongly connected components)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    groups = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in sorted(graph.get(name, ())):
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            at = stack.index(name)
            group = stack[at:]
            del stack[at:]
            if len(group) > 1:
                groups.append(sorted(group))

    for name in sorted(graph):
        if name not in index:
            visit(name)
    return groups


def has_purpose(name: str, text: str) -> bool:
    """Whether the first lines hold a comment or docstring beyond the licence."""
    head = [line for line in text.splitlines()[:8] if not line.startswith("#!")]
    words = " ".join(line for line in head if "SPDX-License-Identifier" not in line)
    if name.endswith(".py"):
        return ast.get_docstring(ast.parse(text)) is not None or not text.strip()
    mark = {".sh": r"^#\s+\w", ".lua": r"^--\s*\w"}.get(Path(name).suffix, r"/\*|//\s*\w")
    return re.search(mark, words if mark.startswith("/") else "\n".join(head[1:]), re.M) is not None


def main() -> int:
    names = tracked()
    files = set(names)
    graph: Graph = {}
    wrong = []
    for name in names:
        text = (TOP / name).read_text()
        lines = text.count("\n")
        if lines > LONGEST and name not in TABLES:
            wrong.append(f"{name}: {lines} lines, at most {LONGEST}: split it by what it does")
        if name not in NO_HEAD and not has_purpose(name, text):
            wrong.append(f"{name}: its first lines do not say what it is for")
        if name.endswith((".c", ".h")):
            graph[name] = includes(name, text, files)
        elif name.endswith(".py"):
            graph[name] = imports(name, text, files)
    for group in circles(graph):
        wrong.append(f"circle: {', '.join(group)}")
    for name in sorted(graph):
        if name.startswith("core/") and not name.startswith("core/tests/"):
            wrong += [f"{name} needs {other}: core/ stands alone"
                      for other in sorted(graph[name]) if not other.startswith("core/")]
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
