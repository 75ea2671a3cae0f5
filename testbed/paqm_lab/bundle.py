# SPDX-License-Identifier: GPL-2.0
"""A result as one file that somebody else can verify: result, report and the image's lock.

A zip archive of result.json (scenario, seed, versions, hashes), report.html and packages.lock.
"""

import json
import zipfile
from pathlib import Path
from typing import Any

from paqm_lab import image
from paqm_lab.errors import LabError

RESULT, REPORT, LOCK = "result.json", "report.html", "packages.lock"
NAMES = (RESULT, REPORT, LOCK)
LARGEST = 50_000_000  # bytes of a member: a stranger's file may unpack to anything
WANTED = {"scenario_data": dict, "seed": int, "versions": dict, "packet_log_sha256": dict}
DATE = (2026, 1, 1, 0, 0, 0)  # of every member: equal results are equal files


def repeatable(file: Path, result: Any) -> dict[str, Any]:
    """The content of a result.json; LabError if `paqm-lab verify` cannot run it again."""
    data = result.get("scenario_data") if isinstance(result, dict) else None
    if isinstance(data, dict) and {"link", "trace"} & data.keys():
        raise LabError(f"{file} is of a network of its own or of trace flows, which verify does "
                       "not repeat; run its scenario and compare the figures by hand")
    missing = [key for key, kind in WANTED.items()
               if not isinstance(result, dict) or not isinstance(result.get(key), kind)]
    if not missing and not result["packet_log_sha256"]:  # it would be true of anything
        missing = ["packet_log_sha256"]
    if missing:
        raise LabError(
            f"{file} has no {missing[0]}: it is no result of `paqm-lab run`, or an older one; run "
            "its scenario and compare packet_log_sha256 by hand"
        )
    return dict(result)


def write(directory: Path, file: Path) -> None:
    """Packs the result in `directory`; LabError if it cannot be run again, or nothing here knows
    the lock of its image."""
    try:
        text = (directory / RESULT).read_text()
        result = json.loads(text)
    except (OSError, ValueError) as err:
        raise LabError(f"{directory} holds no result of `paqm-lab run`: {err}") from err
    versions = repeatable(directory / RESULT, result)["versions"]
    made_on = versions.get("image")
    if {"chromium", "firefox"} & versions.keys():
        raise LabError(
            f"{directory} has streams of a browser, whose lock a bundle does not hold; pass on "
            "result.json, which `paqm-lab verify` accepts, too"
        )
    lock = image.lock_of(made_on) if made_on else None
    if lock is None:
        raise LabError(
            f"{directory} was made on image {made_on or 'unknown'}, which is not that of "
            f"{image.LOCK}, nor one made here: run its scenario again, then bundle it"
        )
    report = directory / REPORT
    members = {RESULT: text, LOCK: lock}
    if report.exists():
        members[REPORT] = report.read_text()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in NAMES:
            if name in members:
                archive.writestr(zipfile.ZipInfo(name, DATE), members[name],
                                 zipfile.ZIP_DEFLATED)


def is_bundle(file: Path) -> bool:
    return file.is_file() and zipfile.is_zipfile(file)


def read(file: Path) -> tuple[str, str]:
    """Texts of result.json and packages.lock of a bundle."""
    try:
        with zipfile.ZipFile(file) as archive:
            texts = []
            for name in (RESULT, LOCK):
                with archive.open(name) as member:
                    data = member.read(LARGEST + 1)
                if len(data) > LARGEST:
                    raise LabError(f"{file}: {name} is larger than {LARGEST} bytes")
                texts.append(data.decode())
    except KeyError as err:
        raise LabError(f"{file} is not a bundle of `paqm-lab bundle`: {err.args[0]}") from err
    except (OSError, zipfile.BadZipFile, UnicodeDecodeError, NotImplementedError,
            RuntimeError) as err:
        raise LabError(f"{file} is not a bundle of `paqm-lab bundle`: {err}") from err
    return texts[0], texts[1]
