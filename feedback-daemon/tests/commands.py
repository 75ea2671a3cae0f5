# SPDX-License-Identifier: GPL-2.0
"""paqmctl: every command, reasons for a rate, metrics, keys of a host."""

from __future__ import annotations

import os
import re
import struct
import subprocess
from pathlib import Path

import wire
from rig import (
    DPORT,
    PATIENCE,
    ROUTER_IP,
    SENDER_IP,
    SENDER_IP6,
    SPORT,
    Client,
    Trial,
    message,
    quote,
    start_keyed,
    tagged,
)


def check_paqmctl(t: Trial) -> None:
    """Every command works; what is asked wrongly, or of nobody, is told with a way out."""
    def run(*arguments: str) -> tuple[int, str, str]:
        out = t.ctl(*arguments)
        return out.returncode, out.stdout, out.stderr.removeprefix("paqmctl: ")

    asks = ["show", "flows", "routers", "stats", "why", "metrics", "reload"]
    pcap = t.log.with_name("old.pcap")
    pcap.write_text("of yesterday")
    for command in [*([ask] for ask in asks), ["watch"], ["capture", str(pcap)]]:
        status, said, wrong = run(*command)
        assert (status, said) == (1, ""), (command, said)
        assert wrong.startswith(f"cannot connect to {t.control}: No such file"), wrong
        assert "is paqmd running" in wrong, wrong
    assert pcap.read_text() == "of yesterday", "a capture was overwritten for nothing"
    for wrongly, text in (
        (["dance"], "unknown command 'dance'; try 'paqmctl --help'"),
        (["show", "me"], "unexpected argument 'me'"),
        (["capture"], "capture: name the file to write, or - for stdout"),
        (["-j", "capture", "-"],
         "capture: packets and JSON cannot both go to stdout; name a file"),
        (["--count", "0", "watch"], "--count 0: must be a number of 1 or more"),
        (["--count", "2", "show"], "--count is for watch and capture, not for show"),
    ):
        assert run(*wrongly) == (2, "", text + "\n"), run(*wrongly)
    status, _, wrong = run("--control", "/" + "x" * 108)
    assert status == 1 and wrong.endswith("is longer than 107 bytes\n"), wrong

    t.start("-i", "veth0")
    client = Client(t.ipc)
    assert client.register(1) == 0
    for command in asks:
        assert run(command)[::2] == (0, ""), run(command)
        assert bool(run(command)[1]) == (command != "reload")
    status, _, wrong = run("capture", str(pcap.parent / "no" / "where"))
    assert status == 1 and wrong.startswith("cannot write "), wrong
    with open("/dev/full", "w") as full:
        out = subprocess.run([t.paqmctl, "--control", str(t.control)], stdout=full,
                             stderr=subprocess.PIPE, text=True, check=False)
    assert out.returncode == 1 and "cannot write the output: No space" in out.stderr, out
    client.sock.close()
    t.stop()
    print("ok paqmctl", flush=True)


def why(t: Trial) -> dict[str, object]:
    """The reason for the rate of the only flow."""
    (reason,) = t.ask("why")["why"]
    assert isinstance(reason, dict)
    return reason


def check_why(t: Trial) -> None:
    """Each state has its reason; capture, metrics."""
    t.start("-i", "veth0")
    assert t.ask("why")["why"] == []
    client = t.sender()
    assert why(t)["code"] == "no_media"
    sent = t.send_media()
    t.until(lambda: why(t)["code"] == "no_message", "the packet to be seen")
    assert "1 packets have left and no message ever came" in str(why(t)["text"])
    t.expect_refusal("msg_value", message(quote(sent), 1, 0))
    assert why(t)["code"] == "no_message", "a message that could not be read names no flow"
    t.expect_refusal("quote_unknown", message(quote(sent[:12] + os.urandom(200)), 1, 9e5))
    reason = why(t)
    assert (reason["code"], reason["refused_reason"]) == ("unproven", "quote_unknown")

    pcap = t.log.with_name("messages.pcap")
    run = [t.paqmctl, "--control", str(t.control), "--count", "3", "capture", str(pcap)]
    good = message(quote(sent), 1, 850_000.0)
    long = good + bytes(700)
    with subprocess.Popen(run) as capture:
        # the first one may still be too early to be captured
        t.answer(good)
        assert client.rate().bps == 850_000

        def again() -> bool:
            t.answer(long)
            t.answer(good)
            return capture.poll() is not None

        t.until(again, "three messages to be captured")
        assert capture.wait(PATIENCE) == 0
    packets = read_pcap(pcap)
    assert len(packets) == 3 and {p[20:] for p in packets} == {good, long[: 384 - 20]}, packets

    reason = why(t)
    assert reason["code"] == "advice" and reason["router_rate_bps"] == 850_000
    assert reason["router"] == ROUTER_IP and reason["routers"] == 1
    t.answer(message(quote(sent), 2, 1.0))
    assert client.told().bps == 100_000
    assert why(t)["code"] == "floor"
    t.answer(message(quote(sent), 3, 1e9))
    assert client.told().bps == 3_000_000
    assert why(t)["code"] == "ceiling"
    check_metrics(t)
    assert client.rate().cause == "expired"
    assert why(t)["code"] == "expired"
    print("ok why, capture, metrics", flush=True)
    t.stop()


def read_pcap(path: Path) -> list[bytes]:
    """Packets of a capture file."""
    data = path.read_bytes()
    assert struct.unpack_from("=IHHIIII", data) == (0xA1B23C4D, 2, 4, 0, 0, 384, 101)
    packets, at = [], 24
    while at < len(data):
        _, _, kept, length = struct.unpack_from("=IIII", data, at)
        assert kept == length
        packets.append(data[at + 16 : at + 16 + kept])
        at += 16 + kept
    return packets


def check_metrics(t: Trial) -> None:
    """Every sample belongs to a family; values are those of the JSON."""
    text = t.ctl("metrics").stdout
    assert text.endswith("# EOF\n")
    types: dict[str, str] = {}
    values: dict[str, float] = {}
    sample = re.compile(r'([a-z_]+)(\{(?:[a-z_]+="(?:[^"\\\n]|\\.)*",?)+\})? (\S+)')
    for line in text.splitlines()[:-1]:
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in types, f"family {name} twice"
            types[name] = kind
        elif not line.startswith("# HELP "):
            match = sample.fullmatch(line)
            assert match, line
            name = match[1].removesuffix("_total")
            assert types[name] == ("counter" if match[1].endswith("_total") else "gauge"), line
            assert match[1] + (match[2] or "") not in values, line
            values[match[1] + (match[2] or "")] = float(match[3])
    stats = t.stats()
    for reason, count in stats["refused"].items():
        assert values[f'paqmd_messages_refused_total{{reason="{reason}"}}'] == count
    assert values["paqmd_messages_accepted_total"] == stats["accepted"] > 0
    assert values['paqmd_interface_up{interface="veth0"}'] == 1
    flow = f'{{flow="{SENDER_IP}:{SPORT} > {ROUTER_IP}:{DPORT}"}}'
    assert values["paqmd_flow_rate_bps" + flow] == 3_000_000


def check_host_key(t: Trial) -> None:
    """The key that paqmctl derives for a host proves what is tagged for it, and nothing else."""
    secret = os.urandom(16)
    words = [t.paqmctl, "host-key"]
    for address in (SENDER_IP, SENDER_IP6):
        done = subprocess.run([*words, address], input=f"a1 7 {secret.hex()} # router\n",
                              capture_output=True, text=True, check=True)
        own = wire.host_key(secret, address).hex()
        assert done.stdout == f"a1 7 {own} host\n", done
    for text, args, status, said in (
        (f"a1 7 {secret.hex()} host\n", (SENDER_IP,), 1, "already"),
        ("", (SENDER_IP,), 1, "no key"),
        ("a1 7 12\n", (SENDER_IP,), 1, "32 hexadecimal"), ("", ("here",), 2, "address"),
        ("", (), 2, "one address"),
    ):  # fmt: skip
        done = subprocess.run([*words, *args], input=text, capture_output=True, text=True,
                              check=False)
        assert (done.returncode, done.stdout) == (status, "") and said in done.stderr, done
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*words, SENDER_IP], input=f"a1 7 {secret.hex()}\n", stdout=full,
                              stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        1, "paqmctl: cannot write the output: No space left on device\n"), done
    keys = t.log.with_name("host-keys")
    keys.write_text(f"a1 7 {wire.host_key(secret, SENDER_IP).hex()} host\n")
    client = start_keyed(t, keys)
    plain = message(quote(t.send_media()), 1, 600_000)
    t.expect_refusal("auth_bad", wire.tagged(plain, 7, secret, ROUTER_IP))
    t.answer(tagged(plain, 7, secret))
    assert client.rate().bps == 600_000
    t.stop()
    keys.unlink()
    print("ok a key of this host alone", flush=True)
