# SPDX-License-Identifier: GPL-2.0
"""Where the instructions of a packet go: by function, or by source line of the modules.

Two boots under QEMU with a plugin that counts executed blocks (testbed/bench/profile.c). They
differ in nothing but the number of packets, so the difference of their counts is what packets
cost; boot, set-up and statistics cancel out.

    testbed/paqm-lab bench-profile [--kind rtp] [--inline] [--qdisc 'paqm ...']
"""

from __future__ import annotations

import argparse
import bisect
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

from paqm_lab import bench_icount as bi
from paqm_lab import bench_load as bl
from paqm_lab import cache, qemu
from paqm_lab.errors import LabError

FEW, MANY = 10_000, 30_000


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def read_counts(path: Path) -> Counter[int]:
    """Executions of every instruction, by address."""
    counts: Counter[int] = Counter()
    with path.open() as lines:
        for line in lines:
            executed, *addresses = line.split()
            for address in addresses:
                counts[int(address, 16)] += int(executed)
    return counts


def read_symbols(lines: list[str]) -> list[tuple[int, str]]:
    """Functions of System.map or /proc/kallsyms, by address."""
    found = []
    for line in lines:
        parts = line.split()
        if len(parts) >= 3 and parts[1] in "tTwW":
            found.append((int(parts[0], 16), parts[2]))
    return sorted(found)


def by_function(counts: dict[int, float], symbols: list[tuple[int, str]]) -> Counter[str]:
    """Sums by the function that an address is in."""
    starts = [address for address, _ in symbols]
    sums: Counter[str] = Counter()
    for address, count in counts.items():
        index = bisect.bisect_right(starts, address) - 1
        sums[symbols[index][1] if index >= 0 else "?"] += count  # type: ignore[assignment]
    return sums


def by_line(counts: dict[int, float], module: Path, base: int, end: int) -> Counter[str]:
    """Sums by innermost inlined function and source line, for addresses of one module."""
    inside = sorted(address for address in counts if base <= address < end)
    asked = "\n".join(hex(address - base) for address in inside)
    done = subprocess.run(
        ["addr2line", "-j", ".text", "-f", "-e", str(module)],
        input=asked,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise LabError(f"addr2line failed: {done.stderr.strip()}")
    answer = done.stdout.splitlines()
    sums: Counter[str] = Counter()
    for address, function, place in zip(inside, answer[::2], answer[1::2], strict=True):
        where = re.sub(r" \(discriminator.*", "", place).rpartition("/")[2]
        sums[f"{function} {where}"] += counts[address]  # type: ignore[assignment]
    return sums


def profile(case: bi.Case, work: Path) -> tuple[dict[int, float], list[tuple[int, str]], Path]:
    """Instructions per packet by address, the symbols, and the module under test."""
    tree = qemu.build_kernel(bi.CONFIG, say)
    modules = bi.build_modules(tree, work / "src", say, debug=True)
    plugin = cache.library(bi.BENCH / "profile.c")
    runs = []
    console = ""
    for count in (FEW, MANY):
        say(f"profile: {count} packets")
        one = bi.Case(case.name, case.subject, case.kind, case.flows, case.warm, count)
        counts = work / f"blocks-{count}"
        console = bi.boot(tree, modules, [one], work, f"{plugin},out={counts}", symbols=True)
        bi.parse(console, [one])
        runs.append(read_counts(counts))
    per_packet = {
        address: (runs[1][address] - runs[0][address]) / (MANY - FEW)
        for address in runs[1]
        if runs[1][address] != runs[0][address]
    }
    lines = (tree / "System.map").read_text().splitlines() + console.splitlines()
    return per_packet, read_symbols(lines), modules["sch_paqm"]


def main() -> int:
    top = argparse.ArgumentParser(description=(__doc__ or "").rpartition("\n\n")[0])
    top.add_argument("--qdisc", default=f"paqm {bl.ENOUGH}",
                     help="queue and its options (%(default)s)")
    top.add_argument("--kind", default="rtp", choices=["rtp", "udp", "tcp"],
                     help="of packets (%(default)s)")
    top.add_argument("--flows", type=int, default=100, help="flows (%(default)s)")
    top.add_argument("--inline", action="store_true", help="by source line of sch_paqm")
    top.add_argument("--least", type=float, default=1.0,
                     help="leave out smaller figures (%(default)g)")
    top.add_argument("--work", type=Path, default=Path("out/bench-qdisc/profile"),
                     help="for logs and builds (%(default)s)")
    args = top.parse_args()
    case = bi.Case("profile", bl.Subject("profile", args.qdisc), args.kind, args.flows)
    try:
        counts, symbols, module = profile(case, args.work.resolve())
        if args.inline:
            base = next(address for address, name in symbols if name == "@text")
            sums = by_line(counts, module, base, base + module.stat().st_size)
        else:
            sums = by_function(counts, [item for item in symbols if item[1] != "@text"])
    except LabError as err:
        say(f"profile: {err}")
        return 2
    for name, count in sums.most_common():
        if count >= args.least:
            print(f"{count:9.2f}  {name}")
    print(f"{sum(sums.values()):9.2f}  all")
    return 0
