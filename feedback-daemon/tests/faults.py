# SPDX-License-Identifier: GPL-2.0
"""A machine that sleeps, a daemon or an opener that hangs, no file left."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import pty
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from host import NOBODY, captured, children, connect, reload, stopped
from rig import (
    DPORT,
    PATIENCE,
    RATE_FORMAT,
    ROUTER_IP6,
    SENDER_IP6,
    SPORT,
    Client,
    Trial,
    message,
    quote,
    register,
    rtp,
    timer_clocks,
)


@contextlib.contextmanager
def sleeping(t: Trial) -> Iterator[Callable[[int], None]]:
    """The daemon is started on a machine that has slept for as many seconds as one tells it."""
    slept = t.log.with_name("slept")
    slept.write_bytes(bytes(8))
    slept.chmod(0o644)
    command = list(t.command)
    shim = t.log.with_name("sleeper.so")  # LD_PRELOAD takes no path with a space
    shim.unlink(missing_ok=True)
    shim.symlink_to((Path(t.command[0]).parent / "tests" / "sleeper.so").resolve())
    t.command[:0] = ["env", f"LD_PRELOAD={shim}", f"PAQM_SLEPT={slept}"]

    def sleep(seconds: int) -> None:
        with slept.open("r+b") as f:
            f.write(struct.pack("=q", seconds))

    yield sleep
    t.command = command


def check_sleep(t: Trial) -> None:
    """No advice outlives a sleep of the machine; what comes afterwards is believed as ever."""
    with sleeping(t) as sleep:
        check_slept(t, sleep)
    print("ok a machine that sleeps", flush=True)


def check_slept(t: Trial, sleep: Callable[[int], None]) -> None:
    """The same, once the machine can."""
    t.start("-i", "veth0")
    assert t.daemon
    clocks = timer_clocks(str(t.daemon.pid))
    client = t.sender()
    t.answer(message(quote(t.send_media()), 1, 850_000.0, period=10_000))
    assert client.rate().bps == 850_000
    sleep(3600)
    t.stats()  # wakes it
    client.sock.settimeout(10)  # the advice would hold for 30 s
    assert client.rate().cause == "expired"
    assert t.stats()["uptime_ms"] > 3_600_000
    assert clocks == {time.CLOCK_BOOTTIME}, clocks
    t.answer(message(quote(t.send_media()), 2, 700_000.0))
    record = struct.unpack(RATE_FORMAT, client.sock.recv(512))
    assert record[5] == 700_000
    age = time.monotonic() - record[8] / 1e9
    assert 0 <= age < PATIENCE, f"{age} s old by the clock of clients"
    client.sock.close()
    t.stop()


def check_flood(t: Trial) -> None:
    """What strangers send is a line a minute for each reason; flows of nobody are not even that."""
    def send(count: int) -> None:
        before = t.stats()["refused_total"]
        for n in range(count):
            t.answer((wrong, unknown)[n % 2])
        t.until(lambda: t.stats()["refused_total"] == before + count, "the refusals")

    wrong = message(quote(rtp(1)), 1, 0)
    unknown = message(quote(rtp(1)), 1, 850_000.0)
    with sleeping(t) as sleep:
        for verbose in (True, False):
            if not verbose:
                t.command.remove("-v")
            sleep(0)
            t.start("-i", "veth0")
            send(20)
            sleep(61)
            send(2)
            lines = [line for line in t.log.read_text().splitlines() if " refused: " in line]
            told = [("flow_unknown" in line, line.endswith("(9 more before)")) for line in lines]
            if verbose:
                assert told == [(False, False), (True, False), (False, True), (True, True)], lines
            else:
                assert told == [(False, False), (False, True)], lines
            t.stop()
    print("ok a flood of wrong messages in the log", flush=True)


def check_hangs(t: Trial) -> None:
    """A daemon that does not answer: paqmctl says so."""
    t.start("-i", "veth0")
    assert t.daemon
    with stopped(t.daemon.pid):
        runs = [
            subprocess.Popen([t.paqmctl, "--control", str(t.control), name],
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            for name in ("show", "watch")
        ]
        for run in runs:
            said = run.communicate(timeout=PATIENCE)[1]
            assert run.returncode == 1 and "control.sock: no answer for 10 s" in said, said
    t.stop()
    print("ok a daemon that hangs", flush=True)


def pipe_log() -> tuple[int, int]:
    log, end = os.pipe()
    fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, 8192)
    return log, end


def check_unread_log(t: Trial, make: Callable[[], tuple[int, int]], what: str) -> None:
    """Nobody reads the log: all else goes on, and what was lost of it is said later."""
    log, end = make()
    command = ["ip", "netns", "exec", t.net.sender, *t.command, "-i", "veth0"]
    t.daemon = subprocess.Popen(command, stderr=end)
    os.close(end)
    t.until(lambda: t.ctl("stats").returncode == 0, "the daemon to be ready")
    for _ in range(1200):  # a terminal holds some 20 kB
        t.sender().sock.close()
    os.set_blocking(log, False)

    def said() -> bool:
        nonlocal text
        with contextlib.suppress(BlockingIOError):
            while True:
                text += os.read(log, 65536)
        t.sender().sock.close()
        return b"lines lost: nobody has read the log" in text

    text = b""
    t.until(said, "the lines that were lost")
    lines = text.decode().split("\n")[:-1]  # the newest may still be on its way
    assert all(line.startswith("paqmd: ") for line in lines), lines
    t.stop()
    os.close(log)
    print(f"ok {what} that nobody reads", flush=True)


def check_closed(t: Trial) -> None:
    """Started without standard descriptors: none of its own gets the log, nor what is printed."""
    for closed in ("2>&-", "<&- >&- 2>&-"):
        shell = ["sh", "-c", f'exec "$@" {closed}', "sh", *t.command, "-i", "veth0"]
        t.daemon = subprocess.Popen(["ip", "netns", "exec", t.net.sender, *shell])
        t.until(lambda: t.ctl("stats").returncode == 0, "the daemon to be ready")
        assert os.readlink(f"/proc/{t.daemon.pid}/fd/2") == "/dev/null"
        t.sender().sock.close()
        run = ["sh", "-c", 'exec "$@" >&-', "sh", t.paqmctl, "--control", str(t.control)]
        out = subprocess.run(run, stderr=subprocess.PIPE, text=True, check=False)
        assert out.returncode == 1 and "cannot write the output" in out.stderr, out
        t.stop()
    print("ok closed descriptors", flush=True)


def check_unread_pipe(t: Trial) -> None:
    check_unread_log(t, pipe_log, "a pipe for a log")


def check_unread_terminal(t: Trial) -> None:
    check_unread_log(t, pty.openpty, "a terminal")


def limit_files(pid: int, count: int) -> None:
    """Let a process of nobody have so many files; what it has open stays open."""
    subprocess.run(["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups",
                    "prlimit", "--pid", str(pid), f"--nofile={count}:"], check=True)


def check_starved(t: Trial) -> None:
    """Not even one file for a moment: no client is accepted, others are served, then all are."""
    t.start("-i", "veth0")
    assert t.daemon
    client = t.sender()
    with connect(t.control) as control:
        answers = control.makefile("rb")

        def failed() -> int:
            control.sendall(b'{"cmd": "stats"}\n')
            return int(json.loads(answers.readline())["stats"]["accept_failed"])

        assert failed() == 0
        begin = time.monotonic()
        limit_files(t.daemon.pid, 1)
        waiting = Client(t.ipc)
        t.until(lambda: failed() > 0, "a client that cannot be accepted")
        for _ in range(300):
            assert client.register(1) == 0
            assert client.rate().cause == "none"
        count, seconds = failed(), time.monotonic() - begin
        assert count <= seconds + 2, f"{count} attempts in {seconds:.1f} s"
    t.answer(message(quote(t.send_media()), 1, 850_000.0))
    assert client.rate().bps == 850_000
    t.until(lambda: "cannot accept clients" in t.log.read_text(), "the log")
    limit_files(t.daemon.pid, 256)
    assert waiting.register(2, source="", to=ROUTER_IP6) == 0
    assert waiting.rate().cause == "none"
    log = t.log.read_text()
    assert log.count("cannot accept clients") == log.count("accepted again") == 1, log
    client.sock.close()
    waiting.sock.close()
    t.stop()
    print("ok no file left for anybody", flush=True)


def check_opener(t: Trial) -> None:
    """While the opener hangs all else goes on; then it does what it was asked for meanwhile."""
    conf = t.log.with_name("paqmd.conf")
    conf.write_text("interface veth0\n")
    t.start("--config", str(conf))
    assert t.daemon
    (opener,) = children(t.daemon.pid)
    client, late = Client(t.ipc), Client(t.ipc)
    assert client.register(1) == 0
    client.rate()

    def set_up(*names: str) -> None:
        conf.write_text("".join(f"interface {name}\n" for name in names))
        assert reload(t) == ""

    with stopped(opener):
        set_up("veth0", "lo")
        late.sock.send(register(6, source="", to=ROUTER_IP6))
        late.sock.send(register(6))  # has been taken: it stays what it is
        t.until(lambda: len(t.ask("flows")["flows"]) == 2, "the second flow")
        t.answer(message(quote(t.send_media()), 1, 850_000.0))
        assert client.told().bps == 850_000
        # not a new flow, so nothing has to be waited for
        assert client.register(1, ceil=700_000) == 0
        assert client.told().bps == 700_000
        t.until(lambda: "opener has not answered" in t.log.read_text(), "the log")
        assert late.silent(), "registered before its packets can be seen"
        assert captured(t) == {"veth0": True, "lo": False}
    assert late.registered(6) == 0
    assert late.registered(6) == errno.EEXIST
    assert late.rate().cause == "none"
    t.until(lambda: captured(t)["lo"], "the new interface")
    with t.net.socket(t.net.sender, socket.AF_INET6, socket.SOCK_DGRAM) as sender:
        sender.bind((SENDER_IP6, SPORT))
        sender.sendto(rtp(1), (ROUTER_IP6, DPORT))
        t.until(lambda: t.ask("flows")["flows"][1]["packets"] == 1, "its packet to be seen")
    log = t.log.read_text()
    assert log.count("has not answered") == log.count("answers again") == 1, log

    # an interface that is not wanted any more when it comes, then one in its place
    for cookie, last in enumerate(("veth0", "any"), start=7):
        with stopped(opener):
            set_up("veth0", "lo")
            set_up(*{"veth0", last})
        # its answer comes after that about lo
        assert late.register(cookie, to=f"10.77.0.{cookie}") == 0
        late.rate()
        t.until(lambda: captured(t) == {"veth0": True, last: True}, last)  # noqa: B023
    t.stop()
    print("ok an opener that answers late", flush=True)
