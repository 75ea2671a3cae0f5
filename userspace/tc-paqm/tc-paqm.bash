# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# bash completion of "tc qdisc ... paqm", "... dcbt" and "... rlqos". iproute2 owns the completion of tc itself:
# this wraps it, adds the names of the qdiscs to its suggestions and completes what comes after. The
# options are those that the plugins themselves list.

_tc_paqm_dscps='LE CS0 CS1 CS2 CS3 CS4 CS5 CS6 CS7 AF11 AF12 AF13 AF21 AF22 AF23 AF31 AF32 AF33 AF41
	AF42 AF43 EF VA NQB'
_tc_paqm_lists='^(dscp-.*|tag|tc1|tc2)$' # options that take several of them

_tc_paqm_items() { # qdisc; one option of the usage on each line, without its brackets
	local group
	for group in '' research; do
		PATH=$PATH:/usr/sbin:/sbin tc qdisc add dev lo root "$1" help $group 2>&1
	done | grep -oE '\[ ([^][]|\[no\]|\[,[A-Z.]*\])+ \]' | sed 's/^\[ //; s/ \]$//'
}

_tc_paqm_words() { # qdisc, option before the word
	local items item
	items=$(_tc_paqm_items "$1")
	item=$(OPTION=$2 awk '$1 == ENVIRON["OPTION"]' <<<"$items")
	if [[ $item ]]; then
		# lower-case alternatives are words, upper-case ones stand for values
		tr ' |' '\n\n' <<<"${item#* }" | LC_ALL=C grep -x '[a-z-]*'
		[[ $2 =~ $_tc_paqm_lists ]] && echo "$_tc_paqm_dscps"
	else
		sed -E 's/ .*//; s/^\[no\](.*)/\1 no\1/' <<<"$items"
		echo help
	fi
}

_tc_paqm() {
	local word i list='' ours='' cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local before=${COMP_LINE:0:COMP_POINT}

	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		[[ ! $ours && $word =~ ^(paqm|dcbt|rlqos)$ ]] && ours=$word
	done
	if [[ $ours ]]; then
		# the last element of a list
		if [[ $prev =~ $_tc_paqm_lists && $cur == *,* ]]; then
			list=${cur%,*},
			mapfile -t COMPREPLY < <(compgen -P "$list" -W "$_tc_paqm_dscps" -- "${cur##*,}")
			return
		fi
		mapfile -t COMPREPLY < <(compgen -W "$(_tc_paqm_words "$ours" "$prev")" -- "$cur")
		return
	fi
	if ! declare -F _tc >/dev/null; then
		# shellcheck source=/dev/null
		. /usr/share/bash-completion/completions/tc 2>/dev/null || return
		complete -F _tc_paqm tc
	fi
	_tc "$@"
	# bash takes "1:1" for three words
	before=${before%"$cur"}
	if [[ " ${COMP_WORDS[*]} " == *' qdisc '* ]] &&
		[[ $before =~ [[:space:]](root|[0-9a-f]+:[0-9a-f]*)[[:space:]]+$ ]]; then
		for word in paqm dcbt rlqos; do
			[[ $word == "$cur"* ]] && COMPREPLY+=("$word")
		done
	fi
}

complete -F _tc_paqm tc
