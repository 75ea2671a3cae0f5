#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Runs cases of the kernel's tdc format inside a lab guest.

  paqm-lab exec [--debug-kernel] kernel/tc-tests/run.py [--only WORD] [FILE ...]

Each case gets a network namespace with a veth end, a dummy and an ifb, as with tdc's nsPlugin;
commands are run as tdc runs them, but for our own helpers in Python, which would take ten times as
long as processes. Prints `ok ID NAME`, `not ok ID NAME: why` or `skip ID NAME: why` and a summary;
status 1 if a case failed.

Beyond what tdc looks at, a case fails when the kernel complained of itself meanwhile, when the
counters of any qdisc contradict themselves before the teardown, or when something still holds the
module after the namespace is gone. On a kernel with kmemleak the whole run is scanned at the end.
"""

import argparse
import contextlib
import ctypes
import io
import json
import os
import re
import struct
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

import expand
import rtnl
import send

HERE = Path(__file__).resolve().parent
TIMEOUT = 24  # seconds of a command, as in tdc
FAULT = re.compile(
    r"BUG: |BUG at |WARNING: |Kernel panic|Oops|kernel mode fault|UBSAN: |refcount_t: |ODEBUG: "
    r"|possible (recursive|circular|irq lock)|inconsistent lock state|suspicious RCU usage"
    r"|DEBUG_LOCKS_WARN|INFO: task .* blocked|soft lockup|detected .*stall|negative backlog",
    re.IGNORECASE,
)
PLAIN = re.compile(r"[\w ./:,%@=+-]+")
# Programs that are called here instead of started.
OWN: dict[str, Callable[[list[str]], int]] = {
    f"{HERE}/send.py": send.main, f"{HERE}/rtnl.py": rtnl.main,
}
LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET, MS_BIND, MNT_DETACH = 0x40000000, 4096, 2
RTM_NEWLINK, RTM_DELLINK, IFF_UP = 16, 17, 1
IFLA_IFNAME, IFLA_LINKINFO, IFLA_NET_NS_FD = 3, 18, 28
IFLA_INFO_KIND = VETH_INFO_PEER = 1
IFLA_INFO_DATA = 2
TAINT_FAULT = 1 << 7 | 1 << 9  # the kernel died or warned
Json = Any


class Wrong(Exception):
    """A case failed; the text says why."""


class KernelLog:
    """What the kernel said since the last look."""

    def __init__(self) -> None:
        self.fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
        os.lseek(self.fd, 0, os.SEEK_END)
        self.taint = self._taint()

    @staticmethod
    def _taint() -> int:
        return int(Path("/proc/sys/kernel/tainted").read_text()) & TAINT_FAULT

    def fault(self) -> str | None:
        """The first complaint, or None. A warning that is told once still taints."""
        found = None
        while True:
            try:
                line = os.read(self.fd, 8192).decode(errors="replace")
            except BlockingIOError:
                break
            except BrokenPipeError:  # overwritten before it was read
                continue
            text = line.partition(";")[2].splitlines()[0]
            if not found and FAULT.search(text):
                found = text
        taint = self._taint()
        if not found and taint & ~self.taint:
            found = f"taint {taint}"
        self.taint = taint
        return found


def system(name: str, *words: Any) -> None:
    """A system call that Python does not have."""
    if getattr(LIBC, name)(*words):
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")


def device(name: str, kind: str = "", more: bytes = b"", up: bool = True) -> bytes:
    """The body of a message about a device: brought up unless it is to be down or deleted."""
    body = struct.pack("=BxHiII", 0, 0, 0, IFF_UP * up, IFF_UP)
    body += rtnl.attribute(IFLA_IFNAME, name.encode() + b"\0")
    if kind:
        info = rtnl.attribute(IFLA_INFO_KIND, kind.encode())
        body += rtnl.attribute(IFLA_LINKINFO, info + rtnl.attribute(IFLA_INFO_DATA, more))
    return body


def change(kind: int, flags: int, body: bytes) -> int:
    """Asks the kernel for a change of a device in the namespace of this process; the errno."""
    link = rtnl.Netlink()
    with link.sock:
        return link.ack(link.request(kind, flags | rtnl.NLM_ACK, body), {})[0]


def in_process(words: list[str]) -> tuple[int, str]:
    """Status and output of a program that is called."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = OWN[words[0]](words[1:])
        except SystemExit as end:  # by argparse
            status = int(end.code or 0)
        except (AssertionError, LookupError, OSError, ValueError):
            traceback.print_exc()
            status = 1
    return status, status and err.getvalue() or out.getvalue()


@dataclass(frozen=True)
class Space:
    """Namespace and devices of a case, under the names that tdc has for them."""

    path: Path
    words: dict[str, str]

    @staticmethod
    def of(ident: str) -> "Space":
        name = f"tcut-{ident}"
        words = {
            "TC": "/sbin/tc", "IP": "/sbin/ip", "ETHTOOL": "/usr/sbin/ethtool", "NS": name,
            "TESTID": ident, "DEV0": f"v0p0id{ident}", "DEV1": f"v0p1id{ident}",
            "DUMMY": f"dummy1id{ident}", "IFB": f"ifbtdc0id{ident}", "PAQM": str(HERE),
        }
        return Space(Path("/run/netns") / name, words)

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """This process, and what it starts, in the namespace."""
        with open("/proc/self/ns/net") as outside:
            with self.path.open() as there:
                system("setns", there.fileno(), CLONE_NEWNET)
            try:
                yield
            finally:
                system("setns", outside.fileno(), CLONE_NEWNET)

    def create(self) -> None:
        w = self.words
        self.path.touch(exist_ok=False)
        with open("/proc/self/ns/net") as outside:
            system("unshare", CLONE_NEWNET)
            try:
                system("mount", b"/proc/self/ns/net", bytes(self.path), None, MS_BIND, None)
                there = struct.pack("=I", outside.fileno())
                peer = device(w["DEV0"], up=False) + rtnl.attribute(IFLA_NET_NS_FD, there)
                peer = rtnl.attribute(VETH_INFO_PEER, peer)
                for name, kind, more in ((w["DEV1"], "veth", peer), (w["DUMMY"], "dummy", b""),
                                         (w["IFB"], "ifb", b"")):
                    wrong = change(RTM_NEWLINK, rtnl.FLAGS["add"], device(name, kind, more))
                    assert not wrong, f"{name}: {os.strerror(wrong)}"
            finally:
                system("setns", outside.fileno(), CLONE_NEWNET)
        wrong = change(RTM_NEWLINK, 0, device(w["DEV0"]))
        assert not wrong, f"{w['DEV0']}: {os.strerror(wrong)}"

    def delete(self) -> None:
        # Packets in queues hold their sockets, which hold the namespace: the devices go first. A
        # case may have removed everything itself.
        with contextlib.suppress(OSError):
            with self.inside():
                for name in ("DEV1", "DUMMY", "IFB"):
                    change(RTM_DELLINK, 0, device(self.words[name]))
            system("umount2", bytes(self.path), MNT_DETACH)
            self.path.unlink()

    def run(self, command: str) -> tuple[int, str]:
        """Status and output of a command: what it wrote to stderr if it failed, as in tdc."""
        command = Template(command).safe_substitute(self.words)
        # A shell costs as much as tc itself; most commands are plain words.
        words = command.split() if PLAIN.fullmatch(command) else ["sh", "-c", command]
        try:
            with self.inside():
                if words[0] in OWN and "--fail-each" not in words:
                    return in_process(words)
                done = subprocess.run(
                    words, capture_output=True, text=True, errors="replace", timeout=TIMEOUT,
                    check=False,
                )
        except OSError as err:  # as a shell: no such program; or the case removed the namespace
            return 127 if err.filename == words[0] else 1, f"{command}: {err}\n"
        except subprocess.TimeoutExpired:
            return 255, f'"{command}" took more than {TIMEOUT} s\n'
        failed = done.returncode != 0 and done.stderr
        return done.returncode, done.stderr if failed else done.stdout


def short(text: str) -> str:
    text = " | ".join(line.strip() for line in text.strip().splitlines())
    return text if len(text) <= 600 else text[:600] + "..."


def steps(space: Space, case: Json, stage: str) -> None:
    for step in case[stage]:
        command, good = (step[0], step[1:]) if isinstance(step, list) else (step, [0])
        status, output = space.run(command)
        if status not in good:
            raise Wrong(f"{stage} `{command}` ended with {status}: {short(output)}")


def differs(got: Json, want: Json, where: str = "") -> str | None:
    """Where `got` lacks what `want` has. Stricter than tdc: [] is an empty list only."""
    if type(got) is not type(want) and not (
        isinstance(got, int | float) and isinstance(want, int | float)
    ):
        return f"{where}: {got!r} is not like {want!r}"
    if isinstance(want, dict):
        for key, value in want.items():
            if key not in got:
                return f"{where}.{key} is missing"
            wrong = differs(got[key], value, f"{where}.{key}")
            if wrong:
                return wrong
        return None
    if isinstance(want, list):
        if len(got) < len(want) or (got and not want):
            return f"{where}: {len(got)} elements, wanted {len(want)}"
        for i, value in enumerate(want):
            wrong = differs(got[i], value, f"{where}[{i}]")
            if wrong:
                return wrong
        return None
    return None if got == want else f"{where}: {got!r}, wanted {want!r}"


def verify(case: Json, output: str) -> None:
    if "matchJSON" in case:
        try:
            got = json.loads(output)
        except json.JSONDecodeError as err:
            raise Wrong(f"verifyCmd: no JSON ({err}): {short(output)}") from err
        wrong = differs(got, case["matchJSON"])
        if wrong:
            raise Wrong(f"verifyCmd: {wrong}")
        return
    found = re.findall(case["matchPattern"], output, re.DOTALL | re.MULTILINE)
    if len(found) != int(case["matchCount"]):
        raise Wrong(
            f"pattern `{case['matchPattern']}` found {len(found)} times, "
            f"not {case['matchCount']}: {short(output)}"
        )


def contradiction(qdiscs: Json) -> str | None:
    """No qdisc may hold packets without bytes, bytes without packets, or less than none."""
    for q in qdiscs:
        what = f"{q['kind']} {q['handle']} on {q.get('dev')}"
        qlen, backlog = q.get("qlen", 0), q.get("backlog", 0)
        if qlen >= 1 << 31:
            return f"{what}: queue length {qlen} has gone below 0"
        # multiq does not count bytes
        if bool(qlen) != bool(backlog) and q["kind"] != "multiq":
            return f"{what}: {qlen} packets with {backlog} bytes"
        classes = {"paqm": ("media", "elastic"), "dcbt": ("tcp", "tagged", "untagged"),
                   "rlqos": ("tc1", "tc2", "tc3")}  # fmt: skip
        parts = [(name, q[name]) for name in classes.get(q["kind"], ())]
        own = sum(part["backlog_packets"] for _, part in parts)
        if parts and not own <= qlen <= own + 1:  # one may have been peeked at
            return f"{what}: {qlen} packets, its classes have {own}"
        for name, part in parts:
            if part["sent_bytes"] > part["arrived_bytes"]:
                return f"{what}: {name} sent more than arrived"
    return None


def counters(space: Space) -> None:
    """Fails if the counters of a qdisc of the case contradict themselves."""
    status, output = space.run("tc -s -j qdisc show")
    if status:
        return  # the case removed the namespace
    # iproute2 6.1 writes the options of hfsc and multiq as text into the JSON, and taprio's
    # schedule that has not begun without its key
    output = re.sub(r',\{"base_time"', ',"admin":{"base_time"', output)
    qdiscs = json.loads(re.sub(r'\{[^{}":]*\}', "{}", output))
    wrong = contradiction(qdiscs)
    if wrong:
        raise Wrong(wrong)


def references(module: str) -> int:
    for line in Path("/proc/modules").read_text().splitlines():
        words = line.split()
        if words[0] == module:
            return int(words[2])
    return 0


def released(module: str) -> bool:
    for _ in range(200):  # namespaces are torn down by a work item
        if not references(module):
            return True
        time.sleep(0.05)
    return False


def run_case(case: Json, log: KernelLog) -> str | None:
    """Runs one case; the reason if it is to be skipped."""
    space = Space.of(case["id"])
    problem: Wrong | None = None
    space.create()
    try:
        if "dependsOn" in case:
            status, output = space.run(case["dependsOn"])
            if status == 1:
                return f"`{case['dependsOn']}` failed"
            if status:  # a tool that is missing must not look like a part that is
                raise Wrong(f"condition `{case['dependsOn']}` ended with {status}: {short(output)}")
        steps(space, case, "setup")
        status, output = space.run(case["cmdUnderTest"])
        if status != int(case["expExitCode"]):
            raise Wrong(f"ended with {status}, not {case['expExitCode']}: {short(output)}")
        verify(case, space.run(case["verifyCmd"])[1])
        counters(space)
        steps(space, case, "teardown")
    except Wrong as err:
        problem = err
        for step in case["teardown"]:
            space.run(step[0] if isinstance(step, list) else step)
    finally:
        space.delete()
    held = [name for name in ("sch_paqm", "sch_dcbt", "sch_rlqos") if not released(name)]
    fault = log.fault()
    if fault:
        raise Wrong(f"the kernel complained: {fault}" + (f"; {problem}" if problem else ""))
    if problem:
        raise problem
    for name in held:
        raise Wrong(f"{references(name)} references to {name} remain")
    return None


def load_cases(files: list[Path]) -> list[Json]:
    cases: list[Json] = []
    seen: dict[str, str] = {}
    for file in files:
        for case in expand.load(file):
            if case["id"] in seen:
                sys.exit(f"run.py: {file}: id {case['id']} is already in {seen[case['id']]}")
            seen[case["id"]] = file.name
            cases.append(case | {"file": file.stem})
    return cases


def insert(names: list[str]) -> bool:
    where = os.environ.get("PAQM_KO_DIR")
    if not where:
        sys.exit("run.py: PAQM_KO_DIR does not name the modules' directory; use paqm-lab exec")
    return all(
        subprocess.run(["insmod", f"{where}/{name}.ko"], check=False).returncode == 0
        for name in names
    )


def leaks() -> str | None:
    """First line of kmemleak's findings, or None."""
    report = Path("/sys/kernel/debug/kmemleak")
    for _ in range(2):  # an object is reported when it was unreachable twice
        time.sleep(6)
        report.write_text("scan")
    text = report.read_text()
    return short(text) if "unreferenced" in text else None


MODULES = ("paqm_feedback", "sch_paqm", "sch_dcbt", "sch_rlqos")


def main() -> int:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    ap.add_argument("--only", metavar="WORD", help="cases with this id, category or word in name")
    ap.add_argument("files", nargs="*", type=Path, metavar="FILE", help="default: all (expand.py)")
    args = ap.parse_args()
    cases = load_cases(args.files or expand.files())
    if args.only:
        cases = [
            c for c in cases
            if args.only in (c["id"], c["file"], *c["category"]) or args.only in c["name"]
        ]
    count = {"ok": 0, "not ok": 0, "skip": 0}

    def tell(result: str, what: str) -> None:
        count[result] += 1
        print(f"{result} {what}", flush=True)

    # As `ip netns` wants it: otherwise its first use in a case would copy the mounts below.
    Path("/run/netns").mkdir(exist_ok=True)
    system("mount", b"/run/netns", b"/run/netns", None, MS_BIND, None)
    log = KernelLog()
    tell("ok" if insert(list(MODULES)) else "not ok", "load: the modules load")
    for case in cases:
        title = f"{case['id']} {case['name']}"
        try:
            skipped = run_case(case, log)
        except Wrong as err:
            tell("not ok", f"{title}: {err}")
            continue
        tell("skip" if skipped else "ok", title + (f": {skipped}" if skipped else ""))
    gone = subprocess.run(["rmmod", *reversed(MODULES)], check=False).returncode == 0
    tell("ok" if gone else "not ok", "unload: the modules unload")
    if Path("/sys/kernel/debug/kmemleak").exists():
        found = leaks()
        tell("not ok" if found else "ok", "leaks: kmemleak" + (f": {found}" if found else ""))
    print(f"{count['ok']} passed, {count['not ok']} failed, {count['skip']} skipped")
    return 1 if count["not ok"] or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
