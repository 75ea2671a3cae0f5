# SPDX-License-Identifier: GPL-2.0
"""Clients that are rude, greedy, or not who they say; what each may do, and have."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from typing import Any

from host import NOBODY, acting_as, connect
from rig import (
    DPORT,
    OTHER_IP6,
    PATIENCE,
    REGISTERED,
    ROUTER_IP,
    ROUTER_IP6,
    SENDER_IP6,
    SPORT,
    Client,
    Trial,
    message6,
    register,
    rtp,
)


def check_rude(t: Trial) -> None:
    """Clients that ask too much at once, that come too many, and a log that nobody reads."""
    t.start("-i", "veth0")
    assert t.daemon
    request, count = b'{"cmd": "show"}\n', 250
    with connect(t.control) as flood:
        t.daemon.send_signal(signal.SIGSTOP)
        flood.sendall(count * request)
        flood.shutdown(socket.SHUT_WR)
        client = Client(t.ipc)
        t.daemon.send_signal(signal.SIGCONT)
        assert client.register(1) == 0
        client.rate()
        answers = [json.loads(line) for line in flood.makefile("rb")]
    assert len(answers) == count, f"{len(answers)} of {count} answers"
    others = [answer["stats"]["clients"] for answer in answers]
    assert others[4], f"a client waited for {others.index(1)} answers to another"
    print("ok one that asks much at once gets it all, and others theirs meanwhile", flush=True)

    t.stop()

    command = list(t.command)
    t.command[:0] = ["prlimit", "--nofile=20"]
    t.start("-i", "veth0")
    clients = [Client(t.ipc) for _ in range(15)]  # as many as may wait
    assert clients[-1].sock.recv(1) == b"", "neither served nor refused"
    assert clients[0].register(1) == 0
    assert clients[0].rate().cause == "none"
    for client in clients:
        client.sock.close()
    t.stop()
    t.command = command
    print("ok out of files", flush=True)

    read, write = os.pipe()
    t.daemon = subprocess.Popen(["ip", "netns", "exec", t.net.sender, *t.command, "-i", "veth0"],
                                stderr=write)
    os.close(write)
    while b"ready" not in os.read(read, 4096):
        pass
    os.close(read)
    with connect(t.control):
        client = t.sender()
    client.sock.close()
    t.until(lambda: t.stats()["clients"] == 0, "the client to be missed")
    t.stop()
    print("ok a log that nobody reads", flush=True)


def stay(socks: list[socket.socket], count: int) -> list[socket.socket]:
    """Those that are still connected when so many are."""
    end = time.monotonic() + PATIENCE
    while len(socks) > count:
        assert time.monotonic() < end, f"{len(socks)} are connected, not {count}"
        for sock in list(socks):
            if select.select([sock], [], [], 0)[0]:
                assert sock.recv(1) == b""
                sock.close()
                socks.remove(sock)
        time.sleep(0.01)
    return socks


def crowd(t: Trial, count: int) -> list[socket.socket]:
    """So many connections of one user, those that are closed at once with them."""
    socks: list[socket.socket] = []
    while len(socks) < count:
        with contextlib.suppress(BlockingIOError):  # the queue is full
            socks.append(Client(t.ipc).sock)
    return socks


def register_many(client: Client, first: int, count: int) -> dict[int, int]:
    """Register flows of their own. Return how often each error came."""
    errors: dict[int, int] = {}
    for begin in range(first, first + count, 50):
        cookies = range(begin, min(begin + 50, first + count))
        for n in cookies:
            client.sock.send(register(n, source="", to=f"10.{1 + n // 65536}.{n // 256 % 256}."
                                      f"{n % 256}"))
        left = len(cookies)
        while left:
            record = client.sock.recv(512)
            if record[5] == REGISTERED:
                error = int.from_bytes(record[16:20], sys.byteorder)
                errors[error] = errors.get(error, 0) + 1
                left -= 1
    return errors


def check_shares(t: Trial) -> None:
    """Nobody takes more than he leaves to others: connections, flows, control connections."""
    t.start("-i", "veth0", "--group", "nogroup")
    ones: dict[int, list[socket.socket]] = {}
    for uid, count in ((1001, 32), (1002, 16), (1003, 8)):
        with acting_as(uid):
            ones[uid] = crowd(t, count + 3)
        stay(ones[uid], count)
    stats = t.stats()
    assert stats["clients"] == 56 and stats["clients_refused"] == {"user_full": 9, "all_full": 0}
    assert [(u["uid"], u["clients"]) for u in stats["users"]] == [
        (1001, 32), (1002, 16), (1003, 8)]
    assert "uid 1001 has 32 clients already, and 32 are left for others" in t.log.read_text()
    # root has the rest
    rest = stay(crowd(t, 9), 8)
    assert t.stats()["clients_refused"] == {"user_full": 9, "all_full": 1}
    for sock in rest + sum(ones.values(), []):
        sock.close()
    t.until(lambda: t.stats()["clients"] == 0, "all to be gone")
    print("ok shares of the connections", flush=True)

    with acting_as(1001):
        greedy = [Client(t.ipc), Client(t.ipc)]
    with acting_as(1002):
        other = Client(t.ipc)
    assert register_many(greedy[0], 0, 4200) == {0: 4096, errno.ENOSPC: 104}
    assert register_many(greedy[1], 5000, 1100) == {0: 1024, errno.EDQUOT: 76}
    assert register_many(other, 10_000, 100) == {0: 100}
    stats = t.stats()
    refused = {k: n for k, n in stats["flows_refused"].items() if n}
    assert refused == {"client_full": 104, "user_full": 76}, refused
    digests = stats["users"][0].pop("digests")
    assert digests == 64 * 5120 and stats["digests"] == digests + 64 * 100
    assert stats["users"][0] == {"uid": 1001, "clients": 2, "flows": 5120}
    text = t.ctl("stats").stdout
    assert "uid 1001: 2 clients, 5120 flows, 327680 digests\n" in text, text
    assert re.search(r"^  flows refused: user_full +76$", text, re.M), text
    for client in [*greedy, other]:
        client.sock.close()
    t.until(lambda: t.stats()["clients"] == 0, "all to be gone")
    assert t.stats()["digests"] == 0
    print("ok shares of the flows", flush=True)

    with acting_as(1001):
        controls = [connect(t.control) for _ in range(10)]
    stay(controls, 8)
    with acting_as(1002):
        controls.append(connect(t.control))
    assert t.stats()["controls_refused"] == {"user_full": 2, "all_full": 0}
    for sock in controls:
        sock.close()
    t.stop()
    print("ok shares of the control connections", flush=True)


def taken(control: socket.socket) -> bool:
    """Whether paqmd answers this connection."""
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        control.sendall(b'{"cmd": "stats"}\n')
        return bool(control.recv(1))
    return False


def check_rights(t: Trial) -> None:
    """Members of the group may look, and register flows; they may not change or capture."""
    t.start("-i", "veth0", "--group", "nogroup")
    for uid, mighty in ((0, True), (1001, False)):
        with acting_as(uid):
            looks = connect(t.control)
            client = Client(t.ipc)
        assert client.register(1) == 0
        lines = looks.makefile("rb")
        for command in ("show", "stats", "why", "reload", "watch", "capture"):
            looks.sendall(json.dumps({"cmd": command}).encode() + b"\n")
            while "ok" not in (got := json.loads(lines.readline())):
                pass  # an event of the watch
            may = mighty or command not in ("reload", "capture")
            assert got["ok"] == may, (uid, command, got)
            assert may or "only root and the user who runs paqmd" in got["error"], got
        looks.close()
        client.sock.close()
        t.until(lambda: t.stats()["clients"] == 0, "the client to be missed")
    # whom paqmd gives no capture keeps the one he has
    pcap = t.log.with_name("old.pcap")
    pcap.write_text("of yesterday")
    crowd = [connect(t.control)]
    while taken(crowd[-1]):
        crowd.append(connect(t.control))
    out = t.ctl("capture", str(pcap))
    assert out.returncode == 1, out
    assert pcap.read_bytes() == b"of yesterday", "a capture was overwritten for nothing"
    for one in crowd:
        one.close()
    t.until(lambda: t.ctl("stats").returncode == 0, "room")
    t.stop()
    print("ok rights of the group", flush=True)


def check_many_groups(t: Trial) -> None:
    """Who is in hundreds of groups, as directory services have it, is a member like any other."""
    t.start("-i", "veth0", "--group", "nogroup")
    before = os.getgroups()
    os.setgroups([NOBODY, *range(20_000, 20_400)])
    os.setegid(1001)
    os.seteuid(1001)
    try:
        client = Client(t.ipc)
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(before)
    assert client.register(1) == 0
    client.sock.close()
    t.stop()
    print("ok a member of many groups", flush=True)


def check_open_source(t: Trial) -> None:
    """Who leaves its source address open has what its own sockets send, not what others do."""
    t.start("-i", "veth0", "--group", "nogroup")
    with acting_as(1001):
        client = Client(t.ipc)
    assert client.register(6, source="", to=ROUTER_IP6) == 0
    client.rate()
    raw = t.net.socket(t.net.router, socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
    believed = {}
    for seq, (uid, source) in enumerate(((1001, SENDER_IP6), (1002, OTHER_IP6)), start=1):
        sock = t.net.socket(t.net.sender, socket.AF_INET6, socket.SOCK_DGRAM)
        os.fchown(sock.fileno(), uid, -1)  # it is his from now on
        sock.bind((source, SPORT))
        for _ in range(20):  # not each is looked at
            payload = rtp(seq)
            sock.sendto(payload, (ROUTER_IP6, DPORT))
            time.sleep(0.02)
        raw.sendto(message6(source, payload, seq, 500_000 + seq), (source, 0))
        t.until(lambda n=seq: (s := t.stats())["refused_total"] + s["accepted"] == n,
                "the message")
        believed[uid] = t.stats()["accepted"]
        sock.close()
    assert believed == {1001: 1, 1002: 1}, believed
    stats = t.stats()
    assert stats["media_others"] >= 20 and stats["refused"]["quote_unknown"] == 1, stats
    # who asks is told that his packets are another's
    with acting_as(1001):
        other = Client(t.ipc)
    assert other.register(7, source="", sport=SPORT + 2) == 0
    sock = t.net.socket(t.net.sender, socket.AF_INET, socket.SOCK_DGRAM)
    os.fchown(sock.fileno(), 1002, -1)
    sock.bind(("", SPORT + 2))

    def reason() -> str:
        sock.sendto(rtp(9), (ROUTER_IP, DPORT))
        return next(str(one["code"]) for one in t.ask("why")["why"]
                    if one["flow"].startswith(f"*:{SPORT + 2}"))

    t.until(lambda: reason() == "not_own", "the reason")
    sock.close()
    other.sock.close()
    client.sock.close()
    t.stop()
    print("ok an open source address", flush=True)


def check_many_sockets(t: Trial) -> None:
    """A server has a socket for each of its viewers and leaves all source addresses open: the
    packets of every one count."""
    viewers = 400
    t.start("-i", "veth0")
    client = Client(t.ipc)
    sockets = []
    for n in range(viewers):
        sock = t.net.socket(t.net.sender, socket.AF_INET, socket.SOCK_DGRAM)
        sock.bind(("", 20_000 + n))
        sockets.append(sock)
        assert client.register(n, source="", sport=20_000 + n, ssrc=0) == 0
        assert client.rate().cause == "none"

    def all_count() -> bool:
        before = t.stats()
        for sock in sockets:
            sock.sendto(rtp(1), (ROUTER_IP, DPORT))
        t.until(lambda: seen(t.stats()) == seen(before) + viewers, "all packets")
        return bool(t.stats()["media_others"] == before["media_others"])

    def seen(stats: dict[str, Any]) -> int:
        return int(stats["media_packets"] + stats["media_others"])

    t.until(all_count, "packets of all sockets to count")
    client.sock.close()
    t.stop()
    for sock in sockets:
        sock.close()
    print("ok a socket for each viewer", flush=True)
