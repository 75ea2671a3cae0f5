#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The trial kit with the real queue and real calls, in a guest: first the handbook's commands as
they stand there, then turns, crashes and other programs that change the queue.

Prints `ok NAME` or `not ok NAME: why`. The network is that of stream_lab.py: s is the caller, v the
callee, r the router, whose device rv leads to the slow link. Each has a home of its own.

A block of the handbook has a comment before it: `on HOST`, what it must have said (`gives
"REGEX"`), `without devices` (words for a machine without camera), `in the background`. Blocks that
install packages are not run.

Usage: testbed/paqm-lab exec userspace/paqm-trial/tests/lab_trial.py [--build DIR]
"""

from __future__ import annotations

import argparse
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "kernel" / "lab-tests"))
import stream_lab  # noqa: E402
import trial  # noqa: E402
from trial import Program, check, inside, within  # noqa: E402

PAGE = TOP / "docs" / "trial.md"
PLACE = Path("/run/trial")
BLOCK = re.compile(
    r"^<!-- (on|installs|not run)[: ] *(\w*)(.*?) -->\n```sh\n(.*?)^```$", re.M | re.S
)
HOSTS = {"router": "r", "caller": "s", "callee": "v", "report": "r"}
NAMES = {"eth0": "rv", "callee.example.org": "10.3.0.2"}
SILENT = "--source test --audio test --sink none --audio-sink none"
PATIENCE = 60.0


class Terminal:
    """A command line in a host, at a terminal: what it says, and a person who answers."""

    def __init__(self, host: str, line: str) -> None:
        self.host, self.line, self.said = host, line, ""
        self.master, slave = pty.openpty()
        home = PLACE / host
        env = {**os.environ, "HOME": str(home), "PAQM_SOCKET": f"/run/paqmd-{HOSTS[host]}.sock"}
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", HOSTS[host], "bash", "-ec", line],
            cwd=home,
            env=env,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        os.set_blocking(self.master, False)

    def hear(self) -> str:
        try:
            while part := os.read(self.master, 65536):
                self.said += part.decode(errors="replace")
        except OSError:
            pass
        return self.said

    def until(self, pattern: str) -> bool:
        end = time.monotonic() + PATIENCE
        while not re.search(pattern, self.hear()):
            if time.monotonic() > end or self.process.poll() is not None:
                return bool(re.search(pattern, self.hear()))
            time.sleep(0.1)
        return True

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def wait(self, seconds: float = PATIENCE) -> int | None:
        end = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < end:
            self.hear()
            time.sleep(0.1)
        self.hear()
        return self.process.poll()

    def end(self, how: int) -> int | None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, how)
        return self.wait()


def named(text: str) -> str:
    for shown, here in NAMES.items():
        text = re.sub(rf"\b{re.escape(shown)}\b", here, text)
    return text


def qdisc() -> dict[str, Any]:
    """The root of the router's device."""
    found = json.loads(inside("r", "tc", "-j", "qdisc", "show", "dev", "rv"))
    return next(dict(one) for one in found if one.get("root"))


def samples(folder: Path) -> list[dict[str, Any]]:
    lines = [
        line for path in sorted(folder.glob("samples-*")) for line in path.read_text().splitlines()
    ]
    return [json.loads(line) for line in lines if line]  # each start begins with an empty one


class Handbook:
    """Its blocks, one after the other."""

    def __init__(self) -> None:
        self.before = qdisc()
        self.router: Terminal | None = None
        self.callee: Terminal | None = None

    def play(self) -> None:
        text = PAGE.read_text()
        blocks = BLOCK.findall(text)
        check(
            "every block of the handbook says where it is run",
            len(blocks) == len(re.findall(r"^```sh$", text, re.M)),
        )
        for kind, host, how, body in blocks:
            if kind != "on":
                continue
            gives = re.search(r'gives "(.*)"', how)
            line = named(body.strip())
            if "without devices" in how:
                line += f" -- {SILENT}"
            print(f"# {host}: {line}", flush=True)
            good, said = self.run(host, line, how, gives[1] if gives else "")
            check(f"handbook, {host}: {body.split(chr(10))[0]}", good, said)

    def run(self, host: str, line: str, how: str, gives: str) -> tuple[bool, str]:
        if host == "report":
            self.collect()
        one = Terminal(host, line)
        if "in the background" in how:
            self.callee = one
            good = one.until(gives)
            one.type("yes\n")
            return good and one.until("waiting for a call"), one.said
        if line.startswith("paqm-trial router"):
            self.router = one
            good = one.until(gives) and one.until(r"rv: (paqm|fq_codel)")
            return good and qdisc()["handle"] == "7a1:", one.said
        if line.startswith("paqm-trial call"):
            one.until("Do you agree")
            one.type("yes\n")
            good = one.until("talking to")
            time.sleep(15)
            one.type("q\n")
        status = one.wait()
        if "head -c 24" in line:
            shutil.copy(PLACE / host / "secret", PLACE / "callee" / "secret")
        if line.startswith("paqm-trial check"):  # there are no camera and no clock to follow here
            return re.search(gives, one.said) is not None, one.said
        if line.startswith("paqm-trial end"):
            assert self.router
            check("the queue that was there before is back", qdisc() == self.before, qdisc())
            check(
                "the trial in the foreground has ended", self.router.wait() == 0, self.router.said
            )
        return status == 0 and re.search(gives, one.said) is not None, one.said

    def collect(self) -> None:
        assert self.callee
        check("the callee's end is over, too", self.callee.wait() == 0, self.callee.said)
        folders = PLACE / "report" / "folders"
        shutil.copytree("/var/lib/paqm-trial/rv", folders / "router")
        for end in ("caller", "callee"):
            shutil.copytree(PLACE / end / "paqm-trial", folders / end)

    def judge(self) -> None:
        """What the report says of the call."""
        home = PLACE / "report" / "report"
        result = json.loads((home / "result.json").read_text())
        check(
            "the report has the plan", result["plans"][0]["bandwidth"] == "3mbit", result["plans"]
        )
        (row,) = result["calls"]
        check("the call has one queue", row["arm"] in ("paqm", "fq_codel"), row)
        check("both ends are there", row["ends"] == ["caller", "callee"], row["ends"])
        for way in ("to_callee", "to_caller"):
            found = row[way]
            # 10 ms on the link, and the encoder: virtual time has no others
            within(f"frame delivery p50 {way}", found["frame_delivery_ms"]["p50"], 10, 60)
            within(f"freezes {way}", found["freezes"], 0, 0)
            within(f"loss {way}", found["loss_percent"], 0, 0.1)
            within(f"clocks of one guest are one {way}", abs(found["clock_offset_ms"]), 0, 5)
        text = (home / "report.html").read_text()
        check(
            "the page has the call",
            "to the callee" in text and "Too few calls to tell" in text or row["arm"] == "paqm",
            text[:300],
        )
        words = [
            path
            for path in (PLACE / "caller/paqm-trial").rglob("*")
            if path.is_file() and re.search(r"10\.\d\.0\.\d", path.read_text(errors="replace"))
        ]
        check("no address is in the caller's data", not words, words)
        kept = samples(Path("/var/lib/paqm-trial/rv"))
        check(
            "the router's seconds are there",
            sum("event" not in one for one in kept) > 15,
            len(kept),
        )


class Turns:
    """Short turns, one call in each, in a trial that is killed in between."""

    folder = Path("/run/trial/turns")

    def router(self, *words: str) -> Terminal:
        return Terminal("router", f"paqm-trial router rv --dir {self.folder} {' '.join(words)}")

    def start(self, *words: str) -> Terminal:
        one = self.router("--bandwidth", "2mbit", *words)
        check(
            f"a trial begins {' '.join(words)}",
            one.until("rv: (paqm|fq_codel|as-found|cake|fifo)"),
            one.said,
        )
        return one

    def call(self, seconds: int) -> None:
        ends = []
        for host, where in (("callee", "--listen"), ("caller", "10.3.0.2")):
            ends.append(
                Terminal(
                    host,
                    f"paqm-trial call {where} --secret secret --consent on-paper "
                    f"-- {SILENT} --duration {seconds}",
                )
            )
            ends[-1].until("waiting" if host == "callee" else "talking")
        check(
            "a call comes to its end",
            [one.wait() for one in ends] == [0, 0],
            [one.said for one in ends],
        )

    def hold(self) -> None:
        for end in ("caller", "callee"):
            shutil.rmtree(PLACE / end / "paqm-trial")
        one = self.start("--alternate", "60s", "--seed", "1", "--foreground")
        time.sleep(120 - time.time() % 120)  # both turns of a pair
        for _ in range(2):
            time.sleep(60 - time.time() % 60 + 5 if time.time() % 60 > 5 else 5)
            self.call(12)
        kinds = {
            sample["arm"]: sample["kind"]
            for sample in samples(self.folder / "rv")
            if "kind" in sample
        }
        check("both queues had their turn", kinds == {"paqm": "paqm", "fq_codel": "htb"}, kinds)
        one.end(signal.SIGTERM)
        check("it ends by a signal", one.process.returncode == 0, one.said)
        done = Terminal(
            "router",
            f"paqm-trial report {self.folder} {PLACE}/caller {PLACE}/callee "
            f"--out {PLACE}/both --json",
        )
        check("and is reported", done.wait() == 0, done.said)
        advice = "".join(path.read_text() for path in (PLACE / "caller").rglob("feedback.csv"))
        check(
            "what routers advised is kept, without their addresses",
            "router-" in advice and "10.3.0.1" not in advice,
            advice[:200],
        )
        result = json.loads((PLACE / "both/result.json").read_text())
        rows = result["calls"]
        check(
            "a call under each queue",
            sorted(row["arm"] for row in rows) == ["fq_codel", "paqm"],
            [(row["arm"], row["problems"]) for row in rows],
        )
        held = {row["arm"]: row["router"]["rv"] for row in rows}
        within(
            "media in the router under P-AQM, p95 ms", held["paqm"]["media_delay_ms"]["p95"], 0, 10
        )
        check("fq_codel does not tell of delay", held["fq_codel"]["media_delay_ms"] is None)
        within(
            "one call of each is too few",
            sum(row["verdict"] == "too few calls" for row in result["comparison"]),
            len(result["comparison"]),
            len(result["comparison"]),
        )

    def crash(self) -> None:
        """Killed: the queue stays; `end`, a new start and another's queue know what to do."""
        inside("r", *"tc qdisc replace dev rv root handle 5: fq_codel limit 777 target 7ms".split())
        before = qdisc()
        one = self.start("--alternate", "none", "--foreground")
        check("P-AQM stands there", qdisc()["kind"] == "paqm", qdisc())
        again = self.router("--bandwidth", "2mbit")
        check(
            "a second one is refused",
            again.wait() == 2 and "runs there already" in again.said,
            again.said,
        )
        one.end(signal.SIGKILL)
        check("after a crash it stands there still", qdisc()["handle"] == "7a1:", qdisc())
        one = self.start(
            "--alternate", "none", "--arm", "baseline", "--baseline", "as-found", "--foreground"
        )
        check("the next trial knows what stood there before", qdisc() == before, qdisc())
        one.end(signal.SIGKILL)
        one = self.start("--alternate", "none", "--foreground")
        one.end(signal.SIGKILL)
        done = Terminal("router", f"paqm-trial end rv --dir {self.folder}")
        check("end puts it back", done.wait() == 0 and qdisc() == before, (done.said, qdisc()))

    def others(self) -> None:
        one = self.start("--alternate", "none", "--foreground")
        inside("r", "tc", "qdisc", "replace", "dev", "rv", "root", "pfifo")
        check("a queue of another program is told of", one.until("replaced by another"), one.said)
        check("and replaced", one.until("(?s)replaced.*rv: paqm"), one.said)
        inside("r", "ip", "link", "set", "rv", "down")
        inside("r", "ip", "link", "set", "rv", "name", "gone0")
        check("a device that goes is told of", one.until("trying again"), one.said)
        inside("r", "ip", "link", "set", "gone0", "name", "rv")
        inside("r", "ip", "link", "set", "rv", "up")
        check("and taken when it comes", one.until("works again"), one.said)
        inside("r", "tc", "qdisc", "replace", "dev", "rv", "root", "pfifo")
        one.end(signal.SIGINT)
        check("what others have put there stays", qdisc()["kind"] == "pfifo", qdisc())

    def refused(self) -> None:
        """Trees, and what would be lost with a root that could be put back by itself."""
        tc = "tc qdisc replace dev rv root handle 1:"
        u32 = "protocol ip prio 1 u32 match ip dport 53 0xffff flowid 1:1"
        for name, commands in (
            ("a filter", f"{tc} prio; tc filter add dev rv parent 1: {u32}"),
            ("a class", f"{tc} drr; tc class add dev rv parent 1: classid 1:1 drr"),
            (
                "a tree",
                f"{tc} htb default 1; tc class add dev rv parent 1: classid 1:1 htb rate 3mbit",
            ),
        ):
            inside("r", "tc", "qdisc", "del", "dev", "rv", "root")
            inside("r", "sh", "-ec", commands)
            one = self.router("--bandwidth", "2mbit", "--foreground")
            check(
                f"{name} that cannot be put back is refused",
                one.wait() == 2 and "--restore" in one.said and qdisc()["handle"] == "1:",
                (one.said, qdisc()),
            )
        lines = PLACE / "tree"
        lines.write_text(
            "qdisc add dev rv root handle 1: htb default 1\n"
            "class add dev rv parent 1: classid 1:1 htb rate 3mbit\n"
        )
        broken = PLACE / "broken"
        broken.write_text(lines.read_text().replace("parent 1:", "parent 2:"))
        one = self.router("--bandwidth", "2mbit", "--foreground", "--restore", str(broken))
        check(
            "a file that tc does not take is refused before anything changes",
            one.wait() == 2 and "not take these" in one.said and qdisc()["kind"] == "htb",
            (one.said, qdisc()),
        )
        one = self.start("--alternate", "none", "--foreground", "--restore", str(lines))
        one.end(signal.SIGTERM)
        classes = inside("r", "tc", "class", "show", "dev", "rv")
        check("by a file it is put back", "rate 3Mbit" in classes, classes)
        for words, why in ((("--paqm", "nonsense"), "nonsense"), (("--bandwidth", "2"), "20mbit")):
            one = self.router("--bandwidth", "2mbit", *words, "--foreground")
            check(f"refused: {' '.join(words)}", one.wait() == 2 and why in one.said, one.said)
        for kind in ("cake", "fifo"):
            one = self.start(
                "--alternate",
                "none",
                "--arm",
                "baseline",
                "--baseline",
                kind,
                "--foreground",
                "--restore",
                str(lines),
            )
            time.sleep(3)
            one.end(signal.SIGTERM)
            check(
                f"{kind} has its turn",
                any(
                    sample.get("arm") == kind and "kind" in sample
                    for sample in samples(self.folder / "rv")
                ),
            )


FLOOD = """
import socket, sys, time
sys.path.insert(0, sys.argv[1])
from paqm_trial import queue
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for arm in ("paqm", "fq_codel", "cake", "fifo"):
    queue.attach("rv", arm, "2mbit", sys.argv[2].split())
    begin, seen = time.monotonic(), []
    for end in (1, 4):
        while time.monotonic() < begin + end:
            for n in range(4):
                try:
                    udp.sendto(bytes(100), ("10.3.0.2", 9))
                except OSError:  # the queue has no room
                    pass
            time.sleep(0.001)
        seen.append((time.monotonic(), queue.root_of(queue.show("rv"))["packets"]))
    print(arm, (seen[1][1] - seen[0][1]) / (seen[1][0] - seen[0][0]))
queue.run("tc", "qdisc", "del", "dev", "rv", "root")
"""


def framed() -> None:
    """What the link adds to packets counts under each queue alike."""
    for words, size in (("overhead 60 linklayer ptm", (142 + 60) * 65 / 64), ("", 142)):
        said = inside("r", "python3", "-c", FLOOD, str(TOP / "userspace/paqm-trial"), words)
        rates = {arm: float(rate) for arm, rate in (line.split() for line in said.splitlines())}
        due = 2e6 / 8 / size
        check(
            f"every queue has the rate of the link, {words or 'no overhead'}",
            len(rates) == 4 and all(abs(rate / due - 1) < 0.03 for rate in rates.values()),
            (due, rates),
        )


def prepare() -> None:
    """The command line, the network, and a paqmd at either end."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--build", type=Path, default=TOP / "build")
    build = parser.parse_args().build.resolve()
    programs = [TOP / "userspace/paqm-trial", build / "streamer", build / "feedback-daemon"]
    os.environ["PATH"] = ":".join([*map(str, programs), os.environ["PATH"]])
    os.environ.setdefault("TC_LIB_DIR", str(build / "userspace/tc-paqm"))
    trial.run(
        "mount", "-t", "tmpfs", "tmpfs", "/var/lib"
    )  # the guest's system is not to be written
    trial.load_modules()
    stream_lab.lay_out()
    for host in HOSTS:
        (PLACE / host).mkdir(parents=True, exist_ok=True)
    for host, device in (("s", "sn"), ("v", "vr")):
        Program(
            host,
            "paqmd",
            "-i",
            device,
            "--socket",
            f"/run/paqmd-{host}.sock",
            "--control",
            f"/run/paqmd-{host}.ctl",
            "--user",
            "root",
            ready="ready",
        )


def main() -> int:
    prepare()
    book = Handbook()
    book.play()
    book.judge()
    framed()
    turns = Turns()
    for part in (turns.hold, turns.crash, turns.others, turns.refused):
        part()
    return trial.summary()


if __name__ == "__main__":
    sys.exit(main())
