# SPDX-License-Identifier: GPL-2.0
"""Runs with several routers: reference shares, routes, figures; nothing here boots a guest."""

import json
import math
import struct
import subprocess
from pathlib import Path

import pytest

from paqm_lab import cache, senders
from paqm_lab.multi import cases, liar
from paqm_lab.multi.case import BIN, Case, Checks, Flow, Run
from paqm_lab.multi.shares import jain, max_min
from paqm_lab.topology import Network, from_list, netem


def test_max_min_of_gfc2_is_the_published_one() -> None:
    case = cases.gfc2("maxmin", 0.96)
    wire = (case.flows[0].size + 14) / case.flows[0].size  # what the qdisc counts of a packet
    rates = {name: round(rate * wire / 1e6, 6) for name, rate in case.facts["nominal"].items()}
    assert len(rates) == 22
    want = {"A": 4, "B": 2, "C": 14, "D": 14, "E": 14, "F": 4, "G": 2, "H": 21}
    assert all(rates[name] == want[name[0]] for name in rates)


def test_max_min_respects_ceilings() -> None:
    # 100 Mbit/s for 50 flows that want 100 kbit/s at most, and 50 that take the rest
    capacity = {"l": 100.0}
    paths = {f"f{i}": ["l"] for i in range(4)}
    assert set(max_min(capacity, paths).values()) == {25.0}
    assert set(max_min(capacity, paths, dict.fromkeys(paths, 10)).values()) == {10.0}
    two = {"x": ["a", "b"], "y": ["a"]}
    assert max_min({"a": 10, "b": 4}, two) == {"x": 4, "y": 6}
    assert max_min({"a": 10, "b": 4}, two, {"x": 3}) == {"x": 3, "y": 7}


def test_max_min_fills_links_and_no_flow_can_gain() -> None:
    facts = cases.gfc2("maxmin", 0.96).facts
    net, paths = facts["capacity"], facts["paths"]
    assert len(net) == 6 and len(paths["A1"]) == 5
    shares = max_min(net, paths)
    for name, path in paths.items():
        # a bottleneck: full, and nobody on it has more
        assert any(
            math.isclose(sum(shares[f] for f in paths if link in paths[f]), net[link])
            and shares[name] >= max(shares[f] for f in paths if link in paths[f]) - 1e-9
            for link in path
        )


def test_captures_beside_heavy_senders_need_memory() -> None:
    """Eight rings of 64 MiB were half of 1 GB: with four of libwebrtc a guest ran out of it."""
    heavy, light = ["libwebrtc"] * 4, ["paqm-streamer"] * 4
    assert [senders.memory(heavy, n) for n in (1, 8)] == ["1G", "2G"]
    assert senders.memory(light, 8) == "1G"
    # thirty streams fit into 3 GiB; a hundred did not
    assert [senders.memory(["paqm-streamer"] * n) for n in (30, 100)] == ["3G", "10G"]


def test_jain() -> None:
    assert jain([3, 3, 3]) == 1
    assert jain([1, 0, 0, 0]) == 0.25
    assert jain([0, 0]) == 0


def test_routes_reach_every_cable_and_end() -> None:
    net = Network()
    for name in ("a", "b"):
        net.host(name, True)
    net.bottleneck("a", "b", 5, "paqm bandwidth 1mbit")
    net.link(net.host("s"), "a")
    net.link("b", net.host("k"))
    routes = {(r.host, r.to): r.via for r in net.shortest_routes()}
    owner = {link.address(e.host): e.host for link in net.links for e in (link.left, link.right)}
    forwards = {host.name: host.forwards for host in net.hosts}
    for start in forwards:
        for target in net.links:
            ends = {target.left.host, target.right.host}
            at, steps = start, 0
            while at not in ends:
                at = owner[routes[at, target.subnet]]
                steps += 1
                assert steps < 10, "a loop"
            assert at == start or forwards[at] or at in ends


def test_a_network_outlives_json() -> None:
    net = Network()
    for name in ("a", "b"):
        net.host(name, True, ipv6=True)
    both = [("192.0.2.1", "192.0.2.2"), ("2001:db8::1/64", "2001:db8::2/64")]
    link = net.link("a", "b", 2.5, devices=("a0", "b0"), addresses=both, mtu=1000, vlan=7)
    net.route("a", "::/0", "2001:db8::2")
    net.shape("a", "a0.7", 1000000, "pfifo limit 50")
    assert from_list(json.loads(json.dumps(net.as_list()))) == net
    assert link.device("a") == "a0.7" and link.subnet == "192.0.2.0/24"
    assert net.queues[0].words == ("root", *netem(2.5))


def test_every_case_can_be_described() -> None:
    for name, make in cases.all_cases().items():
        case = make()
        assert case.name == name
        assert case.judge is not None
        assert len(case.net.links) < 250  # numbers are bytes of addresses
        ends = [end for link in case.net.links for end in (link.left, link.right)]
        assert all(len(end.device) < 16 for end in ends)
        json.dumps(case.config(Path("/out"), Path("/ko"), 1))


def _case(rates: list[float]) -> Case:
    case = Case("x", "", "", Network(), 10.0)
    case.flows = [Flow(f"f{i}", "s", "k", 0, 10) for i in range(len(rates))]
    return case


def _run(tmp_path: Path, rows: list[list[float]]) -> Run:
    """A run whose sink saw these rates in Mbit/s, one column per flow, one row per bin."""
    case = _case(rows[0])
    ports = {
        str(case.port(f)): {"bins": [[1, round(row[i] * 1e6 * BIN / 8), 0] for row in rows]}
        for i, f in enumerate(case.flows)
    }
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "sink-k.log").write_text(json.dumps({"ports": ports}))
    return Run(case, tmp_path)


def test_settled_is_the_end_of_the_last_deviation(tmp_path: Path) -> None:
    # both at 2 from 3 s on, one drops out for a second at 5 s
    rows = [[2.0, 2.0 if (t >= 60 and not 100 <= t < 120) else 1.0] for t in range(200)]
    run = _run(tmp_path, rows)
    shares = {"f0": 2e6, "f1": 2e6}
    settled, who = run.settled(shares, 0, 9.9, 0.05, 0.5)
    assert who == "f1"
    # the last bad bin ends at 6 s: a window may begin there, or with a little of it inside
    assert settled == pytest.approx(6.0, abs=BIN + 1e-9)
    assert run.settled(shares, 0, 5.7, 0.05, 0.5)[0] is None
    assert run.settled(shares, 7, 9.9, 0.05, 0.5)[0] == 0
    assert run.rate(run.flow("f1"), 5, 6) == pytest.approx(1e6)


def test_nothing_settles_of_which_nothing_is_there(tmp_path: Path) -> None:
    run = _run(tmp_path, [[2.0]] * 100)  # to 5 s
    assert run.settled({"f0": 2e6}, 0, 4.9, 0.05, 0.5)[0] == 0
    assert run.settled({"f0": 2e6}, 0, 9.9, 0.05, 0.5)[0] is None  # its sink has ended
    assert run.settled({"f0": 2e6}, 4.8, 4.9, 0.05, 0.5)[0] is None  # shorter than a window
    assert run.settled({}, 0, 4.9, 0.05, 0.5)[0] is None


def test_checks_refuse_what_was_not_measured() -> None:
    checks = Checks()
    case = _case([])
    checks.add(case, "never", None, "<=", 1, "s", "")
    checks.add(case, "good", 1.0, "<=", 1, "s", "")
    checks.add(case, "bad", 0.9, ">=", 1, "s", "")
    assert [row["pass"] for row in checks.rows] == [False, True, False]


def _decode(icmp: bytes) -> dict[str, object]:
    """What the project's own decoder in Python, written from the protocol's text, says."""
    tool = cache.REPO / "feedback-daemon" / "wireshark"
    code = (
        "import sys, json; sys.path.insert(0, sys.argv[1]); import decode; "
        "print(json.dumps(decode.decode(bytes.fromhex(sys.argv[2])), default=str))"
    )
    done = subprocess.run(
        ["python3", "-c", code, str(tool), icmp.hex()], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


def test_the_liar_writes_what_receivers_accept() -> None:
    payload = struct.pack("!BBHII", 0x80, 96, 7, 630, 0x1000) + bytes(range(48))
    udp = struct.pack("!HHHH", 20000, 6000, 8 + len(payload), 0) + payload
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0,
                       bytes([10, 1, 0, 1]), bytes([10, 2, 0, 2]))
    for ecf in (None, 1.0):
        icmp = liar.message(head + udp, 0xBAD, 0x1234, 9, 10**12, ecf)
        assert liar.checksum(icmp) == 0
        assert len(icmp) == 8 + 56 + 4 + 44 + (8 if ecf else 0)
        found = _decode(icmp)
        assert found["version"] == 2 and found["ecf_value"] == ecf
        assert found["rate_bps"] == 10**12 and found["seq"] == 9
        assert found["router_id"] == f"{0xBAD:016x}" and found["boot"] == f"{0x1234:08x}"
