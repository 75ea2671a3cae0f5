# SPDX-License-Identifier: GPL-2.0
"""What people have found in the figures of the laws: text of docs/laws.md, by scenario."""

from __future__ import annotations

FINDINGS: dict[str, str] = {
    "all": """\
* **Constant sources** under the default law are at their shares within a second of every
  change, over one router or several, with other periods, with 30 % of the messages lost, beside
  senders that know relative values only. Law erf gets to the same shares, but searches for
  them: meanwhile the queue has tens to hundreds of ms, and packets are lost. Law ecf often does
  not get there in the time that a scenario gives it.
* **Sixteen flows at once** (`burst`) is the hardest start. A message takes a round trip, and in
  that time each newcomer was told a share of the flows known so far: the default law has 120 ms
  of queue for a moment. Laws that search fall to their floor first and then leave a third of
  the link unused.
* **Video that answers by groups** is where the default law is not good enough (`miss`, `noise`,
  `groups`): it does not hold its bounds there. See these scenarios for the causes.
* **The published queue** bounds what a law does wrong: its inner loop drops from about 100 ms
  on. So it has the lower 99th percentile wherever the law overloads it for long, and the higher
  loss.""",
    "joins": """\
Under preset thesis-ecf a newcomer's first relative value counts from its ceiling, as published,
and what shares are then, they stay for long: an aggregate that matches leaves every flow where
it is, but for one forced decrease in six periods.""",
    "leaves": """\
All five start at once. Presets begin at R = c, so the overload takes R down to its floor of 10
kbit/s, from which it grows by three quarters in each period: preset thesis-erf has not come
back when the first flow leaves.""",
    "tcp": """\
TCP costs the default law nothing here: the announced transfer works as the model says.""",
    "parking": """\
Presets are slow here because R begins at the capacity of each router and falls to the floor at
each of three.""",
    "miss": """\
A group is planned with the bits of the one before it, and a quantizer is a step of 12 %. The
flows' sum stays 8 to 11 % below what they are told, and the trim of the default law, which is
to make up for that, stops where pictures fill the queue beyond twice its target: eight flows of
600 kbit/s are too few for their key pictures to even out. No law settles in both halves.""",
    "content": """\
Shares are those of the constant flows in what video leaves, from 5 s on. The presets have half
of the delay at the same use. The default law and law erf have the same delay, so it is not the
law; the cause is not found yet.""",
    "lost": """\
An absolute rate has no memory; a relative value that is lost is lost.""",
    "noise": """\
Flows take 12 % less than they are told: the planned quantizer is the one below. The trim cannot
mend it: pictures in bursts exceed twice the target of the queue, each time that is an event,
and an event takes the trim back.""",
    "routers": """\
Routers need not agree on a period for max-min; laws that search disturb each other.""",
    "groups": """\
Every flow answers 0.5 s late on average and 1 s at most, so what the start and the second eight
offer too much cannot be taken back earlier: 7 % lost. At 600 and 300 kbit/s a group of 1 s
begins with a picture that is a large part of it.""",
    "mixture": """\
Flows that know relative values only come down slowly, as theory has it (one forced decrease in
six periods). This scenario found a fault in law ecf: such flows, above R for long, were told
ever more rarely, as those that do not listen are; after 3 s their allowance expired, and they
began again at their ceiling, while those that did hear gave way down to their floors (with
ceilings of 16 Mbit/s 45 % lost, Jain 0.46). Now law ecf tells every flow once a second at
least. Under law maxmin, which has no relative values, they take the absolute rate.""",
    "far": """\
A message takes 0.4 s, its effect as much again.""",
    "map": """\
The map says what theory says. Where both recursions are stable every point is calm; where none
is, none is calm; between lie the points at which theory makes it depend on how flows are
spread: calm where the router measures whole groups, not calm where it measures 0.5 s of groups
of 1 s. There the flows' spread alone would be stable with either gains (0.83 to 0.99); what
swings besides is the measurement: half a group has a key picture or has not, and theory knows
no pictures. So the rule of the thesis, measure for longer than a group, is worth more than the
choice of gains; with it `robust` is calmer than `fast` by a factor of about two, and without it
neither is good. Round trips matter little, since the router measures only what comes after one.

What a single flow is told can never exceed the link, so its swings are cut in half; its losses
of 3 to 10 % and the 180 ms at p99 are key pictures on a link that is as wide as the flow, not
the law.""",
}
