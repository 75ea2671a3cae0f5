#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Installs what `make call-live` needs beside everything else (root), and runs it: first the screen of
# a Wayland session (streamer/lab/screen.py), then the calls.
# Usage: testbed/call-live.sh OUTPUT [--duration S]
set -eu
here=$(dirname "$(readlink -f "$0")")
. "$here/qemu/lib.sh"
say() { printf 'call-live: %s\n' "$*" >&2; }
plugins=$(pkg-config --variable=pluginsdir gstreamer-1.0)
install_missing Xvfb:xvfb "$plugins/libgstalsa.so:gstreamer1.0-alsa" \
	"$plugins/libgstximagesink.so:gstreamer1.0-x" "$plugins/libgstpipewire.so:gstreamer1.0-pipewire" \
	/usr/libexec/xdg-desktop-portal:xdg-desktop-portal dbus-run-session:dbus-daemon \
	pipewire:pipewire pw-dump:pipewire-bin wireplumber:wireplumber gdbus:libglib2.0-bin
out=$1
shift
status=0
/usr/bin/python3 "$here/../streamer/lab/screen.py" --build "${PAQM_BUILD:-$here/../build}" || status=1
"$here/paqm-lab" call-live --out "$out" "$@" || status=1
exit $status
