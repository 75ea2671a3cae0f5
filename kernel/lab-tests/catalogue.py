#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0
"""Runs of the catalogue over one queue, one per call, inside a lab guest.

catalogue.py RUN --config FILE --out FILE --seed N

The configuration is a run's own; it stands in the catalogue's row (testbed/paqm_lab/catalogue).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from spec_lab import HEADER, Json, Lab, Traffic, bytes_between
from trial import TOP, run

MEDIA, ELASTIC = 5004, 9000


def single(lab: Lab, p: Json) -> Json:
    """UDP of one size through one media queue; a list of what was offered [from, until, load]."""
    rate, size, seconds = p["rate"], p["size"], p["seconds"]
    on_link = size + HEADER
    lab.qdisc("bandwidth", f"{rate:.0f}bit", "overhead", str(-HEADER), "nopolice",
              "interval", p.get("interval", "1ms"), "gain", str(p.get("gain", 0.3)),
              "media-target", f"{p['packets'] * on_link // 10}b",
              "media-limit", f"{2 * p['packets'] * on_link}b")
    t = Traffic(lab)
    begin = p.get("begin", 0.1)
    t.sink(ports=MEDIA, until=seconds, end=seconds + p.get("drain", 0.1), over=p.get("over", 0.0),
           overhead=-HEADER, **{"from": begin})
    for number, (start, stop, load) in enumerate(p["offered"]):
        t.send("r", port=MEDIA, sport=20000 + number, sizes=size, rate=load * rate,
               poisson=p.get("poisson", True), start=start, stop=stop, seed=3 + number)
    sink, *sent = t.finish()
    port = sink["ports"][str(MEDIA)]
    packets = sum(s["packets"] for s in sent)
    service = size * 8 / rate * 1e6
    return {
        "wait_us": port["wait_mean_us"], "max_us": port["wait_max_us"], "sd_us": port["wait_sd_us"],
        "system_us": port["wait_mean_us"] + service, "queue": port["wait_mean_us"] / service,
        "over_percent": 100 * port["window_over"] / max(port["window_packets"], 1),
        "drop_percent": 100 * (1 - port["packets"] / packets), "packets": packets,
        "use_percent": 100 * port["window_wire_bytes"] * 8 / rate / (seconds - begin),
    }


def reports(lab: Lab, p: Json) -> Json:
    """The first published feedback, in user space: core/tests/reports_of_u.c."""
    program = f"{os.environ['PAQM_BUILD']}/lab/reports_of_u"
    found: Json = json.loads(run(program, p["case"], str(1 + lab.added // 1000)))
    return found


def tcp(lab: Lab, p: Json) -> Json:
    """One TCP connection through a FIFO of the bandwidth-delay product."""
    bits = p["rate"]
    limit = round(bits * p["rtt_ms"] / 1000 / 8 / 1514)
    lab.delay(p["rtt_ms"])
    tc = ("tc", "-n", "r")
    run(*tc, "qdisc", "replace", "dev", "r1", "root", "handle", "1:", "htb", "default", "1")
    run(*tc, "class", "add", "dev", "r1", "parent", "1:", "classid", "1:1", "htb", "rate",
        f"{bits:.0f}bit")
    run(*tc, "qdisc", "add", "dev", "r1", "parent", "1:1", "pfifo", "limit", str(limit))
    bulk = ("env", f"PYTHONPATH={TOP}/testbed", sys.executable, "-m", "paqm_lab.bulk", "--port",
            str(ELASTIC))
    t = Traffic(lab)
    t.start("b", *bulk)
    t.sleep_until(1)
    t.start("a", *bulk, "--to", "10.2.0.2", "--congestion-control", "reno", "--seconds",
            str(p["seconds"]))
    t.sleep_until(p["begin"])
    before = lab.device()["bytes"]
    t.sleep_until(p["seconds"])
    moved = lab.device()["bytes"] - before
    t.finish()
    return {"use_percent": 100 * moved * 8 / bits / (p["seconds"] - p["begin"])}


def shares(lab: Lab, p: Json) -> Json:
    """Sources with ceilings of their own that follow the router; their rates, and TCP's in sum."""
    seconds, begin = p["seconds"], p["seconds"] / 2
    lab.delay(p.get("rtt_ms", 20))
    lab.qdisc("bandwidth", f"{p['rate']:.0f}bit", "overhead", str(-HEADER), "feedback", "icmp",
              "target-util", "1.0", "noadapt-util", *p.get("options", []))
    t = Traffic(lab)
    ports = [MEDIA + number for number in range(len(p["ceilings"]))]
    t.sink(ports=f"{MEDIA}-{ports[-1]}", end=seconds + 0.5, bin=0.5)
    for number, (count, ceiling) in enumerate(p["ceilings"]):
        t.send(port=ports[number], sport=20000 + 100 * number, flows=count, law="erf",
               sizes=p.get("size", 500), rate=count * ceiling, max=ceiling, spread=False,
               stop=seconds, seed=5 + number)
    count = p.get("tcp", 0)
    if count:
        bulk = ("env", f"PYTHONPATH={TOP}/testbed", sys.executable, "-m", "paqm_lab.bulk",
                "--port", str(ELASTIC), "--seconds")
        t.start("b", *bulk, str(seconds + 2), "--flows", str(count))
        t.start("a", *bulk, str(seconds), "--to", "10.2.0.2", "--starts",
                ",".join(f"{0.5 + n / 20:.2f}" for n in range(count)))
    t.sleep_until(begin)
    before = lab.stats()["elastic"]["sent_bytes"]
    t.sleep_until(seconds)
    moved = lab.stats()["elastic"]["sent_bytes"] - before
    sink = t.finish()[0]
    return {
        "rates_kbit": [bytes_between(sink, [port], begin, seconds) * 8 / 1000 / (seconds - begin)
                       / count for port, (count, _) in zip(ports, p["ceilings"], strict=True)],
        "tcp_kbit": moved * 8 / 1000 / (seconds - begin),
    }


def messages(lab: Lab, p: Json) -> Json:
    """What the router sends towards its sources: IP bytes, from the device that carries no more."""
    seconds, begin = p["seconds"], 5.0
    measured = f"{p['period_ms'] - p['rtt_ms']}ms"  # a period is a round trip and this
    lab.delay(p["rtt_ms"])
    lab.qdisc("bandwidth", f"{p['rate']:.0f}bit", "preset", "thesis-ecf", "period", measured,
              "gop", measured, "rtt", f"{p['rtt_ms']}ms")
    t = Traffic(lab)
    t.sink(ports=MEDIA, end=seconds + 0.5)
    t.send(port=MEDIA, flows=p["sources"], law="ecf", sizes=1500, rate=p["rate"], max=20e6,
           poisson=True, stop=seconds, seed=5)

    def sent() -> Json:
        found: Json = json.loads(run("ip", "-n", "r", "-s", "-j", "link", "show", "r0"))[0]
        total: Json = found["stats64"]["tx"]
        return total

    t.sleep_until(begin)
    before = sent()
    t.sleep_until(seconds)
    after = sent()
    t.finish()
    packets = after["packets"] - before["packets"]
    size = (after["bytes"] - before["bytes"]) / max(packets, 1) - HEADER
    bits = packets * size * 8 / (seconds - begin)
    return {"kbit": bits / 1000, "percent": 100 * bits / p["rate"], "message_bytes": size,
            "per_s": packets / (seconds - begin)}


RUNS: dict[str, Callable[[Lab, Json], Json]] = {
    "single": single, "tcp": tcp, "shares": shares, "messages": messages, "reports": reports,
}


def main() -> int:
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("run", choices=RUNS)
    ap.add_argument("--config", required=True, type=Path)
    ap.add_argument("--out", required=True, type=Path)
    ap.add_argument("--seed", type=int, required=True)
    args = ap.parse_args()
    lab = Lab(f"{os.environ['PAQM_BUILD']}/lab/spec_traffic", args.seed)
    time.sleep(0.1)
    config = json.loads(args.config.read_text())
    found = [RUNS[args.run](lab, one) for one in config["runs"]]
    args.out.write_text(json.dumps({"runs": found}, indent=1))
    lab.clear()
    return 0


if __name__ == "__main__":
    sys.exit(main())
