# SPDX-License-Identifier: GPL-2.0
"""End to end over loopback: what was sent arrives, is decoded, and follows the advice.

Runs the real sender and receiver. The daemon's side of the local interface is played by this
script, record by record as paqm_ipc.h defines them, because the point is what the sender does
with them. Runs in virtual time (lab_loopback.py), where no machine is slow.
"""

import contextlib
import os
import re
import selectors
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import loopback_moves as moves
import loopback_records as records
import loopback_strangers as others
from streams import (
    FRAMES,
    HEIGHT,
    WIDTH,
    check,
    ended,
    finish,
    free_port,
    has_element,
    receive,
    send,
    stream,
    write_clip,
)
from trial import rows

from paqm_lab.topology import Host, Network, inside, make, remove

MAGIC, VERSION = 0x50514950, 1
REGISTER, REGISTERED, RATE, STATUS = 1, 2, 3, 5


def rate_record(cookie: int, rate: int, cause: int) -> bytes:
    router = bytes(10) + b"\xff\xff" + bytes([192, 0, 2, 1])
    return struct.pack(
        "=IBBHQQQ16sQIIHHBBH",
        MAGIC, VERSION, RATE, 72, cookie, rate, 7, router, 1, 0x3F000000, 1, 240, 3, cause, 0, 1,
    )  # fmt: skip


def main(program: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        run(program, Path(name))
        carriers(program, Path(name))
        encoders(program, Path(name))
        headers(program, Path(name))
        quality_floor(program, Path(name))
        records.full_range(program, Path(name))
        records.pace(program, Path(name))
        records.upright(program, Path(name))
        piped(program, Path(name))
        others.foreign(program, Path(name))
        others.several(program, Path(name))
        moves.anew(program, Path(name))
        moves.rebound(program, Path(name))
        moves.readdressed(program, Path(name))
        moves.collision(program, Path(name))
        moves.claimed(program, Path(name))
        moves.paused(program, Path(name))
        moves.standstill(program, Path(name))
        moves.resumed(program, Path(name))
        moves.shortened(program, Path(name))
        repair(program, Path(name))
        too_late(program, Path(name))
        others.unplayable(program, Path(name))
        others.probing(program, Path(name))
        others.vanishing(program, Path(name))
        others.no_route(program, Path(name))
        others.strangers(program, Path(name))
        others.many(program, Path(name))
        others.reporters(program, Path(name))
        others.breaker(program, Path(name))
        others.coded_otherwise(program, Path(name))
        others.either_family(program, Path(name))
        latecomer(program, Path(name))
        interlace(program, Path(name))
        ecn(program, Path(name))
        usage(program, Path(name))


def run(program: str, tmp: Path) -> None:
    clip, path = tmp / "clip.y4m", str(tmp / "client.sock")
    write_clip(clip)
    port = free_port()
    server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    server.bind(path)
    server.listen(1)
    server.settimeout(60)
    to = f"127.0.0.1:{port}"
    receiver = receive(program, to, tmp / "r", "--output", tmp / "out.y4m")
    sender = send(program, to, tmp / "s", clip, "--loop", "--start-frame", 5, "--rate-max", "2mbit",
                  "--rate-min", "200kbit", "--ssrc", 4242, "--seed", 9, paqmd=path)
    conn, _ = server.accept()
    conn.settimeout(60)
    record = conn.recv(4096)
    check(len(record) == 80, "registration has another length")
    magic, version, kind, length = struct.unpack_from("=IBBH", record)
    check((magic, version, kind, length) == (MAGIC, VERSION, REGISTER, 80), "registration header")
    dport, ssrc, floor, ceil = struct.unpack_from("=HIQQ", record, 42)
    cookie = struct.unpack_from("=Q", record, 72)[0]
    check((dport, ssrc, floor, ceil) == (port, 4242, 200000, 2000000), "registered flow")
    check(record[24:40] == bytes(10) + b"\xff\xff\x7f\x00\x00\x01", "registered destination")
    conn.send(struct.pack("=IBBHQiI", MAGIC, VERSION, REGISTERED, 24, cookie, 0, 0))

    # One status record per group of 12 pictures paces the script by what was really encoded.
    def statuses(n: int) -> None:
        for _ in range(n):
            data = conn.recv(4096)
            check(len(data) == 32 and data[5] == STATUS, "a status record was expected")

    statuses(2)
    conn.send(rate_record(cookie, 1_500_000, 1))
    statuses(4)
    conn.send(rate_record(cookie, 400_000, 1))
    statuses(4)
    conn.send(b"nonsense")
    conn.send(rate_record(cookie + 1, 999_000, 1))
    conn.send(rate_record(cookie, 0, 3))
    statuses(2)
    conn.close()
    # The daemon comes back: the sender registers again by itself.
    conn, _ = server.accept()
    conn.settimeout(60)
    check(conn.recv(4096) == record, "second registration differs")
    conn.send(rate_record(cookie, 700_000, 1))
    statuses(2)
    # whatever the daemon says, the sender keeps to its limits
    for absurd in (1, 2**64 - 1):
        conn.send(rate_record(cookie, absurd, 1))
        statuses(2)
    # Datagrams are in the receiver's socket then; its jitter buffer holds 200 ms.
    finish(receiver, sender, signal.SIGTERM, 2)

    frames, packets = rows(tmp / "s/frames.csv"), rows(tmp / "r/rx.csv")
    decoded, groups = rows(tmp / "r/decoded.csv"), rows(tmp / "s/gop.csv")
    check(len(frames) >= 14 * 12, "pictures are missing")
    check([int(f["frame"]) for f in frames] == list(range(len(frames))), "frame numbers")
    # pictures before the first rate, for which the sender waits a little, are not coded
    check(5 <= int(frames[0]["src_frame"]) < FRAMES, "start frame")
    by_ts: dict[str, list[dict[str, str]]] = {}
    for p in packets:
        by_ts.setdefault(p["rtp_ts"], []).append(p)
    check(list(by_ts) == [f["rtp_ts"] for f in frames], "RTP time stamps of sender and receiver")
    for f in frames:
        got = by_ts[f["rtp_ts"]]
        check(sum(int(p["wire_bytes"]) for p in got) == int(f["wire_bytes"]), f"wire bytes: {f}")
        check(len(got) == int(f["packets"]), f"packets: {f}")
        check([p["marker"] for p in got] == ["0"] * (len(got) - 1) + ["1"], f"marker: {f}")
        check(max(int(p["wire_bytes"]) for p in got) <= 1200, f"packet size: {f}")
        check(int(f["wire_bytes"]) <= int(f["bound_bytes"]), f"bound: {f}")
    check([d["rtp_ts"] for d in decoded] == [f["rtp_ts"] for f in frames], "decoded pictures")
    size = (tmp / "out.y4m").stat().st_size
    body = len(decoded) * (WIDTH * HEIGHT * 3 // 2 + 6)
    check(0 < size - body < 100, "size of the recording")
    check(all(len({f["qp_base"] for f in frames if f["gop"] == g["gop"]}) == 1 for g in groups),
          "one base quantizer per group")  # fmt: skip

    rates = [int(f["allowance_bps"]) for f in frames]
    steps = [r for i, r in enumerate(rates) if i == 0 or r != rates[i - 1]]
    check(rates[0] == 500_000, "start at a quarter of the highest rate")
    check(999_000 not in steps, "took advice meant for another flow")
    wanted = [500_000, 1_500_000, 400_000, 700_000, 200_000, 2_000_000]
    check(min(rates) >= 200_000 and max(rates) <= 2_000_000, "a rate beyond the limits")
    left = iter(steps)  # what the safety net allows comes in between
    check(all(w in left for w in wanted), f"allowances: {steps}")
    feedback = rows(tmp / "s/feedback.csv")
    check([f["cause"] for f in feedback][:6] == ["erf", "erf", "expired"] + 3 * ["erf"],
          f"feedback.csv: {feedback}")  # fmt: skip
    check(feedback[0]["router"] == "192.0.2.1" and float(feedback[0]["value"]) == 0.5, "router")


@contextlib.contextmanager
def router(to: int, rate: float) -> Iterator[int]:
    """A router before the receiver at `to`: lowers rates within packets. Yields its own port."""
    ends: list[list[socket.socket]] = []  # RTP and RTCP, of either side
    for _ in range(2):
        port = free_port()
        ends.append([socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)])
        for i, end in enumerate(ends[-1]):
            end.bind(("127.0.0.1", port + i))
    (front, back), over = ends, threading.Event()
    sender = [("127.0.0.1", 0)] * 2
    chosen = selectors.DefaultSelector()
    for end in (*front, *back):
        chosen.register(end, selectors.EVENT_READ)

    def forward() -> None:
        while not over.is_set():
            for key, _ in chosen.select(0.1):
                for i in range(2):
                    if key.fileobj == back[i]:
                        front[i].sendto(back[i].recv(2048), sender[i])
                    elif key.fileobj == front[i]:
                        data, sender[i] = front[i].recvfrom(2048)
                        if not i and not sender[1][1]:
                            sender[1] = ("127.0.0.1", sender[0][1] + 1)
                        head, magic, field = data.partition(b"PAQ1")
                        if magic and struct.unpack("!f", field[:4])[0] > rate:
                            data = head + magic + struct.pack("!fHB", rate, 7, 13) + field[7:]
                        back[i].sendto(data, ("127.0.0.1", to + i))

    thread = threading.Thread(target=forward)
    thread.start()
    try:
        yield front[0].getsockname()[1]
    finally:
        over.set()
        thread.join()
        for end in (*front, *back):
            end.close()


def carriers(program: str, tmp: Path) -> None:
    """Rates within the stream: what a router says comes back, the pictures are none the worse."""
    key, clip = tmp / "key", tmp / "clip.y4m"
    key.write_text("00112233445566778899aabbccddeeff0102030405060708090a0b0c0d0e\n")
    secret = ["--srtp-key", str(key)]
    for carrier, options, form, told in (
        ("in-band", [], "tmmbr", True), ("probe", [], "remb", True), ("probe", secret, "app", True),
        ("in-band", [], "app", False), ("probe", secret, "app", False),
    ):  # fmt: skip
        name = f"carrier {carrier} {' '.join(options)}, {'a' if told else 'no'} router"
        port, sent, came = free_port(), tmp / "cs", tmp / "cr"
        receiver = receive(program, f"127.0.0.1:{port}", came, "--return", form, *options)
        # the second one allows more than the sender asks for
        rate = 1e6 if form == "tmmbr" else 3e6
        with router(port, rate if told else 1e13) as to:
            finish(receiver, send(program, f"127.0.0.1:{to}", sent, clip, "--rate-max", "2mbit",
                                  "--duration", 3, "--carrier", carrier, *options))
        frames, feedback = rows(sent / "frames.csv"), rows(sent / "feedback.csv")
        check(len(frames) > 10, f"{name}: pictures are missing")
        check([d["rtp_ts"] for d in rows(came / "decoded.csv")] == [f["rtp_ts"] for f in frames],
              f"{name}: decoded pictures")  # fmt: skip
        begins = int(frames[0]["allowance_bps"])
        if not told:
            check(not feedback, f"{name}: what nobody said was taken for advice: {feedback}")
            check(400_000 < begins <= 500_000, f"{name}: not a quarter of the most: {frames[0]}")
            continue
        rate = min(rate, 2e6)
        check(len(feedback) > 3, f"{name}: nothing was returned")
        check({float(f["rate_bps"]) for f in feedback} == {rate}, f"{name}: rates {feedback}")
        check({f["router"] for f in feedback} == {"0007"}, f"{name}: routers {feedback}")
        check(feedback[0]["cause"] == "probe", f"{name}: the first answer is to a probe")
        check(feedback[-1]["cause"] == carrier, f"{name}: the last is not")
        # the sender begins with what came back, not at a quarter of the highest rate
        check(0.9 * rate < begins <= rate, f"{name}: {frames[0]}")


def encoders(program: str, tmp: Path) -> None:
    """Encoders of others: what they made arrives and is decoded, and the log adds up."""
    named = ["x264enc", "x264enc speed-preset=veryfast", "openh264enc", "vp8enc", "vp9enc"]
    named += ["paqmh264enc refresh=idr", "jpegenc", "avenc_bmp"]
    for encoder in named:
        if not encoder.startswith("paqm") and not has_element(encoder.split()[0]):
            print(f"not installed: {encoder}")
            continue
        by_size = encoder in ("jpegenc", "avenc_bmp")
        # JPEG of noise has 1.3 Mbit/s at the least
        rate = "3mbit" if by_size else "500kbit"
        sent, came = stream(program, tmp, ["--encoder", encoder, "--rate-max", rate,
                                           "--duration", "3"])  # fmt: skip
        frames, packets = rows(sent / "frames.csv"), rows(came / "rx.csv")
        check(len(frames) > 20, f"{encoder}: {len(frames)} pictures")
        check([d["rtp_ts"] for d in rows(came / "decoded.csv")] == [f["rtp_ts"] for f in frames],
              f"{encoder}: decoded pictures")  # fmt: skip
        check(sum(int(p["wire_bytes"]) for p in packets) == sum(int(f["wire_bytes"])
              for f in frames), f"{encoder}: wire bytes")  # fmt: skip
        check(len(packets) == sum(int(f["packets"]) for f in frames), f"{encoder}: packets")
        check(max(int(p["wire_bytes"]) for p in packets) <= 1200, f"{encoder}: packet size")
        check(frames[0]["type"] == "I", f"{encoder}: {frames[0]}")
        keys = [int(f["frame"]) for f in frames if f["type"] == "I"]
        if by_size:
            late = [f for f in frames if int(f["frame"]) > 12]
            allowed = sum(float(f["allowance_bps"]) for f in late) / 24
            used = sum(8 * int(f["wire_bytes"]) for f in late) / allowed
            check(used <= 1.05, f"{encoder}: {used:.3f} of its rate")
            # as close as the quality's steps, or as the sizes', let it be
            check(used >= (0.85 if encoder == "jpegenc" else 0.5), f"{encoder}: {used:.3f}")
            check(keys == list(range(len(frames))), f"{encoder}: key frames {keys}")
        if encoder.startswith("paqm"):
            check(keys == list(range(0, len(frames), 12)), f"{encoder}: key frames {keys}")


def headers(program: str, tmp: Path) -> None:
    """What a picture costs is known to the byte, whatever is around its packets."""
    secrets: tuple[list[str], ...] = ([], ["--srtp-key", str(tmp / "key")])
    hosts = ["127.0.0.1"]
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind(("::1", 0))
            hosts.append("[::1]")
        except OSError:
            print("no IPv6 on this host: packets of it are not compared")
    for host in hosts:
        for secret in secrets:
            for encoder in ("paqmh264enc", "x264enc")[: 2 if secret else 1]:
                name = f"{encoder} to {host} {' '.join(secret)}"
                sent, came = stream(program, tmp, ["--encoder", encoder, "--rate-max", "2mbit",
                                                   "--duration", "5", *secret],
                                    secret, host)  # fmt: skip
                frames, packets = rows(sent / "frames.csv"), rows(came / "rx.csv")
                check(len(frames) > 20, f"{name}: {len(frames)} pictures")
                for f in frames:
                    got = [int(p["wire_bytes"]) for p in packets if p["rtp_ts"] == f["rtp_ts"]]
                    check(len(got) == int(f["packets"]) and sum(got) == int(f["wire_bytes"]),
                          f"{name}: {f}, came {got}")  # fmt: skip
                largest = max(int(p["wire_bytes"]) for p in packets)
                check(largest == 1200, f"{name}: largest packet {largest}")


def quality_floor(program: str, tmp: Path) -> None:
    """Pictures that become fewer and smaller: all are decoded, the recording keeps its size."""
    output = tmp / "floor.y4m"
    options = ["--encoder", "paqmh264enc floor-qp=12", "--rate-max", "300kbit", "--duration", "8"]
    to, sent, came = f"127.0.0.1:{free_port()}", tmp / "fs", tmp / "fr"
    receiver = receive(program, to, came, "--output", output)
    said, _ = finish(receiver, send(program, to, sent, tmp / "clip.y4m", "--loop", "--controller",
                                    "fixed", *options))
    frames, decoded = rows(sent / "frames.csv"), rows(came / "decoded.csv")
    kbps = 8 * sum(int(f["wire_bytes"]) for f in frames) / 8000
    told = float(said.split(" pictures, ")[1].split()[0])
    check(abs(told - kbps) < 0.03 * kbps, f"{told} kbit/s told, {kbps} sent")
    sizes = [(f["rtp_ts"], f["width"], f["height"]) for f in frames]
    check([(d["rtp_ts"], d["width"], d["height"]) for d in decoded] == sizes, "decoded sizes")
    check(sizes[0][1:] == ("320", "192") and sizes[-1][1:] == ("160", "96"), f"sizes {sizes}")
    with output.open("rb") as f:
        check(f.readline().startswith(b"YUV4MPEG2 W320 H192 "), "the recording's size")
        body = output.stat().st_size - f.tell()
    check(body == len(frames) * (WIDTH * HEIGHT * 3 // 2 + 6), "pictures of the recording")


def piped(program: str, tmp: Path) -> None:
    """Pictures that another program writes to a pipe are all sent; their end is the stream's."""
    to, sent, came, pipe = f"127.0.0.1:{free_port()}", tmp / "us", tmp / "ur", tmp / "pipe.y4m"
    os.mkfifo(pipe)
    receiver = receive(program, to, came)
    sender = send(program, to, sent, pipe, "--controller", "fixed")
    sender.tells("is a pipe: waiting")
    with ended(receiver, sender):
        pipe.write_bytes((tmp / "clip.y4m").read_bytes())
        finish(receiver, sender)
    frames, decoded = rows(sent / "frames.csv"), rows(came / "decoded.csv")
    check(len(frames) == FRAMES, f"a pipe: {len(frames)} pictures")
    check([d["rtp_ts"] for d in decoded] == [f["rtp_ts"] for f in frames], "a pipe: decoded")


def repair(program: str, tmp: Path) -> None:
    """Nothing is lost here: repair must not get in the way, and its bytes count."""
    to, sent, came = f"127.0.0.1:{free_port()}", tmp / "ps", tmp / "pr"
    both = ["--rtx", "--srtp-key", tmp / "key"]
    receiver = receive(program, to, came, "--fec", *both)
    finish(receiver, send(program, to, sent, tmp / "clip.y4m", "--rate-max", "1mbit",
                          "--controller", "fixed", "--duration", 4, "--fec", 25, *both))
    frames, packets = rows(sent / "frames.csv"), rows(came / "rx.csv")
    check([d["rtp_ts"] for d in rows(came / "decoded.csv")] == [f["rtp_ts"] for f in frames],
          "repair: decoded pictures")  # fmt: skip
    check(len(packets) == sum(int(f["packets"]) for f in frames), "repair: packets of the stream")
    # numbers of the packets that correct are missing in between
    gaps = int(packets[-1]["seq"]) - int(packets[0]["seq"]) + 1 - len(packets)
    check(gaps % 65536 >= len(packets) // 8, f"repair: {gaps} packets that correct")
    check(int(frames[0]["allowance_bps"]) < 820_000, "repair: pictures pay from the first on")
    took = [r for r in rows(sent / "control.csv") if r["controller"] == "repair"]
    check(float(took[-1]["value"]) > 0, "repair: its bytes are not counted")


def too_late(program: str, tmp: Path) -> None:
    """A receiver asks for packets that are long gone, too: those take nothing from the others."""
    port = free_port()
    with contextlib.ExitStack() as stack:
        rtp, rtcp = moves.pair(stack, "127.0.0.1", port)
        for end in (rtp, rtcp):
            end.settimeout(5)
        sender = send(program, f"127.0.0.1:{port}", tmp / "gs", tmp / "clip.y4m", "--loop", "--rtx",
                      "--controller", "fixed", "--rate-max", "1mbit")  # fmt: skip
        stack.enter_context(ended(sender))
        reports_to, came, again, begin = rtcp.recvfrom(2048)[1], [], 0, time.time()
        while time.time() < begin + 6:
            packet = rtp.recv(2048)
            if packet[1] & 0x7F != 96:
                again += 1
                continue
            came.append((time.time(), packet[2:4], packet[8:12]))
            if len(came) % 20 or came[0][0] > time.time() - 3:
                continue
            old = [c for c in came if c[0] < time.time() - 2][-60:]
            asked = b"".join(number + bytes(2) for _, number, _ in [*old, came[-4]])
            head = struct.pack("!BBHIBBHI", 0x80, 201, 1, 7, 0x81, 205, 2 + len(asked) // 4, 7)
            rtcp.sendto(head + packet[8:12] + asked, reports_to)
        said = sender.end(signal.SIGTERM)
    told = re.search(r"(\d+) retransmissions requested, (\d+) of them too late, (\d+) of", said)
    check(told is not None and int(told[2]) > 300 and not int(told[3]) and again >= 5,
          f"too late: {again} sent again: {said}")  # fmt: skip


def latecomer(program: str, tmp: Path) -> None:
    """Who comes when the packets' numbers have begun anew can decrypt them all the same."""
    port, came, key = free_port(), tmp / "lr", ["--srtp-key", tmp / "key"]
    # 3,900 packets a second; with this seed the first has the number 32,343
    many = ["--encoder", "avenc_bmp", "--rate-min", "40mbit", "--rate-max", "50mbit"]
    seed = ["--seed", 31, "--reuse-keystream"]
    sender = send(program, f"127.0.0.1:{port}", tmp / "ls", tmp / "clip.y4m", "--loop",
                  "--controller", "fixed", "--no-breaker", *many, *seed, *key)  # fmt: skip
    with ended(sender):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as early:
            early.bind(("127.0.0.1", port))
            early.settimeout(20)
            before = number = 0
            while number >= before:
                before, number = number, int.from_bytes(early.recv(2048)[2:4], "big")
        receiver = receive(program, f"127.0.0.1:{port}", came, *key)
        with ended(receiver):
            time.sleep(4)
            finish(receiver, sender, signal.SIGTERM)
    pictures = len(rows(came / "decoded.csv"))
    check(pictures > 24, f"latecomer: {pictures} pictures")


def interlace(program: str, tmp: Path) -> None:
    """Parts of pictures coded apart come together again."""
    for mode, parts in (("rows", 2), ("checkerboard", 2), ("quarters", 4)):
        to, sent, came = f"127.0.0.1:{free_port()}", tmp / f"is{mode}", tmp / f"ir{mode}"
        both = ["--interlace", mode]
        receiver = receive(program, to, came, "--output", tmp / "woven.y4m", *both)
        finish(receiver, send(program, to, sent, tmp / "clip.y4m", "--rate-max", "2mbit",
                              "--controller", "fixed", "--duration", 2, *both))
        frames, decoded = rows(sent / "frames.csv"), rows(came / "decoded.csv")
        stamps = sorted({int(f["rtp_ts"]) >> 2 for f in frames})
        check({int(f["rtp_ts"]) & 3 for f in frames} == set(range(parts)), f"{mode}: parts")
        # what is shown waits for the next picture, so the last may be missing
        shown = [int(d["rtp_ts"]) >> 2 for d in decoded]
        check(shown == stamps[: len(shown)] and len(stamps) - len(shown) <= 1,
              f"{mode}: pictures, {len(shown)} of {len(stamps)}")  # fmt: skip
        # once all parts have begun, each picture is the one that was sent
        source = (tmp / "clip.y4m").read_bytes()
        woven = (tmp / "woven.y4m").read_bytes()
        luma, step = WIDTH * HEIGHT, WIDTH * HEIGHT * 3 // 2 + 6
        number = {int(f["rtp_ts"]) >> 2: int(f["src_frame"]) for f in frames}
        heads = source.index(b"\n") + 7, woven.index(b"\n") + 7
        for n in range(24, len(shown), 7):
            a = source[heads[0] + number[shown[n]] * step :][:luma]
            b = woven[heads[1] + n * step :][:luma]
            error = sum((x - y) ** 2 for x, y in zip(a[::13], b[::13], strict=True)) / (luma // 13)
            # coarse, since the clip does not predict well; parts at wrong places are 10,000
            check(error < 1000, f"{mode}: picture {n} differs, mean square error {error:.0f}")


def ecn(program: str, tmp: Path) -> None:
    """What goes out as ECN-capable comes back in reports, with the marks it got on the way."""
    key = ["--srtp-key", tmp / "key"]
    for what, rule, extra, recv, path in (
        ("ect0", "", [], [], 1),
        ("ect1", "ip ecn ect1 ip ecn set ce", ["--rtx", *key], ["--rtx", *key], 1),
        ("ect0", "ip ecn set not-ect", [], [], 2),
        ("ect1", "", [], ["--feedback", "twcc"], 2),
        ("off", "", [], ["--feedback", "rfc8888"], None),
    ):  # fmt: skip
        port, log, host, net = free_port(), tmp / "ns", "ecn", Network([Host("ecn")])
        to = f"127.0.0.1:{port}"
        name = f"ecn {what}, {rule or 'nothing on the way'}, {' '.join(map(str, recv))}"
        make(net)
        if rule:
            inside(host, "nft", "-f", "-", stdin="table ip marks {\nchain out {\ntype filter hook "
                   f"output priority mangle\nudp dport {port} {rule}\n}}\n}}\n")
        receiver = receive(program, to, tmp / "nr", *recv, host=host)
        sender = send(program, to, log, tmp / "clip.y4m", "--rate-max", "2mbit", "--duration", 5,
                      "--ecn", what, *extra, host=host)
        said, heard = finish(receiver, sender)
        remove(net)
        control = rows(log / "control.csv")
        last = {f"{r['controller']}.{r['key']}": float(r["value"]) for r in control}
        sent = sum(int(f["packets"]) for f in rows(log / "frames.csv"))
        check(last.get("ecn.path") == path, f"{name}: path {last.get('ecn.path')}")
        check(("ECN is off from now on" in said) == (path == 2), f"{name}: {said}")
        check("nada.queue" in last, f"{name}: no reports")
        check(("told in" in heard) == (path == 1 or what == "off"), f"{name}: {heard}")
        if path == 1:
            marked = "set ce" in rule
            came, other = ("ce", "ect") if marked else ("ect", "ce")
            check(last[f"ecn.{came}"] > 0.8 * sent and not last[f"ecn.{other}"],
                  f"{name}: {last}, sent {sent}")  # fmt: skip
            rates = [int(f["allowance_bps"]) for f in rows(log / "frames.csv")]
            # it grows a little between its answers to marks
            check(rates[-1] < 400_000 if marked else rates[-1] > rates[0], f"{name}: {rates}")


def usage(program: str, tmp: Path) -> None:
    """Mistakes on the command line: status 2 and a message that names them."""
    fast = tmp / "fast.y4m"
    fast.write_bytes(b"YUV4MPEG2 W16 H16 F241:1\nFRAME\n" + bytes(384))
    for arguments, word in (
        (["send", "--to", "nowhere"], "--source"),
        (["send", "--to", "nowhere", "--source", "test"], "nowhere"),
        (["send", "--to", "127.0.0.1:9", "--source", "test", "--rate-max", "7x"], "7x"),
        (["send", "--to", "127.0.0.1:9", "--source", "/nonexistent.y4m"], "/nonexistent.y4m"),
        (["send", "--to", "127.0.0.1:9", "--source", str(fast)], "frame rate from 1 to 240"),
        (["send", "--to", "127.0.0.1:9", "--source", "/nonexistent-ü.y4m"], "/nonexistent-ü.y4m"),
        (["send", "--to", "127.0.0.1:9", "--source", "/nonexistent.mp4"], "/nonexistent.mp4"),
        (["send", "--to", "127.0.0.1:9", "--source", "test", "--duration", "inf"], "--duration"),
        (["send", "--to", "127.0.0.1:9", "--source", "test", "--duration", "nan"], "--duration"),
        (["recv", "--listen", "127.0.0.1:9", "--duration", "4294968"], "--duration"),
        (["send", "--to", "[::1]:9", "--source", "test", "--bind", "127.0.0.1"], "--bind"),
        (["send", "--to", "127.0.0.1:9", "--source", "test", "--bind", "::1"], "--bind"),
        (["send", "--to", "127.0.0.1:9", "--source", "test", "--rate-min", "4mbit"], "--rate-min"),
        (["send", "--to", "127.0.0.1:9", "--source", "test", "--carrier", "x"], "in-band"),
        (["send", "--to", "127.0.0.1:9", "--source", "test", "--carrier", "in-band",
          "--srtp-key", "/dev/null"], "--carrier probe"),
        (["send", "--to", "127.0.0.1:9", "--source", "test", "--srtp-key", "/dev/null"],
         "60 hexadecimal"),
        (["send", "--to", "127.0.0.1:9", "--source", "test", "--srtp-key", "/dev/null", "--seed",
          "1"], "--seed does not go with --srtp-key"),
        (["send", "--to", "127.0.0.1:9", "--source", "test", "--srtp-key", "/dev/null", "--ssrc",
          "1"], "--reuse-keystream"),
        (["send", "--to", "127.0.0.1:9", "--source", "test", "--srtp-key", "/dev/null", "--seed",
          "1", "--reuse-keystream"], "60 hexadecimal"),
        (["recv", "--listen", "127.0.0.1:9", "--srtp-key", "/dev/null", "--seed", "1"],
         "--seed does not go with --srtp-key"),
        (["send", "--to", "127.0.0.1:9", "--source", "test", "--encoder", "no264enc"], "no264enc"),
        (["send", "--to", "127.0.0.1:9", "--source", "test", "--encoder", "x264enc ! tee"],
         "one installed"),
        (["send", "--to", "127.0.0.1:9", "--source", "test", "--encoder", "identity"], "VP8"),
        (["send", "--to", "127.0.0.1:9", "--source", "test", "--encoder", "jpegenc", "--rtx"],
         "need an H.264 encoder"),
        (["send", "--to", "127.0.0.1:9", "--source", "test", "--encoder", "x264enc no=1"], "no"),
        (["send", "--to", "127.0.0.1:9", "--source", "test", "--encoder", "x264enc name=e"],
         "but no name"),
        (["send", "--to", "127.0.0.1:9", "--source", "test", "--encoder", "x264enc ü"],
         "--encoder 'x264enc ü'"),
        (["send", "--to", "127.0.0.1:9", "--source", "test", "--fec", "101"], "--fec 101"),
        (["send", "--to", "127.0.0.1:9", "--source", "test", "--fec", "9", "--carrier", "in-band"],
         "--carrier probe"),
        (["recv", "--listen", "127.0.0.1:9", "--return", "x"], "tmmbr"),
        (["recv", "--listen", "127.0.0.1:9", "--interlace", "x"], "quarters"),
        (["recv", "--listen", "127.0.0.1:9", "--size", "640x361"], "both even"),
        (["recv", "--listen", "127.0.0.1:9", "--size", "640x360x"], "WIDTHxHEIGHT"),
        (["send", "--to", "127.0.0.1:9", "--source", "test", "--interlace", "x"], "quarters"),
        (["send", "--to", "127.0.0.1:9", "--source", "test", "--interlace", "rows", "--carrier",
          "in-band"], "--carrier probe"),
        (["send", "--to", "127.0.0.1:9", "--source", "test", "--ecn", "x"], "ect1"),
        (["send", "--to", "127.0.0.1:9", "--source", "test", "--ecn", "ect0", "--controller",
          "gcc"], "respond to marks"),
        (["send", "--to", "127.0.0.1:9", "--source", "test", "--controller", "ecf", "--carrier",
          "in-band"], "--controller erf"),
        (["send", "--to", "127.0.0.1:9", "--source", "test", "--controller", "ecf", "--carrier",
          "probe"], "--controller erf"),
        (["recv", "--listen", "127.0.0.1:9", "--feedback", "x"], "rfc8888"),
        (["recv"], "--listen"),
        (["recv", "--listen", "127.0.0.1:9", "--rtx=no"], "--rtx takes no value"),
        (["call", "--listen=127.0.0.1:9", "--secret", "x"], "--listen takes no value"),
        (["play"], "play"),
    ):
        done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False,
                              timeout=60)
        check(word in done.stderr and "CRITICAL" not in done.stderr, f"{arguments}: {done.stderr}")
        check(done.returncode == 2, f"{arguments}: status {done.returncode}")
    to = ["send", "--to", "localhost:9", "--source", "test", "--paqmd", "none", "--duration", "0.2"]
    done = subprocess.run([program, *to], capture_output=True, text=True, check=False, timeout=60)
    check(re.match(r"sending to localhost:9 \((127\.0\.0\.1|::1)\) from", done.stdout) is not None,
          f"name: {done.stdout}{done.stderr}")
    done = subprocess.run([program, "--help"], capture_output=True, text=True, check=False)
    check(done.returncode == 0 and "recv" in done.stdout, "--help")
    for words, name in (
        *(([name], name) for name in ("send", "recv", "call", "devices")),
        (["trace", "send"], "trace send"),
        (["send", "--trace", "ladder"], "trace send"),
        (["trace", "recv"], "trace recv"),
        (["recv", "--trace"], "trace recv"),
    ):
        done = subprocess.run([program, *words, "--help"], capture_output=True, text=True,
                              check=False)
        check(f"\n  paqm-streamer {name} [OPTION" in done.stdout, f"{words}: {done.stdout[:60]}")

