# SPDX-License-Identifier: GPL-2.0
# Finds Go for what is written in it; to be sourced. Sets PATH, and the module cache below ours.
# Modules are pinned by go.sum; which proxy they come from is the user's configuration.

go_least=1.24 # Debian 13's, bookworm-backports'
go_found=
for go_dir in "$(dirname "$(command -v go || echo /)")" /usr/local/go/bin /usr/lib/go-*/bin; do
	[ -x "$go_dir/go" ] || continue
	go_has=$(GOTOOLCHAIN=local "$go_dir/go" env GOVERSION | sed 's/^go//; s/[^0-9.].*//')
	if [ "$(printf '%s\n' "$go_least" "$go_has" | sort -V | head -n 1)" = "$go_least" ]; then
		go_found=$go_dir
		break
	fi
done
if [ -z "$go_found" ]; then
	echo "Go $go_least or newer is missing: on Debian 13 apt-get install golang-go;" \
		"on Debian 12 enable bookworm-backports and apt-get install golang-1.24-go" >&2
	exit 2
fi
PATH=$go_found:$PATH
export PATH GOTOOLCHAIN=local GOFLAGS="${GOFLAGS:--buildvcs=false}"
