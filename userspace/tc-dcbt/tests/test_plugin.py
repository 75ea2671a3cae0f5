#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The plugin of dcbt through the real tc: every option of the table is taken at both ends of its
range and refused beyond it, listed by help, and shown in text and in JSON; so are statistics.

Usage: test_plugin.py DIRECTORY_OF_PLUGIN pkt_sched_dcbt.h JSON_MONITOR.so TC
"""

import os
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(TOP / "kernel" / "tc-tests"), str(TOP / "userspace" / "tc-paqm" / "tests")]
import option_table  # noqa: E402
from option_cases import shown  # noqa: E402
from show_lib import Show, attribute, differences, message, own, structures  # noqa: E402

OPTIONS = option_table.options("dcbt")
PACKET = 1 << 24
CLASSES = ("tcp", "tagged", "untagged")
# What a class shows that is not a field of the same name.
DERIVED = {"sojourn_mean_us": 20.0, "threshold_packets": None}
EXPECTED = {  # the end of a refusal, of some kinds
    "mode": "one of red, fred, cbt, cbt-tcp, dcbt",
    "limit": "a whole number from 1 to 16384",
    "max": "a number of packets from 0.5 to 16384",
    "max-p": "a number or percentage from 0.001 to 1",
    "sweep": "a time from 10ms to 10s",
    "tag": "a list of numbers from 0 to 63 or names, such as EF,AF41,CS1,LE, or none",
}


def run(tc: str, words: list[str]) -> subprocess.CompletedProcess[str]:
    command = ["unshare", *([] if os.geteuid() == 0 else ["-r"]), "-n", tc]
    command += ["qdisc", "add", "dev", "lo", "root", "dcbt", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def parses(tc: str) -> list[str]:
    wrong = []

    def good(words: list[str]) -> None:
        done = run(tc, words)
        # Without the module the kernel says so; with it the command succeeds.
        if done.returncode and "qdisc kind is unknown" not in done.stderr:
            wrong.append(f"{words}: refused: {done.stderr!r}")

    def bad(words: list[str], said: str) -> None:
        done = run(tc, words)
        if not done.returncode or not done.stderr.startswith(said):
            wrong.append(f"{words}: wanted {said!r}, got {done.stderr!r}")

    good([])
    good([word for o in OPTIONS for word in
          ([o.name] if o.kind == "FLAG" else [o.name, o.words_for(o.most.value) if not o.words
                                              else o.words[-1]] if o.kind != "DSCPS"
           else [o.name, "EF,3"])])  # fmt: skip
    for o in OPTIONS:
        if o.kind == "FLAG":
            good([o.name, f"no{o.name}"])
            bad([o.name, "1"], 'dcbt: unknown option "1"; "... dcbt help" lists them\n')
            continue
        ends = o.words or (o.words_for(o.least.value), o.words_for(o.most.value))
        if o.kind == "DSCPS":
            ends = ("none", "0", "63", "ef,CS1")
        for word in ends:
            good([o.name, word])
        beyond = "64" if o.kind == "DSCPS" else o.words_for(o.most.value + 1)
        for word in ("", "bogus", "-1", "nan", beyond):
            said = f'dcbt: {o.name} "{word}": expected {EXPECTED.get(o.name, "")}'
            bad([o.name, word], said)
    for group in ("EVERYDAY", "RESEARCH"):
        text = run(tc, ["help", group.lower()]).stderr
        listed = re.findall(r"\[ (?:\[no\])?([a-z-]+)", text)
        if listed != [o.name for o in OPTIONS if o.group == group]:
            wrong.append(f"help of {group}: {listed}")
        if max(map(len, text.splitlines())) > 80:
            wrong.append(f"help of {group} is too wide")
    return wrong


def shows_options(show: Show, numbers: dict[str, int]) -> list[str]:
    wrong = [f"TCA_DCBT_{name} is in no row of the table" for name in
             numbers.keys() - {o.attribute for o in OPTIONS} - {"UNSPEC", "PAD", "MAX"}]
    for end in ("least", "most", "initial"):
        data, want, text = b"", {}, []
        for o in OPTIONS:
            value = getattr(o, end).value
            form = "Q" if o.kind in option_table.WIDE else "I"
            data += attribute(numbers[o.attribute], struct.pack("=" + form, value))
            number = float(getattr(o, end).number)
            want[o.key] = shown(o, value, number)
            match o.kind:
                case "WORD":
                    want[o.key] = o.words[value]
                    text.append(f"{o.name} {o.words[value]}")
                case "FLAG":
                    want[o.key] = bool(value)
                    text.append(o.name if value else f"no{o.name}")
                case "DSCPS":
                    want[o.key] = [n for n in range(64) if value >> n & 1]
                    if end != "most":
                        text.append(f"{o.name} {3 if value else 'none'}")
                case _ if o.one > 1:
                    text.append(f"{o.name} {getattr(o, end).text}")
                case "COUNT":
                    text.append(f"{o.name} {value}")
        full = message(data, b"", qdisc="dcbt")
        wrong += differences(show.json(full)["options"], want, set())
        line = show.text(full, "-d") + " "
        wrong += [f"{end}: -d shows no {t!r} in {line!r}" for t in text if f" {t} " not in line]
    quiet = show.text(message(data, b"", qdisc="dcbt"))
    if "limit 60 min 5 max 15 max-p 0.1" not in quiet or "weight" in quiet or "chips" in quiet:
        wrong.append(f"initial values: {quiet!r}")
    return wrong


def shows_stats(show: Show, types: dict[str, Any]) -> list[str]:
    st = types["tc_dcbt_xstats"]()
    fields = [name for name, _ in types["tc_dcbt_class_stats"]._fields_]
    for c in range(len(CLASSES)):
        for i, name in enumerate(fields):
            if name not in ("hist", "pad"):
                setattr(getattr(st, CLASSES[c]), name, 1000 * (c + 1) + i)
        one = getattr(st, CLASSES[c])
        one.sojourn_ns, one.sent = 20_000 * (c + 5), c + 5
        one.average, one.threshold = PACKET * (c + 1) // 4, (1 << 64) - 1 if not c else PACKET // 2
        one.hist[3] = one.sent
    st.average, st.max_p, st.packet_ns = PACKET * 15 // 2, PACKET // 8, 320_000
    st.flow_missed, st.not_cut = 7, 9
    full = message(b"", bytes(st), qdisc="dcbt")
    got = own(show.json(full))
    wrong = []
    for c, name in enumerate(CLASSES):
        one, said = getattr(st, name), got.pop(name)
        for key in ("flows", "arrived_bytes", "sent_bytes", "cut_in", "ecn_mark",
                    "drop_early", "drop_forced", "drop_limit", "drop_threshold", "drop_flow"):
            if said[key] != getattr(one, key):
                wrong.append(f"{name}: {key} is {said[key]}, not {getattr(one, key)}")
        for key, want in (("sent_packets", c + 5), ("arrived_packets", one.arrived),
                          ("backlog_bytes", one.backlog),
                          ("backlog_packets", one.qlen), ("sojourn_mean_us", 20),
                          ("average_packets", (c + 1) / 4),
                          ("threshold_packets", 0.5 if c else None),
                          ("sojourn_hist", list(one.hist))):
            if said[key] != want:
                wrong.append(f"{name}: {key} is {said[key]}, not {want}")
        if not 32 <= said["sojourn_p50_us"] <= said["sojourn_p99_us"] <= 100:
            wrong.append(f"{name}: quantiles {said['sojourn_p50_us']}, {said['sojourn_p99_us']}")
    wrong += differences(got, {"average_packets": 7.5, "max_p_now": 0.125, "packet_us": 320,
                               "flow_missed": 7, "not_cut": 9}, set())  # fmt: skip
    text = show.text(full, "-s")
    for words in ("average 7.5p max-p 0.125 packet 320us flows without a slot 7 not segmented 9",
                  r"threshold p +none +0.5 +0.5", r"delay mean +20us +20us +20us",
                  r"sent p +5 +6 +7"):  # fmt: skip
        if not re.search(words, text):
            wrong.append(f"no {words!r} in {text!r}")
    if "average" in show.text(message(b"", bytes(st)[:100], qdisc="dcbt"), "-s"):
        wrong.append("statistics that are too short are shown")
    return wrong


def main() -> int:
    directory, header, monitor, tc = sys.argv[1:]
    os.environ["TC_LIB_DIR"] = str(Path(directory).resolve())
    if "unshare" in run(tc, []).stderr:
        print("skipped, no network namespace here")
        return 77
    types, numbers = structures(Path(header))
    wrong = parses(tc)
    with tempfile.TemporaryDirectory() as place:
        show = Show(tc, monitor, Path(place))
        wrong += shows_options(show, numbers) + shows_stats(show, types)
    for line in wrong:
        print(line)
    print(f"{len(OPTIONS)} options: {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
