# SPDX-License-Identifier: GPL-2.0
"""Checks with names: each prints a line of TAP, and a test goes on when one fails.

conftest.py fails the test of which a check failed, and prints the plan.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paqm_lab.topology import CommandFailed

total = failed = 0


def check(name: str, good: object, why: object = "", skip: str = "") -> None:
    global total, failed
    total += 1
    failed += not good
    tail = f" # SKIP {skip}" if skip else "" if good else f": {why}"
    print(f"{'ok' if good else 'not ok'} {total} - {name}{tail}", flush=True)


def within(name: str, value: float | None, low: float, high: float) -> None:
    shown = value if value is None or isinstance(value, int) else f"{value:.6g}"
    good = value is not None and low <= value <= high
    check(f"{name} ({shown})", good, f"want {low:g}..{high:g}")


def works(name: str, action: Callable[..., Any], *args: Any) -> Any:
    """Checks that a command is not refused; what it returns."""
    try:
        result = action(*args)
    except CommandFailed as error:
        return check(name, False, error)
    check(name, True)
    return result


def refused(name: str, words: str, action: Callable[..., Any], *args: Any) -> None:
    """Checks that a command is refused, and says why in these words."""
    try:
        action(*args)
    except CommandFailed as error:
        check(name, words in str(error), f"refused with other words: {error}")
    else:
        check(name, False, "it was not refused")


def skip(name: str, why: str) -> None:
    """A check for which something is missing here."""
    check(name, True, skip=why)
