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

## Why it misses

* *Not the module.* The law of `core/` under a queue and flows of a model's own
  (`core/tests/dcbt_model.c`, rows `model`) has the same misses: with TCP as Linux has it, the
  same packets of TCP within 1 % and of tagged flows within 2 %, and the floods within a quarter.
* *TCP's losses are TCP's.* Flows of 600 kbit/s have windows of five packets, and at such windows
  the share that is dropped is what TCP asks for. Who recovers from several losses without a
  time-out asks for more: in the model 6.0 % with NewReno and limited transmit, 4.9 % with ns-2's
  Reno of that time, whose published figure is 4.46 %. Linux has no such Reno.
* *Thresholds are packets, links carry bytes.* In CBT's validation (`blast.cbt`) TCP has 1089
  kbyte/s without the flood, where 1088 are expected, and the queue is as long as expected. With
  it two of 28 packets are the flood's, of 1000 bytes among TCP's of 300: a fifth of the bytes and
  not 7 %. The thesis saw less than expected for the same reason, if by less.
* *The queue swings*, in the lab and in the model, between nothing and 30 packets twice a second:
  35 flows with one round trip, an average that follows within half of that time, and a drop of
  every arrival above the upper threshold. While it is empty the floods fill the link and wait for
  nobody, so their average in the queue stays small: what they have of the queue is 0.3 to 0.5 of
  what they have of the throughput (rows *part of the queue over part of the throughput*), and a
  threshold on the former does not hold the latter. While it is short tagged flows are most of it,
  and lose packets to their threshold that later would have been within it. Proportionality of
  queue and throughput is what these laws rest on, and holds only for a queue that does not run
  empty.
* In the model other spacings of drops, gentle RED, other weights, a least time-out of 1 s, TCP
  flows with round trips of their own, and a receiver that answers the first loss at once move
  tagged losses between 16 and 24 % and none to the published 12 %. What made the queue of the
  thesis steadier is not in its text.

## FRED

With the thesis' thresholds FRED holds nobody: each flow may have two packets in the queue, and of
a queue of ten a flood of a fifth of the link has two; it strikes more TCP packets, which come in
bursts, than others (`main.fred`). In a queue in which a share is more than two (`main.fred-long`)
it drops seven tenths of the floods by their accounts, and nothing of the multimedia flows. The
penalty that the thesis expects for them, and from which D-CBT is to save them, fell on the floods
only."""
