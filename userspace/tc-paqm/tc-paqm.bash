# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# bash completion of "tc qdisc ... paqm". iproute2 owns the completion of tc itself: this wraps it,
# adds the name of the qdisc to its suggestions and completes what comes after.

_tc_paqm_dscps='LE CS0 CS1 CS2 CS3 CS4 CS5 CS6 CS7 AF11 AF12 AF13 AF21 AF22 AF23 AF31 AF32 AF33 AF41
	AF42 AF43 EF VA NQB'

_tc_paqm_words() { # option before the word
	case $1 in
	bandwidth) echo auto none ;;
	linklayer) echo ethernet atm ptm ;;
	limit | media-limit | elastic-limit | interval | gamma | rtt | gop) echo auto ;;
	law) echo maxmin ecf erf ;;
	feedback) echo none icmp quench in-band ;;
	feedback-to) echo any ;;
	classify) echo auto protocol ;;
	weights) echo flow host ;;
	dscp-media | dscp-elastic) echo none "$_tc_paqm_dscps" ;;
	split) echo flows ;;
	profile) echo fast robust ;;
	seed) echo random ;;
	key) echo none ;;
	overhead | mpu | media-target | elastic-target | target-util | media-weight | elastic-weight | \
		gain | alpha | beta | period | transfer | credit | md-floor | flows | flow-age | \
		router-id) ;;
	*)
		echo bandwidth overhead mpu linklayer media-target elastic-target limit media-limit \
			elastic-limit law feedback feedback-to classify dscp-media dscp-elastic \
			target-util split media-weight elastic-weight borrow noborrow weights ecn noecn \
			isolate noisolate police nopolice interval gain gamma profile alpha beta period rtt gop \
			transfer credit md-floor forced-md noforced-md ai-hold noai-hold flows \
			flow-age router-id seed key help
		;;
	esac
}

_tc_paqm() {
	local word i list='' ours='' cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}

	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		[[ $word == paqm ]] && ours=yes
	done
	if [[ $ours ]]; then
		# the last element of a list
		if [[ $prev == dscp-* && $cur == *,* ]]; then
			list=${cur%,*},
			mapfile -t COMPREPLY < <(compgen -P "$list" -W "$_tc_paqm_dscps" -- "${cur##*,}")
			return
		fi
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
