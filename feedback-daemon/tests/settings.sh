#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What is installed below any prefix: units start programs that are there and run, and paqmd with
# the settings that came with it. An installation anew, as after an update of the clone, leaves the
# settings as they were changed.
# Usage: settings.sh BUILD
set -eu
here=$(dirname "$(readlink -f "$0")")
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

units=$(dirname "$(find "$DESTDIR" -name paqmd.service)")
for unit in paqmd.service rlqosd.service paqm-meet.service paqm-trial@.service; do
	program=$(sed -n 's/^ExecStart=\([^ ]*\).*/\1/p' "$units/$unit")
	"$DESTDIR$program" --help >"$DESTDIR/log" 2>&1 ||
		{ echo "$unit starts $program: $(tail -n 1 "$DESTDIR/log")"; exit 1; }
done
read=$(sed -n 's/^ExecStart=.* --config //p' "$units/paqmd.service")
[ "$DESTDIR${read:=/etc/paqm/paqmd.conf}" = "$conf" ] ||
	{ echo "paqmd.service has paqmd read $read, not ${conf#"$DESTDIR"}"; exit 1; }

# No staging, said as makefiles do.
mkdir "$DESTDIR/here"
(cd "$DESTDIR/here" && MESON_BUILD_ROOT=$1 DESTDIR='' \
	"$here/../../browser/install_extension.py" browser/extension "$DESTDIR/there")
[ -e "$DESTDIR/there/manifest.json" ] ||
	{ echo "with DESTDIR= the extension goes elsewhere"; exit 1; }
