#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Makes the extension of its sources: the core module and page.js become one script, since scripts
of the page's own world are no modules; the manifest gets the version. With --id it prints the id
that Chromium gives to an extension with this key.

Usage: make_extension.py VERSION KEY_FILE TARGET
       make_extension.py --id KEY_FILE
"""

import base64
import hashlib
import shutil
import sys
from pathlib import Path

HOME = Path(__file__).resolve().parent
COPIED = ["background.js", "popup.html", "popup.js", "registry.js", "relay.js"]


def chromium_id(key: str) -> str:
    """The first half of the key's SHA-256, a letter for each hexadecimal digit."""
    digits = hashlib.sha256(base64.b64decode(key, validate=True)).hexdigest()[:32]
    return "".join(chr(ord("a") + int(digit, 16)) for digit in digits)


def page_script() -> str:
    """The core without what makes it a module, then page.js; nothing of it is the page's to see."""
    core = (HOME / "paqm-rtc.js").read_text()
    lines = [line.removeprefix("export ") for line in core.splitlines()]
    page = (HOME / "extension" / "page.js").read_text()
    return "\n".join(["(() => {", "'use strict';", *lines, page.rstrip(), "})();", ""])


def main() -> int:
    if len(sys.argv) == 3 and sys.argv[1] == "--id":
        print(chromium_id(Path(sys.argv[2]).read_text().strip()))
        return 0
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    version, key, target = sys.argv[1], Path(sys.argv[2]).read_text().strip(), Path(sys.argv[3])
    target.mkdir(parents=True, exist_ok=True)
    manifest = (HOME / "extension" / "manifest.json").read_text()
    manifest = manifest.replace("@VERSION@", version).replace("@KEY@", key)
    (target / "manifest.json").write_text(manifest)
    (target / "page.js").write_text(page_script())
    for name in COPIED:
        shutil.copy(HOME / "extension" / name, target / name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
