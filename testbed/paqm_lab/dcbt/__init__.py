# SPDX-License-Identifier: GPL-2.0
"""The published experiments of D-CBT with ChIPS (J. Chung, WPI 2000) on sch_dcbt.

Rows of the catalogue's kind (catalogue/row.py), run and judged by its programs: figures.py says
what a run gives, cases.py what was published and how near is near, docs.py writes
docs/dcbt-results.md.
"""
