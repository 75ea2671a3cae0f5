# SPDX-License-Identifier: GPL-2.0
"""What people have found in the figures of D-CBT: text of docs/dcbt-results.md."""

FINDINGS = """\
## What it says

* **Multimedia with five levels is as greedy as published** (`mm.1`), more so over a longer way
  (`mm.more`), and under RED floods starve TCP as published (`main.red`, `blast.red`).
* **ChIPS does what it was made for** (`main.chips`): the longest delay of a stream less its
  shortest is a third of that under D-CBT alone, within 1 ms of the published figure, and TCP
  loses nothing.
* **TCP under D-CBT** gets what it got in the thesis, all its packets within 3 % of the printed
  number.
* **What misses.** Under CBT and D-CBT the two floods get more than their thresholds say, tagged
  flows up to a quarter less than their share, and more packets are dropped.

Seeds are few, one of most rows, where the specification wants five. Of two runs the interval is
so wide that a figure can be *reproduced* by it alone: 19 % of tagged packets dropped, say,
beside 12. Of `main.dcbt` and `main.chips` the means decide whether a row passes, and they do
not.

## Why it misses

* *What a model can tell.* `core/tests/dcbt_model.c` (rows `model`) puts the law of `core/`
  under a queue and TCP of its own. With TCP like Linux's it has the same misses: TCP's packets
  within 1 % of the lab's, tagged ones within 2 %, floods within a quarter. So neither
  sch_dcbt's queue and accounts nor Linux's TCP makes them. A fault of the law itself would be
  in both: that its vectors pass is all that speaks against one, and where the thesis is silent
  the law is our reading.
* *TCP's losses depend on how TCP recovers.* In the model 6.0 % are dropped with NewReno and
  limited transmit, 4.9 % with ns-2's Reno of that time; published are 4.46 %, the lab has 7.3.
  The floods and the tagged losses are no nearer with Reno.
* *Thresholds are packets, links carry bytes.* In CBT's validation (`blast.cbt`) TCP has 1089
  kbyte/s without the flood, where 1088 are expected. With it the flood has 7 % of the queue's
  average and 10 % of the packets, as its threshold wants, but 24 % of the bytes: its packets
  have 1000, TCP's 300. The thesis saw less than expected, too, for small packets, if by less.
* *The queue swings*: delays in a run under D-CBT go from none to 30 packets' time and back
  about twice a second. Floods then wait for less than others: what untagged flows have of the
  queue is 0.3 to 0.5 of what they have of the throughput (rows *part of the queue over part of
  the throughput*), and a threshold on the former does not hold the latter. That the swing is
  the cause of this, and of the tagged losses, is likely and not shown: nothing that was tried
  took it away.
* Tried by hand in the model, one or two seeds each: drops spaced evenly, gentle RED, weights of
  0.0005 and 0.01, no gate, a least time-out of 1 s, round trips that differ, receivers that
  answer a loss at once. Tagged losses went from 16 to 24 %, none near the published 12 %.

## FRED

With the thesis' thresholds FRED holds nobody: each flow may have two packets in the queue, and
of a queue of ten a flood of a fifth of the link has two; it strikes more TCP packets, which
come in bursts, than others (`main.fred`). In a longer queue, chosen after that was seen
(`main.fred-long`), it drops seven tenths of the floods by their accounts, and nothing of the
multimedia flows. The penalty that the thesis expects for them, and from which D-CBT is to save
them, fell on the floods only."""
