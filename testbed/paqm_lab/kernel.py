# SPDX-License-Identifier: GPL-2.0
"""Gets and builds the lab's User-Mode Linux kernel, and the project's modules against it.

The source is Debian's `linux-source` package, fetched through the machine's own apt configuration
into a private state directory; the system's package lists are not touched. It is the version of
kernel/source.lock, the newest where that is no longer to be had, unless a release such as "6.1" is
asked for. `KERNEL_SRC` names a source tree to use instead.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from paqm_lab import apt, cache
from paqm_lab.errors import LabError

Progress = Callable[[str], None]

CONFIG_DIR = cache.TESTBED / "kernel"
SOURCE_LOCK = CONFIG_DIR / "source.lock"  # NAME VERSION SHA256 of the package
FRAGMENTS = {
    "lab": ["uml-lab.config"],
    "debug": ["uml-lab.config", "uml-debug.config"],
    "live": ["uml-lab.config", "uml-live.config"],  # a camera and a sound card, simulated
}
# Applied to a copy of the source. Only what makes a run repeat anywhere, a kernel's own checks
# quicker, and what lets an older one run on today's processors.
PATCHES = {"lab": [], "debug": ["uml-debug.patch"], "live": []}
REPEAT_PATCHES = {"lab": ["uml-repeat.patch"], "debug": ["uml-repeat.patch"], "live": []}
# Let programs read virtual time without a system call, and files with fewer: nothing else differs.
QUICK_PATCHES = {"lab": ["uml-clock.patch", "uml-hostfs.patch"], "debug": [], "live": []}
REPEAT_VERSION = (7, 0)  # older ones repeat on one machine only, and are slower
OLD_PATCHES = ["uml-xstate.patch"]
# A kernel mixes its own banner into its random pool: two builds must not differ in it.
BANNER = ["KBUILD_BUILD_TIMESTAMP=2026-01-01T00:00:00Z", "KBUILD_BUILD_VERSION=1"]
BANNER += ["KBUILD_BUILD_USER=lab", "KBUILD_BUILD_HOST=lab"]
# GCC 14 has large data in sections of their own, where kmemleak looks for no pointers.
FLAGS = {"lab": [], "debug": ["KCFLAGS=-mlarge-data-threshold=2147483647"], "live": []}
# What makes the kernel of nearly all runs quicker. It lies below 2 GB, so that a call need not load
# all of an address; modules lie beyond.
QUICK_FRAGMENTS = {"lab": ["uml-fast.config"], "debug": [], "live": []}
QUICK_FLAGS = {"lab": ["CFLAGS_KERNEL=-mcmodel=small"], "debug": [], "live": []}
PLACE = "place"  # in a kernel's directory: where that directory lay when the build began
# The first version whose User-Mode Linux asks how many registers the processor has.
XSTATE_VERSION = (6, 13)
BUILD_PROGRAMS = ["make", "gcc", "ld", "flex", "bison", "bc", "patch"]
# The first version whose User-Mode Linux offers seccomp=on: system calls eight times as fast.
FAST_VERSION = (6, 16)
OLDEST_VERSION = (6, 1)
# A guest cannot do its work without these; others may be missing in older kernels.
VITAL_OPTIONS = [
    "CONFIG_UML_TIME_TRAVEL_SUPPORT=y",
    "CONFIG_HIGH_RES_TIMERS=y",
    "CONFIG_HOSTFS=y",
    "CONFIG_MODULES=y",
    "CONFIG_NET_NS=y",
    "CONFIG_VETH=y",
    "CONFIG_PACKET=y",
    "CONFIG_NET_SCH_HTB=y",
    "CONFIG_NET_SCH_NETEM=y",
    "CONFIG_NET_SCH_FQ_CODEL=y",
]
SUITES = ["bookworm", "trixie", "forky", "duke", "sid"]


@dataclass(frozen=True)
class Kernel:
    """A built kernel: `tree` is the build directory that modules are compiled against."""

    tree: Path
    version: str
    variant: str
    key: str

    @property
    def binary(self) -> Path:
        return self.tree / "linux"

    @property
    def repeats_anywhere(self) -> bool:
        """Runs do not hang on the host's paths and packages (uml-repeat.patch)."""
        stamp = json.loads((self.tree.parent / "built.json").read_text())
        return bool(set(REPEAT_PATCHES[self.variant]) & set(stamp.get("patches", [])))

    @property
    def not_of_lock(self) -> str:
        """The source that is not that of the lock."""
        stamp = json.loads((self.tree.parent / "built.json").read_text())
        if _of_lock(stamp) and "-debian-" in self.key:
            return "none"
        return str(stamp.get("package") or f"{self.version} of another source")

    @property
    def fast(self) -> bool:
        return parse_version(self.version) >= FAST_VERSION


def parse_version(text: str) -> tuple[int, int]:
    """Major and minor number at the head of a version or behind `linux-source-`."""
    match = re.search(r"(\d+)\.(\d+)", text)
    if not match:
        raise LabError(f'no kernel version in "{text}"')
    return int(match[1]), int(match[2])


def newest_source(packages: list[str], floor: tuple[int, int]) -> str | None:
    """The newest `linux-source-X.Y` of the list that is not older than `floor`."""
    found = [name for name in packages if re.fullmatch(r"linux-source-\d+\.\d+", name)]
    found = [name for name in found if parse_version(name) >= floor]
    return max(found, key=parse_version, default=None)


def pinned() -> tuple[str, str, str]:
    """Name, version and SHA-256 of the lock's source package."""
    name, version, sha256 = SOURCE_LOCK.read_text().split()
    return name, version, sha256


def _of_lock(made: dict[str, str]) -> bool:
    """Whether this is of the lock's source package; older caches know the kernel's version only."""
    name, version, _ = pinned()
    if "package" in made:
        return made["package"] == f"{name}={version}"
    return made["version"] == version.partition("-")[0]


def _will_do(made: dict[str, str]) -> bool:
    """Whether it is of the lock's source, or was taken when that was no longer to be had."""
    return _of_lock(made) or made.get("lock") == "=".join(pinned()[:2])


def suites_to_try(codename: str) -> list[tuple[str, tuple[int, int]]]:
    """Suites in the order of trial, each with the oldest version accepted from it."""
    if codename not in SUITES:
        raise LabError(
            f'no kernel source is known for the release "{codename}"; set KERNEL_SRC to an '
            f"unpacked kernel tree, {FAST_VERSION[0]}.{FAST_VERSION[1]} or newer"
        )
    later = [name for name in SUITES[SUITES.index(codename) + 1 :] if name != "sid"]
    names = [f"{name}-backports" for name in later[:1]] + [f"{codename}-backports"] + later
    tries = [(name, FAST_VERSION) for name in [*names, "sid"]]
    return [*tries, (codename, OLDEST_VERSION)]


def release(text: str) -> str:
    """A Debian kernel as an option names it: major and minor number."""
    match = re.fullmatch(r"([0-9]{1,3})\.([0-9]{1,3})", text)
    if not match or (int(match[1]), int(match[2])) < OLDEST_VERSION:
        oldest = ".".join(map(str, OLDEST_VERSION))
        raise argparse.ArgumentTypeError(f"{text!r}: expected X.Y, {oldest} at least")
    return text


def suites_of_release(codename: str) -> list[str]:
    """Suites that may have a certain release, the most stable first."""
    if codename not in SUITES:
        suites_to_try(codename)  # says what to do
    return [*SUITES[SUITES.index(codename) :], f"{codename}-backports"]


def _fetch(
    scratch: Path, release: str | None, progress: Progress, pin: tuple[str, str, str] | None
) -> tuple[str, Path]:
    """Downloads a source package into `scratch`: (its directory name, the file).

    It is the one of `release`, or `pin`, or the best that is to be had.
    """
    own = apt.debian_sources("set KERNEL_SRC to an unpacked kernel tree")
    codename = apt.RELEASE  # the same on every machine, so that the kernel is
    tries = suites_to_try(codename)
    if release:
        tries = [(suite, OLDEST_VERSION) for suite in suites_of_release(codename)]
    archive = apt.Archive(scratch)
    tried = []
    for suite, floor in tries:
        tried.append(suite)
        try:
            # Updates of an older kernel are in the archive of security fixes.
            if suite == codename:
                sources = apt.sources_of(suite, own)
                archive.read(sources, apt.beside(sources))
            else:
                archive.read([(own[0][0], suite)])
            listed = archive.names("linux-source-")
        except LabError as err:
            progress(f"kernel source: {err}")
            continue
        if release:
            listed = [name for name in listed if name == f"linux-source-{release}"]
        if pin:
            name, asked = pin[0], f"{pin[0]}={pin[1]}"
            if name not in listed or archive.missing({name: pin[1]}):
                continue
        else:
            name = asked = newest_source(listed, floor) or ""
            if not name:
                continue
        progress(f"kernel source: downloading {asked} from {suite}")
        archive.download([asked], scratch)
        package = next(scratch.glob(f"{name}_*.deb"))
        if pin and cache.file_sha256(package) != pin[2]:
            raise LabError(f"{asked} is not that of {SOURCE_LOCK.name}: its SHA-256 differs")
        return name, package
    if pin:
        progress(f"kernel source: no longer to be had: {pin[0]}={pin[1]}; taking the newest")
        return _fetch(scratch, release, progress, None)
    wanted = f"linux-source-{release}" if release else "linux-source package"
    raise LabError(
        f"no {wanted} in {', '.join(tried)}; check the network and apt's sources"
        + ("" if release else ", or set KERNEL_SRC to an unpacked kernel tree")
    )


def _source_version(tree: Path) -> str:
    """Version as the tree's own Makefile states it."""
    makefile = tree / "Makefile"
    head = makefile.read_text(errors="replace")[:400] if makefile.exists() else ""
    parts = dict(re.findall(r"^(VERSION|PATCHLEVEL|SUBLEVEL)\s*=\s*(\d+)", head, re.M))
    if len(parts) != 3 or not (tree / "arch" / "um").is_dir():
        raise LabError(f"{tree} is not a Linux source tree with arch/um (see KERNEL_SRC)")
    return f"{parts['VERSION']}.{parts['PATCHLEVEL']}.{parts['SUBLEVEL']}"


def source_tree(progress: Progress, release: str | None = None) -> Path:
    """The source tree to build from, in the cache or fetched.

    Without a release: KERNEL_SRC, else that of the lock.
    """
    named = os.environ.get("KERNEL_SRC")
    if named and not release:
        return Path(named).resolve()
    store = cache.cache_dir() / ("linux-source" + (f"-{release}" if release else ""))
    for tree in sorted(path for path in store.glob("linux-source-*") if path.is_dir()):
        if release or _will_do(_made_of(tree)):
            return tree
    cache.need_programs(["apt-get", "dpkg-deb", "tar", "xz"], "fetching the kernel source")
    cache.need_space(cache.cache_dir(), 4000, "the kernel source")
    scratch = cache.cache_dir() / f"{store.name}.fetch"
    name, package = _fetch(scratch, release, progress, None if release else pinned())
    progress(f"kernel source: unpacking {package.name}")
    inner = f"./usr/src/{name}.tar.xz"
    unpack = f'dpkg-deb --fsys-tarfile "{package.name}" | tar -x {inner} && tar -xJf {inner}'
    apt.run(["bash", "-o", "pipefail", "-c", unpack], "unpacking the kernel source", cwd=scratch)
    version = _package_version(package)
    made = {"version": _source_version(scratch / name), "package": f"{name}={version}"}
    tree = store / f"{name}_{version}"
    store.mkdir(exist_ok=True)
    shutil.rmtree(tree, ignore_errors=True)
    (scratch / name).rename(tree)
    made_of = json.dumps(made | {"lock": "=".join(pinned()[:2])})
    tree.with_name(f"{tree.name}.json").write_text(made_of + "\n")
    shutil.rmtree(scratch)
    return tree


def _package_version(file: Path) -> str:
    """apt writes the colon of an epoch as %3a."""
    return file.name.split("_")[1].replace("%3a", ":")


def lock(progress: Progress) -> None:
    """Writes source.lock for the newest source."""
    scratch = cache.cache_dir() / "source.lock.part"
    name, package = _fetch(scratch, None, progress, None)
    SOURCE_LOCK.write_text(
        f"{name} {_package_version(package)} {cache.file_sha256(package)}\n"
    )
    shutil.rmtree(scratch)
    progress(f"kernel source: {SOURCE_LOCK}: {SOURCE_LOCK.read_text().strip()}")


def _made_of(tree: Path) -> dict[str, str]:
    """What a source tree is: its version and, of those that were fetched, package and lock."""
    file = tree.with_name(f"{tree.name}.json")
    known: dict[str, str] = json.loads(file.read_text()) if file.exists() else {}
    return known or {"version": _source_version(tree)}


def _new(version: str | None) -> bool:
    """Whether this version is patched to repeat anywhere and to be quick; None: the newest."""
    return version is None or parse_version(version) >= REPEAT_VERSION


def fragment(variant: str, version: str | None) -> str:
    """Configuration lines laid over User-Mode Linux's defaults."""
    names = FRAGMENTS[variant] + (QUICK_FRAGMENTS[variant] if _new(version) else [])
    return "".join((CONFIG_DIR / name).read_text() for name in names)


def flags(variant: str, version: str | None) -> list[str]:
    """What make is told besides."""
    return FLAGS[variant] + (QUICK_FLAGS[variant] if _new(version) else [])


def patches(variant: str, version: str | None) -> list[str]:
    """Patches of a variant for that version; the newest without it."""
    new = REPEAT_PATCHES[variant] + QUICK_PATCHES[variant] if _new(version) else []
    old = OLD_PATCHES if version and parse_version(version) < XSTATE_VERSION else []
    return PATCHES[variant] + new + old


def _config_key(variant: str, release: str | None) -> str:
    """Names what a variant adds to a source: configuration, flags and patches."""
    contents = [(CONFIG_DIR / name).read_bytes() for name in patches(variant, release)]
    words = " ".join(BANNER + flags(variant, release))
    return cache.digest(fragment(variant, release).encode(), words.encode(), *contents)


def _built(variant: str, release: str | None) -> Kernel | None:
    """The newest kernel in the cache that was built with today's configuration."""
    config = _config_key(variant, release)
    found = []
    name = f"*-{release or 'debian'}-{variant}-{config}"
    for stamp in (cache.cache_dir() / "kernel").glob(f"{name}/built.json"):
        made = json.loads(stamp.read_text())
        kernel = Kernel(stamp.parent / "tree", made["version"], variant, stamp.parent.name)
        fits = release or _will_do(made)
        if fits and kernel.binary.exists() and not _moved(stamp.parent):
            found.append(kernel)
    return max(found, key=lambda kernel: parse_version(kernel.version), default=None)


def _moved(home: Path) -> bool:
    """Whether this directory was built elsewhere: a kernel's makefiles hold their own paths, and
    through those of another place modules are built into that place, or into the kernel itself."""
    place = home / PLACE
    return not place.exists() or place.read_text() != f"{home.resolve()}\n"


def _make(command: list[str], log: Path, label: str, progress: Progress) -> None:
    """Runs a long make; says every few seconds how many objects are done."""
    started = last = time.monotonic()
    objects = 0
    with log.open("a") as out:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert process.stdout is not None
        try:
            for line in process.stdout:
                out.write(line)
                objects += bool(re.match(r"\s+(CC|AS|LD|AR)\b", line))
                now = time.monotonic()
                if now - last >= 5:
                    last = now
                    progress(f"{label}: {objects} objects, {now - started:.0f} s")
            status = process.wait()
        finally:
            if process.poll() is None:  # what is made beside it failed
                process.terminate()  # make ends its compilers
                process.wait()
    if status:
        tail = [text for text in log.read_text(errors="replace").splitlines() if text.strip()][-3:]
        raise LabError(f"{label} failed, see {log}: {' / '.join(tail)}")
    progress(f"{label}: done, {objects} objects, {time.monotonic() - started:.0f} s")


def ensure(variant: str, progress: Progress, release: str | None = None) -> Kernel:
    """The built kernel of that variant; builds it on the first call.

    `release` is major and minor number of a Debian kernel ("6.1"); the newest without it.
    """
    cache.need_machine()
    config = _config_key(variant, release)
    # Another configuration's build need not be waited for.
    with cache.locked(f"kernel-{variant}-{release or 'newest'}-{config}"):
        wanted = None if release else os.environ.get("KERNEL_SRC")
        kernel = _built(variant, release)
        if kernel and not wanted:
            return kernel
        with cache.locked("linux-source"):
            source = source_tree(progress, release)
        version = _source_version(source)
        origin = cache.digest(str(source).encode())[:6] if wanted else release or "debian"
        home = cache.cache_dir() / "kernel" / f"{version}-{origin}-{variant}-{config}"
        kernel = Kernel(home / "tree", version, variant, home.name)
        if home.exists() and _moved(home):
            progress(f"kernel {variant}: {home} was built at another place, so it is built anew")
            shutil.rmtree(home)
        if (home / "built.json").exists() and kernel.binary.exists():
            if wanted or release:
                return kernel
            shutil.rmtree(home)  # another package of that version
        _build(source, home, kernel, progress)
        return kernel


def _patched(source: Path, home: Path, kernel: Kernel, progress: Progress) -> Path:
    """A copy of the source with the variant's patches."""
    copy, part = home / "source", home / "source.part"
    if copy.exists():
        return copy
    progress(f"kernel {kernel.variant}: patching {kernel.version}")
    shutil.rmtree(part, ignore_errors=True)
    # Hard links: the patch program writes a file anew, the original stays.
    apt.run(["cp", "-al", str(source), str(part)], "copying the kernel source")
    for name in patches(kernel.variant, kernel.version):
        patch = ["patch", "--batch", "-p1", "-i", str(CONFIG_DIR / name)]
        # A kernel newer than the patch is better than none.
        repeat, quick = REPEAT_PATCHES[kernel.variant], QUICK_PATCHES[kernel.variant]
        if name in repeat + quick and not _applies(patch, part):
            loss = "runs repeat on this machine only" if name in repeat else "runs are slower"
            progress(f"kernel {kernel.variant}: {name} does not fit {kernel.version}: {loss}")
            continue
        apt.run(patch, f"applying {name} to {kernel.version}", cwd=part)
        (part / name).touch()
    part.rename(copy)
    return copy


def _applies(patch: list[str], tree: Path) -> bool:
    return subprocess.run([*patch, "--dry-run"], cwd=tree, capture_output=True).returncode == 0


def _build(source: Path, home: Path, kernel: Kernel, progress: Progress) -> None:
    variant = kernel.variant
    cache.need_programs(BUILD_PROGRAMS, "building the kernel")
    cache.need_space(cache.cache_dir(), 3000 if variant == "debug" else 1500, "building the kernel")
    if (source / ".config").exists():
        raise LabError(f"{source} was configured in place; run `make mrproper` there first")
    kernel.tree.mkdir(parents=True, exist_ok=True)  # what an interrupted build has made is used
    (home / PLACE).write_text(f"{home.resolve()}\n")
    original = source
    if patches(variant, kernel.version):
        source = _patched(source, home, kernel, progress)
    make = ["make", "-C", str(source), f"O={kernel.tree}", "ARCH=um", *BANNER]
    make += flags(variant, kernel.version)
    log = home / "build.log"
    progress(f"kernel {variant}: configuring {kernel.version} (build log: {log})")
    _make([*make, "x86_64_defconfig"], log, f"kernel {variant}: defaults", progress)
    with (kernel.tree / ".config").open("a") as out:
        out.write(fragment(variant, kernel.version))
    _make([*make, "olddefconfig"], log, f"kernel {variant}: configuration", progress)
    have = set((kernel.tree / ".config").read_text().splitlines())
    lost = [option for option in VITAL_OPTIONS if option not in have]
    if lost:
        raise LabError(f"kernel {kernel.version} cannot have {', '.join(lost)}; use a newer one")
    jobs = f"-j{os.cpu_count() or 1}"
    _make([*make, jobs, "linux", "modules"], log, f"kernel {variant}: build", progress)
    made = [name for name in patches(variant, kernel.version) if (source / name).exists()]
    stamp = _made_of(original) | {"version": kernel.version, "variant": variant, "patches": made}
    (home / "built.json").write_text(json.dumps(stamp) + "\n")


def _no_warnings(log: Path, label: str) -> None:
    """A warning of compiler or modpost is an error."""
    lines = log.read_text(errors="replace").splitlines()
    warned = [line.strip() for line in lines if re.search(r"\bwarning: ", line, re.IGNORECASE)]
    if warned:
        raise LabError(f"{label}: {len(warned)} warnings, see {log}: {warned[0]}")


def module_sources() -> list[Path]:
    """Files that the modules are compiled from, relative to the repository, in a fixed order."""
    found = [
        path.relative_to(cache.REPO)
        for top in ("kernel", "core")
        for path in (cache.REPO / top).rglob("*")
        if path.is_file() and (path.suffix in (".c", ".h") or path.name in ("Kbuild", "Makefile"))
    ]
    return sorted(path for path in found if not path.name.endswith(".mod.c"))


def build_modules(kernel: Kernel, progress: Progress) -> Path:
    """Compiles the modules in a copy of their sources; returns the directory of the .ko files."""
    sources = module_sources()
    if Path("kernel/Kbuild") not in sources:
        raise LabError(f"{cache.REPO}/kernel has no Kbuild file, so no module can be built")
    return _compile(kernel, "modules", sources, Path("kernel"), progress)


def build_link(kernel: Kernel, progress: Progress) -> Path:
    """Compiles the lab's link of varying rate; returns its .ko file."""
    home = (cache.TESTBED / "kernel" / "labtrace").relative_to(cache.REPO)
    sources = [home / "Kbuild", home / "sch_labtrace.c"]
    return _compile(kernel, "link", sources, home, progress) / "sch_labtrace.ko"


def _compile(
    kernel: Kernel, label: str, sources: list[Path], directory: Path, progress: Progress
) -> Path:
    """Compiles a copy of these sources, unless that was done before; where the .ko files are."""
    contents = [(cache.REPO / path).read_bytes() for path in sources]
    names = "\n".join(str(path) for path in sources).encode()
    key = cache.digest(kernel.key.encode(), names, *contents)
    store = cache.cache_dir() / "modules"
    store.mkdir(exist_ok=True)
    prefix = kernel.variant if label == "modules" else f"{label}-{kernel.variant}"
    with cache.locked(f"{label}-{kernel.key}"):
        home = store / f"{prefix}-{key}"
        if (home / "built").exists():
            os.utime(home)
            return home / directory
        shutil.rmtree(home, ignore_errors=True)
        for path, content in zip(sources, contents, strict=True):
            (home / path).parent.mkdir(parents=True, exist_ok=True)
            (home / path).write_bytes(content)
        make = ["make", "-C", str(kernel.tree), "ARCH=um", f"M={home / directory}"]
        make += [f"PAQM_CORE={home / 'core'}", f"-j{os.cpu_count() or 1}", "modules"]
        what = f"{label} ({kernel.version}, {kernel.variant})"
        _make(make, home / "build.log", what, progress)
        _no_warnings(home / "build.log", what)
        if not list((home / directory).glob("*.ko")):
            raise LabError(f"{what}: no module in {home / directory}, see build.log there")
        (home / "built").touch()
        old = sorted(store.glob(f"{prefix}-*"), key=lambda path: path.stat().st_mtime)
        for path in old[:-32]:  # a long run may load the modules of an hour ago again
            shutil.rmtree(path, ignore_errors=True)
        return home / directory
