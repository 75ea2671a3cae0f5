# SPDX-License-Identifier: GPL-2.0
"""What a stream of a scenario can be sent by: P-AQM's own streamer, and its rivals.

A sender is a row of SENDERS. Its plan names the programs of a stream; the guest starts them at
their times and knows no sender.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from paqm_lab import cache, lab, topology
from paqm_lab.errors import LabError
from paqm_lab.guest import LEAD, SAMPLE, TAIL
from paqm_lab.rundata import ADVISED_SENDER

Json = dict[str, Any]

# A guest of so many heavy senders, or twice as many others, has memory enough.
SMALL = 4
MOST_A_GIB = 10  # and of many, so many a GiB

PAGE = cache.TESTBED / "rivals" / "browser"  # a page with a call, for every browser
GST_PORT = 5004  # of the sender, and the next for its reports
GST_ADVISED = "paqmestimator name=estimator socket={socket}"

# What a page allows its own video: falls and rises that no router advised.
STEPS = "15:300kbit,25:500kbit,35:2mbit"

# Feedback of RFC 8888 about every packet and its ECN mark, and a controller that answers to marks;
# media is sent as ECT(1) then.
SCREAM = "WebRTC-RFC8888CongestionControlFeedback/Enabled,offer:true/"
SCREAM += "WebRTC-Bwe-ScreamV2/mode:always/"
# What waits in Chromium's pacer leaves at its rate, however long that takes.
NO_DRAIN = "WebRTC-Pacer-DrainQueue/Disabled/"


@dataclass(frozen=True)
class Program:
    """A command of a guest.

    @host: the namespace that it runs in
    @at: scenario time of its start; None: it runs from before the beginning to the end
    @ready: a file that says that it is ready, for those that run all the time
    @output: the file that its output goes to, for those that end at once
    """

    name: str
    host: str
    command: list[str]
    at: float | None = None
    ready: str = ""
    output: str = ""


@dataclass(frozen=True)
class Plan:
    """What a stream needs: directories are made first, then programs start."""

    directories: list[str]
    programs: list[Program]


# A stream as resolved, with its `host`, the router's `device`, the `sink` and its address (`to`);
# of the run's configuration `build`, `clip`, `clip_file`, `record`, `seed` and `variant`; and the
# directory with the stream's logs, `send` and `recv`.
Planner = Callable[[Json, Json, Path], Plan]


@dataclass(frozen=True)
class Sender:
    """A way to send a stream.

    @codec: for the report
    @heavy: a stream needs twice the memory
    @one_size: it takes pictures of the clip's own size only
    @needs: what must be installed, below the cache, and `remedy` what installs it
    @extra: what the guest's image has besides (image.EXTRAS); such a guest has the most memory
    """

    codec: str
    plan: Planner
    heavy: bool = False
    one_size: bool = False
    needs: str = ""
    remedy: str = ""
    extra: str = ""


def ends(
    flow: Json, send: list[str], receive: list[str], directories: list[str] | None = None
) -> Plan:
    """A receiver, and somewhat later its sender; each ends by itself."""
    name, begin = flow["name"], flow["start"]
    return Plan(directories or [], [
        Program(f"recv-{name}", flow["sink"], receive, begin - LEAD),
        Program(f"send-{name}", flow["host"], send, begin),
    ])  # fmt: skip


def _socket(flow: Json) -> str:
    """Where the stream's paqmd answers."""
    return f"/run/paqmd-{flow['name']}.sock"


def _control(flow: Json) -> str:
    return f"/run/paqmd-{flow['name']}.ctl"


def _paqmd(flow: Json, config: Json, *options: str) -> Program:
    """The sender host's daemon, of this stream alone."""
    command = [f"{config['build']}/feedback-daemon/paqmd", "-i", flow["device"]]
    command += ["--socket", _socket(flow), "--control", _control(flow), "--user", "nobody"]
    return Program(f"paqmd-{flow['name']}", flow["host"], [*command, *options],
                   ready=_socket(flow))  # fmt: skip


def _paqmctl(flow: Json, config: Json, home: Path) -> Program:
    """What the daemon says of the stream at its end."""
    command = [f"{config['build']}/feedback-daemon/paqmctl", "--control", _control(flow)]
    return Program(f"paqmctl-{flow['name']}", flow["host"], [*command, "show", "--json"],
                   flow["stop"] - SAMPLE / 2, output=str(home / "send" / "paqmd.json"))  # fmt: skip


def _streamer(flow: Json, config: Json, home: Path) -> Plan:
    streamer = f"{config['build']}/streamer/paqm-streamer"
    length = flow["stop"] - flow["start"]
    to = f"[{flow['to']}]:{flow['port']}" if ":" in flow["to"] else f"{flow['to']}:{flow['port']}"
    receive = [streamer, "recv", "--listen", to]
    receive += ["--log", str(home / "recv"), "--duration", str(length + LEAD + TAIL)]
    if config["record"]:
        receive += ["--output", str(home / "recv" / "decoded.y4m")]
    around = lab.WITH_OTHER_PLUGINS if config["variant"]["controller"] == "gcc" else []
    send = [*around, streamer, "send", "--to", to]
    send += ["--bind", flow["address"], "--source", config["clip_file"], "--loop"]
    send += ["--start-frame", str(flow["start_frame"]), "--ssrc", str(flow["ssrc"])]
    send += ["--rate-max", f"{flow['rate_max']}bit", "--rate-min", f"{flow['rate_min']}bit"]
    send += ["--duration", str(length), "--seed", str(config["seed"])]
    send += ["--log", str(home / "send"), "--paqmd", _socket(flow)]
    if config["variant"]["controller"]:
        send += ["--controller", config["variant"]["controller"]]
    if receiver := config["variant"].get("receiver"):
        receive += ["--controller", receiver]
    if encoder := config["variant"].get("encoder"):
        send += ["--encoder", encoder]
        # it may begin with pictures that are smaller than the clip's
        receive += ["--size", f"{config['clip']['width']}x{config['clip']['height']}"]
    if config["variant"]["ecn"]:
        send += ["--ecn", config["variant"]["ecn"]]
    plan = ends(flow, send, receive)
    use = ["--use", config["variant"]["use"]] if config["variant"]["use"] else []
    before, after = _paqmd(flow, config, *use), _paqmctl(flow, config, home)
    return Plan([], [before, *plan.programs, after])


def _gst(estimator: str, advised: bool, encoder: str = "vp8enc") -> Planner:
    """A sender as webrtcsink is one, with this in rtpbin's request-aux-sender."""
    around = lab.WITH_OTHER_PLUGINS if "rtpgccbwe" in estimator else []

    def plan(flow: Json, config: Json, home: Path) -> Plan:
        build = Path(config["build"])
        length = flow["stop"] - flow["start"]
        to = f"{flow['to']}:{flow['port']}"
        receive = [str(build / "streamer" / "paqm-streamer"), "recv", "--listen", to]
        receive += ["--log", str(home / "recv"), "--duration", str(length + LEAD + TAIL)]
        if config["record"]:
            receive += ["--output", str(home / "recv" / "decoded.y4m")]
        send = [*around, str(build / "streamer" / "tests" / "gst_send"), "--to", to]
        send += ["--bind", f"{flow['address']}:{GST_PORT}", "--clip", config["clip_file"]]
        send += ["--start-frame", str(flow["start_frame"]), "--ssrc", str(flow["ssrc"])]
        send += ["--rate-max", str(flow["rate_max"]), "--rate-min", str(flow["rate_min"])]
        send += ["--duration", str(length), "--log", str(home / "send")]
        send += ["--estimator", estimator.format(socket=_socket(flow))]
        send += ["--encoder", encoder]
        plan = ends(flow, send, receive)
        return Plan([], [_paqmd(flow, config), *plan.programs]) if advised else plan

    return plan


def _libwebrtc(flow: Json, config: Json, home: Path) -> Plan:
    signalling = f"/run/signal/{flow['name']}"
    length = flow["stop"] - flow["start"]
    # It keeps the clock's value between waits: libwebrtc asks for it all the time.
    node = ["env", f"LD_PRELOAD={config['build']}/lab/vclock.so", "node"]
    receive = [*node, str(lab.RIVAL / "recv.js"), "--signal", signalling]
    receive += ["--log", str(home / "recv"), "--output", str(home / "recv" / "decoded.y4m")]
    receive += ["--bind", flow["to"], "--duration", str(length + LEAD + TAIL)]
    send = [*node, str(lab.RIVAL / "send.js"), "--signal", signalling]
    send += ["--log", str(home / "send"), "--clip", config["clip_file"], "--loop"]
    send += ["--start-frame", str(flow["start_frame"]), "--bind", flow["address"]]
    send += ["--fps", str(config["clip"]["fps"]), "--rate-max", str(flow["rate_max"])]
    send += ["--duration", str(length)]
    return ends(flow, send, receive, [signalling])


def _browser(
    which: str, to: str = "", trials: str = "", steps: str = "", advised: bool = False,
    limit: str = "answer",
) -> Planner:
    """A browser of rivals/browser/browsers.js that calls another, or one of its kind.

    @trials: field trials of its WebRTC
    @steps: what the page itself allows its video
    @advised: its sender has the extension of this project, and paqmd beside it
    @limit: what holds rate_max: the answer, as with the other rival, or the page by maxBitrate
    """

    def plan(flow: Json, config: Json, home: Path) -> Plan:
        name, build = flow["name"], Path(config["build"])
        signalling = f"/run/signal/{name}"
        length = flow["stop"] - flow["start"]
        same = ["--signal", signalling, "--field-trials", trials]
        receive = ["node", str(PAGE / "recv.js"), *same, "--log", str(home / "recv")]
        receive += ["--browser", to or which]
        receive += ["--output", str(home / "recv" / "decoded.y4m"), "--bind", flow["to"]]
        receive += ["--duration", str(length + LEAD + TAIL)]
        send = ["node", str(PAGE / "send.js"), *same, "--log", str(home / "send")]
        send += ["--browser", which, "--allow", steps, "--limit", limit]
        send += ["--clip", config["clip_file"], "--start-frame", str(flow["start_frame"])]
        send += ["--fps", str(config["clip"]["fps"]), "--rate-max", str(flow["rate_max"])]
        send += ["--bind", flow["address"], "--duration", str(length)]
        if not advised:
            return ends(flow, send, receive, [signalling])
        send += ["--extension", str(build / "browser" / "extension")]
        send += ["--native-host", str(build / "browser" / "paqm-native-host")]
        plan = ends(flow, ["env", f"PAQM_SOCKET={_socket(flow)}", *send], receive)
        before, after = _paqmd(flow, config), _paqmctl(flow, config, home)
        return Plan([signalling], [before, *plan.programs, after])

    return plan


SENDERS = {
    ADVISED_SENDER: Sender("H.264 (x264)", _streamer),
    "gst-paqm": Sender("VP8 (libvpx)", _gst(GST_ADVISED, True)),
    "gst-paqm-openh264": Sender("H.264 (OpenH264)", _gst(GST_ADVISED, True, "openh264enc")),
    "gst-paqm-h264": Sender("H.264 (x264, paqmh264enc)", _gst(GST_ADVISED, True, "paqmh264enc")),
    # The routers' advice above, congestion control below it.
    "gst-both": Sender(
        "VP8 (libvpx)",
        _gst("paqmestimator name=estimator safety-net=rtpgccbwe socket={socket}", True),
        needs="gstreamer-plugins", remedy="make gcc-element",
    ),
    "gst-gcc": Sender(
        "VP8 (libvpx)", _gst("rtpgccbwe name=estimator", False),
        needs="gstreamer-plugins", remedy="make gcc-element",
    ),
    # Two processes of some 80 MB.
    "libwebrtc": Sender(
        "VP8 (libvpx)", _libwebrtc, heavy=True, one_size=True,
        needs="node/node_modules/@roamhq/wrtc", remedy="setup/setup.sh",
    ),
    "chromium": Sender(
        "VP8 (libvpx)", _browser("chromium-shell"), one_size=True, extra="chromium"
    ),
    "chromium-scream": Sender(
        "VP8 (libvpx)", _browser("chromium-shell", trials=SCREAM), one_size=True, extra="chromium"
    ),
    "chromium-no-drain": Sender(
        "VP8 (libvpx)", _browser("chromium-shell", trials=NO_DRAIN), one_size=True, extra="chromium"
    ),
    # Browsers with windows, as they come and with the extension of this project.
    "chromium-full": Sender(
        "VP8 (libvpx)", _browser("chromium-full"), one_size=True, extra="browser"
    ),
    "chromium-paqm": Sender(
        "VP8 (libvpx)", _browser("chromium-full", advised=True), one_size=True, extra="browser"
    ),
    "chromium-page": Sender(
        "VP8 (libvpx)", _browser("chromium-full", limit="page"), one_size=True, extra="browser"
    ),
    "chromium-page-paqm": Sender(
        "VP8 (libvpx)", _browser("chromium-full", advised=True, limit="page"), one_size=True,
        extra="browser",
    ),
    "chromium-steps": Sender(
        "VP8 (libvpx)", _browser("chromium-shell", steps=STEPS), one_size=True, extra="firefox"
    ),
    # Received by Chromium, which hands over pictures as they are decoded.
    "firefox": Sender(
        "VP8 (libvpx)", _browser("firefox", "chromium-shell"), one_size=True, extra="firefox"
    ),
    "firefox-steps": Sender(
        "VP8 (libvpx)", _browser("firefox", "chromium-shell", steps=STEPS), one_size=True,
        extra="firefox",
    ),
    "firefox-paqm": Sender(
        "VP8 (libvpx)", _browser("firefox", "chromium-shell", advised=True), one_size=True,
        extra="firefox",
    ),
}  # fmt: skip


def sender_of(flow: Json, variant: Json) -> str:
    """What sends a stream: a stream may name its own sender."""
    return str(flow.get("sender", variant["sender"]))


def installed(name: str) -> None:
    """Refuses before the first guest boots when a sender's programs are not there."""
    sender = SENDERS.get(name)
    if sender and sender.needs and not (cache.cache_dir() / sender.needs).is_dir():
        raise LabError(f"the sender {name} is not installed; run {sender.remedy}")


def house_for(names: Iterable[str], house: lab.Lab, progress: Callable[[str], None]) -> lab.Lab:
    """The lab, with the image that streams by these senders need."""
    for extra in sorted({SENDERS[name].extra for name in names if name in SENDERS} - {""}):
        house = lab.with_extra(house, extra, progress)
    return house


def memory(names: list[str], captures: int = 1) -> str:
    """What a guest with streams by these senders needs; each capture holds 64 MiB."""
    if any(SENDERS[name].extra for name in names):
        return "3G"
    streams, heavy = len(names), sum(SENDERS[name].heavy for name in names)
    if heavy <= SMALL and streams <= 2 * SMALL and not (heavy and captures > SMALL):
        return "1G"
    if streams <= 5 * SMALL:
        return "2G"
    return f"{max(3, math.ceil(streams / MOST_A_GIB))}G"


def plans(flows: Sequence[Json], config: Json, directory: Path) -> list[Json]:
    """What the guest starts for every stream, each of which has its `sender`."""
    made = []
    for flow in flows:
        home = directory / "flows" / flow["name"]
        plan = SENDERS[flow["sender"]].plan(flow, config, home)
        own = [str(home / side) for side in ("send", "recv")]
        made.append(asdict(Plan([*own, *plan.directories], plan.programs)))
    return made


def of_dumbbell(resolved: Json) -> list[Json]:
    """The streams of a resolved scenario, with their places in the dumbbell."""
    ends = {"device": topology.ROUTER, "sink": topology.SINK, "to": topology.SINK_ADDRESS}
    return [
        {**flow, **ends, "host": topology.namespace_of(flow["name"]),
         "sender": sender_of(flow, resolved["variant"])}
        for flow in resolved["media"]
    ]  # fmt: skip
