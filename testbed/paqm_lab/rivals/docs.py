# SPDX-License-Identifier: GPL-2.0
"""docs/rivals.md from docs/results/rivals.json; rows as text are the catalogue's."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

from paqm_lab import cache, markdown, suite
from paqm_lab.catalogue.docs import as_text, only_run
from paqm_lab.laws.docs import values_of
from paqm_lab.rivals import cases
from paqm_lab.rivals.findings import FINDINGS

__all__ = ["as_text"]

Json = dict[str, Any]

DOCS = cache.REPO / "docs"
DATA, PAGE = DOCS / "results" / "rivals.json", DOCS / "rivals.md"

HEAD = f"""# P-AQM beside its rivals

What was published elsewhere for the same problem, in the same router or in the same place, on the
same loads. Real kernel, real messages, real senders, virtual time, one seed.

```
make rivals                                   # out/rivals/result.json, half an hour
testbed/paqm-lab rivals --rows 'mass.*,tcp.acp'
```

This file is made from `docs/results/rivals.json` by `paqm-lab rivals --docs`; do not edit it. Rows
are run and judged as those of the [catalogue](catalogue.md) are.

| rival | what it is | source |
|---|---|---|
| P-AQM | `paqm`, default law `maxmin`, and as published with `ecf` and `erf` ([laws](laws.md)) | A. Lie, NTNU 2008:74 |
| ACP | `law acp`: one rate, integral of what 99 % of the link leaves, by estimated users | Lestas, Pitsillides et al., Computer Networks 2007 |
| QLBIC | `law qlbic`: one rate that holds the queue at 20 ms | Pitsillides, Lestas et al., ICNSC 2007; reconstructed |
| RCP | `law rcp`: one rate, changed by a factor | Dukkipati et al., IWQoS 2005 |
| XCP | `law xcp`: each flow gains the same and loses in proportion | Katabi et al., SIGCOMM 2002 |
| VCP | `law vcp`: three grades of load | Xia et al., SIGCOMM 2005 |
| D-CBT, ChIPS | `dcbt mode dcbt`, `chips`: RED with a share for tagged UDP ([dcbt](dcbt.md)) | Chung and Claypool, WPI 2000 |
| RL-QoS | `rlqos limit 20`: thins what enters, by its own queue; wires of these networks are hosts that no message of a neighbour crosses ([rlqos](rlqos.md)) | Paper A of the same thesis |
| fq_codel, CAKE, dualpi2 | the kernel's own | RFC 8290, 9332 |

* **Laws** all tell senders by the same messages, `feedback icmp`. `acp` to `vcp` have one queue for
  all (`{cases.PLAIN}`) and a period of about a round trip, as published; with video every router is
  told how long senders take to follow (`{cases.GROUPS}`). Messages carry no round trip, demand or
  grade of load, so `xcp` and `vcp` go by what the router measures of each flow, and `acp` has no
  bound by demands; carrier `in-band` brings all of these ([protocol](protocol.md), 4a.1a).
* **Video** has the same sender everywhere: pre-encoded, a new rate each 0.4 s, 60 kbit/s to 1.2 Mbit/s,
  controller `auto`: advice where there is any, NADA where there is none. It is not ECN-capable.
* **Constant sources** do only what they are told; queues that tell nothing have none.
* **Settled, delay, Jain, share, use** are those of [laws.md](laws.md). Shares are max-min in what is
  handed out: 96 % of the link, ACP 99 %, of the others all of it. **TCP** is what all its flows get.

Jain {cases.JAIN:g} is asked of constant sources under laws that were published to give equal rates.
"""  # noqa: E501


_cell = partial(markdown.cell, none="")


def _jain(row: Json, value: float | None) -> str:
    """In bold, where it is asked for and missed."""
    missed = any(figure["id"] == "jain" and figure["pass"] is False for figure in row["figures"])
    return f"**{_cell(value, 3)}**" if missed else _cell(value, 3)


def table(scenario: cases.Scenario, rows: list[Json]) -> list[str]:
    """A scenario: its rivals, one each line."""
    names = ["rival", "settled, s", "p95, ms", "p99, ms", "max, ms", "lost, %", "Jain", "share, %",
             "use, %"]
    tcp = any(values_of(row)["tcp"] is not None for row in rows)
    names += ["TCP, Mbit/s"] if tcp else []
    lines = ["", f"### `{scenario.id}`: {scenario.title}", "", markdown.row(*names),
             "|---|" + "--:|" * (len(names) - 1)]
    for row in rows:
        of = values_of(row)
        settled = _cell(of["settled"], 2)
        if of["unsettled"]:
            settled = f"never, {of['unsettled']:.0f} of {of['changes']:.0f}"
        cells = [
            cases.RIVALS[row["id"].split(".")[1]], settled, _cell(of["p95"], 1),
            _cell(of["p99"], 1), _cell(of["max"], 1), _cell(of["lost"], 2), _jain(row, of["jain"]),
            f"{100 * (of['least'] or 0):.0f} to {100 * (of['most'] or 0):.0f}", _cell(of["use"], 1),
        ]  # fmt: skip
        cells += [_cell(of["tcp"], 2)] if tcp else []
        lines.append(markdown.row(*cells))
    return lines + (["", FINDINGS[scenario.id]] if scenario.id in FINDINGS else [])


def page(data: Json) -> str:
    """docs/rivals.md."""
    rows = {row["id"]: row for row in data["rows"] if row["runs"]}
    held = [row for row in rows.values() if "pass" in row]
    lines = [HEAD, f"{len(rows)} of {len(cases.rows())} rows have been run. Of the {len(held)} of "
             f"which equal rates are asked, {sum(row['pass'] for row in held)} have them.", "",
             "## What it says", "", FINDINGS["all"], "", "## Scenarios"]
    for scenario in cases.SCENARIOS:
        ids = [f"{scenario.id}.{rival}" for rival in scenario.rivals]
        found = [rows[id_] for id_ in ids if id_ in rows]
        if found:
            lines += table(scenario, found)
    return "\n".join(lines).rstrip() + "\n"


def write(text: str) -> list[Path]:
    """Data and page from the text of a result.json; what has not been run is left out."""
    data = only_run(json.loads(text))
    DATA.parent.mkdir(parents=True, exist_ok=True)
    DATA.write_text(suite.as_json(data))
    PAGE.write_text(page(data))
    return [DATA, PAGE]
