# SPDX-License-Identifier: GPL-2.0
"""The guest's own root: Debian packages of pinned versions, unpacked into the cache without root.

image/packages.txt names what guests need, image/packages.lock the version, size and SHA-256 of
that and of all it depends on. Packages are unpacked, not installed: their scripts do not run, and
what guests need of them (users, alternatives, caches) is done here. A guest sees nothing of the
host but the directories of its job, so it does not matter what is installed there.

Tests run on a copy of that image with more in it (image/tests.txt, image/tests.lock, and packages
of setup/requirements.lock for Python), streams of a browser on one with it
(rivals/chromium/packages.lock and others), Janus on one with that (connectors/tests/janus): what
they want changes no other result.
"""

import contextlib
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paqm_lab import apt, cache, uml
from paqm_lab.errors import LabError
from paqm_lab.kernel import Kernel

Progress = Callable[[str], None]

HOME = cache.TESTBED / "image"
ROOTS, LOCK = HOME / "packages.txt", HOME / "packages.lock"
# What there is on top of that image: what it wants, and its lock.
CHROMIUM = cache.TESTBED / "rivals" / "chromium"
FIREFOX = cache.TESTBED / "rivals" / "firefox"
BROWSER = cache.TESTBED / "browser"
JANUS = cache.REPO / "connectors" / "tests" / "janus"
EXTRAS = {
    "tests": (HOME / "tests.txt", HOME / "tests.lock"),
    "janus": (JANUS / "packages.txt", JANUS / "packages.lock"),
    "chromium": (CHROMIUM / "packages.txt", CHROMIUM / "packages.lock"),
    "browser": (BROWSER / "packages.txt", BROWSER / "packages.lock"),
    "firefox": (FIREFOX / "packages.txt", FIREFOX / "packages.lock"),
}
FORM = 2  # of what is done besides unpacking: another number is another image
SPACE = 2000  # MB while it is made
# Of no use to a guest.
LEFT_OUT = ["./usr/share/doc", "./usr/share/man", "./usr/share/locale", "./usr/share/info"]
MERGED = ["bin", "sbin", "lib", "lib64"]  # links to those of /usr, as on every Debian since 12
MOUNTS = ["dev", "proc", "sys", "run", "tmp", "mnt", "root"]
# What update-alternatives would do.
LINKS = {"usr/bin/awk": "mawk", "usr/bin/cc": "gcc"}
LIBRARIES = ["/usr/lib/x86_64-linux-gnu/blas", "/usr/lib/x86_64-linux-gnu/lapack"]
COPIES = {
    "usr/share/base-passwd/passwd.master": "etc/passwd",
    "usr/share/base-passwd/group.master": "etc/group",
    "usr/share/libc-bin/nsswitch.conf": "etc/nsswitch.conf",
}
SCHEMAS = [
    "/usr/lib/x86_64-linux-gnu/glib-2.0/glib-compile-schemas", "/usr/share/glib-2.0/schemas",
]
# A line of the lock; names and versions as Debian Policy has them (5.6.1, 5.6.12).
PIN = re.compile(r"([a-z0-9][a-z0-9+.-]+) ([0-9][A-Za-z0-9.+:~-]*) (\d{1,12}) ([0-9a-f]{64})")
PYTHON = ["/usr/lib/python3.11", "/usr/lib/python3"]
# For tests:
TESTS_FORM = 2  # as FORM
USERS = "tcpdump:x:4712:65534::/:/usr/sbin/nologin\n"
SITE = "/usr/local/lib/python3.11/dist-packages"
REQUIREMENTS = cache.REPO / "setup" / "requirements.lock"
ON_HOST = {"clang-format", "mypy", "ruff"}  # no test in a guest runs these
PIP = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile"]
PIP += ["--require-hashes", "--only-binary=:all:", "--python-version=3.11"]
PIP += ["--platform=manylinux_2_28_x86_64", "--platform=manylinux2014_x86_64"]


@dataclass(frozen=True, order=True)
class Pin:
    """One package of the lock."""

    name: str
    version: str
    size: int
    sha256: str

    @property
    def asked(self) -> str:
        return f"{self.name}={self.version}"


@dataclass(frozen=True)
class Image:
    """An image: `key` names its content, `changed` the packages that are not those of the lock."""

    root: Path
    key: str
    changed: list[str]
    versions: dict[str, str]


def roots(text: str) -> list[str]:
    """Package names of packages.txt."""
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return [line for line in lines if line]


def parse_lock(text: str, name: str = LOCK.name) -> list[Pin]:
    """The pins of a lock: lines NAME VERSION SIZE SHA256."""
    pins = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line or line.startswith("#"):
            continue
        match = PIN.fullmatch(line)
        if not match:
            raise LabError(f"{name}:{number}: want NAME VERSION SIZE SHA256, have `{line}`")
        pins.append(Pin(match[1], match[2], int(match[3]), match[4]))
    if not pins:
        raise LabError(f"{name} names no package; make it with `paqm-lab image --lock`")
    return sorted(pins)


def write_lock(pins: list[Pin]) -> str:
    """The text of a lock."""
    lines = [f"{pin.name} {pin.version} {pin.size} {pin.sha256}" for pin in sorted(pins)]
    head = f"# Packages of Debian {apt.RELEASE}, amd64: NAME VERSION SIZE SHA256.\n"
    return head + "# Made by `paqm-lab image --lock` from packages.txt.\n" + "\n".join(lines) + "\n"


def _file_of(directory: Path, name: str, version: str) -> Path:
    """A downloaded package; apt writes the colon of an epoch as %3a."""
    found = list(directory.glob(f"{name}_{version.replace(':', '%3a')}_*.deb"))
    if not found:
        raise LabError(f"apt did not fetch {name} {version} into {directory}")
    return found[0]


def _archive(scratch: Path) -> apt.Archive:
    cache.need_programs(["apt-get", "dpkg-deb", "tar"], "the guest's image")
    own = apt.debian_sources("use a machine that has apt's sources for Debian")
    archive = apt.Archive(scratch / "apt")
    sources = apt.sources_of(apt.RELEASE, own)
    archive.read(sources, apt.beside(sources))
    return archive


def needed(archive: apt.Archive, wanted: list[str], below: dict[str, str]) -> list[apt.Package]:
    """The newest of these packages, and all that they need beside others (`below`, name: version).

    A fix for one of those may come in between, and what is built of the same source then wants that
    version: then it is among what is returned.
    """
    try:
        found = archive.needed_by([f"{name}={version}" for name, version in below.items()] + wanted)
    except LabError:
        found = archive.needed_by([*below, *wanted])
    return [package for package in found if below.get(package.name) != package.version]


def _newest(
    archive: apt.Archive, scratch: Path, progress: Progress, named: Path, below: dict[str, str]
) -> list[Pin]:
    """What the archive has today for the packages of a file, downloaded; on an image of other
    packages (`below`, name: version) what these have not."""
    wanted = needed(archive, roots(named.read_text()), below)
    asked = [f"{package.name}={package.version}" for package in wanted]
    _download(archive, asked, sum(package.size for package in wanted), scratch, progress)
    pins = []
    for package in wanted:
        file = _file_of(scratch, package.name, package.version)
        pins.append(Pin(package.name, package.version, package.size, cache.file_sha256(file)))
    return pins


def _download(
    archive: apt.Archive, asked: list[str], size: int, scratch: Path, progress: Progress
) -> None:
    progress(f"image: downloading {len(asked)} packages, {size // 1_000_000} MB")
    archive.download(asked, scratch)


def _pinned(
    pins: list[Pin], scratch: Path, progress: Progress, named: Path, below: dict[str, str]
) -> list[Pin]:
    """The lock's packages, downloaded; where one is no longer to be had, the newest of all."""
    archive = _archive(scratch)
    gone = archive.missing({pin.name: pin.version for pin in pins})
    if gone:
        progress(f"image: no longer to be had: {', '.join(gone)}; taking today's packages")
        return _newest(archive, scratch, progress, named, below)
    size = sum(pin.size for pin in pins)
    _download(archive, [pin.asked for pin in pins], size, scratch, progress)
    for pin in pins:
        file = _file_of(scratch, pin.name, pin.version)
        if cache.file_sha256(file) != pin.sha256:
            raise LabError(f"{pin.asked} is not the package of the lock: its SHA-256 differs")
    return pins


def lock(which: str, progress: Progress) -> None:
    """Writes a lock of EXTRAS for the newest packages of the release, or `all` locks.

    Those of EXTRAS are for an image of the first one's versions.
    """
    scratch = cache.cache_dir() / "image.lock.part"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    try:
        archive = _archive(scratch)
        if which == "all":
            _write(LOCK, _newest(archive, scratch, progress, ROOTS, {}), progress)
        below = {pin.name: pin.version for pin in parse_lock(LOCK.read_text())}
        for named, target in EXTRAS.values() if which == "all" else [EXTRAS[which]]:
            pins = _newest(archive, scratch, progress, named, below)
            newer = ", ".join(pin.asked for pin in pins if pin.name in below)
            if newer:
                raise LabError(
                    f"what {named.name} names needs {newer}, newer than {LOCK.name} has; rewrite "
                    "all locks with `paqm-lab image --lock`"
                )
            _write(target, pins, progress)
    finally:
        shutil.rmtree(scratch)


def _write(file: Path, pins: list[Pin], progress: Progress) -> None:
    file.write_text(write_lock(pins))
    progress(f"image: {len(pins)} packages in {file}")


def unpack(files: list[Path], root: Path, what: str, progress: Progress) -> None:
    """Puts the files of packages into a file tree, `what`, and removes the packages."""
    leave = " ".join(f"--exclude={path}" for path in LEFT_OUT)
    command = f'dpkg-deb --fsys-tarfile "$1" | tar -x {leave} --keep-directory-symlink '
    command += '--no-same-owner -C "$2"'
    last = time.monotonic()
    for number, file in enumerate(files):
        words = ["bash", "-o", "pipefail", "-c", command, "bash", str(file), str(root)]
        apt.run(words, f"unpacking {file.name}")
        file.unlink()
        if time.monotonic() - last > 5:
            last = time.monotonic()
            progress(f"{what}: {number} of {len(files)} packages unpacked")


def _start(root: Path, base: Image | None) -> None:
    """An empty root, or one of links to the files of another image: nothing may write to them."""
    if base:
        apt.run(["cp", "-al", str(base.root), str(root)], "copying the image")
    else:
        start_empty(root)


def start_empty(root: Path) -> None:
    """A root that packages can be unpacked into."""
    for name in MERGED:
        (root / "usr" / name).mkdir(parents=True)
        (root / name).symlink_to(f"usr/{name}")


def _set_up(root: Path) -> None:
    """What the packages' scripts would have done, as far as guests need it."""
    for name in MOUNTS:
        (root / name).mkdir(exist_ok=True)
    for name, target in LINKS.items():
        (root / name).unlink(missing_ok=True)
        (root / name).symlink_to(target)
    for source, target in COPIES.items():
        shutil.copy(root / source, root / target)
    (root / "etc" / "hosts").write_text("127.0.0.1 localhost\n")
    (root / "etc" / "ld.so.conf.d" / "alternatives.conf").write_text("\n".join(LIBRARIES) + "\n")
    shutil.copy(HOME / "init", root / "init")
    (root / "init").chmod(0o755)


def _requirements() -> str:
    """The part of requirements.lock that guests need."""
    parts = re.split(r"^(?=\w[\w.-]*==)", REQUIREMENTS.read_text(), flags=re.M)
    return "".join(part for part in parts[1:] if part.partition("==")[0] not in ON_HOST)


def _set_up_tests(root: Path, scratch: Path) -> None:
    """What the tests' image has besides Debian's packages."""
    users = root / "etc" / "passwd"
    text = users.read_text()
    users.unlink()
    users.write_text(text + USERS)
    (root / "var" / "run").rmdir()
    (root / "var" / "run").symlink_to("/run")
    (scratch / "requirements").write_text(_requirements())
    words = [f"--target={root}{SITE}", "-r", str(scratch / "requirements")]
    apt.run([*PIP, *words], "fetching Python packages")


def _caches(root: Path, kernel: Kernel, scratch: Path) -> None:
    """Caches of loader, GLib and Python, made by the image's own programs."""
    commands = ["ldconfig", f"{SCHEMAS[0]} {SCHEMAS[1]}"]
    python = [path for path in [*PYTHON, SITE] if (root / path[1:]).exists()]
    commands.append("python3 -m compileall -q -j 1 " + " ".join(python))
    command = " && ".join(commands)
    job = uml.Job(
        directory=scratch / "job", command=["sh", "-c", command], root=root, change=True,
        cwd=Path("/"),
    )
    result = uml.run(kernel, job)
    if not result.good:
        said = result.output.read_text(errors="replace").strip().splitlines()
        raise LabError(f"the image is not fit for use: {result.explain()}: {said[-1:]}")


def key_of(pins: list[Pin]) -> str:
    """Names an image by its content."""
    return cache.digest(write_lock(pins).encode(), str(FORM).encode(), (HOME / "init").read_bytes())


def _made(key: str) -> tuple[Path, Any] | None:
    """Where an image has been made here, whatever the lock, and what its stamp tells."""
    for stamp in (cache.cache_dir() / "image").glob("*/built.json"):
        with contextlib.suppress(FileNotFoundError):  # another run may remove an old one
            told = json.loads(stamp.read_text())
            if told["key"] == key:
                return stamp.parent, told
    return None


def lock_of(key: str) -> str | None:
    """The lock of an image: the repository's, or that of the packages it was made of instead.

    None if the image has not been made here.
    """
    text = LOCK.read_text()
    if key_of(parse_lock(text)) == key:
        return text
    made = _made(key)
    return made[1].get("lock") if made else None


def _home(lock_text: str | None) -> tuple[Path, list[Pin]]:
    """Where the image of a lock is, the repository's without one, and the pins of that lock."""
    pins = parse_lock(LOCK.read_text() if lock_text is None else lock_text)
    key = key_of(pins)
    home = cache.cache_dir() / "image" / key
    if not (home / "built.json").exists() and (made := _made(key)):
        home = made[0]  # of today's packages, in place of the repository's
    return home, pins


def fetch(progress: Progress, lock_text: str | None = None) -> None:
    """What needs no kernel of the same image, unless it has been made: packages, unpacked."""
    cache.need_machine()
    home, pins = _home(lock_text)
    with cache.locked(home.parent.name):
        if not (home / "built.json").exists():
            _unpacked(home, pins, ROOTS, None, progress)


def ensure(kernel: Kernel, progress: Progress, lock_text: str | None = None) -> Image:
    """The image of the repository's lock, or of another; made on the first call.

    Where the archive no longer has a pinned version the image is one of today's packages:
    `changed` says which are not those of the lock.
    """
    home, pins = _home(lock_text)
    return _ensure(home, pins, ROOTS, None, kernel, progress)


def with_extra(which: str, base: Image, kernel: Kernel, progress: Progress) -> Image:
    """That image, and what EXTRAS has for the tests, or for a browser, besides."""
    named, extra = EXTRAS[which]
    pins = parse_lock(extra.read_text(), extra.name)
    parts = [key_of(pins).encode()]
    if which == "tests":
        parts += [bytes([TESTS_FORM]), _requirements().encode()]
    own = cache.digest(*parts)
    home = cache.cache_dir() / f"image-{which}" / f"{base.key}-{own}"
    return _ensure(home, pins, named, base, kernel, progress)


def _ensure(
    home: Path, pins: list[Pin], named: Path, base: Image | None, kernel: Kernel, progress: Progress
) -> Image:
    stamp = home / "built.json"
    with cache.locked(home.parent.name):
        told = json.loads(stamp.read_text()) if stamp.exists() else None
        # before images told their own locks, results of such a one could not be bundled
        if not told or (not base and told["changed"] and "lock" not in told):
            stamp.unlink(missing_ok=True)
            _make(home, pins, named, base, kernel, progress)
            told = json.loads(stamp.read_text())
        os.utime(home)
    return Image(home / "root", told["key"], told["changed"], told["versions"])


def _unpacked(
    home: Path, wanted: list[Pin], named: Path, base: Image | None, progress: Progress
) -> Path:
    """All but what the image's own programs make; the file that tells what is in it."""
    stamp = home / "unpacked.json"
    if stamp.exists():
        return stamp
    cache.need_space(cache.cache_dir(), SPACE, "the guest's image")
    shutil.rmtree(home, ignore_errors=True)
    scratch = home / "part"
    scratch.mkdir(parents=True)
    started = time.monotonic()
    pins = _pinned(wanted, scratch, progress, named, base.versions if base else {})
    _start(home / "root", base)
    files = [_file_of(scratch, pin.name, pin.version) for pin in pins]
    unpack(files, home / "root", "image", progress)
    if named == EXTRAS["tests"][0]:
        _set_up_tests(home / "root", scratch)
    if not base:
        _set_up(home / "root")
    before = {pin.name: pin for pin in wanted}
    after = {pin.name: pin for pin in pins}
    changed = [pin.asked for pin in pins if before.get(pin.name) != pin]
    changed += [f"{name}=none" for name in before.keys() - after.keys()]
    versions = {pin.name: pin.version for pin in pins}
    key = key_of(pins)
    if base:
        key, changed, versions = home.name, base.changed + changed, base.versions | versions
    told = {"key": key, "changed": sorted(changed), "versions": versions}
    if not base:
        told["lock"] = write_lock(pins)
    (scratch / "told").write_text(json.dumps(told) + "\n")
    (scratch / "told").rename(stamp)
    shutil.rmtree(scratch)
    progress(f"image: {len(pins)} packages, {time.monotonic() - started:.0f} s")
    return stamp


def _make(
    home: Path, wanted: list[Pin], named: Path, base: Image | None, kernel: Kernel,
    progress: Progress,
) -> None:
    stamp = _unpacked(home, wanted, named, base, progress)
    started = time.monotonic()
    _caches(home / "root", kernel, home / "part")
    shutil.rmtree(home / "part")
    stamp.touch()  # nothing in an image is newer than its stamp
    stamp.rename(home / "built.json")
    progress(f"image: caches made in a guest, {time.monotonic() - started:.0f} s")
    others = [path for path in home.parent.iterdir() if path != home]
    for old in sorted(others, key=lambda path: path.stat().st_mtime)[:-1]:  # 1 GB each
        shutil.rmtree(old, ignore_errors=True)
