# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Shared by the scripts that run inside the guest: results as `ok NAME` or `not ok NAME: why`.
passed=0
failed=0

ok() {
	passed=$((passed + 1))
	echo "ok $*"
}

not_ok() {
	failed=$((failed + 1))
	echo "not ok $*"
}

# check NAME COMMAND...: the command's status decides
check() {
	local name=$1 out
	shift
	if out=$("$@" 2>&1); then ok "$name"; else not_ok "$name: $* says: $(tail -n 3 <<<"$out")"; fi
}

# same NAME VALUE WANTED
same() {
	if [ "$2" = "$3" ]; then ok "$1 ($2)"; else not_ok "$1: got '$2', want '$3'"; fi
}

# within NAME VALUE LOW HIGH
within() {
	if awk -v v="$2" -v l="$3" -v h="$4" 'BEGIN { exit !(v ~ /^[0-9.]+$/ && v >= l && v <= h) }'; then
		ok "$1 ($2)"
	else
		not_ok "$1: got '$2', want $3..$4"
	fi
}

# has NAME TEXT PATTERN
has() {
	if grep -qE "$3" <<<"$2"; then ok "$1"; else not_ok "$1: no /$3/ in: $(tail -n 4 <<<"$2")"; fi
}

# wait_for COMMAND...: until it succeeds; gives up after two minutes of the guest's time
wait_for() {
	local _
	for _ in $(seq 240); do
		"$@" >/dev/null 2>&1 && return 0
		sleep 0.5
	done
	return 1
}

# has_messages NETNS: did messages to this host arrive, by ICMP?
has_messages() {
	ip netns exec "$1" awk '
		/^IcmpMsg:/ { if (!n) n = split($0, name); else for (i = 2; i <= n; i++)
			if (name[i] == "InType253") found = $i }
		END { exit !(found > 0) }' /proc/net/snmp
}
