# SPDX-License-Identifier: GPL-2.0
"""Runs a scenario's variants, each in a guest of its own, and leaves raw logs and run.json."""

import json
import os
import shutil
import threading
import time
from collections.abc import Callable
from concurrent.futures import as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paqm_lab import (
    analysis,
    cache,
    clip,
    kernel,
    lab,
    rundata,
    senders,
    sidebyside,
    topology,
    uml,
)
from paqm_lab.errors import LabError
from paqm_lab.scenario import Scenario, is_recorded

Progress = Callable[[str], None]

# A guest keeps one CPU busy and takes up to 1 GB of memory.
PARALLEL = min(4, len(os.sched_getaffinity(0)))
# Wall seconds per virtual second after which a guest is given up.
PATIENCE = 60


@dataclass(frozen=True)
class Options:
    """What the user asked for."""

    out: Path
    seed: int
    variants: list[str]
    keep_packets: bool
    repeat_check: bool
    score: bool = True  # compare the pictures shown with the clip
    page: bool = True  # write report.html
    lock_text: str | None = None  # of the image, instead of the repository's


def _clear_all(out: Path) -> None:
    """Old results of other variants or seeds must not enter this run's report."""
    for stamp in out.glob(f"*/{lab.CONFIG}"):
        if lab.is_result(stamp.parent):
            shutil.rmtree(stamp.parent)
    drawn = (sidebyside.VIDEO, sidebyside.FACTS, *(path.name for path in out.glob("worst-*.jpg")))
    for name in drawn:
        (out / name).unlink(missing_ok=True)
    lab.forget_result(out)
    lab.make_out(out)


class VariantRun:
    """One variant in one guest."""

    def __init__(
        self,
        resolved: dict[str, Any],
        directory: Path,
        house: lab.Lab,
        clip_file: Path | None,
        progress: Progress,
        scenario: Scenario,
        link: Path | None,
        record: bool = True,
    ) -> None:
        self.scenario = scenario
        self.record = record and is_recorded(resolved)  # pictures, for their scores
        self.link = link
        self.resolved = resolved
        self.directory = directory
        self.house = house
        self.clip_file = clip_file
        self.progress = progress
        self.label = resolved["variant"]["name"]
        self.started = 0.0
        self.unfinished = ""  # of the last line heard

    def _heard(self, text: str) -> None:
        """Passes on how far the guest is: every fifth second it tells of."""
        *lines, self.unfinished = (self.unfinished + text).split("\n")
        for line in lines:
            word, _, second = line.partition(" ")
            if word == "@" and int(second) % 5 == 0:
                wall = time.monotonic() - self.started
                end = self.resolved["duration"]
                self.progress(
                    f"{self.label}: {second} of {end:.0f} s simulated, {wall:.0f} s spent"
                )

    def run(self) -> dict[str, Any]:
        """Boots, runs, and writes run.json; returns its content."""
        resolved, directory = self.resolved, self.directory
        lab.make_way(directory)
        house = self.house
        config = {
            **resolved,
            "out": str(directory),
            "build": lab.BUILD,
            "modules": str(house.modules or ""),
            "clip_file": str(self.clip_file or ""),
            "record": self.record,
        }
        if self.link:
            trace = directory / "trace.txt"
            self.scenario.write_trace(resolved["variant"], resolved["seed"], trace)
            config |= {"trace_file": str(trace), "link_module": str(self.link)}
        if resolved["loads"]:
            config["load_tool"] = f"{lab.BUILD}/lab/load"
        streams = senders.of_dumbbell(resolved)
        config["streams"] = senders.plans(streams, config, directory)
        house.tell(config, directory)
        job = house.job(
            "guest", directory, directory / "guest", seed=resolved["seed"],
            timeout=60 + PATIENCE * resolved["duration"],
            memory=senders.memory([flow["sender"] for flow in streams]),
        )
        self.started = time.monotonic()
        result = uml.run(house.kernel, job, self._heard)
        result = self._tidy(result)
        error = lab.guest_error(directory)
        if error and not result.reports:
            raise LabError(f"{self.label}: {error} (in {directory})")
        if not result.good:
            raise LabError(f"{self.label}: {result.explain()}")
        guest = json.loads((directory / "guest.json").read_text())
        record = {
            **resolved,
            "scenario_data": self.scenario.data,
            "t0_ns": guest["t0_ns"],
            "versions": house.versions(),
            "packet_log_sha256": cache.file_sha256(directory / "router.pcap"),
            "wall_seconds": round(result.wall, 1),
            "wall_ended": round(time.time(), 1),
        }
        (directory / "run.json").write_text(json.dumps(record, indent=1) + "\n")
        return record

    def _tidy(self, result: uml.Result) -> uml.Result:
        """Keeps the guest's two logs beside the others, drops the rest of the job."""
        log = self.directory / "log"
        log.mkdir(exist_ok=True)
        result = result.kept(log / "kernel.log", log / "guest.log")
        shutil.rmtree(self.directory / "guest")
        return result


def _clip(scenario: Scenario, progress: Progress) -> tuple[Path | None, int]:
    """The clip and how many frames it has."""
    if not scenario.data.get("media"):
        return None, 0
    size = scenario.data["clip"]
    if "cut_every" in size:
        path = clip.cut(cache.cache_dir(), size["cut_every"], progress)
    else:
        path = clip.scaled(cache.cache_dir(), size["width"], size["height"], progress)
    return path, int(json.loads(path.with_suffix(".json").read_text())["frames"])


def _needed_space(scenario: Scenario) -> int:
    """MB of the largest moment: decoded pictures of all flows and the packet logs."""
    size = scenario.data.get("clip") or {"width": 0, "height": 0, "fps": 0}
    pictures = sum(flow["stop"] - flow["start"] for flow in scenario.data.get("media", []))
    video = pictures * size["fps"] * size["width"] * size["height"] * 1.5 / 1e6
    if not is_recorded(scenario.data):
        video = 0
    return int(len(scenario.variants) * (video + 2 * scenario.duration + 50))


def run_scenario(scenario: Scenario, options: Options, progress: Progress) -> None:
    """Runs the chosen variants, analyses them, writes the report."""
    chosen = scenario.choose(options.variants)
    own = {flow["sender"] for flow in scenario.data.get("media", []) if "sender" in flow}
    for sender in sorted({variant["sender"] for variant in chosen} | own):
        senders.installed(sender)
    needs_gcc = any(variant.get("controller") == "gcc" for variant in chosen)
    if needs_gcc and not any(cache.plugins().glob("*.so")):
        raise LabError("the controller gcc is not installed; run make gcc-element")
    _clear_all(options.out)
    cache.need_space(options.out, _needed_space(scenario), f"scenario {scenario.name}")
    # Modules and image are those of all variants, also when not all are run: random numbers of a
    # program hang on how many were started before it, and loading a module starts one.
    kinds = [topology.kind(variant) for variant in scenario.variants]
    uses_modules = any(kind in topology.OWN_KINDS for kind in kinds)
    house = lab.ready(progress, modules=uses_modules, lock_text=options.lock_text)
    senders_of_all = {variant["sender"] for variant in scenario.variants} | own
    house = senders.house_for(senders_of_all, house, progress)
    link = kernel.build_link(house.kernel, progress) if scenario.data["path"].get("link") else None
    clip_file, frames = _clip(scenario, progress)
    stream = _stream_shown(scenario, options, len(chosen))
    lock = threading.Lock()

    def say(text: str) -> None:
        with lock:
            progress(text)

    def one(variant: dict[str, Any]) -> None:
        resolved = scenario.resolve(variant, options.seed, frames)

        def once(directory: Path) -> str:
            run = VariantRun(
                resolved, directory, house, clip_file, say, scenario, link, options.score
            )
            record = run.run()
            say(f"{variant['name']}: done in {record['wall_seconds']} s")
            return str(record["packet_log_sha256"])

        home = options.out / variant["name"]
        digest = once(home)
        if options.repeat_check:
            again = options.out / f"{variant['name']}.again"
            if once(again) != digest:
                raise LabError(
                    f"{variant['name']}: the repeat gave another packet log; compare "
                    f"{home}/router.pcap and {again}/router.pcap"
                )
            shutil.rmtree(again)
            say(f"{variant['name']}: repeat is bit-identical, sha256 {digest}")

    with uml.pool(PARALLEL) as pool:
        running = {pool.submit(one, variant): options.out / variant["name"] for variant in chosen}
        done = []
        for future in as_completed(running):
            future.result()
            done.append(rundata.load_run(running[future]))
            idle = PARALLEL - (len(chosen) - len(done))
            if idle > 0:  # CPUs that have no guest any more
                analysis.score_pictures(done, stream, say, options.score, idle)
    evaluate(options, progress, stream)


def _stream_shown(scenario: Scenario, options: Options, variants: int) -> str | None:
    """The stream whose pictures are shown side by side, if there is something to compare."""
    if not (options.page and options.score and variants > 1 and is_recorded(scenario.data)):
        return None
    media = scenario.data.get("media", [])
    return sidebyside.stream_of([(flow["name"], flow["start"], flow["stop"]) for flow in media])


def evaluate(options: Options, progress: Progress, stream: str | None = None) -> None:
    """Figures, checks and report from the raw logs; drops the packet logs unless wanted."""
    analysis.analyse(options.out, stream, options.score, progress)
    if stream:
        runs = analysis.load_runs(options.out)
        recordings = [run.flow_dir(stream, "recv") / "decoded.y4m" for run in runs]
        if all(path.exists() for path in recordings):
            progress(f"analysis: stream {stream} side by side")
            sidebyside.make(runs, stream, options.out)
        for path in recordings:
            path.unlink(missing_ok=True)
    if options.page:
        from paqm_lab import report  # and with it matplotlib, which takes half a second to load

        report.write(options.out)
    if not options.keep_packets:
        for log in options.out.glob("*/router.pcap"):
            log.unlink()
    if options.page:
        progress(f"report: {options.out / 'report.html'}")
