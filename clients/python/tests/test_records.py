#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Records against the vectors that a C compiler laid out, and a hundred thousand broken ones.

Usage: test_records.py [VECTORS [SEED]]
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from paqmclient import Cause, RecordError, Registration  # noqa: E402
from paqmclient import records as r  # noqa: E402

VECTORS = Path(__file__).resolve().parent.parent.parent / "vectors" / "records.txt"


def vectors(path: Path) -> list[tuple[str, str, dict[str, str], bytes]]:
    """(direction, kind, fields, record) of each line."""
    head, *lines = path.read_text().splitlines()
    assert f"Byte order: {sys.byteorder}." in head, "the vectors are of another byte order"
    found = []
    for line in lines:
        way, kind, *words, record = line.split(" ")
        found.append((way, kind, dict(w.split("=", 1) for w in words), bytes.fromhex(record)))
    return found


def made(kind: str, f: dict[str, str]) -> bytes:
    """The record of these fields."""
    n = {key: int(value) for key, value in f.items() if key not in ("source", "destination")}
    if kind == "register":
        return Registration(source=f["source"], destination=f["destination"], **n).encode()
    return r.unregister(n["cookie"]) if kind == "unregister" else r.status(**n)


def as_fields(got: r.Rate | r.Registered) -> dict[str, str]:
    """A decoded record as the vectors write it."""
    if isinstance(got, r.Registered):
        return {"cookie": str(got.cookie), "error": str(got.error)}
    found = {}
    for key, value in vars(got).items():
        if key == "cause":
            found[key] = Cause(value).name.lower()
        elif key == "qdelay_ms":
            found[key] = f"{value:.1f}"
        else:
            found[key] = f"{value:g}" if key == "value" else str(int(value) if key != "router"
                                                                else value)
    return found


def main() -> int:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else VECTORS
    dice = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    all_of = vectors(path)
    assert len(all_of) > 20, "no vectors"
    for way, kind, fields, record in all_of:
        if way == "send":
            assert made(kind, fields) == record, (kind, fields)
        elif kind == "refused":
            try:
                r.decode(record)
            except RecordError:
                continue
            raise AssertionError(f"taken in spite of: {fields['reason']}")
        else:
            got = as_fields(r.decode(record))
            assert got == fields, (got, fields)
    print(f"ok: {len(all_of)} vectors")

    for numbers in ((1 << 64, 0, 0), (0, 1 << 32, 0), (0, 0, -1)):
        try:
            r.status(1, *numbers)
        except ValueError as err:
            assert "is not a number of" in str(err)
        else:
            raise AssertionError(f"{numbers} have no room in a record")

    # whatever comes is decoded or refused, nothing else
    taken = 0
    for _ in range(100_000):
        record = bytearray(dice.choice(all_of)[3])
        for _ in range(dice.randrange(4)):
            record[dice.randrange(len(record))] = dice.randrange(256)
        try:
            got = r.decode(bytes(record[: dice.choice((len(record), dice.randrange(513)))]))
        except RecordError:
            continue
        taken += 1
        assert isinstance(got, (r.Rate, r.Registered))
        assert 0 <= got.cookie < 1 << 64
    assert 10_000 < taken < 90_000, f"{taken} of 100000 were taken: the loop tests little"
    print(f"ok: 100000 broken records, {taken} of them still good")
    return 0


if __name__ == "__main__":
    sys.exit(main())
