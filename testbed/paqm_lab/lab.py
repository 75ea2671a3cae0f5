# SPDX-License-Identifier: GPL-2.0
"""What runs are made on: kernel, modules, the guest's image and this project's programs in it.

A guest knows the clone as /run/lab/repo, the programs as /run/lab/build, the cache as
/run/lab/cache and the directory of its results as /run/lab/out, wherever they are on the host.
"""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from paqm_lab import apt, cache, image, kernel, native, uml
from paqm_lab.beside import beside
from paqm_lab.errors import LabError

Progress = Callable[[str], None]

PYTHON = "/usr/bin/python3"  # the image's
RIVAL = cache.TESTBED / "rivals" / "webrtc"
BUILD = f"{uml.PLACES}/build"
# The streamer's plugins, listed when the programs were built (image/build.sh). What else somebody
# installed is in a list of its own: only a sender that needs it may hang on it.
REGISTRY = {
    "GST_REGISTRY": f"{BUILD}/lab/gstreamer-registry.bin",
    "GST_REGISTRY_UPDATE": "no",
    "GST_PLUGIN_PATH": f"{BUILD}/streamer",
}
WITH_OTHER_PLUGINS = [
    "env",
    f"GST_REGISTRY={BUILD}/lab/gstreamer-registry-other.bin",
    f"GST_PLUGIN_PATH={BUILD}/streamer:{uml.PLACES}/cache/gstreamer-plugins",
]
# What the programs are made of, below the repository.
SOURCES = ["browser", "core", "feedback-daemon", "libpaqmclient", "streamer", "userspace"]
SOURCES += ["kernel/fuzz", "kernel/uapi", "testbed/guest"]
SOURCES += [f"kernel/{name}_option_table.h" for name in ("paqm", "dcbt", "rlqos")]
SOURCES += ["kernel/paqm_option_units.h"]
SOURCES += [f"kernel/lab-tests/spec_traffic{end}" for end in (".h", ".c")]
SOURCES += [f"kernel/lab-tests/spec_traffic_{part}.c" for part in ("send", "sink", "sockets")]
SOURCES += ["testbed/image", "testbed/rivals/webrtc/vclock.c", "meson.build", "meson_options.txt"]
SUFFIXES = (".c", ".h", ".build", ".txt", ".sh", ".map", ".def", ".js", ".json", ".html", ".in")
CONFIG = "config.json"  # what a guest is told, in the directory of its results
KEPT = 6  # directories of programs, one for each clone


def is_result(directory: Path) -> bool:
    """Whether a run was made here, or begun: others have a config.json, too."""
    try:
        text = (directory / CONFIG).read_text()
        told = json.loads(text or "{}")
    except (OSError, ValueError):
        return False
    return not text or isinstance(told, dict) and {"out", "modules"} <= told.keys()


def make_out(out: Path) -> None:
    """The directory of what a command makes."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as err:
        raise LabError(f"cannot create {out}: {err.strerror}; choose another with --out") from err


@contextmanager
def alone_in(out: Path) -> Iterator[None]:
    """Refuses a directory in which another command runs: each would delete the other's logs."""
    make_out(out)
    cache.need_execution(out)
    place = os.open(out, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):  # some network file systems lock no directories
            try:
                fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as err:
                raise LabError(
                    f"{out}: another paqm-lab is at work there; wait for its end, or choose "
                    "another directory with --out"
                ) from err
        yield
    finally:
        os.close(place)


def forget_result(out: Path) -> None:
    """What an earlier run found is not to be taken for what this one finds, if it fails."""
    for name in ("result.json", "report.html"):
        (out / name).unlink(missing_ok=True)


def guest_error(directory: Path) -> str | None:
    """What a guest found wrong with its run; None also if it could not say, as on a full disk."""
    try:
        told: dict[str, Any] = json.loads((directory / "guest.json").read_text())
    except (OSError, ValueError):
        return None
    error: str | None = told["error"]
    return error


def make_way(directory: Path) -> None:
    """An empty directory for a run; never deletes what is not a result."""
    if directory.exists() and any(directory.iterdir()):
        if not is_result(directory):
            raise LabError(f"{directory} is not empty and holds no result of paqm-lab; use --out")
        for path in directory.iterdir():  # not the directory, which may be held: alone_in()
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
    directory.mkdir(parents=True, exist_ok=True)
    (directory / CONFIG).touch()  # a run that ends early can be repeated


def _revision() -> str:
    """The commit of the clone; unknown in an archive of the sources, which needs no git."""
    git = ["git", "-C", str(cache.REPO), "describe", "--always", "--dirty", "--abbrev=12"]
    # an archive's version is not that of a repository which it lies in
    above = {**os.environ, "GIT_CEILING_DIRECTORIES": str(cache.REPO.parent)}
    with suppress(FileNotFoundError):
        done = subprocess.run(git, capture_output=True, text=True, env=above)
        return done.stdout.strip() or "unknown"
    return "unknown"


@dataclass(frozen=True)
class Lab:
    """Everything that a run needs and that does not change from run to run."""

    kernel: kernel.Kernel
    modules: Path | None
    image: image.Image
    programs: Path

    def places(self, out: Path) -> dict[str, Path]:
        """The directories of the host that guests see, by the names that they know."""
        return {
            "repo": cache.REPO, "cache": cache.cache_dir(), "build": self.programs, "out": out,
        }

    def known(self, path: Path | str, out: Path) -> str:
        """A path, or a text with paths, as a guest knows it."""
        return uml.inside(self.places(out), str(path))

    def tell(self, config: dict[str, Any], out: Path) -> None:
        """Writes config.json for the guest, with the paths that it knows."""

        def told(value: Any) -> Any:
            if isinstance(value, dict):
                return {key: told(item) for key, item in value.items()}
            if isinstance(value, list | tuple):
                return [told(item) for item in value]
            return self.known(value, out) if isinstance(value, str | Path) else value

        (out / CONFIG).write_text(json.dumps(told(config), indent=1) + "\n")

    def versions(self) -> dict[str, str]:
        """Versions of all that shapes a result."""
        rival = json.loads((RIVAL / "package-lock.json").read_text())["packages"]
        own = self.image.versions
        browsers = {
            "chromium": own.get("chromium-headless-shell") or own.get("chromium"),
            "firefox": own.get("firefox-esr"),
        }
        return {name: version for name, version in browsers.items() if version} | {
            "paqm": _revision(),
            "kernel": self.kernel.version,
            "kernel_config": self.kernel.key,
            "kernel_not_of_lock": self.kernel.not_of_lock,
            "image": self.image.key,
            "image_not_of_lock": " ".join(self.image.changed) or "none",
            "iproute2": own["iproute2"],
            "python": own["python3.11"],
            "gstreamer": own["libgstreamer1.0-0"],
            "x264": own["libx264-164"],
            "libwebrtc": f"@roamhq/wrtc {rival['node_modules/@roamhq/wrtc']['version']}",
            "node": own["nodejs"],
        }

    def environment(self, places: dict[str, Path]) -> dict[str, str]:
        """What programs in a guest that knows these places find in their environment."""
        values = uml.environment(self.kernel, self.modules) | REGISTRY
        values |= {"PAQM_BUILD": BUILD, "TC_LIB_DIR": f"{BUILD}/userspace/tc-paqm"}
        return {name: uml.inside(places, value) for name, value in values.items()}

    def job(
        self, module: str, out: Path, directory: Path, *, seed: int, timeout: float,
        memory: str = "1G",
    ) -> uml.Job:
        """`python -m paqm_lab.MODULE config.json` in a guest; config.json lies in `out`."""
        places = self.places(out)
        return uml.Job(
            directory=directory,
            command=[PYTHON, "-m", f"paqm_lab.{module}", f"{uml.PLACES}/out/config.json"],
            root=self.image.root,
            places=places,
            environment=self.environment(places),
            cwd=Path(self.known(cache.TESTBED, out)),
            seed=seed,
            memory=memory,
            timeout=timeout,
        )

    def command(
        self, words: list[str], directory: Path, more: list[Path], **options: Any
    ) -> uml.Job:
        """A command in a guest that may write to the clone and to the directories `more`.

        Paths in it are the host's. The programs are in the clone's build/, whatever is there here.
        """
        added = {f"dir{number}": path for number, path in enumerate(more)}
        places = {"repo": cache.REPO, "cache": cache.cache_dir(), "build": self.programs} | added
        (cache.REPO / "build").mkdir(exist_ok=True)
        start = 'mount -t tmpfs tmpfs /tmp && mount --bind "$PAQM_BUILD" "$PAQM_REPO/build" && '
        start += 'exec "$@"'
        here = uml.inside(places, str(Path.cwd()))
        return uml.Job(
            directory=directory,
            command=["sh", "-c", start, "sh", *self._told(words, places)],
            root=self.image.root,
            places=places,
            writable=("repo", "build", *added),
            environment=self.environment(places) | {"PAQM_JOB_DIR": "/mnt"},
            cwd=Path(here if here.startswith(uml.PLACES) else f"{uml.PLACES}/repo"),
            **options,
        )

    def _told(self, words: list[str], places: dict[str, Path]) -> list[str]:
        """A command with the paths that a guest knows."""
        first = Path(words[0])
        if words[0] == sys.executable:  # has the same packages
            words = [PYTHON, *words[1:]]
        elif "/" in words[0] or first.exists():
            path = first.absolute()
            known = uml.inside(places, str(path))
            if known != str(path) and not os.access(path, os.X_OK):
                raise LabError(f"{first} is not an executable file; chmod +x it or name its shell")
            if known == str(path) and not (self.image.root / known[1:]).exists():
                raise LabError(f"no guest sees {path}: name its directory with --dir")
            words = [known, *words[1:]]
        return [uml.inside(places, word) for word in words]


def sources() -> list[Path]:
    """Files that the programs are made of, those of tests among them."""
    found = []
    for name in SOURCES:
        path = cache.REPO / name
        below = path.rglob("*") if path.is_dir() else [path]
        found += [file for file in below if file.is_file() and file.suffix in SUFFIXES]
    return sorted(found)


def _key(chosen: image.Image) -> str:
    """Names the programs by image, sources and plugins of other hands."""
    parts = [chosen.key.encode()]
    for path in sources():
        parts += [str(path.relative_to(cache.REPO)).encode(), path.read_bytes()]
    for path in sorted(cache.plugins().glob("*.so")):
        parts += [path.name.encode(), path.read_bytes()]
    return cache.digest(*parts)


def _is_of(stamp: Path, key: str) -> bool:
    return stamp.exists() and stamp.read_text() == key


def _copied(home: Path, key: str) -> bool:
    """Takes the programs that another clone built of the same sources, if there are any."""
    for stamp in home.parent.glob("*/built"):
        if stamp.parent != home and _is_of(stamp, key):
            shutil.rmtree(home)
            apt.run(["cp", "-a", str(stamp.parent), str(home)], "copying the programs")
            if _is_of(stamp, key):  # it was not built anew meanwhile
                return True
            (home / "built").unlink(missing_ok=True)
    return False


def _programs(
    chosen: image.Image, built: kernel.Kernel, progress: Progress, base: image.Image | None = None
) -> Path:
    """The directory of programs of this clone, brought up to date in a guest on the image.

    On the tests' image, made from `base`, it has what tests run besides.
    """
    clone = hashlib.sha256(str(cache.REPO).encode()).hexdigest()[:12]
    home = cache.cache_dir() / ("programs-tests" if base else "programs") / f"{chosen.key}-{clone}"
    with cache.locked(f"{home.parent.name}-{clone}"):
        home.mkdir(parents=True, exist_ok=True)
        stamp, key = home / "built", _key(chosen)
        if _is_of(stamp, key) or _copied(home, key):
            os.utime(home)
            return home
        if base and not (home / "build.ninja").exists():  # most of the work is done then
            made = _programs(base, built, progress)
            apt.run(["cp", "-a", f"{made}/.", str(home)], "copying the programs")
        stamp.unlink(missing_ok=True)
        progress("programs: building them on the image")
        started = time.monotonic()
        last = started

        def waiting() -> None:
            nonlocal last
            if time.monotonic() - last > 5:
                last = time.monotonic()
                progress(f"programs: {last - started:.0f} s")

        places = {"repo": cache.REPO, "build": home, "cache": cache.cache_dir()}
        environment = {"LC_ALL": "C.UTF-8", "TMPDIR": "/run/tmp", "HOME": "/run/tmp"}
        command = [f"{uml.PLACES}/repo/testbed/image/build.sh"]
        more = ["tests"] if base else []
        log = home / "compile.log"
        compiled = native.run(
            chosen.root, {name: places[name] for name in ("repo", "build")}, ("build",),
            environment, [*command, "compile", *more], log, waiting,
        )
        if not compiled:  # the guest tells why, if not only this host's limits are the cause
            progress("programs: compiling them in a guest, which takes longer")
        job = uml.Job(
            directory=home / "job",
            command=[*command, "list" if compiled else "all", *more],
            root=chosen.root,
            places=places,
            writable=("build",),
            environment=environment,
            cwd=Path("/"),
            real_time=True,  # the sources are newer than the moment at which runs begin
            timeout=3600,
        )

        result = uml.run(built, job, lambda _text: waiting())
        said = result.output.read_text(errors="replace")
        if not result.good:
            log = home / "build.log"
            log.write_text(said)
            wrong = [line for line in said.splitlines() if "error" in line.lower()][:2]
            why = " / ".join(wrong) or result.explain()
            raise LabError(f"the programs cannot be built ({log}): {why}")
        stamp.write_text(key)
        progress(f"programs: done, {time.monotonic() - started:.0f} s")
        others = [path for path in home.parent.iterdir() if path != home]
        for path in sorted(others, key=lambda path: path.stat().st_mtime)[: -KEPT + 1]:
            shutil.rmtree(path, ignore_errors=True)
        return home


def ready(progress: Progress, *, modules: bool = True, lock_text: str | None = None) -> Lab:
    """Builds what is missing; `lock_text`: another image's lock than the repository's."""
    with beside(lambda tell: image.fetch(tell, lock_text), progress) as tell:
        built = kernel.ensure("lab", tell)
    with beside(lambda tell: image.ensure(built, tell, lock_text), progress) as tell:
        ko_files = kernel.build_modules(built, tell) if modules else None
    chosen = image.ensure(built, progress, lock_text)
    return Lab(built, ko_files, chosen, _programs(chosen, built, progress))


def with_extra(house: Lab, which: str, progress: Progress) -> Lab:
    """The same lab with an image of image.EXTRAS: the programs are those of the image below."""
    chosen = image.with_extra(which, house.image, house.kernel, progress)
    return replace(house, image=chosen)


def for_tests(
    progress: Progress, variant: str = "lab", release: str | None = None, *, modules: bool = True
) -> Lab:
    """What a command in a guest runs on: image and programs of the tests, and any kernel."""
    built = kernel.ensure("lab", progress)
    base = image.ensure(built, progress)
    chosen = image.with_extra("tests", base, built, progress)
    programs = _programs(chosen, built, progress, base)
    if variant != "lab" or release:
        built = kernel.ensure(variant, progress, release)
    return Lab(built, kernel.build_modules(built, progress) if modules else None, chosen, programs)
