# SPDX-License-Identifier: GPL-2.0
"""Scenarios: reads a TOML file, checks it, and works out all that a run's seed decides."""

import json
import math
import random
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema

from paqm_lab import cache, clip, linktrace
from paqm_lab.errors import LabError
from paqm_lab.senders import SENDERS, sender_of

SCENARIOS = cache.TESTBED / "scenarios"
SCHEMA = SCENARIOS / "scenario.schema.json"
UNITS = {"": 1, "k": 1_000, "m": 1_000_000, "g": 1_000_000_000}

LEAST_JUDGED = 1.0  # s: shorter intervals are not judged (perflow.LEAST)

MEDIA_PORT = 5004
TCP_PORT = 5201
LOAD_PORT = 7000
AUDIO_INTERVAL = 0.02  # s between two packets of a voice
# Kinds of load besides streams and bulk TCP; each entry has a host of its own.
LOADS = ("flood", "audio", "web", "idle")
# How much later than asked a TCP flow may start, s: replications differ in it.
TCP_JITTER = 0.1
# The same of streams: a picture at 24 frames/s, or all cameras would be in step. Those of one
# server may be: `in_step` takes no part in it.
MEDIA_JITTER = 0.042

VARIANT = {
    "controller": None, "ecn": None, "use": None, "shaper": None, "steady": False, "follow": False,
    "encoder": None, "receiver": None,
}  # fmt: skip


FLOOD = {
    "count": 1,
    "as_one": False,
    "size": 1200,
    "on_ms": 0,
    "off_ms": 0,
    "off_rate": "0bit",
    "burst_ms": 0,
    "ports_per_s": 0,
    "ssrc_per_s": 0,
    "ssrcs": 1,
    "ect": None,
}
WEB = {"bytes_min": 30000, "bytes_max": 60000, "congestion_control": "cubic", "lasting": False}
# To JSON Schema 2.0 is an integer, too; but it is no count, and no other word for 2.
Validator = jsonschema.validators.extend(  # type: ignore[no-untyped-call,unused-ignore]
    jsonschema.Draft202012Validator,
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
    ),
)
# Queues that send as fast as the device takes packets, and those that do so unless told a rate.
UNLIMITED = (
    "bfifo", "choke", "codel", "dcbt", "drr", "dualpi2", "fq", "fq_codel", "fq_pie", "hhf", "pfifo",
    "pfifo_fast", "pie", "prio", "red", "rlqos", "sfb", "sfq",
)  # fmt: skip
LIMITED_IF_TOLD = {"paqm": "bandwidth", "cake": "bandwidth", "netem": "rate"}
ECT = {None: 0, "ect1": 1, "ect0": 2}  # the two bits in the IP header
RATE = re.compile(r"([0-9]*\.?[0-9]+)([kmg]?)bit")
FORMATS = jsonschema.FormatChecker(formats=())


def rate(text: str) -> int:
    """A rate such as 8mbit in bit/s."""
    match = RATE.fullmatch(text)
    if not match:
        raise LabError(f'"{text}" is not a rate (such as 8mbit or 500kbit)')
    return round(float(match[1]) * UNITS[match[2]])


@FORMATS.checks("rate")
def _is_a_bit(value: object) -> bool:
    """Whether a rate does not round to 0; what is none its pattern refuses."""
    return not isinstance(value, str) or not RATE.fullmatch(value) or rate(value) > 0


@dataclass(frozen=True)
class Scenario:
    """A checked scenario, as in its file."""

    path: Path
    data: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.data["name"])

    @property
    def duration(self) -> float:
        return float(self.data["duration"])

    @property
    def variants(self) -> list[dict[str, Any]]:
        return list(self.data["variant"])

    def choose(self, names: list[str]) -> list[dict[str, Any]]:
        """The variants of these names, or all."""
        return chosen_variants(self.path, self.variants, names)

    def resolve(self, variant: dict[str, Any], seed: int, clip_frames: int) -> dict[str, Any]:
        """All that a run of that variant consists of. Same for every variant but for `variant`."""
        dice = random.Random(f"{self.name} {seed}")
        bottleneck = rate(self.data["path"]["bottleneck"])
        kind = self.data["path"].get("link")
        low = bottleneck
        if kind:
            trace = linktrace.make(kind, self.duration, seed)
            bottleneck, low = round(linktrace.mean(trace)), round(linktrace.low(trace))
        media = []
        for number, flow in enumerate(self.data.get("media", []), start=1):
            jitter = dice.uniform(0, MEDIA_JITTER)
            if flow.get("in_step"):
                jitter = 0
            media.append(
                {
                    **flow,
                    "rate_max": rate(flow["rate_max"]),
                    "rate_min": rate(flow["rate_min"]),
                    "address": f"10.1.{number}.2",
                    "port": MEDIA_PORT + 10 * number,
                    "start": round(flow["start"] + jitter, 6),
                    "start_frame": dice.randrange(clip_frames) if clip_frames else 0,
                    "ssrc": dice.randrange(1, 1 << 32),
                }
            )
        elastic = []
        port = TCP_PORT
        for group in self.data.get("elastic", []):
            members = []
            for _ in range(group["flows"]):
                start = group["start"] + dice.uniform(0, TCP_JITTER)
                members.append({"port": port, "start": round(start, 6)})
                port += 1
            elastic.append({**group, "members": members})
        words = variant["qdisc"].replace("{bottleneck}", f"{bottleneck}bit")
        words = words.replace("{low}", f"{low}bit")
        return {
            "name": self.name,
            "title": self.data["title"],
            "duration": self.duration,
            "seed": seed,
            "path": {"bottleneck": bottleneck, "rtt_ms": self.data["path"]["rtt_ms"]},
            "link": kind,
            "clip": self.data.get("clip"),
            "media": media,
            "elastic": elastic,
            "loads": self._loads(dice),
            "judge_from": self.data.get("judge_from"),
            "variant": {**VARIANT, "title": variant["name"], **variant, "qdisc": words},
        }

    def _loads(self, dice: random.Random) -> list[dict[str, Any]]:
        """The other loads: host, ports and what load.c is told of each."""
        found: list[dict[str, Any]] = []
        port = LOAD_PORT
        for kind in LOADS:
            for entry in self.data.get(kind, []):
                load = _load_of(kind, entry)
                load |= {"address": f"10.5.{len(found) + 1}.2", "port": port}
                load["words"] += ["--seed", str(dice.randrange(1, 1 << 32))]
                port += load["ports"]
                found.append(load)
        return found

    def write_trace(self, variant: dict[str, Any], seed: int, path: Path) -> None:
        """The link's deliveries of a run."""
        trace = linktrace.make(self.data["path"]["link"], self.duration, seed)
        linktrace.write(linktrace.steady_like(trace) if variant["steady"] else trace, path)


def chosen_variants(
    path: Path, variants: list[dict[str, Any]], names: list[str]
) -> list[dict[str, Any]]:
    """The variants of these names, or all."""
    known = {variant["name"]: variant for variant in variants}
    for name in names:
        if name not in known:
            raise LabError(f'{path}: there is no variant "{name}"; it has {", ".join(known)}')
    return [known[name] for name in names or known]


def is_recorded(data: dict[str, Any]) -> bool:
    """Whether pictures are kept for scoring: the clip has its numbers only in its own size."""
    size = data.get("clip")
    return size is None or (size["width"], size["height"]) == (clip.WIDTH, clip.HEIGHT)


def _load_of(kind: str, entry: dict[str, Any]) -> dict[str, Any]:
    """One load: `rate` is that of one flow, `ports` how many ports of the sink it uses."""
    load = {"kind": kind, "name": entry["name"], "start": entry["start"], "stop": entry["stop"]}
    if kind == "web":
        entry = {**WEB, **entry}
        words = ["--per-s", str(entry["per_s"]), "--low", str(entry["bytes_min"])]
        words += ["--high", str(entry["bytes_max"]), "--algorithm", entry["congestion_control"]]
        words += ["--lasting"] if entry["lasting"] else []
        return load | {"mode": "web", "ports": 1, "rate": None, "as_one": True, "words": words}
    if kind == "idle":
        words = ["--flows", str(entry["flows"])]
        return load | {"mode": "idle", "ports": 1, "rate": None, "as_one": True, "words": words}
    if kind == "audio":
        one, count = rate(entry["rate"]), entry["flows"]
        words = ["--rate", str(one * count), "--size", str(round(one * AUDIO_INTERVAL / 8))]
        words += ["--flows", str(count), "--ports", str(count), "--type", "111"]
        return load | {"mode": "udp", "ports": count, "rate": one, "as_one": False, "words": words}
    entry = {**FLOOD, **entry}
    count, whole = entry["count"], rate(entry["rate"])
    words = ["--rate", str(whole), "--off-rate", str(rate(entry["off_rate"]))]
    words += ["--flows", str(count), "--ports", str(count), "--ect", str(ECT[entry["ect"]])]
    for option in ("size", "ssrcs", "ports_per_s", "ssrc_per_s", "burst_ms"):
        words += [f"--{option.replace('_', '-')}", str(entry[option])]
    if entry["on_ms"]:
        words += ["--on-ms", str(entry["on_ms"]), "--off-ms", str(entry["off_ms"])]
    one_claim = entry["as_one"] or count == 1
    each = whole if one_claim else whole / count
    return load | {
        "mode": "udp",
        "ports": count,
        "rate": each,
        "as_one": one_claim,
        "words": words,
    }


def _key(path: list[str | int]) -> str:
    text = ""
    for part in path:
        text += f"[{part + 1}]" if isinstance(part, int) else f".{part}"
    return text.lstrip(".") or "the file"


def _dotted(name: str, value: Any) -> str:
    """The key that TOML has taken for tables in each other."""
    while isinstance(value, dict) and value:
        key, value = next(iter(value.items()))
        name += f".{key}"
    return name


def _expected(error: jsonschema.ValidationError) -> str:
    """What a schema error means, for people."""
    rule: Any = error.validator_value
    value: Any = error.instance
    schema: Any = error.schema
    if error.validator == "required":
        return f"{', '.join(name for name in rule if name not in value)} is missing"
    if error.validator == "additionalProperties":
        known = schema["properties"]
        extra = [name for name in value if name not in known]
        return f"unknown key {', '.join(extra)}; expected are {', '.join(known)}"
    if error.validator == "pattern" and "bit" in rule:
        return f"{value!r} is not a rate; expected a text such as 8mbit or 500kbit"
    if error.validator == "format":
        return f"{value!r}: expected 1bit or more"
    if error.validator == "pattern" and "description" in schema:
        return f"{value!r}: expected {schema['description']}"
    if error.validator == "pattern":
        return f"{value!r}: expected up to 13 of the characters a-z 0-9 _ -"
    if error.validator == "enum":
        return f"{value!r}: expected one of {', '.join(rule)}"
    if error.validator == "oneOf":
        keys = [name for choice in rule for name in choice["required"]]
        return f"expected exactly one of {', '.join(keys)}"
    place = list(error.absolute_path)
    name = place[-1] if place else None
    if rule == "array" and isinstance(value, dict) and place[0] == "axes":  # of a sweep
        return f'expected a list; a key with dots stands in quotes, "{_dotted(str(name), value)}"'
    if rule == "array" and isinstance(value, dict):
        return f"it is one table, [{name}]; expected [[{name}]] above each entry of a list"
    if rule == "object" and isinstance(value, list):
        return f"it is a list, [[{name}]]; expected one table, [{name}]"
    if error.validator == "type":
        return f"{value!r}: expected {rule}"
    return str(error.message)


def check_limit(where: str, variant: dict[str, Any]) -> None:
    """A queue that limits no rate by itself needs a shaper, or the link has no end."""
    kind, *words = variant["qdisc"].split()
    told = LIMITED_IF_TOLD.get(kind)
    has = told in words and "auto" not in words[words.index(told) :][1:2] if told else False
    if "shaper" not in variant and (kind in UNLIMITED or told and not has):
        without = f" without a {told}" if told else ""
        raise LabError(f'{where}: {kind} limits no rate{without}: expected shaper = "htb"')


def _check_sender(where: str, name: str, known: list[str]) -> None:
    if name not in known:
        raise LabError(f"{where}.sender: {name!r}: expected one of {', '.join(known)}")


def _flow_names(data: dict[str, Any]) -> list[str]:
    """The names that results give to the flows."""
    groups: list[tuple[str, int | None]] = [(e["name"], None) for e in data.get("media", [])]
    for kind in LOADS:
        for load in (_load_of(kind, entry) for entry in data.get(kind, [])):
            groups.append((load["name"], None if load["as_one"] else load["ports"]))
    groups += [(group["name"], group["flows"]) for group in data.get("elastic", [])]
    return [
        name if count is None else f"{name}-{n}"
        for name, count in groups
        for n in range(1, (count or 1) + 1)
    ]


def _check_sense(path: Path, data: dict[str, Any]) -> None:
    """What a schema cannot say."""
    if data.get("judge_from", -LEAST_JUDGED) >= data["duration"] - LEAST_JUDGED:
        raise LabError(
            f"{path}: judge_from: expected less than the duration less {LEAST_JUDGED:g} s, "
            f"it is {data['judge_from']} of {data['duration']}"
        )
    if "link" in data["path"] and data["duration"] < linktrace.LOW_WINDOW:
        raise LabError(
            f"{path}: duration: expected {linktrace.LOW_WINDOW:g} s or more with path.link, "
            f"it is {data['duration']}"
        )
    for kind in ("media", "elastic", *LOADS):
        for number, flow in enumerate(data.get(kind, []), start=1):
            where = f"{path}: {kind}[{number}]"
            if not flow["start"] < flow["stop"] <= data["duration"]:
                raise LabError(
                    f"{where}: expected start < stop <= duration, it has start {flow['start']}, "
                    f"stop {flow['stop']}, duration {data['duration']}"
                )
            if kind == "media" and rate(flow["rate_min"]) > rate(flow["rate_max"]):
                raise LabError(f"{where}: rate_min is above rate_max")
            if kind == "media" and "sender" in flow:
                _check_sender(where, flow["sender"], list(SENDERS))
    for kinds in (("media", *LOADS), ("elastic",), ("variant",)):
        names = [entry["name"] for kind in kinds for entry in data.get(kind, [])]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise LabError(
                f"{path}: {', '.join(kind for kind in kinds if kind in data)}: expected different "
                f"names, {twice[0]} is there twice"
            )
    flows = _flow_names(data)
    if len(set(flows)) < len(flows):
        twice = sorted({name for name in flows if flows.count(name) > 1})
        raise LabError(f"{path}: expected different names, two flows would be called {twice[0]}")
    for number, entry in enumerate(data.get("web", []), start=1):
        entry = {**WEB, **entry}
        if entry["bytes_min"] > entry["bytes_max"]:
            raise LabError(f"{path}: web[{number}]: bytes_min is above bytes_max")
    for number, entry in enumerate(data.get("audio", []), start=1):
        if rate(entry["rate"]) * AUDIO_INTERVAL / 8 < 48:
            raise LabError(f"{path}: audio[{number}].rate: expected 19.2kbit or more")
    with_media = bool(data.get("media"))
    for number, variant in enumerate(data["variant"], start=1):
        _check_sender(f"{path}: variant[{number}]", variant["sender"], [*SENDERS, "none"])
        if (variant["sender"] != "none") != with_media:
            raise LabError(
                f'{path}: variant[{number}].sender: expected "none" if there are no media flows, '
                "and only then"
            )
        for key in ("controller", "ecn", "use", "encoder", "receiver"):
            if key in variant and variant["sender"] != "paqm-streamer":
                raise LabError(f"{path}: variant[{number}].{key} needs the sender paqm-streamer")
        if "link" not in data["path"] and (variant.get("steady") or variant.get("follow")):
            raise LabError(f"{path}: variant[{number}]: steady and follow need path.link")
        if "link" not in data["path"]:
            check_limit(f"{path}: variant[{number}]", variant)
        elif "shaper" in variant:
            raise LabError(f"{path}: variant[{number}].shaper: path.link limits the rate itself")
        if variant.get("follow") and variant["qdisc"].split()[0] not in ("paqm", "cake"):
            raise LabError(f"{path}: variant[{number}].follow: expected a qdisc paqm or cake")
    if "cut_every" in data.get("clip", {}) and not is_recorded(data):
        size = f"{clip.WIDTH}x{clip.HEIGHT}"
        raise LabError(f"{path}: clip.cut_every: only the clip of {size} is cut")
    used = {
        sender_of(flow, variant) for flow in data.get("media", []) for variant in data["variant"]
    }
    rigid = sorted(name for name in used if SENDERS[name].one_size)
    if rigid and not is_recorded(data):
        raise LabError(f"{path}: clip: {rigid[0]} sends {clip.WIDTH}x{clip.HEIGHT} only")
    if with_media and "clip" not in data:
        raise LabError(f"{path}: clip is missing, media flows need its size and frame rate")


def read(name: str) -> tuple[Path, dict[str, Any]]:
    """Path and content of that file, or of that name among the ones that come with the lab."""
    path = Path(name)
    if (path.is_dir() or not path.exists()) and "/" not in name:
        path = SCENARIOS / f"{name.removesuffix('.toml')}.toml"
    try:
        data = path.read_bytes()
    except OSError as err:
        have = ", ".join(sorted(item.stem for item in SCENARIOS.glob("*.toml")))
        raise LabError(
            f"{name}: cannot read the scenario: {err.strerror}; there are {have}"
        ) from err
    try:
        return path, tomllib.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as err:  # also what is nested too deeply
        raise LabError(f"{path}: not valid TOML: {err}") from err


def load(name: str) -> Scenario:
    """The scenario of that file or name, with the dumbbell as its network."""
    return check(*read(name))


def _check_finite(path: Path, where: list[str | int], value: Any) -> None:
    """TOML has inf and nan, which are within every limit of a schema."""
    if isinstance(value, dict | list):
        entries = value.items() if isinstance(value, dict) else enumerate(value)
        for key, entry in entries:
            _check_finite(path, [*where, key], entry)
    elif isinstance(value, float) and not math.isfinite(value):
        raise LabError(f"{path}: {_key(where)}: {value}: expected a finite number")


def validate(path: Path, data: dict[str, Any], schema: Path) -> None:
    """Refuses what the schema does: file, key, and what is expected there."""
    rules = json.loads(schema.read_text())
    errors = Validator(rules, format_checker=FORMATS).iter_errors(data)
    first = min(errors, key=lambda error: list(map(str, error.absolute_path)), default=None)
    if first is not None:
        raise LabError(f"{path}: {_key(list(first.absolute_path))}: {_expected(first)}")
    _check_finite(path, [], data)


def check(path: Path, data: dict[str, Any]) -> Scenario:
    """The scenario of this content, if it is one; `path` names it in what is refused."""
    validate(path, data, SCHEMA)
    _check_sense(path, data)
    return Scenario(path=path, data=data)
