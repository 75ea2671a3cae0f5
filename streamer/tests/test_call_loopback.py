# SPDX-License-Identifier: GPL-2.0
"""A call over loopback: real link, real SRTP, real codecs; and who is not let in.

The call goes on until both ends have shown and played something, then one end hangs up. Runs in
virtual time (lab_loopback.py), where no machine is slow.
"""

import array
import json
import os
import re
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
import wave
from pathlib import Path

import loopback_records
import streams
import trial
from trial import PATIENCE, Program, until

from paqm_lab.topology import HERE


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def secret(path: Path, text: str, mode: int = 0o600) -> str:
    path.touch(mode)
    path.chmod(mode)
    path.write_text(text + "\n")
    return str(path)


def call(
    streamer: str, *options: str, source: str = "test", audio: str = "test", heard: str = "none",
    seen: str = "none",
) -> Program:
    return Program(HERE, streamer, "call", *options, "--source", source, "--audio", audio, "--sink",
                   seen, "--audio-sink", heard, "--rate-max", "500kbit", "--paqmd", "none", "--rtx",
                   "--fec", 25)


def refused(streamer: str, says: str, *options: str) -> None:
    """A call that is not even begun: status 2 and a reason."""
    done = subprocess.run([streamer, "call", *options], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, env={**os.environ, "DISPLAY": "",
                                                         "WAYLAND_DISPLAY": ""})
    assert done.returncode == 2 and says in done.stderr, (options, done.returncode, done.stderr)


def bare(streamer: str, tmp: Path, secret_file: str) -> None:
    """Plug-ins that are missing are named before anybody is waited for."""
    (tmp / "no-plugins").mkdir()
    done = subprocess.run(
        [streamer, "call", "--listen", f"127.0.0.1:{free_port()}", "--secret", secret_file,
         "--source", "test", "--audio", "test", "--sink", "none", "--audio-sink", "none"],
        capture_output=True, text=True, timeout=PATIENCE,
        env={**os.environ, "GST_PLUGIN_SYSTEM_PATH_1_0": str(tmp / "no-plugins"),
             "GST_REGISTRY_1_0": str(tmp / "no-plugins" / "registry")})
    assert done.returncode == 2 and "waiting" not in done.stdout, done
    assert "is needed: install gstreamer1.0-plugins-base" in done.stderr, done.stderr


def without_libav(streamer: str, tmp: Path, secret_file: str) -> None:
    """Who cannot decode the peer's pictures says what to install."""
    where, plugins = f"127.0.0.1:{free_port()}", tmp / "no-libav"
    plugins.mkdir()
    for file in Path("/usr/lib").glob("*/gstreamer-1.0/*.so"):
        if "libav" not in file.name:
            (plugins / file.name).symlink_to(file)
    common = ("--secret", secret_file, "--source", "test", "--audio", "none", "--sink", "none",
              "--audio-sink", "none", "--paqmd", "none")
    listener = Program(HERE, streamer, "call", "--listen", where, *common)
    caller = Program(HERE, streamer, "call", where, *common,
                     env={"GST_PLUGIN_SYSTEM_PATH_1_0": str(plugins),
                          "GST_REGISTRY_1_0": str(plugins / "registry")})
    said = caller.end(status=2)
    assert "the peer's pictures: H264 cannot be decoded here" in said, said
    assert "install gstreamer1.0-libav" in said, said
    assert "hung up" in listener.end(), listener.said()


def nowhere(streamer: str, tmp: Path, secret_file: str) -> None:
    """Pictures that cannot be recorded have come all the same."""
    where = f"127.0.0.1:{free_port()}"
    listener = call(streamer, "--listen", where, "--secret", secret_file,
                    seen=str(tmp / "missing" / "seen.y4m"))
    caller = call(streamer, where, "--secret", secret_file)
    until("it cannot be written", lambda: "the call goes on without it" in listener.said(),
          listener, caller)
    time.sleep(13)
    said = hang_up(caller, listener)
    assert "no picture of the peer" not in said, said


def rows(path: Path) -> int:
    """How many it has."""
    return max(0, path.read_bytes().count(b"\n") - 1) if path.exists() else 0


def losses(streamer: str, tmp: Path, secret_file: str) -> None:
    """A source that fails, then a peer that vanishes: no end of the call, then a clear one."""
    where = f"127.0.0.1:{free_port()}"
    broken = tmp / "broken.mp4"
    broken.write_bytes(b"no video" * 1000)
    listener = call(streamer, "--listen", where, "--secret", secret_file, "--record",
                    str(tmp / "c"))
    caller = call(streamer, where, "--secret", secret_file, "--record", str(tmp / "d"),
                  source=str(broken))
    heard = [tmp / "c" / "audio.csv", tmp / "d" / "video.csv"]
    until("sound and the other picture", lambda: all(rows(path) > 20 for path in heard), listener,
          caller)
    assert rows(tmp / "c" / "video.csv") <= 0
    said = caller.end(signal.SIGKILL, -signal.SIGKILL), listener.end()
    assert said[0].count("the call goes on without it") == 1, said[0]
    assert "ended: the connection broke off without a hang-up;" in said[1], said[1]


def late(streamer: str, tmp: Path, secret_file: str) -> None:
    """Files that are missing, or have no sound, when a call begins: taken once they are right."""
    where, clip, sound = f"127.0.0.1:{free_port()}", tmp / "late.y4m", tmp / "late.wav"
    sound.write_bytes(b"no sound" * 1000)
    listener = call(streamer, "--listen", where, "--secret", secret_file, "--record",
                    str(tmp / "k"))
    caller = call(streamer, where, "--secret", secret_file, "--record", str(tmp / "l"),
                  source=str(clip), audio=str(sound))
    until("the caller sees and hears, and misses both files", lambda: (
        all(rows(tmp / "l" / f"{what}.csv") > 20 for what in ("video", "audio"))
        and caller.said().count("the call goes on without it") == 2), listener, caller)
    streams.write_clip(tmp / "new.y4m")
    (tmp / "new.y4m").rename(clip)
    one_second(tmp / "new.wav").rename(sound)
    until("so does the listener", lambda: all(
        rows(tmp / "k" / f"{what}.csv") > 60 for what in ("video", "audio")), listener, caller)
    hang_up(caller, listener)


def one_second(path: Path) -> Path:
    with wave.open(str(path), "wb") as f:
        f.setparams((1, 2, 16000, 0, "NONE", ""))
        f.writeframes(b"\1\2" * 16000)
    return path


def pipes(streamer: str, tmp: Path, secret_file: str) -> None:
    """Picture and sound out of pipes that nobody writes to: the call goes on without. It has those
    of a program that makes the pipes anew, and of the one after it, and ends.
    """
    where, pipe = f"127.0.0.1:{free_port()}", [tmp / "pipe.y4m", tmp / "pipe.wav"]
    for path in pipe:
        os.mkfifo(path)
    listener = call(streamer, "--listen", where, "--secret", secret_file, "--record",
                    str(tmp / "pl"))  # fmt: skip
    caller = call(streamer, where, "--secret", secret_file, "--record", str(tmp / "pc"),
                  source=str(pipe[0]), audio=str(pipe[1]))
    until("the caller sees and hears", lambda: all(
        rows(tmp / "pc" / f"{what}.csv") > 20 for what in ("video", "audio")), listener, caller)
    assert caller.said().count("is a pipe: waiting") == 2, caller.said()
    streams.write_clip(tmp / "piped.y4m")
    content = [(tmp / "piped.y4m").read_bytes(), one_second(tmp / "piped.wav").read_bytes()]
    for turn in range(2):
        for path in pipe:
            path.unlink()
            os.mkfifo(path)
        writers = [threading.Thread(target=path.write_bytes, args=(data,))
                   for path, data in zip(pipe, content, strict=True)]  # fmt: skip
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        # those that came before, those that were made anew, and once more behind the end
        until("all was read", lambda turn=turn: (
            caller.said().count("is a pipe: waiting") == 6 + 4 * turn), listener, caller)
        time.sleep(1)
    hang_up(caller, listener)
    # two seconds of pictures and one of sound, in steps of 20 ms, each time
    seen, heard = (rows(tmp / "pl" / f"{what}.csv") for what in ("video", "audio"))
    assert seen > 2 * 40 and heard > 2 * 40, (seen, heard)


def halting(streamer: str, tmp: Path, secret_file: str) -> None:
    """A program that writes pictures to a pipe stands still: what it writes then is of then."""
    where, pipe = f"127.0.0.1:{free_port()}", tmp / "halt.y4m"
    os.mkfifo(pipe)
    listener = call(streamer, "--listen", where, "--secret", secret_file, "--record",
                    str(tmp / "hl"))  # fmt: skip
    caller = call(streamer, where, "--secret", secret_file, source=str(pipe))
    streams.write_clip(tmp / "halted.y4m")
    head, *pictures = (tmp / "halted.y4m").read_bytes().split(b"FRAME\n")

    def write() -> None:
        with pipe.open("wb", buffering=0) as f:
            f.write(head)
            for n, picture in enumerate(pictures):
                f.write(b"FRAME\n" + picture)
                time.sleep(5 if n == len(pictures) // 2 else 1 / 24)

    writer = threading.Thread(target=write)
    writer.start()
    writer.join()
    time.sleep(2)
    hang_up(caller, listener)
    seen = trial.rows(tmp / "hl" / "video.csv")
    ages = [(int(row["play_ns"]) - int(row["capture_ns"])) / 1e9 for row in seen]
    assert len(ages) > 36 and max(ages[-24:]) < 2, [round(age, 2) for age in ages[::6]]


def codings(streamer: str, tmp: Path, secret_file: str) -> None:
    """Each end has an encoder of its own: what the offer says decides how the other decodes."""
    where, seen = f"127.0.0.1:{free_port()}", tmp / "coding.y4m"
    common = ("--secret", secret_file, "--source", "test", "--audio", "none", "--sink", "none",
              "--audio-sink", "none", "--rate-max", "2mbit", "--paqmd", "none", "--controller",
              "fixed")
    ends = [Program(HERE, streamer, "call", *there, *common, "--encoder", encoder, "--record",
                    tmp / f"coding-{encoder}", *more)
            for there, encoder, more in ((("--listen", where), "jpegenc", ()),
                                         ((where,), "avenc_bmp", ("--sink", seen)))]
    for encoder in ("jpegenc", "avenc_bmp"):
        wait_for_rows(tmp / f"coding-{encoder}" / "video.csv", 40, *ends)
    hang_up(ends[1], ends[0])
    with seen.open("rb") as file:  # JPEG does not tell its pace
        head = file.readline()
    assert b" F30:1 " in head, head
    for encoder, whole in (("jpegenc", True), ("avenc_bmp", False)):
        frames = trial.rows(tmp / f"coding-{encoder}" / "frames.csv")
        sizes = {(int(row["width"]), int(row["height"])) for row in frames[1:]}
        assert len(frames) > 40 and (sizes == {(640, 360)}) == whole, (encoder, sizes)
    refused(streamer, "need an H.264 encoder", where, *common, "--encoder", "vp8enc", "--rtx")
    refused(streamer, "no264enc", where, *common, "--encoder", "no264enc")


def few(streamer: str, tmp: Path, secret_file: str) -> None:
    """7.5 pictures a second: the first is shown before the next one tells the pace. No sound."""
    where, seen, clip = f"127.0.0.1:{free_port()}", tmp / "few-seen.y4m", tmp / "few.y4m"
    streams.write_clip(clip)
    clip.write_bytes(clip.read_bytes().replace(b"F24:1", b"F15:2", 1))
    common = ("--secret", secret_file, "--paqmd", "none")
    listener = Program(HERE, streamer, "call", "--listen", where, *common, "--source", "none",
                       "--audio", "none", "--sink", seen, "--audio-sink", tmp / "few.wav",
                       "--record", tmp / "few-l")
    caller = Program(HERE, streamer, "call", where, *common, "--source", clip, "--audio",
                     tmp / "missing.wav", "--sink", "none", "--audio-sink", "none")
    wait_for_rows(tmp / "few-l" / "video.csv", 8, listener, caller)
    said = hang_up(caller, listener)
    assert "WARNING" not in said, said
    with seen.open("rb") as file:
        head = file.readline()
    assert b" F15:2 " in head, head


def events(path: Path, kind: str) -> list[str]:
    return [row["detail"] for row in trial.rows(path / "events.csv") if row["event"] == kind]


def wait_for_rows(path: Path, count: int, *calls: Program) -> None:
    until(f"{count} rows in {path}", lambda: rows(path) >= count, *calls)


def hang_up(caller: Program, listener: Program, how: int = signal.SIGINT) -> str:
    """What the listener has said."""
    caller.end(how)
    return listener.end()


def resident(pid: int) -> float:
    """Memory of a process, MB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / 1e6


def strangers(streamer: str, tmp: Path, secret_file: str) -> None:
    """Datagrams of many sources from who has no key: no state, and the picture goes on."""
    where = f"127.0.0.1:{free_port()}"
    listener = call(streamer, "--listen", where, "--secret", secret_file, "--record",
                    str(tmp / "e"))
    caller = call(streamer, where, "--secret", secret_file, "--record", str(tmp / "f"))
    shown = tmp / "e" / "video.csv"
    wait_for_rows(shown, 100, listener, caller)
    about = json.loads((tmp / "e" / "call.json").read_text())
    before = resident(listener.pid)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for n in range(30000):
            # looks like one of the stream, like its repair, like sound, like its reports
            for what, kind, port in (("video", 96, 0), ("audio", 97, 0), ("video", 200, 1)):
                head = struct.pack("!BBHII", 0x80, kind, n >> 2 & 0xFFFF, n >> 2, n // 4)
                if port:
                    head = struct.pack("!BBHI", 0x80, kind, 6, n // 4) + head
                s.sendto(head + bytes(20), ("127.0.0.1", about[what]["port"] + port))
            if n % 50 == 0:
                time.sleep(0.005)
    wait_for_rows(shown, rows(shown) + 50, listener, caller)
    more = resident(listener.pid) - before
    hang_up(caller, listener)
    times = [int(row["arrival_ns"]) / 1e9 for row in trial.rows(shown)]
    gap = max(b - a for a, b in zip(times[50:], times[51:]))  # noqa: B905
    assert gap < 4, f"no picture for {gap:.1f} s"
    assert more < 15, f"strangers made it keep {more:.0f} MB"
    refused = sum(int(n) for n in re.findall(r"(\d+) of strangers",
                                             " ".join(events(tmp / "e", "refused"))))
    assert refused > 20000, events(tmp / "e", "refused")
    assert events(tmp / "f", "refused") == ["nothing"] * 2, events(tmp / "f", "refused")


def one_way(streamer: str, tmp: Path, secret_file: str) -> None:
    """What one end sends is dropped on the way: it learns that this is why the other hangs up."""
    where = f"127.0.0.1:{free_port()}"
    listener = call(streamer, "--listen", where, "--secret", secret_file, "--record",
                    str(tmp / "way"))
    caller = call(streamer, where, "--secret", secret_file)
    wait_for_rows(tmp / "way" / "video.csv", 20, listener, caller)
    about = json.loads((tmp / "way" / "call.json").read_text())
    ports = ", ".join(str(about[what]["port"]) for what in ("video", "audio"))
    Program(HERE, "nft", "table ip way { chain drops { type filter hook input priority 0; "
            f"udp dport {{ {ports} }} drop; }}; }}").end()
    try:
        assert "no packet of the peer for 10 s" in listener.end(), listener.said()
        said = caller.end()
        assert "hung up and says: no packet of yours has arrived for 10 s" in said, said
    finally:
        Program(HERE, "nft", "delete table ip way").end()


def surround(streamer: str, tmp: Path, secret_file: str) -> None:
    """Sound of six channels, in a file that comes late, is heard: its tone repeats itself."""
    where, sound, heard = f"127.0.0.1:{free_port()}", tmp / "six.wav", tmp / "heard-six.wav"
    listener = call(streamer, "--listen", where, "--secret", secret_file, "--record",
                    str(tmp / "six"), source="none", audio="none", heard=str(heard))
    caller = call(streamer, where, "--secret", secret_file, audio=str(sound))
    until("it is not there", lambda: "until it is back" in caller.said(), listener, caller)
    subprocess.run(
        ["gst-launch-1.0", "-q", "audiotestsrc", "freq=1000", "num-buffers=500", "!",
         "audio/x-raw,channels=6,channel-mask=(bitmask)0x3f", "!", "wavenc", "!", "filesink",
         f"location={tmp / 'part'}"], check=True)
    (tmp / "part").rename(sound)
    wait_for_rows(tmp / "six" / "audio.csv", 150, listener, caller)
    hang_up(caller, listener)
    with wave.open(str(heard)) as f:
        step, period = f.getnchannels(), f.getframerate() // 1000
        tone = array.array("h", f.readframes(f.getnframes()))[::step][-48000:-4800]
    off = sum(abs(a - b) for a, b in zip(tone, tone[period:]))  # noqa: B905
    assert off < 0.2 * sum(map(abs, tone)), "what is heard is no tone"


def still(streamer: str, tmp: Path, secret_file: str) -> None:
    """A file of a single picture is shown, and not read again all the time."""
    where, file = f"127.0.0.1:{free_port()}", tmp / "still.png"
    subprocess.run(["gst-launch-1.0", "-q", "videotestsrc", "num-buffers=1", "!", "pngenc", "!",
                    "filesink", f"location={file}"], check=True)
    listener = call(streamer, "--listen", where, "--secret", secret_file, "--record",
                    str(tmp / "still"), source="none", audio="none")
    caller = call(streamer, where, "--secret", secret_file, source=str(file))
    shown = tmp / "still" / "video.csv"
    wait_for_rows(shown, 2, listener, caller)
    before = rows(shown)
    time.sleep(10)
    hang_up(caller, listener)
    assert 5 < rows(shown) - before < 50, rows(shown) - before


def only_watching(streamer: str, tmp: Path, secret_file: str) -> None:
    """Who sends neither picture nor sound is heard by reports, and the sender gets them."""
    where = f"127.0.0.1:{free_port()}"
    listener = call(streamer, "--listen", where, "--secret", secret_file, "--record",
                    str(tmp / "g"))
    caller = call(streamer, where, "--secret", secret_file, "--record", str(tmp / "h"),
                  source="none", audio="none")
    wait_for_rows(tmp / "h" / "video.csv", 20, listener, caller)
    time.sleep(12)
    wait_for_rows(tmp / "h" / "video.csv", 200, listener, caller)
    assert "the peer hung up" in hang_up(caller, listener)
    about = json.loads((tmp / "h" / "call.json").read_text())
    assert not about["video"]["sent"] and not about["audio"]["sent"]
    media = [row["media"] for row in trial.rows(tmp / "g" / "rtcp.csv")]
    assert media.count("video") > 3 and media.count("audio") > 1, media
    for one in "gh":
        assert events(tmp / one, "refused") == ["nothing"] * 2, events(tmp / one, "refused")


def sound_file(streamer: str, tmp: Path, secret_file: str) -> None:
    """The peer's sound as a file: whole, with a head that tells its length.

    Who waits may mute already; a terminal that is closed hangs up.
    """
    where, file = f"127.0.0.1:{free_port()}", tmp / 'he"ard.wav'
    listener = call(streamer, "--listen", where, "--secret", secret_file, "--camera-off",
                    "--record", str(tmp / "i"), heard=str(file))
    place = where.replace(":", " port ")
    until("it waits", lambda: f"waiting for a call on {place}" in listener.said(), listener)
    listener.send_signal(signal.SIGUSR1)
    listener.send_signal(signal.SIGUSR2)
    caller = call(streamer, where, "--secret", secret_file, "--record", str(tmp / "j"))
    until("it says whom it calls", lambda: f"calling {place}" in caller.said(), caller)
    wait_for_rows(tmp / "i" / "audio.csv", 100, listener, caller)
    said = hang_up(caller, listener, signal.SIGHUP)
    assert "CRITICAL" not in said and "the peer hung up" in said, said[:500]
    assert events(tmp / "i", "muted") == ["yes"], events(tmp / "i", "muted")
    assert events(tmp / "i", "camera") == ["on"], events(tmp / "i", "camera")
    assert events(tmp / "j", "end") == ["you hung up"], events(tmp / "j", "end")
    with wave.open(str(file)) as f:
        length, size = f.getnframes(), f.getsampwidth() * f.getnchannels()
        assert length > f.getframerate(), length
    # besides the samples only a head
    assert 0 < file.stat().st_size - length * size < 200, (length, file.stat().st_size)


def recorded(streamer: str, tmp: Path, secret_file: str) -> None:
    """The peer's picture as a file: samples from 0 to 255 are said to be so, others not."""
    for full in (False, True):
        where, file, clip = f"127.0.0.1:{free_port()}", tmp / "seen.y4m", tmp / "range.y4m"
        if full:
            loopback_records.write_full_range(clip)
        else:
            streams.write_clip(clip)
        home = tmp / f"range-{full}"
        listener = call(streamer, "--listen", where, "--secret", secret_file, "--record",
                        str(home), seen=str(file))
        caller = call(streamer, where, "--secret", secret_file, source=str(clip))
        wait_for_rows(home / "video.csv", 40, listener, caller)
        hang_up(caller, listener)
        head, _, pictures = file.read_bytes().partition(b"\n")
        words = head.split()
        assert words[:3] == [b"YUV4MPEG2", b"W320", b"H192"], head
        assert (b"XCOLORRANGE=FULL" in words) == full, head
        size = 320 * 192
        assert len(pictures) % (size * 3 // 2 + 6) == 0, (head, len(pictures))
        assert pictures.startswith(b"FRAME\n"), pictures[:20]
        last = pictures[-size * 3 // 2 :][:size]
        assert not full or (min(last) < 16 and max(last) > 239), (min(last), max(last))


def make_film(path: Path, pictures: int) -> None:
    subprocess.run(["gst-launch-1.0", "-q", "videotestsrc", f"num-buffers={pictures}", "!",
                    "video/x-raw,width=64,height=48,framerate=25/1", "!", "x264enc", "!",
                    "mp4mux", "!", "filesink", f"location={path}"], check=True)


def looped(streamer: str, tmp: Path, secret_file: str) -> None:
    """A film that says how long it is begins again, too."""
    where, film = f"127.0.0.1:{free_port()}", tmp / "film.mp4"
    make_film(film, 50)
    listener = call(streamer, "--listen", where, "--secret", secret_file, "--record",
                    str(tmp / "looped"))
    caller = call(streamer, where, "--secret", secret_file, source=str(film))
    wait_for_rows(tmp / "looped" / "video.csv", 150, listener, caller)
    hang_up(caller, listener)


def main(streamer: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        tmp = Path(name)
        good = secret(tmp / "good", "a secret of many bytes")
        quiet = ("--source", "test", "--audio", "none", "--sink", "none", "--audio-sink", "none")
        refused(streamer, "whom to call", "--secret", good, *quiet)
        # the lowest rate is not above the highest unless somebody says so
        rates = ("127.0.0.1", "--secret", good, *quiet, "--rate-max", "100kbit")
        refused(streamer, "--fec 200", *rates, "--fec", "200")
        refused(streamer, "--rate-min must not exceed", *rates, "--rate-min", "2mbit")
        refused(streamer, "--secret FILE is missing", "127.0.0.1", *quiet)
        refused(streamer, "must be on, off or auto", "127.0.0.1", "--secret", good,
                "--echo-cancel", "yes", *quiet)
        refused(streamer, "needs a microphone and a loudspeaker", "127.0.0.1", "--secret", good,
                "--echo-cancel", "on", *quiet)
        refused(streamer, "0 to 100 per cent", "127.0.0.1", "--secret", good, "--fec", "101",
                *quiet)
        refused(streamer, "must be UTF-8", "127.0.0.1", "--secret", good, "--name", "J\udcf6rg",
                *quiet)
        refused(streamer, "no display", "127.0.0.1", "--secret", good)
        screen = ("127.0.0.1", "--secret", good, *quiet, "--source", "screen")
        refused(streamer, "no display", *screen)
        refused(streamer, "chmod 600", "127.0.0.1", "--secret",
                secret(tmp / "open", "a secret of many bytes", 0o644), *quiet)
        refused(streamer, "a secret needs 16", "127.0.0.1", "--secret",
                secret(tmp / "short", "short"), *quiet)
        (tmp / "full").mkdir()
        (tmp / "full" / "file").touch()
        refused(streamer, "not an empty directory", "127.0.0.1", "--secret", good, "--record",
                str(tmp / "full"), *quiet)

        where = f"127.0.0.1:{free_port()}"
        listener = call(streamer, "--listen", where, "--secret", good, "--name", "Jörg \"x\"",
                        "--muted", "--record", str(tmp / "a"))
        # who does not know the secret is told off; the listener goes on waiting
        wrong = call(streamer, where, "--secret", secret(tmp / "wrong", "another secret, as long"))
        assert "the same secret" in wrong.end(status=1), wrong.said()
        with socket.create_connection(tuple(where.rsplit(":", 1))) as stranger:
            stranger.sendall(b"GET / HTTP/1.0\r\n\r\n")
        clip = tmp / "clip.mp4"  # only while it is decoded it turns out what is in it
        make_film(clip, 3000)
        caller = call(streamer, where, "--secret", good, "--name", "caller", "--record",
                      str(tmp / "b"), source=str(clip))
        needed = [tmp / end / f"{what}.csv" for end in "ab" for what in ("video", "audio")]
        until("both see and hear", lambda: all(rows(path) > 20 for path in needed), listener,
              caller)
        caller.send_signal(signal.SIGUSR1)  # mute
        said = caller.end(signal.SIGINT), listener.end()
        assert "talking to Jörg \"x\"" in said[0] and "you hung up" in said[0], said[0]
        assert "talking to caller" in said[1] and "the peer hung up" in said[1], said[1]
        assert said[1].count("was refused") == 2, said[1]
        for path in needed:
            assert rows(path) > 20, (path, said)
        names = {end: json.loads((tmp / end / "call.json").read_text()) for end in "ab"}
        assert names["b"]["peer_name"] == names["a"]["name"] == 'Jörg "x"', names
        assert names["a"]["peer_name"] == names["b"]["name"] == "caller", names
        assert events(tmp / "b", "begin") == ['Jörg "x"'], events(tmp / "b", "begin")
        assert events(tmp / "b", "peer-muted") == ["yes"], events(tmp / "b", "peer-muted")
        for end_name in "ab":
            about = json.loads((tmp / end_name / "call.json").read_text())
            assert about["video"]["sent"] and about["audio"]["sent"] and about["rtx"]
            assert about["fec"] == 25
            assert rows(tmp / end_name / "inbound.csv") > 5
            groups = trial.rows(tmp / end_name / "gop.csv")
            assert groups and all(int(g["frames"]) and int(g["qp_base"]) for g in groups), groups
            text = (tmp / end_name / "call.json").read_text()
            assert "key" not in text and "secret" not in text
            assert events(tmp / end_name, "refused") == ["nothing"] * 2
        codings(streamer, tmp, good)
        few(streamer, tmp, good)
        bare(streamer, tmp, good)
        without_libav(streamer, tmp, good)
        nowhere(streamer, tmp, good)
        losses(streamer, tmp, good)
        late(streamer, tmp, good)
        pipes(streamer, tmp, good)
        halting(streamer, tmp, good)
        strangers(streamer, tmp, good)
        one_way(streamer, tmp, good)
        surround(streamer, tmp, good)
        still(streamer, tmp, good)
        only_watching(streamer, tmp, good)
        sound_file(streamer, tmp, good)
        recorded(streamer, tmp, good)
        looped(streamer, tmp, good)
