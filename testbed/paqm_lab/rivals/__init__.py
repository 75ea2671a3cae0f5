# SPDX-License-Identifier: GPL-2.0
"""P-AQM beside what was published elsewhere for the same problem: other laws and other queues.

Rows of the catalogue's kind (catalogue/row.py), run and judged by its programs: cases.py has a row
for each scenario and rival, docs.py writes docs/rivals.md.
"""
