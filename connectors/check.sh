#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Tests of the connectors: Go's own, each parser fuzzed for SECONDS (5), and with the real paqmd the
# module for mediasoup, the channel of Jitsi Videobridge, LiveKit, and Janus if it is installed.
# Usage: connectors/check.sh BUILD [SECONDS]
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
build=$(readlink -f "$1")
seconds=${2:-5}
cache="${XDG_CACHE_HOME:-$HOME/.cache}/paqm"
cd "$here"
. ../setup/go.sh
. ../setup/or-skipped.sh
export CGO_ENABLED=0 # as build.sh: nothing is compiled twice
go vet ./... paqm.example/connectors/share
go test ./... paqm.example/connectors/share
if [ -x "$cache/connectors/paqm-livekit" ]; then
	(cd livekit && go vet ./... && go test ./...)
fi
node --test tests/follower.test.js
for target in ./media:FuzzIVF ./media:FuzzBeginsKey ./cmd/paqm-janus:FuzzPair ./cmd/paqm-janus:FuzzAnswer \
	./cmd/paqm-jitsi:FuzzCheck ./cmd/paqm-jitsi:FuzzChannel ./cmd/paqm-sfu-load:FuzzParts; do
	go test -run '^$' -fuzz "${target#*:}\$" -fuzztime "${seconds}s" "${target%%:*}"
done
layers=$(cd ../testbed && "$cache/venv/bin/python" -c \
	'from paqm_lab import sfu_layers; print(sfu_layers.prepare(lambda text: None))')
tools=("$build/feedback-daemon/paqmd" "$build/feedback-daemon/paqmctl")
or_skipped tests/mediasoup.py "${tools[@]}" "$cache/connectors/paqm-follow"
or_skipped tests/jitsi.py "${tools[@]}" "$cache/connectors/paqm-jitsi"
# in virtual time: which layer fits is judged by rates
or_skipped ../testbed/paqm-lab exec --timeout 1800 sh -c \
	'exec python3 "$1" "$PAQM_BUILD/feedback-daemon/paqmd" "$PAQM_BUILD/feedback-daemon/paqmctl" "$2" "$3"' \
	sh "$here/tests/livekit.py" "$cache/connectors" "$layers"
or_skipped tests/janus.py "${tools[@]}" "$cache/connectors" "$layers"
echo "connectors: all passed"
