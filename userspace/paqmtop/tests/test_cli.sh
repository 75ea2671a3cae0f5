#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# paqmtop's command line, as far as it can be tried without the module: what it refuses, and how.
# Usage: test_cli.sh PAQMTOP. With the module: testbed/qemu/guest/paqmtop.sh
set -u
top=$1
status=0

# refused NAME PATTERN ARGUMENTS...
refused() {
	name=$1 pattern=$2
	shift 2
	if out=$("$top" "$@" 2>&1); then
		echo "not ok $name: accepted"
		status=1
	elif ! echo "$out" | grep -q -- "$pattern"; then
		echo "not ok $name: $out"
		status=1
	else
		echo "ok $name"
	fi
}

refused "interval too short" 'the interval must be a number from 0.1' -i 0.01
refused "interval no number" 'not "abc"' -i abc
refused "interval not a number by name" 'not "nan"' -i nan
refused "count of nothing" 'the count must be' -n 0
refused "unknown option" '^Usage:' --nonsense
if [ ! -d /sys/kernel/tracing/events/paqm ] && [ ! -d /sys/kernel/debug/tracing/events/paqm ]; then
	refused "module not loaded" 'modprobe sch_paqm\|run it as root' -n 1
fi
"$top" --help | grep -q -- --json || { echo "not ok help"; status=1; }
"$top" --version | grep -q '^paqmtop [0-9]' || { echo "not ok version"; status=1; }
exit $status
