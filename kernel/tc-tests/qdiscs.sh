#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Qdiscs and statistics of a device as JSON: qdiscs.sh DEVICE
# tc of iproute2 6.1 leaves out the key of taprio's schedule that has not begun.
${TC:-tc} -s -j qdisc show dev "$1" | sed 's/,{"base_time"/,"admin":{"base_time"/'
