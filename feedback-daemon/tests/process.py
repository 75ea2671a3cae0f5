#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What paqmd is besides its checks: two processes with few privileges, a configuration that is
read again, a service of the service manager, a helper in search of reasons. The real programs,
real packets, two network namespaces. Needs root (exit code 77, "skipped", otherwise). What the
kernel cannot do is left out, unless --all demands it.

Usage: process.py [--all] PAQMD PAQMCTL
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from clients import (
    check_many_groups,
    check_many_sockets,
    check_open_source,
    check_rights,
    check_rude,
    check_shares,
)
from commands import check_host_key, check_paqmctl, check_why
from devices import (
    check_batches,
    check_container,
    check_early,
    check_guest,
    check_netlink,
    check_own_queue,
    check_stacks,
    check_vlan,
)
from faults import (
    check_closed,
    check_flood,
    check_hangs,
    check_opener,
    check_sleep,
    check_starved,
    check_unread_pipe,
    check_unread_terminal,
)
from privileges import (
    check_credential,
    check_left_socket,
    check_manager,
    check_refused,
    check_service_user,
    check_shape,
    check_silence,
    check_umask,
    check_weak_root,
)
from rig import Trial, run_checks
from settings import check_absent, check_config, check_other_names, check_reload

CHECKS: list[Callable[[Trial], None]] = [
    check_config, check_paqmctl, check_shape, check_silence, check_service_user, check_credential,
    check_left_socket, check_umask, check_weak_root, check_reload, check_absent, check_other_names,
    check_netlink, check_vlan, check_stacks, check_guest, check_early, check_own_queue,
    check_container, check_why, check_manager, check_rude, check_shares, check_rights,
    check_many_groups, check_host_key, check_open_source, check_many_sockets, check_batches,
    check_refused, check_sleep, check_flood, check_starved, check_opener, check_hangs,
    check_unread_pipe, check_unread_terminal, check_closed,
]


# What others on the same host may try: a guest on its bridge, other users, a process of its own
# that was taken over.
LOCAL: list[Callable[[Trial], None]] = [
    check_silence, check_guest, check_netlink, check_rude, check_shares, check_rights,
    check_open_source, check_starved,
]

if __name__ == "__main__":
    sys.exit(run_checks("PAQMD PAQMCTL", LOCAL if "--local" in sys.argv else CHECKS))
