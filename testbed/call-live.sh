#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Installs what `make call-live` needs beside everything else (root), and runs it.
# Usage: testbed/call-live.sh OUTPUT [--duration S]
set -eu
here=$(dirname "$(readlink -f "$0")")
. "$here/qemu/lib.sh"
say() { printf 'call-live: %s\n' "$*" >&2; }
plugins=$(pkg-config --variable=pluginsdir gstreamer-1.0)
install_missing Xvfb:xvfb "$plugins/libgstalsa.so:gstreamer1.0-alsa" \
	"$plugins/libgstximagesink.so:gstreamer1.0-x"
out=$1
shift
exec "$here/paqm-lab" call-live --out "$out" "$@"
