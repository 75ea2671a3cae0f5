# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Shared by the scripts of this directory: messages, the cache, packages that only they need.

say() { printf 'qemu: %s\n' "$*" >&2; }
fail() {
	printf 'qemu: %s\n' "$*" >&2
	exit 2
}

cache_dir() { printf '%s\n' "${XDG_CACHE_HOME:-$HOME/.cache}/paqm"; }

need_root() { [ "$(id -u)" -eq 0 ] || fail "$1 needs root: run it with sudo"; }

# need_space DIRECTORY MEGABYTES
need_space() {
	local free
	mkdir -p "$1"
	free=$(df --output=avail -m "$1" | tail -n 1 | tr -d ' ')
	[ "$free" -ge "$2" ] || fail "$1 needs $2 MB, $free MB are free; see XDG_CACHE_HOME"
}

# install_missing COMMAND_OR_FILE:PACKAGE...: quietly, and only what is not there
install_missing() {
	local pair missing=()
	for pair; do
		command -v "${pair%%:*}" >/dev/null || [ -e "${pair%%:*}" ] || missing+=("${pair#*:}")
	done
	[ "${#missing[@]}" -gt 0 ] || return 0
	need_root "installing ${missing[*]}"
	say "installing ${missing[*]}"
	mkdir -p "$(cache_dir)/qemu"
	local log get=(env DEBIAN_FRONTEND=noninteractive apt-get -q -y)
	log="$(cache_dir)/qemu/apt.log"
	"${get[@]}" install --no-install-recommends "${missing[@]}" >"$log" 2>&1 ||
		{ "${get[@]}" update >>"$log" 2>&1 &&
			"${get[@]}" install --no-install-recommends "${missing[@]}" >>"$log" 2>&1; } ||
		fail "apt-get failed, see $log: $(tail -n 1 "$log")"
}

codename() { sed -n 's/^VERSION_CODENAME=//p' /etc/os-release; }

# The address of the archive, from this machine's own sources.
archive() {
	PYTHONPATH="$(dirname "${BASH_SOURCE[0]}")/.." python3 -m paqm_lab.apt ||
		fail "no address to fetch packages from"
}
