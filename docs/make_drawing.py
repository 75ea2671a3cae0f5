#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Draws docs/img/architecture.svg: the parts of P-AQM and what passes between them.

make_drawing.py            writes the drawing
make_drawing.py --check    status 1 if the drawing is not what would be written
"""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path

DRAWING = Path(__file__).resolve().parent / "img" / "architecture.svg"
WIDTH, HEIGHT = 1080, 590
INK, PALE_INK = "#1f2933", "#52606d"
MEDIA, ELASTIC, ADVICE, CONTROL = "#0072b2", "#707070", "#c2410c", "#15803d"
FONT = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"


class Drawing:
    """Shapes in the order in which they are drawn."""

    def __init__(self) -> None:
        self.shapes: list[str] = []

    def text(self, x: float, y: float, text: str, size: int = 13, colour: str = PALE_INK,
             weight: str = "normal", anchor: str = "start") -> None:
        self.shapes.append(
            f'<text x="{x}" y="{y}" font-size="{size}" font-weight="{weight}" fill="{colour}" '
            f'text-anchor="{anchor}">{escape(text)}</text>'
        )

    def box(self, x: float, y: float, w: float, h: float, title: str, lines: tuple[str, ...] = (),
            fill: str = "#ffffff", edge: str = "#9aa5b1", size: int = 14) -> None:
        """A box, its title, and smaller lines below it."""
        self.shapes.append(
            f'<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="8" fill="{fill}" '
            f'stroke="{edge}" stroke-width="1.3"/>'
        )
        self.text(x + 12, y + 21, title, size, INK, "bold")
        for n, line in enumerate(lines):
            self.text(x + 12, y + 40 + 17 * n, line, 12)

    def host(self, x: float, y: float, w: float, h: float, title: str, fill: str) -> None:
        """What surrounds the boxes of one machine."""
        self.shapes.append(
            f'<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="14" fill="{fill}"/>'
        )
        self.text(x + 14, y + 26, title, 16, INK, "bold")

    def arrow(self, colour: str, *points: tuple[float, float], width: float = 2.2,
              dash: str = "") -> None:
        path = " L ".join(f"{x} {y}" for x, y in points)
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        self.shapes.append(
            f'<path d="M {path}" fill="none" stroke="{colour}" stroke-width="{width}" '
            f'stroke-linejoin="round"{dashes} marker-end="url(#{colour[1:]})"/>'
        )

    def svg(self) -> str:
        heads = "".join(
            f'<marker id="{colour[1:]}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="11" '
            f'markerHeight="11" markerUnits="userSpaceOnUse" orient="auto">'
            f'<path d="M 0 0.5 L 10 5 L 0 9.5 z" fill="{colour}"/></marker>\n'
            for colour in (MEDIA, ELASTIC, ADVICE, CONTROL)
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            f'width="{WIDTH}" height="{HEIGHT}" font-family="{FONT}">\n'
            "<title>The parts of P-AQM and what passes between them</title>\n"
            f"<defs>\n{heads}</defs>\n"
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>\n'
            + "\n".join(self.shapes)
            + "\n</svg>\n"
        )


def draw() -> str:
    d = Drawing()
    d.host(15, 15, 290, 425, "Sending host", "#e8f1f8")
    d.host(400, 15, 455, 425, "Router at the bottleneck", "#fdf1e7")
    d.host(945, 15, 120, 425, "Receiver", "#eaf5ea")

    d.box(35, 55, 250, 118, "paqm-streamer",
          ("encoder: a byte budget per picture", "pacer: spreads each picture's packets",
           "safety net: its own congestion control", "rate: the lower of net and advice"))
    d.box(35, 215, 250, 66, "libpaqmclient", ("advice for any other sender, too",
                                            "(C library)"))
    d.box(35, 323, 250, 100, "paqmd", ("did this host send the quoted packet?",
                                      "is the message new, the tag right?",
                                      "smallest rate of all routers"))

    d.box(420, 55, 125, 118, "classify", ("RTP and its kin:", "media; the rest:", "elastic. Counts",
                                        "flows and bytes"))
    d.box(585, 50, 145, 36, "media queue", edge=MEDIA, size=12)
    d.box(585, 95, 145, 38, "overflow, per flow", edge=MEDIA, size=12)
    d.box(585, 142, 145, 38, "elastic, per flow", edge=ELASTIC, size=12)
    d.box(765, 55, 75, 118, "split", ("byte-true,", "by flows;", "bounded", "credit"))

    d.box(420, 215, 420, 84, "outer loop: every 250 ms, and at once on an event",
          ("measured rates of the flows \u2192 max-min fair rate R",
           "numbers of flows, what they can use \u2192 split of the link"))
    d.box(420, 338, 230, 85, "paqm_feedback",
          ("one message per flow and round,", "quoting the flow's next packet;",
           "at most 0.5 % of the link"))
    d.box(675, 338, 165, 85, "tc, paqmtop", ("options and statistics", "by netlink;",
                                            "trace points by BPF"))
    d.box(960, 55, 90, 118, "recv", ("plays, or", "records;", "reports"))

    # Media and reports.
    d.arrow(MEDIA, (285, 92), (420, 92), width=3)
    d.text(352, 83, "RTP", 13, MEDIA, "bold", "middle")
    d.arrow(MEDIA, (545, 68), (585, 68))
    d.arrow(MEDIA, (545, 114), (585, 114))
    d.arrow(MEDIA, (730, 68), (765, 68))
    d.arrow(MEDIA, (730, 114), (765, 114))
    d.arrow(MEDIA, (840, 92), (960, 92), width=3)
    d.text(900, 83, "bottleneck", 13, MEDIA, "bold", "middle")
    d.arrow(CONTROL, (1005, 173), (1005, 194), (322, 194), (322, 150), (285, 150), dash="6 4",
            width=1.6)
    d.text(352, 186, "RTCP", 13, CONTROL, "bold", "middle")
    # Elastic traffic.
    d.arrow(ELASTIC, (340, 122), (420, 122), width=3)
    d.text(366, 141, "TCP, QUIC", 13, ELASTIC, "bold", "middle")
    d.arrow(ELASTIC, (545, 161), (585, 161))
    d.arrow(ELASTIC, (730, 161), (765, 161))
    d.arrow(ELASTIC, (840, 122), (945, 122), width=3)
    # The loop.
    d.arrow(CONTROL, (482, 173), (482, 215), width=1.6)
    d.arrow(CONTROL, (802, 215), (802, 173), width=1.6)
    d.arrow(ADVICE, (482, 299), (482, 338))
    d.text(492, 323, "R", 14, ADVICE, "bold")
    d.arrow(CONTROL, (757, 338), (757, 299), width=1.6)
    d.arrow(ADVICE, (420, 373), (285, 373), width=3)
    d.text(352, 364, "ICMP: rate", 13, ADVICE, "bold", "middle")
    d.text(352, 393, "or in-band", 12, ADVICE, "normal", "middle")
    d.arrow(ADVICE, (160, 323), (160, 281))
    d.arrow(ADVICE, (160, 215), (160, 173))
    d.text(172, 198, "allowance", 13, ADVICE, "bold")

    d.box(15, 460, 840, 52, "core/", fill="#f1f3f5")
    d.text(80, 481, "control laws, max-min, scheduler, message codec: integers only, one copy", 13)
    d.text(27, 501, "compiled into the kernel modules, the daemon, the streamer and every test", 12)
    d.box(945, 460, 120, 52, "paqm-lab", fill="#f1f3f5")
    d.text(957, 501, "runs all of it", 12)

    legend = ((MEDIA, "media", ""), (ELASTIC, "elastic", ""), (ADVICE, "advice", ""),
              (CONTROL, "measurements, control", "6 4"))
    x = 250.0
    for colour, name, dash in legend:
        d.arrow(colour, (x, 552), (x + 40, 552), width=2.2, dash=dash)
        d.text(x + 50, 557, name, 13, INK)
        x += 150
    return d.svg()


def main() -> int:
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        print(__doc__, file=sys.stderr)
        return 2
    if not check:
        DRAWING.write_text(draw())
    elif DRAWING.read_text() != draw():
        print(f"{DRAWING.name} is not what docs/make_drawing.py draws")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
