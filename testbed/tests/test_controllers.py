# SPDX-License-Identifier: GPL-2.0
"""`paqm-lab controllers`: figures of live pictures by hand, ranks, what the page says of misses."""

import json
from pathlib import Path
from typing import Any

import pytest

LAB = Path(__file__).resolve().parents[2] / "streamer" / "lab"


@pytest.fixture(autouse=True)
def lab_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    for path in (LAB, LAB.parents[1] / "kernel" / "lab-tests"):
        monkeypatch.syspath_prepend(str(path))


def write(home: Path, rates: list[tuple[float, float | None, float]], wire: list[int]) -> None:
    send = home / "flows" / "a" / "send"
    send.mkdir(parents=True)
    (home / "series").mkdir()
    (home / "run.json").write_text(json.dumps({"t0_ns": 10**18}))
    lines = [f"{t},{'' if a is None else a},{share}" for t, a, share in rates]
    (home / "series" / "rates.csv").write_text("t,a,share_a\n" + "\n".join(lines) + "\n")
    pictures = [f"{10**18 + round((5 + 0.1 * n) * 1e9)},P,{size}" for n, size in enumerate(wire)]
    (send / "frames.csv").write_text("t_ns,type,wire_bytes\n" + "\n".join(pictures) + "\n")


def test_live_figures(tmp_path: Path) -> None:
    import live

    # 2 Mbit/s until TCP comes at 10 s, half at 13 s, 1.7 again at 23.5 s
    rates = [(t / 10, 2.0 if t < 130 else 1.0 if t < 235 else 1.7, 2.0 if t < 100 else 1.0)
             for t in range(300)]  # fmt: skip
    write(tmp_path, rates, [100, 300] * 25)  # of 5 s; each 0.2 s has 400 bytes
    variant = {"figures": {"elastic_share_percent": {"mean": 97.0}},
               "flows": {"a": {"mean_mbit": 1.5, "loss": {"percent": 2.5}, "picture": None,
                               "sojourn_ms": {"p50": 3.0, "p95": 9.0}}}}  # fmt: skip
    got = live.figures_of(live.SCENARIOS["avcs"], tmp_path, variant)
    assert got["answer, s"] == pytest.approx(3.0)
    assert got["recovery, s"] == pytest.approx(3.5)
    assert got["variation"] == pytest.approx(0, abs=1e-9)
    assert (got["TCP's share, %"], got["VMAF"], got["loss, %"]) == (97.0, None, 2.5)
    row = live.table(live.SCENARIOS["avcs"], {"rap-h264": got})[2]
    assert row == "| `rap-h264` | 1.5 | 2.5 | 3 | 9 | 0 | 3 | 3.5 | 97 |  |  |"


def test_variation_by_hand(tmp_path: Path) -> None:
    import live

    write(tmp_path, [], [100, 100, 300, 300] * 12 + [100, 100])  # 0.2 s have 200 or 600 bytes
    # 13 of 200 and 12 of 600 in 25 bins
    assert live.variation(tmp_path, 5, 10) == pytest.approx(199.84 / 392, rel=1e-3)


def test_modes_are_ranked() -> None:
    import live

    scores = {"h264": 90, "mjpeg": 60, "raw": 70}
    rows: dict[str, Any] = {f"rap-{mode}": {"VMAF": vmaf} for mode, vmaf in scores.items()}
    assert live.order(rows)[:2] == [("rap", "VMAF of h264 over that of mjpeg", 30),
                                    ("rap", "VMAF of mjpeg over that of raw", -10)]  # fmt: skip
    assert live.order(rows)[2][2] is None


def test_slides_are_ranked() -> None:
    import slides

    ten = {name: row[1] for name, row in slides.PUBLISHED[10].items()}
    assert slides.concordant(ten, ten) == 6
    assert slides.concordant({name: -value for name, value in ten.items()}, ten) == 0
    beside = "100, 300 ms: loss of tfrc over the least of others"
    assert slides.PAPER.figures[beside].published == 0.649


def test_random_graphs_are_connected_and_their_seeds() -> None:
    import graph

    for seed in range(5):
        edges = graph.edges(graph.NODES, seed)
        ends = [end for edge in edges for end in edge]
        assert len(set(edges)) == len(edges) == 3 + graph.LINKS * (graph.NODES - 3)
        assert min(ends.count(node) for node in range(graph.NODES)) >= graph.LINKS
        assert set(graph.hops(edges, seed)) == set(range(graph.NODES))
        assert edges == graph.edges(graph.NODES, seed) != graph.edges(graph.NODES, seed + 1)
    assert graph.hops([(0, 1), (1, 2), (2, 3), (0, 3), (3, 4)], 1) == {0: 1, 1: 0, 2: 1, 3: 2, 4: 3}


def test_page_explains_and_bears_gaps(monkeypatch: pytest.MonkeyPatch) -> None:
    import controllers

    figure = {"name": "a red: use of the link", "value": 0.4, "low": 0.55, "high": None,
              "unit": "", "pass": False}  # fmt: skip
    close = {**figure, "value": 0.5496}  # not what its band begins with
    data = {"schemes": {"rap": {"controller": "rap", "figures": [figure]},
                        "rap-f": {"controller": "rap:fine=1", "figures": [close]}},
            "live": {}}  # fmt: skip
    monkeypatch.setattr(controllers, "REASONS", {"rap, a red: use of the link": "as it is",
                                                 "rap, b red: loss": "not missed"})  # fmt: skip
    text = controllers.page(data)
    assert "| `rap` | **0.4** (at least 0.55) |  |" in text
    assert "| `rap-f` | **0.5496** (at least 0.55) |" in text
    assert "* `--controller rap`: " in text and "* `rap-f`: `--controller rap:fine=1`: " in text
    assert "* rap, a red: use of the link: as it is" in text and "not missed" not in text
    assert [check["pass"] for check in controllers.checks(data)] == [False, False]
