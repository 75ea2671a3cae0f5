# SPDX-License-Identifier: GPL-2.0
"""What people have found in the figures of the rivals: text of docs/rivals.md, by scenario."""

from __future__ import annotations

FINDINGS: dict[str, str] = {
    "all": """\
* **Counting beats searching.** Of constant sources the default law knows the rates and divides the
  link, so it is at the shares within a second; ACP, QLBIC and XCP get to the same shares or near
  them within seconds, by way of a queue of 50 to 100 ms at each join: a link with few users has a
  high rate, and whoever joins starts there.
* **QLBIC pays for its full link** with a standing queue of its reference at every router of a way,
  and with losses where several join at once. A simulation of the law alone says the same (4 flows,
  6 more within half a second on 10 Mbit/s, core/tests/ratelaws_media.c): QLBIC drops about 1600 of
  70000 packets, ACP none.
* **RCP counts every packet as queue.** With its published gains a packet in service is worth ten
  times its part of a round trip, so on links of a few Mbit/s it leaves a fifth to four
  fifths unused, most beside bursts of video: its delay is the lowest and its rate, too. On 155
  Mbit/s it uses 99 % (core/tests/ratelaws_media.c). A queue longer than a round trip takes it to
  its floor, from which it grows by a tenth of itself in each period.
* **XCP and VCP** have no rate for all. XCP takes seconds to even out, and does not where
  many join; VCP, with two bits, is slower still, as published.
* **Queues that tell nothing** leave video to find its rate: shares are unequal there (Jain 0.69
  to 0.97), and the link is emptier than under most laws that tell.
* **RL-QoS drops before there is a queue.** It has the shortest one of all (p95 2 to 5 ms) and the
  most unequal shares of video (Jain 0.69 to 0.82), and leaves two thirds of the link unused where
  no TCP fills it. By its formula and the coefficients here (k1 35 packets) it drops 2 % from a mean
  queue of 0.7 packets on and 13 % at five; a picture is a burst of more, and a sender that looks
  for its rate takes each loss for a full link.
* **RL-QoS sees one hop.** A node tells its load to the one before, and only what enters there is
  thinned. Of a source twice as fast as a bottleneck 0, 38 and 51 % are lost on the way if that is
  1, 2 and 3 hops off, where nothing is to be lost (qdiscs and daemons: kernel/lab-tests/rlqos.py,
  [rlqos](rlqos.md)). On GFC-2 here no messages pass, and every node thins what comes: the longest
  ways, A1 and B1, lose 5.1 and 6.4 % of their packets and have 13 and 27 % of their share; C, E and
  H lose 0.5 % or less and have 23 to 68 %.
* **Video is harder than constant sources for every law**: pictures are bursts, and who answers once
  in 0.4 s cannot be steered in 0.1 s ([laws](laws.md)). There the default law is not ahead: ACP and
  XCP have a shorter queue, ACP at less use of the link, XCP at about as much.""",
    "mass": """\
Four flows have had the link for themselves, so a law that searches has wound up to a quarter of it
for everybody. Until it has come down twelve more take that.""",
    "lot": """\
A queue at its reference at each of three routers is 60 ms for the long flows of QLBIC.""",
    "tcp": """\
TCP takes most of the link from video that only answers losses and delay, but where flows have
queues of their own (fq_codel, CAKE); D-CBT and dualpi2 leave the worst stream a tenth of its
share.""",
    "gfc2": """\
Where shares differ and ways have several bottlenecks XCP and VCP, which have no rate for all, give
one way 2.5 and 2.1 times its share; laws with one rate stay below 1.5 times.""",
    "dumbbell": """\
Without elastic traffic all packets are tagged, so none is put before another: ChIPS changes nothing
here.""",
}
