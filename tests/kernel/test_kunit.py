# SPDX-License-Identifier: GPL-2.0
"""The KUnit suites of the laws and of the modules' parts, in the kernel that runs."""

from __future__ import annotations

import os
import re

from checks import check, works
from paqm_lab.topology import run


def test_kunit() -> None:
    run("insmod", f"{os.environ['PAQM_KO_DIR']}/kunit/paqm_kunit.ko")
    cases = re.findall(r"^\[[^]]*\] +(not )?ok \d+ (?:- )?(paqm_kunit_.*)", run("dmesg"), re.M)
    for bad, name in cases:
        check(name, not bad, "dmesg says why")
    check("the suite ran", len(cases) >= 10, f"{len(cases)} cases")
    works("unload", run, "rmmod", "paqm_kunit")
