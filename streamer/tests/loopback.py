# SPDX-License-Identifier: GPL-2.0
"""What the tests over loopback share: a clip, senders and receivers of it, their logs."""

import contextlib
import csv
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

WIDTH, HEIGHT, FRAMES = 320, 192, 120


def write_clip(path: Path) -> None:
    """A textured picture that moves, so that there is something to code."""
    texture = bytes((x * 7 ^ (x * x) >> 5) & 0xFF for x in range(WIDTH + 4 * FRAMES + HEIGHT))
    chroma = bytes([128]) * (WIDTH * HEIGHT // 2)
    with path.open("wb") as f:
        f.write(f"YUV4MPEG2 W{WIDTH} H{HEIGHT} F24:1 Ip C420jpeg\n".encode())
        for n in range(FRAMES):
            f.write(b"FRAME\n")
            for y in range(HEIGHT):
                f.write(texture[4 * n + y : 4 * n + y + WIDTH])
            f.write(chroma)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as f:
        return list(csv.DictReader(f))


def free_port() -> int:
    """An even port whose neighbour is free too."""
    for _ in range(100):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as a:
            a.bind(("127.0.0.1", 0))
            port = int(a.getsockname()[1])
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as b:
                try:
                    b.bind(("127.0.0.1", port + 1))
                except OSError:
                    continue
                return port
    raise SystemExit("no two free UDP ports")


def check(condition: bool, text: str) -> None:
    if not condition:
        raise SystemExit(f"FAIL: {text}")


def start_receiver(
    program: str, port: int, log: Path, *options: str, stderr: int | None = None,
    host: str = "127.0.0.1",
) -> subprocess.Popen[str]:
    """A receiver that listens."""
    receiver = subprocess.Popen(
        [program, "recv", "--listen", f"{host}:{port}", "--log", str(log), *options],
        stdout=subprocess.PIPE, stderr=stderr, text=True,
    )  # fmt: skip
    assert receiver.stdout
    check(receiver.stdout.readline().startswith("listening"), "the receiver did not start")
    return receiver


def stream(
    program: str, tmp: Path, options: list[str], hear: tuple[str, ...] = (),
    host: str = "127.0.0.1",
) -> tuple[Path, Path]:  # fmt: skip
    """The clip, sent and received; the directories of both ends' logs."""
    port, send, recv = free_port(), tmp / "es", tmp / "er"
    receiver = start_receiver(program, port, recv, *hear, host=host)
    done = subprocess.run(
        [program, "send", "--to", f"{host}:{port}", "--source", str(tmp / "clip.y4m"), "--loop",
         "--paqmd", "none", "--controller", "fixed", "--log", str(send), *options],
        check=False,
    )  # fmt: skip
    check(done.returncode == 0, f"{options}: the sender's exit status")
    subprocess.run(["sleep", "1"], check=True)
    receiver.send_signal(signal.SIGINT)
    check(receiver.wait(60) == 0, f"{options}: the receiver's exit status")
    return send, recv


def start_sender(
    program: str, port: int, tmp: Path, log: Path, *options: str
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [program, "send", "--to", f"127.0.0.1:{port}", "--source", str(tmp / "clip.y4m"), "--loop",
         "--paqmd", "none", "--log", str(log), *options],
    )  # fmt: skip


def wait_for(receiver: subprocess.Popen[str], text: str) -> None:
    """Until the receiver says so."""
    assert receiver.stderr
    for line in receiver.stderr:
        if text in line:
            return
    raise SystemExit(f"FAIL: the receiver did not say '{text}'")


def finish_both(receiver: subprocess.Popen[str], sender: subprocess.Popen[bytes]) -> None:
    sender.send_signal(signal.SIGTERM)
    check(sender.wait(60) == 0, "several: a sender's exit status")
    subprocess.run(["sleep", "1"], check=True)
    receiver.send_signal(signal.SIGINT)
    check(receiver.wait(60) == 0, "several: the receiver's exit status")


@contextlib.contextmanager
def ended(*programs: subprocess.Popen[str] | subprocess.Popen[bytes]) -> Iterator[None]:
    """Whatever happens, they do not stay."""
    try:
        yield
    finally:
        for program in programs:
            if program.poll() is None:
                program.kill()


def threads(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/task").iterdir()))
