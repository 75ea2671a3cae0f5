# SPDX-License-Identifier: GPL-2.0
"""`paqm-lab site DIR`: static pages of a sweep's runs, made from its store and series.

Index with filters, a figure against an axis, distributions, runs side by side with their CDFs and
rates. The pages need no server and no network: open index.html.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from paqm_lab import cache, report, rundata, store
from paqm_lab.errors import LabError

Json = dict[str, Any]

APP = cache.TESTBED / "site" / "app.js"
POINTS = 300  # of a series
MORE_CSS = """
label { display: inline-flex; flex-direction: column; font-size: 12.5px; color: #4a545c;
  margin: 0 14px 8px 0; }
select { font: inherit; color: #1d2328; max-width: 22em; }
.diagrams { display: grid; grid-template-columns: repeat(auto-fit, minmax(440px, 1fr)); gap: 18px; }
figure { margin: 0; }
figcaption { font-weight: 600; font-size: 14px; }
svg text { font-size: 12px; fill: #4a545c; }
svg .grid { stroke: #e4e4e4; }
.legend span { margin-right: 14px; font-size: 13px; }
.legend i { display: inline-block; width: 11px; height: 11px; border-radius: 2px;
  margin-right: 5px; }
.wide { overflow-x: auto; }
"""


def _short(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(f"{value:.6g}")


def _columns(path: Path, names: list[str] | None = None) -> Json | None:
    """A series, thinned out to POINTS."""
    table = rundata.load_csv(path)
    if table is None:
        return None
    chosen = np.linspace(0, table.rows - 1, min(POINTS, table.rows)).astype(int)
    return {name: [_short(value) for value in column[chosen].tolist()]
            for name, column in table.columns.items() if names is None or name in names}


def _run_data(out: Path, run: Json, flows: dict[str, float | None]) -> Json:
    """What is shown of a run by itself."""
    home = out / run["directory"] / run["variant"] / "series"
    rates = _columns(home / "rates.csv")
    if rates:
        rates = {name: column for name, column in rates.items() if not name.startswith("share_")}
    cdf = _columns(home / "sojourn_cdf.csv", ["quantile", "media_ms"])
    return {
        "flows": flows,
        "rates": rates,
        "cdf": cdf and {"ms": cdf["media_ms"],
                        "percent": [100 * value for value in cdf["quantile"]]},
    }


def write(out: Path, target: Path) -> int:
    """Writes the pages of a sweep; how many runs they show."""
    db = store.opened(out)
    runs = store.chosen(db, [])
    if not runs:
        raise LabError(f"{out}: the store has no run")
    own = store.own_columns(db)
    axes = [name for name in store.columns(db) if name not in own]
    place = {run["key"]: index for index, run in enumerate(runs)}
    values: dict[str, list[float | None]] = {}
    flows: dict[str, dict[str, float | None]] = {key: {} for key in place}
    for key, flow, figure, value in db.execute("SELECT run, flow, figure, value FROM figure"):
        if flow:
            flows[key][f"{flow}: {figure}"] = _short(value)
        else:
            values.setdefault(figure, [None] * len(runs))[place[key]] = _short(value)
    names = ["scenario", "variant", "seed", *axes]
    data = {
        "axes": ["variant", *axes, "seed", "scenario"],
        "variants": list(dict.fromkeys(run["variant"] for run in runs)),
        "figures": sorted(values),
        "runs": [{"key": run["key"], "index": place[run["key"]]}
                 | {name: run.get(name) for name in names} for run in runs],
        "values": values,
    }
    try:
        (target / "runs").mkdir(parents=True, exist_ok=True)
        for old in (target / "runs").glob("*.js"):  # a sweep has a runs/ of its own
            old.unlink()
        for run in runs:
            text = json.dumps(_run_data(out, run, flows[run["key"]]), separators=(",", ":"))
            script = f"PAQM_RUN({json.dumps(run['key'])},{text});\n"
            (target / "runs" / f"{run['key']}.js").write_text(script)
        (target / "data.js").write_text(f"window.PAQM = {json.dumps(data)};\n")
        shutil.copyfile(APP, target / "app.js")
        (target / "index.html").write_text(_page(runs))
    except OSError as err:
        raise LabError(f"{target}: cannot write: {err}") from err
    return len(runs)


def _page(runs: list[Json]) -> str:
    sweeps = ", ".join(dict.fromkeys(run["sweep"] for run in runs))
    made = ", ".join(dict.fromkeys(f"{run['paqm']} on Linux {run['kernel']}" for run in runs))
    title = f"Sweep {report.text(sweeps)}"
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>{report.CSS}{MORE_CSS}</style></head><body><main>
<h1>{title}</h1>
<p class="lead">{len(runs)} runs of real kernels in virtual time, made by {report.text(made)}.</p>
<section><div id="filters"></div><div id="choices"></div>
<div id="diagrams" class="diagrams"></div></section>
<section id="side" hidden><h2>Side by side</h2>
<div id="sidediagrams" class="diagrams"></div>
<div class="wide"><table id="sidetable"></table></div></section>
<section><h2>Runs</h2><p id="count"></p>
<div class="wide"><table id="runs"></table></div></section>
</main><script src="data.js"></script><script src="app.js"></script></body></html>
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path, metavar="DIR", help="of a sweep")
    parser.add_argument("--out", type=Path, metavar="DIR", help="(default DIR/site)")
    args = parser.parse_args()
    target = args.out or args.directory / "site"
    print(f"{write(args.directory, target)} runs: {target / 'index.html'}")
    return 0
