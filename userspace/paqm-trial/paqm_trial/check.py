# SPDX-License-Identifier: GPL-2.0
"""`paqm-trial check`: is everything here that a trial needs? Changes nothing."""

from __future__ import annotations

import glob
import json
import os
import secrets
import shutil
import socket
import struct
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from paqm_trial import queue, router, store
from paqm_trial.call import STREAMER, home_folder
from paqm_trial.store import Trouble

SOCKET = "/run/paqmd/client.sock"
DEVICES = Path("/sys/class/net")
# What paqmd answers at once (feedback-daemon/paqm_ipc.h): a flow that this program does not send.
HEAD = struct.Struct("=IBBH")
FLOW = struct.pack("=16s16sHHIQQIIQ", b"", socket.inet_pton(socket.AF_INET6, "::ffff:127.0.0.1"),
                   9, 9, 0, 0, 10**6, 0, 0, 1)  # fmt: skip
ASK = HEAD.pack(0x50514950, 1, 1, HEAD.size + len(FLOW)) + FLOW
ANSWER_S = 3
CALL_S = 4
Row = tuple[str, str, str]  # verdict, what, detail


def clock() -> Row:
    """Kept in step with others? The report aligns clocks itself where it can."""
    name = "clock kept in step"
    try:
        said = queue.run("timedatectl", "show", "-p", "NTPSynchronized", "-p", "NTP")
    except Trouble:
        return "unsure", name, "no timedatectl here; use chrony or systemd-timesyncd"
    if "NTPSynchronized=yes" in said:
        return "ok", name, ""
    what = "install chrony or systemd-timesyncd"
    if "NTP=yes" in said:
        what = "the time service has heard no server yet: timedatectl, journalctl -u chrony"
    return (
        "warn",
        name,
        f"not synchronised: {what}; the report can correct a wrong clock, not one that jumps",
    )


def disk(folder: Path) -> Row:
    try:
        while not folder.exists():
            folder = folder.parent
        free = store.free_bytes(folder) >> 20
    except OSError as err:
        return "fail", "disk", f"{folder}: {err.strerror}"
    need = store.LEAST_FREE >> 20
    verdict = "ok" if free >= 10 * need else "warn" if free >= need else "fail"
    return verdict, "disk", f"{free} MB free in {folder}; a day of calls takes some hundred"


def offloads(device: str) -> Row:
    name = "offloads"
    if shutil.which("ethtool") is None:
        return "unsure", name, "install ethtool to have them checked"
    try:
        said = queue.run("ethtool", "-k", device)
    except Trouble as err:
        return "unsure", name, str(err)
    on = [
        line.split(":")[0].strip()
        for line in said.splitlines()
        if line.split(":")[-1].split()[:1] == ["on"]
    ]
    big = [word for word in ("generic-receive-offload", "tcp-segmentation-offload") if word in on]
    if not big:
        return "ok", name, "off"
    return (
        "ok",
        name,
        (
            f"on: {', '.join(big)}; P-AQM splits long packets itself, on slow links "
            f"CAKE does, fq_codel does not: ethtool -K {device} gro off tso off gso "
            "off before the trial makes days more alike"
        ),
    )


def speed(device: str, bandwidth: str | None) -> Row:
    try:
        megabit = int((DEVICES / device / "speed").read_text())
    except (OSError, ValueError):
        return "unsure", "speed of the device", "the driver does not report it"
    # of a tun or tap it says nothing: 10 on some kernels, 10000 on others
    if megabit <= 0 or (DEVICES / device / "tun_flags").exists():
        return "unsure", "speed of the device", "the driver does not report it"
    if bandwidth and queue.parse_rate(bandwidth) > megabit * 1e6:
        return (
            "fail",
            "speed of the device",
            (f"{megabit} Mbit/s, less than {bandwidth}: packets would queue elsewhere"),
        )
    return "ok", "speed of the device", f"{megabit} Mbit/s"


def forwards() -> Row:
    on = [
        Path(f"/proc/sys/net/{path}").read_text().strip() != "0"
        for path in ("ipv4/ip_forward", "ipv6/conf/all/forwarding")
        if Path("/proc/sys/net", path).exists()
    ]
    if any(on):
        return "ok", "forwards packets", ""
    return (
        "warn",
        "forwards packets",
        (
            "no: unless this is a bridge, put net.ipv4.ip_forward=1 into a file of "
            "/etc/sysctl.d, then run sysctl --system"
        ),
    )


def of_router(device: str, args: Any) -> list[Row]:
    rows: list[Row] = []

    def tried(name: str, work: Callable[[], object], hint: str = "") -> bool:
        try:
            work()
        except Trouble as err:
            rows.append(("fail", name, f"{err}{hint}"))
            return False
        rows.append(("ok", name, ""))
        return True

    device = queue.real_name(device)
    if not tried("device", lambda: queue.need_device(device)):
        return rows
    if not tried("root", router.need_root):
        return rows
    plan = {
        "device": device,
        "bandwidth": args.bandwidth or "10mbit",
        "baseline": args.baseline,
        "paqm": ["feedback", "icmp"],
        "restore": [],
        "alternate": "day",
        "arm": None,
    }
    tried("P-AQM and the baseline can be attached", lambda: router.check_plan(plan))
    home = args.dir or router.HOME
    folder = router.folder_of(home, device)
    where = f" --dir {home}" if args.dir else ""
    state = store.read_json(folder / router.STATE)
    if queue.ours(queue.show(device)):
        running = store.lock_of_other(folder) is not None
        rows.append(
            ("ok", "the trial's queue stands there", "the trial runs")
            if running
            else (
                "warn",
                "the trial's queue stands there",
                f"no trial runs: paqm-trial end {device}{where} puts back what was there"
                if state
                else "its origin is not known",
            )
        )
    else:
        tried("what stands there can be put back", lambda: queue.find(device))
    rows += [
        speed(device, args.bandwidth),
        offloads(device),
        forwards(),
        clock(),
        disk(home),
    ]
    return rows


def daemon() -> Row:
    path = os.environ.get("PAQM_SOCKET") or SOCKET
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.settimeout(ANSWER_S)
        try:
            connection.connect(path)
            connection.send(ASK)
            if not connection.recv(512):
                raise ConnectionResetError
        except PermissionError:
            return (
                "fail",
                "paqmd",
                (f"{path}: no permission: adduser NAME paqm, then log out and in again"),
            )
        except (TimeoutError, BlockingIOError, ConnectionResetError, BrokenPipeError):
            # its manager takes connections for it also if it cannot start
            return "fail", "paqmd", f"{path}: it does not answer: journalctl -u paqmd tells why"
        except OSError as err:
            return (
                "fail",
                "paqmd",
                (
                    f"{path}: {err.strerror or err}: install the package paqmd, and: "
                    "systemctl enable --now paqmd"
                ),
            )
    return "ok", "paqmd", path


def camera() -> Row:
    found = sorted(glob.glob("/dev/video*"))
    if not found:
        return "warn", "camera", "none: plug one in, or give -- --source screen (or test)"
    if not any(os.access(path, os.R_OK | os.W_OK) for path in found):
        return "fail", "camera", f"{found[0]}: no permission: adduser NAME video"
    return "ok", "camera", ", ".join(found)


def sound() -> Row:
    if not glob.glob("/dev/snd/pcm*c"):
        return "warn", "microphone", "none: plug one in, or give -- --audio none"
    if not any(os.access(path, os.R_OK | os.W_OK) for path in glob.glob("/dev/snd/pcm*c")):
        return "fail", "microphone", "no permission: adduser NAME audio"
    return "ok", "microphone", ""


def display() -> Row:
    if os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        return "ok", "display", ""
    return "warn", "display", "none: give -- --sink none, or start the call on the desktop"


def own_call() -> Row:
    """A short call with oneself, over loopback: all that a call needs is installed and works."""
    name = "a call with oneself"
    if shutil.which(STREAMER) is None:
        return "fail", name, f"{STREAMER} is missing: install the package paqm-streamer"
    with socket.create_server(("127.0.0.1", 0)) as free:
        where = f"127.0.0.1:{free.getsockname()[1]}"
    with tempfile.TemporaryDirectory(prefix="paqm-trial-") as home:
        secret = Path(home, "secret")
        secret.touch(0o600)
        secret.write_text(secrets.token_hex(16) + "\n")
        common = [
            "--secret",
            str(secret),
            "--source",
            "test",
            "--audio",
            "test",
            "--sink",
            "none",
            "--audio-sink",
            "none",
            "--paqmd",
            "none",
            "--duration",
            str(CALL_S),
        ]
        ends = [
            subprocess.Popen(
                [STREAMER, "call", *words, where, *common, "--record", f"{home}/{number}"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
            for number, words in enumerate((["--listen"], []))
        ]
        said = []
        for end in ends:
            try:
                said.append(end.communicate(timeout=60)[1])
            except subprocess.TimeoutExpired:
                end.kill()
                said.append(end.communicate()[1] + "it did not end")
        reader = store.Reader(Path(home))
        shown = [
            len(reader.table(Path(home, str(number), "video.csv"), {"play_ns": int}))
            for number in (0, 1)
        ]
    if min(shown) and not any(end.returncode for end in ends):
        return "ok", name, f"{sum(shown)} pictures shown in {CALL_S} s"
    return "fail", name, " ".join(" ".join(said).split())[-300:] or "no picture was shown"


def of_call(args: Any) -> list[Row]:
    folder = args.dir or home_folder()
    return [own_call(), daemon(), camera(), sound(), display(), clock(), disk(folder)]


def start(args: Any) -> int:
    """Prints what was found; status 1 if something is missing."""
    rows = of_router(args.device, args) if args.device else of_call(args)
    if args.json:
        keys = ("verdict", "check", "detail")
        print(
            json.dumps(
                {
                    "version": 1,
                    "kind": "paqm-trial-check",
                    "checks": [dict(zip(keys, row, strict=True)) for row in rows],
                },
                indent=1,
            )
        )
    else:
        for verdict, what, detail in rows:
            print(f"{verdict:6} {what}{': ' if detail else ''}{detail}")
    return int(any(row[0] == "fail" for row in rows))
