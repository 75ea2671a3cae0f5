# SPDX-License-Identifier: GPL-2.0
"""Maintainer scripts of the packages; with the packages themselves: make test-packages."""

import os
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


def commit(clone: Path) -> None:
    git = ["git", "-C", str(clone), "-c", "user.name=t", "-c", "user.email=t@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"]):
        subprocess.run([*git, *words], check=True)


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


@pytest.mark.skipif(os.geteuid() != 0, reason="installs packages: needs root")
def test_packages_are_built_without_a_cache(
    builder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing else of this project has run, the log of apt-get has no directory yet."""
    commit(builder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    wanting = tmp_path / "bin" / "dpkg-checkbuilddeps"
    wanting.unlink()
    wanting.write_text("#!/bin/sh\necho 'error: Unmet build dependencies: dh' >&2\nexit 1\n")
    (tmp_path / "bin" / "apt-get").write_text('#!/bin/sh\necho "$*"\nexit 100\n')
    for name in ("dpkg-checkbuilddeps", "apt-get"):
        (tmp_path / "bin" / name).chmod(0o755)
    log = tmp_path / "cache" / "paqm" / "build-dep.log"
    status, said = build(builder)
    assert (status, said) == (
        2, f"build-deb: installing dh\nbuild-deb: apt-get failed, see {log}\n"
    )  # fmt: skip
    assert "build-dep" in log.read_text()


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
