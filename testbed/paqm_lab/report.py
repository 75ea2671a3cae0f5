# SPDX-License-Identifier: GPL-2.0
"""report.html: one file that needs nothing else, from result.json and series/*.csv."""

from __future__ import annotations

import base64
import html
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from paqm_lab import checks, metrics, plots, rundata, sidebyside
from paqm_lab.errors import LabError

CSS = """
:root { color-scheme: light; }
body { margin: 0; background: #f6f7f8; color: #1d2328;
  font: 15px/1.5 system-ui, "DejaVu Sans", sans-serif; }
main { max-width: 1240px; margin: 0 auto; padding: 28px 28px 60px; }
h1 { font-size: 27px; margin: 0 0 4px; line-height: 1.25; }
h2 { font-size: 19px; margin: 0 0 6px; }
.lead { color: #4a545c; margin: 0 0 20px; max-width: 75em; }
section { background: #fff; border: 1px solid #e1e4e7; border-radius: 8px; padding: 18px 22px;
  margin: 0 0 18px; }
section > p { margin: 0 0 10px; color: #4a545c; max-width: 80em; }
svg, img, video { width: 100%; height: auto; display: block; }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
th, td { text-align: left; padding: 5px 10px; border-bottom: 1px solid #eceef0;
  vertical-align: top; }
thead th { border-bottom: 2px solid #c9ced3; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.best { font-weight: 700; background: #e4f3ec; }
tr.group td { background: #f1f3f5; font-weight: 600; }
td.source { color: #66707a; font-size: 12.5px; }
.pass { color: #00694f; font-weight: 700; }
.fail { color: #b00020; font-weight: 700; }
.swatch { display: inline-block; width: 11px; height: 11px; border-radius: 2px;
  margin-right: 6px; }
code, pre { font: 13px/1.45 "DejaVu Sans Mono", ui-monospace, monospace; }
pre { background: #f1f3f5; border-radius: 6px; padding: 10px 14px; overflow-x: auto;
  margin: 0 0 10px; }
ul { margin: 0 0 10px; padding-left: 20px; }
.tiles { display: flex; flex-wrap: wrap; gap: 12px; margin: 0 0 18px; }
.tile { flex: 1 1 200px; background: #fff; border: 1px solid #e1e4e7; border-radius: 8px;
  padding: 12px 16px; }
.tile h3 { margin: 0 0 4px; font-size: 13px; font-weight: 600; color: #4a545c; }
.tile div { display: flex; justify-content: space-between; font-variant-numeric: tabular-nums; }
.note { font-size: 13px; color: #66707a; }
"""

Figures = dict[str, Any]


def text(value: object) -> str:
    """Text made safe for HTML."""
    return html.escape(str(value))


@dataclass(frozen=True)
class Row:
    """A line of the table of figures."""

    label: str
    get: Callable[[Figures], float | None]
    # Smaller of two values by this is the better; None: neither is better.
    worse: Callable[[float], float] | None
    digits: int = 1


def _at(*keys: str) -> Callable[[Figures], float | None]:
    def get(figures: Figures) -> float | None:
        value: Any = figures
        for key in keys:
            value = None if value is None else value[key]
        return None if value is None else float(value)

    return get


def _down(value: float) -> float:
    return value


def _up(value: float) -> float:
    return -value


def _hundred(value: float) -> float:
    return abs(value - 100)


GROUPS: list[tuple[str, list[Row]]] = [
    (
        "Delay in the router, media",
        [
            Row("median, ms", _at("media_sojourn_ms", "p50"), _down, 2),
            Row("95th percentile, ms", _at("media_sojourn_ms", "p95"), _down),
            Row("99th percentile, ms", _at("media_sojourn_ms", "p99"), _down),
            Row("maximum, ms", _at("media_sojourn_ms", "max"), _down),
        ],
    ),
    (
        "Frames",
        [
            Row("capture to last packet, median, ms", _at("frame_delivery_ms", "p50"), _down),
            Row(
                "capture to last packet, 95th percentile, ms",
                _at("frame_delivery_ms", "p95"),
                _down,
            ),
            Row("never complete, frames", _at("frame_delivery_ms", "never"), _down, 0),
            Row(
                "capture to decoded picture, median, ms",
                _at("picture", "capture_to_picture_ms", "p50"),
                _down,
            ),
            Row("pictures shown per second", _at("picture", "frame_rate"), _up),
            Row("freezes above 200 ms", _at("picture", "freezes"), _down, 0),
            Row("frozen, s in all", _at("picture", "frozen_s"), _down),
        ],
    ),
    (
        "Loss in the router",
        [
            Row("media packets, %", _at("media_loss", "percent"), _down, 2),
            Row(
                "media packets, later than 3 s after a change", _at("media_loss", "late"), _down, 0
            ),
            Row("TCP packets, %", _at("elastic_loss", "percent"), None, 2),
        ],
    ),
    (
        "Fairness and use",
        [
            Row(
                "streams: mean rate, % of fair share", _at("media_share_percent", "mean"), _hundred
            ),
            Row(
                "streams: lowest interval, % of fair share",
                _at("media_share_percent", "min"),
                _hundred,
            ),
            Row(
                "streams: highest interval, % of fair share",
                _at("media_share_percent", "max"),
                _hundred,
            ),
            Row(
                "changes after which a stream never settled", _at("settle_s", "unsettled"), _down, 0
            ),
            Row("TCP aggregate, % of fair share", _at("elastic_share_percent", "mean"), _hundred),
            Row("link use while TCP runs, %", _at("link_use_percent", "with_elastic"), _up),
            Row("TCP delay in the router, median, ms", _at("elastic_sojourn_ms", "p50"), None),
        ],
    ),
    (
        "Pictures",
        [
            Row("VMAF, mean", _at("picture", "vmaf"), _up),
            Row("VMAF, 5th percentile", _at("picture", "vmaf_p5"), _up),
            Row("PSNR (luma), dB", _at("picture", "psnr_y_db"), _up, 2),
            Row("SSIM (luma)", _at("picture", "ssim_y"), _up, 4),
        ],
    ),
    (
        "Feedback",
        [
            Row("messages from the router", _at("feedback", "messages"), None, 0),
            Row(
                "bytes of messages, % of media bytes", _at("feedback", "overhead_percent"), None, 2
            ),
        ],
    ),
]


def _value(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def figures_table(result: dict[str, Any]) -> str:
    """All variants side by side; the best of a row is marked, and none if all are equal."""
    variants = result["variants"]
    colours = plots.variant_colours(result)
    out = ["<table><thead><tr><th></th>"]
    for variant in variants:
        out.append(
            f'<th class="n"><span class="swatch" style="background:{colours[variant["name"]]}">'
            f"</span>{text(variant['title'])}</th>"
        )
    out.append("</tr></thead><tbody>")
    for title, rows in GROUPS:
        head = f'<tr class="group"><td colspan="{len(variants) + 1}">{text(title)}</td></tr>'
        for row in rows:
            values = [row.get(variant["figures"]) for variant in variants]
            if all(v is None for v in values):
                continue
            shown = [_value(v, row.digits) for v in values]
            best = ""
            if row.worse and len({*shown}) > 1:
                known = [
                    (row.worse(v), s) for v, s in zip(values, shown, strict=True) if v is not None
                ]
                best = min(known)[1]
            out.append(f"{head}<tr><td>{text(row.label)}</td>")
            head = ""
            for cell in shown:
                out.append(f'<td class="n{" best" if cell == best else ""}">{cell}</td>')
            out.append("</tr>")
    out.append("</tbody></table>")
    return "".join(out)


def checks_table(result: dict[str, Any]) -> str:
    """The list of checks with limits and where the value comes from."""
    out = [
        '<table><thead><tr><th></th><th>check</th><th class="n">value</th><th class="n">limit</th>'
        "<th>from</th></tr></thead><tbody>"
    ]
    for check in result["checks"]:
        mark = (
            '<span class="pass">pass</span>' if check["pass"] else '<span class="fail">FAIL</span>'
        )
        relation = {"<=": "≤", ">=": "≥"}[check["relation"]]
        out.append(
            f"<tr><td>{mark}</td><td>{text(check['name'].replace('_', ' '))}</td>"
            f'<td class="n">{checks.number(check["value"])}</td>'
            f'<td class="n">{relation} {checks.number(check["limit"])} {text(check["unit"])}</td>'
            f'<td class="source">{text(check["source"])}</td></tr>'
        )
    out.append("</tbody></table>")
    return "".join(out)


def _tiles(result: dict[str, Any]) -> str:
    colours = plots.variant_colours(result)
    shown: list[tuple[str, Callable[[Figures], float | None], str, int]] = [
        ("Media delay in the router, p99", _at("media_sojourn_ms", "p99"), "ms", 1),
        ("Media packets lost", _at("media_loss", "percent"), "%", 2),
        ("Frame delivery, p95", _at("frame_delivery_ms", "p95"), "ms", 0),
        ("Streams, mean of fair share", _at("media_share_percent", "mean"), "%", 0),
        ("Link use while TCP runs", _at("link_use_percent", "with_elastic"), "%", 1),
    ]
    out = ['<div class="tiles">']
    for title, get, unit, digits in shown:
        values = [get(variant["figures"]) for variant in result["variants"]]
        if all(v is None for v in values):
            continue
        out.append(f'<div class="tile"><h3>{text(title)}</h3>')
        for variant, value in zip(result["variants"], values, strict=True):
            number = "not reached" if value is None and unit == "ms" else _value(value, digits)
            out.append(
                f'<div><span><span class="swatch" style="background:{colours[variant["name"]]}">'
                f"</span>{text(variant['name'])}</span><b>{number}"
                f"{'' if value is None else ' ' + unit}</b></div>"
            )
        out.append("</div>")
    out.append("</div>")
    return "".join(out)


def _setup(result: dict[str, Any]) -> str:
    first = result["variants"][0]
    streams = ", ".join(first["flows"])
    rate = result["bottleneck_bps"] / 1e6
    parts = [
        f"{len(first['flows'])} live video streams ({text(streams)})",
        "and TCP" if first["elastic_expected"] else "",
        f"share one bottleneck of {rate:.3g} Mbit/s"
        + (", the mean of a rate that varies," if result.get("link") else "")
        + " with a base round-trip time of "
        f"{result['rtt_ms']:g} ms for {result['duration_s']:g} s.",
        "The same load ran once over each of these queues, on a real Linux kernel in virtual time.",
    ]
    return " ".join(part for part in parts if part)


def _notes(result: dict[str, Any]) -> str:
    codecs = sorted({v["codec"] for v in result["variants"] if v["codec"]})
    notes = []
    if len(codecs) > 1:
        pairs = "; ".join(f"{v['title']}: {v['codec']}" for v in result["variants"] if v["codec"])
        notes.append(
            "<b>The codecs differ</b> ("
            + text(pairs)
            + "). Picture scores therefore compare whole "
            "systems, not queues; delay, loss and shares do not depend on the codec in this way."
        )
    notes += [
        f"<b>One run, seed {result['seed']}.</b> Another seed gives other TCP start times "
        "and other "
        "places in the clip. One run is no statistics: repeat with other seeds.",
        "Virtual time: programs take no CPU time. Delays here come from the network and "
        "from timers, "
        "none from a slow machine.",
        "Bytes are counted as the queue counts them, with 14 bytes of Ethernet header. "
        "The fair share "
        "is per-flow max-min over all active flows, media and TCP alike, a stream never "
        "more than its "
        "maximum.",
        "A picture's score compares it with the very source frame it shows (its number "
        "is burnt in; "
        "that row is not scored). Frames that never were shown have no score: see frame rate and "
        "freezes.",
        f"A stream has settled when its sliding {metrics.WINDOW:g}-s rate stays within "
        f"±{100 * metrics.INNER:.0f} % of its share until the next change.",
    ]
    if any(v["sender"] == "libwebrtc" for v in result["variants"]):
        notes.append(
            "libwebrtc does not tell the RTP timestamps of captured pictures. Its frame "
            "delivery is "
            "taken from the router's log plus the constant propagation behind it; captures are "
            "aligned so that the fastest frame could just have arrived, and a frame repaired in a "
            "way the log does not show counts from when its picture was decoded."
        )
    return "<ul>" + "".join(f"<li>{note}</li>" for note in notes) + "</ul>"


def _versions(result: dict[str, Any]) -> str:
    rows = [f"<tr><td>{text(k)}</td><td>{text(v)}</td></tr>" for k, v in result["versions"].items()]
    for variant in result["variants"]:
        queue = variant["qdisc"] + (f" under {variant['shaper']}" if variant["shaper"] else "")
        rows.append(
            f"<tr><td>queue of {text(variant['name'])}</td><td><code>{text(queue)}</code></td></tr>"
        )
    for name, digest in result["packet_log_sha256"].items():
        rows.append(
            f"<tr><td>packet log of {text(name)}, SHA-256</td><td><code>{digest}</code></td></tr>"
        )
    return "<table>" + "".join(rows) + "</table>"


def _data(path: Path, kind: str) -> str:
    """A file as a reference that needs nothing else."""
    try:
        return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"
    except OSError as err:
        raise LabError(f"{path}: cannot read: {err.strerror}; run the scenario again") from err


def _seen(result: dict[str, Any], out_dir: Path) -> str:
    """Video and stills of what receivers saw, if the run left any."""
    if not (out_dir / sidebyside.FACTS).exists():
        return ""
    facts = rundata.load_json(out_dir / sidebyside.FACTS)
    titles = {variant["name"]: variant["title"] for variant in result["variants"]}
    out = [
        "<section><h2>What the receivers saw</h2>"
        f"<p>Stream {text(facts['stream'])} from {facts['start']:g} to {facts['stop']:g} s, the "
        "same moment in all panels: the newest picture that was there. Delay: the longest that a "
        "media packet waited in the router in the last second. Lost: packets of this stream since "
        "the video's begin. A coloured caption: no new picture for more than "
        f"{1000 * metrics.FREEZE:.0f} ms. Also as a file: "
        f'<a href="{sidebyside.VIDEO}">{sidebyside.VIDEO}</a>.</p>'
        f'<video controls muted src="{_data(out_dir / sidebyside.VIDEO, "video/mp4")}"></video>'
    ]
    heads = {
        "rivals": "The worst second of the rivals",
        "advised": "The worst second of the streams that are told their rate",
    }
    for worst in facts["worst"]:
        vmaf = "no new picture" if worst["vmaf"] is None else f"VMAF {worst['vmaf']:.1f}"
        out.append(
            f"<p><b>{heads[worst['kind']]}</b> is that of {text(titles[worst['of']])} from "
            f"{worst['second']:g} s on: {worst['frozen_s']:.2f} s of it frozen, {vmaf}. All at "
            f"{worst['moment']:.2f} s, when its picture was oldest.</p>"
            f'<img alt="{heads[worst["kind"]]}" src="'
            f'{_data(out_dir / worst["still"], "image/jpeg")}">'
        )
    out.append(
        '<p class="note">The worst second has most time frozen; of equal ones, the lowest mean '
        "VMAF of its new pictures; of equal ones, the earliest.</p></section>"
    )
    return "".join(out)


def render(result: dict[str, Any], out_dir: Path) -> str:
    """The page."""
    series = plots.Series(out_dir)
    sections: list[str] = []

    def section(title: str, words: str, figure: Figure | None) -> None:
        if figure is not None:
            drawing = plots.svg(figure, title)
            sections.append(
                f"<section><h2>{text(title)}</h2><p>{text(words)}</p>{drawing}</section>"
            )

    # docs/design-notes.md, section 2, "Announced transfer"
    transfer = (
        " P-AQM tells media senders first and takes capacity from them 150 ms later: TCP that "
        "joins waits that long."
        if any(variant["qdisc"].split()[0] == "paqm" for variant in result["variants"])
        else ""
    )
    with plots.style():
        section(
            "Who gets what",
            "Rate of every stream and of all TCP together where they leave the "
            "bottleneck. Dashed, in "
            "the same colour: the fair share.",
            plots.rates(result, series),
        )
        section(
            "Time in the router",
            "From a packet's arrival at the router until it leaves the bottleneck's "
            "queue; logarithmic "
            "scale. Values below 0.1 ms are drawn at 0.1 ms." + transfer,
            plots.sojourn(result, series),
        )
        section(
            "Distribution of the time in the router",
            "The same packets. Left and right: how many waited less. Middle: how many "
            "media packets "
            "waited longer, which shows the tail.",
            plots.sojourn_cdf(result, series),
        )
        section(
            "Link use and frame delivery",
            "Left: how full the link is. Right: when the last packet of a frame arrives; "
            "a curve that "
            "ends below 100 % lacks the frames that never were complete.",
            plots.link_and_frames(result, series),
        )
        section(
            "Picture quality",
            "VMAF of the pictures that were shown, against the source frame each of them shows.",
            plots.vmaf(result, series),
        )
        for variant in result["variants"]:
            section(
                f"Quantizer, {variant['title']}",
                "One base quantizer per group of pictures, and the quantizer that each "
                "picture used "
                "after its trim. A low value is a fine picture.",
                plots.quantizer(variant, result, series),
            )
    passed = sum(check["pass"] for check in result["checks"])
    verdict = (
        f"<section><h2>Checks: {passed} of {len(result['checks'])} pass</h2>"
        "<p>The targets for streams that are told their rate, each against raw logs.</p>"
        f"{checks_table(result)}</section>"
        if result["checks"]
        else ""
    )
    clip = result["clip"]
    licence = (
        f'<p class="note">Test clip: {text(clip["title"])}, {text(clip["author"])}, '
        f'<a href="{text(clip["licence_url"])}">{text(clip["licence"])}</a>; '
        f"{text(clip['source'])}; {text(clip['changes'])}.</p>"
        if clip
        else ""
    )
    repeat = (
        "<p>The same seed on the same kernel and programs gives the same packet log, bit for bit "
        "(compare the SHA-256).</p>"
        f"<pre>testbed/paqm-lab run {text(result['scenario'])} --seed {result['seed']}\n"
        f"testbed/paqm-lab checks out/{text(result['scenario'])}</pre>"
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{text(result['title'])}</title><style>{CSS}</style></head><body><main>"
        f"<h1>{text(result['title'])}</h1><p class='lead'>{_setup(result)}</p>"
        f"{_tiles(result)}{sections[0]}{sections[1]}{_seen(result, out_dir)}"
        "<section><h2>Figures</h2><p>The best value of each row is marked; rows where neither more "
        f"nor less is better have no mark.</p>{figures_table(result)}</section>"
        f"{verdict}{''.join(sections[2:])}"
        f"<section><h2>How to read this</h2>{_notes(result)}</section>"
        f"<section><h2>How to repeat it</h2>{repeat}{_versions(result)}{licence}</section>"
        "</main></body></html>\n"
    )


def write(out_dir: Path) -> Path:
    """Write report.html beside result.json."""
    result = rundata.load_json(out_dir / "result.json")
    try:
        page = render(result, out_dir)
    except KeyError as err:
        raise LabError(
            f"{out_dir / 'result.json'}: lacks {err}: written by another version; run the scenario "
            "again"
        ) from err
    path = out_dir / "report.html"
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as err:
        raise LabError(f"{path}: cannot write: {err.strerror}") from err
    return path
