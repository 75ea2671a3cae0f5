# SPDX-License-Identifier: GPL-2.0
"""Who else sends to a port of the receiver, or to none: several streams, strangers, nobody."""

import contextlib
import random
import re
import signal
import socket
import struct
import threading
import time
from pathlib import Path

from streams import check, ended, finish, free_port, receive, send, threads
from trial import Program, rows, until

from paqm_lab.topology import Host, Network, make, remove


def foreign(program: str, tmp: Path) -> None:
    """Packets of strangers between those of the stream: it goes on as if they were not there."""
    port, sent, came = free_port(), tmp / "fs", tmp / "fr"
    receiver = receive(program, f"127.0.0.1:{port}", came)
    dice, count = random.Random(5), 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as between:
        between.bind(("127.0.0.1", 0))
        between.settimeout(0.2)
        sender = send(program, f"127.0.0.1:{between.getsockname()[1]}", sent, tmp / "clip.y4m",
                      "--duration", 3)
        while sender.poll() is None:
            try:
                between.sendto(between.recv(2048), ("127.0.0.1", port))
            except TimeoutError:
                continue
            count += 1
            if count < 20:
                continue
            kind = dice.choice((96, 96, 26, 98, 99, 102, 120))
            head = struct.pack(">BBHII", 0x80, kind | 0x80, count, 7, 1000 + kind + count % 3)
            between.sendto(head + dice.randbytes(50), ("127.0.0.1", port))
            between.sendto(dice.randbytes(dice.randrange(40)), ("127.0.0.1", port))
    finish(receiver, sender)
    check(count > 40, f"strangers: {count} packets")
    frames, decoded = rows(sent / "frames.csv"), rows(came / "decoded.csv")
    check([d["rtp_ts"] for d in decoded] == [f["rtp_ts"] for f in frames], "strangers: pictures")


def several(program: str, tmp: Path) -> None:
    """Two streams on a port: the first plays, the other when it is silent or has no picture."""
    clip = tmp / "clip.y4m"
    parts = ["--interlace", "rows"]
    for there, here in (([], []), (["--rtx", "--fec"], ["--rtx", "--fec", "20"]), (parts, parts)):
        name = "".join(there)
        to, recv = f"127.0.0.1:{free_port()}", tmp / "sr"
        first, second = tmp / f"s1{name}", tmp / f"s2{name}"
        receiver = receive(program, to, recv, *there)
        # with these seeds the second begins with a number far below the first one's
        old = send(program, to, first, clip, "--loop", "--ssrc", 11, "--duration", 4, "--seed", 8,
                   *here)
        log = first / "frames.csv"  # its first lines are written when they fill a block
        until("the first stream begins", lambda: log.exists() and log.stat().st_size, old)  # noqa: B023
        new = send(program, to, second, clip, "--loop", "--ssrc", 22, "--seed", 1, *here)
        receiver.tells("a second stream arrives on this port, SSRC 22")
        receiver.tells("the stream with SSRC 11 has fallen silent; now plays SSRC 22")
        old.end()
        time.sleep(3)
        said = finish(receiver, new, signal.SIGTERM)[1]
        of_parts = re.search(r"(\d+) parts of pictures, (\d+) interpolated", said)
        check(not of_parts or int(of_parts[1]) > 4 * int(of_parts[2]), f"several {here}: {said}")
        decoded = [int(d["rtp_ts"]) >> 2 for d in rows(recv / "decoded.csv")]
        was, came = ([int(f["rtp_ts"]) >> 2 for f in rows(log / "frames.csv")]
                     for log in (first, second))  # fmt: skip
        was, came = sorted(set(was), key=was.index), sorted(set(came), key=came.index)
        swap = next((n for n, ts in enumerate(decoded) if ts not in was), len(decoded))
        # what is shown of parts waits for the next picture
        check(decoded[:swap] in (was, was[:-1]), f"several {here}: pictures of the first")
        check(len(decoded) - swap > 24, f"several {here}: {len(decoded) - swap} of the second")
        tail = came[came.index(decoded[swap]) :]
        check(decoded[swap:] in (tail, tail[:-1]), f"several {here}: pictures of the second")
        # only packets of the stream that plays are logged
        seen = [int(p["rtp_ts"]) >> 2 in came for p in rows(recv / "rx.csv")]
        check(seen == sorted(seen) and seen[-1], f"several {here}: rx.csv")

    # a stranger that was there before, and sends what is no picture
    port = free_port()
    to = f"127.0.0.1:{port}"
    receiver = receive(program, to, recv)
    done = threading.Event()

    def talk() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            n = 0
            while not done.wait(0.02):
                n += 1
                head = struct.pack("!BBHII", 0x80, 96 | 0x80, n & 0xFFFF, n * 1800, 5)
                s.sendto(head + bytes([0x41, 0x9A]) + bytes(range(200)), ("127.0.0.1", port))

    stranger = threading.Thread(target=talk)
    stranger.start()
    time.sleep(1)
    sender = send(program, to, first, clip, "--loop", "--ssrc", 33)
    receiver.tells("the stream with SSRC 5 gives no picture; now plays SSRC 33")
    time.sleep(3)
    done.set()
    stranger.join()
    finish(receiver, sender, signal.SIGTERM)
    decoded, sent = ([d["rtp_ts"] for d in rows(log)]
                     for log in (recv / "decoded.csv", first / "frames.csv"))  # fmt: skip
    # a busy machine may show one less
    check(len(decoded) > 24, f"several, after a stranger: {len(decoded)} pictures")
    check(decoded == [ts for ts in sent if ts in decoded], "several, after a stranger: order")
    late = len(sent) - 1 - sent.index(decoded[-1])
    check(late < 12, f"several, after a stranger: {late} of {len(sent)} missing at the end")


def unplayable(program: str, tmp: Path) -> None:
    """Packets that come and give no picture: the receiver says why, as far as it can know."""
    ours, other = ["--srtp-key", tmp / "key"], ["--srtp-key", tmp / "other"]
    (tmp / "other").write_text("ff" * 30)
    vp8 = ["--encoder", "vp8enc"]
    for there, here, why in (
        (ours, other, "cannot be decrypted"), (ours, [], "cannot be decrypted"),
        ([], other, "needs its --srtp-key"), (["--fec"], vp8, "are VP8, and --fec is for H264"),
        (["--interlace", "rows"], vp8, "are VP8, and --interlace is for H264"),
        ([], None, "have payload type 33"),
    ):  # fmt: skip
        port = free_port()
        receiver = receive(program, f"127.0.0.1:{port}", tmp / "ur", *there)
        with ended(receiver), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            if here is None:
                for n in range(300):
                    head = struct.pack("!BBHII", 0x80, 33, n, n * 1800, 9)
                    s.sendto(head + bytes(100), ("127.0.0.1", port))
                    time.sleep(0.02)
                receiver.tells(why)
            else:
                sender = send(program, f"127.0.0.1:{port}", tmp / "us", tmp / "clip.y4m", "--loop",
                              *here)  # fmt: skip
                with ended(sender):
                    receiver.tells(why)
                    sender.end(signal.SIGTERM)
            said = receiver.end(signal.SIGINT)
            check(said.count("packets of SSRC") == 1, f"unplayable {there} {here}: {said}")
    # a receiver that ends before it would say so
    port = free_port()
    receiver = receive(program, f"127.0.0.1:{port}", tmp / "ur", *ours)
    sender = send(program, f"127.0.0.1:{port}", tmp / "us", tmp / "clip.y4m", "--loop", *other)
    with ended(receiver), ended(sender):
        sender.tells("sending")
        time.sleep(3)
        said = receiver.end(signal.SIGINT)
        sender.end(signal.SIGTERM)
        check(said.count("cannot be decrypted") == 1, f"unplayable, a short run: {said}")


def probing(program: str, tmp: Path) -> None:
    """Before a stream probes of one host are answered, once in 20 ms at most; others' are not."""
    port, own = free_port(), free_port()
    receiver = receive(program, f"127.0.0.1:{port}", tmp / "pr")
    with ended(receiver), contextlib.ExitStack() as sockets:
        first, other, rtcp = (
            sockets.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            for _ in range(3)
        )
        first.bind(("127.0.0.1", own))
        other.bind(("127.0.0.2", 0))
        rtcp.bind(("127.0.0.1", own + 1))
        rtcp.settimeout(0.5)

        def returned(by: socket.socket, nonces: range) -> list[int]:
            for nonce in nonces:
                field = b"PAQ1" + struct.pack("!fHBI", 1e6, 5, 13, nonce)
                by.sendto(b"\x0f" + field + struct.pack("!I", 1), ("127.0.0.1", port))
            found = []
            with contextlib.suppress(TimeoutError):
                while True:
                    report = rtcp.recv(2048)
                    at = report.find(b"PAQM")
                    if at >= 0:
                        found.append(int.from_bytes(report[at + 12 : at + 16], "big"))
            return found

        found = returned(first, range(1, 301))
        check(found[:1] == [1] and len(found) < 30, f"probing: {len(found)} returns: {found}")
        found = returned(other, range(1001, 1003))
        check(not found, f"probing: returns for another host: {found}")
        found = returned(first, range(2001, 2002))
        check(found == [2001], f"probing: returns at the end: {found}")
        receiver.end(signal.SIGINT)


def vanishing(program: str, tmp: Path) -> None:
    """A receiver that is there no more: the sender goes on, slower, and ends well."""
    to, sent, came = f"127.0.0.1:{free_port()}", tmp / "vs", tmp / "vr"
    receiver = receive(program, to, came)
    sender = send(program, to, sent, tmp / "clip.y4m", "--loop", "--rate-max", "2mbit",
                  "--rate-min", "100kbit", "--duration", 9)
    time.sleep(3)
    receiver.end(signal.SIGKILL, -signal.SIGKILL)
    sender.end()
    rates = [int(f["allowance_bps"]) for f in rows(sent / "frames.csv")]
    check(len(rows(came / "rx.csv")) > 10, "vanishing: there was no receiver")
    check(rates[-1] <= max(rates) / 2, f"vanishing: {rates[-1]} after {max(rates)} bit/s")


def no_route(program: str, tmp: Path) -> None:
    """A host that has no way to the receiver says so, once, and not only that nobody reports."""
    net, host = Network([Host("lonely")]), "lonely"
    make(net)
    sender = send(program, "192.0.2.1:5004", tmp / "ns", tmp / "clip.y4m", "--duration", 3,
                  host=host)  # fmt: skip
    said = sender.end()
    remove(net)
    check(said.count("cannot be sent: Network is unreachable") == 1, f"no route: {said}")
    unsent = re.search(r"(\d+) packets could not be sent", said)
    check(unsent is not None and int(unsent[1]) > 50, f"no route: {said}")


def strangers(program: str, tmp: Path) -> None:
    """Broken, foreign, repeated and disordered RTP and RTCP: the receiver goes on and reports."""
    for options in ([], ["--rtx", "--fec"], ["--interlace", "quarters"]):
        port, own = free_port(), free_port()
        receiver = receive(program, f"127.0.0.1:{port}", tmp / "xr", *options)
        with (
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as rtp,
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as rtcp,
        ):
            rtp.bind(("127.0.0.1", own))
            rtcp.bind(("127.0.0.1", own + 1))
            rtcp.settimeout(0.02)

            def packet(seq: int, kind: int = 96, first: int = 0x80, more: bytes = b"") -> bytes:
                head = struct.pack("!BBHII", first, kind, seq & 0xFFFF, seq // 4 * 3750, 77)
                return head + more + bytes([0x41, 0x9A]) + bytes(range(100))

            broken = [b"", b"\x80", b"\x80\x60" + bytes(9), packet(1, first=0x00),
                      packet(1, first=0x8F), packet(1, first=0x90, more=b"\xbe\xde\xff\xff"),
                      packet(1, first=0xA0), packet(1, kind=106), packet(1, kind=107),
                      packet(1, kind=33), bytes(2000), bytes([0x0F]) * 20]  # fmt: skip
            rtcp_broken = [b"", b"\x80\xc8", b"\x81\xc9\xff\xff" + bytes(8), bytes(100),
                           b"\x8f\xcd\x00\x02" + bytes(8)]  # fmt: skip
            found = whole = b""
            for n in range(65500, 65500 + 3000):
                rtp.sendto(packet(n ^ 1 if n % 10 == 0 else n), ("127.0.0.1", port))
                rtp.sendto(broken[n % len(broken)], ("127.0.0.1", port))
                rtcp.sendto(rtcp_broken[n % len(rtcp_broken)], ("127.0.0.1", port + 1))
                try:
                    report = rtcp.recv(2048)
                except TimeoutError:
                    continue
                at = 0
                while at + 4 <= len(report):
                    if report[at + 1] == 207:
                        found, whole = report[at:], report
                    at += 4 + 4 * int.from_bytes(report[at + 2 : at + 4], "big")
                if found:
                    break
            check(len(found) == 48 and found[12:16] == bytes([0, 0, 0, 77]),
                  f"strangers {options}: no statistics summary: {found!r}")  # fmt: skip
            # no packet of its own: it comes behind a report on the stream
            check(whole[1] == 201 and whole[0] & 31 >= 1, f"strangers {options}: {whole!r}")
        check(receiver.poll() is None, f"strangers {options}: the receiver ended")
        receiver.end(signal.SIGINT)


# what GStreamer keeps of these, it tells when it gets SIGUSR1
COUNTED = {"GST_TRACERS": 'leaks(filters="GstRtpJitterBuffer")', "GST_LEAKS_TRACER_SIG": "1",
           "GST_DEBUG": "leaks:7", "GST_DEBUG_NO_COLOR": "1"}  # fmt: skip


def jitter_buffers(receiver: Program) -> int:
    """How many a receiver keeps that runs with COUNTED."""
    receiver.send_signal(signal.SIGUSR1)
    receiver.tells("alive objects\n")
    return int(receiver.said().split(" alive objects\n")[-2].split()[-1])


def many(program: str, tmp: Path) -> None:
    """Two thousand sources on the port: a few get in, the stream goes on, another can come."""
    clip, recv = tmp / "clip.y4m", tmp / "mr"
    for key in ([], ["--srtp-key", tmp / "key"]):
        port = free_port()
        to, first, second = f"127.0.0.1:{port}", tmp / "m1", tmp / "m2"
        receiver = receive(program, to, recv, *key, env=COUNTED)
        old = send(program, to, first, clip, "--loop", *key)
        with ended(receiver, old):
            until("packets come", lambda: (recv / "rx.csv").stat().st_size, receiver, old)
            time.sleep(1)
            most = 0
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
                for turn in range(2):  # those of the first have fallen silent in the second
                    for ssrc in range(1000 + 1000 * turn, 2000 + 1000 * turn):
                        for n in range(5):
                            head = struct.pack("!BBHII", 0x80, 96, n, n, ssrc)
                            s.sendto(head + b"\x41" + bytes(20), ("127.0.0.1", port))
                        report = struct.pack("!BBHIBBHI", 0x80, 201, 1, ssrc + 10000, 0x81, 202, 1,
                                             ssrc + 10000)  # fmt: skip
                        s.sendto(report, ("127.0.0.1", port + 1))
                        if ssrc % 20 == 0:
                            time.sleep(0.005)
                    most = max(most, threads(receiver.pid))
                    time.sleep(6)
            check(most < 60, f"many {key}: {most} threads")
            kept = jitter_buffers(receiver)  # of 16 streams at most
            check(kept <= 16, f"many {key}: {kept} jitter buffers")
            new = send(program, to, second, clip, "--loop", *key)
            with ended(new):
                time.sleep(2)
                old.end(signal.SIGTERM)
                receiver.tells("has fallen silent; now plays SSRC")
                time.sleep(4)
                said = finish(receiver, new, signal.SIGTERM, 0)[1]
                check("of strangers" in said and (bool(key) or "of too many streams" in said),
                      f"many {key}: {said}")  # fmt: skip
        decoded = {d["rtp_ts"] for d in rows(recv / "decoded.csv")}
        for log in (first, second):
            sent = [f["rtp_ts"] for f in rows(log / "frames.csv")]
            came = sum(ts in decoded for ts in sent)
            check(came > (len(sent) // 2 if log == first else 12),
                  f"many {key}: {came} of {len(sent)} pictures")  # fmt: skip


def reporters(program: str, tmp: Path) -> None:
    """RTCP of all kinds, from many: the sender sends on, as who it was, and ends well."""
    port, log = free_port(), tmp / "qs"
    sender = send(program, f"127.0.0.1:{port}", log, tmp / "clip.y4m", "--loop", "--bind",
                  f"127.0.0.1:{free_port()}", "--ssrc", 77, "--rtx", "--carrier", "probe")
    with (
        ended(sender),
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as rtp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as rtcp,
    ):
        rtp.bind(("127.0.0.1", port))
        rtp.settimeout(20)
        packet, (host, own) = rtp.recvfrom(2048)
        while packet[0] == 0x0F:  # probes come first
            packet = rtp.recv(2048)
        report = struct.pack("!BBHI", 0x80, 201, 1, 5)
        # what hangs rtpsession first, and by itself
        for first in (b"", report):
            rtcp.sendto(first + struct.pack("!BBHII", 0x85, 205, 2, 5, 77), (host, own + 1))
        for kind in range(192, 224):
            for count in range(32):
                for words in (0, 1, 2, 3, 12):
                    body = struct.pack("!III", 5, 77, 77) + bytes(36)
                    one = struct.pack("!BBH", 0x80 | count, kind, words) + body[: 4 * words]
                    rtcp.sendto(report + one, (host, own + 1))
                    rtcp.sendto(one, (host, own + 1))
            time.sleep(0.02)
        for ssrc in (77, *range(100, 4100)):  # that of the stream, too
            rtcp.sendto(struct.pack("!BBHI", 0x80, 201, 1, ssrc), (host, own + 1))
        time.sleep(2)
        rtp.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while rtp.recv(2048):
                pass
        rtp.settimeout(20)
        for _ in range(50):
            packet = rtp.recv(2048)
            check(packet[0] == 0x0F or packet[8:12] == bytes([0, 0, 0, 77]),
                  f"reporters: {packet[:12]!r}")  # fmt: skip
        said = sender.end(signal.SIGTERM)
    for why in ("that ask for a sender report", "broken", "of strangers", "of our own"):
        check(why in said, f"reporters: {said}")


def breaker(program: str, tmp: Path) -> None:
    """Nobody reports: the sender falls silent, says so, and begins again for who does."""
    port, other = free_port(), free_port()
    senders = [send(program, f"127.0.0.1:{to}", tmp / f"b{to}", tmp / "clip.y4m", "--loop",
                    "--rate-max", "500kbit", *options)
               for to, options in ((port, []), (other, ["--no-breaker"]))]  # fmt: skip
    with ended(*senders):
        counts = [0, 0]
        with (
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as first,
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as second,
        ):
            first.bind(("127.0.0.1", port))
            second.bind(("127.0.0.1", other))
            senders[0].tells("no report on the stream for 15 s")
            time.sleep(2)
            for s in (first, second):
                s.setblocking(False)
            for turn in range(2):  # what was on its way does not count
                counts = [0, 0]
                for k, s in enumerate((first, second)):
                    with contextlib.suppress(BlockingIOError):
                        while s.recv(2048):
                            counts[k] += 1
                if not turn:
                    time.sleep(3)
        check(counts[0] == 0 and counts[1] > 20, f"breaker: packets {counts}")
        receiver = receive(program, f"127.0.0.1:{port}", tmp / "br")
        with ended(receiver):
            senders[0].tells("reports arrive again: sending pictures")
            time.sleep(4)
            for sender in senders:
                sender.end(signal.SIGTERM)
            receiver.end(signal.SIGINT)
    check(len(rows(tmp / "br" / "decoded.csv")) > 24, "breaker: pictures after it")


def coded_otherwise(program: str, tmp: Path) -> None:
    """Statistics and rates that go back are about the stream, whatever its coding is."""
    port, own, about = free_port(), free_port(), set()
    receiver = receive(program, f"127.0.0.1:{port}", tmp / "cr", "--return", "tmmbr")
    with (
        ended(receiver),
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as rtp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as rtcp,
    ):
        rtp.bind(("127.0.0.1", own))
        rtcp.bind(("127.0.0.1", own + 1))
        rtcp.setblocking(False)
        for n in range(120):
            field = b"PAQ1" + struct.pack("!fHBI", 1e6 + 1e5 * n, 5, 13, 1)
            head = struct.pack("!BBHII", 0x90, 98 | 0x80, n, n * 1800, 9)
            more = b"\xbe\xde" + struct.pack("!H", 4) + b"\xfe" + field
            rtp.sendto(head + more.ljust(20, b"\0") + bytes(100), ("127.0.0.1", port))
            time.sleep(0.02)
            with contextlib.suppress(BlockingIOError):
                while report := rtcp.recv(2048):
                    while report:
                        size = 4 + 4 * int.from_bytes(report[2:4], "big")
                        kind = report[1], report[0] & 31 if report[1] == 205 else 0
                        if kind in ((207, 0), (205, 3)):
                            about.add((kind, report[12:16]))
                        report = report[size:]
        receiver.end(signal.SIGINT)
    check(((207, 0), struct.pack("!I", 9)) in about, f"coded otherwise: {about}")
    check(all(ssrc == struct.pack("!I", 9) for _, ssrc in about), f"coded otherwise: {about}")


def either_family(program: str, tmp: Path) -> None:
    """A socket of IPv6 takes a stream of IPv4: the size of its packets is that on the wire."""
    for more, log in (([], "."), (["--trace"], "flow000")):
        port, came = free_port(), tmp / "fr"
        receiver = receive(program, f"[::]:{port}", came, *more)
        with ended(receiver), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as rtp:
            for n in range(20):
                head = struct.pack("!BBHII", 0x80, 96 | 0x80, n, n * 1800, 9)
                rtp.sendto(head + bytes(88), ("127.0.0.1", port))
                time.sleep(0.02)
            time.sleep(0.5)
            receiver.end(signal.SIGINT)
        sizes = {row["wire_bytes"] for row in rows(came / log / "rx.csv")}
        check(sizes == {"128"}, f"either family {more}: {sizes}")
