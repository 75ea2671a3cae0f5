# SPDX-License-Identifier: GPL-2.0
"""What the docs say of the code is there: files, and the names that stand behind them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from paqm_lab import cache

PAGES = [*sorted((cache.REPO / "docs").glob("*.md")), cache.REPO / "README.md"]
# "file.h: one, another" and links to files; a name has an underscore, or it may be a word.
POINTER = re.compile(r"([\w/.-]+\.(?:h|c|py|sh)): ([\w, ]+)")
NAME = re.compile(r"[A-Za-z]\w*_\w+")
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def tracked() -> list[str]:
    found = subprocess.run(["git", "ls-files"], cwd=cache.REPO, capture_output=True, check=True)
    return found.stdout.decode().split()


def stale(text: str, files: list[str], root: Path) -> list[str]:
    """Pointers of a page that lead nowhere."""
    found = []
    for path, names in POINTER.findall(text):
        sources = [file for file in files if f"/{file}".endswith(f"/{path}")]
        code = "".join((root / file).read_text() for file in sources)
        found += [] if sources else [path]
        found += [
            f"{path}: {name}"
            for name in NAME.findall(names)
            if sources and not re.search(rf"\b{name}\b", code)
        ]
    return found


def test_pointers_lead_to_code() -> None:
    files = tracked()
    bad = {page.name: stale(page.read_text(), files, cache.REPO) for page in PAGES}
    assert not {name: lost for name, lost in bad.items() if lost}


def test_a_stale_pointer_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.h").write_text("static int one_thing(void);\n")
    text = "This (a.h: one_thing), that (a.h: one_thin, other_thing), these (b.h: one_thing)."
    assert stale(text, ["a.h"], tmp_path) == ["a.h: one_thin", "a.h: other_thing", "b.h"]


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
