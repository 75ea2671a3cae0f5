#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Meson's install script for the settings: those that are there are the administrator's, and stay.
# Usage: install_settings.sh FILE DIRECTORY
set -eu
to=${DESTDIR:-}$2/$(basename "$1")
[ -e "$to" ] || [ -L "$to" ] || install -D -m 644 "$1" "$to"
