#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Meson's install script for the extension. Usage: install_extension.py BUILT DIRECTORY"""

import os
import shutil
import sys
from pathlib import Path

built = Path(os.environ["MESON_BUILD_ROOT"]) / sys.argv[1]
target = Path(os.environ.get("DESTDIR") or "/") / Path(sys.argv[2]).relative_to("/")
target.mkdir(parents=True, exist_ok=True)
for file in sorted(built.iterdir()):
    shutil.copy(file, target / file.name)
    (target / file.name).chmod(0o644)
