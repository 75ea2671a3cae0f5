# SPDX-License-Identifier: GPL-2.0
"""The rate controllers of the literature side by side, each against its bands (bands.py, and for
those that go by marks marked.py), among its like on other paths (paths.py), the experiments of
papers (layers.py, slides.py), and with a real encoder (live.py).

`paqm-lab controllers` runs what is not there yet, one guest per controller, judges all that is
there (OUT/result.json with `checks`), and with --docs writes docs/results/controllers.json and
docs/comparison.md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from textwrap import wrap
from typing import Any

TOP = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TOP / "testbed"), str(TOP / "streamer" / "lab"),
                str(TOP / "kernel" / "lab-tests")]
import bands  # noqa: E402
import layers  # noqa: E402
import live  # noqa: E402
import marked  # noqa: E402
import paths  # noqa: E402
import slides  # noqa: E402
from papers import Paper  # noqa: E402

from paqm_lab import cache, suite  # noqa: E402
from paqm_lab.checks import Check, entry, print_table  # noqa: E402
from paqm_lab.errors import LabError  # noqa: E402

Json = dict[str, Any]

LAB = TOP / "testbed" / "paqm-lab"
DATA = TOP / "docs" / "results" / "controllers.json"
PAGE = TOP / "docs" / "comparison.md"
SOURCES = ("streamer/control/*.[ch]", "streamer/lab/ctl_flow.c", "streamer/lab/bands.py",
           "streamer/lab/marked.py", "streamer/lab/layers.py", "streamer/lab/papers.py",
           "streamer/lab/paths.py", "streamer/lab/slides.py", "streamer/rtp/probe.[ch]",
           "kernel/*dcbt*.[ch]", "core/paqm_red.h", "testbed/kernel/*",
           "testbed/image/packages.lock")
PAPERS: dict[str, Paper] = {**layers.SCHEMES, **slides.SCHEMES}
SCHEMES: dict[str, bands.Scheme | marked.Marked | Paper] = {
    **bands.SCHEMES, **paths.PATHS, **marked.SCHEMES, **PAPERS}
# Those with cases of their own, and the program that runs them.
PROGRAMS = (dict.fromkeys(marked.SCHEMES, "marked.py") | dict.fromkeys(layers.SCHEMES, "layers.py")
            | dict.fromkeys(slides.SCHEMES, "slides.py") | dict.fromkeys(paths.PATHS, "paths.py"))
LIMIT_S = 7200  # wall seconds of a guest: a loaded machine is many times slower
QUEUES = ("tail", "red")

HEAD = """# Rate controllers side by side

Controllers of `paqm-streamer`, as sources that always have data (`streamer/lab/ctl_flow.c`), so
that no encoder hides what they do. One bottleneck of 10 Mbit/s, round trip 40 ms, packets of 1000
bytes, a queue of 50 packets (tail) or gentle RED (`sch_dcbt`) from 10 to 30 of them, virtual
time; figures of 60 to 180 s. None hears a router: what a stream does that is told its rate is in
[results.md](results.md) and [mixed.md](mixed.md).

```
make controllers                                # all, out/controllers/result.json
testbed/paqm-lab controllers --schemes rap,tear # some
```

This file is made from `docs/results/controllers.json` by `paqm-lab controllers --docs`; do not
edit it.

* *use*: of the link by one flow; *loss*, *delay* (in the queue, mean) and *Jain*: of four flows;
  *share*: of two beside two TCP Reno (0.5 is a fair half);
* *answer*: from a cut of the link to 4 Mbit/s until no more than 1.1 times that is sent;
  *recovery*: from its return until the receiver has 0.8 of what it had;
* *silent*: rate after a while without reports, of the rate before;
* *TCP's share*: of what would be fair for it; *answer* and *recovery* of live pictures: from the
  arrival of TCP until no more than 1.1 times the fair share is sent, and from its end until 0.8 of
  the rate before, by the mean of the last second: 1.1 s at the least. No figure: never;
* *rate at 1 %*: at so much random loss without a queue, of that of Linux's Reno on the same path;
  *variation*: standard deviation over mean of what is sent in 0.2 s then, smooth is little; *TCP*:
  its own rate, Mbit/s, which was 5.68, 2.38 and 0.957 in the reference simulation.

Bands are those of a reference simulation of the same set-up. **Bold** figures are outside of their
band, which stands behind them. [Below](#which-is-which) is what each controller is, and by which
words `paqm-streamer` has it.

"""

# What each is and what it needs, for people who look for one.
NOTES = {
    "tcp-like": (
        "DCCP's CCID 2 (RFC 4341) as a rate: TCP's window over its round trip. For those who "
        "want TCP's behaviour without its retransmission. Needs reports on each packet."
    ),
    "rap": (
        "Rejaie, Handley, Estrin 1999: a packet more per round trip, half after losses, no "
        "memory. Simple, loses most. Needs reports on each packet."
    ),
    "rap-f": (
        "RAP with its fine grain: the gap between packets also follows the round trip, so "
        "that a queue is answered before it overflows."
    ),
    "gaimd": (
        "Yang, Lam 2000, with alpha 0.3125 and beta 7/8: smaller steps than TCP's, up and "
        "down."
    ),
    "gaimd-det": (
        "The same with alpha 0.2, which has TCP's mean where losses come at regular "
        "intervals."
    ),
    "tfrc": (
        "RFC 5348: TCP's equation on loss events. Smooth, and the least loss among those "
        "friendly to TCP."
    ),
    "tear": (
        "Rhee, Ozdemir, Yi 2000: the mean of the window that TCP would have. Smoothest. A "
        "reconstruction."
    ),
    "lda+": (
        "Sisalem, Wolisz 2000, with RTCP's interval of 5 s: needs receiver reports only. "
        "Slow."
    ),
    "lda+1s": (
        "The same with a decision per second."
    ),
    "cadpc": (
        "Welzl 2003: half of what is free, by byte counters of the routers; no loss, no queue, and "
        "nothing beside TCP in the same queue. Counters come straight from the bottleneck here: "
        "where nothing tells them it is TFRC. Not compared with the papers again."
    ),
    "adivis": (
        "Antoniou and others 2007: a fuzzy controller on the shares of lost and of marked packets; "
        "slow and smooth up, fast down. For paths whose routers mark (RED with ECN). Its equations "
        "are a reconstruction."
    ),
    "layered-probing": (
        "Wang, Hsiao 2010: layers that trains of the stream's own packets add and losses take "
        "away; for streams in few steps that should change seldom. Needs a receiver that measures "
        "trains (`recv --controller layered-probing`), packets that keep their gaps up to the "
        "bottleneck (no bucket that lets a train through), one queue for all; with `binary` the "
        "first rate is found by bisection."
    ),
    "naive": (
        "The application of the slides that heeds nobody: bounds 0.5 and 3 Mbit/s, steps of "
        "0.1. Its use of the link is what its upper bound allows."
    ),
}

# Of figures outside of their bands, each with what was seen in its trace.
REASONS = {
    "adivis, tcp: video over TCP":
        "2.5 to 3.1 in six runs. RED drops TCP's packets and marks the stream's, which answers a "
        "mark by 5 % at the most.",
    "adivis, layers 128 kbit/s: loss":
        "for an eighth of the time it tries the layer of 192 kbit/s, half as much again as the "
        "link carries; RED is above its upper threshold then, and drops (52 and 51 of 1530 packets "
        "in the two runs that were looked at; none was lost otherwise).",
    **{f"adivis, far {kbit} kbit/s: rate of that when near":
       "the slower loop does not show: one run differs from the next by a fifth, near and far."
       for kbit in marked.LONG_LINKS},
    **{f"lda+, change {queue}: rate after silence":
       "the report that was under way when it fell silent raised the rate once more." for queue in
       QUEUES},
    "lda+1s, loss 5 %: rate against TCP's":
        "TCP's own rate there, in one run of 100 s, is 0.90 to 0.94 Mbit/s; beside 0.90 it was "
        "0.88.",
    **{f"layered-probing, estimate {load} %, layered-probing: mean error":
       "a bound, most of it: cross traffic with Pareto gaps differs between the time of all trains "
       f"and the 3.7 s that the estimate is judged by by {least} % of C in the mean, between that "
       f"of the last train and those by {most} % (drawn a thousand times). An estimator that "
       "made no error at all would be as far off."
       for load, least, most in ((20, 4.3, 5.7), (40, 5.5, 8.6), (60, 7.2, 10.8))},
    "layered-probing, tcp: Jain":
        "the queue decides, and the paper does not say it: TCP has 0.71 of both with 30 packets, "
        "0.36 to 0.39 with 12. Where half of TCP's window still fills the link the delay never "
        "ceases to rise, and no probe succeeds.",
    **{f"layered-probing, own: {what}":
       "ladder and link fit exactly: 20 and 10 layers of 100 kbit/s fill 3 Mbit/s without a loss, "
       "so no probe succeeds and nobody gives way (seeds 1 and 2 stand still for a hundred "
       "seconds). With 12 packets of queue a failed probe costs a packet, and they meet."
       for what in ("Jain", "apart from 60 s on")},
    **{f"layered-probing, rtt {ratio}: Jain over that of tfrc":
       "TFRC (RFC 5348) is fairer here than the one that the paper measured: 1.0 at equal round "
       "trips, where the paper has 0.78." for ratio in layers.RATIOS},
    f"layered-probing, varying: over {layers.TFRC}":
        "TFRC and TCP keep the queue full here and use all that is free, so nobody can use more.",
    **{f"slides, 10, {rtt_ms} ms: pairs in the published order of loss":
       "tfrc loses least and rap most, as on the slides; of tear and naive, a tenth apart, "
       "the order is the other one, for the reason that follows."
       for rtt_ms in slides.ROUND_TRIPS},
    **{f"slides, 10, {rtt_ms} ms: pairs in the published order of throughput":
       "naive is bounded to 150 kbit/s, and the fair share of 20 flows is 250, which the others "
       "take. That naive had most of all needs a bottleneck of some 2 Mbit/s; its 4.09 Mbit/s at "
       "N = 100 need more than 4. Both cannot hold of one link."
       for rtt_ms in slides.ROUND_TRIPS},
    "slides, 100, 300 ms: pairs in the published order of loss":
        "rap loses more than tear, see 100 ms; the slides have 0.17 and 0.20.",
    "slides, 100, 300 ms: pairs in the published order of throughput":
        "rap has more than tear; the slides have 125 and 132 MB.",
    "slides, 100, 100 ms: pairs in the published order of loss":
        "a share of 25 kbit/s is one packet and a half in a round trip, full queue included. One "
        "more in each without a loss and half after one come to rest at 40 % lost, and the shorter "
        "the round trip, the more. The slides' 17 % of rap fit a longer one: 300 ms give 11 %.",
    "slides, 100, 100 ms: pairs in the published order of throughput":
        "rap adds a packet in each of these short round trips, and tear follows; naive, which has "
        "most on the slides, adds 5 kbit/s.",
}


PATHS_TEXT = (
    "Each among flows of its own kind, a queue of 40 ms, drop tail (`streamer/lab/paths.py`, one "
    "seed). Five flows join 30 Mbit/s 10 s apart, stay for a minute each, and leave: how far they "
    "are off the fair share in the mean of all their seconds, what is lost, and how long the "
    "slowest takes to 0.8 of its share. Three flows through 10 Mbit/s with round trips of 40, 120 "
    "and 240 ms: the share of the nearest and of the farthest, of a fair one, from 60 s on. Two "
    "flows of 112 ms over three links of 10 Mbit/s, two of 28 ms over each of them: the shares of "
    "both, of 2.5 Mbit/s. With P-AQM shares do not depend on round trips, and the long flows of a "
    "parking lot have theirs ([laws.md](laws.md)). `naive` sends up to 15 Mbit/s here.")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def stamp() -> str:
    """Fingerprint of what shapes a result."""
    paths = sorted(path for pattern in SOURCES for path in TOP.glob(pattern) if path.is_file())
    return cache.digest(*[str(p.relative_to(TOP)).encode() + p.read_bytes() for p in paths])


def run(name: str, out: Path, now: str) -> str | None:
    """One controller in a guest of its own; what went wrong, or nothing."""
    home = out / "runs" / name
    file = home / "bands.json"
    known = home / "stamp"
    if known.exists() and known.read_text() == now and file.exists():
        return None
    home.mkdir(parents=True, exist_ok=True)
    known.unlink(missing_ok=True)
    file.unlink(missing_ok=True)
    say(f"controllers: {name}")
    with (home / "output.log").open("wb") as log:
        # Its status says whether all bands hold, which is judged here.
        subprocess.run(
            [LAB, "exec", "--timeout", str(LIMIT_S), "--dir", home,
             TOP / "streamer/lab" / PROGRAMS.get(name, "bands.py"),
             TOP / "build/streamer/tests/ctl_flow", file, name],
            stdout=log, stderr=log, check=False)
    wanted = set(SCHEMES[name].bands())
    have = {row["name"] for row in json.loads(file.read_text())} if file.exists() else set()
    if have != wanted:
        return f"{name}: {len(have)} of {len(wanted)} figures, see {home / 'output.log'}"
    known.write_text(now)
    return None


def run_live(name: str, out: Path) -> str | None:
    """A scenario; it goes on where it was."""
    say(f"controllers: {name}")
    home = out / "runs" / name
    done = subprocess.run([LAB, "run", name, "--out", home], check=False).returncode
    return f"{name}: no result, see {home}" if done not in (0, 1) else None


def collect(out: Path, earlier: Json) -> Json:
    """All figures that there are, newer ones before earlier ones."""
    schemes = dict(earlier.get("schemes", {}))
    for name in SCHEMES:
        file = out / "runs" / name / "bands.json"
        # Of papers what there is: their cases are hours of work.
        if (out / "runs" / name / "stamp").exists() or (name in PAPERS and file.exists()):
            schemes[name] = {"controller": SCHEMES[name].controller,
                             "figures": json.loads(file.read_text())}
    found = dict(earlier.get("live", {}))
    for name, scenario in live.SCENARIOS.items():
        if (out / "runs" / name / "result.json").exists():
            found[name] = live.collect(scenario, out / "runs" / name)
    return {"format": 1, "schemes": {name: schemes[name] for name in SCHEMES if name in schemes},
            "live": {name: found[name] for name in live.SCENARIOS if name in found}}


# What the specification says of one scheme beside another: figure, scheme, at most so many times
# that of the other.
ORDER = (
    ("b tail: loss", "rap-f", 0.5, "rap"), ("b red: loss", "rap-f", 0.5, "rap"),
    ("b tail: loss", "tfrc", 1, "naive"), ("b red: loss", "tfrc", 1, "naive"),
    ("loss 1 %: variation", "tear", 1, "tfrc"), ("loss 1 %: variation", "gaimd", 1, "tfrc"),
    ("loss 1 %: variation", "tfrc", 1, "rap"),
)


def figure_of(data: Json, scheme: str, name: str) -> float | None:
    for row in data["schemes"].get(scheme, {}).get("figures", ()):
        if row["name"] == name:
            return float(row["value"])
    return None


def checks(data: Json) -> list[Check]:
    rows: list[Check] = []
    for name, one, times, other in ORDER:
        mine, theirs = figure_of(data, one, name), figure_of(data, other, name)
        if mine is not None and theirs is not None:
            rows.append(entry(one, f"{name}, of that of {other}", round(mine / theirs, 4), "<=",
                              times, "", f"runs/{one}/bands.json"))
    for name, scheme in data["schemes"].items():
        for figure in scheme["figures"]:
            for relation, end in ((">=", "low"), ("<=", "high")):
                if figure[end] is not None:
                    rows.append(entry(name, figure["name"], figure["value"], relation, figure[end],
                                      figure["unit"], f"runs/{name}/bands.json"))
    for name, variants in data["live"].items():
        source = f"runs/{name}/result.json"
        if name == "avcs":
            rows += [entry(one, what, value, ">=", 0, "", source)
                     for one, what, value in live.order(variants)]
        else:  # it runs: pictures come that can be seen
            rows += [entry(one, "VMAF of live pictures", figures["VMAF"], ">=", 30, "", source)
                     for one, figures in variants.items()]
    return rows


def _live(data: Json) -> list[str]:
    lines: list[str] = []
    for name, variants in data["live"].items():
        scenario = live.SCENARIOS[name]
        lines += [f"## {scenario.title}", "", *wrap(scenario.text, 100), "",
                  *live.table(scenario, variants), ""]
    return lines


def _cell(figures: dict[str, Json], name: str) -> str:
    figure = figures.get(name)
    if figure is None:  # of a run before there was such a figure
        return ""
    if figure["pass"]:
        return f"{figure['value']:.3g}"
    low, high = figure["low"], figure["high"]
    value = f"{figure['value']:.3g}"
    if float(value) in (low, high):  # not what is outside of the band
        value = f"{figure['value']:.4g}"
    band = f"{low} to {high}" if low is not None and high is not None else (
        f"at least {low}" if high is None else f"at most {high}")
    return f"**{value}** ({band})"


def _side_by_side(data: Json) -> list[tuple[str, Json]]:
    """Those that go through the same cases."""
    return [(name, one) for name, one in data["schemes"].items() if name in bands.SCHEMES]


def _bands(data: Json) -> list[str]:
    """Tables of controllers whose figures are their own."""
    lines: list[str] = []
    for name, scheme in data["schemes"].items():
        if name not in marked.SCHEMES:
            continue
        lines += [f"## `{name}` where routers mark", "",
                  "RED of 10 to 30 packets with weight 1/16 that marks, 10 ms each way, constant "
                  "cross traffic that is not ECN-capable (`streamer/lab/marked.py`).", "",
                  "| figure | value | band |", "|---|--:|---|"]
        for row in scheme["figures"]:
            ends = [f"{row[end]:.4g}" if row[end] is not None else "" for end in ("low", "high")]
            value = f"{row['value']:.3g} {row['unit']}".strip()
            value = value if row["pass"] else f"**{value}**"
            lines.append(f"| {row['name']} | {value}{_apart(row)} | "
                         f"{' to '.join(ends).strip()} |")
        lines.append("")
    return lines


def _paths(data: Json) -> list[str]:
    """The table of what paths.py has measured."""
    there = {name.removeprefix(paths.PREFIX): {row["name"]: row for row in scheme["figures"]}
             for name, scheme in data["schemes"].items() if name in paths.PATHS}
    if not there:
        return []
    lines = ["## Flows that come and go, round trips, a parking lot", "", *wrap(PATHS_TEXT, 100),
             "", "| controller | off its share, % | loss, % | joined, s | at 40 ms, % | "
             "at 240 ms, % | Jain | long, % | short, % | Jain |",
             "|---|" + "--:|" * len(paths.FIGURES)]
    for name, figures in there.items():
        cells = [_cell(figures, what) for what in paths.FIGURES]
        lines.append(f"| {'TCP Reno' if name == paths.RENO else f'`{name}`'} | "
                     + " | ".join(cells) + " |")
    return [*lines, ""]


def _apart(row: Json) -> str:
    """How far the runs are apart of which a figure is the mean."""
    runs = row.get("runs")
    return f" ({min(runs):.3g} to {max(runs):.3g})" if runs and min(runs) != max(runs) else ""


def _papers(data: Json) -> list[str]:
    """Tables of papers' experiments."""
    lines: list[str] = []
    for name, scheme in data["schemes"].items():
        if name not in PAPERS:
            continue
        lines += [f"## {PAPERS[name].title}", "", *wrap(PAPERS[name].text, 100), "",
                  "| figure | published | here | band |", "|---|--:|--:|---|"]
        for row in scheme["figures"]:
            value = f"{row['value']:.4g}"
            ends = [(word, row[end]) for word, end in (("at least", "low"), ("at most", "high"))
                    if row[end] is not None]
            band = ", ".join(f"{word} {end:g}" for word, end in ends)
            known = "" if row["published"] is None else f"{row['published']:.4g}"
            lines.append(f"| {row['name']}{', ' + row['unit'] if row['unit'] else ''} | {known} | "
                         f"{value if row['pass'] else f'**{value}**'}{_apart(row)} | {band} |")
        there, all_of = len(scheme["figures"]), len(PAPERS[name].figures)
        if there < all_of:
            lines += ["", f"{there} of {all_of} figures; the others have not been run."]
        lines.append("")
    return lines


def _missed(data: Json) -> list[str]:
    """Why figures are outside of their bands: those that are, and have a reason here."""
    missed = {f"{name}, {figure['name']}" for name, scheme in data["schemes"].items()
              for figure in scheme["figures"] if not figure["pass"]}
    lines = [f"* {what}: {why}" for what, why in REASONS.items() if what in missed]
    return ["", "## What misses its band, and why", "", *lines] if lines else []


def page(data: Json) -> str:
    """docs/comparison.md."""
    lines = [HEAD.rstrip(), ""]
    for queue, title in zip(QUEUES, ("A queue of 50 packets", "Gentle RED"), strict=True):
        lines += [f"## {title}", "", "| controller | use | loss, % | delay, ms | Jain | share | "
                  "answer, s | recovery, s | silent |", "|---|--:|--:|--:|--:|--:|--:|--:|--:|"]
        for name, scheme in _side_by_side(data):
            figures = {row["name"]: row for row in scheme["figures"]}
            cells = [_cell(figures, f"{where} {queue}: {what}") for where, what in (
                ("a", "use of the link"), ("b", "loss"), ("b", "delay"), ("b", "Jain"),
                ("c", "share beside as many TCP"), ("change", "answer"), ("change", "recovery"),
                ("change", "rate after silence"))]
            lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
        lines.append("")
    columns = [(what, loss) for what in ("rate against TCP's", "variation", "rate of TCP")
               for loss in ("0.2", "1", "5")]
    names = [f"{'TCP' if what == 'rate of TCP' else what.partition(' ')[0]} at {loss} %"
             for what, loss in columns]
    lines += ["## Random loss", "", f"| controller | {' | '.join(names)} |",
              "|---|" + "--:|" * len(names)]
    for name, scheme in _side_by_side(data):
        figures = {row["name"]: row for row in scheme["figures"]}
        cells = [_cell(figures, f"loss {loss} %: {what}") for what, loss in columns]
        lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
    lines += ["", *_paths(data), *_live(data), *_bands(data), *_papers(data),
              "## Which is which", ""]
    for name, scheme in data["schemes"].items():
        if name in NOTES:
            row = "" if name == scheme["controller"] else f"`{name}`: "
            lines.append(f"* {row}`--controller {scheme['controller']}`: {NOTES[name]}")
    lines += _missed(data)
    failed = sum(not check["pass"] for check in checks(data))
    lines += ["", f"{len(checks(data))} checks, {failed} outside of their bands."]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--out", type=Path, default=TOP / "out" / "controllers",
                        help="for the results (%(default)s)")
    parser.add_argument("--schemes", metavar="NAME,...", help="only these of "
                        f"{', '.join([*SCHEMES, *live.SCENARIOS])}")
    parser.add_argument("--judge", action="store_true", help="run nothing, judge what is there")
    parser.add_argument("--docs", action="store_true",
                        help="run nothing, write docs/comparison.md and its data")
    args = parser.parse_args()
    out = args.out.resolve()
    try:
        names = args.schemes.split(",") if args.schemes else [*SCHEMES, *live.SCENARIOS]
        for name in names:
            if name not in SCHEMES and name not in live.SCENARIOS:
                raise LabError(f'there is no "{name}"; there are '
                               f'{", ".join([*SCHEMES, *live.SCENARIOS])}')
        failed = []
        if not (args.judge or args.docs):
            now = stamp()
            each = (run_live(name, out) if name in live.SCENARIOS else run(name, out, now)
                    for name in names)
            failed = [line for line in each if line]
        data = collect(out, suite.earlier(DATA) if args.docs else {})
        if not data["schemes"] and not data["live"]:
            raise LabError(f"{out}: no runs here; run some first")
    except LabError as err:
        say(f"paqm-lab: {err}")
        return 2
    if args.docs:
        DATA.write_text(suite.as_json(data))
        PAGE.write_text(page(data))
        say(f"controllers: {DATA}\ncontrollers: {PAGE}")
        return 0
    out.mkdir(parents=True, exist_ok=True)
    (out / "result.json").write_text(suite.as_json(
        {**data, "scenario": "controllers", "checks": checks(data)}))
    for line in failed:
        say(line)
    return print_table(out) or bool(failed)


if __name__ == "__main__":
    sys.exit(main())
