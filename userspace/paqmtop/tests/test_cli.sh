#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# paqmtop's command line, as far as it can be tried without the module: what it refuses, and how.
# Usage: test_cli.sh PAQMTOP. With the module: testbed/qemu/guest/paqmtop.sh
set -u
top=$1
status=0

# refused STATUS NAME PATTERN ARGUMENTS...
refused() {
	wanted=$1 name=$2 pattern=$3
	shift 3
	out=$("$top" "$@" 2>&1)
	got=$?
	if [ $got -ne "$wanted" ]; then
		echo "not ok $name: status $got"
		status=1
	elif ! echo "$out" | grep -q -- "$pattern"; then
		echo "not ok $name: $out"
		status=1
	else
		echo "ok $name"
	fi
}

refused 2 "interval too short" 'the interval must be a number from 0.1' -i 0.01
refused 2 "interval no number" 'not "abc"' -i abc
refused 2 "interval not a number by name" 'not "nan"' -i nan
refused 2 "count of nothing" 'the count must be' -n 0
refused 2 "unknown option" '^Usage:' --nonsense
if [ ! -d /sys/kernel/tracing/events/paqm ] && [ ! -d /sys/kernel/debug/tracing/events/paqm ]; then
	refused 1 "module not loaded" 'modprobe sch_paqm\|run it as root' -n 1
fi
# a user who may not look into tracefs, and no debugfs
hide='mount -t tmpfs -o mode=0 none /sys/kernel/tracing && mount -t tmpfs none /sys/kernel/debug'
if unshare -m sh -c "$hide" 2>/dev/null; then
	real=$top
	top=unshare
	refused 1 "no rights" 'run it as root' -m sh -c "$hide"' &&
		setpriv --bounding-set=-dac_override,-dac_read_search "$1" -n 1' sh "$real"
	top=$real
fi
"$top" --help | grep -q -- --json || { echo "not ok help"; status=1; }
"$top" --version | grep -q '^paqmtop [0-9]' || { echo "not ok version"; status=1; }
exit $status
