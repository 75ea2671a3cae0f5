# SPDX-License-Identifier: GPL-2.0
"""A call's part: consent, then `paqm-streamer call` with its recorder, then addresses taken out.

Picture and sound are never recorded. The clock of this machine is noted each second beside one that
never jumps, so that the report knows which times may be compared.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from paqm_trial import store
from paqm_trial.store import Trouble, say

STREAMER = "paqm-streamer"
TEXT = Path(__file__).with_name("consent.txt")
# Options of paqm-streamer that would record what nobody has agreed to, or are this program's.
NOT_PASSED = ("--record", "--name", "--secret", "--listen", "--meet")
# What events.csv calls devices that nobody has named.
USUAL = ("camera", "microphone", "loudspeaker", "window", "own window", "screen", "test")


def home_folder() -> Path:
    return Path(os.environ.get("HOME") or "/root") / "paqm-trial"


def consent_text(folder: Path, days: int) -> str:
    return TEXT.read_text().replace("DIR", str(folder)).replace("DAYS", str(days))


def ask(args: Any) -> str:
    """How consent was given; no consent, no call."""
    if args.consent:
        return "on paper"
    if not sys.stdin.isatty():
        raise Trouble("no terminal to ask at: if the form is signed, give --consent on-paper")
    print(consent_text(args.dir, args.keep))
    try:
        answer = input("Do you agree? Type yes or no: ")
    except EOFError:
        answer = ""
    if answer.strip().lower() != "yes":
        raise Trouble("no consent, so no call and no data")
    return "asked"


def pseudonym(kind: str, address: str, folder: Path) -> str:
    """The same address gets the same word, and nobody can find it from the word."""
    path = folder / "salt"
    salt = path.read_text().strip() if path.exists() else ""
    if not salt:  # none, or one for which a full disk had no room
        salt = secrets.token_hex(16)
        path.touch(0o600)
        path.write_text(salt + "\n")
    digest = hashlib.sha256((salt + address).encode()).hexdigest()
    return f"{kind}-{digest[:8]}"


def rewrite(path: Path, change: Callable[[list[str]], list[str]]) -> None:
    """Each row of a table but the first."""
    file = store.open_plain(path)
    if file is None:
        return
    part = path.with_name(f".{path.name}")
    try:
        with file, part.open("w", encoding="utf-8") as out:
            os.fchmod(out.fileno(), 0o600)
            for number, line in enumerate(file):
                cells = line.rstrip("\r\n").split(",")
                out.write(",".join(change(cells) if number else cells) + "\n")
        part.replace(path)
    except OSError as err:  # the address must not stay, the rest of the call may
        part.unlink(missing_ok=True)
        path.unlink(missing_ok=True)
        say(f"{path}: {err.strerror}; deleted, since it holds addresses")


def take_out_routers(path: Path, folder: Path) -> None:
    """The addresses of those who gave advice, in the second column of feedback.csv."""

    def change(cells: list[str]) -> list[str]:
        if len(cells) > 1 and not cells[1].startswith("router-"):
            cells[1] = pseudonym("router", cells[1], folder)
        return cells

    rewrite(path, change)


def kinds_of(path: str) -> str:
    """Of a path that ICE has found what is no address: (host to relay)."""
    kinds = re.search(r"\([a-z]+ to [a-z]+\)", path)
    return kinds[0] if kinds else "?"


def take_out_ends(path: Path, folder: Path) -> None:
    """The addresses of both ends, the peer's name, and names of devices and files, which are often
    those of people, in events.csv."""

    def change(cells: list[str]) -> list[str]:
        if len(cells) > 2 and cells[1] == "path":
            text = ",".join(cells[2:])
            return [*cells[:2], f'"{text.lstrip(chr(34)).split(" ")[0]} {kinds_of(text)}"']
        if len(cells) > 2 and cells[1] == "begin":
            return [*cells[:2], '""']
        if len(cells) > 2 and cells[1] in ("lost", "back"):
            name = ",".join(cells[2:]).strip('"')
            if name not in USUAL and not re.fullmatch("device-[0-9a-f]{8}", name):
                return [*cells[:2], f'"{pseudonym("device", name, folder)}"']
        return cells

    rewrite(path, change)


def take_out_names(call: Path, folder: Path) -> None:
    """Addresses and names from what paqm-streamer has written."""
    path = call / "record" / "call.json"
    about = store.read_json(path)
    if about is None or about.get("anonymous"):
        return
    take_out_routers(call / "record" / "feedback.csv", folder)
    take_out_ends(call / "record" / "events.csv", folder)
    for media in ("video", "audio"):
        if isinstance(stream := about.get(media), dict) and "path" in stream:
            stream["path"] = kinds_of(str(stream["path"]))
    try:
        about["peer"] = pseudonym("peer", str(about.get("peer", "")), folder)
        about |= {"name": "", "peer_name": "", "anonymous": True}
        store.write_json(path, about)
    except (OSError, Trouble) as err:
        path.unlink(missing_ok=True)
        say(f"{err}; {path} is deleted, since it holds addresses")


def tidy(folder: Path) -> None:
    """After a call that was killed; and what has been kept long enough goes."""
    if (folder / store.ABOUT).exists():
        for call in store.calls_of(folder):
            # of one that lasts paqm-streamer would go on in files that are gone
            if store.lock_of_other(call) is None:
                take_out_names(call, folder)
        for name in store.forget(folder):
            say(f"deleted, kept long enough: {name}")


def is_film(value: str) -> bool:
    return value not in ("window", "none", "auto") and not value.startswith("auto:")


def check_passed(words: list[str]) -> None:
    """What goes on to paqm-streamer must not record anything."""
    for at, word in enumerate(words):
        name, _, value = word.partition("=")
        value = value or (words[at + 1] if at + 1 < len(words) else "")
        if name in NOT_PASSED:
            raise Trouble(f"{name} does not go after --: paqm-trial sets it itself")
        if name in ("--sink", "--audio-sink") and is_film(value):
            raise Trouble(
                f"{name} {value}: picture and sound are not recorded in a trial: give "
                "window, auto, auto:NAME or none"
            )


def note_clocks(lines: store.Lines, over: threading.Event) -> None:
    while True:
        lines.write({"wall_ns": time.time_ns(), "mono_ns": time.monotonic_ns()})
        if over.wait(1):
            break
    lines.close()


def check_secret(path: Path) -> None:
    try:
        state = path.stat()
    except OSError as err:
        raise Trouble(
            f"--secret {path}: {err.strerror}; both ends need the same file, made by "
            f"(umask 077; head -c 24 /dev/urandom | base64 >{path})"
        ) from err
    if state.st_mode & 0o077:
        raise Trouble(f"--secret {path}: others may read it: chmod 600 {path}")


def hold(command: list[str], call: Path, held: IO[str]) -> tuple[int, bool]:
    """Runs the call; its clocks are noted meanwhile. Ctrl-C reaches the program by itself. How it
    ended, and whether the disk was full at any time."""
    old = {}
    over = threading.Event()
    lines = store.Lines(call, "clock", daily=False)
    clock = threading.Thread(target=note_clocks, args=(lines, over))
    child = subprocess.Popen(command, pass_fds=(held.fileno(),))  # it may outlive this program

    def pass_on(number: int, frame: Any) -> None:
        if number != signal.SIGINT or not sys.stdin.isatty():
            child.send_signal(signal.SIGINT)

    for number in store.stop_signals():
        old[number] = signal.signal(number, pass_on)
    clock.start()
    try:
        status = child.wait()
    finally:
        over.set()
        clock.join()
        for number, handler in old.items():
            signal.signal(number, handler)
    return status, lines.was_full


def start(args: Any) -> int:
    """`paqm-trial call`."""
    if not args.host and not args.listen and not args.meet:
        raise Trouble("name the host to call, or give --listen on the machine that is called")
    if args.host and args.meet:
        raise Trouble("with --meet no host is named: both ends meet there")
    if shutil.which(STREAMER) is None:
        raise Trouble(f"{STREAMER} is missing: install the package paqm-streamer")
    check_secret(args.secret)
    check_passed(args.rest)
    how = ask(args)
    store.open_folder(args.dir, "call", args.keep)
    tidy(args.dir)
    label = args.label or ("callee" if args.listen else "caller")
    name = time.strftime("%Y%m%d-%H%M%S-", time.gmtime()) + secrets.token_hex(2)
    call = args.dir / "calls" / name
    os.umask(0o077)
    try:
        call.mkdir(mode=0o700, parents=True)
        held = store.lock(call)
    except OSError as err:
        raise Trouble(f"{call}: {err.strerror}") from err
    assert held, "nobody else knows of it yet"
    about = {
        "version": store.FORMAT,
        "id": name,
        "role": "callee" if args.listen else "caller",
        "label": label,
        "begin_ns": time.time_ns(),
        "end_ns": None,
        "status": None,
        "keep_days": args.keep,
        "consent": {"figures": True, "picture_and_sound": False, "how": how},
    }
    store.write_json(call / "about.json", about)
    where = ["--listen"] if args.listen else []
    where += [args.host] if args.host else []
    if args.meet:
        where = ["--meet", args.meet]
    status, full = hold(
        [
            STREAMER,
            "call",
            *where,
            "--secret",
            str(args.secret),
            "--name",
            label,
            "--record",
            str(call / "record"),
            *args.rest,
        ],
        call,
        held,
    )
    if not (call / "record" / "call.json").exists():
        shutil.rmtree(call)
        hint = f"; options of {STREAMER} go after --, as in -- --sink none" if status == 2 else ""
        say(f"there was no call, so nothing is kept{hint}")
        return status or 1
    about |= {"end_ns": time.time_ns(), "status": status, "disk_full": full}
    take_out_names(call, args.dir)  # first: whatever fails later, no address stays
    store.write_json(call / "about.json", about)
    (call / store.LOCK).unlink(missing_ok=True)
    held.close()
    say(f"the figures of this call are in {call}; paqm-trial forget --call {name} deletes them")
    return status if status >= 0 else 1
