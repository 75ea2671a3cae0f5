# SPDX-License-Identifier: GPL-2.0
"""What the tests of streams share: a clip, senders and receivers of it."""

import contextlib
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "kernel" / "lab-tests"))
from trial import Program  # noqa: E402

from paqm_lab.topology import HERE  # noqa: E402

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


def has_element(name: str) -> bool:
    return subprocess.run(["gst-inspect-1.0", "--exists", name], check=False).returncode == 0


def check(condition: bool, text: str) -> None:
    if not condition:
        raise SystemExit(f"FAIL: {text}")


def receive(
    program: str | Path, where: str, log: Path, *options: object, host: str = HERE,
    env: dict[str, str] | None = None,
) -> Program:
    """A receiver that listens."""
    return Program(host, program, "recv", "--listen", where, "--log", log, *options,
                   ready="listening", env=env)


def send(
    program: str | Path, to: str, log: Path, clip: Path, *options: object, host: str = HERE,
    paqmd: object = "none",
) -> Program:
    return Program(host, program, "send", "--to", to, "--source", clip, "--log", log,
                   "--paqmd", paqmd, *options)


def finish(receiver: Program, sender: Program, how: int = 0, after: float = 1) -> tuple[str, str]:
    """Waits for the sender, or ends it, and ends the receiver then; what they have said."""
    said = sender.end(how)
    time.sleep(after)
    return said, receiver.end(signal.SIGINT)


def stream(
    program: str, tmp: Path, options: Sequence[object], hear: Sequence[object] = (),
    host: str = "127.0.0.1",
) -> tuple[Path, Path]:
    """The clip, sent and received; the directories of both ends' logs."""
    to, sent, came = f"{host}:{free_port()}", tmp / "es", tmp / "er"
    receiver = receive(program, to, came, *hear)
    finish(receiver, send(program, to, sent, tmp / "clip.y4m", "--loop", "--controller", "fixed",
                          *options))
    return sent, came


@contextlib.contextmanager
def ended(*programs: Program) -> Iterator[None]:
    """Whatever happens, they do not stay."""
    try:
        yield
    finally:
        for program in programs:
            if program.poll() is None:
                program.kill()


def threads(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/task").iterdir()))
