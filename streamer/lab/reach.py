#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""How an end is found and reached, in a lab guest: names, links, ports, marks, who says nothing.

Prints `ok NAME` or `not ok NAME: why`. The network is that of tests/lab_repair.py, without losses;
names are those of a file in place of /etc/hosts.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import secrets
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "streamer" / "tests"))
import lab_repair  # noqa: E402
import trial  # noqa: E402
from trial import Program, check, run  # noqa: E402

HOME = Path("/run/tmp")
PORT = 5090
NAMES = """\
127.0.0.1 localhost
10.1.0.3 peer
10.1.0.2 peer
2001:db8::9 far
10.1.0.2 far
"""
MEDIA = {"v": 40000, "s": 41000}  # --port
# of who listens at 10.1.0.2, a peer from before RTP and RTCP could share a port
OLD = {"paqm-call": 1, "name": "old", "rate-max": 300000, "video": {"port": 42000},
       "audio": {"port": 42002}}
EF, AF42 = 46, 36  # RFC 8837
LATE = 3  # s until a name is known
SILENT = "the other end says nothing for {} s"
WAIT = 40.0  # s
# in the namespace of a host, with our names
START = "mount --bind /run/tmp/hosts /etc/hosts && exec \"$@\""
# takes a connection, or makes one, and says nothing; done once it is there
SILENCE = """
import socket, sys, time
where = (sys.argv[2], int(sys.argv[3]))
if sys.argv[1] == "listen":
    with socket.create_server(where) as s:
        print("ready", flush=True)
        c, _ = s.accept()
        time.sleep(30)
else:
    with socket.create_connection(where) as c:
        print("ready", flush=True)
        time.sleep(30)
"""
# has a UDP port
SILENCE_UDP = """
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", int(sys.argv[1])))
print("ready", flush=True)
time.sleep(60)
"""


def start(host: str, *command: str, ready: str = "") -> Program:
    return Program(host, "unshare", "--mount", "sh", "-c", START, "sh", *command, ready=ready)


def end_of(one: Program) -> str:
    """What it has said; who does not end is stopped."""
    try:
        one.wait(WAIT)
    except subprocess.TimeoutExpired:
        stop(one)
        return one.said() + "\n(was stopped)"
    return one.said()


def stop(one: Program) -> None:
    one.end(signal.SIGKILL, -signal.SIGKILL)


class Ends:
    def __init__(self, build: Path) -> None:
        self.streamer = str(build / "streamer" / "paqm-streamer")
        self.secret = HOME / "secret"
        self.secret.touch(0o600)
        self.secret.write_text(secrets.token_hex(24) + "\n")

    def call(self, host: str, *where: str, seconds: str = "4", ready: str = "") -> Program:
        return start(host, self.streamer, "call", *where, "--secret", str(self.secret), "--source",
                     "test", "--audio", "test", "--sink", "none", "--audio-sink", "none",
                     "--paqmd", "none", "--duration", seconds, ready=ready)

    def listen(self, *where: str) -> Program:
        return self.call("v", "--listen", *where, seconds="600", ready="waiting")

    def key(self) -> str:
        return hashlib.sha256(self.secret.read_text().strip().encode()).hexdigest()

    def silence(self, host: str, how: str, where: str, port: int) -> Program:
        return start(host, "python3", "-c", SILENCE, how, where, str(port), ready="ready")


def talk(name: str, listener: Program, caller: Program) -> str:
    """Both see and hear each other; what the listener has said."""
    said = [end_of(one) for one in (caller, listener)]
    seen = [re.search(r"showed (\d+), played (\d+)", text) for text in said]
    check(f"{name}: both see and hear", all(m and int(m[1]) > 40 and int(m[2]) > 80 for m in seen),
          said)
    return said[1]


def names(ends: Ends) -> None:
    """Of two addresses the first is refused, or there is no way to it."""
    talk("name, first address refused", ends.listen("10.1.0.2"), ends.call("s", "peer"))
    talk("name, no way to the first", ends.listen("10.1.0.2"), ends.call("s", "far"))
    stream("a stream to a name, no way to the first", ends, "10.1.0.2:5004", "far:5004")
    listener, caller = ends.listen("10.1.0.2"), ends.call("s", "late")
    time.sleep(LATE)
    (HOME / "hosts").write_text(NAMES + "10.1.0.2 late\n")
    talk("a name that is not known at first", listener, caller)
    told = end_of(ends.call("s", "nobody.invalid"))
    check("a name that nobody knows is named, and what to do", "nobody.invalid" in told and
          "give an address" in told, told)
    send = start("s", ends.streamer, "send", "--to", "nobody.invalid:5004", "--source", "test")
    told = end_of(send)
    check("send: a name that nobody knows", send.returncode == 2 and
          "cannot resolve 'nobody.invalid:5004'" in told, told)


def stream(name: str, ends: Ends, listen: str, to: str) -> None:
    """Pictures and, back, reports: without these the sender would be told by its breaker."""
    receiver = start("v", ends.streamer, "recv", "--listen", listen, ready="listening")
    sender = start("s", ends.streamer, "send", "--to", to, "--source", "test", "--paqmd", "none",
                   "--duration", "20", "--rate-max", "400kbit")
    told = end_of(sender)
    receiver.send_signal(signal.SIGINT)
    heard = end_of(receiver)
    found = re.search(r"decoded (\d+) pictures", heard)
    check(f"{name}: pictures come", found and int(found[1]) > 400, (told, heard))
    check(f"{name}: reports come back", sender.returncode == 0 and "no report" not in told, told)


def links(ends: Ends) -> None:
    """Addresses that are valid on one link only, which has to be named."""
    address = {host: next(
        m[1] for m in re.finditer(r"inet6 (fe80:[^/]+)/", run("ip", "-n", host, "addr")))
        for host in "sv"}
    while "tentative" in run("ip", "-n", "s", "addr") + run("ip", "-n", "v", "addr"):
        time.sleep(0.1)
    talk("link: call", ends.listen(), ends.call("s", f"{address['v']}%sv"))
    talk("link: call, address in brackets", ends.listen(f"[{address['v']}%vs]:{PORT}"),
         ends.call("s", f"[{address['v']}%sv]:{PORT}"))
    stream("link: stream", ends, f"[{address['v']}%vs]:5004", f"[{address['v']}%sv]:5004")
    run("ip", "-n", "s", "addr", "add", "2001:db8::1/64", "dev", "sv", "nodad")
    run("ip", "-n", "v", "addr", "add", "2001:db8::2/64", "dev", "vs", "nodad")
    talk("IPv6: call to who listens everywhere", ends.listen(), ends.call("s", "2001:db8::2"))
    talk("IPv4: call to who listens everywhere", ends.listen(), ends.call("s", "10.1.0.2"))


def ports(ends: Ends) -> None:
    """Where another program is already."""
    other = ends.silence("v", "listen", "10.1.0.2", PORT)
    told = end_of(ends.call("v", "--listen", "10.1.0.2"))
    check("port in use: call --listen names it, and the way out",
          f"cannot listen on 10.1.0.2 port {PORT}: " in told and "--listen ADDR:PORT" in told, told)
    stop(other)
    first = start("v", ends.streamer, "recv", "--listen", "10.1.0.2:5004", ready="listening")
    for port in (5004, 5003):  # its RTP, its RTCP
        second = start("v", ends.streamer, "recv", "--listen", f"10.1.0.2:{port}")
        told = end_of(second)
        check(f"port in use: recv on {port} names it, and the way out", second.returncode == 1 and
              "cannot bind UDP 10.1.0.2 port 5004: " in told and "give another port" in told, told)
    stop(first)


class Capture:
    """What leaves a device, UDP only."""

    def __init__(self, host: str, device: str) -> None:
        self.file = HOME / f"{host}.pcap"
        self.tcpdump = Program(host, "tcpdump", "-Z", "root", "-i", device, "-n", "-U", "-s", "128",
                               "-Q", "out", "-w", self.file, "udp", ready="listening on")

    def end(self) -> list[tuple[int, int, int]]:
        """Ports from and to of each packet, and its DSCP."""
        self.tcpdump.end(signal.SIGINT)
        text = run("tcpdump", "-r", str(self.file), "-n", "-v", "-t")
        return [(int(m[2]), int(m[3]), int(m[1], 16) >> 2) for m in re.finditer(
            r"(?:tos|class) (0x[0-9a-f]+).*?\.(\d+) > \S+\.(\d+): ", text, re.DOTALL)]


def talk_seen(name: str, ends: Ends, to: str, *options: str) -> dict[str, Counter[tuple[int, ...]]]:
    """A call from chosen ports to chosen ports; what each end has sent."""
    time.sleep(0.5)  # what the call before has sent last is still under way
    captures = {"v": Capture("v", "vs"), "s": Capture("s", "sv")}
    listener = ends.listen("--port", str(MEDIA["v"]), *options)
    talk(name, listener, ends.call("s", to, "--port", str(MEDIA["s"]), *options))
    return {host: Counter(capture.end()) for host, capture in captures.items()}


def one_port(ends: Ends) -> None:
    """Chosen ports, one for both RTP and RTCP, with and without marks, and an old peer."""
    run("ip", "-n", "s", "addr", "replace", "2001:db8::1/64", "dev", "sv", "nodad")
    run("ip", "-n", "v", "addr", "replace", "2001:db8::2/64", "dev", "vs", "nodad")
    for to, options, marks in (("10.1.0.2", (), (0, 0)), ("10.1.0.2", ("--dscp",), (AF42, EF)),
                               ("2001:db8::2", ("--dscp",), (AF42, EF))):
        what = f"chosen ports, {to}, {' '.join(options) or 'no marks'}"
        for host, sent in talk_seen(what, ends, to, *options).items():
            far = MEDIA["s" if host == "v" else "v"]
            want = {(MEDIA[host] + k, far + k, mark) for k, mark in zip((0, 2), marks, strict=True)}
            check(f"{what}: {host} sends from and to these ports only, marked so",
                  set(sent) == want and min(sent.values()) > 90, sent)
    blocker = start("s", "python3", "-c", SILENCE_UDP, str(MEDIA["s"] + 3), ready="ready")
    listener = ends.listen()
    told = end_of(ends.call("s", "10.1.0.2", "--port", str(MEDIA["s"])))
    check("a chosen port in use is named", f"port {MEDIA['s'] + 3}: " in told and
          "give another port" in told, told)
    stop(blocker)
    end_of(listener)
    told = end_of(ends.call("s", "10.1.0.2", "--port", "80"))
    check("a port out of range is refused", "--port 80: must be 1024 to 65532" in told, told)


def old_peer(ends: Ends) -> None:
    """One that knows nothing of a shared port gets reports at the ports above."""
    capture = Capture("s", "sv")
    # no pipe: what is started must be the server itself, or it outlives its end
    says = HOME / "old-peer"
    server = start("v", "sh", "-c",
                   f"mkfifo {says}; (echo '{json.dumps(OLD)}'; sleep 8) > {says} & "
                   "exec openssl s_server -nocert -tls1_2 -cipher ECDHE-PSK-CHACHA20-POLY1305 "
                   f"-psk_identity paqm-call -psk {ends.key()} -accept {PORT} < {says}",
                   ready="ACCEPT")
    told = end_of(ends.call("s", "10.1.0.2", "--port", str(MEDIA["s"]), seconds="5"))
    stop(server)
    check("an old peer: that is said", "talking to old; " in told and
          "reports at the ports above" in told, told)
    sent = Counter((a, b) for a, b, _ in capture.end())
    check("an old peer: media and reports have ports of their own", set(sent) == {
        (MEDIA["s"] + k, OLD[kind]["port"] + k % 2)
        for kind, ks in (("video", (0, 1)), ("audio", (2, 3))) for k in ks}, (sent, told))


def silence(ends: Ends) -> None:
    """Who takes a call, or makes one, and says nothing."""
    other = ends.silence("v", "listen", "10.1.0.2", PORT)
    begin = time.monotonic()
    caller = ends.call("s", "10.1.0.2")
    told = end_of(caller)
    took = time.monotonic() - begin
    check("silence: the caller gives up and says whom it called", caller.returncode == 1 and
          f"cannot call 10.1.0.2 port {PORT}: " in told and SILENT.format(12) in told, told)
    trial.within("silence: the caller gives up, s", took, 11.9, 15)
    stop(other)
    listener = ends.listen("10.1.0.2")
    other = ends.silence("s", "call", "10.1.0.2", PORT)
    said = talk("silence: the next caller is let in", listener, ends.call("s", "10.1.0.2"))
    check("silence: a caller that says nothing is passed over",
          "a caller from 10.1.0.1 was refused: " in said and SILENT.format(5) in said, said)
    stop(other)


def main() -> int:
    groups: dict[str, Callable[[Ends], None]] = {
        "names": names, "links": links, "ports": ports, "one-port": one_port,
        "old-peer": old_peer, "silence": silence}
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--build", type=Path, default=TOP / "build")
    parser.add_argument("group", nargs="*", choices=[[], *groups])
    args = parser.parse_args()
    (HOME / "hosts").write_text(NAMES)
    lab_repair.network("0%")
    run("ip", "-n", "v", "addr", "add", "10.1.0.3/24", "dev", "vs")
    ends = Ends(args.build.resolve())
    for name, group in groups.items():
        if not args.group or name in args.group:
            group(ends)
    return trial.summary()


if __name__ == "__main__":
    sys.exit(main())
