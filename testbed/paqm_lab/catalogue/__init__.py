# SPDX-License-Identifier: GPL-2.0
"""The catalogue: every result that the documents of P-AQM print, run again and set beside ours.

To add a row:

1. Write it into a file rows_NAME.py of this package (a new one goes into the list in table.py),
   as a `Row` in that file's ROWS. Its figures say what was published, in numbers where there are
   numbers; an id that is to come stands in table.py's IDS.
2. Its `run(ctx, seed)` returns {figure: number} of one replication. `ctx` runs what it needs, once:
   `ctx.scenario(FILE, variant, seed, changes)` a scenario of testbed/scenarios (dumbbell or network
   of one's own), `ctx.guest(WORDS, seed)` a script in a guest, `ctx.command(WORDS)` another
   experiment of paqm-lab; each returns the result.json that was written. `ctx.p` are the row's
   parameters: `reduced`, or with --full the row's `full`, which is the published scale.
3. Nothing is judged by hand: verdict.py compares the published band with our runs.
   `paqm-lab catalogue --rows ID`, then `--docs`.
"""
