# SPDX-License-Identifier: GPL-2.0
"""What docs and comments say of the code is there: files, and the names that stand behind them."""

from __future__ import annotations

import functools
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from sources import listed

from paqm_lab import cache

DOCS = cache.REPO / "docs"
PAGES = sorted([*cache.REPO.glob("*.md"), *DOCS.glob("*.md"), *cache.REPO.glob("*/README.md")])
# "file.h: one, another" and links to files; a name has an underscore, or it may be a word.
POINTER = re.compile(r"([\w/.-]+\.(?:h|c|py|sh)): ([\w, ]+)")
NAME = re.compile(r"[A-Za-z]\w*_\w+")
# A function of C begins: its name.
FUNCTION = re.compile(r"^\w[\w \t*]*\b(\w+)\([^;{}]*\)\n\{", re.MULTILINE)
LINK = re.compile(r"\]\(([^)#:]*)(#[^):]*)?\)")
CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


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
    files = listed()
    code = [cache.REPO / file for file in files if file.endswith((".c", ".h"))]
    bad = {str(page): stale(page.read_text(), files, cache.REPO) for page in [*PAGES, *code]}
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


def anchors(page: Path) -> set[str]:
    """Names by which the headings of a page can be linked to, as forges make them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return {
        "#" + re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
        for title in HEADING.findall(text)
    }


def dead_links(page: Path) -> list[str]:
    """Links of a page to files, or to headings, that are not there."""
    dead = []
    for path, anchor in LINK.findall(CODE.sub("", page.read_text())):
        target = page.parent / path if path else page
        if not target.exists() or anchor and anchor not in anchors(target):
            dead.append(f"{page.name}: {path}{anchor}")
    return dead


def test_links_lead_to_files_and_headings() -> None:
    assert not [dead for page in PAGES for dead in dead_links(page)]


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "b.md").write_text("# One, two\n\n```\n# no heading\n```\n")
    page = tmp_path / "a.md"
    page.write_text("[1](b.md) [2](b.md#one-two) [3](c.md) [4](b.md#no-heading) [5](#no) `[6](7)`")
    assert dead_links(page) == ["a.md: c.md", "a.md: b.md#no-heading", "a.md: #no"]


def test_the_index_has_every_page() -> None:
    links = {path for path, _ in LINK.findall((DOCS / "README.md").read_text())}
    assert not {page.name for page in DOCS.glob("*.md")} - links - {"README.md"}


def test_the_package_has_the_recipes_of_the_page() -> None:
    page = (DOCS / "persistence.md").read_text()
    shipped = {file.name: file.read_text() for file in cache.REPO.glob("packaging/examples/*")}
    unit = shipped["paqm@.service"]
    assert f"```\n{unit[unit.index('[Unit]') :]}```" in page
    for name, line in (
        ("ifupdown", r"up (/sbin/tc .* paqm) "),
        ("ifupdown", r"(up \[ .*key.*)"),
        ("networkmanager-dispatcher", r"(/sbin/tc .* paqm) "),
        ("networkmanager-dispatcher", r"(\[ .*key.*)"),
        ("ppp-ip-up", r"(/sbin/tc .* paqm) "),
        ("ppp-ip-up", r"(\[ .*key.*)"),
    ):
        command = re.search(line, shipped[name].replace('"$IFACE"', "$IFACE"))
        assert command is not None and command[1] in page
    assert not [name for name, text in shipped.items() if "/etc/default" in text]


def test_targets_are_in_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (cache.REPO / "Makefile").read_text(), re.MULTILINE))
    named = {
        (page.name, target)
        for page in PAGES
        for target in re.findall(r"(?:`|^)make ([a-z][a-z-]+)", page.read_text(), re.MULTILINE)
    }
    assert len(named) > 40 and not [(page, name) for page, name in named if name not in targets]


def test_api_pages_are_made_of_the_headers() -> None:
    done = subprocess.run(
        [sys.executable, str(DOCS / "make_api.py"), "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_drawings_are_what_their_script_draws() -> None:
    done = subprocess.run(
        [sys.executable, str(DOCS / "make_drawing.py"), "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("which", "page"),
    [("demo", "README.md"), ("chromium", "README.md"), ("gst", "docs/pipelines.md")],
)
def test_a_page_has_its_table_as_it_was_run(which: str, page: str) -> None:
    sys.path.insert(0, str(DOCS))
    import make_results

    table = make_results.beside(which)
    assert "\n".join(["", *table, ""]) in (cache.REPO / page).read_text()


# Results that docs/ keeps, the section about them, and what stands in others of its sections.
FORMATS = {
    "mixed": ("mixed", ("result.json",)),
    "head-to-head": ("head-to-head", ("result.json", "out/mixed/result.json")),
    "regimes": ("regimes", ("result.json",)),
    "sfu": ("sfu", ("result.json",)),
    "browser": ("browser", ("result.json",)),
    "browser-page": ("browser", ("result.json",)),
    "browser-steps": ("browser", ("result.json",)),
    "firefox": ("browser", ("result.json",)),
}
# Objects whose keys are names of programs, cases, systems and kinds of flows.
BY_NAME = {"versions", "missing", "job", "systems", "groups"}


def keys_of(value: object, names: bool = False) -> set[str]:
    """All keys in a result, but those that are somebody's name."""
    if isinstance(value, list):
        return set().union(*(keys_of(one, names) for one in value))
    if not isinstance(value, dict):
        return set()
    found = set() if names else set(value)
    return found.union(*(keys_of(one, name in BY_NAME) for name, one in value.items()))


@pytest.mark.parametrize("name", FORMATS)
def test_the_format_of_results_has_every_key(name: str) -> None:
    page = (DOCS / "results-format.md").read_text()
    sections = {part.partition("\n")[0]: part for part in page.split("\n## ")[1:]}
    own, others = FORMATS[name]
    told = "".join(sections[one] for one in (f"out/{own}/result.json", *others))
    known = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", told))))
    found = keys_of(json.loads((DOCS / "results" / f"{name}.json").read_text()))
    assert found - known == set()


def test_all_seeds_are_of_one_state() -> None:
    """The first of docs/results.md is the run of docs/results/demo.json."""
    landed = json.loads((DOCS / "results" / "demo.json").read_text())
    page = (DOCS / "results.md").read_text()
    assert landed["seed"] == 1
    assert landed["packet_log_sha256"]["paqm"] in page


def test_one_version_everywhere() -> None:
    wanted = re.search(r"version: '([\d.]+)'", (cache.REPO / "meson.build").read_text())
    assert wanted is not None
    places = {
        r'^MODULE_VERSION\("([^"]*)"\)': "kernel/*.c",
        r"^paqm \(([\d.]+)-\d+\)": "packaging/debian/changelog",
        r'^\.TH .*"paqm ([^"]*)"': "*.[1-8]",
    }
    for pattern, where in places.items():
        found = {
            file: versions[0]
            for file in listed(where)
            if (versions := re.findall(pattern, (cache.REPO / file).read_text(), re.MULTILINE))
        }
        assert found and set(found.values()) == {wanted[1]}, found
    newest = re.search(r"^## (\d[\d.]*)", (cache.REPO / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None and newest[1] == wanted[1]


def test_terms_of_the_glossary_stand_once() -> None:
    text = (cache.REPO / "docs" / "glossary.md").read_text()
    terms = [
        term.strip()
        for line in text.splitlines()
        for bold in re.findall(r"\*\*([^*]+)\*\*", line)
        for term in bold.split(",")
    ]
    assert len(terms) > 40 and len(terms) == len(set(terms))
