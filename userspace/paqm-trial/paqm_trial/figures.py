# SPDX-License-Identifier: GPL-2.0
"""The figures of a call, from what its two ends have recorded; each direction by itself."""

from __future__ import annotations

import zlib
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paqm_trial import clocks, store

MEMORY = 30  # intervals whose mean decides what a freeze is (W3C webrtc-stats, freezeCount)
SETTLE_NS = 2 * 10**9  # from the first picture on, before figures of delivery begin
PLAYED_NS = 10 * 10**9  # after its packets no picture is shown later than that
SEQ = 1 << 16
LONGEST_NS = 12 * 3600 * 10**9  # from the middle of a call to its ends
PROBE = 100  # pictures by whose stamps the other end is found
UNUSUAL_NS = 10**9  # between two pictures that are sent: three a second are the fewest
CHANGES = {"lost": 1, "back": -1}  # of a device, in events.csv
WINDOW = zlib.crc32(b"window")  # how events.csv names the one in which the peer is seen
MOST_LOST = 1000  # more in one call are not believed

# What lines of a receiver that could not be written make wrong.
OF_ALL_LINES = ("rate_kbps", "loss_percent", "frames_complete", "freezes", "freezes_per_min")
OF_ALL_LINES += ("frozen_percent",)

Lost = tuple[bool, int, int]  # the window?, since when, until when
Spans = list[tuple[int, int]]


@dataclass
class End:
    """What one end of a call has kept. The rows are there between load() and drop() only: a trial
    has more of them than fit into memory."""

    folder: Path
    machine: str
    about: dict[str, Any]
    problems: list[str] = field(default_factory=list)
    frames: list[list[int]] = field(default_factory=list)  # t_ns, rtp_ts, packets, wire_bytes
    rx: list[list[int]] = field(default_factory=list)  # t_ns, seq, rtp_ts, wire_bytes
    play: list[int] = field(default_factory=list)
    rtt: list[float] = field(default_factory=list)
    steps: list[tuple[int, int]] = field(default_factory=list)
    lost: list[Lost] = field(default_factory=list)
    begin: int = 0
    end: int = 0
    sent: set[int] = field(default_factory=set)  # stamps of the first pictures
    came: set[int] = field(default_factory=set)
    seconds: Counter[int] = field(default_factory=Counter)  # bytes on the wire, both ways
    deaf: bool = False  # it has listened for advice, and heard none

    @property
    def label(self) -> str:
        return str(self.about.get("label") or self.about.get("role") or "?")[:40]

    @property
    def cut(self) -> bool:
        """The disk was full, and paqm-streamer failed: its tables may lack lines anywhere."""
        return self.about.get("disk_full") is True and self.about.get("status") != 0

    def _read(self, reader: store.Reader) -> None:
        record = self.folder / "record"
        numbers: dict[str, Callable[[str], Any]] = {"t_ns": int, "rtp_ts": int}
        self.frames = reader.table(
            record / "frames.csv", {**numbers, "packets": int, "wire_bytes": int}
        )
        self.rx = reader.table(
            record / "rx.csv", {"t_ns": int, "seq": int, "rtp_ts": int, "wire_bytes": int}
        )
        self.play = [row[0] for row in reader.table(record / "video.csv", {"play_ns": int})]
        self.rtt = [
            row[0] for row in reader.table(record / "rtcp.csv", {"rtt_ms": _known}) if row[0] > 0
        ]

    def _keep_times(self) -> None:
        self.frames = [row for row in self.frames if self.begin <= row[0] <= self.end]
        self.rx = [row for row in self.rx if self.begin <= row[0] <= self.end]

    def load(self) -> None:
        self._read(store.Reader(self.folder))  # what is wrong was said at the first time
        self._keep_times()

    def drop(self) -> None:
        self.frames, self.rx, self.play, self.rtt = [], [], [], []

    def look(self, reader: store.Reader) -> bool:
        """The first time: what tells of the call as a whole. False: there is nothing."""
        self._read(reader)
        times = sorted(row[0] for row in self.frames + self.rx)
        if not times:
            return False
        middle = times[len(times) // 2]
        near = [at for at in times if abs(at - middle) <= LONGEST_NS]
        self.begin, self.end = near[0], near[-1]
        if len(near) < len(times):
            self.problems.append(f"{len(times) - len(near)} lines of another day, left out")
        self._keep_times()
        self.sent = {row[1] for row in self.frames[:PROBE]}
        self.came = {row[2] for row in self.rx[: 40 * PROBE]}
        for row in self.frames + self.rx:
            self.seconds[row[0] // 10**9] += row[3]
        self.lost = _lost(reader, self.folder / "record" / "events.csv")
        advice = self.folder / "record" / "feedback.csv"
        self.deaf = advice.is_file() and not reader.table(advice, {"t_ns": int})
        return True


def _lost(reader: store.Reader, path: Path) -> list[Lost]:
    """Devices that were lost, and until when: for good, if nothing says more."""
    columns: dict[str, Callable[[str], Any]] = {
        "t_ns": int,
        "event": lambda text: CHANGES.get(text, 0),
        "detail": lambda text: zlib.crc32(text.encode()),
    }
    found: list[Lost] = []
    since: dict[int, int] = {}
    for at, change, device in reader.table(path, columns) if path.is_file() else []:
        if change > 0:
            since.setdefault(device, at)
        elif change < 0 and device in since:
            found.append((device == WINDOW, since.pop(device), at))
    found += [(device == WINDOW, at, store.MOST) for device, at in since.items()]
    return found[:MOST_LOST]


def _known(text: str) -> float:
    """0 for what a report did not tell."""
    return 0.0 if text.strip().lstrip("-") == "nan" else float(text)


def read_end(folder: Path, machine: str) -> End | None:
    """None: nothing of use is there."""
    reader = store.Reader(folder)
    about = store.read_json(folder / "about.json")
    end = End(folder, machine, about or {}, reader.problems)
    if about is None:
        end.problems.append("about.json: missing or broken")
    if (folder / "record").is_symlink() or not end.look(reader):
        return None
    end.drop()
    end.steps = clocks.steps(reader.lines(folder / "clock.jsonl"))
    if about is not None and about.get("end_ns") is None:
        end.problems.append("the call did not end properly: its last seconds may be missing")
    return end


def quantile(values: list[float], share: float) -> float | None:
    """By linear interpolation, as usual."""
    if not values:
        return None
    ordered = sorted(values)
    at = share * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def spread(values: list[float]) -> dict[str, float | None]:
    return {
        name: rounded(quantile(values, share))
        for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
    }


def rounded(value: float | None, digits: int = 3) -> float | None:
    return None if value is None else round(value, digits)


def freezes(
    play: list[int], end: int | None = None, apart: Spans | None = None
) -> tuple[int, float, float]:
    """How many, and how long in all, s: intervals of max(3 m, m + 150 ms) or more, m being the mean
    of the last 30 before; the end of the stream closes the last. And how long it was, s, that
    nothing could be shown, whatever the network did: intervals that are in part in `apart`."""
    shown = [at for n, at in enumerate(play) if n == 0 or at > max(play[n - 1], play[0])]
    if end is not None and shown and end > shown[-1]:
        shown.append(end)
    recent: deque[float] = deque(maxlen=MEMORY)
    times, lasted, left_out = 0, 0.0, 0.0
    for before, after in zip(shown, shown[1:], strict=False):
        gap = (after - before) / 1e6
        if gap <= 0:  # broken lines were between them
            continue
        if any(before < until and since < after for since, until in apart or []):
            left_out += gap / 1e3
            continue
        if recent:
            mean = sum(recent) / len(recent)
            if gap >= max(3 * mean, mean + 150):
                times += 1
                lasted += gap / 1e3
        recent.append(gap)
    return times, lasted, left_out


def gaps_lost(rx: list[list[int]]) -> tuple[int, int]:
    """Packets that came, and that were missing between them, by sequence numbers alone."""
    seen: set[int] = set()
    wide = None
    for _, seq, _, _ in rx:
        if not 0 <= seq < SEQ:
            continue
        if wide is None:
            wide = seq
        step = (seq - wide) % SEQ
        number = wide + (step if step < SEQ // 2 else step - SEQ)
        if abs(number - wide) > SEQ // 4:  # no stream jumps like that: a broken line
            continue
        wide = max(wide, number)
        seen.add(number)
    if not seen:
        return 0, 0
    return len(seen), max(seen) - min(seen) + 1 - len(seen)


def arrivals(rx: list[list[int]]) -> dict[int, tuple[int, int, int]]:
    """Of each picture: when its first and its last packet came, and how many different ones."""
    found: dict[int, tuple[int, int, int]] = {}
    seen: set[tuple[int, int]] = set()
    for t, seq, stamp, _ in rx:
        if (stamp, seq) in seen:
            continue
        seen.add((stamp, seq))
        first, last, packets = found.get(stamp, (t, t, 0))
        found[stamp] = (min(first, t), max(last, t), packets + 1)
    return found


def departures(end: End, came: dict[int, tuple[int, int, int]]) -> list[tuple[int, int]]:
    """When pictures left this end, and when their first packet came to the other."""
    return [(row[0], came[row[1]][0]) for row in end.frames if row[1] in came]


def without_camera(end: End, came: dict[int, tuple[int, int, int]]) -> Spans:
    """When no picture came as none was made, by the clock of the other end. Which device was lost
    its name does not tell for certain: the camera, if there were no pictures meanwhile."""
    found = []
    dark = False
    before: list[int] | None = None
    came_last = None  # what was sent next to the gap may have been lost
    for row in end.frames:
        if before and row[0] - before[0] >= UNUSUAL_NS:
            dark |= any(
                since < row[0] and before[0] < until
                for window, since, until in end.lost
                if not window
            )
        before = row
        if row[1] in came:
            first = came[row[1]][0]
            if dark and came_last is not None and came_last < first:
                found.append((came_last, first))
            came_last, dark = first, False
    return found


def stepped(*ends: End) -> bool:
    return any(one.begin <= at <= one.end for one in ends for at, _ in one.steps)


def direction(
    sender: End | None, receiver: End | None, problems: list[str]
) -> dict[str, Any] | None:
    """The figures of one direction; None: neither end tells of it."""
    found = _direction(sender, receiver, problems)
    if found and receiver and receiver.cut:
        found |= dict.fromkeys(OF_ALL_LINES)
        problems.append(
            f"{receiver.label}: the disk was full for a time: no figures that need each packet"
        )
    return found


def _direction(
    sender: End | None, receiver: End | None, problems: list[str]
) -> dict[str, Any] | None:
    found: dict[str, Any] = {
        "rate_kbps": None,
        "loss_percent": None,
        "frames_sent": None,
        "frames_complete": None,
        "frame_delivery_ms": None,
        "frame_delay_above_least_ms": None,
        "freezes": None,
        "freezes_per_min": None,
        "frozen_percent": None,
        "round_trip_ms": None,
    }
    if (sender is None or not sender.frames) and (receiver is None or not receiver.rx):
        return None
    rtt = sender.rtt if sender and sender.rtt else receiver.rtt if receiver else []
    found["round_trip_ms"] = spread(rtt) if rtt else None
    if receiver is None or not receiver.rx:
        problems.append("the receiver's data of one direction are missing")
        return found
    rx = receiver.rx
    begin, end = rx[0][0], max(row[0] for row in rx)
    whole = not stepped(receiver)
    dark = without_camera(sender, arrivals(rx)) if sender and whole else []
    seconds = (end - begin - sum(until - since for since, until in dark)) / 1e9
    if seconds > 0 and whole:
        found["rate_kbps"] = rounded(sum(row[3] for row in rx) * 8 / seconds / 1e3, 1)
    came, lost = gaps_lost(rx)
    play = [at for at in receiver.play if not whole or begin <= at <= end + PLAYED_NS]
    if play:
        closed = [(since, until) for window, since, until in receiver.lost if window]
        last = max(end, play[-1]) if whole else None
        times, lasted, left_out = freezes(play, last, [*dark, *closed])
        if left_out:
            problems.append(
                f"a device was lost: {left_out:.0f} s without pictures of "
                f"{sender.label if sender else 'the other end'} do not count"
            )
        length = (end - begin if whole else play[-1] - play[0]) / 1e9
        length = max(length - left_out, 1.0)
        found["freezes"] = times
        found["freezes_per_min"] = rounded(times / length * 60)
        found["frozen_percent"] = rounded(lasted / length * 100)
    if sender is None or not sender.frames:
        found["loss_percent"] = rounded(lost / (came + lost) * 100) if came else None
        problems.append("the sender's data of one direction are missing")
        return found
    return _with_sender(found, sender, receiver, problems)


def _with_sender(
    found: dict[str, Any], sender: End, receiver: End, problems: list[str]
) -> dict[str, Any]:
    """What only both ends together tell."""
    got = arrivals(receiver.rx)
    both = [row for row in sender.frames if row[1] in got]
    if not both:
        return found
    first, last = sender.frames.index(both[0]), both[-1][0]
    sent = [row for row in sender.frames[first:] if row[0] <= last]
    if len(sent) > 1 and got[sent[-1][1]][2] < sent[-1][2]:
        del sent[-1]  # the end of the call has cut it
    packets = sum(max(row[2], 0) for row in sent)
    arrived = sum(min(got[row[1]][2], row[2]) for row in sent if row[1] in got)
    found["frames_sent"] = len(sent)
    found["frames_complete"] = sum(1 for row in sent if row[1] in got and got[row[1]][2] >= row[2])
    found["loss_percent"] = rounded((packets - arrived) / packets * 100) if packets else None
    if stepped(sender, receiver):
        problems.append("a clock was set during the call: no figures that need both clocks")
        return found
    settled = both[0][0] + SETTLE_NS
    ways: list[tuple[int, float]] = [
        (row[0], got[row[1]][1] - row[0])
        for row in both
        if row[0] >= settled and got[row[1]][2] >= row[2]
    ]
    if not ways:
        return found
    offset = clocks.align(departures(sender, got), departures(receiver, arrivals(sender.rx)))
    if offset is not None:
        ways = [(left, way - offset.at(left)) for left, way in ways]
        found["frame_delivery_ms"] = spread([way / 1e6 for _, way in ways])
        found["clock_offset_ms"] = rounded(offset.at(ways[0][0]) / 1e6, 1)
    else:
        problems.append(
            "pictures went one way only: the clocks cannot be aligned, so frame "
            "delivery is told above its least alone"
        )
    least = min(way for _, way in ways)
    found["frame_delay_above_least_ms"] = spread([(way - least) / 1e6 for _, way in ways])
    return found
