# SPDX-License-Identifier: GPL-2.0
"""docs/mixed.md from docs/results/mixed.json, and that from result.json of paqm_lab.mixed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from paqm_lab import cache, markdown, mixed_judge, stats

Json = dict[str, Any]

DATA = cache.REPO / "docs" / "results" / "mixed.json"
PAGE = cache.REPO / "docs" / "mixed.md"

HEAD = """# Followers beside senders that do not listen

Streams that follow advice (`paqm-streamer`, called followers) meet libwebrtc, which hears no
router, TCP, unresponsive RTP floods, voices, short connections, and hosts that misbehave.
Real kernel, real programs, virtual time.

```
make mixed              # a part of the grid, out/mixed/result.json
make mixed FULL=1       # all of it, five seeds
testbed/paqm-lab mixed --cases mix-2-1-tcp --seeds 1     # one case, with a table of every flow
```

Each run counts until a newer one of the same case, queue and seed replaces it: the whole grid
takes a day on two cores and is run in parts. This file is made from `docs/results/mixed.json` by
`paqm-lab mixed --docs`; do not edit it.

A run lasts 24 s, TCP comes at 10 s unless a table says otherwise, figures are from 4 s on (hosts
that misbehave: from 8 s). The test clip at 640x360 and 24 frames/s, ceiling 3 Mbit/s per stream.
*Delay* is the time between entering the router and leaving its queue; *share* is the max-min
share of a flow ([results-format.md](results-format.md)). Over P-AQM followers are told their
rate; over fq_codel and CAKE their own controller finds it. Where queues are compared, the figure
of a run is the mean over its libwebrtc senders, and P-AQM may be worse than each of fq_codel and
CAKE by the spread from run to run: half the width of the 95 % interval of the difference of the
two means (Welch). A frame that never arrives counts with the length of the run.
"""

TAIL = """
## What this does not show

* One round-trip time for all mixes, 40 ms, and one clip.
* libwebrtc as in its Node.js build, with VP8; other builds and codecs behave differently.
* What an unresponsive flow gets beside followers only: a work-conserving queue gives it what they
  leave. Its *fair* rate here takes the followers' demand as what they really sent, so whether
  they were pushed aside is for their own rate to say, and its own demand as what it sends and
  what of it waits already; *nominal* is an equal division."""


def section(title: str, text: str, names: tuple[str, ...], rows: list[str]) -> list[str]:
    """A heading, what the figures mean, and a table; nothing where there are no rows."""
    if not rows:
        return []
    rule = "|---|" + "--:|" * (len(names) - 1)
    return [f"## {title}", "", text, "", markdown.row(*names), rule, *rows, ""]


def _range(values: list[Any], digits: int) -> str:
    """Mean over the runs, with the extremes where they differ."""
    if not values or None in values:
        return "none"
    mean = markdown.cell(stats.mean(values), digits)
    low, high = markdown.cell(min(values), digits), markdown.cell(max(values), digits)
    return mean if low == high else f"{mean} ({low} to {high})"


def _verdict(check: Json, text: str) -> str:
    return text if check["pass"] else f"**{text}**"


def _short(check: Json, digits: int) -> str:
    return _verdict(check, markdown.cell(check["value"], digits))


class Page:
    """The tables."""

    def __init__(self, data: Json) -> None:
        self.data = data
        self.checks = {(c["variant"], c["name"]): c for c in data["checks"]}
        self.reported = {(c["variant"], c["name"]): c for c in data["reported"]}

    def cases(self, *groups: str) -> list[Json]:
        return [case for case in self.data["cases"] if case["group"] in groups]

    def runs(self, case: Json, queue: str) -> list[Json]:
        return [r for r in self.data["runs"] if (r["case"], r["queue"]) == (case["name"], queue)]

    def over(self, case: Json, queue: str, group: str, key: str, digits: int) -> str:
        """A figure of a group over the seeds."""
        values = [
            run["groups"][group][key] for run in self.runs(case, queue) if group in run["groups"]
        ]
        return _range(values, digits)

    def checked(self, case: Json, name: str, digits: int) -> str:
        """The value of a check, in bold where it fails; empty where there is none."""
        check = self.checks.get((case["name"], name))
        if check is not None:
            return _short(check, digits)
        other = self.reported.get((case["name"], name))
        return f"({markdown.cell(other['value'], digits)})" if other else ""

    def extra(self, case: Json, name: str, key: str, digits: int) -> str:
        check = self.checks.get((case["name"], name))
        return markdown.cell(check[key], digits) if check and key in check else ""

    def seeds(self, case: Json) -> str:
        return str(len({run["seed"] for run in self.runs(case, "paqm")}))

    def summary(self) -> list[str]:
        checks, grid = self.data["checks"], self.data["grid"]
        good = sum(check["pass"] for check in checks)
        return [
            f"{good} of {len(checks)} checks hold. {grid['runs']} runs; of the "
            f"{grid['whole_grid']} of the whole grid there are {grid['of_it']}. Figures in bold do "
            "not hold their limit; those in parentheses are not judged."
            + (f" {silent}." if (silent := mixed_judge.unjudged(self.data)) else "")
            + self.states(),
            "",
        ]

    def states(self) -> str:
        """In how many cases P-AQM and a rival were not run by the same state of the programs."""
        made: dict[str, dict[str, set[str]]] = {}
        for run in self.data["runs"]:
            made.setdefault(run["case"], {}).setdefault(run["queue"], set()).add(run["programs"])
        both = [of for of in made.values() if "paqm" in of and len(of) > 1]
        apart = sum(any(other != of["paqm"] for other in of.values()) for of in both)
        if not apart:
            return ""
        return (f" Runs are of {self.data['programs']} states of the programs: in {apart} of "
                f"{len(both)} cases with rivals P-AQM's and theirs are not of the same, so what "
                "sets them apart may be the programs, too.")

    def pooled(self) -> list[str]:
        rows = []
        for check in self.data["checks"]:
            if not check["variant"].endswith(", all"):
                continue
            name = check["name"].removeprefix("libwebrtc_").split("_worse_than_")[0]
            reach = f"{check['mean'] - check['half']:.2f} to {check['mean'] + check['half']:.2f}"
            unit = f" {check['unit']}".rstrip()
            rows.append(
                markdown.row(
                    check["variant"].split(",")[0],
                    name.replace("_", " "),
                    check["rival"],
                    f"{check['mean']:.2f}{unit}",
                    _verdict(check, reach),
                    str(check["pairs"]),
                )
            )
        return section(
            "libwebrtc over all cases",
            "How much worse P-AQM is for libwebrtc senders than each rival, differences of pairs "
            "(case and seed); negative is better. Wanted: the interval does not lie on the worse "
            "side as a whole. Not against the better rival of each pair: the better of two runs "
            "is better than a third one by chance alone.",
            ("cases", "figure", "than", "worse by", "95 % interval", "pairs"),
            rows,
        )

    def mixes(self) -> list[str]:
        rows = []
        for case in self.cases("mix"):
            rivals = [
                self.over(case, queue, "followers", key, 1)
                for queue in ("fq_codel", "cake")
                for key in ("delay_p95_ms", "share_percent")
            ]
            rows.append(
                markdown.row(
                    case["title"],
                    f"{case['link_mbit']:g}",
                    self.seeds(case),
                    self.checked(case, "followers_delay_p95", 2),
                    self.checked(case, "followers_delay_p99", 2),
                    self.checked(case, "followers_lost", 0),
                    self.checked(case, "followers_rate", 1),
                    self.over(case, "paqm", "followers", "share_percent", 1),
                    *rivals,
                )
            )
        return section(
            "Followers in the mixes",
            "Over P-AQM, worst follower and run: delay p95 at most 4 ms, p99 at most 8 ms, "
            "nothing lost, 95 % of the share; then the mean delay p95 and share over fq_codel and "
            "CAKE. Where a p95 is above 4 ms, it is that of one follower whose packets keep coming "
            "just after those of others: eight even streams of packets of 1.2 ms, 96 % of 8 Mbit/s "
            "together, make the worst of five wait for more than 4 ms in 28 % of all phases "
            "(drawn 20,000 times), and pictures at the same rate keep their phase.",
            ("mix", "Mbit/s", "seeds", "p95, ms", "p99, ms", "lost", "least share, %",
             "mean share, %", "fq_codel p95", "share", "CAKE p95", "share"),
            rows,
        )  # fmt: skip

    def compared(self, group: str, title: str, keys: dict[str, tuple[str, str, int]]) -> list[str]:
        rows = []
        for case in self.cases(group):
            for name, (text, key, digits) in keys.items():
                of = (case["name"], f"libwebrtc_{name}_worse")
                check = self.checks.get(of)
                rows.append(
                    markdown.row(
                        case["title"],
                        text,
                        *(
                            self.over(case, queue, "libwebrtc", key, digits)
                            for queue in ("paqm", "fq_codel", "cake")
                        ),
                        (check or self.reported.get(of, {})).get("rival", ""),
                        self.checked(case, of[1], digits),
                        markdown.cell(check["limit"], digits) if check else "",
                    )
                )
        return section(
            title,
            "Means over the senders and seeds over P-AQM, fq_codel and CAKE; then how much worse "
            "P-AQM is than the one of the two against which least is left of what the spread from "
            "run to run allows.",
            ("case", "figure", "P-AQM", "fq_codel", "CAKE", "than", "worse by", "allowed"),
            rows,
        )

    def floods(self) -> list[str]:
        rows = [
            markdown.row(
                case["title"],
                f"{case['link_mbit']:g}",
                self.checked(case, "followers_rate", 1),
                self.checked(case, "followers_delay_p99", 2),
                self.checked(case, "tcp_rate", 1),
                self.checked(case, "audio_lost", 0),
                self.checked(case, "audio_delay_p99", 2),
            )
            for case in self.cases("flood", "audio")
        ]
        return section(
            "Floods and voices",
            "Floods: followers 95 % of their share, p99 at most 8 ms. Voices beside TCP: they lose "
            "nothing, p99 at most 3 ms, TCP has 95 % of what they leave.",
            ("case", "Mbit/s", "followers' least share, %", "p99, ms", "TCP, %", "voices lost",
             "voices p99, ms"),
            rows,
        )  # fmt: skip

    def misbehaving(self) -> list[str]:
        rows = []
        for case in self.cases("bad"):
            link = self.checked(case, "follower_of_link", 1)
            rows.append(
                markdown.row(
                    case["title"],
                    self.checked(case, "misbehaver_rate", 1),
                    self.extra(case, "misbehaver_rate", "fair_mbit", 2),
                    self.extra(case, "misbehaver_rate", "nominal_percent", 1),
                    f"{link} of the link" if link else self.checked(case, "followers_rate", 1),
                    self.over(case, "paqm", "followers", "delay_p99_worst_ms", 2),
                    self.checked(case, "followers_delay_more", 2),
                )
            )
        return section(
            "Hosts that misbehave",
            "The misbehaver at most 105 % of its fair rate; followers 95 % of their share, their "
            "p99 at most 5 ms above what it is without it. By default flows are equal, as behind "
            "fq_codel: a hundred flows of one host have a hundred shares, and 78 kbit/s are left "
            "for a follower. There followers may go down to 50 kbit/s, else to 200: whose lowest "
            "rate is above its share does not follow. `weights host` makes hosts equal.",
            ("case", "its rate, % of fair", "fair, Mbit/s", "% of nominal",
             "followers' least share, %", "p99, ms", "more, ms"),
            rows,
        )  # fmt: skip

    def regimes(self) -> list[str]:
        rows = [
            markdown.row(
                case["title"],
                f"{case['link_mbit']:g}",
                self.checked(case, "followers_rate", 1),
                self.checked(case, "followers_delay_p99", 2),
                self.checked(case, "told_apart", 2),
            )
            for case in self.cases("regime")
        ]
        return section(
            "What the closed loop meets",
            "Followers 95 % of their share, p99 at most 8 ms; a rate told in steady state is "
            "within 5 % of its mean. Beside short connections shares really change, so there what "
            "is told is not judged; of followers limited by themselves neither.",
            ("case", "Mbit/s", "followers' least share, %", "p99, ms", "told apart, %"),
            rows,
        )

    def text(self) -> str:
        mix: dict[str, tuple[str, str, int]] = {
            "delay_p95": ("delay p95, ms", "delay_p95_ms", 2),
            "loss": ("lost, %", "lost_percent", 2),
            "rate": ("rate, Mbit/s", "rate_mbit", 3),
            "vmaf_p5": ("VMAF, 5th percentile", "vmaf_p5", 1),
        }
        deaf: dict[str, tuple[str, str, int]] = {
            "frame_delivery_p95": ("frame delivery p95, ms", "frame_p95_ms", 1),
            "loss": mix["loss"],
            "vmaf_p5": mix["vmaf_p5"],
        }
        lines = [HEAD, *self.summary(), *self.pooled(), *self.mixes()]
        lines += self.compared("mix", "libwebrtc in the mixes", mix)
        lines += self.compared("deaf", "Nobody listens", deaf)
        lines += [*self.floods(), *self.misbehaving(), *self.regimes()]
        made = sorted({version["paqm"] for version in self.data["versions"]})
        lines.append(f"Version {', '.join(made)}; kernel {self.data['versions'][0]['kernel']}.")
        return "\n".join(lines) + "\n" + TAIL


def page(data: Json) -> str:
    """docs/mixed.md."""
    return Page(data).text()


def save(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def write(text: str, files: Callable[[Path, str], Path] = save) -> list[Path]:
    """Data and page from the text of a result.json."""
    data = json.loads(text)
    return [files(DATA, text), files(PAGE, page(data))]
