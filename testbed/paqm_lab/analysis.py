# SPDX-License-Identifier: GPL-2.0
"""From raw logs to figures: every variant's series (CSV) and the run's result.json.

docs/results-format.md describes both.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from paqm_lab import (
    cache,
    checks,
    linkfigures,
    packetfigures,
    perflow,
    picturefigures,
    quality,
    rundata,
)
from paqm_lab import clip as clip_module
from paqm_lab.errors import LabError
from paqm_lab.rundata import Run
from paqm_lab.senders import SENDERS
from paqm_lab.traffic import read_traffic

Progress = Callable[[str], None]
Figures = dict[str, Any]

FORMAT = 1


def analyse_variant(run: Run) -> dict[str, Any]:
    """All figures of one variant; its pictures must have been scored before."""
    traffic = read_traffic(run)
    flows: dict[str, Figures] = {flow.name: {} for flow in run.media}
    figures: Figures = {}
    figures |= packetfigures.sojourn_figures(run, traffic, flows)
    figures |= packetfigures.loss_figures(run, traffic, flows)
    figures |= packetfigures.share_figures(run, traffic, flows)
    figures |= picturefigures.delivery_figures(run, traffic, flows)
    figures |= picturefigures.encoder_figures(run, flows)
    figures |= packetfigures.feedback_figures(run, traffic, flows)
    figures |= picturefigures.picture_figures(run, traffic, flows)
    if run.link:
        media, bulk = traffic.any_of(traffic.media), traffic.any_of(traffic.bulk)
        seen = traffic.seen
        most = linkfigures.ceilings(run, seen.size, traffic.media)
        figures |= linkfigures.figures(run, seen.t_out, seen.size, media, bulk, most)
    events = [
        {"t": t, "flow": name, "event": event}
        for name, span in traffic.activity.items()
        for t, event in zip(span, ("join", "leave"), strict=True)
    ]
    result = {
        "name": run.variant,
        "title": run.label,
        "sender": run.sender,
        "advised": run.advised,
        "codec": SENDERS[run.sender].codec if run.sender in SENDERS else None,
        "qdisc": run.qdisc,
        "shaper": run.shaper,
        "elastic_expected": bool(run.elastic),
        "wall_seconds": run.wall_seconds,
        "wall_ended": run.wall_ended,
        "packet_log_sha256": run.packet_log_sha256,
        "packet_log_cut": traffic.log.cut,
        "figures": figures,
        "flows": flows,
        "events": sorted(events, key=lambda e: (e["t"], e["flow"])),
    }
    if run.judge_from is not None:
        shown = {flow.name: picturefigures.pictures(run, flow.name) for flow in run.media}
        result["each"] = perflow.figures(run, traffic, shown)
    return result


def load_runs(out_dir: Path) -> list[Run]:
    """The finished variants of a result directory, those with advised senders first."""
    runs = [rundata.load_run(path.parent) for path in sorted(out_dir.glob("*/run.json"))]
    if not runs:
        raise LabError(f"{out_dir}: no variant has run here (no */run.json)")
    first = runs[0]
    for run in runs:
        if (run.scenario, run.seed) != (first.scenario, first.seed):
            raise LabError(
                f"{run.path}: scenario {run.scenario}, seed {run.seed}, but {first.path} has "
                f"{first.scenario}, {first.seed}: give each run a directory of its own (--out)"
            )
    return sorted(runs, key=lambda run: (not run.advised, run.variant))


def _earlier(out_dir: Path) -> dict[tuple[str, str], Any]:
    """Variants analysed before, by name and hash of the packet log, which may be gone by now."""
    path = out_dir / "result.json"
    if not path.exists():
        return {}
    result = rundata.load_json(path)
    if not isinstance(result, dict) or result.get("format") != FORMAT:
        return {}
    return {(v["name"], v["packet_log_sha256"]): v for v in result["variants"]}


def score_pictures(
    runs: list[Run], keep: str | None, progress: Progress, score: bool = True, workers: int = 2
) -> None:
    """Score all recordings that are there and have no scores, then delete them.

    Those of stream `keep` stay.
    """
    recordings = [
        path
        for run in runs
        for flow in run.media
        if (path := run.flow_dir(flow.name, "recv") / "decoded.y4m").exists()
    ]
    fresh = [path for path in recordings if not path.with_name("quality.csv").exists()]
    if score and fresh:
        progress(f"analysis: scoring the pictures of {len(fresh)} recordings")
        every, home = runs[0].cut_every, cache.cache_dir()
        if every:
            clip = clip_module.cut(home, every, progress)
        else:
            clip = clip_module.prepare(home, progress)
        quality.score_all(clip, fresh, workers)
    for path in recordings:
        if path.parent.parent.name != keep:
            path.unlink()


def finite(value: Any) -> Any:
    """JSON has no infinity and no NaN: null instead."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else None
    return value


def analyse(
    out_dir: Path, keep: str | None = None, score: bool = True, progress: Progress = print
) -> dict[str, Any]:
    """Write every variant's series/*.csv and the result.json of the whole run."""
    runs = load_runs(out_dir)
    score_pictures(runs, keep, progress, score)
    earlier = _earlier(out_dir)
    variants = []
    for run in runs:
        known = earlier.get((run.variant, run.packet_log_sha256))
        if known and not (run.path / "router.pcap").exists():
            progress(f"analysis: {run.variant} is as it was, its packet log is gone")
            variants.append(known)
            continue
        progress(f"analysis: {run.variant}")
        variants.append(analyse_variant(run))
    first = runs[0]
    result: dict[str, Any] = {
        "format": FORMAT,
        "scenario": first.scenario,
        "scenario_data": rundata.load_json(first.path / "run.json").get("scenario_data"),
        "title": first.title,
        "seed": first.seed,
        "duration_s": first.duration,
        "bottleneck_bps": first.bottleneck,
        "link": first.link,
        "rtt_ms": first.rtt * 1000,
        "fps": first.fps,
        "versions": first.versions,
        "clip": clip_module.LICENCE if first.media else None,
        "packet_log_sha256": {run.variant: run.packet_log_sha256 for run in runs},
        "variants": variants,
    }
    result = finite(result)
    result["checks"] = checks.evaluate(result)
    path = out_dir / "result.json"
    try:
        path.write_text(json.dumps(result, indent=1, allow_nan=False) + "\n")
    except OSError as err:
        raise LabError(f"{path}: cannot write: {err.strerror}") from err
    return result
