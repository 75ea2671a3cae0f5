# SPDX-License-Identifier: GPL-2.0
"""Go for the clients and connectors: Debian's packages, unpacked into the cache, nothing installed.

`python -m paqm_lab.golang` prints the directory of the command `go`; setup/go.sh calls it where the
machine has no Go that is new enough. The toolchain of a release runs on older ones: it is static.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from paqm_lab import apt, cache
from paqm_lab.errors import LabError

LEAST = (1, 24)
SUITES = ("trixie", "trixie-backports")
NAME = re.compile(r"golang-(\d+)\.(\d+)-go")


def newest(names: list[str]) -> tuple[int, int] | None:
    """The newest Go of these packages that is new enough."""
    found = [(int(m[1]), int(m[2])) for name in names if (m := NAME.fullmatch(name))]
    return max((version for version in found if version >= LEAST), default=None)


def fetch() -> Path:
    """The directory of `go`, made once."""
    home = cache.cache_dir() / "golang"
    with cache.locked("golang"):
        made = sorted(home.glob("usr/lib/go-*/bin/go"))
        if made:
            return made[0].parent
        site = apt.debian_sources("install Go yourself")[0][0]
        with tempfile.TemporaryDirectory(prefix=".golang-", dir=cache.cache_dir()) as name:
            archive, unpacked = apt.Archive(Path(name) / "apt"), Path(name) / "golang"
            for suite in SUITES:
                archive.read([(site, suite)])
                version = newest(archive.names("golang-"))
                if version:
                    break
            else:
                raise LabError(f"no Go {LEAST[0]}.{LEAST[1]} or newer in {', '.join(SUITES)}")
            of = f"golang-{version[0]}.{version[1]}"
            print(f"golang: {of} of {suite}", file=sys.stderr)
            archive.download([f"{of}-go", f"{of}-src"], Path(name))
            for package in Path(name).glob("golang-*.deb"):
                apt.run(["dpkg", "-x", str(package), str(unpacked)], f"unpacking {package.name}")
            unpacked.rename(home)
        return next(home.glob("usr/lib/go-*/bin/go")).parent


if __name__ == "__main__":
    try:
        print(fetch())
    except LabError as err:
        sys.exit(f"golang: {err}")
