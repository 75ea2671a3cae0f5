#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Build a fuzz target of the streamer with libFuzzer and run it (setup/fuzz-run.sh). New inputs and
# the count go to out/fuzz; the committed corpus is only read.
#
# Usage: run.sh rtph264|ladder|offer|ccfb|gate|decide|probe|payload|meet [SECONDS]
set -eu
# Only what a target needs: the count holds as long as that is the same.
case "${1:-}" in
rtph264) needs=trace/rtph264 ;;
ladder) needs="trace/ladder trace/rtph264 options" ;;
offer) needs="call/offer options" ;;
ccfb) needs=rtp/ccfb ;;
gate) needs=rtp/gate ;;
# with all controllers, whose files are those of the tables
decide) needs="$(sed -n 's/^CTL_KIND(.*, \(.*\)\.c)$/control\/\1/p' "$(dirname "$0")/../control/kinds.h" | sort -u)
	control/control control/feedback control/marks decide/decide decide/rafchoice rtp/probe
	$(sed -n 's/^DEC_KIND(.*, \(.*\)\.c)$/decide\/\1/p' "$(dirname "$0")/../decide/kinds.h" | sort -u)" ;;
probe) needs=rtp/probe ;;
payload) needs= ;;
meet) needs="meet/words meet/room" ;;
*)
	echo "usage: $0 rtph264|ladder|offer|ccfb|gate|decide|probe|payload|meet [SECONDS]" >&2
	exit 2
	;;
esac
cd "$(dirname "$0")/../.."
. setup/fuzz-build.sh
fuzz_out "$1"
src=streamer
# shellcheck disable=SC2046,SC2059,SC2086 # flags and names are words
fuzz_build fuzzer,address,undefined fuzz -D_GNU_SOURCE "$src/fuzz/fuzz_$1.c" \
	$(test -z "$needs" || printf "$src/%s.c " $needs) \
	$(pkg-config --cflags --libs gio-unix-2.0 jansson) -lm
exec setup/fuzz-run.sh "$out" "${2:-60}" -max_len=1024 corpus "$top/$src/fuzz/corpus/$1"
