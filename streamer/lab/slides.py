#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0
"""The experiment of M. Welzl and M. Muehlhaeuser, slides of 2001: N media beside N TCP flows.

Runs in a guest of the lab: slides.py CTL_FLOW OUT.json slides [CASE...], CASE the number of flows
and the round trip, ms: 10-300.
The bottleneck of the slides cannot have been the 0.5 Mbit/s that they say: one class alone had
4.09 Mbit/s of it. It is 5 Mbit/s here. They say nothing of round trip and queue: 100 and 300 ms
and a queue of one product of rate and round trip, drop tail, are a choice. Packets of 500 bytes,
starts in the first five seconds; 200 s for their 600, all of which count, as there; throughput is
given as of 600 s. Judged is the order of the schemes, not what each figure is.
Their jitter is 600 s over the packets received, so that it says what throughput says; here it is
RFC 3550's.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
from functools import partial
from itertools import combinations, product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from bands import BULK, Flows, link  # noqa: E402
from papers import Figure, Paper  # noqa: E402

from paqm_lab import topology  # noqa: E402
from paqm_lab.topology import in_a_row, netem  # noqa: E402

BOTTLENECK, PACKET = 5e6, 500
ROUND_TRIPS = (100, 300)  # ms
SECONDS, START = 200.0, 5.0
THEIRS = 600.0  # s
SEEDS = (1, 2, 3)
CONTROLLERS = {"rap": "rap", "tfrc": "tfrc", "tear": "tear",
               "naive": "naive:lower=28800,upper=150000,step=5000"}
# Bytes received and loss ratio of the class.
PUBLISHED = {
    10: {"rap": (77_044_000, 0.041801), "tfrc": (56_083_000, 0.018696),
         "tear": (56_194_000, 0.026219), "naive": (92_910_000, 0.030799)},
    100: {"rap": (125_344_000, 0.166149), "tfrc": (18_625_000, 0.107827),
          "tear": (132_290_000, 0.204723), "naive": (306_876_500, 0.391792)},
}


def _queue(rtt_ms: int) -> int:
    """Packets of one product of rate and round trip."""
    return round(BOTTLENECK * rtt_ms / 1e3 / 8 / PACKET)


def _figures() -> dict[str, Figure]:
    all_of_them: dict[str, Figure] = {}
    for rtt_ms, (count, schemes) in product(ROUND_TRIPS, PUBLISHED.items()):
        case = f"{count}, {rtt_ms} ms"
        for name, (got, lost) in schemes.items():
            all_of_them |= {
                f"{case}, {name}: throughput": Figure(published=got / 1e6, unit="MB"),
                f"{case}, {name}: loss": Figure(published=100 * lost, unit="%"),
                f"{case}, {name}: jitter": Figure(unit="ms"),
                f"{case}, {name}: share beside TCP": Figure()}
        all_of_them |= {
            f"{case}: loss of tfrc over the least of others": Figure(
                high=1, published=_least(schemes["tfrc"][1], [
                    lost for name, (_, lost) in schemes.items() if name != "tfrc"])),
            f"{case}: pairs in the published order of loss": Figure(low=6, published=6),
            f"{case}: pairs in the published order of throughput": Figure(low=6, published=6)}
    return all_of_them


def _least(one: float, others: list[float]) -> float:
    return round(one / min(others), 3)


PAPER = Paper(
    "slides", "N beside N TCP flows, as on the slides of 2001",
    f"N = 10 and 100, {BOTTLENECK / 1e6:.0f} Mbit/s, packets of {PACKET} bytes, {SECONDS:.0f} s, "
    f"{len(SEEDS)} seeds (`streamer/lab/slides.py`). Their bottleneck is not the 0.5 Mbit/s that "
    "they say; round trip and queue are not known: " + " and ".join(
        f"{rtt_ms} ms with {_queue(rtt_ms)} packets" for rtt_ms in ROUND_TRIPS) +
    " here; the codes are those of ns-2. So judged is the order only, pair by pair.", _figures())
SCHEMES = {"slides": PAPER}


def build(rtt_ms: int) -> None:
    """s -- r == d: what leaves r towards d is the bottleneck; d's way back has the delay."""
    net = in_a_row("s", "r", "d", mtu=PACKET)
    topology.remove(net)
    net.queue("d", "d0", "root", *netem(rtt_ms))
    net.shape("r", "r1", round(BOTTLENECK * (PACKET + 14) / PACKET),
              f"pfifo limit {_queue(rtt_ms)}")
    topology.make(net)


def once(
    tool: str, name: str, count: int, rtt_ms: int, seed: int,
) -> tuple[float, float, float, float]:
    """MB received by the class, its loss and mean jitter, and its part of all that passed."""
    dice = random.Random(f"{count} {seed}")
    with tempfile.TemporaryDirectory() as home:
        build(rtt_ms)
        flows = Flows(tool, CONTROLLERS[name], Path(home), SECONDS + 3)
        for n in range(count):
            flows.start("d", tool, "recv", 6000 + n, flows.left(), flows.home / f"r{n}.csv")
        flows.start("d", *BULK, "--port", 20000, "--flows", count, "--seconds", flows.left(),
                    "--at-once", 32768)
        flows.until(2)
        starts = sorted(dice.uniform(0, START) for _ in range(count))
        flows.start("s", *BULK, "--port", 20000, "--to", "10.2.0.2", "--congestion-control", "reno",
                    "--starts", ",".join(f"{start:.4f}" for start in starts), "--seconds",
                    SECONDS - 2)
        for n, start in enumerate(sorted(dice.uniform(0, START) for _ in range(count))):
            flows.until(2 + start)
            flows.start("s", tool, "send", f"10.2.0.2:{6000 + n}", flows.controller,
                        SECONDS - 2 - start, 20e6, 1000 * seed + n, flows.home / f"s{n}.csv",
                        f"packet={PACKET}")
        flows.finish()
        _, _, passed = link()
        last = [flows.log(f"r{n}")[-1] for n in range(count)]
        sent = sum(flows.log(f"s{n}")[-1]["sent"] for n in range(count))
        got = sum(row["bytes"] for row in last)
        lost = 1 - sum(row["packets"] for row in last) / sent
    return (got / 1e6 * THEIRS / SECONDS, 100 * max(0.0, lost),
            1000 * statistics.mean(row["jitter"] for row in last), got / passed)


def concordant(ours: dict[str, float], theirs: dict[str, float]) -> int:
    return sum((ours[a] < ours[b]) == (theirs[a] < theirs[b])
               for a, b in combinations(theirs, 2))


def case(count: int, rtt_ms: int, tool: str) -> None:
    got = {name: [once(tool, name, count, rtt_ms, seed) for seed in SEEDS] for name in CONTROLLERS}
    title = f"{count}, {rtt_ms} ms"
    for name, runs in got.items():
        for number, what in enumerate(("throughput", "loss", "jitter", "share beside TCP")):
            PAPER.judge(f"{title}, {name}: {what}", *(run[number] for run in runs))
    mean = [{name: statistics.mean(run[number] for run in runs) for name, runs in got.items()}
            for number in (0, 1)]
    PAPER.judge(f"{title}: loss of tfrc over the least of others",
                _least(mean[1]["tfrc"], [mean[1][name] for name in got if name != "tfrc"]))
    for number, what in ((1, "loss"), (0, "throughput")):
        PAPER.judge(f"{title}: pairs in the published order of {what}", concordant(
            mean[number], {name: row[number] for name, row in PUBLISHED[count].items()}))


CASES = {f"{count}-{rtt_ms}": partial(case, count, rtt_ms)
         for count, rtt_ms in product(PUBLISHED, ROUND_TRIPS)}


if __name__ == "__main__":
    sys.exit(PAPER.run(CASES))
