# SPDX-License-Identifier: GPL-2.0
"""Prints TAP instead of pytest's own words, and holds what tests in a guest share: the modules,
loaded once for a file of tests, and a wire between two hosts.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import sleep
from typing import Any

import pytest

import checks
import guest

seen = (0, 0)  # checks and failed ones, up to the phase before


def remark(text: str) -> None:
    print("".join(f"# {line}\n" for line in text.splitlines()), end="", flush=True)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """A test fails if a check of it did; one without checks is a check itself."""
    global seen
    outcome: Any = yield
    report = outcome.get_result()
    name = item.name if call.when == "call" else f"{item.name}: {call.when}"
    if report.skipped:
        checks.skip(name, report.longrepr[2].removeprefix("Skipped: "))
    elif report.failed:
        checks.check(name, False, call.excinfo and call.excinfo.exconly().replace("\n", " "))
        remark(str(report.longrepr))
    elif checks.failed > seen[1]:
        report.outcome, report.longrepr = "failed", "checks failed"
    elif call.when == "call" and checks.total == seen[0]:
        checks.check(name, True)
    seen = checks.total, checks.failed


def pytest_runtest_logstart(location: tuple[str, int | None, str]) -> None:
    remark(location[2])


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        remark(str(report.longrepr))
        print(f"Bail out! {report.nodeid} cannot be read", flush=True)


def pytest_sessionfinish() -> None:
    print(f"1..{checks.total}", flush=True)


@pytest.fixture(scope="module")
def modules() -> Iterator[None]:
    """The modules, which can be unloaded in the end, and of whose memory nothing is left."""
    guest.load()
    yield
    sleep(1)  # namespaces that the last test has removed go a moment later, and their queues
    checks.works("unload", guest.unload)
    leaks = guest.leaks()
    if leaks is not None:
        checks.within("kmemleak reports", leaks, 0, 0)


@pytest.fixture(scope="module")
def wire_of_module(modules: None) -> Iterator[guest.Wire]:
    wire = guest.Wire()
    yield wire
    wire.remove()


@pytest.fixture
def wire(wire_of_module: guest.Wire) -> Iterator[guest.Wire]:
    """Two hosts and what joins them; without a queue of its own again when a test ends."""
    yield wire_of_module
    wire_of_module.clear()


@pytest.fixture
def dummy(wire: guest.Wire) -> Iterator[guest.Wire]:
    """The wire's sender with devices d0 and d1, which take whatever is sent."""
    for device in ("d0", "d1"):
        wire.ip(f"link add {device} type dummy")
        wire.ip(f"link set {device} up")
    yield wire
    for device in ("d0", "d1"):
        wire.ip(f"link del {device}")
