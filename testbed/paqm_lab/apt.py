# SPDX-License-Identifier: GPL-2.0
"""Debian packages of any suite, by apt with sources and a state of its own: nothing is installed.

The address comes from this machine's apt configuration, or from PAQM_DEBIAN_MIRROR where that has
no Debian source. Package lists are checked by Debian's signature, packages by the lists.
"""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from paqm_lab.commands import MORTAL
from paqm_lab.errors import LabError

# The release that the lab takes its packages from, on whatever machine.
RELEASE = "bookworm"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


def run(command: list[str], what: str, cwd: Path | None = None) -> str:
    """A program's output; LabError with its last words if it fails.

    It does not outlive the thread that waits for it.
    """
    done = subprocess.run([*MORTAL, *command], capture_output=True, text=True, cwd=cwd)
    if done.returncode:
        tail = (done.stderr or done.stdout).strip().splitlines()[-3:]
        raise LabError(f"{what} failed ({' '.join(command[:2])}): {' / '.join(tail)}")
    return done.stdout


def codename() -> str | None:
    """Name of this machine's release ("bookworm"), if it has one."""
    release = Path("/etc/os-release")
    text = release.read_text() if release.exists() else ""
    name = re.search(r"^VERSION_CODENAME=(\S+)", text, re.M)
    return name[1] if name else None


def own_sources(targets: str, suite: str) -> list[tuple[str, str]]:
    """Site and suite of a release and its updates, from lines `site|code name|origin` of apt's own
    sources: these may say "oldstable", and be others' beside Debian's.
    """
    lines = [line.rpartition("|") for line in targets.splitlines()]
    found = [line.partition("|")[::2] for line, _, origin in lines if origin == "Debian"]
    wanted = [suite, f"{suite}-updates", f"{suite}-security"]
    return [pair for name in wanted for pair in dict.fromkeys(found) if pair[1] == name]


def debian_sources(hint: str) -> list[tuple[str, str]]:
    """Site and suite of this machine's release and its updates, the main archive first.

    LabError, ending in `hint`, where neither apt nor PAQM_DEBIAN_MIRROR knows an address.
    """
    if not shutil.which("apt-get"):
        raise LabError(f"this machine has no apt-get, so no package can be fetched; {hint}")
    name = codename()
    of_each = "$(SITE)|$(CODENAME)|$(ORIGIN)"
    targets = run(["apt-get", "indextargets", "--format", of_each], "reading sources")
    sources = own_sources(targets, name) if name else []
    if sources and sources[0][1] == name:
        return sources
    mirror = os.environ.get("PAQM_DEBIAN_MIRROR")
    if mirror:
        return [(mirror.rstrip("/"), RELEASE)]
    raise LabError(
        f"apt has no source for {name or 'this system'}, so no address to fetch from; set "
        f"PAQM_DEBIAN_MIRROR to the address of a Debian mirror, or {hint}"
    )


def sources_of(suite: str, own: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """A release with its updates and security fixes, at the sites of this machine's release."""
    found = [(own[0][0], suite), (own[0][0], f"{suite}-updates")]
    security = [site for site, name in own if name.endswith("-security")]
    return found + [(security[0], f"{suite}-security")] if security else found


def beside(sources: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Where security fixes may be that no source names: Debian's mirrors that have them, have them
    beside the archive. A container's or another system's sources often lack them.
    """
    site, suite = sources[0]
    site = site.rstrip("/")
    if not site.endswith("/debian") or any(name == f"{suite}-security" for _, name in sources):
        return []
    return [(f"{site}-security", f"{suite}-security")]


@dataclass(frozen=True)
class Package:
    """One file of an archive."""

    name: str
    version: str
    size: int


class Archive:
    """Package lists of an architecture below `scratch`, which is the caller's to delete."""

    def __init__(self, scratch: Path, architecture: str = "amd64") -> None:
        if not Path(KEYRING).exists():
            raise LabError(f"{KEYRING} is missing; install debian-archive-keyring")
        self.scratch = scratch
        settings = ["Dir::Etc::sourceparts=/dev/null", f"Dir::Etc::sourcelist={scratch}/list"]
        settings += [f"Dir::State::lists={scratch}/lists", f"Dir::Cache={scratch}/cache"]
        settings += [f"Dir::State::status={scratch}/status", f"APT::Architecture={architecture}"]
        settings += [f"APT::Architectures={architecture}"]
        settings += ["Dir::Etc::preferences=/dev/null", "Dir::Etc::preferencesparts=/dev/null"]
        if os.geteuid() == 0:
            settings.append("APT::Sandbox::User=root")
        self.options = ["-q", *(f"-o{setting}" for setting in settings)]

    def read(
        self, sources: list[tuple[str, str]], perhaps: list[tuple[str, str]] | None = None
    ) -> None:
        """Fetches the lists of these sources (site, suite), and forgets others.

        @perhaps: sources which may not be there
        """
        if perhaps:
            try:
                self.read([*sources, *perhaps])
                return
            except LabError:
                pass  # without them, then
        shutil.rmtree(self.scratch, ignore_errors=True)
        (self.scratch / "lists" / "partial").mkdir(parents=True)
        (self.scratch / "cache" / "archives" / "partial").mkdir(parents=True)
        (self.scratch / "status").touch()  # nothing is installed
        (self.scratch / "list").write_text(
            "".join(f"deb [signed-by={KEYRING}] {' '.join(pair)} main\n" for pair in sources)
        )
        suites = ", ".join(suite for _, suite in sources)
        run(["apt-get", *self.options, "update"], f"reading the package lists of {suites}")

    def names(self, prefix: str) -> list[str]:
        """Packages whose names begin so."""
        words = ["apt-cache", *self.options, "pkgnames", prefix]
        return run(words, "listing packages").split()

    def needed_by(self, roots: list[str]) -> list[Package]:
        """The newest of these packages, and all that they depend on."""
        words = ["apt-get", *self.options, "install", "--no-install-recommends", "-y"]
        return _parse(run([*words, "--print-uris", *roots], "working out dependencies"))

    def missing(self, packages: dict[str, str]) -> list[str]:
        """Those of these packages (name: version) that are not to be had, as NAME=VERSION."""
        words = ["apt-cache", *self.options, "madison", *packages]
        lines = [line.split("|") for line in run(words, "looking for versions").splitlines()]
        had = {(fields[0].strip(), fields[1].strip()) for fields in lines if len(fields) == 3}
        return [f"{name}={v}" for name, v in packages.items() if (name, v) not in had]

    def download(self, names: list[str], directory: Path) -> None:
        """Fetches the files of these packages (NAME or NAME=VERSION)."""
        words = ["apt-get", *self.options, "download", *names]
        run(words, f"downloading {names[0] if len(names) == 1 else 'packages'}", cwd=directory)


def _parse(text: str) -> list[Package]:
    """Lines `'ADDRESS' NAME_VERSION_ARCHITECTURE.deb SIZE HASH` of apt, ordered by name."""
    found = re.findall(r"^'[^']+' ([^_\s]+)_([^_\s]+)_\w+\.deb (\d+)", text, re.M)
    return sorted(
        (Package(name, version.replace("%3a", ":"), int(size)) for name, version, size in found),
        key=lambda package: package.name,
    )


if __name__ == "__main__":  # for scripts: the site of Debian's archive
    try:
        print(debian_sources("use a machine that has apt's sources for Debian")[0][0])
    except LabError as err:
        sys.exit(f"apt: {err}")
