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
cd "$(dirname "$0")/../.."
. setup/fuzz-build.sh
fuzz_out "$1"
# shellcheck disable=SC2046 # flags are words
fuzz_build fuzzer,address,undefined fuzz browser/fuzz/fuzz_request.c browser/host/request.c \
	browser/host/own.c $(pkg-config --cflags --libs jansson)
exec setup/fuzz-run.sh "$out" "${2:-60}" -max_len=512 corpus "$top/browser/fuzz/corpus/request"
