# SPDX-License-Identifier: GPL-2.0
"""setup/fuzz-build.sh compiles a target if, and only if, what it is made of has changed."""

import shlex
import subprocess
from pathlib import Path

import pytest

from paqm_lab import cache

# Notes each compilation; the preprocessor's text is that of the file.
COMPILER = """#!/bin/sh
case "$*" in
--version) cat version ;;
*" -E "*) cat source.c ;;
*)
	echo once >>compiled
	grep -q wrong source.c && exit 1
	touch out/fuzz/target/fuzz && chmod +x out/fuzz/target/fuzz
	;;
esac
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "cc").write_text(COMPILER)
    (tmp_path / "cc").chmod(0o755)
    (tmp_path / "source.c").write_text("int one;\n")
    (tmp_path / "version").write_text("1\n")
    return tmp_path


def compiled(tree: Path, words: str = "-DONE", status: int = 0) -> bool:
    """Whether it was compiled now."""
    note = tree / "compiled"
    note.unlink(missing_ok=True)
    build = f"set -eu; . {shlex.quote(f'{cache.REPO}/setup/fuzz-build.sh')}; fuzz_out target; "
    build += f"fuzz_build address fuzz {words} source.c"
    environment = {"PATH": "/usr/bin:/bin", "CC": str(tree / "cc")}
    assert subprocess.run(["sh", "-c", build], cwd=tree, env=environment).returncode == status
    return note.exists()


def test_what_is_the_same_is_not_compiled_again(tree: Path) -> None:
    assert compiled(tree)
    assert not compiled(tree)


@pytest.mark.parametrize(("file", "text"), [("source.c", "int two;\n"), ("version", "2\n")])
def test_another_text_or_compiler_compiles(tree: Path, file: str, text: str) -> None:
    compiled(tree)
    (tree / file).write_text(text)
    assert compiled(tree) and not compiled(tree)


def test_other_words_compile(tree: Path) -> None:
    compiled(tree)
    assert compiled(tree, "-DTWO") and not compiled(tree, "-DTWO")


def test_a_program_that_is_gone_is_compiled(tree: Path) -> None:
    compiled(tree)
    (tree / "out" / "fuzz" / "target" / "fuzz").unlink()
    assert compiled(tree)


def test_after_a_failure_it_is_compiled(tree: Path) -> None:
    compiled(tree)
    (tree / "source.c").write_text("wrong\n")
    assert compiled(tree, status=1) and compiled(tree, status=1)
    (tree / "source.c").write_text("int one;\n")
    assert compiled(tree)
