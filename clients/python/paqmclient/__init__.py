# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Follow the rate advice of P-AQM routers: a client of paqmd in Python, without dependencies.

    client = Client()
    flow = client.add("", 5004, "192.0.2.7", 6000, ssrc=0x1234, ceiling_bps=3_000_000)
    while advice := client.next():
        print(advice.cause.name, advice.rate_bps)

In asyncio: `async for advice in client.updates()`. A rate is an upper bound in bit/s at the IP
level, headers included. Send no more; follow it within a frame; keep your own congestion control,
and rely on it alone while there is no advice (rate_bps 0).
"""

from paqmclient.client import GRACE, PATH, Advice, Client
from paqmclient.records import Cause, Rate, RecordError, Registered, Registration

__all__ = [
    "GRACE", "PATH", "Advice", "Cause", "Client", "Rate", "RecordError", "Registered",
    "Registration",
]  # fmt: skip
