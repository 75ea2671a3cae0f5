#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Build a fuzz target with libFuzzer and run it: the recogniser (classify), or the rates
# in media packets (inband). It begins with the packets of the tests; new inputs and the count
# (setup/fuzz-run.sh) go to out/fuzz.
#
# Usage: run.sh classify|inband [SECONDS]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
target=${1:-}
case $target in
classify) unit=../paqm_classify.c sources=cases.c ;;
inband) unit= sources="fuzz_inband.c inband_replay.c" ;;
*)
	echo "Usage: $0 classify|inband [SECONDS]" >&2
	exit 2
	;;
esac
out=${FUZZ_OUT:-$top/out/fuzz}/$target
cc=${CC:-clang}
command -v "$cc" >/dev/null || {
	echo "$0: no compiler '$cc': install clang and its libFuzzer runtime, or set CC" >&2
	exit 1
}
mkdir -p "$out/corpus" "$out/cases"
# The packets of the tests hold what the recogniser compares with: to trace comparisons would find
# no more and take a third of the time.
build() { # sanitizers, program, sources
	sanitizers=$1
	program=$2
	shift 2
	(cd "$here" && "$cc" -std=gnu17 -g -O2 -fsanitize="$sanitizers" \
		-fno-sanitize-recover=undefined -fno-sanitize-coverage=trace-cmp \
		-ffile-prefix-map="$top=." \
		-Ishim -I../.. -I.. \
		-o "$out/$program" "$@")
}
# shellcheck disable=SC2086 # words
build address,undefined cases-program $sources $unit
# shellcheck disable=SC2086 # words
build fuzzer,address,undefined fuzz "fuzz_$target.c" $unit
(cd "$out" && ./cases-program && ./cases-program --corpus cases)
exec "$top/setup/fuzz-run.sh" "$out" "${2:-60}" -max_len=512 corpus cases
