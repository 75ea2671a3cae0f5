# SPDX-License-Identifier: GPL-2.0
"""The targets of the demo, each as a check on figures that come from raw logs only.

They hold for variants whose senders are told their rate; the others are there for comparison.
A figure that could not be measured fails its check.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from paqm_lab import metrics
from paqm_lab.errors import LabError
from paqm_lab.rundata import ADVISED_SENDER

LOSS_AFTER_CHANGE = 3.0  # s after a join or leave in which losing a media packet is allowed
SOJOURN_MS = {"p50": 1.0, "p95": 6.0, "p99": 20.0, "max": 60.0}
DELIVERY_FRAMES = 2  # frame intervals beyond propagation
SETTLE_S = 2.0
SHARE_PERCENT = 10.0
LINK_PERCENT = 92.0
# Links whose rate varies: the variants that are compared, and how much more delay there may be.
LINK_AUTO, LINK_STEADY = "auto", "steady"
LINK_RATIO = 2.0

Check = dict[str, Any]


def entry(
    variant: str,
    name: str,
    value: float | None,
    relation: str,
    limit: float,
    unit: str,
    source: str,
) -> Check:
    """One check as it stands in result.json; a value that could not be measured fails it."""
    test: dict[str, Callable[[float, float], bool]] = {
        "<=": lambda a, b: a <= b,
        ">=": lambda a, b: a >= b,
    }
    return {
        "variant": variant,
        "name": name,
        "value": value,
        "relation": relation,
        "limit": limit,
        "unit": unit,
        "pass": value is not None and test[relation](value, limit),
        "source": source,
    }


def _of_variant(variant: dict[str, Any], result: dict[str, Any]) -> list[Check]:
    name, figures = variant["name"], variant["figures"]
    checks: list[Check] = []

    def add(
        what: str, value: float | None, relation: str, limit: float, unit: str, source: str
    ) -> None:
        checks.append(entry(name, what, value, relation, limit, unit, source))

    log = f"{name}/router.pcap"
    if variant["flows"]:
        for level, limit in SOJOURN_MS.items():
            add(
                f"media_sojourn_{level}",
                figures["media_sojourn_ms"][level],
                "<=",
                limit,
                "ms",
                f"{log}: entry to the router until departure from the bottleneck, every RTP packet",
            )
        limit = result["rtt_ms"] / 2 + DELIVERY_FRAMES * 1000 / result["fps"]
        delivery = figures["frame_delivery_ms"]
        add(
            "frame_delivery_p95",
            delivery["p95"],
            "<=",
            round(limit, 3),
            "ms",
            f"{name}/flows/*/send/frames.csv, recv/rx.csv: capture until the last packet of the "
            "frame is received, every frame, one never complete counting as infinite; limit: "
            f"propagation + {DELIVERY_FRAMES} frame intervals",
        )
        loss = figures["media_loss"]
        add(
            "media_loss_late",
            loss["late"] if loss["packets"] else None,
            "<=",
            0,
            "packets",
            f"{log}: RTP packets that entered and never left, more than {LOSS_AFTER_CHANGE:g} s "
            "after the last first or last packet of any flow",
        )
        settle = figures["settle_s"]
        add(
            "settle_max",
            settle["max"],
            "<=",
            SETTLE_S,
            "s",
            f"{log}: per stream and change, until the sliding {metrics.WINDOW:g}-s rate stays at "
            f"the max-min share to the next change: all samples within ±{100 * metrics.INNER:.0f} "
            "%; none if a stream never does; "
            f"{settle['unsettled']} of {settle['judged']} never did",
        )
    if variant["elastic_expected"]:
        share = figures["elastic_share_percent"]["worst"]
        add(
            "elastic_share_error",
            None if share is None else round(abs(share - 100), 6),
            "<=",
            SHARE_PERCENT,
            "%",
            f"{log}: TCP aggregate, mean from {metrics.SETTLE:g} s after a change to the next "
            "one, against its max-min share; the worst interval",
        )
        add(
            "link_use_with_elastic",
            figures["link_use_percent"]["with_elastic"],
            ">=",
            LINK_PERCENT,
            "%",
            f"{log}: bytes that left the bottleneck (with Ethernet headers) from the first to the "
            "last TCP packet, against the bottleneck's rate",
        )
    # Encoders of others have neither base quantizers nor bounds, and their senders' logs none.
    if variant["flows"] and variant["sender"] == ADVISED_SENDER:
        encoder = figures["encoder"]
        add(
            "gops_with_several_base_quantizers",
            encoder["gops_mixed_base"] if encoder and encoder["frames"] else None,
            "<=",
            0,
            "GOPs",
            f"{name}/flows/*/send/frames.csv: qp_base differs inside a GOP",
        )
        add(
            "frames_over_bound",
            encoder["over_bound"] if encoder and encoder["frames"] else None,
            "<=",
            0,
            "frames",
            f"{name}/flows/*/send/frames.csv: wire_bytes > bound_bytes",
        )
    return checks


def _of_link(result: dict[str, Any]) -> list[Check]:
    """A link that varies against one of the same mean that does not: delay of media."""
    figures = {variant["name"]: variant["figures"] for variant in result["variants"]}
    if not {LINK_STEADY, LINK_AUTO} <= set(figures):
        return []
    log = f"{LINK_AUTO}/, {LINK_STEADY}/"
    delays: list[tuple[str, tuple[str, ...], str]] = [
        ("media_sojourn_p95", ("media_sojourn_ms",), "router.pcap: entry until departure, RTP"),
        ("frame_delivery_p95", ("frame_delivery_ms",), "frames.csv, rx.csv: capture to arrival"),
        (
            "capture_to_picture_p95",
            ("picture", "capture_to_picture_ms"),
            "frames.csv, decoded.csv: capture to decoded picture",
        ),
    ]
    checks = []
    for name, keys, source in delays:
        pair = []
        for variant in (LINK_AUTO, LINK_STEADY):
            value: Any = figures[variant]
            for key in keys:
                value = value[key] if value else None
            pair.append(value["p95"] if value else None)
        ratio = pair[0] / pair[1] if pair[0] is not None and pair[1] else None
        checks.append(
            entry(
                LINK_AUTO,
                f"{name}_against_steady",
                None if ratio is None else round(ratio, 3),
                "<=",
                LINK_RATIO,
                "",
                f"{log}{source}",
            )
        )
    return checks


def evaluate(result: dict[str, Any]) -> list[Check]:
    """The checks of a result, one entry per figure; empty if no variant has advised senders."""
    if result.get("link"):
        return _of_link(result)
    return [
        check
        for variant in result["variants"]
        if variant["advised"]
        for check in _of_variant(variant, result)
    ]


def number(value: float | None) -> str:
    """A figure for people."""
    if value is None:
        return "none"
    if isinstance(value, int) or float(value).is_integer():
        return f"{value:.0f}"
    return f"{value:.2f}" if abs(value) < 100 else f"{value:.1f}"


def _load(path: Path) -> dict[str, Any]:
    try:
        result = json.loads(path.read_text())
        if not isinstance(result.get("checks"), list):
            raise ValueError("no list of checks")
    except (OSError, ValueError, AttributeError) as err:
        raise LabError(f"{path}: not a result of paqm-lab: {err}") from err
    return dict(result)


def print_table(directory: Path) -> int:
    """Print the checks of a result, or of every result one level down; 1 if one fails."""
    paths = [directory / "result.json"]
    if not paths[0].exists():
        paths = sorted(directory.glob("*/result.json"))
    if not paths:
        raise LabError(f"{directory}: no result.json here or one level down; run a scenario first")
    failed = total = 0
    for path in paths:
        result = _load(path)
        seeds = result.get("seeds", [result["seed"]] if "seed" in result else [])
        drawn = f", seed {', '.join(map(str, seeds))}" if seeds else ""
        print(f"# {result['scenario']}{drawn} ({path.parent})")
        if not result["checks"]:
            print("# no checks: no variant has senders that are told their rate")
        wide = [
            max([least, *(len(check[key]) for check in result["checks"])])
            for key, least in (("variant", 10), ("name", 34))
        ]
        for check in result["checks"]:
            total += 1
            failed += not check["pass"]
            print(
                f"{'ok' if check['pass'] else 'not ok':<6} {check['variant']:<{wide[0]}} "
                f"{check['name']:<{wide[1]}} {number(check['value']):>9} {check['relation']} "
                f"{number(check['limit'])} {check['unit']}"
            )
    print(f"{total - failed} of {total} checks pass")
    if total == 0:
        raise LabError(f"{directory}: nothing was checked")
    return 1 if failed else 0
