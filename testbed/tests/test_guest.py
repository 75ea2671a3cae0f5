# SPDX-License-Identifier: GPL-2.0
"""Boots real guests: status, faults and time-outs come back; runs repeat bit by bit."""

import json
from pathlib import Path
from typing import Any

import pytest

from paqm_lab import cache, clip, kernel, lab, run, scenario, uml

pytestmark = pytest.mark.lab
TCP = Path(__file__).parent / "tcp.toml"


def ignore(text: str) -> None:
    pass


@pytest.fixture(scope="session")
def built() -> kernel.Kernel:
    return kernel.ensure("lab", print)


def boot(built: kernel.Kernel, directory: Path, command: str, **more: Any) -> uml.Result:
    job = uml.Job(directory=directory, command=["sh", "-c", command], **more)
    return uml.run(built, job)


def test_status_output_and_environment(built: kernel.Kernel, tmp_path: Path) -> None:
    result = boot(built, tmp_path, 'echo "<$GREETING>"; exit 7', environment={"GREETING": "it's"})
    assert result.status == 7 and not result.reports and not result.good
    assert result.output.read_text() == "<it's>\n"


def test_virtual_time_is_exact_and_free(built: kernel.Kernel, tmp_path: Path) -> None:
    result = boot(built, tmp_path, "date +%s; sleep 86400; date +%s")
    first, second = map(int, result.output.read_text().split())
    assert first == uml.START_NS // 10**9 and second - first == 86400


def test_random_numbers_follow_the_seed(built: kernel.Kernel, tmp_path: Path) -> None:
    draw = "od -An -tx8 -N32 /dev/urandom"
    texts = [
        boot(built, tmp_path / name, draw, seed=seed).output.read_text()
        for name, seed in (("a", 1), ("some-other-length", 1), ("b", 2))
    ]
    assert texts[0] == texts[1] != texts[2]


def test_the_kernels_banner_is_that_of_every_build(built: kernel.Kernel, tmp_path: Path) -> None:
    result = boot(built, tmp_path, "uname -v")
    assert result.output.read_text() == "#1 2026-01-01T00:00:00Z\n"


def test_processors_own_random_numbers_are_not_used(built: kernel.Kernel, tmp_path: Path) -> None:
    offer = (
        "cd {place}; node -e 'const p = new (require(\"@roamhq/wrtc\").RTCPeerConnection)();"
        'p.createDataChannel("x"); p.createOffer().then(o => {{'
        "console.log(o.sdp.match(/fingerprint.*/)[0]); process.exit(0)}})'"
    ).format(place=cache.cache_dir() / "node")
    values = uml.environment(built, None)
    prints = [
        boot(built, tmp_path / name, offer, environment=values).output.read_text()
        for name in ("a", "b")
    ]
    assert prints[0].startswith("fingerprint:") and prints[0] == prints[1]


def test_kernel_fault_fails_the_run(built: kernel.Kernel, tmp_path: Path) -> None:
    result = boot(built, tmp_path, "echo c >/proc/sysrq-trigger")
    assert not result.good and result.status is None
    assert any("panic" in line for line in result.reports)


def test_busy_loop_is_stopped(built: kernel.Kernel, tmp_path: Path) -> None:
    result = boot(built, tmp_path, "while :; do :; done", timeout=3.0)
    assert result.timed_out and not result.good and "busy" in result.explain()


def simulate(
    loaded: scenario.Scenario, resolved: dict[str, Any], directory: Path, with_clip: bool
) -> dict[str, Any]:
    clip_file = clip.prepare(cache.cache_dir(), ignore) if with_clip else None
    house = lab.ready(ignore, modules=resolved["variant"]["qdisc"].startswith("paqm"))
    return run.VariantRun(resolved, directory, house, clip_file, ignore, loaded, None).run()


def test_tcp_run_repeats_bit_by_bit(tmp_path: Path) -> None:
    loaded = scenario.load(str(TCP))
    variant = loaded.variants[0]
    hashes = {}
    for name, seed in (("one", 1), ("again-elsewhere", 1), ("two", 2)):
        record = simulate(loaded, loaded.resolve(variant, seed, 0), tmp_path / name, False)
        hashes[name] = record["packet_log_sha256"]
    assert hashes["one"] == hashes["again-elsewhere"] != hashes["two"]
    samples = [json.loads(line) for line in (tmp_path / "one" / "tc.jsonl").open()]
    assert [round(sample["t"], 1) for sample in samples] == [n / 10 for n in range(51)]
    sent = samples[-1]["qdisc"][0]["bytes"] * 8 / 5
    assert 0.9 * 8e6 < sent <= 8.05e6


def test_media_run_repeats_bit_by_bit(tmp_path: Path) -> None:
    demo = scenario.load("demo")
    data = {**demo.data, "duration": 4}
    data["media"] = [{**flow, "start": 0, "stop": 4} for flow in demo.data["media"][:2]]
    data["elastic"] = [{**demo.data["elastic"][0], "start": 1, "stop": 4}]
    short = scenario.Scenario(demo.path, data)
    resolved = short.resolve(short.variants[0], 1, 100)
    first, again = (
        simulate(short, resolved, tmp_path / name, True)["packet_log_sha256"]
        for name in ("first", "again")
    )
    assert first == again
    for flow in ("a", "b"):
        received = (tmp_path / "first" / "flows" / flow / "recv" / "rx.csv").read_text()
        # At least a packet for each of some 90 pictures.
        assert received.count("\n") > 90
