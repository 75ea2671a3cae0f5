# SPDX-License-Identifier: GPL-2.0
"""Scenarios of trace flows (`[trace]`, scenarios/trace.schema.json): one guest, many streams, TCP.

The flows send pictures of a quality ladder that was encoded before, so a run costs packets only
and many of them can be made. What the packets say goes into result.json and series/*.csv, in the
format of docs/results-format.md as far as it applies.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from paqm_lab import cache, clip, lab, ladder, scenario, series, trace, uml
from paqm_lab.analysis import FORMAT, finite
from paqm_lab.errors import LabError

Json = dict[str, Any]
Say = Callable[[str], None]
F64 = npt.NDArray[np.float64]

SCHEMA = scenario.SCENARIOS / "trace.schema.json"
LADDER: Json = {"q_min": 19, "q_max": 45, "preset": "veryfast"}
FLOWS_MOST = 256  # of one program: paqm-streamer(1)
TCP_PORT = 5201
PATIENCE = 30  # wall seconds per virtual second after which a guest is given up
BIN = 0.5  # s, of the series of rates
QUANTILES = np.array([*np.linspace(0, 0.99, 100), 0.995, 0.999, 1.0])


def describes(data: Json) -> bool:
    """Whether a scenario is one of trace flows."""
    return "trace" in data


@dataclass(frozen=True)
class TraceScenario:
    """A checked scenario, as in its file."""

    path: Path
    data: Json

    @property
    def name(self) -> str:
        return str(self.data["name"])

    @property
    def judge_from(self) -> float:
        """Second from which rates are judged."""
        return float(self.data.get("judge_from", self.data["duration"] / 2))

    def config(self, variant: Json, seed: int) -> Json:
        """What the guest is told, without its paths."""
        bottleneck = scenario.rate(self.data["path"]["bottleneck"])
        flows = self.data["trace"]
        port, elastic = TCP_PORT, []
        for group in self.data.get("elastic", []):
            elastic.append({**group, "port": port})
            port += group["flows"]
        words = ["--rate-max", str(scenario.rate(flows["rate_max"]))]
        words += ["--spread", str(flows.get("spread", 0)), *variant.get("sender", [])]
        return {
            "flows": flows["flows"],
            "duration": self.data["duration"],
            "seed": seed,
            "path": {"bottleneck": bottleneck, "rtt_ms": self.data["path"]["rtt_ms"]},
            "link": None,
            "elastic": elastic,
            "variant": {
                "shaper": None,
                **variant,
                "qdisc": variant["qdisc"].replace("{bottleneck}", f"{bottleneck}bit"),
                "sender": words,
            },
        }


def check(path: Path, data: Json) -> TraceScenario:
    """The scenario of this content, if it is one; `path` names it in what is refused."""
    scenario.validate(path, data, SCHEMA)
    for key in ("elastic", "variant"):
        names = [entry["name"] for entry in data.get(key, [])]
        if len(set(names)) < len(names):
            raise LabError(f"{path}: {key}: expected different names")
    for number, variant in enumerate(data["variant"], start=1):
        scenario.check_limit(f"{path}: variant[{number}]", variant)
    for number, group in enumerate(data.get("elastic", []), start=1):
        if not group["start"] < group["stop"] <= data["duration"]:
            raise LabError(f"{path}: elastic[{number}]: expected start < stop <= duration")
    last = max(data["trace"].get("spread", 0), data.get("judge_from", 0))
    if not last < data["duration"]:
        raise LabError(f"{path}: expected trace.spread and judge_from below duration")
    return TraceScenario(path, data)


def prepare_ladder(source: Path, say: Say, gop: int = ladder.GOP) -> ladder.Ladder:
    """The ladder of the clip with so many pictures a group, made once and kept in the cache."""
    settings = LADDER if gop == ladder.GOP else LADDER | {"gop": gop}
    key = cache.digest(
        json.dumps([ladder.FORMAT, ladder.X264, settings]).encode(),
        (source.with_suffix(".json")).read_bytes(),
    )
    target = cache.cache_dir() / f"ladder-{key}"
    with cache.locked("ladder"):
        if not target.exists():
            say("trace: making the quality ladder")
            ladder.build(source, target, progress=lambda _: None, **settings)
    return ladder.load(target)


def run_guest(
    chosen: TraceScenario, variant: Json, seed: int, directory: Path, house: lab.Lab,
    made: ladder.Ladder,
) -> float:
    """One guest with all flows; the wall time. Logs are below `directory`."""
    lab.make_way(directory)
    config = {
        "out": str(directory),
        "build": lab.BUILD,
        "modules": str(house.modules),
        "ladder": str(made.path),
        **chosen.config(variant, seed),
    }
    house.tell(config, directory)
    begin = time.monotonic()
    timeout = 120 + PATIENCE * chosen.data["duration"]
    job = house.job("trace_guest", directory, directory / "job", seed=seed, timeout=timeout)
    result = uml.run(house.kernel, job)
    wall = time.monotonic() - begin
    if not result.good or result.status:
        log = directory / "job" / "output.log"
        said = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
        raise LabError(
            f"{variant['name']}: {result.explain()}: {said[-1] if said else 'no output'} "
            f"(in {directory})"
        )
    return wall


def packet_log_sha256(directory: Path) -> str:
    """Over the logs of all senders and receivers: each packet with the nanosecond it was sent in
    and the one it arrived in."""
    state = hashlib.sha256()
    for path in sorted([*directory.glob("send/*/tx.csv"), *directory.glob("recv/*/rx.csv")]):
        state.update(f"{path.relative_to(directory)}\n".encode())
        state.update(path.read_bytes())
    return state.hexdigest()


def jain(rates: list[float]) -> float:
    """Jain's index of fairness."""
    x = np.array(rates)
    return float(x.sum() ** 2 / (len(x) * (x**2).sum())) if x.any() else 0.0


@dataclass(frozen=True)
class Flow:
    """What the two logs of a flow say; times in s since the first packet of all flows."""

    sent: F64
    delay: F64  # s, infinite: lost
    got: F64
    wire: npt.NDArray[np.int64]

    def rate(self, begin: float, end: float) -> float:
        """Mean rate of arrival, bit/s."""
        return float(self.wire[(self.got >= begin) & (self.got < end)].sum()) * 8 / (end - begin)


def read_flows(out: Path, flows: int) -> list[Flow]:
    """All flows of a run."""
    names = [f"flow{i:03d}" for i in range(flows)]
    sent = [trace.read_sent(out / "send" / name / "tx.csv") for name in names]
    origin = min(int(one.t[0]) for one in sent if len(one.t))
    found = []
    for name, one in zip(names, sent, strict=True):
        path = out / "recv" / name / "rx.csv"
        delay = trace.read_arrivals(path, one)
        t, wire = trace.received_bytes(path)
        found.append(Flow((one.t - origin) / 1e9, delay, (t - origin) / 1e9, wire))
    return found


def _times(delay: F64) -> Json:
    return series.ms(delay[np.isfinite(delay)])


def _loss(delay: F64) -> Json:
    lost = int((~np.isfinite(delay)).sum())
    return {"packets": len(delay), "lost": lost, "percent": 100 * lost / max(1, len(delay))}


def figures(chosen: TraceScenario, out: Path, flows: list[Flow]) -> tuple[Json, Json]:
    """Figures of the whole run, and those of each flow and group of TCP flows."""
    data = chosen.data
    begin, end = chosen.judge_from, float(data["duration"])
    rates = [flow.rate(begin, end) for flow in flows]
    each: Json = {}
    for number, (flow, bits) in enumerate(zip(flows, rates, strict=True)):
        each[f"flow{number:03d}"] = {
            "delay_ms": _times(flow.delay), "loss": _loss(flow.delay), "mean_mbit": bits / 1e6,
        }
    bulk = 0.0
    for group in data.get("elastic", []):
        got = json.loads((out / f"sink-{group['name']}.log").read_text())["bytes"]
        mbit = got * 8 / 1e6 / (group["stop"] - group["start"])
        bulk += got * 8 / end
        each[group["name"]] = {"flows": group["flows"], "mean_mbit": mbit}
    delay = np.concatenate([flow.delay for flow in flows])
    queue = json.loads((out / "tc.json").read_text())
    whole = {
        "delay_ms": _times(delay),
        "media_loss": _loss(delay),
        "jain": jain(rates),
        "rate_mbit": {"mean": float(np.mean(rates)) / 1e6, "least": min(rates) / 1e6,
                      "most": max(rates) / 1e6},
        "link_use_percent": {
            "media": 100 * sum(rates) / scenario.rate(data["path"]["bottleneck"]),
            "elastic": 100 * bulk / scenario.rate(data["path"]["bottleneck"]),
        },
        "drops": sum(entry.get("drops", 0) for entry in queue),
    }
    return whole, each


def write_series(home: Path, flows: list[Flow], duration: float) -> None:
    """rates.csv: Mbit/s of each flow and of all; sojourn_cdf.csv: quantiles of one-way delay."""
    home.mkdir(parents=True, exist_ok=True)
    edges = np.arange(0, duration + BIN / 2, BIN)
    columns = [np.histogram(f.got, edges, weights=f.wire)[0] * 8 / BIN / 1e6 for f in flows]
    names = [f"flow{number:03d}" for number in range(len(flows))]
    table = np.column_stack([edges[1:], *columns, np.sum(columns, axis=0)])
    series.write_csv(home / "rates.csv", ["t", *names, "LINK"], table.tolist())
    delay = np.concatenate([flow.delay for flow in flows])
    known = delay[np.isfinite(delay)] * 1000
    if len(known):
        at = np.column_stack([QUANTILES, np.quantile(known, QUANTILES)])
        series.write_csv(home / "sojourn_cdf.csv", ["quantile", "media_ms"], at.tolist())


def _run_variant(
    chosen: TraceScenario, variant: Json, seed: int, home: Path, house: lab.Lab, made: ladder.Ladder
) -> Json:
    """A variant from boot to figures: an entry of `variants`."""
    wall = run_guest(chosen, variant, seed, home, house, made)
    flows = read_flows(home, chosen.data["trace"]["flows"])
    whole, each = figures(chosen, home, flows)
    write_series(home / "series", flows, float(chosen.data["duration"]))
    return {
        "name": variant["name"],
        "title": variant.get("title", variant["name"]),
        "qdisc": variant["qdisc"],
        "shaper": variant.get("shaper"),
        "wall_seconds": round(wall, 1),
        "packet_log_sha256": packet_log_sha256(home),
        "figures": whole,
        "flows": each,
    }


def run(
    chosen: TraceScenario, variants: list[Json], seed: int, out: Path, house: lab.Lab, say: Say
) -> Json:
    """These variants, each in a guest: OUT/VARIANT/, OUT/result.json; what the latter says."""
    made = prepare_ladder(clip.prepare(cache.cache_dir(), say), say)
    lab.forget_result(out)
    found = []
    for variant in variants:
        found.append(_run_variant(chosen, variant, seed, out / variant["name"], house, made))
        say(f"{variant['name']}: done in {found[-1]['wall_seconds']} s")
    result: Json = finite({
        "format": FORMAT,
        "scenario": chosen.name,
        "scenario_data": chosen.data,
        "title": chosen.data["title"],
        "seed": seed,
        "duration_s": chosen.data["duration"],
        "bottleneck_bps": scenario.rate(chosen.data["path"]["bottleneck"]),
        "rtt_ms": chosen.data["path"]["rtt_ms"],
        "versions": house.versions(),
        "packet_log_sha256": {entry["name"]: entry["packet_log_sha256"] for entry in found},
        "variants": found,
        "checks": [],
    })
    (out / "result.json").write_text(json.dumps(result, indent=1, allow_nan=False) + "\n")
    return result
