#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Build the fuzz target of the recogniser with libFuzzer and run it. It begins with the
# packets of packets.h; new inputs go to a directory outside of the tree.
#
# Usage: run.sh [SECONDS]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
top=$here/../..
out=${FUZZ_OUT:-${TMPDIR:-/tmp}/paqm-fuzz}/classify
cc=${CC:-clang}
command -v "$cc" >/dev/null || {
	echo "$0: no compiler '$cc': install clang and its libFuzzer runtime, or set CC" >&2
	exit 1
}
mkdir -p "$out/corpus" "$out/cases"
build() { # sanitizers, program, source
	"$cc" -std=gnu17 -g -O1 -fsanitize="$1" -fno-sanitize-recover=undefined \
		-I"$here/shim" -I"$top" -I"$top/kernel" -o "$out/$2" "$here/$3"
}
build address,undefined cases-program cases.c
build fuzzer,address,undefined fuzz fuzz_classify.c
cd "$out"
./cases-program
./cases-program --corpus cases
exec ./fuzz -max_total_time="${1:-60}" -max_len=512 corpus cases
