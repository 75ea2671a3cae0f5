# SPDX-License-Identifier: GPL-2.0
"""The report: one file, no outside references, variants side by side, text made safe."""

from __future__ import annotations

import html
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from synthetic import Faults, write_run

from paqm_lab import analysis, plots, report
from paqm_lab.errors import LabError

VOID = {"meta", "br", "hr", "img", "link", "input"}


class Reader(HTMLParser):
    """Follows the nesting of tags, and collects ids and references."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.wrong: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in ("href", "xlink:href", "src"):
                self.references.append(value or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


def analysed(tmp_path: Path, *titles: str) -> None:
    """A result of two variants, the second with longer waits."""
    write_run(tmp_path)
    write_run(tmp_path, Faults(wait=0.02), variant="other")
    for name, title in zip(("paqm", "other"), titles, strict=False):
        told = json.loads((tmp_path / name / "run.json").read_text())
        told["variant"]["title"] = title
        (tmp_path / name / "run.json").write_text(json.dumps(told))
    analysis.analyse(tmp_path, progress=lambda _: None)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A result with its report, for tests that change neither."""
    out = tmp_path_factory.mktemp("report")
    analysed(out)
    report.write(out)
    return out


@pytest.fixture(scope="module")
def page(made: Path) -> str:
    return (made / "report.html").read_text()


def test_page_is_whole_and_alone(page: str) -> None:
    reader = Reader()
    reader.feed(page)
    assert not reader.wrong
    assert not reader.open
    assert len(reader.ids) == len(set(reader.ids))
    inner = [r[1:] for r in reader.references if r.startswith("#")]
    assert set(inner) <= set(reader.ids)
    # The licence is a link to click on; nothing is fetched.
    assert {r for r in reader.references if not r.startswith("#")} == {
        "https://creativecommons.org/licenses/by/3.0/"
    }
    assert not re.search(r"<(script|link|img|iframe)\b|url\((?!#)|@import", page)
    assert "Two streams &lt;and&gt; TCP" in page
    assert page.count("<svg") == 6
    assert page.count("waits that long") == 1


@pytest.mark.parametrize("title", ['"><script>alert(1)</script>', r"C:\d \1", "round trip, ms: 20",
                                   r"from $\x to $"])
def test_titles_are_text(tmp_path: Path, title: str) -> None:
    """Of a diagram, too; its parts have ids of their own, whatever two titles share."""
    analysed(tmp_path, title, title + "0")
    page = report.write(tmp_path).read_text()
    reader = Reader()
    reader.feed(page)
    assert not reader.wrong and not reader.open
    assert len(reader.ids) == len(set(reader.ids))
    assert "<script" not in page and html.escape(title) in page


def test_best_value_is_marked(page: str) -> None:
    row = re.search(r"<tr><td>95th percentile, ms</td>(.*?)</tr>", page)
    assert row is not None
    cells = re.findall(r'<td class="n( best)?">([^<]*)</td>', row[1])
    # Variants stand in the order of their names.
    assert cells == [("", "20.0"), (" best", "0.5")] or cells == [(" best", "0.5"), ("", "20.0")]
    same = re.search(r"<tr><td>never complete, frames</td>(.*?)</tr>", page)
    assert same is not None
    assert "best" not in same[1]


def test_report_repeats(made: Path, page: str) -> None:
    assert report.write(made).read_text() == page


@pytest.mark.filterwarnings("error")
def test_many_streams(made: Path, tmp_path: Path) -> None:
    """Those of thirty can be read: panels that have a width, a scale that shows their rates."""
    result = json.loads((made / "result.json").read_text())
    variant = result["variants"][0]
    names = [f"m{number}" for number in range(30)]
    series = tmp_path / variant["name"] / "series"
    series.mkdir(parents=True)
    of = made / variant["name"] / "series"
    head, *rows = (of / "quantizer.csv").read_text().splitlines()
    place = head.split(",").index("flow")
    cells = [row.split(",") for row in rows if row.split(",")[place] == "a"]
    many = [",".join([*row[:place], name, *row[place + 1:]]) for name in names for row in cells]
    (series / "quantizer.csv").write_text("\n".join([head, *many]) + "\n")
    columns = [f"{kind}{name}" for name in names for kind in ("", "share_")]
    low = "".join(f"{t}{',0.25' * len(columns)}\n" for t in range(9))
    (series / "rates.csv").write_text(f"t,{','.join(columns)}\n{low}")
    variant["flows"] = dict.fromkeys(names, variant["flows"]["a"])
    result["variants"] = [variant]
    with plots.style():
        rates = plots.rates(result, plots.Series(tmp_path))
        figure = plots.quantizer(variant, result, plots.Series(tmp_path))
        assert figure is not None
        plots.svg(figure, "quantizer")
        plots.svg(rates, "rates")
    shown = [axes for axes in figure.axes if axes.axison]
    assert len(shown) == plots.MOST_PANELS
    assert min(axes.get_position().width for axes in shown) * plots.WIDTH > 1.5
    assert any("18 more" in text.get_text() for text in figure.legends[0].get_texts())
    assert rates.axes[0].get_ylim()[1] < 0.5


def test_series_missing(tmp_path: Path) -> None:
    analysed(tmp_path)
    (tmp_path / "paqm" / "series" / "rates.csv").unlink()
    with pytest.raises(LabError, match="rates.csv is missing"):
        report.write(tmp_path)


def test_no_result(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="result.json"):
        report.write(tmp_path)
