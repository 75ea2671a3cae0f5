#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Completion in bash suggests the options and commands that the program's help names, no others,
# and for the values of an option what its help says.
# Usage: completion.sh COMPLETION PROGRAM [COMMAND...]    (each command: its own help, words in one)
set -u
completion=$1
program=$2
shift 2
# shellcheck source=/dev/null
. "$completion"
name=$(basename "$program")
function=$(complete -p "$name" | sed -E 's/.*-F ([^ ]+) .*/\1/')
failed=0

suggest() { # words after the program's name, the last one unfinished
	COMP_WORDS=("$program" "$@")
	COMP_CWORD=$#
	COMPREPLY=()
	"$function" "$program" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
	printf '%s\n' "${COMPREPLY[@]}" | sort
}

expect() { # description, expected, got
	if [ -z "$2" ] || [ "$2" != "$3" ]; then
		printf '%s %s\nwanted: %s\ngot:    %s\n' "$name" "$1" "${2//$'\n'/ }" "${3//$'\n'/ }"
		failed=1
	fi
}

[ $# -gt 0 ] || set -- ""
for command; do
	read -ra words <<<"$command"
	help=$("$program" "${words[@]}" --help)
	known=$(sed -nE 's/^ +(-[a-zA-Z], )?(--[a-z-]+(=no\b)?).*/\2/p' <<<"$help" | sort)
	# of two helps, the one without --trace does not name the way to the other
	case $command in
	send | recv) known=$(printf '%s\n' "$known" --trace | sort) ;;
	esac
	expect "$command: options" "$known" "$(suggest "${words[@]}" --)"
	# --option=one|two in the help: small letters are words, capital ones stand for values
	while read -r option values; do
		wanted=$(tr '|' '\n' <<<"$values" | grep -x '[a-z][a-z-]*' | sort)
		expect "$command: values of $option" "$wanted" "$(suggest "${words[@]}" "$option" '')"
		expect "$command: values of $option=" "$wanted" "$(suggest "${words[@]}" "$option" =)"
	done < <(sed -nE 's/^ +(-[a-zA-Z], )?(--[a-z-]+)[= ]([a-z-]+(\|[a-z-]+)+)( .*|$)/\2 \3/p' <<<"$help")
done
if [ "$name" = paqm-streamer ]; then # which it has, it says of one that it has not
	known=$("$program" send --to 127.0.0.1:9 --source test --paqmd none --controller '?' 2>&1 |
		sed -nE 's/^  ([a-z][^ ]*) .*/\1/p' | LC_ALL=C sort)
	expect "controllers" "$known" "$(suggest send --controller '' | LC_ALL=C sort)"
fi
commands=$("$program" --help | sed -nE 's/^  ([a-z][a-z-]*)( [A-Z]+)?(  .*|$)/\1/p' | sort)
[ -z "$commands" ] || expect "commands" "$commands" "$(suggest '' | grep -v '^-')"

# The name of a device is a word like any other, also one that bash would expand.
if grep -q /sys/class/net "$completion"; then
	devices=$(mktemp -d)
	odd='$(echo)a{b,c}'
	mkdir "$devices/$odd"
	cd() { builtin cd "$devices" || exit; }
	expect "devices" "$odd" "$({ suggest -i ''; suggest check ''; } | sort -u | grep -Fx "$odd")"
	rm -r "$devices"
fi
exit "$failed"
