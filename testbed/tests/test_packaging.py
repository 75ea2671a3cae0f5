# SPDX-License-Identifier: GPL-2.0
"""Maintainer scripts of the packages; with the packages themselves: make test-packages."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from test_anywhere import may_mount

from paqm_lab import cache

# In a mount namespace of its own, with an /etc and a /run that nobody else sees.
PURGE = """
mount --make-rprivate / && mount -t tmpfs tmpfs "$1" && mkdir "$1/upper" "$1/work" &&
	mount -t overlay overlay -o "lowerdir=/etc,upperdir=$1/upper,workdir=$1/work" /etc &&
	mount -t tmpfs tmpfs /run || exit 77
set -e
getent passwd paqm >/dev/null || useradd --system --user-group paqm
mkdir -p /etc/paqm
echo '* 1 000102030405060708090a0b0c0d0e0f' >/etc/paqm/keys
chmod 600 /etc/paqm/keys
chown paqm /etc/paqm/keys
echo 'OPTIONS="bandwidth 20mbit"' >/etc/paqm/eth0.conf
sh packaging/debian/paqmd.postrm purge >&2
! getent passwd paqm
ls /etc/paqm
"""


@pytest.mark.skipif(not may_mount(), reason="another /etc is mounted: needs root")
def test_purge_leaves_no_key_to_the_next_user(tmp_path: Path) -> None:
    """The number of the user is free then: whoever gets it would own the host's key."""
    command = ["unshare", "--mount", "sh", "-c", PURGE, "sh", str(tmp_path)]
    done = subprocess.run(command, cwd=cache.REPO, capture_output=True, text=True)
    if done.returncode == 77:
        pytest.skip("no mounts here")
    assert (done.returncode, done.stdout) == (0, "eth0.conf\n"), done.stderr


REMOVE = """
mount --make-rprivate / && mount -t tmpfs tmpfs /run || exit 77
set -e
mkdir -p /run/systemd/system /run/paqmd
touch /run/paqmd/client.sock
PATH="$1:$PATH" sh packaging/debian/paqmd.postrm remove >&2
[ ! -e /run/paqmd ]
"""


@pytest.mark.skipif(not may_mount(), reason="another /run is mounted: needs root")
def test_no_socket_outlives_its_path(tmp_path: Path) -> None:
    """A service that fails, and is called while it is stopped, pulls its sockets in again: they
    would be taken for those of the next installation, and nobody could connect to them."""
    invoke = tmp_path / "deb-systemd-invoke"
    invoke.write_text(f'#!/bin/sh\necho "$*" $(ls /run/paqmd) >{tmp_path}/said\n')
    invoke.chmod(0o755)
    command = ["unshare", "--mount", "sh", "-c", REMOVE, "sh", str(tmp_path)]
    done = subprocess.run(command, cwd=cache.REPO, capture_output=True, text=True)
    if done.returncode == 77:
        pytest.skip("no mounts here")
    assert done.returncode == 0, done.stderr
    said = (tmp_path / "said").read_text()
    assert said == "stop paqmd-client.socket paqmd-control.socket client.sock\n"


@pytest.fixture
def builder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What build-deb.sh is made of, beside programs that install and build nothing."""
    (tmp_path / "bin").mkdir()
    for name in ("dpkg-buildpackage", "dpkg-checkbuilddeps", "lintian"):
        (tmp_path / "bin" / name).symlink_to("/bin/true")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    clone = tmp_path / "clone"
    for name in ("packaging/build-deb.sh", "testbed/qemu/lib.sh", "packaging/debian/control"):
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(cache.REPO / name, clone / name)
    return clone


@pytest.mark.skipif(os.geteuid() != 0, reason="directories are given away: needs root")
def test_packages_are_of_who_called_sudo(builder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """He builds the next ones without it."""
    monkeypatch.setenv("SUDO_UID", "4711")
    monkeypatch.setenv("SUDO_GID", "4712")
    commit(builder)
    build(builder)
    for made in (builder / "out", builder / "out" / "deb"):
        assert (made.stat().st_uid, made.stat().st_gid) == (4711, 4712)


@pytest.mark.skipif(not may_mount(), reason="a directory is mounted: needs root")
def test_packages_need_a_place_of_theirs(builder: Path) -> None:
    """Not after minutes of building."""
    commit(builder)
    out = builder / "out" / "deb"
    out.mkdir(parents=True)
    mounts = f'mount --make-rprivate / && mount -t tmpfs -o ro tmpfs "{out}"'
    status, said = build(builder, "unshare", "--mount", "sh", "-c", f'{mounts} && exec "$@"', "sh")
    assert (status, said) == (
        2, f"build-deb: {out} cannot be written, it is root's: name another directory\n"
    )  # fmt: skip


def build(clone: Path, *around: str) -> tuple[int, str]:
    command = [*around, str(clone / "packaging" / "build-deb.sh")]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stderr


def commit(clone: Path, **environment: str) -> None:
    git = ["git", "-C", str(clone), "-c", "user.name=t", "-c", "user.email=t@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"]):
        subprocess.run([*git, *words], check=True, env=os.environ | environment)


@pytest.mark.parametrize("within", [False, True], ids=["alone", "in another repository"])
def test_packages_need_a_commit(builder: Path, within: bool) -> None:
    """Of an archive, or another user's clone, git says why there is none, once."""
    if within:
        commit(builder.parent)
    status, said = build(builder)
    assert status == 2
    assert said.startswith("build-deb: the packages are of the last commit, and git says: ")
    assert "not a git repository" in said and len(said.splitlines()) == 1
    assert not (builder / "out").exists()


@pytest.fixture
def wanting(builder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The log of apt-get, where a build dependency is missing until its lists are renewed."""
    commit(builder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "bin" / "dpkg-checkbuilddeps").unlink()
    for name, text in (
        ("dpkg-checkbuilddeps", "echo 'error: Unmet build dependencies: dh' >&2\nexit 1"),
        ("apt-get", 'echo "$*"\ncase "$*" in *update) touch new ;; *) [ -e new ] ;; esac'),
    ):
        program = tmp_path / "bin" / name
        program.write_text(f"#!/bin/sh\ncd {tmp_path} || exit\n{text}\n")
        program.chmod(0o755)
    return tmp_path / "cache" / "paqm" / "build-dep.log"


@pytest.mark.skipif(os.geteuid() != 0, reason="installs packages: needs root")
def test_packages_are_built_without_a_cache(builder: Path, wanting: Path, tmp_path: Path) -> None:
    """Where nothing else of this project has run, the log of apt-get has no directory yet."""
    (tmp_path / "bin" / "apt-get").write_text('#!/bin/sh\necho "$*"\nexit 100\n')
    status, said = build(builder)
    assert (status, said) == (
        2, f"build-deb: installing dh\nbuild-deb: apt-get failed, see {wanting}\n"
    )  # fmt: skip
    assert "build-dep" in wanting.read_text()


@pytest.mark.skipif(os.geteuid() != 0, reason="installs packages: needs root")
def test_old_lists_of_packages_are_renewed(builder: Path, wanting: Path) -> None:
    """What they name is on no mirror any more after the next update of Debian."""
    build(builder)
    words = [line.split()[-2:] for line in wanting.read_text().splitlines()]
    dep = ["build-dep", str(builder / "packaging")]
    assert words == [dep, ["-y", "update"], dep]


FAKE = """#!/bin/sh
version=$(dpkg-parsechangelog -S Version) &&
	touch ../paqm_$version.dsc ../paqm_$version.changes ../paqm_$version.buildinfo &&
	dpkg-parsechangelog >../paqmd_${version}_amd64.deb
"""


def test_packages_of_each_commit_have_a_version(builder: Path, tmp_path: Path) -> None:
    """Those of a later one are newer: apt does not install what has the version that is there."""
    for name in ("meson.build", "packaging/debian/changelog"):
        shutil.copy(cache.REPO / name, builder / name)
    program = tmp_path / "bin" / "dpkg-buildpackage"
    program.unlink()
    program.write_text(FAKE)
    program.chmod(0o755)
    out = builder / "out" / "deb"
    changelog = (builder / "packaging" / "debian" / "changelog").read_text()
    found = re.findall(r"^paqm \((\S+)\)", changelog)
    for second in (58, 59):
        (builder / "changed").write_text(str(second))
        commit(builder, GIT_COMMITTER_DATE=f"2026-12-01T23:59:{second}-0500")
        status, said = build(builder)
        assert status == 0, said
        (package,) = out.glob("paqmd_*.deb")  # none of an earlier commit beside it
        found.append(package.name.split("_")[1])
        assert f"Version: {found[-1]}\n" in package.read_text()
    release, old, new = found
    assert new.startswith(f"{release}+git20261202045959g")
    for one, other in ((release, old), (old, new)):
        assert not subprocess.run(["dpkg", "--compare-versions", one, "lt", other]).returncode


def test_what_tests_need_is_a_build_dependency() -> None:
    """They run when packages are built, on machines that nothing else has prepared."""
    setup = (cache.REPO / "setup" / "packages.txt").read_text()
    control = (cache.REPO / "packaging" / "debian" / "control").read_text()
    wants = re.findall(r"^gstreamer1.0-(?:libav|plugins-\w+|tools)$", setup, re.MULTILINE)
    depends = re.findall(r"^ +(\S+) <!nocheck>,$", control, re.MULTILINE)
    assert wants and set(wants) <= set(depends)


@pytest.mark.skipif(not may_mount(), reason="a directory is mounted: needs root")
def test_packages_need_a_place_that_executes(
    builder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hardened hosts have /tmp mounted noexec: debian/rules is executed."""
    commit(builder)
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    mounts = 'mount --make-rprivate / && mount -t tmpfs -o noexec tmpfs "$TMPDIR"'
    status, said = build(builder, "unshare", "--mount", "sh", "-c", f'{mounts} && exec "$@"', "sh")
    assert (status, said) == (
        2, f"build-deb: nothing can be executed in {tmp_path}/tmp: name another place by TMPDIR\n"
    )  # fmt: skip


def test_modules_are_built_for_kernels_that_have_what_they_need() -> None:
    """By the directive that all versions of dkms know; Debian 12's 3.0.10 passes over others."""
    script = ". kernel/dkms.conf; for one; do "
    script += "if [[ $one =~ ${BUILD_EXCLUSIVE_KERNEL-.} ]]; then echo $one; fi; done"
    fit = ["6.1.0-37-amd64", "6.9.0", "6.12.41+deb13-amd64", "7.0.1", "7.3.4", "10.0.0"]
    old = ["2.6.32-5-amd64", "4.19.0-27-amd64", "5.10.0-30-amd64", "5.15.61", "6.0.0-6-amd64"]
    command = ["bash", "-c", script, "bash", *fit, *old]
    done = subprocess.run(command, cwd=cache.REPO, capture_output=True, text=True)
    assert done.stdout.splitlines() == fit, done.stderr
