#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Completion suggests the options that the plugin knows, and only those, and leaves the rest of tc
# to iproute2's own completion.
# Usage: test_completion.sh DIRECTORY_OF_PLUGINS tc-paqm.bash
set -u
export TC_LIB_DIR=$1
if ! [ -f /usr/share/bash-completion/bash_completion ] ||
	! [ -f /usr/share/bash-completion/completions/tc ]; then
	echo "skipped: bash-completion or iproute2's completion is not installed"
	exit 77
fi
set +u
# shellcheck source=/dev/null
. /usr/share/bash-completion/bash_completion
# shellcheck source=/dev/null
. "$2"
failed=0

suggest() { # words of the line, the last one unfinished
	COMP_WORDS=("$@")
	COMP_CWORD=$(($# - 1))
	COMP_LINE="$*"
	COMP_POINT=${#COMP_LINE}
	COMPREPLY=()
	_tc_paqm tc "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
	printf '%s\n' "${COMPREPLY[@]}" | sort
}

# The same with what bash takes for several words: it splits at colons.
suggest_split() { # line; words of it
	COMP_LINE=$1
	COMP_POINT=${#COMP_LINE}
	shift
	COMP_WORDS=("$@")
	COMP_CWORD=$(($# - 1))
	COMPREPLY=()
	_tc_paqm tc "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
	printf '%s\n' "${COMPREPLY[@]}" | sort
}

expect() { # description, expected, got
	if [ "$2" != "$3" ]; then
		printf '%s\nwanted: %s\ngot:    %s\n' "$1" "${2//$'\n'/ }" "${3//$'\n'/ }"
		failed=1
	fi
}

line="tc qdisc add dev lo root paqm"
# one option on each line
usage=$({ $line help; $line help research; } 2>&1 | tr '\n' ' ' | sed 's/ \[ /\n[ /g')
known=$(sed -nE 's/^\[ (\[no\])?([a-z-]+).*/\1 \2/p' <<<"$usage" |
	awk '{ print $NF } /\[no\]/ { print "no" $2 } END { print "help" }' | sort)
[ "$(wc -l <<<"$known")" -gt 40 ] || { echo "help was not understood: $usage" && exit 1; }
# shellcheck disable=SC2086,SC2013
{
	expect "options" "$known" "$(suggest $line '')"
	expect "options after another" "$known" "$(suggest $line rtt 5ms dscp-media EF,CS1 ecn '')"
	expect "prefix" $'media-inner-target\nmedia-limit\nmedia-target\nmedia-weight' \
		 "$(suggest $line media-)"
	# lower-case alternatives in the help are words, upper-case ones stand for values
	for option in $(sed -nE 's/^\[ ([a-z-]+) .*/\1/p' <<<"$usage"); do
		[[ $option == dscp-* ]] && continue
		words=$(sed -nE "s/^\[ $option ([^ ]+) \].*/\1/p" <<<"$usage" | tr '|' '\n' |
			grep -x '[a-z-]*' | sort)
		expect "words of $option" "$words" "$(suggest $line "$option" '')"
	done
	for option in dscp-media dscp-elastic; do
		expect "none of $option" "none" "$(suggest $line $option n)"
		expect "list of $option" $'EF,AF41\nEF,AF42\nEF,AF43' \
			"$(suggest $line $option EF,AF4)"
		for word in $(suggest $line $option '') "$(suggest $line $option EF,8,V)"; do
			# "help" ends the command before it reaches the kernel
			refused=$($line $option "$word" help 2>&1 | grep '^paqm:')
			expect "suggested for $option: $word" "" "$refused"
		done
	done
	expect "value that has no words" "" "$(suggest $line period '')"
	expect "kind" "paqm" "$(suggest tc qdisc add dev lo root pa)"
	expect "kind after a handle" "paqm" "$(suggest_split 'tc qdisc add dev lo root handle 1: pa' \
		tc qdisc add dev lo root handle 1 : pa)"
	expect "kind after a parent" "paqm" "$(suggest_split 'tc qdisc add dev lo parent 1:1 pa' \
		tc qdisc add dev lo parent 1 : 1 pa)"
	expect "word that is no pattern" "" "$(suggest $line [ bandw 2>&1 >/dev/null)"
	expect "other kind" "dcbt" "$(suggest tc qdisc add dev lo root dcb)"
	line="tc qdisc add dev lo root dcbt"
	expect "modes" $'cbt\ncbt-tcp\ndcbt\nfred\nred' "$(suggest $line mode '')"
	expect "options of dcbt" $'tag\ntagged-threshold' "$(suggest $line mode red ta)"
	expect "tags" $'EF,AF41\nEF,AF42\nEF,AF43' "$(suggest $line tag EF,AF4)"
	expect "third kind" "rlqos" "$(suggest tc qdisc add dev lo root rlq)"
	line="tc qdisc add dev lo root rlqos"
	expect "options of rlqos" $'tc1\ntc1-share\ntc2' "$(suggest $line limit 8 tc)"
	expect "classes of rlqos" $'EF,AF41\nEF,AF42\nEF,AF43' "$(suggest $line tc2 EF,AF4)"
	expect "iproute2's own" "fq_codel" "$(suggest tc qdisc add dev lo root fq_c)"
}
exit $failed
