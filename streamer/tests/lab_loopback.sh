#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# test_loopback.py and test_call_*.py in virtual time (paqm-lab exec): media in real time
# on a machine that is busy come late or not at all, and would be missed here.
. "$(dirname "$0")/../../kernel/lab-tests/lib.sh"
ip link set lo up
check "send and recv over loopback" python3 "$here/test_loopback.py" "$1/streamer/paqm-streamer"
check "call over loopback" python3 "$here/test_call_loopback.py" "$1/streamer/paqm-streamer"
# each prints a line of its own
lines=$(python3 "$here/test_call_devices.py" "$1/streamer/paqm-streamer")
echo "$lines"
passed=$((passed + $(grep -c '^ok ' <<<"$lines")))
failed=$((failed + $(grep -c '^not ok ' <<<"$lines")))
result
