# SPDX-License-Identifier: GPL-2.0
"""The command line of paqm-trial."""

from __future__ import annotations

import argparse
import math
import os
import sys
from pathlib import Path

from paqm_trial import call, check, queue, report, router, store
from paqm_trial.store import Trouble, say

VERSION = "0.1.0"
HELP = f"""usage: paqm-trial COMMAND [OPTION...]

A field trial of live video over P-AQM; the handbook,
/usr/share/doc/paqm-trial/trial.md, and paqm-trial(1) guide you.

commands:
  check      is everything here that the trial needs?
  router     take turns with the queues of a device, and keep their statistics
  call       hold a call, and keep its figures
  report     one page and result.json from the folders of all machines
  end        end the trial on a router, and put back what was there
  forget     delete what is too old, one call, or all

options:
  --help     show this; `paqm-trial COMMAND --help` describes a command
  --version  show the version ({VERSION})
"""


def _days(text: str) -> int:
    days = int(text) if text.isdecimal() and len(text) < 6 else 0
    if not 1 <= days <= 3650:
        raise argparse.ArgumentTypeError("days, 1 to 3650")
    return days


def _baseline(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--baseline",
        choices=queue.BASELINES,
        default="fq_codel",
        metavar="|".join(queue.BASELINES),
        help="the queue to compare with (fq_codel)",
    )
    parser.add_argument(
        "--bandwidth",
        metavar="RATE",
        help="rate of both queues, 95 %% of what the link carries, such as 20mbit",
    )


def _folder(parser: argparse.ArgumentParser, default: Path) -> None:
    parser.add_argument(
        "--dir", type=Path, default=default, metavar="DIR", help=f"where the data are ({default})"
    )


def _keep(parser: argparse.ArgumentParser, default: int | None, shown: str) -> None:
    parser.add_argument(
        "--keep",
        type=_days,
        default=default,
        metavar="DAYS",
        help=f"delete data after this many days ({shown})",
    )


def build(command: str) -> argparse.ArgumentParser:
    about = COMMANDS[command][1]
    parser = argparse.ArgumentParser(
        prog=f"paqm-trial {command}", description=about, allow_abbrev=False
    )
    if command == "check":
        parser.add_argument(
            "device",
            nargs="?",
            metavar="DEVICE",
            help="on a router: the device towards the slow link",
        )
        _baseline(parser)
        parser.add_argument(
            "--dir",
            type=Path,
            metavar="DIR",
            help=f"where the data are, or will be ({router.HOME} of a router, else "
            f"{call.home_folder()})",
        )
        parser.add_argument("--json", action="store_true", help="print JSON")
    elif command == "router":
        parser.add_argument("device", metavar="DEVICE", help="the device towards the slow link")
        _baseline(parser)
        parser.add_argument(
            "--alternate",
            default="day",
            metavar="TURN",
            help="length of a turn: day, 4h, 90min, or none (day)",
        )
        parser.add_argument(
            "--arm",
            choices=("paqm", "baseline"),
            metavar="paqm|baseline",
            help="with --alternate none: this queue only (paqm)",
        )
        parser.add_argument("--seed", type=int, metavar="N", help="seed of the turns (drawn)")
        parser.add_argument(
            "--paqm",
            default="feedback icmp",
            metavar="WORDS",
            help="options of paqm, see tc-paqm(8) (feedback icmp)",
        )
        parser.add_argument(
            "--restore",
            type=Path,
            metavar="FILE",
            help="lines for tc that make the previous queue",
        )
        parser.add_argument(
            "--foreground", action="store_true", help="run here until Ctrl-C, not as a service"
        )
        parser.add_argument("--resume", action="store_true", help="continue the previous plan")
        _keep(parser, None, f"as before, {store.KEEP_DAYS} at first")
        _folder(parser, router.HOME)
    elif command == "call":
        parser.add_argument(
            "host", nargs="?", metavar="HOST", help="whom to call, or where to listen"
        )
        parser.add_argument("--listen", action="store_true", help="wait to be called")
        parser.add_argument(
            "--meet",
            metavar="HOST",
            help="meet the other end at this rendezvous; --listen still tells who is called",
        )
        parser.add_argument(
            "--secret",
            type=Path,
            required=True,
            metavar="FILE",
            help="file with the secret of both ends",
        )
        parser.add_argument(
            "--label", metavar="WORD", help="what the report calls this end (caller, callee)"
        )
        parser.add_argument(
            "--consent",
            choices=("on-paper",),
            metavar="on-paper",
            help="the form is signed: do not ask",
        )
        _keep(parser, store.KEEP_DAYS, str(store.KEEP_DAYS))
        _folder(parser, call.home_folder())
        parser.epilog = "Words after -- go to paqm-streamer call: -- --source screen"
    elif command == "report":
        parser.add_argument(
            "folders",
            nargs="+",
            type=Path,
            metavar="DIR",
            help="data folders of all machines, or a folder with them",
        )
        parser.add_argument(
            "--out",
            type=Path,
            default=Path("trial-report"),
            metavar="DIR",
            help="where report.html and result.json go (trial-report)",
        )
        parser.add_argument("--json", action="store_true", help="print result.json, too")
    elif command == "end":
        parser.add_argument("device", nargs="?", metavar="DEVICE", help="(all)")
        parser.add_argument(
            "--pause",
            action="store_true",
            help="put back the queue, keep the plan: router --resume goes on",
        )
        _folder(parser, router.HOME)
    else:
        parser.add_argument("--call", metavar="ID", help="this call only")
        parser.add_argument("--older", type=_days, metavar="DAYS", help="all older than this")
        parser.add_argument("--all", action="store_true", help="everything")
        _folder(parser, call.home_folder())
    return parser


def forget(args: argparse.Namespace) -> int:
    if bool(args.call) + (args.older is not None) + args.all > 1:
        raise Trouble("give only one of --call, --older and --all")
    gone = store.forget(args.dir, -math.inf if args.all else args.older, args.call)
    if args.all:
        for name in ("salt",):
            (args.dir / name).unlink(missing_ok=True)
    say(f"deleted: {', '.join(gone) if gone else 'nothing, everything is newer'}")
    return 0


COMMANDS = {
    "check": (
        check.start,
        "Is everything here that the trial needs? Changes nothing. With DEVICE: "
        "of a router; without: of a machine that calls.",
    ),
    "router": (router.start, "Take turns with the queues of a device, and keep their statistics."),
    "call": (call.start, "Hold a call, and keep its figures; picture and sound are not kept."),
    "report": (report.start, "One page and result.json from the folders of all machines."),
    "end": (router.end, "End the trial on a router, and put back what was there."),
    "forget": (forget, "Delete what has been kept long enough, one call, or all."),
}


def run(words: list[str]) -> int:
    if not words or words[0] in ("--help", "-h", "help"):
        print(HELP, end="")
        return 0 if words else 2
    if words[0] == "--version":
        print(f"paqm-trial {VERSION}")
        return 0
    if words[0] not in COMMANDS:
        say(f'there is no command "{words[0]}"; there are {", ".join(COMMANDS)}')
        return 2
    rest: list[str] = []
    if words[0] == "call" and "--" in words:
        at = words.index("--")
        words, rest = words[:at], words[at + 1 :]
    parser = build(words[0])
    args, unknown = parser.parse_known_args(words[1:])
    if unknown:
        hint = "; what is for paqm-streamer goes after --" if words[0] == "call" else ""
        parser.error(f"there is no option {' '.join(unknown)}{hint}")
    unset = object()
    parser.set_defaults(**dict.fromkeys(vars(args), unset))
    again = vars(parser.parse_known_args(words[1:])[0])
    args.given = {name for name, value in again.items() if value is not unset}
    args.rest = rest
    return COMMANDS[words[0]][0](args)


def main(words: list[str]) -> int:
    try:
        try:
            return run(words)
        finally:
            sys.stdout.flush()
    except Trouble as err:
        say(str(err))
        return 2
    except OSError as err:
        if not err.filename:  # the output's: the rest of it goes nowhere
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(err, BrokenPipeError):  # whoever read it has left
            return 1
        say(f"{err.filename or 'standard output'}: {err.strerror}")
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
