# SPDX-License-Identifier: GPL-2.0
"""`paqm-lab browser`: figures by hand, each target can be missed; the extension in a short call."""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paqm_lab import browser, browser_steps, cache, image, kernel, run, scenario
from paqm_lab.errors import LabError

Json = dict[str, Any]
PART: Json = {
    "start_s": 15.0, "stop_s": 30.0, "share_mbit": 1.6, "mean_mbit": 1.55, "share_percent": 96.9,
    "followed_s": 0.8, "down": True,
}  # fmt: skip
ROW: Json = {
    "name": "paqm", "title": "t", "delay_p95_ms": 12.0, "delay_p95_with_tcp_ms": 8.0,
    "delay_p99_ms": 14.0, "lost_percent": 0.0, "frame_delivery_p95_ms": 60.0, "webrtc_freezes": 0,
    "vmaf": 90.0, "elastic_share_percent": 100.0,
    "segments": [
        PART | {"start_s": 0.4, "stop_s": 15.0, "share_mbit": 3.0, "followed_s": None,
                "down": False},
        PART,
        PART | {"start_s": 30.0, "stop_s": 45.0, "share_mbit": 3.0, "followed_s": 2.0,
                "down": False},
    ],
}  # fmt: skip


def test_a_change_counts_as_followed_when_the_rate_over_half_a_second_is_there() -> None:
    t = np.concatenate([np.arange(0, 11, 0.01), np.arange(11, 20, 0.02)])  # halves at 11 s
    size = np.full(len(t), 1250)  # 1 Mbit/s, then 0.5
    took = browser.followed(t, size, 0.5e6, 10.0, 20.0, True)
    assert took is not None and 1.4 <= took <= 1.5  # 1 s, and what the window still holds
    assert browser.followed(t, size, 0.3e6, 10.0, 20.0, True) is None
    assert browser.followed(t, size, 0.9e6, 5.0, 20.0, False) == 0.0


def failed(change: Json, part: int | None = None) -> set[str]:
    row = copy.deepcopy(ROW)
    (row if part is None else row["segments"][part]).update(change)
    return {check["name"] for check in browser.judge(row) if not check["pass"]}


def test_every_target_can_be_missed() -> None:
    assert failed({}) == set()
    assert failed({"share_percent": 60.0}, 0) == set()  # a call begins slowly
    assert failed({"share_percent": 94.9}, 1) == {"share_with_tcp_from_15_s"}
    assert failed({"share_percent": 94.9}, 2) == {"share_alone_from_30_s"}
    assert failed({"followed_s": 1.05}, 1) == {"down_from_15_s"}
    assert failed({"followed_s": None}, 2) == {"up_from_30_s"}
    assert failed({"followed_s": 2.55}, 2) == {"up_from_30_s"}
    assert failed({"delay_p95_with_tcp_ms": 10.1}) == {"delay_p95_with_tcp"}
    assert failed({"webrtc_freezes": 1}) == {"webrtc_freezes"}
    assert failed({"webrtc_freezes": None}) == {"webrtc_freezes"}


def test_figures_of_some_variants_are_not_landed() -> None:
    rows = [ROW | {"name": name} for name in ("paqm", "fq_codel", "paqm-without")]
    told: Json = {"rows": rows, "checks": [], "seed": 1}
    assert browser.landed(told, "chromium-paqm")["rows"] == rows
    with pytest.raises(LabError, match="no run of paqm-without; run all"):
        browser.landed(told | {"rows": rows[:2]}, "chromium-paqm")


RIVALS = cache.TESTBED / "rivals"
needs_node = pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")


@needs_node
@pytest.mark.parametrize(("words", "told"), [
    (["--browser", "netscape"], "expected one of chromium-shell, chromium-full, firefox"),
    (["--browser", "toString"], "--browser: expected one of"),
    (["--browser", "firefox", "--allow", "5"], '--allow: "" is not a rate'),
    (["--browser", "firefox", "--allow", "x:1mbit"], '--allow: "x" is not a positive number'),
    (["--browser", "firefox", "--limit", "none"], "--limit: expected answer or page"),
    ([], "--browser is missing"),
])  # fmt: skip
def test_options_that_cannot_be_meant_are_refused(words: list[str], told: str) -> None:
    command = ["node", str(RIVALS / "browser" / "send.js"), "--clip", "clip.y4m", *words]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2 and told in done.stderr


@needs_node
def test_firefox_refuses_to_receive(tmp_path: Path) -> None:
    command = ["node", str(RIVALS / "browser" / "recv.js"), "--browser", "firefox"]
    command += ["--signal", str(tmp_path), "--log", str(tmp_path), "--duration", "1"]
    command += ["--output", str(tmp_path / "decoded.y4m"), "--bind", "127.0.0.1"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1 and "Firefox only sends here" in done.stderr


@needs_node
def test_answers_of_marionette_may_come_in_any_pieces() -> None:
    """Byte by byte, several at once, with characters of more than a byte; the greeting is none."""
    script = r"""
      const { Firefox } = require(process.argv[1]);
      const messages = ['{"marionetteProtocol":3}', '[1,1,null,{"value":"Bücher: 3"}]',
        '[1,2,{"error":"javascript error","message":"no\\nline two"},null]', '[1,9,null,null]'];
      const bytes = Buffer.from(messages.map((one) => (
        `${Buffer.byteLength(one)}:${one}`)).join(''));
      for (const size of [1, 7, bytes.length]) {
        const told = [];
        const one = Object.assign(Object.create(Firefox.prototype),
          { rest: Buffer.alloc(0), asked: new Map() });
        for (const id of [1, 2]) {
          one.asked.set(id, { resolve: (v) => told.push(v), reject: (e) => told.push(e.message) });
        }
        for (let at = 0; at < bytes.length; at += size) {
          one.receive(bytes.subarray(at, at + size));
        }
        console.log(JSON.stringify([told, one.rest.length, one.asked.size]));
      }"""
    done = subprocess.run(
        ["node", "-e", script, str(RIVALS / "firefox" / "browser.js")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    told = [[{"value": "Bücher: 3"}, "javascript error: no"], 0, 0]
    assert [json.loads(line) for line in done.stdout.splitlines()] == [told] * 3


@pytest.mark.parametrize("which", browser.CASES)
def test_the_page_has_the_landed_figures(which: str) -> None:
    told = json.loads(browser.landed_at(which).read_text())
    page = (cache.REPO / "docs" / "browser.md").read_text()
    assert "\n".join(["", *browser.table(told), ""]) in page


def test_the_page_has_the_landed_steps() -> None:
    rows = json.loads(browser_steps.DATA.read_text())["rows"]
    page = (cache.REPO / "docs" / "browser.md").read_text()
    assert "\n".join(["", *browser_steps.table(rows), ""]) in page


@pytest.mark.lab
@pytest.mark.browser
@pytest.mark.parametrize(
    ("sender", "extra"), [("chromium-paqm", "browser"), ("firefox-paqm", "firefox")]
)
def test_a_page_that_knows_nothing_is_followed(sender: str, extra: str, tmp_path: Path) -> None:
    """Extension, host and paqmd in a guest: the flow is registered, told, and reports."""
    built = kernel.ensure("lab", print)
    try:
        image.with_extra(extra, image.ensure(built, print), built, print)
    except LabError as err:
        pytest.skip(f"the browser cannot be had here: {err}")
    text = (Path(__file__).parent / "extension.toml").read_text()
    assert text.count("chromium-paqm") == 1
    (tmp_path / "extension.toml").write_text(text.replace("chromium-paqm", sender))
    out = tmp_path / "out"
    chosen = scenario.load(str(tmp_path / "extension.toml"))
    run.run_scenario(chosen, run.Options(out, 1, [], False, False, score=False, page=False), print)
    told = json.loads((out / "paqm" / "flows" / "a" / "send" / "paqmd.json").read_text())
    (flow,) = told["flows"]
    assert flow["accepted"] > 10 and flow["cause"] == "erf" and flow["status"]["wire_bps"] > 1e5
    assert told["stats"]["refused"]["quote_unknown"] == 0
