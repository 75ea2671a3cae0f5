#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""A call over loopback: real link, real SRTP, real codecs; and who is not let in.

No figure depends on how fast the machine is: the call goes on until both ends have shown and played
something, then one end hangs up.
"""

import csv
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WAIT = 120.0  # s that anything may take on a loaded machine


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def secret(path: Path, text: str, mode: int = 0o600) -> str:
    path.touch(mode)
    path.chmod(mode)
    path.write_text(text + "\n")
    return str(path)


def call(streamer: str, *options: str, source: str = "test") -> "subprocess.Popen[str]":
    common = ["--source", source, "--audio", "test", "--sink", "none", "--audio-sink", "none"]
    return subprocess.Popen(
        [streamer, "call", *options, *common, "--rate-max", "500kbit", "--paqmd", "none",
         "--rtx", "--fec", "25"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def refused(streamer: str, says: str, *options: str) -> None:
    """A call that is not even begun: status 2 and a reason."""
    done = subprocess.run([streamer, "call", *options], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, env={**os.environ, "DISPLAY": "",
                                                         "WAYLAND_DISPLAY": ""})
    assert done.returncode == 2 and says in done.stderr, (options, done.returncode, done.stderr)


def rows(path: Path) -> int:
    if not path.exists():
        return 0
    with path.open(newline="") as f:
        return sum(1 for _ in csv.reader(f)) - 1


def losses(streamer: str, tmp: Path, secret_file: str) -> None:
    """A camera that fails, then a peer that vanishes: no end of the call, then a clear one."""
    where = f"127.0.0.1:{free_port()}"
    broken = tmp / "broken.mp4"
    broken.write_bytes(b"no video" * 1000)
    listener = call(streamer, "--listen", where, "--secret", secret_file, "--record",
                    str(tmp / "c"))
    caller = call(streamer, where, "--secret", secret_file, "--record", str(tmp / "d"),
                  source=str(broken))
    heard = [tmp / "c" / "audio.csv", tmp / "d" / "video.csv"]
    end = time.monotonic() + WAIT
    while not all(rows(path) > 20 for path in heard) and time.monotonic() < end:
        assert listener.poll() is None and caller.poll() is None, "the call broke off"
        time.sleep(0.2)
    assert all(rows(path) > 20 for path in heard), "sound or the other picture stopped"
    assert rows(tmp / "c" / "video.csv") <= 0
    caller.kill()
    said = caller.communicate(timeout=WAIT)[0], listener.communicate(timeout=WAIT)[0]
    assert said[0].count("no picture is sent any more") == 1, said[0]
    assert listener.returncode == 0 and "ended: " in said[1], said[1]


def main() -> int:
    streamer = sys.argv[1]
    with tempfile.TemporaryDirectory() as name:
        tmp = Path(name)
        good = secret(tmp / "good", "a secret of many bytes")
        quiet = ("--source", "test", "--audio", "none", "--sink", "none", "--audio-sink", "none")
        refused(streamer, "whom to call", "--secret", good, *quiet)
        refused(streamer, "--secret FILE is missing", "127.0.0.1", *quiet)
        refused(streamer, "0 to 100 per cent", "127.0.0.1", "--secret", good, "--fec", "101",
                *quiet)
        refused(streamer, "no display", "127.0.0.1", "--secret", good)
        refused(streamer, "chmod 600", "127.0.0.1", "--secret",
                secret(tmp / "open", "a secret of many bytes", 0o644), *quiet)
        refused(streamer, "a secret needs 16", "127.0.0.1", "--secret",
                secret(tmp / "short", "short"), *quiet)
        (tmp / "full").mkdir()
        (tmp / "full" / "file").touch()
        refused(streamer, "not an empty directory", "127.0.0.1", "--secret", good, "--record",
                str(tmp / "full"), *quiet)

        where = f"127.0.0.1:{free_port()}"
        listener = call(streamer, "--listen", where, "--secret", good, "--name", "listener",
                        "--record", str(tmp / "a"))
        # who does not know the secret is told off; the listener goes on waiting
        wrong = call(streamer, where, "--secret", secret(tmp / "wrong", "another secret, as long"))
        out, _ = wrong.communicate(timeout=WAIT)
        assert wrong.returncode == 1 and "the same secret" in out, out
        with socket.create_connection(tuple(where.rsplit(":", 1))) as stranger:
            stranger.sendall(b"GET / HTTP/1.0\r\n\r\n")
        clip = tmp / "clip.mp4"  # only while it is decoded it turns out what is in it
        subprocess.run(["gst-launch-1.0", "-q", "videotestsrc", "num-buffers=3000", "!",
                        "video/x-raw,width=64,height=48,framerate=25/1", "!", "x264enc", "!",
                        "mp4mux", "!", "filesink", f"location={clip}"], check=True)
        caller = call(streamer, where, "--secret", good, "--name", "caller", "--record",
                      str(tmp / "b"), source=str(clip))
        needed = [tmp / end / f"{what}.csv" for end in "ab" for what in ("video", "audio")]
        end = time.monotonic() + WAIT
        while not all(rows(path) > 20 for path in needed) and time.monotonic() < end:
            assert listener.poll() is None and caller.poll() is None, "a call broke off"
            time.sleep(0.2)
        caller.send_signal(signal.SIGUSR1)  # mute
        caller.send_signal(signal.SIGINT)
        said = caller.communicate(timeout=WAIT)[0], listener.communicate(timeout=WAIT)[0]
        assert caller.returncode == 0 and listener.returncode == 0, said
        assert "talking to listener" in said[0] and "you hung up" in said[0], said[0]
        assert "talking to caller" in said[1] and "the peer hung up" in said[1], said[1]
        assert said[1].count("was refused") == 2, said[1]
        for path in needed:
            assert rows(path) > 20, (path, said)
        for end_name in "ab":
            about = json.loads((tmp / end_name / "call.json").read_text())
            assert about["video"]["sent"] and about["audio"]["sent"] and about["rtx"]
            assert about["fec"] == 25
            assert rows(tmp / end_name / "inbound.csv") > 5
            with (tmp / end_name / "gop.csv").open(newline="") as f:
                groups = list(csv.DictReader(f))
            assert groups and all(int(g["frames"]) and int(g["qp_base"]) for g in groups), groups
            text = (tmp / end_name / "call.json").read_text()
            assert "key" not in text and "secret" not in text
        losses(streamer, tmp, good)
    print("all is well")
    return 0


if __name__ == "__main__":
    sys.exit(main())
