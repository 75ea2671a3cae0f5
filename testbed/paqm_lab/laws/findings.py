# SPDX-License-Identifier: GPL-2.0
"""What people have found in the figures of the laws: text of docs/laws.md, by scenario."""

from __future__ import annotations

FINDINGS: dict[str, str] = {"all": "", "map": ""}
