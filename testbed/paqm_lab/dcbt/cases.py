# SPDX-License-Identifier: GPL-2.0
"""What was published of D-CBT and ChIPS, and the bands in which a figure counts as reproduced.

Bands are those of the specification's acceptance checks (SPEC, 7 to 17), which are ours unless the
source gives a number; `printed` is the source's number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paqm_lab.catalogue.row import HIGHER, LOWER, Context, Figure, Row, Values
from paqm_lab.dcbt import figures as of
from paqm_lab.dcbt import model
from paqm_lab.dcbt.figures import CLASSES

SEEDS = (1, 2, 3, 4, 5)
SPEC = "J. Chung, M. Sc. thesis, WPI 2000"
# Fair shares of the main experiment's periods, kbit/s; untagged flows come with the second.
SHARES = {1: 714.0, 2: 675.7, 3: 373.0}
NEAR, LEAST, MOST = 0.15, 0.70, 1.15  # of a share: others' band, least and most of untagged flows
MAIN = "25 TCP flows and 10 MM_APP on 25 Mbit/s, from 10 s on two floods of 5 Mbit/s, from 20 s " \
       "on 30 TCP flows more"
SUBSTITUTES = "Linux's reno without SACK, time stamps and F-RTO, window of 20 segments, for " \
              "ns-2's Reno; it recovers as NewReno, and begins with 10 segments"
MODELLED = "core/tests/dcbt_model.c: the law of the module over simple flows"
SHOWS = "a model, which shows what the figures hang on"
PERIODS = {1: "0 to 10 s", 2: "10 to 20 s", 3: "20 to 30 s"}


def rate(class_: str, period: int, **more: Any) -> Figure:
    """Mean of a class's flows."""
    return Figure(f"{class_}{period}", f"{class_}, {PERIODS[period]}", "kbit/s", **more)


def fair() -> tuple[Figure, ...]:
    """Check 9: every class near its share; and who is tagged has what it holds of the queue."""
    found = []
    for period, share in SHARES.items():
        for class_ in CLASSES:
            if class_ != "untagged":
                found.append(rate(class_, period, low=(1 - NEAR) * share, high=(1 + NEAR) * share,
                                  printed=f"fair, {share:g}"))
            elif period > 1:
                found.append(rate(class_, period, low=LEAST * share, high=MOST * share,
                                  printed=f"most of {share:g}"))
        found.append(Figure(f"jain{period}", f"Jain's index, {PERIODS[period]}", "", low=0.90,
                            better=HIGHER, printed="very fair"))
    return (
        *found,
        *(Figure(f"held_{class_}{n}", f"{class_} to {other}, part of the queue over part of the "
                 f"throughput, {PERIODS[n]}", "", low=0.9, high=1.1, printed="1")
          for class_, other in (("tagged", "TCP"), ("untagged", "tagged"))
          for n in PERIODS if n > 1 or class_ == "tagged"),
        Figure("use", "use of the link from 5 s on", "%", low=94, better=HIGHER,
               printed="slightly more than RED's and CBT's"),
    )  # fmt: skip


def published(tcp: int, tcp_drop: float, tagged: int, tagged_drop: float) -> tuple[Figure, ...]:
    """Tables 4.4.1 and 4.4.2: 30 s as a whole."""
    return (
        Figure("tcp_all", "TCP, all flows", "Mbit/s", low=16.9, high=18.7,
               printed=f"{tcp * 8 / 30e3:.2f} Mbit/s"),
        Figure("tagged_all", "tagged, all flows", "Mbit/s", low=5.1, high=6.1,
               printed=f"{tagged * 8 / 30e3:.2f} Mbit/s"),
        Figure("tcp_drop0", "TCP packets dropped", "%", low=3.0, high=6.0,
               printed=f"{tcp_drop} %"),
        Figure("tagged_drop0", "tagged packets dropped", "%", low=8.0, high=16.0,
               printed=f"{tagged_drop} %"),
        Figure("tcp_packets", "TCP packets delivered", printed=f"{tcp}"),
        Figure("tagged_packets", "tagged packets delivered", printed=f"{tagged}"),
    )  # fmt: skip


def delay(longest: float, jitter: float, **more: Any) -> tuple[Figure, ...]:
    """Of multimedia: mean of the ten flows, where the source has one of them."""
    return (
        Figure("delay_min", "shortest end-to-end delay of MM_APP", "ms", low=30.5, high=31.5,
               printed="31 ms"),
        Figure("delay_max", "longest", "ms", printed=f"{longest:g} ms"),
        Figure("jitter", "longest less shortest", "ms", better=LOWER, printed=f"{jitter:g} ms",
               **more),
        Figure("delay_sd", "standard deviation", "ms"),
    )  # fmt: skip


AVERAGES = tuple(
    Figure(f"{class_}_average3", f"{class_}, average in the queue, 20 to 30 s", "packets")
    for class_ in ("tagged", "untagged")
)
RED = (
    rate("untagged", 2, low=4400, printed="4680", better=LOWER),
    rate("tcp", 2, low=200, high=400, printed="293"),
    rate("tagged", 2, printed="720"),
    Figure("tagged_tcp2", "tagged to TCP, 10 to 20 s", "", low=1.8, printed="2.46"),
    Figure("jain2", "Jain's index, 10 to 20 s", "", high=0.35, printed="at most 0.30"),
    Figure("tcp_fall", "TCP, 20 to 30 s to 10 to 20 s", "", high=1.0, printed="lower again"),
    Figure("tagged_tcp1", "tagged to TCP, 0 to 10 s", "", low=1.1, high=1.6, printed="1.37"),
    Figure("use", "use of the link from 5 s on", "%", low=94, better=HIGHER, printed="near 100"),
)
CBT = (
    Figure("tagged_untagged3", "tagged to untagged, 20 to 30 s", "", low=1.5, high=2.6,
           printed="2.07"),
    Figure("average_order", "the same flows' averages in the queue, untagged to tagged", "",
           low=1.0, printed="1.2"),
    Figure("untagged_most", "untagged, the most", "kbit/s", high=750, printed="design 750"),
    Figure("held_untagged3", "untagged to tagged, part of the queue over part of the throughput, "
           "20 to 30 s", "", low=1.1, printed="2.5"),
    Figure("use", "use of the link from 5 s on", "%", low=94, better=HIGHER, printed="near 100"),
    rate("tagged", 3, printed="657"), rate("untagged", 3, printed="318"),
    rate("tcp", 3, printed="at most 323"),
)  # fmt: skip
FRED = (
    *(rate(class_, n) for n in PERIODS for class_ in CLASSES if n > 1 or class_ != "untagged"),
    *(Figure(f"jain{n}", f"Jain's index, {PERIODS[n]}") for n in PERIODS),
    Figure("tcp_drop0", "TCP packets dropped", "%"),
    Figure("tagged_drop0", "tagged packets dropped", "%"),
    *(Figure(f"{class_}_struck", f"{class_} packets dropped for their flow's share", "%")
      for class_ in CLASSES),
    Figure("use", "use of the link from 5 s on", "%"),
)
MODEL = (
    Figure("tcp_drop0", "TCP packets dropped", "%", printed="4.46 %"),
    Figure("tagged_drop0", "tagged packets dropped", "%", printed="11.85 %"),
    Figure("tcp_packets", "TCP packets delivered", printed="66648"),
    Figure("tagged_packets", "tagged packets delivered", printed="21126"),
    *(rate(class_, n) for n in PERIODS for class_ in CLASSES if n > 1 or class_ != "untagged"),
    *(Figure(f"{id_}{n}", f"{title}, {PERIODS[n]}", unit) for n in (2, 3) for id_, title, unit in (
        ("len", "queue", "packets"), ("deviation", "its standard deviation", "packets"),
        ("tagged_waits", "a tagged packet waits for", "packets"),
        ("untagged_waits", "an untagged one", "packets"))),
)
SETS = (
    Figure("sets", "sets of choices, with either TCP"),
    Figure("sets_all", "of them all of D-CBT's rates and losses within their bands",
           printed="all of the thesis'"),
    Figure("sets_untagged", "untagged rates within"),
    Figure("sets_losses", "losses within"),
    *(Figure(f"{id_}_{end}", f"{title}, the {end}", unit)
      for id_, title, unit in (
          ("untagged2", "untagged, 10 to 20 s", "kbit/s"),
          ("untagged3", "untagged, 20 to 30 s", "kbit/s"),
          ("tcp_drop0", "TCP packets dropped", "%"),
          ("tagged_drop0", "tagged packets dropped", "%"))
      for end in ("least", "most")),
)
MODELS = {
    "reno": ("reno", "TCP as ns-2's Reno of that time"),
    "newreno": ("newreno", "TCP as NewReno with limited transmit, as Linux without SACK"),
    "immediate": ("newreno immediate", "as model.newreno, MM_APP answers a loss at once"),
    "held": ("held", "no TCP, the queue held at 10 packets"),
    "held-immediate": ("held immediate", "as model.held, MM_APP answers a loss at once"),
    "swing-4": ("held swing=4", "no TCP, the queue swings by 4 packets about 10, twice a second"),
    "swing-8": ("held swing=8", "as model.swing-4, by 8 packets"),
    "swing-10": ("held swing=10", "as model.swing-4, by 10 packets, down to none"),
    "held-cbt": ("held cbt", "as model.held, CBT in place of D-CBT"),
    "known": ("newreno known", "as model.newreno, flows not counted but known"),
    "apart": ("newreno immediate apart", "as model.immediate, RED's average updated by what "
              "reaches RED only, against the thesis"),
}  # fmt: skip
PAIRS = (
    Figure("jitter_gain", "longest less shortest delay, D-CBT to ChIPS", "", low=1.5,
           better=HIGHER, printed="2.4"),
    Figure("tcp_kept", "TCP's throughput, ChIPS to D-CBT", "%", low=99, better=HIGHER,
           printed="99.6 %"),
    Figure("tcp_drop_more", "TCP packets dropped, difference of the two", "%", high=0.5,
           better=LOWER, printed="0.02"),
    Figure("tagged_drop_more", "tagged packets dropped, ChIPS more than D-CBT", "%", high=2.0,
           better=LOWER, printed="1.1"),
    Figure("jain_apart", "Jain's index, difference of the two, largest of the periods", "",
           high=0.03, better=LOWER, printed="none to be seen"),
    Figure("jain_red2", "Jain's index, 10 to 20 s: least of the other three less RED's", "",
           low=0.3, better=HIGHER, printed="far", why="RED far below the other three"),
    Figure("jain_cbt3", "Jain's index, 20 to 30 s: CBT's less RED's", "", low=0.0, better=HIGHER,
           printed="more"),
    Figure("jain_dcbt3", "the same: lesser of D-CBT's two less CBT's", "", low=0.0,
           better=HIGHER, printed="more"),
    Figure("use_more", "use of the link from 10 s on, D-CBT more than RED", "%", low=-1.0,
           better=HIGHER, printed="slightly more"),
)  # fmt: skip
def greed(first: dict[str, Any], second: dict[str, Any], printed: tuple[str, ...]) -> tuple[
    Figure, ...
]:
    """Of SIM_MM1 and SIM_MM2; printed: TCP, multimedia, use, Jain of both windows, mean queue."""
    found = [Figure("ratio1", "multimedia to TCP, 5 to 15 s", "", **first),
             Figure("ratio2", "multimedia to TCP, 15 to 25 s", "", **second)]
    of_both = (("tcp", "mean TCP flow", "kbit/s"), ("media", "mean multimedia flow", "kbit/s"),
               ("use", "use of the link", "%"), ("jain", "Jain's index", ""),
               ("average", "average of the queue", "packets"))
    for n, (id_, title, unit) in enumerate(of_both):
        for window, text in ((1, "5 to 15 s"), (2, "15 to 25 s")):
            at = 2 * n + window - 1
            found.append(Figure(f"{id_}{window}", f"{title}, {text}", unit,
                                printed=printed[at] if at < len(printed) else ""))
    return tuple(found)


MM1 = greed(
    {"low": 0.85, "high": 1.2, "printed": "1.01"}, {"low": 1.3, "high": 1.9, "printed": "1.58"},
    ("827.8", "455.0", "839.2", "717.9", "97.0", "93.4", "0.991", "0.938"),
)
MM2 = greed(
    {"published": 1.22}, {"published": 1.76},
    ("762.0", "421.4", "932.6", "743.2", "94.6", "91.7", "0.963", "0.907", "7", "10"),
)
MM_MORE = tuple(
    Figure(f"more{n}", f"multimedia to TCP, {text}: SIM_MM2's less SIM_MM1's", "", low=0.0,
           better=HIGHER, printed=printed)
    for n, text, printed in ((1, "5 to 15 s", "0.21"), (2, "15 to 25 s", "0.18"))
)
BLAST = {
    "cbt": (
        Figure("calm", "TCP without flood", "kbyte/s", low=1034, high=1142, printed="1088",
               why="5 % of what is expected of the thresholds"),
        Figure("blast", "TCP during the flood", "kbyte/s", low=900, better=HIGHER, printed="988"),
        Figure("average", "average of the queue without flood", "packets", printed="26"),
        Figure("average_blast", "during the flood", "packets"),
        Figure("tagged", "conference stream during the flood", "kbit/s", printed="210"),
        Figure("flood", "what the flood gets", "kbit/s", printed="800"),
    ),
    "red": (
        Figure("blast", "TCP during the flood", "kbyte/s", high=494, printed="collapses",
               why="half of what CBT leaves"),
        Figure("calm", "TCP without flood", "kbyte/s"),
        Figure("flood", "what the flood gets", "kbit/s"),
    ),
}  # fmt: skip


def _run(figures: tuple[Figure, ...], make: Callable[..., of.Values], *args: Any) -> Any:
    """The function of a row: of all figures of a run those of the row."""
    names = {figure.id for figure in figures}

    def one(ctx: Context, seed: int) -> Values:
        return {name: value for name, value in make(ctx, *args, seed).items() if name in names}

    return one


def bands() -> dict[str, tuple[float, float]]:
    """Of D-CBT's rates and losses, as the model has them."""
    found = {figure.id: (figure.low or 0.0, figure.high or 0.0)
             for figure in (*fair(), *published(0, 0, 0, 0)) if figure.high is not None}
    rates = [f"{class_}{n}" for n in PERIODS for class_ in CLASSES if n > 1 or class_ != "untagged"]
    for class_ in ("tcp", "tagged"):
        low, high = (30e6 / of.PACKET_BITS * limit for limit in found[f"{class_}_all"])
        found[f"{class_}_packets"] = low, high
    return {name: found[name] for name in (
        *rates, "tcp_packets", "tagged_packets", "tcp_drop0", "tagged_drop0")}


def rows() -> list[Row]:
    """All rows, in the order of the page."""

    def row(
        id_: str, title: str, words: str, figures: tuple[Figure, ...], run: Any, scenario: str,
        held: bool = True, seeds: tuple[int, ...] = SEEDS, substitutes: str = SUBSTITUTES,
        incomparable: str = "",
    ) -> Row:
        return Row(id_, title, words, figures, run, scenario and
                   f"testbed/scenarios/{scenario}.toml", SPEC, seeds=seeds, held=held,
                   substitutes=substitutes, incomparable=incomparable)

    def main(
        queue: str, title: str, words: str, figures: tuple[Figure, ...], **more: Any
    ) -> Row:
        return row(f"main.{queue}", f"main experiment under {title}", words, figures,
                   _run(figures, of.main_run, queue), "dcbt", **more)

    def late(ctx: Context, queue: str, seed: int) -> of.Values:
        return of.main_run(ctx, queue, seed, today=True)

    def now(ctx: Context, queue: str, seed: int) -> of.Values:
        return of.main_run(ctx, queue, seed, immediate=True)

    dcbt = (*fair(), *published(66648, 4.46, 21126, 11.85), *delay(43, 12))
    chips = (*fair(), *published(66386, 4.44, 21519, 12.95), *delay(36, 5, high=7.0),
             Figure("waits_p99", "tagged, 99th percentile of the time in the queue", "ms",
                    high=5.8, better=LOWER, printed="about 5 at the most"),
             Figure("tagged_cut_in", "tagged packets that cut in", "%"))
    shown = tuple(
        Figure(f"{name}{n}", f"{name}, {PERIODS[n]}", "kbit/s") for n in PERIODS
        for name in CLASSES if n > 1 or name != "untagged"
    ) + tuple(Figure(f"jain{n}", f"Jain's index, {PERIODS[n]}") for n in PERIODS)
    return [
        row("mm.1", "SIM_MM1: 5 TCP flows, MM_APP and MPEG_APP on 6 Mbit/s, 20 ms, RED",
            "as fair as TCP at 857 kbit/s a flow, greedier at 600", MM1,
            _run(MM1, lambda ctx, seed: of.mm_run(ctx, 20, seed)), "dcbt-mm"),
        row("mm.2", "SIM_MM2: the same, 60 ms", "greedier than with 20 ms", MM2,
            _run(MM2, lambda ctx, seed: of.mm_run(ctx, 60, seed)), "dcbt-mm", held=False),
        row("mm.more", "SIM_MM2 beside SIM_MM1", "a longer way makes multimedia greedier", MM_MORE,
            _run(MM_MORE, of.mm_pairs), "dcbt-mm"),
        *(row(f"blast.{queue}", f"CBT's validation under {queue.upper()}: 240 TCP flows of small "
              "packets, six conferences, a flood of the link's rate", words, BLAST[queue],
              _run(BLAST[queue], of.blast_run, queue, 1000), "dcbt-cbt", seeds=(1,))
          for queue, words in (("cbt", "TCP keeps most of its throughput"),
                               ("red", "TCP collapses"))),
        row("blast.small", "the same under CBT with a flood of packets of 300 bytes, as TCP's are",
            "not in the source: tells why blast.cbt misses", BLAST["cbt"],
            _run(BLAST["cbt"], of.blast_run, "cbt", 300), "dcbt-cbt", seeds=(1,), held=False),
        row("blast.bytes", "the same under CBT with a threshold for the flood of 0.6 packets",
            "not in the source: as many bytes as two of TCP's packets are", BLAST["cbt"],
            _run(BLAST["cbt"], of.blast_run, "cbt-bytes", 1000), "dcbt-cbt", seeds=(1,),
            held=False),
        main("red", "RED", f"{MAIN}: the floods take what they send", RED),
        main("cbt", "CBT", f"{MAIN}: floods are held, but not to what the thresholds say", CBT),
        main("dcbt", "D-CBT", f"{MAIN}: all are near their share", dcbt),
        main("chips", "D-CBT with ChIPS", f"{MAIN}: the same, with less jitter", chips),
        *(row(f"immediate.{queue}", f"main experiment under {title}, MM_APP answers a loss at once",
              f"{MAIN}: as main.{queue}", figures, _run(figures, now, queue), "dcbt", held=False)
          for queue, title, figures in (("dcbt", "D-CBT", dcbt),
                                        ("chips", "D-CBT with ChIPS", chips))),
        main("fred", "FRED", "not measured in the source", FRED, held=False),
        main("fred-long", "FRED with a queue of 60 to 120 packets", "not measured in the source; "
             "expected is that who adapts and is marked loses whatever exceeds its share", FRED,
             held=False, seeds=(1,)),
        row("pairs", "the queues of the main experiment beside each other",
            "ChIPS lowers jitter and harms nobody; D-CBT is the fairest", PAIRS,
            _run(PAIRS, of.pairs), "dcbt"),
        *(row(f"model.{id_}", f"a model of the main experiment under D-CBT: {title}",
              "as main.dcbt", MODEL, _run(MODEL, model.run, words),
              "", held=False, substitutes=MODELLED, incomparable=SHOWS)
          for id_, (words, title) in MODELS.items()),
        *(row(f"model.{id_}", f"the model with every set of what the thesis leaves open{title}",
              "as main.dcbt", SETS, _run(SETS, model.sets, bands(), reading, runs), "", held=False,
              seeds=(1,), substitutes=MODELLED, incomparable=SHOWS)
          for id_, reading, runs, title in (
              ("sets", "", 3, ", means of three runs"),
              ("sets-own", "own", 1, "; class averages are updated by their own arrivals"),
              ("sets-before", "before", 1, "; classes are tested before averages are updated"),
              ("sets-apart", "apart", 1, "; RED's average is updated by what reaches RED only"))),
        *(row(f"today.{queue}", f"main experiment under {title}, TCP of today",
              "not published", shown, _run(shown, late, queue), "dcbt", held=False, seeds=(1,),
              substitutes="Linux's cubic with SACK, time stamps and its own window, packets of "
              "1000 bytes")
          for queue, title in (("red", "RED"), ("dcbt", "D-CBT"), ("chips", "D-CBT with ChIPS"))),
    ]  # fmt: skip
