#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Build a fuzz target with libFuzzer and run it (setup/fuzz-run.sh). New inputs and the count go to
# out/fuzz; the committed corpus is only read.
#
# Usage: run.sh message|record|request|keys|offline|conf|batch|neighbour [SECONDS]
set -eu
# Only what a target needs: the count holds as long as that is the same.
engine="judge/engine judge/flows judge/media judge/message judge/routers judge/allow judge/ring judge/keys"
case "${1:-}" in
message) needs=$engine ;;
record) needs="sockets/record $engine" ;;
request) needs="sockets/request $engine" ;;
offline) needs="capture/offline capture/batch sockets/request $engine" ;;
conf) needs="conf judge/allow" ;;
keys) needs=judge/keys ;;
batch) needs=capture/batch ;;
neighbour) needs=neighbour/neighbours ;;
*)
	echo "usage: $0 message|record|request|keys|offline|conf|batch|neighbour [SECONDS]" >&2
	exit 2
	;;
esac
cd "$(dirname "$0")/../.."
. setup/fuzz-build.sh
fuzz_out "$1"
src=feedback-daemon
longest=1024
# Three packets: more are slower, and find no more.
case $1 in conf | message | offline) longest=512 ;; esac
# shellcheck disable=SC2046,SC2059,SC2086 # flags and names are words
fuzz_build fuzzer,address,undefined fuzz -DENGINE_FLOWS=16 -DENGINE_HASH=16U \
	-DPAQM_VERSION='"fuzz"' "$src/fuzz/fuzz_$1.c" $(printf "$src/%s.c " $needs) \
	$(pkg-config --cflags --libs jansson libpcap)
exec setup/fuzz-run.sh "$out" "${2:-60}" -max_len="$longest" corpus "$top/$src/fuzz/corpus/$1"
