# SPDX-License-Identifier: GPL-2.0
"""From runs to verdicts: functions of the published figure, our interval, and which way is better.

A figure is reproduced where our mean lies in the band of the published one (row.Figure.band), or
our interval reaches into it and is no wider than the band. A wider one is as likely to reach there
as its runs are few and apart: such a figure is undecided. With the whole interval beside the band
it is better or worse: worse where no way is better. A row is as its worst figure.
"""

from __future__ import annotations

from collections.abc import Sequence

from paqm_lab import stats
from paqm_lab.catalogue.row import HIGHER, LOWER, Figure, Json, Row, Values

REPRODUCED, BETTER, WORSE, UNDECIDED = "reproduced", "better", "worse", "undecided"
INCOMPARABLE, PENDING = "not comparable", "pending"
VERDICTS = (REPRODUCED, BETTER, WORSE, UNDECIDED, INCOMPARABLE, PENDING)


def interval(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean, and half of its interval; None with less than two runs."""
    found = stats.paired(values)
    return stats.mean(values), found.half if found else None


def of_figure(figure: Figure, values: Sequence[float | None]) -> Json:
    """What is said of one figure, from its replications; a value that is None was not reached."""
    band = figure.band()
    known = [value for value in values if value is not None]
    complete = len(known) == len(values) > 0
    mean, half = interval(known) if complete else (None, None)
    verdict, good = "", None
    if band is not None and values:
        verdict, good = WORSE, False
        if mean is not None:
            low, high = mean - (half or 0.0), mean + (half or 0.0)
            least, most = band
            below = least is not None and high < least
            above = most is not None and low > most
            inside = (least is None or mean >= least) and (most is None or mean <= most)
            # a band without an end has no width that an interval could be held against
            wide = 0.0 if least is None or most is None else most - least
            if below or above:
                wanted = LOWER if below else HIGHER
                verdict = BETTER if figure.better == wanted else WORSE
            else:
                verdict = REPRODUCED if inside or high - low <= wide else UNDECIDED
            good = inside or verdict == BETTER
    return {
        "id": figure.id, "title": figure.title, "unit": figure.unit,
        "published": figure.printed or figure.published,
        "band": list(band) if band else None, "better": figure.better, "why": figure.why,
        "value": mean, "interval": None if mean is None or half is None else
        [mean - half, mean + half], "count": len(values), "verdict": verdict, "pass": good,
    }  # fmt: skip


def of_row(row: Row, runs: Sequence[Values]) -> Json:
    """Figures, verdict with its reason, and whether a row that is asked to pass does."""
    figures = [of_figure(f, [run[f.id] for run in runs if f.id in run]) for f in row.figures]
    judged = [f for f in figures if f["band"] is not None]
    found = {f["verdict"] for f in judged}
    reason = ""
    if row.pending or (not runs and not row.incomparable):
        verdict, reason = PENDING, row.pending or "not run yet"
    elif row.incomparable:
        verdict, reason = INCOMPARABLE, row.incomparable
    elif not judged:
        verdict, reason = INCOMPARABLE, "published without a number"
    elif "" in found:
        verdict, reason = PENDING, "figures are missing that no run has yet"
    else:
        verdict = next(v for v in (WORSE, UNDECIDED, BETTER, REPRODUCED) if v in found)
        if verdict in (WORSE, UNDECIDED):
            reason = ", ".join(f["title"] for f in judged if f["verdict"] == verdict)
    first = next(iter(judged or figures), None)
    made: Json = {
        "id": row.id, "title": row.title, "scenario": row.scenario, "published": row.published,
        "value": first and first["value"], "interval": first and first["interval"],
        "unit": first["unit"] if first else "", "verdict": verdict, "reason": reason,
        "substitutes": row.substitutes, "source": row.source, "figures": figures,
    }  # fmt: skip
    if row.asked:
        made["pass"] = bool(judged) and all(f["pass"] for f in judged)
    return made
