#!/usr/bin/env -S python3 -IS
# SPDX-License-Identifier: GPL-2.0
"""Raw rtnetlink to a qdisc: what the tc plugin would refuse to send, for the tc cases.

  rtnl.py add|change|replace DEV [--parent root|X:Y] [--handle X:] [--kind KIND] [NAME=VALUE ...]
  rtnl.py show DEV
  rtnl.py replay DEV [--handle X:]

KIND is paqm, the default, dcbt or rlqos. NAME is an attribute of its enum (TCA_PAQM_* and so on) in
lower case with dashes (media-target), or @N. VALUE is a number, in the width that the header says,
or u8:N, u16:N, u32:N, u64:N, or hex:BYTES. Numbers
come from the UAPI header, so there is no second list. A refusal prints `ERRNO: text (attribute
NAME)` as the kernel's extended acknowledgement has it, and ends with status 2; with --range and the
least and greatest value, or length, that the policy in it allows. `replay` gives the
options of the device's first paqm back to it, byte for byte as the kernel shows them.

--fail-each (debug kernel) repeats the request with the first, second, ... memory allocation of the
kernel failing, until a request meets no failure any more and succeeds. Prints how often the kernel
refused, managed without that memory, or had none left for its answer.
"""

import argparse
import errno
import json
import os
import re
import socket
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

UAPI = Path(__file__).resolve().parent.parent / "uapi" / "linux"
RTM_NEWQDISC, RTM_DELQDISC, RTM_GETQDISC = 36, 37, 38
NLM_REQUEST, NLM_ACK, NLM_DUMP = 1, 4, 0x300
FLAGS = {"add": 0x600, "change": 0, "replace": 0x500}  # CREATE|EXCL, none, CREATE|REPLACE
NLMSG_ERROR, NLMSG_DONE = 2, 3
NLM_F_CAPPED, NLM_F_ACK_TLVS = 0x100, 0x200
TCA_KIND, TCA_OPTIONS = 1, 2
TC_H_ROOT = 0xFFFFFFFF
SOL_NETLINK, NETLINK_EXT_ACK = 270, 11
NEST = 0x8000


def attributes(kind: str) -> dict[str, tuple[int, str]]:
    """Name -> number and width of the options, from the UAPI header."""
    header, prefix = UAPI / f"pkt_sched_{kind}.h", f"TCA_{kind.upper()}_"
    body = re.search(rf"enum \{{\s*{prefix}UNSPEC,(.*?)__{prefix}MAX", header.read_text(), re.S)
    assert body, f"{header}: no enum of {prefix}*"
    found = re.findall(rf"{prefix}(\w+),\s*(?:/\*\s*(u\d+))?", body[1])
    return {
        name.lower().replace("_", "-"): (number, width or "u32")
        for number, (name, width) in enumerate(found, start=1)
    }


def attribute(number: int, payload: bytes) -> bytes:
    data = struct.pack("=HH", 4 + len(payload), number) + payload
    return data + b"\0" * (-len(data) % 4)


def encode(value: str, width: str) -> bytes:
    prefix, colon, rest = value.partition(":")
    if prefix == "hex" and colon:
        return bytes.fromhex(rest)
    if colon:
        width, value = prefix, rest
    return struct.pack("=" + {"u8": "B", "u16": "H", "u32": "I", "u64": "Q"}[width], int(value, 0))


def handle(text: str) -> int:
    if text == "root":
        return TC_H_ROOT
    major, _, minor = text.partition(":")
    return int(major or "0", 16) << 16 | int(minor or "0", 16)


def walk(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Attributes in `data`: offset, number, payload."""
    at = 0
    while at + 4 <= len(data):
        length, number = struct.unpack_from("=HH", data, at)
        if length < 4:
            return
        yield at, number & 0x3FFF, data[at + 4 : at + length]
        at += length + 3 & ~3


def allowed(policy: bytes) -> str:
    """Range that the policy of an attribute allows: NL_POLICY_TYPE_ATTR_MIN_VALUE_S and so on."""
    said = {number: payload for _, number, payload in walk(policy)}
    for least, most, kind, what in ((2, 3, "=q", ""), (4, 5, "=Q", ""), (6, 7, "=I", " bytes")):
        if most in said:
            low = struct.unpack(kind, said[least])[0] if least in said else 0
            return f"{low}..{struct.unpack(kind, said[most])[0]}{what}"
    return "no range"


class Netlink:
    def __init__(self) -> None:
        self.sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self.sock.setsockopt(SOL_NETLINK, NETLINK_EXT_ACK, 1)

    def request(self, kind: int, flags: int, body: bytes) -> bytes:
        message = struct.pack("=IHHII", 16 + len(body), kind, flags | NLM_REQUEST, 1, 0) + body
        self.sock.send(message)
        return message

    def ack(
        self, message: bytes, names: dict[int, str], ranges: bool = False
    ) -> tuple[int, str]:
        """Errno and text of the answer to `message`."""
        reply = self.sock.recv(65536)
        _, kind, flags, _, _ = struct.unpack_from("=IHHII", reply)
        assert kind == NLMSG_ERROR, f"unexpected netlink message {kind}"
        code = -struct.unpack_from("=i", reply, 16)[0]
        at = 16 + 4 + 16  # the request's header is always quoted, its body only after an error
        if code and not flags & NLM_F_CAPPED:
            at += len(message) - 16
        text, where = "", ""
        if flags & NLM_F_ACK_TLVS:
            for _, number, payload in walk(reply[at:]):
                if number == 1:
                    text = payload.rstrip(b"\0").decode()
                elif number == 2:
                    offset = struct.unpack("=I", payload)[0]
                    bad = struct.unpack_from("=H", message, offset + 2)[0] & 0x3FFF
                    where += f" (attribute {names.get(bad, bad)})"
                elif number == 4 and ranges:
                    where += f" {allowed(payload)}"
        return code, (text or "no text") + where


def body(dev: str, parent: int, own: int, options: bytes | None, kind: str) -> bytes:
    data = struct.pack("=BxxxiIII", 0, socket.if_nametoindex(dev), own, parent, 0)
    data += attribute(TCA_KIND, kind.encode() + b"\0")
    if options is not None:
        data += attribute(TCA_OPTIONS | NEST, options)
    return data


def dump(link: Netlink, dev: str, of: str) -> Iterator[bytes]:
    """The attribute TCA_OPTIONS of each such qdisc of a device, as the kernel sends it."""
    index = socket.if_nametoindex(dev)
    link.request(RTM_GETQDISC, NLM_DUMP, struct.pack("=BxxxiIII", 0, index, 0, 0, 0))
    while True:
        data = link.sock.recv(1 << 20)
        at = 0
        while at < len(data):
            length, kind = struct.unpack_from("=IH", data, at)
            if kind == NLMSG_DONE:
                return
            body = data[at + 36 : at + length]
            parts = {n: body[i : i + 4 + len(p)] for i, n, p in walk(body)}
            if parts[TCA_KIND][4:].rstrip(b"\0") == of.encode():
                yield parts[TCA_OPTIONS]
            at += length + 3 & ~3


def show(link: Netlink, dev: str, of: str, names: dict[int, str]) -> None:
    """Every option of such qdiscs of a device as sent by the kernel, in hex."""
    for options in dump(link, dev, of):
        print(json.dumps({names.get(n, str(n)): p.hex() for _, n, p in walk(options[4:])}))


def fail_each(link: Netlink, request: tuple[int, int, bytes], undo: bytes | None) -> int:
    """The request with every allocation failing in turn; `undo` deletes what it made."""
    Path("/sys/kernel/debug/failslab/ignore-gfp-wait").write_text("N")
    Path("/sys/kernel/debug/failslab/verbose").write_text("0")
    switch = os.open("/proc/thread-self/fail-nth", os.O_RDWR)
    count = {"refused": 0, "managed": 0, "unanswered": 0}
    for nth in range(1, 1000):
        os.pwrite(switch, str(nth).encode(), 0)
        code: int | None = None
        try:
            message = link.request(*request)
        except OSError as err:
            if err.errno not in (errno.ENOMEM, errno.ENOBUFS):
                raise
            code, message = err.errno, b""
        left = int(os.pread(switch, 16, 0))
        os.pwrite(switch, b"0", 0)
        if message:
            try:
                code = link.ack(message, {})[0]
            except OSError as err:
                if err.errno != errno.ENOBUFS:
                    raise
        if left:
            print(", ".join(f"{what} {n}" for what, n in count.items()))
            return code or 0
        count["unanswered" if code is None else "refused" if code else "managed"] += 1
        if undo and not code:
            again, text = link.ack(link.request(RTM_DELQDISC, NLM_ACK, undo), {})
            if again and code is not None:
                print(f"after allocation {nth} failed: cannot delete: {text}", file=sys.stderr)
                return again
    print("every one of 1000 allocations failed", file=sys.stderr)
    return errno.ELOOP


def main(words: list[str] | None = None) -> int:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    ap.add_argument("action", choices=[*FLAGS, "show", "replay"])
    ap.add_argument("dev")
    ap.add_argument("options", nargs="*", metavar="NAME=VALUE")
    ap.add_argument("--parent", default="root")
    ap.add_argument("--handle", default="0:")
    ap.add_argument("--kind", default="paqm")
    ap.add_argument("--no-options", action="store_true", help="leave TCA_OPTIONS out")
    ap.add_argument("--fail-each", action="store_true")
    ap.add_argument("--range", action="store_true", help="print what a refusal says is allowed")
    args = ap.parse_intermixed_args(words)
    known = attributes(args.kind)
    names = {number: name for name, (number, _) in known.items()}
    link = Netlink()
    if args.action == "show":
        show(link, args.dev, args.kind, names)
        return 0
    if args.action == "replay":
        shown = list(dump(link, args.dev, args.kind))[0]
        data = body(args.dev, handle(args.parent), handle(args.handle), None, args.kind)
        data += shown + b"\0" * (-len(shown) % 4)
        code, text = link.ack(link.request(RTM_NEWQDISC, NLM_ACK, data), names)
        if code:
            print(f"{errno.errorcode[code]}: {text}", file=sys.stderr)
        return 2 if code else 0
    options = b""
    for word in args.options:
        name, _, value = word.partition("=")
        number, width = (int(name[1:]), "u32") if name[0] == "@" else known[name]
        options += attribute(number, encode(value, width))
    data = body(args.dev, handle(args.parent), handle(args.handle),
                None if args.no_options else options, args.kind)
    request = (RTM_NEWQDISC, FLAGS[args.action] | NLM_ACK, data)
    if args.fail_each:
        return 2 if fail_each(link, request, None if args.action == "change" else data) else 0
    code, text = link.ack(link.request(*request), names, args.range)
    if code:
        print(f"{errno.errorcode[code]}: {text}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
