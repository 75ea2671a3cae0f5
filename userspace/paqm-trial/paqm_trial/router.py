# SPDX-License-Identifier: GPL-2.0
"""The router's part: takes turns with the queues of a device and keeps their statistics.

What stood on the device before is kept in state.json, together with the boot it was found in: a
restart of the machine puts its own queue there. It is put back when the trial pauses or ends, by
a signal as by `end`; a new start after a crash knows that the state is older than itself.
"""

from __future__ import annotations

import os
import random
import re
import signal
import socket
import time
from pathlib import Path
from types import FrameType
from typing import Any

from paqm_trial import queue, schedule, store
from paqm_trial.store import Trouble, say

HOME = Path("/var/lib/paqm-trial")
MODULES = Path("/lib/modules")
STATE, PLAN = "state.json", "plan.json"
IDLE_NS = 60 * 10**9  # a sample is written as often when nothing was sent
RETRY_S = 5
UNIT = "paqm-trial@{}.service"
SHOWN = "ActiveState,SubState,StatusText,InvocationID"
START_S = 30  # until the service has its queue
ATTACHED = "attached: "  # what its status begins with when it has
RESTORE_MAX = 65536  # characters of --restore
# Options that a plan is made of.
PLANNED = {"bandwidth", "baseline", "alternate", "arm", "seed", "paqm", "restore", "keep"}


def folder_of(home: Path, device: str) -> Path:
    queue.need_name(device)
    return home / device


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def make_plan(args: Any) -> dict[str, Any]:
    """What the command line asks for, checked where it can be."""
    queue.parse_rate(args.bandwidth)
    alternate = schedule.parse_alternate(args.alternate)
    if args.arm and alternate >= 0:
        raise Trouble("--arm goes with --alternate none: otherwise the queues take turns")
    words = args.paqm.split()
    if "bandwidth" in words:  # tc goes by the last one, and the baseline would have another
        raise Trouble("--paqm has no bandwidth: both queues get that of --bandwidth")
    batch = []
    if args.restore:
        try:
            with args.restore.open() as file:
                text = file.read(RESTORE_MAX + 1)
            if len(text) > RESTORE_MAX:  # or one without an end
                raise Trouble(f"--restore: {args.restore} is not lines for tc: it is too long")
            batch = queue.check_restore(text, args.device)
        except (OSError, UnicodeDecodeError) as err:
            raise Trouble(f"--restore: {err}") from err
    seed = args.seed if args.seed is not None else random.SystemRandom().randrange(10**6)
    return {
        "version": store.FORMAT,
        "device": args.device,
        "bandwidth": args.bandwidth,
        "baseline": args.baseline,
        "alternate": args.alternate,
        "arm": args.arm,
        "seed": seed,
        "paqm": words,
        "restore": batch,
    }


def why_unknown() -> str:
    """What keeps tc or the kernel from knowing paqm: its module is built for each kernel whose
    headers are there, and these may be of a newer one than runs."""
    running = os.uname().release
    built = sorted(path.parts[-4] for path in MODULES.glob("*/updates/dkms/sch_paqm.ko*"))
    if not built:
        return "are sch-paqm-dkms (with the kernel's headers) and tc-paqm installed?"
    if running not in built:
        return (
            f"its module is built for {', '.join(built)}, but {running} runs: restart the machine, "
            f"or install linux-headers-{running}"
        )
    return "its module is installed: modprobe sch_paqm shows its fault; is tc-paqm installed?"


def check_plan(plan: dict[str, Any]) -> None:
    """Can the queues be attached here whose turn may come? Nothing is changed."""
    queue.need_device(plan["device"])
    arms = {"paqm", plan["baseline"]}
    if plan["alternate"] == "none":
        arms = {plan["baseline"] if plan["arm"] == "baseline" else "paqm"}
    for arm in sorted(arms - {"as-found"}, key=lambda one: one != "paqm"):
        try:
            queue.try_arm(arm, plan["bandwidth"], plan["paqm"])
        except Trouble as err:
            hint = ""
            if arm == "paqm" and re.search("nknown|not found|No such file", str(err)):
                hint = f"; {why_unknown()}"
            raise Trouble(f"the queue {arm} cannot be attached here: {err}{hint}") from err
    try:
        queue.try_restore(plan["device"], plan["restore"])
    except Trouble as err:
        raise Trouble(f"--restore: tc does not take these lines: {err}") from err


class Router:
    def __init__(self, folder: Path, plan: dict[str, Any]) -> None:
        self.folder, self.plan = folder, plan
        self.device = plan["device"]
        self.alternate = schedule.parse_alternate(plan["alternate"])
        self.stop = False
        self.arm = ""  # what is attached; empty: nothing of ours
        self.found: list[str] = []
        self.lines = store.Lines(folder, "samples", daily=True)
        self.last: dict[str, Any] = {}
        self.written_ns = 0
        self.trouble = ""
        self.swept = ""

    def event(self, what: str, **more: Any) -> None:
        self.lines.write(
            {
                "wall_ns": time.time_ns(),
                "mono_ns": time.monotonic_ns(),
                "event": what,
                "arm": self.arm,
                **more,
            }
        )

    def remember(self) -> None:
        """What stands there, unless this trial has put it there in this boot."""
        state = store.read_json(self.folder / STATE)
        if state and state.get("boot") == boot_id():
            self.found = [str(word) for word in state.get("found", [])]
            return
        self.found = [] if self.plan["restore"] else queue.find(self.device)
        if self.plan["baseline"] == "as-found" and "paqm" in self.found:
            raise Trouble(
                f"{self.device} has paqm already: a comparison with what is found would "
                "compare it with itself; choose another --baseline"
            )
        store.write_json(self.folder / STATE, {"boot": boot_id(), "found": self.found})

    def due(self) -> str:
        turn = schedule.turn_at(self.alternate, self.plan["seed"])
        if self.plan["arm"]:
            return str(self.plan["baseline"] if self.plan["arm"] == "baseline" else "paqm")
        return "paqm" if turn.paqm else str(self.plan["baseline"])

    def attach(self) -> None:
        arm = self.due()
        if arm == "as-found":
            put_back(self.folder, self.plan, {"boot": boot_id(), "found": self.found})
        else:
            queue.attach(self.device, arm, self.plan["bandwidth"], self.plan["paqm"])
        self.arm = arm
        shown = queue.show(self.device)
        edges = (queue.root_of(shown) or {}).get("sojourn_edges_ns")
        self.event(
            "attached",
            edges_ns=edges,
            bandwidth_bps=queue.parse_rate(self.plan["bandwidth"]),
            baseline=self.plan["baseline"],
            alternate=self.plan["alternate"],
            seed=self.plan["seed"],
        )
        say(f"{self.device}: {arm}")
        tell_manager(ATTACHED + arm)

    def replaced(self, shown: list[dict[str, Any]]) -> bool:
        """Has somebody else put another queue there?"""
        return not queue.ours(shown) if self.arm != "as-found" else queue.ours(shown)

    def sample(self) -> None:
        shown = queue.show(self.device)
        if self.replaced(shown):
            self.event("replaced", by=(queue.root_of(shown) or {}).get("kind"))
            say(
                f"{self.device}: its queue was replaced by another program; the trial puts its own "
                f"there again in {RETRY_S} s"
            )
            self.arm = ""
            return
        row = queue.sample(shown)
        now = time.time_ns()
        if row != self.last or now - self.written_ns >= IDLE_NS or now < self.written_ns:
            self.lines.write(
                {"wall_ns": now, "mono_ns": time.monotonic_ns(), "arm": self.arm, **row}
            )
            self.last, self.written_ns = row, now

    def second(self) -> None:
        """One round; what goes wrong is said once and tried again: devices come and go."""
        try:
            if self.arm != self.due():
                self.attach()
            self.sample()
            if self.trouble:
                say(f"{self.device}: works again")
            self.trouble = ""
        except Trouble as err:
            if self.stop:  # who ends this, as the service manager does, ends its tc, too
                return
            if str(err) != self.trouble:
                tell_manager(str(err))
                say(f"{err}; trying again every {RETRY_S} s")
                self.event("trouble", detail=str(err)[:500])
            self.trouble, self.arm = str(err), ""
        today = store.day_of(time.time_ns())
        if today != self.swept:
            self.swept = today
            try:
                store.forget(self.folder)
            except Trouble as err:
                say(str(err))

    def run(self) -> None:
        def on_signal(number: int, frame: FrameType | None) -> None:
            self.stop = True

        for number in store.stop_signals():
            signal.signal(number, on_signal)
        self.remember()
        self.event("begin")
        due = time.monotonic()
        try:
            while not self.stop:
                self.second()
                step = RETRY_S if not self.arm else 1
                due = max(due + step, time.monotonic() - 1)
                while not self.stop and due > time.monotonic():
                    time.sleep(min(0.2, max(0.0, due - time.monotonic())))
        finally:
            release(self.folder, self.plan)
            self.arm = ""
            self.event("end")
            self.lines.close()


def put_back(folder: Path, plan: dict[str, Any], state: dict[str, Any]) -> None:
    """What was found. If that fails, state.json says that it is due: nothing of the trial need
    stand there by then."""

    def note(due: bool) -> None:
        try:
            store.write_json(folder / STATE, state | {"putting_back": due})
        except Trouble as err:
            say(str(err))  # a full disk does not keep the queue from coming back

    note(True)
    queue.put_back(plan["device"], [str(word) for word in state.get("found", [])], plan["restore"])
    note(False)


def release(folder: Path, plan: dict[str, Any]) -> str:
    """Puts back what was found, if something of the trial stands there; what was done."""
    state = store.read_json(folder / STATE)
    device = plan["device"]
    if state is None:
        return f"{device}: what stood there before is in place"
    said = f"{device}: the machine was restarted, its own queue is in place"
    try:
        if state.get("boot") == boot_id():
            if state.get("putting_back") or queue.ours(queue.show(device)):
                put_back(folder, plan, state)
                said = f"{device}: what stood there before is back"
            else:
                said = f"{device}: no queue of the trial stands there"
    except Trouble as err:
        if Path("/sys/class/net", device).exists():
            raise Trouble(
                f"{device}: what stood there before is not back: {err}; fix that and end again, "
                f"or make its queue yourself and delete {folder / STATE}"
            ) from err
        said = f"{device}: the device is gone, and its queue with it ({err})"
    (folder / STATE).unlink(missing_ok=True)
    return said


def load_plan(folder: Path, ended: bool = False) -> dict[str, Any]:
    """`ended`: also of a trial that has."""
    plan = store.read_json(folder / PLAN)
    if plan is None or plan.get("ended_ns") and not ended or plan.get("version") != store.FORMAT:
        raise Trouble(
            f"{folder}: no trial is set up there; paqm-trial router DEVICE --bandwidth RATE does so"
        )
    return plan


def is_set_up(folder: Path) -> bool:
    plan = store.read_json(folder / PLAN)
    return plan is not None and not plan.get("ended_ns")


def has_systemd() -> bool:
    return Path("/run/systemd/system").is_dir()


def as_service(args: Any) -> bool:
    """Does the trial of that folder run as a service? That knows of HOME alone."""
    return has_systemd() and args.dir == HOME


def need_root() -> None:
    if os.geteuid():
        raise Trouble("only root may change the queue of a device: sudo paqm-trial ...")


def runs_already(device: str) -> Trouble:
    return Trouble(f"{device}: a trial runs there already; paqm-trial end {device} ends it")


def start(args: Any) -> int:
    """`paqm-trial router`: sets up, and goes on as a service, or here."""
    need_root()
    args.device = queue.real_name(args.device)
    folder = folder_of(args.dir, args.device)
    here = args.foreground or not has_systemd()
    if not here and not as_service(args):
        raise Trouble(f"--dir goes with --foreground: the service keeps its data in {HOME}")
    if args.resume:
        plan = load_plan(folder)
        if changed := sorted(PLANNED & args.given):
            raise Trouble(
                f"--resume goes on with the plan as it is, and takes no --{changed[0]}: end the "
                f"trial (paqm-trial end {args.device}), then begin anew without --resume"
            )
    else:
        if not args.bandwidth:
            raise Trouble(
                "--bandwidth RATE is missing: a little less than the link carries, as "
                "measured (95 %), such as 20mbit"
            )
        plan = make_plan(args)
        check_plan(plan)
        # before the folder is told how long to keep data: who runs there would delete them
        if store.lock_of_other(folder) is not None:
            raise runs_already(args.device)
        plan["keep_days"] = store.open_folder(folder, "router", args.keep)["keep_days"]
    held = store.lock(folder)
    if held is None:
        raise runs_already(args.device)
    if not args.resume:
        release_if_stale(folder, plan)
        store.write_json(folder / PLAN, plan)
        say(
            f"{args.device}: P-AQM and {plan['baseline']} at {plan['bandwidth']}, alternating: "
            f"{plan['alternate']}, seed {plan['seed']}; data in {folder}, kept for "
            f"{plan['keep_days']} days"
        )
    if here:
        Router(folder, plan).run()
        return 0
    held.close()
    unit = UNIT.format(args.device)
    before = state_of(unit).get("InvocationID")
    # not waited for: it comes after the network, which may take long to be online
    queue.run("systemctl", "enable", "--now", "--no-block", "--quiet", unit)
    arm = await_queue(unit, before)
    say(
        f"{args.device}: {arm} stands there; runs as {unit}, also after a restart; `paqm-trial end "
        f"{args.device}` ends it"
    )
    return 0


def state_of(unit: str) -> dict[str, str]:
    shown = queue.run("systemctl", "show", "-p", SHOWN, unit)
    return dict(line.split("=", 1) for line in shown.splitlines() if "=" in line)


def await_queue(unit: str, before: str | None) -> str:
    """The queue that the service has attached, by what it tells its manager; `before`: the run
    whose end is of no interest, it may have failed."""
    state = status = ""
    for _ in range(5 * START_S):
        found = state_of(unit)
        if found.get("InvocationID") == before:
            time.sleep(0.2)
            continue
        state, status = found.get("ActiveState", ""), found.get("StatusText", "")
        if state == "failed" or found.get("SubState", "").startswith("auto-restart"):
            raise Trouble(f"the service does not stay: journalctl -u {unit} says why")
        if state == "active" and status.startswith(ATTACHED):
            return status.removeprefix(ATTACHED)
        time.sleep(0.2)
    if state == "active" and status:
        raise Trouble(f"{status}; the service keeps trying: fix that, or end the trial")
    raise Trouble(
        f"the service has no queue after {START_S} s, but may get it yet: systemctl status {unit} "
        "and systemctl list-jobs tell what it waits for"
    )


def tell_manager(status: str) -> None:
    """What `systemctl status` shows beside the service, and `start` waits for."""
    where = os.environ.get("NOTIFY_SOCKET", "")
    if not where:
        return
    address = "\0" + where[1:] if where.startswith("@") else where
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.sendto(f"STATUS={' '.join(status.split())}".encode(), address)
    except OSError as err:
        say(f"the service manager cannot be told: {err.strerror}")


def release_if_stale(folder: Path, plan: dict[str, Any]) -> None:
    """A trial that crashed has left its queue: what stood there before it is what counts."""
    if (folder / STATE).exists():
        of_before = (store.read_json(folder / PLAN) or {}).get("restore", [])
        say(release(folder, plan | {"restore": plan["restore"] or of_before}))


def end(args: Any) -> int:
    """`paqm-trial end`: of one device or of all."""
    need_root()
    if not args.dir.is_dir():
        raise Trouble(f"{args.dir}: no trial was set up on this machine")
    devices = (
        [args.device]
        if args.device
        else sorted(path.name for path in args.dir.iterdir() if is_set_up(path))
    )
    if not devices:
        say("no trial is set up on this machine")
    troubles = []
    for device in devices:
        try:
            end_one(args, device)
        except Trouble as err:
            troubles.append(str(err))
    if troubles:
        raise Trouble("; ".join(troubles))
    return 0


def end_one(args: Any, device: str) -> None:
    if not (args.dir / device).is_dir():  # a device that is gone has its folder still
        device = queue.real_name(device)
    folder = folder_of(args.dir, device)
    plan = load_plan(folder, ended=True)
    # the unit ends by itself what it has begun: it would wait here for its own end
    if as_service(args) and "SERVICE_RESULT" not in os.environ:
        try:
            queue.run("systemctl", "disable", "--now", "--quiet", UNIT.format(device))
        except Trouble as err:
            say(f"{err}: harmless if the trial did not run as a service")
    stop_process(folder)
    say(release(folder, plan))
    if not args.pause:
        store.write_json(folder / PLAN, {"ended_ns": time.time_ns()} | plan)
        say(f"{device}: the trial has ended; its data are in {folder}")


def stop_process(folder: Path) -> None:
    """A trial in the foreground of another terminal."""
    asked = None
    for _ in range(100):
        held = store.lock_of_other(folder)
        if held is None:
            return
        if held and held != asked:
            os.kill(held, signal.SIGTERM)
            asked = held
        time.sleep(0.1)
    if not held:
        raise Trouble(
            f"{folder}: a process of unknown number has the trial: fuser {folder}/lock "
            "shows it; end it, then try again"
        )
    raise Trouble(f"{folder}: the process {held} does not end; kill -9 {held}, then try again")
