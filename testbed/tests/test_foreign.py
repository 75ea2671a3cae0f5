# SPDX-License-Identifier: GPL-2.0
"""What `paqm-lab foreign` takes from its lists; the builds themselves are `make foreign`."""

import json
from pathlib import Path

import pytest

from paqm_lab import apt, foreign


def test_libraries_are_those_of_the_build() -> None:
    wanted = foreign.packages()
    assert {"libc6-dev", "libpcap-dev", "libx264-dev", "gstreamer1.0-plugins-good"} <= set(wanted)
    assert not {"build-essential", "clang", "libbpf-dev", "python3-gi"} & set(wanted)


def test_programs_are_told_from_scripts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    law, daemon = f"{tmp_path}/core/test_law", f"{tmp_path}/feedback-daemon/paqmd"
    listed = [
        {"name": "core-law", "cmd": [law]},
        {"name": "vectors", "cmd": [law, "--check"]},
        {"name": "script", "cmd": ["/usr/bin/python3", "/src/e2e.py", daemon]},
        {"name": "lint", "cmd": ["/src/setup/lint.sh"]},
    ]
    monkeypatch.setattr(apt, "run", lambda *words: json.dumps(listed))
    found = {test["name"]: test["cmd"] for test in foreign.programs(tmp_path)}
    assert found == {"core-law": [law], "vectors": [law, "--check"]}
