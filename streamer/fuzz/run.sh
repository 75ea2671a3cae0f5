#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Build a fuzz target of the streamer with libFuzzer and run it (setup/fuzz-run.sh). New inputs and
# the count go to out/fuzz; the committed corpus is only read.
#
# Usage: run.sh rtph264|ladder|offer|ccfb|gate|decide|probe|payload [SECONDS]
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
*)
	echo "usage: $0 rtph264|ladder|offer|ccfb|gate|decide|probe|payload [SECONDS]" >&2
	exit 2
	;;
esac
top=$(cd "$(dirname "$0")/../.." && pwd)
cd "$top" # names relative to it: wherever the tree lies, the same program comes of it
src=streamer
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
"$cc" -std=gnu17 -D_GNU_SOURCE -g -O2 -fsanitize=fuzzer,address,undefined \
	-fno-sanitize-recover=undefined -fno-sanitize-coverage=trace-cmp \
	-ffile-prefix-map="$top=." -I. -o "$out/fuzz" "$src/fuzz/fuzz_$1.c" \
	$(test -z "$needs" || printf "$src/%s.c " $needs) \
	$(pkg-config --cflags --libs gio-unix-2.0 jansson) -lm
exec "$top/setup/fuzz-run.sh" "$out" "${2:-60}" -max_len=1024 corpus "$top/$src/fuzz/corpus/$1"
