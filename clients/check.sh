#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Builds and tests the clients in Go and Rust: vectors, broken records for SECONDS (10), and the real
# paqmd of the Meson build directory BUILD. Usage: clients/check.sh BUILD [SECONDS]
set -euo pipefail
top=$(dirname "$(dirname "$(readlink -f "$0")")")
build=$(readlink -f "$1")
seconds=${2:-10}
out="${XDG_CACHE_HOME:-$HOME/.cache}/paqm/clients"
mkdir -p "$out"
. "$top/setup/or-skipped.sh"
daemon() {
	or_skipped "$top/clients/tests/daemon.py" "$build/feedback-daemon/paqmd" \
		"$build/feedback-daemon/paqmctl" "$1"
}

echo "clients: Go"
. "$top/setup/go.sh"
cd "$top/clients/go"
go vet ./...
go test ./...
go test -run '^$' -fuzz FuzzDecode -fuzztime "${seconds}s" .
go build -o "$out/paqm-follow" ./cmd/paqm-follow
daemon "$out/paqm-follow"

echo "clients: Rust"
if ! command -v cargo >/dev/null; then
	echo "clients: cargo is missing: install Rust 1.73 or newer (Debian 13: cargo)" >&2
	exit 2
fi
cd "$top/clients/rust"
export CARGO_TARGET_DIR="$out/rust"
cargo test --quiet --locked --offline
cargo build --quiet --locked --offline --example follow
daemon "$out/rust/debug/examples/follow"
echo "clients: all passed"
