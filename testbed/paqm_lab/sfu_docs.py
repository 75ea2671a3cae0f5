# SPDX-License-Identifier: GPL-2.0
"""docs/sfu.md from docs/results/sfu.json, and that from result.json of paqm_lab.sfu."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from paqm_lab import cache, markdown
from paqm_lab.sfu_case import (
    BY_HAND,
    CEILING,
    DURATION,
    JUDGED,
    SYSTEMS,
    TCP,
    TCP_FROM,
    TCP_UNTIL,
    UPLINK,
    VIEWERS,
)
from paqm_lab.sfu_layers import GOP, LAYERS, STEP, steps

Json = dict[str, Any]

DATA = cache.REPO / "docs" / "results" / "sfu.json"
PAGE = cache.REPO / "docs" / "sfu.md"

# key, what the row says, digits
ROWS = [
    ("stalls", "stalls of all viewers", 0),
    ("stalled_s", "their length, s in sum", 1),
    ("stalled_viewers", "viewers who had one", 0),
    ("lost_in_queue", "media packets lost in the queue", 0),
    ("packets", "of so many sent", 0),
    ("lost_for_good", "lost to a viewer after repetition", 0),
    ("delay_p50_ms", "delay in the queue, median, ms", 1),
    ("delay_p95_ms", "95th percentile, ms", 1),
    ("delay_p99_ms", "99th percentile, ms", 1),
    ("kbit_mean", "a viewer's rate, mean, kbit/s of payload", 0),
    ("kbit_least", "the worst viewer's", 0),
    ("kbit_mean_beside_tcp", "mean beside TCP", 0),
    ("layer_changes", "changes of layer", 0),
    ("first_picture_worst_s", "first picture, the worst viewer, s", 2),
    ("tcp_mbit", "TCP in sum, Mbit/s", 2),
]

HEAD = f"""# Conference servers

A server (SFU) forwards one publisher's picture to many viewers, to each the layer that fits. The server
estimates which one fits from reports of loss and delay, for each viewer separately, though most share the
server's own uplink. A P-AQM router there tells it instead.

## pion

[`connectors/pion`](../connectors/pion/estimator.go) is a bandwidth estimator for
[pion](../connectors/go.mod)'s `interceptor/pkg/cc`. It takes the place of pion's own estimator and has that
below it: without advice, and when more than a tenth of the packets is lost, pion's own decides.

```go
follower, err := paqm.NewFollower("") // paqmd's socket
control, err := cc.NewInterceptor(follower.Factory(300_000))
control.OnNewPeerConnection(func(id string, e cc.BandwidthEstimator) {{ ... }})
registry.Add(control)
// once there is a peer connection; limits in bit/s
e.(*paqm.Estimator).FollowPeer(peerConnection, 0, 5_000_000)
e.OnTargetBitrateChange(func(bps int) {{ ... }}) // payload: headers are taken off
```

A peer connection is one registration without SSRC: sound and picture of one transport (BUNDLE) share
a rate. paqmd serves hundreds of viewers of one socket (`clients/tests/server.py`).

**Layers.** A router tells a flow what it could use if the others stayed as they are. Viewers of an SFU
stay on a layer below that, so capacity is left, the rate rises for all of them at once, and if all took
the next layer then, the link would be overloaded at once. [`connectors/share`](../connectors/share/gate.go) grants rises
some at a time: in a round a small part of what all use, lower ones first, the next after the router has
measured. Falls are for all and at once. A viewer who falls soon after a rise waits longer each time.

**Lots.** A picture goes to all viewers at once, and fifty packets in one lot wait in the router's queue,
though each viewer keeps to his own rate. The packets of all flows behind one router are spread together,
over four fifths of the time until the next picture; those of a key picture within 100 ms, about.

`paqm-sfu-pion` is a server with it: WHIP for the publisher, WHEP for viewers (RFC 9725, without
trickle), H.264, any number of layers. Viewers leave one that the publisher pauses within 3 s.

```
make connectors                 # programs in ~/.cache/paqm/connectors
~/.cache/paqm/connectors/paqm-sfu-pion --listen 192.0.2.1:8080 --port 7000
```

## Janus

```
paqm-janus --room 1234 --admin-secret SECRET --ceiling 2000000 --start 300000
```

VideoRoom sends each publisher's picture to all viewers as it is, so the publishers must follow: the
viewer who is allowed least decides, and Janus tells publishers by REMB. The program asks the Admin API
who is in the room and by which addresses (`handle_info`), registers viewers with paqmd, and sets the rate
by `configure` in the publishers' own names, since `edit` of a room (`new_bitrate`) holds for those only
who join later. `--room` takes the room's number, or its name where Janus has `string_ids`. A viewer or
publisher about whom Janus does not answer counts as still there, with his advice. When the program is stopped
it restores the ceiling. Where each viewer should have his own rate, use simulcast and a server that picks
layers. `connectors/tests/janus.py` runs it with Janus 1.1.2 of Debian, a publisher and a viewer:
the publisher's REMB is what the router said, within 3 %.

* A picture grows for all viewers at once, while a router tells each what he could use if the others stayed.
  So of several viewers behind one router none is granted more than what the router keeps for him, 1.1 of what
  he is sent (the Admin API counts it), and his part of what it tells; what was granted stays granted until a
  router says less. Fifty viewers of a publisher with steps of 1.45 were else sent too much every two seconds.
  A publisher with steps of more than a tenth stays on one, where there are many viewers: he never uses what he
  has, and nothing says whether the next step fits. Browsers' encoders have no steps.
  And 4 % less is asked for where there are several: what a picture has beyond its rate comes to the router once
  for every viewer, and stands there until their share has carried it. Without that, the queue beside TCP stayed at
  80 to 140 ms for seconds where the clip has more to show (seeds 1 to 3: p99 118, 102 and 103 ms, 7, 0 and 2
  packets lost; with it, seeds 1 and 2: 48 and 43 ms, none).
* While viewers come nothing rises, for 2 s after the last one or 3 s if no router has spoken about him. `--start`
  is the rate while nobody is there, and until a router has spoken about the first; without it that is
  the ceiling.
* What a page asks for its own pictures by `configure` while it is followed holds where that is less; where it is more
  the publisher is told again what routers allow. The room's own `bitrate`, and what was set before, count for nothing.
* No publisher is told less than `--floor`: 150 kbit/s, or `--start` where that is less. The least decides, and a
  viewer sees the packets that he is sent, so he can forge a router's message about them: without a floor he would
  take the picture from the whole room. A viewer whose link has less loses packets. That nobody lowers the room to
  the floor takes [a key](attack.md).

The Admin API names Janus's own end as the viewer sees it. Behind a NAT, 1:1 ones of clouds included, routers
inside quote another address, so viewers are registered by the address of this host that the socket of that port
is bound to: they are followed where the NAT keeps ports. Where there is no such socket, or several, as with Janus in a
container, they are registered by the port alone; then paqmd counts packets only if Janus runs as the program's
own user, or as root. What goes through a relay is not followed.

## mediasoup

```js
const {{ Follower }} = require('./connectors/mediasoup');
const follower = new Follower(); // runs paqm-follow, which make connectors builds
follower.follow(transport, {{ ceiling: 5_000_000 }}); // a WebRtcTransport
```

What routers allow is the transport's `setMaxOutgoingBitrate`; mediasoup picks layers below it and keeps
estimating by itself. Falls are set at once, rises by 8 % a second, since all transports hear of free
capacity at once. A transport that switches to TCP no longer has advice and rises to its ceiling. If
`paqm-follow` ends, all do, until it is restarted, after 1 s and at increasing intervals of up to 60 s. `close()` ends it: transports have
their ceilings again. It was tested
with the real paqmd against the interface that mediasoup 3 documents (`connectors/tests/mediasoup.py`), **not
with mediasoup's worker**, which its package fetches from elsewhere.

## LiveKit

```
paqm-livekit --config livekit.yaml --paqm-start 300000 --paqm-ceiling 20000000
```

LiveKit lets nothing outside it set a viewer's rate: `SetSubscriberChannelCapacity` is a method of a
participant in the server's memory, and the one signal that reaches it,
`SimulateScenario.subscriber_bandwidth`, is for the viewer himself to send. So `paqm-livekit` is LiveKit's
server itself (1.9.12, unchanged, built from its module), with one more goroutine. It replaces
`livekit-server` and takes its configuration; `--paqmd none` makes it LiveKit as it is. A server of
one's own takes [the package](../connectors/livekit/follow.go):

```go
server, err := service.InitializeServer(config, node)
follower, err := livekit.NewFollower(livekit.Options{{
	Ceiling: 20_000_000, Start: 300_000, Names: names, Room: server.RoomManager().GetRoom}})
go follower.Run(ctx)
```

* A viewer is one registration, of the pair that ICE has selected for his pictures; over TCP or a relay he is
  not followed.
* LiveKit picks layers below the capacity; the sound that it sends beside them is taken off. Rises go through
  the gate above, in steps of the layers that LiveKit measures.
* A new viewer is sent `--paqm-start` for at most 3 s, until a router has spoken; LiveKit by itself would
  begin with the highest layer. If none speaks, and when advice ends, LiveKit's own estimate decides.
* While there is advice LiveKit does not ask its own estimate. So loss above a tenth lowers the capacity as
  Google congestion control would, but delay behind another bottleneck does not.
* `--paqm-log FILE` writes what was set and why, a JSON object in each line.

The module is of LiveKit 1.9.12, which asks for Go 1.24. A later server, 1.13.11, asks for Go 1.26, needs the
`replace` lines of its own `go.mod`, and names the ends of a pair otherwise (`selected` in `viewer.go`).
`connectors/tests/livekit.py` runs server, publisher and viewers in the lab's guest: each viewer is sent the
layer that fits his advice, within 25 % of its rate in every second, the others stay, and it goes on when paqmd
or the server is restarted.

## Jitsi Videobridge

```
paqm-jitsi --listen 127.0.0.1:9091 --bridge ws://127.0.0.1:9090 --port 10000 --ceiling 20000000
```

The bridge assumes a bandwidth for a viewer (`assumedBandwidthBps`) if the viewer says so by his own channel,
in `ReceiverVideoConstraints`; its REST interface has nothing for it. So the program sits between the web
server and the bridge, passes the channels (`/colibri-ws/`) on unchanged, and inserts what routers allow. It
needs no change of bridge or page, only settings:

```
videobridge.cc.assumed-bandwidth-limit = 20 Mbps         # jvb.conf; without it the bridge ignores the value
proxy_pass http://127.0.0.1:9091/colibri-ws/...          # nginx: instead of the bridge's port
```

* Nor does the bridge tell by which address it reaches a viewer. The program sees his connectivity checks
  arrive at the bridge's port (a packet socket, CAP_NET_RAW): they are signed with the password that stands in
  the address of his channel, so nobody else's are taken for his. Of viewers whose checks it has not seen yet it
  tries 100 checks a second, and says how many more came: a flood of forged ones delays who joins, and takes advice
  from nobody who has some.
* Where the bridge's own estimate (`ConnectionStats`) is below the advice, it decides. Falls are told at once,
  rises by 8 % a second. A wish of the viewer himself for less counts. When his channel ends, or the program, what he
  wishes is left, or the bridge's own estimate.
* Channels over SCTP, relayed media, and restarts of ICE while the channel stays are not followed.

**It was not run with the bridge itself**: `connectors/tests/jitsi.py` has the real paqmd and
a bridge that knows of the channel what jitsi-videobridge documents (`doc/web-sockets.md`, `doc/allocation.md`,
`doc/rest-colibri2.md`, the members of its `ReceiverVideoConstraintsMessage`).

## Measured

```
make sfu                        # out/sfu/result.json
testbed/paqm-lab sfu --systems paqm
```

Real servers, real viewers, in virtual time, one seed: {VIEWERS} viewers behind an uplink of {UPLINK}, round
trip 40 ms, {TCP} TCP flows (cubic) from {TCP_FROM:g} to {TCP_UNTIL:g} s of {DURATION:g} s. The publisher has {len(LAYERS)} layers of
{LAYERS[0][0]} to {LAYERS[-1][0]} kbit/s, encoded before, with a key picture every {GOP} of 24 a second: a change of
layer waits for the next, for at most half a second. Steps are below 1.5, since pion's own estimator sends no
padding and grows to 1.5 of what arrives. Stalls are those of the W3C (`freezeCount`: an interval beyond
three times the mean of 30, and beyond it by 150 ms), after {JUDGED:g} s; a missing packet is waited for
300 ms, as NACK may repeat it. A viewer who sees nothing has one stall, of all that time; he who has
had less than 30 pictures has none yet. Packets lost are those that left the server and did not come.

pion that follows advice also spreads lots; by its own estimator it has pion's own pacer. The effects of the
two were not measured separately. Gate and spreading were developed on this scenario and seed; earlier forms of
them had one or two stalls in it, and a faulty one 146.

LiveKit is sent three of the layers, 150, 310 and 650 kbit/s, and its own estimator is that by
transport-wide feedback (`use_send_side_bwe`). Nothing of it is changed, so it spreads nothing: each picture
comes to the router in fifty packets at once, a key picture in 150, which is where its delay is from. When a
viewer is to be sent a lower layer LiveKit stops the higher one at once, until the next key picture of the
lower comes (`FlagPauseOnDowngrade`), and leaves a hole in the numbers of his packets: these are its stalls,
and what is "lost to a viewer" without being lost in the queue. What is freed is given back slowly (the gate,
above), and a step from 150 to 310 kbit/s is a large one: after TCP has left it takes ten seconds. How LiveKit's goroutines meet depends on the smallest thing, such as the
words of its command: six runs, three with seed 1 and three with seed 2, had 30 to 58
stalls. The first four lost 0, 1, 5 and 6 packets in the queues of viewers who rise by a key picture; since CoDel gives
slow flows the time of a picture there, two lost none, a seventh one, and the last three, with seeds 1 (above), 2 and 3,
none (20, 22 and 50 stalls).

Janus has no estimator and no layers here. All viewers are sent the one stream of a publisher who does what REMB
says, as a browser's encoder does: {len(steps())} layers in steps of {100 * (STEP - 1):.0f} %, the same clip, key pictures at the same
places, sent at 1.5 times its rate where a picture is large. By itself Janus has the publisher send what the
room's `bitrate` says, set here to {BY_HAND // 1000} kbit/s: what the uplink has for {VIEWERS} viewers while there is no TCP, less headers and
a tenth. At 260 kbit/s, what there is beside TCP, it had 650 stalls of 504 s in sum and lost 1954 of 70,355
packets (seed 1). With advice it is {CEILING / 1e6:g} Mbit/s and nobody has to know the uplink. Janus spreads nothing, so fifty copies of
each packet come to the router at once. That the publisher changes at key pictures is told to the
router: `gop 500ms`. Its delay is from lots and key pictures, and beside TCP from some seconds in which the clip has
more to show than the encoder's rate: with `gop` the router tells a new rate every 0.6 s, and the queue drains by
the few per cent of headroom.

What it took, all with seed 1: packets lost in the queue, stalls of all viewers and their length in sum.

| | lost | stalls | s |
|---|--:|--:|--:|
| the publisher with the {len(LAYERS)} layers, `paqm-janus` without a bound on growth and without `--start` | 1449 | 216 | 349 |
| the publisher with {len(steps())} layers, growth bounded, `--start` | 976 | 195 | 143 |
| nothing rises while viewers come; large pictures at 2.5 times the rate, as browsers send them | 378 | 243 | 142 |
| `gop 500ms` | 215 | 192 | 97 |
| with `gop` the media queue holds a key picture for all | 78 | 70 | 30 |
| large pictures at 1.5 times the rate | 0 | 0 | 0 |
| the same with a later qdisc | 7 | 7 | 3 |
| 4 % less for several viewers (above) | 0 | 0 | 0 |

So a room's publisher has to spread its key pictures over two or three picture times. A browser sends them
faster, and they are rarer: Janus asks for one when somebody joins. With seed 2 the last form has 0 packets
lost of 76,275, no stall and a 95th percentile of 32 ms; by hand over fq_codel it is 11,524 of 90,075,
385 stalls and 59 ms (of what comes).

This part is made from `docs/results/sfu.json` by `paqm-lab sfu --docs`.
"""  # noqa: E501


def rows(data: Json) -> list[list[str]]:
    """A line for each figure, a column for each system."""
    systems = [name for name in SYSTEMS if name in data["systems"]]
    lines = [["", *(SYSTEMS[name].title for name in systems)]]
    for key, text, digits in ROWS:
        found = [data["systems"][name][key] for name in systems]
        lines.append([text, *(markdown.cell(value, digits) for value in found)])
    return lines


def table(data: Json) -> str:
    """For a terminal."""
    lines = rows(data)
    width = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join(
        "  ".join(text.ljust(width[i]) for i, text in enumerate(line)).rstrip() for line in lines
    )


def page(data: Json) -> str:
    """The whole page."""
    head, *body = rows(data)
    lines = [HEAD, "| " + " | ".join(head) + " |", "|---|" + "--:|" * (len(head) - 1)]
    lines += ["| " + " | ".join(line) + " |" for line in body]
    lines += [""]
    for check in data["checks"]:
        sign = {"<=": "at most", ">=": "at least"}[check["relation"]]
        verdict = "holds" if check["pass"] else "**does not hold**"
        lines.append(f"* `{check['variant']}`, `{check['name']}` {sign} {check['limit']:g} "
                     f"{check['unit']}: {check['value']:g}, {verdict}")
    if data["missing"]:
        lines += ["", "Not run: " + ", ".join(data["missing"]) + "."]
    return "\n".join(lines).rstrip() + "\n"


def write(text: str) -> list[Path]:
    """Data and page."""
    DATA.write_text(text)
    PAGE.write_text(page(json.loads(text)))
    return [DATA, PAGE]
