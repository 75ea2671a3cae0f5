# SPDX-License-Identifier: GPL-2.0
"""A result as one file that somebody else can verify: result, report and the image's lock.

A zip archive of result.json (scenario, seed, versions, hashes), report.html and packages.lock.
"""

import json
import zipfile
from pathlib import Path

from paqm_lab import image
from paqm_lab.errors import LabError

RESULT, REPORT, LOCK = "result.json", "report.html", "packages.lock"
NAMES = (RESULT, REPORT, LOCK)
LARGEST = 50_000_000  # bytes of a member: a stranger's file may unpack to anything
DATE = (2026, 1, 1, 0, 0, 0)  # of every member: equal results are equal files


def write(directory: Path, file: Path) -> None:
    """Packs the result in `directory`; LabError if nothing here knows the lock of its image."""
    try:
        result = (directory / RESULT).read_text()
        versions = json.loads(result)["versions"]
        made_on = versions.get("image")
    except (OSError, ValueError, KeyError, TypeError) as err:
        raise LabError(f"{directory} holds no result of `paqm-lab run`: {err}") from err
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
    members = {RESULT: result, LOCK: lock}
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
