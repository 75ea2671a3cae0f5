# SPDX-License-Identifier: GPL-2.0
"""The laws side by side, and the map of where the published ones are stable, theory beside.

Rows of the catalogue's kind (catalogue/row.py), run and judged by its programs: cases.py has a row
for each scenario and law, stabmap.py one for each point of the map; docs.py writes docs/laws.md.
"""
