# SPDX-License-Identifier: GPL-2.0
"""Command line of paqm-lab."""

import argparse
import os
import sys
import tempfile
from pathlib import Path

from paqm_lab import cache, kernel, uml
from paqm_lab.errors import LabError

KERNEL_FAULT = 3
TIMED_OUT = 124


def say(text: str) -> None:
    """Progress goes to standard error: standard output is for results."""
    print(text, file=sys.stderr, flush=True)


def _echo(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _exec(args: argparse.Namespace) -> int:
    built = kernel.ensure("debug" if args.debug_kernel else "lab", say)
    if args.job_dir:
        directory = Path(args.job_dir).resolve()
    else:
        directory = Path(tempfile.mkdtemp(prefix="paqm-job-"))
    environment = {
        "PAQM_BUILD": str(cache.REPO / "build"),
        "PAQM_REPO": str(cache.REPO),
        "PAQM_JOB_DIR": str(directory),
        "PAQM_KDIR": str(built.tree),
        "TC_LIB_DIR": str(cache.REPO / "build" / "userspace" / "tc-paqm"),
        "TMPDIR": "/run/tmp",
        "HOME": "/run/tmp",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    if not args.no_modules:
        environment["PAQM_KO_DIR"] = str(kernel.build_modules(built, say))
    command = list(args.command)
    script = Path(command[0])
    if "/" in command[0] or script.exists():
        if not os.access(script, os.X_OK):
            raise LabError(f"{script} is not an executable file; chmod +x it or name its shell")
        command[0] = str(script.resolve())
    job = uml.Job(
        directory=directory,
        command=command,
        environment=environment,
        seed=args.seed,
        memory=args.memory,
        real_time=args.real_time,
        timeout=args.timeout,
    )
    result = uml.run(built, job, _echo)
    if not result.good:
        say(f"paqm-lab: {result.explain()}")
    if result.reports or (result.status is None and not result.timed_out):
        for line in result.reports[:10]:
            say(f"  {line}")
        return KERNEL_FAULT
    return TIMED_OUT if result.timed_out else result.status or 0


def _kernel(args: argparse.Namespace) -> int:
    for variant in args.variant or ["lab"]:
        built = kernel.ensure(variant, say)
        print(built.binary)
    return 0


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="paqm-lab", description="Runs real kernels, senders and receivers in virtual time."
    )
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    run_in = commands.add_parser(
        "exec",
        help="run a command in a guest",
        description="Boots a guest with the project's kernel modules built, runs COMMAND in it as "
        "root and returns its exit status; 3 when the kernel reported a fault of its own, 124 when "
        "the time limit struck. In its environment: PAQM_KO_DIR (the .ko files), PAQM_BUILD (the "
        "Meson build directory), PAQM_REPO, PAQM_KDIR (kernel build tree), PAQM_JOB_DIR "
        "(console.log, output.log), TC_LIB_DIR.",
    )
    run_in.add_argument("--debug-kernel", action="store_true", help="KASAN, lockdep, kmemleak, ...")
    run_in.add_argument("--real-time", action="store_true", help="native time, for CPU cost")
    run_in.add_argument("--no-modules", action="store_true", help="do not build the modules")
    run_in.add_argument("--seed", type=int, default=1, metavar="N")
    run_in.add_argument("--memory", default="1G", help="memory of the guest (default %(default)s)")
    run_in.add_argument("--timeout", type=float, default=600.0, metavar="S", help="wall seconds")
    run_in.add_argument("--job-dir", metavar="DIR", help="where to keep logs (default: in TMPDIR)")
    run_in.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND [ARGUMENT...]")
    run_in.set_defaults(function=_exec)

    build = commands.add_parser("kernel", help="fetch and build the lab's kernels")
    build.add_argument("variant", nargs="*", choices=sorted(kernel.FRAGMENTS), metavar="lab|debug")
    build.set_defaults(function=_kernel)
    return top


def main() -> int:
    args = parser().parse_args()
    if args.function is _exec and not args.command:
        say("paqm-lab exec: a command is missing")
        return 2
    try:
        return int(args.function(args))
    except LabError as err:
        say(f"paqm-lab: {err}")
        return 2
    except KeyboardInterrupt:
        say("paqm-lab: interrupted")
        return 130
