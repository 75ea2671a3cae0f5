# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Shared by the static checks: one line for each, `failed` tells whether any did.
failed=0

# lint NAME COMMAND...: the command's status decides; its words are shown if it fails
lint() {
	local name=$1 out
	shift
	if out=$("$@" 2>&1); then
		echo "ok $name"
	else
		echo "not ok $name"
		printf '%s\n' "$out" | head -n 40 | sed 's/^/    /'
		failed=1
	fi
}
