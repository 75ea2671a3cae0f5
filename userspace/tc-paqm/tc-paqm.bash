# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# bash completion of "tc qdisc ... paqm". iproute2 owns the completion of tc itself: this wraps it,
# adds the name of the qdisc to its suggestions and completes what comes after.

_tc_paqm_words() {
	case $1 in
	bandwidth) echo none ;;
	limit | interval | gamma) echo auto ;;
	law) echo maxmin ecf erf ;;
	feedback) echo none icmp ;;
	classify) echo auto protocol ;;
	profile) echo fast robust ;;
	media-target | elastic-target | gain | alpha | beta | period | rtt | target-util | transfer | \
		credit | md-floor | flows | router-id) ;;
	*)
		echo bandwidth media-target elastic-target limit law feedback classify target-util \
			ecn noecn police nopolice interval gain gamma profile alpha beta period rtt \
			transfer credit md-floor forced-md noforced-md ai-hold noai-hold flows \
			router-id help
		;;
	esac
}

_tc_paqm() {
	local word i ours='' cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}

	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		[[ $word == paqm ]] && ours=yes
	done
	if [[ $ours ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_tc_paqm_words "$prev")" -- "$cur")
		return
	fi
	if ! declare -F _tc >/dev/null; then
		# shellcheck source=/dev/null
		. /usr/share/bash-completion/completions/tc 2>/dev/null || return
		complete -F _tc_paqm tc
	fi
	_tc "$@"
	if [[ paqm == "$cur"* && " ${COMP_WORDS[*]} " == *' qdisc '* ]] &&
		[[ $prev == root || $prev =~ ^[0-9a-f]+:[0-9a-f]*$ ]]; then
		COMPREPLY+=(paqm)
	fi
}

complete -F _tc_paqm tc
