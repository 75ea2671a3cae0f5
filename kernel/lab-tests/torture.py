#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Runs the torture test in guests of the debug kernel; see torture.c.

  torture.py --ops 1000000 [--seed N]      out/torture/result.json
  torture.py --ops 1000000 --continue      the guests that are missing there, same sources only
  torture.py --selftest                    does it notice what it is there to notice?

Every guest does a part of the operations with a seed of its own, so that a failure repeats soon:
its seed, epoch and operation are printed, with the command that repeats it.
"""

import argparse
import hashlib
import json
import re
import select
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOP = HERE.parent.parent
LAB = TOP / "testbed" / "paqm-lab"
OUT = TOP / "out" / "torture"
TIMEOUT = 6 * 3600
STALL = 1800  # seconds without a word: a loop in the guest has stopped its time


def compile_program() -> Path:
    OUT.mkdir(parents=True, exist_ok=True)
    program = OUT / "torture"
    command = [LAB, "exec", "--no-modules"]  # for the guest's libraries
    command += ["gcc", "-std=gnu17", "-O2", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([*command, "-o", program, *sorted(HERE.glob("torture*.c"))], check=True)
    return program


def sources() -> str:
    """Names what is tested and the test: a continued run is of one state of both."""
    names = [
        path for top in (TOP / "core", TOP / "kernel", TOP / "testbed" / "kernel")
        for path in sorted(top.rglob("*"))
        if path.suffix in (".c", ".h", ".config", ".patch") and not path.name.endswith(".mod.c")
    ]
    return hashlib.sha256(b"".join(path.read_bytes() for path in names)).hexdigest()[:12]


def guest(lab: list[str], command: list[str], show: bool) -> tuple[int, str]:
    """Status and output of a command in a guest; shows its progress. Ends a guest that stalls."""
    words = [str(LAB), "exec", "--memory", "1G", "--timeout", str(TIMEOUT), *lab, *command]
    lines: list[str] = []
    with subprocess.Popen(
        words, cwd=TOP, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL, bufsize=0,  # select() knows nothing of buffered lines
    ) as process:
        assert process.stdout is not None
        while True:
            if not select.select([process.stdout], [], [], STALL)[0]:
                lines.append(f"not ok torture: nothing was done for {STALL} s: virtual time "
                             "stands still or the machine is far too busy\n")
                process.terminate()
                break
            line = process.stdout.readline().decode(errors="replace").replace("\r\n", "\n")
            if not line:
                break
            lines.append(line)
            if show:
                print(line, end="", flush=True)
    return process.returncode, "".join(lines)


def figures(output: str) -> dict[str, int]:
    found = re.findall(r"^(\{.*\})\r?$", output, re.M)
    parts: dict[str, int] = json.loads(found[-1]) if found else {}
    return parts


def guests_before(args: argparse.Namespace, kind: dict[str, str]) -> list[dict[str, int]]:
    """Figures of the guests of an earlier run that this one goes on from."""
    if not args.go_on or not (OUT / "result.json").exists():
        return []
    old = json.loads((OUT / "result.json").read_text())
    for key, value in kind.items():
        if old.get(key) != value:
            sys.exit(f"torture.py: the run in {OUT} was of {key} {old.get(key)}, this one is of "
                     f"{value}; start anew without --continue")
    if old["failed"]:
        sys.exit(f"torture.py: the run in {OUT} failed: {old['failed']}")
    parts: list[dict[str, int]] = old["guests"]
    return parts


def summed(parts: list[dict[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for part in parts:
        for key, value in part.items():
            if key == "most_qdiscs":
                total[key] = max(total.get(key, 0), value)
            elif key not in ("seed", "first_epoch"):
                total[key] = total.get(key, 0) + value
    return total


def torture(args: argparse.Namespace) -> int:
    program = str(compile_program())
    lab = ([] if args.lab_kernel else ["--debug-kernel"]) + (
        ["--kernel", args.kernel] if args.kernel else []
    )
    kind = {"kernel": "lab" if args.lab_kernel else "debug", "release": args.kernel or "newest",
            "sources": sources()}
    parts = guests_before(args, kind)
    failed, total = "", summed(parts)
    while (done := total.get("operations", 0)) < args.ops and not failed:
        seed = max([part["seed"] for part in parts], default=args.seed - 1) + 1
        ops = min(args.guest_ops, args.ops - done)
        print(f"torture: {done} of {args.ops} operations done, seed {seed}", flush=True)
        begin = time.monotonic()
        status, output = guest(lab, [program, "--seed", str(seed), "--ops", str(ops)], True)
        part = figures(output)
        if status or not part:
            wrong = re.search(r"^not ok .*", output, re.M)
            failed = wrong[0] if wrong else f"not ok torture: seed {seed}: status {status}"
        if part:
            parts.append(part | {"wall_s": round(time.monotonic() - begin)})
        total = summed(parts)
        done = total.get("operations", 0)
        checks = [
            {"name": "operations", "value": done, "limit": args.ops, "unit": "",
             "pass": done >= args.ops},
            {"name": "reports", "value": int(bool(failed)), "limit": 0, "unit": "",
             "pass": not failed},
        ]
        text = json.dumps({**kind, **total, "failed": failed, "checks": checks, "guests": parts},
                          indent=1)
        (OUT / "result.json").write_text(text + "\n")
    print(failed or f"ok torture: {done} operations, {total['accepted']} accepted, no report; "
          f"{OUT / 'result.json'}")
    return 1 if failed else 0


@dataclass(frozen=True)
class Plant:
    """A fault put into a copy of the module: `hook` of the qdisc runs `code` first."""

    name: str
    hook: str
    code: str
    seen: str  # in what the guest says
    outside: str = ""


PLANTS = [
    Plant("a write behind an object", "change",
          "u8 *p = kmalloc(24, GFP_KERNEL); if (p) { OPTIMIZER_HIDE_VAR(p); p[24] = 1; kfree(p); }",
          r"KASAN: slab-out-of-bounds"),
    Plant("a read of what was freed", "change",
          "u8 *p = kmalloc(24, GFP_KERNEL); u8 v; kfree(p); OPTIMIZER_HIDE_VAR(p); "
          "v = READ_ONCE(*p); (void)v;",
          r"KASAN: slab-use-after-free"),
    Plant("memory that is forgotten", "change", "kmalloc(3000, GFP_KERNEL);",
          r"memory that nothing points to"),
    Plant("two locks in both orders", "change",
          "spin_lock_bh(&a); spin_lock(&b); spin_unlock(&b); spin_unlock_bh(&a); "
          "spin_lock_bh(&b); spin_lock(&a); spin_unlock(&a); spin_unlock_bh(&b);",
          r"possible circular locking|lock inversion",
          "static DEFINE_SPINLOCK(a); static DEFINE_SPINLOCK(b);"),
    Plant("sleeping under a lock", "change", "sch_tree_lock(sch); might_sleep(); "
          "sch_tree_unlock(sch);", r"sleeping function called"),
    Plant("a packet too many in the length", "dequeue",
          "static u32 n; if (sch->q.qlen && ++n % 50 == 0) sch->q.qlen++;",
          r"not ok torture: .*(its classes have|packets without bytes|stays after)"),
    Plant("a reference that is kept", "change", "__module_get(THIS_MODULE);",
          r"cannot be unloaded"),
    Plant("a warning", "reset", "WARN_ON_ONCE(1);", r"WARNING: "),
    Plant("an index behind an array", "change",
          "static u8 table[4]; u32 n = 4; OPTIMIZER_HIDE_VAR(n); table[n] = 1;",
          r"UBSAN: array-index-out-of-bounds|KASAN: global-out-of-bounds"),
]
HOOKS = {
    "change": ("int", "struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack",
               "sch, opt, extack"),
    "dequeue": ("struct sk_buff *", "struct Qdisc *sch", "sch"),
    "reset": ("void", "struct Qdisc *sch", "sch"),
}


def plant(kind: Plant, home: Path) -> None:
    """Copies the sources into `home` and puts the fault in front of a function of the qdisc."""
    shutil.rmtree(home, ignore_errors=True)
    for name in ("kernel", "core"):
        shutil.copytree(TOP / name, home / name, ignore=shutil.ignore_patterns("*.o", "*.ko"))
    source = home / "kernel" / "sch_paqm.c"
    text = source.read_text()
    returns, parameters, names = HOOKS[kind.hook]
    hook = f".{kind.hook} = paqm_{kind.hook},"
    anchor = "static struct Qdisc_ops paqm_qdisc_ops"
    if text.count(hook) != 1 or text.count(anchor) != 1:
        sys.exit(f"torture.py: {source} has no single `{hook}` and `{anchor}` to plant a fault at")
    leave = "" if returns == "void" else "return "
    function = (
        f"{kind.outside}\nstatic {returns} planted_{kind.hook}({parameters})\n"
        f"{{\n\t{{ {kind.code} }}\n\t{leave}paqm_{kind.hook}({names});\n}}\n\n"
    )
    text = text.replace(hook, hook.replace("paqm_", "planted_"))
    source.write_text(text.replace(anchor, function + anchor))


def selftest() -> int:
    program = str(compile_program())
    done = subprocess.run([LAB, "kernel", "debug"], stdout=subprocess.PIPE, text=True, check=True)
    tree = Path(done.stdout.split()[-1]).parent
    wrong = 0
    for kind in PLANTS:
        home = OUT / "planted"
        plant(kind, home)
        make = ["make", "-C", str(tree), "ARCH=um", f"M={home}/kernel", "modules"]
        make += ["KCFLAGS=-Wno-error"]
        built = subprocess.run(make, capture_output=True, text=True, check=False)
        if built.returncode:
            sys.exit(f"torture.py: {kind.name}: the module cannot be built: {built.stderr[-500:]}")
        ko = f"PAQM_KO_DIR={home}/kernel"
        command = ["env", ko, program, "--ops", "2000"]
        status, output = guest(["--debug-kernel", "--no-modules"], command, False)
        good = status != 0 and re.search(kind.seen, output) is not None
        wrong += not good
        print(f"ok planted: {kind.name}" if good else
              f"not ok planted: {kind.name}: status {status}: {output[-300:]}", flush=True)
    shutil.rmtree(OUT / "planted", ignore_errors=True)
    return 1 if wrong else 0


def main() -> int:
    ap = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--ops", type=int, default=20000)
    ap.add_argument("--seed", type=int, default=1, help="of the first guest")
    ap.add_argument("--guest-ops", type=int, default=50000, help="operations of one guest")
    ap.add_argument("--continue", dest="go_on", action="store_true",
                    help="go on from out/torture/result.json")
    ap.add_argument("--lab-kernel", action="store_true", help="the quick kernel without checkers")
    ap.add_argument("--kernel", metavar="X.Y", help="Debian's kernel of that release")
    ap.add_argument("--selftest", action="store_true", help="plant faults, see each one noticed")
    args = ap.parse_args()
    return selftest() if args.selftest else torture(args)


if __name__ == "__main__":
    sys.exit(main())
