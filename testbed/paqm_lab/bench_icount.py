# SPDX-License-Identifier: GPL-2.0
"""Instructions per packet, counted by QEMU.

QEMU's emulator with `-icount shift=0` advances its clock by one nanosecond per instruction, so the
guest's time-stamp counter counts instructions and nothing else: figures repeat on any machine
under any load. The kernel is a small one for x86-64 from the lab's kernel source; the load comes
from testbed/bench/paqm_load.c.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paqm_lab import bench_load as bl
from paqm_lab import cache, kernel, qemu
from paqm_lab.errors import LabError

BENCH = cache.TESTBED / "bench"
DEVICE = "dut"
SIZE = 200  # bytes: large enough to be quoted in a notice
KINDS = ["rtp", "udp", "tcp"]
FLOW_STEPS = [1, 1000, 100_000]
NOTICE_FLOWS = [100, 1000, 100_000]
# A round of the outer loop walks the flow table: with fewer packets one round more or less shows.
OWN_COUNT = 300_000
# Media flows are known to the queue when they have lasted for 0.4 s, here so many packets.
KNOWN = 300_000
# More than the capacity that a queue guesses for a device without a speed: beyond the fair rate.
BEYOND_SIZE = 1000
SUBJECTS = [
    bl.Subject("noqueue", None),
    *bl.RIVALS,
    bl.Subject("codel", "codel"),
    bl.Subject("tbf", "tbf rate 100gbit burst 10mb limit 10mb"),
    bl.Subject("paqm", "paqm"),
    bl.Subject("paqm bandwidth", f"paqm {bl.ENOUGH}"),
]
CONFIG = qemu.Config(
    ("bench/x86.config",),
    ("CONFIG_NET_SCH_DUALPI2=y", "CONFIG_NET_SCH_CAKE=y", "CONFIG_DUMMY=y", "CONFIG_MODULES=y"),
)


@dataclass(frozen=True)
class Case:
    """One measurement."""

    name: str
    subject: bl.Subject
    kind: str
    flows: int = 100
    warm: int = 2000
    count: int = 60_000
    size: int = SIZE


def short_cases() -> list[Case]:
    """Every qdisc with every kind of traffic."""
    cases = []
    for s in SUBJECTS:
        own = "paqm" in s.name
        for kind in KINDS:
            warm = KNOWN if own and kind == "rtp" else Case.warm
            count = OWN_COUNT if own else Case.count
            cases.append(Case(f"{s.name} {kind}", s, kind, warm=warm, count=count))
    for s in SUBJECTS:
        if s.name in ("paqm", "fq_codel"):
            name = f"{s.name} beyond"
            cases.append(Case(name, s, "rtp", warm=KNOWN, count=OWN_COUNT, size=BEYOND_SIZE))
    return cases


def long_cases() -> list[Case]:
    """What takes more packets: many flows, and enough time for rounds of notices."""
    cases = []
    for flows in FLOW_STEPS:
        subject = bl.with_flows(bl.PLAIN, flows)
        count = max(60_000, 2 * flows)
        cases.append(Case(f"{flows} flows", subject, "rtp", flows, 4 * flows, count))
    for flows in NOTICE_FLOWS:
        for base in (bl.PLAIN, bl.TOLD):
            name = f"{flows} flows {'on' if base.feedback else 'off'}"
            subject = bl.with_flows(base, flows)
            # a walk over 100,000 is rare, and the second one knows them
            cases.append(Case(name, subject, "rtp", flows, max(10 * flows, KNOWN), 300_000))
    return cases


def copy_load(work: Path) -> Path:
    """A directory to build the load generator in."""
    directory = work / "bench"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    for name in ("Kbuild", "paqm_load.c"):
        shutil.copy(BENCH / name, directory)
    return directory


def build_modules(
    tree: Path, work: Path, progress: kernel.Progress, debug: bool = False
) -> dict[str, Path]:
    """The modules under test and the load generator, compiled for QEMU's kernel."""
    modules = qemu.build_modules(tree, work, progress, debug)
    load = copy_load(work)
    qemu.build_directory(tree, "x86_64", load, progress, debug)
    return modules | {path.stem: path for path in load.glob("*.ko")}


def _script(cases: Iterable[Case], symbols: bool) -> str:
    lines = [
        "#!/bin/sh",
        # By name the shell would take its own small ip and tc.
        "export PATH=/bin:/sbin TC_LIB_DIR=/lib/tc",
        "mount -t proc proc /proc",
        "mount -t sysfs sysfs /sys",
        "for m in paqm_feedback sch_paqm; do insmod /$m.ko || echo '@fault insmod'; done",
        f"for d in {DEVICE} back; do /sbin/ip link add $d type dummy; done",
        "for d in all default; do echo 1 >/proc/sys/net/ipv6/conf/$d/disable_ipv6; done",
        f"/sbin/ip link set {DEVICE} up; /sbin/ip link set back up",
        "/sbin/ip addr add 192.0.2.1/24 dev back",
        "/sbin/ip route add 10.0.0.0/8 via 192.0.2.2",
    ]
    for case in cases:
        lines.append(f"echo '@case {case.name}'")
        for command in bl.qdisc_commands(DEVICE, case.subject):
            lines.append(f"/sbin/{command} || echo '@fault tc'")
        # What the case before has left (RCU callbacks, freed modules) is over then.
        lines.append("sleep 1")
        lines.append(
            f"insmod /paqm_load.ko dev={DEVICE} kind={case.kind} flows={case.flows} "
            f"size={case.size} warm={case.warm} count={case.count} || echo '@fault load'"
        )
        lines.append('echo "@cycles $(cat /sys/module/paqm_load/parameters/cycles)"')
        if symbols:
            lines.append("grep '[[]sch_paqm]\\|[[]paqm_' /proc/kallsyms")
            lines.append('echo "$(cat /sys/module/sch_paqm/sections/.text) t @text"')
        lines.append("rmmod paqm_load")
        if case.subject.args is not None:
            lines.append(f"/sbin/tc -s qdisc show dev {DEVICE}")
            if case.subject.args.startswith("paqm"):
                lines += ["echo @json", f"/sbin/tc -s -j qdisc show dev {DEVICE}"]
            lines.append(f"/sbin/tc qdisc del dev {DEVICE} root")
        lines.append("echo; echo @end")
    return "\n".join([*lines, "reboot -f"]) + "\n"


def boot(
    tree: Path,
    modules: dict[str, Path],
    cases: list[Case],
    work: Path,
    plugin: str | None = None,
    symbols: bool = False,
) -> str:
    """Boots a guest that measures the cases; returns what it wrote on its console."""
    work.mkdir(parents=True, exist_ok=True)
    image = work / "initramfs.gz"
    qemu.initramfs(image, modules.values(), _script(cases, symbols))
    # Without a source of randomness the kernel would hash its entropy anew for every number.
    command = [qemu.QEMU, "-M", "pc", "-cpu", "qemu64,+rdrand", "-seed", "1", "-m", "1024"]
    command += ["-nodefaults", "-display", "none"]
    command += ["-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off"]
    command += ["-rtc", "base=2026-01-01,clock=vm", "-serial", "stdio", "-no-reboot"]
    command += ["-kernel", str(tree / "arch/x86/boot/bzImage"), "-initrd", str(image)]
    command += ["-append", "console=ttyS0 loglevel=3 panic=-1 tsc=reliable norandmaps"]
    if plugin:
        command += ["-plugin", plugin]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=1800,
        )
    except subprocess.TimeoutExpired as err:
        raise LabError(f"QEMU did not end within {err.timeout:.0f} s") from err
    (work / "console.log").write_text(done.stdout + done.stderr)
    if done.returncode:
        raise LabError(f"QEMU failed: {done.stderr.strip().splitlines()[-1:]}")
    return done.stdout


def parse(console: str, cases: list[Case]) -> dict[str, dict[str, Any]]:
    """Figures of each case, after making sure that its packets went through its qdisc."""
    found: dict[str, dict[str, Any]] = {}
    text = {
        match[1].strip(): match[2]
        for match in re.finditer(r"^@case (.*?)\r?\n(.*?)^@end", console, re.M | re.S)
    }
    for case in cases:
        part = text.get(case.name, "")
        cycles = re.search(r"^@cycles (\d+)", part, re.M)
        if not cycles or "@fault" in part:
            tail = (part or console).strip().splitlines()[-3:]
            raise LabError(f"{case.name}: not measured under QEMU: {' / '.join(tail)}")
        figure: dict[str, Any] = {"instructions": int(cycles[1]) / case.count}
        if case.subject.args is not None:
            passed, dropped = bl.child_counts(part)
            if passed != case.warm + case.count or dropped:
                raise LabError(
                    f"{case.name}: {case.warm + case.count} packets offered, {passed} passed the "
                    f"qdisc, {dropped} dropped"
                )
        if "@json" in part:
            shown = json.loads(part.split("@json", 1)[1])
            if case.subject.feedback and not bl.find_key(shown, "notices_sent"):
                raise LabError(f"{case.name}: feedback is on, but no notice was sent")
            for key in bl.NOTICE_KEYS:
                figure[key] = bl.find_key(shown, key)
        found[case.name] = figure
    return found


def run(work: Path, repeats: int, progress: kernel.Progress) -> dict[str, list[dict[str, Any]]]:
    """All cases; the short ones `repeats` times, in another order each time."""
    qemu.need_packages()
    tree = qemu.build_kernel(CONFIG, progress)
    modules = build_modules(tree, work / "src", progress)
    figures: dict[str, list[dict[str, Any]]] = {}
    for number in range(repeats):
        cases = short_cases()
        random.Random(number).shuffle(cases)
        progress(f"bench-qdisc: QEMU: all qdiscs, {number + 1} of {repeats}")
        for name, figure in parse(boot(tree, modules, cases, work), cases).items():
            figures.setdefault(name, []).append(figure)
    for case in long_cases():
        progress(f"bench-qdisc: QEMU: {case.name}")
        figures |= {k: [v] for k, v in parse(boot(tree, modules, [case], work), [case]).items()}
    return figures
