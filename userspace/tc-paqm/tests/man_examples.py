#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Runs the examples of tc-paqm(8) and compares what comes out with what the page shows.

Numbers may differ, words and layout may not. With --update the output is written into the page.
A comment before each example says in what situation it is run:

  .\\" example: fresh         no qdisc
  .\\" example: continued     what the example before left
  .\\" example: busy          8 Mbit/s, one RTP flow for 5 s, two TCP flows for 3 s
  .\\" example: uncongested   the same senders, no shaper
  ... needs NAME...          only where these files (of the BPF example) or programs are there

Usage, as root inside a lab guest: paqm-lab exec userspace/tc-paqm/tests/man_examples.py [--update]
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path

import lab_tc
from trial import Program

DEV = "eth0"
WIDTH = 67
EXAMPLE = re.compile(
    r'^\.\\" example: (?P<words>.*)\n\.nf\n\.RS 4\n(?P<body>(?:.*\n)*?)\.RE\n\.fi$', re.M
)
UNIT = r"(?:[KMG]?bit|[mu]?s|[bp%])?"
NUMBER = re.compile(
    rf"(?<![\w:.])(?:[0-9a-f]{{16}}|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?{UNIT})(?![\w:])|:\d{{4,5}}\b"
)
SENDERS: list[Program] = []


@dataclass
class Step:
    command: str
    output: list[str]


def unroff(line: str) -> str:
    return line.removeprefix("\\&").replace("\\-", "-").replace("\\e", "\\").replace("\\\\", "\\")


def roff(line: str) -> str:
    line = line.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + line if line.startswith((".", "'")) else line


def steps(body: str) -> list[Step]:
    """Commands of an example and the output after each."""
    found: list[Step] = []
    for raw in body.splitlines():
        line = unroff(raw)
        if line.startswith("# "):
            found.append(Step(line[2:], []))
        elif found and not found[-1].output and found[-1].command.endswith("\\"):
            found[-1].command += "\n" + line
        elif found:
            found[-1].output.append(line)
        else:
            raise SystemExit(f"man_examples: output without a command: {line}")
    return found


def fold(lines: list[str]) -> list[str]:
    """Long lines as the page shows them."""
    out: list[str] = []
    for line in lines:
        out += textwrap.wrap(
            line,
            WIDTH,
            subsequent_indent=" " * 6,
            break_long_words=False,
            drop_whitespace=True,
            break_on_hyphens=False,
        ) or [""]
    while out and not out[-1]:
        out.pop()
    return out


def shape(lines: list[str]) -> list[str]:
    """The words of an output, without its numbers and its line breaks."""
    return NUMBER.sub("#", " ".join(lines)).split()


def traffic() -> None:
    """2.5 idle seconds, 2 s of one RTP flow of 2 Mbit/s, 3 s of two TCP flows beside it."""
    SENDERS.append(Program("v", "iperf3", "-s", "-1"))
    time.sleep(2.5)
    SENDERS.append(lab_tc.send_media(60))
    time.sleep(2)
    SENDERS.append(Program("s", "iperf3", *"-c 10.0.2.2 -t 60 -P 2 -M 1400".split()))
    time.sleep(3)


def prepare(situation: str) -> None:
    if situation == "continued":
        return
    for sender in SENDERS:
        sender.kill()
    for sender in SENDERS:
        sender.wait()
    SENDERS.clear()
    subprocess.run(["tc", "qdisc", "del", "dev", DEV, "root"], stderr=subprocess.DEVNULL)
    if situation == "busy":
        lab_tc.must("add", "handle 1: bandwidth 8mbit feedback icmp router-id 2a")
        traffic()
    elif situation == "uncongested":
        lab_tc.must("add", "handle 1:")
        # the bottleneck is elsewhere
        words = "tc qdisc add dev veth-s root netem rate 20mbit limit 100"
        lab_tc.sh("ip", "netns", "exec", "s", *words.split())
        traffic()
        time.sleep(5)
    elif situation != "fresh":
        raise SystemExit(f"man_examples: no situation {situation}")


def run(step: Step, place: Path) -> tuple[int, list[str]]:
    result = subprocess.run(
        ["bash", "-c", step.command],
        cwd=place,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return result.returncode, fold([line.rstrip() for line in result.stdout.splitlines()])


def missing(names: list[str], place: Path) -> list[str]:
    return [name for name in names if not (place / name).exists() and not shutil.which(name)]


def play(page: str, update: bool, place: Path) -> tuple[str, int]:
    """The page with new output, and how many examples differ or fail."""
    bad = 0
    for number, found in enumerate(list(EXAMPLE.finditer(page)), start=1):
        situation, _, needs = found["words"].partition(" needs ")
        name = f"example {number} ({found['words']})"
        prepare(situation)
        if lack := missing(needs.split(), place):
            print(f"skip {name}: no {', '.join(lack)}")
            continue
        body = ""
        wrong: list[str] = []
        for step in steps(found["body"]):
            status, output = run(step, place)
            body += "\n".join(roff(line) for line in ("# " + step.command).split("\n")) + "\n"
            body += "".join(roff(line) + "\n" for line in output)
            mistake = "expected" in " ".join(output)
            if status != mistake:
                wrong.append(f"{step.command}: ended with {status}: {' '.join(output)}")
            elif shape(output) != shape(step.output):
                wrong.append(f"{step.command}: the page does not show what comes out")
                wrong += [f"  page: {line}" for line in step.output]
                wrong += [f"  now:  {line}" for line in output]
        failed = [line for line in wrong if ": ended with " in line]
        if update and not failed:
            page = page.replace(found[0], found[0].replace(found["body"], body), 1)
            wrong = []
        print(f"{'not ok' if wrong else 'ok'} {name}")
        print("".join(f"    {line}\n" for line in wrong), end="")
        bad += bool(wrong)
    return page, bad


def main() -> int:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    ap.add_argument("--update", action="store_true", help="write the output into the page")
    args = ap.parse_args()
    lab_tc.trial.load_modules()
    lab_tc.DEV = DEV
    lab_tc.lay_out()
    page = lab_tc.MAN.read_text()
    blocks = re.findall(r"^(.*)\n\.nf$", page, re.M)
    for line in blocks:
        if not line.startswith('.\\" example: '):
            raise SystemExit(f"man_examples: an example after {line!r} does not say how to run it")
    place = Path(os.environ["TC_LIB_DIR"]) / "bpf"
    page, bad = play(page, args.update, place if place.is_dir() else Path("/"))
    prepare("fresh")
    if args.update:
        lab_tc.MAN.write_text(page)
    bad += len(lab_tc.wrong)
    print("".join(f"not ok {line}\n" for line in lab_tc.wrong), end="")
    print(f"{len(blocks)} examples, {bad} wrong")
    return 1 if bad or not blocks else 0


if __name__ == "__main__":
    sys.exit(main())
