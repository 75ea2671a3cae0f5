# SPDX-License-Identifier: GPL-2.0
"""Processes of paqmd: few privileges, started as the unit does it, and watched."""

from __future__ import annotations

import errno
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path

from host import NOBODY, alive, as_service, family, kill, reload, status
from rig import (
    DPORT,
    PATIENCE,
    ROUTER_IP,
    SENDER_IP,
    Client,
    Trial,
    inside,
    ip_header,
    message,
    quote,
    rtp,
    tagged,
)


def works(t: Trial) -> list[int]:
    """All processes are without privileges, and a sender is told."""
    t.start("-i", "veth0")
    assert t.daemon
    pids = family(t.daemon.pid)
    assert [status(pid)["Name"] for pid in pids] == ["paqmd", "paqmd-opener", "paqmd-capturer"]
    for pid in pids:
        s = status(pid)
        assert set(s["Uid"].split()) == {str(NOBODY)}, s["Uid"]
        for kind in ("CapEff", "CapPrm", "CapAmb"):
            assert int(s[kind], 16) == 0, (pid, kind, s[kind])
        assert s["NoNewPrivs"] == "1" and s["Seccomp"] == "2", s
    client = t.sender()
    t.answer(message(quote(t.send_media()), 1, 850_000.0))
    assert client.rate().bps == 850_000
    return pids


def check_shape(t: Trial) -> None:
    """Who does what with which privileges; the daemon does not outlive its opener."""
    pids = works(t)
    for pid in pids:
        s = status(pid)
        assert set(s["Gid"].split()) == {str(NOBODY)}, s["Gid"]
        assert not s["Groups"], s["Groups"]
        for kind in ("CapInh", "CapBnd"):
            assert int(s[kind], 16) == 0, (pid, kind, s[kind])
    assert t.daemon
    print("ok all processes without privileges, at work", flush=True)

    for which, name in ((1, "opener"), (2, "capturer")):
        os.kill(pids[which], signal.SIGKILL)
        assert t.daemon.wait(PATIENCE) == 1, f"the daemon goes on without its {name}"
        assert f"{name} has ended" in t.log.read_text()
        t.daemon = None
        t.until(lambda: not any(map(alive, pids)), "all to end")  # noqa: B023
        print(f"ok ends with its {name}", flush=True)
        pids = works(t)
    t.stop()
    t.start("-i", "veth0", "--sandbox=no")
    assert t.daemon and status(t.daemon.pid)["Seccomp"] == "0"
    pids = family(t.daemon.pid)
    kill(t, pids)
    print("ok the others end with the daemon", flush=True)


def check_service_user(t: Trial) -> None:
    """The unit's way to start it."""
    with as_service(t):
        works(t)
        t.stop()
    print("ok started as the unit does it", flush=True)


def check_weak_root(t: Trial) -> None:
    """Root who may not become anybody, as in many containers, is told what lacks."""
    run = ["setpriv", "--bounding-set", "-all,+net_raw", "--inh-caps", "-all", *t.command]
    out = subprocess.run(run, capture_output=True, text=True, check=False)
    assert out.returncode == 1, out
    assert "root needs CAP_SETUID, CAP_SETGID and CAP_SETPCAP for that" in out.stderr, out.stderr
    print("ok root without the right to become another", flush=True)


def check_umask(t: Trial) -> None:
    """That of who starts it does not keep the group out of the directories of the sockets."""
    shutil.rmtree(t.control.parent, ignore_errors=True)
    command = t.command
    t.command = ["sh", "-c", 'umask 077; exec "$@"', "sh", *command]
    t.start("-i", "veth0")
    t.command = command
    modes = [path.stat().st_mode & 0o777 for path in (t.control.parent, t.ipc.parent)]
    assert modes == [0o755, 0o755], [f"{mode:o}" for mode in modes]
    t.stop()
    print("ok started under umask 077", flush=True)


def check_left_socket(t: Trial) -> None:
    """A socket of an earlier paqmd where nothing can be removed is named."""
    t.ipc.parent.mkdir(parents=True, exist_ok=True)
    t.ipc.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as left:
        left.bind(str(t.ipc))
    run = ["unshare", "--mount", "sh", "-c", 'mount -o bind,ro "$1" "$1" && shift && exec "$@"',
           "sh", str(t.ipc.parent), *t.command]
    out = subprocess.run(run, capture_output=True, text=True, check=False)
    t.ipc.unlink()
    why = "is left of an earlier paqmd and cannot be removed: Read-only file system"
    assert (out.returncode, out.stderr) == (1, f"paqmd: {t.ipc} {why}\n"), out
    print("ok a socket that cannot be removed", flush=True)


def let_read(path: Path, rights: int) -> None:
    """Rights of nobody by an access list, as the service manager gives them; none of a group."""
    entries = ((1, rights, -1), (2, rights, NOBODY), (4, 0, -1), (16, rights, -1), (32, 0, -1))
    packed = b"".join(struct.pack("<HHi", *entry) for entry in entries)
    os.setxattr(path, "system.posix_acl_access", struct.pack("<I", 2) + packed)


def check_credential(t: Trial) -> None:
    """Keys that the service manager hands over, LoadCredential=, at the start and on reload."""
    home = t.log.with_name("credentials")
    home.mkdir()
    keys, secret = home / "keys", os.urandom(16)
    keys.write_text(f"a1 7 {secret.hex()}\n")
    try:
        let_read(home, 5)
        let_read(keys, 4)
    except OSError as err:
        assert "--all" not in sys.argv, err
        print("left out: access lists, which this file system does not have", flush=True)
        return
    assert keys.stat().st_mode & 0o777 == 0o440
    with as_service(t):
        plain = [*t.command, "--keys", str(keys)]
        done = subprocess.run(plain, capture_output=True, text=True, check=False)
        assert done.returncode == 2 and "chmod 600" in done.stderr, done
        t.command[:0] = ["env", f"CREDENTIALS_DIRECTORY={home}"]
        t.start("-i", "veth0", "--keys", str(keys))
        assert reload(t) == ""
        client = t.sender()
        icmp = message(quote(t.send_media()), 1, 600_000.0)
        t.expect_refusal("auth_missing", icmp)
        t.answer(tagged(icmp, 7, secret))
        assert client.rate().bps == 600_000
        client.sock.close()
        t.stop()
    print("ok keys of the service manager", flush=True)


def check_silence(t: Trial) -> None:
    """No process of paqmd can send a packet, whoever has taken it over."""
    inject = Path(t.paqmctl).parent / "tests" / "inject"
    index = inside(t.net.sender, "cat", "/sys/class/net/veth0/ifindex").strip()
    foreign = "198.51.100.99"
    for which, options in ((n, o) for n in range(3) for o in (["-i", "veth0"], [])):
        t.start(*options)
        assert t.daemon
        pids = family(t.daemon.pid)
        name = status(pids[which])["Name"]
        with t.net.socket(t.net.router, socket.AF_PACKET, socket.SOCK_DGRAM,
                          socket.htons(0x0800)) as seen:
            packet = ip_header(foreign, ROUTER_IP, 17, 28) + bytes(8)
            done = subprocess.run([inject, str(pids[which]), index, packet.hex()],
                                  capture_output=True, text=True, check=False)
            if done.returncode == 77:
                print("left out: a process that is taken over, on this machine")
                t.stop()
                return
            assert done.returncode == 0 and "tried" in done.stdout, (name, done)
            # this one comes after what has been sent
            t.media.sendto(rtp(1), (ROUTER_IP, DPORT))
            while (got := seen.recv(2048))[12:16] != socket.inet_aton(SENDER_IP):
                assert got[12:16] != socket.inet_aton(foreign), f"{name} has sent a packet"
            t.sink.recv(2048)
        # nobody knows what the others make of what it wrote to them
        kill(t, pids)
    print("ok no process can send", flush=True)


def check_manager(t: Trial) -> None:
    """A service manager hears of readiness, life and end; sockets it passes are used and kept."""
    run = t.log.parent
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(run / "notify"))
        manager.settimeout(PATIENCE)
        kinds = (socket.SOCK_STREAM, socket.SOCK_SEQPACKET)
        paths = [run / "activated.control", run / "activated.client"]
        held = [socket.socket(socket.AF_UNIX, kind) for kind in kinds]
        for sock, path in zip(held, paths, strict=True):
            sock.bind(str(path))
            sock.listen()
        control, t.control = t.control, paths[0]
        env = dict(os.environ, NOTIFY_SOCKET=str(run / "notify"), WATCHDOG_USEC="200000")
        env |= {"LISTEN_FDS": "2", "LISTEN_FDNAMES": "control:client"}
        first = [3, 4]

        def pass_sockets() -> None:
            for sock, fd in zip(held, first, strict=True):
                os.dup2(sock.fileno(), fd + 100)
            for fd in first:
                os.dup2(fd + 100, fd)
            os.close(103)
            os.close(104)

        inside = ["ip", "netns", "exec", t.net.sender]
        for attempt in range(2):
            with t.log.open("wb") as log:
                # as if the log went to the journal
                st = os.fstat(log.fileno())
                env["JOURNAL_STREAM"] = f"{st.st_dev}:{st.st_ino}"
                t.daemon = subprocess.Popen(
                    [*inside, *t.command, "-i", "veth0"], env=env, stderr=log,
                    preexec_fn=pass_sockets, close_fds=False,
                )
            # waits in the socket until the daemon takes it, at the second start as well
            client = Client(paths[1])
            assert client.register(1) == 0
            assert client.rate().cause == "none"
            assert manager.recv(100) == b"READY=1"
            for _ in range(3):
                assert manager.recv(100) == b"WATCHDOG=1"
            t.answer(message(quote(t.send_media()), attempt + 1, 850_000.0))
            assert client.rate().bps == 850_000
            t.daemon.send_signal(signal.SIGTERM)
            assert t.daemon.wait(PATIENCE) == 0
            last = manager.recv(100)
            while last == b"WATCHDOG=1":
                last = manager.recv(100)
            assert last == b"STOPPING=1", last
            assert all(path.exists() for path in paths), "sockets of the manager were removed"
            lines = t.log.read_text().splitlines()
            # make coverage: the counters of a process that may not write them
            lines = [line for line in lines if not line.startswith("profiling:")]
            assert lines and all(re.match(r"<[3-6]>(?!paqmd:)", line) for line in lines), lines
            client.sock.close()
        t.daemon, t.control = None, control
        for sock in held:
            sock.close()
    print("ok readiness, watchdog, socket activation", flush=True)


# Runs a command to which the kernel refuses packet sockets with this error, as a policy would.
REFUSING = """
import ctypes, os, sys
class Compare(ctypes.Structure):
    _fields_ = [("arg", ctypes.c_uint), ("op", ctypes.c_int), ("a", ctypes.c_uint64),
                ("b", ctypes.c_uint64)]
lib, allow, refuse, equal = ctypes.CDLL("libseccomp.so.2"), 0x7FFF0000, 0x00050000, 4
lib.seccomp_init.restype = ctypes.c_void_p
rules = ctypes.c_void_p(lib.seccomp_init(ctypes.c_uint32(allow)))
number = lib.seccomp_syscall_resolve_name(b"socket")
packet = Compare(0, equal, 17, 0)
assert not lib.seccomp_rule_add_array(rules, ctypes.c_uint32(refuse | int(sys.argv[1])), number, 1,
                                      ctypes.byref(packet))
assert not lib.seccomp_load(rules)
os.execv(sys.argv[2], sys.argv[2:])
"""


def check_refused(t: Trial) -> None:
    """Packet sockets are refused: what it says names who may do that."""
    policy, bare = "refused though CAP_NET_RAW is there", ["setpriv", "--bounding-set", "-net_raw"]
    for error, run, says in ((errno.EACCES, [], policy), (errno.EPERM, [], policy),
                             (errno.EAFNOSUPPORT, [], "CONFIG_PACKET"),
                             (errno.EPERM, bare, "CAP_NET_RAW is missing")):  # fmt: skip
        done = subprocess.run([*run, sys.executable, "-c", REFUSING, str(error), *t.command],
                              capture_output=True, text=True, check=False, timeout=PATIENCE)
        assert done.returncode == 1 and done.stderr.count("cannot capture: ") == 1, done
        assert says in done.stderr, done
    print("ok packet sockets that are refused", flush=True)
