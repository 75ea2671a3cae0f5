# SPDX-License-Identifier: GPL-2.0
"""Runs rows of a table, the catalogue's or another, judges, prints, and writes what lands in docs/.

Every call judges all runs that are there, into OUT/result.json, with `checks` of the rows that have
to pass. A run of a row is one replication: row, scale (reduced or full) and seed.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

from paqm_lab import cache, checks, suite, uml
from paqm_lab.catalogue import docs, table, verdict
from paqm_lab.catalogue.context import Context, Store
from paqm_lab.catalogue.row import Book, Row
from paqm_lab.errors import LabError

Json = dict[str, Any]

CATALOGUE = Book(
    "catalogue", "Every published result, run again", table.rows, docs.DATA, docs.PAGE, docs.write,
    docs.as_text, table.IDS,
)  # fmt: skip


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _in_clone(path: Path) -> Path:
    return path.relative_to(cache.REPO)


def parser(book: Book) -> argparse.ArgumentParser:
    ap = argparse.ArgumentParser(description=f"{book.title}.")
    ap.add_argument("--rows", metavar="PATTERN,...", help="only these ids (with * as in a shell)")
    ap.add_argument("--seeds", type=suite.seeds, metavar="N,...", help="instead of the row's own")
    ap.add_argument("--full", action="store_true", help="at full scale, all rows")
    ap.add_argument(
        "--jobs",
        type=suite.count,
        default=suite.JOBS,
        metavar="N",
        help="replications at a time (%(default)s)",
    )
    ap.add_argument("--out", default=str(cache.REPO / "out" / book.name), metavar="DIR",
                    help="for the results (%(default)s)")
    ap.add_argument("--judge", action="store_true", help="run nothing, judge what is there")
    ap.add_argument(
        "--docs",
        action="store_true",
        help=f"run nothing, write {_in_clone(book.page)} and {_in_clone(book.data)}",
    )
    ap.add_argument("--list", action="store_true", help="list the rows")
    return ap


def choose(known: dict[str, Row], patterns: str | None, full: bool) -> list[Row]:
    """Those named; without names all, of those that are for the full scale only if it is asked."""
    if not patterns:
        return [row for row in known.values() if full or not row.full_only]
    found: dict[str, Row] = {}
    for pattern in patterns.split(","):
        some = fnmatch.filter(known, pattern)
        if not some:
            raise LabError(f'there is no row "{pattern}"; there are {", ".join(known)}')
        found |= {id_: known[id_] for id_ in some}
    return list(found.values())


def run_all(rows: list[Row], args: argparse.Namespace, out: Path) -> list[str]:
    """Runs what is asked for, seeds outermost; returns what failed, one line each."""
    store = Store(out, say)
    most = max((len(row.seeds) for row in rows), default=0)
    todo = [
        (row, seeds[n])
        for n in range(len(args.seeds) if args.seeds else most)
        for row in rows
        if row.run and len(seeds := args.seeds or row.seeds) > n
    ]
    scale = "full" if args.full else "reduced"
    failed: list[str] = []
    lock = threading.Lock()

    def one(number: int, row: Row, seed: int) -> None:
        assert row.run is not None
        begun = time.monotonic()
        label = f"[{number}/{len(todo)}] {row.id} {scale} seed {seed}"
        try:
            values = dict(row.run(Context(store, row.parameters(args.full)), seed))
        except LabError as err:
            with lock:
                failed.append(f"{label}: {err}")
                say(failed[-1])
            return
        unknown = set(values) - {figure.id for figure in row.figures}
        if unknown:
            raise LabError(f"row {row.id}: run() returns {sorted(unknown)}, no figures of it")
        path = out / "rows" / row.id / f"{scale}-{seed}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(suite.as_json({"programs": store.programs, "values": values}))
        say(f"{label}: {time.monotonic() - begun:.0f} s")

    with uml.pool(args.jobs) as pool:
        for future in [pool.submit(one, n, *what) for n, what in enumerate(todo, start=1)]:
            future.result()
    return failed


def runs_there(out: Path, known: Json) -> Json:
    """All replications by row and "scale-seed": those of an earlier result, and newer ones."""
    found: Json = {row["id"]: dict(row["runs"]) for row in known.get("rows", [])}
    for path in sorted((out / "rows").glob("*/*.json")):
        found.setdefault(path.parent.name, {})[path.stem] = json.loads(path.read_text())
    return found


def bounds(row: Row, figure: Json) -> list[Json]:
    """The checks of one figure: our mean within its band."""
    return [
        checks.entry(
            row.id, f"{figure['title']} {relation}", figure["value"], relation, limit,
            figure["unit"], row.source,
        )
        for relation, limit in zip((">=", "<="), figure["band"] or (None, None), strict=True)
        if limit is not None
    ]  # fmt: skip


def judge(book: Book, out: Path, known: Json | None = None) -> Json:
    """Writes result.json from whatever runs are there; of a row run at both scales the full one."""
    runs = runs_there(out, known or {})
    judged, tests = [], []
    rows = book.rows()
    for row in rows.values():
        mine = runs.get(row.id, {})
        full = {name: run for name, run in mine.items() if name.startswith("full-")}
        counted = full or mine
        made = verdict.of_row(row, [run["values"] for run in counted.values()])
        made["scale"] = "full" if full or (row.run and not row.full) else "reduced"
        made["counted"], made["runs"] = len(counted), mine
        judged.append(made)
        if row.asked and (mine or not row.full_only):
            for figure in made["figures"]:
                tests += bounds(row, figure)
    if book.ids:
        tests.append(checks.entry(
            book.name, "rows without a row in the table", len(set(book.ids) - set(rows)), "<=", 0,
            "", "testbed/paqm_lab/catalogue/table.py"))  # fmt: skip
    data: Json = {
        "format": 1, "scenario": book.name, "title": book.title,
        "seeds": sorted({int(name.split("-")[1]) for row in judged for name in row["runs"]}),
        "counts": {name: sum(r["verdict"] == name for r in judged) for name in verdict.VERDICTS},
        "rows": judged, "checks": tests,
    }  # fmt: skip
    out.mkdir(parents=True, exist_ok=True)
    (out / "result.json").write_text(suite.as_json(data))
    return data


def main(book: Book = CATALOGUE) -> int:
    args = parser(book).parse_args()
    out = Path(args.out).resolve()
    rows = choose(book.rows(), args.rows, args.full)
    if args.list:
        for row in rows:
            print(f"{row.id:<8} {row.title}")
        return 0
    if args.docs:
        data = judge(book, out, suite.earlier(book.data))
        for path in book.write(suite.as_json(data)):
            say(f"{book.name}: {path}")
        return 0
    failed = [] if args.judge else run_all(rows, args, out)
    data = judge(book, out)
    chosen = {row.id for row in rows}
    for row in data["rows"]:
        if row["id"] in chosen:
            print(book.as_text(row))
    counts = ", ".join(f"{count} {name}" for name, count in data["counts"].items())
    print(f"{len(data['rows'])} rows: {counts}; {out / 'result.json'}")
    bad = [test for test in data["checks"] if not test["pass"] and test["variant"] in chosen]
    for line in failed:
        say(line)
    return 1 if failed or bad else 0
