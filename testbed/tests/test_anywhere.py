# SPDX-License-Identifier: GPL-2.0
"""A run gives the same packets from another path, with another cache, beside other files."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from paqm_lab import cache, image, kernel, run, scenario

pytestmark = pytest.mark.lab
LANDED = cache.REPO / "docs" / "results" / "demo.json"

# In a mount namespace of its own: an /etc and a /usr with more, and with less, than the host's. And
# by a user who is not root, and gives no file away, but may read the caller's cache.
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
exec setpriv --reuid 12345 --clear-groups --securebits=+no_setuid_fixup \\
	--inh-caps=-all,+dac_override --ambient-caps=-all,+dac_override \\
	--bounding-set=-all,+dac_override -- "$@"
"""


def lab(words: str, repo: Path, place: Path, around: tuple[str, ...] = (), **more: str) -> None:
    """What `paqm-lab` of that clone does with a scenario or a result."""
    command = [*around, str(repo / "testbed" / "paqm-lab"), *words.split(), str(place)]
    done = subprocess.run(
        command, env={**os.environ, **more}, capture_output=True, text=True, cwd="/"
    )
    assert done.returncode == 0, done.stderr + done.stdout


# What guests look for in the cache: a link would lead to where they cannot follow.
SEEN = ("node", "modules", "gstreamer-plugins")


def copy(entry: Path, there: Path) -> None:
    """A directory of the cache, from which other clones may delete what is old meanwhile."""
    try:
        shutil.copytree(entry, there, symlinks=True)
    except shutil.Error as err:
        if any(os.path.lexists(source) for source, *_ in err.args[0]):
            raise


def cache_without(home: Path, *names: str) -> str:
    """A cache elsewhere, that has to make anew what begins with these names."""
    (home / "paqm").mkdir(parents=True)
    for entry in cache.cache_dir().iterdir():
        there = home / "paqm" / entry.name
        if entry.name.startswith(names) or entry.suffix == ".lock":
            continue
        if entry.name in SEEN:
            copy(entry, there)
        elif entry.is_dir():
            there.symlink_to(entry)
        else:
            shutil.copy(entry, there)
    return str(home)


def change_plugins(plugins: Path, root: Path) -> None:
    """A plugin more than the other cache has, or those it has (make gcc-element) gone."""
    if plugins.is_dir():
        shutil.rmtree(plugins)
    else:
        plugins.mkdir()
        shutil.copy(next(root.glob("usr/lib/*/gstreamer-1.0/libgstaudiotestsrc.so")), plugins)


def may_mount() -> bool:
    """Root, and not in a container that forbids it."""
    command = ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(command, capture_output=True).returncode == 0


@pytest.fixture(scope="module", autouse=True)
def repeats_anywhere() -> None:
    if not kernel.ensure("lab", print).repeats_anywhere:
        pytest.skip("uml-repeat.patch does not fit this kernel")


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A result of this clone with all kinds of senders, in six seconds."""
    out = tmp_path_factory.mktemp("here") / "out"
    chosen = scenario.load(str(Path(__file__).parent / "anywhere.toml"))
    options = run.Options(out, 1, [], False, False, score=False, page=False)
    run.run_scenario(chosen, options, print)
    return out


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demonstration, which fills a guest's memory, from another path with a cold cache."""
    tmp_path = tmp_path_factory.mktemp("demo")
    repo = tmp_path / "another-clone-at-a-path-that-is-longer"
    left_out = shutil.ignore_patterns("out", "*.o", "*.p", "__pycache__", ".git")
    shutil.copytree(cache.REPO, repo, ignore=left_out, symlinks=True)
    cold = cache_without(tmp_path / "cold", "detrand", "programs")
    root = image.ensure(kernel.ensure("lab", print), print).root
    change_plugins(Path(cold) / "paqm" / cache.plugins().name, root)
    out = cache.REPO / "out" / "test" / "demo"
    lab("run demo --variant paqm --out", repo, out, XDG_CACHE_HOME=cold)
    return out


def test_the_demonstration_passes(demo: Path) -> None:
    lab("checks", cache.REPO, demo)


def packets_of(result: Path) -> Any:
    return json.loads(result.read_text())["packet_log_sha256"]["paqm"]


def test_from_another_path_with_a_cold_cache(demo: Path) -> None:
    """What is landed was made in place and warm; where that is another, it is made so now."""
    if packets_of(demo / "result.json") != packets_of(LANDED):
        lab("verify", cache.REPO, demo)


def test_landed_demonstration_is_this_one(demo: Path) -> None:
    """What README and docs/results/demo.json show was made by programs that do the same."""
    ours, landed = (json.loads(path.read_text()) for path in (demo / "result.json", LANDED))
    if any(ours["versions"][key] != landed["versions"][key] for key in ("kernel_config", "image")):
        pytest.skip("made under another lock")
    assert packets_of(demo / "result.json") == packets_of(LANDED), (
        "other packets than before: if that is meant, run make demo and "
        "docs/make_results.py demo out/demo/result.json"
    )


@pytest.mark.skipif(not may_mount(), reason="another /etc and /usr are mounted: needs root")
def test_beside_other_files_and_packages_as_another_user(here: Path, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    around = ("unshare", "--mount", "sh", "-c", OTHER_HOST, "sh", str(scratch))
    cold = cache_without(tmp_path / "cold", "detrand")
    lab("verify", cache.REPO, here, around, XDG_CACHE_HOME=cold)
