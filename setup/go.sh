# SPDX-License-Identifier: GPL-2.0
# Finds Go for what is written in it, or fetches Debian's into the cache; to be sourced. Sets PATH.
# Modules are pinned by go.sum; which proxy they come from is the user's configuration.

go_least=1.24
go_find() {
	local dir has
	for dir in "$(dirname "$(command -v go || echo /)")" /usr/local/go/bin /usr/lib/go-*/bin; do
		[ -x "$dir/go" ] || continue
		has=$(GOTOOLCHAIN=local "$dir/go" env GOVERSION | sed 's/^go//; s/[^0-9.].*//')
		if [ "$(printf '%s\n' "$go_least" "$has" | sort -V | head -n 1)" = "$go_least" ]; then
			echo "$dir"
			return
		fi
	done
	PYTHONPATH="$(dirname "${BASH_SOURCE[0]}")/../testbed" \
		"${XDG_CACHE_HOME:-$HOME/.cache}/paqm/venv/bin/python" -m paqm_lab.golang
}

if ! go_found=$(go_find) || [ -z "$go_found" ]; then
	echo "Go $go_least or newer is missing; Debian 13 has it: golang-go" >&2
	exit 2
fi
PATH=$go_found:$PATH
GOTOOLCHAIN=local
GOFLAGS=${GOFLAGS:--buildvcs=false}
# Tests are programs that are made for a moment.
TMPDIR=$(PYTHONPATH="$(dirname "${BASH_SOURCE[0]}")/../testbed" \
	python3 -c 'from paqm_lab import cache; print(cache.scratch_dir())')
export PATH GOTOOLCHAIN GOFLAGS TMPDIR
