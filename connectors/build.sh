#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Builds the connectors into the cache, where paqm-lab looks for them: static programs, which run in
# guests as they are.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
. ../setup/go.sh
target="${XDG_CACHE_HOME:-$HOME/.cache}/paqm/connectors"
mkdir -p "$target"
export CGO_ENABLED=0
# Which sources the programs are of, for paqm-lab sfu: none while they are being built.
rm -f "$target/sources"
sources=$(PYTHONPATH=../testbed "$target/../venv/bin/python" -c \
	'from paqm_lab import sfu_case; print(sfu_case.sources())')
go build -trimpath -o "$target/" ./cmd/...
# LiveKit's server is a large one: minutes, the first time. The others do without it.
if ! (cd livekit && go build -trimpath -o "$target/" ./cmd/...); then
	rm -f "$target/paqm-livekit" # of other sources
	echo "connectors: paqm-livekit is not built: it needs the modules of connectors/livekit/go.sum" >&2
fi
(cd ../clients/go && go build -trimpath -o "$target/" ./cmd/...)
echo "$sources" >"$target/sources"
echo "connectors: $target"
