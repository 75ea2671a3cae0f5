#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The trial kit without a network: the report against folders whose figures are known, data that
are broken or made up, the order of turns, the interval of a difference, what is deleted when.

With the real queue, and by the handbook: lab_trial.py, in a guest.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import itertools
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE), str(HERE.parent)]

import folders  # noqa: E402
from folders import BEGIN, MS, Clock, S  # noqa: E402
from paqm_trial import call, cli, clocks, compare, figures, page, report, schedule, store  # noqa: E402
from paqm_trial.store import Trouble  # noqa: E402

PROGRAM = HERE.parent / "paqm-trial"
NONE = Clock()
RUNS = 60  # broken folders, unless PAQM_SECONDS says for how long


class Case(unittest.TestCase):
    def setUp(self) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="paqm-trial-test-"))
        self.addCleanup(shutil.rmtree, self.home)

    def places(self) -> dict[str, Path]:
        found = {name: self.home / name for name in ("caller", "callee")}
        for path in found.values():
            folders.dump(path / "trial.json", folders.about("call"))
        return found

    def merged(self) -> dict[str, Any]:
        return report.merge([self.home])


class Schedule(Case):
    def test_pairs_have_one_of_each(self) -> None:
        for length, text in ((60, "60s"), (14400, "4h")):
            seconds = schedule.parse_alternate(text)
            self.assertEqual(seconds, length)
            turns = [schedule.turn_at(seconds, 7, n * length + 0.5).paqm for n in range(400)]
            self.assertTrue(all(a != b for a, b in zip(turns[::2], turns[1::2], strict=True)))
            firsts = sum(turns[::2])
            self.assertTrue(70 < firsts < 130, firsts)  # drawn, not always the same
            self.assertEqual(
                turns, [schedule.turn_at(seconds, 7, n * length + 59).paqm for n in range(400)]
            )
            self.assertNotEqual(
                turns, [schedule.turn_at(seconds, 8, n * length).paqm for n in range(400)]
            )

    def test_days_begin_at_four_and_have_no_gap(self) -> None:
        os.environ["TZ"] = "Europe/Oslo"  # two days of the year have 23 and 25 hours
        time.tzset()
        now, lengths = 1_790_000_000.0, []
        for _ in range(400):
            turn = schedule.turn_at(0, 1, now)
            self.assertEqual(schedule.turn_at(0, 1, turn.end - 1).number, turn.number)
            self.assertEqual(schedule.turn_at(0, 1, turn.end + 1).number, turn.number + 1)
            self.assertEqual(time.localtime(turn.end).tm_hour, 4)
            lengths.append(round((turn.end - now) / 3600))
            now = turn.end
        self.assertEqual(set(lengths[1:]), {23, 24, 25})

    def test_refuses(self) -> None:
        for text in ("", "5", "59s", "-4h", "1d", "0h", "1e9s", "９h"):
            with self.assertRaises(Trouble):
                schedule.parse_alternate(text)


class Compare(Case):
    def test_exact_counts(self) -> None:
        for n, m in ((1, 1), (2, 3), (4, 4), (5, 3)):
            brute = [0] * (n * m + 1)
            for ours in itertools.combinations(range(n + m), n):
                brute[sum(1 for a in ours for b in range(n + m) if b not in ours and b < a)] += 1
            self.assertEqual(compare._counts(n, m), brute)

    def test_too_few_is_said(self) -> None:
        found = compare.difference([1.0, 1.1, 1.2], [9.0, 9.1, 9.2])
        self.assertIsNone(found["interval"])
        self.assertEqual(found["verdict"], "too few calls")
        self.assertEqual(compare.difference([], [1.0])["verdict"], "too few calls")
        found = compare.difference([1.0, 1.1, 1.2, 1.3], [9.0, 9.1, 9.2, 9.3])
        self.assertEqual(found["verdict"], "lower")

    def test_interval_covers(self) -> None:
        dice = random.Random(5)
        for n, m in ((4, 4), (8, 12), (60, 60)):
            hit = sum(
                1
                for _ in range(300)
                if (
                    found := compare.difference(
                        [dice.expovariate(1) + 2 for _ in range(n)],
                        [dice.expovariate(1) for _ in range(m)],
                    )["interval"]
                )
                and found[0] <= 2 <= found[1]
            )
            self.assertGreater(hit, 300 * 0.92, (n, m, hit))

    def test_same_values(self) -> None:
        self.assertEqual(compare.difference([0.0] * 9, [0.0] * 9)["verdict"], "no difference shown")


class Freezes(Case):
    def test_rule(self) -> None:
        even = [n * 40 * MS for n in range(100)]
        self.assertEqual(figures.freezes(even), (0, 0.0, 0.0))
        for gap, times in ((189, 0), (190, 1), (400, 1)):  # 40 + 150
            late = even[:50] + [at + (gap - 40) * MS for at in even[50:]]
            self.assertEqual(figures.freezes(late)[0], times, gap)
        slow = [n * 100 * MS for n in range(50)]  # 3 x 100
        for gap, times in ((299, 0), (300, 1)):
            self.assertEqual(figures.freezes([*slow, slow[-1] + gap * MS])[0], times)
        self.assertEqual(figures.freezes(even, even[-1] + 3 * S), (1, 3.0, 0.0))

    def test_whatever_comes(self) -> None:
        dice = random.Random(2)
        for _ in range(200):
            play = [dice.randrange(-(2**62), 2**62) for _ in range(dice.randrange(20))]
            apart = [(dice.randrange(2**62), dice.randrange(2**62)) for _ in range(2)]
            found = figures.freezes(play, dice.choice([None, 0, 2**62]), apart)
            self.assertTrue(min(found) >= 0)


class Clocks(Case):
    def test_offset_and_drift(self) -> None:
        dice = random.Random(1)
        ahead, drift = 7 * 3600 * S, 80e-6
        clock = Clock(ahead, drift)

        def ways(back: bool) -> list[tuple[int, int]]:
            found = []
            for n in range(6000):
                left = BEGIN + n * 50 * MS
                came = left + 20 * MS + int(dice.expovariate(1 / 30) * MS)
                found.append((clock.at(left), came) if back else (left, clock.at(came)))
            return found

        offset = clocks.align(ways(False), ways(True))
        assert offset
        for at in (BEGIN, BEGIN + 150 * S, BEGIN + 299 * S):
            self.assertLess(abs(offset.at(at) - (clock.at(at) - at)), 2 * MS)

    def test_steps(self) -> None:
        notes = [
            {"wall_ns": BEGIN + n * S + (5 * S if n > 9 else 0), "mono_ns": n * S + 5}
            for n in range(20)
        ]
        self.assertEqual(
            clocks.steps([{}, {"wall_ns": "x"}, *notes, {"wall_ns": -1}]), [(BEGIN + 15 * S, 5 * S)]
        )


class Report(Case):
    def test_figures(self) -> None:
        """Clocks an hour apart that drift; what was put in comes out."""
        places = self.places()
        ends = {"caller": Clock(), "callee": Clock(3600 * S, 50e-6)}
        folders.call(places, ends, "c1", BEGIN + 10 * S, wait_ms=30, lose=50, stall=2)
        router = folders.Router(self.home / "eth0", NONE)
        router.turn("paqm", BEGIN, 100, wait_us=1000, loss=1)
        router.write()
        result = self.merged()
        self.assertEqual(len(result["calls"]), 1)
        row = result["calls"][0]
        self.assertEqual(row["arm"], "paqm")
        bad, good = row["to_callee"], row["to_caller"]
        self.assertAlmostEqual(bad["frame_delivery_ms"]["p95"], 50.3, delta=1)
        self.assertAlmostEqual(good["frame_delivery_ms"]["p95"], 20.3, delta=1)
        self.assertAlmostEqual(bad["frame_delay_above_least_ms"]["p95"], 30, delta=1)
        self.assertAlmostEqual(bad["loss_percent"], 2, delta=0.1)
        self.assertEqual(good["loss_percent"], 0)
        self.assertEqual((bad["freezes"], good["freezes"]), (2, 0))
        self.assertAlmostEqual(bad["frozen_percent"], 2 * 1.05 / 60 * 100, delta=0.2)
        self.assertAlmostEqual(good["rate_kbps"], 640, delta=10)
        self.assertAlmostEqual(good["round_trip_ms"]["p95"], 55, delta=0.01)
        held = row["router"]["eth0"]
        self.assertTrue(0.8 <= held["media_delay_ms"]["p95"] <= 1.6, held)
        self.assertAlmostEqual(held["media_loss_percent"], 100 / 84, delta=0.1)
        self.assertAlmostEqual(held["backlog_ms"]["p95"], 1.0)
        self.assertEqual(row["problems"], [])
        for end, advice in (("callee", []), ("caller", []), ("caller", [[BEGIN, "router-1"]])):
            record = places[end] / f"calls/c1-{end}/record"
            folders.table(record / "feedback.csv", "t_ns,router", advice)
            deaf = "no advice" in str(self.merged()["calls"][0]["problems"])
            self.assertEqual(deaf, not advice and end == "caller")

    def test_comparison(self) -> None:
        places = self.places()
        ends = {"caller": NONE, "callee": Clock(-S)}
        router = folders.Router(self.home / "eth0", Clock(300 * S))  # and its clock is wrong
        for n in range(12):
            begin = BEGIN + n * 400 * S
            paqm = schedule.turn_at(60, 3, n * 60).paqm
            at = 60 + n * n * 37 % 200
            router.turn("paqm" if paqm else "fq_codel", begin, 390, busy=(at, at + 30))
            folders.call(
                places, ends, f"c{n:02}", begin + at * S, 30, wait_ms=(2 if paqm else 60) + n / 10
            )
        # what crosses a turn is not compared
        folders.call(places, ends, "c99", BEGIN + 375 * S, 60)
        router.write()
        result = self.merged()
        arms = [row["arm"] for row in result["calls"]]
        self.assertEqual(sorted(set(arms)), ["fq_codel", "mixed", "paqm"])
        rows = {(row["direction"], row["figure"]): row for row in result["comparison"]}
        delivery = rows["to_callee", "frame_delivery_ms.p95"]
        self.assertEqual(delivery["verdict"], "lower")
        self.assertTrue(delivery["interval"][0] <= -58 <= delivery["interval"][1], delivery)
        self.assertEqual(
            rows["to_caller", "frame_delivery_ms.p95"]["verdict"], "no difference shown"
        )
        self.assertEqual(delivery["by_day"]["verdict"], "too few days")

    def test_missing_sides(self) -> None:
        places = self.places()
        folders.call(places, {"caller": NONE, "callee": NONE}, "c1", BEGIN, lose=50)
        whole = self.merged()
        self.assertIsNone(whole["calls"][0]["arm"])
        shutil.rmtree(places["caller"])
        alone = self.merged()["calls"]
        self.assertEqual(len(alone), 1)
        self.assertAlmostEqual(alone[0]["to_callee"]["loss_percent"], 2, delta=0.1)
        self.assertIsNone(alone[0]["to_callee"]["frame_delivery_ms"])
        self.assertTrue(any("sender's data" in text for text in alone[0]["problems"]))

    def test_clock_set_during_a_call(self) -> None:
        places = self.places()
        ends = {"caller": NONE, "callee": Clock(step=(BEGIN + 30 * S, 2 * S))}
        folders.call(places, ends, "c1", BEGIN, lose=50)
        row = self.merged()["calls"][0]
        self.assertIsNone(row["to_callee"]["frame_delivery_ms"])
        self.assertIsNone(row["to_callee"]["rate_kbps"])
        self.assertAlmostEqual(row["to_callee"]["loss_percent"], 2, delta=0.1)
        self.assertTrue(any("set by +2.0 s" in text for text in row["problems"]), row["problems"])

    def test_counters_that_begin_anew(self) -> None:
        """A restart of the router within a turn loses the seconds of the restart, nothing else."""
        router = folders.Router(self.home / "eth0", NONE)
        router.turn("paqm", BEGIN, 50)
        router.turn("paqm", BEGIN + 60 * S, 50)
        router.write()
        (day,) = self.merged()["router_days"]
        self.assertEqual(day["seconds"], 98)

    def test_page_is_inert(self) -> None:
        places = self.places()
        folders.call(places, {"caller": NONE, "callee": NONE}, "c1", BEGIN)
        evil = "<script>alert(1)</script>\"'&"
        path = next((places["caller"] / "calls").iterdir()) / "about.json"
        folders.dump(path, json.loads(path.read_text()) | {"label": evil, "id": evil})
        router = folders.Router(self.home / "eth0", NONE)
        router.rows.append({"wall_ns": BEGIN, "mono_ns": 1, "event": "trouble", "detail": evil})
        router.turn(evil, BEGIN - 10 * S, 100)
        router.write()
        folders.dump(
            router.folder / "plan.json", {"device": evil, "seed": evil, "baseline": [evil]}
        )
        out = self.home / "out"
        self.assertEqual(cli.main(["report", str(self.home), "--out", str(out)]), 0)
        text = (out / "report.html").read_text()
        self.assertNotIn("<script", text)
        self.assertIn("&lt;script&gt;", text)
        json.loads((out / "result.json").read_text(), parse_constant=store._refuse)


class Hostile(Case):
    """Whatever lies in a folder: a report, or one line that says what is wrong."""

    def make(self) -> None:
        places = self.places()
        folders.call(places, {"caller": NONE, "callee": Clock(S)}, "c1", BEGIN + 5 * S, 8)
        router = folders.Router(self.home / "eth0", NONE)
        router.turn("paqm", BEGIN, 20)
        router.write()

    def test_mutations(self) -> None:
        self.make()
        original = {path: path.read_bytes() for path in self.home.rglob("*") if path.is_file()}
        words = [
            b"NaN",
            b"-1",
            b"1e999",
            b"9" * 400,
            b"null",
            b"[]",
            b"{}",
            b"\0",
            b"\xff\xfe",
            b"true",
            b"\n",
            b",",
            b'"',
            b"18446744073709551616",
            b"[" * 3000,
            b"",
        ]
        seed = int(os.environ.get("PAQM_SEED", "1"))
        dice = random.Random(seed)
        end = time.monotonic() + float(os.environ.get("PAQM_SECONDS", "inf"))
        for run in itertools.count():
            if time.monotonic() > end or run >= RUNS and end == float("inf"):
                break
            path = dice.choice(list(original))
            data = bytearray(original[path])
            for _ in range(dice.randrange(1, 6)):
                at = dice.randrange(len(data) + 1)
                what = dice.randrange(4)
                if what == 0:
                    data = data[:at]
                elif what == 1:
                    data[at : at + dice.randrange(12)] = dice.choice(words)
                elif what == 2 and (numbers := list(re.finditer(rb"\d+", data))):
                    span = dice.choice(numbers).span()
                    data[span[0] : span[1]] = dice.choice(words)
                else:
                    data[at:at] = data[: dice.randrange(300)]
            path.write_bytes(data)
            try:
                text = json.dumps(self.merged(), allow_nan=False)
                page.render(json.loads(text))
            except Trouble:
                pass
            except Exception as err:
                raise AssertionError(f"seed {seed}, {path.name}: {bytes(data[:2000])!r}") from err
            path.write_bytes(original[path])

    def test_what_is_no_file(self) -> None:
        """Pipes, links out of the folder, folders in the place of files: none is followed."""
        self.make()
        secret = Path(tempfile.mkdtemp()) / "secret"
        self.addCleanup(shutil.rmtree, secret.parent)
        secret.write_text('{"label": "stolen"}\n')
        for name in ("frames.csv", "rx.csv", "video.csv", "rtcp.csv"):
            path = next((self.home / "caller/calls").iterdir()) / "record" / name
            path.unlink()
            os.mkfifo(path)
        about = next((self.home / "callee/calls").iterdir()) / "about.json"
        about.unlink()
        about.symlink_to(secret)
        clock = about.with_name("clock.jsonl")
        clock.unlink()
        clock.mkdir()
        (self.home / "loop").symlink_to(self.home)
        (self.home / "callee/calls/away").symlink_to("/")
        found = self.merged()
        self.assertNotIn("stolen", json.dumps(found))
        self.assertEqual([len(row["ends"]) for row in found["calls"]], [1])
        self.assertIn("c1-caller: no packets and no pictures: left out", json.dumps(found))

    def test_lines_of_another_day(self) -> None:
        self.make()
        path = next((self.home / "callee/calls").iterdir()) / "record/rx.csv"
        path.write_text(f"{path.read_text()}9000000000000000000,1,1,1000\n1,1,1,1000\n")
        (row,) = self.merged()["calls"]
        self.assertLess(row["duration_s"], 10)
        self.assertTrue(any("2 lines of another day" in text for text in row["problems"]))

    def test_not_a_trial(self) -> None:
        for place in (self.home, self.home / "nothing"):
            self.assertEqual(cli.main(["report", str(place), "--out", str(self.home / "out")]), 2)


class Disk(Case):
    def test_full(self) -> None:
        """A disk that fills up loses figures and ends nothing."""
        lines = store.Lines(self.home, "samples", daily=True)
        row = {"wall_ns": BEGIN, "mono_ns": 1, "text": "x" * 1000}
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        lines.write(row)
        real = store.free_bytes
        try:
            store.free_bytes = lambda path: 0  # type: ignore[assignment]
            lines.checked = 0.0
            for _ in range(100):
                lines.write(row)
        finally:
            store.free_bytes = real
        self.assertTrue(lines.full)
        lines.write(row)
        self.assertFalse(lines.full)
        lines.close()
        self.assertEqual(resource.getrlimit(resource.RLIMIT_FSIZE), before)
        found = list(store.Reader(self.home).lines(self.home / f"{lines.name}"))
        self.assertEqual(found, [row, row])

    def test_line_cut_off(self) -> None:
        lines = store.Lines(self.home, "samples", daily=False)
        lines.write({"wall_ns": 1})
        lines.close()
        path = self.home / "samples.jsonl"
        path.write_text(path.read_text() + '{"wall_ns": 2, "a')
        lines.write({"wall_ns": 3})
        lines.close()
        reader = store.Reader(self.home)
        self.assertEqual([one["wall_ns"] for one in reader.lines(path)], [1, 3])
        self.assertEqual(reader.problems, ["samples.jsonl: 1 lines cut off or broken, left out"])


STREAMER = """#!/bin/sh
echo "$*" >"$(dirname "$STAY")/words"
while [ $# -gt 0 ]; do [ "$1" = --record ] && dir=$2; shift; done; mkdir -p "$dir"
way="from 198.51.100.77:5 to 203.0.113.9:4 (host to srflx)"
echo '{"version":1,"peer":"198.51.100.77","name":"a","peer_name":"Kari Nordmann",
"video":{"path":"'"$way"'"}}' >"$dir/call.json"
row=,203.0.113.9,erf,1,2
printf "t_ns,event,detail\\n1,path,\\"video $way\\"\\n" >"$dir/events.csv"
printf "2,begin,\\"Nordmann, Kari\\"\\n3,end,\\"x, y\\"\\n" >>"$dir/events.csv"
printf "4,lost,\\"mic:Nordmann, K\\"\\n5,back,\\"mic:Nordmann, K\\"\\n" >>"$dir/events.csv"
printf "6,lost,\\"window\\"\\n7,error,\\"\\305\\241\\"\\n" >>"$dir/events.csv"
printf "8,lost,\\"device-nordmann.png\\"\\n" >>"$dir/events.csv"
printf "t_ns,router,cause,value,rate_bps\\n1$row\\n2$row\\n" >"$dir/feedback.csv"
[ ! -e "$STAY" ] || exec sleep 100
"""


class Call(Case):
    """What paqm-trial adds to a call, with a program in the place of paqm-streamer that only writes
    down that it was there; lab_trial.py has the real one."""

    def setUp(self) -> None:
        super().setUp()
        (self.home / "bin").mkdir()
        program = self.home / "bin/paqm-streamer"
        program.write_text(STREAMER)
        program.chmod(0o755)
        self.secret = self.home / "secret"
        self.secret.touch(0o600)
        self.data = self.home / "data"
        self.env: dict[str, str] = {}

    def start(self, *words: str, **how: Any) -> subprocess.Popen[str]:
        path = f"{self.home}/bin:{os.environ['PATH']}"
        command = [PROGRAM, "call", "--secret", self.secret, "--dir", self.data, *words]
        return subprocess.Popen(
            [str(word) for word in command],
            text=True,
            env={**os.environ, "PATH": path, "STAY": str(self.home / "stay"), **self.env},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            **how,
        )

    def say(self, *words: str) -> tuple[int, str]:
        process = self.start(*words)
        said = process.communicate(timeout=60)[0]
        return process.returncode, said

    def everything(self) -> str:
        return "".join(path.read_text() for path in self.data.rglob("*") if path.is_file())

    def test_no_consent_no_call(self) -> None:
        status, said = self.say("192.0.2.7")
        self.assertEqual(status, 2)
        self.assertIn("consent", said)
        self.assertFalse(self.data.exists())

    def test_addresses_and_names_go(self) -> None:
        status, said = self.say("192.0.2.7", "--consent", "on-paper")
        self.assertEqual(status, 0, said)
        text = self.everything()
        for word in ("198.51.100.77", "192.0.2.7", "203.0.113.9", "Nordmann"):
            self.assertNotIn(word, text)
        for word in (
            '"peer": "peer-',
            '1,path,"video (host to srflx)"\n2,begin,""\n3,end,"x, y"\n',
            '"(host to srflx)"',
        ):
            self.assertIn(word, text)
        self.assertEqual(len(re.findall(r"^[12],router-[0-9a-f]{8},erf,1,2$", text, re.M)), 2)
        self.assertIn('"keep_days": 90', next(self.data.glob("calls/*/about.json")).read_text())
        name = next((self.data / "calls").iterdir()).name
        self.assertIn(f"--call {name}", said)
        for path in self.data.rglob("*"):
            self.assertEqual(path.stat().st_mode & 0o077, 0, path)

    def test_in_a_language_without_that_letter(self) -> None:
        """Of a device: addresses go all the same, and the letter stays."""
        self.env = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
        status, said = self.say("192.0.2.7", "--consent", "on-paper")
        self.assertEqual(status, 0, said)
        text = b"".join(path.read_bytes() for path in self.data.rglob("*") if path.is_file())
        self.assertNotIn(b"198.51.100.77", text)
        self.assertIn("6,lost,\"window\"\n7,error,\"\u0161\"\n".encode(), text)
        names = re.findall(rb"[45],(?:lost|back),\"(device-[0-9a-f]{8})\"\n", text)
        self.assertEqual(len(names), 2, text)
        self.assertEqual(len(set(names)), 1, text)
        self.assertNotIn(b"nordmann", text)

    def test_full_disk(self) -> None:
        """What cannot be written again without addresses goes, and so does a salt without room."""
        write = store.write_json

        def full(path: Path, value: Any) -> None:
            if value.get("end_ns") or value.get("anonymous"):
                raise Trouble(f"{path}: cannot write: No space left on device")
            write(path, value)

        words = ["192.0.2.7", "--consent", "on-paper", "--secret", self.secret, "--dir", self.data]
        env = {"PATH": f"{self.home}/bin:{os.environ['PATH']}", "STAY": str(self.home / "stay")}
        with (
            mock.patch.dict(os.environ, env),
            mock.patch.object(store, "write_json", full),
            contextlib.redirect_stderr(io.StringIO()) as said,
        ):
            self.assertEqual(cli.main(["call", *map(str, words)]), 2)
        self.assertIn("call.json is deleted, since it holds addresses", said.getvalue())
        for word in ("198.51.100.77", "203.0.113.9", "Nordmann"):
            self.assertNotIn(word, self.everything())
        (self.data / "salt").write_text("")
        found = {call.pseudonym("peer", "198.51.100.77", self.data) for _ in range(2)}
        self.assertEqual(len(found), 1)
        self.assertNotIn(hashlib.sha256(b"198.51.100.77").hexdigest()[:8], found.pop())

    def test_killed_call_is_tidied_up_later(self) -> None:
        (self.home / "stay").touch()
        process = self.start("192.0.2.7", "--consent", "on-paper", start_new_session=True)
        for _ in range(200):
            if "Nordmann" in self.everything():
                break
            time.sleep(0.05)
        call.tidy(self.data)  # as another call begins: this one goes on in its files
        self.assertIn("Nordmann", self.everything())
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        self.assertIn("Nordmann", self.everything())
        (self.home / "stay").unlink()
        self.say("192.0.2.7", "--consent", "on-paper")
        self.assertNotIn("Nordmann", self.everything())

    def test_nothing_is_filmed(self) -> None:
        for words in (
            ["--sink", "x.y4m"],
            ["--audio-sink=x.wav"],
            ["--record", "x"],
            ["--record=x"],
            ["--sink", "window", "--sink=x.y4m"],
        ):
            with self.subTest(words=words):
                status, said = self.say("192.0.2.7", "--consent", "on-paper", "--", *words)
                self.assertEqual(status, 2, said)
        for words in (["--sink", "none"], ["--audio-sink", "auto:Headset"]):
            with self.subTest(words=words):
                said = self.say("192.0.2.7", "--consent", "on-paper", "--", *words)
                self.assertEqual(said[0], 0, said)

    def test_meeting(self) -> None:
        words = ("--meet", "meet.example.org", "--listen", "--consent", "on-paper")
        self.assertEqual(self.say(*words)[0], 0)
        self.assertIn("call --meet meet.example.org --sec", (self.home / "words").read_text())
        self.assertIn('"role": "callee"', self.everything())
        self.assertIn("no host is named", self.say("192.0.2.7", *words)[1])

    def test_open_secret(self) -> None:
        self.secret.chmod(0o644)
        self.assertIn("chmod 600", self.say("192.0.2.7", "--consent", "on-paper")[1])

    def test_form_of_the_handbook(self) -> None:
        page = (HERE.parents[2] / "docs/trial.md").read_text()
        self.assertIn(call.TEXT.read_text(), page)


if __name__ == "__main__":
    unittest.main()
