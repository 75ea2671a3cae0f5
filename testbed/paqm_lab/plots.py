# SPDX-License-Identifier: GPL-2.0
"""The report's diagrams, drawn from result.json and series/*.csv only, as inline SVG."""

from __future__ import annotations

import html
import io
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullFormatter

from paqm_lab import cache, rundata
from paqm_lab.errors import LabError

F64 = npt.NDArray[np.float64]

# Colours that people with colour-blindness can tell apart (Okabe and Ito). Flows and variants have
# sets of their own: a colour means one thing in the whole report.
FLOW_COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#8C6D1F"]
ELASTIC_COLOUR = "#6E6E6E"
MEDIA_COLOUR = "#0072B2"
VARIANT_COLOURS = ["#00796B", "#7B4FA3", "#D55E00", "#A0651A", "#4C6FB0", "#C2185B",
                   "#7CB342", "#263238", "#00ACC1", "#F9A825", "#8E8E8E", "#AB9BD8"]  # fmt: skip
LIMIT_COLOUR = "#B00020"
LEGEND = 23  # entries
IN_ROW = 5  # panels; more of them stand in rows of four
MOST_PANELS = 12  # of streams; with more one would see nothing, and the page would take minutes
WIDTH = 12.6  # inches of the whole row of panels
STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#777777",
    "axes.labelcolor": "#333333",
    "axes.grid": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.7,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.4,
    "svg.hashsalt": "paqm",
    "svg.fonttype": "path",
}


class Series:
    """The CSV series of a result directory, read once each."""

    def __init__(self, out_dir: Path) -> None:
        self.out_dir = out_dir
        self._known: dict[tuple[str, str], rundata.Table] = {}
        self._text: dict[tuple[str, str], list[str]] = {}

    def table(self, variant: str, name: str) -> rundata.Table:
        """A series of numbers; text columns read as NaN."""
        key = (variant, name)
        if key not in self._known:
            path = self.out_dir / variant / "series" / f"{name}.csv"
            table = rundata.load_csv(path)
            if table is None:
                raise LabError(f"{path} is missing: run the scenario again")
            self._known[key] = table
        return self._known[key]

    def flows(self, variant: str, name: str) -> npt.NDArray[np.str_]:
        """The column `flow` of a series, which is text."""
        key = (variant, name)
        if key not in self._text:
            path = self.out_dir / variant / "series" / f"{name}.csv"
            lines = path.read_text().splitlines()
            place = lines[0].split(",").index("flow")
            self._text[key] = [line.split(",")[place] for line in lines[1:]]
        return np.array(self._text[key], np.str_)


def svg(figure: Figure, label: str) -> str:
    """A figure as an SVG element that fits its column; the label is for screen readers."""
    out = io.StringIO()
    # savefig() would draw it twice, the first time only to find places for everything, which
    # drawing it does anyway.
    canvas: Any = FigureCanvasSVG(figure)
    canvas.print_svg(out, metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    text = text[text.index("<svg") :]
    # Each file numbers its parts alike; in one page the numbers must differ.
    prefix = f"d{cache.digest(label.encode(), text.encode())}"
    text = re.sub(r'\bid="', f'id="{prefix}-', text)
    text = re.sub(r'href="#', f'href="#{prefix}-', text)
    text = text.replace("url(#", f"url(#{prefix}-")
    head = f'<svg role="img" aria-label="{html.escape(label)}"'
    return re.sub(r'<svg( (width|height)="[^"]*")*', lambda _: head, text, count=1)


def plain(text: str) -> str:
    """A scenario's text: what two dollars enclose would be a formula to matplotlib."""
    return text.replace("$", r"\$")


def _panels(count: int, height: float, share_y: bool = True) -> tuple[Figure, list[Axes]]:
    """A figure with so many panels, in one row of `height` inches or in several."""
    columns = count if count <= IN_ROW else IN_ROW - 1
    rows = math.ceil(count / columns)
    figure = Figure(figsize=(WIDTH, rows * height), layout="constrained")
    axes = list(figure.subplots(rows, columns, sharey=share_y, squeeze=False).flat)
    for spare in axes[count:]:
        spare.set_axis_off()
    return figure, axes[:count]


def _y_label(panels: list[Axes], text: str) -> None:
    """Names the y axis of panels that share it, at the first one of each row."""
    for axes in panels:
        place = axes.get_subplotspec()
        if place and place.is_first_col():
            axes.set_ylabel(text)


def _flow_names(result: dict[str, Any]) -> list[str]:
    names: list[str] = []
    for variant in result["variants"]:
        names += [name for name in variant["flows"] if name not in names]
    return names


def _colours(result: dict[str, Any]) -> dict[str, str]:
    return {name: FLOW_COLOURS[i % len(FLOW_COLOURS)] for i, name in enumerate(_flow_names(result))}


def variant_colours(result: dict[str, Any]) -> dict[str, str]:
    """One colour per variant."""
    return {
        variant["name"]: VARIANT_COLOURS[i % len(VARIANT_COLOURS)]
        for i, variant in enumerate(result["variants"])
    }


def _events(axes: Axes, variant: dict[str, Any], duration: float) -> None:
    """Thin lines where flows join or leave inside the run, named at the top of the panel."""
    marks: list[tuple[float, str]] = []
    for event in variant["events"]:
        if not 1 < event["t"] < duration - 1:
            continue
        name = "TCP" if event["flow"].startswith("TCP-") else event["flow"]
        text = f"{name} {'joins' if event['event'] == 'join' else 'leaves'}"
        if not marks or marks[-1][1] != text or event["t"] - marks[-1][0] > 1:
            marks.append((event["t"], text))
    for t, text in marks:
        axes.axvline(t, color="#AAAAAA", linewidth=0.8, linestyle=(0, (1, 2)), zorder=1)
        axes.annotate(
            text,
            (t, 1),
            xycoords=("data", "axes fraction"),
            xytext=(2, -2),
            textcoords="offset points",
            fontsize=7.5,
            color="#666666",
            va="top",
        ).set_in_layout(False)


def entries(axes: Axes) -> tuple[list[Artist], list[str]]:
    """What a legend says; that of two hundred flows would leave no room for the diagram."""
    handles, labels = axes.get_legend_handles_labels()
    if (more := len(labels) - LEGEND) > 0:
        handles, labels = handles[:LEGEND], labels[:LEGEND]
        _add_text(handles, labels, f"and {more} more")
    return handles, labels


def _add_text(handles: list[Artist], labels: list[str], text: str) -> None:
    """An entry of a legend that stands for nothing in the diagram."""
    handles.append(Line2D([], [], linestyle="none"))
    labels.append(text)


def _legend(figure: Figure, axes: Axes, columns: int) -> None:
    figure.legend(*entries(axes), loc="outside lower center", ncols=columns)


def rates(result: dict[str, Any], series: Series) -> Figure:
    """Rate of each stream and of TCP, with the fair shares dashed."""
    figure, panels = _panels(len(result["variants"]), 3.7)
    colours = _colours(result) | {"TCP": ELASTIC_COLOUR}
    top = 0.0
    for axes, variant in zip(panels, result["variants"], strict=True):
        table = series.table(variant["name"], "rates")
        for name in [*variant["flows"], "TCP"]:
            if name not in table.columns or not np.nanmax(table[name], initial=0) > 0:
                continue
            shown = f"stream {name}" if name != "TCP" else "TCP, all flows"
            # Nothing before the flow is there, and no long zero after it.
            rate = np.where(table[name] > 0, table[name], np.nan)
            axes.plot(table["t"], rate, color=colours[name], label=shown)
            top = max(top, *(np.nanmax(table[of], initial=0) for of in (name, f"share_{name}")))
            axes.plot(
                table["t"],
                table[f"share_{name}"],
                color=colours[name],
                linestyle=(0, (4, 2)),
                linewidth=1.0,
                alpha=0.85,
                drawstyle="steps-post",
            )
        axes.plot([], [], color="#444444", linestyle=(0, (4, 2)), linewidth=1, label="fair share")
        axes.set(xlim=(0, result["duration_s"]), xlabel="time, s")
        axes.set_title(plain(variant["title"]))
        _events(axes, variant, result["duration_s"])
    # Thirty streams would lie at the bottom of a diagram as high as the link.
    panels[0].set_ylim(0, min(result["bottleneck_bps"] / 1e6, 1.3 * top) or 1)
    _y_label(panels, "rate, Mbit/s,\nmean of the last second")
    _legend(figure, panels[0], 6)
    return figure


def _plain(value: float, _: object) -> str:
    return f"{value:g}"


def _log_ms(axis: Any) -> None:
    axis.set_major_formatter(FuncFormatter(_plain))
    axis.set_minor_formatter(NullFormatter())


FLOOR_MS = 0.1  # waits below this are drawn at it: a log scale has no zero


def _top_ms(result: dict[str, Any]) -> float:
    worst = [
        variant["figures"][f"{kind}_sojourn_ms"]["max"] or 1.0
        for variant in result["variants"]
        for kind in ("media", "elastic")
    ]
    return float(max([100.0, *worst]) * 2.2)


def sojourn(result: dict[str, Any], series: Series) -> Figure:
    """Waiting time over time, and where packets were lost."""
    figure, panels = _panels(len(result["variants"]), 4.1)
    top = _top_ms(result)
    for axes, variant in zip(panels, result["variants"], strict=True):
        table = series.table(variant["name"], "sojourn")
        for kind, colour, shown in (
            ("elastic", ELASTIC_COLOUR, "TCP"),
            ("media", MEDIA_COLOUR, "media"),
        ):
            median = np.maximum(table[f"{kind}_p50_ms"], FLOOR_MS)
            worst = np.maximum(table[f"{kind}_max_ms"], FLOOR_MS)
            if np.isnan(median).all():
                continue
            axes.fill_between(
                table["t"],
                median,
                worst,
                color=colour,
                alpha=0.28,
                linewidth=0,
                label=f"{shown}: median to maximum of 100 ms",
            )
            axes.plot(table["t"], median, color=colour, linewidth=1.1, label=f"{shown}: median")
        loss = series.table(variant["name"], "loss")
        where = np.array(
            [not name.startswith("TCP-") for name in series.flows(variant["name"], "loss")], bool
        )
        for chosen, colour, height, shown in (
            (where, LIMIT_COLOUR, 0.86, "media packet lost"),
            (~where, "#9A9A9A", 0.80, "TCP packet lost"),
        ):
            t = loss["t"][chosen] if loss.rows else np.zeros(0)
            axes.plot(
                t,
                np.full(len(t), height),
                "|",
                transform=axes.get_xaxis_transform(),
                color=colour,
                markersize=7,
                markeredgewidth=0.9,
                label=shown,
            )
        axes.set_yscale("log")
        _log_ms(axes.yaxis)
        axes.set(xlim=(0, result["duration_s"]), ylim=(FLOOR_MS, top * 8), xlabel="time, s")
        axes.set_title(plain(variant["title"]))
        _events(axes, variant, result["duration_s"])
    _y_label(panels, "time in the router, ms")
    _legend(figure, panels[0], 6)
    return figure


def sojourn_cdf(result: dict[str, Any], series: Series) -> Figure:
    """Distribution of the waiting time: media as a whole, the media tail, TCP."""
    figure, panels = _panels(3, 3.5, share_y=False)
    colours = variant_colours(result)
    top = _top_ms(result)
    for variant in result["variants"]:
        table = series.table(variant["name"], "sojourn_cdf")
        media = np.maximum(table["media_ms"], FLOOR_MS)
        bulk = np.maximum(table["elastic_ms"], FLOOR_MS)
        style = dict[str, Any](color=colours[variant["name"]], label=plain(variant["title"]))
        panels[0].plot(media, 100 * table["quantile"], **style)
        beyond = 100 * (1 - table["quantile"])
        panels[1].plot(media[beyond > 0], beyond[beyond > 0], **style)
        if not np.isnan(bulk).all():
            panels[2].plot(bulk, 100 * table["quantile"], **style)
    for axes, title in zip(
        panels, ("Media: all packets", "Media: the tail", "TCP: all packets"), strict=True
    ):
        axes.set_xscale("log")
        _log_ms(axes.xaxis)
        axes.set(xlim=(FLOOR_MS, top), xlabel="time in the router, ms", title=title)
        axes.set_ylim(0, 101)
    panels[1].set_yscale("log")
    panels[1].set_ylim(0.01, 100)
    _log_ms(panels[1].yaxis)
    panels[0].set_ylabel("packets that waited less, %")
    panels[1].set_ylabel("packets that waited longer, %")
    panels[2].set_ylabel("packets that waited less, %")
    _legend(figure, panels[0], IN_ROW - 1)
    return figure


def _frame_limit(panel: Axes, limit: float, worst: float) -> None:
    """The limit of frame delivery, ms, in a panel that also has to show `worst`."""
    panel.axvline(limit, color=LIMIT_COLOUR, linewidth=1, linestyle=(0, (4, 2)))
    panel.axhline(95, color="#BBBBBB", linewidth=0.8)
    span = max(worst, limit * 1.3)
    right = limit < 0.5 * span
    panel.annotate(
        f"propagation + 2 frame intervals, {limit:.0f} ms",
        (limit, 4),
        xytext=(4 if right else -4, 0),
        textcoords="offset points",
        ha="left" if right else "right",
        fontsize=8,
        color=LIMIT_COLOUR,
    ).set_in_layout(False)
    panel.set(
        xlim=(0, span),
        ylim=(0, 101),
        title="Frame delivery",
        xlabel="capture until the last packet of the frame arrives, ms",
        ylabel="frames delivered by then, %",
    )


def link_and_frames(result: dict[str, Any], series: Series) -> Figure:
    """Use of the link, and distribution of the frame delivery delay."""
    figure, panels = _panels(2, 3.5, share_y=False)
    colours = variant_colours(result)
    rate = result["bottleneck_bps"] / 1e6
    worst = 0.0
    for variant in result["variants"]:
        style = dict[str, Any](color=colours[variant["name"]], label=plain(variant["title"]))
        table = series.table(variant["name"], "rates")
        full = table["t"] >= 1.0
        panels[0].plot(table["t"][full], 100 * table["LINK"][full] / rate, linewidth=1.2, **style)
        delay = series.table(variant["name"], "frames")["delay_ms"]
        # A frame that never was complete counts in the height that the curve reaches.
        known = np.sort(delay[~np.isnan(delay)])
        if len(known):
            height = 100 * np.arange(1, len(known) + 1) / len(delay)
            panels[1].plot(known, height, **style)
            worst = max(worst, float(np.percentile(known, 99.5)))
    panels[0].set(
        xlim=(0, result["duration_s"]),
        ylim=(0, 112),
        yticks=range(0, 101, 20),
        xlabel="time, s",
        ylabel="link use, mean of the last second, %",
        title="Use of the bottleneck",
    )
    _events(panels[0], result["variants"][0], result["duration_s"])
    if result["fps"]:
        _frame_limit(panels[1], result["rtt_ms"] / 2 + 2000 / result["fps"], worst)
    else:
        panels[1].set_axis_off()
    _legend(figure, panels[0], IN_ROW - 1)
    return figure


def _by_second(t: F64, value: F64) -> Iterator[tuple[float, float]]:
    for second in range(int(math.ceil(t.max(initial=0)))):
        chosen = (t >= second) & (t < second + 1) & ~np.isnan(value)
        yield second + 0.5, float(value[chosen].mean()) if chosen.any() else math.nan


def vmaf(result: dict[str, Any], series: Series) -> Figure | None:
    """VMAF of the pictures that were shown, second by second."""
    with_pictures = [v for v in result["variants"] if v["figures"]["picture"]]
    if not with_pictures:
        return None
    figure, panels = _panels(len(result["variants"]), 3.3)
    colours = _colours(result)
    for axes, variant in zip(panels, result["variants"], strict=True):
        axes.set_title(plain(variant["title"]))
        axes.set(
            xlim=(0, result["duration_s"]),
            ylim=(0, 110),
            xlabel="time, s",
            yticks=range(0, 101, 20),
        )
        if variant not in with_pictures:
            continue
        table = series.table(variant["name"], "quality")
        flow = series.flows(variant["name"], "quality")
        for name in variant["flows"]:
            points = list(_by_second(table["t"][flow == name], table["vmaf"][flow == name]))
            if points:
                t, value = zip(*points, strict=True)
                axes.plot(t, value, color=colours[name], label=f"stream {name}")
        _events(axes, variant, result["duration_s"])
    _y_label(panels, "VMAF, mean of one second")
    _legend(figure, panels[0], 6)
    return figure


def quantizer(variant: dict[str, Any], result: dict[str, Any], series: Series) -> Figure | None:
    """Base quantizer of each group of pictures, and what each picture really used."""
    if not variant["figures"]["encoder"]:
        return None
    names = list(variant["flows"])
    more = len(names) - MOST_PANELS
    names = names[:MOST_PANELS]
    figure, panels = _panels(len(names), 3.2)
    colours = _colours(result)
    table = series.table(variant["name"], "quantizer")
    flow = series.flows(variant["name"], "quantizer")
    for axes, name in zip(panels, names, strict=True):
        mine = flow == name
        t, base, used = (table[column][mine] for column in ("t", "qp_base", "qp"))
        axes.plot(
            t,
            used,
            ".",
            markersize=2.2,
            color=colours[name],
            alpha=0.55,
            label="each picture (base + trim)",
        )
        axes.step(t, base, where="post", color="#222222", linewidth=1.0, label="base of the group")
        axes.set(xlim=(0, result["duration_s"]), xlabel="time, s", title=f"Stream {name}")
        _events(axes, variant, result["duration_s"])
    _y_label(panels, "H.264 quantizer (QP)")
    panels[0].set_ylim(0, 51)
    handles, labels = panels[0].get_legend_handles_labels()
    if more > 0:
        _add_text(handles, labels, f"and {more} more streams (series/quantizer.csv)")
    figure.legend(handles, labels, loc="outside lower center", ncols=3, markerscale=4)
    return figure


def style() -> Any:
    """Context in which all diagrams are drawn."""
    return matplotlib.rc_context(STYLE)
