# SPDX-License-Identifier: GPL-2.0
"""A small run directory with known contents, for the tests of analysis, checks and report.

Two streams and one TCP connection through 8 Mbit/s for 14 s, each at exactly its fair share. Every
fault a check has to find can be planted.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from test_packets import LEFT, SENDER, SINK, T0, TCP_HOST, Capture, ipv4, rtp, tcp

from paqm_lab import metrics, packets

CAPACITY, RATE_MAX, FPS, DURATION = 8e6, 3e6, 24, 14.0
STREAMS = {"a": (0.0, 14.0, SENDER), "b": (2.0, 14.0, "10.1.2.2")}
TCP_START = 7.0
PAYLOAD = 1172  # of an RTP packet: 1200 bytes on the IP level
SIZE = 1200 + packets.ETHER_HEADER


@dataclass(frozen=True)
class Faults:
    """What is wrong with the run."""

    wait: float = 0.0005  # s in the router, media
    tail_wait: float | None = None  # of 2 % of the media packets
    worst_wait: float | None = None  # of one media packet
    lose_at: tuple[float, ...] = ()  # the first media packet of stream a after that time
    media_share: float = 1.0  # of what is fair, from 9 s on
    elastic_share: float = 1.0
    slow_frames: float = 0.0  # part of the frames that are never complete
    over_bound: bool = False
    mixed_base: bool = False
    silent_from: float | None = None  # stream b sends no more, the others share what it leaves
    starved: bool = False  # a second TCP connection, of which nothing comes through


def shares(t: float, faults: Faults | None = None) -> dict[str, float]:
    """The fair shares at t."""
    silent = (faults or Faults()).silent_from
    caps = {n: RATE_MAX * SIZE / (SIZE - 14) for n, (a, b, _) in STREAMS.items() if a <= t < b}
    if silent is not None and t >= silent:
        caps.pop("b", None)
    if t >= TCP_START:
        caps["tcp"] = float("inf")
    return metrics.fair_shares(CAPACITY, caps)


def _stream(home: Path, capture: Capture, number: int, name: str, faults: Faults) -> None:
    start, stop, address = STREAMS[name]
    send, recv = home / "flows" / name / "send", home / "flows" / name / "recv"
    send.mkdir(parents=True)
    recv.mkdir()
    frames = [
        "frame,t_ns,rtp_ts,src_frame,gop,type,qp_base,qp,bytes,wire_bytes,packets,bound_bytes,"
        "allowance_bps"
    ]
    received = ["t_ns,seq,rtp_ts,marker,wire_bytes"]
    to_lose = list(faults.lose_at) if name == "a" else []
    seq, credit = 0, 0.0
    for frame in range(round((stop - start) * FPS)):
        t = start + frame / FPS
        if name not in shares(t, faults):
            break
        factor = faults.media_share if t >= 9 else 1.0
        credit += shares(t, faults)[name] * factor / FPS / 8
        count = max(1, int(credit // SIZE))
        credit -= count * SIZE
        whole = frame % 100 >= 100 * faults.slow_frames
        for i in range(count):
            body = rtp(seq & 0xFFFF, frame * 3750, PAYLOAD, number, i == count - 1)
            packet = ipv4(address, SINK, 17, seq & 0xFFFF, body)
            enter = t + 0.010 + i / count / FPS
            wait = faults.wait
            if faults.tail_wait and seq % 50 == 0:
                wait = faults.tail_wait
            if faults.worst_wait and seq == 500:
                wait = faults.worst_wait
            capture.arrive(enter, packet)
            if to_lose and enter >= to_lose[0]:
                to_lose.pop(0)
            else:
                capture.leave(enter + wait, packet)
                if whole or i:
                    at = T0 + round((enter + wait + 0.010) * 1e9)
                    received.append(f"{at},{seq & 0xFFFF},{frame * 3750},{i == count - 1:d},1200")
            seq += 1
        bound = 1199 if faults.over_bound and frame == 50 else 30000
        base = 31 if faults.mixed_base and frame == 50 else 30
        frames.append(
            f"{frame},{T0 + round(t * 1e9)},{frame * 3750},{frame % 720},{frame // 12},P,{base},"
            f"{base + frame % 3},{count * PAYLOAD},{count * 1200},{count},{bound},2000000"
        )
    (send / "frames.csv").write_text("\n".join(frames) + "\n")
    (send / "feedback.csv").write_text(
        f"t_ns,router,cause,value,rate_bps\n{T0},::,none,0,0\n{T0},10.1.1.1,erf,1,2000000\n"
    )
    (recv / "rx.csv").write_text("\n".join(received) + "\n")


def write_run(home: Path, faults: Faults | None = None, variant: str = "paqm") -> Path:
    """Make the directory of one variant; returns the result directory above it."""
    faults = faults or Faults()
    home = home / variant
    home.mkdir(parents=True)
    capture = Capture()
    for number, name in enumerate(STREAMS, start=1):
        _stream(home, capture, number, name, faults)
        message = bytes([253, 0, 0, 0]) + bytes(108)
        for i in range(10):
            icmp = ipv4("10.1.1.1", STREAMS[name][2], 1, i, message)
            capture.leave(3 + i, icmp, LEFT)
    segment = tcp(0, 1460)
    size = len(segment) + 20 + packets.ETHER_HEADER
    t, seq = TCP_START, 0
    while t < DURATION:
        packet = ipv4(TCP_HOST, SINK, 6, seq & 0xFFFF, tcp(seq * 1460, 1460))
        capture.arrive(t, packet)
        capture.leave(t + 0.012, packet)
        seq += 1
        t += size * 8 / (shares(t, faults)["tcp"] * faults.elastic_share)
    for number, t in enumerate((0, 1, 3) if faults.starved else ()):
        syn = ipv4(TCP_HOST, SINK, 6, 60000 + number, tcp(0, 0, 50001, 5202))
        capture.arrive(TCP_START + t, syn)
    # The log goes on behind the last packet, as it does in a run.
    capture.leave(DURATION + 1, ipv4("10.1.1.1", SENDER, 1, 99, bytes([3]) + bytes(40)), LEFT)
    log = capture.write(home / "router.pcap").read_bytes()
    record = {
        "name": "synthetic",
        "title": "Two streams <and> TCP",
        "duration": DURATION,
        "seed": 7,
        "path": {"bottleneck": CAPACITY, "rtt_ms": 40},
        "clip": {"width": 640, "height": 360, "fps": FPS},
        "media": [
            {"name": n, "start": a, "stop": b, "rate_max": RATE_MAX, "address": address}
            for n, (a, b, address) in STREAMS.items()
        ],
        "elastic": [
            {
                "name": "tcp",
                "congestion_control": "cubic",
                "stop": DURATION,
                "members": [{"port": 5201 + n} for n in range(1 + faults.starved)],
            }
        ],
        "variant": {
            "name": variant,
            "title": f"{variant}, test",
            "sender": "paqm-streamer",
            "qdisc": "paqm bandwidth 8mbit",
            "shaper": None,
        },
        "t0_ns": T0,
        "versions": {"paqm": "test"},
        "packet_log_sha256": hashlib.sha256(log).hexdigest(),
        "wall_seconds": 100.0,
        "wall_ended": 1e9,
    }
    (home / "run.json").write_text(json.dumps(record))
    return home.parent
