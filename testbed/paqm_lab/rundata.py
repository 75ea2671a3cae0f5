# SPDX-License-Identifier: GPL-2.0
"""The raw files of one variant's directory: run.json, flow logs (CSV), with their faults named."""

from __future__ import annotations

import csv
import json
import math
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from paqm_lab.errors import LabError

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

ADVISED_SENDER = "paqm-streamer"
# GStreamer pipelines with paqmestimator: the targets are for them, too.
ADVISED = {ADVISED_SENDER, "gst-paqm", "gst-paqm-openh264", "gst-paqm-h264", "gst-both"}


@dataclass(frozen=True)
class MediaFlow:
    """A media stream as the scenario asks for it."""

    name: str
    start: float
    stop: float
    rate_max: float  # bit/s, IP level
    address: str
    sender: str = ADVISED_SENDER


@dataclass(frozen=True)
class Load:
    """What else a host sends: `rate` is that of one flow, None where it has none of its own:
    TCP decides, or packets are few."""

    kind: str  # flood, audio, web, idle
    name: str
    start: float
    stop: float
    address: str
    port: int  # of the first flow, at the sink
    ports: int
    rate: float | None  # bit/s, IP level
    as_one: bool  # all its flows have one claim


@dataclass(frozen=True)
class Run:
    """One variant's run."""

    path: Path
    scenario: str
    title: str
    variant: str
    sender: str
    label: str
    qdisc: str
    shaper: str | None
    seed: int
    duration: float
    bottleneck: float  # bit/s
    rtt: float  # s
    fps: float
    t0_ns: int
    media: tuple[MediaFlow, ...]
    elastic: tuple[str, ...]  # names of the groups of TCP flows
    versions: dict[str, str]
    packet_log_sha256: str
    wall_seconds: float
    wall_ended: float  # Unix time
    link: str | None  # kind of the trace that the bottleneck's rate follows
    loads: tuple[Load, ...] = ()
    tcp: dict[int, tuple[str, str]] = field(default_factory=dict)  # port: flow, algorithm
    tcp_stop: dict[int, float] = field(default_factory=dict)  # port: until when it has data
    judge_from: float | None = None  # s; None: the scenario asks for no figures of every flow
    cut_every: float | None = None  # s between scene cuts of the clip, if it is cut

    @property
    def advised(self) -> bool:
        """Whether this variant's senders are told their rate (the targets are for those)."""
        return self.sender in ADVISED and self.qdisc.split()[0] == "paqm"

    def flow_dir(self, name: str, side: str) -> Path:
        """Directory of a flow's sender or receiver logs."""
        return self.path / "flows" / name / side


def load_json(path: Path) -> Any:
    """Parse a JSON file, naming it when that fails."""
    try:
        return json.loads(path.read_text())
    except OSError as err:
        raise LabError(f"{path}: cannot read: {err.strerror}") from err
    except ValueError as err:
        raise LabError(f"{path}: not valid JSON: {err}") from err


@dataclass(frozen=True)
class Table:
    """A CSV file with a header line; unreadable or empty cells are NaN."""

    path: Path
    columns: dict[str, F64]
    rows: int

    def __getitem__(self, name: str) -> F64:
        if name not in self.columns:
            raise LabError(f"{self.path}: no column {name!r} (has {', '.join(self.columns)})")
        return self.columns[name]

    def integers(self, name: str) -> I64:
        """A column of whole numbers. Rows with an empty cell must have been dropped before."""
        column = self[name]
        if np.isnan(column).any():
            bad = int(np.argmax(np.isnan(column)))
            raise LabError(f"{self.path}: row {bad + 2}, column {name!r}: not a number")
        return column.astype(np.int64)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def load_csv(path: Path) -> Table | None:
    """Read a table of numbers; None when the file is not there. A cut last line is left out."""
    try:
        with path.open(newline="") as f:
            rows = list(csv.reader(f))
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError, csv.Error) as err:
        raise LabError(f"{path}: cannot read the table: {err}") from err
    if not rows:
        raise LabError(f"{path}: empty, not even a header line: the program that writes it died")
    header = rows[0]
    body = [row for row in rows[1:] if len(row) == len(header)]
    if len(rows) - 1 - len(body) > 1:
        raise LabError(f"{path}: {len(rows) - 1 - len(body)} rows lack columns")
    columns = {
        name: np.array([_number(row[i]) for row in body], np.float64)
        for i, name in enumerate(header)
    }
    return Table(path, columns, len(body))


def load_run(directory: Path) -> Run:
    """Read run.json, which the engine writes when a variant has run to its end."""
    path = directory / "run.json"
    data = load_json(path)
    try:
        media = tuple(
            MediaFlow(
                name=str(flow["name"]),
                start=float(flow["start"]),
                stop=float(flow["stop"]),
                rate_max=float(flow["rate_max"]),
                address=str(flow["address"]),
                sender=str(flow.get("sender", data["variant"]["sender"])),
            )
            for flow in data["media"]
        )
        variant = data["variant"]
        return Run(
            path=directory,
            scenario=str(data["name"]),
            title=str(data["title"]),
            variant=str(variant["name"]),
            sender=str(variant["sender"]),
            label=str(variant["title"]),
            qdisc=str(variant["qdisc"]),
            shaper=variant["shaper"],
            seed=int(data["seed"]),
            duration=float(data["duration"]),
            bottleneck=float(data["path"]["bottleneck"]),
            rtt=float(data["path"]["rtt_ms"]) / 1000,
            fps=float(data["clip"]["fps"]) if data["clip"] else math.nan,
            t0_ns=int(data["t0_ns"]),
            media=media,
            elastic=tuple(str(group["name"]) for group in data["elastic"]),
            versions={str(k): str(v) for k, v in data["versions"].items()},
            packet_log_sha256=str(data["packet_log_sha256"]),
            wall_seconds=float(data["wall_seconds"]),
            wall_ended=float(data["wall_ended"]),
            link=data.get("link"),
            loads=tuple(
                Load(**{f.name: load[f.name] for f in fields(Load)})
                for load in data.get("loads", [])
            ),
            tcp={
                int(member["port"]): (f"{group['name']}-{n}", group["congestion_control"])
                for group in data["elastic"]
                for n, member in enumerate(group.get("members", []), start=1)
            },
            tcp_stop={
                int(member["port"]): float(group["stop"])
                for group in data["elastic"]
                for member in group.get("members", [])
            },
            judge_from=data.get("judge_from"),
            cut_every=(data["clip"] or {}).get("cut_every"),
        )
    except (KeyError, TypeError, ValueError) as err:
        raise LabError(f"{path}: lacks or garbles {err}; run the scenario again") from err


def seconds(table: Table, t0_ns: int, name: str = "t_ns") -> F64:
    """A column of CLOCK_REALTIME nanoseconds as scenario time.

    Parsed as float64 these have a resolution of 256 ns, which is enough for frames and packets.
    """
    return np.asarray((table[name] - float(t0_ns)) / 1e9, np.float64)
