#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Formatters and static checks over the tree; prints `ok NAME` or `not ok NAME` for each.
set -u
cd "$(dirname "$(readlink -f "$0")")/.." || exit 2
if [ $# -gt 0 ]; then # it takes no words
	sed -n '3s/^# //p' "$0"
	[ "$1" = -h ] || [ "$1" = --help ]
	exit
fi
cache="${XDG_CACHE_HOME:-$HOME/.cache}/paqm"
bin="$cache/venv/bin"
. setup/lint-lib.sh

# Everything that must never stand in the tree.
words() {
	setup/ls-files.sh -z ':!setup/lint.sh' | xargs -0 grep -nIE '\b(TODO|FIXME|XXX|HACK)\b' | { ! grep .; }
}

# lintian warns of longer ones, and then `make deb` fails.
control() {
	awk 'length > 80 { print FILENAME ":" FNR ": longer than 80"; bad = 1 } END { exit bad }' \
		packaging/debian/control
}

# qdisc_priv() of Linux 6.1 takes none that is const.
const_qdisc() {
	grep -rnE --include='*.[ch]' 'const struct Qdisc \*sch\b' kernel | { ! grep .; }
}

mapfile -t c_files < <(setup/ls-files.sh 'browser/*.[ch]' 'core/*.[ch]' 'feedback-daemon/*.[ch]' 'libpaqmclient/*.[ch]' 'streamer/*.[ch]' \
	'userspace/*.[ch]' 'clients/*.[ch]' 'testbed/*.[ch]' 'kernel/fuzz/*.[ch]')
mapfile -t shell_files < <(setup/ls-files.sh '*.sh')
if [ "${#c_files[@]}" -eq 0 ] || [ "${#shell_files[@]}" -eq 0 ]; then
	echo "lint.sh: setup/ls-files.sh lists no files" >&2
	exit 2
fi
lint "no leftover words" words
lint "lines of debian/control" control
lint "qdiscs are not const" const_qdisc
lint "structure" setup/structure.py
lint "clang-format" "$bin/clang-format" --dry-run --Werror "${c_files[@]}"
lint "ruff" bash -c "cd testbed && '$bin/ruff' check --no-cache . ../browser ../feedback-daemon ../libpaqmclient ../clients ../connectors \
	../userspace ../streamer ../kernel ../setup ../docs ../tests --config pyproject.toml"
lint "mypy" env MYPYPATH=testbed "$bin/mypy" --config-file testbed/pyproject.toml \
	--cache-dir "$cache/mypy" -p paqm_lab
lint "mypy of tests" env MYPYPATH=testbed:tests:feedback-daemon/tests:feedback-daemon/wireshark "$bin/mypy" --config-file testbed/pyproject.toml \
	--cache-dir "$cache/mypy" tests/*.py tests/kernel/*.py
lint "shell syntax" bash -c 'for f; do bash -n "$f" || exit; done' bash "${shell_files[@]}"
setup/lint-kernel.sh --fast || failed=1
exit $failed
