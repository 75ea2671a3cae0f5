# SPDX-License-Identifier: GPL-2.0
"""The model of D-CBT's main experiment, core/tests/dcbt_model.c: what the figures hang on."""

from __future__ import annotations

import functools
import itertools
import json
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from paqm_lab import cache
from paqm_lab.catalogue.row import Context
from paqm_lab.dcbt.figures import Values, mean
from paqm_lab.errors import LabError

# Where the thesis is silent or says two things: every set of them is a faithful reading.
OPEN = ("tail", "uniform", "immediate", "admitted", "cap", "half", "at-once", "slow")
TCPS = ("reno", "newreno")


@functools.cache
def _program(source: Path) -> tempfile.TemporaryDirectory[str]:
    """Its directory, which goes with this process."""
    home = tempfile.TemporaryDirectory(dir=cache.scratch_dir())
    build = ["cc", "-O2", "-D_GNU_SOURCE", "-I", str(cache.REPO)]
    _call([*build, "-o", f"{home.name}/model", str(source), "-lm"])
    return home


def _call(words: list[str]) -> str:
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise LabError(f"{words[0]}: {done.stderr.strip()}")
    return done.stdout


def run(ctx: Context, words: str, seed: int) -> Values:
    """`words`: TCP and choices."""
    home = _program(cache.REPO / "core" / "tests" / "dcbt_model.c").name
    tcp, *chosen = words.split()
    found: Values = json.loads(_call([f"{home}/model", tcp, str(seed), *chosen]))
    for n in (2, 3):
        tagged, untagged = (found[f"{of}_waits{n}"] for of in ("tagged", "untagged"))
        found[f"held_untagged{n}"] = untagged / tagged if tagged and untagged else None
    return found


def sets(
    ctx: Context, bands: Mapping[str, tuple[float, float]], reading: str, runs: int, seed: int
) -> Values:
    """All sets of open choices with both TCPs, each the mean of so many runs, and how many have
    figures within their bands.
    """
    names = [
        " ".join((tcp, *itertools.compress(OPEN, taken), reading))
        for tcp in TCPS for taken in itertools.product((False, True), repeat=len(OPEN))
    ]  # fmt: skip
    means = []
    for words in names:
        found = [run(ctx, words, runs * seed - n) for n in range(runs)]
        means.append({name: mean(one[name] or 0 for one in found) for name in bands})

    def within(found: dict[str, float], names: tuple[str, ...]) -> bool:
        return all(bands[name][0] <= found[name] <= bands[name][1] for name in names)

    loads, losses = ("untagged2", "untagged3"), ("tcp_drop0", "tagged_drop0")
    counts: Values = {
        "sets": len(means),
        "sets_all": sum(within(one, tuple(bands)) for one in means),
        "sets_untagged": sum(within(one, loads) for one in means),
        "sets_losses": sum(within(one, losses) for one in means),
    }
    for name in (*loads, *losses):
        values = [one[name] for one in means]
        counts |= {f"{name}_least": min(values), f"{name}_most": max(values)}
    return counts
