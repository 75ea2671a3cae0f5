# SPDX-License-Identifier: GPL-2.0
"""Chromium as a sender: a short call over fq_codel and, with SCReAM and ECN, over dualpi2."""

import json
import struct
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from paqm_lab import image, kernel, run, scenario
from paqm_lab.errors import LabError

pytestmark = [pytest.mark.lab, pytest.mark.browser]
BROWSER = Path(__file__).parent / "browser.toml"
HEADER = 20  # bytes of LINUX_SLL2
STREAM = "10.1.1.2"


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both variants; SCReAM's twice: the packets are the same, to the nanosecond."""
    built = kernel.ensure("lab", print)
    base = image.ensure(built, print)
    try:
        image.with_extra("chromium", base, built, print)
    except LabError as err:
        pytest.skip(f"Chromium cannot be had here: {err}")
    where = tmp_path_factory.mktemp("browser") / "out"
    chosen = scenario.load(str(BROWSER))
    for variant in ("fq_codel", "dualpi2"):
        options = run.Options(where / variant, 1, [variant], True, variant == "dualpi2", page=False)
        run.run_scenario(chosen, options, print)
    return where


def figures(out: Path, variant: str) -> dict[str, Any]:
    (found,) = json.loads((out / variant / "result.json").read_text())["variants"]
    return dict(found)


def marks(log: Path) -> Counter[int]:
    """How many UDP packets of the stream have each ECN field, in a log of the router."""
    data, at, found = log.read_bytes(), 24, Counter[int]()
    while at + 16 <= len(data):
        (length,) = struct.unpack_from("<I", data, at + 8)
        packet = data[at + 16 + HEADER : at + 16 + length]
        source = ".".join(map(str, packet[12:16]))
        if source == STREAM and packet[9] == 17:
            found[packet[1] & 3] += 1
        at += 16 + length
    return found


def test_pictures_cross_the_router_and_are_scored(out: Path) -> None:
    for variant in ("fq_codel", "dualpi2"):
        found = figures(out, variant)
        picture = found["flows"]["a"]["picture"]
        assert picture["pictures"] > 100 and picture["unreadable"] == 0
        assert picture["vmaf"] > 50
        assert found["figures"]["frame_delivery_ms"]["p50"] >= 10  # propagation alone


def test_it_follows_the_link(out: Path) -> None:
    """From 300 kbit/s on towards the link's rate, and not above it."""
    for variant in ("fq_codel", "dualpi2"):
        stats = out / variant / variant / "flows" / "a" / "send" / "stats.jsonl"
        rates = [json.loads(line)["candidate_pair"]["availableOutgoingBitrate"]
                 for line in stats.read_text().splitlines()]
        assert 6e5 < max(rates) <= 3e6
        assert figures(out, variant)["flows"]["a"]["loss"]["packets"] > 200


def test_only_scream_sends_ect1(out: Path) -> None:
    plain = marks(out / "fq_codel" / "fq_codel" / "router.pcap")
    scalable = marks(out / "dualpi2" / "dualpi2" / "router.pcap")
    assert set(plain) == {0}
    media = sum(scalable.values())
    assert scalable[1] + scalable[3] > 0.8 * media and scalable[2] == 0


def test_the_browser_of_the_lock_was_used(out: Path) -> None:
    told = json.loads((out / "fq_codel" / "result.json").read_text())["versions"]
    pins = image.parse_lock(image.EXTRAS["chromium"][1].read_text())
    locked = {pin.name: pin.version for pin in pins}["chromium-headless-shell"]
    if told["image_not_of_lock"] == "none":
        assert told["chromium"] == locked
