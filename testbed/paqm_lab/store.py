# SPDX-License-Identifier: GPL-2.0
"""The store of a sweep: `store.sqlite`, filled from the files that workers leave.

One program on one machine writes it, from OUT/results/*.json; workers never touch it, so it need
not lie on a file system on which SQLite's locks work.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import sqlite3
import sys
from pathlib import Path
from typing import Any

from paqm_lab import rundata
from paqm_lab.errors import LabError

Json = dict[str, Any]
Row = tuple[str, str, float | None]  # flow, figure, value

NAME = "store.sqlite"
SCHEMA = """
CREATE TABLE IF NOT EXISTS run (
  key TEXT PRIMARY KEY, sweep TEXT, kind TEXT, scenario TEXT, variant TEXT, seed INTEGER,
  duration_s REAL, scored INTEGER, programs TEXT, paqm TEXT, kernel TEXT, image TEXT,
  packet_log_sha256 TEXT, directory TEXT, worker TEXT, begun REAL, ended REAL, cpu_s REAL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS axis (
  run TEXT REFERENCES run, name TEXT, value, PRIMARY KEY (run, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS figure (
  run TEXT REFERENCES run, variant TEXT, flow TEXT, figure TEXT, value REAL,
  PRIMARY KEY (run, flow, figure)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS figures ON figure (figure, flow);
"""
COLUMNS = ("key", "sweep", "kind", "scenario", "variant", "seed", "duration_s", "scored",
           "programs", "packet_log_sha256", "directory", "worker", "begun", "ended", "cpu_s")


def flat(value: Any, flow: str = "", name: str = "") -> list[Row]:
    """The numbers in nested figures: `media_sojourn_ms.p95`."""
    if isinstance(value, dict):
        below = ((f"{name}.{key}" if name else key, item) for key, item in value.items())
        return [row for key, item in below for row in flat(item, flow, key)]
    if value is None or isinstance(value, int | float):
        return [(flow, name, None if value is None else float(value))]
    return []


def rows_of(result: Json, variant: Json) -> list[Row]:
    """All figures of a variant of a result: of the whole (no flow), then of each flow."""
    rows = flat(variant["figures"])
    for flow, entry in variant.get("flows", {}).items():
        rows += flat(entry, flow)
    for flow, entry in variant.get("each", {}).items():
        rows += flat(entry, flow, "each")
    for check in result["checks"]:
        if check["variant"] != variant["name"]:
            continue
        rows += flat({"value": check["value"], "pass": check["pass"]}, "", f"check.{check['name']}")
    return rows


def _value(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, dict | list | bool) else value


def _add(db: sqlite3.Connection, path: Path) -> None:
    record = rundata.load_json(path)
    try:
        told = {name: record[name] for name in COLUMNS}
        told |= {name: record["versions"][name] for name in ("paqm", "kernel", "image")}
        names = ", ".join(told)
        marks = ", ".join(f":{name}" for name in told)
        db.execute(f"INSERT INTO run ({names}) VALUES ({marks})", told)
        key, variant = record["key"], record["variant"]
        db.executemany("INSERT INTO axis VALUES (?, ?, ?)",
                       [(key, name, _value(value)) for name, value in record["axes"].items()])
        db.executemany("INSERT INTO figure VALUES (?, ?, ?, ?, ?)",
                       [(key, variant, flow, name, value)
                        for flow, name, value in record["figures"]])
    except (KeyError, TypeError, ValueError, sqlite3.Error) as err:
        raise LabError(f"{path}: not a file of a sweep's worker: {err}") from err


def fill(out: Path) -> int:
    """Takes in all results that are not there yet; how many."""
    if not (out / "results").is_dir():
        raise LabError(f"{out}: no results/ here; `paqm-lab sweep` makes it")
    db = sqlite3.connect(out / NAME, timeout=60)
    try:
        with db:
            db.executescript(SCHEMA)
        _need_tables(db)
        with db:  # all or nothing
            have = {key for (key,) in db.execute("SELECT key FROM run")}
            new = [path for path in sorted((out / "results").glob("*.json"))
                   if path.stem not in have]
            for path in new:
                _add(db, path)
        return len(new)
    except sqlite3.DatabaseError as err:
        raise _unusable(out / NAME, err) from err
    finally:
        db.close()


def _need_tables(db: sqlite3.Connection) -> None:
    """sqlite3.Error if it has not the tables and columns of today."""
    with contextlib.closing(sqlite3.connect(":memory:")) as today:
        today.executescript(SCHEMA)
        for (table,) in today.execute("SELECT name FROM sqlite_master WHERE type = 'table'"):
            names = [row[1] for row in today.execute(f"PRAGMA table_info({table})")]
            db.execute(f"SELECT {', '.join(names)} FROM {table} LIMIT 0")


def _unusable(path: Path, err: sqlite3.Error) -> LabError:
    return LabError(f"{path}: {err}; delete it and run `paqm-lab store fill {path.parent}`")


def opened(out: Path) -> sqlite3.Connection:
    """The store of a results directory, for reading only."""
    path = out if out.is_file() else out / NAME
    if not path.exists():
        raise LabError(f"{path}: there is no store; `paqm-lab sweep` or `paqm-lab store fill` "
                       "makes one")
    try:
        db = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
        _need_tables(db)
    except sqlite3.Error as err:
        raise _unusable(path, err) from err
    return db


def own_columns(db: sqlite3.Connection) -> list[str]:
    """Columns of the table of runs."""
    return [row[1] for row in db.execute("PRAGMA table_info(run)")]


def columns(db: sqlite3.Connection) -> list[str]:
    """What a filter may name: columns of a run and axes."""
    axes = db.execute("SELECT DISTINCT name FROM axis ORDER BY name")
    return own_columns(db) + [name for (name,) in axes]


def chosen(db: sqlite3.Connection, filters: list[str]) -> list[Json]:
    """The runs that all filters NAME=VALUE[|VALUE] let pass, with their axes, in a fixed order.

    Without a filter of `programs` or `key` only those of the newest state of the programs: the same
    run of two states is not two runs.
    """
    known = columns(db)
    own = own_columns(db)
    runs = {row[0]: dict(zip(own, row, strict=True)) for row in db.execute("SELECT * FROM run")}
    for run, name, value in db.execute("SELECT run, name, value FROM axis"):
        runs[run].setdefault(name, value)
    left = list(runs.values())
    for text in filters:
        name, mark, value = text.partition("=")
        if not mark or name not in known:
            raise LabError(f"filter {text!r}: expected NAME=VALUE with one of {', '.join(known)}")
        left = [run for run in left if any(_is(run.get(name), word) for word in value.split("|"))]
    if left and not {"programs", "key"} & {text.partition("=")[0] for text in filters}:
        left = _of_newest(left, max(runs.values(), key=lambda run: run["ended"])["programs"])
    axes = [name for name in known if name not in own]
    return sorted(left, key=lambda run: (run["scenario"], run["variant"],
                                         *(_order(run.get(name)) for name in axes), run["seed"]))


def _is(value: Any, word: str) -> bool:
    """Whether a filter names this value: 80 is 80.0, as tables show it."""
    try:
        return bool(float(word) == value) or word == str(value)
    except ValueError:
        return word == str(value)


def _of_newest(runs: list[Json], newest: str) -> list[Json]:
    """Those made by the newest programs; tells of others."""
    left = [run for run in runs if run["programs"] == newest]
    if others := sorted({run["programs"] for run in runs} - {newest}):
        print(f"store: {len(runs) - len(left)} runs of other states of the programs are left out; "
              f"programs={'|'.join(others)} names them", file=sys.stderr)
    return left


def need_one_state(runs: list[Json]) -> None:
    """Refuses to make one sample of runs of several states of the programs."""
    states = sorted({run["programs"] for run in runs})
    if len(states) > 1:
        raise LabError(f"the runs are of {len(states)} states of the programs; name one of them: "
                       f"programs={' or programs='.join(states)}")


def _order(value: Any) -> tuple[int, float, str]:
    number = isinstance(value, int | float)
    return (0, value, "") if number else (1, 0, str(value))


def figures_of(
    db: sqlite3.Connection, figure: str, flow: str = ""
) -> dict[str, float | None]:
    """A figure of every run that has it."""
    rows = db.execute("SELECT run, value FROM figure WHERE figure = ? AND flow = ?", (figure, flow))
    found = dict(rows.fetchall())
    if not found:
        some = [name for (name,) in db.execute(
            "SELECT DISTINCT figure FROM figure WHERE flow = ? ORDER BY figure", (flow,))]
        flows = [name for (name,) in db.execute("SELECT DISTINCT flow FROM figure ORDER BY flow")]
        if not some:
            raise LabError(f"there is no flow {flow!r}; there are {', '.join(filter(None, flows))}")
        raise LabError(f"there is no figure {figure!r}; there are {', '.join(some)}")
    return found


def table(rows: list[list[Any]]) -> str:
    """Rows for people, the first of which is the head."""

    def shown(value: Any) -> str:
        if value is None:
            return "-"
        return f"{value:.6g}" if isinstance(value, float) else str(value)

    cells = [[shown(value) for value in row] for row in rows]
    width = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(row, width, strict=True)).rstrip()
                     for row in cells)


def written(rows: list[list[Any]], form: str) -> None:
    """Prints rows, the first of which is the head, as a table, JSON or CSV."""
    if form == "json":
        print(json.dumps([dict(zip(rows[0], row, strict=True)) for row in rows[1:]], indent=1))
    elif form == "csv":
        csv.writer(sys.stdout, lineterminator="\n").writerows(rows)
    else:
        print(table(rows))


def _query(args: argparse.Namespace) -> int:
    if args.sql and (args.filter or args.figure):
        what = args.filter[0] if args.filter else f"--figure {args.figure[0]}"
        raise LabError(f"{what} does not go with --sql: say it there, WHERE")
    db = opened(args.directory)
    if args.sql:
        try:
            answer = db.execute(args.sql)
            rows = [list(row) for row in answer.fetchall()]
        except sqlite3.Error as err:
            tables = db.execute("SELECT sql FROM sqlite_master WHERE type = 'table'").fetchall()
            raise LabError(f"{err}; the tables are\n" + "\n".join(sql for (sql,) in tables)
                           ) from err
        written([[column[0] for column in answer.description or []], *rows], args.format)
        return 0
    runs = chosen(db, args.filter)
    own = own_columns(db)
    axes = [name for name in columns(db) if name not in own]
    wanted = [(text.rpartition(":")[0], text.rpartition(":")[2]) for text in args.figure]
    values = [figures_of(db, figure, flow) for flow, figure in wanted]
    head = ["key", "scenario", "variant", "seed", *axes, *args.figure]
    rows = [[run[name] if name in own else run.get(name) for name in head[:4 + len(axes)]]
            + [value.get(run["key"]) for value in values] for run in runs]
    written([head, *rows], args.format)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    take = commands.add_parser("fill", help="take in results that workers have left")
    take.add_argument("directory", type=Path, metavar="DIR")
    ask = commands.add_parser("query", help="runs and their figures, or plain SQL, read-only")
    ask.add_argument("directory", type=Path, metavar="DIR")
    ask.add_argument("filter", nargs="*", metavar="NAME=VALUE",
                     help="column of a run or axis; VALUE|VALUE: one of these")
    ask.add_argument("--figure", action="append", default=[], metavar="[FLOW:]FIGURE",
                     help="a column of this figure, such as media_sojourn_ms.p95")
    ask.add_argument("--sql", metavar="SELECT", help="tables: run, axis, figure")
    ask.add_argument("--format", choices=("table", "json", "csv"), default="table")
    args, rest = parser.parse_known_args()
    if args.command == "query":  # filters may stand behind options, too
        args = ask.parse_intermixed_args(sys.argv[2:])
        return _query(args)
    if rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    print(f"{fill(args.directory)} new runs")
    return 0
