#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What the plugin says to good and bad words, asked through the real tc.

Runs tc in an empty network namespace, so nothing on this machine is touched and no module is
needed: a command whose words are right gets as far as the kernel. Options that are not listed
here are tried by what the table of options says of them.
Usage: test_parse.py DIRECTORY_OF_PLUGIN [TC]
"""

import os
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "kernel" / "tc-tests"))
import option_table  # noqa: E402

OPTIONS = [o for o in option_table.options() if o.kind != "TARGET_BYTES"]
WORDS = {o.name: o.words for o in OPTIONS if o.name in ("law", "feedback")}

TARGET = (
    "a time from 100us to 1s, or a size from 256b to 268435456b (m is neither: ms or mb)"
)
SIZE = "a size from 3000b to 4294967295b, or auto"
WEIGHT = "a whole number from 1 to 64"
DSCPS = "a list of numbers from 0 to 63 or names, such as EF,AF41,CS1,LE, or none"
RATIO_OUTER = "a number from 0.01 to 2"

# Option, values to be taken, values to be refused, and what the refusal says was expected.
VALUES: list[tuple[str, list[str], list[str], str]] = [
    (
        "bandwidth",
        ["none", "auto", "8kbit", "20mbit", "2.5Mbit", "1mbps", "400gbit", "800gbit"],
        [
            "",
            "0",
            "7999bit",
            "801gbit",
            "-8mbit",
            "8mbits",
            "fast",
            "nan",
            "1e300",
            "50%",
        ],
        "a rate from 8Kbit to 800Gbit, auto, or none",
    ),
    (
        "media-target",
        [
            "100us",
            "5ms",
            "1s",
            "5000",
            "256b",
            "5k",
            "64kb",
            "5mb",
            "5M",
            "256mb",
            "268435456b",
        ],
        [
            "",
            "0",
            "99us",
            "1001ms",
            "-5ms",
            "255b",
            "268435457b",
            "1g",
            "5m",
            "256m",
            "5 ms",
            "soon",
            "nan",
        ]
        + ["inf", "infb", "1e30s", "-5k", "auto"],
        TARGET,
    ),
    (
        "elastic-target",
        ["30ms", "100", "0.5s", "20000b"],
        ["99", "1.1s", "x", "0b"],
        TARGET,
    ),
    (
        "overhead",
        ["0", "-64", "256", "+18", "44"],
        ["-65", "257", "", "18b", "1.5", "ethernet"],
        "a whole number from -64 to 256",
    ),
    ("mpu", ["0", "64", "256"], ["257", "-1", "x"], "a whole number from 0 to 256"),
    (
        "linklayer",
        ["ethernet", "atm", "ptm"],
        ["adsl", "ATM", "1"],
        "one of ethernet, atm, ptm",
    ),
    (
        "limit",
        ["auto", "3000", "3000b", "100k", "1mb", "4294967295"],
        ["0", "2999", "4294967296", "5gb", "-3000", "10packets", "none"],
        SIZE,
    ),
    ("media-limit", ["auto", "3000", "1mb"], ["2999", "0", "4294967296", "nan"], SIZE),
    ("elastic-limit", ["auto", "3000b", "2g"], ["2999b", "none", "5g"], SIZE),
    (
        "interval",
        ["auto", "1ms", "40ms", "12500"],
        ["0", "999us", "41ms", "none"],
        "a time from 1ms to 40ms, or auto",
    ),
    (
        "gain",
        ["0.05", "0.3", "1", "5e-1"],
        ["0", "0.04", "1.01", "-0.3", "30%", "nan", "0.3x"],
        "a number from 0.05 to 1",
    ),
    (
        "gamma",
        ["auto", "0.5", "0.015625", "1"],
        ["0", "0.01", "1.1", "half"],
        "a number from 0.015625 to 1, or auto",
    ),
    ("alpha", ["0.01", "0.75", "2"], ["0.009", "2.01", "x", "inf"], RATIO_OUTER),
    ("beta", ["0.01", "0.35", "2"], ["0.009", "2.01", "1e400"], RATIO_OUTER),
    (
        "period",
        ["50ms", "250ms", "5s"],
        ["49ms", "5.1s", "0"],
        "a time from 50ms to 5s",
    ),
    (
        "rtt",
        ["auto", "100us", "100ms", "2s"],
        ["0", "99us", "2.1s"],
        "a time from 100us to 2s, or auto",
    ),
    (
        "gop",
        ["auto", "500ms", "1us", "2s"],
        ["0", "2.1s", "none"],
        "a time from 1us to 2s, or auto",
    ),
    (
        "target-util",
        ["0.5", "0.95", "95%", "1", "100%"],
        ["0.49", "49%", "101%", "95", "95%%"],
        "a number or percentage from 0.5 to 1",
    ),
    (
        "law",
        [*WORDS["law"]],
        ["max", "ECF", "", "0"],
        "one of " + ", ".join(WORDS["law"]),
    ),
    ("transfer", ["0", "150ms", "2s"], ["2.1s", "-1"], "a time from 0 to 2s"),
    ("credit", ["0", "50ms", "1s"], ["1.1s", "much"], "a time from 0 to 1s"),
    ("md-floor", ["0.1", "0.5", "0.95"], ["0.09", "0.96"], "a number from 0.1 to 0.95"),
    (
        "feedback",
        [*WORDS["feedback"]],
        ["icmp,quench", "on"],
        "one of " + ", ".join(WORDS["feedback"]),
    ),
    (
        "split",
        ["flows", "0.05", "5%", "30%", "0.95", "95%"],
        ["0", "4%", "96%", "0.049", "30", "30%%", "half"],
        "a number or percentage from 0.05 to 0.95, or flows",
    ),
    ("media-weight", ["1", "4", "64"], ["0", "65", "1.5", "-1"], WEIGHT),
    ("elastic-weight", ["1", "2", "64"], ["0", "65", "x"], WEIGHT),
    (
        "flow-age",
        ["1s", "2500ms", "60s"],
        ["999ms", "61s", "0", "auto"],
        "a time from 1s to 60s",
    ),
    (
        "seed",
        ["random", "1", "42", "18446744073709551615"],
        ["0", "-1", "18446744073709551616", "0x2a", "1.5", "dice"],
        "a whole number from 1 to 18446744073709551615, or random",
    ),
    ("classify", ["auto", "protocol"], ["udp", "1"], "one of auto, protocol"),
    ("weights", ["flow", "host"], ["flows", "0"], "one of flow, host"),
    (
        "flows",
        ["64", "4096", "1048576"],
        ["63", "1048577", "100.5", "4k", "-64", "99999999999"],
        "a whole number from 64 to 1048576",
    ),
    (
        "router-id",
        ["1", "0xdeadbeef", "DEADBEEF01234567"],
        ["0", "0x", "12345678901234567", "xyz"],
        "1 to 16 hexadecimal digits, not all 0",
    ),
    (
        "key",
        ["none", "1:" + "0f" * 16, "65535:" + "AB" * 16, "00007:" + "00" * 15 + "01"],
        [
            "",
            "7",
            "7:",
            "0:" + "0f" * 16,
            "65536:" + "0f" * 16,
            "7:" + "00" * 16,
            "7:hidden",
        ]
        + ["7:" + "0f" * 15, "7:" + "0f" * 17, "7:" + "0g" * 16, ":" + "0f" * 16]
        + [
            "-7:" + "0f" * 16,
            "7 :" + "0f" * 16,
            "0x7:" + "0f" * 16,
            "7:0x" + "0f" * 15,
        ],
        "an id from 1 to 65535, a colon and 32 hexadecimal digits, not all 0, or none",
    ),
    ("profile", ["fast", "robust"], ["slow", ""], "one of fast, robust"),
    (
        "preset",
        ["thesis-ecf", "thesis-erf"],
        ["thesis", "", "fast"],
        "one of thesis-ecf, thesis-erf",
    ),
]
# Lists: what is refused, and the part of it that the message names.
MANY = ",".join(f"10.{i}.0.0/16" for i in range(17))
LISTS: list[tuple[str, list[str], list[tuple[str, str]], str]] = [
    (
        "dscp-media",
        ["none", "EF", "ef,af41", "46,34", "0,63", "CS0,CS7,VA,NQB,BE"],
        [
            ("", ""),
            ("64", "64"),
            ("EF,", ""),
            ("EF,AF44", "AF44"),
            (",EF", ""),
            ("-1", "-1"),
        ]
        + [("0x2e", "0x2e"), ("EF, CS1", " CS1"), ("none,EF", "none"), ("1.0", "1.0")],
        DSCPS,
    ),
    ("dscp-elastic", ["none", "LE,CS1", "1,8"], [("EF,all", "all")], DSCPS),
    (
        "feedback-to",
        ["any", "10.0.0.0/8", "192.0.2.1", "0.0.0.0/0,::/0", "2001:db8::/32,10.0.0.0/8"]
        + [MANY.rpartition(",")[0]],
        [("", ""), ("10.0.0.0/33", "10.0.0.0/33"), ("2001:db8::/129", "2001:db8::/129")]
        + [
            ("10.0.0.0/", "10.0.0.0/"),
            ("10.0.0", "10.0.0"),
            ("host", "host"),
            ("::/-1", "::/-1"),
        ]
        + [("10.0.0.0/8,any", "any"), ("10.0.0.0/8,", ""), (MANY, "10.16.0.0/16")]
        + [("10.0.0.0/0x8", "10.0.0.0/0x8")],
        "at most 16 prefixes, such as 10.0.0.0/8,2001:db8::/32, or any",
    ),
]
FLAGS = [o.name for o in OPTIONS if o.kind == "FLAG"]
LISTED = {option for option, *_ in VALUES} | {option for option, *_ in LISTS} | set(FLAGS)
UNKNOWN = ["bogus", "no-ecn", "nolaw", "Bandwidth", "media_target", "-h"]


def run(tc: str, words: list[str]) -> subprocess.CompletedProcess[str]:
    command = ["unshare", *([] if os.geteuid() == 0 else ["-r"]), "-n", tc]
    command += ["qdisc", "add", "dev", "lo", "root", "paqm", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def check(tc: str) -> tuple[int, list[str]]:
    """Number of commands tried, and what went wrong."""
    tried = 0
    wrong: list[str] = []

    def good(words: list[str]) -> None:
        nonlocal tried
        tried += 1
        result = run(tc, words)
        # Without the module the kernel says so; with it the command succeeds.
        if result.returncode and "qdisc kind is unknown" not in result.stderr:
            wrong.append(f"{words}: refused: {result.stderr!r}")

    def bad(words: list[str], message: str) -> None:
        nonlocal tried
        tried += 1
        result = run(tc, words)
        if result.returncode == 0 or result.stderr != message + "\n" or result.stdout:
            wrong.append(
                f"{words}: wanted {message!r}, got {result.returncode} {result.stderr!r}"
            )

    for option, accepted, refused, expected in VALUES:
        for value in accepted:
            good([option, value])
        for value in refused:
            bad([option, value], f'paqm: {option} "{value}": expected {expected}')
        bad([option], f'paqm: {option} "": expected {expected}')
    for option, accepted, mistakes, expected in LISTS:
        for value in accepted:
            good([option, value])
        for value, named in mistakes:
            bad([option, value], f'paqm: {option} "{named}": expected {expected}')
        bad([option], f'paqm: {option} "": expected {expected}')
    bad(
        ["dscp-media", "EF,CS1,34", "dscp-elastic", "LE,cs1,AF41"],
        "paqm: dscp-media and dscp-elastic both name CS1,AF41",
    )
    # the last word wins
    good(["dscp-media", "EF", "dscp-elastic", "EF", "dscp-media", "none"])
    for flag in FLAGS:
        good([flag])
        good([f"no{flag}"])
        bad([flag, "1"], 'paqm: unknown option "1"; "... paqm help" lists them')
    for word in UNKNOWN:
        bad([word], f'paqm: unknown option "{word}"; "... paqm help" lists them')
    good([])
    good(
        [word for option, accepted, _, _ in VALUES for word in (option, accepted[-1])]
        + FLAGS
    )
    longest = ",".join(
        f"2001:db8:{i:x}:ffff:ffff:ffff:ffff:ffff/128" for i in range(16)
    )
    every = [word for option, accepted, *_ in VALUES for word in (option, accepted[0])]
    good([*every, "dscp-media", ",".join(map(str, range(64))), "feedback-to", longest])

    for o in OPTIONS:
        if o.name in LISTED:
            continue
        for word in o.words or (o.words_for(o.least.value), o.words_for(o.most.value)):
            good([o.name, word])
        if o.zero:
            good([o.name, o.zero])
        for word in ("", "bogus", o.words_for(o.most.value + 1)):
            tried += 1
            said = run(tc, [o.name, word]).stderr
            if not said.startswith(f'paqm: {o.name} "{word}": expected '):
                wrong.append(f"{o.name} {word}: {said!r}")

    for group, more in (("EVERYDAY", set()), ("RESEARCH", {"profile", "preset"})):
        tried += 1
        text = run(tc, ["help", group.lower()]).stderr
        listed = set(re.findall(r"\[ (?:\[no\])?([a-z-]+)", text))
        named = {o.name for o in OPTIONS if o.group == group} | more
        if listed != named:
            wrong.append(f"help: {sorted(listed ^ named)} differ from the table of options")
        lines = text.splitlines()
        if len(lines) > 24 or max(map(len, lines)) > 80:
            wrong.append(f"help of {group} does not fit on a screen")
    return tried, wrong


def main() -> int:
    os.environ["TC_LIB_DIR"] = str(Path(sys.argv[1]).resolve())
    tc = sys.argv[2] if len(sys.argv) > 2 else "tc"
    probe = run(tc, [])
    if "unshare" in probe.stderr:
        print(f"skipped, no network namespace here: {probe.stderr.strip()}")
        return 77
    tried, wrong = check(tc)
    for line in wrong:
        print(line)
    print(f"{tried} commands, {len(wrong)} wrong")
    return 1 if wrong or not tried else 0


if __name__ == "__main__":
    sys.exit(main())
