#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Runs the kernel's own cases for qdiscs with the kernel's own runner (tdc.py of
tools/testing/selftests/tc-testing) in lab guests, without and with the modules loaded.

  upstream.py [--kernel X.Y] [FILE.json ...]      out/tdc-kernel/result.json

What fails without the modules fails for reasons of its own, most often a tc that is older than the
kernel. A case that passes without and fails with them is a failure here. Prints `ok`, `not ok` per
case that was run both times, and the counts.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TextIO

HERE = Path(__file__).resolve().parent
TOP = HERE.parent.parent
OUT = TOP / "out" / "tdc-kernel"
TESTING = "tools/testing/selftests/tc-testing"
TAP = re.compile(r"^(ok|not ok) \d+ (\w{4}) - (.*)$", re.M)


def run_file(path: str, out: TextIO) -> None:
    """The cases of one file.

    tdc.py gives up at the first set-up that fails: go on behind it. When it dies of a case, it
    leaves no result at all: then one case at a time.
    """
    left = [case["id"] for case in json.loads(Path(path).read_text())]
    single = False
    while left:
        batch = left[:1] if single else left
        part = Path("part.tap")
        part.unlink(missing_ok=True)
        words = [sys.executable, "tdc.py", "-f", path, "-e", *batch, "--outfile", str(part)]
        subprocess.run(words, check=False)
        # what a failed set-up has left
        for device in Path("/sys/bus/netdevsim/devices").glob("netdevsim*"):
            ident = device.name.removeprefix("netdevsim")
            Path("/sys/bus/netdevsim/del_device").write_text(ident)
        text = part.read_text(errors="replace") if part.exists() else ""
        lines = [line for line in text.splitlines() if re.match(r"(not )?ok ", line)]
        ran = [line for line in lines if "previous setup failed" not in line]
        done = {match[2] for line in ran if (match := TAP.match(line))}
        if not done and not single:
            single = True
            continue
        if not done:
            ran, done = [f"not ok 0 {batch[0]} - tdc.py ended without a result"], {batch[0]}
        out.write("\n".join(ran) + "\n")
        out.flush()
        left = [ident for ident in left if ident not in done]


def in_guest(source: Path, files: list[str], load: bool, results: Path) -> int:
    """Inside the guest: a copy of the suite, as it writes beside itself."""
    work = Path(os.environ["TMPDIR"]) / "tc-testing"
    shutil.copytree(source, work)
    os.chdir(work)
    if load:
        for name in ("paqm_feedback", "sch_paqm"):
            subprocess.run(["insmod", f"{os.environ['PAQM_KO_DIR']}/{name}.ko"], check=True)
    paths = files or [str(p) for p in sorted(Path("tc-tests/qdiscs").glob("*.json"))]
    if not files and Path("tc-tests/infra/qdiscs.json").exists():
        paths.append("tc-tests/infra/qdiscs.json")
    with results.open("w") as out:
        for path in paths:
            run_file(path, out)
    if load:
        subprocess.run(["rmmod", "sch_paqm", "paqm_feedback"], check=True)
    return 0


def outcome(results: Path) -> dict[str, str]:
    """Case id and name -> ok, not ok, skip."""
    text = results.read_text(errors="replace") if results.exists() else ""
    found = {}
    for word, ident, name in TAP.findall(text):
        title, skip, _ = name.partition(" # skipped")
        found[f"{ident} {title.strip()}"] = "skip" if skip else word
    return found


def main() -> int:
    ap = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--kernel", metavar="X.Y", help="Debian's kernel of that release")
    ap.add_argument("--guest", nargs=3, help=argparse.SUPPRESS)
    ap.add_argument("files", nargs="*", metavar="FILE", help="below tc-testing; default: qdiscs")
    args = ap.parse_args()
    if args.guest:
        source, load, results = args.guest
        return in_guest(Path(source), args.files, load == "1", Path(results))
    release = ["--kernel", args.kernel] if args.kernel else []
    lab = str(TOP / "testbed" / "paqm-lab")
    built = subprocess.run([lab, "kernel", *release], stdout=subprocess.PIPE, text=True, check=True)
    source = (Path(built.stdout.strip()).parent / "source").resolve() / TESTING
    OUT.mkdir(parents=True, exist_ok=True)
    seen: dict[str, dict[str, str]] = {}
    faults = []
    for name, load in (("without", "0"), ("with", "1")):
        print(f"tdc-kernel: {name} the modules", flush=True)
        results = OUT / f"{name}.tap"
        results.unlink(missing_ok=True)
        words = [lab, "exec", "--timeout", "7200", *release, str(HERE / "upstream.py")]
        words += ["--guest", str(source), load, str(results), *args.files]
        with (OUT / f"{name}.log").open("w") as log:
            status = subprocess.run(
                words, cwd=TOP, stdout=log, stderr=subprocess.STDOUT, check=False
            ).returncode
        seen[name] = outcome(results)
        if status:
            faults.append(f"{name} the modules: status {status}, see {log.name}")
    broken = []
    for title, before in seen["without"].items():
        after = seen["with"].get(title, "missing")
        if before == "skip":
            continue
        good = after == before or after == "ok"
        if not good:
            broken.append(title)
        note = " (fails without the modules too)" if before == "not ok" and good else ""
        print(f"{'ok' if good else 'not ok'} {title}{note}")
    counts = {
        name: {word: sum(got == word for got in cases.values())
               for word in ("ok", "not ok", "skip")}
        for name, cases in seen.items()
    }
    known = sorted(title for title, word in seen["without"].items() if word == "not ok")
    result = {
        **counts, "fails_without": known, "broken": broken, "faults": faults,
        "checks": [{"name": "broken_by_the_modules", "value": len(broken) + len(faults),
                    "limit": 0, "unit": "", "pass": not broken and not faults}],
    }
    (OUT / "result.json").write_text(json.dumps(result, indent=1) + "\n")
    for fault in faults:
        print(f"not ok {fault}")
    for name, count in counts.items():
        print(f"{name} the modules: {count['ok']} passed, {count['not ok']} failed, "
              f"{count['skip']} skipped")
    return 1 if broken or faults or not seen["with"] else 0


if __name__ == "__main__":
    sys.exit(main())
