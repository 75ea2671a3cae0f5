# SPDX-License-Identifier: GPL-2.0
"""Command line of paqm-lab."""

import argparse
import errno
import importlib
import os
import select
import shutil
import sys
import tempfile
from pathlib import Path

from paqm_lab import cache, kernel, uml
from paqm_lab.errors import LabError

# Experiments with a command line of their own: a module, by name or by place in the repository.
EXPERIMENTS = {
    "sweep": ("paqm_lab.sweep", "a scenario over axes, seeds and variants: what is missing is run"),
    "store": ("paqm_lab.store", "what sweeps have found: fill and query it"),
    "compare": ("paqm_lab.compare", "differences between two groups of runs, with intervals"),
    "plot": ("paqm_lab.plot", "diagrams of a sweep's runs"),
    "site": ("paqm_lab.site", "pages of a sweep's runs, to look at in a browser"),
    "multirouter": ("paqm_lab.multi.main", "several routers, and feedback that gets lost"),
    "head-to-head": ("paqm_lab.headtohead", "P-AQM beside the queues and senders of today"),
    "browser": ("paqm_lab.browser", "a browser with the extension, and without"),
    "browser-steps": ("paqm_lab.browser_steps", "how soon browsers follow maxBitrate"),
    "catalogue": ("paqm_lab.catalogue.main", "every published result, run again"),
    "laws": ("paqm_lab.laws.main", "the laws side by side, and where they are stable"),
    "rivals": ("paqm_lab.rivals.main", "P-AQM beside laws and queues published elsewhere"),
    "dcbt": ("paqm_lab.dcbt.main", "D-CBT and ChIPS: the published experiments"),
    "trace": ("paqm_lab.trace_lab", "many trace flows through one bottleneck"),
    "call": ("paqm_lab.call_lab", "a recorded call of two minutes and its report"),
    "call-live": ("paqm_lab.call_live", "the same in real time, with devices (see call-live.sh)"),
    "controllers": (
        "streamer/lab/controllers", "rate controllers of the literature against their bands"
    ),
    "interlace": ("streamer/lab/interlace", "what 2D-interlaced coding costs and saves"),
    "fixed-rate": ("streamer/lab/fixed_rate", "RA-SVBR beside libx264's own rate control"),
    "linkbound": ("paqm_lab.linkbound", "how long media would wait for a link, under an oracle"),
    "bench-encoder": ("streamer/lab/bench_encoder", "the encoder against x264 by itself"),
    "bench-qdisc": ("paqm_lab.bench_qdisc", "CPU cost of a packet beside other queues"),
    "races": ("paqm_lab.races", "data races of the modules, on several processors"),
    "foreign": ("paqm_lab.foreign", "user space for 32 bits and big endian, under QEMU"),
    "bench-lab": ("paqm_lab.bench_lab", "processor time of a run beside its codecs alone"),
    "bench-profile": ("paqm_lab.bench_profile", "where that cost arises, by function or line"),
}
# Modules with add_options() and main(args), by name.
SUITES = {
    "mixed": "followers beside senders that do not listen: cases, tables, checks",
    "regimes": "followers over links of many capacities and round trips: table, checks",
    "rmcat": "the test cases of RFC 8867 and RFC 8869: table, checks",
    "sfu": "a conference server of fifty viewers, by advice and without: table, checks",
}
KERNEL_FAULT = 3
TIMED_OUT = 124
READER_LEFT = 128 + 13  # as a program that SIGPIPE ends
# Of a place that is full, or not ours to write: the caller's affair, not a bug of ours.
FULL = {errno.ENOSPC, errno.EDQUOT}
UNUSABLE = FULL | {errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR,
                   errno.EISDIR, errno.EEXIST}


def say(text: str) -> None:
    """Progress goes to standard error: standard output is for results."""
    print(text, file=sys.stderr, flush=True)


def _echo(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _exec(args: argparse.Namespace) -> int:
    from paqm_lab import lab

    for name in args.dir:
        if not Path(name).is_dir():
            raise LabError(f"--dir {name}: there is no such directory")
    variant, release = "debug" if args.debug_kernel else "lab", args.kernel
    if not release and os.environ.get("PAQM_KERNEL"):
        variant, release = "lab", os.environ["PAQM_KERNEL"]
    house = lab.for_tests(say, variant, release, modules=not args.no_modules)
    made = args.job_dir or tempfile.mkdtemp(prefix="paqm-job-", dir=cache.scratch_dir())
    directory = Path(made).resolve()
    job = house.command(
        args.command,
        directory,
        [Path(name).resolve() for name in args.dir],
        seed=args.seed,
        # kmemleak's scans take long in a large memory.
        memory=args.memory or ("512M" if variant == "debug" else "1G"),
        real_time=args.real_time,
        timeout=args.timeout,
    )
    result = uml.run(house.kernel, job, _echo)
    if result.good and not args.job_dir:
        shutil.rmtree(directory)
    if not result.good:
        say(f"paqm-lab: {result.explain()}")
    if result.reports or (result.status is None and not result.timed_out):
        for line in result.reports[:10]:
            say(f"  {line}")
        return KERNEL_FAULT
    return TIMED_OUT if result.timed_out else result.status or 0


def _run(args: argparse.Namespace) -> int:
    # Here and below: what draws and computes takes a second to load, others need none of it.
    from paqm_lab import lab, run, scenario, trace_scenario
    from paqm_lab.multi import main, netscenario

    path, data = scenario.read(args.scenario)
    traces = trace_scenario.describes(data)
    if traces or netscenario.describes(data):
        if args.pcap or args.repeat_check:
            raise LabError(f"{path} is not of the dumbbell: no --pcap and no --repeat-check")
    if traces:
        flows = trace_scenario.check(path, data)
        out = Path(args.out or f"out/{flows.name}").resolve()
        seed = data["seed"] if args.seed is None else args.seed
        some = scenario.chosen_variants(path, data["variant"], args.variant)
        with lab.alone_in(out):
            trace_scenario.run(flows, some, seed, out, lab.ready(say), say)
        say(f"result: {out / 'result.json'}")
        return 0
    if netscenario.describes(data):
        network = netscenario.check(path, data)
        out = Path(args.out or f"out/{network.name}").resolve()
        seed = data["seed"] if args.seed is None else args.seed
        scenario.chosen_variants(path, data["variant"], args.variant)  # before `out` is made
        with lab.alone_in(out):
            return main.run_all(network, out, seed, args.variant, say)
    chosen = scenario.check(path, data)
    options = run.Options(
        out=Path(args.out or f"out/{chosen.name}").resolve(),
        seed=chosen.data["seed"] if args.seed is None else args.seed,
        variants=args.variant,
        keep_packets=args.pcap,
        repeat_check=args.repeat_check,
    )
    chosen.choose(args.variant)
    with lab.alone_in(options.out):
        run.run_scenario(chosen, options, say)
    return 0


def _checks(args: argparse.Namespace) -> int:
    from paqm_lab import checks

    return checks.print_table(Path(args.directory))


def _verify(args: argparse.Namespace) -> int:
    from paqm_lab import verify

    lines, same = verify.verify(Path(args.result), say)
    print("\n".join(lines))
    return 0 if same else 1


def _bundle(args: argparse.Namespace) -> int:
    from paqm_lab import bundle

    directory = Path(args.directory).resolve()
    file = Path(args.out or f"{directory.name}.zip")
    bundle.write(directory, file)
    say(f"bundle: {file}; `paqm-lab verify {file}` runs it again")
    return 0


def _report(args: argparse.Namespace) -> int:
    from paqm_lab import call_report, report

    directory = Path(args.directory)
    write = call_report.write if call_report.is_recording(directory) else report.write
    say(f"report: {write(directory)}")
    return 0


def _image(args: argparse.Namespace) -> int:
    from paqm_lab import image, lab

    if args.lock:
        image.lock(args.lock, say)
        return 0
    made = lab.ready(say, modules=False)
    print(made.image.root)
    return 0


def _experiment(name: str, words: list[str]) -> int:
    """Runs the main() of an experiment; its help and errors name it `paqm-lab NAME`."""
    where, _ = EXPERIMENTS[name]
    sys.argv = [f"paqm-lab {name}", *words]
    if "/" in where:
        sys.path.insert(0, str((cache.REPO / where).parent))
    return int(importlib.import_module(Path(where).name).main())


def _kernel(args: argparse.Namespace) -> int:
    if args.lock:
        kernel.lock(say)
        return 0
    print(kernel.ensure(args.variant, say, args.kernel).binary)
    return 0


def parser(command: str = "") -> argparse.ArgumentParser:
    """All commands; of SUITES only `command` has its options: the others take a second to load."""
    top = argparse.ArgumentParser(
        prog="paqm-lab", description="Runs real kernels, senders and receivers in virtual time."
    )
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    go = commands.add_parser(
        "run",
        help="run a scenario and write its report",
        description="Runs the variants of SCENARIO (a file, or a name from testbed/scenarios), "
        "analyses the logs, writes result.json and report.html.",
    )
    go.add_argument("scenario", metavar="SCENARIO")
    go.add_argument("--seed", type=uml.seed, metavar="N", help="instead of the scenario's own")
    go.add_argument("--out", metavar="DIR", help="for the results (default out/NAME)")
    go.add_argument("--variant", action="append", default=[], metavar="NAME", help="only this one")
    go.add_argument("--pcap", action="store_true", help="keep the router's packet logs")
    go.add_argument(
        "--repeat-check", action="store_true", help="run all twice; packet logs must be identical"
    )
    go.set_defaults(function=_run)

    check = commands.add_parser(
        "checks", help="print the checks of a result; status 1 if one fails"
    )
    check.add_argument("directory", metavar="DIR")
    check.set_defaults(function=_checks)

    true = commands.add_parser(
        "verify",
        help="run a result again and compare the packets; status 1 if they differ",
        description="Runs every variant in RESULT (a bundle, a result.json, or its directory) once "
        "more, with the scenario and seed that it holds, and compares the hashes of the packet "
        "logs. Says which versions differ from those of the result: with another version of a "
        "program that takes part the packets may differ.",
    )
    true.add_argument("result", metavar="RESULT")
    true.set_defaults(function=_verify)

    pack = commands.add_parser(
        "bundle",
        help="pack a result into one file that others can verify",
        description="Packs result.json, report.html and the lock of the image that the result was "
        "made on into one zip archive, for somebody else's `paqm-lab verify`.",
    )
    pack.add_argument("directory", metavar="DIR")
    pack.add_argument("--out", metavar="FILE", help="(default NAME-OF-DIR.zip)")
    pack.set_defaults(function=_bundle)

    again = commands.add_parser(
        "report", help="write the report of a result again, or that of a recorded call"
    )
    again.add_argument("directory", metavar="DIR")
    again.set_defaults(function=_report)

    run_in = commands.add_parser(
        "exec",
        help="run a command in a guest",
        description="Boots a guest with the project's kernel modules built, runs COMMAND in it as "
        "root and returns its exit status; 3 when the kernel reported a fault of its own, 124 when "
        "the time limit struck. The guest runs on the lab's image, with this project's programs "
        "built on it. It sees nothing of this machine but the clone, the cache and what --dir "
        "names; paths in COMMAND are those of this machine. In its environment: "
        "PAQM_KO_DIR (the .ko files), PAQM_BUILD (the Meson build directory), PAQM_REPO, PAQM_KDIR "
        "(kernel build tree), PAQM_JOB_DIR (console.log, output.log), TC_LIB_DIR. PAQM_KERNEL=X.Y "
        "in its own environment stands for --kernel X.Y without --debug-kernel.",
    )
    run_in.add_argument("--debug-kernel", action="store_true", help="KASAN, lockdep, kmemleak, ...")
    run_in.add_argument("--kernel", type=kernel.release, metavar="X.Y",
                        help="Debian's kernel of that release, from 6.1 on")
    run_in.add_argument("--real-time", action="store_true", help="native time, for CPU cost")
    run_in.add_argument("--no-modules", action="store_true", help="do not build the modules")
    run_in.add_argument("--seed", type=uml.seed, default=1, metavar="N",
                        help="seed of the run (%(default)s)")
    run_in.add_argument("--memory", type=uml.memory,
                        help="of the guest (default 1G, 512M with --debug-kernel)")
    run_in.add_argument("--timeout", type=uml.seconds, default=600.0, metavar="S",
                        help="wall seconds (%(default)g)")
    run_in.add_argument(
        "--job-dir", metavar="DIR", help="where to keep logs (default: in TMPDIR, if it fails)"
    )
    run_in.add_argument(
        "--dir", action="append", default=[], metavar="DIR",
        help="a directory that the guest may read and write, besides the clone",
    )
    run_in.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND [ARGUMENT...]")
    run_in.set_defaults(function=_exec)

    for name, what in SUITES.items():
        own = commands.add_parser(name, help=what)
        if name == command:
            module = importlib.import_module(f"paqm_lab.{name}")
            module.add_options(own)
            own.set_defaults(function=module.main)

    for name, (_, what) in EXPERIMENTS.items():
        commands.add_parser(name, help=what, add_help=False)

    build = commands.add_parser("kernel", help="fetch and build the lab's kernels")
    build.add_argument("variant", nargs="?", choices=sorted(kernel.FRAGMENTS), default="lab",
                       help="(%(default)s)")
    build.add_argument("--kernel", type=kernel.release, metavar="X.Y",
                       help="Debian's kernel of that release, from 6.1 on")
    build.add_argument(
        "--lock", action="store_true", help="instead: rewrite source.lock, for the newest source"
    )
    build.set_defaults(function=_kernel)

    guest = commands.add_parser(
        "image",
        help="make the guest's image and the programs in it",
        description="Unpacks the packages of testbed/image/packages.lock into the cache, builds "
        "this project's programs for them, and prints the image's directory.",
    )
    guest.add_argument(
        "--lock", nargs="?", const="all",
        choices=["all", "tests", "janus", "chromium", "browser", "firefox"],
        help="instead: rewrite the locks, for the newest of packages.txt and of the additions "
        "for tests, Janus and browsers (image.EXTRAS); or only that one",
    )
    guest.set_defaults(function=_image)
    return top


def _main() -> int:
    if not {"-h", "--help"} & set(sys.argv[1:]):
        cache.need_executable()
    first = sys.argv[1] if len(sys.argv) > 1 else ""
    if first in EXPERIMENTS:
        return _experiment(first, sys.argv[2:])
    args = parser(first).parse_args()
    if args.function is _exec and not args.command:
        raise LabError("exec: a command is missing")
    return int(args.function(args))


def _drop_output() -> None:
    """The rest of the output goes nowhere: Python would try it again at its end, and fail anew."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _reader_left() -> bool:
    """Has whoever read the output left, as `head` does? Then the rest of it goes nowhere."""
    if not sys.stdout:  # there was none
        return False
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        pass  # poll tells
    except OSError as err:
        _drop_output()
        raise LabError(f"standard output: {err.strerror}") from err
    pipe = select.poll()
    pipe.register(sys.stdout, 0)
    if not pipe.poll(0):
        return False
    _drop_output()
    return True


def _status() -> int:
    """How the command ended; what it complains of is told."""
    try:
        return _main()
    except LabError as err:
        say(f"paqm-lab: {err}")
        return 2
    except KeyboardInterrupt:
        say("paqm-lab: interrupted")
        return 130
    except BrokenPipeError:
        if not _reader_left():  # it was another pipe
            raise
        return READER_LEFT
    except OSError as err:
        # A write to a file that is open already tells no name: only then a full disk is known.
        if err.errno not in (UNUSABLE if err.filename else FULL):
            raise
        say(f"paqm-lab: {err.filename or 'a file that is being written'}: {err.strerror}")
        return 2


def main() -> int:
    status = _status()
    try:
        return READER_LEFT if _reader_left() else status
    except LabError as err:
        say(f"paqm-lab: {err}")
        return status or 2
