#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Runs all fuzz targets, one after the other; prints `ok NAME` or `not ok NAME` for each.
# Usage: setup/fuzz.sh SECONDS    (each)
# Environment: RUNS=N: until each was executed N times in all; see fuzz-run.sh
set -u
cd "$(dirname "$(readlink -f "$0")")/.." || exit 2
seconds=${1:-}
case "$seconds" in
'' | *[!0-9]*)
	sed -n '3,5s/^# //p' "$0"
	[ "$seconds" = -h ] || [ "$seconds" = --help ]
	exit
	;;
esac
failed=0
for target in kernel/inband kernel/classify feedback-daemon/record feedback-daemon/request \
	feedback-daemon/keys streamer/offer streamer/ladder streamer/rtph264 streamer/ccfb streamer/gate streamer/decide streamer/payload \
	streamer/probe streamer/meet \
	feedback-daemon/message \
	feedback-daemon/conf feedback-daemon/offline feedback-daemon/batch feedback-daemon/neighbour browser/native-request \
	userspace/paqm-trial/report; do
	"${target%/*}/fuzz/run.sh" "${target#*/}" "$seconds"
	status=$?
	[ "$status" -ne 130 ] || exit 130 # stopped by the user
	if [ "$status" -eq 0 ]; then
		echo "ok fuzz: ${target#*/}"
	else
		echo "not ok fuzz: ${target#*/}"
		failed=1
	fi
done
exit "$failed"
