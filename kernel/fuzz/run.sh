#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Build a fuzz target with libFuzzer and run it: the recogniser (classify), or the rates
# in media packets (inband). It begins with the packets of the tests; new inputs and the count
# (setup/fuzz-run.sh) go to out/fuzz.
#
# Usage: run.sh classify|inband [SECONDS]
set -eu
cd "$(dirname "$0")/../.."
. setup/fuzz-build.sh
src=kernel/fuzz
case ${1:-} in
classify) unit=kernel/paqm_classify.c sources=$src/cases.c ;;
inband) unit= sources="$src/fuzz_inband.c $src/inband_replay.c" ;;
*)
	echo "Usage: $0 classify|inband [SECONDS]" >&2
	exit 2
	;;
esac
fuzz_out "$1"
mkdir -p "$out/cases"
# shellcheck disable=SC2086 # words
fuzz_build address,undefined cases-program -I$src/shim -Ikernel $sources $unit
# shellcheck disable=SC2086 # words
fuzz_build fuzzer,address,undefined fuzz -I$src/shim -Ikernel "$src/fuzz_$1.c" $unit
(cd "$out" && ./cases-program && ./cases-program --corpus cases)
exec setup/fuzz-run.sh "$out" "${2:-60}" -max_len=512 corpus cases
