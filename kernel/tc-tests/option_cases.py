# SPDX-License-Identifier: GPL-2.0
"""Cases of every option, made from the tables of options; expand.py adds them to its files.

bounds: below and above the range, all ones, 0, words that do not exist, wrong lengths: refused by
tc, and by the kernel with the words that the table makes. options: least, greatest, every word,
and what JSON shows of it. Those of other qdiscs are all in the qdisc's own.
"""

import hashlib
import re
from pathlib import Path
from typing import Any

from option_table import WIDE, Option, dscps, options

Json = Any
ADD = "$TC qdisc add dev $DUMMY root handle 1:"
OWN = ("PREFIXES", "KEY")  # cases by hand only
BESIDE = {  # so that a value can stand
    ("dcbt", "min"): " max 16384", ("dcbt", "max"): " min 0",
    ("rlqos", "tc1"): " tc2 none", ("rlqos", "tc2"): " tc1 none",
}  # fmt: skip


def raw(o: Option) -> str:
    """The beginning of a request that tc would not make."""
    kind = "" if o.qdisc == "paqm" else f" --kind {o.qdisc}"
    return f"$PAQM/rtnl.py add $DUMMY{kind}"


def case(qdisc: str, file: str, name: str, command: str, code: int, verify: str,
         **match: Json) -> Json:  # fmt: skip
    if qdisc != "paqm":
        name, file = f"{qdisc}: {name}", qdisc
    return {
        "id": "", "name": name, "category": ["qdisc", qdisc, file],
        "plugins": {"requires": "nsPlugin"}, "setup": [], "cmdUnderTest": command,
        "expExitCode": str(code), "verifyCmd": verify, **match,
        "teardown": [] if code else ["$TC qdisc del dev $DUMMY root"],
    }  # fmt: skip


def refused(o: Option, what: str, wire: str, word: str | None = None) -> Json:
    """A value that the kernel refuses, and tc, if there is a word for it."""
    request = f"{raw(o)} {o.wire_name}={wire}"
    said = rf"^EINVAL: {o.qdisc}: {re.escape(o.refusal)} \(attribute {o.wire_name}\)$"
    title = f"{o.wire_name} {what} is refused"
    command, code = request, 2
    if word is not None:
        title += " by tc and by the kernel"
        command, code = f"{ADD} {o.qdisc} {o.name} {word}", 1
    return case(o.qdisc, "bounds", title, command, code, request, matchPattern=said, matchCount="1")


def bounds(o: Option) -> list[Json]:
    bits = 64 if o.kind in WIDE else 32
    ones = (1 << bits) - 1
    found = []
    low, high = o.least.value - 1, o.most.value + 1
    if o.kind == "WORD":
        found.append(refused(o, "that does not exist", str(high), "bogus"))
    elif o.kind == "FLAG":
        found.append(refused(o, f"of {high}", str(high)))
    elif o.kind not in ("DSCPS", "SEED"):
        # 0 that stands for something else has a word in tc, and is taken by the kernel
        if (low >= 0 and not (low == 0 and o.zero)) or o.kind == "SIGNED":
            found.append(refused(o, "below its range", str(low & ones), o.words_for(low)))
        if high <= ones:
            found.append(refused(o, "above its range", str(high), o.words_for(high)))
        if low > 0 and not o.zero:
            found.append(refused(o, "of zero", "0", o.words_for(0)))
    if o.kind == "SIGNED":
        found.append(refused(o, "of the least number", hex(1 << bits - 1)))
    elif o.kind == "RATE":  # all ones: auto
        found.append(refused(o, "of nearly all ones", hex(ones - 1)))
    elif o.most.value < ones:
        found.append(refused(o, "of all ones", hex(ones)))
    request = f"{raw(o)} {o.wire_name}=hex:"
    found.append(case(o.qdisc, "bounds", f"{o.wire_name} of no length is refused", request, 2,
                      request,
                      matchPattern=rf"^(ERANGE|EINVAL): .*\(attribute {o.wire_name}\)$",
                      matchCount="1"))  # fmt: skip
    return found


def made(o: Option, what: str, words: str, value: Json, **more: Json) -> Json:
    shown = [{"kind": o.qdisc, "handle": "1:", "root": True, "options": {o.key: value, **more}}]
    return case(o.qdisc, "options", f"Create with {what}", f"{ADD} {o.qdisc} {words}", 0,
                "$TC -d -j qdisc show dev $DUMMY", matchJSON=shown)  # fmt: skip


def taken(o: Option) -> list[Json]:
    if o.kind == "FLAG":
        return [made(o, word, word, word == o.name) for word in (o.name, f"no{o.name}")]
    if o.kind == "WORD":
        return [made(o, f"{o.name} {word}", f"{o.name} {word}", word) for word in o.words]
    if o.kind == "DSCPS":
        ends: list[tuple[str, str, Json]] = [
            ("least", "0", [0]), ("greatest", ",".join(map(str, range(64))), list(range(64)))
        ]  # fmt: skip
    else:
        ends = [(what, end.text if o.one > 1 else o.words_for(end.value),
                 shown(o, end.value, float(end.number)))
                for what, end in (("least", o.least), ("greatest", o.most))]  # fmt: skip
    beside = BESIDE.get((o.qdisc, o.name), "")
    found = [made(o, f"the {what} {o.wire_name}", f"{o.name} {word}{beside}", value)
             for what, word, value in ends]  # fmt: skip
    if o.zero and o.kind != "TARGET_BYTES":
        nothing: Json = [] if o.kind == "DSCPS" else 0
        found.append(made(o, f"{o.name} {o.zero}", f"{o.name} {o.zero}", nothing))
    if o.kind == "RATE":
        found.append(made(o, f"{o.name} auto", f"{o.name} auto", 0, bandwidth_auto=True))
    return found


def initial(o: Option) -> str:
    """As tc -d shows it in words of a new queue."""
    if o.kind == "FLAG":
        return o.name if o.initial.value else f"no{o.name}"
    text = o.zero if o.zero and not o.initial.value else o.initial.text
    if o.kind == "DSCPS" and o.initial.value:
        text = dscps(o.initial.value)
    if o.kind == "WORD":
        text = o.words[o.initial.value]
    return f"{o.name} {text}" if o.kind != "ID" else f"{o.name} [0-9a-f]{{16}}"


def screens(qdisc: str) -> list[Json]:
    """What tc shows of a new queue, with and without -d."""
    found = []
    for what, flag, rows in (
        ("in words leaves out what says nothing", "",
         [o for o in options(qdisc) if o.shown == "ALWAYS"]),
        ("with details tells every option", "-d ", options(qdisc)),
    ):  # fmt: skip
        words = " ".join(initial(o) for o in rows if o.kind != "TARGET_BYTES")
        found.append(case(
            qdisc, "options", f"Show {what}", f"{ADD} {qdisc}", 0,
            f"$TC {flag}qdisc show dev $DUMMY",
            matchPattern=rf"qdisc {qdisc} 1: root refcnt \d+ {words} ?$", matchCount="1",
        ))  # fmt: skip
    return found


def shown(o: Option, value: int, number: float) -> Json:
    """In JSON."""
    match o.kind:
        case "RATE":
            return value * 8
        case "ID":
            return f"{value:016x}"
        case "RATIO" | "PERCENT" | "SHARE" | "PACKETS":
            return number
    return value


def cases(file: str) -> list[Json]:
    """The cases that belong to a file. Their ids follow from their names."""
    here = Path(__file__).resolve().parent
    others = [f.read_text() for f in here.glob("*.toml")]
    ids = {i for text in others for i in re.findall("""["']([0-9a-f]{4})["']""", text)}
    found = []
    for qdisc in ("paqm", "dcbt", "rlqos"):
        rows = [o for o in options(qdisc) if o.kind not in OWN]
        found += [c for make in (bounds, taken) for o in rows for c in make(o)] + screens(qdisc)
    for c in found:
        digest = hashlib.sha256(c["name"].encode()).hexdigest()
        c["id"] = next(digest[i : i + 4] for i in range(60) if digest[i : i + 4] not in ids)
        ids.add(c["id"])
    return [c for c in found if file in c["category"]]
