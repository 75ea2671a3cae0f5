# SPDX-License-Identifier: GPL-2.0
"""Boots real guests: status, faults and time-outs come back.

That runs repeat bit by bit is for test_verify.py and test_anywhere.py.
"""

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from test_anywhere import may_mount

from paqm_lab import cache, kernel, lab, run, scenario, uml

pytestmark = pytest.mark.lab
TCP = Path(__file__).parent / "tcp.toml"

# Reads the clock by the C library and by system call in turn, then until a timer rings, then where
# the only system calls are read, write and exit (seccomp's strict mode).
CLOCK = """
import ctypes, os, signal, time
libc, spec, rung = ctypes.CDLL(None), (ctypes.c_long * 2)(), []
def by_call():
    libc.syscall(228, time.CLOCK_MONOTONIC, spec)
    return spec[0] * 10**9 + spec[1]
def since_boot():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)
turns = [read() for _ in range(500) for read in (time.monotonic_ns, by_call, since_boot)]
print(sorted({b - a for a, b in zip(turns, turns[1:])}))
signal.signal(signal.SIGALRM, lambda *_: rung.append(now))
for number in range(2): # the first timer of a boot waits for the kernel's tick
    begin = time.monotonic_ns()
    signal.setitimer(signal.ITIMER_REAL, 0.005)
    while len(rung) == number:
        now = time.monotonic_ns()
print(rung[1] - begin, flush=True)
begin = time.time_ns()
libc.prctl(22, 1)
since_boot()
later = time.time_ns()
os.write(1, b"%d" % (later - begin))
libc.syscall(60, 0)
"""

# As in Docker's default profile: personality() with ADDR_NO_RANDOMIZE is not permitted (seccomp(2):
# load the number of the call; is it 135? Load its argument; is it a question, or has it the bit?).
PROFILE = """
import ctypes, struct
code = [(0x20, 0, 0, 0), (0x15, 0, 4, 135), (0x20, 0, 0, 16), (0x15, 2, 0, 0xffffffff),
        (0x45, 0, 1, 0x40000), (6, 0, 0, 0x50001), (6, 0, 0, 0x7fff0000)]
text = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *row) for row in code))
libc, program = ctypes.CDLL(None), struct.pack("@HP", len(code), ctypes.addressof(text))
assert not libc.prctl(38, 1, 0, 0, 0) and not libc.prctl(22, 2, program)
assert libc.personality(0x40000) == -1 != libc.personality(0xffffffff)
"""


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


def test_programs_read_virtual_time_themselves(built: kernel.Kernel, tmp_path: Path) -> None:
    """And it goes on as if the kernel had been asked; what falls due meanwhile is not late."""
    result = boot(built, tmp_path, shlex.join(["python3", "-c", CLOCK]))
    assert result.good, result.explain()
    steps, until_alarm, step = (json.loads(line) for line in result.output.read_text().splitlines())
    assert {round(one / 256) for one in steps} <= {1, 2}
    assert 4_999_000 < until_alarm < 5_001_000
    assert 0 < step <= 768


def test_files_of_the_host_are_written_in_pieces_of_a_page(
    built: kernel.Kernel, tmp_path: Path
) -> None:
    result = boot(built, tmp_path, "stat -c %o output.log", cwd=tmp_path)
    assert result.output.read_text() == "4096\n"


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


def boots(before: str, directory: Path, *wrapper: str) -> None:
    """A guest of a process of its own, which does something before."""
    program = (
        f"{before}\nimport pathlib, sys; from paqm_lab import kernel, uml\n"
        "job = uml.Job(directory=pathlib.Path(sys.argv[1]), command=['true'])\n"
        "result = uml.run(kernel.ensure('lab', print), job)\n"
        "sys.exit(0 if result.good else result.explain())"
    )
    command = [*wrapper, sys.executable, "-c", program, str(directory)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_where_addresses_must_be_random(built: kernel.Kernel, tmp_path: Path) -> None:
    boots(PROFILE, tmp_path)


@pytest.mark.skipif(not may_mount(), reason="another /dev/shm is mounted: needs root")
@pytest.mark.parametrize("shm", ["noexec", "size=1m"])
def test_memory_of_a_guest_elsewhere(built: kernel.Kernel, tmp_path: Path, shm: str) -> None:
    """On hosts that execute nothing from /dev/shm, and in containers where it is small."""
    mounts = f"mount --make-rprivate / && mount -t tmpfs -o {shm} tmpfs /dev/shm"
    boots("", tmp_path, "unshare", "--mount", "sh", "-c", f'{mounts} && exec "$@"', "sh")


def test_the_queue_is_looked_at_ten_times_a_second(tmp_path: Path) -> None:
    loaded = scenario.load(str(TCP))
    resolved = loaded.resolve(loaded.variants[0], 1, 0)
    house = lab.ready(ignore, modules=False)
    run.VariantRun(resolved, tmp_path / "one", house, None, ignore, loaded, None).run()
    samples = [json.loads(line) for line in (tmp_path / "one" / "tc.jsonl").open()]
    assert [round(sample["t"], 1) for sample in samples] == [n / 10 for n in range(51)]
    sent = samples[-1]["qdisc"][0]["bytes"] * 8 / 5
    assert 0.9 * 8e6 < sent <= 8.05e6
    # Not by a program for each look, nor for each device and address of the network.
    assert json.loads((tmp_path / "one" / "guest.json").read_text())["processes"] < 80
