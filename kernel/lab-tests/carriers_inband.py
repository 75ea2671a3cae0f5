# SPDX-License-Identifier: GPL-2.0
"""Carrier in-band inside a lab guest: rates in RTP and in probes, and what others make of probes.

The groups are part of carriers.py; the network is that of stream_lab.py.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from stream_lab import CLIP, Stream, lost_packets, network6, queue, srtp_key, stats
from streams import HEIGHT, WIDTH
from trial import TOP, Program, check, inside, rows, within

HERE = Path(__file__).resolve().parent
RIVAL = TOP / "testbed" / "rivals" / "webrtc"


def told_between(stream: Stream, first: float, last: float) -> list[tuple[float, float]]:
    """Times since @first and rates that the sender was told until @last, wall-clock times."""
    told = [(int(row["t_ns"]) / 1e9, float(row["rate_bps"]))
            for row in stream.rows("send", "feedback.csv")]
    return [(when - first, rate) for when, rate in told if first <= when < last]


def inband(build: Path) -> None:
    """Plain RTP with an element and SRTP with probes, side by side; and a stock receiver."""
    key = srtp_key()
    queue("bandwidth 2mbit feedback in-band router-id 1beef rtt 50ms")
    plain = Stream(build, 16, "--carrier in-band", daemon=False, port=5004)
    secret = Stream(build, 16, f"--carrier probe {key}", key,
                    daemon=False, port=6004)
    time.sleep(7)
    changed = time.time()
    inside("r", "tc", "qdisc", "change", "dev", "rv", "root", "handle", "1:", "paqm", "bandwidth",
           "1mbit")
    time.sleep(6)
    flows = inside("r", "tc", "-s", "class", "show", "dev", "rv")
    counted = stats()
    time.sleep(6)
    plain.finish()
    secret.finish()
    check("the router lowered rates", counted["inband_lowered_packets"] > 100, counted)
    within("and left none", counted["inband_left_packets"], 0, 0)
    within("it sent no message", counted["notices_sent"], 0, 0)
    check("its flows are shown as told", len(re.findall(r"told \S+ \d", flows)) == 2, flows)
    times = {}
    for name, stream, cause in (("RTP", plain, "in-band"), ("SRTP", secret, "probe")):
        last = stream.rows("send", "feedback.csv")[-1]
        check(f"{name}: told by {cause}", last["cause"] == cause, last)
        check(f"{name}: and by which router", last["router"] == "beef", last)
        before = [rate for _, rate in told_between(stream, changed - 4, changed)]
        after = told_between(stream, changed, changed + 6)
        within(f"{name}: median of the rates told at 2 Mbit/s", median(before), 0.8e6, 2e6)
        # half of it, or what the other leaves
        other = (secret if stream is plain else plain).received(9, 14)
        within(f"{name}: and at 1 Mbit/s", median(rate for _, rate in after), 0.4e6,
               max(0.52e6, 1e6 - other))
        # at once at the router, 10 ms back from there, probes each 50 ms
        times[name] = next((when for when, rate in after if rate < 0.6e6), 99.0)
        within(f"{name}: told of the change after so many seconds", times[name], 0.01, 0.3)
        within(f"{name}: sends at 2 Mbit/s", stream.received(3, 7), 0.2e6, 1e6)
        within(f"{name}: sends at 1 Mbit/s", stream.received(9, 14), 0.15e6, 0.5e6)
        lost = lost_packets(stream)
        within(f"{name}: lost packets", lost, 0, 0)
    within("difference between the two, s", abs(times["RTP"] - times["SRTP"]), 0, 0.15)


def searching(build: Path) -> None:
    """Laws that ask answer supplements, and the sender follows them, by a rate or by grades."""
    for law, carrier in (("acp", "in-band"), ("vcp", "in-band"), ("xcp", "probe")):
        # less than the clip takes at its best
        queue(f"bandwidth 200kbit law {law} noisolate media-target 10ms feedback in-band "
              "router-id 1beef period 100ms rtt 50ms")
        extra = srtp_key() if carrier == "probe" else ""
        stream = Stream(build, 14, f"--carrier {carrier} {extra}", extra, daemon=False)
        time.sleep(15)
        counted = stats()
        stream.finish()
        told = stream.rows("send", "feedback.csv")
        check(f"{law}: told by {carrier}", told[-1]["cause"] == carrier, told[-1])
        # where grades are told the router leaves the rate to the sender
        routers = {row["router"] for row in told[len(told) // 2 :]}
        check(f"{law}: by whom", routers == {"0000" if law == "vcp" else "beef"}, str(routers))
        within(f"{law}: packets left alone", counted["inband_left_packets"], 0, 0)
        rates = [float(row["rate_bps"]) for row in told[len(told) // 2 :]]
        within(f"{law}: median of what the sender allows itself", median(rates), 0.1e6, 0.5e6)
        within(f"{law}: received", stream.received(7, 13), 0.1e6, 0.2e6)


def stock(build: Path) -> None:
    """A stock receiver, SRTP by GStreamer's own elements, takes no harm from probes."""
    key = "00112233445566778899aabbccddeeff0102030405060708090a0b0c0d0e"
    file = Path("/run/tmp/srtp.key")
    file.write_text(key + "\n")
    caps = (f"application/x-srtp,media=video,clock-rate=90000,encoding-name=H264,payload=96,"
            f"ssrc=(uint)77,srtp-key=(buffer){key},srtp-cipher=aes-128-icm,"
            f"srtp-auth=hmac-sha1-80,srtcp-cipher=aes-128-icm,srtcp-auth=hmac-sha1-80")
    queue("bandwidth 1mbit feedback in-band")
    pictures = {}
    for carrier in ("icmp", "probe"):
        out = Path(f"/run/tmp/{carrier}.yuv")
        sink = Program(
            "v", "timeout", "-s", "INT", "11", "gst-launch-1.0", "-e", "-q", "udpsrc", "port=5004",
            f"caps={caps}", "!", "srtpdec", "!", "rtpjitterbuffer", "!", "rtph264depay", "!",
            "avdec_h264", "max-threads=1", "!", "filesink", f"location={out}")
        time.sleep(1)
        done = inside("s", str(build / "streamer/paqm-streamer"), "send", "--to", "10.3.0.2:5004",
                      "--source", str(CLIP), "--loop", "--rate-max", "400kbit",
                      "--encoder", "paqmh264enc floor-qp=52",  # pictures are counted by bytes
                      "--rate-min", "100kbit", "--seed", "1", "--ssrc", "77", "--paqmd", "none",
                      "--duration", "6", "--carrier", carrier, "--srtp-key", str(file),
                      "--reuse-keystream")
        sent = re.search(r"sent (\d+) pictures", done)
        assert sent, done
        sink.wait(60)
        pictures[carrier] = (int(sent[1]), out.stat().st_size // (WIDTH * HEIGHT * 3 // 2))
        out.unlink()
    for carrier, (sent_pictures, shown) in pictures.items():
        within(f"stock SRTP receiver, {carrier}: pictures not shown", sent_pictures - shown, 0, 1)
    within("probes reached the router", stats()["inband_kept_packets"]
           + stats()["inband_lowered_packets"], 50, 500)


def call(probes: bool) -> dict[str, Any]:
    """Ten seconds of stock libwebrtc from s to v; what both sides and the router counted."""
    home = Path(tempfile.mkdtemp())
    node = ["node", str(RIVAL / "recv.js"), "--bind", "10.3.0.2", "--duration", "14"]
    node += ["--output", str(home / "decoded.y4m"), "--width", str(WIDTH), "--height", str(HEIGHT)]
    common = ["--signal", str(home / "signal"), "--log"]
    receiver = Program("v", *node, *common, home / "recv")
    beside = Program("s", HERE / "probes.py", "sn", 8) if probes else None
    inside("s", "node", str(RIVAL / "send.js"), "--bind", "10.1.0.2", "--clip", str(CLIP),
           "--loop", "--rate-max", "600kbit", "--duration", "11", *common, str(home / "send"))
    receiver.wait()
    seen = json.loads((home / "recv" / "stats.jsonl").read_text().splitlines()[-1])
    sent = json.loads((home / "send" / "stats.jsonl").read_text().splitlines()[-1])
    at = [int(row["t_ns"]) / 1e9 for row in rows(home / "recv" / "decoded.csv")]
    inbound, encoded = seen["inbound_rtp"], sent["outbound_rtp"]
    return {
        "pictures_shown": len(at),
        "longest_gap_ms": round(1000 * max(b - a for a, b in zip(at, at[1:], strict=False))),
        "freezes": seen["track"]["freezeCount"],
        "packets_lost": inbound["packetsLost"],
        "nacks": inbound["nackCount"],
        "key_pictures_asked_for": inbound["pliCount"],
        "pictures_dropped": inbound["framesDropped"],
        "buffer_ms": round(1000 * inbound["jitterBufferDelay"] /
                           inbound["jitterBufferEmittedCount"], 1),
        "quantizer": round(encoded["qpSum"] / encoded["framesEncoded"], 1),
        "estimate_bps": round(sent["candidate_pair"]["availableOutgoingBitrate"]),
        "probes": int(beside.end()) if beside else 0,
        "probes_in_router": sum(stats()[f"inband_{what}_packets"] for what in ("kept", "lowered")),
    }


def webrtc(_: Path) -> None:
    """Stock libwebrtc as receiver: the same call with probes on its 5-tuple and without."""
    modules = Path(os.environ.get("NODE_PATH", "")) / "@roamhq" / "wrtc"
    if not modules.is_dir():
        print("skip stock libwebrtc: @roamhq/wrtc is not installed (setup/setup.sh)")
        return
    calls = []
    for probes in (False, True):
        queue("bandwidth 2mbit feedback in-band")
        calls.append(call(probes))
        print(f"# libwebrtc, {'with' if probes else 'without'} probes: {calls[-1]}", flush=True)
    plain, probed = calls
    within("libwebrtc: pictures shown without probes", plain["pictures_shown"], 200, 280)
    within("libwebrtc: probes sent beside the call", probed["probes"], 120, 200)
    # the first ones may pass before it has advice
    within("libwebrtc: probes not touched by the router", probed["probes"]
           - probed["probes_in_router"], 0, 10)
    for name in ("freezes", "packets_lost", "nacks", "pictures_dropped", "key_pictures_asked_for"):
        within(f"libwebrtc: {name} with probes (without: {plain[name]})", probed[name], 0,
               plain[name])
    within("libwebrtc: pictures shown, with probes by without",
           probed["pictures_shown"] / plain["pictures_shown"], 0.98, 1.02)
    within("libwebrtc: longest gap, ms more", probed["longest_gap_ms"] - plain["longest_gap_ms"],
           -200, 30)
    # it is 85 to 100 ms, from one call to the next
    within("libwebrtc: jitter buffer, ms more", probed["buffer_ms"] - plain["buffer_ms"], -30, 30)
    within("libwebrtc: quantizer (of VP8, 0 to 127), steps more",
           probed["quantizer"] - plain["quantizer"], -5, 3)
    within("libwebrtc: its own estimate, with probes by without",
           probed["estimate_bps"] / plain["estimate_bps"], 0.95, 1.2)


def chain(build: Path) -> None:
    """In-band over IPv6, through two routers: the lower rate gets through, whichever has it."""
    network6()
    key = srtp_key()

    def first(bandwidth: str) -> None:
        inside("n", "tc", "qdisc", "replace", "dev", "nr", "root", "handle", "1:", "paqm",
               "feedback", "in-band", "router-id", "1f1f1", "bandwidth", bandwidth)

    inside("n", "tc", "qdisc", "del", "dev", "nr", "root")
    for name, send, recv in (("RTP", "--carrier in-band", ""),
                             ("SRTP", f"--carrier probe {key}", key)):
        first("2mbit")
        queue("bandwidth 1mbit feedback in-band router-id 1beef")
        time.sleep(0.5)  # a queue tells nobody before its first period is over
        stream = Stream(build, 16, send, recv, daemon=False, to="[fd00:3::2]")
        time.sleep(8)
        changed = time.time()
        first("400kbit")
        time.sleep(9)
        stream.finish()
        said = [row for row in stream.rows("send", "feedback.csv") if float(row["rate_bps"])]
        # 96 % of the link less what the flow takes, if that is less than it may: this clip rests
        # at times. So the wider one is above the other's whole link all the same.
        for what, router, low, high, since in (("the second router", "beef", 0.46e6, 0.96e6, -4),
                                               ("the first router", "f1f1", 0.18e6, 0.39e6, 3)):
            then = [row for row in said
                    if since <= int(row["t_ns"]) / 1e9 - changed < since + 4]
            by = sum(row["router"] == router for row in then)
            within(f"IPv6, {name}: {what} is the narrower one: its part of the rates told",
                   by / max(len(then), 1), 0.95, 1)
            within(f"IPv6, {name}: {what}: median of the rates told",
                   median(float(row["rate_bps"]) for row in then), low, high)
        within(f"IPv6, {name}: lost packets", lost_packets(stream), 0, 0)
        within(f"IPv6, {name}: messages beside the stream", stats()["notices_sent"], 0, 0)
    inside("n", "tc", "qdisc", "del", "dev", "nr", "root")
