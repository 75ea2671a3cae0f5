#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The router's part of the trial kit without a network: who has the lock, what tc says and is told.

With the real queue: lab_trial.py, in a guest.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import re
import signal
import socket
import sys
import unittest
from pathlib import Path
from unittest import mock

HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE), str(HERE.parent)]

from paqm_trial import check, cli, queue, router, store  # noqa: E402
from paqm_trial.store import Trouble  # noqa: E402
from test_trial import Case  # noqa: E402


class Queue(Case):
    def test_rates(self) -> None:
        self.assertEqual(queue.parse_rate("2.5mbit"), 2.5e6)
        for text in ("", "20", "20mb", "-1mbit", "1e3mbit", "0mbit", "99999gbit", "20mbit;reboot"):
            with self.assertRaises(Trouble):
                queue.parse_rate(text)

    def test_restore_file(self) -> None:
        good = "# mine\nqdisc add dev eth0 root handle 1: htb default 1\n\n"
        self.assertEqual(len(queue.check_restore(good, "eth0")), 1)
        for text in (
            "qdisc add dev eth1 root fq",
            "exec eth0",
            "tc qdisc add dev eth0 root fq",
            "qdisc add dev eth0 clsact",
        ):
            with self.assertRaises(Trouble):
                queue.check_restore(text, "eth0")

    def test_framing_of_both(self) -> None:
        """The link is the same, whichever queue has its turn; what tc makes of it: lab_trial.py."""
        words = "feedback icmp overhead 18 mpu 64 linklayer ptm".split()
        made = {arm: queue.commands("lo", arm, "6.5mbit", words) for arm in ("fq_codel", "cake")}
        self.assertIn(" htb rate 6400000bit overhead 18 mpu 64 quantum 1514", made["fq_codel"][1])
        self.assertTrue(made["cake"][0].endswith(" cake bandwidth 6.5mbit overhead 32 mpu 64 ptm"))
        words = ["linklayer", "atm", "overhead", "-4"]
        self.assertTrue(queue.commands("lo", "cake", "1mbit", words)[0].endswith(" mpu 0 atm"))
        for wrong in (words, ["overhead", "much"]):
            with self.assertRaises(Trouble):
                queue.commands("lo", "fifo", "1mbit", wrong)

    def test_restore_without_an_end(self) -> None:
        args = cli.build("router").parse_args(["eth0", "--bandwidth", "3mbit"])
        args.restore = Path("/dev/zero")
        with self.assertRaises(Trouble) as why:
            router.make_plan(args)
        self.assertIn("/dev/zero is not lines for tc", str(why.exception))

    def test_both_queues_have_one_rate(self) -> None:
        """Else the calls would be compared at different ones."""
        args = cli.build("router").parse_args(["eth0", "--bandwidth", "3mbit"])
        self.assertEqual(router.make_plan(args)["paqm"], ["feedback", "icmp"])
        for words in ("bandwidth 9mbit", "feedback icmp bandwidth auto"):
            args.paqm = words
            with self.assertRaises(Trouble) as why:
                router.make_plan(args)
            self.assertIn("--paqm has no bandwidth", str(why.exception))

    def test_drops_are_counted_once(self) -> None:
        tree = [
            {"kind": "htb", "handle": "7a1:", "root": True, "bytes": 9, "packets": 2, "drops": 5},
            {"kind": "fq_codel", "handle": "8001:", "parent": "7a1:1", "drops": 5},
        ]
        self.assertEqual(queue.sample(tree)["drops"], 5)
        many = [
            {"kind": "mq", "handle": "0:", "root": True, "drops": 7},
            *({"kind": "fq_codel", "handle": "0:", "parent": f":{n}", "drops": n} for n in (3, 4)),
        ]
        self.assertEqual(queue.sample(many)["drops"], 7)

    def test_module_of_another_kernel(self) -> None:
        """The headers that apt brings may be of a newer kernel than the one that runs."""
        running = os.uname().release
        with mock.patch.object(router, "MODULES", self.home):
            self.assertIn("installed?", router.why_unknown())
            for kernel, said in (("9.9.9-9-amd64", "restart the machine"), (running, "modprobe")):
                place = self.home / kernel / "updates/dkms"
                place.mkdir(parents=True)
                (place / "sch_paqm.ko.xz").touch()
                self.assertIn(said, router.why_unknown())

    def found(self, kind: str, classes: str, filters: str = "", handle: str = "1:") -> list[str]:
        """What find() says of a root, and of what tc shows beside it."""
        root = {"kind": kind, "handle": handle, "root": True, "options": {}}

        def tc(*words: str, text: str | None = None, name: str = "") -> str:
            if "-j" in words or words[0] == "unshare":
                return json.dumps([root])
            shown = {"qdisc": f"qdisc {kind} 1: root refcnt 2", "class": classes, "filter": filters}
            return shown[words[1]]

        with mock.patch.object(queue, "run", tc):
            return queue.find("eth0")

    def test_what_is_lost_with_a_root(self) -> None:
        """Classes and filters are not in the line of the root that tc shows."""
        own = "class {0} 1:1 parent 1: \nclass {0} 1:2 parent 1: \n"
        for kind in ("prio", "fq_codel"):
            found = self.found(kind, own.format(kind))
            self.assertEqual(found, ["root", "handle", "1:", kind])
        self.assertEqual(self.found("mq", own.format("mq"), handle="0:"), [])
        drr = "class drr 1:1 root quantum 1514b \n"
        u32 = "filter parent 1: protocol ip pref 1 u32 chain 0 \n"
        for words in (("drr", drr), ("prio", own.format("prio"), u32), ("mq", "", u32, "0:")):
            with self.subTest(words=words), self.assertRaises(Trouble) as why:
                self.found(*words)
            self.assertIn("with classes or filters): write its tc commands", str(why.exception))

    def test_other_names(self) -> None:
        """A device may have more names, which tc takes and /sys does not know."""
        other = "enx-a-name-longer-than-fifteen"

        def ip(*words: str, text: str | None = None, name: str = "") -> str:
            if words != ("ip", "-j", "link", "show", "dev", other):
                raise Trouble(f'Device "{words[-1]}" does not exist.')
            return json.dumps([{"ifname": "lo", "altnames": [other]}])

        with mock.patch.object(queue, "run", ip):
            names = [queue.real_name(name) for name in (other, "lo", "gone0", "-j", "a/b", "..")]
        self.assertEqual(names, ["lo", "lo", "gone0", "-j", "a/b", ".."])

    def test_speed_of_a_tunnel(self) -> None:
        """Its driver has a number, and a tunnel may carry more."""
        device = self.home / "tun0"
        device.mkdir()
        (device / "speed").write_text("10\n")
        with mock.patch.object(check, "DEVICES", self.home):
            self.assertEqual(check.speed("tun0", "20mbit")[0], "fail")
            (device / "tun_flags").write_text("0x1801\n")
            self.assertEqual(check.speed("tun0", "20mbit")[0], "unsure")


class Lock(Case):
    def test_refused_start_leaves_the_number(self) -> None:
        """Of who runs, by which `end` finds him."""
        held = store.lock(self.home)
        assert held
        with held:
            self.assertIsNone(store.lock(self.home))
            self.assertEqual(store.lock_of_other(self.home), os.getpid())
        self.assertIsNone(store.lock_of_other(self.home))
        (self.home / "lock").write_text("123456789\n")  # of one that was killed
        with store.lock(self.home) or self.fail():
            self.assertEqual(store.lock_of_other(self.home), os.getpid())

    def test_unknown_holder(self) -> None:
        """Whoever he is, he puts his queue back there: nothing has ended."""
        with store.lock(self.home) or self.fail():
            (self.home / "lock").write_text("")
            with mock.patch.object(router.time, "sleep"), self.assertRaises(Trouble):
                router.stop_process(self.home)


class Service(Case):
    """Under systemd, with a systemctl that only says that all is well."""

    def setUp(self) -> None:
        super().setUp()
        self.ran: list[str] = []
        self.here: list[Path] = []  # folders of trials in the foreground
        # what the service is and says, and in which run of it, one after the other
        self.states: list[tuple[str, str, str]] = []
        self.sub, self.runs = "running", itertools.count(3)
        for place, name, value in (
            (router, "HOME", self.home / "lib"),
            (router, "need_root", lambda: None),
            (router, "has_systemd", lambda: True),
            (router, "check_plan", lambda plan: None),
            (router.time, "sleep", lambda seconds: None),
            (router.Router, "run", lambda trial: self.here.append(trial.folder)),
            (store, "LEAST_FREE", 0),
            (queue, "run", self.run_command),
        ):
            patch = mock.patch.object(place, name, value)
            patch.start()
            self.addCleanup(patch.stop)

    def run_command(self, *words: str, text: str | None = None, name: str = "") -> str:
        if words[0] == "systemctl":
            self.ran.append(" ".join(words[1:]))
        if words[:2] == ("systemctl", "show"):
            state, status, run = "active", "attached: paqm", str(next(self.runs))
            if self.states:
                state, status, run = self.states.pop(0)
            said = f"ActiveState={state}\nSubState={self.sub}\nStatusText={status}\n"
            return f"{said}InvocationID={run}\n"
        return "[]"

    def say(self, *words: str) -> tuple[int, str]:
        with contextlib.redirect_stderr(io.StringIO()) as said:
            return cli.main(list(words)), said.getvalue()

    def test_place(self) -> None:
        """The service knows of one: another is for a trial in the foreground."""
        words = ("router", "lo", "--bandwidth", "3mbit", "--dir", str(self.home / "big"))
        status, said = self.say(*words)
        self.assertEqual((status, self.ran), (2, []))
        self.assertIn("--dir goes with --foreground", said)
        self.assertFalse((self.home / "big").exists())
        self.assertEqual(self.say(*words, "--foreground")[0], 0)
        self.assertEqual(self.here, [self.home / "big/lo"])
        self.assertEqual(self.say("end", "lo", "--dir", str(self.home / "big"))[0], 0)
        self.assertEqual(self.ran, [])  # the service is that of another folder
        status, said = self.say(*words[:4])
        self.assertEqual(status, 0, said)
        self.assertIn("enable --now --no-block --quiet paqm-trial@lo.service", self.ran)
        for role, advice in (("router", " --foreground --dir"), ("call", "with --dir")):
            with mock.patch.object(store, "LEAST_FREE", 1 << 62), self.assertRaises(Trouble) as why:
                store.open_folder(self.home / role, role, 30)
            self.assertIn(advice, str(why.exception))

    def test_says_what_is(self) -> None:
        """The trial runs when its queue stands there: a service that runs may have none yet."""
        words = ("router", "lo", "--bandwidth", "3mbit")
        for old in (("failed", "", "1"), ("active", "attached: of the last time", "1")):
            self.states = [old, old, ("active", "", "2"), ("active", "attached: fq_codel", "2")]
            status, said = self.say(*words)
            self.assertEqual((status, self.states), (0, []), said)
            self.assertIn("lo: fq_codel stands there; runs as paqm-trial@lo.service", said)
        for state, sub, text, told in (
            ("active", "running", "tc qdisc: no way", "tc qdisc: no way; the service keeps trying"),
            ("active", "running", "", "the service has no queue after"),
            ("inactive", "dead", "attached: paqm", "the service has no queue after"),
            ("activating", "auto-restart", "tc: gone", "does not stay: journalctl"),
            ("failed", "failed", "attached: paqm", "does not stay: journalctl"),
        ):
            self.states, self.sub = [("failed", "", "1"), *[(state, text, "2")] * 999], sub
            with self.subTest(state=state, text=text):
                status, said = self.say(*words)
                self.assertEqual(status, 2)
                self.assertIn(told, said)
                self.assertNotIn("; runs as", said)

    def test_end_of_all(self) -> None:
        """As when the package is removed: what fails on one device keeps no other trial running."""
        for device in ("a0", "lo"):
            self.assertEqual(self.say("router", device, "--bandwidth", "3mbit")[0], 0)

        def release(folder: Path, plan: dict[str, object]) -> str:
            if plan["device"] == "a0":
                raise Trouble("a0: what stood there before is not back")
            return "lo: back"

        with mock.patch.object(router, "release", release):
            status, said = self.say("end")
        self.assertEqual(status, 2)
        self.assertIn("disable --now --quiet paqm-trial@lo.service", self.ran)
        self.assertIn("lo: back", said)
        self.assertIn("a0: what stood there before is not back", said)
        self.assertEqual(
            [router.is_set_up(self.home / "lib" / device) for device in ("a0", "lo")], [True, False]
        )

    def test_days_of_what_is_there(self) -> None:
        """Who says nothing of days does not shorten them, nor who is refused."""
        kept = self.home / "lib/lo" / store.ABOUT
        words = ("router", "lo", "--bandwidth", "3mbit")
        self.assertEqual(self.say(*words, "--keep", "400")[0], 0)
        self.assertIn("kept for 400 days", self.say(*words)[1])
        with store.lock(kept.parent) or self.fail():
            status, said = self.say(*words, "--keep", "1")
        self.assertEqual((status, "runs there already" in said), (2, True), said)
        self.assertEqual(json.loads(kept.read_text())["keep_days"], 400)

    def test_tells_the_manager(self) -> None:
        place = self.home / "notify"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(str(place))
            manager.settimeout(5)
            with mock.patch.dict(os.environ, {"NOTIFY_SOCKET": str(place)}):
                router.tell_manager("tc says:\n no")
            self.assertEqual(manager.recv(100), b"STATUS=tc says: no")
        unit = (HERE.parent / "paqm-trial@.service.in").read_text()
        self.assertRegex(unit, "(?m)^NotifyAccess=main$")

    def test_pause(self) -> None:
        """Nothing goes on after a restart, until it is said; the unit's own commands leave it."""
        unit = (HERE.parent / "paqm-trial@.service.in").read_text()
        lines = dict(re.findall(r"^(Exec\w+)=-?@BINDIR@/paqm-trial (.*)$", unit, re.M))

        def by_unit(key: str, **env: str) -> None:
            with mock.patch.dict(os.environ, env):
                status, said = self.say(*lines[key].replace("%i", "lo").split())
            self.assertEqual((status, self.ran), (0, []), said)

        self.assertEqual(self.say("router", "lo", "--bandwidth", "3mbit")[0], 0)
        for words, done in (
            (("end", "lo", "--pause"), "disable --now --quiet paqm-trial@lo.service"),
            (("router", "lo", "--resume"), "enable --now --no-block --quiet paqm-trial@lo.service"),
        ):
            self.ran = []
            status, said = self.say(*words)
            self.assertEqual(status, 0, said)
            self.assertIn(done, self.ran)
        self.assertEqual(self.here, [])
        self.ran = []
        for words in (("--bandwidth", "9mbit"), ("--baseline=fq_codel",), ("--keep", "90")):
            status, said = self.say("router", "lo", "--resume", *words)
            self.assertEqual((status, self.ran), (2, []), said)
            self.assertIn(f"takes no {words[0].partition('=')[0]}:", said)
        by_unit("ExecStart")
        self.assertEqual(self.here, [self.home / "lib/lo"])
        by_unit("ExecStopPost", SERVICE_RESULT="success")


class PutBack(Case):
    """A device whose tc takes a tree of shapers, or only the first line of it."""

    TREE = (
        "qdisc add dev lo root handle 1: htb default 1",
        "class add dev lo parent 1: classid 1:1 htb rate 3mbit",
    )

    def setUp(self) -> None:
        super().setUp()
        self.works = False
        self.root = {"kind": "paqm", "handle": "7a1:", "root": True}
        self.plan = {"device": "lo", "restore": list(self.TREE), "bandwidth": "3mbit", "paqm": []}
        self.plan |= {"alternate": "none", "arm": "baseline", "baseline": "as-found", "seed": 1}
        for name, value in (
            ("show", lambda device, statistics=True: [self.root]),
            ("run", self.run_command),
        ):
            patch = mock.patch.object(queue, name, value)
            patch.start()
            self.addCleanup(patch.stop)
        self.state = self.home / router.STATE
        store.write_json(self.state, {"boot": router.boot_id(), "found": []})

    def run_command(self, *words: str, text: str | None = None, name: str = "") -> str:
        if words[:3] == ("tc", "qdisc", "del"):
            self.root = {"kind": "fq_codel", "handle": "0:", "root": True}
        elif words[1] == "-batch":
            self.root = {"kind": "htb", "handle": "1:", "root": True}
            if not self.works:
                raise Trouble("tc -batch -: Command failed -:2")
        return ""

    def test_failure_is_no_success(self) -> None:
        """Neither for the service nor for its ExecStopPost nor for `end`."""
        for _ in range(3):
            with self.assertRaises(Trouble) as why:
                router.release(self.home, self.plan)
        self.assertIn("what stood there before is not back: tc", str(why.exception))
        self.assertIn(str(self.state), str(why.exception))
        with mock.patch.object(store, "write_json", side_effect=Trouble("disk full")):
            self.works = True
            with contextlib.redirect_stderr(io.StringIO()):
                self.assertIn("before is back", router.release(self.home, self.plan))
        self.assertFalse(self.state.exists())

    def test_turn_of_what_was_found(self) -> None:
        trial = router.Router(self.home, self.plan)
        with contextlib.redirect_stderr(io.StringIO()):
            trial.remember()
            trial.second()
            self.assertEqual(trial.arm, "")
            with self.assertRaises(Trouble):
                router.release(self.home, self.plan)
            self.works = True
            trial.second()
        self.assertEqual(trial.arm, "as-found")
        self.root = {"kind": "pfifo", "handle": "8001:", "root": True}  # of another program
        self.assertIn("no queue of the trial", router.release(self.home, self.plan))
        self.assertEqual(self.root["kind"], "pfifo")
        trial.lines.close()

    def test_check_of_another_folder(self) -> None:
        """Of a trial that was begun with --dir, which knows its queue and its disk."""
        (self.home / "eth0").mkdir()
        store.write_json(self.home / "eth0" / router.STATE, {"boot": router.boot_id()})
        self.root = {"kind": "paqm", "handle": queue.HANDLE, "root": True}
        names = [(queue, "need_device"), (router, "need_root"), (router, "check_plan")]
        for module, name in names:
            patch = mock.patch.object(module, name)
            patch.start()
            self.addCleanup(patch.stop)
        held = store.lock(self.home / "eth0")
        for runs, told in ((True, "the trial runs"), (False, f"end eth0 --dir {self.home}")):
            if not runs and held:
                held.close()
            args = cli.build("check").parse_args(["eth0", "--dir", str(self.home)])
            rows = {what: detail for _, what, detail in check.of_router("eth0", args)}
            self.assertIn(told, rows["the trial's queue stands there"])
            self.assertIn(str(self.home), rows["disk"])

    def test_nohup(self) -> None:
        """A terminal that is closed ends the trial, unless nohup(1) began it."""
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        for number, before in [(number, signal.getsignal(number)) for number in numbers]:
            self.addCleanup(signal.signal, number, before)
        for given, ends in ((signal.SIG_DFL, True), (signal.SIG_IGN, False)):
            signal.signal(signal.SIGHUP, given)
            trial = router.Router(self.home, self.plan)
            stopped = []

            def second(trial: router.Router = trial, stopped: list[bool] = stopped) -> None:
                signal.raise_signal(signal.SIGHUP)
                stopped.append(trial.stop)
                signal.raise_signal(signal.SIGTERM)

            with mock.patch.object(trial, "second", second), mock.patch.object(router, "release"):
                trial.run()
            self.assertEqual(stopped, [ends])

    def test_tc_is_ended_too(self) -> None:
        """With the program, as all of a service are: that is no trouble to be reported."""
        for stop in (False, True):
            trial = router.Router(self.home, self.plan)
            trial.stop, trial.arm = stop, trial.due()
            with (
                mock.patch.object(queue, "show", side_effect=Trouble("tc: status -15")),
                contextlib.redirect_stderr(io.StringIO()) as said,
            ):
                trial.second()
            self.assertEqual("status -15" in said.getvalue(), not stop)
            trial.lines.close()

    def test_mended_file(self) -> None:
        """A new start with another --restore goes by that."""
        store.write_json(self.home / router.PLAN, self.plan)
        for restore, given in (([], list(self.TREE)), (["qdisc 2"], ["qdisc 2"])):
            with (
                mock.patch.object(router, "release", return_value="") as release,
                contextlib.redirect_stderr(io.StringIO()),
            ):
                router.release_if_stale(self.home, self.plan | {"restore": restore})
            self.assertEqual(release.call_args.args[1]["restore"], given)

    def test_tried_before(self) -> None:
        """On a loopback of its own, unless the lines want more of a device than that has."""
        with mock.patch.object(queue, "_in_private") as tried:
            queue.try_restore("eth0", [line.replace("lo", "eth0") for line in self.TREE])
            self.assertIn("\n".join(self.TREE), tried.call_args.args[0])
        redirect = "filter add dev eth0 parent 1: matchall action mirred egress redirect dev ifb0"
        for line in (redirect, "qdisc add dev eth0 root handle 1: mq"):
            with (
                mock.patch.object(queue, "_in_private") as tried,
                contextlib.redirect_stderr(io.StringIO()) as said,
            ):
                queue.try_restore("eth0", [line])
            tried.assert_not_called()
            self.assertIn("is not tried beforehand", said.getvalue())
            self.assertIn(line, said.getvalue())


if __name__ == "__main__":
    unittest.main()
