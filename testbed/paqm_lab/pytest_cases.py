# SPDX-License-Identifier: GPL-2.0
"""Lets pytest print a line for each case as the other suites do (setup/tap.py).

Usage: pytest -p paqm_lab.pytest_cases -p no:terminal ...
"""

import pytest


def _tell(report: pytest.TestReport | pytest.CollectReport) -> None:
    name = report.nodeid.replace("\n", " ")
    if report.skipped:
        where = report.longrepr
        print(f"skip {name}: {where[2] if isinstance(where, tuple) else where}", flush=True)
        return
    print(f"{'ok' if report.passed else 'not ok'} {name}", flush=True)
    if report.failed:
        print(report.longreprtext)
        for title, text in report.sections:
            print(f"{title}:\n{text}", flush=True)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" or not report.passed:
        _tell(report)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _tell(report)
