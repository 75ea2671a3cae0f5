# SPDX-License-Identifier: GPL-2.0
"""docs/rmcat.md from docs/results/rmcat.json, and that from result.json of paqm_lab.rmcat."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from paqm_lab import cache
from paqm_lab.rmcat_cases import DEEP_MS, FILES, IDLE_S, ONE_WAY_MS, RATE_MAX, RATE_MIN, SYSTEMS
from paqm_lab.rmcat_judge import HIGH_MS, REACHED, SETTLE

Json = dict[str, Any]

DATA = cache.REPO / "docs" / "results" / "rmcat.json"
PAGE = cache.REPO / "docs" / "rmcat.md"

HEAD = f"""# The test cases of RFC 8867 and RFC 8869

Real kernel, real encoders and senders, virtual time; one seed.

```
make rmcat                                           # out/rmcat/result.json, hours
testbed/paqm-lab rmcat --cases 5.1 --systems paqm,nada
testbed/paqm-lab rmcat --list                        # the cases
```

A run is not repeated while programs and case are the same. This page is made from
`docs/results/rmcat.json` by `paqm-lab rmcat --docs`; do not edit it.

The RFCs say in words what a controller should do; here each of their sentences is a figure with a
bound, the same for every system. `paqm` must hold all of them, the others are shown. What does not
hold is in bold.

* **Systems.** {"; ".join(f"`{name}`: {one.title}" for name, one in SYSTEMS.items())}. *Tail drop* is
  the RFC's own queue: {DEEP_MS} ms at the link's rate, by bytes. P-AQM has its default preset and is
  told the link's rate.
* **Streams** may send from {RATE_MIN / 1e3:g} kbit/s to {RATE_MAX / 1e6:g} Mbit/s, the limits of the
  authors' own suite for ns-3. Encoders are real, so a stream may need less than it may send:
  libwebrtc at 640x360, the others at 480x272. TCP is cubic. Propagation is {ONE_WAY_MS} ms each way
  unless a case says otherwise, half of it on the access link of the sender.
* **Short TCP** flows fetch one file after the other, of {FILES[0] // 1000} to {FILES[1] // 1000} kB, with
  pauses of {IDLE_S} s on average (RFC 8868).
* **Numbers** are those of that suite for ns-3 by authors of both RFCs (`cisco/ns3-rmcat`), which
  follows their drafts; the RFCs' own may differ: compare before you quote.

| figure | what |
|---|---|
| `share_least_percent` | a stream's rate of its max-min share, from {SETTLE:g} s after a change to the next: the worst stream and interval |
| `tcp_share_percent` | the same of a long TCP flow |
| `jain` | Jain's index of the streams' rates in parts of their shares, the worst interval |
| `delay_p95_ms` | of all packets that came: time from host to host beyond that of the fastest |
| `loss_percent` | of all packets sent |
| `fall_s` | from a fall of capacity to the last packet that waits beyond {HIGH_MS:g} ms |
| `rise_s` | from a rise of capacity until a stream has {100 * REACHED:g} % of its new share, in the mean of a second |
| `resume_s` | the same from the end of a pause |
| `file_p95_s` | time of a short TCP flow's file |
"""  # noqa: E501


def cell(row: Json | None, plain: bool = False) -> str:
    """A value; in bold if it does not hold its bound."""
    if row is None:
        return "" if plain else "not run"
    value = row["value"]
    text = "none" if value is None else f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"
    if row["pass"]:
        return text
    return f"{text} !" if plain else f"**{text}**"


def section(data: Json, case: str) -> list[str]:
    """A case: what is expected, and every figure of every system."""
    rows = [row for row in data["rows"] if row["case"] == case]
    first = rows[0]
    systems = [name for name in SYSTEMS if any(row["variant"] == name for row in rows)]
    lines = [f"## {case}: {first['title']}", "",
             f"RFC {first['rfc']}, section {first['section']}. {first['expects']}"]
    if first["notes"]:
        lines += ["", first["notes"]]
    lines += ["", "| figure | bound | " + " | ".join(f"`{name}`" for name in systems) + " |",
              "|---|---|" + "--:|" * len(systems)]
    for figure in dict.fromkeys(row["figure"] for row in rows):
        mine = {row["variant"]: row for row in rows if row["figure"] == figure}
        one = next(iter(mine.values()))
        sign = {"<=": "at most", ">=": "at least"}[one["relation"]]
        bound = f"{sign} {one['limit']:g} {one['unit']}".strip()
        cells = " | ".join(cell(mine.get(name)) for name in systems)
        lines.append(f"| `{figure}` | {bound}: {one['why']} | {cells} |")
    return [*lines, ""]


def page(data: Json) -> str:
    """The whole page."""
    lines = [HEAD]
    good = sum(check["pass"] for check in data["checks"])
    lines += [f"{good} of {len(data['checks'])} figures of `paqm` hold their bound."]
    if data["missing"]:
        lines += ["Not run: " + ", ".join(data["missing"]) + "."]
    lines += [""]
    for case in dict.fromkeys(row["case"] for row in data["rows"]):
        lines += section(data, case)
    return "\n".join(lines).rstrip() + "\n"


def write(text: str) -> list[Path]:
    """Data and page."""
    DATA.write_text(text)
    PAGE.write_text(page(json.loads(text)))
    return [DATA, PAGE]
