# SPDX-License-Identifier: GPL-2.0
"""Maintainer scripts of the packages; with the packages themselves: make test-packages."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

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


@pytest.mark.skipif(os.geteuid() != 0, reason="another /etc is mounted: needs root")
def test_purge_leaves_no_key_to_the_next_user(tmp_path: Path) -> None:
    """The number of the user is free then: whoever gets it would own the host's key."""
    command = ["unshare", "--mount", "sh", "-c", PURGE, "sh", str(tmp_path)]
    done = subprocess.run(command, cwd=cache.REPO, capture_output=True, text=True)
    if done.returncode == 77:
        pytest.skip("no mounts here")
    assert (done.returncode, done.stdout) == (0, "eth0.conf\n"), done.stderr


def test_packages_need_a_commit(tmp_path: Path) -> None:
    """Of an archive, or another user's clone, git says why there is none, once."""
    for name in ("packaging/build-deb.sh", "testbed/qemu/lib.sh", "packaging/debian/control"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(cache.REPO / name, tmp_path / name)
    (tmp_path / "bin").mkdir()
    for name in ("dpkg-buildpackage", "dpkg-checkbuilddeps", "lintian"):  # none is installed
        (tmp_path / "bin" / name).symlink_to("/bin/true")
    env = os.environ | {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    done = subprocess.run(
        [tmp_path / "packaging" / "build-deb.sh"], capture_output=True, text=True, env=env
    )
    assert done.returncode == 2
    assert done.stderr.startswith("build-deb: the packages are of the last commit, and git says: ")
    assert "not a git repository" in done.stderr and len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "out").exists()
