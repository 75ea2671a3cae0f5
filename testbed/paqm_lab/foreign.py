# SPDX-License-Identifier: GPL-2.0
"""User space on processors other than this one: `make foreign`.

Builds all of it for one with words of 32 bits (armhf) and for one that is big-endian (s390x), and
runs what the build has as programs of the suites: control laws and messages against their vectors,
what paqmd judges, the streamer's elements, what fuzzers found. Compilers are Debian's; libraries
are its packages for that processor, unpacked into the cache; QEMU executes the programs. What
scripts start is left out, and so are sanitizers, which QEMU cannot run.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paqm_lab import apt, cache, checks, image, qemu

SECONDS_EACH = 3600
TIMES_SLOWER = 20  # an emulated program, about
PACKAGES = cache.REPO / "setup" / "packages.txt"
# What compiles for BPF or with clang, and what is typed, is of the machine that builds.
NOT_LINKED = {"gstreamer1.0-tools", "libbpf-dev", "libclang-rt-dev"}


@dataclass(frozen=True)
class Processor:
    """One of the others, by the names that it has elsewhere."""

    debian: str
    triplet: str
    qemu: str
    family: str  # Meson's word
    endian: str


PROCESSORS = {
    "armhf": Processor("armhf", "arm-linux-gnueabihf", "qemu-arm", "arm", "little"),
    "s390x": Processor("s390x", "s390x-linux-gnu", "qemu-s390x", "s390x", "big"),
}


def say(text: str) -> None:
    print(f"foreign: {text}", file=sys.stderr, flush=True)


def packages() -> list[str]:
    """What is linked and loaded, of the packages that the project is built with."""
    lines = PACKAGES.read_text().splitlines()
    names = [line.split()[0] for line in lines if line and not line.startswith("#")]
    wanted = [n for n in names if n.endswith("-dev") or n.startswith("gstreamer1.0-")]
    return ["libc6-dev", *(name for name in wanted if name not in NOT_LINKED)]


def libraries(processor: Processor) -> Path:
    """A file tree with the libraries of a processor, from the cache if it is there."""
    wanted = packages()
    home = cache.cache_dir() / "foreign" / processor.debian
    root, stamp = home / "root", home / "unpacked"
    with cache.locked("foreign"):
        if stamp.exists() and stamp.read_text().split() == wanted:
            return root
        cache.need_space(cache.cache_dir(), 2000, f"libraries of {processor.debian}")
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        own = apt.debian_sources("use a machine that has apt's sources for Debian")
        archive = apt.Archive(home / "apt", processor.debian)
        archive.read(own[:1], own[1:])  # a mirror may lack updates of it
        needed = archive.needed_by(wanted)
        say(f"{processor.debian}: downloading {len(needed)} packages")
        archive.download([f"{package.name}={package.version}" for package in needed], home)
        image.start_empty(root)
        image.unpack(sorted(home.glob("*.deb")), root, processor.debian, say)
        there = root / "usr/lib" / processor.triplet
        for name in ("blas", "lapack"):  # alternatives, which a package's script would set
            (there / f"lib{name}.so.3").symlink_to(f"{name}/lib{name}.so.3")
        shutil.rmtree(home / "apt")
        stamp.write_text("\n".join(wanted))
    return root


def build(processor: Processor, root: Path, work: Path) -> Path:
    """Build directory of user space for a processor."""
    directory, cross, log = work / "build", work / "cross.ini", work / "build.log"
    there = root / "usr/lib" / processor.triplet
    compiler = [f"{processor.triplet}-gcc", f"--sysroot={root}", f"-B{there}"]
    cross.write_text(f"""[binaries]
c = {compiler}
ar = '{processor.triplet}-ar'
strip = '{processor.triplet}-strip'
pkgconfig = 'pkg-config'
exe_wrapper = ['{processor.qemu}', '-L', '{root}']
[properties]
sys_root = '{root}'
pkg_config_libdir = ['{there}/pkgconfig', '{root}/usr/share/pkgconfig']
[host_machine]
system = 'linux'
cpu_family = '{processor.family}'
cpu = '{processor.family}'
endian = '{processor.endian}'
""")
    shutil.rmtree(directory, ignore_errors=True)
    log.write_text("")
    setup = ["meson", "setup", str(directory), str(cache.REPO), "--cross-file", str(cross)]
    setup += ["-Dpaqmtop=disabled", "-Dice=disabled"]
    qemu.logged(setup, log, f"{processor.debian}: meson", say)
    qemu.logged(["ninja", "-C", str(directory)], log, f"{processor.debian}: build", say)
    return directory


def programs(directory: Path) -> list[dict[str, Any]]:
    """Tests of a build that are programs of its own; Meson lists them without their wrapper."""
    words = ["meson", "introspect", "--tests", str(directory)]
    tests = json.loads(apt.run(words, "reading the list of tests"))
    return [test for test in tests if test["cmd"][0].startswith(str(directory))]


def test(processor: Processor, root: Path, tests: list[dict[str, Any]], work: Path) -> list[str]:
    """Runs these; what each prints goes to a file of its own. Why those failed that did."""
    plugins = root / "usr/lib" / processor.triplet / "gstreamer-1.0"
    own = {
        "CK_TIMEOUT_MULTIPLIER": str(TIMES_SLOWER),
        "GST_REGISTRY": str(work / "gst-registry"),
        "GST_REGISTRY_FORK": "no",
        "GST_PLUGIN_SYSTEM_PATH": str(plugins),
    }
    failed = []
    for wanted in tests:
        name = f"{processor.debian}: {wanted['name']}"
        log = work / f"{wanted['name'].replace(' ', '-')}.log"
        command = [processor.qemu, "-L", str(root), *wanted["cmd"]]
        environment = {**os.environ, **own, **dict(wanted.get("env") or {})}
        with log.open("w") as out:
            try:
                done = subprocess.run(
                    command, stdout=out, stderr=out, timeout=SECONDS_EACH, env=environment
                )
                why = f"exit status {done.returncode}" if done.returncode else ""
            except subprocess.TimeoutExpired:
                why = f"not done after {SECONDS_EACH} s"
        if why:
            failed.append(f"{name}: {why}, see {log}")
        print(f"not ok {failed[-1]}" if why else f"ok {name}", flush=True)
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(prog="paqm-lab foreign", description=__doc__.split("\n")[0])
    parser.add_argument(
        "--out", type=Path, default=Path("out/foreign"), help="for the results (%(default)s)"
    )
    parser.add_argument(
        "--only", choices=PROCESSORS, help=f"one of {', '.join(PROCESSORS)} (default: each)"
    )
    args = parser.parse_args()
    work = args.out.resolve()
    work.mkdir(parents=True, exist_ok=True)
    cache.need_programs(["meson", "ninja", "pkg-config", "dpkg-deb"], "building user space")
    found = []
    for processor in PROCESSORS.values():
        if args.only not in {None, processor.debian}:
            continue
        compiler = f"{processor.triplet}-gcc"
        qemu.need_packages({compiler: f"gcc-{processor.triplet}", processor.qemu: "qemu-user"})
        root = libraries(processor)
        room = work / processor.debian
        room.mkdir(exist_ok=True)
        tests = programs(build(processor, root, room))
        failed = test(processor, root, tests, room)
        name = processor.debian
        found += [
            checks.entry(name, "programs", len(tests), ">=", 1, "", "meson introspect --tests"),
            checks.entry(name, "programs_failed", len(failed), "<=", 0, "", str(room)),
        ]
    result = {"scenario": "foreign", "checks": found}
    (work / "result.json").write_text(json.dumps(result, indent=1) + "\n")
    return checks.print_table(work)


if __name__ == "__main__":
    sys.exit(main())
