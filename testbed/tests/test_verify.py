# SPDX-License-Identifier: GPL-2.0
"""A result from elsewhere is run again: equal packets are told from others, versions are named."""

import copy
import dataclasses
import json
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from paqm_lab import bundle, cache, image, verify
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
    (json.dumps(result(seed="1")), "has no seed"),
    (json.dumps(result(versions=["7.3.4"])), "has no versions"),
    (json.dumps(result(packet_log_sha256={})), "has no packet_log_sha256"),
    (json.dumps({"scenario_data": {"link": []}, "seed": 1}), "is of a network of its own or of"),
    (json.dumps(result(scenario_data={"trace": {}})), "is of a network of its own or of"),
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


def bundled(home: Path, **changes: Any) -> Path:
    """A run's directory, and what a bundle of it is called."""
    (home / "run").mkdir()
    key = image.key_of(image.parse_lock(image.LOCK.read_text()))
    told = result(versions={"image": key}) | changes
    (home / "run" / "result.json").write_text(json.dumps(told))
    (home / "run" / "report.html").write_text("<p>fine</p>")
    return home / "run"


def test_a_bundle_is_read_as_it_was_written(tmp_path: Path) -> None:
    home = bundled(tmp_path)
    bundle.write(home, tmp_path / "a.zip")
    bundle.write(home, tmp_path / "b.zip")
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    told, lock = verify.load(tmp_path / "a.zip")
    assert lock == image.LOCK.read_text() and told["packet_log_sha256"]["fifo"] == "bb"
    assert zipfile.ZipFile(tmp_path / "a.zip").read("report.html") == b"<p>fine</p>"


def test_a_result_of_todays_packages_is_bundled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the archive no longer has a version of the lock, the image's own lock goes with it."""
    monkeypatch.setattr(cache, "cache_dir", lambda: tmp_path)
    pins = image.parse_lock(image.LOCK.read_text())
    lock = image.write_lock([dataclasses.replace(pins[0], version="9:9.9"), *pins[1:]])
    key = image.key_of(image.parse_lock(lock))
    made = tmp_path / "image" / image.key_of(pins)
    made.mkdir(parents=True)
    told = {"key": key, "changed": [f"{pins[0].name}=9:9.9"], "versions": {}, "lock": lock}
    (made / "built.json").write_text(json.dumps(told))
    bundle.write(bundled(tmp_path, versions={"image": key}), tmp_path / "a.zip")
    assert verify.load(tmp_path / "a.zip")[1] == lock
    assert image._home(lock)[0] == made  # which is not made again for it


def test_a_result_of_another_image_is_not_bundled(tmp_path: Path) -> None:
    home = bundled(tmp_path, versions={"image": "0123456789ab"})
    with pytest.raises(LabError, match="image 0123456789ab, which is not that of"):
        bundle.write(home, tmp_path / "a.zip")
    told = result(versions={"image": "0123456789ab-0123456789ab", "chromium": "156"})
    (home / "result.json").write_text(json.dumps(told))
    with pytest.raises(LabError, match="has streams of a browser.*verify"):
        bundle.write(home, tmp_path / "a.zip")
    (home / "result.json").write_text("{")
    with pytest.raises(LabError, match="holds no result"):
        bundle.write(home, tmp_path / "a.zip")


@pytest.mark.parametrize(("changes", "said"), [
    ({"scenario_data": {"link": []}}, "network of its own"),
    ({"scenario_data": {"trace": {}}}, "trace flows"),
    ({"scenario_data": None}, "no scenario_data"),  # of an experiment, or an older one
])
def test_what_cannot_be_verified_is_not_bundled(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    """The receiver would learn it first, and bundle says that verify runs it again."""
    home = bundled(tmp_path, **changes)
    with pytest.raises(LabError, match=said):
        bundle.write(home, tmp_path / "a.zip")
    assert not (tmp_path / "a.zip").exists()


@pytest.mark.parametrize("lock", [
    "-oX=1 1 1 " + "0" * 64, "a -x 1 " + "0" * 64, "a 1;ls 1 " + "0" * 64, "../a 1 1 " + "0" * 64,
])
def test_a_strangers_lock_gives_apt_no_options(lock: str) -> None:
    with pytest.raises(LabError, match="packages.lock:1"):
        image.parse_lock(lock)


def test_a_strangers_archive_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("result.json", "{}")
    with pytest.raises(LabError, match="not a bundle.*packages.lock"):
        verify.load(file)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("result.json", b"0" * (bundle.LARGEST + 1))
        archive.writestr("packages.lock", "")
    with pytest.raises(LabError, match="larger than"):
        verify.load(file)
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(LabError, match="cannot read|not valid"):
        verify.load(file)


@pytest.mark.lab
def test_a_result_is_run_again(tmp_path: Path) -> None:
    assert lab("run", str(TCP), "--out", str(tmp_path / "out")).returncode == 0
    # All that is needed is in the one file.
    told = json.loads((tmp_path / "out" / "result.json").read_text())
    packed = tmp_path / "sent.zip"
    assert lab("bundle", str(tmp_path / "out"), "--out", str(packed)).returncode == 0
    again = lab("verify", str(packed))
    digest = told["packet_log_sha256"]["fq_codel"]
    assert (again.returncode, again.stdout) == (0, f"same   fq_codel {digest}\n"), again.stderr
    other = copy.deepcopy(told)
    other["seed"] = 2
    alone = tmp_path / "other.json"
    alone.write_text(json.dumps(other))
    again = lab("verify", str(alone))
    assert again.returncode == 1 and again.stdout.startswith(f"other  fq_codel {digest}, here ")
