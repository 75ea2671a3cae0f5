# SPDX-License-Identifier: GPL-2.0
"""A result from elsewhere is run again: equal packets are told from others, versions are named."""

import copy
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from paqm_lab import cache, verify
from paqm_lab.errors import LabError

LAB = cache.TESTBED / "paqm-lab"
TCP = Path(__file__).parent / "tcp.toml"


def lab(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(LAB), *words], capture_output=True, text=True)


def result(**changes: Any) -> dict[str, Any]:
    return {
        "scenario_data": {}, "seed": 1, "versions": {"kernel": "7.3.4", "x264": "0.164"},
        "packet_log_sha256": {"paqm": "aa", "fifo": "bb"},
    } | changes


def test_equal_hashes_are_the_same_run() -> None:
    assert verify.compare(result(), result()) == (["same   paqm aa", "same   fifo bb"], True)


def test_other_packets_and_versions_are_named() -> None:
    here = result(versions={"kernel": "7.3.5", "x264": "0.164"},
                  packet_log_sha256={"paqm": "aa", "fifo": "cc"})
    lines, same = verify.compare(result(), here)
    assert not same
    assert lines == [
        "same   paqm aa", "other  fifo bb, here cc", "differs: kernel 7.3.4, here 7.3.5",
    ]


def test_a_version_that_differs_is_no_failure_where_packets_are_equal() -> None:
    lines, same = verify.compare(result(), result(versions={"kernel": "7.3.4"}))
    assert same and lines[-1] == "differs: x264 0.164, here unknown"


@pytest.mark.parametrize("text, said", [
    (None, "cannot read the result"), ("{", "not valid JSON"), ("[]", "has no scenario_data"),
    (json.dumps({"scenario_data": {}, "seed": 1}), "has no versions"),
])
def test_what_is_no_result_is_refused(tmp_path: Path, text: str | None, said: str) -> None:
    file = tmp_path / "result.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(LabError, match=said):
        verify.load(tmp_path)


def test_a_scenario_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text(json.dumps(result(scenario_data={"name": 1})))
    with pytest.raises(LabError, match="result.json"):
        verify.verify(tmp_path / "result.json", lambda text: None)


@pytest.mark.lab
def test_a_result_is_run_again(tmp_path: Path) -> None:
    assert lab("run", str(TCP), "--out", str(tmp_path / "out")).returncode == 0
    # All that is needed is in the one file.
    told = json.loads((tmp_path / "out" / "result.json").read_text())
    alone = tmp_path / "sent.json"
    alone.write_text(json.dumps(told))
    again = lab("verify", str(alone))
    digest = told["packet_log_sha256"]["fq_codel"]
    assert (again.returncode, again.stdout) == (0, f"same   fq_codel {digest}\n"), again.stderr
    other = copy.deepcopy(told)
    other["seed"] = 2
    alone.write_text(json.dumps(other))
    again = lab("verify", str(alone))
    assert again.returncode == 1 and again.stdout.startswith(f"other  fq_codel {digest}, here ")
