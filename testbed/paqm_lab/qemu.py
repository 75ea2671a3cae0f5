# SPDX-License-Identifier: GPL-2.0
"""A small kernel for x86-64 under QEMU: how it, its modules and its file tree are made.

For what User-Mode Linux cannot do: count instructions (bench_icount.py), run on several processors
at once (races.py).
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from paqm_lab import cache, kernel
from paqm_lab.errors import LabError

QEMU = "qemu-system-x86_64"
BUSYBOX = "/bin/busybox"
PACKAGES = {QEMU: "qemu-system-x86", BUSYBOX: "busybox-static", "cpio": "cpio", "bc": "bc"}


def need_packages(packages: dict[str, str] = PACKAGES) -> None:
    """Installs what only a few suites need: packages by the programs that they bring."""
    missing = [package for program, package in packages.items() if not shutil.which(program)]
    if not missing:
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise LabError(f"packages are missing; as root: apt-get install {' '.join(missing)}")
    command = ["apt-get", "-qq", "install", "--no-install-recommends", *missing]
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise LabError(f"`{' '.join(command)}` failed: {done.stderr.strip().splitlines()[-1:]}")


def logged(command: list[str], log: Path, label: str, progress: kernel.Progress) -> None:
    """Runs a build and says every few seconds how far it is."""
    started = last = time.monotonic()
    with log.open("a") as out:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert process.stdout is not None
        for done, line in enumerate(process.stdout):
            out.write(line)
            if time.monotonic() - last >= 5:
                last = time.monotonic()
                progress(f"{label}: {done} lines, {last - started:.0f} s")
        status = process.wait()
    if status:
        tail = [text for text in log.read_text(errors="replace").splitlines() if text.strip()][-3:]
        raise LabError(f"{label} failed, see {log}: {' / '.join(tail)}")


@dataclass(frozen=True)
class Config:
    """What is laid over tinyconfig: files of testbed/, the later decides; what must be there."""

    files: tuple[str, ...]
    vital: tuple[str, ...]
    make: tuple[str, ...] = ()  # variables for the kernel's own objects, not for modules


def build_kernel(config: Config, progress: kernel.Progress) -> Path:
    """Build directory of the kernel, from the cache if it is there."""
    cache.need_machine()
    with cache.locked("linux-source"):
        source = kernel.source_tree(progress)
    laid = b"".join((cache.TESTBED / name).read_bytes() for name in config.files)
    key = cache.digest(
        str(source).encode(),
        (source / "Makefile").read_bytes()[:400],
        laid,
        *map(str.encode, config.make),
    )
    home = cache.cache_dir() / "bench-kernel" / key
    tree = home / "tree"
    with cache.locked("bench-kernel"):
        if (home / "built").exists():
            return tree
        cache.need_programs(kernel.BUILD_PROGRAMS, "building the kernel")
        cache.need_space(cache.cache_dir(), 1000, "building the kernel")
        shutil.rmtree(home, ignore_errors=True)
        tree.mkdir(parents=True)
        make = ["make", "-C", str(source), f"O={tree}", "ARCH=x86_64"]
        log = home / "build.log"
        progress(f"kernel for QEMU: building (some minutes; log: {log})")
        logged([*make, "tinyconfig"], log, "kernel for QEMU: defaults", progress)
        with (tree / ".config").open("ab") as out:
            out.write(laid)
        logged([*make, "olddefconfig"], log, "kernel for QEMU: configuration", progress)
        have = (tree / ".config").read_text().splitlines()
        lost = [option for option in config.vital if option not in have]
        if lost:
            raise LabError(f"the kernel in {source} cannot have {', '.join(lost)}")
        jobs = f"-j{os.cpu_count() or 1}"
        make += [*config.make, jobs, "bzImage", "modules"]
        logged(make, log, "kernel for QEMU: build", progress)
        (home / "built").touch()
        return tree


def build_directory(
    tree: Path, arch: str, directory: Path, progress: kernel.Progress, debug: bool = False
) -> None:
    """Compiles the modules of one directory against a kernel."""
    make = ["make", "-C", str(tree), f"ARCH={arch}", f"M={directory}", "modules"]
    if debug:
        make.append("KCFLAGS=-g")
    logged(make, directory.parent / "build.log", f"modules: {directory.name}", progress)


def build_modules(
    tree: Path,
    work: Path,
    progress: kernel.Progress,
    debug: bool = False,
    change: Callable[[Path], None] = lambda work: None,
) -> dict[str, Path]:
    """The modules under test, compiled for QEMU's kernel, in `work`; `change` changes a copy."""
    shutil.rmtree(work, ignore_errors=True)
    only = shutil.ignore_patterns("*.o", "*.ko", "*.mod*", ".*", "tc-tests", "lab-tests", "kunit")
    for part in ("kernel", "core"):
        shutil.copytree(cache.REPO / part, work / part, ignore=only)
    change(work)
    build_directory(tree, "x86_64", work / "kernel", progress, debug)
    return {path.stem: path for path in (work / "kernel").glob("*.ko")}


def _copy_libraries(program: str, root: Path) -> None:
    done = subprocess.run(["ldd", program], capture_output=True, text=True)
    for library in re.findall(r"(/\S+) \(0x", done.stdout):
        copy = root / library.lstrip("/")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, copy)


def initramfs(target: Path, files: Iterable[Path], script: str) -> None:
    """A file tree with a shell, ip, tc with its plugins, modules and programs, and the script."""
    root = target.parent / "root"
    shutil.rmtree(root, ignore_errors=True)
    for name in ("bin", "sbin", "proc", "sys", "dev", "lib/tc"):
        (root / name).mkdir(parents=True)
    shutil.copy(BUSYBOX, root / "bin/busybox")
    for name in ("sh", "mount", "insmod", "rmmod", "echo", "reboot", "cat", "grep", "sleep"):
        (root / "bin" / name).symlink_to("busybox")
    for name in ("ip", "tc"):
        program = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
        if program is None:
            raise LabError(f"`{name}` is missing; run setup/setup.sh")
        shutil.copy(program, root / "sbin")
        _copy_libraries(program, root)
    for plugin in (cache.REPO / "build/userspace/tc-paqm").glob("q_*.so"):
        shutil.copy(plugin, root / "lib/tc")
    for file in files:
        shutil.copy(file, root)
        if file.suffix != ".ko":
            _copy_libraries(str(file), root)
    (root / "init").write_text(script)
    (root / "init").chmod(0o755)
    names = "\n".join(
        sorted(str(path.relative_to(root)) for path in root.rglob("*")) + ["dev/console"]
    )
    subprocess.run(["mknod", str(root / "dev/console"), "c", "5", "1"], check=True)
    packed = subprocess.run(
        ["cpio", "--quiet", "-o", "-H", "newc"],
        cwd=root,
        input=names.encode(),
        stdout=subprocess.PIPE,
        check=True,
    )
    target.write_bytes(gzip.compress(packed.stdout, 1))
