#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Prints what the routers allow the UDP flow from SOURCE-PORT to ADDRESS PORT, from Python.

Usage: follow.py SOURCE-PORT ADDRESS PORT
"""

import ctypes as ct
import os
import select
import signal
import sys


class Advice(ct.Structure):
    """struct paqm_client_advice of paqmclient.h."""

    _fields_ = [("flow", ct.c_int), ("cause", ct.c_int), ("rate_bps", ct.c_uint64),
                ("error", ct.c_int), ("seq", ct.c_uint32), ("router_id", ct.c_uint64),
                ("router", ct.c_char * 46), ("value", ct.c_float), ("qdelay_ms", ct.c_float),
                ("period_ms", ct.c_uint32), ("routers", ct.c_uint32), ("captured_ns", ct.c_uint64)]


# Ctrl-C and a reader that leaves end it without a word.
signal.signal(signal.SIGINT, signal.SIG_DFL)
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
if len(sys.argv) != 4:
    sys.exit(__doc__)
try:
    lib = ct.CDLL("libpaqmclient.so.0", use_errno=True)
    source_port, address, port = int(sys.argv[1]), sys.argv[2].encode(), int(sys.argv[3])
    if not (0 < source_port < 65536 and 0 < port < 65536):  # ctypes would cut them
        raise ValueError("a port is a number from 1 to 65535")
except (OSError, ValueError) as error:
    sys.exit(f"follow.py: {error}")
lib.paqm_client_open.restype = ct.c_void_p
lib.paqm_client_fd.argtypes = [ct.c_void_p]
lib.paqm_client_next.argtypes = [ct.c_void_p, ct.POINTER(Advice)]
lib.paqm_client_add.argtypes = [ct.c_void_p, ct.c_char_p, ct.c_uint16, ct.c_char_p, ct.c_uint16,
                                ct.c_uint32, ct.c_uint64, ct.c_uint64]

client = lib.paqm_client_open(None)
if not client:
    sys.exit(f"follow.py: PAQM_SOCKET: {os.strerror(ct.get_errno())}")
if lib.paqm_client_add(client, None, source_port, address, port, 0, 100_000, 5_000_000) < 0:
    sys.exit(f"follow.py: to {sys.argv[2]} port {port}: this cannot be a flow")
advice = Advice()
while True:
    select.select([lib.paqm_client_fd(client)], [], [])
    while lib.paqm_client_next(client, advice):
        print(advice.rate_bps, advice.router.decode(), flush=True)
