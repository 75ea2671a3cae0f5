# SPDX-License-Identifier: GPL-2.0
"""Configuration: mistakes are told, and it is read again without losing anybody."""

from __future__ import annotations

import signal
import subprocess

from host import captured, reload
from rig import ROUTER_IP, Rate, Trial, can_ip, ip, lacks, message, quote


def config_errors(t: Trial, text: str) -> list[str]:
    """What --check-config says about a file."""
    path = t.log.with_name("wrong.conf")
    path.write_text(text)
    run = [t.command[0], "--config", str(path), "--check-config"]
    out = subprocess.run(run, capture_output=True, text=True, check=False)
    assert (out.returncode == 0) == (not out.stderr), out
    assert out.returncode in (0, 2), out
    return [line.removeprefix(f"paqmd: {path}:") for line in out.stderr.splitlines()]


def check_config(t: Trial) -> None:
    """Mistakes in the file are told with line, reason and remedy."""
    assert config_errors(t, "# none\n\n interface eth0 # one\ninterface\teth1\nuse ecf") == []
    wrong = "use dance\nfoo bar\ngroup\nuse erf\nuse ecf\nsocket here\nsandbox no no\n\x01\n"
    assert config_errors(t, wrong + "interface " + "x" * 16) == [
        "1: use dance: must be erf, ecf, thesis-erf or thesis-ecf",
        "2: unknown setting 'foo'; see paqmd.conf(5)",
        "3: group: has no value; see paqmd.conf(5)",
        "5: use ecf: must be given only once",
        "6: socket here: must be the absolute path of a file, of at most 107 bytes",
        "7: sandbox: has more than one value; give one line to each",
        "8: byte 1 is a control character: remove it",
        "9: interface xxxxxxxxxxxxxxxx: must be a name of 1 to 15 bytes; see 'ip link', or any",
    ]
    run = [t.command[0], "--socket", "/run/a", "--control", "/run/a", "--check-config"]
    out = subprocess.run(run, capture_output=True, text=True, check=False)
    assert (out.returncode, out.stderr) == (
        2, "paqmd: socket and control: must be two paths, not both /run/a\n"), out
    run = [t.command[0], "--config", "/nowhere", "--check-config"]
    out = subprocess.run(run, capture_output=True, text=True, check=False)
    assert out.returncode == 2 and "/nowhere: cannot read it" in out.stderr, out
    # one that is named is meant: paqmd does not become somebody else
    run = [t.command[0], "--user", "pq-nobody-here", "--socket", str(t.ipc)]
    for more in (["--check-config"], []):
        out = subprocess.run(run + more, capture_output=True, text=True, check=False)
        assert (out.returncode, out.stderr) == (
            2, "paqmd: user pq-nobody-here: does not exist; see useradd(8)\n"), out
    print("ok --check-config", flush=True)


def check_reload(t: Trial) -> None:
    """New settings hold without losing a client; wrong ones change nothing."""
    conf = t.log.with_name("paqmd.conf")
    conf.write_text("interface lo\nuse erf\n")
    conf.chmod(0o644)
    t.start("--config", str(conf))
    client = t.sender(ceil=1_000_000)

    conf.write_text("interface lo\ninterface veth0\nuse ecf\n")
    assert reload(t) == ""
    stats = t.stats()
    assert stats["use"] == "ecf"
    t.until(lambda: captured(t) == {"lo": True, "veth0": True}, "both interfaces")
    t.answer(message(quote(t.send_media()), 1, 500_000.0, ecf=0.5))
    assert client.rate() == Rate(1, 500_000, "ecf", ROUTER_IP, 1, 1)

    conf.write_text("interface veth0\nuse erf\nuse dance\n")
    assert f"{conf}:3: use dance: must be erf, ecf, thesis-erf or thesis-ecf" in reload(t)
    conf.chmod(0o600)  # as root's umask may have it
    assert f"{conf}: must be readable by uid " in reload(t)
    conf.chmod(0o644)
    conf.write_text("interface veth0\nuser root\n")
    # the command line names the user, and it wins
    assert reload(t) == ""
    assert captured(t) == {"veth0": True}
    conf.write_text("interface veth0\ngroup root\n")
    assert "need a restart to change" in reload(t)
    conf.write_text("interface veth0\ninterface pq-late0\n")
    assert t.daemon
    t.daemon.send_signal(signal.SIGHUP)
    t.until(lambda: captured(t) == {"veth0": True, "pq-late0": False}, "SIGHUP to be heard")
    ip(t.net.sender, "link add pq-late0 type veth")
    t.until(lambda: captured(t)["pq-late0"], "an interface that comes later")
    ip(t.net.sender, "link set pq-late0 name pq-else0")
    t.until(lambda: not captured(t)["pq-late0"], "a change of its name")
    ip(t.net.sender, "link del pq-else0")

    # the client and what it was told are still there
    flow = t.ask("flows")["flows"][0]
    assert flow["accepted"] == 1
    t.answer(message(quote(t.send_media()), 2, 700_000.0))
    assert client.told().bps == 700_000
    t.stop()

    usual = t.command
    t.command = [usual[0], *usual[5:]]  # the paths of the sockets are the file's
    conf.write_text(f"socket {t.ipc}\ncontrol {t.control}\n")
    t.start("--config", str(conf))
    conf.write_text(f"socket {t.ipc}\ncontrol {t.ipc}\n")
    assert f"must be two paths, not both {t.ipc}" in reload(t)
    t.stop()
    t.command = usual
    print("ok reload", flush=True)


def check_absent(t: Trial) -> None:
    """Interfaces that do not exist are told once, and captured when they come."""
    conf = t.log.with_name("paqmd.conf")

    def told(name: str) -> int:
        return t.log.read_text().count(f"{name}: no such interface")

    for others in ("interface veth0\n", ""):
        conf.write_text(others + "interface pq-late0\n")
        t.start("--config", str(conf))
        assert not captured(t)["pq-late0"] and told("pq-late0") == 1, t.log.read_text()
        client = t.sender()  # its packets are let through: the opener has looked again
        ip(t.net.sender, "link add pq-late0 type veth")
        t.until(lambda: captured(t)["pq-late0"], "the interface to be captured")
        ip(t.net.sender, "link del pq-late0")
        t.until(lambda: not captured(t)["pq-late0"], "the interface to be gone")
        conf.write_text(others + "interface pq-late0\ninterface eht0\n")
        assert reload(t) == ""
        t.until(lambda: told("eht0") == 1, "the name that is wrong")
        assert told("pq-late0") == 1, t.log.read_text()
        client.sock.close()
        t.stop()
    print("ok interfaces that are not there", flush=True)


def check_other_names(t: Trial) -> None:
    """An interface is captured by any of its names, also one that it is given later."""
    host = t.net.sender
    if not can_ip(host, "link property add dev veth0 altname pq-uplink"):
        lacks("other names of interfaces")
        return
    t.start("-i", "pq-uplink", "-i", "pq-late0")
    client = t.sender()
    assert captured(t) == {"pq-uplink": True, "pq-late0": False}
    for n in range(3):  # news of it that change nothing
        ip(host, f"link set veth0 txqueuelen {500 + n}")
    ip(host, "link add pq-first0 type veth")
    ip(host, "link set pq-first0 up")  # of one that is down the kernel tells no change of names
    ip(host, "link property add dev pq-first0 altname pq-late0")
    t.until(lambda: captured(t)["pq-late0"], "an interface that is given the name")
    assert captured(t)["pq-uplink"]
    assert "pq-uplink: capture ended" not in t.log.read_text(), "it is taken for another"
    t.answer(message(quote(t.send_media()), 1, 500_000.0))
    assert client.rate() == Rate(1, 500_000, "erf", ROUTER_IP, 1, 1)
    ip(host, "link property del dev pq-first0 altname pq-late0")
    t.until(lambda: not captured(t)["pq-late0"], "the name to be taken away")
    ip(host, "link del pq-first0")
    client.sock.close()
    t.stop()
    print("ok other names of interfaces", flush=True)
