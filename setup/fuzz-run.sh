#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Runs a fuzz target that has been built, for a time or until it has been executed so often, and
# keeps the count: a run that was interrupted is gone on with. Called by the run.sh of the targets.
# The count holds for one program; when that changes, it begins anew (the inputs found stay).
#
# Usage: fuzz-run.sh DIRECTORY SECONDS OPTION...    in the DIRECTORY: fuzz, corpus; kept: count, log
# Environment: RUNS=N: until N executions in all, however long it takes
set -u
dir=$1
seconds=$2
shift 2
cd "$dir" || exit 2
# Half the time would go into remembering who allocated what; a finding is looked at without this.
export ASAN_OPTIONS="${ASAN_OPTIONS:-malloc_context_size=0:quarantine_size_mb=1:thread_local_quarantine_size_kb=64}"
name=$(basename "$dir")
program=$(sha256sum fuzz | cut -c 1-16)
read -r counted count 2>/dev/null <count || counted=none
[ "$counted" = "$program" ] || count=0
wanted=${RUNS:-0}
if [ "$wanted" -gt 0 ]; then
	seconds=60 # then the count is written
	[ "$count" -lt "$wanted" ] || {
		echo "fuzz $name: $count executions, none of them with a finding"
		exit 0
	}
fi
while :; do
	./fuzz -max_total_time="$seconds" -print_final_stats=1 -verbosity=1 "$@" >log 2>&1
	status=$?
	did=$(sed -n 's/^stat::number_of_executed_units: *//p' log)
	count=$((count + ${did:-0}))
	echo "$program $count" >count
	if [ "$status" -eq 72 ]; then # libFuzzer's word for an interrupt
		echo "fuzz $name: stopped after $count executions in all, none of them with a finding"
		exit 130
	fi
	if [ "$status" -ne 0 ]; then
		tail -n 40 log >&2
		echo "fuzz $name: a finding after $count executions; the input lies in $PWD" >&2
		exit "$status"
	fi
	echo "fuzz $name: ${did:-0} executions in $(sed -n 's/^Done .* in \([0-9]*\) second.*/\1/p' log) s," \
		"$count in all, none of them with a finding"
	[ "$count" -lt "$wanted" ] || break
done
