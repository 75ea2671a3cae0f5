# SPDX-License-Identifier: GPL-2.0
"""What the tests of paqmd share: two network namespaces, one of a sender host and one of a router,
the real daemon, a client of it, and messages built independently of the C codec."""

from __future__ import annotations

import contextlib
import ctypes
import json
import multiprocessing
import os
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import wire
from wire import ICMP6_TYPE, checksum

SENDER_IP, ROUTER_IP = "10.77.0.1", "10.77.0.2"
SENDER_IP6, OTHER_IP6, ROUTER_IP6 = "2001:db8:77::1", "2001:db8:77::11", "2001:db8:77::2"
SPORT, DPORT, SSRC = 5004, 5006, 0x11223344
CLONE_NEWNET = 0x40000000
IPC_MAGIC, IPC_VERSION = 0x50514950, 1
REGISTER, REGISTERED, RATE, UNREGISTER, STATUS = 1, 2, 3, 4, 5
RATE_FORMAT = "=IBBHQQQ16sQIIHHBBH"
CAUSES = {0: "none", 1: "erf", 2: "ecf", 3: "expired"}
PATIENCE = 30.0  # seconds until an awaited event counts as missing
AT_ONCE = 8  # checks
ETH_P_IP = 0x0800


class Rate(NamedTuple):
    """What a rate record says."""

    cookie: int
    bps: int
    cause: str
    router: str
    seq: int
    routers: int


def ip_header(src: str, dst: str, proto: int, length: int, ident: int = 0) -> bytes:
    """IPv4 header without options."""
    head = struct.pack("!BBHHHBBH", 0x45, 0, length, ident, 0x4000, 64, proto, 0)
    head += socket.inet_aton(src) + socket.inet_aton(dst)
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:]


def rtp(seq: int, ssrc: int = SSRC) -> bytes:
    """An RTP packet with contents that nobody can guess."""
    return struct.pack("!BBHII", 0x80, 96, seq, 90000 + seq, ssrc) + os.urandom(200)


def quote(payload: bytes, sport: int = SPORT, dport: int = DPORT) -> bytes:
    """What a router quotes of a media packet; TTL and checksums may differ."""
    head = ip_header(SENDER_IP, ROUTER_IP, 17, 28 + len(payload))
    udp = struct.pack("!HHHH", sport, dport, 8 + len(payload), 0x1234)
    return wire.quoted(head + udp + payload)


def message(
    quoted: bytes, seq: int, rate: float, ecf: float | None = 0.9, router: int = 0xA1,
    boot: int = 7, period: int = 500,
) -> bytes:
    """A whole ICMP message as the protocol describes it, written independently of the C codec."""
    return wire.build(quoted, seq, int(rate), ecf, router, boot, period)


def address(text: str) -> bytes:
    """An address of a record: IPv6, IPv4 mapped, or left open."""
    if ":" in text:
        return socket.inet_pton(socket.AF_INET6, text)
    return b"\0" * 10 + b"\xff\xff" + socket.inet_aton(text) if text else bytes(16)


def register(
    cookie: int, ceil: int = 3_000_000, source: str = SENDER_IP, to: str = ROUTER_IP,
    dport: int = DPORT, ssrc: int = SSRC, sport: int = SPORT,
) -> bytes:
    """Registration record of paqm_ipc.h."""
    return struct.pack(
        "=IBBH16s16sHHIQQIIQ",
        *(IPC_MAGIC, IPC_VERSION, REGISTER, 80, address(source), address(to)),
        *(sport, dport, ssrc, 100_000, ceil, 500_000, 41_667, cookie),
    )


def timer_clocks(pid: str) -> set[int]:
    """The clocks that a process has timers of."""
    found: set[int] = set()
    for path in Path(f"/proc/{pid}/fdinfo").iterdir():
        with contextlib.suppress(FileNotFoundError):  # of the directory itself
            found |= {int(n) for n in re.findall(r"^clockid: (\d+)$", path.read_text(), re.M)}
    return found


def ip(netns: str, words: str) -> None:
    """ip(8) there."""
    subprocess.run(["ip", "-n", netns, *words.split()], check=True)


def can_ip(netns: str, words: str) -> bool:
    """Whether this kernel can do what ip(8) is asked for there."""
    run = ["ip", "-n", netns, *words.split()]
    return not subprocess.run(run, capture_output=True, check=False).returncode


def inside(netns: str, *words: str) -> str:
    """What a command says there."""
    run = ["ip", "netns", "exec", netns, *words]
    return subprocess.run(run, check=True, capture_output=True, text=True).stdout


def lacks(what: str) -> None:
    """A check is left out, unless --all demands it."""
    assert "--all" not in sys.argv, f"this kernel has no {what}"
    print(f"left out: {what}, which this kernel does not have", flush=True)


class NoNetwork(Exception):
    """This machine gives us no network namespaces."""


class Namespaces:
    """Two network namespaces joined by a veth pair."""

    def __init__(self) -> None:
        self.sender = f"pq-s-{os.getpid()}"
        self.router = f"pq-r-{os.getpid()}"
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.home = os.open("/proc/self/ns/net", os.O_RDONLY)

    def up(self) -> None:
        """Create them."""
        try:
            for name in (self.sender, self.router):
                subprocess.run(["ip", "netns", "add", name], check=True)
            self.join()
        except (OSError, subprocess.CalledProcessError) as err:
            raise NoNetwork(str(err)) from err

    def join(self) -> None:
        """Create the veth pair."""
        ip(self.sender, f"link add veth0 type veth peer veth0 netns {self.router}")
        for name, addr in ((self.sender, SENDER_IP), (self.router, ROUTER_IP)):
            ip(name, f"addr add {addr}/24 dev veth0")
            ip(name, "link set lo up")
            ip(name, "link set veth0 up")
        for name, addr in (
            (self.sender, SENDER_IP6),
            (self.sender, OTHER_IP6),
            (self.router, ROUTER_IP6),
        ):
            ip(name, f"addr add {addr}/64 dev veth0 nodad")

    def down(self) -> None:
        """Remove them, and the veth pair with them."""
        for name in (self.sender, self.router):
            subprocess.run(["ip", "netns", "del", name], check=False)

    def socket(self, name: str, *args: int) -> socket.socket:
        """A socket that lives in namespace `name`."""
        fd = os.open(f"/run/netns/{name}", os.O_RDONLY)
        try:
            self._enter(fd)
            return socket.socket(*args)
        finally:
            self._enter(self.home)
            os.close(fd)

    def _enter(self, fd: int) -> None:
        if self.libc.setns(fd, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")


class Client:
    """A media sender as paqmd sees it."""

    def __init__(self, path: Path) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.settimeout(PATIENCE)
        self.sock.connect(str(path))

    def register(self, cookie: int, **other: Any) -> int:
        """Register a flow. Return the error of the answer."""
        self.sock.send(register(cookie, **other))
        return self.registered(cookie)

    def registered(self, cookie: int) -> int:
        """The answer to a registration: its error."""
        magic, version, kind, length, got, error = struct.unpack("=IBBHQi4x", self.sock.recv(512))
        assert (magic, version, kind, length, got) == (IPC_MAGIC, 1, REGISTERED, 24, cookie)
        return int(error)

    def rate(self) -> Rate:
        """The next rate record."""
        rec = struct.unpack(RATE_FORMAT, self.sock.recv(512))
        assert rec[:4] == (IPC_MAGIC, 1, RATE, 72), rec
        router = socket.inet_ntop(socket.AF_INET6, rec[7])
        if rec[7][:12] in (bytes(12), address("0.0.0.0")[:12]):
            router = socket.inet_ntoa(rec[7][12:])
        return Rate(rec[4], rec[5], CAUSES[rec[13]], router, rec[10], rec[15])

    def told(self) -> Rate:
        """The next rate record that is no expiry: a busy machine may take longer than a life."""
        got = self.rate()
        while got.cause == "expired":
            got = self.rate()
        return got

    def silent(self) -> bool:
        """Nothing is waiting to be read."""
        return not select.select([self.sock], [], [], 0)[0]


class Trial:
    """One running daemon and the two ends of the network."""

    def __init__(self, paqmd: str, paqmctl: str, net: Namespaces, run: Path) -> None:
        self.net = net
        self.paqmctl = paqmctl
        # paqmd makes the directories and may remove the sockets in them
        self.ipc, self.control = run / "deep" / "er" / "client.sock", run / "deep" / "control.sock"
        self.log = run / "log"
        self.command = [paqmd, "--socket", str(self.ipc), "--control", str(self.control), "-v"]
        self.command += ["--user", "nobody"]
        self.daemon: subprocess.Popen[bytes] | None = None
        self.open_media()
        self.sink = net.socket(net.router, socket.AF_INET, socket.SOCK_DGRAM)
        self.sink.bind((ROUTER_IP, DPORT))
        self.sink.settimeout(PATIENCE)
        self.raw = net.socket(net.router, socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        self.rtp_seq = 0

    def open_media(self) -> None:
        """The socket that media is sent from."""
        self.media = self.net.socket(self.net.sender, socket.AF_INET, socket.SOCK_DGRAM)
        self.media.bind((SENDER_IP, SPORT))

    def start(self, *options: str) -> None:
        """Start the daemon; wait until it is ready."""
        with self.log.open("wb") as log:
            self.daemon = subprocess.Popen(
                ["ip", "netns", "exec", self.net.sender, *self.command, *options], stderr=log
            )
        self.until(lambda: "ready" in self.log.read_text(), "the daemon to be ready")

    def stop(self) -> None:
        """End the daemon politely; it must leave nothing behind."""
        assert self.daemon
        self.daemon.send_signal(signal.SIGTERM)
        assert self.daemon.wait(PATIENCE) == 0, "exit status"
        assert not self.ipc.exists() and not self.control.exists(), "sockets left behind"
        self.daemon = None

    def until(self, done: Callable[[], bool], what: str) -> None:
        """Wait for an event."""
        end = time.monotonic() + PATIENCE
        while not done():
            assert time.monotonic() < end, f"waited in vain for {what}"
            assert self.daemon is None or self.daemon.poll() is None, self.log.read_text()
            time.sleep(0.02)

    def sender(self, cookie: int = 1, **other: Any) -> Client:
        """A client with one flow, of which nothing has been told yet."""
        client = Client(self.ipc)
        assert client.register(cookie, **other) == 0
        assert client.rate().cause == "none"
        return client

    def ctl(self, *words: str) -> subprocess.CompletedProcess[str]:
        """What paqmctl makes of a command."""
        run = [self.paqmctl, "--control", str(self.control), *words]
        return subprocess.run(run, capture_output=True, text=True, check=False)

    def ask(self, command: str) -> dict[str, Any]:
        """One answer of paqmctl."""
        out = self.ctl("--json", command)
        assert out.returncode == 0, out
        answer: dict[str, Any] = json.loads(out.stdout)
        return answer

    def stats(self) -> dict[str, Any]:
        """Counters of the daemon."""
        stats: dict[str, Any] = self.ask("stats")["stats"]
        return stats

    def send_media(self, ssrc: int = SSRC) -> bytes:
        """Send one packet over the veth pair; return it as it arrived."""
        self.rtp_seq += 1
        sent = rtp(self.rtp_seq, ssrc)
        self.media.sendto(sent, (ROUTER_IP, DPORT))
        got = self.sink.recv(2048)
        assert got == sent
        return got

    def packet_to(self, port: int) -> bytes:
        """A media packet of a server at the sender to this port, as the router sees it: from its
        IP header.
        """
        with self.net.socket(self.net.router, socket.AF_PACKET, socket.SOCK_DGRAM,
                             socket.htons(ETH_P_IP)) as raw:
            raw.settimeout(PATIENCE)
            while True:
                got = raw.recv(2048)
                udp = (got[0] & 15) * 4
                if (got[9] == 17 and socket.inet_ntoa(got[12:16]) == SENDER_IP
                        and int.from_bytes(got[udp + 2 : udp + 4], "big") == port
                        and got[udp + 8] >> 6 == 2 and len(got) > udp + 200):
                    return got

    def answer(self, icmp: bytes, src: str = ROUTER_IP) -> None:
        """Send an ICMP message to the sender host."""
        ip = ip_header(src, SENDER_IP, 1, 20 + len(icmp))
        self.raw.sendto(ip + icmp, (SENDER_IP, 0))

    def expect_refusal(self, reason: str, icmp: bytes, src: str = ROUTER_IP) -> None:
        """Send a message that must be refused for `reason`, and nothing else may change."""
        before = self.stats()
        self.answer(icmp, src)
        self.until(
            lambda: self.stats()["refused_total"] > before["refused_total"], f"refusal: {reason}"
        )
        after = self.stats()
        changed = {k: n for k, n in after["refused"].items() if n != before["refused"][k]}
        assert changed == {reason: before["refused"][reason] + 1}, (reason, changed)
        assert after["accepted"] == before["accepted"], reason
        print(f"ok: {reason}", flush=True)


def tagged(icmp: bytes, number: int, key: bytes) -> bytes:
    """The message with key id, AUTH and the tag for this host."""
    return wire.tagged(icmp, number, key, SENDER_IP)


def start_keyed(t: Trial, keys: Path) -> Client:
    """The daemon believes only what is tagged by keys of this file; a sender of one flow."""
    keys.chmod(0o600)
    t.start("-i", "veth0", "--keys", str(keys), "--require-auth")
    client = t.sender()
    return client


def message6(source: str, payload: bytes, seq: int, erf: float) -> bytes:
    """A message about an IPv6 packet; the kernel computes its checksum."""
    head = struct.pack("!IHBB", 6 << 28, 8 + len(payload), 17, 63)
    head += address(source) + address(ROUTER_IP6)
    udp = struct.pack("!HHHH", SPORT, DPORT, 8 + len(payload), 0x1234)
    icmp = message(wire.quoted(head + udp + payload), seq, erf)
    return bytes([ICMP6_TYPE, 0, 0, 0]) + icmp[4:]


def later(record: bytes, cause: int | None) -> list[bytes]:
    """What a later release may send in place of a record: an unknown kind, then more behind it.
    @cause: of a rate in place of ERF"""
    if record[5] == 3 and record[68] == 1 and cause is not None:
        record = record[:68] + bytes([cause]) + record[69:]
    longer = record[:6] + struct.pack("=H", len(record) + 24) + record[8:] + os.urandom(24)
    return [record[:5] + struct.pack("=BH", 99, 40) + bytes(32), longer]


def _relay(server: socket.socket, path: Path, cause: int | None) -> None:
    client = server.accept()[0]
    with client, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as daemon:
        daemon.connect(str(path))
        while True:
            for end in select.select([client, daemon], [], [])[0]:
                record = end.recv(512)
                if not record:
                    return
                for other in later(record, cause):
                    (daemon if end is client else client).send(other)


@contextlib.contextmanager
def later_releases(path: Path, cause: int | None = None) -> Iterator[Path]:
    """A socket that joins one client to paqmd: each looks to the other like one of a later release,
    whose rates have this cause in place of ERF. The client has to end within."""
    between = path.with_name("relay.sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.bind(str(between))
        server.listen()
        thread = threading.Thread(target=_relay, args=(server, path, cause))
        thread.start()
        yield between
        thread.join(PATIENCE)
        assert not thread.is_alive()
    between.unlink()


@contextlib.contextmanager
def new_trial(paqmd: str, paqmctl: str) -> Iterator[Trial]:
    """A network of its own; what the daemon has said is shown if something fails."""
    net = Namespaces()
    try:
        net.up()
        with tempfile.TemporaryDirectory(prefix="paqmd-test-") as run:
            os.chmod(run, 0o755)
            trial = Trial(paqmd, paqmctl, net, Path(run))
            try:
                yield trial
            except BaseException:
                if trial.log.exists():
                    print(trial.log.read_text(), file=sys.stderr)
                raise
            finally:
                if trial.daemon:
                    trial.daemon.kill()
                    trial.daemon.wait()
    finally:
        net.down()


def _alone(check: Callable[..., None], given: list[str]) -> None:
    with new_trial(*given[:2]) as trial:
        check(trial, *given[2:])


def run_checks(arguments: str, checks: Sequence[Callable[..., None]]) -> int:
    """A test program: it is given these arguments, each check gets those behind PAQMD PAQMCTL.

    Each has network and daemon of its own, and a process: they wait most of the time, so some do at
    once.
    """
    given = [os.path.abspath(arg) for arg in sys.argv[1:] if not arg.startswith("--")]
    if len(given) != len(arguments.split()):
        print(f"usage: {Path(sys.argv[0]).name} {arguments}", file=sys.stderr)
        return 2
    if os.geteuid():
        print("skipped: needs root for network namespaces")
        return 77
    with ProcessPoolExecutor(AT_ONCE, multiprocessing.get_context("fork")) as pool:
        running = [pool.submit(_alone, check, given) for check in checks]
        try:
            for one in running:
                one.result()
        except NoNetwork as err:
            print(f"skipped: no network namespaces here ({err})")
            return 77
    print("all passed")
    return 0
