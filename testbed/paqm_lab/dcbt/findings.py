# SPDX-License-Identifier: GPL-2.0
"""What people have found in the figures of D-CBT: text of docs/dcbt-results.md."""

FINDINGS = ""
