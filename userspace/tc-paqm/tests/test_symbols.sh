#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Every symbol the plugin leaves open must be exported by tc, or be libc's or libm's (those carry
# a version). Checks the installed tc; further ones, of other releases, as extra arguments.
# Usage: test_symbols.sh q_QDISC.so [TC...]
set -eu
plugin=$1
shift
name=$(basename "$plugin" .so | sed 's/^q_//')
if ! nm -D "$plugin" | grep -q " D ${name}_qdisc_util\$"; then
	echo "$plugin: does not define ${name}_qdisc_util, which tc looks up" >&2
	exit 1
fi
wanted=$(nm -D --undefined-only "$plugin" | awk '$1 == "U" && $2 !~ /@/ { print $2 }' | sort)
[ -n "$wanted" ] || {
	echo "$plugin: no open symbol found; is nm reading the right file?" >&2
	exit 1
}
status=0
for tc in "$(command -v tc || echo /sbin/tc)" "$@"; do
	exported=$(nm -D --defined-only "$tc" | awk '{ print $3 }')
	count=$(echo "$exported" | wc -l)
	for symbol in $wanted; do
		if ! echo "$exported" | grep -qx "$symbol"; then
			echo "$tc exports no $symbol: the plugin would not load" >&2
			status=1
		fi
	done
	echo "$tc: $(echo "$wanted" | wc -l) symbols used of $count"
done
exit $status
