#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Prepares this machine for `make demo` and `make test`: Debian packages, a Python environment and
# the node modules of the rival sender, the latter two in the user's cache. Changes nothing that is
# already right; a second call costs a moment. With PAQM_NO_APT=1 it asks for no Debian packages: what
# packages.txt has, or another system's equivalents, are then yours to install.
set -euo pipefail

# Services and some containers have none, and the cache is in it.
export HOME="${HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)}"
here=$(dirname "$(readlink -f "$0")")
top=$(dirname "$here")
cache="${XDG_CACHE_HOME:-$HOME/.cache}/paqm"
rival="$top/testbed/rivals/webrtc"
# Kernel source and two builds, the image, Python, node, the clip, and the results of one demo in flight.
need_mb=11000

say() { printf 'setup: %s\n' "$*"; }
fail() {
	printf 'setup: %s\n' "$*" >&2
	exit 2
}

installed() { dpkg-query -W -f '${db:Status-Abbrev}' "$1" 2>/dev/null | grep -q '^ii'; }

missing_packages() {
	local package command
	while read -r package command; do
		case "$package" in '' | '#'*) continue ;; esac
		if [ -n "$command" ] && command -v "$command" >/dev/null; then
			continue
		fi
		installed "$package" || echo "$package"
	done <"$here/packages.txt"
}

install_packages() {
	local missing all become=()
	all=$(sed -nE 's/^([a-z][^ ]*).*/\1/p' "$here/packages.txt" | tr '\n' ' ')
	if [ "${PAQM_NO_APT:-}" = 1 ]; then
		say "Debian packages: passed over (PAQM_NO_APT=1); needed are the equivalents of: $all"
		return
	fi
	if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
		fail "this is not a Debian system: install the equivalents of: ${all}and set PAQM_NO_APT=1"
	fi
	mapfile -t missing < <(missing_packages)
	if [ "${#missing[@]}" -eq 0 ]; then
		say "Debian packages: all there"
		return
	fi
	if [ "$(id -u)" -ne 0 ]; then
		command -v sudo >/dev/null ||
			fail "packages are missing and there is no sudo; as root: apt-get install ${missing[*]}"
		become=(sudo)
	fi
	say "Debian packages: installing ${missing[*]}"
	local log="$cache/apt.log"
	local get=("${become[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y)
	"${get[@]}" install --no-install-recommends "${missing[@]}" >"$log" 2>&1 ||
		{ "${get[@]}" update >>"$log" 2>&1 &&
			"${get[@]}" install --no-install-recommends "${missing[@]}" >>"$log" 2>&1; } ||
		fail "apt-get failed, see $log: $(tail -n 1 "$log")"
}

python_environment() {
	local stamp python="$cache/venv/bin/python"
	python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
		fail "Python 3.11 or newer is needed, \`python3\` is: $(python3 --version 2>&1)"
	stamp="$(python3 --version) $(sha256sum <"$here/requirements.lock")"
	if [ -x "$python" ] && [ "$(cat "$cache/venv.stamp" 2>/dev/null)" = "$stamp" ]; then
		say "Python environment: up to date"
		return
	fi
	say "Python environment: installing into $cache/venv"
	rm -rf "$cache/venv" "$cache/venv.stamp"
	python3 -m venv "$cache/venv" ||
		fail "cannot make a Python environment; install python3-venv"
	"$python" -m pip install --quiet --require-hashes -r "$here/requirements.lock" \
		>"$cache/pip.log" 2>&1 ||
		fail "pip failed, see $cache/pip.log: $(tail -n 1 "$cache/pip.log")"
	printf '%s\n' "$stamp" >"$cache/venv.stamp"
}

node_modules() {
	local stamp
	if [ ! -f "$rival/package-lock.json" ]; then
		say "libwebrtc sender: $rival is not there, skipped"
		return
	fi
	stamp="$(node --version) $(sha256sum <"$rival/package-lock.json")"
	if [ "$(cat "$cache/node.stamp" 2>/dev/null)" = "$stamp" ]; then
		say "libwebrtc sender: up to date"
		return
	fi
	say "libwebrtc sender: installing into $cache/node"
	rm -rf "$cache/node" "$cache/node.stamp"
	mkdir -p "$cache/node"
	cp "$rival/package.json" "$rival/package-lock.json" "$cache/node/"
	(cd "$cache/node" && npm ci --no-audit --no-fund >"$cache/npm.log" 2>&1) ||
		fail "npm failed, see $cache/npm.log: $(grep -m 1 -i err "$cache/npm.log")"
	printf '%s\n' "$stamp" >"$cache/node.stamp"
}

case "${1:-}" in
'') ;;
-h | --help)
	sed -n '3,6s/^# //p' "$0"
	exit
	;;
*) fail "it takes no words, and so no $1; see --help" ;;
esac
case "$top" in
*:*) fail "this clone, $top, must not have a colon in its path, as it separates those of Python: move it" ;;
esac
case "$cache" in
[!/]* | *[[:space:]:]*)
	fail "the cache, $cache, has to be an absolute path without spaces and colons, or no kernel can be" \
		"built in it; set XDG_CACHE_HOME" ;;
esac
mkdir -p "$cache" || fail "cannot create $cache; set XDG_CACHE_HOME"
probe="$cache/executed.$$"
if install -m 755 /dev/null "$probe" 2>/dev/null; then
	"$probe" 2>/dev/null && executes=1 || executes=0
	rm -f "$probe"
	[ "$executes" = 1 ] ||
		fail "nothing can be executed in $cache, which seems to be mounted noexec, but the lab's programs are;" \
			"set XDG_CACHE_HOME to a directory elsewhere"
fi
# Runs of the lab and this script may start together.
exec 9>"$cache/setup.lock"
flock -w 3 9 || { say "waiting for another one that is at work ($cache/setup.lock)" && flock 9; }
if [ ! -f "$cache/venv.stamp" ]; then
	free_mb=$(df --output=avail -m "$cache" | tail -n 1 | tr -d ' ')
	[ "$free_mb" -ge "$need_mb" ] ||
		fail "about $need_mb MB are needed in $cache, $free_mb MB are free"
fi
[ "$(uname -m)" = x86_64 ] ||
	say "this processor, $(uname -m), runs no guest of the lab: \`make build\` and \`make deb\` work, \`make demo\` does not"
install_packages
python_environment
node_modules
say "done"
