# SPDX-License-Identifier: GPL-2.0
"""A run gives the same packets from another path, with another cache, beside other files."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from paqm_lab import cache, kernel

pytestmark = pytest.mark.lab
# All kinds of senders for ten seconds, and the demonstration, which fills a guest's memory.
SHORT = [str(Path(__file__).parent / "anywhere.toml")]
DEMO = ["demo", "--variant", "paqm"]

# In a mount namespace of its own: an /etc and a /usr with more, and with less, than the host's.
OTHER_HOST = """
set -e
mount --make-rprivate /
scratch=$1
shift
mount -t tmpfs tmpfs "$scratch"
for place in etc usr; do
	mkdir -p "$scratch/$place.upper" "$scratch/$place.work"
	mount -t overlay overlay -o "lowerdir=/$place,upperdir=$scratch/$place.upper,\
workdir=$scratch/$place.work" "/$place"
done
for i in $(seq 40); do
	mkdir -p "/usr/local/lib/other-$i"
	echo "/usr/local/lib/other-$i" >>/etc/ld.so.conf.d/other.conf
	echo "192.0.2.$i host-$i" >>/etc/hosts
	printf '#!/bin/sh\\n' >"/usr/local/bin/other-$i"
done
ldconfig
mkdir -p /usr/local/lib/python3/dist-packages/other
find /usr/lib -path '*/gstreamer-1.0/libgst[ow]*.so' -delete # ogg, opus, wavenc ...
find /usr/lib/python3 -name __pycache__ -prune -exec rm -rf {} +
exec "$@"
"""


def packets(
    what: list[str], repo: Path, out: Path, around: tuple[str, ...] = (), **environment: str
) -> str:
    """The packet log's hash of a run from that clone."""
    command = [*around, str(repo / "testbed" / "paqm-lab"), "run", *what]
    done = subprocess.run(
        [*command, "--out", str(out)], env={**os.environ, **environment}, capture_output=True,
        text=True, cwd="/",
    )
    assert done.returncode == 0, done.stderr + done.stdout
    record = json.loads((out / "paqm" / "run.json").read_text())
    return str(record["packet_log_sha256"])


# What guests look for in the cache: a link would lead to where they cannot follow.
SEEN = ("node", "modules", "gstreamer-plugins")


def cache_without(home: Path, *names: str) -> str:
    """A cache elsewhere, that has to make anew what begins with these names."""
    (home / "paqm").mkdir(parents=True)
    for entry in cache.cache_dir().iterdir():
        there = home / "paqm" / entry.name
        if entry.name.startswith(names) or entry.suffix == ".lock":
            continue
        if entry.name in SEEN:
            shutil.copytree(entry, there, symlinks=True)
        elif entry.is_dir():
            there.symlink_to(entry)
        else:
            shutil.copy(entry, there)
    return str(home)


def may_mount() -> bool:
    """Root, and not in a container that forbids it."""
    command = ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(command, capture_output=True).returncode == 0


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> str:
    if not kernel.ensure("lab", print).repeats_anywhere:
        pytest.skip("uml-repeat.patch does not fit this kernel")
    return packets(SHORT, cache.REPO, tmp_path_factory.mktemp("here") / "out")


def test_from_another_path_with_a_cold_cache(here: str, tmp_path: Path) -> None:
    repo = tmp_path / "another-clone-at-a-path-that-is-longer"
    left_out = shutil.ignore_patterns("out", "*.o", "*.p", "__pycache__", ".git")
    shutil.copytree(cache.REPO, repo, ignore=left_out, symlinks=True)
    cold = cache_without(tmp_path / "cold", "detrand", "programs")
    assert packets(SHORT, repo, tmp_path / "o", XDG_CACHE_HOME=cold) == here
    demo = packets(DEMO, cache.REPO, tmp_path / "demo")
    assert packets(DEMO, repo, tmp_path / "d", XDG_CACHE_HOME=cold) == demo


@pytest.mark.skipif(not may_mount(), reason="another /etc and /usr are mounted: needs root")
def test_beside_other_files_and_packages(here: str, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    around = ("unshare", "--mount", "sh", "-c", OTHER_HOST, "sh", str(scratch))
    cold = cache_without(tmp_path / "cold", "detrand")
    assert packets(SHORT, cache.REPO, tmp_path / "out", around, XDG_CACHE_HOME=cold) == here
