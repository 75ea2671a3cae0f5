#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# An installation anew, as after an update of the clone, leaves the settings as they were changed.
# Usage: settings.sh BUILD
set -eu
export DESTDIR
DESTDIR=$(mktemp -d -t paqm-settings.XXXXXX)
trap 'rm -rf "$DESTDIR"' EXIT
umask 077
install() { meson install --no-rebuild --quiet -C "$1" >"$DESTDIR/log" 2>&1 || { cat "$DESTDIR/log"; exit 1; }; }
install "$1"
conf=$(find "$DESTDIR" -path '*/etc/paqm/paqmd.conf')
[ "$(stat -c %a "$conf")" = 644 ] || { echo "mode of paqmd.conf: $(stat -c %a "$conf")"; exit 1; }
echo 'require-auth yes' >>"$conf"
install "$1"
grep -qx 'require-auth yes' "$conf" || { echo "paqmd.conf is as it comes: a setting was lost"; exit 1; }
