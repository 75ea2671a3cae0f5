# SPDX-License-Identifier: GPL-2.0
"""The checks: a good run passes them all, and each of them fails when its figure is bad."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from synthetic import STREAMS, Faults, write_run

from paqm_lab import analysis, checks
from paqm_lab.errors import LabError


def quiet(_: str) -> None:
    """Progress that nobody wants to see."""


def failing(tmp_path: Path, faults: Faults) -> set[str]:
    """Names of the checks that fail in a run with these faults."""
    result = analysis.analyse(write_run(tmp_path, faults), progress=quiet)
    return {check["name"] for check in result["checks"] if not check["pass"]}


def test_good_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = write_run(tmp_path)
    result = analysis.analyse(out, progress=quiet)
    assert [check["name"] for check in result["checks"] if not check["pass"]] == []
    assert len(result["checks"]) == 11
    assert json.loads((out / "result.json").read_text()) == result
    assert checks.print_table(out) == 0
    assert "11 of 11 checks pass" in capsys.readouterr().out


SOJOURN = {"media_sojourn_p50", "media_sojourn_p95", "media_sojourn_p99"}


@pytest.mark.parametrize(
    ("faults", "names"),
    [
        (Faults(wait=0.0011), {"media_sojourn_p50"}),
        (Faults(wait=0.03), SOJOURN),
        (Faults(tail_wait=0.025), {"media_sojourn_p99"}),
        (Faults(worst_wait=0.0601), {"media_sojourn_max"}),
        (Faults(lose_at=(12.5,)), {"media_loss_late"}),
        (Faults(media_share=0.88, elastic_share=1.05), {"settle_max"}),
        (Faults(elastic_share=0.87), {"elastic_share_error"}),
        (
            Faults(elastic_share=0.7),
            {"elastic_share_error", "link_use_with_elastic"},
        ),
        (Faults(slow_frames=0.06), {"frame_delivery_p95"}),
        (Faults(over_bound=True), {"frames_over_bound"}),
        (Faults(mixed_base=True), {"gops_with_several_base_quantizers"}),
    ],
)
def test_each_fault_is_found(tmp_path: Path, faults: Faults, names: set[str]) -> None:
    assert failing(tmp_path, faults) == names


def test_loss_soon_after_a_change_is_allowed(tmp_path: Path) -> None:
    out = write_run(tmp_path, Faults(lose_at=(2.5, 9.5)))
    result = analysis.analyse(out, progress=quiet)
    loss = result["variants"][0]["figures"]["media_loss"]
    assert (loss["lost"], loss["late"]) == (2, 0)
    assert loss["latest_s"] == pytest.approx(2.5, abs=0.05)
    assert all(check["pass"] for check in result["checks"])


def test_nothing_measured_fails(tmp_path: Path) -> None:
    """Logs of the sender missing: no figure, no pass."""
    out = write_run(tmp_path)
    for name in ("a", "b"):
        (out / "paqm" / "flows" / name / "send" / "frames.csv").unlink()
    result = analysis.analyse(out, progress=quiet)
    assert {check["name"] for check in result["checks"] if not check["pass"]} == {
        "frame_delivery_p95",
        "frames_over_bound",
        "gops_with_several_base_quantizers",
    }


@pytest.mark.parametrize("when", [0.0, 9.0])
def test_a_stream_that_falls_silent_fails(tmp_path: Path, when: float) -> None:
    """It had left, its share was that of the others, and all was well; at 0 s it never came."""
    assert "settle_max" in failing(tmp_path, Faults(silent_from=when))


def test_encoders_of_others_have_no_base_quantizers(tmp_path: Path) -> None:
    """All targets but the two that are about paqm-streamer's own encoder; these fail there."""
    out = write_run(tmp_path, Faults(over_bound=True, wait=0.0011))
    path = out / "paqm" / "run.json"
    record = json.loads(path.read_text())
    record["variant"]["sender"] = "gst-paqm"
    path.write_text(json.dumps(record))
    found = analysis.analyse(out, progress=quiet)["checks"]
    assert len(found) == 9
    assert {check["name"] for check in found if not check["pass"]} == {"media_sojourn_p50"}


def test_table_of_several_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for seed, faults in ((1, Faults()), (2, Faults(over_bound=True))):
        analysis.analyse(write_run(tmp_path / f"seed{seed}", faults), progress=quiet)
    assert checks.print_table(tmp_path) == 1
    printed = capsys.readouterr().out
    assert "21 of 22 checks pass" in printed
    assert "not ok paqm       frames_over_bound" in printed


def test_no_result(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="no result.json"):
        checks.print_table(tmp_path)


def test_missing_packet_log(tmp_path: Path) -> None:
    out = write_run(tmp_path)
    (out / "paqm" / "router.pcap").unlink()
    with pytest.raises(LabError, match="--pcap"):
        analysis.analyse(out, progress=quiet)


def test_one_variant_again(tmp_path: Path) -> None:
    """Running one variant anew keeps what is known of the others, whose packet logs are gone."""
    write_run(tmp_path, variant="one")
    out = write_run(tmp_path, variant="two")
    first = analysis.analyse(out, progress=quiet)
    for path in out.glob("*/router.pcap"):
        path.unlink()
    assert analysis.analyse(out, progress=quiet) == first
    shutil.rmtree(out / "two")
    write_run(tmp_path, Faults(wait=0.02), variant="two")
    waits = {
        variant["name"]: variant["figures"]["media_sojourn_ms"]["p50"]
        for variant in analysis.analyse(out, progress=quiet)["variants"]
    }
    assert waits == pytest.approx({"one": 0.5, "two": 20})


def test_damaged_run_json(tmp_path: Path) -> None:
    out = write_run(tmp_path)
    path = out / "paqm" / "run.json"
    record = json.loads(path.read_text())
    del record["t0_ns"]
    path.write_text(json.dumps(record))
    with pytest.raises(LabError, match="t0_ns"):
        analysis.analyse(out, progress=quiet)


def test_only_records_with_a_rate_are_messages(tmp_path: Path) -> None:
    out = write_run(tmp_path)  # each sender: what it had at the beginning, then one rate
    feedback = analysis.analyse(out, progress=quiet)["variants"][0]["figures"]["feedback"]
    assert feedback["believed"] == len(STREAMS)
    assert feedback["messages"] == 10 * len(STREAMS)
