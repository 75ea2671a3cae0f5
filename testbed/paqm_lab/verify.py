# SPDX-License-Identifier: GPL-2.0
"""Runs again what a result.json tells of and compares the packet logs: is it true here, too?

A result holds its scenario, seed, versions and hashes, so the file is all that is needed; a bundle
(bundle.py) also has the lock of the image that it was made on, and is run on that image. Equal
hashes mean that every packet entered and left the router in the same nanosecond.
"""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from paqm_lab import bundle, cache, run, scenario
from paqm_lab.errors import LabError

Progress = Callable[[str], None]


def load(path: Path) -> tuple[dict[str, Any], str | None]:
    """The result at `path` (a bundle, a file or the directory of a run) and its image's lock."""
    file = path / "result.json" if path.is_dir() else path
    lock = None
    try:
        if bundle.is_bundle(file):
            text, lock = bundle.read(file)
        else:
            text = file.read_text()
        result = json.loads(text)
    except (OSError, UnicodeDecodeError) as err:
        raise LabError(f"{file}: cannot read the result: {err}") from err
    except json.JSONDecodeError as err:
        raise LabError(f"{file}: not valid JSON: {err}") from err
    return bundle.repeatable(file, result), lock


def compare(told: dict[str, Any], here: dict[str, Any]) -> tuple[list[str], bool]:
    """Lines to print, and whether all packet logs are the same."""
    lines, same = [], True
    for variant, digest in told["packet_log_sha256"].items():
        own = here["packet_log_sha256"].get(variant)
        same = same and own == digest
        lines.append(f"same   {variant} {digest}" if own == digest else
                     f"other  {variant} {digest}, here {own}")
    for name in sorted(told["versions"].keys() | here["versions"].keys()):
        then, now = (result["versions"].get(name, "unknown") for result in (told, here))
        if then != now:
            lines.append(f"differs: {name} {then}, here {now}")
    return lines, same


def verify(path: Path, progress: Progress) -> tuple[list[str], bool]:
    """Runs every variant of the result at `path` again; see compare()."""
    told, lock = load(path)
    chosen = scenario.check(path, {**told["scenario_data"], "seed": told["seed"]})
    with tempfile.TemporaryDirectory(prefix="paqm-verify-", dir=cache.scratch_dir()) as scratch:
        options = run.Options(
            out=Path(scratch) / "out", seed=told["seed"], variants=list(told["packet_log_sha256"]),
            keep_packets=False, repeat_check=False, score=False, page=False, lock_text=lock,
        )
        run.run_scenario(chosen, options, progress)
        return compare(told, json.loads((options.out / "result.json").read_text()))
