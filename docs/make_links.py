#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Results of links whose rate varies (`make bench-auto`), put together.

make_links.py merge DIR     DIR/KIND/result.json into DIR/result.json, with all checks
make_links.py page DIR      the table in docs/variable-links.md, between its two marks
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

Json = dict[str, Any]

PAGE = Path(__file__).resolve().parent / "variable-links.md"
MARKS = ("<!-- figures: docs/make_links.py -->", "<!-- end of figures -->")
TITLES = {"lte": "LTE", "wifi": "Wi-Fi", "leo": "Satellite"}
ORDER = ["steady", "auto", "perfect", "cake-mean", "cake-low", "cake-perfect"]

# Head, path in `figures`, decimals.
COLUMNS: list[tuple[str, str, int]] = [
    ("sojourn p50", "media_sojourn_ms.p50", 1),
    ("p95", "media_sojourn_ms.p95", 1),
    ("p99", "media_sojourn_ms.p99", 1),
    ("frame p95", "frame_delivery_ms.p95", 0),
    ("never", "frame_delivery_ms.never", 0),
    ("picture p95", "picture.capture_to_picture_ms.p95", 0),
    ("lost %", "media_loss.percent", 2),
    ("use %, media only", "link.use_without_elastic_percent", 0),
    ("use %, with TCP", "link.use_with_elastic_percent", 0),
    ("media part %", "link.media_part_percent", 0),
    ("c known, p50 of error %", "link.capacity_error.p50_abs_percent", 0),
    ("VMAF", "picture.vmaf", 1),
]


def fail(text: str) -> None:
    print(f"make_links.py: {text}", file=sys.stderr)
    sys.exit(2)


def load(directory: Path) -> dict[str, Json]:
    """Result of each kind of link that has run."""
    found = {}
    for kind in TITLES:
        path = directory / kind / "result.json"
        if path.exists():
            found[kind] = json.loads(path.read_text())
    if not found:
        fail(f"{directory}: no KIND/result.json here; run `make bench-auto` first")
    return found


def merge(directory: Path) -> None:
    """One result.json with the figures that the table shows, and all checks."""
    results = load(directory)
    checks = []
    for kind, result in results.items():
        checks += [{**check, "variant": f"{kind}/{check['variant']}"} for check in result["checks"]]
    first = next(iter(results.values()))
    merged = {
        "format": first["format"],
        "scenario": "variable links",
        "seed": first["seed"],
        "versions": first["versions"],
        "links": {
            kind: {
                "mean_bps": result["bottleneck_bps"],
                "variants": {
                    v["name"]: {"title": v["title"], "qdisc": v["qdisc"], "figures": v["figures"]}
                    for v in result["variants"]
                },
            }
            for kind, result in results.items()
        },
        "checks": checks,
    }
    (directory / "result.json").write_text(json.dumps(merged, indent=1, allow_nan=False) + "\n")


def value(figures: Json, path: str, digits: int) -> str:
    found: Any = figures
    for key in path.split("."):
        found = found.get(key) if found else None
    return "–" if found is None else f"{found:.{digits}f}"


def table(kind: str, result: Json) -> list[str]:
    """One link: a row per variant."""
    mean = result["bottleneck_bps"] / 1e6
    lines = [f"### {TITLES[kind]}, mean {mean:.2f} Mbit/s", ""]
    lines.append("| |" + "|".join(head for head, _, _ in COLUMNS) + "|")
    lines.append("|---|" + "--:|" * len(COLUMNS))
    variants = {variant["name"]: variant for variant in result["variants"]}
    for name in ORDER:
        if name in variants:
            cells = [value(variants[name]["figures"], path, d) for _, path, d in COLUMNS]
            lines.append(f"| {variants[name]['title']} |" + "|".join(cells) + "|")
    lines.append("")
    varying = [v for v in result["variants"] if v["name"] != "steady"]
    if varying:
        wait = varying[0]["figures"]["link"]["access_ms"]
        lines += [
            f"Before this link takes a packet even an empty queue waits {wait['p50']:.0f} ms "
            f"(median; 95th percentile {wait['p95']:.0f} ms).",
            "",
        ]
    for check in result["checks"]:
        verdict = "reached" if check["pass"] else "**not reached**"
        ratio = "none" if check["value"] is None else f"{check['value']:.2f}"
        lines.append(
            f"* {check['name'].replace('_', ' ')}: {ratio}, wanted {check['relation']} "
            f"{check['limit']:g}: {verdict}"
        )
    return [*lines, ""]


def page(directory: Path) -> None:
    """Puts the tables into the page."""
    results = load(directory)
    body = [MARKS[0], ""]
    for kind, result in results.items():
        body += table(kind, result)
    before, _, rest = PAGE.read_text().partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    if not after:
        fail(f"{PAGE}: the marks {MARKS[0]} and {MARKS[1]} are missing")
    PAGE.write_text(before + "\n".join(body) + MARKS[1] + after)


def main() -> int:
    commands = {"merge": merge, "page": page}
    if len(sys.argv) != 3 or sys.argv[1] not in commands:
        print(__doc__, file=sys.stderr)
        return 2
    commands[sys.argv[1]](Path(sys.argv[2]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
