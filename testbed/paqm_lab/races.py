# SPDX-License-Identifier: GPL-2.0
"""Data races of the modules, on several processors: `make races`.

User-Mode Linux, which all other guests run, has one processor. Here QEMU emulates several, and
the kernel's concurrency sanitizer (KCSAN, Documentation/dev-tools/kcsan.rst) stops one of them at
a sampled access of ours and tells when another one touches the same word meanwhile, without an
order between the two. Only modules are instrumented, so what is found is ours. In the guest
testbed/bench/races.sh changes, lists, replaces and takes away qdiscs under traffic, and the
torture test's operations run beside processes that send. What was found hangs on chance and on
the time that is given: a run without a report has found nothing, which is not that nothing is.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paqm_lab import cache, checks, qemu, uml
from paqm_lab.errors import LabError

CONFIG = qemu.Config(
    ("bench/x86.config", "bench/races.config"),
    ("CONFIG_SMP=y", "CONFIG_KCSAN=y", "CONFIG_NET_NS=y", "CONFIG_NET_SCH_QFQ=y"),
    ("KCSAN_SANITIZE=n",),
)
BENCH = cache.TESTBED / "bench"
TORTURE = cache.REPO / "kernel" / "lab-tests"
PROCESSORS = 2
SKIP = 150  # accesses of a processor between two that are watched
DELAY_US = 200  # how long one waits that is watched, in the emulator's slow time
SECONDS_EACH_ROUND = 600  # with a wide margin

PLANTED = """
static unsigned int planted;

static struct sk_buff *planted_dequeue(struct Qdisc *sch)
{
	planted++;
	return paqm_dequeue(sch);
}

static int planted_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	planted++;
	return paqm_dump_stats(sch, d);
}

"""


@dataclass(frozen=True)
class Found:
    """What a guest's console tells."""

    rounds: int
    ended: bool
    races: list[str]  # one entry for each pair of functions
    complaints: list[str]
    watched: int  # accesses
    notices: int  # to senders: feedback was at work, too


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def plant(work: Path) -> None:
    """A race in a copy of the module: a word that dequeue and a listing count, each for itself."""
    source = work / "kernel" / "sch_paqm.c"
    text = source.read_text()
    operations = "static struct Qdisc_ops paqm_qdisc_ops"
    for old, new in (
        (operations, PLANTED.lstrip() + operations),
        (".dequeue = paqm_dequeue,", ".dequeue = planted_dequeue,"),
        (".dump_stats = paqm_dump_stats,", ".dump_stats = planted_dump_stats,"),
    ):
        if text.count(old) != 1:
            raise LabError(f"{source} has no single `{old}` to plant a race at")
        text = text.replace(old, new)
    source.write_text(text)


def programs(work: Path) -> list[Path]:
    """The traffic and the torture test, by the names that races.sh knows."""
    torture = TORTURE / "torture.c"
    parts = [path for path in sorted(TORTURE.glob("torture*.c")) if path != torture]
    made = {
        "races_load": cache.program(BENCH / "races_load.c"),
        "torture": cache.program(torture, *parts),
    }
    return [Path(shutil.copy(path, work / name)) for name, path in made.items()]


def read(console: str) -> Found:
    """Judges a console. A report of KCSAN begins with `BUG: KCSAN: data-race in A / B`."""
    lines = [line.rstrip("\r") for line in console.splitlines()]
    races = {match[1] for line in lines if (match := re.search(r"BUG: KCSAN: (.*)", line))}
    others = [  # on this console tc warns, too
        line
        for line in uml.kernel_reports(console)
        if "KCSAN" not in line and not line.startswith("Warning: ")
    ]
    others += [line for line in lines if line.startswith(("@fault", "not ok"))]
    rounds = [int(line.split()[1]) for line in lines if line.startswith("@round ")]
    notices = [int(line.split()[1]) for line in lines if line.startswith("@notices ")]
    watched = re.search(r"^setup_watchpoints: (\d+)", console, re.M)
    return Found(
        max(rounds, default=0),
        "@end" in lines,
        sorted(races),
        others,
        int(watched[1]) if watched else 0,
        sum(notices),
    )


def guest(modules: list[Path], args: argparse.Namespace, tree: Path, work: Path) -> Found:
    """Boots once; shows each round and each race as it comes."""
    said = {"ROUNDS": args.rounds, "OPS": args.ops, "SEED": args.seed, "SKIP": SKIP}
    values = "".join(f"{name}={value}\n" for name, value in said.items())
    first, rest = (BENCH / "races.sh").read_text().split("\n", 1)
    image, log = work / "initramfs.gz", work / "console.log"
    qemu.initramfs(image, [*modules, *programs(work)], f"{first}\n{values}{rest}")
    log.write_text("")
    append = f"console=ttyS0 loglevel=5 panic=-1 tsc=reliable no_timer_check norandmaps \
kcsan.udelay_task={DELAY_US} kcsan.udelay_interrupt={DELAY_US // 2}"
    command = [qemu.QEMU, "-M", "q35", "-cpu", "max", "-m", "1500", "-smp", str(PROCESSORS)]
    command += ["-nodefaults", "-display", "none", "-accel", "tcg,thread=multi", "-no-reboot"]
    command += ["-serial", f"file:{log}", "-kernel", str(tree / "arch/x86/boot/bzImage")]
    command += ["-initrd", str(image), "-append", append]
    shown = 0
    limit = time.monotonic() + SECONDS_EACH_ROUND * (args.rounds + args.ops / 1000 + 1)
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as machine:
        while machine.poll() is None:
            time.sleep(1)
            lines = log.read_text(errors="replace").split("\n")[:-1]
            for line in lines[shown:]:
                if line.startswith(("@round", "# ")) or "BUG:" in line or "not ok" in line:
                    say(f"races: {line.rstrip()}")
            shown = len(lines)
            if time.monotonic() > limit:
                machine.kill()
                raise LabError(f"the guest did not end; see {log}")
        if machine.returncode:
            assert machine.stderr is not None
            raise LabError(f"QEMU failed: {machine.stderr.read().decode().strip()[-300:]}")
    return read(log.read_text(errors="replace"))


def judge(found: Found, rounds: int) -> list[checks.Check]:
    source = "console.log"
    rounds_done = found.rounds if found.ended else 0
    return [
        checks.entry("races", "rounds", rounds_done, ">=", rounds, "", source),
        checks.entry("races", "races", len(found.races), "<=", 0, "pairs of functions", source),
        checks.entry("races", "complaints", len(found.complaints), "<=", 0, "lines", source),
        checks.entry("races", "accesses_watched", found.watched, ">=", 1000 * rounds, "", source),
        checks.entry("races", "notices", found.notices, ">=", rounds, "", source),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="paqm-lab races", description=__doc__.split("\n")[0])
    parser.add_argument(
        "--out", type=Path, default=Path("out/races"), help="for the results (%(default)s)"
    )
    parser.add_argument("--rounds", type=int, default=10, help="of races.sh (default: 10)")
    parser.add_argument("--ops", type=int, default=0, help="operations of the torture test first")
    parser.add_argument("--seed", type=int, default=1, help="of the torture test")
    parser.add_argument(
        "--selftest", action="store_true", help="plant a race; fails where it is not seen"
    )
    args = parser.parse_args()
    if args.rounds < 1 or args.ops < 0:
        parser.error("--rounds is at least 1, --ops at least 0")
    work = args.out.resolve()
    work.mkdir(parents=True, exist_ok=True)
    qemu.need_packages()
    tree = qemu.build_kernel(CONFIG, say)
    if args.selftest:
        modules = qemu.build_modules(tree, work / "planted", say, change=plant)
        found = guest([*modules.values()], args, tree, work)
        seen = any("planted" in race for race in found.races)
        print(f"{'ok' if seen else 'not ok'} races: the planted race is seen: {found.races}")
        return int(not seen)
    modules = qemu.build_modules(tree, work / "src", say)
    found = guest([*modules.values()], args, tree, work)
    result: dict[str, Any] = {
        "scenario": "races",
        "seed": args.seed,
        "processors": PROCESSORS,
        "operations": args.ops,
        "races": found.races,
        "complaints": found.complaints[:20],
        "checks": judge(found, args.rounds),
    }
    (work / "result.json").write_text(json.dumps(result, indent=1) + "\n")
    for text in (*found.races, *found.complaints[:20]):
        print(f"not ok races: {text}")
    return checks.print_table(work)


if __name__ == "__main__":
    sys.exit(main())
