# SPDX-License-Identifier: GPL-2.0
"""What docs and comments say of the code is there: files, and the names that stand behind them."""

from __future__ import annotations

import functools
import re
import subprocess
from pathlib import Path

from paqm_lab import cache

PAGES = [*sorted((cache.REPO / "docs").glob("*.md")), cache.REPO / "README.md"]
# "file.h: one, another" and links to files; a name has an underscore, or it may be a word.
POINTER = re.compile(r"([\w/.-]+\.(?:h|c|py|sh)): ([\w, ]+)")
NAME = re.compile(r"[A-Za-z]\w*_\w+")
# A function of C begins: its name.
FUNCTION = re.compile(r"^\w[\w \t*]*\b(\w+)\([^;{}]*\)\n\{", re.MULTILINE)
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def tracked() -> list[str]:
    found = subprocess.run(["git", "ls-files"], cwd=cache.REPO, capture_output=True, check=True)
    return found.stdout.decode().split()


@functools.cache
def functions(path: Path) -> frozenset[str]:
    """Functions of C that a file defines."""
    return frozenset(FUNCTION.findall(path.read_text()))


def stale(text: str, files: list[str], root: Path) -> list[str]:
    """Pointers of a text that lead nowhere, or to a file that only uses a function of another."""
    found = []
    of_c = [root / file for file in files if file.endswith((".c", ".h"))]
    for path, names in POINTER.findall(text):
        sources = [file for file in files if f"/{file}".endswith(f"/{path}")]
        code = "".join((root / file).read_text() for file in sources)
        found += [] if sources else [path]
        found += [
            f"{path}: {name}"
            for name in NAME.findall(names)
            if sources
            and (
                not re.search(rf"\b{name}\b", code)
                or any(name in functions(path) for path in of_c)
                and not any(name in functions(root / file) for file in sources)
            )
        ]
    return found


def test_pointers_lead_to_code() -> None:
    files = tracked()
    code = [cache.REPO / file for file in files if file.endswith((".c", ".h"))]
    bad = {page.name: stale(page.read_text(), files, cache.REPO) for page in [*PAGES, *code]}
    assert not {name: lost for name, lost in bad.items() if lost}


def test_a_stale_pointer_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.h").write_text("static int one_thing(void);\n")
    text = "This (a.h: one_thing), that (a.h: one_thin, other_thing), these (b.h: one_thing)."
    assert stale(text, ["a.h"], tmp_path) == ["a.h: one_thin", "a.h: other_thing", "b.h"]


def test_a_function_that_has_moved_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text("int one_thing(void);\n\nint two(void)\n{\n\tone_thing();\n}\n")
    (tmp_path / "b.c").write_text("int one_thing(int a,\n\t      int b)\n{\n\treturn 0;\n}\n")
    text = "Here (b.c: one_thing), not there (a.c: one_thing)."
    assert stale(text, ["a.c", "b.c"], tmp_path) == ["a.c: one_thing"]


def test_links_lead_to_files() -> None:
    bad = [
        f"{page.name}: {link}"
        for page in PAGES
        for link in LINK.findall(page.read_text())
        if not (page.parent / link).exists()
    ]
    assert not bad


def test_terms_of_the_glossary_stand_once() -> None:
    text = (cache.REPO / "docs" / "glossary.md").read_text()
    terms = [
        term.strip()
        for line in text.splitlines()
        for bold in re.findall(r"\*\*([^*]+)\*\*", line)
        for term in bold.split(",")
    ]
    assert len(terms) > 40 and len(terms) == len(set(terms))
