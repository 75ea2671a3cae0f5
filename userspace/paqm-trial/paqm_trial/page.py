# SPDX-License-Identifier: GPL-2.0
"""The report as one HTML page: no script, nothing from elsewhere, all words of data escaped."""

from __future__ import annotations

import html
from typing import Any

STYLE = """body{font:16px/1.5 system-ui,sans-serif;color:#222;background:#fff;max-width:64rem;
margin:2rem auto;padding:0 1rem}h1,h2{line-height:1.2}
table{border-collapse:collapse;margin:1rem 0;font-size:.9rem;display:block;overflow-x:auto}
th,td{text-align:left;padding:.25rem .7rem;border-bottom:1px solid #ddd;vertical-align:top}
td.n{text-align:right;font-variant-numeric:tabular-nums}
.note{color:#555;font-size:.9rem}.lower{color:#0a6b2d}.higher{color:#a33000}
svg text{font:12px system-ui,sans-serif}"""
COLOUR = {"paqm": "#0072b2"}
OTHER_COLOUR = "#d55e00"
WAY = {"to_callee": "to the callee", "to_caller": "to the caller"}
WIDE, HIGH, LEFT = 560, 60, 110


def esc(value: Any) -> str:
    return html.escape(str(value))


def cell(value: Any, digits: int = 1) -> str:
    if value is None:
        return '<td class="n">&ndash;</td>'
    if isinstance(value, float):
        return f'<td class="n">{value:.{digits}f}</td>'
    return f'<td class="n">{esc(value)}</td>'


def table(head: list[str], rows: list[str]) -> str:
    heads = "".join(f"<th>{esc(one)}</th>" for one in head)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def of(found: Any, *path: str) -> Any:
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return found


def dots(row: dict[str, Any]) -> str:
    """Every call a dot, a line of them for each queue; the stroke is the median."""
    every = [value for values in row["values"].values() for value in values]
    low: float = min([0.0, *every])
    high: float = max([1e-9, *every])

    def x(value: float) -> float:
        return LEFT + (value - low) / (high - low) * (WIDE - LEFT - 20)

    parts = [
        f'<svg viewBox="0 0 {WIDE} {HIGH + 18}" width="{WIDE}" role="img" '
        f'aria-label="{esc(row["label"])}, each call">'
    ]
    for line, (arm, values) in enumerate(row["values"].items()):
        y, colour = 15 + 28 * line, COLOUR.get(arm, OTHER_COLOUR)
        parts.append(f'<text x="0" y="{y + 4}">{esc(arm)}</text>')
        parts += [
            f'<circle cx="{x(one):.1f}" cy="{y}" r="4" fill="{colour}" fill-opacity=".55"/>'
            for one in values
        ]
        middle = of(row, "paqm" if arm == "paqm" else "baseline", "median")
        if middle is not None:
            parts.append(
                f'<path d="M{x(middle):.1f} {y - 10}v20" stroke="{colour}" stroke-width="2.5"/>'
            )
    parts.append(
        f'<text x="{LEFT}" y="{HIGH + 12}">{low:g}</text><text x="{WIDE - 20}" '
        f'y="{HIGH + 12}" text-anchor="end">{high:.4g} {esc(row["unit"])}</text></svg>'
    )
    return "".join(parts)


def sentence(row: dict[str, Any]) -> str:
    """What a comparison says, in words."""
    ours, theirs = row["paqm"], row["baseline"]
    calls = f"{ours['calls']} calls with P-AQM, {theirs['calls']} with {row['baseline_arm']}"
    if row["interval"] is None:
        return f"Too few calls to tell ({calls}; at least four of each are needed)."
    low, high = row["interval"]
    words = {"lower": "Lower with P-AQM", "higher": "Higher with P-AQM"}.get(
        row["verdict"], "No difference shown"
    )
    days = row["by_day"]
    by_days = f"by days ({days['paqm_days']} and {days['baseline_days']}): {days['verdict']}"
    unit = "points" if row["unit"] == "%" else row["unit"]
    return (
        f"{words}: {row['difference']:+.3g} {unit}, 95 % interval {low:+.3g} to {high:+.3g} "
        f"({calls}; {by_days})."
    )


def compared(result: dict[str, Any]) -> str:
    rows = result["comparison"]
    if not rows:
        return (
            "<p>No call can be compared: that takes calls during turns of P-AQM and of the "
            "baseline, and the router's folder.</p>"
        )
    parts = [
        "<p>Each dot is a call, the stroke the median. The interval holds the true difference "
        "with 95 %; when it holds 0, chance alone can explain what was seen. Calls of one day "
        "resemble each other: where queues alternated by days, what is said by days counts. Of "
        f"{len(rows)} comparisons one in twenty differs by chance alone.</p>"
    ]
    for way, words in WAY.items():
        here = [row for row in rows if row["direction"] == way]
        if not here:
            continue
        parts.append(f"<h3>Pictures {words}</h3>")
        parts += [
            f'<h4>{esc(row["label"])}</h4>{dots(row)}<p class="{esc(row["verdict"])}">'
            f"{esc(sentence(row))}</p>"
            for row in here
        ]
    return "".join(parts)


def calls(result: dict[str, Any]) -> str:
    rows = []
    for call in result["calls"]:
        for way, words in WAY.items():
            found = call[way]
            if found is None:
                continue
            router: dict[str, Any] = next(iter(call["router"].values()), {})
            rows.append(
                f"<tr><td>{esc(call['day'])}</td><td>{esc(call['arm'] or 'not known')}</td>"
                f"<td>{words}</td>"
                + cell(call["duration_s"])
                + cell(of(found, "frame_delivery_ms", "p50"))
                + cell(of(found, "frame_delivery_ms", "p95"))
                + cell(found["loss_percent"], 2)
                + cell(found["freezes"])
                + cell(found["frozen_percent"], 2)
                + cell(found["rate_kbps"], 0)
                + cell(of(found, "round_trip_ms", "p95"))
                + cell(of(router, "media_delay_ms", "p95"))
                + cell(of(router, "backlog_ms", "p95"))
                + f"<td>{esc('; '.join(call['problems']))}</td></tr>"
            )
    if not rows:
        return "<p>No calls in these folders.</p>"
    return table(
        [
            "day",
            "queue",
            "pictures",
            "s",
            "delivery p50, ms",
            "p95",
            "lost, %",
            "freezes",
            "frozen, %",
            "kbit/s",
            "round trip p95, ms",
            "media in the router p95, ms",
            "backlog p95, ms",
            "notes",
        ],
        rows,
    )


def days(result: dict[str, Any]) -> str:
    rows = [
        f"<tr><td>{esc(day['day'])}</td><td>{esc(day['device'])}</td><td>{esc(day['arm'])}</td>"
        + cell(day["seconds"] / 3600)
        + cell(of(day, "media_delay_ms", "p50"))
        + cell(of(day, "media_delay_ms", "p95"))
        + cell(of(day, "media_delay_ms", "p99"))
        + cell(of(day, "elastic_delay_ms", "p95"))
        + cell(of(day, "backlog_ms", "p95"))
        + cell(day["media_loss_percent"], 3)
        + cell(day["loss_percent"], 3)
        + cell(day["rate_kbps"], 0)
        + cell(day["utilisation_percent"])
        + "</tr>"
        for day in result["router_days"]
    ]
    if not rows:
        return "<p>No router's data in these folders.</p>"
    return table(
        [
            "day",
            "device",
            "queue",
            "h",
            "media delay p50, ms",
            "p95",
            "p99",
            "elastic delay p95, ms",
            "backlog p95, ms",
            "media lost, %",
            "all lost, %",
            "kbit/s",
            "of the bandwidth, %",
        ],
        rows,
    )


def render(result: dict[str, Any]) -> str:
    plans = "".join(
        f"<li>{esc(plan['device'])}: P-AQM and {esc(plan['baseline'])} at "
        f"{esc(plan['bandwidth'])}, "
        f"alternating: {esc(plan['alternate'])}, seed {esc(plan['seed'])}</li>"
        for plan in result["plans"]
    )
    read = "".join(
        f"<tr><td>{esc(one['folder'])}</td><td>{esc(one['role'])}</td>"
        f"<td>{esc('; '.join(one['problems']) or 'whole')}</td></tr>"
        for one in result["folders"]
    )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" '
        f'content="width=device-width"><title>A trial of P-AQM</title><style>{STYLE}</style>'
        f"<h1>A trial of P-AQM</h1><ul>{plans}</ul><h2>With P-AQM and without</h2>"
        f"{compared(result)}<h2>Calls</h2>{calls(result)}<h2>The router's days</h2>"
        '<p class="note">All traffic of the device, whoever sent it. P-AQM measures how long each '
        "packet waited. Other queues do not tell that: backlog is what waited in all, once a "
        f"second, at the rate of the link.</p>{days(result)}<h2>What was read</h2>"
        f"<table><thead><tr><th>folder</th><th>of</th><th>state</th></tr></thead>{read}</table>"
        '<p class="note">Frame delivery: from the moment a picture is taken until its last packet '
        "has come. Clocks are aligned so that both directions are equally long when nothing waits: "
        "if one end is slower, half of that goes from one direction to the other; the queues are "
        "compared all the same. Freezes as W3C counts them: an interval of max(3 m, m + 150 ms) or "
        "more between pictures shown, m being the mean of the 30 before. result.json has all of it."
        "</p></html>\n"
    )
