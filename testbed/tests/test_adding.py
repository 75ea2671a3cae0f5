# SPDX-License-Identifier: GPL-2.0
"""The examples of docs/adding.md, applied to a copy of the tree, do what the page says."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from sources import copy, listed

from paqm_lab import cache

PAGE = (cache.REPO / "docs" / "adding.md").read_text()
SECTION = re.compile(r"^## (.*?)\n(.*?)(?=^## |\Z)", re.M | re.S)
NEW = re.compile(r"^<!-- new: (\S+) -->\n```\w+\n(.*?)^```$", re.M | re.S)
CHANGE = re.compile(r"^<!-- change -->\n```diff\n(.*?)^```$", re.M | re.S)
SECTIONS = dict(SECTION.findall(PAGE))

# Two reports without losses, one with: 0.25, then 50 kbit/s more each, then half.
PROBE = """
#include <math.h>
#include <stdio.h>
#include "streamer/control/control.h"

int main(void)
{
	const struct ctl_params p = {.rate_min = 100e3, .rate_max = 2e6, .packet = 1000};
	const struct ctl_kind *kind = ctl_find("aimd");
	struct ctl *c = kind ? ctl_new(kind, &p, 0) : NULL;

	if (!c)
		return 1;
	for (int i = 0; i < 4; i++) {
		printf("%.0f ", ctl_rate(c, i) / 1e3);
		ctl_receiver_report(c, i + 0.5, i == 2 ? 0.1 : 0, NAN);
	}
	ctl_free(c);
	return 0;
}
"""

# Two flows; 1000 bytes wait at 10 Mbit/s, period 100 ms.
ASK = """
#include <stdio.h>
#include "core/paqm_laws.h"

int main(void)
{
	const struct paqm_outer_params p = {.rate_min = 10000};
	const struct paqm_outer_in in = {
		.cap = 10000000, .backlog = 1000, .period_us = 100000, .flows = 2};
	struct paqm_law_vars v = {0};

	printf("%llu\\n", paqm_law_of(8)->rate(&v, &p, &in, 1));
	return 0;
}
"""


# A flow, and a message about it with this ICMP type; by paqmd's own test helpers.
MESSAGE = """
import sys
from pathlib import Path
sys.path.insert(0, "feedback-daemon/tests")
import read, rig
first = rig.rtp(1)
told = bytes([254]) + rig.message(rig.quote(first), 1, 9e5)[1:]
packets = [(10.0, read.OUT, read.media(first)), (10.02, read.IN, read.said(read.resum(told)))]
Path("file.pcap").write_bytes(read.capture(packets))
print(read.FLOW, end="")
"""


NOT_HERE = 77  # of a test that needs a network namespace where none is given


def run(where: Path, *command: str, good: tuple[int, ...] = (0,)) -> str:
    """What a command says."""
    done = subprocess.run(
        command, cwd=where, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode in good, f"{' '.join(command)}\n{done.stdout}"
    return done.stdout


def apply(tree: Path, title: str) -> set[str]:
    """Do what a section says; the files that it touches."""
    touched = set()
    for path, text in NEW.findall(SECTIONS[title]):
        assert not (tree / path).exists(), path
        (tree / path).write_text(text)
        touched.add(path)
    for change in CHANGE.findall(SECTIONS[title]):
        done = subprocess.run(
            ["patch", "-p1", "--force", "--no-backup-if-mismatch"], cwd=tree, input=change,
            capture_output=True, text=True,
        )
        assert done.returncode == 0, done.stdout
        touched |= set(re.findall(r"^\+\+\+ b/(.*)$", change, re.M))
    return touched


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of what is in the tree now."""
    return copy(listed(), tmp_path / "tree")


def test_paths_of_the_page_are_there() -> None:
    new = [path for path, _ in NEW.findall(PAGE)]
    prose = re.sub(r"^```.*?^```$", "", PAGE, flags=re.M | re.S)
    paths = re.findall(r"`((?:core|docs|kernel|streamer|testbed|scenarios)/[\w./-]*)`", prose)
    assert len(paths) > 15
    assert not [
        path
        for path in paths
        if path not in new and not any((top / path).exists() for top in (cache.REPO, cache.TESTBED))
    ]


ANALYSE = """
import sys
from pathlib import Path
from paqm_lab import analysis, report, scenario
assert scenario.load("brief").name == "brief"
analysis.analyse(Path(sys.argv[1]), score=False)
report.write(Path(sys.argv[1]))
"""


@pytest.mark.lab
def test_a_scenario_and_a_metric(tree: Path) -> None:
    assert len(apply(tree, "A scenario")) == 1
    assert len(apply(tree, "A metric")) == 3
    # By this clone, whose programs are built; what the copy makes of it is what counts.
    brief, out = tree / "testbed" / "scenarios" / "brief.toml", tree / "out"
    lab = str(cache.TESTBED / "paqm-lab")
    run(tree, lab, "run", str(brief), "--pcap", "--out", str(out))
    run(tree / "testbed", sys.executable, "-c", ANALYSE, str(out))
    figures = json.loads((out / "result.json").read_text())["variants"][0]["figures"]
    assert 0 < figures["media_variation_ms"] < figures["media_sojourn_ms"]["max"]
    assert "mean change between packets" in (out / "report.html").read_text()


# The copy's package, which plans and evaluates, with this clone's programs.
RUN = """
import sys
from pathlib import Path
from paqm_lab import cache
cache.REPO = Path(sys.argv.pop(1))
cache.TESTBED = cache.REPO / "testbed"
from paqm_lab.cli import main
sys.exit(main())
"""


@pytest.mark.lab
def test_rivals(tree: Path) -> None:
    assert len(apply(tree, "A rival queue")) == 1
    assert len(apply(tree, "A rival sender")) == 2
    scenario, out = str(tree / "testbed" / "scenarios" / "rivals.toml"), tree / "out"
    words = ["run", scenario, "--out", str(out)]
    run(tree / "testbed", sys.executable, "-c", RUN, str(cache.REPO), *words)
    result = json.loads((out / "result.json").read_text())
    queue, sender = result["variants"]
    assert (queue["name"], sender["codec"]) == ("fq_pie", "VP8 (libvpx)")
    assert queue["qdisc"].startswith("fq_pie ") and queue["shaper"] == "htb"
    for variant in (queue, sender):
        assert 0.3 < variant["flows"]["a"]["mean_mbit"] <= 0.65


def test_a_controller(tree: Path) -> None:
    assert len(apply(tree, "A controller")) == 2
    run(tree, "meson", "setup", "build")
    library = "streamer/libpaqm-streamer-control.a"
    run(tree, "ninja", "-C", "build", library)
    (tree / "probe.c").write_text(PROBE)
    compiler = os.environ.get("CC", "cc")
    run(tree, compiler, "-I.", "-o", "probe", "probe.c", f"build/{library}", "-lx264", "-lm")
    assert run(tree, "./probe").split() == ["500", "550", "600", "300"]


PLUGIN = "userspace/tc-paqm"


def page_of_plugin(tree: Path) -> None:
    """The man page follows the plugin, and tc takes its words."""
    tc = shutil.which("tc") or "/sbin/tc"
    page = [f"build/{PLUGIN}", f"{PLUGIN}/tc-paqm.8", tc]
    run(tree, f"{PLUGIN}/tests/test_man.py", *page, "--update")
    run(tree, f"{PLUGIN}/tests/test_man.py", *page)
    run(tree, f"{PLUGIN}/tests/test_parse.py", f"build/{PLUGIN}", tc, good=(0, NOT_HERE))


def test_a_law(tree: Path) -> None:
    assert len(apply(tree, "A law")) == 4
    (tree / "ask.c").write_text(ASK)
    run(tree, os.environ.get("CC", "cc"), "-Wall", "-Werror", "-I.", "-o", "ask", "ask.c")
    assert run(tree, "./ask").strip() == str((10_000_000 - 80_000) // 2)
    run(tree, "meson", "setup", "build")
    run(tree, "ninja", "-C", "build", "userspace/tc-paqm/q_paqm.so")
    page_of_plugin(tree)
    assert "\\fBequal\\fP }" in (tree / PLUGIN / "tc-paqm.8").read_text()


def test_a_carrier(tree: Path) -> None:
    touched = apply(tree, "A carrier")
    before = (tree / "docs" / "api-uapi.md").read_text()
    run(tree, sys.executable, "docs/make_api.py")
    assert (tree / "docs" / "api-uapi.md").read_text() != before
    assert len(touched) == 7  # and that page
    run(tree, "meson", "setup", "build")
    daemon = "feedback-daemon/paqmd"
    run(tree, "ninja", "-C", "build", "userspace/tc-paqm/q_paqm.so", daemon)
    page_of_plugin(tree)
    flow = run(tree, sys.executable, "-c", MESSAGE)
    said = run(tree, f"build/{daemon}", "--read", "file.pcap", "--flow", flow)
    assert json.loads(said.splitlines()[0])["event"] == "accepted"
