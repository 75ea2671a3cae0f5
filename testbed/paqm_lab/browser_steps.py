# SPDX-License-Identifier: GPL-2.0
"""How soon browsers follow what a page allows them itself, by maxBitrate, when no router advises.

`paqm-lab browser-steps` runs scenarios/browser-steps.toml; result.json gets `rows`, a row for each
browser with a part for each step of senders.STEPS. Nothing is judged.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from paqm_lab import analysis, browser, cache, markdown, metrics, run, scenario, senders
from paqm_lab.rundata import Run
from paqm_lab.traffic import read_traffic

Json = dict[str, Any]

SCENARIO = "browser-steps"
DATA = browser.RESULTS / "browser-steps.json"


def steps() -> list[tuple[float, int]]:
    """When the page allows how many bit/s."""
    pairs = (step.split(":") for step in senders.STEPS.split(","))
    return [(float(at), scenario.rate(rate)) for at, rate in pairs]


def row(one: Run, told: Json) -> Json:
    """The row of a browser."""
    traffic = read_traffic(one)
    seen = traffic.seen
    mine = traffic.media[browser.STREAM] & ~np.isnan(seen.t_out)
    t, size = seen.t_out[mine], seen.size[mine]
    parts: list[Json] = []
    changes = steps()
    before = scenario.rate(scenario.load(SCENARIO).data["media"][0]["rate_max"])
    for (at, rate), (until, _) in zip(changes, [*changes[1:], (one.duration, 0)], strict=True):
        mean = metrics.mean_rate(t, size, (at + until) / 2, until)
        parts.append({
            "at_s": at, "from_mbit": before / 1e6, "to_mbit": rate / 1e6,
            "followed_s": browser.followed(t, size, rate, at, until, rate < before),
            "then_percent": round(100 * mean / rate, 1),
        })  # fmt: skip
        before = rate
    return {key: told[key] for key in browser.SHOWN} | {"steps": parts}


def table(rows: list[Json]) -> list[str]:
    """The table of docs/browser.md."""
    lines = ["| `maxBitrate`, Mbit/s | " + " | ".join(one["title"] for one in rows) + " |"]
    lines.append("|---" * (len(rows) + 1) + "|")
    for number, part in enumerate(rows[0]["steps"]):
        parts = [one["steps"][number] for one in rows]
        took = [markdown.cell(part["followed_s"], 2) for part in parts]
        then = [markdown.cell(part["then_percent"], 0) for part in parts]
        cells = [f"{one} s, then {two} % of it" for one, two in zip(took, then, strict=True)]
        title = f"{part['from_mbit']:g} to {part['to_mbit']:g}"
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description="How soon browsers follow maxBitrate.")
    parser.add_argument("--out", default=str(cache.REPO / "out" / SCENARIO), metavar="DIR",
                        help="for the results (%(default)s)")
    parser.add_argument("--docs", action="store_true", help="run nothing, write docs/results")
    args = parser.parse_args()
    out = Path(args.out).resolve()
    if not args.docs:
        chosen = scenario.load(SCENARIO)
        options = run.Options(out, chosen.data["seed"], [], True, False, score=False)
        run.run_scenario(chosen, options, lambda text: print(text, file=sys.stderr, flush=True))
    told = json.loads((out / "result.json").read_text())
    by_name = {variant["name"]: variant for variant in told["variants"]}
    told["rows"] = [row(one, by_name[one.variant]) for one in analysis.load_runs(out)]
    (out / "result.json").write_text(json.dumps(told, indent=1) + "\n")
    if args.docs:
        kept = {key: told[key] for key in browser.KEPT if key in told}
        text = json.dumps({"format": browser.FORMAT} | kept | {"rows": told["rows"]}, indent=1)
        DATA.write_text(text + "\n")
    print("\n".join(table(told["rows"])))
    return 0
