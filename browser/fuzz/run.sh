#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Build the fuzz target with libFuzzer and run it (setup/fuzz-run.sh). New inputs and the count go to
# out/fuzz; the committed corpus is only read.
#
# Usage: run.sh native-request [SECONDS]
set -eu
case "${1:-}" in
native-request) ;;
*)
	echo "usage: $0 native-request [SECONDS]" >&2
	exit 2
	;;
esac
top=$(cd "$(dirname "$0")/../.." && pwd)
cd "$top" # names relative to it: wherever the tree lies, the same program comes of it
out=${FUZZ_OUT:-$top/out/fuzz}/$1
cc=${CC:-clang}
command -v "$cc" >/dev/null || {
	echo "$0: no compiler '$cc': install clang and its libFuzzer runtime, or set CC" >&2
	exit 1
}
mkdir -p "$out/corpus"
# shellcheck disable=SC2046 # flags are words
"$cc" -std=gnu17 -g -O2 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
	-ffile-prefix-map="$top=." -I. -o "$out/fuzz" browser/fuzz/fuzz_request.c browser/host/request.c \
	browser/host/own.c $(pkg-config --cflags --libs jansson)
exec "$top/setup/fuzz-run.sh" "$out" "${2:-60}" -max_len=512 corpus "$top/browser/fuzz/corpus/request"
