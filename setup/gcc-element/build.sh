#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Builds the GStreamer plugin rsrtp, which has rtpgccbwe (Google congestion control), into the cache
# where paqm-lab looks for it. Optional: only the controller gcc needs it.
set -eu
cd "$(dirname "$(readlink -f "$0")")"
cache="${XDG_CACHE_HOME:-$HOME/.cache}/paqm"
target="$cache/gstreamer-plugins"
if [ -e "$target/libgstrsrtp.so" ]; then
	echo "gcc-element: $target/libgstrsrtp.so is there"
	exit 0
fi
if ! command -v cargo >/dev/null; then
	echo "gcc-element: cargo is missing: install Rust 1.92 or newer" >&2
	exit 2
fi
mkdir -p "$target"
echo "gcc-element: building (a minute, 300 MB in $cache/gcc-element)"
CARGO_TARGET_DIR="$cache/gcc-element" cargo build --release --locked --quiet -p gst-plugin-rtp
# Some versions of cargo put a hash into the name.
built=("$cache"/gcc-element/release/deps/libgstrsrtp*.so)
cp "${built[0]}" "$target/libgstrsrtp.so"
echo "gcc-element: $target/libgstrsrtp.so"
