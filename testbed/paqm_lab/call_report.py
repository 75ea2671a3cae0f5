# SPDX-License-Identifier: GPL-2.0
"""The report of a recorded call: what `paqm-streamer call --record DIR` kept, in one page.

Works on what one end recorded, in a lab or in the field. Times of the two ends are compared only
where both clocks are the same or kept in step (NTP); the page says where that matters.
"""

from __future__ import annotations

import html
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from paqm_lab import plots, rundata
from paqm_lab.errors import LabError

F64 = npt.NDArray[np.float64]
RECORD = "call.json"
SETTLE = 2.0  # s after the first picture or sound that are not judged
FIRST = 5.0  # s after the call's begin in which the first picture has to come
ENDING = 1.0  # s before its end that are not judged: programs end, and buffers are thrown away
FREEZE_MS = 200.0
LIP_MS = 45.0
HEADS = {
    "rate": "What was sent: rate allowed, and on the wire",
    "quantizer": "Quantizer of each picture",
    "age": "Age of what was played: from capture at the peer to play-out here",
    "lips": "Picture against sound: positive, the picture is later",
}


@dataclass(frozen=True)
class Recording:
    """One end's recording; times in seconds since its begin."""

    path: Path
    about: dict[str, Any]
    tables: dict[str, rundata.Table]
    events: list[tuple[float, str, str]]

    def t(self, name: str, column: str) -> F64:
        """A column of nanoseconds as seconds since the begin."""
        since: F64 = (self.tables[name][column] - self.about["t0_ns"]) / 1e9
        return since


def is_recording(directory: Path) -> bool:
    """Is that what call --record writes?"""
    return (directory / RECORD).exists()


def load(directory: Path) -> Recording:
    """Open a recording."""
    about = rundata.load_json(directory / RECORD)
    if about.get("version") != 1 or "t0_ns" not in about:
        raise LabError(f"{directory / RECORD}: not a recording that this version reads")
    tables = {}
    for name in ("frames", "control", "rx", "video", "audio", "rtcp"):
        path = directory / f"{name}.csv"
        # the program was killed before it wrote the first of it: the rest tells all the same
        if path.exists() and not path.stat().st_size:
            continue
        table = rundata.load_csv(path)
        if table is not None:
            tables[name] = table
    events = []
    path = directory / "events.csv"
    if path.exists():
        for line in path.read_text(errors="replace").splitlines()[1:]:
            at, _, rest = line.partition(",")
            event, comma, detail = rest.partition(",")
            if comma:  # else it is cut off
                events.append(((int(at) - about["t0_ns"]) / 1e9, event, detail.strip('"')))
    return Recording(directory, about, tables, events)


def ages(rec: Recording, name: str) -> tuple[F64, F64]:
    """When pieces of a kind were played, s; and how old they were, s. Where the age is known."""
    if name not in rec.tables:
        return np.zeros(0), np.zeros(0)
    known = rec.tables[name]["capture_ns"] > 0
    play, capture = rec.t(name, "play_ns")[known], rec.t(name, "capture_ns")[known]
    return play, play - capture


def lip_sync(rec: Recording) -> tuple[F64, F64]:
    """When pictures were played, s; and how much later than their sound, s."""
    at, picture = ages(rec, "video")
    heard, sound = ages(rec, "audio")
    if not len(at) or not len(heard):
        return np.zeros(0), np.zeros(0)
    within = (at >= heard[0]) & (at <= heard[-1])
    return at[within], (picture[within] - np.interp(at[within], heard, sound))


def _spread(values: F64) -> dict[str, float] | None:
    if not len(values):
        return None
    p50, p95, p99 = np.percentile(values, [50, 95, 99])
    return {
        "p50": round(float(p50), 2),
        "p95": round(float(p95), 2),
        "p99": round(float(p99), 2),
        "max": round(float(values.max()), 2),
    }


def _span(rec: Recording) -> tuple[float, float]:
    """Begin and end of a call; that of a recording that was cut off is its last sound."""
    when = {event: t for t, event, _ in reversed(rec.events)}
    heard = rec.t("audio", "play_ns") if "audio" in rec.tables else np.zeros(0)
    last = float(heard[-1]) if len(heard) else -np.inf
    return when.get("begin", np.inf), when.get("end", last)


def picture_gaps(rec: Recording) -> F64:
    """s without a new picture, as far as that is judged; before the first and behind the last only
    if it is a freeze, as what else there is belongs to the call's begin and end."""
    play, (begin, end) = rec.t("video", "play_ns"), _span(rec)
    gaps = np.diff(play)[play[1:] >= play[0] + SETTLE]
    wait, rest = play[0] - begin, end - ENDING - play[-1]
    if wait > FIRST:
        gaps = np.append(wait, gaps)
    return np.append(gaps, rest) if rest > FREEZE_MS / 1000 else gaps


def figures(rec: Recording) -> dict[str, Any]:
    """What there is to say in numbers."""
    found: dict[str, Any] = {"pictures_sent": 0, "pictures_shown": 0}
    if "frames" in rec.tables:
        sent = rec.tables["frames"]
        t = rec.t("frames", "t_ns")
        found["pictures_sent"] = len(t)
        if len(t) > 1:
            found["sent_kbps"] = round(
                float(sent["wire_bytes"].sum()) * 8 / (t[-1] - t[0]) / 1000, 1
            )
            found["quantizer_mean"] = round(float(sent["qp"].mean()), 2)
    if "video" in rec.tables:
        play = rec.t("video", "play_ns")
        found["pictures_shown"] = len(play)
        if len(play) > 1:
            gaps = picture_gaps(rec) * 1000
            found["picture_gap_ms"] = _spread(gaps)
            found["freezes"] = int((gaps > FREEZE_MS).sum())
    for name in ("video", "audio"):
        at, age = ages(rec, name)
        found[f"{name}_age_ms"] = _spread(age[at >= at[0] + SETTLE] * 1000 if len(at) else age)
    at, late = lip_sync(rec)
    late = late[at >= at[0] + SETTLE] * 1000 if len(at) else late
    found["lip_sync_ms"] = None
    if len(late):
        found["lip_sync_ms"] = {
            "least": round(float(late.min()), 2),
            "mean": round(float(late.mean()), 2),
            "most": round(float(late.max()), 2),
        }
    if "rtcp" in rec.tables and len(rec.tables["rtcp"]["t_ns"]):
        table = rec.tables["rtcp"]
        found["round_trip_ms"] = round(float(np.nanmedian(table["rtt_ms"])), 1)
        found["peer_reported_loss_percent"] = round(float(table["fraction_lost"].mean()) * 100, 3)
    return found


def checks(rec: Recording, found: dict[str, Any]) -> list[dict[str, Any]]:
    """What a good call keeps to."""
    rows: list[dict[str, Any]] = []

    def add(name: str, value: float | None, limit: float, unit: str, source: str) -> None:
        rows.append(
            {
                "variant": rec.path.name,
                "name": name,
                "value": value,
                "relation": "<=",
                "limit": limit,
                "unit": unit,
                "pass": value is not None and value <= limit,
                "source": source,
            }
        )

    add(
        "freezes",
        found.get("freezes"),
        0,
        "",
        f"video.csv: gaps above {FREEZE_MS:g} ms between pictures, {SETTLE:g} s after the first, "
        f"which came within {FIRST:g} s, to {ENDING:g} s before the end",
    )
    lips = found["lip_sync_ms"]
    add(
        "lip_sync",
        max(abs(lips["least"]), abs(lips["most"])) if lips else None,
        LIP_MS,
        "ms",
        "video.csv, audio.csv: age of the picture less age of the sound, the largest",
    )
    return rows


def _rate(rec: Recording) -> Figure | None:
    if "frames" not in rec.tables or not len(rec.tables["frames"]["t_ns"]):
        return None
    t, table = rec.t("frames", "t_ns"), rec.tables["frames"]
    figure, axes = plt.subplots(figsize=(plots.WIDTH, 2.6), layout="constrained")
    axes.plot(t, table["allowance_bps"] / 1000, color=plots.LIMIT_COLOUR, label="allowed", lw=1)
    seconds = np.arange(0, t[-1] + 1)
    wire, _ = np.histogram(t, seconds, weights=table["wire_bytes"] * 8 / 1000)
    axes.step(seconds[:-1], wire, where="post", color=plots.MEDIA_COLOUR, label="sent, by second")
    axes.set_ylabel("kbit/s")
    axes.set_ylim(bottom=0)
    axes.legend(loc="upper right")
    return figure


def _quantizer(rec: Recording) -> Figure | None:
    if "frames" not in rec.tables or not len(rec.tables["frames"]["t_ns"]):
        return None
    figure, axes = plt.subplots(figsize=(plots.WIDTH, 2.0), layout="constrained")
    axes.plot(rec.t("frames", "t_ns"), rec.tables["frames"]["qp"], lw=0.7)
    axes.set_ylabel("QP")
    return figure


def _age(rec: Recording) -> Figure | None:
    figure, axes = plt.subplots(figsize=(plots.WIDTH, 2.4), layout="constrained")
    drawn = False
    for name, colour in (("video", plots.MEDIA_COLOUR), ("audio", plots.FLOW_COLOURS[1])):
        at, age = ages(rec, name)
        if len(at):
            axes.plot(at, age * 1000, color=colour, lw=0.8, label=name)
            drawn = True
    if not drawn:
        plt.close(figure)
        return None
    axes.set_ylabel("ms")
    axes.set_ylim(bottom=0)
    axes.legend(loc="upper right")
    return figure


def _lips(rec: Recording) -> Figure | None:
    at, late = lip_sync(rec)
    if not len(at):
        return None
    figure, axes = plt.subplots(figsize=(plots.WIDTH, 2.0), layout="constrained")
    axes.plot(at, late * 1000, lw=0.8, color=plots.MEDIA_COLOUR)
    for bound in (-LIP_MS, LIP_MS):
        axes.axhline(bound, color=plots.LIMIT_COLOUR, lw=0.8, ls="--")
    axes.set_ylabel("ms")
    return figure


DRAWINGS = {"rate": _rate, "quantizer": _quantizer, "age": _age, "lips": _lips}


def _table(found: dict[str, Any]) -> str:
    rows = []
    for name, value in found.items():
        shown = (
            ", ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, dict) else value
        )
        label = name.replace("_", " ")
        shown = "not known" if shown is None else shown
        rows.append(f"<tr><td>{html.escape(label)}</td><td>{shown}</td></tr>")
    return f"<table>{''.join(rows)}</table>"


def render(rec: Recording, found: dict[str, Any], rows: list[dict[str, Any]]) -> str:
    """The page."""
    from paqm_lab.report import CSS  # draws in its turn on this package

    about = rec.about
    title = f"Call of {html.escape(about['name'])} with {html.escape(about['peer_name'])}"
    parts = [
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        f"<style>{CSS}</style><main><h1>{title}</h1>",
        f'<p class="lead">Peer {html.escape(about["peer"])}, pictures of at most '
        f"{about['rate_max'] / 1000:.0f} kbit/s. Recorded by paqm-streamer "
        f"{html.escape(about['program'])}.</p>",
        "<section><h2>Figures</h2>" + _table(found) + "</section>",
        "<section><h2>Checks</h2><table>",
    ]
    for row in rows:
        verdict = "pass" if row["pass"] else "fail"
        parts.append(
            f'<tr><td class="{verdict}">{verdict}</td><td>{row["name"]}</td><td class="n">'
            f"{'not known' if row['value'] is None else row['value']} {row['unit']}, at most "
            f'{row["limit"]} {row["unit"]}</td><td class="source">{html.escape(row["source"])}</td>'
            "</tr>"
        )
    parts.append("</table></section>")
    with plt.rc_context(plots.STYLE):
        for name, draw in DRAWINGS.items():
            figure = draw(rec)
            if figure is None:
                continue
            for axes in figure.axes:
                axes.set_xlabel("s since the call began")
            parts.append(f"<section><h2>{HEADS[name]}</h2>{plots.svg(figure, HEADS[name])}")
            if name == "age":
                parts.append(
                    '<p class="note">True as far as the clocks of both ends agree; an error of '
                    "them shifts both curves alike.</p>"
                )
            parts.append("</section>")
            plt.close(figure)
    if rec.events:
        parts.append("<section><h2>Events</h2><table>")
        parts.extend(
            f'<tr><td class="n">{at:.1f} s</td><td>{html.escape(event)}</td>'
            f"<td>{html.escape(detail)}</td></tr>"
            for at, event, detail in rec.events
        )
        parts.append("</table></section>")
    parts.append("</main></html>")
    return "".join(parts)


def write(directory: Path) -> Path:
    """Write result.json and report.html into a recording."""
    rec = load(directory)
    found = figures(rec)
    rows = checks(rec, found)
    result = {
        "version": 1,
        "scenario": f"call of {rec.about['name']}",
        "seed": 0,
        "figures": found,
        "checks": rows,
    }
    path = directory / "report.html"
    try:
        (directory / "result.json").write_text(json.dumps(result, indent=1) + "\n")
        path.write_text(render(rec, found, rows), encoding="utf-8")
    except OSError as err:
        raise LabError(f"{err.filename}: cannot write: {err.strerror}") from err
    return path
