#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The built extension: every file that the manifest names is there, Chromium's id is the one that
the host's manifest allows, page.js is one script without traces of a module.

Usage: extension.py DIRECTORY
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from make_extension import chromium_id  # noqa: E402

built = Path(sys.argv[1])
manifest = json.loads((built / "manifest.json").read_text())
named = [manifest["background"]["service_worker"], *manifest["background"]["scripts"]]
named += [name for script in manifest["content_scripts"] for name in script["js"]]
named += [manifest["action"]["default_popup"]]
assert not [name for name in named if not (built / name).is_file()], named
assert manifest["version"].count(".") == 2 and manifest["permissions"] == ["nativeMessaging"]

host = json.loads((built.parent / "chromium-paqm.native_host.json").read_text())
assert host["allowed_origins"] == [f"chrome-extension://{chromium_id(manifest['key'])}/"]
firefox = json.loads((built.parent / "firefox-paqm.native_host.json").read_text())
assert firefox["allowed_extensions"] == [manifest["browser_specific_settings"]["gecko"]["id"]]
assert host["name"] == firefox["name"] == "paqm.native_host" and host["path"] == firefox["path"]
assert f"'{host['name']}'" in (built / "background.js").read_text()

page = (built / "page.js").read_text()
assert not [line for line in page.splitlines() if line.startswith(("export ", "import "))]
assert page.startswith("(() => {\n'use strict';") and page.endswith("})();\n")
print("ok")
