# SPDX-License-Identifier: GPL-2.0
"""The modules on several processors, under three kernels that check themselves: `make races`.

User-Mode Linux, which all other guests run, has one processor. Here QEMU emulates several, and in
the guest testbed/bench/races.sh changes, lists, replaces and takes away qdiscs under traffic, and
the torture test's operations run beside processes that send. The kernels:

* kcsan: the concurrency sanitizer (Documentation/dev-tools/kcsan.rst) stops one processor at a
  sampled access of ours and tells when another one touches the same word meanwhile, without an
  order between the two. Only modules are instrumented, so what is found is ours.
* kasan: use after free and out of bounds, wrong order of locks, leaks.
* rt: a real-time kernel (PREEMPT_RT), whose spinlocks sleep, with the checkers of locks.

What was found hangs on chance and on the time that is given: a run without a report has found
nothing, which is not that nothing is.
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
from functools import partial
from pathlib import Path
from typing import Any

from paqm_lab import cache, checks, qemu, uml
from paqm_lab.errors import LabError

BENCH = cache.TESTBED / "bench"
TORTURE = cache.REPO / "kernel" / "lab-tests"
PROCESSORS = 2
SKIP = 150  # accesses of a processor between two that are watched
DELAY_US = 200  # how long one waits that is watched, in the emulator's slow time
SECONDS_EACH_ROUND = 1200  # with a wide margin

# What is planted beside dequeue and a listing: a word that both count, each for itself; memory
# that a listing frees and dequeue still reads; an allocation that may sleep where dequeue may not
# (under PREEMPT_RT, too: interrupts are off).
PLANTED_RACE = """
static unsigned int planted;

static void planted_in_dequeue(void)
{
	planted++;
}

static void planted_in_listing(void)
{
	planted++;
}
"""
PLANTED_FREE = """
static unsigned int *planted;

static void planted_in_dequeue(void)
{
	unsigned int *seen = READ_ONCE(planted);

	if (seen)
		WRITE_ONCE(*seen, 1);
}

static void planted_in_listing(void)
{
	unsigned int *fresh = kmalloc(sizeof(*fresh), GFP_ATOMIC);

	WRITE_ONCE(planted, fresh);
	kfree(fresh);
}
"""
PLANTED_SLEEP = """
static void planted_in_dequeue(void)
{
	local_irq_disable();
	kfree(kmalloc(64, GFP_KERNEL));
	local_irq_enable();
}

static void planted_in_listing(void)
{
}
"""
PLANTED_CALLS = """
static struct sk_buff *planted_dequeue(struct Qdisc *sch)
{
	planted_in_dequeue();
	return paqm_dequeue(sch);
}

static int planted_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	planted_in_listing();
	return paqm_dump_stats(sch, d);
}

"""


@dataclass(frozen=True)
class Kernel:
    """One of the kernels, and the fault that it must see."""

    config: qemu.Config
    planted: str
    sign: str  # of what is planted, in a report
    options: str  # for its command line


def _config(
    names: tuple[str, ...], vital: tuple[str, ...], make: tuple[str, ...] = ()
) -> qemu.Config:
    files = tuple(f"bench/{name}.config" for name in ("x86", "smp", *names))
    needed = ("CONFIG_SMP=y", "CONFIG_NET_NS=y", "CONFIG_NET_SCH_QFQ=y")
    return qemu.Config(files, (*needed, *(f"CONFIG_{option}=y" for option in vital)), make)


KERNELS = {
    "kcsan": Kernel(
        _config(("kcsan",), ("KCSAN",), ("KCSAN_SANITIZE=n",)),
        PLANTED_RACE,
        r"data-race in .*planted",
        f"kcsan.udelay_task={DELAY_US} kcsan.udelay_interrupt={DELAY_US // 2}",
    ),
    "kasan": Kernel(
        _config(("locks", "kasan"), ("KASAN", "PROVE_LOCKING", "DEBUG_KMEMLEAK")),
        PLANTED_FREE,
        r"KASAN: slab-use-after-free in planted",
        "kasan_multi_shot",
    ),
    "rt": Kernel(
        _config(("locks", "rt"), ("PREEMPT_RT", "PROVE_LOCKING", "DEBUG_ATOMIC_SLEEP")),
        PLANTED_SLEEP,
        r"BUG: sleeping function called from invalid context",
        "",
    ),
}


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


def plant(work: Path, planted: str) -> None:
    """A fault in a copy of the module, in what dequeue and a listing call."""
    source = work / "kernel" / "sch_paqm.c"
    text = source.read_text()
    operations = "static struct Qdisc_ops paqm_qdisc_ops"
    for old, new in (
        (operations, (planted + PLANTED_CALLS).lstrip() + operations),
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


def guest(
    modules: list[Path], args: argparse.Namespace, tree: Path, work: Path, until: str = ""
) -> Found:
    """Boots once, to its end or to a line with `until`; shows each round and report as it comes."""
    said = {
        "KERNEL": args.kernel,
        "ROUNDS": args.rounds,
        "OPS": args.ops,
        "SEED": args.seed,
        "SKIP": SKIP,
    }
    values = "".join(f"{name}={value}\n" for name, value in said.items())
    first, rest = (BENCH / "races.sh").read_text().split("\n", 1)
    image, log = work / "initramfs.gz", work / "console.log"
    qemu.initramfs(image, [*modules, *programs(work)], f"{first}\n{values}{rest}")
    log.write_text("")
    append = f"console=ttyS0 loglevel=5 panic=-1 tsc=reliable no_timer_check norandmaps \
{KERNELS[args.kernel].options}"
    command = [qemu.QEMU, "-M", "q35", "-cpu", "max", "-m", "2000", "-smp", str(PROCESSORS)]
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
            if until and any(re.search(until, line) for line in lines[shown:]):
                machine.kill()
                return read("\n".join(lines))
            shown = len(lines)
            if time.monotonic() > limit:
                machine.kill()
                raise LabError(f"the guest did not end; see {log}")
        if machine.returncode:
            assert machine.stderr is not None
            raise LabError(f"QEMU failed: {machine.stderr.read().decode().strip()[-300:]}")
    return read(log.read_text(errors="replace"))


def judge(found: Found, rounds: int, kernel: str = "kcsan") -> list[checks.Check]:
    source = "console.log"
    rounds_done = found.rounds if found.ended else 0
    wanted = [
        ("rounds", rounds_done, ">=", rounds, ""),
        ("complaints", len(found.complaints), "<=", 0, "lines"),
        ("notices", found.notices, ">=", rounds, ""),
    ]
    if kernel == "kcsan":
        wanted += [
            ("races", len(found.races), "<=", 0, "pairs of functions"),
            ("accesses_watched", found.watched, ">=", 1000 * rounds, ""),
        ]
    return [checks.entry(kernel, *parts, source) for parts in wanted]


def main() -> int:
    parser = argparse.ArgumentParser(prog="paqm-lab races", description=__doc__.split("\n")[0])
    parser.add_argument(
        "--out", type=Path, default=Path("out/races"), help="for the results (%(default)s)"
    )
    parser.add_argument("--rounds", type=int, default=10, help="of races.sh (default: 10)")
    parser.add_argument("--ops", type=int, default=0, help="operations of the torture test first")
    parser.add_argument("--seed", type=int, default=1, help="of the torture test")
    parser.add_argument("--kernel", choices=KERNELS, default="kcsan", help="(default: kcsan)")
    parser.add_argument(
        "--selftest", action="store_true", help="plant a fault; fails where it is not seen"
    )
    args = parser.parse_args()
    if args.rounds < 1 or args.ops < 0:
        parser.error("--rounds is at least 1, --ops at least 0")
    work = args.out.resolve()
    work.mkdir(parents=True, exist_ok=True)
    qemu.need_packages()
    kernel = KERNELS[args.kernel]
    tree = qemu.build_kernel(kernel.config, say)
    if args.selftest:
        change = partial(plant, planted=kernel.planted)
        modules = qemu.build_modules(tree, work / "planted", say, change=change)
        found = guest([*modules.values()], args, tree, work, until=kernel.sign)
        lines = {*found.races, *found.complaints}
        seen = sorted(line for line in lines if re.search(kernel.sign, line))
        print(f"{'ok' if seen else 'not ok'} races: what is planted is seen: {seen[:3]}")
        return int(not seen)
    modules = qemu.build_modules(tree, work / "src", say)
    found = guest([*modules.values()], args, tree, work)
    result: dict[str, Any] = {
        "scenario": "races",
        "kernel": args.kernel,
        "seed": args.seed,
        "processors": PROCESSORS,
        "operations": args.ops,
        "races": found.races,
        "complaints": found.complaints[:20],
        "checks": judge(found, args.rounds, args.kernel),
    }
    (work / "result.json").write_text(json.dumps(result, indent=1) + "\n")
    for text in (*found.races, *found.complaints[:20]):
        print(f"not ok races: {text}")
    return checks.print_table(work)


if __name__ == "__main__":
    sys.exit(main())
