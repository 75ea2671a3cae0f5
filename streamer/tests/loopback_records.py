# SPDX-License-Identifier: GPL-2.0
"""What a recording says of a stream: range and shape of its pixels, its pace, how it was held."""

import struct
import subprocess
from pathlib import Path

from streams import HEIGHT, WIDTH, check, finish, free_port, has_element, receive, send, stream
from trial import rows


def write_full_range(path: Path) -> None:
    """Black and white fields, samples of 0 and 255."""
    rows_of = [bytes(255 * ((x // 32 + k) % 2) for x in range(WIDTH)) for k in (0, 1)]
    with path.open("wb") as f:
        f.write(f"YUV4MPEG2 W{WIDTH} H{HEIGHT} F24:1 Ip A4:3 C420jpeg XCOLORRANGE=FULL\n".encode())
        for n in range(48):
            f.write(b"FRAME\n" + rows_of[n // 12 % 2] * HEIGHT)
            f.write(bytes([128]) * (WIDTH * HEIGHT // 2))


def full_range(program: str, tmp: Path) -> None:
    """Samples from 0 to 255, and pixels that are not square, are recorded as such; others not."""
    output, halves = tmp / "range.y4m", tmp / "halves"
    halves.mkdir()
    write_full_range(halves / "clip.y4m")
    for clip, full in ((tmp, False), (halves, True)):
        for name, parts in (("whole", []), ("parts", ["--interlace", "rows"])):
            stream(program, clip, ["--rate-max", "2mbit", "--duration", "2", *parts],
                   ("--output", str(output), *parts))
            head, _, pictures = output.read_bytes().partition(b"\n")
            for word in (b" XCOLORRANGE=FULL", b" A4:3 "):
                check((word in head) == full, f"range, {name}, {full}: {head!r}")
            last = pictures[-(WIDTH * HEIGHT * 3 // 2) :][: WIDTH * HEIGHT]
            check(not full or (min(last) < 8 and max(last) > 247),
                  f"range, {name}: {min(last)} to {max(last)}")


def pace(program: str, tmp: Path) -> None:
    """A recording plays as fast as the stream, whether its coding tells the pace or not."""
    output, quick = tmp / "pace.y4m", tmp / "quick"
    quick.mkdir()
    head, _, pictures = (tmp / "clip.y4m").read_bytes().partition(b"\n")
    for encoder, fps in (("paqmh264enc", b"30:1"), ("paqmh264enc", b"25:2"),
                         ("paqmh264enc", b"15:2"), ("vp8enc", b"30:1"), ("jpegenc", b"30:1")):
        if encoder != "paqmh264enc" and not has_element(encoder):
            print(f"not installed: {encoder}")
            continue
        (quick / "clip.y4m").write_bytes(head.replace(b"F24:1", b"F" + fps) + b"\n" + pictures)
        stream(program, quick, ["--encoder", encoder, "--rate-max", "3mbit", "--duration", 2],
               ["--output", output])
        with output.open("rb") as f:
            told = f.readline()
        check(b" F" + fps + b" " in told, f"pace, {encoder}, {fps!r}: {told!r}")


def upright(program: str, tmp: Path) -> None:
    """A film that was taken with the telephone held upright is seen so, and as fast as asked."""
    film, to = tmp / "upright.mp4", f"127.0.0.1:{free_port()}"
    subprocess.run(
        ["gst-launch-1.0", "-q", "videotestsrc", "num-buffers=48", "!",
         "video/x-raw,width=320,height=192,framerate=24/1", "!", "x264enc", "!", "mp4mux", "!",
         "filesink", f"location={film}"], check=True)
    data = film.read_bytes()
    lying = struct.pack(">9i", 1 << 16, 0, 0, 0, 1 << 16, 0, 0, 0, 1 << 30)
    held = struct.pack(">9i", 0, 1 << 16, 0, -1 << 16, 0, 0, 192 << 16, 0, 1 << 30)
    at = data.index(lying, data.index(b"tkhd"))
    film.write_bytes(data[:at] + held + data[at + len(held) :])
    receiver = receive(program, to, tmp / "ur")
    finish(receiver, send(program, to, tmp / "us", film, "--controller", "fixed", "--fps", 16))
    times = [int(row["rtp_ts"]) for row in rows(tmp / "us" / "frames.csv")]
    steps = {(b - a) % (1 << 32) for a, b in zip(times, times[1:], strict=False)}
    check(bool(steps) and not any(step % (90000 // 16) for step in steps), f"pace: {steps}")
    sizes = {(row["width"], row["height"]) for row in rows(tmp / "ur" / "decoded.csv")}
    check(sizes == {("192", "320")}, f"upright: {sizes}")
