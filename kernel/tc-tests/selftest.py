#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Shows that run.py notices what it is there to notice; runs inside a lab guest.

  paqm-lab exec kernel/tc-tests/selftest.py

Each planted fault must make a case fail, for the reason that was planted; the figures and ids of
README.md must be those of the cases.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import expand
import run

GOOD = {
    "id": "0000", "name": "planted", "category": ["selftest"],
    "plugins": {"requires": "nsPlugin"},
    "setup": ["$TC qdisc add dev $DUMMY root handle 1: paqm"],
    "cmdUnderTest": "$PAQM/send.py $DUMMY --count 3",
    "expExitCode": "0",
    "verifyCmd": "$TC -s -j qdisc show dev $DUMMY",
    "matchJSON": [{"kind": "paqm", "packets": 3}],
    "teardown": ["$TC qdisc del dev $DUMMY root"],
}
INIT = "nsenter -t 1 -n "  # outside of the case's namespace
# what is planted: changes to the good case, beginning of the line, words in it
FAULTS: list[tuple[str, run.Json, str, str]] = [
    ("nothing", {}, "ok 0000 ", "planted"),
    ("a wrong exit status", {"expExitCode": "1"}, "not ok 0000 ", "ended with 0, not 1"),
    ("a wrong value", {"matchJSON": [{"packets": 4}]}, "not ok 0000 ", ".packets: 3, wanted 4"),
    ("a missing key", {"matchJSON": [{"colour": 4}]}, "not ok 0000 ", ".colour is missing"),
    ("a missing element", {"matchJSON": [{}, {}]}, "not ok 0000 ", "1 elements, wanted 2"),
    ("an empty list wanted", {"matchJSON": []}, "not ok 0000 ", "1 elements, wanted 0"),
    ("a setup that fails", {"setup": ["false"]}, "not ok 0000 ", "setup `false` ended with 1"),
    ("a teardown that fails", {"teardown": ["false"]}, "not ok 0000 ", "teardown `false`"),
    ("a command that hangs", {"cmdUnderTest": "sleep 100"}, "not ok 0000 ", "more than 24 s"),
    ("a warning of the kernel",
     {"cmdUnderTest": "sh -c 'echo \"<7>WARNING: planted\" >/dev/kmsg'"},
     "not ok 0000 ", "the kernel complained: WARNING: planted"),
    ("a qdisc that is left",
     {"cmdUnderTest": INIT + "$TC qdisc add dev lo root paqm", "verifyCmd": "echo []",
      "matchJSON": []},
     "not ok 0000 ", "1 references to sch_paqm remain"),
    ("a condition that does not hold", {"dependsOn": "false"}, "skip 0000 ", "`false` failed"),
    ("a condition that cannot be judged", {"dependsOn": "no-such-tool"}, "not ok 0000 ",
     "condition `no-such-tool` ended with 127"),
]
IDLE = {"backlog_packets": 0, "sent_bytes": 0, "arrived_bytes": 0}
COUNTERS: list[tuple[str, run.Json, str | None]] = [
    ("nothing", {}, None),
    ("a length below 0", {"qlen": 2**32 - 1, "backlog": 5}, "below 0"),
    ("packets without bytes", {"qlen": 1}, "1 packets with 0 bytes"),
    ("bytes without packets", {"backlog": 2**32 - 1}, "0 packets with 4294967295 bytes"),
    ("packets in no class", {"qlen": 2, "backlog": 9}, "its classes have 0"),
    ("bytes from nowhere", {"media": IDLE | {"sent_bytes": 1}}, "media sent more than arrived"),
]


def readme() -> str | None:
    """Where README.md says something else than the cases, or None."""
    text = (run.HERE / "README.md").read_text()
    counts = {file.stem: len(expand.load(file)) for file in expand.files()}
    told = {name: int(n) for name, n in re.findall(r"^\| ([\w-]+) \| (\d+) \| ", text, re.M)}
    if told != counts:
        return f"the table has {told}, there are {counts}"
    if f"\n{sum(counts.values())} cases" not in text:
        return f"there are {sum(counts.values())} cases"
    known = {case["id"] for file in expand.files() for case in expand.load(file)}
    columns = re.findall(r"\| ([0-9a-f ]+) \|$", text, re.M)
    strange = {ident for column in columns for ident in column.split()} - known
    return f"no such case: {' '.join(sorted(strange))}" if strange else None


def main() -> int:
    wrong = 0

    def tell(good: bool, what: str, seen: str) -> None:
        nonlocal wrong
        wrong += not good
        print(f"ok {what}" if good else f"not ok {what}: {seen}", flush=True)

    for what, change, start, words in FAULTS:
        case = {**GOOD, **change}
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump([case], file)
            file.flush()
            done = subprocess.run(
                [sys.executable, run.HERE / "run.py", file.name], capture_output=True, text=True,
                check=False,
            )
        subprocess.run(
            "tc qdisc del dev lo root; rmmod sch_rlqos sch_dcbt sch_paqm paqm_feedback",
            shell=True, capture_output=True, check=False,
        )
        lines = [line for line in done.stdout.splitlines() if " 0000 " in line]
        good = len(lines) == 1 and lines[0].startswith(start) and words in lines[0]
        good = good and (done.returncode == 0) == (not start.startswith("not"))
        tell(good, f"planted in a case: {what}", done.stdout + done.stderr)
    for what, change, expected in COUNTERS:
        qdisc = {"kind": "paqm", "handle": "1:", "dev": "d", "qlen": 0, "backlog": 0,
                 "media": IDLE, "elastic": IDLE, **change}
        found = run.contradiction([qdisc])
        tell(found is None if expected is None else expected in (found or ""),
             f"planted in the counters: {what}", str(found))
    found = readme()
    tell(found is None, "README.md tells what there is", str(found))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
