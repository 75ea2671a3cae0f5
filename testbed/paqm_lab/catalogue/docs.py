# SPDX-License-Identifier: GPL-2.0
"""docs/catalogue.md from docs/results/catalogue.json, and rows as text for the terminal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from paqm_lab import cache
from paqm_lab.catalogue.row import TOLERANCE
from paqm_lab.catalogue.verdict import UNDECIDED

Json = dict[str, Any]

DATA = cache.REPO / "docs" / "results" / "catalogue.json"
PAGE = cache.REPO / "docs" / "catalogue.md"

HEAD = f"""# Catalogue of published results

Every result that the documents of P-AQM print, run again on a real kernel in virtual time.

```
make catalogue                              # all rows, out/catalogue/result.json
make catalogue FULL=1                       # at the published scale (hours)
testbed/paqm-lab catalogue --rows X1,C*     # some rows
```

This file is made from `docs/results/catalogue.json` by `paqm-lab catalogue --docs`; do not edit
it.

*Ours* is the mean over replications with its 95 % interval (Student's t). The *verdict* is
computed: *reproduced* where our mean lies in the band of the published figure, or our interval
reaches into it and is no wider than the band; *undecided*, with the number of runs, where a wider
one does; *better* or *worse* where it lies beside it, *worse* too where no way is better. The band
is the tolerance that the specification gives, else {100 * TOLERANCE:.0f} % of a printed number. A
row is as its worst figure. Rows X have to pass: our mean within the band.
"""


def number(value: float | None) -> str:
    if value is None:
        return "none"
    return f"{value:.4g}" if abs(value) < 10000 else f"{value:.0f}"


def ours(figure: Json) -> str:
    """Value and interval."""
    if figure["count"] == 0:
        return "not run"
    text = number(figure["value"])
    if figure["interval"]:
        text += f" ± {(figure['interval'][1] - figure['interval'][0]) / 2:.2g}"
    return f"{text} {figure['unit']}".strip()


def printed(figure: Json) -> str:
    """What was published."""
    if figure["published"] is not None:
        shown = figure["published"]
        return shown if isinstance(shown, str) else f"{number(shown)} {figure['unit']}".strip()
    if not figure["band"]:
        return ""
    low, high = figure["band"]
    if low is None:
        return f"at most {number(high)}"
    return f"at least {number(low)}" if high is None else f"{number(low)} to {number(high)}"


def _verdict(figure: Json) -> str:
    """Of how many runs where they do not tell."""
    few = figure["verdict"] == UNDECIDED
    return f"{figure['verdict']}, {figure['count']} runs" if few else str(figure["verdict"])


def _passed(row: Json, good: str, bad: str) -> str:
    """Said of rows that have to pass."""
    return "" if "pass" not in row else good if row["pass"] else bad


def as_text(row: Json) -> str:
    """A row for the terminal."""
    passed = _passed(row, " (passes)", " (DOES NOT PASS)")
    lines = [f"{row['id']}: {row['verdict']}{passed}: {row['title']}"
             + (f" [{row['reason']}]" if row["reason"] else "")]  # fmt: skip
    for figure in row["figures"]:
        lines.append(
            f"    {_verdict(figure) or '-':<12} {figure['title']}: {ours(figure)}"
            + (f" (published {printed(figure)})" if printed(figure) else "")
        )
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def page(data: Json, head: str = HEAD) -> str:
    """docs/catalogue.md, or with another head the page of another table."""
    lines = [head, "## Verdicts", "", "| row | what | verdict | runs, scale |", "|---|---|---|---|"]
    for row in data["rows"]:
        verdict = row["verdict"] + _passed(row, ", passes", ", **does not pass**")
        reason = f": {row['reason']}" if row["reason"] else ""
        lines.append(
            f"| {row['id']} | {_cell(row['title'])} | {verdict}{_cell(reason)} | "
            f"{row['counted']}, {row['scale']} |"
        )
    lines += ["", ", ".join(f"{count} {name}" for name, count in data["counts"].items()) + "."]
    for row in data["rows"]:
        lines += ["", f"## {row['id']}: {row['title']}", "", f"Published: {row['published']}."]
        if row["scenario"]:
            lines.append(f"Scenario: `{row['scenario']}`.")
        if row["substitutes"]:
            lines.append(f"{row['substitutes']}.")
        if row["figures"] and row["runs"]:
            lines += ["", "| figure | published | ours | verdict |", "|---|---|---|---|"]
            lines += [
                f"| {_cell(f['title'])} | {printed(f)} | {ours(f)} | {_verdict(f)} |"
                for f in row["figures"]
            ]
            lines += ["", *(f"* {f['title']}: {f['why']}." for f in row["figures"] if f["why"])]
    text = "\n".join(lines).rstrip() + "\n"
    while "\n\n\n" in text:
        text = text.replace("\n\n\n", "\n\n")
    return text


def only_run(data: Json) -> Json:
    """Rows that have been run, with their checks."""
    rows = [row for row in data["rows"] if row["runs"]]
    there = {row["id"] for row in rows}
    checks = [check for check in data["checks"] if check["variant"] in there]
    return data | {"rows": rows, "checks": checks}


def write(text: str) -> list[Path]:
    """Data and page from the text of a result.json."""
    for path, content in ((DATA, text), (PAGE, page(json.loads(text)))):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return [DATA, PAGE]
