# SPDX-License-Identifier: GPL-2.0
"""What runs are made on: kernel, modules, the guest's image and this project's programs in it.

A guest knows the clone as /run/lab/repo, the programs as /run/lab/build, the cache as
/run/lab/cache and the directory of its results as /run/lab/out, wherever they are on the host.
"""

import hashlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paqm_lab import cache, image, kernel, uml
from paqm_lab.errors import LabError

Progress = Callable[[str], None]

PYTHON = "/usr/bin/python3"  # the image's
RIVAL = cache.TESTBED / "rivals" / "webrtc"
BUILD = f"{uml.PLACES}/build"
# The streamer's plugins, listed when the programs were built (image/build.sh).
REGISTRY = {
    "GST_REGISTRY": f"{BUILD}/lab/gstreamer-registry.bin",
    "GST_REGISTRY_UPDATE": "no",
    "GST_PLUGIN_PATH": f"{BUILD}/streamer:{uml.PLACES}/cache/gstreamer-plugins",
}
# What the programs are made of, below the repository.
SOURCES = ["core", "feedback-daemon", "libpaqmclient", "streamer", "userspace"]
SOURCES += ["kernel/fuzz", "kernel/uapi", "testbed/guest"]
SOURCES += [f"kernel/lab-tests/spec_traffic{end}" for end in (".h", ".c")]
SOURCES += [f"kernel/lab-tests/spec_traffic_{part}.c" for part in ("send", "sink", "sockets")]
SOURCES += ["testbed/image", "testbed/rivals/webrtc/vclock.c", "meson.build", "meson_options.txt"]
SUFFIXES = (".c", ".h", ".build", ".txt", ".sh", ".map", ".def")
KEPT = 6  # directories of programs, one for each clone


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

        (out / "config.json").write_text(json.dumps(told(config), indent=1) + "\n")

    def versions(self) -> dict[str, str]:
        """Versions of all that shapes a result."""
        git = ["git", "-C", str(cache.REPO), "describe", "--always", "--dirty", "--abbrev=12"]
        done = subprocess.run(git, capture_output=True, text=True)
        rival = json.loads((RIVAL / "package-lock.json").read_text())["packages"]
        own = self.image.versions
        return {
            "paqm": done.stdout.strip() or "unknown",
            "kernel": self.kernel.version,
            "kernel_config": self.kernel.key,
            "image": self.image.key,
            "image_not_of_lock": " ".join(self.image.changed) or "none",
            "iproute2": own["iproute2"],
            "python": own["python3.11"],
            "gstreamer": own["libgstreamer1.0-0"],
            "x264": own["libx264-164"],
            "libwebrtc": f"@roamhq/wrtc {rival['node_modules/@roamhq/wrtc']['version']}",
            "node": own["nodejs"],
        }

    def job(
        self, module: str, out: Path, directory: Path, *, seed: int, timeout: float,
        memory: str = "1G",
    ) -> uml.Job:
        """`python -m paqm_lab.MODULE config.json` in a guest; config.json lies in `out`."""
        values = uml.environment(self.kernel, self.modules) | REGISTRY
        values |= {"PAQM_BUILD": BUILD, "TC_LIB_DIR": f"{BUILD}/userspace/tc-paqm"}
        return uml.Job(
            directory=directory,
            command=[PYTHON, "-m", f"paqm_lab.{module}", f"{uml.PLACES}/out/config.json"],
            root=self.image.root,
            places=self.places(out),
            environment={name: self.known(value, out) for name, value in values.items()},
            cwd=Path(self.known(cache.TESTBED, out)),
            seed=seed,
            memory=memory,
            timeout=timeout,
        )


def _sources() -> list[Path]:
    found = []
    for name in SOURCES:
        path = cache.REPO / name
        below = path.rglob("*") if path.is_dir() else [path]
        found += [file for file in below if file.is_file() and file.suffix in SUFFIXES]
    return sorted(found)


def _key(chosen: image.Image) -> str:
    """Names the programs by image, sources and plugins of other hands."""
    parts = [chosen.key.encode()]
    for path in [*_sources(), *sorted(cache.plugins().glob("*.so"))]:
        parts += [str(path).encode(), path.read_bytes()]
    return cache.digest(*parts)


def _programs(chosen: image.Image, built: kernel.Kernel, progress: Progress) -> Path:
    """The directory of programs of this clone, brought up to date in a guest on the image."""
    clone = hashlib.sha256(str(cache.REPO).encode()).hexdigest()[:12]
    home = cache.cache_dir() / "programs" / f"{chosen.key}-{clone}"
    with cache.locked(f"programs-{clone}"):
        home.mkdir(parents=True, exist_ok=True)
        stamp, key = home / "built", _key(chosen)
        if stamp.exists() and stamp.read_text() == key:
            os.utime(home)
            return home
        stamp.unlink(missing_ok=True)
        progress("programs: building them in a guest")
        started = time.monotonic()
        job = uml.Job(
            directory=home / "job",
            command=[f"{uml.PLACES}/repo/testbed/image/build.sh"],
            root=chosen.root,
            places={"repo": cache.REPO, "build": home, "cache": cache.cache_dir()},
            environment={"LC_ALL": "C.UTF-8", "TMPDIR": "/run/tmp", "HOME": "/run/tmp"},
            cwd=Path("/"),
            real_time=True,  # the sources are newer than the moment at which runs begin
            timeout=3600,
        )
        last = started

        def heard(_text: str) -> None:
            nonlocal last
            if time.monotonic() - last > 5:
                last = time.monotonic()
                progress(f"programs: {last - started:.0f} s")

        result = uml.run(built, job, heard)
        said = result.output.read_text(errors="replace")
        if not result.good:
            log = home / "build.log"
            log.write_text(said)
            wrong = [line for line in said.splitlines() if "error" in line.lower()][:2]
            raise LabError(f"the programs cannot be built ({log}): {' / '.join(wrong)}")
        stamp.write_text(key)
        progress(f"programs: done, {time.monotonic() - started:.0f} s")
        others = [path for path in home.parent.iterdir() if path != home]
        for path in sorted(others, key=lambda path: path.stat().st_mtime)[: -KEPT + 1]:
            shutil.rmtree(path, ignore_errors=True)
        return home


def ready(progress: Progress, *, modules: bool = True, lock_text: str | None = None) -> Lab:
    """Builds what is missing; `lock_text`: another image's lock than the repository's."""
    built = kernel.ensure("lab", progress)
    ko_files = kernel.build_modules(built, progress) if modules else None
    chosen = image.ensure(built, progress, lock_text)
    return Lab(built, ko_files, chosen, _programs(chosen, built, progress))
