# SPDX-License-Identifier: GPL-2.0
"""Parts of the engine that need no guest: repeatable randomness, queue set-up, set-up files."""

import ctypes
import platform
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from paqm_lab import (
    cache,
    call_lab,
    clip,
    image,
    kernel,
    lab,
    run,
    scenario,
    senders,
    topology,
    trace_scenario,
    uml,
)
from paqm_lab.errors import LabError
from paqm_lab.multi import main
from paqm_lab.topology import Network

ASK = (
    "import ctypes; b = ctypes.create_string_buffer(24); "
    "n = ctypes.CDLL(None).getrandom(b, 24, 0); print(n, b.raw.hex())"
)
SETUP = cache.REPO / "setup"


def draw(seed: str | None) -> subprocess.CompletedProcess[str]:
    # With a fixed hash seed the interpreter draws nothing for itself.
    values = {"PYTHONHASHSEED": "0", "LD_PRELOAD": str(cache.detrand_library())}
    if seed is not None:
        values["PAQM_SEED"] = seed
    return subprocess.run([sys.executable, "-c", ASK], env=values, capture_output=True, text=True)


def test_random_numbers_repeat_with_the_seed() -> None:
    first, again, other = draw("1").stdout, draw("1").stdout, draw("2").stdout
    assert re.fullmatch(r"24 [0-9a-f]{48}\n", first)
    assert first == again != other


@pytest.mark.parametrize("seed", [None, "", "x", "1x"])
def test_a_missing_or_wrong_seed_is_refused(seed: str | None) -> None:
    done = draw(seed)
    assert done.returncode == 2 and "PAQM_SEED must be a whole number" in done.stderr


def test_splitmix64_reference_values() -> None:
    # First outputs for seed 0, as published with the generator.
    words = bytes.fromhex(draw("0").stdout.split()[1])
    numbers = list((ctypes.c_uint64 * 3).from_buffer_copy(words))
    assert numbers == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


def commands(variant: dict[str, Any], bottleneck: int, varies: bool) -> list[list[str]]:
    """What tc is told about the queue under test."""
    net = Network()
    topology.add_bottleneck(net, variant, bottleneck, varies)
    return [topology.queue_words(queue) for queue in net.queues]


def test_queue_alone_is_root_and_queue_under_shaper_is_leaf() -> None:
    demo = scenario.load("demo")
    paqm, fq_codel, fifo = (demo.resolve(item, 1, 720)["variant"] for item in demo.variants)
    (alone,) = commands(paqm, 8_000_000, False)
    assert alone[-5:] == ["paqm", "bandwidth", "8000000bit", "feedback", "icmp"]
    assert "root" in alone
    shaped = commands(fq_codel, 8_000_000, False)
    assert [command[0] for command in shaped] == ["qdisc", "class", "qdisc"]
    assert "8000000bit" in shaped[1] and shaped[2][-1] == "fq_codel"
    assert commands(fifo, 8_000_000, False)[2][-3:] == ["bfifo", "limit", "300000"]


def test_a_variant_by_itself_has_the_modules_of_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To load them moves its programs' random numbers: the packets would be others."""
    asked = {}

    def ready(_: Any, **options: Any) -> None:
        asked.update(options)
        raise LabError("enough")

    monkeypatch.setattr(lab, "ready", ready)
    monkeypatch.setattr(senders, "installed", lambda name: None)
    options = run.Options(tmp_path / "out", 1, ["fifo"], False, False)
    with pytest.raises(LabError, match="enough"):
        run.run_scenario(scenario.load("demo"), options, print)
    assert asked["modules"]


def test_results_directory_with_other_things_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(LabError, match="holds no result"):
        lab.make_way(tmp_path)
    assert (tmp_path / "thesis.tex").exists()


def test_a_config_of_others_is_no_result(tmp_path: Path) -> None:
    """Many programs have a config.json: `--out ~` is not to cost ~/.docker."""
    (tmp_path / ".docker").mkdir()
    (tmp_path / ".docker" / "config.json").write_text('{"auths": {}}')
    run._clear_all(tmp_path)
    with pytest.raises(LabError, match="holds no result"):
        lab.make_way(tmp_path / ".docker")
    assert (tmp_path / ".docker" / "config.json").exists()


def test_no_kind_of_run_deletes_what_is_not_a_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as a directory that is called as a variant is, or all of `call --out ~`."""
    (tmp_path / "thesis.tex").write_text("years of work")
    none: Any = None
    for module, name in ((clip, "prepare"), (clip, "prepare_sound"), (lab, "ready")):
        monkeypatch.setattr(module, name, lambda *_: none)
    for begin in (
        lambda: main.run_case(none, tmp_path, none),
        lambda: trace_scenario.run_guest(none, none, 1, tmp_path, none, none),
        lambda: call_lab.run(tmp_path, 1),
    ):
        with pytest.raises(LabError, match="holds no result"):
            begin()
        assert (tmp_path / "thesis.tex").exists()


def test_old_results_make_way(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"out": "/run/lab/out", "modules": ""}')
    (tmp_path / "router.pcap").write_bytes(b"old")
    lab.make_way(tmp_path)
    assert not (tmp_path / "router.pcap").exists()


def test_a_run_that_ended_early_makes_way(tmp_path: Path) -> None:
    lab.make_way(tmp_path)
    (tmp_path / "gstreamer-registry.bin").write_bytes(b"of the first attempt")
    lab.make_way(tmp_path)
    assert not (tmp_path / "gstreamer-registry.bin").exists()


def test_of_two_commands_with_one_directory_the_second_is_refused(tmp_path: Path) -> None:
    with lab.alone_in(tmp_path / "out"):
        lab.make_way(tmp_path / "out")  # twice: it finds nothing, then what was begun
        lab.make_way(tmp_path / "out")
        with pytest.raises(LabError, match="another paqm-lab is at work there"):
            with lab.alone_in(tmp_path / "out"):
                pass
    with lab.alone_in(tmp_path / "out"):
        pass


def test_what_failed_has_no_result_of_an_earlier_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "result.json").write_text("{}")
    (tmp_path / "report.html").touch()
    for module, name in ((clip, "prepare"), (trace_scenario, "prepare_ladder")):
        monkeypatch.setattr(module, name, lambda *_: None)

    def fails(*_: Any) -> None:
        raise LabError("of the guest")

    monkeypatch.setattr(trace_scenario, "run_guest", fails)
    none: Any = None
    with pytest.raises(LabError, match="of the guest"):
        trace_scenario.run(none, [{"name": "paqm"}], 1, tmp_path, none, print)
    assert not list(tmp_path.iterdir())


def test_what_a_guest_died_of_is_told_where_its_logs_are(tmp_path: Path) -> None:
    """Killed when the host had no memory left, or on a full disk, where guest.json is empty."""
    for name in ("console.log", "output.log", "guest.json"):
        (tmp_path / name).touch()
    (tmp_path / "console.log").write_text("reboot: Power down\n")
    died = uml.Result(None, [], False, 1.0, tmp_path / "console.log", tmp_path / "output.log")
    told = died.kept(tmp_path / "kernel.log", tmp_path / "guest.log").explain()
    assert told.endswith(f"see {tmp_path}/kernel.log: reboot: Power down")
    assert lab.guest_error(tmp_path) is None


def test_lines_of_a_guest_end_as_those_of_the_host() -> None:
    told = uml.Told()
    parts = [b"@ 5\r", b"\n@ 10\r\n\xc3", b"\xbc 10 %\r20 %\r\n"]
    assert "".join(map(told.text, parts)) == "@ 5\n@ 10\n\u00fc 10 %\r20 %\n"


@pytest.mark.parametrize("error, stops", [(LabError, False), (KeyboardInterrupt, True)])
def test_after_a_failure_no_more_guests_begin(
    error: type[BaseException], stops: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And after Ctrl-C those that run are not waited for."""
    stop = threading.Event()
    monkeypatch.setattr(uml, "INTERRUPTED", stop)
    begun: list[int] = []
    failed = threading.Event()

    def guest(number: int) -> None:
        begun.append(number)
        failed.wait(5)
        time.sleep(0.2)  # the others are given up meanwhile

    with pytest.raises(error), uml.pool(1) as pool:
        for number in range(3):
            pool.submit(guest, number)
        failed.set()
        raise error
    assert begun == [0] and stop.is_set() == stops


@pytest.mark.parametrize(
    "clone", ["/lab", "/build", "/out", "/cache", "/repo", "/streamer", "/home/a b"]
)
def test_what_a_guest_sees_is_the_same_wherever_the_clone_is(clone: str) -> None:
    """Of containers these are usual names, and each is part of one that the guest knows."""
    places = {
        "repo": Path(clone), "cache": Path("/root/.cache/paqm"),
        "build": Path("/root/.cache/paqm/programs/x"), "out": Path(clone) / "out/first/paqm",
    }
    for text, known in {
        "/run/lab/build": "/run/lab/build",
        "/run/lab/cache/node:/run/lab/out": "/run/lab/cache/node:/run/lab/out",
        "/run/lab/build/lab/registry.bin": "/run/lab/build/lab/registry.bin",
        f"-I{clone}/core,{clone}/lab/x": "-I/run/lab/repo/core,/run/lab/repo/lab/x",
        f"{clone}/testbed": "/run/lab/repo/testbed",
        f"{clone}/out/first/paqm/trace.txt": "/run/lab/out/trace.txt",
        f"cd {clone} && ls '{clone}'": "cd /run/lab/repo && ls '/run/lab/repo'",
        f"{clone}-2/x": f"{clone}-2/x",
    }.items():
        assert uml.inside(places, text) == known


def test_missing_space_is_said_before_the_work() -> None:
    with pytest.raises(LabError, match=r"needs 999999999 MB"):
        cache.need_space(cache.cache_dir(), 999_999_999, "a test")


def test_missing_program_is_named() -> None:
    with pytest.raises(LabError, match=r"needs no-such-program; run setup/setup.sh"):
        cache.need_programs(["sh", "no-such-program"], "a test")


def test_without_git_no_run_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ended when all had been simulated: git: No such file or directory."""
    monkeypatch.setenv("PATH", "/nonexistent")
    assert lab._revision() == "unknown"


def test_a_processor_that_runs_no_guest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    for begin in (lambda: kernel.ensure("lab", print), lambda: image.fetch(print)):
        with pytest.raises(LabError, match=r"need an x86-64 processor .*; this is aarch64"):
            begin()


def test_lock_files_hold_hashes_and_no_hosts() -> None:
    lock = (SETUP / "requirements.lock").read_text()
    wanted = re.findall(r"^([a-z][\w-]*)$", (SETUP / "requirements.in").read_text(), re.M)
    pinned = re.findall(r"^([a-z][\w.-]*)==\S+ \\\n    --hash=sha256:", lock, re.M)
    assert len(wanted) >= 8 and set(wanted) <= set(pinned)
    assert "://" not in lock and "index" not in lock.replace("--no-emit-index-url", "")


def test_command_line_errors_are_one_line_and_status_2() -> None:
    done = subprocess.run(
        [cache.TESTBED / "paqm-lab", "run", "nonesuch"], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("paqm-lab: nonesuch: ")
