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
top=$(cd "$(dirname "$0")/../.." && pwd)
cd "$top" # names relative to it: wherever the tree lies, the same program comes of it
src=feedback-daemon
longest=1024
# Three packets: more are slower, and find no more.
case $1 in conf | message | offline) longest=512 ;; esac
out=${FUZZ_OUT:-$top/out/fuzz}/$1
cc=${CC:-clang}
command -v "$cc" >/dev/null || {
	echo "$0: no compiler '$cc': install clang and its libFuzzer runtime, or set CC" >&2
	exit 1
}
mkdir -p "$out/corpus"
# What the parsers compare with is in the corpus: to trace comparisons would find no more and take a
# third of the time.
# shellcheck disable=SC2046,SC2059,SC2086 # flags and names are words
"$cc" -std=gnu17 -g -O2 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
	-fno-sanitize-coverage=trace-cmp -ffile-prefix-map="$top=." -DENGINE_FLOWS=16 \
	-DENGINE_HASH=16U -DPAQM_VERSION='"fuzz"' -I. -o "$out/fuzz" "$src/fuzz/fuzz_$1.c" \
	$(printf "$src/%s.c " $needs) \
	$(pkg-config --cflags --libs jansson libpcap)
exec "$top/setup/fuzz-run.sh" "$out" "${2:-60}" -max_len="$longest" corpus "$top/$src/fuzz/corpus/$1"
